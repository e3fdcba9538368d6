/*-------------------------------------------------------------------------
 *
 * gather.h
 *	  Columns of pairs of rows, from the outer batch and from the build side's
 *	  records (gather.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_GATHER_H
#define HGJ_GATHER_H

#include "compat.h"

#include "columns/batch.h"
#include "nodes/primnodes.h"

struct HgjJoinState;
struct HgjSource;

/* A column of a source, and its values for the pairs at hand. */
typedef struct HgjPairColumn
{
	bool		inner;
	int			column;			/* of outer.columns or inner.columns */
	uint8		width;
	HgjBuffer	buffer;
} HgjPairColumn;

/* Columns of pairs: what programs over pairs take, and what joins return. */
typedef struct HgjPairColumns
{
	const struct HgjJoinState *join;
	int			n;
	HgjPairColumn *columns;
	const HgjVector **vectors;	/* one per column */
	int		   *numbers;		/* of columns of the outer side, then the inner one;
								 * -1: it is none of these */
} HgjPairColumns;

extern int	hgj_scan_column(const struct HgjSource *source, AttrNumber scan_attno);
extern void hgj_pair_columns_init(HgjPairColumns *pairs,
								  const struct HgjJoinState *join);
extern int	hgj_pair_column(HgjPairColumns *pairs, AttrNumber scan_attno);
extern int	hgj_pair_lookup(void *pairs, const Var *var);
extern void hgj_gather_pairs(HgjPairColumns *pairs, const uint32 *outer_rows,
							 const uint32 *inner_rows, uint32 n);
extern void hgj_gather_in_place(HgjPairColumns *pairs,
								const uint32 *outer_rows,
								const uint32 *inner_rows, uint32 n);

#endif							/* HGJ_GATHER_H */
