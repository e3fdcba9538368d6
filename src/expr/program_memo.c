/*-------------------------------------------------------------------------
 *
 * program_memo.c
 *	  Values that a function has returned, by its argument: a column has more rows
 *	  than days.
 *
 * 1. A step that calls a function of one argument, constants apart, which passes by
 *	  value, looks its results up by the bits of that (program_call.c).
 * 2. The first HGJ_MEMO_VALUES arguments are kept, in a hash table.  None is
 *	  forgotten to make room, so that results stay where they are.
 * 3. Who finds less than every second one stops asking, when the table is full or as
 *	  many have been looked for in vain.
 * 4. What a stable function has returned is good for one run of the program over
 *	  some rows: settings that it looks at may be others then.  If all it looks at is
 *	  the time zone, that is seen to be another one.  What an immutable one has is for
 *	  an execution, of which the constants are.
 *
 * Everything is in a memory context of its own, below the program's.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "expr/program_private.h"
#include "pgtime.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#define HGJ_MEMO_BITS		13
#define HGJ_MEMO_SLOTS		(1 << HGJ_MEMO_BITS)
#define HGJ_MEMO_VALUES		(HGJ_MEMO_SLOTS / 2)

/* What a slot has. */
typedef enum SlotState
{
	SLOT_FREE,
	SLOT_VALUE,
	SLOT_NULL
} SlotState;

struct HgjMemo
{
	HgjMemoTerm term;			/* step 4 */
	const pg_tz *zone;			/* that the values are of */
	uint64		run;			/* of the program, the last one */
	uint64		epoch;			/* of it, that the values are of */
	MemoryContext context;		/* of what follows; NULL: there is nothing */
	MemoryContext values_context;
	int64	   *keys;
	Datum	   *values;
	uint8	   *states;			/* SlotState */
	uint32		nvalues;
	uint64		found;
	uint64		missed;
	bool		off;			/* step 3 */
};

HgjMemo *
hgj_memo_make(HgjMemoTerm term)
{
	HgjMemo    *memo = palloc0(sizeof(HgjMemo));

	memo->term = term;
	return memo;
}

static void
allocate(HgjProgram *program, HgjMemo *memo)
{
	MemoryContext context = AllocSetContextCreate(program->context,
												  "HashGraphJoin results",
												  ALLOCSET_SMALL_SIZES);

	memo->keys = MemoryContextAlloc(context, HGJ_MEMO_SLOTS * sizeof(int64));
	memo->values = MemoryContextAlloc(context, HGJ_MEMO_SLOTS * sizeof(Datum));
	memo->states = MemoryContextAllocZero(context, HGJ_MEMO_SLOTS);
	memo->values_context = AllocSetContextCreate(context, "HashGraphJoin result values",
												 ALLOCSET_SMALL_SIZES);
	memo->context = context;
}

/* Step 3. */
static void
stop_if_idle(HgjMemo *memo)
{
	memo->off |= memo->missed >= HGJ_MEMO_VALUES && memo->found < memo->missed;
}

/* Before rows of a chunk look up: false says that they need not. */
bool
hgj_memo_begin(HgjProgram *program, HgjMemo *memo)
{
	uint64		epoch = memo->term == HGJ_MEMO_RUN ? program->runs :
		program->executions;

	/* what this run has returned must stay */
	if (memo->off || memo->run == program->runs)
		return !memo->off;
	memo->run = program->runs;
	if (memo->context == NULL)
		allocate(program, memo);
	else if (memo->epoch != epoch ||
			 (memo->term == HGJ_MEMO_ZONE && memo->zone != session_timezone))
	{
		memset(memo->states, SLOT_FREE, HGJ_MEMO_SLOTS);
		MemoryContextReset(memo->values_context);
		memo->nvalues = 0;
		stop_if_idle(memo);
	}
	memo->epoch = epoch;
	memo->zone = session_timezone;
	return !memo->off;
}

/* The slot that has the key, or that would. */
static inline uint32
slot_of(const HgjMemo *memo, int64 key)
{
	uint32		slot = ((uint64) key * UINT64CONST(0x9E3779B97F4A7C15)) >>
		(64 - HGJ_MEMO_BITS);

	while (memo->states[slot] != SLOT_FREE && memo->keys[slot] != key)
		slot = (slot + 1) & (HGJ_MEMO_SLOTS - 1);
	return slot;
}

bool
hgj_memo_find(HgjMemo *memo, int64 key, Datum *value, bool *isnull)
{
	uint32		slot = slot_of(memo, key);

	if (memo->states[slot] == SLOT_FREE)
	{
		memo->missed++;
		return false;
	}
	memo->found++;
	*value = memo->values[slot];
	*isnull = memo->states[slot] == SLOT_NULL;
	return true;
}

/*
 * Keep a result, if there is room: *value becomes the copy of one that is by
 * reference, which is true then.
 */
bool
hgj_memo_keep(HgjMemo *memo, int64 key, Datum *value, bool isnull, bool typbyval,
			  int16 typlen)
{
	uint32		slot;

	if (memo->nvalues == HGJ_MEMO_VALUES)
		stop_if_idle(memo);
	if (memo->off || memo->nvalues == HGJ_MEMO_VALUES)
		return false;
	if (!isnull && !typbyval)
	{
		MemoryContext old = MemoryContextSwitchTo(memo->values_context);

		*value = datumCopy(*value, false, typlen);
		MemoryContextSwitchTo(old);
	}
	slot = slot_of(memo, key);
	memo->keys[slot] = key;
	memo->values[slot] = *value;
	memo->states[slot] = isnull ? SLOT_NULL : SLOT_VALUE;
	memo->nvalues++;
	return true;
}
