/*-------------------------------------------------------------------------
 *
 * steps.cu
 *	  From instructions of pipelines to steps of tiles (cuda/pipeline_steps.cu), on random
 *	  programs, of which some need more registers than a tile has.  Needs no GPU.
 *
 *	  steps [seed [programs]]
 *
 * 1. A program is written without jumps: inputs, constants, comparisons and filters in any
 *	  order, values computed from values, up to three joins, their columns, and an END that
 *	  reads any of them.  Few registers are used again and again, or many.
 * 2. Instructions and steps are run for rows, with plain integers: both must give up the
 *	  row at the same filter, or join, or have the same values at the end.
 * 3. Where steps cannot be made, or a tile has no room, nothing of the pipeline may have
 *	  changed.
 *
 * Values of each register start as junk in steps, so that one that is read too late, or
 * never set, is noticed.  The last line is `N passed, N failed`.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

#include "pipeline_host.h"

using namespace hgj;

constexpr uint32_t NINPUTS = 4;
constexpr int64_t JUNK = 0x5A5A5A5A5A;
constexpr int ROWS = 12; /* of a program */

/* What gives a row up, besides the arg of a FILTER. */
constexpr int NO_MATCH = 100;

static uint64_t state;

static uint32_t rnd_below(uint32_t n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t) ((state >> 33) % n);
}

/* ---- step 1 ---------------------------------------------------------------- */

struct Writer
{
	HgjPipelineSpec *spec;
	uint64_t set = 0; /* bits: registers that have a value */
	uint32_t pool;    /* registers that are used */
	uint8_t probed = 0;

	uint8_t some()
	{
		return (uint8_t) rnd_below(pool);
	}

	/* A register with a value. */
	uint8_t any() const
	{
		uint8_t candidates[HGJ_PIPE_REGISTERS];
		uint32_t n = 0;

		for (uint8_t i = 0; i < HGJ_PIPE_REGISTERS; i++)
			if (set >> i & 1)
				candidates[n++] = i;
		return candidates[rnd_below(n)];
	}

	void emit(uint8_t op, uint8_t dst, uint8_t a, uint8_t b, uint8_t c, uint16_t arg,
			  int64_t imm)
	{
		spec->code[spec->ncode++] =
			HgjPipeInstruction{op, HGJ_KIND_I8, dst, a, b, c, arg, imm};
		if (op >= HGJ_PIPE_INPUT && op <= HGJ_PIPE_KEY_WORD)
			set |= 1ull << dst;
	}

	/* One register, or an input, compared with constants, one after the other. */
	void write_range()
	{
		uint8_t value = any();
		uint8_t result = some();
		uint8_t constant = some();

		if (rnd_below(2) == 0)
		{
			value = some();
			emit(HGJ_PIPE_INPUT, value, 0, 0, 0, (uint16_t) rnd_below(NINPUTS), 0);
		}
		for (uint32_t n = 1 + rnd_below(3); n > 0; n--)
		{
			bool swapped = rnd_below(5) == 0;
			bool dropped = probed == 0 && rnd_below(2) == 0;

			emit(HGJ_PIPE_CONSTANT, constant, 0, 0, 0, 0, rnd_below(20));
			emit(HGJ_PIPE_COMPARE, result, swapped ? constant : value,
				 swapped ? value : constant, (uint8_t) rnd_below(6), 0, 0);
			if (rnd_below(6) > 0)
				emit(HGJ_PIPE_FILTER, 0, result, 0, 0, dropped ? HGJ_PIPE_DROP : 0, 0);
		}
	}

	void write_probe()
	{
		HgjPipeJoin *join = &spec->joins[probed];

		join->nkeys = 1;
		join->keys[0] = any();
		join->pass = true;
		emit(HGJ_PIPE_PROBE, 0, probed, 0, 0, 0, 0);
		emit(HGJ_PIPE_MATCH, 0, probed, 0, 0, 0, 0);
		probed++;
	}

	void write_one()
	{
		switch (rnd_below(10))
		{
			case 0:
			case 1:
				emit(HGJ_PIPE_INPUT, some(), 0, 0, 0, (uint16_t) rnd_below(NINPUTS), 0);
				break;
			case 2:
				emit(HGJ_PIPE_CONSTANT, some(), 0, 0, 0, 0, rnd_below(20));
				break;
			case 3: /* an operand that there is not may be any */
				emit(HGJ_PIPE_MOVE, some(), any(), 255, 0, 0, 0);
				break;
			case 4:
				emit(HGJ_PIPE_ARITHMETIC, some(), any(), any(),
					 rnd_below(2) ? HGJ_ADD : HGJ_SUB, 0, 0);
				break;
			case 5:
				emit(rnd_below(2) ? HGJ_PIPE_AND : HGJ_PIPE_OR, some(), any(), any(), 0,
					 0, 0);
				break;
			case 6:
				emit(HGJ_PIPE_NOT, some(), any(), 0, 0, 0, 0);
				break;
			case 7:
				if (probed > 0)
					emit(HGJ_PIPE_PAYLOAD, some(), (uint8_t) rnd_below(probed), 0, 0,
						 (uint16_t) rnd_below(3), 0);
				break;
			case 8:
				if (probed < spec->njoins)
					write_probe();
				break;
			default:
				write_range();
				break;
		}
	}
};

static void write_program(HgjPipelineSpec *spec)
{
	Writer w = {spec, 0, 2 + rnd_below(rnd_below(4) == 0 ? 40 : 10), 0};
	uint32_t length = 4 + rnd_below(rnd_below(3) == 0 ? 60 : 25);

	memset(spec, 0, sizeof(*spec));
	spec->ninputs = NINPUTS;
	spec->njoins = rnd_below(4);
	w.emit(HGJ_PIPE_INPUT, 0, 0, 0, 0, 0, 0);
	while (length-- > 0)
		w.write_one();
	while (w.probed < spec->njoins)
		w.write_probe();
	spec->nkeys = rnd_below(4);
	for (uint32_t k = 0; k < spec->nkeys; k++)
		spec->keys[k] = w.any();
	spec->nwords = 1 + rnd_below(rnd_below(5) == 0 ? HGJ_PIPE_WORDS : 6);
	for (uint32_t i = 0; i < spec->nwords; i++)
	{
		bool reads = i > 0 && rnd_below(3) > 0;

		spec->words[i].state = HGJ_PIPE_COUNT;
		spec->words[i].reg = reads ? w.any() : (uint8_t) HGJ_PIPE_NONE;
		spec->words[i].filter =
			reads && rnd_below(3) == 0 ? w.any() : (uint8_t) HGJ_PIPE_NONE;
	}
	w.emit(HGJ_PIPE_END, 0, 0, 0, 0, 0, 0);
}

/* ---- step 2 ---------------------------------------------------------------- */

/* What becomes of a row. */
struct Outcome
{
	int given_up = -1; /* by what */
	std::vector<int64_t> values;

	bool operator==(const Outcome &other) const
	{
		return given_up == other.given_up && values == other.values;
	}
};

/* A join's row for a key, -1: none; and a column of it. */
static int64_t find_row(int join, int64_t key)
{
	return (key + join) % 3 == 0 ? (key + join) / 3 : -1;
}

static int64_t payload(int join, int column, int64_t row)
{
	return row * 17 + join * 5 + column;
}

static bool holds(uint8_t comparison, int64_t a, int64_t b)
{
	switch (comparison)
	{
		case HGJ_EQ:
			return a == b;
		case HGJ_NE:
			return a != b;
		case HGJ_LT:
			return a < b;
		case HGJ_LE:
			return a <= b;
		case HGJ_GT:
			return a > b;
		default:
			return a >= b;
	}
}

static int64_t compute(const HgjPipeInstruction &in, int64_t a, int64_t b)
{
	switch (in.op)
	{
		case HGJ_PIPE_MOVE:
			return a;
		case HGJ_PIPE_COMPARE:
			return holds(in.c, a, b);
		case HGJ_PIPE_AND:
			return a && b;
		case HGJ_PIPE_OR:
			return a || b;
		case HGJ_PIPE_NOT:
			return !a;
		default:
			return (int64_t) (in.c == HGJ_ADD ? (uint64_t) a + (uint64_t) b
											  : (uint64_t) a - (uint64_t) b);
	}
}

/* Where operands are: registers of instructions, or registers and constants of steps. */
struct Values
{
	const HgjPipeline *steps; /* NULL: of instructions */
	int64_t registers[HGJ_PIPE_REGISTERS];

	int64_t of(uint8_t operand) const
	{
		if (steps != nullptr && operand >= TILE_CONSTANT)
			return (int64_t) steps->view.constants[operand - TILE_CONSTANT];
		if (steps != nullptr && operand >= steps->shape.registers)
			return JUNK;
		return operand < HGJ_PIPE_REGISTERS ? registers[operand] : 0;
	}
};

/* The values that END reads. */
static Outcome end_row(const HgjPipelineSpec &spec, const uint8_t *keys,
					   const HgjPipeWord *words, const Values &values)
{
	Outcome outcome;

	for (uint32_t k = 0; k < spec.nkeys; k++)
		outcome.values.push_back(values.of(keys[k]));
	for (uint32_t w = 0; w < spec.nwords; w++)
	{
		if (spec.words[w].reg != HGJ_PIPE_NONE)
			outcome.values.push_back(values.of(words[w].reg));
		if (spec.words[w].filter != HGJ_PIPE_NONE)
			outcome.values.push_back(values.of(words[w].filter));
	}
	return outcome;
}

static Outcome given_up(int by)
{
	Outcome outcome;

	outcome.given_up = by;
	return outcome;
}

static Outcome run_instructions(const HgjPipelineSpec &spec, const int64_t *inputs)
{
	Values v = {nullptr, {}};
	int64_t rows[HGJ_PIPE_JOINS];

	for (const HgjPipeInstruction *in = spec.code;; in++)
		switch (in->op)
		{
			case HGJ_PIPE_INPUT:
				v.registers[in->dst] = inputs[in->arg];
				break;
			case HGJ_PIPE_CONSTANT:
				v.registers[in->dst] = in->imm;
				break;
			case HGJ_PIPE_PAYLOAD:
				v.registers[in->dst] = payload(in->a, in->arg, rows[in->a]);
				break;
			case HGJ_PIPE_FILTER:
				if (v.of(in->a) == 0)
					return given_up(in->arg);
				break;
			case HGJ_PIPE_PROBE:
				rows[in->a] = find_row(in->a, v.of(spec.joins[in->a].keys[0]));
				if (rows[in->a] < 0)
					return given_up(NO_MATCH + in->a);
				break;
			case HGJ_PIPE_MATCH:
				break;
			case HGJ_PIPE_END:
				return end_row(spec, spec.keys, spec.words, v);
			default:
				v.registers[in->dst] = compute(*in, v.of(in->a), v.of(in->b));
				break;
		}
}

static Outcome run_steps(const HgjPipeline &p, const int64_t *inputs)
{
	Values v = {&p, {}};

	for (int64_t &value : v.registers)
		value = JUNK;
	for (const HgjPipeInstruction *in = p.steps;; in++)
	{
		int64_t row = 0;

		switch (in->op)
		{
			case TILE_INPUT_RANGE:
				if (inputs[in->arg] < v.of(in->a) || inputs[in->arg] > v.of(in->b))
					return given_up((int) in->imm);
				if (in->dst != HGJ_PIPE_NONE)
					v.registers[in->dst] = inputs[in->arg];
				break;
			case HGJ_PIPE_INPUT:
				v.registers[in->dst] = inputs[in->arg];
				break;
			case TILE_FILTER_COMPARE:
				if (!holds(in->c, v.of(in->a), v.of(in->b)))
					return given_up(in->arg);
				break;
			case HGJ_PIPE_FILTER:
				if (v.of(in->a) == 0)
					return given_up(in->arg);
				break;
			case HGJ_PIPE_PAYLOAD:
				v.registers[in->dst] = payload(in->a, in->arg, v.of(in->b));
				break;
			case HGJ_PIPE_PROBE:
				row = find_row(in->a, v.of(p.view.joins[in->a].keys[0]));
				if (row < 0)
					return given_up(NO_MATCH + in->a);
				if (in->dst != HGJ_PIPE_NONE)
					v.registers[in->dst] = row;
				break;
			case HGJ_PIPE_MATCH:
				break;
			case HGJ_PIPE_END:
				return end_row(p.spec, p.view.keys, p.view.words, v);
			default:
				v.registers[in->dst] = compute(*in, v.of(in->a), v.of(in->b));
				break;
		}
	}
}

/* ---- all of it --------------------------------------------------------------- */

/* Step 3. */
static bool is_as_before(const HgjPipeline &p)
{
	bool same = p.view.ncode == p.spec.ncode &&
				memcmp(p.view.keys, p.spec.keys, sizeof(p.spec.keys)) == 0 &&
				memcmp(p.view.words, p.spec.words, sizeof(p.spec.words)) == 0;

	for (uint32_t j = 0; j < p.spec.njoins; j++)
		same = same && p.view.joins[j].keys[0] == p.spec.joins[j].keys[0];
	return same;
}

/* As pipeline.cu and pipeline_check.cu do it. */
static void prepare(HgjPipeline *p, HgjTable *table)
{
	memcpy(p->view.keys, p->spec.keys, sizeof(p->spec.keys));
	memcpy(p->view.words, p->spec.words, sizeof(p->spec.words));
	p->view.ncode = p->spec.ncode;
	for (uint32_t j = 0; j < p->spec.njoins; j++)
	{
		p->tables[j] = table;
		p->view.joins[j].pass = true;
		p->view.joins[j].graph.unique = true;
		memcpy(p->view.joins[j].keys, p->spec.joins[j].keys,
			   sizeof(p->spec.joins[j].keys));
	}
	steps_make(p);
}

static bool is_right(const HgjPipeline &p)
{
	bool right = true;

	if (!p.tiled)
		return is_as_before(p);
	for (int row = 0; row < ROWS && right; row++)
	{
		int64_t inputs[NINPUTS];

		for (int64_t &input : inputs)
			input = rnd_below(22);
		right = run_instructions(p.spec, inputs) == run_steps(p, inputs);
	}
	return right;
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], nullptr, 10) : 1;
	int programs = argc > 2 ? atoi(argv[2]) : 100000;
	/* of an H100, and of a T4 */
	Device devices[2] = {};
	HgjTable table;
	int passed = 0;
	int failed = 0;
	int tiled = 0;

	devices[0].block_shared = 227 * 1024;
	devices[0].sm_shared = 228 * 1024;
	devices[1].block_shared = devices[1].sm_shared = 64 * 1024;
	state = seed;
	for (int i = 0; i < programs; i++)
	{
		HgjPipeline *p = new HgjPipeline;

		p->account.device = &devices[i % 2];
		write_program(&p->spec);
		prepare(p, &table);
		tiled += p->tiled;
		if (is_right(*p))
			passed++;
		else if (failed++ < 5)
			printf("not ok: seed %llu, program %d\n", (unsigned long long) seed, i);
		delete p;
	}
	/* most of either sort would say that the other is hardly tried */
	if (tiled < programs / 4 || tiled > programs * 99 / 100)
	{
		printf("not ok: %d programs of %d go by tiles\n", tiled, programs);
		failed++;
	}
	printf("%d passed, %d failed\n", passed, failed);
	return failed > 0;
}
