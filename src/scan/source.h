/*-------------------------------------------------------------------------
 *
 * source.h
 *	  Where a side of the join takes its rows from, a batch at a time.
 *
 * A source is a small vtable over one child plan.  Every source fills the same
 * batches; setup.c picks the fastest one that is exactly equivalent: tuples
 * (any child, slot by slot), pages (a sequential scan's table, page by page),
 * batches (the child returns them, batch_node.h).  A join that takes several passes
 * reads its outer side by tuples, and then from a tuplestore (replay).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_SOURCE_H
#define HGJ_SOURCE_H

#include "compat.h"

#include "base/progress.h"
#include "base/reasons.h"
#include "columns/batch.h"
#include "nodes/execnodes.h"
#include "utils/tuplestore.h"

typedef struct HgjSource HgjSource;
struct HgjHeldChunk;
struct HgjJoinState;
struct HgjKeptForm;
struct HgjKeptRange;

typedef struct HgjSourceMethods
{
	const char *name;			/* as EXPLAIN spells it */

	/*
	 * Empty the batch, and fill it with up to max_rows rows (never more than
	 * its capacity).  Fewer rows do not mean the end; no row does.
	 */
	void		(*fill) (HgjSource *source, HgjBatch *batch, uint32 max_rows);

	/*
	 * Begin again; the child plan is rescanned by the caller, right before or
	 * right after.  The batch filled last is void.
	 */
	void		(*rewind) (HgjSource *source);

	/* The tuples source takes over; NULL: the child need not know. */
	void		(*give_way) (HgjSource *source);

	/* Give back pins and what is not palloc'd; NULL: there is nothing. */
	void		(*end) (HgjSource *source);
} HgjSourceMethods;

/* The most joins that a scan asks about its rows (key_filters.c). */
#define HGJ_MOST_KEY_FILTERS	8

/* What one of them has said; no pointers (parallel.h). */
typedef struct HgjKeyFilterStats
{
	uint64		tested;			/* rows */
	uint64		passed;
	int			place;			/* when it was last looked at, from 1; 0: none */
} HgjKeyFilterStats;

static inline void
hgj_key_filter_stats_add(HgjKeyFilterStats *to, const HgjKeyFilterStats *from)
{
	to->tested += from->tested;
	to->passed += from->passed;
}

/* Pages that a scan has taken from columns kept in memory, and that it has read. */
typedef struct HgjPageCounts
{
	uint64		kept;
	uint64		skipped;		/* of those */
	uint64		fetched;		/* of those, too: for columns that were not kept */
	uint64		seen;			/* of those: another scan of the query has run the quals */
	uint64		read;
	bool		on_device;		/* a device has taken them (device_sides.c) */
} HgjPageCounts;

static inline void
hgj_page_counts_add(HgjPageCounts *to, const HgjPageCounts *from)
{
	to->kept += from->kept;
	to->skipped += from->skipped;
	to->fetched += from->fetched;
	to->seen += from->seen;
	to->read += from->read;
	to->on_device |= from->on_device;
}

/* What a scan asks the join about the rows of its outer side; see page_filters.h. */
typedef struct HgjFilterMethods
{
	/* Before a batch is filled: can it be asked, and is that worth it? */
	bool		(*begin) (struct HgjJoinState *join, const HgjSource *scan,
						  bool own);

	/* Which of these keys may have a match?  Their rows' numbers. */
	uint32		(*ask) (struct HgjJoinState *join, const HgjKeys *keys,
						uint32 *rows);

	/* The same of keys that are kept as integers, if they can be asked about so. */
	bool		(*ask_packed) (struct HgjJoinState *join, const HgjPackedKeys *keys,
							   uint32 *rows, uint32 *n);

	/* It is asked, or not, about the rows of the next batch. */
	void		(*chosen) (struct HgjJoinState *join, bool asked);

	/* The side whose rows keys are looked up in. */
	const PlanState *(*inner) (const struct HgjJoinState *join);
} HgjFilterMethods;

struct HgjSource
{
	const HgjSourceMethods *methods;
	PlanState  *child;
	HgjSourceReason reason;		/* why the methods are those of tuples */
	List	   *row_quals;		/* of the child, that pages runs row by row */
	void	   *private_state;	/* of the methods */

	int			ncols;			/* columns that batches carry */
	HgjColumn  *columns;
	int			nkeys;
	HgjKey	   *keys;
	uint32		nwords;
	AttrNumber	last_attno;		/* highest plain column that is read */
	bool		of_table;		/* pages: columns' attnos are the table's, not those
								 * of the child's output */
	bool		leave_quals;	/* pages: somebody else runs the child's */
	bool		keep_null_keys; /* rows with NULL keys are rows all the same */
	struct HgjJoinState *filter_of;	/* the join, while rows that it could not
									 * match are of no use to it; or NULL */
	const HgjFilterMethods *filter; /* of that join */
	bool		careful;		/* set before each fill: not every row may be
								 * wanted, so none is to raise an error before
								 * those before it have been returned */
	bool		keys_may_raise; /* making key words can raise an error ... */
	bool		keys_raise_at_once;	/* ... that cannot be put aside */
	bool		child_looked_at;	/* child_may_raise means something */
	bool		child_may_raise;	/* so can asking the child for a row */
	uint64		seed;
	ExprContext *econtext;		/* for key expressions and hash functions */
	bool		reset_econtext; /* they may leave garbage behind */
	TupleTableSlot *expr_slot;	/* what key expressions read: a scan tuple, */
	AttrNumber	expr_base;		/* in which the child's columns follow this */
	Bitmapset  *expr_attnos;	/* many others; those of the child they read */

	TupleTableSlot *peeked;		/* fetched, not yet in a batch */
	bool		at_end;
	uint64		rows_read;		/* that the child has returned, or would have */
	uint64		rows_singly;	/* that were evaluated alone, being `careful` */
	HgjProgress *progress;		/* where pages shows its blocks, or NULL */

	Tuplestorestate *store;		/* several passes: the rows, kept or replayed */
	TupleTableSlot *store_slot;
	bool		keep_rows;		/* put what the child returns into `store` */
};

extern const HgjSourceMethods hgj_source_tuples;
extern const HgjSourceMethods hgj_source_pages;
extern const HgjSourceMethods hgj_source_batches;

/*
 * Once columns and keys of the side are known, at executor start: take over
 * the child if this source can be exactly equivalent.  True sets the methods
 * and the private state; false leaves everything as it was and sets `reason`.
 */
extern bool hgj_source_use_pages(HgjSource *source, EState *estate);
extern bool hgj_source_use_batches(HgjSource *source);

/* source_choice.c */
extern void hgj_choose_source(HgjSource *source, const char *side, const char *node,
							  EState *estate);

/* Nanoseconds for a row to go through one join, and into a batch. */
#define HGJ_ROW_JOIN_COST		8.0

extern bool hgj_pages_offer(HgjSource *source, struct HgjJoinState *join,
							HgjSource *asks, const AttrNumber *columns,
							double saved, HgjKeyFilterStats *stats);
extern bool hgj_pages_quals_may_wait(const HgjSource *source);
extern bool hgj_pages_may_be_kept(const HgjSource *source);
extern void hgj_pages_take_decimals(HgjSource *source, const bool *takes);
extern void hgj_pages_count(const HgjSource *source, HgjPageCounts *counts);
extern bool hgj_pages_offer_ranges(HgjSource *source, const struct HgjKeptForm *forms);
extern void hgj_ranges_begin(HgjSource *source);
extern void hgj_ranges_forget(HgjSource *source);
extern bool hgj_ranges_next(HgjSource *source, struct HgjKeptRange *range,
							struct HgjHeldChunk *chunks, uint32 *starts);
extern void hgj_ranges_leave(HgjSource *source, const struct HgjKeptRange *range);
extern void hgj_ranges_end(HgjSource *source);
extern void hgj_ranges_taken(HgjSource *source, uint64 rows);
extern void hgj_ranges_take_back(HgjSource *source, const struct HgjKeptRange *ranges,
								 uint32 n, uint64 rows);
extern void hgj_ranges_leave_rest(HgjSource *source);
extern int	hgj_pages_nfilters(const HgjSource *source);
extern List *hgj_pages_filter(const HgjSource *source, int f, const PlanState **inner);

/* chosen_rows.c: rows of ranges that another source over the same scan has offered */
extern void hgj_chosen_begin(HgjSource *source, HgjBatch *batch);
extern uint32 hgj_chosen_take(HgjSource *source, HgjBatch *batch,
							  const struct HgjKeptRange *range, const uint32 *rows,
							  uint32 n, uint32 max_rows);
extern void hgj_chosen_end(HgjSource *source, HgjSource *from);

extern void hgj_source_borrow(const HgjSource *source, HgjBatch *batch,
							  const HgjBatch *from);

extern bool hgj_source_peek(HgjSource *source);
extern void hgj_source_keep_rows(HgjSource *source, EState *estate);
extern void hgj_source_replay_rows(HgjSource *source);
extern void hgj_source_drop_rows(HgjSource *source);

#endif							/* HGJ_SOURCE_H */
