/*-------------------------------------------------------------------------
 *
 * prewarm.c
 *	  In the worker: kept columns go to the device before a query asks for them, so that the
 *	  first one after a start finds them there, too.
 *
 * 1. When the GPU process is new, or chunks have come or gone since, the worker goes through
 *	  the store: chunks that somebody has used first, then the others.  Of what a device can
 *	  use it asks the GPU process for copies, a few megabytes at a time, and holds the chunks
 *	  until that has read them.
 * 2. It asks while no session has a call made, so that a query has the bus to itself, but for
 *	  what is under way.
 * 3. Copies are made where there is room, and are the first to go when others need it.
 *	  Once there is none, the worker comes again when chunks have come or gone.
 *
 * Nothing is waited for but the answer, and that for no longer than the worker's other work
 * can.
 *
 * Memory: static, and the server's.  Locks: the store's, for a moment at each chunk.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <time.h>

#include "base/guc.h"
#include "kept/arrays.h"
#include "kept/store.h"
#include "server/prewarm.h"

/* Asked for at a time: enough for the bus, and little for a query that comes meanwhile. */
#define MOST_BYTES			((uint64) 16 * 1024 * 1024)
#define MOST_CHUNKS			(HGJ_PREWARM_ARRAYS / 2)

/* Milliseconds: for an answer at once; until memory may be ready; while others are at work. */
#define ANSWER_MS			50
#define NOT_READY_MS		20
#define OTHERS_MS			5

static struct
{
	uint64		generation;		/* of the GPU process that has been looked after, */
	uint64		changes;		/* and of the store */
	bool		passes;			/* step 1: the worker is going through it: */
	bool		used;			/* chunks that have been used, */
	int			next;			/* from this slot on */
	bool		asked;			/* for copies of what is held: */
	HgjHeldChunk held[MOST_CHUNKS];
	int			nheld;
	int			first;			/* slot of the first of them, or one before it */
} state;

/* ---- step 1 ------------------------------------------------------------- */

/* What a device may use of a chunk, as pipelines describe it. */
static void
add_arrays(const HgjHeldChunk *held, HgjPrewarm *prewarm, uint64 *bytes)
{
	const HgjChunkHead *head = held->head;
	HgjKeptArray arrays[2] = {
		hgj_chunk_numbers(head, head->decimals != 0), hgj_chunk_validity(head)
	};

	if (!head->by_value && head->decimals == 0 && head->ndistinct > HGJ_MOST_KEPT_CODES)
		return;
	for (int i = 0; i < lengthof(arrays); i++)
	{
		if (arrays[i].bytes == 0)
			continue;
		prewarm->arrays[prewarm->n++] = arrays[i];
		*bytes += arrays[i].bytes;
	}
}

/* The next chunks are held, and their arrays written down; false: there are none. */
static bool
hold_chunks(HgjPrewarm *prewarm)
{
	uint64		bytes = 0;

	prewarm->n = 0;
	state.first = state.next;
	while (state.nheld < MOST_CHUNKS && bytes < MOST_BYTES &&
		   hgj_store_hold_next(&state.next, state.used, &state.held[state.nheld]))
		add_arrays(&state.held[state.nheld++], prewarm, &bytes);
	return state.nheld > 0;
}

static void
release_chunks(void)
{
	hgj_store_lend(NULL);
	while (state.nheld > 0)
		hgj_store_release_read(&state.held[--state.nheld]);
}

/* Is there something to be done? */
static bool
begin_pass(const HgjServer *server)
{
	uint64		generation = hgj_server_generation(server);
	uint64		changes = hgj_store_changes();

	if (!state.passes && (state.generation != generation || state.changes != changes))
	{
		state.generation = generation;
		state.changes = changes;
		state.passes = state.used = true;
		state.next = 0;
	}
	return state.passes;
}

/* ---- the answer --------------------------------------------------------- */

/* For a moment; false: it has not come. */
static bool
wait_for_answer(HgjPrewarm *prewarm)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += ANSWER_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	return sem_timedwait(&prewarm->answered, &until) == 0;
}

/* How many milliseconds later to go on? */
static long
settle(const HgjPrewarm *prewarm)
{
	bool		all = prewarm->status == HGJ_OK && prewarm->done == prewarm->n;

	state.asked = false;
	release_chunks();
	if (prewarm->status != HGJ_OK)
		state.passes = false;	/* step 3 */
	else if (!all)
		state.next = state.first;
	return all ? 0 : NOT_READY_MS;
}

/* ---- for the worker ----------------------------------------------------- */

/* See prewarm.h. */
long
hgj_prewarm_step(HgjServer *server, void (*stop) (void), long most)
{
	HgjPrewarm *prewarm = &server->prewarm;
	uint32		sessions;
	uint32		working;

	if (state.asked)
		return wait_for_answer(prewarm) ? settle(prewarm) : 0;
	if (!server->prewarms || !hgj_device_column_prewarm || !begin_pass(server))
		return most;
	hgj_server_load(server, &sessions, &working);
	if (working > 0)
		return OTHERS_MS;		/* step 2 */
	if (!hold_chunks(prewarm))
	{
		state.passes = state.used;	/* all others are next, or nothing is */
		state.used = false;
		state.next = 0;
		return state.passes ? 0 : most;
	}
	if (prewarm->n == 0)
	{
		release_chunks();
		return 0;
	}
	hgj_store_lend(stop);
	state.asked = true;
	(void) sem_post(&prewarm->asked);
	return 0;
}

/* See prewarm.h. */
void
hgj_prewarm_forget(HgjServer *server)
{
	release_chunks();
	state.asked = state.passes = false;
	while (sem_trywait(&server->prewarm.asked) == 0 ||
		   sem_trywait(&server->prewarm.answered) == 0)
		continue;
}
