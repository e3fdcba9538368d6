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

/* What loading has come to. */
typedef struct HgjLoadCounts
{
	int64		chunks;			/* put into the store */
	int64		in_vain;		/* of these, in place of ones that nobody had read */
	bool		full;			/* one found no room */
} HgjLoadCounts;

extern const char *hgj_load_obstacle(Relation rel);
extern HgjLoadCounts hgj_load_columns(Relation rel, const AttrNumber *attnos, int n,
									  bool may_evict);
extern HgjLoadCounts hgj_load_runs(Relation rel, const AttrNumber *attnos, int n,
								   uint32 first, uint32 end, const HgjRoom *room,
								   bool (*stop) (void));

/* load_report.c */
extern void hgj_load_report(Relation rel, const AttrNumber *attnos, int n,
							bool may_evict, uint64 evictions);

#endif							/* HGJ_LOAD_COLUMNS_H */
