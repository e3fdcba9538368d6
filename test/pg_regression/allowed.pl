# What may differ between PostgreSQL's own joins and ours in its regression
# files, each with its reason; anything else is a failure.
#
# skip:	files that are not run at all.
# table: results whose header or statement matches, left out on both sides.
# lines: lines from a match of `from` up to one of `to`, left out on both sides.
# notices: files in which notices that follow each other may come in another order.

{
	skip => {
		tablespace => 'makes cluster-wide objects in the server\'s own directories; has no joins of its own',
		infinite_recurse => 'exhausts the stack to see the error; has no joins',
		stats => 'waits for cumulative statistics, whose counts depend on what ran before',
		maintain_every => 'a list of VACUUMs for another kind of run',
	},
	table => [
		{
			file => 'join_hash', match => qr/^ *(initially_multibatch|multibatch|original \| final) /,
			why => 'asks the plan of a Hash Join how many batches it had; ours has no Hash node',
		},
		{
			file => 'merge', match => qr/explain_merge/,
			why => 'shows a plan through a function',
		},
		{
			file => 'partition_prune', match => qr/explain_parallel_append/,
			why => 'shows a plan through a function',
		},
		{
			file => 'plancache', match => qr/generic_plans/,
			why => 'counts how often a generic plan was cheaper than one for its parameters: forced ones cost next to nothing',
		},
	],
	lines => [
		{
			file => 'plpgsql', from => qr/^INFO:  (Hash Full Join|Custom Scan \(HashGraphJoin\))$/, to => qr/^$/,
			why => 'a trigger that raises the plan of its query',
		},
	],
	notices => [
		{ file => 'merge', why => 'triggers tell of rows in the order in which the join found them' },
		{ file => 'updatable_views', why => 'so do functions in the WHEN clauses of a MERGE' },
	],
}
