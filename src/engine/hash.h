/*-------------------------------------------------------------------------
 *
 * hash.h
 *	  The seeded hash of the key words, for the CPU and for CUDA.
 *
 * 1. Three secret words are drawn from the 64-bit seed (splitmix64); the two
 *	  that are multipliers are odd and have a balanced number of bits.
 * 2. Each key word is xored into the state, which is then multiplied by a
 *	  secret to 128 bits and folded (high half xor low half), as in wyhash.
 * 3. A shift, an xor and one more secret multiplication finish (64 bits are
 *	  enough here, and cheaper).  So even a single word goes through two
 *	  multiplications: keys that differ in few bits, or only in their high
 *	  bits, spread over the high bits of the hash, which choose the vertex.
 *
 * Who does not know the seed cannot make words collide systematically: the
 * state that a word is xored with, and the multiplier, are both secret.
 *
 * Owns nothing, locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_HASH_H
#define HGJ_HASH_H

#include <stdint.h>

#ifdef __CUDACC__
#define HGJ_HASH_FN static __host__ __device__ __forceinline__
#elif defined(__cplusplus)
#define HGJ_HASH_FN static inline
#else
#define HGJ_HASH_FN static inline __attribute__((always_inline, unused))
#endif

typedef struct HgjHash
{
	uint64_t	start;			/* state before the first word */
	uint64_t	mul;			/* odd multiplier of every word's fold */
	uint64_t	end_mul;		/* odd multiplier at the end */
} HgjHash;

/* 64 x 64 -> 128 bits, folded to 64. */
HGJ_HASH_FN uint64_t
hgj_hash_fold(uint64_t a, uint64_t b)
{
#ifdef __CUDA_ARCH__
	return __umul64hi(a, b) ^ (a * b);
#else
	__extension__ typedef unsigned __int128 HgjUint128;
	HgjUint128	p = (HgjUint128) a * b;

	return (uint64_t) (p >> 64) ^ (uint64_t) p;
#endif
}

HGJ_HASH_FN uint64_t
hgj_hash_splitmix(uint64_t *state)
{
	uint64_t	z = (*state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/* An odd word with 24 to 40 bits set: no degenerate multiplier, ever. */
HGJ_HASH_FN uint64_t
hgj_hash_multiplier(uint64_t *state)
{
	for (;;)
	{
		uint64_t	m = hgj_hash_splitmix(state) | 1;
		uint64_t	rest;
		int			bits = 0;

		for (rest = m; rest != 0; rest &= rest - 1)
			bits++;
		if (bits >= 24 && bits <= 40)
			return m;
	}
}

HGJ_HASH_FN void
hgj_hash_init(HgjHash *hash, uint64_t seed)
{
	uint64_t	state = seed;

	hash->start = hgj_hash_splitmix(&state);
	hash->mul = hgj_hash_multiplier(&state);
	hash->end_mul = hgj_hash_multiplier(&state);
}

/* One more word into the state (which begins as hash->start). */
HGJ_HASH_FN uint64_t
hgj_hash_word(const HgjHash *hash, uint64_t state, uint64_t word)
{
	return hgj_hash_fold(state ^ word, hash->mul);
}

HGJ_HASH_FN uint64_t
hgj_hash_finish(const HgjHash *hash, uint64_t state)
{
	return (state ^ state >> 32) * hash->end_mul;
}

/* The hash of a key of one word. */
HGJ_HASH_FN uint64_t
hgj_hash_single(const HgjHash *hash, uint64_t word)
{
	return hgj_hash_finish(hash, hgj_hash_word(hash, hash->start, word));
}

#endif							/* HGJ_HASH_H */
