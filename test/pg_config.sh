#!/usr/bin/env bash
#
# Prints the pg_config of the PostgreSQL to build for: PG_CONFIG; else Debian's
# newest that is of a version we know and has its server headers; else the one in
# PATH.  Says so, and fails, if there is none.
#
#   test/pg_config.sh           that one
#   test/pg_config.sh MAJOR     Debian's of that major version, whatever PG_CONFIG says
#   test/pg_config.sh --known   the major versions that we know, newest first
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
read -r -a known < <(sed -n 's/^PG_KNOWN := //p' "$here/../Makefile")
case ${1:-} in
	--known)
		echo "${known[*]}"
		exit 0
		;;
	'')
		if [[ -n ${PG_CONFIG:-} ]]; then
			printf '%s\n' "$PG_CONFIG"
			exit 0
		fi
		;;
	*) known=("$1") ;;
esac

for major in "${known[@]}"; do
	config=/usr/lib/postgresql/$major/bin/pg_config
	if [[ -x $config && -f /usr/lib/postgresql/$major/lib/pgxs/src/makefiles/pgxs.mk ]]; then
		printf '%s\n' "$config"
		exit 0
	fi
done
if [[ -n ${1:-} ]] || ! command -v pg_config; then
	echo "no pg_config${1:+ of PostgreSQL $1}: run \"make setup\", or set PG_CONFIG" >&2
	exit 1
fi
