/*-------------------------------------------------------------------------
 *
 * pipeline_kernels.cuh
 *	  The kernels of a pipeline: an interpreter of its instructions, one thread
 *	  per row, from the staged columns to the states of the groups.
 *
 * 1. A thread runs the instructions for its row.  Candidates of the probes are
 *	  gone through like the digits of an odometer: the last probe that has one
 *	  left goes on with it.  All registers that a later instruction reads have
 *	  been set before the probe, or are set anew after it.
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

#include "device.cuh"
#include "pipeline_ops.cuh"
#include "pipeline_view.h"

namespace hgj
{

constexpr int PIPE_THREADS = 256;

/* Step 1: the slots of a join's candidates. */
template <class T>
__device__ void candidates_of(const PipeJoin &join, const uint64_t *words, uint64_t *from,
							  uint32_t *count)
{
	const GraphView &g = join.graph;
	typename T::Code code;
	uint64_t begin;
	uint64_t end;
	Found f;

	*count = 0;
	if constexpr (T::layout == LAYOUT_MULTI)
	{
		uint64_t state = g.mix.hash.start;

		for (uint32_t w = 0; w < join.nkeys; w++)
			state = hgj_hash_word(&g.mix.hash, state, words[w]);
		code = (typename T::Code) hgj_hash_finish(&g.mix.hash, state);
	}
	else if (!word_code<T>(g.mix, words[0], &code))
		return;

	list_of(g, (uint64_t) (code >> g.mix.shift), &begin, &end);
	if (begin == end)
		return;
	typename T::Entry first =
		load_slot(static_cast<const typename T::Entry *>(g.entries) + begin);

	if constexpr (T::layout == LAYOUT_ROW)
		f = find_direct(g, begin, end, first);
	else
		f = find_sorted<T>(g, begin, end, first, code, g.unique || join.first_only);
	if constexpr (T::layout == LAYOUT_MULTI)
	{
		const uint64_t *stored =
			f.count == 0
				? nullptr
				: g.words +
					  (uint64_t) static_cast<const Entry64 *>(g.entries)[f.from].pos *
						  join.nkeys;

		for (uint32_t w = 0; w < join.nkeys && f.count > 0; w++)
			if (__ldg(stored + w) != words[w])
				f.count = 0;
	}
	*from = f.from;
	*count = join.first_only && f.count > 1 ? 1 : f.count;
}

__device__ __noinline__ void find_candidates(const PipeJoin &join, const uint64_t *words,
											 uint64_t *from, uint32_t *count)
{
	switch (join.graph.mix.layout)
	{
		case LAYOUT_ROW:
			candidates_of<RowTraits>(join, words, from, count);
			break;
		case LAYOUT_NARROW:
			candidates_of<NarrowTraits>(join, words, from, count);
			break;
		case LAYOUT_WIDE:
			candidates_of<WideTraits>(join, words, from, count);
			break;
		case LAYOUT_MULTI:
			candidates_of<MultiTraits>(join, words, from, count);
			break;
	}
}

__device__ __forceinline__ uint32_t candidate_row(const GraphView &g, uint64_t slot)
{
	if (g.mix.layout == LAYOUT_ROW)
		return load_slot(static_cast<const uint32_t *>(g.entries) + slot);
	if (g.mix.layout == LAYOUT_NARROW)
		return load_slot(static_cast<const Entry32 *>(g.entries) + slot).row;
	return load_slot(static_cast<const Entry64 *>(g.entries) + slot).row;
}

/* Step 2, in a hash table; false: there is no room. */
__device__ bool hashed_group(const PipeView &view, const uint64_t *keys, uint64_t nulls,
							 uint64_t *group)
{
	const PipeGroups &g = view.groups;
	uint64_t mask = g.capacity - 1;
	uint64_t hash = nulls * 0x9E3779B97F4A7C15ull + g.seed;

	for (uint32_t k = 0; k < view.nkeys; k++)
		hash = hgj_hash_fold(hash ^ keys[k], 0xA0761D6478BD642Full);
	hash ^= hash >> 32;
	for (uint64_t tries = 0; tries < g.capacity; tries++)
	{
		uint64_t at = (hash + tries) & mask;
		volatile unsigned long long *stored = g.keys + at * (view.nkeys + 1);
		volatile uint32_t *tag = g.tags + at;
		uint32_t state = *tag;

		if (state == 0)
		{
			state = atomicCAS(g.tags + at, 0u, 1u);
			if (state == 0)
			{
				stored[0] = nulls;
				for (uint32_t k = 0; k < view.nkeys; k++)
					stored[k + 1] = keys[k];
				__threadfence();
				*tag = 2;
				*group = at;
				return atomicAdd(view.flags + PIPE_FLAG_GROUPS, 1ull) < g.most;
			}
		}
		while (state != 2)
			state = *tag;
		__threadfence();
		bool same = stored[0] == nulls;

		for (uint32_t k = 0; k < view.nkeys && same; k++)
			same = stored[k + 1] == keys[k];
		if (same)
		{
			*group = at;
			return true;
		}
	}
	return false;
}

/* Step 2; PIPE_FULL where there is no place for it. */
__device__ __forceinline__ unsigned long long
find_group(const PipeView &view, const uint64_t *regs, uint64_t nulls, uint64_t *group)
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

/* Where a row that ends puts what it adds. */
struct PipeSink
{
	unsigned long long *states; /* shared or global memory */
	uint64_t *own;              /* or the thread's */
};

template <bool OWN>
__device__ __forceinline__ unsigned long long
end_row(const PipeView &view, const uint64_t *regs, uint64_t nulls, const PipeSink &sink)
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
			sink.own[w] = state_merge(word.state, sink.own[w], value);
		else
			state_merge_atomic(word.state, sink.states + group * view.nwords + w, value);
	}
	return stop;
}

/* The row as far as it has come. */
template <int REGS, int JOINS>
struct PipeRow
{
	uint64_t regs[REGS];
	uint64_t nulls;
	uint64_t slot[JOINS]; /* of the next candidate */
	uint32_t left[JOINS]; /* candidates */
	uint32_t row[JOINS];  /* of the table; ROW_EMPTY: none */
	uint32_t hit;         /* bit j: a candidate of join j has passed */
	uint32_t open;        /* joins that have been probed */
};

/*
 * On to the next candidate: the instruction to go on with, or ncode.  Rows that
 * are filled with NULLs are counted, because they pass no MATCH.
 */
template <int REGS, int JOINS>
__device__ __forceinline__ uint32_t next_candidate(const PipeView &view,
												   PipeRow<REGS, JOINS> &r,
												   uint32_t *joined)
{
	while (r.open > 0)
	{
		uint32_t j = r.open - 1;
		const PipeJoin &join = view.joins[j];

		if (r.left[j] > 0)
		{
			r.left[j]--;
			r.row[j] = candidate_row(join.graph, r.slot[j]++);
			return join.after_probe;
		}
		if (join.fill && !(r.hit >> j & 1))
		{
			r.hit |= 1u << j;
			r.row[j] = ROW_EMPTY;
			joined[j]++;
			return join.after_match;
		}
		r.open--;
	}
	return view.ncode;
}

template <int REGS, int JOINS>
__device__ __forceinline__ void probe(const PipeView &view, PipeRow<REGS, JOINS> &r,
									  uint32_t j)
{
	const PipeJoin &join = view.joins[j];
	uint64_t words[HGJ_PIPE_KEYS];
	bool null = false;

	r.open = j + 1;
	r.hit &= ~(1u << j);
	r.left[j] = 0;
	for (uint32_t k = 0; k < join.nkeys; k++)
	{
		null |= r.nulls >> join.keys[k] & 1;
		words[k] = r.regs[join.keys[k]];
	}
	if (!null && !join.empty)
		find_candidates(join, words, &r.slot[j], &r.left[j]);
}

template <int REGS>
__device__ __forceinline__ void set_register(uint64_t *regs, uint64_t *nulls,
											 uint32_t dst, uint64_t value, bool null)
{
	regs[dst] = value;
	*nulls = (*nulls & ~(1ull << dst)) | (uint64_t) null << dst;
}

/* One instruction that has a result. */
template <int REGS, int JOINS>
__device__ __forceinline__ bool compute(const PipeView &view, const PipeBatch &batch,
										uint64_t valid, const HgjPipeInstruction &in,
										PipeRow<REGS, JOINS> &r, uint64_t row)
{
	uint64_t a = in.a < REGS ? r.regs[in.a] : 0;
	uint64_t b = in.b < REGS ? r.regs[in.b] : 0;
	bool null_a = in.a < REGS && (r.nulls >> in.a & 1);
	bool null_b = in.b < REGS && (r.nulls >> in.b & 1);
	uint64_t value = 0;
	bool null = false;
	bool good = true;

	switch (in.op)
	{
		case HGJ_PIPE_INPUT:
			null = (valid >> in.arg & 1) &&
				   !(batch.inputs[in.arg].validity[row / 64] >> (row % 64) & 1);
			value =
				load_value(batch.inputs[in.arg].kind, batch.inputs[in.arg].values, row);
			break;
		case HGJ_PIPE_PAYLOAD:
		{
			const PipeColumn &column = view.joins[in.a].columns[in.arg];
			uint64_t at = r.row[in.a];

			null =
				at == ROW_EMPTY || (column.validity != nullptr &&
									!(__ldg(column.validity + at / 64) >> (at % 64) & 1));
			value = null ? 0 : load_value(column.kind, column.values, at);
			break;
		}
		default:
			good = compute_value(in, a, null_a, b, null_b, &value, &null);
			break;
	}
	set_register<REGS>(r.regs, &r.nulls, in.dst, value, null);
	return good;
}

/* All instructions for one row; what is to be added to flags[STOP]. */
template <int REGS, int JOINS, bool OWN>
__device__ __forceinline__ unsigned long long
run_row(const PipeView &view, const HgjPipeInstruction *code, const PipeBatch &batch,
		uint64_t valid, uint64_t row, const PipeSink &sink, uint32_t *joined,
		uint32_t *removed, uint32_t *filtered, uint64_t *ended)
{
	PipeRow<REGS, JOINS> r;
	unsigned long long stop = 0;
	uint32_t pc = 0;

	r.nulls = 0;
	r.hit = 0;
	r.open = 0;
	while (pc < view.ncode && stop == 0)
	{
		HgjPipeInstruction in = code[pc++];
		bool null_a = in.a < REGS && (r.nulls >> in.a & 1);
		bool true_a = in.a < REGS && !null_a && r.regs[in.a] != 0;

		switch (in.op)
		{
			case HGJ_PIPE_END:
				++*ended;
				stop = end_row<OWN>(view, r.regs, r.nulls, sink);
				pc = next_candidate(view, r, joined);
				break;
			case HGJ_PIPE_JUMP:
				pc = in.arg;
				break;
			case HGJ_PIPE_JUMP_UNLESS:
				pc = true_a ? pc : in.arg;
				break;
			case HGJ_PIPE_JUMP_FALSE:
				pc = true_a || null_a ? pc : in.arg;
				break;
			case HGJ_PIPE_JUMP_TRUE:
				pc = true_a ? in.arg : pc;
				break;
			case HGJ_PIPE_JUMP_VALID:
				pc = null_a ? pc : in.arg;
				break;
			case HGJ_PIPE_FILTER:
				if (true_a)
					break;
				if (in.arg > HGJ_PIPE_JOINS)
				{
					filtered[in.arg - 1 - HGJ_PIPE_JOINS]++;
					joined[in.arg - 1 - HGJ_PIPE_JOINS]--;
				}
				else if (in.arg > 0)
					removed[in.arg - 1]++;
				pc = next_candidate(view, r, joined);
				break;
			case HGJ_PIPE_PROBE:
				probe(view, r, in.a);
				pc = next_candidate(view, r, joined);
				break;
			case HGJ_PIPE_MATCH:
				r.hit |= 1u << in.a;
				if (view.joins[in.a].single)
					r.left[in.a] = 0;
				if (view.joins[in.a].pass)
					joined[in.a]++;
				else
					pc = next_candidate(view, r, joined);
				break;
			default:
				if (!compute(view, batch, valid, in, r, row))
					stop = PIPE_ROW_FAILED;
				break;
		}
	}
	return stop;
}

/* Add a thread's counter to a word of flags, by warp. */
__device__ __forceinline__ void add_counter(unsigned long long *flag, uint64_t sum)
{
	for (int d = 16; d > 0; d /= 2)
		sum += __shfl_xor_sync(0xFFFFFFFFu, sum, d);
	if (threadIdx.x % 32 == 0 && sum > 0)
		atomicAdd(flag, (unsigned long long) sum);
}

/*
 * Rows first to first + n - 1 of a batch.  shared_words: state words of all groups, if a
 * block keeps its own.  Dynamic shared memory: the code, and these.
 */
template <int REGS, int JOINS, bool OWN>
__global__ void __launch_bounds__(PIPE_THREADS)
	pipe_rows(const PipeView *view_at, const PipeBatch *batch, uint64_t valid,
			  uint32_t first, uint32_t n, uint32_t shared_words)
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
	uint64_t ended = 0; /* a sum's limit hangs on it */
	unsigned long long stop = 0;
	PipeSink sink = {shared_words > 0 ? words : view.groups.states, own};

	/* a block goes on or ends as a whole: all of it loads the code */
	if (__syncthreads_or(*(volatile unsigned long long *) (view.flags + PIPE_FLAG_STOP) !=
						 0))
		return;
	for (uint32_t i = threadIdx.x; i < view.ncode; i += PIPE_THREADS)
		shared_memory[i] = __ldg(reinterpret_cast<const uint4 *>(view.code) + i);
	for (uint32_t i = threadIdx.x; i < shared_words; i += PIPE_THREADS)
		words[i] = state_identity(view.words[i % view.nwords].state);
	if (OWN)
		for (uint32_t w = 0; w < view.nwords; w++)
			own[w] = state_identity(view.words[w].state);
	__syncthreads();

	for (uint64_t i = (uint64_t) blockIdx.x * PIPE_THREADS + threadIdx.x;
		 i < n && stop == 0; i += (uint64_t) gridDim.x * PIPE_THREADS)
		stop = run_row<REGS, JOINS, OWN>(view, code, *batch, valid, first + i, sink,
										 joined, removed, filtered, &ended);
	if (stop != 0)
		atomicOr(view.flags + PIPE_FLAG_STOP, stop);
	__syncwarp();

	for (uint32_t j = 0; j < view.njoins; j++)
	{
		add_counter(view.flags + PIPE_FLAG_JOINED + j, joined[j]);
		add_counter(view.flags + PIPE_FLAG_REMOVED + j, removed[j]);
		add_counter(view.flags + PIPE_FLAG_FILTERED + j, filtered[j]);
	}
	add_counter(view.flags + PIPE_FLAG_ENDED, ended);
	if (OWN)
		for (uint32_t w = 0; w < view.nwords; w++)
		{
			uint32_t state = view.words[w].state;
			uint64_t sum = own[w];

			for (int d = 16; d > 0; d /= 2)
				sum = state_merge(state, sum, __shfl_xor_sync(0xFFFFFFFFu, sum, d));
			if (threadIdx.x % 32 == 0)
				state_merge_atomic(state, words + w, sum);
		}
	if (shared_words == 0)
		return;
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < shared_words; i += PIPE_THREADS)
	{
		uint32_t state = view.words[i % view.nwords].state;

		if (words[i] != state_identity(state))
			state_merge_atomic(state, view.groups.states + i, words[i]);
	}
}

/* States of groups that have no row yet. */
__global__ void init_states(const PipeView *view, uint64_t total)
{
	uint64_t step = (uint64_t) gridDim.x * blockDim.x;

	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < total;
		 i += step)
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

__global__ void count_groups(const PipeView *view)
{
	uint64_t step = (uint64_t) gridDim.x * blockDim.x;
	uint32_t found = 0;

	for (uint64_t g = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x;
		 g < view->groups.capacity; g += step)
		found += group_exists(*view, g);
	__syncwarp();
	add_counter(view->flags + PIPE_FLAG_GROUPS, found);
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
	uint64_t step = (uint64_t) gridDim.x * blockDim.x;
	uint32_t width = 1 + view->nkeys + view->nwords;

	for (uint64_t g = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x;
		 g < view->groups.capacity; g += step)
		if (group_exists(*view, g))
			write_group(*view, g,
						rows + atomicAdd(view->flags + PIPE_FLAG_OUT, 1ull) * width);
}

} // namespace hgj

#endif /* HGJ_CUDA_PIPELINE_KERNELS_CUH */
