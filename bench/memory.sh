#!/usr/bin/env bash
#
# make bench-memory: the private memory of a backend (RssAnon above its idle
# level) and its processor time, for joins whose build sides are uniform, Zipf or
# one key, over a sweep of work_mem; PostgreSQL's own join beside it.
#
#   ROWS="1M 10M"          rows of the build side; 50M for the plain joins only
#                          (text, wide rows, groups ... up to 10M)
#   WORK_MEM="4 16 64 256 1024"          MB; "4 8 16 ... 1024" is where steps show
#   MULTIPLIER="2"         hash_mem_multiplier
#   CASES="one zipf/rows two_workers"    kinds of build sides, KIND/CASE, or cases
#   STOCK=no               leave PostgreSQL's own join out: no ratio, no answers.  It has no
#                          bound: 50M rows of zipf at 4 MB took it 21 GB and four million files
#
# "limit" is work_mem x hash_mem_multiplier for each join and each HashGraphAgg of
# the plan, as PostgreSQL counts it; of parallel plans, the process that takes
# most is shown.  Passing it by more than 16 MB, a wrong answer, and a step of
# more than 1.6 in processor time between two work_mem that differ by a factor of
# 2 make the exit status non-zero.  The table stands in build/bench/memory, too.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=test/lib/server.sh
. test/lib/server.sh
# shellcheck source=bench/server.sh
. bench/server.sh

bench_server 16 1024
status=0
PSQL=$HGJ_BIN/psql perl bench/memory.pl | tee build/bench/memory || status=1
hgj_server_stop
exit "$status"
