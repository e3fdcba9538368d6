/*-------------------------------------------------------------------------
 *
 * device_kept.c
 *	  Columns of the outer table that are kept in memory, for a pipeline: the engine
 *	  takes them as they are stored, and keeps copies of them.
 *
 * 1. At executor start: does the pipeline look at nothing of the table but columns, and
 *	  what the host makes of single columns of few values, with the quals among its
 *	  instructions?  Then the source offers ranges of pages
 *	  (scan/kept_ranges.c), and quals are for the device wherever most of the table
 *	  is kept, however few rows pass.
 * 2. Before rows are staged, ranges are described to the engine (engine/pipeline.h,
 *	  KEPT ROWS), as many as go with one call.  What the host makes it makes of each value
 *	  that a chunk has, not of rows: a table goes with the call.  While the engine is busy
 *	  with them the next ones are described; chunks are held until it has read them, as it
 *	  has those of a call when the next one is answered (engine/pipeline.h, kept_outcome).
 * 3. What it does not take is left to the source, which reads those pages after all
 *	  others of which the columns are not kept, or not valid.
 * 4. Where rows are returned (device_rows_kept.c), calls are made one by one, of as many
 *	  rows as what comes out of them has room for.
 *
 * Memory: the descriptions of one call, in the caller's context.  No locks but those of
 * scan/kept_pages.c.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/guc.h"
#include "expr/program_private.h"
#include "kept/arrays.h"
#include "kept/store.h"
#include "miscadmin.h"
#include "pipeline/device.h"
#include "scan/heap_pages.h"
#include "utils/rel.h"

/* Of most of the table's pages, these columns? */
static bool
are_kept(const HgjPipelineState *d, const AttrNumber *attnos, int n)
{
	Relation	rel = ((ScanState *) d->scan)->ss_currentRelation;

	return hgj_device_column_memory != 0 &&
		hgj_kept_part(rel, attnos, n, RelationGetNumberOfBlocks(rel)) >= HGJ_LEAST_KEPT;
}

/* Step 1: are the columns that the quals look at kept, so that these run on the device? */
bool
hgj_device_is_kept(const HgjPipelineState *d)
{
	int			n = list_length(d->scan_attnos);
	AttrNumber *attnos = palloc(mul_size(n + 1, sizeof(AttrNumber)));
	bool		kept;

	for (int i = 0; i < n; i++)
		attnos[i] = list_nth_int(d->scan_attnos, i);
	kept = are_kept(d, attnos, n);
	pfree(attnos);
	return kept;
}

/* Are the columns kept that the source reads? */
bool
hgj_device_reads_are_kept(const HgjPipelineState *d)
{
	AttrNumber	attnos[HGJ_DEVICE_READS];

	for (int i = 0; i < d->nreads; i++)
		attnos[i] = d->reads[i].attno;
	return are_kept(d, attnos, d->nreads);
}

/* Columns that go by tables. */
static uint32
count_tables(const HgjPipelineState *d)
{
	uint32		n = 0;

	for (int i = 0; i < d->ncolumns; i++)
		n += d->columns[i].join == HGJ_DEVICE_INPUT && d->columns[i].made != NULL;
	return n;
}

/* Values that a table may have, so that those of a piece take half of the room at most. */
static uint32
most_values(const HgjPipelineState *d)
{
	uint32		share = HGJ_KEPT_WORDS / (2 * Max(count_tables(d), 1));

	return Min(HGJ_MOST_KEPT_CODES, share - HGJ_KEPT_TABLE(share) / 64 - 4);
}

/* Step 1: the one column that the host makes it of; -1: there are several. */
static int
made_of(const HgjDeviceMade *made)
{
	int			read = -1;

	for (int k = 0; k < made->ninputs; k++)
	{
		if (made->inputs[k] < 0)
			continue;
		if (read >= 0 && read != made->inputs[k])
			return -1;
		read = made->inputs[k];
	}
	return read;
}

/*
 * Step 1: as what each column that is read goes, by its number there; false: rows have to
 * be decoded.
 */
static bool
find_forms(const HgjPipelineState *d, HgjKeptForm *forms)
{
	uint32		most = most_values(d);

	memset(forms, 0, HGJ_DEVICE_READS * sizeof(HgjKeptForm));
	for (int i = 0; i < d->ncolumns; i++)
	{
		const HgjDeviceColumn *column = &d->columns[i];
		int			read;

		if (column->join != HGJ_DEVICE_INPUT)
			continue;
		if (column->made == NULL)
		{
			forms[column->from].as_number = true;
			forms[column->from].scale = column->scale;
			continue;
		}
		read = made_of(column->made);
		if (read < 0)
			return false;		/* it is made of rows */
		forms[read].most_values = most;
	}
	return !d->of_batch && d->nreads > 0;
}

/* Step 1, before the source is there: could kept columns go? */
bool
hgj_device_fits_kept(const HgjPipelineState *d)
{
	HgjKeptForm forms[HGJ_DEVICE_READS];

	return find_forms(d, forms);
}

/* Has the chunk in the middle of the table no more values of this column than a table may have? */
static bool
has_few_values(Relation rel, AttrNumber attno, uint32 most)
{
	const bool	may_miss = true;
	HgjChunkKey key = hgj_store_key(rel, attno, hgj_run_of(RelationGetNumberOfBlocks(rel) / 2));
	HgjHeldChunk held = {0};
	bool		few;

	if (!hgj_store_hold(&key, &may_miss, 1, &held) || held.chunk == NULL)
		return true;			/* nothing is known of it */
	few = held.chunk->by_value || held.chunk->ndistinct <= most;
	hgj_store_release(&held);
	return few;
}

/*
 * Step 1, before the source is there: could kept columns go, and are all that the host computes made
 * of columns with few values, for all that one chunk of each says?  Otherwise it would have to look at
 * all rows.
 */
bool
hgj_device_makes_of_values(const HgjPipelineState *d)
{
	Relation	rel = ((ScanState *) d->scan)->ss_currentRelation;
	HgjKeptForm forms[HGJ_DEVICE_READS];

	if (!find_forms(d, forms))
		return false;
	for (int i = 0; i < d->nreads; i++)
		if (forms[i].most_values > 0 && !forms[i].as_number &&
			!has_few_values(rel, d->reads[i].attno, forms[i].most_values))
			return false;
	return true;
}

/* Step 1, when the source is there. */
void
hgj_device_plan_kept(HgjPipelineState *d)
{
	HgjKeptForm forms[HGJ_DEVICE_READS];

	d->takes_kept = d->reason == HGJ_DEVICE_FITS && find_forms(d, forms) &&
		hgj_pages_offer_ranges(&d->source, forms);
}

/* ---- step 2 --------------------------------------------------------------- */

/* What goes with one call, while it is written. */
typedef struct HgjDevicePush
{
	HgjKeptPush rows;
	uint32		most;			/* pieces, this time */
	uint64		most_rows;		/* and rows, but for the last piece's */
	uint32	   *piece_rows;
	HgjKeptInput *inputs;
	HgjKeptRange *ranges;
	uint64	   *words;
	uint64		nrows;

	/* of the call before, which has not said yet whether it takes them */
	HgjKeptRange *sent;
	uint32		nsent;
	uint64		sent_rows;

	/* of each input: of what chunk the last table was made, which is held, and its words */
	const HgjChunk *chunks[HGJ_PIPE_INPUTS];
	uint32		tables[HGJ_PIPE_INPUTS];
	uint32		ntables[HGJ_PIPE_INPUTS];
} HgjDevicePush;

/*
 * Pieces that go together: few at first, so that the device soon has something to do, and
 * then twice as many each time.  It is at work while the next ones are described, and that
 * takes as long; and there are few calls, and kernels that fill the device.  Not more of them
 * at once, since nothing goes on behind the last one's transfers but its kernel.
 */
#define HGJ_FIRST_PIECES	32
#define HGJ_MOST_PIECES		128
StaticAssertDecl(HGJ_MOST_PIECES <= HGJ_KEPT_PIECES, "the engine does not take as many");

/*
 * Rows that are pushed together to fill a table: there must be room for all of them before
 * it is known how many pass the quals.
 */
#define HGJ_SIDE_ROWS		(16 * 1024 * 1024)

static void
describe_input(const HgjDeviceColumn *column, const HgjChunkHead *head, uint32 start,
			   HgjKeptInput *input)
{
	bool		decimals = column->made == NULL && column->scale >= 0;

	input->width = decimals ? head->decimal_width : head->width;
	input->base = decimals ? head->decimal_base : head->base;
	input->first = start;
	input->numbers = hgj_chunk_numbers(head, decimals);
	input->validity = hgj_chunk_validity(head);
	input->table = input->ntable = 0;
}

static HgjKeptInput *
inputs_of(const HgjPipelineState *d, const HgjDevicePush *push, uint32 piece)
{
	return push->inputs + (Size) piece * d->spec.ninputs;
}

/* Is the same input of the piece before in the push of the same chunk? */
static bool
is_of_chunk_before(const HgjPipelineState *d, const HgjDevicePush *push, uint32 number,
				   const HgjChunkHead *head)
{
	return push->rows.npieces > 0 &&
		inputs_of(d, push, push->rows.npieces - 1)[number].numbers.id == head->id;
}

/* Of a build side: between which values the numbers of a chunk are. */
static void
note_numbers(HgjPipelineState *d, int i, const HgjChunk *chunk)
{
	const HgjDeviceColumn *column = &d->columns[i];
	int64		low;
	int64		high;

	if (column->made || column->scale >= 0 ||
		column->kind == HGJ_KIND_F4 || column->kind == HGJ_KIND_F8)
		return;
	low = (int64) chunk->base;
	high = (int64) (chunk->base + hgj_chunk_greatest(chunk));
	if (low < 0 && high >= 0 &&
		(column->kind == HGJ_KIND_U1 || column->kind == HGJ_KIND_U4))
	{
		/* numbers are signed there, so that both ends lie in the middle */
		low = 0;
		high = -1;
	}
	hgj_device_note_range(&d->noted[i], column->kind, low);
	hgj_device_note_range(&d->noted[i], column->kind, high);
}

/* The values that a chunk has, or could have, and NULL, as a vector of this width. */
static HgjVector
values_of(const HgjChunk *chunk, uint8 width, uint32 *n)
{
	HgjVector	values = {.width = width};
	Size		room;

	*n = 1 + (chunk->by_value ? (uint32) hgj_chunk_greatest(chunk) + 1 : chunk->ndistinct);
	room = TYPEALIGN(HGJ_CHUNK, *n);
	values.values = palloc(mul_size(room, width));
	values.validity = palloc(room / 8);
	memset(values.validity, 0xFF, room / 8);
	for (uint32 i = 0; i < *n - 1; i++)
		hgj_store((char *) values.values + (Size) i * width, width,
				  chunk->by_value ? (Datum) (chunk->base + i) : hgj_chunk_value(chunk, i));
	hgj_store((char *) values.values + (Size) (*n - 1) * width, width, (Datum) 0);
	hgj_vector_set_null(&values, *n - 1);
	return values;
}

/*
 * The table of what the host makes of a chunk's values; there is room.  That of the last
 * chunk with the same values will do.  False: it fails for one of them, which no row may
 * have.
 */
static bool
write_table(HgjPipelineState *d, HgjDevicePush *push, const HgjDeviceColumn *column, int read,
			const HgjChunk *chunk, uint32 nrows, HgjKeptInput *input)
{
	uint32		i = column->number;
	HgjVector	values;
	uint32		n;

	if (push->chunks[i] == NULL ||
		(push->chunks[i] != chunk && !hgj_chunk_same_values(push->chunks[i], chunk)))
	{
		values = values_of(chunk, d->reads[read].width, &n);
		(void) hgj_device_make_table(d, column->made, column->kind, &values, n,
									 push->words + push->rows.nwords);
		pfree(values.values);
		pfree(values.validity);
		if (d->run_reason == HGJ_DEVICE_ROW)
		{
			d->run_reason = HGJ_DEVICE_FITS;
			return false;
		}
		push->tables[i] = push->rows.nwords;
		push->ntables[i] = n;
		push->rows.nwords += HGJ_KEPT_TABLE(n);
		/* nobody holds what has no rows */
		push->chunks[i] = nrows > 0 ? chunk : NULL;
	}
	input->table = push->tables[i];
	input->ntable = push->ntables[i];
	return true;
}

/* Room for all tables of a piece, whatever the chunks are. */
static bool
has_room(const HgjPipelineState *d, const HgjDevicePush *push)
{
	return push->rows.npieces < push->most && push->nrows < push->most_rows &&
		push->rows.nwords + count_tables(d) * HGJ_KEPT_TABLE(most_values(d) + 2) <=
		HGJ_KEPT_WORDS;
}

/* A range that the source offers, as the next piece; false: it is for the host. */
static bool
describe_range(HgjPipelineState *d, HgjDevicePush *push, const HgjHeldChunk *chunks,
			   const uint32 *starts)
{
	HgjKeptInput *inputs = inputs_of(d, push, push->rows.npieces);
	uint32		nrows = push->ranges[push->rows.npieces].nrows;

	for (int i = 0; i < d->ncolumns; i++)
	{
		const HgjDeviceColumn *column = &d->columns[i];
		HgjKeptInput *input = &inputs[column->number];
		int			read;

		if (column->join != HGJ_DEVICE_INPUT)
			continue;
		read = column->made ? made_of(column->made) : column->from;
		describe_input(column, chunks[read].head, starts[read], input);
		if (d->spec.fills &&
			!is_of_chunk_before(d, push, column->number, chunks[read].head))
			note_numbers(d, i, chunks[read].chunk);
		if (column->made &&
			!write_table(d, push, column, read, chunks[read].chunk, nrows, input))
			return false;
	}
	push->piece_rows[push->rows.npieces] = nrows;
	if (nrows > 0)
		push->rows.npieces++;
	push->nrows += nrows;
	return true;
}

/* As many of the next ranges as go together. */
static void
describe_ranges(HgjPipelineState *d, HgjDevicePush *push)
{
	HgjHeldChunk chunks[HGJ_DEVICE_READS];
	uint32		starts[HGJ_DEVICE_READS];

	push->rows.npieces = push->rows.nwords = 0;
	push->nrows = 0;
	memset(push->chunks, 0, sizeof(push->chunks));
	while (has_room(d, push) && !hgj_device_gave_up(d) &&
		   hgj_ranges_next(&d->source, &push->ranges[push->rows.npieces], chunks, starts))
		if (!describe_range(d, push, chunks, starts))
			hgj_ranges_leave(&d->source, &push->ranges[push->rows.npieces]);
}

/* Push them, or (rows is NULL) wait for the last ones; false: the engine does not take them. */
static bool
push_pieces(HgjPipelineState *d, const HgjKeptPush *rows)
{
	const HgjPipelineMethods *methods = d->engine->pipeline;
	HgjError	err = {0};
	HgjStatus	status = HGJ_OK;

	do
	{
		hgj_device_wait_starts();
		if (rows)
			status = methods->push_kept(d->pipeline, rows, &err);
		else if (methods->kept_outcome)
			status = methods->kept_outcome(d->pipeline, &err);
		if (status == HGJ_UNSUPPORTED)
			hgj_device_wait_ends();
	} while (status != HGJ_UNSUPPORTED && !hgj_device_done(d, status, &err));
	return status != HGJ_UNSUPPORTED;
}

/* ---- the calls ------------------------------------------------------------- */

/* In the current context; NULL: kept rows are not for the pipeline, or its engine. */
HgjDevicePush *
hgj_device_begin_kept(HgjPipelineState *d)
{
	HgjDevicePush *push;

	if (!d->takes_kept || d->engine->pipeline->push_kept == NULL)
		return NULL;
	d->reading = true;
	push = palloc0(sizeof(HgjDevicePush));
	push->rows.nrows = push->piece_rows = palloc(HGJ_KEPT_PIECES * sizeof(uint32));
	push->rows.inputs = push->inputs = palloc((Size) HGJ_KEPT_PIECES * d->spec.ninputs *
											  sizeof(HgjKeptInput));
	push->rows.words = push->words = palloc(HGJ_KEPT_WORDS * sizeof(uint64));
	push->ranges = palloc(HGJ_KEPT_PIECES * sizeof(HgjKeptRange));
	push->sent = palloc(HGJ_KEPT_PIECES * sizeof(HgjKeptRange));
	push->most = HGJ_FIRST_PIECES;
	push->most_rows = d->spec.fills ? HGJ_SIDE_ROWS : PG_UINT32_MAX;
	return push;
}

void
hgj_device_end_kept(HgjDevicePush *push)
{
	pfree(push->piece_rows);
	pfree(push->inputs);
	pfree(push->words);
	pfree(push->ranges);
	pfree(push->sent);
	pfree(push);
}

/*
 * Steps 2 and 3: what became of the last call; chunks of the one before may go, unless it
 * has failed.  *pushed: the rows so far.
 */
static void
settle(HgjPipelineState *d, HgjDevicePush *push, uint64 *pushed)
{
	if (push->nsent > 0)
	{
		if (push_pieces(d, NULL) && !hgj_device_gave_up(d))
		{
			hgj_ranges_taken(&d->source, push->sent_rows);
			*pushed += push->sent_rows;
		}
		else
			hgj_ranges_take_back(&d->source, push->sent, push->nsent, 0);
	}
	push->nsent = 0;
	if (!hgj_device_gave_up(d))
		hgj_ranges_forget(&d->source);
}

/*
 * Step 2: describe the next ranges, wait for those before, and send these.  False: there is
 * nothing left.
 */
static bool
send_next(HgjPipelineState *d, HgjDevicePush *push, uint64 *pushed)
{
	HgjKeptRange *sent = push->sent;

	hgj_ranges_begin(&d->source);
	describe_ranges(d, push);
	hgj_ranges_end(&d->source);
	settle(d, push, pushed);
	if (push->rows.npieces == 0)
		return false;
	push->sent = push->ranges;
	push->ranges = sent;
	if (!hgj_device_gave_up(d) && push_pieces(d, &push->rows) && !hgj_device_gave_up(d))
	{
		push->nsent = push->rows.npieces;
		push->sent_rows = push->nrows;
	}
	else
		hgj_ranges_take_back(&d->source, push->sent, push->rows.npieces, 0);
	return true;
}

/*
 * Steps 2 to 4: one call, which is waited for.  False: there is nothing left, or the pipeline
 * has failed, or its engine does not take it.  *pushed: the rows so far.
 */
bool
hgj_device_next_kept(HgjPipelineState *d, HgjDevicePush *push, uint64 *pushed)
{
	bool		more = send_next(d, push, pushed);

	settle(d, push, pushed);
	return more;
}

/* Step 4: the next call is of some so many rows. */
void
hgj_device_limit_kept(HgjDevicePush *push, uint64 rows)
{
	push->most = HGJ_KEPT_PIECES;
	push->most_rows = rows;
}

/* The ranges that the last one was of: pieces, one behind the other; *n, if wanted: how many. */
const HgjKeptRange *
hgj_device_kept_ranges(const HgjDevicePush *push, uint32 *n)
{
	if (n)
		*n = push->rows.npieces;
	return push->sent;
}

/* All that is kept, and valid: the source's other rows are to be staged.  How many? */
uint64
hgj_device_push_kept(HgjPipelineState *d)
{
	HgjDevicePush *push = hgj_device_begin_kept(d);
	uint64		rows = 0;

	if (push == NULL)
		return 0;
	do
	{
		CHECK_FOR_INTERRUPTS();
		if (!send_next(d, push, &rows))
			break;
		push->most = Min(push->most * 2, HGJ_MOST_PIECES);
	} while (!hgj_device_gave_up(d));
	settle(d, push, &rows);
	hgj_device_end_kept(push);
	return rows;
}
