/*-------------------------------------------------------------------------
 *
 * device_rows_kept.c
 *	  Rows that a pipeline returns (device_rows.c), of an outer table whose columns are kept
 *	  in memory: the device looks at all of them, and the host at those that come out.
 *
 * 1. Beside the pipeline for batches there is one for kept rows, if it can do with columns
 *	  of the bottom join's outer table, its quals among the instructions, and few rows are
 *	  expected to come out.  It comes first.
 *	  A join without any below has no pipeline for batches: where this one has nothing left,
 *	  it goes on by itself.
 * 2. Ranges of pages are pushed (device_kept.c), as many rows at once as what comes out of
 *	  them takes one or two portions, and all of it is fetched.
 * 3. What has been fetched is put in order by input row.  Of the next input rows, as many as
 *	  an outer batch has room for, the bottom join's source takes the columns that the joins
 *	  want (scan/chosen_rows.c): these are the batch, and what came out of them, with rows
 *	  numbered as there, is the portion that device_blocks.c makes blocks of.
 * 4. Pages that no range had, or whose range the engine did not take, are left to the
 *	  bottom join's source, which reads them as ever.
 *
 * If the pipeline fails before anything of the push at hand has left, its ranges are left, too.
 *
 * Memory: arrays in the query's context; the pipeline see device_start.c.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/guc.h"
#include "expr/demand.h"
#include "executor/executor.h"
#include "join/join.h"
#include "kept/store.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "pipeline/device_rows.h"
#include "scan/heap_pages.h"
#include "utils/rel.h"

/* Rows of a push, at first and at most, and how many may come out for it to be larger. */
#define HGJ_FIRST_PUSHED	(1024 * 1024)
#define HGJ_MOST_PUSHED		(8 * 1024 * 1024)
#define HGJ_LEAST_PUSHED	(256 * 1024)
#define HGJ_FEW_RETURNED	(128 * 1024)

/* Step 3: bits of an input row that are looked at together; two times will do. */
#define HGJ_ORDER_BITS		12
StaticAssertDecl(HGJ_MOST_PUSHED + HGJ_RUN_PAGES * MaxHeapTuplesPerPage <=
				 1 << (2 * HGJ_ORDER_BITS), "input rows have more bits than are looked at");

struct HgjDeviceChosen
{
	HgjPipelineState *device;	/* for kept rows */
	struct HgjDevicePush *push; /* while it has ranges to push; or NULL */
	uint64		most_rows;		/* of a push */
	uint64		pushed;			/* rows of the last one, */
	uint64		returned;		/* of which so many have come out, */
	bool		pending;		/* and more may */
	HgjPipeRows fetched;
	uint32		next;			/* of `sorted`: */
	uint64	   *sorted;			/* input row, and then number among those fetched */
	uint64	   *spare;
	uint32		capacity;		/* of these, and the following arrays */
	uint32		range;			/* that has the next row, and its first input row */
	uint32		range_start;
	uint32	   *rows;			/* of it, that are taken together */
	uint32	   *input;			/* the portion */
	uint32	   *row[HGJ_PIPE_JOINS];
	HgjPipelineInfo counted;	/* what instruments know of */
	HgjPageCounts pages;		/* and the join */
};

/* ---- step 1 --------------------------------------------------------------- */

/* Why the pipeline is not for kept rows. */
static HgjDeviceReason
find_reason(HgjPipelineState *k, HgjJoinState *upper)
{
	HgjDeviceReason reason = hgj_device_find_joins(k, upper);
	Plan	   *scan = k->scan ? k->scan->plan : NULL;

	if (reason != HGJ_DEVICE_FITS)
		return reason;
	if (!hgj_pages_may_be_kept(&hgj_join(k->joins[0])->outer) || scan->parallel_aware)
		return HGJ_DEVICE_SOURCE;
	if (contain_volatile_functions((Node *) scan->qual))
		return HGJ_DEVICE_VOLATILE;
	if (scan->qual != NIL && (!hgj_device_compile_filter(k, true) || !k->filter_kept))
		return HGJ_DEVICE_QUAL;
	if (!hgj_device_lower_rows(k))
		return k->code.reason;
	return hgj_device_fits_kept(k) ? HGJ_DEVICE_FITS : HGJ_DEVICE_COLUMN;
}

/* Is the table worth it, of which so many rows are expected to come out? */
static bool
is_worth_it(const HgjJoinState *bottom, const HgjJoinState *upper)
{
	Relation	rel = ((ScanState *) hgj_join(bottom)->outer_ps)->ss_currentRelation;
	double		tuples = RelationGetForm(rel)->reltuples;

	return tuples >= hgj_device_side_rows &&
		(hgj_force ||
		 hgj_join(upper)->css.ss.ps.plan->plan_rows * HGJ_CHOSEN_ROWS <= tuples);
}

/* At the first execution, in the query's context: d has its joins. */
void
hgj_device_plan_chosen(HgjPipelineState *d)
{
	HgjJoinState *upper = d->joins[d->njoins - 1];
	HgjJoinState *bottom = d->joins[0];
	HgjDeviceChosen *chosen;
	HgjPipelineState *k;

	if (!hgj_store_exists() || hgj_device_column_memory == 0 ||
		!hgj_pages_may_be_kept(&hgj_join(bottom)->outer) || !is_worth_it(bottom, upper))
		return;
	k = palloc0(sizeof(HgjPipelineState));
	k->rows = true;
	k->reason = find_reason(k, upper);
	if (k->reason == HGJ_DEVICE_FITS)
	{
		k->source.econtext = hgj_join(bottom)->outer.econtext;
		k->source.progress = hgj_join(bottom)->outer.progress;
		hgj_device_open_scan(k, hgj_join(upper)->css.ss.ps.state);
		if (k->reason == HGJ_DEVICE_FITS && !k->takes_kept)
			k->reason = HGJ_DEVICE_SOURCE;
	}
	if (k->reason != HGJ_DEVICE_FITS)
	{
		ereport(DEBUG1,
				(errmsg_internal("hashgraph_join: kept columns are read by the host: %s",
								 hgj_device_reason_text(k->reason))));
		return;
	}
	hgj_device_own(k, hgj_join(upper)->context);
	chosen = palloc0(sizeof(HgjDeviceChosen));
	chosen->device = k;
	d->out->chosen = chosen;
}

/*
 * At the start of an execution, when all tables are built: will rows be chosen?  d has not
 * been started.
 */
bool
hgj_device_start_chosen(HgjPipelineState *d)
{
	HgjDeviceChosen *c = d->out->chosen;
	HgjPipelineState *k;
	MemoryContext old;

	if (c == NULL || !hgj_device_reads_are_kept(c->device))
		return false;
	/* rows that were looked at before the build are among those that the device looks at */
	hgj_unpeek_outer(d->joins[0]);
	k = c->device;
	hgj_device_reset(k);
	k->engine = d->engine;
	hgj_device_start_programs(k);
	hgj_device_start(k, 0);
	memset(&c->counted, 0, sizeof(c->counted));
	c->pending = false;
	c->next = c->fetched.n = 0;
	if (!hgj_device_gave_up(k))
	{
		old = MemoryContextSwitchTo(hgj_join(d->joins[0])->context);
		c->push = hgj_device_begin_kept(k);
		MemoryContextSwitchTo(old);
	}
	if (c->push == NULL)
	{
		hgj_device_log(k);
		hgj_device_end(k);
		return false;
	}
	c->most_rows = HGJ_FIRST_PUSHED;
	k->ran = true;
	return true;
}

/* ---- its end --------------------------------------------------------------- */

/* Count what the scan has returned: as much less as its quals have dropped on the device. */
static void
count_scan(HgjPipelineState *k, uint64 dropped)
{
	HgjJoinState *bottom = k->joins[0];

	hgj_join(bottom)->outer.rows_read += k->source.rows_read - dropped;
	k->source.rows_read = 0;
	if (k->scan->instrument)
		k->scan->instrument->tuplecount -= (double) dropped;
	InstrCountFiltered1(k->scan, dropped);
}

/* The pages whose rows have been looked at are the bottom join's outer side's. */
static void
count_pages(HgjDeviceChosen *c)
{
	HgjPageCounts *pages = hgj_join_outer_pages(c->device->joins[0]);
	HgjPageCounts all = {0};

	hgj_pages_count(&c->device->source, &all);
	pages->kept += all.kept - c->pages.kept;
	pages->on_device |= all.kept > c->pages.kept;
	c->pages = all;
}

/* Step 4; or nobody wants more of them, nor of other pages. */
void
hgj_device_end_chosen(HgjPipelineState *d, bool go_on)
{
	HgjDeviceChosen *c = d->out->chosen;
	HgjPipelineState *k;

	if (c == NULL || c->push == NULL)
		return;
	k = c->device;
	hgj_device_end_kept(c->push);
	c->push = NULL;
	if (k->pipeline)
		k->engine->pipeline->info(k->pipeline, &k->info);
	count_scan(k, k->info.dropped);
	count_pages(c);
	hgj_chosen_end(&hgj_join(d->joins[0])->outer, go_on ? &k->source : NULL);
	hgj_device_end(k);
}

/*
 * It has failed.  Where nothing of the push has left, all its ranges are left, and what is
 * known of it is the join's, if there is no other pipeline.
 */
static void
give_up(HgjPipelineState *d)
{
	HgjDeviceChosen *c = d->out->chosen;
	HgjPipelineState *k = c->device;
	const HgjKeptRange *ranges;
	uint32		n;

	hgj_device_log(k);
	k->ran = false;
	if (d->out->left || d->out->alone)
	{
		d->run_reason = k->run_reason;
		d->error = k->error;
	}
	if (d->out->left)
		return;
	hgj_batch_clear(hgj_join_outer_batch(d->joins[0]));
	ranges = hgj_device_kept_ranges(c->push, &n);
	if (c->pending)
		hgj_ranges_take_back(&k->source, ranges, n, c->pushed);
	hgj_ranges_leave_rest(&k->source);
}

/* ---- step 2 --------------------------------------------------------------- */

/* The next push; false: there is nothing left. */
static bool
push_more(HgjPipelineState *d)
{
	HgjDeviceChosen *c = d->out->chosen;
	bool		more;

	hgj_device_rows_begin(d);
	if (c->pushed > 0 && c->returned < HGJ_FEW_RETURNED)
		c->most_rows = Min(c->most_rows * 2, HGJ_MOST_PUSHED);
	else if (c->returned > 2 * HGJ_FEW_RETURNED)
		c->most_rows = Max(c->most_rows / 2, HGJ_LEAST_PUSHED);
	hgj_device_limit_kept(c->push, c->most_rows);
	c->pushed = c->returned = 0;
	c->range = c->range_start = 0;
	more = hgj_device_next_kept(c->device, c->push, &c->pushed);
	c->pending = c->pushed > 0;
	return more;
}

static void
fetch_more(HgjPipelineState *d)
{
	HgjDeviceChosen *c = d->out->chosen;
	HgjPipelineState *k = c->device;
	HgjError	err = {0};

	c->next = c->fetched.n = 0;
	hgj_device_call(k, &err, k->engine->pipeline->fetch(k->pipeline, &c->fetched, &err));
	if (hgj_device_gave_up(k))
	{
		c->fetched.n = 0;
		return;
	}
	c->pending = !c->fetched.last;
	c->returned += c->fetched.n;
	k->received += (uint64) c->fetched.n * (1 + k->njoins) * sizeof(uint32);
	c->range = c->range_start = 0;
}

/* ---- step 3 --------------------------------------------------------------- */

/* Room for n rows in the arrays of a portion. */
static void
reserve(HgjPipelineState *d, uint32 n)
{
	HgjDeviceChosen *c = d->out->chosen;
	MemoryContext context = hgj_join(d->joins[0])->context;
	uint32	  **arrays[HGJ_PIPE_JOINS + 2];
	int			narrays = 0;

	if (n <= c->capacity)
		return;
	arrays[narrays++] = &c->rows;
	arrays[narrays++] = &c->input;
	for (int j = 0; j < d->njoins; j++)
		arrays[narrays++] = &c->row[j];
	c->capacity = 0;
	for (int i = 0; i < narrays; i++)
	{
		if (*arrays[i])
			pfree(*arrays[i]);
		*arrays[i] = NULL;
		*arrays[i] = MemoryContextAlloc(context, mul_size(n, sizeof(uint32)));
	}
	for (int i = 0; i < 2; i++)
	{
		uint64	  **array = i == 0 ? &c->sorted : &c->spare;

		if (*array)
			pfree(*array);
		*array = NULL;
		*array = MemoryContextAlloc(context, mul_size(n, sizeof(uint64)));
	}
	c->capacity = n;
}

/* By some bits of their input rows, from `sorted` to `spare`, and these change places. */
static void
order_by_bits(HgjDeviceChosen *c, uint32 n, int shift)
{
	uint32		starts[1 << HGJ_ORDER_BITS] = {0};
	uint32		mask = (1 << HGJ_ORDER_BITS) - 1;
	uint64	   *spare = c->spare;
	uint32		sum = 0;

	for (uint32 i = 0; i < n; i++)
		starts[c->sorted[i] >> shift & mask]++;
	for (uint32 b = 0; b <= mask; b++)
	{
		uint32		count = starts[b];

		starts[b] = sum;
		sum += count;
	}
	for (uint32 i = 0; i < n; i++)
		spare[starts[c->sorted[i] >> shift & mask]++] = c->sorted[i];
	c->spare = c->sorted;
	c->sorted = spare;
}

/* What has been fetched, by input row. */
static void
order_fetched(HgjPipelineState *d)
{
	HgjDeviceChosen *c = d->out->chosen;
	const uint32 *input = c->fetched.input;
	uint32		n = c->fetched.n;
	bool		ordered = true;

	reserve(d, n);
	for (uint32 i = 0; i < n; i++)
	{
		c->sorted[i] = (uint64) input[i] << 32 | i;
		ordered &= i == 0 || input[i - 1] <= input[i];
	}
	if (ordered)
		return;
	order_by_bits(c, n, 32);
	order_by_bits(c, n, 32 + HGJ_ORDER_BITS);
}

static inline uint32
input_of(const HgjDeviceChosen *c, uint32 i)
{
	return (uint32) (c->sorted[i] >> 32);
}

/* The next input rows of a range, each once, as the range numbers them; how many. */
static uint32
rows_of_range(HgjDeviceChosen *c, const HgjKeptRange *ranges, uint32 most)
{
	uint32		n = 0;
	uint32		end;

	while (input_of(c, c->next) - c->range_start >= ranges[c->range].nrows)
		c->range_start += ranges[c->range++].nrows;
	end = c->range_start + ranges[c->range].nrows;
	for (uint32 i = c->next; i < c->fetched.n && input_of(c, i) < end; i++)
	{
		uint32		row = input_of(c, i) - c->range_start;

		if (n > 0 && c->rows[n - 1] == row)
			continue;
		if (n == most)
			break;
		c->rows[n++] = row;
	}
	return n;
}

/* What came out of the first n of these, which are the batch's rows from `first` on. */
static void
add_to_portion(HgjPipelineState *d, uint32 n, uint32 first)
{
	HgjDeviceChosen *c = d->out->chosen;
	HgjPipeRows *portion = &d->out->fetched;
	uint32		row = 0;

	for (; n > 0 && c->next < c->fetched.n; c->next++)
	{
		uint32		number = (uint32) c->sorted[c->next];

		if (input_of(c, c->next) - c->range_start > c->rows[n - 1])
			break;
		while (c->rows[row] < input_of(c, c->next) - c->range_start)
			row++;
		c->input[portion->n] = first + row;
		for (int j = 0; j < d->njoins; j++)
			c->row[j][portion->n] = c->fetched.row[j][number];
		portion->n++;
	}
}

/* The next outer batch, and the portion that is about its rows. */
static void
make_portion(HgjPipelineState *d)
{
	HgjDeviceChosen *c = d->out->chosen;
	HgjJoinState *bottom = d->joins[0];
	HgjSource  *source = &hgj_join(bottom)->outer;
	HgjBatch   *batch = hgj_join_outer_batch(bottom);
	HgjPipeRows *portion = &d->out->fetched;
	uint32		most_rows = hgj_make_outer_batch(bottom);
	const HgjKeptRange *ranges = hgj_device_kept_ranges(c->push, NULL);

	portion->n = 0;
	portion->last = false;
	portion->input = c->input;
	for (int j = 0; j < d->njoins; j++)
		portion->row[j] = c->row[j];
	hgj_chosen_begin(source, batch);
	while (c->next < c->fetched.n && batch->nrows < most_rows)
	{
		uint32		before = batch->nrows;
		uint32		n = rows_of_range(c, ranges, most_rows - before);
		uint32		taken = hgj_chosen_take(source, batch, &ranges[c->range], c->rows, n,
											most_rows);

		CHECK_FOR_INTERRUPTS();
		add_to_portion(d, taken, before);
		if (taken < n)
			break;
	}
	hgj_outer_batch_made(bottom);
	d->out->base = 0;
	d->out->pushed = batch->nrows;
}

/*
 * Steps 2 to 4: the next portion.  False: there are no more, and the other pages are to be
 * read, or the pipeline has failed when rows had left.
 */
bool
hgj_device_next_chosen(HgjPipelineState *d)
{
	HgjDeviceChosen *c = d->out->chosen;
	instr_time	start;
	instr_time	end;
	bool		more = true;

	if (c == NULL || c->push == NULL)
		return false;
	INSTR_TIME_SET_CURRENT(start);
	while (more && c->next >= c->fetched.n)
	{
		CHECK_FOR_INTERRUPTS();
		if (!c->pending)
			more = push_more(d);
		if (c->pending && !hgj_device_gave_up(c->device))
		{
			fetch_more(d);
			order_fetched(d);
		}
		if (hgj_device_gave_up(c->device))
		{
			give_up(d);
			more = false;
		}
	}
	if (more)
		make_portion(d);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_ACCUM_DIFF(d->decode, end, start);
	return more;
}

/* The lower joins have done something of it: see hgj_device_leave(). */
void
hgj_device_leave_chosen(HgjPipelineState *d)
{
	HgjDeviceChosen *c = d->out->chosen;
	HgjPipelineInfo now = c->counted;

	if (c->device->pipeline)
		c->device->engine->pipeline->info(c->device->pipeline, &now);
	hgj_device_leave(c->device, &now, &c->counted);
}

/* Are rows being chosen? */
bool
hgj_device_chooses(const HgjPipelineState *d)
{
	return d->out->chosen != NULL && d->out->chosen->push != NULL;
}

/* What is known of it, or NULL; it may have ended. */
HgjPipelineState *
hgj_device_of_chosen(const HgjPipelineState *d)
{
	HgjDeviceChosen *c = d->out->chosen;

	if (c == NULL)
		return NULL;
	if (c->device->pipeline)
		c->device->engine->pipeline->info(c->device->pipeline, &c->device->info);
	return c->device;
}
