/*-------------------------------------------------------------------------
 *
 * reports.h
 *	  What workers tell the leader about a node's runs (reports.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_REPORTS_H
#define HGJ_REPORTS_H

#include "compat.h"

#include "access/parallel.h"
#include "nodes/execnodes.h"

typedef struct HgjSharedReports HgjSharedReports;

/* Reports have a size that is a node's own, and no pointers in them. */
typedef struct HgjReports
{
	Size		size;			/* of a report */
	HgjSharedReports *shared;	/* NULL: there is no shared memory */
	int			n;				/* the leader's copies, by worker; all zeroes */
	char	   *copies;			/* where a worker has not reported */
} HgjReports;

/* What the state of a node that reports begins with. */
typedef struct HgjReporter
{
	CustomScanState css;
	HgjReports	reports;
} HgjReporter;

/* Callbacks of such a node. */
extern Size hgj_reports_estimate(CustomScanState *node, ParallelContext *pcxt);
extern void hgj_reports_share(CustomScanState *node, ParallelContext *pcxt,
							  void *coordinate);
extern void hgj_reports_share_again(CustomScanState *node,
									ParallelContext *pcxt, void *coordinate);
extern void hgj_reports_attach(CustomScanState *node, shm_toc *toc,
							   void *coordinate);

extern void *hgj_reports_own(HgjReports *reports, bool *filled);
extern void hgj_reports_publish(HgjReports *reports);
extern void hgj_reports_collect(HgjReports *reports, MemoryContext context);

#endif							/* HGJ_REPORTS_H */
