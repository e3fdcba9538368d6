/*-------------------------------------------------------------------------
 *
 * pipeline_fill.cu
 *	  Pipelines that fill a table, and keep payload columns for others (pipeline.h,
 *	  FILLING A TABLE).
 *
 * 1. Each push gets room for all rows that it may become before its kernel begins.
 *	  Where there is none, what is under way is waited for, so that it is known how many
 *	  rows there are, and the arrays are made half as large again, at least.
 * 2. At the end key words are appended to the table, from where they are, columns cut
 *	  to what is used of them, and staging buffers given back.
 * 3. A pipeline that reads the columns holds the one that has them, which goes when
 *	  nobody does any more.
 *
 * Memory: the pipeline's.  No locks; holders are counted atomically.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "pipeline_fill.cuh"
#include "pipeline_host.h"

namespace hgj
{

/* Arrays that are not much larger than this are left as they are. */
constexpr size_t LITTLE_BYTES = (size_t) 1 << 20;

using Kernel = void (*)(const PipeView *, PipeRows, PipeFill);

static size_t code_bytes(const HgjPipeline *p)
{
	return p->spec.ncode * sizeof(HgjPipeInstruction);
}

static size_t register_bytes(const HgjPipeline *p)
{
	return (size_t) p->registers * PIPE_THREADS * sizeof(uint64_t);
}

/* As in pipeline.cu: registers lie in shared memory if several blocks have room. */
static bool shares_registers(const HgjPipeline *p)
{
	const Device *device = p->account.device;
	size_t bytes = code_bytes(p) + register_bytes(p);

	return p->spec.njoins <= 2 && bytes <= device->block_shared &&
		   bytes <= device->sm_shared / LEAST_BLOCKS;
}

static Kernel kernel_of(const HgjPipeline *p)
{
	return shares_registers(p) ? pipe_fill<0, 2>
							   : pipe_fill<HGJ_PIPE_REGISTERS, HGJ_PIPE_JOINS>;
}

/* Step 3: join j's columns are those that `filled` has. */
HgjStatus fill_hold(HgjPipeline *p, uint32_t j, HgjPipeline *filled, HgjError *err)
{
	const HgjPipeJoin *join = &p->spec.joins[j];

	if (!filled->filling.done || filled->filling.table != p->tables[j] ||
		filled->spec.ncolumns != join->ncolumns ||
		memcmp(filled->spec.kinds, join->kinds, join->ncolumns) != 0)
		return fail(err, HGJ_INVALID, "a join's columns are not those of its table");
	for (uint32_t c = 0; c < join->ncolumns; c++)
	{
		PipeColumn *column = &p->view.joins[j].columns[c];

		column->values = filled->filling.values[c].as<void>();
		column->validity = filled->filling.nulls >> c & 1
							   ? filled->filling.validity[c].as<uint64_t>()
							   : nullptr;
	}
	(void) __atomic_add_fetch(&filled->holders, 1, __ATOMIC_RELAXED);
	p->filled[j] = filled;
	return HGJ_OK;
}

/* Before the first push. */
HgjStatus fill_open(HgjPipeline *p, HgjTable *table, HgjError *err)
{
	if (table == nullptr || table->built || table->nrows > 0 ||
		table->device != p->account.device || table->spec.nwords != p->spec.nkeys)
		return fail(err, HGJ_INVALID,
					"the table is not one that the pipeline could fill");
	if (p->turns)
		return fail(err, HGJ_UNSUPPORTED, "rows for a table do not go through turns");
	p->filling.table = table;
	if (p->tiled)
		return tiles_open(p, 0, err);
	if (shares_registers(p))
		HGJ_TRY(allow_shared(p->account.device, kernel_of(p), err));
	return HGJ_OK;
}

/* Another array in a buffer's place, with the first `used` bytes of the old one. */
static HgjStatus move(HgjPipeline *p, Buffer *buffer, size_t used, size_t bytes,
					  HgjError *err)
{
	cudaStream_t stream = p->lane.stream;
	Buffer other;

	HGJ_TRY(other.get(&p->account, stream, bytes, err));
	if (used > 0)
		HGJ_CUDA(cudaMemcpyAsync(other.as<void>(), buffer->as<void>(), used,
								 cudaMemcpyDeviceToDevice, stream));
	buffer->swap(other);
	return HGJ_OK;
}

/* Bytes of validity of so many rows: words of 64 bits, as pipelines read them. */
static size_t bit_bytes(uint64_t rows)
{
	return (rows + 63) / 64 * 8;
}

/* Columns of another capacity; the first `rows` rows stay. */
static HgjStatus move_columns(HgjPipeline *p, uint64_t rows, uint64_t capacity,
							  HgjError *err)
{
	PipeFilling *f = &p->filling;

	for (uint32_t c = 0; c < p->spec.ncolumns; c++)
	{
		size_t width = hgj_kind_width(p->spec.kinds[c]);
		size_t bits = rows > 0 ? bit_bytes(rows) : 0;

		HGJ_TRY(move(p, &f->values[c], rows * width, capacity * width, err));
		HGJ_TRY(move(p, &f->validity[c], bits, bit_bytes(capacity), err));
		HGJ_CUDA(cudaMemsetAsync(f->validity[c].as<char>() + bits, 0xFF,
								 bit_bytes(capacity) - bits, p->lane.stream));
	}
	return HGJ_OK;
}

/* Step 1: nothing is under way. */
static HgjStatus grow(HgjPipeline *p, uint64_t wanted, HgjError *err)
{
	PipeFilling *f = &p->filling;
	uint64_t capacity = f->capacity + f->capacity / 2;

	if (capacity < wanted)
		capacity = wanted;
	if (capacity > HGJ_MAX_ROWS)
		capacity = HGJ_MAX_ROWS;
	if (wanted > capacity)
		return fail(err, HGJ_LIMIT, "a table holds at most 4294967280 rows");
	for (uint32_t k = 0; k < p->spec.nkeys; k++)
		HGJ_TRY(move(p, &f->words[k], f->most * sizeof(uint64_t),
					 capacity * sizeof(uint64_t), err));
	HGJ_TRY(move_columns(p, f->most, capacity, err));
	f->capacity = capacity;
	return wait(&p->account, p->lane, false, err);
}

/* The rows that kernels have put there, all but that of `own`, which has not begun. */
static HgjStatus count_rows(HgjPipeline *p, const PipeSlot *own, HgjError *err)
{
	PipeFilling *f = &p->filling;

	for (PipeSlot &slot : p->slots)
		if (&slot != own)
			HGJ_TRY(pipeline_free_slot(p, &slot, err));
	HGJ_CUDA(cudaMemcpyAsync(p->found.as<void>(), p->flags.as<void>(),
							 PIPE_FLAGS * sizeof(uint64_t), cudaMemcpyDeviceToHost,
							 p->lane.stream));
	HGJ_TRY(wait(&p->account, p->lane, false, err));
	HGJ_TRY(pipeline_look(p, p->found.as<uint64_t>(), err));
	f->most = p->found.as<uint64_t>()[PIPE_FLAG_RETURNED];
	return HGJ_OK;
}

/*
 * Step 1: room for so many rows more.  What is waited for are kernels of one push each, and
 * that is not given up: the slot's rows have been sent, and a push cannot be repeated.
 */
static HgjStatus make_room(HgjPipeline *p, const PipeSlot *slot, uint64_t rows,
						   HgjError *err)
{
	PipeFilling *f = &p->filling;
	int (*poll)(void *) = p->account.spec.poll;
	HgjStatus status;

	if (f->most + rows <= f->capacity)
		return HGJ_OK;
	p->account.spec.poll = nullptr;
	status = count_rows(p, slot, err);
	p->account.spec.poll = poll;
	if (status == HGJ_OK && f->most + rows > f->capacity)
		status = grow(p, f->most + rows, err);
	return status;
}

/* Step 1: the slot's rows, which have been sent. */
HgjStatus fill_launch(HgjPipeline *p, PipeSlot *slot, HgjError *err)
{
	PipeFilling *f = &p->filling;
	uint32_t most = (uint32_t) p->account.device->sms * 16;
	uint32_t blocks = slot->rows.ntiles < most ? slot->rows.ntiles : most;
	uint64_t rows = slot->pushed * p->work;
	PipeFill fill = {};

	HGJ_TRY(make_room(p, slot, rows, err));
	f->most += rows;
	fill.capacity = f->capacity;
	fill.ncolumns = p->spec.ncolumns;
	memcpy(fill.columns, p->fill_columns, sizeof(fill.columns));
	memcpy(fill.kinds, p->spec.kinds, sizeof(fill.kinds));
	for (uint32_t k = 0; k < p->spec.nkeys; k++)
		fill.words[k] = f->words[k].as<uint64_t>();
	for (uint32_t c = 0; c < p->spec.ncolumns; c++)
	{
		fill.values[c] = f->values[c].as<void>();
		fill.validity[c] = f->validity[c].as<uint32_t>();
	}
	if (p->tiled)
		return tiles_launch(p, slot, &fill, err);
	kernel_of(p)<<<blocks, PIPE_THREADS,
				   code_bytes(p) + (shares_registers(p) ? register_bytes(p) : 0),
				   slot->lane.stream>>>(p->view_at.as<PipeView>(), slot->rows, fill);
	HGJ_CUDA(cudaGetLastError());
	return HGJ_OK;
}

/* Step 2: key words, which nobody needs any more then. */
static HgjStatus append_words(HgjPipeline *p, HgjError *err)
{
	PipeFilling *f = &p->filling;
	const uint64_t *words[HGJ_PIPE_KEYS];
	HgjKeys keys = {};

	for (uint32_t k = 0; k < p->spec.nkeys; k++)
		words[k] = f->words[k].as<uint64_t>();
	keys.nrows = (uint32_t) f->rows;
	keys.words = words;
	keys.location = HGJ_ON_DEVICE;
	if (f->rows > 0)
		HGJ_TRY(table_append(f->table, &keys, 0, nullptr, err));
	for (uint32_t k = 0; k < p->spec.nkeys; k++)
		f->words[k].release();
	return HGJ_OK;
}

/* Step 2: columns that are much too large are made as large as they have to be. */
static HgjStatus cut_columns(HgjPipeline *p, HgjError *err)
{
	PipeFilling *f = &p->filling;
	HgjStatus status;

	if (p->spec.ncolumns == 0 || f->capacity <= 2 * f->rows + LITTLE_BYTES)
		return HGJ_OK;
	status = move_columns(p, f->rows, f->rows > 0 ? f->rows : 1, err);
	return status == HGJ_OK ? wait(&p->account, p->lane, false, err) : status;
}

/* HgjPipelineMethods.finish, of a pipeline that fills a table. */
HgjStatus fill_finish(HgjPipeline *p, uint64_t *nrows, HgjError *err)
{
	PipeFilling *f = &p->filling;

	if (!p->started || f->done)
		return fail(err, HGJ_INVALID, "a table is filled once");
	HGJ_TRY(table_enter(&p->account, err));
	HGJ_TRY(count_rows(p, nullptr, err));
	f->rows = f->most;
	f->nulls = p->found.as<uint64_t>()[PIPE_FLAG_NULLS];
	pipeline_count(p, p->found.as<uint64_t>());
	HGJ_TRY(append_words(p, err));
	HGJ_TRY(cut_columns(p, err));
	for (PipeSlot &slot : p->slots)
	{
		slot.host.release();
		slot.columns.release();
		slot.pieces.release();
		slot.pieces_host.release();
		settle(slot.lane.stream);
	}
	settle(p->lane.stream); /* all of it may stay for long */
	f->done = true;
	*nrows = f->rows;
	return HGJ_OK;
}

} // namespace hgj
