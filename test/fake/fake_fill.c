/*-------------------------------------------------------------------------
 *
 * fake_fill.c
 *	  Pipelines that fill a table (engine/pipeline.h, FILLING A TABLE).
 *
 * 1. Rows are put down as they end.  A key word that is NULL is the caller's mistake.
 * 2. At the end they are appended to the table, in an order of our own.
 * 3. Who reads the columns has a copy: the pipeline may go before.  Values behind a NULL
 *	  are garbage.
 *
 * Memory: the pipeline's.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "fake.h"

#define SOME_ROWS	1024		/* that are appended at a time */
#define ORDER_STEP	7919		/* a prime */

/* Of a row. */
static uint64_t
width_of(const HgjPipeline *p)
{
	return p->spec.nkeys + p->spec.ncolumns + 1;
}

/* Where the row of that number stands: the order is another one than that of their end. */
static const uint64_t *
row_at(const HgjPipeline *p, uint64_t row)
{
	uint64_t	step = p->fill.n % ORDER_STEP == 0 ? 1 : ORDER_STEP;

	return p->fill.rows + (row * step + p->fill.n / 2) % p->fill.n * width_of(p);
}

HgjStatus
fake_fill_open(HgjPipeline *p, HgjTable *table, HgjError *err)
{
	FakeTable  *fake = (FakeTable *) (void *) table;

	if (fake == NULL || fake->built || fake->appended || fake->spec.nwords != p->spec.nkeys)
		return fake_fail(err, HGJ_INVALID, "the table is not one that the pipeline could fill");
	p->fill.table = fake;
	return HGJ_OK;
}

/* Step 1: key words, and columns. */
HgjStatus
fake_fill_row(HgjPipeline *p, const FakeValue *values, HgjError *err)
{
	FakeFill   *f = &p->fill;
	uint64_t	width = width_of(p);
	uint64_t	bytes = width * sizeof(uint64_t);
	HgjStatus	status;
	uint64_t   *row;

	if (f->n == f->room)
	{
		uint64_t	room = f->room == 0 ? 1024 : f->room * 2;
		uint64_t   *rows = realloc(f->rows, room * bytes);

		if (rows == NULL)
			return fake_fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
		f->rows = rows;
		f->room = room;
	}
	status = fake_take(p, bytes, err);
	if (status != HGJ_OK)
		return status;
	row = f->rows + f->n++ * width;
	row[width - 1] = 0;
	for (uint32_t i = 0; i + 1 < width; i++)
	{
		if (values[i].null && i < p->spec.nkeys)
			return fake_fail(err, HGJ_INVALID, "a key word is NULL");
		row[i] = values[i].null ? UINT64_C(0xA5A5A5A5A5A5A5A5) : values[i].word;
		row[width - 1] |= (uint64_t) values[i].null << i;
	}
	return HGJ_OK;
}

/* Step 2. */
HgjStatus
fake_fill_finish(HgjPipeline *p, HgjError *err)
{
	static _Thread_local uint64_t words[HGJ_PIPE_KEYS][SOME_ROWS];
	const uint64_t *columns[HGJ_PIPE_KEYS];
	HgjKeys		keys = {.words = columns};
	HgjStatus	status = HGJ_OK;

	for (uint64_t first = 0; first < p->fill.n && status == HGJ_OK; first += SOME_ROWS)
	{
		keys.nrows = (uint32_t) (p->fill.n - first < SOME_ROWS ? p->fill.n - first : SOME_ROWS);
		for (uint32_t k = 0; k < p->spec.nkeys; k++)
		{
			columns[k] = words[k];
			for (uint32_t i = 0; i < keys.nrows; i++)
				words[k][i] = row_at(p, first + i)[k];
		}
		status = hgj_cpu_engine()->append(p->fill.table->cpu, &keys, (uint32_t) first, NULL,
										  err);
	}
	p->fill.done = status == HGJ_OK;
	return status;
}

/* Step 3, for one column; false: no memory. */
static bool
copy_column(FakeColumn *to, const HgjPipeline *from, uint32_t c)
{
	size_t		width = fake_width(from->spec.kinds[c]);
	uint32_t	at = from->spec.nkeys + c;

	to->values = malloc(from->fill.n * width + 1);
	to->validity = calloc((from->fill.n + 63) / 64 + 1, sizeof(uint64_t));
	if (to->values == NULL || to->validity == NULL)
		return false;
	for (uint64_t i = 0; i < from->fill.n; i++)
	{
		const uint64_t *row = row_at(from, i);
		bool		null = row[width_of(from) - 1] >> at & 1;

		memcpy(to->values + i * width, &row[at], width);
		to->validity[i / 64] |= (uint64_t) !null << (i % 64);
	}
	return true;
}

HgjStatus
fake_fill_read(HgjPipeline *p, uint32_t j, const HgjPipeline *filled, HgjError *err)
{
	const HgjPipeJoin *join = &p->spec.joins[j];

	if (!filled->fill.done || filled->fill.table != p->joins[j].table ||
		filled->spec.ncolumns != join->ncolumns ||
		memcmp(filled->spec.kinds, join->kinds, join->ncolumns) != 0)
		return fake_fail(err, HGJ_INVALID, "a join's columns are not those of its table");
	for (uint32_t c = 0; c < join->ncolumns; c++)
		if (!copy_column(&p->joins[j].columns[c], filled, c))
			return fake_fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	p->joins[j].filled = true;
	return HGJ_OK;
}
