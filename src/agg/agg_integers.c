/*-------------------------------------------------------------------------
 *
 * agg_integers.c
 *	  Sums, minima and maxima of what fits a word: integers, booleans, dates
 *	  and times.
 *
 * Sums of int2 and int4 are 64 bits wide and wrap, as PostgreSQL's do; those of
 * int8 are 128 bits wide.  Minima and maxima are 64-bit words that begin with
 * the largest and the least one.
 *
 * No memory, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_accumulate.h"

#define DEFINE_SUM(name, state_type, type) \
void \
name(HgjAggregate *agg, const HgjAggRows *rows) \
{ \
	HGJ_ACCUMULATE(agg, rows, state_type, type, *state += value); \
}

#define DEFINE_LEAST(name, type) \
void \
name(HgjAggregate *agg, const HgjAggRows *rows) \
{ \
	HGJ_ACCUMULATE(agg, rows, int64, type, \
				   if ((int64) value < *state) *state = (int64) value); \
}

#define DEFINE_MOST(name, type) \
void \
name(HgjAggregate *agg, const HgjAggRows *rows) \
{ \
	HGJ_ACCUMULATE(agg, rows, int64, type, \
				   if ((int64) value > *state) *state = (int64) value); \
}

DEFINE_SUM(hgj_agg_sum_int2, int64, int16)
DEFINE_SUM(hgj_agg_sum_int4, int64, int32)
DEFINE_SUM(hgj_agg_sum_int8, int128, int64)

DEFINE_LEAST(hgj_agg_min_bool, bool)
DEFINE_MOST(hgj_agg_max_bool, bool)
DEFINE_LEAST(hgj_agg_min_int2, int16)
DEFINE_MOST(hgj_agg_max_int2, int16)
DEFINE_LEAST(hgj_agg_min_int4, int32)
DEFINE_MOST(hgj_agg_max_int4, int32)
DEFINE_LEAST(hgj_agg_min_int8, int64)
DEFINE_MOST(hgj_agg_max_int8, int64)
DEFINE_LEAST(hgj_agg_min_oid, Oid)
DEFINE_MOST(hgj_agg_max_oid, Oid)
