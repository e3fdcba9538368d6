/*-------------------------------------------------------------------------
 *
 * load_report.c
 *	  What hashgraph_join_load() says where it has kept less than it was asked for: a WARNING
 *	  with the reasons, and what to do about each.
 *
 * 1. When all is loaded, the visibility map and the store are looked at once more, run by
 *	  run: of the pages that are all-visible, which ones do the chunks have?  So what had
 *	  been kept before counts, and what others have put out meanwhile does not.
 *	  Pages that are not all-visible are told of, unless all of them are new: from 16 on,
 *	  COPY and its like leave some behind that nobody has written to yet, VACUUM
 *	  leaves them as they are, and there is nothing on them to be kept.
 * 2. Why a page is not there, its chunk knows (HgjLeftOut).  If there is no chunk, there was
 *	  no room for it, or others have needed that since.  What is left are pages that have
 *	  changed while they were loaded.
 * 3. Chunks that had to make room for those of this load are told of, too, in a NOTICE: what
 *	  they were of is not kept as a whole any longer, though somebody was told that it was.
 *
 * Memory: the caller's context.  Locks: the store's and the map's, as store.c and map.c say,
 * and the content locks of pages that may be new, in share mode, one at a time.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "kept/store.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "scan/load_columns.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

/* Columns that a message names. */
#define MOST_NAMED		10

/* What becomes of a column. */
typedef struct Outcome
{
	int64		left_out[HGJ_LEFT_OUT_REASONS]; /* pages, by reason */
	int64		no_room;
	int64		changed;
} Outcome;

static bool
is_whole(const Outcome *outcome)
{
	for (int i = 0; i < HGJ_LEFT_OUT_REASONS; i++)
		if (outcome->left_out[i] > 0)
			return false;
	return outcome->no_room == 0 && outcome->changed == 0;
}

/* Steps 1 and 2 for a column of a run, so many of whose pages are all-visible. */
static void
add_column(const HgjChunkKey *key, const uint64 *visible, int64 nvisible, Outcome *outcome)
{
	uint64		pages[HGJ_RUN_WORDS];
	uint32		left_out[HGJ_LEFT_OUT_REASONS];
	int64		missing = nvisible;

	if (!hgj_store_look(key, pages, left_out))
	{
		outcome->no_room += nvisible;
		return;
	}
	for (int w = 0; w < HGJ_RUN_WORDS; w++)
		missing -= pg_popcount64(pages[w] & visible[w]);
	for (int i = 0; i < HGJ_LEFT_OUT_REASONS; i++)
	{
		int64		known = Min(missing, left_out[i]);

		outcome->left_out[i] += known;
		missing -= known;
	}
	outcome->changed += missing;
}

static bool
is_new(Relation rel, BlockNumber block, BufferAccessStrategy strategy)
{
	Buffer		buffer = ReadBufferExtended(rel, MAIN_FORKNUM, block, RBM_NORMAL, strategy);
	bool		is;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	is = PageIsNew(BufferGetPage(buffer));
	UnlockReleaseBuffer(buffer);
	return is;
}

/* Step 1: are all pages of the run new that are not all-visible? */
static bool
others_are_new(Relation rel, uint32 run, const uint64 *visible, BlockNumber nblocks,
			   BufferAccessStrategy strategy)
{
	BlockNumber start = hgj_run_start(run);
	BlockNumber end = Min(hgj_run_start(run + 1), nblocks);

	for (BlockNumber block = start; block < end; block++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!hgj_run_has(visible, block - start) && !is_new(rel, block, strategy))
			return false;
	}
	return true;
}

/*
 * Steps 1 and 2 for all of the table: of its nblocks pages, how many are not all-visible?
 * None, if these are new.
 */
static int64
look(Relation rel, const AttrNumber *attnos, int n, BlockNumber nblocks, Outcome *outcomes)
{
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);
	int64		all = 0;
	bool		are_new = true;

	for (uint32 run = 0; hgj_run_start(run) < nblocks; run++)
	{
		uint64		visible[HGJ_RUN_WORDS];
		int64		nvisible;

		CHECK_FOR_INTERRUPTS();
		(void) hgj_map_look(rel, run, visible);
		nvisible = (int64) pg_popcount((const char *) visible, sizeof(visible));
		for (int i = 0; i < n && nvisible > 0; i++)
		{
			HgjChunkKey key = hgj_store_key(rel, attnos[i], run);

			add_column(&key, visible, nvisible, &outcomes[i]);
		}
		are_new = are_new && others_are_new(rel, run, visible, nblocks, strategy);
		all += nvisible;
	}
	FreeAccessStrategy(strategy);
	return are_new || all > nblocks ? 0 : nblocks - all;
}

static void
append_count(StringInfo text, int64 pages, const char *what)
{
	if (pages > 0)
		appendStringInfo(text, "%s " INT64_FORMAT " %s",
						 text->data[text->len - 1] == ':' ? "" : ",", pages, what);
}

static void
append_column(StringInfo text, const char *name, const Outcome *outcome)
{
	appendStringInfo(text, "%sPages without column \"%s\":", text->len > 0 ? "\n" : "", name);
	append_count(text, outcome->left_out[HGJ_LEFT_OUT_LACKING],
				 "with rows from before it was added");
	append_count(text, outcome->left_out[HGJ_LEFT_OUT_EXTERNAL], "with values out of line");
	append_count(text, outcome->left_out[HGJ_LEFT_OUT_TOO_LARGE],
				 "with more than the memory for columns takes at once");
	append_count(text, outcome->no_room, "for which there was no room");
	append_count(text, outcome->changed, "that have changed meanwhile");
	appendStringInfoChar(text, '.');
}

/* What there is to do, by what is the matter with any column; sum has all of them. */
static char *
hints(const Outcome *sum, bool may_evict)
{
	StringInfoData text;

	initStringInfo(&text);
	if (sum->left_out[HGJ_LEFT_OUT_LACKING] > 0)
		appendStringInfoString(&text, "VACUUM FULL gives all rows all columns.  ");
	if (sum->left_out[HGJ_LEFT_OUT_EXTERNAL] > 0)
		appendStringInfoString(&text, "Values out of line cannot be kept; a larger toast_tuple_target, or SET STORAGE MAIN, keeps more of those in line that are written from then on.  ");
	if (sum->no_room > 0 && !may_evict)
		appendStringInfoString(&text, "Columns that are kept already make room only for superusers, and where one has set hashgraph_join.load_evicts.  ");
	if (sum->left_out[HGJ_LEFT_OUT_TOO_LARGE] > 0 || sum->no_room > 0)
		appendStringInfoString(&text, "Increase hashgraph_join.column_memory, or load fewer columns.  ");
	if (sum->changed > 0)
		appendStringInfoString(&text, "VACUUM the table when the transactions that have written to it, and all that are older, have ended and are on disk.  ");
	appendStringInfoString(&text, "Then load it again.");
	return text.data;
}

/* Step 2: invisible: so many of the nblocks pages are not all-visible. */
static void
warn(Relation rel, const AttrNumber *attnos, int n, const Outcome *outcomes,
	 BlockNumber nblocks, int64 invisible, bool may_evict)
{
	Outcome		sum = {.changed = invisible};
	StringInfoData text;
	int			named = 0;

	initStringInfo(&text);
	if (invisible > 0)
		appendStringInfo(&text, "Pages that are not all-visible: " INT64_FORMAT " of %u.",
						 invisible, nblocks);
	for (int i = 0; i < n; i++)
	{
		if (is_whole(&outcomes[i]))
			continue;
		if (named++ < MOST_NAMED)
			append_column(&text, NameStr(TupleDescAttr(RelationGetDescr(rel),
													   attnos[i] - 1)->attname),
						  &outcomes[i]);
		for (int r = 0; r < HGJ_LEFT_OUT_REASONS; r++)
			sum.left_out[r] += outcomes[i].left_out[r];
		sum.no_room += outcomes[i].no_room;
		sum.changed += outcomes[i].changed;
	}
	if (named > MOST_NAMED)
		appendStringInfo(&text, "\nColumns besides these: %d.", named - MOST_NAMED);
	if (text.len > 0)
		ereport(WARNING,
				(errmsg("columns of table \"%s\" are not kept of all of its pages",
						RelationGetRelationName(rel)),
				 errdetail_internal("%s", text.data),
				 errhint("%s", hints(&sum, may_evict))));
}

/*
 * These columns were to be kept, for which chunks that were there might have had to make
 * room (may_evict), and so many have: say what has not come about.
 */
void
hgj_load_report(Relation rel, const AttrNumber *attnos, int n, bool may_evict,
				uint64 evictions)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	Outcome    *outcomes;
	int64		invisible;

	if (n == 0)
		return;
	outcomes = palloc0(mul_size(n, sizeof(Outcome)));
	invisible = look(rel, attnos, n, nblocks, outcomes);
	warn(rel, attnos, n, outcomes, nblocks, invisible, may_evict);
	if (evictions > 0)
		ereport(NOTICE,
				(errmsg("chunks of columns that have made room for those of table \"%s\": " UINT64_FORMAT,
						RelationGetRelationName(rel), evictions),
				 errhint("Increase hashgraph_join.column_memory, or load fewer columns.")));
	pfree(outcomes);
}
