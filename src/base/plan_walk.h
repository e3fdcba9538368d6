/*-------------------------------------------------------------------------
 *
 * plan_walk.h
 *	  The nodes right below one of a plan (plan_walk.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_PLAN_WALK_H
#define HGJ_PLAN_WALK_H

#include "compat.h"

#include "nodes/plannodes.h"

typedef void (*HgjPlanVisit) (Plan *plan, void *context);

extern void hgj_visit_plans(List *plans, HgjPlanVisit visit, void *context);
extern void hgj_visit_children(Plan *plan, HgjPlanVisit visit, void *context);

#endif							/* HGJ_PLAN_WALK_H */
