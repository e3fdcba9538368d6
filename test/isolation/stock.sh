#!/usr/bin/env bash
#
# Writes test/isolation/expected from PostgreSQL's own hash join: the specs
# with our settings taken out, on a throw-away server.  Look at what changed
# before committing it.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=test/lib/server.sh
. test/lib/server.sh

hgj_server_start
work=$(mktemp -d)
hgj_at_exit "rm -rf '$work'"
mkdir -p "$work/specs" "$work/expected" "$work/out"
names=()
for spec in test/isolation/specs/*.spec; do
	name=$(basename "$spec" .spec)
	names+=("$name")
	sed -E "/LOAD 'hashgraph_join'|SET hashgraph_join\./d" "$spec" >"$work/specs/$name.spec"
	if grep -q hashgraph_join "$work/specs/$name.spec" &&
		grep -v '^#' "$work/specs/$name.spec" | grep -q hashgraph_join; then
		echo "$spec: uses hashgraph_join otherwise than in the lines of its setups" >&2
		exit 1
	fi
	: >"$work/expected/$name.out"
done
# They all differ from the empty files: that is what we are after.
"$(dirname "$("$(hgj_pg_config)" --pgxs)")/../test/isolation/pg_isolation_regress" \
	--inputdir="$work" --outputdir="$work/out" --bindir="$HGJ_BIN" \
	--dbname=stock "${names[@]}" >"$work/log" 2>&1 || true
for name in "${names[@]}"; do
	[[ -s $work/out/results/$name.out ]] || {
		cat "$work/log"
		exit 1
	}
	cp "$work/out/results/$name.out" "test/isolation/expected/$name.out"
done
echo "wrote ${#names[@]} files to test/isolation/expected"
