/*-------------------------------------------------------------------------
 *
 * seen_quals.h
 *	  Rows that have passed the quals of another scan of the query (seen_quals.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_SEEN_QUALS_H
#define HGJ_SEEN_QUALS_H

#include "compat.h"

#include "nodes/execnodes.h"
#include "scan/page_columns.h"

typedef struct HgjSeenQuals HgjSeenQuals;

extern HgjSeenQuals *hgj_seen_quals_join(SeqScanState *node, List *quals, const List *attnos,
										 bool by_row);
extern uint32 hgj_seen_quals_read(const HgjSeenQuals *seen, const HgjKeptRows *slice, uint32 n,
								  uint32 *selection, uint32 *passed);
extern void hgj_seen_quals_note(HgjSeenQuals *seen, const HgjKeptRows *slice, uint32 n,
								const uint32 *selection, uint32 passed, BlockNumber npages);

#endif							/* HGJ_SEEN_QUALS_H */
