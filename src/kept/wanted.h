/*-------------------------------------------------------------------------
 *
 * wanted.h
 *	  Which columns scans have read of tables, and who loads them (wanted.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_WANTED_H
#define HGJ_WANTED_H

#include "compat.h"

#include "storage/block.h"
#include "utils/relcache.h"

/* Columns of one table that are to be loaded at once, at most. */
#define HGJ_ORDER_COLUMNS	64

typedef struct HgjLoadOrder
{
	Oid			table;
	int			n;
	AttrNumber	attnos[HGJ_ORDER_COLUMNS];
} HgjLoadOrder;

extern void hgj_wanted_share(void);
extern void hgj_wanted_note(Relation rel, const AttrNumber *attnos, int n,
							uint64 read, BlockNumber npages);

/* for the worker */
extern void hgj_wanted_serve(void);
extern bool hgj_wanted_next(HgjLoadOrder *order);
extern void hgj_wanted_done(const HgjLoadOrder *order, bool useful);

#endif							/* HGJ_WANTED_H */
