/*-------------------------------------------------------------------------
 *
 * hashgraph_join.c
 *	  The module: what happens when the library is loaded, and the functions
 *	  that SQL can call.
 *
 * 1. _PG_init defines the settings, registers the nodes' methods under their
 *	  names (parallel workers and stored plans look them up), and chains into the
 *	  planner.  It never touches a device: the postmaster may be running it, and
 *	  a CUDA context does not survive fork.
 * 2. hashgraph_join_info() lists the engines, opening none.  (Functions about
 *	  GPUs are in devices.c.)
 *
 * No memory outlives a call but what the GUC machinery keeps.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_state.h"
#include "base/agg_format.h"
#include "base/counters.h"
#include "base/guc.h"
#include "base/own_nodes.h"
#include "base/plan_format.h"
#include "base/progress.h"
#include "base/worker_time.h"
#include "catalog/pg_type.h"
#include "engine/engine.h"
#include "engine/registry.h"
#include "expr/demand.h"
#include "fmgr.h"
#include "funcapi.h"
#include "join/engines.h"
#include "join/output.h"
#include "kept/store.h"
#include "kept/wanted.h"
#include "miscadmin.h"
#include "pipeline/device.h"
#include "planner/declines.h"
#include "planner/planner.h"
#include "rewrite/rewrite.h"
#include "scan/batch_node.h"
#include "server/worker.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "why.h"

HGJ_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(hashgraph_join_info);

void		_PG_init(void);

#define INFO_COLUMNS	6

typedef struct CapabilityName
{
	uint64		bit;
	const char *name;
} CapabilityName;

static const CapabilityName capability_names[] = {
	{HGJ_CAP_HOST_KEYS, "host_keys"},
	{HGJ_CAP_DEVICE_KEYS, "device_keys"},
	{HGJ_CAP_GROUPED, "grouped"},
	{HGJ_CAP_DYNAMIC, "dynamic"},
	{HGJ_CAP_SORT, "sort"}
};

void
_PG_init(void)
{
	const HgjNodeMethods join = {&hgj_path_methods, &hgj_scan_methods};
	const HgjNodeMethods agg = {&hgj_agg_path_methods, &hgj_agg_scan_methods};

	hgj_define_settings();
	if (process_shared_preload_libraries_in_progress)
	{
		hgj_counters_share();
		hgj_progress_share();
		hgj_store_share();
		hgj_server_share();
		hgj_wanted_share();
		hgj_gone_install();
		hgj_worker_time_share();
	}
	hgj_register_nodes(&join, &agg);
	hgj_register_batch_node(&hgj_scan_methods, &hgj_join_batch_node);
	hgj_register_batch_node(&hgj_agg_scan_methods, &hgj_agg_batch_node);
	hgj_install_scan_hook();
	hgj_install_key_estimates();
	hgj_install_single_rows_hook();
	hgj_install_join_hook();
	hgj_install_chains_hook();
	hgj_install_agg_hook();
	hgj_install_require_hook();
	hgj_install_rewrite_hook();
	hgj_install_group_estimates();
	hgj_install_extreme_estimates();
	hgj_install_declines_hook();
	hgj_install_demand_hook();
	hgj_install_letters();
	hgj_install_device_rows();
	hgj_install_groups_offer();
	hgj_install_explain_option();
}

static Datum
text_array(Datum *elements, int n)
{
	return PointerGetDatum(construct_array(elements, n, TEXTOID, -1, false,
										   TYPALIGN_INT));
}

static Datum
device_array(const HgjEngine *engine)
{
	int			n = Max(engine->device_count(), 0);
	Datum	   *elements = palloc(mul_size(Max(n, 1), sizeof(Datum)));
	int			found = 0;

	for (int i = 0; i < n; i++)
	{
		HgjDeviceInfo info;
		HgjError	err;

		if (engine->device_info(i, &info, &err) == HGJ_OK)
			elements[found++] = CStringGetTextDatum(info.name);
	}
	return text_array(elements, found);
}

static Datum
capability_array(const HgjEngine *engine)
{
	Datum		elements[lengthof(capability_names)];
	int			n = 0;

	for (int i = 0; i < lengthof(capability_names); i++)
		if (engine->capabilities & capability_names[i].bit)
			elements[n++] = CStringGetTextDatum(capability_names[i].name);
	return text_array(elements, n);
}

/* What the planner takes workers to cost. */
static Datum
worker_time_text(void)
{
	double		milliseconds;
	bool		measured = hgj_worker_time_measured(&milliseconds);
	char	   *text = psprintf("%d parallel workers: %.1f ms to begin and to end (%s)",
								HGJ_TIMED_WORKERS, milliseconds,
								measured ? "measured" : "not measured yet");

	return CStringGetTextDatum(text);
}

/* One row per engine that there is, or could be. */
Datum
hashgraph_join_info(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < hgj_registry_count(); i++)
	{
		Datum		values[INFO_COLUMNS] = {0};
		bool		nulls[INFO_COLUMNS] = {false};
		HgjError	err = {0};
		const char *name = hgj_registry_name(i);
		const HgjEngine *engine = strcmp(name, "cuda") == 0 ?
			hgj_cuda_engine(&err) : hgj_registry_find(name, pkglib_path, &err);

		if (engine && engine->usable(&err) != HGJ_OK)
			engine = NULL;
		/* a server may have threads in the place of a GPU */
		values[0] = CStringGetTextDatum(engine ? engine->name : name);
		values[1] = BoolGetDatum(engine != NULL);
		nulls[2] = nulls[3] = nulls[4] = (engine == NULL);
		nulls[5] = (engine != NULL);
		if (engine)
		{
			values[2] = CStringGetTextDatum(engine->version);
			values[3] = device_array(engine);
			values[4] = capability_array(engine);
		}
		else
			values[5] = CStringGetTextDatum(err.message);
		if (engine && strcmp(name, "cpu") == 0)
		{
			values[5] = worker_time_text();
			nulls[5] = false;
		}
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
