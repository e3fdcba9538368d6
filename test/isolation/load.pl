#!/usr/bin/perl
#
# Writes isolation specs anew, so that columns of all their tables are kept in memory
# before the sessions begin:
#
#	load.pl FROM TO
#
# copies the specs of folder FROM to folder TO.  What their first setups create is
# vacuumed, each table in a setup of its own, and loaded.  What they are expected to
# answer stays the same.
use strict;
use warnings;

my ($from, $to) = @ARGV;
die "usage: load.pl FROM TO\n" unless defined $to && -d $from && -d $to;

my $load = <<'END';
setup
{
  DO $$ BEGIN
    PERFORM public.hashgraph_join_load(c.oid) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_am a ON a.oid = c.relam
      WHERE c.relkind IN ('r', 'm') AND a.amname = 'heap' AND c.relpersistence = 'p' AND c.oid >= 16384
        AND pg_catalog.pg_relation_size(c.oid) > 0
        AND EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped);
  END $$;
}
END

foreach my $path (sort glob("$from/*.spec"))
{
	my ($name) = $path =~ m{([^/]+)$};
	open my $in, '<', $path or die "load.pl: $path: $!\n";
	my $spec = do { local $/; <$in> };
	# what stands before the teardown, or else the first session
	my ($head, $rest) = $spec =~ /^(.*?)(^(?:teardown|session)\b.*)$/ms or die "load.pl: $path has no session\n";
	my %seen;
	my @tables = grep { !$seen{$_}++ } $head =~ /^[^#\n]*?\bCREATE\s+(?:TABLE|MATERIALIZED\s+VIEW)\s+(?:IF\s+NOT\s+EXISTS\s+)?([\w."]+)/gim;
	$head .= "setup { VACUUM $_; }\n" foreach @tables;
	$head .= $load if @tables;
	open my $out, '>', "$to/$name" or die "load.pl: $to/$name: $!\n";
	print $out $head, $rest;
	close $out or die "load.pl: $to/$name: $!\n";
}
