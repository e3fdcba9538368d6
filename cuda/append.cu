/*-------------------------------------------------------------------------
 *
 * append.cu
 *	  Rows that wait for a build.
 *
 * 1. A batch's rows are copied into a pinned buffer that is kept from call to
 *	  call, for batches are small.  The range of the keys (of one word) and of
 *	  the row ids is taken on the way.
 * 2. A full buffer is sent to the device, while the next rows go to the other
 *	  one.  Row ids that count up, as they mostly do, are not sent but written
 *	  by a kernel.
 * 3. On the device the rows lie in chunks, each half as large as all before it
 *	  together, so that nothing is copied twice.
 * 4. Batches that are on the device already are copied there.
 * 5. A call that fails cuts the rows back to what there was.
 *
 * Chunks and pinned buffers belong to the table.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include <new>

#include "internal.h"
#include "stage.h"

namespace hgj
{

/* Free every appended row. */
void free_chunks(HgjTable *table)
{
	while (table->first_chunk != nullptr)
	{
		Chunk *next = table->first_chunk->next;

		delete table->first_chunk;
		table->first_chunk = next;
	}
	table->last_chunk = nullptr;
}

static uint64_t chunk_room(const HgjTable *table)
{
	const Chunk *last = table->last_chunk;

	return last != nullptr ? last->cap - last->n : 0;
}

static uint64_t chunk_bytes(uint32_t nwords, uint64_t rows)
{
	return (rows * nwords * 8 + 511) / 512 * 512 + (rows * 4 + 511) / 512 * 512;
}

/* Bytes that the rows still in the stage will take on the device. */
uint64_t chunks_to_come(const HgjTable *table)
{
	uint64_t room = chunk_room(table);

	return table->staged > room ? chunk_bytes(table->spec.nwords, table->staged - room)
								: 0;
}

/* A further chunk of that many rows. */
static HgjStatus add_chunk(HgjTable *table, uint64_t cap, HgjError *err)
{
	Chunk *chunk = new (std::nothrow) Chunk;
	HgjStatus status;

	if (chunk == nullptr)
		return fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	status =
		chunk->words.get(table, table->lane.stream, cap * table->spec.nwords * 8, err);
	if (status == HGJ_OK)
		status = chunk->rows.get(table, table->lane.stream, cap * 4, err);
	if (status != HGJ_OK)
	{
		delete chunk;
		return status;
	}
	chunk->cap = cap;
	if (table->last_chunk != nullptr)
		table->last_chunk->next = chunk;
	else
		table->first_chunk = chunk;
	table->last_chunk = chunk;
	return HGJ_OK;
}

/* Step 3: room for n more rows; `exactly` once no more will come. */
static HgjStatus make_room(HgjTable *table, uint64_t n, bool exactly, HgjError *err)
{
	uint64_t room = chunk_room(table);
	uint64_t more = table->nrows / 2;
	HgjStatus status = HGJ_LIMIT;

	if (n <= room)
		return HGJ_OK;
	if (!exactly && more > n - room)
		status = add_chunk(table, more, err);
	if (status != HGJ_OK)
		status = add_chunk(table, n - room, err);
	return status;
}

/* Rows from .. from + n of the stage to the end of a chunk. */
static HgjStatus send(HgjTable *table, Chunk *chunk, uint32_t from, uint32_t n,
					  HgjError *err)
{
	uint32_t nwords = table->spec.nwords;
	const uint64_t *words = table->stages[table->stage].memory.as<uint64_t>();
	const uint32_t *ids =
		reinterpret_cast<const uint32_t *>(words + (size_t) table->stage_cap * nwords) +
		from;
	uint32_t *to_ids = chunk->rows.as<uint32_t>() + chunk->n;
	bool counting = true;

	HGJ_TRY(to_device(table, table->lane, chunk->words.as<uint64_t>() + chunk->n * nwords,
					  words + (size_t) from * nwords, (size_t) n * nwords * 8, err));
	for (uint32_t i = 1; i < n && counting; i++)
		counting = ids[i] == ids[0] + i;
	if (counting)
		HGJ_TRY(fill_row_ids(table->lane, to_ids, ids[0], n, err));
	else
		HGJ_TRY(to_device(table, table->lane, to_ids, ids, (size_t) n * 4, err));
	chunk->n += n;
	return HGJ_OK;
}

/* Step 2: what is in the stage goes to the device. */
static HgjStatus flush(HgjTable *table, bool exactly, HgjError *err)
{
	Stage *stage = &table->stages[table->stage];
	Chunk *first = table->last_chunk;
	uint64_t room = chunk_room(table);
	uint32_t n = table->staged;
	uint32_t to_first = room < n ? (uint32_t) room : n;

	if (n == 0)
		return HGJ_OK;
	HGJ_TRY(make_room(table, n, exactly, err));
	stage->busy = true;
	if (to_first > 0)
		HGJ_TRY(send(table, first, 0, to_first, err));
	if (n > to_first)
		HGJ_TRY(send(table, table->last_chunk, to_first, n - to_first, err));
	HGJ_CUDA(cudaEventRecord(stage->event, table->lane.stream));
	table->staged = 0;
	table->stage ^= 1;
	return HGJ_OK;
}

/* Before a build: everything to the device. */
HgjStatus append_flush(HgjTable *table, HgjError *err)
{
	return flush(table, true, err);
}

/* Step 5: back to that many rows, of which none was sent twice. */
static void cut_rows(HgjTable *table, uint64_t nrows)
{
	uint64_t before = 0;
	Chunk *chunk = table->first_chunk;
	Chunk *last = nullptr;

	for (; chunk != nullptr; chunk = chunk->next)
	{
		if (before + chunk->n > nrows)
			chunk->n = nrows - before;
		before += chunk->n;
		if (chunk->n > 0)
			last = chunk;
	}
	chunk = last != nullptr ? last->next : table->first_chunk;
	while (chunk != nullptr)
	{
		Chunk *next = chunk->next;

		delete chunk;
		chunk = next;
	}
	if (last != nullptr)
		last->next = nullptr;
	else
		table->first_chunk = nullptr;
	table->last_chunk = last;
	table->staged = (uint32_t) (nrows - before);
	table->nrows = nrows;
}

/* Steps 1 and 2. */
static HgjStatus append_host(HgjTable *table, const HgjKeys *keys, uint32_t first_row,
							 const uint32_t *row_ids, HgjError *err)
{
	uint32_t nwords = table->spec.nwords;
	uint32_t n = hgj_key_count(keys);

	table->stage_cap = stage_rows(nwords);
	for (uint32_t done = 0; done < n;)
	{
		Stage *stage = &table->stages[table->stage];
		uint32_t take = table->stage_cap - table->staged;
		uint64_t *words;
		uint32_t *ids;

		take = n - done < take ? n - done : take;
		if (table->staged == 0)
			HGJ_TRY(stage->open(stage_bytes(nwords, table->stage_cap), err));
		words = stage->memory.as<uint64_t>() + (size_t) table->staged * nwords;
		ids = reinterpret_cast<uint32_t *>(stage->memory.as<uint64_t>() +
										   (size_t) table->stage_cap * nwords) +
			  table->staged;
		stage_words(keys, nwords, done, take, words);
		stage_ids(keys, done, take, first_row, row_ids, ids);
		if (nwords == 1)
			hgj_key_range(words, take, &table->min_key, &table->max_key);
		table->staged += take;
		table->nrows += take;
		done += take;
		if (table->staged == table->stage_cap)
		{
			HGJ_TRY(poll(table, err));
			HGJ_TRY(flush(table, false, err));
		}
	}
	return HGJ_OK;
}

/* Step 4. */
static HgjStatus append_device(HgjTable *table, const HgjKeys *keys, uint32_t first_row,
							   const uint32_t *row_ids, uint64_t *max_row, HgjError *err)
{
	KeyUpload up;
	Rows rows;
	int64_t lo;
	int64_t hi;
	uint32_t top;
	Chunk *chunk;

	HGJ_TRY(flush(table, false, err));
	HGJ_TRY(
		upload_keys(table, table->lane, &up, keys, row_ids, first_row, true, &rows, err));
	HGJ_TRY(device_key_range(table, table->lane, rows, &lo, &hi, &top, err));
	if (top >= HGJ_MAX_ROWS)
		return fail(err, HGJ_INVALID, "a row id is out of range");
	if (chunk_room(table) < rows.n &&
		(table->nrows / 2 <= rows.n || add_chunk(table, table->nrows / 2, err) != HGJ_OK))
		HGJ_TRY(add_chunk(table, rows.n, err));
	chunk = table->last_chunk;
	HGJ_TRY(copy_rows(table->lane, rows,
					  chunk->words.as<uint64_t>() + chunk->n * table->spec.nwords,
					  chunk->rows.as<uint32_t>() + chunk->n, err));
	HGJ_TRY(wait(table, table->lane, true, err));
	chunk->n += rows.n;
	table->nrows += rows.n;
	table->min_key = lo < table->min_key ? lo : table->min_key;
	table->max_key = hi > table->max_key ? hi : table->max_key;
	*max_row = top;
	return HGJ_OK;
}

/*
 * HgjEngine.append: take in the selected rows of a batch, all or none.
 * HGJ_LIMIT where row ids, the count of rows, or memory pass their limits.
 */
HgjStatus table_append(HgjTable *table, const HgjKeys *keys, uint32_t first_row,
					   const uint32_t *row_ids, HgjError *err)
{
	uint64_t nrows = table->nrows;
	int64_t min_key = table->min_key;
	int64_t max_key = table->max_key;
	uint64_t max_row = 0;
	uint32_t n;
	HgjStatus status;

	if (table->built)
		return fail(err, HGJ_INVALID, "append after build");
	HGJ_TRY(table_enter(table, err));
	HGJ_TRY(check_keys(table, keys, err));
	HGJ_TRY(check_rows(keys, first_row, row_ids, &max_row, err));
	n = hgj_key_count(keys);
	if (n == 0)
		return HGJ_OK;
	if (table->nrows + n > HGJ_MAX_ROWS)
		return fail(err, HGJ_LIMIT, "a table holds at most 4294967280 rows");
	if (keys->location == HGJ_ON_DEVICE)
		status = append_device(table, keys, first_row, row_ids, &max_row, err);
	else
		status = append_host(table, keys, first_row, row_ids, err);
	if (status != HGJ_OK)
	{
		cut_rows(table, nrows);
		table->min_key = min_key;
		table->max_key = max_key;
		return status;
	}
	if (max_row > table->max_row)
		table->max_row = max_row;
	return HGJ_OK;
}

} // namespace hgj
