/*-------------------------------------------------------------------------
 *
 * pipeline_stage.cu
 *	  Rows of a pipeline that its caller sends column by column (pipeline.h).
 *
 * 1. A slot has room for so many rows on the device, and, once the caller has asked for a
 *	  staging buffer, pinned memory of the same layout.
 * 2. push sends what is in the slot's staging buffer and runs a kernel behind it: both
 *	  are under way when it returns, and the caller fills the next slot's.
 * 3. push_from sends columns from memory that the process has registered with CUDA
 *	  (registered.cu), so that they are not copied into pinned memory first.  It waits for
 *	  the transfer, which is faster than that copy, and not for the kernel.
 *
 * Memory: the slot's.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "pipeline_host.h"
#include "pipeline_row.cuh"

namespace hgj
{

/* Of a staging buffer. */
constexpr size_t SLOT_BYTES = (size_t) 2 << 20;

/* Rows of a block's tile of a staging buffer, where each warp has a tile of its own. */
constexpr uint32_t STAGED_TILE_ROWS = PIPE_THREADS / 32 * TILE_ROWS;

/* Step 1: where columns are in a slot. */
void stage_lay_out(HgjPipeline *p)
{
	size_t row = 1;
	size_t at = 0;

	for (uint32_t i = 0; i < p->spec.ninputs; i++)
		row += hgj_kind_width(p->spec.inputs[i]);
	p->capacity = (uint32_t) (SLOT_BYTES / row);
	p->capacity = p->capacity < SLOT_LEAST_ROWS  ? SLOT_LEAST_ROWS
				  : p->capacity > SLOT_MOST_ROWS ? SLOT_MOST_ROWS
												 : p->capacity / 512 * 512;
	for (uint32_t i = 0; i < p->spec.ninputs; i++)
	{
		p->value_offset[i] = at;
		at +=
			((size_t) p->capacity * hgj_kind_width(p->spec.inputs[i]) + 255) / 256 * 256;
		p->validity_offset[i] = at;
		at += ((size_t) p->capacity / 8 + 255) / 256 * 256;
	}
	p->slot_bytes = at;
}

/* Step 1: room on the device, which a pipeline of kept rows never needs. */
static HgjStatus open_columns(HgjPipeline *p, PipeSlot *slot, HgjError *err)
{
	PipeInput inputs[HGJ_PIPE_INPUTS];

	if (slot->can_stage)
		return HGJ_OK;
	HGJ_TRY(slot->columns.reserve(&p->account, slot->lane.stream, p->slot_bytes + 1, err));
	HGJ_TRY(slot->inputs.reserve(&p->account, slot->lane.stream, sizeof(inputs), err));
	memset(inputs, 0, sizeof(inputs));
	for (uint32_t i = 0; i < p->spec.ninputs; i++)
	{
		inputs[i].values = slot->columns.as<char>() + p->value_offset[i];
		inputs[i].validity = reinterpret_cast<uint64_t *>(slot->columns.as<char>() +
														  p->validity_offset[i]);
		inputs[i].kind = p->spec.inputs[i];
	}
	/* copied before it returns, as it is not pinned; kernels come behind it in the stream */
	HGJ_CUDA(cudaMemcpyAsync(slot->inputs.as<void>(), inputs, sizeof(inputs),
							 cudaMemcpyHostToDevice, slot->lane.stream));
	slot->can_stage = true;
	return HGJ_OK;
}

/* The next slot, when it is free. */
static HgjStatus next_slot(HgjPipeline *p, PipeSlot **slot, HgjError *err)
{
	*slot = &p->slots[p->turn];
	if (!p->started || p->filling.done || tuples_left(p))
		return fail(err, HGJ_INVALID,
					"the pipeline is not running, or there are rows to fetch");
	HGJ_TRY(table_enter(&p->account, err));
	HGJ_TRY(pipeline_free_slot(p, *slot, err));
	return open_columns(p, *slot, err);
}

/* HgjPipelineMethods.stage */
HgjStatus pipeline_stage(HgjPipeline *p, HgjPipeStage *stage, HgjError *err)
{
	PipeSlot *slot;

	HGJ_TRY(next_slot(p, &slot, err));
	HGJ_TRY(slot->host.reserve(p->slot_bytes + 1, err));
	stage->capacity = p->capacity;
	for (uint32_t i = 0; i < p->spec.ninputs; i++)
	{
		stage->values[i] = slot->host.as<char>() + p->value_offset[i];
		stage->validity[i] =
			reinterpret_cast<uint64_t *>(slot->host.as<char>() + p->validity_offset[i]);
	}
	return HGJ_OK;
}

/* A column's values, or its bits, to the slot's place for them. */
static HgjStatus send(HgjPipeline *p, PipeSlot *slot, size_t at, const void *from,
					  size_t bytes, HgjError *err)
{
	HGJ_CUDA(cudaMemcpyAsync(slot->columns.as<char>() + at, from, bytes,
							 cudaMemcpyHostToDevice, slot->lane.stream));
	p->counted.sent += bytes;
	return HGJ_OK;
}

/* Steps 2 and 3: n rows, and a kernel behind them. */
static HgjStatus push(HgjPipeline *p, PipeSlot *slot, const HgjPipeStage *from, uint32_t n,
					  uint64_t nulls, HgjError *err)
{
	uint32_t tile_rows = p->tiled ? STAGED_TILE_ROWS : PIPE_THREADS;

	slot->busy = slot->sending = true;
	slot->pushed = n;
	slot->rows = PipeRows{slot->inputs.as<PipeInput>(),
						  p->spec.ninputs,
						  nullptr,
						  tile_rows,
						  (n + tile_rows - 1) / tile_rows,
						  nullptr,
						  1,
						  n,
						  nulls != 0,
						  nulls};
	HGJ_CUDA(cudaEventRecord(slot->begin.event, slot->lane.stream));
	for (uint32_t i = 0; i < p->spec.ninputs; i++)
	{
		HGJ_TRY(send(p, slot, p->value_offset[i], from->values[i],
					 n * hgj_kind_width(p->spec.inputs[i]), err));
		if (nulls >> i & 1)
			HGJ_TRY(send(p, slot, p->validity_offset[i], from->validity[i],
						 ((size_t) n + 63) / 64 * 8, err));
	}
	HGJ_CUDA(cudaEventRecord(slot->sent.event, slot->lane.stream));
	HGJ_TRY(pipeline_launch(p, slot, true, err));
	HGJ_TRY(end_of_work(p, slot, err));
	p->counted.rows += n;
	if (!p->spec.rows)
		p->turn = (p->turn + 1) % PIPE_SLOTS;
	return HGJ_OK;
}

/* HgjPipelineMethods.push */
HgjStatus pipeline_push(HgjPipeline *p, uint32_t n, uint64_t nulls, HgjError *err)
{
	PipeSlot *slot = &p->slots[p->turn];
	HgjPipeStage from;

	if (!p->started || p->filling.done || slot->busy ||
		slot->host.as<char>() == nullptr || tuples_left(p) || n > p->capacity)
		return fail(err, HGJ_INVALID, "push goes with stage");
	if (n == 0)
		return HGJ_OK;
	HGJ_TRY(table_enter(&p->account, err));
	for (uint32_t i = 0; i < p->spec.ninputs; i++)
	{
		from.values[i] = slot->host.as<char>() + p->value_offset[i];
		from.validity[i] =
			reinterpret_cast<uint64_t *>(slot->host.as<char>() + p->validity_offset[i]);
	}
	return push(p, slot, &from, n, nulls, err);
}

/* Is all of it registered? */
static bool is_registered(const HgjPipeline *p, const HgjPipeStage *from, uint32_t n,
						  uint64_t nulls)
{
	for (uint32_t i = 0; i < p->spec.ninputs; i++)
		if (!registered_has(from->values[i], n * hgj_kind_width(p->spec.inputs[i])) ||
			((nulls >> i & 1) &&
			 !registered_has(from->validity[i], ((size_t) n + 63) / 64 * 8)))
			return false;
	return true;
}

/* HgjPipelineMethods.push_from */
HgjStatus pipeline_push_from(HgjPipeline *p, const HgjPipeStage *from, uint32_t n,
							 uint64_t nulls, HgjError *err)
{
	PipeSlot *slot;

	if (n > p->capacity)
		return fail(err, HGJ_INVALID, "more rows than a staging buffer has");
	if (!is_registered(p, from, n, nulls))
		return fail(err, HGJ_UNSUPPORTED, "the rows are not in registered memory");
	HGJ_TRY(next_slot(p, &slot, err));
	if (n == 0)
		return HGJ_OK;
	HGJ_TRY(push(p, slot, from, n, nulls, err));
	/* all of it is under way: who wants no more is told by the next call */
	return wait_for_event(&p->account, slot->sent.event, false, err);
}

} // namespace hgj
