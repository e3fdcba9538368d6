#!/usr/bin/env bash
#
# Sets up, builds, installs, and runs suites, each on a throw-away server of its
# own.  The last line is `N passed, N failed`.
#
#   test/check.sh            make check: the suites that find most, with samples of
#                            what takes long
#   test/check.sh full       make check-full: every suite, whole
#
#   SUITES="regress tap"     some suites only (names below)
#   WITHOUT="regress lint"   all but these
#   HGJ_AFTER_CHECK=yes      make check has just passed or failed here: of the suites engine,
#                            tap and regress, what it has left out only; the CUDA engine for
#                            one other architecture; other seeds of random joins; PostgreSQL's own
#                            files once; sanitizers, sqlsmith and the stress of kept columns shorter;
#                            assertions and other versions of PostgreSQL without the longest files
#   HGJ_SUITES_AT_ONCE=2     as many as there are processors, but no more than four
#   HGJ_RANDOM_SEEDS=6 HGJ_RANDOM_QUERIES=300
#                            the size of the random suite (2 seeds in make check)
#   HGJ_DECIMALS=10000000    values of generated numeric expressions (200000 in make check)
#   HGJ_KEPT_SECONDS=600     how long each of three parts of test/t/020_kept_columns.pl stresses
#                            columns kept in memory (40 in make check-full, once; 3 in make check)
#   HGJ_TAP_WITHOUT=REGEX    TAP files that are left out
#   HGJ_TAP_ONLY=REGEX       suite tap runs those only: SUITES=tap HGJ_TAP_ONLY=/026 make check
#   HGJ_REGRESS_WITHOUT="wide types"
#                            files of sql/ that suite regress leaves out
#   HGJ_FAKE_FILES=none      suite regress leaves the fake device out
#   HGJ_SQLSMITH_SECONDS=90 how long sqlsmith makes up queries
#   HGJ_TIME_LIMIT=5400      seconds for everything; what is left by then fails, what a suite
#                            has found by then counts (no limit but this: a slow machine is not wrong)
#   HGJ_SILENCE=3600         seconds after which a suite that writes nothing is taken for hung
#   CUDA_ARCHS=90            for what the CUDA engine is built, where nvcc is found
#                            (one architecture in make check, all in make check-full)
#
# Logs stand in build/check.
set -euo pipefail

# What is made here is not part of the make that called us.
unset MAKELEVEL MAKEFLAGS MFLAGS

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=test/lib/server.sh
. test/lib/server.sh
# shellcheck source=test/lib/fake_library.sh
. test/lib/fake_library.sh

# The longest first: the last ones to run are to be short.
FULL_SUITES=(versions cassert spill gpu_server tap random regress engine pg_regression sqlsmith packages lint real isolation)
QUICK_SUITES=(regress tap engine random lint real isolation)
# Suites for which something must be there that need not be.
MORE_SUITES=(timescaledb)
out=$HGJ_TOP/build/check

# ---- counting -------------------------------------------------------------

# Adds to the counts of the suite that runs.
report()
{
	echo "$1 $2" >>"$out/$suite.count"
}

# What runs now in a suite writes to a file of this name, too, whose last part says how
# tests are counted in it: a suite that is stopped leaves the file, and what it had found
# by then is not lost.
part_of()
{
	echo "$out/$suite.part.$1"
}

# Counts of such a file: sets ok and bad.
count_part()
{
	local part=$1 skipped
	case $part in
		*.regress)
			# from 16 on it is TAP
			ok=$(grep -cE '^((test +| +)[A-Za-z0-9_-]+ +\.\.\. ok( |$)|ok [0-9]+ )' "$part" || true)
			bad=$(grep -cE '^((test +| +)[A-Za-z0-9_-]+ +\.\.\. (FAILED|failed)|not ok [0-9]+ )' "$part" || true)
			;;
		*.tap)
			ok=$(grep -cE '^ok [0-9]+' "$part" || true)
			bad=$(grep -cE '^not ok [0-9]+' "$part" || true)
			# A test that was skipped proved nothing.
			skipped=$(grep -ciE '^(ok [0-9]+.*# skip|1\.\.0 # skip)' "$part" || true)
			ok=$((ok - skipped))
			bad=$((bad + skipped))
			;;
		*.counted)
			# The last line of a program that has come to its end; before, its tests, or
			# suites of a check of its own.
			if [[ $(tail -n 1 "$part") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
				ok=${BASH_REMATCH[1]} bad=${BASH_REMATCH[2]}
			else
				read -r ok bad < <(awk '/^ok / {p++} /^not ok / {f++}
					/^[a-z_]+ +[0-9]+ passed, [0-9]+ failed, [0-9]+ s/ {p += $2; f += $4}
					END {print p + 0, f + 0}' "$part")
			fi
			;;
	esac
}

# Runs a program that ends with that line; its exit status counts as well.
counted()
{
	local rc=0 part ok bad
	part=$(part_of counted)
	echo "+ $*"
	set +e
	"$@" 2>&1 | tee "$part"
	rc=${PIPESTATUS[0]}
	set -e
	count_part "$part"
	if ! tail -n 1 "$part" | grep -E '^[0-9]+ passed, [0-9]+ failed$' >/dev/null; then
		echo "check: no line 'N passed, N failed' at the end"
		bad=$((bad + 1))
	elif ((rc != 0 && bad == 0)); then
		echo "check: exit status $rc, though no test failed: counted as a failure"
		bad=1
	fi
	rm -f "$part"
	report "$ok" "$bad"
}

# pg_regress and pg_isolation_regress, through PGXS's installcheck.
installcheck()
{
	local what=$1 tree=$2 config=$3 dir=$4 rc=0 part ok bad
	shift 4
	part=$(part_of regress)
	mkdir -p "$dir"
	set +e
	make -C "$tree" installcheck PG_CONFIG="$config" \
		EXTRA_REGRESS_OPTS="--outputdir=$dir" "$@" 2>&1 | tee "$part"
	rc=${PIPESTATUS[0]}
	set -e
	count_part "$part"
	rm -f "$part"
	if ((ok + bad == 0)); then
		echo "check: $what ran no test"
		bad=1
	elif ((rc != 0 && bad == 0)); then
		echo "check: $what ended with status $rc, though no test failed: counted as a failure"
		bad=1
	fi
	if ((bad > 0)) && [[ -f $dir/regression.diffs ]]; then
		head -n 400 "$dir/regression.diffs"
		sed -n '/^\(+++\|---\)/d; s/^[-+]/check: &/p' "$dir/regression.diffs" | head -n 6
	fi
	report "$ok" "$bad"
}

# ---- suites ---------------------------------------------------------------

# Is this make check-full, and has make check just run its samples?
after_check()
{
	[[ $size == full && -n ${HGJ_AFTER_CHECK:-} ]]
}

# One word where every suite is whole, another where samples will do, and a third, if it is
# given, after make check.
full_or()
{
	if [[ $size != full ]]; then
		echo "$2"
	elif after_check; then
		echo "${3-$1}"
	else
		echo "$1"
	fi
}

suite_lint()
{
	counted bash test/lint.sh
}

suite_engine()
{
	if ! after_check; then
		counted make -s -C test/engine check
		counted make -s -C test/engine check-fake
		counted make -s -C test/engine check-threads
		counted make -s -C test/engine check-fuzz FUZZ="$(full_or 6000 1500)"
		choose_archs
		[[ ! -f hashgraph_join_cuda.so ]] || counted make -s check-steps WERROR=1 PG_CONFIG="$config" "${cuda[@]}"
	fi
	# one in so many of the combinations
	HGJ_TEST_SHARE=${HGJ_TEST_SHARE:-$(full_or 1 16 4)} counted make -s -C test/engine check-asan
	HGJ_TEST_SHARE=${HGJ_TEST_SHARE:-$(full_or 4 120 20)} counted make -s -C test/engine check-fake-asan
	# races of threads, and of random plans what is not theirs, are looked for where everything is run
	[[ $size != full ]] || {
		HGJ_TEST_SHARE=${HGJ_TEST_SHARE:-30} counted make -s -C test/engine check-threads-tsan
		counted make -s -C test/engine check-fuzz-asan FUZZ=600
	}
}

# The servers of the suites.  Nothing is compiled by JIT: costs of forced plans would ask for
# that all the time.
test_server()
{
	hgj_server_start "shared_buffers = '256MB'" "max_prepared_transactions = 10" "jit = off" "$@"
}

# One that preloads the library: its sessions and their workers begin some milliseconds sooner.
preloaded_server()
{
	test_server "shared_preload_libraries = 'hashgraph_join'" "hashgraph_join.column_memory = 0" "hashgraph_join.gpu_server = off" "$@"
}

# The files that try one kind of value, or one way to read it, after the other.
files_of_values=(probe_order decimals dictionaries filters functions pages)

# The extension's output files, some of them then on a fake device.
suite_regress()
{
	preloaded_server
	# What make check leaves out: the largest tables, and files of the fake device that take
	# longest, or show little that others do not.
	local late=(aggregates agg_scans rescan "${files_of_values[@]}")
	if after_check; then
		installcheck regress "$HGJ_TOP" "$config" "$out/regress" ISOLATION= REGRESS="setup large"
		PG_CONFIG=$config counted bash test/fake/regress.sh "${late[@]}"
		return
	fi
	installcheck regress "$HGJ_TOP" "$config" "$out/regress" ISOLATION= \
		REGRESS_WITHOUT="$(full_or '' large) ${HGJ_REGRESS_WITHOUT:-}"
	[[ ${HGJ_FAKE_FILES:-} != none ]] || return 0
	PG_CONFIG=$config HGJ_FAKE_WITHOUT=$(full_or '' "${late[*]}") counted bash test/fake/regress.sh
}

# The fake device's files again, and random joins of columns that are kept, through one GPU
# process for all sessions.
suite_gpu_server()
{
	hgj_fake_library hgj_at_exit
	preloaded_server "hashgraph_join.gpu_server = auto" "hashgraph_join.cuda_library = '$HGJ_FAKE_LIBRARY'"
	# these come to the process as the others do
	PG_CONFIG=$config HGJ_GPU_SERVER=yes HGJ_FAKE_WITHOUT=$(full_or '' '' "${files_of_values[*]}") \
		counted bash test/fake/regress.sh
	hgj_server_stop
	test_server "shared_preload_libraries = 'hashgraph_join'" "hashgraph_join.column_memory = '64MB'" "hashgraph_join.column_loading = off" \
		"hashgraph_join.gpu_server = auto" "hashgraph_join.cuda_library = '$HGJ_FAKE_LIBRARY'"
	counted perl test/random/run.pl --seeds 1 --queries 300 --engine cuda --load
	hgj_server_stop
	# and through one that has threads
	test_server "shared_preload_libraries = 'hashgraph_join'" "hashgraph_join.column_memory = '64MB'" "hashgraph_join.column_loading = off" \
		"hashgraph_join.gpu_server = auto" "hashgraph_join.cuda_library = '$(dirname "$HGJ_FAKE_LIBRARY")/threads.so'"
	counted perl test/random/run.pl --seeds 1 --queries 120 --engine cuda --load
}

# The same files with little memory and each way to join in parts.
suite_spill()
{
	preloaded_server
	PG_CONFIG=$config counted bash test/spill/run.sh
}

# Debian packages, in a Debian of their own.
suite_packages()
{
	counted bash test/packages.sh
}

suite_isolation()
{
	test_server
	# PGXS puts the suite's own --outputdir before ours: the last one counts.
	installcheck isolation "$HGJ_TOP" "$config" "$out/isolation" REGRESS=

	# The same while columns of all tables are kept in memory.
	local loaded=$out/isolation_loaded
	rm -rf "$loaded"
	mkdir -p "$loaded/specs"
	cp -r test/isolation/expected "$loaded"
	perl test/isolation/load.pl test/isolation/specs "$loaded/specs"
	hgj_server_stop
	test_server "shared_preload_libraries = 'hashgraph_join'" "hashgraph_join.column_memory = '64MB'" "hashgraph_join.column_loading = off"
	installcheck "isolation with columns kept" "$HGJ_TOP" "$config" "$loaded" REGRESS= \
		ISOLATION_OPTS="--inputdir=$loaded --load-extension=hashgraph_join"
}

# TAP tests, as the server's user, in a copy that this user can read.  What they wait for comes
# sooner or later: PostgreSQL's 180 s are too few for a busy machine.
#   tap PG_CONFIG test/FOLDER/FILE.pl ...
tap()
{
	local config=$1 stage bin test_lib part rc ok bad
	shift
	bin=$("$config" --bindir)
	# The perl modules are Debian's also for a PostgreSQL of our own.
	test_lib=$(dirname "$("$(PG_CONFIG='' hgj_pg_config)" --pgxs)")/../test
	stage=$(mktemp -d /tmp/hgj_tap.XXXXXX)
	hgj_at_exit "rm -rf '$stage'"
	cp -r test/t "$stage/t"
	cp -r test/lib "$stage/lib"
	cp docs/settings.md "$stage/settings.md"
	cp -r docs "$stage/docs"
	cp -r test/cassert "$stage/cassert"
	make -s -C test/fake
	cp -r test/fake/build "$stage/fake"
	make -s -C test/other PG_CONFIG="$config" OUT="$stage/other/other.so"
	((EUID != 0)) || chown -R "$(hgj_server_user)" "$stage"
	part=$(part_of tap)
	set +e
	hgj_as_server env -C "$stage" -u PGHOST -u PGPORT -u PGUSER -u PGDATABASE -u PGOPTIONS \
		PATH="$bin:$PATH" TESTDIR="$stage" top_builddir="$stage" \
		TESTDATADIR="$stage/tmp_check" TESTLOGDIR="$stage/tmp_check/log" \
		PG_TEST_TIMEOUT_DEFAULT="${PG_TEST_TIMEOUT_DEFAULT:-900}" \
		PG_REGRESS="$test_lib/regress/pg_regress" LC_ALL=C \
		prove -v --timer -I "$test_lib/perl" -I "$stage/t" "${@#test/}" 2>&1 | tee "$part"
	rc=${PIPESTATUS[0]}
	set -e
	count_part "$part"
	rm -f "$part"
	if ((rc != 0 && bad == 0)); then
		echo "check: prove ended with status $rc, though no test failed: counted as a failure"
		bad=1
	fi
	report "$ok" "$bad"
	((bad == 0)) || {
		rm -rf "$out/${suite}_logs"
		cp -r "$stage/tmp_check/log" "$out/${suite}_logs" 2>/dev/null || true
	}
}

# TAP files that are run with assertions, too.
cassert_files=(test/t/{002_cancel,003_neighbours,006_stopped,007_standby,008_engines,009_partitions,012_faults,013_device_faults,015_device_rows,016_pipelines,020_kept_columns,021_progress,026_gpu_server,027_column_loading}.pl
	test/cassert/001_faults.pl)

suite_tap()
{
	export HGJ_KEPT_SECONDS=${HGJ_KEPT_SECONDS:-$(full_or 40 3)}
	# Failing devices are waited for, and so are the ends of statements that are cancelled at every
	# moment: minutes that the regress files do without.
	local files=(test/t/*.pl) late='/(008_engines|010_device_memory|013_device_faults|014_bounds|015_device_rows|032_device_sides|035_prewarm)\.pl$'
	if [[ $size != full ]]; then
		mapfile -t files < <(printf '%s\n' "${files[@]}" | grep -vE "$late")
	elif after_check; then
		# the rest, but what cassert has, as it has the minutes of 020_kept_columns.pl
		mapfile -t files < <(printf '%s\n' "${files[@]}" | grep -E "$late" | grep -vxF "$(printf '%s\n' "${cassert_files[@]}")")
	fi
	if [[ -n ${HGJ_TAP_ONLY:-} ]]; then
		mapfile -t files < <(printf '%s\n' test/t/*.pl | grep -E "$HGJ_TAP_ONLY")
	fi
	[[ -z ${HGJ_TAP_WITHOUT:-} ]] || mapfile -t files < <(printf '%s\n' "${files[@]}" | grep -vE "$HGJ_TAP_WITHOUT")
	tap "$config" "${files[@]}"
}

suite_random()
{
	test_server "max_connections = 50"
	counted perl test/random/run.pl --seed "$(full_or 1 1 3)" --seeds "${HGJ_RANDOM_SEEDS:-$(full_or 6 2 1)}" \
		--queries "${HGJ_RANDOM_QUERIES:-300}"
	counted perl test/random/hidden.pl --seed "$(full_or 1 1 10)" --seeds "$(full_or 20 2 2)" --queries "${HGJ_HIDDEN_QUERIES:-500}"
	counted perl test/decimals/run.pl --comparisons "${HGJ_DECIMALS:-$(full_or 2000000 200000 300000)}"
	hgj_fake_library hgj_at_exit
	counted perl test/random/run.pl --seed "$(full_or 1 1 2)" --seeds "$(full_or 2 1 1)" --queries "${HGJ_RANDOM_QUERIES:-300}" \
		--engine cuda --library "$HGJ_FAKE_LIBRARY"
	counted perl test/decimals/run.pl --comparisons "$(full_or 400000 120000 200000)" --engine cuda --library "$HGJ_FAKE_LIBRARY"
}

# Schemas and queries that were not made for us.
suite_real()
{
	test_server "shared_preload_libraries = 'hashgraph_join'" "hashgraph_join.column_memory = '128MB'" "hashgraph_join.column_loading = off"
	PG_CONFIG=$config counted bash test/real/run.sh
}

# Beside TimescaleDB.  VACUUM is to find all rows visible: their commits are in the log, and nobody
# else has a snapshot.
suite_timescaledb()
{
	test_server "shared_preload_libraries = 'timescaledb,hashgraph_join'" "hashgraph_join.column_memory = '64MB'" "hashgraph_join.column_loading = off" \
		"timescaledb.telemetry_level = off" "timescaledb.max_background_workers = 0" "max_worker_processes = 16" "timezone = 'UTC'" "synchronous_commit = on" "autovacuum = off"
	PG_CONFIG=$config counted bash test/timescaledb/run.sh
}

suite_pg_regression()
{
	local source
	source=$(bash test/cassert/build.sh --source)
	test_server "shared_preload_libraries = 'hashgraph_join'" "hashgraph_join.column_memory = '64MB'" "hashgraph_join.column_loading = off"
	after_check || counted perl test/pg_regression/run.pl --source "$source"
	counted perl test/pg_regression/run.pl --source "$source" --load
}

# The same answers from a server whose assertions and memory checks are on,
# and where every buffer, lock and context left behind makes a warning.
suite_cassert()
{
	local copy=$HGJ_TOP/build/cassert
	config=$(bash test/cassert/build.sh)
	PG_CONFIG=$config
	hgj_install_copy "$config" "$copy"
	: >"$out/cassert.installed"
	preloaded_server "log_min_messages = warning"
	# the largest tables take a minute and more here, and files of most rows, or of one kind of value
	# after the other, have others beside them
	installcheck "regress with assertions" "$copy" "$config" "$out/cassert_regress" ISOLATION= \
		REGRESS_WITHOUT="$(full_or '' '' 'large wide keys_only dictionaries join_types probe_order rescan types')"
	installcheck "isolation with assertions" "$copy" "$config" "$out/cassert_isolation" REGRESS=
	counted perl test/random/run.pl --seeds 2 --queries "${HGJ_CASSERT_QUERIES:-60}"
	export HGJ_KEPT_SECONDS=${HGJ_KEPT_SECONDS:-$(full_or 60 60 5)}
	local files=("${cassert_files[@]}")
	# what check has just run, and shows nothing of memory that goes wrong
	! after_check || mapfile -t files < <(printf '%s\n' "${files[@]}" | grep -vE '/(002|003|007|009|016|021)_[^/]*$')
	tap "$config" "${files[@]}"

	local found
	found=$(grep -E 'TRAP:|was terminated by signal|(buffer refcount|resource|snapshot reference|relcache reference|cache reference|tupdesc reference|temporary file|file) leak|problem in alloc set|detected write past chunk end' \
		"$HGJ_SERVER_LOG" || true)
	if [[ -n $found ]]; then
		echo "check: the assertion-enabled server's log:"
		head -n 40 <<<"$found"
		report 0 1
	else
		echo "ok - no failed assertion, leak warning or crash in the server's log"
		report 1 0
	fi
}

# Queries that sqlsmith makes up, on a server with assertions.
suite_sqlsmith()
{
	local installed=()
	[[ ! -e $out/cassert.installed ]] || installed=(--installed)
	counted bash test/sqlsmith/run.sh "${installed[@]}" "${HGJ_SQLSMITH_SECONDS:-$(full_or 90 90 45)}"
}

# Some of the suites on other versions of PostgreSQL.
suite_versions()
{
	counted env -u PG_CONFIG -u SUITES bash test/versions.sh check
}

# ---- the frame ------------------------------------------------------------

# For what the CUDA engine is built: sets cuda, for make.
choose_archs()
{
	cuda=()
	if [[ $size != full ]]; then
		# and without bitcode, which takes half a minute more: PostgreSQL's JIT does without
		cuda=("CUDA_ARCHS=${CUDA_ARCHS:-90}" with_llvm=no)
	elif after_check; then
		# the oldest; the package has the newest, and what suits both suits those in between; it has
		# the bitcode, too
		cuda=("CUDA_ARCHS=${CUDA_ARCHS:-75}" with_llvm=no)
	fi
}

# One suite, in a process of its own (the frame calls this script again).
if [[ ${1:-} == --suite ]]; then
	suite=$2
	size=$3
	config=$(hgj_pg_config)
	"suite_$suite"
	exit 0
fi

size=${1:-quick}
case $size in
	full)
		ALL_SUITES=("${FULL_SUITES[@]}")
		as_root=()
		((EUID == 0)) || as_root=(sudo -n)
		if ! "${as_root[@]}" unshare --mount --pid --fork true 2>/dev/null; then
			echo "check: the suites versions and packages are left out: nothing may have file systems of its own here (unshare)"
			mapfile -t ALL_SUITES < <(printf '%s\n' "${FULL_SUITES[@]}" | grep -vxE 'versions|packages')
		fi
		;;
	quick) ALL_SUITES=("${QUICK_SUITES[@]}") ;;
	*)
		echo "usage: $0 [full]" >&2
		exit 2
		;;
esac
if [[ -n ${WITHOUT:-} ]]; then
	mapfile -t ALL_SUITES < <(printf '%s\n' "${ALL_SUITES[@]}" | grep -vxE "${WITHOUT// /|}")
fi
limit=${HGJ_TIME_LIMIT:-0}
silence=${HGJ_SILENCE:-3600}
passed=0
failed=0
what_failed=()

# What failed stands last, in few words: who has only the end of the output sees it.
finish()
{
	echo
	((${#what_failed[@]} == 0)) || printf 'failed: %s\n' "${what_failed[@]}"
	echo "$passed passed, $failed failed"
	if ((failed > 0 || passed == 0)); then
		exit 1
	fi
	exit 0
}

read -r -a suites <<<"${SUITES:-}"
((${#suites[@]})) || suites=("${ALL_SUITES[@]}")
for name in "${suites[@]}"; do
	if [[ " ${FULL_SUITES[*]} ${MORE_SUITES[*]} " != *" $name "* ]]; then
		echo "check: there is no suite $name; there are: ${FULL_SUITES[*]} ${MORE_SUITES[*]}" >&2
		failed=1
		finish
	fi
done

rm -rf "$out"
mkdir -p "$out"

# What runs now, by process: each in a process group of its own, so that what it started
# ends with it; Ctrl-C comes through the trap.
declare -A running=() begun=()
stop_running()
{
	local pid
	for pid in "${!running[@]}"; do
		kill -TERM "$pid" 2>/dev/null || true
	done
	wait
}
hgj_at_exit stop_running

# launch NAME COMMAND ...
launch()
{
	local name=$1 left=0
	shift
	if ((limit > 0)); then
		left=$((limit - SECONDS))
		((left > 0)) || left=1
	fi
	"$BASH" test/lib/limited.sh "$left" "$silence" "$out/$name.log" "$@" &
	running[$!]=$name
	begun[$name]=$SECONDS
}

# Waits until one of them ends, and sets ended and rc.
await()
{
	local pid
	rc=0
	wait -n -p pid "${!running[@]}" || rc=$?
	ended=${running[$pid]}
	unset "running[$pid]"
}

step()
{
	local name=$1
	shift
	launch "$name" "$@"
	await
	if ((rc != 0)); then
		tail -n 60 "$out/$name.log"
		echo "check: $name failed: see build/check/$name.log"
		failed=1
		finish
	fi
	printf '%-14s done in %d s\n' "$name" $((SECONDS - begun[$name]))
}

# What a suite that has ended comes to.
tell()
{
	local suite=$1 rc=$2 good ok bad note='' log=$out/$1.log part
	for part in "$out/$suite".part.*; do
		[[ -e $part ]] || continue
		count_part "$part"
		report "$ok" "$bad"
	done
	read -r good bad < <(awk '{p += $1; f += $2} END {print p + 0, f + 0}' "$out/$suite.count")
	if ((rc == 124)); then
		bad=$((bad + 1))
		note=" (stopped, which is one of the failures)"
	elif ((rc != 0 && bad == 0)); then
		bad=1
		note=" (broke off: status $rc)"
	elif ((good + bad == 0)); then
		bad=1
		note=" (no test ran)"
	fi
	passed=$((passed + good))
	failed=$((failed + bad))
	printf '%-14s %d passed, %d failed, %d s%s\n' "$suite" "$good" "$bad" $((SECONDS - begun[$suite])) "$note"
	((bad > 0)) || return 0
	local pattern='^failed: |^ *not ok|^FAILED|\.\.\. (FAILED|failed)|^check: |^TRAP'
	mapfile -t -O ${#what_failed[@]} what_failed < <(grep -E "$pattern" "$log" | cut -c1-120 | head -n 10 | sed "s/^/$suite: /")
	echo "---- from build/check/$suite.log"
	grep -nE "$pattern|^#   Failed" "$log" | cut -c1-300 | head -n 40 || true
	echo "---- its end"
	tail -n 60 "$log" | cut -c1-300
	echo "----"
}

# Two that install into the same PostgreSQL do not run at the same time.
may_start()
{
	[[ $1 != sqlsmith && $1 != cassert ]] || [[ " ${running[*]} " != *" cassert "* && " ${running[*]} " != *" sqlsmith "* ]]
}

# The next suite that may start now: sets next, or leaves it empty.
pick()
{
	local i
	next=
	for i in "${!suites[@]}"; do
		if may_start "${suites[i]}"; then
			next=${suites[i]}
			unset "suites[i]"
			return
		fi
	done
}

step setup bash test/setup.sh
config=$(hgj_pg_config)
export PG_CONFIG=$config
if [[ $size == full && -z ${SUITES:-} && " ${WITHOUT:-} " != *" timescaledb "* ]]; then
	if [[ -e $("$config" --pkglibdir)/timescaledb.so ]]; then
		suites+=(timescaledb)
	else
		echo "check: the suite timescaledb is left out: there is no TimescaleDB for this PostgreSQL (Debian has it from 13 on)"
	fi
fi
HGJ_JOBS=$(hgj_jobs)
choose_archs
step build make -j"$HGJ_JOBS" all WERROR=1 "${cuda[@]}"
as_root=()
((EUID == 0)) || as_root=(sudo -n)
step install "${as_root[@]}" make install WERROR=1 PG_CONFIG="$config" "${cuda[@]}"
# Several suites use it, and would build it at the same time.
step fake make -s -j"$HGJ_JOBS" -C test/fake

at_once=${HGJ_SUITES_AT_ONCE:-$((HGJ_JOBS < 4 ? HGJ_JOBS : 4))}
while ((${#suites[@]} + ${#running[@]})); do
	pick
	if [[ -n $next && ${#running[@]} -lt $at_once ]]; then
		: >"$out/$next.count"
		launch "$next" bash test/check.sh --suite "$next" "$size"
	else
		[[ -z $next ]] || suites=("$next" "${suites[@]}")
		await
		tell "$ended" "$rc"
	fi
done
finish
