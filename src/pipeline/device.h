/*-------------------------------------------------------------------------
 *
 * device.h
 *	  A chain of HashGraphJoins, with or without a HashGraphAgg over it, or a
 *	  HashGraphAgg over a table's scan, as a pipeline of an engine that has them
 *	  (engine/pipeline.h): batches stay on the device.
 *
 * device_joins.c	do the joins fit, and what are their instructions
 * agg_device_plan.c	the same of an aggregation
 * device_columns.c	the columns that these read
 * device_code.c	programs (program.h) as instructions
 * device_terms.c	the values that stand for a run's constants and parameters
 * device_host.c	what the host computes, and sends as if it were a column
 * device_values.c	the values that are sent
 * device_kept.c	columns that are kept in memory, which go as they are
 * device_push.c	all rows of the scan on their way
 * device_sides.c	build sides that are made on the device
 * agg_device_keys.c	group keys of an aggregation
 * device_call.c	calls of a pipeline, and its end
 * device_start.c	the joins' tables, and a pipeline that takes rows
 * agg_device_run.c		run it for an aggregation, and take the groups
 * device_explain.c	what EXPLAIN says of it
 * device_rows.c	run it for the upper join, and take rows
 * device_blocks.c	which become its outer batches and matches
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_DEVICE_H
#define HGJ_DEVICE_H

#include "compat.h"

#include "base/reasons.h"
#include "base/waits.h"
#include "build/build_side.h"
#include HGJ_EXPLAIN_STATE_HEADER
#include "engine/engine.h"
#include "expr/program.h"
#include "join/gather.h"
#include "portability/instr_time.h"
#include "scan/source.h"

struct HgjAggState;
struct HgjCounters;
struct HgjJoinState;
struct HgjStep;

/* A value of the terms of a run (engine/pipeline.h), and where it comes from. */
typedef struct HgjDeviceValue
{
	HgjProgram *program;		/* program that has it, or NULL: it is known */
	struct HgjStep *step;		/* constant or parameter of that; NULL: ... */
	struct HgjDeviceMade *made; /* ... what the host makes where a build side has no row */
	uint8		kind;			/* HgjKind of it */
	bool		isnull;			/* whether it is NULL, if it is known */
	int64		value;			/* value as in a register, if it is known */
} HgjDeviceValue;

/* Instructions while they are written. */
typedef struct HgjDeviceCode
{
	HgjPipelineSpec *spec;		/* that they are of */
	int			nregs;			/* used now */
	uint8		kinds[HGJ_PIPE_REGISTERS];	/* HgjKind of what is in them */
	int8		scales[HGJ_PIPE_REGISTERS]; /* of decimals of a numeric column; -1:
											 * this is something else */
	uint8		displays;		/* the register for the display scale of what is
								 * written next; or NONE */
	HgjDeviceReason reason;		/* of the first thing that did not fit */
	bool		no_host;		/* none of it is for the host to compute */
	struct HgjPipelineState *device;
} HgjDeviceCode;

/* A column of a side: of a join's build side, or of the table below (HGJ_DEVICE_INPUT). */
typedef struct HgjDevicePlace
{
	int			join;
	int			column;			/* of the side's columns, or the table's attno */
} HgjDevicePlace;

/* The inputs of a program. */
typedef struct HgjDeviceInputs
{
	uint8		(*load) (void *arg, int input); /* the register that has one */
	bool		(*find) (void *arg, int input, HgjDevicePlace *place);	/* the column that
																		 * it is; false:
																		 * none */
	void	   *arg;
} HgjDeviceInputs;

/* The inputs of programs over pairs of a join: what `arg` is then. */
typedef struct HgjDevicePairs
{
	struct HgjPipelineState *device;
	int			join;
	const HgjPairColumns *pairs;
} HgjDevicePairs;

/*
 * What the host makes of columns of one side, for each of their rows, and sends as one
 * more of them (device_host.c).
 */
typedef struct HgjDeviceMade
{
	HgjDevicePlace place;		/* the side, and the column if it is just that */
	HgjProgram *program;		/* what makes it, or NULL: the column as it is, ... */
	struct HgjStep *step;		/* ... of which it is this step */
	bool		row_number;		/* or it is the number of the row */
	HgjDictionary *codes;		/* its codes are sent in the place of values; or NULL */
	uint32		most_codes;		/* of them there will not be more; 0: nobody knows */
	int			ninputs;		/* of the program, or just the column: */
	int		   *inputs;			/* columns of the side, or those that are read; -1: it
								 * does not look at this one */
	const HgjVector **vectors;
	const struct HgjDeviceMade *of;	/* it is that, of a build side that is made on the
									 * device; or NULL */
	bool		missing;		/* where there is no row, it is not NULL, but ... */
	int64		value_missing;	/* ... this, as in a register */
} HgjDeviceMade;

/* What a column of the upper node's target list is. */
typedef struct HgjDeviceOutput
{
	bool		is_column;		/* of a side, or else ... */
	HgjDevicePlace place;
	HgjProgram *program;		/* ... of this program; NULL: neither */
	HgjDeviceInputs inputs;
	HgjDevicePairs pairs;		/* maybe what inputs.arg is */
} HgjDeviceOutput;

/* A column that instructions read, and the register it is in. */
typedef struct HgjDeviceColumn
{
	int			join;			/* its build side, or one of these: */
#define HGJ_DEVICE_INPUT	(-1)	/* an input column: the table's attno, or, for
								 * rows, that of the outer side */
#define HGJ_DEVICE_WORD		(-2)	/* a key word of the bottom join */
	int			column;			/* of the side's columns, an attno, or a word */
	int			from;			/* of the batch of the outer side: its column, or
								 * word */
	int			number;			/* among the join's payload columns, or the inputs */
	uint8		kind;
	uint8		width;
	int8		scale;			/* of numerics, which are sent as decimals; or -1 */
	HgjDeviceMade *made;		/* by the host; NULL: it is the side's */
	uint8		reg;
	bool		loaded;			/* the register has it */
} HgjDeviceColumn;

#define HGJ_DEVICE_COLUMNS	(HGJ_PIPE_JOINS * HGJ_PIPE_COLUMNS + HGJ_PIPE_INPUTS)

/* IN of more elements than this is the host's. */
#define HGJ_DEVICE_MEMBERS	64

/* Columns of the table that are read, for the device or for what the host makes. */
#define HGJ_DEVICE_READS	64

/* How a group key is known to the device. */
typedef enum HgjDeviceKeyKind
{
	HGJ_DEVICE_KEY_WORD,		/* as the datum */
	HGJ_DEVICE_KEY_DECIMAL,		/* of the scale */
	HGJ_DEVICE_KEY_CODE,		/* of the dictionary */
	HGJ_DEVICE_KEY_ROW			/* as a column of a row of a build side */
} HgjDeviceKeyKind;

typedef struct HgjDeviceKey
{
	HgjDeviceKeyKind kind;
	int			word;			/* which of the pipeline's keys it is */
	int8		scale;
	HgjDictionary *codes;
	HgjDevicePlace place;
} HgjDeviceKey;

typedef struct HgjPipelineState
{
	struct HgjAggState *agg;	/* NULL: */
	PlanState  *scan;			/* at the bottom; NULL: it is not read here */
	bool		rows;			/* the upper join takes what comes out */
	bool		of_batch;		/* inputs are of the bottom join's outer batch */
	HgjDeviceReason reason;		/* of the plan */
	HgjDeviceReason run_reason; /* of the last run */
	bool		ran;			/* the last run was a pipeline's */

	int			njoins;
	struct HgjJoinState *joins[HGJ_PIPE_JOINS]; /* the bottom one first */
	HgjBuildSide *builds[HGJ_PIPE_JOINS];	/* held while there is a pipeline */
	HgjProgram *filters[HGJ_PIPE_JOINS];	/* what rows must pass after an outer
											 * join, or NULL, */
	HgjPairColumns filter_columns[HGJ_PIPE_JOINS];	/* and what it reads */
	HgjSource	source;			/* the bottom one's outer side, once more: only
								 * the columns that are needed, and no keys */
	HgjProgram *scan_filter;	/* the quals of its scan, if they run here, */
	List	   *scan_attnos;	/* and the table's columns that they read, ... */
	bool		filter_kept;	/* ... most of which is kept in memory */
	int			nreads;			/* columns that the source returns, ... */
	HgjColumn	reads[HGJ_DEVICE_READS];
	int			staged[HGJ_DEVICE_READS];	/* ... among the inputs, or -1: only the
											 * host looks at it */
	HgjBuffer	read_buffers[HGJ_DEVICE_READS]; /* where those are */
	HgjBatch   *batch;			/* otherwise in a staging buffer */
	bool		reading;		/* the source has been asked for rows */
	bool		takes_kept;		/* its kept columns may go as they are (device_kept.c) */

	HgjDeviceCode code;
	HgjPipelineSpec spec;		/* plan: the same bytes for all runs */
	int			nvalues;
	HgjDeviceValue values[HGJ_PIPE_VALUES]; /* where those of the terms come from */
	HgjPipelineTerms terms;		/* of the run */
	int			ncolumns;
	HgjDeviceColumn columns[HGJ_DEVICE_COLUMNS];
	uint8	   *computed[HGJ_PIPE_JOINS];	/* registers of computed columns of
											 * target lists, by resno - 1; or NONE */
	HgjProgram **scan_programs; /* without joins: of the scan's target list, by
								 * resno - 1, over columns with ... */
	AttrNumber *scan_inputs;	/* ... these attnos; and */
	uint8	   *scan_computed;	/* the registers */
	List	   *made;			/* HgjDeviceMade */
	HgjBuffer  *side_buffers[HGJ_PIPE_JOINS];	/* what that is made of, by column */
	HgjPipeRange ranges[HGJ_PIPE_KEYS]; /* of group keys */
	int			key_columns[HGJ_PIPE_KEYS]; /* in `columns`, or -1 */
	HgjDeviceKey *keys;			/* of the aggregation */
	bool		by_row[HGJ_PIPE_JOINS]; /* rows of the side are told apart by a key,
										 * for all that is known, */
	bool		by_row_now[HGJ_PIPE_JOINS]; /* and in this execution */
	int		   *input_words;	/* per input of the aggregation: its counter's */
	int		   *agg_words;		/* per aggregate: its first; -1: none */
	struct HgjDeviceHaving *having; /* clauses that bound groups' values */

	const HgjEngine *engine;
	HgjPipeline *pipeline;
	HgjPipelineInfo info;		/* of the last run */
	instr_time	decode;			/* time that the source took */
	uint64		sent;			/* of all runs, in sum (tally.c) */
	double		transfer_ms;
	double		kernel_ms;
	uint64		peak;			/* bytes on the device, highest of all runs */
	HgjDeviceReason logged;		/* the log knows about it */
	HgjError	error;			/* what the last run ended with, if it did */
	bool		pushing;		/* what is too much now is groups */
	bool		more_codes;		/* there are more than was thought */
	HgjPoll		poll;

	uint64		device_limit;	/* without joins: bytes, */
	char		device_name[64];	/* and whose */
	List	   *counts;			/* the same: before the scan is read (counts.c) */
	struct HgjDeviceRows *out;	/* rows: what has come out (device_rows.c) */

	/* build sides that are made on the device (device_sides.c) */
	struct HgjPipelineState *sides[HGJ_PIPE_JOINS]; /* or NULL */
	bool		sides_made;		/* there has been a run */
	HgjPipeRange noted[HGJ_DEVICE_COLUMNS]; /* of `columns`: values lie in there */
	/* of such a side: */
	HgjTable   *fills;			/* while it is made */
	HgjDeviceColumn side_columns[HGJ_PIPE_COLUMNS]; /* what the upper pipeline reads */
	uint64		received;		/* bytes, of all runs, in sum */
} HgjPipelineState;

/* device_code.c */
extern uint8 hgj_device_register(HgjDeviceCode *code, uint8 kind);
extern void hgj_device_emit(HgjDeviceCode *code, HgjPipeOp op,
							const HgjPipeInstruction *fields);
#define EMIT(code, op, ...) \
	hgj_device_emit((code), (op), &(HgjPipeInstruction) {__VA_ARGS__})
extern void hgj_device_write_value(HgjDeviceCode *code, uint8 dst, const HgjDeviceValue *value);
extern void hgj_device_write_known(HgjDeviceCode *code, uint8 dst, bool isnull, int64 value);
extern int	hgj_device_jump(HgjDeviceCode *code, HgjPipeOp op, uint8 a);
extern void hgj_device_land(HgjDeviceCode *code, int jump);
extern uint8 hgj_device_key_word(HgjDeviceCode *code, uint8 reg, uint8 kind);
extern void hgj_device_refuse(HgjDeviceCode *code, HgjDeviceReason reason);
extern void hgj_device_load(HgjDeviceCode *code, HgjProgram *program,
							struct HgjStep *step, const HgjDeviceInputs *inputs);
extern uint8 hgj_device_step(HgjDeviceCode *code, HgjProgram *program,
							 struct HgjStep *step, const HgjDeviceInputs *inputs);
extern uint8 hgj_device_eval(HgjDeviceCode *code, HgjProgram *program,
							 const HgjDeviceInputs *inputs);
extern bool hgj_device_mixed(const struct HgjStep *step);
extern void hgj_device_filter(HgjDeviceCode *code, HgjProgram *program,
							  int join, const HgjDeviceInputs *inputs);

/* device_terms.c */
extern void hgj_device_set_terms(HgjPipelineState *device);

/* device_host.c */
extern bool hgj_device_hosts(HgjPipelineState *device, const struct HgjStep *step,
							 const HgjDeviceInputs *inputs);
extern bool hgj_device_is_short_list(const struct HgjStep *step);
extern bool hgj_device_is_strict(const struct HgjStep *step);
extern HgjDeviceMade *hgj_device_make_step(HgjPipelineState *device, HgjProgram *program,
										   struct HgjStep *step, const HgjDeviceInputs *inputs,
										   bool codes);
extern HgjDeviceMade *hgj_device_make_codes(HgjPipelineState *device,
											const HgjDevicePlace *place);
extern HgjDeviceMade *hgj_device_make_number(HgjPipelineState *device, int join);
extern HgjDeviceMade *hgj_device_make_again(HgjPipelineState *device,
											const HgjDeviceMade *made, int join);
extern uint8 hgj_device_made_kind(const HgjDeviceMade *made);
extern void hgj_device_give_codes(HgjPipelineState *device, HgjDeviceMade *made, Node *expr,
								  Oid equality, int16 attlen);

/* device_values.c */
extern HgjDeviceReason hgj_device_make_missing(const HgjPipelineState *device,
											   HgjDeviceMade *made, uint8 kind);
extern uint32 hgj_device_fill(HgjPipelineState *device, const HgjPipeStage *stage,
							  uint64 *nulls);
extern bool hgj_device_make_payload(HgjPipelineState *device, const HgjDeviceColumn *column,
									uint32 first, uint32 n, char *values,
									uint64 *validity);
extern bool hgj_device_make_table(HgjPipelineState *device, HgjDeviceMade *made,
								  uint8 kind, const HgjVector *values, uint32 n,
								  uint64 *words);
extern void hgj_device_sides_sent(HgjPipelineState *device);

/* A value that is not NULL, as it is in a register. */
static inline int64
hgj_device_register_value(uint8 kind, Datum value)
{
	switch (kind)
	{
		case HGJ_KIND_U1:
			return (uint8) DatumGetChar(value);
		case HGJ_KIND_I2:
			return DatumGetInt16(value);
		case HGJ_KIND_I4:
			return DatumGetInt32(value);
		case HGJ_KIND_U4:
		case HGJ_KIND_F4:
			return DatumGetUInt32(value);
		default:
			return DatumGetInt64(value);
	}
}

/* Widen *range by a value of a column. */
static inline void
hgj_device_note_range(HgjPipeRange *range, uint8 kind, int64 value)
{
	if (kind == HGJ_KIND_U1)
		value = (uint8) value;
	else if (kind == HGJ_KIND_U4)
		value = (uint32) value;
	if (!range->bounded)
		range->low = range->high = value;
	range->bounded = true;
	range->low = Min(range->low, value);
	range->high = Max(range->high, value);
}

/* device_kept.c */
extern void hgj_device_plan_kept(HgjPipelineState *device);
extern bool hgj_device_is_kept(const HgjPipelineState *device);
extern bool hgj_device_reads_are_kept(const HgjPipelineState *device);
extern bool hgj_device_makes_of_values(const HgjPipelineState *device);
extern bool hgj_device_fits_kept(const HgjPipelineState *device);
extern uint64 hgj_device_push_kept(HgjPipelineState *device);
extern struct HgjDevicePush *hgj_device_begin_kept(HgjPipelineState *device);
extern bool hgj_device_next_kept(HgjPipelineState *device, struct HgjDevicePush *push,
								 uint64 *pushed);
extern void hgj_device_limit_kept(struct HgjDevicePush *push, uint64 rows);
extern const struct HgjKeptRange *hgj_device_kept_ranges(const struct HgjDevicePush *push,
														 uint32 *n);
extern void hgj_device_end_kept(struct HgjDevicePush *push);

/* device_push.c */
extern void hgj_device_push_rows(HgjPipelineState *device,
								 void (*pushed) (HgjPipelineState *device, uint64 rows));

/* device_sides.c */
extern void hgj_device_plan_sides(HgjPipelineState *upper, EState *estate);
extern bool hgj_device_makes_side(const HgjPipelineState *upper, int j);
extern bool hgj_device_lower_side(HgjPipelineState *upper, int j);
extern bool hgj_device_sides_fit(const HgjPipelineState *upper);
extern HgjPipeRange hgj_device_side_range(const HgjPipelineState *side,
										  const HgjDeviceColumn *column);
extern void hgj_device_end_sides(HgjPipelineState *upper);

/* device_joins.c */
extern bool hgj_device_kind_of_key(HgjKeyKind key, uint8 *kind);
extern HgjDeviceReason hgj_device_find_joins(HgjPipelineState *device,
											 struct HgjJoinState *upper);
extern void hgj_device_write_joins(HgjPipelineState *device);
extern void hgj_device_write_end(HgjPipelineState *device);
extern uint8 hgj_device_output(HgjPipelineState *device, AttrNumber resno);
extern bool hgj_device_find_output(HgjPipelineState *device, AttrNumber resno,
								   HgjDeviceOutput *output);

/* device_columns.c */
extern bool hgj_device_sends(HgjPipelineState *device, const HgjDevicePlace *place,
							 int8 *scale);
extern int	hgj_device_read(HgjPipelineState *device, AttrNumber attno);
extern uint8 hgj_device_load_column(HgjPipelineState *device, int join, int column);
extern uint8 hgj_device_load_made(HgjPipelineState *device, HgjDeviceMade *made);
extern void hgj_device_filter_scan(HgjPipelineState *device);
extern bool hgj_device_compile_filter(HgjPipelineState *device, bool from_kept);
extern void hgj_device_open_scan(HgjPipelineState *device, EState *estate);
extern AttrNumber hgj_device_scan_attno(const HgjPipelineState *device, AttrNumber resno);
extern void hgj_device_write_scan(HgjPipelineState *device);
extern uint8 hgj_device_scan_output(HgjPipelineState *device, AttrNumber resno);
extern void hgj_device_find_scan_output(HgjPipelineState *device, AttrNumber resno,
										HgjDeviceOutput *output);

/* agg_device_plan.c */
extern HgjPipelineState *hgj_device_plan(struct HgjAggState *agg, EState *estate);
extern bool hgj_device_lower_agg(HgjPipelineState *device);

/* agg_device_having.c, in agg/, too */
extern void hgj_device_plan_having(HgjPipelineState *device);
extern void hgj_device_write_having(HgjPipelineState *device);
extern void hgj_device_start_having(HgjPipelineState *device);
extern bool hgj_device_has_having(const HgjPipelineState *device);
extern bool hgj_device_found_groups(HgjPipelineState *device, uint64 n);
extern uint64 hgj_device_left_out(const HgjPipelineState *device);

/* agg_device_keys.c */
extern void hgj_device_plan_keys(HgjPipelineState *device);
extern bool hgj_device_check_keys(HgjPipelineState *device);
extern void hgj_device_write_keys(HgjPipelineState *device);
extern void hgj_device_take_keys(HgjPipelineState *device, const uint64 *from, char *row);

/* Why the last run was not a pipeline's. */
static inline HgjDeviceReason
hgj_device_reason(const HgjPipelineState *device)
{
	return device->reason != HGJ_DEVICE_FITS ? device->reason :
		device->run_reason;
}

/* The run cannot go on: run_reason says why. */
static inline bool
hgj_device_gave_up(const HgjPipelineState *device)
{
	return device->run_reason != HGJ_DEVICE_FITS;
}

/* device_call.c */
extern void hgj_device_own(HgjPipelineState *device, MemoryContext context);
extern void hgj_device_reset(HgjPipelineState *device);
extern bool hgj_device_done(HgjPipelineState *device, HgjStatus status,
							const HgjError *err);

/* As hgj_engine_call() (join_state.h), for a pipeline. */
#define hgj_device_call(device, err, call) \
	do { \
		hgj_device_wait_starts(); \
	} while (!hgj_device_done(device, call, err))

extern void hgj_device_log(HgjPipelineState *device);
extern void hgj_device_release(HgjPipelineState *device);
extern void hgj_device_end(HgjPipelineState *device);

/* device_start.c */
extern void hgj_device_enter(HgjPipelineState *device);
extern void hgj_device_leave(HgjPipelineState *device, const HgjPipelineInfo *now,
							 HgjPipelineInfo *counted);
extern uint64 hgj_device_count_rows(HgjPipelineState *device);
extern bool hgj_device_build(HgjPipelineState *device, bool *empty);
extern void hgj_device_start_programs(HgjPipelineState *device);
extern void hgj_device_start(HgjPipelineState *device, uint64 expected);

/* agg_device_run.c */
extern bool hgj_device_run(HgjPipelineState *device);

/* device_explain.c */
extern void hgj_device_explain(const HgjPipelineState *device, const HgjPipelineInfo *info,
							   ExplainState *es);
extern void hgj_device_count_work(const HgjPipelineState *device, struct HgjCounters *counters);
extern void hgj_device_count(const HgjPipelineState *device,
							 struct HgjCounters *counters);

/* device_rows.c */
extern void hgj_install_device_rows(void);

#endif							/* HGJ_DEVICE_H */
