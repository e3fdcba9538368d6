/*-------------------------------------------------------------------------
 *
 * program_text.c
 *	  Strings compared with constants: =, <>, IN and NOT IN of text, varchar,
 *	  char(n) and bytea.
 *
 * 1. Where the collation is deterministic, strings are equal if their bytes are;
 *	  those of char(n) without the blanks at their ends.
 * 2. The constants are a set: of one string, or of an array's.  A few are looked
 *	  through one by one, where the first eight bytes of a value mostly decide; more by
 *	  a hash table.
 * 3. A value that is compressed or stored out of line is fetched if its length
 *	  does not decide; other values are looked at where they are, and those of a kept
 *	  column, of which its chunk has each once, for the first row only.
 *
 * The set is in a memory context of its own, a child of the program's, built
 * when the first row asks, once per execution; once only if its array is a
 * constant of the query.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/detoast.h"
#include "common/hashfn.h"
#include "expr/program_private.h"
#include "utils/array.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* More strings than these are hashed. */
#define HGJ_TEXT_FEW	6

typedef struct HgjTextSet
{
	bool		is_array;
	bool		padded;			/* blanks at the end do not count */

	MemoryContext context;		/* of what follows; NULL: not yet built */
	int			n;
	bool		has_nulls;
	const char **data;
	uint32	   *length;
	uint64	   *start;			/* the first bytes of each */
	uint32		mask;			/* hash table; 0: there is none */
	uint32	   *slots;			/* number of a string + 1, or 0 */
	HgjKeptMemo *memo;			/* which values are among them */
} HgjTextSet;

bool
hgj_is_text_equality(Oid funcid, bool *invert)
{
	switch (funcid)
	{
		case F_TEXTEQ:
		case F_BPCHAREQ:
		case F_BYTEAEQ:
			*invert = false;
			return true;
		case F_TEXTNE:
		case F_BPCHARNE:
		case F_BYTEANE:
			*invert = true;
			return true;
		default:
			return false;
	}
}

/* An empty set for hgj_is_text_equality()'s functions; otherwise NULL. */
HgjTextSet *
hgj_text_set_make(Oid funcid, Oid collation, bool is_array, bool *invert)
{
	HgjTextSet *set;
	bool		collated = funcid != F_BYTEAEQ && funcid != F_BYTEANE;

	if (!hgj_is_text_equality(funcid, invert))
		return NULL;
	if (collated && (!OidIsValid(collation) ||
					 !get_collation_isdeterministic(collation)))
		return NULL;
	set = palloc0(sizeof(HgjTextSet));
	set->is_array = is_array;
	set->padded = funcid == F_BPCHAREQ || funcid == F_BPCHARNE;
	return set;
}

/* Is it known already that there are more constants than a few? */
bool
hgj_text_is_hashed(const HgjStep *step)
{
	const HgjConstant *constant = step->constant;
	ArrayType  *array;

	if (!step->texts->is_array || !constant->ready || constant->isnull)
		return false;
	array = DatumGetArrayTypeP(constant->value);
	return ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)) > HGJ_TEXT_FEW;
}

void
hgj_text_set_reset(HgjTextSet *set)
{
	if (set->context)
		MemoryContextDelete(set->context);
	set->context = NULL;
}

static inline uint32
true_length(const HgjTextSet *set, const char *data, uint32 length)
{
	if (set->padded)
		while (length > 0 && data[length - 1] == ' ')
			length--;
	return length;
}

static inline bool
equals(const HgjTextSet *set, int i, const char *data, uint32 length)
{
	return set->length[i] == length && memcmp(set->data[i], data, length) == 0;
}

/* The first eight bytes, or what there is of them and then `fill`. */
static inline uint64
start_of(const char *data, uint32 length, char fill)
{
	char		bytes[sizeof(uint64)];
	uint64		start;

	if (likely(length >= sizeof(uint64)))
		memcpy(&start, data, sizeof(uint64));
	else
	{
		memset(bytes, fill, sizeof(bytes));
		for (uint32 i = 0; i < length; i++)
			bytes[i] = data[i];
		memcpy(&start, bytes, sizeof(uint64));
	}
	return start;
}

/* Are there only blanks behind the first n bytes? */
static inline bool
ends_blank(const char *data, uint32 n, uint32 length)
{
	for (uint32 i = n; i < length; i++)
		if (data[i] != ' ')
			return false;
	return true;
}

/* Step 2, of few strings; the value may have blanks at its end. */
static inline bool
find_few(const HgjTextSet *set, const char *data, uint32 length)
{
	uint64		start = start_of(data, length, set->padded ? ' ' : 0);

	for (int i = 0; i < set->n; i++)
	{
		uint32		n = set->length[i];

		if (start != set->start[i])
			continue;
		if (set->padded ? n <= length && memcmp(set->data[i], data, n) == 0 &&
			ends_blank(data, n, length) : equals(set, i, data, length))
			return true;
	}
	return false;
}

/* Step 2.  what: the HgjTextSet */
static bool
find(const void *what, const char *data, uint32 length)
{
	const HgjTextSet *set = what;
	uint32		slot;

	hgj_before_value(length);
	if (set->mask == 0)
		return find_few(set, data, length);
	length = true_length(set, data, length);
	slot = hash_bytes((const unsigned char *) data, length) & set->mask;
	while (set->slots[slot])
	{
		if (equals(set, set->slots[slot] - 1, data, length))
			return true;
		slot = (slot + 1) & set->mask;
	}
	return false;
}

static void
add_string(HgjTextSet *set, Datum value)
{
	struct varlena *text = PG_DETOAST_DATUM_PACKED(value);
	uint32		length = true_length(set, VARDATA_ANY(text),
									 VARSIZE_ANY_EXHDR(text));
	char	   *copy = palloc(Max(length, 1));

	memcpy(copy, VARDATA_ANY(text), length);
	set->data[set->n] = copy;
	set->length[set->n] = length;
	set->start[set->n++] = start_of(copy, length, set->padded ? ' ' : 0);
}

/* Room for n strings, in the current context. */
static void
reserve_strings(HgjTextSet *set, int n)
{
	n = Max(n, 1);
	set->data = palloc(mul_size(n, sizeof(char *)));
	set->length = palloc(mul_size(n, sizeof(uint32)));
	set->start = palloc(mul_size(n, sizeof(uint64)));
}

static void
build_table(HgjTextSet *set)
{
	uint32		nslots = 32;

	while (nslots < (uint32) set->n * 4)
		nslots *= 2;
	set->mask = nslots - 1;
	set->slots = palloc0(mul_size(nslots, sizeof(uint32)));
	for (int i = 0; i < set->n; i++)
	{
		uint32		slot = hash_bytes((const unsigned char *) set->data[i],
									  set->length[i]) & set->mask;

		while (set->slots[slot])
			slot = (slot + 1) & set->mask;
		set->slots[slot] = i + 1;
	}
}

/* Make the set from the step's constant, which is not NULL. */
static void
prepare(HgjProgram *program, HgjTextSet *set, Datum constant)
{
	MemoryContext old;

	set->context = AllocSetContextCreate(program->context,
										 "HashGraphJoin strings",
										 ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(set->context);
	set->n = 0;
	set->memo = NULL;
	set->has_nulls = false;
	set->mask = 0;
	if (set->is_array)
	{
		ArrayType  *array = DatumGetArrayTypeP(constant);
		Datum	   *values;
		bool	   *nulls;
		int			n;
		int16		typlen;
		bool		typbyval;
		char		typalign;

		get_typlenbyvalalign(ARR_ELEMTYPE(array), &typlen, &typbyval,
							 &typalign);
		deconstruct_array(array, ARR_ELEMTYPE(array), typlen, typbyval,
						  typalign, &values, &nulls, &n);
		reserve_strings(set, n);
		for (int i = 0; i < n; i++)
			if (nulls[i])
				set->has_nulls = true;
			else
				add_string(set, values[i]);
	}
	else
	{
		reserve_strings(set, 1);
		add_string(set, constant);
	}
	if (set->n > HGJ_TEXT_FEW)
		build_table(set);
	MemoryContextSwitchTo(old);
}

/* The same for the set, unless the value's length says it already. */
static bool
find_toasted(HgjProgram *program, const HgjTextSet *set, Datum value)
{
	if (!set->padded && set->n == 1 &&
		toast_raw_datum_size(value) - VARHDRSZ != set->length[0])
		return false;
	return hgj_test_toasted(program, value, find, set);
}

/* Step 3: is the value one of them? */
static inline bool
find_value(HgjProgram *program, HgjTextSet *set, Datum value)
{
	const struct varlena *text = (const struct varlena *) DatumGetPointer(value);

	if (VARATT_IS_1B_E(text) || VARATT_IS_4B_C(text))
		return find_toasted(program, set, value);
	return find(set, VARDATA_ANY(text), VARSIZE_ANY_EXHDR(text));
}

/*
 * The same of one that points into a kept column's chunk: once for each, but for those
 * that have to be fetched, which can fail.
 */
static inline bool
find_kept(HgjProgram *program, HgjTextSet *set, HgjKeptMemo *memo, Datum value)
{
	const struct varlena *text = (const struct varlena *) DatumGetPointer(value);
	uint32		i = hgj_kept_memo_place(value);

	if (memo->entries[i].value == value)
		return memo->entries[i].known != 0;
	if (VARATT_IS_1B_E(text) || VARATT_IS_4B_C(text))
		return find_toasted(program, set, value);
	memo->entries[i].value = value;
	memo->entries[i].known = find(set, VARDATA_ANY(text), VARSIZE_ANY_EXHDR(text));
	return memo->entries[i].known != 0;
}

void
hgj_text_run(HgjProgram *program, HgjStep *step, const HgjRows *rows)
{
	HgjStep    *arg = step->args[0];
	HgjTextSet *set = step->texts;
	const Datum *values;
	const uint8 *nulls;
	uint8	   *out = step->value_buffer;
	HgjKeptMemo *memo;

	hgj_step_run(program, arg, rows);
	if (program->failed)
		return;
	values = arg->values;
	nulls = arg->nulls;
	if (hgj_constant_nulls(program, step, rows->n))
		return;
	if (set->context == NULL)
		prepare(program, set, step->constant->value);
	if (set->n == 0 && !set->has_nulls)
	{
		memset(out, step->invert, rows->n); /* whatever the value is */
		return;
	}
	memo = hgj_kept_memo(&set->memo, arg->kept_in, set->context);
	for (uint32 i = 0; i < rows->n; i++)
		out[i] = !(nulls && nulls[i]) &&
			(memo ? find_kept(program, set, memo, values[i]) :
			 find_value(program, set, values[i]));
	hgj_member_finish(step, set->has_nulls, rows->n);
}
