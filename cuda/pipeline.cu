/*-------------------------------------------------------------------------
 *
 * pipeline.cu
 *	  Pipelines: staged columns in, group rows out (pipeline.h says how), or rows
 *	  (pipeline_tuples.cu), or a table that is filled (pipeline_fill.cu).
 *
 * 1. create checks the spec once, so that kernels need not, and makes the view of
 *	  it that kernels read.
 * 2. payload brings columns of the tables' rows to the device, through two
 *	  pinned buffers in turn.
 * 3. start chooses where groups are: a dense array where the ranges of the keys
 *	  are known and small, or a hash table.
 * 4. Pushes (pipeline_stage.cu, pipeline_kept.cu) go around PIPE_SLOTS slots, each with a
 *	  stream of its own, so that the caller fills one while others are sent and worked on.
 *	  A slot is waited for when its turn comes again, and nothing else is; what
 *	  its kernel has found comes back beside it.  Where a row may have very many
 *	  candidates, rows go through turns (pipeline_turns.cu).
 * 5. finish waits for all of them, and brings the groups together.
 *
 * All memory belongs to the pipeline; device memory is counted in an account
 * that is a table without rows.  No locks: one thread uses a pipeline.
 *
 *-------------------------------------------------------------------------
 */
#include <new>
#include <string.h>

#include "pipeline_host.h"
#include "pipeline_kernels.cuh"
#include "stage.h"

using namespace hgj;

namespace hgj
{

/* Groups of a dense array, and words of those that a block keeps itself. */
constexpr uint64_t MOST_DENSE = 1 << 22;
constexpr uint64_t MOST_SHARED_WORDS = 1024;
constexpr uint64_t MOST_TILE_WORDS = 4096; /* with tiles */

constexpr uint64_t LEAST_HASHED = 1 << 12;

/* What a block may have of shared memory without asking. */
constexpr size_t USUAL_SHARED_BYTES = 48 * 1024;

/* SUM_LOW overflows beyond. */
constexpr uint64_t MOST_SUMMED = UINT64_C(1) << 32;

static HgjStatus fill_pipeline(HgjPipeline *p, const HgjPipelineTerms *terms,
								HgjError *err)
{
	const HgjPipelineSpec *spec = &p->spec;

	HGJ_TRY(pipeline_check(p, err));
	HGJ_TRY(hgj_bind_pipeline(&p->spec, terms, err));
	p->view.ncode = spec->ncode;
	p->view.njoins = spec->njoins;
	p->view.nkeys = spec->nkeys;
	p->view.nwords = spec->nwords;
	p->view.registers = p->registers;
	memcpy(p->view.keys, spec->keys, sizeof(spec->keys));
	memcpy(p->view.words, spec->words, sizeof(spec->words));
	if (terms != nullptr)
	{
		p->view.nhaving = terms->nhaving;
		memcpy(p->view.having, terms->having, sizeof(terms->having));
	}
	steps_make(p);

	HGJ_TRY(p->lane.open(p->account.device, err));
	HGJ_TRY(p->found.reserve(PIPE_FLAGS * sizeof(uint64_t), err));
	HGJ_TRY(p->code.get(&p->account, p->lane.stream,
						p->view.ncode * sizeof(HgjPipeInstruction), err));
	/* in the order of the stream, where the memory is got */
	HGJ_CUDA(cudaMemcpyAsync(p->code.as<void>(), p->tiled ? p->steps : spec->code,
							 p->view.ncode * sizeof(HgjPipeInstruction),
							 cudaMemcpyHostToDevice, p->lane.stream));
	HGJ_TRY(wait(&p->account, p->lane, false, err));
	p->view.code = p->code.as<HgjPipeInstruction>();
	return HGJ_OK;
}

/* HgjPipelineMethods.destroy */
static void pipeline_destroy(HgjPipeline *p)
{
	Device *device;
	bool entered;

	if (p == nullptr)
		return;
	device = p->account.device;
	if (__atomic_sub_fetch(&p->holders, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	entered = table_enter(&p->account, nullptr) == HGJ_OK;
	for (PipeSlot &slot : p->slots)
		if (entered && slot.lane.event != nullptr)
			(void) wait(&p->account, slot.lane, false, nullptr);
	for (PipeSlot &slot : p->slots)
		kept_release(p, &slot);
	if (entered)
		pipeline_kept_read(p);
	for (HgjPipeline *filled : p->filled)
		pipeline_destroy(filled);
	delete p;
	if (__atomic_sub_fetch(&device->tables, 1, __ATOMIC_RELAXED) == 0)
		device_trim(device);
}

/* HgjPipelineMethods.create */
static HgjStatus pipeline_create(const HgjPipelineSpec *spec,
								 const HgjPipelineCaller *caller, HgjPipeline **pipeline,
								 HgjError *err)
{
	const HgjPipelineTerms *terms;
	HgjPipeline *p;
	Device *device;
	HgjStatus status;

	if (spec == nullptr || caller == nullptr || pipeline == nullptr)
		return fail(err, HGJ_INVALID, "pipeline, spec or caller is missing");
	*pipeline = nullptr;
	terms = caller->terms;
	HGJ_TRY(session_device(terms != nullptr ? terms->device : 0, &device, err));
	p = new (std::nothrow) HgjPipeline;
	if (p == nullptr)
		return fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	p->spec = *spec;
	memcpy(p->tables, caller->tables, sizeof(p->tables));
	memset(&p->account.spec, 0, sizeof(p->account.spec));
	p->account.spec.memory_limit = terms != nullptr ? terms->memory_limit : 0;
	p->account.spec.timeout_ms = terms != nullptr ? terms->timeout_ms : 0;
	p->account.spec.poll = caller->poll;
	p->account.spec.poll_arg = caller->poll_arg;
	p->account.device = device;
	(void) __atomic_add_fetch(&device->tables, 1, __ATOMIC_RELAXED);
	status = fill_pipeline(p, terms, err);
	for (uint32_t j = 0; j < p->spec.njoins && status == HGJ_OK; j++)
		if (caller->filled[j] != nullptr)
			status = fill_hold(p, j, caller->filled[j], err);
	if (status == HGJ_OK && p->spec.fills)
		status = fill_open(p, caller->fills, err);
	if (status != HGJ_OK)
	{
		pipeline_destroy(p);
		return status;
	}
	*pipeline = p;
	return HGJ_OK;
}

/* Host bytes to the device, through the two pinned buffers. */
HgjStatus pipeline_upload(HgjPipeline *p, char *to, const void *from, size_t bytes,
						  HgjError *err)
{
	for (size_t done = 0; done < bytes; p->stage ^= 1)
	{
		Stage *stage = &p->stages[p->stage];
		size_t take = bytes - done < STAGE_BYTES ? bytes - done : STAGE_BYTES;

		HGJ_TRY(stage->open(take, err));
		memcpy(stage->memory.as<char>(), static_cast<const char *>(from) + done, take);
		HGJ_CUDA(cudaMemcpyAsync(to + done, stage->memory.as<void>(), take,
								 cudaMemcpyHostToDevice, p->lane.stream));
		HGJ_CUDA(cudaEventRecord(stage->event, p->lane.stream));
		stage->busy = true;
		done += take;
	}
	p->counted.sent += bytes;
	return HGJ_OK;
}

/* HgjPipelineMethods.payload */
static HgjStatus pipeline_payload(HgjPipeline *p, uint32_t join, uint32_t column,
								  uint32_t first, uint32_t n, const void *values,
								  const uint64_t *validity, HgjError *err)
{
	cudaStream_t stream = p->lane.stream;
	size_t total;
	size_t width;

	if (p->started || join >= p->spec.njoins || column >= p->spec.joins[join].ncolumns ||
		p->filled[join] != nullptr || first % 64 != 0)
		return fail(err, HGJ_INVALID, "there is no such payload column");
	total = p->tables[join]->total_rows;
	width = hgj_kind_width(p->spec.joins[join].kinds[column]);
	if ((uint64_t) first + n > total)
		return fail(err, HGJ_INVALID, "the table has fewer rows");
	if (n == 0)
		return HGJ_OK;
	HGJ_TRY(table_enter(&p->account, err));
	HGJ_TRY(poll(&p->account, err));

	Buffer *buffer = &p->values[join][column];
	Buffer *bits = &p->validity[join][column];

	HGJ_TRY(buffer->reserve(&p->account, stream, total * width, err));
	HGJ_TRY(
		pipeline_upload(p, buffer->as<char>() + first * width, values, n * width, err));
	p->view.joins[join].columns[column].values = buffer->as<void>();
	if (validity == nullptr)
		return HGJ_OK;
	if (bits->as<void>() == nullptr)
	{
		HGJ_TRY(bits->get(&p->account, stream, (total + 63) / 64 * 8, err));
		HGJ_CUDA(cudaMemsetAsync(bits->as<void>(), 0xFF, (total + 63) / 64 * 8, stream));
	}
	HGJ_TRY(pipeline_upload(p, bits->as<char>() + first / 64 * 8, validity,
							((size_t) n + 63) / 64 * 8, err));
	p->view.joins[join].columns[column].validity = bits->as<uint64_t>();
	return HGJ_OK;
}

/* Step 3: true if the groups can be a dense array. */
static bool groups_are_dense(HgjPipeline *p, const HgjPipeRange *ranges)
{
	PipeGroups *g = &p->view.groups;
	uint64_t groups = 1;

	for (uint32_t k = 0; k < p->spec.nkeys; k++)
	{
		uint64_t span = (uint64_t) ranges[k].high - (uint64_t) ranges[k].low;

		if (!ranges[k].bounded || ranges[k].low > ranges[k].high || span >= MOST_DENSE ||
			groups * (span + 2) > MOST_DENSE)
			return false;
		g->low[k] = ranges[k].low;
		g->high[k] = ranges[k].high;
		g->step[k] = groups;
		groups *= span + 2; /* the first place is NULL's */
	}
	g->dense = true;
	g->capacity = groups;
	return true;
}

static HgjStatus make_groups(HgjPipeline *p, const HgjPipeRange *ranges,
							 uint64_t expected, HgjError *err)
{
	PipeGroups *g = &p->view.groups;
	cudaStream_t stream = p->lane.stream;

	if (!groups_are_dense(p, ranges))
	{
		uint64_t key_bytes;

		if (expected > UINT64_C(1) << 32)
			return fail(err, HGJ_LIMIT, "there are too many groups");
		g->capacity = LEAST_HASHED;
		while (g->capacity < expected * 2)
			g->capacity *= 2;
		g->most = g->capacity / 8 * 5;
		g->seed = p->spec.njoins > 0 ? p->tables[0]->spec.seed : 0;
		key_bytes = g->capacity * (p->spec.nkeys + 1) * sizeof(uint64_t);
		HGJ_TRY(p->tags.get(&p->account, stream, g->capacity * sizeof(uint32_t), err));
		HGJ_TRY(p->keys.get(&p->account, stream, key_bytes, err));
		HGJ_CUDA(cudaMemsetAsync(p->tags.as<void>(), 0, g->capacity * sizeof(uint32_t),
								 stream));
		g->tags = p->tags.as<uint32_t>();
		g->keys = p->keys.as<unsigned long long>();
	}
	HGJ_TRY(p->states.get(&p->account, stream,
						  g->capacity * p->spec.nwords * sizeof(uint64_t), err));
	g->states = p->states.as<unsigned long long>();
	return HGJ_OK;
}

static HgjStatus open_slot(HgjPipeline *p, PipeSlot *slot, HgjError *err)
{
	const Device *device = p->account.device;

	HGJ_TRY(slot->lane.open(p->account.device, err));
	HGJ_TRY(slot->begin.open(device, err));
	HGJ_TRY(slot->sent.open(device, err));
	HGJ_TRY(slot->done.open(device, err));
	return slot->found.reserve(PIPE_FLAGS * sizeof(uint64_t), err);
}

/* Words of all groups' states, if a block keeps its own. */
static uint32_t shared_words(const HgjPipeline *p)
{
	uint64_t all = p->view.groups.capacity * p->spec.nwords;

	return all <= (p->tiled ? MOST_TILE_WORDS : MOST_SHARED_WORDS) ? (uint32_t) all : 0;
}

/* Of a block: code, states, and registers if `with` says so. */
static size_t block_bytes(const HgjPipeline *p, bool with)
{
	return p->spec.ncode * sizeof(HgjPipeInstruction) +
		   shared_words(p) * sizeof(uint64_t) +
		   (with ? (size_t) p->registers * PIPE_THREADS * sizeof(uint64_t) : 0);
}

/* Are registers in shared memory?  Where a multiprocessor then has a few blocks. */
static bool shares_registers(const HgjPipeline *p)
{
	return !p->turns && block_bytes(p, true) <= p->account.device->block_shared &&
		   block_bytes(p, true) <= p->account.device->sm_shared / LEAST_BLOCKS;
}

static size_t shared_bytes(const HgjPipeline *p)
{
	return block_bytes(p, shares_registers(p));
}

using Kernel = void (*)(const PipeView *, PipeRows, uint32_t, PipeTurn);

template <bool OWN>
static Kernel kernel_of(const HgjPipeline *p)
{
	if (p->turns)
		return pipe_rows<HGJ_PIPE_REGISTERS, HGJ_PIPE_JOINS, OWN, true>;
	if (!shares_registers(p))
		return pipe_rows<HGJ_PIPE_REGISTERS, HGJ_PIPE_JOINS, OWN, false>;
	return p->spec.njoins <= 2   ? pipe_rows<0, 2, OWN, false>
		   : p->spec.njoins <= 4 ? pipe_rows<0, 4, OWN, false>
								 : pipe_rows<0, HGJ_PIPE_JOINS, OWN, false>;
}

static Kernel kernel_of(const HgjPipeline *p)
{
	return p->spec.nkeys == 0 ? kernel_of<true>(p) : kernel_of<false>(p);
}

/* Room for rows that wait, if rows go through turns; more shared memory than usual. */
static HgjStatus open_kernel(HgjPipeline *p, HgjError *err)
{
	int blocks = 0;

	if (p->tiled)
		return tiles_open(p, shared_words(p), err);
	if (shared_bytes(p) > USUAL_SHARED_BYTES)
		HGJ_TRY(allow_shared(p->account.device, kernel_of(p), err));
	if (!p->turns)
		return HGJ_OK;
	HGJ_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
		&blocks, kernel_of(p), PIPE_THREADS, shared_bytes(p)));
	return turns_open(p, PIPE_SLOTS, blocks, err);
}

/* HgjPipelineMethods.start */
static HgjStatus pipeline_start(HgjPipeline *p, const HgjPipeRange *ranges,
								uint64_t expected, HgjError *err)
{
	cudaStream_t stream = p->lane.stream;
	uint64_t words;

	if (p->started || (p->spec.nkeys > 0 && !p->spec.fills && ranges == nullptr))
		return fail(err, HGJ_INVALID, "a pipeline is started once, with ranges");
	HGJ_TRY(table_enter(&p->account, err));
	for (uint32_t j = 0; j < p->spec.njoins; j++)
		for (uint32_t c = 0; c < p->spec.joins[j].ncolumns; c++)
			if (p->view.joins[j].columns[c].values == nullptr && !p->view.joins[j].empty)
				return fail(err, HGJ_INVALID, "a payload column is missing");
	if (p->spec.rows)
		HGJ_TRY(tuples_open(p, err));
	else if (!p->spec.fills)
	{
		HGJ_TRY(make_groups(p, ranges, expected, err));
		HGJ_TRY(open_kernel(p, err));
	}
	HGJ_TRY(p->flags.get(&p->account, stream, PIPE_FLAGS * sizeof(uint64_t), err));
	HGJ_CUDA(
		cudaMemsetAsync(p->flags.as<void>(), 0, PIPE_FLAGS * sizeof(uint64_t), stream));
	p->view.flags = p->flags.as<unsigned long long>();
	HGJ_TRY(p->view_at.get(&p->account, stream, sizeof(p->view), err));
	HGJ_CUDA(cudaMemcpyAsync(p->view_at.as<void>(), &p->view, sizeof(p->view),
							 cudaMemcpyHostToDevice, stream));
	words = p->view.groups.capacity * p->spec.nwords;
	if (words > 0)
		init_states<<<(unsigned int) ((words + 65535) / 65536), 256, 0, stream>>>(
			p->view_at.as<PipeView>(), words);
	HGJ_CUDA(cudaGetLastError());
	stage_lay_out(p);
	for (uint32_t i = 0; i < (p->spec.rows ? 1 : PIPE_SLOTS); i++)
		HGJ_TRY(open_slot(p, &p->slots[i], err));
	HGJ_TRY(wait(&p->account, p->lane, false, err));
	p->started = true;
	return HGJ_OK;
}

/* What a kernel has found. */
HgjStatus pipeline_look(const HgjPipeline *p, const uint64_t *flags, HgjError *err)
{
	if (flags[PIPE_FLAG_STOP] & PIPE_ROW_FAILED)
		return fail(err, HGJ_ROW_FAILED, "a row raises an error");
	if (flags[PIPE_FLAG_STOP] & PIPE_FULL)
		return fail(err, HGJ_LIMIT, "there is no room for the groups");
	if (flags[PIPE_FLAG_ENDED] > MOST_SUMMED)
		for (uint32_t w = 0; w < p->spec.nwords; w++)
			if (p->spec.words[w].state == HGJ_PIPE_SUM_LOW)
				return fail(err, HGJ_ROW_FAILED, "there are too many rows for a sum");
	return HGJ_OK;
}

/* What kernels have counted, for info. */
void pipeline_count(HgjPipeline *p, const uint64_t *flags)
{
	memcpy(p->counted.joined, flags + PIPE_FLAG_JOINED, sizeof(p->counted.joined));
	memcpy(p->counted.removed, flags + PIPE_FLAG_REMOVED, sizeof(p->counted.removed));
	memcpy(p->counted.filtered, flags + PIPE_FLAG_FILTERED, sizeof(p->counted.filtered));
	p->counted.dropped = flags[PIPE_FLAG_DROPPED];
	p->counted.left_out = flags[PIPE_FLAG_LEFT_OUT];
}

/* Step 4: a kernel for the slot's rows, or for one turn of them. */
HgjStatus pipeline_launch(HgjPipeline *p, PipeSlot *slot, bool first, HgjError *err)
{
	uint32_t blocks = slot->rows.ntiles;
	uint32_t most = (uint32_t) p->account.device->sms * (shared_words(p) > 0 ? 8 : 16);
	PipeTurn turn = {};

	if (p->spec.rows)
		return tuples_begin(p, slot, first, err);
	if (p->spec.fills)
		return fill_launch(p, slot, err);
	if (p->tiled)
		return tiles_launch(p, slot, nullptr, err);
	blocks = blocks > most ? most : blocks;
	if (p->turns)
		HGJ_TRY(turn_begin(p, slot, first, &turn, &blocks, err));
	kernel_of(p)<<<blocks, PIPE_THREADS, shared_bytes(p), slot->lane.stream>>>(
		p->view_at.as<PipeView>(), slot->rows, shared_words(p), turn);
	HGJ_CUDA(cudaGetLastError());
	return HGJ_OK;
}

/* Until the slot is free, through all turns of its rows. */
HgjStatus pipeline_free_slot(HgjPipeline *p, PipeSlot *slot, HgjError *err)
{
	while (slot->busy)
	{
		HGJ_TRY(wait_for_work(p, slot, err));
		slot->busy = p->turns && turn_left(p, slot);
		if (!slot->busy)
			break;
		HGJ_CUDA(cudaEventRecord(slot->sent.event, slot->lane.stream));
		HGJ_TRY(pipeline_launch(p, slot, false, err));
		HGJ_TRY(end_of_work(p, slot, err));
		HGJ_TRY(poll(&p->account, err));
	}
	kept_release(p, slot);
	return HGJ_OK;
}

/* The flags as they are now; nothing else is under way. */
static HgjStatus read_flags(HgjPipeline *p, HgjError *err)
{
	HGJ_CUDA(cudaMemcpyAsync(p->found.as<void>(), p->flags.as<void>(),
							 PIPE_FLAGS * sizeof(uint64_t), cudaMemcpyDeviceToHost,
							 p->lane.stream));
	return wait(&p->account, p->lane, true, err);
}

/* HgjPipelineMethods.finish */
static HgjStatus pipeline_finish(HgjPipeline *p, uint64_t *ngroups, HgjError *err)
{
	const PipeView *view = p->view_at.as<PipeView>();
	const uint64_t *found = p->found.as<uint64_t>();
	uint64_t width = 1 + p->spec.nkeys + p->spec.nwords;
	unsigned int blocks;

	if (p->spec.fills)
		return fill_finish(p, ngroups, err);
	if (!p->started || p->spec.rows)
		return fail(err, HGJ_INVALID,
					"the pipeline has not been started, or has no groups");
	HGJ_TRY(table_enter(&p->account, err));
	for (PipeSlot &slot : p->slots)
		HGJ_TRY(pipeline_free_slot(p, &slot, err));
	blocks = (unsigned int) ((p->view.groups.capacity + 1023) / 1024);
	HGJ_CUDA(cudaMemsetAsync(p->flags.as<uint64_t>() + PIPE_FLAG_GROUPS, 0, 8,
							 p->lane.stream));
	HGJ_CUDA(
		cudaMemsetAsync(p->flags.as<uint64_t>() + PIPE_FLAG_OUT, 0, 8, p->lane.stream));
	HGJ_CUDA(cudaMemsetAsync(p->flags.as<uint64_t>() + PIPE_FLAG_LEFT_OUT, 0, 8,
							 p->lane.stream));
	count_groups<<<blocks, 256, 0, p->lane.stream>>>(view);
	HGJ_CUDA(cudaGetLastError());
	HGJ_TRY(read_flags(p, err));
	HGJ_TRY(pipeline_look(p, found, err));
	p->ngroups = found[PIPE_FLAG_GROUPS];
	pipeline_count(p, found);

	HGJ_TRY(p->rows.get(&p->account, p->lane.stream, p->ngroups * width * 8, err));
	write_groups<<<blocks, 256, 0, p->lane.stream>>>(view,
													 p->rows.as<unsigned long long>());
	HGJ_CUDA(cudaGetLastError());
	HGJ_TRY(wait(&p->account, p->lane, true, err));
	*ngroups = p->ngroups;
	return HGJ_OK;
}

/* HgjPipelineMethods.groups */
static HgjStatus pipeline_groups(HgjPipeline *p, uint64_t first, uint64_t n,
								 uint64_t *rows, HgjError *err)
{
	uint64_t width = 1 + p->spec.nkeys + p->spec.nwords;

	if (p->spec.rows || first > p->ngroups || n > p->ngroups - first)
		return fail(err, HGJ_INVALID, "there are fewer groups");
	HGJ_TRY(table_enter(&p->account, err));
	HGJ_CUDA(cudaMemcpy(rows, p->rows.as<uint64_t>() + first * width,
						n * width * sizeof(uint64_t), cudaMemcpyDeviceToHost));
	return HGJ_OK;
}

/* HgjPipelineMethods.info */
static void pipeline_info(const HgjPipeline *p, HgjPipelineInfo *info)
{
	*info = p->counted;
	info->memory = p->account.peak;
	info->stage_rows = p->capacity;
}

const HgjPipelineMethods *pipeline_methods()
{
	static HgjPipelineMethods m;

	m.create = pipeline_create;
	m.destroy = pipeline_destroy;
	m.payload = pipeline_payload;
	m.start = pipeline_start;
	m.stage = pipeline_stage;
	m.push = pipeline_push;
	m.push_from = pipeline_push_from;
	m.keep_staging = registered_staging;
	m.keep = kept_memory;
	m.push_kept = pipeline_push_kept;
	m.kept_read = pipeline_kept_read;
	m.kept_bytes = kept_bytes;
	m.prewarm = kept_prewarm;
	m.sweep = kept_sweep;
	m.fills = true;
	m.fetch = pipeline_fetch;
	m.finish = pipeline_finish;
	m.groups = pipeline_groups;
	m.info = pipeline_info;
	return &m;
}

} // namespace hgj
