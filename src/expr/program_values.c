/*-------------------------------------------------------------------------
 *
 * program_values.c
 *	  Expressions over one column of strings that are evaluated once for each
 *	  value of it: running them (program_by_value.c says which ones they are).
 *
 * 1. A dictionary numbers the values, by their bytes.  What PostgreSQL's evaluator
 *	  has made of a value lies in a table, by its number; NULL has a place, too.
 *	  Where values point into the chunk of a kept column, which has each of them once,
 *	  their numbers are remembered by these pointers.
 * 2. A value is evaluated when the first row that has it comes here, and no row
 *	  comes here for which PostgreSQL would not evaluate the expression.  So what
 *	  raises an error is a value of such a row.  Where the error could come before
 *	  that of an earlier row, or where not all rows may be wanted, a value that is
 *	  not known is put off: the rows are run one by one (program.c).
 * 3. Long values, those that are compressed or stored out of line, and those for
 *	  which the dictionary has no room are evaluated for each row.
 * 4. Now and then it is seen what this is worth.  When most rows had to be
 *	  evaluated all the same, dictionary and table go, for the rest of the query: the
 *	  expression's other steps take over, or else PostgreSQL evaluates it for
 *	  each row.
 * 5. Results that are passed by reference are kept as long as the program, since
 *	  whoever runs it may still have those of the chunks before.  There is a bound
 *	  for them, too, beyond which rows are evaluated as in 3: for what is theirs
 *	  alone, as for numerics that a program makes.
 *
 * Memory: contexts of the step's below the program's, of a bounded size.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "columns/dictionary.h"
#include "executor/executor.h"
#include "expr/program_private.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"

/* What a dictionary may take, and which part of the memory limit at most. */
#define MOST_BYTES		((Size) 1024 * 1024)
#define MEMORY_SHARE	16

/* Longer values are not looked up. */
#define LONGEST_VALUE	1024

/* Step 4: after so many rows, if fewer than half of them were known, ... */
#define WINDOW_ROWS		16384

/* ... and after the first so many, if next to none were. */
#define FIRST_ROWS		2048
#define FIRST_SHARE		32

/* Places of the table. */
#define FIRST_PLACES	64
#define PLACE_OF_NULL	0
#define NO_PLACE		PG_UINT32_MAX

/* What is known of a place. */
typedef enum Known
{
	UNKNOWN,
	IS_VALUE,
	IS_NULL_VALUE,
	IS_LARGE					/* step 5: it has been evaluated, but not kept */
} Known;

/* What is to be looked up: of the i-th row. */
typedef struct Row
{
	uint32		i;
	bool		null;
	Datum		value;
} Row;

static Size
most_bytes(void)
{
	return Min(MOST_BYTES, get_hash_memory_limit() / MEMORY_SHARE);
}

/* The next execution: parameters have other values. */
void
hgj_by_value_start(HgjByValue *by)
{
	if (!by->changes || by->context == NULL)
		return;
	memset(by->known, UNKNOWN, by->places);
	by->some_null = false;
	if (by->results)
		MemoryContextReset(by->results);
}

/* Room for so many places. */
static void
reserve_places(HgjByValue *by, uint8 width, uint32 wanted)
{
	uint32		places = Max(by->places, FIRST_PLACES);

	while (places < wanted)
		places *= 2;
	if (places == by->places)
		return;
	if (by->places == 0)
	{
		by->known = MemoryContextAlloc(by->context, places);
		by->table = MemoryContextAlloc(by->context, (Size) places * width);
	}
	else
	{
		by->known = repalloc(by->known, places);
		by->table = repalloc(by->table, (Size) places * width);
	}
	memset(by->known + by->places, UNKNOWN, places - by->places);
	by->places = places;
}

/* The first rows: begin with a dictionary. */
static void
begin(HgjProgram *program, HgjStep *step)
{
	HgjByValue *by = step->by_value;

	by->context = AllocSetContextCreate(program->context, "HashGraphJoin values",
										ALLOCSET_DEFAULT_SIZES);
	by->dictionary = hgj_dictionary_create_of_bytes(by->context, by->attlen);
	hgj_dictionary_limit(by->dictionary, most_bytes());
	reserve_places(by, step->width, FIRST_PLACES);
	if (by->by_reference)
		by->results = AllocSetContextCreate(program->context, "HashGraphJoin results",
											ALLOCSET_DEFAULT_SIZES);
}

/* Step 4: the step does without from now on. */
static void
give_up(HgjByValue *by)
{
	MemoryContextDelete(by->context);
	by->context = NULL;
	by->dictionary = NULL;
	by->known = NULL;
	by->table = NULL;
	by->memo = NULL;
	by->places = 0;
	by->given_up = true;
}

/* Is it worth it? */
static void
look_back(HgjByValue *by)
{
	if ((!by->settled && by->rows >= FIRST_ROWS &&
		 by->rows - by->evaluated < by->rows / FIRST_SHARE) ||
		(by->rows >= WINDOW_ROWS && by->evaluated > by->rows / 2))
	{
		give_up(by);
		return;
	}
	by->settled |= by->rows >= FIRST_ROWS;
	if (by->rows >= WINDOW_ROWS)
		by->rows = by->evaluated = 0;
}

/* The value's place, or NO_PLACE: step 3. */
static inline uint32
find_place(HgjByValue *by, uint8 width, Datum value)
{
	uint32		code;

	if (by->attlen == -1)
	{
		const char *p = DatumGetPointer(value);

		if (VARATT_IS_1B_E(p) || VARATT_IS_4B_C(p) || VARSIZE_ANY(p) > LONGEST_VALUE)
			return NO_PLACE;
	}
	if (!hgj_dictionary_find(by->dictionary, value, &code))
		return NO_PLACE;
	if (unlikely(code + 1 >= by->places))
		reserve_places(by, width, code + 2);
	return code + 1;
}

/* The same of a value that points into a kept column's chunk. */
static inline uint32
find_kept_place(HgjByValue *by, HgjKeptMemo *memo, uint8 width, Datum value)
{
	uint32		i = hgj_kept_memo_place(value);

	if (memo->entries[i].value != value)
	{
		memo->entries[i].known = find_place(by, width, value);
		memo->entries[i].value = value;
	}
	return memo->entries[i].known;
}

/* Step 2: must a value wait that could raise an error? */
static bool
puts_off(const HgjProgram *program)
{
	return !program->single &&
		(program->until || program->nraising > 1 || hgj_constants_raise(program));
}

/* Evaluate for a row's value, or NULL.  False: that is put off. */
static bool
evaluate(HgjProgram *program, HgjByValue *by, const Row *row, Datum *result,
		 bool *isnull)
{
	if (by->may_raise && puts_off(program))
	{
		program->failed = program->undecided = true;
		return false;
	}
	CHECK_FOR_INTERRUPTS();
	by->evaluated++;
	ResetExprContext(by->econtext);
	ExecClearTuple(by->slot);
	by->slot->tts_values[0] = row->value;
	by->slot->tts_isnull[0] = row->null;
	ExecStoreVirtualTuple(by->slot);
	*result = ExecEvalExprSwitchContext(by->state, by->econtext, isnull);
	if (*isnull)
		*result = (Datum) 0;
	return true;
}

/* A copy of a by-reference value. */
static Datum
copy_to(MemoryContext context, Datum value, int16 length)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	Datum		copy = datumCopy(value, false, length);

	MemoryContextSwitchTo(old);
	return copy;
}

/* A result that is the row's alone, into the step's buffers. */
static void
put_result(HgjProgram *program, HgjStep *step, const Row *row, Datum result,
		   bool isnull)
{
	const HgjByValue *by = step->by_value;

	if (by->by_reference && !isnull)
		result = copy_to(hgj_program_numerics(program), result, by->result_len);
	hgj_store((char *) step->value_buffer + (Size) row->i * step->width, step->width,
			  result);
	step->null_buffer[row->i] = isnull;
	if (isnull)
		step->nulls = step->null_buffer;
}

/* A result into the table; false: it is not kept. */
static bool
keep_result(HgjStep *step, uint32 place, Datum result, bool isnull)
{
	HgjByValue *by = step->by_value;

	if (by->by_reference && !isnull)
	{
		if (hgj_value_bytes(result, by->result_len) > LONGEST_VALUE ||
			MemoryContextMemAllocated(by->results, false) > most_bytes())
		{
			by->known[place] = IS_LARGE;
			return false;
		}
		result = copy_to(by->results, result, by->result_len);
	}
	hgj_store(by->table + (Size) place * step->width, step->width, result);
	by->known[place] = isnull ? IS_NULL_VALUE : IS_VALUE;
	by->some_null |= isnull;
	return true;
}

/* Each of the argument's values, whatever it is; step 4. */
static void
run_by_row(HgjProgram *program, HgjStep *step, uint32 n)
{
	const HgjStep *arg = step->args[0];
	const Datum *values = arg->values;

	for (uint32 i = 0; i < n; i++)
	{
		Row			row = {.i = i, .null = arg->nulls && arg->nulls[i]};
		Datum		result;
		bool		isnull;

		row.value = row.null ? (Datum) 0 : values[i];
		if (!evaluate(program, step->by_value, &row, &result, &isnull))
			return;
		put_result(program, step, &row, result, isnull);
	}
}

/*
 * What stands in the table for n rows.  Where a row has no place, its result is in
 * the step's buffers already.
 */
static void
take_results(HgjStep *step, const uint32 *at, uint32 n, bool all_have)
{
	const HgjByValue *by = step->by_value;

	if (all_have)
		hgj_values_gather(step->width, by->table, at, n, step->value_buffer);
	else
		for (uint32 i = 0; i < n; i++)
			if (at[i] != NO_PLACE)
				memcpy((char *) step->value_buffer + (Size) i * step->width,
					   by->table + (Size) at[i] * step->width, step->width);
	if (!by->some_null)
		return;
	for (uint32 i = 0; i < n; i++)
		if (at[i] != NO_PLACE)
			step->null_buffer[i] = by->known[at[i]] == IS_NULL_VALUE;
	step->nulls = step->null_buffer;
}

/* Steps 1 to 3 and 5 for n rows. */
static void
run_by_place(HgjProgram *program, HgjStep *step, uint32 n)
{
	HgjByValue *by = step->by_value;
	const HgjStep *arg = step->args[0];
	const Datum *values = arg->values;
	HgjKeptMemo *memo = hgj_kept_memo(&by->memo, arg->kept_in, by->context);
	uint32		at[HGJ_CHUNK];
	bool		all_have = true;

	memset(step->null_buffer, 0, n);
	for (uint32 i = 0; i < n; i++)
	{
		Row			row = {.i = i, .null = arg->nulls && arg->nulls[i]};
		Datum		result;
		bool		isnull;

		row.value = row.null ? (Datum) 0 : values[i];
		at[i] = row.null ? PLACE_OF_NULL :
			memo ? find_kept_place(by, memo, step->width, row.value) :
			find_place(by, step->width, row.value);
		if (likely(at[i] != NO_PLACE &&
				   (by->known[at[i]] == IS_VALUE || by->known[at[i]] == IS_NULL_VALUE)))
			continue;
		if (!evaluate(program, by, &row, &result, &isnull))
			return;
		if (at[i] != NO_PLACE && keep_result(step, at[i], result, isnull))
			continue;
		put_result(program, step, &row, result, isnull);
		at[i] = NO_PLACE;
		all_have = false;
	}
	take_results(step, at, n, all_have);
	by->rows += n;
	look_back(by);
}

/* The column's values of n rows are in the first argument. */
void
hgj_by_value_run(HgjProgram *program, HgjStep *step, uint32 n)
{
	HgjByValue *by = step->by_value;

	if (by->given_up)
	{
		run_by_row(program, step, n);
		return;
	}
	if (by->context == NULL)
		begin(program, step);
	run_by_place(program, step, n);
}
