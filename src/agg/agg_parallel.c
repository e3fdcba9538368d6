/*-------------------------------------------------------------------------
 *
 * agg_parallel.c
 *	  A partial HashGraphAgg in a parallel plan: every process has groups of its
 *	  own, and tells the leader about them for EXPLAIN ANALYZE (reports.c).
 *
 * No memory of its own, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "agg/agg_parallel.h"

StaticAssertDecl(offsetof(HgjAggState, reports) == offsetof(HgjReporter, reports),
				 "an HgjAggState must begin as an HgjReporter");

/* What this process has done. */
void
hgj_agg_make_report(const HgjAggState *state, HgjAggReport *report)
{
	memset(report, 0, sizeof(*report));
	report->ran = state->ran;
	report->groups = state->ngroups;
	report->peak_bytes = state->peak_bytes;
	report->rounds = state->rounds.total;
	report->spilled_rows = state->spill.total_rows;
	report->spilled_partitions = state->spill.total_partitions;
	report->spilled_bytes = state->spill.total_bytes;
}

/*
 * A worker's report.  As in the leader, the groups are those of the last run;
 * everything else is of all of them, which other processes have made.
 */
static void
report_to_leader(HgjAggState *state)
{
	HgjAggReport now;
	bool		filled;
	HgjAggReport *own = hgj_reports_own(&state->reports, &filled);

	if (own == NULL || !state->ran || state->reported)
		return;
	hgj_agg_make_report(state, &now);
	if (filled)
	{
		now.peak_bytes = Max(now.peak_bytes, own->peak_bytes);
		now.rounds += own->rounds;
		now.spilled_rows += own->spilled_rows;
		now.spilled_partitions += own->spilled_partitions;
		now.spilled_bytes += own->spilled_bytes;
	}
	*own = now;
	state->reported = true;
	hgj_reports_publish(&state->reports);
}

/* ShutdownCustomScan callback, in every process. */
void
hgj_agg_shutdown(CustomScanState *node)
{
	HgjAggState *state = (HgjAggState *) node;

	if (state->reports.shared == NULL)
		return;
	if (IsParallelWorker())
		report_to_leader(state);
	else
		hgj_reports_collect(&state->reports, state->context);
}
