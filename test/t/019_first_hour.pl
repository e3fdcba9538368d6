# A stranger's first hour: does CREATE EXTENSION say what is missing, do DROP EXTENSION
# and a new library leave those alone who are at work?
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('main');
$node->safe_psql(
	'postgres', q{
	CREATE TABLE a AS SELECT i AS k, i % 10 AS v FROM generate_series(1, 20000) i;
	CREATE TABLE b AS SELECT i * 2 AS k, i % 7 AS w FROM generate_series(1, 20000) i;
	ANALYZE a, b;
	CREATE DATABASE "an other";
});

# What CREATE EXTENSION says in a new session of a database.
sub said
{
	my ($before) = @_;
	my ($rc, $out, $err) = $node->psql('an other', "$before CREATE EXTENSION hashgraph_join");
	is($rc, 0, "CREATE EXTENSION $before");
	$node->safe_psql('an other', 'DROP EXTENSION IF EXISTS hashgraph_join');
	return $err;
}

my $nothing = qr/^[^\n]*NOTICE:  new sessions do not load hashgraph_join by themselves\n/;
my $hint = qr/HINT:  For this database: ALTER DATABASE "an other" SET session_preload_libraries = /;
my $set = 'ALTER DATABASE "an other" SET session_preload_libraries = ';

like(said(''), qr/$nothing${hint}'hashgraph_join'; for the whole server: put it into shared_preload_libraries, and restart\.$/,
	'nothing loads it: a NOTICE says what would');
is(said('SET client_min_messages = warning;'), '', 'who wants no NOTICE gets none');

# the hint is a statement that does what it says
my ($sql) = said('') =~ /For this database: (.*?);/;
$node->safe_psql('an other', $sql);
is(said(''), '', 'no NOTICE where the database loads it');
$node->safe_psql('an other', 'CREATE EXTENSION hashgraph_join');
like($node->safe_psql('an other', 'SHOW hashgraph_join.enabled'), qr/on/, 'new sessions have it then');
$node->safe_psql('an other', 'DROP EXTENSION hashgraph_join');

$node->safe_psql('an other', $set . q{'auto_explain'});
like(said(''), qr/$nothing${hint}'auto_explain', 'hashgraph_join';/, 'the hint keeps what is loaded already');
$node->safe_psql('an other', $set . q{'auto_explain', '$libdir/hashgraph_join'});
is(said(''), '', 'one of several, with its path');
$node->safe_psql('an other', q{ALTER ROLE CURRENT_USER IN DATABASE "an other" SET session_preload_libraries = 'auto_explain'});
like(said(''), $nothing, 'a setting of the role in the database counts before that of the database');
$node->safe_psql('an other', q{ALTER ROLE CURRENT_USER IN DATABASE "an other" RESET session_preload_libraries;
	ALTER DATABASE "an other" RESET session_preload_libraries;
	ALTER ROLE ALL SET session_preload_libraries = 'hashgraph_join'});
is(said(''), '', 'a setting of all roles');
$node->safe_psql('an other', 'ALTER ROLE ALL RESET session_preload_libraries');

# it comes when the transaction commits, if the extension is there then
my ($rc, $out, $err) = $node->psql('an other',
	'BEGIN; CREATE EXTENSION hashgraph_join; ROLLBACK; BEGIN; SAVEPOINT s; CREATE EXTENSION hashgraph_join; ROLLBACK TO s; COMMIT');
is($err, '', 'no NOTICE for what is undone');
is($node->safe_psql('an other', "SELECT count(*) FROM pg_proc WHERE proname = 'hashgraph_join_say_at_commit'"), 0,
	'the function for the NOTICE is gone');

for my $where ('session_preload_libraries', 'shared_preload_libraries')
{
	$node->append_conf('postgresql.conf', "session_preload_libraries = ''\nshared_preload_libraries = ''\n$where = 'hashgraph_join'");
	$node->restart;
	is(said(''), '', "$where in postgresql.conf");
}
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;

# ---- EXPLAIN (HASHGRAPH), which there is from 18 on
my @asked = ('SELECT count(*), sum(v) FROM a JOIN b USING (k)', 'SELECT v, w FROM a JOIN b ON a.k < b.k AND a.v = b.w WHERE b.w < 0 LIMIT 3',
	'SELECT * FROM a WHERE v > (SELECT avg(w) FROM b) AND k IN (SELECT k FROM b) ORDER BY v LIMIT 2', 'SELECT string_agg(v::text, \',\' ORDER BY v) FROM a GROUP BY k LIMIT 1');
if ($node->pg_version >= 18)
{
	for my $query (@asked)
	{
		for my $before ("LOAD 'hashgraph_join'; SET hashgraph_join.force = on;", "LOAD 'hashgraph_join';", "LOAD 'hashgraph_join'; SET hashgraph_join.enabled = off;")
		{
			my $plan = $node->safe_psql('postgres', "$before EXPLAIN (HASHGRAPH, COSTS OFF) $query");
			is(join("\n", $plan =~ /^ *HashGraph: (.*)$/mg),
				$node->safe_psql('postgres', "$before SELECT CASE WHEN taken THEN 'yes' ELSE 'no' END || coalesce(' (' || CASE WHEN reason IS NOT NULL OR NOT taken THEN reason ELSE source END || ')', '') FROM hashgraph_join_why(\$\$$query\$\$)"),
				"EXPLAIN (HASHGRAPH) says what hashgraph_join_why() says: $before $query");
			is($node->safe_psql('postgres', "$before EXPLAIN (HASHGRAPH off, COSTS OFF) $query"), $plan =~ s/^ *HashGraph: .*\n//mgr =~ s/\n *HashGraph: .*\z//r, 'and nothing else changes');
		}
	}
	like($node->safe_psql('postgres', "LOAD 'hashgraph_join'; SET hashgraph_join.enabled = off; PREPARE p AS $asked[0]; EXPLAIN (HASHGRAPH, COSTS OFF) EXECUTE p"),
		qr/Join.*HashGraph: no\n/s, 'of a prepared statement, without reasons');
	like($node->safe_psql('postgres', "LOAD 'hashgraph_join'; SET hashgraph_join.force = on; EXPLAIN (HASHGRAPH, ANALYZE, FORMAT JSON) $asked[0]"), qr/"HashGraph": "yes"/, 'in JSON, and with ANALYZE');
}
else
{
	fails_with($node, "LOAD 'hashgraph_join'; EXPLAIN (HASHGRAPH) $asked[0]", qr/unrecognized EXPLAIN option "hashgraph"/, 'EXPLAIN (HASHGRAPH) before 18');
}

# ---- DROP EXTENSION while sessions use it
my $query = 'SELECT count(*), sum(v), sum(w) FROM a JOIN b USING (k)';
my $answer = $node->safe_psql('postgres', $query);
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe("$FORCED PREPARE p AS $query; SET plan_cache_mode = force_generic_plan; EXECUTE p;");
$session->query_safe("BEGIN; DECLARE c CURSOR FOR SELECT a.v FROM a JOIN b USING (k)");
$session->query_safe('FETCH 10 FROM c');
$node->safe_psql('postgres', 'DROP EXTENSION hashgraph_join');
like($session->query_safe('FETCH ALL FROM c'), qr/^(\d\n?){9990}$/, 'a cursor goes on after DROP EXTENSION');
$session->query_safe('COMMIT');
is($session->query_safe('EXECUTE p'), $answer, 'so does a prepared statement');
is($session->query_safe($query), $answer, 'and new queries of the session, which has the library');
$session->query('SELECT hashgraph_join_release()');
like($session->{stderr}, qr/function hashgraph_join_release\(\) does not exist/, 'its functions are gone, and say so');
$session->{stderr} = '';
$session->quit;
$node->safe_psql('postgres', 'CREATE EXTENSION hashgraph_join; CREATE VIEW engines AS SELECT * FROM hashgraph_join_info()');
fails_with($node, 'DROP EXTENSION hashgraph_join', qr/other objects depend on it.*view engines depends on function/s,
	'DROP EXTENSION with a view on one of its functions');

# ---- the library is replaced while sessions have it
my $folder = PostgreSQL::Test::Utils::tempdir();
my $library = "$folder/hashgraph_join.so";
(my $installed = `pg_config --pkglibdir`) =~ s/\s+$//;
my $bytes = slurp_file("$installed/hashgraph_join.so");

# As install does: a new file in the place of the old one, which stays mapped.
sub install_library
{
	open my $fh, '>:raw', "$library.new" or die "$library.new: $!";
	print $fh shift;
	close $fh;
	rename "$library.new", $library or die "$library: $!";
}

install_library($bytes);
my $workers = 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SET parallel_leader_participation = off';
my $old = $node->background_psql('postgres', on_error_stop => 0);
$old->query_safe("LOAD '$library'; SET hashgraph_join.force = on; $workers");
my $wide = 'SELECT count(*), sum(a.v), sum(b.w) FROM a JOIN b USING (k)';
like($old->query_safe("EXPLAIN $wide"), qr/Gather.*HashGraph/s, 'a plan with workers');
is($old->query_safe($wide), $answer, 'its answer');
ok((my $other = $bytes) =~ s/(hashgraph_join build )([0-9a-f]{6})/$1 . sprintf('%06x', hex($2) ^ 0x5a5a5a)/e, 'the library says which build it is');
install_library($other);
$old->query($wide);
like($old->{stderr}, qr/ERROR:  library "hashgraph_join" has been replaced since this session loaded it.*Reconnect/s,
	'workers that load another build say so');
$old->{stderr} = '';
is($old->query_safe("SET max_parallel_workers_per_gather = 0; $wide"), $answer, 'without workers the session goes on with the library that it has');
$old->quit;
is($node->safe_psql('postgres', "LOAD '$library'; SET hashgraph_join.force = on; $workers; $wide"), $answer, 'a new session has the new one, and so have its workers');

$node->stop;
done_testing();
