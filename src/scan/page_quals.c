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
 * 2. Of a new page, decode the columns that the former read.
 * 3. Run the former over the page's tuples, the rest with ExecQual on what is
 *	  left, tuple by tuple.  Where not every row may be wanted, a tuple whose
 *	  quals may raise an error waits till the rows before it have been returned.
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
hgj_page_quals_init(HgjPageQuals *quals, HgjSource *source, TupleDesc desc)
{
	PlanState  *child = source->child;
	List	   *rest;
	List	   *inputs = NIL;
	AttrNumber *attnos;
	int		   *places;
	int			n = 0;
	ListCell   *lc;

	rest = hgj_program_compile_quals(source->leave_quals ? NIL : child->plan->qual, child,
									 hgj_scan_lookup, &inputs, true, &quals->program);
	quals->node = castNode(SeqScanState, child);
	if (quals->program == NULL && rest != NIL)
		quals->rest = child->qual;	/* all of them; a subplan has one state only */
	else
		quals->rest = ExecInitQual(rest, child);
	source->row_quals = rest;
	quals->rest_may_raise = hgj_may_raise((Node *) rest, child->state);

	attnos = palloc(mul_size(list_length(inputs) + 1, sizeof(AttrNumber)));
	places = palloc(mul_size(list_length(inputs) + 1, sizeof(int)));
	foreach(lc, inputs)
		attnos[n++] = lfirst_int(lc);
	hgj_heap_columns_init(&quals->input, desc, attnos, n, places);
	quals->input_targets = palloc0(mul_size(n + 1, sizeof(HgjHeapTarget)));
	quals->input_buffers = palloc0(mul_size(n + 1, sizeof(HgjBuffer)));
	quals->input_vectors = palloc0(mul_size(n + 1, sizeof(HgjVector *)));
	for (int i = 0; i < n; i++)
	{
		HgjBuffer  *buffer = &quals->input_buffers[i];

		hgj_buffer_reserve(CurrentMemoryContext, buffer,
						   quals->input.columns[places[i]].width,
						   MaxHeapTuplesPerPage);
		quals->input_targets[places[i]].vector = &buffer->vector;
		quals->input_vectors[i] = &buffer->vector;
	}
}

/* Step 2: what the program reads of all tuples of a new page. */
void
hgj_page_quals_begin(HgjPageQuals *quals, HgjHeapPages *pages)
{
	quals->looked_at = 0;
	quals->page_rows = pages->ntuples;
	pages->ntuples = 0;
	if (quals->program == NULL || quals->page_rows == 0)
		return;
	for (int i = 0; i < quals->input.ncols; i++)
		hgj_vector_all_valid(quals->input_targets[i].vector, MaxHeapTuplesPerPage);
	hgj_heap_columns_read(&quals->input, pages->tuples, quals->page_rows, pages->kind,
						  quals->input_targets, &pages->prefetch);
	if (!quals->started)
		hgj_program_start(quals->program, quals->node->ss.ps.ps_ExprContext);
	quals->started = true;
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
 * Run the program for tuples first to *end - 1; quals->selection gets those that
 * pass.  If one of them raises an error that is put off, *end becomes that one.
 */
static uint32
run_program(HgjPageQuals *quals, uint32 first, uint32 *end, bool careful)
{
	const uint32 *sel = first > 0 ? quals->selection : NULL;
	uint32		n = *end - first;
	uint32		stop;
	uint32		passed;

	quals->stopped = false;
	for (uint32 i = 0; i < n && sel; i++)
		quals->selection[i] = first + i;
	if (!careful || n == 1)
		return hgj_program_filter(quals->program, quals->input_vectors, sel, n,
								  quals->selection);
	passed = hgj_program_filter_until(quals->program, quals->input_vectors, sel, n,
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
 * Step 3: tuples that pass the quals go to the front of the current page's list.
 * All that are left are looked at, or as many as careful lets.
 */
void
hgj_page_quals_run(HgjPageQuals *quals, HgjSource *source, HgjHeapPages *pages)
{
	uint32		first = quals->looked_at;
	uint32		end = quals->page_rows;
	uint32		n;

	if (source->careful && hgj_page_quals_may_raise(quals, source))
	{
		end = first + 1;
		source->rows_singly++;
	}
	else if (quals->program == NULL && quals->rest == NULL && first == 0)
	{
		pages->ntuples = quals->looked_at = end;
		return;
	}
	n = end - first;
	if (quals->program)
		n = run_program(quals, first, &end, source->careful);
	else
		for (uint32 i = 0; i < n; i++)
			quals->selection[i] = first + i;
	if (quals->rest && n > 0)
		n = run_rest(quals, pages, n);

	InstrCountFiltered1(quals->node, end - first - n);
	if (n < end - first || pages->ntuples < first)
	{
		HeapTupleHeader *tuples = pages->tuples + pages->ntuples;
		OffsetNumber *offsets = pages->offsets + pages->ntuples;

		for (uint32 i = 0; i < n; i++)
			tuples[i] = pages->tuples[quals->selection[i]];
		for (uint32 i = 0; i < n && pages->want_offsets; i++)
			offsets[i] = pages->offsets[quals->selection[i]];
	}
	pages->ntuples += n;
	quals->looked_at = end;
}

/* Nothing is known of any page, and the next execution is another one. */
void
hgj_page_quals_reset(HgjPageQuals *quals)
{
	quals->page_rows = quals->looked_at = 0;
	quals->started = quals->stopped = false;
}
