/*-------------------------------------------------------------------------
 *
 * why.h
 *	  Which nodes of a plan are ours, and why the others are not (why.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_WHY_H
#define HGJ_WHY_H

#include "compat.h"

#include "nodes/execnodes.h"
#include "planner/declines.h"

/* What there is to say of a join, an aggregation or a scan. */
typedef struct HgjWhy
{
	PlanState  *ps;
	int			level;			/* how many of them it is below */
	bool		taken;
	const char *engine;			/* of a node of ours, or NULL */
	const char *source;			/* how a node of ours reads it, or NULL */
	const char *reason;			/* or NULL */
} HgjWhy;

typedef void (*HgjWhyTaker) (void *arg, const HgjWhy *why);

/*
 * Hand all nodes of a plan that has been started to the taker, in EXPLAIN's order.
 * declines: what was noted while it was planned; NULL: nothing was.
 */
extern void hgj_why_plan(PlanState *top, const PlannedStmt *stmt,
						 const HgjDeclines *declines, HgjWhyTaker take,
						 void *arg);

/* explain_option.c */
extern void hgj_install_explain_option(void);

#endif							/* HGJ_WHY_H */
