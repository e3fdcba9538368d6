# Columns kept in memory, and what must not come of it: who sees what is kept, what is
# loaded again and again for nothing, what becomes of it when tables and columns go, and
# that no setting and no chunk is too large.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('limits', "shared_preload_libraries = 'hashgraph_join'", "hashgraph_join.column_memory = '32MB'",
	'hashgraph_join.column_loading = off', 'hashgraph_join.min_rows = 0', 'hashgraph_join.force = on', 'max_parallel_workers_per_gather = 0');

sub sql { return $node->safe_psql($_[1] // 'postgres', $_[0]) }
sub kept { return sql("SELECT count(*) FROM hashgraph_join_columns WHERE tab = '$_[0]'::regclass") }

# ---- who sees what is kept
sql(q{
	CREATE TABLE secret (a int, b int, c text);
	INSERT INTO secret SELECT i, i % 10, 'text ' || i FROM generate_series(1, 20000) i;
	CREATE TABLE rows_of_others (a int, owner name);
	INSERT INTO rows_of_others SELECT i, 'nobody' FROM generate_series(1, 20000) i;
	ALTER TABLE rows_of_others ENABLE ROW LEVEL SECURITY;
	CREATE POLICY own ON rows_of_others USING (owner = current_user);
	CREATE ROLE nosy;
	CREATE ROLE reader;
	CREATE ROLE watcher IN ROLE pg_monitor;
	GRANT SELECT (a) ON secret TO reader;
	GRANT SELECT ON rows_of_others TO reader;
});
sql($_) for 'VACUUM (ANALYZE) secret', 'VACUUM (ANALYZE) rows_of_others';
sql("SELECT hashgraph_join_load('secret'), hashgraph_join_load('rows_of_others')");
my $seen = q{SELECT coalesce(string_agg(tab || '.' || "column", ' ' ORDER BY tab::text, "column"), 'nothing') FROM hashgraph_join_columns};
my $all = 'rows_of_others.a rows_of_others.owner secret.a secret.b secret.c';
is(sql($seen), $all, 'a superuser sees all columns that are kept');
is(sql("SET ROLE watcher; $seen"), $all, 'and so do those who may see all statistics');
is(sql("SET ROLE nosy; $seen"), 'nothing', 'who may read nothing sees nothing');
is(sql("SET ROLE reader; $seen"), 'secret.a', 'others see columns that they may read, unless rows are hidden from them');
is(sql("ALTER TABLE rows_of_others DISABLE ROW LEVEL SECURITY; SET ROLE reader; $seen"), 'rows_of_others.a rows_of_others.owner secret.a', 'which ends with row security');

unlike(slurp_file($node->logfile), qr/TRAP|PANIC|was terminated by signal|leak/, "the server's log");
$node->stop;
done_testing();
