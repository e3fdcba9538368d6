/*-------------------------------------------------------------------------
 *
 * build_side.h
 *	  The build side of a join: the engine's table, and the rows behind its row
 *	  ids (build_side.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_BUILD_SIDE_H
#define HGJ_BUILD_SIDE_H

#include "compat.h"

#include "base/account.h"
#include "base/poll.h"
#include "columns/row_store.h"
#include "engine/engine.h"

/* The part of the memory limit that dictionaries, which outlive passes, may take. */
#define HGJ_DICTIONARY_SHARE	4

typedef struct HgjBuildSide
{
	uint32		references;
	MemoryContext context;		/* of this, and of what is palloc'd for it */
	HgjAccount	account;		/* of host memory, but for the engine's */
	const HgjEngine *engine;	/* the table's, if there is one */
	HgjPoll		poll;			/* of its calls */
	HgjTable   *table;
	HgjRowStore rows;
	int			ndictionaries;	/* of columns of the rows */
	HgjDictionary **dictionaries;
	bool		long_keys;		/* the table has a text key that is a hash */
	uint32		total_rows;		/* row ids */
	uint64		graph_rows;		/* those that have an entry */
} HgjBuildSide;

extern HgjBuildSide *hgj_build_side_create(void);
extern HgjBuildSide *hgj_build_side_hold(HgjBuildSide *side);
extern void hgj_build_side_release(HgjBuildSide *side);
extern void hgj_build_side_lay_out(HgjBuildSide *side, const HgjColumn *columns,
								   int ncols, double expected_rows,
								   bool share_records);
extern void hgj_build_side_clear(HgjBuildSide *side);
extern void hgj_build_side_free(HgjBuildSide *side);
extern HgjDictionary *hgj_build_side_encode(HgjBuildSide *side, Node *expr,
											Oid equality, int16 attlen);
extern bool hgj_build_side_codes_are_full(const HgjBuildSide *side);
extern Size hgj_build_side_code_bytes(const HgjBuildSide *side);

#endif							/* HGJ_BUILD_SIDE_H */
