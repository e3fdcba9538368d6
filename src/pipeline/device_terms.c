/*-------------------------------------------------------------------------
 *
 * device_terms.c
 *	  The values of constants and parameters, on which a plan of a pipeline is run
 *	  (engine/pipeline.h, PLAN AND TERMS).
 *
 * 1. While the plan is lowered, whatever is a constant to the query is given a number: a constant
 *	  or parameter of a program, an element of an IN list, a bound, what the host makes where a build
 *	  side has no row.  So the instructions are the same for all executions, and for other
 *	  constants, too.
 * 2. At the beginning of a run, when the programs have been started and the tables built, the
 *	  values are looked up in the order of their numbers.
 *
 * Memory: the pipeline's.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "expr/program_private.h"
#include "pipeline/device.h"

/* Step 1: dst = a value. */
void
hgj_device_write_value(HgjDeviceCode *code, uint8 dst, const HgjDeviceValue *value)
{
	HgjPipelineState *d = code->device;

	if (d->nvalues == HGJ_PIPE_VALUES)
	{
		hgj_device_refuse(code, HGJ_DEVICE_SIZE);
		return;
	}
	EMIT(code, HGJ_PIPE_VALUE, .dst = dst, .arg = d->nvalues);
	d->values[d->nvalues++] = *value;
}

/* Step 1: of one that is known already, as it is in a register. */
void
hgj_device_write_known(HgjDeviceCode *code, uint8 dst, bool isnull, int64 value)
{
	hgj_device_write_value(code, dst, &(HgjDeviceValue) {.isnull = isnull,.value = value});
}

/* Step 2: one of them; false: it cannot be had, and run_reason says why. */
static bool
find_value(HgjPipelineState *d, const HgjDeviceValue *from, bool *isnull, int64 *value)
{
	HgjConstant *constant;

	if (from->made)
	{
		d->run_reason = hgj_device_make_missing(d, from->made, from->kind);
		*isnull = !from->made->missing;
		*value = from->made->value_missing;
		return !hgj_device_gave_up(d);
	}
	*isnull = from->isnull;
	*value = from->value;
	if (from->program)
	{
		constant = from->step->constant;
		hgj_constant_fetch(from->program, constant);
		*isnull = constant->isnull;
		*value = constant->isnull ? 0 : hgj_device_register_value(from->kind, constant->value);
	}
	return true;
}

/* Step 2; hgj_device_gave_up() may follow. */
void
hgj_device_set_terms(HgjPipelineState *d)
{
	HgjPipelineTerms *terms = &d->terms;

	memset(terms->nulls, 0, sizeof(terms->nulls));
	for (int i = 0; i < d->nvalues; i++)
	{
		bool		isnull = false;

		if (!find_value(d, &d->values[i], &isnull, &terms->values[i]))
			return;
		if (isnull)
			terms->nulls[i / 64] |= UINT64CONST(1) << (i % 64);
	}
	terms->nvalues = d->nvalues;
}
