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
 * 1. One by one, where an expression is to look at it: a row's columns are written
 *	  into the slot.
 * 2. In blocks, for rows that nothing is left to be done about: the columns of a
 *	  few dozen rows are written row by row into arrays, one column after the
 *	  other.  To return a row, the slot is pointed at its part of the arrays; each
 *	  time a record of the next block is fetched into the caches, where it comes
 *	  while somebody is busy with the row.
 *
 * At executor start it is decided which slot that is: the result slot, if matches
 * need no filter, no recheck and no projection, or else the scan slot.
 *
 * Memory: a block's arrays, in the query's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "join/join_state.h"

/* Rows of a block, fewer if they have many columns. */
#define HGJ_BLOCK_ROWS		64
#define HGJ_BLOCK_VALUES	4096
#define HGJ_BLOCK_FEWEST	8

/* Can matches go straight into the result slot? */
static bool
targets_are_columns(List *targetlist)
{
	ListCell   *lc;

	foreach(lc, targetlist)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);

		if (!IsA(tle->expr, Var) || ((Var *) tle->expr)->varno != INDEX_VAR)
			return false;
	}
	return true;
}

static void
add_target(HgjJoinState *state, AttrNumber resno, AttrNumber scan_attno)
{
	HgjTarget  *target = &state->slots.targets[state->slots.ntargets++];
	HgjSource  *sources[] = {&state->js.outer, &state->js.inner};

	target->resno = resno;
	for (int s = 0; s < lengthof(sources); s++)
	{
		int			c = hgj_scan_column(sources[s], scan_attno);

		if (c < 0)
			continue;
		target->inner = (s == 1);
		target->column = c;
		target->dictionary = sources[s]->columns[c].dictionary;
		return;
	}
	elog(ERROR, "column %d of a HashGraphJoin is not carried", scan_attno);
}

/* Write matches into the scan slot, all columns of both sides. */
void
hgj_use_scan_slot(HgjJoinState *state)
{
	state->slots.direct = false;
	state->slots.slot = state->js.css.ss.ss_ScanTupleSlot;
	state->slots.ntargets = 0;
	state->slots.targets =
		palloc0(mul_size(Max(state->js.outer.ncols + state->js.inner.ncols, 1),
						 sizeof(HgjTarget)));
	for (int c = 0; c < state->js.outer.ncols; c++)
		add_target(state, state->js.outer.columns[c].scan_attno,
				   state->js.outer.columns[c].scan_attno);
	for (int c = 0; c < state->js.inner.ncols; c++)
		add_target(state, state->js.inner.columns[c].scan_attno,
				   state->js.inner.columns[c].scan_attno);

	/* columns that are never filled read as NULL */
	memset(state->slots.slot->tts_isnull, true,
		   state->slots.slot->tts_tupleDescriptor->natts * sizeof(bool));
}

/* Decide which slot matches are written to, and what goes where in it. */
void
hgj_choose_slot(HgjJoinState *state, List *targetlist)
{
	ListCell   *lc;

	if (state->rules.recheck || state->rules.filter || !targets_are_columns(targetlist))
	{
		hgj_use_scan_slot(state);
		return;
	}
	state->slots.direct = true;
	state->slots.slot = state->js.css.ss.ps.ps_ResultTupleSlot;
	state->slots.targets = palloc0(mul_size(Max(list_length(targetlist), 1),
											sizeof(HgjTarget)));
	foreach(lc, targetlist)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);

		add_target(state, tle->resno, ((Var *) tle->expr)->varattno);
	}
}

/* Write the wanted columns of a pair into state->slots.slot. */
void
hgj_fill_slot(HgjJoinState *state, uint32 outer_row, uint32 inner_row)
{
	TupleTableSlot *slot = state->slots.slot;
	Datum	   *values = slot->tts_values;
	bool	   *isnull = slot->tts_isnull;
	const char *record = NULL;

	ExecClearTuple(slot);
	if (inner_row != HGJ_NO_ROW && state->js.build->rows.stride > 0)
		record = hgj_row_store_record(&state->js.build->rows, inner_row);

	for (int t = 0; t < state->slots.ntargets; t++)
	{
		const HgjTarget *target = &state->slots.targets[t];
		int			i = target->resno - 1;

		if (target->inner)
		{
			const HgjStoredColumn *column = &state->js.build->rows.columns[target->column];

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
			const HgjVector *vector =
				&state->probing.outer_batch->vectors[target->column];

			if (outer_row == HGJ_NO_ROW || hgj_vector_is_null(vector, outer_row))
			{
				values[i] = (Datum) 0;
				isnull[i] = true;
				continue;
			}
			values[i] = hgj_vector_load(vector, outer_row);
		}
		isnull[i] = false;
		if (unlikely(target->dictionary != NULL))
			values[i] = hgj_dictionary_value(target->dictionary, values[i]);
	}
	ExecStoreVirtualTuple(slot);
}

/* What the node returns for the row in the slot; NULL: the filter rejects it. */
TupleTableSlot *
hgj_project(HgjJoinState *state)
{
	PlanState  *ps = &state->js.css.ss.ps;
	ExprContext *econtext = ps->ps_ExprContext;

	if (state->slots.direct)
		return state->slots.slot;
	econtext->ecxt_scantuple = state->slots.slot;
	if (state->rules.filter && !ExecQual(state->rules.filter, econtext))
	{
		InstrCountFiltered1(ps, 1);
		return NULL;
	}
	if (ps->ps_ProjInfo)
		return ExecProject(ps->ps_ProjInfo);
	return state->slots.slot;
}

/* The block's column `at` of values and NULLs, row after row. */
typedef struct BlockColumn
{
	Datum	   *values;
	bool	   *isnull;
	int			natts;
} BlockColumn;

static inline void
put_null(const BlockColumn *to, uint32 i)
{
	to->values[(Size) i * to->natts] = (Datum) 0;
	to->isnull[(Size) i * to->natts] = true;
}

/* Loads of `width` bytes, one for each row, from the address that `from` is. */
#define PUT_ROWS(width, from) \
	do { \
		for (uint32 i = 0; i < n; i++) \
		{ \
			to->values[(Size) i * to->natts] = hgj_load((from), (width)); \
			to->isnull[(Size) i * to->natts] = false; \
		} \
	} while (0)
#define PUT_ROWS_OF(width, from) \
	do { \
		switch (width) \
		{ \
			case 8: \
				PUT_ROWS(8, from); \
				break; \
			case 4: \
				PUT_ROWS(4, from); \
				break; \
			case 2: \
				PUT_ROWS(2, from); \
				break; \
			default: \
				PUT_ROWS(1, from); \
				break; \
		} \
	} while (0)

static void
put_outer(const HgjVector *vector, const uint32 *rows, uint32 n,
		  const BlockColumn *to)
{
	const char *values = vector->values;

	PUT_ROWS_OF(vector->width, values + (Size) rows[i] * vector->width);
	if (!vector->has_nulls)
		return;
	for (uint32 i = 0; i < n; i++)
		if (hgj_vector_is_null(vector, rows[i]))
			put_null(to, i);
}

static void
put_inner(const HgjStoredColumn *column, const char *const *records, uint32 n,
		  const BlockColumn *to)
{
	if (column->encoded || column->value_chunks)
		for (uint32 i = 0; i < n; i++)
		{
			to->values[(Size) i * to->natts] = hgj_record_load(column, records[i]);
			to->isnull[(Size) i * to->natts] = false;
		}
	else
		PUT_ROWS_OF(column->width, records[i] + column->offset);
	if (!column->has_nulls)
		return;
	for (uint32 i = 0; i < n; i++)
		if (hgj_record_is_null(column, records[i]))
			put_null(to, i);
}

/* Datums of a dictionary become values. */
static void
put_values(const HgjDictionary *dictionary, uint32 n, const BlockColumn *to)
{
	for (uint32 i = 0; i < n; i++)
		if (!to->isnull[(Size) i * to->natts])
			to->values[(Size) i * to->natts] =
				hgj_dictionary_value(dictionary, to->values[(Size) i * to->natts]);
}

/* By-reference values of records lie anywhere: somebody will read them soon. */
static void
prefetch_values(uint32 n, const BlockColumn *column)
{
	for (uint32 i = 0; i < n; i++)
		__builtin_prefetch(DatumGetPointer(column->values[(Size) i * column->natts]),
						   0, 2);
}

static void
make_block(HgjJoinState *state)
{
	HgjRowBlock *block = &state->slots.block;
	TupleTableSlot *slot = state->slots.slot;
	Size		nvalues;

	block->natts = slot->tts_tupleDescriptor->natts;
	block->capacity = HGJ_BLOCK_VALUES / Max(block->natts, 1);
	block->capacity = Max(Min(block->capacity, HGJ_BLOCK_ROWS), HGJ_BLOCK_FEWEST);
	nvalues = mul_size(block->capacity, block->natts);
	block->values = MemoryContextAllocZero(state->js.context,
										   nvalues * sizeof(Datum) + 1);
	block->isnull = MemoryContextAlloc(state->js.context, nvalues + 1);
	memset(block->isnull, true, nvalues);	/* columns that are never filled */
	block->slot_values = slot->tts_values;
	block->slot_isnull = slot->tts_isnull;
}

/* Step 2: the next rows of the portion at hand, which has more; no block is left. */
void
hgj_block_fill(HgjJoinState *state)
{
	HgjRowBlock *block = &state->slots.block;
	HgjSlotOutput *slots = &state->slots;
	const uint32 *inner_rows = slots->rows.inner_rows;
	const uint32 *outer_rows = slots->rows.outer_rows;
	uint32		left = slots->rows.n - slots->next_row;
	const char *records[HGJ_BLOCK_ROWS];
	bool		has_records = inner_rows && state->js.build->rows.stride > 0;
	uint32		n;

	Assert(left > 0 && block->n == 0);
	if (block->values == NULL)
		make_block(state);
	n = Min(left, block->capacity);
	inner_rows += inner_rows ? slots->next_row : 0;
	outer_rows += outer_rows ? slots->next_row : 0;
	for (uint32 i = 0; has_records && i < n; i++)
		records[i] = hgj_row_store_record(&state->js.build->rows, inner_rows[i]);
	block->ahead = has_records ? inner_rows + n : NULL;
	block->nahead = has_records ? Min(left - n, n) : 0;

	for (int t = 0; t < state->slots.ntargets; t++)
	{
		const HgjTarget *target = &state->slots.targets[t];
		int			i = target->resno - 1;
		BlockColumn to = {block->values + i, block->isnull + i, block->natts};

		if (target->inner ? inner_rows == NULL : outer_rows == NULL)
		{
			for (uint32 r = 0; r < n; r++)
				put_null(&to, r);
			continue;
		}
		if (target->inner)
			put_inner(&state->js.build->rows.columns[target->column], records, n, &to);
		else
			put_outer(&state->probing.outer_batch->vectors[target->column],
					  outer_rows, n, &to);
		if (target->dictionary)
			put_values(target->dictionary, n, &to);
		if (target->inner &&
			!TupleDescAttr(state->slots.slot->tts_tupleDescriptor, i)->attbyval)
			prefetch_values(n, &to);
	}
	block->n = n;
	slots->next_row += n;
}
