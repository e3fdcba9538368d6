/*-------------------------------------------------------------------------
 *
 * filter_order.c
 *	  Which of the filters that a scan could ask it asks, and in which order.
 *
 * 1. Before a batch is filled, find those that can be asked: the joins say so
 *	  (HgjFilterMethods).
 * 2. The order comes from a profile: which filters each of some rows passes that
 *	  all were asked about (page_sieve.c, trials).  The first filter is the one
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
#include "scan/page_sieve.h"

/* Rows of a profile that says something, and rows between two trials. */
#define HGJ_FEWEST_PROFILE_ROWS	256
#define HGJ_ROWS_PER_TRIAL		8192

/* ---- step 1 ------------------------------------------------------------- */

/* Those that can be asked, and that are worth it. */
static HgjFilterSet
find_ready(HgjPageSieve *sieve, const HgjSource *source)
{
	HgjFilterSet ready = 0;

	for (int f = 0; f < sieve->nfilters; f++)
	{
		HgjKeyFilter *filter = &sieve->filters[f];
		HgjSource  *asks = filter->asks;

		if (asks->sieve_of &&
			asks->filter->begin(asks->sieve_of, source, filter->join == NULL))
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
does_not_pay(const HgjPageSieve *sieve, int f, double dropped, bool before_quals)
{
	const HgjKeyFilter *filter = &sieve->filters[f];
	double		saved = sieve->read_cost + filter->saved +
		(before_quals ? sieve->quals_cost : 0);

	return sieve->stats && hgj_filter != HGJ_FILTER_ON &&
		dropped * saved <= filter->cost;
}

/*
 * Of the filters in `left`, the best for n rows; -1: none is good enough.
 */
static int
best_filter(const HgjPageSieve *sieve, HgjFilterSet left,
			const HgjFilterSet *masks, uint32 n)
{
	bool		before_quals = (left & (1 << HGJ_QUALS_PLACE)) != 0;
	int			best = -1;
	double		best_rank = -1;

	for (int f = 0; f <= HGJ_QUALS_PLACE; f++)
	{
		double		cost = f == HGJ_QUALS_PLACE ? sieve->quals_cost :
			sieve->filters[f].cost;
		double		dropped;

		if ((left & (1 << f)) == 0)
			continue;
		dropped = n > 0 ? (double) count_dropped(masks, n, 1 << f) / n : 0;
		if (f != HGJ_QUALS_PLACE && does_not_pay(sieve, f, dropped, before_quals))
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
choose_order(HgjPageSieve *sieve)
{
	HgjFilterSet masks[HGJ_PROFILE_ROWS];
	HgjFilterSet left = sieve->ready | 1 << HGJ_QUALS_PLACE;
	uint32		n = sieve->nprofile;
	int			f;

	memcpy(masks, sieve->profile, n * sizeof(HgjFilterSet));
	sieve->norder = 0;
	if (!sieve->quals->may_wait)
	{
		/* the profile is of rows that have passed them */
		sieve->order[sieve->norder++] = HGJ_QUALS_PLACE;
		left &= ~(1 << HGJ_QUALS_PLACE);
	}
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

/* All that are ready, behind the quals, in the planner's order. */
static void
take_all(HgjPageSieve *sieve)
{
	sieve->norder = 0;
	sieve->order[sieve->norder++] = HGJ_QUALS_PLACE;
	for (int f = 0; f < sieve->nfilters; f++)
		if (sieve->ready & (1 << f))
			sieve->order[sieve->norder++] = f;
}

/* Tell the joins, and EXPLAIN, which of them are asked, and in which order. */
static void
announce_order(HgjPageSieve *sieve)
{
	HgjFilterSet asked = 0;
	int			place = 0;

	for (int i = 0; i < sieve->norder; i++)
		asked |= 1 << sieve->order[i];
	for (int f = 0; f < sieve->nfilters; f++)
	{
		HgjSource  *asks = sieve->filters[f].asks;

		if (sieve->ready & (1 << f))
			asks->filter->chosen(asks->sieve_of, (asked & (1 << f)) != 0);
	}
	if (sieve->stats == NULL)
		return;
	for (int f = 0; f < sieve->nfilters; f++)
		sieve->stats[f].place = 0;
	for (int i = 0; i < sieve->norder; i++)
		if (sieve->order[i] != HGJ_QUALS_PLACE)
			sieve->stats[sieve->order[i]].place = ++place;
}

/* Before a batch is filled: steps 1 and 2. */
void
hgj_key_filters_begin(HgjPageSieve *sieve, const HgjSource *source)
{
	HgjFilterSet ready = find_ready(sieve, source);

	if (ready != sieve->ready || sieve->norder == 0)
	{
		sieve->ready = ready;
		sieve->nprofile = sieve->next_profile = 0;
		sieve->profile_is_new = false;
		take_all(sieve);
	}
	if (sieve->profile == NULL || ready == 0)
		return;
	if (sieve->profile_is_new && sieve->nprofile >= HGJ_FEWEST_PROFILE_ROWS)
		choose_order(sieve);
	sieve->profile_is_new = false;
	announce_order(sieve);
}

/* ---- step 3 ------------------------------------------------------------- */

/* Are all filters to be asked about all rows of the next page? */
bool
hgj_key_filters_on_trial(const HgjPageSieve *sieve)
{
	return sieve->profile && sieve->ready != 0 &&
		(sieve->nprofile < HGJ_FEWEST_PROFILE_ROWS ||
		 sieve->since_trial >= HGJ_ROWS_PER_TRIAL);
}

/* What n rows of a trial have passed. */
void
hgj_key_filters_note(HgjPageSieve *sieve, const HgjFilterSet *masks, uint32 n)
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
