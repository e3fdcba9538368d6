#!/usr/bin/env bash
#
# The tests that need a GPU; run in the repository's root, on the GPU's host.
# The last line is `N passed, N failed`.
#
#   test/gpu/run.sh [PART ...]      build engine sanitize missing sql   (default: all but sql)
#
# Ten minutes hold it in two commands: "build engine sanitize missing" first, then "build sql".
#
#   build      the CUDA library, for this machine's GPU only
#   engine     the ABI's test suite on the GPU (HGJ_SEED: its seed)
#   sanitize   the same under compute-sanitizer: memcheck, racecheck, initcheck; several processes
#              with seeds of their own, each a part (one in HGJ_TEST_SHARE) of the combinations
#   steps      from instructions of pipelines to steps, on random programs
#   missing    no device to be seen: a sentence, and no crash
#   sql        test/gpu/sql.sh regress, random, long; and, with a library that fails in
#              HGJ_FAULTS (make -C cuda CUDA_FAULTS=1), pipeline_faults and faults
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
parts=("$@")
((${#parts[@]})) || parts=(build steps engine sanitize missing)
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
	if [[ $(grep -aE '^[0-9]+ passed, [0-9]+ failed$' "$out/$name.log" | tail -n 1) =~ ^([0-9]+)\ passed,\ ([0-9]+) ]]; then
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
		steps)
			counted steps make -s -C cuda CUDA_ARCHS="$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)" check-steps SEED="$seed"
			;;
		engine)
			counted engine test/engine/build/run_tests cuda "$seed" .
			;;
		sanitize)
			# Every kernel, but not every combination: a check costs a hundredfold.
			for tool in ${HGJ_TOOLS:-memcheck racecheck initcheck}; do
				for i in 1 2 3 4; do
					HGJ_TEST_SHARE=${HGJ_TEST_SHARE:-60} compute-sanitizer --tool "$tool" --error-exitcode 9 \
						--print-limit 20 test/engine/build/run_tests cuda $((seed + i)) . >"$out/$tool.$i.out" 2>&1 &
				done
			done
			wait
			for tool in ${HGJ_TOOLS:-memcheck racecheck initcheck}; do
				for i in 1 2 3 4; do
					counted "$tool.$i" cat "$out/$tool.$i.out"
					check "$tool.$i" "$(grep -qE '========= (ERROR SUMMARY: 0 errors|RACECHECK SUMMARY: 0 hazards)' "$out/$tool.$i.out" && echo ok || echo "findings")"
				done
			done
			;;
		sql)
			HGJ_PGOPTIONS=${HGJ_PGOPTIONS:--c max_parallel_workers=0} counted regress bash test/gpu/sql.sh regress \
				$(cd sql && find . -name '*.sql' ! -name '*--*' ! -name setup.sql ! -name parallel.sql ! -name explain_spills.sql -printf '%f\n' | sed 's/\.sql$//' | sort)
			counted parallel bash test/gpu/sql.sh regress parallel agg_plans explain_spills
			counted random bash test/gpu/sql.sh random --seeds 4 --queries 60 --seed "$seed"
			counted long bash test/gpu/sql.sh long
			if [[ -n ${HGJ_FAULTS:-} ]]; then
				counted pipeline_faults bash test/gpu/sql.sh pipeline_faults "$HGJ_FAULTS"
				counted faults bash test/gpu/sql.sh faults "$HGJ_FAULTS"
			fi
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
