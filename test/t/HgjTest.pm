# What the TAP tests of hashgraph_join share.
package HgjTest;

use strict;
use warnings;

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

our @EXPORT = qw(new_server $FORCED joined_plan wait_until sessions_ended comes_back terminated column_loading fails_with cancels lives_on keeps_nothing neighbour neighbour_ends fake_faults wait_for_device gpu_process money_moves);

# Sessions start with this where the planner is to have no choice.
our $FORCED =
    "LOAD 'hashgraph_join';"
  . "SET hashgraph_join.force = on; SET hashgraph_join.require = 'join';"
  . "SET client_min_messages = warning;";

# A running server with the extension created in database postgres.  Columns are kept where
# a test asks for it: plans must not depend on what has been loaded meanwhile.
sub new_server
{
	my ($name, @conf) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init;
	$node->append_conf('postgresql.conf', join("\n", 'jit = off', 'autovacuum = off', 'hashgraph_join.column_memory = 0', @conf));
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

# Waits until the function returns something true, and returns that; a slow machine takes longer
# to get there, so that only one that never does is in the way of a test.
sub wait_until
{
	my ($what, $true) = @_;
	my $until = time + $PostgreSQL::Test::Utils::timeout_default;
	while (time < $until)
	{
		my $is = $true->();
		return $is if $is;
		usleep(20_000);
	}
	die "$what: waited in vain";
}

# Waits for the ends of earlier sessions, which report what they counted after their clients
# have gone: statistics that are reset before that have it in addition.
sub sessions_ended
{
	my ($node) = @_;
	$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
	  or die 'an earlier session does not end';
	return;
}

# After a crash: true when the query's answer is true.  A psql that the server refuses ends before
# it has read its query, and IPC::Run, which is writing that, dies ("Broken pipe").
sub comes_back
{
	my ($node, $query) = @_;
	for (;;)
	{
		my $back = eval { $node->poll_query_until('postgres', $query // 'SELECT true') };
		return $back if $@ eq '';
		die $@ if $@ !~ /Broken pipe/;
	}
}

# Terminates a session, and waits until it has gone.
sub terminated
{
	my ($node, $pid) = @_;
	$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
	$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid")
	  or die "process $pid does not end";
	return;
}

# Runs a function, and waits until the column loaders that were asked for meanwhile have
# ended, as the server's log says at debug1; returns how many there were.
sub column_loading
{
	my ($node, $run) = @_;
	my $before = -s $node->logfile;
	my $times = sub { return scalar(() = slurp_file($node->logfile, $before) =~ /a column loader $_[0]/g) };
	$run->();
	# a session says so before its statement ends
	my $asked = $times->('is asked for');
	wait_until('column loaders end', sub { $times->('ends') >= $asked });
	$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'hashgraph_join column loader'")
	  or die 'a column loader does not end';
	return $asked;
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

# Ok when a statement is cancelled, leaves no file behind, and its session then answers.
#
#   sql       the statement; by itself it would run for hours
#   wait      seconds after its start
#   when      a function that says whether it is where it is to be cancelled
#   good      a query that the session must answer afterwards, with answer
sub cancels
{
	my ($node, $what, %test) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query_safe($FORCED);
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	$session->query_until(qr/running/, "\\echo running\n$test{sql};\n\\echo ended\n");
	$node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE pid = $pid AND query NOT LIKE '%pg_backend_pid%'")
	  or die "$what: the statement did not start";
	usleep($test{wait} * 1_000_000);
	wait_until("$what: is where it is to be cancelled", $test{when}) if $test{when};
	is($node->safe_psql('postgres', "SELECT state FROM pg_stat_activity WHERE pid = $pid"),
		'active', "$what: still running when cancelled");
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
	$node->poll_query_until('postgres', "SELECT state = 'idle' FROM pg_stat_activity WHERE pid = $pid")
	  or die "$what: the statement did not end";
	like($session->query($test{good}), qr/\Q$test{answer}\E/, "$what: the same session then joins rightly");
	like($session->{stderr}, qr/canceling statement due to user request/, "$what: the error is the cancel's");
	$session->{stderr} = '';
	is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), 0, "$what: no temporary file is left");
	$session->quit;
}

# Ok when a statement fails with an error that matches, without a warning, and
# its session then answers.
#
#   sql       the statement
#   pattern   of the error
#   good      what the session must do afterwards, with answer
sub lives_on
{
	my ($node, $what, %test) = @_;
	my ($rc, $out, $err) = $node->psql('postgres', "$FORCED $test{sql};\n$test{good}", on_error_stop => 0);
	like($err, $test{pattern}, "$what: reported");
	unlike($err, qr/WARNING/, "$what: without a warning");
	like($out, qr/\Q$test{answer}\E/, "$what: the session goes on");
}

# What the session holds: PostgreSQL's memory contexts in bytes, the process's
# own memory and its address space in kB.  Engines allocate outside of contexts.
sub memory_of
{
	my ($session, $pid) = @_;
	my $contexts = $session->query_safe('SELECT sum(total_bytes) FROM pg_backend_memory_contexts');
	my $status = slurp_file("/proc/$pid/status");
	my ($anon) = $status =~ /^RssAnon:\s+(\d+) kB/m or die 'no RssAnon';
	my ($data) = $status =~ /^VmData:\s+(\d+) kB/m or die 'no VmData';
	return ($contexts, $anon, $data);
}

# Ok when nothing stays in a session that runs a statement many times.
#
#   sql       the statement; it changes no setting but those that reset knows
#   reset     brings the settings back after each
#   warm      rounds that warm caches; after them nothing may grow
#   rounds    rounds that are measured
#   stops     errors that count as a stop: every round has one, or, undefined, none
#   good      a query that the session must answer afterwards, with answer
sub keeps_nothing
{
	my ($node, $what, %test) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query_safe($FORCED);
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	my $stops = 0;
	my $rounds = sub {
		for (1 .. shift)
		{
			# psql sends the statements one by one: after an error, the rest runs.
			$session->query("$test{sql} $test{reset}");
			$stops++ if $session->{stderr} =~ ($test{stops} // qr/ERROR/);
			$session->{stderr} = '';
		}
	};
	$rounds->($test{warm});
	my ($contexts0, $anon0, $data0) = memory_of($session, $pid);
	$rounds->($test{rounds});
	my ($contexts1, $anon1, $data1) = memory_of($session, $pid);
	my $name = "$test{rounds} times $what";
	is($stops, defined $test{stops} ? $test{warm} + $test{rounds} : 0, "$name: each of them did");
	cmp_ok($contexts1, '<=', $contexts0 + 256 * 1024, "$name: memory contexts do not grow ($contexts0 to $contexts1 bytes)");
	cmp_ok($anon1, '<=', $anon0 + 16 * 1024, "$name: the process does not grow ($anon0 to $anon1 kB)");
	cmp_ok($data1, '<=', $data0 + 32 * 1024, "$name: nor does its address space ($data0 to $data1 kB)");
	like($session->query("$test{reset} $test{good}"), qr/\Q$test{answer}\E/, "$name: the session joins rightly");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_ls_tmpdir()'), 0, "$name: no temporary file is left");
	$session->quit;
}

# A session beside the test, which runs a join of ours all the time, with memory
# for it (the files of its database are then those of the test).  $before and
# $query as everywhere; the query returns one value.
sub neighbour
{
	my ($node, $before, $query) = @_;
	$node->safe_psql('postgres', q{
	CREATE FUNCTION neighbour(sql text) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE wrong int := 0; rounds int := 0; answer text; first text;
	BEGIN
		WHILE rounds = 0 OR (pg_stat_file('stop_neighbour', true)).size IS NULL LOOP
			EXECUTE sql INTO answer;
			first := coalesce(first, answer);
			wrong := wrong + (answer IS DISTINCT FROM first)::int;
			rounds := rounds + 1;
			PERFORM pg_sleep(0.05);
		END LOOP;
		RETURN CASE WHEN rounds > 0 AND wrong = 0 THEN 'all right' ELSE wrong || ' of ' || rounds || ' wrong' END;
	END $$});
	my %self = (node => $node, in => '', out => '', err => '');
	$self{psql} = IPC::Run::start(
		[ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', $before, '-c', "SELECT neighbour(\$\$$query\$\$)" ],
		\$self{in}, \$self{out}, \$self{err});
	return \%self;
}

# What is to fail in the fake engine from now on (test/fake/fake_engine.c), a line each.
sub fake_faults
{
	my ($node, @lines) = @_;
	my $file = $node->data_dir . '/hgj_fake_engine';
	open my $fh, '>', $file or die "$file: $!";
	print $fh map { "$_\n" } @lines;
	close $fh;
}

# Until there is a device, again.
sub wait_for_device
{
	my ($node) = @_;
	$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM hashgraph_join_devices() WHERE state IN ('open', 'available')}) or die 'there is no device';
	return;
}

# The GPU process, as hashgraph_join_devices() names it; none while there is none.
sub gpu_process
{
	my ($node) = @_;
	my $detail = $node->safe_psql('postgres', 'SELECT detail FROM hashgraph_join_devices()');
	return $detail =~ /^process (\d+) has it open for all sessions$/ ? $1 : '';
}

# Ok when $query, in sessions that begin with $before, gives $right all the time, whatever
# snapshot it has, while the rows of table accounts are written, vacuumed and loaded: money
# goes from those whose $key is 2 more than a multiple of 100 to those where it is 1 more.
sub money_moves
{
	my ($node, $before, $key, $query, $right, $name) = @_;
	my $until = time + ($ENV{HGJ_KEPT_SECONDS} // 8);
	my ($wrong, $answers) = (0, 0);
	my @writers = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 2;
	my @readers = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 2;
	$_->query_safe("$before SET default_transaction_isolation = 'repeatable read'") for @readers;
	my $maintainer = $node->background_psql('postgres', on_error_stop => 0);
	while (time < $until)
	{
		$writers[$_]->query("BEGIN; UPDATE accounts SET money = money + 5 WHERE $key = " . (1 + 100 * int(rand(400))) . "; UPDATE accounts SET money = money - 5 WHERE $key = " . (2 + 100 * int(rand(400))) . '; ' . (rand() < 0.2 ? 'ROLLBACK' : 'COMMIT')) for 0 .. 1;
		$maintainer->query(rand() < 0.3 ? 'VACUUM accounts' : "SELECT hashgraph_join_load('accounts')") if rand() < 0.4;
		for my $reader (@readers)
		{
			my $got = $reader->query($query);
			$answers++;
			$wrong++ if $got ne $right;
			diag("$got, not $right") if $got ne $right;
		}
	}
	$_->quit for @writers, @readers, $maintainer;
	is($wrong, 0, "$name: no wrong answer among $answers");
	return;
}

# Ok when it had right answers, and no message.
sub neighbour_ends
{
	my ($self) = @_;
	append_to_file($self->{node}->data_dir . '/stop_neighbour', 'x');
	$self->{psql}->finish;
	is($self->{out}, "all right\n", 'the neighbour had right answers all the time');
	is($self->{err}, '', 'and no message');
}

1;
