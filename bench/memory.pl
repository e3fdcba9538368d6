# What bench/memory.sh runs, on a server that is there: how much private memory
# does a backend take for a join?  Settings of the environment, and the table
# that comes out, are explained in bench/memory.sh.
#
# 1. Each statement runs in a session of its own.  Its idle level is what the
#    process has (RssAnon) after LOAD and a tiny join; while the statement runs,
#    /proc/PID/status is read every two milliseconds, for parallel workers, too.
# 2. A limit is work_mem x hash_mem_multiplier for each join and each
#    HashGraphAgg of a process, as PostgreSQL has it for each of its nodes.
# 3. PostgreSQL's own join runs beside it, and the answers are compared.
# 4. Processor times of neighbours in a sweep by factors of two may not differ by
#    more than 1.6, nor, where their ratio is that much, by a few hundredths.
use strict;
use warnings;

use IO::Select;
use IPC::Open3;
use Time::HiRes qw(time);

my $psql = $ENV{PSQL} // 'psql';
my @sizes = split ' ', $ENV{ROWS} // '1M 10M';
my @work_mems = split ' ', $ENV{WORK_MEM} // '4 16 64 256 1024';
my @multipliers = split ' ', $ENV{MULTIPLIER} // '2';
my %wanted = map { s/_/ /gr => 1 } split ' ', $ENV{CASES} // '';
my $stock = ($ENV{STOCK} // 'yes') ne 'no';
my $slack = 16;    # MB above the limit that are allowed
my $step = 1.6;
my $largest = 10_000_000;    # rows of the wider tables
my $missed = 0;

# ---- a session, and what its process takes

sub session
{
	my ($out, $in);
	my $pid = open3($in, $out, undef, $psql, '-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1');
	my $self = { pid => $pid, in => $in, out => $out, select => IO::Select->new($out) };
	$self->{backend} = run_sql($self, 'SELECT pg_backend_pid();');
	open $self->{status}, '<', "/proc/$self->{backend}/status" or die "no /proc/$self->{backend}: $!\n";
	return $self;
}

# Runs statements, calls $while every two milliseconds, returns what they print.
sub run_sql
{
	my ($self, $sql, $while) = @_;
	my $text = '';
	print { $self->{in} } "$sql\n\\echo\n\\echo --end\n";
	$self->{in}->flush;
	while ($text !~ /^--end$/m)
	{
		if ($self->{select}->can_read($while ? 0.002 : 60))
		{
			sysread $self->{out}, $text, 65536, length $text or die "psql ended: $text\n";
		}
		$while->() if $while;
	}
	$text =~ s/\s*--end\s*$//;
	return $text;
}

sub end_session
{
	my $self = shift;
	close $self->{in};
	waitpid $self->{pid}, 0;
	return;
}

sub anon_of
{
	my $status = shift;
	seek $status, 0, 0;
	sysseek $status, 0, 0;
	return 0 unless sysread $status, my $text, 4096;
	return $text =~ /^RssAnon:\s+(\d+) kB/m ? $1 / 1024 : 0;
}

sub cpu_of
{
	my $pid = shift;
	open my $file, '<', "/proc/$pid/schedstat" or return 0;
	my ($ns) = split ' ', <$file>;
	return $ns / 1e9;
}

# The parallel workers of a backend that are at work now.
sub workers_of
{
	my ($postmaster, $backend) = @_;
	open my $file, '<', "/proc/$postmaster/task/$postmaster/children" or return;
	my @found;
	for my $pid (split ' ', <$file> // '')
	{
		open my $line, '<', "/proc/$pid/cmdline" or next;
		push @found, $pid if (<$line> // '') =~ /parallel worker for PID $backend\b/;
	}
	return @found;
}

# Peak of one statement, in MB above the idle level, its seconds and its answer.
sub measure
{
	my ($settings, $sql, $parallel) = @_;
	my $self = session();
	run_sql($self, "LOAD 'hashgraph_join'; SET max_parallel_workers_per_gather = 0; SET client_min_messages = warning;");
	run_sql($self, 'SET hashgraph_join.force = on; SELECT count(*) FROM tiny a JOIN tiny b USING (k); RESET hashgraph_join.force;');
	run_sql($self, $settings);
	my $peak = my $idle = anon_of($self->{status});
	my ($postmaster) = do { open my $s, '<', "/proc/$self->{backend}/status"; local $/ = undef; <$s> =~ /^PPid:\s+(\d+)/m };
	my (%worker, $ticks);
	my $cpu = cpu_of($self->{backend});
	my $answer = run_sql(
		$self, $sql,
		sub {
			my $now = anon_of($self->{status});
			$peak = $now if $now > $peak;
			return unless $parallel;
			for my $pid ($ticks++ % 8 ? () : workers_of($postmaster, $self->{backend}))
			{
				open $worker{$pid}, '<', "/proc/$pid/status" unless $worker{$pid};
			}
			for my $status (values %worker)
			{
				$now = $status ? anon_of($status) : 0;
				$peak = $now if $now > $peak;
			}
		});
	$cpu = cpu_of($self->{backend}) - $cpu;
	end_session($self);
	return ($peak - $idle, $cpu, $answer);
}

# ---- tables: build sides b_*, and a probe side with every key once, and key 5
# ten times in all.  Without statistics on keys both planners hash the smaller
# side, whatever its skew.

sub tables
{
	my ($kind, $n) = @_;
	my $probes = int($n * 1.1);
	my $key = '((%s) * 2654435761 %% 4294967296 - 2147483648)::int';
	my $text = "'customer-' || lpad((%s)::text, 10, '0')";
	my $pad = "repeat(md5(i::text), 6) || '12345678'";
	my $other = "CASE WHEN i < 10 THEN 5 ELSE i::bigint * 40503 % $probes END";
	my %build = (
		uniform => [ sprintf($key, 'i::bigint'), 'i % 77' ],
		zipf => [ sprintf($key, "exp(ln($n) * random())::bigint"), 'i % 77' ],
		one => [ sprintf($key, '5::bigint'), 'i % 77' ],
		text => [ sprintf($text, 'i'), 'i % 77' ],
		wide => [ sprintf($key, 'i::bigint'), $pad ]);
	my $make = sub {
		my ($name, $rows, $k, $v, $value) = @_;
		return "CREATE UNLOGGED TABLE $name AS SELECT $k AS k, $v AS $value FROM generate_series(1, $rows) i;"
		  . "ALTER TABLE $name ALTER k SET STATISTICS 0; VACUUM ANALYZE $name;";
	};
	return 'DROP TABLE IF EXISTS b, f, tiny; SELECT setseed(0.5) \g /dev/null' . "\n"
	  . $make->('b', $n, @{ $build{$kind} }, 'w')
	  . $make->('f', $probes, sprintf($kind eq 'text' ? $text : $key, $other), $kind eq 'wide' ? $pad : 'i % 1000', 'v')
	  . 'CREATE TABLE tiny AS SELECT i AS k FROM generate_series(1, 100) i;';
}

# ---- statements.  nodes: those that have a limit each.  of: kinds of build
# sides; largest: leave larger ones out.

my $sums = 'count(*), sum(f.v), sum(b.w)';
my @cases = (
	[ 'count', "SELECT $sums FROM f JOIN b USING (k)", nodes => 1, of => [qw(uniform zipf one text)] ],
	[ 'count', 'SELECT count(*), max(f.v), max(b.w) FROM f JOIN b USING (k)', nodes => 1, of => ['wide'] ],
	[ 'rows', "COPY (SELECT f.k, f.v, b.w FROM f JOIN b USING (k)) TO '/dev/null'", nodes => 1, of => [qw(uniform zipf text wide)], part => 1 ],
	[ 'left', "SELECT $sums FROM f LEFT JOIN b USING (k)", nodes => 1, of => [qw(uniform one)], part => 1 ],
	[ 'full', "SELECT $sums FROM f FULL JOIN b USING (k)", nodes => 1, of => [qw(uniform one)], part => 1 ],
	[ 'semi', 'SELECT count(*), sum(f.v) FROM f WHERE EXISTS (SELECT FROM b WHERE b.k = f.k AND b.w <= f.v)', nodes => 1, of => [qw(uniform one)], part => 1 ],
	[ 'anti', 'SELECT count(*), sum(f.v) FROM f WHERE NOT EXISTS (SELECT FROM b WHERE b.k = f.k AND b.w > f.v)', nodes => 1, of => [qw(uniform one)], part => 1 ],
	[ 'few groups', "SELECT b.w, $sums FROM f JOIN b USING (k) GROUP BY 1 ORDER BY 1 LIMIT 5", nodes => 2, of => ['uniform'], part => 1 ],
	[ 'many groups', "SELECT count(*), sum(n), sum(s) FROM (SELECT f.k, count(*) AS n, sum(b.w) AS s FROM f JOIN b USING (k) GROUP BY 1) x", nodes => 2, of => ['uniform'], part => 1 ],
	[ 'chain', 'SELECT count(*), sum(f.v), sum(b.w), sum(c.w) FROM f JOIN b USING (k) JOIN b c USING (k)', nodes => 2, of => ['uniform'], part => 1 ],
	[ 'passes', "SELECT $sums FROM f JOIN b USING (k)", nodes => 1, of => ['uniform'], part => 1, ours => 'SET hashgraph_join.spill = passes;', from => 64 ],
	[ 'two workers', "SELECT $sums FROM f JOIN b USING (k)", nodes => 1, of => ['uniform'], part => 1, parallel => 1,
		ours => 'SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;' ]);

sub compare
{
	my ($kind, $n, $name, $sql, %case) = @_;
	for my $multiplier (@multipliers)
	{
		my ($before_mb, $before_cpu);
		for my $mb (@work_mems)
		{
			next if $case{from} && $mb < $case{from};
			my $limit = $mb * $multiplier * $case{nodes};
			my $memory = "SET work_mem = '${mb}MB'; SET hash_mem_multiplier = $multiplier;";
			my ($peak, $cpu, $answer) = measure("$memory SET hashgraph_join.force = on; SET hashgraph_join.require = 'join';" . ($case{ours} // ''), "$sql;", $case{parallel});
			my $verdict = $peak <= $limit + $slack ? 'ok' : 'ABOVE';
			my $beside = '';
			if ($stock)
			{
				my ($stock_peak, $stock_cpu, $stock_answer) = measure("$memory SET hashgraph_join.enabled = off; SET enable_mergejoin = off;"
					. ($case{parallel} ? $case{ours} : ''), "$sql;", $case{parallel});
				$verdict = 'WRONG ANSWER' if $answer ne $stock_answer;
				$beside = sprintf '%9.1f %9.2f %6.1f', $stock_peak, $stock_cpu, $stock_cpu / ($cpu || 0.001);
			}
			if (defined $before_mb && $mb == 2 * $before_mb)
			{
				my ($less, $more) = sort { $a <=> $b } $cpu, $before_cpu;
				$verdict = sprintf 'A STEP OF %.2f', $more / $less if $verdict eq 'ok' && $more > $step * $less && $more > $less + 0.1;
			}
			($before_mb, $before_cpu) = ($mb, $cpu);
			$missed++ if $verdict ne 'ok';
			printf "%-12s %-8s %10d %7s %7d %9.1f %+8.1f %9.2f  %-26s %s\n", $name, $kind, $n, "$mb x$multiplier", $limit, $peak, $peak - $limit, $cpu, $beside, $verdict;
		}
	}
	return;
}

$| = 1;
printf "%-12s %-8s %10s %7s %7s %9s %8s %9s  %-26s\n", qw(case build rows work_mem limit peak above cpu_s), '    stock     cpu_s  ratio';
for my $size (@sizes)
{
	my $n = $size =~ /^(\d+)M$/ ? $1 * 1_000_000 : $size;
	for my $kind (qw(uniform zipf one text wide))
	{
		my @these = grep {
			my ($name, undef, %case) = @$_;
			(grep { $_ eq $kind } @{ $case{of} }) && (!%wanted || $wanted{$name} || $wanted{$kind} || $wanted{"$kind/$name"})
			  && ($n <= $largest || !($case{part} || $kind =~ /text|wide/))
		} @cases;
		next unless @these;
		my $self = session();
		run_sql($self, tables($kind, $n));
		end_session($self);
		compare($kind, $n, @$_) for @these;
	}
}
exit($missed ? 1 : 0);
