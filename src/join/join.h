/*-------------------------------------------------------------------------
 *
 * join.h
 *	  A HashGraphJoin as other rooms see it: what its plan says, which stays as it is from
 *	  the node's begin to its end, and what may be asked of it while it runs.
 *
 * A pipeline (src/pipeline) finds the rows of a chain of joins in their place.  It reads the
 * joins' plans here, has them make their tables, and gives the upper join blocks of rows that
 * it has found (prober.c).  Everything else about a join's state is its own (join_state.h).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_JOIN_H
#define HGJ_JOIN_H

#include "compat.h"

#include "base/progress.h"
#include "base/reports.h"
#include "build/build_side.h"
#include HGJ_EXPLAIN_STATE_HEADER
#include "expr/program.h"
#include "join/gather.h"
#include "join/output.h"
#include "nodes/execnodes.h"
#include "scan/source.h"

struct HgjCounters;

/* The number of pairs that a call of the engine may return, and that a block may have whose rows
 * are not each another row of the outer batch. */
#define HGJ_PAIRS			4096

typedef struct HgjJoinState HgjJoinState;

/* What a join type asks of the executor. */
typedef struct HgjSemantics
{
	bool		emit_matches;	/* return matching pairs */
	bool		fill_outer;		/* return outer rows without a match */
	bool		fill_inner;		/* return inner rows without a match */
	bool		mark_inner;		/* remember which inner rows matched */
	bool		one_per_outer;	/* the first match of an outer row will do */
	bool		one_per_inner;	/* the first match of an inner row will do */
} HgjSemantics;

/* What every HgjJoinState begins with; PostgreSQL's joins have a JoinState there. */
typedef struct HgjJoin
{
	CustomScanState css;		/* the executor's part; these two as in an HgjReporter */
	HgjReports	reports;		/* reports of the processes, each an HgjRunReport */
	JoinType	jointype;
	HgjSemantics semantics;
	PlanState  *outer_ps;
	PlanState  *inner_ps;
	HgjSource	outer;			/* the outer side's rows */
	HgjSource	inner;			/* the inner side's rows */
	HgjBuildSide *build;		/* the table, from the node's begin to its end */
	MemoryContext context;		/* the query's, es_query_cxt */
} HgjJoin;

/* A join's public part; its state is the join's own. */
static inline HgjJoin *
hgj_join(const HgjJoinState *state)
{
	return (HgjJoin *) state;
}

/* join_state.c: which node is a join, and what a join's plan says */
extern HgjJoinState *hgj_source_join(const HgjSource *source);
extern HgjProgram *hgj_join_residual(const HgjJoinState *state, const HgjPairColumns **columns);
extern bool hgj_join_has_quals_by_row(const HgjJoinState *state);
extern bool hgj_join_has_filter(const HgjJoinState *state);
extern bool hgj_join_rows_may_raise(const HgjJoinState *state);
extern bool hgj_join_gives_single_rows(const HgjJoinState *state);
extern bool hgj_join_gives_batches(const HgjJoinState *state);

/* output.c: what the join's rows are made of */
extern HgjBatch *hgj_output_batch(HgjJoinState *state, const uint32 *outer_rows,
								  const uint32 *inner_rows, uint32 n);
extern const HgjPairColumn *hgj_output_column(const HgjJoinState *join, AttrNumber resno,
											  HgjProgram **program);
extern const HgjPairColumns *hgj_output_pairs(const HgjJoinState *join);

/* engines.c: where the join's table is */
extern const HgjEngine *hgj_join_engine(HgjJoinState *state);
extern bool hgj_join_wants_device(const HgjJoinState *state);
extern uint64 hgj_join_device_limit(const HgjJoinState *state);
extern const char *hgj_join_device_name(const HgjJoinState *state);
extern bool hgj_on_device(const HgjJoinState *state);
extern bool hgj_device_failed(const HgjJoinState *state);
extern void hgj_leave_pipeline(HgjJoinState *state);
extern void hgj_device_fails(HgjJoinState *state, HgjStatus status, const char *text);
extern void hgj_use_cpu(HgjJoinState *state);
extern bool hgj_use_less_memory(HgjJoinState *state);

/* build.c and rebuild.c: the join's table */
typedef bool (*HgjTableFill) (void *arg, HgjTable *table, uint32 *nrows);
extern void hgj_build_pass(HgjJoinState *state);
extern bool hgj_build_filled(HgjJoinState *state, HgjTableFill fill, void *arg);
extern void hgj_free_build(HgjJoinState *state);
extern void hgj_drop_build(HgjJoinState *state);

/* phases.c, probe.c and counts.c: the outer side */
extern bool hgj_worth_peeking(const HgjJoinState *state);
extern bool hgj_peek_outer(HgjJoinState *state);
extern void hgj_unpeek_outer(HgjJoinState *state);
extern void hgj_restart_outer(HgjJoinState *state);
extern uint32 hgj_make_outer_batch(HgjJoinState *state);
extern void hgj_outer_batch_made(HgjJoinState *state);
extern void hgj_note_counts(PlanState *side, MemoryContext context, List **counts);
extern void hgj_rescan_counted(PlanState *side, List **counts);
extern void hgj_note_outer_counts(HgjJoinState *state);
extern void hgj_rescan_uncounted(HgjJoinState *state);

/* join_progress.c: what other sessions see of it */
extern void hgj_join_progress(HgjJoinState *state, HgjProgressPhase phase);
extern void hgj_join_progress_end(HgjJoinState *state);

/* prober.c: a pipeline in the place of a chain's joins */
extern struct HgjPipelineState *hgj_join_pipeline(const HgjJoinState *state);
extern void hgj_join_use_pipeline(HgjJoinState *state, struct HgjPipelineState *pipeline);
extern void hgj_join_rescan_changed(HgjJoinState *state);
extern void hgj_join_start_below(HgjJoinState *state, const HgjJoinState *upper);
extern bool hgj_join_has_whole_table(const HgjJoinState *state);
extern HgjPageCounts *hgj_join_outer_pages(HgjJoinState *state);
extern HgjPageCounts *hgj_join_inner_pages(HgjJoinState *state);
extern void hgj_join_count_returned(HgjJoinState *state, uint64 rows);
extern void hgj_join_count_rejected(HgjJoinState *state, uint64 rows);
extern void hgj_join_has_returned(HgjJoinState *state);
extern void hgj_join_begins_batch(HgjJoinState *state);
extern HgjBatch *hgj_join_outer_batch(const HgjJoinState *state);
extern bool hgj_join_read_outer(HgjJoinState *state, uint32 most_rows);
extern void hgj_join_lend_pairs(HgjJoinState *state);
extern void hgj_join_take_back_pairs(HgjJoinState *state);
extern void hgj_join_begin_block(HgjJoinState *state, const uint32 *outer_rows, uint32 n,
								 bool matched);
extern void hgj_join_give_matches(HgjJoinState *state, uint32 *outer_rows, uint32 *inner_rows,
								  uint32 n);
extern void hgj_join_resume(HgjJoinState *state);

/*
 * The finder of the rows of a chain of joins in the place of its upper join, if there is
 * one (pipeline/device_rows.c).
 */
typedef struct HgjRowProber
{
	/* The upper join's outer side begins; false: the join finds its rows by itself. */
	bool		(*start) (HgjJoinState *upper, bool *empty);
	bool		(*active) (const HgjJoinState *upper);

	/* Have rows of the outer batch at hand left already? */
	bool		(*left) (const HgjJoinState *upper);

	/* The prober makes the next outer batch, with its matches; false: there are no more, or
	 * the join is to go on by itself (gave_up). */
	bool		(*fetch) (HgjJoinState *upper);
	bool		(*gave_up) (const HgjJoinState *upper);
	void		(*matches) (HgjJoinState *upper);
	void		(*stop) (HgjJoinState *upper);
	void		(*explain) (const HgjJoinState *upper, struct ExplainState *es);
	void		(*count) (const HgjJoinState *upper, struct HgjCounters *counters);
} HgjRowProber;

extern const HgjRowProber *hgj_row_prober;

/*
 * The join offers itself to the scan whose rows the node returns groups of, if it may be
 * asked about them (agg_key_filter.c).  columns: the numbers of its keys in what the node
 * returns; they are changed.  clauses: the equalities of the keys, one for each.
 */
typedef bool (*HgjGroupsOffer) (HgjJoinState *join, PlanState *node, AttrNumber *columns,
								const List *clauses);

extern HgjGroupsOffer hgj_offer_to_groups;

/* key_filters.c */
extern bool hgj_chain_offer(HgjJoinState *top, HgjJoinState *join, AttrNumber *columns,
							double saved, const HgjKeyFilterStats **stats);
extern void hgj_join_wants_all_groups(HgjJoinState *state);

#endif							/* HGJ_JOIN_H */
