/*-------------------------------------------------------------------------
 *
 * run.c
 *	  The instructions of a plan, for a vector of rows.
 *
 * 1. An instruction is done for all rows of the vector that are alive.  A row that a FILTER
 *	  gives up is not alive any more.  What need not be computed yet is lazy.c's.
 * 2. Jumps lead forward: rows that jump are parked until the instruction that they jump to is
 *	  reached.  Where all rows are parked, the first such instruction is next.
 * 3. PROBE and MATCH are join.c's: a probe in which no row has found more than one is done in
 *	  place, the vector going on with rows that have found one.  Otherwise those that are found
 *	  go on in a vector of the join's own, as often as there are any, and this function is
 *	  called for each.
 * 4. END hands the rows over: to their groups (groups.c), or to those who return them, or fill
 *	  a table (rows.c).
 *
 * Owns nothing: vectors are the run's (runs.c).  Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "threads/threads.h"

/* ---- step 2 ------------------------------------------------------------------ */

/* Rows that are true (or not) of `test` go to the instruction; the others stay alive. */
#define PARK_WHERE(v, bits, test) \
	do { \
		uint32_t	left_ = 0; \
		for (uint32_t i = 0; all_alive(v) && i < (v)->n; i++) \
			(v)->sel[i] = i; \
		for (uint32_t at_ = 0; at_ < (v)->nsel; at_++) \
		{ \
			uint32_t	i = (v)->sel[at_]; \
			bool		jumps_ = (test); \
			(bits)[i / 64] |= (uint64_t) jumps_ << (i % 64); \
			(v)->sel[left_] = i; \
			left_ += !jumps_; \
		} \
		(v)->nparked += (v)->nsel - left_; \
		(v)->nsel = left_; \
	} while (0)

static void
jump(const Plan *plan, Vector *v, const HgjPipeInstruction *in)
{
	uint64_t   *bits = v->parked + (size_t) (plan->target_of[in->arg] - 1) * VECTOR_WORDS;
	const uint64_t *words = v->words[in->a % HGJ_PIPE_REGISTERS];
	const uint8_t *nulls = v->nulls[in->a % HGJ_PIPE_REGISTERS];
	bool		may = in->op != HGJ_PIPE_JUMP && has_nulls(v, in->a);

	switch (in->op)
	{
		case HGJ_PIPE_JUMP_UNLESS:
			PARK_WHERE(v, bits, words[i] == 0 || (may && nulls[i]));
			break;
		case HGJ_PIPE_JUMP_FALSE:
			PARK_WHERE(v, bits, words[i] == 0 && !(may && nulls[i]));
			break;
		case HGJ_PIPE_JUMP_TRUE:
			PARK_WHERE(v, bits, words[i] != 0 && !(may && nulls[i]));
			break;
		case HGJ_PIPE_JUMP_VALID:
			PARK_WHERE(v, bits, !(may && nulls[i]));
			break;
		default:
			PARK_WHERE(v, bits, true);
			break;
	}
}

/* Rows that have waited for this instruction are alive again, in their order. */
static void
unpark(const Plan *plan, Vector *v, uint32_t pc)
{
	uint64_t   *bits = v->parked + (size_t) (plan->target_of[pc] - 1) * VECTOR_WORDS;
	uint32_t	n = 0;
	uint32_t	before = v->nsel;

	/* a vector that has parked rows has a selection */
	for (uint32_t at = 0; at < v->nsel; at++)
		bits[v->sel[at] / 64] |= UINT64_C(1) << (v->sel[at] % 64);
	for (uint32_t w = 0; w < VECTOR_WORDS; w++)
	{
		for (uint64_t word = bits[w]; word != 0; word &= word - 1)
			v->sel[n++] = w * 64 + (uint32_t) __builtin_ctzll(word);
		bits[w] = 0;
	}
	v->nparked -= n - before;
	v->nsel = n;
}

/* The first instruction that rows wait for. */
static uint32_t
next_target(const Plan *plan, const Vector *v)
{
	for (uint32_t t = 0; t < plan->ntargets; t++)
		for (uint32_t w = 0; w < VECTOR_WORDS; w++)
			if (v->parked[(size_t) t * VECTOR_WORDS + w] != 0)
				return plan->targets[t];
	return plan->spec.ncode - 1;	/* not reached */
}

/* ---- step 1 ------------------------------------------------------------------ */

static void
filter(Run *run, Vector *v, const HgjPipeInstruction *in)
{
	uint32_t	before = v->nsel;
	uint32_t	gone;

	if (!hgj_lazy_filter(run, v, in->a))
	{
		const uint64_t *words = v->words[in->a];
		const uint8_t *nulls = v->nulls[in->a];
		uint32_t   *sel = v->sel;
		uint32_t	n = 0;

		if (has_nulls(v, in->a))
			EACH_ALIVE(v, sel[n] = i; n += words[i] != 0 && !nulls[i]);
		else
			EACH_ALIVE(v, sel[n] = i; n += words[i] != 0);
		v->nsel = n;
	}
	gone = before - v->nsel;
	if (in->arg == HGJ_PIPE_DROP)
		run->dropped += gone;
	else if (in->arg > HGJ_PIPE_JOINS)
	{
		run->filtered[in->arg - 1 - HGJ_PIPE_JOINS] += gone;
		run->joined[in->arg - 1 - HGJ_PIPE_JOINS] -= gone;
	}
	else if (in->arg > 0)
		run->removed[in->arg - 1] += gone;
}

/* Step 4. */
static HgjStatus
end(Run *run, Vector *v)
{
	run->ended += v->nsel;
	if (run->p->plan.spec.fills)
		return hgj_rows_fill(run, v);
	if (run->p->plan.spec.rows)
		return hgj_rows_add(run, v);
	return hgj_run_groups_add(run, v);
}

/* The instructions from pc on, for the rows of a vector that are alive. */
HgjStatus
hgj_run_vector(Run *run, Vector *v, uint32_t pc)
{
	const Plan *plan = &run->p->plan;

	for (;;)
	{
		const HgjPipeInstruction *in;
		HgjStatus	status;
		bool		through = false;

		if (v->nparked > 0 && plan->target_of[pc] > 0)
			unpark(plan, v, pc);
		if (v->nsel == 0)
		{
			/* where none is alive, rows that are parked go on, or those that nothing was found for */
			if (v->nparked > 0)
			{
				pc = next_target(plan, v);
				continue;
			}
			if (v->matching == 0)
				return HGJ_OK;
			pc = plan->joins[v->matching - 1].after_match - 1;
		}
		in = &plan->spec.code[pc];
		if (hgj_lazy_compute(run, v, in))
		{
			pc++;
			continue;
		}
		if (v->masked && in->op != HGJ_PIPE_FILTER && in->op != HGJ_PIPE_PROBE)
			hgj_lazy_settle(v);
		/* before the result is written, which may take the place of an operand */
		if (in->op != HGJ_PIPE_FILTER && in->op != HGJ_PIPE_PROBE)
			hgj_lazy_force(run, v, plan->reads[pc]);
		if (hgj_pipe_has_result(in->op))
			v->lazy &= ~(UINT64_C(1) << in->dst);
		pc++;
		switch (in->op)
		{
			case HGJ_PIPE_END:
				return end(run, v);
			case HGJ_PIPE_JUMP:
			case HGJ_PIPE_JUMP_UNLESS:
			case HGJ_PIPE_JUMP_FALSE:
			case HGJ_PIPE_JUMP_TRUE:
			case HGJ_PIPE_JUMP_VALID:
				jump(plan, v, in);
				break;
			case HGJ_PIPE_FILTER:
				filter(run, v, in);
				break;
			case HGJ_PIPE_INPUT:
				hgj_run_input(run, v, in->dst, in->arg);
				break;
			case HGJ_PIPE_PAYLOAD:
				hgj_run_payload(run, v, in);
				break;
			case HGJ_PIPE_PROBE:
				status = hgj_run_probe(run, v, in->a, &through);
				if (status != HGJ_OK || through)
					return status;
				/* those that are left have passed, or nothing was found for them */
				if (v->matching == 0)
					pc = plan->joins[in->a].after_match;
				break;
			case HGJ_PIPE_MATCH:
				if (!hgj_run_match(run, v, in->a))
					return HGJ_OK;
				break;
			default:
				if (!hgj_run_compute(v, in))
					return hgj_threads_fail(run, HGJ_ROW_FAILED, "a row raises an error");
				break;
		}
	}
}

/* The next n rows of the run's views, in vectors. */
HgjStatus
hgj_run_rows(Run *run, uint32_t n)
{
	Vector	   *v = run->vectors[0];

	for (uint32_t at = 0; at < n; at += VECTOR_ROWS)
	{
		HgjStatus	status;

		v->n = v->nsel = n - at < VECTOR_ROWS ? n - at : VECTOR_ROWS;
		v->nulls_of = v->lazy = 0;
		v->masked = false;
		v->matching = 0;
		status = hgj_run_vector(run, v, 0);
		if (status != HGJ_OK)
			return status;
		run->view_first += v->n;
		run->row0 += v->n;
	}
	return HGJ_OK;
}
