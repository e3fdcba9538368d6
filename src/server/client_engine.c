/*-------------------------------------------------------------------------
 *
 * client_engine.c
 *	  The engine "cuda" of sessions whose calls are made in the GPU process, or "threads" where
 *	  that has threads instead.
 *
 * 1. What it is and can do, and its devices, are as the GPU process has written them into
 *	  the shared memory.
 * 2. Calls about tables and pipelines are client_table.c's and client_pipeline.c's.
 *
 * Nothing here raises an error: these are an engine's calls (engine.h).
 *
 * Memory: static.  Locks: none; devices are read again while they are being written.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "engine/checks.h"
#include "server/client.h"

static HgjStatus
server_usable(HgjError *err)
{
	HgjServer  *server = hgj_server();

	switch (hgj_server_state(server))
	{
		case HGJ_SERVER_READY:
			return HGJ_OK;
		case HGJ_SERVER_UNUSABLE:
			return hgj_fail(err, HGJ_NO_DEVICE, server->why);
		case HGJ_SERVER_STARTING:
			return hgj_fail(err, HGJ_NO_DEVICE, "the GPU process is being started");
		default:
			return hgj_fail(err, HGJ_NO_DEVICE, "the GPU process has ended, and is started again");
	}
}

/* Nothing is opened in this process. */
static void
server_close(void)
{
	hgj_channel_close();
}

static int
server_device_count(void)
{
	return hgj_server_state(hgj_server()) == HGJ_SERVER_READY ? hgj_server()->ndevices : 0;
}

static HgjStatus
server_device_info(int device, HgjDeviceInfo *info, HgjError *err)
{
	HgjServer  *server = hgj_server();
	uint32		before;
	int			tries = 0;
	HgjStatus	status = server_usable(err);

	if (status != HGJ_OK)
		return status;
	if (device < 0 || device >= server->ndevices)
		return hgj_fail(err, HGJ_NO_DEVICE, "there is no device of that number");
	do
	{
		before = __atomic_load_n(&server->changes, __ATOMIC_SEQ_CST);
		memcpy(info, &server->devices[device], sizeof(*info));
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		/* who was writing may have been killed: what it says may be old, no more */
	} while (((before & 1) ||
			  before != __atomic_load_n(&server->changes, __ATOMIC_SEQ_CST)) &&
			 ++tries < 1000);
	info->tables = hgj_channel_uses();
	return HGJ_OK;
}

/* See worker.h. */
const HgjEngine *
hgj_server_engine(HgjError *err)
{
	static HgjEngine engine;
	HgjServer  *server = hgj_server();

	if (server_usable(err) != HGJ_OK)
		return NULL;
	engine.abi_version = HGJ_ABI_VERSION;
	engine.name = server->threads > 0 ? "threads" : "cuda";
	engine.version = server->version;
	engine.capabilities = server->capabilities & (HGJ_CAP_HOST_KEYS | HGJ_CAP_GROUPED |
												  HGJ_CAP_SORT | HGJ_CAP_DEVICE_MEMORY);
	engine.open = server_usable;
	engine.close = server_close;
	engine.device_count = server_device_count;
	engine.device_info = server_device_info;
	engine.usable = server_usable;
	hgj_server_table_methods(&engine);
	engine.pipeline = server->pipelines ?
		hgj_server_pipelines(server) : NULL;
	return &engine;
}
