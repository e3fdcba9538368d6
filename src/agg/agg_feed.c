/*-------------------------------------------------------------------------
 *
 * agg_feed.c
 *	  Where the batches of a HashGraphAgg come from.
 *
 * A HashGraphJoin returns batches itself.  Any other child is read by a source
 * (scan/source.h), as the sides of joins are:
 *
 * 1. The table of a sequential scan is read page by page, where setup.c finds
 *	  nothing against it, and of it those columns that the scan's target list
 *	  mentions.  The target list is ours to compute then: a batch of the scan's
 *	  columns becomes one of its target list's, where an expression that is
 *	  grouped by is a program over vectors, or else PostgreSQL evaluates it row
 *	  by row.  Every row that passes the scan's quals is wanted, as for
 *	  PostgreSQL, so that nothing raises an error here that would not there.
 * 2. Everything else, subplans in the target list included, is read slot by
 *	  slot.
 * 3. By-reference values that are evaluated are kept until the next batch.  If that takes
 *	  much memory, the next batch has fewer rows.
 * 4. Of an Append, each child is read so, or by the batches of a join of ours, one
 *	  after the other.  Which one comes next, if it is not pruned or another
 *	  process's, the Append says itself.
 * 5. Where the table's columns are kept in memory, numerics come as decimals, if all
 *	  that the aggregation does with the column is to compute with those.
 *
 * Memory: the query's context; by-reference values are in the arena of the batch
 * that is read, which hgj_agg_feed_free() frees, on abort, too.  Pins of pages
 * belong to the source (heap_pages.c).  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/sysattr.h"
#include "agg/agg_state.h"
#include "catalog/heap.h"
#include "commands/explain.h"
#include HGJ_EXPLAIN_HEADER
#include HGJ_EXPLAIN_STATE_HEADER
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "scan/batch_node.h"
#include "scan/source.h"
#include "scan/source_explain.h"
#include "utils/rel.h"

/* A batch may take this part of the memory limit. */
#define BATCH_SHARE		8

/* A dictionary may take so much, and such a part, beside the groups. */
#define DICTIONARY_BYTES	((Size) 256 * 1024)
#define DICTIONARY_SHARE	64

/* A column that is returned, of one input. */
typedef struct FeedColumn
{
	int			column;			/* it is this one of the source, or -1: */
	HgjProgram *program;		/* an expression, or */
	ExprState  *expr;			/* one that no program can compute */
	HgjBuffer	buffer;			/* its values */
} FeedColumn;

/* The child, or one of an Append's. */
typedef struct FeedInput
{
	HgjSource	source;
	HgjBatch   *read;			/* what the source fills */
	const HgjVector **vectors;	/* of that */
	FeedColumn *from;			/* per column that is returned */
	uint32		rows;			/* that a batch may have next, ... */
	uint32		most_rows;		/* ... and ever */
	bool		started;		/* in this execution */
	bool		keeps_values;	/* by-reference ones that are evaluated */
	TupleTableSlot *slot;		/* a row of the table, for expressions; or NULL */
} FeedInput;

struct HgjAggFeed
{
	int			ninputs;
	FeedInput  *inputs;
	AppendState *append;		/* whose children they are, or NULL */
	FeedInput  *now;			/* the one that is read; NULL: another is next */
	bool		at_end;

	int			ncolumns;		/* of the target list */
	HgjColumn  *columns;
	HgjBatch	batch;			/* what is returned */
};

/* ---- setup -------------------------------------------------------------- */

/*
 * Step 1: the columns of the table that the target list mentions.  False: a whole
 * row is among them, or a system column in an expression.
 */
static bool
use_table_columns(HgjSource *source)
{
	const ScanState *ss = (const ScanState *) source->child;
	const Plan *plan = ss->ps.plan;
	TupleDesc	desc = RelationGetDescr(ss->ss_currentRelation);
	Bitmapset  *attnos = NULL;
	int			member = -1;
	ListCell   *lc;

	foreach(lc, plan->targetlist)
	{
		Node	   *expr = (Node *) lfirst_node(TargetEntry, lc)->expr;
		Bitmapset  *of_expr = NULL;

		pull_varattnos(expr, ((const Scan *) plan)->scanrelid, &of_expr);
		member = bms_next_member(of_expr, -1);
		if (!IsA(expr, Var) && member >= 0 &&
			member + FirstLowInvalidHeapAttributeNumber <= InvalidAttrNumber)
			return false;
		attnos = bms_join(attnos, of_expr);
	}
	source->of_table = true;
	source->columns = palloc0(mul_size(bms_num_members(attnos) + 1,
									   sizeof(HgjColumn)));
	for (member = -1; (member = bms_next_member(attnos, member)) >= 0;)
	{
		AttrNumber	attno = member + FirstLowInvalidHeapAttributeNumber;

		if (attno == InvalidAttrNumber)
			return false;
		hgj_column_init(&source->columns[source->ncols++], attno,
						attno > 0 ? TupleDescAttr(desc, attno - 1) :
						SystemAttributeDefinition(attno));
	}
	return true;
}

/* Step 2: what the child returns. */
static void
use_child_columns(HgjSource *source)
{
	TupleDesc	desc = ExecGetResultType(source->child);

	source->of_table = false;
	source->ncols = desc->natts;
	source->last_attno = desc->natts;
	source->columns = palloc0(mul_size(desc->natts + 1, sizeof(HgjColumn)));
	for (int i = 0; i < desc->natts; i++)
		hgj_column_init(&source->columns[i], i + 1, TupleDescAttr(desc, i));
}

/* HgjInputLookup of expressions over the table. */
static int
lookup_table_column(void *arg, const Var *var)
{
	const HgjSource *source = arg;

	for (int c = 0; c < source->ncols; c++)
		if (source->columns[c].attno == var->varattno && var->varlevelsup == 0)
			return c;
	return -1;
}

/* Get one of the target list's expressions ready, which is no column. */
static void
init_expression(HgjAggState *state, FeedInput *input, FeedColumn *from,
				Expr *expr)
{
	const ScanState *ss = (const ScanState *) input->source.child;

	from->program = hgj_program_compile(expr, &state->css.ss.ps,
										lookup_table_column, &input->source);
	if (from->program)
		return;
	from->expr = ExecInitExpr(expr, &state->css.ss.ps);
	if (input->slot == NULL)
		input->slot = ExecInitExtraTupleSlot(state->css.ss.ps.state,
											 RelationGetDescr(ss->ss_currentRelation),
											 &TTSOpsVirtual);
}

/* Where the columns that are returned come from. */
static void
init_from(HgjAggState *state, FeedInput *input)
{
	HgjSource  *source = &input->source;
	List	   *targetlist = source->child->plan->targetlist;

	input->from = palloc0(mul_size(state->feed->ncolumns + 1, sizeof(FeedColumn)));
	for (int i = 0; i < state->feed->ncolumns; i++)
	{
		Expr	   *expr = list_nth_node(TargetEntry, targetlist, i)->expr;
		FeedColumn *from = &input->from[i];

		from->column = !source->of_table ? i :
			IsA(expr, Var) ? lookup_table_column(source, (Var *) expr) : -1;
		if (from->column >= 0)
			continue;
		init_expression(state, input, from, expr);
		input->keeps_values |= !state->feed->columns[i].attbyval;
	}
}

static void
init_input(HgjAggState *state, FeedInput *input, PlanState *child, EState *estate)
{
	HgjSource  *source = &input->source;
	bool		of_table = IsA(child, SeqScanState) &&
		!contain_subplans((Node *) child->plan->targetlist);

	source->child = child;
	source->progress = &state->progress;
	source->econtext = CreateExprContext(estate);
	if (!of_table || !use_table_columns(source))
		use_child_columns(source);
	hgj_choose_source(source, "input of an aggregation", HGJ_AGG_NODE_NAME, estate);
	if (source->of_table && source->methods != &hgj_source_pages)
		use_child_columns(source);
	init_from(state, input);
	input->read = hgj_batch_create(state->context, source->columns, source->ncols,
								   0, NULL);
	input->vectors = palloc0(mul_size(source->ncols + 1, sizeof(HgjVector *)));
	input->most_rows = Min(get_hash_memory_limit() / BATCH_SHARE /
						   hgj_batch_row_bytes(input->read), HGJ_BATCH_ROWS);
	input->most_rows = Max(input->most_rows, HGJ_BATCH_FIRST_ROWS);
	input->rows = input->keeps_values ? HGJ_BATCH_FIRST_ROWS : input->most_rows;
}

/*
 * Read the child, which is no HashGraphJoin, by sources.  Sets state->feed.  Call
 * at executor start, in the query's context.
 */
void
hgj_agg_feed_open(HgjAggState *state, EState *estate)
{
	HgjAggFeed *feed = palloc0(sizeof(HgjAggFeed));
	TupleDesc	desc = ExecGetResultType(state->child);
	PlanState **children = &state->child;

	state->feed = feed;
	feed->ncolumns = desc->natts;
	feed->columns = palloc0(mul_size(desc->natts + 1, sizeof(HgjColumn)));
	feed->batch.vectors = palloc0(mul_size(desc->natts + 1, sizeof(HgjVector)));
	for (int i = 0; i < desc->natts; i++)
		hgj_column_init(&feed->columns[i], i + 1, TupleDescAttr(desc, i));

	/* what waits for others is read as PostgreSQL does */
	feed->ninputs = 1;
	if (IsA(state->child, AppendState) &&
		((AppendState *) state->child)->as_nasyncplans == 0)
	{
		feed->append = (AppendState *) state->child;
		children = feed->append->appendplans;
		feed->ninputs = feed->append->as_nplans;
	}
	feed->inputs = palloc0(mul_size(feed->ninputs + 1, sizeof(FeedInput)));
	for (int i = 0; i < feed->ninputs; i++)
		init_input(state, &feed->inputs[i], children[i], estate);
}

/* Does the expression, which is evaluated by row if there is no program, mention it? */
static bool
mentions(Expr *expr, AttrNumber attno, Index varno)
{
	Bitmapset  *attnos = NULL;

	pull_varattnos((Node *) expr, varno, &attnos);
	return bms_is_member(attno - FirstLowInvalidHeapAttributeNumber, attnos);
}

/* What a dictionary of a group column may take. */
Size
hgj_agg_feed_dictionary_bytes(void)
{
	return Min(DICTIONARY_BYTES, get_hash_memory_limit() / DICTIONARY_SHARE);
}

/*
 * From now on, return column resno of a table that may be kept as datums of the
 * dictionary that is returned: the values of a chunk are looked up once each.  NULL: it
 * stays as it is.  The column is one that is grouped by, and for nothing else.
 */
HgjDictionary *
hgj_agg_feed_encode(HgjAggState *state, AttrNumber resno, Node *expr, Oid equality)
{
	HgjAggFeed *feed = state->feed;
	FeedInput  *input = &feed->inputs[0];
	HgjSource  *source = &input->source;
	int			c = feed->append ? -1 : input->from[resno - 1].column;
	const Scan *scan = (const Scan *) source->child->plan;
	HgjDictionary *dictionary;

	if (c < 0 || !hgj_pages_may_be_kept(source) || source->columns[c].attbyval ||
		source->columns[c].attlen != -1)
		return NULL;
	for (int i = 0; i < feed->ncolumns; i++)
	{
		const TargetEntry *tle = list_nth_node(TargetEntry, scan->plan.targetlist, i);

		if (i != resno - 1 &&
			mentions(tle->expr, source->columns[c].attno, scan->scanrelid))
			return NULL;
	}
	dictionary = hgj_dictionary_create(state->context, expr, equality, -1, NULL);
	hgj_dictionary_limit(dictionary, hgj_agg_feed_dictionary_bytes());
	source->columns[c].dictionary = feed->columns[resno - 1].dictionary = dictionary;
	return dictionary;
}

static bool
takes_decimals(const HgjAggExpr *expr, int column, int scale)
{
	if (expr == NULL)
		return true;
	if (expr->decimals)
		return hgj_program_takes_decimals(expr->decimals, column, scale);
	if (expr->program)
		return hgj_program_takes_decimals(expr->program, column, scale);
	return expr->column >= 0 ? expr->column != column :
		!mentions(expr->expr, column + 1, INDEX_VAR);
}

/* Is this column, numerics of the scale, nothing but decimals to the aggregation? */
static bool
aggregates_take_decimals(const HgjAggState *state, int column, int scale)
{
	for (int k = 0; k < state->groups.nkeys; k++)
		if (state->groups.keys[k].column == column)
			return false;
	for (int i = 0; i < state->ninputs; i++)
	{
		const HgjAggInput *input = &state->inputs[i];

		for (int e = 0; e < HGJ_AGG_INPUT_EXPRS(input); e++)
			if (!takes_decimals(hgj_agg_input_expr(input, e), column, scale))
				return false;
	}
	return true;
}

/* Step 5: tell the inputs which of the table's columns are that to all of us. */
void
hgj_agg_feed_take_decimals(HgjAggState *state)
{
	HgjAggFeed *feed = state->feed;

	for (int i = 0; i < feed->ninputs; i++)
	{
		FeedInput  *input = &feed->inputs[i];
		const HgjSource *source = &input->source;
		const Scan *scan = (const Scan *) source->child->plan;
		bool	   *takes;

		if (!hgj_pages_may_be_kept(source))
			continue;
		takes = palloc(source->ncols + 1);
		for (int c = 0; c < source->ncols; c++)
			takes[c] = true;
		for (int c = 0; c < feed->ncolumns; c++)
		{
			const TargetEntry *tle = list_nth_node(TargetEntry, scan->plan.targetlist, c);
			int			scale = hgj_decimal_scale(exprType((Node *) tle->expr),
												  exprTypmod((Node *) tle->expr));

			for (int t = 0; t < source->ncols; t++)
				if (input->from[c].column == t ?
					scale < 0 || !aggregates_take_decimals(state, c, scale) :
					input->from[c].column < 0 &&
					mentions(tle->expr, source->columns[t].attno, scan->scanrelid))
					takes[t] = false;
		}
		hgj_pages_take_decimals(&input->source, takes);
		pfree(takes);
	}
}

/* The columns of its batches, by resno - 1. */
const HgjColumn *
hgj_agg_feed_columns(const HgjAggFeed *feed, int *ncols)
{
	*ncols = feed->ncolumns;
	return feed->columns;
}

/*
 * The source, if it is one that reads a table by pages, of whose columns the target
 * list's programs are made; or NULL.  programs: by resno - 1; NULL: no expression, or none
 * that a program can compute.
 */
const HgjSource *
hgj_agg_feed_table(const HgjAggFeed *feed, HgjProgram **programs)
{
	const FeedInput *input = &feed->inputs[0];

	if (feed->append || !input->source.of_table ||
		input->source.methods != &hgj_source_pages)
		return NULL;
	for (int c = 0; c < feed->ncolumns; c++)
		programs[c] = input->from[c].program;
	return &input->source;
}

/* The source, if it is one that reads the only input by pages; or NULL. */
HgjSource *
hgj_agg_feed_scan(HgjAggFeed *feed)
{
	HgjSource  *source = feed->append ? NULL : &feed->inputs[0].source;

	return source && source->methods == &hgj_source_pages ? source : NULL;
}

/* ---- batches ------------------------------------------------------------ */

/* Give the programs the parameters of this execution. */
static void
start(HgjAggState *state, FeedInput *input)
{
	for (int c = 0; c < state->feed->ncolumns; c++)
		if (input->from[c].program)
			hgj_program_start(input->from[c].program, state->css.ss.ps.ps_ExprContext);
	input->started = true;
}

/* Lay a row of the table out for expressions. */
static void
fill_slot(FeedInput *input, uint32 row)
{
	TupleTableSlot *slot = input->slot;

	ExecClearTuple(slot);
	for (int c = 0; c < input->source.ncols; c++)
	{
		int			i = input->source.columns[c].attno - 1;

		if (i >= 0)
			slot->tts_values[i] = hgj_vector_datum(input->vectors[c], row,
												   &slot->tts_isnull[i]);
	}
	ExecStoreVirtualTuple(slot);
}

/* The values of an expression that no program can compute. */
static const HgjVector *
eval_by_row(HgjAggState *state, FeedInput *input, FeedColumn *from,
			const HgjColumn *column)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	HgjVector  *vector = &from->buffer.vector;
	uint32		n = input->read->nrows;

	hgj_buffer_reserve(state->context, &from->buffer, column->width, n);
	for (uint32 row = 0; row < n; row++)
	{
		Datum		value;
		bool		isnull;

		CHECK_FOR_INTERRUPTS();
		ResetExprContext(econtext);
		fill_slot(input, row);
		econtext->ecxt_scantuple = input->slot;
		value = ExecEvalExprSwitchContext(from->expr, econtext, &isnull);
		if (!isnull && !column->attbyval)
			value = hgj_arena_copy(input->read->values, value, column->attlen);
		hgj_vector_put(vector, row, value, isnull);
	}
	return vector;
}

/* Step 3: how many rows should the next batch have? */
static void
set_next_rows(FeedInput *input, int ncolumns)
{
	Size		bytes = input->read->values->used;

	for (int c = 0; c < ncolumns; c++)
		if (input->from[c].program)
			bytes += hgj_program_result_bytes(input->from[c].program);
	input->rows = hgj_batch_next_rows(input->rows, input->read->nrows, bytes, input->most_rows);
}

/* The next batch of the input's rows, in feed->batch; false: there are no more. */
static bool
read_input(HgjAggState *state, FeedInput *input)
{
	HgjSource  *source = &input->source;
	HgjBatch   *batch = &state->feed->batch;

	if (!input->started)
		start(state, input);
	hgj_batch_reserve(input->read, input->rows);
	source->methods->fill(source, input->read, input->rows);
	batch->nrows = input->read->nrows;
	batch->live = input->read->live;
	batch->nlive = input->read->nlive;
	if (hgj_batch_nlive(batch) == 0)
		return false;
	for (int c = 0; c < source->ncols; c++)
		input->vectors[c] = &input->read->vectors[c];
	for (int c = 0; c < state->feed->ncolumns; c++)
	{
		FeedColumn *from = &input->from[c];

		batch->vectors[c] = from->column >= 0 ? *input->vectors[from->column] :
			from->program ?
			*hgj_program_eval(from->program, input->vectors, NULL, batch->nrows) :
			*eval_by_row(state, input, from, &state->feed->columns[c]);
	}
	if (input->keeps_values)
		set_next_rows(input, state->feed->ncolumns);
	return true;
}

/* The input at hand has no more rows: others are to have its memory. */
static void
leave_input(HgjAggState *state)
{
	HgjAggFeed *feed = state->feed;

	hgj_progress_next_table(&state->progress);
	hgj_batch_release(feed->now->read);
	for (int c = 0; c < feed->ncolumns; c++)
		hgj_buffer_release(&feed->now->from[c].buffer);
	feed->now = NULL;
}

/* Step 4: turn to the next input; false: there is none. */
static bool
next_input(HgjAggFeed *feed)
{
	AppendState *append = feed->append;

	if (append == NULL)
		feed->now = &feed->inputs[0];
	else if (append->as_nplans > 0 && append->choose_next_subplan(append))
	{
		append->as_begun = true;
		feed->now = &feed->inputs[append->as_whichplan];
	}
	else
		feed->at_end = true;
	return !feed->at_end;
}

/* The next batch of the child's rows, or NULL; it stays until the next call. */
const HgjBatch *
hgj_agg_feed_next(HgjAggState *state)
{
	HgjAggFeed *feed = state->feed;
	bool		found = false;

	if (state->join)
		return hgj_join_next_batch(state->join);
	if (feed->append)
		hgj_enter_node(&feed->append->ps);
	while (!found && !feed->at_end && (feed->now || next_input(feed)))
	{
		CHECK_FOR_INTERRUPTS();
		found = read_input(state, feed->now);
		if (found)
			continue;
		leave_input(state);
		feed->at_end = feed->append == NULL;
	}
	if (feed->append)
		(void) hgj_leave_node(&feed->append->ps, found ? &feed->batch : NULL);
	return found ? &feed->batch : NULL;
}

/* ---- EXPLAIN ------------------------------------------------------------ */

/* Add the pages that the inputs have taken from kept columns, and that they have read. */
void
hgj_agg_feed_count(const HgjAggState *state, HgjPageCounts *counts)
{
	for (int i = 0; state->feed && i < state->feed->ninputs; i++)
		hgj_pages_count(&state->feed->inputs[i].source, counts);
}

/*
 * How an input is read, and what all processes have done; of an Append, how many of
 * its children are.
 */
void
hgj_agg_feed_explain(HgjAggState *state, const HgjPageCounts *pages,
					 List *ancestors, ExplainState *es)
{
	const HgjAggFeed *feed = state->feed;
	int			by_tuples = 0;

	if (feed->append == NULL)
	{
		hgj_show_source("", &feed->inputs[0].source, pages, &state->css.ss.ps,
						ancestors, es);
		return;
	}
	for (int i = 0; i < feed->ninputs; i++)
		by_tuples += feed->inputs[i].source.reason != HGJ_SOURCE_FASTEST;
	ExplainPropertyInteger("Inputs by Batches", NULL, feed->ninputs - by_tuples, es);
	if (by_tuples > 0)
		ExplainPropertyInteger("Inputs by Tuples", NULL, by_tuples, es);
}

/* How the feed reads this child; NULL: it does not. */
const HgjSource *
hgj_agg_feed_source(const HgjAggFeed *feed, const PlanState *child)
{
	for (int i = 0; i < feed->ninputs; i++)
		if (feed->inputs[i].source.child == child)
			return &feed->inputs[i].source;
	return NULL;
}

/* ---- the end ------------------------------------------------------------ */

/* Begin again; the child has been rescanned, or is as soon as it is asked. */
void
hgj_agg_feed_rewind(HgjAggFeed *feed)
{
	for (int i = 0; i < feed->ninputs; i++)
	{
		HgjSource  *source = &feed->inputs[i].source;

		source->methods->rewind(source);
		feed->inputs[i].started = false;
	}
	feed->now = NULL;
	feed->at_end = false;
}

/* Give back pins. */
void
hgj_agg_feed_end(HgjAggFeed *feed)
{
	for (int i = 0; i < feed->ninputs; i++)
	{
		HgjSource  *source = &feed->inputs[i].source;

		if (source->methods->end)
			source->methods->end(source);
	}
}

/* Free what is not palloc'd.  Safe at any time, and again. */
void
hgj_agg_feed_free(HgjAggFeed *feed)
{
	for (int i = 0; feed && feed->inputs && i < feed->ninputs; i++)
		if (feed->inputs[i].read)
			hgj_arena_free(&feed->inputs[i].read->own_values);
}
