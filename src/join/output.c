/*-------------------------------------------------------------------------
 *
 * output.c
 *	  The result of a HashGraphJoin in batches: what a parent that is one of our
 *	  own nodes takes instead of slots.
 *
 * 1. Take a portion of the join's rows (portion.c), all at once.
 * 2. If every outer row is in one pair at most, and enough of them are in one,
 *	  the batch is the outer batch itself: its vectors, not copied, with the
 *	  matched positions as the live ones, and the inner columns put in place.
 *	  Chains of joins over a fact table therefore move its columns once, out of
 *	  the heap page.  Otherwise columns are gathered densely (gather.c).
 * 3. Columns of the target list that are expressions are computed by a program
 *	  (program.c) or, where that cannot be, by ExecEvalExpr() row by row; the
 *	  batch is dense then.
 *
 * Memory: the query's context; values that expressions make live in the node's
 * per-tuple context, which is reset when the next batch is asked for.  No
 * locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "join/join_state.h"
#include "miscadmin.h"
#include "scan/batch_node.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"

/* In place while at least one of so many positions is live. */
#define HGJ_SPARSEST_BATCH	4

/* Where a column of the target list comes from. */
typedef struct HgjOutColumn
{
	bool		wanted;
	int			pair_column;	/* of HgjOutput.pairs, or -1: */
	HgjProgram *program;		/* an expression, or */
	ExprState  *expr;			/* one that no program can compute */
	bool		runs_subplans;	/* that one has subplans, whose values last for a row */
	HgjBuffer	buffer;			/* its values */
} HgjOutColumn;

typedef struct HgjOutput
{
	int			ncols;			/* of the target list */
	HgjColumn  *columns;
	HgjOutColumn *out;
	bool		expressions;	/* there is one: batches are dense */
	HgjPairColumns pairs;		/* what is returned, or read by programs */
	HgjBatch   *batch;
} HgjOutput;

/* Column resno of the target list. */
static void
init_column(HgjJoinState *state, const TargetEntry *tle)
{
	HgjOutput  *output = state->output;
	HgjColumn  *column = &output->columns[tle->resno - 1];
	HgjOutColumn *out = &output->out[tle->resno - 1];

	column->attno = tle->resno;
	get_typlenbyval(exprType((Node *) tle->expr), &column->attlen,
					&column->attbyval);
	column->width = column->attbyval ? column->attlen : sizeof(Datum);

	out->pair_column = -1;
	if (!out->wanted)
		return;
	if (IsA(tle->expr, Var))
	{
		out->pair_column = hgj_pair_lookup(&output->pairs, (Var *) tle->expr);
		if (out->pair_column < 0)
			elog(ERROR, "column %d of a HashGraphJoin is not carried",
				 ((Var *) tle->expr)->varattno);
		return;
	}
	output->expressions = true;
	state->goal.rows_may_raise |= hgj_may_raise((Node *) tle->expr,
										   state->js.css.ss.ps.state);
	out->program = hgj_program_compile(tle->expr, &state->js.css.ss.ps,
									   hgj_pair_lookup, &output->pairs);
	if (out->program == NULL)
	{
		out->expr = ExecInitExpr(tle->expr, &state->js.css.ss.ps);
		out->runs_subplans = contain_subplans((Node *) tle->expr);
	}
}

/* See output.h. */
void
hgj_join_use_batches(HgjJoinState *join, const Bitmapset *wanted)
{
	CustomScan *cscan = castNode(CustomScan, join->js.css.ss.ps.plan);
	List	   *targetlist = cscan->scan.plan.targetlist;
	MemoryContext old = MemoryContextSwitchTo(join->js.context);
	HgjOutput  *output = palloc0(sizeof(HgjOutput));
	ListCell   *lc;

	output->ncols = list_length(targetlist);
	output->columns = palloc0(mul_size(Max(output->ncols, 1),
									   sizeof(HgjColumn)));
	output->out = palloc0(mul_size(Max(output->ncols, 1),
								   sizeof(HgjOutColumn)));
	hgj_pair_columns_init(&output->pairs, join);
	join->output = output;
	foreach(lc, targetlist)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);

		output->out[tle->resno - 1].wanted = bms_is_member(tle->resno, wanted);
		init_column(join, tle);
	}
	output->batch = hgj_batch_create(join->js.context, output->columns,
									 output->ncols, 0, NULL);

	/* row by row, columns are read from the scan slot */
	hgj_use_scan_slot(join);
	MemoryContextSwitchTo(old);
}

/*
 * The scan column is stored as codes from now on; see encode.c, which has made
 * sure that the target list merely returns it.
 */
void
hgj_output_encode(HgjJoinState *join, AttrNumber scan_attno,
				  HgjDictionary *dictionary)
{
	HgjOutput  *output = join->output;
	int			i = hgj_pair_column(&output->pairs, scan_attno);

	for (int c = 0; c < output->ncols; c++)
		if (output->out[c].wanted && output->out[c].pair_column == i)
			output->columns[c].dictionary = dictionary;
}

/*
 * What a column of the target list is that somebody wants: a column of a side,
 * or else (NULL) the value of a program, or else (NULL, too) neither.
 */
const HgjPairColumn *
hgj_output_column(const HgjJoinState *join, AttrNumber resno, HgjProgram **program)
{
	const HgjOutput *output = join->output;
	const HgjOutColumn *out = &output->out[resno - 1];

	*program = out->wanted ? out->program : NULL;
	if (!out->wanted || out->pair_column < 0)
		return NULL;
	return &output->pairs.columns[out->pair_column];
}

/* The columns that programs of the target list read, by their numbers. */
const HgjPairColumns *
hgj_output_pairs(const HgjJoinState *join)
{
	return &join->output->pairs;
}


/* See output.h. */
const HgjColumn *
hgj_join_columns(HgjJoinState *join, int *ncols)
{
	*ncols = join->output->ncols;
	return join->output->columns;
}

/* Copy a value that a subplan has returned: its next run frees it. */
static Datum
keep_value(ExprContext *econtext, Datum value, int16 attlen)
{
	MemoryContext old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);

	value = datumCopy(value, false, attlen);
	MemoryContextSwitchTo(old);
	return value;
}

/* Compute an expression of the target list for n pairs, densely. */
static void
eval_column(HgjJoinState *state, HgjOutColumn *out, const HgjColumn *column,
			const uint32 *outer_rows, const uint32 *inner_rows, uint32 n)
{
	ExprContext *econtext = state->js.css.ss.ps.ps_ExprContext;
	HgjVector  *vector = &out->buffer.vector;

	hgj_buffer_reserve(state->js.context, &out->buffer, column->width, n);
	for (uint32 i = 0; i < n; i++)
	{
		Datum		value;
		bool		isnull;

		CHECK_FOR_INTERRUPTS();
		hgj_fill_slot(state, outer_rows ? outer_rows[i] : HGJ_NO_ROW,
					  inner_rows ? inner_rows[i] : HGJ_NO_ROW);
		econtext->ecxt_scantuple = state->slots.slot;
		value = ExecEvalExprSwitchContext(out->expr, econtext, &isnull);
		if (out->runs_subplans && !isnull && !column->attbyval)
			value = keep_value(econtext, value, column->attlen);
		hgj_vector_put(vector, i, value, isnull);
	}
}

/* May the pairs stay at the positions of their outer rows? */
static bool
can_stay_in_place(const HgjJoinState *state, const uint32 *outer_rows, uint32 n)
{
	if (outer_rows == NULL || state->output->expressions ||
		n < state->probing.outer_batch->nrows / HGJ_SPARSEST_BATCH)
		return false;
	for (uint32 i = 1; i < n; i++)
		if (outer_rows[i] <= outer_rows[i - 1])
			return false;
	return true;
}

/* A batch of these pairs; either side's rows may be missing (NULL). */
HgjBatch *
hgj_output_batch(HgjJoinState *state, const uint32 *outer_rows,
				 const uint32 *inner_rows, uint32 n)
{
	HgjOutput  *output = state->output;
	HgjBatch   *batch = output->batch;

	batch->live = NULL;
	batch->nrows = batch->nlive = n;
	if (can_stay_in_place(state, outer_rows, n))
	{
		hgj_gather_in_place(&output->pairs, outer_rows, inner_rows, n);
		batch->nrows = state->probing.outer_batch->nrows;
		if (n < batch->nrows)
			batch->live = outer_rows;
	}
	else
		hgj_gather_pairs(&output->pairs, outer_rows, inner_rows, n);

	for (int c = 0; c < output->ncols; c++)
	{
		HgjOutColumn *out = &output->out[c];

		if (!out->wanted)
			continue;
		if (out->pair_column >= 0)
			batch->vectors[c] = *output->pairs.vectors[out->pair_column];
		else if (out->program)
			batch->vectors[c] = *hgj_program_eval(out->program,
												  output->pairs.vectors,
												  NULL, n);
		else
		{
			eval_column(state, out, &output->columns[c], outer_rows,
						inner_rows, n);
			batch->vectors[c] = out->buffer.vector;
		}
	}
	return batch;
}

/* Give the programs the parameters of this execution. */
static void
start_programs(HgjJoinState *state)
{
	HgjOutput  *output = state->output;

	if (state->output_started)
		return;
	for (int c = 0; c < output->ncols; c++)
		if (output->out[c].program)
			hgj_program_start(output->out[c].program,
							  state->js.css.ss.ps.ps_ExprContext);
	state->output_started = true;
}

static HgjBatch *
next_batch(HgjJoinState *state)
{
	HgjPortion	rows;

	start_programs(state);
	if (!hgj_next_portion(state, &rows))
		return NULL;
	state->emitted++;
	return hgj_output_batch(state, rows.outer_rows, rows.inner_rows, rows.n);
}

/* See output.h; does what ExecProcNode() does around a node, too. */
HgjBatch *
hgj_join_next_batch(HgjJoinState *join)
{
	PlanState  *ps = &join->js.css.ss.ps;
	HgjBatch   *batch;

	hgj_enter_node(ps);
	batch = next_batch(join);
	if (batch)
		join->counts.returned += hgj_batch_nlive(batch);
	return hgj_leave_node(ps, batch);
}

static void *
want(PlanState *node, const Bitmapset *columns)
{
	hgj_join_use_batches((HgjJoinState *) node, columns);
	return node;
}

static HgjBatch *
next(void *reading, const HgjBatchDemand *demand)
{
	HgjJoinState *join = reading;

	join->goal.careful = demand->careful;
	join->goal.single_rows = demand->single_rows;
	return hgj_join_next_batch(join);
}

static void
use_slots(void *reading)
{
	((HgjJoinState *) reading)->output = NULL;
}

const HgjBatchNode hgj_join_batch_node = {
	.want = want,
	.next = next,
	.use_slots = use_slots
};
