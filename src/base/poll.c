/*-------------------------------------------------------------------------
 *
 * poll.c
 *	  How long calls of an engine look for interrupts.
 *
 * 1. The engine asks a callback now and then, and ends the call as cancelled where
 *	  CHECK_FOR_INTERRUPTS() would raise an error.
 * 2. The caller then calls that, outside of the engine.  If there is no error after
 *	  all, the call is repeated without polling, or the same pending flag would
 *	  cancel it again.
 *
 * No memory, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/poll.h"
#include "miscadmin.h"

/* Step 1. */
int
hgj_poll_interrupts(void *arg)
{
	const HgjPoll *poll = arg;

	HGJ_FAULT_INTERRUPT();
	return !poll->disabled && InterruptPending &&
		INTERRUPTS_CAN_BE_PROCESSED() &&
		(QueryCancelPending || ProcDiePending);
}

/* Step 2. */
bool
hgj_call_cancelled(HgjPoll *poll, HgjStatus status)
{
	if (status == HGJ_CANCELLED)
	{
		CHECK_FOR_INTERRUPTS();
		poll->disabled = true;
		return true;
	}
	if (status == HGJ_OK)
		poll->disabled = false;
	return false;
}
