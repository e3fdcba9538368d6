/*-------------------------------------------------------------------------
 *
 * why_not.c
 *	  Why a join or an aggregation of a plan is PostgreSQL's own.
 *
 * 1. A setting that keeps us out answers for all of them.
 * 2. Of a join, what was noted of its two sides says it (declines.c): a decline, or
 *	  that ours was offered and lost by its costs.
 * 3. Of an aggregation the same, if it is one: PostgreSQL also removes duplicates
 *	  by such nodes.  For the parts of one that is done in parts, what was declined
 *	  of partial aggregation counts.
 * 4. Of one that is ours, in one process, it is noted where workers were weighed and
 *	  found too dear (worker_cost.c).
 *
 * No memory but what is looked at, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/guc.h"
#include "optimizer/cost.h"
#include "planner/declines.h"
#include "planner/planner.h"

/* Step 2. */
static const char *
why_not_join(const HgjDeclines *declines, const HgjChosen *chosen)
{
	const JoinPath *path = (const JoinPath *) chosen->path;
	const HgjNoted *noted = hgj_noted_join(declines, chosen->root,
										   path->outerjoinpath->parent->relids,
										   path->innerjoinpath->parent->relids);

	if (noted && noted->decline != HGJ_DECLINE_NOTHING)
		return hgj_decline_text((HgjDecline) noted->decline);
	if (noted)
		return hgj_not_ours_text(HGJ_NOT_OURS_COST);
	/* PostgreSQL 15 and 16 do not ask about these */
	if (hgj_has_one_time_filter(chosen->root, path->joinrestrictinfo))
		return hgj_decline_text(HGJ_DECLINE_ONE_TIME);
	return hgj_not_ours_text(HGJ_NOT_OURS_UNKNOWN);
}

static bool
is_of_upper_rel(const HgjChosen *chosen, UpperRelationKind kind)
{
	return list_member_ptr(chosen->root->upper_rels[kind], chosen->path->parent);
}

/* Is it that of a table, which hashgraph_join.aggregate_scans is about? */
static bool
aggregates_scan(const HgjChosen *chosen)
{
	const Plan *plan = chosen->plan->lefttree;

	while (plan && (IsA(plan, Gather) || IsA(plan, GatherMerge) || IsA(plan, Sort) ||
					IsA(plan, Agg)))
		plan = plan->lefttree;
	return plan && IsA(plan, SeqScan);
}

/* Step 3. */
static const char *
why_not_aggregation(const HgjDeclines *declines, const HgjChosen *chosen)
{
	const HgjNoted *noted;
	int			decline;

	if (!is_of_upper_rel(chosen, UPPERREL_GROUP_AGG) &&
		!is_of_upper_rel(chosen, UPPERREL_PARTIAL_GROUP_AGG))
		return hgj_not_ours_text(HGJ_NOT_OURS_DUPLICATES);
	if (!hgj_aggregate)
		return hgj_not_ours_text(HGJ_NOT_OURS_AGGREGATE);
	noted = hgj_noted_aggregation(declines, chosen->root,
								  chosen->path->parent->relids);
	if (noted == NULL && !hgj_aggregate_scans && aggregates_scan(chosen))
		return hgj_not_ours_text(HGJ_NOT_OURS_AGGREGATE_SCANS);
	if (noted == NULL)
		return hgj_not_ours_text(HGJ_NOT_OURS_INPUT);
	decline = noted->decline;
	if (decline == HGJ_AGG_DECLINE_NOTHING && IsA(chosen->plan, Agg) &&
		((const Agg *) chosen->plan)->aggsplit != AGGSPLIT_SIMPLE)
		decline = noted->partial_decline;
	if (decline != HGJ_AGG_DECLINE_NOTHING)
		return hgj_agg_decline_text((HgjAggDecline) decline);
	return hgj_not_ours_text(HGJ_NOT_OURS_COST);
}

/* Why a join or an aggregation of ours has no workers, in words; NULL: nothing is known. */
const char *
hgj_why_no_workers(const HgjDeclines *declines, const Plan *plan)
{
	ListCell   *lc;

	foreach(lc, declines->chosen)
	{
		const HgjChosen *chosen = lfirst(lc);

		if (chosen->plan == plan && chosen->path->parallel_workers == 0 &&
			hgj_noted_dear_workers(declines, chosen->root, chosen->path->parent->relids))
			return hgj_not_ours_text(HGJ_NOT_OURS_WORKERS);
	}
	return NULL;
}

/* The reason in words, of a join or an aggregation of the plan that is not ours. */
const char *
hgj_why_not(const HgjDeclines *declines, const Plan *plan)
{
	bool		is_join = IsA(plan, NestLoop) || IsA(plan, MergeJoin) || IsA(plan, HashJoin);
	ListCell   *lc;

	if (!hgj_enabled)
		return hgj_not_ours_text(HGJ_NOT_OURS_ENABLED);
	if (is_join && !enable_hashjoin)
		return hgj_not_ours_text(HGJ_NOT_OURS_HASHJOIN);
	foreach(lc, declines->chosen)
	{
		const HgjChosen *chosen = lfirst(lc);

		if (chosen->plan == plan)
			return is_join ? why_not_join(declines, chosen) :
				why_not_aggregation(declines, chosen);
	}
	return hgj_not_ours_text(HGJ_NOT_OURS_UNKNOWN);
}
