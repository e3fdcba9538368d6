/*-------------------------------------------------------------------------
 *
 * test_pipeline.c
 *	  Pipelines (pipeline.h) against a plain reference.
 *
 * 1. One shape of instructions, with everything around it at random: two joins
 *	  of any kind, a residual clause in the first, keys of one or two words,
 *	  NULLs in keys, columns and payload, groups of three sorts, all state words.
 * 2. The reference goes through the candidates row by row, puts down what ends,
 *	  sorts that by group, and sums up.
 * 3. What ends a pipeline early: a row's error, too many groups, cancelling,
 *	  instructions that are not sound.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "test.h"

#define NROWS		30000
#define NBUILD		1500
#define NKEYS		700
#define NWORDS		11
#define MAX_ENDED	(1 << 22)

enum
{
	IN_A,						/* first key word of join 0 */
	IN_A2,						/* second */
	IN_B,						/* key of join 1 */
	IN_V,
	IN_F,
	IN_U,
	NINPUTS
};

static const uint8_t input_kinds[NINPUTS] = {
	HGJ_PIPE_I4, HGJ_PIPE_I2, HGJ_PIPE_I8, HGJ_PIPE_I8, HGJ_PIPE_F8, HGJ_PIPE_U1
};

typedef enum Keys
{
	KEYS_NONE,
	KEYS_DENSE,					/* payload columns, bounded */
	KEYS_HASHED,				/* input columns */
	KEYS_SORTS
} Keys;

typedef struct Case
{
	uint32_t	nwords;			/* of join 0 */
	bool		pass[2];
	bool		fill[2];
	bool		single[2];
	bool		residual;
	bool		behind;			/* a filter behind the first MATCH */
	Keys		keys;
} Case;

/* A value that may be NULL. */
typedef struct Cell
{
	int64_t		value;
	bool		null;
} Cell;

typedef struct Build
{
	HgjTable   *table;
	uint64_t	words[2][NBUILD];
	Cell		payload[NBUILD];
} Build;

typedef struct Ended
{
	uint64_t	null_keys;
	int64_t		keys[2];
	Cell		v;
	Cell		sum;
	Cell		u;
	double		f;
} Ended;

static Cell inputs[NINPUTS][NROWS];
static Build builds[2];
static Ended *ended;
static uint32_t nended;
static uint64_t nfiltered;

static Cell
cell(int64_t value, uint32_t null_percent)
{
	Cell		c = {value, rnd_below(100) < null_percent};

	return c;
}

static void
make_inputs(void)
{
	uint32_t	i;

	for (i = 0; i < NROWS; i++)
	{
		double		f = ((double) rnd_below(1000) - 500) / 4 + 0.125;

		inputs[IN_A][i] = cell((int64_t) rnd_below(NKEYS) - 100, 5);
		inputs[IN_A2][i] = cell(rnd_below(3), 2);
		inputs[IN_B][i] = cell((int64_t) rnd_below(NKEYS) * 3000000007, 3);
		inputs[IN_V][i] = cell((int64_t) rnd_below(2000) - 1000, 10);
		inputs[IN_U][i] = cell(rnd_below(2), 10);
		inputs[IN_F][i].null = false;
		memcpy(&inputs[IN_F][i].value, &f, sizeof(f));
	}
}

static void
make_build(Build *b, const Case *c, int j)
{
	HgjTableSpec spec = spec_default(j == 0 ? c->nwords : 1);
	HgjError	err = {HGJ_OK, ""};
	const uint64_t *words[2] = {b->words[0], b->words[1]};
	HgjKeys		keys = {.nrows = NBUILD, .words = words};
	uint32_t	i;

	for (i = 0; i < NBUILD; i++)
	{
		int64_t		key = rnd_below(NKEYS);

		b->words[0][i] = (uint64_t) (j == 0 ? key - 100 : key * 3000000007);
		b->words[1][i] = rnd_below(3);
		b->payload[i] = cell((int64_t) rnd_below(40) - 20, 10);
		if (c->pass[j] && c->single[j])
		{
			/* which candidate passes is free: let it not matter */
			b->payload[i].value = key % 40 - 20;
			b->payload[i].null = key % 11 == 0;
		}
	}
	CHECK_STATUS(engine->table_create(&spec, &b->table, &err), HGJ_OK);
	CHECK_STATUS(engine->append(b->table, &keys, 0, NULL, &err), HGJ_OK);
	CHECK_STATUS(engine->build(b->table, NBUILD, &err), HGJ_OK);
}

/* Step 2. */
static void
end_row(const Case *c, uint32_t row, const Cell *p0, const Cell *p1)
{
	Ended	   *e = &ended[nended++];
	const Cell *keys[2] = {p0, p1};
	int			k;

	if (nended == MAX_ENDED)
		exit(2);
	memset(e, 0, sizeof(*e));
	if (c->keys == KEYS_HASHED)
	{
		keys[0] = &inputs[IN_A][row];
		keys[1] = &inputs[IN_V][row];
	}
	for (k = 0; k < 2 && c->keys != KEYS_NONE; k++)
	{
		e->null_keys |= (uint64_t) keys[k]->null << k;
		e->keys[k] = keys[k]->null ? 0 : keys[k]->value;
	}
	e->v = inputs[IN_V][row];
	e->u = inputs[IN_U][row];
	e->sum.null = e->v.null || p1->null;
	e->sum.value = e->v.value * 3000000000 + p1->value;
	memcpy(&e->f, &inputs[IN_F][row].value, sizeof(double));
}

/* payload > 0 or v >= 0 */
static bool
passes_behind(const Case *c, uint32_t row, const Cell *p)
{
	const Cell *v = &inputs[IN_V][row];

	return !c->behind || (!p->null && p->value > 0) || (!v->null && v->value >= 0);
}

static void
join_row(const Case *c, uint32_t row, int j, const Cell *p0)
{
	static const Cell none = {0, true};
	Build	   *b = &builds[j];
	const Cell *key = &inputs[j == 0 ? IN_A : IN_B][row];
	bool		two = j == 0 && c->nwords == 2;
	bool		hit = false;
	uint32_t	i;

	if (j == 2)
		return;
	for (i = 0; i < NBUILD && !(hit && c->single[j]); i++)
	{
		const Cell *p = &b->payload[i];
		const Cell *v = &inputs[IN_V][row];

		if (key->null || (uint64_t) key->value != b->words[0][i])
			continue;
		if (two && (inputs[IN_A2][row].null ||
					(uint64_t) inputs[IN_A2][row].value != b->words[1][i]))
			continue;
		if (j == 0 && c->residual && (v->null || p->null || v->value >= p->value * 50))
			continue;
		hit = true;
		if (!c->pass[j])
			continue;
		if (j == 0 && !passes_behind(c, row, p))
			nfiltered++;
		else if (j == 0)
			join_row(c, row, 1, p);
		else
			end_row(c, row, p0, p);
	}
	if (!hit && c->fill[j])
	{
		if (j == 0 && !passes_behind(c, row, &none))
			nfiltered++;
		else if (j == 0)
			join_row(c, row, 1, &none);
		else
			end_row(c, row, p0, &none);
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

	memset(out, 0, (1 + nkeys + NWORDS) * sizeof(uint64_t));
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

#define CODE(...) code[n++] = (HgjPipeInstruction) {__VA_ARGS__}

/* Registers 0 to 5 are the inputs, 6 and 8 payload, 9 and 10 computed. */
static uint32_t
write_code(const Case *c, HgjPipeInstruction *code)
{
	uint32_t	n = 0;
	uint8_t		i;

	for (i = 0; i < NINPUTS; i++)
		CODE(.op = HGJ_PIPE_INPUT, .dst = i, .arg = i);
	CODE(.op = HGJ_PIPE_PROBE, .a = 0);
	if (c->residual)
	{
		CODE(.op = HGJ_PIPE_PAYLOAD, .dst = 6, .a = 0);
		CODE(.op = HGJ_PIPE_CONSTANT, .dst = 7, .imm = 50);
		CODE(.op = HGJ_PIPE_ARITHMETIC, .kind = HGJ_PIPE_I4, .dst = 6, .a = 6, .b = 7,
			 .c = HGJ_PIPE_MUL);
		CODE(.op = HGJ_PIPE_COMPARE, .kind = HGJ_PIPE_I8, .dst = 7, .a = IN_V, .b = 6,
			 .c = HGJ_PIPE_LT);
		CODE(.op = HGJ_PIPE_FILTER, .a = 7, .arg = 1);
	}
	CODE(.op = HGJ_PIPE_MATCH, .a = 0);
	CODE(.op = HGJ_PIPE_PAYLOAD, .dst = 6, .a = 0);
	if (c->behind)
	{
		CODE(.op = HGJ_PIPE_CONSTANT, .dst = 9, .imm = 0);
		CODE(.op = HGJ_PIPE_COMPARE, .kind = HGJ_PIPE_I8, .dst = 10, .a = 6, .b = 9,
			 .c = HGJ_PIPE_GT);
		CODE(.op = HGJ_PIPE_COMPARE, .kind = HGJ_PIPE_I8, .dst = 9, .a = IN_V, .b = 9,
			 .c = HGJ_PIPE_GE);
		CODE(.op = HGJ_PIPE_OR, .dst = 9, .a = 9, .b = 10);
		CODE(.op = HGJ_PIPE_FILTER, .a = 9, .arg = HGJ_PIPE_JOINS + 1);
	}
	CODE(.op = HGJ_PIPE_PROBE, .a = 1);
	CODE(.op = HGJ_PIPE_MATCH, .a = 1);
	CODE(.op = HGJ_PIPE_PAYLOAD, .dst = 8, .a = 1);
	CODE(.op = HGJ_PIPE_CONSTANT, .dst = 10, .imm = 3000000000);
	CODE(.op = HGJ_PIPE_ARITHMETIC, .kind = HGJ_PIPE_I8, .dst = 9, .a = IN_V, .b = 10,
		 .c = HGJ_PIPE_MUL);
	CODE(.op = HGJ_PIPE_ARITHMETIC, .kind = HGJ_PIPE_I8, .dst = 9, .a = 9, .b = 8,
		 .c = HGJ_PIPE_ADD);
	CODE(.op = HGJ_PIPE_END);
	return n;
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
make_spec(const Case *c, HgjPipeInstruction *code)
{
	HgjPipelineSpec spec;
	uint32_t	j;

	memset(&spec, 0, sizeof(spec));
	spec.ninputs = NINPUTS;
	memcpy(spec.inputs, input_kinds, sizeof(input_kinds));
	spec.njoins = 2;
	for (j = 0; j < 2; j++)
	{
		HgjPipeJoin *join = &spec.joins[j];

		join->table = builds[j].table;
		join->pass = c->pass[j];
		join->fill = c->fill[j];
		join->single = c->single[j];
		join->nkeys = j == 0 ? c->nwords : 1;
		join->keys[0] = j == 0 ? IN_A : IN_B;
		join->keys[1] = IN_A2;
		join->ncolumns = 1;
		join->kinds[0] = j == 0 ? HGJ_PIPE_I4 : HGJ_PIPE_I2;
	}
	spec.code = code;
	spec.ncode = write_code(c, code);
	spec.nkeys = c->keys == KEYS_NONE ? 0 : 2;
	spec.keys[0] = c->keys == KEYS_DENSE ? 6 : IN_A;
	spec.keys[1] = c->keys == KEYS_DENSE ? 8 : IN_V;
	spec.nwords = NWORDS;
	memcpy(spec.words, state_words, sizeof(state_words));
	return spec;
}

static void
put(void *values, uint8_t kind, uint32_t i, int64_t value)
{
	switch (kind)
	{
		case HGJ_PIPE_U1:
			((uint8_t *) values)[i] = (uint8_t) value;
			break;
		case HGJ_PIPE_I2:
			((int16_t *) values)[i] = (int16_t) value;
			break;
		case HGJ_PIPE_I4:
			((int32_t *) values)[i] = (int32_t) value;
			break;
		default:
			((int64_t *) values)[i] = value;
			break;
	}
}

static void
put_cells(const Cell *cells, uint8_t kind, uint32_t n, void *values, uint64_t *validity)
{
	uint32_t	i;

	for (i = 0; i < n; i++)
	{
		put(values, kind, i, cells[i].value);
		if (i % 64 == 0)
			validity[i / 64] = 0;
		validity[i / 64] |= (uint64_t) !cells[i].null << (i % 64);
	}
}

static void
send_payload(HgjPipeline *p, const HgjPipelineSpec *spec)
{
	char	   *values = must_alloc(NBUILD * 8);
	uint64_t	validity[NBUILD / 64 + 1];
	HgjError	err = {HGJ_OK, ""};
	uint32_t	j;

	for (j = 0; j < 2; j++)
	{
		uint32_t	first;

		for (first = 0; first < NBUILD; first += 640)
		{
			uint32_t	n = NBUILD - first < 640 ? NBUILD - first : 640;

			put_cells(builds[j].payload + first, spec->joins[j].kinds[0], n, values,
					  validity);
			CHECK_STATUS(engine->pipeline->payload(p, j, 0, first, n, values, validity,
												   &err), HGJ_OK);
		}
	}
	free(values);
}

/* All rows, in batches of any size; the first status that is not OK. */
static HgjStatus
push_all(HgjPipeline *p, HgjError *err)
{
	uint32_t	done = 0;

	while (done < NROWS)
	{
		HgjPipeStage stage;
		HgjStatus	status = engine->pipeline->stage(p, &stage, err);
		uint32_t	n = 1 + rnd_below(6000);
		int			i;

		if (status != HGJ_OK)
			return status;
		n = n > NROWS - done ? NROWS - done : n;
		n = n > stage.capacity ? stage.capacity : n;
		for (i = 0; i < NINPUTS; i++)
			put_cells(inputs[i] + done, input_kinds[i], n, stage.values[i],
					  stage.validity[i]);
		status = engine->pipeline->push(p, n, (1 << NINPUTS) - 1 - (1 << IN_F), err);
		if (status != HGJ_OK)
			return status;
		done += n;
	}
	return HGJ_OK;
}

static void
compare_groups(HgjPipeline *p, uint64_t ngroups, uint32_t nkeys)
{
	uint32_t	width = 1 + nkeys + NWORDS;
	uint64_t   *rows = must_alloc((ngroups + 1) * width * sizeof(uint64_t));
	uint64_t	expect[1 + 2 + NWORDS];
	HgjError	err = {HGJ_OK, ""};
	uint64_t	g = 0;
	uint32_t	from = 0;
	bool		same = true;

	CHECK_STATUS(engine->pipeline->groups(p, 0, ngroups, rows, &err), HGJ_OK);
	if (nkeys > 0)
	{
		qsort(rows, ngroups, width * sizeof(uint64_t), compare_rows);
		qsort(ended, nended, sizeof(Ended), compare_ended);
	}
	while ((from < nended || (nkeys == 0 && g == 0)) && g < ngroups && same)
	{
		uint32_t	to = from;

		while (to < nended && compare_ended(&ended[from], &ended[to]) == 0)
			to++;
		sum_up(from, to, nkeys, expect);
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
	HgjPipeInstruction code[HGJ_PIPE_CODE];
	HgjPipelineSpec spec;
	HgjPipelineInfo info;
	HgjPipeRange ranges[2];
	HgjPipeline *p;
	HgjError	err = {HGJ_OK, ""};
	uint64_t	ngroups = 0;
	uint32_t	row;
	int			j;

	context("pipeline: words %u, joins %d%d%d %d%d%d, residual %d, behind %d, keys %d",
			c->nwords, c->pass[0], c->fill[0], c->single[0], c->pass[1], c->fill[1],
			c->single[1], c->residual, c->behind, (int) c->keys);
	make_inputs();
	for (j = 0; j < 2; j++)
		make_build(&builds[j], c, j);
	nended = 0;
	nfiltered = 0;
	for (row = 0; row < NROWS; row++)
		join_row(c, row, 0, NULL);

	spec = make_spec(c, code);
	if (CHECK(engine->pipeline->create(&spec, &p, &err) == HGJ_OK, "%s", err.message))
	{
		set_ranges(c, ranges);
		send_payload(p, &spec);
		CHECK(engine->pipeline->start(p, ranges, NROWS * 4, &err) == HGJ_OK, "%s",
			  err.message);
		CHECK(push_all(p, &err) == HGJ_OK, "%s", err.message);
		CHECK(engine->pipeline->finish(p, &ngroups, &err) == HGJ_OK, "%s", err.message);
		compare_groups(p, ngroups, spec.nkeys);
		engine->pipeline->info(p, &info);
		CHECK(info.rows == NROWS && info.joined[1] == nended && info.memory > 0,
			  "%llu rows, %llu joined", (unsigned long long) info.rows,
			  (unsigned long long) info.joined[1]);
		CHECK(info.filtered[0] == nfiltered && info.filtered[1] == 0,
			  "%llu filtered, not %llu", (unsigned long long) info.filtered[0],
			  (unsigned long long) nfiltered);
		engine->pipeline->destroy(p);
	}
	for (j = 0; j < 2; j++)
		engine->table_destroy(builds[j].table);
}

/* Inner, left, semi, anti. */
static void
set_join(Case *c, int j, uint32_t type)
{
	c->pass[j] = type != 3;
	c->fill[j] = type == 1 || type == 3;
	c->single[j] = type >= 2;
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
	HgjPipeInstruction code[HGJ_PIPE_CODE];
	HgjPipelineSpec spec;
	HgjPipeRange ranges[2];
	HgjPipeline *p;
	HgjError	err = {HGJ_OK, ""};
	HgjStatus	status;
	uint64_t	ngroups;
	int			j;

	context("how pipelines end");
	set_join(&c, 0, 0);
	set_join(&c, 1, 0);
	make_inputs();
	for (j = 0; j < 2; j++)
		make_build(&builds[j], &c, j);
	set_ranges(&c, ranges);
	for (j = 0; j < 3; j++)
	{
		static const HgjStatus wanted[] = {HGJ_LIMIT, HGJ_ROW_FAILED, HGJ_OK};

		spec = make_spec(&c, code);
		if (j == 1)				/* 1000 * 3 * 10^18 */
			code[spec.ncode - 4].imm = INT64_C(3000000000000000000);
		CHECK_STATUS(engine->pipeline->create(&spec, &p, &err), HGJ_OK);
		send_payload(p, &spec);
		CHECK_STATUS(engine->pipeline->start(p, ranges, j == 0 ? 1 : 1000000, &err), HGJ_OK);
		status = push_all(p, &err);
		if (status == HGJ_OK && j < 2)
			status = engine->pipeline->finish(p, &ngroups, &err);
		CHECK_STATUS(status, wanted[j]);
		engine->pipeline->destroy(p);	/* the last one with work under way */
	}

	spec = make_spec(&c, code);
	spec.poll = cancel_now;
	CHECK_STATUS(engine->pipeline->create(&spec, &p, &err), HGJ_OK);
	CHECK_STATUS(engine->pipeline->payload(p, 0, 0, 0, 1, code, NULL, &err), HGJ_CANCELLED);
	engine->pipeline->destroy(p);
	spec.poll = NULL;
	spec.memory_limit = 1024;
	CHECK_STATUS(engine->pipeline->create(&spec, &p, &err), HGJ_OK);
	CHECK_STATUS(engine->pipeline->payload(p, 0, 0, 0, 1, code, NULL, &err), HGJ_LIMIT);
	engine->pipeline->destroy(p);
	spec.memory_limit = 0;
	for (j = 0; j < 6; j++)
	{
		spec = make_spec(&c, code);
		if (j == 0)
			code[0].dst = HGJ_PIPE_REGISTERS;
		else if (j == 1)
			code[0].arg = NINPUTS;
		else if (j == 2)
			spec.ncode--;
		else if (j == 3)
			spec.keys[0] = 40;
		else if (j == 4)
			spec.words[0].state = HGJ_PIPE_SUM;
		else
			code[NINPUTS].a = 1;
		CHECK_STATUS(engine->pipeline->create(&spec, &p, &err), HGJ_INVALID);
	}
	for (j = 0; j < 2; j++)
		engine->table_destroy(builds[j].table);
}

void
test_pipeline(void)
{
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
			.behind = rnd_below(2) == 0, .keys = (Keys) keys};

			set_join(&c, 0, type % 4);
			set_join(&c, 1, type / 4);
			if (in_share())
				run_case(&c);
		}
	test_ends();
	free(ended);
}
