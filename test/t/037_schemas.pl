# The extension's schema belongs to somebody who is no superuser: whatever he has made there
# that fits better than PostgreSQL's own, none of it runs, or is taken, while a superuser
# creates, updates, moves or drops the extension.  And a schema of its own, which is not in
# the search_path.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('schemas');
$node->safe_psql('postgres', 'CREATE ROLE villain LOGIN');
$node->safe_psql('postgres', 'CREATE DATABASE mine OWNER villain');
(my $share = `pg_config --sharedir`) =~ s/\s+$//;
my @scripts = map { slurp_file($_) } glob("$share/extension/hashgraph_join--*.sql");
ok(@scripts >= 3, 'the scripts are there');

# ---- what the owner of the database makes

# Of the scripts, and of what has been found in them once.
my %words = map { $_ => 1 } (map { /\b([a-z]\w*)/g } @scripts), qw(unnest string_to_array substr length starts_with btrim format quote_literal string_agg concat lower
  current_database array_agg count set_config current_setting);
my %operators = map { $_ => 1 } (map { /OPERATOR\(pg_catalog\.([^)]+)\)/g } @scripts), qw(= <> < > || ~ ~~ @>);
my $words = join ',', map { "'$_'" } sort keys %words;
my $operators = join ',', map { "'$_'" } sort keys %operators;
my $types = q{'{oid,regclass,regprocedure,name,text,"\"char\"",bool,int4,int8,text[],name[]}'::text[]};

# What a planted function does, whoever calls it: a warning cannot be rolled back.
my $deed = q{RAISE WARNING 'planted: %', who; IF (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN ALTER ROLE villain SUPERUSER; END IF; RETURN true;};

sub plant
{
	my ($schema) = @_;
	# he does not want to fall into it himself
	$node->safe_psql('mine', qq{
	SET client_min_messages = warning;
	CREATE SCHEMA IF NOT EXISTS $schema;
	SET search_path = pg_catalog;
	CREATE FUNCTION $schema.deed(who pg_catalog.text) RETURNS bool LANGUAGE plpgsql AS \$\$ BEGIN $deed END \$\$;

	-- what has made a superuser of him, with the answers of PostgreSQL's own
	CREATE FUNCTION $schema.unnest(text[]) RETURNS SETOF text LANGUAGE plpgsql AS \$\$ BEGIN PERFORM $schema.deed('unnest'); RETURN QUERY SELECT * FROM pg_catalog.unnest(\$1); END \$\$;
	CREATE FUNCTION $schema.format(text, name, text) RETURNS text LANGUAGE plpgsql AS \$\$ BEGIN PERFORM $schema.deed('format'); RETURN pg_catalog.format(\$1, \$2, \$3); END \$\$;
	CREATE FUNCTION $schema.same(oid, regclass) RETURNS bool LANGUAGE plpgsql AS \$\$ BEGIN PERFORM $schema.deed('='); RETURN \$1 OPERATOR(pg_catalog.=) \$2::oid; END \$\$;
	CREATE OPERATOR $schema.= (LEFTARG = oid, RIGHTARG = regclass, FUNCTION = $schema.same);

	DO \$do\$
	DECLARE
		types text[] := $types;
		one record;
		body text := \$\$ LANGUAGE plpgsql AS 'BEGIN RETURN $schema.deed(''%s''); END'\$\$;
	BEGIN
		-- functions of the names that scripts use, for any one and two arguments, of format() for three
		FOR one IN
			SELECT n.name, a.arguments
			FROM (SELECT DISTINCT proname AS name FROM pg_catalog.pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND proname IN ($words)) n,
				(SELECT x FROM unnest(types) x
				 UNION ALL SELECT x || ',' || y FROM unnest(types) x, unnest(types) y) a(arguments)
			UNION ALL SELECT 'format', 'text,' || y || ',' || z FROM unnest(types) y, unnest(types) z WHERE y <> 'name' OR z <> 'text'
		LOOP
			CONTINUE WHEN one.name = 'unnest' AND one.arguments = 'text[]';
			EXECUTE format('CREATE FUNCTION $schema.%I(%s) RETURNS bool ' || body, one.name, one.arguments, one.name);
		END LOOP;
		-- operators, for any two
		FOR one IN SELECT x, y FROM unnest(types) x, unnest(types) y LOOP
			EXECUTE format('CREATE FUNCTION $schema.operator(%s, %s) RETURNS bool ' || body, one.x, one.y, 'operator');
		END LOOP;
		FOR one IN SELECT x, y, o FROM unnest(types) x, unnest(types) y, unnest(ARRAY[$operators]) o WHERE o <> '=' OR x <> 'oid' OR y <> 'regclass' LOOP
			EXECUTE format('CREATE OPERATOR $schema.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = $schema.operator)', one.o, one.x, one.y);
		END LOOP;
		-- a type that everything can be cast to, and functions and operators for it
		CREATE TYPE $schema.anything AS (thing text);
		FOR one IN SELECT x FROM unnest(types) x LOOP
			EXECUTE format('CREATE FUNCTION $schema.anything(%s) RETURNS $schema.anything LANGUAGE plpgsql AS ''BEGIN PERFORM $schema.deed(''''cast''''); RETURN ROW(1); END''', one.x);
			EXECUTE format('CREATE CAST (%s AS $schema.anything) WITH FUNCTION $schema.anything(%s) AS IMPLICIT', one.x, one.x);
		END LOOP;
		EXECUTE format('CREATE FUNCTION $schema.operator($schema.anything, $schema.anything) RETURNS bool ' || body, 'operator');
		EXECUTE 'CREATE OPERATOR $schema.= (LEFTARG = $schema.anything, RIGHTARG = $schema.anything, FUNCTION = $schema.operator)';
		EXECUTE format('CREATE FUNCTION $schema.format($schema.anything, $schema.anything) RETURNS bool ' || body, 'format');
		-- types and relations of the names that PostgreSQL's own have
		FOR one IN SELECT t.typname FROM pg_catalog.pg_type t WHERE t.typnamespace = 'pg_catalog'::regnamespace AND t.typtype IN ('b', 'p') AND (t.typname IN ($words) OR format_type(t.oid, NULL) = ANY (types)) LOOP
			EXECUTE format('CREATE DOMAIN $schema.%I AS pg_catalog.text CHECK ($schema.deed(''type''))', one.typname);
		END LOOP;
		FOR one IN SELECT c.relname FROM pg_catalog.pg_class c WHERE c.relnamespace = 'pg_catalog'::regnamespace AND c.relkind IN ('r', 'v') AND c.relname IN ($words, 'pg_settings', 'pg_database', 'pg_roles', 'pg_db_role_setting') LOOP
			EXECUTE format('CREATE VIEW $schema.%I AS SELECT $schema.deed(''relation''), * FROM pg_catalog.%I', one.relname, one.relname);
		END LOOP;
	END \$do\$}, extra_params => [ '-U', 'villain' ]);
	return;
}
# one of them is where the extension goes if no schema is named
plant('public');
plant('tools');

# the traps work: somebody who names nothing in full is caught
my ($rc, $out, $err) = $node->psql('mine', q{SELECT format('%s', current_database(), 'x'::text)}, extra_params => [ '-U', 'villain' ]);
like($err, qr/WARNING:  planted: format/, 'a planted function is taken by who calls it by its bare name');
($rc, $out, $err) = $node->psql('mine', q{SET search_path = tools; SELECT oid = 'pg_class'::regclass FROM pg_class LIMIT 1}, extra_params => [ '-U', 'villain' ]);
like($err, qr/WARNING:  planted: =/, 'so is an operator');

# Ok when a superuser does that, and nobody of the planted has run, or been taken.
sub unharmed
{
	my ($what, $sql) = @_;
	my ($status, $said, $errors) = $node->psql('mine', "SET client_min_messages = warning; $sql");
	is("$status $errors", '0 ', "$what: done, without a word");
	is($node->safe_psql('postgres', "SELECT rolsuper FROM pg_roles WHERE rolname = 'villain'"), 'f', "$what: the owner is no superuser");
	$node->safe_psql('postgres', 'ALTER ROLE villain NOSUPERUSER');
	is($node->safe_psql('mine', q{
		WITH his AS (SELECT classid, objid FROM pg_catalog.pg_shdepend
			WHERE dbid OPERATOR(pg_catalog.=) (SELECT oid FROM pg_catalog.pg_database WHERE datname OPERATOR(pg_catalog.=) 'mine'::pg_catalog.name)
				AND refobjid OPERATOR(pg_catalog.=) 'villain'::pg_catalog.regrole::pg_catalog.oid AND classid OPERATOR(pg_catalog.<>) 'pg_catalog.pg_namespace'::pg_catalog.regclass::pg_catalog.oid)
		SELECT pg_catalog.pg_describe_object(d.classid, d.objid, 0), pg_catalog.pg_describe_object(d.refclassid, d.refobjid, 0)
		FROM pg_catalog.pg_depend d JOIN his ON his.classid OPERATOR(pg_catalog.=) d.refclassid AND his.objid OPERATOR(pg_catalog.=) d.refobjid
		WHERE EXISTS (SELECT FROM pg_catalog.pg_depend m WHERE m.classid OPERATOR(pg_catalog.=) d.classid AND m.objid OPERATOR(pg_catalog.=) d.objid AND m.deptype OPERATOR(pg_catalog.=) 'e'::pg_catalog."char")
			OR d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_rewrite'::pg_catalog.regclass::pg_catalog.oid AND pg_catalog.pg_describe_object(d.classid, d.objid, 0) OPERATOR(pg_catalog.~) 'hashgraph_join'::pg_catalog.text}),
		'', "$what: nothing of the extension's stands on what is his");
	return;
}

my @versions = split /\n/, $node->safe_psql('postgres', "SELECT version FROM pg_available_extension_versions WHERE name = 'hashgraph_join' ORDER BY 1");
my @paths = split /\n/, $node->safe_psql('postgres', "SELECT source || ' ' || target FROM pg_extension_update_paths('hashgraph_join') WHERE path IS NOT NULL ORDER BY 1");
ok(@versions >= 2 && @paths >= 1, 'there is more than one version');
for my $where ('', ' SCHEMA tools')
{
	for my $version (@versions)
	{
		unharmed("version $version$where", "CREATE EXTENSION hashgraph_join VERSION '$version'$where");
		unharmed("drop of $version$where", 'DROP EXTENSION hashgraph_join');
	}
	for my $path (@paths)
	{
		my ($from, $to) = split / /, $path;
		$node->safe_psql('mine', "SET client_min_messages = error; CREATE EXTENSION hashgraph_join VERSION '$from'$where");
		unharmed("update from $from to $to$where", "ALTER EXTENSION hashgraph_join UPDATE TO '$to'");
		unharmed("move after update from $from to $to$where", 'ALTER EXTENSION hashgraph_join SET SCHEMA ' . ($where ? 'public' : 'tools'));
		unharmed("drop after that", 'DROP EXTENSION hashgraph_join');
	}
}

# ---- objects that are there already are not taken over
my @members = split /\n/, $node->safe_psql('postgres', q{
	SELECT CASE classid WHEN 'pg_proc'::regclass THEN 'FUNCTION ' || (SELECT proname || '(' || pg_get_function_identity_arguments(oid) || ')' FROM pg_proc WHERE oid = objid)
		ELSE 'VIEW ' || (SELECT relname FROM pg_class WHERE oid = objid) END
	FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e' AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'hashgraph_join')
		AND classid IN ('pg_proc'::regclass, 'pg_class'::regclass) ORDER BY 1});
push @members, 'FUNCTION hashgraph_join_say_at_commit()';
ok(@members > 10, 'the extension has members');
$node->safe_psql('postgres', 'CREATE DATABASE taken OWNER villain');
$node->safe_psql('taken', 'CREATE SCHEMA tools', extra_params => [ '-U', 'villain' ]);
for my $member (@members)
{
	my ($kind, $name) = $member =~ /^(\w+) (.*)/;
	my $made = $kind eq 'VIEW' ? "CREATE VIEW tools.$name AS SELECT 1 AS his" : 'CREATE FUNCTION tools.' . ($name =~ s/OUT [^,)]*(?:, )?//gr =~ s/, \)/)/r) . " RETURNS int LANGUAGE sql AS 'SELECT 1'";
	for my $how ('CREATE EXTENSION hashgraph_join SCHEMA tools', "CREATE EXTENSION hashgraph_join VERSION '0.1' SCHEMA tools; SELECT 'there'; ALTER EXTENSION hashgraph_join UPDATE")
	{
		next if $how =~ /UPDATE/ && $name =~ /^hashgraph_join_(?:info|say_at_commit)\(/;
		my ($status, $said, $errors) = $node->psql('taken', "SET client_min_messages = warning; SET ROLE villain; $made; RESET ROLE; $how", on_error_stop => 1);
		like($errors, qr/already exists/, "$how: not where somebody has a $member");
		is($node->safe_psql('taken', "DROP EXTENSION IF EXISTS hashgraph_join; SET ROLE villain; DROP " . ($kind eq 'VIEW' ? $member =~ s/ / tools./r : "FUNCTION tools." . ($name =~ s/\(.*//r)) . "; SELECT 'his'"),
			'his', "$how: it is still his");
	}
}
# a function that could be called without arguments, too, makes the script's own ambiguous at worst
for my $name (qw(hashgraph_join_kept hashgraph_join_say_at_commit))
{
	$node->psql('taken', "SET ROLE villain; CREATE FUNCTION tools.deed() RETURNS int LANGUAGE plpgsql AS \$\$ DECLARE who text := 'default'; BEGIN $deed END \$\$;"
		  . "CREATE FUNCTION tools.$name(int DEFAULT tools.deed()) RETURNS SETOF int LANGUAGE sql AS 'SELECT \$1'; RESET ROLE; CREATE EXTENSION hashgraph_join SCHEMA tools",
		stderr => \$err, on_error_stop => 0);
	unlike($err, qr/planted/, "a $name() with a default does not run");
	is($node->safe_psql('postgres', "SELECT rolsuper FROM pg_roles WHERE rolname = 'villain'"), 'f', 'the owner is no superuser');
	$node->safe_psql('taken', "DROP EXTENSION IF EXISTS hashgraph_join; DROP FUNCTION tools.$name(int), tools.deed()");
}

# ---- a schema of its own
$node->safe_psql('postgres', 'CREATE DATABASE own');
$node->safe_psql('own', q{
	SET client_min_messages = warning;
	CREATE SCHEMA hgj;
	CREATE EXTENSION hashgraph_join SCHEMA hgj;
	ALTER DATABASE own SET session_preload_libraries = 'hashgraph_join';
	CREATE TABLE a AS SELECT i AS k, i % 10 AS v FROM generate_series(1, 20000) i;
	CREATE TABLE b AS SELECT i * 2 AS k FROM generate_series(1, 20000) i;
	ANALYZE a, b});
my $query = 'SELECT count(*), sum(v) FROM a JOIN b USING (k)';
like($node->safe_psql('own', "SET hashgraph_join.force = on; EXPLAIN (COSTS OFF) $query"), qr/HashGraphJoin/, 'the planner needs no schema in the search_path');
is($node->safe_psql('own', "SET hashgraph_join.force = on; SET hashgraph_join.require = 'join'; $query"), $node->safe_psql('own', "SET hashgraph_join.enabled = off; $query"), 'nor does the executor');
for my $move ('', 'CREATE SCHEMA other; ALTER EXTENSION hashgraph_join SET SCHEMA other', 'ALTER EXTENSION hashgraph_join SET SCHEMA hgj')
{
	my $schema = $move =~ /other/ ? 'other' : 'hgj';
	$node->safe_psql('own', $move) if $move;
	($rc, $out, $err) = $node->psql('own', "SELECT * FROM hashgraph_join_why('$query')");
	like($err, qr/function hashgraph_join_why\(unknown\) does not exist/, "$schema: not found without the schema");
	is($node->safe_psql('own', "SET hashgraph_join.force = on; SELECT count(*) > 0 FROM $schema.hashgraph_join_why('$query') WHERE taken"), 't', "$schema.hashgraph_join_why()");
	is($node->safe_psql('own', "SET search_path = \"\$user\", public, $schema; SET hashgraph_join.force = on; SELECT count(*) > 0 FROM hashgraph_join_why('$query') WHERE taken"), 't', "hashgraph_join_why() with $schema in the search_path");
	is($node->safe_psql('own', "SELECT count(*) FROM $schema.hashgraph_join_columns"), 0, "$schema.hashgraph_join_columns");
}

$node->stop;
done_testing();
