/*-------------------------------------------------------------------------
 *
 * parallel.c
 *	  A HashGraphJoin in a parallel plan: what each worker's copy of the node
 *	  did, for the leader's EXPLAIN ANALYZE.
 *
 * Every process that runs a partial path has a node of its own, builds its own
 * table, and shares nothing with the others but what the children share (the
 * blocks of a parallel sequential scan).  Only reports of the runs travel:
 *
 * 1. The leader reserves a slot per worker in the query's dynamic shared
 *	  memory.
 * 2. A worker fills its slot when its plan is shut down, which is before it
 *	  detaches from its tuple queue.
 * 3. The leader copies the filled slots into its own memory at its shutdown,
 *	  before the Gather gives the shared memory back.  A worker that is stopped
 *	  early (LIMIT) may not be among them.
 *
 * PostgreSQL calls all of this only for nodes of a plan that says it is aware
 * of being parallel, which partial paths do (planner/join_path.c).
 *
 * Memory: the slots belong to the Gather; the copy is palloc'd in the query's
 * context.  No locks: a slot has one writer, and a barrier stands between its
 * contents and the word that says that it is filled.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "exec/join_state.h"
#include "exec/parallel.h"
#include "port/atomics.h"

typedef struct ReportSlot
{
	pg_atomic_uint32 filled;
	HgjRunReport report;		/* of the worker's last run */
} ReportSlot;

struct HgjSharedReports
{
	int			nslots;			/* by ParallelWorkerNumber; 0: nobody asks */
	ReportSlot	slots[FLEXIBLE_ARRAY_MEMBER];
};

static int
slots_wanted(CustomScanState *node, ParallelContext *pcxt)
{
	return node->ss.ps.instrument ? pcxt->nworkers : 0;
}

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

/* EstimateDSMCustomScan callback. */
Size
hgj_estimate_dsm(CustomScanState *node, ParallelContext *pcxt)
{
	return add_size(offsetof(HgjSharedReports, slots),
					mul_size(slots_wanted(node, pcxt), sizeof(ReportSlot)));
}

/* InitializeDSMCustomScan callback, in the leader. */
void
hgj_initialize_dsm(CustomScanState *node, ParallelContext *pcxt,
				   void *coordinate)
{
	HgjJoinState *state = (HgjJoinState *) node;
	HgjSharedReports *shared = coordinate;

	shared->nslots = slots_wanted(node, pcxt);
	for (int i = 0; i < shared->nslots; i++)
		pg_atomic_init_u32(&shared->slots[i].filled, 0);
	state->shared_reports = shared;
}

/* ReInitializeDSMCustomScan callback: old reports stand until new ones come. */
void
hgj_reinitialize_dsm(CustomScanState *node, ParallelContext *pcxt,
					 void *coordinate)
{
	((HgjJoinState *) node)->shared_reports = coordinate;
}

/* InitializeWorkerCustomScan callback. */
void
hgj_initialize_worker(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	((HgjJoinState *) node)->shared_reports = coordinate;
}

/* Step 2 of the head comment. */
static void
fill_slot(HgjJoinState *state)
{
	HgjSharedReports *shared = state->shared_reports;
	ReportSlot *slot;
	uint64		peak = 0;

	if (ParallelWorkerNumber >= shared->nslots || !state->stats.built)
		return;
	slot = &shared->slots[ParallelWorkerNumber];
	if (pg_atomic_read_u32(&slot->filled))
		peak = slot->report.stats.peak_bytes;	/* of an earlier rescan */
	hgj_make_report(state, &slot->report);
	slot->report.stats.peak_bytes = Max(slot->report.stats.peak_bytes, peak);
	pg_write_barrier();
	pg_atomic_write_u32(&slot->filled, 1);
}

/* Step 3 of the head comment. */
static void
copy_slots(HgjJoinState *state)
{
	HgjSharedReports *shared = state->shared_reports;

	if (shared->nslots == 0)
		return;
	if (state->worker_reports == NULL)
	{
		/* every Gather of this node plans for as many workers */
		state->worker_reports =
			MemoryContextAllocZero(state->context,
								   mul_size(shared->nslots,
											sizeof(HgjRunReport)));
		state->nworker_reports = shared->nslots;
	}
	Assert(state->nworker_reports == shared->nslots);
	for (int i = 0; i < shared->nslots; i++)
	{
		if (pg_atomic_read_u32(&shared->slots[i].filled) == 0)
			continue;
		pg_read_barrier();
		state->worker_reports[i] = shared->slots[i].report;
	}
}

/*
 * ShutdownCustomScan callback, in every process.  The leader comes here before
 * its Gather shuts down, and must not look at shared memory afterwards.
 */
void
hgj_shutdown(CustomScanState *node)
{
	HgjJoinState *state = (HgjJoinState *) node;

	if (state->shared_reports == NULL)
		return;
	if (IsParallelWorker())
		fill_slot(state);
	else
	{
		copy_slots(state);
		state->shared_reports = NULL;
	}
}
