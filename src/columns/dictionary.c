/*-------------------------------------------------------------------------
 *
 * dictionary.c
 *	  Values of a by-reference column, numbered from 0 in the order in which
 *	  they are first seen.
 *
 * A HashGraphAgg that groups by a column of a build side asks the join to store
 * codes in the place of values (output.c): the build side is hashed and compared
 * once a row, and the rows that match carry four bytes, which are as good as a
 * group number.  Values are one code when the grouping operator says that they
 * are equal; the value that a code stands for is the first one, which is what
 * grouping may return.
 *
 * 1. Hash and compare as HashGraphAgg does for group columns (group_keys.c).
 * 2. Find the entry, or add one, in an open-addressing table of codes
 *	  (simplehash.h).
 * 3. In front of it is a small table of short values that have come lately, which is
 *	  as good as the other where a column has but a few: it compares words, and
 *	  knows nothing of types, since values of the same bytes are equal.
 * 4. A dictionary that would pass its limit is full from then on: values that
 *	  it does not have are copied to the caller's arena, as those of a column
 *	  without a dictionary would be.
 *
 * Memory: a context of its own below the caller's; values are copied.  No
 * locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "columns/groups.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"

typedef struct DictionaryEntry
{
	uint32		code;			/* also the key: its value is values[code] */
	uint32		hash;
	char		status;
} DictionaryEntry;

/* Step 3: of the value's bytes, the first and the last, which may overlap. */
#define RECENT_WORDS	4
#define RECENT_VALUES	128		/* a power of two */

typedef struct RecentValue
{
	uint64		words[RECENT_WORDS];
	uint32		length;
	uint32		code;
} RecentValue;

/* The length of no value that is looked for. */
#define NO_LENGTH		PG_UINT32_MAX

struct dict_hash;

struct HgjDictionary
{
	MemoryContext context;
	MemoryContext scratch;		/* of the type's functions */
	HgjAccount	held;			/* bytes of both contexts */
	struct dict_hash *table;
	RecentValue *recent;		/* NULL: values are no varlenas */
	HgjGroupKey key;			/* how to hash and to compare */
	uint64		seed;
	int16		attlen;
	Size		limit;
	bool		full;
	Datum		sought;
	uint32		sought_hash;
	Datum	   *values;
	uint32		nvalues;
	uint32		max_values;
};

static bool same_value(HgjDictionary *dictionary, uint32 code, uint32 other);

/* The code that a value which is being looked for goes by. */
#define CODE_SOUGHT		PG_UINT32_MAX

#define SH_PREFIX		dict
#define SH_ELEMENT_TYPE DictionaryEntry
#define SH_KEY_TYPE		uint32
#define SH_KEY			code
#define SH_HASH_KEY(tb, key)	\
	(((HgjDictionary *) (tb)->private_data)->sought_hash)
#define SH_EQUAL(tb, a, b)		\
	same_value((HgjDictionary *) (tb)->private_data, a, b)
#define SH_STORE_HASH
#define SH_GET_HASH(tb, entry)	((entry)->hash)
#define SH_SCOPE		static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

#define FIRST_VALUES	64

/* Blocks of values are small, beside the limit. */
#define MOST_BLOCK_SHARE	32

/* Let the account know of what the contexts have grown by. */
static void
count_bytes(HgjDictionary *dictionary)
{
	hgj_account_set(&dictionary->held,
					MemoryContextMemAllocated(dictionary->context, true));
}

/* Step 3: there are none. */
static void
forget_recent(HgjDictionary *dictionary)
{
	for (int i = 0; dictionary->recent && i < RECENT_VALUES; i++)
		dictionary->recent[i].length = NO_LENGTH;
}

/* One of values attlen long, without a key. */
static HgjDictionary *
make_dictionary(MemoryContext context, int16 attlen)
{
	Size		block = ALLOCSET_DEFAULT_INITSIZE;
	MemoryContext own;
	MemoryContext old;
	HgjDictionary *dictionary;

	while (block < ALLOCSET_DEFAULT_MAXSIZE &&
		   block < get_hash_memory_limit() / MOST_BLOCK_SHARE / 2)
		block *= 2;
	own = AllocSetContextCreate(context, "HashGraphAgg dictionary", 0,
								ALLOCSET_DEFAULT_INITSIZE, block);
	old = MemoryContextSwitchTo(own);
	dictionary = palloc0(sizeof(HgjDictionary));
	dictionary->context = own;
	dictionary->scratch = AllocSetContextCreate(own, "HashGraphAgg dictionary scratch",
												ALLOCSET_DEFAULT_SIZES);
	dictionary->key.attlen = attlen;
	dictionary->seed = pg_prng_uint64(&pg_global_prng_state);
	dictionary->attlen = attlen;
	dictionary->limit = SIZE_MAX;
	dictionary->max_values = FIRST_VALUES;
	dictionary->values = palloc(dictionary->max_values * sizeof(Datum));
	dictionary->table = dict_create(own, dictionary->max_values, dictionary);
	if (attlen == -1)
		dictionary->recent = palloc(RECENT_VALUES * sizeof(RecentValue));
	forget_recent(dictionary);
	MemoryContextSwitchTo(old);
	return dictionary;
}

/*
 * A dictionary for what the expression is, whose type has values attlen long
 * (-1: varlena, -2: C string), and a hashable equality operator.  Its memory
 * counts in the account.
 */
HgjDictionary *
hgj_dictionary_create(MemoryContext context, Node *expr, Oid equality,
					  int16 attlen, HgjAccount *account)
{
	HgjDictionary *dictionary = make_dictionary(context, attlen);
	MemoryContext old = MemoryContextSwitchTo(dictionary->context);

	hgj_group_key_init(&dictionary->key, expr, equality);
	MemoryContextSwitchTo(old);
	dictionary->held.whole = account;
	count_bytes(dictionary);
	return dictionary;
}

/*
 * One in which values are the same that have the same bytes, whatever their type
 * says: expressions cannot tell them apart.  It goes with the context.
 */
HgjDictionary *
hgj_dictionary_create_of_bytes(MemoryContext context, int16 attlen)
{
	HgjDictionary *dictionary = make_dictionary(context, attlen);

	dictionary->key.kind = attlen == -1 ? HGJ_GROUP_VARLENA : HGJ_GROUP_BYTES;
	dictionary->key.value_kind = dictionary->key.kind;
	return dictionary;
}

/* From now on it may take so many bytes. */
void
hgj_dictionary_limit(HgjDictionary *dictionary, Size limit)
{
	dictionary->limit = limit;
}

static bool
same_value(HgjDictionary *dictionary, uint32 code, uint32 other)
{
	Datum		a = code == CODE_SOUGHT ? dictionary->sought : dictionary->values[code];
	Datum		b = other == CODE_SOUGHT ? dictionary->sought : dictionary->values[other];

	return hgj_group_values_equal(&dictionary->key, dictionary->scratch, a, b);
}

/* Is there room for another value, while what grows is copied? */
static bool
has_room(const HgjDictionary *dictionary, Datum value)
{
	const dict_hash *table = dictionary->table;
	Size		more = hgj_value_bytes(value, dictionary->attlen);

	if (dictionary->nvalues == HGJ_MOST_CODES)
		return false;
	if (dictionary->nvalues == dictionary->max_values)
		more += 2 * (Size) dictionary->max_values * sizeof(Datum);
	if (table->members >= table->grow_threshold)
		more += 2 * (Size) table->size * sizeof(DictionaryEntry);
	return MemoryContextMemAllocated(dictionary->context, false) + more <=
		dictionary->limit;
}

/* The code of the value that is sought; there is room. */
static uint32
add_value(HgjDictionary *dictionary)
{
	MemoryContext old = MemoryContextSwitchTo(dictionary->context);
	DictionaryEntry *entry;
	bool		found;

	if (dictionary->nvalues == dictionary->max_values)
	{
		dictionary->values = repalloc_huge(dictionary->values,
										   mul_size((Size) dictionary->max_values * 2,
													sizeof(Datum)));
		dictionary->max_values *= 2;
	}
	dictionary->values[dictionary->nvalues] = datumCopy(dictionary->sought, false,
														dictionary->attlen);
	entry = dict_insert_hash(dictionary->table, CODE_SOUGHT,
							 dictionary->sought_hash, &found);
	entry->code = dictionary->nvalues++;
	count_bytes(dictionary);
	MemoryContextSwitchTo(old);
	return entry->code;
}

static inline uint64
load8(const char *p)
{
	uint64		word;

	memcpy(&word, p, sizeof(word));
	return word;
}

static inline uint64
load4(const char *p)
{
	uint32		word;

	memcpy(&word, p, sizeof(word));
	return word;
}

/*
 * Step 3: words that tell a string from all others that are as long.  False: it is
 * too long for that.
 */
static inline bool
take_words(const char *p, uint32 length, uint64 *words)
{
	words[2] = words[3] = 0;
	if (length > RECENT_WORDS * sizeof(uint64))
		return false;
	if (length > 2 * sizeof(uint64))
	{
		words[0] = load8(p);
		words[1] = load8(p + 8);
		words[2] = load8(p + length - 16);
		words[3] = load8(p + length - 8);
		return true;
	}
	words[1] = 0;
	if (length >= sizeof(uint64))
	{
		words[0] = load8(p);
		words[1] = load8(p + length - 8);
	}
	else if (length >= sizeof(uint32))
		words[0] = load4(p) << 32 | load4(p + length - 4);
	else
	{
		words[0] = 0;
		for (uint32 i = 0; i < length; i++)
			words[0] = words[0] << 8 | (unsigned char) p[i];
	}
	return true;
}

/* Where a value is among the recent ones, if it is; NULL: never. */
static inline RecentValue *
recent_place(HgjDictionary *dictionary, const struct varlena *value, uint64 *words,
			 uint32 *length)
{
	uint64		mixed;

	if (VARATT_IS_1B_E(value) || VARATT_IS_4B_C(value))
		return NULL;
	*length = VARSIZE_ANY_EXHDR(value);
	if (!take_words(VARDATA_ANY(value), *length, words))
		return NULL;
	mixed = (words[0] ^ words[1] * UINT64CONST(0xD6E8FEB86659FD93)) +
		(words[2] ^ words[3] * UINT64CONST(0xA0761D6478BD642F)) + *length;
	mixed *= UINT64CONST(0x9E3779B97F4A7C15);
	return &dictionary->recent[mixed >> 32 & (RECENT_VALUES - 1)];
}

/* Steps 1 and 2; as hgj_dictionary_find(). */
static bool
find_value(HgjDictionary *dictionary, Datum value, uint32 *code)
{
	uint64		hash = hgj_group_value_hash(&dictionary->key, dictionary->seed,
											dictionary->scratch, value);
	DictionaryEntry *entry;

	dictionary->sought = value;
	dictionary->sought_hash = (uint32) hash;
	entry = dict_lookup_hash(dictionary->table, CODE_SOUGHT,
							 dictionary->sought_hash);
	if (entry)
		*code = entry->code;
	else if (!dictionary->full && has_room(dictionary, value))
		*code = add_value(dictionary);
	else
	{
		dictionary->full = true;
		return false;
	}
	return true;
}

/* The code of a value that is not NULL; false: it has none, and gets none. */
bool
hgj_dictionary_find(HgjDictionary *dictionary, Datum value, uint32 *code)
{
	uint64		words[RECENT_WORDS];
	uint32		length;
	RecentValue *recent = NULL;

	if (dictionary->recent)
		recent = recent_place(dictionary,
							  (const struct varlena *) DatumGetPointer(value),
							  words, &length);
	if (recent == NULL)
		return find_value(dictionary, value, code);
	if (recent->length == length && recent->words[0] == words[0] &&
		recent->words[1] == words[1] && recent->words[2] == words[2] &&
		recent->words[3] == words[3])
	{
		*code = recent->code;
		return true;
	}
	if (!find_value(dictionary, value, code))
		return false;
	memcpy(recent->words, words, sizeof(words));
	recent->length = length;
	recent->code = *code;
	return true;
}

/*
 * What stands for a value that is not NULL: its code, or, where it has none, a
 * copy in the arena.
 */
Datum
hgj_dictionary_code(HgjDictionary *dictionary, Datum value, HgjArena *arena)
{
	uint32		code;

	if (hgj_dictionary_find(dictionary, value, &code))
		return UInt32GetDatum(code);
	return hgj_plain_datum(hgj_arena_copy(arena, value, dictionary->attlen));
}

/*
 * The value behind a datum; it lives as long as the dictionary, or as the arena
 * that it has been copied to.
 */
Datum
hgj_dictionary_value(const HgjDictionary *dictionary, Datum datum)
{
	if (hgj_datum_is_plain(datum))
		return hgj_plain_value(datum);
	Assert(DatumGetUInt32(datum) < dictionary->nvalues);
	return dictionary->values[DatumGetUInt32(datum)];
}

/* A copy of the value of a code. */
Datum
hgj_dictionary_copy(const HgjDictionary *dictionary, uint32 code, HgjArena *arena)
{
	return hgj_arena_copy(arena, dictionary->values[code], dictionary->attlen);
}

/* How many values have a code: those below. */
uint32
hgj_dictionary_size(const HgjDictionary *dictionary)
{
	return dictionary->nvalues;
}

/*
 * From now on it has these values, in this order, which are no two the same, whatever its
 * limit; full: and no other.
 */
void
hgj_dictionary_refill(HgjDictionary *dictionary, const Datum *values, uint32 n, bool full)
{
	Size		limit = dictionary->limit;

	for (uint32 i = 0; i < dictionary->nvalues; i++)
		pfree(DatumGetPointer(dictionary->values[i]));
	dict_reset(dictionary->table);
	forget_recent(dictionary);
	dictionary->nvalues = 0;
	dictionary->full = false;
	dictionary->limit = SIZE_MAX;
	for (uint32 i = 0; i < n; i++)
	{
		uint32		code;
		bool		found PG_USED_FOR_ASSERTS_ONLY =
			hgj_dictionary_find(dictionary, values[i], &code);

		Assert(found && code == i);
	}
	dictionary->limit = limit;
	dictionary->full = full;
}

/* May there be values without a code? */
bool
hgj_dictionary_is_full(const HgjDictionary *dictionary)
{
	return dictionary->full;
}

Size
hgj_dictionary_bytes(const HgjDictionary *dictionary)
{
	return dictionary->held.bytes;
}
