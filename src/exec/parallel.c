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

#include "access/parallel.h"
#include "exec/join_state.h"
#include "exec/parallel.h"

StaticAssertDecl(offsetof(HgjJoinState, reports) == offsetof(HgjReporter, reports),
				 "an HgjJoinState must begin as an HgjReporter");

/* What this process has done, without pointers. */
void
hgj_make_report(const HgjJoinState *state, HgjRunReport *report)
{
	memset(report, 0, sizeof(*report));
	report->stats = state->stats;
	hgj_add_table_stats(state, &report->stats);
	report->fallback = state->fallback;
	if (state->engine)
		strlcpy(report->engine, state->engine->name, sizeof(report->engine));
	if (state->fallback_text)
		strlcpy(report->fallback_text, state->fallback_text,
				sizeof(report->fallback_text));
}

/* A worker's report: of its last run, with the highest memory of all runs. */
static void
report_to_leader(HgjJoinState *state)
{
	bool		filled;
	HgjRunReport *own = hgj_reports_own(&state->reports, &filled);
	uint64		peak;

	if (own == NULL || !state->stats.built)
		return;
	peak = filled ? own->stats.peak_bytes : 0;
	hgj_make_report(state, own);
	own->stats.peak_bytes = Max(own->stats.peak_bytes, peak);
	hgj_reports_publish(&state->reports);
}

/* ShutdownCustomScan callback, in every process. */
void
hgj_shutdown(CustomScanState *node)
{
	HgjJoinState *state = (HgjJoinState *) node;

	if (state->reports.shared == NULL)
		return;
	if (IsParallelWorker())
		report_to_leader(state);
	else
		hgj_reports_collect(&state->reports, state->context);
}
