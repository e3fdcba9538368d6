/*-------------------------------------------------------------------------
 *
 * random.c
 *	  Random numbers that a seed repeats (SplitMix64: Steele, Lea and Flood 2014), and memory that
 *	  must be there.
 *
 * Memory: must_alloc's is its caller's, for free().  No locks: one thread.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>

#include "random.h"

static uint64_t random_state;

void
rnd_start(uint64_t state)
{
	random_state = state;
}

uint64_t
mix(uint64_t word)
{
	word = (word ^ (word >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	word = (word ^ (word >> 27)) * UINT64_C(0x94D049BB133111EB);
	return word ^ (word >> 31);
}

uint64_t
rnd(void)
{
	return mix(random_state += UINT64_C(0x9E3779B97F4A7C15));
}

uint32_t
rnd_below(uint32_t n)
{
	return (uint32_t) (((rnd() >> 32) * n) >> 32);
}

void *
must_alloc(size_t bytes)
{
	void	   *p = malloc(bytes > 0 ? bytes : 1);

	if (p == NULL)
	{
		printf("the test itself is out of memory\n");
		exit(2);
	}
	return p;
}
