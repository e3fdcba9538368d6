/*-------------------------------------------------------------------------
 *
 * agg_input.c
 *	  From a batch to the rows and values that aggregates take.
 *
 * 1. hgj_agg_select_rows(): the rows of the batch that have a group, and their
 *	  groups.  The others are put aside (agg_spill.c, agg_rounds.c).
 * 2. hgj_agg_update(): count the rows of each group.  Then, for every input (a
 *	  FILTER and an argument that some aggregates share): filter the rows,
 *	  evaluate the argument for those that have passed and for no others, drop
 *	  NULLs, and hand the values to the aggregates.  Where PostgreSQL's functions
 *	  compute them, all arguments are evaluated, and NULLs are not dropped.
 *
 * An expression is a plain column, or a program over vectors, or, where it is
 * not of the forms that programs know, evaluated row by row by PostgreSQL.  Of
 * numerics, a program makes decimals, where the aggregates can take these.
 *
 * The arrays belong to the state.  By-reference values of expressions live in
 * its arena until the next batch.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_state.h"
#include "executor/executor.h"
#include "miscadmin.h"

static inline uint32
position(const uint32 *sel, uint32 i)
{
	return sel ? sel[i] : i;
}

/* Step 1.  The groups of a batch's live rows are in state->groups.of. */
void
hgj_agg_select_rows(HgjAggState *state, HgjBatch *batch)
{
	HgjGroups  *groups = &state->groups;
	uint32		n = hgj_batch_nlive(batch);
	uint32		placed = 0;

	state->batch = batch;
	for (int c = 0; c < state->ncolumns; c++)
		state->vectors[c] = &batch->vectors[c];
	state->nrows = n;
	state->rows = batch->live;
	state->row_groups = groups->nkeys > 0 ? groups->of : NULL;
	if (!groups->full || groups->nkeys == 0)
		return;

	while (placed < n && groups->of[placed] != HGJ_NO_GROUP)
		placed++;
	if (placed == n)
		return;
	if (state->rounds.used)
		hgj_agg_leave_rows(state, batch);
	else
		hgj_agg_spill_rows(state, batch);
	for (uint32 i = placed = 0; i < n; i++)
	{
		state->row_buffer[placed] = position(batch->live, i);
		state->group_buffer[placed] = groups->of[i];
		placed += groups->of[i] != HGJ_NO_GROUP;
	}
	state->nrows = placed;
	state->rows = state->row_buffer;
	state->row_groups = state->group_buffer;
}

/* Lay a row of the batch out for expressions. */
static void
fill_input_slot(HgjAggState *state, uint32 row)
{
	TupleTableSlot *slot = state->input_slot;

	ExecClearTuple(slot);
	for (int w = 0; w < state->ncarried; w++)
	{
		int			c = state->carried[w];

		slot->tts_values[c] = hgj_vector_datum(state->vectors[c], row,
											   &slot->tts_isnull[c]);
	}
	ExecStoreVirtualTuple(slot);
}

static Datum
eval_row(HgjAggState *state, HgjAggExpr *expr, uint32 row, bool *isnull)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;

	CHECK_FOR_INTERRUPTS();
	ResetExprContext(econtext);
	fill_input_slot(state, row);
	econtext->ecxt_scantuple = state->input_slot;
	return ExecEvalExprSwitchContext(expr->state, econtext, isnull);
}

/* The rows of sel for which the filter is true. */
static uint32
run_filter(HgjAggState *state, HgjAggExpr *filter, const uint32 *sel, uint32 n,
		   uint32 *out)
{
	uint32		passed = 0;

	if (filter->program)
		return hgj_program_filter(filter->program, state->vectors, sel, n, out);
	for (uint32 i = 0; i < n; i++)
	{
		uint32		row = position(sel, i);
		bool		isnull;
		Datum		value;

		if (filter->column >= 0)
		{
			const HgjVector *vector = state->vectors[filter->column];

			isnull = hgj_vector_is_null(vector, row);
			value = BoolGetDatum(((const bool *) vector->values)[row]);
		}
		else
			value = eval_row(state, filter, row, &isnull);
		if (!isnull && DatumGetBool(value))
			out[passed++] = row;
	}
	return passed;
}

/* The values of an expression that is not a column, densely. */
static const HgjVector *
eval(HgjAggState *state, HgjAggExpr *expr, const uint32 *sel, uint32 n)
{
	HgjVector  *own = &expr->own.vector;

	if (expr->program)
		return hgj_program_eval(expr->program, state->vectors, sel, n);

	hgj_buffer_reserve(state->context, &expr->own,
					   expr->attbyval ? expr->attlen : sizeof(Datum), n);
	for (uint32 i = 0; i < n; i++)
	{
		bool		isnull;
		Datum		value = eval_row(state, expr, position(sel, i), &isnull);

		if (isnull)
		{
			hgj_vector_set_null(own, i);
			value = (Datum) 0;
		}
		else if (!expr->attbyval)
			value = hgj_arena_copy(&state->values, value, expr->attlen);
		hgj_store((char *) own->values + (Size) i * own->width, own->width,
				  value);
	}
	return own;
}

/* Add one to a word of every row's group. */
static void
count(HgjGroups *table, Size offset, const uint32 *groups, uint32 n)
{
	char	   *base = table->rows + offset;
	Size		stride = table->stride;

	if (groups == NULL)
		*(int64 *) base += n;
	else
		for (uint32 i = 0; i < n; i++)
			++*(int64 *) (base + groups[i] * stride);
}

/*
 * Drop the NULLs among the n values.  Their rows' groups are counted if there
 * is no filter, which counts what is left instead.
 */
static void
drop_nulls(HgjAggState *state, HgjAggInput *input, const HgjVector *vector,
		   const uint32 *sel, const uint32 *groups, uint32 n)
{
	bool		dense = input->argument->column < 0 || input->argument->decimals;
	char	   *counters = state->groups.rows + input->counter;
	Size		stride = state->groups.stride;
	uint32		left = 0;

	for (uint32 i = 0; i < n; i++)
	{
		uint32		at = dense ? i : position(sel, i);
		uint32		group = groups ? groups[i] : 0;

		if (hgj_vector_is_null(vector, at))
		{
			if (input->filter == NULL)
				++*(int64 *) (counters + group * stride);
			continue;
		}
		input->at[left] = at;
		if (groups)
			input->groups[left] = group;
		left++;
	}
	input->rows.n = left;
	input->rows.at = input->at;
	input->rows.groups = groups ? input->groups : NULL;
}

/* The values of all arguments of PostgreSQL's functions; NULLs stay among them. */
static void
prepare_all(HgjAggState *state, HgjAggInput *input, const uint32 *sel, uint32 n)
{
	input->rows.at = sel;
	for (int i = 0; i < input->nall; i++)
	{
		HgjAggArgument *argument = &input->all[i];

		if (argument->constant == NULL)
			argument->vector = argument->expr->column >= 0 ?
				state->vectors[argument->expr->column] :
				eval(state, argument->expr, sel, n);
	}
}

/* Make input->rows for the batch at hand, and count. */
static void
prepare_input(HgjAggState *state, HgjAggInput *input)
{
	const uint32 *sel = state->rows;
	const uint32 *groups = state->row_groups;
	uint32		n = state->nrows;

	if (input->filter)
	{
		n = run_filter(state, input->filter, sel, n, input->filtered);
		if (groups)
		{
			uint32		from = 0;

			for (uint32 i = 0; i < n; i++, from++)
			{
				while (position(sel, from) != input->filtered[i])
					from++;
				input->groups[i] = groups[from];
			}
			groups = input->groups;
		}
		sel = input->filtered;
	}

	input->rows.n = n;
	input->rows.groups = groups;
	if (n > 0 && input->argument)
	{
		HgjAggExpr *argument = input->argument;
		bool		is_column = argument->column >= 0 && !argument->decimals;
		const HgjVector *vector;

		if (argument->decimals)
		{
			if (input->filter)
				hgj_program_eval_decimals(argument->decimals, state->vectors, sel, n);
			input->rows.decimals = hgj_program_decimals(argument->decimals,
														argument->place);
		}
		vector = is_column ? state->vectors[argument->column] :
			argument->decimals ? input->rows.decimals->vector :
			eval(state, argument, sel, n);
		input->rows.values = vector->values;
		input->rows.at = is_column ? sel : NULL;
		if (vector->has_nulls)
			drop_nulls(state, input, vector, sel, groups, n);
	}
	else if (n > 0 && input->called)
		prepare_all(state, input, sel, n);
	if (input->filter && input->rows.n > 0)
		count(&state->groups, input->counter, input->rows.groups,
			  input->rows.n);
}

/* Step 2. */
void
hgj_agg_update(HgjAggState *state)
{
	if (state->nrows == 0)
		return;
	if (state->values.used > 0)
		hgj_arena_reset(&state->values);

	count(&state->groups, 0, state->row_groups, state->nrows);
	if (state->decimals)
		hgj_program_eval_decimals(state->decimals, state->vectors, state->rows,
								  state->nrows);
	for (int i = 0; i < state->ninputs; i++)
		if (state->inputs[i].filter || state->inputs[i].argument ||
			state->inputs[i].called)
			prepare_input(state, &state->inputs[i]);
	for (int a = 0; a < state->naggs; a++)
	{
		HgjAggregate *agg = &state->aggs[a];

		if (agg->update && agg->input->rows.n > 0)
			agg->update(agg, &agg->input->rows);
	}
}
