/*-------------------------------------------------------------------------
 *
 * pipeline_turns.cuh
 *	  Kernels that rows go through in turns, because a row may have any number of
 *	  candidates, or what ends has to wait for room.
 *
 * 1. Rows of the push are taken from a counter, by whole warps at once, so that
 *	  nobody waits for who has more to do.
 * 2. A kernel is one turn.  A thread whose row finds no room, or whose time is
 *	  up, writes the row as far as it has come into a place for waiting rows: no
 *	  thread has more than one.  The next turn's threads read these.
 * 3. In the end, few rows with many candidates are left.  When all rows of the push
 *	  have been taken, what the outermost probe has left is divided among several
 *	  threads, unless candidates matter to each other: where the first that passes
 *	  is the only one, or where nobody knows yet whether one has passed.
 * 4. What threads count is added up at the end of each turn; a row that a filter
 *	  gives up may have been counted in an earlier one.
 *
 * Owns nothing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CUDA_PIPELINE_TURNS_CUH
#define HGJ_CUDA_PIPELINE_TURNS_CUH

#include "pipeline_row.cuh"

namespace hgj
{

/* Of the device's clock: some two milliseconds. */
constexpr long long PIPE_TURN_CLOCKS = 1 << 22;

/* Step 1: the counter's value, one for each of the threads that are here. */
__device__ __forceinline__ unsigned long long take_one(unsigned long long *counter)
{
	uint32_t here = __activemask();
	uint32_t lane = threadIdx.x % 32;
	int first = __ffs((int) here) - 1;
	unsigned long long at = 0;

	if ((int) lane == first)
		at = atomicAdd(counter, (unsigned long long) __popc(here));
	at = __shfl_sync(here, at, first);
	return at + (unsigned int) __popc(here & ((1u << lane) - 1));
}

__device__ __forceinline__ bool turn_is_over(long long begun)
{
	return clock64() - begun > PIPE_TURN_CLOCKS;
}

/* Step 2 */
template <int REGS, int JOINS>
__device__ void keep_row(const PipeView &view, const PipeRow<REGS, JOINS> &r,
						 uint32_t row, uint32_t at, const PipeTurn &turn)
{
	uint64_t places = turn.places;
	uint64_t *to = turn.to + take_one(turn.counters + PIPE_COUNTER_WAITING);

	to[0] = (uint64_t) row | (uint64_t) r.open << 32 | (uint64_t) r.hit << 40 |
			(uint64_t) (at == PIPE_WAITS_AT_END) << 48;
	to[places] = r.nulls;
	to += PIPE_WAITING_HEAD * places;
	for (uint32_t i = 0; i < view.registers; i++, to += places)
		*to = r.regs[i];
	for (uint32_t j = 0; j < r.open; j++, to += PIPE_WAITING_JOIN * places)
	{
		to[0] = r.slot[j];
		to[places] = (uint64_t) r.left[j] << 32 | r.row[j];
	}
}

template <int REGS, int JOINS>
__device__ void restore_row(const PipeView &view, PipeRow<REGS, JOINS> &r, uint32_t *row,
							uint32_t *at, const uint64_t *from, uint64_t places)
{
	uint64_t head = from[0];

	*row = (uint32_t) head;
	r.open = (uint32_t) (head >> 32) & 0xFF;
	r.hit = (uint32_t) (head >> 40) & 0xFF;
	*at = head >> 48 & 1 ? PIPE_WAITS_AT_END : PIPE_WAITS;
	r.nulls = from[places];
	from += PIPE_WAITING_HEAD * places;
	for (uint32_t i = 0; i < view.registers; i++, from += places)
		r.regs[i] = *from;
	for (uint32_t j = 0; j < r.open; j++, from += PIPE_WAITING_JOIN * places)
	{
		r.slot[j] = from[0];
		r.left[j] = (uint32_t) (from[places] >> 32);
		r.row[j] = (uint32_t) from[places];
	}
}

/*
 * Step 3: leave of the row what is one part's.  Part 0 goes on where the row is, and
 * with all that joins further out have left; the others have some of one join's
 * candidates.  False: nothing.
 */
template <int REGS, int JOINS>
__device__ bool take_part(const PipeView &view, PipeRow<REGS, JOINS> &r, uint32_t *at,
						  uint32_t part, uint32_t parts)
{
	for (uint32_t j = 0; j < r.open; j++)
	{
		const PipeJoin &join = view.joins[j];
		uint64_t left = r.left[j];
		uint64_t begin = left * part / parts;

		if (left == 0 || join.single || (join.fill && !(r.hit >> j & 1)))
			continue;
		r.slot[j] += begin;
		r.left[j] = (uint32_t) (left * (part + 1) / parts - begin);
		if (part == 0)
			return true;
		for (uint32_t i = 0; i < j; i++)
			r.left[i] = 0;
		r.open = j + 1;
		*at = PIPE_WAITS;
		return r.left[j] > 0;
	}
	return part == 0;
}

/* Of row i of all: the inputs of its batch, and its number there. */
struct PipePlace
{
	const PipeInput *inputs;
	uint32_t row;
};

__device__ __forceinline__ PipePlace place_of(const PipeRows &rows, uint32_t i)
{
	uint32_t low = 0;
	uint32_t high = rows.nbatches;

	if (rows.starts == nullptr)
		return PipePlace{rows.inputs, i};
	while (high - low > 1)
	{
		uint32_t middle = low + (high - low) / 2;

		if (__ldg(rows.starts + middle) <= i)
			low = middle;
		else
			high = middle;
	}
	return PipePlace{rows.inputs + low * rows.ninputs, i - __ldg(rows.starts + low)};
}

/* Rows of a push, as far as one turn gets; what is to be added to flags[STOP]. */
template <int REGS, int JOINS, class Sink>
__device__ __forceinline__ unsigned long long
run_turn(const PipeView &view, const HgjPipeInstruction *code, const PipeRows &rows,
		 const PipeTurn &turn, Sink &sink, const PipeCounts &counts)
{
	uint32_t thread = blockIdx.x * PIPE_THREADS + threadIdx.x;
	PipeRow<REGS, JOINS> r;
	unsigned long long stop = 0;
	uint32_t row = 0;
	uint32_t at = view.ncode;

	if (thread < turn.waiting * turn.parts)
	{
		/* parts 0, who have to do alone what cannot be divided, fill whole warps */
		restore_row(view, r, &row, &at, turn.from + thread % turn.waiting, turn.places);
		if (!take_part(view, r, &at, thread / turn.waiting, turn.parts))
			at = view.ncode;
		else
			at = at == PIPE_WAITS_AT_END ? view.ncode - 1
										 : next_candidate(view, r, counts.joined);
	}
	while (stop == 0)
	{
		if (at == view.ncode && !sink.late())
		{
			unsigned long long next = take_one(turn.counters + PIPE_COUNTER_TAKEN);

			if (next >= rows.n)
				break;
			row = (uint32_t) next;
			at = 0;
			begin_row(r);
		}
		if (at >= view.ncode)
			break;

		const PipePlace place = place_of(rows, row);

		sink.begin(row);
		stop = run_row(view, code, place.inputs, rows.valid, place.row, r, &at, sink,
					   counts);
	}
	if (stop == 0 && at > view.ncode)
		keep_row(view, r, row, at, turn);
	return stop;
}

/* Step 4: what is taken from `joined` again may be more than what was added. */
__device__ __forceinline__ void add_counts(const PipeView &view, const PipeCounts &counts)
{
	for (uint32_t j = 0; j < view.njoins; j++)
	{
		add_counter(view.flags + PIPE_FLAG_JOINED + j,
					(uint64_t) (int64_t) (int32_t) counts.joined[j]);
		add_counter(view.flags + PIPE_FLAG_REMOVED + j, counts.removed[j]);
		add_counter(view.flags + PIPE_FLAG_FILTERED + j, counts.filtered[j]);
	}
	add_counter(view.flags + PIPE_FLAG_DROPPED, *counts.dropped);
}

} // namespace hgj

#endif /* HGJ_CUDA_PIPELINE_TURNS_CUH */
