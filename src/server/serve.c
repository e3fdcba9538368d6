/*-------------------------------------------------------------------------
 *
 * serve.c
 *	  In the GPU process: the calls of a session's letter, made for it.
 *
 * 1. What sessions create is kept under their numbers, in an array per channel: tables,
 *	  probes, pipelines (serve_pipeline.c).  A number that is not there any more, or not
 *	  of the kind that the call is about, is an error of the session's, and no more.
 * 2. The calls of a letter are made in their order, until the session wants no more.  One that
 *	  fails, and is not the last one, has not been waited for: its object answers all later
 *	  calls with that.  So does one that could not be created.
 * 3. Arrays come behind the calls, in pieces where they are longer; a probe's
 *	  batch is put together in memory of the probe's, because the engine looks at it
 *	  until all matches have been fetched.
 * 4. What a small table has been told is noted: pipelines that stand on it may fill a
 *	  table that stays for other queries (sides.h).
 * 5. An engine's long calls poll, and find here whether the session wants no more.  How long
 *	  a device may leave them unanswered is the process's affair, and its
 *	  administrator's (HgjWatch); a session that waits no longer leaves.  Each answer is
 *	  counted, for the channel that the thread serves, and for all.
 * 6. A device that is lost stays lost for its process, so that this one ends, when it has
 *	  answered; the worker starts another one.
 *
 * Memory: malloc'd, of the channel's thread, and given back with the object or when the
 * session leaves.  No PostgreSQL function is called.  Locks: none; a channel has one
 * thread, and the engine knows of several.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/serve.h"

/* Step 4: bytes of a table's record. */
#define MOST_OF_A_TABLE		(1024 * 1024)

/* See serve.h.  Step 5. */
int
hgj_served_is_cancelled(void *arg)
{
	HgjChannel *channel = arg;

	return __atomic_load_n(&channel->cancel, __ATOMIC_ACQUIRE) != 0 ||
		__atomic_load_n(&channel->state, __ATOMIC_ACQUIRE) == HGJ_CHANNEL_LEFT;
}

static HgjServer *watched = NULL;
static __thread HgjChannel *thread_channel = NULL;

/* Step 5: HgjWatch.answered */
static void
device_answered(void)
{
	if (thread_channel != NULL)
		(void) __atomic_add_fetch(&thread_channel->answers, 1, __ATOMIC_RELAXED);
	(void) __atomic_add_fetch(&watched->answers, 1, __ATOMIC_RELAXED);
}

/* Step 5, before there are threads. */
void
hgj_serve_watch(HgjServer *server, const HgjEngine *engine)
{
	static HgjWatch watch = {.answered = device_answered};

	watched = server;
	watch.limit_ms = &server->timeout_ms;
	if (engine->watch != NULL)
		engine->watch(&watch);
}

/* ---- step 1 ------------------------------------------------------------- */

/* The object of that number, of whichever kind, or NULL. */
static HgjServedObject *
object_of(const HgjServed *served, uint32_t number)
{
	return number < served->nobjects ? served->objects[number] : NULL;
}

/* See serve.h. */
HgjServedObject *
hgj_served_find(const HgjServed *served, uint32_t number, HgjServedKind kind)
{
	HgjServedObject *object = object_of(served, number);

	return object != NULL && object->kind == kind ? object : NULL;
}

/* See serve.h. */
HgjServedObject *
hgj_served_base(const HgjServed *served, uint32_t number, HgjServedKind kind, HgjError *err)
{
	HgjServedObject *object = hgj_served_find(served, number, kind);

	if (object == NULL)
		(void) hgj_fail(err, HGJ_DEVICE_LOST, "what it stands on has gone with the GPU process");
	else if (object->failed != HGJ_OK)
	{
		*err = object->error;
		return NULL;
	}
	return object;
}

/* Make room for an object of that number; false: there is no memory for it. */
static bool
reserve(HgjServed *served, uint32_t number)
{
	uint32_t	wanted = served->nobjects == 0 ? 16 : served->nobjects;
	HgjServedObject **objects;

	while (wanted <= number)
		wanted *= 2;
	if (wanted == served->nobjects)
		return true;
	objects = realloc(served->objects, wanted * sizeof(HgjServedObject *));
	if (objects == NULL)
		return false;
	memset(objects + served->nobjects, 0,
		   (wanted - served->nobjects) * sizeof(HgjServedObject *));
	served->objects = objects;
	served->nobjects = wanted;
	return true;
}

/* See serve.h. */
HgjServedObject *
hgj_served_new(HgjServed *served, HgjServedKind kind, HgjError *err)
{
	uint32_t	number = served->call->object;
	HgjServedObject *object;

	if (number >= HGJ_MOST_OBJECTS || object_of(served, number) != NULL)
	{
		(void) hgj_fail(err, HGJ_INVALID, "a number that is not free");
		return NULL;
	}
	object = calloc(1, sizeof(HgjServedObject));
	if (object == NULL || !reserve(served, number))
	{
		free(object);
		(void) hgj_fail(err, HGJ_OUT_OF_MEMORY, "out of memory in the GPU process");
		return NULL;
	}
	object->kind = kind;
	served->objects[number] = object;
	return object;
}

static void
destroy(HgjServed *served, uint32_t number)
{
	HgjServedObject *object = object_of(served, number);

	if (object == NULL)
		return;
	if (object->side != NULL)
		hgj_side_leave(object->side);
	else if (object->it == NULL)
		;						/* there is nothing of the engine's */
	else if (object->kind == HGJ_SERVED_TABLE)
		served->engine->table_destroy(object->it);
	else if (object->kind == HGJ_SERVED_PROBE)
		served->engine->probe_destroy(object->it);
	else if (served->engine->pipeline != NULL)
		served->engine->pipeline->destroy(object->it);
	if (object->candidate != NULL)
		hgj_side_leave(object->candidate);
	hgj_record_free(object->record);
	free(object->batch);
	free(object);
	served->objects[number] = NULL;
}

/* ---- tables ------------------------------------------------------------- */

/*
 * Step 4: room in the table's record for the arrays of a call that it has done, or NULL: there
 * is none any more.
 */
static char *
note(HgjServedObject *table, HgjCall call, const uint64_t *arg, int nargs, size_t nbytes)
{
	char	   *to = table->record == NULL ? NULL :
		hgj_record_call(table->record, call, arg, nargs, nbytes, MOST_OF_A_TABLE);

	if (to == NULL)
	{
		hgj_record_free(table->record);
		table->record = NULL;
	}
	return to;
}

/* Step 4: of a spec, what its rows depend on, or how they are stored. */
static void
note_spec(HgjServedObject *table, const HgjTableSpec *spec)
{
	HgjTableSpec *said = (HgjTableSpec *) note(table, HGJ_CALL_TABLE_CREATE, NULL, 0, sizeof(*said));

	if (said == NULL)
		return;
	said->nwords = spec->nwords;
	said->flags = spec->flags & ~HGJ_TABLE_TIMING;
	said->build = spec->build;
	said->probe = spec->probe;
	said->segments = spec->segments;
	said->filter = spec->filter;
	said->slack = spec->slack;
	said->load = spec->load;
	said->expected_rows = spec->expected_rows;
	said->device = spec->device;
}

/* The answer says what the table takes, as most sessions ask next. */
static void
answer_memory(HgjServed *served, const HgjTable *table)
{
	HgjMemory	memory = {0};

	_Static_assert(HGJ_ANSWER_MEMORY * sizeof(uint64_t) + sizeof(memory) <=
				   sizeof(served->call->result), "an answer that is too long");
	served->engine->memory(table, &memory);
	memcpy(&served->call->result[HGJ_ANSWER_MEMORY], &memory, sizeof(memory));
}

static HgjStatus
table_create(HgjServed *served, HgjError *err)
{
	HgjTableSpec spec;
	HgjTable   *table = NULL;
	HgjStatus	status;
	HgjServedObject *object;

	if (served->nbytes < sizeof(spec))
		return hgj_fail(err, HGJ_INVALID, "a call without its arrays");
	object = hgj_served_new(served, HGJ_SERVED_TABLE, err);
	if (object == NULL)
		return err->status;
	memcpy(&spec, served->bytes, sizeof(spec));
	spec.poll = hgj_served_is_cancelled;
	spec.poll_arg = served->channel;
	spec.timeout_ms = 0;
	status = served->engine->table_create(&spec, &table, err);
	if (status == HGJ_OK)
		answer_memory(served, table);
	object->it = table;
	object->nwords = spec.nwords;
	object->filler = HGJ_NO_OBJECT;
	object->record = hgj_record_new();
	note_spec(object, &spec);
	return status;
}

static HgjStatus
append(HgjServed *served, HgjServedObject *table, HgjError *err)
{
	const uint64_t *arg = served->call->arg;
	uint32_t	nrows = (uint32_t) arg[0];
	const uint32_t *ids = (const uint32_t *) served->bytes;
	const uint64_t *words[HGJ_MAX_KEY_WORDS];
	size_t		at = ((size_t) nrows * sizeof(uint32_t) + 7) / 8 * 8;
	HgjKeys		keys = {.nrows = nrows,.words = words,.location = HGJ_ON_HOST};
	HgjStatus	status;

	if (at + (size_t) nrows * table->nwords * sizeof(uint64_t) > served->nbytes)
		return hgj_fail(err, HGJ_INVALID, "more rows than have come");
	for (uint32_t w = 0; w < table->nwords; w++)
		words[w] = (const uint64_t *) (served->bytes + at) + (size_t) w * nrows;
	status = served->engine->append(table->it, &keys, (uint32_t) arg[1],
									arg[2] ? ids : NULL, err);
	if (status == HGJ_OK)
	{
		size_t		nwords = (size_t) nrows * table->nwords;
		char	   *to = note(table, HGJ_CALL_APPEND, arg, 3, at + nwords * sizeof(uint64_t));

		answer_memory(served, table->it);
		if (to != NULL && arg[2])
			memcpy(to, ids, nrows * sizeof(uint32_t));
		if (to != NULL)
			memcpy(to + at, served->bytes + at, nwords * sizeof(uint64_t));
	}
	return status;
}

/* What a side has done was done for others. */
static void
info(HgjServed *served, const HgjServedObject *table)
{
	HgjTableInfo *said = (HgjTableInfo *) served->scratch;

	served->engine->info(table->it, said);
	said->kept = table->adopted;
	if (table->adopted)
		memset(&said->work, 0, sizeof(said->work));
}

/* A side is built once, and may stay then. */
static HgjStatus
build(HgjServed *served, HgjServedObject *table, HgjError *err)
{
	const uint64_t *arg = served->call->arg;
	HgjStatus	status;

	status = table->side != NULL ? HGJ_OK :
		served->engine->build(table->it, (uint32_t) arg[0], err);
	if (status != HGJ_OK)
		return status;
	answer_memory(served, table->it);
	info(served, table);
	if (table->side == NULL)
	{
		(void) note(table, HGJ_CALL_BUILD, arg, 1, 0);
		hgj_serve_keep_side(served, table);
	}
	return HGJ_OK;
}

static HgjStatus
unmatched(HgjServed *served, const HgjServedObject *table, HgjError *err)
{
	HgjLetterCall *call = served->call;
	uint32_t	cursor = (uint32_t) call->arg[0];
	uint32_t	n = 0;
	HgjStatus	status;

	if (call->arg[1] > HGJ_SCRATCH_BYTES / sizeof(uint32_t))
		return hgj_fail(err, HGJ_INVALID, "more rows than the channel holds");
	status = served->engine->unmatched(table->it, &cursor, (uint32_t *) served->scratch,
									   (uint32_t) call->arg[1], &n, err);
	call->result[0] = cursor;
	call->result[1] = n;
	return status;
}

static HgjStatus
call_of_table(HgjServed *served, HgjServedObject *table, HgjError *err)
{
	const HgjEngine *engine = served->engine;
	HgjLetterCall *call = served->call;
	const uint64_t *arg = call->arg;

	if (table->side != NULL && call->call != HGJ_CALL_BUILD &&
		call->call != HGJ_CALL_INFO && call->call != HGJ_CALL_MEMORY)
		return hgj_fail(err, HGJ_INVALID, "a build side that stays is only read");

	switch (call->call)
	{
		case HGJ_CALL_APPEND:
			return append(served, table, err);
		case HGJ_CALL_BUILD:
			return build(served, table, err);
		case HGJ_CALL_INFO:
			info(served, table);
			return HGJ_OK;
		case HGJ_CALL_MEMORY:
			engine->memory(table->it, (HgjMemory *) served->scratch);
			return HGJ_OK;
		case HGJ_CALL_BATCH_ROWS:
			call->result[0] = engine->probe_batch_rows(table->it);
			return HGJ_OK;
		case HGJ_CALL_MARK:
			if (arg[0] > served->nbytes / sizeof(uint32_t))
				return hgj_fail(err, HGJ_INVALID, "more rows than have come");
			return engine->mark(table->it, (const uint32_t *) served->bytes,
								(uint32_t) arg[0], err);
		case HGJ_CALL_IS_MARKED:
			call->result[0] = engine->is_marked(table->it, (uint32_t) arg[0]);
			return HGJ_OK;
		case HGJ_CALL_UNMATCHED:
			return unmatched(served, table, err);
		default:
			return engine->clear_marks(table->it, err);
	}
}

/* ---- probes ------------------------------------------------------------- */

static HgjStatus
probe_create(HgjServed *served, HgjError *err)
{
	const HgjServedObject *table;
	HgjProbe   *probe = NULL;
	HgjStatus	status;
	HgjServedObject *object = hgj_served_new(served, HGJ_SERVED_PROBE, err);

	if (object == NULL)
		return err->status;
	table = hgj_served_base(served, (uint32_t) served->call->arg[0], HGJ_SERVED_TABLE, err);
	if (table == NULL)
		return err->status;
	served->known = true;
	if (table->side != NULL)
		return hgj_fail(err, HGJ_INVALID, "a build side that stays is only read");
	status = served->engine->probe_create(table->it, &probe, err);
	if (status == HGJ_OK)
		answer_memory(served, table->it);
	object->it = probe;
	object->nwords = table->nwords;
	return status;
}

/* Step 3. */
static HgjStatus
upload(HgjServed *served, HgjServedObject *probe, HgjError *err)
{
	const uint64_t *arg = served->call->arg;

	if (arg[1] > served->nbytes || arg[2] > SIZE_MAX / 2 || arg[0] > arg[2] ||
		arg[1] > arg[2] - arg[0])
		return hgj_fail(err, HGJ_INVALID, "a piece that is not of the batch");
	if (arg[2] > probe->batch_bytes)
	{
		char	   *batch = arg[0] == 0 ? realloc(probe->batch, arg[2]) : NULL;

		if (batch == NULL)
			return hgj_fail(err, HGJ_OUT_OF_MEMORY, "out of memory in the GPU process");
		probe->batch = batch;
		probe->batch_bytes = arg[2];
	}
	memcpy(probe->batch + arg[0], served->bytes, arg[1]);
	return HGJ_OK;
}

static HgjStatus
probe_begin(HgjServed *served, HgjServedObject *probe, HgjError *err)
{
	const uint64_t *arg = served->call->arg;
	bool		selected = arg[1] != UINT64_MAX;
	size_t		column = arg[0] * sizeof(uint64_t);
	HgjKeys		keys = {.nrows = (uint32_t) arg[0],.words = probe->words,.location = HGJ_ON_HOST};

	if (column * probe->nwords + (selected ? arg[1] * sizeof(uint32_t) : 0) >
		probe->batch_bytes)
		return hgj_fail(err, HGJ_INVALID, "a batch that has not come");
	for (uint32_t w = 0; w < probe->nwords; w++)
		probe->words[w] = (const uint64_t *) (probe->batch + w * column);
	if (selected)
	{
		keys.nsel = (uint32_t) arg[1];
		keys.sel = (const uint32_t *) (probe->batch + probe->nwords * column);
	}
	return served->engine->probe_begin(probe->it, &keys, (HgjProbeMode) arg[2],
									   (uint32_t) arg[3], err);
}

static HgjStatus
probe_next(HgjServed *served, HgjServedObject *probe, HgjError *err)
{
	HgjLetterCall *call = served->call;
	uint32_t	capacity = (uint32_t) call->arg[0];
	HgjMatches	matches = {
		.probe_rows = (uint32_t *) served->scratch,
		.build_rows = (uint32_t *) served->scratch + capacity,
		.capacity = capacity,
		.location = HGJ_ON_HOST
	};
	HgjStatus	status;

	if (capacity > HGJ_SCRATCH_BYTES / (2 * sizeof(uint32_t)))
		return hgj_fail(err, HGJ_INVALID, "more matches than the channel holds");
	status = served->engine->probe_next(probe->it, &matches, err);
	call->result[0] = matches.n;
	call->result[1] = matches.done;
	return status;
}

static HgjStatus
call_of_probe(HgjServed *served, HgjServedObject *probe, HgjError *err)
{
	switch (served->call->call)
	{
		case HGJ_CALL_UPLOAD:
			return upload(served, probe, err);
		case HGJ_CALL_PROBE_BEGIN:
			return probe_begin(served, probe, err);
		default:
			return probe_next(served, probe, err);
	}
}

/* ---- all of them -------------------------------------------------------- */

/* The engine is not to ask a poll, and does not wait. */
static HgjStatus
kept_bytes(HgjServed *served, HgjError *err)
{
	uint64_t	n = served->call->arg[0];

	if (n > HGJ_CALL_IDS || n > served->nbytes / sizeof(uint64_t))
		return hgj_fail(err, HGJ_INVALID, "more chunks than have come");
	return served->engine->pipeline->kept_bytes(&(HgjPipelineCaller) {0},
												(const uint64_t *) served->bytes, n,
												(uint64_t *) served->scratch, err);
}

/* In the channel's thread. */
HgjServed *
hgj_serve_begin(HgjServer *server, HgjChannel *channel, const HgjEngine *engine)
{
	HgjServed  *served = calloc(1, sizeof(HgjServed));

	if (served == NULL)
		return NULL;
	served->server = server;
	served->channel = thread_channel = channel;
	served->engine = engine;
	served->scratch = hgj_channel_area(server, channel);
	return served;
}

/* Everything that the session has left; probes and pipelines stand on tables. */
void
hgj_serve_leave(HgjServed *served)
{
	for (int tables = 0; tables <= 1; tables++)
		for (uint32_t i = 0; i < served->nobjects; i++)
			if (served->objects[i] != NULL &&
				(served->objects[i]->kind == HGJ_SERVED_TABLE) == (tables == 1))
				destroy(served, i);
	free(served->objects);
	served->objects = NULL;
	served->nobjects = 0;
	/* a request that nobody has waited for is not the next session's */
	served->served = __atomic_load_n(&served->channel->number, __ATOMIC_ACQUIRE);
}

/* What the object has come to earlier, or what the call comes to. */
static HgjStatus
call_of_object(HgjServed *served, HgjServedObject *object, HgjError *err)
{
	if (object->failed != HGJ_OK)
	{
		*err = object->error;
		return object->failed;
	}
	return object->kind == HGJ_SERVED_TABLE ? call_of_table(served, object, err) :
		object->kind == HGJ_SERVED_PROBE ? call_of_probe(served, object, err) :
		hgj_serve_pipeline(served, object, err);
}

static HgjStatus
make_call(HgjServed *served, HgjError *err)
{
	HgjCall		call = served->call->call;
	HgjServedKind	kind = call >= HGJ_CALL_PIPE_CREATE ? HGJ_SERVED_PIPELINE :
		call >= HGJ_CALL_UPLOAD && call <= HGJ_CALL_PROBE_NEXT ? HGJ_SERVED_PROBE :
		HGJ_SERVED_TABLE;
	HgjServedObject *object;

	switch (call)
	{
		case HGJ_CALL_TABLE_CREATE:
			served->known = true;
			return table_create(served, err);
		case HGJ_CALL_PROBE_CREATE:
			return probe_create(served, err);
		case HGJ_CALL_PIPE_CREATE:
			return hgj_serve_pipe_create(served, err);
		case HGJ_CALL_KEPT_BYTES:
			return kept_bytes(served, err);
		case HGJ_CALL_DESTROY:
			destroy(served, served->call->object);
			return HGJ_OK;
		default:
			break;
	}
	object = hgj_served_find(served, served->call->object, kind);
	if (object == NULL)
		return hgj_fail(err, HGJ_DEVICE_LOST, "it has gone with the GPU process");
	served->known = true;
	return call_of_object(served, object, err);
}

/* Step 6: the first one to notice says why. */
void
hgj_serve_end_process(HgjServer *server, const char *why)
{
	static bool ending = false;

	if (!__atomic_exchange_n(&ending, true, __ATOMIC_ACQ_REL))
		hgj_server_says_why(server, why);
	_exit(2);
}

/* Step 2: nobody has waited for the call, which has failed. */
static void
note_failure(HgjServed *served, HgjStatus status, const HgjError *err)
{
	HgjServedObject *object = object_of(served, served->call->object);

	if (object == NULL || object->failed != HGJ_OK)
		return;
	object->failed = status;
	object->error = *err;
	object->error.status = status;
}

static bool
is_create(HgjCall call)
{
	return call == HGJ_CALL_TABLE_CREATE || call == HGJ_CALL_PROBE_CREATE ||
		call == HGJ_CALL_PIPE_CREATE;
}

/* A create that was cancelled is made again, with its number. */
static void
forget_cancelled(HgjServed *served)
{
	if (is_create(served->call->call))
		destroy(served, served->call->object);
}

/* The call that stands there in the letter becomes the one at hand; false: it does not end in it. */
static bool
find_call(HgjServed *served, size_t at)
{
	char	   *letter = hgj_channel_area(served->server, served->channel) + HGJ_LETTER_AT;

	if (at + sizeof(HgjLetterCall) > HGJ_LETTER_BYTES)
		return false;
	served->call = (HgjLetterCall *) (letter + at);
	served->bytes = hgj_call_bytes(served->call);
	served->nbytes = served->call->nbytes;
	return served->nbytes % 8 == 0 &&
		served->nbytes <= HGJ_LETTER_BYTES - at - sizeof(HgjLetterCall);
}

/* Step 2: all calls of the letter at hand.  *err: why the device is lost, if it is. */
static HgjStatus
make_calls(HgjServed *served, HgjError *err)
{
	HgjChannel *channel = served->channel;
	uint32_t	ncalls = channel->ncalls;
	size_t		at = 0;
	bool		good = channel->generation == hgj_server_generation(served->server);

	for (channel->made = 0; channel->made < ncalls; channel->made++)
	{
		HgjStatus	status;

		if (!find_call(served, at) || (channel->made > 0 && hgj_served_is_cancelled(channel)))
			break;
		served->known = false;
		memset(err, 0, sizeof(*err));
		status = good ? make_call(served, err) :
			hgj_fail(err, HGJ_DEVICE_LOST, "the GPU process has been started anew");
		if (status == HGJ_CANCELLED)
		{
			forget_cancelled(served);
			break;
		}
		served->call->status = status;
		served->call->error = *err;
		if (status == HGJ_DEVICE_LOST && served->known)
		{
			channel->made++;
			return status;
		}
		if (status != HGJ_OK && (channel->made + 1 < ncalls || is_create(served->call->call)))
			note_failure(served, status, err);
		at += hgj_call_size(served->nbytes);
	}
	return HGJ_OK;
}

/* The letter at hand, unless it has been served. */
void
hgj_serve(HgjServed *served)
{
	HgjChannel *channel = served->channel;
	uint64_t	number = __atomic_load_n(&channel->number, __ATOMIC_ACQUIRE);
	HgjError	err;
	HgjStatus	status;

	if (number == served->served)
		return;
	served->served = number;
	status = make_calls(served, &err);
	channel->answer_to = number;
	(void) sem_post(&channel->answered);
	if (status == HGJ_DEVICE_LOST)
		hgj_serve_end_process(served->server, err.message);
}
