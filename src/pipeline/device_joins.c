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
 * 3. Columns are loaded where they are first asked for.  Between PROBE and MATCH
 *	  that does not count for later: a row that is filled with NULLs goes on
 *	  behind the MATCH.
 *
 * Below an aggregation the inputs are columns of the outer scan's table, which a
 * source of the pipeline's own decodes; the scan's quals may be the first thing that
 * runs (agg_device_plan.c).  Where rows are returned they are those of the
 * bottom join's outer batch: its key words, whatever their kind, and columns.
 *
 * Everything is palloc'd in the query's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "catalog/heap.h"
#include "executor/executor.h"
#include "expr/demand.h"
#include "expr/program_private.h"
#include "join/join_state.h"
#include "pipeline/device.h"
#include "utils/rel.h"

/*
 * How a column is kept, by value; its bits are enough where that is unknown.  Below an
 * aggregation, which runs again on the host if some value is none, numerics are
 * decimals of a *scale.
 */
static uint8
kind_of_attribute(HgjPipelineState *d, const FormData_pg_attribute *att, int8 *scale)
{
	HgjKind		kind = hgj_kind_of_type(att->atttypid);

	*scale = d->rows ? -1 : hgj_decimal_scale(att->atttypid, att->atttypmod);
	if (*scale >= 0)
		return HGJ_KIND_I8;
	if (!att->attbyval)
		hgj_device_refuse(&d->code, HGJ_DEVICE_COLUMN);
	if (kind != HGJ_KIND_OTHER)
		return kind;
	switch (att->attlen)
	{
		case 1:
			return HGJ_KIND_U1;
		case 2:
			return HGJ_KIND_I2;
		case 4:
			return HGJ_KIND_I4;
		default:
			return HGJ_KIND_I8;
	}
}

static uint8
kind_of_column(HgjPipelineState *d, PlanState *child, AttrNumber attno, int8 *scale)
{
	return kind_of_attribute(d, TupleDescAttr(ExecGetResultType(child), attno - 1), scale);
}

/* Of the table that is read by pages. */
static const FormData_pg_attribute *
table_attribute(const HgjPipelineState *d, AttrNumber attno)
{
	SeqScanState *scan = castNode(SeqScanState, d->joins[0]->outer_ps);

	if (attno < 0)
		return SystemAttributeDefinition(attno);
	return TupleDescAttr(RelationGetDescr(scan->ss.ss_currentRelation), attno - 1);
}

/* A key word, or a column, of the bottom join's outer batch. */
static void
describe_input(HgjPipelineState *d, HgjDeviceColumn *c)
{
	const HgjSource *outer = &d->joins[0]->outer;

	c->width = sizeof(uint64);
	c->kind = HGJ_KIND_I8;
	c->from = c->column;
	if (c->join == HGJ_DEVICE_WORD)
		return;
	c->kind = kind_of_column(d, outer->child, c->column, &c->scale);
	for (c->from = 0; c->from < outer->ncols; c->from++)
		if (outer->columns[c->from].attno == c->column)
			break;
	if (c->from == outer->ncols)
		hgj_device_refuse(&d->code, HGJ_DEVICE_COLUMN);
	else
		c->width = outer->columns[c->from].width;
}

/* Describe a column that nobody has asked for yet; NULL: there are too many. */
static HgjDeviceColumn *
add_column(HgjPipelineState *d, int join, int column)
{
	HgjDeviceColumn *c = &d->columns[d->ncolumns];
	PlanState  *child;

	/* before anything is written: `columns` has room for all that these allow */
	if (join < 0 ? d->spec.ninputs == HGJ_PIPE_INPUTS :
		d->spec.joins[join].ncolumns == HGJ_PIPE_COLUMNS)
		return NULL;
	c->join = join;
	c->column = column;
	c->scale = -1;
	if (join < 0 && d->rows)
	{
		describe_input(d, c);
		c->number = d->spec.ninputs++;
		d->spec.inputs[c->number] = c->kind;
	}
	else if (join < 0)
	{
		HgjColumn  *input = &d->inputs[d->spec.ninputs];
		const FormData_pg_attribute *att = table_attribute(d, column);

		c->kind = kind_of_attribute(d, att, &c->scale);
		input->attno = column;
		input->attlen = att->attlen;
		input->attbyval = att->attbyval;
		input->width = c->width = att->attbyval ? att->attlen : sizeof(Datum);
		c->number = d->spec.ninputs++;
		d->spec.inputs[c->number] = c->kind;
	}
	else
	{
		HgjPipeJoin *into = &d->spec.joins[join];
		const HgjColumn *stored = &d->joins[join]->inner.columns[column];

		child = d->joins[join]->inner_ps;
		c->kind = stored->dictionary ? HGJ_KIND_I4 :
			kind_of_column(d, child, stored->attno, &c->scale);
		c->width = stored->dictionary ? sizeof(uint32) : stored->width;
		c->number = into->ncolumns++;
		into->kinds[c->number] = c->kind;
	}
	d->ncolumns++;
	return c;
}

/*
 * The register of an input (join HGJ_DEVICE_INPUT or HGJ_DEVICE_WORD), or of a
 * build side's column.
 */
static uint8
load_column(HgjPipelineState *d, int join, int column)
{
	HgjDeviceColumn *c = NULL;

	for (int i = 0; i < d->ncolumns && c == NULL; i++)
		if (d->columns[i].join == join && d->columns[i].column == column)
			c = &d->columns[i];
	if (c == NULL)
		c = add_column(d, join, column);
	if (c == NULL)
	{
		hgj_device_refuse(&d->code, HGJ_DEVICE_SIZE);
		return 0;
	}
	if (c->loaded)
		return c->reg;
	c->reg = hgj_device_register(&d->code, c->kind);
	d->code.scales[c->reg] = c->scale;
	c->loaded = true;
	if (join < 0)
		EMIT(&d->code, HGJ_PIPE_INPUT, .dst = c->reg, .arg = c->number);
	else
		EMIT(&d->code, HGJ_PIPE_PAYLOAD, .dst = c->reg, .a = join, .arg = c->number);
	return c->reg;
}

/* The register of a column of the bottom join's outer side. */
static uint8
load_outer(HgjPipelineState *d, AttrNumber attno)
{
	List	   *targetlist = d->joins[0]->outer_ps->plan->targetlist;

	if (!d->rows)
		attno = castNode(Var, list_nth_node(TargetEntry, targetlist, attno - 1)->expr)->varattno;
	return load_column(d, HGJ_DEVICE_INPUT, attno);
}

/* HgjDeviceLookup of the scan's quals. */
static uint8
look_scan_up(void *arg, int input)
{
	HgjPipelineState *d = arg;

	return load_column(d, HGJ_DEVICE_INPUT, list_nth_int(d->scan_attnos, input));
}

/* HgjDeviceLookup of programs over pairs of a join. */
typedef struct PairLookup
{
	HgjPipelineState *device;
	int			join;
	const HgjPairColumns *pairs;
} PairLookup;

static uint8 look_pair_up(void *arg, int input);
static uint8 load_output(HgjPipelineState *d, int j, AttrNumber resno);

/* The register of a column of one of join j's sides. */
static uint8
load_side(HgjPipelineState *d, int j, bool inner, int column)
{
	AttrNumber	attno;

	if (inner)
		return load_column(d, j, column);
	attno = d->joins[j]->outer.columns[column].attno;
	return j > 0 ? load_output(d, j - 1, attno) : load_outer(d, attno);
}

/* The register of a column of join j's target list. */
static uint8
load_output(HgjPipelineState *d, int j, AttrNumber resno)
{
	HgjProgram *program;
	const HgjPairColumn *pair = hgj_output_column(d->joins[j], resno, &program);

	if (pair)
		return load_side(d, j, pair->inner, pair->column);
	if (program == NULL)
	{
		hgj_device_refuse(&d->code, HGJ_DEVICE_EXPRESSION);
		return 0;
	}
	if (d->rows)
	{
		PairLookup	lookup = {d, j, hgj_output_pairs(d->joins[j])};

		return hgj_device_eval(&d->code, program, look_pair_up, &lookup);
	}
	return d->computed[j][resno - 1];
}

static uint8
look_pair_up(void *arg, int input)
{
	PairLookup *lookup = arg;
	const HgjPairColumn *column = &lookup->pairs->columns[input];

	return load_side(lookup->device, lookup->join, column->inner, column->column);
}

/* The register of a column of the upper join's target list. */
uint8
hgj_device_output(HgjPipelineState *d, AttrNumber resno)
{
	return load_output(d, d->njoins - 1, resno);
}

/* False where the words of a key of this kind are not made here. */
static bool
kind_of_key(HgjKeyKind key, uint8 *kind)
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
	HgjJoinState *join = d->joins[j];
	HgjPipeJoin *spec = &d->spec.joins[j];

	if (j == 0 && d->rows)
	{
		if (join->outer.nwords > HGJ_PIPE_KEYS)
			hgj_device_refuse(&d->code, HGJ_DEVICE_SIZE);
		spec->nkeys = Min(join->outer.nwords, HGJ_PIPE_KEYS);
		for (uint32 w = 0; w < spec->nkeys; w++)
			spec->keys[w] = load_column(d, HGJ_DEVICE_WORD, w);
		return;
	}
	spec->nkeys = join->outer.nkeys;
	for (int k = 0; k < join->outer.nkeys; k++)
	{
		const HgjKey *key = &join->outer.keys[k];
		uint8		kind = 0;
		uint8		reg;

		if (k >= HGJ_PIPE_KEYS)
			hgj_device_refuse(&d->code, HGJ_DEVICE_SIZE);
		if (key->attno <= 0 || !kind_of_key(key->kind, &kind))
			hgj_device_refuse(&d->code, HGJ_DEVICE_KEY);
		if (d->code.reason != HGJ_DEVICE_FITS)
			return;
		reg = j > 0 ? load_output(d, j - 1, key->attno) :
			load_outer(d, key->attno);
		spec->keys[k] = hgj_device_key_word(&d->code, reg, kind);
	}
}

/* Computed columns, for every row of the join, as PostgreSQL does. */
static void
write_computed(HgjPipelineState *d, int j)
{
	int			ncols = list_length(d->joins[j]->css.ss.ps.plan->targetlist);
	PairLookup	lookup = {d, j, NULL};

	if (d->rows)
		return;
	lookup.pairs = hgj_output_pairs(d->joins[j]);
	for (int resno = 1; resno <= ncols; resno++)
	{
		HgjProgram *program;

		(void) hgj_output_column(d->joins[j], resno, &program);
		if (program)
			d->computed[j][resno - 1] =
				hgj_device_eval(&d->code, program, look_pair_up, &lookup);
	}
}

/* Steps 2 and 3. */
static void
write_join(HgjPipelineState *d, int j)
{
	HgjJoinState *join = d->joins[j];
	HgjPipeJoin *spec = &d->spec.joins[j];
	bool		loaded[HGJ_DEVICE_COLUMNS];
	int			nregs;

	spec->pass = join->semantics.emit_matches;
	spec->fill = join->semantics.fill_outer;
	spec->single = join->semantics.one_per_outer;
	write_keys(d, j);

	nregs = d->code.nregs;
	for (int i = 0; i < HGJ_DEVICE_COLUMNS; i++)
		loaded[i] = d->columns[i].loaded;
	EMIT(&d->code, HGJ_PIPE_PROBE, .a = j);
	if (join->rules.residual)
	{
		PairLookup	lookup = {d, j, &join->rules.residual_columns};

		hgj_device_filter(&d->code, join->rules.residual, j, look_pair_up, &lookup);
	}
	EMIT(&d->code, HGJ_PIPE_MATCH, .a = j);
	for (int i = 0; i < HGJ_DEVICE_COLUMNS; i++)
		d->columns[i].loaded = loaded[i];
	d->code.nregs = nregs;
	if (d->filters[j])
	{
		PairLookup	lookup = {d, j, &d->filter_columns[j]};

		hgj_device_filter(&d->code, d->filters[j], HGJ_PIPE_JOINS + j,
						  look_pair_up, &lookup);
	}
	write_computed(d, j);
}

/*
 * Step 2: the instructions of all joins.  With `constants` the programs must have
 * been started.  d->code.reason says whether something does not fit.
 */
void
hgj_device_write_joins(HgjPipelineState *d, bool constants)
{
	memset(&d->code, 0, sizeof(d->code));
	d->code.displays = HGJ_PIPE_NONE;
	d->code.spec = &d->spec;
	d->code.constants = constants;
	d->spec.ncode = 0;
	for (int i = 0; i < HGJ_DEVICE_COLUMNS; i++)
		d->columns[i].loaded = false;
	d->spec.njoins = d->njoins;
	if (d->scan_filter)
		hgj_device_filter(&d->code, d->scan_filter, HGJ_PIPE_DROP - 1, look_scan_up, d);
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
keys_fit(const HgjJoinState *join, bool words)
{
	for (int k = 0; k < join->outer.nkeys; k++)
	{
		const HgjKey *key = &join->outer.keys[k];
		uint8		kind;

		if (words ? key->kind == HGJ_KEY_OPAQUE :
			key->attno <= 0 || !kind_of_key(key->kind, &kind))
			return false;
	}
	return true;
}

/* Step 1, of one join; bottom: there is none of ours below. */
static HgjDeviceReason
look_at_join(const HgjJoinState *join, bool rows, bool bottom)
{
	const HgjSemantics *s = &join->semantics;
	CustomScan *cscan = castNode(CustomScan, join->css.ss.ps.plan);
	Node	   *join_quals = list_nth(cscan->custom_exprs, HGJ_EXPRS_JOIN);

	if (cscan->scan.plan.parallel_aware || join->outer_ps->plan->parallel_aware || IsParallelWorker())
		return HGJ_DEVICE_PARALLEL;
	if (s->fill_inner || s->mark_inner || s->one_per_inner)
		return HGJ_DEVICE_JOIN_TYPE;
	if (!keys_fit(join, rows && bottom))
		return HGJ_DEVICE_KEY;
	if (join->rules.match_qual)
		return HGJ_DEVICE_QUAL;
	/* rows that have been returned cannot be taken back */
	if (rows && (join->goal.rows_may_raise ||
				 hgj_may_raise(join_quals, join->css.ss.ps.state)))
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
	return hgj_worth_peeking(join) && hgj_rows_may_raise(join->inner_ps);
}

/*
 * Clauses that apply after an outer join, of join j; false: not all of them.  Of
 * rows that are returned, the upper join's are the host's.
 */
static bool
compile_filter(HgjPipelineState *d, int j)
{
	HgjJoinState *join = d->joins[j];
	CustomScan *cscan = castNode(CustomScan, join->css.ss.ps.plan);

	if (join->rules.filter == NULL || (d->rows && j == d->njoins - 1))
		return true;
	hgj_pair_columns_init(&d->filter_columns[j], join);
	return hgj_program_compile_quals(list_nth(cscan->custom_exprs, HGJ_EXPRS_FILTER),
									 &join->css.ss.ps, hgj_pair_lookup,
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
		bool		bottom = join->outer.methods != &hgj_source_batches;
		HgjDeviceReason reason = look_at_join(join, d->rows, bottom);

		if (reason != HGJ_DEVICE_FITS)
			return reason;
		if (n == HGJ_PIPE_JOINS)
			return HGJ_DEVICE_SIZE;
		chain[n++] = join;
		if (bottom)
			break;
		join = join->outer.private_state;
	}
	for (int i = 0; i < n - 1; i++)
		if (may_build_in_vain(chain[i]))
			return HGJ_DEVICE_ORDER;
	d->njoins = n;
	for (int j = 0; j < n; j++)
	{
		d->joins[j] = chain[n - 1 - j];
		d->computed[j] = palloc0(list_length(d->joins[j]->css.ss.ps.plan->targetlist) + 1);
		if (!compile_filter(d, j))
			return HGJ_DEVICE_QUAL;
	}
	return HGJ_DEVICE_FITS;
}
