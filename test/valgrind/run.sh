#!/usr/bin/env bash
#
# Files of sql/ on a server below valgrind's memcheck, or the engine's tests below it.
#
#   test/valgrind/run.sh FILE ...    pg_regress; "setup" runs first.  Hours for all files, a
#                                    minute or ten for one
#   test/valgrind/run.sh --engine    one in HGJ_TEST_SHARE (150) of the engine's tests
#
# A PostgreSQL that tells valgrind of its memory contexts is built once, beside the one with
# assertions (test/cassert/build.sh); valgrind and its headers must be there (Debian: valgrind).
# HGJ_PGOPTIONS reaches the sessions.  What valgrind has found stands in build/valgrind.
#
# The last line is `N passed, N failed`: one test per file (answers), and one for what was found.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=test/lib/server.sh
. test/lib/server.sh
out=$PWD/build/valgrind
memcheck=(valgrind --quiet --error-limit=no --num-callers=25)

if [[ ${1:-} == --engine ]]; then
	make -s -C test/engine build/run_tests
	cd test/engine
	HGJ_TEST_SHARE=${HGJ_TEST_SHARE:-150} exec "${memcheck[@]}" --error-exitcode=9 --leak-check=full \
		--errors-for-leak-kinds=definite ./build/run_tests cpu "${SEED:-$(date +%s)}" .
fi
(($#)) || {
	sed -n '3,8s/^#  *//p' "$0" >&2
	exit 2
}

# The server, as test/cassert/build.sh builds it, with -DUSE_VALGRIND.
source=$(bash test/cassert/build.sh --source)
prefix=${source%/*}/pg-valgrind-${source##*-}
if [[ ! -x $prefix/bin/postgres ]]; then
	echo "valgrind: building PostgreSQL in $prefix"
	work=$(mktemp -d)
	hgj_at_exit "rm -rf '$work'"
	(
		unset MAKELEVEL MAKEFLAGS MFLAGS
		cd "$work"
		CFLAGS="-O1 -g -DUSE_VALGRIND" "$source/configure" --prefix="$prefix" --enable-cassert --enable-debug --with-icu --without-readline
		make -s -j"$(hgj_jobs)" all
		make -s install
	) >"$work.log" 2>&1 || {
		tail -n 20 "$work.log"
		exit 1
	}
	rm -f "$work.log"
fi
hgj_install_copy "$prefix/bin/pg_config" build/valgrind_copy with_llvm=no with_cuda=no >/dev/null 2>&1

dir=$(mktemp -d /tmp/hgj_valgrind.XXXXXX)
hgj_at_exit "rm -rf '$dir'"
mkdir "$dir/logs"
cp test/valgrind/valgrind.supp "$dir/"
((EUID != 0)) || chown -R "$(hgj_server_user)" "$dir"
hgj_as_server "$prefix/bin/initdb" -D "$dir/data" -A trust -U postgres -N --no-locale -E UTF8 >/dev/null
# Few buffers: each is known to valgrind.  The rest as "make check" has it.
hgj_as_server tee -a "$dir/data/postgresql.conf" >/dev/null <<-END
	listen_addresses = ''
	unix_socket_directories = '$dir'
	fsync = off
	autovacuum = off
	shared_buffers = 64MB
END
hgj_as_server "${memcheck[@]}" --trace-children=yes --leak-check=no --suppressions="$source/src/tools/valgrind.supp" \
	--suppressions="$dir/valgrind.supp" --log-file="$dir/logs/%p" "$prefix/bin/postgres" -D "$dir/data" >"$dir/server.log" 2>&1 &
hgj_at_exit "hgj_as_server '$prefix/bin/pg_ctl' -D '$dir/data' -m immediate -w stop >/dev/null 2>&1"
for _ in $(seq 120); do
	"$prefix/bin/psql" -X -h "$dir" -U postgres -c 'select 1' postgres >/dev/null 2>&1 && break
	sleep 1
done

rm -rf "$out"
mkdir -p "$out"
regress=$(dirname "$("$prefix/bin/pg_config" --pgxs)")/../test/regress/pg_regress
PGOPTIONS=${HGJ_PGOPTIONS:-} "$regress" --inputdir="$PWD" --outputdir="$out" --bindir="$prefix/bin" --host="$dir" --user=postgres \
	--dbname=regress_hgj --load-extension=hashgraph_join setup "$@" >"$out/log" 2>&1 || true
hgj_as_server "$prefix/bin/pg_ctl" -D "$dir/data" -m fast -w -t 120 stop >/dev/null || true
cat "$dir"/logs/* >"$out/found" 2>/dev/null || true
passed=$(grep -cE '^test .*\.\.\. ok' "$out/log" || true)
failed=$(grep -cE '^test .*FAILED' "$out/log" || true)
grep -E '^test .*FAILED' "$out/log" | sed 's/^/not ok - /' || true
if [[ -s $out/found ]] || ((passed == 0)); then
	failed=$((failed + 1))
	echo "not ok - memcheck"
	head -n 40 "$out/found"
else
	passed=$((passed + 1))
fi
echo "$passed passed, $failed failed"
((failed == 0))
