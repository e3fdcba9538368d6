/*-------------------------------------------------------------------------
 *
 * encode.c
 *	  Columns of a build side stored as dictionary codes, for a HashGraphAgg
 *	  above that groups by them.
 *
 * 1. The aggregate asks its join for a column of the join's target list.  If it
 *	  comes from the build side, passes by reference, and nobody else looks at
 *	  its values (keys, residual clauses, filters, expressions), the build side
 *	  stores a dictionary's datums from now on: sources write a code where they
 *	  would have copied the value (hgj_batch_keep()).
 * 2. If it comes from the outer side, and that is read by batches, the question
 *	  goes to the join below, whose batches then hold codes.
 * 3. Dictionaries outlive passes, so they may take a part of the build side's
 *	  memory limit only.  A value for which there is no room stays what it is:
 *	  the planner's estimates do not have to be trusted.
 * 4. Where several processes make the build side together, each has a dictionary of its
 *	  own until all rows have been read; then shared_codes.c merges them.
 *
 * Should rows leave as slots after all (several passes), emit.c looks codes up.
 *
 * The dictionary belongs to the build side that stores the codes, and stays through
 * all passes and rescans.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "join/join_state.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "storage/itemptr.h"

/*
 * Does anything but one plain target list entry mention the scan column?  (A
 * subquery whose level has been removed may return a column twice; whoever
 * reads the other one expects values.)
 */
static bool
value_is_needed(HgjJoinState *join, AttrNumber scan_attno)
{
	CustomScan *cscan = castNode(CustomScan, join->js.css.ss.ps.plan);
	Bitmapset  *used = NULL;
	int			entries = 0;
	ListCell   *lc;

	pull_varattnos((Node *) cscan->custom_exprs, INDEX_VAR, &used);
	foreach(lc, cscan->scan.plan.targetlist)
	{
		TargetEntry *tle = lfirst_node(TargetEntry, lc);

		if (!IsA(tle->expr, Var))
			pull_varattnos((Node *) tle->expr, INDEX_VAR, &used);
		else if (((Var *) tle->expr)->varattno == scan_attno)
			entries++;
	}
	return entries > 1 ||
		bms_is_member(scan_attno - FirstLowInvalidHeapAttributeNumber, used);
}

/*
 * From now on, return column resno of the join's batches as datums of the
 * dictionary that is returned, which is expected to take so many bytes.  NULL: it
 * stays as it is.  Call at executor start, after hgj_join_use_batches(), before the first row.
 */
HgjDictionary *
hgj_join_encode(HgjJoinState *join, AttrNumber resno, Node *expr, Oid equality,
				Size expected)
{
	CustomScan *cscan = castNode(CustomScan, join->js.css.ss.ps.plan);
	TargetEntry *tle = list_nth_node(TargetEntry, cscan->scan.plan.targetlist,
									 resno - 1);
	AttrNumber	scan_attno;
	HgjDictionary *dictionary;
	int			c;

	if (!IsA(tle->expr, Var) || ((Var *) tle->expr)->varno != INDEX_VAR)
		return NULL;
	scan_attno = ((Var *) tle->expr)->varattno;
	if (value_is_needed(join, scan_attno))
		return NULL;

	if ((c = hgj_scan_column(&join->js.inner, scan_attno)) >= 0)
	{
		HgjColumn  *column = &join->js.inner.columns[c];

		/* A ctid is made by the source; there is nothing to be gained. */
		if (column->attbyval || column->dictionary ||
			column->attlen == sizeof(ItemPointerData) ||
			(join->share.planned && expected > HGJ_SHARED_DICTIONARIES))
			return NULL;
		dictionary = hgj_build_side_encode(join->js.build, expr, equality,
										   column->attlen, join->share.planned);
		column->dictionary = dictionary;
	}
	else if ((c = hgj_scan_column(&join->js.outer, scan_attno)) >= 0 &&
			 hgj_source_join(&join->js.outer))
	{
		HgjColumn  *column = &join->js.outer.columns[c];

		dictionary = hgj_join_encode(hgj_source_join(&join->js.outer), column->attno,
									 expr, equality, expected);
		if (dictionary == NULL)
			return NULL;
		column->dictionary = dictionary;
	}
	else
		return NULL;

	hgj_output_encode(join, scan_attno, dictionary);
	hgj_use_scan_slot(join);
	return dictionary;
}
