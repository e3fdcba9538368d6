/*-------------------------------------------------------------------------
 *
 * prewarm.cu
 *	  Copies of kept columns on a device before a pipeline asks for them.
 *
 * 1. Of each array that has no copy yet there is one from now on, if there is room without
 *	  others going.  A pipeline that asks for it meanwhile waits, as for what another one
 *	  brings (kept.cu).
 * 2. Transfers go straight from memory that is registered (registered.cu).  Where the thread
 *	  that registers it has not come so far the caller asks again later.
 * 3. They are sent together, have a ticket as those of pipelines have (tickets.cu), so that
 *	  kernels may wait for them; then they are nobody's, and the first to go.
 * 4. The caller's memory is his again when they have come.
 *
 * Memory: the copies' (kept_list.cu).  Locks: their mutex, for a moment at each array.
 *
 *-------------------------------------------------------------------------
 */
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
	Lane lane; /* to wait with */
};

/* Who makes them, for who finds one that has not been sent. */
static const char ahead_of_pipelines = 0;

/* Step 1: *copy is NULL if there is one.  HGJ_UNSUPPORTED: no room. */
static HgjStatus begin_copy(Ahead *ahead, const HgjKeptArray *array, KeptCopy **copy,
							HgjError *err)
{
	Lock lock(&kept.mutex);
	KeptList *list = ahead->list;

	*copy = kept_find(list, array);
	if (*copy != nullptr)
	{
		*copy = nullptr;
		return HGJ_OK;
	}
	if (array->bytes > list->most || list->bytes > list->most - array->bytes)
		return fail(err, HGJ_UNSUPPORTED, "the device has no room for more columns");
	*copy = kept_new_copy(list, array, &ahead_of_pipelines);
	if (*copy == nullptr)
		return fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	ahead->made[ahead->n++] = *copy;
	return HGJ_OK;
}

/* Steps 1 and 2; what has failed is marked. */
static HgjStatus make_copy(Ahead *ahead, const HgjKeptArray *array, HgjError *err)
{
	cudaStream_t stream = ahead->list->stream;
	KeptCopy *copy;
	HgjStatus status;
	cudaError_t error;

	HGJ_TRY(begin_copy(ahead, array, &copy, err));
	if (copy == nullptr)
		return HGJ_OK;
	/* not pool_alloc(), which has others make room */
	error = cudaMallocFromPoolAsync(&copy->memory, array->bytes, ahead->device->pool,
									stream);
	if (error == cudaErrorMemoryAllocation)
	{
		(void) cudaGetLastError();
		status = fail(err, HGJ_UNSUPPORTED, "the device has no memory for more columns");
	}
	else if (error != cudaSuccess)
		status = cuda_fail(err, error, "cudaMallocFromPoolAsync");
	else
		status = registered_copy(&ahead->batch, copy->memory, array->at, array->bytes,
								 stream, err);
	copy->failed = status != HGJ_OK;
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
	for (uint32_t i = 0; i < ahead->n; i++)
	{
		KeptCopy *copy = ahead->made[i];

		copy->failed |= status != HGJ_OK;
		copy->ticket = ticket;
		/* without a ticket nobody is to see it before it has come */
		if (ticket > 0 || copy->failed)
			copy->maker = nullptr;
	}
	(void) pthread_cond_broadcast(&kept.came);
	return status;
}

/* Steps 3 and 4: they are nobody's. */
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

/* Step 4. */
static HgjStatus wait_for_copies(Ahead *ahead, HgjError *err)
{
	HGJ_CUDA(cudaEventRecord(ahead->lane.event, ahead->list->stream));
	return wait_for_mark(nullptr, ahead->lane, false, err);
}

/* HgjPipelineMethods.prewarm; of device 0, as sessions of a GPU process have one. */
HgjStatus kept_prewarm(const HgjKeptArray *arrays, uint32_t n, uint32_t *done,
					   HgjError *err)
{
	Ahead ahead = {};
	HgjStatus status = HGJ_OK;
	HgjStatus sent;
	bool ready = true;

	*done = 0;
	if (n > MOST)
		return fail(err, HGJ_INVALID, "too many arrays at once");
	HGJ_TRY(session_device(0, &ahead.device, err));
	HGJ_CUDA(cudaSetDevice(ahead.device->id));
	HGJ_TRY(ahead.lane.open(ahead.device, err));
	{
		Lock lock(&kept.mutex);

		ahead.list = kept_list_of(ahead.device);
	}
	if (ahead.list == nullptr)
		return fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	while (*done < n && status == HGJ_OK && ready)
	{
		status = registered_reaches(&arrays[*done], &ready, err);
		if (status == HGJ_OK && ready)
			status = make_copy(&ahead, &arrays[*done], err);
		*done += status == HGJ_OK && ready;
	}
	if (ahead.n == 0)
		return status;
	sent = send_copies(&ahead, status == HGJ_OK ? err : nullptr);
	if (sent == HGJ_OK)
		sent = wait_for_copies(&ahead, status == HGJ_OK ? err : nullptr);
	leave_copies(&ahead, sent != HGJ_OK);
	return status != HGJ_OK ? status : sent;
}

} // namespace hgj
