/*-------------------------------------------------------------------------
 *
 * context.cu
 *	  The process's hold on the GPU: devices, memory pools, and what CUDA's
 *	  errors mean.  (Streams, waiting and pinned memory: lanes.cu.)
 *
 * 1. session_open makes the context of device 0, session_device those of other
 *	  devices, on first use.  Nothing else makes one: devices are counted and
 *	  described, and said to be usable or not, without.
 * 2. CUDA does not survive fork, not even its having been initialised: a child
 *	  of a process that has touched it gets HGJ_NO_DEVICE, and leaves
 *	  everything of its parent's alone.
 * 3. A device that has failed, or has not answered in time, stays failed for the
 *	  process's life, because CUDA cannot say otherwise: every call then returns
 *	  HGJ_DEVICE_LOST with the first failure's words, and nothing is given back,
 *	  because giving back waits for the device.
 * 4. session_close resets the devices; the next session_open begins anew.
 *
 * The session belongs to the process.  One mutex guards its opening and closing;
 * a table's device memory is counted with atomics.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"

namespace hgj
{

/* What a pool keeps when no table is left. */
constexpr size_t IDLE_POOL_BYTES = (size_t) 64 << 20;

/* The least that a device must be: Turing. */
constexpr int MIN_MAJOR = 7;
constexpr int MIN_MINOR = 5;

struct Session
{
	pthread_mutex_t mutex;
	bool touched; /* this process, or its parent, has called CUDA */
	bool open;
	bool losing; /* atomic: somebody writes why_lost, then */
	bool lost;   /* atomic */
	pid_t pid;
	Device devices[MAX_DEVICES];
	char why_lost[sizeof(((HgjError *) nullptr)->message)];
};

static Session session = {
	PTHREAD_MUTEX_INITIALIZER, false, false, false, false, 0, {}, ""};

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
	if (text == nullptr)
	{
		(void) snprintf(message, sizeof(message), "%.80s (%s in %.60s)",
						cudaGetErrorString(error), cudaGetErrorName(error), doing);
		text = message;
	}
	if (status == HGJ_DEVICE_LOST)
		return device_lost(err, text);
	return fail(err, status, text);
}

/* Step 3: the device is given up for good. */
HgjStatus device_lost(HgjError *err, const char *why)
{
	if (!__atomic_exchange_n(&session.losing, true, __ATOMIC_ACQ_REL))
		(void) snprintf(session.why_lost, sizeof(session.why_lost), "%s", why);
	__atomic_store_n(&session.lost, true, __ATOMIC_RELEASE);
	return fail(err, HGJ_DEVICE_LOST, why);
}

/* See internal.h. */
HgjStatus allow_shared(const Device *device, const void *kernel, HgjError *err)
{
	cudaFuncAttributes attributes;

	HGJ_CUDA(cudaFuncGetAttributes(&attributes, kernel));
	HGJ_CUDA(
		cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
							 (int) (device->block_shared - attributes.sharedSizeBytes)));
	return HGJ_OK;
}

/* May things that belong to the device still be given back to it? */
bool session_alive()
{
	return session.pid == getpid() && !__atomic_load_n(&session.lost, __ATOMIC_ACQUIRE);
}

static HgjStatus open_pool(Device *d, HgjError *err)
{
	cudaMemPoolProps props;
	uint64_t keep = UINT64_MAX;
	int no = 0;

	memset(&props, 0, sizeof(props));
	props.allocType = cudaMemAllocationTypePinned;
	props.handleTypes = cudaMemHandleTypeNone;
	props.location.type = cudaMemLocationTypeDevice;
	props.location.id = d->id;
	HGJ_CUDA(cudaMemPoolCreate(&d->pool, &props));
	HGJ_CUDA(cudaMemPoolSetAttribute(d->pool, cudaMemPoolAttrReleaseThreshold, &keep));
	/*
	 * Or each request asks every stream that has ever given something back, 0.6 us (H100)
	 * for each, and they are hundreds: wait() tells the pool instead.
	 */
	HGJ_CUDA(cudaMemPoolSetAttribute(d->pool, cudaMemPoolReuseAllowOpportunistic, &no));
	return HGJ_OK;
}

/* Why a device of that compute capability is not used, or NULL. */
static const char *too_old(int major, int minor)
{
	return major < MIN_MAJOR || (major == MIN_MAJOR && minor < MIN_MINOR)
			   ? "the device is too old: it must have compute capability 7.5"
			   : nullptr;
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
	if (too_old(prop.major, prop.minor) != nullptr)
		return fail(err, HGJ_NO_DEVICE, too_old(prop.major, prop.minor));
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

/* Steps 2 and 3. */
static HgjStatus check_process(HgjError *err)
{
	char message[256];

	if (session.touched && session.pid != getpid())
		return fail(err, HGJ_NO_DEVICE,
					"CUDA was used by the parent of this process, and does not "
					"survive that");
	if (__atomic_load_n(&session.lost, __ATOMIC_ACQUIRE))
	{
		(void) snprintf(message, sizeof(message),
						"the device has failed in this session: %.200s",
						session.why_lost);
		return fail(err, HGJ_DEVICE_LOST, message);
	}
	return HGJ_OK;
}

/* From here on a child process must keep away. */
static HgjStatus touch(HgjError *err)
{
	HGJ_TRY(check_process(err));
	session.pid = getpid();
	session.touched = true;
	return HGJ_OK;
}

/* HgjEngine.usable: what open would say, as far as that can be told. */
HgjStatus session_usable(HgjError *err)
{
	int count = 0;
	int major = 0;
	int minor = 0;

	HGJ_TRY(touch(err));
	HGJ_CUDA(cudaGetDeviceCount(&count));
	if (count < 1)
		return cuda_fail(err, cudaErrorNoDevice, "cudaGetDeviceCount");
	HGJ_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
	HGJ_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0));
	if (too_old(major, minor) != nullptr)
		return fail(err, HGJ_NO_DEVICE, too_old(major, minor));
	return HGJ_OK;
}

/* HgjEngine.open */
HgjStatus session_open(HgjError *err)
{
	if (session.open)
		return check_process(err);
	HGJ_TRY(session_usable(err));

	Lock lock(&session.mutex);

	if (session.open)
		return HGJ_OK;
	HGJ_TRY(open_device(0, err));
	session.open = true;
	return HGJ_OK;
}

/* HgjEngine.close: the contexts go, and with them all that is in them. */
void session_close()
{
	Lock lock(&session.mutex);

	if (!session.open || !session_alive())
		return;
	registered_end();
	pinned_forget();
	lanes_forget();
	kept_forget();
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

	/* a lost device is still one */
	if (session.touched && session.pid != getpid())
		return 0;
	session.pid = getpid();
	session.touched = true;
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

	Lock lock(&session.mutex);

	HGJ_TRY(open_device(id, err));
	*device = &session.devices[id];
	return HGJ_OK;
}

/* The part of a device's description that only an open one has. */
static void live_info(int id, HgjDeviceInfo *info)
{
	Device *d = &session.devices[id];
	size_t free_bytes = 0;
	size_t total = 0;
	uint64_t idle_copies;
	uint64_t held;
	uint64_t idle;

	if (!d->open || !session_alive())
		return;
	idle_copies = kept_facts(d, info);
	info->open = true;
	info->tables = (uint32_t) __atomic_load_n(&d->tables, __ATOMIC_RELAXED);
	if (cudaSetDevice(id) == cudaSuccess &&
		cudaMemGetInfo(&free_bytes, &total) == cudaSuccess)
	{
		pool_bytes(d, &held, &idle);
		info->free_memory = free_bytes + idle + idle_copies;
	}
	(void) cudaGetLastError();
}

/* HgjEngine.device_info; makes no context. */
HgjStatus session_device_info(int id, HgjDeviceInfo *info, HgjError *err)
{
	cudaDeviceProp prop;
	HgjError why = {HGJ_OK, ""};
	int driver = 0;
	int runtime = 0;

	if (info == nullptr)
		return fail(err, HGJ_INVALID, "device info is missing");
	memset(info, 0, sizeof(*info));
	if (id < 0 || id >= session_device_count())
		return fail(err, HGJ_NO_DEVICE, "there is no CUDA device of that number");
	if (cudaGetDeviceProperties(&prop, id) != cudaSuccess)
	{
		(void) cudaGetLastError();
		memset(&prop, 0, sizeof(prop));
		(void) snprintf(prop.name, sizeof(prop.name), "device %d", id);
	}
	(void) cudaDriverGetVersion(&driver);
	(void) cudaRuntimeGetVersion(&runtime);
	(void) cudaGetLastError();
	(void) snprintf(info->name, sizeof(info->name), "%.63s", prop.name);
	info->total_memory = prop.totalGlobalMem;
	info->units = (uint32_t) prop.multiProcessorCount;
	info->major = (uint32_t) prop.major;
	info->minor = (uint32_t) prop.minor;
	info->driver_version = (uint32_t) driver;
	info->runtime_version = (uint32_t) runtime;
	if (check_process(&why) != HGJ_OK)
		(void) snprintf(info->off, sizeof(info->off), "%.159s", why.message);
	else if (too_old(prop.major, prop.minor) != nullptr)
		(void) snprintf(info->off, sizeof(info->off), "%s",
						too_old(prop.major, prop.minor));
	live_info(id, info);
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
	uint64_t keep;

	if (!session_alive())
		return;
	kept_trim(device);
	keep = kept_room(device);
	(void) cudaMemPoolTrimTo(device->pool,
							 keep > IDLE_POOL_BYTES ? keep : IDLE_POOL_BYTES);
	(void) cudaGetLastError();
}

} // namespace hgj
