/*-------------------------------------------------------------------------
 *
 * nulling.c
 *	  One form for each column of a join's children, whatever outer joins are
 *	  said to have nulled it.
 *
 * From PostgreSQL 16 on, a Var (and a PlaceHolderVar) carries the numbers of the
 * outer joins below it that may have made it NULL.  A join changes them: its
 * clauses have the columns as its children return them, what it returns has its
 * own number as well.  In a CustomScan both are looked up in custom_scan_tlist,
 * where setrefs.c takes a column's first entry, and fails if the numbers are
 * others.  As all of them mean the same place in the scan tuple here, every
 * mention of a column in the node gets the numbers with which the column leaves
 * the join, which others know already; and those that do not leave it, the ones
 * that they have in the clauses that apply after an outer join.
 *
 * Memory: the planner's context.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "planner/planner.h"

#ifdef HGJ_VARS_HAVE_NULLING_RELS

static Var *
known_var(List *known, const Var *var)
{
	ListCell   *lc;

	foreach(lc, known)
	{
		Var		   *other = lfirst(lc);

		if (IsA(other, Var) && other->varno == var->varno &&
			other->varattno == var->varattno &&
			other->varlevelsup == var->varlevelsup)
			return other;
	}
	return NULL;
}

static PlaceHolderVar *
known_placeholder(List *known, const PlaceHolderVar *phv)
{
	ListCell   *lc;

	foreach(lc, known)
	{
		PlaceHolderVar *other = lfirst(lc);

		if (IsA(other, PlaceHolderVar) && other->phid == phv->phid &&
			other->phlevelsup == phv->phlevelsup)
			return other;
	}
	return NULL;
}

/* A copy of the expression in which the known columns are in their known form. */
static Node *
use_known(Node *node, void *context)
{
	List	   *known = context;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var))
	{
		Var		   *other = known_var(known, (Var *) node);
		Var		   *copy = copyObject((Var *) node);

		if (other)
			copy->varnullingrels = bms_copy(other->varnullingrels);
		return (Node *) copy;
	}
	if (IsA(node, PlaceHolderVar))
	{
		PlaceHolderVar *other = known_placeholder(known, (PlaceHolderVar *) node);
		PlaceHolderVar *copy = copyObject((PlaceHolderVar *) node);

		/* what is in it is not looked up where the whole is found */
		if (other)
			copy->phnullingrels = bms_copy(other->phnullingrels);
		else
			copy->phexpr = (Expr *) use_known((Node *) copy->phexpr, context);
		return (Node *) copy;
	}
	return expression_tree_mutator(node, use_known, context);
}

/* Add the columns of `from` to the list, behind those that they are to follow. */
static List *
learn(List *known, Node *from)
{
	return list_concat(known, pull_var_clause(from, PVC_RECURSE_AGGREGATES |
											  PVC_RECURSE_WINDOWFUNCS |
											  PVC_INCLUDE_PLACEHOLDERS));
}

/*
 * Give every column in the node's own expressions one form.  returned: what the
 * join returns.
 */
void
hgj_unify_nulling(CustomScan *cscan, List *returned, List *after_join)
{
	List	   *known = learn(NIL, (Node *) returned);

	known = learn(known, (Node *) after_join);
	known = learn(known, (Node *) cscan->custom_scan_tlist);
	cscan->custom_scan_tlist =
		(List *) use_known((Node *) cscan->custom_scan_tlist, known);
	cscan->custom_exprs = (List *) use_known((Node *) cscan->custom_exprs, known);
}

#else							/* no such numbers */

void
hgj_unify_nulling(CustomScan *cscan, List *returned, List *after_join)
{
}

#endif
