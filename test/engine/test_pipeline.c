/*-------------------------------------------------------------------------
 *
 * test_pipeline.c
 *	  Pipelines with groups (pipeline.h) against a plain reference.
 *
 * 1. The instructions of pipeline_case.c, groups of three sorts, all state words.
 * 2. What ends in the reference is put down, sorted by group, and summed up.
 * 3. What ends a pipeline early: a row's error, too many groups, cancelling,
 *	  instructions that are not sound.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "test_pipeline.h"

#define NWORDS		11
#define MAX_ENDED	(1 << 22)

typedef struct Ended
{
	uint64_t	null_keys;
	int64_t		keys[2];
	Cell		v;
	Cell		sum;
	Cell		u;
	double		f;
} Ended;

static Ended *ended;
static uint32_t nended;
static uint32_t nwords;			/* of the case at hand */

/* Step 2. */
static void
end_row(const Case *c, uint32_t row, const uint32_t *rows)
{
	static const Cell none = {0, true};
	Ended	   *e = &ended[nended++];
	const Cell *keys[2];
	int			k;

	if (nended == MAX_ENDED)
		exit(2);
	memset(e, 0, sizeof(*e));
	for (k = 0; k < 2; k++)
		keys[k] = rows[k] == HGJ_PIPE_NO_ROW ? &none : &pipe_builds[k].payload[rows[k]];
	e->v = pipe_inputs[IN_V][row];
	e->u = pipe_inputs[IN_U][row];
	e->sum.null = e->v.null || keys[1]->null;
	e->sum.value = e->v.value * 3000000000 + keys[1]->value;
	memcpy(&e->f, &pipe_inputs[IN_F][row].value, sizeof(double));
	if (c->keys == KEYS_HASHED)
	{
		keys[0] = &pipe_inputs[IN_A][row];
		keys[1] = &pipe_inputs[IN_V][row];
	}
	for (k = 0; k < 2 && c->keys != KEYS_NONE; k++)
	{
		e->null_keys |= (uint64_t) keys[k]->null << k;
		e->keys[k] = keys[k]->null ? 0 : keys[k]->value;
	}
}

static int
compare_ended(const void *a, const void *b)
{
	const Ended *x = a;
	const Ended *y = b;

	if (x->null_keys != y->null_keys)
		return x->null_keys < y->null_keys ? -1 : 1;
	if (x->keys[0] != y->keys[0])
		return x->keys[0] < y->keys[0] ? -1 : 1;
	return (x->keys[1] > y->keys[1]) - (x->keys[1] < y->keys[1]);
}

/* The group row of ended[from .. to). */
static void
sum_up(uint32_t from, uint32_t to, uint32_t nkeys, uint64_t *out)
{
	uint64_t   *w = out + 1 + nkeys;
	double		least = INFINITY;
	double		most = -INFINITY;
	double		sum = 0;
	int64_t		low = INT64_MAX;
	int64_t		high = INT64_MIN;
	uint32_t	i;

	memset(out, 0, (1 + nkeys + nwords) * sizeof(uint64_t));
	if (from < to)
		out[0] = ended[from].null_keys;
	for (i = 0; i < nkeys; i++)
		out[1 + i] = (uint64_t) ended[from].keys[i];
	for (i = from; i < to; i++)
	{
		const Ended *e = &ended[i];

		w[0]++;
		w[1] += !e->v.null;
		w[2] += e->v.null ? 0 : (uint64_t) e->v.value;
		if (!e->sum.null)
		{
			w[3] += (uint32_t) e->sum.value;
			w[4] += (uint64_t) (e->sum.value >> 32);
			high = e->sum.value > high ? e->sum.value : high;
		}
		if (!e->v.null && !e->u.null && e->u.value && e->v.value < low)
			low = e->v.value;
		sum += e->f;
		least = e->f < least ? e->f : least;
		most = e->f > most ? e->f : most;
		w[10] += !e->u.null && e->u.value != 0;
	}
	for (i = NWORDS; i < nwords; i++)
		w[i] = w[1];			/* copies of v */
	w[5] = (uint64_t) low;
	w[6] = (uint64_t) high;
	if (from == to)
	{
		sum = -0.0;
		least = NAN;			/* not compared */
		most = NAN;
	}
	memcpy(&w[7], &sum, sizeof(sum));
	memcpy(&w[8], &least, sizeof(least));
	memcpy(&w[9], &most, sizeof(most));
}

static int
compare_rows(const void *a, const void *b)
{
	const uint64_t *x = a;
	const uint64_t *y = b;
	int			i;

	for (i = 0; i < 3; i++)
		if (x[i] != y[i])
			return i == 0 ? (x[0] < y[0] ? -1 : 1) :
				((int64_t) x[i] < (int64_t) y[i] ? -1 : 1);
	return 0;
}

static const HgjPipeWord state_words[NWORDS] = {
	{HGJ_PIPE_COUNT, HGJ_PIPE_NONE, HGJ_PIPE_NONE},
	{HGJ_PIPE_COUNT, IN_V, HGJ_PIPE_NONE},
	{HGJ_PIPE_SUM, IN_V, HGJ_PIPE_NONE},
	{HGJ_PIPE_SUM_LOW, 9, HGJ_PIPE_NONE},
	{HGJ_PIPE_SUM_HIGH, 9, HGJ_PIPE_NONE},
	{HGJ_PIPE_MIN, IN_V, IN_U},
	{HGJ_PIPE_MAX, 9, HGJ_PIPE_NONE},
	{HGJ_PIPE_SUM_FLOAT, IN_F, HGJ_PIPE_NONE},
	{HGJ_PIPE_MIN_FLOAT, IN_F, HGJ_PIPE_NONE},
	{HGJ_PIPE_MAX_FLOAT, IN_F, HGJ_PIPE_NONE},
	{HGJ_PIPE_COUNT, HGJ_PIPE_NONE, IN_U}
};

static HgjPipelineSpec
make_spec(const Case *c)
{
	HgjPipelineSpec spec = pipe_spec(c);

	spec.nkeys = c->keys == KEYS_NONE ? 0 : 2;
	spec.keys[0] = c->keys == KEYS_DENSE ? 6 : IN_A;
	spec.keys[1] = c->keys == KEYS_DENSE ? 8 : IN_V;
	spec.nwords = nwords = NWORDS + (c->many ? NCOPIES : 0);
	memcpy(spec.words, state_words, sizeof(state_words));
	for (uint32_t i = NWORDS; i < nwords; i++)
		spec.words[i] = (HgjPipeWord) {HGJ_PIPE_COUNT, (uint8_t) (COPIES + i - NWORDS), HGJ_PIPE_NONE};
	return spec;
}

static HgjPipeWide
wide_of(__int128 value)
{
	return (HgjPipeWide) {(uint64_t) value, (int64_t) (value >> 64)};
}

/* Groups that are to be left out: by none, one, or two of their words. */
static void
make_having(const HgjPipelineSpec *spec)
{
	static const uint8_t of[5] = {0, 1, 2, 3, 5};

	for (uint32_t n = spec->nkeys > 0 ? rnd_below(3) : 0; n > 0; n--)
	{
		HgjPipeHaving *having = &pipe_terms.having[pipe_terms.nhaving++];
		__int128	unit;

		having->word = of[rnd_below(5)];
		having->wide = having->word == 3;
		having->count = having->word == 2 ? 1 : having->word == 5 ? 10 : HGJ_PIPE_NONE;
		unit = having->wide ? 3000000000 : having->word < 2 ? 1 : 7;
		having->least = wide_of(rnd_below(2) == 0 ? -((__int128) 1 << 100) : unit * ((int) rnd_below(9) - 4));
		having->most = wide_of(rnd_below(2) == 0 ? (__int128) 1 << 100 : unit * (int) rnd_below(20));
	}
}

/* The same groups, told from the reference's words. */
static bool
to_be_left_out(const uint64_t *w)
{
	for (uint32_t i = 0; i < pipe_terms.nhaving; i++)
	{
		const HgjPipeHaving *h = &pipe_terms.having[i];
		__int128	least = (__int128) h->least.high * ((__int128) 1 << 64) + h->least.low;
		__int128	most = (__int128) h->most.high * ((__int128) 1 << 64) + h->most.low;
		__int128	value = (int64_t) w[h->word];

		if (h->wide)
			value = (__int128) (int64_t) w[h->word + 1] * ((__int128) 1 << 32) + w[h->word];
		if ((h->count != HGJ_PIPE_NONE && w[h->count] == 0) || value < least || value > most)
			return true;
	}
	return false;
}

static void
compare_groups(HgjPipeline *p, const HgjPipelineSpec *spec, uint64_t ngroups)
{
	uint32_t	nkeys = spec->nkeys;
	uint32_t	width = 1 + nkeys + nwords;
	uint64_t   *rows = must_alloc((ngroups + 1) * width * sizeof(uint64_t));
	uint64_t	expect[1 + 2 + HGJ_PIPE_WORDS];
	HgjError	err = {HGJ_OK, ""};
	uint64_t	g = 0;
	uint64_t	left_out = 0;
	uint32_t	from = 0;
	bool		same = true;
	HgjPipelineInfo info;

	CHECK_STATUS(engine->pipeline->groups(p, 0, ngroups, rows, &err), HGJ_OK);
	if (nkeys > 0)
	{
		qsort(rows, ngroups, width * sizeof(uint64_t), compare_rows);
		qsort(ended, nended, sizeof(Ended), compare_ended);
	}
	while ((from < nended || (nkeys == 0 && g == 0)) && same)
	{
		uint32_t	to = from;

		while (to < nended && compare_ended(&ended[from], &ended[to]) == 0)
			to++;
		sum_up(from, to, nkeys, expect);
		if (to_be_left_out(expect + 1 + nkeys))
		{
			left_out++;
			from = to;
			continue;
		}
		if (g == ngroups)
			break;
		if (from == to)			/* no rows: no least, no most */
			memcpy(expect + 1 + nkeys + 8, rows + g * width + 1 + nkeys + 8, 16);
		same = memcmp(expect, rows + g * width, width * sizeof(uint64_t)) == 0;
		if (!CHECK(same, "group %llu is not the same", (unsigned long long) g))
			for (uint32_t w = 0; w < width; w++)
				printf("  word %u: %llx, expected %llx\n", w,
					   (unsigned long long) rows[g * width + w],
					   (unsigned long long) expect[w]);
		from = to;
		g++;
	}
	CHECK(from == nended && g == ngroups, "%llu groups, rows %u of %u",
		  (unsigned long long) ngroups, from, nended);
	engine->pipeline->info(p, &info);
	CHECK(info.left_out == left_out, "%llu groups left out, not %llu",
		  (unsigned long long) info.left_out, (unsigned long long) left_out);
	free(rows);
}

static void
set_ranges(const Case *c, HgjPipeRange *ranges)
{
	int			k;

	memset(ranges, 0, 2 * sizeof(*ranges));
	for (k = 0; k < 2 && c->keys == KEYS_DENSE; k++)
	{
		ranges[k].bounded = true;
		ranges[k].low = -20;
		ranges[k].high = 19;
	}
}

static void
run_case(const Case *c)
{
	HgjPipelineCaller caller;
	HgjPipelineSpec spec;
	HgjPipelineInfo info;
	HgjPipeRange ranges[2];
	HgjPipeline *p;
	HgjError	err = {HGJ_OK, ""};
	Counted		counted;
	uint64_t	ngroups = 0;
	uint64_t	kept;

	context("pipeline: words %u, joins %d%d%d %d%d%d, residual %d, behind %d, drop %d, unique %d, no nulls %d, bounds %d, keys %d",
			c->nwords, c->pass[0], c->fill[0], c->single[0], c->pass[1], c->fill[1],
			c->single[1], c->residual, c->behind, c->drop, c->unique, c->no_nulls,
			(int) c->bounds, (int) c->keys);
	pipe_make(c);
	pipe_keep();
	nended = 0;
	counted = pipe_reference(c, end_row);

	spec = make_spec(c);
	make_having(&spec);
	caller = pipe_caller();
	if (CHECK(engine->pipeline->create(&spec, &caller, &p, &err) == HGJ_OK, "%s", err.message))
	{
		set_ranges(c, ranges);
		pipe_send_payload(p, &spec);
		CHECK(engine->pipeline->start(p, ranges, NROWS * 4, &err) == HGJ_OK, "%s",
			  err.message);
		CHECK(pipe_push_all(p, rnd_below(3) * 50, &kept, &err) == HGJ_OK, "%s", err.message);
		CHECK(engine->pipeline->finish(p, &ngroups, &err) == HGJ_OK, "%s", err.message);
		compare_groups(p, &spec, ngroups);
		engine->pipeline->info(p, &info);
		CHECK(info.rows == NROWS && info.joined[1] == nended && info.memory > 0,
			  "%llu rows, %llu joined", (unsigned long long) info.rows,
			  (unsigned long long) info.joined[1]);
		CHECK(info.kept_rows == kept && (info.kept_bytes > 0) == (kept > 0),
			  "%llu kept rows, not %llu", (unsigned long long) info.kept_rows,
			  (unsigned long long) kept);
		if (kept > 0)
			pipe_check_copies();
		CHECK(info.dropped == counted.dropped, "%llu dropped, not %llu",
			  (unsigned long long) info.dropped, (unsigned long long) counted.dropped);
		CHECK(info.filtered[0] == counted.filtered && info.filtered[1] == 0,
			  "%llu filtered, not %llu", (unsigned long long) info.filtered[0],
			  (unsigned long long) counted.filtered);
		engine->pipeline->destroy(p);
	}
	pipe_unmake();
}

/* Step 3. */
static int
cancel_now(void *arg)
{
	(void) arg;
	return 1;
}

static void
test_ends(void)
{
	Case		c = {.nwords = 1, .keys = KEYS_HASHED};
	HgjPipelineCaller caller;
	HgjPipelineSpec spec;
	HgjPipeRange ranges[2];
	HgjPipeline *p;
	HgjError	err = {HGJ_OK, ""};
	HgjStatus	status;
	uint64_t	ngroups;
	uint64_t	kept;
	HgjKeptPush no_rows = {0};
	int			j;

	context("how pipelines end");
	pipe_set_join(&c, 0, 0);
	pipe_set_join(&c, 1, 0);
	pipe_make(&c);
	pipe_keep();
	set_ranges(&c, ranges);
	caller = pipe_caller();
	for (j = 0; j < 3; j++)
	{
		static const HgjStatus wanted[] = {HGJ_LIMIT, HGJ_ROW_FAILED, HGJ_OK};

		spec = make_spec(&c);
		if (j == 1)				/* 1000 * 3 * 10^18 */
			spec.code[spec.ncode - 4].imm = INT64_C(3000000000000000000);
		CHECK_STATUS(engine->pipeline->create(&spec, &caller, &p, &err), HGJ_OK);
		pipe_send_payload(p, &spec);
		CHECK_STATUS(engine->pipeline->start(p, ranges, j == 0 ? 1 : 1000000, &err), HGJ_OK);
		status = pipe_push_all(p, 50, &kept, &err);
		if (status == HGJ_OK && j < 2)
			status = engine->pipeline->finish(p, &ngroups, &err);
		CHECK_STATUS(status, j == 0 && engine->pipeline->grows ? HGJ_OK : wanted[j]);
		engine->pipeline->destroy(p);	/* the last one with work under way */
	}

	for (j = 0; j < UNSOUND_KEPT && engine->pipeline->push_kept != NULL; j++)
	{
		spec = make_spec(&c);
		CHECK_STATUS(engine->pipeline->create(&spec, &caller, &p, &err), HGJ_OK);
		CHECK_STATUS(pipe_push_unsound(p, j, &err), HGJ_INVALID);	/* not started */
		pipe_send_payload(p, &spec);
		CHECK_STATUS(engine->pipeline->start(p, ranges, 1000000, &err), HGJ_OK);
		CHECK_STATUS(engine->pipeline->push_kept(p, &no_rows, &err), HGJ_OK);
		CHECK_STATUS(pipe_push_not_there(p, &err), HGJ_UNSUPPORTED);
		CHECK(pipe_push_unsound(p, j, &err) == HGJ_INVALID, "unsound in way %d", j);
		engine->pipeline->destroy(p);
	}

	spec = make_spec(&c);
	caller.poll = cancel_now;
	CHECK_STATUS(engine->pipeline->create(&spec, &caller, &p, &err), HGJ_OK);
	CHECK_STATUS(engine->pipeline->payload(p, 0, 0, 0, 1, spec.code, NULL, &err), HGJ_CANCELLED);
	engine->pipeline->destroy(p);
	caller.poll = NULL;
	pipe_terms.memory_limit = 1024;
	CHECK_STATUS(engine->pipeline->create(&spec, &caller, &p, &err), HGJ_OK);
	CHECK_STATUS(engine->pipeline->payload(p, 0, 0, 0, 1, spec.code, NULL, &err), HGJ_LIMIT);
	engine->pipeline->destroy(p);
	pipe_unmake();
}

/*
 * One way to break a sound spec, whose instructions are: the inputs; from AT on
 * PROBE, MATCH and PAYLOAD of the first join, PROBE, MATCH and PAYLOAD of the
 * second; a constant, two ARITHMETICs, END.  False: there are no more ways.
 */
#define AT	NINPUTS

static bool
spoil(int way, HgjPipelineSpec *spec, HgjPipelineCaller *caller)
{
	HgjPipeInstruction *code = spec->code;
	static const HgjPipeInstruction jump = {.op = HGJ_PIPE_JUMP, .arg = AT + 1};
	static const HgjPipeInstruction filter = {.op = HGJ_PIPE_FILTER, .a = IN_U};
	static const HgjPipeHaving bad_having[] = {
		{.word = 7,.count = HGJ_PIPE_NONE}, /* a float */
		{.word = 2,.count = HGJ_PIPE_NONE,.wide = true},
		{.word = 3,.count = HGJ_PIPE_NONE}, /* half of a sum */
		{.word = 2,.count = 2}, /* no number of values */
		{.word = HGJ_PIPE_WORDS,.count = HGJ_PIPE_NONE}
	};
	static const uint8_t of_two[] = {HGJ_PIPE_COMPARE, HGJ_PIPE_DISTINCT, HGJ_PIPE_AND, HGJ_PIPE_OR};

	switch (way)
	{
		case 0:
			code[0].dst = HGJ_PIPE_REGISTERS;
			break;
		case 1:
			code[0].arg = NINPUTS;
			break;
		case 2:
			spec->ncode--;
			break;
		case 3:
			spec->keys[0] = 40;	/* which nobody sets */
			break;
		case 4:
			spec->words[0].state = HGJ_PIPE_SUM;
			break;
		case 5:
			code[AT].a = 1;
			break;
		case 6:
			spec->ncode = 0;
			break;
		case 7:
			spec->ninputs = HGJ_PIPE_INPUTS + 1;
			break;
		case 8:
			spec->njoins = 1;	/* there are probes of two */
			break;
		case 9:
			spec->inputs[0] = HGJ_KIND_F8 + 1;
			break;
		case 10:
			code[0].op = HGJ_PIPE_MATCH + 1;
			break;
		case 11:
			code[AT + 2].arg = 1;	/* a column that there is not */
			break;
		case 12:				/* before its probe */
			code[IN_A2].op = HGJ_PIPE_PAYLOAD;
			code[IN_A2].arg = 0;
			break;
		case 13:
			code[AT + 8].c = HGJ_ABS + 1;
			break;
		case 14:
			code[AT + 8].b = HGJ_PIPE_REGISTERS;
			break;
		case 15:
			code[IN_A2] = jump;	/* over a probe */
			break;
		case 16:
			code[AT + 8] = jump;	/* back */
			break;
		case 17:
			code[AT + 8] = jump;
			code[AT + 8].arg = AT + 10;	/* beyond the end */
			break;
		case 18:
			code[IN_A2].op = HGJ_PIPE_END;	/* before the end */
			break;
		case 19:
			code[AT + 2] = filter;	/* of candidates, behind the match */
			code[AT + 2].arg = 1;
			break;
		case 20:
			code[IN_A2] = filter;	/* of joined rows, before the probe */
			code[IN_A2].arg = HGJ_PIPE_JOINS + 1;
			break;
		case 21:
			code[AT + 2] = filter;	/* of input rows, behind the probe */
			code[AT + 2].arg = HGJ_PIPE_DROP;
			break;
		case 22:
			code[AT + 4].op = HGJ_PIPE_NULL;	/* no match */
			break;
		case 23:
			spec->joins[0].keys[0] = 40;
			break;
		case 24:
			spec->joins[0].nkeys = 2;
			break;
		case 25:
			spec->joins[1].kinds[0] = HGJ_KIND_F8 + 1;
			break;
		case 26:
			spec->joins[1].ncolumns = HGJ_PIPE_COLUMNS + 1;
			break;
		case 27:
			caller->tables[1] = NULL;
			break;
		case 28:
			spec->words[2].reg = HGJ_PIPE_NONE;	/* nothing to sum up */
			break;
		case 29:
			spec->words[2].filter = 40;
			break;
		case 30:
			spec->nwords = 0;
			break;
		case 31:
			spec->rows = true;	/* with words */
			break;
		case 32:
			code[AT + 8].op = HGJ_PIPE_COMPARE;
			code[AT + 8].c = HGJ_GE + 1;
			break;
		case 33:
			code[AT + 8].op = HGJ_PIPE_CAST;
			code[AT + 8].c = HGJ_KIND_F8 + 1;
			break;
		case 34:
			spec->ncode = HGJ_PIPE_CODE + 1;
			break;
		case 35:
			code[AT + 8].kind = HGJ_KIND_F8 + 1;
			break;
		case 36:
		case 37:
		case 38:
		case 39:
			code[AT + 8].op = of_two[way - 36];
			code[AT + 8].c = HGJ_EQ;
			code[AT + 8].b = HGJ_PIPE_REGISTERS;
			break;
		case 40:				/* over a match */
			code[AT + 2] = code[AT + 1];
			code[AT + 1] = jump;
			code[AT + 1].arg = AT + 3;
			break;
		case 41:				/* of no join, nor of input rows */
			code[AT + 2] = filter;
			code[AT + 2].arg = HGJ_PIPE_DROP + 1;
			break;
		case 42:
			code[IN_A2] = filter;	/* of candidates, before their probe */
			code[IN_A2].arg = 1;
			break;
		case 43:
			code[AT + 1] = code[AT + 3];	/* before the first match */
			break;
		case 44:
			spec->nkeys = HGJ_PIPE_KEYS + 1;
			break;
		case 45:
			spec->nwords = HGJ_PIPE_WORDS + 1;
			break;
		case 46:
			spec->njoins = HGJ_PIPE_JOINS + 1;
			break;
		case 47:
			spec->words[2].state = HGJ_PIPE_MAX_FLOAT + 1;
			break;
		case 48:
			spec->fills = true;	/* with words */
			break;
		case 49:
			spec->ncolumns = 1;	/* of no table */
			break;
		case 50:
			pipe_terms.nhaving = HGJ_PIPE_HAVING + 1;
			break;
		case 51:
		case 52:
		case 53:
		case 54:
		case 55:
			pipe_terms.nhaving = 1;
			pipe_terms.having[0] = bad_having[way - 51];
			break;
		case 56:
			pipe_terms.nvalues = HGJ_PIPE_VALUES + 1;
			break;
		case 57:
		case 58:
			/* a value that there is not, or nowhere */
			spec->code[spec->ncode - 4].op = HGJ_PIPE_VALUE;
			spec->code[spec->ncode - 4].arg = way == 57 ? 0 : HGJ_PIPE_VALUES;
			break;
		case 59:
			spec->code[spec->ncode - 4].op = HGJ_PIPE_VALUE;
			caller->terms = NULL;
			break;
		default:
			return false;
	}
	return true;
}

static void
test_unsound(void)
{
	Case		c = {.nwords = 1, .keys = KEYS_HASHED};
	HgjPipelineCaller caller;
	HgjPipelineSpec spec;
	HgjPipeline *p;
	HgjError	err = {HGJ_OK, ""};
	int			way;

	pipe_set_join(&c, 0, 0);
	pipe_set_join(&c, 1, 0);
	pipe_make(&c);
	for (way = 0;; way++)
	{
		context("a pipeline that is not sound: %d", way);
		spec = make_spec(&c);
		caller = pipe_caller();
		if (!spoil(way, &spec, &caller))
			break;
		CHECK_STATUS(engine->pipeline->create(&spec, &caller, &p, &err), HGJ_INVALID);
	}
	context("a pipeline that is sound");
	CHECK_STATUS(engine->pipeline->create(&spec, &caller, &p, &err), HGJ_OK);
	engine->pipeline->destroy(p);
	/* a register that an instruction does not read may be any */
	spec.code[AT + 8].c = HGJ_NEG;
	spec.code[AT + 8].b = HGJ_PIPE_REGISTERS;
	CHECK_STATUS(engine->pipeline->create(&spec, &caller, &p, &err), HGJ_OK);
	engine->pipeline->destroy(p);
	pipe_unmake();
}

void
test_pipeline(void)
{
	static const uint8_t tops[] = {0, 20, 50};
	uint32_t	type;

	if (engine->pipeline == NULL)
	{
		CHECK(is_cpu, "the engine has no pipelines");
		return;
	}
	ended = must_alloc(MAX_ENDED * sizeof(Ended));
	for (type = 0; type < 16; type++)
		for (int keys = 0; keys < KEYS_SORTS; keys++)
		{
			Case		c = {.nwords = 1 + rnd_below(2), .residual = rnd_below(2) == 0,
			.behind = rnd_below(2) == 0, .drop = rnd_below(2) == 0, .top = tops[rnd_below(3)], .keys = (Keys) keys};

			pipe_set_join(&c, 0, type % 4);
			pipe_set_join(&c, 1, type / 4);
			pipe_vary(&c);
			if (in_share())
				run_case(&c);
		}
	test_ends();
	test_unsound();
	free(ended);
}
