/*-------------------------------------------------------------------------
 *
 * context.cu
 *	  The process's hold on the GPU: devices, memory pools, streams, pinned
 *	  memory, waiting for kernels, and what CUDA's errors mean.
 *
 * 1. session_open makes the context of device 0, session_device those of other
 *	  devices, on first use.  Nothing else calls CUDA before that, except for
 *	  counting devices, which makes no context.
 * 2. A context does not survive fork: a child process gets HGJ_NO_DEVICE, and
 *	  leaves everything of its parent's alone.
 * 3. A device that has failed stays failed for the process's life, because CUDA
 *	  cannot say otherwise: every call then returns HGJ_DEVICE_LOST.
 * 4. Pinned blocks go to a free list when released, up to a bound, since
 *	  getting one takes the driver milliseconds.
 * 5. To wait is to ask an event again and again, so that poll can be asked too.
 *	  A call that is cancelled still waits for its kernels: they write to what
 *	  the caller is about to free.
 *
 * The session belongs to the process.  One mutex guards the free lists and the
 * opening; a table's device memory is counted with atomics.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

namespace hgj
{

constexpr int MAX_DEVICES = 16;
constexpr int MAX_FREE_BLOCKS = 32;
constexpr size_t MAX_FREE_BYTES = (size_t) 256 << 20;
constexpr size_t MIN_BLOCK = 65536;

/* While waiting: when to stop spinning, and how often to ask poll. */
constexpr int64_t SPIN_US = 5000;
constexpr int64_t POLL_US = 1000;

/* What a pool keeps when no table is left. */
constexpr size_t IDLE_POOL_BYTES = (size_t) 64 << 20;

/* The least that a device must be: Turing. */
constexpr int MIN_MAJOR = 7;
constexpr int MIN_MINOR = 5;

struct Block
{
	void *p;
	size_t bytes;
};

struct Session
{
	pthread_mutex_t mutex;
	bool open;
	bool lost;
	pid_t pid;
	Device devices[MAX_DEVICES];
	Block free_blocks[MAX_FREE_BLOCKS];
	int nfree;
	size_t free_bytes;
};

static Session session = {PTHREAD_MUTEX_INITIALIZER, false, false, 0, {}, {}, 0, 0};

class Lock
{
  public:
	Lock()
	{
		(void) pthread_mutex_lock(&session.mutex);
	}
	~Lock()
	{
		(void) pthread_mutex_unlock(&session.mutex);
	}
};

/* Fill *err, return its status. */
HgjStatus fail(HgjError *err, HgjStatus status, const char *message)
{
	if (err != nullptr)
	{
		err->status = status;
		(void) snprintf(err->message, sizeof(err->message), "%s", message);
	}
	return status;
}

static HgjStatus status_of(cudaError_t error)
{
	switch (error)
	{
		case cudaErrorMemoryAllocation:
			return HGJ_OUT_OF_MEMORY;
		case cudaErrorNoDevice:
		case cudaErrorInsufficientDriver:
		case cudaErrorStubLibrary:
		case cudaErrorSystemDriverMismatch:
		case cudaErrorCompatNotSupportedOnDevice:
		case cudaErrorInitializationError:
		case cudaErrorSystemNotReady:
		case cudaErrorDevicesUnavailable:
		case cudaErrorInvalidDevice:
		case cudaErrorNoKernelImageForDevice:
		case cudaErrorUnsupportedPtxVersion:
		case cudaErrorOperatingSystem:
		case cudaErrorNotSupported:
			return HGJ_NO_DEVICE;
		default:
			return HGJ_DEVICE_LOST;
	}
}

/* What a user should know of the commonest ways to have no GPU. */
static const char *explain(cudaError_t error)
{
	switch (error)
	{
		case cudaErrorNoDevice:
			return "there is no CUDA device that this process may use";
		case cudaErrorInsufficientDriver:
		case cudaErrorStubLibrary:
			return "there is no NVIDIA driver, or it is too old for this library";
		case cudaErrorNoKernelImageForDevice:
		case cudaErrorUnsupportedPtxVersion:
			return "the CUDA library was not built for this device's architecture";
		case cudaErrorMemoryAllocation:
			return "the device is out of memory";
		default:
			return nullptr;
	}
}

/* Fill *err from CUDA's error; `doing` is the call that failed. */
HgjStatus cuda_fail(HgjError *err, cudaError_t error, const char *doing)
{
	HgjStatus status = status_of(error);
	const char *text = explain(error);
	char message[256];

	(void) cudaGetLastError(); /* or the next call would report it again */
	if (status == HGJ_DEVICE_LOST)
		__atomic_store_n(&session.lost, true, __ATOMIC_RELAXED);
	if (text != nullptr)
		return fail(err, status, text);
	(void) snprintf(message, sizeof(message), "%s (%s in %.100s)",
					cudaGetErrorString(error), cudaGetErrorName(error), doing);
	return fail(err, status, message);
}

static HgjStatus open_pool(Device *d, HgjError *err)
{
	cudaMemPoolProps props;
	uint64_t keep = UINT64_MAX;

	memset(&props, 0, sizeof(props));
	props.allocType = cudaMemAllocationTypePinned;
	props.handleTypes = cudaMemHandleTypeNone;
	props.location.type = cudaMemLocationTypeDevice;
	props.location.id = d->id;
	HGJ_CUDA(cudaMemPoolCreate(&d->pool, &props));
	HGJ_CUDA(cudaMemPoolSetAttribute(d->pool, cudaMemPoolAttrReleaseThreshold, &keep));
	return HGJ_OK;
}

/* Step 1, for one device; the caller holds the lock. */
static HgjStatus open_device(int id, HgjError *err)
{
	Device *d = &session.devices[id];
	cudaDeviceProp prop;
	HgjStatus status;

	if (d->open)
	{
		HGJ_CUDA(cudaSetDevice(id));
		return HGJ_OK;
	}
	HGJ_CUDA(cudaSetDevice(id));
	HGJ_CUDA(cudaGetDeviceProperties(&prop, id));
	if (prop.major < MIN_MAJOR || (prop.major == MIN_MAJOR && prop.minor < MIN_MINOR))
		return fail(err, HGJ_NO_DEVICE,
					"the device is too old: it must have compute capability 7.5");
	HGJ_CUDA(cudaFree(nullptr)); /* makes the context */
	d->id = id;
	d->sms = prop.multiProcessorCount;
	d->l2_bytes = (size_t) prop.l2CacheSize;
	d->block_shared = prop.sharedMemPerBlockOptin;
	d->sm_shared = prop.sharedMemPerMultiprocessor;
	d->total_memory = prop.totalGlobalMem;
	d->tables = 0;
	status = open_pool(d, err);
	if (status == HGJ_OK)
		d->open = true;
	return status;
}

static HgjStatus check_process(HgjError *err)
{
	if (session.open && session.pid != getpid())
		return fail(err, HGJ_NO_DEVICE,
					"the CUDA context belongs to the parent of this process");
	if (__atomic_load_n(&session.lost, __ATOMIC_RELAXED))
		return fail(err, HGJ_DEVICE_LOST,
					"the CUDA device failed earlier in this session: it can be used "
					"again in a new one");
	return HGJ_OK;
}

/* HgjEngine.open */
HgjStatus session_open(HgjError *err)
{
	Lock lock;
	int count = 0;

	HGJ_TRY(check_process(err));
	if (session.open)
		return HGJ_OK;
	HGJ_CUDA(cudaGetDeviceCount(&count));
	if (count < 1)
		return cuda_fail(err, cudaErrorNoDevice, "cudaGetDeviceCount");
	HGJ_TRY(open_device(0, err));
	session.pid = getpid();
	session.open = true;
	return HGJ_OK;
}

/* HgjEngine.close: the contexts go, and with them all that is in them. */
void session_close()
{
	Lock lock;

	if (!session.open || session.pid != getpid())
		return;
	for (int i = 0; i < session.nfree; i++)
		(void) cudaFreeHost(session.free_blocks[i].p);
	session.nfree = 0;
	session.free_bytes = 0;
	for (int i = 0; i < MAX_DEVICES; i++)
	{
		Device *d = &session.devices[i];

		if (!d->open)
			continue;
		(void) cudaSetDevice(i);
		(void) cudaMemPoolDestroy(d->pool);
		(void) cudaDeviceReset();
		d->open = false;
	}
	(void) cudaGetLastError();
	session.open = false;
}

/* HgjEngine.device_count: without a context, 0 where there is no driver. */
int session_device_count()
{
	int count = 0;

	if (cudaGetDeviceCount(&count) != cudaSuccess)
	{
		(void) cudaGetLastError();
		return 0;
	}
	return count > MAX_DEVICES ? MAX_DEVICES : count;
}

/* Make a device the calling thread's, opening it if need be. */
HgjStatus session_device(int id, Device **device, HgjError *err)
{
	*device = nullptr;
	if (id < 0 || id >= session_device_count())
		return fail(err, HGJ_NO_DEVICE, "there is no CUDA device of that number");
	HGJ_TRY(session_open(err));

	Lock lock;

	HGJ_TRY(open_device(id, err));
	*device = &session.devices[id];
	return HGJ_OK;
}

/* HgjEngine.device_info */
HgjStatus session_device_info(int id, HgjDeviceInfo *info, HgjError *err)
{
	Device *d;
	cudaDeviceProp prop;
	size_t free_bytes = 0;
	size_t total = 0;

	if (info == nullptr)
		return fail(err, HGJ_INVALID, "device info is missing");
	memset(info, 0, sizeof(*info));
	HGJ_TRY(session_device(id, &d, err));
	HGJ_CUDA(cudaGetDeviceProperties(&prop, id));
	HGJ_CUDA(cudaMemGetInfo(&free_bytes, &total));
	(void) snprintf(info->name, sizeof(info->name), "%.63s", prop.name);
	info->total_memory = total;
	info->free_memory = free_bytes;
	info->units = (uint32_t) prop.multiProcessorCount;
	return HGJ_OK;
}

/* Before anything is done with a table: the right process, a living device. */
HgjStatus table_enter(const HgjTable *table, HgjError *err)
{
	HGJ_TRY(check_process(err));
	HGJ_CUDA(cudaSetDevice(table->device->id));
	return HGJ_OK;
}

/* No table is left: others may want the memory. */
void device_trim(Device *device)
{
	if (session.pid != getpid())
		return;
	(void) cudaMemPoolTrimTo(device->pool, IDLE_POOL_BYTES);
	(void) cudaGetLastError();
}

/* Ask the caller whether to go on. */
HgjStatus poll(const HgjTable *table, HgjError *err)
{
	if (table->spec.poll != nullptr && table->spec.poll(table->spec.poll_arg) != 0)
		return fail(err, HGJ_CANCELLED, "cancelled");
	return HGJ_OK;
}

static int64_t now_us()
{
	struct timespec ts;

	(void) clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t) ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* A place in the lane's stream that wait_for_mark waits for. */
HgjStatus mark(const Lane &lane, HgjError *err)
{
	HGJ_CUDA(cudaEventRecord(lane.event, lane.stream));
	return HGJ_OK;
}

/*
 * Step 5: until all that was put into the lane's stream before the mark is done.
 * Most waits are short, so it spins for a while before it sleeps between looks.
 */
HgjStatus wait_for_mark(const HgjTable *table, const Lane &lane, bool cancellable,
						HgjError *err)
{
	int64_t start = now_us();
	int64_t polled = start;

	for (;;)
	{
		cudaError_t state = cudaEventQuery(lane.event);
		int64_t now;

		if (state == cudaSuccess)
			return HGJ_OK;
		if (state != cudaErrorNotReady)
			return cuda_fail(err, state, "waiting for the device");
		now = now_us();
		if (now - start > SPIN_US)
			(void) usleep(50);
		if (cancellable && now - polled > POLL_US)
		{
			polled = now;
			if (poll(table, nullptr) != HGJ_OK)
			{
				HGJ_CUDA(cudaStreamSynchronize(lane.stream));
				return fail(err, HGJ_CANCELLED, "cancelled");
			}
		}
	}
}

/* The same for all that is in the stream now. */
HgjStatus wait(const HgjTable *table, const Lane &lane, bool cancellable, HgjError *err)
{
	HGJ_TRY(mark(lane, err));
	return wait_for_mark(table, lane, cancellable, err);
}

Lane::~Lane()
{
	if (device == nullptr || session.pid != getpid())
		return;
	if (stream != nullptr)
	{
		(void) cudaStreamSynchronize(stream);
		(void) cudaStreamDestroy(stream);
	}
	if (event != nullptr)
		(void) cudaEventDestroy(event);
	(void) cudaGetLastError();
}

HgjStatus Lane::open(Device *dev, HgjError *err)
{
	device = dev;
	HGJ_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	HGJ_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	return HGJ_OK;
}

Stage::~Stage()
{
	if (event == nullptr || session.pid != getpid())
		return;
	if (busy)
		(void) cudaEventSynchronize(event);
	(void) cudaEventDestroy(event);
	(void) cudaGetLastError();
}

HgjStatus Stage::open(size_t bytes, HgjError *err)
{
	HGJ_TRY(wait(err));
	HGJ_TRY(memory.reserve(bytes, err));
	if (event == nullptr)
		HGJ_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	return HGJ_OK;
}

/* Until the transfer from this stage is through. */
HgjStatus Stage::wait(HgjError *err)
{
	if (busy)
	{
		HGJ_CUDA(cudaEventSynchronize(event));
		busy = false;
	}
	return HGJ_OK;
}

/* At least that many pinned bytes, from the free list if it has some. */
HgjStatus Pinned::reserve(size_t bytes, HgjError *err)
{
	size_t size = MIN_BLOCK;
	int best = -1;

	if (bytes <= bytes_)
		return HGJ_OK;
	release();
	while (size < bytes)
		size *= 2;
	{
		Lock lock;

		for (int i = 0; i < session.nfree; i++)
			if (session.free_blocks[i].bytes == size)
				best = i;
		if (best >= 0)
		{
			p_ = session.free_blocks[best].p;
			bytes_ = size;
			session.free_blocks[best] = session.free_blocks[--session.nfree];
			session.free_bytes -= size;
			return HGJ_OK;
		}
	}
	if (cudaHostAlloc(&p_, size, cudaHostAllocPortable) != cudaSuccess)
	{
		(void) cudaGetLastError();
		p_ = nullptr;
		return fail(err, HGJ_OUT_OF_MEMORY, "there is no pinned memory");
	}
	bytes_ = size;
	return HGJ_OK;
}

void Pinned::release()
{
	if (p_ == nullptr)
		return;
	if (session.pid == getpid())
	{
		Lock lock;

		if (session.nfree < MAX_FREE_BLOCKS &&
			session.free_bytes + bytes_ <= MAX_FREE_BYTES)
		{
			session.free_blocks[session.nfree].p = p_;
			session.free_blocks[session.nfree++].bytes = bytes_;
			session.free_bytes += bytes_;
		}
		else
			(void) cudaFreeHost(p_);
	}
	p_ = nullptr;
	bytes_ = 0;
}

} // namespace hgj
