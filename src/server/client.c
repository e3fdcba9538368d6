/*-------------------------------------------------------------------------
 *
 * client.c
 *	  A session's way to the GPU process: its channel, and what it has there.
 *
 * 1. A session takes a channel with its first table or pipeline, and leaves it with the
 *	  last one, so that a query holds one while it has something on the GPU.  Nobody waits
 *	  for one: there are enough for all sessions, however many hold one and make no call,
 *	  and where letters that were given up (letter.c) have taken all that were left, the query
 *	  runs on the CPU.  A session has one such letter at a time: until its end the session has no
 *	  other channel.  The last object to be destroyed goes with the channel, which its thread
 *	  clears, and then frees.
 * 2. Objects have the lowest numbers that are free.  That of one which is destroyed is free at once:
 *	  the GPU process makes the calls of a session in their order.
 * 3. Staging buffers are cut from the channel's memory, first fit; there are few.
 *
 * Nothing here raises an error: these are an engine's calls (engine.h).
 *
 * Memory: static, and the channel's.  An exiting backend leaves its channel.  Locks:
 * none; a channel is taken by an atomic exchange.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "engine/checks.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "server/clock.h"
#include "server/session.h"
#include "storage/ipc.h"

/* Step 3. */
#define MOST_BLOCKS			32

typedef struct StagingBlock
{
	size_t		at;
	size_t		bytes;
} StagingBlock;

HgjClientSession hgj_session;

static struct
{
	int			used;			/* tables and pipelines in the channel */
	bool		leaves;			/* the last one has gone, and is there still */
	bool		at_exit;		/* leave_at_exit() is registered */
	HgjChannel *given_up;		/* the one with a letter that was given up, or NULL: */
	uint64		given_up_taker; /* its `takers` then */
	uint64		numbers[HGJ_MOST_OBJECTS / 64]; /* step 2: bits, of those that are taken */
	StagingBlock blocks[MOST_BLOCKS];	/* ascending */
	int			nblocks;
} here;

/* ---- step 1 ------------------------------------------------------------- */

/* Nothing is expected of the channel any more. */
static void
forget_channel(void)
{
	hgj_session.channel = NULL;
	hgj_letter_forget();
	here.used = 0;
	here.leaves = false;
	here.nblocks = 0;
	memset(here.numbers, 0, sizeof(here.numbers));
}

/* The GPU process is to start the channel's thread, or to free what nobody serves. */
static void
want_thread(const HgjChannel *channel)
{
	if (__atomic_load_n(&channel->thread_of, __ATOMIC_ACQUIRE) !=
		hgj_server_generation(hgj_server()))
		(void) sem_post(&hgj_server()->taken);
}

/* See session.h. */
void
hgj_channel_leave(void)
{
	HgjChannel *channel;

	hgj_letter_end_reading(true);
	channel = hgj_session.channel;
	if (channel == NULL)
		return;
	channel->left_at = hgj_monotonic_seconds();
	__atomic_store_n(&channel->state, HGJ_CHANNEL_LEFT, __ATOMIC_RELEASE);
	(void) sem_post(&channel->asked);
	want_thread(channel);
	forget_channel();
}

static void
leave_at_exit(int code, Datum arg)
{
	hgj_channel_leave();
}

/* See session.h. */
HgjStatus
hgj_channel_give_up(const char *why, HgjError *err)
{
	here.given_up = hgj_session.channel;
	here.given_up_taker = hgj_session.channel->takers;
	/* or it would be waited for */
	hgj_letter_forget();
	hgj_channel_leave();
	return hgj_fail(err, HGJ_DEVICE_LOST, why);
}

/* Is it still on the GPU? */
static bool
given_up_letter_runs(void)
{
	const HgjChannel *channel = here.given_up;

	if (channel &&
		(__atomic_load_n(&channel->state, __ATOMIC_ACQUIRE) != HGJ_CHANNEL_LEFT ||
		 channel->takers != here.given_up_taker))
		here.given_up = NULL;
	return here.given_up != NULL;
}

/* The i-th channel becomes the session's; false: it is not free. */
static bool
take(HgjServer *server, uint32 i, uint64 generation)
{
	HgjChannel *channel = &server->channels[i];
	uint32		expected = HGJ_CHANNEL_FREE;

	if (!__atomic_compare_exchange_n(&channel->state, &expected, HGJ_CHANNEL_TAKEN, false,
									 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	channel->takers++;
	__atomic_store_n(&channel->no_thread_of, 0, __ATOMIC_RELEASE);
	while (sem_trywait(&channel->answered) == 0)
		continue;
	want_thread(channel);
	hgj_session.channel = channel;
	hgj_session.generation = generation;
	hgj_session.epoch++;
	here.used = 0;
	here.nblocks = 0;
	return true;
}

/* A free channel becomes the session's, one of the first if it can; false: there is none. */
static bool
find_channel(HgjServer *server, uint64 generation)
{
	uint32		nback = server->nchannels - HGJ_FRONT_CHANNELS;

	for (uint32 i = 0; i < HGJ_FRONT_CHANNELS; i++)
		if (take(server, ((uint32) MyProcPid + i) % HGJ_FRONT_CHANNELS, generation))
			return true;
	for (uint32 i = 0; i < nback; i++)
		if (take(server, HGJ_FRONT_CHANNELS + ((uint32) MyProcPid + i) % nback, generation))
			return true;
	return false;
}

/* A channel for this session, if it has none. */
static HgjStatus
take_channel(HgjError *err)
{
	HgjServer  *server = hgj_server();
	uint64		generation = hgj_server_generation(server);

	if (hgj_session.channel && hgj_session.generation == generation)
		return HGJ_OK;
	hgj_channel_leave();			/* of an earlier generation, so nobody is in it */
	if (hgj_server_state(server) != HGJ_SERVER_READY)
		return hgj_fail(err, HGJ_NO_DEVICE, "the GPU process is not there");
	if (given_up_letter_runs())
		return hgj_fail(err, HGJ_NO_DEVICE,
						"the GPU has not ended a call that this session has given up");
	if (!here.at_exit)
		before_shmem_exit(leave_at_exit, (Datum) 0);
	here.at_exit = true;
	return find_channel(server, generation) ? HGJ_OK :
		hgj_fail(err, HGJ_OUT_OF_MEMORY, "all channels of the GPU process are in use");
}

/* See client.h. */
char *
hgj_channel_scratch(void)
{
	return hgj_channel_area(hgj_server(), hgj_session.channel);
}

/* See client.h. */
bool
hgj_channel_is_lost(const HgjRemote *remote)
{
	return hgj_session.channel == NULL || remote->epoch != hgj_session.epoch ||
		hgj_session.generation != hgj_server_generation(hgj_server());
}

/* ---- step 2 ------------------------------------------------------------- */

/* See client.h. */
bool
hgj_channel_number(HgjRemote *remote, HgjError *err)
{
	for (uint32 i = 0; i < HGJ_MOST_OBJECTS / 64; i++)
		if (here.numbers[i] != PG_UINT64_MAX)
		{
			uint32		bit = pg_rightmost_one_pos64(~here.numbers[i]);

			here.numbers[i] |= UINT64CONST(1) << bit;
			remote->number = i * 64 + bit;
			return true;
		}
	(void) hgj_fail(err, HGJ_OUT_OF_MEMORY, "the session has too much in the GPU process");
	return false;
}

/* See client.h. */
void
hgj_channel_free_number(const HgjRemote *remote)
{
	if (hgj_session.channel && remote->epoch == hgj_session.epoch)
		here.numbers[remote->number / 64] &= ~(UINT64CONST(1) << (remote->number % 64));
}

/* See client.h. */
void
hgj_channel_destroy(HgjRemote *remote, bool is_used)
{
	hgj_letter_disown(remote);
	if (hgj_channel_is_lost(remote))
		return;
	if (is_used && here.used == 1)
		here.leaves = true;		/* it goes with the channel */
	else
		hgj_letter_destroy(remote);
}

/* See client.h. */
void *
hgj_channel_begin_use(size_t bytes, int (*poll) (void *poll_arg), void *poll_arg,
					  HgjError *err)
{
	HgjRemote  *remote;

	if (take_channel(err) != HGJ_OK)
		return NULL;
	remote = calloc(1, bytes);
	if (remote == NULL)
	{
		(void) hgj_fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
		return NULL;
	}
	remote->poll = poll;
	remote->poll_arg = poll_arg;
	remote->epoch = hgj_session.epoch;
	if (!hgj_channel_number(remote, err))
	{
		free(remote);
		return NULL;
	}
	here.used++;
	return remote;
}

/* See client.h. */
void
hgj_channel_end_use(const HgjRemote *remote)
{
	hgj_channel_free_number(remote);
	if (hgj_session.channel == NULL || remote->epoch != hgj_session.epoch || --here.used > 0)
		return;
	if (!hgj_letter_is_empty() || here.leaves ||
		hgj_session.generation != hgj_server_generation(hgj_server()))
	{
		hgj_channel_leave();
		return;
	}
	hgj_channel_is_free(hgj_session.channel);
	forget_channel();
}

/* See client.h. */
uint32
hgj_channel_uses(void)
{
	return (uint32) here.used;
}

/* See client.h. */
void
hgj_channel_close(void)
{
	if (here.used == 0)
		hgj_channel_leave();
}

/* ---- step 3 ------------------------------------------------------------- */

/* The end of block i, or of the letter in front of the first one. */
static size_t
end_of(int i)
{
	return i < 0 ? HGJ_STAGING_AT : here.blocks[i].at + here.blocks[i].bytes;
}

static size_t
begin_of(int i)
{
	return i == here.nblocks ? hgj_channel_bytes(hgj_server(), hgj_session.channel) :
		here.blocks[i].at;
}

/* See client.h. */
size_t
hgj_channel_largest(void)
{
	size_t		largest = 0;

	for (int i = 0; i <= here.nblocks; i++)
		largest = Max(largest, begin_of(i) - end_of(i - 1));
	return here.nblocks == MOST_BLOCKS ? 0 : largest;
}

/* See client.h. */
size_t
hgj_channel_alloc(size_t bytes)
{
	bytes = (bytes + 63) / 64 * 64;
	for (int i = 0; i <= here.nblocks && here.nblocks < MOST_BLOCKS; i++)
	{
		size_t		at = end_of(i - 1);

		if (begin_of(i) - at < bytes)
			continue;
		memmove(&here.blocks[i + 1], &here.blocks[i],
				(here.nblocks - i) * sizeof(StagingBlock));
		here.blocks[i] = (StagingBlock) {
			.at = at,.bytes = bytes
		};
		here.nblocks++;
		return at;
	}
	return 0;
}

/* See client.h. */
void
hgj_channel_free(const HgjRemote *remote, size_t at)
{
	if (remote->epoch != hgj_session.epoch)
		return;
	for (int i = 0; i < here.nblocks; i++)
	{
		if (here.blocks[i].at != at)
			continue;
		here.nblocks--;
		memmove(&here.blocks[i], &here.blocks[i + 1],
				(here.nblocks - i) * sizeof(StagingBlock));
		return;
	}
}
