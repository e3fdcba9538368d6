/*-------------------------------------------------------------------------
 *
 * device_start.c
 *	  From a chain of joins to a pipeline that takes rows.
 *
 * 1. Build the tables of all joins as ever (build.c), or on the device (device_sides.c).  An inner join whose table
 *	  is empty ends it here.  So does an outer side without rows, where the bottom
 *	  join would have looked at that first, and its build side may raise an error.
 * 2. Make the pipeline, of the plan that was lowered at executor start (device_joins.c) and this
 *	  execution's terms (device_terms.c); send the columns of the build sides that it reads.
 *
 * Whatever goes wrong is kept as the reason why the host has to do it.
 *
 * The pipeline belongs to the HgjPipelineState: freed at the end, or, when the query
 * aborts, by a callback.  It holds the build sides, whose tables it reads.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/guc.h"
#include "expr/demand.h"
#include "join/engines.h"
#include "join/join.h"
#include "miscadmin.h"
#include "pipeline/device.h"

/* Rows of a portion of payload; a multiple of 64. */
#define HGJ_PAYLOAD_ROWS	65536

/* The joins that nobody asks for rows while there is a pipeline. */
static int
hidden_joins(const HgjPipelineState *d)
{
	return d->rows ? d->njoins - 1 : d->njoins;
}

/* They are about to do something ... */
void
hgj_device_enter(HgjPipelineState *d)
{
	for (int j = hidden_joins(d) - 1; j >= 0; j--)
		if (hgj_join(d->joins[j])->css.ss.ps.instrument)
			InstrStartNode(hgj_join(d->joins[j])->css.ss.ps.instrument);
}

/*
 * ... and have done it: count what has come out of all joins since `counted`, for
 * EXPLAIN ANALYZE and for tally.c.
 */
void
hgj_device_leave(HgjPipelineState *d, const HgjPipelineInfo *now, HgjPipelineInfo *counted)
{
	for (int j = 0; j < d->njoins; j++)
	{
		HgjJoinState *join = d->joins[j];
		PlanState  *ps = &hgj_join(join)->css.ss.ps;
		uint64		joined = now->joined[j] - counted->joined[j];

		InstrCountFiltered1(ps, now->filtered[j] - counted->filtered[j]);
		InstrCountFiltered2(ps, now->removed[j] - counted->removed[j]);
		hgj_join_count_rejected(join, now->rejected[j] - counted->rejected[j]);
		if (j + 1 < d->njoins)
			hgj_join(d->joins[j + 1])->outer.rows_read += joined;
		if (j == hidden_joins(d))
			break;				/* it counts what it returns */
		hgj_join_count_returned(join, joined);
		if (ps->instrument)
			InstrStopNode(ps->instrument, joined);
	}
	*counted = *now;
}

/*
 * The run is over: count the rows of the joins, or none of them where the host does it all,
 * and those of the scan, which has returned as many less as its quals have dropped on the
 * device.  Returns the latter.
 */
uint64
hgj_device_count_rows(HgjPipelineState *d)
{
	PlanState  *scan = d->scan;
	HgjPipelineInfo counted = {0};
	HgjPipelineInfo now = {0};
	uint64		rows;

	if (d->ran)
		now = d->info;
	hgj_device_leave(d, &now, &counted);
	rows = d->source.rows_read - now.dropped;
	d->source.rows_read = 0;
	if (scan->instrument)
		scan->instrument->tuplecount -= now.dropped;
	InstrCountFiltered1(scan, now.dropped);
	if (d->njoins > 0)
		hgj_join(d->joins[0])->outer.rows_read += rows;
	for (int j = 0; j < d->njoins; j++)
		hgj_join_progress_end(d->joins[j]);
	return rows;
}

/*
 * Before the bottom join is built: is there an outer row?  Looked at where the
 * join would have done so, and building could raise an error in vain.
 */
static bool
has_outer_row(const HgjPipelineState *d, HgjJoinState *join)
{
	if (!hgj_worth_peeking(join) || !hgj_rows_may_raise(hgj_join(join)->inner_ps))
		return true;
	hgj_restart_outer(join);
	if (!hgj_peek_outer(join))
		return false;
	if (!d->rows)
		hgj_unpeek_outer(join);
	return true;
}

/* Without joins, whose tables would be the engine's; false: there is none for this. */
static bool
open_engine(HgjPipelineState *d)
{
	HgjDeviceInfo info;

	d->engine = hgj_cuda_open(&info, &d->device_limit, &d->error);
	if (d->engine && d->engine->pipeline)
	{
		strlcpy(d->device_name, info.name, sizeof(d->device_name));
		return true;
	}
	d->run_reason = HGJ_DEVICE_ENGINE;
	return false;
}

/*
 * The rows of a side that is made on the device; false: there are none, the side is the
 * join's.
 */
static bool
fill_table(void *arg, HgjTable *table, uint32 *nrows)
{
	HgjPipelineState *side = arg;
	HgjError	err = {0};
	uint64		n = 0;
	bool		empty = false;

	*nrows = 0;
	side->fills = table;
	if (side->njoins > 0 && (!hgj_device_build(side, &empty) || empty))
		return empty;
	hgj_device_start(side, 0);
	if (!hgj_device_gave_up(side))
		hgj_device_push_rows(side, NULL);
	if (!hgj_device_gave_up(side))
		hgj_device_call(side, &err,
						side->engine->pipeline->finish(side->pipeline, &n, &err));
	if (hgj_device_gave_up(side))
		return false;
	side->engine->pipeline->info(side->pipeline, &side->info);
	*nrows = (uint32) n;
	return true;
}

/* Step 1, on the device: the join's table, and its columns there.  False: nothing happened. */
static bool
build_on_device(HgjPipelineState *upper, int j)
{
	HgjPipelineState *side = upper->sides[j];
	HgjJoinState *join = upper->joins[j];
	uint64		rows;

	hgj_device_reset(side);
	side->engine = upper->engine;
	side->device_limit = hgj_join_device_limit(join);
	memset(side->noted, 0, sizeof(side->noted));
	hgj_device_start_programs(side);
	hgj_device_enter(side);
	side->ran = hgj_build_filled(join, fill_table, side);
	side->fills = NULL;
	rows = hgj_device_count_rows(side);
	if (side->njoins > 0)
		rows = side->ran ? hgj_join(join)->build->total_rows : 0;
	hgj_join(join)->inner.rows_read += rows;
	if (side->ran)
		return true;
	hgj_device_log(side);
	hgj_device_end(side);
	hgj_device_end_sides(side);
	hgj_drop_build(join);
	if (hgj_device_failed(join) && !hgj_use_less_memory(join))
		hgj_use_cpu(join);
	return false;
}

/* Step 1, of a side that is read here, unless it has been. */
static void
build_on_host(HgjJoinState *join)
{
	if (hgj_join(join)->build->table == NULL)
		hgj_build_pass(join);
}

/*
 * Step 1.  Sets *empty where there can be no row of the joins.  False: the
 * pipeline is not for this.
 */
bool
hgj_device_build(HgjPipelineState *d, bool *empty)
{
	*empty = false;
	if (d->njoins == 0 && !open_engine(d))
		return false;
	for (int j = d->njoins - 1; j >= 0; j--)
	{
		HgjJoinState *join = d->joins[j];

		d->engine = hgj_join_engine(join);
		if (d->engine->pipeline == NULL)
		{
			d->run_reason = HGJ_DEVICE_ENGINE;
			return false;
		}
		if (hgj_join(join)->outer.reason == HGJ_SOURCE_PASSES)
		{
			/* an earlier execution took several, and what is below gives slots */
			d->run_reason = HGJ_DEVICE_PASSES;
			return false;
		}
		if (j == 0 && !has_outer_row(d, join))
		{
			*empty = true;
			return true;
		}
		hgj_join_progress(join, HGJ_PROGRESS_STARTING);
		if (!hgj_device_makes_side(d, j) || !build_on_device(d, j))
			build_on_host(join);
		if (hgj_device_failed(join) || hgj_join_engine(join) != d->engine)
		{
			d->run_reason = HGJ_DEVICE_FAILED;
			return false;
		}
		if (!hgj_join_has_whole_table(join))
		{
			d->run_reason = HGJ_DEVICE_PASSES;
			return false;
		}
		if (hgj_join(join)->build->graph_rows == 0 && !hgj_join(join)->semantics.fill_outer)
		{
			*empty = true;
			return true;
		}
	}
	return true;
}

/* One portion of a build side's column out of the row store, densely. */
static bool
gather_payload(const HgjBuildSide *build, const HgjDeviceColumn *column, uint32 first,
			   uint32 n, char *values, uint64 *validity, HgjPipeRange *range)
{
	const HgjStoredColumn *stored = &build->rows.columns[column->column];
	bool		nulls = false;

	memset(validity, 0xFF, HGJ_PAYLOAD_ROWS / 8);
	for (uint32 i = 0; i < n; i++)
	{
		const char *record = hgj_row_store_record(&build->rows, first + i);

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
			hgj_device_note_range(range, column->kind,
								  (int64) hgj_load(record + stored->offset, column->width));
	}
	return nulls;
}

/* What a portion of a column is, as the device wants it; true: there are NULLs. */
static bool
fill_portion(HgjPipelineState *d, const HgjDeviceColumn *column, uint32 first, uint32 n,
			 char *values, uint64 *validity, HgjPipeRange *range)
{
	bool		nulls;

	if (column->made == NULL && column->scale < 0)
		return gather_payload(d->builds[column->join], column, first, n, values, validity,
							  range);
	nulls = hgj_device_make_payload(d, column, first, n, values, validity);
	for (uint32 i = 0; range && i < n && !hgj_device_gave_up(d); i++)
		if ((validity[i / 64] >> (i % 64)) & 1)
			hgj_device_note_range(range, column->kind,
								  (int64) hgj_load(values + (Size) i * column->width, column->width));
	return nulls;
}

/* Step 2: a column of a build side to the device. */
static void
send_column(HgjPipelineState *d, const HgjDeviceColumn *column, HgjPipeRange *range,
			char *values, uint64 *validity)
{
	const HgjBuildSide *build = d->builds[column->join];

	if (column->kind == HGJ_KIND_F4 || column->kind == HGJ_KIND_F8 || column->scale >= 0)
		range = NULL;
	if (column->made == NULL && build->rows.columns[column->column].nplain > 0)
		d->run_reason = HGJ_DEVICE_GROUP_KEY;	/* not all of them are codes */
	for (uint32 first = 0; first < build->total_rows && !hgj_device_gave_up(d);
		 first += HGJ_PAYLOAD_ROWS)
	{
		uint32		n = Min(build->total_rows - first, HGJ_PAYLOAD_ROWS);
		HgjError	err = {0};
		bool		nulls;

		CHECK_FOR_INTERRUPTS();
		nulls = fill_portion(d, column, first, n, values, validity, range);
		if (hgj_device_gave_up(d))
			break;
		hgj_device_call(d, &err,
						d->engine->pipeline->payload(d->pipeline, column->join,
													 column->number, first, n, values,
													 nulls ? validity : NULL, &err));
	}
}

/* Has the join's side been made on the device, which has its columns? */
static bool
is_made(const HgjPipelineState *d, int j)
{
	return d->sides[j] != NULL && d->sides[j]->pipeline != NULL;
}

static void
send_payload(HgjPipelineState *d)
{
	char	   *values = palloc(HGJ_PAYLOAD_ROWS * sizeof(uint64));
	uint64	   *validity = palloc(HGJ_PAYLOAD_ROWS / 8);

	memset(d->ranges, 0, sizeof(d->ranges));
	for (int i = 0; i < d->ncolumns && !hgj_device_gave_up(d); i++)
	{
		const HgjDeviceMade *made = d->columns[i].made;
		HgjPipeRange range = {0};

		if (d->columns[i].join >= 0 && is_made(d, d->columns[i].join))
			range = hgj_device_side_range(d->sides[d->columns[i].join], &d->columns[i]);
		else if (d->columns[i].join >= 0)
			send_column(d, &d->columns[i], &range, values, validity);
		else if (made && made->most_codes > 0)
			range = (HgjPipeRange) {true, 0, made->most_codes - 1};
		if (range.bounded && made && made->missing)
			hgj_device_note_range(&range, d->columns[i].kind, made->value_missing);
		if (d->columns[i].join >= 0)
			d->noted[i] = range;
		for (uint32 k = 0; k < d->spec.nkeys; k++)
			if (d->key_columns[k] == i)
				d->ranges[k] = range;
	}
	hgj_device_sides_sent(d);
	pfree(values);
	pfree(validity);
}

/* What the joins' tables, and columns that are there, leave of device memory; false: nothing. */
static bool
set_memory_limit(HgjPipelineState *d)
{
	uint64		limit = d->device_limit;

	/* where it is what was free, those that came first saw most of it */
	for (int j = 0; j < d->njoins; j++)
		limit = Max(limit, hgj_join_device_limit(d->joins[j]));
	for (int j = 0; j < d->njoins && limit > 0; j++)
	{
		HgjMemory	memory;

		d->engine->memory(d->builds[j]->table, &memory);
		if (is_made(d, j))
			memory.current += d->sides[j]->info.memory;
		if (memory.current >= limit)
			return false;
		limit -= memory.current;
	}
	d->terms.memory_limit = limit;
	return true;
}

/* Step 2: everything up to the first row; `expected` groups. */
void
hgj_device_start(HgjPipelineState *d, uint64 expected)
{
	HgjPipelineCaller caller = {.terms = &d->terms, .poll = hgj_poll_interrupts, .poll_arg = &d->poll};
	HgjError	err = {0};

	for (int j = 0; j < d->njoins; j++)
	{
		Assert(d->builds[j] == NULL);
		hgj_join_progress(d->joins[j], HGJ_PROGRESS_PROBING);
		d->builds[j] = hgj_build_side_hold(hgj_join(d->joins[j])->build);
	}
	if (!set_memory_limit(d))
	{
		d->run_reason = HGJ_DEVICE_MEMORY;
		return;
	}
	hgj_device_set_terms(d);
	if (hgj_device_gave_up(d))
		return;
	d->terms.timeout_ms = hgj_device_timeout;
	for (int j = 0; j < d->njoins; j++)
	{
		caller.tables[j] = d->builds[j]->table;
		if (is_made(d, j))
			caller.filled[j] = d->sides[j]->pipeline;
	}
	caller.fills = d->fills;
	hgj_device_call(d, &err,
					d->engine->pipeline->create(&d->spec, &caller, &d->pipeline, &err));
	if (!hgj_device_gave_up(d))
		send_payload(d);
	if (hgj_device_gave_up(d))
		return;
	hgj_device_call(d, &err,
					d->engine->pipeline->start(d->pipeline, d->fills ? NULL : d->ranges,
											   expected, &err));
}

/* Give the programs the parameters of this execution; those of agg_setup.c have them. */
void
hgj_device_start_programs(HgjPipelineState *d)
{
	if (d->scan_filter)
		hgj_program_start(d->scan_filter, d->scan->ps_ExprContext);
	for (int i = 0; d->njoins == 0 && i < list_length(d->scan->plan->targetlist); i++)
		if (d->scan_programs[i])
			hgj_program_start(d->scan_programs[i], d->scan->ps_ExprContext);
	for (int j = 0; j < d->njoins; j++)
	{
		HgjJoinState *join = d->joins[j];
		ExprContext *econtext = hgj_join(join)->css.ss.ps.ps_ExprContext;
		int			ncols = list_length(hgj_join(join)->css.ss.ps.plan->targetlist);
		const HgjPairColumns *read;
		HgjProgram *residual = hgj_join_residual(join, &read);

		if (residual)
			hgj_program_start(residual, econtext);
		if (d->filters[j])
			hgj_program_start(d->filters[j], econtext);
		for (int resno = 1; hgj_join_gives_batches(join) && resno <= ncols; resno++)
		{
			HgjProgram *program;

			(void) hgj_output_column(join, resno, &program);
			if (program)
				hgj_program_start(program, econtext);
		}
	}
}
