/*-------------------------------------------------------------------------
 *
 * fuzz_code.c
 *	  Random instructions of a pipeline's plan (engine/pipeline.h) that are sound.
 *
 * 1. Of each register is known whether it has a value on every way that leads to the instruction
 *	  at hand, its kind, and between which limits it is.  Operands are such registers; where there
 *	  is none of a kind, an input is loaded, or a constant, wherever the plan has got to.
 * 2. A result goes to a register without a value, or over one that is not needed: one that
 *	  was set since the last PROBE, or has not been read since the first PROBE after it was set.
 *	  For else the next candidate would read what is gone.
 * 3. Arithmetic is chosen so that it cannot fail, from the limits of its operands; in plans that
 *	  are to fail now and then it need not be.
 * 4. Branches: JUMP of any sort over instructions, with or without another branch, both of which
 *	  set one register; what only one has set has no value behind them.  A division is often
 *	  kept from zeros by a branch or a FILTER.
 *
 * Memory: the plan's.  No locks: one thread.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "fuzz_gen.h"

#define MOST_MAG	40			/* of floats that are computed with */
#define MOST_DEPTH	2

/* ---- steps 1 and 2 ------------------------------------------------------------- */

bool
gen_is_float(uint32_t kind)
{
	return kind == HGJ_KIND_F4 || kind == HGJ_KIND_F8;
}

/* An instruction without a result. */
void
gen_put(Gen *g, HgjPipeInstruction in)
{
	g->plan->spec.code[g->plan->spec.ncode++] = in;
}

static bool
may_be_set(const Gen *g, uint32_t r)
{
	const Reg  *reg = &g->regs[r];

	if (g->pinned >> r & 1)
		return false;
	if (!reg->known || reg->level == g->level)
		return true;
	return g->depth == 0 && reg->read <= g->probe_at[reg->level];
}

static uint8_t
new_register(Gen *g)
{
	for (int tries = 0; tries < 50; tries++)
	{
		uint32_t	r = rnd_below(g->nregs);

		if (may_be_set(g, r) && (!g->regs[r].known || fuzz_percent(15)))
			return (uint8_t) r;
	}
	for (int known = 0; known < 2; known++)
		for (uint32_t r = 0; r < HGJ_PIPE_REGISTERS; r++)
			if (may_be_set(g, r) && g->regs[r].known == (known == 1))
				return (uint8_t) r;
	printf("the fuzzer has no register left\n");
	exit(2);
}

static bool
is_strict(uint8_t op)
{
	return op == HGJ_PIPE_MOVE || op == HGJ_PIPE_COMPARE || op == HGJ_PIPE_ARITHMETIC ||
		op == HGJ_PIPE_CAST;
}

/* An instruction with a result, of which that is known; returns its register, pinned. */
uint8_t
gen_emit(Gen *g, HgjPipeInstruction in, Reg meta)
{
	if (in.dst == GEN_NONE)
		in.dst = new_register(g);
	if (is_strict(in.op))
		meta.hollow = g->regs[in.a].hollow ||
			(in.op != HGJ_PIPE_MOVE && in.op != HGJ_PIPE_CAST && g->regs[in.b].hollow);
	meta.known = true;
	meta.level = g->level;
	meta.set = g->plan->spec.ncode;
	meta.read = 0;
	g->regs[in.dst] = meta;
	g->pinned |= UINT64_C(1) << in.dst;
	gen_put(g, in);
	return in.dst;
}

/* A register that suits, often the one that was set last, pinned, or GEN_NONE. */
uint8_t
gen_pick(Gen *g, bool (*suits) (const Reg *reg))
{
	uint8_t		found = GEN_NONE;
	uint32_t	n = 0;
	bool		last = fuzz_percent(40);

	for (uint32_t r = 0; r < HGJ_PIPE_REGISTERS; r++)
	{
		if (!g->regs[r].known || !suits(&g->regs[r]))
			continue;
		if (last ? found == GEN_NONE || g->regs[r].set > g->regs[found].set :
			rnd_below(++n) == 0)
			found = (uint8_t) r;
	}
	if (found == GEN_NONE)
		return found;
	g->regs[found].read = g->plan->spec.ncode;
	g->pinned |= UINT64_C(1) << found;
	return found;
}

static Reg
meta_of_column(const FuzzColumn *column)
{
	return (Reg) {.kind = column->kind, .source = column, .hollow = column->hollow,
		.low = column->low, .high = column->high, .special = column->special, .exact = true,
		.mag = 11, .frac = 3,
		.nonzero = gen_is_float(column->kind) ? !column->special :
		column->low > 0 || column->high < 0};
}

static Reg
meta_of_range(uint8_t kind, int64_t low, int64_t high)
{
	return (Reg) {.kind = kind, .low = low, .high = high, .nonzero = low > 0 || high < 0};
}

static Reg
meta_of_bool(void)
{
	return meta_of_range(HGJ_KIND_U1, 0, 1);
}

uint8_t
gen_input(Gen *g, uint32_t i)
{
	return gen_emit(g, (HgjPipeInstruction) {.op = HGJ_PIPE_INPUT, .dst = GEN_NONE,
											 .arg = (uint16_t) i},
					meta_of_column(&g->plan->inputs[i]));
}

/* A payload column, or GEN_NONE. */
uint8_t
gen_payload(Gen *g)
{
	uint32_t	j = g->level > 0 ? rnd_below(g->level) : 0;
	const FuzzTable *table = &g->plan->tables[j];
	uint32_t	c;
	Reg			meta;

	if (g->level == 0 || table->ncolumns == 0 || (g->plan->tainted[j] && g->matched > j))
		return GEN_NONE;
	c = rnd_below(table->ncolumns);
	meta = meta_of_column(&table->columns[c]);
	meta.hollow |= g->matched > j && !g->plan->spec.joins[j].pass;
	return gen_emit(g, (HgjPipeInstruction) {.op = HGJ_PIPE_PAYLOAD, .dst = GEN_NONE,
											 .a = (uint8_t) j, .arg = (uint16_t) c}, meta);
}

static int64_t
some_constant(const Gen *g, uint8_t kind)
{
	double		value = ((double) rnd_below(40) - 20) / 4 + 0.125;

	if (kind == HGJ_KIND_F8)
		return (int64_t) hgj_float8_word(value);
	if (kind == HGJ_KIND_F4)
		return (int64_t) hgj_float4_word((float) value);
	if (!g->safe && g->plan->risky && fuzz_percent(10))
		return fuzz_percent(50) ? fuzz_least(kind) : fuzz_most(kind);
	if (kind == HGJ_KIND_U1)
		return rnd_below(2);
	if (kind != HGJ_KIND_U4 && fuzz_percent(10))
		return -1;
	return kind == HGJ_KIND_U4 ? rnd_below(12) : (int64_t) rnd_below(16) - 4;
}

/* A constant, a value of the terms, which may be NULL, or NULL. */
static uint8_t
constant(Gen *g, uint8_t kind)
{
	HgjPipelineTerms *terms = &g->plan->terms;
	int64_t		value = some_constant(g, kind);
	Reg			meta = meta_of_range(kind, value, value);
	HgjPipeInstruction in = {.op = HGJ_PIPE_CONSTANT, .dst = GEN_NONE, .imm = value};

	if (gen_is_float(kind))
		meta = (Reg) {.kind = kind, .exact = true, .mag = 5, .frac = 3, .nonzero = true};
	if (fuzz_percent(4))
	{
		meta.hollow = true;
		return gen_emit(g, (HgjPipeInstruction) {.op = HGJ_PIPE_NULL, .dst = GEN_NONE}, meta);
	}
	if (terms->nvalues < HGJ_PIPE_VALUES && fuzz_percent(40))
	{
		in = (HgjPipeInstruction) {.op = HGJ_PIPE_VALUE, .dst = GEN_NONE,
		.arg = (uint16_t) terms->nvalues};
		terms->values[terms->nvalues] = value;
		meta.hollow = fuzz_percent(5);
		if (meta.hollow)
			terms->nulls[terms->nvalues / 64] |= UINT64_C(1) << (terms->nvalues % 64);
		terms->nvalues++;
	}
	return gen_emit(g, in, meta);
}

static uint8_t wanted_kind;

static bool
is_of_kind(const Reg *reg)
{
	return reg->kind == wanted_kind;
}

static bool
is_bool(const Reg *reg)
{
	return reg->kind == HGJ_KIND_U1 && reg->low >= 0 && reg->high <= 1;
}

static bool
is_any(const Reg *reg)
{
	return reg->known;
}

/* A register of the kind, pinned. */
uint8_t
gen_need(Gen *g, uint8_t kind)
{
	uint8_t		r = GEN_NONE;
	uint32_t	i = rnd_below(g->plan->spec.ninputs);

	wanted_kind = kind;
	if (fuzz_percent(75))
		r = gen_pick(g, is_of_kind);
	if (r == GEN_NONE && g->plan->spec.inputs[i] == kind)
		r = gen_input(g, i);
	return r == GEN_NONE ? constant(g, kind) : r;
}

/* Any register, pinned. */
static uint8_t
need_any(Gen *g)
{
	uint8_t		r = fuzz_percent(80) ? gen_pick(g, is_any) : GEN_NONE;

	return r == GEN_NONE ? gen_input(g, rnd_below(g->plan->spec.ninputs)) : r;
}

/* ---- operations that have booleans for results, or operands --------------------- */

static uint8_t
compare(Gen *g)
{
	uint8_t		a = need_any(g);
	uint8_t		b = gen_need(g, g->regs[a].kind);

	return gen_emit(g, (HgjPipeInstruction) {
		.op = fuzz_percent(75) ? HGJ_PIPE_COMPARE : HGJ_PIPE_DISTINCT,.kind = g->regs[a].kind,
		.dst = GEN_NONE,.a = a,.b = b,.c = (uint8_t) rnd_below(HGJ_COMPARISONS)
	}, meta_of_bool());
}

static uint8_t
test_null(Gen *g)
{
	uint8_t		a = need_any(g);

	return gen_emit(g, (HgjPipeInstruction) {
		.op = fuzz_percent(40) ? HGJ_PIPE_IS_NULL : HGJ_PIPE_IS_NOT_NULL,.dst = GEN_NONE,.a = a
	}, meta_of_bool());
}

uint8_t
gen_need_bool(Gen *g)
{
	uint8_t		r = fuzz_percent(50) ? gen_pick(g, is_bool) : GEN_NONE;

	if (r == GEN_NONE)
		r = fuzz_percent(80) ? compare(g) : test_null(g);
	return r;
}

static uint8_t
combine(Gen *g)
{
	static const uint8_t ops[] = {
		HGJ_PIPE_AND, HGJ_PIPE_OR, HGJ_PIPE_NOT, HGJ_PIPE_BOOL_TEST
	};
	HgjPipeInstruction in = {.op = ops[rnd_below(4)], .dst = GEN_NONE};

	in.a = gen_need_bool(g);
	if (in.op <= HGJ_PIPE_OR)
		in.b = gen_need_bool(g);
	if (in.op == HGJ_PIPE_BOOL_TEST)
		in.c = (uint8_t) rnd_below(8);
	return gen_emit(g, in, meta_of_bool());
}

/* ---- step 3 ------------------------------------------------------------------ */

/* Limits of a result; the upper one may be beyond those of 64 bits. */
static void
result_range(uint8_t c, const Reg *a, const Reg *b, FuzzWide *low, FuzzWide *high)
{
	FuzzWide	corners[4] = {
		(FuzzWide) a->low * b->low, (FuzzWide) a->low * b->high,
		(FuzzWide) a->high * b->low, (FuzzWide) a->high * b->high
	};
	FuzzWide	most = -(FuzzWide) a->low > a->high ? -(FuzzWide) a->low : a->high;
	FuzzWide	divisor = -(FuzzWide) b->low > b->high ? -(FuzzWide) b->low : b->high;

	if (c == HGJ_MOD && divisor < most)
		most = divisor;
	*low = (FuzzWide) a->low + b->low;
	*high = (FuzzWide) a->high + b->high;
	if (c == HGJ_SUB)
	{
		*low = (FuzzWide) a->low - b->high;
		*high = (FuzzWide) a->high - b->low;
	}
	else if (c == HGJ_MUL)
	{
		*low = *high = corners[0];
		for (int i = 1; i < 4; i++)
		{
			*low = corners[i] < *low ? corners[i] : *low;
			*high = corners[i] > *high ? corners[i] : *high;
		}
	}
	else if (c == HGJ_NEG)
	{
		*low = -(FuzzWide) a->high;
		*high = -(FuzzWide) a->low;
	}
	else if (c != HGJ_ADD)
	{
		*low = a->low >= 0 && (b->low >= 0 || c == HGJ_MOD || c == HGJ_ABS) ? 0 : -most;
		*high = most;
		if (c == HGJ_ABS)
			*low = 0;
	}
}

/* May an operation that can fail stand here? */
static bool
may_fail(const Gen *g)
{
	return g->plan->risky && !g->safe && fuzz_percent(12);
}

static uint8_t
calculate(Gen *g, uint8_t c, uint8_t a, uint8_t b)
{
	const Reg	of_a = g->regs[a];
	const Reg	of_b = g->regs[b];
	FuzzWide	low;
	FuzzWide	high;
	FuzzWide	least = fuzz_least(of_a.kind);
	FuzzWide	most = fuzz_most(of_a.kind);
	Reg			meta = {.kind = of_a.kind};
	bool		divides = c == HGJ_DIV || c == HGJ_MOD;

	result_range(c, &of_a, &of_b, &low, &high);
	if ((low < least || high > most || (divides && !of_b.nonzero)) && !may_fail(g))
		return GEN_NONE;
	meta.low = (int64_t) (low < least ? least : low > most ? most : low);
	meta.high = (int64_t) (high > most ? most : high < least ? least : high);
	meta.nonzero = meta.low > 0 || meta.high < 0;
	if (c == HGJ_ADD && of_b.low == of_b.high && of_a.source != NULL && !of_a.keyed &&
		low >= least && high <= most)
	{
		meta.source = of_a.source;
		meta.offset = of_a.offset + of_b.low;
	}
	return gen_emit(g, (HgjPipeInstruction) {.op = HGJ_PIPE_ARITHMETIC, .kind = of_a.kind,
											 .dst = GEN_NONE, .a = a, .b = b, .c = c}, meta);
}

static uint8_t
calculate_floats(Gen *g, uint8_t c, uint8_t a, uint8_t b)
{
	const Reg	of_a = g->regs[a];
	const Reg	of_b = g->regs[b];
	Reg			meta = {.kind = of_a.kind, .exact = of_a.exact && of_b.exact};
	bool		bad = of_a.special || of_b.special || (c == HGJ_DIV && !of_b.nonzero);

	meta.mag = (of_a.mag > of_b.mag ? of_a.mag : of_b.mag) + 1;
	meta.frac = of_a.frac > of_b.frac ? of_a.frac : of_b.frac;
	meta.nonzero = of_a.nonzero && of_b.nonzero && (c == HGJ_MUL || c == HGJ_DIV);
	if (c == HGJ_MUL)
	{
		meta.mag = of_a.mag + of_b.mag;
		meta.frac = of_a.frac + of_b.frac;
	}
	else if (c == HGJ_DIV)
	{
		meta.mag = of_a.mag + of_b.frac;
		meta.frac = of_a.frac + of_b.mag;
		meta.exact = false;
	}
	if ((bad || meta.mag > MOST_MAG || meta.frac > MOST_MAG) && !may_fail(g))
		return GEN_NONE;
	meta.special = bad || meta.mag > MOST_MAG || meta.frac > MOST_MAG;
	meta.exact &= !meta.special && meta.mag + meta.frac <= (of_a.kind == HGJ_KIND_F4 ? 24 : 32);
	return gen_emit(g, (HgjPipeInstruction) {.op = HGJ_PIPE_ARITHMETIC, .kind = of_a.kind,
											 .dst = GEN_NONE, .a = a, .b = b, .c = c}, meta);
}

/* GEN_NONE: operands that would fail. */
uint8_t
gen_arithmetic(Gen *g)
{
	uint8_t		a = need_any(g);
	uint8_t		b = gen_need(g, g->regs[a].kind);
	uint8_t		c = (uint8_t) rnd_below(HGJ_ARITHMETICS);

	/* there is no remainder of floats but of NULL, which is NULL */
	if (gen_is_float(g->regs[a].kind) && c == HGJ_MOD)
		b = gen_emit(g, (HgjPipeInstruction) {.op = HGJ_PIPE_NULL, .dst = GEN_NONE},
					 (Reg) {.kind = g->regs[a].kind, .exact = true, .hollow = true});
	/* what the least value must not be divided by */
	if ((c == HGJ_DIV || c == HGJ_MOD) && fuzz_least(g->regs[a].kind) < 0 && fuzz_percent(20) &&
		!gen_is_float(g->regs[a].kind))
		b = gen_emit(g, (HgjPipeInstruction) {.op = HGJ_PIPE_CONSTANT, .dst = GEN_NONE, .imm = -1},
					 meta_of_range(g->regs[a].kind, -1, -1));
	return gen_is_float(g->regs[a].kind) ? calculate_floats(g, c, a, b) : calculate(g, c, a, b);
}

/* Of a float's bits that are left of the point. */
static int32_t
bits_of(int64_t low, int64_t high)
{
	FuzzWide	most = -(FuzzWide) low > high ? -(FuzzWide) low : high;
	int32_t		bits = 1;

	while (most >> bits > 0)
		bits++;
	return bits;
}

static uint8_t
cast(Gen *g)
{
	uint8_t		a = need_any(g);
	uint8_t		to = (uint8_t) rnd_below(HGJ_KINDS);
	const Reg	of_a = g->regs[a];
	Reg			meta = {.kind = to, .low = of_a.low, .high = of_a.high};
	bool		good = true;

	if (gen_is_float(of_a.kind))
	{
		if (to == of_a.kind || to == HGJ_KIND_U1 || to == HGJ_KIND_U4)
			return GEN_NONE;
		good = !of_a.special && (gen_is_float(to) || of_a.mag < (to == HGJ_KIND_I2 ? 15 : 31));
		meta.low = gen_is_float(to) ? 0 : good ? -(INT64_C(1) << of_a.mag) : fuzz_least(to);
		meta.high = gen_is_float(to) ? 0 : good ? INT64_C(1) << of_a.mag : fuzz_most(to);
		meta.mag = of_a.mag;
		meta.frac = of_a.frac;
		meta.special = of_a.special;
		meta.exact = of_a.exact && of_a.mag + of_a.frac <= 24;
	}
	else if (gen_is_float(to))
	{
		meta.mag = bits_of(of_a.low, of_a.high);
		meta.exact = meta.mag <= 24;
	}
	else if (to == HGJ_KIND_U1 || of_a.kind == HGJ_KIND_U1)
		meta = meta_of_range(to, 0, 1);
	else
		good = of_a.low >= fuzz_least(to) && of_a.high <= fuzz_most(to);
	if (!good && !may_fail(g))
		return GEN_NONE;
	if (!good && !gen_is_float(to))
		meta = meta_of_range(to, fuzz_least(to), fuzz_most(to));
	return gen_emit(g, (HgjPipeInstruction) {.op = HGJ_PIPE_CAST, .kind = of_a.kind,
											 .dst = GEN_NONE, .a = a, .c = to}, meta);
}

uint8_t
gen_key_word(Gen *g, uint8_t a)
{
	const Reg	of_a = g->regs[a];
	Reg			meta = of_a;

	if (gen_is_float(of_a.kind))
	{
		meta = meta_of_range(HGJ_KIND_I8, INT64_MIN, INT64_MAX);
		meta.source = of_a.source;
		meta.keyed = true;
	}
	g->regs[a].read = g->plan->spec.ncode;
	return gen_emit(g, (HgjPipeInstruction) {.op = HGJ_PIPE_KEY_WORD, .kind = of_a.kind,
											 .dst = GEN_NONE, .a = a}, meta);
}

static uint8_t
move(Gen *g, uint8_t dst, uint8_t a)
{
	return gen_emit(g, (HgjPipeInstruction) {.op = HGJ_PIPE_MOVE, .dst = dst, .a = a},
					g->regs[a]);
}

/* ---- step 4 ------------------------------------------------------------------ */

/* Behind two branches, one of which has come to `other`. */
static void
merge(Gen *g, const Reg *other)
{
	for (uint32_t r = 0; r < HGJ_PIPE_REGISTERS; r++)
	{
		Reg		   *one = &g->regs[r];
		const Reg  *two = &other[r];

		one->known = one->known && two->known && one->kind == two->kind &&
			one->level == two->level;
		one->read = one->read > two->read ? one->read : two->read;
		one->set = one->set > two->set ? one->set : two->set;
		one->nonzero &= two->nonzero;
		one->hollow |= two->hollow;
		one->special |= two->special;
		one->exact &= two->exact;
		one->mag = one->mag > two->mag ? one->mag : two->mag;
		one->frac = one->frac > two->frac ? one->frac : two->frac;
		one->low = one->low < two->low ? one->low : two->low;
		one->high = one->high > two->high ? one->high : two->high;
		if (one->source != two->source || one->offset != two->offset ||
			one->keyed != two->keyed)
			one->source = NULL;
	}
}

/* Instructions of a branch, which sets dst. */
static void
branch(Gen *g, uint8_t dst, uint8_t kind)
{
	uint8_t		a;

	gen_some(g, 2);
	if (fuzz_percent(12))
		gen_filter(g, 0);
	a = gen_need(g, kind);
	move(g, dst, a);
}

/* A jump, the target of which is not known yet; returns where it is. */
static uint32_t
jump(Gen *g, uint8_t op, uint8_t a)
{
	gen_put(g, (HgjPipeInstruction) {.op = op, .a = a});
	return g->plan->spec.ncode - 1;
}

static void
land(Gen *g, uint32_t at)
{
	g->plan->spec.code[at].arg = (uint16_t) g->plan->spec.ncode;
}

/* The other branch of the jump at `over`, behind the one that sets dst; the jump's place. */
static uint32_t
other_branch(Gen *g, uint32_t over, uint8_t dst, uint8_t kind, Reg *before)
{
	uint32_t	to_end = jump(g, HGJ_PIPE_JUMP, 0);
	Reg			one[HGJ_PIPE_REGISTERS];

	land(g, over);
	memcpy(one, g->regs, sizeof(one));
	memcpy(g->regs, before, sizeof(one));
	branch(g, dst, kind);
	memcpy(before, one, sizeof(one));
	return to_end;
}

/* CASE, or what COALESCE, AND and OR are that need not look at all their operands. */
static uint8_t
select_one(Gen *g)
{
	static const uint8_t jumps[] = {
		HGJ_PIPE_JUMP_UNLESS, HGJ_PIPE_JUMP_FALSE, HGJ_PIPE_JUMP_TRUE, HGJ_PIPE_JUMP_VALID
	};
	uint8_t		op = jumps[rnd_below(4)];
	uint8_t		kind = (uint8_t) rnd_below(HGJ_KINDS);
	uint8_t		cond = op == HGJ_PIPE_JUMP_VALID ? need_any(g) : gen_need_bool(g);
	bool		one_branch = fuzz_percent(40);
	uint8_t		dst;
	Reg			before[HGJ_PIPE_REGISTERS];
	uint32_t	over;

	if (one_branch)
		dst = move(g, GEN_NONE, gen_need(g, kind));
	else
	{
		dst = new_register(g);
		g->pinned |= UINT64_C(1) << dst;
		g->regs[dst].known = false;
	}
	g->regs[cond].read = g->plan->spec.ncode;
	over = jump(g, op, cond);
	memcpy(before, g->regs, sizeof(before));
	g->depth++;
	branch(g, dst, kind);
	if (!one_branch)
		over = other_branch(g, over, dst, kind, before);
	g->depth--;
	land(g, over);
	merge(g, before);
	return dst;
}

static bool
is_divisor(const Reg *reg)
{
	return reg->kind != HGJ_KIND_U1 && !reg->special && reg->frac + reg->mag < 20 &&
		reg->low > INT64_MIN / 2;
}

/* A division whose divisor is looked at before: by a branch, or by a FILTER. */
static uint8_t
guarded_division(Gen *g)
{
	uint8_t		b = gen_pick(g, is_divisor);
	uint8_t		kind = b == GEN_NONE ? 0 : g->regs[b].kind;
	uint8_t		c = fuzz_percent(50) || gen_is_float(kind) ? HGJ_DIV : HGJ_MOD;
	uint8_t		r = GEN_NONE;
	uint8_t		zero;
	uint32_t	over;
	Reg			before[HGJ_PIPE_REGISTERS];

	if (b == GEN_NONE)
		return b;
	zero = gen_emit(g, (HgjPipeInstruction) {.op = HGJ_PIPE_CONSTANT, .dst = GEN_NONE},
					(Reg) {.kind = kind, .exact = true});
	r = gen_emit(g, (HgjPipeInstruction) {.op = HGJ_PIPE_COMPARE, .kind = kind, .dst = GEN_NONE,
										  .a = b, .b = zero, .c = HGJ_NE}, meta_of_bool());
	g->regs[b].read = g->regs[r].read = g->plan->spec.ncode;
	if (fuzz_percent(30))
	{
		gen_put(g, (HgjPipeInstruction) {.op = HGJ_PIPE_FILTER, .a = r});
		g->regs[b].nonzero = true;
		return gen_is_float(kind) ? calculate_floats(g, c, gen_need(g, kind), b) :
			calculate(g, c, gen_need(g, kind), b);
	}
	over = jump(g, HGJ_PIPE_JUMP_UNLESS, r);
	memcpy(before, g->regs, sizeof(before));
	g->depth++;
	g->regs[b].nonzero = true;
	r = gen_need(g, kind);
	r = gen_is_float(kind) ? calculate_floats(g, c, r, b) : calculate(g, c, r, b);
	gen_some(g, 1);
	g->depth--;
	land(g, over);
	merge(g, before);
	return r != GEN_NONE && g->regs[r].known ? r : GEN_NONE;
}

/* ---- all of them --------------------------------------------------------------- */

static void
one_operation(Gen *g)
{
	switch (rnd_below(14))
	{
		case 0:
			gen_input(g, rnd_below(g->plan->spec.ninputs));
			break;
		case 1:
		case 2:
			gen_payload(g);
			break;
		case 3:
			compare(g);
			break;
		case 4:
			test_null(g);
			break;
		case 5:
			combine(g);
			break;
		case 6:
		case 7:
		case 8:
			gen_arithmetic(g);
			break;
		case 9:
			cast(g);
			break;
		case 10:
			gen_key_word(g, need_any(g));
			break;
		case 11:
			move(g, GEN_NONE, need_any(g));
			break;
		case 12:
			if (g->depth < MOST_DEPTH)
				select_one(g);
			break;
		default:
			if (g->depth < MOST_DEPTH)
				guarded_division(g);
			break;
	}
}

/* Up to so many operations. */
void
gen_some(Gen *g, uint32_t most)
{
	uint64_t	pinned = g->pinned;

	for (uint32_t n = rnd_below(most + 1); n > 0; n--)
	{
		if (g->plan->spec.ncode < HGJ_PIPE_CODE / 2)
			one_operation(g);
		g->pinned = pinned;
	}
}

static bool
has_a_range(const Reg *reg)
{
	return !gen_is_float(reg->kind) && !reg->hollow && reg->low < reg->high &&
		reg->low > INT64_MIN / 4 && reg->high < INT64_MAX / 4;
}

/* A comparison that most rows pass, or, now and then, any boolean. */
void
gen_filter(Gen *g, uint16_t arg)
{
	uint64_t	pinned = g->pinned;
	uint8_t		a = fuzz_percent(93) ? gen_pick(g, has_a_range) : GEN_NONE;
	uint8_t		r;

	if (a != GEN_NONE)
	{
		int64_t		low = g->regs[a].low;
		int64_t		span = g->regs[a].high - low;
		int64_t		value = low + span / 100 * rnd_below(40);
		uint8_t		b = gen_emit(g, (HgjPipeInstruction) {.op = HGJ_PIPE_CONSTANT,
															  .dst = GEN_NONE, .imm = value},
								 meta_of_range(g->regs[a].kind, value, value));

		r = gen_emit(g, (HgjPipeInstruction) {
			.op = HGJ_PIPE_COMPARE,.kind = g->regs[a].kind,.dst = GEN_NONE,.a = a,.b = b,
			.c = fuzz_percent(25) ? HGJ_NE : HGJ_GE
		}, meta_of_bool());
	}
	else
		r = fuzz_percent(30) ? gen_need_bool(g) : test_null(g);
	g->regs[r].read = g->plan->spec.ncode;
	gen_put(g, (HgjPipeInstruction) {.op = HGJ_PIPE_FILTER, .a = r, .arg = arg});
	g->pinned = pinned;
}
