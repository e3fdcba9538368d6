/*-------------------------------------------------------------------------
 *
 * fuzz_data.c
 *	  Random numbers, and the rows of the fuzzer's plans.
 *
 * 1. Each plan has random numbers of its own, from the seed and the plan's number, so that it
 *	  can be made again alone.
 * 2. Columns have few values or many, near zero or at the limits of their kind, with or without
 *	  NULLs.  Floats are multiples of 1/8 that are not 0, so that sums do not depend on their order,
 *	  unless there are special ones among them, of which sums fail or are as exact.
 * 3. Rows come in pushes of sizes around those at which engines change their ways.  Some pushes
 *	  are of kept rows (pipeline.h, KEPT ROWS): their pieces have arrays in one memory, whose
 *	  numbers are never used again, though the memory is, by the next plan.
 *
 * Memory: static.  No locks: one thread.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "fuzz.h"

#define MEMORY_WORDS	(1024 * 1024)

static uint64_t memory[MEMORY_WORDS];
static uint64_t used;			/* words */
static uint64_t last_id;

/* ---- step 1 ------------------------------------------------------------------ */

void
fuzz_seed(uint64_t seed, uint64_t number)
{
	rnd_start(mix(mix(seed) + number));
}

bool
fuzz_percent(uint32_t percent)
{
	return rnd_below(100) < percent;
}

/* ---- step 2 ------------------------------------------------------------------ */

int64_t
fuzz_least(uint32_t kind)
{
	return kind == HGJ_KIND_I2 ? INT16_MIN : kind == HGJ_KIND_I4 ? INT32_MIN :
		kind == HGJ_KIND_I8 ? INT64_MIN : 0;
}

int64_t
fuzz_most(uint32_t kind)
{
	return kind == HGJ_KIND_U1 ? UINT8_MAX : kind == HGJ_KIND_I2 ? INT16_MAX :
		kind == HGJ_KIND_I4 ? INT32_MAX : kind == HGJ_KIND_U4 ? UINT32_MAX : INT64_MAX;
}

/* How a column's values are made of random words. */
typedef struct Shape
{
	uint32_t	span;			/* number of values */
	int64_t		low;			/* the least one */
	int64_t		step;			/* from one value to the next */
	bool		wide;			/* any value of the kind instead */
	bool		special;		/* with special floats */
} Shape;

static Shape
make_shape(uint8_t kind, bool special)
{
	static const uint32_t spans[] = {1, 2, 10, 40, 200, 700, 5000};
	Shape		shape = {.span = spans[rnd_below(7)], .step = 1, .special = special};

	if (kind == HGJ_KIND_U1)
		shape.span = fuzz_percent(60) ? 2 : 1 + rnd_below(256);
	else if (kind == HGJ_KIND_I8 && fuzz_percent(30))
		shape.step = 3000000007;
	else if ((kind == HGJ_KIND_I4 || kind == HGJ_KIND_U4) && fuzz_percent(20))
		shape.step = 1000;
	if (kind != HGJ_KIND_U1 && kind != HGJ_KIND_U4 && fuzz_percent(60))
		shape.low = -(int64_t) (shape.span / 2) * shape.step;
	if (kind == HGJ_KIND_I2 && fuzz_percent(30))
		shape.low = INT16_MAX + 1 - (int64_t) shape.span;
	shape.wide = fuzz_percent(15);
	return shape;
}

static uint64_t
make_float(uint8_t kind, const Shape *shape, uint64_t random)
{
	static const double specials[] = {0.0, -0.0, NAN, INFINITY, -INFINITY, 1e200};
	double		value = ((double) (random % 1000 % shape->span) - (double) (shape->span / 2)) / 4 +
		0.125;

	if (shape->special && (random >> 32) % 50 == 0)
		value = specials[(random >> 48) % 6];
	return kind == HGJ_KIND_F4 ? hgj_float4_word((float) value) : hgj_float8_word(value);
}

static uint64_t
make_word(uint8_t kind, const Shape *shape, uint64_t random)
{
	static const int64_t near[] = {0, 1, -1, 2};

	if (kind == HGJ_KIND_F4 || kind == HGJ_KIND_F8)
		return make_float(kind, shape, random);
	if (!shape->wide)
		return (uint64_t) (shape->low + (int64_t) (random % shape->span) * shape->step);
	switch (random >> 60)
	{
		case 0:
			return (uint64_t) (fuzz_least(kind) + (int64_t) (random % 3));
		case 1:
			return (uint64_t) (fuzz_most(kind) - (int64_t) (random % 3));
		case 2:
			return fuzz_least(kind) < 0 ? (uint64_t) near[random % 4] : random % 4;
		default:
			if (kind == HGJ_KIND_I8)
				return random << 4;
			return (uint64_t) (fuzz_least(kind) +
							   (int64_t) (random % (uint64_t) (fuzz_most(kind) - fuzz_least(kind))));
	}
}

static void
see_range(FuzzColumn *column)
{
	column->low = INT64_MAX;
	column->high = INT64_MIN;
	for (uint32_t i = 0; i < column->n; i++)
	{
		int64_t		value = (int64_t) column->words[i];

		if (column->nulls[i])
			continue;
		column->low = value < column->low ? value : column->low;
		column->high = value > column->high ? value : column->high;
	}
	column->hollow = column->low > column->high;
	if (column->hollow)
		column->low = column->high = 0;
}

static uint32_t
null_percent(void)
{
	static const uint8_t percents[] = {0, 0, 0, 3, 10, 10, 30};

	return fuzz_percent(2) ? 100 : percents[rnd_below(7)];
}

void
fuzz_make_column(FuzzColumn *column, uint8_t kind, uint32_t n, bool special)
{
	Shape		shape = make_shape(kind, special);
	uint32_t	percent = null_percent();

	column->kind = kind;
	column->n = n;
	column->nullable = percent > 0 || fuzz_percent(10);
	column->special = special;
	for (uint32_t i = 0; i < n; i++)
	{
		column->nulls[i] = fuzz_percent(percent);
		column->words[i] = make_word(kind, &shape, rnd());
	}
	see_range(column);
}

/* The same, of a table's rows: those that have the same key have the same values. */
void
fuzz_make_by_key(FuzzColumn *column, const FuzzTable *table, uint32_t nwords)
{
	Shape		shape = make_shape(column->kind, column->special);
	uint32_t	percent = null_percent();
	uint64_t	salt = rnd();

	column->nullable = percent > 0 || fuzz_percent(10);
	for (uint32_t i = 0; i < column->n; i++)
	{
		uint64_t	random = salt;

		for (uint32_t w = 0; w < nwords; w++)
			random = mix(random + table->words[w][i] * 3);
		column->nulls[i] = mix(random) % 100 < percent;
		column->words[i] = make_word(column->kind, &shape, random);
	}
	see_range(column);
}

/* ---- step 3 ------------------------------------------------------------------ */

static uint8_t
some_kind(void)
{
	static const uint8_t kinds[] = {
		HGJ_KIND_U1, HGJ_KIND_I2, HGJ_KIND_I4, HGJ_KIND_I4, HGJ_KIND_I8, HGJ_KIND_I8,
		HGJ_KIND_U4, HGJ_KIND_F4, HGJ_KIND_F8, HGJ_KIND_F8
	};

	return kinds[rnd_below(10)];
}

void
fuzz_make_rows(FuzzPlan *plan)
{
	static const uint16_t sizes[] = {0, 1, 63, 64, 65, 2047, 2048, 2049, 5000};
	uint32_t	npushes = fuzz_percent(5) ? 1 : 2 + rnd_below(FUZZ_PUSHES - 1);

	plan->nrows = 0;
	plan->npushes = 0;
	while (plan->npushes < npushes)
	{
		FuzzPush   *push = &plan->pushes[plan->npushes++];

		push->n = fuzz_percent(80) ? sizes[rnd_below(9)] : rnd_below(3000);
		if (plan->nrows + push->n > FUZZ_ROWS)
			push->n = FUZZ_ROWS - plan->nrows;
		push->first = plan->nrows;
		push->way = fuzz_percent(50) ? FUZZ_STAGED : (FuzzWay) rnd_below(FUZZ_WAYS);
		/* whether there is something to fetch after kept rows that are none is not said */
		if (push->n == 0 && plan->spec.rows)
			push->way = FUZZ_STAGED;
		plan->nrows += push->n;
	}
	plan->spec.ninputs = 2 + rnd_below(FUZZ_INPUTS - 1);
	for (uint32_t i = 0; i < plan->spec.ninputs; i++)
	{
		plan->spec.inputs[i] = some_kind();
		fuzz_make_column(&plan->inputs[i], plan->spec.inputs[i], plan->nrows,
						 plan->risky && fuzz_percent(30));
	}
	fuzz_keep_rows(plan);
}

static HgjKeptArray
new_array(uint64_t bytes)
{
	HgjKeptArray array = {++last_id, used * 8, bytes};

	used += (bytes + 7) / 8;
	if (used > MEMORY_WORDS)
	{
		printf("the fuzzer's memory for kept rows is too small\n");
		exit(2);
	}
	memset((char *) memory + array.at, 0x5A, bytes);
	return array;
}

/* Numbers of three bytes are two arrays in one. */
static void
put_number(const HgjKeptInput *input, uint32_t i, uint64_t number)
{
	char	   *numbers = (char *) memory + input->numbers.at;
	uint32_t	width = input->width == 3 ? 2 : input->width;

	memcpy(numbers + (size_t) i * width, &number, width);
	if (input->width == 3)
		numbers[hgj_kept_high(&input->numbers) + i] = (char) (number >> 16);
}

/* The value's place in the table, which gets it; FUZZ_DICT: it is full. */
static uint32_t
look_up(FuzzPush *push, const HgjKeptInput *input, uint64_t word)
{
	uint64_t   *table = push->words + input->table;
	uint32_t	at = 0;

	while (at < FUZZ_DICT && (table[FUZZ_DICT + at / 64] >> (at % 64) & 1) && table[at] != word)
		at++;
	if (at == FUZZ_DICT)
		return at;
	table[at] = word;
	table[FUZZ_DICT + at / 64] |= UINT64_C(1) << (at % 64);
	return at;
}

/* A table for the rows of a piece; false: they have too many values. */
static bool
keep_table(FuzzPush *push, HgjKeptInput *input, const FuzzColumn *column, uint32_t first,
		   uint32_t n)
{
	input->table = push->nwords;
	memset(push->words + input->table, 0, HGJ_KEPT_TABLE(FUZZ_DICT) * sizeof(uint64_t));
	for (uint32_t i = 0; i < n; i++)
		if (!column->nulls[first + i] &&
			look_up(push, input, column->words[first + i]) + 2 >= FUZZ_DICT)
			return false;
	push->nwords += HGJ_KEPT_TABLE(FUZZ_DICT);
	input->ntable = FUZZ_DICT;
	input->width = 1;
	return true;
}

static uint32_t
some_width(uint64_t most)
{
	static const uint8_t widths[] = {1, 2, 3, 4, 8};
	uint32_t	i = 0;

	while (i < 4 && (most >> (8 * widths[i]) > 0 || fuzz_percent(20)))
		i++;
	return widths[i];
}

/* The rows of a piece, of one input. */
static void
keep_input(FuzzPush *push, HgjKeptInput *input, const FuzzColumn *column, uint32_t first,
		   uint32_t n)
{
	int64_t		low = INT64_MAX;
	int64_t		high = INT64_MIN;

	memset(input, 0, sizeof(*input));
	input->first = rnd_below(150);
	for (uint32_t i = first; i < first + n; i++)
	{
		int64_t		value = (int64_t) column->words[i];

		low = !column->nulls[i] && value < low ? value : low;
		high = !column->nulls[i] && value > high ? value : high;
	}
	if (low > high)
		low = high = 0;
	if (rnd_below(4) > 0 || !keep_table(push, input, column, first, n))
	{
		input->base = (uint64_t) low;
		input->width = some_width((uint64_t) high - (uint64_t) low);
	}
	input->numbers = new_array(((uint64_t) input->first + n + 7) / 8 * 8 * input->width);
	if (column->nullable)
		input->validity = new_array(((uint64_t) input->first + n + 63) / 64 * 8);
	for (uint32_t i = 0; i < n; i++)
	{
		bool		null = column->nulls[first + i];
		uint64_t	word = column->words[first + i];
		uint64_t   *bits = memory + input->validity.at / 8 + (input->first + i) / 64;
		uint64_t	bit = UINT64_C(1) << ((input->first + i) % 64);

		if (column->nullable)
			*bits = null ? *bits & ~bit : *bits | bit;
		if (input->ntable > 0)
			put_number(input, input->first + i,
					   null ? FUZZ_DICT - 1 : look_up(push, input, word));
		else
			put_number(input, input->first + i, null ? 0 : word - input->base);
	}
}

/* Memory for the pushes of kept rows. */
void
fuzz_keep_rows(FuzzPlan *plan)
{
	used = 0;
	for (uint32_t p = 0; p < plan->npushes; p++)
	{
		FuzzPush   *push = &plan->pushes[p];
		uint32_t	done = 0;

		push->npieces = 0;
		push->nwords = 0;
		while (push->way == FUZZ_KEPT && push->npieces < FUZZ_PIECES && done < push->n)
		{
			uint32_t	left = push->n - done;
			uint32_t	n = push->npieces + 1 == FUZZ_PIECES ? left : 1 + rnd_below(left);

			push->nrows[push->npieces] = n;
			for (uint32_t i = 0; i < plan->spec.ninputs; i++)
				keep_input(push, &push->inputs[push->npieces * plan->spec.ninputs + i],
						   &plan->inputs[i], push->first + done, n);
			push->npieces++;
			done += n;
		}
	}
}

const HgjKeptMemory *
fuzz_kept_memory(void)
{
	static const HgjKeptMemory kept = {.memory = memory, .bytes = sizeof(memory),
	.most = 4 << 20, .stay = true};

	return &kept;
}
