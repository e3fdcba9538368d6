# Makes one random query over a seed's star (HGJ::Star): joins of the fact
# table with one to four dimensions, which may have dimensions of their own;
# filters on the scans, in join conditions and above outer joins; rows or
# aggregates of them.  Mode, sql and explain are those of HGJ::Query.
package HGJ::StarQuery;

use strict;
use warnings;
use HGJ::Expr;
use HGJ::Query;
use HGJ::Rng;

sub new
{
	my ($class, $schema, $n) = @_;
	my $rng = HGJ::Rng->new("starquery:$schema->{seed}:$n");
	my $self = bless { schema => $schema, star => $schema->{star}, rng => $rng, rels => 0, hashed => 1, is_star => 1, alias => {},
		params => [], where => [] }, $class;
	$self->make;
	HGJ::Query::settings($self);
	$self->star_settings;
	return $self;
}

# ---------------------------------------------------------------- relations

sub columns
{
	my ($self, $table, $alias, $nullable) = @_;
	return [ map { { %$_, sql => "$alias.$_->{name}" } } grep { $_->{kind} ne 'key' && $_->{name} ne 'id' } @{ $table->{cols} } ];
}

# { sql, alias, table, cols }: a table, or something that reads like one
sub relation
{
	my ($self, $table, $filter) = @_;
	my $rng = $self->{rng};
	my $n = $self->{alias}{ $table->{name} }++;
	(my $alias = $table->{name}) =~ s/^(.)\D*/$1/;
	$alias .= 'x' x $n;
	my $r = { table => $table, alias => $alias, cols => $self->columns($table, $alias) };
	$r->{sql} = "$table->{name} $alias";
	$self->{rels}++;
	$self->{temp} = 1 if $table->{temp};
	# In a changed table rows stand elsewhere in the second of the two runs.
	my $kind = $rng->weighted(plain => 60, sub => 3, offset => 2, sample => $self->{mode} =~ /^(changed|old)$/ ? 0 : 2);
	my $inner = $self->columns($table, 's');
	if ($kind eq 'sub') { $r->{sql} = "(select * from $table->{name} s where " . $self->qual($inner, 1) . ") $alias" }
	if ($kind eq 'offset') { $r->{sql} = "(select * from $table->{name} s where " . $self->qual($inner, 1) . " offset 0) $alias"; $self->{odd} = 1 }
	if ($kind eq 'sample')
	{
		$r->{sql} = "$table->{name} $alias tablesample " . $rng->pick('system (60)', 'bernoulli (40)') . ' repeatable (' . $rng->between(1, 9) . ')';
		$self->{odd} = 1;
	}
	$r->{base} = $kind ne 'offset';
	return $r;
}

sub expr { my ($self) = @_; return HGJ::Expr->new($self->{rng}, params => $self->{params}) }
sub qual { my ($self, $cols, $depth) = @_; return $self->expr->qual($cols, $depth) }

# a filter of one relation, more often than not
sub filter
{
	my ($self, $r, $percent) = @_;
	return () unless $self->{rng}->chance($percent);
	my @q = $self->qual($r->{cols});
	push @q, $self->qual($r->{cols}, 1) if $self->{rng}->chance(30);
	# now and then a filter that leaves little or nothing
	push @q, "$r->{alias}.id < " . $self->{rng}->pick(0, 5, 40) if $self->{rng}->chance(8);
	return @q;
}

# "fact.d1 = dim1.k", and what else has to hold of a pair
sub condition
{
	my ($self, $from, $link, $to) = @_;
	my $rng = $self->{rng};
	my @on = $rng->pick("$from->{alias}.$link = $to->{alias}.k", "$to->{alias}.k = $from->{alias}.$link");
	if ($rng->chance(20))
	{
		my ($x, $y) = ($from->{cols}, $to->{cols});
		my $a = $rng->pick(grep { $_->{kind} eq 'int' } @$x);
		my $b = $rng->pick(grep { $_->{kind} eq 'int' } @$y);
		push @on, $rng->pick("$a->{sql} " . $rng->pick('<', '>', '<>', '>=') . " $b->{sql}", $self->qual([ @$x, @$y ], 1),
			"($a->{sql} + $b->{sql} > " . $rng->between(-50, 50) . " or $a->{sql} is null)");
	}
	push @on, "$from->{alias}.g4 = $to->{alias}.g4" if $rng->chance(4);
	return join ' and ', $rng->shuffle(@on);
}

# Adds the dimension of a link to what has been joined so far.
sub add_dimension
{
	my ($self, $sql, $from, $link, $depth) = @_;
	my $rng = $self->{rng};
	my $d = $self->relation($link->{to});
	my $type = $rng->weighted(inner => 12, left => 8, right => 1, full => 1);
	my $on = $self->condition($from, $link->{name}, $d);
	my $item = $d->{sql};
	my @subs = @{ $link->{to}{links} };
	my $chain;
	if (@subs && $rng->chance(60))
	{
		my $s = $subs[0];
		if ($rng->chance(40))
		{
			# its own dimension first: a join on the inner side
			my $e = $self->relation($s->{to});
			$item = "($item " . $rng->pick('', 'left ') . "join $e->{sql} on " . $self->condition($d, $s->{name}, $e) . ')';
			push @{ $self->{relations} }, $e;
		}
		else { $chain = $s }
	}
	# A filter in the condition of an outer join is no filter of the result.
	my @f = $self->filter($d, 25);
	if (@f && ($type ne 'inner' || $rng->chance(20))) { $on .= ' and ' . join ' and ', @f }
	else { push @{ $self->{where} }, @f }
	push @{ $self->{relations} }, $d;
	$self->{outer} = 1 if $type ne 'inner';
	$sql = "$sql $type join $item on $on";
	$sql = $self->add_dimension($sql, $d, $chain, 1) if $chain;
	return $sql;
}

# exists, not exists, in
sub sublink
{
	my ($self, $from, $link) = @_;
	my $rng = $self->{rng};
	my $d = $self->relation($link->{to});
	$self->{semi} = 1;
	my $where = join ' and ', $self->condition($from, $link->{name}, $d), $self->filter($d, 30);
	my $kind = $rng->weighted(exists => 4, not => 4, in => 2);
	return ($kind eq 'not' ? 'not ' : '') . "exists (select 1 from $d->{sql} where $where)" if $kind ne 'in';
	my @f = $self->filter($d, 30);
	return "$from->{alias}.$link->{name} in (select $d->{alias}.k from $d->{sql}" . (@f ? ' where ' . join(' and ', @f) : '') . ')';
}

sub tree
{
	my ($self) = @_;
	my $rng = $self->{rng};
	my $star = $self->{star};
	my $f = $self->relation($star->{fact});
	$self->{relations} = [$f];
	my @links = $rng->shuffle(@{ $star->{fact}{links} });
	splice @links, $self->{scan} ? 0 : $rng->weighted(1 => 5, 2 => 5, 3 => 4, 4 => 3);
	my $sql = $f->{sql};
	if (@links == 1 && $rng->chance(8))
	{
		# a dimension first: the fact table is what is built
		my $d = $self->relation($links[0]{to});
		push @{ $self->{relations} }, $d;
		my $type = $rng->pick(qw(inner left right full));
		$sql = "$d->{sql} $type join $f->{sql} on " . $self->condition($f, $links[0]{name}, $d);
		@links = ();
	}
	for my $l (@links)
	{
		if ($rng->chance(18)) { push @{ $self->{where} }, $self->sublink($f, $l) }
		else { $sql = $self->add_dimension($sql, $f, $l, 0) }
	}
	if ($rng->chance(4) && !$self->{scan})
	{
		my $g = $self->relation($star->{fact});
		push @{ $self->{relations} }, $g;
		$sql .= $rng->pick(' join ', ' left join ') . "$g->{sql} on $g->{alias}.id = $f->{alias}.id";
	}
	push @{ $self->{where} }, $self->filter($f, 50);
	my @all = map { @{ $_->{cols} } } @{ $self->{relations} };
	push @{ $self->{where} }, $self->qual(\@all, 1) if $rng->chance(12);
	if ($rng->chance(6))
	{
		my $t = $rng->pick(map { $star->{tables}{$_} } sort keys %{ $star->{tables} });
		push @{ $self->{where} }, "$f->{alias}.i4 > (select " . $rng->pick('avg(i4)', 'min(i4)', 'sum(g4)') . " from $t->{name})";
		$self->{odd} = 1;
	}
	$self->{cols} = \@all;
	return "from $sql" . (@{ $self->{where} } ? ' where ' . join(' and ', $rng->shuffle(@{ $self->{where} })) : '');
}

# ---------------------------------------------------------------- outputs

sub rows
{
	my ($self, $from) = @_;
	my ($rng, $e) = ($self->{rng}, $self->expr);
	my @list;
	for (1 .. $rng->between(1, 6))
	{
		my $c = $rng->pick(@{ $self->{cols} });
		my $x = $rng->chance(20) ? $e->arith($self->{cols}, 1) : undef;
		push @list, $x ? $e->out($x) : $c->{long} ? "md5($c->{sql})" : $c->{sql};
	}
	push @list, $self->{relations}[0]{alias} . '.id' if $rng->chance(40);
	if ($rng->chance(5))
	{
		my $r = $rng->pick(@{ $self->{relations} });
		push @list, $rng->pick("md5($r->{alias}::text)", $r->{base} && $self->{mode} !~ /^(changed|old)$/ ? ("$r->{alias}.ctid", "$r->{alias}.tableoid::regclass") : ()) ;
		$self->{odd} = 1;
	}
	return 'select ' . join(', ', @list) . " $from";
}

sub aggregates
{
	my ($self, $from) = @_;
	my ($rng, $e) = ($self->{rng}, $self->expr);
	my $n = $rng->weighted(0 => 4, 1 => 5, 2 => 4, 3 => 2);
	my (@by, @list, %seen);
	for (1 .. $n)
	{
		my $c = $rng->pick(@{ $self->{cols} });
		my $x = $rng->chance(15) ? $e->arith($self->{cols}, 1) || $c : $c;
		# few groups more often than many
		my @few = grep { $_->{name} && $_->{name} =~ /^(g4|b|u|t|late|tag)$/ } @{ $self->{cols} };
		$x = $rng->pick(@few) if @few && $rng->chance(60);
		next if $x->{sql} !~ /[a-z]/ || $seen{ $x->{sql} }++;
		push @by, $x->{sql};
		push @list, $e->out($x);
	}
	# as many groups as rows
	if ($rng->chance(8))
	{
		push @by, "$self->{relations}[0]{alias}.id";
		push @list, $by[-1];
	}
	# a primary key: the rest of its table depends on it
	if ($n == 1 && $rng->chance(20))
	{
		my ($d) = grep { $_->{table}{primary} && $_->{sql} =~ /^\w+ \w+$/ } @{ $self->{relations} };
		if ($d)
		{
			@by = ("$d->{alias}.k");
			@list = ("$d->{alias}.k", map { $e->out($_) } $rng->pick(@{ $d->{cols} }));
		}
	}
	push @list, map { $e->aggregate($self->{cols}) } 1 .. $rng->weighted(1 => 5, 2 => 4, 4 => 2, 7 => 1);
	my $group = @by ? ' group by ' . join(', ', @by) : '';
	if (@by && $rng->chance(4)) { $group = ' group by ' . $rng->pick('rollup', 'cube') . ' (' . join(', ', @by) . ')'; $self->{odd} = 1 }
	my @having;
	push @having, $rng->pick('count(*) > 1', 'sum(' . $self->{relations}[0]{alias} . '.i4) > 0', $e->aggregate($self->{cols}) . ' is not null', 'count(*) % 2 = 1')
	  if $rng->chance($n ? 25 : 8);
	$self->{aggregate} = 1;
	$self->{declined} = 1 if "@list @having" =~ /distinct |array_agg|string_agg|variance/;
	return 'select ' . join(', ', @list) . " $from$group" . (@having ? ' having ' . join(' and ', @having) : '');
}

# A change that the session itself makes in the transaction of the query.
sub own_change
{
	my ($self) = @_;
	my $rng = $self->{rng};
	my $t = $rng->pick(map { $_->{table} } @{ $self->{relations} });
	my $m = $rng->pick(2, 5, 9);
	my $from = $t->{rows} + 800000;
	return $rng->pick("update $t->{name} set i4 = i4 + 1, g4 = 1 where id % 7 <> 3 and id % $m = 1", "delete from $t->{name} where id % 7 <> 3 and id % $m = 0",
		$t->{primary} ? "update $t->{name} set i4 = null where id = 6" : $t->{insert}->($from, $from + 50),
		"savepoint s; update $t->{name} set i4 = 0 where id % 7 <> 3 and id % $m = 1; rollback to s; release s");
}

# A change that another session commits meanwhile, and that leaves the tables
# as they were for whoever begins later.
sub foreign_change
{
	my ($self) = @_;
	my $rng = $self->{rng};
	my @t = grep { !$_->{temp} } map { $_->{table} } @{ $self->{relations} };
	return '' unless @t;
	my @sql;
	for my $t ($t[0], $rng->pick(@t))
	{
		my $m = $rng->pick(1, 2, 5);
		push @sql, "update $t->{name} set i4 = i4, g4 = g4 where id % 7 <> 3 and id % $m = 0";
		# Who looks next leaves hint bits behind, if the commit is on disk.
		push @sql, $rng->pick("vacuum $t->{name}", "select from $t->{name} where i4 = -99999");
	}
	my $psql = "PGOPTIONS='-c search_path=$self->{schema}{name} -c statement_timeout=600s -c synchronous_commit=on' " . '"${PSQL:-psql}" -X -q -d "$HGJ_DB"';
	return "\\! $psql" . join('', map { " -c '$_'" } @sql) . "\n";
}

sub make
{
	my ($self) = @_;
	my $rng = $self->{rng};
	my $mode = $rng->weighted(plain => 50, prepared => 9, cursor => 5, early => 3, changed => 9, open => 6, old => 9, sublimit => 3, isolated => 4, correlated => 5, plpgsql => 2,
		ctas => 2, ordered => 2);
	$self->{mode} = $mode;
	$self->{params} = [qw($1 $2)] if $mode eq 'prepared';
	$self->{params} = [qw(x.i x.j)] if $mode eq 'correlated';
	# a table by itself, to be aggregated
	$self->{scan} = $mode !~ /^(early|open|sublimit)$/ && $rng->chance(20);
	$self->{hashed} = 0 if $self->{scan};
	my $from = $self->tree;
	my $sql = !$self->{scan} && ($mode =~ /^(cursor|early|open|sublimit)$/ || $rng->chance(30)) ? $self->rows($from) : $self->aggregates($from);
	$self->{sql} = $self->{explain} = $sql;
	$self->{chunks} = [ map { $rng->pick(1, 2, 7, 50, 333, 1000) } 1 .. $rng->between(1, 4) ];
	$self->{scroll} = $rng->pick('', '', 'scroll ');
	$self->{hold} = $rng->pick('', '', ' with hold');
	if ($mode eq 'prepared')
	{
		$self->{prepare} = "prepare p(int, int) as $sql";
		my ($x, $y) = map { $rng->between(-20, 100) } 1 .. 2;
		$self->{explain} = "execute p($x, $y)";
		$self->{plan_cache_mode} = $rng->pick(qw(force_generic_plan force_generic_plan auto force_custom_plan));
		$self->{script} = "$self->{prepare};\nexecute p($x, $y);\nexecute p($y, $x);\nexecute p(null, $x);\ndeallocate p;\n";
	}
	elsif ($mode eq 'changed')
	{
		# what the transaction has changed itself is seen, and no more
		my $more = $rng->chance(40) ? $self->own_change . ";\n$sql;\n" : '';
		$self->{script} = 'begin' . $rng->pick('', ' isolation level repeatable read') . ";\n" . $self->own_change . ";\n$sql;\n${more}rollback;\n";
	}
	elsif ($mode eq 'open')
	{
		# a cursor does not see what happens after it was opened
		$self->{script} = "begin;\ndeclare c cursor for $sql;\nfetch $self->{chunks}[0] from c;\n" . $self->own_change . ";\n" . $self->own_change
		  . ";\nfetch all from c;\nrollback;\n";
	}
	elsif ($mode eq 'old')
	{
		# an old snapshot, and what has been committed since; an index scan that
		# stands still, of either plan, would keep the other session's VACUUM waiting
		my $cursor = !$self->{aggregate};
		$self->{script} = $cursor
		  ? "begin;\nset local enable_indexscan = off;\nset local enable_indexonlyscan = off;\ndeclare c cursor for $sql;\nfetch $self->{chunks}[0] from c;\n" . $self->foreign_change . $self->foreign_change . "fetch all from c;\ncommit;\n"
		  : "begin isolation level repeatable read;\nselect 1;\n" . $self->foreign_change . "$sql;\n" . $self->foreign_change . "$sql;\ncommit;\n";
	}
	elsif ($mode eq 'isolated')
	{
		$self->{script} = 'begin isolation level ' . $rng->pick('serializable', 'serializable', 'serializable, read only, deferrable', 'repeatable read')
		  . ";\n$sql;\n$sql;\ncommit;\n";
	}
	elsif ($mode eq 'correlated')
	{
		# a rescan per row
		my $n = $rng->between(2, 6);
		my $rows = "(select i, nullif(i * 7 - 10, 4) as j from generate_series(1, $n) i) x";
		my ($join, $on) = $rng->chance(50) ? ('cross join', '') : ('left join', ' on true');
		$self->{sql} = $self->{explain} = "select x.i, q.* from $rows $join lateral ($sql) q$on";
	}
	elsif ($mode eq 'sublimit') { $self->{limited} = $sql . $rng->pick(' limit ', ' offset 3 limit ') . $rng->pick(1, 10, 100, 2000) }
	elsif ($mode eq 'ordered')
	{
		$self->{sql} = $self->{explain} = "select * from ($sql) q order by md5(q::text), q::text limit " . $rng->pick(1, 10, 200);
		$self->{ordered} = 1;
	}
	$self->{sure} = !$self->{semi} && !$self->{odd} && $mode ne 'correlated' && $mode ne 'prepared' && $self->{rels} == 2
	  && $self->{sql} !~ /\(select|select \* from|f_lt|coalesce/;
	return;
}

# How the forced run is to go about it.
sub star_settings
{
	my ($self) = @_;
	my $rng = $self->{rng};
	my $f = $self->{force};
	delete @{ $self->{common} }{qw(parallel_setup_cost parallel_tuple_cost min_parallel_table_scan_size max_parallel_workers_per_gather)};
	$self->{common}{max_parallel_workers_per_gather} = 0;
	if ($rng->chance($self->{mode} eq 'old' ? 10 : 35))
	{
		@$f{qw(parallel_setup_cost parallel_tuple_cost min_parallel_table_scan_size)} = (0, 0, 0);
		$f->{max_parallel_workers_per_gather} = $rng->between(1, 2);
		$f->{parallel_leader_participation} = $rng->pick(qw(on on off));
		$self->{parallel} = 1;
	}
	$self->{common}{work_mem} = $rng->pick(qw(64kB 256kB 4MB 4MB));
	# Who comes first meets rows that nobody has looked at since they changed.
	$self->{forced_first} = $rng->chance(50);
}

1;
