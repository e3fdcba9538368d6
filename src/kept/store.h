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
#include "storage/bufmgr.h"
#include "utils/relcache.h"

/* What a chunk is of.  No padding: it is hashed and compared as bytes. */
typedef struct HgjChunkKey
{
	HgjLocator	locator;
	TransactionId database;		/* mark of the locator's database (database.c) */
	Oid			table;
	Oid			type;
	uint32		attno;
	uint32		run;
} HgjChunkKey;

/* A chunk that is held, until hgj_store_release(). */
typedef struct HgjHeldChunk
{
	const HgjChunk *chunk;		/* NULL: there is none, and nothing is held */
	HgjChunkHead *head;
	int			slot;
} HgjHeldChunk;

/* What the view shows of a chunk. */
typedef struct HgjChunkFacts
{
	HgjChunkKey key;
	uint64		id;
	uint64		bytes;
	uint32		pages;
	uint32		rows;
	uint8		width;
	bool		by_value;
	uint64		uses;
	uint64		saved;			/* nanoseconds, estimated */
	TimestampTz last_use;		/* 0: never */
	uint64		device_bytes;	/* of copies; for who asks about them */
} HgjChunkFacts;

extern void hgj_store_share(void);
extern bool hgj_store_exists(void);
extern const void *hgj_store_memory(Size *bytes);
extern const uint64 *hgj_store_filled(void);
extern double hgj_store_huge_part(void);
extern bool hgj_table_may_be_kept(Relation rel);
extern HgjChunkKey hgj_store_key(Relation rel, AttrNumber attno, uint32 run);
extern bool hgj_store_hold(const HgjChunkKey *keys, const bool *may_miss, int n,
						   HgjHeldChunk *held);
extern bool hgj_store_hold_next(int *next, uint64 after, bool used,
								HgjHeldChunk *held);
extern void hgj_store_used(const HgjHeldChunk *held, uint64 saved, TimestampTz now);
extern bool hgj_store_holds(const HgjHeldChunk *held);
extern bool hgj_store_was_used(const HgjHeldChunk *held);
extern bool hgj_store_look(const HgjChunkKey *key, uint64 *pages, uint32 *left_out);
extern bool hgj_store_may_have(Oid table);
extern uint64 hgj_store_changes(void);
extern uint64 hgj_store_last_id(void);
extern uint64 hgj_store_evictions(void);
extern uint64 hgj_store_own_evictions(void);
extern void hgj_store_lend(void (*wait) (void));
extern void hgj_store_release_read(const HgjHeldChunk *held);
extern void hgj_store_release(const HgjHeldChunk *held);
extern Size hgj_store_most_bytes(void);
/* Which chunks may make room for those of a load. */
typedef struct HgjRoom
{
	bool		may_evict;		/* no chunk does if this is false */
	uint64		newest;			/* id of the last chunk that may */
} HgjRoom;

extern bool hgj_store_put(const HgjChunkKey *key, const HgjChunk *chunk,
						  const HgjRoom *room);
extern void hgj_store_forget(const HgjChunkKey *key);
extern uint32 hgj_store_drop(Oid database, Oid table, AttrNumber attno);
extern HgjChunkFacts *hgj_store_list(bool all, uint32 *n);
extern uint64 *hgj_store_ids(uint32 *n);

/* database.c */
extern TransactionId hgj_database_mark(void);
extern bool hgj_database_is(Oid database, TransactionId mark);

/* gone.c */
extern void hgj_gone_install(void);
extern void hgj_store_forget_gone(void);

/* kept_part.c */
extern double hgj_kept_part(Relation rel, const AttrNumber *attnos, int n,
							BlockNumber npages);

/* map.c */
extern XLogRecPtr hgj_map_look(Relation rel, uint32 run, uint64 *pages);

/* A look at the pages of a run. */
typedef struct HgjRunLook
{
	uint32		run;
	XLogRecPtr	map_lsn;
	uint32		npages;			/* the first so many are all-visible, and no others; or 0 */
	uint64		visible[HGJ_RUN_WORDS];
} HgjRunLook;

/* valid.c */
extern bool hgj_kept_may_be_read(void);
extern void hgj_run_look(Relation rel, uint32 run, HgjRunLook *look);
extern XLogRecPtr hgj_wal_position(void);
extern void hgj_chunk_begin_validity(HgjChunk *chunk, const HgjRunLook *look,
									 XLogRecPtr decoded_after);
extern bool hgj_chunk_is_whole(const HgjRunLook *look, HgjChunkHead *head);
extern void hgj_chunk_note_whole(const HgjRunLook *look, HgjChunkHead *head);
extern uint64 hgj_chunk_same_pages(Relation rel, const HgjRunLook *look, uint32 word,
								   const HgjChunk *chunk,
								   BufferAccessStrategy strategy);
extern uint64 hgj_chunk_valid_pages(Relation rel, const HgjRunLook *look, uint32 word,
									const HgjChunk *chunk,
									BufferAccessStrategy strategy);

#endif							/* HGJ_STORE_H */
