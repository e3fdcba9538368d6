/*-------------------------------------------------------------------------
 *
 * declines.h
 *	  What was declined while one query was planned, and which of it bears on
 *	  the plan that was chosen: for hashgraph_join_why().
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_DECLINES_H
#define HGJ_DECLINES_H

#include "compat.h"

#include "base/reasons.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

/* A join, or an aggregation, that the planner has asked us about. */
typedef struct HgjNoted
{
	PlannerInfo *root;
	Relids		outer;			/* of an aggregation: the grouped relation's */
	Relids		inner;
	int			decline;		/* HgjDecline or HgjAggDecline */
	int			partial_decline;	/* of an aggregation, in parts */
} HgjNoted;

/* A join or aggregation of the plan, and the path that it was made of. */
typedef struct HgjChosen
{
	const Plan *plan;
	const Path *path;
	PlannerInfo *root;
} HgjChosen;

typedef struct HgjDeclines
{
	MemoryContext context;		/* of what is noted */
	bool		begun;			/* the query's own call of the planner runs */
	PlannerInfo *top;			/* of the query itself, or NULL */
	List	   *joins;			/* of HgjNoted */
	List	   *aggregations;	/* the same */
	List	   *dear_workers;	/* the same, of relations that have none for what they
								 * take to begin and to end */
	List	   *chosen;			/* of HgjChosen */
	List	   *hidden;			/* IntList of HgjHidden: what has become of subqueries */
} HgjDeclines;

/* declines.c */
extern void hgj_install_declines_hook(void);
extern PlannedStmt *hgj_plan_noting(Query *query, const char *text,
									HgjDeclines *declines);
extern void hgj_note_while(HgjDeclines *declines, void (*run) (void *arg),
						   void *arg);
extern bool hgj_is_noting(void);
extern void hgj_note_query(PlannerInfo *root);
extern PlannerInfo *hgj_noted_query(void);
extern void hgj_note_hidden(HgjHidden hidden);
extern void hgj_note_join(PlannerInfo *root, Relids outer, Relids inner,
						  HgjDecline decline);
extern void hgj_note_aggregation(PlannerInfo *root, Relids grouped,
								 HgjAggDecline decline,
								 HgjAggDecline partial_decline);
extern void hgj_note_dear_workers(PlannerInfo *root, Relids relids);
extern bool hgj_noted_dear_workers(const HgjDeclines *declines,
								   PlannerInfo *root, Relids relids);
extern const HgjNoted *hgj_noted_join(const HgjDeclines *declines,
									  PlannerInfo *root, Relids outer,
									  Relids inner);
extern const HgjNoted *hgj_noted_aggregation(const HgjDeclines *declines,
											 PlannerInfo *root, Relids grouped);

/* chosen_paths.c */
extern void hgj_match_paths(HgjDeclines *declines, const PlannedStmt *stmt);

/* why_not.c */
extern const char *hgj_why_not(const HgjDeclines *declines, const Plan *plan);
extern const char *hgj_why_no_workers(const HgjDeclines *declines, const Plan *plan);

#endif							/* HGJ_DECLINES_H */
