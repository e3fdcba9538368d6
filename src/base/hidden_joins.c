/*-------------------------------------------------------------------------
 *
 * hidden_joins.c
 *	  The topmost node of ours in a plan says how many subqueries of the query have become
 *	  joins, by how many conditions their groups are restricted to what is around them, how many
 *	  WITH queries are computed where they are read, and what the query would cost as it is
 *	  written; EXPLAIN prints that there.
 *
 * A plan has no room for what concerns all of it.  Each node of ours has HgjHiddenFact
 * integers, zeros as it is made, and the topmost one's are overwritten.  A plan without a
 * node of ours says nothing; hashgraph_join_why() does.
 *
 * No memory but the plan's, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/agg_format.h"
#include "base/hidden_joins.h"
#include "base/plan_format.h"
#include "base/plan_walk.h"
#include "commands/explain.h"
#include HGJ_EXPLAIN_HEADER
#include HGJ_EXPLAIN_STATE_HEADER

/* The facts of a node that is not topmost, or of a plan in which nothing was hidden. */
List *
hgj_no_hidden_joins(void)
{
	List	   *facts = NIL;

	for (int i = 0; i < HGJ_HIDDEN_FACTS; i++)
		facts = lappend_int(facts, 0);
	return facts;
}

/* The list that has the facts of a node of ours; *first is the place of the first fact in it. */
static List *
facts_of(const CustomScan *cscan, int *first)
{
	if (hgj_is_join_plan(&cscan->scan.plan))
	{
		*first = HGJ_FACT_HIDDEN;
		return cscan->custom_private;
	}
	*first = 0;
	return hgj_is_agg_plan(&cscan->scan.plan) ?
		list_nth(cscan->custom_private, HGJ_AGG_HIDDEN) : NIL;
}

/* HgjPlanVisit: context is where the first node of ours goes, from the top. */
static void
find_node(Plan *plan, void *context)
{
	CustomScan **found = context;

	if (*found == NULL && (hgj_is_join_plan(plan) || hgj_is_agg_plan(plan)))
		*found = (CustomScan *) plan;
	if (*found == NULL)
		hgj_visit_children(plan, find_node, context);
}

/*
 * counts: the numbers, by HgjHiddenFact, of which there are HGJ_HIDDEN_COST_HIGH; as_written: what
 * the query would cost, or -1: nobody has asked.
 */
void
hgj_write_hidden_joins(PlannedStmt *stmt, const int *counts, Cost as_written)
{
	CustomScan *node = NULL;
	uint64		bits;
	List	   *facts;
	int			first;

	find_node(stmt->planTree, &node);
	if (node == NULL)
		hgj_visit_plans(stmt->subplans, find_node, &node);
	if (node == NULL)
		return;
	memcpy(&bits, &as_written, sizeof(bits));
	facts = facts_of(node, &first);
	for (int i = 0; i < HGJ_HIDDEN_COST_HIGH; i++)
		lfirst_int(list_nth_cell(facts, first + i)) = counts[i];
	lfirst_int(list_nth_cell(facts, first + HGJ_HIDDEN_COST_HIGH)) = (int) (bits >> 32);
	lfirst_int(list_nth_cell(facts, first + HGJ_HIDDEN_COST_LOW)) = (int) (bits & PG_UINT32_MAX);
}

/*
 * EXPLAIN's line of the topmost node: Hidden Joins: 1  Restrictions: 1  Repeated WITH: 1  Early
 * Groups: 1  Cost as Written: 1234.56; it begins with the first of these that there are, but for
 * restrictions.
 */
void
hgj_show_hidden_joins(const CustomScan *cscan, ExplainState *es)
{
	static const char *const labels[] = {
		[HGJ_HIDDEN_JOINS] = "Hidden Joins",
		[HGJ_HIDDEN_RESTRICTIONS] = "Restrictions",
		[HGJ_HIDDEN_REPEATS] = "Repeated WITH",
		[HGJ_HIDDEN_EARLY_GROUPS] = "Early Groups"
	};
	int			first;
	List	   *facts = facts_of(cscan, &first);
	uint64		bits = (uint64) (uint32) list_nth_int(facts, first + HGJ_HIDDEN_COST_HIGH) << 32 |
		(uint32) list_nth_int(facts, first + HGJ_HIDDEN_COST_LOW);
	int			top = -1;
	double		as_written;
	StringInfoData line;

	for (int i = HGJ_HIDDEN_COST_HIGH - 1; i >= 0; i--)
		if (i != HGJ_HIDDEN_RESTRICTIONS && list_nth_int(facts, first + i) > 0)
			top = i;
	if (top < 0)
		return;
	memcpy(&as_written, &bits, sizeof(as_written));
	initStringInfo(&line);
	for (int i = 0; i < HGJ_HIDDEN_COST_HIGH; i++)
	{
		int			count = list_nth_int(facts, first + i);

		if (es->format != EXPLAIN_FORMAT_TEXT)
			ExplainPropertyInteger(labels[i], NULL, count, es);
		else if (count > 0 && i != top)
			appendStringInfo(&line, "  %s: %d", labels[i], count);
	}
	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		if (es->costs && as_written >= 0)
			ExplainPropertyFloat("Cost as Written", NULL, as_written, 2, es);
		return;
	}
	if (es->costs && as_written >= 0)
		appendStringInfo(&line, "  Cost as Written: %.2f", as_written);
	ExplainPropertyText(labels[top], psprintf("%d%s", list_nth_int(facts, first + top), line.data), es);
}
