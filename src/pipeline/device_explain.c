/*-------------------------------------------------------------------------
 *
 * device_explain.c
 *	  What EXPLAIN, and the database's counters, say of a pipeline on a device.
 *
 * No memory, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/counters.h"
#include HGJ_EXPLAIN_HEADER
#include "join/engines.h"
#include "pipeline/device.h"

/* Columns that the host makes for it. */
static int
count_made(const HgjPipelineState *d)
{
	int			n = 0;

	for (int i = 0; i < d->ncolumns; i++)
		n += d->columns[i].made != NULL && !d->columns[i].made->row_number;
	return n;
}

/* How many of the outer table's rows were on the device already, or had only to be copied? */
static void
explain_kept(const HgjPipelineInfo *info, ExplainState *es)
{
	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyUInteger("Device Column Rows", NULL, info->kept_rows, es);
		ExplainPropertyUInteger("Device Columns", "kB", info->kept_bytes / 1024, es);
	}
	else if (info->kept_rows > 0)
		ExplainPropertyText("Device Columns",
							psprintf(UINT64_FORMAT "%% (" UINT64_FORMAT "kB on the device)",
									 100 * info->kept_rows / Max(info->rows, 1),
									 info->kept_bytes / 1024), es);
}

/*
 * How long the run took whom.  A GPU's kernels are timed by its clock; threads are timed by the
 * host's, and their rows say whether one of them had more to do than the others.
 */
static void
explain_times(const HgjPipelineState *d, const HgjPipelineInfo *info, ExplainState *es)
{
	bool		threads = hgj_device_threads() > 0;
	double		decode = INSTR_TIME_GET_MILLISEC(d->decode);

	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyFloat("Host Decode Time", "ms", decode, 3, es);
		ExplainPropertyFloat("Transfer Time", "ms", info->transfer_ms, 3, es);
		ExplainPropertyFloat("Kernel Time", "ms", threads ? 0 : info->kernel_ms, 3, es);
		ExplainPropertyUInteger("Threads", NULL, info->threads, es);
		ExplainPropertyFloat("Busy Time", "ms", threads ? info->kernel_ms : 0, 3, es);
		ExplainPropertyUInteger("Most Rows of a Thread", NULL, info->most_rows, es);
		ExplainPropertyUInteger("Sent", "kB", info->sent / 1024, es);
		ExplainPropertyUInteger("Device Memory", "kB", info->memory / 1024, es);
		return;
	}
	appendStringInfoSpaces(es->str, es->indent * 2);
	appendStringInfo(es->str, "Host Decode: %.3f ms  ", decode);
	if (threads)
		appendStringInfo(es->str, "Threads: %u  Busy: %.3f ms  Most Rows of a Thread: " UINT64_FORMAT,
						 info->threads, info->kernel_ms, info->most_rows);
	else
		appendStringInfo(es->str, "Transfer: %.3f ms  Kernels: %.3f ms",
						 info->transfer_ms, info->kernel_ms);
	appendStringInfo(es->str, "  Sent: " UINT64_FORMAT "kB  Device Memory: " UINT64_FORMAT "kB\n",
					 info->sent / 1024, info->memory / 1024);
}

/* What EXPLAIN says of it, where a device was asked for.  info: of the last run. */
void
hgj_device_explain(const HgjPipelineState *d, const HgjPipelineInfo *info, ExplainState *es)
{
	HgjDeviceReason reason = hgj_device_reason(d);
	const char *text = hgj_device_reason_text(reason);

	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyBool("Device Pipeline", reason == HGJ_DEVICE_FITS, es);
		ExplainPropertyText("Device Pipeline Fallback", text, es);
	}
	else if (reason != HGJ_DEVICE_FITS)
		ExplainPropertyText("Device Pipeline", psprintf("no (%s)", text), es);
	else
		ExplainPropertyText("Device Pipeline", "yes", es);
	if (reason == HGJ_DEVICE_FITS && !d->rows && d->scan->plan->qual != NIL)
		ExplainPropertyText("Scan Filter", d->scan_filter ? "device" : "host", es);
	if (reason == HGJ_DEVICE_FITS && (count_made(d) > 0 || es->format != EXPLAIN_FORMAT_TEXT))
		ExplainPropertyInteger("Columns by Host", NULL, count_made(d), es);
	if (es->analyze && d->ran)
	{
		explain_kept(info, es);
		if (info->left_out > 0 || es->format != EXPLAIN_FORMAT_TEXT)
			ExplainPropertyUInteger("Groups Left Out", NULL, info->left_out, es);
	}
	if (es->analyze && es->timing && d->ran)
		explain_times(d, info, es);
}

/* Add what all of its runs have had the device do, build sides that it has made included. */
void
hgj_device_count_work(const HgjPipelineState *d, HgjCounters *counters)
{
	uint64	   *values = counters->values;

	values[HGJ_COUNT_TO_DEVICE] += d->sent;
	values[HGJ_COUNT_FROM_DEVICE] += d->received;
	values[HGJ_COUNT_TRANSFER_NS] += (uint64) (d->transfer_ms * 1e6);
	values[HGJ_COUNT_KERNEL_NS] += (uint64) (d->kernel_ms * 1e6);
	values[HGJ_COUNT_PEAK_DEVICE_MEMORY] =
		Max(values[HGJ_COUNT_PEAK_DEVICE_MEMORY], d->peak);
	for (int j = 0; j < d->njoins; j++)
		if (d->sides[j])
			hgj_device_count_work(d->sides[j], counters);
}

/* Add that, and why there was none. */
void
hgj_device_count(const HgjPipelineState *d, HgjCounters *counters)
{
	HgjDeviceReason reason = hgj_device_reason(d);

	hgj_device_count_work(d, counters);
	if (reason != HGJ_DEVICE_FITS)
		hgj_counters_fell_back(counters, HGJ_FIRST_PIPELINE_REASON + reason);
}
