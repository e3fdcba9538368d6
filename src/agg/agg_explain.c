/*-------------------------------------------------------------------------
 *
 * agg_explain.c
 *	  What EXPLAIN shows of a HashGraphAgg.
 *
 * The plan's part is worded as for PostgreSQL's Aggregate; what a run has used
 * is shown under ANALYZE only.  In a parallel plan every process has groups of
 * its own, and a line of its own.
 *
 * Memory: the caller's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_parallel.h"
#include "base/hidden_joins.h"
#include "commands/explain.h"
#include HGJ_EXPLAIN_HEADER
#include HGJ_EXPLAIN_STATE_HEADER
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "pipeline/device.h"
#include "scan/source_explain.h"
#include "utils/ruleutils.h"

static char *
deparse(Node *expr, HgjAggState *state, List *ancestors, ExplainState *es)
{
	List	   *context = set_deparse_context_plan(es->deparse_cxt,
												   state->css.ss.ps.plan,
												   ancestors);

	return deparse_expression(expr, context,
							  hgj_explain_tables(es) > 1 || es->verbose,
							  true);
}

/* Columns of custom_scan_tlist, replaced by what they are. */
static Node *
spell_out(Node *node, void *context)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Var) && ((Var *) node)->varno == INDEX_VAR)
	{
		TargetEntry *tle = list_nth(context, ((Var *) node)->varattno - 1);

		return copyObject((Node *) tle->expr);
	}
	return expression_tree_mutator(node, spell_out, context);
}

static void
show_group_key(HgjAggState *state, CustomScan *cscan, List *ancestors,
			   ExplainState *es)
{
	List	   *texts = NIL;
	List	   *dependent = NIL;
	ListCell   *lc;

	foreach(lc, (List *) list_nth(cscan->custom_private, HGJ_AGG_GROUP_COLUMNS))
	{
		TargetEntry *tle = list_nth(cscan->custom_scan_tlist,
									lfirst_int(lc) - 1);
		char	   *text = deparse((Node *) tle->expr, state, ancestors, es);

		if (list_length(texts) < state->groups.ntelling)
			texts = lappend(texts, text);
		else
			dependent = lappend(dependent, text);
	}
	if (texts)
		ExplainPropertyList("Group Key", texts, es);
	if (dependent)
		ExplainPropertyList("Dependent Columns", dependent, es);
}

static void
show_having(HgjAggState *state, CustomScan *cscan, List *ancestors,
			ExplainState *es)
{
	List	   *having = list_nth(cscan->custom_exprs, HGJ_AGG_EXPRS_HAVING);

	if (having == NIL)
		return;
	having = (List *) spell_out((Node *) having, cscan->custom_scan_tlist);
	ExplainPropertyText("Filter",
						deparse((Node *) make_ands_explicit(having), state,
								ancestors, es), es);
	hgj_show_removed("Rows Removed by Filter", &state->css.ss.ps, false, es);
}

/* What one process has done; worker: its number, or -1. */
static void
show_report(const HgjAggReport *report, int worker, ExplainState *es)
{
	uint64		memory = (report->peak_bytes + 1023) / 1024;
	uint64		disk = (report->spilled_bytes + 1023) / 1024;
	uint64		exchange_memory = (report->exchanged_bytes + 1023) / 1024;
	uint64		exchange_disk = (report->exchanged_disk + 1023) / 1024;

	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyUInteger("Groups", NULL, report->groups, es);
		ExplainPropertyUInteger("Memory Usage", "kB", memory, es);
		ExplainPropertyUInteger("Times Emptied", NULL, report->rounds, es);
		ExplainPropertyUInteger("Rows Waiting for States", NULL, report->waiting_rows, es);
		ExplainPropertyUInteger("Spilled Rows", NULL, report->spilled_rows, es);
		ExplainPropertyUInteger("Spilled Partitions", NULL,
								report->spilled_partitions, es);
		ExplainPropertyUInteger("Disk Usage", "kB", disk, es);
		ExplainPropertyUInteger("Exchanged Groups", NULL, report->exchanged_groups, es);
		ExplainPropertyUInteger("Exchange Memory", "kB", exchange_memory, es);
		ExplainPropertyUInteger("Exchange Disk", "kB", exchange_disk, es);
		ExplainPropertyUInteger("Groups Divided by Value", NULL, report->exchanged_by_value, es);
		ExplainPropertyUInteger("Groups in Short Records", NULL, report->exchanged_short, es);
		return;
	}
	appendStringInfoSpaces(es->str, es->indent * 2);
	if (worker >= 0)
		appendStringInfo(es->str, "Worker %d:  ", worker);
	appendStringInfo(es->str,
					 "Groups: " UINT64_FORMAT "  Memory Usage: " UINT64_FORMAT "kB",
					 report->groups, memory);
	if (report->rounds > 0)
		appendStringInfo(es->str, "  Times Emptied: " UINT64_FORMAT,
						 report->rounds);
	if (report->waiting_rows > 0)
		appendStringInfo(es->str, "  Rows Waiting for States: " UINT64_FORMAT,
						 report->waiting_rows);
	if (report->spilled_rows > 0)
		appendStringInfo(es->str,
						 "  Spilled Rows: " UINT64_FORMAT
						 "  Partitions: " UINT64_FORMAT
						 "  Disk Usage: " UINT64_FORMAT "kB",
						 report->spilled_rows, report->spilled_partitions, disk);
	if (report->exchanged_groups > 0)
		appendStringInfo(es->str,
						 "  Exchanged Groups: " UINT64_FORMAT
						 "  Memory: " UINT64_FORMAT "kB  Disk: " UINT64_FORMAT "kB",
						 report->exchanged_groups, exchange_memory, exchange_disk);
	if (report->exchanged_by_value > 0)
		appendStringInfo(es->str, "  Divided by Value: " UINT64_FORMAT,
						 report->exchanged_by_value);
	if (report->exchanged_short > 0)
		appendStringInfo(es->str, "  Short Records: " UINT64_FORMAT, report->exchanged_short);
	appendStringInfoChar(es->str, '\n');
}

/* What a join above has said of the rows, to all processes. */
static void
show_key_filter(HgjAggState *state, const HgjAggReport *own, ExplainState *es)
{
	const HgjAggReport *reports = (HgjAggReport *) state->reports.copies;
	HgjKeyFilterStats stats = own->key_filter;
	const HgjSource *scan = state->feed ? hgj_agg_feed_scan(state->feed) : NULL;

	for (int i = 0; i < state->reports.n; i++)
	{
		hgj_key_filter_stats_add(&stats, &reports[i].key_filter);
		stats.place = Max(stats.place, reports[i].key_filter.place);
	}
	if (scan)
		hgj_show_key_filters(scan, NULL, &stats, es);
}

/* This process, if it has had a part in it, and then the workers. */
static void
show_run(HgjAggState *state, ExplainState *es)
{
	const HgjAggReport *reports = (HgjAggReport *) state->reports.copies;
	HgjAggReport own;

	hgj_agg_make_report(state, &own);
	show_key_filter(state, &own, es);
	if (own.ran)
		show_report(&own, -1, es);
	if (state->reports.n == 0)
		return;
	ExplainOpenGroup("Worker Aggregations", "Worker Aggregations", false, es);
	for (int i = 0; i < state->reports.n; i++)
	{
		if (!reports[i].ran)
			continue;
		ExplainOpenGroup("Worker", NULL, true, es);
		if (es->format != EXPLAIN_FORMAT_TEXT)
			ExplainPropertyInteger("Worker Number", NULL, i, es);
		show_report(&reports[i], i, es);
		ExplainCloseGroup("Worker", NULL, true, es);
	}
	ExplainCloseGroup("Worker Aggregations", "Worker Aggregations", false, es);
}

static void
show_feed(HgjAggState *state, List *ancestors, ExplainState *es)
{
	const HgjAggReport *reports = (HgjAggReport *) state->reports.copies;
	HgjPageCounts pages = {0};

	hgj_agg_feed_count(state, &pages);
	for (int i = 0; i < state->reports.n; i++)
		hgj_page_counts_add(&pages, &reports[i].pages);
	hgj_agg_feed_explain(state, &pages, ancestors, es);
}

/* By what processes divide the groups. */
static const char *
exchange_of(const HgjAggState *state)
{
	int			nkeys = state->exchange.nkeys;

	return nkeys == state->groups.ntelling ? "groups, by hash" :
		nkeys == 1 ? "groups, by hash of the first column" :
		psprintf("groups, by hash of the first %d columns", nkeys);
}

/* ExplainCustomScan callback. */
void
hgj_agg_explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	HgjAggState *state = (HgjAggState *) node;
	CustomScan *cscan = castNode(CustomScan, node->ss.ps.plan);

	if (state->partial || es->format != EXPLAIN_FORMAT_TEXT)
		ExplainPropertyText("Partial Mode",
							state->partial ? "Partial" : "Simple", es);
	if (state->exchange.nkeys > 0)
		ExplainPropertyText("Exchange", exchange_of(state), es);
	show_group_key(state, cscan, ancestors, es);
	show_having(state, cscan, ancestors, es);
	if (state->feed)
		show_feed(state, ancestors, es);
	hgj_show_hidden_joins(cscan, es);
	if (state->device)
		hgj_device_explain(state->device, &state->device->info, es);
	if (es->analyze)
		show_run(state, es);
}
