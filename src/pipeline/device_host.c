/*-------------------------------------------------------------------------
 *
 * device_host.c
 *	  What the host computes for a pipeline below an aggregation: columns that the
 *	  device is sent as if the table, or a build side, had them.
 *
 * 1. A step of a program that there is no instruction for (LIKE, EXTRACT, whatever
 *	  looks at strings) and that reads columns of one side only is such a column, if
 *	  its value passes by value.  What is evaluated once for each value of a string is
 *	  so in any case.
 * 2. It is evaluated (device_values.c) for more rows than PostgreSQL would evaluate it
 *	  for: all that the source returns, or all of the build side.  So a step whose error
 *	  would come at once is not for this.
 * 3. A group key that passes by reference is sent as codes of a dictionary, which
 *	  stays here.
 * 4. The number of a build side's row is a column, too, for group keys of which one
 *	  tells the rows apart (agg_device_keys.c).
 *
 * Everything is palloc'd in the query's context; dictionaries have a bound, a part of
 * the memory limit.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "expr/program_private.h"
#include "miscadmin.h"
#include "pipeline/device.h"
#include "utils/array.h"

/* The part of the memory limit that the dictionaries may take, all together. */
#define HGJ_CODES_SHARE		4

/* ---- which steps -------------------------------------------------------- */

/* What is looked at: a step, and whose inputs it has. */
typedef struct Looked
{
	const HgjDeviceInputs *inputs;
	bool		found;			/* the side of some input is known: */
	int			join;
} Looked;

/* Step 2: can it be evaluated for all rows of a side? */
static bool
can_run(Looked *l, const HgjStep *step)
{
	HgjDevicePlace place;

	check_stack_depth();
	if (step->op == HGJ_STEP_INPUT)
	{
		if (!l->inputs->find(l->inputs->arg, step->input, &place) ||
			(l->found && place.join != l->join))
			return false;
		l->found = true;
		l->join = place.join;
		return true;
	}
	if (step->constant && step->constant->state && step->lazy)
		return false;
	if ((step->raises && step->at_once) || (step->by_value && step->by_value->may_raise))
		return false;
	for (int i = 0; i < step->nargs; i++)
		if (!can_run(l, step->args[i]))
			return false;
	return true;
}

/* The side whose columns the step reads; false: it is not for the host. */
static bool
find_side(const HgjStep *step, const HgjDeviceInputs *inputs, int *join)
{
	Looked		l = {.inputs = inputs};

	if (!can_run(&l, step) || !l.found)
		return false;
	*join = l.join;
	return true;
}

/* Is there a column of numerics below whose display scales nobody knows? */
static bool
is_of_any_scale(HgjPipelineState *d, const HgjStep *step, const HgjDeviceInputs *inputs)
{
	HgjDevicePlace place;
	int8		scale = -1;

	if (step->op == HGJ_STEP_DECIMAL && step->args[0]->op == HGJ_STEP_INPUT)
		return inputs->find(inputs->arg, step->args[0]->input, &place) &&
			(!hgj_device_sends(d, &place, &scale) || scale != step->scale);
	for (int i = 0; i < step->nargs; i++)
		if (is_of_any_scale(d, step->args[i], inputs))
			return true;
	return false;
}

/* Can the host send the value of this step? */
static bool
can_host(HgjPipelineState *d, const HgjStep *step, const HgjDeviceInputs *inputs)
{
	int			join;

	if (step->decimal ? is_of_any_scale(d, step, inputs) : step->kind == HGJ_KIND_OTHER)
		return false;
	return find_side(step, inputs, &join);
}

/* Has an IN list few elements, and are they known? */
bool
hgj_device_is_short_list(const HgjStep *step)
{
	const HgjConstant *constant = step->constant;
	ArrayType  *array;

	if (constant->state)
		return false;
	if (constant->isnull)
		return true;
	array = DatumGetArrayTypeP(constant->value);
	return ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)) <= HGJ_DEVICE_MEMBERS;
}

/* Is the step's value NULL for certain where all columns that it reads are? */
bool
hgj_device_is_strict(const HgjStep *step)
{
	switch (step->op)
	{
		case HGJ_STEP_INPUT:
			return true;
		case HGJ_STEP_COMPARE:
		case HGJ_STEP_ARITHMETIC:
		case HGJ_STEP_CAST:
		case HGJ_STEP_NOT:
		case HGJ_STEP_LIKE:
		case HGJ_STEP_TEXT:
		case HGJ_STEP_PART:
		case HGJ_STEP_DATE:
		case HGJ_STEP_DECIMAL:
		case HGJ_STEP_DECIMAL_INTEGER:
		case HGJ_STEP_DECIMAL_ARITHMETIC:
		case HGJ_STEP_DECIMAL_ALIGN:
		case HGJ_STEP_DECIMAL_COMPARE:
			break;
		default:
			return false;
	}
	for (int i = 0; i < step->nargs; i++)
		if (hgj_device_is_strict(step->args[i]))
			return true;
	return false;
}

/* Is there an instruction for the step, if its arguments are in registers? */
static bool
has_instruction(HgjPipelineState *d, const HgjStep *step, const HgjDeviceInputs *inputs)
{
	HgjDevicePlace place;
	int8		scale = -1;

	switch (step->op)
	{
		case HGJ_STEP_INPUT:
			return !inputs->find(inputs->arg, step->input, &place) ||
				hgj_device_sends(d, &place, &scale);
		case HGJ_STEP_DECIMAL:
			return step->args[0]->op == HGJ_STEP_INPUT &&
				(!inputs->find(inputs->arg, step->args[0]->input, &place) ||
				 (hgj_device_sends(d, &place, &scale) && scale == step->scale));
		case HGJ_STEP_CONSTANT:
			return !step->lazy;
		case HGJ_STEP_MEMBER:
			return hgj_device_is_short_list(step);
		case HGJ_STEP_DECIMAL_RANGE:
			return step->constant->state == NULL;
		case HGJ_STEP_TEXT:
		case HGJ_STEP_LIKE:
		case HGJ_STEP_PART:
		case HGJ_STEP_CALL:
		case HGJ_STEP_DATE:
		case HGJ_STEP_NUMERIC:
			return false;
		default:
			return true;
	}
}

/* Can the device have the step's value, all that it consists of considered? */
static bool
can_have(HgjPipelineState *d, const HgjStep *step, const HgjDeviceInputs *inputs)
{
	if (step->op == HGJ_STEP_BY_VALUE)
		return step->nargs > 1 && (can_have(d, step->args[1], inputs) ||
								   can_host(d, step->args[1], inputs));
	if (!has_instruction(d, step, inputs))
		return false;
	for (int i = 0; i < step->nargs; i++)
		if (!can_have(d, step->args[i], inputs) && !can_host(d, step->args[i], inputs))
			return false;
	return true;
}

/* Step 1: is the step's value the host's to send? */
bool
hgj_device_hosts(HgjPipelineState *d, const HgjStep *step, const HgjDeviceInputs *inputs)
{
	if (d->of_batch || d->code.no_host)
		return false;
	if (step->op != HGJ_STEP_BY_VALUE && can_have(d, step, inputs))
		return false;
	return can_host(d, step, inputs);
}

/* ---- what they make ----------------------------------------------------- */

/* The number after the last input that the step reads. */
static int
count_inputs(const HgjStep *step)
{
	int			n = step->op == HGJ_STEP_INPUT ? step->input + 1 : 0;

	for (int i = 0; i < step->nargs; i++)
		n = Max(n, count_inputs(step->args[i]));
	return n;
}

/* Room for n inputs. */
static void
add_inputs(HgjPipelineState *d, HgjDeviceMade *made, int n)
{
	MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(d));

	made->ninputs = n;
	made->inputs = palloc(mul_size(n, sizeof(int)));
	made->vectors = palloc0(mul_size(n, sizeof(HgjVector *)));
	for (int i = 0; i < n; i++)
		made->inputs[i] = -1;
	MemoryContextSwitchTo(old);
}

/* The i-th one is this column.  The table's are to be read. */
static void
set_input(HgjPipelineState *d, HgjDeviceMade *made, int i, const HgjDevicePlace *place)
{
	made->inputs[i] = place->join < 0 ? hgj_device_read(d, place->column) : place->column;
	if (made->inputs[i] < 0)
		hgj_device_refuse(&d->code, HGJ_DEVICE_SIZE);
}

/* Which column is each of them? */
static void
find_inputs(HgjPipelineState *d, HgjDeviceMade *made, const HgjStep *step,
			const HgjDeviceInputs *inputs)
{
	HgjDevicePlace place;

	if (step->op == HGJ_STEP_INPUT && inputs->find(inputs->arg, step->input, &place))
		set_input(d, made, step->input, &place);
	for (int i = 0; i < step->nargs; i++)
		find_inputs(d, made, step->args[i], inputs);
}

static HgjDeviceMade *
add_made(HgjPipelineState *d, int join)
{
	MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(d));
	HgjDeviceMade *made = palloc0(sizeof(HgjDeviceMade));

	made->place.join = join;
	made->place.column = -1;
	d->made = lappend(d->made, made);
	MemoryContextSwitchTo(old);
	return made;
}

/*
 * What the host makes of a step, the same one each time; with `codes`, of one that
 * passes by reference.  NULL: the step is not for the host.
 */
HgjDeviceMade *
hgj_device_make_step(HgjPipelineState *d, HgjProgram *program, HgjStep *step,
					 const HgjDeviceInputs *inputs, bool codes)
{
	HgjDeviceMade *made;
	ListCell   *lc;
	int			join;

	foreach(lc, d->made)
	{
		made = lfirst(lc);
		if (made->step == step)
			return made;
	}
	if (!find_side(step, inputs, &join) ||
		codes != (step->kind == HGJ_KIND_OTHER && !step->decimal))
		return NULL;
	made = add_made(d, join);
	made->program = program;
	made->step = step;
	add_inputs(d, made, count_inputs(step));
	find_inputs(d, made, step, inputs);
	return made;
}

/* The codes of a column that passes by reference. */
HgjDeviceMade *
hgj_device_make_codes(HgjPipelineState *d, const HgjDevicePlace *place)
{
	HgjDeviceMade *made;
	ListCell   *lc;

	foreach(lc, d->made)
	{
		made = lfirst(lc);
		if (made->step == NULL && !made->row_number && made->place.join == place->join &&
			made->place.column == place->column)
			return made;
	}
	made = add_made(d, place->join);
	made->place = *place;
	add_inputs(d, made, 1);
	set_input(d, made, 0, place);
	return made;
}

/* The numbers of a build side's rows. */
HgjDeviceMade *
hgj_device_make_number(HgjPipelineState *d, int join)
{
	HgjDeviceMade *made;
	ListCell   *lc;

	foreach(lc, d->made)
	{
		made = lfirst(lc);
		if (made->row_number && made->place.join == join)
			return made;
	}
	made = add_made(d, join);
	made->row_number = true;
	return made;
}

/* The same as `made`, of columns of the table or of a join's side: the caller says which. */
HgjDeviceMade *
hgj_device_make_again(HgjPipelineState *d, const HgjDeviceMade *made, int join)
{
	HgjDeviceMade *again = add_made(d, join);

	again->of = made;
	again->program = made->program;
	again->step = made->step;
	again->codes = made->codes;
	add_inputs(d, again, made->ninputs);
	return again;
}

/* As what it is sent. */
uint8
hgj_device_made_kind(const HgjDeviceMade *made)
{
	if (made->step && made->step->decimal)
		return HGJ_KIND_I8;
	return made->step && made->step->kind != HGJ_KIND_OTHER ? made->step->kind :
		HGJ_KIND_I4;
}

/* Step 3: give it a dictionary, if it has none; equality as in dictionary.h. */
void
hgj_device_give_codes(HgjPipelineState *d, HgjDeviceMade *made, Node *expr, Oid equality,
					  int16 attlen)
{
	int			n = 0;
	ListCell   *lc;

	if (made->codes)
		return;
	made->codes = hgj_dictionary_create(GetMemoryChunkContext(d), expr, equality, attlen,
										NULL);
	foreach(lc, d->made)
		n += ((HgjDeviceMade *) lfirst(lc))->codes != NULL;
	foreach(lc, d->made)
		if (((HgjDeviceMade *) lfirst(lc))->codes)
			hgj_dictionary_limit(((HgjDeviceMade *) lfirst(lc))->codes,
								 get_hash_memory_limit() / HGJ_CODES_SHARE / n);
}
