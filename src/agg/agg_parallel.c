/*-------------------------------------------------------------------------
 *
 * agg_parallel.c
 *	  A HashGraphAgg in a parallel plan: every process has groups of its
 *	  own, and tells the leader about them for EXPLAIN ANALYZE (reports.c).
 *
 * No memory of its own, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_parallel.h"

StaticAssertDecl(offsetof(HgjAggState, reports) == offsetof(HgjReporter, reports),
				 "an HgjAggState must begin as an HgjReporter");

/* What this process has done. */
void
hgj_agg_make_report(const HgjAggState *state, HgjAggReport *report)
{
	memset(report, 0, sizeof(*report));
	report->ran = state->ran;
	hgj_agg_feed_count(state, &report->pages);
	report->key_filter = state->key_filter;
	report->groups = state->ngroups;
	report->peak_bytes = state->peak_bytes;
	report->rounds = state->rounds.total;
	report->waiting_rows = state->growing.total_rows;
	report->spilled_rows = state->spill.total_rows;
	report->spilled_partitions = state->spill.total_partitions;
	report->spilled_bytes = state->spill.total_bytes;
	report->exchanged_groups = state->exchange.total_groups;
	report->exchanged_bytes = state->exchange.total_bytes;
	report->exchanged_disk = state->exchange.total_disk;
	report->exchanged_by_value = state->exchange.total_by_value;
	report->exchanged_short = state->exchange.total_short;
}

static bool
make_report(CustomScanState *node, void *report)
{
	HgjAggReport *run = report;

	hgj_agg_make_report((HgjAggState *) node, run);
	return run->ran;
}

/*
 * As in the leader, the groups are those of the last run; everything else is of
 * all of them.
 */
static void
add_report(void *report, const void *earlier)
{
	HgjAggReport *to = report;
	const HgjAggReport *from = earlier;

	hgj_page_counts_add(&to->pages, &from->pages);
	hgj_key_filter_stats_add(&to->key_filter, &from->key_filter);
	to->peak_bytes = Max(to->peak_bytes, from->peak_bytes);
	to->rounds += from->rounds;
	to->waiting_rows += from->waiting_rows;
	to->spilled_rows += from->spilled_rows;
	to->spilled_partitions += from->spilled_partitions;
	to->spilled_bytes += from->spilled_bytes;
	to->exchanged_groups += from->exchanged_groups;
	to->exchanged_bytes += from->exchanged_bytes;
	to->exchanged_disk += from->exchanged_disk;
	to->exchanged_by_value += from->exchanged_by_value;
	to->exchanged_short += from->exchanged_short;
}

const HgjReportMethods hgj_agg_reports = {sizeof(HgjAggReport), make_report, add_report};
