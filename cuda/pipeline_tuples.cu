/*-------------------------------------------------------------------------
 *
 * pipeline_tuples.cu
 *	  Pipelines that return rows (spec.rows), on the host's side.
 *
 * 1. start gets room for the rows that are returned at once, here and on the
 *	  device.
 * 2. push sends its columns and begins the first turn (pipeline_turns.cu) of its
 *	  rows; only one staging buffer is used, since nothing else is under way.
 * 3. fetch waits for the turn's end, has what came out copied, and begins the next
 *	  turn behind the copy: the device works while the caller looks at rows.
 *	  Cancelled, it stands where it stood, and can be called again.
 *
 * Memory belongs to the pipeline, nothing is got after start.  No locks.
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

/* Step 1; before the view goes to the device. */
HgjStatus tuples_open(HgjPipeline *p, HgjError *err)
{
	PipeTuples *t = &p->tuples;
	PipeOut *out = &p->view.out;
	size_t bytes = (size_t) TUPLES * (1 + p->spec.njoins) * sizeof(uint32_t);
	int blocks = 0;

	HGJ_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel_of(p),
														   PIPE_THREADS, code_bytes(p)));
	HGJ_TRY(turns_open(p, 1, blocks, err));
	HGJ_TRY(t->host.reserve(bytes, err));
	HGJ_TRY(t->device.get(&p->account, p->lane.stream, bytes, err));
	out->capacity = TUPLES;
	out->input = t->device.as<uint32_t>();
	for (uint32_t j = 0; j < p->spec.njoins; j++)
		out->row[j] = out->input + (size_t) (1 + j) * TUPLES;
	return HGJ_OK;
}

/* Steps 2 and 3: one turn of the slot's rows, into its stream. */
HgjStatus tuples_begin(HgjPipeline *p, PipeSlot *slot, bool first, HgjError *err)
{
	PipeTurn turn;
	uint32_t blocks;

	HGJ_TRY(turn_begin(p, slot, first, &turn, &blocks, err));
	HGJ_CUDA(cudaMemsetAsync(p->flags.as<uint64_t>() + PIPE_FLAG_RETURNED, 0,
							 sizeof(uint64_t), slot->lane.stream));
	kernel_of(p)<<<blocks, PIPE_THREADS, code_bytes(p), slot->lane.stream>>>(
		p->view_at.as<PipeView>(), slot->rows, turn);
	HGJ_CUDA(cudaGetLastError());
	return HGJ_OK;
}

/* Step 3: copy what has come out, and begin what comes next. */
static HgjStatus end_turn(HgjPipeline *p, PipeSlot *slot, HgjError *err)
{
	PipeTuples *t = &p->tuples;
	const uint64_t *flags = slot_flags(slot);
	cudaStream_t stream = slot->lane.stream;

	HGJ_TRY(wait_for_work(p, slot, err));
	t->n = flags[PIPE_FLAG_RETURNED] < TUPLES ? (uint32_t) flags[PIPE_FLAG_RETURNED]
											  : TUPLES;
	slot->busy = turn_left(p, slot);
	if (!slot->busy)
		pipeline_count(p, flags);

	HGJ_CUDA(cudaEventRecord(slot->begin.event, stream));
	for (uint32_t c = 0; c <= p->spec.njoins && t->n > 0; c++)
		HGJ_CUDA(cudaMemcpyAsync(t->host.as<uint32_t>() + (size_t) c * TUPLES,
								 t->device.as<uint32_t>() + (size_t) c * TUPLES,
								 t->n * sizeof(uint32_t), cudaMemcpyDeviceToHost,
								 stream));
	HGJ_CUDA(cudaEventRecord(slot->sent.event, stream));
	t->copying = slot->sending = true;
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
	while (t->copying || (t->n == 0 && slot->busy))
	{
		HGJ_TRY(poll(&p->account, err));
		if (!t->copying)
			HGJ_TRY(end_turn(p, slot, err));
		HGJ_TRY(wait_for_event(&p->account, slot->sent.event, err));
		t->copying = false;
		HGJ_TRY(count_transfer(p, slot, err));
	}
	memset(rows, 0, sizeof(*rows));
	rows->n = t->n;
	rows->last = !slot->busy;
	rows->input = t->host.as<uint32_t>();
	for (uint32_t j = 0; j < p->spec.njoins; j++)
		rows->row[j] = rows->input + (size_t) (1 + j) * TUPLES;
	return HGJ_OK;
}

} // namespace hgj
