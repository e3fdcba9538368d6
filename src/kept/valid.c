/*-------------------------------------------------------------------------
 *
 * valid.c
 *	  Which pages of a chunk are as they were when they were decoded.
 *
 * docs/internals.md, "Columns kept in memory", has the argument; in short:
 *
 * 1. A word of 64 pages has an LSN of the visibility map's page.  If a look at the map
 *	  finds the same one, those pages have not changed whose bits are set.
 * 2. Another LSN says only that some bit was set somewhere in 32,672 pages.  Then the
 *	  heap pages of the word are asked for their own LSNs.  Who changes the rows of a
 *	  page moves that beyond where WAL ended before the page was decoded; a page
 *	  that is not beyond it has not changed.
 * 3. Those that are, are noted in the chunk as changed, for ever; then the word has the
 *	  LSN of this look.  So are pages whose bits are not set any more, though nobody asks
 *	  for them now: somebody's look may be as old as when they were, with the same LSN, and
 *	  he would take them for asked.  A look that is older than that of the word says
 *	  nothing to others: it may be older than the chunk.
 *	  Pages that could not be kept of the column, though they were all-visible, are
 *	  looked after in the same way: as long as they have not changed, nobody need try
 *	  them again.
 *	  The whole chunk has an LSN, too: all its pages had been asked, or need not be, when
 *	  that was the map's and all their bits were set.  Then one comparison answers for
 *	  who finds the same LSN, and all bits set.
 * 4. Whoever holds the chunk may do that at any time.  The word's LSN is written after
 *	  the pages that have changed, and read before them, so that nobody takes a page
 *	  for unchanged on the word of an LSN that comes without it.  It does no harm if
 *	  two do so at once, and the older LSN stays: each is true by itself.
 *
 * No memory.  Pins and locks: one heap page at a time, in share mode.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "kept/store.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/snapmgr.h"

/*
 * May what is kept be read in this transaction?  Not by one that is serializable, nor
 * where VACUUM does not wait for old snapshots (docs/internals.md, 4 and 6).
 */
bool
hgj_kept_may_be_read(void)
{
	return !IsolationIsSerializable() && !OldSnapshotThresholdActive();
}

/* How many pages, from the first on without a gap, are all that are in the set; or 0. */
static uint32
first_pages(const uint64 *pages)
{
	int			w = 0;
	uint32		n;

	while (w < HGJ_RUN_WORDS && pages[w] == ~UINT64CONST(0))
		w++;
	n = w * 64;
	if (w < HGJ_RUN_WORDS && pages[w] != 0)
	{
		/* ones below the first zero */
		if ((pages[w] & (pages[w] + 1)) != 0)
			return 0;
		n += pg_popcount64(pages[w++]);
	}
	while (w < HGJ_RUN_WORDS && pages[w] == 0)
		w++;
	return w == HGJ_RUN_WORDS ? n : 0;
}

/* Have a look at the map, after the query's snapshot was taken. */
void
hgj_run_look(Relation rel, uint32 run, HgjRunLook *look)
{
	look->run = run;
	look->map_lsn = hgj_map_look(rel, run, look->visible);
	look->npages = first_pages(look->visible);
}

/* Where WAL ends, or what of it has been replayed. */
XLogRecPtr
hgj_wal_position(void)
{
	return RecoveryInProgress() ? GetXLogReplayRecPtr(NULL) : GetXLogInsertRecPtr();
}

/* A chunk that has just been made, of pages that were read after both. */
void
hgj_chunk_begin_validity(HgjChunk *chunk, const HgjRunLook *look,
						 XLogRecPtr decoded_after)
{
	chunk->decoded_after = decoded_after;
	chunk->npages = memcmp(look->visible, chunk->pages, sizeof(chunk->pages)) == 0 ?
		look->npages : 0;
	chunk->whole_lsn = look->map_lsn;
	for (int w = 0; w < HGJ_RUN_WORDS; w++)
	{
		chunk->unfit[w] = look->visible[w] & ~chunk->pages[w];
		pg_atomic_init_u64(&chunk->map_lsns[w], look->map_lsn);
		pg_atomic_init_u64(&chunk->changed[w], 0);
	}
}

/* Step 2: which of these pages may have changed? */
static uint64
find_changed(Relation rel, const HgjRunLook *look, uint32 word, uint64 pages,
			 XLogRecPtr since, BufferAccessStrategy strategy)
{
	BlockNumber start = hgj_run_start(look->run) + word * 64;
	BlockNumber nblocks = pages == 0 ? 0 : RelationGetNumberOfBlocks(rel);
	uint64		changed = 0;

	for (; pages != 0; pages &= pages - 1)
	{
		int			page = pg_rightmost_one_pos64(pages);
		bool		same = false;
		Buffer		buffer;

		CHECK_FOR_INTERRUPTS();
		if (start + page < nblocks)
		{
			buffer = ReadBufferExtended(rel, MAIN_FORKNUM, start + page, RBM_NORMAL,
										strategy);
			LockBuffer(buffer, BUFFER_LOCK_SHARE);
			same = BufferGetLSNAtomic(buffer) <= since;
			UnlockReleaseBuffer(buffer);
		}
		if (!same)
			changed |= UINT64CONST(1) << page;
	}
	return changed;
}

/*
 * The pages of a word that are as they were when the chunk was made, which is held:
 * those that it has, and those that could not be kept.
 */
uint64
hgj_chunk_same_pages(Relation rel, const HgjRunLook *look, uint32 word,
					 const HgjChunk *chunk, BufferAccessStrategy strategy)
{
	HgjChunk   *shared = unconstify(HgjChunk *, chunk);
	XLogRecPtr	lsn = pg_atomic_read_u64(&shared->map_lsns[word]);
	uint64		decoded = chunk->pages[word] | chunk->unfit[word];
	uint64		pages = look->visible[word] & decoded;
	uint64		changed;

	pg_read_barrier();
	pages &= ~pg_atomic_read_u64(&shared->changed[word]);
	if (lsn == look->map_lsn)
		return pages;

	changed = find_changed(rel, look, word, pages, chunk->decoded_after, strategy);
	if (look->map_lsn > lsn)
		changed |= decoded & ~look->visible[word];
	if (changed != 0)
		(void) pg_atomic_fetch_or_u64(&shared->changed[word], changed);
	if (look->map_lsn > lsn)
	{
		pg_write_barrier();
		pg_atomic_write_u64(&shared->map_lsns[word], look->map_lsn);
	}
	return pages & ~changed;
}

/* Those of them whose rows the chunk has. */
uint64
hgj_chunk_valid_pages(Relation rel, const HgjRunLook *look, uint32 word,
					  const HgjChunk *chunk, BufferAccessStrategy strategy)
{
	return hgj_chunk_same_pages(rel, look, word, chunk, strategy) & chunk->pages[word];
}

/*
 * Are the look's pages all that the held chunk has, and as they were?  False: each word of
 * them has to be asked.
 */
bool
hgj_chunk_is_whole(const HgjRunLook *look, HgjChunkHead *head)
{
	return look->npages > 0 && head->npages == look->npages &&
		pg_atomic_read_u64(&head->whole_lsn) == look->map_lsn;
}

/* Each word of the look's pages has been asked, and all of them are valid. */
void
hgj_chunk_note_whole(const HgjRunLook *look, HgjChunkHead *head)
{
	if (look->npages > 0 && head->npages == look->npages &&
		look->map_lsn > pg_atomic_read_u64(&head->whole_lsn))
		pg_atomic_write_u64(&head->whole_lsn, look->map_lsn);
}
