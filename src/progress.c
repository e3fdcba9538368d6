/*-------------------------------------------------------------------------
 *
 * progress.c
 *	  What SQL can ask about the nodes that run now: hashgraph_join_progress().
 *
 * 1. There is a row for each node of each process, a parallel query's workers
 *	  among them.  A node that has returned its last row has none any more.
 * 2. Who asks sees nodes of the roles whose privileges he has, or all with those of
 *	  pg_read_all_stats: those are PostgreSQL's rules for its own progress views.
 * 3. Where sessions cannot see each other's (base/progress.c), a NOTICE says so, once
 *	  in a session.
 *
 * No memory outlives a call.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/progress.h"
#include "catalog/pg_authid.h"
#include "commands/dbcommands.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(hashgraph_join_progress);

/* In the order of the function's columns. */
typedef enum Column
{
	PID,
	DATID,
	DATNAME,
	LEADER_PID,
	NODE,
	KIND,
	PHASE,
	BUILD_ROWS_DONE,
	BUILD_ROWS_EXPECTED,
	OUTER_ROWS,
	OUTER_BLOCKS_DONE,
	OUTER_BLOCKS_TOTAL,
	PARTITIONS_DONE,
	PARTITIONS_TOTAL,
	GROUPS,
	SPILLED_BYTES,
	MEMORY_BYTES,
	DEVICE,
	COLUMNS
} Column;

static const char *const kinds[] = {
	[HGJ_PROGRESS_JOIN] = "join",
	[HGJ_PROGRESS_AGGREGATION] = "aggregation"
};

static const char *const phases[] = {
	[HGJ_PROGRESS_STARTING] = "starting",
	[HGJ_PROGRESS_BUILDING] = "reading the build side",
	[HGJ_PROGRESS_TABLE] = "making the table",
	[HGJ_PROGRESS_PROBING] = "probing",
	[HGJ_PROGRESS_UNMATCHED] = "returning unmatched build rows",
	[HGJ_PROGRESS_READING] = "reading the input",
	[HGJ_PROGRESS_PARTITIONS] = "reading partitions",
	[HGJ_PROGRESS_RETURNING] = "returning groups"
};

/* Step 2. */
static bool
may_see(Oid role)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
		has_privs_of_role(GetUserId(), role);
}

/* Step 3. */
static void
say_what_is_missing(void)
{
	static bool said = false;

	if (hgj_progress_shared() || said)
		return;
	said = true;
	ereport(NOTICE,
			(errmsg("only nodes of this session are shown"),
			 errdetail("Before PostgreSQL 17, sessions see each other's only if the server has loaded hashgraph_join."),
			 errhint("Put hashgraph_join into shared_preload_libraries, and restart the server.")));
}

static void
put_names(const HgjProgressRow *row, Datum *values, bool *nulls)
{
	char	   *name = get_database_name(row->database);

	nulls[DATNAME] = (name == NULL);
	if (name)
		values[DATNAME] = DirectFunctionCall1(namein, CStringGetDatum(name));
	values[KIND] = CStringGetTextDatum(kinds[row->kind]);
	values[PHASE] = CStringGetTextDatum(phases[row->phase]);
	nulls[DEVICE] = (row->device[0] == '\0');
	if (!nulls[DEVICE])
		values[DEVICE] = CStringGetTextDatum(row->device);
}

static void
put_numbers(const HgjProgressRow *row, Datum *values, bool *nulls)
{
	bool		is_join = (row->kind == HGJ_PROGRESS_JOIN);

	values[PID] = Int32GetDatum(row->pid);
	values[DATID] = ObjectIdGetDatum(row->database);
	values[LEADER_PID] = Int32GetDatum(row->leader_pid);
	nulls[LEADER_PID] = (row->leader_pid == 0);
	values[NODE] = Int32GetDatum(row->node);
	values[BUILD_ROWS_DONE] = Int64GetDatum((int64) row->build_rows);
	values[BUILD_ROWS_EXPECTED] = Int64GetDatum((int64) row->build_expected);
	nulls[BUILD_ROWS_DONE] = nulls[BUILD_ROWS_EXPECTED] = !is_join;
	values[OUTER_ROWS] = Int64GetDatum((int64) row->outer_rows);
	values[OUTER_BLOCKS_DONE] = Int64GetDatum((int64) row->blocks_done);
	values[OUTER_BLOCKS_TOTAL] = Int64GetDatum((int64) row->blocks_total);
	nulls[OUTER_BLOCKS_DONE] = nulls[OUTER_BLOCKS_TOTAL] = (row->blocks_total == 0);
	values[PARTITIONS_DONE] = Int64GetDatum((int64) row->partitions_done);
	values[PARTITIONS_TOTAL] = Int64GetDatum((int64) row->partitions_total);
	values[GROUPS] = Int64GetDatum((int64) row->groups);
	nulls[GROUPS] = is_join;
	values[SPILLED_BYTES] = Int64GetDatum((int64) row->spilled);
	values[MEMORY_BYTES] = Int64GetDatum((int64) row->memory);
}

/* One row per node that runs, and that the caller may see. */
Datum
hashgraph_join_progress(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	HgjProgressRow row;

	InitMaterializedSRF(fcinfo, 0);
	hgj_progress_attach();
	say_what_is_missing();
	for (int i = 0; hgj_progress_get(i, &row); i++)
	{
		Datum		values[COLUMNS] = {0};
		bool		nulls[COLUMNS] = {false};

		if (row.pid == 0 || !may_see(row.role))
			continue;
		put_numbers(&row, values, nulls);
		put_names(&row, values, nulls);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
