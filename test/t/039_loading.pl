# hashgraph_join_load() keeps tables as bulk loads leave them: written by COPY ... FREEZE in
# the transaction that has made them, without WAL, so that neither their pages nor those of
# their visibility maps have an LSN.  What it cannot keep it says, and why: also where
# several sessions load at once, and there is no room for all.
use strict;
use warnings;

use FindBin;
use List::Util qw(max);
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
# How much of the table is kept, in percent: from 16 on, COPY leaves up to 64 new pages behind it.
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
cmp_ok(kept(), '>', 85, 'and read');
agrees('loaded');

# What changes is noticed, before VACUUM gives the map an LSN and after it (minor releases of
# 17 and 18 do that when a bit is cleared).
my $old = $node->background_psql('postgres', on_error_stop => 0);
my $before = $old->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; $sums");
sql('UPDATE bulk SET v = 8 WHERE id BETWEEN 30000 AND 30100');
cmp_ok(kept(), '<', 100, 'its pages are read');
cmp_ok(kept(), '>', 80, '... and no others');
agrees('updated');
sql('DELETE FROM bulk WHERE id > 58000');
agrees('deleted');
is($old->query_safe($sums), $before, 'an old snapshot sees what it saw');
$old->query_safe('COMMIT');
$old->quit;
sql('VACUUM bulk');
isnt(sql($map_lsn), '0/0', 'VACUUM gives the map an LSN');
cmp_ok(kept(), '>', 80, 'what has not changed stays valid');
agrees('vacuumed');
is(sql("SELECT hashgraph_join_load('bulk')"), 4, 'what has changed is loaded');
cmp_ok(kept(), '>', 85, 'and read');
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
agrees('another map');
sql("SELECT hashgraph_join_load('bulk')");
cmp_ok(kept(), '>', 85, 'which is as good for what is loaded then');
agrees('loaded by another map');

# ---- what cannot be kept is said
sub said { my ($rc, $out, $err) = $node->psql('postgres', "SELECT hashgraph_join_load($_[0])"); return "$out\n" . $err =~ s/^psql:<stdin>:\d+: //mgr }
my $less = qr/^WARNING:  columns of table "(\w+)" are not kept of all of its pages$/m;
my $others = qr/^NOTICE:  chunks of columns that have made room for those of table "(\w+)": \d+$/m;
sql("BEGIN; $make; COMMIT");
is(said("'bulk'"), "4\n", 'where all is kept, nothing is said');
is(said("'bulk'"), "0\n", 'nor where all had been kept before');
is(said("'bulk', '{}'"), "0\n", 'nor where nothing is to be');
my $all = sql("SELECT pg_relation_size('bulk') / 8192");
sql('UPDATE bulk SET v = 8 WHERE id BETWEEN 30000 AND 30100');
my $visible = sql("SELECT count(*) FROM pg_visibility_map('bulk') WHERE all_visible");
my $not_visible = join "\n", 'WARNING:  columns of table "bulk" are not kept of all of its pages', 'DETAIL:  Pages that are not all-visible: ' . ($all - $visible) . " of $all.",
  'HINT:  VACUUM the table when the transactions that have written to it, and all that are older, have ended and are on disk.  Then load it again.';
is(said("'bulk'"), "0\n$not_visible", 'pages that are not all-visible');
my $older = $node->background_psql('postgres', on_error_stop => 0);
$older->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM bulk');
sql('UPDATE bulk SET v = 9 WHERE id BETWEEN 30000 AND 30100');
sql('VACUUM bulk');
like(said("'bulk'"), $less, 'a VACUUM that an older snapshot is in the way of');
$older->query_safe('COMMIT');
$older->quit;
sql('VACUUM bulk');
is(said("'bulk'"), "4\n", 'one that comes later helps');
agrees('and what is loaded');

sql(q{CREATE TABLE odd (id int, "long" text); ALTER TABLE odd ALTER "long" SET STORAGE EXTERNAL;
	INSERT INTO odd SELECT i, CASE WHEN i % 5000 = 1 THEN repeat('x', 5000) ELSE 'short' END FROM generate_series(1, 20000) i;
	ALTER TABLE odd ADD late int DEFAULT 5; INSERT INTO odd SELECT i, 'short', 6 FROM generate_series(20001, 40000) i});
sql('VACUUM odd');
my $odd = qr/$less\nDETAIL:  Pages without column "long": 4 with values out of line\.\nPages without column "late": (\d+) with rows from before it was added\.\nHINT:  VACUUM FULL .* Values out of line .*  Then load it again\.$/m;
like(said("'odd'"), qr/^3\n$odd/, 'values out of line, and rows without the column');
like(said("'odd'"), qr/^0\n$odd/, 'are told of each time');
like(said("'odd', '{long}'"), qr/^0\nWARNING.*\nDETAIL:  Pages without column "long": 4 with values out of line\.\nHINT/, '... of the columns that are to be loaded');
sql('VACUUM FULL odd; ');
sql('VACUUM odd');
unlike(said("'odd'"), qr/late/, 'the hint helps');

# Several sessions at once: with room for all of it, and without.
sql("CREATE TABLE part_$_ AS SELECT i AS a, i * 7919 AS b, md5((i + $_ * 30000)::text) AS c FROM generate_series(1, 30000) i") for 1 .. 4;
sql("VACUUM part_$_") for 1 .. 4;
my $part = q{SELECT count(*) FROM (SELECT FROM hashgraph_join_columns c WHERE tab::text LIKE 'part_%' AND pages = pg_relation_size(tab) / 8192) x};
sub load_at_once
{
	my @sessions = map { { table => "part_$_", out => '', err => '' } } 1 .. 4;
	$_->{run} = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', "SELECT hashgraph_join_load('$_->{table}')" ], '>', \$_->{out}, '2>', \$_->{err}) for @sessions;
	$_->{run}->finish for @sessions;
	return join '', map { $_->{out}, $_->{err} } @sessions;
}
is(load_at_once(), "3\n" x 4, 'several sessions load at once, with room for all of them');
is(sql($part), 12, '... and all is kept');
$node->append_conf('postgresql.conf', "hashgraph_join.column_memory = '4MB'\n");
$node->restart;
my $at_once = load_at_once();
cmp_ok(sql($part), '<', 12, 'without it, some is not kept');
like($at_once, qr/$less|$others/, '... which somebody has been told');
like($at_once, qr/^HINT:  Increase hashgraph_join\.column_memory, or load fewer columns\./m, '... and what to do');
sql('SELECT hashgraph_join_unload(tab) FROM (SELECT DISTINCT tab FROM hashgraph_join_columns) t');
is(said("'part_1'"), "3\n", 'there is room for a table');
my $put_out = join '', map { said("'part_$_'") } 2 .. 4;
like($put_out, qr/^(3\n)+$others/, 'which has to make room for others');
unlike($put_out, $less, '... that are kept as a whole');
sql('CREATE TABLE wide AS SELECT p.a, p.b, p.c, q.c AS d, p.c || left(q.c, 20) AS e FROM part_1 p JOIN part_2 q USING (a)');
sql('VACUUM wide');
like(said("'wide'"), qr/^4\n$less\nDETAIL:  Pages without column "e": \d+ for which there was no room\.\nHINT:  Increase.*\n$others/, 'of one that is too large some columns are kept as a whole, and others not');
$node->append_conf('postgresql.conf', "hashgraph_join.column_memory = '1MB'\n");
$node->restart;
like(said("'part_1', '{a, c}'"), qr/^2\n$less\nDETAIL:  Pages without column "c": \d+ with more than the memory for columns takes at once\.\nHINT:  Increase/, 'and so is a column');

# ---- a standby of such a server, which logs from now on
sql("BEGIN; $make; COMMIT");
$node->append_conf('postgresql.conf', join "\n", 'wal_level = replica', 'max_wal_senders = 5', 'hot_standby = on', "hashgraph_join.column_memory = '32MB'", '');
$node->set_replication_conf;
$node->restart;
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
is($standby->safe_psql('postgres', $map_lsn), '0/0', 'the map has no LSN on a standby');
is($standby->safe_psql('postgres', "SELECT hashgraph_join_load('bulk')"), 4, 'the standby loads it');
cmp_ok(kept($standby), '>', 85, 'and reads');
agrees('standby', $standby);
for my $change ('UPDATE bulk SET v = 9 WHERE id BETWEEN 100 AND 300', 'VACUUM bulk', 'DELETE FROM bulk WHERE id > 59000', 'VACUUM bulk')
{
	sql($change);
	$node->wait_for_catchup($standby, 'replay', $node->lsn('insert'));
	cmp_ok(kept($standby), '>', 80, "standby, $change: most stays valid");
	agrees("standby, $change", $standby);
}
isnt($standby->safe_psql('postgres', $map_lsn), '0/0', 'it gets one there, too');
$standby->stop;

# ---- the columns' memory: in huge pages, or a message says why not
my $huge = PostgreSQL::Test::Cluster->new('huge');
$huge->init;
$huge->append_conf('postgresql.conf', join "\n", @conf, 'huge_pages = off', 'min_dynamic_shared_memory = 0', 'restart_after_crash = on');
$huge->start;
$huge->safe_psql('postgres', 'CREATE EXTENSION hashgraph_join');
$huge->safe_psql('postgres', "CREATE TABLE wide AS SELECT i::bigint * 7919 * 7919 * 7919 AS a, i::bigint * 104729 * 104729 AS b FROM generate_series(1, 700000) i; VACUUM wide");
for my $server ('a server', 'the server after a crash')
{
	my ($rc, $out, $messages) = $huge->psql('postgres', "SET client_min_messages = debug1; SELECT hashgraph_join_load('wide')");
	cmp_ok($out, '>', 3, "$server keeps columns");
	my $reader = $huge->background_psql('postgres');
	my $sum = 'SELECT sum(a), sum(b) FROM wide';
	is($reader->query_safe($sum), $huge->safe_psql('postgres', "$stock $sum"), '... and reads them right');
	my $pid = $reader->query_safe('SELECT pg_backend_pid()');
	my $mapped = max(slurp_file("/proc/$pid/smaps") =~ /^ShmemPmdMapped: +(\d+) kB/mg);
	ok(($mapped >= 2048 || $messages =~ /kept columns are in small pages of memory(?: in part)?: \S/), '... in huge pages, or says why not') or diag("mapped $mapped kB, $messages");
	$reader->quit;
	last if $server =~ /crash/;
	kill 'KILL', $huge->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'");
	ok(comes_back($huge, 'SELECT count(*) = 0 FROM hashgraph_join_columns'), 'what was kept before a crash has gone');
}
$huge->stop;

unlike(slurp_file($_->logfile), qr/PANIC|TRAP|was terminated by signal|leak/, $_->name . "'s log knows no crash and no leak") for $node, $standby;
$node->stop;
done_testing();
