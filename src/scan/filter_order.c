/*-------------------------------------------------------------------------
 *
 * filter_order.c
 *	  Which of the filters that a scan could ask it asks, and in which order.
 *
 * 1. Before a batch is filled, find those that can be asked: the joins say so
 *	  (HgjFilterMethods).
 * 2. The order comes from a profile: which filters each of some rows passes that
 *	  all were asked about (page_filters.c, trials).  The first filter is the one
 *	  that drops most rows for its cost; the next, the one that does so of the
 *	  rows that the first leaves; and so on (Babu and others 2004, "Adaptive
 *	  Ordering of Pipelined Stream Filters").  Two filters that drop the same
 *	  rows are therefore not both asked.  What does not save more than it costs is
 *	  left out until a later profile says otherwise.  The scan's own quals are one
 *	  of the filters, which is never left out, and comes first where it must not
 *	  wait, or nothing is known.
 * 3. Every so many rows there is another trial, and the oldest rows leave the
 *	  profile.
 *
 * Costs are estimates of what is to be decoded, never times, so that a query does
 * the same each time it is run.
 *
 * Memory: the query's context.  No locks: in a parallel plan every process has a
 * profile of its own.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/guc.h"
#include "scan/page_filters.h"

/* Rows of a profile that says something, and rows between two trials. */
#define HGJ_FEWEST_PROFILE_ROWS	256
#define HGJ_ROWS_PER_TRIAL		8192

/* ---- step 1 ------------------------------------------------------------- */

/* Those that can be asked, and that are worth it. */
static HgjFilterSet
find_ready(HgjPageFilters *set, const HgjSource *source)
{
	HgjFilterSet ready = 0;

	for (int f = 0; f < set->nfilters; f++)
	{
		HgjKeyFilter *filter = &set->filters[f];
		HgjSource  *asks = filter->asks;

		if (asks->filter_of &&
			asks->filter->begin(asks->filter_of, source, filter->join == NULL))
			ready |= 1 << f;
		else if (filter->join)
			asks->filter->chosen(filter->join, false);
	}
	return ready;
}

/* ---- step 2 ------------------------------------------------------------- */

static uint32
count_dropped(const HgjFilterSet *masks, uint32 n, HgjFilterSet bit)
{
	uint32		dropped = 0;

	for (uint32 i = 0; i < n; i++)
		dropped += (masks[i] & bit) == 0;
	return dropped;
}

/*
 * Would asking the filter save less than it costs?  That is asked of a chain's
 * filters; whether a join's own pays is up to its engine.
 */
static bool
does_not_pay(const HgjPageFilters *set, int f, double dropped, bool before_quals)
{
	const HgjKeyFilter *filter = &set->filters[f];
	double		saved = set->read_cost + filter->saved +
		(before_quals ? set->quals_cost : 0);

	return set->stats && hgj_filter != HGJ_FILTER_ON &&
		dropped * saved <= filter->cost;
}

/*
 * Of the filters in `left`, the best for n rows; -1: none is good enough.
 */
static int
best_filter(const HgjPageFilters *set, HgjFilterSet left,
			const HgjFilterSet *masks, uint32 n)
{
	bool		before_quals = (left & (1 << HGJ_QUALS_PLACE)) != 0;
	int			best = -1;
	double		best_rank = -1;

	for (int f = 0; f <= HGJ_QUALS_PLACE; f++)
	{
		double		cost = f == HGJ_QUALS_PLACE ? set->quals_cost :
			set->filters[f].cost;
		double		dropped;

		if ((left & (1 << f)) == 0)
			continue;
		dropped = n > 0 ? (double) count_dropped(masks, n, 1 << f) / n : 0;
		if (f != HGJ_QUALS_PLACE && does_not_pay(set, f, dropped, before_quals))
			continue;
		if (dropped / cost > best_rank)
		{
			best = f;
			best_rank = dropped / cost;
		}
	}
	return best;
}

static void
choose_order(HgjPageFilters *set)
{
	HgjFilterSet masks[HGJ_PROFILE_ROWS];
	HgjFilterSet left = set->ready | 1 << HGJ_QUALS_PLACE;
	uint32		n = set->nprofile;
	int			f;

	memcpy(masks, set->profile, n * sizeof(HgjFilterSet));
	set->norder = 0;
	if (!set->quals->may_wait)
	{
		/* the profile is of rows that have passed them */
		set->order[set->norder++] = HGJ_QUALS_PLACE;
		left &= ~(1 << HGJ_QUALS_PLACE);
	}
	while ((f = best_filter(set, left, masks, n)) >= 0)
	{
		uint32		stay = 0;

		set->order[set->norder++] = f;
		left &= ~(1 << f);
		for (uint32 i = 0; i < n; i++)
		{
			masks[stay] = masks[i];
			stay += (masks[i] & (1 << f)) != 0;
		}
		n = stay;
	}
}

/* All that are ready, behind the quals, in the planner's order. */
static void
take_all(HgjPageFilters *set)
{
	set->norder = 0;
	set->order[set->norder++] = HGJ_QUALS_PLACE;
	for (int f = 0; f < set->nfilters; f++)
		if (set->ready & (1 << f))
			set->order[set->norder++] = f;
}

/* Tell the joins, and EXPLAIN, which of them are asked, and in which order. */
static void
announce_order(HgjPageFilters *set)
{
	HgjFilterSet asked = 0;
	int			place = 0;

	for (int i = 0; i < set->norder; i++)
		asked |= 1 << set->order[i];
	for (int f = 0; f < set->nfilters; f++)
	{
		HgjSource  *asks = set->filters[f].asks;

		if (set->ready & (1 << f))
			asks->filter->chosen(asks->filter_of, (asked & (1 << f)) != 0);
	}
	if (set->stats == NULL)
		return;
	for (int f = 0; f < set->nfilters; f++)
		set->stats[f].place = 0;
	for (int i = 0; i < set->norder; i++)
		if (set->order[i] != HGJ_QUALS_PLACE)
			set->stats[set->order[i]].place = ++place;
}

/* Before a batch is filled: steps 1 and 2. */
void
hgj_key_filters_begin(HgjPageFilters *set, const HgjSource *source)
{
	HgjFilterSet ready = find_ready(set, source);

	if (ready != set->ready || set->norder == 0)
	{
		set->ready = ready;
		set->nprofile = set->next_profile = 0;
		set->profile_is_new = false;
		take_all(set);
	}
	if (set->profile == NULL || ready == 0)
		return;
	if (set->profile_is_new && set->nprofile >= HGJ_FEWEST_PROFILE_ROWS)
		choose_order(set);
	set->profile_is_new = false;
	announce_order(set);
}

/* ---- step 3 ------------------------------------------------------------- */

/* Are all filters to be asked about all rows of the next page? */
bool
hgj_key_filters_on_trial(const HgjPageFilters *set)
{
	return set->profile && set->ready != 0 &&
		(set->nprofile < HGJ_FEWEST_PROFILE_ROWS ||
		 set->since_trial >= HGJ_ROWS_PER_TRIAL);
}

/* What n rows of a trial have passed. */
void
hgj_key_filters_note(HgjPageFilters *set, const HgjFilterSet *masks, uint32 n)
{
	for (uint32 i = 0; i < n; i++)
	{
		set->profile[set->next_profile] = masks[i];
		set->next_profile = (set->next_profile + 1) % HGJ_PROFILE_ROWS;
	}
	set->nprofile = Min(set->nprofile + n, HGJ_PROFILE_ROWS);
	set->profile_is_new = true;
	set->since_trial = 0;
}
