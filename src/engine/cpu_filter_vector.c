/*-------------------------------------------------------------------------
 *
 * cpu_filter_vector.c
 *	  Testing keys against a filter of a bit per key, eight at a time, on processors
 *	  that have the instructions (AVX-512 of x86-64).
 *
 * Of a chain of joins, it is this that happens to every row of the largest table, and
 * little else does (key_filters.c): one key at a time it is a third of what a star join
 * whose columns are kept in memory costs.
 *
 * 1. Eight keys, of consecutive rows or of those of a selection; less the least key they
 *	  are the numbers of bits.
 * 2. Those in range fetch the word of their bit, and have it turned to the lowest place.
 * 3. The rows whose bit is set are moved together, and stored; what lies behind them is
 *	  written over by the next eight.
 * 4. What is left, fewer than eight, is the caller's, and so are all rows where the
 *	  processor has no such instructions.
 *
 * The selection may be what is written: eight rows of it have been read before as many, or
 * fewer, are stored at or before their place.
 *
 * No memory, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "cpu_probe.h"

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#define LANES	8

/* Has the processor what is here, and in cpu_quotient.c? */
bool
hgj_cpu_has_vectors(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("popcnt");
}

/* Steps 1 to 3; n is a multiple of LANES. */
__attribute__((target("avx512f,avx512vl")))
static uint32_t
test_eights(const HgjProbe *probe, uint32_t at, uint32_t n, uint32_t *out)
{
	const Filter *filter = &probe->table->filter;
	const uint64_t *column = probe->keys.words[0];
	const uint32_t *sel = probe->keys.sel;
	const __m512i base = _mm512_set1_epi64((long long) filter->base);
	const __m512i range = _mm512_set1_epi64((long long) filter->range);
	const __m512i one = _mm512_set1_epi64(1);
	const __m256i eight = _mm256_set1_epi32(LANES);
	__m256i		rows = _mm256_add_epi32(_mm256_set1_epi32((int) at),
										_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
	uint32_t	kept = 0;
	uint32_t	i;

	for (i = 0; i < n; i += LANES)
	{
		__m512i		keys;
		__m512i		words;
		__mmask8	in;

		if (sel != NULL)
		{
			rows = _mm256_loadu_si256((const __m256i *) (const void *) (sel + at + i));
			keys = _mm512_i32gather_epi64(rows, (const void *) column, 8);
		}
		else
			keys = _mm512_loadu_si512(column + at + i);
		keys = _mm512_sub_epi64(keys, base);
		in = _mm512_cmple_epu64_mask(keys, range);
		words = _mm512_mask_i64gather_epi64(_mm512_setzero_si512(), in,
											_mm512_srli_epi64(keys, 6),
											(const void *) filter->words, 8);
		in = _mm512_test_epi64_mask(_mm512_rorv_epi64(words, keys), one);
		_mm256_storeu_si256((__m256i *) (void *) (out + kept),
							_mm256_maskz_compress_epi32(in, rows));
		kept += (uint32_t) __builtin_popcount(in);
		rows = _mm256_add_epi32(rows, eight);
	}
	return kept;
}

/*
 * Rows at .. at + n of the probe's selection, of which *done, the first ones, have been
 * tested; those of them that pass are in `out`, which has room for n.  Returns how many.
 */
uint32_t
hgj_cpu_test_keys(const HgjProbe *probe, uint32_t at, uint32_t n, uint32_t *out,
				  uint32_t *done)
{
	/* rows are signed to the instructions */
	*done = hgj_cpu_has_vectors() && probe->keys.nrows <= INT32_MAX ? n / LANES * LANES : 0;
	return *done > 0 ? test_eights(probe, at, *done, out) : 0;
}

#else

uint32_t
hgj_cpu_test_keys(const HgjProbe *probe, uint32_t at, uint32_t n, uint32_t *out,
				  uint32_t *done)
{
	(void) probe;
	(void) at;
	(void) n;
	(void) out;
	*done = 0;
	return 0;
}

#endif
