/*-------------------------------------------------------------------------
 *
 * pipeline_steps.cu
 *	  From instructions of a pipeline to steps of tiles (pipeline_tiles.cuh).
 *
 * 1. That is for pipelines without jumps, whose joins are inner ones (or semi joins) with
 *	  one candidate for a row at most.  Others have the interpreter of pipeline_row.cuh.
 * 2. How far each value is needed is known, because instructions run in their order.  A
 *	  register is given to another value when the last use of its value has been: so few
 *	  registers are needed that a multiprocessor has many tiles.  The row that a join has
 *	  found is a value like others, if a column is read of it, or it is returned.
 * 3. Constants are operands, and take no step; COMPARE and the FILTER by its result are
 *	  one.
 *
 * Owns nothing but the pipeline's steps.
 *
 *-------------------------------------------------------------------------
 */
#include <algorithm>
#include <string.h>

#include "pipeline_host.h"

namespace hgj
{

/* Values: registers of instructions, then rows of joins. */
constexpr uint32_t VALUES = HGJ_PIPE_REGISTERS + HGJ_PIPE_JOINS;
constexpr uint32_t MOST_READ = HGJ_PIPE_KEYS + 2 * HGJ_PIPE_WORDS + HGJ_PIPE_COLUMNS;
constexpr uint8_t UNKNOWN = HGJ_PIPE_NONE;

/* While steps are made. */
struct Steps
{
	HgjPipeline *p;
	uint8_t operand[VALUES];        /* where a value is */
	uint32_t until[TILE_REGISTERS]; /* the instruction that reads a register last */
	uint32_t taken;                 /* bits: registers */
	bool good;
};

/* ---- step 2 --------------------------------------------------------------- */

/* The values that an instruction reads; how many. */
static uint32_t values_read(const HgjPipelineSpec *spec, const HgjPipeInstruction *in,
							uint8_t *values)
{
	uint32_t n = 0;

	switch (in->op)
	{
		case HGJ_PIPE_INPUT:
		case HGJ_PIPE_CONSTANT:
		case HGJ_PIPE_NULL:
		case HGJ_PIPE_MATCH:
			break;
		case HGJ_PIPE_PAYLOAD:
			values[n++] = (uint8_t) (HGJ_PIPE_REGISTERS + in->a);
			break;
		case HGJ_PIPE_PROBE:
			for (uint32_t k = 0; k < spec->joins[in->a].nkeys; k++)
				values[n++] = spec->joins[in->a].keys[k];
			break;
		case HGJ_PIPE_END:
			for (uint32_t k = 0; k < spec->nkeys; k++)
				values[n++] = spec->keys[k];
			for (uint32_t c = 0; c < spec->ncolumns; c++)
				values[n++] = spec->columns[c];
			for (uint32_t j = 0; j < spec->njoins && spec->rows; j++)
				values[n++] = (uint8_t) (HGJ_PIPE_REGISTERS + j);
			for (uint32_t w = 0; w < spec->nwords; w++)
			{
				if (spec->words[w].reg != HGJ_PIPE_NONE)
					values[n++] = spec->words[w].reg;
				if (spec->words[w].filter != HGJ_PIPE_NONE)
					values[n++] = spec->words[w].filter;
			}
			break;
		case HGJ_PIPE_COMPARE:
		case HGJ_PIPE_DISTINCT:
		case HGJ_PIPE_AND:
		case HGJ_PIPE_OR:
			values[n++] = in->a;
			values[n++] = in->b;
			break;
		case HGJ_PIPE_ARITHMETIC:
			values[n++] = in->a;
			if (in->c < HGJ_NEG)
				values[n++] = in->b;
			break;
		default:
			values[n++] = in->a;
			break;
	}
	return n;
}

/* The value that it makes; UNKNOWN: none. */
static uint8_t value_made(const HgjPipeInstruction *in)
{
	if (in->op == HGJ_PIPE_PROBE)
		return (uint8_t) (HGJ_PIPE_REGISTERS + in->a);
	return in->op >= HGJ_PIPE_INPUT && in->op <= HGJ_PIPE_KEY_WORD ? in->dst : UNKNOWN;
}

/* The last instruction that reads what instruction `at` makes; `at`: none does. */
static uint32_t last_read(const HgjPipelineSpec *spec, uint32_t at)
{
	uint8_t value = value_made(&spec->code[at]);
	uint8_t values[MOST_READ];
	uint32_t last = at;

	for (uint32_t i = at + 1; i < spec->ncode; i++)
	{
		uint32_t n = values_read(spec, &spec->code[i], values);

		if (memchr(values, value, n) != nullptr)
			last = i;
		if (value_made(&spec->code[i]) == value)
			break;
	}
	return last;
}

/* A register until that instruction. */
static uint8_t new_register(Steps *s, uint32_t until)
{
	for (uint8_t r = 0; r < TILE_REGISTERS; r++)
		if (!(s->taken >> r & 1))
		{
			s->taken |= 1u << r;
			s->until[r] = until;
			if (r >= s->p->shape.registers)
				s->p->shape.registers = r + 1u;
			return r;
		}
	s->good = false;
	return 0;
}

/* Registers whose values nobody needs behind instruction `at`. */
static void free_registers(Steps *s, uint32_t at)
{
	for (uint32_t r = 0; r < TILE_REGISTERS; r++)
		if (s->until[r] <= at)
			s->taken &= ~(1u << r);
}

static uint8_t operand_of(Steps *s, uint8_t value)
{
	if (s->operand[value] == UNKNOWN)
		s->good = false; /* it has not been set */
	return s->operand[value];
}

/* ---- step 3 --------------------------------------------------------------- */

static uint8_t new_constant(Steps *s, int64_t value)
{
	TileShape *shape = &s->p->shape;

	if (shape->nconstants == TILE_CONSTANTS)
	{
		s->good = false;
		return TILE_CONSTANT;
	}
	s->p->view.constants[shape->nconstants] = (uint64_t) value;
	return (uint8_t) (TILE_CONSTANT + shape->nconstants++);
}

/* COMPARE, whose result only the FILTER behind it reads. */
static bool is_filter(const HgjPipelineSpec *spec, uint32_t at)
{
	const HgjPipeInstruction *in = &spec->code[at];

	return in->op == HGJ_PIPE_COMPARE && in[1].op == HGJ_PIPE_FILTER &&
		   in[1].a == in->dst && last_read(spec, at) == at + 1;
}

/* What rows a FILTER leaves that compares a value with a constant. */
struct Limits
{
	int64_t low;
	int64_t high;
	uint16_t arg; /* the FILTER's */
	uint32_t n;   /* of them so far */
};

/* One more of them, at instruction `at`; false: that is something else. */
static bool narrow(const Steps *s, uint32_t at, uint8_t value, Limits *limits)
{
	const HgjPipeInstruction *in = &s->p->spec.code[at];
	uint8_t constant = is_filter(&s->p->spec, at) ? s->operand[in->b] : UNKNOWN;
	int64_t b;

	if (constant == UNKNOWN || constant < TILE_CONSTANT || in->a != value ||
		in->b == value || in->c == HGJ_NE || in->kind == HGJ_KIND_F4 ||
		in->kind == HGJ_KIND_F8 || (limits->n > 0 && in[1].arg != limits->arg))
		return false;
	b = (int64_t) s->p->view.constants[constant - TILE_CONSTANT];
	if ((in->c == HGJ_LT && b == INT64_MIN) || (in->c == HGJ_GT && b == INT64_MAX))
		return false;
	if (in->c == HGJ_EQ || in->c >= HGJ_GT)
		limits->low = std::max(limits->low, b + (in->c == HGJ_GT));
	if (in->c <= HGJ_LE)
		limits->high = std::min(limits->high, b - (in->c == HGJ_LT));
	limits->arg = in[1].arg;
	limits->n++;
	return true;
}

/* INPUT at `at`, with the filters behind it that leave a range of it; the next instruction. */
static uint32_t make_input(Steps *s, uint32_t at)
{
	HgjPipeline *p = s->p;
	const HgjPipeInstruction *in = &p->spec.code[at];
	HgjPipeInstruction *step = &p->steps[p->nsteps++];
	uint32_t last = last_read(&p->spec, at);
	Limits limits = {INT64_MIN, INT64_MAX, 0, 0};
	uint32_t next = at + 1;

	for (;;)
	{
		const HgjPipeInstruction *behind = &p->spec.code[next];

		if (behind->op == HGJ_PIPE_CONSTANT && behind->dst != in->dst)
			s->operand[behind->dst] = new_constant(s, p->spec.code[next++].imm);
		else if (narrow(s, next, in->dst, &limits))
			next += 2;
		else
			break;
	}
	*step = *in;
	if (limits.n > 0)
	{
		step->op = TILE_INPUT_RANGE;
		step->a = new_constant(s, limits.low);
		step->b = new_constant(s, limits.high);
		step->imm = limits.arg;
	}
	free_registers(s, next - 1);
	step->dst =
		limits.n > 0 && last < next ? (uint8_t) HGJ_PIPE_NONE : new_register(s, last);
	s->operand[in->dst] = step->dst;
	return next;
}

/* What END reads, where kernels look for it. */
static void place_end(Steps *s)
{
	HgjPipeline *p = s->p;
	const HgjPipelineSpec *spec = &p->spec;

	for (uint32_t k = 0; k < spec->nkeys; k++)
		p->view.keys[k] = operand_of(s, spec->keys[k]);
	for (uint32_t c = 0; c < spec->ncolumns; c++)
		p->fill_columns[c] = operand_of(s, spec->columns[c]);
	for (uint32_t j = 0; j < spec->njoins && spec->rows; j++)
		p->view.out.operands[j] = operand_of(s, (uint8_t) (HGJ_PIPE_REGISTERS + j));
	for (uint32_t w = 0; w < spec->nwords; w++)
	{
		if (spec->words[w].reg != HGJ_PIPE_NONE)
			p->view.words[w].reg = operand_of(s, spec->words[w].reg);
		if (spec->words[w].filter != HGJ_PIPE_NONE)
			p->view.words[w].filter = operand_of(s, spec->words[w].filter);
	}
}

/* The operands of a step; those that it does not have are the first constant. */
static void place_operands(Steps *s, const HgjPipeInstruction *in,
						   HgjPipeInstruction *step)
{
	const HgjPipelineSpec *spec = &s->p->spec;
	uint8_t values[MOST_READ];
	uint32_t n = values_read(spec, in, values);

	*step = *in;
	switch (in->op)
	{
		case HGJ_PIPE_PROBE:
			for (uint32_t k = 0; k < n; k++)
				s->p->view.joins[in->a].keys[k] = operand_of(s, values[k]);
			break;
		case HGJ_PIPE_MATCH:
			break;
		case HGJ_PIPE_PAYLOAD:
			step->b = operand_of(s, values[0]);
			break;
		case HGJ_PIPE_END:
			place_end(s);
			break;
		default:
			step->a = n > 0 ? operand_of(s, values[0]) : (uint8_t) TILE_CONSTANT;
			step->b = n > 1 ? operand_of(s, values[1]) : (uint8_t) TILE_CONSTANT;
			break;
	}
}

/* Instruction `at` as the next step, or none; the next instruction's number. */
static uint32_t make_step(Steps *s, uint32_t at)
{
	HgjPipeline *p = s->p;
	const HgjPipeInstruction *in = &p->spec.code[at];
	HgjPipeInstruction *step = &p->steps[p->nsteps];
	uint8_t value = value_made(in);
	uint32_t last;

	if (in->op == HGJ_PIPE_CONSTANT)
	{
		s->operand[value] = new_constant(s, in->imm);
		return at + 1;
	}
	if (in->op == HGJ_PIPE_INPUT)
		return make_input(s, at);
	place_operands(s, in, step);
	p->nsteps++;
	if (is_filter(&p->spec, at))
	{
		step->op = TILE_FILTER_COMPARE;
		step->arg = in[1].arg;
		free_registers(s, at + 1);
		return at + 2;
	}
	free_registers(s, at);
	if (value == UNKNOWN)
		return at + 1;
	last = last_read(&p->spec, at);
	step->dst = in->op == HGJ_PIPE_PROBE && last == at ? (uint8_t) HGJ_PIPE_NONE
													   : new_register(s, last);
	s->operand[value] = step->dst;
	return at + 1;
}

/* Step 1. */
static bool has_tiles(const HgjPipeline *p)
{
	if (p->turns)
		return false;
	for (uint32_t j = 0; j < p->spec.njoins; j++)
	{
		const PipeJoin *join = &p->view.joins[j];

		if (!join->pass || join->fill ||
			!(join->empty || join->first_only || join->graph.unique ||
			  p->tables[j]->graph.longest <= 1))
			return false;
	}
	for (uint32_t i = 0; i < p->spec.ncode; i++)
		if (p->spec.code[i].op >= HGJ_PIPE_JUMP &&
			p->spec.code[i].op <= HGJ_PIPE_JUMP_VALID)
			return false;
	return true;
}

/*
 * Can it go by tiles?  Then its steps, and operands in the view; or else nothing has
 * changed.
 */
void steps_make(HgjPipeline *p)
{
	Steps s = {p, {}, {}, 0, true};
	const PipeView before = p->view;

	memcpy(p->fill_columns, p->spec.columns, sizeof(p->fill_columns));
	if (!has_tiles(p))
		return;
	memset(s.operand, UNKNOWN, sizeof(s.operand));
	p->shape.registers = 1;
	(void) new_constant(&s, 0);
	for (uint32_t at = 0; at < p->spec.ncode && s.good;)
		at = make_step(&s, at);
	p->tiled = s.good && tiles_fit(p, 0);
	if (p->tiled)
	{
		p->view.ncode = p->nsteps;
		return;
	}
	p->view = before;
	memcpy(p->fill_columns, p->spec.columns, sizeof(p->fill_columns));
}

} // namespace hgj
