/*-------------------------------------------------------------------------
 *
 * explain.c
 *	  What EXPLAIN shows of a HashGraphJoin.
 *
 * The plan's part (join type and clauses) is always shown and never changes
 * between runs; what a run has chosen and used is shown under ANALYZE only, so
 * that plain EXPLAIN output is stable.  Of a parallel plan's processes the
 * leader is shown, or else the first worker that has built, with the highest
 * memory of all and the number of workers that have built.
 *
 * Memory: the caller's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "base/guc.h"
#include "base/hidden_joins.h"
#include "commands/explain.h"
#include HGJ_EXPLAIN_HEADER
#include HGJ_EXPLAIN_STATE_HEADER
#include "join/engines.h"
#include "join/join_state.h"
#include "join/parallel.h"
#include "scan/source_explain.h"
#include "utils/builtins.h"

static const char *
join_type_name(JoinType jointype)
{
	switch ((int) jointype)
	{
		case JOIN_INNER:
			return "Inner";
		case JOIN_LEFT:
			return "Left";
		case JOIN_RIGHT:
			return "Right";
		case JOIN_FULL:
			return "Full";
		case JOIN_SEMI:
			return "Semi";
		case JOIN_ANTI:
			return "Anti";
		case JOIN_RIGHT_ANTI:
			return "Right Anti";
		case JOIN_RIGHT_SEMI:
			return "Right Semi";
		default:
			return "???";
	}
}

static void
show_fallback(const HgjRunReport *run, ExplainState *es)
{
	StringInfoData buf;
	/* an engine that is not available says so itself */
	bool		by_device = run->fallback != HGJ_FALLBACK_ENGINE;

	initStringInfo(&buf);
	if (run->fallback != HGJ_FALLBACK_NONE)
		appendStringInfo(&buf, "cpu engine (%s%s%s)",
						 by_device ? hgj_fallback_text(run->fallback) : "",
						 by_device ? ": " : "", run->fallback_text);
	if (run->stats.shrunk[0])
		appendStringInfo(&buf, "%shalf of the device memory (%s)",
						 buf.len ? "; " : "", run->stats.shrunk);
	if (run->stats.partitions > 0 || run->stats.passes > 1)
		appendStringInfo(&buf, "%s%s (the build side does not fit into %s)",
						 buf.len ? "; " : "",
						 run->stats.partitions > 0 ? "partitions" : "several passes",
						 run->stats.device_full ? "device memory" : "memory");
	if (run->stats.share_spilled)
		appendStringInfo(&buf, "%sprivate builds (the shared one does not fit into memory)",
						 buf.len ? "; " : "");
	if (run->stats.dictionary_full)
		appendStringInfo(&buf, "%sgroups by value (the dictionary of their codes is full)",
						 buf.len ? "; " : "");
	for (int bit = 0; bit < 32; bit++)
	{
		uint32		note = run->stats.notes & (UINT32_C(1) << bit);

		if (note)
			appendStringInfo(&buf, "%s%s", buf.len ? "; " : "",
							 hgj_note_text((HgjNote) note));
	}
	if (buf.len > 0)
		ExplainPropertyText("Fallback", buf.data, es);
}

/* Chooses the run to show; returns how many workers have built. */
static int
choose_report(const HgjJoinState *state, HgjRunReport *run)
{
	int			built = 0;

	hgj_make_report(state, run);
	for (int i = 0; i < state->js.reports.n; i++)
	{
		const HgjRunReport *worker = (HgjRunReport *) state->js.reports.copies + i;

		if (!worker->stats.built)
			continue;
		if (run->stats.built)
			hgj_add_report(run, worker);
		else
			*run = *worker;
		built++;
	}
	return built;
}

/* The filter in front of the table, if the probes have wanted one. */
static void
show_filter(const HgjRunStats *stats, ExplainState *es)
{
	uint64		kilobytes = (stats->filter_bytes + 1023) / 1024;

	if (stats->filter_bytes == 0 && stats->filter_rejected == 0)
		return;
	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		appendStringInfoSpaces(es->str, es->indent * 2);
		/* a pipeline's first probe makes the filter: its table has been asked before that */
		if (stats->filter_bytes > 0)
			appendStringInfo(es->str, "Probe Filter: " UINT64_FORMAT "kB  ", kilobytes);
		appendStringInfo(es->str, "Rows Rejected: " UINT64_FORMAT "\n", stats->filter_rejected);
	}
	else
	{
		ExplainPropertyUInteger("Probe Filter", "kB", kilobytes, es);
		ExplainPropertyUInteger("Rows Rejected by Probe Filter", NULL,
								stats->filter_rejected, es);
	}
}

/* What a device was used for, and how long by its own clock. */
static void
show_device(const HgjRunStats *stats, ExplainState *es)
{
	uint64		memory = (stats->device_peak + 1023) / 1024;
	uint64		to_device = (stats->work.to_device + 1023) / 1024;
	uint64		from_device = (stats->work.from_device + 1023) / 1024;
	double		kernels = stats->work.kernel_ns / 1e6;
	double		transfers = stats->work.transfer_ns / 1e6;

	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		appendStringInfoSpaces(es->str, es->indent * 2);
		appendStringInfo(es->str, "Device Memory: " UINT64_FORMAT
						 "kB  To Device: " UINT64_FORMAT
						 "kB  From Device: " UINT64_FORMAT "kB\n",
						 memory, to_device, from_device);
		/* nothing is transferred to threads, and pipelines say how long they were busy */
		if (!es->timing || hgj_device_threads() > 0)
			return;
		appendStringInfoSpaces(es->str, es->indent * 2);
		appendStringInfo(es->str,
						 "Kernel Time: %.3f ms  Transfer Time: %.3f ms\n",
						 kernels, transfers);
		return;
	}
	ExplainPropertyUInteger("Device Memory", "kB", memory, es);
	ExplainPropertyUInteger("To Device", "kB", to_device, es);
	ExplainPropertyUInteger("From Device", "kB", from_device, es);
	if (es->timing)
	{
		ExplainPropertyFloat("Kernel Time", "ms", kernels, 3, es);
		ExplainPropertyFloat("Transfer Time", "ms", transfers, 3, es);
	}
}

/* What went to temporary files, and what did not have to. */
static void
show_spilled(const HgjRunStats *stats, ExplainState *es)
{
	uint64		inner = (stats->spilled_inner + 1023) / 1024;
	uint64		outer = (stats->spilled_outer + 1023) / 1024;
	uint64		held = (stats->held_bytes + 1023) / 1024;
	uint64		bits = (stats->spilled_bits + 1023) / 1024;

	if (es->format != EXPLAIN_FORMAT_TEXT)
	{
		ExplainPropertyUInteger("Spilled Inner", "kB", inner, es);
		ExplainPropertyUInteger("Spilled Outer", "kB", outer, es);
		ExplainPropertyUInteger("Outer Rows Filtered", NULL,
								stats->outer_filtered, es);
		ExplainPropertyUInteger("Partitions in Memory", "kB", held, es);
		ExplainPropertyUInteger("Spilled Match Bits", "kB", bits, es);
		return;
	}
	if (inner > 0 || held > 0)
	{
		appendStringInfoSpaces(es->str, es->indent * 2);
		appendStringInfo(es->str,
						 "Spilled Inner: " UINT64_FORMAT "kB  Spilled Outer: "
						 UINT64_FORMAT "kB  Outer Rows Filtered: " UINT64_FORMAT,
						 inner, outer, stats->outer_filtered);
		if (held > 0)
			appendStringInfo(es->str, "  Partitions in Memory: " UINT64_FORMAT "kB",
							 held);
		appendStringInfoChar(es->str, '\n');
	}
	if (bits > 0)
	{
		appendStringInfoSpaces(es->str, es->indent * 2);
		appendStringInfo(es->str, "Spilled Match Bits: " UINT64_FORMAT "kB\n",
						 bits);
	}
}

/* What was evaluated a row at a time, because no other may be wanted. */
static void
show_singly(const HgjRunStats *stats, ExplainState *es)
{
	if (stats->outer_singly == 0 && stats->joined_singly == 0)
		return;
	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		appendStringInfoSpaces(es->str, es->indent * 2);
		appendStringInfo(es->str,
						 "Outer Rows Taken Singly: " UINT64_FORMAT
						 "  Joined Rows Taken Singly: " UINT64_FORMAT "\n",
						 stats->outer_singly, stats->joined_singly);
		return;
	}
	ExplainPropertyUInteger("Outer Rows Taken Singly", NULL,
							stats->outer_singly, es);
	ExplainPropertyUInteger("Joined Rows Taken Singly", NULL,
							stats->joined_singly, es);
}

/* What the run chose and used; nothing if it never built. */
static void
show_run(HgjJoinState *state, ExplainState *es)
{
	HgjRunReport run;
	int			workers_built = choose_report(state, &run);
	const HgjRunStats *stats = &run.stats;
	const HgjTableInfo *table = &stats->table;
	bool		on_device = stats->device[0] && run.fallback == HGJ_FALLBACK_NONE;

	if (!stats->built)
		return;
	if (workers_built > 0)
		ExplainPropertyInteger("Workers Built", NULL, workers_built, es);
	ExplainPropertyText("Engine", run.engine, es);
	if (on_device)
		ExplainPropertyText("Device", stats->device, es);
	if (table->kept || (on_device && es->format != EXPLAIN_FORMAT_TEXT))
		ExplainPropertyBool("Kept Build Side", table->kept, es);
	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		appendStringInfoSpaces(es->str, es->indent * 2);
		appendStringInfo(es->str, "Build: %s  Probe: %s  Segments: %s\n",
						 hgj_build_name(table->build),
						 hgj_probe_name(table->probe),
						 hgj_segments_name(table->segments));
		appendStringInfoSpaces(es->str, es->indent * 2);
		appendStringInfo(es->str,
						 "Vertices: " UINT64_FORMAT "  Build Rows: " UINT64_FORMAT
						 "  Memory Usage: %zukB",
						 (uint64) table->vertices, stats->build_rows,
						 (stats->peak_bytes + 1023) / 1024);
		if (stats->passes > 1)
			appendStringInfo(es->str, "  Passes: %u", stats->passes);
		if (stats->spilled_inner > 0 || stats->held_bytes > 0)
			appendStringInfo(es->str, "  Partitions: %u", stats->partitions + 1);
		appendStringInfoChar(es->str, '\n');
	}
	else
	{
		ExplainPropertyText("Build", hgj_build_name(table->build), es);
		ExplainPropertyText("Probe", hgj_probe_name(table->probe), es);
		ExplainPropertyText("Segments", hgj_segments_name(table->segments), es);
		ExplainPropertyUInteger("Vertices", NULL, table->vertices, es);
		ExplainPropertyUInteger("Build Rows", NULL, stats->build_rows, es);
		ExplainPropertyUInteger("Memory Usage", "kB",
								(stats->peak_bytes + 1023) / 1024, es);
		ExplainPropertyUInteger("Passes", NULL, stats->passes, es);
		ExplainPropertyUInteger("Partitions", NULL, stats->partitions + 1, es);
	}
	if (stats->stopped_early)
		ExplainPropertyText("Stopped Early", "all inner rows are found", es);
	show_spilled(stats, es);
	show_singly(stats, es);
	if (on_device)
		show_device(stats, es);
	show_filter(stats, es);
	hgj_show_key_filters(&state->js.outer, state->js.inner_ps, stats->key_filters, es);
	hgj_row_prober->explain(state, es);
	show_fallback(&run, es);
}

/* How both sides are read, in whichever process. */
static void
show_sources(HgjJoinState *state, List *ancestors, ExplainState *es)
{
	const PlanState *ps = &state->js.css.ss.ps;
	HgjPageCounts outer = state->stats.outer_pages;
	HgjPageCounts inner = state->stats.inner_pages;

	hgj_pages_count(&state->js.outer, &outer);
	hgj_pages_count(&state->js.inner, &inner);
	for (int i = 0; i < state->js.reports.n; i++)
	{
		const HgjRunStats *worker = &((HgjRunReport *) state->js.reports.copies + i)->stats;

		hgj_page_counts_add(&outer, &worker->outer_pages);
		hgj_page_counts_add(&inner, &worker->inner_pages);
	}
	hgj_show_source("Outer ", &state->js.outer, &outer, ps, ancestors, es);
	hgj_show_source("Inner ", &state->js.inner, &inner, ps, ancestors, es);
}

/* ExplainCustomScan callback. */
void
hgj_explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	HgjJoinState *state = (HgjJoinState *) node;
	CustomScan *cscan = castNode(CustomScan, node->ss.ps.plan);
	const PlanState *ps = &node->ss.ps;
	List	   *joinquals = list_nth(cscan->custom_exprs, HGJ_EXPRS_JOIN);
	List	   *filter = list_nth(cscan->custom_exprs, HGJ_EXPRS_FILTER);

	ExplainPropertyText("Join Type", join_type_name(state->js.jointype), es);
	if (es->verbose || es->format != EXPLAIN_FORMAT_TEXT)
		ExplainPropertyBool("Inner Unique",
							list_nth_int(cscan->custom_private,
										 HGJ_FACT_INNER_UNIQUE) != 0, es);
	hgj_show_clauses("Hash Cond", list_nth(cscan->custom_exprs, HGJ_EXPRS_HASH),
					 ps, ancestors, es);
	hgj_show_clauses("Join Filter", joinquals, ps, ancestors, es);
	hgj_show_clauses("Join Filter by Row", state->rules.row_quals, ps, ancestors, es);
	if (joinquals)
		hgj_show_removed("Rows Removed by Join Filter", ps, true, es);
	hgj_show_clauses("Filter", filter, ps, ancestors, es);
	if (filter)
		hgj_show_removed("Rows Removed by Filter", ps, false, es);
	show_sources(state, ancestors, es);
	if (state->share.planned || es->format != EXPLAIN_FORMAT_TEXT)
		ExplainPropertyText("Build Side", state->share.planned ? "shared" : "private",
							es);
	hgj_show_hidden_joins(cscan, es);
	if (es->analyze)
		show_run(state, es);
	else if (state->use.wants_device && hgj_engine == HGJ_ENGINE_AUTO)
		ExplainPropertyText("Planned Engine", hgj_device_engine_name(), es);
}
