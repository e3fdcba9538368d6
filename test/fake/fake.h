/*-------------------------------------------------------------------------
 *
 * fake.h
 *	  What the files of the fake engine share.
 *
 * fake_engine.c	tables and probes: the CPU engine's; faults
 * fake_pipeline.c	the life of a pipeline
 * fake_fill.c		a table that it fills
 * fake_kept.c		rows that the caller keeps
 * fake_rows.c		its instructions, row by row
 * fake_values.c	what single instructions compute, and states of groups
 *
 * Nothing of this is taken from the CUDA engine: where the two differ, one is
 * wrong.  Which specs are sound (engine/pipeline_check.c) is the contract's, and
 * the same for both.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_FAKE_H
#define HGJ_FAKE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

/* Calls that can be told to fail. */
typedef enum FakeCall
{
	CALL_OPEN,
	CALL_TABLE_CREATE,
	CALL_APPEND,
	CALL_BUILD,
	CALL_PROBE_CREATE,
	CALL_PROBE_BEGIN,
	CALL_PROBE_NEXT,
	CALL_MARK,
	CALL_UNMATCHED,
	CALL_CLEAR_MARKS,
	CALL_PIPE_CREATE,			/* from here on, those of pipelines */
	CALL_PIPE_PAYLOAD,
	CALL_PIPE_START,
	CALL_PIPE_STAGE,
	CALL_PIPE_PUSH,
	CALL_PIPE_FROM,
	CALL_PIPE_KEPT,
	CALL_PIPE_FETCH,
	CALL_PIPE_FINISH,
	CALL_PIPE_GROUPS,
	CALL_PIPELINE,				/* any of these */
	CALL_ANY,
	CALLS
} FakeCall;

typedef struct FakeTable
{
	HgjTable   *cpu;
	HgjTableSpec spec;
	HgjDeviceWork work;
	bool		appended;		/* rows have been */
	bool		built;
	bool		quiet;			/* a pipeline probes it, and polls itself */
	uint32_t	total_rows;
	uint32_t	pipelines;		/* that read it */
} FakeTable;

/* A register's value. */
typedef struct FakeValue
{
	uint64_t	word;
	bool		null;
} FakeValue;

#define FAKE_STAGES		2
#define FAKE_STAGE_ROWS 2048	/* so that there are many */
#define FAKE_PORTION	1000	/* rows that are returned at a time, at most, ... */
#define FAKE_MOST		65536	/* ... or these, of kept rows with one input */
#define FAKE_CANDIDATES 64		/* that are looked up at a time */

typedef struct FakeColumn
{
	char	   *values;
	uint64_t   *validity;		/* or NULL */
	uint64_t	sent;			/* rows */
} FakeColumn;

/* A join, and where the row at hand stands among its candidates. */
typedef struct FakeJoin
{
	FakeTable  *table;
	FakeColumn	columns[HGJ_PIPE_COLUMNS];
	bool		filled;			/* they are another pipeline's, copied */
	uint32_t	after_probe;	/* instructions */
	uint32_t	after_match;

	HgjProbe   *probe;
	uint64_t	words[HGJ_PIPE_KEYS];	/* that are looked up */
	const uint64_t *word_columns[HGJ_PIPE_KEYS];
	bool		begun;			/* the probe has been */
	bool		done;			/* it has no further candidate */
	uint32_t	rows[FAKE_CANDIDATES];
	uint32_t	ignored[FAKE_CANDIDATES];
	uint32_t	nrows;
	uint32_t	at;				/* of rows */
	uint32_t	row;			/* the candidate at hand, or NO_ROW */
	bool		hit;			/* one has passed */
} FakeJoin;

typedef struct FakeStage
{
	void	   *values[HGJ_PIPE_INPUTS];
	uint64_t   *validity[HGJ_PIPE_INPUTS];
	uint32_t	n;				/* rows pushed and not yet through; 0: free */
	uint64_t	nulls;
} FakeStage;

/* Where the interpreter stands, in the rows of one stage. */
typedef struct FakeCursor
{
	uint32_t	begun;			/* rows of it */
	uint32_t	row;			/* of the stage */
	bool		in_row;
	bool		seek;			/* go on with the next candidate */
	uint32_t	pc;
	uint32_t	open;			/* joins that have been probed */
	uint32_t	steps;
	uint64_t	nulls;			/* bits of registers */
	uint64_t	regs[HGJ_PIPE_REGISTERS];
	uint64_t	set[HGJ_PIPE_JOINS + 1];	/* registers that have a value, by how
											 * many joins were open when they got it */
} FakeCursor;

/* Groups: rows as returned, but for the states, and a hash table over them. */
typedef struct FakeGroups
{
	uint64_t   *rows;
	uint64_t	n;
	uint64_t	room;
	uint32_t   *slots;			/* number + 1; 0: free */
	uint64_t	nslots;			/* a power of two */
	bool		dense;			/* values out of range are too much */
	uint64_t	most;			/* groups */
	HgjPipeRange ranges[HGJ_PIPE_KEYS];
} FakeGroups;

/* Rows of a table: key words, then columns, as registers have them, and bits of NULLs. */
typedef struct FakeFill
{
	FakeTable  *table;
	uint64_t   *rows;
	uint64_t	n;
	uint64_t	room;
	bool		done;
} FakeFill;

struct HgjPipeline
{
	HgjPipelineSpec spec;
	uint32_t	nhaving;
	HgjPipeHaving having[HGJ_PIPE_HAVING];
	uint64_t	memory_limit;
	FakeFill	fill;
	HgjTableSpec waits;			/* its poll, also for a device that hangs */
	bool		started;
	bool		finished;
	HgjStatus	failed;			/* nothing is left to do but destroy */
	uint64_t	memory;			/* bytes, as a device would count them */

	FakeJoin	joins[HGJ_PIPE_JOINS];
	FakeStage	stages[FAKE_STAGES];
	uint32_t	turn;
	bool		staged;			/* the stage in turn has been given out */
	HgjKeptArray *late;			/* kept arrays that are read still, or NULL */
	uint32_t	nlate;
	uint64_t	late_sum;
	uint32_t	kept_piece;		/* of a push_kept that was cancelled: done so far */
	uint32_t	kept_row;
	FakeCursor	cursor;
	FakeGroups	groups;
	uint64_t	ended;			/* rows */

	FakeStage	kept;			/* kept rows of a push whose rows are returned, all of them */
	FakeStage  *fetching;		/* the push whose rows are being returned */
	uint32_t	fetches;
	uint32_t	wanted;			/* of the portion at hand */
	uint32_t	nout;
	uint32_t	input[FAKE_MOST];
	uint32_t	out[HGJ_PIPE_JOINS][FAKE_MOST];

	HgjPipelineInfo counted;	/* for info, */
	HgjPipelineInfo counting;	/* and what is not yet */
};

/* fake_engine.c */
extern HgjStatus fake_fail(HgjError *err, HgjStatus status, const char *message);
extern HgjStatus fake_enter(FakeCall call, const HgjTableSpec *spec, HgjError *err);
extern void fake_tables(int more);
extern void fake_give_back(void);
extern bool fake_refuses_pipelines(void);
extern bool fake_is(const char *what);
extern HgjStatus fake_lose(HgjError *err, const char *message);

/* fake_pipeline.c */
extern HgjPipelineMethods fake_pipeline;
extern HgjStatus fake_push_from(HgjPipeline *p, const HgjPipeStage *from, uint32_t n,
								uint64_t nulls, HgjError *err);
extern HgjStatus fake_enter_pipeline(HgjPipeline *p, FakeCall call, HgjError *err);
extern HgjStatus fake_take(HgjPipeline *p, uint64_t bytes, HgjError *err);
extern HgjStatus fake_pipeline_fetch(HgjPipeline *p, HgjPipeRows *rows, HgjError *err);

/* fake_fill.c */
extern HgjStatus fake_fill_open(HgjPipeline *p, HgjTable *table, HgjError *err);
extern HgjStatus fake_fill_row(HgjPipeline *p, const FakeValue *values, HgjError *err);
extern HgjStatus fake_fill_finish(HgjPipeline *p, HgjError *err);
extern HgjStatus fake_fill_read(HgjPipeline *p, uint32_t join, const HgjPipeline *filled,
								HgjError *err);

/* fake_kept.c */
extern void fake_keep(const HgjKeptMemory *memory);
extern void fake_kept_read(HgjPipeline *p);
extern void fake_kept_info(HgjDeviceInfo *info);
extern HgjStatus fake_kept_bytes(const HgjPipelineCaller *caller, const uint64_t *ids,
								 uint64_t n, uint64_t *bytes, HgjError *err);
extern HgjStatus fake_prewarm(const HgjKeptArray *arrays, uint32_t n, uint32_t *done,
							  HgjError *err);
extern uint64_t fake_sweep(uint64_t first, uint64_t last, const uint64_t *live, uint64_t n);
extern HgjStatus fake_push_kept(HgjPipeline *p, const HgjKeptPush *rows, HgjError *err);

/* fake_rows.c */
extern HgjStatus fake_run(HgjPipeline *p, FakeStage *stage, HgjError *err);
extern HgjStatus fake_add_group(HgjPipeline *p, const uint64_t *key, uint64_t **row,
								HgjError *err);

/* fake_values.c */
extern size_t fake_width(uint32_t kind);
extern uint64_t fake_load(uint32_t kind, const void *values, uint64_t at);
extern bool fake_compute(const HgjPipeInstruction *in, FakeValue a, FakeValue b,
						 FakeValue *r);
extern uint64_t fake_state_identity(uint32_t state);
extern bool fake_state_add(uint32_t state, uint64_t *word, uint64_t value);
extern uint64_t fake_state_result(uint32_t state, uint64_t word);

#endif							/* HGJ_FAKE_H */
