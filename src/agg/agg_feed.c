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
 * 3. What is evaluated row by row is kept until the next batch.  If that takes
 *	  much memory, the next batch has fewer rows.
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
#include "executor/executor.h"
#include "join/join_state.h"
#include "miscadmin.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "scan/source.h"
#include "utils/rel.h"

/* A batch may take this part of the memory limit. */
#define BATCH_SHARE		8

/* A column of the target list of a scan. */
typedef struct FeedColumn
{
	int			column;			/* it is this one of the source, or -1: */
	HgjProgram *program;		/* an expression, or */
	ExprState  *expr;			/* one that no program can compute */
	HgjBuffer	buffer;			/* its values */
} FeedColumn;

struct HgjAggFeed
{
	HgjSource	source;
	HgjBatch   *read;			/* what the source fills */
	const HgjVector **vectors;	/* of that */
	uint32		rows;			/* that it may have next, ... */
	uint32		most_rows;		/* ... and ever */
	bool		started;		/* in this execution */
	bool		keeps_values;	/* by-reference ones, evaluated row by row */
	TupleTableSlot *slot;		/* a row of the table, for expressions; or NULL */

	int			ncolumns;		/* of the target list */
	HgjColumn  *columns;
	FeedColumn *from;
	HgjBatch	batch;			/* what is returned */
};

/* ---- setup -------------------------------------------------------------- */

static void
init_column(HgjColumn *column, AttrNumber attno, const FormData_pg_attribute *att)
{
	column->attno = attno;
	column->attlen = att->attlen;
	column->attbyval = att->attbyval;
	column->width = att->attbyval ? att->attlen : sizeof(Datum);
}

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
		init_column(&source->columns[source->ncols++], attno,
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
		init_column(&source->columns[i], i + 1, TupleDescAttr(desc, i));
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
init_expression(HgjAggState *state, FeedColumn *from, Expr *expr,
				bool by_reference)
{
	HgjAggFeed *feed = state->feed;
	const ScanState *ss = (const ScanState *) feed->source.child;

	from->program = hgj_program_compile(expr, &state->css.ss.ps,
										lookup_table_column, &feed->source, true);
	if (from->program)
		return;
	from->expr = ExecInitExpr(expr, &state->css.ss.ps);
	feed->keeps_values |= by_reference;
	if (feed->slot == NULL)
		feed->slot = ExecInitExtraTupleSlot(state->css.ss.ps.state,
											RelationGetDescr(ss->ss_currentRelation),
											&TTSOpsVirtual);
}

/* The columns that are returned: those of the child's target list. */
static void
init_output(HgjAggState *state)
{
	HgjAggFeed *feed = state->feed;
	const HgjSource *source = &feed->source;
	TupleDesc	desc = ExecGetResultType(source->child);

	feed->ncolumns = desc->natts;
	feed->columns = palloc0(mul_size(desc->natts + 1, sizeof(HgjColumn)));
	feed->from = palloc0(mul_size(desc->natts + 1, sizeof(FeedColumn)));
	feed->batch.vectors = palloc0(mul_size(desc->natts + 1, sizeof(HgjVector)));
	for (int i = 0; i < desc->natts; i++)
	{
		TargetEntry *tle = list_nth_node(TargetEntry,
										 source->child->plan->targetlist, i);
		FeedColumn *from = &feed->from[i];

		init_column(&feed->columns[i], i + 1, TupleDescAttr(desc, i));
		from->column = !source->of_table ? i :
			IsA(tle->expr, Var) ? lookup_table_column(&feed->source, (Var *) tle->expr) : -1;
		if (from->column < 0)
			init_expression(state, from, tle->expr, !feed->columns[i].attbyval);
	}
}

/*
 * Read the child, which is no HashGraphJoin, by a source.  Sets state->feed.  Call
 * at executor start, in the query's context.
 */
void
hgj_agg_feed_open(HgjAggState *state, EState *estate)
{
	HgjAggFeed *feed = palloc0(sizeof(HgjAggFeed));
	HgjSource  *source = &feed->source;
	bool		of_table = IsA(state->child, SeqScanState) &&
		!contain_subplans((Node *) state->child->plan->targetlist);

	state->feed = feed;
	source->child = state->child;
	source->econtext = CreateExprContext(estate);
	if (!of_table || !use_table_columns(source))
		use_child_columns(source);
	hgj_choose_source(source, "input of an aggregation", HGJ_AGG_NODE_NAME, estate);
	if (source->of_table && source->methods != &hgj_source_pages)
		use_child_columns(source);
	init_output(state);
	feed->read = hgj_batch_create(state->context, source->columns, source->ncols,
								  0, NULL);
	feed->most_rows = Min(get_hash_memory_limit() / BATCH_SHARE /
						  hgj_batch_row_bytes(feed->read), HGJ_BATCH_ROWS);
	feed->most_rows = Max(feed->most_rows, HGJ_BATCH_FIRST_ROWS);
	feed->rows = feed->keeps_values ? HGJ_BATCH_FIRST_ROWS : feed->most_rows;
	feed->vectors = palloc0(mul_size(source->ncols + 1, sizeof(HgjVector *)));
}

/* The columns of its batches, by resno - 1. */
const HgjColumn *
hgj_agg_feed_columns(const HgjAggFeed *feed, int *ncols)
{
	*ncols = feed->ncolumns;
	return feed->columns;
}

/* How the child is read, for EXPLAIN. */
const HgjSource *
hgj_agg_feed_source(const HgjAggFeed *feed)
{
	return &feed->source;
}

/* ---- batches ------------------------------------------------------------ */

/* Give the programs the parameters of this execution. */
static void
start(HgjAggState *state)
{
	HgjAggFeed *feed = state->feed;

	for (int c = 0; c < feed->ncolumns; c++)
		if (feed->from[c].program)
			hgj_program_start(feed->from[c].program, state->css.ss.ps.ps_ExprContext);
	feed->started = true;
}

/* Lay a row of the table out for expressions. */
static void
fill_slot(HgjAggFeed *feed, uint32 row)
{
	TupleTableSlot *slot = feed->slot;

	ExecClearTuple(slot);
	for (int c = 0; c < feed->source.ncols; c++)
	{
		const HgjVector *vector = feed->vectors[c];
		int			i = feed->source.columns[c].attno - 1;

		if (i < 0)
			continue;
		slot->tts_isnull[i] = hgj_vector_is_null(vector, row);
		slot->tts_values[i] = slot->tts_isnull[i] ? (Datum) 0 :
			hgj_load((const char *) vector->values + (Size) row * vector->width,
					 vector->width);
	}
	ExecStoreVirtualTuple(slot);
}

/* The values of an expression that no program can compute. */
static const HgjVector *
eval_by_row(HgjAggState *state, FeedColumn *from, const HgjColumn *column)
{
	HgjAggFeed *feed = state->feed;
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	HgjVector  *vector = &from->buffer.vector;
	uint32		n = feed->read->nrows;

	hgj_buffer_reserve(state->context, &from->buffer, column->width, n);
	for (uint32 row = 0; row < n; row++)
	{
		Datum		value;
		bool		isnull;

		CHECK_FOR_INTERRUPTS();
		ResetExprContext(econtext);
		fill_slot(feed, row);
		econtext->ecxt_scantuple = feed->slot;
		value = ExecEvalExprSwitchContext(from->expr, econtext, &isnull);
		if (isnull)
		{
			hgj_vector_set_null(vector, row);
			value = (Datum) 0;
		}
		else if (!column->attbyval)
			value = hgj_arena_copy(feed->read->values, value, column->attlen);
		hgj_store((char *) vector->values + (Size) row * column->width,
				  column->width, value);
	}
	return vector;
}

/* Step 3: how many rows should the next batch have? */
static void
set_next_rows(HgjAggFeed *feed)
{
	double		rows = (double) feed->read->nrows * hgj_batch_value_bytes() /
		Max(feed->read->values->used, 1);

	rows = Min(rows, (double) feed->rows * 4);
	feed->rows = (uint32) Max(Min(rows, (double) feed->most_rows), 1);
}

/* The next batch of the child's rows, or NULL; it stays until the next call. */
const HgjBatch *
hgj_agg_feed_next(HgjAggState *state)
{
	HgjAggFeed *feed = state->feed;
	HgjSource  *source = &feed->source;

	if (state->join)
		return hgj_join_next_batch(state->join);
	if (source->at_end)
		return NULL;
	if (!feed->started)
		start(state);
	hgj_batch_reserve(feed->read, feed->rows);
	source->methods->fill(source, feed->read, feed->rows);
	feed->batch.nrows = feed->read->nrows;
	if (feed->batch.nrows == 0)
	{
		source->at_end = true;
		return NULL;
	}
	for (int c = 0; c < source->ncols; c++)
		feed->vectors[c] = &feed->read->vectors[c];
	for (int c = 0; c < feed->ncolumns; c++)
	{
		FeedColumn *from = &feed->from[c];

		feed->batch.vectors[c] = from->column >= 0 ?
			*feed->vectors[from->column] : from->program ?
			*hgj_program_eval(from->program, feed->vectors, NULL, feed->read->nrows) :
			*eval_by_row(state, from, &feed->columns[c]);
	}
	if (feed->keeps_values)
		set_next_rows(feed);
	return &feed->batch;
}

/* ---- the end ------------------------------------------------------------ */

/* Begin again; the child has been rescanned, or is as soon as it is asked. */
void
hgj_agg_feed_rewind(HgjAggFeed *feed)
{
	feed->source.methods->rewind(&feed->source);
	feed->source.at_end = false;
	feed->started = false;
}

/* Give back pins. */
void
hgj_agg_feed_end(HgjAggFeed *feed)
{
	if (feed->source.methods->end)
		feed->source.methods->end(&feed->source);
}

/* Free what is not palloc'd.  Safe at any time, and again. */
void
hgj_agg_feed_free(HgjAggFeed *feed)
{
	if (feed && feed->read)
		hgj_arena_free(&feed->read->own_values);
}
