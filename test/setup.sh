#!/usr/bin/env bash
#
# Installs, without asking, what is missing on a Debian machine:
#
#   test/setup.sh build     what `make install` and the demo need
#   test/setup.sh           that, and what the tests need
#   test/setup.sh cassert   that, and what building PostgreSQL itself needs
#   test/setup.sh versions  what making folders of other Debians needs, and no more
#
# apt-get runs only where something is missing.  No server is started, and
# none that runs is touched: services are held back while packages unpack.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
level=${1:-test}
packages=(gcc libc6-dev make)

# The PostgreSQL that is there, if we know its version, or the newest that Debian's
# packages have.  A PostgreSQL of somebody's own (PG_CONFIG) needs no package.
wanted_postgresql()
{
	local known major
	known=$(bash "$here/pg_config.sh" --known)
	if [[ -n ${PG_CONFIG:-} && $PG_CONFIG != /usr/lib/postgresql/* ]] && "$PG_CONFIG" --version >/dev/null 2>&1; then
		return
	fi
	if [[ ${PG_CONFIG:-} =~ ^/usr/lib/postgresql/([0-9]+)/ ]]; then
		echo "${BASH_REMATCH[1]}"
		return
	fi
	for major in $known; do
		if [[ -x /usr/lib/postgresql/$major/bin/postgres ]]; then
			echo "$major"
			return
		fi
	done
	if command -v apt-cache >/dev/null; then
		for major in $known; do
			if apt-cache policy "postgresql-server-dev-$major" 2>/dev/null | grep 'Candidate: [0-9]' >/dev/null; then
				echo "$major"
				return
			fi
		done
	fi
	# apt knows nothing yet: ask again after apt-get update
	echo unknown
}

postgresql=$(wanted_postgresql)
[[ -z $postgresql ]] || packages+=("postgresql-$postgresql" "postgresql-server-dev-$postgresql")
case $level in
	build) ;;
	test)
		packages+=(perl libipc-run-perl pgbouncer)
		# Debian has the first two from 13 on, and the last apart for PostgreSQL 18
		for package in "postgresql-$postgresql-pg-hint-plan" "postgresql-$postgresql-timescaledb" "postgresql-$postgresql-jit"; do
			if apt-cache policy "$package" 2>/dev/null | grep 'Candidate: [0-9]' >/dev/null; then
				packages+=("$package")
			fi
		done
		;;
	cassert)
		# bison and flex: from 17 on, sources come without what they make
		packages+=(perl libipc-run-perl ca-certificates dpkg-dev bzip2 xz-utils
			pkg-config zlib1g-dev libicu-dev bison flex)
		;;
	versions) packages=(debootstrap wget xz-utils git) ;;
	*)
		echo "usage: $0 [build|test|cassert|versions]" >&2
		exit 2
		;;
esac

missing=()
for package in "${packages[@]}"; do
	state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
	[[ $state == installed ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

if ! command -v apt-get >/dev/null; then
	echo "setup: missing ${missing[*]}, and this is not a Debian machine: install PostgreSQL (15 to 18) with its server headers, gcc, make, perl and IPC::Run yourself" >&2
	exit 1
fi

root=()
if ((EUID != 0)); then
	if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
		root=(sudo -n)
	else
		echo "setup: missing ${missing[*]}; run as root: apt-get install ${missing[*]}" >&2
		exit 1
	fi
fi

policy=/usr/sbin/policy-rc.d
made_policy=
cleanup()
{
	[[ -z $made_policy ]] || "${root[@]}" rm -f "$policy"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP
if [[ ! -e $policy ]]; then
	made_policy=yes
	printf '#!/bin/sh\nexit 101\n' | "${root[@]}" tee "$policy" >/dev/null
	"${root[@]}" chmod 755 "$policy"
fi

echo "setup: installing ${missing[*]//-unknown/}"
apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
log=$(mktemp)
# A third party's broken mirror must not stop us: what counts is the install.
"${apt[@]}" update >"$log" 2>&1 || echo "setup: apt-get update had errors, going on" >&2
if [[ $postgresql == unknown ]]; then
	postgresql=$(wanted_postgresql)
	if [[ $postgresql == unknown ]]; then
		echo "setup: apt knows none of PostgreSQL $(bash "$here/pg_config.sh" --known): install one with its server headers, or set PG_CONFIG" >&2
		rm -f "$log"
		exit 1
	fi
	missing=("${missing[@]//postgresql-unknown/postgresql-$postgresql}")
	missing=("${missing[@]//postgresql-server-dev-unknown/postgresql-server-dev-$postgresql}")
fi
if ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >>"$log" 2>&1; then
	tail -n 40 "$log" >&2
	rm -f "$log"
	echo "setup: apt-get could not install ${missing[*]}" >&2
	exit 1
fi
rm -f "$log"
