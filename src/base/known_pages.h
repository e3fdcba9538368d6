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

extern void hgj_pages_were_read(Oid relid, BlockNumber pages, BlockNumber npages);
extern double hgj_known_part(Oid relid, BlockNumber npages);

#endif							/* HGJ_KNOWN_PAGES_H */
