/*-------------------------------------------------------------------------
 *
 * channels.c
 *	  The memory of the channels (channel.h): made by the postmaster, for all of its
 *	  children.
 *
 * 1. It is a mapping of its own, not a part of PostgreSQL's shared memory: the GPU
 *	  process keeps it, to write to, and gives up the rest (confine.c).  All processes have
 *	  inherited it at the same address, the GPU process included.  What nobody has touched
 *	  takes no memory.
 * 2. There is a channel for each backend that there can be, and some for calls that were
 *	  given up, so that nobody has to wait for one.
 * 3. After a crash there is new memory, as there is of PostgreSQL's: a GPU process that
 *	  hangs in a driver, and so does not end when it is killed, keeps its own.
 *
 * PostgreSQL's shared memory has a word of it, so that the postmaster says when to make it.
 *
 * Memory: as said, for the postmaster's life, or until a crash.  Locks: none.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <sys/mman.h>

#include "base/guc.h"
#include "base/shared_memory.h"
#include "miscadmin.h"
#include "server/channels.h"
#include "server/worker.h"

#define SHARED_NAME			"hashgraph_join gpu server"

static HgjServer *server = NULL;
static bool is_needed = false;	/* the server is not to start without channels */

/* Step 2. */
static uint32
channels_wanted(void)
{
	return (uint32) MaxBackends + HGJ_FRONT_CHANNELS;
}

static Size
front_bytes(void)
{
	Size		bytes = (Size) hgj_gpu_staging_memory * 1024 / HGJ_FRONT_CHANNELS;

	return TYPEALIGN_DOWN(HGJ_PAGE_BYTES, Max(bytes, HGJ_STAGING_AT + 3 * (Size) HGJ_SCRATCH_BYTES));
}

static Size
word_bytes(void)
{
	return sizeof(uint64);
}

static void
make_semaphore(sem_t *semaphore)
{
	if (sem_init(semaphore, 1, 0) != 0)
		elog(FATAL, "could not make a semaphore: %m");
}

/* Step 1: zeroed, as it comes from the kernel. */
static void
make_channels(void)
{
	uint32		n = channels_wanted();
	Size		bytes = add_size(hgj_areas_at(n), hgj_areas_before(front_bytes(), n));
	void	   *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
							  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
	{
		ereport(is_needed ? FATAL : LOG,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("could not map shared memory for the GPU process, or the threads, of hashgraph_join: %m"),
				 errdetail("%zu bytes were asked for.", bytes),
				 errhint("Reduce hashgraph_join.gpu_staging_memory or max_connections, or set hashgraph_join.gpu_server to off and hashgraph_join.threads to 0.")));
		server = NULL;
		return;
	}
	server = memory;
	server->bytes = bytes;
	server->nchannels = n;
	server->front_bytes = front_bytes();
	server->timeout_ms = (uint32) hgj_gpu_server_timeout;
	server->nice = hgj_threads_nice;
	server->state = HGJ_SERVER_NO_WORKER;
	make_semaphore(&server->taken);
	make_semaphore(&server->prewarm.asked);
	make_semaphore(&server->prewarm.answered);
	for (uint32 i = 0; i < n; i++)
	{
		make_semaphore(&server->channels[i].asked);
		make_semaphore(&server->channels[i].answered);
	}
}

static void
attach_word(void *word, bool found)
{
	if (found)
		return;
	/* step 3 */
	if (server && munmap(server, server->bytes) != 0)
		elog(LOG, "could not unmap the memory of the GPU process's channels: %m");
	make_channels();
}

/* See channels.h. */
void
hgj_channels_share(bool needed)
{
	static const HgjSharedPart part = {SHARED_NAME, word_bytes, false, attach_word};

	is_needed = needed;
	hgj_shared_memory_add(&part);
}

/* See worker.h. */
HgjServer *
hgj_server(void)
{
	return server;
}
