/*-------------------------------------------------------------------------
 *
 * pipeline_groups.cuh
 *	  Groups of a pipeline, for all kernels that have them.
 *
 * 1. Where groups are in a hash table, a slot of it is claimed with one atomic, filled, and
 *	  then never changed; who meets it while it is being filled waits.
 * 2. A block that has state words of its own adds them to the real ones at its end.
 *
 * Owns nothing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CUDA_PIPELINE_GROUPS_CUH
#define HGJ_CUDA_PIPELINE_GROUPS_CUH

#include "pipeline_row.cuh"

namespace hgj
{

/* Step 1; false: there is no room. */
static __device__ bool hashed_group(const PipeView &view, const uint64_t *keys,
									uint64_t nulls, uint64_t *group)
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

/* Step 2: what a block has added up, if it keeps its own states. */
__device__ __forceinline__ void add_shared_states(const PipeView &view,
												  const unsigned long long *words,
												  uint32_t shared_words)
{
	for (uint32_t i = threadIdx.x; i < shared_words; i += PIPE_THREADS)
	{
		uint32_t state = view.words[i % view.nwords].state;

		if (words[i] != state_identity(state))
			state_merge_atomic(state, view.groups.states + i, words[i]);
	}
}

} // namespace hgj

#endif /* HGJ_CUDA_PIPELINE_GROUPS_CUH */
