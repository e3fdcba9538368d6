/*-------------------------------------------------------------------------
 *
 * device_terms.c
 *	  The values of constants and parameters, on which a plan of a pipeline is run
 *	  (engine/pipeline.h, PLAN AND TERMS).
 *
 * While the plan is lowered, whatever is a constant to the query is given a number
 * (hgj_device_write_value()): a constant or parameter of a program, an element of an IN list, a
 * bound, what the host makes where a build side has no row.  So the instructions do not change from
 * one execution to the next, nor with the constants.  At the beginning of a run, when the programs
 * have been started and the tables built, the values are looked up here in the order of their
 * numbers.
 *
 * Memory: the pipeline's.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "expr/program_private.h"
#include "pipeline/device.h"

/* One of them; false: it cannot be had, and run_reason says why. */
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

/* All of them; hgj_device_gave_up() may follow. */
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
