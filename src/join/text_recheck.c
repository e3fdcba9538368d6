/*-------------------------------------------------------------------------
 *
 * text_recheck.c
 *	  Pairs whose text keys have equal words, and may differ all the same
 *	  (text_words.c).
 *
 * 1. They are rechecked when the build side of the pass has a long value at all,
 *	  and then only those whose outer value is long.
 * 2. Portion by portion: prefetch the records, then the values they point to, then
 *	  compare bytes.
 *
 * TOASTed and compressed values are detoasted into the current context and
 * freed at once.  Nothing else allocates; no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "join/join_state.h"
#include "miscadmin.h"

/*
 * Records and values that are prefetched at a time; into the L2 cache, because
 * there are more requests under way to it than to L1.
 */
#define RECHECK_BLOCK	64
#define PREFETCH(p)		__builtin_prefetch((p), 0, 2)

/* Does a row of the batch have a text key that is too long to be packed? */
bool
hgj_text_any_long(const HgjSource *source, const HgjBatch *batch)
{
	for (int k = 0; k < source->nkeys; k++)
	{
		const HgjKey *key = &source->keys[k];
		const uint64 *last;
		uint64		any = 0;

		if (!hgj_key_is_text(key->kind))
			continue;
		last = batch->words[key->first_word + key->nwords - 1];
		for (uint32 i = 0; i < batch->nsel; i++)
			any |= last[batch->sel[i]];
		if ((any & HGJ_TEXT_LONG_MARK) >= (UINT64CONST(0x80) << 56))
			return true;
	}
	return false;
}

/* The column of a side in which a key's values are. */
static int
key_column(const HgjSource *source, const HgjKey *key)
{
	for (int c = 0; c < source->ncols; c++)
		if (source->columns[c].attno == key->attno)
			return c;
	elog(ERROR, "key column %d of a HashGraphJoin is not carried", key->attno);
}

/* Step 2 for one key and the pairs from .. to; returns where those end that stay. */
static uint32
recheck_block(HgjJoinState *state, int k, uint32 from, uint32 to, uint32 kept)
{
	HgjMatches *pairs = &state->found.pairs;
	const HgjKey *key = &state->js.outer.keys[k];
	const HgjVector *outer =
		&state->probing.outer_batch->vectors[key_column(&state->js.outer, key)];
	const HgjStoredColumn *inner =
		&state->js.build->rows.columns[key_column(&state->js.inner, &state->js.inner.keys[k])];
	const uint64 *last =
		state->probing.outer_batch->words[key->first_word + key->nwords - 1];
	uint32		checked[RECHECK_BLOCK];
	Datum		values[RECHECK_BLOCK];
	bool		equal[RECHECK_BLOCK];
	uint32		n = 0;

	for (uint32 p = from; p < to; p++)
	{
		bool		is_long = last[pairs->probe_rows[p]] >= HGJ_TEXT_LONG_MARK;

		equal[p - from] = true;
		checked[n] = p;
		if (is_long)
			PREFETCH(hgj_row_store_record(&state->js.build->rows, pairs->build_rows[p]));
		n += is_long;
	}
	for (uint32 i = 0; i < n; i++)
	{
		const char *record = hgj_row_store_record(&state->js.build->rows,
												  pairs->build_rows[checked[i]]);

		values[i] = hgj_record_load(inner, record);
		PREFETCH(DatumGetPointer(values[i]));
		/* the value's number of bytes, if it is stored as they are */
		PREFETCH(DatumGetPointer(values[i]) +
				 (uint32) last[pairs->probe_rows[checked[i]]]);
	}
	for (uint32 i = 0; i < n; i++)
	{
		Datum		value = ((const Datum *) outer->values)[pairs->probe_rows[checked[i]]];

		equal[checked[i] - from] = hgj_text_equal(key->kind, value, values[i]);
	}
	for (uint32 p = from; p < to; p++)
	{
		pairs->probe_rows[kept] = pairs->probe_rows[p];
		pairs->build_rows[kept] = pairs->build_rows[p];
		kept += equal[p - from];
	}
	return kept;
}

/* Take those candidates of the portion out whose texts differ. */
void
hgj_text_recheck(HgjJoinState *state)
{
	HgjMatches *pairs = &state->found.pairs;

	if (!state->js.build->long_keys)
		return;
	for (int k = 0; k < state->js.outer.nkeys; k++)
	{
		uint32		kept = 0;

		if (!hgj_key_is_text(state->js.outer.keys[k].kind))
			continue;
		for (uint32 p = 0; p < pairs->n; p += RECHECK_BLOCK)
		{
			CHECK_FOR_INTERRUPTS();
			kept = recheck_block(state, k, p, Min(p + RECHECK_BLOCK, pairs->n),
								 kept);
		}
		pairs->n = kept;
	}
}
