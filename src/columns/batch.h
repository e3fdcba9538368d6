/*-------------------------------------------------------------------------
 *
 * batch.h
 *	  The unit in which rows travel: column vectors with validity bitmaps, a
 *	  selection vector, and key words (batch.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_BATCH_H
#define HGJ_BATCH_H

#include "compat.h"

#include "access/tupmacs.h"
#include "columns/arena.h"
#include "columns/dictionary.h"
#include "columns/keys.h"

/* Rows of a batch of the tuples source: the first is small (LIMIT). */
#define HGJ_BATCH_FIRST_ROWS	64
#define HGJ_BATCH_ROWS			4096

/* A column of a child that somebody above it wants. */
typedef struct HgjColumn
{
	AttrNumber	attno;			/* in the child's output */
	AttrNumber	scan_attno;		/* in custom_scan_tlist */
	int16		attlen;
	bool		attbyval;
	uint8		short_bytes;	/* a text key: nobody looks at values of up to so
								 * many bytes; 0: not so */
	uint8		width;			/* bytes in a vector: 1, 2, 4, 8 */
	HgjDictionary *dictionary;	/* vectors hold its datums, or NULL */
} HgjColumn;

extern void hgj_column_init(HgjColumn *column, AttrNumber attno,
							const FormData_pg_attribute *att);

/*
 * Values of one column.  Those that pass by value lie as the type stores
 * them; the others are 8-byte pointers into the batch's arena, or into pages
 * that the source keeps pinned until the batch is filled again, or what a
 * dictionary has in their place (encode.c).  Numerics may come as decimals
 * (decimal.h) of the scale that their column's type says, which is the display scale
 * of all, if whoever reads the vector has said that this will do.
 */
typedef struct HgjVector
{
	uint8		width;
	bool		has_nulls;		/* validity means something */
	bool		decimals;		/* of numerics: values are, ... */
	uint8		scale;			/* ... in units of 10^-scale */
	uint64		kept_in;		/* the chunk (kept/chunk.h) that all by-reference values
								 * point into, which has each once; 0: nobody knows */
	void	   *values;			/* capacity x width bytes */
	uint64	   *validity;		/* bit i set: row i is not NULL */
} HgjVector;

/* A vector that somebody fills again and again. */
typedef struct HgjBuffer
{
	HgjVector	vector;
	uint32		capacity;
} HgjBuffer;

typedef struct HgjBatch
{
	uint32		capacity;
	uint32		nrows;			/* positions in the vectors */
	uint64		first_row;		/* positions of the source before this batch */
	uint32		nlive;			/* positions that hold a row ... */
	const uint32 *live;			/* ... ascending; NULL: all nrows of them do */
	uint32		nsel;			/* live rows whose keys are not NULL */
	uint32	   *sel;			/* their positions, ascending */
	int			ncols;
	HgjVector  *vectors;		/* one per HgjColumn of the side */
	bool		borrowed;		/* the vectors are another node's */
	void	  **own;			/* per vector: its own array, while its values are
								 * somewhere else (hgj_batch_point); or NULL */
	uint32		nwords;
	uint64	  **words;			/* key words, column by column */
	HgjArena   *values;			/* by-reference values: own_values, or the
								 * build side's, which outlives the batch */
	HgjArena	own_values;
	HgjAccount	held;			/* bytes, values in a lent arena not counted */
	MemoryContext context;
} HgjBatch;

extern HgjBatch *hgj_batch_create(MemoryContext context,
								  const HgjColumn *columns, int ncols,
								  uint32 nwords, HgjAccount *account);
extern void hgj_batch_reserve(HgjBatch *batch, uint32 capacity);
extern void hgj_batch_release(HgjBatch *batch);
extern void hgj_batch_borrow(HgjBatch *batch, bool borrowed);
extern void hgj_batch_point(HgjBatch *batch, int c, const void *values);
extern Size hgj_batch_value_bytes(void);
extern uint32 hgj_batch_next_rows(uint32 rows, uint32 n, Size bytes, uint32 most);
extern Size hgj_batch_row_bytes(const HgjBatch *batch);
extern void hgj_batch_clear(HgjBatch *batch);
extern Datum hgj_batch_keep(HgjBatch *batch, const HgjColumn *column,
							Datum value);
extern HgjKeys hgj_batch_keys(const HgjBatch *batch);
extern void hgj_buffer_reserve(MemoryContext context, HgjBuffer *buffer,
							   uint8 width, uint32 rows);
extern void hgj_buffer_release(HgjBuffer *buffer);
extern void hgj_vector_all_valid(HgjVector *vector, uint32 rows);
extern void hgj_values_gather(uint8 width, const void *values,
							  const uint32 *rows, uint32 n, void *out);
extern void hgj_vector_gather(HgjVector *into, uint32 first,
							  const HgjVector *from, const uint32 *rows,
							  uint32 n);
extern void hgj_vector_all_null(HgjVector *vector, uint32 rows);

/* The datum of `width` bytes at `address`, as fetch_att() makes it. */
static inline Datum
hgj_load(const void *address, uint8 width)
{
	switch (width)
	{
		case 1:
			return CharGetDatum(*(const char *) address);
		case 2:
			return Int16GetDatum(*(const int16 *) address);
		case 4:
			return Int32GetDatum(*(const int32 *) address);
		default:
			return *(const Datum *) address;
	}
}

static inline void
hgj_store(void *address, uint8 width, Datum value)
{
	switch (width)
	{
		case 1:
			*(char *) address = DatumGetChar(value);
			break;
		case 2:
			*(int16 *) address = DatumGetInt16(value);
			break;
		case 4:
			*(int32 *) address = DatumGetInt32(value);
			break;
		default:
			*(Datum *) address = value;
			break;
	}
}

static inline bool
hgj_vector_is_null(const HgjVector *vector, uint32 row)
{
	return vector->has_nulls &&
		(vector->validity[row / 64] & (UINT64CONST(1) << (row % 64))) == 0;
}

static inline void
hgj_vector_set_null(HgjVector *vector, uint32 row)
{
	vector->has_nulls = true;
	vector->validity[row / 64] &= ~(UINT64CONST(1) << (row % 64));
}

static inline void
hgj_vector_set_valid(HgjVector *vector, uint32 row)
{
	vector->validity[row / 64] |= UINT64CONST(1) << (row % 64);
}

/* The value of a row that is not NULL, as a datum. */
static inline Datum
hgj_vector_load(const HgjVector *vector, uint32 row)
{
	return hgj_load((const char *) vector->values + (Size) row * vector->width,
					vector->width);
}

/* The same of any row: 0 if it is NULL. */
static inline Datum
hgj_vector_datum(const HgjVector *vector, uint32 row, bool *isnull)
{
	*isnull = hgj_vector_is_null(vector, row);
	return *isnull ? (Datum) 0 : hgj_vector_load(vector, row);
}

/* Write the value of a row of which the validity bit is set. */
static inline void
hgj_vector_put(HgjVector *vector, uint32 row, Datum value, bool isnull)
{
	if (unlikely(isnull))
	{
		hgj_vector_set_null(vector, row);
		value = (Datum) 0;
	}
	hgj_store((char *) vector->values + (Size) row * vector->width, vector->width,
			  value);
}

/* The rows of a batch. */
static inline uint32
hgj_batch_nlive(const HgjBatch *batch)
{
	return batch->live ? batch->nlive : batch->nrows;
}

static inline uint32
hgj_batch_live_row(const HgjBatch *batch, uint32 i)
{
	return batch->live ? batch->live[i] : i;
}

#endif							/* HGJ_BATCH_H */
