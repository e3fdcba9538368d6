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
 * mention of a column in the node gets
 *
 * 1. the numbers with which the column leaves the join, which others know already;
 * 2. or those that it has in a placeholder that leaves the join and that no child
 *	  returns: it is computed above the join, from columns as they are there;
 * 3. or those in the clauses that apply after an outer join.
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

typedef struct Forms
{
	List	   *known;			/* the first mention of a column counts */
	List	   *supplied;		/* columns that the children return */
} Forms;

/* A copy of the expression in which the known columns are in their known form. */
static Node *
use_known(Node *node, void *context)
{
	const Forms *forms = context;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var))
	{
		Var		   *other = known_var(forms->known, (Var *) node);
		Var		   *copy = copyObject((Var *) node);

		if (other)
			copy->varnullingrels = bms_copy(other->varnullingrels);
		return (Node *) copy;
	}
	if (IsA(node, PlaceHolderVar))
	{
		PlaceHolderVar *other = known_placeholder(forms->known,
												  (PlaceHolderVar *) node);
		PlaceHolderVar *copy = copyObject((PlaceHolderVar *) node);

		if (other)
			copy->phnullingrels = bms_copy(other->phnullingrels);
		/* what is in it is not looked up where the whole is found */
		if (known_placeholder(forms->supplied, copy) == NULL)
			copy->phexpr = (Expr *) use_known((Node *) copy->phexpr, context);
		return (Node *) copy;
	}
	return expression_tree_mutator(node, use_known, context);
}

static List *
columns_of(Node *expr)
{
	return pull_var_clause(expr, PVC_RECURSE_AGGREGATES | PVC_RECURSE_WINDOWFUNCS |
						   PVC_INCLUDE_PLACEHOLDERS);
}

/*
 * Add the columns of `from`, and those in its placeholders that are computed in
 * this node, behind the ones that they are to follow.
 */
static void
learn(Forms *forms, Node *from)
{
	List	   *columns = columns_of(from);
	ListCell   *lc;

	forms->known = list_concat(forms->known, columns);
	foreach(lc, columns)
	{
		PlaceHolderVar *phv = lfirst(lc);

		if (IsA(phv, PlaceHolderVar) &&
			known_placeholder(forms->supplied, phv) == NULL)
			learn(forms, (Node *) phv->phexpr);
	}
}

/*
 * Give every column in the node's own expressions one form.  returned: what the
 * join returns.
 */
void
hgj_unify_nulling(CustomScan *cscan, List *returned, List *after_join)
{
	Forms		forms = {NIL, columns_of((Node *) cscan->custom_scan_tlist)};

	learn(&forms, (Node *) returned);
	learn(&forms, (Node *) after_join);
	forms.known = list_concat(forms.known, forms.supplied);
	cscan->custom_scan_tlist =
		(List *) use_known((Node *) cscan->custom_scan_tlist, &forms);
	cscan->custom_exprs = (List *) use_known((Node *) cscan->custom_exprs, &forms);
}

#else							/* no such numbers */

void
hgj_unify_nulling(CustomScan *cscan, List *returned, List *after_join)
{
}

#endif
