/*-------------------------------------------------------------------------
 *
 * lazy.c
 *	  Registers whose values nobody has asked for yet: most columns are needed of the few rows
 *	  that are left behind filters and joins, and a filter can be tested on a column as it is
 *	  kept, in bytes rather than words.
 *
 * 1. INPUT and CONSTANT only note what the register is.  So does a comparison of an input with
 *	  a constant, which is a range of values, and AND of two ranges of the same input.
 * 2. Whoever reads the register has it computed first: for the rows that are alive then.  Where
 *	  others may come back (rows that are parked, or that a join in place may owe), for all.
 *	  Nothing becomes lazy while some rows are elsewhere: the register is not theirs.  Inputs of
 *	  candidates, which are rows of another vector, are computed at once.
 * 3. FILTER of a range compares numbers, at their width, with bounds less their base: a byte for
 *	  each row first, in a loop of which the compiler makes vector code.  As long as many rows are
 *	  alive, and nobody asks which, these bytes say it; then the numbers of the rows are put down,
 *	  eight of them at a time.
 * 4. FILTER of an input whose numbers stand for words looks those up, without widening: where
 *	  there are few, all of them once in a morsel.  If those that are true are a range of numbers, as
 *	  one that is compared with a constant is, step 3 does the rest.
 *
 * Owns nothing.  Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "threads/threads.h"

static Lazy *
make_lazy(Vector *v, uint8_t reg, LazyKind kind)
{
	v->lazy |= UINT64_C(1) << reg;
	v->lazies[reg].kind = kind;
	return &v->lazies[reg];
}

static const Lazy *
lazy_of(const Vector *v, uint8_t reg, LazyKind kind)
{
	return (v->lazy >> reg & 1) && v->lazies[reg].kind == kind ? &v->lazies[reg] : NULL;
}

static bool
is_integer(uint32_t kind)
{
	return kind != HGJ_KIND_F4 && kind != HGJ_KIND_F8;
}

/* ---- step 1 ------------------------------------------------------------------ */

/* Bounds of what compares so with a constant; false: they are not a range. */
static bool
bounds_of(uint32_t comparison, int64_t word, int64_t *least, int64_t *most)
{
	*least = INT64_MIN;
	*most = INT64_MAX;
	switch (comparison)
	{
		case HGJ_EQ:
			*least = *most = word;
			return true;
		case HGJ_LT:
			*most = word - 1;
			return word != INT64_MIN;
		case HGJ_LE:
			*most = word;
			return true;
		case HGJ_GT:
			*least = word + 1;
			return word != INT64_MAX;
		case HGJ_GE:
			*least = word;
			return true;
		default:
			return false;
	}
}

static bool
compare(Run *run, Vector *v, const HgjPipeInstruction *in)
{
	const Lazy *input = lazy_of(v, in->a, LAZY_INPUT);
	const Lazy *constant = lazy_of(v, in->b, LAZY_CONSTANT);
	Lazy		range = {.kind = LAZY_RANGE};

	if (input == NULL || constant == NULL || !is_integer(in->kind) ||
		run->views[input->input].table != NULL ||
		!bounds_of(in->c, (int64_t) constant->word, &range.least, &range.most))
		return false;
	range.input = input->input;
	*make_lazy(v, in->dst, LAZY_RANGE) = range;
	return true;
}

static bool
combine(Vector *v, const HgjPipeInstruction *in)
{
	const Lazy *a = lazy_of(v, in->a, LAZY_RANGE);
	const Lazy *b = lazy_of(v, in->b, LAZY_RANGE);
	Lazy		range;

	if (a == NULL || b == NULL || a->input != b->input)
		return false;
	range = *a;
	range.least = b->least > a->least ? b->least : a->least;
	range.most = b->most < a->most ? b->most : a->most;
	*make_lazy(v, in->dst, LAZY_RANGE) = range;
	return true;
}

/* IS NOT NULL of an input that has no NULL here. */
static bool
test_null(Run *run, Vector *v, const HgjPipeInstruction *in)
{
	const Lazy *input = lazy_of(v, in->a, LAZY_INPUT);
	const View *view;

	if (input == NULL)
		return false;
	view = &run->views[input->input];
	if (view->table != NULL || hgj_view_has_nulls(view, view->first + run->view_first, v->n))
		return false;
	make_lazy(v, in->dst, LAZY_CONSTANT)->word = 1;
	return true;
}

/* Note what the result of an instruction is, if it need not be computed yet. */
bool
hgj_lazy_compute(Run *run, Vector *v, const HgjPipeInstruction *in)
{
	const Lazy *input;
	bool		noted = false;

	if (!hgj_pipe_has_result(in->op))
		return false;
	/* others' values of this register are kept before it is written for some */
	if (is_partial(v))
	{
		if (v->lazy >> in->dst & 1)
			hgj_lazy_force(run, v, UINT64_C(1) << in->dst);
		return false;
	}
	switch (in->op)
	{
		case HGJ_PIPE_INPUT:
			noted = v->first;
			if (noted)
				make_lazy(v, in->dst, LAZY_INPUT)->input = in->arg;
			break;
		case HGJ_PIPE_CONSTANT:
			make_lazy(v, in->dst, LAZY_CONSTANT)->word = (uint64_t) in->imm;
			return true;
		case HGJ_PIPE_COMPARE:
			noted = compare(run, v, in);
			break;
		case HGJ_PIPE_AND:
			noted = combine(v, in);
			break;
		case HGJ_PIPE_IS_NOT_NULL:
			noted = test_null(run, v, in);
			break;
		case HGJ_PIPE_KEY_WORD:
			input = lazy_of(v, in->a, LAZY_INPUT);
			noted = input != NULL && in->kind == run->p->plan.spec.inputs[input->input] &&
				is_integer(in->kind);
			if (noted)
				*make_lazy(v, in->dst, LAZY_INPUT) = *input;
			break;
		default:
			break;
	}
	return noted;
}

/* ---- step 2 ------------------------------------------------------------------ */

/* Is the input's value within bounds? */
static void
compute_range(Run *run, Vector *v, uint8_t reg, const Lazy *lazy)
{
	uint64_t   *words = v->words[reg];
	const int64_t least = lazy->least;
	const int64_t most = lazy->most;

	/* NULL where the input is */
	hgj_run_input(run, v, reg, lazy->input);
	EACH_ALIVE(v, words[i] = ((int64_t) words[i] >= least) & ((int64_t) words[i] <= most));
}

static void
compute(Run *run, Vector *v, uint8_t reg)
{
	const Lazy	lazy = v->lazies[reg];

	v->lazy &= ~(UINT64_C(1) << reg);
	switch (lazy.kind)
	{
		case LAZY_INPUT:
			hgj_run_input(run, v, reg, lazy.input);
			break;
		case LAZY_CONSTANT:
			hgj_set_all(v, reg, lazy.word, false);
			break;
		default:
			compute_range(run, v, reg, &lazy);
			break;
	}
}

/* Compute those of the registers that are lazy. */
void
hgj_lazy_force(Run *run, Vector *v, uint64_t regs)
{
	Vector		whole;

	regs &= v->lazy;
	if (regs == 0)
		return;
	if (v->masked)
		hgj_lazy_settle(v);
	if (!is_partial(v))
	{
		for (; regs != 0; regs &= regs - 1)
			compute(run, v, (uint8_t) __builtin_ctzll(regs));
		return;
	}
	/* as if all rows were alive: memory is the vector's */
	whole = *v;
	whole.nsel = whole.n;
	whole.nparked = whole.matching = 0;
	for (; regs != 0; regs &= regs - 1)
		compute(run, &whole, (uint8_t) __builtin_ctzll(regs));
	v->lazy = whole.lazy;
	v->nulls_of = whole.nulls_of;
}

/* ---- step 3 ------------------------------------------------------------------ */

/* Rows are tested one by one where fewer than an eighth are alive. */
#define FEW_ALIVE	8

typedef uint32_t EightRows __attribute__((vector_size(32)));
typedef uint8_t EightPlaces __attribute__((vector_size(8)));

/* For each set of eight rows, their numbers. */
static EightPlaces places_of[256];

static void __attribute__((constructor))
make_places(void)
{
	for (uint32_t set = 0; set < 256; set++)
	{
		uint32_t	n = 0;

		for (uint32_t bit = 0; bit < 8; bit++)
			if (set >> bit & 1)
				places_of[set][n++] = (uint8_t) bit;
	}
}

/* The numbers of values between bounds. */
static NumberRange
numbers_between(const View *view, int64_t least, int64_t most)
{
	uint64_t	top = view->width >= 8 ? UINT64_MAX : (UINT64_C(1) << 8 * view->width) - 1;
	NumberRange range = {.top = top,.none = true};
	int64_t		lowest = INT64_MIN;
	int64_t		highest = INT64_MAX;

	/* values of eight bytes may be anything, as sums are modulo 2^64 */
	if (view->is_signed)
	{
		highest = (int64_t) (top / 2);
		lowest = -highest - 1;
	}
	else if (view->width < 8)
	{
		lowest = (int64_t) view->base;
		if (__builtin_add_overflow(lowest, (int64_t) top, &highest))
			highest = INT64_MAX;
	}
	range.every = least <= lowest && most >= highest;
	least = least > lowest ? least : lowest;
	most = most < highest ? most : highest;
	if (least > most)
		return range;
	range.none = false;
	range.first = ((uint64_t) least - view->base) & top;
	range.span = (uint64_t) most - (uint64_t) least;
	return range;
}

#define TEST_RANGE(type) \
	do { \
		const type *numbers = (const type *) view->numbers + first; \
		const type least = (type) range->first; \
		const type span = (type) range->span; \
		for (uint32_t i = 0; i < n; i++) \
			passes[i] = (type) (numbers[i] - least) <= span; \
	} while (0)

/* Step 3: a byte for each of n rows. */
HGJ_CLONES static void
test_all(const View *view, uint64_t first, uint32_t n, const NumberRange *range,
		 uint8_t *restrict passes)
{
	switch (view->width)
	{
		case 1:
			TEST_RANGE(uint8_t);
			break;
		case 2:
			TEST_RANGE(uint16_t);
			break;
		case 3:
			{
				const uint16_t *low = (const uint16_t *) view->numbers + first;
				const uint8_t *high = view->third + first;
				const uint32_t least = (uint32_t) range->first;
				const uint32_t span = (uint32_t) range->span;

				for (uint32_t i = 0; i < n; i++)
					passes[i] = ((((uint32_t) low[i] | (uint32_t) high[i] << 16) - least) & 0xFFFFFF) <= span;
				break;
			}
		case 4:
			TEST_RANGE(uint32_t);
			break;
		default:
			TEST_RANGE(uint64_t);
			break;
	}
}

/* Step 3: the rows whose bytes are set. */
HGJ_CLONES static uint32_t
gather_passing(const uint8_t *passes, uint32_t n, uint32_t *restrict sel)
{
	uint32_t	count = 0;
	uint32_t	at = 0;

	for (; at + 8 <= n; at += 8)
	{
		uint64_t	bytes;
		uint32_t	set;
		EightRows	rows;

		memcpy(&bytes, passes + at, sizeof(bytes));
		/* the lowest bit of each byte moves to the highest byte, the first one's lowest */
		set = (uint32_t) (bytes * UINT64_C(0x0102040810204080) >> 56);
		rows = __builtin_convertvector(places_of[set], EightRows) + at;
		memcpy(sel + count, &rows, sizeof(rows));
		count += (uint32_t) __builtin_popcount(set);
	}
	for (; at < n; at++)
	{
		sel[count] = at;
		count += passes[at];
	}
	return count;
}

/* Rows that are alive and NULL are given up. */
static void
drop_nulls(Vector *v, const uint64_t *validity, uint64_t first)
{
	uint32_t   *sel = v->sel;
	uint32_t	n = 0;

	EACH_ALIVE(v, sel[n] = i; n += bit_is_set(validity, first + i));
	v->nsel = n;
}

/* Bytes of rows that are alive, with those that a test has left; returns how many they are. */
HGJ_CLONES static uint32_t
combine_bytes(uint8_t *restrict alive, const uint8_t *restrict passes, uint32_t n, bool first)
{
	uint32_t	count = 0;

	if (first)
		memcpy(alive, passes, n);
	else
		for (uint32_t i = 0; i < n; i++)
			alive[i] &= passes[i];
	for (uint32_t i = 0; i < n; i++)
		count += alive[i];
	return count;
}

/* The selection of a vector whose rows that are alive are said by bytes. */
void
hgj_lazy_settle(Vector *v)
{
	v->masked = false;
	v->nsel = gather_passing(v->alive, v->n, v->sel);
}

/* Rows that are alive, by bytes: many may be, and other filters may come. */
static void
filter_bytes(Vector *v, const View *view, uint64_t first, const NumberRange *range)
{
	uint8_t		passes[VECTOR_ROWS];

	test_all(view, first, v->n, range, passes);
	v->nsel = combine_bytes(v->alive, passes, v->n, all_alive(v));
	v->masked = !all_alive(v);
}

/* Rows whose numbers are in range, of those that are alive and not NULL. */
static void
filter_numbers(Vector *v, const View *view, uint64_t first, const NumberRange *range)
{
	bool		nulls = hgj_view_has_nulls(view, first, v->n);
	uint32_t   *sel = v->sel;
	uint32_t	n = 0;

	if (v->masked && (nulls || v->nsel * FEW_ALIVE < v->n))
		hgj_lazy_settle(v);
	if (range->none)
	{
		v->masked = false;
		v->nsel = 0;
		return;
	}
	if (nulls)
		drop_nulls(v, view->validity, first);
	if (range->every)
		return;
	if (all_alive(v) || v->masked)
	{
		filter_bytes(v, view, first, range);
		return;
	}
	EACH_ALIVE(v,
			   sel[n] = i;
			   n += ((hgj_number_at(view, first + i) - range->first) & range->top) <= range->span);
	v->nsel = n;
}

/* ---- step 4 ------------------------------------------------------------------ */

/* Are the entries that pass a range of numbers?  The last one is NULL's, and is not to be. */
static void
find_range(TableTest *test, const View *view)
{
	uint32_t	last = view->ntable - 1;
	uint32_t	n = 0;
	uint32_t	first = 0;
	uint32_t	end = 0;

	for (uint32_t i = 0; i < last; i++)
		if (test->passes[i])
		{
			first = n++ == 0 ? i : first;
			end = i;
		}
	test->is_range = !test->passes[last] && (n == 0 || end - first + 1 == n);
	test->range = (NumberRange) {.first = first,.span = end - first,.none = n == 0,
	.top = view->width >= 8 ? UINT64_MAX : (UINT64_C(1) << 8 * view->width) - 1};
}

/* What is known of the table's entries; NULL: they are too many, or there is no memory. */
static const TableTest *
test_of(Run *run, uint32_t input)
{
	const View *view = &run->views[input];
	const uint64_t *bits = view->table + view->ntable;
	TableTest  *test = run->tests[input];

	if (view->ntable > TESTED_ENTRIES)
		return NULL;
	if (test == NULL)
		test = run->tests[input] = calloc(1, sizeof(TableTest));
	if (test == NULL || test->known)
		return test;
	for (uint32_t i = 0; i < view->ntable; i++)
		test->passes[i] = view->table[i] != 0 && bit_is_set(bits, i);
	find_range(test, view);
	test->known = true;
	return test;
}

static void
filter_table(Run *run, Vector *v, uint32_t input)
{
	const View *view = &run->views[input];
	uint64_t	first = view->first + run->view_first;
	const uint64_t *table = view->table;
	const uint64_t *bits = view->table + view->ntable;
	const TableTest *test = test_of(run, input);
	uint32_t   *sel = v->sel;
	uint32_t	n = 0;

	if (test != NULL && test->is_range)
	{
		filter_numbers(v, view, first, &test->range);
		return;
	}
	if (v->masked)
		hgj_lazy_settle(v);
	if (test != NULL)
		EACH_ALIVE(v, sel[n] = i; n += test->passes[hgj_entry_at(view, first + i)]);
	else
		EACH_ALIVE(v,
				   const uint64_t at = hgj_entry_at(view, first + i);
				   sel[n] = i;
				   n += table[at] != 0 && bit_is_set(bits, at));
	v->nsel = n;
}

/*
 * FILTER of a register, if that need not be computed; false: it has been, or is now.  Rows that
 * are not alive in a partial vector keep their places, so that nothing else changes.
 */
bool
hgj_lazy_filter(Run *run, Vector *v, uint8_t reg)
{
	const Lazy *lazy = v->lazy >> reg & 1 ? &v->lazies[reg] : NULL;
	const View *view = lazy != NULL && lazy->kind != LAZY_CONSTANT ? &run->views[lazy->input] : NULL;

	if (lazy != NULL && lazy->kind == LAZY_RANGE)
	{
		NumberRange range = numbers_between(view, lazy->least, lazy->most);

		filter_numbers(v, view, view->first + run->view_first, &range);
		return true;
	}
	if (view != NULL && view->table != NULL)
	{
		filter_table(run, v, lazy->input);
		return true;
	}
	if (v->masked)
		hgj_lazy_settle(v);
	if (lazy != NULL && lazy->kind == LAZY_CONSTANT)
	{
		v->nsel = lazy->word == 0 ? 0 : v->nsel;
		return true;
	}
	hgj_lazy_force(run, v, UINT64_C(1) << reg);
	return false;
}

/* The keys of all rows as they are kept, if the register is an input of that kind. */
bool
hgj_lazy_packed(const Run *run, const Vector *v, uint8_t reg, HgjPackedKeys *keys)
{
	const Lazy *lazy = lazy_of(v, reg, LAZY_INPUT);
	const View *view;
	uint64_t	first;

	if (lazy == NULL)
		return false;
	view = &run->views[lazy->input];
	first = view->first + run->view_first;
	if (view->table != NULL || view->is_signed || view->width > 4 ||
		hgj_view_has_nulls(view, first, v->n))
		return false;
	keys->numbers = (const char *) view->numbers + first * (view->width == 3 ? 2 : view->width);
	keys->third = view->third + first;
	keys->base = view->base;
	keys->width = view->width;
	keys->n = v->n;
	return true;
}
