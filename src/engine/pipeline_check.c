/*-------------------------------------------------------------------------
 *
 * pipeline_check.c
 *	  Does a pipeline's plan keep to pipeline.h, so that it can be run without
 *	  being looked at again?
 *
 * 1. Instructions name what there is.
 * 2. Probes and matches stand in order, filters and payload where their join
 *	  has got that far, and jumps lead forward, over neither probe nor match.
 * 3. What groups need is there, or, where rows are returned, none of it, or what a
 *	  table needs.
 * 4. Joins have keys that are set, and columns of some kind.
 * 5. Kept rows lie within the memory that they are of.
 * 6. The terms of a run have what the plan asks for, and take their places in it.
 *
 * Whether a join fits its table is the engine's to check, who knows what a table
 * is.  Whether a register has a value where it is read is not checked.
 *
 * Owns nothing, locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "checks.h"

/* Step 1. */
static bool
names_what_there_is(const HgjPipelineSpec *spec, const HgjPipeInstruction *in)
{
	if (in->op > HGJ_PIPE_MATCH || in->kind > HGJ_KIND_F8)
		return false;
	if (hgj_pipe_has_result(in->op) && in->dst >= HGJ_PIPE_REGISTERS)
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
		case HGJ_PIPE_VALUE:
			return in->arg < HGJ_PIPE_VALUES;
		case HGJ_PIPE_PAYLOAD:
			return in->a < spec->njoins && in->arg < spec->joins[in->a].ncolumns;
		case HGJ_PIPE_PROBE:
		case HGJ_PIPE_MATCH:
			return in->a < spec->njoins;
		case HGJ_PIPE_COMPARE:
			return in->a < HGJ_PIPE_REGISTERS && in->b < HGJ_PIPE_REGISTERS &&
				in->c <= HGJ_GE;
		case HGJ_PIPE_ARITHMETIC:
			return in->a < HGJ_PIPE_REGISTERS && in->c <= HGJ_ABS &&
				(in->b < HGJ_PIPE_REGISTERS || in->c >= HGJ_NEG);
		case HGJ_PIPE_CAST:
			return in->a < HGJ_PIPE_REGISTERS && in->c <= HGJ_KIND_F8;
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
is_in_place(const HgjPipelineSpec *spec, uint32_t at, HgjPipelineFacts *facts,
			uint32_t *probed, uint32_t *matched)
{
	const HgjPipeInstruction *in = &spec->code[at];

	if (hgj_pipe_jumps(in->op))
		return jump_is_sound(spec, at);
	switch (in->op)
	{
		case HGJ_PIPE_END:
			return at + 1 == spec->ncode;
		case HGJ_PIPE_PAYLOAD:
			return in->a < *probed;
		case HGJ_PIPE_FILTER:
			if (*matched < *probed)
				facts->joins[*matched].filtered = true;
			return filter_is_sound(in, *probed, *matched);
		case HGJ_PIPE_PROBE:
			if (in->a != *probed || *matched != *probed)
				return false;
			facts->joins[(*probed)++].after_probe = at + 1;
			return true;
		case HGJ_PIPE_MATCH:
			if (in->a != *matched || *matched + 1 != *probed)
				return false;
			facts->joins[(*matched)++].after_match = at + 1;
			return true;
		default:
			return true;
	}
}

/* Steps 1 and 2. */
static HgjStatus
check_code(const HgjPipelineSpec *spec, HgjPipelineFacts *facts, HgjError *err)
{
	uint32_t	probed = 0;
	uint32_t	matched = 0;

	if (spec->ncode < 1 || spec->ncode > HGJ_PIPE_CODE ||
		spec->code[spec->ncode - 1].op != HGJ_PIPE_END)
		return hgj_fail(err, HGJ_INVALID,
						"a pipeline has up to 512 instructions, END the last");
	for (uint32_t i = 0; i < spec->ncode; i++)
	{
		const HgjPipeInstruction *in = &spec->code[i];

		if (!names_what_there_is(spec, in))
			return hgj_fail(err, HGJ_INVALID,
							"an instruction of a pipeline names what is not there");
		if (!is_in_place(spec, i, facts, &probed, &matched))
			return hgj_fail(err, HGJ_INVALID,
							"an instruction of a pipeline is out of place");
		if (hgj_pipe_has_result(in->op))
		{
			facts->set |= UINT64_C(1) << in->dst;
			if (in->dst >= facts->registers)
				facts->registers = in->dst + 1u;
		}
	}
	if (matched != spec->njoins)
		return hgj_fail(err, HGJ_INVALID, "a join of a pipeline has no match");
	return HGJ_OK;
}

static bool
is_set(const HgjPipelineFacts *facts, uint8_t reg)
{
	return reg < HGJ_PIPE_REGISTERS && (facts->set >> reg & 1);
}

static bool
are_set(const HgjPipelineFacts *facts, const uint8_t *regs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!is_set(facts, regs[i]))
			return false;
	return true;
}

/* Step 3, of what fills a table. */
static bool
columns_are_sound(const HgjPipelineSpec *spec, const HgjPipelineFacts *facts)
{
	if (spec->rows || spec->nwords != 0 || spec->nkeys < 1 || spec->nkeys > HGJ_PIPE_KEYS ||
		spec->ncolumns > HGJ_PIPE_COLUMNS)
		return false;
	for (uint32_t c = 0; c < spec->ncolumns; c++)
		if (spec->kinds[c] > HGJ_KIND_F8)
			return false;
	return are_set(facts, spec->keys, spec->nkeys) &&
		are_set(facts, spec->columns, spec->ncolumns);
}

/* Step 3. */
static bool
groups_are_sound(const HgjPipelineSpec *spec, const HgjPipelineFacts *facts)
{
	if (spec->fills)
		return columns_are_sound(spec, facts);
	if (spec->ncolumns != 0)
		return false;
	if (spec->rows)
		return spec->nkeys == 0 && spec->nwords == 0;
	if (spec->nkeys > HGJ_PIPE_KEYS || spec->nwords < 1 || spec->nwords > HGJ_PIPE_WORDS ||
		!are_set(facts, spec->keys, spec->nkeys))
		return false;
	for (uint32_t w = 0; w < spec->nwords; w++)
	{
		const HgjPipeWord *word = &spec->words[w];
		bool		none = word->reg == HGJ_PIPE_NONE;

		if (word->state > HGJ_PIPE_MAX_FLOAT ||
			(none ? word->state != HGJ_PIPE_COUNT : !is_set(facts, word->reg)) ||
			(word->filter != HGJ_PIPE_NONE && !is_set(facts, word->filter)))
			return false;
	}
	return spec->words[0].state == HGJ_PIPE_COUNT &&
		spec->words[0].reg == HGJ_PIPE_NONE && spec->words[0].filter == HGJ_PIPE_NONE;
}

/* Step 4. */
static bool
join_is_sound(const HgjPipeJoin *join, const HgjPipelineFacts *facts)
{
	if (join->nkeys > HGJ_PIPE_KEYS || join->ncolumns > HGJ_PIPE_COLUMNS ||
		!are_set(facts, join->keys, join->nkeys))
		return false;
	for (uint32_t c = 0; c < join->ncolumns; c++)
		if (join->kinds[c] > HGJ_KIND_F8)
			return false;
	return true;
}

/* HGJ_INVALID, or all that *facts asks for. */
HgjStatus
hgj_check_pipeline(const HgjPipelineSpec *spec, HgjPipelineFacts *facts, HgjError *err)
{
	HgjStatus	status;

	memset(facts, 0, sizeof(*facts));
	if (spec->ninputs > HGJ_PIPE_INPUTS || spec->njoins > HGJ_PIPE_JOINS)
		return hgj_fail(err, HGJ_INVALID, "a pipeline has too many inputs or joins");
	for (uint32_t i = 0; i < spec->ninputs; i++)
		if (spec->inputs[i] > HGJ_KIND_F8)
			return hgj_fail(err, HGJ_INVALID, "an input of a pipeline is of no kind");
	status = check_code(spec, facts, err);
	if (status != HGJ_OK)
		return status;
	if (!groups_are_sound(spec, facts))
		return hgj_fail(err, HGJ_INVALID,
						"a pipeline's keys or state words are not sound, or word 0 "
						"does not count rows");
	for (uint32_t j = 0; j < spec->njoins; j++)
		if (!join_is_sound(&spec->joins[j], facts))
			return hgj_fail(err, HGJ_INVALID, "a join of a pipeline is not sound");
	return HGJ_OK;
}

/* Step 6: bounds are those of integers that groups have. */
static bool
having_is_sound(const HgjPipelineSpec *spec, const HgjPipelineTerms *terms)
{
	if (terms->nhaving > HGJ_PIPE_HAVING ||
		(terms->nhaving > 0 && (spec->nkeys == 0 || spec->fills || spec->rows)))
		return false;
	for (uint32_t i = 0; i < terms->nhaving; i++)
	{
		const HgjPipeHaving *having = &terms->having[i];

		if (having->word >= spec->nwords ||
			(having->count != HGJ_PIPE_NONE &&
			 (having->count >= spec->nwords ||
			  spec->words[having->count].state != HGJ_PIPE_COUNT)))
			return false;
		switch (spec->words[having->word].state)
		{
			case HGJ_PIPE_COUNT:
			case HGJ_PIPE_SUM:
			case HGJ_PIPE_MIN:
			case HGJ_PIPE_MAX:
				if (having->wide)
					return false;
				break;
			case HGJ_PIPE_SUM_LOW:
				if (!having->wide || having->word + 1u >= spec->nwords ||
					spec->words[having->word + 1].state != HGJ_PIPE_SUM_HIGH)
					return false;
				break;
			default:
				return false;
		}
	}
	return true;
}

/*
 * Step 6: the caller's copy of a plan, which has been checked, for one run on these terms (NULL:
 * there are none): a constant or NULL stands for each value.  HGJ_INVALID: the terms are not the
 * plan's.
 */
HgjStatus
hgj_bind_pipeline(HgjPipelineSpec *spec, const HgjPipelineTerms *terms, HgjError *err)
{
	uint32_t	nvalues = terms ? terms->nvalues : 0;

	if (nvalues > HGJ_PIPE_VALUES || (terms && !having_is_sound(spec, terms)))
		return hgj_fail(err, HGJ_INVALID, "a pipeline's terms are not sound");
	for (uint32_t i = 0; i < spec->ncode; i++)
	{
		HgjPipeInstruction *in = &spec->code[i];

		if (in->op != HGJ_PIPE_VALUE)
			continue;
		if (in->arg >= nvalues)
			return hgj_fail(err, HGJ_INVALID, "a pipeline's terms have too few values");
		in->op = hgj_pipe_value_is_null(terms, in->arg) ? HGJ_PIPE_NULL : HGJ_PIPE_CONSTANT;
		in->imm = terms->values[in->arg];
	}
	return HGJ_OK;
}

/* Step 5: is there such an array, with room for n things of so many bits each? */
static bool
array_is_sound(const HgjKeptArray *array, const HgjKeptMemory *memory, uint64_t n,
			   uint32_t bits)
{
	return array->id != 0 && array->at % 8 == 0 && array->bytes <= memory->bytes &&
		array->at <= memory->bytes - array->bytes && n * bits <= array->bytes * 8;
}

/* Step 5, for n rows of an input. */
static bool
input_is_sound(const HgjKeptInput *input, uint32_t n, const HgjKeptMemory *memory,
			   const HgjKeptPush *rows)
{
	uint64_t	end = (uint64_t) input->first + n;

	if (input->width != 1 && input->width != 2 && input->width != 3 && input->width != 4 &&
		input->width != 8)
		return false;
	if (input->width == 3 && input->numbers.bytes % 24 != 0)
		return false;
	if (input->ntable > 0 &&
		(uint64_t) input->table + HGJ_KEPT_TABLE((uint64_t) input->ntable) > rows->nwords)
		return false;
	return array_is_sound(&input->numbers, memory, end, input->width * 8) &&
		(input->validity.bytes == 0 ||
		 array_is_sound(&input->validity, memory, (end + 63) / 64 * 64, 1));
}

/* HGJ_INVALID: who reads these would read something else. */
HgjStatus
hgj_check_kept(const HgjPipelineSpec *spec, const HgjKeptMemory *memory,
			   const HgjKeptPush *rows, HgjError *err)
{
	if (rows->npieces > HGJ_KEPT_PIECES || rows->nwords > HGJ_KEPT_WORDS ||
		(rows->npieces > 0 && (memory->memory == NULL || rows->nrows == NULL ||
							   rows->inputs == NULL)))
		return hgj_fail(err, HGJ_INVALID, "no memory is known that rows could be kept in");
	for (uint32_t p = 0; p < rows->npieces; p++)
		for (uint32_t i = 0; i < spec->ninputs; i++)
			if (!input_is_sound(&rows->inputs[p * spec->ninputs + i], rows->nrows[p], memory,
								rows))
				return hgj_fail(err, HGJ_INVALID, "kept rows are not in the memory for them");
	return HGJ_OK;
}
