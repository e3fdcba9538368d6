/*-------------------------------------------------------------------------
 *
 * counters.h
 *	  What nodes have done, counted per database (counters.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_COUNTERS_H
#define HGJ_COUNTERS_H

#include "compat.h"

#include "datatype/timestamp.h"

/* In the order of hashgraph_join_stats()'s columns. */
typedef enum HgjCounter
{
	HGJ_COUNT_JOINS,			/* nodes that ran, in every process */
	HGJ_COUNT_JOINS_CPU,
	HGJ_COUNT_JOINS_CUDA,
	HGJ_COUNT_JOINS_IN_WORKERS,
	HGJ_COUNT_BUILDS,			/* tables */
	HGJ_COUNT_INNER_ROWS,
	HGJ_COUNT_OUTER_ROWS,
	HGJ_COUNT_ROWS_RETURNED,
	HGJ_COUNT_JOINS_SPILLED,
	HGJ_COUNT_PARTITIONS,		/* units of them that were joined */
	HGJ_COUNT_PASSES,			/* beyond the first over the same outer rows */
	HGJ_COUNT_SPILLED_INNER,	/* bytes */
	HGJ_COUNT_SPILLED_OUTER,
	HGJ_COUNT_OUTER_FILTERED,	/* rows */
	HGJ_COUNT_AGGREGATES,
	HGJ_COUNT_AGGREGATES_ON_DEVICE,
	HGJ_COUNT_GROUPS,
	HGJ_COUNT_AGGREGATES_SPILLED,
	HGJ_COUNT_SPILLED_AGGREGATES,	/* bytes */
	HGJ_COUNT_TO_DEVICE,		/* bytes */
	HGJ_COUNT_FROM_DEVICE,
	HGJ_COUNT_TRANSFER_NS,
	HGJ_COUNT_KERNEL_NS,
	/* the highest counts, not the sum */
	HGJ_COUNT_PEAK_MEMORY,		/* bytes */
	HGJ_COUNT_PEAK_DEVICE_MEMORY,
	HGJ_COUNTERS
} HgjCounter;

#define HGJ_FIRST_PEAK	HGJ_COUNT_PEAK_MEMORY

/* Room for the reasons of reasons.h. */
#define HGJ_REASONS		64

typedef struct HgjCounters
{
	uint64		values[HGJ_COUNTERS];
	bool		fell_back;		/* one of these is not zero */
	uint64		fallbacks[HGJ_REASONS];
} HgjCounters;

/* Those of a database. */
typedef struct HgjDatabaseCounters
{
	Oid			database;		/* InvalidOid: of all that had no room */
	TimestampTz reset;			/* counted since then */
	HgjCounters counters;
} HgjDatabaseCounters;

/* In the postmaster, when it loads the library. */
extern void hgj_counters_share(void);

/* Do all sessions count together? */
extern bool hgj_counters_shared(void);

/*
 * Before this process counts anything; reads catalogs.  Cheap when repeated.
 */
extern void hgj_counters_attach(void);

/* Add to this database's.  Never fails: aborting queries count, too. */
extern void hgj_counters_add(const HgjCounters *counters);

/* Something fell back, for the reason of that number (reasons.h). */
static inline void
hgj_counters_fell_back(HgjCounters *counters, int reason)
{
	counters->fell_back = true;
	counters->fallbacks[reason]++;
}

/*
 * A copy of the counters at position i, from 0 on; false: there are no more.
 * Unused positions have reset = 0.
 */
extern bool hgj_counters_get(int i, HgjDatabaseCounters *copy);

/* This database's, to zero. */
extern void hgj_counters_reset(void);

#endif							/* HGJ_COUNTERS_H */
