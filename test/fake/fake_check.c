/*-------------------------------------------------------------------------
 *
 * fake_check.c
 *	  Does a pipeline's spec keep to engine/pipeline.h?
 *
 * 1. Instructions name what there is.
 * 2. Probes and matches stand in order, filters and payload where their join
 *	  has got that far, and no jump leads over a probe or a match.
 * 3. What groups need is there, or, where rows are returned, none of it.
 * 4. Joins fit their tables.
 *
 * Whether a register has a value where it is read is seen when it is (fake_rows.c).
 * Owns nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "fake.h"

static bool
has_result(uint32_t op)
{
	return op >= HGJ_PIPE_INPUT && op <= HGJ_PIPE_KEY_WORD;
}

static bool
is_jump(uint32_t op)
{
	return op >= HGJ_PIPE_JUMP && op <= HGJ_PIPE_JUMP_VALID;
}

/* Step 1: the operands. */
static bool
names_what_there_is(const HgjPipelineSpec *spec, const HgjPipeInstruction *in)
{
	if (in->op > HGJ_PIPE_MATCH || in->kind > HGJ_PIPE_F8)
		return false;
	if (has_result(in->op) && in->dst >= HGJ_PIPE_REGISTERS)
		return false;
	switch (in->op)
	{
		case HGJ_PIPE_END:
		case HGJ_PIPE_CONSTANT:
		case HGJ_PIPE_NULL:
		case HGJ_PIPE_JUMP:
			return true;
		case HGJ_PIPE_INPUT:
			return in->arg < spec->ninputs;
		case HGJ_PIPE_PAYLOAD:
			return in->a < spec->njoins && in->arg < spec->joins[in->a].ncolumns;
		case HGJ_PIPE_PROBE:
		case HGJ_PIPE_MATCH:
			return in->a < spec->njoins;
		case HGJ_PIPE_COMPARE:
			return in->a < HGJ_PIPE_REGISTERS && in->b < HGJ_PIPE_REGISTERS &&
				in->c <= HGJ_PIPE_GE;
		case HGJ_PIPE_ARITHMETIC:
			return in->a < HGJ_PIPE_REGISTERS && in->c <= HGJ_PIPE_ABS &&
				(in->b < HGJ_PIPE_REGISTERS || in->c >= HGJ_PIPE_NEG);
		case HGJ_PIPE_CAST:
			return in->a < HGJ_PIPE_REGISTERS && in->c <= HGJ_PIPE_F8;
		case HGJ_PIPE_DISTINCT:
		case HGJ_PIPE_AND:
		case HGJ_PIPE_OR:
			return in->a < HGJ_PIPE_REGISTERS && in->b < HGJ_PIPE_REGISTERS;
		default:
			return in->a < HGJ_PIPE_REGISTERS;
	}
}

/* Step 2: a jump leads forward, and over neither PROBE nor MATCH. */
static bool
jump_is_sound(const HgjPipelineSpec *spec, uint32_t at)
{
	uint32_t	to = spec->code[at].arg;

	if (to <= at || to >= spec->ncode)
		return false;
	for (uint32_t i = at + 1; i < to; i++)
		if (spec->code[i].op == HGJ_PIPE_PROBE || spec->code[i].op == HGJ_PIPE_MATCH)
			return false;
	return true;
}

/* Step 2: what it counts for is where the row stands. */
static bool
filter_is_sound(const HgjPipeInstruction *in, uint32_t probed, uint32_t matched)
{
	if (in->arg == 0)
		return true;
	if (in->arg == HGJ_PIPE_DROP)
		return probed == 0;
	if (in->arg <= HGJ_PIPE_JOINS)
		return probed == in->arg && matched + 1 == probed;
	return matched + HGJ_PIPE_JOINS == in->arg && probed == matched;
}

/* Step 2, for one instruction; false: it stands at the wrong place. */
static bool
check_place(HgjPipeline *p, uint32_t at, uint32_t *probed, uint32_t *matched)
{
	const HgjPipeInstruction *in = &p->code[at];

	if (is_jump(in->op))
		return jump_is_sound(&p->spec, at);
	switch (in->op)
	{
		case HGJ_PIPE_END:
			return at + 1 == p->spec.ncode;
		case HGJ_PIPE_PAYLOAD:
			return in->a < *probed;
		case HGJ_PIPE_FILTER:
			return filter_is_sound(in, *probed, *matched);
		case HGJ_PIPE_PROBE:
			if (in->a != *probed || *matched != *probed)
				return false;
			p->joins[(*probed)++].after_probe = at + 1;
			return true;
		case HGJ_PIPE_MATCH:
			if (in->a != *matched || *matched + 1 != *probed)
				return false;
			p->joins[(*matched)++].after_match = at + 1;
			return true;
		default:
			return true;
	}
}

static HgjStatus
check_code(HgjPipeline *p, HgjError *err)
{
	const HgjPipelineSpec *spec = &p->spec;
	uint32_t	probed = 0;
	uint32_t	matched = 0;

	if (spec->ncode < 1 || spec->ncode > HGJ_PIPE_CODE ||
		spec->code[spec->ncode - 1].op != HGJ_PIPE_END)
		return fake_fail(err, HGJ_INVALID, "the instructions do not end");
	for (uint32_t i = 0; i < spec->ncode; i++)
	{
		if (!names_what_there_is(spec, &spec->code[i]))
			return fake_fail(err, HGJ_INVALID, "an instruction names what is not there");
		if (!check_place(p, i, &probed, &matched))
			return fake_fail(err, HGJ_INVALID, "an instruction is out of place");
	}
	if (matched != spec->njoins)
		return fake_fail(err, HGJ_INVALID, "a join has no match");
	return HGJ_OK;
}

/* Registers that an instruction sets. */
static uint64_t
registers_set(const HgjPipelineSpec *spec)
{
	uint64_t	set = 0;

	for (uint32_t i = 0; i < spec->ncode; i++)
		if (has_result(spec->code[i].op))
			set |= UINT64_C(1) << spec->code[i].dst;
	return set;
}

static bool
is_set(uint64_t set, uint8_t reg)
{
	return reg < HGJ_PIPE_REGISTERS && (set >> reg & 1);
}

/* Step 3. */
static bool
groups_are_sound(const HgjPipelineSpec *spec, uint64_t set)
{
	if (spec->rows)
		return spec->nkeys == 0 && spec->nwords == 0;
	if (spec->nkeys > HGJ_PIPE_KEYS || spec->nwords < 1 || spec->nwords > HGJ_PIPE_WORDS)
		return false;
	for (uint32_t k = 0; k < spec->nkeys; k++)
		if (!is_set(set, spec->keys[k]))
			return false;
	for (uint32_t w = 0; w < spec->nwords; w++)
	{
		const HgjPipeWord *word = &spec->words[w];
		bool		none = word->reg == HGJ_PIPE_NONE;

		if (word->state > HGJ_PIPE_MAX_FLOAT ||
			(none ? word->state != HGJ_PIPE_COUNT : !is_set(set, word->reg)) ||
			(word->filter != HGJ_PIPE_NONE && !is_set(set, word->filter)))
			return false;
	}
	return spec->words[0].state == HGJ_PIPE_COUNT &&
		spec->words[0].reg == HGJ_PIPE_NONE && spec->words[0].filter == HGJ_PIPE_NONE;
}

/* Step 4. */
static HgjStatus
check_join(const HgjPipeJoin *join, uint64_t set, HgjError *err)
{
	const FakeTable *table = (const FakeTable *) (const void *) join->table;

	if (table == NULL || !table->built)
		return fake_fail(err, HGJ_INVALID, "a join needs a table that has been built");
	if (join->nkeys != table->spec.nwords || join->nkeys > HGJ_PIPE_KEYS ||
		join->ncolumns > HGJ_PIPE_COLUMNS)
		return fake_fail(err, HGJ_INVALID, "a join does not fit its table");
	for (uint32_t k = 0; k < join->nkeys; k++)
		if (!is_set(set, join->keys[k]))
			return fake_fail(err, HGJ_INVALID, "a join's key is never set");
	for (uint32_t c = 0; c < join->ncolumns; c++)
		if (join->kinds[c] > HGJ_PIPE_F8)
			return fake_fail(err, HGJ_INVALID, "a payload column is of no kind");
	if (table->spec.flags & HGJ_TABLE_DYNAMIC)
		return fake_fail(err, HGJ_UNSUPPORTED, "a join's table is dynamic");
	return HGJ_OK;
}

/* Steps 1 to 4. */
HgjStatus
fake_check(HgjPipeline *p, HgjError *err)
{
	const HgjPipelineSpec *spec = &p->spec;
	HgjStatus	status;
	uint64_t	set;

	if (spec->ninputs > HGJ_PIPE_INPUTS || spec->njoins > HGJ_PIPE_JOINS)
		return fake_fail(err, HGJ_INVALID, "there are too many inputs or joins");
	for (uint32_t i = 0; i < spec->ninputs; i++)
		if (spec->inputs[i] > HGJ_PIPE_F8)
			return fake_fail(err, HGJ_INVALID, "an input is of no kind");
	status = check_code(p, err);
	if (status != HGJ_OK)
		return status;
	set = registers_set(spec);
	if (!groups_are_sound(spec, set))
		return fake_fail(err, HGJ_INVALID, "keys or state words are not sound");
	for (uint32_t j = 0; j < spec->njoins && status == HGJ_OK; j++)
		status = check_join(&spec->joins[j], set, err);
	return status;
}
