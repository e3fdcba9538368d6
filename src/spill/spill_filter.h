/*-------------------------------------------------------------------------
 *
 * spill_filter.h
 *	  A filter of rows that wait on files (spill_filter.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_SPILL_FILTER_H
#define HGJ_SPILL_FILTER_H

#include "compat.h"

#include "base/account.h"

/* A filter of the rows that wait: is there one of that hash? */
typedef struct HgjSpillFilter
{
	uint64	   *words;			/* hgj_mem_alloc'd; NULL: everything may be */
	Size		bytes;			/* of memory, which counts in: */
	HgjAccount *account;
	Size		nwords;
	int			folds;			/* that the number of words allows */
	uint64		rows;			/* that it was told of */
	uint32		tested;			/* in the window at hand */
	uint32		rejected;
	uint32		pause;			/* rows that are not asked about meanwhile */
} HgjSpillFilter;

extern void hgj_spill_filter_make(HgjSpillFilter *filter, double rows,
								  Size most_bytes, HgjAccount *account);
extern void hgj_spill_filter_alloc(HgjSpillFilter *filter, HgjAccount *account);
extern void hgj_spill_filter_add(HgjSpillFilter *filter, const uint64 *hashes,
								 uint32 n);
extern void hgj_spill_filter_settle(HgjSpillFilter *filter);
extern uint32 hgj_spill_filter_test(HgjSpillFilter *filter, uint64 *hashes,
									uint32 *rows, uint32 n);
extern void hgj_spill_filter_free(HgjSpillFilter *filter);

#endif							/* HGJ_SPILL_FILTER_H */
