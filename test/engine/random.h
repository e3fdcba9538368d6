/*-------------------------------------------------------------------------
 *
 * random.h
 *	  Random numbers that a seed repeats, and memory that must be there, for the engine's test
 *	  suite and for the fuzzer.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_TEST_RANDOM_H
#define HGJ_TEST_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* The state from which the next numbers come. */
extern void rnd_start(uint64_t state);

/* 64 random bits. */
extern uint64_t rnd(void);

/* A random number below n. */
extern uint32_t rnd_below(uint32_t n);

/* A word whose bits are those of another one, mixed. */
extern uint64_t mix(uint64_t word);

/* Memory, at least a byte; the program ends where there is none. */
extern void *must_alloc(size_t bytes);

#endif							/* HGJ_TEST_RANDOM_H */
