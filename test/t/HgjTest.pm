# What the TAP tests of hashgraph_join share.
package HgjTest;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(new_server $FORCED joined_plan fails_with);

# Sessions start with this where the planner is to have no choice.
our $FORCED =
    "LOAD 'hashgraph_join';"
  . "SET hashgraph_join.force = on; SET hashgraph_join.require = 'join';"
  . "SET client_min_messages = warning;";

# A running server with the extension created in database postgres.
sub new_server
{
	my ($name, @conf) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init;
	$node->append_conf('postgresql.conf', join("\n", 'jit = off', 'autovacuum = off', @conf));
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION hashgraph_join');
	return $node;
}

# Ok when the plan of $query, in a session that begins with $before, has our node.
sub joined_plan
{
	my ($node, $before, $query, $name) = @_;
	my $plan = $node->safe_psql('postgres', "$before EXPLAIN (COSTS OFF) $query");
	like($plan, qr/Custom Scan \(HashGraphJoin\)/, $name);
	return $plan;
}

# Ok when $sql fails with an error that matches.
sub fails_with
{
	my ($node, $sql, $pattern, $name, %params) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', $sql, on_error_stop => 1, %params);
	isnt($rc, 0, "$name: fails");
	like($err, $pattern, "$name: says why");
	return $err;
}

1;
