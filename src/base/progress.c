/*-------------------------------------------------------------------------
 *
 * progress.c
 *	  How far the nodes of running queries are, where other sessions see it.
 *
 * 1. Every process of the server has some slots of its own, one for a node that
 *	  runs.  Nobody else writes there, so that a node shows what it does by a few
 *	  stores, a batch or so many pages at a time.  Who has more nodes than slots
 *	  does not show the rest.
 * 2. A slot has a count of its changes, which is odd while one is made.  Who reads
 *	  copies the slot, and tries again if the count has moved, or is odd: as with
 *	  the entries of pg_stat_activity.
 * 3. Where the postmaster loads the library (shared_preload_libraries), the slots
 *	  are in its shared memory.  Otherwise, from PostgreSQL 17 on, they are in a
 *	  segment that sessions find by its name; the name says which build of the
 *	  library it is of, because another one may have other slots.  Before 17 there
 *	  is nothing by which sessions could find each other: then a session has slots
 *	  in its own memory, and shows its own nodes to itself only.
 * 4. A node takes its slot back when it ends, or its query is aborted, by the reset
 *	  callback that its state has (node.c, agg_node.c).  A process empties its slots
 *	  when it ends, and when it begins, whatever has become of the one before it.
 *
 * Memory: shared memory of a fixed size, for the life of the server; or static.  If
 * there is none for a segment, PostgreSQL's error ends the first query that wants
 * one.  No locks but the one under which PostgreSQL makes shared memory.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "base/build_id.h"
#include "base/progress.h"
#include "base/shared_memory.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/proc.h"

#define SHARED_NAME		"hashgraph_join progress"

/* Nodes of a process that are shown at a time. */
#define NODES			16

typedef struct HgjProgressSlot
{
	uint32		changes;		/* step 2 */
	HgjProgressRow row;
} HgjProgressSlot;

static HgjProgressSlot *slots = NULL;	/* of all processes, NODES each */
static HgjProgressSlot session_slots[NODES];
static HgjProgressSlot *own = NULL; /* NULL: not attached yet */

static Size
shared_bytes(void)
{
	return mul_size(mul_size(MaxBackends, NODES), sizeof(HgjProgressSlot));
}

static void
attach_shared(void *memory, bool found)
{
	slots = memory;
	if (!found)
		memset(slots, 0, shared_bytes());
}

/* See progress.h. */
void
hgj_progress_share(void)
{
	static const HgjSharedPart part = {SHARED_NAME, shared_bytes, false, attach_shared};

	hgj_shared_memory_add(&part);
}

/* See progress.h. */
bool
hgj_progress_shared(void)
{
	return slots != NULL;
}

/* A new segment's slots are empty. */
static void
empty_segment(void *segment)
{
	memset(segment, 0, shared_bytes());
}

/* Step 3: the segment, or NULL where this PostgreSQL has no names for them. */
static void *
find_segment(void)
{
	char		name[NAMEDATALEN];

	snprintf(name, sizeof(name), SHARED_NAME " %x", hgj_build_flags());
	return hgj_named_segment(name, shared_bytes(), empty_segment);
}

/* Step 2: a row that readers see as a whole or not at all. */
static void
write_row(HgjProgressSlot *slot, const HgjProgressRow *row)
{
	volatile uint32 *changes = &slot->changes;

	(*changes)++;
	pg_write_barrier();
	slot->row = *row;
	pg_write_barrier();
	(*changes)++;
}

static void
empty_own_slots(void)
{
	HgjProgressRow none = {0};

	for (int i = 0; i < NODES; i++)
		write_row(&own[i], &none);
}

/* A process that was stopped in the middle of a change has left the count odd. */
static void
take_over_slots(void)
{
	for (int i = 0; i < NODES; i++)
		own[i].changes &= ~UINT32_C(1);
	empty_own_slots();
}

/* Step 4: the process ends. */
static void
at_exit(int code, Datum arg)
{
	empty_own_slots();
}

/* See progress.h. */
void
hgj_progress_attach(void)
{
	if (own != NULL)
		return;
	if (slots == NULL)
		slots = find_segment();
	if (slots == NULL)
	{
		own = session_slots;
		return;
	}
	own = slots + (MyProc - ProcGlobal->allProcs) * NODES;
	take_over_slots();
	before_shmem_exit(at_exit, (Datum) 0);
}

/* See progress.h. */
bool
hgj_progress_begin(HgjProgress *progress, HgjProgressKind kind, int node)
{
	HgjProgressRow *now = &progress->now;

	if (progress->slot != NULL)
		return true;
	hgj_progress_attach();
	memset(progress, 0, sizeof(*progress));
	for (int i = 0; i < NODES && progress->slot == NULL; i++)
		if (own[i].row.pid == 0)
			progress->slot = &own[i];
	if (progress->slot == NULL)
		return false;
	now->pid = MyProcPid;
	if (IsParallelWorker())
		now->leader_pid = MyProc->lockGroupLeader->pid;
	now->database = MyDatabaseId;
	now->role = GetSessionUserId();
	now->kind = kind;
	now->node = node;
	hgj_progress_show(progress);
	return true;
}

/* See progress.h. */
void
hgj_progress_show(const HgjProgress *progress)
{
	if (progress->slot)
		write_row(progress->slot, &progress->now);
}

/* See progress.h. */
void
hgj_progress_blocks(HgjProgress *progress, uint64 done, uint64 total)
{
	if (progress == NULL || progress->slot == NULL)
		return;
	progress->now.blocks_done = progress->blocks_before + done;
	progress->now.blocks_total = progress->total_before + total;
	hgj_progress_show(progress);
}

/* See progress.h. */
void
hgj_progress_next_table(HgjProgress *progress)
{
	progress->blocks_before = progress->now.blocks_done;
	progress->total_before = progress->now.blocks_total;
}

/* See progress.h. */
void
hgj_progress_end(HgjProgress *progress)
{
	HgjProgressRow none = {0};

	if (progress->slot)
		write_row(progress->slot, &none);
	progress->slot = NULL;
}

/* See progress.h. */
bool
hgj_progress_get(int i, HgjProgressRow *copy)
{
	HgjProgressSlot *slot;
	volatile uint32 *changes;
	uint32		before;
	uint32		after;

	if (i >= (slots ? MaxBackends * NODES : NODES))
		return false;
	slot = slots ? &slots[i] : &session_slots[i];
	changes = &slot->changes;
	do
	{
		CHECK_FOR_INTERRUPTS();
		before = *changes;
		pg_read_barrier();
		*copy = slot->row;
		pg_read_barrier();
		after = *changes;
	} while (before != after || (before & 1) != 0);
	return true;
}
