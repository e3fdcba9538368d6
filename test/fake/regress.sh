#!/usr/bin/env bash
#
# Files of sql/ on the fake device (test/fake): joins and aggregates go through its
# tables and pipelines, and the answers must be those in expected/.
#
#   test/fake/regress.sh [FILE ...]
#
# PGHOST and so on name a throw-away server (as a superuser); PG_CONFIG is its
# PostgreSQL's.  What names the engine is left out of the comparison; sql/device.sql
# says itself which plans must have run as pipelines.
#
#   HGJ_GPU_SERVER=yes	the server has a GPU process, with a library of its own setting
#   HGJ_FAKE_WITHOUT="a b"	files that are left out
#
# The last line is `N passed, N failed`: one test per file.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=test/lib/device_output.sh
. test/lib/device_output.sh
# shellcheck source=test/lib/same_output.sh
. test/lib/same_output.sh
# shellcheck source=test/lib/fake_library.sh
. test/lib/fake_library.sh
config=$(bash test/pg_config.sh)
bin=$("$config" --bindir)
pg_regress=$(dirname "$("$config" --pgxs)")/../test/regress/pg_regress
dir=build/fake_regress

# Those with chains of joins, aggregates, and clauses of all sorts.
files=("$@")
((${#files[@]})) || files=(device device_having agg_plans agg_scans aggregates batches corner_cases cursors decimals demand device_host dictionaries distinct filters functions keys pages probe_order rescan residual statements)

if (($# == 0)) && [[ -n ${HGJ_FAKE_WITHOUT:-} ]]; then
	mapfile -t files < <(printf '%s\n' "${files[@]}" | grep -vxE "${HGJ_FAKE_WITHOUT// /|}")
fi

own=
if [[ ${HGJ_GPU_SERVER:-} != yes ]]; then
	at_exit() { trap "$1" EXIT; }
	hgj_fake_library at_exit || exit 1
	own="-c hashgraph_join.cuda_library=$HGJ_FAKE_LIBRARY"
fi

rm -rf "$dir"
mkdir -p "$dir"
PGOPTIONS="-c hashgraph_join.engine=cuda $own -c hgj_test.device=yes" \
	"$pg_regress" --inputdir="$PWD" --outputdir="$dir" --bindir="$bin" --host="$PGHOST" --port="${PGPORT:-5432}" \
	--user="${PGUSER:-postgres}" --dbname="regress_fake" --load-extension=hashgraph_join setup "${files[@]}" >"$dir/log" 2>&1

passed=0
failed=0
for name in setup "${files[@]}"; do
	if same_output "$name" "$dir" device_output "$name"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
	fi
done
echo "$passed passed, $failed failed"
((failed == 0))
