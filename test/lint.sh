#!/usr/bin/env bash
#
# The rules of the source tree, one line each: `ok` or `not ok` with the offending
# lines, then `N passed, N failed`.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=test/lib/server.sh
. test/lib/server.sh

passed=0
failed=0
rule()
{
	local name=$1 found=$2
	if [[ -z $found ]]; then
		echo "ok - $name"
		passed=$((passed + 1))
	else
		echo "not ok - $name"
		while IFS= read -r line; do echo "    $line"; done <<<"$found"
		failed=$((failed + 1))
	fi
}

read -r -a rooms <<<"$(echo src/*/)"
for room in "${rooms[@]}" cuda; do
	[[ -n $(find "$room" -name '*.c' -o -name '*.cu') ]] || {
		echo "lint: $room holds no source file: nothing to hold the rules against"
		echo "0 passed, 1 failed"
		exit 1
	}
done
above_engine=()
for room in "${rooms[@]%/}"; do
	[[ $room == src/engine || $room == src/planner ]] || above_engine+=("$room")
done

# Prints the includes that break one arrow of the design.
#   arrow FOLDERS KIND: the files, and the rule in perl below.
arrow()
{
	perl - "$@" <<'PERL'
use strict;
use warnings;
use File::Find;
use File::Basename;
my ($kind, @folders) = @ARGV;
my @files;
find(sub { push @files, $File::Find::name if /\.(c|h|cu|cuh|cpp)$/ }, grep { -d } @folders);
for my $file (sort @files)
{
	my $here = dirname($file);
	open my $fh, '<', $file or die "$file: $!";
	while (my $line = <$fh>)
	{
		next unless $line =~ /^\s*#\s*include\s*([<"])([^>"]+)[>"]/;
		my ($open, $name) = ($1, $2);
		# Where the file stands in our tree, if it does.
		my ($ours) = grep { -f } map { s{[^/]+/\.\./}{}gr }
			("$here/$name", "src/$name", $name, "src/engine/$name", "cuda/$name");
		my $cuda = $name =~ m{^(cuda|cub/|thrust/|cooperative_groups|nvml|nvrtc|driver_types|device_launch|curand)};
		my $postgres = !$cuda && ($name =~ m{^(postgres|c\.h|fmgr|pg_config|pgstat|miscadmin|funcapi|libpq|varatt|port\.h)}
			|| ($name =~ m{^(access|catalog|commands|common|executor|foreign|jit|lib|mb|nodes|optimizer|parser|partitioning|port|portability|postmaster|regex|replication|rewrite|statistics|storage|tcop|tsearch|utils)/} && !$ours));
		my $bad = 0;
		if ($kind eq 'no-postgres') { $bad = $postgres; }
		elsif ($kind eq 'no-cuda') { $bad = $cuda; }
		elsif ($kind eq 'engine-only') { $bad = $open eq '"' && !(defined $ours && $ours =~ m{^src/engine/}); }
		elsif ($kind eq 'cuda-only') { $bad = $open eq '"' && !(defined $ours && $ours =~ m{^(cuda|src/engine)/}) && !$cuda; }
		elsif ($kind eq 'planner') { $bad = defined $ours && $ours =~ m{^src/engine/(.*)} && $1 ne 'engine.h'; }
		elsif ($kind eq 'engine-abi') { $bad = defined $ours && $ours =~ m{^src/engine/(.*)} && $1 !~ /^(engine|hgj_memory|registry)\.h$/
			# The server's client is an engine itself, as CUDA's and that of threads are, and fails as
			# they all do.
			&& !($1 eq 'checks.h' && $file =~ m{^src/(server|threads)/}) && !($1 =~ /^(having|hash)\.h$/ && $file =~ m{^src/threads/}); }
		else { die "arrow: $kind?"; }
		print "$file:$.: $line" if $bad;
	}
}
PERL
}

matches()
{
	# grep's 1 is "nothing found"; anything else is an error.
	local rc=0
	grep -rnE "$@" || rc=$?
	((rc <= 1))
}

rule "src/engine includes no PostgreSQL header" "$(arrow no-postgres src/engine)"
rule "src/engine includes only its own headers" "$(arrow engine-only src/engine)"
rule "cuda includes no PostgreSQL header" "$(arrow no-postgres cuda)"
rule "cuda includes only its own headers and src/engine's" "$(arrow cuda-only cuda)"
rule "no CUDA header outside cuda" "$(arrow no-cuda src test bench)"
rule "the planner sees of the engine only engine.h" "$(arrow planner src/planner)"
rule "the other rooms see of the engine only engine.h, hgj_memory.h and registry.h, engines also checks.h" "$(arrow engine-abi "${above_engine[@]}")"
rule "PG_VERSION_NUM stands in src/compat.h only" \
	"$(matches '\bPG_VERSION_NUM\b' --include='*.[ch]' --include='*.cu*' src cuda | sed '/^src\/compat\.h:/d')"
rule "the engine neither prints, exits, throws nor pallocs" \
	"$(matches '\b(printf|fprintf|puts|fputs|perror|exit|_exit|abort|longjmp|siglongjmp|palloc0?|repalloc|pfree|ereport|elog)[[:space:]]*\(' --include='*.[ch]' src/engine)"
rule "no file of src or cuda is longer than 1,000 lines" \
	"$(find src cuda -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' | sort | xargs wc -l | awk '$2 != "total" && $1 > 1000 {print $2 ": " $1 " lines"}')"
# From the brace at a line's beginning to the next.
long_functions=$(find src cuda -not -path 'cuda/bench/*' \( -name '*.c' -o -name '*.cu' -o -name '*.cuh' \) -exec awk '
	FNR == 1 {start = 0}
	/^\{/ {start = FNR}
	/^\}/ {if (start && FNR - start + 1 > 80) print FILENAME ": " start ", " FNR - start + 1 " lines"; start = 0}' {} +)
rule "no function of src or cuda is longer than 80 lines" "$long_functions"
# A name, its parameters, and a brace at a line's beginning; comments are left out.  In
# these loops of the CPU engine the parameters are registers, and a struct memory; the last
# one is an entry of the ABI.
registers='copy_rows|copy_batch|scatter_block|scatter_rows|slot_write|pipe_payload|pipeline_payload'
crowds=$(find src -name '*.[ch]' -exec perl -0777 -ne '
	s{/\*.*?\*/}{$& =~ s/[^\n]//gr}gse;
	while (/(\w+)\s*(\((?:[^()]|(?2))*\))\s*\n\{/g)
	{
		my ($name, $list, $line) = ($1, $2, 1 + (substr($_, 0, $-[0]) =~ tr/\n//));
		$list = substr($list, 1, -1);
		1 while $list =~ s/\([^()]*\)//g;
		my $n = 1 + ($list =~ tr/,//);
		print "$ARGV:$line: $name has $n parameters\n" if $n > 7 && $name !~ /^('"$registers"')$/;
	}' {} +)
rule "no function of src has more than 7 parameters" "$crowds"
rule "no TODO, FIXME or XXX in src, cuda and sql" \
	"$(matches '\b(TODO|FIXME|XXX)\b' --include='*.[ch]' --include='*.cu*' --include='hashgraph_join--*.sql' src cuda sql)"
settings=$(grep -oE '"hashgraph_join\.[a-z_]+"' src/base/guc.c | tr -d '"' | sort -u || true)
rule "every setting of src/base/guc.c stands in docs/settings.md" \
	"$(for name in ${settings:-none}; do
		grep -qF "$name" docs/settings.md || echo "$name"
	done 2>&1)"
rule "the figures of README.md are those of bench/figures" "$(perl bench/figures.pl check 2>&1)"
# The last cell has paths in backticks, or says that there is none.
rule "every row of docs/compatibility.md names tests that there are" \
	"$(perl -ne 'next unless /^\| (.*) \|$/ && !/^\| -/;
		my @cells = split / \| /, $1;
		next if $cells[-1] =~ /^(by|shown by|none\b.*)$/;
		my @paths = $cells[-1] =~ /`([^`]*)`/g;
		print "$ARGV:$.: $cells[0] names no test\n" if @cells != 3 || !@paths;
		-e or print "$ARGV:$.: there is no $_\n" for @paths' docs/compatibility.md)"
# An item ends with "Shown by", and with paths, statements of make or psql's \timing in backticks.
rule "every statement of docs/limits.md, and every difference between versions, names what shows it" \
	"$(perl -0777 -ne 'while (/^( *)\* ((?:(?!^ *\* |^\n|\z).)*)/msg)
	{
		my $item = $2;
		my ($first) = $item =~ /^(.{1,40})/;
		# what only opens a list has its items
		next if $item =~ /:\n\z/ && $item !~ /Shown by/;
		my ($by) = $item =~ /\*Shown by\* (.*)/s;
		my @words = ($by // "") =~ /`([^`]*)`/g;
		print "$ARGV: $first names nothing\n" if !@words;
		for (@words) { -e or m{^(make |\\timing$|COPY$|Memory Usage$|EXPLAIN ANALYZE$)} or print "$ARGV: $first: there is no $_\n"; }
	}' docs/limits.md docs/compatibility.md)"
rule "every reason of the catalogue has a test that shows it" "$(perl test/reasons.pl 2>&1)"
rule "every name in the extension's scripts says that it is pg_catalog's, or is the script's own" "$(perl test/scripts.pl sql/hashgraph_join--*.sql 2>&1)"
rule "the rule before this one finds what is planted" "$(perl test/scripts.pl --planted 2>&1)"
rule "META.json is what PGXN wants" "$(perl test/meta.pl 2>&1)"
# A pg_config that says so of itself.
stranger=$(mktemp)
printf '#!/bin/sh\ncase "$1" in --version) echo "PostgreSQL 14.9" ;; *) exec %s "$@" ;; esac\n' "$(hgj_pg_config)" >"$stranger"
chmod 755 "$stranger"
rule "a PostgreSQL that is not one of 15 to 18 is refused" \
	"$({ make -n PG_CONFIG="$stranger" 2>&1 || true; } | grep 'is of PostgreSQL 14, and hashgraph_join is for PostgreSQL 15 to 18' >/dev/null || echo "make goes on")"
rm -f "$stranger"
# One that writes nothing, one whose time is up, and one that comes to its end.
limited()
{
	local log rc=0
	log=$(mktemp)
	bash test/lib/limited.sh "$1" "$2" "$log" "${@:4}" || rc=$?
	[[ $rc == "$3" ]] || echo "status $rc of ${*:4}, not $3: $(<"$log")"
	rm -f "$log"
}
rule "a suite is stopped when it hangs or its time is up, and not before" \
	"$(limited 0 1 124 sleep 1000; limited 1 1000 124 bash -c 'while echo y; do sleep 0.1; done'; limited 0 1000 3 bash -c 'sleep 2; exit 3')"
rule "every shell script parses" \
	"$({ find test bench -name '*.sh' && echo .ci/run; } | sort | while read -r f; do bash -n "$f" 2>&1 || true; done)"

# From the objects: built here unless they are there.
config=$(hgj_pg_config)
objects=$(make -s -k -j"$(hgj_jobs)" objects WERROR=1 PG_CONFIG="$config" 2>&1) || objects+=$'\nmake failed'
rule "no two rooms of src use each other, no crowd of files within one, no header of another room that is its own" "$(perl test/rooms.pl --circles 2>&1 || echo "$objects")"
perl test/rooms.pl | sed 's/^/    /' || true

# Both compilers, warnings are errors: what gcc says of the objects that it has made, with
# optimization, and what clang says of the sources.  This one is the one that PostgreSQL's
# server headers' package depends on.
rule "gcc -Wall -Wextra finds nothing" "$(head -n 60 <<<"$objects")"
clang=$(sed -n 's/^CLANG *= *//p' "$(dirname "$("$config" --pgxs)")/../Makefile.global")
[[ -n $clang ]] || clang=$(command -v clang || true)
strict()
{
	local out
	if out=$(make -s -k -j"$(hgj_jobs)" compile-strict PG_CONFIG="$config" "$@" 2>&1); then
		return 0
	fi
	printf '%s\n' "${out:-make failed without a word}" | grep -v '^make' | head -n 60
}
if [[ -n $clang ]] && command -v "$clang" >/dev/null; then
	rule "clang -Wall -Wextra finds nothing" \
		"$(strict CC="$clang" CFLAGS="-fsyntax-only -Wmissing-prototypes -Wpointer-arith -Wvla -fno-strict-aliasing -fwrapv")"
else
	rule "clang -Wall -Wextra finds nothing" "there is no clang: install clang-14"
fi

echo "$passed passed, $failed failed"
((failed == 0))
