/*-------------------------------------------------------------------------
 *
 * fake_rows.c
 *	  An interpreter of a pipeline's instructions (engine/pipeline.h), one row
 *	  after the other.
 *
 * 1. The rows of a stage are gone through in an order of our own.
 * 2. PROBE hands a row's key words to a probe of the CPU engine, a batch of one
 *	  row.  Its candidates are fetched a few at a time, as they are needed; joins
 *	  that have been probed before wait, each with a probe of its own.  Back to
 *	  the last of them that has a candidate left, or owes a row of NULLs.
 * 3. A register has a value from the instruction that sets it until the row goes
 *	  back to a candidate of a join that was probed before that: reading it
 *	  otherwise makes the pipeline invalid.
 * 4. What ends goes into its group, to the table that is filled (fake_fill.c), or into
 *	  the portion at hand.  When that is
 *	  full, or poll says stop, the interpreter stops between two instructions, and
 *	  goes on there in the next call.
 *
 * All memory is the pipeline's, but for the groups' rows, which grow here.
 *
 *-------------------------------------------------------------------------
 */
#include "fake.h"

#define POLL_STEPS		4096
#define ORDER_STEP		7919	/* a prime */

/* SUM_LOW overflows beyond. */
#define MOST_SUMMED		(UINT64_C(1) << 32)

static HgjStatus
unset(HgjError *err)
{
	return fake_fail(err, HGJ_INVALID, "a register is read that has no value");
}

/* Step 3: false if it has none. */
static bool
get(const FakeCursor *c, uint8_t reg, FakeValue *value)
{
	uint64_t	known = 0;

	for (int l = 0; l <= HGJ_PIPE_JOINS; l++)
		known |= c->set[l];
	value->word = c->regs[reg];
	value->null = c->nulls >> reg & 1;
	return known >> reg & 1;
}

static void
set(FakeCursor *c, uint8_t reg, FakeValue value)
{
	uint64_t	bit = UINT64_C(1) << reg;

	c->regs[reg] = value.word;
	c->nulls = value.null ? c->nulls | bit : c->nulls & ~bit;
	for (int l = 0; l <= HGJ_PIPE_JOINS; l++)
		c->set[l] &= ~bit;
	c->set[c->open] |= bit;
}

/* Step 3: registers set since join j was probed have no value any more. */
static void
forget(FakeCursor *c, uint32_t j)
{
	for (uint32_t l = j + 1; l <= HGJ_PIPE_JOINS; l++)
		c->set[l] = 0;
}

/* Step 1. */
static void
begin_row(FakeCursor *c, const FakeStage *stage)
{
	uint64_t	step = stage->n % ORDER_STEP == 0 ? 1 : ORDER_STEP;

	c->row = (uint32_t) ((c->begun++ * step + stage->n / 3) % stage->n);
	c->in_row = true;
	c->seek = false;
	c->pc = 0;
	c->open = 0;
	memset(c->set, 0, sizeof(c->set));
	memset(c->regs, 0xA5, sizeof(c->regs));
}

/* Step 2: more candidates of join j; *none: there are no more. */
static HgjStatus
fetch_candidates(HgjPipeline *p, uint32_t j, bool *none, HgjError *err)
{
	FakeJoin   *join = &p->joins[j];
	HgjKeys		keys = {.nrows = 1, .words = join->word_columns};
	HgjMatches	matches = {.probe_rows = join->ignored, .build_rows = join->rows,
	.capacity = FAKE_CANDIDATES};
	HgjStatus	status = HGJ_OK;

	while (join->at == join->nrows && !join->done)
	{
		if (!join->begun)
			status = hgj_cpu_engine()->probe_begin(join->probe, &keys, HGJ_MATCH_ALL, 0, err);
		if (status != HGJ_OK)
			return status;
		join->begun = true;
		status = hgj_cpu_engine()->probe_next(join->probe, &matches, err);
		if (status != HGJ_OK)
			return status;
		join->at = 0;
		join->nrows = matches.n;
		join->done = matches.done;
	}
	*none = join->at == join->nrows;
	return HGJ_OK;
}

static HgjStatus
probe(HgjPipeline *p, uint32_t j, HgjError *err)
{
	FakeCursor *c = &p->cursor;
	FakeJoin   *join = &p->joins[j];

	c->open = j + 1;
	c->seek = true;
	join->hit = false;
	join->begun = join->done = false;
	join->at = join->nrows = 0;
	for (uint32_t k = 0; k < p->spec.joins[j].nkeys; k++)
	{
		FakeValue	key;

		if (!get(c, p->spec.joins[j].keys[k], &key))
			return unset(err);
		join->words[k] = key.word;
		join->done |= key.null;
	}
	return HGJ_OK;
}

/* Step 2: set where to go on; the row is through where there is nothing left. */
static HgjStatus
seek(HgjPipeline *p, HgjError *err)
{
	FakeCursor *c = &p->cursor;

	while (c->open > 0)
	{
		uint32_t	j = c->open - 1;
		FakeJoin   *join = &p->joins[j];
		bool		none;
		HgjStatus	status = fetch_candidates(p, j, &none, err);

		if (status != HGJ_OK)
			return status;
		forget(c, j);
		if (!none)
		{
			join->row = join->rows[join->at++];
			c->pc = join->after_probe;
			break;
		}
		if (p->spec.joins[j].fill && !join->hit)
		{
			join->hit = true;
			join->row = HGJ_PIPE_NO_ROW;
			p->counting.joined[j]++;
			c->pc = join->after_match;
			break;
		}
		c->open--;
	}
	c->in_row = c->open > 0;
	c->seek = false;
	return HGJ_OK;
}

static void
match(HgjPipeline *p, uint32_t j)
{
	FakeJoin   *join = &p->joins[j];

	join->hit = true;
	if (p->spec.joins[j].single)
	{
		join->at = join->nrows;
		join->done = true;
	}
	if (p->spec.joins[j].pass)
		p->counting.joined[j]++;
	else
		p->cursor.seek = true;
}

static void
filter(HgjPipeline *p, uint32_t arg)
{
	if (arg == HGJ_PIPE_DROP)
		p->counting.dropped++;
	else if (arg > HGJ_PIPE_JOINS)
	{
		p->counting.filtered[arg - 1 - HGJ_PIPE_JOINS]++;
		p->counting.joined[arg - 1 - HGJ_PIPE_JOINS]--;
	}
	else if (arg > 0)
		p->counting.removed[arg - 1]++;
	p->cursor.seek = true;
}

/* Place for a group in the hash table; it may be taken by the group itself. */
static uint64_t
find_slot(const HgjPipeline *p, const uint64_t *key)
{
	const FakeGroups *g = &p->groups;
	uint32_t	nkeys = p->spec.nkeys;
	uint64_t	width = 1 + nkeys + p->spec.nwords;
	uint64_t	hash = 0;

	for (uint32_t k = 0; k <= nkeys; k++)
	{
		hash = (hash ^ key[k]) * UINT64_C(0x9E3779B97F4A7C15);
		hash ^= hash >> 29;
	}
	for (;; hash++)
	{
		uint32_t	number = g->slots[hash & (g->nslots - 1)];

		if (number == 0 || memcmp(g->rows + (number - 1) * width, key,
								  (1 + nkeys) * sizeof(uint64_t)) == 0)
			return hash & (g->nslots - 1);
	}
}

/* Room for twice as many groups. */
static bool
grow_groups(HgjPipeline *p)
{
	FakeGroups *g = &p->groups;
	uint64_t	width = 1 + p->spec.nkeys + p->spec.nwords;
	uint64_t	room = g->room == 0 ? 1024 : g->room * 2;
	uint64_t   *rows = realloc(g->rows, room * width * sizeof(uint64_t));
	uint32_t   *slots = calloc(room * 2, sizeof(uint32_t));

	if (rows != NULL)
		g->rows = rows;
	if (rows == NULL || slots == NULL)
	{
		free(slots);
		return false;
	}
	free(g->slots);
	g->slots = slots;
	g->nslots = room * 2;
	g->room = room;
	for (uint64_t i = 0; i < g->n; i++)
		g->slots[find_slot(p, g->rows + i * width)] = (uint32_t) (i + 1);
	return true;
}

/* The group of a key (NULL bits, then the words), made if it is new. */
HgjStatus
fake_add_group(HgjPipeline *p, const uint64_t *key, uint64_t **row, HgjError *err)
{
	FakeGroups *g = &p->groups;
	uint64_t	width = 1 + p->spec.nkeys + p->spec.nwords;
	uint64_t	slot;

	if (g->n == g->room && !grow_groups(p))
		return fake_fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	slot = find_slot(p, key);
	if (g->slots[slot] != 0)
	{
		*row = g->rows + (g->slots[slot] - 1) * width;
		return HGJ_OK;
	}
	if (g->n == g->most)
		return fake_fail(err, HGJ_LIMIT, "there is no room for the groups");
	*row = g->rows + g->n * width;
	memcpy(*row, key, (1 + p->spec.nkeys) * sizeof(uint64_t));
	for (uint32_t w = 0; w < p->spec.nwords; w++)
		(*row)[1 + p->spec.nkeys + w] = fake_state_identity(p->spec.words[w].state);
	g->slots[slot] = (uint32_t) ++g->n;
	return HGJ_OK;
}

static HgjStatus
find_group(HgjPipeline *p, uint64_t **row, HgjError *err)
{
	const FakeGroups *g = &p->groups;
	uint64_t	key[1 + HGJ_PIPE_KEYS] = {0};

	for (uint32_t k = 0; k < p->spec.nkeys; k++)
	{
		FakeValue	value;

		if (!get(&p->cursor, p->spec.keys[k], &value))
			return unset(err);
		if (value.null)
			key[0] |= UINT64_C(1) << k;
		else
			key[1 + k] = value.word;
		if (g->dense && !value.null && ((int64_t) value.word < g->ranges[k].low ||
										(int64_t) value.word > g->ranges[k].high))
			return fake_fail(err, HGJ_LIMIT, "a group key is out of its range");
	}
	return fake_add_group(p, key, row, err);
}

/* A row into its group. */
static HgjStatus
end_in_group(HgjPipeline *p, HgjError *err)
{
	uint64_t   *row = NULL;
	HgjStatus	status = find_group(p, &row, err);

	for (uint32_t w = 0; w < p->spec.nwords && status == HGJ_OK; w++)
	{
		const HgjPipeWord *word = &p->spec.words[w];
		FakeValue	value = {0, false};

		if (word->filter != HGJ_PIPE_NONE)
		{
			if (!get(&p->cursor, word->filter, &value))
				return unset(err);
			if (value.null || value.word == 0)
				continue;
		}
		value.null = false;
		if (word->reg != HGJ_PIPE_NONE && !get(&p->cursor, word->reg, &value))
			return unset(err);
		if (value.null)
			continue;
		if (!fake_state_add(word->state, row + 1 + p->spec.nkeys + w, value.word) ||
			(word->state == HGJ_PIPE_SUM_LOW && p->ended > MOST_SUMMED))
			return fake_fail(err, HGJ_ROW_FAILED, "a value is for the host");
	}
	return status;
}

/* A row of the table that is filled. */
static HgjStatus
end_in_table(HgjPipeline *p, HgjError *err)
{
	FakeValue	values[HGJ_PIPE_KEYS + HGJ_PIPE_COLUMNS];
	uint32_t	nkeys = p->spec.nkeys;

	for (uint32_t i = 0; i < nkeys + p->spec.ncolumns; i++)
		if (!get(&p->cursor, i < nkeys ? p->spec.keys[i] : p->spec.columns[i - nkeys],
				 &values[i]))
			return unset(err);
	return fake_fill_row(p, values, err);
}

static HgjStatus
end_row(HgjPipeline *p, HgjError *err)
{
	p->ended++;
	p->cursor.seek = true;
	if (p->spec.fills)
		return end_in_table(p, err);
	if (!p->spec.rows)
		return end_in_group(p, err);
	p->input[p->nout] = p->cursor.row;
	for (uint32_t j = 0; j < p->spec.njoins; j++)
		p->out[j][p->nout] = p->joins[j].row;
	p->nout++;
	return HGJ_OK;
}

/* The value of a column. */
static FakeValue
load(const HgjPipeline *p, const FakeStage *stage, const HgjPipeInstruction *in)
{
	FakeValue	value = {0, false};
	uint32_t	at = p->cursor.row;

	if (in->op == HGJ_PIPE_INPUT)
	{
		value.null = (stage->nulls >> in->arg & 1) &&
			!(stage->validity[in->arg][at / 64] >> (at % 64) & 1);
		value.word = fake_load(p->spec.inputs[in->arg], stage->values[in->arg], at);
	}
	else
	{
		const FakeColumn *column = &p->joins[in->a].columns[in->arg];

		at = p->joins[in->a].row;
		value.null = at == HGJ_PIPE_NO_ROW ||
			(column->validity != NULL && !(column->validity[at / 64] >> (at % 64) & 1));
		if (!value.null)
			value.word = fake_load(p->spec.joins[in->a].kinds[in->arg], column->values, at);
	}
	return value;
}

/* Which operands does it read? */
static bool
reads_a(uint32_t op)
{
	return (op >= HGJ_PIPE_MOVE && op <= HGJ_PIPE_FILTER) && op != HGJ_PIPE_JUMP;
}

static bool
reads_b(const HgjPipeInstruction *in)
{
	return in->op == HGJ_PIPE_COMPARE || in->op == HGJ_PIPE_DISTINCT ||
		in->op == HGJ_PIPE_AND || in->op == HGJ_PIPE_OR ||
		(in->op == HGJ_PIPE_ARITHMETIC && in->c < HGJ_NEG);
}

static HgjStatus
step(HgjPipeline *p, const FakeStage *stage, HgjError *err)
{
	FakeCursor *c = &p->cursor;
	const HgjPipeInstruction *in = &p->spec.code[c->pc++];
	FakeValue	a = {0, false};
	FakeValue	b = {0, false};
	FakeValue	r;
	bool		is_true;

	if ((reads_a(in->op) && !get(c, in->a, &a)) || (reads_b(in) && !get(c, in->b, &b)))
		return unset(err);
	is_true = !a.null && a.word != 0;
	switch (in->op)
	{
		case HGJ_PIPE_END:
			return end_row(p, err);
		case HGJ_PIPE_JUMP:
			c->pc = in->arg;
			break;
		case HGJ_PIPE_JUMP_UNLESS:
			c->pc = is_true ? c->pc : in->arg;
			break;
		case HGJ_PIPE_JUMP_FALSE:
			c->pc = is_true || a.null ? c->pc : in->arg;
			break;
		case HGJ_PIPE_JUMP_TRUE:
			c->pc = is_true ? in->arg : c->pc;
			break;
		case HGJ_PIPE_JUMP_VALID:
			c->pc = a.null ? c->pc : in->arg;
			break;
		case HGJ_PIPE_FILTER:
			if (!is_true)
				filter(p, in->arg);
			break;
		case HGJ_PIPE_PROBE:
			return probe(p, in->a, err);
		case HGJ_PIPE_MATCH:
			match(p, in->a);
			break;
		case HGJ_PIPE_INPUT:
		case HGJ_PIPE_PAYLOAD:
			set(c, in->dst, load(p, stage, in));
			break;
		default:
			if (!fake_compute(in, a, b, &r))
				return fake_fail(err, HGJ_ROW_FAILED, "a row raises an error");
			set(c, in->dst, r);
			break;
	}
	return HGJ_OK;
}

/* Poll every so many steps. */
static HgjStatus
look_up(HgjPipeline *p, HgjError *err)
{
	if (++p->cursor.steps % POLL_STEPS == 0 && p->waits.poll != NULL &&
		p->waits.poll(p->waits.poll_arg) != 0)
		return fake_fail(err, HGJ_CANCELLED, "cancelled");
	return HGJ_OK;
}

/*
 * Rows of a stage, until all are through (its n is 0 then), or, where rows are
 * returned, the portion at hand is full.
 */
HgjStatus
fake_run(HgjPipeline *p, FakeStage *stage, HgjError *err)
{
	FakeCursor *c = &p->cursor;
	HgjStatus	status = HGJ_OK;

	for (uint32_t j = 0; j < p->spec.njoins; j++)
		p->joins[j].table->quiet = true;
	while (status == HGJ_OK && stage->n > 0 && !(p->spec.rows && p->nout == p->wanted))
	{
		status = look_up(p, err);
		if (status != HGJ_OK)
			break;
		if (c->in_row)
			status = c->seek ? seek(p, err) : step(p, stage, err);
		else if (c->begun < stage->n)
			begin_row(c, stage);
		else
			stage->n = c->begun = 0;
	}
	for (uint32_t j = 0; j < p->spec.njoins; j++)
		p->joins[j].table->quiet = false;
	return status;
}
