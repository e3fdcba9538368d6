/*-------------------------------------------------------------------------
 *
 * program_call.c
 *	  Functions that there is no loop for: PostgreSQL's own code, called row by
 *	  row, but without a slot and an expression around it.
 *
 * 1. Built-in functions in C are called so, which are strict, not volatile, and
 *	  return something that passes by value: comparisons of numeric, text, uuid
 *	  and so on, LIKE, length() ...  Or a numeric: EXTRACT, round() and so on, or a
 *	  short string: what to_char() makes of a time, or a part of another one.  Values by
 *	  reference are kept until the end of the chunk, or as long as the program's result.
 * 2. Only a leakproof function counts as one that cannot fail.  When another one
 *	  raises an error about its arguments, and is a plain function, that is put aside
 *	  as if a loop had said so (program_errors.c).
 * 3. Plain is an immutable function over numbers, strings, dates and times: it
 *	  looks at nothing but its arguments, or one that looks at the time zone that the
 *	  session has, which is at hand, so that it has no lock, no buffer and no
 *	  catalog entry when it fails, and calls nobody who could.  (As it is caught
 *	  without a subtransaction, nothing would give these back, nor the user,
 *	  before the rows are run again.)  A function that compares arrays or records
 *	  calls whatever compares their elements.  Its error goes up at once, and
 *	  program.c takes care that it is the first one.
 * 4. What a function leaves behind is freed when it has become much, at the
 *	  latest at the end of the chunk.
 * 5. Of a function of one argument that is not constant, and passes by value, the
 *	  results are remembered (program_memo.c).  Where it does not tell the moments of a
 *	  day apart, or of an hour, it is asked once for all of them; of a time with zone
 *	  that is so while the session's zone has one offset only.
 *
 * Memory: the program's, and `calls` and `numerics` below it.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "expr/demand.h"
#include "expr/program_private.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "pgtime.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

/* Free what functions leave behind when it is more than this. */
#define HGJ_CALL_GARBAGE		((Size) 64 * 1024)

/* Longer strings are not made for the rows of a chunk, or of a result, at once. */
#define HGJ_CALL_CHARACTERS		64

typedef struct HgjCall
{
	FmgrInfo	flinfo;
	bool		catches;		/* a plain function that can fail */
	bool		stable;
	bool		typbyval;		/* of the result */
	int16		typlen;
	HgjMemo    *memo;			/* step 5; NULL: nothing is remembered ... */
	int			varying;		/* ... of this argument's values */
	int64		granule;		/* microseconds that it does not tell apart; 0: none */
	int64		period;			/* ... nor values that so many lie between; 0: it does */
	bool		zoned;			/* ... in the session's time zone */
	uint64		run;			/* of the program, for which this is so: */
	int64		divisor;		/* the granule, where that holds now, */
	int64		shift;			/* of values to which this has been added */
	union
	{
		FunctionCallInfoBaseData fcinfo;
		char		space[SizeForFunctionCallInfo(FUNC_MAX_ARGS)];
	}			u;
} HgjCall;

/* Does it look at the session's time zone, and at nothing else beside its arguments? */
static bool
takes_zone(Oid funcid)
{
	switch (funcid)
	{
		case F_EXTRACT_TEXT_TIMESTAMPTZ:
		case F_DATE_PART_TEXT_TIMESTAMPTZ:
		case F_DATE_TRUNC_TEXT_TIMESTAMPTZ:
		case F_DATE_TIMESTAMPTZ:
		case F_TIMESTAMPTZ_DATE:
		case F_TIMESTAMPTZ_TIMESTAMP:
		case F_TIMESTAMP_TIMESTAMPTZ:
			return true;
		default:
			return false;
	}
}

/* Step 3. */
static bool
is_plain(Oid funcid, const FormData_pg_proc *proc)
{
	if (proc->provolatile != PROVOLATILE_IMMUTABLE && !takes_zone(funcid))
		return false;
	for (int i = 0; i < proc->pronargs; i++)
		switch (proc->proargtypes.values[i])
		{
			case BOOLOID:
			case CHAROID:
			case INT2OID:
			case INT4OID:
			case INT8OID:
			case FLOAT4OID:
			case FLOAT8OID:
			case NUMERICOID:
			case TEXTOID:
			case BPCHAROID:
			case BYTEAOID:
			case DATEOID:
			case TIMEOID:
			case TIMETZOID:
			case TIMESTAMPOID:
			case TIMESTAMPTZOID:
			case INTERVALOID:
			case UUIDOID:
				break;
			default:
				return false;
		}
	return true;
}

/* Step 3: is it none that is plain, whoever calls it? */
static bool
is_not_plain(Oid funcid, void *context)
{
	HeapTuple	tuple;
	Form_pg_proc proc;
	bool		plain;

	if (funcid >= FirstNormalObjectId)
		return true;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	if (!HeapTupleIsValid(tuple))
		return true;
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	plain = proc->prolang == INTERNALlanguageId && proc->prokind == PROKIND_FUNCTION &&
		!proc->proretset && !proc->prosecdef && is_plain(funcid, proc) &&
		heap_attisnull(tuple, Anum_pg_proc_proconfig, NULL);
	ReleaseSysCache(tuple);
	return !plain;
}

/* Can the evaluation raise an error that cannot be put aside?  context: the EState */
static bool
raises_at_once(Node *node, void *context)
{
	if (node == NULL)
		return false;
	check_stack_depth();
	switch (nodeTag(node))
	{
		case T_OpExpr:
		case T_FuncExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
			if (hgj_returns_set(node) ||
				(hgj_calls_may_raise(node) &&
				 check_functions_in_node(node, is_not_plain, NULL)))
				return true;
			break;
		case T_Param:
			return hgj_param_may_raise((Param *) node, context);
		case T_Var:
		case T_Const:
		case T_RelabelType:
		case T_BoolExpr:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CaseTestExpr:
		case T_CoalesceExpr:
		case T_NullTest:
		case T_BooleanTest:
			break;
		default:
			if (hgj_may_raise(node, context))
				return true;
			break;
	}
	return expression_tree_walker(node, raises_at_once, context);
}

/*
 * Step 3: if the evaluation of the expression by PostgreSQL's own evaluator raises an
 * error, is it one that may be put aside (hgj_put_error_aside())?
 */
bool
hgj_errors_can_wait(Node *node, EState *estate)
{
	return !raises_at_once(node, estate);
}

/* A part of a string, as long as the last argument says? */
static bool
takes_a_part(Oid funcid)
{
	return funcid == F_SUBSTRING_TEXT_INT4_INT4 || funcid == F_SUBSTR_TEXT_INT4_INT4 ||
		funcid == F_LEFT;
}

/* Step 1: is what it returns long, for all that is known? */
static bool
is_long(Oid funcid, const Expr *expr)
{
	const Const *length;

	if (!takes_a_part(funcid))
		return false;
	if (!IsA(expr, FuncExpr))
		return true;
	length = llast(((const FuncExpr *) expr)->args);
	return !IsA(length, Const) || length->constisnull ||
		DatumGetInt32(length->constvalue) > HGJ_CALL_CHARACTERS;
}

/* Step 1: does it return what can be kept? */
static bool
keeps_result(Oid funcid, const FormData_pg_proc *proc)
{
	switch (proc->prorettype)
	{
		case NUMERICOID:
			return true;
		case TEXTOID:
			return funcid == F_TO_CHAR_TIMESTAMP_TEXT ||
				funcid == F_TO_CHAR_TIMESTAMPTZ_TEXT || takes_a_part(funcid);
		default:
			return get_typbyval(proc->prorettype);
	}
}

/* Step 1, but for permissions. */
static bool
is_callable(Oid funcid, int nargs)
{
	HeapTuple	tuple;
	Form_pg_proc proc;
	bool		good;

	if (funcid >= FirstNormalObjectId || nargs < 1)
		return false;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	if (!HeapTupleIsValid(tuple))
		return false;
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	good = proc->prolang == INTERNALlanguageId &&
		proc->prokind == PROKIND_FUNCTION && proc->proisstrict &&
		!proc->proretset && proc->provolatile != PROVOLATILE_VOLATILE &&
		!proc->prosecdef && !OidIsValid(proc->provariadic) &&
		proc->pronargs == nargs && keeps_result(funcid, proc) &&
		heap_attisnull(tuple, Anum_pg_proc_proconfig, NULL);
	ReleaseSysCache(tuple);
	return good;
}

/* A call that returns a numeric? */
bool
hgj_is_numeric_call(Expr *expr)
{
	Oid			funcid;
	List	   *args;

	if (getBaseType(exprType((Node *) expr)) != NUMERICOID)
		return false;
	if (IsA(expr, FuncExpr) && !((FuncExpr *) expr)->funcvariadic)
	{
		funcid = ((FuncExpr *) expr)->funcid;
		args = ((FuncExpr *) expr)->args;
	}
	else if (IsA(expr, OpExpr))
	{
		OpExpr	   *op = (OpExpr *) expr;

		funcid = OidIsValid(op->opfuncid) ? op->opfuncid : get_opcode(op->opno);
		args = op->args;
	}
	else
		return false;
	return is_callable(funcid, list_length(args));
}

/* The scale that EXTRACT's numerics have; -1: it is none that is known. */
static int
scale_of_field(const Expr *field)
{
	char	   *name;
	int			scale = 0;

	if (!IsA(field, Const) || ((const Const *) field)->constisnull)
		return -1;
	name = TextDatumGetCString(((const Const *) field)->constvalue);
	if (strncmp(name, "sec", 3) == 0 || strcmp(name, "epoch") == 0)
		scale = 6;
	else if (strncmp(name, "mil", 3) == 0)
		scale = 3;				/* milliseconds */
	pfree(name);
	return scale;
}

/* The scale that most numerics which a call returns will have; -1: nobody knows. */
int
hgj_call_scale(const Expr *expr)
{
	const FuncExpr *function = (const FuncExpr *) expr;
	const Const *digits;

	if (!IsA(expr, FuncExpr))
		return -1;
	switch (function->funcid)
	{
		case F_EXTRACT_TEXT_DATE:
		case F_EXTRACT_TEXT_TIME:
		case F_EXTRACT_TEXT_TIMESTAMP:
		case F_EXTRACT_TEXT_TIMESTAMPTZ:
		case F_EXTRACT_TEXT_INTERVAL:
			return scale_of_field(linitial(function->args));
		case F_ROUND_NUMERIC:
		case F_TRUNC_NUMERIC:
		case F_CEIL_NUMERIC:
		case F_CEILING_NUMERIC:
		case F_FLOOR_NUMERIC:
			return 0;
		case F_ROUND_NUMERIC_INT4:
		case F_TRUNC_NUMERIC_INT4:
			digits = lsecond(function->args);
			if (!IsA(digits, Const) || digits->constisnull)
				return -1;
			return Max(Min(DatumGetInt32(digits->constvalue), HGJ_COLUMN_SCALE_MAX), 0);
		default:
			return -1;
	}
}

/*
 * NULL if the function is not one that may be called so.  *at_once: an error is
 * raised when a row meets it, not put aside.
 */
HgjCall *
hgj_call_make(Expr *expr, Oid funcid, Oid collation, int nargs, bool *may_fail,
			  bool *at_once)
{
	HeapTuple	tuple;
	Form_pg_proc proc;
	HgjCall    *call;
	bool		leakproof;
	bool		plain;
	bool		polymorphic;

	if (!is_callable(funcid, nargs) || is_long(funcid, expr))
		return NULL;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	if (!HeapTupleIsValid(tuple))
		return NULL;
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	call = palloc0(sizeof(HgjCall));
	leakproof = proc->proleakproof;
	plain = is_plain(funcid, proc);
	polymorphic = IsPolymorphicType(proc->prorettype);
	call->stable = proc->provolatile == PROVOLATILE_STABLE;
	ReleaseSysCache(tuple);

	/* who returns the bound of a range, or an array's element, may not make it */
	get_typlenbyval(exprType((Node *) expr), &call->typlen, &call->typbyval);
	if (polymorphic && !call->typbyval)
		return NULL;
	fmgr_info(funcid, &call->flinfo);
	fmgr_info_set_expr((Node *) expr, &call->flinfo);
	InitFunctionCallInfoData(call->u.fcinfo, &call->flinfo, nargs, collation,
							 NULL, NULL);
	call->catches = !leakproof && plain;
	*may_fail = !leakproof;
	*at_once = !leakproof && !plain;
	return call;
}

/*
 * The moments that a field does not tell apart, or a truncation to it: *granule, and
 * for the field alone *period.
 */
static void
find_field(const Expr *field, int64 *granule, int64 *period)
{
	static const struct
	{
		const char *name;
		int64		granule;
		int64		period;
	}			fields[] = {
		{"minute", USECS_PER_MINUTE, USECS_PER_HOUR},
		{"hour", USECS_PER_HOUR, USECS_PER_DAY}, {"day", USECS_PER_DAY},
		{"week", USECS_PER_DAY}, {"dow", USECS_PER_DAY}, {"isodow", USECS_PER_DAY},
		{"doy", USECS_PER_DAY}, {"month", USECS_PER_DAY}, {"quarter", USECS_PER_DAY},
		{"year", USECS_PER_DAY}, {"isoyear", USECS_PER_DAY}, {"decade", USECS_PER_DAY},
		{"century", USECS_PER_DAY}, {"millennium", USECS_PER_DAY}
	};
	char	   *name;

	if (!IsA(field, Const) || ((const Const *) field)->constisnull)
		return;
	name = TextDatumGetCString(((const Const *) field)->constvalue);
	for (int i = 0; i < lengthof(fields); i++)
		if (strcmp(fields[i].name, name) == 0)
		{
			*granule = fields[i].granule;
			*period = fields[i].period;
		}
}

/* Step 5: what the function that is called does not tell apart. */
static void
find_granule(HgjCall *call)
{
	const FuncExpr *expr = (const FuncExpr *) call->flinfo.fn_expr;
	int64		none;

	if (!IsA(expr, FuncExpr))
		return;
	switch (expr->funcid)
	{
		case F_EXTRACT_TEXT_TIMESTAMPTZ:
		case F_DATE_PART_TEXT_TIMESTAMPTZ:
			call->zoned = true;
			/* FALLTHROUGH */
		case F_EXTRACT_TEXT_TIMESTAMP:
		case F_DATE_PART_TEXT_TIMESTAMP:
			find_field(linitial(expr->args), &call->granule, &call->period);
			break;
		case F_DATE_TRUNC_TEXT_TIMESTAMPTZ:
			call->zoned = true;
			/* FALLTHROUGH */
		case F_DATE_TRUNC_TEXT_TIMESTAMP:
			find_field(linitial(expr->args), &call->granule, &none);
			break;
		case F_DATE_TIMESTAMPTZ:
			call->zoned = true;
			/* FALLTHROUGH */
		case F_DATE_TIMESTAMP:
			call->granule = USECS_PER_DAY;
			break;
		default:
			break;
	}
}

/* Does a format of to_char() ask for words of the session's language, maybe? */
static bool
is_translated(const Expr *format)
{
	char	   *name;
	bool		result;

	if (!IsA(format, Const) || ((const Const *) format)->constisnull)
		return true;
	name = TextDatumGetCString(((const Const *) format)->constvalue);
	result = strpbrk(name, "Tt") != NULL && strpbrk(name, "Mm") != NULL;
	pfree(name);
	return result;
}

/* Is the time zone all that the stable function looks at beside its arguments? */
static bool
asks_for_zone(const HgjCall *call)
{
	const FuncExpr *expr = (const FuncExpr *) call->flinfo.fn_expr;

	if (!IsA(expr, FuncExpr))
		return false;
	switch (expr->funcid)
	{
		case F_TO_CHAR_TIMESTAMP_TEXT:
		case F_TO_CHAR_TIMESTAMPTZ_TEXT:
			return !is_translated(lsecond(expr->args));
		default:
			return takes_zone(expr->funcid);
	}
}

/* Step 5, before rows are looked up: for each run, the zone may be another one. */
static void
prepare_granule(HgjProgram *program, HgjCall *call)
{
	long int	offset = 0;

	if (call->run == program->runs)
		return;
	call->run = program->runs;
	call->divisor = call->granule;
	if (call->zoned && !pg_get_timezone_offset(session_timezone, &offset))
		call->divisor = 0;
	call->shift = offset * USECS_PER_SEC;
}

/* Step 5: what the results are remembered by. */
static inline int64
memo_key(const HgjCall *call, int64 value)
{
	int64		moved;

	if (call->divisor == 0 || TIMESTAMP_NOT_FINITE(value))
		return value;
	moved = value + call->shift;
	if (call->period > 0)
	{
		moved %= call->period;
		if (moved < 0)
			moved += call->period;
	}
	return moved / call->divisor - (moved % call->divisor < 0);
}

/* Step 5: the arguments have been compiled. */
void
hgj_call_finish(HgjStep *step)
{
	HgjCall    *call = step->call;
	int			nvarying = 0;

	for (int a = 0; a < step->nargs; a++)
		if (step->args[a]->op != HGJ_STEP_CONSTANT)
		{
			call->varying = a;
			nvarying++;
		}
	if (nvarying == 1 && step->args[call->varying]->kind != HGJ_KIND_OTHER)
	{
		call->memo = hgj_memo_make(!call->stable ? HGJ_MEMO_EXECUTION :
								   asks_for_zone(call) ? HGJ_MEMO_ZONE :
								   HGJ_MEMO_RUN);
		find_granule(call);
	}
}

/*
 * Is there more to the step than calls one by one, which PostgreSQL's evaluator does
 * as fast, and without keeping what they return?
 */
bool
hgj_call_pays(const HgjStep *step)
{
	if (step->op == HGJ_STEP_INPUT || step->op == HGJ_STEP_CONSTANT)
		return false;
	if (step->op != HGJ_STEP_CALL || step->kind != HGJ_KIND_OTHER || step->call->memo)
		return true;
	for (int a = 0; a < step->nargs; a++)
		if (hgj_call_pays(step->args[a]))
			return true;
	return false;
}

static inline int64
argument(const HgjStep *step, int a, uint32 i)
{
	const HgjStep *arg = step->args[a];

	return hgj_load((const char *) arg->values + (Size) i * arg->width, arg->width);
}

/* Call it for a row. */
static Datum
call_row(HgjProgram *program, HgjStep *step, uint32 i, bool *isnull)
{
	HgjCall    *call = step->call;
	FunctionCallInfo fcinfo = &call->u.fcinfo;
	Datum		value;

	for (int a = 0; a < step->nargs; a++)
	{
		fcinfo->args[a].value = argument(step, a, i);
		fcinfo->args[a].isnull = false;
	}
	fcinfo->isnull = false;
	CHECK_FOR_INTERRUPTS();
	value = FunctionCallInvoke(fcinfo);
	*isnull = fcinfo->isnull;
	if (call->memo &&
		hgj_memo_keep(call->memo, memo_key(call, argument(step, call->varying, i)),
					  &value, *isnull, call->typbyval, call->typlen))
		return value;
	if (!*isnull && !call->typbyval)
	{
		MemoryContext old = MemoryContextSwitchTo(hgj_program_numerics(program));

		value = datumCopy(value, false, call->typlen);
		MemoryContextSwitchTo(old);
	}
	return value;
}

static void
call_rows(HgjProgram *program, HgjStep *step, uint32 n)
{
	HgjCall    *call = step->call;
	const uint8 *nulls = step->nulls;
	uint8	   *null = step->null_buffer;
	bool		looks_up = call->memo && hgj_memo_begin(program, call->memo);
	bool		some_null = false;

	prepare_granule(program, call);
	for (uint32 i = 0; i < n; i++)
	{
		bool		isnull = nulls && nulls[i];
		Datum		value = 0;

		if (!isnull &&
			!(looks_up && hgj_memo_find(call->memo,
										memo_key(call, argument(step, call->varying, i)),
										&value, &isnull)))
			value = call_row(program, step, i, &isnull);
		null[i] = isnull;
		some_null |= isnull;
		hgj_store((char *) step->value_buffer + (Size) i * step->width,
				  step->width, value);
		if (unlikely(program->calls->mem_allocated > HGJ_CALL_GARBAGE))
			MemoryContextReset(program->calls);
	}
	step->nulls = some_null ? null : NULL;
}

void
hgj_call_run(HgjProgram *program, HgjStep *step, const HgjRows *rows)
{
	MemoryContext old;
	bool		any = false;

	for (int a = 0; a < step->nargs; a++)
		hgj_step_run(program, step->args[a], rows);
	if (program->failed)
		return;

	/* a row on which one argument is NULL is left out */
	memset(step->null_buffer, 0, rows->n);
	for (int a = 0; a < step->nargs; a++)
		if (step->args[a]->nulls)
		{
			for (uint32 i = 0; i < rows->n; i++)
				step->null_buffer[i] |= step->args[a]->nulls[i];
			any = true;
		}
	step->nulls = any ? step->null_buffer : NULL;

	old = MemoryContextSwitchTo(program->calls);
	if (step->call->catches)
		hgj_call_carefully(program, step, rows->n, call_rows);
	else
		call_rows(program, step, rows->n);
	MemoryContextSwitchTo(old);
	MemoryContextReset(program->calls);
}
