/*-------------------------------------------------------------------------
 *
 * pipeline_kept.cu
 *	  Rows of a pipeline that its caller keeps in memory (pipeline.h, KEPT ROWS).
 *
 * 1. Hold copies of all arrays of all pieces, bringing to the device what is not there
 *	  (kept.cu).  If there is no room, the rows are to be staged.
 * 2. Describe each piece's columns to the kernel as it would a staging buffer's, and
 *	  divide the pieces' rows into tiles, of which a block takes one after the other.
 * 3. The next slot's stream runs one kernel over all of them, like a push, when they have
 *	  come.  Where rows go through turns, or are returned, a row is known by its number
 *	  among all: there it is told in which piece it is.
 *
 * What the kernel is told goes to the device by a kernel, too: a copy engine took it behind
 * columns that were sent later (H200), and the slot was free only then.
 *
 * Memory: the slot's, and pinned memory of the same size.  No locks of its own.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include <algorithm>

#include "kept.h"

namespace hgj
{

/* Rows of a tile; a multiple of a block's threads. */
constexpr uint32_t PIECE_TILE_ROWS = 2048;

/* The bits of a register that a value of the kind has. */
static uint64_t mask_of(uint32_t kind)
{
	switch (kind)
	{
		case HGJ_KIND_U1:
			return 0xFF;
		case HGJ_KIND_U4:
		case HGJ_KIND_F4:
			return 0xFFFFFFFFu;
		default:
			return UINT64_MAX;
	}
}

static uint32_t kind_of_width(uint32_t width)
{
	return width == 1   ? PIPE_KEPT_1
		   : width == 2 ? PIPE_KEPT_2
		   : width == 3 ? PIPE_KEPT_3
		   : width == 4 ? PIPE_KEPT_4
						: PIPE_KEPT_8;
}

/* Step 1: often the piece before was of the same array, whose copy that was. */
static HgjStatus hold(HgjPipeline *p, PipeSlot *slot, const HgjKeptArray *array,
					  const HgjKeptArray *before, const void *copy_before,
					  const void **copy, HgjError *err)
{
	if (array->bytes == 0)
		*copy = nullptr;
	else if (before != nullptr && before->id == array->id && before->at == array->at &&
			 before->bytes == array->bytes)
		*copy = copy_before;
	else
		return kept_hold(p, slot, array, copy, err);
	return HGJ_OK;
}

/* Steps 1 and 2 for an input of a piece; `before`: of the one before, or NULL. */
static HgjStatus describe(HgjPipeline *p, PipeSlot *slot, const HgjKeptInput *from,
						  uint32_t kind, const HgjKeptInput *before, PipeInput *to,
						  HgjError *err)
{
	const void *bits_before =
		before != nullptr ? (to - p->spec.ninputs)->validity : nullptr;
	const void *bits;

	HGJ_TRY(hold(p, slot, &from->numbers, before != nullptr ? &before->numbers : nullptr,
				 before != nullptr ? (to - p->spec.ninputs)->values : nullptr,
				 &to->values, err));
	HGJ_TRY(hold(p, slot, &from->validity,
				 before != nullptr ? &before->validity : nullptr, bits_before, &bits,
				 err));
	to->validity = static_cast<const uint64_t *>(bits);
	to->high = static_cast<const uint8_t *>(to->values) + hgj_kept_high(&from->numbers);
	to->base = from->base;
	to->mask = mask_of(kind);
	to->kind = kind_of_width(from->width);
	to->first = from->first;
	return HGJ_OK;
}

/* Step 2: how many tiles. */
static uint32_t count_tiles(const uint32_t *nrows, uint32_t n, uint64_t *rows)
{
	uint32_t tiles = 0;

	*rows = 0;
	for (uint32_t i = 0; i < n; i++)
	{
		*rows += nrows[i];
		tiles += nrows[i] / PIECE_TILE_ROWS + (nrows[i] % PIECE_TILE_ROWS > 0);
	}
	return tiles;
}

static void write_tiles(const uint32_t *nrows, uint32_t n, PipeTile *tiles,
						uint32_t *starts)
{
	uint32_t start = 0;

	for (uint32_t i = 0; i < n; i++)
	{
		for (uint32_t from = 0; from < nrows[i]; from += PIECE_TILE_ROWS)
		{
			uint32_t end =
				nrows[i] - from < PIECE_TILE_ROWS ? nrows[i] : from + PIECE_TILE_ROWS;

			*tiles++ = PipeTile{i, from, end, start + from};
		}
		starts[i] = start;
		start += nrows[i];
	}
}

/* Has a table NULL for a value, not only for rows that are? */
static bool table_has_null(const uint64_t *words, const HgjKeptInput *input)
{
	const uint64_t *bits = words + input->table + input->ntable;

	for (uint32_t i = 0; i + 1 < input->ntable; i++)
		if (!(bits[i / 64] >> (i % 64) & 1))
			return true;
	return false;
}

/* Can an input of a row be NULL? */
static bool may_be_null(const HgjPipeline *p, const HgjKeptPush *kept)
{
	for (uint32_t i = 0; i < kept->npieces * p->spec.ninputs; i++)
	{
		const HgjKeptInput *input = &kept->inputs[i];

		if (input->validity.bytes > 0 ||
			(input->ntable > 0 && table_has_null(kept->words, input)))
			return true;
	}
	return false;
}

/* From pinned memory: n units. */
static __global__ void copy_told(uint4 *to, const uint4 *from, size_t n)
{
	for (size_t i = (size_t) blockIdx.x * blockDim.x + threadIdx.x; i < n;
		 i += (size_t) gridDim.x * blockDim.x)
		to[i] = from[i];
}

/* Threads of a block that copies, and the most blocks. */
constexpr uint32_t COPY_THREADS = 256;
constexpr size_t COPY_BLOCKS = 64;

/* The same, of so many bytes, in the slot's stream; there is room for one more unit. */
static HgjStatus copy_to_device(PipeSlot *slot, size_t bytes, HgjError *err)
{
	size_t n = (bytes + sizeof(uint4) - 1) / sizeof(uint4);
	size_t blocks = std::min((n + COPY_THREADS - 1) / COPY_THREADS, COPY_BLOCKS);

	copy_told<<<(uint32_t) blocks, COPY_THREADS, 0, slot->lane.stream>>>(
		slot->pieces.as<uint4>(), slot->pieces_host.as<uint4>(), n);
	HGJ_CUDA(cudaGetLastError());
	return HGJ_OK;
}

/* Where what the kernel is told lies in the slot's memory, here as on the device. */
struct Layout
{
	size_t words; /* tables; inputs are at the beginning */
	size_t tiles;
	size_t starts; /* of pieces */
	size_t bytes;
};

/* Steps 1 and 2: the inputs, with tables where they will be on the device. */
static HgjStatus describe_all(HgjPipeline *p, PipeSlot *slot, const HgjKeptPush *kept,
							  const Layout &layout, HgjError *err)
{
	PipeInput *inputs = slot->pieces_host.as<PipeInput>();
	const char *device = slot->pieces.as<char>();

	memset(inputs, 0, layout.words);
	for (uint32_t i = 0; i < kept->npieces * p->spec.ninputs; i++)
	{
		const HgjKeptInput *input = &kept->inputs[i];
		PipeInput *to = &inputs[i];

		HGJ_TRY(describe(p, slot, input, p->spec.inputs[i % p->spec.ninputs],
						 i >= p->spec.ninputs ? input - p->spec.ninputs : nullptr, to,
						 err));
		to->ntable = input->ntable;
		if (input->ntable > 0)
			to->table =
				reinterpret_cast<const uint64_t *>(device + layout.words) + input->table;
	}
	return kept_ready(p, slot, err);
}

/* Steps 1 and 2: what the kernel is told, in pinned memory, and its copy's memory. */
static HgjStatus prepare(HgjPipeline *p, PipeSlot *slot, const HgjKeptPush *kept,
						 HgjError *err)
{
	uint64_t rows;
	uint32_t ntiles = count_tiles(kept->nrows, kept->npieces, &rows);
	Layout layout;
	char *host;

	if (rows > UINT32_MAX)
		return fail(err, HGJ_INVALID, "a push has too many rows");
	layout.words = kept->npieces * p->spec.ninputs * sizeof(PipeInput);
	layout.tiles = layout.words + kept->nwords * sizeof(uint64_t);
	layout.starts = layout.tiles + ntiles * sizeof(PipeTile);
	layout.bytes = layout.starts + kept->npieces * sizeof(uint32_t);
	HGJ_TRY(slot->pieces_host.reserve(layout.bytes + sizeof(uint4), err));
	HGJ_TRY(slot->pieces.reserve(&p->account, slot->lane.stream,
								 layout.bytes + sizeof(uint4), err));
	HGJ_TRY(describe_all(p, slot, kept, layout, err));
	host = slot->pieces_host.as<char>();
	if (kept->nwords > 0)
		memcpy(host + layout.words, kept->words, kept->nwords * sizeof(uint64_t));
	write_tiles(kept->nrows, kept->npieces,
				reinterpret_cast<PipeTile *>(host + layout.tiles),
				reinterpret_cast<uint32_t *>(host + layout.starts));
	slot->pushed = (uint32_t) rows;
	slot->rows = PipeRows{
		slot->pieces.as<PipeInput>(),
		p->spec.ninputs,
		reinterpret_cast<const PipeTile *>(slot->pieces.as<char>() + layout.tiles),
		PIECE_TILE_ROWS,
		ntiles,
		reinterpret_cast<const uint32_t *>(slot->pieces.as<char>() + layout.starts),
		kept->npieces,
		(uint32_t) rows,
		may_be_null(p, kept),
		UINT64_MAX};
	HGJ_CUDA(cudaEventRecord(slot->begin.event, slot->lane.stream));
	HGJ_TRY(copy_to_device(slot, layout.bytes, err));
	HGJ_TRY(kept_order(p, slot, err));
	HGJ_CUDA(cudaEventRecord(slot->sent.event, slot->lane.stream));
	return HGJ_OK;
}

/* Steps 1 to 3. */
static HgjStatus push(HgjPipeline *p, const HgjKeptPush *rows, HgjError *err)
{
	PipeSlot *slot = &p->slots[p->turn];
	HgjStatus status;

	if (!p->started || p->filling.done || tuples_left(p))
		return fail(err, HGJ_INVALID,
					"the pipeline is not running, or there are rows to fetch");
	if (kept_known_memory()->memory == nullptr)
		return fail(err, HGJ_UNSUPPORTED, "rows of this pipeline are to be staged");
	HGJ_TRY(hgj_check_kept(&p->spec, kept_known_memory(), rows, err));
	if (rows->npieces == 0)
		return HGJ_OK;
	HGJ_TRY(table_enter(&p->account, err));
	HGJ_TRY(poll(&p->account, err));
	HGJ_TRY(pipeline_free_slot(p, slot, err));
	p->only_there = rows->only_there;
	status = prepare(p, slot, rows, err);
	for (uint32_t i = 1; i < PIPE_SLOTS && status == HGJ_UNSUPPORTED; i++)
	{
		/* what the others read makes room */
		kept_release(p, slot);
		HGJ_TRY(pipeline_free_slot(p, &p->slots[(p->turn + i) % PIPE_SLOTS], err));
		status = prepare(p, slot, rows, err);
	}
	if (status != HGJ_OK)
	{
		kept_release(p, slot);
		return status;
	}
	slot->busy = slot->sending = true;
	HGJ_TRY(pipeline_launch(p, slot, true, err));
	HGJ_TRY(end_of_work(p, slot, err));
	p->counted.rows += slot->pushed;
	p->counted.kept_rows += slot->pushed;
	p->counted.kept_bytes += kept_held_bytes(slot);
	p->counted.sent += rows->nwords * sizeof(uint64_t);
	if (!p->spec.rows)
		p->turn = (p->turn + 1) % PIPE_SLOTS;
	return HGJ_OK;
}

/* HgjPipelineMethods.push_kept; what it is to say does not depend on when all has come. */
HgjStatus pipeline_push_kept(HgjPipeline *p, const HgjKeptPush *rows, HgjError *err)
{
	uint64_t before = p->reading;
	HgjStatus status = push(p, rows, err);
	HgjStatus waited = kept_wait(p, rows->may_read_on ? before : p->reading,
								 status == HGJ_OK ? err : nullptr);

	return status == HGJ_OK ? waited : status;
}

/* HgjPipelineMethods.kept_read */
void pipeline_kept_read(HgjPipeline *p)
{
	(void) kept_wait(p, p->reading, nullptr);
}

} // namespace hgj
