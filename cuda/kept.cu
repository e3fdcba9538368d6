/*-------------------------------------------------------------------------
 *
 * kept.cu
 *	  Copies of columns that the caller keeps in memory (pipeline.h, KEPT ROWS), on the
 *	  devices, for all pipelines of the process.
 *
 * 1. A copy is found by its array's number and place (kept_list.cu), and is what it is of
 *	  for ever: what changes in the caller's memory gets another number.
 * 2. A pipeline's slot holds the copies that its kernel reads until that is through.
 *	  What nobody holds goes, by use, when others need room: other copies, which together
 *	  may take so many bytes, or tables (memory.cu).
 * 3. Who finds none makes it: room, and a transfer straight from memory that is registered
 *	  with CUDA (registered.cu), or through pinned buffers.  Others wait until that is sent,
 *	  but before they wait they send what they are bringing themselves, so that no two
 *	  wait for each other.  Where there is no room the caller stages its rows.  In a
 *	  GPU process others bring what nobody has asked for yet (prewarm.cu).
 * 4. No thread waits until what a slot sends has come, but the stream of its kernel, so that
 *	  the next ones are sent meanwhile: transfers have tickets (tickets.cu).  The thread
 *	  itself waits before it says that the caller's memory has been read.
 * 5. Where copies are not to stay, all go that nobody holds when the last table or
 *	  pipeline does.
 *
 * Memory: copies are the process's, in no pipeline's account (kept_list.cu); a slot's list
 * of what it holds is malloc'd, and the slot's.  Locks: one mutex for all of it; nothing waits
 * under it but for the mutex itself.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <algorithm>

#include "kept.h"
#include "kept_list.h"

namespace hgj
{

/* What is taken ahead for build sides and groups. */
constexpr uint64_t TABLES_ROOM = (uint64_t) 256 << 20;

/* How long is waited between looks whether the caller wants no more. */
constexpr long WAIT_NS = 10 * 1000 * 1000;

/* HgjPipelineMethods.keep */
void kept_memory(const HgjKeptMemory *memory)
{
	kept.memory = *memory;
	if (session_alive())
		registered_begin(memory);
}

const HgjKeptMemory *kept_known_memory()
{
	return &kept.memory;
}

/* ---- for pipelines -------------------------------------------------------- */

/* Room for one more hold. */
static bool reserve_hold(KeptHolds *holds)
{
	uint64_t room = holds->room > 0 ? 2 * holds->room : 256;
	void *copies;

	if (holds->n < holds->room)
		return true;
	copies = realloc(holds->copies, room * sizeof(KeptCopy *));
	if (copies == nullptr)
		return false;
	holds->copies = static_cast<KeptCopy **>(copies);
	holds->room = room;
	return true;
}

/* Steps 3 and 4: what the slot was to bring is sent, and will have come with the ticket. */
static void have_sent(HgjPipeline *p, KeptHolds *holds, uint64_t ticket, bool failed)
{
	Lock lock(&kept.mutex);

	for (uint64_t i = holds->come; i < holds->n; i++)
		if (holds->copies[i]->maker == p)
		{
			holds->copies[i]->failed |= failed;
			holds->copies[i]->ticket = ticket;
			holds->copies[i]->maker = nullptr;
		}
	holds->come = holds->n;
	holds->ticket = std::max(holds->ticket, ticket);
	(void) pthread_cond_broadcast(&kept.came);
}

/* Step 3: the pipeline's stream goes on behind what is in the one of copies now. */
static HgjStatus follow(HgjPipeline *p, HgjError *err)
{
	const KeptList *list = kept.lists[p->account.device->id];

	HGJ_CUDA(cudaEventRecord(p->lane.event, list->stream));
	HGJ_CUDA(cudaStreamWaitEvent(p->lane.stream, p->lane.event));
	return HGJ_OK;
}

/* Step 4: the stream waits for what was sent with the ticket; *waits: it has not come yet. */
static HgjStatus wait_in(HgjPipeline *p, uint64_t ticket, cudaStream_t stream,
						 bool *waits, HgjError *err)
{
	*waits = false;
	if (ticket == 0)
		return HGJ_OK;

	Lock lock(&kept.mutex);

	return tickets_order(&kept.lists[p->account.device->id]->tickets, ticket, stream,
						 waits, err);
}

/* Step 4: until what was sent with the ticket has come. */
HgjStatus kept_wait(HgjPipeline *p, uint64_t ticket, HgjError *err)
{
	bool waits;

	HGJ_TRY(wait_in(p, ticket, p->lane.stream, &waits, err));
	return waits ? wait(&p->account, p->lane, false, err) : HGJ_OK;
}

/* Steps 3 and 4: what the slot brings is sent; *ticket is 0 if it has come, too. */
static HgjStatus send(HgjPipeline *p, KeptHolds *holds, uint64_t *ticket, HgjError *err)
{
	KeptList *list = kept.lists[p->account.device->id];

	HGJ_TRY(registered_send(&holds->batch, list->stream, err));
	if (!holds->uploading)
	{
		Lock lock(&kept.mutex);

		HGJ_TRY(tickets_new(&list->tickets, list->stream, ticket, err));
	}
	if (*ticket > 0)
	{
		p->reading = *ticket;
		return HGJ_OK;
	}
	HGJ_TRY(follow(p, err));
	return wait(&p->account, p->lane, false, err);
}

/* Step 4: the slot's stream waits for all that it holds. */
HgjStatus kept_order(HgjPipeline *p, PipeSlot *slot, HgjError *err)
{
	bool waits;

	return wait_in(p, slot->kept.ticket, slot->lane.stream, &waits, err);
}

/* Steps 3 and 4: what the slot brings is on its way; kept_order() is to follow. */
HgjStatus kept_ready(HgjPipeline *p, PipeSlot *slot, HgjError *err)
{
	KeptHolds *holds = &slot->kept;
	uint64_t ticket = 0;
	HgjStatus status = HGJ_OK;

	if (holds->bringing)
		status = send(p, holds, &ticket, err);
	if (status != HGJ_OK && session_alive())
	{
		/* what was sent before reads the caller's memory, and writes copies that go */
		settle(kept.lists[p->account.device->id]->stream);
		if (holds->uploading)
			settle(p->lane.stream);
	}
	holds->bringing = holds->uploading = holds->batch.failed = false;
	if (holds->come < holds->n)
		have_sent(p, holds, ticket, status != HGJ_OK);
	return status;
}

/* Step 3: room, and the transfer, whose stream the caller waits for later. */
static HgjStatus bring(HgjPipeline *p, KeptHolds *holds, KeptCopy *copy, HgjError *err)
{
	const char *from = static_cast<const char *>(kept.memory.memory) + copy->array.at;
	cudaStream_t stream = kept.lists[p->account.device->id]->stream;
	HgjStatus status;

	holds->bringing = true;
	HGJ_TRY(pool_alloc(p->account.device, &copy->memory, copy->array.bytes, stream, err));
	status = registered_copy(&holds->batch, copy->memory, copy->array.at,
							 copy->array.bytes, stream, err);
	if (status == HGJ_OK)
		p->counted.sent += copy->array.bytes;
	if (status != HGJ_UNSUPPORTED)
		return status;
	holds->uploading = true;
	HGJ_TRY(follow(p, err));
	return pipeline_upload(p, static_cast<char *>(copy->memory), from, copy->array.bytes,
						   err);
}

/* Step 3: somebody else brings it. */
static HgjStatus wait_for(HgjPipeline *p, PipeSlot *slot, KeptCopy *copy, HgjError *err)
{
	HGJ_TRY(kept_ready(p, slot, err));
	for (;;)
	{
		struct timespec until;

		HGJ_TRY(poll(&p->account, err));
		(void) clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += WAIT_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;

		Lock lock(&kept.mutex);

		if (copy->maker == nullptr)
		{
			slot->kept.ticket = std::max(slot->kept.ticket, copy->ticket);
			return copy->failed
					   ? fail(err, HGJ_UNSUPPORTED, "a column has not come to the device")
					   : HGJ_OK;
		}
		(void) pthread_cond_timedwait(&kept.came, &kept.mutex, &until);
	}
}

/* Steps 1 and 3: *copy is held, and made by *maker, if it is not there. */
static HgjStatus find_or_make(HgjPipeline *p, KeptHolds *holds, const HgjKeptArray *array,
							  KeptCopy **copy, const void **maker, HgjError *err)
{
	Lock lock(&kept.mutex);
	KeptList *list = kept_list_of(p->account.device);

	if (list == nullptr || !reserve_hold(holds))
		return fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	*copy = kept_find(list, array);
	if (*copy != nullptr && (*copy)->array.bytes != array->bytes)
		return fail(err, HGJ_INVALID, "a kept array has another size than before");
	if (*copy != nullptr && (*copy)->failed)
		return fail(err, HGJ_UNSUPPORTED, "a column has not come to the device");
	if (*copy != nullptr)
		kept_take(list, *copy);
	if (*copy == nullptr && p->only_there)
		return fail(err, HGJ_UNSUPPORTED, "a column is not on the device any more");
	if (*copy == nullptr && array->bytes > list->most)
		return fail(err, HGJ_UNSUPPORTED, "a column is larger than all may be");
	if (*copy == nullptr)
	{
		while (list->bytes + array->bytes > list->most)
			if (!kept_drop_idle(list))
				return fail(err, HGJ_UNSUPPORTED,
							"the device has no room for the columns");
		*copy = kept_new_copy(list, array, p);
		if (*copy == nullptr)
			return fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
		list->brought++;
	}
	else
	{
		*maker = (*copy)->maker;
		holds->ticket = std::max(holds->ticket, (*copy)->ticket);
		list->found++;
	}
	holds->copies[holds->n++] = *copy;
	return HGJ_OK;
}

/*
 * The device's copy of an array, held by the slot; kept_ready() and kept_order() must follow
 * before a kernel reads it.  HGJ_UNSUPPORTED: there is no room.
 */
HgjStatus kept_hold(HgjPipeline *p, PipeSlot *slot, const HgjKeptArray *array,
					const void **memory, HgjError *err)
{
	KeptCopy *copy = nullptr;
	const void *maker = nullptr;
	HgjStatus status = HGJ_OK;

	HGJ_TRY(find_or_make(p, &slot->kept, array, &copy, &maker, err));
	if (maker != nullptr && maker != p)
		status = wait_for(p, slot, copy, err);
	else if (copy->maker == p && copy->memory == nullptr)
		status = bring(p, &slot->kept, copy, err);
	if (copy->maker == p && status != HGJ_OK)
		copy->failed = true;
	*memory = copy->memory;
	return status == HGJ_OUT_OF_MEMORY
			   ? fail(err, HGJ_UNSUPPORTED, "the device has no memory for the columns")
			   : status;
}

/* Step 2: the slot's kernel is through, or there has been none. */
void kept_release(HgjPipeline *p, PipeSlot *slot)
{
	KeptHolds *holds = &slot->kept;

	if (holds->n == 0)
		return;
	/* it has been cancelled, or has failed: others may wait for what it was to send */
	if (session_alive())
		(void) kept_ready(p, slot, nullptr);
	else
		have_sent(p, holds, 0, true);

	Lock lock(&kept.mutex);

	for (uint64_t i = 0; i < holds->n; i++)
		kept_put_back(kept.lists[p->account.device->id], holds->copies[i], false);
	holds->n = holds->come = holds->ticket = 0;
	holds->batch.n = 0; /* of a device that is lost, */
	holds->batch.failed = false;
}

KeptHolds::~KeptHolds()
{
	free(copies);
}

/* ---- room for others ------------------------------------------------------- */

/* Step 2: room for so many bytes; false: there is nothing that could go. */
bool kept_evict(Device *device, uint64_t bytes)
{
	cudaStream_t stream;

	{
		Lock lock(&kept.mutex);
		KeptList *list = kept.lists[device->id];
		uint64_t before = list != nullptr ? list->bytes : 0;

		while (list != nullptr && before - list->bytes < bytes && kept_drop_idle(list))
			continue;
		if (list == nullptr || list->bytes == before)
			return false;
		stream = list->stream;
	}
	return cudaStreamSynchronize(stream) == cudaSuccess;
}

/* Step 2: what the caller's process could do without; false: nothing. */
bool kept_give_back()
{
	bool (*give_back)(void) = kept.memory.give_back;

	/* their streams were waited for when they went, and with them what gives memory back */
	return give_back != nullptr && give_back();
}

/* Step 5. */
void kept_trim(Device *device)
{
	Lock lock(&kept.mutex);
	KeptList *list = kept.lists[device->id];

	while (list != nullptr && !kept.memory.stay && kept_drop_idle(list))
		continue;
}

/* What copies and the tables beside them will soon want of the device, where copies stay. */
static uint64_t room_for(const KeptList *list)
{
	const uint64_t *used = kept.memory.used;
	uint64_t room = std::min(list->most, kept.memory.bytes);

	if (used != nullptr)
		room = std::min(room, __atomic_load_n(used, __ATOMIC_ACQUIRE));
	return room + TABLES_ROOM;
}

/* What the pool is to hold when no table is left. */
uint64_t kept_room(Device *device)
{
	Lock lock(&kept.mutex);
	const KeptList *list = kept.lists[device->id];

	return list != nullptr && kept.memory.stay ? room_for(list) : 0;
}

/* That much, ahead of who wants it: one thread at a time, and copies stay. */
void kept_make_room(Device *device)
{
	KeptList *list;
	uint64_t room;

	{
		Lock lock(&kept.mutex);

		list = kept_list_of(device);
		if (list == nullptr)
			return;
		room = room_for(list);
		room -= std::min(room, list->bytes);
	}
	pool_grow(device, room, list->stream);
}

/* The devices' contexts go, and with them all copies; no pipeline is left. */
void kept_forget()
{
	Lock lock(&kept.mutex);

	for (KeptList *&list : kept.lists)
	{
		while (list != nullptr && kept_drop_idle(list))
			continue;
		if (list != nullptr)
			kept_list_free(list);
		list = nullptr;
	}
}

/*
 * A device's copies, for who asks about it.  Returns the bytes that make room for who needs
 * it.
 */
uint64_t kept_facts(const Device *device, HgjDeviceInfo *info)
{
	Lock lock(&kept.mutex);
	const KeptList *list = kept.lists[device->id];

	if (list == nullptr)
		return 0;
	info->kept_bytes = list->bytes;
	info->kept_found = list->found;
	info->kept_brought = list->brought;
	return list->idle_bytes;
}

/* HgjPipelineMethods.kept_bytes; there is nothing to wait for, and so no poll. */
HgjStatus kept_bytes(const HgjPipelineCaller *, const uint64_t *ids, uint64_t n,
					 uint64_t *bytes, HgjError *)
{
	Lock lock(&kept.mutex);

	memset(bytes, 0, n * sizeof(uint64_t));
	for (const KeptList *list : kept.lists)
		for (size_t b = 0; list != nullptr && b < KEPT_BUCKETS; b++)
			for (const KeptCopy *copy = list->buckets[b]; copy != nullptr;
				 copy = copy->next)
			{
				const uint64_t *id = std::lower_bound(ids, ids + n, copy->array.id);

				if (id < ids + n && *id == copy->array.id && !copy->failed)
					bytes[id - ids] += copy->array.bytes;
			}
	return HGJ_OK;
}

/* What the slot holds of arrays. */
uint64_t kept_held_bytes(const PipeSlot *slot)
{
	uint64_t bytes = 0;

	for (uint64_t i = 0; i < slot->kept.n; i++)
		bytes += slot->kept.copies[i]->array.bytes;
	return bytes;
}

} // namespace hgj
