/*-------------------------------------------------------------------------
 *
 * agg_device_run.c
 *	  Run a HashGraphAgg as a pipeline of its engine (agg_device_plan.c has written
 *	  what the pipeline does).
 *
 * 1. Build the tables and start the pipeline (device_start.c).  Where rows of a build side are
 *	  told apart by another key than was thought, the plan is lowered anew before that.
 * 2. Push all rows of the scan (device_push.c).
 * 3. At the end take the groups, and make them rows of the group table, as if
 *	  they had been found here.
 *
 * Whatever goes wrong on the way, no row has been returned: the reason is kept
 * for EXPLAIN, the outer side rewound, and the caller does it all on the host,
 * with the tables that have been built there.  A failing row thereby raises its error
 * as the host would have, and a device that is lost makes trouble there.
 *
 * Memory: device_start.c.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_accumulate.h"
#include "executor/executor.h"
#include "expr/program_private.h"
#include "join/join.h"
#include "miscadmin.h"
#include "pipeline/device.h"

/* Group rows that are taken at a time. */
#define HGJ_GROUP_ROWS		4096

/* A hash table for the groups is made for so many at first; then for more. */
#define HGJ_EXPECTED_GROUPS	(INT64CONST(1) << 16)
#define HGJ_MORE_GROUPS		16

/* Step 2: so many more rows. */
static void
show_pushed(HgjPipelineState *d, uint64 rows)
{
	hgj_agg_progress(d->agg, HGJ_PROGRESS_READING, rows);
}

/* The state words of a sum of numerics: low, high, and the largest display scale. */
static void
take_numeric_sum(HgjAggregate *agg, const uint64 *words, HgjAggNumeric *state)
{
	const HgjAggExpr *argument = agg->input->argument;
	HgjDecimals decimals = *hgj_program_decimals(argument->decimals, argument->place);

	if (hgj_device_mixed(argument->decimals->decimals[argument->place].step))
		decimals.display = (uint8) words[2];
	hgj_numeric_take_sum(agg, state,
						 (int128) (int64) words[1] * (INT64CONST(1) << 32) + words[0],
						 &decimals);
}

/* The state words of an aggregate, as the host keeps them. */
static void
take_state(HgjAggregate *agg, const uint64 *words, int64 n, char *state)
{
	const HgjAggExpr *argument = agg->input->argument;
	float4		narrow;
	double		wide;
	int128		sum;

	switch (agg->function->kind)
	{
		case HGJ_AGG_SUM_COUNTS:
		case HGJ_AGG_SUM_SUMS:
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
		case HGJ_AGG_SUM_NUMERIC:
		case HGJ_AGG_AVG_NUMERIC:
			if (n > 0)
				take_numeric_sum(agg, words, (HgjAggNumeric *) state);
			break;
		case HGJ_AGG_BY_FUNCTION:
			if (n > 0)
				hgj_agg_take_extreme(agg, (HgjAggValue *) state, (int64) words[0],
									 hgj_program_decimals(argument->decimals,
														  argument->place));
			break;
		default:
			memcpy(state, words, sizeof(uint64));
			break;
	}
}

/* Step 3: one group. */
static void
take_group(HgjPipelineState *d, const uint64 *from, char *row)
{
	HgjAggState *agg = d->agg;
	HgjGroups  *groups = &agg->groups;
	const uint64 *words = from + 1 + d->spec.nkeys;

	memcpy(row, groups->initial, groups->stride);
	*(int64 *) row = words[0];
	hgj_device_take_keys(d, from, row);
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

/* *again: all is to be run again, as bounds of the groups are known now. */
static void
take_groups(HgjPipelineState *d, bool *again)
{
	const HgjPipelineMethods *methods = d->engine->pipeline;
	HgjGroups  *groups = &d->agg->groups;
	Size		width = 1 + d->spec.nkeys + d->spec.nwords;
	HgjError	err = {0};
	uint64		n = 0;
	uint64	   *rows;

	hgj_device_call(d, &err, methods->finish(d->pipeline, &n, &err));
	if (hgj_device_gave_up(d))
		return;
	*again = hgj_device_found_groups(d, n);
	if (*again)
		return;
	if (n > PG_INT32_MAX || !hgj_groups_make(groups, n))
	{
		/* of those that HAVING leaves there are not fewer the next time */
		d->run_reason = hgj_device_has_having(d) ? HGJ_DEVICE_MEMORY : HGJ_DEVICE_GROUPS;
		return;
	}
	rows = palloc(HGJ_GROUP_ROWS * width * sizeof(uint64));
	for (uint64 first = 0; first < n && !hgj_device_gave_up(d); first += HGJ_GROUP_ROWS)
	{
		uint32		some = Min(n - first, HGJ_GROUP_ROWS);

		CHECK_FOR_INTERRUPTS();
		hgj_device_call(d, &err, methods->groups(d->pipeline, first, some, rows, &err));
		for (uint32 i = 0; i < some && !hgj_device_gave_up(d); i++)
			take_group(d, rows + i * width, hgj_group_row(groups, first + i));
		if (hgj_groups_bytes(groups) > groups->limit && n > HGJ_FEWEST_GROUPS)
			d->run_reason = HGJ_DEVICE_MEMORY;	/* the values of their keys are long */
	}
	pfree(rows);
}

/* What EXPLAIN ANALYZE has counted of the outer side so far. */
static void
note_counts(HgjPipelineState *d)
{
	if (d->njoins > 0)
		hgj_note_outer_counts(d->joins[0]);
	else
		hgj_note_counts(d->scan, d->agg->context, &d->counts);
}

/* The outer side is read from its start, and what has been counted is forgotten. */
static void
rescan_uncounted(HgjPipelineState *d)
{
	if (d->njoins > 0)
		hgj_rescan_uncounted(d->joins[0]);
	else
		hgj_rescan_counted(d->scan, &d->counts);
}

/* Steps 1 to 3 but for the tables, again with room for more groups where it was too little. */
static void
run_pipeline(HgjPipelineState *d)
{
	Size		most;
	uint64		expected = Max(HGJ_EXPECTED_GROUPS, d->agg->groups.expected);

	/* of a plan that did not fit there is a part only */
	if ((hgj_device_check_keys(d) || d->code.reason != HGJ_DEVICE_FITS) &&
		(!hgj_device_lower_agg(d) || !hgj_device_sides_fit(d)))
	{
		d->run_reason = d->code.reason != HGJ_DEVICE_FITS ? d->code.reason : HGJ_DEVICE_FAILED;
		return;
	}
	if (d->spec.nkeys > 0)
		hgj_device_write_having(d);
	/* what HAVING leaves out takes no memory here */
	most = hgj_device_has_having(d) ? PG_INT32_MAX : d->agg->groups.limit / d->agg->groups.stride;
	expected = Min(expected, Max(most, 1));
	for (;;)
	{
		bool		again = false;

		d->run_reason = HGJ_DEVICE_FITS;
		d->pushing = d->more_codes = false;
		hgj_device_start(d, expected);
		d->pushing = true;
		note_counts(d);
		if (!hgj_device_gave_up(d))
			hgj_device_push_rows(d, show_pushed);
		if (!hgj_device_gave_up(d))
			take_groups(d, &again);
		hgj_device_release(d);
		if (again)
			hgj_device_write_having(d);
		else if (d->run_reason != HGJ_DEVICE_GROUPS || d->spec.nkeys == 0 ||
			(expected >= most && !d->more_codes))
			break;
		hgj_groups_release(&d->agg->groups);
		hgj_progress_end(&d->agg->progress);
		if (!d->more_codes && !again)
			expected = Min(expected * HGJ_MORE_GROUPS, most);
		hgj_device_end(d);
		rescan_uncounted(d);
	}
}

/*
 * Fill the group table.  False: the host has to do it; nothing is in the table
 * then.
 */
bool
hgj_device_run(HgjPipelineState *d)
{
	HgjGroups  *groups = &d->agg->groups;
	bool		empty = false;

	hgj_device_reset(d);
	if (d->reason != HGJ_DEVICE_FITS)
	{
		hgj_device_log(d);
		return false;
	}

	hgj_device_end(d);
	hgj_device_start_having(d);
	for (int j = d->njoins - 1; j >= 0; j--)
		hgj_join_rescan_changed(d->joins[j]);
	hgj_device_enter(d);
	/* before the build: what the host makes of a side's columns is made while the device builds it */
	hgj_device_start_programs(d);
	if (hgj_device_build(d, &empty) && !empty)
		run_pipeline(d);
	hgj_device_end_sides(d);
	d->ran = !hgj_device_gave_up(d);
	(void) hgj_device_count_rows(d);
	if (d->ran)
	{
		if (empty && groups->nkeys == 0)
			hgj_groups_only(groups);
		return true;
	}
	hgj_device_log(d);
	hgj_groups_release(groups);
	hgj_progress_end(&d->agg->progress);
	if (d->reading)
	{
		hgj_device_end(d);
		rescan_uncounted(d);
	}
	return false;
}
