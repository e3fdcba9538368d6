/*-------------------------------------------------------------------------
 *
 * stats.c
 *	  What SQL can ask about the work done so far: hashgraph_join_stats(),
 *	  hashgraph_join_fallbacks() and hashgraph_join_stats_reset().
 *
 * 1. There is a row for each database in which something has been counted, and
 *	  one for the current database in any case.  Databases that have been dropped
 *	  are left out.  Where more databases were used than there is room for, the
 *	  others share a row without a database.
 * 2. The columns are HgjCounter's, in its order: times are nanoseconds there and
 *	  milliseconds here.
 * 3. Everybody may look; resetting is for those whom a superuser lets (the
 *	  extension's script revokes it from PUBLIC, as PostgreSQL does).
 *
 * No memory outlives a call.  Locks are counters.c's; none is held while a name
 * is looked up.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/counters.h"
#include "base/reasons.h"
#include "commands/dbcommands.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(hashgraph_join_stats);
PG_FUNCTION_INFO_V1(hashgraph_join_fallbacks);
PG_FUNCTION_INFO_V1(hashgraph_join_stats_reset);

/* datid, datname, shared; then the counters; then stats_reset. */
#define FIRST_COUNTER		3
#define MOST_COLUMNS		(FIRST_COUNTER + HGJ_COUNTERS + 1)

/* Step 1: has something been counted, in a database that there is? */
static bool
is_shown(const HgjDatabaseCounters *of, char **name)
{
	*name = NULL;
	if (OidIsValid(of->database))
	{
		*name = get_database_name(of->database);
		return *name != NULL;
	}
	return of->counters.values[HGJ_COUNT_JOINS] > 0 ||
		of->counters.values[HGJ_COUNT_AGGREGATES] > 0;
}

static void
put_database(Datum *values, bool *nulls, const HgjDatabaseCounters *of,
			 char *name)
{
	nulls[0] = nulls[1] = (name == NULL);
	if (name == NULL)
		return;
	values[0] = ObjectIdGetDatum(of->database);
	values[1] = DirectFunctionCall1(namein, CStringGetDatum(name));
}

/* put() writes the rows of a database, whose first two columns are there. */
static Datum
put_rows(FunctionCallInfo fcinfo,
		 void (*put) (ReturnSetInfo *, const HgjDatabaseCounters *,
					  Datum *values, bool *nulls))
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	HgjDatabaseCounters of;
	char	   *name;

	InitMaterializedSRF(fcinfo, 0);
	hgj_counters_attach();
	for (int i = 0; hgj_counters_get(i, &of); i++)
	{
		Datum		values[MOST_COLUMNS] = {0};
		bool		nulls[MOST_COLUMNS] = {false};

		if (!is_shown(&of, &name))
			continue;
		put_database(values, nulls, &of, name);
		put(rsinfo, &of, values, nulls);
	}
	return (Datum) 0;
}

static void
put_counters(ReturnSetInfo *rsinfo, const HgjDatabaseCounters *of,
			 Datum *values, bool *nulls)
{
	values[2] = BoolGetDatum(hgj_counters_shared());
	for (int c = 0; c < HGJ_COUNTERS; c++)
	{
		uint64		count = of->counters.values[c];

		values[FIRST_COUNTER + c] =
			c == HGJ_COUNT_TRANSFER_NS || c == HGJ_COUNT_KERNEL_NS ?
			Float8GetDatum(count / 1e6) : Int64GetDatum((int64) count);
	}
	values[FIRST_COUNTER + HGJ_COUNTERS] = TimestampTzGetDatum(of->reset);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* One row per reason that there has been. */
static void
put_fallbacks(ReturnSetInfo *rsinfo, const HgjDatabaseCounters *of,
			  Datum *values, bool *nulls)
{
	const char *kind;
	const char *reason;

	for (int r = 0; of->counters.fell_back && r < HGJ_REASONS; r++)
	{
		if (of->counters.fallbacks[r] == 0 ||
			!hgj_fallback_reason(r, &kind, &reason))
			continue;
		values[2] = CStringGetTextDatum(kind);
		values[3] = CStringGetTextDatum(reason);
		values[4] = Int64GetDatum((int64) of->counters.fallbacks[r]);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
}

/* One row per database. */
Datum
hashgraph_join_stats(PG_FUNCTION_ARGS)
{
	return put_rows(fcinfo, put_counters);
}

/* One row per database and reason that there has been. */
Datum
hashgraph_join_fallbacks(PG_FUNCTION_ARGS)
{
	return put_rows(fcinfo, put_fallbacks);
}

/* The current database's counters, to zero. */
Datum
hashgraph_join_stats_reset(PG_FUNCTION_ARGS)
{
	hgj_counters_reset();
	PG_RETURN_VOID();
}
