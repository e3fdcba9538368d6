/*-------------------------------------------------------------------------
 *
 * key_estimates.c
 *	  What is known of keys beyond PostgreSQL's estimates of them.
 *
 * 1. ANALYZE takes a sample of pages' rows.  Where the rows of a value stand together, as the
 *	  lines of an order do, it meets the same values again and again, and takes the column for one
 *	  with few of them: of TPC-H's 15 million l_orderkey it finds 400,000.  A unique index over this
 *	  column and others says more: the rows that have one value of the others have each another
 *	  value of this one, so there are no fewer of them than there are rows with the others' most
 *	  frequent values.  That is believed where the column's rows stand in its order, and the
 *	  others' do not, so that the sample is one of their values.
 *	  Planner code gets it as the column's statistics, by get_relation_stats_hook.
 * 2. An anti join is estimated as if each value of the inner column were left by the inner
 *	  side's conditions.  Of nd values with n rows each, of which the share f passes, nd *
 *	  (1 - (1 - f)^n) are left, as PostgreSQL itself estimates the groups of a table
 *	  (estimate_num_groups() in selfuncs.c, after Yao and Dell'Era).  Otherwise, one row is expected
 *	  where every tenth of a million comes, and a nested loop above it runs for seconds.  The
 *	  selectivity of the equality is put where the planner keeps it, before it looks at joins.
 *
 * Both change estimates alone, where a table is large enough for nodes of ours.
 *
 * Memory: the planner's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "access/htup_details.h"
#include "base/guc.h"
#include "catalog/pg_statistic.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "planner/planner.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

/* Step 1: how far rows stand in the order of a column that is believed to be sampled badly, and well. */
#define LEAST_CLUSTERED		0.9
#define MOST_SCATTERED		0.5

static get_relation_stats_hook_type previous_relation_stats = NULL;

/* The column's statistics, to be released; NULL: there are none. */
static HeapTuple
statistics_of(const RangeTblEntry *rte, AttrNumber attno)
{
	return SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(rte->relid), Int16GetDatum(attno),
						   BoolGetDatum(rte->inh));
}

/* How far the table's rows stand in the column's order: 0 to 1; -1: it is not known. */
static double
order_of(HeapTuple statistics)
{
	AttStatsSlot slot;
	double		order = -1;

	if (!get_attstatsslot(&slot, statistics, STATISTIC_KIND_CORRELATION, InvalidOid,
						  ATTSTATSSLOT_NUMBERS))
		return order;
	if (slot.nnumbers == 1)
		order = fabs(slot.numbers[0]);
	free_attstatsslot(&slot);
	return order;
}

/* The share of the rows that have the most frequent value; 0: no value is. */
static double
greatest_share(HeapTuple statistics)
{
	AttStatsSlot slot;
	double		share = 0;

	if (!get_attstatsslot(&slot, statistics, STATISTIC_KIND_MCV, InvalidOid,
						  ATTSTATSSLOT_NUMBERS))
		return 0;
	/* they are sorted */
	if (slot.nnumbers > 0)
		share = slot.numbers[0];
	free_attstatsslot(&slot);
	return share;
}

/* Step 1: the share of the rows that have one value of a column whose sample is one of its values; or 0. */
static double
share_of_value(const RangeTblEntry *rte, AttrNumber attno)
{
	HeapTuple	statistics = statistics_of(rte, attno);
	const FormData_pg_statistic *known;
	double		share = 0;
	double		order;

	if (!HeapTupleIsValid(statistics))
		return 0;
	known = (Form_pg_statistic) GETSTRUCT(statistics);
	order = order_of(statistics);
	if (order >= 0 && order <= MOST_SCATTERED && known->stanullfrac == 0 && known->stadistinct > 0)
		share = Max(greatest_share(statistics), 1 / known->stadistinct);
	ReleaseSysCache(statistics);
	return share;
}

/* Has the index the column, beside others, and no key twice? */
static bool
is_unique_with_others(const IndexOptInfo *index, AttrNumber attno)
{
	bool		found = false;

	if (!index->unique || !index->immediate || index->indpred != NIL ||
		index->nkeycolumns < 2)
		return false;
	for (int i = 0; i < index->nkeycolumns; i++)
	{
		if (index->indexkeys[i] <= 0)
			return false;
		found |= index->indexkeys[i] == attno;
	}
	return found;
}

/* Step 1: the share of a table's rows that the values of a column are at least, by this index; or 0. */
static double
least_share(const RangeTblEntry *rte, const IndexOptInfo *index, AttrNumber attno)
{
	double		share = 1;

	for (int i = 0; i < index->nkeycolumns; i++)
		if (index->indexkeys[i] != attno)
			share *= share_of_value(rte, (AttrNumber) index->indexkeys[i]);
	return share;
}

/* The table that the entry is, if its paths are being planned, and it is large; or NULL. */
static const RelOptInfo *
large_table_of(const PlannerInfo *root, const RangeTblEntry *rte)
{
	if (root->simple_rel_array == NULL || rte->rtekind != RTE_RELATION)
		return NULL;
	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		const RelOptInfo *rel = root->simple_rel_array[i];

		if (rel && root->simple_rte_array[i] == rte)
			return rel->tuples >= hgj_min_rows ? rel : NULL;
	}
	return NULL;
}

/* May the user see all of the column?  Its statistics are no secret then. */
static bool
may_read(const RangeTblEntry *rte, AttrNumber attno)
{
	return rte->securityQuals == NIL &&
		(pg_class_aclcheck(rte->relid, GetUserId(), ACL_SELECT) == ACLCHECK_OK ||
		 pg_attribute_aclcheck(rte->relid, attno, GetUserId(), ACL_SELECT) == ACLCHECK_OK);
}

/* Step 1: has the table a unique index over the column and others? */
static bool
has_index_with_others(const RelOptInfo *rel, AttrNumber attno)
{
	ListCell   *lc;

	foreach(lc, rel->indexlist)
		if (is_unique_with_others(lfirst(lc), attno))
			return true;
	return false;
}

/*
 * Step 1: the share of a table's rows that the values of a column are at least, by all indexes; 0 if
 * its sample is believed.
 */
static double
corrected_share(const RelOptInfo *rel, const RangeTblEntry *rte, AttrNumber attno,
				HeapTuple statistics)
{
	const FormData_pg_statistic *known = (Form_pg_statistic) GETSTRUCT(statistics);
	double		share = 0;
	ListCell   *lc;

	if (known->stadistinct <= 0 || known->stanullfrac != 0 ||
		order_of(statistics) < LEAST_CLUSTERED)
		return 0;
	foreach(lc, rel->indexlist)
		if (is_unique_with_others(lfirst(lc), attno))
			share = Max(share, least_share(rte, lfirst(lc), attno));
	return known->stadistinct < share * rel->tuples ? share : 0;
}

/* get_relation_stats_hook */
static bool
supply_statistics(PlannerInfo *root, RangeTblEntry *rte, AttrNumber attno,
				  VariableStatData *vardata)
{
	const RelOptInfo *rel;
	HeapTuple	statistics;
	double		share;

	if (previous_relation_stats && previous_relation_stats(root, rte, attno, vardata))
		return true;
	rel = hgj_enabled ? large_table_of(root, rte) : NULL;
	/* statistics are looked up where such an index is, and of other columns last */
	if (rel == NULL || !has_index_with_others(rel, attno))
		return false;
	statistics = statistics_of(rte, attno);
	if (!HeapTupleIsValid(statistics))
		return false;
	share = corrected_share(rel, rte, attno, statistics);
	if (share > 0)
	{
		vardata->statsTuple = heap_copytuple(statistics);
		/* less than none is a share of the rows that there are by now */
		((Form_pg_statistic) GETSTRUCT(vardata->statsTuple))->stadistinct = (float4) -share;
		vardata->freefunc = heap_freetuple;
		vardata->acl_ok = may_read(rte, attno);
	}
	ReleaseSysCache(statistics);
	return share > 0;
}

/* Step 2: the equality by which the table is anti joined.  Returns NULL if it has none, or several. */
static RestrictInfo *
only_equality(const RelOptInfo *rel, const SpecialJoinInfo *join)
{
	RestrictInfo *found = NULL;
	ListCell   *lc;

	foreach(lc, rel->joininfo)
	{
		RestrictInfo *rinfo = lfirst(lc);

		if (rinfo->mergeopfamilies == NIL || !bms_is_subset(rinfo->clause_relids,
															bms_union(join->syn_lefthand, rel->relids)))
			continue;
		if (found)
			return NULL;
		found = rinfo;
	}
	return found;
}

/* Step 2: the share of the outer rows that find a match at most; 1: it is not known. */
static double
most_matched(PlannerInfo *root, const RelOptInfo *rel, const OpExpr *clause, SpecialJoinInfo *join)
{
	VariableStatData left;
	VariableStatData right;
	bool		turned;
	bool		guessed[2];
	double		inner;
	double		outer;
	double		result = 1;

	get_join_variables(root, clause->args, join, &left, &right, &turned);
	inner = get_variable_numdistinct(turned ? &left : &right, &guessed[0]);
	outer = get_variable_numdistinct(turned ? &right : &left, &guessed[1]);
	if (!guessed[0] && !guessed[1] && inner >= 1)
		result = inner * (1 - pow(1 - rel->rows / rel->tuples, rel->tuples / inner)) /
			Max(inner, outer);
	ReleaseVariableStats(left);
	ReleaseVariableStats(right);
	return result;
}

/* Step 2, of the joins whose inner side is this table.  Its size has been estimated, and theirs not. */
void
hgj_estimate_anti_joins(PlannerInfo *root, const RelOptInfo *rel)
{
	ListCell   *lc;

	if (rel->tuples < hgj_min_rows || rel->rows >= rel->tuples)
		return;
	foreach(lc, root->join_info_list)
	{
		SpecialJoinInfo *join = lfirst(lc);
		RestrictInfo *rinfo;
		Selectivity known;

		if (join->jointype != JOIN_ANTI || !bms_equal(join->syn_righthand, rel->relids) ||
			(rinfo = only_equality(rel, join)) == NULL || !IsA(rinfo->clause, OpExpr) ||
			list_length(((OpExpr *) rinfo->clause)->args) != 2 || rinfo->outer_selec >= 0)
			continue;
		/* this is what puts it there first */
		known = clause_selectivity(root, (Node *) rinfo, 0, JOIN_ANTI, join);
		rinfo->outer_selec = Min(known, most_matched(root, rel, (OpExpr *) rinfo->clause, join));
	}
}

/* Call once per process, from _PG_init. */
void
hgj_install_key_estimates(void)
{
	previous_relation_stats = get_relation_stats_hook;
	get_relation_stats_hook = supply_statistics;
}
