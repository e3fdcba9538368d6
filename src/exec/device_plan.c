/*-------------------------------------------------------------------------
 *
 * device_plan.c
 *	  Does a HashGraphAgg over a chain of HashGraphJoins fit a pipeline, and what
 *	  are the pipeline's instructions?
 *
 * 1. At executor start, go down from the aggregate's join to the one whose outer
 *	  side is read by pages.  What cannot be done on a device, or not exactly,
 *	  gives a reason, and the host does it all as before.
 * 2. Write the instructions: for each join, from the bottom up, its key words,
 *	  PROBE, its residual clauses, MATCH, the clauses that apply after an outer
 *	  join, the computed columns of its target list; then the aggregates' filters
 *	  and arguments.
 * 3. Columns are loaded where they are first asked for.  Between PROBE and MATCH
 *	  that does not count for later: a row that is filled with NULLs goes on
 *	  behind the MATCH.
 * 4. State words: the rows of a group first, then for each input of aggregates
 *	  how often it counts, then what the aggregates keep.  Floats' sums have no
 *	  squares, so that transition values of avg() stay with the host; sum(float4)
 *	  rounds after every step, and does, too.
 *
 * Everything is palloc'd in the query's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "exec/agg_accumulate.h"
#include "exec/demand.h"
#include "exec/device.h"
#include "exec/join_state.h"
#include "exec/program_private.h"
#include "executor/executor.h"
#include "optimizer/optimizer.h"

/* How EXPLAIN spells a reason. */
const char *
hgj_device_reason_text(HgjDeviceReason reason)
{
	switch (reason)
	{
		case HGJ_DEVICE_FITS:
			break;
		case HGJ_DEVICE_PARALLEL:
			return "parallel plan";
		case HGJ_DEVICE_JOIN_TYPE:
			return "join type";
		case HGJ_DEVICE_KEY:
			return "join key of another kind";
		case HGJ_DEVICE_QUAL:
			return "join clause that runs row by row";
		case HGJ_DEVICE_SOURCE:
			return "outer side not read by pages";
		case HGJ_DEVICE_VOLATILE:
			return "volatile function below";
		case HGJ_DEVICE_ORDER:
			return "build side that may raise an error";
		case HGJ_DEVICE_COLUMN:
			return "column that does not pass by value";
		case HGJ_DEVICE_EXPRESSION:
			return "expression of another kind";
		case HGJ_DEVICE_AGGREGATE:
			return "aggregate of another kind";
		case HGJ_DEVICE_GROUP_KEY:
			return "group key of another kind";
		case HGJ_DEVICE_SIZE:
			return "too many columns or steps";
		case HGJ_DEVICE_ENGINE:
			return "engine without pipelines";
		case HGJ_DEVICE_PASSES:
			return "build side does not fit into memory";
		case HGJ_DEVICE_TABLE:
			return "table that it cannot probe";
		case HGJ_DEVICE_ROW:
			return "value that the host must look at";
		case HGJ_DEVICE_MEMORY:
			return "out of memory";
		case HGJ_DEVICE_GROUPS:
			return "too many groups";
		case HGJ_DEVICE_FAILED:
			return "the device failed";
	}
	return "none";
}

/* How a column is kept, by value; its bits are enough where that is unknown. */
static uint8
kind_of_column(HgjDevice *d, PlanState *child, AttrNumber attno)
{
	Form_pg_attribute att = TupleDescAttr(ExecGetResultType(child), attno - 1);
	HgjKind		kind = hgj_kind_of_type(att->atttypid);

	if (!att->attbyval)
		hgj_device_refuse(&d->code, HGJ_DEVICE_COLUMN);
	if (kind != HGJ_KIND_OTHER)
		return kind;
	switch (att->attlen)
	{
		case 1:
			return HGJ_PIPE_U1;
		case 2:
			return HGJ_PIPE_I2;
		case 4:
			return HGJ_PIPE_I4;
		default:
			return HGJ_PIPE_I8;
	}
}

/* Describe a column that nobody has asked for yet; NULL: there are too many. */
static HgjDeviceColumn *
add_column(HgjDevice *d, int join, int column)
{
	HgjDeviceColumn *c = &d->columns[d->ncolumns];
	PlanState  *child;

	c->join = join;
	c->column = column;
	if (join < 0)
	{
		HgjColumn  *input = &d->inputs[d->spec.ninputs];

		if (d->spec.ninputs == HGJ_PIPE_INPUTS)
			return NULL;
		child = d->joins[0]->outer_ps;
		c->kind = kind_of_column(d, child, column);
		input->attno = column;
		input->attlen = TupleDescAttr(ExecGetResultType(child), column - 1)->attlen;
		input->attbyval = true;
		input->width = c->width = (uint8) input->attlen;
		c->number = d->spec.ninputs++;
		d->spec.inputs[c->number] = c->kind;
	}
	else
	{
		HgjPipeJoin *into = &d->spec.joins[join];
		const HgjColumn *stored = &d->joins[join]->inner.columns[column];

		if (into->ncolumns == HGJ_PIPE_COLUMNS)
			return NULL;
		child = d->joins[join]->inner_ps;
		c->kind = stored->dictionary ? HGJ_PIPE_I4 :
			kind_of_column(d, child, stored->attno);
		c->width = stored->dictionary ? sizeof(uint32) : stored->width;
		c->number = into->ncolumns++;
		into->kinds[c->number] = c->kind;
	}
	d->ncolumns++;
	return c;
}

/* The register of an input (join -1, by attno) or of a build side's column. */
static uint8
load_column(HgjDevice *d, int join, int column)
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
	c->loaded = true;
	if (join < 0)
		EMIT(&d->code, HGJ_PIPE_INPUT, .dst = c->reg, .arg = c->number);
	else
		EMIT(&d->code, HGJ_PIPE_PAYLOAD, .dst = c->reg, .a = join, .arg = c->number);
	return c->reg;
}

static uint8 load_output(HgjDevice *d, int j, AttrNumber resno);

/* The register of a column of one of join j's sides. */
static uint8
load_side(HgjDevice *d, int j, bool inner, int column)
{
	AttrNumber	attno;

	if (inner)
		return load_column(d, j, column);
	attno = d->joins[j]->outer.columns[column].attno;
	return j > 0 ? load_output(d, j - 1, attno) : load_column(d, -1, attno);
}

/* The register of a column of join j's target list. */
static uint8
load_output(HgjDevice *d, int j, AttrNumber resno)
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
	return d->computed[j][resno - 1];
}

/* HgjDeviceLookup of programs over pairs of a join, and of the aggregation. */
typedef struct PairLookup
{
	HgjDevice  *device;
	int			join;
	const HgjPairColumns *pairs;
} PairLookup;

static uint8
look_pair_up(void *arg, int input)
{
	PairLookup *lookup = arg;
	const HgjPairColumn *column = &lookup->pairs->columns[input];

	return load_side(lookup->device, lookup->join, column->inner, column->column);
}

static uint8
look_output_up(void *arg, int input)
{
	HgjDevice  *d = arg;

	return load_output(d, d->njoins - 1, input + 1);
}

/* False where the words of a key of this kind are not made here. */
static bool
kind_of_key(HgjKeyKind key, uint8 *kind)
{
	switch (key)
	{
		case HGJ_KEY_BOOL:
		case HGJ_KEY_CHAR:
			*kind = HGJ_PIPE_U1;
			return true;
		case HGJ_KEY_INT2:
			*kind = HGJ_PIPE_I2;
			return true;
		case HGJ_KEY_INT4:
			*kind = HGJ_PIPE_I4;
			return true;
		case HGJ_KEY_INT8:
			*kind = HGJ_PIPE_I8;
			return true;
		case HGJ_KEY_UINT4:
			*kind = HGJ_PIPE_U4;
			return true;
		case HGJ_KEY_FLOAT4:
			*kind = HGJ_PIPE_F4;
			return true;
		case HGJ_KEY_FLOAT8:
			*kind = HGJ_PIPE_F8;
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
write_keys(HgjDevice *d, int j)
{
	HgjJoinState *join = d->joins[j];
	HgjPipeJoin *spec = &d->spec.joins[j];

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
			load_column(d, -1, key->attno);
		spec->keys[k] = hgj_device_key_word(&d->code, reg, kind);
	}
}

/* Computed columns, for every row of the join, as PostgreSQL does. */
static void
write_computed(HgjDevice *d, int j)
{
	int			ncols = list_length(d->joins[j]->css.ss.ps.plan->targetlist);
	PairLookup	lookup = {d, j, hgj_output_pairs(d->joins[j])};

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
write_join(HgjDevice *d, int j)
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
	if (join->residual)
	{
		PairLookup	lookup = {d, j, &join->residual_columns};

		hgj_device_filter(&d->code, join->residual, j, look_pair_up, &lookup);
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

static int
add_word(HgjDevice *d, HgjPipeState state, uint8 reg, uint8 filter)
{
	if (d->spec.nwords == HGJ_PIPE_WORDS)
	{
		hgj_device_refuse(&d->code, HGJ_DEVICE_SIZE);
		return 0;
	}
	d->spec.words[d->spec.nwords] = (HgjPipeWord) {state, reg, filter};
	return d->spec.nwords++;
}

/* The register of an aggregate's filter or argument. */
static uint8
write_expr(HgjDevice *d, const HgjAggExpr *expr)
{
	if (expr->column >= 0)
		return look_output_up(d, expr->column);
	if (expr->program == NULL)
	{
		hgj_device_refuse(&d->code, HGJ_DEVICE_EXPRESSION);
		return 0;
	}
	return hgj_device_eval(&d->code, expr->program, look_output_up, d);
}

/* An argument that can fail, for rows that pass the filter only. */
static uint8
write_filtered(HgjDevice *d, const HgjAggExpr *expr, uint8 filter)
{
	uint8		dst;
	uint8		reg;
	int			jump;

	hgj_device_load(&d->code, expr->program->root, look_output_up, d);
	dst = hgj_device_register(&d->code, expr->program->root->kind);
	EMIT(&d->code, HGJ_PIPE_NULL, .dst = dst);
	jump = hgj_device_jump(&d->code, HGJ_PIPE_JUMP_UNLESS, filter);
	reg = hgj_device_step(&d->code, expr->program, expr->program->root,
						  look_output_up, d);
	EMIT(&d->code, HGJ_PIPE_MOVE, .dst = dst, .a = reg);
	hgj_device_land(&d->code, jump);
	d->code.nregs = dst + 1;
	return dst;
}

/* An input's registers (NONE where there is no such thing), and its counter. */
static void
write_input(HgjDevice *d, int i, uint8 *filter, uint8 *argument)
{
	const HgjAggInput *input = &d->agg->inputs[i];

	*filter = *argument = HGJ_PIPE_NONE;
	d->input_words[i] = -1;
	if (input->filter)
		*filter = write_expr(d, input->filter);
	if (input->argument && input->filter && input->argument->program &&
		hgj_device_can_fail(input->argument->program))
	{
		if (input->argument->program->root == NULL)
			hgj_device_refuse(&d->code, HGJ_DEVICE_EXPRESSION);
		else
			*argument = write_filtered(d, input->argument, *filter);
	}
	else if (input->argument)
		*argument = write_expr(d, input->argument);
	if (input->filter || input->argument)
		d->input_words[i] = add_word(d, HGJ_PIPE_COUNT, *argument, *filter);
}

/* The argument as a float8. */
static uint8
as_float8(HgjDevice *d, uint8 reg)
{
	uint8		wide;

	if (d->code.kinds[reg] == HGJ_PIPE_F8)
		return reg;
	if (d->code.kinds[reg] != HGJ_PIPE_F4)
		hgj_device_refuse(&d->code, HGJ_DEVICE_AGGREGATE);
	wide = hgj_device_register(&d->code, HGJ_PIPE_F8);
	EMIT(&d->code, HGJ_PIPE_CAST, .kind = HGJ_PIPE_F4, .dst = wide, .a = reg,
		 .c = HGJ_PIPE_F8);
	return wide;
}

static bool
takes_least(HgjAggUpdate update)
{
	return update == hgj_agg_min_bool || update == hgj_agg_min_int2 ||
		update == hgj_agg_min_int4 || update == hgj_agg_min_int8 ||
		update == hgj_agg_min_oid || update == hgj_agg_min_float4 ||
		update == hgj_agg_min_float8;
}

/* Aggregates whose state is one word: sums of small integers, min, max. */
static int
write_word(HgjDevice *d, HgjAggUpdate update, uint8 reg, uint8 filter)
{
	if (update == hgj_agg_sum_int2 || update == hgj_agg_sum_int4)
		return add_word(d, HGJ_PIPE_SUM, reg, filter);
	if (update == hgj_agg_min_oid || update == hgj_agg_max_oid)
		reg = hgj_device_key_word(&d->code, reg, HGJ_PIPE_U4);
	return add_word(d, takes_least(update) ? HGJ_PIPE_MIN : HGJ_PIPE_MAX, reg, filter);
}

/* Step 4, for one aggregate: the first of its words, or -1. */
static int
write_aggregate(HgjDevice *d, const HgjAggregate *agg, uint8 reg, uint8 filter)
{
	HgjAggUpdate update = agg->function->update;
	int			word;

	switch (agg->function->kind)
	{
		case HGJ_AGG_COUNT:
			return -1;
		case HGJ_AGG_WORD:
		case HGJ_AGG_AVG_INT:
			return write_word(d, update, reg, filter);
		case HGJ_AGG_SUM_INT8:
		case HGJ_AGG_AVG_INT8:
			word = add_word(d, HGJ_PIPE_SUM_LOW, reg, filter);
			(void) add_word(d, HGJ_PIPE_SUM_HIGH, reg, filter);
			return word;
		case HGJ_AGG_FLOAT4:
		case HGJ_AGG_FLOAT8:
			if (update == hgj_agg_sum_float4)
				break;
			reg = as_float8(d, reg);
			if (update == hgj_agg_sum_float8)
				return add_word(d, HGJ_PIPE_SUM_FLOAT, reg, filter);
			return add_word(d, takes_least(update) ? HGJ_PIPE_MIN_FLOAT :
							HGJ_PIPE_MAX_FLOAT, reg, filter);
		case HGJ_AGG_AVG_FLOAT:
			if (d->agg->partial)
				break;
			return add_word(d, HGJ_PIPE_SUM_FLOAT, as_float8(d, reg), filter);
		case HGJ_AGG_SUM_NUMERIC:
		case HGJ_AGG_AVG_NUMERIC:
		case HGJ_AGG_BY_FUNCTION:
			break;
	}
	hgj_device_refuse(&d->code, HGJ_DEVICE_AGGREGATE);
	return -1;
}

static void
write_aggregates(HgjDevice *d)
{
	HgjAggState *agg = d->agg;

	(void) add_word(d, HGJ_PIPE_COUNT, HGJ_PIPE_NONE, HGJ_PIPE_NONE);
	for (int i = 0; i < agg->ninputs && d->code.reason == HGJ_DEVICE_FITS; i++)
	{
		uint8		filter;
		uint8		argument;

		write_input(d, i, &filter, &argument);
		for (int a = 0; a < agg->naggs; a++)
			if (agg->aggs[a].input == &agg->inputs[i])
				d->agg_words[a] = write_aggregate(d, &agg->aggs[a], argument, filter);
	}
}

static void
write_group_keys(HgjDevice *d)
{
	const HgjGroups *groups = &d->agg->groups;

	d->spec.nkeys = groups->nkeys;
	for (int k = 0; k < groups->nkeys; k++)
	{
		const HgjGroupKey *key = &groups->keys[k];
		uint8		reg;

		if (k >= HGJ_PIPE_KEYS)
			hgj_device_refuse(&d->code, HGJ_DEVICE_SIZE);
		if (key->kind != HGJ_GROUP_WORD && key->dictionary == NULL)
			hgj_device_refuse(&d->code, HGJ_DEVICE_GROUP_KEY);
		if (d->code.reason != HGJ_DEVICE_FITS)
			return;
		reg = load_output(d, d->njoins - 1, key->column + 1);
		d->spec.keys[k] = reg;
		d->key_columns[k] = -1;
		for (int i = 0; i < d->ncolumns; i++)
			if (d->columns[i].loaded && d->columns[i].reg == reg)
				d->key_columns[k] = i;
	}
}

/*
 * Step 2: all instructions and the rest of the spec.  With `constants` the
 * programs must have been started.  False: d->code.reason says why not.
 */
bool
hgj_device_write(HgjDevice *d, bool constants)
{
	memset(&d->code, 0, sizeof(d->code));
	d->code.constants = constants;
	d->spec.nwords = 0;
	for (int i = 0; i < HGJ_DEVICE_COLUMNS; i++)
		d->columns[i].loaded = false;
	d->spec.njoins = d->njoins;
	for (int j = 0; j < d->njoins && d->code.reason == HGJ_DEVICE_FITS; j++)
		write_join(d, j);
	if (d->code.reason == HGJ_DEVICE_FITS)
		write_group_keys(d);
	if (d->code.reason == HGJ_DEVICE_FITS)
		write_aggregates(d);
	EMIT(&d->code, HGJ_PIPE_END);
	d->spec.code = d->code.code;
	d->spec.ncode = d->code.ncode;
	return d->code.reason == HGJ_DEVICE_FITS;
}

/* Step 1, of one join. */
static HgjDeviceReason
look_at_join(const HgjJoinState *join)
{
	const HgjSemantics *s = &join->semantics;

	if (join->css.ss.ps.plan->parallel_aware ||
		join->outer_ps->plan->parallel_aware || IsParallelWorker())
		return HGJ_DEVICE_PARALLEL;
	if (s->fill_inner || s->mark_inner || s->one_per_inner)
		return HGJ_DEVICE_JOIN_TYPE;
	for (int k = 0; k < join->outer.nkeys; k++)
	{
		uint8		kind;

		if (join->outer.keys[k].attno <= 0 ||
			!kind_of_key(join->outer.keys[k].kind, &kind))
			return HGJ_DEVICE_KEY;
	}
	if (join->match_qual)
		return HGJ_DEVICE_QUAL;
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

/* Clauses that apply after an outer join, of join j; false: not all of them. */
static bool
compile_filter(HgjDevice *d, int j)
{
	HgjJoinState *join = d->joins[j];
	CustomScan *cscan = castNode(CustomScan, join->css.ss.ps.plan);

	if (join->filter == NULL)
		return true;
	hgj_pair_columns_init(&d->filter_columns[j], join);
	return hgj_program_compile_quals(list_nth(cscan->custom_exprs, HGJ_EXPRS_FILTER),
									 &join->css.ss.ps, hgj_pair_lookup,
									 &d->filter_columns[j], true,
									 &d->filters[j]) == NIL;
}

/* Step 1. */
static HgjDeviceReason
look_at_plan(HgjDevice *d)
{
	HgjJoinState *chain[HGJ_PIPE_JOINS];
	HgjJoinState *join = d->agg->join;
	int			n = 0;

	for (;;)
	{
		HgjDeviceReason reason = look_at_join(join);

		if (reason != HGJ_DEVICE_FITS)
			return reason;
		if (n == HGJ_PIPE_JOINS)
			return HGJ_DEVICE_SIZE;
		chain[n++] = join;
		if (join->outer.methods != &hgj_source_batches)
			break;
		join = join->outer.private_state;
	}
	if (join->outer.methods != &hgj_source_pages)
		return HGJ_DEVICE_SOURCE;
	if (contain_volatile_functions((Node *) join->outer_ps->plan->qual))
		return HGJ_DEVICE_VOLATILE;
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
	return hgj_device_write(d, false) ? HGJ_DEVICE_FITS : d->code.reason;
}

/* See what becomes of the aggregation on a device, at executor start. */
HgjDevice *
hgj_device_plan(HgjAggState *agg, EState *estate)
{
	HgjDevice  *d = palloc0(sizeof(HgjDevice));

	d->agg = agg;
	d->input_words = palloc0(mul_size(agg->ninputs + 1, sizeof(int)));
	d->agg_words = palloc0(mul_size(agg->naggs + 1, sizeof(int)));
	d->reason = look_at_plan(d);
	if (d->reason != HGJ_DEVICE_FITS)
		return d;

	d->source.child = d->joins[0]->outer_ps;
	d->source.ncols = d->spec.ninputs;
	d->source.columns = d->inputs;
	d->source.econtext = d->joins[0]->outer.econtext;
	if (!hgj_source_use_pages(&d->source, estate))
		d->reason = HGJ_DEVICE_SOURCE;
	d->batch = hgj_batch_create(estate->es_query_cxt, d->inputs, d->spec.ninputs, 0);
	hgj_batch_borrow(d->batch, true);
	return d;
}
