#!/usr/bin/env bash
#
# The tests that need a GPU; run in the repository's root, on the GPU's host.
# The last line is `N passed, N failed`.
#
#   test/gpu/run.sh [PART ...]      build engine sanitize missing   (default: all)
#
#   build      the CUDA library, for this machine's GPU only
#   engine     the ABI's test suite on the GPU (HGJ_SEED: its seed)
#   sanitize   the same under compute-sanitizer: memcheck, racecheck, initcheck
#   missing    no device to be seen: a sentence, and no crash
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
parts=("$@")
((${#parts[@]})) || parts=(build engine sanitize missing)
passed=0
failed=0
seed=${HGJ_SEED:-$(date +%s)}
out=build/gpu_tests
mkdir -p "$out"

# Runs a program that ends with `N passed, N failed`.
counted()
{
	local name=$1 rc=0
	shift
	"$@" >"$out/$name.log" 2>&1 || rc=$?
	if [[ $(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$out/$name.log" | tail -n 1) =~ ^([0-9]+)\ passed,\ ([0-9]+) ]]; then
		passed=$((passed + BASH_REMATCH[1]))
		failed=$((failed + BASH_REMATCH[2]))
		((rc == 0 || BASH_REMATCH[2] > 0)) || failed=$((failed + 1))
	else
		failed=$((failed + 1))
	fi
	((rc == 0)) || grep -E '^not ok|^no engine|Error|ERROR|error|=========' "$out/$name.log" | head -n 40
	echo "$name: status $rc, ${SECONDS} s, $(tail -n 1 "$out/$name.log")"
}

check()
{
	if [[ $2 == ok ]]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "not ok - $1: $2"
	fi
}

for part in "${parts[@]}"; do
	case $part in
		build)
			cap=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
			make -s -j"$(nproc)" -C cuda CUDA_ARCHS="${cap:-90}" >"$out/build.log" 2>&1 &&
				make -s -j"$(nproc)" -C test/engine build/run_tests >>"$out/build.log" 2>&1
			rc=$?
			((rc == 0)) || tail -n 40 "$out/build.log"
			check build "$( ((rc == 0)) && echo ok || echo "status $rc")"
			echo "build: ${SECONDS} s"
			;;
		engine)
			counted engine test/engine/build/run_tests cuda "$seed" .
			;;
		sanitize)
			# Every kernel, but not every combination: a check costs a hundredfold.
			for tool in ${HGJ_TOOLS:-memcheck racecheck initcheck}; do
				HGJ_TEST_SHARE=${HGJ_TEST_SHARE:-40} counted "$tool" \
					compute-sanitizer --tool "$tool" --error-exitcode 9 --print-limit 20 \
					test/engine/build/run_tests cuda "$seed" .
				check "$tool" "$(grep -qE '========= (ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards)' "$out/$tool.log" && echo ok || echo "findings")"
			done
			;;
		missing)
			CUDA_VISIBLE_DEVICES='' test/engine/build/run_tests cuda "$seed" . >"$out/missing.log" 2>&1
			check "no device" "$(grep -q 'no engine: there is no CUDA device' "$out/missing.log" && echo ok || tail -n 1 "$out/missing.log")"
			;;
		*)
			echo "run.sh: there is no part $part" >&2
			failed=$((failed + 1))
			;;
	esac
done
echo "$passed passed, $failed failed"
((failed == 0 && passed > 0))
