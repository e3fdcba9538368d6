/*-------------------------------------------------------------------------
 *
 * pipeline_tuples.cu
 *	  Pipelines that return rows (spec.rows), on the host's side.
 *
 * 1. start gets room for the rows that are returned at once, here and on the
 *	  device, and for the rows that wait for their turn there: as many as there are
 *	  threads.  What the latter may take bounds the number of threads.
 * 2. push sends its columns and begins the first turn (pipeline_tuples.cuh) of its
 *	  rows; only one staging buffer is used, since nothing else is under way.
 * 3. fetch waits for the turn's end, has what came out copied, and begins the next
 *	  turn behind the copy: the device works while the caller looks at rows.  A turn
 *	  ends after milliseconds, whatever the rows have before them, so that a fetch
 *	  can be cancelled, and a device that hangs be told from one with much to do.
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

/* Of waiting rows, both of a turn's sides. */
constexpr uint64_t WAITING_BYTES = UINT64_C(32) << 20;

/* Of a memory limit, the part of that at most; and threads at least. */
constexpr uint64_t WAITING_PART = 8;
constexpr uint64_t LEAST_THREADS = 2048;

using Kernel = void (*)(const PipeView *, const PipeBatch *, uint64_t, uint32_t,
						PipeTurn);

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

/* Step 1: as many threads as the device runs at once, if their rows can wait. */
static HgjStatus choose_threads(HgjPipeline *p, uint32_t words, uint32_t *threads,
								HgjError *err)
{
	uint64_t most = WAITING_BYTES;
	uint64_t n;
	int blocks = 0;

	HGJ_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel_of(p),
														   PIPE_THREADS, code_bytes(p)));
	if (p->spec.memory_limit > 0 && p->spec.memory_limit / WAITING_PART < most)
		most = p->spec.memory_limit / WAITING_PART;
	n = most / (2 * sizeof(uint64_t) * words);
	n = n < LEAST_THREADS ? LEAST_THREADS : n;
	if (n > (uint64_t) blocks * p->account.device->sms * PIPE_THREADS && blocks > 0)
		n = (uint64_t) blocks * p->account.device->sms * PIPE_THREADS;
	*threads = (uint32_t) (n / PIPE_THREADS * PIPE_THREADS);
	return HGJ_OK;
}

/* Step 1; before the view goes to the device. */
HgjStatus tuples_open(HgjPipeline *p, HgjError *err)
{
	PipeTuples *t = &p->tuples;
	PipeOut *out = &p->view.out;
	size_t bytes = (size_t) TUPLES * (1 + p->spec.njoins) * sizeof(uint32_t);
	size_t side;

	out->capacity = TUPLES;
	out->registers = p->registers;
	out->words = PIPE_WAITING_HEAD + p->registers + p->spec.njoins * PIPE_WAITING_JOIN;
	HGJ_TRY(choose_threads(p, out->words, &out->places, err));
	side = (size_t) out->places * out->words * sizeof(uint64_t);
	HGJ_TRY(t->host.reserve(bytes, err));
	HGJ_TRY(t->device.get(&p->account, p->lane.stream, bytes, err));
	HGJ_TRY(t->waiting.get(&p->account, p->lane.stream, side * 2, err));
	out->input = t->device.as<uint32_t>();
	for (uint32_t j = 0; j < p->spec.njoins; j++)
		out->row[j] = out->input + (size_t) (1 + j) * TUPLES;
	out->waiting[0] = t->waiting.as<uint64_t>();
	out->waiting[1] = out->waiting[0] + side / sizeof(uint64_t);
	return HGJ_OK;
}

/* Step 2 and 3: one turn, into the slot's stream. */
static HgjStatus begin_turn(HgjPipeline *p, PipeSlot *slot, bool first, HgjError *err)
{
	const PipeTuples *t = &p->tuples;
	const PipeOut *out = &p->view.out;
	bool all_taken = !first && t->taken >= t->pushed;
	uint64_t threads = out->places;
	PipeTurn turn;

	turn.from = out->waiting[t->side];
	turn.to = out->waiting[t->side ^ 1];
	turn.waiting = first ? 0 : t->left;
	turn.parts = all_taken ? out->places / t->left : 1;
	if (first && t->pushed < threads)
		threads = t->pushed;
	HGJ_CUDA(cudaMemsetAsync(p->flags.as<uint64_t>() + PIPE_FLAG_RETURNED, 0,
							 (first ? 3 : 2) * sizeof(uint64_t), slot->lane.stream));
	kernel_of(p)<<<(unsigned int) ((threads + PIPE_THREADS - 1) / PIPE_THREADS),
				   PIPE_THREADS, code_bytes(p), slot->lane.stream>>>(
		p->view_at.as<PipeView>(), slot->batch.as<PipeBatch>(), t->nulls, t->pushed,
		turn);
	HGJ_CUDA(cudaGetLastError());
	return HGJ_OK;
}

/* Step 2, from push: its n rows are in the slot's stream. */
HgjStatus tuples_begin(HgjPipeline *p, PipeSlot *slot, uint32_t n, uint64_t nulls,
					   HgjError *err)
{
	PipeTuples *t = &p->tuples;

	t->pushed = n;
	t->nulls = nulls;
	t->left = 0;
	t->side = 0;
	t->sending = true;
	t->copying = false;
	return begin_turn(p, slot, true, err);
}

/* What two events of the slot are apart, added to a time. */
static HgjStatus add_time(const Event &from, const Event &to, double *sum, HgjError *err)
{
	float ms = 0;

	HGJ_CUDA(cudaEventElapsedTime(&ms, from.event, to.event));
	*sum += ms;
	return HGJ_OK;
}

/* Step 3: copy what has come out, and begin what comes next. */
static HgjStatus end_turn(HgjPipeline *p, PipeSlot *slot, HgjError *err)
{
	PipeTuples *t = &p->tuples;
	const uint64_t *flags =
		reinterpret_cast<const uint64_t *>(slot->host.as<char>() + p->slot_bytes);
	cudaStream_t stream = slot->lane.stream;

	HGJ_TRY(wait_for_mark(&p->account, slot->lane, true, err));
	if (t->sending)
		HGJ_TRY(add_time(slot->begin, slot->sent, &p->counted.transfer_ms, err));
	t->sending = false;
	HGJ_TRY(add_time(slot->sent, slot->done, &p->counted.kernel_ms, err));
	HGJ_TRY(pipeline_look(p, flags, err));
	t->n = flags[PIPE_FLAG_RETURNED] < TUPLES ? (uint32_t) flags[PIPE_FLAG_RETURNED]
											  : TUPLES;
	t->left = (uint32_t) flags[PIPE_FLAG_WAITING];
	t->taken = flags[PIPE_FLAG_TAKEN];
	t->side ^= 1;
	slot->busy = t->left > 0 || t->taken < t->pushed;
	if (!slot->busy)
		pipeline_count(p, flags);

	HGJ_CUDA(cudaEventRecord(slot->begin.event, stream));
	for (uint32_t c = 0; c <= p->spec.njoins && t->n > 0; c++)
		HGJ_CUDA(cudaMemcpyAsync(t->host.as<uint32_t>() + (size_t) c * TUPLES,
								 t->device.as<uint32_t>() + (size_t) c * TUPLES,
								 t->n * sizeof(uint32_t), cudaMemcpyDeviceToHost,
								 stream));
	HGJ_CUDA(cudaEventRecord(slot->sent.event, stream));
	t->copying = true;
	if (!slot->busy)
		return HGJ_OK;
	HGJ_TRY(begin_turn(p, slot, false, err));
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
		HGJ_TRY(add_time(slot->begin, slot->sent, &p->counted.transfer_ms, err));
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
