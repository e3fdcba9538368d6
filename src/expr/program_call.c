/*-------------------------------------------------------------------------
 *
 * program_call.c
 *	  Functions that there is no loop for: PostgreSQL's own code, called row by
 *	  row, but without a slot and an expression around it.
 *
 * 1. Built-in functions in C are called so, which are strict, not volatile, and
 *	  return something that passes by value: comparisons of numeric, text, uuid
 *	  and so on, LIKE, length() ...
 * 2. Only a leakproof function counts as one that cannot fail.  When another one
 *	  raises an error about its arguments, and is a plain function, that is put aside
 *	  as if a loop had said so (program_errors.c).
 * 3. Plain is an immutable function over numbers, strings, dates and times: it
 *	  looks at nothing but its arguments, so that it has no lock, no buffer and no
 *	  catalog entry when it fails, and calls nobody who could.  (As it is caught
 *	  without a subtransaction, nothing would give these back, nor the user,
 *	  before the rows are run again.)  A function that compares arrays or records
 *	  calls whatever compares their elements.  Its error goes up at once, and
 *	  program.c takes care that it is the first one.
 * 4. What a function leaves behind is freed when it has become much, at the
 *	  latest at the end of the chunk.
 *
 * Memory: the program's, and `calls` below it.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "expr/program_private.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

/* Free what functions leave behind when it is more than this. */
#define HGJ_CALL_GARBAGE		((Size) 64 * 1024)

typedef struct HgjCall
{
	FmgrInfo	flinfo;
	bool		catches;		/* a plain function that can fail */
	union
	{
		FunctionCallInfoBaseData fcinfo;
		char		space[SizeForFunctionCallInfo(FUNC_MAX_ARGS)];
	}			u;
} HgjCall;

/* Step 3. */
static bool
is_plain(const FormData_pg_proc *proc)
{
	if (proc->provolatile != PROVOLATILE_IMMUTABLE)
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
	bool		good;
	bool		leakproof;
	bool		plain;

	if (funcid >= FirstNormalObjectId || nargs < 1)
		return NULL;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(funcid));
	if (!HeapTupleIsValid(tuple))
		return NULL;
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	good = proc->prolang == INTERNALlanguageId &&
		proc->prokind == PROKIND_FUNCTION && proc->proisstrict &&
		!proc->proretset && proc->provolatile != PROVOLATILE_VOLATILE &&
		!proc->prosecdef && !OidIsValid(proc->provariadic) &&
		proc->pronargs == nargs &&
		heap_attisnull(tuple, Anum_pg_proc_proconfig, NULL);
	leakproof = proc->proleakproof;
	plain = is_plain(proc);
	ReleaseSysCache(tuple);
	if (!good)
		return NULL;

	call = palloc0(sizeof(HgjCall));
	fmgr_info(funcid, &call->flinfo);
	fmgr_info_set_expr((Node *) expr, &call->flinfo);
	InitFunctionCallInfoData(call->u.fcinfo, &call->flinfo, nargs, collation,
							 NULL, NULL);
	call->catches = !leakproof && plain;
	*may_fail = !leakproof;
	*at_once = !leakproof && !plain;
	return call;
}

static void
call_rows(HgjProgram *program, HgjStep *step, uint32 n)
{
	FunctionCallInfo fcinfo = &step->call->u.fcinfo;
	const uint8 *nulls = step->nulls;
	uint8	   *null = step->null_buffer;
	bool		some_null = false;

	for (uint32 i = 0; i < n; i++)
	{
		bool		isnull = nulls && nulls[i];
		Datum		value = 0;

		if (!isnull)
		{
			for (int a = 0; a < step->nargs; a++)
			{
				const HgjStep *arg = step->args[a];

				fcinfo->args[a].value =
					hgj_load((const char *) arg->values + (Size) i * arg->width,
							 arg->width);
				fcinfo->args[a].isnull = false;
			}
			fcinfo->isnull = false;
			CHECK_FOR_INTERRUPTS();
			value = FunctionCallInvoke(fcinfo);
			isnull = fcinfo->isnull;
		}
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
