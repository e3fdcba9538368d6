/*-------------------------------------------------------------------------
 *
 * poll.h
 *	  How long calls of an engine look for interrupts (poll.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_POLL_H
#define HGJ_POLL_H

#include "compat.h"

#include "engine/engine.h"

/* Who polls for interrupts in long calls of an engine. */
typedef struct HgjPoll
{
	bool		disabled;
} HgjPoll;

/* The callback; its argument is an HgjPoll. */
extern int	hgj_poll_interrupts(void *arg);

/*
 * What every call that polls goes through: true if the call has to be repeated,
 * because an interrupt that is none has cancelled it.
 */
extern bool hgj_call_cancelled(HgjPoll *poll, HgjStatus status);

#endif							/* HGJ_POLL_H */
