#!/usr/bin/env bash
#
# Loads TPC-H or the Star Schema Benchmark into a running server:
#
#   bench/load.sh tpch|ssb SF [SCHEMA]      (the schema `public` if none is named)
#
# into the database that PGHOST, PGDATABASE and so on name.  The generator is
# compiled into build/bench; processes take slices of all tables in turn and
# pipe them into psql; then keys, and VACUUM (FREEZE, ANALYZE).  Tables of the
# same names that stand in the schema go.  Commits wait for the disk, whatever
# the server says: VACUUM finds no page all-visible whose rows come with a commit
# that is not there yet, and such pages cannot be kept in memory.
#
# Where there is no generator, as in bench/users, tables.sql makes the rows, too.
#
#   JOBS=12         processes (as many as the machine has cores)
#   PSQL=/opt/pg/bin/psql
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [[ $# -lt 2 || $# -gt 3 || ! -f bench/$1/tables.sql ]]; then
	sed -n '3,5s/^# *//p' "${BASH_SOURCE[0]}" >&2
	exit 2
fi
name=$1 scale=$2 schema=${3:-public}
jobs=${JOBS:-$(nproc)}
read -r -a psql <<<"${PSQL:-psql}"
psql+=(-X -q -v ON_ERROR_STOP=1)
export PGOPTIONS="${PGOPTIONS:-} -c search_path=$schema -c client_min_messages=warning -c synchronous_commit=on"

if [[ ! -f bench/$name/generate.c ]]; then
	"${psql[@]}" -v scale="$scale" -f "bench/$name/tables.sql"
	exit
fi
mkdir -p build/bench
generate=$PWD/build/bench/generate-$name
gcc -O2 -Wall -Wextra -o "$generate" "bench/$name/generate.c"
slices=$("$generate" slices "$scale")

begun=$SECONDS
done_with()
{
	echo "$name, scale factor $scale: $1 after $((SECONDS - begun)) s"
}

tables=$(cut -d' ' -f1 <<<"$slices" | sort -u)
{
	echo "CREATE SCHEMA IF NOT EXISTS \"$schema\";"
	# shellcheck disable=SC2086
	printf 'DROP TABLE IF EXISTS %s CASCADE;\n' $tables
	cat "bench/$name/tables.sql"
} | "${psql[@]}"

# A process that fails ends the others' work: 255 makes xargs stop.
load_slice()
{
	set -o pipefail
	local table=$1 slice=$2 slices=$3
	shift 3
	"$generate" "$table" "$scale" "$slice" "$slices" | "$@" -c "COPY $table FROM STDIN" || exit 255
}
export -f load_slice
export generate scale
xargs -P "$jobs" -I '{}' bash -c "load_slice {} \"\$@\"" load_slice "${psql[@]}" <<<"$slices"
done_with "rows"

"${psql[@]}" -f "bench/$name/keys.sql"
done_with "keys"
# shellcheck disable=SC2086
printf 'VACUUM (FREEZE, ANALYZE) %s;\n' $tables | "${psql[@]}"
echo "CHECKPOINT;" | "${psql[@]}"
done_with "ready"
