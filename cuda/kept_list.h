/*-------------------------------------------------------------------------
 *
 * kept_list.h
 *	  The copies of kept columns that a device has, and who holds them (kept_list.cu): for
 *	  who makes copies, when a pipeline asks (kept.cu) or ahead (prewarm.cu).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CUDA_KEPT_LIST_H
#define HGJ_CUDA_KEPT_LIST_H

#include "kept.h"
#include "tickets.h"

namespace hgj
{

constexpr size_t KEPT_BUCKETS = 1 << 15;

struct KeptList
{
	KeptCopy *buckets[KEPT_BUCKETS];
	KeptCopy *idle; /* first and last of what nobody holds */
	KeptCopy *idle_last;
	uint64_t bytes;      /* of all, */
	uint64_t idle_bytes; /* and of what nobody holds */
	uint64_t most;       /* they may have; 0: not known yet */
	uint64_t found;      /* so often what a pipeline asked for was there, */
	uint64_t brought;    /* or was not */
	cudaStream_t stream; /* of their memory and transfers */
	Tickets tickets;     /* of what it transfers */
};

struct KeptState
{
	pthread_mutex_t mutex;
	pthread_cond_t came; /* transfers are sent, or have failed */
	HgjKeptMemory memory;
	KeptList *lists[MAX_DEVICES];
};

extern KeptState kept;

/* All of these under the mutex. */
KeptList *kept_list_of(Device *device);
void kept_list_free(KeptList *list);
KeptCopy *kept_find(KeptList *list, const HgjKeptArray *array);
KeptCopy *kept_new_copy(KeptList *list, const HgjKeptArray *array, const void *maker);
void kept_take(KeptList *list, KeptCopy *copy);
void kept_put_back(KeptList *list, KeptCopy *copy, bool first);
void kept_drop(KeptList *list, KeptCopy *copy);
bool kept_drop_idle(KeptList *list);

} // namespace hgj

#endif /* HGJ_CUDA_KEPT_LIST_H */
