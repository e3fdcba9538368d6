/*-------------------------------------------------------------------------
 *
 * kept_list.cu
 *	  The copies of kept columns that a device has, and who holds them.
 *
 * 1. A copy is found by its array's number and place.
 * 2. Who reads one holds it.  What nobody holds is in a list, as a rule the one that was
 *	  given back first at its head, and goes from there.  What was never asked for goes
 *	  before all that was.
 * 3. Memory is taken and given back in one stream of each device's, in which the transfers
 *	  are, too, so that what has gone makes room for what comes.
 *
 * Memory: device memory of the process, from the device's pool; what says so is malloc'd.
 * Locks: the mutex (kept_list.h), which the caller has.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "kept_list.h"

namespace hgj
{

/* Of what is free of the device at first, if nobody says how much. */
constexpr uint64_t PERCENT_OF_FREE = 70;

KeptState kept = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {}, {}};

static KeptCopy **bucket_of(KeptList *list, const HgjKeptArray *array)
{
	uint64_t hash = (array->id * 0x9E3779B97F4A7C15ull) ^ array->at;

	hash ^= hash >> 32;
	return &list->buckets[(hash * 0xA0761D6478BD642Full >> 40) % KEPT_BUCKETS];
}

KeptCopy *kept_find(KeptList *list, const HgjKeptArray *array)
{
	KeptCopy *copy = *bucket_of(list, array);

	while (copy != nullptr &&
		   (copy->array.id != array->id || copy->array.at != array->at))
		copy = copy->next;
	return copy;
}

/* Step 2: into and out of the list of what nobody holds. */
static void put_idle(KeptList *list, KeptCopy *copy, bool first)
{
	copy->idle_prev = first ? nullptr : list->idle_last;
	copy->idle_next = first ? list->idle : nullptr;
	*(copy->idle_prev != nullptr ? &copy->idle_prev->idle_next : &list->idle) = copy;
	*(copy->idle_next != nullptr ? &copy->idle_next->idle_prev : &list->idle_last) = copy;
	list->idle_bytes += copy->array.bytes;
}

static void take_idle(KeptList *list, KeptCopy *copy)
{
	*(copy->idle_prev != nullptr ? &copy->idle_prev->idle_next : &list->idle) =
		copy->idle_next;
	*(copy->idle_next != nullptr ? &copy->idle_next->idle_prev : &list->idle_last) =
		copy->idle_prev;
	list->idle_bytes -= copy->array.bytes;
}

/* It goes: nobody holds it, and no kernel reads it. */
static void drop(KeptList *list, KeptCopy *copy)
{
	KeptCopy **link = bucket_of(list, &copy->array);

	while (*link != copy)
		link = &(*link)->next;
	*link = copy->next;
	list->bytes -= copy->array.bytes;
	if (copy->memory != nullptr && session_alive() &&
		cudaFreeAsync(copy->memory, list->stream) != cudaSuccess)
		(void) cudaGetLastError();
	free(copy);
}

/* Step 2: one that nobody holds. */
void kept_drop(KeptList *list, KeptCopy *copy)
{
	take_idle(list, copy);
	drop(list, copy);
}

/* Step 2: the first one; false: there is nothing that could go. */
bool kept_drop_idle(KeptList *list)
{
	if (list->idle == nullptr)
		return false;
	kept_drop(list, list->idle);
	return true;
}

void kept_list_free(KeptList *list)
{
	tickets_close(&list->tickets);
	if (list->stream != nullptr)
		(void) cudaStreamDestroy(list->stream);
	free(list);
}

static KeptList *new_list()
{
	KeptList *list = static_cast<KeptList *>(calloc(1, sizeof(KeptList)));

	if (list == nullptr)
		return nullptr;
	if (cudaStreamCreateWithFlags(&list->stream, cudaStreamNonBlocking) == cudaSuccess &&
		tickets_open(&list->tickets))
		return list;
	(void) cudaGetLastError();
	kept_list_free(list);
	return nullptr;
}

KeptList *kept_list_of(Device *device)
{
	KeptList *list = kept.lists[device->id];
	size_t free_bytes = 0;
	size_t total = 0;

	if (list == nullptr)
		list = kept.lists[device->id] = new_list();
	if (list == nullptr || list->most > 0)
		return list;
	list->most = kept.memory.most;
	if (list->most == 0 && cudaMemGetInfo(&free_bytes, &total) == cudaSuccess)
		list->most = free_bytes / 100 * PERCENT_OF_FREE;
	(void) cudaGetLastError();
	return list;
}

/* One that `maker` is to bring, held once; NULL: no memory for it. */
KeptCopy *kept_new_copy(KeptList *list, const HgjKeptArray *array, const void *maker)
{
	KeptCopy *copy = static_cast<KeptCopy *>(calloc(1, sizeof(KeptCopy)));
	KeptCopy **bucket = bucket_of(list, array);

	if (copy == nullptr)
		return nullptr;
	copy->array = *array;
	copy->maker = maker;
	copy->holders = 1;
	copy->next = *bucket;
	*bucket = copy;
	list->bytes += array->bytes;
	return copy;
}

/* Step 2: one holder more. */
void kept_take(KeptList *list, KeptCopy *copy)
{
	if (copy->holders++ == 0)
		take_idle(list, copy);
}

/* Step 2: one less; first: it is the first to go then, as nobody has asked for it. */
void kept_put_back(KeptList *list, KeptCopy *copy, bool first)
{
	if (--copy->holders > 0)
		return;
	if (copy->failed)
		drop(list, copy);
	else
		put_idle(list, copy, first);
}

} // namespace hgj
