/*-------------------------------------------------------------------------
 *
 * agg_portions.c
 *	  How much of a batch a HashGraphAgg takes at a time.
 *
 * Aggregates whose states pass by reference (min of a text, sum of huge
 * numerics) take memory as rows come, and only between two portions is it seen
 * that there is none left for new groups.  Arguments that are evaluated row by
 * row are kept for a portion, too, and those of type numeric that are no integers.
 *
 * 1. A portion is a batch with some of another one's live rows.
 * 2. Its size goes by what the last one has taken: all of them together may
 *	  pass the limit by a small part of it.
 * 3. Values that lie outside of their row, or are compressed, are larger than
 *	  anything that has been read so far: those are counted beforehand.
 *
 * Other aggregates take whole batches.  Memory: an array of row numbers in the
 * query's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/detoast.h"
#include "agg/agg_state.h"

/* Rows of the first portion. */
#define FIRST_PORTION	16

/* A portion should take no more than this part of the limit. */
#define PORTION_SHARE	16

/* Does the aggregate's state take memory of its own? */
static bool
state_grows(const HgjAggregate *agg)
{
	switch (agg->function->kind)
	{
		case HGJ_AGG_BY_FUNCTION:
		case HGJ_AGG_TRANSITION:
			return !agg->attbyval;
		case HGJ_AGG_SUM_NUMERIC:
		case HGJ_AGG_AVG_NUMERIC:
			return true;
		default:
			return false;
	}
}

/* Does a value of the expression, which is no column, get copied for its row? */
static bool
is_copied(const HgjAggExpr *expr)
{
	return expr && (expr->state || expr->program) && !expr->attbyval;
}

/* Steps 2 and 3 for arguments of PostgreSQL's functions, whose states keep values. */
static void
look_at_arguments(HgjAggState *state, const HgjAggregate *agg)
{
	HgjAggPortions *portions = &state->portions;

	for (int i = 0; i < agg->input->nall; i++)
	{
		const HgjAggExpr *expr = agg->input->all[i].expr;

		portions->wanted |= is_copied(expr);
		if (!agg->attbyval && expr && expr->column >= 0 && expr->attlen == -1)
			portions->wide = bms_add_member(portions->wide, expr->column);
	}
}

/* See which aggregates want portions.  Call at executor start. */
void
hgj_agg_portions_init(HgjAggState *state)
{
	HgjAggPortions *portions = &state->portions;

	for (int a = 0; a < state->naggs; a++)
	{
		const HgjAggregate *agg = &state->aggs[a];
		const HgjAggExpr *argument = agg->input->argument;

		/* what is evaluated is copied, whoever wants it */
		portions->wanted |= is_copied(argument);
		look_at_arguments(state, agg);
		if (!state_grows(agg))
			continue;
		portions->wanted = true;
		if (agg->function->kind == HGJ_AGG_BY_FUNCTION && agg->attlen == -1 &&
			argument->column >= 0)
			portions->wide = bms_add_member(portions->wide, argument->column);
	}
	portions->rows = portions->least = FIRST_PORTION;
}

/* The group table is empty: the next rows may all be new groups again. */
void
hgj_agg_portions_restart(HgjAggState *state)
{
	HgjAggPortions *portions = &state->portions;

	portions->rows = Min(portions->least, FIRST_PORTION);
}

/* Bytes that the rows have outside of the batch: step 3 of the head comment. */
static Size
hidden_bytes(const HgjAggState *state, const HgjBatch *batch, uint32 i)
{
	uint32		row = hgj_batch_live_row(batch, i);
	Size		bytes = 0;

	for (int c = -1; (c = bms_next_member(state->portions.wide, c)) >= 0;)
	{
		const HgjVector *vector = &batch->vectors[c];
		Datum		value;

		if (vector->decimals || hgj_vector_is_null(vector, row))
			continue;
		value = ((const Datum *) vector->values)[row];
		if (VARATT_IS_EXTERNAL(DatumGetPointer(value)) ||
			VARATT_IS_COMPRESSED(DatumGetPointer(value)))
			bytes += toast_raw_datum_size(value);
	}
	return bytes;
}

/*
 * The portion that begins with live row `from` of the batch; true while there
 * is one.  *from is set to where the next one begins.
 */
bool
hgj_agg_next_portion(HgjAggState *state, const HgjBatch *batch, uint32 *from,
					 HgjBatch *portion)
{
	HgjAggPortions *portions = &state->portions;
	uint32		n = hgj_batch_nlive(batch);
	uint32		rows = n - *from;
	Size		most = state->groups.limit / PORTION_SHARE;
	Size		bytes = 0;

	if (rows == 0)
		return false;
	*portion = *batch;
	if (portions->wanted)
	{
		rows = Min(rows, portions->rows);
		for (uint32 i = 0; portions->wide && i < rows; i++)
			if ((bytes += hidden_bytes(state, batch, *from + i)) > most)
				rows = i + 1;
	}
	if (rows < n)
	{
		portion->live = (batch->live ? batch->live : portions->all) + *from;
		portion->nlive = rows;
	}
	*from += rows;
	portions->bytes_before = hgj_groups_bytes(&state->groups);
	return true;
}

/* Bytes of arguments that were evaluated for the portion. */
static Size
argument_bytes(const HgjAggState *state)
{
	Size		bytes = state->values.used;

	if (state->decimals)
		bytes += hgj_program_result_bytes(state->decimals);
	for (int i = 0; i < state->ninputs; i++)
	{
		const HgjAggInput *input = &state->inputs[i];

		for (int c = 0; c < input->nall; c++)
			if (input->all[c].expr && input->all[c].expr->program)
				bytes += hgj_program_result_bytes(input->all[c].expr->program);
		if (input->argument == NULL)
			continue;
		if (input->filter && input->argument->decimals)
			bytes += hgj_program_result_bytes(input->argument->decimals);
		else if (input->argument->program && !input->argument->decimals)
			bytes += hgj_program_result_bytes(input->argument->program);
	}
	return bytes;
}

/* The portion has been taken: how large should the next one be? */
void
hgj_agg_portion_done(HgjAggState *state, uint32 rows)
{
	HgjAggPortions *portions = &state->portions;
	Size		most = state->groups.limit / PORTION_SHARE;
	Size		bytes = hgj_groups_bytes(&state->groups);
	double		fitting;

	state->peak_bytes = Max(state->peak_bytes, bytes);
	if (!portions->wanted)
		return;
	bytes -= Min(bytes, portions->bytes_before);
	bytes += argument_bytes(state);
	fitting = (double) most * rows / Max(bytes, 1);
	fitting = Min(fitting, (double) portions->rows * 4);
	portions->rows = (uint32) Max(Min(fitting, (double) state->batch_rows), 1);
	portions->least = Min(portions->least, portions->rows);
}
