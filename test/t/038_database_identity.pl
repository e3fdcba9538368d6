# Columns kept in memory of a database that is dropped are not those of another one which
# gets its number, though the new one's pages look older than what was kept: STRATEGY =
# FILE_COPY copies the template's, LSNs included.  On a primary, where a session loads
# while DROP DATABASE waits for it, and on a standby, where nobody drops anything.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my $number = 70001;
my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', join "\n", 'jit = off', 'autovacuum = off', "shared_preload_libraries = 'hashgraph_join'",
	"hashgraph_join.column_memory = '16MB'", 'hashgraph_join.column_loading = off', 'hashgraph_join.min_rows = 0', 'hashgraph_join.force = on',
	'max_parallel_workers_per_gather = 0');
$primary->start;

sub sql { my ($sql, $database) = @_; return $primary->safe_psql($database // 'postgres', $sql) }

my $sums = 'SELECT count(*), sum(v) FROM t';
my $stock = "SET hashgraph_join.enabled = off; SET hashgraph_join.aggregate = off; $sums";
my $source = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $sums";

sub agrees
{
	my ($node, $database, $what) = @_;
	is($node->safe_psql($database, $sums), $node->safe_psql($database, $stock), $what);
}

# The template, and the database that will not be the only one of its number.
sql('CREATE DATABASE pattern');
sql($_, 'pattern') for 'CREATE EXTENSION hashgraph_join', 'CREATE TABLE t AS SELECT i AS id, 2 AS v FROM generate_series(1, 50000) i', 'VACUUM (FREEZE, ANALYZE) t';
my $create = "CREATE DATABASE again OID = $number STRATEGY = FILE_COPY TEMPLATE pattern";
my @other = ('UPDATE t SET v = v + 1 WHERE id % 2 = 0', 'DELETE FROM t WHERE id % 300 = 0', 'VACUUM (FREEZE, ANALYZE) t');

sub make_another { sql($create); sql($_, 'again') for @other; return }
make_another();

# ---- on a primary
sql("SELECT hashgraph_join_load('t')", 'again');
like(sql($source, 'again'), qr/Source: columns \(100%|Device Columns: 100%/, 'columns are kept, and read');
agrees($primary, 'again', 'rightly');

# DROP DATABASE has forgotten them when a session of the database loads them once more.  It
# waits five seconds for that session: if that was not enough, all of it is done again.
my ($dropped, $loaded) = (0, 0);
until ($dropped)
{
	my ($out, $err) = ('', '');
	my $session = $primary->background_psql('again', on_error_stop => 0);
	$session->query_safe("SELECT hashgraph_join_load('t')");
	my $drop = IPC::Run::start([ 'psql', '-XAtq', '-d', $primary->connstr('postgres'), '-c', 'DROP DATABASE again' ], '>', \$out, '2>', \$err);
	usleep(10_000) while $session->query_safe('SELECT count(*) FROM hashgraph_join_kept()') > 0;
	$loaded = $session->query_safe("SELECT hashgraph_join_load('t')");
	$session->quit;
	$dropped = $drop->finish;
	like($err, $dropped ? qr/^$/ : qr/being accessed by other users/, 'DROP DATABASE ends, or has to be tried again');
}
is($loaded, 2, 'columns are loaded while DROP DATABASE waits');
sql($create);
agrees($primary, 'again', 'another database of the same number reads its own rows');
is(sql('SELECT count(*) FROM hashgraph_join_kept()', 'again'), 0, 'nothing is kept of it');
is(sql("SELECT hashgraph_join_load('t')", 'again'), 2, 'its columns are loaded');
like(sql($source, 'again'), qr/Source: columns \(100%|Device Columns: 100%/, 'and read');
agrees($primary, 'again', 'rightly, too');

# ---- a database that is changed, while a session has known it before
my $session = $primary->background_psql('again', on_error_stop => 0);
is($session->query_safe("SELECT hashgraph_join_load('t')"), 0, 'a session finds what is kept');
sql('ALTER DATABASE again CONNECTION LIMIT 50');
is($session->query_safe("SELECT hashgraph_join_load('t')"), 2, 'ALTER DATABASE costs what is kept');
is(sql("SELECT hashgraph_join_load('t')", 'again'), 0, '... once for all sessions');
is(sql('SELECT count(*) FROM hashgraph_join_kept()', 'again'), 2, '... and the view shows what they find');
sql('GRANT CONNECT ON DATABASE again TO pg_monitor');
is($session->query_safe("SELECT hashgraph_join_load('t')"), 2, '... and so does GRANT');
sql('ALTER DATABASE again SET work_mem = \'1MB\'');
sql('VACUUM (FREEZE)', 'again');
is($session->query_safe("SELECT hashgraph_join_load('t')"), 0, 'settings of a database and VACUUM cost nothing');
is($session->query_safe("BEGIN; ALTER DATABASE again CONNECTION LIMIT 60; SELECT hashgraph_join_load('t'); $sums; ROLLBACK"),
	"2\n" . sql($stock, 'again'), 'a transaction that changes it loads by itself');
is($session->query_safe("SELECT hashgraph_join_load('t')"), 2, '... and when it is rolled back, it is loaded again');
$session->quit;

# ---- on a standby
sql('DROP DATABASE again');
make_another();
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
is($standby->safe_psql('again', "SELECT hashgraph_join_load('t')"), 2, 'a standby loads');
like($standby->safe_psql('again', $source), qr/Source: columns \(100%|Device Columns: 100%/, 'and reads');
agrees($standby, 'again', 'rightly');
my $answer = $standby->safe_psql('again', $sums);
sql('DROP DATABASE again');
sql($create);
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
isnt($standby->safe_psql('again', $stock), $answer, 'another database of the same number has other rows');
agrees($standby, 'again', 'and a standby reads them');
is($standby->safe_psql('again', 'SELECT count(*) FROM hashgraph_join_kept()'), 0, 'nothing is kept of it there');
is($standby->safe_psql('again', "SELECT hashgraph_join_load('t')"), 2, 'its columns are loaded there');
like($standby->safe_psql('again', $source), qr/Source: columns \(100%|Device Columns: 100%/, 'and read');
agrees($standby, 'again', 'rightly, too');
$standby->promote;
agrees($standby, 'again', 'a standby that was promoted');
is($standby->safe_psql('again', "SELECT hashgraph_join_load('t')"), 0, '... has what it had');

unlike(slurp_file($_->logfile), qr/PANIC|TRAP|was terminated by signal|leak/, $_->name . "'s log knows no crash and no leak") for $primary, $standby;
$standby->stop;
$primary->stop;
done_testing();
