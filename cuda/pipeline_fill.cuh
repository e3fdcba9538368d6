/*-------------------------------------------------------------------------
 *
 * pipeline_fill.cuh
 *	  The kernel of a pipeline that fills a table: what ends takes the next row, whole
 *	  warps at once, and puts its key words and columns there.
 *
 * Validity is all set before; who has a NULL clears its bit.
 *
 * Owns nothing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CUDA_PIPELINE_FILL_CUH
#define HGJ_CUDA_PIPELINE_FILL_CUH

#include "pipeline_turns.cuh"

namespace hgj
{

__device__ __forceinline__ void store_value(uint32_t kind, void *values, uint64_t at,
											uint64_t value)
{
	switch (kind)
	{
		case HGJ_KIND_U1:
			static_cast<uint8_t *>(values)[at] = (uint8_t) value;
			break;
		case HGJ_KIND_I2:
			static_cast<uint16_t *>(values)[at] = (uint16_t) value;
			break;
		case HGJ_KIND_I4:
		case HGJ_KIND_U4:
		case HGJ_KIND_F4:
			static_cast<uint32_t *>(values)[at] = (uint32_t) value;
			break;
		default:
			static_cast<uint64_t *>(values)[at] = value;
			break;
	}
}

struct FillSink
{
	const PipeFill &fill;

	__device__ __forceinline__ bool late() const
	{
		return false;
	}

	template <int REGS, int JOINS>
	__device__ __forceinline__ bool
	end(const PipeView &view, const PipeRow<REGS, JOINS> &r, unsigned long long *stop)
	{
		uint64_t at = take_one(view.flags + PIPE_FLAG_RETURNED);

		if (at >= fill.capacity)
		{
			*stop = PIPE_FULL;
			return true;
		}
		for (uint32_t k = 0; k < view.nkeys; k++)
			fill.words[k][at] = r.regs[view.keys[k]];
		for (uint32_t c = 0; c < fill.ncolumns; c++)
		{
			uint32_t reg = fill.columns[c];

			store_value(fill.kinds[c], fill.values[c], at, r.regs[reg]);
			if (!(r.nulls >> reg & 1))
				continue;
			(void) atomicAnd(fill.validity[c] + at / 32, ~(1u << (at % 32)));
			(void) atomicOr(view.flags + PIPE_FLAG_NULLS, 1ull << c);
		}
		return true;
	}
};

/* All rows.  Dynamic shared memory: the code, and registers if REGS is 0. */
template <int REGS, int JOINS>
__global__ void __launch_bounds__(PIPE_THREADS)
	pipe_fill(const PipeView *view_at, PipeRows rows, PipeFill fill)
{
	extern __shared__ uint4 shared_memory[];
	const PipeView &view = *view_at;
	HgjPipeInstruction *code = reinterpret_cast<HgjPipeInstruction *>(shared_memory);
	uint32_t joined[JOINS] = {};
	uint32_t removed[JOINS] = {};
	uint32_t filtered[JOINS] = {};
	uint32_t dropped = 0;
	PipeCounts counts = {joined, removed, filtered, &dropped};
	FillSink sink = {fill};
	unsigned long long stop;

	if (!load_code(view, shared_memory))
		return;
	__syncthreads();
	stop = run_tiles<REGS, JOINS>(view, code, rows, 2 * view.ncode, sink, counts);
	if (stop != 0)
		atomicOr(view.flags + PIPE_FLAG_STOP, stop);
	__syncwarp();
	add_counts(view, counts);
}

} // namespace hgj

#endif /* HGJ_CUDA_PIPELINE_FILL_CUH */
