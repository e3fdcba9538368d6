/*-------------------------------------------------------------------------
 *
 * page_quals.c
 *	  The quals of a sequential scan whose table is read by pages
 *	  (source_pages.c).
 *
 * 1. At executor start divide them: those that may run over column vectors, and
 *	  the rest.  A qual that can raise an error, or that must not see rows which
 *	  another one hides, never runs before a qual that comes earlier in the
 *	  plan.
 * 2. Decode the columns that the former read, of the rows that are left of a page
 *	  (page_columns.c).  Where no qual can raise an error or is volatile, key
 *	  filters may have dropped some already (page_filters.c).
 * 3. Run the former over these rows, the rest with ExecQual on what is left, tuple
 *	  by tuple.  Where not every row may be wanted, a tuple whose quals may raise
 *	  an error waits till the rows before it have been returned.
 *
 * Memory: the context that is current at executor start.  No locks; the page is
 * pinned by heap_pages.c.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "executor/executor.h"
#include "expr/demand.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "scan/page_quals.h"

/*
 * HgjInputLookup of a scan's quals: numbers go by the order in which columns are
 * asked for, in a list of attnos.
 */
int
hgj_scan_lookup(void *arg, const Var *var)
{
	List	  **attnos = arg;
	int			i = 0;
	ListCell   *lc;

	if (var->varattno <= 0 || var->varlevelsup != 0)
		return -1;
	foreach(lc, *attnos)
	{
		if (lfirst_int(lc) == var->varattno)
			return i;
		i++;
	}
	*attnos = lappend_int(*attnos, var->varattno);
	return i;
}

/*
 * Step 1.  Those that cannot run over vectors keep their order, and only what
 * can neither fail nor leak runs before one that comes earlier.
 */
void
hgj_page_quals_init(HgjPageQuals *quals, HgjSource *source,
					HgjPageColumns *columns)
{
	PlanState  *child = source->child;
	List	   *all = source->leave_quals ? NIL : child->plan->qual;
	List	   *rest;
	List	   *attnos = NIL;
	ListCell   *lc;

	rest = hgj_program_compile_quals(all, child, hgj_scan_lookup, &attnos, true,
									 &quals->program);
	quals->node = castNode(SeqScanState, child);
	if (quals->program == NULL && rest != NIL)
		quals->rest = child->qual;	/* all of them; a subplan has one state only */
	else
		quals->rest = ExecInitQual(rest, child);
	source->row_quals = rest;
	quals->rest_may_raise = hgj_may_raise((Node *) rest, child->state);
	quals->may_wait = all != NIL &&
		!hgj_may_raise((Node *) all, child->state) &&
		!contain_volatile_functions((Node *) all);

	if (quals->may_wait && hgj_table_may_be_kept(quals->node->ss.ss_currentRelation))
		quals->seen = hgj_seen_quals_join(quals->node, all, attnos, quals->rest != NULL);

	quals->selection = palloc(mul_size(columns->most_rows, sizeof(uint32)));
	quals->inputs = palloc(mul_size(list_length(attnos) + 1, sizeof(int)));
	quals->input_vectors = palloc0(mul_size(list_length(attnos) + 1,
											sizeof(HgjVector *)));
	foreach(lc, attnos)
	{
		int			c = hgj_page_columns_add(columns, lfirst_int(lc));

		quals->input_vectors[quals->ninputs] = &columns->columns[c]->buffer.vector;
		quals->inputs[quals->ninputs++] = c;
	}
}

/* A new page: no row of it has gone through the quals. */
void
hgj_page_quals_begin(HgjPageQuals *quals, const HgjPageColumns *columns)
{
	quals->looked_at = 0;
	quals->page_rows = columns->nrows;
}

/*
 * Could the next tuple raise an error?  Then, where not all rows may be wanted,
 * it is looked at alone, and only when the rows before it have been returned.
 */
bool
hgj_page_quals_may_raise(const HgjPageQuals *quals, const HgjSource *source)
{
	return quals->stopped || quals->rest_may_raise || source->keys_may_raise ||
		(quals->program && hgj_program_raises_at_once(quals->program));
}

/*
 * Step 2, which is done the first time a page comes here, and the first half of 3,
 * for n rows (NULL: the page's first), into quals->selection.  Returns how many
 * pass; if one of the rows raises an error that is put off, *end becomes that one.
 */
static uint32
run_program(HgjPageQuals *quals, HgjPageColumns *columns, const uint32 *rows,
			uint32 n, uint32 *end, bool careful)
{
	uint32		stop;
	uint32		passed;

	hgj_page_columns_read(columns, quals->inputs, quals->ninputs);
	if (!quals->started)
		hgj_program_start(quals->program, quals->node->ss.ps.ps_ExprContext);
	quals->started = true;
	quals->stopped = false;
	if (!careful || n == 1)
		return hgj_program_filter(quals->program, quals->input_vectors, rows, n,
								  quals->selection);
	passed = hgj_program_filter_until(quals->program, quals->input_vectors, rows, n,
									  quals->selection, &stop);
	quals->stopped = stop < *end;
	*end = Min(*end, stop);
	return passed;
}

/* Run ExecQual on n rows of quals->selection, and return how many are left. */
static uint32
run_rest(HgjPageQuals *quals, const HgjHeapPages *pages, uint32 n)
{
	ScanState  *ss = &quals->node->ss;
	ExprContext *econtext = ss->ps.ps_ExprContext;
	TupleTableSlot *slot = ss->ss_ScanTupleSlot;
	uint32		passed = 0;

	for (uint32 i = 0; i < n; i++)
	{
		uint32		row = quals->selection[i];

		CHECK_FOR_INTERRUPTS();
		hgj_pages_tuple(pages, row, &quals->tuple);
		ExecStoreBufferHeapTuple(&quals->tuple, slot, pages->scan->rs_cbuf);
		ResetExprContext(econtext);
		econtext->ecxt_scantuple = slot;
		if (ExecQual(quals->rest, econtext))
			quals->selection[passed++] = row;
	}
	ResetExprContext(econtext);
	ExecClearTuple(slot);
	return passed;
}

/*
 * Both halves of step 3, for n rows (NULL: the page's first); as run_program().
 */
static uint32
run_both(HgjPageQuals *quals, const HgjHeapPages *pages,
		 HgjPageColumns *columns, const uint32 *rows, uint32 n, uint32 *end,
		 bool careful)
{
	uint32	   *selection = quals->selection;

	if (quals->program)
		n = run_program(quals, columns, rows, n, end, careful);
	else
		for (uint32 i = 0; i < n; i++)
			selection[i] = rows ? rows[i] : i;
	if (quals->rest && n > 0)
		n = run_rest(quals, pages, n);
	return n;
}

/*
 * The same for all rows of a slice of kept columns, unless another scan of the query has run
 * the quals over them.
 */
static uint32
run_unless_seen(HgjPageQuals *quals, const HgjHeapPages *pages, HgjPageColumns *columns)
{
	uint32		n = columns->nrows;
	uint32		end = n;
	uint32		passed;
	uint32		npages = hgj_seen_quals_read(quals->seen, columns->kept, n, quals->selection,
											 &passed);

	quals->pages_seen += npages;
	if (npages == 0)
	{
		passed = run_both(quals, pages, columns, NULL, n, &end, false);
		hgj_seen_quals_note(quals->seen, columns->kept, n, quals->selection, passed,
							pages->nblocks);
	}
	return passed;
}

/*
 * Steps 2 and 3 for a page of which some rows may have been dropped already: those
 * that pass are left of it.
 */
static void
run_at_once(HgjPageQuals *quals, const HgjHeapPages *pages,
			HgjPageColumns *columns)
{
	uint32		n = columns->nrows;
	uint32		end = n;
	uint32		passed = n;

	if (n > 0 && quals->seen && columns->all && columns->kind == HGJ_TUPLES_KEPT)
		passed = run_unless_seen(quals, pages, columns);
	else if (n > 0 && hgj_page_quals_exist(quals))
		passed = run_both(quals, pages, columns, columns->all ? NULL : columns->rows,
						  n, &end, false);
	InstrCountFiltered1(quals->node, n - passed);
	if (passed < n)
	{
		memcpy(columns->rows, quals->selection, passed * sizeof(uint32));
		columns->nrows = passed;
		columns->all = false;
	}
	quals->looked_at = quals->page_rows;
}

/*
 * Step 3 for the rows of a page that have not gone through the quals, or as many of
 * them as careful lets: those that pass join those that are left.
 */
void
hgj_page_quals_run(HgjPageQuals *quals, HgjSource *source,
				   const HgjHeapPages *pages, HgjPageColumns *columns)
{
	bool		singly = source->careful && hgj_page_quals_may_raise(quals, source);
	uint32		first = quals->looked_at;
	uint32		end = singly ? first + 1 : quals->page_rows;
	uint32		left = first > 0 ? columns->nrows : 0;
	uint32		rows[HGJ_SLICE_ROWS];
	uint32		passed;

	if (first == 0 && !singly &&
		(!source->careful || quals->may_wait || !hgj_page_quals_exist(quals)))
	{
		run_at_once(quals, pages, columns);
		return;
	}
	source->rows_singly += singly;
	for (uint32 row = first; row < end; row++)
		rows[row - first] = row;
	passed = run_both(quals, pages, columns, rows, end - first, &end,
					  source->careful);
	/* nothing has been looked at: who comes next may take the page as it is */
	if (end == first)
		return;
	InstrCountFiltered1(quals->node, end - first - passed);
	memcpy(columns->rows + left, quals->selection, passed * sizeof(uint32));
	columns->nrows = left + passed;
	columns->all = false;
	quals->looked_at = end;
}

/*
 * What rows must have to pass, by the table's columns: of quals that do not notice if
 * they see no others.
 */
int
hgj_page_quals_bounds(const HgjPageQuals *quals, HgjProgramBound *bounds, int most)
{
	int			n;

	if (!quals->may_wait || !quals->started || quals->program == NULL)
		return 0;
	n = hgj_program_bounds(quals->program, bounds, most);
	for (int i = 0; i < n; i++)
		bounds[i].input = quals->inputs[bounds[i].input];
	return n;
}

/* Nothing is known of any page, and the next execution is another one. */
void
hgj_page_quals_reset(HgjPageQuals *quals)
{
	quals->page_rows = quals->looked_at = 0;
	quals->started = quals->stopped = false;
}
