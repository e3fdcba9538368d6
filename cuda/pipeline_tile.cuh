/*-------------------------------------------------------------------------
 *
 * pipeline_tile.cuh
 *	  A warp's tile of rows, and the steps that pipelines go through with it
 *	  (pipeline_tiles.cuh): columns, filters, probes, and what is computed.
 *
 * 1. Registers lie in shared memory, column by column, those that are NULL in a word per
 *	  row.  A lane has TILE_ITEMS rows at once: loads of all of them come first.
 * 2. `selected` numbers the rows that are left, ascending; who is given up goes from it.
 * 3. Without NULLs anywhere, kernels of their own do not look for them.
 *
 * Owns nothing.  All functions are a whole warp's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CUDA_PIPELINE_TILE_CUH
#define HGJ_CUDA_PIPELINE_TILE_CUH

#include "pipeline_row.cuh"

namespace hgj
{

constexpr uint32_t TILE_WARPS = PIPE_THREADS / 32;
constexpr uint32_t TILE_ITEMS = TILE_ROWS / 32; /* rows of a lane */

static_assert(TILE_ROWS <= 256 && TILE_ROWS % 128 == 0,
			  "a byte numbers the rows of a tile");

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
	uint32_t first; /* of the push's rows: the first one */
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

	__syncwarp();
#pragma unroll
	for (uint32_t k = 0; k < TILE_ITEMS; k++)
	{
		uint32_t these = __ballot_sync(ALL_LANES, stays[k]);

		if (stays[k])
			tile.selected[n + (uint32_t) __popc(these & before)] =
				(uint8_t) items.rows[k];
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
#pragma unroll
	for (uint32_t k = 0; k < TILE_ITEMS; k++)
		values->of[k] =
			items.has(k) ? number_at<Number>(input, first + items.rows[k]) : 0;
	if (input.table == nullptr)
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
		bool valid =
			!NULLS || validity == nullptr || !items.has(k) || bit_of(validity, at);

		values->null[k] = !table_value(input, valid, &values->of[k]) && NULLS;
	}
}

/* A column of rows first + ..., as registers have it. */
template <bool NULLS>
__device__ __forceinline__ void load_values(const Items &items, const PipeInput &input,
											bool may_be_null, uint32_t from,
											Values *values)
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
		case PIPE_KEPT_3:
			load_numbers<NULLS, ThreeBytes>(items, input, validity, first, values);
			break;
		case PIPE_KEPT_4:
			load_numbers<NULLS, uint32_t>(items, input, validity, first, values);
			break;
		case PIPE_KEPT_8:
			load_numbers<NULLS, unsigned long long>(items, input, validity, first,
													values);
			break;
		default:
#pragma unroll
			for (uint32_t k = 0; k < TILE_ITEMS; k++)
				values->of[k] = items.has(k) ? load_value(input.kind, input.values,
														  first + items.rows[k])
											 : 0;
			break;
	}
	if (NULLS && validity != nullptr &&
		(input.kind < PIPE_KEPT_1 || input.table == nullptr))
#pragma unroll
		for (uint32_t k = 0; k < TILE_ITEMS; k++)
		{
			uint64_t at = first + items.rows[k];

			values->null[k] = items.has(k) && !bit_of(validity, at);
		}
}

template <bool NULLS>
__device__ __forceinline__ void set_values(const Tile &tile, uint32_t dst,
										   const Items &items, const bool *wanted,
										   const Values &values)
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
			set_value<NULLS>(
				tile, dst, items.rows[k], load_value(column.kind, column.values, at),
				NULLS && column.validity != nullptr && !bit_of(column.validity, at));
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
				wanted[k] =
					!Operand(tile, join.keys[w]).is_null<NULLS>(tile, items.rows[k]);
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
		stays[k] = COMPARES
					   ? orders >> (compare_values(in.kind, a.of(row), b.of(row)) + 1) & 1
					   : a.of(row) != 0;
	}
	count_filtered(tile, in.arg, select_rows(tile, items, stays));
}

/* Any other one; false: it fails for a row of the lane. */
template <bool NULLS>
__device__ __forceinline__ bool compute_rows(const Tile &tile,
											 const HgjPipeInstruction &in)
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

} // namespace hgj

#endif /* HGJ_CUDA_PIPELINE_TILE_CUH */
