/*-------------------------------------------------------------------------
 *
 * letter.c
 *	  A session's letters to the GPU process (channel.h): writing calls, and waiting for answers.
 *
 * 1. A call is added to the letter in the channel's memory.  It is sent with one of which the
 *	  session needs the answer, when there is no room for another, or at the end of a query; so a
 *	  call that creates, fills or destroys takes no message of its own.  What it comes to is known
 *	  when the letter has been answered; a failure is kept with its object for the next call.
 * 2. Waiting ends by the answer, or when the generation has changed: the GPU process has gone, and
 *	  all that was made in it.  Every few milliseconds the caller's poll is asked; if it wants no
 *	  more, the GPU process is told so, and its engine gives up as it would have in this process.
 *	  Calls that have not been made then stay in the letter, but for the one that was waited for:
 *	  its caller makes it again.
 * 3. A letter that has not been answered for long although it was cancelled, or that nobody can
 *	  cancel, is given up: the channel is left to the thread that makes its calls, and
 *	  everything in it counts as lost, for this session only: the thread frees it when the
 *	  device has done what it was asked for.  So is one in which the device has not answered
 *	  for the session's hashgraph_join.device_timeout, or for longer than
 *	  hashgraph_join.gpu_server_timeout, though it answers others.  That it answers nobody
 *	  is noticed by its engine (HgjWatch), which ends the process.
 * 4. A letter may be posted, without anybody waiting, for its last call's sake (a push of rows):
 *	  whoever writes the next one waits for it first, and its outcome is kept for the next call
 *	  about the same pipeline.
 * 5. A push of kept rows is answered before chunks that this process holds have all been
 *	  read: that is so when the next one of the pipeline is, or its end.  Whoever releases a
 *	  chunk before, or leaves the channel, has the GPU process say when.  A letter is not given up
 *	  (3) meanwhile: what took the chunks' memory would be sent as theirs, and stay on the
 *	  device, a copy for everybody.  Where the device does not answer this session for longer
 *	  than hashgraph_join.gpu_server_timeout, the worker is asked to end the GPU process.
 *
 * Nothing here raises an error: these are an engine's calls (engine.h).
 *
 * Memory: static, and the channel's.  Locks: none.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <errno.h>

#include "access/xact.h"
#include "base/guc.h"
#include "engine/checks.h"
#include "executor/executor.h"
#include "kept/store.h"
#include "miscadmin.h"
#include "server/clock.h"
#include "server/session.h"
#include "storage/ipc.h"

#define POLL_EVERY_MS		5
/* Milliseconds after which a letter is given up that was cancelled. */
#define GIVE_UP_AFTER_MS	10000
/* Milliseconds behind gpu_server_timeout: whether the device is lost is said by then. */
#define BEHIND_PROCESS_MS	1000
/* Step 5: the limit where gpu_server_timeout is 0. */
#define READING_LIMIT_MS	60000

/* The most calls of a letter. */
#define MOST_CALLS			64

/* A call that has been written. */
typedef struct Written
{
	HgjLetterCall *call;		/* call in the letter */
	HgjRemote  *owner;			/* object that is told of a failure, or NULL */
	HgjAnswered answered;		/* function that takes its answer, or NULL */
} Written;

static struct
{
	Written		calls[MOST_CALLS];	/* calls that are in it */
	int			n;				/* number of these */
	size_t		bytes;			/* bytes that they take */
	bool		sent;			/* the letter is on its way */
	bool		posted;			/* whether nobody waits for the last call (step 4) */
} letter;

static struct
{
	bool		now;			/* memory of this process is read (step 5) */
	bool		goes_on;		/* it is so when the letter has been answered, too */
	uint32		reader;			/* number of the pipeline that does */
} reading;

/* See session.h. */
void
hgj_letter_forget(void)
{
	letter.n = 0;
	letter.bytes = 0;
	letter.sent = letter.posted = false;
	reading.now = false;
}

/* See session.h. */
bool
hgj_letter_is_empty(void)
{
	return letter.n == 0;
}

/* ---- steps 2 and 3 ------------------------------------------------------ */

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
		__atomic_store_n(&hgj_server()->unsafe, hgj_session.generation, __ATOMIC_RELEASE);
}

/* Has the device left it unanswered for so long?  Or is there nobody to make it? */
static HgjStatus
look_at_letter(int64 quiet_ms, HgjError *err)
{
	int64		most = most_quiet_ms();
	char		why[96];

	if (reading.now)
		look_at_reading(quiet_ms);
	else if (most > 0 && quiet_ms >= most)
	{
		snprintf(why, sizeof(why), "the device has not answered for " INT64_FORMAT " ms", most);
		return hgj_channel_give_up(why, err);
	}
	if (__atomic_load_n(&hgj_session.channel->no_thread_of, __ATOMIC_ACQUIRE) ==
		hgj_session.generation)
	{
		/* or it would be waited for, what it was to read, too */
		hgj_letter_forget();
		hgj_channel_leave();
		return hgj_fail(err, HGJ_DEVICE_LOST, "the GPU process could not start a thread");
	}
	return HGJ_OK;
}

/*
 * Wait for the answer to the letter that was sent.  may_cancel: it may be told to give up,
 * so that it is the answer that says so; if not, this says HGJ_CANCELLED, and goes on
 * expecting the answer.
 */
static HgjStatus
wait_for_answer(const HgjRemote *remote, bool may_cancel, HgjError *err)
{
	HgjChannel *channel = hgj_session.channel;
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
		if (hgj_session.generation != hgj_server_generation(hgj_server()))
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
		if (look_at_letter(quiet, err) != HGJ_OK)
			return HGJ_DEVICE_LOST;
		if (limited && waited > GIVE_UP_AFTER_MS && !reading.now)
			return hgj_channel_give_up("the GPU process does not answer", err);
	}
}

/* ---- steps 1 and 4 ------------------------------------------------------ */

static void
send_letter(void)
{
	HgjChannel *channel = hgj_session.channel;

	channel->generation = hgj_session.generation;
	channel->ncalls = (uint32) letter.n;
	__atomic_store_n(&channel->cancel, 0, __ATOMIC_RELEASE);
	letter.sent = true;
	/* last: the thread may be woken for what somebody before us has posted */
	__atomic_store_n(&channel->number, channel->number + 1, __ATOMIC_RELEASE);
	(void) sem_post(&channel->asked);
}

static char *
letter_area(void)
{
	return hgj_channel_area(hgj_server(), hgj_session.channel) + HGJ_LETTER_AT;
}

/* Calls that nobody wants leave the letter, and so do those before number `first`, which were made. */
static void
keep_calls_from(int first)
{
	int			n = 0;
	size_t		bytes = 0;

	for (int i = first; i < letter.n; i++)
	{
		Written    *written = &letter.calls[i];
		size_t		size = hgj_call_size(written->call->nbytes);

		if (written->owner == NULL && written->call->call != HGJ_CALL_DESTROY)
			continue;
		memmove(letter_area() + bytes, written->call, size);
		written->call = (HgjLetterCall *) (letter_area() + bytes);
		letter.calls[n++] = *written;
		bytes += size;
	}
	letter.n = n;
	letter.bytes = bytes;
}

/*
 * The letter has been answered: owners are told.  HGJ_OK: all calls have been made, or have failed;
 * if not, it was cancelled, or the device was lost.
 */
static HgjStatus
open_answer(HgjError *err)
{
	int			made = (int) Min(hgj_session.channel->made, (uint32) letter.n);
	HgjStatus	outcome = HGJ_OK;
	bool		posted = letter.posted;

	if (made > 0 && letter.calls[made - 1].call->status == HGJ_DEVICE_LOST)
		outcome = hgj_fail(err, HGJ_DEVICE_LOST, letter.calls[made - 1].call->error.message);
	else if (made < letter.n)
		outcome = hgj_fail(err, HGJ_CANCELLED, "cancelled");
	letter.sent = letter.posted = false;
	for (int i = 0; i < made; i++)
	{
		const Written *written = &letter.calls[i];
		HgjRemote  *owner = written->owner;

		if (owner && written->call->status == HGJ_OK && written->answered)
			written->answered(owner, written->call);
		else if (owner && written->call->status != HGJ_OK && owner->failed == HGJ_OK)
		{
			owner->failed = written->call->status;
			owner->error = written->call->error;
			owner->refused = posted && i == letter.n - 1;
		}
	}
	keep_calls_from(made);
	return outcome;
}

/* Step 5: nothing is read any more. */
static void
has_read(void)
{
	reading.now = false;
	hgj_store_lend(NULL);
}

/* Step 4: the answer to a letter that nobody has waited for. */
static HgjStatus
settle(const HgjRemote *remote, HgjError *err)
{
	HgjStatus	status;

	if (!letter.sent)
		return HGJ_OK;
	status = wait_for_answer(remote, false, err);
	if (status == HGJ_CANCELLED)
		return status;
	if (status == HGJ_OK)
	{
		Written    *last = &letter.calls[letter.n - 1];

		if (letter.posted && last->owner && hgj_session.channel->made < (uint32) letter.n)
		{
			/* by us, and nobody makes it again */
			last->owner->failed = hgj_fail(&last->owner->error, HGJ_DEVICE_LOST,
										   "rows on their way were given up");
			last->owner = NULL;
		}
		(void) open_answer(err);
	}
	letter.sent = letter.posted = false;
	if (!reading.goes_on)
		has_read();
	return status;
}

/* Send what has been written, and wait for all of it. */
static HgjStatus
flush(HgjRemote *remote, HgjError *err)
{
	HgjStatus	status;

	if (letter.n == 0)
		return HGJ_OK;
	send_letter();
	status = wait_for_answer(remote, true, err);
	if (status != HGJ_OK)
		return status;
	status = open_answer(err);
	if (status != HGJ_OK)
		return status;
	if (remote->failed != HGJ_OK)
		*err = remote->error;
	return remote->failed;
}

/* May a call about it be written?  What is on its way has been answered then. */
static HgjStatus
look_at_remote(HgjRemote *remote, HgjError *err)
{
	HgjStatus	status;

	if (hgj_channel_is_lost(remote))
		return hgj_fail(err, HGJ_DEVICE_LOST, "the GPU process has ended");
	status = settle(remote, err);
	if (status != HGJ_OK)
		return status;
	if (remote->failed != HGJ_OK)
		*err = remote->error;
	return remote->failed;
}

/* See client.h. */
HgjLetterCall *
hgj_letter_call(HgjRemote *remote, HgjCall number, size_t nbytes, HgjError *err)
{
	HgjError	ignored;
	HgjLetterCall *call;

	if (err == NULL)
		err = &ignored;
	if (look_at_remote(remote, err) != HGJ_OK)
		return NULL;
	if ((letter.n == MOST_CALLS || letter.bytes + hgj_call_size(nbytes) > HGJ_LETTER_BYTES) &&
		flush(remote, err) != HGJ_OK)
		return NULL;
	call = (HgjLetterCall *) (letter_area() + letter.bytes);
	memset(call, 0, sizeof(*call));
	call->call = number;
	call->object = remote->number;
	call->nbytes = (nbytes + 7) / 8 * 8;
	letter.calls[letter.n++] = (Written) {call, remote, NULL};
	letter.bytes += hgj_call_size(nbytes);
	return call;
}

/* See client.h. */
void
hgj_letter_tell(HgjAnswered answered)
{
	letter.calls[letter.n - 1].answered = answered;
}

/* See client.h. */
HgjStatus
hgj_letter_send(HgjRemote *remote, HgjError *err)
{
	Written    *last = &letter.calls[letter.n - 1];
	const HgjLetterCall *call = last->call;
	HgjError	ignored;
	HgjStatus	status;

	if (err == NULL)
		err = &ignored;
	last->owner = NULL;			/* the caller is told */
	send_letter();
	status = wait_for_answer(remote, true, err);
	if (status == HGJ_OK)
		status = open_answer(err);
	if (status != HGJ_OK)
		return status;
	if (call->status != HGJ_OK)
		*err = call->error;
	return call->status;
}

/* See client.h. */
HgjStatus
hgj_letter_ask(HgjRemote *remote, HgjCall number, uint64 a, uint64 b,
			   const HgjLetterCall **answer, HgjError *err)
{
	HgjLetterCall *call = hgj_letter_call(remote, number, 0, err);

	if (call == NULL)
		return err->status;
	call->arg[0] = a;
	call->arg[1] = b;
	if (answer)
		*answer = call;
	return hgj_letter_send(remote, err);
}

/*
 * The answer to a call that is answered at once, or never, so that nobody is to cancel it; NULL:
 * there is none.  What was written before may take longer, and is waited for first.
 */
static const HgjLetterCall *
ask_at_once(HgjRemote remote, HgjCall number, uint64 arg)
{
	const HgjLetterCall *answer = NULL;
	HgjError	err;

	if (hgj_letter_flush(&remote, &err) != HGJ_OK)
		return NULL;
	remote.poll = NULL;
	return hgj_letter_ask(&remote, number, arg, 0, &answer, &err) == HGJ_OK ? answer : NULL;
}

/* See client.h. */
void
hgj_letter_fetch(HgjRemote remote, HgjCall number, void *to, size_t bytes)
{
	if (ask_at_once(remote, number, 0))
		memcpy(to, hgj_channel_scratch(), bytes);
	else
		memset(to, 0, bytes);
}

/* See client.h. */
uint64
hgj_letter_fetch_number(HgjRemote remote, HgjCall number, uint64 arg, uint64 otherwise)
{
	const HgjLetterCall *answer = ask_at_once(remote, number, arg);

	return answer ? answer->result[0] : otherwise;
}

/* See client.h. */
HgjStatus
hgj_letter_flush(HgjRemote *remote, HgjError *err)
{
	HgjStatus	status = look_at_remote(remote, err);

	return status == HGJ_OK ? flush(remote, err) : status;
}

/* See client.h. */
void
hgj_letter_post(void)
{
	letter.posted = true;
	send_letter();
}

/* See client.h. */
HgjStatus
hgj_letter_settle(HgjRemote *remote, HgjError *err)
{
	HgjStatus	status = look_at_remote(remote, err);

	if (remote->failed == HGJ_UNSUPPORTED && remote->refused)
		remote->failed = HGJ_OK;	/* nothing has happened */
	return status;
}

/* See session.h. */
void
hgj_letter_disown(const HgjRemote *remote)
{
	if (hgj_session.channel == NULL || remote->epoch != hgj_session.epoch)
		return;
	/* nobody wants what is on its way */
	if (letter.posted && letter.calls[letter.n - 1].owner == remote)
		__atomic_store_n(&hgj_session.channel->cancel, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < letter.n; i++)
		if (letter.calls[i].owner == remote)
			letter.calls[i].owner = NULL;
	if (!letter.sent)
		keep_calls_from(0);
}

/* What has been destroyed is not to wait for another query. */
static void
post_rest(void)
{
	if (hgj_session.channel == NULL || letter.sent || letter.n == 0 ||
		hgj_session.generation != hgj_server_generation(hgj_server()))
		return;
	reading.goes_on = reading.now;
	send_letter();
}

/* See client.h. */
void
hgj_letter_destroy(HgjRemote *remote)
{
	HgjError	err;

	remote->poll = NULL;		/* this call has to be made */
	remote->failed = HGJ_OK;
	if (hgj_letter_call(remote, HGJ_CALL_DESTROY, 0, &err))
		letter.calls[letter.n - 1].owner = NULL;
	/* what goes with a transaction that was aborted goes behind its callbacks */
	if (!IsTransactionState())
		post_rest();
}

/* ---- step 5 ------------------------------------------------------------- */

/* See session.h. */
void
hgj_letter_end_reading(bool cancel)
{
	HgjRemote	reader = {.number = reading.reader,.epoch = hgj_session.epoch};
	HgjError	err;

	if (hgj_session.channel == NULL || !reading.now)
		return;
	if (letter.sent)
	{
		HgjRemote  *owner = letter.posted ? letter.calls[letter.n - 1].owner : NULL;

		if (cancel || owner == NULL || settle(owner, &err) == HGJ_CANCELLED)
		{
			__atomic_store_n(&hgj_session.channel->cancel, 1, __ATOMIC_RELEASE);
			(void) settle(&reader, &err);
		}
	}
	if (hgj_session.channel == NULL || !reading.now)
		return;
	if (hgj_letter_call(&reader, HGJ_CALL_PIPE_READ, 0, &err))
		(void) hgj_letter_send(&reader, &err);
	has_read();
}

/* A chunk is about to be released.  Who aborts wants nothing of what is on its way. */
static void
before_release(void)
{
	hgj_letter_end_reading(proc_exit_inprogress || !IsTransactionState());
}

/* See client.h. */
void
hgj_letter_is_to_read(const HgjRemote *remote)
{
	if (reading.now && reading.reader != remote->number)
		hgj_letter_end_reading(false);
}

/* See client.h. */
void
hgj_letter_post_reader(const HgjRemote *remote, bool reads_on)
{
	reading.now = true;
	reading.reader = remote->number;
	reading.goes_on = reads_on;
	hgj_store_lend(before_release);
	hgj_letter_post();
}

/* See client.h. */
void
hgj_letter_has_read(const HgjRemote *remote)
{
	if (reading.now && reading.reader == remote->number)
		has_read();
}

/* ---- step 1: the end of a query ------------------------------------------ */

static ExecutorEnd_hook_type next_end_hook = NULL;

static void
end_query(QueryDesc *desc)
{
	if (next_end_hook)
		next_end_hook(desc);
	else
		standard_ExecutorEnd(desc);
	post_rest();
}

static void
end_transaction(XactEvent event, void *arg)
{
	post_rest();
}

static void
end_subtransaction(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		post_rest();
}

/* See client.h. */
void
hgj_install_letters(void)
{
	next_end_hook = ExecutorEnd_hook;
	ExecutorEnd_hook = end_query;
	RegisterXactCallback(end_transaction, NULL);
	RegisterSubXactCallback(end_subtransaction, NULL);
}
