/*-------------------------------------------------------------------------
 *
 * keys.cu
 *	  The keys of one call, brought to the device in the form kernels want.
 *
 * 1. Host arrays go through two pinned buffers in turn: while one is being
 *	  transferred, the host fills the other.  Only selected rows are copied.
 * 2. Device arrays of one word are used where they are.  Those of several words
 *	  are brought together row by row, so that comparing a key reads one place.
 * 3. What a batch must be checked for (selection, row ids) is checked here.
 *
 * The pinned buffers and the device copies belong to the KeyUpload.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "device.cuh"
#include "stage.h"

namespace hgj
{

struct Columns
{
	const uint64_t *words[HGJ_MAX_KEY_WORDS];
};

struct Extent
{
	long long min_key;
	long long max_key;
	unsigned int max_row;
};

/* Step 2: columns to rows. */
__global__ void gather_columns(Columns columns, uint32_t nwords, const uint32_t *sel,
							   const uint32_t *row_ids, uint32_t first_row, uint64_t n,
							   uint64_t *words, uint32_t *ids)
{
	uint64_t total = n * nwords;

	FOR_GRID (k, total)
	{
		uint32_t w = (uint32_t) (k / n);
		uint64_t i = k - w * n;
		uint64_t from = sel != nullptr ? sel[i] : i;

		words[i * nwords + w] = columns.words[w][from];
		if (w == 0 && ids != nullptr)
			ids[i] = row_ids != nullptr ? row_ids[from] : first_row + (uint32_t) from;
	}
}

__global__ void key_extent(Rows rows, Extent *extent)
{
	long long lo = LLONG_MAX;
	long long hi = LLONG_MIN;
	unsigned int row = 0;

	FOR_GRID (i, rows.n)
	{
		uint64_t at = rows.sel != nullptr ? rows.sel[i] : i;
		unsigned int id =
			rows.rows != nullptr ? rows.rows[at] : rows.first_row + (uint32_t) at;

		row = max(row, id);
		if (rows.nwords == 1)
		{
			long long key =
				rows.word_bytes == 8
					? (long long) static_cast<const uint64_t *>(rows.words)[at]
					: (long long) static_cast<const uint32_t *>(rows.words)[at];

			lo = min(lo, key);
			hi = max(hi, key);
		}
	}
	lo = warp_reduce(lo, [](long long a, long long b) { return min(a, b); });
	hi = warp_reduce(hi, [](long long a, long long b) { return max(a, b); });
	row = warp_max(row);
	if (threadIdx.x % 32 == 0)
	{
		atomicMin(&extent->min_key, lo);
		atomicMax(&extent->max_key, hi);
		atomicMax(&extent->max_row, row);
	}
}

__global__ void copy_rows_kernel(Rows from, uint64_t *words, uint32_t *ids)
{
	FOR_GRID (i, from.n)
	{
		uint64_t at = from.sel != nullptr ? from.sel[i] : i;

		if (ids != nullptr)
			ids[i] =
				from.rows != nullptr ? from.rows[at] : from.first_row + (uint32_t) at;
		if (from.word_bytes == 4)
			words[i] = static_cast<const uint32_t *>(from.words)[at];
		else
			for (uint32_t w = 0; w < from.nwords; w++)
				words[i * from.nwords + w] =
					static_cast<const uint64_t *>(from.words)[at * from.nwords + w];
	}
}

__global__ void iota_kernel(uint32_t *ids, uint32_t first_row, uint64_t n)
{
	FOR_GRID (i, n)
		ids[i] = first_row + (uint32_t) i;
}

/* Keys (one word) and row ids of some rows: smallest and largest; waits. */
HgjStatus device_key_range(HgjTable *table, const Lane &lane, const Rows &rows,
						   int64_t *min_key, int64_t *max_key, uint32_t *max_row,
						   HgjError *err)
{
	Extent extent = {LLONG_MAX, LLONG_MIN, 0};
	Buffer buffer;

	HGJ_TRY(buffer.get(table, lane.stream, sizeof(extent), err));
	HGJ_CUDA(cudaMemcpyAsync(buffer.as<void>(), &extent, sizeof(extent),
							 cudaMemcpyHostToDevice, lane.stream));
	key_extent<<<grid_of(lane, rows.n, 16), 256, 0, lane.stream>>>(rows, buffer.as<Extent>());
	HGJ_CUDA(cudaGetLastError());
	HGJ_CUDA(cudaMemcpyAsync(&extent, buffer.as<void>(), sizeof(extent),
							 cudaMemcpyDeviceToHost, lane.stream));
	HGJ_TRY(wait(table, lane, false, err));
	*min_key = extent.min_key;
	*max_key = extent.max_key;
	*max_row = extent.max_row;
	return HGJ_OK;
}

/* Rows into arrays without gaps: words row by row, 8 bytes each, and row ids. */
HgjStatus copy_rows(const Lane &lane, const Rows &from, uint64_t *words, uint32_t *ids,
					HgjError *err)
{
	if (from.n == 0)
		return HGJ_OK;
	copy_rows_kernel<<<grid_of(lane, from.n, 16), 256, 0, lane.stream>>>(from, words, ids);
	HGJ_CUDA(cudaGetLastError());
	return HGJ_OK;
}

HgjStatus fill_row_ids(const Lane &lane, uint32_t *ids, uint32_t first_row, uint64_t n,
					   HgjError *err)
{
	if (n == 0)
		return HGJ_OK;
	iota_kernel<<<grid_of(lane, n, 16), 256, 0, lane.stream>>>(ids, first_row, n);
	HGJ_CUDA(cudaGetLastError());
	return HGJ_OK;
}

/* Step 3: whether a batch is one that this table can take. */
HgjStatus check_keys(const HgjTable *table, const HgjKeys *keys, HgjError *err)
{
	uint32_t last;

	if (keys != nullptr && keys->location != HGJ_ON_HOST &&
		keys->location != HGJ_ON_DEVICE)
		return fail(err, HGJ_UNSUPPORTED, "keys are on the host or on the device");
	HGJ_TRY(hgj_check_keys(keys, table->spec.nwords, err));
	if (keys->location == HGJ_ON_HOST || keys->sel == nullptr || hgj_key_count(keys) == 0)
		return HGJ_OK;
	HGJ_CUDA(cudaMemcpy(&last, keys->sel + keys->nsel - 1, sizeof(last),
						cudaMemcpyDeviceToHost));
	if (last >= keys->nrows)
		return fail(err, HGJ_INVALID, "the selection is not one of the batch's rows");
	return HGJ_OK;
}

/*
 * The largest row id that the selected rows of a batch get (0 if none); device
 * row ids are left to device_key_range.
 */
HgjStatus check_rows(const HgjKeys *keys, uint32_t first_row, const uint32_t *row_ids,
					 uint64_t *max_row, HgjError *err)
{
	HgjKeys all = *keys;

	if (keys->location == HGJ_ON_HOST)
		return hgj_check_rows(keys, first_row, row_ids, max_row, err);
	*max_row = 0;
	if (row_ids != nullptr || hgj_key_count(keys) == 0)
		return HGJ_OK;
	/* the selection is not looked at: as if all rows took part */
	all.sel = nullptr;
	return hgj_check_rows(&all, first_row, nullptr, max_row, err);
}

/* Step 2. */
static HgjStatus upload_device(HgjTable *table, const Lane &lane, KeyUpload *up,
							   const HgjKeys *keys, const uint32_t *row_ids,
							   uint32_t first_row, Rows *rows, HgjError *err)
{
	uint32_t n = hgj_key_count(keys);
	uint32_t nwords = table->spec.nwords;
	Columns columns;

	rows->first_row = first_row;
	if (nwords == 1)
	{
		rows->words = keys->words[0];
		rows->rows = row_ids;
		rows->sel = keys->sel;
		return HGJ_OK;
	}
	HGJ_TRY(up->words.reserve(table, lane.stream, (size_t) n * nwords * 8, err));
	HGJ_TRY(up->ids.reserve(table, lane.stream, (size_t) n * 4, err));
	memset(&columns, 0, sizeof(columns));
	for (uint32_t w = 0; w < nwords; w++)
		columns.words[w] = keys->words[w];
	gather_columns<<<grid_of(lane, (uint64_t) n * nwords, 16), 256, 0, lane.stream>>>(
		columns, nwords, keys->sel, row_ids, first_row, n, up->words.as<uint64_t>(),
		up->ids.as<uint32_t>());
	HGJ_CUDA(cudaGetLastError());
	rows->words = up->words.as<void>();
	rows->rows = up->ids.as<uint32_t>();
	return HGJ_OK;
}

/*
 * The selected keys of a batch as Rows, which are valid as long as `up` is and
 * no further keys are uploaded with it.  Row ids are row_ids[index], or
 * first_row + index.  Does not wait for the device.
 */
HgjStatus upload_keys(HgjTable *table, const Lane &lane, KeyUpload *up,
					  const HgjKeys *keys, const uint32_t *row_ids, uint32_t first_row,
					  bool want_ids, Rows *rows, HgjError *err)
{
	uint32_t n = hgj_key_count(keys);
	uint32_t nwords = table->spec.nwords;
	bool ids = want_ids && (row_ids != nullptr || keys->sel != nullptr);
	uint32_t turn = 0;

	memset(rows, 0, sizeof(*rows));
	rows->n = n;
	rows->nwords = nwords;
	rows->word_bytes = 8;
	if (n == 0)
		return HGJ_OK;
	if (keys->location == HGJ_ON_DEVICE)
		return upload_device(table, lane, up, keys, row_ids, first_row, rows, err);
	HGJ_TRY(up->words.reserve(table, lane.stream, (size_t) n * nwords * 8, err));
	if (ids)
		HGJ_TRY(up->ids.reserve(table, lane.stream, (size_t) n * 4, err));
	up->stage_cap = stage_rows(nwords);
	for (uint32_t done = 0; done < n; turn ^= 1)
	{
		uint32_t take = n - done < up->stage_cap ? n - done : up->stage_cap;
		Stage *stage = &up->stages[turn];
		uint64_t *words;
		uint32_t *staged_ids;

		HGJ_TRY(stage->open(stage_bytes(nwords, take), err));
		words = stage->memory.as<uint64_t>();
		staged_ids = reinterpret_cast<uint32_t *>(words + (size_t) take * nwords);
		stage_words(keys, nwords, done, take, words);
		HGJ_TRY(to_device(table, lane, up->words.as<uint64_t>() + (size_t) done * nwords,
						  words, (size_t) take * nwords * 8, err));
		stage->busy = true;
		if (ids)
		{
			stage_ids(keys, done, take, first_row, row_ids, staged_ids);
			HGJ_TRY(to_device(table, lane, up->ids.as<uint32_t>() + done, staged_ids,
							  (size_t) take * 4, err));
		}
		HGJ_CUDA(cudaEventRecord(stage->event, lane.stream));
		done += take;
		if (done < n)
			HGJ_TRY(poll(table, err));
	}
	rows->words = up->words.as<void>();
	rows->rows = ids ? up->ids.as<uint32_t>() : nullptr;
	rows->first_row = first_row;
	return HGJ_OK;
}

} // namespace hgj
