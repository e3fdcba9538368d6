/*-------------------------------------------------------------------------
 *
 * device_code.c
 *	  Programs over vectors (program_private.h) as instructions of a pipeline
 *	  (engine/pipeline.h).
 *
 * 1. Every column that an expression reads is loaded before its first
 *	  instruction, so that jumps never pass by a load that somebody else relies
 *	  on.
 * 2. A step leaves its value in a register of its own; those of its arguments
 *	  are free again then.
 * 3. A step that there is no instruction for may be the host's (device_host.c): its
 *	  value is a column then.
 * 4. What PostgreSQL would not evaluate for a row is not evaluated: the arms of
 *	  AND and OR that can fail, the branches of CASE and COALESCE are jumped
 *	  over.  So an error on the device is PostgreSQL's, or one of a row that
 *	  the host then looks at again.
 *
 * The plan is lowered once, at executor start; constants and parameters are values of each run's
 * terms (device_terms.c).  Where something does not fit the reason is noted, and writing goes on to
 * no effect.
 *
 * Memory: the caller's.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "expr/program_private.h"
#include "pipeline/device.h"

/* Remember the first reason. */
void
hgj_device_refuse(HgjDeviceCode *code, HgjDeviceReason reason)
{
	if (code->reason == HGJ_DEVICE_FITS)
		code->reason = reason;
}

/* A register that nobody uses. */
uint8
hgj_device_register(HgjDeviceCode *code, uint8 kind)
{
	if (code->nregs == HGJ_PIPE_REGISTERS)
	{
		hgj_device_refuse(code, HGJ_DEVICE_SIZE);
		return 0;
	}
	code->kinds[code->nregs] = kind;
	code->scales[code->nregs] = -1;
	return code->nregs++;
}

/* One more instruction. */
void
hgj_device_emit(HgjDeviceCode *code, HgjPipeOp op, const HgjPipeInstruction *fields)
{
	HgjPipelineSpec *spec = code->spec;

	if (spec->ncode == HGJ_PIPE_CODE)
	{
		hgj_device_refuse(code, HGJ_DEVICE_SIZE);
		return;
	}
	spec->code[spec->ncode] = *fields;
	spec->code[spec->ncode++].op = op;
}

/* dst = a value of the terms, which is found at the beginning of each run (device_terms.c). */
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

/* The same of one that is known already, as it is in a register. */
void
hgj_device_write_known(HgjDeviceCode *code, uint8 dst, bool isnull, int64 value)
{
	hgj_device_write_value(code, dst, &(HgjDeviceValue) {.isnull = isnull,.value = value});
}

/* A jump whose target is not known yet; hgj_device_land() says it. */
int
hgj_device_jump(HgjDeviceCode *code, HgjPipeOp op, uint8 a)
{
	EMIT(code, op, .a = a);
	return code->spec->ncode - 1;
}

/* The jump leads to the next instruction. */
void
hgj_device_land(HgjDeviceCode *code, int jump)
{
	code->spec->code[jump].arg = code->spec->ncode;
}

/* The key word of a register whose value is of this kind; it may be the same. */
uint8
hgj_device_key_word(HgjDeviceCode *code, uint8 reg, uint8 kind)
{
	uint8		word;

	if (code->kinds[reg] == kind && kind != HGJ_KIND_F4 && kind != HGJ_KIND_F8)
		return reg;
	word = hgj_device_register(code, HGJ_KIND_I8);
	EMIT(code, HGJ_PIPE_KEY_WORD, .kind = kind, .dst = word, .a = reg);
	return word;
}

/* Step 1: load what the step reads, or the step itself, if the host computes it. */
void
hgj_device_load(HgjDeviceCode *code, HgjProgram *program, HgjStep *step,
				const HgjDeviceInputs *inputs)
{
	HgjPipelineState *d = code->device;

	if (code->reason != HGJ_DEVICE_FITS)
		return;
	if (step->op == HGJ_STEP_INPUT)
		(void) inputs->load(inputs->arg, step->input);
	else if (hgj_device_hosts(d, step, inputs))
		(void) hgj_device_load_made(d, hgj_device_make_step(d, program, step, inputs,
															false));
	else
		for (int i = step->op == HGJ_STEP_BY_VALUE ? 1 : 0; i < step->nargs; i++)
			hgj_device_load(code, program, step->args[i], inputs);
}

/* What a step needs besides itself. */
typedef struct Writer
{
	HgjDeviceCode *code;
	HgjProgram *program;
	const HgjDeviceInputs *inputs;
} Writer;

static uint8 write_step(Writer *w, HgjStep *step);

/* How a step's value is in a register. */
static HgjKind
kind_of(const HgjStep *step)
{
	return step->decimal ? HGJ_KIND_I8 : step->kind;
}

static void
write_constant(Writer *w, HgjStep *step, uint8 dst)
{
	HgjDeviceValue value = {.program = w->program,.step = step,.kind = kind_of(step)};

	if (step->lazy)
		hgj_device_refuse(w->code, HGJ_DEVICE_EXPRESSION);
	else
		hgj_device_write_value(w->code, dst, &value);
}

/* A step that has a loop. */
static void
write_function(Writer *w, HgjStep *step, HgjPipeOp op, uint8 dst)
{
	uint8		args[2] = {0, 0};

	for (int i = 0; i < step->nargs; i++)
		args[i] = write_step(w, step->args[i]);
	EMIT(w->code, op, .kind = step->operand, .dst = dst, .a = args[0],
		 .b = step->nargs > 1 ? args[1] : args[0], .c = step->code);
}

/* Step 4: arms that can fail are passed by once the value is decided. */
static void
write_and_or(Writer *w, HgjStep *step, uint8 dst)
{
	bool		is_or = step->op == HGJ_STEP_OR;
	int			jumps[HGJ_PIPE_CODE];
	int			njumps = 0;

	for (int i = 0; i < step->nargs && w->code->reason == HGJ_DEVICE_FITS; i++)
	{
		int			nregs = w->code->nregs;
		uint8		arm;

		if (i > 0 && step->args[i]->lazy)
			jumps[njumps++] = hgj_device_jump(w->code, is_or ? HGJ_PIPE_JUMP_TRUE :
											  HGJ_PIPE_JUMP_FALSE, dst);
		arm = write_step(w, step->args[i]);
		if (i == 0)
			EMIT(w->code, HGJ_PIPE_MOVE, .dst = dst, .a = arm);
		else
			EMIT(w->code, is_or ? HGJ_PIPE_OR : HGJ_PIPE_AND, .dst = dst,
				 .a = dst, .b = arm);
		w->code->nregs = nregs;
	}
	for (int i = 0; i < njumps; i++)
		hgj_device_land(w->code, jumps[i]);
}

/* Are the display scales of a step's decimals those of the branch that is taken? */
bool
hgj_device_mixed(const HgjStep *step)
{
	int			stride = step->op == HGJ_STEP_CASE ? 2 : 1;

	if (!step->decimal || (step->op != HGJ_STEP_CASE && step->op != HGJ_STEP_COALESCE))
		return false;
	for (int i = stride - 1; i < step->nargs; i += stride)
		if (step->args[i]->display != step->display)
			return true;
	return step->args[step->nargs - 1]->display != step->display;
}

/* Where the value is NULL, so is its display scale. */
static void
finish_displays(Writer *w, uint8 displays, uint8 value)
{
	uint8		nothing = hgj_device_register(w->code, HGJ_KIND_I8);

	EMIT(w->code, HGJ_PIPE_ARITHMETIC, .kind = HGJ_KIND_I8, .dst = nothing, .a = value,
		 .b = value, .c = HGJ_SUB);
	EMIT(w->code, HGJ_PIPE_ARITHMETIC, .kind = HGJ_KIND_I8, .dst = displays,
		 .a = displays, .b = nothing, .c = HGJ_ADD);
}

/* Step 4: CASE and COALESCE, with the display scale if that is asked for. */
static void
write_branches(Writer *w, HgjStep *step, uint8 dst)
{
	int			jumps[HGJ_PIPE_CODE];
	int			njumps = 0;
	int			stride = step->op == HGJ_STEP_CASE ? 2 : 1;
	uint8		displays = w->code->displays;

	w->code->displays = HGJ_PIPE_NONE;
	if (displays == HGJ_PIPE_NONE && hgj_device_mixed(step))
		hgj_device_refuse(w->code, HGJ_DEVICE_EXPRESSION);
	for (int i = 0; i < step->nargs && w->code->reason == HGJ_DEVICE_FITS; i += stride)
	{
		bool		conditional = stride == 2 && i + 1 < step->nargs;
		int			nregs = w->code->nregs;
		int			next = -1;

		if (conditional)
			next = hgj_device_jump(w->code, HGJ_PIPE_JUMP_UNLESS,
								   write_step(w, step->args[i]));
		EMIT(w->code, HGJ_PIPE_MOVE, .dst = dst,
			 .a = write_step(w, step->args[conditional ? i + 1 : i]));
		if (displays != HGJ_PIPE_NONE)
			EMIT(w->code, HGJ_PIPE_CONSTANT, .dst = displays,
				 .imm = step->args[conditional ? i + 1 : i]->display);
		if (stride == 1 || conditional)
			jumps[njumps++] = hgj_device_jump(w->code, conditional ? HGJ_PIPE_JUMP :
											  HGJ_PIPE_JUMP_VALID, dst);
		if (next >= 0)
			hgj_device_land(w->code, next);
		w->code->nregs = nregs;
	}
	for (int i = 0; i < njumps; i++)
		hgj_device_land(w->code, jumps[i]);
	if (displays != HGJ_PIPE_NONE && w->code->reason == HGJ_DEVICE_FITS)
		finish_displays(w, displays, dst);
}

/* One element of IN: dst = dst OR key = element. */
static void
write_element(Writer *w, uint8 dst, uint8 key, int64 element)
{
	int			nregs = w->code->nregs;
	uint8		value = hgj_device_register(w->code, HGJ_KIND_I8);

	hgj_device_write_known(w->code, value, false, element);
	EMIT(w->code, HGJ_PIPE_COMPARE, .kind = HGJ_KIND_I8, .dst = value, .a = key,
		 .b = value, .c = HGJ_EQ);
	EMIT(w->code, HGJ_PIPE_OR, .dst = dst, .a = dst, .b = value);
	w->code->nregs = nregs;
}

static void
write_elements(Writer *w, const HgjSet *set, uint8 dst, uint8 key)
{
	uint64		n = set->bitmap ? set->span + 1 : set->mask + 1;

	if (set->nkeys > HGJ_DEVICE_MEMBERS)
	{
		hgj_device_refuse(w->code, HGJ_DEVICE_SIZE);
		return;
	}
	for (uint64 i = 0; i < n && set->nkeys > 0; i++)
		if (set->bitmap ? (set->bitmap[i / 64] >> (i % 64)) & 1 :
			set->slots[i] != set->empty)
			write_element(w, dst, key, set->bitmap ?
						  (int64) ((uint64) set->low + i) : set->slots[i]);
}

/* IN: a comparison with each of the elements. */
static void
write_member(Writer *w, HgjStep *step, uint8 dst)
{
	HgjStep    *arg = step->args[0];
	uint8		key = hgj_device_register(w->code, HGJ_KIND_I8);

	if (step->constant->state != NULL)	/* it might fail: see program_constant.c */
		hgj_device_refuse(w->code, HGJ_DEVICE_EXPRESSION);
	else if (!hgj_device_is_short_list(step))
		hgj_device_refuse(w->code, HGJ_DEVICE_SIZE);
	if (w->code->reason != HGJ_DEVICE_FITS)
		return;
	EMIT(w->code, HGJ_PIPE_KEY_WORD, .kind = arg->kind, .dst = key,
		 .a = write_step(w, arg));
	if (step->constant->isnull)
	{
		EMIT(w->code, HGJ_PIPE_NULL, .dst = dst);
		return;
	}
	hgj_set_prepare(w->program, step);
	EMIT(w->code, step->set->has_nulls ? HGJ_PIPE_NULL : HGJ_PIPE_CONSTANT,
		 .dst = dst);
	write_elements(w, step->set, dst, key);
	if (step->invert)
		EMIT(w->code, HGJ_PIPE_NOT, .dst = dst, .a = dst);
}

static void
write_align(Writer *w, HgjStep *step, uint8 dst)
{
	uint8		arg = write_step(w, step->args[0]);
	uint8		factor = hgj_device_register(w->code, HGJ_KIND_I8);

	/* It may leave 64 bits where PostgreSQL's does not fail, when rows have left already. */
	if (w->code->device->rows)
		hgj_device_refuse(w->code, HGJ_DEVICE_RAISES);
	EMIT(w->code, HGJ_PIPE_CONSTANT, .dst = factor, .imm = step->factor);
	EMIT(w->code, HGJ_PIPE_ARITHMETIC, .kind = HGJ_KIND_I8, .dst = dst, .a = arg,
		 .b = factor, .c = HGJ_MUL);
}

/* A decimal from low to high, or outside. */
static void
write_range(Writer *w, HgjStep *step, uint8 dst)
{
	uint8		arg = write_step(w, step->args[0]);
	uint8		bound = hgj_device_register(w->code, HGJ_KIND_I8);

	if (step->constant->state != NULL)	/* it might fail: see program_constant.c */
		hgj_device_refuse(w->code, HGJ_DEVICE_EXPRESSION);
	if (w->code->reason != HGJ_DEVICE_FITS)
		return;
	if (!hgj_decimal_range(w->program, step))
	{
		EMIT(w->code, HGJ_PIPE_NULL, .dst = dst);
		return;
	}
	hgj_device_write_known(w->code, bound, false, step->low);
	EMIT(w->code, HGJ_PIPE_COMPARE, .kind = HGJ_KIND_I8, .dst = dst, .a = arg,
		 .b = bound, .c = HGJ_GE);
	hgj_device_write_known(w->code, bound, false, step->high);
	EMIT(w->code, HGJ_PIPE_COMPARE, .kind = HGJ_KIND_I8, .dst = bound, .a = arg,
		 .b = bound, .c = HGJ_LE);
	EMIT(w->code, HGJ_PIPE_AND, .dst = dst, .a = dst, .b = bound);
	if (step->invert)
		EMIT(w->code, HGJ_PIPE_NOT, .dst = dst, .a = dst);
}

static void
write_unary(Writer *w, HgjStep *step, HgjPipeOp op, uint8 dst)
{
	uint8		tests = (step->test_true ? 1 : 0) | (step->test_false ? 2 : 0) |
		(step->test_null ? 4 : 0);

	EMIT(w->code, op, .dst = dst, .a = write_step(w, step->args[0]), .c = tests);
}

/* The step's own instructions; returns the kind of what is in dst. */
static uint8
write_operation(Writer *w, HgjStep *step, uint8 dst)
{
	switch (step->op)
	{
		case HGJ_STEP_CONSTANT:
			write_constant(w, step, dst);
			return kind_of(step);
		case HGJ_STEP_COMPARE:
			write_function(w, step, HGJ_PIPE_COMPARE, dst);
			return HGJ_KIND_U1;
		case HGJ_STEP_DISTINCT:
			write_function(w, step, HGJ_PIPE_DISTINCT, dst);
			return HGJ_KIND_U1;
		case HGJ_STEP_ARITHMETIC:
			write_function(w, step, HGJ_PIPE_ARITHMETIC, dst);
			return step->operand;
		case HGJ_STEP_CAST:
			write_function(w, step, HGJ_PIPE_CAST, dst);
			return step->code;
		case HGJ_STEP_AND:
		case HGJ_STEP_OR:
			write_and_or(w, step, dst);
			return HGJ_KIND_U1;
		case HGJ_STEP_NOT:
			write_unary(w, step, HGJ_PIPE_NOT, dst);
			return HGJ_KIND_U1;
		case HGJ_STEP_IS_NULL:
			write_unary(w, step, HGJ_PIPE_IS_NULL, dst);
			return HGJ_KIND_U1;
		case HGJ_STEP_IS_NOT_NULL:
			write_unary(w, step, HGJ_PIPE_IS_NOT_NULL, dst);
			return HGJ_KIND_U1;
		case HGJ_STEP_BOOL_TEST:
			write_unary(w, step, HGJ_PIPE_BOOL_TEST, dst);
			return HGJ_KIND_U1;
		case HGJ_STEP_CASE:
		case HGJ_STEP_COALESCE:
			write_branches(w, step, dst);
			return kind_of(step->args[step->nargs - 1]);
		case HGJ_STEP_MEMBER:
			write_member(w, step, dst);
			return HGJ_KIND_U1;
		case HGJ_STEP_DECIMAL_ARITHMETIC:
			write_function(w, step, HGJ_PIPE_ARITHMETIC, dst);
			return HGJ_KIND_I8;
		case HGJ_STEP_DECIMAL_ALIGN:
			write_align(w, step, dst);
			return HGJ_KIND_I8;
		case HGJ_STEP_DECIMAL_COMPARE:
			write_function(w, step, HGJ_PIPE_COMPARE, dst);
			return HGJ_KIND_U1;
		case HGJ_STEP_DECIMAL_RANGE:
			write_range(w, step, dst);
			return HGJ_KIND_U1;
		case HGJ_STEP_INPUT:
		case HGJ_STEP_DECIMAL:
		case HGJ_STEP_DECIMAL_INTEGER:
		case HGJ_STEP_DATE:
		case HGJ_STEP_TEXT:
		case HGJ_STEP_LIKE:
		case HGJ_STEP_PART:
		case HGJ_STEP_CALL:
		case HGJ_STEP_BY_VALUE:
		case HGJ_STEP_NUMERIC:
			break;
	}
	hgj_device_refuse(w->code, HGJ_DEVICE_EXPRESSION);
	return step->kind;
}

/* Step 2.  A cast that only changes how bits are read changes the extension. */
static uint8
write_step(Writer *w, HgjStep *step)
{
	HgjDeviceCode *code = w->code;
	uint8		dst;
	uint8		kind;

	if (code->reason != HGJ_DEVICE_FITS)
		return 0;
	if (step->op != HGJ_STEP_INPUT &&
		hgj_device_hosts(code->device, step, w->inputs))
		return hgj_device_load_made(code->device,
									hgj_device_make_step(code->device, w->program, step,
														 w->inputs, false));
	if (step->op == HGJ_STEP_DECIMAL_INTEGER)
		return write_step(w, step->args[0]);
	if (step->op == HGJ_STEP_BY_VALUE && step->nargs > 1)
		return write_step(w, step->args[1]);
	if (step->op == HGJ_STEP_DECIMAL)
	{
		uint8		reg = write_step(w, step->args[0]);

		if (code->reason == HGJ_DEVICE_FITS && code->scales[reg] != step->scale)
			hgj_device_refuse(code, HGJ_DEVICE_COLUMN);
		return reg;
	}
	if (step->op == HGJ_STEP_INPUT)
	{
		uint8		reg = w->inputs->load(w->inputs->arg, step->input);

		if (code->kinds[reg] == step->kind || step->kind == HGJ_KIND_OTHER)
			return reg;
		dst = hgj_device_register(code, step->kind);
		kind = code->kinds[reg];
		EMIT(code, HGJ_PIPE_MOVE, .dst = dst, .a = reg);
	}
	else
	{
		dst = hgj_device_register(code, kind_of(step));
		kind = write_operation(w, step, dst);
	}
	if (kind != kind_of(step) && code->reason == HGJ_DEVICE_FITS)
	{
		if (step->kind >= HGJ_KIND_F4 || kind >= HGJ_KIND_F4)
			hgj_device_refuse(code, HGJ_DEVICE_EXPRESSION);
		EMIT(code, HGJ_PIPE_KEY_WORD, .kind = step->kind, .dst = dst, .a = dst);
	}
	code->nregs = dst + 1;
	code->kinds[dst] = kind_of(step);
	return dst;
}

/* The register that has the step's value; what it reads has been loaded. */
uint8
hgj_device_step(HgjDeviceCode *code, HgjProgram *program, HgjStep *step,
				const HgjDeviceInputs *inputs)
{
	Writer		w = {code, program, inputs};

	return write_step(&w, step);
}

/* The value of a program that is an expression. */
uint8
hgj_device_eval(HgjDeviceCode *code, HgjProgram *program, const HgjDeviceInputs *inputs)
{
	if (program->root == NULL)
	{
		hgj_device_refuse(code, HGJ_DEVICE_EXPRESSION);
		return 0;
	}
	hgj_device_load(code, program, program->root, inputs);
	return hgj_device_step(code, program, program->root, inputs);
}

static void
filter_by(HgjDeviceCode *code, HgjProgram *program, HgjStep *step, int join,
		  const HgjDeviceInputs *inputs)
{
	int			nregs;
	uint8		reg;

	hgj_device_load(code, program, step, inputs);
	nregs = code->nregs;
	reg = hgj_device_step(code, program, step, inputs);
	EMIT(code, HGJ_PIPE_FILTER, .a = reg, .arg = join + 1);
	code->nregs = nregs;
}

/* Give up candidates of a join that do not pass the clauses of a program. */
void
hgj_device_filter(HgjDeviceCode *code, HgjProgram *program, int join,
				  const HgjDeviceInputs *inputs)
{
	for (int c = 0; c < program->nclauses; c++)
	{
		ListCell   *lc;

		filter_by(code, program, program->clauses[c].step, join, inputs);
		foreach(lc, program->clauses[c].merged)
			filter_by(code, program, lfirst(lc), join, inputs);
	}
}
