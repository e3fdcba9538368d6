/*-------------------------------------------------------------------------
 *
 * internal.h
 *	  What the files of the CUDA engine share on the host's side: devices,
 *	  buffers, the table, its graph, and probes.
 *
 * THE GRAPH.  As in the CPU engine, a vertex comes from a key's "code":
 * vertex = code >> shift.  Here a code is
 *
 *	  narrow	32 bits: a seeded bijection of (key - base), one word
 *	  wide		64 bits: a seeded bijection of the key, one word
 *	  multi		64 bits: the seeded hash of several words
 *	  row		key - base itself (direct tables): an entry is only a row
 *
 * So for one word, equal codes are equal keys, and the key can be had back.
 * For several words, an entry also says where its words are, and equal codes
 * are verified.  Entries of a vertex are sorted by code, in a static table:
 * what a key matches is one range of slots, which is found by a short walk or,
 * in long lists, by halving.  `walk` is set where this does not hold: in
 * dynamic tables, and where two keys of several words share a hash.
 *
 * MEMORY.  Device memory is a Buffer: it belongs to whoever holds the object,
 * is counted in its table's account, and goes back to the device's pool, in
 * stream order, when the object dies.  Pinned memory and streams come from the
 * device's free lists.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CUDA_INTERNAL_H
#define HGJ_CUDA_INTERNAL_H

#include <cuda_runtime.h>
#include <pthread.h>

#include "checks.h"
#include "hash.h"
#include "plan_rules.h"

namespace hgj
{

constexpr uint32_t ROW_EMPTY = 0xFFFFFFFFu;
constexpr uint32_t ROW_DELETED = 0xFFFFFFFEu;

/* Devices that are used of a host's. */
constexpr int MAX_DEVICES = 16;

/* Lists longer than this are not walked by one thread. */
constexpr uint32_t LONG_LIST = 32;

/* Unsorted lists up to this are sorted by a block, longer ones by CUB. */
constexpr uint32_t BLOCK_LIST = 4096;

/* Holds a mutex as long as it lives. */
class Lock
{
  public:
	explicit Lock(pthread_mutex_t *mutex) : mutex_(mutex)
	{
		(void) pthread_mutex_lock(mutex_);
	}
	~Lock()
	{
		(void) pthread_mutex_unlock(mutex_);
	}

  private:
	pthread_mutex_t *mutex_;
};

struct alignas(8) Entry32
{
	uint32_t code;
	uint32_t row;
};

struct alignas(16) Entry64
{
	uint64_t code;
	uint32_t row;
	uint32_t pos; /* multi: which words are its key */
};

/* From key words to codes; passed to kernels by value. */
struct Mix
{
	Layout layout;
	uint32_t nwords;
	bool direct; /* the code is key - base */
	uint32_t shift;
	uint64_t base;
	uint64_t range; /* largest key - base */
	uint32_t xor32, mul32a, mul32b;
	uint64_t xor64, mul64a, mul64b;
	HgjHash hash;
};

/*
 * Rows on the device, for a build or a probe.  One word: a column of 8 or 4
 * bytes.  Several: row after row, 8 bytes each.
 */
struct Rows
{
	const void *words;
	const uint32_t *rows; /* row ids, or NULL: first_row + index */
	const uint32_t *sel;  /* indexes into words, or NULL: all */
	uint64_t n;
	uint32_t first_row;
	uint32_t word_bytes;
	uint32_t nwords;
	uint32_t pos; /* multi: of the first row among all words */
};

/* What kernels know of a graph; passed by value. */
struct GraphView
{
	Mix mix;
	HgjSegments segments;
	bool unique; /* no code twice */
	uint64_t vertices;
	uint64_t width;
	const uint32_t *offsets;
	const uint64_t *slices;
	const void *entries;
	const uint64_t *words; /* multi */
};

struct Session;

/* One of the session's devices. */
struct Device
{
	int id;
	bool open;
	int sms;
	size_t l2_bytes;
	size_t block_shared; /* shared memory that a block may ask for */
	size_t sm_shared;
	uint64_t total_memory;
	int tables;
	cudaMemPool_t pool;
};

/* What a Buffer and a Pinned are: memory that belongs to the object. */
class Memory
{
  public:
	Memory() = default;
	Memory(const Memory &) = delete;
	Memory &operator=(const Memory &) = delete;

	template <class T>
	T *as() const
	{
		return static_cast<T *>(p_);
	}
	size_t bytes() const
	{
		return bytes_;
	}

  protected:
	void *p_ = nullptr;
	size_t bytes_ = 0;
};

/* Device memory of a table. */
class Buffer : public Memory
{
  public:
	~Buffer()
	{
		release();
	}

	/* Let go of what there was, and get that many bytes (0: none). */
	HgjStatus get(HgjTable *table, cudaStream_t stream, size_t bytes, HgjError *err);

	/* The same, but keep what is large enough. */
	HgjStatus reserve(HgjTable *table, cudaStream_t stream, size_t bytes, HgjError *err);
	void release();
	void swap(Buffer &other);

  private:
	HgjTable *table_ = nullptr;
	cudaStream_t stream_ = nullptr;
};

/* Pinned host memory. */
class Pinned : public Memory
{
  public:
	~Pinned()
	{
		release();
	}
	HgjStatus reserve(size_t bytes, HgjError *err);
	void release();
};

/* A stream, and an event to wait for it. */
struct Lane
{
	Device *device = nullptr;
	cudaStream_t stream = nullptr;
	cudaEvent_t event = nullptr;

	~Lane();
	HgjStatus open(Device *dev, HgjError *err);
};

/* An event of the device that tells times. */
struct Event
{
	const Device *device = nullptr;
	cudaEvent_t event = nullptr;

	~Event();
	HgjStatus open(const Device *dev, HgjError *err);
};

/*
 * Blocks of 256 threads for n items, each of which a thread goes through in steps of
 * the whole grid: no more than per_sm for each multiprocessor.
 */
inline int grid_of(const Lane &lane, uint64_t n, int per_sm = 32)
{
	uint64_t blocks = (n + 255) / 256;
	uint64_t most = (uint64_t) lane.device->sms * per_sm;

	return (int) (blocks < 1 ? 1 : blocks > most ? most : blocks);
}

/* Half of a pair of pinned buffers through which rows go to the device. */
struct Stage
{
	Pinned memory;
	cudaEvent_t event = nullptr;
	bool busy = false; /* a transfer from it may be under way */

	~Stage();
	HgjStatus open(size_t bytes, HgjError *err);
	HgjStatus wait(HgjError *err);
};

/* Two events around something that is measured. */
struct SpanEvents
{
	cudaEvent_t begin;
	cudaEvent_t end;
	bool kernel; /* or a transfer */
};

constexpr int MAX_SPANS = 64;

/* A table's measurements that have not been read, and events for others. */
struct Clock
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	SpanEvents spans[MAX_SPANS];
	SpanEvents spare[MAX_SPANS];
	int n = 0;
	int nspare = 0;

	~Clock();
};

/* Measures what is put into a lane's stream while it lives. */
class Span
{
  public:
	Span(HgjTable *table, const Lane &lane, bool kernel);
	Span(const Span &) = delete;
	Span &operator=(const Span &) = delete;
	~Span()
	{
		stop();
	}
	void stop();

  private:
	HgjTable *table_;
	const Lane &lane_;
	SpanEvents events_ = {};
	bool running_ = false;
};

/* Appended rows that are on the device. */
struct Chunk
{
	Chunk *next = nullptr;
	uint64_t n = 0;
	uint64_t cap = 0;
	Buffer words; /* cap * nwords */
	Buffer rows;  /* cap */
};

/* What a graph is, without its memory. */
struct GraphFacts
{
	Layout layout = LAYOUT_NARROW;
	HgjBuild build = HGJ_BUILD_AUTO;
	HgjSegments segments = HGJ_SEGMENTS_CSR;
	bool unique = false;
	bool walk = false;
	uint32_t slack = 0;
	uint32_t bins = 1;
	uint32_t notes = 0;
	uint64_t vertices = 0;
	uint64_t slots = 0;
	uint64_t width = 0;
	uint64_t rows = 0;
	uint64_t keys = 0; /* multi: rows in `words` */
	uint64_t longest = 0;
	Mix mix = {};
};

inline uint32_t layout_stride(Layout layout)
{
	return layout == LAYOUT_ROW ? 4 : layout == LAYOUT_NARROW ? 8 : 16;
}

struct Graph : GraphFacts
{
	Buffer offsets; /* vertices + 1 */
	Buffer slices;
	Buffer entries;
	Buffer words; /* multi */

	void swap(Graph &other);
	GraphView view() const;
	uint32_t stride() const
	{
		return layout_stride(layout);
	}
	uint64_t bytes() const
	{
		return offsets.bytes() + slices.bytes() + entries.bytes();
	}
};

/* What a build is going to do. */
struct Plan
{
	HgjBuild build; /* never AUTO */
	HgjSegments segments;
	Layout layout;
	bool direct;
	bool may_sort; /* where lists turn out too long for it */
	uint32_t slack;
	uint32_t notes;
	uint32_t vertex_bits;
	uint32_t shift;
	uint32_t bins;
	uint32_t bin_shift;
	uint64_t rows;
	uint64_t vertices;
	uint64_t base;
	uint64_t range;
	uint32_t stride;
};

/* The rows of a build: device arrays, in any number of parts. */
struct RowSet
{
	const Rows *parts;
	uint32_t nparts;
	uint64_t n;
};

} // namespace hgj

struct HgjTable
{
	HgjTableSpec spec;
	hgj::Device *device = nullptr;
	hgj::Lane lane;
	hgj::Clock clock;
	HgjDeviceWork work = {}; /* bytes are atomic, times are the clock's */
	hgj::Pinned scalars;     /* what kernels found out, read back */
	uint64_t current = 0;    /* atomic */
	uint64_t peak = 0;
	bool built = false;
	uint32_t rebuilds = 0;
	uint32_t total_rows = 0;

	/* appended: in chunks, and after these in the stage that is being filled */
	hgj::Chunk *first_chunk = nullptr;
	hgj::Chunk *last_chunk = nullptr;
	hgj::Stage stages[2];
	uint32_t stage = 0;
	uint32_t stage_cap = 0; /* rows */
	uint32_t staged = 0;
	uint64_t nrows = 0;
	int64_t min_key = INT64_MAX;
	int64_t max_key = INT64_MIN;
	uint64_t max_row = 0;

	hgj::Graph graph;
	hgj::Buffer bits;              /* match bits set by kernels */
	uint64_t *host_bits = nullptr; /* union of those and of mark()'s */
	size_t host_words = 0;
	bool bits_changed = false; /* since they were last fetched */

	~HgjTable();
};

namespace hgj
{

/* context.cu: errors, devices */
inline HgjStatus fail(HgjError *err, HgjStatus status, const char *message)
{
	return hgj_fail(err, status, message);
}
HgjStatus cuda_fail(HgjError *err, cudaError_t error, const char *doing);
HgjStatus device_lost(HgjError *err, const char *why);

/* Let a kernel have as much dynamic shared memory as a block may: what is said of a kernel
 * holds for all threads of the process, of which others launch it at the same time. */
HgjStatus allow_shared(const Device *device, const void *kernel, HgjError *err);

template <class... Arguments>
HgjStatus allow_shared(const Device *device, void (*kernel)(Arguments...), HgjError *err)
{
	return allow_shared(device, reinterpret_cast<const void *>(kernel), err);
}
bool session_alive();
HgjStatus session_usable(HgjError *err);
HgjStatus session_open(HgjError *err);
void session_close();
int session_device_count();
HgjStatus session_device(int id, Device **device, HgjError *err);
HgjStatus session_device_info(int id, HgjDeviceInfo *info, HgjError *err);
HgjStatus table_enter(const HgjTable *table, HgjError *err);
void device_trim(Device *device);

/* memory.cu */
HgjStatus pool_alloc(Device *device, void **p, size_t size, cudaStream_t stream,
					 HgjError *err);
void pool_bytes(const Device *device, uint64_t *held, uint64_t *idle);
void pool_grow(Device *device, uint64_t wanted_idle, cudaStream_t stream);

/* lanes.cu: streams, waiting, pinned memory, transfers, times */
void set_timeout(uint32_t timeout_ms);
void watch(const HgjWatch *by);
void pinned_forget();
void lanes_forget();
void lanes_make_ahead(Device *device);
void table_work(HgjTable *table, HgjDeviceWork *work);
HgjStatus to_device(HgjTable *table, const Lane &lane, void *to, const void *from,
					size_t bytes, HgjError *err);
HgjStatus from_device(HgjTable *table, const Lane &lane, void *to, const void *from,
					  size_t bytes, HgjError *err);
inline HgjStatus poll(const HgjTable *table, HgjError *err)
{
	return hgj_poll(&table->spec, err);
}
HgjStatus mark(const Lane &lane, HgjError *err);
HgjStatus wait_for_mark(const HgjTable *table, const Lane &lane, bool cancellable,
						HgjError *err);
HgjStatus wait_for_event(const HgjTable *table, cudaEvent_t event, bool cancellable,
						 HgjError *err);
HgjStatus wait(const HgjTable *table, const Lane &lane, bool cancellable, HgjError *err);
void settle(cudaStream_t stream);

/* append.cu */
HgjStatus table_append(HgjTable *table, const HgjKeys *keys, uint32_t first_row,
					   const uint32_t *row_ids, HgjError *err);
HgjStatus append_flush(HgjTable *table, HgjError *err);
void free_chunks(HgjTable *table);
uint64_t chunks_to_come(const HgjTable *table);
HgjStatus check_keys(const HgjTable *table, const HgjKeys *keys, HgjError *err);
HgjStatus check_rows(const HgjKeys *keys, uint32_t first_row, const uint32_t *row_ids,
					 uint64_t *max_row, HgjError *err);

/* keys.cu: keys of a call to the device */
struct KeyUpload
{
	Stage stages[2];
	Buffer words;
	Buffer ids;
	uint32_t stage_cap = 0;
};
HgjStatus upload_keys(HgjTable *table, const Lane &lane, KeyUpload *up,
					  const HgjKeys *keys, const uint32_t *row_ids, uint32_t first_row,
					  bool want_ids, Rows *rows, HgjError *err);
HgjStatus device_key_range(HgjTable *table, const Lane &lane, const Rows &rows,
						   int64_t *min_key, int64_t *max_key, uint32_t *max_row,
						   HgjError *err);
HgjStatus copy_rows(const Lane &lane, const Rows &from, uint64_t *words, uint32_t *ids,
					HgjError *err);
HgjStatus fill_row_ids(const Lane &lane, uint32_t *ids, uint32_t first_row, uint64_t n,
					   HgjError *err);

/* plan.cu */
void plan_build(const HgjTable *table, uint64_t rows, int64_t min_key, int64_t max_key,
				Plan *plan);
Mix plan_mix(const HgjTableSpec *spec, const Plan &plan);
uint64_t plan_peak(const HgjTable *table);
uint64_t sort_temp_bytes(uint64_t rows, Layout layout);
uint64_t scan_temp_bytes(uint64_t n);
uint32_t probe_bin_bits(const HgjTable *table);
bool probe_should_bin(const HgjTable *table, uint64_t rows);

/* build.cu, build_sort.cu */
HgjStatus table_build(HgjTable *table, uint32_t total_rows, HgjError *err);
HgjStatus build_graph(HgjTable *table, const RowSet &rows, const Plan &plan, Graph *graph,
					  HgjError *err);
struct BuildStats
{
	uint32_t longest;
	uint32_t duplicates; /* a code stands twice, or may */
	uint32_t collision;  /* two keys of several words share a hash */
	uint32_t long_lists; /* unsorted ones, up to BLOCK_LIST entries */
	uint32_t huge_lists; /* unsorted ones beyond */
};
HgjStatus build_by_sort(HgjTable *table, const RowSet &rows, const Plan &plan,
						Graph *graph, bool whole_code, BuildStats *stats, HgjError *err);
HgjStatus scan_offsets(HgjTable *table, uint32_t *counts, uint64_t n, bool inclusive,
					   HgjError *err);

/* bin.cu: partitioning rows by the high bits of their codes */
struct Binning
{
	Buffer starts; /* bins + 1, bins cursors, those of coarse bins, the largest */
	Buffer coarse; /* entries after the first of two passes */
	Buffer entries;
	uint32_t bins = 0;
	uint32_t shift = 0;
	uint32_t sub_bits = 0; /* two passes: fine bins of a coarse one */
};
HgjStatus bin_count(HgjTable *table, const Lane &lane, const RowSet &rows, const Mix &mix,
					Binning *b, HgjError *err);
HgjStatus bin_scatter(HgjTable *table, const Lane &lane, const RowSet &rows,
					  const Mix &mix, Binning *b, HgjError *err);
uint32_t *bin_largest(const Binning &b);
uint32_t *bin_total(const Binning &b);
uint32_t most_bin_bits(const Device *device);

/* finish.cu */
HgjStatus bin_finish(HgjTable *table, const Plan &plan, Binning *bins, uint32_t largest,
					 Graph *graph, BuildStats *stats, uint32_t *long_lists,
					 HgjError *err);

/* segments.cu: from tight CSR to the other storages, and to slack */
HgjStatus arrange_segments(HgjTable *table, const Plan &plan, Graph *graph,
						   HgjError *err);

/* probe.cu */
HgjStatus probe_create(HgjTable *table, HgjProbe **probe, HgjError *err);
void probe_destroy(HgjProbe *probe);
HgjStatus probe_begin(HgjProbe *probe, const HgjKeys *keys, HgjProbeMode mode,
					  uint32_t flags, HgjError *err);
HgjStatus probe_begin_rows(HgjProbe *probe, const Rows &rows, HgjProbeMode mode,
						   uint32_t flags, HgjError *err);
HgjStatus probe_next(HgjProbe *probe, HgjMatches *matches, HgjError *err);
uint32_t probe_batch_rows(const HgjTable *table);

HgjTable *probe_table(HgjProbe *probe);

/* faults.cu, in test builds */
void install_faults(HgjEngine *engine);

/* marks.cu */
HgjStatus marks_alloc(HgjTable *table, uint32_t total_rows, HgjError *err);
HgjStatus marks_grow(HgjTable *table, uint32_t total_rows, HgjError *err);
HgjStatus table_mark(HgjTable *table, const uint32_t *rows, uint32_t n, HgjError *err);
bool table_is_marked(const HgjTable *table, uint32_t row);
HgjStatus table_unmatched(const HgjTable *table, uint32_t *cursor, uint32_t *rows,
						  uint32_t capacity, uint32_t *n, HgjError *err);
HgjStatus table_clear_marks(HgjTable *table, HgjError *err);

/* dynamic.cu */
HgjStatus table_insert(HgjTable *table, const HgjKeys *keys, uint32_t first_row,
					   const uint32_t *row_ids, HgjError *err);
HgjStatus table_remove(HgjTable *table, const HgjKeys *keys, const uint32_t *row_ids,
					   uint64_t *removed, HgjError *err);
HgjStatus table_rebuild(HgjTable *table, HgjError *err);

/* pipeline.cu */
const HgjPipelineMethods *pipeline_methods();

/* kept.cu: copies of the caller's memory, for pipelines */
void kept_memory(const HgjKeptMemory *memory);
bool kept_evict(Device *device, uint64_t bytes);
bool kept_give_back();
void kept_forget();
void kept_trim(Device *device);
uint64_t kept_room(Device *device);
void registered_end();
uint64_t kept_facts(const Device *device, HgjDeviceInfo *info);
HgjStatus kept_bytes(const HgjPipelineCaller *caller, const uint64_t *ids, uint64_t n,
					 uint64_t *bytes, HgjError *err);

/* prewarm.cu */
HgjStatus kept_prewarm(const HgjKeptArray *arrays, uint32_t n, uint32_t *done,
					   HgjError *err);
uint64_t kept_sweep(uint64_t first, uint64_t last, const uint64_t *live, uint64_t n);

} // namespace hgj

/* Give up the calling function where CUDA, or one of ours, says no. */
#define HGJ_CUDA(call)                                                                   \
	do                                                                                   \
	{                                                                                    \
		cudaError_t cuda_error_ = (call);                                                \
		if (cuda_error_ != cudaSuccess)                                                  \
			return hgj::cuda_fail(err, cuda_error_, #call);                              \
	} while (0)

#define HGJ_TRY(call)                                                                    \
	do                                                                                   \
	{                                                                                    \
		HgjStatus status_ = (call);                                                      \
		if (status_ != HGJ_OK)                                                           \
			return status_;                                                              \
	} while (0)

#endif /* HGJ_CUDA_INTERNAL_H */
