/*-------------------------------------------------------------------------
 *
 * row_store.h
 *	  The columns of the build side that matches return (row_store.c), and how
 *	  rows come to share a record (shared_records.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_ROW_STORE_H
#define HGJ_ROW_STORE_H

#include "compat.h"

#include "columns/batch.h"

typedef struct HgjStoredColumn
{
	uint32		offset;			/* in the record */
	uint32		null_byte;		/* its NULL bit: byte of the record ... */
	uint8		null_bit;		/* ... and mask */
	uint8		width;
	bool		has_nulls;		/* some record has set its NULL bit */
	bool		encoded;		/* a dictionary's datum.  Of width 8: itself, with the
								 * place of its value where there are value_chunks.
								 * Of width 4: its code, or, from HGJ_STORED_PLAIN
								 * on, a place in: */
	uint32		nplain;
	uint32		max_plain;
	Datum	   *plain;			/* datums without a code */
	char	 ***value_chunks;	/* the record has the place of its value in shared
								 * memory (hgj_arena_place()); NULL: its address */
} HgjStoredColumn;

#define HGJ_STORED_PLAIN	(UINT32_C(1) << 31)

/* How a record has a column, where that is not as a value of the column's width. */
#define HGJ_STORED_CODES			0
#define HGJ_STORED_PLACES			(-1)
#define HGJ_STORED_PLACED_CODES		(-2)

static inline int
hgj_stored_kind(const HgjStoredColumn *column)
{
	if (column->encoded)
		return column->width == sizeof(Datum) ? HGJ_STORED_PLACED_CODES :
			HGJ_STORED_CODES;
	return column->value_chunks ? HGJ_STORED_PLACES : column->width;
}

typedef struct HgjRowStore
{
	int			ncols;
	HgjStoredColumn *columns;
	uint32		stride;			/* bytes of a record; 0 when there are none */
	uint32		chunk_shift;	/* log2 of the records in a chunk */
	Size		chunk_bytes;
	uint32		nrows;
	uint32		nchunks;
	uint32		max_chunks;
	char	  **chunks;
	HgjAccount	held;			/* bytes of the chunks, and of plain datums */
	HgjArena	values;			/* by-reference values of the records */
	HgjArena	next_values;	/* those of rows read ahead for the next pass */
	MemoryContext context;
	HgjAccount *account;		/* all of the store counts there, or NULL */

	struct HgjSharedRecords *shared;	/* rows may share one (shared_records.c) */
	HgjChunkMap *map;			/* several processes fill the store, or NULL */
} HgjRowStore;

extern uint32 hgj_record_layout(HgjStoredColumn *columns, int ncols,
								uint32 offset);
extern void hgj_row_store_init(HgjRowStore *store, MemoryContext context,
							   const HgjColumn *columns, int ncols, bool shared,
							   double expected_rows, HgjAccount *account);
extern void hgj_row_store_share(HgjRowStore *store, const HgjColumn *columns,
								HgjChunkMap *map);
extern void hgj_row_store_map_all(HgjRowStore *store);
extern void hgj_row_store_append(HgjRowStore *store, const HgjBatch *batch,
								 uint32 *numbers);
extern void hgj_row_store_write(HgjRowStore *store, const HgjBatch *batch,
								uint32 from, uint32 n, char *records);
extern uint32 hgj_row_store_add(HgjRowStore *store, const char *record);
extern void hgj_row_store_clear(HgjRowStore *store);
extern void hgj_row_store_free(HgjRowStore *store);

/* shared_records.c */
extern void hgj_share_records_init(HgjRowStore *store, Size memory_limit);
extern const uint32 *hgj_share_records(HgjRowStore *store,
									   const HgjBatch *batch);
extern void hgj_share_records_clear(HgjRowStore *store);

static inline char *
hgj_row_store_record(const HgjRowStore *store, uint32 row)
{
	return store->chunks[row >> store->chunk_shift] +
		(Size) (row & ((UINT32_C(1) << store->chunk_shift) - 1)) * store->stride;
}

/* What a dictionary had for the value that an encoded column has stored. */
static inline Datum
hgj_stored_datum(const HgjStoredColumn *column, uint32 stored)
{
	return likely(stored < HGJ_STORED_PLAIN) ? (Datum) stored :
		column->plain[stored - HGJ_STORED_PLAIN];
}

/* The value, in this process, that such a column has stored the place of. */
static inline Datum
hgj_placed_datum(const HgjStoredColumn *column, uint64 place)
{
	return PointerGetDatum(hgj_chunk_address(*column->value_chunks, place));
}

/* What the dictionary of a column of width 8 had. */
static inline Datum
hgj_placed_code(const HgjStoredColumn *column, uint64 stored)
{
	if (likely(!hgj_datum_is_plain((Datum) stored)) || column->value_chunks == NULL)
		return (Datum) stored;
	return hgj_plain_datum(hgj_placed_datum(column, stored & ~HGJ_PLAIN_BIT));
}

static inline Datum
hgj_record_load(const HgjStoredColumn *column, const char *record)
{
	Datum		datum = hgj_load(record + column->offset, column->width);

	switch (hgj_stored_kind(column))
	{
		case HGJ_STORED_CODES:
			return hgj_stored_datum(column, DatumGetUInt32(datum));
		case HGJ_STORED_PLACED_CODES:
			return hgj_placed_code(column, (uint64) datum);
		case HGJ_STORED_PLACES:
			return hgj_placed_datum(column, (uint64) datum);
		default:
			return datum;
	}
}

static inline bool
hgj_record_is_null(const HgjStoredColumn *column, const char *record)
{
	return (record[column->null_byte] & column->null_bit) != 0;
}

#endif							/* HGJ_ROW_STORE_H */
