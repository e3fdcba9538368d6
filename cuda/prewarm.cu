/*-------------------------------------------------------------------------
 *
 * prewarm.cu
 *	  Copies of kept columns on a device before a pipeline asks for them, and none of what
 *	  has gone.
 *
 * 1. Of each array that has no copy yet there is one from now on, if there is room without
 *	  others going.  A pipeline that asks for it meanwhile waits, as for what another one
 *	  brings (kept.cu).
 * 2. Transfers go straight from memory that is registered (registered.cu).  Where the thread
 *	  that registers it has not come so far the caller asks again later; what never will be
 *	  is left to pipelines.
 * 3. They are sent together, have a ticket as those of pipelines have (tickets.cu), so that
 *	  kernels may wait for them; when they have come they are nobody's, and the first to go.
 * 4. The caller's memory is his again then, also where something has failed.
 * 5. Nobody will ask for arrays whose owners have gone: their copies go, too.
 *
 * Who never comes back, because the device does not answer, is the caller's to notice.
 *
 * Memory: the copies' (kept_list.cu).  Locks: their mutex, for a moment at each array, or
 * while copies are dropped.
 *
 *-------------------------------------------------------------------------
 */
#include <algorithm>

#include "kept_list.h"

namespace hgj
{

/* Arrays of one call; the caller passes no more. */
constexpr uint32_t MOST = 256;

struct Ahead
{
	Device *device;
	KeptList *list;
	RegisteredBatch batch;
	KeptCopy *made[MOST];
	uint32_t n;
};

/* Who makes them, for who finds one that has not been sent. */
static const char ahead_of_pipelines = 0;

/*
 * Step 1: *wanted: there is none, and there is room for it.  HGJ_UNSUPPORTED: no room, where
 * there could be.
 */
static HgjStatus look_for_room(Ahead *ahead, const HgjKeptArray *array, bool *wanted,
							   HgjError *err)
{
	Lock lock(&kept.mutex);
	KeptList *list = ahead->list;

	*wanted = array->bytes <= list->most && kept_find(list, array) == nullptr;
	if (*wanted && list->bytes > list->most - array->bytes)
		return fail(err, HGJ_UNSUPPORTED, "the device has no room for them");
	return HGJ_OK;
}

/* Step 1: it is known from now on, unless somebody else was faster; *copy is NULL then. */
static HgjStatus enter_copy(Ahead *ahead, const HgjKeptArray *array, void *memory,
							KeptCopy **copy, HgjError *err)
{
	Lock lock(&kept.mutex);

	*copy = nullptr;
	if (kept_find(ahead->list, array) == nullptr)
	{
		*copy = kept_new_copy(ahead->list, array, &ahead_of_pipelines);
		if (*copy == nullptr)
			return fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
		(*copy)->memory = memory;
		ahead->made[ahead->n++] = *copy;
	}
	return HGJ_OK;
}

/* Steps 1 and 2. */
static HgjStatus make_copy(Ahead *ahead, const HgjKeptArray *array, HgjError *err)
{
	cudaStream_t stream = ahead->list->stream;
	KeptCopy *copy;
	void *memory;
	HgjStatus status;
	cudaError_t error;
	bool wanted;

	HGJ_TRY(look_for_room(ahead, array, &wanted, err));
	if (!wanted)
		return HGJ_OK;
	/* not pool_alloc(), which has others make room */
	error = cudaMallocFromPoolAsync(&memory, array->bytes, ahead->device->pool, stream);
	if (error == cudaErrorMemoryAllocation)
	{
		(void) cudaGetLastError();
		return fail(err, HGJ_UNSUPPORTED, "the device has no memory for them");
	}
	if (error != cudaSuccess)
		return cuda_fail(err, error, "cudaMallocFromPoolAsync");
	status = enter_copy(ahead, array, memory, &copy, err);
	if (copy != nullptr)
		return registered_copy(&ahead->batch, memory, array->at, array->bytes, stream,
							   err);
	if (cudaFreeAsync(memory, stream) != cudaSuccess)
		(void) cudaGetLastError();
	return status;
}

/* Step 3: sent, or all of it has failed. */
static HgjStatus send_copies(Ahead *ahead, HgjError *err)
{
	KeptList *list = ahead->list;
	uint64_t ticket = 0;
	HgjStatus status = registered_send(&ahead->batch, list->stream, err);
	Lock lock(&kept.mutex);

	if (status == HGJ_OK)
		status = tickets_new(&list->tickets, list->stream, &ticket, err);
	for (uint32_t i = 0; i < ahead->n && ticket > 0; i++)
	{
		ahead->made[i]->ticket = ticket;
		ahead->made[i]->maker = nullptr;
	}
	/* without a ticket nobody is to read them before they have come */
	(void) pthread_cond_broadcast(&kept.came);
	return status;
}

/* Steps 3 and 4, whatever has been sent. */
static HgjStatus wait_for_copies(Ahead *ahead, HgjError *err)
{
	HGJ_CUDA(cudaStreamSynchronize(ahead->list->stream));
	return HGJ_OK;
}

/* Step 3: they are nobody's. */
static void leave_copies(Ahead *ahead, bool failed)
{
	Lock lock(&kept.mutex);

	for (uint32_t i = 0; i < ahead->n; i++)
	{
		ahead->made[i]->failed |= failed;
		ahead->made[i]->maker = nullptr;
		kept_put_back(ahead->list, ahead->made[i], true);
	}
	(void) pthread_cond_broadcast(&kept.came);
}

/* The device that sessions of a GPU process have. */
static HgjStatus begin(Ahead *ahead, HgjError *err)
{
	HGJ_TRY(session_device(0, &ahead->device, err));
	HGJ_CUDA(cudaSetDevice(ahead->device->id));

	Lock lock(&kept.mutex);

	ahead->list = kept_list_of(ahead->device);
	return ahead->list != nullptr ? HGJ_OK
								  : fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
}

/* HgjPipelineMethods.prewarm */
HgjStatus kept_prewarm(const HgjKeptArray *arrays, uint32_t n, uint32_t *done,
					   HgjError *err)
{
	Ahead ahead = {};
	HgjStatus status = HGJ_OK;
	HgjStatus sent;
	HgjStatus come;

	*done = 0;
	if (n > MOST)
		return fail(err, HGJ_INVALID, "too many arrays at once");
	HGJ_TRY(begin(&ahead, err));
	while (*done < n && status == HGJ_OK)
	{
		RegisteredReach reach = registered_reaches(&arrays[*done]);

		if (reach == RegisteredReach::later)
			break;
		if (reach == RegisteredReach::now)
			status = make_copy(&ahead, &arrays[*done], err);
		*done += status == HGJ_OK;
	}
	if (ahead.n == 0)
		return status;
	sent = send_copies(&ahead, status == HGJ_OK ? err : nullptr);
	status = status == HGJ_OK ? sent : status;
	come = wait_for_copies(&ahead, status == HGJ_OK ? err : nullptr);
	leave_copies(&ahead, sent != HGJ_OK || come != HGJ_OK);
	return status == HGJ_OK ? come : status;
}

/* HgjPipelineMethods.sweep.  Step 5. */
uint64_t kept_sweep(uint64_t first, uint64_t last, const uint64_t *live, uint64_t n)
{
	Ahead ahead = {};
	uint64_t before;
	KeptCopy *next;

	if (begin(&ahead, nullptr) != HGJ_OK)
		return 0;

	Lock lock(&kept.mutex);

	before = ahead.list->bytes;
	for (KeptCopy *copy = ahead.list->idle; copy != nullptr; copy = next)
	{
		uint64_t id = copy->array.id;

		next = copy->idle_next;
		if (id >= first && id <= last && !std::binary_search(live, live + n, id))
			kept_drop(ahead.list, copy);
	}
	return before - ahead.list->bytes;
}

} // namespace hgj
