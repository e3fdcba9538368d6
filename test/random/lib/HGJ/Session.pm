# One long-lived psql, driven through pipes.  Every block of SQL is followed by
# a marker; what psql printed before the marker is the block's result.
package HGJ::Session;

use strict;
use warnings;
use IPC::Open2;

sub new
{
	my ($class, %arg) = @_;
	my $self = bless { %arg, serial => 0, dead => 1 }, $class;
	return $self;
}

sub connect
{
	my ($self) = @_;
	my $psql = $ENV{PSQL} || 'psql';
	local $ENV{PGAPPNAME} = 'hashgraph_join random';
	local $ENV{HGJ_DB} = $self->{dbname};	# for commands of psql's \!
	# The shell joins the two streams: psql writes errors unbuffered and
	# flushes its standard output before it reads the next line.
	my $pid = open2(my $out, my $in, 'sh', '-c',
		'exec "$0" -X -q -A -t -F "|" -d "$1" 2>&1', $psql, $self->{dbname});
	binmode $in,  ':encoding(UTF-8)';
	binmode $out, ':encoding(UTF-8)';
	$in->autoflush(1);
	@$self{qw(pid in out dead)} = ($pid, $in, $out, 0);
	return if $self->{bare};
	my $r = $self->run("\\set VERBOSITY sqlstate\n"
		  . "set client_min_messages = warning;\n"
		  . ($self->{start} || ''));
	die "cannot set up a session: @$r\n" if !defined $r || @$r;
}

# Runs SQL (complete statements) and returns its output lines, or undef when
# the connection is gone.
sub run
{
	my ($self, $sql) = @_;
	local $SIG{PIPE} = 'IGNORE';
	if ($self->{dead}) { $self->connect }
	my $mark = sprintf '=== %d.%d ===', $$, ++$self->{serial};
	my $in = $self->{in};
	print {$in} $sql, "\n\\echo '$mark'\n" or return $self->gone;
	my $out = $self->{out};
	my @lines;
	while (defined(my $line = <$out>))
	{
		chomp $line;
		return \@lines if $line eq $mark;
		push @lines, $line;
	}
	$self->{last_words} = [ @lines > 20 ? @lines[ -20 .. -1 ] : @lines ];
	return $self->gone;
}

sub gone
{
	my ($self) = @_;
	close $self->{in};
	close $self->{out};
	waitpid $self->{pid}, 0;
	$self->{dead} = 1;
	return undef;
}

# Waits till the server takes connections again (it restarts after a crash).
sub revive
{
	my ($self) = @_;
	for my $try (1 .. 120)
	{
		my $ok = eval { $self->connect; 1 };
		return 1 if $ok;
		$self->gone unless $self->{dead};
		sleep 1;
	}
	return 0;
}

sub disconnect
{
	my ($self) = @_;
	return if $self->{dead};
	$self->gone;
}

1;
