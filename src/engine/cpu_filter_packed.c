/*-------------------------------------------------------------------------
 *
 * cpu_filter_packed.c
 *	  Integer keys tested against a filter of a bit per key as they are kept: numbers of
 *	  one to four bytes, which nobody has widened to key words.
 *
 * The keys of a fact table's rows come in slices of kept columns, and most of them fail.
 * Widening a key, storing its word and loading it again took as long as the test.
 *
 * 1. The filter's range is cut to the numbers that there are, so that everything about a
 *	  key fits into 32 bits: a number passes the range test if it is no more than `span`
 *	  above `first`.
 * 2. Where the processor has AVX2, eight numbers are widened in registers, the words of
 *	  their bits are gathered, and each bit is shifted to the sign of its lane.  The numbers
 *	  of the rows that pass are moved together by a table of permutations, and stored; what
 *	  lies behind them is written over by the next eight.
 * 3. Elsewhere, and for the last rows, they are tested one by one: every row is written, and
 *	  only those that pass are kept, so that there is nothing to guess for the processor.
 *
 * Eight lanes of AVX2 keep the load ports as busy as sixteen of AVX-512: there is no second
 * version.
 *
 * No memory, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "cpu_probe.h"

/* What step 1 makes of a filter. */
typedef struct Range
{
	const uint64_t *words;		/* the filter's bits */
	uint32_t	first;			/* the least number that is in range */
	uint32_t	span;			/* the greatest one, less `first` */
	uint32_t	skip;			/* the bit of `first` */
} Range;

/* Bits whose numbers are more than this are not for signed lanes. */
#define MOST_BITS	((uint64_t) INT32_MAX)

/* Step 1; false: no number passes.  All sums are modulo 2^64, as key words are. */
static bool
cut_range(const Filter *filter, uint64_t base, Range *range)
{
	uint64_t	least = filter->base - base;
	uint64_t	last = least + filter->range;
	bool		below = least > UINT32_MAX;

	/* a range that begins below all numbers must reach them */
	if (below && last > UINT32_MAX)
		return false;
	range->words = filter->words;
	range->first = below ? 0 : (uint32_t) least;
	range->skip = below ? (uint32_t) (0 - least) : 0;
	range->span = (uint32_t) (last > UINT32_MAX ? UINT32_MAX : last) - range->first;
	return true;
}

/* Does the number's bit say that its key is there? */
HGJ_INLINE uint32_t
range_has(const Range *range, uint32_t number)
{
	uint32_t	bit = number - range->first;
	bool		in = bit <= range->span;

	bit = (in ? bit : 0) + range->skip;
	return in & (range->words[bit / 64] >> (bit % 64));
}

/* The number of row i. */
HGJ_INLINE uint32_t
number_at(const HgjPackedKeys *keys, uint32_t width, uint32_t i)
{
	switch (width)
	{
		case 1:
			return ((const uint8_t *) keys->numbers)[i];
		case 2:
			return ((const uint16_t *) keys->numbers)[i];
		case 3:
			return ((const uint16_t *) keys->numbers)[i] | (uint32_t) keys->third[i] << 16;
		default:
			return ((const uint32_t *) keys->numbers)[i];
	}
}

/* Step 3, from row `at` on; `kept` have passed before it.  Returns how many have in all. */
HGJ_INLINE uint32_t
test_singly(const Range *range, const HgjPackedKeys *keys, uint32_t width, uint32_t at,
			uint32_t kept, uint32_t *rows)
{
	for (; at < keys->n; at++)
	{
		rows[kept] = at;
		kept += range_has(range, number_at(keys, width, at));
	}
	return kept;
}

#if defined(__x86_64__) && defined(__GNUC__)

#include <immintrin.h>

#define LANES	8

/* For each set of lanes, their numbers, four bits each, the first in the lowest. */
#define LANE(set, below, lane) \
	((set) >> (lane) & 1 ? (uint32_t) (lane) << 4 * (below) : 0)
#define BELOW(set, lane) \
	(((set) & 1 & ((lane) > 0)) + ((set) >> 1 & 1 & ((lane) > 1)) + \
	 ((set) >> 2 & 1 & ((lane) > 2)) + ((set) >> 3 & 1 & ((lane) > 3)) + \
	 ((set) >> 4 & 1 & ((lane) > 4)) + ((set) >> 5 & 1 & ((lane) > 5)) + \
	 ((set) >> 6 & 1 & ((lane) > 6)))
#define SET(set) \
	(LANE(set, BELOW(set, 0), 0) | LANE(set, BELOW(set, 1), 1) | \
	 LANE(set, BELOW(set, 2), 2) | LANE(set, BELOW(set, 3), 3) | \
	 LANE(set, BELOW(set, 4), 4) | LANE(set, BELOW(set, 5), 5) | \
	 LANE(set, BELOW(set, 6), 6) | LANE(set, BELOW(set, 7), 7))
#define SETS_4(set)		SET(set), SET((set) + 1), SET((set) + 2), SET((set) + 3)
#define SETS_16(set)	SETS_4(set), SETS_4((set) + 4), SETS_4((set) + 8), SETS_4((set) + 12)
#define SETS_64(set)	SETS_16(set), SETS_16((set) + 16), SETS_16((set) + 32), SETS_16((set) + 48)

static const uint32_t lanes_of_set[256] = {SETS_64(0), SETS_64(64), SETS_64(128), SETS_64(192)};

/* Has the processor what is here? */
static bool
has_avx2(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt");
}

/* The numbers of rows at .. at + 7. */
__attribute__((target("avx2"), always_inline))
static inline __m256i
eight_numbers(const HgjPackedKeys *keys, uint32_t width, uint32_t at)
{
	const uint8_t *from = (const uint8_t *) keys->numbers + (size_t) at * (width == 3 ? 2 : width);
	__m256i		low;

	if (width == 1)
		return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *) (const void *) from));
	if (width == 4)
		return _mm256_loadu_si256((const __m256i *) (const void *) from);
	low = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *) (const void *) from));
	if (width == 2)
		return low;
	return _mm256_or_si256(low, _mm256_slli_epi32(
		_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *) (const void *) (keys->third + at))), 16));
}

/* Step 2 for the first n rows, a multiple of LANES.  Returns how many have passed. */
__attribute__((target("avx2,popcnt"), always_inline))
static inline uint32_t
test_eights(const Range *range, const HgjPackedKeys *keys, uint32_t width, uint32_t n,
			uint32_t *rows)
{
	const __m256i first = _mm256_set1_epi32((int) range->first);
	const __m256i span = _mm256_set1_epi32((int) range->span);
	const __m256i skip = _mm256_set1_epi32((int) range->skip);
	const __m256i places = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
	const __m256i eight = _mm256_set1_epi32(LANES);
	__m256i		numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
	uint32_t	kept = 0;

	for (uint32_t at = 0; at < n; at += LANES)
	{
		__m256i		bits = _mm256_sub_epi32(eight_numbers(keys, width, at), first);
		__m256i		in = _mm256_cmpeq_epi32(_mm256_min_epu32(bits, span), bits);
		__m256i		words;
		uint32_t	set;

		bits = _mm256_add_epi32(bits, skip);
		words = _mm256_mask_i32gather_epi32(_mm256_setzero_si256(), (const int *) (const void *) range->words,
											_mm256_srli_epi32(bits, 5), in, 4);
		/* 31 less the lower five bits of each */
		words = _mm256_sllv_epi32(words, _mm256_andnot_si256(bits, _mm256_set1_epi32(31)));
		set = (uint32_t) _mm256_movemask_ps(_mm256_castsi256_ps(words));
		_mm256_storeu_si256((__m256i *) (void *) (rows + kept),
							_mm256_permutevar8x32_epi32(numbers, _mm256_srlv_epi32(
								_mm256_set1_epi32((int) lanes_of_set[set]), places)));
		kept += (uint32_t) __builtin_popcount(set);
		numbers = _mm256_add_epi32(numbers, eight);
	}
	return kept;
}

/* Step 2 by the numbers' width. */
__attribute__((target("avx2,popcnt")))
static uint32_t
test_vectors(const Range *range, const HgjPackedKeys *keys, uint32_t n, uint32_t *rows)
{
	switch (keys->width)
	{
		case 1:
			return test_eights(range, keys, 1, n, rows);
		case 2:
			return test_eights(range, keys, 2, n, rows);
		case 3:
			return test_eights(range, keys, 3, n, rows);
		default:
			return test_eights(range, keys, 4, n, rows);
	}
}

#else

#define LANES	8

static bool
has_avx2(void)
{
	return false;
}

static uint32_t
test_vectors(const Range *range, const HgjPackedKeys *keys, uint32_t n, uint32_t *rows)
{
	(void) range;
	(void) keys;
	(void) n;
	(void) rows;
	return 0;
}

#endif

/*
 * The rows, ascending, whose keys the filter has; `rows` has room for one more than there
 * are.  Returns how many.  The filter has a bit per key, of MOST_BITS keys at most
 * (hgj_cpu_reads_packed()).
 */
uint32_t
hgj_cpu_test_packed(const Filter *filter, const HgjPackedKeys *keys, uint32_t *rows)
{
	Range		range;
	uint32_t	done = 0;
	uint32_t	kept = 0;

	if (!cut_range(filter, keys->base, &range))
		return 0;
	if (has_avx2())
	{
		done = keys->n / LANES * LANES;
		kept = test_vectors(&range, keys, done, rows);
	}
	switch (keys->width)
	{
		case 1:
			return test_singly(&range, keys, 1, done, kept, rows);
		case 2:
			return test_singly(&range, keys, 2, done, kept, rows);
		case 3:
			return test_singly(&range, keys, 3, done, kept, rows);
		default:
			return test_singly(&range, keys, 4, done, kept, rows);
	}
}

/* Can keys be tested against this filter as they are kept? */
bool
hgj_cpu_reads_packed(const Filter *filter)
{
	return filter->exact && filter->range < MOST_BITS;
}
