/*-------------------------------------------------------------------------
 *
 * reports.c
 *	  What workers tell the leader about their copies of a node, for its
 *	  EXPLAIN ANALYZE: of a HashGraphJoin (parallel.c), of a HashGraphAgg
 *	  (agg_parallel.c).
 *
 * 1. The leader reserves a slot per worker in the query's dynamic shared
 *	  memory, if somebody wants to know.
 * 2. A worker fills its slot when its plan is shut down, which is before it
 *	  detaches from its tuple queue.
 * 3. The leader copies the filled slots into its own memory at its shutdown,
 *	  before the Gather gives the shared memory back.  A worker that is stopped
 *	  early (LIMIT) may not be among them.
 * 4. Besides, in any case, workers say when they begin, and the leader looks how long
 *	  that was after it had asked for them (worker_time.c).
 *
 * PostgreSQL calls all of this only for nodes of a plan that says it is aware
 * of being parallel, which partial paths do.
 *
 * Memory: the slots belong to the Gather; the copy is palloc'd in the query's
 * context.  No locks: a slot has one writer, and a barrier stands
 * between its contents and the word that says that it is filled.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/reports.h"
#include "base/worker_time.h"
#include "port/atomics.h"
#include "utils/memutils.h"

typedef struct ReportSlot
{
	pg_atomic_uint32 filled;
	char		report[FLEXIBLE_ARRAY_MEMBER] pg_attribute_aligned(MAXIMUM_ALIGNOF);
} ReportSlot;

struct HgjSharedReports
{
	HgjLaunch	launch;			/* of the workers, whether somebody asks or not */
	int			nslots;			/* by ParallelWorkerNumber; 0: nobody asks */
	Size		size;			/* of a report */
	char		slots[FLEXIBLE_ARRAY_MEMBER] pg_attribute_aligned(MAXIMUM_ALIGNOF);
};

static int
slots_wanted(const CustomScanState *node, const ParallelContext *pcxt)
{
	return node->ss.ps.instrument ? pcxt->nworkers : 0;
}

static Size
slot_bytes(Size size)
{
	return MAXALIGN(offsetof(ReportSlot, report) + size);
}

static ReportSlot *
slot_of(HgjSharedReports *shared, int i)
{
	return (ReportSlot *) (shared->slots + i * slot_bytes(shared->size));
}

static HgjReports *
reports_of(CustomScanState *node)
{
	return &((HgjReporter *) node)->reports;
}

/* EstimateDSMCustomScan callback. */
Size
hgj_reports_estimate(CustomScanState *node, ParallelContext *pcxt)
{
	return add_size(offsetof(HgjSharedReports, slots),
					mul_size(slots_wanted(node, pcxt),
							 slot_bytes(reports_of(node)->methods->size)));
}

/* InitializeDSMCustomScan callback, in the leader. */
void
hgj_reports_share(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	HgjSharedReports *shared = coordinate;

	shared->nslots = slots_wanted(node, pcxt);
	shared->size = reports_of(node)->methods->size;
	hgj_launch_begin(&shared->launch);
	for (int i = 0; i < shared->nslots; i++)
		pg_atomic_init_u32(&slot_of(shared, i)->filled, 0);
	reports_of(node)->shared = shared;
}

/*
 * For the callbacks ReInitializeDSMCustomScan, after which old reports stand until new
 * ones come, and InitializeWorkerCustomScan.
 */
void
hgj_reports_attach(CustomScanState *node, void *coordinate)
{
	HgjSharedReports *shared = coordinate;

	reports_of(node)->shared = shared;
	if (IsParallelWorker())
		hgj_launch_started(&shared->launch);
	else
		hgj_launch_begin(&shared->launch);
}

/*
 * Step 2, if somebody asks: of this worker's last run, with what an earlier process
 * in its place has done (a Gather that is rescanned has new ones).
 */
static void
report_to_leader(CustomScanState *node)
{
	HgjReports *reports = reports_of(node);
	HgjSharedReports *shared = reports->shared;
	ReportSlot *slot;
	void	   *now;

	if (ParallelWorkerNumber >= shared->nslots || reports->reported)
		return;
	slot = slot_of(shared, ParallelWorkerNumber);
	now = palloc(shared->size);
	if (reports->methods->make(node, now))
	{
		if (pg_atomic_read_u32(&slot->filled) != 0)
			reports->methods->add(now, slot->report);
		memcpy(slot->report, now, shared->size);
		reports->reported = true;
		pg_write_barrier();
		pg_atomic_write_u32(&slot->filled, 1);
	}
	pfree(now);
}

/*
 * Step 3, in the leader.  Shared memory must not be looked at afterwards, and
 * is not.
 */
static void
collect(HgjReports *reports, MemoryContext context)
{
	HgjSharedReports *shared = reports->shared;

	reports->shared = NULL;
	hgj_launch_look(&shared->launch);
	if (shared->nslots == 0)
		return;
	if (reports->copies == NULL)
	{
		/* every Gather of a node plans for as many workers */
		reports->copies = MemoryContextAllocZero(context,
												 mul_size(shared->nslots,
														  shared->size));
		reports->n = shared->nslots;
	}
	Assert(reports->n == shared->nslots);
	for (int i = 0; i < shared->nslots; i++)
	{
		ReportSlot *slot = slot_of(shared, i);

		if (pg_atomic_read_u32(&slot->filled) == 0)
			continue;
		pg_read_barrier();
		memcpy(reports->copies + i * shared->size, slot->report, shared->size);
	}
}

/* ShutdownCustomScan callback, in every process. */
void
hgj_reports_shutdown(CustomScanState *node)
{
	if (reports_of(node)->shared == NULL)
		return;
	if (IsParallelWorker())
		report_to_leader(node);
	else
		collect(reports_of(node), node->ss.ps.state->es_query_cxt);
}
