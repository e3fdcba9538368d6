/*-------------------------------------------------------------------------
 *
 * client_pipeline.c
 *	  Pipelines of the engine whose calls are made in the GPU process.
 *
 * 1. A plan and its terms are numbers only, and tables are sent by theirs (pipeline.h).
 * 2. What creates and starts a pipeline, and columns of build sides, are not waited for: they go
 *	  with the first rows, or with finish.  Whether kept rows are for the pipeline is known when
 *	  the first ones have been pushed.
 * 3. A pipeline has two staging buffers in the channel's memory, of as many rows as the
 *	  engine's own ones have, or as there is room for, from the first row on that is staged.  The
 *	  caller fills one while the GPU process copies the other: a push is not waited for, and what
 *	  it came to is the outcome of the next call.
 *	  Rows that are kept in memory go without: the GPU process reads them there, and they
 *	  are not waited for, either, nor is, when it has answered, that it has read them.
 * 4. The answer to finish has what the pipeline has counted, which is final, and the first groups.
 * 5. Payload columns go, and group rows and rows that come out come, in portions.
 *
 * Memory: malloc, from create to destroy (engine.h); rows and groups that have come are copied, as
 * an answer stays only until the next call.  Locks: none.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "engine/checks.h"
#include "server/client.h"

StaticAssertDecl(HGJ_KEPT_PIECES * (sizeof(uint32) + HGJ_PIPE_INPUTS * sizeof(HgjKeptInput)) +
				 HGJ_KEPT_WORDS * sizeof(uint64) <= HGJ_SCRATCH_BYTES,
				 "a letter has no room for the pieces of a push");

/* Rows of a staging buffer: fewer are not worth a pipeline. */
#define LEAST_STAGE_ROWS	1024

StaticAssertDecl((HGJ_BACK_BYTES - HGJ_STAGING_AT) / 2 >=
				 LEAST_STAGE_ROWS / 64 * HGJ_PIPE_INPUTS * (64 * sizeof(uint64) + 8) + 64,
				 "a channel behind the first ones has no room for a pipeline");

/* So many rows come out in one answer (serve.c). */
#define MOST_FETCHED		(HGJ_SCRATCH_BYTES / sizeof(uint32) / (1 + HGJ_PIPE_JOINS))

struct HgjPipeline
{
	HgjRemote	remote;
	HgjPipelineSpec spec;
	uint32		stage_rows;		/* of the engine's own staging buffers, once it is started */
	size_t		buffers[2];		/* in the channel's memory, or 0 */
	int			next;			/* the one that the caller fills */
	uint32		capacity;		/* rows of each */
	uint32	   *fetched;		/* spec.rows: (1 + njoins) times MOST_FETCHED */
	uint64	   *groups;			/* the first groups, or NULL */
	uint64		ngroups;		/* number of these */
	bool		is_final;		/* step 4: what it has counted is known: */
	HgjPipelineInfo info;
};

static void
free_buffers(HgjPipeline *pipeline)
{
	for (int i = 0; i < 2; i++)
	{
		if (pipeline->buffers[i])
			hgj_channel_free(&pipeline->remote, pipeline->buffers[i]);
		pipeline->buffers[i] = 0;
	}
}

static void
pipe_destroy(HgjPipeline *pipeline)
{
	if (pipeline == NULL)
		return;
	hgj_channel_destroy(&pipeline->remote, true);
	free_buffers(pipeline);
	hgj_channel_end_use(&pipeline->remote);
	free(pipeline->fetched);
	free(pipeline->groups);
	free(pipeline);
}

/* The number of what the pipeline stands on; *good is cleared if it has gone. */
static uint32
number_of(const HgjPipeline *made, const HgjRemote *remote, bool *good)
{
	if (remote == NULL)
		return HGJ_NO_OBJECT;
	*good = *good && remote->epoch == made->remote.epoch;
	return remote->number;
}

/* Steps 1 and 2.  Nothing has been written unless it is HGJ_OK. */
static HgjStatus
write_plan(HgjPipeline *made, const HgjPipelineCaller *caller, HgjError *err)
{
	HgjLetterCall *call;
	HgjCallPipeline *sent;
	HgjCallTables numbers;
	bool		good = true;

	for (uint32 j = 0; j < HGJ_PIPE_JOINS; j++)
	{
		bool		joins = j < made->spec.njoins;

		numbers.tables[j] = number_of(made, joins ? hgj_remote_table(caller->tables[j]) : NULL,
									  &good);
		numbers.filled[j] = number_of(made, joins && caller->filled[j] ?
									  &caller->filled[j]->remote : NULL, &good);
	}
	numbers.fills = number_of(made, made->spec.fills ? hgj_remote_table(caller->fills) : NULL,
							  &good);
	if (!good)
		return hgj_fail(err, HGJ_DEVICE_LOST, "a table has gone with the GPU process");
	call = hgj_letter_call(&made->remote, HGJ_CALL_PIPE_CREATE, sizeof(HgjCallPipeline), err);
	if (call == NULL)
		return err->status;
	sent = (HgjCallPipeline *) hgj_call_bytes(call);
	memcpy(&sent->spec, &made->spec, sizeof(sent->spec));
	memset(&sent->terms, 0, sizeof(sent->terms));
	if (caller->terms)
		sent->terms = *caller->terms;
	sent->numbers = numbers;
	return HGJ_OK;
}

static HgjStatus
pipe_create(const HgjPipelineSpec *spec, const HgjPipelineCaller *caller,
			HgjPipeline **pipeline, HgjError *err)
{
	HgjPipeline *made = hgj_channel_begin_use(sizeof(HgjPipeline), caller->poll,
											  caller->poll_arg, err);
	HgjStatus	status;

	*pipeline = NULL;
	if (made == NULL)
		return err->status;
	if (spec->fills)
		hgj_remote_is_filled(caller->fills);
	memcpy(&made->spec, spec, sizeof(*spec));	/* plans are compared as bytes */
	if (spec->rows)
		made->fetched = malloc((1 + (Size) spec->njoins) * MOST_FETCHED * sizeof(uint32));
	status = made->fetched || !spec->rows ? write_plan(made, caller, err) :
		hgj_fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	if (status != HGJ_OK)
	{
		hgj_channel_end_use(&made->remote);
		free(made->fetched);
		free(made);
		return status;
	}
	*pipeline = made;
	return HGJ_OK;
}

/* Step 5.  A portion begins at a multiple of 64 rows, as the bits of validity do. */
static HgjStatus
pipe_payload(HgjPipeline *pipeline, uint32 join, uint32 column, uint32 first,
			 uint32 n, const void *values, const uint64 *validity, HgjError *err)
{
	size_t		width = hgj_kind_width(pipeline->spec.joins[join].kinds[column]);
	uint32		most = (HGJ_SCRATCH_BYTES - 64) / (width * 64 + 8) * 64;

	for (uint32 done = 0; done < n; done += most)
	{
		uint32		some = Min(n - done, most);
		size_t		bytes = (some * width + 7) / 8 * 8;
		size_t		bits = validity ? (some + 63) / 64 * sizeof(uint64) : 0;
		HgjLetterCall *call = hgj_letter_call(&pipeline->remote, HGJ_CALL_PIPE_PAYLOAD,
											  bytes + bits, err);

		if (call == NULL)
			return err->status;
		memcpy(hgj_call_bytes(call), (const char *) values + done * width, some * width);
		if (validity)
			memcpy(hgj_call_bytes(call) + bytes, validity + done / 64, bits);
		call->arg[0] = join;
		call->arg[1] = column;
		call->arg[2] = first + done;
		call->arg[3] = some;
		call->arg[4] = validity != NULL;
	}
	return HGJ_OK;
}

/* Bytes of a staging buffer for 64 rows. */
static size_t
bytes_of_64(const HgjPipelineSpec *spec)
{
	size_t		bytes = 0;

	for (uint32 i = 0; i < spec->ninputs; i++)
		bytes += 64 * hgj_kind_width(spec->inputs[i]) + 8;
	return bytes;
}

/* Step 3: make buffers of at most `most` rows, as many as the engine's have. */
static HgjStatus
make_buffers(HgjPipeline *pipeline, uint32 most, HgjError *err)
{
	size_t		row = Max(bytes_of_64(&pipeline->spec), 1);
	size_t		rows = hgj_channel_largest() / 2 / row;

	/* what is rounded up to a cache line */
	rows = (rows > 1 ? rows - 1 : 0) * 64;
	pipeline->capacity = (uint32) Min(rows, (size_t) most) / 64 * 64;
	if (pipeline->capacity == 0 || pipeline->capacity < Min(LEAST_STAGE_ROWS, most / 64 * 64))
		return hgj_fail(err, HGJ_OUT_OF_MEMORY, "the channel of the GPU process has no room for rows");
	for (int i = 0; i < 2; i++)
	{
		pipeline->buffers[i] = hgj_channel_alloc(pipeline->capacity / 64 * row);
		if (pipeline->buffers[i] == 0)
			return hgj_fail(err, HGJ_OUT_OF_MEMORY, "the channel of the GPU process has no room for rows");
	}
	return HGJ_OK;
}

/* HgjAnswered of START. */
static void
note_start(HgjRemote *owner, const HgjLetterCall *answer)
{
	((HgjPipeline *) owner)->stage_rows = (uint32) answer->result[0];
}

/* Step 2. */
static HgjStatus
pipe_start(HgjPipeline *pipeline, const HgjPipeRange *ranges, uint64 expected,
		   HgjError *err)
{
	size_t		bytes = ranges ? pipeline->spec.nkeys * sizeof(HgjPipeRange) : 0;
	HgjLetterCall *call = hgj_letter_call(&pipeline->remote, HGJ_CALL_PIPE_START, bytes, err);

	if (call == NULL)
		return err->status;
	if (ranges)
		memcpy(hgj_call_bytes(call), ranges, bytes);
	call->arg[0] = expected;
	call->arg[1] = ranges != NULL;
	hgj_letter_tell(note_start);
	return HGJ_OK;
}

/* Step 3: the buffer that is not on its way. */
static HgjStatus
pipe_stage(HgjPipeline *pipeline, HgjPipeStage *stage, HgjError *err)
{
	char	   *at;

	if (pipeline->buffers[0] == 0)
	{
		HgjStatus	status = hgj_letter_flush(&pipeline->remote, err);

		if (status == HGJ_OK)
			status = make_buffers(pipeline, pipeline->stage_rows, err);
		if (status != HGJ_OK)
			return status;
	}
	if (hgj_channel_is_lost(&pipeline->remote))
		return hgj_fail(err, HGJ_DEVICE_LOST, "the GPU process has ended");
	if (pipeline->remote.failed != HGJ_OK)
	{
		*err = pipeline->remote.error;
		return pipeline->remote.failed;
	}
	at = hgj_channel_scratch() + pipeline->buffers[pipeline->next];
	stage->capacity = pipeline->capacity;
	for (uint32 i = 0; i < pipeline->spec.ninputs; i++)
	{
		stage->values[i] = at;
		at += pipeline->capacity * hgj_kind_width(pipeline->spec.inputs[i]);
		stage->validity[i] = (uint64 *) at;
		at += pipeline->capacity / 8;
	}
	return HGJ_OK;
}

static HgjStatus
pipe_push(HgjPipeline *pipeline, uint32 n, uint64 nulls, HgjError *err)
{
	HgjLetterCall *call = hgj_letter_call(&pipeline->remote, HGJ_CALL_PIPE_PUSH, 0, err);

	if (call == NULL)
		return err->status;
	call->arg[0] = pipeline->buffers[pipeline->next];
	call->arg[1] = pipeline->capacity;
	call->arg[2] = n;
	call->arg[3] = nulls;
	hgj_letter_post();
	pipeline->next ^= 1;
	return HGJ_OK;
}

/* Pieces are numbers only, too; the GPU process has the same memory. */
static HgjStatus
pipe_push_kept(HgjPipeline *pipeline, const HgjKeptPush *rows, HgjError *err)
{
	uint32		n = rows->npieces;
	uint32		ninputs = pipeline->spec.ninputs;
	HgjLetterCall *call;
	char	   *to;

	hgj_letter_is_to_read(&pipeline->remote);
	call = hgj_letter_call(&pipeline->remote, HGJ_CALL_PIPE_KEPT,
						   hgj_kept_words_at(n, ninputs) + rows->nwords * sizeof(uint64), err);
	if (call == NULL)
		return err->status;
	to = hgj_call_bytes(call);
	memcpy(to, rows->nrows, n * sizeof(uint32));
	memcpy(to + hgj_kept_inputs_at(n), rows->inputs,
		   (Size) n * ninputs * sizeof(HgjKeptInput));
	if (rows->nwords > 0)
		memcpy(to + hgj_kept_words_at(n, ninputs), rows->words,
			   rows->nwords * sizeof(uint64));
	call->arg[0] = n;
	call->arg[1] = rows->nwords;
	hgj_letter_post_reader(&pipeline->remote, !pipeline->spec.rows);
	return HGJ_OK;
}

static HgjStatus
pipe_kept_outcome(HgjPipeline *pipeline, HgjError *err)
{
	return hgj_letter_settle(&pipeline->remote, err);
}

static HgjStatus
pipe_fetch(HgjPipeline *pipeline, HgjPipeRows *rows, HgjError *err)
{
	const HgjLetterCall *answer;
	HgjStatus	status = hgj_letter_ask(&pipeline->remote, HGJ_CALL_PIPE_FETCH, 0, 0, &answer,
										err);

	if (status != HGJ_OK)
		return status;
	rows->n = (uint32) answer->result[0];
	rows->last = answer->result[1] != 0;
	memcpy(pipeline->fetched, hgj_channel_scratch(),
		   (size_t) rows->n * (1 + pipeline->spec.njoins) * sizeof(uint32));
	rows->input = pipeline->fetched;
	for (uint32 j = 0; j < pipeline->spec.njoins; j++)
		rows->row[j] = pipeline->fetched + (size_t) (j + 1) * rows->n;
	return HGJ_OK;
}

/* Step 4: the first groups have come, unless there is no memory for them here. */
static void
keep_groups(HgjPipeline *pipeline, uint64 n)
{
	size_t		words = 1 + pipeline->spec.nkeys + pipeline->spec.nwords;

	if (n > 0)
		pipeline->groups = malloc(n * words * sizeof(uint64));
	pipeline->ngroups = pipeline->groups ? n : 0;
	if (pipeline->groups)
		memcpy(pipeline->groups, hgj_channel_scratch() + sizeof(HgjPipelineInfo),
			   n * words * sizeof(uint64));
}

static HgjStatus
pipe_finish(HgjPipeline *pipeline, uint64 *ngroups, HgjError *err)
{
	const HgjLetterCall *answer;
	HgjStatus	status = hgj_letter_ask(&pipeline->remote, HGJ_CALL_PIPE_FINISH, 0, 0, &answer,
										err);

	if (status != HGJ_OK)
		return status;
	*ngroups = answer->result[0];
	memcpy(&pipeline->info, hgj_channel_scratch(), sizeof(pipeline->info));
	pipeline->is_final = true;
	keep_groups(pipeline, answer->result[1]);
	hgj_letter_has_read(&pipeline->remote);
	if (pipeline->spec.fills)
		free_buffers(pipeline);	/* it stays, and others need the room */
	return HGJ_OK;
}

/* Of so many chunks as one call takes. */
static HgjStatus
ask_kept_bytes(HgjRemote *remote, const uint64 *ids, uint64 n, uint64 *bytes, HgjError *err)
{
	HgjLetterCall *call = hgj_letter_call(remote, HGJ_CALL_KEPT_BYTES, n * sizeof(uint64), err);
	HgjStatus	status;

	if (call == NULL)
		return err->status;
	call->arg[0] = n;
	memcpy(hgj_call_bytes(call), ids, n * sizeof(uint64));
	status = hgj_letter_send(remote, err);
	if (status == HGJ_OK)
		memcpy(bytes, hgj_channel_scratch(), n * sizeof(uint64));
	return status;
}

/* Nothing of the session's needs to be there. */
static HgjStatus
pipe_kept_bytes(const HgjPipelineCaller *caller, const uint64 *ids, uint64 n, uint64 *bytes,
				HgjError *err)
{
	HgjStatus	status = HGJ_OK;
	HgjRemote  *remote = hgj_channel_begin_use(sizeof(HgjRemote), caller->poll,
											   caller->poll_arg, err);

	if (remote == NULL)
		return err->status;
	for (uint64 done = 0; done < n && status == HGJ_OK; done += HGJ_CALL_IDS)
		status = ask_kept_bytes(remote, ids + done, Min(n - done, HGJ_CALL_IDS),
								bytes + done, err);
	hgj_channel_end_use(remote);
	free(remote);
	return status;
}

/* Steps 4 and 5 */
static HgjStatus
pipe_groups(HgjPipeline *pipeline, uint64 first, uint64 n, uint64 *rows, HgjError *err)
{
	size_t		words = 1 + pipeline->spec.nkeys + pipeline->spec.nwords;
	uint64		most = HGJ_SCRATCH_BYTES / (words * sizeof(uint64));
	uint64		done = first < pipeline->ngroups ? Min(n, pipeline->ngroups - first) : 0;
	uint64		some;

	if (done > 0)
		memcpy(rows, pipeline->groups + first * words, done * words * sizeof(uint64));
	for (; done < n; done += some)
	{
		HgjStatus	status;

		some = Min(n - done, most);
		status = hgj_letter_ask(&pipeline->remote, HGJ_CALL_PIPE_GROUPS, first + done, some,
								NULL, err);
		if (status != HGJ_OK)
			return status;
		memcpy(rows + done * words, hgj_channel_scratch(), some * words * sizeof(uint64));
	}
	return HGJ_OK;
}

static void
pipe_info(const HgjPipeline *pipeline, HgjPipelineInfo *info)
{
	HgjRemote	remote = pipeline->remote;

	if (pipeline->is_final)
	{
		*info = pipeline->info;
		return;
	}
	remote.failed = HGJ_OK;		/* what it has done is wanted all the same */
	hgj_letter_fetch(remote, HGJ_CALL_PIPE_INFO, info, sizeof(*info));
}

/* See client.h. */
const HgjPipelineMethods *
hgj_server_pipelines(const HgjServer *server)
{
	static HgjPipelineMethods methods = {
		.create = pipe_create,
		.destroy = pipe_destroy,
		.payload = pipe_payload,
		.start = pipe_start,
		.stage = pipe_stage,
		.push = pipe_push,
		.finish = pipe_finish,
		.groups = pipe_groups,
		.info = pipe_info
	};

	methods.fetch = server->returns_rows ? pipe_fetch : NULL;
	methods.push_kept = server->takes_kept ? pipe_push_kept : NULL;
	methods.kept_outcome = server->takes_kept ? pipe_kept_outcome : NULL;
	methods.kept_bytes = server->copies ? pipe_kept_bytes : NULL;
	methods.fills = server->fills;
	return &methods;
}
