/*-------------------------------------------------------------------------
 *
 * group_keys.c
 *	  Group columns of a HashGraphAgg: hashing and comparing their values.
 *
 * 1. The equality operator decides the kind, as for join keys (keys.c): datums
 *	  that are equal as they stand, floats, fixed bytes, bytes of a varlena (text
 *	  under a deterministic collation, char(n) without the blanks at its end), and
 *	  everything else, which goes through the type's own functions.  NULLs are equal
 *	  to each other.
 * 2. A batch is worked on column by column: load the live rows' datums, fold
 *	  them into the rows' hashes, compare them with those of the groups found.
 * 3. Codes of a dictionary, which there are where equal values look equal, are
 *	  equal as they stand.  Once that is full, some rows have a value in the
 *	  place of a code: such datums are compared by value with each other, and
 *	  equal no code.
 * 4. What a group keeps is the first datum it has seen.
 * 5. EXTRACT's integers are numerics that are equal only if their bytes are.
 *
 * Kept by-reference values go to the group table's arena.  Functions of types
 * run in its scratch context, which is reset after every row that may have used
 * it.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "columns/groups.h"
#include "fmgr.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* How many rows ahead strings are prefetched. */
#define PREFETCH		16

#define EIGHT_BLANKS	UINT64CONST(0x2020202020202020)

/* Bytes from which on a string is hashed in lanes, and the number of lanes. */
#define LONG_STRING		64
#define LANES			4
#define LANE_MULTIPLIER UINT64CONST(0xA0761D6478BD642F)

/* Where a byte of memory is in a word. */
#ifdef WORDS_BIGENDIAN
#define SHIFT_OF_BYTE(i)	(56 - 8 * (i))
#else
#define SHIFT_OF_BYTE(i)	(8 * (i))
#endif

/* Folded into a hash in place of a NULL. */
#define HASH_OF_NULL	UINT64CONST(0x5851F42D4C957F2D)

/* The kind for an equality function over a type, keys.c's kind being raw. */
static HgjGroupKeyKind
raw_kind(HgjKeyKind kind)
{
	switch (kind)
	{
		case HGJ_KEY_FLOAT4:
			return HGJ_GROUP_FLOAT4;
		case HGJ_KEY_FLOAT8:
			return HGJ_GROUP_FLOAT8;
		case HGJ_KEY_BYTES6:
		case HGJ_KEY_BYTES8:
		case HGJ_KEY_UUID:
			return HGJ_GROUP_BYTES;
		default:
			return HGJ_GROUP_WORD;
	}
}

/* The type's own functions; hash as for a join key where that can be had. */
static void
init_opaque(HgjGroupKey *key, Oid equality, bool have_pair,
			const HgjKeyPair *pair)
{
	Oid			hash;
	Oid			right;

	key->kind = HGJ_GROUP_OPAQUE;
	key->hash.kind = HGJ_KEY_OPAQUE;
	key->hash.collation = key->collation;
	key->hash.nwords = 1;
	if (have_pair)
	{
		hash = pair->outer_hash;
		key->hash.extended = pair->extended;
	}
	else if (!get_op_hash_functions(equality, &hash, &right))
		elog(ERROR, "operator %u of a HashGraphAgg has no hash function",
			 equality);
	fmgr_info(hash, &key->hash.hash);
	fmgr_info(get_opcode(equality), &key->equal);
}

/* Does extract() take one of these fields of a date or a timestamp? */
bool
hgj_extracts_one_of(const Node *expr, const char *const *fields, int nfields)
{
	const FuncExpr *function = (const FuncExpr *) expr;
	const Const *field;
	char	   *name;

	if (!IsA(expr, FuncExpr) || (function->funcid != F_EXTRACT_TEXT_DATE &&
								 function->funcid != F_EXTRACT_TEXT_TIMESTAMP &&
								 function->funcid != F_EXTRACT_TEXT_TIMESTAMPTZ &&
								 function->funcid != F_EXTRACT_TEXT_INTERVAL))
		return false;
	field = linitial(function->args);
	if (!IsA(field, Const) || field->constisnull)
		return false;
	name = TextDatumGetCString(field->constvalue);
	for (int i = 0; i < nfields; i++)
		if (strcmp(name, fields[i]) == 0)
			return true;
	return false;
}

/*
 * Step 5: a field that is an integer, infinity or NULL, whatever the date.  Others have
 * decimals, and one value may have it with more of them than another.
 */
static bool
is_integral_field(Node *expr)
{
	static const char *const fields[] = {
		"year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "isoyear",
		"hour", "minute", "decade", "century", "millennium"
	};

	return hgj_extracts_one_of(expr, fields, lengthof(fields)) &&
		((const FuncExpr *) expr)->funcid != F_EXTRACT_TEXT_INTERVAL;
}

/*
 * Get a key ready whose column and lengths are set.  expr is what the column
 * holds, equality the operator that groups it.
 */
void
hgj_group_key_init(HgjGroupKey *key, Node *expr, Oid equality)
{
	Oid			function = get_opcode(equality);
	OpExpr	   *clause;
	HgjKeyPair	pair;
	bool		have_pair;

	hgj_check_execute(function, OBJECT_FUNCTION);
	key->collation = exprCollation(expr);
	clause = (OpExpr *) make_opclause(equality, BOOLOID, false, (Expr *) expr,
									  (Expr *) expr, InvalidOid,
									  key->collation);
	have_pair = hgj_key_pair(clause, true, &pair);

	if (have_pair && pair.outer_kind != HGJ_KEY_OPAQUE &&
		!hgj_key_is_text(pair.outer_kind))
		key->kind = raw_kind(pair.outer_kind);
	else if (function == F_BYTEAEQ ||
			 (function == F_NUMERIC_EQ && is_integral_field(expr)))
		key->kind = HGJ_GROUP_VARLENA;
	else if ((function == F_TEXTEQ || function == F_BPCHAREQ) &&
			 hgj_is_deterministic(key->collation))
		key->kind = function == F_TEXTEQ ? HGJ_GROUP_VARLENA : HGJ_GROUP_PADDED;
	else
		init_opaque(key, equality, have_pair, &pair);
	Assert(key->attbyval || key->kind >= HGJ_GROUP_BYTES);
	key->value_kind = key->kind;
}

/*
 * Do values that are equal look equal?  Then a dictionary may return the first
 * of the build side for any of them.  Otherwise that one could be of a row that
 * has no match: the scale of a numeric would be one that the join does not have.
 */
bool
hgj_group_key_looks_equal(const HgjGroupKey *key, Node *expr, Oid equality)
{
	Oid			function = get_opcode(equality);

	if (key->kind == HGJ_GROUP_BYTES || key->kind == HGJ_GROUP_VARLENA)
		return true;
	if (exprTypmod(expr) < 0)
		return false;
	return function == F_NUMERIC_EQ ||
		(function == F_BPCHAREQ && hgj_is_deterministic(key->collation));
}

/* The column holds codes of this dictionary; the key is ready otherwise. */
void
hgj_group_key_use_codes(HgjGroupKey *key, HgjDictionary *dictionary)
{
	key->dictionary = dictionary;
	key->kind = HGJ_GROUP_WORD;
}

#define LOAD(type, to_datum) \
	do { \
		const type *from = vector->values; \
		if (live == NULL) \
			for (uint32 i = 0; i < n; i++) \
				key->values[i] = to_datum(from[i]); \
		else \
			for (uint32 i = 0; i < n; i++) \
				key->values[i] = to_datum(from[live[i]]); \
	} while (0)

/* Take the key's datums of the live rows out of the batch. */
void
hgj_group_key_load(HgjGroupKey *key, const HgjBatch *batch)
{
	const HgjVector *vector = &batch->vectors[key->column];
	const uint32 *live = batch->live;
	uint32		n = hgj_batch_nlive(batch);

	if (unlikely(key->dictionary && hgj_dictionary_is_full(key->dictionary)))
		key->kind = HGJ_GROUP_ENCODED;
	switch (vector->width)
	{
		case 1:
			LOAD(char, CharGetDatum);
			break;
		case 2:
			LOAD(int16, Int16GetDatum);
			break;
		case 4:
			LOAD(int32, Int32GetDatum);
			break;
		default:
			LOAD(Datum, (Datum));
			break;
	}

	key->has_nulls = false;
	if (!vector->has_nulls)
		return;
	for (uint32 i = 0; i < n; i++)
	{
		key->nulls[i] = hgj_vector_is_null(vector, live ? live[i] : i);
		if (key->nulls[i])
		{
			key->values[i] = (Datum) 0;
			key->has_nulls = true;
		}
	}
	if (key->has_nulls)
		key->ever_nulls = true;
}

/* A varlena in memory as it is to be compared; maybe a copy, to be freed. */
static inline struct varlena *
flat_varlena(Datum value)
{
	struct varlena *stored = (struct varlena *) DatumGetPointer(value);

	if (likely(VARATT_IS_4B_U(stored) ||
			   (VARATT_IS_1B(stored) && !VARATT_IS_1B_E(stored))))
		return stored;
	CHECK_FOR_INTERRUPTS();		/* it may be megabytes */
	return pg_detoast_datum_packed(stored);
}

static inline void
free_flat(struct varlena *flat, Datum value)
{
	if (unlikely((Pointer) flat != DatumGetPointer(value)))
		pfree(flat);
}

static inline uint64
read_word(const char *p)
{
	uint64		word;

	memcpy(&word, p, sizeof(word));
	return word;
}

/* How many of its bytes count. */
static inline Size
flat_size(HgjGroupKeyKind kind, const struct varlena *flat)
{
	const char *p = VARDATA_ANY(flat);
	Size		size = VARSIZE_ANY_EXHDR(flat);

	if (kind == HGJ_GROUP_PADDED)
		while (size > 0 && p[size - 1] == ' ')
			size--;
	return size;
}

/* The last bytes of a string, fewer than a word, as one. */
static inline uint64
read_rest(const char *p, Size size)
{
	uint64		word = 0;

	for (Size i = 0; i < size; i++)
		word = (word << 8) | (unsigned char) p[i];
	return word;
}

/* Multiply to 128 bits, and fold these. */
static inline uint64
fold(uint64 word)
{
	uint128		product = (uint128) word * LANE_MULTIPLIER;

	return (uint64) (product >> 64) ^ (uint64) product;
}

/*
 * A word of a long string waits for another one only in its own lane: the processor works
 * on all lanes at the same time, where one chain of words would take several times as
 * long as reading them.
 */
static uint64
hash_long_string(const char *p, Size size, uint64 h)
{
	const char *last = p + size - LANES * sizeof(uint64);
	uint64		lanes[LANES];

	h = hgj_stir(h ^ size);
	for (int l = 0; l < LANES; l++)
		lanes[l] = hgj_stir(h + l);
	for (; p < last; p += LANES * sizeof(uint64))
		for (int l = 0; l < LANES; l++)
			lanes[l] = fold(lanes[l] ^ read_word(p + l * sizeof(uint64)));
	for (int l = 0; l < LANES; l++)
		h = hgj_stir(h ^ lanes[l] ^ read_word(last + l * sizeof(uint64)));	/* may overlap */
	return h;
}

/* Most strings are short: hash them without a call, a word at a time. */
static inline uint64
hash_string(const char *p, Size size, uint64 h)
{
	const char *last;

	hgj_before_value(size);
	if (unlikely(size >= LONG_STRING))
		return hash_long_string(p, size, h);
	if (size < sizeof(uint64))
		return hgj_stir(h ^ read_rest(p, size) ^ ((uint64) size << 56));
	last = p + size - sizeof(uint64);
	h = hgj_stir(h ^ size);
	for (; p < last; p += sizeof(uint64))
		h = hgj_stir(h ^ read_word(p));
	return hgj_stir(h ^ read_word(last));	/* may overlap */
}

/*
 * The same, whatever number of blanks there is at the end, without a look for where
 * they begin: they add nothing to a sum.
 */
static inline uint64
hash_padded(const char *p, Size size, uint64 h)
{
	uint64		factor = UINT64CONST(0xA0761D6478BD642F);
	uint64		sum = 0;
	uint64		rest = 0;

	hgj_before_value(size);
	for (; size >= sizeof(uint64); size -= sizeof(uint64), p += sizeof(uint64))
	{
		sum += (read_word(p) ^ EIGHT_BLANKS) * factor;
		factor *= UINT64CONST(0xE7037ED1A0B428DB);
	}
	for (Size i = 0; i < size; i++)
		rest |= (uint64) (unsigned char) (p[i] ^ ' ') << SHIFT_OF_BYTE(i);
	sum += rest * factor;
	return hgj_stir(h ^ sum);
}

static inline bool
strings_equal(const char *a, const char *b, Size size)
{
	if (size > 2 * sizeof(uint64))
	{
		hgj_before_value(size);
		return memcmp(a, b, size) == 0;
	}
	if (size >= sizeof(uint64))
	{
		Size		last = size - sizeof(uint64);

		return read_word(a) == read_word(b) &&
			read_word(a + last) == read_word(b + last);
	}
	return read_rest(a, size) == read_rest(b, size);
}

/* Strings of a kind that is compared by bytes. */
static inline bool
varlenas_equal(HgjGroupKeyKind kind, Datum a, Datum b)
{
	const char *pa = DatumGetPointer(a);
	const char *pb = DatumGetPointer(b);
	struct varlena *fa;
	struct varlena *fb;
	Size		size;
	bool		equal;

	/* most are short, and the same in every byte */
	if (likely(VARATT_IS_1B(pa) && !VARATT_IS_1B_E(pa) && *pa == *pb &&
			   strings_equal(pa, pb, VARSIZE_1B(pa))))
		return true;
	fa = flat_varlena(a);
	fb = flat_varlena(b);
	size = flat_size(kind, fa);
	equal = size == flat_size(kind, fb) &&
		strings_equal(VARDATA_ANY(fa), VARDATA_ANY(fb), size);
	free_flat(fa, a);
	free_flat(fb, b);
	return equal;
}

/* The hash of one value that is not NULL, and no code, folded into h. */
static inline uint64
hash_value(HgjGroupKey *key, HgjGroupKeyKind kind, uint64 seed,
		   MemoryContext scratch, Datum value, uint64 h)
{
	switch (kind)
	{
		case HGJ_GROUP_WORD:
			return hgj_stir(h ^ (uint64) value);
		case HGJ_GROUP_FLOAT4:
			return hgj_stir(h ^ hgj_float_word(DatumGetFloat4(value)));
		case HGJ_GROUP_FLOAT8:
			return hgj_stir(h ^ hgj_float_word(DatumGetFloat8(value)));
		case HGJ_GROUP_BYTES:
			return hash_string(DatumGetPointer(value), key->attlen, h);
		case HGJ_GROUP_VARLENA:
		case HGJ_GROUP_PADDED:
			{
				struct varlena *flat = flat_varlena(value);

				h = (kind == HGJ_GROUP_PADDED ? hash_padded : hash_string)
					(VARDATA_ANY(flat), VARSIZE_ANY_EXHDR(flat), h);
				free_flat(flat, value);
				return h;
			}
		case HGJ_GROUP_OPAQUE:
			{
				uint64		word;
				uint64	   *words[1] = {&word};
				MemoryContext old = MemoryContextSwitchTo(scratch);

				CHECK_FOR_INTERRUPTS();
				hgj_key_words(&key->hash, value, seed, words, 0);
				MemoryContextSwitchTo(old);
				MemoryContextReset(scratch);
				return hgj_stir(h ^ word);
			}
		case HGJ_GROUP_ENCODED:
			break;
	}
	return h;
}

/* See groups.h. */
uint64
hgj_group_value_hash(HgjGroupKey *key, uint64 seed, MemoryContext scratch,
					 Datum value)
{
	return hash_value(key, key->value_kind, seed, scratch, value, seed);
}

/* The same for any kind of key. */
static inline uint64
hash_datum(HgjGroups *groups, HgjGroupKey *key, Datum value, uint64 h)
{
	if (key->kind != HGJ_GROUP_ENCODED)
		return hash_value(key, key->kind, groups->seed, groups->scratch, value,
						  h);
	if (!hgj_datum_is_plain(value))
		return hgj_stir(h ^ (uint64) value);
	return hash_value(key, key->value_kind, groups->seed, groups->scratch,
					  hgj_plain_value(value), h);
}

#define HASH_ROWS(step) \
	do { \
		for (uint32 i = first; i < first + n; i++) \
		{ \
			uint64		h = hashes[i]; \
			Datum		value = key->values[i]; \
			hashes[i] = (step); \
		} \
	} while (0)

/* Fold the key into the hashes of n live rows from the first-th on. */
void
hgj_group_key_hash(HgjGroups *groups, HgjGroupKey *key, uint32 first, uint32 n)
{
	uint64	   *hashes = groups->hashes;

	if (key->has_nulls)
	{
		for (uint32 i = first; i < first + n; i++)
			hashes[i] = key->nulls[i] ? hgj_stir(hashes[i] ^ HASH_OF_NULL) :
				hash_datum(groups, key, key->values[i], hashes[i]);
		return;
	}
	switch (key->kind)
	{
		case HGJ_GROUP_WORD:
			HASH_ROWS(hgj_stir(h ^ (uint64) value));
			break;
		case HGJ_GROUP_VARLENA:
		case HGJ_GROUP_PADDED:
			for (uint32 i = first; i < first + n; i++)
			{
				if (i + PREFETCH < first + n)
					__builtin_prefetch(DatumGetPointer(key->values[i + PREFETCH]));
				hashes[i] = hash_datum(groups, key, key->values[i], hashes[i]);
			}
			break;
		case HGJ_GROUP_FLOAT4:
		case HGJ_GROUP_FLOAT8:
		case HGJ_GROUP_BYTES:
		case HGJ_GROUP_OPAQUE:
		case HGJ_GROUP_ENCODED:
			HASH_ROWS(hash_datum(groups, key, value, h));
			break;
	}
}

/* Are two values equal, neither of them NULL, nor a code? */
static inline bool
values_equal(HgjGroupKey *key, HgjGroupKeyKind kind, MemoryContext scratch,
			 Datum a, Datum b)
{
	switch (kind)
	{
		case HGJ_GROUP_WORD:
			return a == b;
		case HGJ_GROUP_FLOAT4:
			return hgj_float_word(DatumGetFloat4(a)) == hgj_float_word(DatumGetFloat4(b));
		case HGJ_GROUP_FLOAT8:
			return hgj_float_word(DatumGetFloat8(a)) == hgj_float_word(DatumGetFloat8(b));
		case HGJ_GROUP_BYTES:
			return strings_equal(DatumGetPointer(a), DatumGetPointer(b),
								 key->attlen);
		case HGJ_GROUP_VARLENA:
		case HGJ_GROUP_PADDED:
			return varlenas_equal(kind, a, b);
		case HGJ_GROUP_OPAQUE:
			{
				MemoryContext old = MemoryContextSwitchTo(scratch);
				bool		equal;

				CHECK_FOR_INTERRUPTS();
				equal = DatumGetBool(FunctionCall2Coll(&key->equal,
													   key->collation, a, b));
				MemoryContextSwitchTo(old);
				MemoryContextReset(scratch);
				return equal;
			}
		case HGJ_GROUP_ENCODED:
			break;
	}
	return false;
}

/* See groups.h. */
bool
hgj_group_values_equal(HgjGroupKey *key, MemoryContext scratch, Datum a,
					   Datum b)
{
	return values_equal(key, key->value_kind, scratch, a, b);
}

/* The same for any kind of key.  A value that has a code is never plain. */
static inline bool
datums_equal(HgjGroups *groups, HgjGroupKey *key, Datum a, Datum b)
{
	if (key->kind != HGJ_GROUP_ENCODED)
		return values_equal(key, key->kind, groups->scratch, a, b);
	if (!hgj_datum_is_plain(a) || !hgj_datum_is_plain(b))
		return a == b;
	return values_equal(key, key->value_kind, groups->scratch,
						hgj_plain_value(a), hgj_plain_value(b));
}

/* Has the group the key of live row i, in column k? */
bool
hgj_group_key_equal(HgjGroups *groups, int k, uint32 i, const char *row)
{
	HgjGroupKey *key = &groups->keys[k];
	bool		null = key->has_nulls && key->nulls[i];

	if (null != ((const uint8 *) row + groups->nulls_offset)[k])
		return false;
	return null || datums_equal(groups, key,
								hgj_group_datums((char *) row)[k],
								key->values[i]);
}

/*
 * Compare column k of n live rows with the groups they have been given.  Those
 * that differ lose their group, and are appended to groups->mismatched, which
 * holds nmismatched rows; returns their new number.
 */
uint32
hgj_group_key_compare(HgjGroups *groups, int k, uint32 n, uint32 nmismatched)
{
	HgjGroupKey *key = &groups->keys[k];
	const char *datums = groups->rows + sizeof(int64) + k * sizeof(Datum);
	Size		stride = groups->stride;
	uint32	   *of = groups->of;

	if (key->kind == HGJ_GROUP_WORD && !key->ever_nulls)
	{
		for (uint32 i = 0; i < n; i++)
			if (of[i] != HGJ_NO_GROUP &&
				unlikely(*(const Datum *) (datums + of[i] * stride) != key->values[i]))
			{
				of[i] = HGJ_NO_GROUP;
				groups->mismatched[nmismatched++] = i;
			}
		return nmismatched;
	}
	if ((key->kind == HGJ_GROUP_VARLENA || key->kind == HGJ_GROUP_PADDED) &&
		!key->ever_nulls)
	{
		for (uint32 i = 0; i < n; i++)
			if (of[i] != HGJ_NO_GROUP &&
				unlikely(!varlenas_equal(key->kind,
										 *(const Datum *) (datums + of[i] * stride),
										 key->values[i])))
			{
				of[i] = HGJ_NO_GROUP;
				groups->mismatched[nmismatched++] = i;
			}
		return nmismatched;
	}
	for (uint32 i = 0; i < n; i++)
		if (of[i] != HGJ_NO_GROUP &&
			unlikely(!hgj_group_key_equal(groups, k, i,
										  hgj_group_row(groups, of[i]))))
		{
			of[i] = HGJ_NO_GROUP;
			groups->mismatched[nmismatched++] = i;
		}
	return nmismatched;
}

/* A new group keeps this value of its key. */
Datum
hgj_group_key_keep(HgjGroups *groups, HgjGroupKey *key, Datum value)
{
	if (key->attbyval)
		return value;
	if (key->dictionary)
		return !hgj_datum_is_plain(value) ? value :
			hgj_plain_datum(hgj_arena_copy(&groups->values,
										   hgj_plain_value(value),
										   key->attlen));
	if (key->kind == HGJ_GROUP_VARLENA || key->kind == HGJ_GROUP_PADDED)
	{
		struct varlena *flat = flat_varlena(value);
		Datum		kept = hgj_arena_copy(&groups->values,
										  PointerGetDatum(flat), -1);

		free_flat(flat, value);
		return kept;
	}
	return hgj_arena_copy(&groups->values, value, key->attlen);
}
