/*-------------------------------------------------------------------------
 *
 * load_columns.h
 *	  Decoding a table's columns once, to be kept (load_columns.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_LOAD_COLUMNS_H
#define HGJ_LOAD_COLUMNS_H

#include "compat.h"

#include "utils/relcache.h"

extern const char *hgj_load_obstacle(Relation rel);
extern int64 hgj_load_columns(Relation rel, const AttrNumber *attnos, int n);
extern int64 hgj_load_runs(Relation rel, const AttrNumber *attnos, int n,
						   uint32 first, uint32 end, bool (*stop) (void));

#endif							/* HGJ_LOAD_COLUMNS_H */
