/*-------------------------------------------------------------------------
 *
 * build_side.h
 *	  The build side of a join: the engine's table, and the rows behind its row
 *	  ids (build_side.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_BUILD_SIDE_H
#define HGJ_BUILD_SIDE_H

#include "compat.h"

#include "base/account.h"
#include "base/poll.h"
#include "columns/row_store.h"
#include "engine/engine.h"
#include "spill/partition_file.h"
#include "spill/spill_filter.h"

/* How what does not fit into memory is split. */
typedef struct HgjSplit
{
	int			used_bits;
	int			npartitions;
	Size		block_bytes;
	double		row_bytes;		/* of memory, per row of the build side */
	Size		unit_bytes;		/* of memory, that partitions may fill */
	double		unit_rows;		/* that fit into device memory; 0 = any number */
} HgjSplit;

/* What a rescan needs of the first unit's build side (partition_keep.c). */
typedef struct HgjKept
{
	Size		limit;			/* of memory, when it was made */
	HgjSpillRun *rows;			/* one run: those of the table in memory; NULL:
								 * nothing is kept */
	HgjSplit	split;
	HgjSpillRun *inner_runs;	/* the partitions */
	HgjSpillFilter filter;		/* whose words are in the file of `rows`, */
	uint64		filter_at;		/* here */
} HgjKept;

/* What of a build side memory does not hold (join/partition.c). */
typedef struct HgjSpilledBuild
{
	uint64		start;			/* of the hash that chooses a partition, */
	uint64		mul;			/* which is seeded, */
	uint64		end_mul;		/* and not the graph's */
	HgjColumn  *columns;
	HgjSpillLayout layout;
	HgjSpillRoom room;			/* of memory, for blocks that need no file */
	HgjSplit	split;			/* the one at hand */
	HgjSpillRun *runs;			/* its partitions; NULL: there is no split */
	HgjSpillFilter filter;
	HgjKept		kept;
} HgjSpilledBuild;

/* The part of the memory limit that dictionaries, which outlive passes, may take. */
#define HGJ_DICTIONARY_SHARE	4

/* Those of several processes, which one of them merges, together. */
#define HGJ_SHARED_DICTIONARIES	((Size) 4 * 1024 * 1024)

typedef struct HgjBuildSide
{
	uint32		references;
	MemoryContext context;		/* of this, and of what is palloc'd for it */
	HgjAccount	account;		/* of host memory, but for the engine's: of this,
								 * and of what its maker needs to fill and probe it */
	const HgjEngine *engine;	/* the table's, if there is one */
	HgjPoll		poll;			/* of its calls */
	HgjTable   *table;
	HgjRowStore rows;
	int			ndictionaries;	/* of columns of the rows */
	HgjDictionary **dictionaries;
	HgjSpilledBuild *spilled;	/* NULL: there never was any */
	bool		long_keys;		/* the table has a text key that is a hash */
	uint32		total_rows;		/* row ids */
	uint64		graph_rows;		/* those that have an entry */
} HgjBuildSide;

extern HgjBuildSide *hgj_build_side_create(void);
extern HgjBuildSide *hgj_build_side_hold(HgjBuildSide *side);
extern void hgj_build_side_release(HgjBuildSide *side);
extern void hgj_build_side_lay_out(HgjBuildSide *side, const HgjColumn *columns,
								   int ncols, bool shared,
								   double expected_rows, bool share_records);
extern void hgj_build_side_spill(HgjBuildSide *side, const HgjColumn *columns,
								 int ncols, uint32 nwords);
extern void hgj_build_side_drop_split(HgjBuildSide *side);
extern void hgj_build_side_drop_kept(HgjBuildSide *side);
extern void hgj_build_side_clear(HgjBuildSide *side);
extern void hgj_build_side_free(HgjBuildSide *side);
extern HgjDictionary *hgj_build_side_encode(HgjBuildSide *side, Node *expr,
											Oid equality, int16 attlen,
											bool shared);
extern bool hgj_build_side_codes_are_full(const HgjBuildSide *side);
extern Size hgj_build_side_code_bytes(const HgjBuildSide *side);

#endif							/* HGJ_BUILD_SIDE_H */
