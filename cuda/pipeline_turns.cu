/*-------------------------------------------------------------------------
 *
 * pipeline_turns.cu
 *	  Turns of a pipeline's rows (pipeline_turns.cuh), on the host's side, and
 *	  waiting for what has been put into a slot's stream.
 *
 * 1. start gets room for rows that wait: a place for each thread, twice, since a
 *	  turn reads one side and writes the other.  What they may take bounds the
 *	  number of threads.
 * 2. push begins the first turn of its rows.  Who waits for them (a fetch, or
 *	  wait_for_slot) reads what the turn has left, and begins the next one.  A turn
 *	  ends after milliseconds, whatever the rows have before them: so waiting can be
 *	  cancelled, and a device that hangs be told from one with much to do.
 *
 * Memory belongs to the pipeline's slots.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "pipeline_host.h"

namespace hgj
{

/* Of waiting rows of a pipeline, and of its memory limit the part of that at most. */
constexpr uint64_t WAITING_BYTES = UINT64_C(48) << 20;
constexpr uint64_t WAITING_PART = 8;

constexpr uint64_t LEAST_THREADS = 2048;
constexpr uint64_t BLOCK_THREADS = 256;

/* Step 1; blocks: that an SM runs at once. */
HgjStatus turns_open(HgjPipeline *p, uint32_t nslots, int blocks, HgjError *err)
{
	uint64_t words =
		PIPE_WAITING_HEAD + p->registers + p->spec.njoins * PIPE_WAITING_JOIN;
	uint64_t at_once = (uint64_t) blocks * p->account.device->sms * BLOCK_THREADS;
	uint64_t most = WAITING_BYTES;
	uint64_t n;

	if (p->account.spec.memory_limit > 0 && p->account.spec.memory_limit / WAITING_PART < most)
		most = p->account.spec.memory_limit / WAITING_PART;
	n = most / nslots / (2 * sizeof(uint64_t) * words);
	n = n < LEAST_THREADS ? LEAST_THREADS : n;
	n = blocks > 0 && n > at_once ? at_once : n;
	p->places = (uint32_t) (n / BLOCK_THREADS * BLOCK_THREADS);
	p->side_words = p->places * words;
	for (uint32_t i = 0; i < nslots; i++)
		HGJ_TRY(p->slots[i].waiting.get(&p->account, p->lane.stream,
										p->side_words * 2 * sizeof(uint64_t), err));
	return HGJ_OK;
}

/* Step 2: the slot's next turn, and how many blocks are to go through it. */
HgjStatus turn_begin(HgjPipeline *p, PipeSlot *slot, bool first, PipeTurn *turn,
					 uint32_t *blocks, HgjError *err)
{
	uint64_t *counters =
		p->flags.as<uint64_t>() + PIPE_FLAG_COUNTERS + 2 * (slot - p->slots);
	uint64_t *sides = slot->waiting.as<uint64_t>();
	uint64_t threads = p->places;

	if (first)
	{
		slot->left = 0;
		slot->taken = 0;
		slot->side = 0;
		threads = slot->pushed < threads ? slot->pushed : threads;
	}
	*blocks = (uint32_t) ((threads + BLOCK_THREADS - 1) / BLOCK_THREADS);
	turn->counters = reinterpret_cast<unsigned long long *>(counters);
	turn->from = sides + slot->side * p->side_words;
	turn->to = sides + (slot->side ^ 1) * p->side_words;
	turn->places = p->places;
	turn->waiting = slot->left;
	turn->parts =
		slot->left > 0 && slot->taken >= slot->pushed ? p->places / slot->left : 1;
	slot->side ^= 1;
	HGJ_CUDA(cudaMemsetAsync(counters, 0, (first ? 2 : 1) * sizeof(uint64_t),
							 slot->lane.stream));
	return HGJ_OK;
}

/* What the last turn has left; true: there is to be another one. */
bool turn_left(HgjPipeline *p, PipeSlot *slot)
{
	const uint64_t *counters =
		slot_flags(slot) + PIPE_FLAG_COUNTERS + 2 * (slot - p->slots);

	slot->left = (uint32_t) counters[PIPE_COUNTER_WAITING];
	slot->taken = counters[PIPE_COUNTER_TAKEN];
	return slot->left > 0 || slot->taken < slot->pushed;
}

/* Behind the last kernel in the slot's stream: what it has found, and the mark. */
HgjStatus end_of_work(HgjPipeline *p, PipeSlot *slot, HgjError *err)
{
	HGJ_CUDA(cudaEventRecord(slot->done.event, slot->lane.stream));
	HGJ_CUDA(cudaMemcpyAsync(slot->found.as<void>(), p->flags.as<void>(),
							 PIPE_FLAGS * sizeof(uint64_t), cudaMemcpyDeviceToHost,
							 slot->lane.stream));
	return mark(slot->lane, err);
}

/* What two events of the slot are apart, added to a time. */
static HgjStatus add_time(const Event &from, const Event &to, double *sum, HgjError *err)
{
	float ms = 0;

	HGJ_CUDA(cudaEventElapsedTime(&ms, from.event, to.event));
	*sum += ms;
	return HGJ_OK;
}

/* The slot's transfer is through: its time, once. */
HgjStatus count_transfer(HgjPipeline *p, PipeSlot *slot, HgjError *err)
{
	if (slot->sending)
		HGJ_TRY(add_time(slot->begin, slot->sent, &p->counted.transfer_ms, err));
	slot->sending = false;
	return HGJ_OK;
}

/* Until the mark: the times, and what has been found. */
HgjStatus wait_for_work(HgjPipeline *p, PipeSlot *slot, HgjError *err)
{
	HGJ_TRY(wait_for_mark(&p->account, slot->lane, true, err));
	HGJ_TRY(count_transfer(p, slot, err));
	HGJ_TRY(add_time(slot->sent, slot->done, &p->counted.kernel_ms, err));
	return pipeline_look(p, slot_flags(slot), err);
}

} // namespace hgj
