/*-------------------------------------------------------------------------
 *
 * all_found.c
 *	  Joins that return inner rows for having a match, or for having none (right
 *	  semi, right anti): once all of them have one, no outer row is of use.
 *
 * 1. Where few inner rows meet many outer ones, that is soon so, and the rest of the
 *	  outer side is as good as never read: PostgreSQL's nested loop, which ends at the
 *	  first match of a row, would not read it, either.
 * 2. A row has been found when its match bit is set, which is after join clauses have
 *	  been asked.  Rows that have no entry in the table, because their key is NULL, will
 *	  never be, so as many unset bits as there are of these are not waited for.
 * 3. To look takes a step for each word of bits, and for each row that is not found,
 *	  until there are too many of these; it is done when many times as many outer rows
 *	  and matches have gone by since the last time.  Where every row has an entry, the
 *	  first one that was not found the last time is the one to look at.
 * 4. Other processes that share the table set bits, too, and no bit is ever unset: if
 *	  all are seen to be set, all are found, whoever returns them.
 *
 * Not on a device, where the bits would have to be fetched; nor while outer rows are
 * put aside for other parts of the build side, which may be waiting for them; nor where
 * the outer side calls volatile functions: in PostgreSQL it would depend on the join
 * method for how many rows, and the others of ours call them for all.
 *
 * No memory, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "join/join_state.h"

/* Step 3: outer rows and matches for each step of looking. */
#define HGJ_WORK_PER_LOOK		16

/* How many rows without a match are listed at a time. */
#define HGJ_LISTED_ROWS			256

/* May this pass over the outer side end before it? */
static bool
may_stop(HgjJoinState *state)
{
	const HgjSemantics *s = &state->js.semantics;

	if (!s->mark_inner || s->fill_outer || (s->emit_matches && !s->one_per_inner))
		return false;
	return !hgj_on_device(state) && !state->passes.splitting &&
		!state->js.outer.keep_rows && state->js.build->table != NULL &&
		!hgj_outer_is_volatile(state);
}

/* Step 2: are no more than `spare` rows without a match? */
static bool
look(HgjJoinState *state, uint64 spare)
{
	HgjFound   *found = &state->found;
	uint32		rows[HGJ_LISTED_ROWS];
	uint32		capacity = (uint32) Min(spare + 1, HGJ_LISTED_ROWS);
	uint32		cursor = spare == 0 ? found->first_sought : 0;
	uint64		unset = 0;
	uint32		n = 0;

	do
	{
		HgjError	err = {0};

		hgj_engine_call(state, &err,
						state->use.engine->unmatched(state->js.build->table, &cursor, rows,
													 capacity, &n, &err));
		unset += n;
	} while (n == capacity && unset <= spare);
	if (spare == 0 && n > 0)
		found->first_sought = rows[0];
	return unset <= spare;
}

/* More outer rows, or matches, have gone by. */
void
hgj_note_sought(HgjJoinState *state, uint32 n)
{
	state->found.work_since_look += n;
}

/* Have all inner rows been found that can be, so that the outer side need not be read on? */
bool
hgj_all_found(HgjJoinState *state)
{
	HgjFound   *found = &state->found;
	uint64		spare;

	if (found->work_since_look < found->work_till_look)
		return false;
	if (!may_stop(state))
	{
		found->work_till_look = PG_UINT64_MAX;	/* in this pass */
		return false;
	}
	spare = state->js.build->total_rows - state->js.build->graph_rows;
	found->work_since_look = 0;
	found->work_till_look = spare == 0 ? 1 :
		HGJ_WORK_PER_LOOK * (state->js.build->total_rows / 64 + spare);
	if (!look(state, spare))
		return false;
	state->stats.stopped_early = true;
	return true;
}

/* A pass over the outer side begins. */
void
hgj_seek_all(HgjJoinState *state)
{
	state->found.first_sought = 0;
	state->found.work_since_look = 0;
	state->found.work_till_look = 1;
}
