/*-------------------------------------------------------------------------
 *
 * device_push.c
 *	  All rows of a pipeline's scan on their way.
 *
 * 1. First what is kept of the table's columns in memory (device_kept.c).
 * 2. For the rest, have the pages source decode batches straight into staging buffers,
 *	  one after the other, and push them.  The source waits for nobody but a buffer that
 *	  is still being sent.
 *
 * Memory: device_start.c.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "miscadmin.h"
#include "pipeline/device.h"

/* Fill a staging buffer.  Returns its rows. */
static uint32
fill_stage(HgjPipelineState *d, const HgjPipeStage *stage, uint64 *nulls)
{
	instr_time	start;
	instr_time	end;
	uint32		n;

	d->reading = true;
	INSTR_TIME_SET_CURRENT(start);
	n = hgj_device_fill(d, stage, nulls);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_ACCUM_DIFF(d->decode, end, start);
	return n;
}

/*
 * Steps 1 and 2.  `pushed`, unless it is NULL, is told of rows as they go.
 * hgj_device_gave_up() may follow.
 */
void
hgj_device_push_rows(HgjPipelineState *d, void (*pushed) (HgjPipelineState *d, uint64 rows))
{
	const HgjPipelineMethods *methods = d->engine->pipeline;
	HgjError	err = {0};
	uint64		kept;

	if (pushed)
		pushed(d, 0);
	kept = hgj_device_push_kept(d);
	if (pushed)
		pushed(d, kept);
	while (!hgj_device_gave_up(d))
	{
		HgjPipeStage stage;
		uint64		nulls;
		uint32		n;

		CHECK_FOR_INTERRUPTS();
		hgj_device_call(d, &err, methods->stage(d->pipeline, &stage, &err));
		if (hgj_device_gave_up(d))
			break;
		n = fill_stage(d, &stage, &nulls);
		if (n == 0 || hgj_device_gave_up(d))
			break;
		hgj_device_call(d, &err, methods->push(d->pipeline, n, nulls, &err));
		if (pushed)
			pushed(d, n);
	}
}
