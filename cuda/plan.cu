/*-------------------------------------------------------------------------
 *
 * plan.cu
 *	  What a build and its probes will do, from sizes and statistics.
 *
 * 1. Direct, if asked for, or the keys are dense, or lie in a small range: vertex = key - min.
 * 2. Otherwise hashed, with a power of two of vertices.  V1 where the graph is
 *	  so small that counters and entries stay in L2 anyway; V2 up to where a
 *	  bin's counters fit a block's shared memory; by sort beyond.
 * 3. Bins of V2 are so many that a bin's rows and counters fit shared memory,
 *	  but no more than one pass can scatter to in runs of whole sectors.
 * 4. The peak of a build is the largest of its phases' sums.  A build by V1 or
 *	  V2 may have to start over by sort (build.cu), so that is one of them.
 *
 * Owns nothing, locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "device.cuh"
#include "internal.h"

namespace hgj
{

/* Rows and vertices of a bin, as a power of two, that are aimed at. */
constexpr uint32_t BIN_BITS = 12;

/* A small range: values for a row, and the parts of L2, and of what the table may have. */
constexpr uint64_t SMALL_RANGE_ROWS = 256;
constexpr size_t SMALL_RANGE_L2 = 8;
constexpr size_t SMALL_RANGE_LIMIT = 16;

/* Up to so many rows, V1. */
constexpr uint64_t V1_ROWS = UINT64_C(1) << 20;

/* A V2 that was asked for has at least so many bins, however small it is. */
constexpr uint32_t FORCED_BIN_BITS = 12;

/* Probe rows that a batch should have. */
constexpr uint32_t BATCH_ROWS = UINT32_C(1) << 20;

/* The most vertices, as a power of two, that one pass of bins can do. */
static uint32_t most_vertex_bits(const HgjTable *t)
{
	uint32_t bits = 12;

	while (bits < 15 &&
		   (sizeof(uint32_t) << (bits + 1)) + 2048 <= t->device->block_shared)
		bits++;
	return bits + most_bin_bits(t->device);
}

/* Step 2: vertices. */
static void plan_vertices(const HgjTable *t, Plan *p)
{
	uint32_t code_bits = p->layout == LAYOUT_NARROW ? 32 : 64;
	uint32_t bits;

	if (p->direct)
	{
		p->vertices = p->range + 1;
		p->vertex_bits = hgj_log2_ceil(p->vertices);
		return;
	}
	bits = hgj_plan_vertex_bits(&t->spec, p->rows);
	/* a load of 2 is good, too, and one pass of bins is better than a sort */
	if (t->spec.load == 0 && bits == most_vertex_bits(t) + 1)
		bits--;
	p->vertex_bits = bits;
	p->vertices = UINT64_C(1) << bits;
	p->shift = code_bits - bits;
}

/* Step 3. */
static void plan_bins(const HgjTable *t, Plan *p)
{
	uint32_t bits = hgj_log2_ceil(p->rows >> BIN_BITS);

	if (p->vertex_bits > BIN_BITS && bits < p->vertex_bits - BIN_BITS)
		bits = p->vertex_bits - BIN_BITS;
	if (t->spec.build == HGJ_BUILD_V2 && bits < FORCED_BIN_BITS)
		bits = FORCED_BIN_BITS;
	bits = bits > most_bin_bits(t->device) ? most_bin_bits(t->device) : bits;
	bits = bits > p->vertex_bits ? p->vertex_bits : bits;
	bits = bits < 1 ? 1 : bits;
	p->bins = UINT32_C(1) << bits;
	p->bin_shift = p->shift + p->vertex_bits - bits;
}

/*
 * Step 1: is a table by position smaller than a share of the L2 cache, and not much larger
 * than one by hash?  A lookup is one gather then, not three.
 */
static bool is_small_range(const HgjTable *t, uint64_t rows, const PlannedLayout *planned)
{
	const HgjTableSpec *spec = &t->spec;

	return spec->build == HGJ_BUILD_AUTO && spec->segments == HGJ_SEGMENTS_AUTO &&
		   planned->layout == LAYOUT_NARROW && hgj_plan_slack(spec) == 0 &&
		   planned->range < rows * SMALL_RANGE_ROWS &&
		   planned->range < t->device->l2_bytes / SMALL_RANGE_L2 / sizeof(uint32_t) &&
		   (spec->memory_limit == 0 ||
			planned->range < spec->memory_limit / SMALL_RANGE_LIMIT / sizeof(uint32_t));
}

/* The plan for that many rows, whose keys (if of one word) are in that range. */
void plan_build(const HgjTable *table, uint64_t rows, int64_t min_key, int64_t max_key,
				Plan *plan)
{
	const HgjTableSpec *spec = &table->spec;
	bool fits_bins;

	memset(plan, 0, sizeof(*plan));
	plan->rows = rows;
	plan->bins = 1;
	plan->slack = hgj_plan_slack(spec);
	PlannedLayout planned = hgj_plan_layout(spec, rows, min_key, max_key, &plan->notes);
	if (is_small_range(table, rows, &planned))
	{
		planned.direct = true;
		planned.layout = LAYOUT_ROW;
	}
	plan->layout = planned.layout;
	plan->direct = planned.direct;
	plan->base = planned.base;
	plan->range = planned.range;
	plan->stride = layout_stride(plan->layout);
	plan_vertices(table, plan);
	plan->segments =
		spec->segments != HGJ_SEGMENTS_AUTO ? spec->segments : HGJ_SEGMENTS_CSR;
	if (plan->direct && plan->layout == LAYOUT_ROW)
	{
		plan->build = HGJ_BUILD_DIRECT;
		return;
	}
	fits_bins = !plan->direct && plan->vertex_bits <= most_vertex_bits(table);
	plan->may_sort = !plan->direct;
	if (plan->direct)
		plan->build = HGJ_BUILD_DIRECT;
	else if (spec->build == HGJ_BUILD_V1 || spec->build == HGJ_BUILD_SORT)
		plan->build = spec->build;
	else if (spec->build == HGJ_BUILD_V2)
		plan->build = fits_bins ? HGJ_BUILD_V2 : HGJ_BUILD_SORT;
	else if (rows <= V1_ROWS)
		plan->build = HGJ_BUILD_V1;
	else
		plan->build = fits_bins ? HGJ_BUILD_V2 : HGJ_BUILD_SORT;
	if (plan->build == HGJ_BUILD_V2)
		plan_bins(table, plan);
}

/* From keys to codes: secrets that only depend on the seed. */
Mix plan_mix(const HgjTableSpec *spec, const Plan &plan)
{
	uint64_t state = ~spec->seed;
	Mix m;

	memset(&m, 0, sizeof(m));
	m.layout = plan.layout;
	m.nwords = spec->nwords;
	m.direct = plan.direct;
	m.shift = plan.shift;
	m.base = plan.base;
	m.range = plan.range;
	hgj_hash_init(&m.hash, spec->seed);
	m.xor64 = hgj_hash_splitmix(&state);
	m.mul64a = hgj_hash_multiplier(&state);
	m.mul64b = hgj_hash_multiplier(&state);
	m.xor32 = (uint32_t) hgj_hash_splitmix(&state);
	/* balanced, and so is its inverse, or differences would survive */
	do
	{
		m.mul32a = (uint32_t) (hgj_hash_multiplier(&state) >> 32) | 1;
		m.mul32b = (uint32_t) (hgj_hash_multiplier(&state) >> 32) | 1;
	} while (__builtin_popcount(m.mul32a) < 11 || __builtin_popcount(m.mul32a) > 21 ||
			 __builtin_popcount(m.mul32b) < 11 || __builtin_popcount(m.mul32b) > 21 ||
			 __builtin_popcount(inverse(m.mul32a)) < 11);
	return m;
}

static uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The most that padded segments may take before CSR is kept. */
static uint64_t padded_bound(const Plan &p, uint64_t csr)
{
	uint64_t bound = 0;

	if (p.segments != HGJ_SEGMENTS_CSR)
		bound = hgj_most_padded(csr);
	if (p.slack > 0)
		bound = max64(bound, (p.rows + p.rows / 2 + p.vertices * p.slack) * p.stride +
								 (p.vertices + 1) * 4);
	/* sizes of slices or vertices while they are scanned */
	return bound > 0 ? bound + (p.vertices + 2) * 8 : 0;
}

/*
 * Step 4: device bytes at the height of a build of the rows appended so far.
 * What is unknown before counting counts as the worst that would be accepted.
 */
uint64_t plan_peak(const HgjTable *table)
{
	uint64_t base = __atomic_load_n(&table->current, __ATOMIC_RELAXED);
	uint64_t peak = __atomic_load_n(&table->peak, __ATOMIC_RELAXED);
	uint64_t rounding = 16 * 512 + 4096;
	Plan p;
	uint64_t csr;
	uint64_t height;
	uint64_t scan;

	plan_build(table, table->nrows, table->min_key, table->max_key, &p);
	base += chunks_to_come(table) + rounding + p.rows / LONG_LIST * 8;
	if (table->spec.flags & HGJ_TABLE_TRACK_MATCHES)
		base += table->max_row / 8 + 1024;
	if (p.layout == LAYOUT_MULTI)
		base += p.rows * table->spec.nwords * 8;
	scan = scan_temp_bytes(p.vertices + 1);
	csr = (p.vertices + 1) * 4 + p.rows * p.stride;
	height = csr + scan;
	if (p.build == HGJ_BUILD_V2)
		height += p.rows * p.stride + (3 * (uint64_t) p.bins + 2) * 4;
	if (p.build == HGJ_BUILD_DIRECT)
		height = max64(height, p.vertices * 4);
	if (p.may_sort)
	{
		uint64_t pairs = p.rows * (p.layout == LAYOUT_NARROW ? 8 : 16);

		height = max64(height, 2 * pairs + sort_temp_bytes(p.rows, p.layout));
		height = max64(height, pairs + csr + scan);
	}
	height = max64(height, csr + scan + padded_bound(p, csr));
	return max64(peak, base + height);
}

/* Whether probe rows of this (built) table can be binned at all. */
static bool probe_can_bin(const HgjTable *table)
{
	const Graph &g = table->graph;

	return g.layout != LAYOUT_ROW && !g.mix.direct && !g.walk && g.rows > 0 &&
		   g.vertices >= 1024;
}

/*
 * Whether binning that many probe rows pays: when the graph is larger than L2,
 * so that a probe waits for memory twice, and the rows are many enough to find
 * most of its lines more than once.
 */
bool probe_should_bin(const HgjTable *table, uint64_t rows)
{
	if (!probe_can_bin(table))
		return false;
	if (table->spec.probe == HGJ_PROBE_BINNED)
		return true;
	return table->spec.probe == HGJ_PROBE_AUTO &&
		   table->graph.bytes() > table->device->l2_bytes &&
		   rows >= table->graph.rows / 4;
}

/*
 * Bins of probe rows, as a power of two: the parts of the graph that the blocks
 * of one moment read must fit L2 together, and one pass must do.
 */
uint32_t probe_bin_bits(const HgjTable *table)
{
	uint32_t bits = hgj_log2_ceil(table->graph.bytes() >> 20);
	uint32_t vertex_bits = hgj_log2_ceil(table->graph.vertices);

	bits = bits < 5 ? 5 : bits > 9 ? 9 : bits;
	return bits > vertex_bits ? vertex_bits : bits;
}

/* HgjEngine.probe_batch_rows */
uint32_t probe_batch_rows(const HgjTable *table)
{
	(void) table;
	return BATCH_ROWS;
}

} // namespace hgj
