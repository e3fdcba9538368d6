/*-------------------------------------------------------------------------
 *
 * agg_seen.c
 *	  The values that an aggregate with DISTINCT has seen in each group, in a hash
 *	  table, so that few rows are sorted, or none.
 *
 * 1. It is a group table (columns/groups.c), of the aggregate's groups and its one
 *	  argument that is no constant: a row that is not the first of its entry is
 *	  forgotten.
 * 2. Where neither the order of values matters, nor which one of several equal values is
 *	  taken, the first row of an entry goes to the transition function at once.  Rows
 *	  that find no entry in a full table are sorted (agg_sorted.c), and follow when
 *	  the group is returned: none of them has an entry, as a full table stays as it is.
 * 3. Of other aggregates the first row of an entry is sorted.  When most rows turn out
 *	  to be the first, the table is given up.
 *
 * Memory: a share of the memory limit, divided among the aggregates that have one;
 * malloc'd, and released with the states, or when the query is aborted (agg_node.c).
 * No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_transition.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* Rows that are looked up at a time. */
#define BLOCK_ROWS		4096

/* After so many rows, this part of them should have been seen before. */
#define TRIAL_ROWS		32768
#define WORTHWHILE(rows)	((rows) / 4)

typedef struct HgjAggSeen
{
	HgjAggState *state;
	HgjGroups	table;
	bool		ready;			/* its memory limit is known */
	int			argument;		/* that is no constant */
	bool		at_once;		/* step 2 */
	bool		given_up;		/* step 3 */
	uint64		rows;
	HgjBatch	batch;
	HgjBuffer  *keys;
	uint32	   *places;			/* of its rows, in the input */
	NullableDatum *arguments;	/* of one row */
} HgjAggSeen;

/* The group, if there are several, and the argument. */
static void
init_keys(HgjAggSeen *seen, Expr *argument, Oid equality, bool grouped)
{
	HgjGroups  *table = &seen->table;
	HgjGroupKey *key;

	table->keys = palloc0(2 * sizeof(HgjGroupKey));
	if (grouped)
	{
		key = &table->keys[table->nkeys++];
		key->kind = key->value_kind = HGJ_GROUP_WORD;
		key->attlen = sizeof(int32);
		key->attbyval = true;
	}
	key = &table->keys[table->nkeys];
	key->column = table->nkeys++;
	get_typlenbyval(exprType((Node *) argument), &key->attlen, &key->attbyval);
	hgj_group_key_init(key, (Node *) argument, equality);
	table->ntelling = table->nkeys;

	table->nulls_offset = sizeof(int64) + table->nkeys * sizeof(Datum);
	table->stride = MAXALIGN(table->nulls_offset + table->nkeys);
	table->initial = palloc0(table->stride);
}

/* DISTINCT's clause for the only argument that is no constant; NULL: there is none. */
static SortGroupClause *
the_clause(const Aggref *aggref)
{
	SortGroupClause *result = NULL;
	ListCell   *lc;

	foreach(lc, aggref->aggdistinct)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);

		if (IsA(get_sortgroupclause_tle(clause, aggref->args)->expr, Const))
			continue;
		if (result)
			return NULL;
		result = clause;
	}
	return result;
}

/* Keep what the aggregate has seen, where that can be.  Call at executor start. */
void
hgj_agg_seen_init(HgjAggState *state, HgjTransition *transition)
{
	const Aggref *aggref = transition->trans->aggref;
	SortGroupClause *clause = the_clause(aggref);
	TargetEntry *tle;
	HgjAggSeen *seen;

	if (clause == NULL || !clause->hashable)
		return;
	tle = get_sortgroupclause_tle(clause, aggref->args);
	seen = palloc0(sizeof(HgjAggSeen));
	seen->state = state;
	seen->argument = tle->resno - 1;
	seen->at_once = hgj_agg_takes_any_equal(aggref->aggfnoid, tle->expr);	/* step 2 */
	init_keys(seen, tle->expr, clause->eqop, hgj_agg_is_grouped(state));
	seen->batch.vectors = palloc0(seen->table.nkeys * sizeof(HgjVector));
	seen->keys = palloc0(seen->table.nkeys * sizeof(HgjBuffer));
	seen->arguments = palloc(list_length(aggref->args) * sizeof(NullableDatum));
	seen->places = palloc(BLOCK_ROWS * sizeof(uint32));
	transition->ordered = !seen->at_once;
	transition->seen = seen;
	state->nseen++;
}

/* At the first row, when the limits of all are known. */
static void
get_ready(HgjAggSeen *seen)
{
	MemoryContext context = seen->state->context;
	MemoryContext old = MemoryContextSwitchTo(context);

	seen->table.limit = HGJ_AGG_SEEN_SHARE(get_hash_memory_limit()) / seen->state->nseen;
	hgj_groups_init(&seen->table, context);
	hgj_groups_reserve(&seen->table, BLOCK_ROWS);
	for (int k = 0; k < seen->table.nkeys; k++)
		hgj_buffer_reserve(context, &seen->keys[k], sizeof(Datum), BLOCK_ROWS);
	seen->ready = true;
	MemoryContextSwitchTo(old);
}

/* A batch of the input's rows from *next on; without those that change nothing. */
static void
load_block(HgjAggSeen *seen, HgjAggregate *agg, const HgjAggRows *rows, uint32 *next)
{
	int			nkeys = seen->table.nkeys;
	HgjVector  *vector = &seen->keys[nkeys - 1].vector;
	Datum	   *groups = seen->keys[0].vector.values;
	uint32		n = 0;

	for (int k = 0; k < nkeys; k++)
		hgj_vector_all_valid(&seen->keys[k].vector, BLOCK_ROWS);
	for (; n < BLOCK_ROWS && *next < rows->n; ++*next)
	{
		NullableDatum *argument = &seen->arguments[seen->argument];

		hgj_agg_load_arguments(agg->input, *next, agg->input->nall, seen->arguments);
		if (hgj_transition_skips(agg->transitions, seen->arguments))
			continue;
		if (nkeys > 1)
			groups[n] = UInt32GetDatum(rows->groups ? rows->groups[*next] : 0);
		((Datum *) vector->values)[n] = argument->value;
		if (argument->isnull)
			hgj_vector_set_null(vector, n);
		seen->places[n++] = *next;
	}
	for (int k = 0; k < nkeys; k++)
		seen->batch.vectors[k] = seen->keys[k].vector;
	seen->batch.nrows = n;
}

/* Step 2: the input's i-th row goes to the transition function. */
static void
advance(HgjAggregate *agg, uint32 group, uint32 i)
{
	HgjTransition *transition = agg->transitions;
	MemoryContext scratch = agg->table->scratch;
	MemoryContext old = MemoryContextSwitchTo(scratch);

	transition->caller->curaggcontext = transition->caller->hashcontext;
	hgj_agg_load_arguments(agg->input, i, 1, &transition->trans->transfn_fcinfo->args[1]);
	hgj_transition_advance(transition, (HgjTransValue *)
						   (hgj_group_row(agg->table, group) + agg->offset));
	MemoryContextSwitchTo(old);
	MemoryContextReset(scratch);
}

/* Steps 1 to 3: the loop of such an aggregate. */
void
hgj_agg_put_distinct(HgjAggregate *agg, const HgjAggRows *rows)
{
	HgjAggSeen *seen = agg->transitions->seen;
	HgjGroups  *table = &seen->table;
	uint32		next = 0;

	if (seen->given_up)
	{
		hgj_agg_put_rows(agg, rows);
		return;
	}
	if (!seen->ready)
		get_ready(seen);
	while (next < rows->n)
	{
		load_block(seen, agg, rows, &next);
		hgj_groups_assign(table, &seen->batch);
		for (uint32 b = 0; b < seen->batch.nrows; b++)
		{
			uint32		i = seen->places[b];
			uint32		group = rows->groups ? rows->groups[i] : 0;
			uint32		entry = table->of[b];

			CHECK_FOR_INTERRUPTS();
			if (entry != HGJ_NO_GROUP && (*(int64 *) hgj_group_row(table, entry))++ > 0)
				continue;
			if (entry != HGJ_NO_GROUP && seen->at_once)
				advance(agg, group, i);
			else
				hgj_agg_put_row(agg, group, i);
		}
		hgj_groups_settle(table);
		seen->rows += seen->batch.nrows;
	}
	if (!seen->at_once && seen->rows >= TRIAL_ROWS &&
		table->ngroups > seen->rows - WORTHWHILE(seen->rows))
	{
		hgj_agg_seen_forget(seen);
		seen->given_up = true;
	}
}

Size
hgj_agg_seen_bytes(const HgjAggSeen *seen)
{
	return seen->ready ? hgj_groups_bytes(&seen->table) : 0;
}

/* Forget all.  Safe to call again, and while aborting. */
void
hgj_agg_seen_forget(HgjAggSeen *seen)
{
	if (seen->ready)
		hgj_groups_release(&seen->table);
	seen->rows = 0;
	seen->given_up = false;
}
