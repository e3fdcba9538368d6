#!/usr/bin/perl
# Random differential test: makes schemas, data and join queries from a seed,
# runs every query with PostgreSQL's own joins and with HashGraphJoin forced,
# and compares the results.  Some aggregate one table, which HashGraphAgg is to.  Every second query is one over the seed's star
# (HGJ::Star), whose tables change all the time, in this session and another.
#
#   perl test/random/run.pl [--seeds N] [--queries N] [--seed S] [--only Q]
#                           [--keep] [--verbose] [--self-test]
#                           [--engine cuda [--library FILE]] [--load]
#
# --engine cuda asks for the CUDA engine, and requires it wherever a plan is sure
# to have a HashGraphJoin, and its build side may fit; FILE is the engine's, if it
# is not the installed one (test/fake/build/fake.so, without a GPU).  --load keeps the
# columns of all tables in memory, if the server can, again and again: pipelines take them, and
# their build sides are made of them.  Every third time they are some columns of each table only.  PGHOST, PGPORT and PGUSER say which server (as a
# superuser).  --self-test
# needs no extension: it compares stock with stock, which must agree, and then
# with altered tables and a lost connection, which must be noticed.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Getopt::Long;
use Time::HiRes qw(time);
use HGJ::Query;
use HGJ::Runner;
use HGJ::Schema;
use HGJ::Session;
use HGJ::StarQuery;

my %opt = (seeds => 4, queries => 600, seed => 1, stock_extra => '', forced_extra => '');
GetOptions(\%opt, 'seeds=i', 'queries=i', 'seed=i', 'only=i', 'keep', 'verbose', 'self-test', 'engine=s', 'library=s', 'load')
  and !@ARGV
  or die "usage: run.pl [--seeds N] [--queries N] [--seed S] [--only Q] [--keep] [--verbose] [--self-test] [--engine NAME [--library FILE]] [--load]\n";
$opt{seeds} = 1 if $opt{only};
$| = 1;

my $db = "hgj_random_$$";
my $admin = HGJ::Session->new(dbname => 'postgres', bare => 1);
sub admin
{
	my ($sql) = @_;
	my $r = $admin->run($sql);
	die "$0: ", defined $r ? join("\n", @$r) : "no connection: @{ $admin->{last_words} || [] }", "\n"
	  if !defined $r || grep { /ERROR/ } @$r;
}
admin("create database $db template template0 encoding 'UTF8' lc_collate 'C' lc_ctype 'C';");
END { if ($admin && !$admin->{dead} && !$opt{keep}) { my $s = $?; $admin->run("drop database if exists $db with (force);"); $admin->disconnect; $? = $s } }
$SIG{INT} = $SIG{TERM} = sub { exit 1 };
admin("alter database $db set timezone = 'UTC';");

my %sum = (passed => 0, failed => 0, skipped => 0, hashable => 0, node => 0, errors => 0, passes => 0, bits => 0, partitions => 0, spills => 0, empty => 0, star_empty => 0, star => 0, slow => 0);
my (%combo, %seen, %modes, %errors, %sources);

# What plans of the star's queries have used, of those that could have: a
# share that is too small means that the test no longer tests it.
my %use = map { $_ => [ 0, 0 ] } qw(pages batches aggregate scan partial partial_aggregate exchange shared);
my %demand = (batches => 80, pages => 80, aggregate => 80, scan => 80, partial => 25, partial_aggregate => 10, exchange => 10, shared => 10);

# The same for build sides that are larger than memory, of the analyzed plans
# with a build side of more rows than are to fit.
$use{$_} = [ 0, 0 ] foreach qw(chunked partitioned passed);
%demand = (%demand, chunked => 90, partitioned => 75, passed => 90);

# All columns of the schema's tables are kept in memory again.
sub load_columns
{
	my ($name, $time) = @_;
	my $of = "from pg_class c where c.relkind = 'r' and c.relpersistence = 'p' and c.relnamespace = '$name'::regnamespace;";
	my $load = $time % 3 == 2
	  ? "select hashgraph_join_unload(c.oid::regclass) $of\nselect hashgraph_join_load(c.oid::regclass, " .
	  "(select array_agg(attname) from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped and (attnum + c.oid::int + $time) % 3 > 0)) $of"
	  : "select hashgraph_join_load(c.oid::regclass) $of";
	my $session = HGJ::Session->new(dbname => $db, bare => 1);
	$session->connect;
	my $out = $session->run("set client_min_messages = warning;\nvacuum;\n$load");
	die "columns cannot be loaded: ", defined $out ? "@$out" : 'connection lost', "\n" if !defined $out || grep { /ERROR/ } @$out;
	$session->disconnect;
	return;
}

sub run_seed
{
	my ($seed, $queries) = @_;
	my $schema = HGJ::Schema->new($seed);
	my $setup = HGJ::Session->new(dbname => $db, bare => 1);
	$setup->connect;
	my $out = $setup->run(join("\n", '\\set VERBOSITY verbose', 'set client_min_messages = warning;',
			($opt{stock} ? () : 'set hashgraph_join.enabled = off;'), map { "$_;" } @{ $schema->{sql} }));
	die "seed $seed: cannot make the schema:\n", defined $out ? join("\n", @$out) : 'connection lost', "\n"
	  if !defined $out || @$out;
	if ($opt{sabotage})
	{
		$out = $setup->run(join "\n", "create schema altered_$seed;",
			map { "create table altered_$seed.$_->{name} as select * from $schema->{name}.$_->{name} where id % 4 <> 1;" }
			  (grep { !$_->{view} } @{ $schema->{tables} }), grep { !$_->{temp} } values %{ $schema->{star}{tables} });
		die "seed $seed: @$out\n" if !$out || @$out;
	}
	$setup->disconnect;

	my $star = $schema->{star};
	my $path = "set search_path = $schema->{name};\n";
	my $session = HGJ::Session->new(dbname => $db,
		start => "${path}set temp_buffers = '800kB';\n" . join('', map { "$_;\n" } @{ $star->{temp_sql} }));
	my $other = HGJ::Session->new(dbname => $db, start => "${path}set synchronous_commit = on;\n");
	local $opt{stock_extra} = $opt{sabotage} ? "set search_path = $schema->{name};\n" : '';
	local $opt{forced_extra} = $opt{sabotage} ? "set search_path = altered_$seed, $schema->{name};\n" : '';
	my $started = time;
	for my $n (1 .. $opt{only} || $queries)
	{
		change($session, $other, $star->change($n));
		load_columns($schema->{name}, int($n / 10)) if $opt{load} && $n % 10 == 1;
		next if $opt{only} && $n != $opt{only};
		my $q = $n % 2 ? HGJ::Query->new($schema, $n) : HGJ::StarQuery->new($schema, $n);
		my $t = time;
		my $r = HGJ::Runner::judge($session, $q, \%opt);
		printf "seed %d query %d (%s): %s, %.0f ms\n%s", $seed, $n, $q->{mode}, $r->{verdict} . ($r->{error} ? " (error $r->{error})" : ''), 1000 * (time - $t),
		  $opt{only} ? join("\n", HGJ::Runner::script($q), @{ $r->{plan} || [] }, '') : ''
		  if $opt{verbose};
		account($q, $r);
		if ($r->{verdict} eq 'fail')
		{
			report($seed, $n, $q, $r, $session) unless $opt{quiet};
			if ($r->{crash} && !$session->revive)
			{
				die "the server does not come back\n";
			}
		}
	}
	$_->disconnect for $other, $session;
	printf "seed %d: %d queries, %.0f s\n", $seed, $opt{only} ? 1 : $queries, time - $started unless $opt{quiet};
}

# The changes between two queries; they must work, but for a lock that the
# second session holds.
sub change
{
	my ($session, $other, $change) = @_;
	for ([ $session, "set lock_timeout = '200ms'; set statement_timeout = '600s';", 'main' ], [ $other, '', 'other' ])
	{
		my ($s, $set, $which) = @$_;
		my @sql = @{ $change->{$which} } or next;
		my $r = $s->run(join "\n", $set, (map { "$_;" } @sql), $set ? 'reset lock_timeout;' : '');
		die "the connection was lost by a change: @sql\n" unless $r;
		my @bad = grep { /^(ERROR|WARNING)/ && !/55P03|25P02/ } @$r;
		die "a change failed: @sql\n@bad\n" if @bad;
	}
}

sub account
{
	my ($q, $r) = @_;
	my $what = { ok => 'passed', fail => 'failed', skip => 'skipped' }->{ $r->{verdict} };
	$sum{$what}++;
	$sum{slow}++ if $r->{slow};
	return if $r->{verdict} eq 'skip' || $r->{crash};
	if ($r->{error}) { $sum{errors}++; $errors{ $r->{error} }++ }
	$modes{ ($q->{is_star} ? 'star ' : '') . $q->{mode} }++;
	return if $r->{error};
	$sum{empty}++ unless $r->{rows};
	if ($q->{is_star}) { $sum{star}++; $sum{star_empty}++ unless $r->{rows} }
	if ($q->{hashed})
	{
		$sum{hashable}++;
		$sum{node}++ if $r->{node};
	}
	return unless $r->{node} || $q->{scan};
	$combo{ join ' ', map { $q->{force}{"hashgraph_join.$_"} } qw(build probe segments) }++;
	for (@{ $r->{plan} || [] })
	{
		$seen{"$1: $2"}++ while /(Join Type|Engine|Build|Probe|Segments|Fallback|Device Pipeline): (\S+(?: \S+)*)/g;
		$sum{passes}++ if /Passes: (\d+)/ && $1 > 1;
		$sum{partitions}++ if /Spilled Inner: [1-9]/;
		$sum{bits}++ if /Spilled Match Bits: [1-9]/;
		$sum{spills}++ if /Spilled Rows: [1-9]/;
	}
	spill_use($q, join "\n", @{ $r->{plan} || [] }) if $q->{analyze};
	star_use($q, join "\n", @{ $r->{plan} || [] }) if $q->{is_star};
}

sub spill_use
{
	my ($q, $plan) = @_;
	my ($fits, $spill) = @{ $q->{force} }{qw(hashgraph_join.chunk_rows hashgraph_join.spill)};
	return unless $fits;
	foreach my $node (split /(?=Custom Scan \(HashGraphJoin\))/, $plan)
	{
		next unless $node =~ /Build Rows: (\d+)/ && $1 > $fits;
		my $count = sub { $use{ $_[0] }[1]++; $use{ $_[0] }[0]++ if $_[1] };
		$count->('chunked', $node =~ /Passes: /);
		$count->('partitioned', $node =~ /Partitions: /) if $spill eq 'partitions';
		$count->('passed', $node =~ /Passes: / && $node !~ /Partitions: /) if $spill eq 'passes';
	}
}

sub star_use
{
	my ($q, $plan) = @_;
	my $count = sub { my ($what, $could, $did) = @_; return unless $could; $use{$what}[1]++; $use{$what}[0]++ if $did };
	my $auto = $q->{force}{'hashgraph_join.source'} eq 'auto';
	my $joins = () = $plan =~ /Custom Scan \(HashGraphJoin\)/g;
	$count->('pages', $auto && $plan =~ /Seq Scan/, $plan =~ /Source: pages/);
	$count->('batches', $auto && $joins > 1, $plan =~ /(Outer|Inner) Source: batches/);
	my $agg = $q->{aggregate} && !$q->{declined} && !$q->{odd} && $q->{force}{'hashgraph_join.aggregate'} eq 'on';
	$count->('aggregate', $agg && !$q->{scan}, $plan =~ /HashGraphAgg/);
	$count->('scan', $agg && $q->{scan}, $plan =~ /HashGraphAgg.*?^\s+Source: /ms);
	$count->('partial_aggregate', $agg && $q->{parallel} && !$q->{temp} && !$q->{prepare} && $q->{force}{'hashgraph_join.parallel_aggregate'} eq 'partial', $plan =~ /Gather.*Partial Mode: Partial/s);
	$count->('exchange', $agg && $q->{parallel} && !$q->{temp} && !$q->{prepare} && $q->{sql} =~ /GROUP BY/i && $q->{force}{'hashgraph_join.parallel_aggregate'} eq 'exchange',
		$plan =~ /Gather.*Exchange: groups, by hash/s);
	$count->('partial', $q->{parallel} && !$q->{temp} && !$q->{odd} && !$q->{prepare}, $plan =~ /Gather.*HashGraph(Join|Agg)/s);
	$count->('shared', !$q->{scan} && $q->{parallel} && !$q->{temp} && !$q->{odd} && !$q->{prepare} && $q->{force}{'hashgraph_join.parallel_build'} eq 'shared',
		$plan =~ /Build Side: shared/);
	while ($plan =~ /((?:Outer|Inner) Source: .*)/g) { $sources{$1}++ }
}

sub report
{
	my ($seed, $n, $q, $r, $session) = @_;
	my %s = HGJ::Runner::settings($q, 1, \%opt);
	my @lines = @{ $r->{lines} };
	my $more = @lines > 12 ? @lines - 12 : 0;
	splice @lines, 12 if $more;
	print "FAILED: seed $seed query $n ($q->{mode}): $r->{why}\n";
	print "  $_\n" for @lines, $more ? "... and $more more" : ();
	print "  script:\n", map { "    $_\n" } split /\n/, HGJ::Runner::script($q);
	print "  settings: ", join(', ', map { "$_=$s{$_}" } grep { !defined $HGJ::Runner::DEFAULT{$_} || $HGJ::Runner::DEFAULT{$_} ne $s{$_} } sort keys %s), "\n";
	if (grep { /ERROR|WARNING/ } @lines and !$r->{crash})
	{
		my $v = $session->run("\\set VERBOSITY verbose\n" . HGJ::Runner::set_lines(%s) . HGJ::Runner::script($q) . "\\set VERBOSITY sqlstate\nrollback;");
		print map { "  says: $_\n" } grep { /^(ERROR|WARNING|DETAIL|HINT|CONTEXT|LOCATION)/ } @$v if $v;
	}
	print "  plan:\n", map { "    $_\n" } @{ $r->{plan} || [] };
	print "  reproduce: perl test/random/run.pl --seed $seed --only $n --verbose --keep\n",
	  "         or: perl test/random/run.pl --seed $seed --seeds 1 --queries $n (with what earlier queries left)\n";
}

sub self_test
{
	my ($passed, $failed) = (0, 0);
	my $check = sub { my ($ok, $what) = @_; print $ok ? 'ok' : 'NOT OK', ": $what\n"; $ok ? $passed++ : $failed++ };
	$opt{stock} = 1;
	run_seed(1, 150);
	run_seed(2, 150);
	$check->($sum{failed} == 0 && $sum{passed} >= 250, "stock agrees with stock ($sum{passed} passed, $sum{failed} failed, $sum{skipped} too long)");
	$check->($sum{empty} <= 0.35 * $sum{passed}, "most results have rows ($sum{empty} have none)");
	$check->($sum{errors} <= 0.05 * $sum{passed}, "few queries are errors ($sum{errors}: " . join(', ', sort keys %errors) . ')');
	%sum = map { $_ => 0 } keys %sum;
	$opt{sabotage} = 1;
	$opt{quiet} = 1;
	run_seed(3, 150);
	$check->($sum{failed} >= 60, "missing rows are noticed ($sum{failed} of 150)");
	delete @opt{qw(sabotage quiet)};
	my $session = HGJ::Session->new(dbname => $db);
	my $q = { mode => 'plain', sql => 'select 1', explain => 'select 1', common => {}, force => {} };
	$opt{forced_extra} = "select pg_terminate_backend(pg_backend_pid());\n";
	my $r = HGJ::Runner::judge($session, $q, \%opt);
	$check->($r->{verdict} eq 'fail' && $r->{crash}, 'a lost connection is noticed');
	$check->($session->revive, 'and the session comes back');
	$opt{forced_extra} = "select 1/0;\n";
	$r = HGJ::Runner::judge($session, $q, \%opt);
	$check->($r->{verdict} eq 'fail', 'an error is noticed');
	$session->disconnect;
	print "$passed passed, $failed failed\n";
	exit($failed ? 1 : 0);
}

self_test() if $opt{'self-test'};

admin("alter database $db set session_preload_libraries = 'hashgraph_join';");
admin("alter database $db set hashgraph_join.cuda_library = '$opt{library}';") if $opt{library};
# small tables' build sides, too, are made on the device
admin("alter database $db set hashgraph_join.device_side_rows = 0;") if $opt{load};
my $probe = HGJ::Session->new(dbname => $db, bare => 1);
my $e = $probe->run("set client_min_messages = warning; create extension hashgraph_join;");
die "$0: ", defined $e ? "@$e" : 'connection lost', "\n" if !defined $e || @$e;
$probe->disconnect;

my $begin = time;
run_seed($_, $opt{queries}) for $opt{seed} .. $opt{seed} + $opt{seeds} - 1;

my $share = $sum{hashable} ? 100 * $sum{node} / $sum{hashable} : 0;
printf "%.0f s; not compared: %d queries too long for stock PostgreSQL, %d whose forced nested loops or passes are\n",
  time - $begin, $sum{skipped} - $sum{slow}, $sum{slow};
printf "%d queries raised an error in both, the same SQLSTATE: %s\n", $sum{errors}, join ', ', map { "$_ ($errors{$_})" } sort keys %errors;
printf "HashGraphJoin was in the plans of %d of %d queries with a hashable join (%.1f%%)\n", @sum{qw(node hashable)}, $share;
printf "%d of %d results had no rows, %d of %d of the star's\n", $sum{empty}, $sum{passed} + $sum{failed}, @sum{qw(star_empty star)};
printf "combinations of build, probe and segments: %d of 60; analyzed plans with several passes: %d, with match bits on file: %d, with partitions: %d, with spilled groups: %d\n", scalar keys %combo, @sum{qw(passes bits partitions spills)};
print 'seen: ', join('; ', map { "$_ $seen{$_}" } sort keys %seen), "\n";
print 'modes: ', join('; ', map { "$_ $modes{$_}" } sort keys %modes), "\n";
print "sources of the star's queries: ", join('; ', map { "$_ $sources{$_}" } sort keys %sources), "\n";
printf "in plans (the star's, but for chunked, partitioned and passed) that could: %s\n", join '; ', map { sprintf "$_ %d of %d", @{ $use{$_} } } sort keys %use;
my $bad = $sum{failed};
my $want = sub { my ($ok, $what) = @_; return if $ok; print "FAILED: $what\n"; $bad++ };
if (!$opt{only})
{
	my $all = $sum{passed} + $sum{failed} + $sum{skipped};
	$want->($share >= 80, 'fewer than 80% of the queries with a hashable join ran through HashGraphJoin');
	$want->($sum{skipped} <= 0.05 * $all, 'more than 5% of the queries were too long to compare');
	$want->($sum{slow} <= 0.01 * $all + 1, 'more than 1% of the forced queries were too long to compare');
	$want->($sum{errors} <= 0.05 * $all, 'more than 5% of the queries are errors');
	$want->(($seen{'Device Pipeline: yes'} || 0) >= $all / 100, 'fewer than 1% of the queries ran as a pipeline') if ($opt{engine} || '') eq 'cuda';
	if ($all >= 1000)
	{
		for my $what (sort keys %demand)
		{
			my ($did, $could) = @{ $use{$what} };
			$want->($could >= 10 && 100 * $did >= $demand{$what} * $could, "less than $demand{$what}% of the plans that could show $what ($did of $could)");
		}
		$want->(scalar keys %combo == 60, 'not every combination of build, probe and segments ran');
		$want->($sum{passes} > 0, 'no join ran in several passes');
		$want->($sum{partitions} > 0, 'no join ran in partitions');
		$want->($sum{bits} > 0, 'no match bits went to a file');
		for my $type (qw(Inner Left Right Full Semi Anti))
		{
			$want->($seen{"Join Type: $type"}, "no $type join ran");
		}
	}
}
print "$sum{passed} passed, $bad failed\n";
exit($bad ? 1 : 0);
