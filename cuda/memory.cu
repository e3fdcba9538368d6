/*-------------------------------------------------------------------------
 *
 * memory.cu
 *	  Device memory, and each table's account of it.
 *
 * 1. A Buffer asks the device's pool, in stream order: nothing waits, and what
 *	  one query gave back the next one gets without the driver, once the stream in which
 *	  that was has been waited for (lanes.cu, step 5).
 * 2. What would pass the table's limit is refused before it is asked for.
 * 3. The account counts what a request takes, rounded as the pool rounds it.
 * 4. Where the device has no more, what the pool holds in pieces that are too small goes
 *	  back to the driver; then tables that their process could do without, and copies of
 *	  kept columns that nobody reads (kept.cu), make room for others.
 * 5. A pool that is asked for little at a time gets one more MB from the driver in 20 to
 *	  30 us (H100), as long as a transfer to it takes, and 32 at once in 40 us: where it is
 *	  known how much will be wanted (registered.cu), the pool takes that ahead.
 *
 * A Buffer belongs to whoever holds it.  Locks nothing: the account is atomic,
 * because several probes of one table may be created at the same time.
 *
 *-------------------------------------------------------------------------
 */
#include <utility>

#include "internal.h"

namespace hgj
{

/* Step 5. */
constexpr uint64_t GROW_BYTES = (uint64_t) 32 << 20;
constexpr int GROW_MOST = 4096;

static size_t rounded(size_t bytes)
{
	return (bytes + 511) / 512 * 512;
}

/* Step 4. */
HgjStatus pool_alloc(Device *device, void **p, size_t size, cudaStream_t stream,
					 HgjError *err)
{
	for (bool trimmed = false;; trimmed = !trimmed)
	{
		cudaError_t error = cudaMallocFromPoolAsync(p, size, device->pool, stream);

		if (error == cudaSuccess)
			return HGJ_OK;
		if (error != cudaErrorMemoryAllocation ||
			(trimmed && !kept_give_back() && !kept_evict(device, size)))
			return cuda_fail(err, error, "cudaMallocFromPoolAsync");
		if (!trimmed)
			(void) cudaMemPoolTrimTo(device->pool, 0);
		(void) cudaGetLastError();
	}
}

/* Bytes that the pool has from the driver, and those of them that nobody uses. */
void pool_bytes(const Device *device, uint64_t *held, uint64_t *idle)
{
	uint64_t used = 0;

	*held = 0;
	if (cudaMemPoolGetAttribute(device->pool, cudaMemPoolAttrReservedMemCurrent, held) !=
			cudaSuccess ||
		cudaMemPoolGetAttribute(device->pool, cudaMemPoolAttrUsedMemCurrent, &used) !=
			cudaSuccess)
		(void) cudaGetLastError();
	*idle = *held > used ? *held - used : 0;
}

/*
 * Step 5: until so many bytes are idle in the pool, unless that would be most of what the
 * device has left.  One thread at a time.  What is idle already is taken meanwhile, so that
 * the rest comes from the driver, by blocks, between which it serves others.
 */
void pool_grow(Device *device, uint64_t wanted_idle, cudaStream_t stream)
{
	static void *blocks[GROW_MOST];
	size_t free_bytes = 0;
	size_t total = 0;
	uint64_t held;
	uint64_t idle;
	uint64_t wanted;
	int n = 0;

	pool_bytes(device, &held, &idle);
	if (idle >= wanted_idle || cudaMemGetInfo(&free_bytes, &total) != cudaSuccess ||
		wanted_idle - idle > free_bytes / 2)
		return;
	wanted = held + (wanted_idle - idle);
	while (held < wanted && n < GROW_MOST &&
		   cudaMallocFromPoolAsync(&blocks[n], GROW_BYTES, device->pool, stream) ==
			   cudaSuccess)
	{
		n++;
		pool_bytes(device, &held, &idle);
	}
	while (n > 0)
		(void) cudaFreeAsync(blocks[--n], stream);
	(void) cudaStreamSynchronize(stream);
	(void) cudaGetLastError();
}

HgjStatus Buffer::get(HgjTable *table, cudaStream_t stream, size_t bytes, HgjError *err)
{
	uint64_t limit = table->spec.memory_limit;
	uint64_t now = __atomic_load_n(&table->current, __ATOMIC_RELAXED);
	uint64_t peak;
	size_t size;
	void *p = nullptr;

	release();
	if (bytes == 0)
		return HGJ_OK;
	if (bytes > SIZE_MAX / 4)
		return fail(err, HGJ_OUT_OF_MEMORY, "the table is too large");
	size = rounded(bytes);
	if (limit > 0 && (now > limit || size > limit - now))
		return fail(err, HGJ_LIMIT, "the table does not fit its memory limit");
	HGJ_TRY(pool_alloc(table->device, &p, size, stream, err));
	p_ = p;
	bytes_ = size;
	table_ = table;
	stream_ = stream;
	now = __atomic_add_fetch(&table->current, size, __ATOMIC_RELAXED);
	peak = __atomic_load_n(&table->peak, __ATOMIC_RELAXED);
	while (now > peak && !__atomic_compare_exchange_n(&table->peak, &peak, now, true,
													  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		continue;
	return HGJ_OK;
}

HgjStatus Buffer::reserve(HgjTable *table, cudaStream_t stream, size_t bytes,
						  HgjError *err)
{
	if (bytes <= bytes_)
		return HGJ_OK;
	return get(table, stream, bytes, err);
}

void Buffer::release()
{
	if (p_ == nullptr)
		return;
	if (table_enter(table_, nullptr) == HGJ_OK &&
		cudaFreeAsync(p_, stream_) != cudaSuccess)
		(void) cudaGetLastError();
	(void) __atomic_sub_fetch(&table_->current, bytes_, __ATOMIC_RELAXED);
	p_ = nullptr;
	bytes_ = 0;
}

void Buffer::swap(Buffer &other)
{
	std::swap(p_, other.p_);
	std::swap(bytes_, other.bytes_);
	std::swap(table_, other.table_);
	std::swap(stream_, other.stream_);
}

} // namespace hgj
