/*-------------------------------------------------------------------------
 *
 * fuzz_plan.c
 *	  Random plans of pipelines (engine/pipeline.h): joins, their tables, and what becomes of the
 *	  rows.
 *
 * 1. Instructions (fuzz_code.c), then a PROBE, more of them, a MATCH, more of them, and so on for
 *	  up to three joins of any kind, with filters in all places; inputs are loaded where they are
 *	  needed, also behind a MATCH.
 * 2. A join's keys are registers that come from a column, so that its table can be made of keys
 *	  that will be found, of some that will not, of several rows for one, and of rows without a key.
 * 3. Which candidate of a join with `single` passes first is free.  So either its payload is a
 *	  function of its key, or nothing that comes from it is read behind its MATCH, and nothing
 *	  before that can fail.
 * 4. The end: groups by keys that are bounded or not, state words and bounds of them, rows, or a
 *	  table that is filled.
 * 5. Some plans are spoiled: engines must agree whether they are sound.
 *
 * Memory: the plan's.  No locks: one thread.
 *
 *-------------------------------------------------------------------------
 */
#include "fuzz_gen.h"

#define MOST_FANOUT		12		/* rows that joins make of one, longest lists apart */
#define MOST_PLACES		20000	/* of bounded group keys */

/* ---- step 2 ------------------------------------------------------------------ */

static uint32_t key_width;		/* words of the keys that are compared */

static int
compare_keys(const void *a, const void *b)
{
	return memcmp(a, b, key_width * sizeof(uint64_t));
}

/* The word that a register has, or that it may have; false: NULL. */
static bool
sample(const Reg *reg, uint32_t at, uint64_t *word)
{
	const FuzzColumn *column = reg->source;

	if (column->n == 0)
		return false;
	at = at < column->n ? at : rnd_below(column->n);
	*word = column->words[at] + (uint64_t) reg->offset;
	if (reg->keyed)
		*word = hgj_float_word(column->kind == HGJ_KIND_F4 ?
							   (double) hgj_word_float4(column->words[at]) :
							   hgj_word_float8(column->words[at]));
	return !column->nulls[at];
}

/* Keys that are different, one behind the other; returns how many. */
static uint32_t
sample_keys(const Gen *g, const HgjPipeJoin *join, uint64_t *keys, uint32_t most)
{
	uint32_t	n = 0;
	uint32_t	kept = 0;
	uint64_t	salt = rnd();

	key_width = join->nkeys;
	for (uint32_t i = 0; i < most; i++)
	{
		uint32_t	at = rnd_below(g->plan->nrows + 1);
		bool		valid = true;

		for (uint32_t k = 0; k < join->nkeys; k++)
			valid &= sample(&g->regs[join->keys[k]], at, &keys[n * key_width + k]);
		if (!valid)
			continue;
		if (fuzz_percent(7))
			keys[n * key_width] += 1 + rnd_below(3);
		n++;
	}
	qsort(keys, n, key_width * sizeof(uint64_t), compare_keys);
	for (uint32_t i = 0; i < n; i++)
	{
		const uint64_t *key = keys + i * key_width;

		/* where rows without a match are wanted, some keys are missing */
		if (!join->pass && mix(key[0] + salt) % 2 == 0)
			continue;
		if (kept == 0 || compare_keys(key, keys + (kept - 1) * key_width) != 0)
			memmove(keys + kept++ * key_width, key, key_width * sizeof(uint64_t));
	}
	return kept;
}

static void
swap_rows(FuzzTable *table, uint32_t i, uint32_t j)
{
	for (uint32_t w = 0; w < FUZZ_WORDS; w++)
	{
		uint64_t	word = table->words[w][i];

		table->words[w][i] = table->words[w][j];
		table->words[w][j] = word;
	}
}

/* Each key up to `most` times, one of them many times, in any order. */
static void
spread_keys(FuzzTable *table, const uint64_t *keys, uint32_t n, uint32_t most, uint32_t hot)
{
	table->n = 0;
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	times = i == n / 2 && hot > 0 ? hot : 1 + rnd_below(most);

		for (; times > 0 && table->n < FUZZ_BUILD; times--, table->n++)
			for (uint32_t w = 0; w < key_width; w++)
				table->words[w][table->n] = keys[i * key_width + w];
	}
	for (uint32_t i = table->n; i > 1; i--)
		swap_rows(table, i - 1, rnd_below(i));
}

static void
make_table_spec(FuzzTable *table, uint32_t nwords)
{
	memset(&table->spec, 0, sizeof(table->spec));
	table->spec.nwords = nwords;
	table->spec.seed = rnd();
	if (fuzz_percent(30))
		table->spec.build = (HgjBuild) rnd_below(HGJ_BUILD_DIRECT + 1);
	table->spec.filter = (HgjFilter) rnd_below(HGJ_FILTER_OFF + 1);
}

/* The join's keys are known, and its sort. */
static void
make_table(Gen *g, uint32_t j, uint32_t *fanout)
{
	static const uint16_t sizes[] = {0, 1, 3, 20, 64, 65, 300, 700, 1500};
	static uint64_t keys[FUZZ_BUILD * FUZZ_WORDS];
	HgjPipeJoin *join = &g->plan->spec.joins[j];
	FuzzTable  *table = &g->plan->tables[j];
	uint32_t	most = *fanout > MOST_FANOUT || fuzz_percent(40) ? 1 : 2 + rnd_below(3);
	uint32_t	hot = *fanout == 1 && fuzz_percent(15) ? 20 + rnd_below(100) : 0;
	uint32_t	n = sizes[fuzz_percent(93) ? 4 + rnd_below(5) : rnd_below(9)];

	make_table_spec(table, join->nkeys);
	n = sample_keys(g, join, keys, n);
	spread_keys(table, keys, n, most, hot);
	table->unique = most == 1 && hot == 0;
	*fanout *= hot > 0 ? 20 : most;
	table->by_key = join->single && !table->unique && fuzz_percent(60);
	g->plan->tainted[j] = join->single && !table->unique && !table->by_key;
	for (uint32_t i = 0; i < table->n; i++)
		table->no_key[i] = fuzz_percent(3);
	table->ncolumns = rnd_below(FUZZ_COLUMNS + 1);
	join->ncolumns = table->ncolumns;
	for (uint32_t c = 0; c < table->ncolumns; c++)
	{
		join->kinds[c] = (uint8_t) rnd_below(HGJ_KINDS);
		fuzz_make_column(&table->columns[c], join->kinds[c], table->n,
						 g->plan->risky && fuzz_percent(20));
		if (table->by_key)
			fuzz_make_by_key(&table->columns[c], table, join->nkeys);
	}
	if (table->ncolumns == 0 && !g->plan->spec.rows && fuzz_percent(60))
		table->spec.flags = HGJ_TABLE_KEYS_ONLY |
			(join->single && fuzz_percent(50) ? HGJ_TABLE_FIRST_MATCH : 0);
}

/* ---- steps 1 and 3 ------------------------------------------------------------- */

static bool
has_source(const Reg *reg)
{
	return reg->source != NULL && !reg->hollow && (reg->keyed || !gen_is_float(reg->kind));
}

/* A register that comes from a column. */
static uint8_t
need_key(Gen *g)
{
	uint8_t		r = fuzz_percent(60) ? gen_pick(g, has_source) : GEN_NONE;

	if (r != GEN_NONE)
		return r;
	r = gen_input(g, rnd_below(g->plan->spec.ninputs));
	return gen_is_float(g->regs[r].kind) || fuzz_percent(20) ? gen_key_word(g, r) : r;
}

/* Inner, left, semi, anti, and what may be between them. */
static void
make_sort(HgjPipeJoin *join)
{
	static const uint8_t sorts[] = {
		4, 4, 4, 4, 4, 6, 6, 6, 7, 5, 5, 5, 3, 3, 2
	};
	uint8_t		sort = fuzz_percent(1) ? rnd_below(2) : sorts[rnd_below(15)];

	join->pass = sort >> 2 & 1;
	join->fill = sort >> 1 & 1;
	join->single = sort & 1;
}

/* What holds behind a MATCH: nothing of what its candidates have done, where there may be none. */
static void
forget(Gen *g, uint32_t j, const Reg *before)
{
	const HgjPipeJoin *join = &g->plan->spec.joins[j];

	if (!join->fill && !g->plan->tainted[j])
		return;
	for (uint32_t r = 0; r < HGJ_PIPE_REGISTERS; r++)
	{
		Reg		   *reg = &g->regs[r];
		uint32_t	read = reg->read;

		if (reg->known && reg->level == g->level)
		{
			reg->known = false;
			continue;
		}
		if (before[r].known && reg->known)
		{
			*reg = before[r];
			reg->read = read;
		}
	}
}

static void
filters(Gen *g, uint32_t percent, uint16_t arg)
{
	while (fuzz_percent(percent))
	{
		gen_filter(g, fuzz_percent(25) ? 0 : arg);
		percent /= 4;
	}
}

static void
make_join(Gen *g, uint32_t j, uint32_t *fanout)
{
	HgjPipeJoin *join = &g->plan->spec.joins[j];
	bool		safe = g->safe;
	Reg			before[HGJ_PIPE_REGISTERS];

	make_sort(join);
	g->pinned = 0;
	join->nkeys = fuzz_percent(75) ? 1 : 2 + rnd_below(FUZZ_WORDS - 1);
	for (uint32_t k = 0; k < join->nkeys; k++)
		join->keys[k] = need_key(g);
	make_table(g, j, fanout);
	g->pinned = 0;
	g->probe_at[j] = g->plan->spec.ncode;
	for (uint32_t k = 0; k < join->nkeys; k++)
		g->regs[join->keys[k]].read = g->plan->spec.ncode;
	gen_put(g, (HgjPipeInstruction) {.op = HGJ_PIPE_PROBE, .a = (uint8_t) j});
	g->level++;
	memcpy(before, g->regs, sizeof(before));
	g->safe |= g->plan->tainted[j];
	if (fuzz_percent(50))
	{
		gen_some(g, 3);
		filters(g, 35, (uint16_t) (j + 1));
		gen_some(g, 1);
	}
	g->safe = safe;
	gen_put(g, (HgjPipeInstruction) {.op = HGJ_PIPE_MATCH, .a = (uint8_t) j});
	g->matched++;
	forget(g, j, before);
	for (uint32_t c = 0; c < join->ncolumns && !g->plan->tainted[j]; c++)
		if (fuzz_percent(60))
			gen_payload(g);
	g->pinned = 0;
	gen_some(g, 4);
	filters(g, 20, (uint16_t) (HGJ_PIPE_JOINS + 1 + j));
}

/* ---- step 4 ------------------------------------------------------------------ */

static bool
is_integer(const Reg *reg)
{
	return !gen_is_float(reg->kind);
}

static bool
is_narrow(const Reg *reg)
{
	return is_integer(reg) && reg->low > INT64_MIN / 4 && reg->high < INT64_MAX / 4 &&
		reg->high - reg->low < 2000;
}

static bool
is_float8(const Reg *reg)
{
	return reg->kind == HGJ_KIND_F8;
}

static bool
can_be_summed(const Reg *reg)
{
	return reg->kind == HGJ_KIND_F8 && reg->exact && reg->mag + reg->frac <= 32;
}

static bool
is_bool(const Reg *reg)
{
	return reg->kind == HGJ_KIND_U1 && reg->low >= 0 && reg->high <= 1;
}

static void
make_group_keys(Gen *g)
{
	HgjPipelineSpec *spec = &g->plan->spec;
	uint32_t	nkeys = fuzz_percent(20) ? 0 : 1 + rnd_below(fuzz_percent(80) ? 2 : 4);
	bool		bounded = fuzz_percent(50);
	uint64_t	places = 1;

	while (spec->nkeys < nkeys)
	{
		uint8_t		r = gen_pick(g, bounded ? is_narrow : is_integer);
		HgjPipeRange *range = &g->plan->ranges[spec->nkeys];

		if (r == GEN_NONE)
			break;
		if (bounded)
		{
			places *= (uint64_t) (g->regs[r].high - g->regs[r].low) + 2;
			if (places > MOST_PLACES)
				break;
			*range = (HgjPipeRange) {true, g->regs[r].low, g->regs[r].high};
			if (fuzz_percent(1))
			{
				g->plan->tight = true;
				range->high -= range->high > range->low;
			}
		}
		spec->keys[spec->nkeys++] = r;
	}
}

/* A state word; of a sum of 128 bits, mostly two. */
static void
make_word(Gen *g)
{
	HgjPipelineSpec *spec = &g->plan->spec;
	HgjPipeWord word = {(uint8_t) rnd_below(HGJ_PIPE_MAX_FLOAT + 1), HGJ_PIPE_NONE, HGJ_PIPE_NONE};

	if (fuzz_percent(25))
		word.filter = gen_pick(g, is_bool);
	if (word.state == HGJ_PIPE_SUM_FLOAT)
		word.reg = gen_pick(g, can_be_summed);
	else if (word.state >= HGJ_PIPE_MIN_FLOAT)
		word.reg = gen_pick(g, is_float8);
	else if (word.state != HGJ_PIPE_COUNT || fuzz_percent(70))
		word.reg = gen_pick(g, is_integer);
	if (word.reg == HGJ_PIPE_NONE)
		word.state = HGJ_PIPE_COUNT;
	spec->words[spec->nwords++] = word;
	if (word.state == HGJ_PIPE_SUM_LOW && fuzz_percent(80))
	{
		word.state = HGJ_PIPE_SUM_HIGH;
		if (fuzz_percent(15))
			word.filter = gen_pick(g, is_bool);
		spec->words[spec->nwords++] = word;
	}
}

static void
make_having(const HgjPipelineSpec *spec, HgjPipelineTerms *terms)
{
	for (uint32_t n = rnd_below(3); n > 0; n--)
	{
		HgjPipeHaving *having = &terms->having[terms->nhaving];
		uint32_t	w = rnd_below(spec->nwords);
		uint8_t		state = spec->words[w].state;
		bool		wide = state == HGJ_PIPE_SUM_LOW && w + 1 < spec->nwords &&
			spec->words[w + 1].state == HGJ_PIPE_SUM_HIGH;
		int64_t		least = (int64_t) rnd_below(20) - 15;

		if (!wide && state != HGJ_PIPE_COUNT && state != HGJ_PIPE_SUM && state != HGJ_PIPE_MIN &&
			state != HGJ_PIPE_MAX)
			continue;
		*having = (HgjPipeHaving) {.word = (uint8_t) w, .count = HGJ_PIPE_NONE, .wide = wide};
		for (uint32_t c = 0; c < spec->nwords; c++)
			if (spec->words[c].state == HGJ_PIPE_COUNT && fuzz_percent(20))
				having->count = (uint8_t) c;
		having->least = fuzz_percent(50) ? (HgjPipeWide) {0, INT64_MIN} :
			(HgjPipeWide) {(uint64_t) least, least < 0 ? -1 : 0};
		having->most = fuzz_percent(70) ? (HgjPipeWide) {UINT64_MAX, INT64_MAX} :
			(HgjPipeWide) {2 + rnd_below(100), rnd_below(2)};
		terms->nhaving++;
	}
}

static void
make_groups(Gen *g)
{
	HgjPipelineSpec *spec = &g->plan->spec;
	uint32_t	most = fuzz_percent(5) ? HGJ_PIPE_WORDS - 3 : 10;

	make_group_keys(g);
	spec->words[0] = (HgjPipeWord) {HGJ_PIPE_COUNT, HGJ_PIPE_NONE, HGJ_PIPE_NONE};
	spec->nwords = 1;
	for (uint32_t n = 2 + rnd_below(most); n > 0 && spec->nwords + 2 <= HGJ_PIPE_WORDS; n--)
		make_word(g);
	if (spec->nkeys > 0)
		make_having(spec, &g->plan->terms);
}

static bool
is_second_word(const Reg *reg)
{
	return is_narrow(reg) && reg->high - reg->low < 6;
}

/* Key words, none of which is NULL, the first one from a column; and other columns. */
static void
make_fill(Gen *g)
{
	HgjPipelineSpec *spec = &g->plan->spec;
	FuzzPlan   *plan = g->plan;
	uint8_t		second = fuzz_percent(40) ? gen_pick(g, is_second_word) : GEN_NONE;

	spec->keys[spec->nkeys++] = need_key(g);
	if (second != GEN_NONE)
		spec->keys[spec->nkeys++] = second;
	plan->fill_source = g->regs[spec->keys[0]].source;
	plan->fill_offset = g->regs[spec->keys[0]].offset;
	plan->fill_keyed = g->regs[spec->keys[0]].keyed;
	plan->fill_low = second == GEN_NONE ? 0 : g->regs[second].low;
	plan->fill_high = second == GEN_NONE ? 0 : g->regs[second].high;
	for (uint32_t n = rnd_below(5); n > 0; n--)
	{
		uint8_t		r = gen_pick(g, fuzz_percent(30) ? is_float8 : is_integer);

		if (r == GEN_NONE)
			continue;
		spec->kinds[spec->ncolumns] = g->regs[r].kind;
		spec->columns[spec->ncolumns++] = r;
	}
	for (uint32_t k = 0; k < spec->nkeys; k++)
	{
		uint8_t		r = gen_emit(g, (HgjPipeInstruction) {.op = HGJ_PIPE_IS_NOT_NULL,
														  .dst = GEN_NONE, .a = spec->keys[k]},
								 (Reg) {.kind = HGJ_KIND_U1, .high = 1});

		gen_put(g, (HgjPipeInstruction) {.op = HGJ_PIPE_FILTER, .a = r});
	}
}

/* ---- step 5 ------------------------------------------------------------------ */

static void
spoil(FuzzPlan *plan)
{
	HgjPipeInstruction *in = &plan->spec.code[rnd_below(plan->spec.ncode)];
	uint8_t		byte = (uint8_t) (fuzz_percent(50) ? rnd_below(70) : rnd_below(256));

	plan->spoiled = true;
	switch (rnd_below(12))
	{
		case 0:
			in->op = (uint8_t) rnd_below(HGJ_PIPE_MATCH + 3);
			break;
		case 1:
			in->kind = byte;
			break;
		case 2:
			in->dst = byte;
			break;
		case 3:
			in->a = byte;
			break;
		case 4:
			in->b = byte;
			break;
		case 5:
			in->c = byte;
			break;
		case 6:
			in->arg = byte;
			break;
		case 7:
			plan->spec.keys[0] = byte;
			break;
		case 8:
			plan->spec.words[rnd_below(3)].reg = byte;
			break;
		case 9:
			plan->spec.ncode -= rnd_below(plan->spec.ncode);
			break;
		case 10:
			plan->terms.nvalues = 0;
			break;
		default:
			plan->spec.joins[0].nkeys = byte % 4;
			break;
	}
}

/* A plan, from the random numbers of its own. */
void
fuzz_make_plan(FuzzPlan *plan)
{
	static Gen	gen;
	Gen		   *g = &gen;
	uint32_t	mode = rnd_below(100);
	uint32_t	fanout = 1;

	memset(plan, 0, sizeof(*plan));
	memset(g, 0, sizeof(*g));
	g->plan = plan;
	g->nregs = 12 + rnd_below(HGJ_PIPE_REGISTERS - 11);
	plan->spec.rows = mode >= 65 && mode < 85;
	plan->spec.fills = mode >= 85;
	plan->risky = !plan->spec.rows && fuzz_percent(25);
	g->safe = !plan->risky;
	fuzz_make_rows(plan);
	plan->spec.njoins = fuzz_percent(4) ? 0 : 1 + rnd_below(FUZZ_JOINS);
	gen_some(g, 7);
	filters(g, 25, HGJ_PIPE_DROP);
	for (uint32_t j = 0; j < plan->spec.njoins; j++)
	{
		g->pinned = 0;
		gen_some(g, 2);
		make_join(g, j, &fanout);
	}
	gen_some(g, 4);
	g->pinned = 0;
	if (plan->spec.fills)
		make_fill(g);
	else if (!plan->spec.rows)
		make_groups(g);
	gen_put(g, (HgjPipeInstruction) {.op = HGJ_PIPE_END});
	if (fuzz_percent(6))
		spoil(plan);
}
