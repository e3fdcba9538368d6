/*-------------------------------------------------------------------------
 *
 * pipeline_tuples.cuh
 *	  The kernel of a pipeline that returns rows: what ends takes the next free place
 *	  of the buffer of rows to return, whole warps at once, or waits for another turn
 *	  (pipeline_turns.cuh), after the host has fetched what there was.
 *
 * Owns nothing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CUDA_PIPELINE_TUPLES_CUH
#define HGJ_CUDA_PIPELINE_TUPLES_CUH

#include "pipeline_turns.cuh"

namespace hgj
{

struct TupleSink
{
	long long begun;
	uint32_t row; /* at hand, of the push */

	__device__ __forceinline__ bool late() const
	{
		return turn_is_over(begun);
	}

	__device__ __forceinline__ void begin(uint32_t of_push)
	{
		row = of_push;
	}

	/* False: there is no place. */
	template <int REGS, int JOINS>
	__device__ __forceinline__ bool
	end(const PipeView &view, const PipeRow<REGS, JOINS> &r, unsigned long long *)
	{
		unsigned long long at = take_one(view.flags + PIPE_FLAG_RETURNED);

		if (at >= view.out.capacity)
			return false;
		view.out.input[at] = row;
		for (uint32_t j = 0; j < view.njoins; j++)
			view.out.row[j][at] = r.row[j];
		return true;
	}
};

/* One turn of a push's rows.  Dynamic shared memory: the code. */
template <int REGS, int JOINS>
__global__ void __launch_bounds__(PIPE_THREADS)
	pipe_tuples(const PipeView *view_at, PipeRows rows, PipeTurn turn)
{
	extern __shared__ uint4 shared_memory[];
	const PipeView &view = *view_at;
	HgjPipeInstruction *code = reinterpret_cast<HgjPipeInstruction *>(shared_memory);
	uint32_t joined[JOINS] = {};
	uint32_t removed[JOINS] = {};
	uint32_t filtered[JOINS] = {};
	uint32_t dropped = 0;
	PipeCounts counts = {joined, removed, filtered, &dropped};
	TupleSink sink = {clock64(), 0};
	unsigned long long stop;

	if (!load_code(view, shared_memory))
		return;
	__syncthreads();
	stop = run_turn<REGS, JOINS>(view, code, rows, turn, sink, counts);
	if (stop != 0)
		atomicOr(view.flags + PIPE_FLAG_STOP, stop);
	__syncwarp();
	add_counts(view, counts);
}

} // namespace hgj

#endif /* HGJ_CUDA_PIPELINE_TUPLES_CUH */
