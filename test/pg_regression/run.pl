#!/usr/bin/perl
#
# PostgreSQL's own regression files, stock and with every join that can be one
# as a HashGraphJoin, on the same server: results must be the same.
#
#	run.pl --source DIR [--only FILE,FILE] [--set NAME=VALUE ...] [--load] [--verbose]
#	run.pl --source DIR --self-test
#
# DIR is an unpacked PostgreSQL source tree of the server's major version;
# PGHOST, PGPORT and PGUSER name a throw-away server (the files make and drop
# roles).  Every file of parallel_schedule runs in its order, because later
# files need what earlier ones leave, first in a database with
# hashgraph_join.enabled = off and then, made anew, with hashgraph_join.force = on.
#
# Compared is psql's whole output, errors included, but for: EXPLAIN results;
# the order of rows of statements without ORDER BY; what allowed.pl lists; the
# folders that the two runs write to.  The files about joins must have plans of
# ours, or nothing would be tested.
#
# --set gives both runs one more setting (work_mem=64kB, hashgraph_join.build=v2).
# --load vacuums the database before each file, and has all columns of all tables kept
# in memory for the second run: on a server whose postmaster loads the library, with
# hashgraph_join.column_memory set.  Some of them must be read then.
# --self-test takes some rows away before the second run's files about joins,
# and passes when that is noticed.
#
# The last line is `N passed, N failed`: one test per file, and one per file
# that must show plans.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Path qw(make_path remove_tree);
use File::Temp qw(tempdir);
use Getopt::Long;

my ($source, $only, $verbose, $self_test, $load, @set) = ('', '', 0, 0, 0);
GetOptions('source=s' => \$source, 'only=s' => \$only, 'set=s' => \@set, 'verbose' => \$verbose, 'load' => \$load, 'self-test' => \$self_test)
  or die "usage: run.pl --source DIR [--only FILE,FILE] [--set NAME=VALUE ...] [--load] [--verbose | --self-test]\n";
my @settings = map { /^([\w.]+)=(.*)$/ ? "$1 = '$2'" : die "run.pl: --set $_: not NAME=VALUE\n" } @set;
$only = 'join,subselect,aggregates' if $self_test;
my $regress = "$source/src/test/regress";
die "run.pl: no regression tests in \"$source\"\n" unless -f "$regress/parallel_schedule";
my $allowed = do(dirname(abs_path($0)) . '/allowed.pl') or die "run.pl: allowed.pl: $@$!\n";
my %only = map { $_ => 1 } split /,/, $only;

# Files whose EXPLAINs must show the node.
my @must_show = qw(join join_hash partition_join partition_aggregate subselect aggregates union with inherit rowsecurity select_views);

my $dir = tempdir('hgj_pg_regression.XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $dir;

sub psql
{
	my ($database, @statements) = @_;
	my @command = ('psql', '-X', '-q', '-At', '-v', 'ON_ERROR_STOP=1', '-d', $database);
	push @command, '-c', $_ foreach @statements;
	open(my $pipe, '-|', @command) or die "run.pl: psql: $!\n";
	my @lines = <$pipe>;
	close($pipe) or die "run.pl: psql failed in $database: @statements\n";
	chomp @lines;
	return @lines;
}

# The C functions that the files use, which the packages do not have.
sub compile_regress
{
	chomp(my $config = `bash test/pg_config.sh`);
	chomp(my $include = `"$config" --includedir-server`);
	system('gcc', '-shared', '-fPIC', '-O1', '-w', "-I$include", '-o', "$dir/regress.so", "$regress/regress.c") == 0
	  or die "run.pl: could not compile regress.c\n";
	chmod 0755, "$dir/regress.so";
}

sub schedule
{
	open(my $file, '<', "$regress/parallel_schedule") or die "run.pl: parallel_schedule: $!\n";
	my @tests;
	while (<$file>)
	{
		push @tests, split ' ', $1 if /^test:\s*(.*)/;
	}
	return @tests;
}

# As pg_regress makes its database.
sub make_database
{
	my ($name, @settings) = @_;
	psql('postgres', "create database $name template template0");
	psql('postgres', map { "alter database $name set $_" } (
		"lc_messages = 'C'", "lc_monetary = 'C'", "lc_numeric = 'C'", "lc_time = 'C'",
		"bytea_output = 'hex'", "timezone_abbreviations = 'Default'", @settings));
}

# What the functions say, which nobody is to see in the database's catalogs.
sub ask_kept
{
	my ($name, $query) = @_;
	my @functions = map { "create function pg_temp.$_ as 'hashgraph_join', 'hashgraph_join_" . ($_ =~ /^(\w+)/)[0] . "' language c" } (
		'load(regclass, name[]) returns bigint',
		'kept(out tab regclass, out "column" name, out chunks bigint, out pages bigint, out "rows" bigint, out bytes bigint, out encoding text, '
		  . 'out uses bigint, out time_saved double precision, out last_use timestamptz) returns setof record');
	my @said = psql($name, "begin; " . join('; ', @functions) . "; $query; rollback");
	return $said[0] // '';
}

# Everything that can be kept; ours: is.
sub load_all
{
	my ($name, $run) = @_;
	psql($name, 'vacuum');
	ask_kept($name, "select sum(pg_temp.load(c.oid, null)) from pg_class c join pg_am a on a.oid = c.relam where c.relkind in ('r', 'm')
		and a.amname = 'heap' and c.relpersistence = 'p' and c.oid >= 16384 and c.relpages > 0
		and exists (select from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped)") if $run eq 'ours';
}

sub run_files
{
	my ($name, $run, @tests) = @_;
	my $build = "$dir/$run";
	make_path("$build/results", "$build/out");
	chmod 0777, $build, "$build/results", $dir;
	local %ENV = (%ENV, PGTZ => 'PST8PDT', PGDATESTYLE => 'Postgres, MDY', PG_ABS_SRCDIR => $regress,
		PG_ABS_BUILDDIR => $build, PG_LIBDIR => $dir, PG_DLSUFFIX => '.so', LC_MESSAGES => 'C',
		PGOPTIONS => '-c intervalstyle=postgres_verbose');
	foreach my $test (@tests)
	{
		load_all($name, $run) if $load;
		my $rc = system("timeout 300 psql -X -a -q -d $name <'$regress/sql/$test.sql' >'$build/out/$test.out' 2>&1");
		die "run.pl: the server is gone after $test\n"
		  if system('psql -X -q -d postgres -c "select 1" >/dev/null 2>&1') != 0;
		open(my $out, '>>', "$build/out/$test.out");
		print $out "psql ended with $rc\n" if $rc != 0;
		psql($name, 'delete from int4_tbl where f1 = 123456', 'delete from onek where unique1 = 9')
		  if $self_test && $run eq 'ours' && $test eq 'test_setup';
	}
}

# Does the statement itself, not one of its subqueries, say ORDER BY?
sub is_ordered
{
	my ($statement) = @_;
	$statement =~ s/--.*//g;
	1 while $statement =~ s/\([^()]*\)//g;
	return $statement =~ /\border\s+by\b/i;
}

# Notices that follow each other, in one order.
sub sorted_notices
{
	my @out;
	my @run;
	foreach my $line (@_)
	{
		if ($line =~ /^NOTICE:/)
		{
			push @run, $line;
			next;
		}
		push @out, sort(@run), $line;
		@run = ();
	}
	return (@out, sort @run);
}

# What is left of an output when all that may differ is gone.
sub normalised
{
	my ($path, $test, $plans) = @_;
	open(my $file, '<', $path) or die "run.pl: $path: $!\n";
	my @lines = map { s{\Q$dir\E/(?:stock|ours)/}{$dir/}gr } <$file>;
	@lines = sorted_notices(@lines) if grep { $_->{file} eq $test } @{ $allowed->{notices} };
	my @tables = grep { $_->{file} eq $test } @{ $allowed->{table} };
	my @ranges = grep { $_->{file} eq $test } @{ $allowed->{lines} };
	my @out;
	my $statement = '';
	my $until;

	for (my $i = 0; $i < @lines; $i++)
	{
		my $line = $lines[$i];
		if (defined $until)
		{
			undef $until if $line =~ $until;
			next;
		}
		my ($range) = grep { $line =~ $_->{from} } @ranges;
		if ($range)
		{
			push @out, "<allowed: $range->{why}>\n";
			$until = $range->{to};
			next;
		}
		# a rule is as long as a header of one column at least, a line of comment is not
		if ($line !~ /^ / || !defined $lines[ $i + 1 ] || $lines[ $i + 1 ] !~ /^--[-+]+$/)
		{
			$statement = '' if $statement =~ /;\s*\n\z/;
			$statement .= $line;
			push @out, $line;
			next;
		}

		# a result: header, rule, rows, and how many (what a \d shows ends without)
		my $header = $line;
		my @rows;
		for ($i += 2; $i < @lines && $lines[$i] =~ /^ /; $i++)
		{
			push @rows, $lines[$i];
		}
		my $footer = '';
		if ($i < @lines && $lines[$i] =~ /^\(\d+ rows?\)$/)
		{
			$footer = $lines[$i];
		}
		else
		{
			$i--;
		}
		if ($header =~ /^\s*QUERY PLAN\s*$/)
		{
			$$plans += grep { /HashGraphJoin/ } @rows;
			push @out, "<plan>\n";
		}
		elsif (my ($table) = grep { "$header$statement" =~ $_->{match} } @tables)
		{
			push @out, "<allowed: $table->{why}>\n";
		}
		else
		{
			@rows = sort @rows unless is_ordered($statement);
			push @out, $header, @rows, $footer;
		}
		$statement = '';
	}
	return \@out;
}

sub difference
{
	my ($stock, $ours) = @_;
	return '' if join('', @$stock) eq join('', @$ours);
	foreach my $part (['stock', $stock], ['ours', $ours])
	{
		open(my $file, '>', "$dir/diff.$part->[0]") or die;
		print $file @{ $part->[1] };
	}
	my $diff = `diff -U6 '$dir/diff.stock' '$dir/diff.ours'`;
	return $diff;
}

# ---------------------------------------------------------------------------

my @all = schedule();
my @tests = grep { !$allowed->{skip}{$_} } @all;
if (%only)
{
	# what everything needs, and what is asked for
	@tests = grep { $only{$_} || /^(test_setup|create_index|create_misc|create_function_c|copy|create_type|create_aggregate|create_view)$/ } @tests;
}
foreach my $test (grep { $allowed->{skip}{$_} } @all)
{
	print "not run: $test ($allowed->{skip}{$test})\n";
}

compile_regress();
my %roles = map { $_ => 1 } psql('postgres', 'select rolname from pg_roles');
my %had = map { $_ => 1 } psql('postgres', 'select datname from pg_database');
my %spaces = map { $_ => 1 } psql('postgres', 'select spcname from pg_tablespace');
my $database = 'hgj_pg_regression';	# of the same name both times: outputs show it
make_database($database, 'hashgraph_join.enabled = off', @settings);
run_files($database, 'stock', @tests);
# what is left belongs to the whole cluster, and the second run makes it again
psql('postgres', "drop database $_") foreach grep { !$had{$_} } psql('postgres', 'select datname from pg_database');
foreach my $role (grep { !$roles{$_} } psql('postgres', 'select rolname from pg_roles'))
{
	psql('postgres', "drop owned by \"$role\"", "drop role \"$role\"");
}
psql('postgres', "drop tablespace \"$_\"") foreach grep { !$spaces{$_} } psql('postgres', 'select spcname from pg_tablespace');
make_database($database, "session_preload_libraries = 'hashgraph_join'", 'hashgraph_join.force = on', @settings);
run_files($database, 'ours', @tests);
my $uses = $load ? ask_kept($database, 'select sum(uses) from pg_temp.kept()') : 0;

my ($passed, $failed) = (0, 0);
my %shown;
foreach my $test (@tests)
{
	my ($stock_plans, $our_plans) = (0, 0);
	my $stock = normalised("$dir/stock/out/$test.out", $test, \$stock_plans);
	my $ours = normalised("$dir/ours/out/$test.out", $test, \$our_plans);
	my $diff = difference($stock, $ours);
	$diff .= "stock plans have HashGraphJoin\n" if $stock_plans > 0;
	$shown{$test} = $our_plans;
	if ($diff eq '')
	{
		$passed++;
		print "ok - $test", $our_plans ? " ($our_plans HashGraphJoins in plans shown)" : '', "\n" if $verbose || $our_plans;
		next;
	}
	$failed++;
	print $self_test ? "noticed - $test\n" : "not ok - $test\n$diff";
}
foreach my $test (grep { my $t = $_; grep { $_ eq $t } @tests } @must_show)
{
	if ($shown{$test})
	{
		$passed++;
		next;
	}
	$failed++;
	print "not ok - $test shows no HashGraphJoin at all\n";
}
if ($load)
{
	$uses ? $passed++ : $failed++;
	print $uses ? 'ok' : 'not ok', " - columns kept in memory were read, $uses times\n";
}
psql('postgres', "drop database $_") foreach grep { !$had{$_} } psql('postgres', 'select datname from pg_database');
if ($self_test)
{
	# the three files about joins read those rows; test_setup does not
	my $ok = $failed >= 3 && $passed > 0;
	print $ok ? "1 passed, 0 failed\n" : "0 passed, 1 failed\n";
	exit($ok ? 0 : 1);
}
print "$passed passed, $failed failed\n";
exit($failed ? 1 : 0);
