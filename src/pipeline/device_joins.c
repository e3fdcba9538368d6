/*-------------------------------------------------------------------------
 *
 * device_joins.c
 *	  Does a chain of HashGraphJoins fit a pipeline, and what are the instructions
 *	  for it?
 *
 * 1. Go down from the upper join to the one whose outer side is not our own.  What
 *	  cannot be done on a device, or not exactly, gives a reason, and the host
 *	  does it all as before.
 * 2. Write the instructions: for each join, from the bottom up, its key words,
 *	  PROBE, its residual clauses, MATCH, the clauses that apply after an outer
 *	  join, and, below an aggregation, the computed columns of its target list.
 *	  Where rows are returned, the host computes columns, and the device those
 *	  that its instructions read.
 * 3. Between PROBE and MATCH a column that is loaded does not count for later: a
 *	  row that is filled with NULLs goes on behind the MATCH.
 *
 * Which columns there are, device_columns.c says.
 *
 * Everything is palloc'd in the query's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "base/plan_format.h"
#include "executor/executor.h"
#include "expr/demand.h"
#include "expr/program_private.h"
#include "join/join.h"
#include "pipeline/device.h"

/* The register of a column of the bottom join's outer side. */
static uint8
load_outer(HgjPipelineState *d, AttrNumber attno)
{
	if (!d->of_batch)
		attno = hgj_device_scan_attno(d, attno);
	return hgj_device_load_column(d, HGJ_DEVICE_INPUT, attno);
}

static uint8 load_output(HgjPipelineState *d, int j, AttrNumber resno);
static void find_output(HgjPipelineState *d, int j, AttrNumber resno,
						HgjDeviceOutput *output);

/* The register of a column of one of join j's sides. */
static uint8
load_side(HgjPipelineState *d, int j, bool inner, int column)
{
	AttrNumber	attno;

	if (inner)
		return hgj_device_load_column(d, j, column);
	attno = hgj_join(d->joins[j])->outer.columns[column].attno;
	return j > 0 ? load_output(d, j - 1, attno) : load_outer(d, attno);
}

static uint8
load_pair_input(void *arg, int input)
{
	HgjDevicePairs *pairs = arg;
	const HgjPairColumn *column = &pairs->pairs->columns[input];

	return load_side(pairs->device, pairs->join, column->inner, column->column);
}

/* The column of a side, if it is one, that is a column of one of join j's. */
static void
find_side(HgjPipelineState *d, int j, bool inner, int column, HgjDeviceOutput *output)
{
	AttrNumber	attno = hgj_join(d->joins[j])->outer.columns[column].attno;

	output->is_column = true;
	output->place.join = inner ? j : HGJ_DEVICE_INPUT;
	if (inner)
		output->place.column = column;
	else if (j > 0)
		find_output(d, j - 1, attno, output);
	else
		output->place.column = d->of_batch ? attno : hgj_device_scan_attno(d, attno);
}

static bool
find_pair_input(void *arg, int input, HgjDevicePlace *place)
{
	HgjDevicePairs *pairs = arg;
	const HgjPairColumn *column = &pairs->pairs->columns[input];
	HgjDeviceOutput output = {0};

	find_side(pairs->device, pairs->join, column->inner, column->column, &output);
	*place = output.place;
	return output.is_column;
}

/* HgjDeviceInputs of programs over pairs of join j. */
static HgjDeviceInputs
pair_inputs(HgjPipelineState *d, int j, const HgjPairColumns *columns,
			HgjDevicePairs *pairs)
{
	*pairs = (HgjDevicePairs) {d, j, columns};
	return (HgjDeviceInputs) {load_pair_input, find_pair_input, pairs};
}

/* The register of a column of join j's target list. */
static uint8
load_output(HgjPipelineState *d, int j, AttrNumber resno)
{
	HgjProgram *program;
	const HgjPairColumn *pair = hgj_output_column(d->joins[j], resno, &program);

	if (pair)
		return load_side(d, j, pair->inner, pair->column);
	if (program && d->rows)
	{
		HgjDevicePairs pairs;
		HgjDeviceInputs inputs = pair_inputs(d, j, hgj_output_pairs(d->joins[j]), &pairs);

		return hgj_device_eval(&d->code, program, &inputs);
	}
	if (program && d->computed[j][resno - 1] != HGJ_PIPE_NONE)
		return d->computed[j][resno - 1];
	hgj_device_refuse(&d->code, HGJ_DEVICE_EXPRESSION);
	return 0;
}

/* What a column of join j's target list is. */
static void
find_output(HgjPipelineState *d, int j, AttrNumber resno, HgjDeviceOutput *output)
{
	const HgjPairColumn *pair = hgj_output_column(d->joins[j], resno, &output->program);

	output->is_column = false;
	if (pair)
		find_side(d, j, pair->inner, pair->column, output);
	else if (output->program)
		output->inputs = pair_inputs(d, j, hgj_output_pairs(d->joins[j]), &output->pairs);
}

/* What a column of the upper join's target list, or of the scan's, is; false: neither. */
bool
hgj_device_find_output(HgjPipelineState *d, AttrNumber resno, HgjDeviceOutput *output)
{
	memset(output, 0, sizeof(*output));
	if (d->njoins > 0)
		find_output(d, d->njoins - 1, resno, output);
	else
		hgj_device_find_scan_output(d, resno, output);
	return output->is_column || output->program;
}

/* The register of a column of the upper join's target list, or of the scan's. */
uint8
hgj_device_output(HgjPipelineState *d, AttrNumber resno)
{
	if (d->njoins == 0)
		return hgj_device_scan_output(d, resno);
	return load_output(d, d->njoins - 1, resno);
}

/* False where the words of a key of this kind are not made here. */
bool
hgj_device_kind_of_key(HgjKeyKind key, uint8 *kind)
{
	switch (key)
	{
		case HGJ_KEY_BOOL:
		case HGJ_KEY_CHAR:
			*kind = HGJ_KIND_U1;
			return true;
		case HGJ_KEY_INT2:
			*kind = HGJ_KIND_I2;
			return true;
		case HGJ_KEY_INT4:
			*kind = HGJ_KIND_I4;
			return true;
		case HGJ_KEY_INT8:
			*kind = HGJ_KIND_I8;
			return true;
		case HGJ_KEY_UINT4:
			*kind = HGJ_KIND_U4;
			return true;
		case HGJ_KEY_FLOAT4:
			*kind = HGJ_KIND_F4;
			return true;
		case HGJ_KEY_FLOAT8:
			*kind = HGJ_KIND_F8;
			return true;
		case HGJ_KEY_BYTES6:
		case HGJ_KEY_BYTES8:
		case HGJ_KEY_UUID:
		case HGJ_KEY_TEXT:
		case HGJ_KEY_BPCHAR:
		case HGJ_KEY_OPAQUE:
			break;
	}
	return false;
}

static void
write_keys(HgjPipelineState *d, int j)
{
	const HgjSource *outer = &hgj_join(d->joins[j])->outer;
	HgjPipeJoin *spec = &d->spec.joins[j];

	if (j == 0 && d->of_batch)
	{
		if (outer->nwords > HGJ_PIPE_KEYS)
			hgj_device_refuse(&d->code, HGJ_DEVICE_SIZE);
		spec->nkeys = Min(outer->nwords, HGJ_PIPE_KEYS);
		for (uint32 w = 0; w < spec->nkeys; w++)
			spec->keys[w] = hgj_device_load_column(d, HGJ_DEVICE_WORD, w);
		return;
	}
	spec->nkeys = outer->nkeys;
	for (int k = 0; k < outer->nkeys; k++)
	{
		const HgjKey *key = &outer->keys[k];
		uint8		kind = 0;
		uint8		reg;

		if (k >= HGJ_PIPE_KEYS)
			hgj_device_refuse(&d->code, HGJ_DEVICE_SIZE);
		if (key->attno <= 0 || !hgj_device_kind_of_key(key->kind, &kind))
			hgj_device_refuse(&d->code, HGJ_DEVICE_KEY);
		if (d->code.reason != HGJ_DEVICE_FITS)
			return;
		reg = j > 0 ? load_output(d, j - 1, key->attno) :
			load_outer(d, key->attno);
		spec->keys[k] = hgj_device_key_word(&d->code, reg, kind);
	}
}

/*
 * Computed columns, for every row of the join, as PostgreSQL does.  What passes by
 * reference may be a group key, and nothing else.
 */
static void
write_computed(HgjPipelineState *d, int j)
{
	int			ncols = list_length(hgj_join(d->joins[j])->css.ss.ps.plan->targetlist);
	HgjDevicePairs pairs;
	HgjDeviceInputs inputs;

	if (d->rows)
		return;
	inputs = pair_inputs(d, j, hgj_output_pairs(d->joins[j]), &pairs);
	for (int resno = 1; resno <= ncols; resno++)
	{
		HgjProgram *program;

		(void) hgj_output_column(d->joins[j], resno, &program);
		if (program)
			d->computed[j][resno - 1] = program->root->kind == HGJ_KIND_OTHER ?
				HGJ_PIPE_NONE : hgj_device_eval(&d->code, program, &inputs);
	}
}

/* Steps 2 and 3. */
static void
write_join(HgjPipelineState *d, int j)
{
	const HgjSemantics *s = &hgj_join(d->joins[j])->semantics;
	const HgjPairColumns *read;
	HgjProgram *residual = hgj_join_residual(d->joins[j], &read);
	HgjPipeJoin *spec = &d->spec.joins[j];
	bool		loaded[HGJ_DEVICE_COLUMNS];
	HgjDevicePairs pairs;
	HgjDeviceInputs inputs;
	int			nregs;

	spec->pass = s->emit_matches;
	spec->fill = s->fill_outer;
	spec->single = s->one_per_outer;
	write_keys(d, j);

	nregs = d->code.nregs;
	for (int i = 0; i < HGJ_DEVICE_COLUMNS; i++)
		loaded[i] = d->columns[i].loaded;
	EMIT(&d->code, HGJ_PIPE_PROBE, .a = j);
	if (residual)
	{
		inputs = pair_inputs(d, j, read, &pairs);
		hgj_device_filter(&d->code, residual, j, &inputs);
	}
	EMIT(&d->code, HGJ_PIPE_MATCH, .a = j);
	for (int i = 0; i < HGJ_DEVICE_COLUMNS; i++)
		d->columns[i].loaded = loaded[i];
	d->code.nregs = nregs;
	if (d->filters[j])
	{
		inputs = pair_inputs(d, j, &d->filter_columns[j], &pairs);
		hgj_device_filter(&d->code, d->filters[j], HGJ_PIPE_JOINS + j, &inputs);
	}
	write_computed(d, j);
}

/*
 * What was lowered before is forgotten, columns of build sides that were asked for, too: others may
 * be now.  Inputs stay, which the source knows.  All that is not written is zero, so that equal
 * plans are equal bytes.
 */
static void
forget_plan(HgjPipelineState *d)
{
	uint32		ninputs = d->spec.ninputs;
	uint8		inputs[HGJ_PIPE_INPUTS];
	int			n = 0;

	memcpy(inputs, d->spec.inputs, sizeof(inputs));
	memset(&d->spec, 0, sizeof(d->spec));
	memcpy(d->spec.inputs, inputs, sizeof(inputs));
	d->spec.ninputs = ninputs;
	d->spec.rows = d->rows;
	d->spec.njoins = d->njoins;
	for (int i = 0; i < d->ncolumns; i++)
		if (d->columns[i].join < 0)
			d->columns[n++] = d->columns[i];
	d->ncolumns = n;
	for (int i = 0; i < HGJ_DEVICE_COLUMNS; i++)
		d->columns[i].loaded = false;
	d->nvalues = 0;
}

/*
 * Step 2: the instructions of all joins, or of the scan without any.  d->code.reason says whether
 * something does not fit.
 */
void
hgj_device_write_joins(HgjPipelineState *d)
{
	memset(&d->code, 0, sizeof(d->code));
	d->code.displays = HGJ_PIPE_NONE;
	d->code.spec = &d->spec;
	d->code.device = d;
	forget_plan(d);
	if (d->scan_filter)
		hgj_device_filter_scan(d);
	if (d->njoins == 0)
		hgj_device_write_scan(d);
	for (int j = 0; j < d->njoins && d->code.reason == HGJ_DEVICE_FITS; j++)
		write_join(d, j);
}

/* Their end, and the aggregation's. */
void
hgj_device_write_end(HgjPipelineState *d)
{
	EMIT(&d->code, HGJ_PIPE_END);
}

/* Are the words of its keys enough to tell, with what is known before the build? */
static bool
keys_fit(const HgjSource *outer, bool words)
{
	for (int k = 0; k < outer->nkeys; k++)
	{
		const HgjKey *key = &outer->keys[k];
		uint8		kind;

		if (words ? key->kind == HGJ_KEY_OPAQUE :
			key->attno <= 0 || !hgj_device_kind_of_key(key->kind, &kind))
			return false;
	}
	return true;
}

/* Step 1, of one join; words: the host makes its key words. */
static HgjDeviceReason
look_at_join(const HgjJoinState *join, bool rows, bool words)
{
	const HgjSemantics *s = &hgj_join(join)->semantics;
	CustomScan *cscan = castNode(CustomScan, hgj_join(join)->css.ss.ps.plan);
	Node	   *join_quals = list_nth(cscan->custom_exprs, HGJ_EXPRS_JOIN);

	if (cscan->scan.plan.parallel_aware || hgj_join(join)->outer_ps->plan->parallel_aware ||
		IsParallelWorker())
		return HGJ_DEVICE_PARALLEL;
	if (s->fill_inner || s->mark_inner || s->one_per_inner)
		return HGJ_DEVICE_JOIN_TYPE;
	if (!keys_fit(&hgj_join(join)->outer, words))
		return HGJ_DEVICE_KEY;
	if (hgj_join_has_quals_by_row(join))
		return HGJ_DEVICE_QUAL;
	/* rows that have been returned cannot be taken back */
	if (rows && (hgj_join_rows_may_raise(join) ||
				 hgj_may_raise(join_quals, hgj_join(join)->css.ss.ps.state)))
		return HGJ_DEVICE_RAISES;
	return HGJ_DEVICE_FITS;
}

/*
 * Could its build side raise an error where PostgreSQL, who first sees that the
 * joins below return no row, would not even have looked at it?
 */
static bool
may_build_in_vain(const HgjJoinState *join)
{
	return hgj_worth_peeking(join) && hgj_rows_may_raise(hgj_join(join)->inner_ps);
}

/*
 * Clauses that apply after an outer join, of join j; false: not all of them.  Of
 * rows that are returned, the upper join's are the host's.
 */
static bool
compile_filter(HgjPipelineState *d, int j)
{
	HgjJoinState *join = d->joins[j];
	CustomScan *cscan = castNode(CustomScan, hgj_join(join)->css.ss.ps.plan);

	if (!hgj_join_has_filter(join) || (d->rows && j == d->njoins - 1))
		return true;
	hgj_pair_columns_init(&d->filter_columns[j], join);
	return hgj_program_compile_quals(list_nth(cscan->custom_exprs, HGJ_EXPRS_FILTER),
									 &hgj_join(join)->css.ss.ps, hgj_pair_lookup,
									 &d->filter_columns[j], true,
									 &d->filters[j]) == NIL;
}

/* Step 1: the joins from `upper` down. */
HgjDeviceReason
hgj_device_find_joins(HgjPipelineState *d, HgjJoinState *upper)
{
	HgjJoinState *chain[HGJ_PIPE_JOINS];
	HgjJoinState *join = upper;
	int			n = 0;

	for (;;)
	{
		bool		bottom = hgj_source_join(&hgj_join(join)->outer) == NULL;
		HgjDeviceReason reason = look_at_join(join, d->rows, d->of_batch && bottom);

		if (reason != HGJ_DEVICE_FITS)
			return reason;
		if (n == HGJ_PIPE_JOINS)
			return HGJ_DEVICE_SIZE;
		chain[n++] = join;
		if (bottom)
			break;
		join = hgj_source_join(&hgj_join(join)->outer);
	}
	for (int i = 0; i < n - 1; i++)
		if (may_build_in_vain(chain[i]))
			return HGJ_DEVICE_ORDER;
	d->njoins = n;
	d->scan = hgj_join(chain[n - 1])->outer_ps;
	for (int j = 0; j < n; j++)
	{
		HgjJoinState *here = chain[n - 1 - j];

		d->joins[j] = here;
		d->computed[j] = palloc0(list_length(hgj_join(here)->css.ss.ps.plan->targetlist) + 1);
		if (!compile_filter(d, j))
			return HGJ_DEVICE_QUAL;
	}
	return HGJ_DEVICE_FITS;
}
