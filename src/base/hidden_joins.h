/*-------------------------------------------------------------------------
 *
 * hidden_joins.h
 *	  What a plan says of the subqueries that have become joins (hidden_joins.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_HIDDEN_JOINS_H
#define HGJ_HIDDEN_JOINS_H

#include "compat.h"

#include "nodes/plannodes.h"

struct ExplainState;

/* Integers in a node's facts, all 0 but in the topmost one. */
typedef enum HgjHiddenFact
{
	HGJ_HIDDEN_JOINS,			/* number of joins that were subqueries */
	HGJ_HIDDEN_RESTRICTIONS,	/* number of conditions by which their groups are restricted */
	HGJ_HIDDEN_REPEATS,			/* number of WITH queries that are computed where they are read */
	HGJ_HIDDEN_EARLY_GROUPS,	/* number of levels whose groups are made before a join */
	HGJ_HIDDEN_COST_HIGH,		/* halves of the bits of the cost as written, or of -1 */
	HGJ_HIDDEN_COST_LOW,
	HGJ_HIDDEN_FACTS
} HgjHiddenFact;

extern List *hgj_no_hidden_joins(void);
extern void hgj_write_hidden_joins(PlannedStmt *stmt, const int *counts, Cost as_written);
extern void hgj_show_hidden_joins(const CustomScan *cscan, struct ExplainState *es);

#endif							/* HGJ_HIDDEN_JOINS_H */
