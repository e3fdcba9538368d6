/*-------------------------------------------------------------------------
 *
 * plan_format.h
 *	  The shape of a HashGraphJoin's CustomScan: what the planner writes and
 *	  the executor reads.
 *
 * custom_plans		 outer (probe side), inner (build side)
 * custom_scan_tlist the outer plan's output columns, then the inner plan's,
 *					 one for one; expressions name them as INDEX_VAR
 * targetlist		 what is returned
 * custom_exprs		 three lists: the hash clauses, outer operand on the left;
 *					 the residual join clauses; and the clauses that apply
 *					 after an outer join (not in qual, because EXPLAIN would
 *					 print that without table names)
 * custom_private	 an IntList of HgjPlanFact values
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_PLAN_FORMAT_H
#define HGJ_PLAN_FORMAT_H

#include "compat.h"

#include "nodes/extensible.h"
#include "nodes/plannodes.h"

/* CustomName of the path, the plan and the node; EXPLAIN prints it. */
#define HGJ_NODE_NAME		"HashGraphJoin"

/* custom_exprs, by position */
#define HGJ_EXPRS_HASH		0
#define HGJ_EXPRS_JOIN		1
#define HGJ_EXPRS_FILTER	2

/* custom_private, by position */
typedef enum HgjPlanFact
{
	HGJ_FACT_JOIN_TYPE,			/* a JoinType */
	HGJ_FACT_INNER_UNIQUE,		/* 0 or 1 */
	HGJ_FACT_OUTER_COLUMNS,		/* entries of custom_scan_tlist from outer */
	HGJ_FACT_DEVICE,			/* HgjPlanDevice */
	HGJ_FACT_SHARED,			/* 0 or 1: processes build one table together */
	HGJ_FACT_REPLACED,			/* HGJ_REPLACED_ bits */
	HGJ_FACT_HIDDEN,			/* from here on: HgjHiddenFact */
	HGJ_FACTS
} HgjPlanFact;

/* Sides whose sequential scan another extension has replaced. */
#define HGJ_REPLACED_OUTER	0x01
#define HGJ_REPLACED_INNER	0x02

/* Is a join cheaper on a GPU?  For engine = auto. */
typedef enum HgjPlanDevice
{
	HGJ_PLAN_CPU,
	HGJ_PLAN_DEVICE,			/* it is, by itself */
	HGJ_PLAN_PIPELINE			/* in a pipeline with those below and above */
} HgjPlanDevice;

extern const CustomScanMethods hgj_scan_methods;	/* node.c */

extern bool hgj_is_join_plan(const Plan *plan); /* own_nodes.c */

#endif							/* HGJ_PLAN_FORMAT_H */
