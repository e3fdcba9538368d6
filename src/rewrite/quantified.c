/*-------------------------------------------------------------------------
 *
 * quantified.c
 *	  EXISTS, IN, NOT IN, ANY and ALL, where PostgreSQL makes no join of them, in terms of what
 *	  can be one.
 *
 *	  x IN (SELECT y FROM t ...)			EXISTS (SELECT FROM t WHERE y = x ...)
 *	  x NOT IN (SELECT y FROM t ...)		NOT EXISTS (...), and no NULL where it would count
 *	  x < ANY (SELECT y FROM t ...)			x < (SELECT max(y) FROM t ...)
 *	  x > ALL (SELECT y FROM t ...)			x > (SELECT max(y) FROM t ...), or there is no row
 *	  EXISTS (SELECT FROM t WHERE t.k = o.k AND y <> x)
 *											(SELECT min(y) <> x OR max(y) <> x FROM t WHERE t.k = o.k)
 *	  EXISTS (SELECT FROM t WHERE t.k = o.k OR t.l = o.l)
 *											EXISTS (... t.k = o.k) OR EXISTS (... t.l = o.l)
 *
 * 1. PostgreSQL itself makes joins of EXISTS, NOT EXISTS and of IN without a reference to the
 *	  row, where these are clauses of WHERE.  There, the former two are what the others become.
 *	  Elsewhere, as below OR, EXISTS becomes groups (subquery.c).
 * 2. IN is NULL, and not false, if no y equals x, and x is NULL and there is a row, or a y is
 *	  NULL.  Where NULL counts as false, or neither is ever NULL (nulls.c), it is EXISTS.
 *	  Otherwise a second subquery tells whether it is unknown; of a subquery that does not refer
 *	  to the row, this runs once, and only if a row asks for it.
 * 3. ANY of an order is true if it is of the greatest, or least, y; then unknown as in step 2;
 *	  ALL is true without a row, false if it is of that y; then unknown.
 *
 * The caller looks at what is returned here: subqueries in it must be joins (subquery.c), or
 * not refer to the row.
 *
 * Memory: the current context; what is given is not changed.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/stratnum.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "expr/demand.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "rewrite/hidden.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"

/* The name that EXPLAIN prints. */
#define MEMBERS_NAME	"members"

/*
 * LIMIT, if it is a constant, or NULL.  Constants are folded only if that raises no error, as the
 * branch that the query stands in may be dead.
 */
const Const *
hgj_limit_of(const Query *query)
{
	Node	   *limit = query->limitCount;

	if (limit == NULL || hgj_row_may_raise(limit))
		return NULL;
	limit = eval_const_expressions(NULL, limit);
	return IsA(limit, Const) ? (const Const *) limit : NULL;
}

/* LIMIT that lets one row pass: EXISTS does not ask for more. */
static bool
lets_one_pass(const Query *query)
{
	const Const *limit = hgj_limit_of(query);

	return query->limitCount == NULL ||
		(limit && (limit->constisnull || DatumGetInt64(limit->constvalue) > 0));
}

/* May EXISTS ask for less than the query says? */
static bool
asks_for_less(const Query *query)
{
	return query->commandType == CMD_SELECT && query->setOperations == NULL &&
		query->groupingSets == NIL && !query->hasWindowFuncs && !query->hasTargetSRFs &&
		query->cteList == NIL && query->limitOffset == NULL && query->rowMarks == NIL &&
		lets_one_pass(query) &&
		((!query->hasAggs && query->havingQual == NULL) || query->groupClause != NIL);
}

/*
 * What EXISTS asks for: a copy without what returns, sorts or repeats rows; GROUP BY stays if
 * HAVING removes groups.  NULL: it cannot be so.
 */
Query *
hgj_simple_exists(const Query *query)
{
	Query	   *simple;
	List	   *keys = NIL;
	ListCell   *lc;

	if (!asks_for_less(query))
		return NULL;
	simple = copyObject((Query *) query);
	simple->limitCount = NULL;
	simple->distinctClause = simple->sortClause = NIL;
	simple->hasDistinctOn = false;
	if (simple->havingQual == NULL)
	{
		simple->groupClause = NIL;
		simple->hasAggs = false;
	}
	foreach(lc, simple->groupClause)
		keys = lappend(keys, get_sortgroupclause_tle(lfirst(lc), simple->targetList));
	simple->targetList = keys;
	return simple;
}

/* Step 1: does PostgreSQL make a join of EXISTS (...) in WHERE? */
bool
hgj_is_pulled_up(const Query *subquery)
{
	Node	   *where = subquery->jointree->quals;

	/* GROUP BY goes where no HAVING removes groups */
	return asks_for_less(subquery) && !subquery->hasAggs &&
		(subquery->groupClause == NIL || subquery->havingQual == NULL) &&
		hgj_refers_to_level(where, 1) &&
		!hgj_refers_to_level((Node *) subquery->jointree->fromlist, 1) &&
		!hgj_tables_refer_to_level(subquery->rtable, 1) &&
		!contain_volatile_functions(where);
}

static Expr *
boolean(bool value)
{
	return (Expr *) makeBoolConst(value, false);
}

/* Neither true nor false. */
static Expr *
unknown(void)
{
	return (Expr *) makeBoolConst(false, true);
}

/* An operator that returns a boolean, as another one's clause has it. */
static Expr *
operation(Oid operator, Expr *left, Expr *right, Oid collation)
{
	OpExpr	   *result = (OpExpr *) make_opclause(operator, BOOLOID, false, left, right,
												  InvalidOid, collation);

	set_opfuncid(result);
	return (Expr *) result;
}

/* A copy of the query whose rows meet these conditions, too; it is EXISTS that asks for them. */
static SubLink *
exists_with(const Query *query, List *conditions)
{
	Query	   *copy = copyObject((Query *) query);

	hgj_add_clauses(copy, copyObject(conditions));
	copy->targetList = NIL;
	return hgj_make_sublink(EXISTS_SUBLINK, NULL, copy);
}

/* A copy of the query that returns one value, of aggregates. */
static SubLink *
value_of(const Query *query, Expr *value)
{
	Query	   *copy = copyObject((Query *) query);

	copy->targetList = list_make1(makeTargetEntry(value, 1, pstrdup("value"), false));
	copy->hasAggs = true;
	return hgj_make_sublink(EXPR_SUBLINK, NULL, copy);
}

/* SELECT columns FROM (subquery): its rows, whatever it does to get them. */
static Query *
wrap(Query *subquery)
{
	Query	   *result = hgj_select_from(hgj_subquery_entry(subquery, MEMBERS_NAME));
	ListCell   *lc;

	foreach(lc, subquery->targetList)
	{
		TargetEntry *tle = lfirst(lc);

		if (!tle->resjunk)
			result->targetList = lappend(result->targetList,
										 makeTargetEntry((Expr *) makeVarFromTargetEntry(1, tle),
														 tle->resno, tle->resname, false));
	}
	return result;
}

/*
 * A copy of the subquery as FROM, WHERE and a target list, whose values are members of a set.
 * NULL: it is not one, and depends on the row.
 */
static Query *
as_set(const SubLink *sublink)
{
	Query	   *query = copyObject(castNode(Query, sublink->subselect));
	Query		bare = *query;

	bare.distinctClause = query->hasDistinctOn ? query->distinctClause : NIL;
	if (hgj_is_plain(&bare) && !query->hasAggs)
	{
		query->distinctClause = query->sortClause = NIL;
		return query;
	}
	return hgj_refers_to_level((Node *) query, 1) || hgj_refers_above((Node *) query, 1) ?
		NULL : wrap(query);
}

/* In the test of ANY or ALL, the subquery's values stand for the parameters.  context: the set */
static Node *
put_members(Node *node, void *context)
{
	const Query *set = context;

	if (node == NULL)
		return NULL;
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_SUBLINK)
		return (Node *) copyObject(list_nth_node(TargetEntry, set->targetList,
												 ((Param *) node)->paramid - 1)->expr);
	return expression_tree_mutator(node, put_members, context);
}

/*
 * The comparisons of ANY or ALL, as clauses of the set: the row's operands one level above.
 * NIL: they are of another form.
 */
static List *
comparisons(const SubLink *sublink, const Query *set)
{
	Node	   *test = copyObject(sublink->testexpr);
	List	   *clauses = NIL;
	ListCell   *lc;

	if (checkExprHasSubLink(test) || contain_volatile_functions(test))
		return NIL;
	IncrementVarSublevelsUp(test, 1, 0);
	hgj_split_clauses(put_members(test, (void *) set), &clauses);
	foreach(lc, clauses)
	{
		if (!IsA(lfirst(lc), OpExpr) || list_length(((OpExpr *) lfirst(lc))->args) != 2)
			return NIL;
		set_opfuncid(lfirst(lc));
	}
	return clauses;
}

/* Step 2: is neither operand ever NULL?  query: where the subquery stands */
static bool
are_never_null(const Query *query, const Query *set, const List *clauses)
{
	ListCell   *lc;

	foreach(lc, clauses)
	{
		const OpExpr *clause = lfirst(lc);

		if (!hgj_is_never_null(set, lsecond(clause->args)) ||
			!hgj_is_never_null(query, (Node *) hgj_at_row(linitial(clause->args))))
			return false;
	}
	return true;
}

/* number < count(*): the group has more rows than that. */
static Expr *
more_rows_than(Expr *number)
{
	return operation(Int8LessOperator, number, (Expr *) hgj_make_count(NULL), InvalidOid);
}

/* Steps 2 and 3: of a group, what is_unknown() says of a set. */
static Expr *
group_is_unknown(Expr *x, Expr *y)
{
	return hgj_case(list_make1(hgj_when((Expr *) hgj_null_test(x, IS_NULL),
										more_rows_than(hgj_zero()))),
					more_rows_than((Expr *) hgj_make_count(y)));
}

/* Step 2: that nothing can be said about x where no y makes its comparison true. */
static Expr *
is_unknown(const Query *query, const Query *set, const OpExpr *clause)
{
	Expr	   *x = linitial(clause->args);
	Expr	   *y = lsecond(clause->args);
	Expr	   *of_null_y;

	if (hgj_refers_to_level((Node *) set, 1))
		return (Expr *) value_of(set, group_is_unknown(x, y));
	of_null_y = hgj_is_never_null(set, (Node *) y) ? boolean(false) :
		(Expr *) exists_with(set, list_make1(hgj_null_test(y, IS_NULL)));
	x = hgj_at_row(x);
	if (hgj_is_never_null(query, (Node *) x))
		return of_null_y;
	return hgj_case(list_make1(hgj_when((Expr *) hgj_null_test(x, IS_NULL),
										(Expr *) exists_with(set, NIL))), of_null_y);
}

/* Is it an equality that rows may be joined by, or one of a constant? */
static bool
is_equality(OpExpr *clause)
{
	HgjCorrelation correlation;

	return hgj_take_correlation((Node *) clause, &correlation) ||
		(!hgj_refers_to_level((Node *) clause, 1) && op_strict(clause->opno) &&
		 op_hashjoinable(clause->opno, exprType(linitial(clause->args))));
}

/* IN (step 2). */
static Expr *
membership(const Query *query, const Query *set, List *clauses, HgjNulls nulls)
{
	Expr	   *exists = (Expr *) exists_with(set, clauses);

	if (nulls == HGJ_NULL_IS_FALSE || are_never_null(query, set, clauses))
		return exists;
	/* a row with a NULL in it may still differ from another row */
	if (list_length(clauses) != 1)
		return NULL;
	return hgj_case(list_make2(hgj_when(exists, boolean(true)),
							   hgj_when(is_unknown(query, set, linitial(clauses)), unknown())),
					boolean(false));
}

/*
 * What an operator is in the order of values by which min() and max() are made: a btree strategy,
 * 0 for another one, or -1 where there is no such order, or it is of another collation.
 */
static int
place_in_order(const OpExpr *clause, Expr *values, Aggref **least, Aggref **greatest, Oid *family)
{
	Oid			sort_operator;
	Oid			type;
	HgjOrderMeaning meaning;

	*greatest = hgj_make_extreme(values, true, &sort_operator);
	*least = hgj_make_extreme(values, false, &sort_operator);
	if (*least == NULL || *greatest == NULL || (*least)->inputcollid != clause->inputcollid ||
		!get_ordering_op_properties(sort_operator, family, &type, &meaning))
		return -1;
	return get_op_opfamily_strategy(clause->opno, *family);
}

/*
 * The value of the set that x is compared with by ANY or ALL of an order: it is less than any if it
 * is less than the greatest.  NULL: it is no order.
 */
static Aggref *
deciding_value(const OpExpr *clause, bool all)
{
	Aggref	   *least;
	Aggref	   *greatest;
	Oid			family;

	switch (place_in_order(clause, lsecond(clause->args), &least, &greatest, &family))
	{
		case BTLessStrategyNumber:
		case BTLessEqualStrategyNumber:
			return all ? least : greatest;
		case BTGreaterStrategyNumber:
		case BTGreaterEqualStrategyNumber:
			return all ? greatest : least;
		default:
			return NULL;
	}
}

/* ANY and ALL of an order (step 3), with the deciding value, in a subquery or around it. */
static Expr *
order_case(bool all, Expr *decided, Expr *is_empty, Expr *undecided)
{
	CaseWhen   *not_known = hgj_when(undecided, unknown());

	if (all)
		return hgj_case(list_make3(hgj_when(is_empty, boolean(true)),
								   hgj_when(make_notclause(decided), boolean(false)), not_known),
						boolean(true));
	return hgj_case(list_make2(hgj_when(decided, boolean(true)), not_known), boolean(false));
}

/* Step 3. */
static Expr *
order(const Query *query, const Query *set, const OpExpr *clause, bool all)
{
	Expr	   *x = linitial(clause->args);
	Expr	   *y = lsecond(clause->args);
	Expr	   *deciding = (Expr *) deciding_value(clause, all);

	/* without a row, the comparison is not looked at */
	if (deciding == NULL || hgj_calls_may_raise((Node *) clause) ||
		hgj_operand_may_raise(query, (Node *) x, 1))
		return NULL;
	if (!hgj_refers_to_level((Node *) set, 1))
		return order_case(all,
						  operation(clause->opno, hgj_at_row(x), (Expr *) value_of(set, deciding),
									clause->inputcollid),
						  make_notclause((Expr *) exists_with(set, NIL)),
						  is_unknown(query, set, clause));
	return (Expr *) value_of(set, order_case(all,
											 operation(clause->opno, x, deciding,
													   clause->inputcollid),
											 make_notclause(more_rows_than(hgj_zero())),
											 group_is_unknown(x, y)));
}

/* EXISTS whose WHERE compares a value in another way: that one, beside equalities, or NULL. */
static OpExpr *
other_comparison(const Query *query)
{
	List	   *clauses = NIL;
	OpExpr	   *found = NULL;
	HgjCorrelation correlation;
	ListCell   *lc;

	hgj_split_clauses(query->jointree->quals, &clauses);
	foreach(lc, clauses)
	{
		if (!hgj_refers_to_level(lfirst(lc), 1) || hgj_take_correlation(lfirst(lc), &correlation))
			continue;
		if (found || !IsA(lfirst(lc), OpExpr) || list_length(((OpExpr *) lfirst(lc))->args) != 2)
			return NULL;
		found = lfirst(lc);
	}
	return found;
}

/* The comparison of a group's least or greatest value, or of both, that one of its rows makes true. */
static Expr *
comparison_of_group(const Query *level, const OpExpr *clause)
{
	Expr	   *inner;
	Expr	   *outer;
	OpExpr	   *turned = copyObject((OpExpr *) clause);
	Aggref	   *least;
	Aggref	   *greatest;
	Oid			family;

	set_opfuncid(turned);
	/* without a row, the comparison is not looked at */
	if (!hgj_split_operands(turned, &inner, &outer) || hgj_calls_may_raise((Node *) turned) ||
		hgj_operand_may_raise(level, (Node *) outer, 1))
		return NULL;
	if (inner == lsecond(turned->args))
	{
		if (!OidIsValid(get_commutator(turned->opno)))
			return NULL;
		CommuteOpExpr(turned);
	}
	switch (place_in_order(turned, inner, &least, &greatest, &family))
	{
		case BTLessStrategyNumber:
		case BTLessEqualStrategyNumber:
			return operation(turned->opno, (Expr *) least, outer, turned->inputcollid);
		case BTGreaterStrategyNumber:
		case BTGreaterEqualStrategyNumber:
			return operation(turned->opno, (Expr *) greatest, outer, turned->inputcollid);
		case 0:
			if (get_op_opfamily_strategy(get_negator(turned->opno), family) != BTEqualStrategyNumber)
				return NULL;
			return make_orclause(list_make2(operation(turned->opno, (Expr *) least, outer,
													  turned->inputcollid),
											operation(turned->opno, (Expr *) greatest, outer,
													  turned->inputcollid)));
		default:
			return NULL;
	}
}

/* EXISTS in terms of aggregates, or NULL. */
static Expr *
existence_of_group(const Query *level, const Query *query)
{
	Query	   *simple;
	OpExpr	   *other;
	Expr	   *value;
	List	   *clauses = NIL;

	if (query->havingQual && query->groupClause == NIL && query->groupingSets == NIL)
	{
		Query	   *bare = copyObject((Query *) query);

		/* one row, or none */
		bare->havingQual = NULL;
		bare->distinctClause = bare->sortClause = NIL;
		bare->hasDistinctOn = false;
		if (!lets_one_pass(query))
			return NULL;
		bare->limitCount = NULL;
		value = (Expr *) value_of(bare, (Expr *) copyObject(query->havingQual));
	}
	else
	{
		simple = hgj_simple_exists(query);
		other = simple && simple->groupClause == NIL ? other_comparison(simple) : NULL;
		value = other ? comparison_of_group(level, other) : NULL;
		if (value == NULL)
			return NULL;
		hgj_split_clauses(simple->jointree->quals, &clauses);
		simple->jointree->quals = hgj_join_clauses(list_delete_ptr(clauses, other));
		value = (Expr *) value_of(simple, value);
	}
	return hgj_coalesce(value, boolean(false));
}

/* Are there equalities with the row among the clauses? */
static bool
are_correlated(List *clauses)
{
	HgjCorrelation correlation;
	ListCell   *lc;

	foreach(lc, clauses)
		if (hgj_take_correlation(lfirst(lc), &correlation))
			return true;
	return false;
}

/* Is it an OR of which each part has such an equality of its own? */
static bool
is_correlated_or(const Node *clause)
{
	ListCell   *lc;

	if (!is_orclause(clause) || list_length(((const BoolExpr *) clause)->args) > HGJ_MOST_OR_PARTS)
		return false;
	foreach(lc, ((const BoolExpr *) clause)->args)
	{
		List	   *clauses = NIL;

		hgj_split_clauses(lfirst(lc), &clauses);
		if (!are_correlated(clauses))
			return false;
	}
	return true;
}

/* The OR by which EXISTS depends on the row, if by no equality beside it, or NULL; *clauses: all clauses */
static BoolExpr *
find_parts(const Query *query, List **clauses)
{
	ListCell   *lc;

	*clauses = NIL;
	hgj_split_clauses(query->jointree->quals, clauses);
	foreach(lc, *clauses)
		if (is_correlated_or(lfirst(lc)))
			return are_correlated(*clauses) ? NULL : lfirst(lc);
	return NULL;
}

/*
 * EXISTS that depends on the row by one equality or another: one EXISTS for each, of which one is
 * to be true.  NIL: it does not.
 */
static List *
existence_of_parts(const Query *query)
{
	List	   *clauses;
	const BoolExpr *found = find_parts(query, &clauses);
	Query	   *simple = found ? hgj_simple_exists(query) : NULL;
	List	   *result = NIL;
	ListCell   *lc;

	if (simple == NULL || simple->groupClause)
		return NIL;
	simple->jointree->quals = hgj_join_clauses(list_delete_ptr(clauses, (void *) found));
	foreach(lc, found->args)
		result = lappend(result, exists_with(simple, list_make1(lfirst(lc))));
	return result;
}

/* Does PostgreSQL make a join of it in WHERE that is no nested loop? */
bool
hgj_is_pulled_up_well(const Query *subquery)
{
	List	   *clauses;

	return hgj_is_pulled_up(subquery) && find_parts(subquery, &clauses) == NULL;
}

/*
 * x <> ALL (...) is NOT x = ANY (...): the comparison, negated.  NULL: there is no negation, or
 * these are several values; that a row differs is not that each of its values does.
 */
static OpExpr *
negation(const List *clauses)
{
	OpExpr	   *clause = copyObject(linitial_node(OpExpr, clauses));

	clause->opno = get_negator(clause->opno);
	if (list_length(clauses) != 1 || !OidIsValid(clause->opno))
		return NULL;
	clause->opfuncid = InvalidOid;
	set_opfuncid(clause);
	return clause;
}

/*
 * A subquery of a level of the query as an expression with subqueries that may be joins; NULL:
 * there is none, or it is such a subquery itself.  nulls: how NULL counts in its place
 */
Node *
hgj_as_existence(const Query *query, SubLink *sublink, HgjNulls nulls)
{
	Query	   *set;
	List	   *clauses;
	bool		all = sublink->subLinkType == ALL_SUBLINK;
	OpExpr	   *equality;

	if (sublink->subLinkType == EXISTS_SUBLINK)
	{
		List	   *parts = existence_of_parts(castNode(Query, sublink->subselect));

		return parts ? (Node *) make_orclause(parts) :
			(Node *) existence_of_group(query, castNode(Query, sublink->subselect));
	}
	if (sublink->subLinkType != ANY_SUBLINK && !all)
		return NULL;
	set = as_set(sublink);
	clauses = set ? comparisons(sublink, set) : NIL;
	if (clauses == NIL)
		return NULL;
	equality = all ? negation(clauses) : linitial(clauses);
	if (equality == NULL || !is_equality(equality))
		return list_length(clauses) == 1 ?
			(Node *) order(query, set, linitial(clauses), all) : NULL;
	return all ?
		(Node *) make_notclause(membership(query, set, list_make1(equality), HGJ_NULL_IS_NULL)) :
		(Node *) membership(query, set, clauses, nulls);
}

/* Is it a clause of WHERE that is IN, or NOT IN? */
static SubLink *
as_membership(Node *clause, bool *negated)
{
	SubLink    *sublink = (SubLink *) clause;

	*negated = is_notclause(clause);
	if (*negated)
		sublink = (SubLink *) get_notclausearg(clause);
	if (!IsA(sublink, SubLink))
		return NULL;
	if (sublink->subLinkType == ALL_SUBLINK && !*negated)
		*negated = true;
	else if (sublink->subLinkType != ANY_SUBLINK)
		return NULL;
	return sublink;
}

/* NOT EXISTS of one equality or another: for none of these. */
static List *
absence_of_parts(Node *clause)
{
	const SubLink *sublink = is_notclause(clause) ? (const SubLink *) get_notclausearg(clause) : NULL;
	List	   *parts;
	ListCell   *lc;

	if (sublink == NULL || !IsA(sublink, SubLink) || sublink->subLinkType != EXISTS_SUBLINK)
		return NIL;
	parts = existence_of_parts(castNode(Query, sublink->subselect));
	foreach(lc, parts)
		lfirst(lc) = make_notclause(lfirst(lc));
	return parts;
}

/*
 * IN and NOT IN, where they are clauses of WHERE, as clauses that PostgreSQL makes joins of; NIL:
 * the clause is none of these, or is one already.
 */
List *
hgj_as_join_clauses(const Query *query, Node *clause)
{
	bool		negated;
	const SubLink *sublink = as_membership(clause, &negated);
	Query	   *set;
	List	   *clauses;
	Expr	   *exists;

	if (sublink == NULL)
		return absence_of_parts(clause);
	if (!negated && !hgj_refers_to_level(sublink->subselect, 1))
		return NIL;
	set = as_set(sublink);
	clauses = set ? comparisons(sublink, set) : NIL;
	if (clauses != NIL && sublink->subLinkType == ALL_SUBLINK)
	{
		OpExpr	   *equality = negation(clauses);

		clauses = equality ? list_make1(equality) : NIL;
	}
	if (clauses == NIL || !is_equality(linitial(clauses)))
		return NIL;
	exists = (Expr *) exists_with(set, clauses);
	if (!negated)
		return list_make1(exists);
	exists = make_notclause(exists);
	if (are_never_null(query, set, clauses))
		return list_make1(exists);
	return list_length(clauses) != 1 ? NIL :
		list_make2(exists, make_notclause(is_unknown(query, set, linitial(clauses))));
}
