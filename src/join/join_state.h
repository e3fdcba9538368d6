/*-------------------------------------------------------------------------
 *
 * join_state.h
 *	  The run-time state of a HashGraphJoin, private to src/join (join.h is for others).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_JOIN_STATE_H
#define HGJ_JOIN_STATE_H

#include "compat.h"

#include "base/plan_format.h"
#include "base/progress.h"
#include "base/reasons.h"
#include "base/reports.h"
#include "build/build_side.h"
#include "columns/batch.h"
#include "columns/keys.h"
#include "engine/engine.h"
#include "expr/demand.h"
#include "expr/program.h"
#include "join/join.h"
#include "nodes/execnodes.h"
#include "scan/source.h"
#include "storage/buffile.h"

/* The numbers of pairs that a call is asked for where the first pair that passes the recheck ends
 * its outer row: at first, and at least; later ones are as many as are not wasted. */
#define HGJ_SOME_PAIRS		64
#define HGJ_FEWEST_PAIRS	4

/* Stands for the missing side of a null-extended row. */
#define HGJ_NO_ROW			PG_UINT32_MAX

typedef enum HgjPhase
{
	HGJ_PHASE_START,			/* nothing read yet, or rescanned */
	HGJ_PHASE_FETCH,			/* the next outer batch */
	HGJ_PHASE_PROBE,			/* the next matches of the batch */
	HGJ_PHASE_MATCHES,			/* return them */
	HGJ_PHASE_UNMATCHED_OUTER,	/* of the batch */
	HGJ_PHASE_UNMATCHED_INNER,	/* of the pass */
	HGJ_PHASE_NEXT_PASS,
	HGJ_PHASE_DONE
} HgjPhase;

/* One column of a returned row: where it comes from. */
typedef struct HgjTarget
{
	AttrNumber	resno;			/* in the slot that is filled */
	bool		inner;
	int			column;			/* of outer->columns or inner->columns */
	const HgjDictionary *dictionary;	/* values are its datums, or NULL */
} HgjTarget;

/* Rows of a portion that are to be returned next (emit.c). */
typedef struct HgjRowBlock
{
	uint32		n;
	uint32		next;			/* the next one to return */
	uint32		capacity;
	int			natts;			/* of the slot */
	Datum	   *values;			/* row by row; NULL: not used yet */
	bool	   *isnull;
	uint32		nahead;			/* records of the next block, one of which is */
	const uint32 *ahead;		/* prefetched with each row */
	Datum	   *slot_values;	/* the slot's own arrays */
	bool	   *slot_isnull;
} HgjRowBlock;

/* What EXPLAIN ANALYZE shows of the runs so far; no pointers (parallel.h). */
typedef struct HgjRunStats
{
	bool		built;
	HgjPageCounts outer_pages;	/* sums */
	HgjPageCounts inner_pages;	/* of workers, and those that a pipeline has read */
	uint64		build_rows;		/* all passes of the last build */
	uint32		passes;			/* most of all rescans */
	uint64		peak_bytes;		/* highest of all passes and rescans */
	uint32		partitions;		/* joined from files, most of all rescans */
	uint64		spilled_inner;	/* bytes, of all rescans in sum */
	uint64		spilled_outer;
	uint64		outer_filtered; /* outer rows that did not have to wait; sum */
	uint64		spilled_bits;	/* bytes of match bits of outer rows; sum */
	uint64		held_bytes;		/* of partitions, in memory, at the height */
	uint64		outer_singly;	/* rows evaluated alone, see demand.h; sum */
	uint64		joined_singly;
	bool		device_full;	/* device memory was what did not suffice */
	char		shrunk[128];	/* why less of it is used, or empty */
	HgjTableInfo table;			/* of the last pass */
	uint32		notes;			/* HgjNote bits, of all passes */
	uint64		filter_bytes;	/* largest of the tables that are gone */
	uint64		filter_rejected;	/* outer rows; of the same, in sum */
	HgjKeyFilterStats key_filters[HGJ_MOST_KEY_FILTERS];	/* of the outer side */
	bool		stopped_early;	/* an end of the outer side was not waited for */
	bool		share_spilled;	/* it did not fit into their memory */
	bool		dictionary_full;	/* some group values have no code */
	char		device[64];		/* name; empty: it ran on the CPU */
	uint64		device_peak;	/* bytes, highest of all passes and rescans */
	HgjDeviceWork work;			/* of the tables that are gone, in sum */
} HgjRunStats;

typedef struct HgjRunReport HgjRunReport;

/* What tally.c adds to the database's counters, besides, of all rescans. */
typedef struct HgjJoinCounts
{
	bool		wanted;			/* this is no recheck, nor mere EXPLAIN */
	uint64		builds;
	uint64		passes;			/* beyond the first over the same outer rows */
	uint64		partitions;
	uint64		returned;		/* rows, but for slots of this execution */
} HgjJoinCounts;

/* Rows that the sides had returned before those that other sessions see. */
typedef struct HgjShown
{
	uint64		inner_before;
	uint64		outer_before;
} HgjShown;

/* What the log has been told about this node: each once, whatever is rescanned. */
typedef struct HgjLogged
{
	bool		split;
	bool		passes;
	bool		dictionary;
	bool		bits;
	uint32		notes;			/* HgjNote bits */
} HgjLogged;

/* Match bits of outer rows, in memory or, a window at a time, on file. */
typedef struct HgjMatchBits
{
	uint64	   *words;
	Size		nwords;			/* of the window */
	Size		most;			/* that it may have */
	uint64		window;			/* which one, from 0 */
	bool		dirty;			/* the file does not know all of it */
	BufFile    *file;			/* NULL: the first window is all there is */
	Size		file_bytes;
} HgjMatchBits;

/* Where the tables are, and whether that goes well (engines.c). */
typedef enum HgjPlace
{
	HGJ_ON_CPU,
	HGJ_ON_THE_DEVICE,			/* not in host memory */
	HGJ_DEVICE_HAS_FAILED		/* they were there: failover.c is to decide */
} HgjPlace;

/* Who runs the join, and what has become of the device (engines.c, failover.c). */
typedef struct HgjEngineUse
{
	const HgjEngine *engine;
	bool		wants_device;	/* the planner does, under engine = auto */
	HgjPlace	place;
	uint64		device_limit;	/* bytes; 0 = none is known */
	bool		device_is_full; /* that, not the host's memory, ended a pass */
	bool		device_shrunk;	/* device_limit, because it was too much */
	HgjError	device_error;
	HgjFallback fallback;
	char	   *fallback_text;
} HgjEngineUse;

/* How the matches of a row are told from mere candidates. */
typedef struct HgjMatchRules
{
	bool		recheck;		/* a match is a candidate: run match_qual */
	bool		always_recheck; /* whatever this pass's long_keys are */
	ExprState  *match_qual;		/* opaque hash clauses, residual clauses, or
								 * NULL */
	bool		match_volatile; /* it must not be run for a row ahead */
	HgjProgram *residual;		/* residual clauses that run before match_qual, */
	HgjPairColumns residual_columns;	/* and what they read; or NULL */
	uint32	   *residual_sel;	/* HGJ_PAIRS entries */
	bool		first_counts;	/* it may fail, and of an outer row's candidates the first match counts */
	uint32	   *asked;			/* positions of candidates that it is run for then ... */
	uint32	   *passed;			/* ... and of those that it is true of; HGJ_PAIRS entries each */
	List	   *row_quals;		/* residual clauses that run row by row */
	ExprState  *filter;			/* what rows must pass after an outer join */
} HgjMatchRules;

/* This process's part in a build side that several make (shared_build.h). */
typedef struct HgjShare
{
	bool		planned;
	struct HgjSharedBuild *build;	/* NULL: every process builds for itself */
	struct dsa_area *area;		/* the query's */
	uint32		part;			/* our number among those who take part */
	HgjChunkMap map;			/* of the rows */
	uint32	   *numbers;		/* of the records of a batch */
	uint32		capacity;		/* of these */
	uint32	   *keyless;		/* records of rows without a key that are owed */
	uint32		nkeyless;
	uint32		max_keyless;
	Size		bytes;			/* of ours that the others know of */
	bool		probing;		/* we are in the barrier of those who probe */
	bool		idle;			/* there is nothing to be done here */
	struct HgjSharedFiles *files;	/* memory was full, or NULL */
	uint64		written;		/* bytes to ours, until it is closed */
} HgjShare;

/* How far the inner side has come. */
typedef struct HgjInnerRows
{
	HgjBatch   *batch;
	bool		pending;		/* the batch belongs to the next pass */
	bool		read;			/* some of the inner side, since its start */
	uint64		rows_before;	/* those of earlier passes over the unit */
} HgjInnerRows;

/* Which part of a build side that memory does not hold is at hand. */
typedef struct HgjPasses
{
	bool		last_pass;
	uint32		pass;			/* from 1, over all units (partition.c) */
	uint32		unit_pass;		/* from 1, over the same outer rows */
	uint32		units;			/* of this execution, joined from files */
	bool		splitting;		/* outer rows may wait in partitions */
	bool		has_split;		/* the table is not all of the build side */
	bool		rewinds;		/* the executor has asked for cheap rescans */
	bool		rescanned;		/* there was one that left the build side alone */
	struct HgjPartitions *partitions;	/* NULL: there never were any */
} HgjPasses;

/* What a question has been answered with. */
typedef enum HgjAnswer
{
	HGJ_UNASKED,
	HGJ_NO,
	HGJ_YES
} HgjAnswer;

/* How far the outer side has come. */
typedef struct HgjOuterRows
{
	HgjBatch   *outer_batch;
	uint32		batch_rows;		/* of the next outer batch */
	bool		outer_filled;	/* outer_batch has rows that nobody probed with */
	HgjAnswer	is_volatile;	/* would reading it again be noticed? */
	bool		outer_seen;		/* the last execution got an outer row */
	bool		key_filtered;	/* the source has filtered outer_batch's rows */
	bool		filters_early;	/* a row that a scan drops saves more than looking it up */
	bool		filters_groups; /* a scan filters the rows that they are groups of ... */
	bool		wants_all_groups;	/* ... no longer: they are to be kept */
	HgjAnswer	notices;		/* would the join notice missing rows? */
	struct HgjJoinState *below; /* the join that the outer side is, or NULL */
	struct HgjJoinState *bottom;	/* the lowest join of the chain that would not
									 * (key_filters.c) */
	List	   *outer_counts;	/* before the look ahead, or while a device */
	List	   *inner_counts;	/* may fail (counts.c) */
} HgjOuterRows;

/* The matches of the outer batch at hand, and how far they have been returned. */
typedef struct HgjFound
{
	HgjProbe   *probe;
	HgjMatches	pairs;
	uint32	   *own_probe_rows; /* this join's arrays of pairs, while a pipeline has its */
	uint32	   *own_build_rows; /* in their place (prober.c) */
	uint32		next_pair;
	uint32		first_left;		/* pairs that residual.c has not run, because */
	uint32		npairs_left;	/* one of them may raise an error ... */
	bool		residual_stopped;	/* ... or, the first of them, has */
	uint32		wasted_pairs;	/* of rows that had had their one match */
	uint8	   *matched;		/* per outer row of the batch; NULL = unused */
	bool	   *taken;			/* per outer row: residual.c has found its one match, in this run */
	uint32		matched_capacity;	/* entries of both */
	uint32		next_outer;		/* UNMATCHED_OUTER's cursor */
	HgjBuffer	unmatched_rows; /* its 4-byte row numbers */
	uint32		first_sought;	/* the first inner row without a match, if every row
								 * has an entry (all_found.c) */
	uint64		work_since_look;	/* outer rows and matches */
	uint64		work_till_look; /* that are to go by before inner rows are looked at */
	uint32		unmatched_cursor;	/* the engine's */
	bool		unmatched_end;
	HgjMatchBits outer_bits;	/* between passes, if the join type needs them */
} HgjFound;

/* What the node above wants of the rows; see demand.h. */
typedef struct HgjRowGoal
{
	HgjDemand	demand;
	bool		demand_known;	/* `demand` means something */
	bool		careful;		/* in this execution, or as the parent says */
	bool		rows_may_raise; /* confirming or returning a pair can */
	bool		single_rows;	/* careful, and the parent's keys can, too */
} HgjRowGoal;

/* Rows to be returned (portion.c): n of each side that is not missing. */
typedef struct HgjPortion
{
	uint32	   *outer_rows;		/* of the outer batch, or NULL */
	uint32	   *inner_rows;		/* of the row store, or NULL */
	uint32		n;
	bool		in_slot;		/* it is one, and stands in the scan slot */
} HgjPortion;

/* Rows that leave in slots (emit.c). */
typedef struct HgjSlotOutput
{
	HgjPortion	rows;			/* the portion at hand, */
	uint32		next_row;		/* and those that are in no block yet */
	int			ntargets;		/* columns of the slot that is filled */
	HgjTarget  *targets;
	TupleTableSlot *slot;		/* the scan slot, or the result slot ... */
	bool		direct;			/* ... which needs no projection */
	HgjRowBlock block;
} HgjSlotOutput;

struct HgjJoinState
{
	HgjJoin		js;				/* its first field is NodeTag */
	bool		inner_key_params;	/* inner keys change with our parameters */

	HgjEngineUse use;
	HgjMatchRules rules;
	HgjShare	share;
	HgjInnerRows building;
	HgjPasses	passes;
	HgjOuterRows probing;
	HgjFound	found;
	HgjRowGoal	goal;
	struct HgjPipelineState *pipeline; /* for the rows of a chain (device.h), or NULL */

	HgjPhase	phase;
	uint64		emitted;		/* rows or batches of this execution ... */
	uint64		emitted_before; /* ... before the outer batch at hand */
	HgjSlotOutput slots;
	struct HgjOutput *output;	/* our rows leave in batches (output.c); NULL:
								 * in slots */
	bool		output_started; /* its programs have this execution's parameters */

	HgjRunStats stats;
	HgjJoinCounts counts;
	HgjLogged	logged;
	HgjProgress progress;
	HgjShown	shown;
};

/* Is the table one that other processes have a part in, too? */
static inline bool
hgj_table_is_shared(const HgjJoinState *state)
{
	return state->share.map.shared && state->share.files == NULL;
}

/* Is there anything to be done pair by pair (hgj_confirm_match())? */
static inline bool
hgj_confirms(const HgjJoinState *state)
{
	const HgjSemantics *s = &state->js.semantics;

	return s->one_per_inner || state->rules.match_qual ||
		(state->rules.recheck &&
		 (s->fill_outer || s->one_per_outer || s->mark_inner));
}

/* Is one row to be returned, or confirmed, at a time? */
static inline bool
hgj_single_rows(const HgjJoinState *state)
{
	return state->goal.careful &&
		(state->goal.rows_may_raise || state->goal.single_rows);
}

/* Rows of this execution that left in slots; batches are counted as they go. */
static inline uint64
hgj_slots_returned(const HgjJoinState *state)
{
	return state->output ? 0 : state->emitted;
}

/* join_state.c, besides output.h */
extern void hgj_rewind_inner(HgjJoinState *state, bool uncounted);
extern void hgj_rewind_outer(HgjJoinState *state, bool uncounted);
extern bool hgj_outer_is_volatile(HgjJoinState *state);

/* confirm.c */
extern bool hgj_confirm_match(HgjJoinState *state, uint32 outer_row,
							  uint32 inner_row);

/* memory.c */
extern uint64 hgj_table_share(const HgjJoinState *state);
extern Size hgj_filter_room(const HgjJoinState *state);
extern Size hgj_memory_now(const HgjJoinState *state, HgjMemory *memory);
extern void hgj_note_peak_memory(HgjJoinState *state);

/* phases.c */
extern void hgj_rescan(CustomScanState *node);
extern void hgj_prepare(HgjJoinState *state);
extern void hgj_advance(HgjJoinState *state);

/* portion.c */
extern bool hgj_next_portion(HgjJoinState *state, HgjPortion *rows);

/* setup.c */
extern void hgj_setup(HgjJoinState *state, EState *estate, int eflags);

/* build.c */
extern void hgj_build_start(HgjJoinState *state);
extern uint32 hgj_unwanted_of_matches(const HgjJoinState *state);
extern bool hgj_create_table(HgjJoinState *state);
extern uint32 hgj_build_batch_rows(const HgjJoinState *state);
extern void hgj_build_done(HgjJoinState *state);
extern void hgj_log_notes(HgjJoinState *state);
extern void hgj_release_table(HgjJoinState *state);
extern void hgj_add_table_stats(const HgjJoinState *state, HgjRunStats *stats);
extern void hgj_free_table(HgjJoinState *state);
extern void hgj_leave_build(HgjJoinState *state);

/* engines.c, besides engines.h */
extern void hgj_choose_engine(HgjJoinState *state);
extern void hgj_engine_begins(const HgjJoinState *state);
extern bool hgj_engine_done(HgjJoinState *state, HgjStatus status,
							const HgjError *err);

/*
 * A call of the engine that polls, as often as interrupts that turn out to be none
 * cancel it.  Afterwards it is done, or hgj_device_failed() says that the device
 * has failed in it; other errors are raised.
 */
#define hgj_engine_call(state, err, call) \
	do { \
		hgj_engine_begins(state); \
	} while (!hgj_engine_done(state, call, err))

HGJ_NORETURN extern void hgj_engine_failed(HgjJoinState *state,
										   const HgjError *err);

/* rebuild.c */
extern bool hgj_can_read_inner_again(const HgjJoinState *state);
extern void hgj_drop_unit_table(HgjJoinState *state);
extern bool hgj_should_leave_device(const HgjJoinState *state);
extern bool hgj_retry_build(HgjJoinState *state);

/* failover.c */
extern HgjPhase hgj_fail_over(HgjJoinState *state, HgjPhase phase);

/* key_filters.c */
extern void hgj_key_filters_offer(HgjJoinState *join);
extern const HgjFilterMethods hgj_join_filter;

/* probe.c */
extern void hgj_keep_outer(HgjJoinState *state);
extern void hgj_reserve_matched(HgjJoinState *state);
extern bool hgj_read_outer(HgjJoinState *state);
extern bool hgj_fetch_outer(HgjJoinState *state);
extern void hgj_begin_batch(HgjJoinState *state);
extern bool hgj_key_filter_begin(HgjJoinState *state);
extern uint32 hgj_key_filter_ask(HgjJoinState *state, const HgjKeys *keys, uint32 *rows);
extern bool hgj_key_filter_ask_packed(HgjJoinState *state, const HgjPackedKeys *keys,
									  uint32 *rows, uint32 *n);
extern void hgj_next_matches(HgjJoinState *state);
extern void hgj_finish_batch(HgjJoinState *state);
extern bool hgj_next_unmatched(HgjJoinState *state);

/* all_found.c */
extern void hgj_seek_all(HgjJoinState *state);
extern void hgj_note_sought(HgjJoinState *state, uint32 n);
extern bool hgj_all_found(HgjJoinState *state);

/* match_bits.c */
extern void hgj_match_bits_get(HgjJoinState *state, uint64 first, uint32 n,
							   uint8 *matched);
extern void hgj_match_bits_add(HgjJoinState *state, uint64 first, uint32 n,
							   const uint8 *matched);
extern void hgj_match_bits_reset(HgjJoinState *state);

/* counts.c */
extern void hgj_note_inner_counts(HgjJoinState *state);
extern void hgj_rescan_inner_uncounted(HgjJoinState *state);

/* output.c, besides output.h */
extern void hgj_output_encode(HgjJoinState *join, AttrNumber scan_attno,
							  HgjDictionary *dictionary);


/* residual.c */
extern List *hgj_residual_init(HgjJoinState *state, List *quals,
							   bool may_fail);
extern void hgj_residual_run(HgjJoinState *state);

/* text_recheck.c */
extern bool hgj_text_any_long(const HgjSource *source, const HgjBatch *batch);
extern void hgj_text_recheck(HgjJoinState *state);

/* emit.c */
extern void hgj_use_scan_slot(HgjJoinState *state);
extern void hgj_choose_slot(HgjJoinState *state, List *targetlist);
extern void hgj_fill_slot(HgjJoinState *state, uint32 outer_row,
						  uint32 inner_row);
extern TupleTableSlot *hgj_project(HgjJoinState *state);
extern void hgj_block_fill(HgjJoinState *state);

/* No row of the block is wanted any more; the slot has its own arrays again. */
static inline void
hgj_block_drop(HgjJoinState *state)
{
	HgjRowBlock *block = &state->slots.block;

	if (block->n == 0)
		return;
	ExecClearTuple(state->slots.slot);
	state->slots.slot->tts_values = block->slot_values;
	state->slots.slot->tts_isnull = block->slot_isnull;
	block->n = block->next = block->nahead = 0;
}

/* explain.c */
extern void hgj_explain(CustomScanState *node, List *ancestors,
						ExplainState *es);

#endif							/* HGJ_JOIN_STATE_H */
