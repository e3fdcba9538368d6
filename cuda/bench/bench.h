/*-------------------------------------------------------------------------
 *
 * bench.h
 *	  What the benchmarks share: how they end early, and numbers at random.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CUDA_BENCH_H
#define HGJ_CUDA_BENCH_H

#include <stdio.h>
#include <stdlib.h>

#include "../internal.h"

extern "C" const HgjEngine *hgj_engine_entry(void);

[[noreturn]] static inline void die(const char *what)
{
	printf("failed: %s\n", what);
	exit(1);
}

static inline void must(HgjStatus status, const HgjError &err)
{
	if (status != HGJ_OK)
		die(err.message);
}

/* Any number to any other. */
__host__ __device__ static inline uint64_t scramble(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xBF58476D1CE4E5B9ull;
	x ^= x >> 27;
	x *= 0x94D049BB133111EBull;
	return x ^ x >> 31;
}

#endif /* HGJ_CUDA_BENCH_H */
