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

/* as_written: what the query would cost, or -1: nobody has asked. */
void
hgj_write_hidden_joins(PlannedStmt *stmt, int njoins, int nrestrictions, int nrepeated,
					   Cost as_written)
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
	lfirst_int(list_nth_cell(facts, first + HGJ_HIDDEN_JOINS)) = njoins;
	lfirst_int(list_nth_cell(facts, first + HGJ_HIDDEN_RESTRICTIONS)) = nrestrictions;
	lfirst_int(list_nth_cell(facts, first + HGJ_HIDDEN_REPEATS)) = nrepeated;
	lfirst_int(list_nth_cell(facts, first + HGJ_HIDDEN_COST_HIGH)) = (int) (bits >> 32);
	lfirst_int(list_nth_cell(facts, first + HGJ_HIDDEN_COST_LOW)) = (int) (bits & PG_UINT32_MAX);
}

/*
 * EXPLAIN's line of the topmost node: Hidden Joins: 1  Restrictions: 1  Repeated WITH: 1  Cost as
 * Written: 1234.56
 */
void
hgj_show_hidden_joins(const CustomScan *cscan, ExplainState *es)
{
	int			first;
	List	   *facts = facts_of(cscan, &first);
	int			njoins = list_nth_int(facts, first + HGJ_HIDDEN_JOINS);
	int			nrestrictions = list_nth_int(facts, first + HGJ_HIDDEN_RESTRICTIONS);
	int			nrepeated = list_nth_int(facts, first + HGJ_HIDDEN_REPEATS);
	uint64		bits = (uint64) (uint32) list_nth_int(facts, first + HGJ_HIDDEN_COST_HIGH) << 32 |
		(uint32) list_nth_int(facts, first + HGJ_HIDDEN_COST_LOW);
	double		as_written;
	StringInfoData line;

	memcpy(&as_written, &bits, sizeof(as_written));
	if (njoins == 0 && nrepeated == 0)
		return;
	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		initStringInfo(&line);
		appendStringInfo(&line, "%d", njoins > 0 ? njoins : nrepeated);
		if (nrestrictions > 0)
			appendStringInfo(&line, "  Restrictions: %d", nrestrictions);
		if (njoins > 0 && nrepeated > 0)
			appendStringInfo(&line, "  Repeated WITH: %d", nrepeated);
		if (es->costs && as_written >= 0)
			appendStringInfo(&line, "  Cost as Written: %.2f", as_written);
		ExplainPropertyText(njoins > 0 ? "Hidden Joins" : "Repeated WITH", line.data, es);
		return;
	}
	ExplainPropertyInteger("Hidden Joins", NULL, njoins, es);
	ExplainPropertyInteger("Restrictions", NULL, nrestrictions, es);
	ExplainPropertyInteger("Repeated WITH", NULL, nrepeated, es);
	if (es->costs && as_written >= 0)
		ExplainPropertyFloat("Cost as Written", NULL, as_written, 2, es);
}
