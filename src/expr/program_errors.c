/*-------------------------------------------------------------------------
 *
 * program_errors.c
 *	  Errors of PostgreSQL's functions that are called for many rows.
 *
 * 1. When a function raises an error about its arguments (their values, or what it
 *	  does not do under their collation), that is put aside, and `failed` is set as if
 *	  a loop had said so.
 * 2. The rows are run one by one then, and the first one that fails raises its error
 *	  (program.c).
 *
 * This is for functions that hold nothing when they fail: no subtransaction is
 * around them.  Which ones these are, program_call.c says.
 *
 * No memory but what the functions take.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "expr/demand.h"
#include "expr/program_private.h"

/* Is the error at hand about arguments?  Not: a cancel, corrupted data ... */
static bool
is_about_arguments(void)
{
	switch (ERRCODE_TO_CATEGORY(geterrcode()))
	{
		case ERRCODE_DATA_EXCEPTION:
		case ERRCODE_FEATURE_NOT_SUPPORTED:
		case ERRCODE_SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION:
		case ERRCODE_PROGRAM_LIMIT_EXCEEDED:
			return true;
		default:
			return false;
	}
}

/*
 * In PG_CATCH(), for functions that hold nothing when they fail: the error is forgotten if
 * it is about arguments, or else goes on its way.
 */
void
hgj_put_error_aside(MemoryContext context)
{
	if (!is_about_arguments())
		PG_RE_THROW();
	MemoryContextSwitchTo(context);
	FlushErrorState();
}

/*
 * Call functions for n rows, where an error about arguments is one that is looked
 * for again, unless this is that.
 */
void
hgj_call_carefully(HgjProgram *program, HgjStep *step, uint32 n,
				   void (*run) (HgjProgram *program, HgjStep *step, uint32 n))
{
	volatile bool failed = false;

	if (program->single)
	{
		run(program, step, n);
		return;
	}
	PG_TRY();
	{
		run(program, step, n);
	}
	PG_CATCH();
	{
		hgj_put_error_aside(program->scratch);
		failed = true;
	}
	PG_END_TRY();
	program->failed = failed;
}
