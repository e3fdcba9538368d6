/*-------------------------------------------------------------------------
 *
 * cpu_share.c
 *	  One graph built by several processes (share.h): the steps between two
 *	  barriers.
 *
 * 1. SHARE_PLAN: all make the same plan, from the sum of all parts, and know how
 *	  large the image is (cpu_share_image.c).
 * 2. SHARE_COUNT: each clears its share of what must be, and counts its rows per
 *	  bin.
 * 3. SHARE_SCATTER: from all counts each knows where its piece of every bin begins.
 *	  It moves its rows there, as entries (cpu_bin.c), and frees its chunks.
 * 4. SHARE_ORDER: each takes one bin after the other, until there is none, and
 *	  orders it by vertex, making the offsets.
 * 5. SHARE_SEGMENTS: the image is complete, unless padded segments were asked for,
 *	  and are affordable.  Then a second image is made from the first.
 *	  SHARE_PAD: each copies its share of the lists (cpu_share_pad.c).
 *
 * For a direct graph whose keys may be unique, before step 2:
 * 6. SHARE_CLEAR: each makes its share of the slots empty.
 *	  SHARE_PLACE: each writes its rows to the slots of their keys.
 *	  SHARE_VERIFY: each looks whether its rows are still there: of two processes
 *	  that found the same slot empty at the same time, one finds the other's row.
 *	  SHARE_UNIQUE: nobody found a key twice, and the image is complete; or else
 *	  step 2 follows, with another image.
 *
 * Where only keys are wanted, a bit per key comes before all these (cpu_bits.c).
 *
 * What a step that was cancelled has done is done again, with the same result,
 * except that a bin stays with who has taken it: share_bin says so; and that rows are
 * placed once: share_placed.  Entries of a bin are always all there between two calls
 * of poll (cpu_bin.c).
 *
 * The limit of a table's memory is lifted during the build, when images have to
 * keep to nparts times the limit, and the caller to what `peak` has said: chunks
 * make room for what orders bins, but not in every process alike.
 *
 * Chunks belong to the table, images to the caller.  Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "cpu_share.h"

/* Everybody's work on the image but this process's may still be going on. */
static void
end_image(Step *s)
{
	(void) __atomic_add_fetch(&s->image->parts_done, 1, __ATOMIC_ACQ_REL);
}

/* Ask for the image that rows are binned in. */
static HgjStatus
ask_binned(Step *s, const Image *old)
{
	Image		image;

	hgj_cpu_image_binned(s->table, s->build, &s->plan, &image);
	s->then = SHARE_COUNT;
	return hgj_cpu_share_ask(s, &image, old);
}

static HgjStatus
open_source(Step *s, Source *source)
{
	memset(source, 0, sizeof(*source));
	source->table = s->table;
	source->chunks = s->table->first_chunk;
	return hgj_cpu_source_open(source, s->err);
}

/* Ask for the first image, or the one after bits. */
static HgjStatus
ask_slots(Step *s, const Image *old)
{
	Image		image;

	if (!s->plan.try_unique || s->plan.rows > s->plan.vertices)
		return ask_binned(s, old);
	hgj_cpu_image_unique(s->table, s->build, &s->plan, &image);
	s->then = SHARE_CLEAR;
	return hgj_cpu_share_ask(s, &image, old);
}

static HgjStatus
step_plan(Step *s)
{
	Image		image;

	if (!s->plan.try_bits)
		return ask_slots(s, NULL);
	hgj_cpu_image_bits(s->table, s->build, &s->plan, &image);
	s->then = SHARE_SET_BITS;
	return hgj_cpu_share_ask(s, &image, NULL);
}

/* This process's bits, in memory of its own, and its share of the image's unset. */
static HgjStatus
step_set_bits(Step *s)
{
	HgjTable   *t = s->table;
	bool		twice;
	Image		image;
	Source		source;
	void	   *p;
	HgjStatus	status;

	hgj_cpu_image_bits(t, s->build, &s->plan, &image);
	status = hgj_cpu_share_begin(s, &image);
	if (status == HGJ_OK)
		status = hgj_cpu_share_fill(s, image.entries, 0, image.graph.entries_bytes);
	if (status == HGJ_OK && t->share_bits == NULL)
	{
		status = hgj_cpu_get(t, image.graph.entries_bytes, &p, s->err);
		if (status == HGJ_OK)
		{
			t->share_bits = p;
			t->share_bits_bytes = image.graph.entries_bytes;
		}
	}
	if (status != HGJ_OK)
		return status;
	status = open_source(s, &source);
	if (status == HGJ_OK)
		status = hgj_cpu_set_bits(t, &source, &s->plan, t->share_bits, &twice, s->err);
	hgj_cpu_source_close(&source);
	if (status == HGJ_OK)
		t->share_twice = twice;
	s->then = SHARE_MERGE_BITS;
	return status;
}

/*
 * Add them to the image's, unless anybody has found a key twice.  Words that a call that
 * was cancelled has added are not added again: they would be found there.
 */
static HgjStatus
step_merge_bits(Step *s)
{
	HgjTable   *t = s->table;
	uint64_t   *words = image_at(s->image, s->image->entries);
	uint64_t	n = t->share_bits_bytes / sizeof(uint64_t);
	uint64_t	twice = t->share_twice;

	while (t->share_placed < n && twice == 0 &&
		   !__atomic_load_n(&s->image->duplicate, __ATOMIC_RELAXED))
	{
		uint64_t	at = t->share_placed;
		uint64_t	to = n - at > HGJ_POLL_STEPS / 16 ? at + HGJ_POLL_STEPS / 16 : n;

		if (hgj_poll(&t->spec, s->err) != HGJ_OK)
			return HGJ_CANCELLED;
		for (; at < to; at++)
			if (t->share_bits[at] != 0)
				twice |= t->share_bits[at] &
					__atomic_fetch_or(&words[at], t->share_bits[at], __ATOMIC_RELAXED);
		t->share_placed = to;
		if (t->spec.flags & HGJ_TABLE_FIRST_MATCH)
			twice = 0;
	}
	if (twice != 0)
		__atomic_store_n(&s->image->duplicate, 1, __ATOMIC_RELAXED);
	hgj_cpu_put(t, t->share_bits, t->share_bits_bytes);
	t->share_bits = NULL;
	t->share_placed = 0;
	end_image(s);
	s->then = SHARE_UNIQUE;
	return HGJ_OK;
}

static HgjStatus
step_clear(Step *s)
{
	Image		image;
	HgjStatus	status;

	hgj_cpu_image_unique(s->table, s->build, &s->plan, &image);
	status = hgj_cpu_share_begin(s, &image);
	if (status == HGJ_OK)
		status = hgj_cpu_share_fill(s, image.entries, 0xFF, image.graph.entries_bytes);
	s->then = SHARE_PLACE;
	return status;
}

/* Whether a block's rows are in their slots. */
static bool
verify_block(const uint32_t *slots, const Block *block, uint64_t base)
{
	const uint64_t *keys = block->words[0];
	uint32_t	differ = 0;
	uint32_t	i;

	for (i = 0; i < block->n; i++)
		differ |= slots[keys[i] - base] ^ block->rows[i];
	return differ == 0;
}

/*
 * SHARE_PLACE, or SHARE_VERIFY: until anybody has found a key twice.  What a call
 * that was cancelled has placed is not placed again: rows may have the same id, so
 * that a slot with a row's own id is one that is taken.
 */
static HgjStatus
visit_slots(Step *s, bool verify)
{
	uint32_t   *slots = image_at(s->image, s->image->entries);
	bool		unique = true;
	uint64_t	rows = 0;
	Source		source;
	Block		block;
	HgjStatus	status = open_source(s, &source);

	while (status == HGJ_OK && unique &&
		   !__atomic_load_n(&s->image->duplicate, __ATOMIC_RELAXED))
	{
		status = hgj_cpu_source_next(&source, &block, s->err);
		if (status != HGJ_OK || block.n == 0)
			break;
		rows += block.n;
		if (verify)
			unique = verify_block(slots, &block, s->plan.base);
		else if (rows > s->table->share_placed)
		{
			unique = hgj_cpu_place_unique(slots, &block, s->plan.base);
			s->table->share_placed = rows;
		}
	}
	if (!unique)
		__atomic_store_n(&s->image->duplicate, 1, __ATOMIC_RELAXED);
	hgj_cpu_source_close(&source);
	return status;
}

static HgjStatus
step_place(Step *s)
{
	s->then = SHARE_VERIFY;
	return visit_slots(s, false);
}

static HgjStatus
step_verify(Step *s)
{
	HgjStatus	status = HGJ_OK;

	if (s->build->nparts > 1)
		status = visit_slots(s, true);
	if (status == HGJ_OK)
		end_image(s);
	s->then = SHARE_UNIQUE;
	return status;
}

/* The image is complete: nobody's rows are wanted apart from it. */
static HgjStatus
step_done(Step *s)
{
	hgj_cpu_free_chunks(s->table);
	s->next->done = true;
	s->then = SHARE_DONE;
	return HGJ_OK;
}

/* Has nobody found a key twice?  Then bits, or slots, are all there will be. */
static HgjStatus
step_unique(Step *s)
{
	if (!__atomic_load_n(&s->image->duplicate, __ATOMIC_RELAXED))
		return step_done(s);
	return s->image->graph.segments == HGJ_SEGMENTS_BITS ?
		ask_slots(s, s->image) : ask_binned(s, s->image);
}

/* A participant's run of counts. */
static uint32_t *
counts_of(Image *image, uint32_t part)
{
	return image_at(image, image->counts + part * image->counts_stride);
}

static HgjStatus
step_count(Step *s)
{
	size_t		bytes = s->plan.bins * sizeof(uint32_t);
	Image		image;
	Source		source;
	void	   *counts;
	HgjStatus	status;

	hgj_cpu_image_binned(s->table, s->build, &s->plan, &image);
	status = hgj_cpu_share_begin(s, &image);
	if (status == HGJ_OK)
		status = hgj_cpu_get(s->table, bytes, &counts, s->err);
	if (status != HGJ_OK)
		return status;
	status = open_source(s, &source);
	if (status == HGJ_OK)
		status = hgj_cpu_count_bins(s->table, &source, &s->plan, counts, s->err);
	hgj_cpu_source_close(&source);
	/* part 0 may not have written the image's header yet */
	if (status == HGJ_OK)
		memcpy(image_at(s->image, image.counts +
						s->build->part * image.counts_stride), counts, bytes);
	hgj_cpu_put(s->table, counts, bytes);
	s->then = SHARE_SCATTER;
	return status;
}

/* Where this process's piece of every bin begins; part 0 tells all where bins do. */
static void
scan_counts(Step *s, uint32_t *starts)
{
	uint32_t   *bin_starts = image_at(s->image, s->image->starts);
	uint32_t	nparts = s->build->nparts;
	uint32_t	sum = 0;
	uint32_t	p;
	uint32_t	b;

	for (b = 0; b < s->plan.bins; b++)
	{
		if (s->build->part == 0)
			bin_starts[b] = sum;
		for (p = 0; p < nparts; p++)
		{
			if (p == s->build->part)
				starts[b] = sum;
			sum += counts_of(s->image, p)[b];
		}
	}
	if (s->build->part == 0)
		bin_starts[b] = sum;
}

static HgjStatus
step_scatter(Step *s)
{
	size_t		bytes = s->plan.bins * sizeof(uint32_t);
	Source		source;
	void	   *starts;
	HgjStatus	status = hgj_cpu_get(s->table, bytes, &starts, s->err);

	if (status != HGJ_OK)
		return status;
	scan_counts(s, starts);
	status = hgj_cpu_populate(s->table, s->image, (size_t) s->image->bytes,
							  s->err);
	if (status != HGJ_OK)
	{
		hgj_cpu_put(s->table, starts, bytes);
		return status;
	}
	status = open_source(s, &source);
	if (status == HGJ_OK)
		status = hgj_cpu_scatter(s->table, &source, &s->plan,
								 image_at(s->image, s->image->packed), starts,
								 s->err);
	hgj_cpu_source_close(&source);
	hgj_cpu_put(s->table, starts, bytes);
	if (status == HGJ_OK)
		hgj_cpu_free_chunks(s->table);
	s->then = SHARE_ORDER;
	return status;
}

/* Order the bin at hand. */
static HgjStatus
order_bin(Step *s, Bin *bin)
{
	HgjTable   *t = s->table;
	const uint32_t *starts = image_at(s->image, s->image->starts);
	uint64_t	vertices = hgj_cpu_bin_vertices(&s->plan);
	uint32_t	b = t->share_bin - 1;
	uint32_t	longest = 0;
	uint32_t	seen = __atomic_load_n(&s->image->longest, __ATOMIC_RELAXED);
	HgjStatus	status;

	bin->first = b * vertices;
	bin->last = s->plan.vertices - bin->first < vertices ? s->plan.vertices :
		bin->first + vertices;
	bin->from = starts[b];
	bin->to = starts[b + 1];
	status = hgj_cpu_order_bin(t, &s->plan, bin, &longest, s->err);
	while (status == HGJ_OK && longest > seen &&
		   !__atomic_compare_exchange_n(&s->image->longest, &seen, longest, true,
										__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		continue;
	return status;
}

/*
 * Whether this process orders bins: no more do than have room for it where
 * everybody's chunks were.
 */
static bool
may_order(const Step *s, size_t scratch)
{
	uint64_t	room = s->plan.rows * (s->table->row_bytes + 1) +
		s->build->nparts * HGJ_SHARE_FIXED(s->table->spec.nwords);

	return s->build->part == 0 || s->build->part < room / (scratch + 1);
}

static HgjStatus
step_order(Step *s)
{
	HgjTable   *t = s->table;
	uint64_t	since_poll = 0;
	HgjStatus	status = HGJ_OK;
	Bin			bin;

	memset(&bin, 0, sizeof(bin));
	bin.entries = image_at(s->image, s->image->packed);
	bin.cells = (uint32_t *) image_at(s->image, s->image->offsets) + 1;
	if (s->build->part == 0)
		bin.cells[-1] = 0;
	if (plan_repacks(&s->plan))
		bin.lists = image_at(s->image, s->image->entries);
	bin.scratch_bytes = hgj_cpu_scratch_bytes(t, &s->plan);
	while (status == HGJ_OK && may_order(s, bin.scratch_bytes))
	{
		if (t->share_bin == 0)
			t->share_bin = 1 + __atomic_fetch_add(&s->image->next_bin, 1,
												  __ATOMIC_RELAXED);
		if (t->share_bin > s->plan.bins)
			break;
		if (bin.scratch == NULL && bin.scratch_bytes > 0)
		{
			void	   *p;

			status = hgj_cpu_get(t, bin.scratch_bytes, &p, s->err);
			bin.scratch = p;
		}
		if (status == HGJ_OK)
			status = order_bin(s, &bin);
		if (status != HGJ_OK)
			break;
		t->share_bin = 0;
		since_poll += bin.last - bin.first + (bin.to - bin.from);
		if (since_poll >= HGJ_POLL_STEPS)
		{
			status = hgj_poll(&t->spec, s->err);
			since_poll = 0;
		}
	}
	hgj_cpu_put(t, bin.scratch, bin.scratch_bytes);
	if (status == HGJ_OK)
		end_image(s);
	s->then = SHARE_SEGMENTS;
	return status;
}

static HgjStatus (*const stages[]) (Step *) = {
	[SHARE_PLAN] = step_plan,
	[SHARE_SET_BITS] = step_set_bits,
	[SHARE_MERGE_BITS] = step_merge_bits,
	[SHARE_CLEAR] = step_clear,
	[SHARE_PLACE] = step_place,
	[SHARE_VERIFY] = step_verify,
	[SHARE_UNIQUE] = step_unique,
	[SHARE_COUNT] = step_count,
	[SHARE_SCATTER] = step_scatter,
	[SHARE_ORDER] = step_order,
	[SHARE_SEGMENTS] = hgj_cpu_share_segments,
	[SHARE_PAD] = hgj_cpu_share_pad,
	[SHARE_DONE] = step_done,
};

/* Whether a step may be taken at all. */
static HgjStatus
check_step(const HgjTable *t, const HgjShareBuild *build, HgjError *err)
{
	if (t->built)
		return hgj_fail(err, HGJ_INVALID, "a step after build");
	if (t->spec.flags & HGJ_TABLE_DYNAMIC)
		return hgj_fail(err, HGJ_UNSUPPORTED,
						"a dynamic table is not built by several processes");
	if (build == NULL || build->parts == NULL || build->nparts < 1 ||
		build->nparts > HGJ_MOST_PARTS || build->part >= build->nparts ||
		build->parts[build->part].nrows != t->nrows)
		return hgj_fail(err, HGJ_INVALID, "the parts are not those of a build");
	if ((build->image == NULL) != (t->share_stage == SHARE_PLAN) ||
		(uintptr_t) build->image % HGJ_IMAGE_ALIGN != 0 ||
		(t->share_stage == SHARE_PAD && build->old_image == NULL))
		return hgj_fail(err, HGJ_INVALID, "an image is missing, or one too many");
	return hgj_check_build(t->nrows, t->max_row, build->total_rows, err);
}

/* HgjShareMethods.step */
HgjStatus
hgj_cpu_share_step(HgjTable *table, const HgjShareBuild *build,
				   HgjShareNext *next, HgjError *err)
{
	HgjStatus	status = check_step(table, build, err);
	Step		s;

	memset(next, 0, sizeof(*next));
	if (status != HGJ_OK)
		return status;
	memset(&s, 0, sizeof(s));
	s.table = table;
	s.build = build;
	s.image = build->image;
	s.next = next;
	s.err = err;
	status = hgj_poll(&table->spec, err);
	if (status == HGJ_OK)
		status = hgj_cpu_share_plan(table, build, &s.plan, err);
	if (status != HGJ_OK)
		return status;
	if (table->share_stage == SHARE_PLAN)
		table->share_limit = table->spec.memory_limit;
	status = stages[table->share_stage] (&s);
	if (status == HGJ_OK)
	{
		table->share_stage = s.then;
		table->spec.memory_limit = 0;	/* until attach */
	}
	return status;
}
