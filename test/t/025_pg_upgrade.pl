# pg_upgrade: a cluster with the extension becomes another one.  The library is looked for, and
# objects, privileges, views and settings come along.  No release of Debian has two versions of
# PostgreSQL: both are the same one, or, where test/old_postgresql.sh has made it, the old one
# is 15.
#
#   HGJ_OLD_POSTGRESQL=DIR    where the old one's bin and lib are
use strict;
use warnings;

use Cwd;
use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my @settings = ("shared_preload_libraries = 'hashgraph_join'", 'jit = off', 'autovacuum = off');
my $elsewhere = $ENV{HGJ_OLD_POSTGRESQL};
my $old = PostgreSQL::Test::Cluster->new('old', $elsewhere ? (install_path => $elsewhere) : ());
$old->init;
$old->append_conf('postgresql.conf', join("\n", @settings));
$old->start;
$old->safe_psql('postgres', 'CREATE EXTENSION hashgraph_join');
like($old->safe_psql('postgres', 'SHOW server_version'), qr/^15\./, 'the old one is 15') if $elsewhere;
my $query = 'SELECT d.g, count(*), sum(f.v) FROM fact f JOIN dim d USING (k) GROUP BY d.g ORDER BY d.g';
$old->safe_psql('postgres', q{
	CREATE TABLE fact AS SELECT i % 5000 AS k, i AS v FROM generate_series(1, 50000) i;
	CREATE TABLE dim AS SELECT i AS k, i % 7 AS g FROM generate_series(0, 4999) i;
	CREATE ROLE watcher;
	GRANT EXECUTE ON FUNCTION hashgraph_join_stats_reset() TO watcher;
	CREATE VIEW nodes AS SELECT pid, kind, phase FROM hashgraph_join_progress();
	CREATE VIEW kept AS SELECT * FROM hashgraph_join_columns;
	CREATE DATABASE before;
	ALTER DATABASE postgres SET hashgraph_join.min_rows = 100;
});
# one that has not been upgraded to what is installed
$old->safe_psql('before', q{SET client_min_messages = warning; CREATE EXTENSION hashgraph_join VERSION '0.1'});
my $answer = $old->safe_psql('postgres', $query);
$old->stop;

my $new = PostgreSQL::Test::Cluster->new('new');
$new->init;
$new->append_conf('postgresql.conf', join("\n", @settings));
my $bin = `pg_config --bindir` =~ s/\s+$//r;
my $old_bin = $elsewhere ? "$elsewhere/bin" : $bin;
my $here = getcwd();
chdir PostgreSQL::Test::Utils::tempdir() or die "chdir: $!";
command_ok([ 'pg_upgrade', '--no-sync', '-d', $old->data_dir, '-D', $new->data_dir, '-b', $old_bin, '-B', $bin, '-s', $new->host, '-p', $old->port, '-P', $new->port ], 'pg_upgrade' . ($elsewhere ? ' from 15' : ''));
chdir $here or die "chdir: $!";

$new->start;
is($new->safe_psql('postgres', 'SHOW hashgraph_join.min_rows'), 100, 'a setting of the database');
joined_plan($new, "ANALYZE; SET max_parallel_workers_per_gather = 0; SET hashgraph_join.force = on;", $query, 'the library is there, and joins');
is($new->safe_psql('postgres', "SET hashgraph_join.force = on; $query"), $answer, 'the same rows');
is($new->safe_psql('postgres', 'SELECT (SELECT count(*) FROM nodes), (SELECT count(*) FROM kept)'), '0|0', 'views on functions and views of the extension');
is($new->safe_psql('postgres', "SELECT has_function_privilege('watcher', 'hashgraph_join_stats_reset()', 'EXECUTE'), has_function_privilege('public', 'hashgraph_join_stats_reset()', 'EXECUTE')"),
	't|f', 'privileges');
is($new->safe_psql('before', 'ALTER EXTENSION hashgraph_join UPDATE; SELECT count(*) > 0 FROM hashgraph_join_stats()'), 't', 'a database that was at 0.1 is upgraded afterwards');
is($new->safe_psql('postgres', 'DROP VIEW nodes, kept; DROP EXTENSION hashgraph_join; SELECT count(*) FROM pg_proc WHERE proname LIKE $$hashgraph%$$'), 0, 'DROP EXTENSION finds all of its objects');

$new->stop;
done_testing();
