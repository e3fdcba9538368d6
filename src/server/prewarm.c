/*-------------------------------------------------------------------------
 *
 * prewarm.c
 *	  In the worker: kept columns go to the device before a query asks for them, so that the
 *	  first one that a GPU process serves finds them there, too.
 *
 * 1. When the GPU process is new, or chunks have come or gone since, the worker goes through
 *	  the store: chunks that somebody has used first, then all, but none that it has asked
 *	  this process for already: what went from the device since made room for others.
 *	  Of what a device can use it asks the GPU process for copies, a few megabytes at a time,
 *	  and holds the chunks until that has read them.
 * 2. It asks while no session has a call made, so that a query has the bus to itself, but for
 *	  what is under way.
 * 3. Copies are made where there is room, and are the first to go when others need it.
 * 4. At the end, or once there is no room, it says which chunks there are, if some have gone,
 *	  and copies of what others there were go.  Where there was no room for all it begins once
 *	  more if that has made some, and otherwise a minute later.
 *
 * Nothing is waited for but the answer, and that for no longer than the worker's other work
 * can.
 *
 * Memory: static, and the server's; ids in TopMemoryContext while they are being said.
 * Locks: the store's, for a moment.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/guc.h"
#include "kept/arrays.h"
#include "kept/store.h"
#include "server/clock.h"
#include "server/prewarm.h"
#include "utils/memutils.h"

/* Asked for at a time: enough for the bus, and little for a query that comes meanwhile. */
#define MOST_BYTES			((uint64) 16 * 1024 * 1024)
#define MOST_CHUNKS			(HGJ_PREWARM_ARRAYS / 2)

/* Milliseconds: for an answer at once; until memory may be ready; while others are at work. */
#define ANSWER_MS			50
#define NOT_READY_MS		20
#define LEAST_OTHERS_MS		2
#define MOST_OTHERS_MS		100

/* How often it is asked again for memory that is not ready. */
#define MOST_TRIES			1500

/* Seconds until it is asked again for what there was no room for. */
#define MISSED_SECONDS		60

typedef enum PassPhase
{
	PASS_NONE,
	PASS_USED,					/* step 1 */
	PASS_ALL,
	PASS_SWEEP					/* step 4 */
} PassPhase;

static struct
{
	uint64		generation;		/* of the GPU process that has been looked after, */
	uint64		changes;		/* and of the store */
	uint64		asked_id;		/* step 1: of the newest chunk that was there then */

	PassPhase	phase;
	uint64		newest_id;		/* when this pass began */
	int			next;			/* slot to look at */
	int			tries;			/* in vain, since the last chunks were asked for */
	bool		again;			/* step 4: it is the second time */
	bool		missed;			/* there was no room for all, now or earlier, */
	bool		freed;			/* and there is some since */
	uint64		ended_at;		/* hgj_monotonic_seconds() of the last pass */
	uint64		dead;			/* chunks that had gone when ids were said last */
	uint64	   *ids;			/* of chunks: */
	uint32		nids;
	uint32		said;			/* of them, the first so many, */
	uint64		said_id;		/* so that all is known up to this one */
	uint64		last_id;		/* and will be in the end */

	bool		asked;			/* and not answered yet; the chunks are held: */
	uint64		asked_at;		/* hgj_monotonic_seconds() */
	HgjHeldChunk held[MOST_CHUNKS];
	int			nheld;
	int			first;			/* slot of the first of them, or one before it */
	long		pause;			/* step 2 */
} state;

/* ---- step 1 ------------------------------------------------------------- */

/* What a device may use of a chunk, as pipelines describe it; false: nothing. */
static bool
add_arrays(const HgjChunkHead *head, HgjPrewarm *prewarm)
{
	HgjKeptArray arrays[2] = {
		hgj_chunk_numbers(head, head->decimals != 0), hgj_chunk_validity(head)
	};

	if (arrays[0].bytes == 0 ||
		(!head->by_value && head->decimals == 0 && head->ndistinct > HGJ_MOST_KEPT_CODES))
		return false;
	for (int i = 0; i < lengthof(arrays); i++)
		if (arrays[i].bytes > 0)
			prewarm->arrays[prewarm->n++] = arrays[i];
	return true;
}

/* The next chunks are held, and their arrays written down; false: there are none. */
static bool
hold_chunks(HgjPrewarm *prewarm)
{
	HgjHeldChunk held;
	uint64		bytes = 0;

	prewarm->n = 0;
	state.first = state.next;
	while (state.nheld < MOST_CHUNKS && bytes < MOST_BYTES &&
		   hgj_store_hold_next(&state.next, state.asked_id, state.phase == PASS_USED, &held))
	{
		if (add_arrays(held.head, prewarm))
		{
			bytes += held.chunk->bytes;
			state.held[state.nheld++] = held;
		}
		else
			hgj_store_release_read(&held);
	}
	return state.nheld > 0;
}

static void
release_chunks(void)
{
	hgj_store_lend(NULL);
	while (state.nheld > 0)
		hgj_store_release_read(&state.held[--state.nheld]);
}

/* From the first slot on. */
static void
begin_round(void)
{
	state.phase = PASS_USED;
	state.next = state.tries = 0;
}

/* Is there something to be done? */
static bool
begin_pass(const HgjServer *server)
{
	uint64		generation = hgj_server_generation(server);
	uint64		changes = hgj_store_changes();
	bool		missed;

	if (state.phase != PASS_NONE)
		return true;
	missed = state.missed && hgj_monotonic_seconds() > state.ended_at + MISSED_SECONDS;
	if (state.generation == generation && state.changes == changes && !missed)
		return false;
	if (state.generation != generation || missed)
	{
		state.asked_id = state.dead = 0;
		state.missed = state.freed = false;
	}
	state.generation = generation;
	state.changes = changes;
	state.newest_id = hgj_store_last_id();
	state.again = false;
	begin_round();
	return true;
}

static void
forget_ids(void)
{
	if (state.ids)
		pfree(state.ids);
	state.ids = NULL;
}

static void
end_pass(void)
{
	forget_ids();
	state.asked_id = state.newest_id;
	state.ended_at = hgj_monotonic_seconds();
	state.phase = PASS_NONE;
}

/* ---- step 4 ------------------------------------------------------------- */

/* The pass has come to its end, or begins again. */
static void
end_round(void)
{
	if (!state.missed || !state.freed || state.again)
	{
		end_pass();
		return;
	}
	forget_ids();
	state.again = true;
	state.missed = state.freed = false;
	state.asked_id = 0;
	begin_round();
}

/* If chunks have gone since the last time. */
static void
begin_sweep(void)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	uint64		dead;

	state.ids = hgj_store_ids(&state.nids);
	MemoryContextSwitchTo(old);
	state.last_id = state.nids > 0 ? Max(state.ids[state.nids - 1], state.newest_id) :
		state.newest_id;
	dead = state.last_id - state.nids;
	state.phase = PASS_SWEEP;
	state.said = 0;
	state.said_id = 0;
	if (dead == state.dead)
		end_round();
	state.dead = dead;
}

/* The next ids are written down. */
static void
say_ids(HgjPrewarm *prewarm)
{
	prewarm->n = Min(state.nids - state.said, HGJ_PREWARM_IDS);
	if (prewarm->n > 0)
		memcpy(prewarm->live, state.ids + state.said, prewarm->n * sizeof(uint64));
	state.said += prewarm->n;
	prewarm->first = state.said_id + 1;
	prewarm->last = state.said < state.nids ? state.ids[state.said - 1] : state.last_id;
	state.said_id = prewarm->last;
}

static void
settle_sweep(const HgjPrewarm *prewarm)
{
	state.freed |= prewarm->gone > 0;
	if (state.said == state.nids)
		end_round();
}

/* ---- asking, and the answer ----------------------------------------------- */

/* How many milliseconds later to go on? */
static long
settle(const HgjPrewarm *prewarm)
{
	state.asked = false;
	if (state.phase == PASS_SWEEP)
	{
		settle_sweep(prewarm);
		return 0;
	}
	release_chunks();
	if (prewarm->status == HGJ_OK && prewarm->done == prewarm->n)
	{
		state.tries = 0;
		return 0;
	}
	if (prewarm->status == HGJ_OK && ++state.tries < MOST_TRIES)
	{
		state.next = state.first;
		return NOT_READY_MS;
	}
	ereport(DEBUG1,
			(errmsg_internal("no more columns go to the device ahead of queries: %s",
							 prewarm->status != HGJ_OK ? prewarm->error.message :
							 "their memory is not ready")));
	state.missed = true;
	begin_sweep();
	return 0;
}

/* Ask for what is next, or come to the end of a phase. */
static void
ask(HgjPrewarm *prewarm, void (*stop) (void))
{
	prewarm->sweeps = state.phase == PASS_SWEEP;
	if (prewarm->sweeps)
		say_ids(prewarm);
	else if (hold_chunks(prewarm))
		hgj_store_lend(stop);
	else if (state.phase == PASS_USED)
	{
		state.phase = PASS_ALL;
		state.next = 0;
		return;
	}
	else
	{
		begin_sweep();
		return;
	}
	state.asked = true;
	state.asked_at = hgj_monotonic_seconds();
	(void) sem_post(&prewarm->asked);
}

/* ---- for the worker ----------------------------------------------------- */

/* Step 2: is nobody at work?  Or how many milliseconds later to look again. */
static long
wait_for_others(const HgjServer *server)
{
	uint32		sessions;
	uint32		working;

	hgj_server_load(server, &sessions, &working);
	state.pause = working == 0 ? 0 :
		Min(Max(2 * state.pause, LEAST_OTHERS_MS), MOST_OTHERS_MS);
	return state.pause;
}

/* See prewarm.h. */
long
hgj_prewarm_step(HgjServer *server, void (*stop) (void), long most)
{
	HgjPrewarm *prewarm = &server->prewarm;
	long		pause = 0;

	if (state.asked)
	{
		struct timespec until = hgj_in_milliseconds(ANSWER_MS);

		if (sem_timedwait(&prewarm->answered, &until) != 0)
			return 0;
		pause = settle(prewarm);
	}
	else if (!server->prewarms || !hgj_device_column_prewarm || !begin_pass(server))
		return most;
	else if (wait_for_others(server) > 0)
		return state.pause;
	else
		ask(prewarm, stop);
	return state.phase == PASS_NONE ? most : pause;
}

/* See prewarm.h. */
bool
hgj_prewarm_hangs(HgjServer *server, uint64 quiet_since, uint64 seconds)
{
	int			answers = 0;

	(void) sem_getvalue(&server->prewarm.answered, &answers);
	return state.asked && answers == 0 &&
		hgj_monotonic_seconds() > Max(state.asked_at, quiet_since) + seconds;
}

/* See prewarm.h. */
void
hgj_prewarm_forget(HgjServer *server)
{
	release_chunks();
	end_pass();
	state.asked = false;
	while (sem_trywait(&server->prewarm.asked) == 0 ||
		   sem_trywait(&server->prewarm.answered) == 0)
		continue;
}
