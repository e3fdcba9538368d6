/*-------------------------------------------------------------------------
 *
 * source_explain.c
 *	  What EXPLAIN says of the rows that a node of ours reads: how they are read, by which
 *	  clauses, and which joins a scan has asked about them.
 *
 * Memory: the caller's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "commands/explain.h"
#include HGJ_EXPLAIN_HEADER
#include HGJ_EXPLAIN_STATE_HEADER
#include "nodes/makefuncs.h"
#include "scan/source_explain.h"
#include "utils/builtins.h"
#include "utils/ruleutils.h"

/*
 * Show an ANDed list of clauses of a node, as show_qual() of explain.c does.
 */
void
hgj_show_clauses(const char *label, List *clauses, const PlanState *ps,
				 List *ancestors, ExplainState *es)
{
	List	   *context;
	char	   *text;

	if (clauses == NIL)
		return;
	context = set_deparse_context_plan(es->deparse_cxt, ps->plan, ancestors);
	text = deparse_expression((Node *) make_ands_explicit(clauses), context,
							  hgj_explain_tables(es) > 1 || es->verbose, false);
	ExplainPropertyText(label, text, es);
}

/* "columns (table)" of a filter of the scan, whose table may have no name. */
static const char *
key_filter_name(const HgjSource *source, const PlanState *own_inner, int f, ExplainState *es)
{
	const PlanState *inner = own_inner;
	List	   *columns = hgj_pages_filter(source, f, &inner);
	StringInfoData buf;
	ListCell   *lc;

	initStringInfo(&buf);
	foreach(lc, columns)
		appendStringInfo(&buf, "%s%s", foreach_current_index(lc) > 0 ? ", " : "",
						 quote_identifier(lfirst(lc)));
	if (IsA(inner, SeqScanState))
		appendStringInfo(&buf, " (%s)",
						 quote_identifier(list_nth(es->rtable_names,
												   ((Scan *) inner->plan)->scanrelid - 1)));
	return buf.data;
}

/* Those that were asked, as they stand at the end, then those given up. */
static void
show_key_filters_text(const HgjSource *source, const PlanState *own_inner,
					  const HgjKeyFilterStats *stats, ExplainState *es)
{
	int			n = hgj_pages_nfilters(source);
	StringInfoData buf;
	uint64		removed = 0;

	initStringInfo(&buf);
	for (int place = 1; place <= n + 1; place++)
		for (int f = 0; f < n; f++)
		{
			if (stats[f].tested == 0 || stats[f].place != place % (n + 1))
				continue;
			appendStringInfo(&buf, "%s%s %.1f%%%s", buf.len ? "; " : "",
							 key_filter_name(source, own_inner, f, es),
							 100.0 * stats[f].passed / stats[f].tested,
							 place > n ? " off" : "");
			removed += stats[f].tested - stats[f].passed;
		}
	if (buf.len == 0)
		return;
	ExplainPropertyText("Key Filters", buf.data, es);
	ExplainPropertyUInteger("Rows Removed by Key Filters", NULL, removed, es);
}

/*
 * The joins that the scan has asked about its rows: in which order, and which part of
 * the rows they were asked about they let pass.  own_inner: the inner side of the join
 * whose outer side the scan is; NULL: it is none's.
 */
void
hgj_show_key_filters(const HgjSource *source, const PlanState *own_inner,
					 const HgjKeyFilterStats *stats, ExplainState *es)
{
	int			n = hgj_pages_nfilters(source);

	if (n == 0)
		return;
	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		show_key_filters_text(source, own_inner, stats, es);
		return;
	}
	ExplainOpenGroup("Key Filters", "Key Filters", false, es);
	for (int f = 0; f < n; f++)
	{
		ExplainOpenGroup("Key Filter", NULL, true, es);
		ExplainPropertyText("Key", key_filter_name(source, own_inner, f, es), es);
		ExplainPropertyInteger("Place", NULL, stats[f].place, es);
		ExplainPropertyUInteger("Rows Tested", NULL, stats[f].tested, es);
		ExplainPropertyUInteger("Rows Passed", NULL, stats[f].passed, es);
		ExplainCloseGroup("Key Filter", NULL, true, es);
	}
	ExplainCloseGroup("Key Filters", "Key Filters", false, es);
}

/*
 * How a side is read, and why not faster; of pages whose columns are kept in memory, how
 * many all processes have not read, or not even looked at; and which of the child's quals the
 * source runs row by row, because there is nothing faster for them.  side: "" or
 * a word and a space.
 */
void
hgj_show_source(const char *side, const HgjSource *source,
				const HgjPageCounts *pages, const PlanState *ps,
				List *ancestors, ExplainState *es)
{
	const char *name = source->methods->name;
	uint64		all = pages->kept + pages->read;

	if (es->analyze && pages->kept > 0)
	{
		name = psprintf("columns (%.0f%% of " UINT64_FORMAT " pages",
						floor(100.0 * pages->kept / all), all);
		if (pages->skipped > 0)
			name = psprintf("%s, " UINT64_FORMAT " skipped", name, pages->skipped);
		if (pages->fetched > 0)
			name = psprintf("%s, " UINT64_FORMAT " fetched", name, pages->fetched);
		if (pages->seen > 0)
			name = psprintf("%s, " UINT64_FORMAT " filtered before", name, pages->seen);
		if (pages->on_device)
			name = psprintf("%s, on the device", name);
		name = psprintf("%s)", name);
	}
	else if (es->analyze && pages->on_device)
		name = psprintf("%s (on the device)", name);
	if (source->reason != HGJ_SOURCE_FASTEST)
		name = psprintf("%s (%s)", name,
						hgj_source_reason_text(source->reason));
	ExplainPropertyText(psprintf("%sSource", side), name, es);
	hgj_show_clauses(psprintf("%sFilter by Row", side), source->row_quals,
				 source->child, lcons(ps->plan, list_copy(ancestors)), es);
}

/* Rows that a qual has rejected, as show_instrumentation_count() does. */
void
hgj_show_removed(const char *label, const PlanState *ps, bool by_match,
				 ExplainState *es)
{
	const Instrumentation *instrument = ps->instrument;
	double		removed;

	if (!es->analyze || instrument == NULL)
		return;
	removed = by_match ? instrument->nfiltered2 : instrument->nfiltered1;
	if (removed > 0 || es->format != EXPLAIN_FORMAT_TEXT)
		ExplainPropertyFloat(label, NULL,
							 instrument->nloops > 0 ? removed / instrument->nloops : 0.0,
							 0, es);
}
