/*-------------------------------------------------------------------------
 *
 * hidden.h
 *	  What the files of this room know of a subquery that may be a join.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_HIDDEN_H
#define HGJ_HIDDEN_H

#include "compat.h"

#include "base/reasons.h"
#include "nodes/parsenodes.h"
#include "nodes/primnodes.h"

/* A copy of a query that is being rewritten. */
typedef struct HgjRewriting
{
	bool		calls_volatile; /* conditions somewhere in it call volatile functions */
	int			njoins;			/* number of subqueries that have become joins */
	List	   *groups;			/* Queries that have been made of them */
	List	   *reasons;		/* IntList of HgjHidden, one for each correlated subquery with
								 * one column */
} HgjRewriting;

/* An equality by which a subquery depends on the query that it stands in. */
typedef struct HgjCorrelation
{
	OpExpr	   *clause;			/* equality, as it is written */
	Expr	   *inner;			/* operand of the subquery */
	Expr	   *outer;			/* operand of the query around it, one level above */
	Oid			group_operator; /* equality that groups the inner operand's values */
	Oid			sort_operator;	/* order of these values, or InvalidOid */
	bool		hashable;		/* the equality has a hash function */
} HgjCorrelation;

/* What a subquery with one value is made of (scalar.c). */
typedef struct HgjScalar
{
	List	   *correlations;	/* HgjCorrelations */
	List	   *rest;			/* clauses that are none of these */
	bool		pinned;			/* the value is to be looked at for rows around it alone */
} HgjScalar;

/* levels.c */
extern bool hgj_may_hide_joins(const Query *query);
extern void hgj_rewrite_query(HgjRewriting *rewriting, Query *query);

/* scalar.c */
extern HgjHidden hgj_look_at_scalar(const HgjRewriting *rewriting, const Query *subquery,
									HgjScalar *scalar);

/* proofs.c */
extern bool hgj_refers_above(Node *node, int level);
extern bool hgj_refers_to_level(Node *node, int level);
extern bool hgj_tables_refer_to_level(List *rtable, int level);
extern bool hgj_is_plain(const Query *query);
extern bool hgj_is_permitted(const Query *query);
extern bool hgj_row_may_raise(Node *expression);
extern bool hgj_is_small_numeric(Node *expression);
extern bool hgj_reads_proven(const HgjRewriting *rewriting, const Query *query);

/* grouped.c */
extern Expr *hgj_join_groups(HgjRewriting *rewriting, Query *query, Query *subquery,
							 const HgjScalar *scalar);
extern Node *hgj_stand_in(Node *clause, SubLink *sublink);

#endif							/* HGJ_HIDDEN_H */
