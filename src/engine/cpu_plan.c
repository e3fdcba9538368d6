/*-------------------------------------------------------------------------
 *
 * cpu_plan.c
 *	  What a build and its probes will do, from sizes and statistics.
 *
 * 1. Direct, if asked for or the keys are dense: vertex = key - min.
 * 2. Otherwise hashed, with a power of two of vertices; V1 where counters and
 *	  entries stay in half of the L2 cache anyway, V2 where they do not.
 * 3. Entries are narrow where the range of the keys fits 32 bits.
 * 4. Bins of V2 are as many as make one bin fit half of the L2 cache, but no
 *	  more than keep the bins' staging lines there.
 * 5. The peak of a build is the largest of its phases' sums.
 * (Where nobody wants the rows of matches, a bit per key comes before all this, and
 * quotients take the place of large hashed graphs: cpu_bits.c, cpu_quotient.c.)
 *
 * Owns nothing, locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "cpu_internal.h"

/*
 * Measured (bench/engine_bench): binning probe rows pays when a batch is so
 * large that most cache lines of the graph are wanted more than once, one row
 * for 16 bytes of it, and the graph is larger than the last-level cache.  At
 * 10M rows, a batch of all 10M took 14 ns per row against 26; but batches of up
 * to 1M took 25 to 27, binned for nothing, because they do not read a line
 * twice either.  So AUTO only bins what comes in such batches, and asks for
 * none.
 */
#define BINNED_MIN_BYTES	(UINT64_C(64) * 1024 * 1024)
#define BINNED_BYTES_PER_ROW	16

#define STANDARD_BATCH		4096
#define BINNED_MIN_BATCH	65536
#define BINNED_MAX_BATCH	262144

/* Direct tables this many times larger than L2 are binned first. */
#define DIRECT_BIN_L2S		8

/* Bytes of offsets and entries of a CSR graph. */
static uint64_t
csr_bytes(const Plan *p)
{
	uint64_t	slots = p->rows + (p->slack > 0 ?
								   p->vertices * p->slack + p->rows / 2 : 0);

	return (p->vertices + 1) * sizeof(uint32_t) + slots * p->stride;
}

/* Steps 1 to 3. */
static void
plan_layout(const HgjTable *t, Plan *p, int64_t min_key, int64_t max_key)
{
	const HgjTableSpec *spec = &t->spec;
	PlannedLayout planned = hgj_plan_layout(spec, p->rows, min_key, max_key,
											&p->notes);

	p->layout = planned.layout;
	p->direct = planned.direct;
	p->base = planned.base;
	p->range = planned.range;
	p->packed = p->layout == LAYOUT_ROW ? LAYOUT_NARROW : p->layout;
	p->stride = layout_stride(p->layout, spec->nwords);
	p->packed_stride = layout_stride(p->packed, spec->nwords);
	if (p->direct)
		p->vertices = p->range + 1;
	else
	{
		uint32_t	bits = hgj_plan_vertex_bits(spec, p->rows);

		p->vertices = UINT64_C(1) << bits;
		p->shift = 64 - bits;
	}
}

/* Step 4: bins of about half of L2, but no more than `most` (2 or more). */
void
hgj_cpu_plan_bins(const HgjTable *table, Plan *plan, uint32_t most)
{
	uint32_t	code_bits = plan->direct ? hgj_log2_ceil(plan->vertices) :
		plan->quotient ? plan->mix.bits : 64;
	uint32_t	vertex_bits = hgj_log2_ceil(plan->vertices);
	uint32_t	bits = hgj_log2_ceil(csr_bytes(plan) / (table->l2_bytes / 2) + 1);

	while (bits > 31 || (UINT32_C(1) << bits) > most)
		bits--;
	bits = bits > vertex_bits ? vertex_bits : bits;
	bits = bits < 1 ? 1 : bits;
	plan->bin_shift = code_bits > bits ? code_bits - bits : 0;
	plan->bins = plan->direct ? (uint32_t) (plan->range >> plan->bin_shift) + 1 :
		UINT32_C(1) << bits;
}

/* Bytes that a bit per key takes. */
size_t
hgj_cpu_bits_bytes(const Plan *plan)
{
	return (size_t) (plan->range / 64 + 1) * sizeof(uint64_t);
}

/* Whether there is a single key of which nothing else is wanted, nor asked for. */
static bool
wants_keys_only(const HgjTableSpec *spec)
{
	return (spec->flags & HGJ_TABLE_KEYS_ONLY) != 0 &&
		(spec->flags & (HGJ_TABLE_TRACK_MATCHES | HGJ_TABLE_DYNAMIC)) == 0 &&
		spec->segments == HGJ_SEGMENTS_AUTO && spec->nwords == 1;
}

/*
 * The plan for that many rows, whose keys (if of one word) are in that range.
 */
void
hgj_cpu_plan(const HgjTable *table, uint64_t rows, int64_t min_key,
			 int64_t max_key, Plan *plan)
{
	const HgjTableSpec *spec = &table->spec;
	uint64_t	bytes;

	memset(plan, 0, sizeof(*plan));
	plan->rows = rows;
	plan->slack = hgj_plan_slack(spec);
	plan_layout(table, plan, min_key, max_key);
	plan->segments = spec->segments != HGJ_SEGMENTS_AUTO ? spec->segments :
		HGJ_SEGMENTS_CSR;
	plan->try_unique = plan->layout == LAYOUT_ROW &&
		(spec->segments == HGJ_SEGMENTS_AUTO ||
		 spec->segments == HGJ_SEGMENTS_ELLPACK);
	bytes = csr_bytes(plan);
	plan->bins = 1;
	if (plan->direct)
	{
		plan->build = HGJ_BUILD_DIRECT;
		plan->binned = bytes > DIRECT_BIN_L2S * (uint64_t) table->l2_bytes;
	}
	else
	{
		if (spec->build == HGJ_BUILD_SORT)
			plan->notes |= HGJ_NOTE_SORT_AS_V2;
		plan->binned = spec->build == HGJ_BUILD_V2 ||
			spec->build == HGJ_BUILD_SORT ||
			(spec->build != HGJ_BUILD_V1 && bytes > table->l2_bytes / 2);
		plan->build = plan->binned ? HGJ_BUILD_V2 : HGJ_BUILD_V1;
		if (plan->binned && spec->build == HGJ_BUILD_AUTO && wants_keys_only(spec))
			hgj_cpu_plan_quotient(table, plan);
	}
	if (plan->binned)
		hgj_cpu_plan_bins(table, plan, HGJ_MAX_BINS);
	plan->in_place = plan->binned && plan->packed == plan->layout && !plan->quotient &&
		plan->segments == HGJ_SEGMENTS_CSR && plan->slack == 0;
	plan->try_bits = wants_keys_only(spec) && rows > 0 &&
		(spec->build == HGJ_BUILD_AUTO || spec->build == HGJ_BUILD_DIRECT) &&
		plan->range / 8 <= csr_bytes(plan) / 2;
}

/* The most that entries of padded segments may take before they fall back. */
static uint64_t
padded_bound(const HgjTable *t, const Plan *p, uint64_t csr)
{
	if (p->segments == HGJ_SEGMENTS_CSR ||
		(p->try_unique && t->spec.segments == HGJ_SEGMENTS_AUTO))
		return 0;
	return hgj_most_padded(csr);
}

static uint64_t
max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * Step 5: bytes at the height of a build of the rows appended so far.  What
 * is unknown before counting (duplicates of a direct table, the padding of
 * Ellpack) counts as the worst that the build would accept.
 */
uint64_t
hgj_cpu_build_peak(const HgjTable *table)
{
	Plan		p;
	uint64_t	now = __atomic_load_n(&table->current, __ATOMIC_RELAXED);
	uint64_t	peak = __atomic_load_n(&table->peak, __ATOMIC_RELAXED);
	uint64_t	counts;
	uint64_t	csr;
	uint64_t	padded;
	uint64_t	packed = 0;
	uint64_t	rest;			/* what stays while the graph is made */
	uint64_t	total;

	hgj_cpu_plan(table, table->nrows, table->min_key, table->max_key, &p);
	csr = hgj_mem_footprint(csr_bytes(&p)) + 128;
	counts = (p.vertices + 1) * sizeof(uint32_t);
	if (table->spec.flags & HGJ_TABLE_TRACK_MATCHES)
		now += hgj_mem_footprint((size_t) (table->max_row / 8 + 16));
	rest = now;
	if (p.try_bits)
		peak = max64(peak, now + hgj_mem_footprint(hgj_cpu_bits_bytes(&p)));
	if (p.binned)
	{
		packed = hgj_mem_footprint((size_t) (p.rows * p.packed_stride) + 64) +
			hgj_mem_footprint(HGJ_CHUNK_HEADER) +
			hgj_mem_footprint((p.bins + 1) * sizeof(uint32_t));
		rest = now - table->chunk_bytes + packed;
		peak = max64(peak, now + packed + hgj_cpu_bin_bytes(&p));
	}
	if (p.in_place)
		return max64(peak, rest + hgj_mem_footprint((size_t) counts) +
					 hgj_cpu_scratch_bytes(table, &p));
	rest += 65536 + 4096;		/* the buffer of a source that unpacks */
	total = rest + csr;
	if (p.try_unique)
		total = max64(total, now + p.vertices * sizeof(uint32_t) + 64);
	padded = padded_bound(table, &p, csr);
	if (padded > 0)
	{
		total += counts;
		padded += rest + counts;
		if (table->spec.memory_limit > 0)
			padded = table->spec.memory_limit;
		total = max64(total, padded);
	}
	return max64(peak, total);
}

/*
 * How probes of the graph just built will go: which bins of its vertices a
 * batch of probe rows could be sorted into, and whether it pays.
 */
void
hgj_cpu_plan_probe(HgjTable *table)
{
	const Graph *g = &table->graph;
	uint64_t	bytes = (uint64_t) g->entries_bytes + g->offsets_bytes +
		g->slices_bytes;

	table->probe_bins = 1;
	table->probe_shift = 0;
	table->probe_binned = false;
	table->binned_rows = UINT64_MAX;
	if (!g->direct && !g->quotient && bytes > table->l2_bytes / 2)
	{
		uint32_t	bits = hgj_log2_ceil(bytes / (table->l2_bytes / 2) + 1);

		if (bits > hgj_log2_ceil(HGJ_MAX_BINS))
			bits = hgj_log2_ceil(HGJ_MAX_BINS);
		table->probe_bins = UINT32_C(1) << bits;
		table->probe_shift = 64 - bits;
	}
	if (table->probe_bins > 1 && table->spec.probe == HGJ_PROBE_BINNED)
		table->probe_binned = true;
	else if (table->probe_bins > 1 && table->spec.probe == HGJ_PROBE_AUTO &&
			 bytes > BINNED_MIN_BYTES)
		table->binned_rows = bytes / BINNED_BYTES_PER_ROW;
}

/* HgjEngine.probe_batch_rows */
uint32_t
hgj_cpu_probe_batch_rows(const HgjTable *table)
{
	uint64_t	rows = (uint64_t) table->probe_bins * 128;

	if (!table->probe_binned)
		return STANDARD_BATCH;
	if (rows < BINNED_MIN_BATCH)
		return BINNED_MIN_BATCH;
	return rows > BINNED_MAX_BATCH ? BINNED_MAX_BATCH : (uint32_t) rows;
}
