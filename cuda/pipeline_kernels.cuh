/*-------------------------------------------------------------------------
 *
 * pipeline_kernels.cuh
 *	  The kernels of a pipeline with groups: from the staged columns to the states
 *	  of the groups, and from these to group rows.
 *
 * 1. A thread runs the instructions for its row (pipeline_row.cuh).
 * 2. A row that ends finds its group: the only one, by position in a dense
 *	  array, or in a hash table.  A slot of that is claimed with one atomic, filled,
 *	  and then never changed; who meets it while it is being filled waits.
 * 3. State words are changed by atomics.  Where all of them fit, a block has
 *	  its own in shared memory, and adds them to the real ones at its end; a
 *	  single group's are kept by each thread, then summed up by warp.
 * 4. What ends the pipeline (a row's error, no room for a group) is a bit in
 *	  flags, which every kernel looks at before it begins.
 *
 * Owns nothing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CUDA_PIPELINE_KERNELS_CUH
#define HGJ_CUDA_PIPELINE_KERNELS_CUH

#include "having.h"
#include "pipeline_groups.cuh"
#include "pipeline_turns.cuh"

namespace hgj
{

/* Step 2; PIPE_FULL where there is no place for it. */
template <int REGS>
__device__ __forceinline__ unsigned long long find_group(const PipeView &view,
														 const PipeRegs<REGS> &regs,
														 uint64_t nulls, uint64_t *group)
{
	const PipeGroups &g = view.groups;

	*group = 0;
	if (view.nkeys == 0)
		return 0;
	if (g.dense)
	{
		for (uint32_t k = 0; k < view.nkeys; k++)
		{
			uint32_t reg = view.keys[k];
			int64_t value = (int64_t) regs[reg];

			if (nulls >> reg & 1)
				continue;
			if (value < g.low[k] || value > g.high[k])
				return PIPE_FULL;
			*group += ((uint64_t) value - (uint64_t) g.low[k] + 1) * g.step[k];
		}
		return 0;
	}

	uint64_t keys[HGJ_PIPE_KEYS];
	uint64_t null_keys = 0;

	for (uint32_t k = 0; k < view.nkeys; k++)
	{
		bool null = nulls >> view.keys[k] & 1;

		keys[k] = null ? 0 : regs[view.keys[k]];
		null_keys |= (uint64_t) null << k;
	}
	return hashed_group(view, keys, null_keys, group) ? 0 : PIPE_FULL;
}

template <bool OWN, int REGS>
__device__ __forceinline__ unsigned long long
end_row(const PipeView &view, const PipeRegs<REGS> &regs, uint64_t nulls,
		unsigned long long *states, uint64_t *own)
{
	uint64_t group = 0;
	unsigned long long stop = find_group(view, regs, nulls, &group);

	for (uint32_t w = 0; w < view.nwords && stop == 0; w++)
	{
		HgjPipeWord word = view.words[w];
		uint64_t value = word.reg != HGJ_PIPE_NONE ? regs[word.reg] : 0;

		if (word.filter != HGJ_PIPE_NONE &&
			((nulls >> word.filter & 1) || regs[word.filter] == 0))
			continue;
		if (word.reg != HGJ_PIPE_NONE && (nulls >> word.reg & 1))
			continue;
		if (!state_operand(word.state, &value))
			stop = PIPE_ROW_FAILED;
		if (OWN)
			own[w] = state_merge(word.state, own[w], value);
		else
			state_merge_atomic(word.state, states + group * view.nwords + w, value);
	}
	return stop;
}

/* Where a row that ends puts what it adds; there is always room. */
template <bool OWN, bool TURNS>
struct GroupSink
{
	unsigned long long *states; /* shared or global memory */
	uint64_t *own;              /* or the thread's */
	uint64_t ended;             /* a sum's limit hangs on it */
	long long begun;            /* with turns */

	__device__ __forceinline__ bool late() const
	{
		return TURNS && turn_is_over(begun);
	}

	__device__ __forceinline__ void begin(uint32_t) const
	{
	}

	template <int REGS, int JOINS>
	__device__ __forceinline__ bool
	end(const PipeView &view, const PipeRow<REGS, JOINS> &r, unsigned long long *stop)
	{
		ended++;
		*stop = end_row<OWN>(view, r.regs, r.nulls, states, own);
		return true;
	}
};

/*
 * All rows, or one turn of them.  shared_words: state words of all groups, if
 * a block keeps its own.  Dynamic shared memory: the code, these, and registers if REGS
 * is 0.
 */
template <int REGS, int JOINS, bool OWN, bool TURNS>
__global__ void __launch_bounds__(PIPE_THREADS)
	pipe_rows(const PipeView *view_at, PipeRows rows, uint32_t shared_words,
			  PipeTurn turn)
{
	extern __shared__ uint4 shared_memory[];
	const PipeView &view = *view_at;
	HgjPipeInstruction *code = reinterpret_cast<HgjPipeInstruction *>(shared_memory);
	unsigned long long *words =
		reinterpret_cast<unsigned long long *>(shared_memory + view.ncode);
	uint64_t own[OWN ? HGJ_PIPE_WORDS : 1];
	uint32_t joined[JOINS] = {};
	uint32_t removed[JOINS] = {};
	uint32_t filtered[JOINS] = {};
	uint32_t dropped = 0;
	PipeCounts counts = {joined, removed, filtered, &dropped};
	unsigned long long stop = 0;
	GroupSink<OWN, TURNS> sink = {shared_words > 0 ? words : view.groups.states, own, 0,
								  TURNS ? clock64() : 0};

	if (!load_code(view, shared_memory))
		return;
	for (uint32_t i = threadIdx.x; i < shared_words; i += PIPE_THREADS)
		words[i] = state_identity(view.words[i % view.nwords].state);
	if (OWN)
		for (uint32_t w = 0; w < view.nwords; w++)
			own[w] = state_identity(view.words[w].state);
	__syncthreads();

	if constexpr (TURNS)
		stop = run_turn<REGS, JOINS>(view, code, rows, turn, sink, counts);
	else
		stop = run_tiles<REGS, JOINS>(view, code, rows, 2 * view.ncode + shared_words,
									  sink, counts);
	if (stop != 0)
		atomicOr(view.flags + PIPE_FLAG_STOP, stop);
	__syncwarp();

	add_counts(view, counts);
	add_counter(view.flags + PIPE_FLAG_ENDED, sink.ended);
	if (OWN)
		for (uint32_t w = 0; w < view.nwords; w++)
		{
			uint32_t state = view.words[w].state;
			uint64_t sum = warp_reduce(own[w], [state](uint64_t a, uint64_t b)
									   { return state_merge(state, a, b); });

			if (threadIdx.x % 32 == 0)
				state_merge_atomic(state, words + w, sum);
		}
	if (shared_words > 0)
		__syncthreads();
	add_shared_states(view, words, shared_words);
}

/* States of groups that have no row yet. */
__global__ void init_states(const PipeView *view, uint64_t total)
{
	FOR_GRID (i, total)
		view->groups.states[i] = state_identity(view->words[i % view->nwords].state);
}

/* Is there a group?  Word 0 counts the rows of a dense one. */
__device__ __forceinline__ bool group_exists(const PipeView &view, uint64_t group)
{
	if (view.nkeys == 0)
		return true;
	if (view.groups.dense)
		return view.groups.states[group * view.nwords] != 0;
	return view.groups.tags[group] == 2;
}

/* Is it one that is wanted?  The states are the last ones. */
__device__ __forceinline__ bool group_stays(const PipeView &view, uint64_t group)
{
	uint64_t words[HGJ_PIPE_WORDS];

	if (view.nhaving == 0)
		return true;
	for (uint32_t w = 0; w < view.nwords; w++)
		words[w] = view.groups.states[group * view.nwords + w];
	return !hgj_having_leaves_out(view.having, view.nhaving, words);
}

__global__ void count_groups(const PipeView *view)
{
	uint32_t found = 0;
	uint32_t left_out = 0;

	FOR_GRID (g, view->groups.capacity)
	{
		if (!group_exists(*view, g))
			continue;
		if (group_stays(*view, g))
			found++;
		else
			left_out++;
	}
	__syncwarp();
	add_counter(view->flags + PIPE_FLAG_GROUPS, found);
	add_counter(view->flags + PIPE_FLAG_LEFT_OUT, left_out);
}

__device__ void write_group(const PipeView &view, uint64_t group, unsigned long long *to)
{
	const PipeGroups &g = view.groups;

	to[0] = 0;
	for (uint32_t k = 0; k < view.nkeys; k++)
	{
		if (!g.dense)
		{
			to[0] = g.keys[group * (view.nkeys + 1)];
			to[k + 1] = g.keys[group * (view.nkeys + 1) + k + 1];
			continue;
		}
		uint64_t places = (uint64_t) g.high[k] - (uint64_t) g.low[k] + 2;
		uint64_t place = group / g.step[k] % places;

		to[0] |= (unsigned long long) (place == 0) << k;
		to[k + 1] = place == 0 ? 0 : (uint64_t) g.low[k] + place - 1;
	}
	for (uint32_t w = 0; w < view.nwords; w++)
		to[1 + view.nkeys + w] =
			state_result(view.words[w].state, g.states[group * view.nwords + w]);
}

/* Group rows, without gaps, in any order. */
__global__ void write_groups(const PipeView *view, unsigned long long *rows)
{
	uint32_t width = 1 + view->nkeys + view->nwords;

	FOR_GRID (g, view->groups.capacity)
		if (group_exists(*view, g) && group_stays(*view, g))
			write_group(*view, g,
						rows + atomicAdd(view->flags + PIPE_FLAG_OUT, 1ull) * width);
}

} // namespace hgj

#endif /* HGJ_CUDA_PIPELINE_KERNELS_CUH */
