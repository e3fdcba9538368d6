/*-------------------------------------------------------------------------
 *
 * cpu_quotient.h
 *	  The codes of graphs whose entries are quotients (cpu_quotient.c): a permutation of
 *	  the keys' range, and the way back.
 *
 * A number of `bits` bits is mixed by xors of its upper half into the lower, and products
 * with odd numbers: each of these can be undone, and so no two keys have the same code.
 *
 * Owns nothing, locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CPU_QUOTIENT_H
#define HGJ_CPU_QUOTIENT_H

#include "hash.h"

typedef struct Mix
{
	uint32_t	bits;			/* of a number: 2 .. 32 */
	uint32_t	half;			/* of these, rounded up */
	uint32_t	mask;
	uint32_t	mul;
	uint32_t	end_mul;
} Mix;

/* The permutation of numbers of that many bits, from the table's secrets. */
static inline Mix
mix_make(const HgjHash *hash, uint32_t bits)
{
	Mix			mix;

	mix.bits = bits;
	mix.half = (bits + 1) / 2;
	mix.mask = bits < 32 ? (UINT32_C(1) << bits) - 1 : UINT32_MAX;
	mix.mul = (uint32_t) (hash->mul * UINT64_C(0x9E3779B97F4A7C15) >> 32) | 1;
	mix.end_mul = (uint32_t) (hash->end_mul * UINT64_C(0x9E3779B97F4A7C15) >> 32) | 1;
	return mix;
}

static inline uint32_t
mix_number(const Mix *mix, uint32_t number)
{
	number ^= number >> mix->half;
	number = number * mix->mul & mix->mask;
	number ^= number >> mix->half;
	number = number * mix->end_mul & mix->mask;
	return number ^ number >> mix->half;
}

/* What an odd number has to be multiplied with to be 1 (Newton: bits double each time). */
static inline uint32_t
mix_inverse(uint32_t odd)
{
	uint32_t	inverse = odd;	/* of the lowest three bits */
	int			i;

	for (i = 0; i < 4; i++)
		inverse *= 2 - odd * inverse;
	return inverse;
}

/* The number whose code that is; the inverses of mul and end_mul. */
static inline uint32_t
mix_back(const Mix *mix, uint32_t inverse, uint32_t end_inverse, uint32_t code)
{
	code ^= code >> mix->half;
	code = code * end_inverse & mix->mask;
	code ^= code >> mix->half;
	code = code * inverse & mix->mask;
	return code ^ code >> mix->half;
}

#endif							/* HGJ_CPU_QUOTIENT_H */
