/*-------------------------------------------------------------------------
 *
 * meeting.c
 *	  Processes of a parallel query that do something together, and agree on what has
 *	  become of it.
 *
 * 1. Who comes before the others have met for the first time takes part, and waits for
 *	  them at the barrier as often as the caller says.
 * 2. Then each publishes the outcome, which is the same for all, and leaves the barrier
 *	  for good.
 * 3. Who has come later waits for the outcome, and not at the barrier.
 *
 * Memory: the caller's, in dynamic shared memory.  Locks: the barrier and the condition
 * variable.  Interrupts end every wait.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/meeting.h"

/* Nobody has come yet. */
void
hgj_meeting_init(HgjMeeting *meeting)
{
	BarrierInit(&meeting->barrier, 0);
	ConditionVariableInit(&meeting->decided);
	pg_atomic_init_u32(&meeting->outcome, 0);
}

/* Step 1: does this process take part? */
bool
hgj_meeting_join(HgjMeeting *meeting)
{
	if (BarrierAttach(&meeting->barrier) == 0)
		return true;
	BarrierDetach(&meeting->barrier);
	return false;
}

/* Step 1: wait for the others; true in one of them. */
bool
hgj_meeting_arrive(HgjMeeting *meeting, HgjWait wait)
{
	return BarrierArriveAndWait(&meeting->barrier, hgj_wait_event(wait));
}

/* Step 2. */
void
hgj_meeting_decide(HgjMeeting *meeting, uint32 outcome)
{
	if (pg_atomic_exchange_u32(&meeting->outcome, outcome) != outcome)
		ConditionVariableBroadcast(&meeting->decided);
	BarrierDetach(&meeting->barrier);
}

/* Step 3. */
void
hgj_meeting_wait(HgjMeeting *meeting, HgjWait wait)
{
	uint32		event = hgj_wait_event(wait);

	ConditionVariablePrepareToSleep(&meeting->decided);
	while (hgj_meeting_outcome(meeting) == 0)
		ConditionVariableSleep(&meeting->decided, event);
	ConditionVariableCancelSleep();
	pg_read_barrier();
}
