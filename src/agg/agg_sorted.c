/*-------------------------------------------------------------------------
 *
 * agg_sorted.c
 *	  Aggregates with ORDER BY or DISTINCT inside, in a HashGraphAgg.
 *
 * 1. The arguments of each row, those of ORDER BY included, go to PostgreSQL's sort,
 *	  behind the row's place: the number of its group, and in the lower bits what
 *	  agg_sort_place.c says of the first value to sort by, so that most rows are told
 *	  apart by comparing integers.  Where all of the only argument is in its place, that is
 *	  all there is to sort, which takes a third of the time.  There is one sort for each
 *	  such aggregate, for all groups in the table.
 * 2. Groups are returned by their numbers, so that the sort yields the rows of the one
 *	  at hand next.  They are given to the transition function (agg_transition.c), with
 *	  DISTINCT only those that differ from the row before.
 * 3. So states last no longer than their group is at hand.
 * 4. Rows whose groups are not in the table are put aside before (agg_spill.c), and
 *	  sorted when their partition is read.
 *
 * Memory: each sort has work_mem, as in PostgreSQL, and goes to temporary files beyond
 * it, which belong to the resource owner.  It ends with the groups in the table; on abort
 * with the query's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_sort_place.h"
#include "agg/agg_transition.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"

/* What stands in front of the arguments: the place. */
#define BEFORE_ARGUMENTS	1

typedef struct HgjAggSort
{
	MemoryContext context;
	int			narguments;
	TupleDesc	desc;
	HgjSortPlace place;			/* how a row's place is made, and ... */
	int			first;			/* ... a column of its arguments, of which */
	int			nkeys;			/* the place, and what it does not tell apart */
	AttrNumber *columns;
	Oid		   *operators;
	Oid		   *collations;
	bool	   *nulls_first;
	bool		is_distinct;
	int			ndistinct;		/* columns that DISTINCT compares, ... */
	AttrNumber *distinct;
	Oid		   *distinct_collations;
	FmgrInfo   *equal;			/* ... and how */
	NullableDatum *arguments;	/* of one row */
	bool		places_only;	/* places are sorted, and no arguments behind them */
	TupleTableSlot *written;
	TupleTableSlot *next;		/* the next row, if it has more than ... */
	int64		place_next;		/* ... its place */
	bool		at_end;			/* there is none */
	TupleTableSlot *last;		/* the one before it, of the same group, ... */
	int64		place_last;
	bool		has_last;		/* ... if DISTINCT wants it, and there is one */
	Tuplesortstate *tuples;		/* NULL: there is no row */
	bool		reading;
} HgjAggSort;

/* A key more. */
static void
add_key(HgjAggSort *sort, AttrNumber column, Oid operator, Oid collation,
		bool nulls_first)
{
	int			k = sort->nkeys++;

	sort->columns[k] = column;
	sort->operators[k] = operator;
	sort->collations[k] = collation;
	sort->nulls_first[k] = nulls_first;
}

/* Step 1: what rows are sorted by. */
static void
init_keys(HgjAggSort *sort, const Aggref *aggref)
{
	List	   *clauses = hgj_sort_clauses(aggref);
	int			most = list_length(clauses) + 1;
	ListCell   *lc;

	sort->columns = palloc(mul_size(most, sizeof(AttrNumber)));
	sort->operators = palloc(mul_size(most, sizeof(Oid)));
	sort->collations = palloc(mul_size(most, sizeof(Oid)));
	sort->nulls_first = palloc(mul_size(most, sizeof(bool)));
	sort->distinct = palloc(mul_size(most, sizeof(AttrNumber)));
	sort->distinct_collations = palloc(mul_size(most, sizeof(Oid)));
	sort->equal = palloc(mul_size(most, sizeof(FmgrInfo)));
	add_key(sort, 1, Int8LessOperator, InvalidOid, false);
	foreach(lc, clauses)
	{
		SortGroupClause *clause = lfirst_node(SortGroupClause, lc);
		TargetEntry *tle = get_sortgroupclause_tle(clause, aggref->args);
		AttrNumber	column = tle->resno + BEFORE_ARGUMENTS;
		Oid			collation = exprCollation((Node *) tle->expr);

		if (IsA(tle->expr, Const))
			continue;			/* which tells no rows apart */
		if (sort->first < 0)
		{
			hgj_sort_place_init(&sort->place, clause->sortop, collation,
								clause->nulls_first);
			sort->first = tle->resno - 1;
		}
		if (sort->first != tle->resno - 1 || !sort->place.exact)
			add_key(sort, column, clause->sortop, collation, clause->nulls_first);
		if (aggref->aggdistinct)
		{
			sort->distinct[sort->ndistinct] = column;
			sort->distinct_collations[sort->ndistinct] = collation;
			fmgr_info(get_opcode(clause->eqop), &sort->equal[sort->ndistinct++]);
		}
	}
	sort->first = Max(sort->first, 0);
}

/* Step 1: the columns of rows. */
static void
init_columns(HgjAggSort *sort, const Aggref *aggref)
{
	ListCell   *lc;

	sort->desc = CreateTemplateTupleDesc(sort->narguments + BEFORE_ARGUMENTS);
	TupleDescInitEntry(sort->desc, 1, NULL, INT8OID, -1, 0);
	foreach(lc, aggref->args)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);
		Node	   *expr = (Node *) tle->expr;

		TupleDescInitEntry(sort->desc, tle->resno + BEFORE_ARGUMENTS, NULL,
						   exprType(expr), exprTypmod(expr), 0);
		TupleDescInitEntryCollation(sort->desc, tle->resno + BEFORE_ARGUMENTS,
									exprCollation(expr));
	}
}

/* Get ready for the rows of an aggregate.  Call at executor start. */
void
hgj_agg_sort_init(HgjAggState *state, HgjTransition *transition)
{
	EState	   *estate = state->css.ss.ps.state;
	HgjAggSort *sort = palloc0(sizeof(HgjAggSort));

	sort->context = state->context;
	sort->first = -1;
	sort->is_distinct = transition->trans->aggref->aggdistinct != NIL;
	sort->narguments = list_length(transition->trans->aggref->args);
	sort->arguments = palloc(mul_size(Max(sort->narguments, 1), sizeof(NullableDatum)));
	init_columns(sort, transition->trans->aggref);
	init_keys(sort, transition->trans->aggref);
	sort->places_only = hgj_sort_places_only(&sort->place, sort->narguments);
	sort->written = ExecInitExtraTupleSlot(estate, sort->desc, &TTSOpsVirtual);
	sort->next = ExecInitExtraTupleSlot(estate, sort->desc, &TTSOpsMinimalTuple);
	sort->last = ExecInitExtraTupleSlot(estate, sort->desc, &TTSOpsMinimalTuple);
	transition->sort = sort;
}

static void
begin(HgjAggSort *sort)
{
	MemoryContext old = MemoryContextSwitchTo(sort->context);

	if (sort->places_only)
		sort->tuples = tuplesort_begin_datum(INT8OID, Int8LessOperator, InvalidOid, false,
											 work_mem, NULL, TUPLESORT_NONE);
	else
		sort->tuples = tuplesort_begin_heap(sort->desc, sort->nkeys, sort->columns,
											sort->operators, sort->collations,
											sort->nulls_first, work_mem, NULL,
											TUPLESORT_NONE);
	sort->reading = false;
	MemoryContextSwitchTo(old);
}

/* Step 1, for the input's i-th row. */
void
hgj_agg_put_row(HgjAggregate *agg, uint32 group, uint32 i)
{
	HgjAggSort *sort = agg->transitions->sort;
	TupleTableSlot *slot = sort->written;
	int64		place;

	hgj_agg_load_arguments(agg->input, i, sort->narguments, sort->arguments);
	if (hgj_transition_skips(agg->transitions, sort->arguments))
		return;
	if (sort->tuples == NULL)
		begin(sort);
	place = hgj_sort_place(&sort->place, group, &sort->arguments[sort->first]);
	if (sort->places_only)
	{
		tuplesort_putdatum(sort->tuples, Int64GetDatum(place), false);
		return;
	}
	ExecClearTuple(slot);
	slot->tts_values[0] = Int64GetDatum(place);
	slot->tts_isnull[0] = false;
	for (int c = 0; c < sort->narguments; c++)
	{
		slot->tts_values[BEFORE_ARGUMENTS + c] = sort->arguments[c].value;
		slot->tts_isnull[BEFORE_ARGUMENTS + c] = sort->arguments[c].isnull;
	}
	ExecStoreVirtualTuple(slot);
	tuplesort_puttupleslot(sort->tuples, slot);
	ExecClearTuple(slot);
}

/* Step 1: the loop of such an aggregate. */
void
hgj_agg_put_rows(HgjAggregate *agg, const HgjAggRows *rows)
{
	for (uint32 i = 0; i < rows->n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		hgj_agg_put_row(agg, rows->groups ? rows->groups[i] : 0, i);
	}
}

/* Does DISTINCT take the next row for the last one? */
static bool
is_duplicate(HgjAggSort *sort)
{
	if (!sort->has_last)
		return false;
	if (sort->places_only)
		return sort->place_next == sort->place_last;
	for (int k = 0; k < sort->ndistinct; k++)
	{
		bool		null1;
		bool		null2;
		Datum		value1 = slot_getattr(sort->last, sort->distinct[k], &null1);
		Datum		value2 = slot_getattr(sort->next, sort->distinct[k], &null2);

		if (null1 != null2 ||
			(!null1 && !DatumGetBool(FunctionCall2Coll(&sort->equal[k],
													   sort->distinct_collations[k],
													   value1, value2))))
			return false;
	}
	return true;
}

/* What DISTINCT compares with what follows. */
static void
keep_last(HgjAggSort *sort)
{
	TupleTableSlot *swap = sort->last;

	if (!sort->is_distinct)
		return;
	sort->has_last = true;
	sort->place_last = sort->place_next;
	sort->last = sort->next;
	sort->next = swap;
}

/* The next row in order, unless there is none. */
static void
fetch(HgjAggSort *sort)
{
	MemoryContext old = MemoryContextSwitchTo(sort->context);
	Datum		place = 0;
	bool		isnull;

	if (sort->places_only)
		sort->at_end = !HGJ_TUPLESORT_GETDATUM(sort->tuples, &place, &isnull);
	else
	{
		/* what is to be compared with must outlast the next one */
		sort->at_end = !tuplesort_gettupleslot(sort->tuples, true, sort->is_distinct,
											   sort->next, NULL);
		if (!sort->at_end)
			place = slot_getattr(sort->next, 1, &isnull);
	}
	sort->place_next = DatumGetInt64(place);
	MemoryContextSwitchTo(old);
}

/* Step 2: the next row's arguments. */
static void
load_next(const HgjTransition *transition)
{
	const HgjAggSort *sort = transition->sort;
	FunctionCallInfo call = transition->trans->transfn_fcinfo;

	for (int i = 0; i < transition->trans->numTransInputs; i++)
		if (sort->places_only)
			call->args[i + 1] = hgj_sort_place_value(&sort->place, sort->place_next);
		else
			call->args[i + 1].value = slot_getattr(sort->next, i + 1 + BEFORE_ARGUMENTS,
												   &call->args[i + 1].isnull);
}

/* Step 2: the group's rows, in order. */
void
hgj_agg_sort_feed(HgjTransition *transition, HgjTransValue *value, uint32 group)
{
	HgjAggSort *sort = transition->sort;
	MemoryContext scratch = transition->caller->tmpcontext->ecxt_per_tuple_memory;
	MemoryContext old;

	if (sort->tuples == NULL)
		return;
	if (!sort->reading)
	{
		tuplesort_performsort(sort->tuples);
		sort->reading = true;
		fetch(sort);
	}
	old = MemoryContextSwitchTo(scratch);
	while (!sort->at_end && hgj_sort_place_group(sort->place_next) == group)
	{
		CHECK_FOR_INTERRUPTS();
		if (!is_duplicate(sort))
		{
			load_next(transition);
			hgj_transition_advance(transition, value);
		}
		MemoryContextReset(scratch);
		keep_last(sort);
		fetch(sort);
	}
	sort->has_last = false;
	ExecClearTuple(sort->last);
	MemoryContextSwitchTo(old);
}

/* Forget all rows.  Safe to call again. */
void
hgj_agg_sort_end(HgjAggSort *sort)
{
	ExecClearTuple(sort->next);
	ExecClearTuple(sort->last);
	if (sort->tuples)
		tuplesort_end(sort->tuples);
	sort->tuples = NULL;
}
