/*-------------------------------------------------------------------------
 *
 * pipeline_case.c
 *	  The pipeline that tests run, and its plain reference.
 *
 * 1. One shape of instructions, with everything around it at random: two joins
 *	  of any kind, a residual clause in the first, keys of one or two words,
 *	  NULLs in keys, columns and payload, any number of registers.
 * 2. The reference goes through the candidates row by row, and tells what ends.
 *
 *-------------------------------------------------------------------------
 */
#include "test_pipeline.h"

static const uint8_t input_kinds[NINPUTS] = {
	HGJ_KIND_I4, HGJ_KIND_I2, HGJ_KIND_I8, HGJ_KIND_I8, HGJ_KIND_F8, HGJ_KIND_U1
};

Cell		pipe_inputs[NINPUTS][NROWS];
Build		pipe_builds[2];
bool		pipe_has_nulls = true;
HgjPipelineTerms pipe_terms;
static bool has_null_payload = true;

/* Inner, left, semi, anti. */
void
pipe_set_join(Case *c, int j, uint32_t type)
{
	c->pass[j] = type != 3;
	c->fill[j] = type == 1 || type == 3;
	c->single[j] = type >= 2;
}

/*
 * What any case may be besides: often one in which a row has one candidate at most, for
 * which engines may have kernels of their own.
 */
void
pipe_vary(Case *c)
{
	c->unique = rnd_below(2) == 0;
	c->no_nulls = rnd_below(2) == 0;
	c->no_null_payload = c->no_nulls && rnd_below(2) == 0;
	c->bounds = (Bounds) rnd_below(BOUNDS_SORTS);
	c->many = rnd_below(4) == 0;
	if (rnd_below(3) > 0)
		return;
	c->unique = true;
	pipe_set_join(c, 0, 0);
	pipe_set_join(c, 1, 0);
}

static Cell
cell(int64_t value, uint32_t null_percent)
{
	Cell		c = {value, rnd_below(100) < null_percent};

	return c;
}

static Cell
input(int64_t value, uint32_t null_percent)
{
	return cell(value, pipe_has_nulls ? null_percent : 0);
}

static void
make_inputs(void)
{
	uint32_t	i;

	for (i = 0; i < NROWS; i++)
	{
		double		f = ((double) rnd_below(1000) - 500) / 4 + 0.125;

		pipe_inputs[IN_A][i] = input((int64_t) rnd_below(NKEYS) - 100, 5);
		pipe_inputs[IN_A2][i] = input(rnd_below(3), 2);
		pipe_inputs[IN_B][i] = input((int64_t) rnd_below(NKEYS) * 3000000007, 3);
		pipe_inputs[IN_V][i] = input((int64_t) rnd_below(2000) - 1000, 10);
		pipe_inputs[IN_U][i] = input(rnd_below(2), 10);
		pipe_inputs[IN_F][i].null = false;
		memcpy(&pipe_inputs[IN_F][i].value, &f, sizeof(f));
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
		int64_t		key = c->unique ? 2 * i : rnd_below(NKEYS);

		b->words[0][i] = (uint64_t) (j == 0 ? key - 100 : key * 3000000007);
		b->words[1][i] = rnd_below(3);
		b->payload[i] = cell((int64_t) rnd_below(40) - 20, has_null_payload ? 10 : 0);
		if (c->pass[j] && c->single[j])
		{
			/* which candidate passes is free: let it not matter */
			b->payload[i].value = key % 40 - 20;
			b->payload[i].null = has_null_payload && key % 11 == 0;
		}
	}
	CHECK_STATUS(engine->table_create(&spec, &b->table, &err), HGJ_OK);
	CHECK_STATUS(engine->append(b->table, &keys, 0, NULL, &err), HGJ_OK);
	CHECK_STATUS(engine->build(b->table, NBUILD, &err), HGJ_OK);
}

/* Inputs and tables for the case. */
void
pipe_make(const Case *c)
{
	int			j;

	pipe_has_nulls = !c->no_nulls;
	has_null_payload = !c->no_null_payload;
	make_inputs();
	for (j = 0; j < 2; j++)
		make_build(&pipe_builds[j], c, j);
}

void
pipe_unmake(void)
{
	int			j;

	for (j = 0; j < 2; j++)
		engine->table_destroy(pipe_builds[j].table);
}

/* Step 2: payload > 0 or v >= 0 */
static bool
passes_behind(const Case *c, uint32_t row, const Cell *p)
{
	const Cell *v = &pipe_inputs[IN_V][row];

	return !c->behind || (!p->null && p->value > 0) || (!v->null && v->value >= 0);
}

typedef struct Walk
{
	const Case *c;
	RowEnd		end;
	uint32_t	row;			/* of the inputs */
	uint32_t	rows[2];		/* of the builds */
	Counted		counted;
} Walk;

static void join_row(Walk *w, int j);

/* Join j has found rows[j], or nothing. */
static void
go_on(Walk *w, int j, const Cell *p)
{
	if (j == 0 && !passes_behind(w->c, w->row, p))
	{
		w->counted.filtered++;
		return;
	}
	w->counted.joined[j]++;
	if (j == 0)
		join_row(w, 1);
	else
		w->end(w->c, w->row, w->rows);
}

static void
join_row(Walk *w, int j)
{
	static const Cell none = {0, true};
	const Case *c = w->c;
	const Build *b = &pipe_builds[j];
	const Cell *key = &pipe_inputs[j == 0 ? IN_A : IN_B][w->row];
	const Cell *second = &pipe_inputs[IN_A2][w->row];
	const Cell *v = &pipe_inputs[IN_V][w->row];
	bool		two = j == 0 && c->nwords == 2;
	bool		hit = false;
	uint32_t	i;

	for (i = 0; i < NBUILD && !(hit && c->single[j]); i++)
	{
		const Cell *p = &b->payload[i];

		if (key->null || (uint64_t) key->value != b->words[0][i])
			continue;
		if (two && (second->null || (uint64_t) second->value != b->words[1][i]))
			continue;
		if (j == 0 && c->residual && (v->null || p->null || v->value >= p->value * 50))
		{
			w->counted.removed++;
			continue;
		}
		hit = true;
		w->rows[j] = i;
		if (c->pass[j])
			go_on(w, j, p);
	}
	if (!hit && c->fill[j])
	{
		w->rows[j] = HGJ_PIPE_NO_ROW;
		go_on(w, j, &none);
	}
}

static bool
is_within(const Case *c, uint32_t row)
{
	const Cell *a = &pipe_inputs[IN_A][row];
	double		f;

	memcpy(&f, &pipe_inputs[IN_F][row].value, sizeof(f));
	switch (c->bounds)
	{
		case BOUNDS_RANGE:
			return !a->null && a->value >= -50 && a->value < 400;
		case BOUNDS_NOT:
			return !a->null && a->value != 7;
		case BOUNDS_FLOAT:
			return f > -20;
		default:
			return true;
	}
}

/* All rows of the inputs. */
Counted
pipe_reference(const Case *c, RowEnd end)
{
	Walk		w = {.c = c, .end = end};

	for (w.row = 0; w.row < NROWS; w.row++)
	{
		const Cell *u = &pipe_inputs[IN_U][w.row];

		if ((c->drop && (u->null || u->value == 0)) || !is_within(c, w.row))
			w.counted.dropped++;
		else
			join_row(&w, 0);
	}
	return w.counted;
}

/* One more value of the terms: its number. */
static uint16_t
add_value(int64_t value)
{
	pipe_terms.values[pipe_terms.nvalues] = value;
	return (uint16_t) pipe_terms.nvalues++;
}

/* Register 11 or 12 compared with a value: other rows are dropped. */
static uint32_t
write_bound(HgjPipeInstruction *code, uint32_t n, uint8_t reg, uint8_t kind,
			uint8_t comparison, int64_t bound)
{
	CODE(.op = HGJ_PIPE_VALUE, .dst = 11, .arg = add_value(bound));
	CODE(.op = HGJ_PIPE_COMPARE, .kind = kind, .dst = 12, .a = reg, .b = 11, .c = comparison);
	CODE(.op = HGJ_PIPE_FILTER, .a = 12, .arg = HGJ_PIPE_DROP);
	return n;
}

static uint32_t
write_bounds(const Case *c, HgjPipeInstruction *code, uint32_t n)
{
	double		f = -20;
	int64_t		word;

	memcpy(&word, &f, sizeof(word));
	switch (c->bounds)
	{
		case BOUNDS_RANGE:
			n = write_bound(code, n, IN_A, HGJ_KIND_I4, HGJ_GE, -50);
			return write_bound(code, n, IN_A, HGJ_KIND_I4, HGJ_LT, 400);
		case BOUNDS_NOT:
			return write_bound(code, n, IN_A, HGJ_KIND_I4, HGJ_NE, 7);
		case BOUNDS_FLOAT:
			return write_bound(code, n, IN_F, HGJ_KIND_F8, HGJ_GT, word);
		default:
			return n;
	}
}

/*
 * Registers 0 to 5 are the inputs, 6 and 8 payload, 9 and 10 computed, 11 and 12 those of
 * bounds.  Where something is computed behind the first join, inputs are read there, too: they are
 * those of the row, whichever of its candidates has passed.
 */
static uint32_t
write_code(const Case *c, HgjPipeInstruction *code)
{
	uint32_t	n = 0;
	uint8_t		i;

	for (i = 0; i < NINPUTS; i++)
	{
		if (i == IN_B && c->behind)
			continue;
		CODE(.op = HGJ_PIPE_INPUT, .dst = i, .arg = i);
		if (i == (c->bounds == BOUNDS_FLOAT ? IN_F : IN_A))
			n = write_bounds(c, code, n);
	}
	if (c->top > 0)
		CODE(.op = HGJ_PIPE_CONSTANT, .dst = c->top, .imm = 1);
	if (c->drop)
		CODE(.op = HGJ_PIPE_FILTER, .a = IN_U, .arg = HGJ_PIPE_DROP);
	CODE(.op = HGJ_PIPE_PROBE, .a = 0);
	if (c->residual)
	{
		CODE(.op = HGJ_PIPE_PAYLOAD, .dst = 6, .a = 0);
		CODE(.op = HGJ_PIPE_VALUE, .dst = 7, .arg = add_value(50));
		CODE(.op = HGJ_PIPE_ARITHMETIC, .kind = HGJ_KIND_I4, .dst = 6, .a = 6, .b = 7,
			 .c = HGJ_MUL);
		CODE(.op = HGJ_PIPE_COMPARE, .kind = HGJ_KIND_I8, .dst = 7, .a = IN_V, .b = 6,
			 .c = HGJ_LT);
		CODE(.op = HGJ_PIPE_FILTER, .a = 7, .arg = 1);
	}
	CODE(.op = HGJ_PIPE_MATCH, .a = 0);
	CODE(.op = HGJ_PIPE_PAYLOAD, .dst = 6, .a = 0);
	if (c->behind)
	{
		CODE(.op = HGJ_PIPE_CONSTANT, .dst = 9, .imm = 0);
		CODE(.op = HGJ_PIPE_COMPARE, .kind = HGJ_KIND_I8, .dst = 10, .a = 6, .b = 9,
			 .c = HGJ_GT);
		CODE(.op = HGJ_PIPE_COMPARE, .kind = HGJ_KIND_I8, .dst = 9, .a = IN_V, .b = 9,
			 .c = HGJ_GE);
		CODE(.op = HGJ_PIPE_OR, .dst = 9, .a = 9, .b = 10);
		CODE(.op = HGJ_PIPE_FILTER, .a = 9, .arg = HGJ_PIPE_JOINS + 1);
	}
	if (c->behind)
		CODE(.op = HGJ_PIPE_INPUT, .dst = IN_B, .arg = IN_B);
	CODE(.op = HGJ_PIPE_PROBE, .a = 1);
	CODE(.op = HGJ_PIPE_MATCH, .a = 1);
	if (c->behind)
		CODE(.op = HGJ_PIPE_INPUT, .dst = 11, .arg = IN_V);
	CODE(.op = HGJ_PIPE_PAYLOAD, .dst = 8, .a = 1);
	CODE(.op = HGJ_PIPE_CONSTANT, .dst = 10, .imm = 3000000000);
	CODE(.op = HGJ_PIPE_ARITHMETIC, .kind = HGJ_KIND_I8, .dst = 9, .a = c->behind ? 11 : IN_V,
		 .b = 10, .c = HGJ_MUL);
	CODE(.op = HGJ_PIPE_ARITHMETIC, .kind = HGJ_KIND_I8, .dst = 9, .a = 9, .b = 8,
		 .c = HGJ_ADD);
	for (i = 0; i < NCOPIES && c->many; i++)
		CODE(.op = HGJ_PIPE_MOVE, .dst = COPIES + i, .a = IN_V);
	CODE(.op = HGJ_PIPE_END);
	return n;
}

/* What goes with it. */
HgjPipelineCaller
pipe_caller(void)
{
	return (HgjPipelineCaller) {.terms = &pipe_terms,
		.tables = {pipe_builds[0].table, pipe_builds[1].table}};
}

/* All of the spec but what becomes of the rows. */
HgjPipelineSpec
pipe_spec(const Case *c)
{
	HgjPipelineSpec spec;
	uint32_t	j;

	memset(&spec, 0, sizeof(spec));
	memset(&pipe_terms, 0, sizeof(pipe_terms));
	spec.ninputs = NINPUTS;
	memcpy(spec.inputs, input_kinds, sizeof(input_kinds));
	spec.njoins = 2;
	for (j = 0; j < 2; j++)
	{
		HgjPipeJoin *join = &spec.joins[j];

		join->pass = c->pass[j];
		join->fill = c->fill[j];
		join->single = c->single[j];
		join->nkeys = j == 0 ? c->nwords : 1;
		join->keys[0] = j == 0 ? IN_A : IN_B;
		join->keys[1] = IN_A2;
		join->ncolumns = 1;
		join->kinds[0] = j == 0 ? HGJ_KIND_I4 : HGJ_KIND_I2;
	}
	spec.ncode = write_code(c, spec.code);
	return spec;
}

static void
put(void *values, uint8_t kind, uint32_t i, int64_t value)
{
	switch (kind)
	{
		case HGJ_KIND_U1:
			((uint8_t *) values)[i] = (uint8_t) value;
			break;
		case HGJ_KIND_I2:
			((int16_t *) values)[i] = (int16_t) value;
			break;
		case HGJ_KIND_I4:
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

void
pipe_send_payload(HgjPipeline *p, const HgjPipelineSpec *spec)
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

			put_cells(pipe_builds[j].payload + first, spec->joins[j].kinds[0], n, values,
					  validity);
			CHECK_STATUS(engine->pipeline->payload(p, j, 0, first, n, values,
												   has_null_payload ? validity : NULL, &err), HGJ_OK);
		}
	}
	free(values);
}

/* Stage and push up to *n rows of the inputs; *n is then how many they were. */
HgjStatus
pipe_push(HgjPipeline *p, uint32_t first, uint32_t *n, HgjError *err)
{
	HgjPipeStage stage;
	HgjPipelineInfo info;
	HgjStatus	status = engine->pipeline->stage(p, &stage, err);
	int			i;

	if (status != HGJ_OK)
		return status;
	engine->pipeline->info(p, &info);
	CHECK(info.stage_rows == stage.capacity, "%u rows, not %u", stage.capacity, info.stage_rows);
	*n = *n > NROWS - first ? NROWS - first : *n;
	*n = *n > stage.capacity ? stage.capacity : *n;
	for (i = 0; i < NINPUTS; i++)
		put_cells(pipe_inputs[i] + first, input_kinds[i], *n, stage.values[i],
				  stage.validity[i]);
	return engine->pipeline->push(p, *n, pipe_has_nulls ? (1 << NINPUTS) - 1 - (1 << IN_F) : 0,
								  err);
}

/*
 * All rows, in batches of any size, of which so many percent are kept, unless the
 * engine wants them staged; the first status that is not OK.
 */
HgjStatus
pipe_push_all(HgjPipeline *p, uint32_t percent, uint64_t *kept, HgjError *err)
{
	uint32_t	done = 0;

	*kept = 0;
	while (done < NROWS)
	{
		uint32_t	n = 1 + rnd_below(6000);
		HgjStatus	status = rnd_below(100) < percent ?
			pipe_push_kept(p, done, &n, err) : HGJ_UNSUPPORTED;

		if (status == HGJ_OK)
			*kept += n;
		if (status == HGJ_UNSUPPORTED)
			status = pipe_push(p, done, &n, err);
		if (status != HGJ_OK)
			return status;
		done += n;
	}
	return HGJ_OK;
}

/* Poll, with a PipeCancel. */
int
pipe_cancel(void *arg)
{
	PipeCancel *c = arg;

	if (c->every == 0 || ++c->calls % c->every != 0)
		return 0;
	c->cancelled++;
	return 1;
}

/* The next rows, however often poll says no. */
HgjStatus
pipe_fetch(HgjPipeline *p, HgjPipeRows *rows, HgjError *err)
{
	HgjStatus	status;

	do
		status = engine->pipeline->fetch(p, rows, err);
	while (status == HGJ_CANCELLED);
	return status;
}
