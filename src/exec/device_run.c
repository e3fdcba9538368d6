/*-------------------------------------------------------------------------
 *
 * device_run.c
 *	  Run a HashGraphAgg as a pipeline of its engine (device_plan.c has written
 *	  what the pipeline does).
 *
 * 1. Build the tables of all joins as ever (build.c).  An inner join whose table
 *	  is empty ends it here.  So does an outer side without rows, where the bottom
 *	  join would have looked at that first, and its build side may raise an error.
 * 2. Write the instructions again, now with the values of constants; make the
 *	  pipeline; send the columns of the build sides that it reads.
 * 3. Have the pages source decode batches straight into staging buffers, one
 *	  after the other, and push them.  The source waits for nobody but a buffer
 *	  that is still being sent.
 * 4. At the end take the groups, and make them rows of the group table, as if
 *	  they had been found here.
 *
 * Whatever goes wrong on the way, no row has been returned: the reason is kept
 * for EXPLAIN, the outer side rewound, and the caller does it all on the host,
 * with the tables that have been built.  A failing row thereby raises its error
 * as the host would have, and a device that is lost makes trouble there.
 *
 * The pipeline belongs to the HgjDevice: freed at the end, or, when the query
 * aborts, by a callback that comes before those of the joins.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "exec/agg_state.h"
#include "exec/demand.h"
#include "exec/device.h"
#include "exec/join_state.h"
#include "executor/executor.h"
#include "guc.h"
#include "miscadmin.h"

/* Rows of a portion of payload; a multiple of 64. */
#define HGJ_PAYLOAD_ROWS	65536

/* Group rows that are taken at a time. */
#define HGJ_GROUP_ROWS		4096

/* A hash table for the groups is made for so many at first; then for more. */
#define HGJ_EXPECTED_GROUPS	(INT64CONST(1) << 16)
#define HGJ_MORE_GROUPS		16

/*
 * What every call of the pipeline that polls goes through: true if it is done,
 * false if it has to be repeated.  Where it has failed, run_reason says so.
 */
static bool
is_done(HgjDevice *d, HgjStatus status, const HgjError *err)
{
	if (hgj_call_cancelled(&d->poll, status))
		return false;
	switch (status)
	{
		case HGJ_OK:
			return true;
		case HGJ_ROW_FAILED:
			d->run_reason = HGJ_DEVICE_ROW;
			break;
		case HGJ_UNSUPPORTED:
			d->run_reason = HGJ_DEVICE_TABLE;
			break;
		case HGJ_LIMIT:
			d->run_reason = d->pushing ? HGJ_DEVICE_GROUPS : HGJ_DEVICE_MEMORY;
			break;
		case HGJ_OUT_OF_MEMORY:
			d->run_reason = HGJ_DEVICE_MEMORY;
			break;
		default:
			d->run_reason = HGJ_DEVICE_FAILED;
			break;
	}
	d->error = *err;
	d->error.status = status;
	return true;
}

/* The host has to do it: say so once for a reason, not once per rescan. */
static void
log_fallback(HgjDevice *d)
{
	HgjDeviceReason reason = hgj_device_reason(d);

	if (reason == d->logged)
		return;
	d->logged = reason;
	ereport(DEBUG1,
			(errmsg_internal("hashgraph_join: no device pipeline: %s%s%s",
							 hgj_device_reason_text(reason),
							 d->error.status != HGJ_OK ? ": " : "",
							 d->error.status != HGJ_OK ? d->error.message : "")));
}

static bool
failed(const HgjDevice *d)
{
	return d->run_reason != HGJ_DEVICE_FITS;
}

/* Give device memory back.  All there is to do where the query aborts. */
void
hgj_device_release(HgjDevice *d)
{
	if (d->pipeline)
	{
		d->engine->pipeline->info(d->pipeline, &d->info);
		d->sent += d->info.sent;
		d->transfer_ms += d->info.transfer_ms;
		d->kernel_ms += d->info.kernel_ms;
		d->peak = Max(d->peak, d->info.memory);
		d->engine->pipeline->destroy(d->pipeline);
	}
	d->pipeline = NULL;
}

/* The run is over, or has been given up: pins and device memory. */
void
hgj_device_end(HgjDevice *d)
{
	hgj_device_release(d);
	if (d->reading)
		d->source.methods->rewind(&d->source);
	d->reading = false;
}

/* Point the batch at a staging buffer, and fill it.  Returns its rows. */
static uint32
fill_stage(HgjDevice *d, const HgjPipeStage *stage, uint32 max_rows, uint64 *nulls)
{
	HgjBatch   *batch = d->batch;
	instr_time	start;
	instr_time	end;

	for (int i = 0; i < batch->ncols; i++)
	{
		HgjVector  *vector = &batch->vectors[i];

		vector->values = stage->values[i];
		vector->validity = stage->validity[i];
		hgj_vector_all_valid(vector, stage->capacity);
		memset(vector->validity, 0xFF, stage->capacity / 8);
	}
	batch->capacity = stage->capacity;
	d->reading = true;
	INSTR_TIME_SET_CURRENT(start);
	d->source.methods->fill(&d->source, batch, max_rows);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_ACCUM_DIFF(d->decode, end, start);

	*nulls = 0;
	for (int i = 0; i < batch->ncols; i++)
		if (batch->vectors[i].has_nulls)
			*nulls |= UINT64CONST(1) << i;
	return batch->nrows;
}

/*
 * Before the bottom join is built: is there an outer row?  Looked at where the
 * join would have done so, and building could raise an error in vain.
 */
static bool
has_outer_row(HgjJoinState *join)
{
	if (!hgj_worth_peeking(join) || !hgj_rows_may_raise(join->inner_ps))
		return true;
	hgj_restart_outer(join);
	if (!hgj_peek_outer(join))
		return false;
	if (join->outer_filled)
	{
		join->outer.methods->rewind(&join->outer);
		hgj_restart_outer(join);
		hgj_rescan_uncounted(join);
		join->outer_seen = true;
	}
	return true;
}

/*
 * Step 1.  Sets *empty where there can be no row of the joins.  False: the
 * pipeline is not for this.
 */
static bool
build_tables(HgjDevice *d, bool *empty)
{
	*empty = false;
	for (int j = d->njoins - 1; j >= 0; j--)
	{
		HgjJoinState *join = d->joins[j];

		if (join->engine == NULL)
			hgj_choose_engine(join);
		if (join->engine->pipeline == NULL)
		{
			d->run_reason = HGJ_DEVICE_ENGINE;
			return false;
		}
		d->engine = join->engine;
		if (join->outer.reason == HGJ_SOURCE_PASSES)
		{
			/* an earlier execution took several, and what is below gives slots */
			d->run_reason = HGJ_DEVICE_PASSES;
			return false;
		}
		if (j == 0 && !has_outer_row(join))
		{
			*empty = true;
			return true;
		}
		if (join->table == NULL)
			hgj_build_pass(join);
		if (join->device_failed || join->engine != d->engine)
		{
			d->run_reason = HGJ_DEVICE_FAILED;
			return false;
		}
		if (!join->last_pass || join->has_split || join->pass != 1)
		{
			d->run_reason = HGJ_DEVICE_PASSES;
			return false;
		}
		if (join->graph_rows == 0 && !join->semantics.fill_outer)
		{
			*empty = true;
			return true;
		}
	}
	return true;
}

/* Widen *range by what a column of portions of the row store has. */
static void
note_range(HgjPipeRange *range, uint8 kind, int64 value)
{
	if (kind == HGJ_PIPE_U1)
		value = (uint8) value;
	else if (kind == HGJ_PIPE_U4)
		value = (uint32) value;
	if (!range->bounded)
		range->low = range->high = value;
	range->bounded = true;
	range->low = Min(range->low, value);
	range->high = Max(range->high, value);
}

/* One portion of a build side's column out of the row store, densely. */
static bool
gather_payload(const HgjJoinState *join, const HgjDeviceColumn *column, uint32 first,
			   uint32 n, char *values, uint64 *validity, HgjPipeRange *range)
{
	const HgjStoredColumn *stored = &join->rows.columns[column->column];
	bool		nulls = false;

	memset(validity, 0xFF, HGJ_PAYLOAD_ROWS / 8);
	for (uint32 i = 0; i < n; i++)
	{
		const char *record = hgj_row_store_record(&join->rows, first + i);

		if (stored->has_nulls && hgj_record_is_null(stored, record))
		{
			validity[i / 64] &= ~(UINT64CONST(1) << (i % 64));
			nulls = true;
			memset(values + (Size) i * column->width, 0, column->width);
			continue;
		}
		memcpy(values + (Size) i * column->width, record + stored->offset,
			   column->width);
		if (range)
			note_range(range, column->kind,
					   (int64) hgj_load(record + stored->offset, column->width));
	}
	return nulls;
}

/* Step 2: a column of a build side to the device. */
static void
send_column(HgjDevice *d, const HgjDeviceColumn *column, HgjPipeRange *range,
			char *values, uint64 *validity)
{
	const HgjJoinState *join = d->joins[column->join];

	if (column->kind == HGJ_PIPE_F4 || column->kind == HGJ_PIPE_F8)
		range = NULL;
	if (join->rows.columns[column->column].nloose > 0)
		d->run_reason = HGJ_DEVICE_GROUP_KEY;	/* not all of them are codes */
	for (uint32 first = 0; first < join->total_rows && !failed(d);
		 first += HGJ_PAYLOAD_ROWS)
	{
		uint32		n = Min(join->total_rows - first, HGJ_PAYLOAD_ROWS);
		HgjError	err = {0};
		bool		nulls;

		CHECK_FOR_INTERRUPTS();
		nulls = gather_payload(join, column, first, n, values, validity, range);
		while (!is_done(d, d->engine->pipeline->payload(d->pipeline, column->join,
														column->number, first, n,
														values,
														nulls ? validity : NULL, &err),
						&err))
			;
	}
}

static void
send_payload(HgjDevice *d)
{
	char	   *values = palloc(HGJ_PAYLOAD_ROWS * sizeof(uint64));
	uint64	   *validity = palloc(HGJ_PAYLOAD_ROWS / 8);

	memset(d->ranges, 0, sizeof(d->ranges));
	for (int i = 0; i < d->ncolumns && !failed(d); i++)
	{
		HgjPipeRange range = {0};

		if (d->columns[i].join < 0)
			continue;
		send_column(d, &d->columns[i], &range, values, validity);
		for (uint32 k = 0; k < d->spec.nkeys; k++)
			if (d->key_columns[k] == i)
				d->ranges[k] = range;
	}
	pfree(values);
	pfree(validity);
}

/* What the joins' tables leave of device memory; false: nothing. */
static bool
set_memory_limit(HgjDevice *d)
{
	uint64		limit = 0;

	/* where it is what was free, those that came first saw most of it */
	for (int j = 0; j < d->njoins; j++)
		limit = Max(limit, d->joins[j]->device_limit);
	for (int j = 0; j < d->njoins && limit > 0; j++)
	{
		HgjMemory	memory;

		d->engine->memory(d->joins[j]->table, &memory);
		if (memory.current >= limit)
			return false;
		limit -= memory.current;
	}
	d->spec.memory_limit = limit;
	return true;
}

/* Step 2: everything up to the first row; `expected` groups. */
static void
start_pipeline(HgjDevice *d, uint64 expected)
{
	HgjError	err = {0};

	if (!set_memory_limit(d))
	{
		d->run_reason = HGJ_DEVICE_MEMORY;
		return;
	}
	d->spec.timeout_ms = hgj_device_timeout;
	d->spec.poll = hgj_poll_interrupts;
	d->spec.poll_arg = &d->poll;
	for (int j = 0; j < d->njoins; j++)
		d->spec.joins[j].table = d->joins[j]->table;
	while (!is_done(d, d->engine->pipeline->create(&d->spec, &d->pipeline, &err), &err))
		;
	if (!failed(d))
		send_payload(d);
	if (failed(d))
		return;
	while (!is_done(d, d->engine->pipeline->start(d->pipeline, d->ranges, expected,
												  &err), &err))
		;
}

/* Step 3. */
static void
push_rows(HgjDevice *d)
{
	const HgjPipelineMethods *methods = d->engine->pipeline;
	HgjError	err = {0};

	while (!failed(d))
	{
		HgjPipeStage stage;
		uint64		nulls;
		uint32		n;

		CHECK_FOR_INTERRUPTS();
		while (!is_done(d, methods->stage(d->pipeline, &stage, &err), &err))
			;
		if (failed(d))
			break;
		n = fill_stage(d, &stage, stage.capacity, &nulls);
		if (n == 0)
			break;
		while (!is_done(d, methods->push(d->pipeline, n, nulls, &err), &err))
			;
	}
}

/* The state words of an aggregate, as the host keeps them. */
static void
take_state(const HgjAggregate *agg, const uint64 *words, int64 n, char *state)
{
	float4		narrow;
	double		wide;
	int128		sum;

	switch (agg->function->kind)
	{
		case HGJ_AGG_SUM_INT8:
		case HGJ_AGG_AVG_INT8:
			sum = (int128) (int64) words[1] * (INT64CONST(1) << 32) + words[0];
			memcpy(state, &sum, sizeof(sum));
			break;
		case HGJ_AGG_FLOAT4:
			memcpy(&wide, words, sizeof(wide));
			narrow = (float4) wide;
			memcpy(state, &narrow, sizeof(narrow));
			break;
		case HGJ_AGG_AVG_FLOAT:
			((HgjAggFloats *) state)->n = n;
			memcpy(&((HgjAggFloats *) state)->sum, words, sizeof(double));
			break;
		default:
			memcpy(state, words, sizeof(uint64));
			break;
	}
}

/* Step 4: one group. */
static void
take_group(HgjDevice *d, const uint64 *from, char *row)
{
	HgjAggState *agg = d->agg;
	HgjGroups  *groups = &agg->groups;
	const uint64 *words = from + 1 + groups->nkeys;

	memcpy(row, groups->initial, groups->stride);
	*(int64 *) row = words[0];
	for (int k = 0; k < groups->nkeys; k++)
		if ((from[0] >> k) & 1)
			((uint8 *) row + groups->nulls_offset)[k] = 1;
		else
			hgj_group_datums(row)[k] = groups->keys[k].dictionary ?
				(Datum) from[k + 1] : hgj_load(&from[k + 1], groups->keys[k].attlen);
	for (int i = 0; i < agg->ninputs; i++)
	{
		int64		n;

		if (d->input_words[i] < 0)
			continue;
		n = words[d->input_words[i]];
		*(int64 *) (row + agg->inputs[i].counter) =
			agg->inputs[i].filter ? n : (int64) words[0] - n;
	}
	for (int a = 0; a < agg->naggs; a++)
		if (d->agg_words[a] >= 0)
			take_state(&agg->aggs[a], words + d->agg_words[a],
					   hgj_agg_input_count(agg->aggs[a].input, row),
					   row + agg->aggs[a].offset);
}

static void
take_groups(HgjDevice *d)
{
	const HgjPipelineMethods *methods = d->engine->pipeline;
	HgjGroups  *groups = &d->agg->groups;
	Size		width = 1 + d->spec.nkeys + d->spec.nwords;
	HgjError	err = {0};
	uint64		n = 0;
	uint64	   *rows;

	while (!is_done(d, methods->finish(d->pipeline, &n, &err), &err))
		;
	if (failed(d))
		return;
	if (n > PG_INT32_MAX || !hgj_groups_make(groups, n))
	{
		d->run_reason = HGJ_DEVICE_GROUPS;
		return;
	}
	rows = palloc(HGJ_GROUP_ROWS * width * sizeof(uint64));
	for (uint64 first = 0; first < n && !failed(d); first += HGJ_GROUP_ROWS)
	{
		uint32		some = Min(n - first, HGJ_GROUP_ROWS);

		CHECK_FOR_INTERRUPTS();
		while (!is_done(d, methods->groups(d->pipeline, first, some, rows, &err), &err))
			;
		for (uint32 i = 0; i < some && !failed(d); i++)
			take_group(d, rows + i * width, hgj_group_row(groups, first + i));
	}
	pfree(rows);
}

/* Give the programs the parameters of this execution; those of agg_setup.c have them. */
static void
start_programs(HgjDevice *d)
{
	for (int j = 0; j < d->njoins; j++)
	{
		HgjJoinState *join = d->joins[j];
		ExprContext *econtext = join->css.ss.ps.ps_ExprContext;
		int			ncols = list_length(join->css.ss.ps.plan->targetlist);

		if (join->residual)
			hgj_program_start(join->residual, econtext);
		if (d->filters[j])
			hgj_program_start(d->filters[j], econtext);
		for (int resno = 1; resno <= ncols; resno++)
		{
			HgjProgram *program;

			(void) hgj_output_column(join, resno, &program);
			if (program)
				hgj_program_start(program, econtext);
		}
	}
}

/* Steps 2 to 4, again with room for more groups where it was too little. */
static void
run_pipeline(HgjDevice *d)
{
	Size		most = d->agg->groups.limit / d->agg->groups.stride;
	uint64		expected = Max(HGJ_EXPECTED_GROUPS, d->agg->groups.expected);

	start_programs(d);
	if (!hgj_device_write(d, true))
	{
		d->run_reason = d->code.reason;
		return;
	}
	expected = Min(expected, Max(most, 1));
	for (;;)
	{
		d->run_reason = HGJ_DEVICE_FITS;
		d->pushing = false;
		start_pipeline(d, expected);
		d->pushing = true;
		hgj_note_outer_counts(d->joins[0]);
		if (!failed(d))
			push_rows(d);
		if (!failed(d))
			take_groups(d);
		hgj_device_release(d);
		if (d->run_reason != HGJ_DEVICE_GROUPS || d->spec.nkeys == 0 ||
			expected >= most)
			break;
		hgj_groups_release(&d->agg->groups);
		expected = Min(expected * HGJ_MORE_GROUPS, most);
		hgj_device_end(d);
		hgj_rescan_uncounted(d->joins[0]);
	}
}

/* Rows of the joins, for EXPLAIN ANALYZE and for tally.c. */
static void
count_rows(HgjDevice *d)
{
	for (int j = 0; j < d->njoins; j++)
	{
		HgjJoinState *join = d->joins[j];
		PlanState  *ps = &join->css.ss.ps;

		if (j == 0)
			join->outer.rows_read += d->source.rows_read;
		else if (d->ran)
			join->outer.rows_read += d->info.joined[j - 1];
		if (d->ran)
			join->counts.returned += d->info.joined[j];
		if (ps->instrument)
			InstrStopNode(ps->instrument, d->ran ? (double) d->info.joined[j] : 0);
		if (d->ran)
		{
			InstrCountFiltered1(ps, d->info.filtered[j]);
			InstrCountFiltered2(ps, d->info.removed[j]);
		}
	}
	d->source.rows_read = 0;
}

/*
 * Fill the group table.  False: the host has to do it; nothing is in the table
 * then.
 */
bool
hgj_device_run(HgjDevice *d)
{
	HgjGroups  *groups = &d->agg->groups;
	bool		empty = false;

	d->ran = false;
	d->run_reason = HGJ_DEVICE_FITS;
	d->poll.disabled = false;
	INSTR_TIME_SET_ZERO(d->decode);
	memset(&d->info, 0, sizeof(d->info));
	memset(&d->error, 0, sizeof(d->error));
	if (d->reason != HGJ_DEVICE_FITS)
	{
		log_fallback(d);
		return false;
	}

	hgj_device_end(d);
	for (int j = d->njoins - 1; j >= 0; j--)
	{
		PlanState  *ps = &d->joins[j]->css.ss.ps;

		if (ps->chgParam != NULL)
			ExecReScan(ps);
		if (ps->instrument)
			InstrStartNode(ps->instrument);
	}
	if (build_tables(d, &empty) && !empty)
		run_pipeline(d);
	d->ran = !failed(d);
	count_rows(d);
	if (d->ran)
	{
		if (empty && groups->nkeys == 0)
			hgj_groups_only(groups);
		return true;
	}
	log_fallback(d);
	hgj_groups_release(groups);
	if (d->reading)
	{
		hgj_device_end(d);
		hgj_rescan_uncounted(d->joins[0]);
	}
	return false;
}

/* What EXPLAIN says of it, where a device was asked for. */
void
hgj_device_explain(const HgjDevice *d, ExplainState *es)
{
	HgjDeviceReason reason = hgj_device_reason(d);
	const char *text = hgj_device_reason_text(reason);

	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyBool("Device Pipeline", reason == HGJ_DEVICE_FITS, es);
		ExplainPropertyText("Device Pipeline Fallback", text, es);
	}
	else if (reason != HGJ_DEVICE_FITS)
		ExplainPropertyText("Device Pipeline", psprintf("no (%s)", text), es);
	else
		ExplainPropertyText("Device Pipeline", "yes", es);
	if (!es->analyze || !es->timing || !d->ran)
		return;
	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyFloat("Host Decode Time", "ms",
							 INSTR_TIME_GET_MILLISEC(d->decode), 3, es);
		ExplainPropertyFloat("Transfer Time", "ms", d->info.transfer_ms, 3, es);
		ExplainPropertyFloat("Kernel Time", "ms", d->info.kernel_ms, 3, es);
		ExplainPropertyUInteger("Sent", "kB", d->info.sent / 1024, es);
		ExplainPropertyUInteger("Device Memory", "kB", d->info.memory / 1024, es);
		return;
	}
	appendStringInfoSpaces(es->str, es->indent * 2);
	appendStringInfo(es->str,
					 "Host Decode: %.3f ms  Transfer: %.3f ms  Kernels: %.3f ms  Sent: "
					 UINT64_FORMAT "kB  Device Memory: " UINT64_FORMAT "kB\n",
					 INSTR_TIME_GET_MILLISEC(d->decode), d->info.transfer_ms,
					 d->info.kernel_ms, d->info.sent / 1024, d->info.memory / 1024);
}
