/*-------------------------------------------------------------------------
 *
 * shared_memory.c
 *	  Parts of the postmaster's shared memory that are ours.
 *
 * 1. Who needs one says so while the postmaster loads the library; the first of them
 *	  chains into its hooks, for all.
 * 2. When the postmaster asks how much memory it is to make, each part says its size.
 * 3. When the memory is there, each part is told where: in the postmaster once, and
 *	  again after a crash.
 *
 * Memory: the postmaster's, for its life.  Locks: AddinShmemInitLock in step 3.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/shared_memory.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#define MOST_PARTS	8

static const HgjSharedPart *parts[MOST_PARTS];
static int	nparts = 0;

static shmem_request_hook_type previous_request = NULL;
static shmem_startup_hook_type previous_startup = NULL;

/* Step 2. */
static void
request_memory(void)
{
	if (previous_request)
		previous_request();
	for (int i = 0; i < nparts; i++)
	{
		Size		bytes = parts[i]->bytes();

		if (bytes == 0)
			continue;
		RequestAddinShmemSpace(MAXALIGN(bytes));
		if (parts[i]->has_lock)
			RequestNamedLWLockTranche(parts[i]->name, 1);
	}
}

/* Step 3. */
static void
attach_memory(void)
{
	if (previous_startup)
		previous_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	for (int i = 0; i < nparts; i++)
	{
		Size		bytes = parts[i]->bytes();
		bool		found;
		void	   *memory;

		if (bytes == 0)
			continue;
		memory = ShmemInitStruct(parts[i]->name, bytes, &found);
		parts[i]->attach(memory, found);
	}
	LWLockRelease(AddinShmemInitLock);
}

/* See shared_memory.h. */
void
hgj_shared_memory_add(const HgjSharedPart *part)
{
	if (nparts == 0)
	{
		previous_request = shmem_request_hook;
		shmem_request_hook = request_memory;
		previous_startup = shmem_startup_hook;
		shmem_startup_hook = attach_memory;
	}
	Assert(nparts < MOST_PARTS);
	parts[nparts++] = part;
}
