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

/* The name of groups, or rows, that are joined in a subquery's place; EXPLAIN prints it. */
#define HGJ_GROUPS_NAME		"correlated"

/* The name of their first column, which is a key. */
#define HGJ_GROUPS_COLUMN	"column1"

/* The number of parts of an OR of which each is joined by itself. */
#define HGJ_MOST_OR_PARTS		4

/* What one form of a query may have, and another one not (choose.c). */
typedef struct HgjAttempts
{
	bool		repeats;		/* WITH queries are computed where they are read (repeated.c) */
	bool		restricts;		/* groups are restricted to what is around them (restrict.c) */
	bool		groups_early;	/* groups are made before joins (eager.c) */
} HgjAttempts;

/* A copy of a query that is being rewritten. */
typedef struct HgjRewriting
{
	bool		calls_volatile; /* conditions somewhere in it call volatile functions */
	bool		order_matters;	/* clauses may raise errors where others come later (levels.c, step 7) */
	HgjAttempts attempts;		/* what is to be looked for beside subqueries */
	bool		is_eager;		/* the query is one that eager.c has made */
	int			njoins;			/* number of subqueries that have become joins */
	int			nrestrictions;	/* number of conditions by which groups are restricted */
	int			nrepeated;		/* number of WITH queries that are computed where they are read */
	int			ncopies;		/* number of places that have a copy of one */
	int			ngrouped;		/* number of levels whose groups are made before a join */
	const Query *around;		/* the query that the level at hand stands in, or NULL */
	List	   *groups;			/* Queries that have been made of them */
	List	   *split;			/* Queries around groups that they have aggregated themselves (split.c) */
	List	   *reasons;		/* IntList of HgjHidden, one for each subquery that was looked at */
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

/* What is joined in a subquery's place. */
typedef enum HgjSubqueryKind
{
	HGJ_GIVES_AGGREGATES,		/* groups with aggregates: (SELECT max(x) FROM t WHERE t.k = o.k) */
	HGJ_GIVES_EXISTENCE,		/* groups: EXISTS (SELECT FROM t WHERE t.k = o.k) */
	HGJ_GIVES_ROW,				/* rows: (SELECT x FROM t WHERE t.id = o.id), where id is unique */
	HGJ_GIVES_FIRST				/* first rows of groups: (SELECT x ... ORDER BY y, id LIMIT 1) */
} HgjSubqueryKind;

/* A subquery that may become a join (subquery.c). */
typedef struct HgjSubquery
{
	HgjSubqueryKind kind;		/* what is joined */
	Query	   *query;			/* subquery, or a copy that is simpler */
	List	   *correlations;	/* HgjCorrelations */
	List	   *rest;			/* clauses of its WHERE that are none of these */
	Aggref	   *guard;			/* aggregate that is false for a group that is not computed, or NULL */
	SubLink    *written;		/* subquery as it is written, which runs for such a group */
	bool		optional;		/* without a row its value is NULL, whatever it is made of */
	bool		pinned;			/* the value is to be looked at for rows around it alone */
} HgjSubquery;

/* How NULL counts where a condition stands. */
typedef enum HgjNulls
{
	HGJ_NULL_IS_FALSE,			/* as false: WHERE, FILTER, CASE WHEN */
	HGJ_NULL_IS_NULL
} HgjNulls;

/* What stands for a condition when it is looked at, or NULL. */
typedef Node *(*HgjConditionView) (Node *condition, void *context);

/* levels.c */
extern bool hgj_may_hide_joins(const Query *query);
extern bool hgj_note_found(HgjRewriting *rewriting, HgjHidden reason);
extern void hgj_rewrite_query(HgjRewriting *rewriting, Query *query);

/* repeated.c */
extern bool hgj_has_repeatable(const Query *query);
extern void hgj_repeat_queries(HgjRewriting *rewriting, Query *query);

/* disjunctions.c */
extern bool hgj_is_either(Node *clause);
extern int	hgj_join_by_either(Query *query);

/* split.c */
extern bool hgj_split_level(Query *query);

/* expressions.c */
extern NullTest *hgj_null_test(const Expr *operand, NullTestType type);
extern Expr *hgj_test_truth(Expr *condition, BoolTestType type);
extern Expr *hgj_null_like(Node *expression);
extern CaseWhen *hgj_when(Expr *condition, Expr *result);
extern Expr *hgj_case(List *whens, Expr *otherwise);
extern Expr *hgj_coalesce(Expr *value, Expr *otherwise);
extern Expr *hgj_zero(void);
extern SubLink *hgj_make_sublink(SubLinkType type, Expr *test, Query *query);
extern RangeTblRef *hgj_refer_to(int relation);
extern void hgj_name_columns(RangeTblEntry *rte, const List *targetlist);
extern RangeTblEntry *hgj_subquery_entry(Query *subquery, const char *name);
extern void hgj_forget_result(Query *query);
extern void hgj_forget_grouping(Query *query);
extern Query *hgj_select_from(RangeTblEntry *rte);
extern void hgj_split_clauses(Node *condition, List **clauses);
extern Node *hgj_join_clauses(List *clauses);
extern Cost hgj_cost_of_row(Node *expression);

/* correlation.c */
extern void hgj_add_clauses(Query *query, List *clauses);
extern bool hgj_collect_conditions(Node *node, List **clauses, Bitmapset **relations);
extern Expr *hgj_at_row(const Expr *operand);
extern bool hgj_split_operands(const OpExpr *clause, Expr **inner, Expr **outer);
extern SortGroupClause *hgj_key_of(const HgjCorrelation *correlation, Index reference);
extern bool hgj_take_correlation(Node *node, HgjCorrelation *correlation);

/* subquery.c */
extern bool hgj_sees_two_versions(void);
extern HgjHidden hgj_look_at_reading(const HgjRewriting *rewriting, const Query *query,
									 List *clauses);
extern HgjHidden hgj_look_at_subquery(const HgjRewriting *rewriting, const Query *level,
									  const SubLink *sublink, HgjSubquery *subquery);

/* aggregates.c */
extern HgjHidden hgj_look_at_aggregates(Node *value);
extern bool hgj_group_may_raise(Node *expression);
extern bool hgj_groups_may_raise(Node *expression);
extern HgjHidden hgj_look_at_group(Node *expression);
extern HgjHidden hgj_look_at_groups(const Query *query);
extern Oid	hgj_sort_operator_of(Oid aggregate);
extern Aggref *hgj_make_extreme(Expr *argument, bool greatest, Oid *sort_operator);
extern Aggref *hgj_make_first(Expr *argument, const SortGroupClause *order);
extern Aggref *hgj_make_count(Expr *argument);
extern Aggref *hgj_make_all(Expr *condition);

/* guarded.c */
extern Node *hgj_guarded_value(const Node *node);
extern Aggref *hgj_guard_subquery(Query *query);

/* order.c */
extern bool hgj_is_join_already(Node *clause);
extern bool hgj_come_late(const List *subqueries, const List *others);
extern bool hgj_order_matters(Query *query);

/* single.c */
extern bool hgj_is_single_row(const Query *query);
extern Bitmapset *hgj_single_in_groups(const Query *query, List *clauses,
									   const Bitmapset *tables);
extern bool hgj_looks_equal(const SortGroupClause *clause, Node *value);
extern bool hgj_is_first_of_ties(const Query *query);
extern bool hgj_take_extreme(Query *query);

/* first_rows.c */
extern void hgj_narrow_first_rows(HgjRewriting *rewriting, HgjSubquery *subquery);

/* nulls.c */
extern const Node *hgj_without_relabeling(const Node *node);
extern const Var *hgj_as_column(const Node *node);
extern bool hgj_is_never_null(const Query *query, const Node *expression);

/* null_keys.c */
extern bool hgj_matches_nulls(const Node *clause);
extern Node *hgj_as_equalities(const Query *query, const Query *around, const Node *clause);

/* quantified.c */
extern bool hgj_is_pulled_up(const Query *subquery);
extern bool hgj_is_pulled_up_well(const Query *subquery);
extern Query *hgj_simple_exists(const Query *query);
extern const Const *hgj_limit_of(const Query *query);
extern Node *hgj_as_existence(const Query *query, SubLink *sublink, HgjNulls nulls);
extern List *hgj_as_join_clauses(const Query *query, Node *clause);

/* proofs.c */
extern bool hgj_may_be_hidden(const SubLink *sublink);
extern bool hgj_refers_above(Node *node, int level);
extern bool hgj_refers_to_level(Node *node, int level);
extern bool hgj_tables_refer_to_level(List *rtable, int level);
extern bool hgj_refers_to_whole(const Query *query, const Bitmapset *relations);
extern bool hgj_is_plain(const Query *query);
extern bool hgj_is_permitted(const Query *query);
extern bool hgj_adds_interval(Oid function);
extern bool hgj_adds_days(Oid function);
extern bool hgj_is_short_interval(const Node *node);
extern bool hgj_row_may_raise(Node *expression);
extern bool hgj_can_be_repeated(Node *clause);
extern bool hgj_operand_may_raise(const Query *query, Node *expression, int level);
extern Node *hgj_any_value(Node *node, bool bounded);
extern bool hgj_is_small_numeric(Node *expression);
extern bool hgj_condition_may_raise(Node *node, HgjConditionView view, void *context);
extern bool hgj_is_proven_subquery(const HgjRewriting *rewriting, const Query *query);
extern bool hgj_tables_proven(const HgjRewriting *rewriting, const Query *query);
extern bool hgj_reads_proven(const HgjRewriting *rewriting, const Query *query);

/* restrict.c */
extern void hgj_restrict_subquery(HgjRewriting *rewriting, const Query *query,
								  HgjSubquery *subquery);

/* grouped.c */
extern Bitmapset *hgj_operands_of(const HgjSubquery *subquery);
extern Bitmapset *hgj_relations_of(Node *node);
extern Expr *hgj_join_subquery(HgjRewriting *rewriting, Query *query, Node **place,
							   const HgjSubquery *subquery);
extern Node *hgj_stand_in(Node *clause, SubLink *sublink);
extern int	hgj_add_left_join(Query *query);
extern int	hgj_add_groups(HgjRewriting *rewriting, Query *query, int join,
						   const HgjSubquery *subquery, List **conditions, List **values);
extern void hgj_attach_groups(Query *query, Node **place, int groups, int joined, List *conditions,
							  const HgjSubquery *subquery);

/* eager.c */
extern bool hgj_may_group_early(const Query *query);
extern void hgj_group_early(HgjRewriting *rewriting, Query *query);

/* lateral.c */
extern bool hgj_is_lateral(const RangeTblEntry *rte);
extern void hgj_note_laterals(HgjRewriting *rewriting, const Query *query);
extern void hgj_join_laterals(HgjRewriting *rewriting, Query *query);

/* estimates.c */
extern bool hgj_is_groups(const RangeTblEntry *rte);

#endif							/* HGJ_HIDDEN_H */
