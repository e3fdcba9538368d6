/*-------------------------------------------------------------------------
 *
 * pipeline_check.cu
 *	  Is a pipeline's spec one that kernels can run without looking at it again?
 *
 * 1. The instructions: they name what there is, jump forward only, and the
 *	  probes and matches of joins are in order.
 * 2. Every register that somebody reads is set by an instruction.
 * 3. Tables are built, of the same device, and sorted: what a key matches is one
 *	  range of slots.  Where a row can have very many candidates, or is returned, rows
 *	  go through turns (pipeline_turns.cuh).
 *
 * What is found out on the way goes into the pipeline's view.  Owns nothing.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "pipeline_host.h"

namespace hgj
{

static bool has_result(uint32_t op)
{
	return op >= HGJ_PIPE_INPUT && op <= HGJ_PIPE_KEY_WORD;
}

/* Does the instruction name what there is? */
static bool instruction_is_sound(const HgjPipelineSpec *spec, uint32_t at)
{
	const HgjPipeInstruction *in = &spec->code[at];

	if (in->op > HGJ_PIPE_MATCH || in->kind > HGJ_PIPE_F8 ||
		(has_result(in->op) && in->dst >= HGJ_PIPE_REGISTERS))
		return false;
	switch (in->op)
	{
		case HGJ_PIPE_END:
		case HGJ_PIPE_CONSTANT:
		case HGJ_PIPE_NULL:
			return true;
		case HGJ_PIPE_INPUT:
			return in->arg < spec->ninputs;
		case HGJ_PIPE_PAYLOAD:
			return in->a < spec->njoins && in->arg < spec->joins[in->a].ncolumns;
		case HGJ_PIPE_PROBE:
		case HGJ_PIPE_MATCH:
			return in->a < spec->njoins;
		case HGJ_PIPE_JUMP:
			return in->arg > at && in->arg < spec->ncode;
		case HGJ_PIPE_JUMP_UNLESS:
		case HGJ_PIPE_JUMP_FALSE:
		case HGJ_PIPE_JUMP_TRUE:
		case HGJ_PIPE_JUMP_VALID:
			return in->a < HGJ_PIPE_REGISTERS && in->arg > at && in->arg < spec->ncode;
		case HGJ_PIPE_FILTER:
			return in->a < HGJ_PIPE_REGISTERS &&
				   (in->arg <= spec->njoins || in->arg == HGJ_PIPE_DROP ||
					(in->arg > HGJ_PIPE_JOINS &&
					 in->arg <= HGJ_PIPE_JOINS + spec->njoins));
		case HGJ_PIPE_COMPARE:
		case HGJ_PIPE_DISTINCT:
		case HGJ_PIPE_ARITHMETIC:
		case HGJ_PIPE_AND:
		case HGJ_PIPE_OR:
			return in->a < HGJ_PIPE_REGISTERS && in->b < HGJ_PIPE_REGISTERS;
		default:
			return in->a < HGJ_PIPE_REGISTERS;
	}
}

/* Step 1: instructions, and where joins begin and end among them. */
static HgjStatus check_code(HgjPipeline *p, HgjError *err)
{
	const HgjPipelineSpec *spec = &p->spec;
	uint32_t probed = 0;
	uint32_t matched = 0;

	if (spec->ninputs > HGJ_PIPE_INPUTS || spec->njoins > HGJ_PIPE_JOINS)
		return fail(err, HGJ_INVALID, "a pipeline has too many inputs or joins");
	if (spec->ncode < 1 || spec->ncode > HGJ_PIPE_CODE ||
		spec->code[spec->ncode - 1].op != HGJ_PIPE_END)
		return fail(err, HGJ_INVALID,
					"a pipeline has up to 512 instructions, END the last");
	for (uint32_t i = 0; i < spec->ncode; i++)
	{
		const HgjPipeInstruction *in = &spec->code[i];

		if (!instruction_is_sound(spec, i) ||
			(in->op == HGJ_PIPE_END && i + 1 < spec->ncode))
			return fail(err, HGJ_INVALID, "an instruction of a pipeline is not sound");
		if (has_result(in->op) && in->dst >= p->registers)
			p->registers = in->dst + 1u;
		if (in->op == HGJ_PIPE_PAYLOAD && in->a >= probed)
			return fail(err, HGJ_INVALID, "a pipeline reads a row that is not there yet");
		if (in->op == HGJ_PIPE_PROBE)
		{
			if (in->a != probed || matched != probed)
				return fail(err, HGJ_INVALID, "the probes of a pipeline are in disorder");
			p->view.joins[probed].after_probe = i + 1;
			p->view.joins[probed].first_only = spec->joins[probed].single;
			probed++;
		}
		else if (in->op == HGJ_PIPE_MATCH)
		{
			if (in->a != matched || matched + 1 != probed)
				return fail(err, HGJ_INVALID,
							"the matches of a pipeline are in disorder");
			p->view.joins[matched++].after_match = i + 1;
		}
		else if (in->op == HGJ_PIPE_FILTER && in->arg == HGJ_PIPE_DROP)
		{
			if (probed > 0)
				return fail(err, HGJ_INVALID,
							"a filter of input rows stands behind a probe");
		}
		else if (in->op == HGJ_PIPE_FILTER && in->arg > HGJ_PIPE_JOINS + matched)
			return fail(err, HGJ_INVALID,
						"a filter of a pipeline stands before its match");
		else if (in->op == HGJ_PIPE_FILTER && matched < probed)
			p->view.joins[matched].first_only = false;
	}
	if (matched != spec->njoins)
		return fail(err, HGJ_INVALID, "a join of a pipeline has no probe or no match");
	return HGJ_OK;
}

/* Step 2. */
static HgjStatus check_registers(const HgjPipeline *p, HgjError *err)
{
	const HgjPipelineSpec *spec = &p->spec;
	uint32_t set = p->registers;
	bool good = spec->rows ? spec->nkeys == 0 && spec->nwords == 0
						   : spec->nkeys <= HGJ_PIPE_KEYS && spec->nwords >= 1 &&
								 spec->nwords <= HGJ_PIPE_WORDS;

	for (uint32_t i = 0; good && i < spec->ninputs; i++)
		good = spec->inputs[i] <= HGJ_PIPE_F8;
	for (uint32_t k = 0; good && k < spec->nkeys; k++)
		good = spec->keys[k] < set;
	for (uint32_t w = 0; good && w < spec->nwords; w++)
	{
		const HgjPipeWord *word = &spec->words[w];

		good = word->state <= HGJ_PIPE_MAX_FLOAT &&
			   (word->filter == HGJ_PIPE_NONE || word->filter < set) &&
			   (word->reg < set ||
				(word->reg == HGJ_PIPE_NONE && word->state == HGJ_PIPE_COUNT));
	}
	if (good && !spec->rows)
		good = spec->words[0].state == HGJ_PIPE_COUNT &&
			   spec->words[0].reg == HGJ_PIPE_NONE &&
			   spec->words[0].filter == HGJ_PIPE_NONE;
	return good ? HGJ_OK
				: fail(err, HGJ_INVALID,
					   "a pipeline's spec is not sound, or state word 0 "
					   "does not count rows");
}

/* Step 3. */
static HgjStatus check_join(HgjPipeline *p, uint32_t j, HgjError *err)
{
	const HgjPipeJoin *join = &p->spec.joins[j];
	PipeJoin *view = &p->view.joins[j];
	const HgjTable *t = join->table;

	if (t == nullptr || !t->built || t->device != p->account.device)
		return fail(err, HGJ_INVALID, "a join of a pipeline needs a table of its device");
	if (join->nkeys != t->spec.nwords || join->nkeys > HGJ_PIPE_KEYS ||
		join->ncolumns > HGJ_PIPE_COLUMNS)
		return fail(err, HGJ_INVALID, "a join of a pipeline does not fit its table");
	if (t->graph.walk || t->graph.slack > 0)
		return fail(err, HGJ_UNSUPPORTED,
					"keys of a table share a hash, or it is dynamic");
	if (!view->first_only && !t->graph.unique && t->graph.longest > 1)
		p->work *= t->graph.longest;
	if (p->work > PIPE_MOST_WORK)
		p->work = PIPE_MOST_WORK + 1;
	for (uint32_t k = 0; k < join->nkeys; k++)
	{
		if (join->keys[k] >= p->registers)
			return fail(err, HGJ_INVALID, "a join of a pipeline has no such key");
		view->keys[k] = join->keys[k];
	}
	for (uint32_t c = 0; c < join->ncolumns; c++)
	{
		if (join->kinds[c] > HGJ_PIPE_F8)
			return fail(err, HGJ_INVALID, "a join of a pipeline has no such column");
		view->columns[c].kind = join->kinds[c];
	}
	view->empty = t->graph.rows == 0;
	if (!view->empty)
		view->graph = t->graph.view();
	view->nkeys = join->nkeys;
	view->pass = join->pass;
	view->fill = join->fill;
	view->single = join->single;
	return HGJ_OK;
}

/* Steps 1 to 3. */
HgjStatus pipeline_check(HgjPipeline *p, HgjError *err)
{
	HGJ_TRY(check_code(p, err));
	HGJ_TRY(check_registers(p, err));
	for (uint32_t j = 0; j < p->spec.njoins; j++)
		HGJ_TRY(check_join(p, j, err));
	p->turns = p->spec.rows || p->work > PIPE_MOST_WORK;
	return HGJ_OK;
}

} // namespace hgj
