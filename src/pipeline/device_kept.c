/*-------------------------------------------------------------------------
 *
 * device_kept.c
 *	  Columns of the outer table that are kept in memory, for a pipeline below an
 *	  aggregation: the engine takes them as they are stored, and keeps copies of them.
 *
 * 1. At executor start: does the pipeline look at nothing of the table but columns, with
 *	  the quals among its instructions?  Then the source offers ranges of pages
 *	  (scan/kept_ranges.c), and quals are for the device wherever most of the table
 *	  is kept, however few rows pass.
 * 2. Before rows are staged, ranges are described to the engine (engine/pipeline.h,
 *	  KEPT ROWS), as many as go with one call.  The chunks are held meanwhile.
 * 3. What it does not take is left to the source, which reads those pages after all
 *	  others of which the columns are not kept, or not valid.
 *
 * Memory: the descriptions of one call, in the current context.  No locks but those of
 * scan/kept_pages.c.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "kept/store.h"
#include "miscadmin.h"
#include "pipeline/device.h"
#include "scan/heap_pages.h"
#include "utils/rel.h"

/* Step 1: the part of a table that must be kept for its quals to run on the device. */
#define HGJ_DEVICE_LEAST_KEPT	0.9

/* Step 1: are the columns that the quals look at kept? */
bool
hgj_device_is_kept(const HgjPipelineState *d)
{
	Relation	rel = ((ScanState *) d->scan)->ss_currentRelation;
	int			n = list_length(d->scan_attnos);
	AttrNumber *attnos = palloc(mul_size(n + 1, sizeof(AttrNumber)));
	double		part;

	for (int i = 0; i < n; i++)
		attnos[i] = list_nth_int(d->scan_attnos, i);
	part = n == 0 || !hgj_table_may_be_kept(rel) ? 0 :
		hgj_kept_part(rel, attnos, n, RelationGetNumberOfBlocks(rel));
	pfree(attnos);
	return part >= HGJ_DEVICE_LEAST_KEPT;
}

/* Step 1, when the source is there. */
void
hgj_device_plan_kept(HgjPipelineState *d)
{
	int8		scales[HGJ_DEVICE_READS];

	memset(scales, -1, sizeof(scales));
	for (int i = 0; i < d->ncolumns; i++)
	{
		const HgjDeviceColumn *column = &d->columns[i];

		if (column->join != HGJ_DEVICE_INPUT)
			continue;
		if (column->made)
			return;				/* the host makes it of rows */
		scales[column->from] = column->scale;
	}
	d->takes_kept = d->reason == HGJ_DEVICE_FITS && !d->rows && d->nreads > 0 &&
		hgj_pages_offer_ranges(&d->source, scales);
}

/* Step 2: a part of a chunk, in the engine's terms. */
static HgjKeptArray
array_of(const HgjChunk *chunk, uint64 at, uint64 bytes)
{
	Size		all;
	const char *memory = hgj_store_memory(&all);

	return (HgjKeptArray) {
		chunk->id, (const char *) chunk - memory + at, bytes
	};
}

static void
describe_input(const HgjDeviceColumn *column, const HgjChunk *chunk, uint32 start,
			   HgjKeptInput *input)
{
	bool		decimals = column->scale >= 0;
	Size		bits = (chunk->nrows + 63) / 64 * sizeof(uint64);

	input->width = decimals ? chunk->decimal_width : chunk->width;
	input->base = decimals ? chunk->decimal_base : chunk->base;
	input->first = start;
	input->numbers = array_of(chunk, decimals ? chunk->decimals : chunk->numbers,
							  (uint64) chunk->nrows * input->width);
	input->validity = array_of(chunk, chunk->validity, chunk->has_nulls ? bits : 0);
}

/* Step 2: as many of the next ranges as go together. */
static uint32
describe_ranges(HgjPipelineState *d, HgjKeptPiece *pieces, HgjKeptRange *ranges)
{
	const HgjChunk *chunks[HGJ_DEVICE_READS];
	uint32		starts[HGJ_DEVICE_READS];
	uint32		n = 0;

	while (n < HGJ_KEPT_PIECES && hgj_ranges_next(&d->source, &ranges[n], chunks, starts))
	{
		pieces[n].n = ranges[n].nrows;
		for (int i = 0; i < d->ncolumns; i++)
		{
			const HgjDeviceColumn *column = &d->columns[i];

			if (column->join == HGJ_DEVICE_INPUT)
				describe_input(column, chunks[column->from], starts[column->from],
							   &pieces[n].inputs[column->number]);
		}
		if (pieces[n].n > 0)
			n++;
	}
	return n;
}

/* Step 2; false: the engine does not take them. */
static bool
push_pieces(HgjPipelineState *d, const HgjKeptPiece *pieces, uint32 n)
{
	HgjError	err = {0};
	HgjStatus	status;

	do
	{
		hgj_wait_starts(HGJ_WAIT_DEVICE);
		status = d->engine->pipeline->push_kept(d->pipeline, pieces, n, &err);
		if (status == HGJ_UNSUPPORTED)
			hgj_wait_ends();
	} while (status != HGJ_UNSUPPORTED && !hgj_device_done(d, status, &err));
	return status != HGJ_UNSUPPORTED;
}

/* Steps 2 and 3; returns the rows that have been taken. */
static uint64
push_ranges(HgjPipelineState *d, HgjKeptPiece *pieces, HgjKeptRange *ranges, uint32 *n)
{
	uint64		rows = 0;
	bool		taken;

	hgj_ranges_begin(&d->source);
	*n = describe_ranges(d, pieces, ranges);
	taken = *n > 0 && push_pieces(d, pieces, *n);
	for (uint32 i = 0; i < *n; i++)
		if (taken)
			rows += ranges[i].nrows;
		else
			hgj_ranges_leave(&d->source, &ranges[i]);
	hgj_ranges_end(&d->source, rows);
	return rows;
}

/* All that is kept, and valid: the source's other rows are to be staged. */
void
hgj_device_push_kept(HgjPipelineState *d)
{
	HgjKeptPiece *pieces;
	HgjKeptRange *ranges;
	uint32		n = 1;

	if (!d->takes_kept || d->engine->pipeline->push_kept == NULL ||
		!push_pieces(d, NULL, 0))
		return;
	d->reading = true;
	pieces = palloc(HGJ_KEPT_PIECES * sizeof(HgjKeptPiece));
	ranges = palloc(HGJ_KEPT_PIECES * sizeof(HgjKeptRange));
	while (n > 0 && !hgj_device_gave_up(d))
	{
		CHECK_FOR_INTERRUPTS();
		(void) push_ranges(d, pieces, ranges, &n);
	}
	pfree(pieces);
	pfree(ranges);
}
