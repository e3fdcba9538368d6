/*-------------------------------------------------------------------------
 *
 * waits.c
 *	  What pg_stat_activity says while a process of ours waits: wait_event_type
 *	  Extension, and as wait_event one of the names below.
 *
 * 1. From 17 on a name gets a number of the server's when a process first waits
 *	  under it, and that process remembers the number.  Until then all extensions
 *	  share the event Extension (compat.h).
 * 2. What has its number already has it in all processes: the server keeps names
 *	  until it stops.
 *
 * Memory: one number per name and process.  Locks: PostgreSQL's own, when a process
 * first asks for a number.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/waits.h"
#include "utils/wait_event.h"

static const char *const names[HGJ_N_WAITS] = {
	[HGJ_WAIT_BUILD] = "HashGraphBuild",
	[HGJ_WAIT_GROUPS] = "HashGraphGroups",
	[HGJ_WAIT_DEVICE] = "HashGraphDevice",
	[HGJ_WAIT_LOAD] = "HashGraphLoad"
};

uint32
hgj_wait_event(HgjWait wait)
{
	static uint32 events[HGJ_N_WAITS];

	if (events[wait] == 0)
		events[wait] = hgj_new_wait_event(names[wait]);
	return events[wait];
}

void
hgj_device_wait_starts(void)
{
	pgstat_report_wait_start(hgj_wait_event(HGJ_WAIT_DEVICE));
}

void
hgj_device_wait_ends(void)
{
	pgstat_report_wait_end();
}
