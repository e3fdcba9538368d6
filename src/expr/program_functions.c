/*-------------------------------------------------------------------------
 *
 * program_functions.c
 *	  Which of PostgreSQL's functions a program knows, which step does the same,
 *	  and by which loop.
 *
 * 1. Functions are known by their OIDs, which are fixed for built-in functions;
 *	  operators by the function that implements them, never by their names.
 * 2. A function over two kinds (int2 + int8) casts both operands to the wider
 *	  one, as PostgreSQL's does, and is computed in that kind.
 * 3. A loop that can fail comes with the function of that kind, which is called
 *	  with the same operands to raise the error.
 *
 * Constant tables only.  No memory, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "expr/program_private.h"
#include "nodes/makefuncs.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

typedef struct HgjFunction
{
	Oid			funcid;
	uint8		op;				/* HgjStepOp */
	uint8		code;
	uint8		left;			/* HgjKinds */
	uint8		right;			/* of a cast: of the result */
	bool		order_dates;
} HgjFunction;

#define COMPARE(name, code, left, right) \
	{F_##name, HGJ_STEP_COMPARE, HGJ_##code, HGJ_KIND_##left, \
	HGJ_KIND_##right, false}
#define COMPARES(name, left, right) \
	COMPARE(name##EQ, EQ, left, right), COMPARE(name##NE, NE, left, right), \
	COMPARE(name##LT, LT, left, right), COMPARE(name##LE, LE, left, right), \
	COMPARE(name##GT, GT, left, right), COMPARE(name##GE, GE, left, right)

#define DATE_ORDER(code) \
	{F_DATE_##code##_TIMESTAMP, HGJ_STEP_COMPARE, HGJ_##code, \
	HGJ_KIND_I4, HGJ_KIND_I8, true}, \
	{F_TIMESTAMP_##code##_DATE, HGJ_STEP_COMPARE, HGJ_##code, \
	HGJ_KIND_I8, HGJ_KIND_I4, true}

#define ARITH(name, code, left, right) \
	{F_##name, HGJ_STEP_ARITHMETIC, HGJ_##code, HGJ_KIND_##left, \
	HGJ_KIND_##right, false}
#define ARITHS(name, left, right) \
	ARITH(name##PL, ADD, left, right), ARITH(name##MI, SUB, left, right), \
	ARITH(name##MUL, MUL, left, right), ARITH(name##DIV, DIV, left, right)

#define CAST_FUNCTION(funcid, from, to) \
	{funcid, HGJ_STEP_CAST, HGJ_KIND_##to, HGJ_KIND_##from, HGJ_KIND_##to, false}
#define CAST(to_name, from_name, from, to) \
	CAST_FUNCTION(F_##to_name##_##from_name, from, to)

#define DATE(funcid, code, left, right) \
	{funcid, HGJ_STEP_DATE, HGJ_DATE_##code, HGJ_KIND_##left, HGJ_KIND_##right, false}

static const HgjFunction functions[] = {
	COMPARES(BOOL, U1, U1),
	COMPARES(CHAR, U1, U1),
	COMPARES(INT2, I2, I2),
	COMPARES(INT24, I2, I4),
	COMPARES(INT28, I2, I8),
	COMPARES(INT42, I4, I2),
	COMPARES(INT4, I4, I4),
	COMPARES(INT48, I4, I8),
	COMPARES(INT82, I8, I2),
	COMPARES(INT84, I8, I4),
	COMPARES(INT8, I8, I8),
	COMPARES(FLOAT4, F4, F4),
	COMPARES(FLOAT48, F4, F8),
	COMPARES(FLOAT84, F8, F4),
	COMPARES(FLOAT8, F8, F8),
	COMPARES(OID, U4, U4),
	COMPARES(DATE_, I4, I4),
	COMPARES(TIME_, I8, I8),
	COMPARES(TIMESTAMP_, I8, I8),
	COMPARES(TIMESTAMPTZ_, I8, I8),
	COMPARE(ENUM_EQ, EQ, U4, U4),	/* their order is not that of the OIDs */
	COMPARE(ENUM_NE, NE, U4, U4),
	DATE_ORDER(EQ),
	DATE_ORDER(NE),
	DATE_ORDER(LT),
	DATE_ORDER(LE),
	DATE_ORDER(GT),
	DATE_ORDER(GE),
	ARITHS(INT2, I2, I2),
	ARITHS(INT24, I2, I4),
	ARITHS(INT28, I2, I8),
	ARITHS(INT42, I4, I2),
	ARITHS(INT4, I4, I4),
	ARITHS(INT48, I4, I8),
	ARITHS(INT82, I8, I2),
	ARITHS(INT84, I8, I4),
	ARITHS(INT8, I8, I8),
	ARITHS(FLOAT4, F4, F4),
	ARITHS(FLOAT48, F4, F8),
	ARITHS(FLOAT84, F8, F4),
	ARITHS(FLOAT8, F8, F8),
	ARITH(INT2MOD, MOD, I2, I2),
	ARITH(MOD_INT2_INT2, MOD, I2, I2),
	ARITH(INT4MOD, MOD, I4, I4),
	ARITH(MOD_INT4_INT4, MOD, I4, I4),
	ARITH(INT8MOD, MOD, I8, I8),
	ARITH(MOD_INT8_INT8, MOD, I8, I8),
	ARITH(INT2UM, NEG, I2, I2),
	ARITH(INT4UM, NEG, I4, I4),
	ARITH(INT8UM, NEG, I8, I8),
	ARITH(FLOAT4UM, NEG, F4, F4),
	ARITH(FLOAT8UM, NEG, F8, F8),
	ARITH(INT2ABS, ABS, I2, I2),
	ARITH(ABS_INT2, ABS, I2, I2),
	ARITH(INT4ABS, ABS, I4, I4),
	ARITH(ABS_INT4, ABS, I4, I4),
	ARITH(INT8ABS, ABS, I8, I8),
	ARITH(ABS_INT8, ABS, I8, I8),
	ARITH(FLOAT4ABS, ABS, F4, F4),
	ARITH(ABS_FLOAT4, ABS, F4, F4),
	ARITH(FLOAT8ABS, ABS, F8, F8),
	ARITH(ABS_FLOAT8, ABS, F8, F8),
	CAST(INT2, INT4, I4, I2),
	CAST(INT2, INT8, I8, I2),
	CAST(INT2, FLOAT4, F4, I2),
	CAST(INT2, FLOAT8, F8, I2),
	CAST(INT4, INT2, I2, I4),
	CAST(INT4, INT8, I8, I4),
	CAST(INT4, FLOAT4, F4, I4),
	CAST(INT4, FLOAT8, F8, I4),
	CAST(INT4, BOOL, U1, I4),
	CAST(INT8, INT2, I2, I8),
	CAST(INT8, INT4, I4, I8),
	CAST(INT8, FLOAT4, F4, I8),
	CAST(INT8, FLOAT8, F8, I8),
	CAST(INT8, OID, U4, I8),
	CAST(FLOAT4, INT2, I2, F4),
	CAST(FLOAT4, INT4, I4, F4),
	CAST(FLOAT4, INT8, I8, F4),
	CAST(FLOAT4, FLOAT8, F8, F4),
	CAST(FLOAT8, INT2, I2, F8),
	CAST(FLOAT8, INT4, I4, F8),
	CAST(FLOAT8, INT8, I8, F8),
	CAST(FLOAT8, FLOAT4, F4, F8),
	CAST(BOOL, INT4, I4, U1),
	CAST_FUNCTION(F_OID, I8, U4),	/* of an int8 */
	DATE(F_DATE_PLI, ADD, I4, I4),
	DATE(F_DATE_MII, SUB, I4, I4),
	DATE(F_DATE_MI, DIFF, I4, I4),
	DATE(F_TIMESTAMP_DATE, TIMESTAMP, I4, I8)
};

/* Functions that do what loops of program_ops_arith.c do, one by one. */
static const PGFunction arith_functions[HGJ_ARITHMETICS][HGJ_KINDS] = {
#define FUNCTIONS(name) \
		[HGJ_KIND_I2] = int2##name, [HGJ_KIND_I4] = int4##name, \
		[HGJ_KIND_I8] = int8##name, [HGJ_KIND_F4] = float4##name, \
		[HGJ_KIND_F8] = float8##name
#define INTEGER_FUNCTIONS(name) \
		[HGJ_KIND_I2] = int2##name, [HGJ_KIND_I4] = int4##name, \
		[HGJ_KIND_I8] = int8##name

	[HGJ_ADD] = {FUNCTIONS(pl)},
	[HGJ_SUB] = {FUNCTIONS(mi)},
	[HGJ_MUL] = {FUNCTIONS(mul)},
	[HGJ_DIV] = {FUNCTIONS(div)},
	[HGJ_MOD] = {INTEGER_FUNCTIONS(mod)},
	[HGJ_NEG] = {INTEGER_FUNCTIONS(um)},	/* those of floats never fail */
	[HGJ_ABS] = {INTEGER_FUNCTIONS(abs)}
};

/* The casts of program_ops_cast.c that can fail. */
static const PGFunction cast_functions[HGJ_KINDS][HGJ_KINDS] = {
	[HGJ_KIND_I4] = {[HGJ_KIND_I2] = i4toi2},
	[HGJ_KIND_I8] = {
		[HGJ_KIND_I2] = int82, [HGJ_KIND_I4] = int84, [HGJ_KIND_U4] = i8tooid
	},
	[HGJ_KIND_F4] = {
		[HGJ_KIND_I2] = ftoi2, [HGJ_KIND_I4] = ftoi4, [HGJ_KIND_I8] = ftoi8
	},
	[HGJ_KIND_F8] = {
		[HGJ_KIND_I2] = dtoi2, [HGJ_KIND_I4] = dtoi4, [HGJ_KIND_I8] = dtoi8,
		[HGJ_KIND_F4] = dtof
	}
};

static const PGFunction date_functions[HGJ_DATE_OPS] = {
	[HGJ_DATE_ADD] = date_pli,
	[HGJ_DATE_SUB] = date_mii,
	[HGJ_DATE_DIFF] = date_mi,
	[HGJ_DATE_TIMESTAMP] = date_timestamp
};

static const HgjLoop date_loops[HGJ_DATE_OPS] = {
	[HGJ_DATE_ADD] = hgj_loop_date_add,
	[HGJ_DATE_SUB] = hgj_loop_date_sub,
	[HGJ_DATE_DIFF] = hgj_loop_date_diff,
	[HGJ_DATE_ORDER] = hgj_loop_date_order,
	[HGJ_DATE_TIMESTAMP] = hgj_loop_date_timestamp
};

HgjKind
hgj_kind_of_type(Oid type)
{
	switch (getBaseType(type))
	{
		case BOOLOID:
		case CHAROID:
			return HGJ_KIND_U1;
		case INT2OID:
			return HGJ_KIND_I2;
		case INT4OID:
		case DATEOID:
			return HGJ_KIND_I4;
		case INT8OID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return HGJ_KIND_I8;
		case OIDOID:
			return HGJ_KIND_U4;
		case FLOAT4OID:
			return HGJ_KIND_F4;
		case FLOAT8OID:
			return HGJ_KIND_F8;
		default:
			return type_is_enum(getBaseType(type)) ? HGJ_KIND_U4 :
				HGJ_KIND_OTHER;
	}
}

/* A comparison of a date with a timestamp, and the same of two dates. */
typedef struct DateComparison
{
	Oid			funcid;
	Oid			flipped;		/* the timestamp is the first argument */
	Oid			of_dates;		/* ... of the date with its day, ... */
	Oid			of_parts;		/* ... or, where there is a part of a day, this */
} DateComparison;

static const DateComparison date_comparisons[] = {
	{F_DATE_LT_TIMESTAMP, F_TIMESTAMP_GT_DATE, F_DATE_LT, F_DATE_LE},
	{F_DATE_LE_TIMESTAMP, F_TIMESTAMP_GE_DATE, F_DATE_LE, F_DATE_LE},
	{F_DATE_GT_TIMESTAMP, F_TIMESTAMP_LT_DATE, F_DATE_GT, F_DATE_GT},
	{F_DATE_GE_TIMESTAMP, F_TIMESTAMP_LE_DATE, F_DATE_GE, F_DATE_GT}
};

/* The day of a timestamp, as a date; true: it has begun some time before. */
static bool
day_of(Timestamp timestamp, DateADT *day)
{
	int64		days = timestamp / USECS_PER_DAY;

	if (TIMESTAMP_NOT_FINITE(timestamp))
	{
		*day = TIMESTAMP_IS_NOEND(timestamp) ? DATEVAL_NOEND : DATEVAL_NOBEGIN;
		return false;
	}
	if (timestamp < days * USECS_PER_DAY)
		days--;
	*day = (DateADT) days;
	return timestamp > days * USECS_PER_DAY;
}

/*
 * A date in order with a timestamp that is known (date '1994-01-01' + interval '1 year')
 * is in the same order with that one's day: a comparison of dates, or NULL.  Dates that no
 * timestamp can be are beyond all finite ones, as date_cmp_timestamp_internal() has it.
 */
Expr *
hgj_comparison_of_dates(const OpExpr *expr, Oid funcid)
{
	for (int i = 0; i < lengthof(date_comparisons); i++)
	{
		const DateComparison *c = &date_comparisons[i];
		bool		flipped = funcid == c->flipped;
		Const	   *known;
		Node	   *date;
		DateADT		day;
		bool		part;

		if (funcid != c->funcid && !flipped)
			continue;
		known = flipped ? linitial(expr->args) : llast(expr->args);
		date = flipped ? llast(expr->args) : linitial(expr->args);
		if (!IsA(known, Const) || known->constisnull)
			return NULL;
		part = day_of(DatumGetTimestamp(known->constvalue), &day);
		known = makeConst(DATEOID, -1, InvalidOid, sizeof(DateADT), DateADTGetDatum(day),
						  false, true);
		return (Expr *) makeFuncExpr(part ? c->of_parts : c->of_dates, BOOLOID,
									 list_make2(date, known), InvalidOid, InvalidOid,
									 COERCE_EXPLICIT_CALL);
	}
	return NULL;
}

/* The loop of a step; NULL: there is none. */
HgjLoop
hgj_loop(HgjStepOp op, uint8 code, HgjKind operand)
{
	switch (op)
	{
		case HGJ_STEP_COMPARE:
		case HGJ_STEP_DISTINCT:
			return hgj_compare_loops[operand][code];
		case HGJ_STEP_ARITHMETIC:
			return hgj_arith_loops[code][operand];
		case HGJ_STEP_CAST:
			return hgj_cast_loops[operand][code];
		case HGJ_STEP_DATE:
			return date_loops[code];
		default:
			return NULL;
	}
}

static void
describe(const HgjFunction *function, HgjOperation *operation)
{
	bool		casts = function->op == HGJ_STEP_CAST ||
		(function->op == HGJ_STEP_DATE && function->code == HGJ_DATE_TIMESTAMP);

	operation->op = function->op;
	operation->code = function->code;
	operation->args[0] = function->left;
	operation->args[1] = function->right;
	operation->nargs = casts ? 1 : 2;
	operation->operand = casts ? function->left : Max(function->left, function->right);
	operation->result = casts ? function->right : operation->operand;
	operation->order_dates = function->order_dates;
	switch (operation->op)
	{
		case HGJ_STEP_COMPARE:
			operation->result = HGJ_KIND_U1;
			break;
		case HGJ_STEP_ARITHMETIC:
			operation->raise = arith_functions[function->code][operation->operand];
			if (function->code == HGJ_NEG || function->code == HGJ_ABS)
				operation->nargs = 1;
			break;
		case HGJ_STEP_CAST:
			operation->raise = cast_functions[function->left][function->right];
			break;
		default:
			operation->raise = date_functions[function->code];
			break;
	}
}

/* What to do for a function; false if it is not known. */
bool
hgj_operation(Oid funcid, HgjOperation *operation)
{
	memset(operation, 0, sizeof(*operation));
	for (int i = 0; i < lengthof(functions); i++)
		if (functions[i].funcid == funcid)
		{
			describe(&functions[i], operation);
			Assert(hgj_loop(operation->op, operation->code, operation->operand));
			return true;
		}
	return false;
}
