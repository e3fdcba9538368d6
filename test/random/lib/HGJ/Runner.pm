# Runs one query stock and forced, and judges the two results.
package HGJ::Runner;

use strict;
use warnings;

our %DEFAULT = (
	work_mem => '4MB',
	hash_mem_multiplier => 2,
	enable_partitionwise_join => 'off',
	enable_partitionwise_aggregate => 'off',
	plan_cache_mode => 'auto',
	parallel_setup_cost => 1000,
	parallel_tuple_cost => 0.1,
	min_parallel_table_scan_size => '8MB',
	max_parallel_workers_per_gather => 0,
	parallel_leader_participation => 'on',
	enable_mergejoin => 'on',
	enable_material => 'on',
	join_collapse_limit => 8,
	jit => 'off',
	jit_above_cost => 100000,
	jit_inline_above_cost => 500000,
	jit_optimize_above_cost => 500000,
);

sub set_lines
{
	my (%s) = @_;
	return join(' \\; ', map { "set $_ = '$s{$_}'" } sort keys %s) . ";\n";
}

sub settings
{
	my ($q, $forced, $opt) = @_;
	my %s = (%DEFAULT, %{ $q->{common} });
	$s{statement_timeout} = $forced ? '600s' : $q->{is_star} ? '60s' : '30s';
	if (!$opt->{stock})
	{
		$s{'hashgraph_join.enabled'} = $forced ? 'on' : 'off';
		$s{'hashgraph_join.force'} = $forced ? 'on' : 'off';
		$s{'hashgraph_join.require'} = $forced && $q->{sure} ? 'join' : 'off';
		%s = (%s, %{ $q->{force} }) if $forced;
		$s{'hashgraph_join.engine'} = $opt->{engine} if $forced && $opt->{engine};
		# a build side of which few rows fit is not for a device
		$s{'hashgraph_join.require'} = 'cuda'
		  if $forced && $q->{sure} && ($opt->{engine} || '') eq 'cuda' && !$s{'hashgraph_join.chunk_rows'} && !$s{work_mem};
	}
	return %s;
}

# The statements of a query, as run in psql.
sub script
{
	my ($q) = @_;
	my ($mode, $sql) = @$q{qw(mode sql)};
	return $q->{script} if $q->{script};
	if ($mode eq 'prepared')
	{
		my ($x, $y) = @{ $q->{args} };
		return "$q->{prepare};\nexecute p($x);\nexecute p($y);\nexecute p($x);\nexecute p(null);\ndeallocate p;\n";
	}
	if ($mode eq 'cursor')
	{
		my $s = "begin;\ndeclare c $q->{scroll}cursor$q->{hold} for $sql;\n";
		$s .= "commit;\n" if $q->{hold};
		$s .= "fetch $_ from c;\n" for @{ $q->{chunks} };
		$s .= "fetch all from c;\n";
		$s .= "fetch backward all from c;\nfetch all from c;\n" if $q->{scroll} && !$q->{early};
		$s .= "close c;\n";
		$s .= "commit;\n" unless $q->{hold};
		return $s;
	}
	return "begin;\ndeclare c $q->{scroll}cursor$q->{hold} for $sql;\nfetch $q->{chunks}[0] from c;\nclose c;\ncommit;\n"
	  if $mode eq 'early';
	return "$q->{limited};\n" if $mode eq 'sublimit';
	return "select * from rows_of(\$rows\$$sql\$rows\$, null);\n" if $mode eq 'plpgsql';
	return "begin;\ncreate temp table ct on commit drop as select q::text as line from ($sql) q;\nselect * from ct;\ncommit;\n"
	  if $mode eq 'ctas';
	return "begin isolation level serializable;\n$sql;\ncommit;\n" if $mode eq 'serializable';
	return "begin;\n$sql;\nselect id, k, v, w from $q->{target};\nrollback;\n" if $q->{target};
	return "$sql;\n";
}

sub explain
{
	my ($q) = @_;
	my $analyze = $q->{analyze} ? 'analyze, timing off, summary off, ' : '';
	my $e = "explain (${analyze}costs off) $q->{explain};\n";
	return "$q->{prepare};\n${e}deallocate p;\n" if $q->{mode} eq 'prepared';
	return "explain (costs off) declare c $q->{scroll}cursor$q->{hold} for $q->{sql};\n" if $q->{mode} =~ /^(cursor|early)$/ && !$q->{analyze};
	return "begin;\n${e}rollback;\n" if $q->{analyze} && $q->{target};
	return $e;
}

# Does the forced plan have a nested loop or a subplan, run row by row?
sub plan_has_loops
{
	my ($session, $q) = @_;
	my $plan = $session->run(explain({ %$q, analyze => 0 }));
	return $plan && grep { /Nested Loop|SubPlan|Recursive Union/ } @$plan;
}

# The first lines in which two multisets differ.
sub differences
{
	my ($x, $y) = @_;
	my %n;
	$n{$_}++ for @$x;
	$n{$_}-- for @$y;
	my @d;
	for (sort keys %n)
	{
		push @d, sprintf '%s %s%s', $n{$_} > 0 ? 'stock only:' : 'ours only: ', substr($_, 0, 300),
		  abs $n{$_} > 1 ? ' (' . abs($n{$_}) . ' times)' : ''
		  if $n{$_};
	}
	return @d;
}

# Returns { verdict => ok | skip | fail, why, lines, node, plan }.
sub judge
{
	my ($session, $q, $opt) = @_;
	my $r = { verdict => 'ok', lines => [] };
	my $fail = sub { my ($why, @lines) = @_; return { %$r, verdict => 'fail', why => $why, lines => \@lines } };
	my $lost = sub {
		my ($where) = @_;
		return { %$r, verdict => 'fail', crash => 1, why => "the connection was lost $where",
			lines => [ @{ $session->{last_words} || [] } ] };
	};
	my $script = script($q);
	my %stock = settings($q, 0, $opt);
	my %forced = settings($q, 1, $opt);
	my $ours;
	if ($q->{forced_first})
	{
		$ours = $session->run(set_lines(%forced) . $opt->{forced_extra} . $script);
		return $lost->('by the forced query') unless $ours;
	}
	my $stock = $session->run(set_lines(%stock) . $opt->{stock_extra} . $script);
	return $lost->('by stock PostgreSQL') unless $stock;
	my $full;
	if ($q->{mode} =~ /^(sublimit|early)$/)
	{
		$full = $session->run("$q->{sql};\n");
		return $lost->('by stock PostgreSQL') unless $full;
	}
	return { %$r, verdict => 'skip', why => 'stock PostgreSQL takes too long' }
	  if grep { /^ERROR:  57014/ } @$stock, @{ $full || [] };

	my $again = $session->run(set_lines(%forced) . $opt->{forced_extra} . ($ours ? '' : $script));
	return $lost->('by the forced query') unless $again;
	$ours ||= $again;
	my $plan = $session->run(explain($q));
	return $lost->('by EXPLAIN') unless $plan;
	$r->{plan} = $plan;
	$r->{node} = grep { /Custom Scan \(HashGraphJoin\)/ } @$plan;
	$r->{rows} = @$stock;
	($r->{error}) = map { /^ERROR:  (\w+)/ ? $1 : () } @$stock;
	# To force a join everywhere can mean a nested loop elsewhere that PostgreSQL
	# would not have taken, and passes of a few rows each read the outer side as often.
	# Without them there is no excuse.
	return { %$r, verdict => 'skip', slow => 1, why => 'the forced plan takes too long' }
	  if (grep { /^ERROR:  57014/ } @$ours, @$plan)
	  && (($forced{'hashgraph_join.spill'} || '') eq 'passes' && $forced{'hashgraph_join.chunk_rows'} || plan_has_loops($session, $q));
	return $fail->('EXPLAIN failed', @$plan) if !$r->{error} && grep { /^(ERROR|WARNING)/ } @$plan;

	if ($full && !$r->{error})
	{
		return $fail->('different number of rows: ' . @$stock . ' stock, ' . @$ours . ' ours', grep { /^(ERROR|WARNING)/ } @$ours)
		  if @$stock != @$ours;
		my @d = grep { /^ours/ } differences($full, $ours);
		return $fail->('rows that the query without LIMIT does not have', @d) if @d;
		return $r;
	}
	my @d;
	if (join("\n", @$stock) ne join("\n", @$ours))
	{
		@d = $q->{ordered} ? () : differences($stock, $ours);
		@d = ('the same rows in another order') if $q->{ordered};
	}
	return $fail->('different results: ' . @$stock . ' lines stock, ' . @$ours . ' ours', @d) if @d;
	return $r;
}

1;
