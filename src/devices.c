/*-------------------------------------------------------------------------
 *
 * devices.c
 *	  What SQL can ask about GPUs: hashgraph_join_devices() and
 *	  hashgraph_join_release().
 *
 * 1. Devices are listed without opening any: how much of a device's memory is
 *	  free is known only where this session has it open.
 * 2. Where there is none, one row says why: no library, another version of it, no
 *	  driver, no device.
 * 3. A device of the GPU process is every session's: how many have something on it, and for
 *	  how many it makes a call just now, is in the memory that they share.
 * 4. A device is given back only when no table is left on it.  Tables die with
 *	  their query, so only open cursors, and the calling query itself, can be in
 *	  the way.
 *
 * No memory outlives a call.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/guc.h"
#include "fmgr.h"
#include "funcapi.h"
#include "join/engines.h"
#include "miscadmin.h"
#include "server/worker.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(hashgraph_join_devices);
PG_FUNCTION_INFO_V1(hashgraph_join_release);

typedef enum DeviceColumn
{
	COLUMN_DEVICE,
	COLUMN_NAME,
	COLUMN_CAPABILITY,
	COLUMN_TOTAL,
	COLUMN_FREE,
	COLUMN_DRIVER,
	COLUMN_RUNTIME,
	COLUMN_STATE,
	COLUMN_TABLES,
	COLUMN_DETAIL,
	COLUMN_KEPT_BYTES,
	COLUMN_KEPT_HITS,
	COLUMN_KEPT_UPLOADS,
	COLUMN_SESSIONS,
	COLUMN_CALLS,
	COLUMNS
} DeviceColumn;

static void
put_text(Datum *values, bool *nulls, DeviceColumn column, const char *text)
{
	values[column] = CStringGetTextDatum(text);
	nulls[column] = false;
}

/* CUDA's versions are 1000 * major + 10 * minor. */
static void
put_version(Datum *values, bool *nulls, DeviceColumn column, uint32 version)
{
	if (version > 0)
		put_text(values, nulls, column,
				 psprintf("%u.%u", version / 1000, version % 1000 / 10));
}

/* Kept columns on it, and who is at work there. */
static void
put_load(Datum *values, bool *nulls, const HgjDeviceInfo *info)
{
	values[COLUMN_KEPT_BYTES] = Int64GetDatum((int64) info->kept_bytes);
	values[COLUMN_KEPT_HITS] = Int64GetDatum((int64) info->kept_found);
	values[COLUMN_KEPT_UPLOADS] = Int64GetDatum((int64) info->kept_brought);
	nulls[COLUMN_KEPT_BYTES] = nulls[COLUMN_KEPT_HITS] = nulls[COLUMN_KEPT_UPLOADS] =
		!info->open;
	if (hgj_server_serves(hgj_cuda_library))
	{
		uint32		sessions;
		uint32		calls;

		hgj_server_load(hgj_server(), &sessions, &calls);
		values[COLUMN_SESSIONS] = Int32GetDatum((int32) sessions);
		values[COLUMN_CALLS] = Int32GetDatum((int32) calls);
		nulls[COLUMN_SESSIONS] = nulls[COLUMN_CALLS] = false;
	}
}

static void
put_device(Datum *values, bool *nulls, int device, const HgjDeviceInfo *info)
{
	values[COLUMN_DEVICE] = Int32GetDatum(device);
	values[COLUMN_TOTAL] = Int64GetDatum((int64) info->total_memory);
	values[COLUMN_FREE] = Int64GetDatum((int64) info->free_memory);
	values[COLUMN_TABLES] = Int32GetDatum((int32) info->tables);
	nulls[COLUMN_DEVICE] = nulls[COLUMN_TABLES] = false;
	nulls[COLUMN_TOTAL] = info->total_memory == 0;
	nulls[COLUMN_FREE] = !info->open;
	put_text(values, nulls, COLUMN_NAME, info->name);
	if (info->major > 0)
		put_text(values, nulls, COLUMN_CAPABILITY,
				 psprintf("%u.%u", info->major, info->minor));
	put_version(values, nulls, COLUMN_DRIVER, info->driver_version);
	put_version(values, nulls, COLUMN_RUNTIME, info->runtime_version);
	put_text(values, nulls, COLUMN_STATE,
			 info->off[0] ? "off" : info->open ? "open" : "available");
	if (info->off[0])
		put_text(values, nulls, COLUMN_DETAIL, info->off);
	else if (hgj_server_serves(hgj_cuda_library))
		put_text(values, nulls, COLUMN_DETAIL,
				 psprintf("process %d has it open for all sessions",
						  (int) hgj_server()->process));
	put_load(values, nulls, info);
}

/* One row per GPU, or one that says why there is none. */
Datum
hashgraph_join_devices(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	HgjError	err = {0};
	const HgjEngine *engine = hgj_cuda_engine(&err);
	int			count = engine ? engine->device_count() : 0;
	Datum		values[COLUMNS];
	bool		nulls[COLUMNS];

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < Max(count, 1); i++)
	{
		HgjDeviceInfo info;

		memset(values, 0, sizeof(values));
		memset(nulls, true, sizeof(nulls));
		if (count > 0 && engine->device_info(i, &info, &err) == HGJ_OK)
			put_device(values, nulls, i, &info);
		else
		{
			if (engine && engine->usable(&err) == HGJ_OK)
				continue;		/* it has appeared just now */
			put_text(values, nulls, COLUMN_STATE, "off");
			put_text(values, nulls, COLUMN_DETAIL, err.message);
		}
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* Give this session's GPUs back; false: it has none. */
Datum
hashgraph_join_release(PG_FUNCTION_ARGS)
{
	uint32		tables;
	bool		released = hgj_cuda_release(&tables);

	if (tables > 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg_plural("cannot give the GPU back while %u table is on it",
							   "cannot give the GPU back while %u tables are on it",
							   tables, tables),
				 errhint("Close the cursors whose queries use the GPU.")));
	PG_RETURN_BOOL(released);
}
