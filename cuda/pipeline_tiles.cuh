/*-------------------------------------------------------------------------
 *
 * pipeline_tiles.cuh
 *	  The kernels of pipelines in which a row has one candidate of each join at most, and
 *	  no jumps: a warp does one step for all rows of a tile before it does the next one.
 *
 * 1. A warp has TILE_ROWS rows at a time; their registers lie in shared memory, column by
 *	  column.  A step (pipeline_steps.cu makes them of instructions) is looked at once for
 *	  all of them, and each lane has the loads of several rows under way at once.
 * 2. `selected` numbers the rows that are left, ascending.  Who is given up by a filter, or
 *	  has no candidate, goes from it, so that lanes stay busy however few rows are left.
 * 3. What ends becomes part of its group, is summed up by warp where there is only one
 *	  group, or becomes a row of a table (pipeline_fill.cu).
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

namespace hgj
{

/* Blocks of a multiprocessor: more have fewer registers, and are slower (H100). */
constexpr uint32_t TILE_BLOCKS = 3;

constexpr uint32_t TILE_WARPS = PIPE_THREADS / 32;
constexpr uint32_t TILE_ITEMS = TILE_ROWS / 32; /* rows of a lane */

static_assert(TILE_ROWS <= 256 && TILE_ROWS % 128 == 0, "a byte numbers the rows of a tile");

/* What a warp counts: of each join, and of the rows before. */
constexpr uint32_t TILE_JOINED = 0;
constexpr uint32_t TILE_REMOVED = HGJ_PIPE_JOINS;
constexpr uint32_t TILE_FILTERED = 2 * HGJ_PIPE_JOINS;
constexpr uint32_t TILE_DROPPED = 3 * HGJ_PIPE_JOINS;
constexpr uint32_t TILE_ENDED = TILE_DROPPED + 1;
static_assert(TILE_ENDED < TILE_COUNTS, "there is a place for each count");

/* A warp's tile; n and what lies behind the pointers is the same for all lanes. */
struct Tile
{
	uint64_t *registers; /* TILE_ROWS of each */
	uint64_t *own;       /* state words of the only group */
	const uint64_t *constants;
	uint32_t *counts;
	uint32_t *nulls; /* bit r: register r of the row is NULL */
	uint8_t *selected;
	uint32_t n;
	uint32_t lane;
};

/* The rows of a lane among those that are left; without a row: TILE_ROWS. */
struct Items
{
	uint32_t rows[TILE_ITEMS];

	__device__ __forceinline__ explicit Items(const Tile &tile)
	{
#pragma unroll
		for (uint32_t k = 0; k < TILE_ITEMS; k++)
			rows[k] = tile.lane + k * 32 < tile.n ? tile.selected[tile.lane + k * 32]
												  : TILE_ROWS;
	}
	__device__ __forceinline__ bool has(uint32_t k) const
	{
		return rows[k] < TILE_ROWS;
	}
};

/* Where a register, or a constant, is. */
struct Operand
{
	const uint64_t *values;
	uint32_t mask;
	uint32_t bit; /* of nulls */

	__device__ __forceinline__ Operand(const Tile &tile, uint32_t operand)
	{
		bool constant = operand >= TILE_CONSTANT;

		values = constant ? tile.constants + (operand - TILE_CONSTANT)
						  : tile.registers + operand * TILE_ROWS;
		mask = constant ? 0 : ~0u;
		bit = constant ? 0 : 1u << operand;
	}
	__device__ __forceinline__ uint64_t of(uint32_t row) const
	{
		return values[row & mask];
	}
	template <bool NULLS>
	__device__ __forceinline__ bool is_null(const Tile &tile, uint32_t row) const
	{
		return NULLS && (tile.nulls[row] & bit);
	}
};

template <bool NULLS>
__device__ __forceinline__ void set_value(const Tile &tile, uint32_t dst, uint32_t row,
										  uint64_t value, bool null)
{
	tile.registers[dst * TILE_ROWS + row] = value;
	if (NULLS)
		tile.nulls[row] = (tile.nulls[row] & ~(1u << dst)) | (uint32_t) null << dst;
}

/* Step 2: only those of a lane's rows stay for which `stays` says so; how many go. */
__device__ __forceinline__ uint32_t select_rows(Tile &tile, const Items &items,
												const bool *stays)
{
	uint32_t before = (1u << tile.lane) - 1;
	uint32_t n = 0;
	uint32_t gone;

#pragma unroll
	for (uint32_t k = 0; k < TILE_ITEMS; k++)
	{
		uint32_t these = __ballot_sync(ALL_LANES, stays[k]);

		if (stays[k])
			tile.selected[n + (uint32_t) __popc(these & before)] = (uint8_t) items.rows[k];
		n += (uint32_t) __popc(these);
	}
	__syncwarp();
	gone = tile.n - n;
	tile.n = n;
	return gone;
}

__device__ __forceinline__ void count(const Tile &tile, uint32_t what, uint32_t n)
{
	if (tile.lane == 0)
		tile.counts[what] += n;
}

/* What a FILTER has given up, as its arg says. */
__device__ __forceinline__ void count_filtered(const Tile &tile, uint32_t arg, uint32_t n)
{
	if (arg == HGJ_PIPE_DROP)
		count(tile, TILE_DROPPED, n);
	else if (arg > HGJ_PIPE_JOINS)
	{
		count(tile, TILE_FILTERED + arg - 1 - HGJ_PIPE_JOINS, n);
		count(tile, TILE_JOINED + arg - 1 - HGJ_PIPE_JOINS, 0 - n);
	}
	else if (arg > 0)
		count(tile, TILE_REMOVED + arg - 1, n);
}

/* ---- steps that read columns ---------------------------------------------- */

/* Values of a lane's rows. */
struct Values
{
	uint64_t of[TILE_ITEMS];
	bool null[TILE_ITEMS];
};

/* Numbers of one width, all loads before the first use. */
template <bool NULLS, class Number>
__device__ __forceinline__ void load_numbers(const Items &items, const PipeInput &input,
											 const uint64_t *validity, uint64_t first,
											 Values *values)
{
	const Number *numbers = static_cast<const Number *>(input.values) + first;
	const uint64_t *table = input.table;

#pragma unroll
	for (uint32_t k = 0; k < TILE_ITEMS; k++)
		values->of[k] = items.has(k) ? (uint64_t) __ldg(numbers + items.rows[k]) : 0;
	if (table == nullptr)
	{
#pragma unroll
		for (uint32_t k = 0; k < TILE_ITEMS; k++)
			values->of[k] = (input.base + values->of[k]) & input.mask;
		return;
	}
#pragma unroll
	for (uint32_t k = 0; k < TILE_ITEMS; k++)
	{
		uint64_t at = first + items.rows[k];
		bool valid = !NULLS || validity == nullptr || !items.has(k) ||
					 (__ldg(validity + at / 64) >> (at % 64) & 1);
		uint64_t place = valid && values->of[k] < input.ntable ? values->of[k]
															   : input.ntable - 1;

		values->of[k] = __ldg(table + place);
		values->null[k] =
			NULLS && !(__ldg(table + input.ntable + place / 64) >> (place % 64) & 1);
	}
}

/* A column of rows first + ..., as registers have it. */
template <bool NULLS>
__device__ __forceinline__ void load_values(const Items &items, const PipeInput &input,
											bool may_be_null, uint32_t from, Values *values)
{
	const uint64_t *validity = NULLS && may_be_null ? input.validity : nullptr;
	uint64_t first = (uint64_t) input.first + from;

#pragma unroll
	for (uint32_t k = 0; k < TILE_ITEMS; k++)
		values->null[k] = false;
	switch (input.kind)
	{
		case PIPE_KEPT_1:
			load_numbers<NULLS, uint8_t>(items, input, validity, first, values);
			break;
		case PIPE_KEPT_2:
			load_numbers<NULLS, uint16_t>(items, input, validity, first, values);
			break;
		case PIPE_KEPT_4:
			load_numbers<NULLS, uint32_t>(items, input, validity, first, values);
			break;
		case PIPE_KEPT_8:
			load_numbers<NULLS, unsigned long long>(items, input, validity, first, values);
			break;
		default:
#pragma unroll
			for (uint32_t k = 0; k < TILE_ITEMS; k++)
				values->of[k] =
					items.has(k)
						? load_value(input.kind, input.values, first + items.rows[k])
						: 0;
			break;
	}
	if (NULLS && validity != nullptr && (input.kind < PIPE_KEPT_1 || input.table == nullptr))
#pragma unroll
		for (uint32_t k = 0; k < TILE_ITEMS; k++)
		{
			uint64_t at = first + items.rows[k];

			values->null[k] =
				items.has(k) && !(__ldg(validity + at / 64) >> (at % 64) & 1);
		}
}

template <bool NULLS>
__device__ __forceinline__ void set_values(const Tile &tile, uint32_t dst, const Items &items,
										   const bool *wanted, const Values &values)
{
#pragma unroll
	for (uint32_t k = 0; k < TILE_ITEMS; k++)
		if (wanted[k])
			set_value<NULLS>(tile, dst, items.rows[k], values.of[k], values.null[k]);
}

/* INPUT; with RANGED, of rows in which it lies between two constants. */
template <bool NULLS, bool RANGED>
__device__ __forceinline__ void load_column(Tile &tile, const HgjPipeInstruction &in,
											const PipeInput &input, bool may_be_null,
											uint32_t from)
{
	Items items(tile);
	Values values;
	bool stays[TILE_ITEMS];

	load_values<NULLS>(items, input, may_be_null, from, &values);
#pragma unroll
	for (uint32_t k = 0; k < TILE_ITEMS; k++)
		stays[k] = items.has(k);
	if constexpr (RANGED)
	{
		int64_t low = (int64_t) Operand(tile, in.a).of(0);
		int64_t high = (int64_t) Operand(tile, in.b).of(0);

#pragma unroll
		for (uint32_t k = 0; k < TILE_ITEMS; k++)
			stays[k] = stays[k] && !(NULLS && values.null[k]) &&
					   (int64_t) values.of[k] >= low && (int64_t) values.of[k] <= high;
		count_filtered(tile, (uint32_t) in.imm, select_rows(tile, items, stays));
	}
	if (!RANGED || in.dst != HGJ_PIPE_NONE)
		set_values<NULLS>(tile, in.dst, items, stays, values);
}

/* A payload column, of the rows of a join's table that are in a register. */
template <bool NULLS>
__device__ __forceinline__ void load_payload(const Tile &tile, const PipeColumn &column,
											 uint32_t rows_in, uint32_t dst)
{
	const Operand rows(tile, rows_in);
	Items items(tile);

#pragma unroll
	for (uint32_t k = 0; k < TILE_ITEMS; k++)
	{
		uint64_t at = items.has(k) ? rows.of(items.rows[k]) : 0;

		if (items.has(k))
			set_value<NULLS>(tile, dst, items.rows[k],
							 load_value(column.kind, column.values, at),
							 NULLS && column.validity != nullptr &&
								 !(__ldg(column.validity + at / 64) >> (at % 64) & 1));
	}
}

/* ---- probes ---------------------------------------------------------------- */

/* Of a table by position with one place for a key. */
__device__ __forceinline__ void find_places(const Tile &tile, const PipeJoin &join,
											const Items &items, const bool *wanted,
											uint32_t *found)
{
	const uint32_t *entries = static_cast<const uint32_t *>(join.graph.entries);
	const Operand key(tile, join.keys[0]);
	uint64_t base = join.graph.mix.base;
	uint64_t range = join.graph.mix.range;

#pragma unroll
	for (uint32_t k = 0; k < TILE_ITEMS; k++)
	{
		uint64_t distance = wanted[k] ? key.of(items.rows[k]) - base : UINT64_MAX;

		if (distance <= range)
			found[k] = __ldg(entries + distance);
	}
}

/* Of tables with one key word: codes, then lists, then first entries of all rows. */
template <class T>
__device__ __forceinline__ void find_rows(const Tile &tile, const PipeJoin &join,
										  const Items &items, const bool *wanted,
										  uint32_t *found)
{
	const GraphView &g = join.graph;
	const Operand key(tile, join.keys[0]);
	typename T::Code codes[TILE_ITEMS];
	typename T::Entry first[TILE_ITEMS];
	uint64_t begin[TILE_ITEMS];
	uint64_t end[TILE_ITEMS];

#pragma unroll
	for (uint32_t k = 0; k < TILE_ITEMS; k++)
	{
		begin[k] = end[k] = 0;
		if (wanted[k] && word_code<T>(g.mix, key.of(items.rows[k]), &codes[k]))
			list_of(g, (uint64_t) (codes[k] >> g.mix.shift), &begin[k], &end[k]);
	}
#pragma unroll
	for (uint32_t k = 0; k < TILE_ITEMS; k++)
		if (begin[k] < end[k])
			first[k] =
				load_slot(static_cast<const typename T::Entry *>(g.entries) + begin[k]);
#pragma unroll
	for (uint32_t k = 0; k < TILE_ITEMS; k++)
	{
		Found f = {0, 0, ROW_EMPTY};

		if constexpr (T::layout == LAYOUT_ROW)
		{
			if (begin[k] < end[k])
				f.row = first[k]; /* an empty slot says ROW_EMPTY itself */
		}
		else if (begin[k] < end[k])
		{
			f = find_sorted<T>(g, begin[k], end[k], first[k], codes[k], true);
			if (f.count == 0)
				f.row = ROW_EMPTY;
		}
		found[k] = f.row;
	}
}

/* Of several words, one row after the other. */
__device__ __noinline__ uint32_t find_row_of_words(const Tile &tile, const PipeJoin &join,
												   uint32_t row)
{
	uint64_t words[HGJ_PIPE_KEYS];
	uint64_t from = 0;
	uint32_t n;

	for (uint32_t w = 0; w < join.nkeys; w++)
		words[w] = Operand(tile, join.keys[w]).of(row);
	candidates_of<MultiTraits>(join, words, &from, &n);
	return n > 0 ? candidate_row(join.graph, from) : ROW_EMPTY;
}

template <bool NULLS>
__device__ __forceinline__ void probe_rows(Tile &tile, const PipeJoin &join, uint32_t dst)
{
	Items items(tile);
	bool wanted[TILE_ITEMS];
	uint32_t found[TILE_ITEMS];

#pragma unroll
	for (uint32_t k = 0; k < TILE_ITEMS; k++)
	{
		wanted[k] = items.has(k) && !join.empty;
		if (NULLS)
			for (uint32_t w = 0; w < join.nkeys && wanted[k]; w++)
				wanted[k] = !Operand(tile, join.keys[w]).is_null<NULLS>(tile, items.rows[k]);
		found[k] = ROW_EMPTY;
	}
	switch (join.graph.mix.layout)
	{
		case LAYOUT_ROW:
			if (join.graph.segments == HGJ_SEGMENTS_ELLPACK && join.graph.width == 1)
				find_places(tile, join, items, wanted, found);
			else
				find_rows<RowTraits>(tile, join, items, wanted, found);
			break;
		case LAYOUT_NARROW:
			find_rows<NarrowTraits>(tile, join, items, wanted, found);
			break;
		case LAYOUT_WIDE:
			find_rows<WideTraits>(tile, join, items, wanted, found);
			break;
		case LAYOUT_MULTI:
			for (uint32_t k = 0; k < TILE_ITEMS; k++)
				if (wanted[k])
					found[k] = find_row_of_words(tile, join, items.rows[k]);
			break;
	}
#pragma unroll
	for (uint32_t k = 0; k < TILE_ITEMS; k++)
	{
		wanted[k] = found[k] != ROW_EMPTY;
		if (wanted[k] && dst != HGJ_PIPE_NONE)
			set_value<NULLS>(tile, dst, items.rows[k], found[k], false);
	}
	(void) select_rows(tile, items, wanted);
}

/* ---- steps that compute ---------------------------------------------------- */

/* Orders (-1, 0, 1, as bits 0 to 2) for which a comparison holds. */
__device__ __forceinline__ uint32_t orders_of(uint32_t comparison)
{
	uint32_t orders = 0;

#pragma unroll
	for (int order = -1; order <= 1; order++)
		orders |= (uint32_t) comparison_holds(comparison, order) << (order + 1);
	return orders;
}

/* FILTER, or one with the COMPARE before it. */
template <bool NULLS, bool COMPARES>
__device__ __forceinline__ void filter_rows(Tile &tile, const HgjPipeInstruction &in)
{
	const Operand a(tile, in.a);
	const Operand b(tile, COMPARES ? in.b : in.a);
	uint32_t orders = COMPARES ? orders_of(in.c) : 0;
	Items items(tile);
	bool stays[TILE_ITEMS];

#pragma unroll
	for (uint32_t k = 0; k < TILE_ITEMS; k++)
	{
		uint32_t row = items.rows[k];

		stays[k] = false;
		if (!items.has(k) || a.is_null<NULLS>(tile, row) ||
			(COMPARES && b.is_null<NULLS>(tile, row)))
			continue;
		stays[k] = COMPARES ? orders >> (compare_values(in.kind, a.of(row), b.of(row)) + 1) & 1
							: a.of(row) != 0;
	}
	count_filtered(tile, in.arg, select_rows(tile, items, stays));
}

/* Any other one; false: it fails for a row of the lane. */
template <bool NULLS>
__device__ __forceinline__ bool compute_rows(const Tile &tile, const HgjPipeInstruction &in)
{
	const Operand a(tile, in.a);
	const Operand b(tile, in.b);
	bool good = true;

	for (uint32_t i = tile.lane; i < tile.n; i += 32)
	{
		uint32_t row = tile.selected[i];
		uint64_t value = 0;
		bool null = false;

		good &= compute_value(in, a.of(row), a.is_null<NULLS>(tile, row), b.of(row),
							  b.is_null<NULLS>(tile, row), &value, &null);
		set_value<NULLS>(tile, in.dst, row, value, null);
	}
	return good;
}

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

/* Into their groups, whose state words are the block's, or all blocks'. */
struct ManyGroups
{
	unsigned long long *states;
	bool shared; /* they are the block's */

	/* PIPE_FULL where there is no place for it. */
	template <bool NULLS>
	__device__ __forceinline__ unsigned long long find(const PipeView &view,
													   const Tile &tile, uint32_t row,
													   uint64_t *group) const
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

	template <bool NULLS>
	__device__ __forceinline__ unsigned long long
	add(const PipeView &view, const Tile &tile, uint32_t row, uint64_t group) const
	{
		for (uint32_t w = 0; w < view.nwords; w++)
		{
			const HgjPipeWord word = view.words[w];
			uint64_t value = 0;

			if (word.filter != HGJ_PIPE_NONE)
			{
				const Operand filter(tile, word.filter);

				if (filter.is_null<NULLS>(tile, row) || filter.of(row) == 0)
					continue;
			}
			if (word.reg != HGJ_PIPE_NONE)
			{
				const Operand operand(tile, word.reg);

				if (operand.is_null<NULLS>(tile, row))
					continue;
				value = operand.of(row);
			}
			if (!state_operand(word.state, &value))
				return PIPE_ROW_FAILED;
			if (shared && word.state <= HGJ_PIPE_SUM_HIGH)
				add_shared(states + group * view.nwords + w, value);
			else
				state_merge_atomic(word.state, states + group * view.nwords + w, value);
		}
		return 0;
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

			stop = find<NULLS>(view, tile, row, &group);
			if (stop == 0)
				stop = add<NULLS>(view, tile, row, group);
		}
		return stop;
	}
};

/* Rows of a table, all of a tile together. */
struct FillRows
{
	const PipeFill &fill;

	template <bool NULLS>
	__device__ __forceinline__ unsigned long long end(const PipeView &view,
													  const Tile &tile) const
	{
		unsigned long long first = 0;

		if (tile.lane == 0)
			first = atomicAdd(view.flags + PIPE_FLAG_RETURNED, (unsigned long long) tile.n);
		first = __shfl_sync(ALL_LANES, first, 0);
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
				load_column<NULLS, false>(tile, in, inputs[in.arg], valid >> in.arg & 1, from);
				break;
			case TILE_INPUT_RANGE:
				load_column<NULLS, true>(tile, in, inputs[in.arg], valid >> in.arg & 1, from);
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
__device__ __forceinline__ void run_rows(const PipeView &view, const HgjPipeInstruction *steps,
										 const PipeRows &rows, Tile &tile, const Sink &sink)
{
	for (uint32_t t = blockIdx.x; t < rows.ntiles; t += gridDim.x)
	{
		const PipeTile part = tile_of(rows, t);

		for (uint32_t from = part.from + threadIdx.x / 32 * TILE_ROWS; from < part.end;
			 from += TILE_WARPS * TILE_ROWS)
		{
			unsigned long long stop;

			tile.n = min(part.end - from, TILE_ROWS);
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
	tile.n = 0;
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
	int flag = tile.lane < TILE_DROPPED ? PIPE_FLAG_JOINED + (int) tile.lane
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

/* Rows of a table. */
template <bool NULLS>
__global__ void __launch_bounds__(PIPE_THREADS, TILE_BLOCKS)
	tile_fill(const PipeView *view_at, PipeRows rows, TileShape shape, PipeFill fill)
{
	extern __shared__ uint4 shared_memory[];
	char *shared = reinterpret_cast<char *>(shared_memory);
	const PipeView &view = *view_at;

	if (!load_steps(view, shape, shared))
		return;
	Tile tile = place_tile<NULLS>(view, shape, shared);

	__syncthreads();
	run_rows<NULLS>(view, reinterpret_cast<const HgjPipeInstruction *>(shared), rows, tile,
					FillRows{fill});
	add_tile_counts(view, tile);
}

/* Without group keys. */
template <bool NULLS>
__global__ void __launch_bounds__(PIPE_THREADS, TILE_BLOCKS)
	tile_sum(const PipeView *view_at, PipeRows rows, TileShape shape)
{
	extern __shared__ uint4 shared_memory[];
	char *shared = reinterpret_cast<char *>(shared_memory);
	const PipeView &view = *view_at;

	if (!load_steps(view, shape, shared))
		return;
	Tile tile = place_tile<NULLS>(view, shape, shared);

	__syncthreads();
	run_rows<NULLS>(view, reinterpret_cast<const HgjPipeInstruction *>(shared), rows, tile,
					OneGroup());
	add_tile_counts(view, tile);
	if (tile.lane < view.nwords)
		state_merge_atomic(view.words[tile.lane].state, view.groups.states + tile.lane,
						   tile.own[tile.lane]);
}

/* With group keys. */
template <bool NULLS>
__global__ void __launch_bounds__(PIPE_THREADS, TILE_BLOCKS)
	tile_groups(const PipeView *view_at, PipeRows rows, TileShape shape)
{
	extern __shared__ uint4 shared_memory[];
	char *shared = reinterpret_cast<char *>(shared_memory);
	const PipeView &view = *view_at;
	unsigned long long *words =
		reinterpret_cast<unsigned long long *>(shared + shape.states_at);

	if (!load_steps(view, shape, shared))
		return;
	for (uint32_t i = threadIdx.x; i < shape.shared_words; i += PIPE_THREADS)
		words[i] = state_identity(view.words[i % view.nwords].state);
	Tile tile = place_tile<NULLS>(view, shape, shared);

	__syncthreads();
	run_rows<NULLS>(view, reinterpret_cast<const HgjPipeInstruction *>(shared), rows, tile,
					ManyGroups{shape.shared_words > 0 ? words : view.groups.states,
							   shape.shared_words > 0});
	add_tile_counts(view, tile);
	__syncthreads();
	add_shared_states(view, words, shape.shared_words);
}

} // namespace hgj

#endif /* HGJ_CUDA_PIPELINE_TILES_CUH */
