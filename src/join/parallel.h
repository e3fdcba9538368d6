/*-------------------------------------------------------------------------
 *
 * parallel.h
 *	  The reports on a HashGraphJoin that workers send to the leader
 *	  (parallel.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_PARALLEL_H
#define HGJ_PARALLEL_H

#include "compat.h"

#include "join/join_state.h"

/*
 * What EXPLAIN ANALYZE shows of one process's runs.  It goes through shared
 * memory, so there is no pointer in it.
 */
struct HgjRunReport
{
	HgjRunStats stats;
	HgjFallback fallback;
	char		engine[32];
	char		fallback_text[sizeof(((HgjError *) 0)->message)];
};

extern void hgj_make_report(const HgjJoinState *state, HgjRunReport *report);
extern void hgj_add_report(HgjRunReport *report, const HgjRunReport *other);

extern const HgjReportMethods hgj_join_reports;

#endif							/* HGJ_PARALLEL_H */
