#!/usr/bin/env bash
#
# PostgreSQL 15 of Debian 12 beside a later one, with the extension of this tree: what
# test/t/025_pg_upgrade.pl upgrades from where HGJ_OLD_POSTGRESQL says so.  Prints its folder,
# in which bin and lib are.  Needs root, in a later Debian's folder (test/versions.sh).
#
#   test/old_postgresql.sh [MIRROR]
#
# 1. Debian's packages are fetched once, and unpacked, not installed, into /opt: the server
#    finds its files by where it is itself, and its libraries, of other names than those of
#    the later Debian, through ldconfig.
# 2. The extension is built for it in a copy of the sources, without optimization, because
#    nobody waits for its queries.  What has been built before stays.
#
# The first time takes a minute, later ones seconds.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
mirror=${1:-http://deb.debian.org/debian}
old=/opt/hashgraph_join_15
installed=$old/root/usr/lib/postgresql/15
copy=$old/tree

# Step 1.
if [[ ! -e $old/.done ]]; then
	rm -rf "$old"
	mkdir -p "$old/root" "$old/debs/partial" "$old/lists/partial"
	echo "deb $mirror bookworm main" >"$old/sources.list"
	apt=(apt-get -q -o "Dir::Etc::SourceList=$old/sources.list" -o Dir::Etc::SourceParts=/dev/null
		-o "Dir::State::Lists=$old/lists" -o Acquire::Check-Valid-Until=false
		-o Acquire::Languages=none -o APT::Sandbox::User=root)
	"${apt[@]}" update >&2
	(cd "$old/debs" && "${apt[@]}" download postgresql-15 postgresql-client-15 postgresql-server-dev-15 libicu72 libldap-2.5-0 >&2)
	for deb in "$old"/debs/*.deb; do
		dpkg -x "$deb" "$old/root"
	done
	echo "$old"/root/usr/lib/*-linux-gnu* >/etc/ld.so.conf.d/hashgraph_join_15.conf
	ldconfig
	rm -rf "$old/debs" "$old/lists"
	"$installed/bin/postgres" --version >&2
	touch "$old/.done"
fi

# Step 2.
mkdir -p "$copy"
find Makefile hashgraph_join.control src sql cuda -type f ! -name '*.o' ! -name '*.bc' ! -name '*.d' | sort >"$old/files"
while read -r file; do
	# files that differ are new there, whatever their time is
	cmp -s "$file" "$copy/$file" || {
		mkdir -p "$copy/$(dirname "$file")"
		cp "$file" "$copy/$file"
	}
done <"$old/files"
(cd "$copy" && find src sql cuda -type f ! -name '*.o' ! -name '*.bc' ! -name '*.d' | sort | comm -23 - "$old/files" | xargs -r rm -f)
make -C "$copy" -s -j"$(nproc)" install with_cuda=no with_llvm=no COPT=-O0 PG_CONFIG="$installed/bin/pg_config" >&2
echo "$installed"
