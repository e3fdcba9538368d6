/*-------------------------------------------------------------------------
 *
 * agg_sort_place.h
 *	  The place of a row among those that are sorted for an aggregate, as one integer
 *	  (agg_sort_place.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_AGG_SORT_PLACE_H
#define HGJ_AGG_SORT_PLACE_H

#include "compat.h"

#include "nodes/primnodes.h"

/* Below the group's number: whether the value is NULL, and its first bits. */
#define HGJ_PLACE_BITS	33

/* Turned, so that groups beyond 2^30 do not come first. */
#define HGJ_PLACE_SIGN	(UINT64CONST(1) << 63)

typedef enum HgjPlaceKind
{
	HGJ_PLACE_GROUP,			/* the value is not looked at */
	HGJ_PLACE_INT2,
	HGJ_PLACE_INT4,
	HGJ_PLACE_OID,
	HGJ_PLACE_INT8,
	HGJ_PLACE_TIME,				/* int8, whose values are far apart */
	HGJ_PLACE_FLOAT4,
	HGJ_PLACE_FLOAT8,
	HGJ_PLACE_BYTES				/* a varlena whose bytes are compared */
} HgjPlaceKind;

typedef struct HgjSortPlace
{
	HgjPlaceKind kind;
	bool		descending;
	bool		nulls_first;
	bool		exact;			/* values of the same place are equal */
} HgjSortPlace;

extern void hgj_sort_place_init(HgjSortPlace *place, Oid operator, Oid collation,
								bool nulls_first);
extern int64 hgj_sort_place(const HgjSortPlace *place, uint32 group,
							const NullableDatum *value);
extern NullableDatum hgj_sort_place_value(const HgjSortPlace *place, int64 of);

/* What an aggregate sorts its rows by, if anything: SortGroupClauses. */
static inline List *
hgj_sort_clauses(const Aggref *aggref)
{
	return aggref->aggdistinct ? aggref->aggdistinct : aggref->aggorder;
}

/* Of an aggregate with so many arguments, is there nothing to sort but places? */
static inline bool
hgj_sort_places_only(const HgjSortPlace *place, int narguments)
{
	return place->exact && narguments == 1;
}

static inline uint32
hgj_sort_place_group(int64 place)
{
	return (uint32) (((uint64) place ^ HGJ_PLACE_SIGN) >> HGJ_PLACE_BITS);
}

#endif							/* HGJ_AGG_SORT_PLACE_H */
