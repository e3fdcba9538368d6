# Processes of a parallel query that wait for each other, at the barrier of a shared build
# and at that of an exchange of groups: while one of them is held up, the query is
# cancelled, one who waits or the one who is late is terminated or killed, or is starved
# for a while.  The query ends, with an error or with the answer, nothing is left behind,
# and the next one is right.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use HgjTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = new_server('main', 'max_parallel_workers_per_gather = 2', 'min_parallel_table_scan_size = 0',
	'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'restart_after_crash = on');
my $gate = $node->data_dir . '/gate';
$node->safe_psql('postgres', q{
	CREATE TABLE f AS SELECT i % 20000 AS k, i AS v FROM generate_series(1, 40000) i;
	CREATE TABLE d AS SELECT i AS k, i % 10 AS w, 'text ' || i AS t FROM generate_series(1, 20000) i;
	ANALYZE f, d;
	-- stays as long as there is such a file
	CREATE FUNCTION passes() RETURNS bool LANGUAGE plpgsql VOLATILE PARALLEL SAFE AS $$
	BEGIN
		WHILE (pg_stat_file('gate', true)).size IS NOT NULL LOOP
			PERFORM pg_sleep(0.02);
		END LOOP;
		RETURN true;
	END $$;
});

my $shared = 'SET hashgraph_join.parallel_build = shared; SET hashgraph_join.probe_tuple_cost = 1; SET hashgraph_join.build_tuple_cost = 0;';
# every process with a table of its own, or others would wait at the barrier of a shared build
my $exchange = 'SET hashgraph_join.parallel_build = private; SET hashgraph_join.parallel_aggregate = exchange; SET hashgraph_join.agg_tuple_cost = 1; SET hashgraph_join.build_tuple_cost = 0;';
my $groups = 'SELECT count(*), sum(n), sum(s), max(t) FROM (SELECT f.v, d.t, count(*) AS n, sum(d.w) AS s FROM f LEFT JOIN d ON f.k = d.k WHERE f.v <> 7 OR passes() GROUP BY 1, 2) x';
# name => [ settings, query, what its plan says, the event of 17 on ]
my %query = (
	'a shared build' => [ $shared, 'SELECT count(*), sum(f.v), max(d.t) FROM (SELECT * FROM f WHERE v <> 7 OR passes()) f FULL JOIN (SELECT * FROM d WHERE k <> 7 OR passes()) d USING (k)', qr/Build Side: shared/, 'HashGraphBuild' ],
	'a shared build of codes' => [ $shared, 'SELECT count(*), sum(n), sum(s), max(t) FROM (SELECT d.t, count(*) AS n, sum(f.v) AS s FROM (SELECT * FROM f WHERE v <> 7 OR passes()) f JOIN (SELECT * FROM d WHERE k <> 7 OR passes()) d USING (k) GROUP BY 1) x', qr/Build Side: shared/, 'HashGraphBuild' ],
	'a shared build on file' => [ "$shared SET work_mem = '64kB'; SET hash_mem_multiplier = 1;",
		'SELECT count(*), sum(f.v), max(d.t) FROM (SELECT * FROM f WHERE v <> 7 OR passes()) f LEFT JOIN (SELECT * FROM d WHERE k <> 7 OR passes()) d USING (k)', qr/Build Side: shared/, 'HashGraphBuild' ],
	'an exchange' => [ $exchange, $groups, qr/Exchange: groups/, 'HashGraphGroups' ],
	'an exchange on file' => [ "$exchange SET work_mem = '64kB'; SET hash_mem_multiplier = 1;", $groups, qr/Exchange: groups/, 'HashGraphGroups' ]);
my ($major) = $node->safe_psql('postgres', 'SHOW server_version_num') =~ /^(\d+)\d{4}$/;
my $active = "pid <> pg_backend_pid() AND (state = 'active' OR backend_type = 'parallel worker') AND backend_type IN ('client backend', 'parallel worker')";

# A session that runs it, when somebody waits at the barrier, and somebody at the gate.
sub held_up
{
	my ($what) = @_;
	my ($settings, $sql, undef, $event) = @{ $query{$what} };
	$event = 'Extension' if $major < 17;
	append_to_file($gate, 'closed');
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query_safe("$FORCED $settings");
	$session->query_until(qr/running/, "\\echo running\n$sql;\n\\echo ended\n");
	$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = '$event' AND pid IN (SELECT pid FROM pg_stat_activity WHERE $active)")
	  or die "$what: nobody waits";
	return ($session, $event);
}

# The process that waits at the barrier, or at the gate; a worker if there is one.
sub process
{
	my ($event) = @_;
	my $pid = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE $active AND wait_event = '$event' ORDER BY backend_type DESC LIMIT 1");
	die "no process has $event" unless $pid;
	return $pid;
}

sub over
{
	my ($what, $session, $says) = @_;
	unlink $gate;
	# a session that is terminated says nothing any more
	my $out = eval { $session->query('SELECT 1;') } // '';
	like($out, $says, $what) if $says;
	eval { $session->quit };
	ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE $active"), "$what: no process is left");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), 0, "$what: no file is left");
}

for my $what (sort keys %query)
{
	my ($settings, $sql, $plan) = @{ $query{$what} };
	unlink $gate;
	my $answer = $node->safe_psql('postgres', "SET hashgraph_join.enabled = off; $sql");
	my $again = sub { is($node->safe_psql('postgres', "$FORCED $settings $sql"), $answer, "$what: right after $_[0]") };
	like($node->safe_psql('postgres', "$FORCED $settings EXPLAIN (COSTS OFF) $sql"), $plan, "$what: the plan");
	$again->('nothing');

	my ($session) = held_up($what);
	$node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE $active AND backend_type = 'client backend'");
	over("$what, cancelled", $session, qr/ended.*1/s);
	$again->('a cancel');

	for my $whom ('who waits', 'who is late')
	{
		my ($session, $event) = held_up($what);
		my $pid = process($whom eq 'who waits' ? $event : 'PgSleep');
		$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
		ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE $active"), "$what, $whom is terminated: all end");
		over("$what, $whom is terminated", $session);
		$again->("$whom was terminated");
	}

	# who is late is stopped for as long as others could lose patience
	($session) = held_up($what);
	my $late = process('PgSleep');
	kill 'STOP', $late;
	unlink $gate;
	sleep 1;
	is($node->safe_psql('postgres', "SELECT count(*) > 0 FROM pg_stat_activity WHERE $active"), 't', "$what, who is late is starved: the others wait");
	kill 'CONT', $late;
	(my $row = quotemeta $answer) =~ s/\\\|/\\s*\\|\\s*/g;
	over("$what, who is late is starved", $session, qr/$row.*ended/s);
}
is(scalar(() = slurp_file($node->logfile) =~ /PANIC|TRAP|was terminated by signal|leak|WARNING|problem in alloc|write past/g), 0, 'the log knows no crash, leak or warning');

for my $what (sort keys %query)
{
	my ($settings, $sql) = @{ $query{$what} };
	my $answer = $node->safe_psql('postgres', "SET hashgraph_join.enabled = off; $sql");
	my ($session, $event) = held_up($what);
	my $log = -s $node->logfile;
	kill 'KILL', process($event);
	$node->wait_for_log(qr/ready to accept connections/, $log);
	over("$what, who waits is killed", $session);
	is($node->safe_psql('postgres', "$FORCED $settings $sql"), $answer, "$what: right after the restart");
}
$node->stop;
done_testing();
