/*-------------------------------------------------------------------------
 *
 * stage.h
 *	  Host rows into pinned memory: words row by row, and row ids.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CUDA_STAGE_H
#define HGJ_CUDA_STAGE_H

#include <string.h>

#include "internal.h"

namespace hgj
{

/* Of one pinned buffer: large enough for PCIe's full rate, two of them in L3. */
constexpr size_t STAGE_BYTES = (size_t) 4 << 20;

inline size_t stage_bytes(uint32_t nwords, uint32_t rows)
{
	return (size_t) rows * (nwords * 8 + 4);
}

inline uint32_t stage_rows(uint32_t nwords)
{
	return (uint32_t) (STAGE_BYTES / (nwords * 8 + 4));
}

/* The key words of selected rows from .. from + n of a batch. */
inline void stage_words(const HgjKeys *keys, uint32_t nwords, uint32_t from, uint32_t n,
						uint64_t *to)
{
	const uint32_t *sel = keys->sel != nullptr ? keys->sel + from : nullptr;

	for (uint32_t w = 0; w < nwords; w++)
	{
		const uint64_t *column = keys->words[w];

		if (sel == nullptr && nwords == 1)
			memcpy(to, column + from, (size_t) n * sizeof(uint64_t));
		else if (sel == nullptr)
			for (uint32_t i = 0; i < n; i++)
				to[(size_t) i * nwords + w] = column[from + i];
		else
			for (uint32_t i = 0; i < n; i++)
				to[(size_t) i * nwords + w] = column[sel[i]];
	}
}

/* Their row ids. */
inline void stage_ids(const HgjKeys *keys, uint32_t from, uint32_t n, uint32_t first_row,
					  const uint32_t *row_ids, uint32_t *to)
{
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t at = keys->sel != nullptr ? keys->sel[from + i] : from + i;

		to[i] = row_ids != nullptr ? row_ids[at] : first_row + at;
	}
}

} // namespace hgj

#endif /* HGJ_CUDA_STAGE_H */
