#!/usr/bin/env bash
#
# SQL through the CUDA engine, on the GPU host, where ../shared/gpu-host/setup.sh
# has made a server (PGBIN, PGX, PGSU are set) and this tree is installed:
#
#   test/gpu/sql.sh regress [FILE ...]
#                                pg_regress with hashgraph_join.engine = cuda: only lines that
#                                name the engine and its memory may differ
#   test/gpu/sql.sh random [ARGUMENT ...]
#                                test/random/run.pl --engine cuda: the GPU is required
#   test/gpu/sql.sh faults LIBRARY
#                                a GPU that faults, hangs, has no memory, or is not there, with a
#                                library made by "make -C cuda CUDA_FAULTS=1"
#   test/gpu/sql.sh pipeline_faults LIBRARY
#                                the same in every call of a pipeline
#   test/gpu/sql.sh process LIBRARY
#                                the GPU process, with the library of faults: kernels that take long, or
#                                for ever, cursors that are idle, PostgreSQL's memory, and an immediate stop; from
#                                a server as for kept, which is restarted, and back as it was in the end
#   test/gpu/sql.sh long         much work for one kernel is no hang, and can be cancelled; build
#                                sides that device_memory_limit does not hold
#   test/gpu/sql.sh kept [SECONDS]
#                                the stress of test/t/020_kept_columns.pl (60 seconds), with all that
#                                can be on the GPU: the server preloads the library, with gpu_server
#                                and column_memory; HGJ_LOG is its log, if that is not /pg/log
#   test/gpu/sql.sh chosen       millions of rows that a device chooses from kept columns come back, in
#                                its order, from a server as for kept
#   test/gpu/sql.sh bench        Q1, Q2 and COPY over fact and dim, and stock beside them
#   test/gpu/sql.sh costs        joins of several sizes on the CPU and the GPU, their times and costs
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=test/lib/device_output.sh
. test/lib/device_output.sh
# shellcheck source=test/lib/same_output.sh
. test/lib/same_output.sh
q="$PGX $PGBIN/psql -X -q"

# One group of files, in a database of its own: regress_group NUMBER FILE ...
regress_group()
{
	local dir=/pg/regress/$1 name=regress_hgj_$1
	shift
	mkdir -p "$dir" && chown postgres "$dir"
	$PGSU PGOPTIONS="-c hashgraph_join.engine=cuda -c hgj_test.device=yes ${HGJ_PGOPTIONS:-}" "$PGBIN/../lib/pgxs/src/test/regress/pg_regress" \
		--inputdir="$PWD" --outputdir="$dir" --bindir="$PGBIN" --host=/pg --user=postgres \
		--dbname="$name" --load-extension=hashgraph_join setup "$@" 2>&1 | grep '^test '
}

# HGJ_GROUPS groups of files at a time; none of them looks at what another one makes.
regress()
{
	local files file dir=/pg/regress ok=0 bad=0 groups=${HGJ_GROUPS:-6} i f
	read -ra files <<<"${*:-$(cd sql && ls *.sql | grep -v -- '--' | sed 's/\.sql$//' | grep -vx setup | paste -sd' ')}"
	rm -rf "$dir" && mkdir -p "$dir" && chown postgres "$dir" && chmod -R a+rX . && chmod a+rx "$PWD"
	# Every worker opens the GPU: HGJ_PGOPTIONS='-c max_parallel_workers=0' saves minutes.
	for ((i = 0; i < groups && i < ${#files[@]}; i++)); do
		local these=()
		for ((f = i; f < ${#files[@]}; f += groups)); do these+=("${files[f]}"); done
		regress_group "$i" "${these[@]}" &
	done
	wait
	for ((f = 0; f < ${#files[@]}; f++)); do
		file=${files[f]}
		# What names an engine, its memory, or its choices is its own affair.
		if same_output "$file" "$dir/$((f % groups))" device_output "$file"; then
			ok=$((ok + 1))
		else
			bad=$((bad + 1))
		fi
	done
	# One that ran on the CPU has tested nothing.
	if grep -h 'Fallback: .*cpu engine' $dir/*/results/*.out | sort | uniq -c | grep .; then
		bad=$((bad + 1))
	fi
	echo "# $(cat $dir/*/results/*.out | grep -c 'Engine: cuda') times Engine: cuda"
	echo "$ok passed, $bad failed"
}

random()
{
	PATH="$PGBIN:$PATH" $PGX perl test/random/run.pl --engine cuda "$@" 2>&1 | tail -n "${HGJ_RANDOM_LINES:-25}"
}

ok=0
bad=0
verdict()
{
	if [[ $2 == ok ]]; then
		ok=$((ok + 1))
		echo "ok - $1"
	else
		bad=$((bad + 1))
		echo "not ok - $1: ${2:0:600}"
	fi
}

# Ok if the output matches an extended regular expression.
matches()
{
	if grep -qzE "$3" <<<"$2"; then verdict "$1" ok; else verdict "$1" "$2"; fi
}

faults()
{
	local lib=$1 file=/pg/data/hgj_cuda_faults begin healthy sum answer answer_re out begun fault neighbour
	cp "$lib" /pg/faults.so && chmod a+r /pg/faults.so
	$q -c "create extension if not exists hashgraph_join; drop table if exists ff, dd" \
		-c "create table ff as select i % 300000 as k, i as v from generate_series(1, 3000000) i" \
		-c "create table dd as select i as k from generate_series(1, 200000) i" -c "analyze ff, dd"
	healthy="load 'hashgraph_join'; set hashgraph_join.force = on; set max_parallel_workers_per_gather = 0; set hashgraph_join.engine = cuda; set hashgraph_join.aggregate = off;"
	begin="$healthy set hashgraph_join.cuda_library = '/pg/faults.so';"
	sum="select count(*), sum(v) from ff join dd using (k);"
	answer=$($q -At -c "$sum")
	answer_re=${answer//|/.} # a regular expression
	rm -f $file
	# a neighbour, who is to notice nothing: it has the library without faults
	{ for _ in $(seq 400); do echo "$sum"; echo '\! sleep 0.05'; done; } >/pg/neighbour.sql
	($q -At -c "$healthy" -f /pg/neighbour.sql >/pg/neighbour.out 2>&1) &
	neighbour=$!
	sleep 2
	for fault in "append 3 trap" "build 1 trap" "probe_begin 2 trap" "probe_next 1 trap" "probe_next 2 trap" "build 1 memory" "probe_next 1 memory" "probe_next 1 hang"; do
		echo "$fault" >$file
		begun=$(date +%s%N)
		out=$($q -At -c "$begin set hashgraph_join.device_timeout = '500ms'" -c "$sum" -c "explain (analyze, costs off) $sum" \
			-c "select state, detail from hashgraph_join_devices()" 2>&1)
		echo "# $fault: $((($(date +%s%N) - begun) / 1000000)) ms with the end of the session"
		case $fault in
			*memory) matches "$fault: the answer, and the reason" "$out" "^$answer_re.*Fallback: cpu engine .not enough device memory" ;;
			*) matches "$fault: the answer, and the device is off" "$out" "^$answer_re.*Fallback: cpu engine .the device has failed in this session.*off.the device has failed" ;;
		esac
		[[ $fault == *hang ]] && echo "$out" | tail -n 2
		rm -f $file
		matches "$fault: the next session" "$($q -At -c "$begin" -c "explain (analyze, costs off) $sum" 2>&1)" "Engine: cuda"
	done
	for fault in "append 3 trap" "build 1 trap"; do
		echo "$fault" >$file
		matches "$fault, below a pipeline: the answer" "$($q -At -c "$begin set hashgraph_join.aggregate = on" -c "$sum" -c "$sum" 2>&1)" "^$answer_re.$answer_re"
	done
	echo "probe_next 1 hang" >$file
	begun=$(date +%s%N)
	out=$($q -At -c "$begin set hashgraph_join.device_timeout = '1s'; set statement_timeout = '300ms'" -c "$sum" -c "reset statement_timeout" -c "$sum" 2>&1)
	echo "# cancelled: $((($(date +%s%N) - begun) / 1000000)) ms"
	matches "a hanging query can be cancelled, and the session goes on" "$out" "canceling statement due to statement timeout.*$answer_re"
	rm -f $file
	kill $neighbour 2>/dev/null
	wait $neighbour
	matches "the neighbour has its answers ($(grep -cx "$answer" /pg/neighbour.out) of them)" "$(sort -u /pg/neighbour.out | tr '\n' ' ')" "^$answer_re .?$"
	out=$($q -At -c "$begin" -c "$sum" -c "select state, tables, memory_free > 0 from hashgraph_join_devices()" -c "begin" \
		-c "declare c cursor for select * from ff join dd using (k)" -c "fetch 1 from c" -c "select hashgraph_join_release()" -c "rollback" \
		-c "select hashgraph_join_release()" -c "select state from hashgraph_join_devices()" -c "$sum" -c "select state, tables from hashgraph_join_devices()" 2>&1)
	matches "release: refused while a cursor is open, then done, then opened again" "$out" \
		"^$answer_re.open.0.t.*cannot give the GPU back while 1 table is on it.*t.available.$answer_re.open.0"
	out=$($q -At -c "$begin set max_parallel_workers_per_gather = 2; set parallel_setup_cost = 0; set parallel_tuple_cost = 0; set min_parallel_table_scan_size = 0" \
		-c "$sum" -c "explain (analyze, costs off) $sum" 2>&1)
	matches "parallel workers open contexts of their own" "$out" "^$answer_re.*Workers Built: 2.*Engine: cuda"
	$q -At -c "$begin" -c "select * from hashgraph_join_devices()" -c "$sum" -c "select * from hashgraph_join_devices()" -c "explain (analyze, costs off) $sum"
	CUDA_VISIBLE_DEVICES='' $PGSU CUDA_VISIBLE_DEVICES= "$PGBIN/pg_ctl" -D /pg/data -l /pg/log -w -m fast restart >/dev/null
	out=$($q -At -c "$begin" -c "$sum" -c "explain (analyze, costs off) $sum" -c "select state, detail from hashgraph_join_devices()" 2>&1)
	matches "CUDA_VISIBLE_DEVICES= empty" "$out" "^$answer_re.*Engine: cpu.*Fallback: cpu engine .there is no CUDA device.*off.there is no CUDA device"
	$PGSU "$PGBIN/pg_ctl" -D /pg/data -l /pg/log -w -m fast restart >/dev/null
	matches "nothing in the server's log" "$(grep -cE 'PANIC|TRAP|was terminated by signal' /pg/log)" "^0"
	echo "$ok passed, $bad failed"
}

pipeline_faults()
{
	local lib=$1 file=/pg/data/hgj_cuda_faults begin sum answer out call what begun
	cp "$lib" /pg/faults.so && chmod a+r /pg/faults.so
	$q -c "create extension if not exists hashgraph_join; drop table if exists pf, pd" \
		-c "create table pf as select i % 300000 as k, i as v from generate_series(1, 3000000) i" \
		-c "create table pd as select i as k, i % 7 as g, i % 3 as h from generate_series(1, 200000) i" -c "analyze pf, pd"
	begin="load 'hashgraph_join'; set hashgraph_join.force = on; set max_parallel_workers_per_gather = 0; set hashgraph_join.engine = cuda; set hashgraph_join.cuda_library = '/pg/faults.so'; set hashgraph_join.device_timeout = '500ms';"
	sum="select g, count(*), sum(v), sum(h) from pf join pd using (k) group by g order by g;"
	rm -f $file
	answer=$($q -At -c "$sum" | paste -sd' ')
	matches "without a fault: a pipeline" "$($q -At -c "$begin" -c "explain (analyze, costs off) $sum" 2>&1)" "Device Pipeline: yes"
	for call in "pipe_create 1" "pipe_payload 2" "pipe_start 1" "pipe_stage 1" "pipe_stage 5" "pipe_push 1" "pipe_push 4" "pipe_finish 1" "pipe_groups 1"; do
		for what in trap memory hang; do
			# a hung kernel takes eight seconds at the end of its session
			[[ $what == hang && ! $call =~ ^(pipe_start 1|pipe_push 4|pipe_finish 1)$ ]] && continue
			echo "$call $what" >$file
			begun=$(date +%s%N)
			out=$($q -At -c "$begin" -c "$sum" -c "explain (analyze, costs off) $sum" 2>&1 | paste -sd' ')
			echo "# $call $what: $((($(date +%s%N) - begun) / 1000000)) ms with the end of the session"
			# what a push meets is memory of its own, and nobody waits for it
			if [[ $call == pipe_push* && $what == memory ]]; then
				matches "$call $what: the answer" "$out" "^$answer .*Device Pipeline: no .not enough device memory"
			elif [[ $what == memory ]]; then
				matches "$call $what: the answer, on the host" "$out" "^$answer .*Device Pipeline: no .not enough device memory.*Engine: cuda"
			else
				matches "$call $what: the answer, without the device" "$out" "^$answer .*Device Pipeline: no.*Engine: cpu.*Fallback: cpu engine .the device has failed in this session"
			fi
		done
	done
	for call in "pipe_start 1" "pipe_push 2"; do
		echo "$call hang" >$file
		begun=$(date +%s%N)
		out=$($q -At -c "$begin set hashgraph_join.device_timeout = '1s'; set statement_timeout = '300ms'" -c "$sum" -c '\! rm -f /pg/data/hgj_cuda_faults' \
			-c "reset statement_timeout" -c "$sum" 2>&1 | paste -sd' ')
		echo "# $call hang, cancelled: $((($(date +%s%N) - begun) / 1000000)) ms"
		matches "$call hang: can be cancelled, and the session goes on" "$out" "canceling statement due to statement timeout.*$answer"
	done
	rm -f $file
	# rows that are returned: each fetch has all of a push, so that no fault comes too late
	sum="select count(*), sum(v), sum(a.g), sum(b.h) from pf join pd a using (k) left join pd b on pf.v = b.k"
	begin="$begin set hashgraph_join.aggregate = off;"
	answer=$($q -At -c "$sum")
	answer=${answer//|/.}
	matches "returned rows, without a fault: a pipeline" "$($q -At -c "$begin" -c "$sum" -c "explain (analyze, costs off) $sum" 2>&1 | paste -sd' ')" "^$answer .*Device Pipeline: yes"
	for call in "pipe_fetch 1" "pipe_fetch 4" "pipe_push 2"; do
		for what in trap memory hang; do
			[[ $what == hang && $call != "pipe_fetch 4" ]] && continue
			echo "$call $what" >$file
			out=$($q -At -c "$begin" -c "$sum" -c "explain (analyze, costs off) $sum" 2>&1 | paste -sd' ')
			if [[ $what == memory ]]; then
				matches "returned rows, $call $what: the answer, on the host" "$out" "^$answer .*Device Pipeline: no .*memory"
			else
				matches "returned rows, $call $what: the answer, without the device" "$out" "^$answer .*Engine: cpu.*Fallback: cpu engine .the device has failed in this session"
			fi
		done
	done
	rm -f $file
	matches "nothing in the server's log" "$(grep -cE 'PANIC|TRAP|was terminated by signal' /pg/log)" "^0"
	echo "$ok passed, $bad failed"
}

# The GPU process, as hashgraph_join_devices() names it, once there is one.
gpu_process()
{
	local i pid
	for ((i = 0; i < 300; i++)); do
		pid=$($q -At -c "select substring(detail from '^process ([0-9]+) has it open') from hashgraph_join_devices()" 2>/dev/null)
		[[ -z $pid ]] || break
		sleep 0.1
	done
	echo "$pid"
}

# Files that a process maps to share them with others; of those, what it can write to.
shared_files()
{
	awk '$2 ~ /^.w.s/ && $5 != 0 { print $4 ":" $5 }' "/proc/$1/maps" | sort -u
}

# A server whose GPU process has the library, with another setting if there is one.
restart_with()
{
	$q -c "alter system set hashgraph_join.cuda_library = '/pg/faults.so'" -c "alter system set hashgraph_join.gpu_server_timeout = '$1'"
	$PGSU ${2:+"$2"} "$PGBIN/pg_ctl" -D /pg/data -l /pg/log -w -m fast restart >/dev/null
}

# Nothing of PostgreSQL's can be written to but the channels, and kept columns are read all the same.
process_memory()
{
	local how=$1 pid postmaster sum="select d.g, count(*), sum(f.v) from xf f join xd d using (k) group by 1 order by 1" right
	pid=$(gpu_process)
	postmaster=$(head -n 1 /pg/data/postmaster.pid)
	matches "$how: of the postmaster's shared memory it can write to one mapping" "$(comm -12 <(shared_files "$pid") <(shared_files "$postmaster") | wc -l)" "^1"
	matches "$how: and has no System V segment" "$(grep -c SYSV "/proc/$pid/maps")" "^0"
	$q -At -c "select hashgraph_join_load('xf'), hashgraph_join_load('xd')" >/dev/null
	right=$($q -At -c "set hashgraph_join.enabled = off" -c "$sum" | paste -sd' ')
	matches "$how: kept columns: the answer" "$($q -At -c "$begin set hashgraph_join.aggregate = on" -c "$sum" -c "explain (analyze, costs off) $sum" 2>&1 | paste -sd' ')" "^${right//|/.} .*Device Columns: 100%"
}

# Ok if the statements of $2, in a session of their own, end while a kernel of another one runs for
# eight seconds; that one has `set` before it.
beside_a_hang()
{
	local name=$1 set=$2 expected=$3 pid long
	pid=$(gpu_process)
	echo "build 1 hang" >$file
	($q -At -c "$begin $set" -c "$sum" -c "explain (analyze, costs off) $sum" >/pg/hang.out 2>&1) &
	long=$!
	sleep 1
	rm -f $file
	{
		echo "begin; declare c cursor for select v from xf join xd using (k); fetch 1 from c;"
		for _ in $(seq 40); do echo "fetch 1 from c; $sum; \\! sleep 0.2"; done
		echo "$sum;"
	} >/pg/beside.sql
	matches "$name: others go on" "$($q -At -c "$begin set hashgraph_join.require = cuda" -f /pg/beside.sql 2>&1 | tail -n 1)" "^$answer_re"
	wait $long
	matches "$name: the answer" "$(cat /pg/hang.out)" "$expected"
	matches "$name: in the same process" "$(gpu_process)" "^$pid"
}

process()
{
	local lib=$1 file=/pg/data/hgj_cuda_faults begin sum answer answer_re pid end i
	cp "$lib" /pg/faults.so && chmod a+r /pg/faults.so
	rm -f $file
	$q -c "set client_min_messages = warning" -c "create extension if not exists hashgraph_join; drop table if exists xf, xd" -c "set synchronous_commit = on" \
		-c "create table xf as select i % 300000 as k, i as v from generate_series(1, 3000000) i" \
		-c "create table xd as select i as k, i % 7 as g from generate_series(1, 200000) i"
	$q -c "vacuum (analyze) xf" -c "vacuum (analyze) xd"
	begin="load 'hashgraph_join'; set hashgraph_join.force = on; set max_parallel_workers_per_gather = 0; set hashgraph_join.engine = cuda; set hashgraph_join.aggregate = off;"
	sum="select count(*), sum(v) from xf join xd using (k)"
	answer=$($q -At -c "set hashgraph_join.enabled = off" -c "$sum")
	answer_re=${answer//|/.}
	end=$(stat -c %s /pg/log)

	restart_with 1min
	process_memory "read only"
	beside_a_hang "device_timeout of a session" "set hashgraph_join.device_timeout = '500ms';" "^$answer_re.*Fallback: cpu engine .the device failed: "
	for ((i = 0; i < 20; i++)); do
		($q -At -c "$begin set hashgraph_join.require = cuda" -c "begin" -c "declare c cursor for select v from xf join xd using (k)" -c "fetch 1 from c" -c '\! sleep 15' -c "commit" >/dev/null 2>&1) &
	done
	sleep 7
	matches "20 cursors that are idle" "$($q -At -c "select sessions from hashgraph_join_devices()")" "^20"
	matches "... keep nobody from the GPU" "$($q -At -c "$begin set hashgraph_join.require = cuda" -c '\timing on' -c "$sum" 2>&1)" "^$answer_re"
	wait
	restart_with 3s HGJ_REGISTER_WRITABLE=1
	process_memory "registered while it can be written to"
	beside_a_hang "a kernel that takes longer than the process's limit, while others end" "set hashgraph_join.device_timeout = 0;" "^$answer_re.*Fallback: cpu engine .the device failed: "
	pid=$(gpu_process)
	echo "build 1 hang" >$file
	matches "a device that answers nobody: the answer" "$($q -At -c "$begin set hashgraph_join.device_timeout = '1h'" -c "$sum" 2>&1)" "^$answer_re"
	rm -f $file
	for ((i = 0; i < 300; i++)); do [[ $(gpu_process) == "$pid" ]] || break; sleep 0.1; done
	matches "... and another process" "$([[ $(gpu_process) != "$pid" ]] && echo yes)" "^yes"
	matches "... as the log says" "$(tail -c +$((end + 1)) /pg/log)" "It had lost its device: the device has not answered for 3000 ms"
	echo "build 1 hang" >$file
	($q -At -c "$begin" -c "$sum" >/dev/null 2>&1) &
	sleep 1
	rm -f $file
	$PGSU "$PGBIN/pg_ctl" -D /pg/data -w -m immediate stop >/dev/null
	matches "immediately stopped in the middle of a kernel, the server starts again" "$($PGSU "$PGBIN/pg_ctl" -D /pg/data -l /pg/log -w start 2>&1)" "server started"
	wait
	gpu_process >/dev/null
	matches "... with its GPU" "$($q -At -c "$begin set hashgraph_join.require = cuda" -c "$sum" 2>&1)" "^$answer_re"
	$q -c "alter system reset hashgraph_join.cuda_library" -c "alter system reset hashgraph_join.gpu_server_timeout" -c "drop table xf, xd"
	$PGSU "$PGBIN/pg_ctl" -D /pg/data -l /pg/log -w -m fast restart >/dev/null
	echo "$ok passed, $bad failed"
}

long()
{
	local begin sum out begun answer type key
	$q -c "create extension if not exists hashgraph_join; drop table if exists lo, lm, one, big, many" \
		-c "create table lo as select i % 100 as k, i % 100 as j from generate_series(1, 200000) i" \
		-c "create table lm as select i % 100 as k, i as v from generate_series(1, 30000) i" \
		-c "create table one as select 1 as k, i as v from generate_series(1, 1000000) i" \
		-c "create table big as select (i * 7919::bigint) % 4000037 as k, i as v, 'value ' || i as t from generate_series(1, 3000000) i" \
		-c "create table many as select (i * 104729::bigint) % 4000037 as k, i as w from generate_series(1, 6000000) i" -c "vacuum analyze lo, lm, one, big, many"
	begin="load 'hashgraph_join'; set hashgraph_join.force = on; set max_parallel_workers_per_gather = 0; set hashgraph_join.engine = cuda; set hashgraph_join.require = cuda; set hashgraph_join.device_timeout = '500ms';"
	sum="select count(*) from lo join lm a on lo.k = a.k join lm b on lo.j = b.k"
	begun=$(date +%s%N)
	out=$($q -At -c "$begin" -c "set join_collapse_limit = 1" -c "$sum" -c "explain (analyze, costs off) $sum" 2>&1)
	echo "# 18,000,000,000 rows counted twice: $((($(date +%s%N) - begun) / 1000000)) ms"
	matches "much work in a pipeline's kernel is no hang" "$out" "^18000000000.*Device Pipeline: yes"
	for sum in "select count(*) from one a join one b using (k)" "select count(*) from one a join one b on a.k = b.k and a.v + b.v < 0"; do
		begun=$(date +%s%N)
		out=$($q -At -c "$begin set statement_timeout = '2s'" -c '\timing on' -c "$sum" -c '\timing off' -c "reset statement_timeout" -c "select count(*) from one a join lm b on a.v = b.v" -c "explain (analyze, costs off) select count(*) from one a join lm b on a.v = b.v" 2>&1)
		echo "# $(grep Time <<<"$out")"
		matches "a million rows of one key on both sides: cancelled at once" "$out" "canceling statement due to statement timeout.*Time: (19|20)[0-9][0-9][.].*30000.*Engine: cuda"
	done
	sum="select count(*), sum(w), sum(hashtext(t)::bigint), sum(v)"
	for key in "many join big using (k)" "many left join big using (k)" "many right join big using (k)" "many full join big using (k)" "many join big on many.k = big.k and w % 3 <> v % 3"; do
		answer=$($q -At -c "set work_mem = '1GB'" -c "$sum from $key")
		for type in "set work_mem = '1GB'" "set work_mem = '32MB'"; do
			out=$($q -At -c "$begin set hashgraph_join.device_memory_limit = '24MB'; $type" -c '\timing on' -c "$sum from $key" -c '\timing off' -c "explain (analyze, costs off) $sum from $key" 2>&1)
			echo "# $key, $type: $(grep -E 'Time|Partitions|Spilled|Device Memory' <<<"$out" | paste -sd' ')"
			matches "$key, $type, 24 MB of device memory: the answer" "$out" "^${answer//|/.}.*Engine: cuda.*Partitions: .*Fallback: partitions .the build side does not fit into"
		done
		echo "# $key, cpu: $($q -At -c "$begin set hashgraph_join.require = join; set hashgraph_join.engine = cpu; set work_mem = '1GB'" -c '\timing on' -c "$sum from $key" 2>&1 | grep Time)"
	done
	echo "$ok passed, $bad failed"
}

# Whether each number of a line is larger than that of another line.
grew()
{
	local before after i
	IFS='|' read -ra before <<<"$1"
	IFS='|' read -ra after <<<"$2"
	((${#before[@]} > 0 && ${#before[@]} == ${#after[@]})) || return 1
	for i in "${!before[@]}"; do
		[[ ${before[i]} =~ ^[0-9]+$ && ${after[i]} =~ ^[0-9]+$ ]] && ((after[i] > before[i])) || return 1
	done
}

# Sums of what the host takes for rows whose numbers a device has returned: most rows of a table, those
# of some pages only, and few of each page.
chosen()
{
	local begin sql right answer round
	$q -c "set client_min_messages = warning" -c "create extension if not exists hashgraph_join; drop table if exists cf, cd, ce" -c "set synchronous_commit = on" \
		-c "create table cf as select i % 300000 as k, i as v, i * 2 as w, i % 11 as s from generate_series(1, 3000000) i" \
		-c "create table cd as select i as k, i % 7 as g from generate_series(1, 200000) i" \
		-c "create table ce as select i as v, i % 3 as h from generate_series(1, 3000000) i where i % 60000 < 20000 or i % 9 = 0 and i % 60000 < 40000"
	$q -c "vacuum (analyze) cf" -c "vacuum (analyze) cd" -c "vacuum (analyze) ce"
	matches "their columns are loaded" "$($q -At -c "select hashgraph_join_load('cf') > 0" 2>&1)" "^t"
	begin="load 'hashgraph_join'; set hashgraph_join.force = on; set max_parallel_workers_per_gather = 0; set hashgraph_join.engine = cuda; set hashgraph_join.aggregate = off; set work_mem = '256MB';"
	for sql in "cf join cd using (k)" "cf join cd using (k) left join ce using (v)" "cf join ce using (v)" "cf left join ce using (v)" "cf left join ce using (v) where s < 9"; do
		sql="select count(*), sum(v), sum(w), sum(s), sum(hashint4(w)::bigint) from $sql"
		right=$($q -At -c "set hashgraph_join.enabled = off" -c "$sql" 2>&1)
		for round in 1 2 3 4; do
			answer=$($q -At -c "$begin" -c "$sql" 2>&1)
			verdict "$sql, $round" "$([[ $answer == "$right" ]] && echo ok || echo "$answer instead of $right")"
		done
		matches "... the rows are chosen on the device" "$($q -At -c "$begin" -c "explain (analyze, costs off) $sql" 2>&1)" "Outer Source: columns .100% of [0-9]+ pages, on the device"
	done
	echo "$ok passed, $bad failed"
}

kept()
{
	local seconds=${1:-60} db=hgj_kept log=${HGJ_LOG:-/pg/log} clients=12 dir end files process join counts before after found pid rc looks=0 pipelines=0
	# compare() turns our nodes on and off itself; where they run is the session's affair.  VACUUM
	# finds no page all-visible whose rows' commits are not on disk yet.
	local -x PGOPTIONS="-c hashgraph_join.engine=cuda -c hashgraph_join.device_side_rows=0 -c synchronous_commit=on ${HGJ_PGOPTIONS:-}"
	local sql="$q -At -d $db"
	dir=$(mktemp -d)
	end=$(stat -c %s "$log")
	mapfile -t files < <(perl test/lib/KeptStress.pm "$dir")
	$q -d postgres -c "set client_min_messages = warning" -c "drop database if exists $db with (force)" -c "create database $db"
	verdict "the tables" "$($sql -v ON_ERROR_STOP=1 -f "$dir/tables.sql" -c "vacuum (analyze) fact" -c "vacuum (analyze) dim" -c "select compare()" 2>&1)"
	matches "their columns are loaded" "$($sql -c "select hashgraph_join_load('fact') > 0, hashgraph_join_load('dim') > 0" 2>&1)" "^t.t"
	process="select state, detail from hashgraph_join_devices()"
	join="set hashgraph_join.force = on; set max_parallel_workers_per_gather = 0; explain (analyze, costs off) select d.g, count(*), sum(f.v) from fact f join dim d using (k) group by 1"
	# What hashgraph_join_devices() has of calls is those of this moment: it is its columns that add up.
	counts="select joins_cuda, aggregates_on_device, (select coalesce(sum(column_hits + column_uploads), 0) from hashgraph_join_devices()) from hashgraph_join_stats() where datname = current_database() and shared"
	found=$($sql -c "$process" 2>&1)
	matches "the GPU is open for all sessions" "$found" "^open.process [0-9]+ has it open"
	before=$($sql -c "$counts" 2>&1)

	$PGX "$PGBIN/pgbench" -n -c "$clients" -j 4 -T "$seconds" --max-tries=1000 "${files[@]}" "$db" >"$dir/out" 2>"$dir/err" &
	pid=$!
	while kill -0 $pid 2>/dev/null; do
		looks=$((looks + 1))
		$sql -c "$join" >"$dir/plan" 2>&1
		! grep -q "Device Pipeline: yes" "$dir/plan" || pipelines=$((pipelines + 1))
		sleep 0.5
	done
	wait $pid
	rc=$?
	echo "# $clients clients: $(sed -nE 's/^number of (transactions actually processed|failed transactions|transactions retried): ([0-9]+).*/\2 \1/p' "$dir/out" | paste -sd,)"
	verdict "pgbench ends well" "$( ((rc == 0)) && grep -qE 'number of transactions actually processed: [1-9]' "$dir/out" && echo ok || { echo "status $rc"; cat "$dir/out" "$dir/err"; })"
	verdict "no answer differs" "$(grep -E 'WRONG|aborted|ERROR' "$dir/err" || echo ok)"
	verdict "nor afterwards" "$($sql -c "select compare()" 2>&1)"

	after=$($sql -c "$counts" 2>&1)
	echo "# joins and aggregations on the GPU, and columns found there or brought: $before before, $after after"
	$sql -c "select '# ' || count || ' times ' || kind || ': ' || reason from hashgraph_join_fallbacks() where datname = current_database() order by count desc"
	verdict "the GPU has worked" "$(grew "$before" "$after" && echo ok || echo "$before, then $after")"
	verdict "in pipelines, meanwhile ($pipelines of $looks)" "$( ((pipelines > 0)) && echo ok || cat "$dir/plan")"
	matches "and afterwards" "$($sql -c "$join" 2>&1)" "Device Pipeline: yes"
	matches "in the same process" "$($sql -c "$process" 2>&1)" "^open.${found#*|}"
	verdict "nothing in the server's log" "$(tail -c +$((end + 1)) "$log" | grep -E "ERROR:  WRONG|TRAP|PANIC|by signal|leak|could not (read|write) block|GPU process of hashgraph_join (ended|is killed)" || echo ok)"
	if ((bad == 0)); then rm -rf "$dir"; else echo "# what pgbench and the last EXPLAIN said: $dir"; fi
	echo "$ok passed, $bad failed"
}

# Wants fact and dim.
costs()
{
	local dim
	$q -c "create table if not exists dim1m as select * from dim where k <= 1000000" -c "create table if not exists dim10k as select * from dim where k <= 10000" \
		-c "create table if not exists fact1m as select * from fact where id <= 1000000" -c "vacuum (freeze, analyze) dim1m, dim10k, fact1m" 2>&1 | grep ERROR
	for pair in "fact dim" "fact dim1m" "fact dim10k" "fact1m dim1m" "fact1m dim10k"; do
		read -r fact dim <<<"$pair"
		sql="select count(*), sum(f.v) from $fact f join $dim d using (k)"
		for engine in "cpu; set hashgraph_join.aggregate = off" "cuda; set hashgraph_join.aggregate = off" cpu cuda auto; do
			echo "$fact $dim $engine: $($q -At -c "load 'hashgraph_join'" -c "set max_parallel_workers_per_gather = 0; set hashgraph_join.engine = $engine" \
				-c '\timing on' -c "$sql" -c "$sql" -c "$sql" -c '\timing off' -c "explain $sql" 2>&1 | grep -E '^Time|HashGraphJoin|Planned|ERROR' | paste -sd' ')"
		done
	done
}

bench()
{
	local q1="select count(*), sum(f.v) from fact f join dim d using (k)"
	local q2="select d.g, count(*), sum(f.v) from fact f join dim d using (k) group by d.g"
	for sql in "$q1" "$q2"; do
		echo "== $sql"
		echo "stock, 15 workers"
		timed "set hashgraph_join.enabled = off; set max_parallel_workers_per_gather = 15; set min_parallel_table_scan_size = 0; set parallel_tuple_cost = 0; set parallel_setup_cost = 0;" "$sql"
		for engine in cpu cuda; do
			echo "hashgraph_join, one process, $engine"
			timed "set max_parallel_workers_per_gather = 0; set hashgraph_join.force = on; set hashgraph_join.engine = $engine;" "$sql"
		done
	done
	copied
	$q -c "load 'hashgraph_join'" -c "set max_parallel_workers_per_gather = 0; set hashgraph_join.force = on; set hashgraph_join.engine = cuda" \
		-c "$q1" -c "explain (analyze, costs off, timing off) $q1"
}

# COPY of the joined rows, by one process each.
copied()
{
	local copy="copy (select f.id, f.v, d.g from fact f join dim d using (k)) to '/dev/null'" engine
	echo "== $copy"
	for engine in "enabled = off" "engine = cpu; set hashgraph_join.force = on" "engine = cuda; set hashgraph_join.force = on"; do
		echo "hashgraph_join.$engine: $($q -At -c "load 'hashgraph_join'" -c "set max_parallel_workers_per_gather = 0; set hashgraph_join.$engine" \
			-c "select count(*) from dim a join dim b using (k) where a.k < 20000" -c '\timing on' -c "$copy" 2>&1 | paste -sd' ')"
	done
}

# Times of four runs in one session, the first one apart; then the answer's checksum.
timed()
{
	$q -At -c "load 'hashgraph_join'" -c "$1" -c '\timing on' -c "select md5(string_agg(x::text, ',' order by x::text)) from ($2) x" \
		-c "select md5(string_agg(x::text, ',' order by x::text)) from ($2) x" \
		-c "select md5(string_agg(x::text, ',' order by x::text)) from ($2) x" \
		-c "select md5(string_agg(x::text, ',' order by x::text)) from ($2) x" 2>&1 | paste -sd' '
}

"$@"
