/*-------------------------------------------------------------------------
 *
 * load.c
 *	  Columns into registers: those of the rows that come, and payload columns of joins.
 *
 * 1. An input's numbers are widened from the width at which they are kept or staged, and their
 *	  base is added.  Where a number stands for a word of a table, that is looked up.
 * 2. Bits of validity become bytes, where a row of the vector is NULL.
 * 3. A payload column is read at the row that the join has found, if any.
 *
 * Owns nothing.  Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "threads/threads.h"

/* Step 1, for numbers of any width. */
#define WIDEN(type) \
	do { \
		const type *numbers = (const type *) view->numbers + first; \
		EACH_ROW(v, to[i] = base + (uint64_t) (int64_t) numbers[i]); \
	} while (0)

HGJ_CLONES static void
widen(const View *view, uint64_t first, const Vector *v, uint64_t *restrict to)
{
	uint64_t	base = view->base;

	switch (view->width)
	{
		case 1:
			WIDEN(uint8_t);
			break;
		case 2:
			if (view->is_signed)
				WIDEN(int16_t);
			else
				WIDEN(uint16_t);
			break;
		case 3:
			{
				const uint16_t *low = (const uint16_t *) view->numbers + first;
				const uint8_t *high = view->third + first;

				EACH_ROW(v, to[i] = base + ((uint64_t) low[i] | (uint64_t) high[i] << 16));
				break;
			}
		case 4:
			if (view->is_signed)
				WIDEN(int32_t);
			else
				WIDEN(uint32_t);
			break;
		default:
			WIDEN(uint64_t);
			break;
	}
}

/* Step 2: is one of n rows from `first` on NULL? */
static bool
some_are_null(const uint64_t *validity, uint64_t first, uint32_t n)
{
	uint64_t	last = first + n - 1;
	uint64_t	from = UINT64_MAX << (first % 64);
	uint64_t	to = UINT64_MAX >> (63 - last % 64);
	uint64_t	missing;

	if (first / 64 == last / 64)
		return (~validity[first / 64] & from & to) != 0;
	missing = (~validity[first / 64] & from) | (~validity[last / 64] & to);
	for (uint64_t w = first / 64 + 1; w < last / 64; w++)
		missing |= ~validity[w];
	return missing != 0;
}

/* May an input be NULL in one of n rows from `first` on? */
bool
hgj_view_has_nulls(const View *view, uint64_t first, uint32_t n)
{
	return view->validity != NULL && some_are_null(view->validity, first, n);
}

/* The value of a row, as a register has it. */
static inline uint64_t
value_at(const View *view, uint64_t at)
{
	uint64_t	number = hgj_number_at(view, at);

	if (!view->is_signed)
		return view->base + number;
	return view->width == 2 ? (uint64_t) (int64_t) (int16_t) number :
		(uint64_t) (int64_t) (int32_t) number;
}

/* Step 1: numbers that stand for words, of rows of the run's first vector. */
static void
look_up(Vector *v, const View *view, uint64_t first, uint8_t reg)
{
	const uint32_t *origin = v->origin;
	const uint64_t *table = view->table;
	const uint64_t *bits = view->table + view->ntable;
	uint64_t   *to = v->words[reg];
	bool		missing = false;
	uint8_t    *nulls;

	EACH_ALIVE(v,
			   to[i] = hgj_entry_at(view, first + origin[i]);
			   missing |= !bit_is_set(bits, to[i]));
	nulls = nulls_to_set(v, reg, missing);
	if (nulls != NULL)
		EACH_ALIVE(v, nulls[i] = !bit_is_set(bits, to[i]));
	EACH_ALIVE(v, to[i] = table[to[i]]);
}

/* Candidates: each is a row of the run's first vector, anywhere. */
static void
gather_input(Vector *v, const View *view, uint64_t first, uint8_t reg)
{
	const uint32_t *origin = v->origin;
	uint64_t   *to = v->words[reg];
	uint8_t    *nulls = nulls_to_set(v, reg, view->validity != NULL);

	EACH_ALIVE(v, to[i] = value_at(view, first + origin[i]));
	if (nulls != NULL)
		EACH_ALIVE(v, nulls[i] = view->validity != NULL &&
				   !bit_is_set(view->validity, first + origin[i]));
}

/* INPUT: a column of the rows that have come. */
void
hgj_run_input(Run *run, Vector *v, uint8_t reg, uint32_t input)
{
	const View *view = &run->views[input];
	uint64_t	first = view->first + run->view_first;
	const uint64_t *validity = view->validity;
	uint8_t    *nulls;

	if (view->table != NULL)
	{
		look_up(v, view, first, reg);
		return;
	}
	if (!v->first)
	{
		gather_input(v, view, first, reg);
		return;
	}
	widen(view, first, v, v->words[reg]);
	nulls = nulls_to_set(v, reg, hgj_view_has_nulls(view, first, v->n));
	if (nulls == NULL)
		return;
	if (validity == NULL)
		EACH_ALIVE(v, nulls[i] = 0);
	else
		EACH_ALIVE(v, nulls[i] = !bit_is_set(validity, first + i));
}

/* Step 3, for values of any kind. */
#define GATHER(type) \
	do { \
		const type *values = column->values; \
		EACH_ALIVE(v, to[i] = (uint64_t) (int64_t) values[rows[i]]); \
	} while (0)

#define GATHER_OR_NULL(type) \
	do { \
		const type *values = column->values; \
		EACH_ALIVE(v, \
				   const bool null = rows[i] == HGJ_PIPE_NO_ROW || \
				   (validity != NULL && !bit_is_set(validity, rows[i])); \
				   nulls[i] = null; \
				   to[i] = null ? 0 : (uint64_t) (int64_t) values[rows[i]]); \
	} while (0)

#define GATHER_KIND(kind, gather) \
	do { \
		switch (kind) \
		{ \
			case HGJ_KIND_U1: \
				gather(uint8_t); \
				break; \
			case HGJ_KIND_I2: \
				gather(int16_t); \
				break; \
			case HGJ_KIND_I4: \
				gather(int32_t); \
				break; \
			case HGJ_KIND_U4: \
			case HGJ_KIND_F4: \
				gather(uint32_t); \
				break; \
			default: \
				gather(uint64_t); \
				break; \
		} \
	} while (0)

/* PAYLOAD: column `arg` of the row that join a has found. */
void
hgj_run_payload(Run *run, Vector *v, const HgjPipeInstruction *in)
{
	const struct HgjPipeline *p = run->p;
	const Column *column = &p->columns[in->a][in->arg];
	const uint64_t *validity = column->validity;
	const uint32_t *rows = v->rows[in->a];
	uint64_t   *to = v->words[in->dst];
	uint32_t	kind = p->plan.spec.joins[in->a].kinds[in->arg];
	bool		nullable = validity != NULL || p->plan.spec.joins[in->a].fill;
	uint8_t    *nulls = nulls_to_set(v, in->dst, nullable);

	if (nullable)
		GATHER_KIND(kind, GATHER_OR_NULL);
	else
	{
		GATHER_KIND(kind, GATHER);
		if (nulls != NULL)
			EACH_ALIVE(v, nulls[i] = 0);
	}
}
