/*-------------------------------------------------------------------------
 *
 * notice.c
 *	  hashgraph_join_say_at_commit(): a NOTICE of CREATE EXTENSION's.
 *
 * 1. While an extension's script runs, PostgreSQL raises client_min_messages to
 *	  WARNING, and what the session has set it to cannot be seen.  So the script
 *	  leaves its NOTICE here, and drops the function.
 * 2. When the transaction commits, or is prepared, the NOTICE is raised like any
 *	  other, if there still is such an extension: a savepoint may have undone it.
 *
 * Memory: the texts live in TopTransactionContext, and are forgotten with it.  No
 * locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/xact.h"
#include "commands/extension.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(hashgraph_join_say_at_commit);

static char *message = NULL;	/* NULL: there is nothing to say */
static char *hint = NULL;

/* Step 2. */
static void
at_end(XactEvent event, void *arg)
{
	const char *now = message;

	if (now == NULL || event == XACT_EVENT_PARALLEL_PRE_COMMIT ||
		event == XACT_EVENT_PARALLEL_COMMIT || event == XACT_EVENT_PARALLEL_ABORT)
		return;
	message = NULL;
	if ((event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE) &&
		OidIsValid(get_extension_oid("hashgraph_join", true)))
		ereport(NOTICE,
				(errmsg_internal("%s", now),
				 errhint("%s", hint)));
}

/* Step 1. */
Datum
hashgraph_join_say_at_commit(PG_FUNCTION_ARGS)
{
	static bool registered = false;
	MemoryContext before = MemoryContextSwitchTo(TopTransactionContext);

	if (!registered)
		RegisterXactCallback(at_end, NULL);
	registered = true;
	hint = text_to_cstring(PG_GETARG_TEXT_PP(1));
	message = text_to_cstring(PG_GETARG_TEXT_PP(0));
	MemoryContextSwitchTo(before);
	PG_RETURN_VOID();
}
