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
 * 1. Hash with the function of the operator's hash family, under the column's
 *	  collation.
 * 2. Find the entry, or add one, in an open-addressing table of codes
 *	  (simplehash.h); compare with the operator.
 *
 * Memory: a context of its own below the caller's; values are copied.  The
 * functions of the type run in a context that is reset from time to time.  No
 * locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "exec/dictionary.h"
#include "fmgr.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

typedef struct DictionaryEntry
{
	uint32		code;			/* also the key: its value is values[code] */
	uint32		hash;
	char		status;
} DictionaryEntry;

struct dict_hash;

struct HgjDictionary
{
	MemoryContext context;
	MemoryContext scratch;		/* of the type's functions */
	uint32		calls;			/* since scratch was reset */
	struct dict_hash *table;
	FmgrInfo	hash;
	FmgrInfo	equal;
	Oid			collation;
	int16		attlen;
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

/* Reset the scratch context after so many calls. */
#define SCRATCH_CALLS	256

/*
 * A dictionary of a type whose values are attlen long (-1: varlena, -2: C
 * string), for a hashable equality operator.
 */
HgjDictionary *
hgj_dictionary_create(MemoryContext context, Oid eqop, Oid collation,
					  int16 attlen)
{
	MemoryContext own = AllocSetContextCreate(context, "HashGraphAgg dictionary",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(own);
	HgjDictionary *dictionary = palloc0(sizeof(HgjDictionary));
	RegProcedure left;
	RegProcedure right;

	if (!get_op_hash_functions(eqop, &left, &right))
		elog(ERROR, "no hash function for operator %u", eqop);
	fmgr_info(left, &dictionary->hash);
	fmgr_info(get_opcode(eqop), &dictionary->equal);
	dictionary->context = own;
	dictionary->scratch = AllocSetContextCreate(own, "HashGraphAgg dictionary scratch",
												ALLOCSET_DEFAULT_SIZES);
	dictionary->collation = collation;
	dictionary->attlen = attlen;
	dictionary->max_values = 64;
	dictionary->values = palloc(dictionary->max_values * sizeof(Datum));
	dictionary->table = dict_create(own, dictionary->max_values, dictionary);
	MemoryContextSwitchTo(old);
	return dictionary;
}

static bool
same_value(HgjDictionary *dictionary, uint32 code, uint32 other)
{
	Datum		a = code == CODE_SOUGHT ? dictionary->sought : dictionary->values[code];
	Datum		b = other == CODE_SOUGHT ? dictionary->sought : dictionary->values[other];

	return DatumGetBool(FunctionCall2Coll(&dictionary->equal,
										  dictionary->collation, a, b));
}

/* The code of a value that is not NULL. */
uint32
hgj_dictionary_code(HgjDictionary *dictionary, Datum value)
{
	MemoryContext old;
	DictionaryEntry *entry;
	bool		found;

	if (++dictionary->calls >= SCRATCH_CALLS)
	{
		MemoryContextReset(dictionary->scratch);
		dictionary->calls = 0;
	}
	old = MemoryContextSwitchTo(dictionary->scratch);
	dictionary->sought = value;
	dictionary->sought_hash =
		DatumGetUInt32(FunctionCall1Coll(&dictionary->hash,
										 dictionary->collation, value));
	entry = dict_lookup_hash(dictionary->table, CODE_SOUGHT,
							 dictionary->sought_hash);
	if (entry)
	{
		MemoryContextSwitchTo(old);
		return entry->code;
	}

	MemoryContextSwitchTo(dictionary->context);
	if (dictionary->nvalues == dictionary->max_values)
	{
		dictionary->max_values *= 2;
		dictionary->values = repalloc_huge(dictionary->values,
										   mul_size(dictionary->max_values,
													sizeof(Datum)));
	}
	dictionary->values[dictionary->nvalues] = datumCopy(value, false,
														dictionary->attlen);
	entry = dict_insert_hash(dictionary->table, CODE_SOUGHT,
							 dictionary->sought_hash, &found);
	entry->code = dictionary->nvalues++;
	MemoryContextSwitchTo(old);
	return entry->code;
}

/* What the code stands for; it lives as long as the dictionary. */
Datum
hgj_dictionary_value(const HgjDictionary *dictionary, uint32 code)
{
	Assert(code < dictionary->nvalues);
	return dictionary->values[code];
}

/* Codes are below this. */
uint32
hgj_dictionary_size(const HgjDictionary *dictionary)
{
	return dictionary->nvalues;
}

Size
hgj_dictionary_bytes(const HgjDictionary *dictionary)
{
	return MemoryContextMemAllocated(dictionary->context, true);
}
