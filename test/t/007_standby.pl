# On a standby: snapshots taken during recovery do not trust pages that say
# they are all-visible, know of transactions in progress from the primary, and
# give way when replay needs a page.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', "jit = off\nautovacuum = off\nwal_receiver_status_interval = 1\nmax_parallel_workers_per_gather = 0");
$primary->start;
$primary->safe_psql(
	'postgres', q{
	CREATE EXTENSION hashgraph_join;
	CREATE TABLE fact (id int, k int, v int, pad text);
	INSERT INTO fact SELECT i, i % 300, i % 11, repeat('x', 50) FROM generate_series(1, 20000) i;
	CREATE TABLE dim (k int, g int);
	INSERT INTO dim SELECT i, i % 10 FROM generate_series(0, 249) i;
});
$primary->safe_psql('postgres', 'VACUUM (FREEZE, ANALYZE)');
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "hot_standby_feedback = on\nmax_standby_streaming_delay = 60s");
$standby->start;

my @queries = (
	'SELECT count(*), sum(f.id), sum(f.v), sum(d.g) FROM fact f JOIN dim d USING (k)',
	'SELECT d.g, count(*), sum(f.v) FROM fact f JOIN dim d USING (k) WHERE f.v > 3 GROUP BY 1 ORDER BY 1',
	'SELECT count(*), count(d.k), sum(f.id) FROM fact f LEFT JOIN dim d USING (k)');
my $all = join '; ', @queries;

sub caught_up { $primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert')) }

# Both ways on the standby, and PostgreSQL's own on the primary.
sub agree
{
	my ($what) = @_;
	caught_up();
	my $stock = $standby->safe_psql('postgres', $all);
	is($stock, $primary->safe_psql('postgres', $all), "$what: the standby has what the primary has");
	is($standby->safe_psql('postgres', "$FORCED $all"), $stock, "$what: read by pages");
}

my $plan = $standby->safe_psql('postgres', "$FORCED EXPLAIN (COSTS OFF) $queries[0]");
like($plan, qr/Outer Source: pages/, 'the standby reads by pages');
agree('frozen tables');
$primary->safe_psql('postgres', 'UPDATE fact SET v = v + 1 WHERE id % 7 = 0; DELETE FROM fact WHERE id % 13 = 0; UPDATE dim SET g = 0 WHERE k % 4 = 1');
agree('changed tables');
$primary->safe_psql('postgres', 'VACUUM fact; VACUUM dim');
agree('vacuumed tables');

# ---- an old snapshot on the standby, while the primary goes on
# What sessions that are gone still hold back goes first, lest its removal wait
# for a page that the cursor has pinned.
$primary->poll_query_until('postgres', 'SELECT backend_xmin IS NULL OR age(backend_xmin) <= 1 FROM pg_stat_replication')
  or die 'no feedback without a session';
$primary->safe_psql('postgres', $_) for 'VACUUM fact', 'VACUUM dim';
caught_up();
my $old = $standby->background_psql('postgres', on_error_stop => 0);
$old->query_safe($FORCED);
my $before = $old->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; $all");
my $cursor = $standby->background_psql('postgres', on_error_stop => 0);
$cursor->query_safe($FORCED);
$cursor->query_safe('BEGIN; DECLARE c CURSOR FOR SELECT f.id FROM fact f JOIN dim d USING (k)');
my $matches = $standby->safe_psql('postgres', 'SELECT count(*) FROM fact f JOIN dim d USING (k)');
# so that the primary knows of these snapshots
$primary->poll_query_until('postgres', 'SELECT backend_xmin IS NOT NULL FROM pg_stat_replication') or die 'no feedback';
$primary->safe_psql('postgres', 'UPDATE fact SET v = 100, k = k + 1 WHERE id % 3 = 0; DELETE FROM dim WHERE k < 50; INSERT INTO fact SELECT i, 1, 1 FROM generate_series(50001, 52000) i');
$primary->safe_psql('postgres', $_) for 'VACUUM fact', 'VACUUM dim';
caught_up();
is($old->query_safe($all), $before, 'an old snapshot sees what it saw');
isnt($standby->safe_psql('postgres', "$FORCED $all"), $before, 'and a new one sees the changes');
$cursor->query_safe('MOVE 100 IN c');
$primary->safe_psql('postgres', 'UPDATE fact SET v = 7');
$primary->safe_psql('postgres', 'VACUUM fact');
caught_up();
like($cursor->query('MOVE ALL IN c; \echo :ROW_COUNT'), qr/^@{[ $matches - 100 ]}$/m, 'a cursor goes on with its snapshot');
$cursor->query_safe('COMMIT');
is($old->query_safe($all), $before, 'an old snapshot still sees what it saw');
$old->query_safe('COMMIT');
$_->quit for $old, $cursor;
agree('after all that');

# ---- transactions in progress on the primary, with more subtransactions than
# a snapshot lists
my $writer = $primary->background_psql('postgres', on_error_stop => 0);
$writer->query_safe('BEGIN; UPDATE fact SET v = -5 WHERE id % 4 = 1; DELETE FROM dim WHERE k = 100;
	DO $$ BEGIN FOR i IN 1 .. 150 LOOP BEGIN UPDATE fact SET v = v - 1000 WHERE id = i; EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END $$;');
agree('a transaction in progress');
$old = $standby->background_psql('postgres', on_error_stop => 0);
$old->query_safe($FORCED);
$before = $old->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; $all");
$writer->query_safe('COMMIT');
agree('and committed');
is($old->query_safe($all), $before, 'a snapshot of before does not see it');
$old->query_safe('COMMIT');
$old->quit;
$writer->query_safe('BEGIN; UPDATE fact SET v = 9999; DELETE FROM dim');
agree('another one in progress');
$writer->query_safe('ROLLBACK');
agree('and rolled back');
$writer->quit;

# ---- replay that needs what a cursor holds: the cursor gives way
$standby->append_conf('postgresql.conf', "hot_standby_feedback = off\nmax_standby_streaming_delay = 300ms");
$standby->reload;
$cursor = $standby->background_psql('postgres', on_error_stop => 0);
$cursor->query_safe($FORCED);
$cursor->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; DECLARE c CURSOR FOR SELECT f.id FROM fact f JOIN dim d USING (k); MOVE 10 IN c');
$primary->poll_query_until('postgres', 'SELECT backend_xmin IS NULL FROM pg_stat_replication') or die 'feedback still on';
$primary->safe_psql('postgres', 'UPDATE fact SET v = v + 1 WHERE id % 2 = 0');
$primary->safe_psql('postgres', 'VACUUM (FREEZE) fact');
caught_up();
# The session is gone, or its transaction.
my $said = eval { $cursor->query('MOVE ALL IN c; \echo :ROW_COUNT') . $cursor->{stderr} } // 'connection lost';
unlike($said, qr/^\d+$/m, 'a cursor that replay cannot wait for does not go on');
like(slurp_file($standby->logfile), qr/conflict with recovery/, 'and the log says why');
eval { $cursor->quit };
agree('after the conflict');

unlike(slurp_file($_->logfile), qr/PANIC|TRAP|was terminated by signal|leak/, $_->name . "'s log knows no crash and no leak") for $primary, $standby;
$standby->stop;
$primary->stop;
done_testing();
