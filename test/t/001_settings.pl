# Bad input gets a clear answer: settings, users, the script run by hand, an
# engine that is not there.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('main');
my $load = "LOAD 'hashgraph_join';";

$node->safe_psql(
	'postgres', q{
	CREATE TABLE a AS SELECT i AS k, i % 10 AS v FROM generate_series(1, 20000) i;
	CREATE TABLE b AS SELECT i * 2 AS k, i % 7 AS w FROM generate_series(1, 20000) i;
	ANALYZE a, b;
});
my $query = 'SELECT count(*), sum(v), sum(w) FROM a JOIN b USING (k)';

# ---- names and defaults, as the documentation has them
my %documented;
for my $line (split /\n/, slurp_file("$FindBin::Bin/../settings.md"))
{
	next unless $line =~ /^\| `(hashgraph_join\.\w+)` \| `([^`]*)` \|/;
	ok(!defined $documented{$1}, "$1 is documented once");
	$documented{$1} = $2;
}
is( $node->safe_psql('postgres', "$load SELECT string_agg(name, ' ' ORDER BY name COLLATE \"C\") FROM pg_settings WHERE name LIKE 'hashgraph_join.%' AND name NOT LIKE '%.debug%'"),
	join(' ', sort keys %documented), 'every setting is in docs/settings.md');
is($node->safe_psql('postgres', "$load SHOW $_"), $documented{$_}, "default of $_") for sort keys %documented;

# ---- wrong values
fails_with($node, "$load SET hashgraph_join.$_->[0] = $_->[1]", $_->[2],
	"hashgraph_join.$_->[0] = $_->[1]")
  for (
	[ engine => "'gpu'", qr/invalid value for parameter "hashgraph_join\.engine": "gpu".*Available values: auto, cpu, cuda/s ],
	[ build => "'v3'", qr/invalid value for parameter "hashgraph_join\.build": "v3".*Available values: auto, v1, v2, sort, direct/s ],
	[ probe => "'fast'", qr/Available values: auto, standard, binned/ ],
	[ segments => "'coo'", qr/Available values: auto, csr, ellpack, sliced/ ],
	[ require => "'scan'", qr/Available values: off, join/ ],
	[ enabled => "'perhaps'", qr/requires a Boolean value/ ],
	[ min_rows => '-1', qr/-1 is outside the valid range/ ],
	[ min_rows => "'many'", qr/invalid value for parameter "hashgraph_join\.min_rows"/ ],
	[ startup_cost => '-1', qr/-1 is outside the valid range/ ],
	[ build_tuple_cost => "'x'", qr/invalid value for parameter/ ],
	[ enabeld => 'on', qr/invalid configuration parameter name "hashgraph_join\.enabeld"/ ]);

fails_with($node, "$load ALTER SYSTEM SET hashgraph_join.misspelt = 1",
	qr/(unrecognized configuration parameter|invalid configuration parameter name) "hashgraph_join\.misspelt"/,
	'ALTER SYSTEM with a misspelt name');

# ---- a session without superuser's rights
$node->safe_psql(
	'postgres', q{
	CREATE ROLE analyst LOGIN;
	GRANT SELECT ON a, b TO analyst;
	CREATE DATABASE other;
});
my @analyst = (extra_params => [ '-U', 'analyst' ]);
fails_with($node, $load, qr/access to library "hashgraph_join" is not allowed/,
	'LOAD by a non-superuser', @analyst);
fails_with($node, 'CREATE EXTENSION hashgraph_join',
	qr/extension "hashgraph_join" already exists|permission denied/,
	'CREATE EXTENSION twice', @analyst);
my ($rc, $out, $err) =
  $node->psql('other', 'CREATE EXTENSION hashgraph_join', @analyst);
isnt($rc, 0, 'CREATE EXTENSION by a non-superuser fails');
like($err, qr/permission denied to create extension "hashgraph_join".*Must be superuser/s,
	'CREATE EXTENSION by a non-superuser says who can');

# Calling the function loads the library, and then every setting is theirs.
my $stock = $node->safe_psql('postgres', $query);
is( $node->safe_psql('postgres',
		"SELECT count(*) FROM hashgraph_join_info() WHERE engine = 'cpu' AND available;"
		  . "SET hashgraph_join.force = on; SET hashgraph_join.require = 'join'; $query",
		@analyst),
	"1\n$stock",
	'a non-superuser joins through the node, once the library is loaded');
$node->safe_psql('postgres',
	"ALTER DATABASE postgres SET session_preload_libraries = 'hashgraph_join'");
joined_plan($node, 'SET hashgraph_join.force = on;', $query, 'session_preload_libraries, superuser');
my $plan = $node->safe_psql('postgres',
	"SET hashgraph_join.force = on; EXPLAIN (COSTS OFF) $query", @analyst);
like($plan, qr/HashGraphJoin/, 'session_preload_libraries, non-superuser');
$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET session_preload_libraries');

# ---- the extension's script run by hand
my $script = `pg_config --sharedir`;
chomp $script;
my %scripts = ('0.1' => 'CREATE EXTENSION hashgraph_join', '0.2' => 'CREATE EXTENSION hashgraph_join',
	'0.1--0.2' => "ALTER EXTENSION hashgraph_join UPDATE TO '0.2'");
for my $version (sort keys %scripts)
{
	my $file = "$script/extension/hashgraph_join--$version.sql";
	ok(-r $file, "the extension script of $version is installed");
	my ($stdout, $stderr) = ('', '');
	IPC::Run::run([ 'psql', '-X', '-d', $node->connstr('other'), '-f', $file ],
		'>', \$stdout, '2>', \$stderr);
	like("$stdout$stderr", qr/Use "\Q$scripts{$version}\E" to load this file\./,
		'run by hand it says how');
}
is($node->safe_psql('other', "SELECT count(*) FROM pg_proc WHERE proname LIKE 'hashgraph%'"),
	0, 'and makes nothing');

# ---- engines: there is no GPU here, and the CUDA library only where nvcc is
my $pkglib = `pg_config --pkglibdir`;
chomp $pkglib;
my $no_cuda = -e "$pkglib/hashgraph_join_cuda.so" ? qr/there is no (NVIDIA driver|CUDA device)/
  : qr/hashgraph_join_cuda\.so.*(not found|No such file)/;
is($node->safe_psql('postgres',
	"SELECT engine, available, engine = 'cpu' OR detail IS NULL FROM hashgraph_join_info() ORDER BY engine"),
	"cpu|t|t\ncuda|f|f", 'hashgraph_join_info(): cpu is there, cuda is not');
is($node->safe_psql('postgres',
	"SELECT version = (SELECT extversion FROM pg_extension WHERE extname = 'hashgraph_join') FROM hashgraph_join_info() WHERE engine = 'cpu'"),
	't', 'hashgraph_join_info(): the library is of the version of the extension');
like($node->safe_psql('postgres',
	"SELECT detail FROM hashgraph_join_info() WHERE engine = 'cuda'"),
	$no_cuda, 'hashgraph_join_info(): says what is missing: the library, or a device');

is($node->safe_psql('postgres', "$FORCED SET hashgraph_join.engine = 'cuda'; $query"),
	$stock, 'engine = cuda without a GPU: the right answer');
$plan = $node->safe_psql('postgres',
	"$FORCED SET hashgraph_join.engine = 'cuda'; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query");
like($plan, qr/Engine: cpu/, 'engine = cuda without a GPU: runs on cpu');
like($plan, qr/Fallback: .*$no_cuda/,
	'engine = cuda without a GPU: EXPLAIN ANALYZE says why');
unlike($node->safe_psql('postgres', "$FORCED EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $query"),
	qr/Fallback/, 'engine = auto without a GPU is no fallback');

# ---- on and off
joined_plan($node, "$load SET hashgraph_join.force = on;", $query, 'force takes the node');
unlike($node->safe_psql('postgres', "$load SET hashgraph_join.force = on; SET $_ = off; EXPLAIN $query"),
	qr/HashGraphJoin/, "$_ = off takes the node out, force or not")
  for ('enable_hashjoin', 'hashgraph_join.enabled');

# ---- require: an error exactly where a join that could be ours is not
fails_with($node, "$load SET hashgraph_join.require = 'join'; SET hashgraph_join.startup_cost = 1e12; $query",
	qr/planned without HashGraphJoin.*HINT/s, 'require without the node');
fails_with($node, "$load SET hashgraph_join.require = 'join'; SET hashgraph_join.startup_cost = 1e12; SET enable_hashjoin = on; SELECT (SELECT count(*) FROM a JOIN b USING (k))",
	qr/planned without HashGraphJoin/, 'require without the node, in a subquery');
is($node->safe_psql('postgres', "$FORCED SELECT count(*) FROM a WHERE v = 1"),
	2000, 'require lets a query without joins pass');
is($node->safe_psql('postgres', "$FORCED SELECT count(*) FROM (SELECT * FROM a LIMIT 10) x JOIN (SELECT * FROM b LIMIT 10) y ON x.k < y.k"),
	$node->safe_psql('postgres', 'SELECT count(*) FROM (SELECT * FROM a LIMIT 10) x JOIN (SELECT * FROM b LIMIT 10) y ON x.k < y.k'),
	'require lets a join without an equality pass');

# ---- small joins stay with PostgreSQL, large ones do not
$node->safe_psql('postgres', q{
	CREATE TABLE s AS SELECT i AS k FROM generate_series(1, 5000) i; ANALYZE s;
	CREATE TABLE l AS SELECT i * 7919::bigint AS k, i AS v FROM generate_series(1, 1000000) i; ANALYZE l;
});
unlike($node->safe_psql('postgres', "$load EXPLAIN SELECT count(*) FROM s x JOIN s y USING (k)"),
	qr/HashGraphJoin/, 'a join of 5,000 rows is left to PostgreSQL');
like($node->safe_psql('postgres', "$load SET max_parallel_workers_per_gather = 0; SET work_mem = '256MB'; EXPLAIN SELECT count(*), sum(x.v) FROM l x JOIN l y USING (k)"),
	qr/HashGraphJoin/, 'a join of a million rows is taken');

# ---- EXPLAIN: every format, and nothing volatile without ANALYZE
for my $format (qw(text json yaml xml))
{
	my $plain = $node->safe_psql('postgres', "$FORCED EXPLAIN (FORMAT $format, COSTS OFF) $query");
	like($plain, qr/Join[ -]Type/, "EXPLAIN, $format: join type");
	like($plain, qr/Hash[ -]Cond/, "EXPLAIN, $format: clause");
	unlike($plain, qr/Memory|Vertices|Engine/, "EXPLAIN, $format: nothing of a run");
	my $run = $node->safe_psql('postgres', "$FORCED EXPLAIN (ANALYZE, FORMAT $format) $query");
	like($run, qr/$_/, "EXPLAIN ANALYZE, $format: $_")
	  for ('Engine', 'Build', 'Probe', 'Segments', 'Vertices', 'Build[ -]Rows', 'Memory[ -]Usage');
}
is($node->safe_psql('postgres', "$FORCED EXPLAIN (ANALYZE, FORMAT json) $query") =~ /"Build Rows": (\d+)/ && $1,
	20000, 'EXPLAIN ANALYZE: rows of the build side');

# ---- DROP EXTENSION leaves nothing
$node->safe_psql('postgres', 'DROP EXTENSION hashgraph_join');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_proc WHERE proname LIKE 'hashgraph%'"),
	0, 'DROP EXTENSION drops the function');
is($node->safe_psql('postgres', 'CREATE EXTENSION hashgraph_join; SELECT count(*) FROM hashgraph_join_info()'),
	2, 'and it can be created again');

$node->stop;
done_testing();
