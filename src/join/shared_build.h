/*-------------------------------------------------------------------------
 *
 * shared_build.h
 *	  A build side that the processes of a parallel query make together
 *	  (shared_build.c), and where it goes if memory does not hold it
 *	  (shared_spill.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_SHARED_BUILD_H
#define HGJ_SHARED_BUILD_H

#include "compat.h"

#include "access/parallel.h"
#include "base/meeting.h"
#include "join/join_state.h"
#include "storage/barrier.h"
#include "storage/dsm.h"
#include "storage/sharedfileset.h"

/* What has become of it. */
typedef enum HgjSharedOutcome
{
	HGJ_SHARE_BUILT = 1,		/* there is a graph for all */
	HGJ_SHARE_SPILLED			/* there are files of all build rows */
} HgjSharedOutcome;

/* What one process has contributed. */
typedef struct HgjSharedPart
{
	HgjSharePart engine;
	uint64		rows;
	uint32		end;			/* from this record to its chunk's end is a gap */
	uint64		codes;			/* the place of its dictionaries (shared_codes.c) */
	HgjSpillRun run;			/* HGJ_SHARE_SPILLED: in the file of this part */
} HgjSharedPart;

/* In the query's dynamic shared memory. */
typedef struct HgjSharedBuild
{
	HgjMeeting	build;			/* of those who scan and build; HgjSharedOutcome */
	Barrier		probe;			/* of those who probe, if the last one returns build
								 * rows without a match */
	pg_atomic_uint32 full;		/* memory is */
	pg_atomic_uint64 bytes;		/* that all of them would hold at the height */
	pg_atomic_uint64 null_columns;	/* bits: some record has a NULL there */
	pg_atomic_uint32 long_keys;
	uint64		seed;
	HgjSharedChunks chunks;
	uint64		codes;			/* the place of the merged dictionaries */
	Size		image_bytes;
	dsa_pointer image;			/* the engine's */
	dsa_pointer old_image;
	pg_atomic_uint64 stale_chunks;	/* of a run before: to be freed */
	pg_atomic_uint64 stale_image;
	dsm_handle	segment;		/* this one, for the files */
	SharedFileSet files;
	int			most_parts;		/* processes that were planned */
	pg_atomic_uint32 nparts;	/* those of them that have come in time */
	HgjSharedPart parts[FLEXIBLE_ARRAY_MEMBER];
} HgjSharedBuild;

/* What this process has contributed. */
static inline HgjSharedPart *
hgj_own_part(const HgjJoinState *state)
{
	return &state->share.build->parts[state->share.part];
}

/* At the barrier `build`; true in one of those who have come there. */
static inline bool
hgj_share_meet(HgjSharedBuild *shared)
{
	return hgj_meeting_arrive(&shared->build, HGJ_WAIT_BUILD);
}

/* Callbacks of the node. */
extern Size hgj_share_estimate(CustomScanState *node, ParallelContext *pcxt);
extern void hgj_share_init(CustomScanState *node, ParallelContext *pcxt,
						   void *coordinate);
extern void hgj_share_init_again(CustomScanState *node, ParallelContext *pcxt,
								 void *coordinate);
extern void hgj_share_attach(CustomScanState *node, shm_toc *toc,
							 void *coordinate);
extern void hgj_share_shutdown(CustomScanState *node);

/* For phases.c. */
extern bool hgj_build_shared(HgjJoinState *state);
extern bool hgj_share_last_one(HgjJoinState *state);
extern void hgj_share_end_run(HgjJoinState *state);
extern void hgj_share_leave(HgjJoinState *state);

/* shared_codes.c */
extern void hgj_share_codes_publish(HgjJoinState *state);
extern void hgj_share_codes_merge(HgjJoinState *state);
extern void hgj_share_codes_take(HgjJoinState *state);

/* shared_spill.c */
extern void hgj_share_spill_rest(HgjJoinState *state, uint32 batch_rows);
extern void hgj_share_spill_close(HgjJoinState *state);
extern void hgj_share_read_files(HgjJoinState *state);
extern void hgj_share_free_blocks(HgjJoinState *state);
extern void hgj_share_end_files(HgjJoinState *state);

#endif							/* HGJ_SHARED_BUILD_H */
