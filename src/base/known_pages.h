/*-------------------------------------------------------------------------
 *
 * known_pages.h
 *	  How much of a table this session has read (known_pages.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_KNOWN_PAGES_H
#define HGJ_KNOWN_PAGES_H

#include "compat.h"

#include "storage/block.h"

/* Of tables with fewer pages nothing is known. */
#define HGJ_FEWEST_KNOWN_PAGES	1024

extern void hgj_pages_were_read(Oid relid, BlockNumber pages, BlockNumber passed,
								BlockNumber npages);
extern double hgj_known_part(Oid relid, BlockNumber npages);

#endif							/* HGJ_KNOWN_PAGES_H */
