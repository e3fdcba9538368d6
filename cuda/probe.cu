/*-------------------------------------------------------------------------
 *
 * probe.cu
 *	  Probes: batches of keys in, bounded portions of matches out.
 *
 * 1. probe_begin sends host keys to the device (keys.cu), without waiting.
 * 2. The first probe_next binns the rows if that pays, and tries to write all
 *	  pairs at once (emit_pairs).  They mostly fit: a host caller's go to a device
 *	  buffer of twice the batch, and from there, all together, to pinned memory,
 *	  from which portions of the caller's size are then handed out.
 * 3. Where pairs do not fit, where lists are very long, or not sorted, the
 *	  number of every row's pairs is counted and summed up first; portions are
 *	  then windows of that sequence, of whatever size there is room for, and
 *	  any of them can be written at any time (again, if a call is cancelled).
 * 4. Nothing is allocated in the steady state: a probe keeps its buffers.
 *
 * A probe belongs to the caller from create to destroy, its buffers to it.
 * No locks.
 *
 *-------------------------------------------------------------------------
 */
#include <cub/device/device_scan.cuh>
#include <cuda/std/functional>
#include <new>
#include <string.h>

#include "internal.h"
#include "probe_kernels.cuh"

using namespace hgj;

namespace hgj
{

/* A host caller's pairs on the device, at once. */
constexpr uint64_t LEAST_PAIRS = 1 << 10;
constexpr uint64_t MIN_PAIRS = 1 << 16;
constexpr uint64_t MAX_PAIRS = 1 << 22;

/* Longer lists are nothing for one warp. */
constexpr uint64_t MAX_EMIT_LIST = 4096;

enum ProbeState
{
	PROBE_FRESH,
	PROBE_WINDOWS, /* summed up; window `next` is to be written */
	PROBE_END
};

} // namespace hgj

struct HgjProbe
{
	HgjTable *table = nullptr;
	Lane lane;
	KeyUpload up;
	Binning bins;
	Rows rows;
	HgjProbeMode mode = HGJ_MATCH_ALL;
	uint32_t flags = 0;
	uint32_t nrows = 0;
	bool begun = false;
	ProbeState state = PROBE_END;
	uint64_t total = 0;
	uint64_t next = 0;

	Buffer pairs; /* probe rows, then build rows */
	Buffer cursor;
	Buffer starts;
	Buffer counts;
	Buffer sums;
	Buffer temp;
	Pinned scalars;
	Pinned host_pairs; /* the same as `pairs` */
	uint64_t host_cap = 0;
	uint64_t held = 0;
	uint64_t handed = 0;
};

namespace hgj
{

/* HgjEngine.probe_create */
HgjStatus probe_create(HgjTable *table, HgjProbe **probe, HgjError *err)
{
	HgjProbe *p;
	HgjStatus status;

	*probe = nullptr;
	if (!table->built)
		return fail(err, HGJ_INVALID, "probe before build");
	HGJ_TRY(table_enter(table, err));
	p = new (std::nothrow) HgjProbe;
	if (p == nullptr)
		return fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	p->table = table;
	status = p->lane.open(table->device, err);
	if (status == HGJ_OK)
		status = p->cursor.get(table, p->lane.stream, sizeof(uint64_t), err);
	if (status == HGJ_OK)
		status = p->scalars.reserve(sizeof(uint64_t), err);
	if (status != HGJ_OK)
	{
		delete p;
		return status;
	}
	*probe = p;
	return HGJ_OK;
}

/* HgjEngine.probe_destroy; before the table's. */
void probe_destroy(HgjProbe *probe)
{
	if (probe == nullptr)
		return;
	(void) table_enter(probe->table, nullptr);
	delete probe;
}

HgjTable *probe_table(HgjProbe *probe)
{
	return probe->table;
}

static void probe_start(HgjProbe *probe, uint32_t nrows, HgjProbeMode mode,
						uint32_t flags)
{
	probe->mode = mode;
	probe->flags = flags;
	probe->nrows = nrows;
	probe->state =
		probe->rows.n == 0 && mode != HGJ_MATCH_COUNT ? PROBE_END : PROBE_FRESH;
	probe->next = probe->total = probe->held = probe->handed = 0;
	probe->begun = true;
}

/* HgjEngine.probe_begin */
HgjStatus probe_begin(HgjProbe *probe, const HgjKeys *keys, HgjProbeMode mode,
					  uint32_t flags, HgjError *err)
{
	HgjTable *t = probe->table;

	probe->begun = false;
	HGJ_TRY(table_enter(t, err));
	HGJ_TRY(check_keys(t, keys, err));
	if ((unsigned int) mode > HGJ_MATCH_COUNT)
		return fail(err, HGJ_INVALID, "no such probe mode");
	if ((flags & HGJ_PROBE_MARK) && t->host_bits == nullptr)
		return fail(err, HGJ_INVALID, "the table keeps no match bits");
	if (t->graph.rows > 0)
		HGJ_TRY(upload_keys(t, probe->lane, &probe->up, keys, nullptr, 0, true,
							&probe->rows, err));
	else
		probe->rows.n = 0; /* nothing to be found */
	probe_start(probe, keys->nrows, mode, flags);
	return HGJ_OK;
}

/* The same for keys that are on the device in whatever form kernels take. */
HgjStatus probe_begin_rows(HgjProbe *probe, const Rows &rows, HgjProbeMode mode,
						   uint32_t flags, HgjError *err)
{
	HGJ_TRY(table_enter(probe->table, err));
	probe->rows = rows;
	probe_start(probe, (uint32_t) rows.n, mode, flags);
	return HGJ_OK;
}

static ProbeJob job_of(const HgjProbe *p, const void *binned)
{
	ProbeJob job;

	job.graph = p->table->graph.view();
	job.rows = p->rows;
	job.binned = binned;
	job.nbinned = nullptr;
	job.n = p->rows.n;
	job.mode = p->mode;
	job.bits = p->flags & HGJ_PROBE_MARK ? p->table->bits.as<uint32_t>() : nullptr;
	return job;
}

static unsigned int tiles(uint64_t n)
{
	return (unsigned int) ((n + PROBE_TILE - 1) / PROBE_TILE);
}

/* Bin the rows; *job then looks up those that a match can be found for. */
static HgjStatus bin_rows(HgjProbe *p, ProbeJob *job, HgjError *err)
{
	HgjTable *t = p->table;
	const Graph &g = t->graph;
	uint32_t vertex_bits = hgj_log2_ceil(g.vertices);
	uint32_t bits = probe_bin_bits(t);
	RowSet set = {&p->rows, 1, p->rows.n};

	p->bins.bins = 1u << bits;
	p->bins.shift = g.mix.shift + vertex_bits - bits;
	HGJ_TRY(bin_count(t, p->lane, set, g.mix, &p->bins, err));
	HGJ_TRY(bin_scatter(t, p->lane, set, g.mix, &p->bins, err));
	job->binned = p->bins.entries.as<void>();
	job->nbinned = bin_total(p->bins);
	return HGJ_OK;
}

/* Does without bins where there is no memory for them. */
static HgjStatus maybe_bin(HgjProbe *p, ProbeJob *job, HgjError *err)
{
	HgjStatus status;

	if (!probe_should_bin(p->table, p->rows.n))
		return HGJ_OK;
	status = bin_rows(p, job, err);
	return status == HGJ_LIMIT || status == HGJ_OUT_OF_MEMORY ? HGJ_OK : status;
}

template <class T>
static HgjStatus launch_emit(const Lane &lane, const ProbeJob &job, const PairOut &out,
							 HgjError *err)
{
	if (job.n == 0)
		return HGJ_OK;
	if constexpr (T::layout != LAYOUT_ROW)
		if (job.binned != nullptr)
			emit_pairs<T, true>
				<<<tiles(job.n), PROBE_THREADS, 0, lane.stream>>>(job, out);
	if (job.binned == nullptr)
		emit_pairs<T, false><<<tiles(job.n), PROBE_THREADS, 0, lane.stream>>>(job, out);
	HGJ_CUDA(cudaGetLastError());
	return HGJ_OK;
}

template <class T>
static HgjStatus launch_ranges(const Lane &lane, const ProbeJob &job, uint64_t *starts,
							   uint32_t *counts, HgjError *err)
{
	if (job.n == 0)
		return HGJ_OK;
	if constexpr (T::layout != LAYOUT_ROW)
		if (job.binned != nullptr)
			find_ranges<T, true>
				<<<tiles(job.n), PROBE_THREADS, 0, lane.stream>>>(job, starts, counts);
	if (job.binned == nullptr)
		find_ranges<T, false>
			<<<tiles(job.n), PROBE_THREADS, 0, lane.stream>>>(job, starts, counts);
	HGJ_CUDA(cudaGetLastError());
	return HGJ_OK;
}

template <class T>
static HgjStatus launch_walk(const Lane &lane, const ProbeJob &job, bool dynamic,
							 uint32_t *counts, const uint64_t *sums, const PairOut &out,
							 uint64_t lo, uint64_t hi, HgjError *err)
{
	unsigned int blocks =
		(unsigned int) ((job.n + PROBE_THREADS / 32 - 1) / (PROBE_THREADS / 32));

	if (job.n == 0)
		return HGJ_OK;
	if constexpr (T::layout != LAYOUT_ROW)
		walk_rows<T><<<blocks, PROBE_THREADS, 0, lane.stream>>>(job, dynamic, counts,
																sums, out, lo, hi);
	HGJ_CUDA(cudaGetLastError());
	return HGJ_OK;
}

/* Call one of the above for the graph's layout. */
#define FOR_LAYOUT(layout, launch, ...)                                                  \
	((layout) == LAYOUT_ROW      ? launch<RowTraits>(__VA_ARGS__)                        \
	 : (layout) == LAYOUT_NARROW ? launch<NarrowTraits>(__VA_ARGS__)                     \
	 : (layout) == LAYOUT_WIDE   ? launch<WideTraits>(__VA_ARGS__)                       \
								 : launch<MultiTraits>(__VA_ARGS__))

/* Step 2: true if all pairs were written; p->total says how many there are. */
static HgjStatus emit_all(HgjProbe *p, PairOut out, bool *written, HgjError *err)
{
	HgjTable *t = p->table;
	const Graph &g = t->graph;
	uint64_t *total = p->scalars.as<uint64_t>();
	ProbeJob job = job_of(p, nullptr);

	*written = false;
	if (g.walk || g.slots > UINT32_MAX ||
		(g.longest > MAX_EMIT_LIST && p->mode == HGJ_MATCH_ALL))
		return HGJ_OK;

	Span span(t, p->lane, true);

	HGJ_TRY(maybe_bin(p, &job, err));
	out.cursor = p->cursor.as<unsigned long long>();
	HGJ_CUDA(cudaMemsetAsync(out.cursor, 0, sizeof(uint64_t), p->lane.stream));
	HGJ_TRY(FOR_LAYOUT(g.layout, launch_emit, p->lane, job, out, err));
	span.stop();
	HGJ_CUDA(cudaMemcpyAsync(total, out.cursor, sizeof(*total), cudaMemcpyDeviceToHost,
							 p->lane.stream));
	if (job.bits != nullptr)
		t->bits_changed = true;
	HGJ_TRY(wait(t, p->lane, true, err));
	p->total = *total;
	*written = *total <= out.capacity;
	return HGJ_OK;
}

/* Step 3: how many pairs every row has, and the sums. */
static HgjStatus sum_up(HgjProbe *p, HgjError *err)
{
	HgjTable *t = p->table;
	const Graph &g = t->graph;
	const Lane &lane = p->lane;
	uint64_t n = p->rows.n;
	uint64_t *total = p->scalars.as<uint64_t>();
	ProbeJob job = job_of(p, nullptr);
	PairOut none = {};
	size_t bytes = 0;
	Span span(t, lane, true);

	job.bits = nullptr; /* marks come with the pairs */
	HGJ_TRY(p->counts.reserve(t, lane.stream, (n + 1) * sizeof(uint32_t), err));
	HGJ_TRY(p->sums.reserve(t, lane.stream, (n + 1) * sizeof(uint64_t), err));
	HGJ_CUDA(
		cudaMemsetAsync(p->counts.as<uint32_t>() + n, 0, sizeof(uint32_t), lane.stream));
	if (g.walk)
		HGJ_TRY(FOR_LAYOUT(g.layout, launch_walk, lane, job, g.slack > 0,
						   p->counts.as<uint32_t>(), nullptr, none, 0, 0, err));
	else
	{
		HGJ_TRY(p->starts.reserve(t, lane.stream, n * sizeof(uint64_t), err));
		HGJ_TRY(FOR_LAYOUT(g.layout, launch_ranges, lane, job, p->starts.as<uint64_t>(),
						   p->counts.as<uint32_t>(), err));
	}
	HGJ_CUDA(cub::DeviceScan::ExclusiveScan(
		nullptr, bytes, p->counts.as<uint32_t>(), p->sums.as<uint64_t>(),
		cuda::std::plus<uint64_t>{}, uint64_t{0}, n + 1, lane.stream));
	HGJ_TRY(p->temp.reserve(t, lane.stream, bytes, err));
	HGJ_CUDA(cub::DeviceScan::ExclusiveScan(
		p->temp.as<void>(), bytes, p->counts.as<uint32_t>(), p->sums.as<uint64_t>(),
		cuda::std::plus<uint64_t>{}, uint64_t{0}, n + 1, lane.stream));
	span.stop();
	HGJ_CUDA(cudaMemcpyAsync(total, p->sums.as<uint64_t>() + n, sizeof(*total),
							 cudaMemcpyDeviceToHost, lane.stream));
	HGJ_TRY(wait(t, lane, true, err));
	p->total = *total;
	p->next = 0;
	p->state = p->total > 0 ? PROBE_WINDOWS : PROBE_END;
	return HGJ_OK;
}

/* Step 3: the window of pairs from p->next on; does not wait. */
static HgjStatus write_window(HgjProbe *p, const PairOut &out, uint64_t *n, HgjError *err)
{
	HgjTable *t = p->table;
	const Graph &g = t->graph;
	uint64_t lo = p->next;
	uint64_t hi = p->total - lo > out.capacity ? lo + out.capacity : p->total;
	ProbeJob job = job_of(p, nullptr);
	Span span(t, p->lane, true);

	*n = hi - lo;
	if (job.bits != nullptr)
		t->bits_changed = true;
	if (g.walk)
		return FOR_LAYOUT(g.layout, launch_walk, p->lane, job, g.slack > 0,
						  p->counts.as<uint32_t>(), p->sums.as<uint64_t>(), out, lo, hi,
						  err);
	if (g.layout == LAYOUT_ROW)
		expand_pairs<RowTraits><<<tiles(*n), PROBE_THREADS, 0, p->lane.stream>>>(
			job, out, p->starts.as<uint64_t>(), p->sums.as<uint64_t>(), lo, hi);
	else if (g.layout == LAYOUT_NARROW)
		expand_pairs<NarrowTraits><<<tiles(*n), PROBE_THREADS, 0, p->lane.stream>>>(
			job, out, p->starts.as<uint64_t>(), p->sums.as<uint64_t>(), lo, hi);
	else
		expand_pairs<WideTraits><<<tiles(*n), PROBE_THREADS, 0, p->lane.stream>>>(
			job, out, p->starts.as<uint64_t>(), p->sums.as<uint64_t>(), lo, hi);
	HGJ_CUDA(cudaGetLastError());
	return HGJ_OK;
}

/*
 * Pairs into `out`, *n of them, and for a host caller (host) on to pinned
 * memory.  The probe moves on only once they are there.
 */
static HgjStatus produce(HgjProbe *p, const PairOut &out, bool host, uint64_t *n,
						 HgjError *err)
{
	HgjTable *t = p->table;
	bool written = false;

	HGJ_TRY(poll(t, err));
	if (p->state == PROBE_FRESH)
	{
		HGJ_TRY(emit_all(p, out, &written, err));
		if (!written)
			HGJ_TRY(sum_up(p, err));
	}
	*n = p->total;
	if (!written && p->state == PROBE_WINDOWS)
		HGJ_TRY(write_window(p, out, n, err));
	if (host && *n > 0)
	{
		uint32_t *to = p->host_pairs.as<uint32_t>();

		HGJ_TRY(from_device(t, p->lane, to, out.probe_rows, *n * 4, err));
		HGJ_TRY(from_device(t, p->lane, to + p->host_cap, out.build_rows, *n * 4, err));
	}
	HGJ_TRY(wait(t, p->lane, true, err));
	p->next += *n;
	if (written || p->next >= p->total)
		p->state = PROBE_END;
	return HGJ_OK;
}

/* Room for a host caller's pairs on both sides. */
static HgjStatus reserve_pairs(HgjProbe *p, PairOut *out, HgjError *err)
{
	uint64_t cap = 2 * p->rows.n;
	HgjStatus status;

	cap = cap < MIN_PAIRS ? MIN_PAIRS : cap > MAX_PAIRS ? MAX_PAIRS : cap;
	if (p->host_cap < cap)
	{
		status = p->pairs.reserve(p->table, p->lane.stream, cap * 8, err);
		while ((status == HGJ_LIMIT || status == HGJ_OUT_OF_MEMORY) && cap > LEAST_PAIRS)
		{
			cap /= 2; /* smaller portions, then */
			status = p->pairs.reserve(p->table, p->lane.stream, cap * 8, err);
		}
		if (status == HGJ_OK)
			status = p->host_pairs.reserve(cap * 8, err);
		p->host_cap = status == HGJ_OK ? cap : 0;
		HGJ_TRY(status);
	}
	out->probe_rows = p->pairs.as<uint32_t>();
	out->build_rows = out->probe_rows + p->host_cap;
	out->capacity = p->host_cap;
	return HGJ_OK;
}

/* As many of the pairs held as there is room for, and not to be skipped. */
static void hand_out(HgjProbe *p, HgjMatches *m)
{
	const uint32_t *probe_rows = p->host_pairs.as<uint32_t>() + p->handed;
	const uint32_t *build_rows = probe_rows + p->host_cap;
	uint64_t left = p->held - p->handed;
	uint64_t i;
	uint32_t n = 0;

	if (m->skip == nullptr)
	{
		n = (uint32_t) (left < m->capacity ? left : m->capacity);
		memcpy(m->probe_rows, probe_rows, n * sizeof(uint32_t));
		memcpy(m->build_rows, build_rows, n * sizeof(uint32_t));
		i = n;
	}
	else
		for (i = 0; i < left && n < m->capacity; i++)
		{
			m->probe_rows[n] = probe_rows[i];
			m->build_rows[n] = build_rows[i];
			n += m->skip[probe_rows[i]] == 0;
		}
	p->handed += i;
	m->n = n;
}

static HgjStatus next_host(HgjProbe *p, HgjMatches *m, HgjError *err)
{
	for (;;)
	{
		PairOut out = {};
		uint64_t n = 0;

		if (p->handed < p->held)
			hand_out(p, m);
		if (m->n > 0 || (p->handed == p->held && p->state == PROBE_END))
			break;
		HGJ_TRY(reserve_pairs(p, &out, err));
		HGJ_TRY(produce(p, out, true, &n, err));
		p->held = n;
		p->handed = 0;
	}
	m->done = p->handed == p->held && p->state == PROBE_END;
	return HGJ_OK;
}

static HgjStatus next_device(HgjProbe *p, HgjMatches *m, HgjError *err)
{
	PairOut out = {m->probe_rows, m->build_rows, m->capacity, nullptr};
	uint64_t n = 0;

	if (p->state != PROBE_END)
		HGJ_TRY(produce(p, out, false, &n, err));
	m->n = (uint32_t) n;
	m->done = p->state == PROBE_END;
	return HGJ_OK;
}

/* HGJ_MATCH_COUNT: all of it in one call. */
static HgjStatus next_counts(HgjProbe *p, HgjMatches *m, HgjError *err)
{
	HgjTable *t = p->table;
	const Graph &g = t->graph;
	bool host = m->location == HGJ_ON_HOST;
	size_t bytes = (size_t) p->nrows * sizeof(uint32_t);
	ProbeJob job = job_of(p, nullptr);
	PairOut none = {};
	uint32_t *counts;

	m->done = true;
	if (p->nrows == 0 || p->state == PROBE_END)
		return HGJ_OK;
	m->done = false;
	HGJ_TRY(poll(t, err));
	if (host)
		HGJ_TRY(p->counts.reserve(t, p->lane.stream, bytes, err));
	counts = host ? p->counts.as<uint32_t>() : m->counts;

	Span span(t, p->lane, true);

	HGJ_CUDA(cudaMemsetAsync(counts, 0, bytes, p->lane.stream));
	if (job.bits != nullptr)
		t->bits_changed = true;
	if (g.walk)
		HGJ_TRY(FOR_LAYOUT(g.layout, launch_walk, p->lane, job, g.slack > 0, counts,
						   nullptr, none, 0, 0, err));
	else
	{
		HGJ_TRY(maybe_bin(p, &job, err));
		HGJ_TRY(FOR_LAYOUT(g.layout, launch_ranges, p->lane, job, nullptr, counts, err));
	}
	span.stop();
	HGJ_TRY(wait(t, p->lane, true, err));
	if (host)
	{
		HGJ_TRY(from_device(t, p->lane, m->counts, counts, bytes, err));
		HGJ_TRY(wait(t, p->lane, false, err));
	}
	p->state = PROBE_END;
	m->done = true;
	return HGJ_OK;
}

/* HgjEngine.probe_next; when cancelled, the probe is where it was before. */
HgjStatus probe_next(HgjProbe *probe, HgjMatches *matches, HgjError *err)
{
	if (matches == nullptr || !probe->begun)
		return fail(err, HGJ_INVALID, "probe_next before probe_begin");
	if (matches->location != HGJ_ON_HOST && matches->location != HGJ_ON_DEVICE)
		return fail(err, HGJ_UNSUPPORTED, "matches go to the host or to the device");
	HGJ_TRY(table_enter(probe->table, err));
	matches->n = 0;
	matches->done = false;
	if (probe->mode == HGJ_MATCH_COUNT)
	{
		if (matches->counts == nullptr && probe->nrows > 0)
			return fail(err, HGJ_INVALID, "counts are missing");
		return next_counts(probe, matches, err);
	}
	if (matches->capacity == 0 || matches->probe_rows == nullptr ||
		matches->build_rows == nullptr)
		return fail(err, HGJ_INVALID, "there is no room for matches");
	return matches->location == HGJ_ON_HOST ? next_host(probe, matches, err)
											: next_device(probe, matches, err);
}

} // namespace hgj
