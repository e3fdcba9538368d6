# hashgraph_join_load() keeps tables as bulk loads leave them: written by COPY ... FREEZE in
# the transaction that has made them, without WAL, so that neither their pages nor those of
# their visibility maps have an LSN.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('bulk');
$node->init;
my @conf = ('jit = off', 'autovacuum = off', "shared_preload_libraries = 'hashgraph_join'", "hashgraph_join.column_memory = '32MB'",
	'hashgraph_join.column_loading = off', 'hashgraph_join.min_rows = 0', 'hashgraph_join.force = on', 'max_parallel_workers_per_gather = 0');
$node->append_conf('postgresql.conf', join "\n", @conf, 'wal_level = minimal', 'max_wal_senders = 0', 'wal_skip_threshold = 0');
$node->start;
sub sql { return $node->safe_psql('postgres', $_[0]) }
sql("CREATE EXTENSION $_") for 'hashgraph_join', 'pageinspect', 'pg_visibility';

my $sums = 'SELECT count(*), sum(id), sum(v), max(t) FROM bulk';
my $stock = 'SET hashgraph_join.enabled = off; SET hashgraph_join.aggregate = off;';
my $source = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $sums";
my $map_lsn = q{SELECT lsn FROM page_header(get_raw_page('bulk', 'vm', 0))};
my $page_lsn = q{SELECT lsn FROM page_header(get_raw_page('bulk', 0))};

sub agrees
{
	my ($what, $server) = @_;
	$server //= $node;
	is($server->safe_psql('postgres', $sums), $server->safe_psql('postgres', "$stock $sums"), "$what: answers are right");
}
# How much of the table is kept, in percent.
sub kept { my $server = shift // $node; return $server->safe_psql('postgres', $source) =~ /Source: columns \((\d+)% of/ ? $1 : 0 }

# ---- tables whose map has no LSN
my $file = $node->basedir . '/bulk.csv';
sql("COPY (SELECT i, i % 100, i % 7, 'text ' || i % 1000 FROM generate_series(1, 60000) i) TO '$file'");
my $make = "DROP TABLE IF EXISTS bulk; CREATE TABLE bulk (id int, k int, v int, t text) WITH (fillfactor = 70); COPY bulk FROM '$file' (FREEZE)";
fails_with($node, "BEGIN; $make; SELECT hashgraph_join_load('bulk')", qr/this transaction has created or rewritten it/, 'who has made the table, and has not committed yet');
sql("BEGIN; $make; COMMIT");
is(sql($map_lsn), '0/0', 'the map has no LSN');
is(sql(q{SELECT count(*) FROM generate_series(0, pg_relation_size('bulk') / 8192 - 1) b, page_header(get_raw_page('bulk', b::int)) h WHERE h.lsn <> '0/0'}), 0, 'nor have pages');
is(sql("SELECT hashgraph_join_load('bulk')"), 4, 'it is loaded');
is(sql("SELECT hashgraph_join_load('bulk')"), 0, 'once');
is(kept(), 100, 'and read');
agrees('loaded');

# What changes is noticed, before VACUUM gives the map an LSN and after it.
my $old = $node->background_psql('postgres', on_error_stop => 0);
my $before = $old->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; $sums");
sql('UPDATE bulk SET v = 8 WHERE id BETWEEN 30000 AND 30100');
is(sql($map_lsn), '0/0', 'an update does not give it one');
cmp_ok(kept(), '<', 100, 'its pages are read');
cmp_ok(kept(), '>', 90, '... and no others');
agrees('updated');
sql('DELETE FROM bulk WHERE id > 58000');
agrees('deleted');
is($old->query_safe($sums), $before, 'an old snapshot sees what it saw');
$old->query_safe('COMMIT');
$old->quit;
sql('VACUUM bulk');
isnt(sql($map_lsn), '0/0', 'VACUUM does');
cmp_ok(kept(), '>', 90, 'what has not changed stays valid');
agrees('vacuumed');
is(sql("SELECT hashgraph_join_load('bulk')"), 4, 'what has changed is loaded');
is(kept(), 100, 'and read');
agrees('loaded again');

# A map that is made anew.
sql("BEGIN; $make; COMMIT");
sql("SELECT hashgraph_join_load('bulk')");
sql("SELECT pg_truncate_visibility_map('bulk')");
is(kept(), 0, 'without a map pages are read');
agrees('without a map');
sql('UPDATE bulk SET v = v + 1 WHERE id % 1000 = 1');
isnt(sql($page_lsn), '0/0', 'a page gets an LSN when it changes');
agrees('updated without a map');
sql('VACUUM bulk');
cmp_ok(kept(), '>', 0, 'with another map pages are valid that have not changed');
agrees('another map');

# ---- a standby of such a server, which logs from now on
sql("BEGIN; $make; COMMIT");
$node->append_conf('postgresql.conf', join "\n", 'wal_level = replica', 'max_wal_senders = 5', 'hot_standby = on', '');
$node->set_replication_conf;
$node->restart;
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
is($standby->safe_psql('postgres', $map_lsn), '0/0', 'the map has no LSN on a standby');
is($standby->safe_psql('postgres', "SELECT hashgraph_join_load('bulk')"), 4, 'the standby loads it');
is(kept($standby), 100, 'and reads');
agrees('standby', $standby);
for my $change ('UPDATE bulk SET v = 9 WHERE id BETWEEN 100 AND 300', 'VACUUM bulk', 'DELETE FROM bulk WHERE id > 59000', 'VACUUM bulk')
{
	sql($change);
	$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
	cmp_ok(kept($standby), '>', 90, "standby, $change: most stays valid");
	agrees("standby, $change", $standby);
}
isnt($standby->safe_psql('postgres', $map_lsn), '0/0', 'it gets one there, too');
$standby->stop;

unlike(slurp_file($_->logfile), qr/PANIC|TRAP|was terminated by signal|leak/, $_->name . "'s log knows no crash and no leak") for $node, $standby;
$node->stop;
done_testing();
