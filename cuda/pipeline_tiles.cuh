/*-------------------------------------------------------------------------
 *
 * pipeline_tiles.cuh
 *	  The kernels of pipelines in which a row has one candidate of each join at most, and
 *	  no jumps: a warp does one step for all rows of a tile before it does the next one.
 *
 * 1. A warp has TILE_ROWS rows at a time (pipeline_tile.cuh).  A step (pipeline_steps.cu makes
 *	  them of instructions) is looked at once for all of them, and each lane has the loads of
 *	  several rows under way at once.
 * 2. Who is given up by a filter, or has no candidate, goes from the tile, so that lanes stay
 *	  busy however few rows are left.
 * 3. What ends becomes part of its group, is summed up by warp where there is only one
 *	  group, or becomes a row of a table (pipeline_fill.cu), or is returned
 *	  (pipeline_tuples.cu).
 *
 * After "Vectorized" execution in one kernel, as of MonetDB/X100 (Boncz, Zukowski and Nes,
 * CIDR 2005), with the tile in shared memory as of Crystal (Shanbhag, Madden and Yu, SIGMOD
 * 2020).
 *
 * Owns nothing.  Warps do not wait for each other but at the beginning and at the end.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CUDA_PIPELINE_TILES_CUH
#define HGJ_CUDA_PIPELINE_TILES_CUH

#include "pipeline_fill.cuh"
#include "pipeline_groups.cuh"
#include "pipeline_tile.cuh"

namespace hgj
{

/* Blocks of a multiprocessor: more have fewer registers, and are slower (H100). */
constexpr uint32_t TILE_BLOCKS = 3;

/* ---- step 3 ----------------------------------------------------------------- */

/* What the lane's rows add to a state word; false: a row's value is not for here. */
template <bool NULLS>
__device__ __forceinline__ bool sum_rows(const Tile &tile, const HgjPipeWord &word,
										 uint64_t *sum)
{
	bool filtered = word.filter != HGJ_PIPE_NONE;
	const Operand filter(tile, filtered ? word.filter : TILE_CONSTANT);
	const Operand operand(tile, word.reg != HGJ_PIPE_NONE ? word.reg : TILE_CONSTANT);
	bool good = true;

	for (uint32_t i = tile.lane; i < tile.n; i += 32)
	{
		uint32_t row = tile.selected[i];
		uint64_t value = operand.of(row);

		if (operand.is_null<NULLS>(tile, row) ||
			(filtered && (filter.is_null<NULLS>(tile, row) || filter.of(row) == 0)))
			continue;
		good &= state_operand(word.state, &value);
		*sum = state_merge(word.state, *sum, value);
	}
	return good;
}

/* Into the only group: the warp's own words. */
struct OneGroup
{
	template <bool NULLS>
	__device__ __forceinline__ unsigned long long end(const PipeView &view,
													  const Tile &tile) const
	{
		bool good = true;

		for (uint32_t w = 0; w < view.nwords; w++)
		{
			const HgjPipeWord word = view.words[w];
			uint64_t sum = state_identity(word.state);

			good &= sum_rows<NULLS>(tile, word, &sum);
			sum = warp_reduce(sum, [&word](uint64_t a, uint64_t b)
							  { return state_merge(word.state, a, b); });
			if (tile.lane == 0)
				tile.own[w] = state_merge(word.state, tile.own[w], sum);
		}
		return good ? 0 : PIPE_ROW_FAILED;
	}
};

/* 64 bits of shared memory in two additions of 32, which it does itself; the second one is
 * rare. */
__device__ __forceinline__ void add_shared(unsigned long long *word, uint64_t value)
{
	uint32_t *halves = reinterpret_cast<uint32_t *>(word);
	uint32_t low = (uint32_t) value;
	uint32_t high = (uint32_t) (value >> 32);
	uint32_t before = atomicAdd(halves, low);

	high += before + low < before;
	if (high != 0)
		(void) atomicAdd(halves + 1, high);
}

/* Its place; PIPE_FULL where there is none for it. */
template <bool NULLS>
__device__ __forceinline__ unsigned long long
find_tile_group(const PipeView &view, const Tile &tile, uint32_t row, uint64_t *group)
{
	const PipeGroups &g = view.groups;
	uint64_t keys[HGJ_PIPE_KEYS];
	uint64_t null_keys = 0;

	*group = 0;
	for (uint32_t k = 0; k < view.nkeys; k++)
	{
		const Operand key(tile, view.keys[k]);
		bool null = key.is_null<NULLS>(tile, row);
		int64_t value = null ? 0 : (int64_t) key.of(row);

		if (!g.dense)
		{
			keys[k] = (uint64_t) value;
			null_keys |= (uint64_t) null << k;
		}
		else if (!null)
		{
			if (value < g.low[k] || value > g.high[k])
				return PIPE_FULL;
			*group += ((uint64_t) value - (uint64_t) g.low[k] + 1) * g.step[k];
		}
	}
	return g.dense || hashed_group(view, keys, null_keys, group) ? 0 : PIPE_FULL;
}

/* What a row adds to a state word; false: nothing.  *good: it is for here. */
template <bool NULLS>
__device__ __forceinline__ bool state_value(const Tile &tile, const HgjPipeWord &word,
											uint32_t row, uint64_t *value, bool *good)
{
	*value = 0;
	if (word.filter != HGJ_PIPE_NONE)
	{
		const Operand filter(tile, word.filter);

		if (filter.is_null<NULLS>(tile, row) || filter.of(row) == 0)
			return false;
	}
	if (word.reg != HGJ_PIPE_NONE)
	{
		const Operand operand(tile, word.reg);

		if (operand.is_null<NULLS>(tile, row))
			return false;
		*value = operand.of(row);
	}
	*good = state_operand(word.state, value);
	return *good;
}

/* Into their groups, whose state words are the block's, or all blocks'. */
struct ManyGroups
{
	unsigned long long *states;
	bool shared; /* they are the block's */

	template <bool NULLS>
	__device__ __forceinline__ bool add(const PipeView &view, const Tile &tile,
										uint32_t row, uint64_t group) const
	{
		bool good = true;

		for (uint32_t w = 0; w < view.nwords && good; w++)
		{
			const HgjPipeWord word = view.words[w];
			unsigned long long *state = states + group * view.nwords + w;
			uint64_t value;

			if (!state_value<NULLS>(tile, word, row, &value, &good))
				continue;
			if (shared && word.state <= HGJ_PIPE_SUM_HIGH)
				add_shared(state, value);
			else
				state_merge_atomic(word.state, state, value);
		}
		return good;
	}

	template <bool NULLS>
	__device__ __forceinline__ unsigned long long end(const PipeView &view,
													  const Tile &tile) const
	{
		unsigned long long stop = 0;

		for (uint32_t i = tile.lane; i < tile.n && stop == 0; i += 32)
		{
			uint32_t row = tile.selected[i];
			uint64_t group;

			stop = find_tile_group<NULLS>(view, tile, row, &group);
			if (stop == 0 && !add<NULLS>(view, tile, row, group))
				stop = PIPE_ROW_FAILED;
		}
		return stop;
	}
};

/* The next places of what comes out, for the tile's rows: the first of them. */
__device__ __forceinline__ unsigned long long take_places(const PipeView &view,
														  const Tile &tile)
{
	unsigned long long first = 0;

	if (tile.lane == 0)
		first = atomicAdd(view.flags + PIPE_FLAG_RETURNED, (unsigned long long) tile.n);
	return __shfl_sync(ALL_LANES, first, 0);
}

/* Rows of a table, all of a tile together. */
struct FillRows
{
	const PipeFill &fill;

	template <bool NULLS>
	__device__ __forceinline__ unsigned long long end(const PipeView &view,
													  const Tile &tile) const
	{
		unsigned long long first = take_places(view, tile);

		if (first + tile.n > fill.capacity)
			return PIPE_FULL;
		for (uint32_t k = 0; k < view.nkeys; k++)
		{
			const Operand key(tile, view.keys[k]);

			for (uint32_t i = tile.lane; i < tile.n; i += 32)
				fill.words[k][first + i] = key.of(tile.selected[i]);
		}
		for (uint32_t c = 0; c < fill.ncolumns; c++)
		{
			const Operand column(tile, fill.columns[c]);

			for (uint32_t i = tile.lane; i < tile.n; i += 32)
			{
				uint32_t row = tile.selected[i];
				uint64_t at = first + i;

				store_value(fill.kinds[c], fill.values[c], at, column.of(row));
				if (!column.is_null<NULLS>(tile, row))
					continue;
				(void) atomicAnd(fill.validity[c] + at / 32, ~(1u << (at % 32)));
				(void) atomicOr(view.flags + PIPE_FLAG_NULLS, 1ull << c);
			}
		}
		return 0;
	}
};

/* Into the next places of what is returned; there is one for each row of the push. */
struct ReturnRows
{
	const PipeOut &out;

	template <bool NULLS>
	__device__ __forceinline__ unsigned long long end(const PipeView &view,
													  const Tile &tile) const
	{
		unsigned long long first = take_places(view, tile);

		if (first + tile.n > out.capacity)
			return PIPE_FULL;
		for (uint32_t i = tile.lane; i < tile.n; i += 32)
			out.input[first + i] = tile.first + tile.selected[i];
		for (uint32_t j = 0; j < view.njoins; j++)
		{
			const Operand row(tile, out.operands[j]);

			for (uint32_t i = tile.lane; i < tile.n; i += 32)
				out.row[j][first + i] = (uint32_t) row.of(tile.selected[i]);
		}
		return 0;
	}
};

/* ---- all of it --------------------------------------------------------------- */

/* Rows from .. of a batch; what is to be added to flags[STOP]. */
template <bool NULLS, class Sink>
__device__ __forceinline__ unsigned long long
run_tile(const PipeView &view, const HgjPipeInstruction *steps, const PipeInput *inputs,
		 uint64_t valid, uint32_t from, Tile &tile, const Sink &sink)
{
	for (uint32_t pc = 0; tile.n > 0; pc++)
	{
		const HgjPipeInstruction in = steps[pc];
		unsigned long long stop = 0;

		switch (in.op)
		{
			case HGJ_PIPE_INPUT:
				load_column<NULLS, false>(tile, in, inputs[in.arg], valid >> in.arg & 1,
										  from);
				break;
			case TILE_INPUT_RANGE:
				load_column<NULLS, true>(tile, in, inputs[in.arg], valid >> in.arg & 1,
										 from);
				break;
			case HGJ_PIPE_PAYLOAD:
				load_payload<NULLS>(tile, view.joins[in.a].columns[in.arg], in.b, in.dst);
				break;
			case TILE_FILTER_COMPARE:
				filter_rows<NULLS, true>(tile, in);
				break;
			case HGJ_PIPE_FILTER:
				filter_rows<NULLS, false>(tile, in);
				break;
			case HGJ_PIPE_PROBE:
				probe_rows<NULLS>(tile, view.joins[in.a], in.dst);
				break;
			case HGJ_PIPE_MATCH:
				count(tile, TILE_JOINED + in.a, tile.n);
				break;
			case HGJ_PIPE_END:
				count(tile, TILE_ENDED, tile.n);
				return sink.template end<NULLS>(view, tile);
			default:
				stop = compute_rows<NULLS>(tile, in) ? 0 : PIPE_ROW_FAILED;
				break;
		}
		__syncwarp();
		if (__any_sync(ALL_LANES, stop != 0))
			return PIPE_ROW_FAILED;
	}
	return 0;
}

/* The tiles of the block's share of rows that are the warp's. */
template <bool NULLS, class Sink>
__device__ __forceinline__ void
run_rows(const PipeView &view, const HgjPipeInstruction *steps, const PipeRows &rows,
		 Tile &tile, const Sink &sink)
{
	for (uint32_t t = blockIdx.x; t < rows.ntiles; t += gridDim.x)
	{
		const PipeTile part = tile_of(rows, t);

		for (uint32_t from = part.from + threadIdx.x / 32 * TILE_ROWS; from < part.end;
			 from += TILE_WARPS * TILE_ROWS)
		{
			unsigned long long stop;

			__syncwarp(); /* nobody reads of the tile before any more */
			tile.n = min(part.end - from, TILE_ROWS);
			tile.first = part.first + (from - part.from);
			for (uint32_t i = tile.lane; i < TILE_ROWS; i += 32)
			{
				tile.selected[i] = (uint8_t) i;
				if (NULLS)
					tile.nulls[i] = 0;
			}
			__syncwarp();
			stop = run_tile<NULLS>(view, steps, rows.inputs + part.batch * rows.ninputs,
								   rows.valid, from, tile, sink);
			if (stop != 0)
				atomicOr(view.flags + PIPE_FLAG_STOP, stop);
			if (__any_sync(ALL_LANES, stop != 0))
				return;
		}
	}
}

/* Of the block's dynamic shared memory: the warp's part, behind what all have. */
template <bool NULLS>
__device__ __forceinline__ Tile place_tile(const PipeView &view, const TileShape &shape,
										   char *shared)
{
	char *at = shared + shape.warps_at + threadIdx.x / 32 * shape.warp_bytes;
	Tile tile;

	tile.lane = threadIdx.x % 32;
	tile.n = tile.first = 0;
	tile.constants = reinterpret_cast<const uint64_t *>(shared + shape.constants_at);
	tile.registers = reinterpret_cast<uint64_t *>(at);
	at += (size_t) shape.registers * TILE_ROWS * sizeof(uint64_t);
	tile.own = reinterpret_cast<uint64_t *>(at);
	at += HGJ_PIPE_WORDS * sizeof(uint64_t);
	tile.counts = reinterpret_cast<uint32_t *>(at);
	at += TILE_COUNTS * sizeof(uint32_t);
	tile.nulls = reinterpret_cast<uint32_t *>(at);
	tile.selected =
		reinterpret_cast<uint8_t *>(at + (NULLS ? TILE_ROWS * sizeof(uint32_t) : 0));
	tile.counts[tile.lane] = 0;
	if (tile.lane < view.nwords)
		tile.own[tile.lane] = state_identity(view.words[tile.lane].state);
	return tile;
}

__device__ __forceinline__ void add_tile_counts(const PipeView &view, const Tile &tile)
{
	int flag = tile.lane < TILE_DROPPED    ? PIPE_FLAG_JOINED + (int) tile.lane
			   : tile.lane == TILE_DROPPED ? PIPE_FLAG_DROPPED
			   : tile.lane == TILE_ENDED   ? PIPE_FLAG_ENDED
										   : -1;
	long long n;

	__syncwarp();
	n = (int32_t) tile.counts[tile.lane];
	if (flag >= 0 && n != 0)
		atomicAdd(view.flags + flag, (unsigned long long) n);
}

static_assert(PIPE_FLAG_REMOVED == PIPE_FLAG_JOINED + (int) TILE_REMOVED &&
				  PIPE_FLAG_FILTERED == PIPE_FLAG_JOINED + (int) TILE_FILTERED,
			  "counts stand in the order of the flags");
static_assert(HGJ_PIPE_WORDS <= 32 && TILE_COUNTS == 32, "a lane has one of each");

/* Block-wide: steps and constants to shared memory; false: the pipeline has ended. */
__device__ __forceinline__ bool load_steps(const PipeView &view, const TileShape &shape,
										   char *shared)
{
	uint64_t *constants = reinterpret_cast<uint64_t *>(shared + shape.constants_at);

	if (!load_code(view, reinterpret_cast<uint4 *>(shared)))
		return false;
	for (uint32_t i = threadIdx.x; i < shape.nconstants; i += PIPE_THREADS)
		constants[i] = view.constants[i];
	return true;
}

/* A block's share of the rows; false: the pipeline has ended.  *tile is the warp's. */
template <bool NULLS, class Sink>
__device__ __forceinline__ bool run_block(const PipeView &view, const PipeRows &rows,
										  const TileShape &shape, const Sink &sink,
										  Tile *tile)
{
	extern __shared__ uint4 shared_memory[];
	char *shared = reinterpret_cast<char *>(shared_memory);

	if (!load_steps(view, shape, shared))
		return false;
	*tile = place_tile<NULLS>(view, shape, shared);
	__syncthreads();
	run_rows<NULLS>(view, reinterpret_cast<const HgjPipeInstruction *>(shared), rows,
					*tile, sink);
	add_tile_counts(view, *tile);
	return true;
}

/* Rows of a table. */
template <bool NULLS>
__global__ void __launch_bounds__(PIPE_THREADS, TILE_BLOCKS)
	tile_fill(const PipeView *view_at, PipeRows rows, TileShape shape, PipeFill fill)
{
	Tile tile;

	(void) run_block<NULLS>(*view_at, rows, shape, FillRows{fill}, &tile);
}

/* Rows that are returned. */
template <bool NULLS>
__global__ void __launch_bounds__(PIPE_THREADS, TILE_BLOCKS)
	tile_return(const PipeView *view_at, PipeRows rows, TileShape shape, PipeOut out)
{
	Tile tile;

	(void) run_block<NULLS>(*view_at, rows, shape, ReturnRows{out}, &tile);
}

/* Without group keys. */
template <bool NULLS>
__global__ void __launch_bounds__(PIPE_THREADS, TILE_BLOCKS)
	tile_sum(const PipeView *view_at, PipeRows rows, TileShape shape)
{
	const PipeView &view = *view_at;
	Tile tile;

	if (run_block<NULLS>(view, rows, shape, OneGroup(), &tile) && tile.lane < view.nwords)
		state_merge_atomic(view.words[tile.lane].state, view.groups.states + tile.lane,
						   tile.own[tile.lane]);
}

/* With group keys. */
template <bool NULLS>
__global__ void __launch_bounds__(PIPE_THREADS, TILE_BLOCKS)
	tile_groups(const PipeView *view_at, PipeRows rows, TileShape shape)
{
	extern __shared__ uint4 shared_memory[];
	const PipeView &view = *view_at;
	unsigned long long *words = reinterpret_cast<unsigned long long *>(
		reinterpret_cast<char *>(shared_memory) + shape.states_at);
	bool shared = shape.shared_words > 0;
	Tile tile;

	for (uint32_t i = threadIdx.x; i < shape.shared_words; i += PIPE_THREADS)
		words[i] = state_identity(view.words[i % view.nwords].state);
	if (!run_block<NULLS>(view, rows, shape,
						  ManyGroups{shared ? words : view.groups.states, shared}, &tile))
		return;
	__syncthreads();
	add_shared_states(view, words, shape.shared_words);
}

} // namespace hgj

#endif /* HGJ_CUDA_PIPELINE_TILES_CUH */
