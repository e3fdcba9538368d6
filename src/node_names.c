/*-------------------------------------------------------------------------
 *
 * node_names.c
 *	  Name joins, aggregations and scans of a plan as EXPLAIN does in text format,
 *	  without VERBOSE.
 *
 * 1. Find the relations that the plan uses: EXPLAIN gives those, and no others,
 *	  names that differ.
 * 2. The name of a node is what kind it is, how it is run in parallel, the type of
 *	  a join, and what a scan reads.
 *
 * EXPLAIN itself has no function that returns these names alone.  Memory: the
 * caller's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/agg_format.h"
#include "base/plan_format.h"
#include "base/plan_walk.h"
#include "lib/stringinfo.h"
#include "node_names.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"

/* ---- relations ------------------------------------------------------------ */

/* The entries of the range table that the plan is about, as EXPLAIN sees it. */
static void
add_used(Plan *plan, void *context)
{
	Bitmapset **used = context;

	switch (nodeTag(plan))
	{
		case T_ForeignScan:
			*used = bms_add_members(*used, HGJ_FOREIGN_RELIDS((ForeignScan *) plan));
			break;
		case T_CustomScan:
			*used = bms_add_members(*used, ((CustomScan *) plan)->custom_relids);
			break;
		case T_ModifyTable:
			*used = bms_add_member(*used, ((ModifyTable *) plan)->nominalRelation);
			if (((ModifyTable *) plan)->exclRelRTI)
				*used = bms_add_member(*used, ((ModifyTable *) plan)->exclRelRTI);
			break;
		case T_Append:
			*used = bms_add_members(*used, ((Append *) plan)->apprelids);
			break;
		case T_MergeAppend:
			*used = bms_add_members(*used, ((MergeAppend *) plan)->apprelids);
			break;
		default:
			break;
	}
	if (hgj_node_kind(plan) == HGJ_NODE_SCAN && ((Scan *) plan)->scanrelid > 0)
		*used = bms_add_member(*used, ((Scan *) plan)->scanrelid);
	hgj_visit_children(plan, add_used, used);
}

/* Step 1. */
void
hgj_node_names(HgjNodeNames *names, const PlannedStmt *stmt)
{
	Bitmapset  *used = NULL;

	add_used(stmt->planTree, &used);
	hgj_visit_plans(stmt->subplans, add_used, &used);
	names->rtable = stmt->rtable;
	names->refnames = select_rtable_names_for_explain(stmt->rtable, used);
}

/* ---- kinds ---------------------------------------------------------------- */

/* What the node is, for hashgraph_join_why(). */
HgjNodeKind
hgj_node_kind(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_NestLoop:
		case T_MergeJoin:
		case T_HashJoin:
			return HGJ_NODE_JOIN;
		case T_Agg:
		case T_Group:
			return HGJ_NODE_AGGREGATION;
		case T_CustomScan:
			return hgj_is_join_plan(plan) ? HGJ_NODE_JOIN :
				hgj_is_agg_plan(plan) ? HGJ_NODE_AGGREGATION : HGJ_NODE_SCAN;
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
		case T_SubqueryScan:
		case T_FunctionScan:
		case T_TableFuncScan:
		case T_ValuesScan:
		case T_CteScan:
		case T_NamedTuplestoreScan:
		case T_WorkTableScan:
		case T_ForeignScan:
			return HGJ_NODE_SCAN;
		default:
			return HGJ_NODE_OTHER;
	}
}

static const char *
agg_kind(const Agg *agg)
{
	const char *part = DO_AGGSPLIT_SKIPFINAL(agg->aggsplit) ? "Partial " :
		DO_AGGSPLIT_COMBINE(agg->aggsplit) ? "Finalize " : "";
	const char *kind = "Aggregate";

	switch (agg->aggstrategy)
	{
		case AGG_PLAIN:
			break;
		case AGG_SORTED:
			kind = "GroupAggregate";
			break;
		case AGG_HASHED:
			kind = "HashAggregate";
			break;
		case AGG_MIXED:
			kind = "MixedAggregate";
			break;
	}
	return psprintf("%s%s", part, kind);
}

static const char *
foreign_kind(const ForeignScan *scan)
{
	switch ((int) scan->operation)
	{
		case CMD_INSERT:
			return "Foreign Insert";
		case CMD_UPDATE:
			return "Foreign Update";
		case CMD_DELETE:
			return "Foreign Delete";
		default:
			return "Foreign Scan";
	}
}

/* As EXPLAIN, which takes the name of the plan's methods, if they have one. */
static const char *
custom_kind(const CustomScan *scan)
{
	if (scan->methods->CustomName == NULL)
		return "Custom Scan";
	return psprintf("Custom Scan (%s)", scan->methods->CustomName);
}

static const char *
kind_name(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_NestLoop:
			return "Nested Loop";
		case T_MergeJoin:
			return "Merge";
		case T_HashJoin:
			return "Hash";
		case T_Agg:
			return agg_kind((const Agg *) plan);
		case T_Group:
			return "Group";
		case T_CustomScan:
			return custom_kind((const CustomScan *) plan);
		case T_SeqScan:
			return "Seq Scan";
		case T_SampleScan:
			return "Sample Scan";
		case T_IndexScan:
			return "Index Scan";
		case T_IndexOnlyScan:
			return "Index Only Scan";
		case T_BitmapHeapScan:
			return "Bitmap Heap Scan";
		case T_TidScan:
			return "Tid Scan";
		case T_TidRangeScan:
			return "Tid Range Scan";
		case T_SubqueryScan:
			return "Subquery Scan";
		case T_FunctionScan:
			return "Function Scan";
		case T_TableFuncScan:
			return "Table Function Scan";
		case T_ValuesScan:
			return "Values Scan";
		case T_CteScan:
			return "CTE Scan";
		case T_NamedTuplestoreScan:
			return "Named Tuplestore Scan";
		case T_WorkTableScan:
			return "WorkTable Scan";
		case T_ForeignScan:
			return foreign_kind((const ForeignScan *) plan);
		default:
			return "???";
	}
}

/* ---- names ---------------------------------------------------------------- */

static void
add_join_type(StringInfo buf, const Plan *plan)
{
	const char *type = NULL;

	switch ((int) ((const Join *) plan)->jointype)
	{
		case JOIN_LEFT:
			type = "Left";
			break;
		case JOIN_FULL:
			type = "Full";
			break;
		case JOIN_RIGHT:
			type = "Right";
			break;
		case JOIN_SEMI:
			type = "Semi";
			break;
		case JOIN_ANTI:
			type = "Anti";
			break;
		case JOIN_RIGHT_ANTI:
			type = "Right Anti";
			break;
		case JOIN_RIGHT_SEMI:
			type = "Right Semi";
			break;
	}
	if (type)
		appendStringInfo(buf, " %s Join", type);
	else if (!IsA(plan, NestLoop))
		appendStringInfoString(buf, " Join");
}

static void
add_index(StringInfo buf, ScanDirection direction, Oid index)
{
	if (ScanDirectionIsBackward(direction))
		appendStringInfoString(buf, " Backward");
	appendStringInfo(buf, " using %s", quote_identifier(get_rel_name(index)));
}

/* The name of what is scanned, if it has one besides that in the query. */
static const char *
object_name(const Plan *plan, const RangeTblEntry *rte)
{
	switch (rte->rtekind)
	{
		case RTE_RELATION:
			return get_rel_name(rte->relid);
		case RTE_CTE:
			return rte->ctename;
		case RTE_NAMEDTUPLESTORE:
			return rte->enrname;
		case RTE_TABLEFUNC:
			return "xmltable";
		case RTE_FUNCTION:
			if (IsA(plan, FunctionScan) &&
				list_length(((const FunctionScan *) plan)->functions) == 1)
			{
				const RangeTblFunction *function =
					linitial(((const FunctionScan *) plan)->functions);

				if (IsA(function->funcexpr, FuncExpr))
					return get_func_name(((const FuncExpr *) function->funcexpr)->funcid);
			}
			return NULL;
		default:
			return NULL;
	}
}

static void
add_target(StringInfo buf, const HgjNodeNames *names, const Plan *plan)
{
	Index		rti = ((const Scan *) plan)->scanrelid;
	const RangeTblEntry *rte;
	const char *object;
	const char *refname;

	/* a foreign or custom scan may be of several */
	if (rti == 0)
		return;
	rte = rt_fetch(rti, names->rtable);
	object = object_name(plan, rte);
	refname = list_nth(names->refnames, rti - 1);
	if (refname == NULL)
		refname = rte->eref->aliasname;
	appendStringInfoString(buf, " on");
	if (object)
		appendStringInfo(buf, " %s", quote_identifier(object));
	if (object == NULL || strcmp(refname, object) != 0)
		appendStringInfo(buf, " %s", quote_identifier(refname));
}

/* Step 2, of a node that is of some kind. */
char *
hgj_node_name(const HgjNodeNames *names, const Plan *plan)
{
	StringInfoData buf;
	HgjNodeKind kind = hgj_node_kind(plan);

	initStringInfo(&buf);
	if (plan->parallel_aware)
		appendStringInfoString(&buf, "Parallel ");
	if (plan->async_capable)
		appendStringInfoString(&buf, "Async ");
	appendStringInfoString(&buf, kind_name(plan));
	if (kind == HGJ_NODE_JOIN && !IsA(plan, CustomScan))
		add_join_type(&buf, plan);
	if (IsA(plan, IndexScan))
		add_index(&buf, ((const IndexScan *) plan)->indexorderdir,
				  ((const IndexScan *) plan)->indexid);
	else if (IsA(plan, IndexOnlyScan))
		add_index(&buf, ((const IndexOnlyScan *) plan)->indexorderdir,
				  ((const IndexOnlyScan *) plan)->indexid);
	if (kind == HGJ_NODE_SCAN)
		add_target(&buf, names, plan);
	return buf.data;
}
