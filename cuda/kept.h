/*-------------------------------------------------------------------------
 *
 * kept.h
 *	  Copies of kept columns on the devices (kept.cu).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CUDA_KEPT_H
#define HGJ_CUDA_KEPT_H

#include "pipeline_host.h"

namespace hgj
{

struct KeptCopy
{
	HgjKeptArray array;
	void *memory;
	const void *maker; /* a pipeline, or who is bringing it ahead of any */
	bool failed;       /* it is not what it should be: nobody finds it later */
	uint64_t ticket;   /* it has come when the one of this number has */
	uint64_t holders;
	KeptCopy *next; /* of its bucket */
	KeptCopy *idle_next;
	KeptCopy *idle_prev;
};

const HgjKeptMemory *kept_known_memory();
HgjStatus kept_hold(HgjPipeline *p, PipeSlot *slot, const HgjKeptArray *array,
					const void **memory, HgjError *err);
HgjStatus kept_ready(HgjPipeline *p, PipeSlot *slot, HgjError *err);
HgjStatus kept_order(HgjPipeline *p, PipeSlot *slot, HgjError *err);
HgjStatus kept_wait(HgjPipeline *p, uint64_t ticket, HgjError *err);
void kept_make_room(Device *device);
uint64_t kept_held_bytes(const PipeSlot *slot);

/* registered.cu */
enum class RegisteredReach
{
	now,
	later,
	never
};

RegisteredReach registered_reaches(const HgjKeptArray *array);
void registered_begin(const HgjKeptMemory *memory);
HgjStatus registered_copy(RegisteredBatch *batch, void *to, uint64_t at, uint64_t bytes,
						  cudaStream_t stream, HgjError *err);
HgjStatus registered_send(RegisteredBatch *batch, cudaStream_t stream, HgjError *err);

} // namespace hgj

#endif /* HGJ_CUDA_KEPT_H */
