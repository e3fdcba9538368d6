/*-------------------------------------------------------------------------
 *
 * rows.c
 *	  Rows that a pipeline returns, or that fill a table (engine/pipeline.h).
 *
 * 1. Each run puts down what ends in it, column by column: numbers of rows, where they are
 *	  returned, or key words and columns, at their kinds' width.
 * 2. All that comes out of a push waits until it has been fetched; a push of which too much comes
 *	  out fails, before a row has been returned.
 * 3. At the end of what fills a table, the runs' rows get numbers, one run behind the other.
 *	  Threads copy their columns together, which stay for the pipelines that read them, and the
 *	  key words are appended to the table.
 *
 * Memory: what has come out is the run's, until it has been fetched or appended; columns of a
 * table are their users', the last of whom frees them.  Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "threads/threads.h"

/* Rows that come out of one push in one run, at most. */
#define MOST_RETURNED	(UINT64_C(1) << 26)

/* Rows of a table that are appended at a time. */
#define APPENDED_ROWS	65536

/* Columns of the output, and bytes of their values. */
static uint32_t
count_columns(const HgjPipelineSpec *spec)
{
	return spec->rows ? 1 + spec->njoins : spec->nkeys + spec->ncolumns;
}

static size_t
width_of(const HgjPipelineSpec *spec, uint32_t column)
{
	if (spec->rows)
		return sizeof(uint32_t);
	return column < spec->nkeys ? sizeof(uint64_t) :
		hgj_kind_width(spec->kinds[column - spec->nkeys]);
}

/* Bytes of a row, with a byte for each column that may be NULL. */
static size_t
row_bytes(const HgjPipelineSpec *spec)
{
	size_t		bytes = spec->ncolumns;

	for (uint32_t c = 0; c < count_columns(spec); c++)
		bytes += width_of(spec, c);
	return bytes;
}

static bool
grow_array(void *array, size_t bytes)
{
	void	   *old;
	void	   *grown;

	memcpy(&old, array, sizeof(old));
	grown = realloc(old, bytes);
	if (grown != NULL)
		memcpy(array, &grown, sizeof(grown));
	return grown != NULL;
}

/* Room for n more rows. */
static HgjStatus
make_room(Run *run, uint32_t n)
{
	const HgjPipelineSpec *spec = &run->p->plan.spec;
	Output	   *out = &run->out;
	uint64_t	room = out->room == 0 ? 4 * VECTOR_ROWS : out->room;
	uint64_t	bytes;
	bool		good = true;

	if (out->n + n <= out->room)
		return HGJ_OK;
	while (room < out->n + n)
		room *= 2;
	if (out->n + n > MOST_RETURNED && spec->rows)
		return hgj_threads_fail(run, HGJ_LIMIT, "more rows come out than threads return at once");
	bytes = room * row_bytes(spec);
	if (!hgj_threads_take(run->p, bytes - out->bytes))
		return hgj_threads_fail(run, HGJ_LIMIT, "the pipeline does not fit its memory limit");
	out->bytes = bytes;
	for (uint32_t c = 0; c < count_columns(spec); c++)
		good &= grow_array(&out->columns[c], room * width_of(spec, c));
	for (uint32_t c = 0; c < spec->ncolumns; c++)
		if (out->nulls[c] != NULL)
			good &= grow_array(&out->nulls[c], room);
	if (!good)
		return hgj_threads_fail(run, HGJ_OUT_OF_MEMORY, "out of memory");
	out->room = room;
	return HGJ_OK;
}

/* Step 1: END of rows that are returned. */
HgjStatus
hgj_rows_add(Run *run, Vector *v)
{
	Output	   *out = &run->out;
	uint32_t	n = v->nsel;
	uint32_t   *to;

	if (make_room(run, n) != HGJ_OK)
		return run->status;
	to = (uint32_t *) out->columns[0] + out->n;
	EACH_ALIVE(v, *to++ = run->row0 + v->origin[i]);
	for (uint32_t j = 0; j < run->p->plan.spec.njoins; j++)
	{
		const uint32_t *rows = v->rows[j];

		to = (uint32_t *) out->columns[1 + j] + out->n;
		EACH_ALIVE(v, *to++ = rows[i]);
	}
	out->n += n;
	return HGJ_OK;
}

/* Step 1: values of a register that are alive, at the width of their kind. */
static void
put_values(const Vector *v, uint8_t reg, size_t width, void *column, uint64_t at)
{
	const uint64_t *words = v->words[reg];

	switch (width)
	{
		case 1:
			{
				uint8_t    *to = (uint8_t *) column + at;

				EACH_ALIVE(v, *to++ = (uint8_t) words[i]);
				break;
			}
		case 2:
			{
				uint16_t   *to = (uint16_t *) column + at;

				EACH_ALIVE(v, *to++ = (uint16_t) words[i]);
				break;
			}
		case 4:
			{
				uint32_t   *to = (uint32_t *) column + at;

				EACH_ALIVE(v, *to++ = (uint32_t) words[i]);
				break;
			}
		default:
			{
				uint64_t   *to = (uint64_t *) column + at;

				EACH_ALIVE(v, *to++ = words[i]);
				break;
			}
	}
}

/* Step 1: bytes of those that are NULL, once there are any. */
static HgjStatus
put_nulls(Run *run, const Vector *v, uint32_t c)
{
	Output	   *out = &run->out;
	uint8_t		reg = run->p->plan.spec.columns[c];
	const uint8_t *nulls = v->nulls[reg];
	uint8_t    *to;

	if (out->nulls[c] == NULL && has_nulls(v, reg))
	{
		out->nulls[c] = malloc(out->room);
		if (out->nulls[c] == NULL)
			return hgj_threads_fail(run, HGJ_OUT_OF_MEMORY, "out of memory");
		memset(out->nulls[c], 0, out->n);
	}
	if (out->nulls[c] == NULL)
		return HGJ_OK;
	to = out->nulls[c] + out->n;
	if (has_nulls(v, reg))
		EACH_ALIVE(v, *to++ = nulls[i]);
	else
		memset(to, 0, v->nsel);
	return HGJ_OK;
}

/* Step 1: END of rows that fill a table. */
HgjStatus
hgj_rows_fill(Run *run, Vector *v)
{
	const HgjPipelineSpec *spec = &run->p->plan.spec;
	Output	   *out = &run->out;
	uint32_t	n = v->nsel;
	uint64_t	missing = 0;

	for (uint32_t k = 0; k < spec->nkeys; k++)
		if (has_nulls(v, spec->keys[k]))
		{
			const uint8_t *nulls = v->nulls[spec->keys[k]];

			EACH_ALIVE(v, missing |= nulls[i]);
		}
	if (missing != 0)
		return hgj_threads_fail(run, HGJ_INVALID, "a key word is NULL");
	if (make_room(run, n) != HGJ_OK)
		return run->status;
	for (uint32_t k = 0; k < spec->nkeys; k++)
		put_values(v, spec->keys[k], sizeof(uint64_t), out->columns[k], out->n);
	for (uint32_t c = 0; c < spec->ncolumns; c++)
	{
		put_values(v, spec->columns[c], width_of(spec, spec->nkeys + c),
				   out->columns[spec->nkeys + c], out->n);
		if (put_nulls(run, v, c) != HGJ_OK)
			return run->status;
	}
	out->n += n;
	return HGJ_OK;
}

/* ---- step 3 ------------------------------------------------------------------ */

/* Memory for a column of `total` rows, and for their validity, unless it has that; all are valid. */
HgjStatus
hgj_column_open(struct HgjPipeline *p, Column *column, uint64_t total, size_t width, bool nullable,
				HgjError *err)
{
	size_t		words = (total + 63) / 64 + 1;

	if (column->values == NULL)
	{
		if (!hgj_threads_take(p, total * width))
			return hgj_fail(err, HGJ_LIMIT, "the pipeline does not fit its memory limit");
		column->values = malloc(total * width + 1);
		if (column->values == NULL)
			return hgj_fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	}
	if (nullable && column->validity == NULL)
	{
		if (!hgj_threads_take(p, words * sizeof(uint64_t)))
			return hgj_fail(err, HGJ_LIMIT, "the pipeline does not fit its memory limit");
		column->validity = malloc(words * sizeof(uint64_t));
		if (column->validity == NULL)
			return hgj_fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
		memset(column->validity, 0xFF, words * sizeof(uint64_t));
	}
	return HGJ_OK;
}

/* One user less. */
void
hgj_columns_leave(Columns *columns)
{
	if (columns == NULL || __atomic_sub_fetch(&columns->users, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	for (uint32_t c = 0; c < columns->ncolumns; c++)
	{
		free(columns->columns[c].values);
		free(columns->columns[c].validity);
	}
	free(columns);
}

/* Memory for the columns of n rows. */
static HgjStatus
open_columns(struct HgjPipeline *p, uint64_t n, HgjError *err)
{
	const HgjPipelineSpec *spec = &p->plan.spec;

	p->made = calloc(1, sizeof(Columns));
	if (p->made == NULL)
		return hgj_fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	p->made->users = 1;
	p->made->ncolumns = spec->ncolumns;
	for (uint32_t c = 0; c < spec->ncolumns; c++)
	{
		Column	   *column = &p->made->columns[c];
		bool		nullable = false;
		HgjStatus	status;

		for (uint32_t r = 0; r < p->nruns; r++)
			nullable |= p->runs[r] != NULL && p->runs[r]->out.nulls[c] != NULL;
		column->sent = n;
		status = hgj_column_open(p, column, n, hgj_kind_width(spec->kinds[c]), nullable, err);
		if (status != HGJ_OK)
			return status;
	}
	return HGJ_OK;
}

/* The number of a run's first row. */
static uint64_t
first_row(const struct HgjPipeline *p, uint32_t number)
{
	uint64_t	first = 0;

	for (uint32_t r = 0; r < number; r++)
		first += p->runs[r] != NULL ? p->runs[r]->out.n : 0;
	return first;
}

/* A column of one run: runs that share a word of validity may be at it at the same time. */
static void
copy_column(void *arg, uint32_t thread, uint64_t number)
{
	struct HgjPipeline *p = arg;
	const HgjPipelineSpec *spec = &p->plan.spec;
	uint32_t	c = (uint32_t) (number % spec->ncolumns);
	uint32_t	r = (uint32_t) (number / spec->ncolumns);
	Column	   *column = &p->made->columns[c];
	size_t		width = hgj_kind_width(spec->kinds[c]);
	uint64_t	first = first_row(p, r);
	const Output *out = p->runs[r] == NULL ? NULL : &p->runs[r]->out;

	(void) thread;
	if (out == NULL || out->n == 0)
		return;
	memcpy((char *) column->values + first * width, out->columns[spec->nkeys + c], out->n * width);
	for (uint64_t i = 0; out->nulls[c] != NULL && i < out->n; i++)
		if (out->nulls[c][i])
			(void) __atomic_fetch_and(&column->validity[(first + i) / 64],
									  ~(UINT64_C(1) << ((first + i) % 64)), __ATOMIC_RELAXED);
}

/* Key words of a run, to the table. */
static HgjStatus
append_keys(struct HgjPipeline *p, const Output *out, uint64_t first, HgjError *err)
{
	const uint64_t *words[HGJ_PIPE_KEYS];
	HgjKeys		keys = {.words = words,.location = HGJ_ON_HOST};
	HgjStatus	status = HGJ_OK;

	for (uint64_t at = 0; at < out->n && status == HGJ_OK; at += APPENDED_ROWS)
	{
		keys.nrows = (uint32_t) (out->n - at < APPENDED_ROWS ? out->n - at : APPENDED_ROWS);
		for (uint32_t k = 0; k < p->plan.spec.nkeys; k++)
			words[k] = (const uint64_t *) out->columns[k] + at;
		status = hgj_cpu_engine()->append(p->fills->cpu, &keys, (uint32_t) (first + at), NULL, err);
		/* part of the rows are there, and cannot be taken back */
		if (status == HGJ_CANCELLED)
			status = hgj_fail(err, HGJ_LIMIT, "the table was not filled to its end");
		if (status == HGJ_OK)
			p->fills->appended += keys.nrows;
	}
	return status;
}

/* Fill the table: the rows of all runs, and their columns. */
HgjStatus
hgj_rows_finish(struct HgjPipeline *p, HgjError *err)
{
	uint64_t	n = first_row(p, p->nruns);
	PoolJob		job = {.morsel = copy_column,.arg = p,
	.nmorsels = (uint64_t) p->nruns * p->plan.spec.ncolumns};
	HgjStatus	status;

	if (n > HGJ_MAX_ROWS)
		return hgj_fail(err, HGJ_LIMIT, "a table cannot have as many rows");
	status = open_columns(p, n, err);
	if (status == HGJ_OK && n > 0 && job.nmorsels > 0)
		(void) hgj_pool_run(&job, NULL, NULL);
	for (uint32_t r = 0; r < p->nruns && status == HGJ_OK; r++)
		if (p->runs[r] != NULL)
			status = append_keys(p, &p->runs[r]->out, first_row(p, r), err);
	p->ngroups = n;
	return status;
}
