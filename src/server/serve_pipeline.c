/*-------------------------------------------------------------------------
 *
 * serve_pipeline.c
 *	  In the GPU process: calls about pipelines, and build sides that were made before.
 *
 * 1. Rows of a pipeline come in the channel's staging buffers, from which the engine's device
 *	  reads them, or they are copied into the engine's own, where it cannot; while that goes
 *	  on the session fills the other one.
 * 2. A pipeline that fills a table of kept rows is recorded (sides.h): its spec, what is
 *	  known of the tables that it stands on, and each call.  Nothing is done before it is
 *	  started.  If there is a side that has begun alike, nothing is done before the end
 *	  either: it is taken for this one if it has been made of the same calls.
 * 3. As soon as there is no such side, what has been recorded is done, and from then on
 *	  calls are made as they come.  When the table has been built, it stays with the
 *	  pipeline and the record for who comes next.
 * 4. Staged rows are not recorded: a side that has some is nobody else's.
 * 5. The answer to the end has what a session asks next: counts, and groups.
 *
 * Memory: malloc'd, of the channel's thread, and given back with the object or when the
 * session leaves; that of sides is theirs (sides.c).  No PostgreSQL function is called.
 * Locks: none, but for sides.c's.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "server/serve.h"

/* Step 2: bytes of a side's record. */
#define MOST_OF_A_SIDE		(8 * 1024 * 1024)

/* A call at hand, or one that has been recorded: its numbers and arrays. */
typedef struct Call
{
	const uint64_t *arg;
	const char *bytes;
} Call;

/* ---- pipelines ---------------------------------------------------------- */

/* ---- calls of the engine ---------------------------------------------------- */

/* What a pipeline stands on; false, with err filled: some of it is not there any more. */
static bool
find_tables(const HgjServed *served, const HgjServedObject *p, HgjPipelineCaller *caller,
			HgjError *err)
{
	const HgjServedObject *object;

	for (uint32_t j = 0; j < p->spec.njoins && j < HGJ_PIPE_JOINS; j++)
	{
		object = hgj_served_base(served, p->numbers.tables[j], HGJ_SERVED_TABLE, err);
		if (object == NULL)
			return false;
		caller->tables[j] = object->it;
		if (p->numbers.filled[j] == HGJ_NO_OBJECT)
			continue;
		object = hgj_served_base(served, p->numbers.filled[j], HGJ_SERVED_PIPELINE, err);
		if (object == NULL)
			return false;
		caller->filled[j] = object->it;
	}
	if (!p->spec.fills)
		return true;
	object = hgj_served_base(served, p->numbers.fills, HGJ_SERVED_TABLE, err);
	if (object != NULL)
		caller->fills = object->it;
	return object != NULL;
}

static HgjStatus
create(HgjServed *served, HgjServedObject *p, HgjError *err)
{
	HgjPipelineCaller caller = {.terms = &p->terms,.poll = hgj_served_is_cancelled,
	.poll_arg = served->channel};
	HgjPipeline *pipeline = NULL;
	HgjStatus	status;

	if (!find_tables(served, p, &caller, err))
		return err->status;
	served->known = true;
	status = served->engine->pipeline->create(&p->spec, &caller, &pipeline, err);
	p->it = pipeline;
	return status;
}

/* Of the values in a call's arrays, with those of validity behind them. */
static size_t
payload_bytes(const HgjServedObject *p, const uint64_t *arg)
{
	return (arg[3] * hgj_kind_width(p->spec.joins[arg[0]].kinds[arg[1]]) + 7) / 8 * 8;
}

static HgjStatus
check_payload(const HgjServed *served, const HgjServedObject *p, HgjError *err)
{
	const uint64_t *arg = served->call->arg;

	if (arg[0] >= p->spec.njoins || arg[1] >= p->spec.joins[arg[0]].ncolumns ||
		arg[3] > HGJ_SCRATCH_BYTES)
		return hgj_fail(err, HGJ_INVALID, "a column that the pipeline does not have");
	if (payload_bytes(p, arg) + (arg[4] ? (arg[3] + 63) / 64 * 8 : 0) > served->nbytes)
		return hgj_fail(err, HGJ_INVALID, "more rows than have come");
	return HGJ_OK;
}

static HgjStatus
payload(HgjServed *served, const HgjServedObject *p, const Call *call, HgjError *err)
{
	const uint64_t *arg = call->arg;
	const char *validity = arg[4] ? call->bytes + payload_bytes(p, arg) : NULL;

	return served->engine->pipeline->payload(p->it, (uint32_t) arg[0], (uint32_t) arg[1],
											 (uint32_t) arg[2], (uint32_t) arg[3], call->bytes,
											 (const uint64_t *) validity, err);
}

/* The engine's buffer for the next push. */
static HgjStatus
stage(HgjServed *served, HgjServedObject *p, HgjError *err)
{
	HgjStatus	status = HGJ_OK;

	if (!p->staged)
		status = served->engine->pipeline->stage(p->it, &p->stage, err);
	p->staged = status == HGJ_OK;
	return status;
}

static HgjStatus
start(HgjServed *served, HgjServedObject *p, const Call *call, HgjError *err)
{
	HgjPipeRange ranges[HGJ_PIPE_KEYS];
	HgjPipelineInfo said = {0};
	HgjStatus	status;

	if (call->arg[1])
		memcpy(ranges, call->bytes, p->spec.nkeys * sizeof(HgjPipeRange));
	status = served->engine->pipeline->start(p->it, call->arg[1] ? ranges : NULL,
											 call->arg[0], err);
	if (status == HGJ_OK)
		served->engine->pipeline->info(p->it, &said);
	p->stage_rows = said.stage_rows;
	served->call->result[0] = said.stage_rows;
	return status;
}

static HgjStatus
push_kept(HgjServed *served, HgjServedObject *p, const Call *call, bool only_there,
		  HgjError *err)
{
	uint64_t	n = call->arg[0];
	size_t		words = hgj_kept_words_at(n, p->spec.ninputs);
	HgjKeptPush rows = {
		.npieces = (uint32_t) n,
		.nrows = (const uint32_t *) call->bytes,
		.inputs = (const HgjKeptInput *) (call->bytes + hgj_kept_inputs_at(n)),
		.nwords = (uint32_t) call->arg[1],
		.words = (const uint64_t *) (call->bytes + words),
		.only_there = only_there,
		.may_read_on = !p->spec.rows
	};

	p->staged = p->fetched = false;
	return served->engine->pipeline->push_kept(p->it, &rows, err);
}

/* ---- step 2: the record --------------------------------------------------- */

/* The terms without what its rows do not depend on, and without what is left of others. */
static void
note_terms(HgjPipelineTerms *said, const HgjPipelineTerms *terms)
{
	said->nvalues = terms->nvalues;
	memcpy(said->values, terms->values, terms->nvalues * sizeof(terms->values[0]));
	memcpy(said->nulls, terms->nulls, sizeof(said->nulls));
	said->device = terms->device;
}

/* Are its arrays' lengths within their bounds?  The engine looks at all else. */
static bool
is_sound(const HgjPipelineSpec *spec, const HgjPipelineTerms *terms)
{
	return terms->nvalues <= HGJ_PIPE_VALUES && spec->ninputs <= HGJ_PIPE_INPUTS &&
		spec->njoins <= HGJ_PIPE_JOINS &&
		spec->ncode <= HGJ_PIPE_CODE && spec->ncolumns <= HGJ_PIPE_COLUMNS &&
		spec->nkeys <= HGJ_PIPE_KEYS && !spec->rows && spec->nwords == 0;
}

/* A table that the j-th join stands on: a side, by its number, or what it has been told. */
static bool
note_table(const HgjServed *served, HgjServedObject *p, uint32_t j)
{
	const HgjServedObject *table = hgj_served_find(served, p->numbers.tables[j],
												   HGJ_SERVED_TABLE);
	const HgjServedObject *filled = hgj_served_find(served, p->numbers.filled[j],
													HGJ_SERVED_PIPELINE);
	uint64_t	arg[2] = {j, 0};
	char	   *to;

	if (table->side != NULL)
	{
		arg[1] = table->side->id;
		return filled != NULL && filled->side == table->side &&
			hgj_record_call(p->record, HGJ_CALL_INFO, arg, 2, 0, MOST_OF_A_SIDE) != NULL;
	}
	if (table->record == NULL || filled != NULL)
		return false;
	to = hgj_record_call(p->record, HGJ_CALL_INFO, arg, 2, table->record->n, MOST_OF_A_SIDE);
	if (to != NULL)
		memcpy(to, table->record->bytes, table->record->n);
	return to != NULL;
}

/* What is known before it is told anything; false: it is not all known. */
static bool
note_create(const HgjServed *served, HgjServedObject *p)
{
	const HgjServedObject *fills = hgj_served_find(served, p->numbers.fills, HGJ_SERVED_TABLE);
	char	   *to = hgj_record_call(p->record, HGJ_CALL_PIPE_CREATE, NULL, 0,
									 sizeof(p->spec) + sizeof(p->terms), MOST_OF_A_SIDE);

	if (to == NULL || fills->record == NULL)
		return false;
	memcpy(to, &p->spec, sizeof(p->spec));
	note_terms((HgjPipelineTerms *) (to + sizeof(p->spec)), &p->terms);
	to = hgj_record_call(p->record, HGJ_CALL_TABLE_CREATE, NULL, 0, fills->record->n,
						 MOST_OF_A_SIDE);
	if (to == NULL)
		return false;
	memcpy(to, fills->record->bytes, fills->record->n);
	for (uint32_t j = 0; j < p->spec.njoins; j++)
		if (!note_table(served, p, j))
			return false;
	return true;
}

static void
forget_record(HgjServedObject *p)
{
	hgj_record_free(p->record);
	p->record = NULL;
}

/* A call that is made, or will be; false: there is no room for it. */
static bool
note_call(HgjServedObject *p, HgjCall call, const Call *made)
{
	const uint64_t *arg = made->arg;
	size_t		n;
	size_t		rest;
	char	   *to;

	if (call == HGJ_CALL_PIPE_PAYLOAD)
	{
		size_t		used = arg[3] * hgj_kind_width(p->spec.joins[arg[0]].kinds[arg[1]]);
		size_t		bits = arg[4] ? (arg[3] + 63) / 64 * 8 : 0;

		n = payload_bytes(p, arg);
		to = hgj_record_call(p->record, call, arg, 5, n + bits, MOST_OF_A_SIDE);
		if (to == NULL)
			return false;
		memcpy(to, made->bytes, used);
		memcpy(to + n, made->bytes + n, bits);
		return true;
	}
	if (call == HGJ_CALL_PIPE_START)
		return arg[1] == 0 &&
			hgj_record_call(p->record, call, arg, 2, 0, MOST_OF_A_SIDE) != NULL;
	n = hgj_kept_words_at(arg[0], p->spec.ninputs) + arg[1] * sizeof(uint64_t);
	to = hgj_record_call(p->record, call, arg, 2, n, MOST_OF_A_SIDE);
	if (to == NULL)
		return false;
	memcpy(to, made->bytes, arg[0] * sizeof(uint32_t));
	rest = hgj_kept_inputs_at(arg[0]);
	memcpy(to + rest, made->bytes + rest, n - rest);
	return true;
}

/* ---- step 3: what has been recorded is done --------------------------------- */

/* The session holds the chunks of the call at hand, if that is of kept rows, and no others. */
static HgjStatus
repeat(HgjServed *served, HgjServedObject *p, const HgjSideCall *head, bool at_hand,
	   HgjError *err)
{
	Call		call = {head->arg, (const char *) (head + 1)};

	switch (head->call)
	{
		case HGJ_CALL_PIPE_CREATE:
			return create(served, p, err);
		case HGJ_CALL_PIPE_PAYLOAD:
			return payload(served, p, &call, err);
		case HGJ_CALL_PIPE_START:
			return start(served, p, &call, err);
		case HGJ_CALL_PIPE_KEPT:
			return push_kept(served, p, &call, !at_hand, err);
		default:
			return HGJ_OK;		/* about tables */
	}
}

/*
 * All of it, or the rest where the last try was cancelled.  The memory of kept rows of
 * earlier calls is not held by the session any more, so that copies on the device have to
 * do.  The last call may be said to be unsupported, when it has not been made; an earlier
 * one, which the session takes for made, may not.
 */
static HgjStatus
catch_up(HgjServed *served, HgjServedObject *p, HgjError *err)
{
	HgjSideRecord *record = p->record;

	p->catching_up = true;
	if (p->candidate != NULL)
		hgj_side_leave(p->candidate);
	p->candidate = NULL;
	while (p->repeated < record->n)
	{
		const HgjSideCall *head = (const HgjSideCall *) (record->bytes + p->repeated);
		size_t		end = p->repeated + sizeof(*head) + head->nbytes;
		bool		at_hand = end == record->n && p->last_at_hand;
		HgjStatus	status = repeat(served, p, head, at_hand, err);

		if (status == HGJ_CANCELLED)
			return status;
		if (status == HGJ_UNSUPPORTED && head->call == HGJ_CALL_PIPE_KEPT && at_hand)
		{
			record->n = p->repeated;
			p->deferred = p->catching_up = false;
			return status;
		}
		if (status != HGJ_OK)
		{
			p->broken = true;
			return status == HGJ_UNSUPPORTED && head->call == HGJ_CALL_PIPE_KEPT ?
				hgj_fail(err, HGJ_OUT_OF_MEMORY, "kept rows cannot be read any more") : status;
		}
		p->repeated = end;
	}
	p->deferred = p->catching_up = false;
	return HGJ_OK;
}

/*
 * A call of a pipeline that has not been created: recorded, and no more, as long as there
 * may be a side for it.  Sets *made if it is the caller's to make.
 */
static HgjStatus
defer(HgjServed *served, HgjServedObject *p, const Call *call, bool *made, HgjError *err)
{
	HgjCall		number = served->call->call;

	*made = false;
	if (p->catching_up)
	{
		/* the same call again, after it had been cancelled */
		*made = !p->last_at_hand;
		return catch_up(served, p, err);
	}
	p->last_at_hand = (number == HGJ_CALL_PIPE_PAYLOAD || number == HGJ_CALL_PIPE_START ||
					   number == HGJ_CALL_PIPE_KEPT) && note_call(p, number, call);
	if (p->last_at_hand && number == HGJ_CALL_PIPE_PAYLOAD)
		return HGJ_OK;
	if (p->last_at_hand)
	{
		p->candidate = hgj_side_find(p->record, p->candidate);
		if (p->candidate == NULL)
			return catch_up(served, p, err);
		served->call->result[0] = p->candidate->stage_rows;
		return HGJ_OK;
	}
	*made = true;
	return catch_up(served, p, err);
}

/* ---- step 2: a side for the pipeline and its table -------------------------- */

/* At its end: is the candidate what it would have been? */
static bool
adopt(HgjServed *served, HgjServedObject *p)
{
	HgjServedObject *table = hgj_served_find(served, p->numbers.fills, HGJ_SERVED_TABLE);

	if (p->catching_up || p->candidate == NULL || table == NULL || table->side != NULL ||
		!hgj_side_is_whole(p->candidate, p->record))
		return false;
	served->engine->table_destroy(table->it);
	hgj_side_hold(p->candidate);
	table->side = p->side = p->candidate;
	table->adopted = p->adopted = true;
	table->it = p->side->table;
	p->it = p->side->pipeline;
	p->candidate = NULL;
	p->deferred = false;
	p->finished = true;
	forget_record(p);
	served->call->result[0] = p->side->nrows;
	return true;
}

/* See serve.h. */
void
hgj_serve_keep_side(HgjServed *served, HgjServedObject *table)
{
	HgjServedObject *p = hgj_served_find(served, table->filler, HGJ_SERVED_PIPELINE);
	HgjMemory	memory;
	HgjSide		made = {.engine = served->engine,.table = table->it};
	uint64_t	bytes;

	if (p == NULL || !p->finished || p->record == NULL ||
		hgj_served_find(served, p->numbers.fills, HGJ_SERVED_TABLE) != table)
		return;
	made.pipeline = p->it;
	made.nrows = p->nrows;
	made.stage_rows = p->stage_rows;
	served->engine->memory(table->it, &memory);
	bytes = memory.current;
	for (uint32_t c = 0; c < p->spec.ncolumns; c++)
		bytes += p->nrows * hgj_kind_width(p->spec.kinds[c]) + p->nrows / 8;
	table->side = p->side = hgj_side_keep(&made, bytes, p->record);
	if (p->side != NULL)
		p->record = NULL;		/* it is the side's */
}

/* ---- calls of the session ------------------------------------------------- */

/* See serve.h. */
HgjStatus
hgj_serve_pipe_create(HgjServed *served, HgjError *err)
{
	const HgjCallPipeline *from = (const HgjCallPipeline *) served->bytes;
	HgjPipelineCaller caller;
	HgjServedObject *p;
	HgjServedObject *fills;

	if (served->nbytes < sizeof(HgjCallPipeline))
		return hgj_fail(err, HGJ_INVALID, "a call without its arrays");
	p = hgj_served_new(served, HGJ_SERVED_PIPELINE, err);
	if (p == NULL)
		return err->status;
	if (served->engine->pipeline == NULL)
		return hgj_fail(err, HGJ_UNSUPPORTED, "the engine has no pipelines");
	memcpy(&p->spec, &from->spec, sizeof(p->spec));	/* plans are compared as bytes */
	p->terms = from->terms;
	p->terms.timeout_ms = 0;	/* serve.c, step 5 */
	p->numbers = from->numbers;
	if (p->spec.fills && served->server->takes_kept && is_sound(&p->spec, &p->terms))
	{
		if (!find_tables(served, p, &caller, err))
			return err->status;
		p->record = hgj_record_new();
		if (p->record != NULL && !note_create(served, p))
			forget_record(p);
		fills = hgj_served_find(served, p->numbers.fills, HGJ_SERVED_TABLE);
		fills->filler = served->call->object;
		forget_record(fills);	/* its rows do not come from the session any more */
	}
	p->deferred = p->record != NULL;
	if (p->deferred)
	{
		served->known = true;
		return HGJ_OK;
	}
	return create(served, p, err);
}

/* Step 1: columns stand one behind the other, each with room for as many rows; false: not there. */
static bool
find_columns(HgjServed *served, const HgjServedObject *p, HgjPipeStage *from)
{
	const uint64_t *arg = served->call->arg;
	size_t		area = hgj_channel_bytes(served->server, served->channel);
	size_t		at = arg[0];

	if (arg[0] > area || arg[1] > area || arg[2] > arg[1])
		return false;
	from->capacity = (uint32_t) arg[1];
	for (uint32_t i = 0; i < p->spec.ninputs; i++)
	{
		size_t		values = arg[1] * hgj_kind_width(p->spec.inputs[i]);

		if (at + values + arg[1] / 8 > area)
			return false;
		from->values[i] = served->scratch + at;
		from->validity[i] = (uint64_t *) (served->scratch + at + values);
		at += values + arg[1] / 8;
	}
	return true;
}

/* Step 1: n rows, by way of the engine's own staging buffer. */
static HgjStatus
push_copy(HgjServed *served, HgjServedObject *p, const HgjPipeStage *from, uint32_t n,
		  uint64_t nulls, HgjError *err)
{
	HgjStatus	status = stage(served, p, err);

	if (status != HGJ_OK)
		return status;
	if (n > p->stage.capacity)
		return hgj_fail(err, HGJ_INVALID, "more rows than the engine takes at once");
	for (uint32_t i = 0; i < p->spec.ninputs; i++)
	{
		memcpy(p->stage.values[i], from->values[i], n * hgj_kind_width(p->spec.inputs[i]));
		if (nulls & (UINT64_C(1) << i))
			memcpy(p->stage.validity[i], from->validity[i], ((size_t) n + 63) / 64 * 8);
	}
	p->staged = false;
	return served->engine->pipeline->push(p->it, n, nulls, err);
}

static HgjStatus
pipe_push(HgjServed *served, HgjServedObject *p, HgjError *err)
{
	const HgjPipelineMethods *methods = served->engine->pipeline;
	uint32_t	n = (uint32_t) served->call->arg[2];
	uint64_t	nulls = served->call->arg[3];
	HgjStatus	status = HGJ_UNSUPPORTED;
	HgjPipeStage from;

	if (!find_columns(served, p, &from))
		return hgj_fail(err, HGJ_INVALID, "a buffer that is not the channel's");
	if (methods->push_from != NULL && !p->staged)
		status = methods->push_from(p->it, &from, n, nulls, err);
	if (status == HGJ_UNSUPPORTED)
		status = push_copy(served, p, &from, n, nulls, err);
	p->fetched = false;
	return status;
}

/* So many of the rows that the engine has returned as the scratch holds. */
static HgjStatus
pipe_fetch(HgjServed *served, HgjServedObject *p, HgjError *err)
{
	HgjLetterCall *call = served->call;
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
	call->result[0] = n;
	call->result[1] = p->rows.last && p->gone == p->rows.n;
	if (p->gone == p->rows.n)
		p->fetched = false;
	return HGJ_OK;
}

/* What it has counted; what an adopted one has had a device do was another query's. */
static void
info(HgjServed *served, const HgjServedObject *p)
{
	HgjPipelineInfo *said = (HgjPipelineInfo *) served->scratch;

	served->engine->pipeline->info(p->it, said);
	if (!p->adopted)
		return;
	said->sent = 0;
	said->transfer_ms = said->kernel_ms = 0;
	said->threads = 0;
	said->most_rows = 0;
}

/* Step 5: the first groups, as many as the scratch holds behind `info`. */
static HgjStatus
first_groups(HgjServed *served, const HgjServedObject *p, uint64_t n, HgjError *err)
{
	size_t		row = (1 + p->spec.nkeys + p->spec.nwords) * sizeof(uint64_t);
	uint64_t	most = (HGJ_SCRATCH_BYTES - sizeof(HgjPipelineInfo)) / row;

	n = n < most ? n : most;
	served->call->result[1] = n;
	return n == 0 ? HGJ_OK :
		served->engine->pipeline->groups(p->it, 0, n,
										 (uint64_t *) (served->scratch + sizeof(HgjPipelineInfo)),
										 err);
}

/* Rows of the table are recorded with what they have been made of. */
static HgjStatus
finish(HgjServed *served, HgjServedObject *p, HgjError *err)
{
	uint64_t   *nrows = &served->call->result[0];
	HgjStatus	status = p->finished ? HGJ_OK :
		served->engine->pipeline->finish(p->it, &p->nrows, err);

	if (status != HGJ_OK)
		return status;
	p->finished = true;
	*nrows = p->nrows;
	info(served, p);
	return p->spec.fills ? HGJ_OK : first_groups(served, p, *nrows, err);
}

/* Calls that a record may have, of a pipeline that is there. */
static HgjStatus
make_recorded(HgjServed *served, HgjServedObject *p, const Call *call, HgjError *err)
{
	HgjCall		number = served->call->call;
	HgjStatus	status = number == HGJ_CALL_PIPE_PAYLOAD ? payload(served, p, call, err) :
		number == HGJ_CALL_PIPE_START ? start(served, p, call, err) :
		push_kept(served, p, call, false, err);

	if (status == HGJ_OK && p->record != NULL && !note_call(p, number, call))
		forget_record(p);
	return status;
}

/* May the numbers be what they say?  Of calls that may be recorded. */
static HgjStatus
check_call(HgjServed *served, const HgjServedObject *p, HgjError *err)
{
	const HgjLetterCall *call = served->call;

	if (call->call == HGJ_CALL_PIPE_PAYLOAD)
		return check_payload(served, p, err);
	if (call->call == HGJ_CALL_PIPE_START && call->arg[1] &&
		p->spec.nkeys * sizeof(HgjPipeRange) > served->nbytes)
		return hgj_fail(err, HGJ_INVALID, "fewer ranges than keys");
	if (call->call != HGJ_CALL_PIPE_KEPT)
		return HGJ_OK;
	if (!served->server->takes_kept)
		return hgj_fail(err, HGJ_UNSUPPORTED, "no columns are kept");
	if (call->arg[0] == 0 || call->arg[0] > HGJ_KEPT_PIECES || call->arg[1] > HGJ_KEPT_WORDS ||
		hgj_kept_words_at(call->arg[0], p->spec.ninputs) + call->arg[1] * sizeof(uint64_t) >
		served->nbytes)
		return hgj_fail(err, HGJ_INVALID, "other pieces than have come");
	return HGJ_OK;
}

static HgjStatus
call_of_pipeline(HgjServed *served, HgjServedObject *p, HgjError *err)
{
	const HgjPipelineMethods *methods = served->engine->pipeline;
	const HgjLetterCall *at_hand = served->call;
	size_t		row = (1 + p->spec.nkeys + p->spec.nwords) * sizeof(uint64_t);
	Call		call = {at_hand->arg, served->bytes};

	switch (at_hand->call)
	{
		case HGJ_CALL_PIPE_PAYLOAD:
		case HGJ_CALL_PIPE_START:
		case HGJ_CALL_PIPE_KEPT:
			return make_recorded(served, p, &call, err);
		case HGJ_CALL_PIPE_PUSH:
			if (at_hand->arg[2] > 0)
				forget_record(p);	/* step 4 */
			return pipe_push(served, p, err);
		case HGJ_CALL_PIPE_FETCH:
			return pipe_fetch(served, p, err);
		case HGJ_CALL_PIPE_FINISH:
			return finish(served, p, err);
		case HGJ_CALL_PIPE_GROUPS:
			if (at_hand->arg[1] > HGJ_SCRATCH_BYTES / row)
				return hgj_fail(err, HGJ_INVALID, "more groups than the channel holds");
			return methods->groups(p->it, at_hand->arg[0], at_hand->arg[1],
								   (uint64_t *) served->scratch, err);
		default:
			info(served, p);
			return HGJ_OK;
	}
}

/* What is not there, or is a side that stays, reads nothing of the session's. */
static void
wait_for_reads(const HgjServed *served, const HgjServedObject *p)
{
	void		(*kept_read) (HgjPipeline *) = served->engine->pipeline->kept_read;

	if (kept_read != NULL && p->it != NULL && p->side == NULL)
		kept_read(p->it);
}

/* See serve.h. */
HgjStatus
hgj_serve_pipeline(HgjServed *served, HgjServedObject *p, HgjError *err)
{
	Call		call = {served->call->arg, served->bytes};
	bool		made = true;
	HgjStatus	status = check_call(served, p, err);

	if (status != HGJ_OK)
		return status;
	if (served->call->call == HGJ_CALL_PIPE_READ)
	{
		wait_for_reads(served, p);
		return HGJ_OK;
	}
	if (served->call->call == HGJ_CALL_PIPE_INFO && (p->deferred || p->broken))
	{
		/* of what is about to be destroyed, as a rule: it has done nothing */
		memset(served->scratch, 0, sizeof(HgjPipelineInfo));
		return HGJ_OK;
	}
	if (p->broken)
		return hgj_fail(err, HGJ_INVALID, "the pipeline has failed");
	if (p->side != NULL && served->call->call != HGJ_CALL_PIPE_INFO)
		return hgj_fail(err, HGJ_INVALID, "a build side that stays is only read");
	if (p->deferred && served->call->call == HGJ_CALL_PIPE_FINISH && adopt(served, p))
	{
		info(served, p);
		return HGJ_OK;
	}
	if (p->deferred)
		status = defer(served, p, &call, &made, err);
	return made && status == HGJ_OK ? call_of_pipeline(served, p, err) : status;
}
