/*-------------------------------------------------------------------------
 *
 * pipeline.h
 *	  The part of the ABI in which batches stay on the device: a chain of joins,
 *	  of which only row ids come back, or with an aggregation over it, of which
 *	  only group rows do.
 *
 * A pipeline is told once what to do with every row of the outermost source: a plan, which
 * is a list of instructions over registers; then rows are pushed into it,
 * column by column, and it is asked for the groups at the end, or for the rows
 * after each push.  Included by engine.h; an engine without it has NULL in its
 * table.
 *
 * PLAN AND TERMS.  A plan (HgjPipelineSpec) says nothing of a query's constants and parameters:
 * where they stand, instructions name a value by its number.  Plans that do the same are equal by
 * their bytes.  The values, HAVING's bounds, and limits are the terms on which a plan is run once.
 *
 * THE LIFE OF A PIPELINE
 *
 *	  create		input columns, joins, instructions, group keys, state words; with
 *					them the joins' tables
 *	  payload *		columns of the tables' rows, by row id, in portions
 *	  start			what is known of the group keys' values: memory for groups
 *	  stage, push *	a free staging buffer, filled by the caller, sent on its way
 *	  push_kept *	rows that are in the caller's memory, before, after or in between
 *	  finish		wait for everything; how many groups there are
 *	  groups *		their rows
 *	  destroy		before the tables
 *
 * With spec.rows there are no groups, and the middle of it is
 *
 *	  start			without ranges
 *	  (stage, push, fetch *) *	all rows that have come out of one push, or push_kept,
 *					before the next one is begun
 *
 * With spec.fills the rows are those of a build side:
 *
 *	  start			without ranges
 *	  stage, push, push_kept *	as with groups
 *	  finish		append them to the caller's table; how many there are
 *	  destroy		when their columns are not needed any more
 *
 * REGISTERS hold 64 bits and may be NULL.  Integers are sign-extended (U1 and
 * U4: zero-extended), float8 is its bits, float4 its bits in the lower half.
 *
 * INSTRUCTIONS run from the first to HGJ_PIPE_END for every row.  A PROBE looks
 * its join's key registers up.  What follows it runs once for each candidate; a
 * MATCH, later, says that the candidate has passed.  Whatever gives a row up
 * (FILTER, or END when it is through) goes back to the last PROBE that has a
 * candidate left.  A join with `fill` goes on once after its MATCH, with NULL
 * columns, for a row of which no candidate has passed; one without `pass` does
 * only that (anti); one with `single` drops the candidates after the first that
 * has passed.  Jumps lead forward, and neither over a PROBE nor a MATCH.
 *
 * ERRORS.  An instruction whose PostgreSQL counterpart raises an error makes
 * the pipeline fail with HGJ_ROW_FAILED, in the call after which that is known:
 * the caller has seen no row yet and can run the query in another way, which
 * raises the error properly.  The same goes for everything else that can come
 * up on the way: HGJ_LIMIT (more groups than there is room for),
 * HGJ_OUT_OF_MEMORY, HGJ_DEVICE_LOST.  After anything but
 * HGJ_OK and HGJ_CANCELLED there is nothing left to do but destroy.
 *
 * GROUPS.  Two rows belong to the same group when their key registers are equal,
 * NULLs included.  A group row is: a word whose bit k says that key k is NULL;
 * the keys; the state words.  Without keys there is one group.  State word 0
 * has to count the rows.  Groups one of whose values `having` says is out of bounds are
 * left out, and counted by info; so that memory for the others alone is needed outside.
 *
 * KEPT ROWS.  Columns that the caller keeps in memory (kept/chunk.h) need not be
 * staged: push_kept says where their numbers are, and the engine has its own copies
 * of these, which stay on the device for other pipelines.  An array has a number
 * that no other one ever has, so that a copy is what it is of for ever.
 *
 * ROWS.  What ends is returned as the number of its row in the push, pieces one
 * behind the other, and, for each join, that of the row of its table, in any
 * order.  There may be any number for one push; they come in portions of bounded
 * size, and what is to come waits on the device.  Instructions that can fail are not for this: rows that have been
 * returned could not be taken back.  info's counts are those of all pushes whose
 * rows have all been fetched.  Where a call fails after rows have been returned,
 * the caller knows which pushes they were of.
 *
 * FILLING A TABLE.  What ends is a row of caller.fills, a table that has been created and
 * has no rows yet: finish appends the key registers as its key words, none of which may be
 * NULL (a FILTER comes before), under row ids from 0 on, in any order.  Registers of
 * `columns` stay with the pipeline, and are payload columns of every pipeline that names
 * it as caller.filled of the join with that table; none is sent then.  It may be
 * destroyed before these, which keep what they read; after finish the tables of its own
 * joins may be, too.  HGJ_LIMIT: more rows than there is room for.
 *
 * MEMORY.  The pipeline belongs to the caller; its copy of the spec, staging
 * buffers, payload columns and groups to it.  Nothing is allocated between start
 * and finish, but staging buffers when the first one is asked for, and by one that fills a
 * table, or returns kept rows.  Its account is its own
 * (HgjPipelineTerms.memory_limit), besides those of the tables, which must stay as they are until
 * destroy; so must what poll_arg points to.  The caller's structs themselves are read
 * by create only.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_PIPELINE_H
#define HGJ_PIPELINE_H

#include "ops.h"

#define HGJ_PIPE_REGISTERS	64
#define HGJ_PIPE_INPUTS		32
#define HGJ_PIPE_JOINS		8
#define HGJ_PIPE_COLUMNS	16	/* payload columns of a join */
#define HGJ_PIPE_KEYS		8	/* key words of a join, group keys */
#define HGJ_PIPE_WORDS		32	/* state words of a group */
#define HGJ_PIPE_HAVING		4	/* bounds of groups' values */
#define HGJ_PIPE_VALUES		256
#define HGJ_PIPE_CODE		512
#define HGJ_PIPE_NONE		255 /* no register */
#define HGJ_PIPE_DROP		(2 * HGJ_PIPE_JOINS + 1)	/* arg of FILTER */

/* An operation is strict where nothing else is said: NULL if an operand is. */
typedef enum HgjPipeOp
{
	HGJ_PIPE_END,				/* into its group, or returned */
	HGJ_PIPE_INPUT,				/* dst = input column `arg` */
	HGJ_PIPE_PAYLOAD,			/* dst = column `arg` of join a's row */
	HGJ_PIPE_CONSTANT,			/* dst = imm */
	HGJ_PIPE_VALUE,				/* dst = value `arg` of the terms, which may be NULL */
	HGJ_PIPE_NULL,				/* dst = NULL */
	HGJ_PIPE_MOVE,				/* dst = a, NULL or not */
	HGJ_PIPE_COMPARE,			/* dst = a (HgjComparison c) b, of `kind` */
	HGJ_PIPE_DISTINCT,			/* dst = a IS DISTINCT FROM b, of `kind` */
	HGJ_PIPE_ARITHMETIC,		/* dst = a (HgjArithmetic c) b, of `kind` */
	HGJ_PIPE_CAST,				/* dst = a, from `kind` to HgjKind c */
	HGJ_PIPE_AND,				/* of booleans, with SQL's NULLs */
	HGJ_PIPE_OR,
	HGJ_PIPE_NOT,
	HGJ_PIPE_IS_NULL,
	HGJ_PIPE_IS_NOT_NULL,
	HGJ_PIPE_BOOL_TEST,			/* bits of c: true, false, NULL become true */
	HGJ_PIPE_KEY_WORD,			/* the key word of a, which is of `kind` */
	HGJ_PIPE_JUMP,				/* to instruction `arg` */
	HGJ_PIPE_JUMP_UNLESS,		/* a is false or NULL */
	HGJ_PIPE_JUMP_FALSE,		/* a is false, not NULL */
	HGJ_PIPE_JUMP_TRUE,
	HGJ_PIPE_JUMP_VALID,		/* a is not NULL */
	HGJ_PIPE_FILTER,			/* give up unless a is true; counted for join
								 * arg - 1, if arg is not 0: a candidate; for join
								 * arg - 1 - HGJ_PIPE_JOINS: a row behind its MATCH;
								 * if it is HGJ_PIPE_DROP, an input row, before the
								 * first PROBE */
	HGJ_PIPE_PROBE,				/* join a */
	HGJ_PIPE_MATCH				/* join a */
} HgjPipeOp;

typedef struct HgjPipeInstruction
{
	uint8_t		op;
	uint8_t		kind;
	uint8_t		dst;
	uint8_t		a;
	uint8_t		b;
	uint8_t		c;
	uint16_t	arg;
	int64_t		imm;
} HgjPipeInstruction;

typedef struct HgjPipeJoin
{
	bool		pass;
	bool		fill;
	bool		single;
	uint32_t	nkeys;			/* the table's key words */
	uint8_t		keys[HGJ_PIPE_KEYS];
	uint32_t	ncolumns;
	uint8_t		kinds[HGJ_PIPE_COLUMNS];	/* HgjKind of payload columns */
} HgjPipeJoin;

/* What a state word becomes with a row whose `filter` register is true. */
typedef enum HgjPipeState
{
	HGJ_PIPE_COUNT,				/* plus one, if reg is NONE or not NULL */
	HGJ_PIPE_SUM,				/* plus reg, wrapping around */
	HGJ_PIPE_SUM_LOW,			/* plus the low 32 bits of reg, unsigned: */
	HGJ_PIPE_SUM_HIGH,			/* ... and its upper bits; 128 bits in all: of a pair, one behind
								 * the other, low + 2^32 high is the sum, however it is divided */
	HGJ_PIPE_SUM_FLOAT,			/* plus reg, a float8; a sum that is not finite
								 * is HGJ_ROW_FAILED */
	HGJ_PIPE_MIN,				/* of signed 64-bit registers */
	HGJ_PIPE_MAX,
	HGJ_PIPE_MIN_FLOAT,			/* of float8; where -0 is met: HGJ_ROW_FAILED */
	HGJ_PIPE_MAX_FLOAT
} HgjPipeState;

typedef struct HgjPipeWord
{
	uint8_t		state;			/* HgjPipeState; NULLs leave it as it is */
	uint8_t		reg;
	uint8_t		filter;			/* or NONE */
} HgjPipeWord;

/* A signed integer of 128 bits: high * 2^64 + low. */
typedef struct HgjPipeWide
{
	uint64_t	low;
	int64_t		high;
} HgjPipeWide;

/*
 * Bounds of a value: a group whose value lies outside is left out.  The value is a state
 * word's, or that of SUM_LOW and the SUM_HIGH behind it.  Words of floats have no bounds.
 */
typedef struct HgjPipeHaving
{
	uint8_t		word;			/* the state word, or SUM_LOW */
	uint8_t		count;			/* the word that counts values: 0 makes it NULL; or NONE */
	bool		wide;			/* SUM_LOW and SUM_HIGH are the value */
	HgjPipeWide least;
	HgjPipeWide most;
} HgjPipeHaving;

/* The plan.  Numbers only: it means the same in another process. */
typedef struct HgjPipelineSpec
{
	uint32_t	ninputs;
	uint8_t		inputs[HGJ_PIPE_INPUTS];	/* HgjKind */
	uint32_t	njoins;			/* in the order of their PROBEs */
	HgjPipeJoin joins[HGJ_PIPE_JOINS];
	uint32_t	ncode;
	HgjPipeInstruction code[HGJ_PIPE_CODE];
	bool		rows;			/* they are returned: no keys, no words */
	bool		fills;			/* or are a table's: key words in keys, no words, and */
	uint32_t	ncolumns;		/* payload columns: */
	uint8_t		columns[HGJ_PIPE_COLUMNS];	/* registers */
	uint8_t		kinds[HGJ_PIPE_COLUMNS];	/* HgjKind */
	uint32_t	nkeys;			/* of groups, or key words */
	uint8_t		keys[HGJ_PIPE_KEYS];
	uint32_t	nwords;
	HgjPipeWord words[HGJ_PIPE_WORDS];
} HgjPipelineSpec;

/* On what terms the plan is run.  Numbers only, too. */
typedef struct HgjPipelineTerms
{
	uint32_t	nvalues;		/* number of the values */
	int64_t		values[HGJ_PIPE_VALUES];	/* values as in registers */
	uint64_t	nulls[HGJ_PIPE_VALUES / 64];	/* bits of those that are NULL */
	uint32_t	nhaving;		/* number of bounds, which take keys */
	HgjPipeHaving having[HGJ_PIPE_HAVING];	/* bounds of the groups' values */
	uint64_t	memory_limit;	/* bytes on the device, 0 = none */
	int			device;			/* number of the device */
	uint32_t	timeout_ms;		/* as in HgjTableSpec */
} HgjPipelineTerms;

/* Is value i NULL? */
static inline bool
hgj_pipe_value_is_null(const HgjPipelineTerms *terms, uint32_t i)
{
	return (terms->nulls[i / 64] >> (i % 64)) & 1;
}

/* What goes with it, and means something to the caller's process only. */
typedef struct HgjPipelineCaller
{
	const HgjPipelineTerms *terms;	/* NULL: no values, bounds or limits, and the first device */
	HgjTable   *tables[HGJ_PIPE_JOINS]; /* of the joins: built, and not changed any
										 * more */
	struct HgjPipeline *filled[HGJ_PIPE_JOINS]; /* has filled it, and has its columns;
												 * NULL: they are sent */
	HgjTable   *fills;			/* with spec.fills: without rows yet */
	int			(*poll) (void *poll_arg);	/* may be NULL */
	void	   *poll_arg;
} HgjPipelineCaller;

/* What is known of a group key: its values lie in low .. high, if `bounded`. */
typedef struct HgjPipeRange
{
	bool		bounded;
	int64_t		low;
	int64_t		high;
} HgjPipeRange;

/* A staging buffer: the caller writes up to `capacity` rows. */
typedef struct HgjPipeStage
{
	uint32_t	capacity;		/* a multiple of 64 */
	void	   *values[HGJ_PIPE_INPUTS];	/* at the columns' own width */
	uint64_t   *validity[HGJ_PIPE_INPUTS];	/* bit i set: row i is not NULL */
} HgjPipeStage;

/* Rows that have come out; the arrays are the pipeline's until the next fetch or
 * push. */
typedef struct HgjPipeRows
{
	uint32_t	n;				/* may be 0 */
	bool		last;			/* of the push */
	const uint32_t *input;		/* row of the push */
	const uint32_t *row[HGJ_PIPE_JOINS];	/* of the join's table, or NO_ROW */
} HgjPipeRows;

#define HGJ_PIPE_NO_ROW		UINT32_MAX

/* A part of the caller's memory that never changes. */
typedef struct HgjKeptArray
{
	uint64_t	id;				/* with `at`, of this array alone; not 0 */
	uint64_t	at;				/* bytes behind the memory's beginning; a multiple of 8 */
	uint64_t	bytes;			/* 0: there is none */
} HgjKeptArray;

/*
 * An input of some rows.  Without a table, that of row i is base plus number first + i,
 * in 64 bits.  With one, it is the word of that number in the table, as a register has
 * it, or NULL if the number's bit behind the words is not set; the last word is for rows
 * that are NULL.  Tables go with the call.
 *
 * Numbers of three bytes are two arrays in one: of the first two bytes of each, and, behind
 * two thirds of all, of the third ones; it takes a multiple of 24 bytes.
 */
typedef struct HgjKeptInput
{
	HgjKeptArray numbers;		/* unsigned, of `width` bytes */
	HgjKeptArray validity;		/* bit first + i set: it is not NULL; none: no NULLs */
	uint64_t	base;
	uint32_t	first;
	uint32_t	width;			/* 1, 2, 3, 4 or 8 */
	uint32_t	table;			/* words behind the tables' beginning */
	uint32_t	ntable;			/* words; 0: no table */
} HgjKeptInput;

/* Of numbers of three bytes, where the third ones begin. */
static inline uint64_t
hgj_kept_high(const HgjKeptArray *numbers)
{
	return numbers->bytes / 3 * 2;
}

/* Pieces of one push_kept, and words of their tables. */
#define HGJ_KEPT_PIECES		256
#define HGJ_KEPT_WORDS		32768

/* What a table of n words takes, with the bits behind them. */
#define HGJ_KEPT_TABLE(n)	((n) + ((n) + 63) / 64)

/* What goes with one push_kept. */
typedef struct HgjKeptPush
{
	uint32_t	npieces;
	const uint32_t *nrows;		/* of each piece */
	const HgjKeptInput *inputs; /* those of the first piece, as many as the pipeline has,
								 * then those of the next one, and so on */
	uint32_t	nwords;
	const uint64_t *words;		/* of tables */
	bool		only_there;		/* the memory may be others' by now: copies that the
								 * device has will do; HGJ_UNSUPPORTED: it has not all */
	bool		may_read_on;	/* not where rows are returned: whatever push_kept says, the
								 * memory is the caller's again only when the next one,
								 * finish or kept_read has returned, or destroy */
} HgjKeptPush;

/* The memory that they are of. */
typedef struct HgjKeptMemory
{
	const void *memory;			/* NULL: there is none */
	uint64_t	bytes;
	const uint64_t *used;		/* so many of its first bytes may be in use, read
								 * atomically; NULL: all */
	uint64_t	most;			/* bytes of copies on a device; 0: a part of what is free */
	bool		stay;			/* copies stay when no table or pipeline is left */
	bool		(*let_write) (bool yes);	/* NULL, or the memory can only be read in this
											 * process: makes that otherwise, for a driver's
											 * sake, and so again; false: it could not */
	bool		(*give_back) (void);	/* NULL, or for who finds no memory on a device: has
										 * tables and pipelines destroyed that nobody
										 * uses; false: there are none */
} HgjKeptMemory;

typedef struct HgjPipelineInfo
{
	uint64_t	rows;			/* pushed, of which so many were */
	uint64_t	kept_rows;		/* kept ones, */
	uint64_t	kept_bytes;		/* whose arrays are on the device */
	uint64_t	sent;			/* bytes, payload columns included */
	uint64_t	memory;			/* bytes on the device, at the height */
	double		transfer_ms;	/* sums over batches, which overlap */
	double		kernel_ms;		/* time of kernels, or that its threads were busy, together */
	uint64_t	joined[HGJ_PIPE_JOINS]; /* rows that went on after MATCH, less: */
	uint64_t	filtered[HGJ_PIPE_JOINS];	/* those that a FILTER gave up */
	uint64_t	removed[HGJ_PIPE_JOINS];	/* candidates that a FILTER gave up */
	uint64_t	dropped;		/* input rows that one gave up */
	uint64_t	left_out;		/* groups that `having` is against, after finish */
	uint32_t	stage_rows;		/* of a staging buffer, once it is started */
	uint32_t	threads;		/* number of host threads that have run rows of it; 0 on a GPU */
	uint64_t	most_rows;		/* number of rows of the thread that has run most of them */
	uint64_t	rejected[HGJ_PIPE_JOINS];	/* rows that each table's filter kept off its graph; 0 on a GPU */
} HgjPipelineInfo;

typedef struct HgjPipeline HgjPipeline;

typedef struct HgjPipelineMethods
{
	HgjStatus	(*create) (const HgjPipelineSpec *spec,
						   const HgjPipelineCaller *caller,
						   HgjPipeline **pipeline, HgjError *err);
	void		(*destroy) (HgjPipeline *pipeline); /* NULL is allowed */

	/*
	 * Values of a payload column for rows first (a multiple of 64) to
	 * first + n - 1.  validity may be NULL; it and the values are the caller's
	 * again when the call returns.
	 */
	HgjStatus	(*payload) (HgjPipeline *pipeline, uint32_t join,
							uint32_t column, uint32_t first, uint32_t n,
							const void *values, const uint64_t *validity,
							HgjError *err);

	/* ranges: one per group key.  expected: groups, where they are not bounded, or rows
	 * of a table. */
	HgjStatus	(*start) (HgjPipeline *pipeline, const HgjPipeRange *ranges,
						  uint64_t expected, HgjError *err);

	/* Wait for a free staging buffer; polls. */
	HgjStatus	(*stage) (HgjPipeline *pipeline, HgjPipeStage *stage,
						  HgjError *err);

	/* Its first n rows; bit i of nulls: validity[i] means something. */
	HgjStatus	(*push) (HgjPipeline *pipeline, uint32_t n, uint64_t nulls,
						 HgjError *err);

	/*
	 * Where kept rows are, for the life of the process; before anything else.  NULL:
	 * push_kept needs no such thing.
	 */
	void		(*keep) (const HgjKeptMemory *memory);

	/*
	 * Memory of the caller's, as long as the process lives, in which there may be rows for
	 * push_from; once, after open.  NULL: push_from takes memory of any kind.
	 */
	void		(*keep_staging) (const void *memory, uint64_t bytes);

	/*
	 * As stage and push, of columns in that memory instead of the staging buffer's, whose
	 * capacity is the same; none is given out then.  When it returns they have been read.
	 * HGJ_UNSUPPORTED: they are to be staged.  NULL: all are.
	 */
	HgjStatus	(*push_from) (HgjPipeline *pipeline, const HgjPipeStage *from, uint32_t n,
							  uint64_t nulls, HgjError *err);

	/* Can pipelines fill tables (spec.fills)? */
	bool		fills;

	/* Are there as many groups as memory holds, however many start expects? */
	bool		grows;

	/*
	 * Rows that the caller keeps; polls.  Pieces are 1 to HGJ_KEPT_PIECES.
	 * HGJ_UNSUPPORTED: not these, or none of this pipeline, which goes on: stage them.
	 * When it returns the memory is the caller's again, unless it may read on, or there is
	 * kept_outcome, and a staging buffer that has been given out is not.  NULL: the engine
	 * does not know of any.
	 */
	HgjStatus	(*push_kept) (HgjPipeline *pipeline, const HgjKeptPush *rows,
							  HgjError *err);

	/* Wait until memory of kept rows is not read any more; no poll.  NULL: it never is then. */
	void		(*kept_read) (HgjPipeline *pipeline);

	/*
	 * Where this is not NULL, a push of kept rows may be under way when push_kept returns.
	 * This waits for it, and says in its place what it came to; to be called before anything
	 * else about the pipeline but destroy.  The memory of the push before is the caller's
	 * again, and its own after finish, or, where rows are returned, at once: whoever releases
	 * it before waits (kept/store.h, hgj_store_lend()).  HGJ_CANCELLED: call it again.
	 */
	HgjStatus	(*kept_outcome) (HgjPipeline *pipeline, HgjError *err);

	/*
	 * Of n owners of arrays (HgjKeptArray.id), in ascending order, the bytes that devices
	 * have copies of; the caller's poll is asked.  NULL where push_kept is, and where kept
	 * rows are read where they are, so that there are no copies.
	 */
	HgjStatus	(*kept_bytes) (const HgjPipelineCaller *caller, const uint64_t *ids,
							   uint64_t n, uint64_t *bytes, HgjError *err);

	/*
	 * Copies, ahead of pipelines that will ask for them, of arrays none of which is empty,
	 * where there is room that nothing has to leave for them; for one thread at a time.
	 * *done: of the first so many there are copies, or cannot be.  HGJ_OK with fewer of
	 * them: the memory is not ready, ask again in a while; HGJ_UNSUPPORTED: there is no
	 * room.  When it returns the memory has been read.  NULL: copies are made when a
	 * pipeline asks.
	 */
	HgjStatus	(*prewarm) (const HgjKeptArray *arrays, uint32_t n, uint32_t *done,
							HgjError *err);

	/*
	 * Of owners of arrays from `first` to `last`, n live, in ascending order: copies of what
	 * the others had go, unless somebody reads them.  Returns their bytes.  NULL where
	 * prewarm is.
	 */
	uint64_t	(*sweep) (uint64_t first, uint64_t last, const uint64_t *live, uint64_t n);

	/*
	 * spec.rows: the next rows that have come out of the last push; polls.  NULL:
	 * the engine returns no rows.
	 */
	HgjStatus	(*fetch) (HgjPipeline *pipeline, HgjPipeRows *rows,
						  HgjError *err);

	/* Groups that are not left out, or rows of the table, which have been appended.  A
	 * pipeline that fills one is only destroyed after it. */
	HgjStatus	(*finish) (HgjPipeline *pipeline, uint64_t *ngroups,
						   HgjError *err);

	/* Rows first to first + n - 1, of 1 + nkeys + nwords words each. */
	HgjStatus	(*groups) (HgjPipeline *pipeline, uint64_t first, uint64_t n,
						   uint64_t *rows, HgjError *err);
	void		(*info) (const HgjPipeline *pipeline, HgjPipelineInfo *info);
} HgjPipelineMethods;

#endif							/* HGJ_PIPELINE_H */
