/*-------------------------------------------------------------------------
 *
 * program.h
 *	  Expressions over column vectors: filters, residual clauses, arguments of
 *	  aggregates (program.c and its neighbours).
 *
 * A program is compiled from an expression tree once, at executor start, and
 * run for a selection of rows at a time.  Its answers are those of
 * ExecEvalExpr() row by row: SQL's three-valued logic, PostgreSQL's overflow
 * errors, and its order of NaN.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_PROGRAM_H
#define HGJ_PROGRAM_H

#include "compat.h"

#include "columns/batch.h"
#include "columns/decimal.h"
#include "nodes/execnodes.h"
#include "nodes/primnodes.h"

typedef struct HgjProgram HgjProgram;

/*
 * Which input is this column?  Numbers from 0 index the `inputs` of
 * hgj_program_filter() and hgj_program_eval(); a negative number says that the
 * caller cannot supply the column, and compilation fails.  A caller may hand
 * out numbers as columns are asked for.
 */
typedef int (*HgjInputLookup) (void *arg, const Var *var);

/*
 * Compile; everything is palloc'd in the current context, which must live as
 * long as the program.  NULL when the expression is not of the supported forms
 * (nothing has been changed then but what `lookup` did).
 * Expressions are as they are in a finished plan; `parent` is the node that
 * they belong to.
 */
extern HgjProgram *hgj_program_compile(Expr *expr, PlanState *parent,
									   HgjInputLookup lookup, void *arg);

/*
 * Expressions of type numeric as decimals, in one program, which computes what they
 * have in common once: places[i] becomes the number of the i-th one, or -1 if it is
 * not of the supported forms.  NULL: none is.
 */
extern HgjProgram *hgj_program_compile_decimals(List *exprs, PlanState *parent,
												HgjInputLookup lookup, void *arg,
												int *places);

/*
 * Divide a plan's quals (a List, as ExecInitQual() takes: ExecQual() does not
 * look at the rest of them once one is NULL, whereas an AND does): compile those
 * of the supported forms into one program, NULL if there are none, and return the
 * others in their order.  ExecQual() is to run these for the rows that the program
 * lets pass.  What is compiled may be able to fail as long as none of the others
 * stands before it.  A clause with an effect, and all that stand behind it, are
 * among the others, so that it is evaluated for the rows that PostgreSQL evaluates it
 * for.
 *
 * may_fail: false refuses expressions whose evaluation can raise an error, so
 * that what is compiled is as good as leakproof, and may be run early and on
 * rows that another clause would have removed.
 */
extern List *hgj_program_compile_quals(List *quals, PlanState *parent,
									   HgjInputLookup lookup, void *arg,
									   bool may_fail, HgjProgram **program);

/*
 * Parameters are those of this execution: call before the first row, and again
 * after a rescan.  They are evaluated when a row comes to them, so that the
 * context must stay.
 */
extern void hgj_program_start(HgjProgram *program, ExprContext *econtext);

/*
 * The rows for which a boolean program is true, into `out`.  sel names n
 * ascending positions in the inputs (NULL: positions 0 to n - 1); the result,
 * ascending positions too, may be written over sel itself.  Returns their
 * number.
 */
extern uint32 hgj_program_filter(HgjProgram *program,
								 const HgjVector *const *inputs,
								 const uint32 *sel, uint32 n, uint32 *out);

/*
 * The same, but a row that raises an error stops it: the rows that pass among
 * those before it are returned, and its position is *stop (or else
 * PG_UINT32_MAX).  Whoever runs the program for that row next gets the error.
 * This is not for programs that may raise an error at once; those are to be
 * run for one row at a time, where others may not be asked for.
 */
extern uint32 hgj_program_filter_until(HgjProgram *program,
									   const HgjVector *const *inputs,
									   const uint32 *sel, uint32 n,
									   uint32 *out, uint32 *stop);
extern bool hgj_program_raises_at_once(const HgjProgram *program);

/*
 * The values for rows sel[0 .. n) (NULL: 0 to n - 1), densely: value i belongs
 * to row sel[i].  The vector belongs to the program, until it is run again.
 */
extern const HgjVector *hgj_program_eval(HgjProgram *program,
										 const HgjVector *const *inputs,
										 const uint32 *sel, uint32 n);

/*
 * The same of what hgj_program_compile_decimals() has made, and the result by number;
 * its scale is known before.
 */
extern void hgj_program_eval_decimals(HgjProgram *program,
									  const HgjVector *const *inputs,
									  const uint32 *sel, uint32 n);
extern const HgjDecimals *hgj_program_decimals(const HgjProgram *program, int place);

/* The scale that a column's type says, -1: it says none, or is no such numeric. */
extern int	hgj_decimal_scale(Oid type, int32 typmod);
extern bool hgj_has_instruction(Oid funcid);

/*
 * May this input, numerics of a type that says this scale, come as decimals
 * (HgjVector)?  So it is if the program reads it as these only, or not at all.
 */
extern bool hgj_program_takes_decimals(const HgjProgram *program, int input, int scale);

/*
 * What a filter is known to want of an input: an integer from low to high, or, of
 * numerics, such a decimal of the scale.  No other value passes, nor does NULL.  Of
 * IN, one of these values, in order, which are there until the next execution.
 */
typedef struct HgjProgramBound
{
	int			input;
	int			scale;			/* -1: integers */
	int64		low;
	int64		high;
	const int64 *values;		/* or NULL: any from low to high */
	uint32		nvalues;
} HgjProgramBound;

/*
 * As far as the constants have been evaluated in this execution; returns how many
 * bounds there are, `most` at most.
 */
extern int	hgj_program_bounds(const HgjProgram *program, HgjProgramBound *bounds,
							   int most);

/* Bytes that the last result has beside its vectors. */
extern Size hgj_program_result_bytes(const HgjProgram *program);

/*
 * Is it a function that says whether strings are equal, or (*invert) that they are
 * not?  Others of strings are called, row by row.
 */
extern bool hgj_is_text_equality(Oid funcid, bool *invert);

#endif							/* HGJ_PROGRAM_H */
