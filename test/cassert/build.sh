#!/usr/bin/env bash
#
# An assertion-enabled PostgreSQL of the major version in use (test/pg_config.sh),
# built once from Debian's source package and kept in
# ${HGJ_CACHE:-/var/cache/hashgraph_join}.
#
#   test/cassert/build.sh             builds it if need be, prints its pg_config
#   test/cassert/build.sh --source    fetches and unpacks only, prints the folder
#
# Everything but that one line goes to stderr.
set -euo pipefail

# PostgreSQL's makefiles behave differently below another make.
unset MAKELEVEL MAKEFLAGS MFLAGS

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
want=${1:-pg_config}
case $want in
	pg_config | --source) ;;
	*)
		echo "usage: $0 [--source]" >&2
		exit 2
		;;
esac
# shellcheck source=test/lib/cache.sh
. "$here/../lib/cache.sh"
exec 3>&1 1>&2

# One at a time: the next one finds the work done.
exec 9>"$HGJ_CACHE/lock"
flock 9

bash "$here/../setup.sh" cassert
major=$("$(bash "$here/../pg_config.sh")" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
package=postgresql-$major

work=
cleanup()
{
	[[ -z $work ]] || rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

fail()
{
	echo "cassert: $*"
	exit 1
}

# The machine's own package sources, asked for sources, in a configuration of
# our own: the machine's stays as it is.
apt_private()
{
	local file name
	mkdir -p "$work/parts" "$work/lists/partial" "$work/cache/archives/partial"
	: >"$work/sources.list"
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
		[[ -f $file ]] || continue
		sed -n -E 's/^[[:space:]]*deb(-src)?[[:space:]]/deb-src /p' "$file" >>"$work/sources.list"
	done
	sort -u -o "$work/sources.list" "$work/sources.list"
	for file in /etc/apt/sources.list.d/*.sources; do
		[[ -f $file ]] || continue
		name=$(basename "$file")
		sed -E 's/^Types:.*/Types: deb-src/' "$file" >"$work/parts/$name"
	done
	cat >"$work/apt.conf" <<-END
		Dir::Etc::sourcelist "$work/sources.list";
		Dir::Etc::sourceparts "$work/parts";
		Dir::State::lists "$work/lists";
		Dir::Cache "$work/cache";
		APT::Sandbox::User "root";
		Acquire::Languages "none";
	END
	export APT_CONFIG=$work/apt.conf
}

# Debian's newest source that can be had: a security mirror may list one
# version and serve another.
fetch_source()
{
	local version versions log unpacked
	work=$(mktemp -d "$HGJ_CACHE/fetch.XXXXXX")
	log=$work/log
	apt_private
	apt-get -q update >"$log" 2>&1 || echo "cassert: apt-get update had errors, going on"
	versions=$(apt-cache showsrc "$package" 2>>"$log" | sed -n 's/^Version: //p' | sort -u -V -r || true)
	[[ -n $versions ]] || {
		tail -n 20 "$log"
		fail "apt knows no source package $package (is the network there?)"
	}
	for version in $versions; do
		echo "cassert: fetching the source of $package $version"
		if (cd "$work" && apt-get -q source --download-only "$package=$version") >>"$log" 2>&1 &&
			compgen -G "$work/${package}_*.orig.tar.*" >/dev/null; then
			break
		fi
		echo "cassert: $version cannot be downloaded"
		rm -f "$work/$package"_*
	done
	unset APT_CONFIG
	compgen -G "$work/${package}_*.orig.tar.*" >/dev/null || {
		grep -E '^(E|W|Err)' "$log" | tail -n 20
		fail "none of these sources of $package could be downloaded: ${versions//$'\n'/ }"
	}
	(cd "$work" && tar -xf "$package"_*.orig.tar.*)
	unpacked=$(find "$work" -maxdepth 1 -type d -name "postgresql-$major*" -print -quit)
	[[ -f $unpacked/configure ]] || fail "the source package holds no configure"
	rm -rf "$source"
	# The tarball's own owners mean nothing here; others must be able to read.
	chmod -R u+rwX,go+rX,go-w "$unpacked"
	((EUID != 0)) || chown -R root:root "$unpacked"
	mv "$unpacked" "$source"
	rm -rf "$work"
	work=
}

source=$HGJ_CACHE/source-$major
[[ -f $source/configure ]] || fetch_source
if [[ $want == --source ]]; then
	echo "$source" >&3
	exit 0
fi

# Rebuilt when the source or this recipe changes.
stamp=$(cat "$source/configure" "${BASH_SOURCE[0]}" | sha256sum | cut -c1-16)
prefix=$HGJ_CACHE/pg-cassert-$major
if [[ $(cat "$prefix/.stamp" 2>/dev/null) != "$stamp" ]]; then
	echo "cassert: building PostgreSQL with assertions in $prefix"
	build=$HGJ_CACHE/build-$major
	rm -rf "$build" "$prefix"
	mkdir -p "$build"
	log=$build.log
	set +e
	(
		set -e
		cd "$build"
		CFLAGS="-O1 -g" "$source/configure" --prefix="$prefix" \
			--enable-cassert --enable-debug --enable-depend --with-icu \
			--without-readline
		make -s -j"$(nproc)" all
		make -s install
		for module in pg_stat_statements auto_explain file_fdw postgres_fdw; do
			make -s -C "contrib/$module" install
		done
		# The test programs that PGXS's installcheck calls, and the module of
		# C functions behind PostgreSQL's own regression files.
		make -s -j"$(nproc)" -C src/test/regress all
		make -s -C src/test/regress install
		make -s -j"$(nproc)" -C src/test/isolation all
		make -s -C src/test/isolation install
		install -m 755 src/test/regress/regress.so "$("$prefix/bin/pg_config" --pkglibdir)/"
	) >"$log" 2>&1
	rc=$?
	set -e
	((rc == 0)) || {
		tail -n 40 "$log"
		fail "PostgreSQL did not build: see $log"
	}
	rm -rf "$build"
	echo "$stamp" >"$prefix/.stamp"
fi
echo "$prefix/bin/pg_config" >&3
