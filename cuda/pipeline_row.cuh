/*-------------------------------------------------------------------------
 *
 * pipeline_row.cuh
 *	  The interpreter of a pipeline's instructions: one thread, one row.
 *
 * 1. A thread runs the instructions for its row.  Candidates of the probes are
 *	  gone through like the digits of an odometer: the last probe that has one
 *	  left goes on with it.  All registers that a later instruction reads have
 *	  been set before the probe, or are set anew after it.
 * 2. What ends goes to a sink: a group (pipeline_kernels.cuh), what is returned
 *	  (pipeline_tuples.cuh), or a table's rows (pipeline_fill.cuh).  What is returned may
 *	  have no room, or no time: then the row stops between two candidates, or at its
 *	  END, and can go on from there later.
 * 3. A block goes from tile to tile of the rows.
 *
 * Owns nothing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CUDA_PIPELINE_ROW_CUH
#define HGJ_CUDA_PIPELINE_ROW_CUH

#include "device.cuh"
#include "pipeline_ops.cuh"
#include "pipeline_view.h"

namespace hgj
{

constexpr int PIPE_THREADS = 256;

/* Instead of an instruction: the row waits for its next candidate, or at END. */
constexpr uint32_t PIPE_WAITS = 0xFFFFFFFEu;
constexpr uint32_t PIPE_WAITS_AT_END = 0xFFFFFFFFu;

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

static __device__ __noinline__ void find_candidates(const PipeJoin &join,
													const uint64_t *words, uint64_t *from,
													uint32_t *count)
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

/*
 * A thread's registers: an array of its own, or (REGS is 0) one word in so many of the
 * block's dynamic shared memory, as many as the pipeline has.  Registers are numbered by
 * instructions, so that an array lies in local memory, of which a multiprocessor's
 * threads together have more than its cache holds.
 */
template <int REGS>
struct PipeRegs
{
	uint64_t words[REGS];

	__device__ __forceinline__ void place(uint32_t)
	{
	}
	__device__ __forceinline__ uint64_t &operator[](uint32_t i)
	{
		return words[i];
	}
	__device__ __forceinline__ uint64_t operator[](uint32_t i) const
	{
		return words[i];
	}
	static __device__ __forceinline__ uint32_t count(const PipeView &)
	{
		return REGS;
	}
};

template <>
struct PipeRegs<0>
{
	uint32_t first; /* of the block's shared memory, in words */

	__device__ __forceinline__ void place(uint32_t block_first)
	{
		first = block_first + threadIdx.x;
	}
	__device__ __forceinline__ uint64_t &operator[](uint32_t i) const
	{
		extern __shared__ uint4 shared_memory[];

		return reinterpret_cast<uint64_t *>(shared_memory)[first + i * PIPE_THREADS];
	}
	static __device__ __forceinline__ uint32_t count(const PipeView &view)
	{
		return view.registers;
	}
};

/* The row as far as it has come. */
template <int REGS, int JOINS>
struct PipeRow
{
	PipeRegs<REGS> regs;
	uint64_t nulls;
	uint64_t slot[JOINS]; /* of the next candidate */
	uint32_t left[JOINS]; /* candidates */
	uint32_t row[JOINS];  /* of the table; ROW_EMPTY: none */
	uint32_t hit;         /* bit j: a candidate of join j has passed */
	uint32_t open;        /* joins that have been probed */
};

/* What a thread counts for each join: arrays of its own, apart, or registers spill. */
struct PipeCounts
{
	uint32_t *joined;
	uint32_t *removed;
	uint32_t *filtered;
	uint32_t *dropped; /* one of them */
};

template <int REGS, int JOINS>
__device__ __forceinline__ void begin_row(PipeRow<REGS, JOINS> &r)
{
	r.nulls = 0;
	r.hit = 0;
	r.open = 0;
}

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
__device__ __forceinline__ void set_register(PipeRegs<REGS> &regs, uint64_t *nulls,
											 uint32_t dst, uint64_t value, bool null)
{
	regs[dst] = value;
	*nulls = (*nulls & ~(1ull << dst)) | (uint64_t) null << dst;
}

/* A kept number of three bytes. */
struct ThreeBytes
{
};

/* Number `at` of kept rows, of one width. */
template <class Number>
__device__ __forceinline__ uint64_t number_at(const PipeInput &input, uint64_t at)
{
	return __ldg(static_cast<const Number *>(input.values) + at);
}

template <>
__device__ __forceinline__ uint64_t number_at<ThreeBytes>(const PipeInput &input,
														  uint64_t at)
{
	return __ldg(static_cast<const uint16_t *>(input.values) + at) |
		   (uint32_t) __ldg(input.high + at) << 16;
}

/* The same, of that which the input has. */
__device__ __forceinline__ uint64_t load_number(const PipeInput &input, uint64_t at)
{
	switch (input.kind)
	{
		case PIPE_KEPT_1:
			return number_at<uint8_t>(input, at);
		case PIPE_KEPT_2:
			return number_at<uint16_t>(input, at);
		case PIPE_KEPT_3:
			return number_at<ThreeBytes>(input, at);
		case PIPE_KEPT_4:
			return number_at<uint32_t>(input, at);
		default:
			return number_at<unsigned long long>(input, at);
	}
}

/* Bit i of a bitmap. */
__device__ __forceinline__ bool bit_of(const uint64_t *bits, uint64_t i)
{
	return __ldg(bits + i / 64) >> (i % 64) & 1;
}

/* From a kept number to what its table has for it; false: NULL. */
__device__ __forceinline__ bool table_value(const PipeInput &input, bool valid,
											uint64_t *value)
{
	uint64_t place = valid && *value < input.ntable ? *value : input.ntable - 1;

	*value = __ldg(input.table + place);
	return bit_of(input.table + input.ntable, place);
}

/* An input of a row, as a register has it; false: it is NULL. */
__device__ __forceinline__ bool load_input(const PipeInput &input, bool may_be_null,
										   uint64_t row, uint64_t *value)
{
	uint64_t at = input.first + row;
	bool valid = !may_be_null || input.validity == nullptr || bit_of(input.validity, at);

	if (input.kind < PIPE_KEPT_1)
	{
		*value = load_value(input.kind, input.values, at);
		return valid;
	}
	*value = load_number(input, at);
	if (input.table == nullptr)
	{
		*value = (input.base + *value) & input.mask;
		return valid;
	}
	return table_value(input, valid, value);
}

/* One instruction that has a result. */
template <int REGS, int JOINS>
__device__ __forceinline__ bool compute(const PipeView &view, const PipeInput *inputs,
										uint64_t valid, const HgjPipeInstruction &in,
										PipeRow<REGS, JOINS> &r, uint64_t row)
{
	// an operand that an instruction does not have may be any number
	const uint32_t nregs = PipeRegs<REGS>::count(view);
	uint64_t a = in.a < nregs ? r.regs[in.a] : 0;
	uint64_t b = in.b < nregs ? r.regs[in.b] : 0;
	bool null_a = in.a < nregs && (r.nulls >> in.a & 1);
	bool null_b = in.b < nregs && (r.nulls >> in.b & 1);
	uint64_t value = 0;
	bool null = false;
	bool good = true;

	switch (in.op)
	{
		case HGJ_PIPE_INPUT:
			null = !load_input(inputs[in.arg], valid >> in.arg & 1, row, &value);
			break;
		case HGJ_PIPE_PAYLOAD:
		{
			const PipeColumn &column = view.joins[in.a].columns[in.arg];
			uint64_t at = r.row[in.a];

			null = at == ROW_EMPTY ||
				   (column.validity != nullptr && !bit_of(column.validity, at));
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

/* The next candidate, unless the row is to wait. */
template <int REGS, int JOINS, class Sink>
__device__ __forceinline__ uint32_t go_on(const PipeView &view, PipeRow<REGS, JOINS> &r,
										  const Sink &sink, const PipeCounts &counts)
{
	if (sink.late())
		return PIPE_WAITS;
	return next_candidate(view, r, counts.joined);
}

/*
 * Instructions from *at on; what is to be added to flags[STOP].  *at is then ncode,
 * or what the row waits for.
 */
template <int REGS, int JOINS, class Sink>
__device__ __forceinline__ unsigned long long
run_row(const PipeView &view, const HgjPipeInstruction *code, const PipeInput *inputs,
		uint64_t valid, uint64_t row, PipeRow<REGS, JOINS> &r, uint32_t *at, Sink &sink,
		const PipeCounts &counts)
{
	const uint32_t nregs = PipeRegs<REGS>::count(view);
	unsigned long long stop = 0;
	uint32_t pc = *at;

	while (pc < view.ncode && stop == 0)
	{
		HgjPipeInstruction in = code[pc++];
		bool null_a = in.a < nregs && (r.nulls >> in.a & 1);
		bool true_a = in.a < nregs && !null_a && r.regs[in.a] != 0;

		switch (in.op)
		{
			case HGJ_PIPE_END:
				pc = sink.end(view, r, &stop) ? go_on(view, r, sink, counts)
											  : PIPE_WAITS_AT_END;
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
				if (in.arg == HGJ_PIPE_DROP)
					++*counts.dropped;
				else if (in.arg > HGJ_PIPE_JOINS)
				{
					counts.filtered[in.arg - 1 - HGJ_PIPE_JOINS]++;
					counts.joined[in.arg - 1 - HGJ_PIPE_JOINS]--;
				}
				else if (in.arg > 0)
					counts.removed[in.arg - 1]++;
				pc = go_on(view, r, sink, counts);
				break;
			case HGJ_PIPE_PROBE:
				probe(view, r, in.a);
				pc = go_on(view, r, sink, counts);
				break;
			case HGJ_PIPE_MATCH:
				r.hit |= 1u << in.a;
				if (view.joins[in.a].single)
					r.left[in.a] = 0;
				if (view.joins[in.a].pass)
					counts.joined[in.a]++;
				else
					pc = go_on(view, r, sink, counts);
				break;
			default:
				if (!compute(view, inputs, valid, in, r, row))
					stop = PIPE_ROW_FAILED;
				break;
		}
	}
	*at = pc;
	return stop;
}

/* Tile t of the rows. */
__device__ __forceinline__ PipeTile tile_of(const PipeRows &rows, uint32_t t)
{
	uint32_t from = t * rows.tile_rows;

	if (rows.tiles != nullptr)
		return rows.tiles[t];
	return PipeTile{
		0, from, rows.n - from < rows.tile_rows ? rows.n : from + rows.tile_rows, from};
}

/* Step 3: the tiles that are the block's; what is to be added to flags[STOP].  Registers
 * in shared memory begin at that word of it. */
template <int REGS, int JOINS, class Sink>
__device__ __forceinline__ unsigned long long
run_tiles(const PipeView &view, const HgjPipeInstruction *code, const PipeRows &rows,
		  uint32_t registers_at, Sink &sink, const PipeCounts &counts)
{
	unsigned long long stop = 0;

	for (uint32_t t = blockIdx.x; t < rows.ntiles && stop == 0; t += gridDim.x)
	{
		const PipeTile tile = tile_of(rows, t);
		const PipeInput *inputs = rows.inputs + tile.batch * rows.ninputs;

		for (uint32_t i = tile.from + threadIdx.x; i < tile.end && stop == 0;
			 i += PIPE_THREADS)
		{
			PipeRow<REGS, JOINS> r;
			uint32_t at = 0;

			r.regs.place(registers_at);
			begin_row(r);
			stop = run_row(view, code, inputs, rows.valid, i, r, &at, sink, counts);
		}
	}
	return stop;
}

/* Add a thread's counter to a word of flags, by warp. */
__device__ __forceinline__ void add_counter(unsigned long long *flag, uint64_t sum)
{
	sum = warp_reduce(sum, [](uint64_t a, uint64_t b) { return a + b; });
	if (threadIdx.x % 32 == 0 && sum > 0)
		atomicAdd(flag, (unsigned long long) sum);
}

/* Block-wide: the code to shared memory; false: the pipeline has ended. */
__device__ __forceinline__ bool load_code(const PipeView &view, uint4 *code)
{
	/* a block goes on or ends as a whole: all of it loads the code */
	if (__syncthreads_or(*(volatile unsigned long long *) (view.flags + PIPE_FLAG_STOP) !=
						 0))
		return false;
	for (uint32_t i = threadIdx.x; i < view.ncode; i += PIPE_THREADS)
		code[i] = __ldg(reinterpret_cast<const uint4 *>(view.code) + i);
	return true;
}

} // namespace hgj

#endif /* HGJ_CUDA_PIPELINE_ROW_CUH */
