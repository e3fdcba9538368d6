# META.json, as PGXN wants it (https://pgxn.org/spec/): prints what is wrong, a line each.
use strict;
use warnings;
use JSON::PP;

sub slurp { open my $fh, '<', $_[0] or die "$_[0]: $!\n"; local $/; return scalar <$fh>; }

my $meta = eval { JSON::PP->new->utf8->decode(slurp('META.json')) } or do { print "no JSON: $@"; exit };
my $semver = qr/^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)([-+][-0-9A-Za-z.+]*)?$/;
my $term = qr{^[^\s/\\[:cntrl:]]{2,}$};
my ($version) = slurp('hashgraph_join.control') =~ /^default_version\s*=\s*'([^']*)'/m;

defined $meta->{$_} or print "no $_\n" for qw(name version abstract maintainer license provides meta-spec);
exit if grep { !defined $meta->{$_} } qw(name version provides meta-spec);
print "name: $meta->{name}\n" unless $meta->{name} =~ $term;
print "version: $meta->{version} is no semantic version\n" unless $meta->{version} =~ $semver;
print "version: $meta->{version}, and not $version as in the control file\n" unless index("$meta->{version}.", "$version.") == 0;
print "meta-spec: $meta->{'meta-spec'}{version}\n" unless ($meta->{'meta-spec'}{version} // '') =~ /^1\.0\.\d+$/;
print "release_status: $meta->{release_status}\n" unless ($meta->{release_status} // 'stable') =~ /^(stable|testing|unstable)$/;
print "license: $meta->{license}\n"
	unless ref $meta->{license} || $meta->{license} =~ /^(agpl_3|apache_[12]_[01]|artistic_[12]|bsd|freebsd|gfdl_1_[23]|gpl_[123]|lgpl_[23](_[01])?|mit|mozilla_1_[01]|open_source|openssl|perl_5|postgresql|qpl_1_0|restricted|ssleay|sun|unrestricted|unknown|zlib)$/;
for my $name (sort keys %{ $meta->{provides} })
{
	my $of = $meta->{provides}{$name};
	print "provides: $name\n" unless $name =~ $term;
	print "provides $name: no $_\n" for grep { !defined $of->{$_} } qw(file version);
	print "provides $name: version $of->{version}\n" unless ($of->{version} // '') eq $meta->{version};
	print "provides $name: there is no $of->{$_}\n" for grep { defined $of->{$_} && !-e $of->{$_} } qw(file docfile);
	print "provides $name: $of->{file} is not that of $version\n" unless ($of->{file} // '') =~ /--\Q$version\E\.sql$/;
}
for my $phase (values %{ $meta->{prereqs} // {} })
{
	for my $kind (values %$phase)
	{
		$kind->{$_} =~ /^(0|(([<>]=?|[!=]=)\s*)?\d+\.\d+\.\d+(\s*,.*)?)$/ or print "prereqs: $_ $kind->{$_}\n" for keys %$kind;
	}
}
$_ =~ /^[^\/\\[:cntrl:]]{1,256}$/ or print "tag: $_\n" for @{ $meta->{tags} // [] };
# what the spec does not know starts with x_
/^(name|version|abstract|description|maintainer|license|provides|meta-spec|generated_by|no_index|prereqs|release_status|resources|tags|x_.*)$/i
	or print "there is no key $_\n" for sort keys %$meta;
