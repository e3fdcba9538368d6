/*-------------------------------------------------------------------------
 *
 * device_columns.c
 *	  The columns that a pipeline's instructions read: inputs and payload.
 *
 * 1. Below an aggregation, and where they are kept in memory, the inputs are columns of
 *	  the outer scan's table, which a source of the pipeline's own has; the scan's quals
 *	  may be the first thing that runs (agg_device_plan.c).  Where other rows are returned
 *	  they are those of the bottom join's outer batch: its key words, whatever their kind,
 *	  and columns.
 *	  Without joins, the columns of the scan's target list may be expressions.
 * 2. Payload is columns of the build sides' rows.
 * 3. A column is described, and has a number, when it is first asked for; its load
 *	  is written where that is.
 * 4. What the host makes of a build side's row (device_host.c) need not be NULL where
 *	  an outer join finds none.
 *
 * Everything is palloc'd in the query's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/heap.h"
#include "executor/executor.h"
#include "expr/demand.h"
#include "expr/program_private.h"
#include "join/join.h"
#include "pipeline/device.h"
#include "scan/page_quals.h"
#include "utils/rel.h"

/* The part of a scan's rows that must pass its quals for them to run here. */
#define HGJ_DEVICE_LEAST_PASSING	0.5

/*
 * How a column is kept, by value; its bits are enough where that is unknown.  Numerics are
 * decimals of a *scale, unless rows of some batches may have been returned when a value
 * turns out to be none.
 */
static uint8
kind_of_attribute(HgjPipelineState *d, const FormData_pg_attribute *att, int8 *scale)
{
	HgjKind		kind = hgj_kind_of_type(att->atttypid);

	*scale = d->of_batch ? -1 : hgj_decimal_scale(att->atttypid, att->atttypmod);
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
	SeqScanState *scan = castNode(SeqScanState, d->scan);

	if (attno < 0)
		return SystemAttributeDefinition(attno);
	return TupleDescAttr(RelationGetDescr(scan->ss.ss_currentRelation), attno - 1);
}

/* A key word, or a column, of the bottom join's outer batch. */
static void
describe_input(HgjPipelineState *d, HgjDeviceColumn *c)
{
	const HgjSource *outer = &hgj_join(d->joins[0])->outer;

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

/* Of what a column of a side is, by the side's plan. */
static const FormData_pg_attribute *
place_attribute(const HgjPipelineState *d, const HgjDevicePlace *place)
{
	const HgjJoinState *join;

	if (place->join < 0)
		return table_attribute(d, place->column);
	join = d->joins[place->join];
	return TupleDescAttr(ExecGetResultType(hgj_join(join)->inner_ps),
						 hgj_join(join)->inner.columns[place->column].attno - 1);
}

/*
 * Can values of the column be sent as they are?  *scale: that of the decimals that
 * numerics become, or -1.
 */
bool
hgj_device_sends(HgjPipelineState *d, const HgjDevicePlace *place, int8 *scale)
{
	const FormData_pg_attribute *att = place_attribute(d, place);

	*scale = hgj_decimal_scale(att->atttypid, att->atttypmod);
	return att->attbyval || *scale >= 0;
}

/* The number of a table's column among those that the source returns; -1: too many. */
int
hgj_device_read(HgjPipelineState *d, AttrNumber attno)
{
	for (int i = 0; i < d->nreads; i++)
		if (d->reads[i].attno == attno)
			return i;
	if (d->nreads == HGJ_DEVICE_READS)
		return -1;
	hgj_column_init(&d->reads[d->nreads], attno, table_attribute(d, attno));
	d->staged[d->nreads] = -1;
	return d->nreads++;
}

/* Of an input below an aggregation, as the source returns it. */
static bool
describe_read(HgjPipelineState *d, HgjDeviceColumn *c)
{
	int			read = hgj_device_read(d, c->column);

	if (read < 0)
		return false;
	c->kind = kind_of_attribute(d, table_attribute(d, c->column), &c->scale);
	c->width = d->reads[read].width;
	c->from = read;
	d->staged[read] = d->spec.ninputs;
	return true;
}

/* Of a build side. */
static void
describe_payload(HgjPipelineState *d, HgjDeviceColumn *c)
{
	const HgjJoinState *join = d->joins[c->join];
	const HgjColumn *stored = &hgj_join(join)->inner.columns[c->column];

	c->kind = stored->dictionary ? HGJ_KIND_I4 :
		kind_of_column(d, hgj_join(join)->inner_ps, stored->attno, &c->scale);
	c->width = stored->dictionary ? sizeof(uint32) : stored->width;
}

/*
 * Describe a column that nobody has asked for yet; NULL: there are too many.  made: the
 * host makes it, or NULL.
 */
static HgjDeviceColumn *
add_column(HgjPipelineState *d, int join, int column, HgjDeviceMade *made)
{
	HgjDeviceColumn *c = &d->columns[d->ncolumns];

	/* before anything is written: `columns` has room for all that these allow */
	if (join < 0 ? d->spec.ninputs == HGJ_PIPE_INPUTS :
		d->spec.joins[join].ncolumns == HGJ_PIPE_COLUMNS)
		return NULL;
	c->join = join;
	c->column = column;
	c->scale = -1;
	c->made = made;
	c->loaded = false;
	if (made)
	{
		c->kind = hgj_device_made_kind(made);
		c->width = hgj_kind_width(c->kind);
		if (made->step && made->step->decimal)
			c->scale = made->step->scale;
	}
	else if (join >= 0)
		describe_payload(d, c);
	else if (d->of_batch)
		describe_input(d, c);
	else if (!describe_read(d, c))
		return NULL;
	if (join < 0)
	{
		c->number = d->spec.ninputs++;
		d->spec.inputs[c->number] = c->kind;
	}
	else
	{
		c->number = d->spec.joins[join].ncolumns++;
		d->spec.joins[join].kinds[c->number] = c->kind;
	}
	d->ncolumns++;
	return c;
}

static uint8 load_column(HgjPipelineState *d, int join, int column, HgjDeviceMade *made);

/*
 * Step 4: behind an outer join there may be no row, for which the device takes a column
 * for NULL: what the host makes of NULLs may be something else.
 */
static void
write_missing(HgjPipelineState *d, HgjDeviceMade *made, uint8 reg)
{
	HgjDeviceValue value = {.made = made,.kind = d->code.kinds[reg]};
	uint8		number;
	int			jump;

	if (hgj_device_is_strict(made->step))
		return;
	number = hgj_device_load_made(d, hgj_device_make_number(d, made->place.join));
	jump = hgj_device_jump(&d->code, HGJ_PIPE_JUMP_VALID, number);
	hgj_device_write_value(&d->code, reg, &value);
	hgj_device_land(&d->code, jump);
}

/*
 * The register of an input (join HGJ_DEVICE_INPUT or HGJ_DEVICE_WORD), or of a
 * build side's column, or of what the host makes of such.
 */
static uint8
load_column(HgjPipelineState *d, int join, int column, HgjDeviceMade *made)
{
	HgjDeviceColumn *c = NULL;

	for (int i = 0; i < d->ncolumns && c == NULL; i++)
		if (d->columns[i].join == join && d->columns[i].column == column &&
			d->columns[i].made == made)
			c = &d->columns[i];
	if (c == NULL)
		c = add_column(d, join, column, made);
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
	if (join >= 0 && made && made->step && hgj_join(d->joins[join])->semantics.fill_outer)
		write_missing(d, made, c->reg);
	return c->reg;
}

/* The register of a side's column. */
uint8
hgj_device_load_column(HgjPipelineState *d, int join, int column)
{
	return load_column(d, join, column, NULL);
}

/* The same of what the host makes. */
uint8
hgj_device_load_made(HgjPipelineState *d, HgjDeviceMade *made)
{
	return load_column(d, made->place.join, made->place.column, made);
}

/* ---- the scan ----------------------------------------------------------- */

/* HgjDeviceInputs of the scan's quals. */
static uint8
load_qual_input(void *arg, int input)
{
	HgjPipelineState *d = arg;

	return hgj_device_load_column(d, HGJ_DEVICE_INPUT, list_nth_int(d->scan_attnos, input));
}

static bool
find_qual_input(void *arg, int input, HgjDevicePlace *place)
{
	HgjPipelineState *d = arg;

	place->join = HGJ_DEVICE_INPUT;
	place->column = list_nth_int(d->scan_attnos, input);
	return true;
}

/*
 * Drop rows that do not pass the quals.  Where the host had to compute something for
 * that, it is as well to drop the rows there, unless it does so for the values of kept
 * columns only.
 */
void
hgj_device_filter_scan(HgjPipelineState *d)
{
	HgjDeviceInputs inputs = {load_qual_input, find_qual_input, d};

	d->code.no_host = !d->filter_kept;
	hgj_device_filter(&d->code, d->scan_filter, HGJ_PIPE_DROP - 1, &inputs);
	d->code.no_host = false;
}

/*
 * Are all of the scan's quals for the device?  Where many rows pass, it
 * is cheaper to send and to drop the others than to look at each here; where few
 * do, the host leaves out of the rest what it need not decode.
 */
bool
hgj_device_compile_filter(HgjPipelineState *d, bool from_kept)
{
	ScanState  *scan = (ScanState *) d->scan;
	Plan	   *plan = scan->ps.plan;
	double		tuples = RelationGetForm(scan->ss_currentRelation)->reltuples;

	if (plan->qual == NIL || tuples <= 0 ||
		hgj_may_raise((Node *) plan->qual, scan->ps.state) ||
		(plan->plan_rows < tuples * HGJ_DEVICE_LEAST_PASSING && !from_kept))
		return false;
	if (hgj_program_compile_quals(plan->qual, &scan->ps, hgj_scan_lookup, &d->scan_attnos,
								  true, &d->scan_filter) == NIL)
	{
		d->filter_kept = from_kept && hgj_device_is_kept(d);
		if (d->filter_kept || plan->plan_rows >= tuples * HGJ_DEVICE_LEAST_PASSING)
			return true;
	}
	d->scan_filter = NULL;		/* it was for some of them only */
	return false;
}

/* Read the columns that have been asked for, once they all have: the source is made. */
void
hgj_device_open_scan(HgjPipelineState *d, EState *estate)
{
	d->source.child = d->scan;
	d->source.ncols = d->nreads;
	d->source.columns = d->reads;
	d->source.of_table = true;
	d->source.leave_quals = d->scan_filter != NULL;
	if (!hgj_source_use_pages(&d->source, estate))
		d->reason = HGJ_DEVICE_SOURCE;
	hgj_device_plan_kept(d);
	d->batch = hgj_batch_create(estate->es_query_cxt, d->reads, d->nreads, 0, NULL);
	hgj_batch_borrow(d->batch, true);
}

/* The table's column that the scan's target list returns there; 0: an expression. */
AttrNumber
hgj_device_scan_attno(const HgjPipelineState *d, AttrNumber resno)
{
	Expr	   *expr = list_nth_node(TargetEntry, d->scan->plan->targetlist, resno - 1)->expr;

	return IsA(expr, Var) ? ((Var *) expr)->varattno : InvalidAttrNumber;
}

/* HgjDeviceInputs of programs of the scan's target list. */
static uint8
load_scan_input(void *arg, int input)
{
	HgjPipelineState *d = arg;

	return hgj_device_load_column(d, HGJ_DEVICE_INPUT, d->scan_inputs[input]);
}

static bool
find_scan_input(void *arg, int input, HgjDevicePlace *place)
{
	HgjPipelineState *d = arg;

	place->join = HGJ_DEVICE_INPUT;
	place->column = d->scan_inputs[input];
	return true;
}

static HgjDeviceInputs
scan_inputs(HgjPipelineState *d)
{
	return (HgjDeviceInputs) {load_scan_input, find_scan_input, d};
}

/*
 * Expressions of the scan's target list, for every row, as PostgreSQL does.  What
 * passes by reference may be a group key, and nothing else.
 */
void
hgj_device_write_scan(HgjPipelineState *d)
{
	int			ncols = list_length(d->scan->plan->targetlist);
	HgjDeviceInputs inputs = scan_inputs(d);

	for (int i = 0; i < ncols && d->code.reason == HGJ_DEVICE_FITS; i++)
	{
		HgjProgram *program = d->scan_programs[i];

		d->scan_computed[i] = program && program->root->kind != HGJ_KIND_OTHER ?
			hgj_device_eval(&d->code, program, &inputs) : HGJ_PIPE_NONE;
	}
}

/* The register of a column of the scan's target list. */
uint8
hgj_device_scan_output(HgjPipelineState *d, AttrNumber resno)
{
	AttrNumber	attno = hgj_device_scan_attno(d, resno);

	if (attno != InvalidAttrNumber)
		return hgj_device_load_column(d, HGJ_DEVICE_INPUT, attno);
	if (d->scan_computed[resno - 1] == HGJ_PIPE_NONE)
	{
		hgj_device_refuse(&d->code, HGJ_DEVICE_EXPRESSION);
		return 0;
	}
	return d->scan_computed[resno - 1];
}

/* What it is. */
void
hgj_device_find_scan_output(HgjPipelineState *d, AttrNumber resno, HgjDeviceOutput *output)
{
	output->place.join = HGJ_DEVICE_INPUT;
	output->place.column = hgj_device_scan_attno(d, resno);
	output->is_column = output->place.column != InvalidAttrNumber;
	if (output->is_column)
		return;
	output->program = d->scan_programs[resno - 1];
	output->inputs = scan_inputs(d);
}
