/*-------------------------------------------------------------------------
 *
 * registered.cu
 *	  The memory of kept columns, and that in which sessions stage rows, registered with
 *	  CUDA: copies of it go to a device without going through pinned buffers.
 *
 * 1. In a process whose copies stay (a GPU process), a thread of its own, once it has made
 *	  the streams and pinned blocks that the first queries will want, registers the memory
 *	  from its beginning, a block at a time, as far as the caller has used it, and goes on
 *	  when more of it is used.  What is used when the process begins is registered, as far as
 *	  that takes no more than some seconds, before it serves anybody: the driver lets others
 *	  wait meanwhile, so that a query is better off on the CPU.  Later ones wait for nothing;
 *	  and memory that is not used is not pinned.
 * 2. After each block the device's pool gets from the driver what copies of all that is used
 *	  will take (memory.cu, step 5).
 * 3. A copy of what is registered is made straight from there, but for no more than one
 *	  block at a time: CUDA takes each for memory of its own.
 * 4. Copies are begun many at a time: one by one, some 300 kB each, they take 1.5 times as
 *	  long as the bus needs (H100), by so many as the batch holds they do not.
 * 5. Where rows are staged is registered when a GPU process begins; there is little of it.
 * 6. If CUDA refuses, nothing more is registered.
 * 7. A GPU process can only read the memory of kept columns (HgjKeptMemory.let_write).  It is
 *	  registered as such where the device can do that; elsewhere the driver pins only what can
 *	  be written to, so that it can for as long as a block is being registered.  What is
 *	  pinned stays so when it is read only again, and transfers go on.
 *
 * Memory: none but the caller's, pinned as long as the process, or until the devices are
 * closed.  Locks: none; how far it has come is written by the thread alone, atomically.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kept.h"

namespace hgj
{

constexpr uint64_t BLOCK_BYTES = (uint64_t) 64 << 20;
constexpr uint64_t PAGE_BYTES = 4096;

/* How long the thread waits between looks. */
constexpr long LOOK_NS = 50 * 1000 * 1000;

/* How long is waited for what is used at first: looks, and between them. */
constexpr int FIRST_LOOKS = 1000;
constexpr long FIRST_LOOK_NS = 3 * 1000 * 1000;

struct Registered
{
	char *memory;    /* from a page's beginning on */
	uint64_t before; /* of it, bytes before what the caller calls his */
	uint64_t bytes;
	const uint64_t *used; /* so many of the caller's; NULL: all */
	bool (*let_write)(bool yes); /* step 7, or NULL */
	bool reads_only;             /* the device takes memory that is */
	uint64_t done;        /* atomic: the first so many are registered */
	Device *device;
	pthread_t thread;
	bool running;
	uint32_t stop;  /* atomic, */
	uint32_t ended; /* as is this one: no more will be */
};

static Registered registered = {};

/* Step 5: whole pages. */
static uintptr_t staging_begin = 0;
static uintptr_t staging_end = 0;

static uint64_t used_bytes()
{
	uint64_t used =
		registered.used != nullptr
			? __atomic_load_n(registered.used, __ATOMIC_ACQUIRE) + registered.before
			: registered.bytes;

	return used < registered.bytes ? used : registered.bytes;
}

/* Step 7: for the driver, memory that is read only. */
static bool register_as_writable(void *at, uint64_t bytes)
{
	bool done;

	if (!registered.let_write(true))
		return false;
	done = cudaHostRegister(at, bytes, cudaHostRegisterPortable) == cudaSuccess;
	return registered.let_write(false) && done;
}

/* Steps 1 and 7. */
static bool register_pages(void *at, uint64_t bytes)
{
	if (registered.let_write == nullptr)
		return cudaHostRegister(at, bytes, cudaHostRegisterPortable) == cudaSuccess;
	if (registered.reads_only &&
		cudaHostRegister(at, bytes, cudaHostRegisterPortable | cudaHostRegisterReadOnly) ==
			cudaSuccess)
		return true;
	(void) cudaGetLastError();
	registered.reads_only = false; /* or it would be tried for each block */
	return register_as_writable(at, bytes);
}

/* Step 7: may the device be told that memory is read only? */
static bool device_reads_only(const Device *device)
{
	int may = 0;

#ifdef HGJ_CUDA_FAULTS
	if (getenv("HGJ_REGISTER_WRITABLE") != nullptr)
		return false;
#endif
	if (cudaDeviceGetAttribute(&may, cudaDevAttrHostRegisterReadOnlySupported,
							   device->id) != cudaSuccess)
		(void) cudaGetLastError();
	return may != 0;
}

/* Step 1: the next block; false: there is to be none, ever. */
static bool register_block()
{
	uint64_t done = registered.done;
	uint64_t left = registered.bytes - done;
	uint64_t take = left < BLOCK_BYTES ? left : BLOCK_BYTES;

	if (take == 0 || !register_pages(registered.memory + done, take))
	{
		(void) cudaGetLastError();
		return false;
	}
	__atomic_store_n(&registered.done, done + take, __ATOMIC_RELEASE);
	return true;
}

static void *register_memory(void *)
{
	struct timespec pause = {0, LOOK_NS};

	if (cudaSetDevice(registered.device->id) != cudaSuccess)
	{
		__atomic_store_n(&registered.ended, 1, __ATOMIC_RELEASE);
		return nullptr;
	}
	lanes_make_ahead(registered.device);
	while (__atomic_load_n(&registered.stop, __ATOMIC_ACQUIRE) == 0)
	{
		if (registered.done >= used_bytes())
			(void) nanosleep(&pause, nullptr);
		else if (register_block()) /* step 2 */
			kept_make_room(registered.device);
		else
			break;
	}
	__atomic_store_n(&registered.ended, 1, __ATOMIC_RELEASE);
	return nullptr;
}

/* Step 1, at the beginning. */
static void wait_for_first()
{
	struct timespec pause = {0, FIRST_LOOK_NS};
	uint64_t first = used_bytes();

	for (int i = 0; i < FIRST_LOOKS; i++)
	{
		if (__atomic_load_n(&registered.done, __ATOMIC_ACQUIRE) >= first ||
			__atomic_load_n(&registered.ended, __ATOMIC_ACQUIRE) != 0)
			return;
		(void) nanosleep(&pause, nullptr);
	}
}

/* Step 1; on device 0. */
void registered_begin(const HgjKeptMemory *memory)
{
	uintptr_t begin = reinterpret_cast<uintptr_t>(memory->memory);

	if (registered.running || memory->memory == nullptr || !memory->stay ||
		session_device(0, &registered.device, nullptr) != HGJ_OK)
		return;
	registered.before = begin % PAGE_BYTES;
	registered.memory = reinterpret_cast<char *>(begin - registered.before);
	registered.bytes = (registered.before + memory->bytes) / PAGE_BYTES * PAGE_BYTES;
	registered.used = memory->used;
	registered.let_write = memory->let_write;
	registered.reads_only = device_reads_only(registered.device);
	registered.done = 0;
	registered.stop = registered.ended = 0;
	registered.running =
		pthread_create(&registered.thread, nullptr, register_memory, nullptr) == 0;
	if (registered.running)
		wait_for_first();
}

/* HgjPipelineMethods.keep_staging.  Step 5, before there are threads. */
void registered_staging(const void *memory, uint64_t bytes)
{
	uintptr_t begin = reinterpret_cast<uintptr_t>(memory);
	uintptr_t end = (begin + bytes) / PAGE_BYTES * PAGE_BYTES;
	Device *device;

	begin = (begin + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	if (staging_end > 0 || begin >= end || session_device(0, &device, nullptr) != HGJ_OK)
		return;
	if (cudaSetDevice(device->id) != cudaSuccess ||
		cudaHostRegister(reinterpret_cast<void *>(begin), end - begin,
						 cudaHostRegisterPortable) != cudaSuccess)
	{
		(void) cudaGetLastError();
		return;
	}
	staging_begin = begin;
	staging_end = end;
}

/* Has the process registered all of it for staging? */
bool registered_has(const void *memory, size_t bytes)
{
	uintptr_t at = reinterpret_cast<uintptr_t>(memory);

	return at >= staging_begin && at <= staging_end && bytes <= staging_end - at;
}

/* The devices are about to be closed; nothing is copied any more. */
void registered_end()
{
	if (staging_end > 0 &&
		cudaHostUnregister(reinterpret_cast<void *>(staging_begin)) != cudaSuccess)
		(void) cudaGetLastError();
	staging_begin = staging_end = 0;
	if (!registered.running)
		return;
	__atomic_store_n(&registered.stop, 1, __ATOMIC_RELEASE);
	(void) pthread_join(registered.thread, nullptr);
	for (uint64_t at = 0; at < registered.done; at += BLOCK_BYTES)
		(void) cudaHostUnregister(registered.memory + at);
	(void) cudaGetLastError();
	registered.running = false;
	registered.done = 0;
}

/* Is it all registered, or will it be? */
RegisteredReach registered_reaches(const HgjKeptArray *array)
{
	/* before how far it has come, which changes no more then */
	bool ended = !registered.running ||
				 __atomic_load_n(&registered.ended, __ATOMIC_ACQUIRE) != 0;
	uint64_t end = array->at + array->bytes + registered.before;

	return end <= __atomic_load_n(&registered.done, __ATOMIC_ACQUIRE)
			   ? RegisteredReach::now
		   : ended || end > registered.bytes ? RegisteredReach::never
											 : RegisteredReach::later;
}

/*
 * Step 4: what is in the batch, in the order of the stream.  Once it has failed it goes on
 * doing so, as earlier copies may be missing, until `failed` is reset.
 */
HgjStatus registered_send(RegisteredBatch *batch, cudaStream_t stream, HgjError *err)
{
	uint32_t n = batch->n;

	batch->n = 0;
	if (batch->failed)
		return fail(err, HGJ_UNSUPPORTED, "columns have not been sent to the device");
	if (n == 0)
		return HGJ_OK;
	batch->failed = true;
#if CUDART_VERSION >= 13000
	cudaMemcpyAttributes attributes;
	size_t first = 0;

	memset(&attributes, 0, sizeof(attributes));
	attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	HGJ_CUDA(cudaMemcpyBatchAsync(batch->to, batch->from, batch->bytes, n, &attributes,
								  &first, 1, stream));
#else
	for (uint32_t i = 0; i < n; i++)
		HGJ_CUDA(cudaMemcpyAsync(batch->to[i], batch->from[i], batch->bytes[i],
								 cudaMemcpyHostToDevice, stream));
#endif
	batch->failed = false;
	return HGJ_OK;
}

/*
 * Steps 3 and 4: so many bytes of the memory, from `at` on, to a device: into the batch,
 * which goes when it is full.  HGJ_UNSUPPORTED: not all of them are registered.
 */
HgjStatus registered_copy(RegisteredBatch *batch, void *to, uint64_t at, uint64_t bytes,
						  cudaStream_t stream, HgjError *err)
{
	uint64_t from = at + registered.before;
	uint64_t end = from + bytes;

	if (end > __atomic_load_n(&registered.done, __ATOMIC_ACQUIRE))
		return HGJ_UNSUPPORTED;
	while (from < end)
	{
		uint64_t block_end = (from / BLOCK_BYTES + 1) * BLOCK_BYTES;
		uint64_t take = (end < block_end ? end : block_end) - from;

		if (batch->n == RegisteredBatch::MOST)
			HGJ_TRY(registered_send(batch, stream, err));
		batch->to[batch->n] = to;
		batch->from[batch->n] = registered.memory + from;
		batch->bytes[batch->n++] = take;
		to = static_cast<char *>(to) + take;
		from += take;
	}
	return HGJ_OK;
}

} // namespace hgj
