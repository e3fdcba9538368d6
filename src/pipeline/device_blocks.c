/*-------------------------------------------------------------------------
 *
 * device_blocks.c
 *	  From the row numbers that a pipeline returns (device_rows.c) to an outer batch
 *	  of the upper join, and its matches.
 *
 * A returned row is its number in the outer batch of the bottom join, and that of
 * its record in the row store of each join, or none.
 *
 * 1. Where no row of the batch has come out twice, take them in the order of the
 *	  batch, and those that the same joins have filled with NULLs together: these
 *	  are a block.  Otherwise a block is some thousands of them.
 * 2. From the bottom up, make each lower join's output of the block out of its
 *	  outer batch and its records, as ever (output.c), and let it be the outer batch
 *	  of the next one.  Columns are moved for rows that the upper join returns,
 *	  not for those that a join in between drops.
 * 3. The upper join's matches are the block's last row numbers.
 *
 * Memory: arrays in the query's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "join/join.h"
#include "pipeline/device_rows.h"
#include "utils/memutils.h"

/* Room for n rows in the arrays of a block. */
static void
reserve_rows(HgjPipelineState *d, uint32 n, uint32 npushed)
{
	HgjDeviceRows *out = d->out;
	MemoryContext context = hgj_join(d->joins[0])->context;

	if (n > out->capacity)
	{
		uint32		capacity = Max(n, HGJ_PAIRS);
		uint32	  **arrays[HGJ_PIPE_JOINS + 5];
		int			narrays = 0;

		for (int j = 0; j < d->njoins; j++)
			arrays[narrays++] = &out->rows[j];
		arrays[narrays++] = &out->order;
		arrays[narrays++] = &out->sorted;
		arrays[narrays++] = &out->outer_rows;
		arrays[narrays++] = &out->probe;
		arrays[narrays++] = &out->identity;
		out->capacity = 0;
		for (int i = 0; i < narrays; i++)
		{
			if (*arrays[i])
				pfree(*arrays[i]);
			*arrays[i] = NULL;
			*arrays[i] = MemoryContextAlloc(context, mul_size(capacity, sizeof(uint32)));
		}
		for (uint32 i = 0; i < capacity; i++)
			out->identity[i] = i;
		out->capacity = capacity;
	}
	if (npushed > out->seen_capacity)
	{
		if (out->seen)
			pfree(out->seen);
		out->seen_capacity = 0;
		out->seen = MemoryContextAlloc(context, mul_size(npushed, sizeof(uint32)));
		out->seen_capacity = npushed;
	}
}

/* Step 1: the numbers of what was fetched in the order of their input rows. */
static void
order_by_input(HgjDeviceRows *out, uint32 npushed)
{
	const uint32 *input = out->fetched.input;
	uint32		n = 0;

	memset(out->seen, 0xFF, npushed * sizeof(uint32));
	out->unique = out->fetched.n <= npushed;
	for (uint32 i = 0; i < out->fetched.n && out->unique; i++)
	{
		out->unique = out->seen[input[i]] == HGJ_PIPE_NO_ROW;
		out->seen[input[i]] = i;
	}
	if (!out->unique)
	{
		memcpy(out->order, out->identity, out->fetched.n * sizeof(uint32));
		return;
	}
	for (uint32 i = 0; i < npushed; i++)
		if (out->seen[i] != HGJ_PIPE_NO_ROW)
			out->order[n++] = out->seen[i];
}

/* The joins that have filled a row with NULLs. */
static inline uint8
filled_joins(const HgjPipelineState *d, uint32 row)
{
	uint8		filled = 0;

	for (int j = 0; j < d->njoins; j++)
		filled |= (d->out->fetched.row[j][row] == HGJ_PIPE_NO_ROW) << j;
	return filled;
}

/* Step 1: those together that the same joins have filled. */
static void
order_by_filled(HgjPipelineState *d)
{
	HgjDeviceRows *out = d->out;
	uint32		n = out->fetched.n;
	uint32		first = 0;
	bool		fills = false;

	memset(out->filled, 0, sizeof(out->filled));
	for (int j = 0; j < d->njoins; j++)
		fills |= d->spec.joins[j].fill;
	if (!fills)
		return;
	memcpy(out->sorted, out->order, n * sizeof(uint32));
	for (uint32 i = 0; i < n; i++)
		out->filled[filled_joins(d, i)]++;
	for (int set = 0; set < lengthof(out->filled); set++)
	{
		uint32		count = out->filled[set];

		out->filled[set] = first;
		first += count;
	}
	for (uint32 i = 0; i < n; i++)
		out->order[out->filled[filled_joins(d, out->sorted[i])]++] = out->sorted[i];
}

/* Step 1, for what has been fetched. */
void
hgj_device_rows_order(HgjPipelineState *d)
{
	uint32		npushed = d->out->pushed - d->out->base;

	reserve_rows(d, d->out->fetched.n, npushed);
	order_by_input(d->out, npushed);
	order_by_filled(d);
}

/* Step 2: the block, through the lower joins. */
static void
make_outer_batch(HgjPipelineState *d, uint8 filled)
{
	HgjDeviceRows *out = d->out;
	const uint32 *outer_rows = out->outer_rows;

	for (int j = 0; j < d->njoins - 1; j++)
	{
		HgjJoinState *join = d->joins[j];
		HgjJoinState *above = d->joins[j + 1];
		HgjBatch   *batch;

		ResetExprContext(hgj_join(join)->css.ss.ps.ps_ExprContext);
		batch = hgj_output_batch(join, outer_rows,
								 (filled >> j) & 1 ? NULL : out->rows[j], out->nblock);
		hgj_source_borrow(&hgj_join(above)->outer, hgj_join_outer_batch(above), batch);
		outer_rows = batch->live ? batch->live : out->identity;
	}
	memcpy(out->probe, outer_rows, out->nblock * sizeof(uint32));
}

/* Steps 2 and 3: the next block out of what was fetched. */
void
hgj_device_rows_block(HgjPipelineState *d)
{
	HgjDeviceRows *out = d->out;
	HgjJoinState *upper = d->joins[d->njoins - 1];
	uint8		filled = filled_joins(d, out->order[out->next]);
	uint32		end = out->filled[filled] > 0 ? out->filled[filled] : out->fetched.n;
	uint32		n = end - out->next;
	bool		matched = ((filled >> (d->njoins - 1)) & 1) == 0;
	const uint32 *order = out->order + out->next;

	if (!out->unique)
		n = Min(n, HGJ_PAIRS);
	out->nblock = n;
	out->next += n;
	for (uint32 i = 0; i < n; i++)
		out->outer_rows[i] = out->base + out->fetched.input[order[i]];
	for (int j = 0; j < d->njoins; j++)
		for (uint32 i = 0; i < n; i++)
			out->rows[j][i] = out->fetched.row[j][order[i]];
	make_outer_batch(d, filled);
	out->left = true;

	hgj_join_begin_block(upper, out->probe, n, matched);
}
