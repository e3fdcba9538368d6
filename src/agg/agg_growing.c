/*-------------------------------------------------------------------------
 *
 * agg_growing.c
 *	  States that grow with every row, array_agg's and string_agg's for instance, in a
 *	  HashGraphAgg with GROUP BY.
 *
 * Rows of new groups are put aside when memory is full (agg_spill.c); states of the
 * groups in the table would go on growing.  No state can be written to a file, nor
 * moved, but the rows that it has not seen can:
 *
 * 1. Those of a range of groups have a memory context of their own (agg_ranges.c).
 * 2. When the table has grown beyond its limit by GRACE, it takes no more groups, and
 *	  arguments for such states go to a tuplestore from then on.  There is one for each
 *	  aggregate and each part of the groups, which are parts of equal size by the groups'
 *	  numbers.
 * 3. Groups are returned by their numbers.  Before the first one of a part, the part's
 *	  states get what waits for them, in the order in which it came; behind the last one of
 *	  a range, the range's states go.
 *
 * So states take the limit, and what one part and one range need beyond it.  A single
 * group's state is in memory as a whole, as in PostgreSQL's GroupAggregate.
 *
 * A partial aggregation returns its groups instead (agg_rounds.c).
 *
 * Memory: contexts below the query's; what waits takes work_mem, divided among the
 * tuplestores, and temporary files beyond that, which belong to the resource owner.  No
 * locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_transition.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

/* Step 2: the part of the limit by which the table may pass it. */
#define GRACE(limit)	((limit) / 8)

/* What stands in front of the arguments: the number of the group. */
#define BEFORE_ARGUMENTS	1

/* What waits for the states of an aggregate. */
typedef struct HgjAggGrowth
{
	HgjAggState *state;
	const HgjAggInput *input;
	TupleDesc	desc;			/* of the group's number, and all arguments but constants */
	Datum	   *values;			/* of one row */
	bool	   *nulls;
	NullableDatum *arguments;
	TupleTableSlot *slot;
	Tuplestorestate **parts;	/* of HGJ_AGG_MOST_PARTS; NULL: nothing waits */
} HgjAggGrowth;

/* Step 2: the number of a group's part. */
static uint32
part_of(const HgjAggState *state, uint32 group)
{
	return (uint32) ((uint64) group * state->growing.nparts / state->groups.ngroups);
}

/* What waits has these columns. */
static TupleDesc
make_columns(const HgjAggInput *input)
{
	int			n = BEFORE_ARGUMENTS;
	TupleDesc	desc;

	for (int c = 0; c < input->nall; c++)
		n += input->all[c].constant == NULL;
	desc = CreateTemplateTupleDesc(n);
	n = BEFORE_ARGUMENTS;
	TupleDescInitEntry(desc, n, NULL, INT4OID, -1, 0);
	for (int c = 0; c < input->nall; c++)
	{
		Node	   *expr = list_nth(input->exprs, c);

		if (input->all[c].constant == NULL)
			TupleDescInitEntry(desc, ++n, NULL, exprType(expr), exprTypmod(expr), 0);
	}
	return desc;
}

/* Get ready for an aggregate whose states grow.  Call at executor start. */
void
hgj_agg_growth_init(HgjAggState *state, HgjAggregate *agg)
{
	HgjAggGrowth *growth = palloc0(sizeof(HgjAggGrowth));

	growth->state = state;
	growth->input = agg->input;
	growth->desc = make_columns(agg->input);
	growth->values = palloc(mul_size(growth->desc->natts, sizeof(Datum)));
	growth->nulls = palloc0(mul_size(growth->desc->natts, sizeof(bool)));
	growth->arguments = palloc(mul_size(Max(agg->input->nall, 1), sizeof(NullableDatum)));
	growth->slot = ExecInitExtraTupleSlot(state->css.ss.ps.state, growth->desc,
										  &TTSOpsMinimalTuple);
	growth->parts = palloc0(HGJ_AGG_MOST_PARTS * sizeof(Tuplestorestate *));
	agg->transitions->growth = growth;
	agg->transitions->ranges = &state->growing.ranges;
	state->growing.ranges.parent = state->context;
	agg->update = hgj_agg_growth_rows;
	state->growing.naggs++;
}

/* Step 2: from now on, rows wait for the groups in the table. */
static void
begin(HgjAggState *state)
{
	HgjAggGrowing *growing = &state->growing;

	growing->begun = true;
	growing->next_part = 0;
	growing->nparts = Min(hgj_agg_growing_parts(growing->naggs), state->groups.ngroups);
	ereport(growing->logged ? DEBUG2 : DEBUG1,
			(errmsg_internal("hashgraph_join: states fill memory, rows for them wait in %u parts",
							 growing->nparts)));
	growing->logged = true;
}

/*
 * A portion has been taken, and the group table does not know yet what that has made of
 * the states.
 */
void
hgj_agg_growth_settle(HgjAggState *state)
{
	if (state->growing.naggs > 0 && !state->growing.begun)
		state->groups.more_state_bytes = hgj_agg_ranges_bytes(&state->growing.ranges);
}

/* The group table knows.  True: a partial aggregation is to return its groups. */
bool
hgj_agg_growth_check(HgjAggState *state)
{
	HgjGroups  *groups = &state->groups;

	if (state->growing.naggs == 0 || state->growing.begun ||
		groups->more_state_bytes <= GRACE(groups->limit) ||
		hgj_groups_bytes(groups) <= groups->limit + GRACE(groups->limit))
		return false;
	if (state->rounds.used)
		return true;
	groups->full = true;
	if (groups->ngroups > 1)
		begin(state);
	return false;
}

static Tuplestorestate *
part_to_write(HgjAggGrowth *growth, uint32 part)
{
	const HgjAggGrowing *growing = &growth->state->growing;
	MemoryContext old;

	if (growth->parts[part] == NULL)
	{
		old = MemoryContextSwitchTo(growth->state->context);
		growth->parts[part] =
			tuplestore_begin_heap(false, false,
								  Max(work_mem / growing->naggs / growing->nparts, 1));
		MemoryContextSwitchTo(old);
	}
	return growth->parts[part];
}

/* Step 2: the rows wait. */
static void
put_aside(HgjAggregate *agg, const HgjAggRows *rows)
{
	HgjAggGrowth *growth = agg->transitions->growth;
	HgjAggState *state = growth->state;

	for (uint32 i = 0; i < rows->n; i++)
	{
		uint32		group = rows->groups ? rows->groups[i] : 0;
		int			n = BEFORE_ARGUMENTS;

		CHECK_FOR_INTERRUPTS();
		hgj_agg_load_arguments(growth->input, i, growth->input->nall, growth->arguments);
		if (hgj_transition_skips(agg->transitions, growth->arguments))
			continue;
		growth->values[0] = UInt32GetDatum(group);
		for (int c = 0; c < growth->input->nall; c++)
		{
			if (growth->input->all[c].constant)
				continue;
			growth->values[n] = growth->arguments[c].value;
			growth->nulls[n++] = growth->arguments[c].isnull;
		}
		tuplestore_putvalues(part_to_write(growth, part_of(state, group)), growth->desc,
							 growth->values, growth->nulls);
		state->growing.total_rows++;
	}
}

/* The loop of an aggregate whose states grow. */
void
hgj_agg_growth_rows(HgjAggregate *agg, const HgjAggRows *rows)
{
	if (agg->transitions->growth->state->growing.begun)
		put_aside(agg, rows);
	else
		hgj_agg_call_rows(agg, rows);
}

/* Step 3: the arguments of the row in the slot; returns its group. */
static uint32
load_waiting(const HgjAggGrowth *growth, NullableDatum *arguments)
{
	int			n = BEFORE_ARGUMENTS;

	slot_getallattrs(growth->slot);
	for (int c = 0; c < growth->input->nall; c++)
	{
		const Const *constant = growth->input->all[c].constant;

		arguments[c].value = constant ? constant->constvalue : growth->slot->tts_values[n];
		arguments[c].isnull = constant ? constant->constisnull : growth->slot->tts_isnull[n];
		n += constant == NULL;
	}
	return DatumGetUInt32(growth->slot->tts_values[0]);
}

/* Step 3: what waits of an aggregate goes to the states of a part. */
static void
feed(HgjAggregate *agg, uint32 part)
{
	HgjTransition *transition = agg->transitions;
	HgjAggGrowth *growth = transition->growth;
	FunctionCallInfo call = transition->trans->transfn_fcinfo;
	MemoryContext scratch = agg->table->scratch;
	MemoryContext old = MemoryContextSwitchTo(growth->state->context);

	/* the slot's row lasts longer than what the function leaves behind */
	while (tuplestore_gettupleslot(growth->parts[part], true, false, growth->slot))
	{
		uint32		group = load_waiting(growth, &call->args[1]);

		CHECK_FOR_INTERRUPTS();
		MemoryContextSwitchTo(scratch);
		transition->caller->curaggcontext = hgj_agg_range_context(transition->ranges, group);
		hgj_transition_advance(transition, (HgjTransValue *)
							   (hgj_group_row(agg->table, group) + agg->offset));
		MemoryContextReset(scratch);
		MemoryContextSwitchTo(growth->state->context);
	}
	MemoryContextSwitchTo(old);
	ExecClearTuple(growth->slot);
	tuplestore_end(growth->parts[part]);
	growth->parts[part] = NULL;
}

/* Step 3: a group is going to be returned, behind all with smaller numbers. */
void
hgj_agg_growth_next_group(HgjAggState *state, uint32 group)
{
	HgjAggGrowing *growing = &state->growing;
	uint32		part;

	if (!growing->begun)
		return;
	hgj_agg_ranges_returned(&growing->ranges, group);
	part = part_of(state, group);
	if (part < growing->next_part)
		return;
	for (int a = 0; a < state->naggs; a++)
		if (state->aggs[a].transitions && state->aggs[a].transitions->growth &&
			state->aggs[a].transitions->growth->parts[part])
			feed(&state->aggs[a], part);
	growing->next_part = part + 1;
	state->groups.more_state_bytes = hgj_agg_ranges_bytes(&growing->ranges);
	state->peak_bytes = Max(state->peak_bytes, hgj_groups_bytes(&state->groups));
}

/* All groups go, with their states, and what waits for them.  Safe to call again. */
void
hgj_agg_growth_forget(HgjAggState *state)
{
	HgjAggGrowing *growing = &state->growing;

	for (int a = 0; growing->naggs > 0 && a < state->naggs; a++)
	{
		HgjAggGrowth *growth = state->aggs[a].transitions ?
			state->aggs[a].transitions->growth : NULL;

		for (int p = 0; growth && p < HGJ_AGG_MOST_PARTS; p++)
			if (growth->parts[p])
			{
				tuplestore_end(growth->parts[p]);
				growth->parts[p] = NULL;
			}
	}
	hgj_agg_ranges_forget(&growing->ranges);
	growing->begun = false;
	state->groups.more_state_bytes = 0;
}
