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
# The last line is `N passed, N failed`: one test per file.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=test/lib/device_output.sh
. test/lib/device_output.sh
# shellcheck source=test/lib/same_output.sh
. test/lib/same_output.sh
config=$(bash test/pg_config.sh)
bin=$("$config" --bindir)
pg_regress=$(dirname "$("$config" --pgxs)")/../test/regress/pg_regress
dir=build/fake_regress

# Those with chains of joins, aggregates, and clauses of all sorts.
files=("$@")
((${#files[@]})) || files=(device agg_plans aggregates batches corner_cases cursors decimals demand distinct filters functions keys pages probe_order rescan residual statements)

# The server's user may not see this tree.
make -s -C test/fake build/fake.so || exit 1
library=$(mktemp -d /tmp/hgj_fake.XXXXXX)
trap 'rm -rf "$library"' EXIT
chmod 755 "$library"
install -m 755 test/fake/build/fake.so "$library/fake.so"

rm -rf "$dir"
mkdir -p "$dir"
PGOPTIONS="-c hashgraph_join.engine=cuda -c hashgraph_join.cuda_library=$library/fake.so -c hgj_test.device=yes" \
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
