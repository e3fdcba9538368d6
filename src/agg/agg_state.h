/*-------------------------------------------------------------------------
 *
 * agg_state.h
 *	  The run-time state of a HashGraphAgg, private to agg/.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_AGG_STATE_H
#define HGJ_AGG_STATE_H

#include "compat.h"

#include "base/agg_format.h"
#include "base/progress.h"
#include "base/reports.h"
#include "columns/groups.h"
#include "expr/program.h"
#include "join/output.h"
#include "nodes/execnodes.h"
#include "scan/source.h"
#include "spill/partition_file.h"
#include "utils/dsa.h"

struct HgjAggState;
struct HgjAggregate;
struct HgjPageCounts;
typedef struct HgjAggFeed HgjAggFeed;

/* How an aggregate's state becomes its value (agg_final.c). */
typedef enum HgjAggKind
{
	HGJ_AGG_COUNT,
	HGJ_AGG_SUM_COUNTS,			/* 0 where there are none */
	HGJ_AGG_SUM_SUMS,			/* of integers, whose values are int8 */
	HGJ_AGG_WORD,				/* the state is the value, and passes by value */
	HGJ_AGG_AVG_INT,			/* of int2, int4 */
	HGJ_AGG_SUM_INT8,
	HGJ_AGG_AVG_INT8,
	HGJ_AGG_FLOAT4,				/* the state is the value */
	HGJ_AGG_FLOAT8,
	HGJ_AGG_AVG_FLOAT,			/* of float4, float8 */
	HGJ_AGG_SUM_NUMERIC,
	HGJ_AGG_AVG_NUMERIC,
	HGJ_AGG_BY_FUNCTION,		/* by the transition function, row by row */
	HGJ_AGG_TRANSITION			/* by all of PostgreSQL's functions for it */
} HgjAggKind;

/* Values for an aggregate, none of them NULL, and the groups they belong to. */
typedef struct HgjAggRows
{
	uint32		n;
	const uint32 *at;			/* where value i is; NULL: at i */
	const uint32 *groups;		/* its group; NULL: group 0 for all */
	const void *values;
	const HgjDecimals *decimals;	/* of numerics: they are these; or NULL */
} HgjAggRows;

/* Of the memory limit, for what aggregates with DISTINCT have seen. */
#define HGJ_AGG_SEEN_SHARE(limit)	((limit) / 4)

/* What a value does to the state of its group. */
typedef enum HgjAggChange
{
	HGJ_AGG_NO_CHANGE,			/* counting is all there is to do */
	HGJ_AGG_ADD,
	HGJ_AGG_ADD_SQUARES,		/* to an HgjAggFloats */
	HGJ_AGG_LEAST,
	HGJ_AGG_MOST,
	HGJ_AGG_CALL,				/* the transition function */
	HGJ_AGG_CHANGES
} HgjAggChange;

typedef void (*HgjAggUpdate) (struct HgjAggregate *agg,
							  const HgjAggRows *rows);

/* An aggregate function that we know (agg_functions.c). */
typedef struct HgjAggFunction
{
	Oid			function;
	HgjAggKind	kind;
	uint16		bytes;			/* of its state */
	HgjAggChange change;
	HgjKind		argument;		/* OTHER: numeric, or whatever there is a call for */
	uint64		initial;		/* of a state that is one word */
} HgjAggFunction;

/* The state of a BY_FUNCTION aggregate. */
typedef struct HgjAggValue
{
	Datum		value;
	uint32		allocated;		/* bytes at a by-reference value */
	bool		present;
	bool		is_decimal;		/* the value is this, of this display scale */
	uint8		display;
	int64		decimal;
} HgjAggValue;

/* The state of sum and avg of float4 or float8, as float8_accum() has it. */
typedef struct HgjAggFloats
{
	float8		n;
	float8		sum;
	float8		squares;
} HgjAggFloats;

/* The state of sum and avg of numeric. */
typedef struct HgjAggNumeric
{
	int128		sum;			/* in units of 10^-12, of what fits that */
	struct HgjNumericRest *rest;	/* what does not (agg_numeric.c), or NULL */
	int32		scale;			/* the largest display scale */
} HgjAggNumeric;

/* An expression over the child's columns, evaluated a batch at a time. */
typedef struct HgjAggExpr
{
	Expr	   *expr;
	int			column;			/* it is this column, or -1 */
	HgjProgram *program;		/* otherwise, vectorised, or ... */
	ExprState  *state;			/* ... row by row */
	HgjProgram *decimals;		/* in place of all these, for numerics whose
								 * aggregates can take them: its result `place` */
	int			place;
	bool		attbyval;
	int16		attlen;
	HgjBuffer	own;			/* row by row: the values, densely */
} HgjAggExpr;

/* An argument of PostgreSQL's functions, whose NULLs they are given, too. */
typedef struct HgjAggArgument
{
	const Const *constant;		/* it is this; or NULL */
	HgjAggExpr *expr;
	const HgjVector *vector;	/* its values: in the batch's places, if it is a column,
								 * or densely */
} HgjAggArgument;

/*
 * What some aggregates have in common: the rows that pass their FILTER, and
 * the argument's values for these.  Counts, in a word of every group: without
 * FILTER the NULLs, with one the rows whose argument is not NULL.
 */
typedef struct HgjAggInput
{
	HgjAggExpr *filter;			/* or NULL */
	HgjAggExpr *argument;		/* or NULL */
	List	   *exprs;			/* its expression, or those of ... */
	bool		called;			/* PostgreSQL's functions are given ... */
	int			nall;			/* ... all of these, and no argument is set */
	HgjAggArgument *all;
	Size		counter;		/* in a group's row */
	uint32	   *filtered;		/* positions in the batch */
	uint32	   *at;
	uint32	   *groups;
	HgjAggRows	rows;
} HgjAggInput;

/* All of its expressions, 0 .. HGJ_AGG_INPUT_EXPRS() - 1, of which some may be NULL. */
#define HGJ_AGG_INPUT_EXPRS(input)	((input)->nall + 2)

static inline HgjAggExpr *
hgj_agg_input_expr(const HgjAggInput *input, int i)
{
	return i == 0 ? input->filter : i == 1 ? input->argument : input->all[i - 2].expr;
}

typedef struct HgjAggregate
{
	const HgjAggFunction *function;
	HgjAggInput *input;
	Size		offset;			/* of the state, in a group's row */
	HgjGroups  *table;
	HgjAggUpdate update;		/* its loop; NULL: there is none */
	const struct HgjAggregate *counts;	/* of an average of sums; or NULL */

	/* BY_FUNCTION */
	FmgrInfo	transition;
	Oid			collation;
	bool		attbyval;		/* of TRANSITION: its state takes no memory */
	int16		attlen;

	struct HgjTransition *transitions;	/* TRANSITION: its functions */
} HgjAggregate;

/* Rows of groups that did not fit (agg_spill.c). */
typedef struct HgjAggPartition
{
	struct HgjAggPartition *next;
	HgjSpillRun run;
	int			used_bits;		/* of the hash, that its rows have in common */
} HgjAggPartition;

typedef struct HgjAggSpill
{
	HgjAggPartition *pending;	/* not read yet */
	HgjAggPartition *reading;	/* where batches come from; NULL: the child */
	HgjSpillLayout layout;		/* of the carried columns */
	HgjSpillWriter writer;
	HgjSpillReader reader;
	HgjSpillRoom no_room;		/* in memory, for blocks: they go to the file */
	int			used_bits;		/* of those that are written */
	HgjBatch   *written;		/* the carried columns of a batch, of which */
	HgjBuffer  *numerics;		/* some have been decimals, */
	MemoryContext made;			/* whose values are here */
	HgjBatch   *read;			/* and such as have been read back, ... */
	HgjBatch	batch;			/* ... in the places where the child has them */

	uint64		total_rows;		/* for EXPLAIN */
	uint64		total_partitions;
	uint64		total_bytes;
	bool		logged;			/* the log knows about it */
} HgjAggSpill;

/* What a partial aggregation has left of a batch (agg_rounds.c). */
typedef struct HgjAggRounds
{
	bool		used;			/* and not files, when the table is full */
	bool		waiting;		/* there is something left */
	HgjBatch	rest;			/* of the child's batch */
	uint32	   *left;			/* its live rows */
	uint32	   *next;			/* room for those that will be left of it */
	uint32		nleft;			/* in `next`: they have found no group */
	uint64		total;			/* tables returned before the end; for EXPLAIN */
} HgjAggRounds;

/* Groups that processes divide among themselves by hash (agg_exchange.c). */
typedef struct HgjAggExchange
{
	int			nkeys;			/* number of leading keys by whose hash; 0: nothing is divided */
	struct HgjSharedExchange *shared;	/* NULL: there is no shared memory */
	dsa_area   *area;
	bool		reading;		/* this process takes part */
	bool		returning;		/* groups of partitions, instead of its own table's */
	bool		has_divided;	/* an image has been written in this run */
	bool		by_value;		/* the key's values divide groups, and not its hash */
	int64		least;			/* least value, at which the first partition begins */
	int			shift;			/* logarithm of the values in a partition */
	uint32		npartitions;	/* number of partitions, by value or by hash */
	uint32		part;			/* its number */
	HgjGroups	merged;			/* the groups of a partition */
	HgjBatch	batch;			/* keys of a block, in the places where the join
								 * has them ... */
	HgjBuffer  *keys;			/* ... and their values */
	const char **items;			/* of a block: groups' rows, or records */
	char	   *buffer;			/* those that were read from a file */
	Size		buffer_bytes;
	struct BufFile *file;		/* where images go that memory does not hold */
	struct BufFile **files;		/* of all processes, being read; by part */
	struct BufFile *rest;		/* records that have found no group yet */
	uint64		nrest;
	uint64		table_rows;		/* rows in the table's groups */
	double		next_look;		/* groups, at which it is looked at whether rows share them */
	double		given;			/* groups that were given away before the end of the input */
	uint8	   *given_sample;	/* bits of hashes of some of these; NULL: there are none */

	uint64		total_groups;	/* for EXPLAIN: given away, ... */
	uint64		total_bytes;	/* ... in memory, ... */
	uint64		total_disk;		/* ... and on file */
	uint64		total_by_value; /* number of these groups that values divided */
	uint64		total_short;	/* number of these groups in short records */
} HgjAggExchange;

/* What a batch is taken in (agg_portions.c). */
typedef struct HgjAggPortions
{
	bool		wanted;			/* otherwise whole batches */
	Bitmapset  *wide;			/* columns whose values become states */
	uint32		rows;			/* of the next one */
	uint32		least;			/* of all so far */
	Size		bytes_before;	/* of the groups */
	uint32	   *all;			/* 0, 1, 2 ... */
} HgjAggPortions;

/* The contexts of states, by ranges of groups (agg_ranges.c). */
typedef struct HgjAggRanges
{
	MemoryContext parent;
	ExprContext **contexts;		/* NULL: no group of the range has a state */
	uint32		n;
	uint32		first;			/* those before it have gone */
} HgjAggRanges;

/* States that grow with every row (agg_growing.c). */
typedef struct HgjAggGrowing
{
	int			naggs;			/* aggregates that have such */
	HgjAggRanges ranges;		/* where they are */
	bool		begun;			/* rows wait */
	uint32		nparts;			/* parts of the groups that they wait for */
	uint32		next_part;		/* number of the first part that has not got its rows */
	uint64		total_rows;		/* for EXPLAIN */
	bool		logged;			/* the log knows about it */
} HgjAggGrowing;

/* What agg_tally.c adds to the database's counters, besides, of all rescans. */
typedef struct HgjAggCounts
{
	bool		wanted;			/* this is no recheck, nor mere EXPLAIN */
	bool		started;
	uint64		groups;
} HgjAggCounts;

typedef enum HgjAggPhase
{
	HGJ_AGG_PHASE_READ,			/* read everything */
	HGJ_AGG_PHASE_RETURN,		/* return the groups in the table */
	HGJ_AGG_PHASE_DONE
} HgjAggPhase;

typedef struct HgjAggState
{
	CustomScanState css;		/* these two as in an HgjReporter */
	HgjReports	reports;		/* of HgjAggReport */

	struct HgjJoinState *join;	/* the child, or NULL: ... */
	HgjAggFeed *feed;			/* ... it is read this way */
	PlanState  *child;
	int			ncolumns;		/* of the child */
	const HgjColumn *columns;
	int			ncarried;		/* those that somebody reads, ... */
	int		   *carried;		/* by resno - 1 */
	uint32		batch_rows;		/* live rows that arrays are made for */
	HgjAggPortions portions;

	bool		partial;		/* return transition states */
	int			naggs;
	HgjAggregate *aggs;
	int			ninputs;
	HgjAggInput *inputs;
	HgjProgram *decimals;		/* of all inputs without FILTER; or NULL */
	AggState   *caller;			/* what PostgreSQL's functions see as theirs, or NULL */
	bool		returned_once;	/* groups' values cannot be made again */
	int			nseen;			/* aggregates that keep what DISTINCT has seen */
	HgjGroups	groups;

	/* the batch at hand: rows that have a group */
	HgjBatch   *batch;
	const HgjVector **vectors;	/* of the batch, by resno - 1 */
	uint32		nrows;
	const uint32 *rows;			/* positions; NULL: all from 0 */
	const uint32 *row_groups;	/* NULL: there is but one */
	uint32	   *row_buffer;
	uint32	   *group_buffer;
	TupleTableSlot *input_slot; /* one row, for expressions */
	HgjArena	values;			/* of expressions, for the batch */

	HgjAggPhase phase;
	uint32		next_group;
	bool		kept;			/* the table holds the complete result */
	struct HgjJoinState *asked;	/* join above that says which rows are wanted, or NULL */
	const HgjKeyFilterStats *asked_stats;	/* what it has said (agg_key_filter.c) */
	uint64		tested_before;	/* rows that it had been asked about by this execution */
	HgjKeyFilterStats key_filter;	/* what it has said of the feed's rows */
	ExprState  *having;
	MemoryContext context;
	HgjAggSpill spill;
	HgjAggRounds rounds;
	HgjAggGrowing growing;
	HgjAggExchange exchange;
	HgjGroups  *result;			/* what is returned: groups, or the exchange's */
	struct HgjAggOutput *output;	/* how batches are returned, or NULL: slots are (agg_batches.c) */
	struct HgjPipelineState *device;	/* NULL: nobody has asked for a device */
	bool		ran;			/* for EXPLAIN, from here on */
	uint64		ngroups;
	Size		peak_bytes;
	HgjAggCounts counts;
	HgjProgress progress;
} HgjAggState;

/* agg_functions.c */
extern const HgjAggFunction *hgj_agg_function(Oid function);
extern HgjAggUpdate hgj_agg_loop(const HgjAggFunction *function);

/* agg_setup.c */
extern void hgj_agg_setup(HgjAggState *state, EState *estate, int eflags);
extern void hgj_agg_reserve(HgjAggState *state, uint32 rows);
extern void hgj_agg_start(HgjAggState *state);

/* agg_feed.c */
extern void hgj_agg_feed_open(HgjAggState *state, EState *estate);
extern const HgjColumn *hgj_agg_feed_columns(const HgjAggFeed *feed, int *ncols);
extern const HgjBatch *hgj_agg_feed_next(HgjAggState *state);
extern const struct HgjSource *hgj_agg_feed_table(const HgjAggFeed *feed,
												  HgjProgram **programs);
extern const struct HgjSource *hgj_agg_feed_source(const HgjAggFeed *feed,
												   const PlanState *child);
extern struct HgjSource *hgj_agg_feed_scan(HgjAggFeed *feed);
extern Size hgj_agg_feed_dictionary_bytes(void);
extern HgjDictionary *hgj_agg_feed_encode(HgjAggState *state, AttrNumber resno,
										  Node *expr, Oid equality);
extern void hgj_agg_feed_take_decimals(HgjAggState *state);
extern void hgj_agg_feed_count(const HgjAggState *state,
							   struct HgjPageCounts *counts);
extern void hgj_agg_feed_explain(HgjAggState *state,
								 const struct HgjPageCounts *pages,
								 List *ancestors, ExplainState *es);
extern void hgj_agg_feed_rewind(HgjAggFeed *feed);
extern void hgj_agg_feed_end(HgjAggFeed *feed);
extern void hgj_agg_feed_free(HgjAggFeed *feed);

/* agg_input.c */
extern void hgj_agg_select_rows(HgjAggState *state, HgjBatch *batch);
extern void hgj_agg_update(HgjAggState *state);

/* agg_portions.c */
extern void hgj_agg_portions_init(HgjAggState *state);
extern void hgj_agg_portions_restart(HgjAggState *state);
extern bool hgj_agg_next_portion(HgjAggState *state, const HgjBatch *batch,
								 uint32 *from, HgjBatch *portion);
extern void hgj_agg_portion_done(HgjAggState *state, uint32 rows);

/* agg_transition_init.c */
extern void hgj_agg_caller_start(HgjAggState *state);
extern void hgj_agg_caller_next_group(HgjAggState *state);
extern void hgj_agg_forget_states(HgjAggState *state);
extern void hgj_agg_free_seen(HgjAggState *state);
extern Size hgj_agg_all_seen_bytes(const HgjAggState *state);

/* agg_node.c */
extern bool hgj_agg_passes(HgjAggState *state, char *row);
extern bool hgj_agg_has_groups(HgjAggState *state);

/* agg_batches.c */
extern const struct HgjBatchNode hgj_agg_batch_node;

/* agg_records.c */
extern bool hgj_agg_key_of(const HgjGroups *groups, const char *row, int k, Datum *value);

/* agg_growing.c */
extern void hgj_agg_growth_settle(HgjAggState *state);
extern bool hgj_agg_growth_check(HgjAggState *state);
extern void hgj_agg_growth_next_group(HgjAggState *state, uint32 group);
extern void hgj_agg_growth_forget(HgjAggState *state);

/* agg_final.c */
extern bool hgj_agg_results_may_raise(const HgjAggState *state);
extern Datum hgj_agg_result(const HgjAggregate *agg, const char *row,
							bool partial, bool *isnull);

/* agg_numeric.c */
extern Datum hgj_numeric_sum(const HgjAggNumeric *state);
extern Datum hgj_numeric_avg(const HgjAggNumeric *state, int64 n);
extern Datum hgj_numeric_serialize(const HgjAggNumeric *state, int64 n);
extern Datum hgj_interval_serialize(const HgjAggValue *state, int64 n);
extern Datum hgj_int128_to_numeric(int128 value);
extern Datum hgj_int128_serialize(int128 value, int64 n);

/* agg_spill.c */
extern void hgj_agg_spill_rows(HgjAggState *state, const HgjBatch *batch);
extern HgjBatch *hgj_agg_spill_next_batch(HgjAggState *state);
extern void hgj_agg_spill_next_partition(HgjAggState *state);
extern void hgj_agg_spill_finish_writing(HgjAggState *state);
extern void hgj_agg_spill_release(HgjAggState *state);
extern void hgj_agg_spill_free_memory(HgjAggState *state);

/* agg_rounds.c */
extern void hgj_agg_leave_rows(HgjAggState *state, const HgjBatch *batch);
extern bool hgj_agg_end_round(HgjAggState *state, const HgjBatch *batch,
							  uint32 from, bool full, bool in_vain);
extern const HgjBatch *hgj_agg_rest(HgjAggState *state);

/* agg_key_filter.c */
extern void hgj_install_groups_offer(void);
extern void hgj_agg_key_filter_start(HgjAggState *state);
extern bool hgj_agg_left_rows_out(const HgjAggState *state);
extern void hgj_agg_want_all_rows(HgjAggState *state);

/* agg_tally.c: as hgj_tally_join() */
extern void hgj_tally_agg(HgjAggState *state);

/* agg_progress.c */
extern void hgj_agg_progress(HgjAggState *state, HgjProgressPhase phase,
							 uint64 rows);

/* agg_explain.c */
extern void hgj_agg_explain(CustomScanState *node, List *ancestors,
							ExplainState *es);

/* Is there a GROUP BY?  Known before the groups' keys are. */
static inline bool
hgj_agg_is_grouped(const HgjAggState *state)
{
	const CustomScan *cscan = (const CustomScan *) state->css.ss.ps.plan;

	return list_nth(cscan->custom_private, HGJ_AGG_GROUP_COLUMNS) != NIL;
}

/* Rows that count for the input's aggregates in a group. */
static inline int64
hgj_agg_input_count(const HgjAggInput *input, const char *row)
{
	int64		rows = *(const int64 *) row;

	if (input->filter)
		return *(const int64 *) (row + input->counter);
	if (input->argument)
		return rows - *(const int64 *) (row + input->counter);
	return rows;
}

#endif							/* HGJ_AGG_STATE_H */
