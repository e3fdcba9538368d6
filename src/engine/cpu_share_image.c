/*-------------------------------------------------------------------------
 *
 * cpu_share_image.c
 *	  The images of graphs that several processes build: what is in them, how
 *	  large they become, and how a table is attached to one.
 *
 * 1. The plan is that of cpu_plan.c for the sum of all parts, except that rows are
 *	  always binned: bins are what participants divide among themselves.  They are
 *	  no more than a byte per row of each participant's has room for.
 * 2. An image of unique keys is one slot per key.  A binned one has the counts of
 *	  all participants, offsets and packed entries; a hashed graph's entries are
 *	  these, a direct one has row ids besides.  A padded one has the slots only,
 *	  made from a binned one.  Match bits, and room for a filter, are in each.
 * 3. The peak is that of the dearest way which the sum of all parts could take, in
 *	  bytes per row, since the way is not known before all parts are.  What orders
 *	  bins takes the place of chunks that are gone by then.
 * 4. Attaching turns distances into pointers.
 *
 * The image belongs to the caller (share.h).  Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "cpu_share.h"

#define IMAGE_MAGIC		UINT64_C(0x48474A2073686172)

/* Flags that say what is in an image; each process has its own when it comes to sifting rows. */
#define IMAGE_FLAGS		(HGJ_TABLE_TRACK_MATCHES | HGJ_TABLE_DYNAMIC | HGJ_TABLE_KEYS_ONLY | \
						 HGJ_TABLE_FIRST_MATCH)

/* Bytes that a bin takes for each participant: staging, two counts, one shared. */
#define BYTES_PER_BIN	80

/* What a bit per key may take, of all participants and the image together. */
#define BITS_BYTES_PER_ROW	4
#define BITS_BYTES_PER_PART	4096

/* A bit per key is always wanted in so many bytes. */
#define EXACT_BYTES		4096

/* HgjShareMethods.part */
void
hgj_cpu_share_part(const HgjTable *table, HgjSharePart *part)
{
	memset(part, 0, sizeof(*part));
	part->nrows = table->nrows;
	part->min_key = table->min_key;
	part->max_key = table->max_key;
}

/* Step 1; HGJ_LIMIT where there are too many rows in sum. */
HgjStatus
hgj_cpu_share_plan(const HgjTable *table, const HgjShareBuild *build,
				   Plan *plan, HgjError *err)
{
	uint64_t	rows = 0;
	int64_t		min_key = INT64_MAX;
	int64_t		max_key = INT64_MIN;
	uint64_t	most;
	uint32_t	p;

	for (p = 0; p < build->nparts; p++)
	{
		const HgjSharePart *part = &build->parts[p];

		if (part->nrows == 0)
			continue;
		if (part->nrows > HGJ_MAX_ROWS || rows + part->nrows > HGJ_MAX_ROWS)
			return hgj_fail(err, HGJ_LIMIT,
							"a table holds at most 4294967280 rows");
		rows += part->nrows;
		min_key = part->min_key < min_key ? part->min_key : min_key;
		max_key = part->max_key > max_key ? part->max_key : max_key;
	}
	hgj_cpu_plan(table, rows, min_key, max_key, plan);
	most = (rows / build->nparts + 8192) / BYTES_PER_BIN;
	hgj_cpu_plan_bins(table, plan, most > HGJ_MAX_BINS ? HGJ_MAX_BINS :
					  (uint32_t) most);
	/* everybody's, and the image's */
	if (hgj_cpu_bits_bytes(plan) + sizeof(Image) + 2 * HGJ_IMAGE_ALIGN >
		(BITS_BYTES_PER_ROW * rows + BITS_BYTES_PER_PART * build->nparts) / (build->nparts + 1))
		plan->try_bits = false;
	return HGJ_OK;
}

/* Room in an image that is being laid out. */
static uint64_t
place(Image *image, uint64_t bytes)
{
	uint64_t	at = image->bytes;

	image->bytes += (bytes + HGJ_IMAGE_ALIGN - 1) / HGJ_IMAGE_ALIGN *
		HGJ_IMAGE_ALIGN;
	return at;
}

/* Match bits, if any, and what a filter in an image is going to be like. */
static void
place_bits(const HgjTable *t, Image *image)
{
	Graph	   *g = &image->graph;

	if (image->flags & HGJ_TABLE_TRACK_MATCHES)
	{
		image->bits_bytes = ((uint64_t) image->total_rows / 64 + 2) *
			sizeof(uint64_t);
		image->bits = place(image, image->bits_bytes);
	}
	if (t->spec.filter != HGJ_FILTER_OFF && g->rows > 0)
		image->filter.bytes = (size_t)
			hgj_cpu_filter_words(g, 16 * g->rows + 2 * EXACT_BYTES +
								 t->spec.filter_room, t->spec.filter_room, &image->filter) *
			sizeof(uint64_t);
}

static void
image_begin(const HgjTable *t, const HgjShareBuild *build, const Plan *plan,
			Image *image)
{
	memset(image, 0, sizeof(*image));
	image->magic = IMAGE_MAGIC;
	image->seed = t->spec.seed;
	image->nwords = t->spec.nwords;
	image->flags = t->spec.flags & IMAGE_FLAGS;
	image->nparts = build->nparts;
	image->total_rows = build->total_rows;
	hgj_cpu_graph_begin(plan, &image->graph);
	(void) place(image, sizeof(*image));
	place_bits(t, image);
}

/* Step 2 for a bit per key. */
void
hgj_cpu_image_bits(const HgjTable *table, const HgjShareBuild *build,
				   const Plan *plan, Image *image)
{
	image_begin(table, build, plan, image);
	hgj_cpu_bits_graph(plan, &image->graph);
	image->longest = 1;
	image->entries = place(image, image->graph.entries_bytes);
	memset(&image->filter, 0, sizeof(image->filter));
	if (table->spec.filter == HGJ_FILTER_OFF)
		return;
	hgj_cpu_bits_filter(&image->graph, &image->filter);
	image->filter_words = image->entries;
	image->filter_state = FILTER_READY;
}

/* Step 2 for a direct graph whose keys may be unique. */
void
hgj_cpu_image_unique(const HgjTable *table, const HgjShareBuild *build,
					 const Plan *plan, Image *image)
{
	Graph	   *g = &image->graph;

	image_begin(table, build, plan, image);
	g->segments = HGJ_SEGMENTS_ELLPACK;
	g->width = 1;
	g->slots = plan->vertices;
	g->bins = 1;
	g->entries_bytes = (size_t) (plan->vertices * sizeof(uint32_t) + 64);
	image->longest = plan->rows > 0 ? 1 : 0;
	image->entries = place(image, g->entries_bytes);
	if (image->filter.bytes > 0)
		image->filter_words = place(image, image->filter.bytes);
}

/* Step 2 for any other graph. */
void
hgj_cpu_image_binned(const HgjTable *table, const HgjShareBuild *build,
					 const Plan *plan, Image *image)
{
	Graph	   *g = &image->graph;
	uint64_t	counts = plan->bins * sizeof(uint32_t) + HGJ_IMAGE_ALIGN - 1;
	uint64_t	packed = plan->rows * plan->packed_stride + 64;

	image_begin(table, build, plan, image);
	g->segments = HGJ_SEGMENTS_CSR;
	g->slots = plan->rows;
	g->offsets_bytes = (size_t) (plan->vertices + 1) * sizeof(uint32_t);
	/* a little more: a probe may look one entry beyond the last list */
	g->entries_bytes = (size_t) (plan->rows * plan->stride + 64);
	image->counts_stride = counts / HGJ_IMAGE_ALIGN * HGJ_IMAGE_ALIGN;
	image->counts = place(image, build->nparts * image->counts_stride);
	image->starts = place(image, (plan->bins + 1) * sizeof(uint32_t));
	image->offsets = place(image, g->offsets_bytes);
	if (!plan_repacks(plan))
	{
		image->packed = image->entries = place(image, packed);
		if (image->filter.bytes > 0)
			image->filter_words = place(image, image->filter.bytes);
		return;
	}
	image->entries = place(image, g->entries_bytes);
	/* nobody wants the packed entries any more when a filter is made */
	image->packed = place(image, packed > image->filter.bytes ? packed :
						  image->filter.bytes);
	if (image->filter.bytes > 0)
		image->filter_words = image->packed;
}

/*
 * Step 2 for segments that are padded to that many slots; false where that is
 * more than the padding may take (cpu_segments.c).
 */
bool
hgj_cpu_image_padded(const HgjTable *table, const Image *csr, uint64_t slots,
					 Image *image)
{
	Graph	   *g = &image->graph;
	uint64_t	most = hgj_most_padded(csr->graph.rows * csr->graph.stride +
									   csr->graph.offsets_bytes);
	uint64_t	slices = 0;

	if (table->spec.segments == HGJ_SEGMENTS_SLICED)
		slices = ((csr->graph.vertices + HGJ_SLICE - 1) / HGJ_SLICE + 1) *
			sizeof(uint64_t);
	if (slots > most / csr->graph.stride ||
		slots * csr->graph.stride + slices > most)
		return false;
	*image = *csr;
	image->bytes = 0;
	image->counts = image->counts_stride = image->starts = image->packed = 0;
	image->offsets = image->slices = 0;
	image->next_bin = 0;
	image->parts_done = csr->nparts;	/* one step makes all of it */
	g->offsets_bytes = 0;
	g->segments = table->spec.segments;
	g->slots = slots;
	g->width = g->segments == HGJ_SEGMENTS_ELLPACK ? csr->longest : 0;
	g->slices_bytes = (size_t) slices;
	g->entries_bytes = (size_t) (slots * g->stride + 64);
	(void) place(image, sizeof(*image));
	place_bits(table, image);
	if (slices > 0)
		image->slices = place(image, slices);
	image->entries = place(image, g->entries_bytes);
	if (image->filter.bytes > 0)
		image->filter_words = place(image, image->filter.bytes);
	return true;
}

/* This process's share of n things that lie in a row. */
void
hgj_cpu_share_of(const Step *step, uint64_t n, uint64_t *from, uint64_t *to)
{
	*from = n * step->build->part / step->build->nparts;
	*to = n * (step->build->part + 1) / step->build->nparts;
}

/* memset of this process's share of what is that far into the image. */
HgjStatus
hgj_cpu_share_fill(Step *step, uint64_t at, int byte, uint64_t bytes)
{
	uint64_t	from;
	uint64_t	to;

	hgj_cpu_share_of(step, bytes, &from, &to);
	return hgj_cpu_fill(step->table, image_at(step->image, at + from), byte,
						(size_t) (to - from), step->err);
}

/* Ask for an image.  That of `old`, if any, is still there. */
HgjStatus
hgj_cpu_share_ask(Step *step, const Image *image, const Image *old)
{
	uint64_t	limit = step->table->share_limit;
	uint64_t	all = image->bytes + (old != NULL ? old->bytes : 0);

	if (image->bytes > SIZE_MAX / 2)
		return hgj_fail(step->err, HGJ_OUT_OF_MEMORY, "the table is too large");
	if (limit > 0 && all / step->build->nparts > limit)
		return hgj_fail(step->err, HGJ_LIMIT,
						"the table does not fit its memory limit");
	step->next->image_bytes = image->bytes;
	return HGJ_OK;
}

/*
 * Write what is known of a new image.  Each has its share of the pages mapped
 * first, since they may have to be cleared.  The bits are unset.
 */
HgjStatus
hgj_cpu_share_begin(Step *step, const Image *image)
{
	uint64_t	from;
	uint64_t	to;
	HgjStatus	status;

	hgj_cpu_share_of(step, image->bytes, &from, &to);
	status = hgj_cpu_populate(step->table, image_at(step->image, from),
							  (size_t) (to - from), step->err);
	if (status != HGJ_OK)
		return status;
	if (step->build->part == 0)
		*step->image = *image;
	return hgj_cpu_share_fill(step, image->bits, 0, image->bits_bytes);
}

/*
 * HgjShareMethods.peak: step 3.  Of n rows of one word, a hashed table takes 16
 * bytes each in wide entries, or 8 and at most as much again in a bit per key;
 * a Bloom filter is less than 2, and 32.  A direct one whose keys turn out not to
 * be unique has the slots beside packed entries, row ids and offsets, for a while.
 */
uint64_t
hgj_cpu_share_peak(const HgjTable *table)
{
	const HgjTableSpec *spec = &table->spec;
	double		load = spec->load > 0 ? spec->load : 1.0;
	uint64_t	n = table->nrows;
	double		lists = 2.0 * (double) n / load + 4;
	uint64_t	vertices = lists > 4294967296.0 ? UINT64_C(1) << 32 :
		(uint64_t) lists;
	uint64_t	stride = spec->nwords == 1 ? sizeof(WideEntry) :
		layout_stride(LAYOUT_MULTI, spec->nwords);
	uint64_t	csr = n * stride + vertices * sizeof(uint32_t);
	uint64_t	image = csr + 2 * n;
	uint64_t	peak = __atomic_load_n(&table->current, __ATOMIC_RELAXED);

	if (n > 0 && spec->nwords == 1 &&
		(spec->build == HGJ_BUILD_AUTO || spec->build == HGJ_BUILD_DIRECT))
	{
		uint64_t	keys = (spec->build == HGJ_BUILD_DIRECT ? 16 * n + 65536 :
							2 * n + 1024) + 1;
		uint64_t	filter = keys / 8 + 64;
		uint64_t	direct = n * sizeof(uint32_t) + keys * sizeof(uint32_t);

		csr = direct > csr ? direct : csr;
		direct += n * sizeof(NarrowEntry) + filter;
		direct += keys * sizeof(uint32_t) + filter;	/* the slots */
		image = direct > image ? direct : image;
	}
	if (spec->segments == HGJ_SEGMENTS_ELLPACK ||
		spec->segments == HGJ_SEGMENTS_SLICED)
		image += hgj_most_padded(csr) + 2 * n;
	/* two images at a time have an Image, alignment, and a filter */
	image += 2 * (sizeof(Image) + 10 * HGJ_IMAGE_ALIGN + 2 * EXACT_BYTES +
				  spec->filter_room);
	if (spec->flags & HGJ_TABLE_KEYS_ONLY)
		image += BITS_BYTES_PER_ROW * n + BITS_BYTES_PER_PART;
	if (spec->flags & HGJ_TABLE_TRACK_MATCHES)
		image += 2 * (table->max_row / 8 + 64);
	return peak + n + HGJ_SHARE_FIXED(spec->nwords) + image;
}

/* HgjShareMethods.attach: step 4. */
HgjStatus
hgj_cpu_share_attach(HgjTable *table, void *image, HgjError *err)
{
	Image	   *from = image;
	Graph	   *g = &table->graph;

	if (table->built)
		return hgj_fail(err, HGJ_INVALID, "attach after build");
	if (from == NULL || (uintptr_t) image % HGJ_IMAGE_ALIGN != 0 ||
		from->magic != IMAGE_MAGIC || from->nwords != table->spec.nwords ||
		from->seed != table->spec.seed || from->flags != (table->spec.flags & IMAGE_FLAGS) ||
		(from->filter.bytes == 0 && from->graph.rows > 0) !=
		(table->spec.filter == HGJ_FILTER_OFF && from->graph.rows > 0) ||
		__atomic_load_n(&from->parts_done, __ATOMIC_ACQUIRE) != from->nparts)
		return hgj_fail(err, HGJ_INVALID,
						"the image is not one of this table");
	hgj_cpu_free_chunks(table);
	*g = from->graph;
	g->longest = from->longest;
	g->entries = image_at(from, from->entries);
	if (from->offsets > 0)
		g->offsets = image_at(from, from->offsets);
	if (from->slices > 0)
		g->slices = image_at(from, from->slices);
	if (from->bits > 0)
	{
		table->bits = image_at(from, from->bits);
		table->bits_bytes = (size_t) from->bits_bytes;
	}
	if (g->segments == HGJ_SEGMENTS_CSR)
	{
		if (table->spec.segments == HGJ_SEGMENTS_ELLPACK)
			g->notes |= HGJ_NOTE_ELLPACK_TOO_WIDE;
		else if (table->spec.segments == HGJ_SEGMENTS_SLICED)
			g->notes |= HGJ_NOTE_SLICED_TOO_WIDE;
	}
	table->filter = from->filter;
	if (from->filter_words > 0)
		table->filter.words = image_at(from, from->filter_words);
	table->filter_state = &from->filter_state;
	table->image = from;
	table->total_rows = from->total_rows;
	if (table->share_stage != SHARE_PLAN)
		table->spec.memory_limit = table->share_limit;
	table->built = true;
	hgj_cpu_plan_probe(table);
	hgj_cpu_plan_filter(table);
	return HGJ_OK;
}
