/*-------------------------------------------------------------------------
 *
 * faults.c
 *	  Faults that a test asks for, in builds for a PostgreSQL with assertions
 *	  only (elsewhere this file is empty).
 *
 * 1. hashgraph_join.debug_fault chooses what fails:
 *
 *		memory		hgj_mem_alloc(), in the engine and in the executor
 *		palloc		what the library asks of memory contexts
 *		file		temporary files: no space is left
 *		cancel		a cancel comes in between two looks for one, ours or the
 *					engine's
 *		terminate	the same with pg_terminate_backend()
 *		crash		as file, but the process dies of it
 *
 *	  and hashgraph_join.debug_fault_at which of these events since it was set; 0
 *	  counts only.  A fault comes once, so that what cleans up is left in peace.  Both are
 *	  for superusers: a process that dies takes all sessions with it.
 * 2. hashgraph_join.debug_fault_events says how many there have been, and
 *	  hashgraph_join.debug_memory how many bytes of hgj_mem_alloc() are taken:
 *	  none while no query runs.
 *
 * faults.h wraps the calls that count.  Parallel workers take the settings over,
 * and count for themselves.
 *
 * No memory.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#ifdef HGJ_MEM_TEST

#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include "engine/hgj_memory.h"
#include "utils/guc.h"

typedef enum HgjFault
{
	HGJ_FAULT_OFF,
	HGJ_FAULT_MEMORY,
	HGJ_FAULT_PALLOC,
	HGJ_FAULT_FILE,
	HGJ_FAULT_CANCEL,
	HGJ_FAULT_TERMINATE,
	HGJ_FAULT_CRASH
} HgjFault;

static const struct config_enum_entry fault_options[] = {
	{"off", HGJ_FAULT_OFF, false},
	{"memory", HGJ_FAULT_MEMORY, false},
	{"palloc", HGJ_FAULT_PALLOC, false},
	{"file", HGJ_FAULT_FILE, false},
	{"cancel", HGJ_FAULT_CANCEL, false},
	{"terminate", HGJ_FAULT_TERMINATE, false},
	{"crash", HGJ_FAULT_CRASH, false},
	{NULL, 0, false}
};

static int	fault = HGJ_FAULT_OFF;
static int	fault_at = 0;
static int	events_shown = 0;
static int	memory_shown = 0;
static uint64 events = 0;
static uint64 memory_events = 0;	/* the allocator's count at event 0 */

/* Is this the event that is to fail? */
static bool
strikes(void)
{
	events++;
	return fault_at > 0 && events == (uint64) fault_at;
}

void
hgj_fault_palloc(void)
{
	if (fault == HGJ_FAULT_PALLOC && strikes())
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("Asked for by hashgraph_join.debug_fault.")));
}

void
hgj_fault_file(void)
{
	if (fault == HGJ_FAULT_FILE && strikes())
		ereport(ERROR,
				(errcode(ERRCODE_DISK_FULL),
				 errmsg("could not write to a temporary file: No space left on device"),
				 errdetail("Asked for by hashgraph_join.debug_fault.")));
	if (fault == HGJ_FAULT_CRASH && strikes())
		(void) kill(getpid(), SIGKILL);
}

void
hgj_fault_interrupt(void)
{
	if (fault == HGJ_FAULT_CANCEL && strikes())
		InterruptPending = QueryCancelPending = true;
	if (fault == HGJ_FAULT_TERMINATE && strikes())
		InterruptPending = ProcDiePending = true;
}

/* The settings have changed: count from here on. */
static void
begin(int what, int at)
{
	events = 0;
	memory_events = hgj_mem_test_calls();
	hgj_mem_test_fail_at(what == HGJ_FAULT_MEMORY ? (uint64_t) at : 0);
}

static void
assign_fault(int newval, void *extra)
{
	begin(newval, fault_at);
}

static void
assign_fault_at(int newval, void *extra)
{
	begin(fault, newval);
}

static const char *
show_events(void)
{
	static char text[32];

	snprintf(text, sizeof(text), UINT64_FORMAT,
			 fault == HGJ_FAULT_MEMORY ?
			 (uint64) hgj_mem_test_calls() - memory_events : events);
	return text;
}

static const char *
show_memory(void)
{
	static char text[32];

	snprintf(text, sizeof(text), UINT64_FORMAT, (uint64) hgj_mem_test_live());
	return text;
}

/* Called by hgj_define_settings(). */
void
hgj_define_fault_settings(void)
{
	DefineCustomEnumVariable("hashgraph_join.debug_fault",
							 "Chooses what fails.",
							 "Meant for tests.",
							 &fault, HGJ_FAULT_OFF, fault_options,
							 PGC_SUSET, GUC_NOT_IN_SAMPLE,
							 NULL, assign_fault, NULL);

	DefineCustomIntVariable("hashgraph_join.debug_fault_at",
							"Sets which event fails, from 1.",
							"Zero counts them. Meant for tests.",
							&fault_at, 0, 0, INT_MAX,
							PGC_SUSET, GUC_NOT_IN_SAMPLE,
							NULL, assign_fault_at, NULL);

	DefineCustomIntVariable("hashgraph_join.debug_fault_events",
							"Shows the number of events since the fault was set.",
							NULL,
							&events_shown, 0, 0, INT_MAX,
							PGC_INTERNAL, GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE,
							NULL, NULL, show_events);

	DefineCustomIntVariable("hashgraph_join.debug_memory",
							"Shows the bytes that are allocated outside of memory contexts.",
							NULL,
							&memory_shown, 0, 0, INT_MAX,
							PGC_INTERNAL, GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE,
							NULL, NULL, show_memory);
}

#endif							/* HGJ_MEM_TEST */
