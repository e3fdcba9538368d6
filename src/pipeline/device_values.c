/*-------------------------------------------------------------------------
 *
 * device_values.c
 *	  The columns that a pipeline below an aggregation is sent: their values.
 *
 * 1. What the host makes (device_host.c) is evaluated by the program that it is of, for
 *	  the rows that the source returns, or those of the build side.  When that fails for
 *	  a row, the host does the whole run, which raises the error if there is one to be
 *	  raised.
 * 2. Codes are those of a dictionary.  Where there is no room for a value, the host
 *	  does it all.
 * 3. Columns of the outer table that nobody but the host looks at are in vectors of
 *	  our own, all others in the staging buffer.  Numerics there become decimals when
 *	  everything else has been computed.
 * 4. Behind an outer join there may be no row.  A step that is evaluated for NULLs says
 *	  what it is then.
 *
 * Vectors are palloc'd in the query's context; values of a batch are in its arena
 * (device_start.c frees it).  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "build/build_side.h"
#include "expr/program_private.h"
#include "join/join.h"
#include "miscadmin.h"
#include "pipeline/device.h"

/* The part of the memory limit that columns of ours may take. */
#define HGJ_READ_SHARE		8

/* Where values go, the first row's first; whether one is NULL. */
typedef struct Target
{
	char	   *values;
	uint64	   *validity;		/* all bits are set */
	bool		nulls;
} Target;

static inline void
set_null(Target *to, uint32 row)
{
	to->validity[row / 64] &= ~(UINT64CONST(1) << (row % 64));
	to->nulls = true;
}

/* Step 2: codes of n values, for rows from `first` on. */
static void
put_codes(HgjPipelineState *d, HgjDeviceMade *made, const Datum *values,
		  const uint8 *nulls, uint32 first, uint32 n, Target *to)
{
	uint32	   *out = (uint32 *) to->values + first;
	uint32		most = 0;

	for (uint32 i = 0; i < n; i++)
	{
		out[i] = 0;
		if (nulls && nulls[i])
			set_null(to, first + i);
		else if (!hgj_dictionary_find(made->codes, values[i], &out[i]))
		{
			d->run_reason = HGJ_DEVICE_GROUP_KEY;
			return;
		}
		most = Max(most, out[i]);
	}
	if (made->most_codes > 0 && most >= made->most_codes)
	{
		made->most_codes = 0;
		d->more_codes = true;
		d->run_reason = HGJ_DEVICE_GROUPS;
	}
}

/* Are all of them decimals, of the display scale that is expected? */
static bool
are_decimals(const HgjStep *step, const uint8 *nulls, uint32 n)
{
	for (uint32 i = 0; step->displays && i < n; i++)
		if (step->displays[i] != step->display && !(nulls && nulls[i]))
			return false;
	return true;
}

/* Step 1 for a chunk of rows. */
static void
put_step(HgjPipelineState *d, HgjDeviceMade *made, uint32 first, uint32 n, Target *to)
{
	HgjStep    *step = made->step;
	HgjRows		rows = {.first = first, .n = n, .whole = true};

	if (!hgj_program_run_step(made->program, step, made->vectors, &rows) ||
		!are_decimals(step, step->nulls, n))
	{
		d->run_reason = HGJ_DEVICE_ROW;
		return;
	}
	if (made->codes)
	{
		put_codes(d, made, step->values, step->nulls, first, n, to);
		return;
	}
	memcpy(to->values + (Size) first * step->width, step->values, (Size) n * step->width);
	for (uint32 i = 0; step->nulls && i < n; i++)
		if (step->nulls[i])
			set_null(to, first + i);
}

/* All n rows. */
static void
put_made(HgjPipelineState *d, HgjDeviceMade *made, uint32 n, Target *to)
{
	const HgjVector *column = made->vectors[0];
	uint8		nulls[HGJ_CHUNK];

	for (uint32 first = 0; first < n && !hgj_device_gave_up(d); first += HGJ_CHUNK)
	{
		HgjRows		rows = {.first = first, .n = Min(n - first, HGJ_CHUNK)};
		bool		some_null;

		CHECK_FOR_INTERRUPTS();
		if (made->step)
		{
			put_step(d, made, first, rows.n, to);
			continue;
		}
		some_null = hgj_values_nulls(column, &rows, nulls);
		put_codes(d, made, (const Datum *) column->values + first,
				  some_null ? nulls : NULL, first, rows.n, to);
	}
}

/*
 * The numerics of a vector, which are at values, become the decimals that instructions
 * are for.  Where one is none, the host does it all.
 */
static void
make_decimals(HgjPipelineState *d, const HgjDeviceColumn *column, const HgjVector *vector,
			  uint32 n, int64 *values)
{
	uint8		nulls[HGJ_CHUNK];
	uint8		displays[HGJ_CHUNK];

	for (uint32 first = 0; first < n && !hgj_device_gave_up(d); first += HGJ_CHUNK)
	{
		HgjRows		rows = {.first = first, .n = Min(n - first, HGJ_CHUNK)};
		bool		some_null = hgj_values_nulls(vector, &rows, nulls);

		if (hgj_decimals_read((const Datum *) values + first, some_null ? nulls : NULL,
							  rows.n, column->scale, values + first, displays))
			d->run_reason = HGJ_DEVICE_ROW;
	}
}

/*
 * Step 4: where a build side has no row, what the step makes of NULLs, as a value of
 * this kind.  FITS, or why it cannot be had.
 */
HgjDeviceReason
hgj_device_make_missing(const HgjPipelineState *d, HgjDeviceMade *made, uint8 kind)
{
	const HgjColumn *columns = hgj_join(d->joins[made->place.join])->inner.columns;
	uint64		zero = 0;
	HgjVector  *nothing = palloc(mul_size(made->ninputs, sizeof(HgjVector)));
	HgjRows		row = {.n = 1, .whole = true};
	HgjStep    *step = made->step;
	uint32		code = 0;
	bool		good;

	for (int k = 0; k < made->ninputs; k++)
	{
		nothing[k] = (HgjVector) {.has_nulls = true, .values = &zero, .validity = &zero};
		if (made->inputs[k] >= 0)
			nothing[k].width = columns[made->inputs[k]].width;
		made->vectors[k] = &nothing[k];
	}
	made->missing = false;
	good = hgj_program_run_step(made->program, step, made->vectors, &row) &&
		are_decimals(step, step->nulls, 1);
	pfree(nothing);
	if (!good)
		return HGJ_DEVICE_ROW;
	if (step->nulls && step->nulls[0])
		return HGJ_DEVICE_FITS;
	if (made->codes &&
		!hgj_dictionary_find(made->codes, *(const Datum *) step->values, &code))
		return HGJ_DEVICE_GROUP_KEY;
	made->missing = true;
	made->value_missing = made->codes ? code :
		hgj_device_register_value(kind, hgj_load(step->values, step->width));
	return HGJ_DEVICE_FITS;
}

/* ---- the outer table ---------------------------------------------------- */

/* How many rows may be read for a staging buffer?  A multiple of 64. */
static uint32
rows_to_read(const HgjPipelineState *d, const HgjPipeStage *stage)
{
	Size		row = 0;
	Size		rows = stage->capacity;

	for (int i = 0; i < d->nreads; i++)
		if (d->staged[i] < 0)
			row += d->reads[i].width;
	if (row > 0)
		rows = Min(rows, get_hash_memory_limit() / HGJ_READ_SHARE / row);
	return Max(rows / HGJ_CHUNK * HGJ_CHUNK, HGJ_CHUNK);
}

/* Step 3: the batch's vectors, for so many rows. */
static void
point_vectors(HgjPipelineState *d, const HgjPipeStage *stage, uint32 rows)
{
	for (int i = 0; i < d->nreads; i++)
	{
		HgjVector  *vector = &d->batch->vectors[i];

		if (d->staged[i] >= 0)
		{
			vector->values = stage->values[d->staged[i]];
			vector->validity = stage->validity[d->staged[i]];
		}
		else
		{
			hgj_buffer_reserve(d->batch->context, &d->read_buffers[i], d->reads[i].width,
							   rows);
			*vector = d->read_buffers[i].vector;
		}
		hgj_vector_all_valid(vector, rows);
		memset(vector->validity, 0xFF, rows / 8);
	}
	d->batch->capacity = rows;
}

/* What the host makes of the batch's columns. */
static void
make_inputs(HgjPipelineState *d, const HgjPipeStage *stage, uint64 *nulls)
{
	for (int i = 0; i < d->ncolumns && !hgj_device_gave_up(d); i++)
	{
		const HgjDeviceColumn *column = &d->columns[i];
		HgjDeviceMade *made = column->made;
		Target		to;

		if (column->join != HGJ_DEVICE_INPUT || made == NULL)
			continue;
		to = (Target) {stage->values[column->number], stage->validity[column->number], false};
		memset(to.validity, 0xFF, stage->capacity / 8);
		for (int k = 0; k < made->ninputs; k++)
			if (made->inputs[k] >= 0)
				made->vectors[k] = &d->batch->vectors[made->inputs[k]];
		put_made(d, made, d->batch->nrows, &to);
		if (to.nulls)
			*nulls |= UINT64CONST(1) << column->number;
	}
}

/* Of a build side: the values of column i lie in its range (device_sides.c). */
static void
note_values(HgjPipelineState *d, int i, const HgjVector *vector, uint32 n)
{
	const HgjDeviceColumn *column = &d->columns[i];

	if (column->scale >= 0 || column->kind == HGJ_KIND_F4 || column->kind == HGJ_KIND_F8)
		return;
	for (uint32 row = 0; row < n; row++)
		if (!hgj_vector_is_null(vector, row))
			hgj_device_note_range(&d->noted[i], column->kind,
								  (int64) hgj_load((const char *) vector->values +
												   (Size) row * column->width,
												   column->width));
}

/*
 * Fill a staging buffer: the source's next rows.  Returns how many; bit i of *nulls: in
 * input i there are NULLs.
 */
uint32
hgj_device_fill(HgjPipelineState *d, const HgjPipeStage *stage, uint64 *nulls)
{
	uint32		rows = Min(rows_to_read(d, stage), stage->capacity);

	*nulls = 0;
	point_vectors(d, stage, rows);
	d->source.methods->fill(&d->source, d->batch, rows);
	make_inputs(d, stage, nulls);
	for (int i = 0; i < d->ncolumns; i++)
	{
		const HgjDeviceColumn *column = &d->columns[i];
		const HgjVector *vector;

		if (column->join != HGJ_DEVICE_INPUT || column->made)
			continue;
		vector = &d->batch->vectors[column->from];
		if (column->scale >= 0)
			make_decimals(d, column, vector, d->batch->nrows,
						  stage->values[column->number]);
		if (vector->has_nulls)
			*nulls |= UINT64CONST(1) << column->number;
		if (d->spec.fills)
			note_values(d, i, vector, d->batch->nrows);
	}
	return d->batch->nrows;
}

/*
 * What the host makes, of this kind, of each of n values of a column: words of registers, bits of
 * those that are not NULL behind them (engine/pipeline.h, KEPT ROWS).  False: it gives up.
 */
bool
hgj_device_make_table(HgjPipelineState *d, HgjDeviceMade *made, uint8 kind,
					  const HgjVector *values, uint32 n, uint64 *words)
{
	Size		width = hgj_kind_width(kind);
	char	   *made_values = palloc(mul_size(TYPEALIGN(HGJ_CHUNK, n), width));
	Target		to = {made_values, words + n, false};

	memset(to.validity, 0xFF, (n + 63) / 64 * sizeof(uint64));
	for (int k = 0; k < made->ninputs; k++)
		if (made->inputs[k] >= 0)
			made->vectors[k] = values;
	put_made(d, made, n, &to);
	for (uint32 i = 0; i < n; i++)
		words[i] = (uint64) hgj_device_register_value(kind, hgj_load(made_values + i * width,
																	 width));
	pfree(made_values);
	return !hgj_device_gave_up(d);
}

/* ---- build sides -------------------------------------------------------- */

/* A column of some rows of a build side, as a vector. */
static const HgjVector *
gather_side(HgjPipelineState *d, int join, int column, uint32 first, uint32 n)
{
	const HgjBuildSide *build = d->builds[join];
	const HgjStoredColumn *stored = &build->rows.columns[column];
	const HgjColumn *described = &hgj_join(d->joins[join])->inner.columns[column];
	HgjBuffer  *buffer;

	if (d->side_buffers[join] == NULL)
		d->side_buffers[join] =
			MemoryContextAllocZero(GetMemoryChunkContext(d),
								   mul_size(build->rows.ncols, sizeof(HgjBuffer)));
	buffer = &d->side_buffers[join][column];
	hgj_buffer_reserve(GetMemoryChunkContext(d), buffer, described->width, n);
	for (uint32 i = 0; i < n; i++)
	{
		const char *record = hgj_row_store_record(&build->rows, first + i);
		Datum		value = 0;

		if (stored->has_nulls && hgj_record_is_null(stored, record))
			hgj_vector_set_null(&buffer->vector, i);
		else
			value = hgj_record_load(stored, record);
		hgj_store((char *) buffer->vector.values + (Size) i * described->width,
				  described->width, value);
	}
	return &buffer->vector;
}

/* What columns of build sides are made of is not needed any more. */
void
hgj_device_sides_sent(HgjPipelineState *d)
{
	for (int j = 0; j < d->njoins; j++)
		for (int c = 0; d->side_buffers[j] && c < d->builds[j]->rows.ncols; c++)
			hgj_buffer_release(&d->side_buffers[j][c]);
}

/*
 * What the host makes of a build side's columns, or the decimals that a column of
 * numerics is, for n rows.  True: there are NULLs, whose bits are not set.
 */
bool
hgj_device_make_payload(HgjPipelineState *d, const HgjDeviceColumn *column, uint32 first,
						uint32 n, char *values, uint64 *validity)
{
	HgjDeviceMade *made = column->made;
	Target		to = {values, validity, false};
	const HgjVector *whole;

	memset(validity, 0xFF, (n + 63) / 64 * sizeof(uint64));
	if (made == NULL)
	{
		whole = gather_side(d, column->join, column->column, first, n);
		memcpy(values, whole->values, n * sizeof(Datum));
		memcpy(validity, whole->validity, (n + 63) / 64 * sizeof(uint64));
		make_decimals(d, column, whole, n, (int64 *) values);
		return whole->has_nulls;
	}
	if (made->row_number)
	{
		for (uint32 i = 0; i < n; i++)
			((uint32 *) values)[i] = first + i;
		return false;
	}
	for (int k = 0; k < made->ninputs; k++)
		if (made->inputs[k] >= 0)
			made->vectors[k] = gather_side(d, column->join, made->inputs[k], first, n);
	put_made(d, made, n, &to);
	return to.nulls;
}
