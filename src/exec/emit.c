/*-------------------------------------------------------------------------
 *
 * emit.c
 *	  From row numbers to slots, at the top of the node only.
 *
 * A returned row is a pair: a row of the outer batch, and a record of the row
 * store, either of which may be missing (HGJ_NO_ROW: its columns are NULL).
 * Only the columns that somebody wants are written.  By-reference values are
 * not copied: they lie in the batch's or the store's arena, which lives until
 * the node is asked for a row after the batch's last, or rescanned.
 *
 * No memory of its own, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "exec/join_state.h"
#include "executor/executor.h"

/* Write the wanted columns of a pair into state->slot. */
void
hgj_fill_slot(HgjJoinState *state, uint32 outer_row, uint32 inner_row)
{
	TupleTableSlot *slot = state->slot;
	Datum	   *values = slot->tts_values;
	bool	   *isnull = slot->tts_isnull;
	const char *record = NULL;

	ExecClearTuple(slot);
	if (inner_row != HGJ_NO_ROW && state->rows.stride > 0)
		record = hgj_row_store_record(&state->rows, inner_row);

	for (int t = 0; t < state->ntargets; t++)
	{
		const HgjTarget *target = &state->targets[t];
		int			i = target->resno - 1;

		if (target->inner)
		{
			const HgjStoredColumn *column = &state->rows.columns[target->column];

			if (record == NULL || hgj_record_is_null(column, record))
			{
				values[i] = (Datum) 0;
				isnull[i] = true;
				continue;
			}
			values[i] = hgj_record_load(column, record);
		}
		else
		{
			const HgjVector *vector = &state->outer_batch->vectors[target->column];

			if (outer_row == HGJ_NO_ROW || hgj_vector_is_null(vector, outer_row))
			{
				values[i] = (Datum) 0;
				isnull[i] = true;
				continue;
			}
			values[i] = hgj_load((const char *) vector->values +
								 (Size) outer_row * vector->width,
								 vector->width);
		}
		isnull[i] = false;
		if (unlikely(target->dictionary != NULL))
			values[i] = hgj_dictionary_value(target->dictionary, values[i]);
	}
	ExecStoreVirtualTuple(slot);
}

/*
 * Filter and project what hgj_fill_slot() has written.  NULL when the filter
 * rejects it.
 */
TupleTableSlot *
hgj_project(HgjJoinState *state)
{
	PlanState  *ps = &state->css.ss.ps;
	ExprContext *econtext = ps->ps_ExprContext;

	if (state->direct)
		return state->slot;
	econtext->ecxt_scantuple = state->slot;
	if (state->filter && !ExecQual(state->filter, econtext))
	{
		InstrCountFiltered1(ps, 1);
		ResetExprContext(econtext);
		return NULL;
	}
	if (ps->ps_ProjInfo)
		return ExecProject(ps->ps_ProjInfo);
	return state->slot;
}

/* Both in turn. */
TupleTableSlot *
hgj_emit(HgjJoinState *state, uint32 outer_row, uint32 inner_row)
{
	hgj_fill_slot(state, outer_row, inner_row);
	return hgj_project(state);
}
