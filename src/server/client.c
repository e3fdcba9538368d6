/*-------------------------------------------------------------------------
 *
 * client.c
 *	  A session's way to the GPU process: its channel, and waiting for answers.
 *
 * 1. A session takes a channel with its first table or pipeline, and leaves it with the
 *	  last one, so that a query holds one while it has something on the GPU.  Nobody waits
 *	  for one: there are enough for all sessions, however many hold one and make no call,
 *	  and where calls that were given up (3) have taken all that were left, the query runs on
 *	  the CPU.  Nobody waits for what is destroyed, but the next call: the last one goes
 *	  with the channel, which its thread clears, and then frees.
 * 2. A call is a request in the channel and a semaphore.  Waiting ends by the answer, or
 *	  when the generation has changed: the GPU process has gone, and all that was made
 *	  in it.  Every few milliseconds the caller's poll is asked; if it wants no more, the
 *	  GPU process is told so, and its engine gives up as it would have in this process.
 * 3. A call that has not come back for long although it was cancelled, or that nobody can
 *	  cancel, is given up: the channel is left to the thread that makes the call, and
 *	  everything in it counts as lost, for this session only: the thread frees it when the
 *	  device has done what it was asked for.  So is a call in which the device has not answered
 *	  for the session's hashgraph_join.device_timeout, or for longer than
 *	  hashgraph_join.gpu_server_timeout, though it answers others.  That it answers nobody
 *	  is noticed by its engine (HgjWatch), which ends the process.  A session has one such
 *	  call at a time: until its end the session has no other channel.
 * 4. One call at a time may be on its way without anybody waiting (a push of rows):
 *	  the next call waits for it first, and its outcome is kept for the next call about
 *	  the same pipeline.
 * 5. A push of kept rows is answered before chunks that this process holds have all been
 *	  read: that is so when the next one of the pipeline is, or its end.  Whoever releases a
 *	  chunk before, or leaves the channel, has the GPU process say when.  A call is not given up
 *	  (3) meanwhile: what took the chunks' memory would be sent as theirs, and stay on the
 *	  device, a copy for everybody.  Where the device does not answer this session for longer
 *	  than hashgraph_join.gpu_server_timeout, the worker is asked to end the GPU process.
 * 6. Staging buffers are cut from the channel's memory, first fit; there are few.
 *
 * Nothing here raises an error: these are an engine's calls (engine.h).
 *
 * Memory: static, and the channel's.  An exiting backend leaves its channel.  Locks:
 * none; a channel is taken by an atomic exchange.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <errno.h>

#include "access/xact.h"
#include "base/guc.h"
#include "engine/checks.h"
#include "kept/store.h"
#include "miscadmin.h"
#include "server/client.h"
#include "server/clock.h"
#include "storage/ipc.h"

#define POLL_EVERY_MS		5
/* Milliseconds after which a call is given up that was cancelled. */
#define GIVE_UP_AFTER_MS	10000
/* Milliseconds behind gpu_server_timeout: whether the device is lost is said by then. */
#define BEHIND_PROCESS_MS	1000
/* Step 5: the limit where gpu_server_timeout is none. */
#define READING_LIMIT_MS	60000

/* Step 6. */
#define MOST_BLOCKS			32

typedef struct StagingBlock
{
	size_t		at;
	size_t		bytes;
} StagingBlock;

static struct
{
	HgjChannel *channel;
	uint64		generation;
	uint64		epoch;			/* counts the channels that it has had */
	int			used;			/* tables and pipelines in this one */
	HgjRemote  *pending;		/* step 4 */
	bool		is_pending;		/* ... though its owner may have gone */
	bool		is_reading;		/* step 5: chunks, for the pipeline of this number, */
	uint32		reader;
	bool		reads_on;		/* when what is pending has been answered, too */
	bool		leaves;			/* the last one has gone, and is there still */
	bool		at_exit;		/* leave_at_exit() is registered */
	HgjChannel *given_up;		/* the one with a call that was given up, or NULL: */
	uint64		given_up_taker;	/* its `takers` then */
	StagingBlock		blocks[MOST_BLOCKS];	/* ascending */
	int			nblocks;
} session;

/* ---- steps 1 and 3 ------------------------------------------------------ */

/* Nothing is expected of the channel any more. */
static void
forget_channel(void)
{
	session.channel = NULL;
	session.used = 0;
	session.pending = NULL;
	session.is_pending = false;
	session.is_reading = false;
	session.leaves = false;
	session.nblocks = 0;
}

static void wait_for_reader(bool cancel);

/* The GPU process is to start the channel's thread, or to free what nobody serves. */
static void
want_thread(const HgjChannel *channel)
{
	if (__atomic_load_n(&channel->thread_of, __ATOMIC_ACQUIRE) !=
		hgj_server_generation(hgj_server()))
		(void) sem_post(&hgj_server()->taken);
}

static void
leave_channel(void)
{
	HgjChannel *channel;

	wait_for_reader(true);
	channel = session.channel;
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
	leave_channel();
}

/* Step 3: the call that has been made is not waited for any longer. */
static HgjStatus
give_up(const char *why, HgjError *err)
{
	session.given_up = session.channel;
	session.given_up_taker = session.channel->takers;
	/* or it would be waited for */
	session.is_pending = false;
	leave_channel();
	return hgj_fail(err, HGJ_DEVICE_LOST, why);
}

/* Is it still on the GPU? */
static bool
given_up_call_runs(void)
{
	const HgjChannel *channel = session.given_up;

	if (channel &&
		(__atomic_load_n(&channel->state, __ATOMIC_ACQUIRE) != HGJ_CHANNEL_LEFT ||
		 channel->takers != session.given_up_taker))
		session.given_up = NULL;
	return session.given_up != NULL;
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
	session.channel = channel;
	session.generation = generation;
	session.epoch++;
	session.used = 0;
	session.nblocks = 0;
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

	if (session.channel && session.generation == generation)
		return HGJ_OK;
	leave_channel();			/* of an earlier generation, so nobody is in it */
	if (hgj_server_state(server) != HGJ_SERVER_READY)
		return hgj_fail(err, HGJ_NO_DEVICE, "the GPU process is not there");
	if (given_up_call_runs())
		return hgj_fail(err, HGJ_NO_DEVICE,
						"the GPU has not ended a call that this session has given up");
	if (!session.at_exit)
		before_shmem_exit(leave_at_exit, (Datum) 0);
	session.at_exit = true;
	return find_channel(server, generation) ? HGJ_OK :
		hgj_fail(err, HGJ_OUT_OF_MEMORY, "all channels of the GPU process are in use");
}

/* See client.h. */
char *
hgj_channel_scratch(void)
{
	return hgj_channel_area(hgj_server(), session.channel);
}

/* ---- steps 2 and 4 ------------------------------------------------------ */

/* See client.h. */
bool
hgj_channel_is_lost(const HgjRemote *remote)
{
	return session.channel == NULL || remote->epoch != session.epoch ||
		session.generation != hgj_server_generation(hgj_server());
}

/* Step 3: for how many milliseconds may the device leave a call unanswered?  0: for ever. */
static int64
most_quiet_ms(void)
{
	int64		limit = __atomic_load_n(&hgj_server()->timeout_ms, __ATOMIC_RELAXED);

	if (limit == 0 || (hgj_device_timeout > 0 && hgj_device_timeout < limit))
		return hgj_device_timeout;
	return limit + BEHIND_PROCESS_MS;
}

/* Step 5: chunks are being read, and the device has not answered for so long. */
static void
look_at_reading(int64 quiet_ms)
{
	int64		limit = __atomic_load_n(&hgj_server()->timeout_ms, __ATOMIC_RELAXED);

	if (quiet_ms >= (limit > 0 ? limit : READING_LIMIT_MS) + BEHIND_PROCESS_MS)
		__atomic_store_n(&hgj_server()->unsafe, session.generation, __ATOMIC_RELEASE);
}

/* Has the device left it unanswered for so long?  Or is there nobody to make it? */
static HgjStatus
look_at_call(int64 quiet_ms, HgjError *err)
{
	int64		most = most_quiet_ms();
	char		why[96];

	if (session.is_reading)
		look_at_reading(quiet_ms);
	else if (most > 0 && quiet_ms >= most)
	{
		snprintf(why, sizeof(why), "the device has not answered for " INT64_FORMAT " ms", most);
		return give_up(why, err);
	}
	if (__atomic_load_n(&session.channel->no_thread_of, __ATOMIC_ACQUIRE) == session.generation)
	{
		leave_channel();
		return hgj_fail(err, HGJ_DEVICE_LOST, "the GPU process could not start a thread");
	}
	return HGJ_OK;
}

/*
 * Wait for the answer to the request at hand.  may_cancel: it may be told to give up,
 * so that it is the answer that says HGJ_CANCELLED; if not, this does, and goes on
 * expecting the answer.
 */
static HgjStatus
wait_for_answer(const HgjRemote *remote, bool may_cancel, HgjError *err)
{
	HgjChannel *channel = session.channel;
	int			waited = 0;
	int64		quiet = 0;
	uint64		answers = __atomic_load_n(&channel->answers, __ATOMIC_RELAXED);
	bool		limited = __atomic_load_n(&channel->cancel, __ATOMIC_ACQUIRE) != 0 ||
		(may_cancel && remote->poll == NULL);

	for (;;)
	{
		struct timespec until = hgj_in_milliseconds(POLL_EVERY_MS);
		uint64		answers_now;

		if (sem_timedwait(&channel->answered, &until) == 0)
		{
			if (channel->answer_to == channel->number)
				return HGJ_OK;
			continue;			/* of somebody before us */
		}
		if (session.generation != hgj_server_generation(hgj_server()))
			return hgj_fail(err, HGJ_DEVICE_LOST, "the GPU process has ended");
		waited += errno == ETIMEDOUT ? POLL_EVERY_MS : 0;
		quiet += errno == ETIMEDOUT ? POLL_EVERY_MS : 0;
		answers_now = __atomic_load_n(&channel->answers, __ATOMIC_RELAXED);
		if (answers != answers_now)
			quiet = 0;
		answers = answers_now;
		if (!limited && remote->poll && remote->poll(remote->poll_arg) != 0)
		{
			if (!may_cancel)
				return hgj_fail(err, HGJ_CANCELLED, "cancelled");
			__atomic_store_n(&channel->cancel, 1, __ATOMIC_RELEASE);
			limited = true;
			waited = 0;
		}
		if (look_at_call(quiet, err) != HGJ_OK)
			return HGJ_DEVICE_LOST;
		if (limited && waited > GIVE_UP_AFTER_MS && !session.is_reading)
			return give_up("the GPU process does not answer", err);
	}
}

static void
send_request(const HgjRemote *remote, HgjCall call)
{
	HgjChannel *channel = session.channel;

	channel->generation = session.generation;
	channel->call = call;
	channel->object = remote->number;
	__atomic_store_n(&channel->cancel, 0, __ATOMIC_RELEASE);
	/* last: the thread may be woken for what somebody before us has posted */
	__atomic_store_n(&channel->number, channel->number + 1, __ATOMIC_RELEASE);
	(void) sem_post(&channel->asked);
}

/* Step 5: nothing is read any more. */
static void
has_read(void)
{
	session.is_reading = false;
	hgj_store_lend(NULL);
}

/* Step 4: the answer to what was posted. */
static HgjStatus
settle(const HgjRemote *remote, HgjError *err)
{
	HgjStatus	status;

	if (!session.is_pending)
		return HGJ_OK;
	status = wait_for_answer(remote, false, err);
	if (status == HGJ_CANCELLED)
		return status;
	if (status == HGJ_OK && session.pending && session.channel->status != HGJ_OK)
	{
		session.pending->failed = session.channel->status;
		session.pending->error = session.channel->error;
		if (session.channel->status == HGJ_CANCELLED)
			/* by us, and nobody makes it again */
			session.pending->failed = hgj_fail(&session.pending->error, HGJ_DEVICE_LOST,
											   "rows on their way were given up");
	}
	session.is_pending = false;
	session.pending = NULL;
	if (!session.reads_on)
		has_read();
	return status;
}

/* Step 5: what was posted is answered first, which may be given up. */
static void
wait_for_reader(bool cancel)
{
	HgjRemote	reader = {.number = session.reader};
	HgjError	err;

	if (session.channel == NULL || !session.is_reading)
		return;
	if (session.is_pending &&
		(cancel || session.pending == NULL ||
		 settle(session.pending, &err) == HGJ_CANCELLED))
	{
		__atomic_store_n(&session.channel->cancel, 1, __ATOMIC_RELEASE);
		(void) settle(&reader, &err);
	}
	if (session.channel == NULL || !session.is_reading)
		return;
	send_request(&reader, HGJ_CALL_PIPE_READ);
	(void) wait_for_answer(&reader, true, &err);
	has_read();
}

/* A chunk is about to be released.  Who aborts wants nothing of what is on its way. */
static void
before_release(void)
{
	wait_for_reader(proc_exit_inprogress || !IsTransactionState());
}

/*
 * See client.h: where the numbers and arrays of a call about `remote` go; NULL, and a
 * status in err, if it cannot be made, or is not to be made yet.
 */
HgjChannel *
hgj_channel_request(HgjRemote *remote, HgjError *err)
{
	HgjError	ignored;

	if (err == NULL)
		err = &ignored;
	if (hgj_channel_is_lost(remote))
	{
		hgj_fail(err, HGJ_DEVICE_LOST, "the GPU process has ended");
		return NULL;
	}
	if (settle(remote, err) != HGJ_OK)
		return NULL;
	if (remote->failed != HGJ_OK)
	{
		*err = remote->error;
		return NULL;
	}
	return session.channel;
}

/* See client.h. */
HgjStatus
hgj_channel_call(HgjRemote *remote, HgjCall call, HgjError *err)
{
	HgjStatus	status;

	send_request(remote, call);
	status = wait_for_answer(remote, true, err);
	if (status != HGJ_OK)
		return status;
	if (session.channel->status != HGJ_OK && err)
		*err = session.channel->error;
	return session.channel->status;
}

/* See client.h. */
HgjStatus
hgj_channel_ask(HgjRemote *remote, HgjCall call, uint64 a, uint64 b,
				HgjChannel **channel, HgjError *err)
{
	HgjChannel *asked = hgj_channel_request(remote, err);

	if (asked == NULL)
		return err->status;
	asked->arg[0] = a;
	asked->arg[1] = b;
	if (channel)
		*channel = asked;
	return hgj_channel_call(remote, call, err);
}

/* See client.h. */
void
hgj_channel_fetch(HgjRemote remote, HgjCall call, void *to, size_t bytes)
{
	HgjError	err;

	memset(to, 0, bytes);
	remote.poll = NULL;			/* it is answered at once, or never */
	if (hgj_channel_ask(&remote, call, 0, 0, NULL, &err) == HGJ_OK)
		memcpy(to, hgj_channel_scratch(), bytes);
}

/* See client.h. */
void
hgj_channel_post(HgjRemote *remote, HgjCall call)
{
	send_request(remote, call);
	session.pending = remote;
	session.is_pending = true;
}

/* See client.h. */
void
hgj_channel_post_reader(HgjRemote *remote, HgjCall call, bool reads_on)
{
	if (session.is_reading && session.reader != remote->number)
		wait_for_reader(false);
	if (hgj_channel_is_lost(remote))
		return;					/* the next call says so */
	session.is_reading = true;
	session.reader = remote->number;
	session.reads_on = reads_on;
	hgj_store_lend(before_release);
	hgj_channel_post(remote, call);
}

/* See client.h. */
void
hgj_channel_has_read(const HgjRemote *remote)
{
	if (session.is_reading && session.reader == remote->number)
		has_read();
}

/* See client.h. */
HgjStatus
hgj_channel_settle(HgjRemote *remote, HgjError *err)
{
	if (hgj_channel_request(remote, err))
		return HGJ_OK;
	if (remote->failed == HGJ_UNSUPPORTED)
		remote->failed = HGJ_OK;	/* nothing has happened */
	return err->status;
}

/* See client.h. */
void
hgj_channel_destroy(HgjRemote *remote, bool is_used)
{
	HgjError	err;

	if (hgj_channel_is_lost(remote))
		return;
	remote->poll = NULL;		/* this call has to be made */
	remote->failed = HGJ_OK;
	if (session.pending == remote)
	{
		/* nobody wants what is on its way */
		__atomic_store_n(&session.channel->cancel, 1, __ATOMIC_RELEASE);
		session.pending = NULL;
	}
	if (is_used && session.used == 1)
		session.leaves = true;	/* it goes with the channel */
	else if (hgj_channel_request(remote, &err))
	{
		hgj_channel_post(remote, HGJ_CALL_DESTROY);
		session.reads_on = session.is_reading && session.reader != remote->number;
		session.pending = NULL;	/* nobody is left to be told */
	}
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
	remote->epoch = session.epoch;
	session.used++;
	return remote;
}

/* See client.h. */
void
hgj_channel_end_use(const HgjRemote *remote)
{
	if (session.channel == NULL || remote->epoch != session.epoch || --session.used > 0)
		return;
	if (session.is_pending || session.leaves ||
		session.generation != hgj_server_generation(hgj_server()))
	{
		leave_channel();
		return;
	}
	hgj_channel_is_free(session.channel);
	forget_channel();
}

/* See client.h. */
uint32
hgj_channel_uses(void)
{
	return (uint32) session.used;
}

/* See client.h. */
void
hgj_channel_close(void)
{
	if (session.used == 0)
		leave_channel();
}

/* ---- step 6 ------------------------------------------------------------- */

/* The end of block i, or of the scratch in front of the first one. */
static size_t
end_of(int i)
{
	return i < 0 ? HGJ_SCRATCH_BYTES : session.blocks[i].at + session.blocks[i].bytes;
}

static size_t
begin_of(int i)
{
	return i == session.nblocks ? hgj_channel_bytes(hgj_server(), session.channel) :
		session.blocks[i].at;
}

/* See client.h. */
size_t
hgj_channel_largest(void)
{
	size_t		largest = 0;

	for (int i = 0; i <= session.nblocks; i++)
		largest = Max(largest, begin_of(i) - end_of(i - 1));
	return session.nblocks == MOST_BLOCKS ? 0 : largest;
}

/* See client.h. */
size_t
hgj_channel_alloc(size_t bytes)
{
	bytes = (bytes + 63) / 64 * 64;
	for (int i = 0; i <= session.nblocks && session.nblocks < MOST_BLOCKS; i++)
	{
		size_t		at = end_of(i - 1);

		if (begin_of(i) - at < bytes)
			continue;
		memmove(&session.blocks[i + 1], &session.blocks[i],
				(session.nblocks - i) * sizeof(StagingBlock));
		session.blocks[i] = (StagingBlock) {
			.at = at,.bytes = bytes
		};
		session.nblocks++;
		return at;
	}
	return 0;
}

/* See client.h. */
void
hgj_channel_free(const HgjRemote *remote, size_t at)
{
	if (remote->epoch != session.epoch)
		return;
	for (int i = 0; i < session.nblocks; i++)
	{
		if (session.blocks[i].at != at)
			continue;
		session.nblocks--;
		memmove(&session.blocks[i], &session.blocks[i + 1],
				(session.nblocks - i) * sizeof(StagingBlock));
		return;
	}
}
