/*-------------------------------------------------------------------------
 *
 * agg_batches.c
 *	  The groups of a HashGraphAgg in batches, for a node above that takes them
 *	  (scan/batch_node.h).
 *
 * 1. A column of the target list is a group column or an aggregate's value: those that are
 *	  computed from these, and aggregates that PostgreSQL's functions compute with states of
 *	  their own, come group by group, in slots.
 * 2. Groups that pass HAVING are taken from the table, then column by column their keys and
 *	  results are written.
 * 3. If values by reference take much memory, which a build side copies, the next batch has
 *	  fewer rows.
 *
 * Memory: the batch is palloc'd in the query's context; values by reference are the groups',
 * or in a context that is reset for each batch.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_state.h"
#include "executor/executor.h"
#include "expr/demand.h"
#include "miscadmin.h"
#include "scan/batch_node.h"
#include "utils/datum.h"
#include "utils/memutils.h"

/* Where a column comes from. */
typedef enum HgjOrigin
{
	FROM_NOBODY,				/* nobody wants it */
	FROM_KEY,
	FROM_AGGREGATE
} HgjOrigin;

typedef struct HgjAggOut
{
	HgjOrigin	origin;			/* kind of what it is */
	int			number;			/* number of the key or the aggregate */
} HgjAggOut;

struct HgjAggOutput
{
	HgjColumn  *columns;		/* columns of the target list, by resno - 1 */
	HgjAggOut  *out;			/* what they are, by resno - 1 */
	HgjBatch   *batch;			/* batch that is returned */
	char	  **rows;			/* groups of that batch */
	MemoryContext values;		/* results by reference */
	uint32		most_rows;		/* most rows of the next batch (step 3) */
	bool		may_raise;		/* HAVING, or a result, may raise an error */
};

/* Step 1: what a column is; false: it comes in slots. */
static bool
find_origin(const HgjAggState *state, const TargetEntry *tle, HgjAggOut *out)
{
	const Var  *var = (const Var *) hgj_strip_relabel(tle->expr);

	if (!IsA(var, Var) || var->varno != INDEX_VAR || var->varattno <= 0)
		return false;
	if (var->varattno > state->ncolumns)
	{
		*out = (HgjAggOut) {FROM_AGGREGATE, var->varattno - state->ncolumns - 1};
		return true;
	}
	for (int k = 0; k < state->groups.nkeys; k++)
		if (state->groups.keys[k].column == var->varattno - 1)
		{
			*out = (HgjAggOut) {FROM_KEY, k};
			return true;
		}
	return false;
}

/* Could an error come of a group's HAVING or result, which PostgreSQL would look at one by one? */
static bool
may_raise(const HgjAggState *state)
{
	const CustomScan *cscan = (const CustomScan *) state->css.ss.ps.plan;

	return hgj_agg_results_may_raise(state) ||
		hgj_may_raise(list_nth(cscan->custom_exprs, HGJ_AGG_EXPRS_HAVING),
					  state->css.ss.ps.state);
}

/* Step 1. */
static void *
want(PlanState *ps, const Bitmapset *wanted)
{
	HgjAggState *state = (HgjAggState *) ps;
	TupleDesc	desc = ExecGetResultType(ps);
	MemoryContext old = MemoryContextSwitchTo(state->context);
	struct HgjAggOutput *output = palloc0(sizeof(struct HgjAggOutput));
	bool		possible = !state->partial && state->caller == NULL;
	ListCell   *lc;

	output->columns = palloc0(mul_size(desc->natts + 1, sizeof(HgjColumn)));
	output->out = palloc0(mul_size(desc->natts + 1, sizeof(HgjAggOut)));
	foreach(lc, ps->plan->targetlist)
	{
		const TargetEntry *tle = lfirst(lc);

		hgj_column_init(&output->columns[tle->resno - 1], tle->resno,
						TupleDescAttr(desc, tle->resno - 1));
		if (bms_is_member(tle->resno, wanted))
			possible &= find_origin(state, tle, &output->out[tle->resno - 1]);
	}
	if (possible)
	{
		output->batch = hgj_batch_create(state->context, output->columns, desc->natts, 0, NULL);
		hgj_batch_reserve(output->batch, HGJ_BATCH_ROWS);
		output->rows = palloc(mul_size(HGJ_BATCH_ROWS, sizeof(char *)));
		output->values = AllocSetContextCreate(state->context, "HashGraphAgg results",
											   ALLOCSET_DEFAULT_SIZES);
		output->may_raise = may_raise(state);
		output->most_rows = HGJ_BATCH_FIRST_ROWS;
		state->output = output;
	}
	MemoryContextSwitchTo(old);
	return possible ? state : NULL;
}

/* Step 2: the next groups, of which there are to be `most` at most; returns their number. */
static uint32
take_groups(HgjAggState *state, uint32 most)
{
	HgjGroups  *groups = state->result;
	uint32		n = 0;

	while (n < most && state->next_group < groups->ngroups)
	{
		char	   *row = hgj_group_row(groups, state->next_group++);

		if (state->having)
		{
			CHECK_FOR_INTERRUPTS();
			if (!hgj_agg_passes(state, row))
				continue;
		}
		state->output->rows[n++] = row;
	}
	return n;
}

static void
write_keys(const HgjAggState *state, int k, HgjVector *vector, uint32 n)
{
	for (uint32 i = 0; i < n; i++)
	{
		Datum		value = (Datum) 0;
		bool		found = hgj_agg_key_of(state->result, state->output->rows[i], k, &value);

		hgj_vector_put(vector, i, value, !found);
	}
}

static void
write_results(const HgjAggState *state, int a, HgjVector *vector, uint32 n)
{
	for (uint32 i = 0; i < n; i++)
	{
		bool		isnull;
		Datum		value = hgj_agg_result(&state->aggs[a], state->output->rows[i], false, &isnull);

		hgj_vector_put(vector, i, value, isnull);
	}
}

/* Step 3: bytes of a column's values. */
static Size
value_bytes(const HgjColumn *column, const HgjVector *vector, uint32 n)
{
	Size		bytes = 0;

	for (uint32 i = 0; i < n; i++)
		if (!hgj_vector_is_null(vector, i))
			bytes += datumGetSize(hgj_vector_load(vector, i), false, column->attlen);
	return bytes;
}

/* Step 2 */
static void
write_columns(HgjAggState *state, uint32 n)
{
	struct HgjAggOutput *output = state->output;
	Size		bytes = 0;
	MemoryContext old;

	hgj_batch_clear(output->batch);
	output->batch->nrows = n;
	MemoryContextReset(output->values);
	old = MemoryContextSwitchTo(output->values);
	for (int c = 0; c < output->batch->ncols; c++)
	{
		const HgjAggOut *out = &output->out[c];
		HgjVector  *vector = &output->batch->vectors[c];

		if (out->origin == FROM_NOBODY)
			continue;
		hgj_vector_all_valid(vector, n);
		if (out->origin == FROM_KEY)
			write_keys(state, out->number, vector, n);
		else
			write_results(state, out->number, vector, n);
		if (!output->columns[c].attbyval)
			bytes += value_bytes(&output->columns[c], vector, n);
	}
	MemoryContextSwitchTo(old);
	output->most_rows = hgj_batch_next_rows(output->most_rows, n, bytes, HGJ_BATCH_ROWS);
}

static HgjBatch *
next(void *reading, const HgjBatchDemand *demand)
{
	HgjAggState *state = reading;
	PlanState  *ps = &state->css.ss.ps;
	uint32		most;
	uint32		n = 0;

	hgj_enter_node(ps);
	most = demand->single_rows || (demand->careful && state->output->may_raise) ? 1 :
		Min(state->output->most_rows, Max(demand->most_rows, 1));
	while (n == 0 && hgj_agg_has_groups(state))
		n = take_groups(state, most);
	if (n > 0)
		write_columns(state, n);
	return hgj_leave_node(ps, n > 0 ? state->output->batch : NULL);
}

/* What has been returned in batches is returned again, or nothing has been. */
static void
use_slots(void *reading)
{
	((HgjAggState *) reading)->output = NULL;
}

const HgjBatchNode hgj_agg_batch_node = {
	.want = want,
	.next = next,
	.use_slots = use_slots
};
