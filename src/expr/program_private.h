/*-------------------------------------------------------------------------
 *
 * program_private.h
 *	  What the files of a program share (program.h is what others see).
 *
 * A program is a tree of steps.  A step is run for the rows of a chunk (or for
 * fewer of them, where AND, OR and CASE decide that the others must not be
 * looked at) and leaves one value per row, densely, and one byte per row that
 * says whether it is NULL.
 *
 * program.c			the public functions; clauses narrow a selection
 * program_clause.c		clauses over one column and constants, prepared
 * program_make.c		quals and expressions to programs
 * program_compile.c	expression trees to steps
 * program_branches.c	CASE, COALESCE and the like to steps
 * program_constant.c	what has no column in it
 * program_functions.c	which steps do what PostgreSQL's functions do
 * program_steps.c		steps over the rows of a chunk
 * program_set.c		the constants of IN
 * program_text.c		strings compared with constants
 * program_like.c		strings matched with patterns
 * program_call.c		functions that there is no loop for, row by row
 * program_memo.c		what these have returned, where arguments come again
 * program_by_value.c	what is evaluated once for each value of a column of strings
 * program_values.c		such steps over the rows of a chunk
 * program_errors.c		errors that these raise
 * program_decimal.c	numerics as 64-bit integers: expressions to steps
 * program_decimal_run.c	such steps over the rows of a chunk
 * program_ops_*.c		the loops, which know nothing but arrays
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_PROGRAM_PRIVATE_H
#define HGJ_PROGRAM_PRIVATE_H

#include "compat.h"

#include "columns/decimal.h"
#include "expr/program.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Rows of a chunk: its temporaries stay in cache.  A multiple of 64. */
#define HGJ_CHUNK			1024

/*
 * A loop computes n values.  nulls[i] is not 0 where an operand is NULL (nulls
 * itself is NULL: nowhere); what is computed there is not looked at.  True: for
 * some other row PostgreSQL raises an error, and the results mean nothing.
 */
typedef bool (*HgjLoop) (void *result, const void *a, const void *b,
						 const uint8 *nulls, uint32 n);

/* The value of a constant, a parameter, or of anything without columns. */
typedef struct HgjConstant
{
	ExprState  *state;			/* NULL: a Const, whose value is known */
	bool		ready;			/* the value is that of this execution */
	Datum		value;
	bool		isnull;
	HgjLoop		cast;			/* of the value, to the kind of the step; NULL:
								 * it is of that kind */
	uint8		cast_from;		/* widths */
	uint8		cast_to;
	bool		keep;			/* the value is by reference, and must stay: */
	int16		typlen;
	bool		kept;			/* `last` is a copy of ours */
	Datum		last;
} HgjConstant;

/* The elements of an array, as 64-bit keys (program_set.c). */
typedef struct HgjSet
{
	uint32		nkeys;
	bool		has_nulls;
	int64		low;			/* keys are from low ... */
	uint64		span;			/* ... to low + span: */
	int64	   *keys;			/* in order, or NULL: there are too many; */
	uint64	   *bitmap;			/* a bit for each of these, or */
	int64	   *slots;			/* a hash table, in which */
	int64		empty;			/* this key, not in the set, marks free slots */
	uint64		mask;
	uint64		multiplier;		/* of the hash function */
	bool		probing;		/* some keys are not where they hash to */
	MemoryContext context;		/* of the arrays above; NULL: not yet built */
} HgjSet;

/*
 * What is known of values that point into a chunk of a kept column, by the pointers, as
 * long as rows are of that chunk.  What has the same place drives out what was there.
 */
#define HGJ_KEPT_MEMO_BITS	12
#define HGJ_KEPT_MEMO		(1 << HGJ_KEPT_MEMO_BITS)

typedef struct HgjKeptMemo
{
	uint64		kept_in;
	struct
	{
		Datum		value;		/* 0: none */
		uint32		known;
	}			entries[HGJ_KEPT_MEMO];
} HgjKeptMemo;

/* The memo for rows of this chunk (0: NULL), made in the context if there is none. */
static inline HgjKeptMemo *
hgj_kept_memo(HgjKeptMemo **memo, uint64 kept_in, MemoryContext context)
{
	if (kept_in == 0)
		return NULL;
	if (*memo == NULL)
		*memo = MemoryContextAllocZero(context, sizeof(HgjKeptMemo));
	else if ((*memo)->kept_in != kept_in)
		memset((*memo)->entries, 0, sizeof((*memo)->entries));
	(*memo)->kept_in = kept_in;
	return *memo;
}

static inline uint32
hgj_kept_memo_place(Datum value)
{
	return (uint32) (((uint64) value * UINT64CONST(0x9E3779B97F4A7C15)) >>
					 (64 - HGJ_KEPT_MEMO_BITS));
}

/* An expression that is evaluated once a value (program_values.c). */
typedef struct HgjByValue
{
	ExprState  *state;			/* over the first column of ... */
	TupleTableSlot *slot;
	ExprContext *econtext;
	int16		attlen;			/* of the column */
	bool		changes;		/* from one execution to the next */
	bool		may_raise;
	bool		by_reference;	/* its results are, ... */
	int16		result_len;		/* ... so long */
	bool		given_up;		/* there are too many values */
	bool		settled;		/* the first rows have been looked back upon */
	bool		some_null;		/* results are */
	uint64		rows;			/* lately */
	uint64		evaluated;		/* of these */
	MemoryContext results;		/* by-reference ones of the table, or NULL */

	MemoryContext context;		/* of what follows; NULL: there is none */
	struct HgjDictionary *dictionary;
	uint32		places;
	uint8	   *known;			/* of each */
	char	   *table;			/* its result */
	HgjKeptMemo *memo;			/* places of values */
} HgjByValue;

typedef enum HgjStepOp
{
	HGJ_STEP_INPUT,
	HGJ_STEP_CONSTANT,
	HGJ_STEP_COMPARE,			/* these are strict, NULL if an argument is, and */
	HGJ_STEP_ARITHMETIC,		/* have a loop; `code` says which comparison, */
	HGJ_STEP_CAST,				/* arithmetic or kind of the result it is, or */
	HGJ_STEP_DATE,				/* which HgjDateOp */
	HGJ_STEP_DISTINCT,			/* not strict; its loop is NE's */
	HGJ_STEP_AND,
	HGJ_STEP_OR,
	HGJ_STEP_NOT,
	HGJ_STEP_IS_NULL,
	HGJ_STEP_IS_NOT_NULL,
	HGJ_STEP_BOOL_TEST,			/* IS TRUE and the like */
	HGJ_STEP_MEMBER,			/* IN, or with `invert` NOT IN */
	HGJ_STEP_TEXT,				/* the same of strings; of one as well */
	HGJ_STEP_LIKE,				/* or with `invert` NOT LIKE */
	HGJ_STEP_PART,				/* characters of a string (program_part.c) */
	HGJ_STEP_CALL,				/* a strict function of PostgreSQL's */
	HGJ_STEP_BY_VALUE,			/* args: a column, and maybe other steps that do
								 * the same */
	HGJ_STEP_CASE,				/* args: condition, result, ..., else */
	HGJ_STEP_COALESCE,

	/* the result of these, down to ALIGN, is decimals */
	HGJ_STEP_DECIMAL,			/* those that numerics are */
	HGJ_STEP_DECIMAL_INTEGER,	/* of 64-bit integers */
	HGJ_STEP_DECIMAL_ARITHMETIC,	/* operands of ADD and SUB have the same unit */
	HGJ_STEP_DECIMAL_ALIGN,		/* in a smaller unit */
	HGJ_STEP_DECIMAL_COMPARE,	/* of the same unit */
	HGJ_STEP_DECIMAL_RANGE,		/* a comparison with a numeric constant */
	HGJ_STEP_NUMERIC			/* numerics of decimals */
} HgjStepOp;

/* What is not computed from dates as from the integers that they are. */
typedef enum HgjDateOp
{
	HGJ_DATE_ADD,				/* days */
	HGJ_DATE_SUB,
	HGJ_DATE_DIFF,
	HGJ_DATE_ORDER,				/* to what compares with timestamps */
	HGJ_DATE_TIMESTAMP,
	HGJ_DATE_OPS
} HgjDateOp;

/* A function of PostgreSQL, as the step that does the same for many rows. */
typedef struct HgjOperation
{
	HgjStepOp	op;				/* one that has a loop */
	uint8		code;			/* HgjComparison, HgjArithmetic, HgjDateOp, or the
								 * HgjKind that is cast to */
	HgjKind		operand;		/* what the arguments are cast to (exact, monotone) */
	HgjKind		result;
	HgjKind		args[2];		/* of the function */
	int			nargs;
	bool		order_dates;	/* a date is cast by HGJ_DATE_ORDER */
	PGFunction	raise;			/* for a row for which the loop says true: raises
								 * PostgreSQL's error; NULL: it never does */
} HgjOperation;

typedef struct HgjStep
{
	HgjStepOp	op;
	HgjKind		kind;			/* of the result */
	uint8		width;
	bool		lazy;			/* it can raise an error, or something below it
								 * can: only for rows PostgreSQL would look at */
	int			nargs;
	struct HgjStep **args;

	int			input;			/* INPUT */
	HgjConstant *constant;		/* CONSTANT; MEMBER's array */
	HgjKind		operand;		/* where there is a loop: of the arguments */
	uint8		code;
	HgjLoop		loop;
	PGFunction	raise;
	bool		exact;			/* a cast that keeps the order */
	bool		test_true;		/* BOOL_TEST: what each becomes */
	bool		test_false;
	bool		test_null;
	bool		invert;			/* MEMBER */
	Oid			element_type;
	HgjSet	   *set;
	struct HgjTextSet *texts;	/* TEXT */
	struct HgjLike *like;		/* LIKE */
	struct HgjPart *part;		/* PART */
	struct HgjCall *call;		/* CALL */
	bool		raises;			/* CALL: it may, and is not asked again */
	bool		at_once;		/* CALL: its errors cannot even be put aside */
	HgjByValue *by_value;		/* BY_VALUE */

	/* decimals (see HgjDecimals) */
	bool		decimal;		/* the values are */
	uint8		scale;			/* in units of 10^-scale */
	uint8		display;		/* where there are no `displays` */
	int64		factor;			/* ALIGN */
	PGFunction	function;		/* PostgreSQL's own, for what is no decimal */
	bool		shared;			/* several steps have it as an argument, or roots
								 * are it: it is run for whole chunks only, ... */
	uint64		chunk;			/* ... once for each; the number of the last one */
	int64		low;			/* RANGE: the decimals that the comparison is ... */
	int64		high;			/* ... true of; those outside with `invert` */

	/* of the rows it was run for last */
	const void *values;
	const uint8 *nulls;			/* NULL: none of them */
	const uint8 *displays;		/* of decimals; NULL: all are `display` */
	uint64		kept_in;		/* INPUT: of the vector */

	void	   *value_buffer;	/* HGJ_CHUNK x width */
	uint8	   *null_buffer;
	uint8	   *display_buffer; /* of decimals */
	bool		spread;			/* CONSTANT: value_buffer is filled */
	uint32	   *sel;			/* AND, OR, CASE, COALESCE: rows undecided, */
	uint32	   *index;			/* and which of the step's rows they are */
} HgjStep;

/* Rows of the inputs: sel[0 .. n), or first to first + n - 1. */
typedef struct HgjRows
{
	const uint32 *sel;
	uint32		first;			/* sel is NULL; a multiple of 64 */
	uint32		n;				/* at most HGJ_CHUNK */
	bool		whole;			/* the program's chunk, not fewer rows of it */
} HgjRows;

/* How a clause of a filter is run. */
typedef enum HgjTest
{
	HGJ_TEST_STEP,				/* by its step; the others are over one input */
	HGJ_TEST_RANGE,				/* in an interval of integers, or outside */
	HGJ_TEST_FLOAT,				/* compared with a constant */
	HGJ_TEST_MEMBER,
	HGJ_TEST_NULL				/* IS NULL, IS NOT NULL */
} HgjTest;

/* Comparisons of machine floats; none is true of NaN but those with NOT. */
typedef enum HgjFloatTest
{
	HGJ_FLOAT_EQ,
	HGJ_FLOAT_LT,
	HGJ_FLOAT_LE,
	HGJ_FLOAT_NOT_EQ,
	HGJ_FLOAT_NOT_LT,
	HGJ_FLOAT_NOT_LE,
	HGJ_FLOAT_TESTS
} HgjFloatTest;

/* One of the clauses that a row must pass, in this order. */
typedef struct HgjClause
{
	HgjStep    *step;
	HgjTest		test;
	int			input;
	HgjKind		kind;			/* of the input */

	/* RANGE, FLOAT: comparisons of the input with constants, all to be true */
	int			nbounds;
	struct HgjBound *bounds;
	List	   *merged;			/* steps of the clauses merged into this one */

	/* what program_clause.c made of the constants */
	bool		prepared;
	bool		never;			/* no row passes */
	bool		invert;			/* RANGE: outside; NULL: IS NOT NULL */
	int64		low;
	uint64		span;
	HgjFloatTest float_test;
	double		float_bound;
} HgjClause;

typedef struct HgjBound
{
	HgjComparison comparison;	/* input ... constant */
	HgjStep    *constant;
	bool		order_dates;	/* of dates, with a timestamp */
} HgjBound;

/* One of several expressions that are decimals, of a program that has no root. */
typedef struct HgjDecimalRoot
{
	HgjStep    *step;
	HgjBuffer	buffer;
	uint8	   *displays;		/* as many as there is room for in the buffer */
	uint32		room;
	HgjDecimals decimals;
} HgjDecimalRoot;

struct HgjProgram
{
	HgjStep    *root;			/* NULL: a filter of several clauses */
	int			nclauses;		/* 0: the result is not boolean */
	HgjClause  *clauses;
	int			nconstants;
	HgjStep   **constants;		/* CONSTANT and MEMBER steps */
	List	   *by_values;		/* BY_VALUE steps */

	const HgjVector *const *inputs; /* of this run */
	ExprContext *econtext;
	bool		failed;			/* a loop said true: find the row ... */
	bool		single;			/* ... by running one at a time, as now */
	bool		undecided;		/* there may be none: something was not evaluated */
	bool		until;			/* the first row that fails ends the run */
	bool		calls_at_once;	/* there is one whose error cannot be put aside */
	int			nraising;		/* CALLs and loops that may raise one */

	HgjBuffer	result;			/* of hgj_program_eval() */
	MemoryContext context;
	MemoryContext scratch;		/* for the evaluation of constants */
	MemoryContext calls;		/* for what functions leave behind */
	MemoryContext numerics;		/* that steps make, and other values by reference,
								 * of a chunk or a result; NULL: there were none */
	Size		numerics_empty; /* what it takes without them */
	int			ndecimals;
	HgjDecimalRoot *decimals;
	uint64		chunk;			/* the number of the one at hand */
	uint64		executions;		/* how many have begun, ... */
	uint64		runs;			/* ... and how often it was run for some rows */
	int64		keys[HGJ_CHUNK];
	uint8		flags[HGJ_CHUNK];
};

/* What is known while an expression is compiled. */
typedef struct HgjCompiler
{
	/* hgj_by_value_compile(), which is above program_compile.c */
	HgjStep    *(*by_value) (struct HgjCompiler *c, Expr *expr);
	PlanState  *parent;
	HgjInputLookup lookup;
	void	   *arg;
	List	   *constants;		/* HgjSteps */
	List	   *by_values;		/* HgjSteps */
	bool		alternative;	/* no more of the latter */
	Expr	   *case_arg;		/* what a CaseTestExpr stands for */
	bool		share;			/* steps that are run for all rows of a chunk */
	List	   *shared_exprs;	/* have been compiled, ... */
	List	   *shared_steps;	/* ... to these */
	int			nexprs;			/* have been looked at */
} HgjCompiler;

/* program.c */
extern bool hgj_program_run_step(HgjProgram *program, HgjStep *step,
								 const HgjVector *const *inputs, const HgjRows *rows);

/* program_compile.c */
extern HgjStep *hgj_step_compile(HgjCompiler *c, Expr *expr);
extern HgjStep *hgj_step_make(HgjStepOp op, HgjKind kind, int nargs);
extern void hgj_step_add_arg(HgjStep *step, HgjStep *arg);
extern HgjStep *hgj_call_compile(HgjCompiler *c, Expr *expr);
extern HgjStep *hgj_step_cast(HgjStep *step, const HgjOperation *operation);
extern bool hgj_may_call(Oid funcid);

/* program_branches.c */
extern HgjStep *hgj_branches_compile(HgjCompiler *c, Expr *expr);
extern HgjStep *hgj_case_test_compile(HgjCompiler *c);

/* program_constant.c */
extern HgjConstant *hgj_constant_make(PlanState *parent, Expr *expr,
									  bool *lazy);
extern bool hgj_is_constant(PlanState *parent, Expr *expr);
extern void hgj_constant_cast(HgjConstant *constant);
extern void hgj_constant_fetch(HgjProgram *program, HgjConstant *constant);
extern bool hgj_constants_raise(const HgjProgram *program);
extern bool hgj_constant_nulls(HgjProgram *program, HgjStep *step, uint32 n);

/* program_clause.c */
extern HgjComparison hgj_commuted(HgjComparison comparison);
extern void hgj_clause_recognize(HgjClause *clause);
extern bool hgj_clause_merge(HgjClause *clause, const HgjClause *next);
extern uint32 hgj_clause_run(HgjProgram *program, HgjClause *clause,
							 const HgjRows *rows, uint32 *out);

/* program_functions.c */
extern Expr *hgj_comparison_of_dates(const OpExpr *expr, Oid funcid);
extern HgjKind hgj_kind_of_type(Oid type);
extern bool hgj_operation(Oid funcid, HgjOperation *operation);
extern HgjLoop hgj_loop(HgjStepOp op, uint8 code, HgjKind operand);

/* program_steps.c */
extern void hgj_member_finish(HgjStep *step, bool has_nulls, uint32 n);
extern void hgj_step_run(HgjProgram *program, HgjStep *step,
						 const HgjRows *rows);

/* program_set.c */
extern void hgj_set_reset(HgjSet *set);
extern void hgj_set_prepare(HgjProgram *program, HgjStep *step);
extern void hgj_set_lookup(const HgjSet *set, const int64 *keys, uint32 n,
						   uint8 *found);

/* program_text.c */
extern struct HgjTextSet *hgj_text_set_make(Oid funcid, Oid collation,
											bool is_array, bool *invert);
extern bool hgj_text_is_hashed(const HgjStep *step);
extern void hgj_text_set_reset(struct HgjTextSet *set);
extern void hgj_text_run(HgjProgram *program, HgjStep *step,
						 const HgjRows *rows);

typedef bool (*HgjStringTest) (const void *what, const char *data, uint32 length);

/* Test a value that is not plain bytes in memory: it is fetched for that. */
static inline bool
hgj_test_toasted(HgjProgram *program, Datum value, HgjStringTest test, const void *what)
{
	MemoryContext old;
	struct varlena *text;
	bool		passes;

	CHECK_FOR_INTERRUPTS();		/* it may be megabytes */
	old = MemoryContextSwitchTo(program->calls);
	text = PG_DETOAST_DATUM_PACKED(value);
	passes = test(what, VARDATA_ANY(text), VARSIZE_ANY_EXHDR(text));
	MemoryContextSwitchTo(old);
	MemoryContextReset(program->calls);
	return passes;
}

/* program_like.c */
typedef struct HgjLike HgjLike;
extern HgjLike *hgj_like_make(Oid funcid, Oid collation, Expr *pattern, bool *invert);
extern void hgj_like_run(HgjProgram *program, HgjStep *step, uint32 n);

/* program_part.c */
typedef struct HgjPart HgjPart;
extern HgjPart *hgj_part_make(Oid funcid, List *args, Expr **string, Oid *cast);
extern void hgj_part_run(HgjProgram *program, HgjStep *step, uint32 n);

/* program_call.c */
extern bool hgj_is_numeric_call(Expr *expr);
extern int	hgj_call_scale(const Expr *expr);
extern struct HgjCall *hgj_call_make(Expr *expr, Oid funcid, Oid collation,
									 int nargs, bool *may_fail,
									 bool *at_once);
extern void hgj_call_finish(HgjStep *step);
extern bool hgj_call_pays(const HgjStep *step);
extern void hgj_call_run(HgjProgram *program, HgjStep *step,
						 const HgjRows *rows);

/* program_by_value.c */
extern HgjStep *hgj_by_value_compile(HgjCompiler *c, Expr *expr);

/* program_values.c */
extern void hgj_by_value_start(HgjByValue *by);
extern void hgj_by_value_run(HgjProgram *program, HgjStep *step, uint32 n);

/* program_memo.c */
typedef struct HgjMemo HgjMemo;

/* How long a result may be remembered. */
typedef enum HgjMemoTerm
{
	HGJ_MEMO_EXECUTION,
	HGJ_MEMO_ZONE,				/* ... while the session has the same time zone */
	HGJ_MEMO_RUN				/* of the program, over some rows */
} HgjMemoTerm;

extern HgjMemo *hgj_memo_make(HgjMemoTerm term);
extern bool hgj_memo_begin(HgjProgram *program, HgjMemo *memo);
extern bool hgj_memo_find(HgjMemo *memo, int64 key, Datum *value, bool *isnull);
extern bool hgj_memo_keep(HgjMemo *memo, int64 key, Datum *value, bool isnull,
						  bool typbyval, int16 typlen);

/* program_errors.c */
extern void hgj_call_carefully(HgjProgram *program, HgjStep *step, uint32 n,
							   void (*run) (HgjProgram *program, HgjStep *step,
											uint32 n));

/* program_decimal.c */
extern bool hgj_is_decimal(PlanState *parent, Expr *expr);
extern bool hgj_decimal_function(Oid funcid);
extern bool hgj_number_comparison(Oid funcid, HgjComparison *comparison);
extern HgjStep *hgj_decimal_compile(HgjCompiler *c, Expr *expr);
extern bool hgj_decimal_branches(HgjStep *step, int first, int stride);
extern bool hgj_is_decimal_comparison(PlanState *parent, Oid funcid, List *args);
extern HgjStep *hgj_decimal_comparison(HgjCompiler *c, Oid funcid, List *args);
extern bool hgj_is_decimal_list(PlanState *parent, const ScalarArrayOpExpr *expr,
								Oid funcid);
extern HgjStep *hgj_decimal_list(HgjCompiler *c, const ScalarArrayOpExpr *expr,
								 Oid funcid);
extern HgjStep *hgj_numeric_step(HgjStep *step);

/* program_decimal_run.c */
extern void hgj_decimal_run(HgjProgram *program, HgjStep *step, uint32 n);
extern bool hgj_decimal_range(HgjProgram *program, HgjStep *step);
extern MemoryContext hgj_program_numerics(HgjProgram *program);
extern void hgj_decimal_take(HgjStep *step, const HgjStep *branch,
							 const uint32 *index, uint32 m, uint32 n);


/* program_ops_compare.c */
extern const HgjLoop hgj_compare_loops[HGJ_KINDS][HGJ_COMPARISONS];

/* program_ops_arith.c: NULL where there is no such function */
extern const HgjLoop hgj_arith_loops[HGJ_ARITHMETICS][HGJ_KINDS];
extern bool hgj_loop_date_add(void *result, const void *a, const void *b,
							  const uint8 *nulls, uint32 n);
extern bool hgj_loop_date_sub(void *result, const void *a, const void *b,
							  const uint8 *nulls, uint32 n);
extern bool hgj_loop_date_diff(void *result, const void *a, const void *b,
							   const uint8 *nulls, uint32 n);

/* program_ops_cast.c: [from][to]; NULL where there is no such cast */
extern const HgjLoop hgj_cast_loops[HGJ_KINDS][HGJ_KINDS];
extern bool hgj_loop_date_order(void *result, const void *a, const void *b,
								const uint8 *nulls, uint32 n);
extern bool hgj_loop_date_timestamp(void *result, const void *a, const void *b,
									const uint8 *nulls, uint32 n);

/*
 * program_ops_select.c: positions that pass, ascending, into out, which may be
 * rows->sel itself.  Each returns how many.
 */
extern uint32 hgj_select_range(HgjKind kind, const void *values,
							   const HgjRows *rows, int64 low, uint64 span,
							   bool invert, uint32 *out);
extern uint32 hgj_select_float(HgjKind kind, const void *values,
							   const HgjRows *rows, HgjFloatTest test,
							   double bound, uint32 *out);
extern uint32 hgj_select_flags(const uint8 *flags, const HgjRows *rows,
							   uint32 *out);
extern uint32 hgj_select_true(const uint8 *values, const uint8 *nulls,
							  const HgjRows *rows, uint32 *out);
extern uint32 hgj_select_valid(const uint64 *validity, const HgjRows *rows,
							   bool valid, uint32 *out);
extern bool hgj_values_nulls(const HgjVector *vector, const HgjRows *rows,
							 uint8 *nulls);
extern void hgj_values_scatter(uint8 width, const void *values, const uint32 *index,
						uint32 n, void *out);
extern const uint8 *hgj_either_null(const uint8 *a, const uint8 *b, uint32 n,
									uint8 *out);
extern void hgj_values_keys(HgjKind kind, const void *values,
							const HgjRows *rows, int64 *keys);

#endif							/* HGJ_PROGRAM_PRIVATE_H */
