/*-------------------------------------------------------------------------
 *
 * device.h
 *	  A chain of HashGraphJoins, with or without a HashGraphAgg over it, as a
 *	  pipeline of an engine that has them (engine/pipeline.h): batches stay on the
 *	  device.
 *
 * device_joins.c	do the joins fit, and what are their instructions
 * agg_device_plan.c	the same of an aggregation
 * device_code.c	programs (program.h) as instructions
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
	bool		constants;		/* their values are known: this is a run */
	HgjDeviceReason reason;		/* of the first thing that did not fit */
} HgjDeviceCode;

/* The register that has input `input` of a program. */
typedef uint8 (*HgjDeviceLookup) (void *arg, int input);

/* A column that instructions read, and the register it is in. */
typedef struct HgjDeviceColumn
{
	int			join;			/* its build side, or one of these: */
#define HGJ_DEVICE_INPUT	(-1)	/* an input column: the table's attno, or, for
								 * rows, that of the outer side */
#define HGJ_DEVICE_WORD		(-2)	/* a key word of the bottom join */
	int			column;			/* of the side's columns, an attno, or a word */
	int			from;			/* rows: the outer batch's column, or word */
	int			number;			/* among the join's payload columns, or the inputs */
	uint8		kind;
	uint8		width;
	int8		scale;			/* of numerics, which are sent as decimals; or -1 */
	uint8		reg;
	bool		loaded;			/* the register has it */
} HgjDeviceColumn;

#define HGJ_DEVICE_COLUMNS	(HGJ_PIPE_JOINS * HGJ_PIPE_COLUMNS + HGJ_PIPE_INPUTS)

typedef struct HgjPipelineState
{
	struct HgjAggState *agg;	/* NULL: */
	bool		rows;			/* the upper join takes what comes out */
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
	List	   *scan_attnos;	/* and the table's columns that they read */
	HgjColumn	inputs[HGJ_PIPE_INPUTS];
	HgjBatch   *batch;			/* in a staging buffer */
	bool		reading;		/* the source has been asked for rows */

	HgjDeviceCode code;
	HgjPipelineSpec spec;
	int			ncolumns;
	HgjDeviceColumn columns[HGJ_DEVICE_COLUMNS];
	uint8	   *computed[HGJ_PIPE_JOINS];	/* registers of computed columns of
											 * target lists, by resno - 1 */
	HgjPipeRange ranges[HGJ_PIPE_KEYS]; /* of group keys */
	int			key_columns[HGJ_PIPE_KEYS]; /* in `columns`, or -1 */
	int		   *input_words;	/* per input of the aggregation: its counter's */
	int		   *agg_words;		/* per aggregate: its first; -1: none */

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
	HgjPoll		poll;

	struct HgjDeviceRows *out;	/* rows: what has come out (device_rows.c) */
	uint64		received;		/* bytes, of all runs, in sum */
} HgjPipelineState;

/* device_code.c */
extern uint8 hgj_device_register(HgjDeviceCode *code, uint8 kind);
extern void hgj_device_emit(HgjDeviceCode *code, HgjPipeOp op,
							const HgjPipeInstruction *fields);
#define EMIT(code, op, ...) \
	hgj_device_emit((code), (op), &(HgjPipeInstruction) {__VA_ARGS__})
extern int	hgj_device_jump(HgjDeviceCode *code, HgjPipeOp op, uint8 a);
extern void hgj_device_land(HgjDeviceCode *code, int jump);
extern uint8 hgj_device_key_word(HgjDeviceCode *code, uint8 reg, uint8 kind);
extern void hgj_device_refuse(HgjDeviceCode *code, HgjDeviceReason reason);
extern void hgj_device_load(HgjDeviceCode *code, const struct HgjStep *step,
							HgjDeviceLookup lookup, void *arg);
extern uint8 hgj_device_step(HgjDeviceCode *code, HgjProgram *program,
							 const struct HgjStep *step,
							 HgjDeviceLookup lookup, void *arg);
extern uint8 hgj_device_eval(HgjDeviceCode *code, HgjProgram *program,
							 HgjDeviceLookup lookup, void *arg);
extern bool hgj_device_mixed(const struct HgjStep *step);
extern void hgj_device_filter(HgjDeviceCode *code, HgjProgram *program,
							  int join, HgjDeviceLookup lookup, void *arg);

/* device_joins.c */
extern HgjDeviceReason hgj_device_find_joins(HgjPipelineState *device,
											 struct HgjJoinState *upper);
extern void hgj_device_write_joins(HgjPipelineState *device, bool constants);
extern void hgj_device_write_end(HgjPipelineState *device);
extern uint8 hgj_device_output(HgjPipelineState *device, AttrNumber resno);

/* agg_device_plan.c */
extern HgjPipelineState *hgj_device_plan(struct HgjAggState *agg, EState *estate);
extern bool hgj_device_write_agg(HgjPipelineState *device, bool constants);

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

/* device_start.c */
extern void hgj_device_own(HgjPipelineState *device, MemoryContext context);
extern void hgj_device_reset(HgjPipelineState *device);
extern void hgj_device_enter(HgjPipelineState *device);
extern void hgj_device_leave(HgjPipelineState *device, const HgjPipelineInfo *now,
							 HgjPipelineInfo *counted);
extern bool hgj_device_done(HgjPipelineState *device, HgjStatus status,
							const HgjError *err);

/* As hgj_engine_call() (join_state.h), for a pipeline. */
#define hgj_device_call(device, err, call) \
	do { \
		hgj_wait_starts(HGJ_WAIT_DEVICE); \
	} while (!hgj_device_done(device, call, err))

extern void hgj_device_log(HgjPipelineState *device);
extern void hgj_device_release(HgjPipelineState *device);
extern bool hgj_device_build(HgjPipelineState *device, bool *empty);
extern void hgj_device_start_programs(HgjPipelineState *device);
extern void hgj_device_start(HgjPipelineState *device, uint64 expected);

/* agg_device_run.c */
extern bool hgj_device_run(HgjPipelineState *device);
extern void hgj_device_end(HgjPipelineState *device);

/* device_explain.c */
extern void hgj_device_explain(const HgjPipelineState *device, ExplainState *es);
extern void hgj_device_count(const HgjPipelineState *device,
							 struct HgjCounters *counters);

/* device_rows.c */
extern void hgj_install_device_rows(void);

#endif							/* HGJ_DEVICE_H */
