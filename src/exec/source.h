/*-------------------------------------------------------------------------
 *
 * source.h
 *	  Where a side of the join takes its rows from, a batch at a time.
 *
 * A source is a small vtable over one child plan.  Every source fills the same
 * batches; node.c picks the fastest one that is exactly equivalent.  There is
 * one today, tuples (any child, slot by slot), and its replay from a tuplestore
 * for joins that take several passes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_SOURCE_H
#define HGJ_SOURCE_H

#include "compat.h"

#include "exec/batch.h"
#include "nodes/execnodes.h"
#include "utils/tuplestore.h"

typedef struct HgjSource HgjSource;

typedef struct HgjSourceMethods
{
	const char *name;			/* as EXPLAIN spells it */

	/*
	 * Empty the batch, and fill it with up to max_rows rows (never more than
	 * its capacity).  Fewer rows do not mean the end; no row does.
	 */
	void		(*fill) (HgjSource *source, HgjBatch *batch, uint32 max_rows);

	/* Begin again; the child plan has been rescanned, where it is one. */
	void		(*rewind) (HgjSource *source);
} HgjSourceMethods;

struct HgjSource
{
	const HgjSourceMethods *methods;
	PlanState  *child;

	int			ncols;			/* columns that batches carry */
	HgjColumn  *columns;
	int			nkeys;
	HgjKey	   *keys;
	uint32		nwords;
	AttrNumber	last_attno;		/* highest plain column that is read */
	bool		keep_null_keys; /* rows with NULL keys are rows all the same */
	uint64		seed;
	ExprContext *econtext;		/* for key expressions and hash functions */
	bool		reset_econtext; /* they may leave garbage behind */
	TupleTableSlot *expr_slot;	/* what key expressions read: a scan tuple, */
	AttrNumber	expr_base;		/* in which the child's columns follow this */
	Bitmapset  *expr_attnos;	/* many others; those of the child they read */

	TupleTableSlot *peeked;		/* fetched, not yet in a batch */
	bool		at_end;

	Tuplestorestate *store;		/* several passes: the rows, kept or replayed */
	TupleTableSlot *store_slot;
	bool		keep_rows;		/* put what the child returns into `store` */
};

extern const HgjSourceMethods hgj_source_tuples;
extern const HgjSourceMethods hgj_source_replay;

extern bool hgj_source_peek(HgjSource *source);
extern void hgj_source_keep_rows(HgjSource *source, EState *estate);
extern void hgj_source_replay_rows(HgjSource *source);
extern void hgj_source_drop_rows(HgjSource *source);

#endif							/* HGJ_SOURCE_H */
