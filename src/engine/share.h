/*-------------------------------------------------------------------------
 *
 * share.h
 *	  One HashGraph that several processes build together, and each probes:
 *	  a part of engine.h, which includes it.
 *
 * A participant appends its part of the rows to a table of its own.  Then all of
 * them build one graph in shared memory, the image.  The caller has the memory
 * and the barrier, the engine the algorithm:
 *
 *	  table_create, append *	as ever, each for itself, with the same spec
 *	  peak *		after every batch: what the build is going to take
 *	  part			what one has appended; the caller collects them all
 *	  step *		all call it, and meet at a barrier before the next call
 *	  attach		the image becomes the table's graph: probe it, as ever
 *
 * STEPS.  `next` comes out the same in all processes.  next.done: the image is
 * complete.  next.image_bytes > 0: one process allocates that many bytes of
 * shared memory, and the step that follows is given it as `image`, and the one
 * before it, if there is one, as `old_image`, which must stay until the barrier
 * behind that step.  A step that returned HGJ_CANCELLED may be called again, with
 * the same build, while the others wait; any other failure ends the build for all.
 * Between the first step and attach a table can be asked for memory, and
 * destroyed; nothing else.
 *
 * THE IMAGE is aligned to 64 bytes, and may lie at another address in every
 * process: there is no pointer in it.  Its contents need not be cleared.  It
 * belongs to the caller, who keeps it until the last table that is attached to it
 * has been probed for the last time.  table_destroy does not look at it.
 * `memory` counts private bytes only; what is needed of shared memory, filter and
 * match bits included, is image_bytes.
 *
 * LIMITS.  While rows are appended spec.memory_limit is each table's own.  Images
 * keep to nparts times as much (HGJ_LIMIT, for all, at the step that asks for one);
 * what the steps take besides has been announced by `peak`, and is not held against
 * the limit: what frees its chunks makes room for what orders another's rows.
 *
 * LATE PROCESSES.  Who has no part in the build creates a table with the same
 * spec, appends nothing, and attaches.
 *
 * PROBES.  All that engine.h says of a table that is built holds for one that is
 * attached, except: marks (HGJ_PROBE_MARK, mark) may be set by several processes
 * at once, and are all seen by one that comes after them by a barrier (one that
 * asks before sees some of them: a row that is not unmatched then has a mark);
 * clear_marks, and the dynamic operations, are HGJ_UNSUPPORTED.  A filter is made
 * once, for all; filter_tested and filter_rejected are the process's own.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_SHARE_H
#define HGJ_SHARE_H

/* At most so many participants. */
#define HGJ_MOST_PARTS		1024

/* What one participant has appended.  Plain data: it may be copied about. */
typedef struct HgjSharePart
{
	uint64_t	nrows;
	int64_t		min_key;		/* of a single key word, as an integer */
	int64_t		max_key;
} HgjSharePart;

/* What a participant passes to every step. */
typedef struct HgjShareBuild
{
	const HgjSharePart *parts;	/* of all, nparts; the same in every process */
	uint32_t	nparts;			/* 1 .. HGJ_MOST_PARTS */
	uint32_t	part;			/* which of them is this process's */
	uint32_t	total_rows;		/* row ids are below it; there may be gaps */
	void	   *image;			/* NULL before there is one */
	void	   *old_image;		/* the one before it, right after it was replaced;
								 * else NULL */
} HgjShareBuild;

typedef struct HgjShareNext
{
	bool		done;			/* attach */
	uint64_t	image_bytes;	/* 0: go on with the image there is */
} HgjShareNext;

typedef struct HgjShareMethods
{
	/* What has been appended to a table. */
	void		(*part) (const HgjTable *table, HgjSharePart *part);

	/*
	 * Bytes that this table's rows take at the height of a shared build: its
	 * private memory then, and its rows' share of the images.  The sum over all
	 * participants is no less than what they take together.  Constant time, to
	 * be called after every batch.
	 */
	uint64_t	(*peak) (const HgjTable *table);

	/* The next step; *next is set where it returns HGJ_OK. */
	HgjStatus	(*step) (HgjTable *table, const HgjShareBuild *build,
						 HgjShareNext *next, HgjError *err);

	/*
	 * Take the complete image for the table's graph.  HGJ_INVALID where it is
	 * none, or one of another spec.
	 */
	HgjStatus	(*attach) (HgjTable *table, void *image, HgjError *err);

	/*
	 * Of a table that is attached and keeps match bits: set a row's.  True in the
	 * one process that has found it unset.
	 */
	bool		(*claim) (HgjTable *table, uint32_t row);
} HgjShareMethods;

#endif							/* HGJ_SHARE_H */
