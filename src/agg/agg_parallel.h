/*-------------------------------------------------------------------------
 *
 * agg_parallel.h
 *	  The reports on a HashGraphAgg that workers send to the leader
 *	  (agg_parallel.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_AGG_PARALLEL_H
#define HGJ_AGG_PARALLEL_H

#include "compat.h"

#include "agg/agg_state.h"
#include "scan/source.h"

/* What EXPLAIN ANALYZE shows of one process's runs. */
typedef struct HgjAggReport
{
	bool		ran;
	HgjPageCounts pages;
	HgjKeyFilterStats key_filter;	/* of all runs */
	uint64		groups;			/* of the last run */
	uint64		peak_bytes;
	uint64		rounds;			/* tables returned before the end */
	uint64		waiting_rows;	/* arguments that waited for states */
	uint64		spilled_rows;
	uint64		spilled_partitions;
	uint64		spilled_bytes;
	uint64		exchanged_groups;
	uint64		exchanged_bytes;
	uint64		exchanged_disk;
	uint64		exchanged_by_value; /* number of exchanged groups that values divided */
	uint64		exchanged_short;	/* number of exchanged groups in short records */
} HgjAggReport;

extern void hgj_agg_make_report(const HgjAggState *state,
								HgjAggReport *report);
extern const HgjReportMethods hgj_agg_reports;

#endif							/* HGJ_AGG_PARALLEL_H */
