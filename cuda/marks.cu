/*-------------------------------------------------------------------------
 *
 * marks.cu
 *	  Match bits: which build rows have found a partner.
 *
 * 1. Kernels set bits in device memory, one per row id below total_rows.
 * 2. The host has a copy, which is brought up to date when somebody looks and
 *	  a kernel may have set bits since.  What mark() sets goes to the copy only:
 *	  the truth is the union of both, for bits are only ever set, or all unset.
 * 3. unmatched walks the copy (engine/marks.c).
 *
 * Both belong to the table.  No locks: see engine.h.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

namespace hgj
{

static uint64_t word_count(uint32_t total_rows)
{
	return ((uint64_t) total_rows + 63) / 64 + 1;
}

/* Bits for that many rows, all unset; nothing in a table that keeps none. */
HgjStatus marks_alloc(HgjTable *table, uint32_t total_rows, HgjError *err)
{
	size_t words = word_count(total_rows);

	if (!(table->spec.flags & HGJ_TABLE_TRACK_MATCHES))
		return HGJ_OK;
	HGJ_TRY(table->bits.get(table, table->lane.stream, words * 8, err));
	HGJ_CUDA(cudaMemsetAsync(table->bits.as<void>(), 0, words * 8, table->lane.stream));
	free(table->host_bits);
	table->host_words = 0;
	table->host_bits = static_cast<uint64_t *>(calloc(words, 8));
	if (table->host_bits == nullptr)
		return fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	table->host_words = words;
	table->bits_changed = false;
	return HGJ_OK;
}

/* Step 2: the copy becomes the union. */
static HgjStatus fetch(HgjTable *table, HgjError *err)
{
	uint64_t *now;
	HgjStatus status;

	if (!table->bits_changed)
		return HGJ_OK;
	HGJ_TRY(table_enter(table, err));
	now = static_cast<uint64_t *>(malloc(table->host_words * 8));
	if (now == nullptr)
		return fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	status = from_device(table, table->lane, now, table->bits.as<void>(),
						 table->host_words * 8, err);
	if (status == HGJ_OK)
		status = wait(table, table->lane, false, err);
	for (size_t w = 0; status == HGJ_OK && w < table->host_words; w++)
		table->host_bits[w] |= now[w];
	free(now);
	HGJ_TRY(status);
	table->bits_changed = false;
	return HGJ_OK;
}

/* Further row ids, unmarked. */
HgjStatus marks_grow(HgjTable *table, uint32_t total_rows, HgjError *err)
{
	size_t words = word_count(total_rows);
	uint64_t *host;
	Buffer bits;

	if (table->host_bits == nullptr || words <= table->host_words)
		return HGJ_OK;
	HGJ_TRY(fetch(table, err));
	HGJ_TRY(bits.get(table, table->lane.stream, words * 8, err));
	HGJ_CUDA(cudaMemsetAsync(bits.as<void>(), 0, words * 8, table->lane.stream));
	host = static_cast<uint64_t *>(calloc(words, 8));
	if (host == nullptr)
		return fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	memcpy(host, table->host_bits, table->host_words * 8);
	free(table->host_bits);
	table->host_bits = host;
	table->host_words = words;
	table->bits.swap(bits);
	return HGJ_OK;
}

static HgjMarks marks_of(const HgjTable *table)
{
	return {table->host_bits, table->total_rows};
}

/* HgjEngine.mark */
HgjStatus table_mark(HgjTable *table, const uint32_t *rows, uint32_t n, HgjError *err)
{
	return hgj_marks_set(marks_of(table), rows, n, err);
}

/* HgjEngine.is_marked */
bool table_is_marked(const HgjTable *table, uint32_t row)
{
	return fetch(const_cast<HgjTable *>(table), nullptr) == HGJ_OK &&
		   hgj_marks_has(marks_of(table), row);
}

/* HgjEngine.unmatched */
HgjStatus table_unmatched(const HgjTable *table, uint32_t *cursor, uint32_t *rows,
						  uint32_t capacity, uint32_t *n, HgjError *err)
{
	*n = 0;
	HGJ_TRY(fetch(const_cast<HgjTable *>(table), err));
	return hgj_marks_unset(&table->spec, marks_of(table), cursor, rows, capacity, n, err);
}

/* HgjEngine.clear_marks */
HgjStatus table_clear_marks(HgjTable *table, HgjError *err)
{
	if (table->host_bits == nullptr)
		return fail(err, HGJ_INVALID, "the table keeps no match bits");
	HGJ_TRY(table_enter(table, err));
	HGJ_CUDA(cudaMemsetAsync(table->bits.as<void>(), 0, table->host_words * 8,
							 table->lane.stream));
	HGJ_TRY(wait(table, table->lane, false, err));
	memset(table->host_bits, 0, table->host_words * 8);
	table->bits_changed = false;
	return HGJ_OK;
}

} // namespace hgj
