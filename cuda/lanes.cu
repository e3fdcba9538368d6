/*-------------------------------------------------------------------------
 *
 * lanes.cu
 *	  Streams, waiting for the device, pinned memory, and the clock.
 *
 * 1. To wait is to ask an event again and again, so that poll can be asked too,
 *	  and so that a device that never answers is noticed: past the table's
 *	  timeout it counts as lost (context.cu, step 3).  Where the caller watches the device
 *	  for several sessions (HgjWatch), it is lost when nobody's wait has ended for as long as
 *	  the watch says: CUDA does not tell whether a stream's work has begun, or stands
 *	  behind another one's kernel, but as long as some work ends the device is not lost.  A
 *	  wait counts as ended by the device only if the event had not come when it began.
 * 2. A call that is cancelled still waits for its kernels: they write to what
 *	  the caller is about to free.
 * 3. Pinned blocks go to a free list when released, up to a bound, since
 *	  getting one takes the driver milliseconds.  So do streams with their events, and
 *	  events that tell times: a pipeline has a dozen of them, and the driver makes one at
 *	  a time, for all threads.
 * 4. Where a table wants to know times (HGJ_TABLE_TIMING), a Span puts one event
 *	  before and one after what it measures.  Their distance is asked for later,
 *	  when both have long passed, so that nothing waits for a measurement.
 * 5. What has been given back to a device's pool in a stream (memory.cu) is for others
 *	  once the driver has been asked to wait for that stream, which takes 3 us where it has
 *	  nothing to do: an event's having come is not enough.
 *
 * Lanes, events, stages and pinned memory belong to whoever holds them.  A mutex guards
 * each free list, and one each table's clock.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "stage.h"

namespace hgj
{

constexpr int MAX_FREE_BLOCKS = 128;
constexpr size_t MAX_FREE_BYTES = (size_t) 256 << 20;
constexpr size_t MIN_BLOCK = 65536;

/* Step 3: what a few pipelines with all of their tables have. */
constexpr int AHEAD_LANES = 48;
constexpr int AHEAD_EVENTS = 96;
constexpr int AHEAD_BLOCKS = 48;
constexpr int AHEAD_STAGES = 2;

/* While waiting: when to stop spinning, and how often to ask poll. */
constexpr int64_t SPIN_US = 5000;
constexpr int64_t POLL_US = 1000;

struct Block
{
	void *p;
	size_t bytes;
};

struct FreeBlocks
{
	pthread_mutex_t mutex;
	Block blocks[MAX_FREE_BLOCKS];
	int n;
	size_t bytes;
};

static FreeBlocks free_blocks = {PTHREAD_MUTEX_INITIALIZER, {}, 0, 0};

/* Step 3: streams and events of each device that nobody uses now. */
constexpr int MAX_FREE_LANES = 256;
constexpr int MAX_FREE_EVENTS = 512;

struct FreeLane
{
	const Device *device;
	cudaStream_t stream; /* nullptr: an event alone */
	cudaEvent_t event;
};

template <int MOST>
struct FreeLanes
{
	pthread_mutex_t mutex;
	FreeLane lanes[MOST];
	int n;

	/* False: there is no room. */
	bool keep(const FreeLane &lane)
	{
		Lock lock(&mutex);

		if (n == MOST)
			return false;
		lanes[n++] = lane;
		return true;
	}

	/* False: there is none of the device. */
	bool take(const Device *device, FreeLane *lane)
	{
		Lock lock(&mutex);

		for (int i = n - 1; i >= 0; i--)
			if (lanes[i].device == device)
			{
				*lane = lanes[i];
				lanes[i] = lanes[--n];
				return true;
			}
		return false;
	}

	void forget()
	{
		Lock lock(&mutex);

		n = 0;
	}
};

static FreeLanes<MAX_FREE_LANES> free_lanes = {PTHREAD_MUTEX_INITIALIZER, {}, 0};
static FreeLanes<MAX_FREE_EVENTS> free_events = {PTHREAD_MUTEX_INITIALIZER, {}, 0};

/* Of the last table that was created: what has no table at hand waits as long. */
static uint32_t last_timeout_ms = 0;

/* Step 1: who watches, or nullptr; and when a wait has ended last, by now_us(). */
static const HgjWatch *watching = nullptr;
static int64_t answered_us = 0;

void set_timeout(uint32_t timeout_ms)
{
	__atomic_store_n(&last_timeout_ms, timeout_ms, __ATOMIC_RELAXED);
}

/* HgjEngine.watch */
void watch(const HgjWatch *by)
{
	watching = by;
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

/* Step 1: a wait has ended. */
static void device_answers()
{
	if (watching == nullptr)
		return;
	__atomic_store_n(&answered_us, now_us(), __ATOMIC_RELAXED);
	watching->answered();
}

/*
 * Step 1: in milliseconds, for how long the device has been silent too long for a wait that
 * has begun then; 0: it has not.
 */
static int64_t silent_too_long(const HgjTable *table, int64_t start, int64_t now)
{
	int64_t since = start;
	int64_t limit;

	if (watching != nullptr)
	{
		limit = __atomic_load_n(watching->limit_ms, __ATOMIC_RELAXED);
		since = std::max(start, __atomic_load_n(&answered_us, __ATOMIC_RELAXED));
	}
	else
		limit = table != nullptr ? table->spec.timeout_ms
								 : __atomic_load_n(&last_timeout_ms, __ATOMIC_RELAXED);
	return limit > 0 && now - since > limit * 1000 ? limit : 0;
}

/*
 * Steps 1 and 2: until the event has come.  Most waits are short, so it spins for
 * a while before it sleeps between looks.  `table` may be NULL: nobody to poll.
 */
static HgjStatus await(cudaEvent_t event, const HgjTable *table, bool cancellable,
					   HgjError *err)
{
	int64_t start = now_us();
	int64_t polled = start;
	int64_t silent;
	bool cancelled = false;
	bool waited = false;
	char message[96];

	for (;;)
	{
		cudaError_t state = cudaEventQuery(event);
		int64_t now;

		if (state == cudaSuccess && waited)
			device_answers();
		if (state == cudaSuccess)
			return cancelled ? fail(err, HGJ_CANCELLED, "cancelled") : HGJ_OK;
		if (state != cudaErrorNotReady)
			return cuda_fail(err, state, "waiting for the device");
		waited = true;
		now = now_us();
		if (now - start > SPIN_US)
			(void) usleep(50);
		silent = silent_too_long(table, start, now);
		if (silent > 0)
		{
			(void) snprintf(message, sizeof(message),
							"the device has not answered for %lld ms",
							(long long) silent);
			return device_lost(err, message);
		}
		if (cancellable && !cancelled && now - polled > POLL_US)
		{
			polled = now;
			cancelled = poll(table, nullptr) != HGJ_OK;
		}
	}
}

/* Until all that was put into the lane's stream before the mark is done. */
HgjStatus wait_for_mark(const HgjTable *table, const Lane &lane, bool cancellable,
						HgjError *err)
{
	return await(lane.event, table, cancellable, err);
}

/* Until an event of the table's device has come. */
HgjStatus wait_for_event(const HgjTable *table, cudaEvent_t event, bool cancellable,
						 HgjError *err)
{
	return await(event, table, cancellable, err);
}

/* Step 5, when the stream has nothing else to do. */
void settle(cudaStream_t stream)
{
	if (cudaStreamSynchronize(stream) != cudaSuccess)
		(void) cudaGetLastError(); /* whoever comes next is told */
}

/* The same for all that is in the stream now. */
HgjStatus wait(const HgjTable *table, const Lane &lane, bool cancellable, HgjError *err)
{
	HGJ_TRY(mark(lane, err));
	HGJ_TRY(wait_for_mark(table, lane, cancellable, err));
	settle(lane.stream);
	return HGJ_OK;
}

/* Step 3: it is kept once its stream has nothing to do. */
Lane::~Lane()
{
	if (device == nullptr || !session_alive())
		return;
	if (stream != nullptr && event != nullptr && mark(*this, nullptr) == HGJ_OK)
	{
		if (await(event, nullptr, false, nullptr) != HGJ_OK)
			return;
		settle(stream);
		if (free_lanes.keep(FreeLane{device, stream, event}))
			return;
	}
	if (stream != nullptr)
		(void) cudaStreamDestroy(stream);
	if (event != nullptr)
		(void) cudaEventDestroy(event);
	(void) cudaGetLastError();
}

HgjStatus Lane::open(Device *dev, HgjError *err)
{
	FreeLane lane;

	device = dev;
	if (free_lanes.take(dev, &lane))
	{
		stream = lane.stream;
		event = lane.event;
		return HGJ_OK;
	}
	HGJ_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	HGJ_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	return HGJ_OK;
}

HgjStatus Event::open(const Device *dev, HgjError *err)
{
	FreeLane lane;

	device = dev;
	if (free_events.take(dev, &lane))
		event = lane.event;
	else
		HGJ_CUDA(cudaEventCreate(&event));
	return HGJ_OK;
}

Event::~Event()
{
	if (event == nullptr || !session_alive() ||
		free_events.keep(FreeLane{device, nullptr, event}))
		return;
	(void) cudaEventDestroy(event);
}

/*
 * Step 3, ahead of the first queries, which would make what one pipeline after the other
 * needs.
 */
void lanes_make_ahead(Device *device)
{
	Lane lanes[AHEAD_LANES];
	Event events[AHEAD_EVENTS];
	Pinned blocks[AHEAD_BLOCKS];
	Pinned stages[AHEAD_STAGES];
	bool made = true;

	for (int i = 0; i < AHEAD_LANES; i++)
		made = made && lanes[i].open(device, nullptr) == HGJ_OK;
	for (int i = 0; i < AHEAD_EVENTS; i++)
		made = made && events[i].open(device, nullptr) == HGJ_OK;
	for (int i = 0; i < AHEAD_BLOCKS; i++)
		made = made && blocks[i].reserve(MIN_BLOCK, nullptr) == HGJ_OK;
	for (int i = 0; i < AHEAD_STAGES; i++)
		made = made && stages[i].reserve(STAGE_BYTES, nullptr) == HGJ_OK;
}

/* The contexts go, and with them all of these. */
void lanes_forget()
{
	free_lanes.forget();
	free_events.forget();
}

Stage::~Stage()
{
	if (event == nullptr || !session_alive() || wait(nullptr) != HGJ_OK)
		return;
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
		HGJ_TRY(await(event, nullptr, false, err));
	busy = false;
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
		Lock lock(&free_blocks.mutex);

		for (int i = 0; i < free_blocks.n; i++)
			if (free_blocks.blocks[i].bytes == size)
				best = i;
		if (best >= 0)
		{
			p_ = free_blocks.blocks[best].p;
			bytes_ = size;
			free_blocks.blocks[best] = free_blocks.blocks[--free_blocks.n];
			free_blocks.bytes -= size;
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
	if (session_alive()) /* else a transfer may still be using it */
	{
		Lock lock(&free_blocks.mutex);

		if (free_blocks.n < MAX_FREE_BLOCKS &&
			free_blocks.bytes + bytes_ <= MAX_FREE_BYTES)
		{
			free_blocks.blocks[free_blocks.n].p = p_;
			free_blocks.blocks[free_blocks.n++].bytes = bytes_;
			free_blocks.bytes += bytes_;
		}
		else
			(void) cudaFreeHost(p_);
	}
	p_ = nullptr;
	bytes_ = 0;
}

/* The free list goes with the context. */
void pinned_forget()
{
	Lock lock(&free_blocks.mutex);

	for (int i = 0; i < free_blocks.n; i++)
		(void) cudaFreeHost(free_blocks.blocks[i].p);
	(void) cudaGetLastError();
	free_blocks.n = 0;
	free_blocks.bytes = 0;
}

/* Step 4: what the first n spans have measured, added to the table's account. */
static void read_spans(Clock *clock, HgjDeviceWork *work, int n)
{
	int kept = 0;

	for (int i = 0; i < clock->n; i++)
	{
		SpanEvents span = clock->spans[i];
		float ms = 0;

		if (i < n && cudaEventElapsedTime(&ms, span.begin, span.end) == cudaSuccess)
		{
			uint64_t ns = (uint64_t) ((double) ms * 1e6);

			*(span.kernel ? &work->kernel_ns : &work->transfer_ns) += ns;
			clock->spare[clock->nspare++] = span;
		}
		else
			clock->spans[kept++] = span; /* it has not passed yet */
	}
	clock->n = kept;
	(void) cudaGetLastError();
}

/* Room for one more span, or no measurement. */
static bool take_span(Clock *clock, HgjDeviceWork *work, SpanEvents *span)
{
	if (clock->n == MAX_SPANS)
		read_spans(clock, work, MAX_SPANS);
	if (clock->n == MAX_SPANS)
		return false;
	if (clock->nspare > 0)
	{
		*span = clock->spare[--clock->nspare];
		return true;
	}
	if (cudaEventCreate(&span->begin) != cudaSuccess)
		return false;
	if (cudaEventCreate(&span->end) == cudaSuccess)
		return true;
	(void) cudaEventDestroy(span->begin);
	return false;
}

Span::Span(HgjTable *table, const Lane &lane, bool kernel) : table_(table), lane_(lane)
{
	if (!(table->spec.flags & HGJ_TABLE_TIMING))
		return;

	Lock lock(&table->clock.mutex);

	if (!take_span(&table->clock, &table->work, &events_) ||
		cudaEventRecord(events_.begin, lane.stream) != cudaSuccess)
	{
		(void) cudaGetLastError();
		return;
	}
	events_.kernel = kernel;
	running_ = true;
}

void Span::stop()
{
	if (!running_)
		return;
	running_ = false;

	Lock lock(&table_->clock.mutex);

	if (table_->clock.n < MAX_SPANS &&
		cudaEventRecord(events_.end, lane_.stream) == cudaSuccess)
		table_->clock.spans[table_->clock.n++] = events_;
	else if (table_->clock.nspare < MAX_SPANS)
		table_->clock.spare[table_->clock.nspare++] = events_;
	(void) cudaGetLastError();
}

/* What the table has had the device do up to now. */
void table_work(HgjTable *table, HgjDeviceWork *work)
{
	Lock lock(&table->clock.mutex);

	if (session_alive())
		read_spans(&table->clock, &table->work, table->clock.n);
	work->kernel_ns = table->work.kernel_ns;
	work->transfer_ns = table->work.transfer_ns;
	work->to_device = __atomic_load_n(&table->work.to_device, __ATOMIC_RELAXED);
	work->from_device = __atomic_load_n(&table->work.from_device, __ATOMIC_RELAXED);
}

Clock::~Clock()
{
	if (!session_alive())
		return;
	for (int i = 0; i < n; i++)
	{
		(void) cudaEventDestroy(spans[i].begin);
		(void) cudaEventDestroy(spans[i].end);
	}
	for (int i = 0; i < nspare; i++)
	{
		(void) cudaEventDestroy(spare[i].begin);
		(void) cudaEventDestroy(spare[i].end);
	}
	(void) cudaGetLastError();
}

/* Host memory to the device, in stream order, counted and timed. */
HgjStatus to_device(HgjTable *table, const Lane &lane, void *to, const void *from,
					size_t bytes, HgjError *err)
{
	Span span(table, lane, false);

	HGJ_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, lane.stream));
	(void) __atomic_add_fetch(&table->work.to_device, bytes, __ATOMIC_RELAXED);
	return HGJ_OK;
}

/* The other way; the bytes are there once the lane has been waited for. */
HgjStatus from_device(HgjTable *table, const Lane &lane, void *to, const void *from,
					  size_t bytes, HgjError *err)
{
	Span span(table, lane, false);

	HGJ_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, lane.stream));
	(void) __atomic_add_fetch(&table->work.from_device, bytes, __ATOMIC_RELAXED);
	return HGJ_OK;
}

} // namespace hgj
