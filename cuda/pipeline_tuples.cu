/*-------------------------------------------------------------------------
 *
 * pipeline_tuples.cu
 *	  Pipelines that return rows (spec.rows), on the host's side.
 *
 * 1. start gets room for the rows that are returned at once, here and on the
 *	  device.
 * 2. push, or push_kept, begins the first turn (pipeline_turns.cu) of its rows; only one
 *	  slot is used, since nothing else is under way.  Where the pipeline goes by
 *	  tiles (pipeline_tiles.cuh), a row comes out once at most: there is room on the
 *	  device for as many as are pushed, and no turn but one.
 * 3. fetch waits for the turn's end, has what came out copied, as much as there is
 *	  room for here, and begins the next turn behind the last copy: the device works
 *	  while the caller looks at rows.  Cancelled, it stands where it stood, and can be
 *	  called again.
 *
 * Memory belongs to the pipeline; what is got after start is room for a larger push by
 * tiles.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "pipeline_host.h"
#include "pipeline_tuples.cuh"

namespace hgj
{

/* Rows that are returned at once: a slot's rows, each joined to one, fit. */
constexpr uint32_t TUPLES = SLOT_MOST_ROWS;

using Kernel = void (*)(const PipeView *, PipeRows, PipeTurn);

static Kernel kernel_of(const HgjPipeline *p)
{
	if (p->registers <= 16 && p->spec.njoins <= 2)
		return pipe_tuples<16, 2>;
	if (p->registers <= 32 && p->spec.njoins <= 4)
		return pipe_tuples<32, 4>;
	return pipe_tuples<HGJ_PIPE_REGISTERS, HGJ_PIPE_JOINS>;
}

static size_t code_bytes(const HgjPipeline *p)
{
	return p->spec.ncode * sizeof(HgjPipeInstruction);
}

static size_t row_bytes(const HgjPipeline *p)
{
	return (1 + p->spec.njoins) * sizeof(uint32_t);
}

/* Room on the device for so many rows; the view knows of it. */
static HgjStatus make_room(HgjPipeline *p, cudaStream_t stream, uint32_t rows,
						   HgjError *err)
{
	PipeTuples *t = &p->tuples;
	PipeOut *out = &p->view.out;

	if (rows <= out->capacity)
		return HGJ_OK;
	HGJ_TRY(t->device.reserve(&p->account, stream, rows * row_bytes(p), err));
	out->capacity = rows;
	out->input = t->device.as<uint32_t>();
	for (uint32_t j = 0; j < p->spec.njoins; j++)
		out->row[j] = out->input + (size_t) (1 + j) * rows;
	return HGJ_OK;
}

/* Step 1; before the view goes to the device. */
HgjStatus tuples_open(HgjPipeline *p, HgjError *err)
{
	int blocks = 0;

	if (p->tiled)
		HGJ_TRY(tiles_open(p, 0, err));
	else
	{
		p->turns = true;
		HGJ_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
			&blocks, kernel_of(p), PIPE_THREADS, code_bytes(p)));
		HGJ_TRY(turns_open(p, 1, blocks, err));
	}
	HGJ_TRY(p->tuples.host.reserve(TUPLES * row_bytes(p), err));
	return make_room(p, p->lane.stream, TUPLES, err);
}

/* Steps 2 and 3: one turn of the slot's rows, into its stream. */
HgjStatus tuples_begin(HgjPipeline *p, PipeSlot *slot, bool first, HgjError *err)
{
	PipeTurn turn;
	uint32_t blocks;

	HGJ_CUDA(cudaMemsetAsync(p->flags.as<uint64_t>() + PIPE_FLAG_RETURNED, 0,
							 sizeof(uint64_t), slot->lane.stream));
	if (p->tiled)
	{
		HGJ_TRY(make_room(p, slot->lane.stream, slot->pushed, err));
		return tiles_launch(p, slot, &p->view.out, err);
	}
	HGJ_TRY(turn_begin(p, slot, first, &turn, &blocks, err));
	kernel_of(p)<<<blocks, PIPE_THREADS, code_bytes(p), slot->lane.stream>>>(
		p->view_at.as<PipeView>(), slot->rows, turn);
	HGJ_CUDA(cudaGetLastError());
	return HGJ_OK;
}

/* Step 3: the next rows that have come out on their way here. */
static HgjStatus copy_some(HgjPipeline *p, PipeSlot *slot, HgjError *err)
{
	PipeTuples *t = &p->tuples;
	cudaStream_t stream = slot->lane.stream;
	const uint32_t *device = t->device.as<uint32_t>() + t->done;

	t->n = t->total - t->done < TUPLES ? t->total - t->done : TUPLES;
	HGJ_CUDA(cudaEventRecord(slot->begin.event, stream));
	for (uint32_t c = 0; c <= p->spec.njoins && t->n > 0; c++)
		HGJ_CUDA(cudaMemcpyAsync(t->host.as<uint32_t>() + (size_t) c * TUPLES,
								 device + (size_t) c * p->view.out.capacity,
								 t->n * sizeof(uint32_t), cudaMemcpyDeviceToHost,
								 stream));
	HGJ_CUDA(cudaEventRecord(slot->sent.event, stream));
	t->done += t->n;
	t->copying = slot->sending = true;
	return HGJ_OK;
}

/* Step 3: copy what has come out, and begin what comes next. */
static HgjStatus end_turn(HgjPipeline *p, PipeSlot *slot, HgjError *err)
{
	PipeTuples *t = &p->tuples;
	const uint64_t *flags = slot_flags(slot);
	uint32_t most = p->view.out.capacity;

	HGJ_TRY(wait_for_work(p, slot, err));
	t->total =
		flags[PIPE_FLAG_RETURNED] < most ? (uint32_t) flags[PIPE_FLAG_RETURNED] : most;
	t->done = 0;
	slot->busy = !p->tiled && turn_left(p, slot);
	if (!slot->busy)
	{
		pipeline_count(p, flags);
		kept_release(p, slot);
	}
	HGJ_TRY(copy_some(p, slot, err));
	if (!slot->busy)
		return HGJ_OK;
	HGJ_TRY(tuples_begin(p, slot, false, err));
	return end_of_work(p, slot, err);
}

/* HgjPipelineMethods.fetch */
HgjStatus pipeline_fetch(HgjPipeline *p, HgjPipeRows *rows, HgjError *err)
{
	PipeSlot *slot = &p->slots[0];
	PipeTuples *t = &p->tuples;

	if (!p->spec.rows || !p->started || rows == nullptr)
		return fail(err, HGJ_INVALID, "the pipeline returns no rows");
	HGJ_TRY(table_enter(&p->account, err));
	t->n = t->copying ? t->n : 0;
	while (t->copying || (t->n == 0 && tuples_left(p)))
	{
		HGJ_TRY(poll(&p->account, err));
		if (!t->copying)
			HGJ_TRY(t->done < t->total ? copy_some(p, slot, err)
									   : end_turn(p, slot, err));
		HGJ_TRY(wait_for_event(&p->account, slot->sent.event, true, err));
		t->copying = false;
		HGJ_TRY(count_transfer(p, slot, err));
	}
	memset(rows, 0, sizeof(*rows));
	rows->n = t->n;
	rows->last = !tuples_left(p);
	rows->input = t->host.as<uint32_t>();
	for (uint32_t j = 0; j < p->spec.njoins; j++)
		rows->row[j] = rows->input + (size_t) (1 + j) * TUPLES;
	return HGJ_OK;
}

} // namespace hgj
