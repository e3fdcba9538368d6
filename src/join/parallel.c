/*-------------------------------------------------------------------------
 *
 * parallel.c
 *	  A HashGraphJoin in a parallel plan: what each worker's copy of the node
 *	  did, for the leader's EXPLAIN ANALYZE.
 *
 * Every process that runs a partial path has a node of its own, builds its own
 * table, and shares nothing with the others but what the children share (the
 * blocks of a parallel sequential scan).  Only reports of the runs travel
 * (reports.c).
 *
 * No memory of its own, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "join/join_state.h"
#include "join/parallel.h"

StaticAssertDecl(offsetof(HgjJoinState, js.reports) == offsetof(HgjReporter, reports),
				 "an HgjJoinState must begin as an HgjReporter");

/* What this process has done, without pointers. */
void
hgj_make_report(const HgjJoinState *state, HgjRunReport *report)
{
	memset(report, 0, sizeof(*report));
	report->stats = state->stats;
	hgj_add_table_stats(state, &report->stats);
	report->stats.outer_singly = state->js.outer.rows_singly;
	hgj_pages_count(&state->js.outer, &report->stats.outer_pages);
	hgj_pages_count(&state->js.inner, &report->stats.inner_pages);
	report->fallback = state->use.fallback;
	if (state->use.engine)
		strlcpy(report->engine, state->use.engine->name, sizeof(report->engine));
	if (state->use.fallback_text)
		strlcpy(report->fallback_text, state->use.fallback_text,
				sizeof(report->fallback_text));
}

/*
 * Add to one process's account of memory and files what another says, or the
 * same one after a rescan of the Gather, which has new processes.
 */
void
hgj_add_report(HgjRunReport *report, const HgjRunReport *other)
{
	HgjRunStats *to = &report->stats;
	const HgjRunStats *from = &other->stats;

	hgj_page_counts_add(&to->outer_pages, &from->outer_pages);
	hgj_page_counts_add(&to->inner_pages, &from->inner_pages);
	to->passes = Max(to->passes, from->passes);
	to->partitions = Max(to->partitions, from->partitions);
	to->peak_bytes = Max(to->peak_bytes, from->peak_bytes);
	to->device_peak = Max(to->device_peak, from->device_peak);
	to->held_bytes = Max(to->held_bytes, from->held_bytes);
	to->device_full |= from->device_full;
	if (to->shrunk[0] == '\0')
		memcpy(to->shrunk, from->shrunk, sizeof(to->shrunk));
	to->spilled_inner += from->spilled_inner;
	to->spilled_outer += from->spilled_outer;
	to->outer_filtered += from->outer_filtered;
	to->spilled_bits += from->spilled_bits;
	to->outer_singly += from->outer_singly;
	to->joined_singly += from->joined_singly;
	to->filter_bytes = Max(to->filter_bytes, from->filter_bytes);
	to->filter_rejected += from->filter_rejected;
	for (int f = 0; f < HGJ_MOST_KEY_FILTERS; f++)
		hgj_key_filter_stats_add(&to->key_filters[f], &from->key_filters[f]);
	to->notes |= from->notes;
	to->stopped_early |= from->stopped_early;
	to->share_spilled |= from->share_spilled;
	to->dictionary_full |= from->dictionary_full;
}

static bool
make_report(CustomScanState *node, void *report)
{
	HgjRunReport *run = report;

	hgj_make_report((HgjJoinState *) node, run);
	return run->stats.built;
}

static void
add_report(void *report, const void *earlier)
{
	hgj_add_report(report, earlier);
}

const HgjReportMethods hgj_join_reports = {sizeof(HgjRunReport), make_report, add_report};
