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
	HgjSharedReports *shared;	/* NULL: there is no shared memory */
	int			n;				/* the leader's copies, by worker; all zeroes */
	char	   *copies;			/* where a worker has not reported */
} HgjReports;

extern Size hgj_reports_estimate(const CustomScanState *node,
								 const ParallelContext *pcxt, Size size);
extern void hgj_reports_share(HgjReports *reports, const CustomScanState *node,
							  const ParallelContext *pcxt, void *coordinate,
							  Size size);
extern void hgj_reports_attach(HgjReports *reports, void *coordinate);
extern void *hgj_reports_own(HgjReports *reports, bool *filled);
extern void hgj_reports_publish(HgjReports *reports);
extern void hgj_reports_collect(HgjReports *reports, MemoryContext context);

#endif							/* HGJ_REPORTS_H */
