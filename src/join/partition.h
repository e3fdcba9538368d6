/*-------------------------------------------------------------------------
 *
 * partition.h
 *	  Joins whose build side is split into partitions (partition.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_PARTITION_H
#define HGJ_PARTITION_H

#include "compat.h"

#include "join/join_state.h"
#include "spill/partition_file.h"

typedef enum HgjSpillSide
{
	HGJ_OUTER_SIDE,
	HGJ_INNER_SIDE
} HgjSpillSide;

/* The most partitions of a split. */
#define HGJ_MOST_PARTITIONS		512

/* The largest block of a partition. */
#define HGJ_LARGEST_BLOCK		((Size) 128 * 1024)

/* The filter's part of the memory limit. */
#define HGJ_FILTER_SHARE		16

/* Partitions that are joined together: all that their hashes say is theirs. */
typedef struct HgjUnit
{
	struct HgjUnit *next;
	HgjSpillRun *runs[2];		/* by side */
	int			nruns[2];
	uint64		rows[2];
	int			used_bits;		/* of the hash: equal in each partition */
} HgjUnit;

typedef struct HgjPartitions
{
	HgjSpillLayout *layouts[2];	/* the inner side's is the build side's */
	HgjSpillReader readers[2];
	HgjUnit    *pending;		/* to be joined, the next one first */
	HgjUnit    *unit;			/* being joined; NULL: the children's rows */

	bool		rescans_expected;	/* by the plan */
	bool		restoring;		/* the build rows at hand are those that were kept */
	HgjSpillWriter writer;		/* of one side, then of the other */
} HgjPartitions;

/* Are the rows at hand a unit's, and not the children's? */
static inline bool
hgj_in_unit(const HgjJoinState *state)
{
	return state->passes.partitions && state->passes.partitions->unit;
}

/* How many outer rows the unit at hand has. */
static inline uint64
hgj_unit_outer_rows(const HgjJoinState *state)
{
	const HgjUnit *unit = state->passes.partitions->unit;
	uint64		rows = 0;

	for (int i = 0; i < unit->nruns[HGJ_OUTER_SIDE]; i++)
		rows += unit->runs[HGJ_OUTER_SIDE][i].rows;
	return rows;
}

extern Size hgj_partition_blocks(Size limit);
extern Size hgj_partition_reserve(Size limit);
extern bool hgj_split_wanted(const HgjJoinState *state);
extern void hgj_split_end(HgjJoinState *state);
extern bool hgj_next_unit(HgjJoinState *state);
extern double hgj_unit_rows(const HgjJoinState *state);
extern void hgj_fill_inner(HgjJoinState *state, uint32 max_rows);
extern bool hgj_fill_outer_of_unit(HgjJoinState *state, uint32 max_rows);
extern bool hgj_rewind_unit(HgjJoinState *state);
extern void hgj_reread_unit(HgjJoinState *state);
extern void hgj_take_flags(HgjJoinState *state);
extern void hgj_partitions_release_units(HgjJoinState *state);
extern void hgj_partitions_release(HgjJoinState *state);

/* partition_split.c */
extern void hgj_split_inner(HgjJoinState *state, uint32 batch_rows);
extern void hgj_split_outer(HgjJoinState *state);

/* partition_keep.c */
extern bool hgj_rescans_expected(const HgjJoinState *state);
extern void hgj_write_keyed(HgjJoinState *state, HgjSpillWriter *writer,
							uint8 *seen);
extern void hgj_write_keyless(HgjJoinState *state, HgjSpillWriter *writer,
							  const uint32 *rows, uint32 n);
extern void hgj_keep_split(HgjJoinState *state);
extern void hgj_keep_nothing(HgjJoinState *state);
extern bool hgj_split_is_there(const HgjJoinState *state);
extern void hgj_split_again(HgjJoinState *state);
extern bool hgj_restore(HgjJoinState *state);
extern bool hgj_restoring(const HgjJoinState *state);
extern void hgj_check_restoring(HgjJoinState *state);
extern void hgj_restore_split(HgjJoinState *state);

#endif							/* HGJ_PARTITION_H */
