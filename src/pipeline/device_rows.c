/*-------------------------------------------------------------------------
 *
 * device_rows.c
 *	  Run a chain of HashGraphJoins as a pipeline of their engine, for the rows of
 *	  the upper one: between the joins, batches stay on the device.
 *
 * The upper join's state machine is phases.c's; this stands where it fetches an
 * outer batch, and probes.
 *
 * 1. Build all tables and start the pipeline (device_start.c), with the columns
 *	  that keys and clauses of the joins read, and no others.
 * 2. Read an outer batch of the bottom join, push its key words and those of
 *	  its columns that the upper joins' keys and clauses read, and fetch what comes
 *	  out: for each row its number in the batch, and that of its record in the row
 *	  store of each join.
 * 3. What has come out becomes blocks of outer rows of the upper join, and their
 *	  matches (device_blocks.c).
 * 4. Where columns of the outer table are kept in memory, a pipeline of its own comes first,
 *	  which the device has the rows of (device_rows_kept.c).
 *
 * What has come out of a push is counted when all of it has been fetched.
 *
 * If the pipeline fails before anything of the batch at hand has left, the joins go
 * on one by one, with that batch; failover.c knows the rest.
 *
 * Memory: arrays in the query's context; the pipeline see device_start.c.  No
 * locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/counters.h"
#include "base/guc.h"
#include "executor/executor.h"
#include "join/join.h"
#include "miscadmin.h"
#include "pipeline/device_rows.h"

/* Rows of an outer batch: they are to be in the processor's caches still. */
#define HGJ_PUSH_ROWS		65536

static void device_rows_stop(HgjJoinState *upper);

/* Nothing has been pushed or fetched. */
static void
reset_rows(HgjDeviceRows *out)
{
	out->left = out->pending = out->rest = false;
	out->batches = 0;
	out->most_rows = HGJ_PUSH_ROWS;
	out->pushed = out->base = out->next = 0;
	out->fetched.n = out->nblock = 0;
	memset(&out->counted, 0, sizeof(out->counted));
}

/* Lower it; false: d->code.reason says why that cannot be. */
bool
hgj_device_lower_rows(HgjPipelineState *d)
{
	hgj_device_write_joins(d);
	hgj_device_write_end(d);
	return d->code.reason == HGJ_DEVICE_FITS;
}

/* At the first execution: can it be done, and how? */
static HgjPipelineState *
plan_rows(HgjJoinState *upper)
{
	MemoryContext old = MemoryContextSwitchTo(hgj_join(upper)->context);
	HgjPipelineState *d = palloc0(sizeof(HgjPipelineState));

	d->rows = d->of_batch = true;
	d->out = palloc0(sizeof(HgjDeviceRows));
	d->out->alone = hgj_source_join(&hgj_join(upper)->outer) == NULL;
	reset_rows(d->out);
	hgj_join_use_pipeline(upper, d);
	hgj_device_own(d, hgj_join(upper)->context);
	d->reason = hgj_device_find_joins(d, upper);
	if (d->reason == HGJ_DEVICE_FITS && !hgj_device_lower_rows(d))
		d->reason = d->code.reason;
	if (d->reason == HGJ_DEVICE_FITS)
		hgj_device_plan_chosen(d);
	if (d->reason == HGJ_DEVICE_FITS && d->out->alone && d->out->chosen == NULL)
		d->reason = HGJ_DEVICE_SOURCE;
	MemoryContextSwitchTo(old);
	return d;
}

/* Would there be anything between two joins, or are there kept rows to choose from? */
static bool
has_chain(HgjJoinState *upper)
{
	const HgjSource *outer = &hgj_join(upper)->outer;
	const HgjPipelineMethods *methods;

	if (!hgj_on_device(upper) ||
		(hgj_source_join(outer) == NULL &&
		 (hgj_device_column_memory == 0 || !hgj_pages_may_be_kept(outer))))
		return false;
	methods = hgj_join_engine(upper)->pipeline;
	return methods != NULL && methods->fetch != NULL;
}

/* The lower joins have done something, since hgj_device_enter(). */
static void
leave_lower_joins(HgjPipelineState *d)
{
	HgjPipelineInfo now = d->out->counted;

	if (hgj_device_chooses(d))
	{
		hgj_device_leave_chosen(d);
		return;
	}
	if (d->pipeline)
		d->engine->pipeline->info(d->pipeline, &now);
	hgj_device_leave(d, &now, &d->out->counted);
}

/* The joins below, as if they had been asked for their first row. */
static void
start_lower_joins(HgjPipelineState *d)
{
	for (int j = d->njoins - 2; j >= 0; j--)
	{
		HgjJoinState *join = d->joins[j];

		HgjPipelineState *own = hgj_join_pipeline(join);

		hgj_join_rescan_changed(join);
		/* nor has it returned anything for a pipeline of its own */
		if (own)
			reset_rows(own->out);
		hgj_join_start_below(join, d->joins[d->njoins - 1]);
	}
}

/* Not now: what the bottom join has looked at is to be read again by itself. */
static void
leave_to_host(HgjPipelineState *d)
{
	if (!d->out->alone)
		hgj_device_log(d);
	hgj_device_release(d);
	hgj_unpeek_outer(d->joins[0]);
}

/* Step 1: the pipeline that takes batches; it is the last one that may have rows. */
static void
start_for_batches(HgjPipelineState *d)
{
	if (d->out->alone)
		d->run_reason = HGJ_DEVICE_SOURCE;
	else
		hgj_device_start(d, 0);
}

/*
 * Step 1, at the start of an execution of the upper join: may its rows come from
 * a pipeline?  Sets *empty where there are none.
 */
static bool
device_rows_start(HgjJoinState *upper, bool *empty)
{
	HgjPipelineState *d = hgj_join_pipeline(upper);

	*empty = false;
	if (d != NULL)
	{
		device_rows_stop(upper);
		reset_rows(d->out);
	}
	if (!has_chain(upper))
	{
		if (d != NULL && d->ran && d->run_reason == HGJ_DEVICE_FITS)
			d->run_reason =
				hgj_on_device(upper) ? HGJ_DEVICE_PASSES : HGJ_DEVICE_FAILED;
		return false;
	}
	if (d == NULL)
		d = plan_rows(upper);
	hgj_device_reset(d);
	if (d->reason == HGJ_DEVICE_FITS && hgj_join_gives_single_rows(upper))
		d->run_reason = HGJ_DEVICE_RAISES;
	if (hgj_device_reason(d) != HGJ_DEVICE_FITS)
	{
		if (!d->out->alone)
			hgj_device_log(d);
		return false;
	}

	start_lower_joins(d);
	hgj_device_enter(d);
	if (hgj_device_build(d, empty) && !*empty)
	{
		if (hgj_join(d->joins[0])->build->long_keys)
			d->run_reason = HGJ_DEVICE_KEY;
		hgj_device_start_programs(d);
		if (!hgj_device_gave_up(d) && !hgj_device_start_chosen(d))
			start_for_batches(d);
	}
	leave_lower_joins(d);
	if (hgj_device_gave_up(d))
	{
		leave_to_host(d);
		return false;
	}
	d->ran = true;
	if (*empty)
		return true;
	d->out->active = true;
	hgj_join_lend_pairs(upper);
	return true;
}

/* Is it where the upper join's rows come from? */
static bool
device_rows_active(const HgjJoinState *upper)
{
	const HgjPipelineState *d = hgj_join_pipeline(upper);

	return d != NULL && d->out->active;
}

/* Has the upper join been given rows of the outer batch at hand? */
static bool
device_rows_left(const HgjJoinState *upper)
{
	const HgjPipelineState *d = hgj_join_pipeline(upper);

	return d != NULL && d->out->left;
}

/* There is nothing more to come, or nobody wants it: before tables are freed. */
static void
device_rows_stop(HgjJoinState *upper)
{
	HgjPipelineState *d = hgj_join_pipeline(upper);

	if (d == NULL)
		return;
	if (d->out->active)
		hgj_join_take_back_pairs(upper);
	d->out->active = false;
	hgj_device_end_chosen(d, false);
	for (int j = 0; j < d->njoins - 1; j++)
		hgj_join_progress_end(d->joins[j]);
	hgj_device_release(d);
}

/* The pipeline has failed: who goes on, and how? */
static void
give_up(HgjPipelineState *d)
{
	HgjJoinState *upper = d->joins[d->njoins - 1];

	hgj_device_log(d);
	device_rows_stop(upper);
	if (d->out->left)
	{
		hgj_device_fails(upper, d->error.status, d->error.message);
		return;
	}
	for (int j = 0; j < d->njoins; j++)
		hgj_join_resume(d->joins[j]);
}

/* One input column of the next n rows of the outer batch. */
static bool
put_input(const HgjPipelineState *d, const HgjDeviceColumn *column, uint32 n,
		  const HgjPipeStage *stage)
{
	const HgjBatch *batch = hgj_join_outer_batch(d->joins[0]);
	uint32		first = d->out->pushed;
	uint64	   *validity = stage->validity[column->number];
	const HgjVector *vector;

	if (column->join == HGJ_DEVICE_WORD)
	{
		memcpy(stage->values[column->number], batch->words[column->from] + first,
			   n * sizeof(uint64));
		if (batch->nsel == batch->nrows)
			return false;
		memset(validity, 0, (n + 63) / 64 * sizeof(uint64));
		for (uint32 i = 0; i < batch->nsel; i++)
		{
			uint32		row = batch->sel[i] - first;

			if (batch->sel[i] >= first && row < n)
				validity[row / 64] |= UINT64CONST(1) << (row % 64);
		}
		return true;
	}
	vector = &batch->vectors[column->from];
	memcpy(stage->values[column->number],
		   (const char *) vector->values + (Size) first * column->width,
		   (Size) n * column->width);
	if (!vector->has_nulls)
		return false;
	memset(validity, 0xFF, (n + 63) / 64 * sizeof(uint64));
	for (uint32 i = 0; i < n; i++)
		if (hgj_vector_is_null(vector, first + i))
			validity[i / 64] &= ~(UINT64CONST(1) << (i % 64));
	return true;
}

/* Step 2: more of the outer batch. */
static void
push_rows(HgjPipelineState *d)
{
	const HgjPipelineMethods *methods = d->engine->pipeline;
	HgjDeviceRows *out = d->out;
	HgjPipeStage stage;
	HgjError	err = {0};
	uint64		nulls = 0;
	uint32		n;

	if (d->pipeline == NULL)
		start_for_batches(d);
	if (hgj_device_gave_up(d))
		return;
	hgj_device_call(d, &err, methods->stage(d->pipeline, &stage, &err));
	if (hgj_device_gave_up(d))
		return;
	/* what is pushed of a batch is returned, or joined in another way, as a whole */
	out->most_rows = Min(out->most_rows, stage.capacity);
	n = Min(stage.capacity, hgj_join_outer_batch(d->joins[0])->nrows - out->pushed);
	for (int i = 0; i < d->ncolumns; i++)
		if (d->columns[i].join < 0 && put_input(d, &d->columns[i], n, &stage))
			nulls |= UINT64CONST(1) << d->columns[i].number;
	hgj_device_call(d, &err, methods->push(d->pipeline, n, nulls, &err));
	out->base = out->pushed;
	out->pushed += n;
	out->pending = true;
}

/* Something is about to be pushed, of which nothing has left. */
void
hgj_device_rows_begin(HgjPipelineState *d)
{
	/* they have returned something, and cannot start again by themselves */
	for (int j = 0; j < d->njoins - 1 && d->out->batches > 0; j++)
		hgj_join_has_returned(d->joins[j]);
	d->out->batches++;
	hgj_join_begins_batch(d->joins[d->njoins - 1]);
	d->out->left = false;
}

/* Step 2: the next outer batch of the bottom join.  False: there is none. */
static bool
read_batch(HgjPipelineState *d)
{
	instr_time	start;
	instr_time	end;
	bool		more;

	hgj_device_rows_begin(d);
	INSTR_TIME_SET_CURRENT(start);
	more = hgj_join_read_outer(d->joins[0], d->out->most_rows);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_ACCUM_DIFF(d->decode, end, start);
	d->out->pushed = 0;
	return more;
}

/* Push more of the outer batch, or of the next one.  False: there is none. */
static bool
push_more(HgjPipelineState *d)
{
	HgjDeviceRows *out = d->out;

	if ((out->batches == 0 || out->pushed == hgj_join_outer_batch(d->joins[0])->nrows) &&
		!read_batch(d))
		return false;
	push_rows(d);
	return true;
}

/* Step 4: the next portion of rows that have been chosen.  False: there are no more. */
static bool
fetch_chosen(HgjPipelineState *d)
{
	bool		more;

	if (!hgj_device_chooses(d))
		return false;
	hgj_device_enter(d);
	more = hgj_device_next_chosen(d);
	leave_lower_joins(d);
	if (more)
		return true;
	hgj_device_end_chosen(d, true);
	d->out->rest = d->out->alone && !hgj_device_gave_up(d);
	return false;
}

/*
 * Steps 2 and 4: the next portion of rows.  False: there are no more of a pipeline, or it
 * has failed.  Instruments of the lower joins run here only: the executor may end
 * while a portion is being returned.
 */
static bool
fetch_rows(HgjPipelineState *d)
{
	HgjDeviceRows *out = d->out;
	HgjError	err = {0};
	bool		more = true;

	out->next = out->fetched.n = 0;
	if (fetch_chosen(d))
	{
		hgj_device_rows_order(d);
		return true;
	}
	if (hgj_device_gave_up(d) || out->alone)
		return false;
	hgj_device_enter(d);
	while (more && out->fetched.n == 0)
	{
		CHECK_FOR_INTERRUPTS();
		if (!out->pending)
			more = push_more(d);
		if (more && !hgj_device_gave_up(d))
			hgj_device_call(d, &err,
							d->engine->pipeline->fetch(d->pipeline, &out->fetched,
													   &err));
		if (hgj_device_gave_up(d))
		{
			out->fetched.n = 0;
			more = false;
		}
		if (more)
			out->pending = !out->fetched.last;
	}
	leave_lower_joins(d);
	if (!more)
		return false;
	d->received += (uint64) out->fetched.n * (1 + d->njoins) * sizeof(uint32);
	hgj_device_rows_order(d);
	return true;
}

/*
 * In place of an outer batch and of probing with it: the next block.  False: there
 * is none, or the pipeline has failed, and then it is active no more.
 */
static bool
device_rows_fetch(HgjJoinState *upper)
{
	HgjPipelineState *d = hgj_join_pipeline(upper);

	if (d->out->next >= d->out->fetched.n && !fetch_rows(d))
	{
		if (hgj_device_gave_up(d))
			give_up(d);
		else
			device_rows_stop(upper);
		if (d->out->rest)
			hgj_restart_outer(upper);
		return false;
	}
	hgj_device_rows_block(d);
	return true;
}

/* Step 3: the block's matches. */
static void
device_rows_matches(HgjJoinState *upper)
{
	const HgjPipelineState *d = hgj_join_pipeline(upper);

	hgj_join_give_matches(upper, d->out->probe, d->out->rows[d->njoins - 1], d->out->nblock);
}

/* What EXPLAIN ANALYZE says of it. */
static void
device_rows_explain(const HgjJoinState *upper, ExplainState *es)
{
	HgjPipelineState *d = hgj_join_pipeline(upper);
	HgjPipelineState *k;
	HgjPipelineInfo info;

	if (d == NULL || (d->out->alone && !d->ran))
		return;
	if (d->pipeline)
		d->engine->pipeline->info(d->pipeline, &d->info);
	info = d->info;
	k = hgj_device_of_chosen(d);
	if (k && k->ran)
	{
		info.rows += k->info.rows;
		info.kept_rows += k->info.kept_rows;
		info.kept_bytes += k->info.kept_bytes;
		info.sent += k->info.sent;
		info.memory = Max(info.memory, k->info.memory);
		info.transfer_ms += k->info.transfer_ms;
		info.kernel_ms += k->info.kernel_ms;
		info.threads = Max(info.threads, k->info.threads);
		info.most_rows += k->info.most_rows;
	}
	hgj_device_explain(d, &info, es);
}

static bool
device_rows_gave_up(const HgjJoinState *upper)
{
	const HgjPipelineState *d = hgj_join_pipeline(upper);

	return hgj_device_gave_up(d) || d->out->rest;
}

static void
device_rows_count(const HgjJoinState *upper, HgjCounters *counters)
{
	const HgjPipelineState *d = hgj_join_pipeline(upper);
	const HgjPipelineState *k = d ? hgj_device_of_chosen(d) : NULL;

	if (k)
		hgj_device_count_work(k, counters);
	if (d && (d->ran || !d->out->alone))
		hgj_device_count(d, counters);
}

static const HgjRowProber device_rows = {
	.start = device_rows_start,
	.active = device_rows_active,
	.left = device_rows_left,
	.fetch = device_rows_fetch,
	.gave_up = device_rows_gave_up,
	.matches = device_rows_matches,
	.stop = device_rows_stop,
	.explain = device_rows_explain,
	.count = device_rows_count
};

/* From _PG_init: joins may ask for pipelines. */
void
hgj_install_device_rows(void)
{
	hgj_row_prober = &device_rows;
}
