/*-------------------------------------------------------------------------
 *
 * meeting.h
 *	  Processes of a parallel query that do something together, and agree on what has
 *	  become of it (meeting.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_MEETING_H
#define HGJ_MEETING_H

#include "compat.h"

#include "base/waits.h"
#include "port/atomics.h"
#include "storage/barrier.h"
#include "storage/condition_variable.h"

/* In dynamic shared memory. */
typedef struct HgjMeeting
{
	Barrier		barrier;		/* of those who take part */
	ConditionVariable decided;	/* the others wait for an outcome */
	pg_atomic_uint32 outcome;	/* the caller's; 0: there is none yet */
} HgjMeeting;

extern void hgj_meeting_init(HgjMeeting *meeting);
extern bool hgj_meeting_join(HgjMeeting *meeting);
extern bool hgj_meeting_arrive(HgjMeeting *meeting, HgjWait wait);
extern void hgj_meeting_decide(HgjMeeting *meeting, uint32 outcome);
extern void hgj_meeting_wait(HgjMeeting *meeting, HgjWait wait);

static inline uint32
hgj_meeting_outcome(HgjMeeting *meeting)
{
	return pg_atomic_read_u32(&meeting->outcome);
}

#endif							/* HGJ_MEETING_H */
