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

/* A kind of node's reports, which have no pointers in them. */
typedef struct HgjReportMethods
{
	Size		size;

	/* What this process has done; false: nothing that is to be reported. */
	bool		(*make) (CustomScanState *node, void *report);

	/* Add what an earlier process in the same place has reported. */
	void		(*add) (void *report, const void *earlier);
} HgjReportMethods;

typedef struct HgjReports
{
	const HgjReportMethods *methods;
	bool		reported;		/* this worker has */
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

/* Callbacks of such a node, or what they call. */
extern Size hgj_reports_estimate(CustomScanState *node, ParallelContext *pcxt);
extern void hgj_reports_share(CustomScanState *node, ParallelContext *pcxt,
							  void *coordinate);
extern void hgj_reports_attach(CustomScanState *node, void *coordinate);
extern void hgj_reports_shutdown(CustomScanState *node);

#endif							/* HGJ_REPORTS_H */
