/*-------------------------------------------------------------------------
 *
 * reasons.c
 *	  How reasons are spelt.
 *
 * Whoever declines, or falls back, says why by a number of reasons.h; words come
 * from here, so that EXPLAIN, the log and the counters say the same.
 *
 * No memory, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/counters.h"
#include "base/reasons.h"

StaticAssertDecl(HGJ_FIRST_TABLE_REASON + HGJ_TABLE_REASONS <= HGJ_REASONS,
				 "no room for the reasons of fallbacks");
StaticAssertDecl(HGJ_LAST_NOTE == 1 << (HGJ_TABLE_REASONS - 1),
				 "there are other HgjNote bits");

static const char *const declines[] = {
	[HGJ_DECLINE_NOTHING] = "not declined",
	[HGJ_DECLINE_JOIN_TYPE] = "the join type is not supported in this order",
	[HGJ_DECLINE_NO_HASH_CLAUSE] = "no join clause can be a hash key",
	[HGJ_DECLINE_FEW_ROWS] = "both sides are smaller than hashgraph_join.min_rows",
	[HGJ_DECLINE_ONE_TIME] = "a clause without columns must be checked first",
	[HGJ_DECLINE_ROW_IDENTITY] = "the target of the statement has partitions or children",
	[HGJ_DECLINE_RECORD] = "a column has the type record",
	[HGJ_DECLINE_PARAMETERIZED] = "one side is parameterized by the other"
};

static const char *const agg_declines[] = {
	[HGJ_AGG_DECLINE_NOTHING] = "not declined",
	[HGJ_AGG_DECLINE_GROUPING_SETS] = "there are grouping sets",
	[HGJ_AGG_DECLINE_GROUPING_FUNC] = "GROUPING() is called",
	[HGJ_AGG_DECLINE_HASHAGG] = "enable_hashagg is off",
	[HGJ_AGG_DECLINE_KIND] = "an aggregate is of an ordered set or hypothetical",
	[HGJ_AGG_DECLINE_VOLATILE] = "an aggregate's argument or filter is volatile",
	[HGJ_AGG_DECLINE_GROUP_TYPE] = "a group column cannot be hashed",
	[HGJ_AGG_DECLINE_UNGROUPED] = "a column is neither grouped nor known to depend on a grouped primary key",
	[HGJ_AGG_DECLINE_RECORD] = "a column has the type record",
	[HGJ_AGG_DECLINE_COLUMN] = "the input does not return a group column",
	[HGJ_AGG_DECLINE_WORKERS] = "workers may not do it: something in it is parallel restricted or unsafe",
	[HGJ_AGG_DECLINE_STATES] = "states of its aggregates would grow far beyond the memory for them",
	[HGJ_AGG_DECLINE_COMBINE] = "PostgreSQL cannot finish it from parts",
	[HGJ_AGG_DECLINE_GROUPED] = "another extension has put a node of its own above the aggregation",
	[HGJ_AGG_DECLINE_NOT_HEAP] = "the table is not a heap table",
	[HGJ_AGG_DECLINE_SAMPLE] = "a sample of the table is wanted",
	[HGJ_AGG_DECLINE_CHILDREN] = "a partition or child is read neither by a sequential scan nor by a join of ours",
	[HGJ_AGG_DECLINE_ONE_TIME] = "a clause without columns must be checked first",
	[HGJ_AGG_DECLINE_SCAN_COLUMN] = "a whole row, a system column, a subplan or a set is wanted of each row",
	[HGJ_AGG_DECLINE_FEW_ROWS] = "the table is smaller than hashgraph_join.min_rows",
	[HGJ_AGG_DECLINE_INDEX] = "an index finds the few rows that are wanted",
	[HGJ_AGG_DECLINE_REPLACED] = "another extension has replaced the sequential scan"
};

static const char *const not_ours[] = {
	[HGJ_NOT_OURS_ENABLED] = "hashgraph_join.enabled is off",
	[HGJ_NOT_OURS_HASHJOIN] = "enable_hashjoin is off",
	[HGJ_NOT_OURS_AGGREGATE] = "hashgraph_join.aggregate is off",
	[HGJ_NOT_OURS_AGGREGATE_SCANS] = "hashgraph_join.aggregate_scans is off",
	[HGJ_NOT_OURS_COST] = "it would cost more than PostgreSQL's own way",
	[HGJ_NOT_OURS_INPUT] = "what it aggregates is neither a HashGraphJoin nor a sequential scan",
	[HGJ_NOT_OURS_DUPLICATES] = "it removes duplicates, and is no GROUP BY",
	[HGJ_NOT_OURS_NOT_READ] = "neither a HashGraphJoin nor a HashGraphAgg reads it",
	[HGJ_NOT_OURS_UNKNOWN] = "it was not planned by PostgreSQL's own planner",
	[HGJ_NOT_OURS_WORKERS] = "no workers: they would take more time to begin and to end than they save"
};

static const char *const hidden[] = {
	[HGJ_HIDDEN_IS_JOIN] = "it is a join",
	[HGJ_HIDDEN_OFF] = "run for each row: hashgraph_join.rewrite is off",
	[HGJ_HIDDEN_COST] = "run for each row: the query costs less as it is written",
	[HGJ_HIDDEN_PLACE] = "run for each row: it stands where no join can take its place",
	[HGJ_HIDDEN_SHAPE] = "run for each row: it has a form that is not taken for a join",
	[HGJ_HIDDEN_ROWS] = "run for each row: no unique index says that it returns one row at most",
	[HGJ_HIDDEN_TIES] = "run for each row: rows may tie in its ORDER BY",
	[HGJ_HIDDEN_CORRELATION] = "run for each row: it depends on the row by more than equalities of hashable types",
	[HGJ_HIDDEN_LEVELS] = "run for each row: it depends on a query further out",
	[HGJ_HIDDEN_AGGREGATE] = "run for each row: an aggregate of another kind",
	[HGJ_HIDDEN_VOLATILE] = "run for each row: it calls a volatile function",
	[HGJ_HIDDEN_RAISES] = "run for each row: an expression in it may raise an error",
	[HGJ_HIDDEN_READS] = "run for each row: it reads more than tables and simple subqueries of them",
	[HGJ_HIDDEN_PERMISSION] = "run for each row: it reads what the user may not",
	[HGJ_HIDDEN_EARLY] = "grouped before a join",
	[HGJ_HIDDEN_LATE] = "grouped after all joins: the query costs less as it is written",
	[HGJ_HIDDEN_LATE_OFF] = "grouped after all joins: hashgraph_join.rewrite is off",
	[HGJ_HIDDEN_REPEATED] = "computed at each place that reads it",
	[HGJ_HIDDEN_KEPT] = "computed once: elsewhere it might return other rows, or raise an error",
	[HGJ_HIDDEN_KEPT_COST] = "computed once: the query costs less as it is written",
	[HGJ_HIDDEN_KEPT_OFF] = "computed once: hashgraph_join.rewrite is off"
};

static const char *const fallbacks[] = {
	[HGJ_FALLBACK_NONE] = "",
	[HGJ_FALLBACK_ENGINE] = "engine not available",
	[HGJ_FALLBACK_DEVICE_MEMORY] = "not enough device memory",
	[HGJ_FALLBACK_DEVICE_FAILED] = "the device failed"
};

static const char *const device_reasons[] = {
	[HGJ_DEVICE_FITS] = "none",
	[HGJ_DEVICE_PARALLEL] = "parallel plan",
	[HGJ_DEVICE_JOIN_TYPE] = "join type",
	[HGJ_DEVICE_KEY] = "join key of another kind",
	[HGJ_DEVICE_QUAL] = "join clause that runs row by row",
	[HGJ_DEVICE_SOURCE] = "outer side not read by pages",
	[HGJ_DEVICE_VOLATILE] = "volatile function below",
	[HGJ_DEVICE_RAISES] = "expression that may raise an error",
	[HGJ_DEVICE_ORDER] = "build side that may raise an error",
	[HGJ_DEVICE_COLUMN] = "column that does not pass by value",
	[HGJ_DEVICE_EXPRESSION] = "expression of another kind",
	[HGJ_DEVICE_AGGREGATE] = "aggregate of another kind",
	[HGJ_DEVICE_GROUP_KEY] = "group key of another kind",
	[HGJ_DEVICE_SIZE] = "too many columns or steps",
	[HGJ_DEVICE_ENGINE] = "engine without pipelines",
	[HGJ_DEVICE_PASSES] = "build side does not fit into memory",
	[HGJ_DEVICE_TABLE] = "table that it cannot probe",
	[HGJ_DEVICE_ROW] = "value that the host must look at",
	[HGJ_DEVICE_MEMORY] = "not enough device memory",
	[HGJ_DEVICE_GROUPS] = "too many groups",
	[HGJ_DEVICE_FAILED] = "the device failed"
};

static const char *const source_reasons[] = {
	[HGJ_SOURCE_FASTEST] = "nothing is faster",
	[HGJ_SOURCE_SETTING] = "hashgraph_join.source is tuples",
	[HGJ_SOURCE_RECHECK] = "rows are being rechecked",
	[HGJ_SOURCE_OTHER_CHILD] = "neither a sequential scan nor a HashGraphJoin",
	[HGJ_SOURCE_COMPUTED] = "values that are computed row by row",
	[HGJ_SOURCE_REPLACED] = "another extension has replaced the sequential scan",
	[HGJ_SOURCE_NOT_HEAP] = "not a heap table",
	[HGJ_SOURCE_SNAPSHOT] = "not an MVCC snapshot",
	[HGJ_SOURCE_EXPRESSION] = "the scan returns more than columns",
	[HGJ_SOURCE_SYSTEM_COLUMN] = "a system column or a whole row is wanted",
	[HGJ_SOURCE_KEY_EXPRESSION] = "a join key is an expression",
	[HGJ_SOURCE_PASSES] = "several passes"
};

static const char *const memory_reasons[] = {
	[HGJ_MEMORY_PARTITIONS] = "partitions: the build side does not fit into memory",
	[HGJ_MEMORY_DEVICE_PARTITIONS] = "partitions: the build side does not fit into device memory",
	[HGJ_MEMORY_SHRUNK] = "half of the device memory: the other half was refused",
	[HGJ_MEMORY_PASSES] = "several passes: the build side, or a partition of it, does not fit into memory",
	[HGJ_MEMORY_BITS] = "match bits on file: those of the outer rows do not fit into memory",
	[HGJ_MEMORY_DICTIONARY] = "groups by value: the dictionary of their codes is full",
	[HGJ_MEMORY_GROUPS] = "partitions: the groups do not fit into memory",
	[HGJ_MEMORY_ROUNDS] = "partial groups returned early: they do not fit into memory"
};

/* Why a join got no path of ours. */
const char *
hgj_decline_text(HgjDecline decline)
{
	return declines[decline];
}

/* Why an aggregation got none. */
const char *
hgj_agg_decline_text(HgjAggDecline decline)
{
	return agg_declines[decline];
}

/* Why a node is not ours, though nothing was declined. */
const char *
hgj_not_ours_text(HgjNotOurs reason)
{
	return not_ours[reason];
}

/* What has become of a subquery. */
const char *
hgj_hidden_text(HgjHidden reason)
{
	return hidden[reason];
}

/* Why another engine runs; "" if it does not. */
const char *
hgj_fallback_text(HgjFallback fallback)
{
	return fallbacks[fallback];
}

/* Why there is no pipeline; "none" if there is one. */
const char *
hgj_device_reason_text(HgjDeviceReason reason)
{
	return device_reasons[reason];
}

/* Why a side is read by tuples. */
const char *
hgj_source_reason_text(HgjSourceReason reason)
{
	return source_reasons[reason];
}

/* See reasons.h. */
bool
hgj_fallback_reason(int i, const char **kind, const char **reason)
{
	if (i > HGJ_FIRST_ENGINE_REASON && i < HGJ_FIRST_PIPELINE_REASON)
	{
		*kind = "engine";
		*reason = fallbacks[i - HGJ_FIRST_ENGINE_REASON];
	}
	else if (i > HGJ_FIRST_PIPELINE_REASON && i < HGJ_FIRST_MEMORY_REASON)
	{
		*kind = "pipeline";
		*reason = device_reasons[i - HGJ_FIRST_PIPELINE_REASON];
	}
	else if (i >= HGJ_FIRST_MEMORY_REASON && i < HGJ_FIRST_TABLE_REASON)
	{
		*kind = "memory";
		*reason = memory_reasons[i - HGJ_FIRST_MEMORY_REASON];
	}
	else if (i >= HGJ_FIRST_TABLE_REASON &&
			 i < HGJ_FIRST_TABLE_REASON + HGJ_TABLE_REASONS)
	{
		*kind = "table";
		*reason = hgj_note_text((HgjNote) (1 << (i - HGJ_FIRST_TABLE_REASON)));
	}
	else
		return false;
	return true;
}
