/*-------------------------------------------------------------------------
 *
 * clock.h
 *	  Times on both sides of the fork (channel.h): none of PostgreSQL's headers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CLOCK_H
#define HGJ_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Seconds, of a clock that nobody sets. */
static inline uint64_t
hgj_monotonic_seconds(void)
{
	struct timespec now;

	(void) clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec;
}

/* A deadline for sem_timedwait(), so many milliseconds from now. */
static inline struct timespec
hgj_in_milliseconds(int ms)
{
	struct timespec at;

	(void) clock_gettime(CLOCK_REALTIME, &at);
	at.tv_nsec += (long) ms * 1000000;
	at.tv_sec += at.tv_nsec / 1000000000;
	at.tv_nsec %= 1000000000;
	return at;
}

#endif							/* HGJ_CLOCK_H */
