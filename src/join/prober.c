/*-------------------------------------------------------------------------
 *
 * prober.c
 *	  What a pipeline that finds the rows of a chain of joins does to these joins' state.
 *
 * 1. Before rows are found: lower joins are started as their parents' first request would
 *	  start them, and each must have its build side in one table.
 * 2. The bottom join reads its outer side as it does by itself, in batches that the pipeline
 *	  bounds.
 * 3. The upper join is given a block: its outer batch is made of the rows at hand, its
 *	  matches are the pipeline's arrays, lent for as long as the pipeline is active.  Rows of
 *	  the batch that are another block's count as matched, so that nothing is filled for them.
 * 4. After a failure of which nothing has left, the joins go on by themselves: the bottom one
 *	  with the batch that it has read, the others with their outer sides from the start.
 *
 * Memory: none but the arrays of matches, which hgj_join_take_back_pairs() gives back to the
 * join that has made them.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "join/join_state.h"

/* The pipeline that finds the join's rows; NULL: there has been none. */
struct HgjPipelineState *
hgj_join_pipeline(const HgjJoinState *state)
{
	return state->pipeline;
}

void
hgj_join_use_pipeline(HgjJoinState *state, struct HgjPipelineState *pipeline)
{
	state->pipeline = pipeline;
}

/* ---- step 1 --------------------------------------------------------------- */

/* The executor rescans a node whose parameters have changed before it asks for a row. */
void
hgj_join_rescan_changed(HgjJoinState *state)
{
	PlanState  *ps = &state->js.css.ss.ps;

	if (ps->chgParam != NULL)
		ExecReScan(ps);
}

/* A join below `upper` begins, as careful about errors as that is. */
void
hgj_join_start_below(HgjJoinState *state, const HgjJoinState *upper)
{
	state->goal.careful = upper->goal.careful;
	hgj_prepare(state);
}

/* Is all of the build side in the table at hand, with no partitions or passes to come? */
bool
hgj_join_has_whole_table(const HgjJoinState *state)
{
	const HgjPasses *passes = &state->passes;

	return passes->last_pass && !passes->has_split && passes->pass == 1;
}

/* ---- what is counted ------------------------------------------------------ */

HgjPageCounts *
hgj_join_outer_pages(HgjJoinState *state)
{
	return &state->stats.outer_pages;
}

HgjPageCounts *
hgj_join_inner_pages(HgjJoinState *state)
{
	return &state->stats.inner_pages;
}

/* Rows that a pipeline has found in the join's place. */
void
hgj_join_count_returned(HgjJoinState *state, uint64 rows)
{
	state->counts.returned += rows;
}

/* Rows that a pipeline's probe has kept off the graph by the table's filter. */
void
hgj_join_count_rejected(HgjJoinState *state, uint64 rows)
{
	state->stats.filter_rejected += rows;
}

/* The join cannot start again by itself, as a join that has returned a batch cannot. */
void
hgj_join_has_returned(HgjJoinState *state)
{
	state->emitted_before = ++state->emitted;
}

/* What leaves from now on is of another outer batch. */
void
hgj_join_begins_batch(HgjJoinState *state)
{
	state->emitted_before = state->emitted;
}

/* ---- step 2 --------------------------------------------------------------- */

HgjBatch *
hgj_join_outer_batch(const HgjJoinState *state)
{
	return state->probing.outer_batch;
}

/*
 * The next outer batch, and at most this many rows in the one after it: the pipeline takes
 * as many at once.  False: there is none.
 */
bool
hgj_join_read_outer(HgjJoinState *state, uint32 most_rows)
{
	bool		more = hgj_read_outer(state);

	state->probing.batch_rows = Min(state->probing.batch_rows, most_rows);
	return more;
}

/* ---- step 3 --------------------------------------------------------------- */

/* The arrays of matches are the pipeline's from here on ... */
void
hgj_join_lend_pairs(HgjJoinState *state)
{
	state->found.own_probe_rows = state->found.pairs.probe_rows;
	state->found.own_build_rows = state->found.pairs.build_rows;
}

/* ... and the join's own again, with nothing in them. */
void
hgj_join_take_back_pairs(HgjJoinState *state)
{
	state->found.pairs.probe_rows = state->found.own_probe_rows;
	state->found.pairs.build_rows = state->found.own_build_rows;
	state->found.pairs.n = state->found.next_pair = 0;
}

/*
 * The outer batch has rows of a new block: n of them, by number.  matched: each has a
 * match, which hgj_join_give_matches() tells; otherwise none has.
 */
void
hgj_join_begin_block(HgjJoinState *state, const uint32 *outer_rows, uint32 n, bool matched)
{
	HgjFound   *found = &state->found;

	hgj_reserve_matched(state);
	memset(found->matched, true, state->probing.outer_batch->nrows);
	/* a match that is rechecked may prove to be none */
	for (uint32 i = 0; i < n && (!matched || state->rules.recheck); i++)
		found->matched[outer_rows[i]] = false;
	state->probing.outer_seen = true;
	found->pairs.n = found->next_pair = 0;
	found->npairs_left = found->wasted_pairs = 0;
	found->pairs.done = !matched;
	found->next_outer = 0;
}

/* The block's matches, all of them: arrays that stay as they are until the next block. */
void
hgj_join_give_matches(HgjJoinState *state, uint32 *outer_rows, uint32 *inner_rows, uint32 n)
{
	HgjMatches *pairs = &state->found.pairs;

	pairs->probe_rows = outer_rows;
	pairs->build_rows = inner_rows;
	pairs->n = n;
	pairs->done = true;
}

/* ---- step 4 --------------------------------------------------------------- */

/* The join goes on by itself; the bottom one of a chain with the batch at hand. */
void
hgj_join_resume(HgjJoinState *state)
{
	state->phase = HGJ_PHASE_FETCH;
	if (hgj_source_join(&state->js.outer))
		hgj_restart_outer(state);
	else
		state->probing.outer_filled = state->probing.outer_batch->nrows > 0;
}
