#!/usr/bin/env bash
#
# The Debian packages as a stranger meets them: built from this tree, installed by
# apt, tried, and removed again, in a Debian that has nothing yet and is gone then.
#
#   test/packages.sh [RELEASE]     bookworm without a word: Debian 12
#
# The release needs no more than a mirror of Debian (test/versions.sh bare); what is
# tried is the last commit.  The package of the CUDA engine is built where nvcc is found, in
# /usr/local/cuda, which that Debian is lent, and for one architecture (CUDA_ARCHS).  The last
# line is `N passed, N failed`.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [[ ${1:-} != --inside ]]; then
	[[ ! -x /usr/local/cuda/bin/nvcc ]] || export HGJ_LENT=/usr/local/cuda
	exec bash "$here/versions.sh" bare "${1:-bookworm}" bash test/packages.sh --inside
fi

# ---- from here on within that Debian --------------------------------------
[[ ! -e /etc/hostname || ! -d /run/systemd/system ]] || {
	echo "packages: this is no throw-away Debian"
	echo "0 passed, 1 failed"
	exit 1
}
cd "$here/.."
passed=0
failed=0
log=$(mktemp)

# ok NAME COMMAND ...: the command succeeds; what it has said is shown if not.
ok()
{
	local name=$1
	shift
	if "$@" >"$log" 2>&1; then
		echo "ok - $name"
		passed=$((passed + 1))
	else
		echo "not ok - $name"
		tail -n 40 "$log"
		failed=$((failed + 1))
	fi
}

finish()
{
	echo "$passed passed, $failed failed"
	((failed == 0 && passed > 0))
	exit
}

# Succeeds where the command fails with words of that pattern.
fails_with()
{
	local pattern=$1 said
	shift
	said=$("$@" 2>&1) && return 1
	grep -E "$pattern" <<<"$said"
}

apt()
{
	DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends "$@"
}

as_postgres()
{
	runuser -u postgres -- env -C / "$@"
}

# Clusters are started by hand here.
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
ok "tools" eval 'apt update && apt install build-essential debhelper fakeroot postgresql-server-dev-all postgresql'
((failed == 0)) || finish

# ---- build
major=$(pg_config --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
package=postgresql-$major-hashgraph-join
cuda_package=hashgraph-join-cuda
profile=()
if [[ -x /usr/local/cuda/bin/nvcc ]]; then
	profile=(-Ppkg.hashgraph-join.cuda)
	export CUDA_ARCHS=${CUDA_ARCHS:-120}
else
	echo "packages: $cuda_package is left out: there is no nvcc in /usr/local/cuda"
fi
ok "debian/control is that of control.in" eval 'pg_buildext updatecontrol && grep -x "Package: $package" debian/control'
ok "$cuda_package is only made where it is asked for" eval '! dh_listpackages | grep -x "$cuda_package" && DEB_BUILD_PROFILES=pkg.hashgraph-join.cuda dh_listpackages | grep -x "$cuda_package"'
ok "dpkg-buildpackage ${profile[*]}" dpkg-buildpackage -b -us -uc -j2 "${profile[@]}"
deb=$(echo ../"$package"_*_*.deb)
ok "one package per server version" test -e "$deb"
((failed == 0)) || finish
lib=/usr/lib/postgresql/$major/lib/hashgraph_join.so
dpkg -c "$deb" >"$log.files"
for file in "$lib" "/usr/share/postgresql/$major/extension/hashgraph_join.control" \
	"/usr/share/postgresql/$major/extension/hashgraph_join--0.2.sql" "/usr/share/postgresql/$major/extension/hashgraph_join--0.1--0.2.sql"; do
	ok "$package has $file" grep -F ".$file" "$log.files"
done
ok "$package has no CUDA library" eval '! grep cuda "$log.files"'

# ---- what the Dockerfiles copy is enough to build from (there is no docker here; nobody runs
# ---- what is built, so that it is not optimized)
for file in Dockerfile Dockerfile.cuda; do
	stage=$(mktemp -d)
	while read -r -a words; do
		cp -r "${words[@]:0:${#words[@]}-1}" "$stage/${words[-1]}"
	done < <(awk '$1 == "FROM" {build = ($NF == "build")} build && $1 == "COPY" && $2 !~ /^--/ {$1 = ""; print}' "$file")
	find "$stage" -name '*.[od]' -delete
	ok "$file: the image's build" make -C "$stage" -s -j2 install with_cuda=no with_llvm=no COPT=-O0 DESTDIR="$stage/out" \
		PG_CONFIG="/usr/lib/postgresql/$major/bin/pg_config"
	ok "$file: what it copies into the image" test -e "$stage/out$lib"
	rm -rf "$stage"
done

# ---- install, and try as a new user would
ok "apt installs it" apt install "$(realpath "$deb")"
[[ -e /etc/postgresql/$major/main ]] || pg_createcluster "$major" main >"$log" 2>&1
ok "the server starts" pg_ctlcluster "$major" main start
psql=(as_postgres psql -X -q -v ON_ERROR_STOP=1)
ok "CREATE EXTENSION says what is missing" eval '"${psql[@]}" -c "CREATE EXTENSION hashgraph_join" 2>&1 | grep "NOTICE:  new sessions do not load"'
"${psql[@]}" -c "ALTER DATABASE postgres SET session_preload_libraries = 'hashgraph_join'"
"${psql[@]}" -c "CREATE TABLE a AS SELECT i AS k FROM generate_series(1, 50000) i" -c "ANALYZE a"
query="SELECT count(*) FROM a x JOIN a y USING (k)"
ok "a query runs through it" eval '"${psql[@]}" -c "EXPLAIN $query" | grep "Custom Scan (HashGraphJoin)"'
ok "with the right answer" eval '[[ $("${psql[@]}" -Atc "$query") == 50000 ]]'
ok "hashgraph_join_why() agrees" eval '[[ $("${psql[@]}" -Atc "SELECT bool_and(taken) FROM hashgraph_join_why(\$\$$query\$\$)") == t ]]'
ok "the test of the package" bash debian/tests/first-use

# ---- the CUDA engine: where PostgreSQL looks for it, until it is removed (there is no GPU here)
if ((${#profile[@]})); then
	engine=/usr/lib/postgresql/$major/lib/hashgraph_join_cuda.so
	why="SET hashgraph_join.engine = cuda; SELECT reason FROM hashgraph_join_why(\$\$$query\$\$) WHERE reason ~ 'engine not available'"
	missing='engine not available: .*file not found'
	ok "without the library, PostgreSQL says where it has looked" eval '"${psql[@]}" -Atc "$why" | grep -E "$missing" | grep -F "$engine"'
	ok "apt installs $cuda_package" apt install "$(realpath ../"$cuda_package"_*_*.deb)"
	ok "the library is there" test -s "$engine"
	ok "and is the CUDA engine, without a driver" eval '"${psql[@]}" -Atc "$why" | tee "$log.why" | grep "engine not available: " && ! grep -E "$missing" "$log.why"'
	ok "apt removes it" apt remove "$cuda_package"
	ok "its files are gone" eval '[[ ! -e $engine && ! -L $engine && ! -e /usr/lib/hashgraph-join ]]'
fi

# ---- a session that is at work while the package goes and comes
mkfifo /tmp/to_psql
as_postgres psql -X -At </tmp/to_psql >/tmp/from_psql 2>&1 &
session=$!
exec 5>/tmp/to_psql
echo "$query;" >&5
answers() { for _ in $(seq 100); do [[ $(wc -l </tmp/from_psql) -lt $1 ]] || return 0; sleep 0.1; done; return 1; }
ok "a session is at work" answers 1
ok "apt reinstalls it meanwhile" apt install --reinstall "$(realpath "$deb")"
echo "$query;" >&5
ok "the session goes on" answers 2
ok "apt removes it" apt remove "$package"
echo "$query;" >&5
ok "the session still goes on" answers 3
exec 5>&-
wait "$session" || true
ok "with right answers" eval '[[ $(sort -u /tmp/from_psql) == 50000 ]]'

# ---- removed
ok "its files are gone" test ! -e "$lib"
ok "new sessions say that the library is missing" fails_with 'could not access file "hashgraph_join"' "${psql[@]}" -c "SELECT 1"
"${psql[@]}" -d template1 -c "ALTER DATABASE postgres RESET session_preload_libraries"
ok "without the setting they run as ever" eval '[[ $("${psql[@]}" -Atc "$query") == 50000 ]]'
ok "the extension can be dropped" "${psql[@]}" -c "DROP EXTENSION hashgraph_join"
ok "and not be created" fails_with 'extension "hashgraph_join" is not available|could not open extension control file' "${psql[@]}" -c "CREATE EXTENSION hashgraph_join"
ok "the server stops" pg_ctlcluster "$major" main stop
finish
