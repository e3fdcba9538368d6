# From version 0.1 to the one that is installed: the same objects as of a fresh
# installation, whatever of them a state between the versions had already.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('upgrade');

# Every object of the extension in a database, with all that its catalog says but OIDs.
sub objects
{
	my ($database) = @_;
	return $node->safe_psql($database, q{
		SELECT pg_describe_object(classid, objid, objsubid), deptype,
			CASE classid WHEN 'pg_proc'::regclass THEN
				(SELECT concat_ws('|', pg_get_functiondef(p.oid), p.proacl::text, p.proowner::regrole, obj_description(p.oid, 'pg_proc'))
				 FROM pg_proc p WHERE p.oid = objid)
			WHEN 'pg_class'::regclass THEN
				(SELECT concat_ws('|', pg_get_viewdef(c.oid), c.relacl::text, c.relowner::regrole, obj_description(c.oid, 'pg_class'))
				 FROM pg_class c WHERE c.oid = objid)
			END
		FROM pg_depend WHERE refclassid = 'pg_extension'::regclass
			AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'hashgraph_join')
		ORDER BY 1});
}

my ($version) = slurp_file(`pg_config --sharedir` =~ s/\s+$//r . '/extension/hashgraph_join.control') =~ /^default_version = '(.*)'$/m;
my $fresh = objects('postgres');
is($node->safe_psql('postgres', "SELECT extversion FROM pg_extension WHERE extname = 'hashgraph_join'"), $version, "a fresh installation is of version $version");
like($fresh, qr/function hashgraph_join_progress\(\)/, 'it has the newest function');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_extension_update_paths('hashgraph_join') WHERE source <> '$version' AND target = '$version' AND path IS NULL"),
	0, 'from every other version there is a way to it');

# ---- the first 0.1
$node->safe_psql('postgres', 'CREATE DATABASE first');
$node->safe_psql('first', q{SET client_min_messages = warning; CREATE EXTENSION hashgraph_join VERSION '0.1'});
isnt(objects('first'), $fresh, 'the objects of 0.1 are others');
like($node->safe_psql('first', 'SELECT engine FROM hashgraph_join_info() WHERE available'), qr/^cpu/, 'with the library of today, its function works');
$node->safe_psql('first', 'CREATE VIEW engines AS SELECT * FROM hashgraph_join_info()');
my ($rc, $out, $err) = $node->psql('first', 'ALTER EXTENSION hashgraph_join UPDATE');
is($rc, 0, 'ALTER EXTENSION UPDATE');
is($err, '', 'without a word');
is(objects('first'), $fresh, 'the objects are those of a fresh installation');
like($node->safe_psql('first', 'SELECT count(*) FROM engines'), qr/^[1-9]/, 'a view of 0.1 goes on');
is($node->safe_psql('first', "SELECT has_function_privilege('public', 'hashgraph_join_stats_reset()', 'EXECUTE')"), 'f', 'privileges, too');

# ---- a state between them: functions of other columns, and a view
$node->safe_psql('postgres', 'CREATE DATABASE between');
$node->safe_psql('between', q{SET client_min_messages = warning; CREATE EXTENSION hashgraph_join VERSION '0.1';
	CREATE FUNCTION hashgraph_join_stats(OUT datid oid, OUT joins bigint) RETURNS SETOF record LANGUAGE sql AS 'SELECT 1::oid, 1::bigint';
	CREATE FUNCTION hashgraph_join_kept(OUT tab regclass) RETURNS SETOF regclass LANGUAGE sql AS 'SELECT NULL::regclass';
	CREATE VIEW hashgraph_join_columns AS SELECT * FROM hashgraph_join_kept();
	ALTER EXTENSION hashgraph_join ADD FUNCTION hashgraph_join_stats();
	ALTER EXTENSION hashgraph_join ADD FUNCTION hashgraph_join_kept();
	ALTER EXTENSION hashgraph_join ADD VIEW hashgraph_join_columns});
$node->safe_psql('between', 'CREATE VIEW counted AS SELECT * FROM hashgraph_join_stats()');
($rc, $out, $err) = $node->psql('between', 'ALTER EXTENSION hashgraph_join UPDATE');
like($err, qr/cannot drop function hashgraph_join_stats\(\) because other objects depend on it\n.*view counted depends on function/, 'a view on a function that changes is named');
$node->safe_psql('between', 'DROP VIEW counted; ALTER EXTENSION hashgraph_join UPDATE');
is(objects('between'), $fresh, 'without it, the objects are those of a fresh installation');

# ---- in another schema, and what is somebody else's
$node->safe_psql('postgres', 'CREATE DATABASE elsewhere');
$node->safe_psql('elsewhere', q{SET client_min_messages = warning; CREATE SCHEMA tools; CREATE EXTENSION hashgraph_join VERSION '0.1' SCHEMA tools;
	CREATE FUNCTION hashgraph_join_stats() RETURNS int LANGUAGE sql AS 'SELECT 7'; ALTER EXTENSION hashgraph_join UPDATE});
is($node->safe_psql('elsewhere', 'SELECT public.hashgraph_join_stats()'), 7, "a function of the user's own name stays");
like($node->safe_psql('elsewhere', 'SELECT count(*) FROM tools.hashgraph_join_stats()'), qr/^[1-9]/, 'and the extension has its own, in its schema');
$node->safe_psql('elsewhere', 'DROP EXTENSION hashgraph_join');
is($node->safe_psql('elsewhere', "SELECT count(*) FROM pg_proc WHERE proname LIKE 'hashgraph%'"), 1, 'DROP EXTENSION takes what is the extension\'s');

$node->stop;
done_testing();
