/*-------------------------------------------------------------------------
 *
 * device_call.c
 *	  Calls of a pipeline, and what becomes of it when one fails, or the query does.
 *
 * 1. Every call that polls goes through hgj_device_done(), which keeps the reason why the
 *	  host has to do it where that is so.
 * 2. A pipeline is let go at the end of its run, or by a callback when the query aborts;
 *	  so are those of its build sides (device_sides.c).
 *
 * No memory but callbacks, in the context they are for.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "join/engines.h"
#include "pipeline/device.h"

/*
 * What every call of the pipeline that polls goes through: true if it is done,
 * false if it has to be repeated.  Where it has failed, run_reason says so.
 */
bool
hgj_device_done(HgjPipelineState *d, HgjStatus status, const HgjError *err)
{
	hgj_device_wait_ends();
	if (hgj_call_cancelled(&d->poll, status))
		return false;
	switch (status)
	{
		case HGJ_OK:
			return true;
		case HGJ_ROW_FAILED:
			d->run_reason = HGJ_DEVICE_ROW;
			break;
		case HGJ_UNSUPPORTED:
			d->run_reason = HGJ_DEVICE_TABLE;
			break;
		case HGJ_LIMIT:
			d->run_reason = d->pushing ? HGJ_DEVICE_GROUPS : HGJ_DEVICE_MEMORY;
			break;
		case HGJ_OUT_OF_MEMORY:
			d->run_reason = HGJ_DEVICE_MEMORY;
			break;
		default:
			d->run_reason = HGJ_DEVICE_FAILED;
			break;
	}
	d->error = *err;
	d->error.status = status;
	return true;
}

/* The host has to do it: say so once for a reason, not once per rescan. */
void
hgj_device_log(HgjPipelineState *d)
{
	HgjDeviceReason reason = hgj_device_reason(d);

	if (reason == d->logged)
		return;
	d->logged = reason;
	ereport(DEBUG1,
			(errmsg_internal("hashgraph_join: no device pipeline: %s%s%s",
							 hgj_device_reason_text(reason),
							 d->error.status != HGJ_OK ? ": " : "",
							 d->error.status != HGJ_OK ? d->error.message : "")));
}

/* Give device memory back, and values. */
static void
let_go(HgjPipelineState *d)
{
	if (d->pipeline)
		d->engine->pipeline->destroy(d->pipeline);
	d->pipeline = NULL;
	if (d->batch)
		hgj_arena_free(&d->batch->own_values);
	for (int j = 0; j < HGJ_PIPE_JOINS; j++)
	{
		if (d->builds[j])
			hgj_build_side_release(d->builds[j]);
		d->builds[j] = NULL;
	}
}

/* The same at the end of a run, whose counts are kept. */
void
hgj_device_release(HgjPipelineState *d)
{
	if (d->pipeline)
	{
		d->engine->pipeline->info(d->pipeline, &d->info);
		d->sent += d->info.sent;
		d->transfer_ms += d->info.transfer_ms;
		d->kernel_ms += d->info.kernel_ms;
		d->peak = Max(d->peak, d->info.memory);
	}
	let_go(d);
}

/* The run is over, or has been given up: pins and device memory. */
void
hgj_device_end(HgjPipelineState *d)
{
	hgj_device_release(d);
	if (d->reading)
		d->source.methods->rewind(&d->source);
	d->reading = false;
}

/*
 * With the build sides that have been made on the device.  Nobody will ask what they have
 * counted: where the query aborts, what is under way is not waited for (server/client.c).
 */
static void
release_on_reset(void *arg)
{
	HgjPipelineState *d = arg;

	let_go(d);
	for (int j = 0; j < d->njoins; j++)
		if (d->sides[j])
			release_on_reset(d->sides[j]);
}

/* Give device memory back when the context goes. */
void
hgj_device_own(HgjPipelineState *d, MemoryContext context)
{
	MemoryContextCallback *callback = MemoryContextAllocZero(context,
															 sizeof(MemoryContextCallback));

	callback->func = release_on_reset;
	callback->arg = d;
	MemoryContextRegisterResetCallback(context, callback);
}

/* Nothing is known of the run that begins. */
void
hgj_device_reset(HgjPipelineState *d)
{
	d->ran = false;
	d->run_reason = HGJ_DEVICE_FITS;
	d->poll.disabled = false;
	INSTR_TIME_SET_ZERO(d->decode);
	memset(&d->info, 0, sizeof(d->info));
	memset(&d->error, 0, sizeof(d->error));
}
