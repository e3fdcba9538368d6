/*-------------------------------------------------------------------------
 *
 * chunk_read.c
 *	  Vectors filled from a chunk (chunk.c).
 *
 * 1. Rows one behind the other are widened by loops of a load (of numbers of three bytes,
 *	  two), an addition and a store, of which the compiler makes vector code.
 * 2. Of some rows each is fetched on its own; but where values go to their rows'
 *	  numbers, and not few of the rows are wanted, those in between come along, as
 *	  that takes less time.
 * 3. By-reference values are pointers into the chunk.
 * 4. NULLs are looked for by words of the bitmap, most of which have none.
 *
 * Compiled with -O3.  No memory, no locks; the caller holds the chunk (store.c).
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "kept/chunk.h"
#include "port/pg_bitutils.h"

/* Step 2: not few are one in so many. */
#define DENSE		8

/* Which rows, and where their values go (hgj_chunk_read()). */
typedef struct Task
{
	uint32		start;
	const uint32 *rows;
	uint32		n;
	uint32		first;
	bool		by_row;
} Task;

/* Of numbers of three bytes, the third ones; of others it is not read. */
static inline const uint8 *
third_bytes(const HgjChunk *chunk, Size at)
{
	return (const uint8 *) chunk + at + hgj_numbers_high(chunk->nrows);
}

/* A number, where they are one array, or two. */
#define WHOLE(i)	from[i]
#define SPLIT(i)	(from[i] | (uint32) high[i] << 16)

/* Steps 1 and 2 for one pair of widths; of numbers of three bytes the first two are read_bits. */
#define READ_LOOP(from_bits, to_bits, read_bits, NUMBER) \
static void \
read_##from_bits##_##to_bits(const void *numbers, const uint8 *third, uint64 base, \
							 const Task *task, void *values) \
{ \
	const uint##read_bits *pg_restrict from = \
		(const uint##read_bits *) numbers + task->start; \
	const uint8 *pg_restrict high pg_attribute_unused() = third + task->start; \
	uint##to_bits *pg_restrict to = (uint##to_bits *) values + task->first; \
	const uint32 *pg_restrict rows = task->rows; \
	uint##to_bits add = (uint##to_bits) base; \
	uint32		n = task->n; \
\
	if (rows == NULL) \
		for (uint32 i = 0; i < n; i++) \
			to[i] = (uint##to_bits) (add + NUMBER(i)); \
	else if (task->by_row) \
		for (uint32 i = 0; i < n; i++) \
			to[rows[i]] = (uint##to_bits) (add + NUMBER(rows[i])); \
	else \
		for (uint32 i = 0; i < n; i++) \
			to[i] = (uint##to_bits) (add + NUMBER(rows[i])); \
}

READ_LOOP(8, 8, 8, WHOLE)
READ_LOOP(8, 16, 8, WHOLE)
READ_LOOP(16, 16, 16, WHOLE)
READ_LOOP(8, 32, 8, WHOLE)
READ_LOOP(16, 32, 16, WHOLE)
READ_LOOP(24, 32, 16, SPLIT)
READ_LOOP(32, 32, 32, WHOLE)
READ_LOOP(8, 64, 8, WHOLE)
READ_LOOP(16, 64, 16, WHOLE)
READ_LOOP(24, 64, 16, SPLIT)
READ_LOOP(32, 64, 32, WHOLE)
READ_LOOP(64, 64, 64, WHOLE)

/*
 * By the numbers' width (1, 2, 3, 4, 8) and the logarithm of the values'; no value is stored
 * wider than it is.
 */
static void (*const read_loops[5][4]) (const void *, const uint8 *, uint64, const Task *,
									   void *) = {
	{read_8_8, read_8_16, read_8_32, read_8_64},
	{NULL, read_16_16, read_16_32, read_16_64},
	{NULL, NULL, read_24_32, read_24_64},
	{NULL, NULL, read_32_32, read_32_64},
	{NULL, NULL, NULL, read_64_64}
};

/* Numbers of the chunk, to values that are so wide. */
static void
read_numbers(const HgjChunk *chunk, Size at, uint8 width, uint64 base, const Task *task,
			 uint8 to_width, void *values)
{
	read_loops[Min(width, 5) - 1][pg_leftmost_one_pos32(to_width)]
		((const char *) chunk + at, third_bytes(chunk, at), base, task, values);
}

/* Step 3. */
#define POINTER_LOOP(from_bits, read_bits, NUMBER) \
static void \
point_##from_bits(const HgjChunk *chunk, const Task *task, char **values) \
{ \
	const char *numbers = (const char *) chunk + chunk->numbers; \
	const uint##read_bits *from = (const uint##read_bits *) numbers + task->start; \
	const uint8 *high pg_attribute_unused() = \
		third_bytes(chunk, chunk->numbers) + task->start; \
	const uint32 *offsets = (const uint32 *) ((const char *) chunk + chunk->offsets); \
	char	   *base = (char *) chunk + chunk->values; \
	const uint32 *rows = task->rows; \
	char	  **to = values + task->first; \
\
	if (rows == NULL) \
		for (uint32 i = 0; i < task->n; i++) \
			to[i] = base + offsets[NUMBER(i)]; \
	else if (task->by_row) \
		for (uint32 i = 0; i < task->n; i++) \
			to[rows[i]] = base + offsets[NUMBER(rows[i])]; \
	else \
		for (uint32 i = 0; i < task->n; i++) \
			to[i] = base + offsets[NUMBER(rows[i])]; \
}

POINTER_LOOP(8, 8, WHOLE)
POINTER_LOOP(16, 16, WHOLE)
POINTER_LOOP(24, 16, SPLIT)
POINTER_LOOP(32, 32, WHOLE)

static void
read_pointers(const HgjChunk *chunk, const Task *task, char **values)
{
	if (chunk->ndistinct == 0)
		return;					/* every row is NULL */
	switch (chunk->width)
	{
		case 1:
			point_8(chunk, task, values);
			break;
		case 2:
			point_16(chunk, task, values);
			break;
		case 3:
			point_24(chunk, task, values);
			break;
		default:
			point_32(chunk, task, values);
			break;
	}
}

/* Step 4 for rows one behind the other. */
static void
read_nulls(const HgjChunk *chunk, const Task *task, HgjVector *into)
{
	const uint64 *validity = (const uint64 *) ((const char *) chunk + chunk->validity);
	uint32		end = task->start + task->n;

	for (uint32 at = task->start; at < end; at = (at / 64 + 1) * 64)
	{
		uint64		nulls = ~validity[at / 64] >> (at % 64);

		if (end - at < 64)
			nulls &= (UINT64CONST(1) << (end - at)) - 1;
		for (; nulls != 0; nulls &= nulls - 1)
			hgj_vector_set_null(into, task->first + (at - task->start) +
								pg_rightmost_one_pos64(nulls));
	}
}

/* The same, of some rows. */
static void
read_some_nulls(const HgjChunk *chunk, const Task *task, HgjVector *into)
{
	const uint64 *validity = (const uint64 *) ((const char *) chunk + chunk->validity);

	for (uint32 i = 0; i < task->n; i++)
	{
		uint32		row = task->rows[i];
		uint32		bit = task->start + row;

		if ((validity[bit / 64] & (UINT64CONST(1) << (bit % 64))) == 0)
			hgj_vector_set_null(into, task->by_row ? row : task->first + i);
	}
}

/* Step 2: rows in between come along, if they may, and are not too many. */
static Task
task_of(uint32 start, const uint32 *rows, uint32 n, uint32 first, bool by_row)
{
	Task		task = {start, rows, n, first, by_row};

	if (rows == NULL || !by_row || rows[n - 1] - rows[0] >= n * DENSE)
		return task;
	task.start += rows[0];
	task.first = rows[0];
	task.n = rows[n - 1] - rows[0] + 1;
	task.rows = NULL;
	return task;
}

/* Integers that are stored so, and NULLs. */
static void
read_integers(const HgjChunk *chunk, Size at, uint8 width, uint64 base, const Task *task,
			  HgjVector *into)
{
	read_numbers(chunk, at, width, base, task, into->width, into->values);
	if (chunk->has_nulls && task->rows)
		read_some_nulls(chunk, task, into);
	else if (chunk->has_nulls)
		read_nulls(chunk, task, into);
}

/*
 * Of the rows from `start` on, those whose numbers counted from there are in rows
 * (ascending; NULL: the first n), to the vector's positions from `first` on, or,
 * by_row, to these numbers (`first` is 0).  Positions are taken to be valid so far;
 * by_row, those between rows that are wanted may be written, too.
 */
void
hgj_chunk_read(const HgjChunk *chunk, uint32 start, const uint32 *rows, uint32 n,
			   HgjVector *into, uint32 first, bool by_row)
{
	Task		task;

	Assert(into->width == chunk->value_width && (!by_row || first == 0));
	if (n == 0)
		return;
	if (chunk->by_value)
	{
		task = task_of(start, rows, n, first, by_row);
		read_integers(chunk, chunk->numbers, chunk->width, chunk->base, &task, into);
		return;
	}
	task = task_of(start, rows, n, first, false);
	task.by_row = by_row;
	read_pointers(chunk, &task, into->values);
	if (chunk->has_nulls && rows)
		read_some_nulls(chunk, &task, into);
	else if (chunk->has_nulls)
		read_nulls(chunk, &task, into);
}

/* The same of numerics, of which the chunk has decimals. */
void
hgj_chunk_read_decimals(const HgjChunk *chunk, uint32 start, const uint32 *rows,
						uint32 n, HgjVector *into, uint32 first, bool by_row)
{
	Task		task;

	Assert(into->width == sizeof(int64) && chunk->decimals != 0);
	into->decimals = true;
	into->scale = chunk->scale;
	if (n == 0)
		return;
	task = task_of(start, rows, n, first, by_row);
	read_integers(chunk, chunk->decimals, chunk->decimal_width, chunk->decimal_base,
				  &task, into);
}

/* The numbers of by-reference values, as 64-bit integers. */
void
hgj_chunk_read_numbers(const HgjChunk *chunk, uint32 start, const uint32 *rows, uint32 n,
					   HgjVector *into, uint32 first)
{
	Task		task = {start, rows, n, first, false};

	Assert(into->width == sizeof(uint64) && !chunk->by_value);
	if (n > 0)
		read_integers(chunk, chunk->numbers, chunk->width, 0, &task, into);
}

/* By-value values without a NULL, as 64-bit integers with their sign, one behind the other. */
void
hgj_chunk_read_integers(const HgjChunk *chunk, uint32 start, const uint32 *rows, uint32 n,
						uint64 *into)
{
	Task		task = {start, rows, n, 0, false};

	Assert(chunk->by_value && !chunk->has_nulls);
	read_numbers(chunk, chunk->numbers, chunk->width, chunk->base, &task, sizeof(uint64), into);
}

/* By-value values of at most four bytes a number, as they are from the row `start` on. */
void
hgj_chunk_packed(const HgjChunk *chunk, uint32 start, HgjPackedKeys *keys)
{
	Assert(chunk->by_value && !chunk->has_nulls && chunk->width <= sizeof(uint32));
	keys->numbers = (const char *) chunk + chunk->numbers +
		(Size) start * (chunk->width == 3 ? sizeof(uint16) : chunk->width);
	keys->third = chunk->width == 3 ? third_bytes(chunk, chunk->numbers) + start : NULL;
	keys->base = chunk->base;
	keys->width = chunk->width;
}

/* By value: no number of the chunk is greater. */
uint64
hgj_chunk_greatest(const HgjChunk *chunk)
{
	uint64		greatest = 0;

	if (chunk->ends == 0)
		return PG_UINT64_MAX >> (64 - 8 * chunk->width);
	for (uint32 page = 0; page < HGJ_RUN_PAGES; page++)
		greatest = Max(greatest, hgj_chunk_end_at(chunk, chunk->ends, chunk->width,
												  2 * page + 1));
	return greatest;
}
