/*-------------------------------------------------------------------------
 *
 * key_filters.c
 *	  Which joins of a chain are asked about the rows of its bottom table, and
 *	  in which order.
 *
 * A star is a chain of joins, and its rows go through them in the planner's
 * order, so that the join that hardly any row survives may come last.  But a row
 * of the bottom table whose key has no match in an inner join is lost whatever
 * the joins below that make of it, and nobody need read it.
 *
 * 1. At executor start each join offers itself to the scan at the bottom of the
 *	  chain on its outer side, if all of its keys are columns of that table, and
 *	  it returns nothing for outer rows without a match.  The joins in between
 *	  must not notice that rows are missing: none of them remembers which inner
 *	  rows have matched, and none of their expressions can raise an error or has
 *	  an effect.  That some of them return rows without a match (left and anti
 *	  joins) does no harm: those rows have the same key.
 * 2. Before the scan fills a batch, see which of them have a table, all of it,
 *	  and an engine with a filter for it that is worth asking.
 * 3. The order comes from a profile: which filters each of some rows passes that
 *	  all were asked about (page_sieve.c, trials).  The first filter is the one
 *	  that drops most rows for its cost; the next, the one that does so of the
 *	  rows that the first leaves; and so on (Babu and others 2004, "Adaptive
 *	  Ordering of Pipelined Stream Filters").  Two filters that drop the same
 *	  rows are therefore not both asked.  What does not save more than it costs is
 *	  left out until a later profile says otherwise.
 * 4. Every so many rows there is another trial, and the oldest rows leave the
 *	  profile.
 *
 * Costs are estimates of what is to be decoded, never times, so that a query does
 * the same each time it is run.
 *
 * Memory: the query's context.  No locks: in a parallel plan every process has
 * filters and a profile of its own.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "exec/demand.h"
#include "exec/join_state.h"
#include "exec/page_sieve.h"
#include "guc.h"
#include "optimizer/optimizer.h"

/* Rows of a profile that says something, and rows between two trials. */
#define HGJ_FEWEST_PROFILE_ROWS	256
#define HGJ_ROWS_PER_TRIAL		8192

/* Nanoseconds for a row to go through one join, and into a batch. */
#define HGJ_JOIN_COST			8.0

/* ---- step 1 ------------------------------------------------------------- */

/* Would the join notice if outer rows were missing, or those above it? */
static bool
notices_missing_rows(const HgjJoinState *join)
{
	const CustomScan *scan = (const CustomScan *) join->css.ss.ps.plan;
	EState	   *estate = join->css.ss.ps.state;

	return join->semantics.mark_inner || join->outer.keys_may_raise ||
		hgj_may_raise((Node *) scan->scan.plan.targetlist, estate) ||
		hgj_may_raise((Node *) scan->custom_exprs, estate) ||
		contain_volatile_functions((Node *) scan->scan.plan.targetlist) ||
		contain_volatile_functions((Node *) scan->custom_exprs);
}

/* The column of the outer child that the join returns as `resno`, or 0. */
static AttrNumber
outer_column(const HgjJoinState *join, AttrNumber resno)
{
	const CustomScan *scan = (const CustomScan *) join->css.ss.ps.plan;
	const TargetEntry *tle = list_nth(scan->scan.plan.targetlist, resno - 1);
	const Var  *var = (const Var *) tle->expr;

	if (!IsA(var, Var) || var->varno != INDEX_VAR || var->varattno <= 0 ||
		var->varattno > list_nth_int(scan->custom_private, HGJ_FACT_OUTER_COLUMNS))
		return 0;
	return var->varattno;
}

void
hgj_key_filters_offer(HgjJoinState *join)
{
	HgjSource  *source = &join->outer;
	HgjJoinState *bottom = join;
	AttrNumber *columns;
	int			njoins = 1;
	MemoryContext old;

	if (join->semantics.fill_outer ||
		source->methods != &hgj_source_batches)
		return;
	old = MemoryContextSwitchTo(join->context);
	columns = palloc(mul_size(source->nkeys, sizeof(AttrNumber)));
	for (int k = 0; k < source->nkeys; k++)
		columns[k] = source->keys[k].attno;
	for (; bottom->outer.methods == &hgj_source_batches; njoins++)
	{
		bottom = bottom->outer.private_state;
		if (notices_missing_rows(bottom))
			break;
		for (int k = 0; k < source->nkeys; k++)
			columns[k] = columns[k] ? outer_column(bottom, columns[k]) : 0;
	}
	if (bottom->outer.methods == &hgj_source_pages &&
		!notices_missing_rows(bottom) &&
		hgj_pages_offer(&bottom->outer, join, columns, njoins * HGJ_JOIN_COST,
						bottom->stats.key_filters))
		join->sifts_early = bottom->sifts_early = true;
	pfree(columns);
	MemoryContextSwitchTo(old);
}

/* ---- step 2 ------------------------------------------------------------- */

/* Does the join know all the keys that its outer rows could match? */
static bool
can_be_asked(const HgjKeyFilter *filter, const HgjSource *source)
{
	const HgjJoinState *join = filter->asks->sieve_of;

	if (join == NULL || filter->join == NULL)
		return join != NULL;
	return !source->leave_quals && join->engine == hgj_cpu_engine() &&
		join->pass == 1 && join->last_pass && !join->splitting &&
		!join->has_split;
}

/* Those that can, and that the engine finds worth it. */
static uint8
find_ready(HgjPageSieve *sieve, const HgjSource *source)
{
	uint8		ready = 0;

	for (int f = 0; f < sieve->nfilters; f++)
	{
		HgjKeyFilter *filter = &sieve->filters[f];

		if (can_be_asked(filter, source))
			ready |= hgj_sift_begin(filter->asks->sieve_of) << f;
		else if (filter->join)
			filter->join->sifted = false;
	}
	return ready;
}

/* ---- step 3 ------------------------------------------------------------- */

static uint32
count_dropped(const uint8 *masks, uint32 n, uint8 bit)
{
	uint32		dropped = 0;

	for (uint32 i = 0; i < n; i++)
		dropped += (masks[i] & bit) == 0;
	return dropped;
}

/* Of the filters in `left`, the best for n rows; -1: none is good enough. */
static int
best_filter(const HgjPageSieve *sieve, uint8 left, const uint8 *masks, uint32 n)
{
	int			best = -1;
	double		best_rank = -1;

	for (int f = 0; f < sieve->nfilters; f++)
	{
		const HgjKeyFilter *filter = &sieve->filters[f];
		double		dropped;

		if ((left & (1 << f)) == 0)
			continue;
		dropped = n > 0 ? (double) count_dropped(masks, n, 1 << f) / n : 0;
		if (hgj_filter != HGJ_FILTER_ON &&
			dropped * (sieve->read_cost + filter->saved) <= filter->cost)
			continue;
		if (dropped / filter->cost > best_rank)
		{
			best = f;
			best_rank = dropped / filter->cost;
		}
	}
	return best;
}

static void
choose_order(HgjPageSieve *sieve)
{
	uint8		masks[HGJ_PROFILE_ROWS];
	uint32		n = sieve->nprofile;
	uint8		left = sieve->ready;
	int			f;

	memcpy(masks, sieve->profile, n);
	sieve->norder = 0;
	while ((f = best_filter(sieve, left, masks, n)) >= 0)
	{
		uint32		stay = 0;

		sieve->order[sieve->norder++] = f;
		left &= ~(1 << f);
		for (uint32 i = 0; i < n; i++)
		{
			masks[stay] = masks[i];
			stay += (masks[i] & (1 << f)) != 0;
		}
		n = stay;
	}
}

/* All that are ready, in the planner's order. */
static void
take_all(HgjPageSieve *sieve)
{
	sieve->norder = 0;
	for (int f = 0; f < sieve->nfilters; f++)
		if (sieve->ready & (1 << f))
			sieve->order[sieve->norder++] = f;
}

/* Tell the joins, and EXPLAIN, which of them are asked. */
static void
announce_order(HgjPageSieve *sieve)
{
	for (int f = 0; f < sieve->nfilters; f++)
	{
		sieve->stats[f].place = 0;
		if (sieve->ready & (1 << f))
			sieve->filters[f].asks->sieve_of->sifted = false;
	}
	for (int i = 0; i < sieve->norder; i++)
	{
		sieve->stats[sieve->order[i]].place = i + 1;
		sieve->filters[sieve->order[i]].asks->sieve_of->sifted = true;
	}
}

/* Before a batch is filled: steps 2 and 3. */
void
hgj_key_filters_begin(HgjPageSieve *sieve, const HgjSource *source)
{
	uint8		ready = find_ready(sieve, source);

	if (ready != sieve->ready)
	{
		sieve->ready = ready;
		sieve->nprofile = sieve->next_profile = 0;
		take_all(sieve);
	}
	sieve->active = ready != 0;
	if (sieve->stats == NULL || ready == 0)
		return;
	if (sieve->profile_is_new && sieve->nprofile >= HGJ_FEWEST_PROFILE_ROWS)
		choose_order(sieve);
	sieve->profile_is_new = false;
	announce_order(sieve);
}

/* ---- step 4 ------------------------------------------------------------- */

/* Are all filters to be asked about all rows of the next page? */
bool
hgj_key_filters_on_trial(const HgjPageSieve *sieve)
{
	return sieve->stats &&
		(sieve->nprofile < HGJ_FEWEST_PROFILE_ROWS ||
		 sieve->since_trial >= HGJ_ROWS_PER_TRIAL);
}

/* What n rows of a trial have passed. */
void
hgj_key_filters_note(HgjPageSieve *sieve, const uint8 *masks, uint32 n)
{
	for (uint32 i = 0; i < n; i++)
	{
		sieve->profile[sieve->next_profile] = masks[i];
		sieve->next_profile = (sieve->next_profile + 1) % HGJ_PROFILE_ROWS;
	}
	sieve->nprofile = Min(sieve->nprofile + n, HGJ_PROFILE_ROWS);
	sieve->profile_is_new = true;
	sieve->since_trial = 0;
}
