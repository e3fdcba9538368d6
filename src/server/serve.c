/*-------------------------------------------------------------------------
 *
 * serve.c
 *	  In the GPU process: one call of a session, made for it.
 *
 * 1. What sessions create is kept under numbers, in an array per channel: tables,
 *	  probes, pipelines.  A number that is not there any more, or not of the kind that
 *	  the call is about, is an error of the session's, and no more.
 * 2. Arrays come in the channel's scratch, in pieces where they are longer; a probe's
 *	  batch is put together in memory of the probe's, because the engine looks at it
 *	  until all matches have been fetched.
 * 3. Rows of a pipeline come in the channel's staging buffers and are copied into the
 *	  engine's, which its device can read; while that goes on the session fills the
 *	  other one.
 * 4. An engine's long calls poll, and find here whether the session wants no more.
 * 5. A device that is lost stays lost for its process, so that this one ends, when it has
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

#include "engine/checks.h"
#include "server/channel.h"

typedef enum ObjectKind
{
	OBJECT_TABLE,
	OBJECT_PROBE,
	OBJECT_PIPELINE
} ObjectKind;

typedef struct Object
{
	ObjectKind	kind;
	void	   *it;
	uint32_t	nwords;			/* key words of a table, or of a probe's */

	/* a probe's batch */
	char	   *batch;
	size_t		batch_bytes;
	const uint64_t *words[HGJ_MAX_KEY_WORDS];

	/* a pipeline */
	HgjPipelineSpec spec;
	bool		staged;			/* the engine's buffer at hand */
	HgjPipeStage stage;
	HgjPipeRows rows;			/* fetched, of which so many have gone: */
	uint32_t	gone;
	bool		fetched;
} Object;

struct HgjServed
{
	HgjServer  *server;
	HgjChannel *channel;
	const HgjEngine *engine;
	char	   *scratch;
	Object	  **objects;
	uint32_t	nobjects;
	uint64_t	served;			/* the last request's number */
	bool		known;			/* the call was about something that is there */
};

/* Step 4. */
static int
is_cancelled(void *arg)
{
	HgjChannel *channel = arg;

	return __atomic_load_n(&channel->cancel, __ATOMIC_ACQUIRE) != 0 ||
		__atomic_load_n(&channel->state, __ATOMIC_ACQUIRE) == HGJ_CHANNEL_LEFT;
}

/* ---- step 1 ------------------------------------------------------------- */

static Object *
find(const HgjServed *served, uint32_t number, ObjectKind kind)
{
	Object	   *object = number < served->nobjects ? served->objects[number] : NULL;

	return object != NULL && object->kind == kind ? object : NULL;
}

/* A free number for an object, whose `it` the caller makes; or NULL, with err filled. */
static Object *
new_object(HgjServed *served, ObjectKind kind, uint32_t *number, HgjError *err)
{
	Object	   *object = calloc(1, sizeof(Object));
	Object	  **objects = served->objects;
	uint32_t	i = 0;

	while (i < served->nobjects && objects[i] != NULL)
		i++;
	if (i == served->nobjects)
	{
		uint32_t	wanted = i == 0 ? 16 : 2 * i;

		objects = realloc(objects, wanted * sizeof(Object *));
		if (objects != NULL)
		{
			memset(objects + i, 0, (wanted - i) * sizeof(Object *));
			served->objects = objects;
			served->nobjects = wanted;
		}
	}
	if (object == NULL || objects == NULL)
	{
		free(object);
		(void) hgj_fail(err, HGJ_OUT_OF_MEMORY, "out of memory in the GPU process");
		return NULL;
	}
	object->kind = kind;
	served->objects[i] = object;
	*number = i;
	return object;
}

static void
destroy(HgjServed *served, uint32_t number)
{
	Object	   *object = number < served->nobjects ? served->objects[number] : NULL;

	if (object == NULL)
		return;
	if (object->kind == OBJECT_TABLE)
		served->engine->table_destroy(object->it);
	else if (object->kind == OBJECT_PROBE)
		served->engine->probe_destroy(object->it);
	else if (served->engine->pipeline != NULL)
		served->engine->pipeline->destroy(object->it);
	free(object->batch);
	free(object);
	served->objects[number] = NULL;
}

/* What could not be made has no number. */
static HgjStatus
made(HgjServed *served, uint32_t number, HgjStatus status)
{
	if (status == HGJ_OK)
		served->channel->result[0] = number;
	else
	{
		free(served->objects[number]);
		served->objects[number] = NULL;
	}
	return status;
}

/* ---- tables ------------------------------------------------------------- */

static HgjStatus
table_create(HgjServed *served, HgjError *err)
{
	HgjTableSpec spec;
	HgjTable   *table = NULL;
	HgjStatus	status;
	uint32_t	number;
	Object	   *object = new_object(served, OBJECT_TABLE, &number, err);

	if (object == NULL)
		return err->status;
	memcpy(&spec, served->scratch, sizeof(spec));
	spec.poll = is_cancelled;
	spec.poll_arg = served->channel;
	status = served->engine->table_create(&spec, &table, err);
	object->it = table;
	object->nwords = spec.nwords;
	return made(served, number, status);
}

static HgjStatus
append(HgjServed *served, const Object *table, HgjError *err)
{
	const uint64_t *arg = served->channel->arg;
	uint32_t	nrows = (uint32_t) arg[0];
	const uint32_t *ids = (const uint32_t *) served->scratch;
	const uint64_t *words[HGJ_MAX_KEY_WORDS];
	size_t		at = ((size_t) nrows * sizeof(uint32_t) + 7) / 8 * 8;
	HgjKeys		keys = {.nrows = nrows,.words = words,.location = HGJ_ON_HOST};

	if (at + (size_t) nrows * table->nwords * sizeof(uint64_t) > HGJ_SCRATCH_BYTES)
		return hgj_fail(err, HGJ_INVALID, "more rows than the channel holds");
	for (uint32_t w = 0; w < table->nwords; w++)
		words[w] = (const uint64_t *) (served->scratch + at) + (size_t) w * nrows;
	return served->engine->append(table->it, &keys, (uint32_t) arg[1],
								  arg[2] ? ids : NULL, err);
}

static HgjStatus
unmatched(HgjServed *served, const Object *table, HgjError *err)
{
	HgjChannel *channel = served->channel;
	uint32_t	cursor = (uint32_t) channel->arg[0];
	uint32_t	n = 0;
	HgjStatus	status;

	if (channel->arg[1] > HGJ_SCRATCH_BYTES / sizeof(uint32_t))
		return hgj_fail(err, HGJ_INVALID, "more rows than the channel holds");
	status = served->engine->unmatched(table->it, &cursor, (uint32_t *) served->scratch,
									   (uint32_t) channel->arg[1], &n, err);
	channel->result[0] = cursor;
	channel->result[1] = n;
	return status;
}

static HgjStatus
call_of_table(HgjServed *served, const Object *table, HgjError *err)
{
	const HgjEngine *engine = served->engine;
	HgjChannel *channel = served->channel;
	const uint64_t *arg = channel->arg;

	switch (channel->call)
	{
		case HGJ_CALL_APPEND:
			return append(served, table, err);
		case HGJ_CALL_BUILD:
			return engine->build(table->it, (uint32_t) arg[0], err);
		case HGJ_CALL_INFO:
			engine->info(table->it, (HgjTableInfo *) served->scratch);
			return HGJ_OK;
		case HGJ_CALL_MEMORY:
			engine->memory(table->it, (HgjMemory *) served->scratch);
			return HGJ_OK;
		case HGJ_CALL_BATCH_ROWS:
			channel->result[0] = engine->probe_batch_rows(table->it);
			return HGJ_OK;
		case HGJ_CALL_MARK:
			if (arg[0] > HGJ_SCRATCH_BYTES / sizeof(uint32_t))
				return hgj_fail(err, HGJ_INVALID, "more rows than the channel holds");
			return engine->mark(table->it, (const uint32_t *) served->scratch,
								(uint32_t) arg[0], err);
		case HGJ_CALL_IS_MARKED:
			channel->result[0] = engine->is_marked(table->it, (uint32_t) arg[0]);
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
	const Object *table = find(served, served->channel->object, OBJECT_TABLE);
	HgjProbe   *probe = NULL;
	HgjStatus	status;
	uint32_t	number;
	Object	   *object;

	if (table == NULL)
		return hgj_fail(err, HGJ_DEVICE_LOST, "the table has gone with the GPU process");
	served->known = true;
	object = new_object(served, OBJECT_PROBE, &number, err);
	if (object == NULL)
		return err->status;
	status = served->engine->probe_create(table->it, &probe, err);
	object->it = probe;
	object->nwords = table->nwords;
	return made(served, number, status);
}

/* Step 2. */
static HgjStatus
upload(HgjServed *served, Object *probe, HgjError *err)
{
	const uint64_t *arg = served->channel->arg;

	if (arg[1] > HGJ_SCRATCH_BYTES || arg[2] > SIZE_MAX / 2 || arg[0] > arg[2] ||
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
	memcpy(probe->batch + arg[0], served->scratch, arg[1]);
	return HGJ_OK;
}

static HgjStatus
probe_begin(HgjServed *served, Object *probe, HgjError *err)
{
	const uint64_t *arg = served->channel->arg;
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
probe_next(HgjServed *served, Object *probe, HgjError *err)
{
	HgjChannel *channel = served->channel;
	uint32_t	capacity = (uint32_t) channel->arg[0];
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
	channel->result[0] = matches.n;
	channel->result[1] = matches.done;
	return status;
}

static HgjStatus
call_of_probe(HgjServed *served, Object *probe, HgjError *err)
{
	switch (served->channel->call)
	{
		case HGJ_CALL_UPLOAD:
			return upload(served, probe, err);
		case HGJ_CALL_PROBE_BEGIN:
			return probe_begin(served, probe, err);
		default:
			return probe_next(served, probe, err);
	}
}

/* ---- pipelines ---------------------------------------------------------- */

/* What a pipeline stands on; false: some of it is not there any more. */
static bool
find_tables(HgjServed *served, const HgjPipelineSpec *spec, HgjPipelineCaller *caller)
{
	HgjCallTables numbers;
	const Object *object;

	memcpy(&numbers, served->scratch + sizeof(*spec), sizeof(numbers));
	for (uint32_t j = 0; j < spec->njoins && j < HGJ_PIPE_JOINS; j++)
	{
		object = find(served, numbers.tables[j], OBJECT_TABLE);
		if (object == NULL)
			return false;
		caller->tables[j] = object->it;
		if (numbers.filled[j] == HGJ_NO_OBJECT)
			continue;
		object = find(served, numbers.filled[j], OBJECT_PIPELINE);
		if (object == NULL)
			return false;
		caller->filled[j] = object->it;
	}
	if (!spec->fills)
		return true;
	object = find(served, numbers.fills, OBJECT_TABLE);
	if (object != NULL)
		caller->fills = object->it;
	return object != NULL;
}

static HgjStatus
pipe_create(HgjServed *served, HgjError *err)
{
	HgjPipelineCaller caller = {.poll = is_cancelled,.poll_arg = served->channel};
	HgjPipeline *pipeline = NULL;
	HgjStatus	status;
	uint32_t	number;
	Object	   *object;

	if (served->engine->pipeline == NULL)
		return hgj_fail(err, HGJ_UNSUPPORTED, "the engine has no pipelines");
	object = new_object(served, OBJECT_PIPELINE, &number, err);
	if (object == NULL)
		return err->status;
	memcpy(&object->spec, served->scratch, sizeof(object->spec));
	if (!find_tables(served, &object->spec, &caller))
		return made(served, number,
					hgj_fail(err, HGJ_DEVICE_LOST, "the table has gone with the GPU process"));
	served->known = true;
	status = served->engine->pipeline->create(&object->spec, &caller, &pipeline, err);
	object->it = pipeline;
	return made(served, number, status);
}

static HgjStatus
pipe_payload(HgjServed *served, const Object *p, HgjError *err)
{
	const uint64_t *arg = served->channel->arg;
	size_t		bytes;

	if (arg[0] >= p->spec.njoins || arg[1] >= p->spec.joins[arg[0]].ncolumns ||
		arg[3] > HGJ_SCRATCH_BYTES)
		return hgj_fail(err, HGJ_INVALID, "a column that the pipeline does not have");
	bytes = (arg[3] * hgj_kind_width(p->spec.joins[arg[0]].kinds[arg[1]]) + 7) / 8 * 8;
	if (bytes + (arg[3] + 63) / 64 * 8 > HGJ_SCRATCH_BYTES)
		return hgj_fail(err, HGJ_INVALID, "more rows than the channel holds");
	return served->engine->pipeline->payload(p->it, (uint32_t) arg[0], (uint32_t) arg[1],
											 (uint32_t) arg[2], (uint32_t) arg[3],
											 served->scratch, arg[4] ?
											 (const uint64_t *) (served->scratch + bytes) : NULL,
											 err);
}

/* The engine's buffer for the next push. */
static HgjStatus
stage(HgjServed *served, Object *p, HgjError *err)
{
	HgjStatus	status = HGJ_OK;

	if (!p->staged)
		status = served->engine->pipeline->stage(p->it, &p->stage, err);
	p->staged = status == HGJ_OK;
	return status;
}

static HgjStatus
pipe_start(HgjServed *served, Object *p, HgjError *err)
{
	HgjChannel *channel = served->channel;
	HgjPipeRange ranges[HGJ_PIPE_KEYS];
	HgjStatus	status;

	memcpy(ranges, served->scratch, sizeof(ranges));
	status = served->engine->pipeline->start(p->it, channel->arg[1] ? ranges : NULL,
											 channel->arg[0], err);
	if (status == HGJ_OK)
		status = stage(served, p, err);
	channel->result[0] = p->stage.capacity;
	return status;
}

/* Step 3: columns stand one behind the other, each with room for `capacity` rows. */
static HgjStatus
pipe_push(HgjServed *served, Object *p, HgjError *err)
{
	const uint64_t *arg = served->channel->arg;
	const char *from = served->scratch + arg[0];
	size_t		capacity = arg[1];
	uint32_t	n = (uint32_t) arg[2];
	uint64_t	nulls = arg[3];
	HgjStatus	status;

	if (arg[0] > served->server->area_bytes || capacity > served->server->area_bytes ||
		arg[2] > capacity)
		return hgj_fail(err, HGJ_INVALID, "a buffer that is not the channel's");
	status = stage(served, p, err);
	if (status != HGJ_OK)
		return status;
	if (n > p->stage.capacity)
		return hgj_fail(err, HGJ_INVALID, "more rows than the engine takes at once");
	for (uint32_t i = 0; i < p->spec.ninputs; i++)
	{
		size_t		width = hgj_kind_width(p->spec.inputs[i]);

		if ((size_t) (from - served->scratch) + capacity * width + capacity / 8 >
			served->server->area_bytes)
			return hgj_fail(err, HGJ_INVALID, "a buffer that is not the channel's");
		memcpy(p->stage.values[i], from, n * width);
		from += capacity * width;
		if (nulls & (UINT64_C(1) << i))
			memcpy(p->stage.validity[i], from, ((size_t) n + 63) / 64 * 8);
		from += capacity / 8;
	}
	p->staged = false;
	p->fetched = false;
	return served->engine->pipeline->push(p->it, n, nulls, err);
}

static HgjStatus
pipe_kept(HgjServed *served, Object *p, HgjError *err)
{
	const uint64_t *arg = served->channel->arg;
	HgjKeptPush rows = {.pieces = (const HgjKeptPiece *) served->scratch};

	if (!served->server->takes_kept)
		return hgj_fail(err, HGJ_UNSUPPORTED, "no columns are kept");
	if (arg[0] > HGJ_KEPT_PIECES || arg[1] > HGJ_KEPT_WORDS)
		return hgj_fail(err, HGJ_INVALID, "more pieces than the channel holds");
	rows.npieces = (uint32_t) arg[0];
	rows.nwords = (uint32_t) arg[1];
	rows.words = (const uint64_t *) (rows.pieces + rows.npieces);
	p->staged = false;
	return served->engine->pipeline->push_kept(p->it, &rows, err);
}

/* So many of the rows that the engine has returned as the scratch holds. */
static HgjStatus
pipe_fetch(HgjServed *served, Object *p, HgjError *err)
{
	HgjChannel *channel = served->channel;
	uint32_t   *to = (uint32_t *) served->scratch;
	uint32_t	most = HGJ_SCRATCH_BYTES / sizeof(uint32_t) / (1 + HGJ_PIPE_JOINS);
	uint32_t	n;

	if (served->engine->pipeline->fetch == NULL)
		return hgj_fail(err, HGJ_UNSUPPORTED, "the engine returns no rows");
	if (!p->fetched)
	{
		HgjStatus	status = served->engine->pipeline->fetch(p->it, &p->rows, err);

		if (status != HGJ_OK)
			return status;
		p->fetched = true;
		p->gone = 0;
	}
	n = p->rows.n - p->gone < most ? p->rows.n - p->gone : most;
	if (n > 0)
		memcpy(to, p->rows.input + p->gone, n * sizeof(uint32_t));
	for (uint32_t j = 0; j < p->spec.njoins && n > 0; j++)
		memcpy(to + (size_t) (j + 1) * n, p->rows.row[j] + p->gone, n * sizeof(uint32_t));
	p->gone += n;
	channel->result[0] = n;
	channel->result[1] = p->rows.last && p->gone == p->rows.n;
	if (p->gone == p->rows.n)
		p->fetched = false;
	return HGJ_OK;
}

static HgjStatus
call_of_pipeline(HgjServed *served, Object *p, HgjError *err)
{
	const HgjPipelineMethods *methods = served->engine->pipeline;
	HgjChannel *channel = served->channel;
	size_t		row = (1 + p->spec.nkeys + p->spec.nwords) * sizeof(uint64_t);

	switch (channel->call)
	{
		case HGJ_CALL_PIPE_PAYLOAD:
			return pipe_payload(served, p, err);
		case HGJ_CALL_PIPE_START:
			return pipe_start(served, p, err);
		case HGJ_CALL_PIPE_PUSH:
			return pipe_push(served, p, err);
		case HGJ_CALL_PIPE_KEPT:
			return pipe_kept(served, p, err);
		case HGJ_CALL_PIPE_FETCH:
			return pipe_fetch(served, p, err);
		case HGJ_CALL_PIPE_FINISH:
			return methods->finish(p->it, &channel->result[0], err);
		case HGJ_CALL_PIPE_GROUPS:
			if (channel->arg[1] > HGJ_SCRATCH_BYTES / row)
				return hgj_fail(err, HGJ_INVALID, "more groups than the channel holds");
			return methods->groups(p->it, channel->arg[0], channel->arg[1],
								   (uint64_t *) served->scratch, err);
		default:
			methods->info(p->it, (HgjPipelineInfo *) served->scratch);
			return HGJ_OK;
	}
}

/* ---- all of them -------------------------------------------------------- */

/* In place; the engine is not to ask a poll, and does not wait. */
static HgjStatus
kept_bytes(HgjServed *served, HgjError *err)
{
	uint64_t   *ids = (uint64_t *) served->scratch;
	uint64_t   *bytes = ids + HGJ_CALL_IDS;

	if (served->channel->arg[0] > HGJ_CALL_IDS)
		return hgj_fail(err, HGJ_INVALID, "more chunks than the channel holds");
	return served->engine->pipeline->kept_bytes(&(HgjPipelineCaller) {0}, ids,
												served->channel->arg[0], bytes, err);
}

HgjServed *
hgj_serve_begin(HgjServer *server, HgjChannel *channel, const HgjEngine *engine)
{
	HgjServed  *served = calloc(1, sizeof(HgjServed));

	if (served == NULL)
		return NULL;
	served->server = server;
	served->channel = channel;
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
				(served->objects[i]->kind == OBJECT_TABLE) == (tables == 1))
				destroy(served, i);
	free(served->objects);
	served->objects = NULL;
	served->nobjects = 0;
}

static HgjStatus
make_call(HgjServed *served, HgjError *err)
{
	HgjChannel *channel = served->channel;
	HgjCall		call = channel->call;
	ObjectKind	kind = call >= HGJ_CALL_PIPE_CREATE ? OBJECT_PIPELINE :
		call >= HGJ_CALL_UPLOAD && call <= HGJ_CALL_PROBE_NEXT ? OBJECT_PROBE :
		OBJECT_TABLE;
	Object	   *object;

	served->known = false;
	if (channel->generation != hgj_server_generation(served->server))
		return hgj_fail(err, HGJ_DEVICE_LOST, "the GPU process has been started anew");
	switch (call)
	{
		case HGJ_CALL_TABLE_CREATE:
			served->known = true;
			return table_create(served, err);
		case HGJ_CALL_PROBE_CREATE:
			return probe_create(served, err);
		case HGJ_CALL_PIPE_CREATE:
			return pipe_create(served, err);
		case HGJ_CALL_KEPT_BYTES:
			return kept_bytes(served, err);
		case HGJ_CALL_DESTROY:
			destroy(served, channel->object);
			return HGJ_OK;
		default:
			break;
	}
	object = find(served, channel->object, kind);
	if (object == NULL)
		return hgj_fail(err, HGJ_DEVICE_LOST, "it has gone with the GPU process");
	served->known = true;
	return kind == OBJECT_TABLE ? call_of_table(served, object, err) :
		kind == OBJECT_PROBE ? call_of_probe(served, object, err) :
		call_of_pipeline(served, object, err);
}

/* The request at hand, unless it has been served. */
void
hgj_serve(HgjServed *served)
{
	HgjChannel *channel = served->channel;
	uint64_t	number = __atomic_load_n(&channel->number, __ATOMIC_ACQUIRE);
	HgjError	err = {0};
	HgjStatus	status;

	if (number == served->served)
		return;
	served->served = number;
	status = make_call(served, &err);
	channel->status = status;
	channel->error = err;
	channel->answer_to = number;
	(void) sem_post(&channel->answered);
	if (status == HGJ_DEVICE_LOST && served->known)
		_exit(2);				/* step 5 */
}
