/*-------------------------------------------------------------------------
 *
 * progress.h
 *	  How far the nodes of running queries are, where other sessions see it
 *	  (progress.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_PROGRESS_H
#define HGJ_PROGRESS_H

#include "compat.h"

typedef enum HgjProgressKind
{
	HGJ_PROGRESS_JOIN,
	HGJ_PROGRESS_AGGREGATION
} HgjProgressKind;

typedef enum HgjProgressPhase
{
	HGJ_PROGRESS_STARTING,
	HGJ_PROGRESS_BUILDING,		/* reading the build side */
	HGJ_PROGRESS_TABLE,			/* making a table of it, with others or alone */
	HGJ_PROGRESS_PROBING,
	HGJ_PROGRESS_UNMATCHED,		/* returning build rows without a match */
	HGJ_PROGRESS_READING,		/* of aggregations, from here on */
	HGJ_PROGRESS_PARTITIONS,	/* reading rows again that were put aside */
	HGJ_PROGRESS_RETURNING
} HgjProgressPhase;

/* What is said of a node; no pointers. */
typedef struct HgjProgressRow
{
	int			pid;			/* 0: there is no node */
	int			leader_pid;		/* of a parallel worker, or 0 */
	Oid			database;
	Oid			role;			/* whose session it is */
	int			node;			/* number of the plan node */
	HgjProgressKind kind;
	HgjProgressPhase phase;
	uint64		build_rows;		/* read */
	uint64		build_expected; /* by the planner */
	uint64		outer_rows;		/* read; of an aggregation, its input's */
	uint64		blocks_done;	/* of the table that these come from, */
	uint64		blocks_total;	/* 0: not known */
	uint64		partitions_done;
	uint64		partitions_total;
	uint64		groups;
	uint64		spilled;		/* bytes */
	uint64		memory;
	char		device[64];		/* empty: not chosen yet */
} HgjProgressRow;

/* A node's own; all zero before it begins. */
typedef struct HgjProgress
{
	struct HgjProgressSlot *slot;	/* NULL: nobody is told */
	HgjProgressRow now;			/* what is shown next */
	uint64		blocks_before;	/* done, and in all, of tables that have been read */
	uint64		total_before;
} HgjProgress;

/* In the postmaster, when it loads the library. */
extern void hgj_progress_share(void);

/* Do sessions see each other's nodes?  Call hgj_progress_attach() first. */
extern bool hgj_progress_shared(void);

/* Before this process shows or reads anything.  Cheap when repeated. */
extern void hgj_progress_attach(void);

/* The node runs, or begins to.  False: there is no room to show it. */
extern bool hgj_progress_begin(HgjProgress *progress, HgjProgressKind kind,
							   int node);

/* Show progress->now. */
extern void hgj_progress_show(const HgjProgress *progress);

/* Of the table at hand, so many blocks have been read.  progress: or NULL. */
extern void hgj_progress_blocks(HgjProgress *progress, uint64 done,
								uint64 total);

/* What is read next is another table. */
extern void hgj_progress_next_table(HgjProgress *progress);

/* The node does not run any more.  Harmless when repeated, and on abort. */
extern void hgj_progress_end(HgjProgress *progress);

/*
 * A copy of what is shown in position i, from 0 on; false: there are no more.  Its
 * pid is 0 where no node is shown.
 */
extern bool hgj_progress_get(int i, HgjProgressRow *copy);

#endif							/* HGJ_PROGRESS_H */
