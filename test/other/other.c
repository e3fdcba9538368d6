/*-------------------------------------------------------------------------
 *
 * other.c
 *	  An extension of somebody else's, for tests: what hashgraph_join meets only beside
 *	  others, and nothing of PostgreSQL's own brings about.
 *
 * 1. other_heap: tables that are heaps in everything but the address of their access
 *	  method, as those of an access method that is made from it.
 * 2. other.planner: queries are planned twice, first without hashgraph_join, and that
 *	  plan is taken.  Load it before hashgraph_join, so that it is called below it.
 * 3. other_snapshot(sql): runs a query that returns one text under a snapshot that sees
 *	  every version of a row, as extensions do that look into dead rows.
 * 4. Paths and nodes of its own: nodes.c.
 *
 * Memory: the caller's contexts.  Errors put the setting and the snapshot back.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "optimizer/planner.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/snapmgr.h"

#include "other.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(other_heap);
PG_FUNCTION_INFO_V1(other_snapshot);

extern void _PG_init(void);

static bool other_planner = false;
static planner_hook_type previous_planner = NULL;

/* Step 1. */
Datum
other_heap(PG_FUNCTION_ARGS)
{
	static TableAmRoutine routine;

	routine = *GetHeapamTableAmRoutine();
	PG_RETURN_POINTER(&routine);
}

static PlannedStmt *
plan_as_ever(Query *parse, const char *text, int options, ParamListInfo params)
{
	return previous_planner ? previous_planner(parse, text, options, params) :
		standard_planner(parse, text, options, params);
}

/* Step 2. */
static PlannedStmt *
plan_twice(Query *parse, const char *text, int options, ParamListInfo params)
{
	PlannedStmt *stmt;
	int			level;

	if (!other_planner)
		return plan_as_ever(parse, text, options, params);
	level = NewGUCNestLevel();
	(void) set_config_option("hashgraph_join.enabled", "off", PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	stmt = plan_as_ever(copyObject(parse), text, options, params);
	AtEOXact_GUC(true, level);
	(void) plan_as_ever(parse, text, options, params);
	return stmt;
}

/* Step 3. */
Datum
other_snapshot(PG_FUNCTION_ARGS)
{
	char	   *sql = text_to_cstring(PG_GETARG_TEXT_PP(0));
	char	   *answer = NULL;
	MemoryContext before = CurrentMemoryContext;

	PushActiveSnapshot(SnapshotAny);
	SPI_connect();
	if (SPI_execute(sql, true, 0) == SPI_OK_SELECT && SPI_processed == 1)
		answer = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
	if (answer)
		answer = MemoryContextStrdup(before, answer);
	SPI_finish();
	PopActiveSnapshot();
	if (answer == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(answer));
}

void
_PG_init(void)
{
	DefineCustomBoolVariable("other.planner", "Plans queries twice.", NULL,
							 &other_planner, false, PGC_USERSET, 0, NULL, NULL, NULL);
	previous_planner = planner_hook;
	planner_hook = plan_twice;
	other_nodes_init();
}
