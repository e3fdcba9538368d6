/*-------------------------------------------------------------------------
 *
 * threads.h
 *	  What the files of the thread engine share: an engine whose "device" is the
 *	  processor's cores, and whose pipelines (engine/pipeline.h) run on them in vectors.
 *
 * engine.c		tables are the CPU engine's; the device is the cores
 * pool.c		threads, which take morsels from the jobs of all sessions
 * plan.c		what is known of a plan before a row comes
 * pipeline.c	the life of a pipeline
 * push.c		rows that come, cut into morsels, and the reports of their runs
 * runs.c		memory of runs, and what it counts for
 * run.c		the instructions of a plan, for a vector of rows
 * join.c		PROBE and MATCH
 * lazy.c		registers whose values nobody has asked for yet, and filters over them
 * values.c		what instructions compute
 * load.c		input columns and payload columns
 * states.c		state words of groups
 * groups.c		groups of a run, and of all runs together
 * rows.c		rows that are returned, or fill a table
 *
 * A MORSEL is a range of rows of one push; a thread takes one after the other.  A RUN is what
 * one thread has of one pipeline: vectors, probes, groups, rows that have come out.  A VECTOR
 * is up to VECTOR_ROWS rows, of which the selected ones are alive, with the plan's registers as
 * columns.
 *
 * None of this knows PostgreSQL: nothing throws, and memory is malloc'd and counted.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_THREADS_H
#define HGJ_THREADS_H

#include <stdlib.h>
#include <string.h>

#include "engine/checks.h"
#include "engine/hash.h"

#if defined(__GNUC__)
#pragma GCC visibility push(hidden)
#endif

/* Rows of a vector: its registers stay in the L2 cache. */
#define VECTOR_ROWS		2048
#define VECTOR_WORDS	(VECTOR_ROWS / 64)

/* Selections may be written so far beyond what they have at last. */
#define SEL_SLACK		16

/* Rows of a morsel: long beside what it costs to take one, short beside a query. */
#define MORSEL_ROWS		(16 * VECTOR_ROWS)

/* The same where a row may find several: what comes of a morsel may be many times as long. */
#define SHORT_MORSEL_ROWS	(2 * VECTOR_ROWS)

/* Rows of a staging buffer. */
#define STAGE_ROWS		(4 * MORSEL_ROWS)

/* Rows that a fetch returns, at most. */
#define PORTION_ROWS	65536

/* What clones of a loop are compiled for, besides what every processor of the kind has. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && __GNUC__ >= 12 && \
	!defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define HGJ_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define HGJ_CLONES
#endif

/* ---- pool.c -------------------------------------------------------------- */

/*
 * Work that several threads share: `morsel` is called once for each number below `nmorsels`,
 * by any thread, with the number of the thread, below hgj_pool_runs().
 */
typedef struct PoolJob
{
	void		(*morsel) (void *arg, uint32_t thread, uint64_t number);
	void	   *arg;
	uint64_t	nmorsels;
	uint64_t	next;			/* number of the next morsel; under the pool's lock */
	uint32_t	running;		/* threads that are at one; under the pool's lock */
	bool		stopped;		/* nobody takes another morsel; atomic */
	uint32_t	late;			/* steps of morsels since then; atomic */
	uint64_t	progress;		/* steps that have been done; atomic */
	struct PoolJob *after;		/* in the pool's ring */
} PoolJob;

extern bool hgj_pool_open(uint32_t nthreads);
extern uint32_t hgj_pool_runs(void);
extern uint64_t hgj_pool_now_ns(void);
extern void hgj_pool_watch(const HgjWatch *asked);
extern void hgj_pool_progress(PoolJob *job);
extern void hgj_pool_stop(PoolJob *job);
extern bool hgj_pool_is_late(PoolJob *job);
extern bool hgj_pool_run(PoolJob *job, int (*poll) (void *poll_arg), void *poll_arg);

/* ---- tables (engine.c) ---------------------------------------------------- */

/* A table of the CPU engine's, which any thread may probe once it has been built. */
typedef struct ThreadTable
{
	HgjTable   *cpu;
	HgjTableSpec spec;
	bool		built;
	uint32_t	total_rows;
	uint64_t	appended;		/* rows */
	uint64_t	rejected;		/* number of the rows rejected by its filter that pipelines say themselves; atomic */
} ThreadTable;

static inline ThreadTable *
thread_table(const HgjTable *table)
{
	return (ThreadTable *) (void *) (uintptr_t) table;
}

/* ---- plan.c ---------------------------------------------------------------- */

/* What is known of a plan at one of its PROBEs. */
typedef struct PlanJoin
{
	uint32_t	after_probe;	/* instruction behind PROBE */
	uint32_t	after_match;	/* instruction behind MATCH */
	bool		filtered;		/* a FILTER stands between the two */
	uint64_t	live;			/* registers that are read behind PROBE and were set before */
	uint32_t	rows;			/* joins before this one whose rows are looked at behind it */
	bool		origin;			/* inputs are, too, or rows are returned */
} PlanJoin;

typedef struct Plan
{
	HgjPipelineSpec spec;		/* with the terms' values in it */
	uint32_t	registers;
	PlanJoin	joins[HGJ_PIPE_JOINS];
	uint64_t	reads[HGJ_PIPE_CODE];	/* registers that each instruction reads */
	uint32_t	ntargets;		/* of jumps */
	uint16_t	targets[HGJ_PIPE_CODE];	/* instructions that jumps lead to, ascending */
	uint16_t	target_of[HGJ_PIPE_CODE];	/* number of an instruction among them, plus one */
	uint32_t	row_width;		/* words of a group's row */
	uint32_t	paired;			/* state words that are a sum's lower and upper half */
	uint32_t	nhaving;
	HgjPipeHaving having[HGJ_PIPE_HAVING];
} Plan;

extern HgjStatus hgj_threads_plan(Plan *plan, const HgjPipelineSpec *spec,
								  const HgjPipelineTerms *terms, HgjError *err);

/* ---- runs -------------------------------------------------------------------- */

/* Where an input's rows are, from row `first` on. */
typedef struct View
{
	const void *numbers;
	const uint8_t *third;		/* third bytes of numbers of three */
	uint8_t		width;			/* bytes of a number */
	bool		is_signed;
	uint64_t	base;
	const uint64_t *validity;	/* NULL: no row is NULL */
	uint64_t	first;
	const uint64_t *table;		/* words that the numbers stand for, or NULL */
	uint32_t	ntable;
} View;

/* What a register is of which no values have been computed (lazy.c). */
typedef enum LazyKind
{
	LAZY_INPUT,					/* an input column */
	LAZY_CONSTANT,				/* one word, for all rows */
	LAZY_RANGE					/* is the input column's value within bounds?  NULL if it is */
} LazyKind;

typedef struct Lazy
{
	LazyKind	kind;
	uint32_t	input;
	uint64_t	word;
	int64_t		least;
	int64_t		most;
} Lazy;

/* Bounds of numbers: those that are at most `span` above `first`, modulo `top` plus one. */
typedef struct NumberRange
{
	uint64_t	first;
	uint64_t	span;
	uint64_t	top;
	bool		none;
	bool		every;			/* number is in range */
} NumberRange;

/* Entries of a view's table, at most, that are looked through before its rows are tested. */
#define TESTED_ENTRIES	1024

/* Which of the words are true that an input's numbers stand for (lazy.c). */
typedef struct TableTest
{
	bool		known;			/* for the morsel at hand */
	bool		is_range;		/* of numbers; NULL is not true */
	NumberRange range;
	uint8_t		passes[TESTED_ENTRIES];
} TableTest;

typedef struct Vector
{
	uint32_t	n;				/* rows */
	uint32_t	nsel;			/* rows that are alive, ... */
	uint32_t   *sel;			/* ... ascending, unless all are (all_alive()) */
	bool		masked;			/* `alive` says which rows are, `nsel` how many */
	uint8_t    *alive;			/* a byte for each row */
	bool		expanded;		/* its rows are candidates, of which MATCH decides */
	uint32_t	matching;		/* number of the join that has been probed in place, plus one */
	uint32_t	nparked;		/* rows that wait for an instruction further on */
	uint64_t	nulls_of;		/* registers with a NULL in this vector */
	uint64_t	lazy;			/* registers that `lazies` says something of */
	Lazy	   *lazies;
	uint64_t  **words;			/* registers */
	uint8_t   **nulls;
	uint32_t   *rows[HGJ_PIPE_JOINS];	/* row of each join's table */
	uint32_t   *parent;			/* rows of the vector that was probed */
	uint32_t   *origin;			/* rows of the run's first vector */
	bool		first;			/* it is the run's first vector: rows are where they came from */
	uint64_t   *parked;			/* bits of the rows that wait, per target */
} Vector;

/* What a thread has of a join. */
typedef struct RunJoin
{
	HgjProbe   *probe;
	uint32_t   *probed;			/* rows of pairs */
	uint32_t   *found;
	uint32_t   *before;			/* selection before PROBE */
	uint32_t   *keyed;			/* selection of rows without NULL keys */
	uint32_t	nbefore;
	uint8_t    *hit;			/* rows that have passed */
} RunJoin;

/* Groups that are few, at most; and what rows have that are not alive. */
#define FEW_GROUPS		16
#define NO_GROUP		UINT8_MAX

/* What a vector's rows add to few groups (states.c). */
typedef struct FewGroups
{
	bool		too_many;		/* more groups have been met */
	uint8_t    *number_of;		/* of each group, or NO_GROUP */
	uint32_t	group[FEW_GROUPS];
	uint32_t	n;				/* rows */
	uint32_t	ngroups;
	uint8_t		number[VECTOR_ROWS];	/* of each row's group, or NO_GROUP */
	uint32_t	counts[FEW_GROUPS];
	uint64_t	summed;			/* registers whose sums are there, ... */
	uint64_t	fits;			/* ... and are those of 64-bit integers */
	uint64_t	sums[HGJ_PIPE_REGISTERS][FEW_GROUPS];
} FewGroups;

/* Groups of one run. */
typedef struct Groups
{
	uint64_t   *rows;			/* NULL bits, keys, state words */
	uint32_t   *hashes;			/* of their keys */
	uint64_t	n;
	uint64_t	room;
	uint64_t   *slots;			/* hash in the upper half, number of a group plus one; 0: free */
	uint64_t	nslots;			/* a power of two */
	uint64_t	bytes;
} Groups;

/* Rows that have come out of one run, column by column. */
typedef struct Output
{
	uint64_t	n;
	uint64_t	room;
	void	   *columns[HGJ_PIPE_KEYS + HGJ_PIPE_COLUMNS + 1];
	uint8_t    *nulls[HGJ_PIPE_COLUMNS];	/* bytes; NULL: none is */
	uint64_t	bytes;
} Output;

struct Run
{
	struct HgjPipeline *p;
	uint32_t	row0;			/* row of the push that the vector begins with */
	View		views[HGJ_PIPE_INPUTS];
	TableTest  *tests[HGJ_PIPE_INPUTS];	/* NULL: none was wanted yet */
	uint64_t	view_first;		/* rows of the views before the vector */
	Vector	   *vectors[HGJ_PIPE_JOINS + 1];
	RunJoin		joins[HGJ_PIPE_JOINS];
	uint64_t	joined[HGJ_PIPE_JOINS];
	uint64_t	filtered[HGJ_PIPE_JOINS];
	uint64_t	removed[HGJ_PIPE_JOINS];
	uint64_t	rejected[HGJ_PIPE_JOINS];
	uint64_t	counted[HGJ_PIPE_JOINS];	/* number of rows that each table has counted as rejected by this run */
	uint64_t	dropped;
	uint64_t	ended;			/* rows */
	uint64_t	bytes;			/* of vectors, which are counted */
	uint64_t	busy_ns;		/* time that its morsels have taken */
	uint64_t	rows;			/* number of rows that they had */
	uint32_t	group_of[VECTOR_ROWS];
	uint32_t	hash_of[VECTOR_ROWS];
	uint64_t	key_nulls[VECTOR_ROWS];
	FewGroups	few;
	Groups		groups;
	Output		out;
	HgjStatus	status;
	HgjError	error;
};
typedef struct Run Run;

/* A range of rows of one piece of a push. */
typedef struct Morsel
{
	uint32_t	piece;
	uint32_t	from;			/* row of the piece */
	uint32_t	n;
	uint32_t	row0;			/* row of the push */
} Morsel;

/* Rows that have been pushed, and are not through. */
typedef enum PushWork
{
	WORK_NONE = 0,
	WORK_STAGED,
	WORK_KEPT					/* of a call that was cancelled */
} PushWork;

/* A payload column of a join's table. */
typedef struct Column
{
	void	   *values;
	uint64_t   *validity;		/* NULL: no row is NULL */
	uint64_t	sent;			/* rows */
} Column;

/* Columns of a table that a pipeline has filled, for those who read them. */
typedef struct Columns
{
	uint32_t	users;			/* atomic */
	uint32_t	ncolumns;
	Column		columns[HGJ_PIPE_COLUMNS];
} Columns;

struct HgjPipeline
{
	Plan		plan;
	int			(*poll) (void *poll_arg);
	void	   *poll_arg;
	uint64_t	memory_limit;	/* 0: none */
	uint64_t	memory;			/* bytes; atomic */
	bool		started;
	bool		finished;
	bool		fetching;		/* rows of the last push are still to be fetched */
	bool		stage_is_out;	/* and may be pushed */
	bool		reads_from;		/* a push_from was cancelled */
	HgjStatus	failed;			/* nothing is left to do but destroy */
	ThreadTable *tables[HGJ_PIPE_JOINS];
	bool		expands;		/* a join may find several rows for one */
	HgjHash		hash;			/* of group keys */
	bool		only_bits[HGJ_PIPE_JOINS];	/* its filter is all of the table */
	Column		columns[HGJ_PIPE_JOINS][HGJ_PIPE_COLUMNS];
	Columns    *filled[HGJ_PIPE_JOINS];	/* whose the columns are, or NULL */
	ThreadTable *fills;
	Columns    *made;			/* columns of the table that it has filled */

	bool		dense;			/* groups are found by position */
	uint64_t	places;
	HgjPipeRange ranges[HGJ_PIPE_KEYS];

	HgjPipeStage stage;
	Run		  **runs;			/* of each thread; NULL: it has had no morsel yet */
	uint32_t	nruns;

	/* the push at hand */
	Morsel	   *morsels;
	uint64_t	nmorsels;
	uint64_t	morsels_room;
	const HgjKeptPush *push;	/* kept rows; NULL: staged ones */
	HgjPipeStage from;			/* staged rows */
	uint64_t	nulls;			/* inputs of theirs that may be NULL */
	PoolJob		job;
	PushWork	work;
	bool		fails;			/* a run has failed; atomic */
	HgjError	failure;		/* the reason of the first that has */

	/* rows that are returned */
	uint32_t	at_run;
	uint64_t	at_row;

	/* groups, after finish */
	uint64_t   *group_rows;
	uint64_t	ngroups;

	uint64_t	ended;			/* rows, of all runs */
	HgjPipelineInfo info;
};

/* runs.c */
extern uint32_t hgj_threads_count(int more);
extern HgjStatus hgj_threads_fail(Run *run, HgjStatus status, const char *message);
extern bool hgj_threads_take(struct HgjPipeline *p, uint64_t bytes);
extern void hgj_threads_give(struct HgjPipeline *p, uint64_t bytes);
extern Run *hgj_run_make(struct HgjPipeline *p, HgjError *err);
extern void hgj_run_free(Run *run);
extern Vector *hgj_vector_make(Run *run);

/* run.c */
extern HgjStatus hgj_run_vector(Run *run, Vector *v, uint32_t pc);
extern HgjStatus hgj_run_rows(Run *run, uint32_t n);

/* join.c */
extern HgjStatus hgj_run_probe(Run *run, Vector *v, uint32_t join, bool *through);
extern bool hgj_run_match(Run *run, Vector *v, uint32_t join);

/* lazy.c */
extern void hgj_lazy_force(Run *run, Vector *v, uint64_t regs);
extern bool hgj_lazy_compute(Run *run, Vector *v, const HgjPipeInstruction *in);
extern bool hgj_lazy_filter(Run *run, Vector *v, uint8_t reg);
extern void hgj_lazy_settle(Vector *v);
extern bool hgj_lazy_packed(const Run *run, const Vector *v, uint8_t reg, HgjPackedKeys *keys);

/* values.c */
extern void hgj_set_all(Vector *v, uint8_t reg, uint64_t word, bool null);
extern bool hgj_run_compute(Vector *v, const HgjPipeInstruction *in);

/* load.c */
extern void hgj_run_input(Run *run, Vector *v, uint8_t reg, uint32_t input);
extern bool hgj_view_has_nulls(const View *view, uint64_t first, uint32_t n);
extern void hgj_run_payload(Run *run, Vector *v, const HgjPipeInstruction *in);

/* states.c */
extern uint64_t hgj_state_identity(uint32_t state);
extern uint64_t hgj_state_result(uint32_t state, uint64_t word);
extern void hgj_state_merge(uint32_t state, uint64_t *word, uint64_t other);
extern bool hgj_state_add(const Vector *v, const HgjPipeWord *word, uint64_t *states,
						  uint32_t width, const uint32_t *group_of, bool one_group);

extern bool hgj_few_begin(FewGroups *few, const Vector *v, const uint32_t *group_of,
						  uint64_t most);
extern bool hgj_few_add(FewGroups *few, const Vector *v, const Plan *plan, uint32_t w,
						uint64_t *states);

/* groups.c */
extern void hgj_run_groups_start(struct HgjPipeline *p, const HgjPipeRange *ranges);
extern HgjStatus hgj_run_groups_add(Run *run, Vector *v);
extern HgjStatus hgj_run_groups_finish(struct HgjPipeline *p, HgjError *err);

/* rows.c */
extern HgjStatus hgj_rows_add(Run *run, Vector *v);
extern HgjStatus hgj_rows_fill(Run *run, Vector *v);
extern HgjStatus hgj_rows_finish(struct HgjPipeline *p, HgjError *err);
extern HgjStatus hgj_column_open(struct HgjPipeline *p, Column *column, uint64_t total,
								 size_t width, bool nullable, HgjError *err);
extern void hgj_columns_leave(Columns *columns);

/* push.c */
extern HgjStatus hgj_push_staged(struct HgjPipeline *p, const HgjPipeStage *from, uint32_t n,
								 uint64_t nulls, HgjError *err);
extern HgjStatus hgj_push_kept(struct HgjPipeline *p, const HgjKeptPush *rows, HgjError *err);
extern HgjStatus hgj_push_settle(struct HgjPipeline *p, HgjError *err);
extern void hgj_push_keep(const HgjKeptMemory *memory);
extern HgjStatus hgj_push_fetch(struct HgjPipeline *p, HgjPipeRows *rows, HgjError *err);

/* pipeline.c */
extern const HgjPipelineMethods hgj_threads_pipelines;

/* Are all rows alive?  There is no selection then. */
static inline bool
all_alive(const Vector *v)
{
	return v->nsel == v->n;
}

/* May rows that are not alive come back? */
static inline bool
is_partial(const Vector *v)
{
	return v->nparked > 0 || v->matching > 0;
}

/* For each row that is alive, or, where `whole`, for all: its number is i. */
#define EACH(v, whole, body) \
	do { \
		const uint32_t n_ = (v)->n; \
		const uint32_t nsel_ = (v)->nsel; \
		const uint32_t *sel_ = (v)->sel; \
		if (whole) \
			for (uint32_t i = 0; i < n_; i++) \
			{ \
				body; \
			} \
		else \
			for (uint32_t at_ = 0; at_ < nsel_; at_++) \
			{ \
				const uint32_t i = sel_[at_]; \
				body; \
			} \
	} while (0)

#define EACH_ALIVE(v, body) EACH(v, all_alive(v), body)

/*
 * For each row that is alive, and, where that is faster, for rows that do not come back, whose
 * registers nobody reads again.
 */
#define EACH_ROW(v, body) EACH(v, all_alive(v) || (!is_partial(v) && (v)->nsel * 4 >= (v)->n), body)

/* May a register be NULL in this vector? */
static inline bool
has_nulls(const Vector *v, uint8_t reg)
{
	return v->nulls_of >> reg & 1;
}

/* Where to note which rows of a register that is set are NULL; NULL: none is, nor has been. */
static inline uint8_t *
nulls_to_set(Vector *v, uint8_t reg, bool nullable)
{
	uint64_t	bit = UINT64_C(1) << reg;

	if (!nullable)
	{
		if (!(v->nulls_of & bit))
			return NULL;
		if (!is_partial(v))
		{
			v->nulls_of &= ~bit;
			return NULL;
		}
		return v->nulls[reg];
	}
	if (!(v->nulls_of & bit) && is_partial(v))
		memset(v->nulls[reg], 0, VECTOR_ROWS);
	v->nulls_of |= bit;
	return v->nulls[reg];
}

static inline bool
bit_is_set(const uint64_t *bits, uint64_t at)
{
	return bits[at / 64] >> (at % 64) & 1;
}

/* The number of a row of a view. */
static inline uint64_t
hgj_number_at(const View *view, uint64_t at)
{
	switch (view->width)
	{
		case 1:
			return ((const uint8_t *) view->numbers)[at];
		case 2:
			return ((const uint16_t *) view->numbers)[at];
		case 3:
			return ((const uint16_t *) view->numbers)[at] | (uint64_t) view->third[at] << 16;
		case 4:
			return ((const uint32_t *) view->numbers)[at];
		default:
			return ((const uint64_t *) view->numbers)[at];
	}
}

/* Where the word of a row stands in the view's table: the last one is for rows that are NULL. */
static inline uint64_t
hgj_entry_at(const View *view, uint64_t at)
{
	uint64_t	last = view->ntable - 1;
	uint64_t	number;

	if (view->validity != NULL && !bit_is_set(view->validity, at))
		return last;
	number = hgj_number_at(view, at);
	return number < last ? number : last;
}

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif							/* HGJ_THREADS_H */
