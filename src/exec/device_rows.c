/*-------------------------------------------------------------------------
 *
 * device_rows.c
 *	  Run a chain of HashGraphJoins as a pipeline of their engine, for the rows of
 *	  the upper one: between the joins, batches stay on the device.
 *
 * The upper join's state machine is node.c's; this stands where it fetches an
 * outer batch, and probes.
 *
 * 1. Build all tables and start the pipeline (device_start.c), with the columns
 *	  that keys and clauses of the joins read, and no others.
 * 2. Read an outer batch of the bottom join, push its key words and those of
 *	  its columns that the upper joins' keys and clauses read, and fetch what comes
 *	  out: for each row its number in the batch, and that of its record in the row
 *	  store of each join.
 * 3. Where no row of the batch has come out twice, take them in the order of the
 *	  batch, and those that the same joins have filled with NULLs together: these
 *	  are a block.  Otherwise a block is some thousands of them.
 * 4. From the bottom up, make each lower join's output of the block out of its
 *	  outer batch and its records, as ever (output.c), and let it be the outer batch
 *	  of the next one.  Columns are moved for rows that the upper join returns,
 *	  not for those that a join in between drops.
 * 5. The upper join's matches are the block's last row numbers.
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

#include "exec/device.h"
#include "exec/join_state.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Rows of an outer batch: they are to be in the processor's caches still. */
#define HGJ_PUSH_ROWS		65536

/* What the pipeline has returned, and how far the upper join has come with it. */
typedef struct HgjDeviceRows
{
	bool		active;			/* the upper join's rows come from here */
	bool		left;			/* some of the outer batch at hand have */
	bool		reading;		/* lower joins' instruments run */
	uint64		batches;		/* outer batches that have been read */
	uint32		pushed;			/* rows of the one at hand */
	uint32		base;			/* the first one of the last push */
	bool		pending;		/* more of that is to be fetched */
	HgjPipeRows fetched;
	uint32		next;			/* of order */
	bool		unique;			/* no input row twice, and order is ascending */
	uint32		filled[256];	/* first of order, for each set of filled joins */
	uint32	   *order;			/* numbers of fetched rows */
	uint32	   *sorted;			/* the same, before they are sorted */
	uint32		capacity;		/* of these, and the following arrays */
	uint32	   *rows[HGJ_PIPE_JOINS];	/* of the block, per join */
	uint32	   *outer_rows;		/* of the block, */
	uint32	   *probe;			/* and of the upper join's outer batch */
	uint32	   *identity;
	uint32	   *seen;			/* per row of the push: its number in fetched */
	uint32		seen_capacity;
	uint32		nblock;
	bool		matched;		/* the block's rows have a match of the upper join */
	uint32	   *probe_rows;		/* the upper join's own arrays of matches */
	uint32	   *build_rows;
	HgjPipelineInfo counted;	/* what instruments know of */
} HgjDeviceRows;

static void
release_pipeline(void *arg)
{
	hgj_device_release(arg);
}

/* At the first execution: can it be done, and how? */
static HgjDevice *
plan_rows(HgjJoinState *upper)
{
	MemoryContext old = MemoryContextSwitchTo(upper->context);
	HgjDevice  *d = palloc0(sizeof(HgjDevice));
	MemoryContextCallback *callback = palloc0(sizeof(MemoryContextCallback));

	d->rows = d->spec.rows = true;
	d->out = palloc0(sizeof(HgjDeviceRows));
	upper->pipeline = d;
	callback->func = release_pipeline;
	callback->arg = d;
	MemoryContextRegisterResetCallback(upper->context, callback);
	d->reason = hgj_device_find_joins(d, upper);
	if (d->reason == HGJ_DEVICE_FITS && !hgj_device_write(d, false))
		d->reason = d->code.reason;
	MemoryContextSwitchTo(old);
	return d;
}

/* Would there be anything between two joins? */
static bool
has_chain(const HgjJoinState *upper)
{
	return upper->on_device && upper->outer.methods == &hgj_source_batches &&
		upper->engine->pipeline != NULL && upper->engine->pipeline->fetch != NULL;
}

/* Lower joins are about to do something, or have done it. */
static void
start_instruments(HgjDevice *d)
{
	for (int j = d->njoins - 2; j >= 0 && !d->out->reading; j--)
		if (d->joins[j]->css.ss.ps.instrument)
			InstrStartNode(d->joins[j]->css.ss.ps.instrument);
	d->out->reading = true;
}

/* What has come out of the joins since the last time. */
static void
stop_instruments(HgjDevice *d)
{
	HgjPipelineInfo *seen = &d->out->counted;
	HgjPipelineInfo now = *seen;

	if (!d->out->reading)
		return;
	d->out->reading = false;
	if (d->pipeline)
		d->engine->pipeline->info(d->pipeline, &now);
	for (int j = 0; j < d->njoins; j++)
	{
		HgjJoinState *join = d->joins[j];
		PlanState  *ps = &join->css.ss.ps;
		uint64		joined = now.joined[j] - seen->joined[j];

		InstrCountFiltered1(ps, now.filtered[j] - seen->filtered[j]);
		InstrCountFiltered2(ps, now.removed[j] - seen->removed[j]);
		if (j == d->njoins - 1)
			break;
		d->joins[j + 1]->outer.rows_read += joined;
		join->counts.returned += joined;
		if (ps->instrument)
			InstrStopNode(ps->instrument, joined);
	}
	*seen = now;
}

/* Nothing has been pushed or fetched. */
static void
reset_rows(HgjDeviceRows *out)
{
	out->left = out->pending = false;
	out->batches = 0;
	out->pushed = out->base = out->next = 0;
	out->fetched.n = out->nblock = 0;
	memset(&out->counted, 0, sizeof(out->counted));
}

/* The joins below, as if they had been asked for their first row. */
static void
start_lower_joins(HgjDevice *d)
{
	for (int j = d->njoins - 2; j >= 0; j--)
	{
		HgjJoinState *join = d->joins[j];

		if (join->css.ss.ps.chgParam != NULL)
			ExecReScan(&join->css.ss.ps);
		join->careful = d->joins[d->njoins - 1]->careful;
		hgj_prepare(join);
	}
}

/* Not now: what the bottom join has looked at is to be read again by itself. */
static void
leave_to_host(HgjDevice *d)
{
	HgjJoinState *bottom = d->joins[0];

	hgj_device_log(d);
	hgj_device_release(d);
	if (!bottom->outer_filled)
		return;
	bottom->outer.methods->rewind(&bottom->outer);
	hgj_restart_outer(bottom);
	hgj_rescan_uncounted(bottom);
	bottom->outer_seen = true;
}

/*
 * Step 1, at the start of an execution of the upper join: may its rows come from
 * a pipeline?  Sets *empty where there are none.
 */
bool
hgj_device_rows_start(HgjJoinState *upper, bool *empty)
{
	HgjDevice  *d = upper->pipeline;

	*empty = false;
	if (d != NULL)
	{
		hgj_device_rows_stop(upper);
		reset_rows(d->out);
	}
	if (!has_chain(upper))
		return false;
	if (d == NULL)
		d = plan_rows(upper);
	d->ran = false;
	d->run_reason = HGJ_DEVICE_FITS;
	d->poll.disabled = false;
	INSTR_TIME_SET_ZERO(d->decode);
	memset(&d->info, 0, sizeof(d->info));
	memset(&d->error, 0, sizeof(d->error));
	if (d->reason == HGJ_DEVICE_FITS && upper->careful && upper->single_rows)
		d->run_reason = HGJ_DEVICE_RAISES;
	if (hgj_device_reason(d) != HGJ_DEVICE_FITS)
	{
		hgj_device_log(d);
		return false;
	}

	start_lower_joins(d);
	start_instruments(d);
	if (hgj_device_build(d, empty) && !*empty)
	{
		if (d->joins[0]->long_keys)
			d->run_reason = HGJ_DEVICE_KEY;
		hgj_device_start_programs(d);
		if (!hgj_device_gave_up(d) && !hgj_device_write(d, true))
			d->run_reason = d->code.reason;
		if (!hgj_device_gave_up(d))
			hgj_device_start(d, 0);
	}
	stop_instruments(d);
	if (hgj_device_gave_up(d))
	{
		leave_to_host(d);
		return false;
	}
	d->ran = true;
	if (*empty)
		return true;
	d->out->active = true;
	d->out->probe_rows = upper->pairs.probe_rows;
	d->out->build_rows = upper->pairs.build_rows;
	return true;
}

/* Is it where the upper join's rows come from? */
bool
hgj_device_rows_active(const HgjJoinState *upper)
{
	return upper->pipeline != NULL && upper->pipeline->out->active;
}

/* Has the upper join been given rows of the outer batch at hand? */
bool
hgj_device_rows_left(const HgjJoinState *upper)
{
	return upper->pipeline != NULL && upper->pipeline->out->left;
}

/* There is nothing more to come, or nobody wants it: before tables are freed. */
void
hgj_device_rows_stop(HgjJoinState *upper)
{
	HgjDevice  *d = upper->pipeline;

	if (d == NULL)
		return;
	if (d->out->active)
	{
		upper->pairs.probe_rows = d->out->probe_rows;
		upper->pairs.build_rows = d->out->build_rows;
		upper->pairs.n = upper->next_pair = 0;
	}
	stop_instruments(d);
	d->out->active = false;
	hgj_device_release(d);
}

/* The pipeline has failed: who goes on, and how? */
static void
give_up(HgjDevice *d)
{
	HgjJoinState *upper = d->joins[d->njoins - 1];
	HgjJoinState *bottom = d->joins[0];

	hgj_device_log(d);
	hgj_device_rows_stop(upper);
	if (d->out->left)
	{
		hgj_device_fails(upper, d->error.status, d->error.message);
		return;
	}
	for (int j = 0; j < d->njoins; j++)
	{
		d->joins[j]->phase = HGJ_PHASE_FETCH;
		if (j > 0)
			hgj_restart_outer(d->joins[j]);
	}
	bottom->outer_filled = bottom->outer_batch->nrows > 0;
}

/* One input column of the next n rows of the outer batch. */
static bool
put_input(const HgjDevice *d, const HgjDeviceColumn *column, uint32 n,
		  const HgjPipeStage *stage)
{
	const HgjBatch *batch = d->joins[0]->outer_batch;
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
push_rows(HgjDevice *d)
{
	const HgjPipelineMethods *methods = d->engine->pipeline;
	HgjDeviceRows *out = d->out;
	HgjPipeStage stage;
	HgjError	err = {0};
	uint64		nulls = 0;
	uint32		n;

	while (!hgj_device_done(d, methods->stage(d->pipeline, &stage, &err), &err))
		;
	if (hgj_device_gave_up(d))
		return;
	n = Min(stage.capacity, d->joins[0]->outer_batch->nrows - out->pushed);
	for (int i = 0; i < d->ncolumns; i++)
		if (d->columns[i].join < 0 && put_input(d, &d->columns[i], n, &stage))
			nulls |= UINT64CONST(1) << d->columns[i].number;
	while (!hgj_device_done(d, methods->push(d->pipeline, n, nulls, &err), &err))
		;
	out->base = out->pushed;
	out->pushed += n;
	out->pending = true;
}

/* Step 2: the next outer batch of the bottom join.  False: there is none. */
static bool
read_batch(HgjDevice *d)
{
	HgjJoinState *upper = d->joins[d->njoins - 1];
	HgjJoinState *bottom = d->joins[0];
	instr_time	start;
	instr_time	end;
	bool		more;

	/* they have returned something, and cannot start again by themselves */
	for (int j = 0; j < d->njoins - 1 && d->out->batches > 0; j++)
		d->joins[j]->emitted_before = ++d->joins[j]->emitted;
	d->out->batches++;
	upper->emitted_before = upper->emitted;
	d->out->left = false;
	INSTR_TIME_SET_CURRENT(start);
	more = hgj_read_outer(bottom);
	bottom->batch_rows = Min(bottom->batch_rows, HGJ_PUSH_ROWS);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_ACCUM_DIFF(d->decode, end, start);
	d->out->pushed = 0;
	return more;
}

/* Room for n rows in the arrays of a block. */
static void
reserve_rows(HgjDevice *d, uint32 n, uint32 npushed)
{
	HgjDeviceRows *out = d->out;
	MemoryContext context = d->joins[0]->context;

	if (n > out->capacity)
	{
		uint32		capacity = Max(n, HGJ_PAIRS);
		uint32	  **arrays[HGJ_PIPE_JOINS + 5];
		int			narrays = 0;

		for (int j = 0; j < d->njoins; j++)
			arrays[narrays++] = &out->rows[j];
		arrays[narrays++] = &out->order;
		arrays[narrays++] = &out->sorted;
		arrays[narrays++] = &out->outer_rows;
		arrays[narrays++] = &out->probe;
		arrays[narrays++] = &out->identity;
		out->capacity = 0;
		for (int i = 0; i < narrays; i++)
		{
			if (*arrays[i])
				pfree(*arrays[i]);
			*arrays[i] = NULL;
			*arrays[i] = MemoryContextAlloc(context, mul_size(capacity, sizeof(uint32)));
		}
		for (uint32 i = 0; i < capacity; i++)
			out->identity[i] = i;
		out->capacity = capacity;
	}
	if (npushed > out->seen_capacity)
	{
		if (out->seen)
			pfree(out->seen);
		out->seen_capacity = 0;
		out->seen = MemoryContextAlloc(context, mul_size(npushed, sizeof(uint32)));
		out->seen_capacity = npushed;
	}
}

/* Step 3: the numbers of what was fetched in the order of their input rows. */
static void
order_by_input(HgjDeviceRows *out, uint32 npushed)
{
	const uint32 *input = out->fetched.input;
	uint32		n = 0;

	memset(out->seen, 0xFF, npushed * sizeof(uint32));
	out->unique = out->fetched.n <= npushed;
	for (uint32 i = 0; i < out->fetched.n && out->unique; i++)
	{
		out->unique = out->seen[input[i]] == HGJ_PIPE_NO_ROW;
		out->seen[input[i]] = i;
	}
	if (!out->unique)
	{
		memcpy(out->order, out->identity, out->fetched.n * sizeof(uint32));
		return;
	}
	for (uint32 i = 0; i < npushed; i++)
		if (out->seen[i] != HGJ_PIPE_NO_ROW)
			out->order[n++] = out->seen[i];
}

/* The joins that have filled a row with NULLs. */
static inline uint8
filled_joins(const HgjDevice *d, uint32 row)
{
	uint8		filled = 0;

	for (int j = 0; j < d->njoins; j++)
		filled |= (d->out->fetched.row[j][row] == HGJ_PIPE_NO_ROW) << j;
	return filled;
}

/* Step 3: those together that the same joins have filled. */
static void
order_by_filled(HgjDevice *d)
{
	HgjDeviceRows *out = d->out;
	uint32		n = out->fetched.n;
	uint32		first = 0;
	bool		fills = false;

	memset(out->filled, 0, sizeof(out->filled));
	for (int j = 0; j < d->njoins; j++)
		fills |= d->spec.joins[j].fill;
	if (!fills)
		return;
	memcpy(out->sorted, out->order, n * sizeof(uint32));
	for (uint32 i = 0; i < n; i++)
		out->filled[filled_joins(d, i)]++;
	for (int set = 0; set < lengthof(out->filled); set++)
	{
		uint32		count = out->filled[set];

		out->filled[set] = first;
		first += count;
	}
	for (uint32 i = 0; i < n; i++)
		out->order[out->filled[filled_joins(d, out->sorted[i])]++] = out->sorted[i];
}

/* Steps 2 and 3: the next portion of rows.  False: there are no more. */
static bool
fetch_rows(HgjDevice *d)
{
	HgjDeviceRows *out = d->out;
	HgjError	err = {0};

	out->next = 0;
	do
	{
		CHECK_FOR_INTERRUPTS();
		out->fetched.n = 0;
		if (!out->pending)
		{
			start_instruments(d);
			if ((out->batches == 0 ||
				 out->pushed == d->joins[0]->outer_batch->nrows) && !read_batch(d))
			{
				stop_instruments(d);
				return false;
			}
			push_rows(d);
		}
		if (!hgj_device_gave_up(d))
			while (!hgj_device_done(d, d->engine->pipeline->fetch(d->pipeline,
																  &out->fetched, &err),
									&err))
				;
		if (hgj_device_gave_up(d))
		{
			out->fetched.n = 0;
			return false;
		}
		out->pending = !out->fetched.last;
		if (!out->pending)
			stop_instruments(d);
	} while (out->fetched.n == 0);

	d->received += (uint64) out->fetched.n * (1 + d->njoins) * sizeof(uint32);
	reserve_rows(d, out->fetched.n, out->pushed - out->base);
	order_by_input(out, out->pushed - out->base);
	order_by_filled(d);
	return true;
}

/* Step 4: the block, through the lower joins. */
static void
make_outer_batch(HgjDevice *d, uint8 filled)
{
	HgjDeviceRows *out = d->out;
	const uint32 *outer_rows = out->outer_rows;

	for (int j = 0; j < d->njoins - 1; j++)
	{
		HgjJoinState *join = d->joins[j];
		HgjJoinState *above = d->joins[j + 1];
		HgjBatch   *batch;

		ResetExprContext(join->css.ss.ps.ps_ExprContext);
		batch = hgj_output_batch(join, outer_rows,
								 (filled >> j) & 1 ? NULL : out->rows[j], out->nblock);
		hgj_source_borrow(&above->outer, above->outer_batch, batch);
		outer_rows = batch->live ? batch->live : out->identity;
	}
	memcpy(out->probe, outer_rows, out->nblock * sizeof(uint32));
}

/* Steps 3 and 4: the next block out of what was fetched. */
static void
make_block(HgjDevice *d)
{
	HgjDeviceRows *out = d->out;
	HgjJoinState *upper = d->joins[d->njoins - 1];
	uint8		filled = filled_joins(d, out->order[out->next]);
	uint32		end = out->filled[filled] > 0 ? out->filled[filled] : out->fetched.n;
	uint32		n = end - out->next;
	const uint32 *order = out->order + out->next;

	if (!out->unique)
		n = Min(n, HGJ_PAIRS);
	out->nblock = n;
	out->next += n;
	for (uint32 i = 0; i < n; i++)
		out->outer_rows[i] = out->base + out->fetched.input[order[i]];
	for (int j = 0; j < d->njoins; j++)
		for (uint32 i = 0; i < n; i++)
			out->rows[j][i] = out->fetched.row[j][order[i]];
	make_outer_batch(d, filled);
	out->matched = ((filled >> (d->njoins - 1)) & 1) == 0;
	out->left = true;

	hgj_reserve_matched(upper);
	memset(upper->matched, out->matched && !upper->recheck, upper->outer_batch->nrows);
	upper->outer_seen = true;
	upper->pairs.n = upper->next_pair = upper->npairs_left = upper->wasted_pairs = 0;
	upper->pairs.done = !out->matched;
	upper->next_outer = 0;
}

/*
 * In place of an outer batch and of probing with it: the next block.  False: there
 * is none, or the pipeline has failed, and then it is active no more.
 */
bool
hgj_device_rows_fetch(HgjJoinState *upper)
{
	HgjDevice  *d = upper->pipeline;

	if (d->out->next >= d->out->fetched.n && !fetch_rows(d))
	{
		if (hgj_device_gave_up(d))
			give_up(d);
		else
			hgj_device_rows_stop(upper);
		return false;
	}
	make_block(d);
	return true;
}

/* Step 5. */
void
hgj_device_rows_matches(HgjJoinState *upper)
{
	HgjDeviceRows *out = upper->pipeline->out;

	upper->pairs.probe_rows = out->probe;
	upper->pairs.build_rows = out->rows[upper->pipeline->njoins - 1];
	upper->pairs.n = out->nblock;
	upper->pairs.done = true;
}

/* What EXPLAIN ANALYZE says of it. */
void
hgj_device_rows_explain(const HgjJoinState *upper, ExplainState *es)
{
	HgjDevice  *d = upper->pipeline;

	if (d == NULL)
		return;
	if (d->pipeline)
		d->engine->pipeline->info(d->pipeline, &d->info);
	hgj_device_explain(d, es);
}
