# What ordinary users may set and call, and that it takes nothing from others: loads of theirs
# fill room that is free, a GPU's memory is theirs as far as an administrator lets them, and
# docs/settings.md says of each setting who may set it.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $library = "$FindBin::Bin/../fake/fake.so";
my $node = new_server('others', "shared_preload_libraries = 'hashgraph_join'", "hashgraph_join.column_memory = '2MB'", 'hashgraph_join.column_loading = off',
	'hashgraph_join.gpu_server = off', "hashgraph_join.cuda_library = '$library'", 'max_parallel_workers_per_gather = 0', 'log_min_messages = debug1');
my @other = (extra_params => [ '-U', 'other' ]);
sub sql { my ($sql, @params) = @_; return $node->safe_psql('postgres', $sql, @params) }
sql(q{
	CREATE ROLE other LOGIN;
	GRANT CREATE ON SCHEMA public TO other;
	CREATE TABLE used AS SELECT i AS id, i % 1000 AS v FROM generate_series(1, 20000) i;
	CREATE TABLE second AS SELECT i AS id, i % 999 AS v FROM generate_series(1, 20000) i;
	CREATE TABLE often (a int, b int) WITH (fillfactor = 20);
	INSERT INTO often SELECT i, i % 5000 FROM generate_series(1, 120000) i;
	GRANT SELECT ON used, second TO other;
});
# many columns of few rows, which take all of the directory, and all of the memory
sql('CREATE TABLE ' . "junk$_ AS SELECT " . join(', ', map { "(i * $_) % 100000 AS c$_" } 1 .. 100) . ' FROM generate_series(1, 3000) i', @other) for 1 .. 3;
sql("VACUUM $_") for qw(used second often junk1 junk2 junk3);

# ---- docs/settings.md says who may set what
my %contexts = map { split /\|/ } split /\n/, sql("SELECT substr(name, 16), context FROM pg_settings WHERE name LIKE 'hashgraph_join.%' AND name NOT LIKE '%.debug%'");
my ($part) = slurp_file("$FindBin::Bin/../settings.md") =~ /^## Who may set what\n(.*?)^## /ms;
my %words = (anybody => 'user', superusers => 'superuser', 'postgresql.conf' => 'sighup', 'server start' => 'postmaster');
my %said;
for my $row ($part =~ /^\| (`.*) \|$/mg)
{
	my ($names, $who) = split / \| /, $row;
	next if $names =~ /\(/;    # functions
	$said{$_} = $words{$who} // $who for $names =~ /`(\w+)`/g;
}
is_deeply(\%said, \%contexts, 'docs/settings.md: who may set what');
fails_with($node, "SET hashgraph_join.$_", qr/permission denied to set parameter "hashgraph_join\./, "$_: not by others", @other)
  for grep { ($contexts{ s/ .*//r } // '') eq 'superuser' } 'load_evicts = on', 'max_device_memory = -1', "cuda_library = 'x'";

# ---- loads
sub kept { my ($table) = @_; return sql("SELECT count(*), sum(pages) FROM hashgraph_join_columns WHERE tab = '$table'::regclass AND pages > 0") }
my $full = qr/WARNING:  columns of table "junk\d" are not kept of all of its pages.*?HINT:[^\n]*Columns that are kept already make room only for superusers/s;
is(sql("SELECT hashgraph_join_load('used')"), 2, 'a superuser loads');
my $before = kept('used');
my $loaded = 0;
for my $round (1 .. 3)
{
	my $warnings = 0;
	for my $junk (1 .. 3)
	{
		my ($rc, $out, $err) = $node->psql('postgres', "SELECT hashgraph_join_load('junk$junk')", @other);
		$loaded += $out;
		$warnings++ if $err =~ $full;
	}
	cmp_ok($warnings, '>', 0, 'others are told that there is no room');
	is(kept('used'), $before, 'and nothing goes for what they load');
}
cmp_ok($loaded, '>', 50, 'what was free they have filled');
my $filled = sql("SELECT count(*) FROM hashgraph_join_columns WHERE tab::text LIKE 'junk%'");
is($filled, $loaded, 'with what is kept');

# what has changed may be loaded anew in its place
sql('UPDATE used SET v = 5 WHERE id = 777');
sql('VACUUM used');
is(sql("SELECT hashgraph_join_load('used')", @other), 2, 'what has changed since is loaded in place of what was kept');
is(sql('SET hashgraph_join.force = on; SELECT sum(v) FROM used'), sql('SET hashgraph_join.enabled = off; SELECT sum(v) FROM used'), 'the answer');
is((split /\|/, kept('used'))[0], 2, 'and kept');

# who may have others make room, and what goes first
is(sql("SELECT hashgraph_join_load('second')"), 2, 'for a superuser there is room');
is((split /\|/, kept($_))[0], 2, "$_ is kept") for qw(used second);
cmp_ok(sql("SELECT count(*) FROM hashgraph_join_columns WHERE tab::text LIKE 'junk%'"), '<', $filled, 'what others have filled it with, and nobody has read, has gone for it');
for my $way ([ 'ALTER ROLE other SET hashgraph_join.load_evicts = on', '', 'ALTER ROLE other RESET hashgraph_join.load_evicts' ],
	[ 'GRANT SET ON PARAMETER hashgraph_join.load_evicts TO other', 'SET hashgraph_join.load_evicts = on;', 'REVOKE SET ON PARAMETER hashgraph_join.load_evicts FROM other' ])
{
	sql("SELECT hashgraph_join_unload('second')");
	$node->psql('postgres', "SELECT hashgraph_join_load('junk$_')", @other) for 1 .. 3;
	sql($way->[0]);
	my ($rc, $out, $err) = $node->psql('postgres', "$way->[1] SELECT hashgraph_join_load('second')", @other);
	is("$rc $out", '0 2', "$way->[0]: there is room");
	like($err, qr/^psql:<stdin>:1: NOTICE:  chunks of columns that have made room [^\n]*\nHINT:  [^\n]*$/, '... which others have made');
	sql($way->[2]);
}

# the worker that loads what is read often is not kept from it
$node->psql('postgres', "SELECT hashgraph_join_load('junk$_')", @other) for 1 .. 3;
$node->append_conf('postgresql.conf', 'hashgraph_join.column_loading = auto');
$node->reload;
$node->poll_query_until('postgres', q{SELECT setting = 'auto' FROM pg_settings WHERE name = 'hashgraph_join.column_loading'}) or die 'no reload';
sql('SET hashgraph_join.force = on; SELECT sum(a), sum(b) FROM often') for 1 .. 2;
ok($node->poll_query_until('postgres', q{SELECT count(*) = 2 AND sum(pages) = 2 * (SELECT pg_relation_size('often') / 8192) FROM hashgraph_join_columns WHERE tab = 'often'::regclass}),
	'what is read often is kept, whatever others have filled the room with');
$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'hashgraph_join column loader'}) or die 'the loader does not end';
my $oid = sql(q{SELECT 'often'::regclass::oid});
like(slurp_file($node->logfile), qr/column loader: 4 chunks of 2 columns of table $oid\n/, 'at once: what nobody has read does not count as crowded');

# ---- a GPU's memory
sql(q{
	CREATE TABLE f AS SELECT i % 40000 AS k, i AS v FROM generate_series(1, 60000) i;
	CREATE TABLE d AS SELECT i AS k, i % 7 AS g FROM generate_series(1, 40000) i;
	ANALYZE f, d;
	GRANT SELECT ON f, d TO other;
});
my $join = 'SELECT f.v, d.g FROM f LEFT JOIN d USING (k)';
my $device = 'SET hashgraph_join.force = on; SET hashgraph_join.engine = cuda; SET hashgraph_join.build = v2;';
sub memory { my ($before, $what) = @_; return sql("$device $before EXPLAIN (ANALYZE, COSTS OFF) $join", @other) }
my ($most) = memory('') =~ /Device Memory: (\d+)kB/;
cmp_ok($most, '>', 700, 'a join takes what is free');
sql('ALTER ROLE other SET hashgraph_join.max_device_memory = 700');
for my $wish ('', "SET hashgraph_join.device_memory_limit = '1GB';")
{
	my $plan = memory($wish);
	like($plan, qr/Engine: cuda.*Fallback: (partitions|several passes) \(the build side does not fit into (device )?memory\)/s, "max_device_memory $wish: in parts");
	cmp_ok($plan =~ /Device Memory: (\d+)kB/ ? $1 : $most, '<=', 700, 'within it');
}
my ($less) = memory("SET hashgraph_join.device_memory_limit = '600kB';") =~ /Device Memory: (\d+)kB/;
cmp_ok($less, '<=', 600, 'less may be asked for');
sql('ALTER ROLE other SET hashgraph_join.max_device_memory = 0');
like(memory(''), qr/Engine: cpu.*Fallback: cpu engine \(hashgraph_join\.max_device_memory is 0\)/s, '0: no GPU');
unlike(sql("SET hashgraph_join.force = on; SET hashgraph_join.engine = auto; SET hashgraph_join.device_startup_cost = 0; SET hashgraph_join.device_launch_cost = 0; SET hashgraph_join.device_transfer_cost = 0; EXPLAIN $join", @other),
	qr/Planned Engine/, 'nor is it planned for');
is(sql('SELECT state FROM hashgraph_join_devices()', @other) =~ /open/ ? 'open' : 'not open', 'not open', 'nor opened');

$node->stop;
done_testing();
