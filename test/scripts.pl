#!/usr/bin/env perl
#
# What an extension's script names without saying where it is: prints a line for each such
# name, and nothing if there is none.
#
#   test/scripts.pl FILE ...     of these scripts
#   test/scripts.pl --planted    tries itself: what is planted below has to be found
#
# PostgreSQL runs scripts as a superuser, and looks names up in pg_catalog and in the target
# schema, whose owner may be anybody.  Of functions and operators not the first one is taken,
# but the one that fits best; so every function, operator, type, relation and collation is to
# stand with pg_catalog, and whatever finds an operator by itself (IN, LIKE, USING ...) is
# not to be used.  What the script has made itself may be named bare: CREATE fails where
# somebody else has such an object already, and so CREATE OR REPLACE and IF NOT EXISTS are
# not to be used either.  Bodies in dollar quotes, and statements in strings that PL/pgSQL
# executes, are looked at in the same way.  A statement of a kind that is not known here is
# reported, too: it has to be understood first.
use strict;
use warnings;

my (@found, $file, %own);

sub report
{
	my ($line, $what) = @_;
	push @found, "$file:$line: $what";
	return;
}

# ---- words ------------------------------------------------------------------

# A list of [kind, text, line]: kinds are word, quoted (an identifier), string, body, number
# and mark.
sub tokens
{
	my ($text, $line) = @_;
	my @tokens;
	for ($text)
	{
		while (!/\G\z/gc)
		{
			my $from = pos // 0;
			my $kind;
			if (/\G(\s+|--[^\n]*)/gc || /\G\\[^\n]*/gc) { }
			elsif (m{\G/\*.*?\*/}gcs) { }
			elsif (/\G(\$\w*\$)(.*?)\g1/gcs) { $kind = 'body'; }
			elsif (/\G(?:[eEbBxX]|[uU]&)?'(?:[^']|'')*'/gc) { $kind = 'string'; }
			elsif (/\G(?:[uU]&)?"(?:[^"]|"")*"/gc) { $kind = 'quoted'; }
			elsif (/\G[a-zA-Z_\x80-\xff][\w\$\x80-\xff]*/gc) { $kind = 'word'; }
			elsif (/\G\d[\d.]*/gc) { $kind = 'number'; }
			elsif (/\G(?:::|:=|\.\.|[()\[\],;.:])/gc) { $kind = 'mark'; }
			elsif (/\G[-+*\/<>=~!@#%^&|`?]+/gc) { $kind = 'operator'; }
			elsif (/\G./gcs) { $kind = 'operator'; }
			my $token = substr $_, $from, pos() - $from;
			push @tokens, [ $kind, $kind eq 'word' ? lc $token : $token, $line ] if $kind;
			$line += $token =~ tr/\n//;
		}
	}
	return @tokens;
}

sub is
{
	my ($tokens, $i, @texts) = @_;
	return $i >= 0 && $i < @$tokens && $tokens->[$i][0] =~ /^(?:word|mark|operator)$/ && grep { $tokens->[$i][1] eq $_ } @texts;
}

sub is_name { my ($tokens, $i) = @_; return $i >= 0 && $i < @$tokens && $tokens->[$i][0] =~ /^(?:word|quoted)$/; }

# ---- types ------------------------------------------------------------------

# Where the type that begins there ends; nothing if it is not one of pg_catalog's, said so or
# known to the grammar.
sub type_end
{
	my ($tokens, $i) = @_;
	$i++ if is($tokens, $i, 'setof');
	if (is($tokens, $i, 'pg_catalog') && is($tokens, $i + 1, '.') && is_name($tokens, $i + 2)) { $i += 3; }
	elsif (is($tokens, $i, 'double') && is($tokens, $i + 1, 'precision')) { $i += 2; }
	elsif (is($tokens, $i, 'time', 'timestamp'))
	{
		$i++;
		$i += 3 if is($tokens, $i, 'with', 'without') && is($tokens, $i + 1, 'time') && is($tokens, $i + 2, 'zone');
	}
	elsif (is($tokens, $i, qw(int integer smallint bigint real float decimal numeric boolean varchar interval))) { $i++; }
	else { return; }
	$i += 3 if is($tokens, $i, '(') && ($tokens->[ $i + 1 ][0] // '') eq 'number' && is($tokens, $i + 2, ')');
	while (is($tokens, $i, '['))
	{
		$i++ while $i < @$tokens && !is($tokens, $i, ']');
		$i++;
	}
	return $i;
}

sub check_type
{
	my ($tokens, $i) = @_;
	my $end = type_end($tokens, $i);
	return $end if defined $end;
	report($tokens->[$i][2], "type $tokens->[$i][1] is not qualified") if $i < @$tokens;
	return $i + 1;
}

# ---- expressions and queries --------------------------------------------------

# These may stand before a parenthesis, or before a string, and look nothing up.
my %plain = map { $_ => 1 } qw(and or not exists coalesce values select from where on as when then else if elsif while return perform
  is to by limit offset union except intersect having loop begin lateral execute row_count notice warning exception raise);

# These find an operator, or a function, by its bare name.
my %hidden = map { $_ => 1 } qw(in between like ilike similar nullif using natural any some all greatest least overlaps cast row distinct);

# Where the relation that is named there ends.
sub check_relation
{
	my ($tokens, $i) = @_;
	$i++ while is($tokens, $i, 'only', 'lateral');
	return $i if is($tokens, $i, '(') || !is_name($tokens, $i);
	if (is($tokens, $i + 1, '.'))
	{
		report($tokens->[$i][2], "relation $tokens->[$i][1].$tokens->[$i + 2][1] is not pg_catalog's") if $tokens->[$i][1] ne 'pg_catalog';
		return $i + 2;
	}
	# a function's name is looked at as that
	report($tokens->[$i][2], "relation $tokens->[$i][1] is not qualified") if !$own{ $tokens->[$i][1] } && !is($tokens, $i + 1, '(');
	return $i;
}

sub check_query
{
	my ($tokens, $i) = @_;
	my $depth = 0;
	my @from;    # of each depth: is this a list of relations?
	for (; $i < @$tokens; $i++)
	{
		my ($kind, $text, $line) = @{ $tokens->[$i] };
		my $qualified = is($tokens, $i - 1, '.');
		if ($kind eq 'operator')
		{
			next if $text eq '*' && (is($tokens, $i - 1, 'select', ',', '(') || $qualified);
			report($line, "operator $text is not qualified");
		}
		elsif ($kind eq 'mark')
		{
			if ($text eq '(') { $from[ ++$depth ] = 0; }
			elsif ($text eq ')') { $depth--; }
			elsif ($text eq '::') { $i = check_type($tokens, $i + 1) - 1; }
			elsif ($text eq ';') { @from = (); $depth = 0; }
			elsif ($text eq ',' && $from[$depth]) { $i = check_relation($tokens, $i + 1) - 1; }
		}
		elsif ($kind eq 'body') { report($line, 'a body where none is expected'); }
		next if $kind ne 'word' && $kind ne 'quoted';
		if ($kind eq 'word' && !$qualified)
		{
			if ($text eq 'operator' && is($tokens, $i + 1, '('))
			{
				report($line, 'OPERATOR() is not of pg_catalog') if !is($tokens, $i + 2, 'pg_catalog') || !is($tokens, $i + 3, '.');
				$i++ while $i < @$tokens && !is($tokens, $i, ')');
				next;
			}
			if ($text eq 'for' && is($tokens, $i + 2, 'in') && is($tokens, $i + 3, 'select')) { $i += 2; next; }
			if ($hidden{$text}) { report($line, uc($text) . ' looks an operator or a type up by its bare name'); next; }
			if ($text eq 'case' && !is($tokens, $i + 1, 'when')) { report($line, 'CASE with an operand looks operators up by their bare names'); next; }
			if ($text eq 'collate') { report($line, 'the collation is not qualified') if !is($tokens, $i + 1, 'pg_catalog'); next; }
			if ($text eq 'execute' && !(($tokens->[ $i + 1 ][0] // '') eq 'string')
				&& !(is($tokens, $i + 1, 'pg_catalog') && is($tokens, $i + 3, 'format') && ($tokens->[ $i + 5 ][0] // '') eq 'string'))
			{
				report($line, 'EXECUTE of what cannot be seen here');
				next;
			}
			$from[$depth] = 1 if $text eq 'from';
			$from[$depth] = 0 if $text =~ /^(?:where|group|order|having|limit|union|except|intersect|loop|select|on)$/;
			# a condition of ON may be followed by more relations, which JOIN announces
			if ($text =~ /^(?:from|join|into|update|table)$/) { $i = check_relation($tokens, $i + 1) - 1; next; }
		}
		if (is($tokens, $i + 1, '('))
		{
			if ($qualified) { report($line, "function $tokens->[$i - 2][1].$text is not pg_catalog's") if !is($tokens, $i - 2, 'pg_catalog') || is($tokens, $i - 3, '.'); }
			elsif (!($kind eq 'word' && $plain{$text}) && !$own{$text}) { report($line, "function $text is not qualified"); }
		}
		elsif (!$qualified && $i + 1 < @$tokens && $tokens->[ $i + 1 ][0] eq 'string' && !($kind eq 'word' && $plain{$text})
			&& !defined type_end($tokens, $i))
		{
			report($line, "type $text is not qualified");
		}
		elsif ($qualified && $i + 1 < @$tokens && $tokens->[ $i + 1 ][0] eq 'string' && !is($tokens, $i - 2, 'pg_catalog'))
		{
			report($line, "type $tokens->[$i - 2][1].$text is not pg_catalog's");
		}
	}
	return;
}

# ---- bodies -------------------------------------------------------------------

sub check_plpgsql
{
	my (@tokens) = @_;
	my $i = 0;
	if (is(\@tokens, $i, 'declare'))
	{
		for ($i++; $i < @tokens && !is(\@tokens, $i, 'begin');)
		{
			$i++;    # the variable
			$i++ if is(\@tokens, $i, 'constant');
			$i = check_type(\@tokens, $i);
			my @value;
			push @value, $tokens[ $i++ ] while $i < @tokens && !is(\@tokens, $i, ';');
			shift @value if is(\@value, 0, ':=', 'default');
			check_query(\@value, 0);
			$i++;
		}
	}
	check_query(\@tokens, $i);
	for my $token (grep { $_->[0] eq 'string' } @tokens)
	{
		my $said = substr $token->[1], 1, -1;
		next if $said !~ /^\s*(?:drop|alter|select|with|insert|update|delete|merge|truncate|grant|revoke|create|comment|do|set|reset|call|lock|copy|table|values)\b/i;
		# what format() puts there comes from output functions of PostgreSQL's, which quote and qualify
		check_script($said =~ s/''/'/gr =~ s/%s/pg_catalog.formatted/gr, $token->[2]);
	}
	return;
}

sub check_body
{
	my ($language, $token) = @_;
	my ($text) = $token->[1] =~ /^\$\w*\$(.*)\$\w*\$$/s;
	if ($language eq 'plpgsql') { check_plpgsql(tokens($text, $token->[2])); }
	elsif ($language eq 'sql') { check_script($text, $token->[2]); }
	else { report($token->[2], "a body in $language, which is not known here"); }
	return;
}

# ---- statements ---------------------------------------------------------------

# The arguments in the parentheses that begin there; returns where they end.
sub check_arguments
{
	my ($tokens, $i) = @_;
	for ($i++; $i < @$tokens && !is($tokens, $i - 1, ')');)
	{
		if (is($tokens, $i, ')')) { $i++; last; }
		$i++ if is($tokens, $i, qw(in out inout variadic));
		# the name may be left out
		my $end = type_end($tokens, $i);
		$end = check_type($tokens, $i + 1) if !defined $end && is_name($tokens, $i + 1) && !is($tokens, $i + 1, 'default');
		$end = check_type($tokens, $i) if !defined $end;
		$i = $end;
		my ($depth, @value) = (0);
		for (; $i < @$tokens && !($depth == 0 && is($tokens, $i, ',', ')')); $i++)
		{
			$depth++ if is($tokens, $i, '(');
			$depth-- if is($tokens, $i, ')');
			push @value, $tokens->[$i];
		}
		shift @value if is(\@value, 0, 'default', '=');
		check_query(\@value, 0);
		$i++;
	}
	return $i;
}

sub check_create_function
{
	my ($tokens) = @_;
	my ($language, @bodies) = ('');
	my $i = 2;
	$own{ $tokens->[$i][1] } = 1;
	if (is($tokens, $i + 1, '.'))
	{
		report($tokens->[$i][2], "a function of $tokens->[$i][1] is not made in the target schema");
		$i += 2;
	}
	$i = check_arguments($tokens, $i + 1);
	for (; $i < @$tokens; $i++)
	{
		if (is($tokens, $i, 'returns')) { $i = check_type($tokens, $i + 1) - 1; }
		elsif (is($tokens, $i, 'language')) { $language = $tokens->[ ++$i ][1]; }
		elsif ($tokens->[$i][0] eq 'body') { push @bodies, $tokens->[$i]; }
		elsif (is($tokens, $i, 'set', 'begin', 'support')) { report($tokens->[$i][2], uc($tokens->[$i][1]) . ' is not known here'); }
	}
	report($tokens->[0][2], "the body in $language is not in dollar quotes") if $language =~ /^(?:sql|plpgsql)$/ && !@bodies;
	check_body($language, $_) for @bodies;
	return;
}

# FUNCTION name(types) or a relation's name: where it ends.
sub check_object
{
	my ($tokens, $i, $made) = @_;
	my $is_function = is($tokens, $i, 'function');
	$i++ if is($tokens, $i, qw(function view table));
	my ($name, $line) = @{ $tokens->[$i] }[ 1, 2 ];
	if (is($tokens, $i + 1, '.') && $name eq 'pg_catalog') { $i += 3; }
	else
	{
		report($line, "$name is not what the script has made") if !$own{$name} && $made;
		$i++;
	}
	$i = check_arguments($tokens, $i) if $is_function && is($tokens, $i, '(');
	return $i;
}

sub check_statement
{
	my ($tokens) = @_;
	my $begin = join ' ', map { $_->[1] } @$tokens[ 0 .. ($#$tokens < 3 ? $#$tokens : 3) ];
	my $line = $tokens->[0][2];
	return report($line, 'OR REPLACE takes over what somebody else has made') if $begin =~ /^create or replace /;
	return report($line, 'IF NOT EXISTS takes over what somebody else has made') if join(' ', map { $_->[1] } @$tokens) =~ /^create .*?\bif not exists\b/;
	if ($begin =~ /^create function /) { check_create_function($tokens); }
	elsif ($begin =~ /^create view (\S+) as/) { check_query($tokens, 3); $own{$1} = 1; }
	elsif ($begin =~ /^comment on (?:function|view) /) { check_object($tokens, 2, 1); }
	elsif ($begin =~ /^drop (?:function|view) /) { check_object($tokens, 1, 1); }
	elsif ($begin =~ /^(?:grant|revoke) /)
	{
		my ($on) = grep { is($tokens, $_, 'on') } 0 .. $#$tokens;
		return report($line, 'roles are not the script\'s') if !defined $on;
		check_object($tokens, $on + 1, 1);
	}
	elsif ($begin =~ /^do /)
	{
		my ($language) = map { $tokens->[ $_ + 1 ][1] } grep { is($tokens, $_, 'language') } 0 .. $#$tokens - 1;
		check_body($language // 'plpgsql', $_) for grep { $_->[0] eq 'body' } @$tokens;
		report($line, 'the body is not in dollar quotes') if !grep { $_->[0] eq 'body' } @$tokens;
	}
	elsif ($begin =~ /^select /) { check_query($tokens, 0); }
	else { report($line, "a statement of a kind that is not known here: $begin"); }
	return;
}

sub check_script
{
	my ($text, $line) = @_;
	my @statement;
	for my $token (tokens($text, $line), [ 'mark', ';', 0 ])
	{
		if ($token->[0] eq 'mark' && $token->[1] eq ';')
		{
			check_statement([@statement]) if @statement;
			@statement = ();
		}
		else { push @statement, $token; }
	}
	return;
}

sub check_text
{
	my ($name, $text) = @_;
	($file, @found, %own) = ($name);
	check_script($text, 1);
	return @found;
}

# ---- does it find what is planted? ----------------------------------------------

my $good = q{
/* a comment with count(*) and x = y */
-- and another: unnest(x)
\echo Use "CREATE EXTENSION x" to load this file. \quit
CREATE FUNCTION ours(a pg_catalog.text, OUT b integer, OUT "column" pg_catalog.name[], c double precision DEFAULT NULL, pg_catalog.oid, timestamp with time zone)
RETURNS SETOF pg_catalog.record AS 'MODULE_PATHNAME', 'ours' LANGUAGE C STRICT;
COMMENT ON FUNCTION ours(pg_catalog.text, double precision, pg_catalog.oid, timestamp with time zone) IS 'x = y, format(z)';
CREATE VIEW seen AS SELECT *, x.a OPERATOR(pg_catalog.=) 'b'::pg_catalog.text AS c FROM ours('x') x, pg_catalog.pg_class c;
REVOKE ALL ON FUNCTION ours(pg_catalog.text) FROM PUBLIC;
GRANT SELECT ON seen TO PUBLIC;
SELECT ours();
DO $$
DECLARE
	r pg_catalog.record;
	n integer := pg_catalog.length('x'::pg_catalog.text);
BEGIN
	FOR r IN SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_depend d ON (d.objid OPERATOR(pg_catalog.=) c.oid) WHERE c.oid IS NOT NULL ORDER BY c.oid LOOP
		IF r.oid OPERATOR(pg_catalog.<>) n::pg_catalog.oid THEN EXECUTE pg_catalog.format('DROP VIEW %s'::pg_catalog.text, r.oid::pg_catalog.regclass); END IF;
	END LOOP;
END $$;
CREATE FUNCTION body() RETURNS pg_catalog.text LANGUAGE sql AS $x$ SELECT pg_catalog.upper('y'::pg_catalog.text) COLLATE pg_catalog."C" $x$;
DROP FUNCTION ours(pg_catalog.text);
};

# What is to be found at the end of that, each by itself.  %s stands where a body has it, too.
my @expressions = (
	[ "unnest('{a}'::pg_catalog.text[])", 'function unnest is not qualified' ],
	[ "format('%%I', pg_catalog.current_database(), 'x')", 'function format is not qualified' ],
	[ q{"format"('x')}, 'function "format" is not qualified' ],
	[ "public.format('x')", "function public.format is not pg_catalog's" ],
	[ "other.pg_catalog.format('x')", "function pg_catalog.format is not pg_catalog's" ],
	[ 'c.oid = c.relname', 'operator = is not qualified' ],
	[ 'c.oid<>1', 'operator <> is not qualified' ],
	[ "c.relname ~ 'x'", 'operator ~ is not qualified' ],
	[ "c.relname || 'x'", 'operator || is not qualified' ],
	[ '- c.oid', 'operator - is not qualified' ],
	[ 'c.oid * 2', 'operator * is not qualified' ],
	[ 'c.oid OPERATOR(public.=) 1', 'OPERATOR() is not of pg_catalog' ],
	[ 'c.oid OPERATOR(=) 1', 'OPERATOR() is not of pg_catalog' ],
	[ 'c.oid IN (1, 2)', 'IN looks' ],
	[ 'c.oid BETWEEN 1 AND 2', 'BETWEEN looks' ],
	[ "c.relname LIKE 'x'", 'LIKE looks' ],
	[ "c.relname SIMILAR TO 'x'", 'SIMILAR looks' ],
	[ 'c.oid IS DISTINCT FROM 1', 'DISTINCT looks' ],
	[ 'NULLIF(c.oid, 1)', 'NULLIF looks' ],
	[ 'GREATEST(c.oid, 1)', 'GREATEST looks' ],
	[ 'CASE c.oid WHEN 1 THEN 2 END', 'CASE with an operand' ],
	[ '1::text', 'type text is not qualified' ],
	[ '1::public.text', 'type public is not qualified' ],
	[ q{'e'::"char"}, 'type "char" is not qualified' ],
	[ 'CAST(1 AS pg_catalog.text)', 'CAST looks' ],
	[ "regclass 'pg_class'", 'type regclass is not qualified' ],
	[ "public.mine 'x'", "type public.mine is not pg_catalog's" ],
	[ "'x' COLLATE \"C\"", 'the collation is not qualified' ],
	[ "(SELECT d.oid FROM pg_database d)", 'relation pg_database is not qualified' ],
	[ "(SELECT d.oid FROM pg_catalog.pg_class e, pg_database d)", 'relation pg_database is not qualified' ],
	[ "(SELECT d.oid FROM public.pg_database d)", "relation public.pg_database is not pg_catalog's" ],
	[ "EXISTS (SELECT 1 FROM pg_catalog.pg_class a JOIN pg_class b ON true)", 'relation pg_class is not qualified' ],
	[ "EXISTS (SELECT 1 FROM pg_catalog.pg_class a JOIN pg_catalog.pg_class b USING (oid))", 'USING looks' ],
	[ "substring('x' FROM pg_catalog.now())", 'function substring is not qualified' ]);

my @statements = (
	[ 'CREATE OR REPLACE FUNCTION f() RETURNS integer LANGUAGE C AS \'x\'', 'OR REPLACE' ],
	[ 'CREATE OR REPLACE VIEW v AS SELECT 1', 'OR REPLACE' ],
	[ 'CREATE TABLE IF NOT EXISTS t (a integer)', 'IF NOT EXISTS' ],
	[ 'CREATE TABLE t (a integer)', 'not known here' ],
	[ 'ALTER FUNCTION ours(pg_catalog.text) STRICT', 'not known here' ],
	[ 'CREATE FUNCTION f(text) RETURNS integer LANGUAGE C AS \'x\'', 'type text is not qualified' ],
	[ 'CREATE FUNCTION f(a text) RETURNS integer LANGUAGE C AS \'x\'', 'type text is not qualified' ],
	[ 'CREATE FUNCTION f(OUT a integer, OUT b name[]) LANGUAGE C AS \'x\'', 'type name is not qualified' ],
	[ 'CREATE FUNCTION f(a integer DEFAULT length(\'x\')) RETURNS integer LANGUAGE C AS \'x\'', 'function length is not qualified' ],
	[ 'CREATE FUNCTION f() RETURNS SETOF record LANGUAGE C AS \'x\'', 'type (setof|record) is not qualified' ],
	[ 'CREATE FUNCTION f() RETURNS integer LANGUAGE sql AS \'SELECT length(1)\'', 'not in dollar quotes' ],
	[ 'CREATE FUNCTION f() RETURNS integer LANGUAGE plperl AS $$ 1 $$', 'not known here' ],
	[ 'CREATE FUNCTION public.f() RETURNS integer LANGUAGE C AS \'x\'', 'a function of public is not made' ],
	[ 'CREATE FUNCTION f() RETURNS integer LANGUAGE sql SET search_path = x AS $$ SELECT 1 $$', 'SET is not known here' ],
	[ 'SELECT $$x$$', 'a body where none is expected' ],
	[ 'COMMENT ON FUNCTION body(text) IS \'x\'', 'type text is not qualified' ],
	[ 'COMMENT ON FUNCTION foreign_one() IS \'x\'', 'foreign_one is not what the script has made' ],
	[ 'GRANT SELECT ON somewhere TO PUBLIC', 'somewhere is not what the script has made' ],
	[ 'REVOKE ALL ON FUNCTION foreign_one() FROM PUBLIC', 'foreign_one is not what the script has made' ],
	[ 'GRANT pg_monitor TO PUBLIC', 'roles are not' ],
	[ 'DROP FUNCTION foreign_one()', 'foreign_one is not what the script has made' ],
	[ 'DROP VIEW foreign_view', 'foreign_view is not what the script has made' ],
	[ 'DO $$ DECLARE a text; BEGIN END $$', 'type text is not qualified' ],
	[ 'DO $$ DECLARE a integer := length(\'x\'); BEGIN END $$', 'function length is not qualified' ],
	[ 'DO $$ BEGIN EXECUTE pg_catalog.concat(\'DROP VIEW \', x); END $$', 'EXECUTE of what cannot be seen', 'not known here' ],
	[ 'DO $$ BEGIN EXECUTE \'SELECT length(1)\'; END $$', 'function length is not qualified' ],
	[ 'DO $$ BEGIN EXECUTE pg_catalog.format(\'SELECT %%s = 1\', x); END $$', 'operator = is not qualified' ],
	[ 'DO $$ BEGIN a = 1; END $$', 'operator = is not qualified' ],
	[ 'DO $$ BEGIN INSERT INTO t VALUES (1); END $$', 'relation t is not qualified' ],
	[ 'DO \'BEGIN END\'', 'not in dollar quotes' ]);

sub try_planted
{
	my @wrong;
	my $try = sub {
		my ($planted, @wanted) = @_;
		my @lines = check_text('planted', "$good$planted;\n");
		push @wrong, "$planted: @lines" if @lines != @wanted || grep { $lines[$_] !~ /$wanted[$_]/ } 0 .. $#wanted;
	};
	push @wrong, check_text('good', $good);
	for (@expressions)
	{
		my ($planted, @wanted) = @$_;
		$planted =~ s/%%/%/g;
		@wanted = map { quotemeta } @wanted;
		$try->("SELECT $planted FROM pg_catalog.pg_class c", @wanted);
		$try->("SELECT 1 FROM pg_catalog.pg_class c WHERE c.oid IS NULL OR ($planted) IS NULL", @wanted);
		$try->("CREATE VIEW another AS SELECT $planted FROM pg_catalog.pg_class c", @wanted);
		$try->("CREATE FUNCTION another() RETURNS integer LANGUAGE sql AS \$\$ SELECT $planted FROM pg_catalog.pg_class c \$\$", @wanted);
		$try->("DO \$\$ BEGIN IF $planted THEN RETURN; END IF; END \$\$", @wanted);
		$try->("DO LANGUAGE plpgsql \$a\$ DECLARE x integer; BEGIN FOR x IN SELECT $planted FROM pg_catalog.pg_class c LOOP x := 1; END LOOP; END \$a\$", @wanted);
	}
	for (@statements)
	{
		my ($planted, @wanted) = @$_;
		$try->($planted =~ s/%%/%/gr, map { /\|/ ? $_ : quotemeta } @wanted);
	}
	return @wrong;
}

my @lines;
if (@ARGV == 1 && $ARGV[0] eq '--planted') { @lines = try_planted(); }
else
{
	die "usage: $0 FILE ... | --planted\n" if !@ARGV;
	for my $name (@ARGV)
	{
		open my $fh, '<', $name or die "$name: $!\n";
		local $/ = undef;
		push @lines, check_text($name, scalar <$fh>);
	}
}
print "$_\n" for @lines;
exit(@lines ? 1 : 0);
