/*-------------------------------------------------------------------------
 *
 * client_pipeline.c
 *	  Pipelines of the engine whose calls are made in the GPU process.
 *
 * 1. The spec is numbers only, and tables are sent by theirs (pipeline.h).
 * 2. A pipeline has two staging buffers in the channel's memory, of as many rows as the
 *	  engine's own ones have, or as there is room for.  The caller fills one while the
 *	  GPU process copies the other: a push is not waited for, and what it came to is the
 *	  outcome of the next call.
 *	  Rows that are kept in memory go without: the GPU process reads them there, and they
 *	  are not waited for, either, nor is, when it has answered, that it has read them.
 * 3. Payload columns, group rows and rows that come out go through the scratch, in
 *	  portions.
 *
 * Memory: malloc, from create to destroy (engine.h); rows that were fetched stay in the
 * scratch only until the next call, so that they are copied.  Locks: none.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "engine/checks.h"
#include "server/client.h"

StaticAssertDecl(HGJ_KEPT_PIECES * (sizeof(uint32) + HGJ_PIPE_INPUTS * sizeof(HgjKeptInput)) +
				 HGJ_KEPT_WORDS * sizeof(uint64) <= HGJ_SCRATCH_BYTES,
				 "the scratch has no room for the pieces of a push");

/* Rows of a staging buffer: fewer are not worth a pipeline. */
#define LEAST_STAGE_ROWS	1024

StaticAssertDecl((HGJ_BACK_BYTES - HGJ_SCRATCH_BYTES) / 2 >=
				 LEAST_STAGE_ROWS / 64 * HGJ_PIPE_INPUTS * (64 * sizeof(uint64) + 8) + 64,
				 "a channel behind the first ones has no room for a pipeline");

/* So many rows come out in one answer (serve.c). */
#define MOST_FETCHED		(HGJ_SCRATCH_BYTES / sizeof(uint32) / (1 + HGJ_PIPE_JOINS))

struct HgjPipeline
{
	HgjRemote	remote;
	HgjPipelineSpec spec;
	size_t		buffers[2];		/* in the channel's memory, or 0 */
	int			next;			/* the one that the caller fills */
	uint32		capacity;		/* rows of each */
	uint32	   *fetched;		/* spec.rows: (1 + njoins) times MOST_FETCHED */
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

/* Step 1. */
static HgjStatus
send_spec(HgjPipeline *made, const HgjPipelineCaller *caller, HgjError *err)
{
	HgjChannel *channel = hgj_channel_request(&made->remote, err);
	HgjCallTables numbers;
	bool		good = true;
	HgjStatus	status;

	if (channel == NULL)
		return err->status;
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
	memcpy(hgj_channel_scratch(), &made->spec, sizeof(made->spec));
	memcpy(hgj_channel_scratch() + sizeof(made->spec), &numbers, sizeof(numbers));
	status = hgj_channel_call(&made->remote, HGJ_CALL_PIPE_CREATE, err);
	if (status == HGJ_OK)
		made->remote.number = (uint32) channel->result[0];
	return status;
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
		hgj_remote_is_used(caller->fills);
	made->spec = *spec;
	if (spec->rows)
		made->fetched = malloc((1 + (Size) spec->njoins) * MOST_FETCHED * sizeof(uint32));
	status = made->fetched || !spec->rows ? send_spec(made, caller, err) :
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

/* Step 3.  A portion begins at a multiple of 64 rows, as the bits of validity do. */
static HgjStatus
pipe_payload(HgjPipeline *pipeline, uint32 join, uint32 column, uint32 first,
			 uint32 n, const void *values, const uint64 *validity, HgjError *err)
{
	size_t		width = hgj_kind_width(pipeline->spec.joins[join].kinds[column]);
	uint32		most = (HGJ_SCRATCH_BYTES - 64) / (width * 64 + 8) * 64;
	HgjStatus	status = HGJ_OK;

	for (uint32 done = 0; done < n && status == HGJ_OK; done += most)
	{
		uint32		some = Min(n - done, most);
		HgjChannel *channel = hgj_channel_request(&pipeline->remote, err);
		char	   *scratch;

		if (channel == NULL)
			return err->status;
		scratch = hgj_channel_scratch();
		memcpy(scratch, (const char *) values + done * width, some * width);
		if (validity)
			memcpy(scratch + (some * width + 7) / 8 * 8, validity + done / 64,
				   (some + 63) / 64 * sizeof(uint64));
		channel->arg[0] = join;
		channel->arg[1] = column;
		channel->arg[2] = first + done;
		channel->arg[3] = some;
		channel->arg[4] = validity != NULL;
		status = hgj_channel_call(&pipeline->remote, HGJ_CALL_PIPE_PAYLOAD, err);
	}
	return status;
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

/* Step 2: of at most so many rows, as the engine's are. */
static HgjStatus
make_buffers(HgjPipeline *pipeline, uint32 most, HgjError *err)
{
	size_t		row = Max(bytes_of_64(&pipeline->spec), 1);
	size_t		rows = hgj_channel_largest() / 2 / row;

	/* what is rounded up to a cache line */
	rows = (rows > 1 ? rows - 1 : 0) * 64;
	pipeline->capacity = (uint32) Min(rows, (size_t) most) / 64 * 64;
	if (pipeline->capacity < Min(LEAST_STAGE_ROWS, most / 64 * 64))
		return hgj_fail(err, HGJ_OUT_OF_MEMORY, "the channel of the GPU process has no room for rows");
	for (int i = 0; i < 2; i++)
	{
		pipeline->buffers[i] = hgj_channel_alloc(pipeline->capacity / 64 * row);
		if (pipeline->buffers[i] == 0)
			return hgj_fail(err, HGJ_OUT_OF_MEMORY, "the channel of the GPU process has no room for rows");
	}
	return HGJ_OK;
}

static HgjStatus
pipe_start(HgjPipeline *pipeline, const HgjPipeRange *ranges, uint64 expected,
		   HgjError *err)
{
	HgjChannel *channel = hgj_channel_request(&pipeline->remote, err);
	HgjStatus	status;

	if (channel == NULL)
		return err->status;
	if (ranges)
		memcpy(hgj_channel_scratch(), ranges, pipeline->spec.nkeys * sizeof(HgjPipeRange));
	channel->arg[0] = expected;
	channel->arg[1] = ranges != NULL;
	status = hgj_channel_call(&pipeline->remote, HGJ_CALL_PIPE_START, err);
	if (status != HGJ_OK)
		return status;
	return make_buffers(pipeline, (uint32) channel->result[0], err);
}

/* The buffer that is not on its way. */
static HgjStatus
pipe_stage(HgjPipeline *pipeline, HgjPipeStage *stage, HgjError *err)
{
	char	   *at;

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
	HgjChannel *channel = hgj_channel_request(&pipeline->remote, err);

	if (channel == NULL)
		return err->status;
	channel->arg[0] = pipeline->buffers[pipeline->next];
	channel->arg[1] = pipeline->capacity;
	channel->arg[2] = n;
	channel->arg[3] = nulls;
	hgj_channel_post(&pipeline->remote, HGJ_CALL_PIPE_PUSH);
	pipeline->next ^= 1;
	return HGJ_OK;
}

/* Pieces are numbers only, too; the GPU process has the same memory. */
static HgjStatus
pipe_push_kept(HgjPipeline *pipeline, const HgjKeptPush *rows, HgjError *err)
{
	HgjChannel *channel = hgj_channel_request(&pipeline->remote, err);
	uint32		n = rows->npieces;
	uint32		ninputs = pipeline->spec.ninputs;
	char	   *to;

	if (channel == NULL)
		return err->status;
	to = hgj_channel_scratch();
	if (n > 0)
	{
		memcpy(to, rows->nrows, n * sizeof(uint32));
		memcpy(to + hgj_kept_inputs_at(n), rows->inputs,
			   (Size) n * ninputs * sizeof(HgjKeptInput));
	}
	if (rows->nwords > 0)
		memcpy(to + hgj_kept_words_at(n, ninputs), rows->words,
			   rows->nwords * sizeof(uint64));
	channel->arg[0] = n;
	channel->arg[1] = rows->nwords;
	if (n == 0)
		return hgj_channel_call(&pipeline->remote, HGJ_CALL_PIPE_KEPT, err);
	hgj_channel_post_reader(&pipeline->remote, HGJ_CALL_PIPE_KEPT, !pipeline->spec.rows);
	return HGJ_OK;
}

static HgjStatus
pipe_kept_outcome(HgjPipeline *pipeline, HgjError *err)
{
	return hgj_channel_settle(&pipeline->remote, err);
}

static HgjStatus
pipe_fetch(HgjPipeline *pipeline, HgjPipeRows *rows, HgjError *err)
{
	HgjChannel *channel;
	HgjStatus	status = hgj_channel_ask(&pipeline->remote, HGJ_CALL_PIPE_FETCH, 0, 0,
										 &channel, err);

	if (status != HGJ_OK)
		return status;
	rows->n = (uint32) channel->result[0];
	rows->last = channel->result[1] != 0;
	memcpy(pipeline->fetched, hgj_channel_scratch(),
		   (size_t) rows->n * (1 + pipeline->spec.njoins) * sizeof(uint32));
	rows->input = pipeline->fetched;
	for (uint32 j = 0; j < pipeline->spec.njoins; j++)
		rows->row[j] = pipeline->fetched + (size_t) (j + 1) * rows->n;
	return HGJ_OK;
}

static HgjStatus
pipe_finish(HgjPipeline *pipeline, uint64 *ngroups, HgjError *err)
{
	HgjChannel *channel;
	HgjStatus	status = hgj_channel_ask(&pipeline->remote, HGJ_CALL_PIPE_FINISH, 0, 0,
										 &channel, err);

	if (status == HGJ_OK)
	{
		*ngroups = channel->result[0];
		hgj_channel_has_read(&pipeline->remote);
	}
	if (status == HGJ_OK && pipeline->spec.fills)
		free_buffers(pipeline);	/* it stays, and others need the room */
	return status;
}

/* Of so many chunks as one call takes. */
static HgjStatus
ask_kept_bytes(HgjRemote *remote, const uint64 *ids, uint64 n, uint64 *bytes, HgjError *err)
{
	HgjChannel *channel = hgj_channel_request(remote, err);
	HgjStatus	status;

	if (channel == NULL)
		return err->status;
	channel->arg[0] = n;
	memcpy(hgj_channel_scratch(), ids, n * sizeof(uint64));
	status = hgj_channel_call(remote, HGJ_CALL_KEPT_BYTES, err);
	if (status == HGJ_OK)
		memcpy(bytes, (uint64 *) hgj_channel_scratch() + HGJ_CALL_IDS, n * sizeof(uint64));
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

static HgjStatus
pipe_groups(HgjPipeline *pipeline, uint64 first, uint64 n, uint64 *rows, HgjError *err)
{
	size_t		words = 1 + pipeline->spec.nkeys + pipeline->spec.nwords;
	uint64		most = HGJ_SCRATCH_BYTES / (words * sizeof(uint64));

	for (uint64 done = 0; done < n; done += most)
	{
		uint64		some = Min(n - done, most);
		HgjStatus	status = hgj_channel_ask(&pipeline->remote, HGJ_CALL_PIPE_GROUPS,
											 first + done, some, NULL, err);

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

	remote.failed = HGJ_OK;		/* what it has done is wanted all the same */
	hgj_channel_fetch(remote, HGJ_CALL_PIPE_INFO, info, sizeof(*info));
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
	methods.kept_bytes = server->takes_kept ? pipe_kept_bytes : NULL;
	methods.fills = server->fills;
	return &methods;
}
