/*-------------------------------------------------------------------------
 *
 * store.h
 *	  Chunks of columns in shared memory (store.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_STORE_H
#define HGJ_STORE_H

#include "compat.h"

#include "access/xlogdefs.h"
#include "datatype/timestamp.h"
#include "kept/chunk.h"
#include "utils/relcache.h"

/* What a chunk is of.  No padding: it is hashed and compared as bytes. */
typedef struct HgjChunkKey
{
	HgjLocator	locator;
	Oid			table;
	Oid			type;
	uint32		attno;
	uint32		run;
} HgjChunkKey;

/* A chunk that is held, until hgj_store_release(). */
typedef struct HgjHeldChunk
{
	const HgjChunk *chunk;
	XLogRecPtr	map_lsn;		/* see map.c */
	int			slot;
} HgjHeldChunk;

/* What the view shows of a chunk. */
typedef struct HgjChunkFacts
{
	HgjChunkKey key;
	uint64		bytes;
	uint32		pages;
	uint32		rows;
	uint8		width;
	bool		by_value;
	uint64		uses;
	TimestampTz last_use;
} HgjChunkFacts;

extern void hgj_store_share(void);
extern bool hgj_store_exists(void);
extern HgjChunkKey hgj_store_key(Relation rel, AttrNumber attno, uint32 run);
extern bool hgj_store_hold(const HgjChunkKey *key, bool used, HgjHeldChunk *held);
extern void hgj_store_release(const HgjHeldChunk *held);
extern bool hgj_store_put(const HgjChunkKey *key, XLogRecPtr map_lsn,
						  const HgjChunk *chunk);
extern uint32 hgj_store_drop(Oid database, Oid table);
extern HgjChunkFacts *hgj_store_list(Oid database, uint32 *n);

/* map.c */
extern XLogRecPtr hgj_map_look(Relation rel, uint32 run, uint64 *pages);

#endif							/* HGJ_STORE_H */
