/*-------------------------------------------------------------------------
 *
 * agg_device_plan.c
 *	  Does a HashGraphAgg over a chain of HashGraphJoins, or over a table, fit a
 *	  pipeline, and what are the pipeline's instructions?
 *
 * 1. At executor start, look at the joins (device_joins.c), whose outer side must
 *	  be read by pages, or at the scan, which must be, too.
 * 2. Write the instructions: those of the joins, then the aggregates' filters and
 *	  arguments.
 * 3. State words: the rows of a group first, then for each input of aggregates
 *	  how often it counts, then what the aggregates keep.  Floats' sums have no
 *	  squares, so that transition values of avg() stay with the host; sum(float4)
 *	  rounds after every step, and does, too.
 * 4. The quals of the outer scan come before all that, if they are such as run
 *	  here and most rows pass them, or most of the table is kept in memory
 *	  (device_kept.c); otherwise the source runs them.
 *
 * Everything is palloc'd in the query's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "agg/agg_state.h"
#include "executor/executor.h"
#include "expr/demand.h"
#include "expr/program_private.h"
#include "join/join.h"
#include "kept/store.h"
#include "optimizer/optimizer.h"
#include "pipeline/device.h"
#include "scan/page_quals.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"

/* HgjDeviceInputs of the aggregation's programs. */
static uint8
load_input(void *arg, int input)
{
	return hgj_device_output(arg, input + 1);
}

static bool
find_input(void *arg, int input, HgjDevicePlace *place)
{
	HgjDeviceOutput output;

	(void) hgj_device_find_output(arg, input + 1, &output);
	*place = output.place;
	return output.is_column;
}

static HgjDeviceInputs
agg_inputs(HgjPipelineState *d)
{
	return (HgjDeviceInputs) {load_input, find_input, d};
}

static int
add_word(HgjPipelineState *d, HgjPipeState state, uint8 reg, uint8 filter)
{
	if (d->spec.nwords == HGJ_PIPE_WORDS)
	{
		hgj_device_refuse(&d->code, HGJ_DEVICE_SIZE);
		return 0;
	}
	d->spec.words[d->spec.nwords] = (HgjPipeWord) {state, reg, filter};
	return d->spec.nwords++;
}

/* The steps of an expression that is not just a column, and their program; or NULL. */
static HgjStep *
step_of(const HgjAggExpr *expr, HgjProgram **program)
{
	*program = expr->decimals ? expr->decimals : expr->program;
	if (expr->decimals)
		return expr->decimals->decimals[expr->place].step;
	return expr->program ? expr->program->root : NULL;
}

/* The register of an aggregate's filter or argument. */
static uint8
write_expr(HgjPipelineState *d, const HgjAggExpr *expr)
{
	HgjProgram *program;
	HgjStep    *step = step_of(expr, &program);
	HgjDeviceInputs inputs = agg_inputs(d);

	if (expr->column >= 0 && expr->decimals == NULL)
		return hgj_device_output(d, expr->column + 1);
	if (step == NULL)
	{
		hgj_device_refuse(&d->code, HGJ_DEVICE_EXPRESSION);
		return 0;
	}
	hgj_device_load(&d->code, program, step, &inputs);
	return hgj_device_step(&d->code, program, step, &inputs);
}

/* An argument that can fail, for rows that pass the filter only. */
static uint8
write_filtered(HgjPipelineState *d, const HgjAggExpr *expr, uint8 filter)
{
	HgjProgram *program;
	HgjStep    *step = step_of(expr, &program);
	HgjDeviceInputs inputs = agg_inputs(d);
	uint8		dst;
	uint8		reg;
	int			jump;

	hgj_device_load(&d->code, program, step, &inputs);
	dst = hgj_device_register(&d->code, step->decimal ? HGJ_KIND_I8 : step->kind);
	EMIT(&d->code, HGJ_PIPE_NULL, .dst = dst);
	jump = hgj_device_jump(&d->code, HGJ_PIPE_JUMP_UNLESS, filter);
	reg = hgj_device_step(&d->code, program, step, &inputs);
	EMIT(&d->code, HGJ_PIPE_MOVE, .dst = dst, .a = reg);
	hgj_device_land(&d->code, jump);
	d->code.nregs = dst + 1;
	return dst;
}

/*
 * An input's registers (NONE where there is no such thing), and its counter.
 * *displays: the display scales of decimals, where they are not all the same.
 */
static void
write_input(HgjPipelineState *d, int i, uint8 *filter, uint8 *argument, uint8 *displays)
{
	const HgjAggInput *input = &d->agg->inputs[i];
	HgjProgram *program;
	const HgjStep *step = input->argument ? step_of(input->argument, &program) : NULL;

	*filter = *argument = *displays = HGJ_PIPE_NONE;
	d->input_words[i] = -1;
	if (input->filter)
		*filter = write_expr(d, input->filter);
	if (step && hgj_device_mixed(step))
	{
		*displays = hgj_device_register(&d->code, HGJ_KIND_I8);
		if (input->filter)
			hgj_device_refuse(&d->code, HGJ_DEVICE_EXPRESSION);
		d->code.displays = *displays;
	}
	if (input->filter && step && step->lazy)
		*argument = write_filtered(d, input->argument, *filter);
	else if (input->argument)
		*argument = write_expr(d, input->argument);
	if (input->filter || input->argument)
		d->input_words[i] = add_word(d, HGJ_PIPE_COUNT, *argument, *filter);
}

/* The argument as a float8. */
static uint8
as_float8(HgjPipelineState *d, uint8 reg)
{
	uint8		wide;

	if (d->code.kinds[reg] == HGJ_KIND_F8)
		return reg;
	if (d->code.kinds[reg] != HGJ_KIND_F4)
		hgj_device_refuse(&d->code, HGJ_DEVICE_AGGREGATE);
	wide = hgj_device_register(&d->code, HGJ_KIND_F8);
	EMIT(&d->code, HGJ_PIPE_CAST, .kind = HGJ_KIND_F4, .dst = wide, .a = reg,
		 .c = HGJ_KIND_F8);
	return wide;
}

/* Aggregates whose state is one word: sums of small integers, min, max. */
static int
write_word(HgjPipelineState *d, const HgjAggFunction *function, uint8 reg, uint8 filter)
{
	if (function->change == HGJ_AGG_ADD)
		return add_word(d, HGJ_PIPE_SUM, reg, filter);
	if (function->argument == HGJ_KIND_U4)
		reg = hgj_device_key_word(&d->code, reg, HGJ_KIND_U4);
	return add_word(d, function->change == HGJ_AGG_LEAST ? HGJ_PIPE_MIN :
					HGJ_PIPE_MAX, reg, filter);
}

/* Step 3, for one aggregate: the first of its words, or -1. */
static int
write_aggregate(HgjPipelineState *d, const HgjAggregate *agg, uint8 reg, uint8 filter,
				uint8 displays)
{
	HgjAggChange change = agg->function->change;
	int			word;

	switch (agg->function->kind)
	{
		case HGJ_AGG_COUNT:
			return -1;
		case HGJ_AGG_WORD:
		case HGJ_AGG_AVG_INT:
			return write_word(d, agg->function, reg, filter);
		case HGJ_AGG_SUM_COUNTS:
		case HGJ_AGG_SUM_SUMS:
		case HGJ_AGG_SUM_INT8:
		case HGJ_AGG_AVG_INT8:
			word = add_word(d, HGJ_PIPE_SUM_LOW, reg, filter);
			(void) add_word(d, HGJ_PIPE_SUM_HIGH, reg, filter);
			return word;
		case HGJ_AGG_FLOAT4:
		case HGJ_AGG_FLOAT8:
			if (change == HGJ_AGG_ADD && agg->function->argument == HGJ_KIND_F4)
				break;
			reg = as_float8(d, reg);
			if (change == HGJ_AGG_ADD)
				return add_word(d, HGJ_PIPE_SUM_FLOAT, reg, filter);
			return add_word(d, change == HGJ_AGG_LEAST ? HGJ_PIPE_MIN_FLOAT :
							HGJ_PIPE_MAX_FLOAT, reg, filter);
		case HGJ_AGG_AVG_FLOAT:
			if (d->agg->partial)
				break;
			return add_word(d, HGJ_PIPE_SUM_FLOAT, as_float8(d, reg), filter);
		case HGJ_AGG_SUM_NUMERIC:
		case HGJ_AGG_AVG_NUMERIC:
			if (agg->input->argument->decimals == NULL)
				break;
			word = add_word(d, HGJ_PIPE_SUM_LOW, reg, filter);
			(void) add_word(d, HGJ_PIPE_SUM_HIGH, reg, filter);
			if (displays != HGJ_PIPE_NONE)
				(void) add_word(d, HGJ_PIPE_MAX, displays, filter);
			return word;
		case HGJ_AGG_BY_FUNCTION:
			if (agg->input->argument->decimals == NULL || displays != HGJ_PIPE_NONE)
				break;
			return add_word(d, agg->function->function == F_MIN_NUMERIC ? HGJ_PIPE_MIN :
							HGJ_PIPE_MAX, reg, filter);
		case HGJ_AGG_TRANSITION:
			break;
	}
	hgj_device_refuse(&d->code, HGJ_DEVICE_AGGREGATE);
	return -1;
}

static void
write_aggregates(HgjPipelineState *d)
{
	HgjAggState *agg = d->agg;

	(void) add_word(d, HGJ_PIPE_COUNT, HGJ_PIPE_NONE, HGJ_PIPE_NONE);
	for (int i = 0; i < agg->ninputs && d->code.reason == HGJ_DEVICE_FITS; i++)
	{
		uint8		filter;
		uint8		argument;
		uint8		displays;

		write_input(d, i, &filter, &argument, &displays);
		for (int a = 0; a < agg->naggs; a++)
			if (agg->aggs[a].input == &agg->inputs[i])
				d->agg_words[a] = write_aggregate(d, &agg->aggs[a], argument, filter,
												  displays);
	}
}

/* Step 2: all instructions and the rest of the plan.  False: d->code.reason says why not. */
bool
hgj_device_lower_agg(HgjPipelineState *d)
{
	hgj_device_write_joins(d);
	if (d->code.reason == HGJ_DEVICE_FITS)
		hgj_device_write_keys(d);
	if (d->code.reason == HGJ_DEVICE_FITS)
		write_aggregates(d);
	hgj_device_write_end(d);
	return d->code.reason == HGJ_DEVICE_FITS;
}

/* It is not for the device: as if it had never been tried. */
static void
forget_scan_filter(HgjPipelineState *d)
{
	d->scan_filter = NULL;
	d->filter_kept = false;
	d->ncolumns = 0;
	d->nreads = 0;
	d->made = NIL;
	d->spec.ninputs = 0;
}

/* Step 1, without joins; *source: what reads the table for the host. */
static HgjDeviceReason
find_scan(HgjPipelineState *d, const HgjSource **source)
{
	int			ncols = d->agg->ncolumns;

	d->scan_programs = palloc0(mul_size(ncols + 1, sizeof(HgjProgram *)));
	*source = hgj_agg_feed_table(d->agg->feed, d->scan_programs);
	if (*source == NULL)
		return HGJ_DEVICE_SOURCE;
	d->scan = (*source)->child;
	if (d->scan->plan->parallel_aware || IsParallelWorker())
		return HGJ_DEVICE_PARALLEL;
	d->scan_computed = palloc(ncols + 1);
	d->scan_inputs = palloc(mul_size((*source)->ncols + 1, sizeof(AttrNumber)));
	for (int c = 0; c < (*source)->ncols; c++)
		d->scan_inputs[c] = (*source)->columns[c].attno;
	return HGJ_DEVICE_FITS;
}

/* Step 1; *source: as above. */
static HgjDeviceReason
look_at_plan(HgjPipelineState *d, const HgjSource **source)
{
	HgjDeviceReason reason = d->agg->join ? hgj_device_find_joins(d, d->agg->join) :
		find_scan(d, source);

	if (reason != HGJ_DEVICE_FITS)
		return reason;
	if (d->njoins > 0)
		*source = &hgj_join(d->joins[0])->outer;
	if ((*source)->methods != &hgj_source_pages)
		return HGJ_DEVICE_SOURCE;
	if (contain_volatile_functions((Node *) d->scan->plan->qual) ||
		(d->njoins == 0 && contain_volatile_functions((Node *) d->scan->plan->targetlist)))
		return HGJ_DEVICE_VOLATILE;
	hgj_device_plan_keys(d);
	for (int from_kept = hgj_store_exists(); from_kept >= 0; from_kept--)
	{
		if (hgj_device_compile_filter(d, from_kept) && hgj_device_lower_agg(d) &&
			(!d->filter_kept || hgj_device_fits_kept(d)))
			return HGJ_DEVICE_FITS;
		forget_scan_filter(d);
	}
	return hgj_device_lower_agg(d) ? HGJ_DEVICE_FITS : d->code.reason;
}

/* See what becomes of the aggregation on a device, at executor start. */
HgjPipelineState *
hgj_device_plan(HgjAggState *agg, EState *estate)
{
	HgjPipelineState *d = palloc0(sizeof(HgjPipelineState));
	const HgjSource *source = NULL;

	d->agg = agg;
	d->input_words = palloc0(mul_size(agg->ninputs + 1, sizeof(int)));
	d->agg_words = palloc0(mul_size(agg->naggs + 1, sizeof(int)));
	d->reason = look_at_plan(d, &source);
	if (d->reason != HGJ_DEVICE_FITS)
		return d;

	hgj_device_plan_having(d);
	d->source.econtext = source->econtext;
	d->source.progress = &agg->progress;
	hgj_device_open_scan(d, estate);
	if (d->reason == HGJ_DEVICE_FITS)
		hgj_device_plan_sides(d, estate);
	return d;
}
