/*-------------------------------------------------------------------------
 *
 * plan.c
 *	  What is known of a pipeline's plan before a row comes.
 *
 * 1. The plan is checked, and the terms' values take their places in it
 *	  (engine/pipeline_check.c).
 * 2. Where a join finds several rows for one, those that come out are copies of what is
 *	  still needed of it: registers that are set before the PROBE and read behind it, the rows
 *	  of joins before it that are looked at behind it, and its own, where inputs are.
 * 3. Instructions that jumps lead to are numbered, so that rows can wait for them.
 *
 * Owns nothing: a Plan is a part of the pipeline.  Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "threads/threads.h"

/* Registers that the end of a row reads. */
static uint64_t
read_at_end(const HgjPipelineSpec *spec)
{
	uint64_t	regs = 0;

	for (uint32_t k = 0; k < spec->nkeys; k++)
		regs |= UINT64_C(1) << spec->keys[k];
	for (uint32_t c = 0; c < spec->ncolumns; c++)
		regs |= UINT64_C(1) << spec->columns[c];
	for (uint32_t w = 0; w < spec->nwords; w++)
	{
		if (spec->words[w].reg != HGJ_PIPE_NONE)
			regs |= UINT64_C(1) << spec->words[w].reg;
		if (spec->words[w].filter != HGJ_PIPE_NONE)
			regs |= UINT64_C(1) << spec->words[w].filter;
	}
	return regs;
}

/* Registers that an instruction reads. */
static uint64_t
reads(const HgjPipelineSpec *spec, const HgjPipeInstruction *in)
{
	uint64_t	a = UINT64_C(1) << (in->a % HGJ_PIPE_REGISTERS);
	uint64_t	b = UINT64_C(1) << (in->b % HGJ_PIPE_REGISTERS);
	uint64_t	keys = 0;

	switch (in->op)
	{
		case HGJ_PIPE_MOVE:
		case HGJ_PIPE_CAST:
		case HGJ_PIPE_NOT:
		case HGJ_PIPE_IS_NULL:
		case HGJ_PIPE_IS_NOT_NULL:
		case HGJ_PIPE_BOOL_TEST:
		case HGJ_PIPE_KEY_WORD:
		case HGJ_PIPE_JUMP_UNLESS:
		case HGJ_PIPE_JUMP_FALSE:
		case HGJ_PIPE_JUMP_TRUE:
		case HGJ_PIPE_JUMP_VALID:
		case HGJ_PIPE_FILTER:
			return a;
		case HGJ_PIPE_COMPARE:
		case HGJ_PIPE_DISTINCT:
		case HGJ_PIPE_AND:
		case HGJ_PIPE_OR:
			return a | b;
		case HGJ_PIPE_ARITHMETIC:
			return in->c < HGJ_NEG ? a | b : a;
		case HGJ_PIPE_END:
			return read_at_end(spec);
		case HGJ_PIPE_PROBE:
			for (uint32_t k = 0; k < spec->joins[in->a].nkeys; k++)
				keys |= UINT64_C(1) << spec->joins[in->a].keys[k];
			return keys;
		default:
			return 0;
	}
}

/* Step 2. */
static void
plan_join(Plan *plan, uint32_t j)
{
	const HgjPipelineSpec *spec = &plan->spec;
	PlanJoin   *join = &plan->joins[j];
	uint64_t	set = 0;
	uint64_t	read = 0;

	join->rows = spec->rows ? UINT32_MAX : 0;
	join->origin = spec->rows;
	for (uint32_t i = 0; i < spec->ncode; i++)
	{
		const HgjPipeInstruction *in = &spec->code[i];

		if (i < join->after_probe && hgj_pipe_has_result(in->op))
			set |= UINT64_C(1) << in->dst;
		if (i >= join->after_probe)
			read |= plan->reads[i];
		if (i >= join->after_probe && in->op == HGJ_PIPE_PAYLOAD)
			join->rows |= UINT32_C(1) << in->a;
		join->origin |= i >= join->after_probe && in->op == HGJ_PIPE_INPUT;
	}
	join->live = set & read;
	join->rows &= (UINT32_C(1) << j) - 1;
}

/* Step 3. */
static void
plan_targets(Plan *plan)
{
	const HgjPipelineSpec *spec = &plan->spec;
	bool		is_target[HGJ_PIPE_CODE] = {false};

	for (uint32_t i = 0; i < spec->ncode; i++)
		if (hgj_pipe_jumps(spec->code[i].op))
			is_target[spec->code[i].arg] = true;
	for (uint32_t i = 0; i < spec->ncode; i++)
	{
		if (!is_target[i])
			continue;
		plan->targets[plan->ntargets++] = (uint16_t) i;
		plan->target_of[i] = (uint16_t) plan->ntargets;
	}
}

/* The sums of 128 bits. */
static void
plan_pairs(Plan *plan)
{
	for (uint32_t w = 0; w + 1 < plan->spec.nwords; w++)
	{
		const HgjPipeWord *low = &plan->spec.words[w];
		const HgjPipeWord *high = low + 1;

		if (low->state == HGJ_PIPE_SUM_LOW && high->state == HGJ_PIPE_SUM_HIGH &&
			low->reg == high->reg && low->filter == high->filter)
			plan->paired |= UINT32_C(3) << w;
	}
}

/* HGJ_INVALID, or a plan that can be run.  `plan` is zeroed. */
HgjStatus
hgj_threads_plan(Plan *plan, const HgjPipelineSpec *spec, const HgjPipelineTerms *terms,
				 HgjError *err)
{
	HgjPipelineFacts facts;
	HgjStatus	status = hgj_check_pipeline(spec, &facts, err);

	if (status != HGJ_OK)
		return status;
	plan->spec = *spec;
	status = hgj_bind_pipeline(&plan->spec, terms, err);
	if (status != HGJ_OK)
		return status;
	if (terms)
	{
		plan->nhaving = terms->nhaving;
		memcpy(plan->having, terms->having, sizeof(plan->having));
	}
	plan->registers = facts.registers;
	plan->row_width = 1 + spec->nkeys + spec->nwords;
	for (uint32_t i = 0; i < spec->ncode; i++)
		plan->reads[i] = reads(&plan->spec, &plan->spec.code[i]);
	for (uint32_t j = 0; j < spec->njoins; j++)
	{
		plan->joins[j].after_probe = facts.joins[j].after_probe;
		plan->joins[j].after_match = facts.joins[j].after_match;
		plan->joins[j].filtered = facts.joins[j].filtered;
		plan_join(plan, j);
	}
	plan_targets(plan);
	plan_pairs(plan);
	return HGJ_OK;
}
