/*-------------------------------------------------------------------------
 *
 * recent_buffers.h
 *	  In which buffers this session has found a table's blocks
 *	  (recent_buffers.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_RECENT_BUFFERS_H
#define HGJ_RECENT_BUFFERS_H

#include "compat.h"

#include "storage/block.h"
#include "storage/buf.h"
#include "utils/rel.h"

typedef struct HgjRecentTable
{
	HgjLocator	locator;
	BlockNumber nblocks;		/* that are remembered, the first of the table */
	Buffer	   *buffers;		/* per block; InvalidBuffer: not known */
	uint64		id;				/* no two tables have had the same one; 0: none */
	uint64		used;			/* the larger, the later */
} HgjRecentTable;

/* A scan's way to its table's, which may be given to another table meanwhile. */
typedef struct HgjRecentBuffers
{
	HgjRecentTable *table;		/* or NULL */
	uint64		id;
} HgjRecentBuffers;

extern HgjRecentBuffers hgj_recent_buffers(Relation rel, BlockNumber nblocks);

/* The place for the block's buffer, or NULL. */
static inline Buffer *
hgj_recent_buffer(const HgjRecentBuffers *recent, BlockNumber block)
{
	HgjRecentTable *table = recent->table;

	if (table == NULL || table->id != recent->id || block >= table->nblocks)
		return NULL;
	return &table->buffers[block];
}

#endif							/* HGJ_RECENT_BUFFERS_H */
