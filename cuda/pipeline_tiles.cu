/*-------------------------------------------------------------------------
 *
 * pipeline_tiles.cu
 *	  Kernels of pipelines that go by tiles (pipeline_tiles.cuh): where what they need lies
 *	  in shared memory, and which of them it is.
 *
 * 1. Steps, constants, the block's states of groups, and then each warp's tile.  If a block
 *	  may not have so much, the pipeline has the interpreter.
 * 2. Whether there are NULLs is known of a push, and of the columns of build sides: if
 *	  none of them has any, nobody asks for them.
 *
 * Owns nothing, locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include <algorithm>

#include "pipeline_host.h"
#include "pipeline_tiles.cuh"

namespace hgj
{

/* Step 1; shared_words as in the kernels. */
static void place(HgjPipeline *p, uint32_t shared_words)
{
	TileShape *shape = &p->shape;

	shape->shared_words = shared_words;
	shape->constants_at = p->nsteps * (uint32_t) sizeof(HgjPipeInstruction);
	shape->states_at =
		shape->constants_at + shape->nconstants * (uint32_t) sizeof(uint64_t);
	shape->warps_at =
		(shape->states_at + shared_words * (uint32_t) sizeof(uint64_t) + 15) / 16 * 16;
	shape->warp_bytes =
		(shape->registers * TILE_ROWS + HGJ_PIPE_WORDS) * (uint32_t) sizeof(uint64_t) +
		(TILE_COUNTS + TILE_ROWS) * (uint32_t) sizeof(uint32_t) + TILE_ROWS;
}

static size_t shared_bytes(const HgjPipeline *p)
{
	return p->shape.warps_at + (size_t) p->shape.warp_bytes * TILE_WARPS;
}

/* Is there room for steps and tiles, and states that a block keeps? */
bool tiles_fit(HgjPipeline *p, uint32_t shared_words)
{
	const Device *device = p->account.device;

	place(p, shared_words);
	return shared_bytes(p) <= device->block_shared &&
		   shared_bytes(p) <= device->sm_shared / LEAST_BLOCKS;
}

static const void *kernel_of(const HgjPipeline *p, bool nulls)
{
	if (p->spec.fills)
		return reinterpret_cast<const void *>(nulls ? tile_fill<true> : tile_fill<false>);
	if (p->spec.rows)
		return reinterpret_cast<const void *>(nulls ? tile_return<true>
													: tile_return<false>);
	if (p->spec.nkeys > 0)
		return reinterpret_cast<const void *>(nulls ? tile_groups<true>
													: tile_groups<false>);
	return reinterpret_cast<const void *>(nulls ? tile_sum<true> : tile_sum<false>);
}

/* Step 2: of the joins' columns, which are there by now, and of instructions. */
static bool makes_nulls(const HgjPipeline *p)
{
	for (uint32_t i = 0; i < p->spec.ncode; i++)
		if (p->spec.code[i].op == HGJ_PIPE_NULL)
			return true;
	for (uint32_t j = 0; j < p->spec.njoins; j++)
		for (uint32_t c = 0; c < p->spec.joins[j].ncolumns; c++)
			if (p->view.joins[j].columns[c].validity != nullptr)
				return true;
	return false;
}

/* Before the first push.  shared_words: of all groups' states, which a block keeps if there
 * is room for them, too. */
HgjStatus tiles_open(HgjPipeline *p, uint32_t shared_words, HgjError *err)
{
	if (!tiles_fit(p, shared_words))
		(void) tiles_fit(p, 0); /* as it did when the steps were made */
	for (int nulls = 0; nulls <= 1; nulls++)
	{
		const void *kernel = kernel_of(p, nulls == 1);
		int blocks = 0;

		HGJ_TRY(allow_shared(p->account.device, kernel, err));
		HGJ_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
			&blocks, kernel, PIPE_THREADS, shared_bytes(p)));
		p->tile_blocks[nulls] = (uint32_t) (std::max(blocks, 1) * p->account.device->sms);
	}
	return HGJ_OK;
}

/* A kernel for the slot's rows; to: where they go, if not to groups: PipeFill or PipeOut. */
HgjStatus tiles_launch(HgjPipeline *p, PipeSlot *slot, void *to, HgjError *err)
{
	bool nulls = slot->rows.may_be_null || makes_nulls(p);
	const PipeView *view = p->view_at.as<PipeView>();
	void *arguments[] = {&view, &slot->rows, &p->shape, to};

	HGJ_CUDA(cudaLaunchKernel(
		kernel_of(p, nulls), dim3(std::min(p->tile_blocks[nulls], slot->rows.ntiles)),
		dim3(PIPE_THREADS), arguments, shared_bytes(p), slot->lane.stream));
	return HGJ_OK;
}

} // namespace hgj
