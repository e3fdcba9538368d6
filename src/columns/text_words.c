/*-------------------------------------------------------------------------
 *
 * text_words.c
 *	  Keys that are equal when their bytes are: text and varchar under a
 *	  deterministic collation, bytea, and char(n), whose trailing blanks do not
 *	  count.
 *
 * 1. Such a key is two words, or up to five where statistics say that values are
 *	  longer.  Up to 15 (23, 31, 39) bytes are packed into them together with
 *	  their number, in the last word's highest byte: equal words are equal
 *	  values, and the engine's comparison is all it takes.
 * 2. A longer value is a seeded 64-bit hash of its bytes and their number, with
 *	  a highest byte that no short value has: equal words only make a
 *	  candidate.
 * 3. So pairs with a long value have to be rechecked (text_recheck.c).
 * 4. A column of the build side that is carried for nothing else need not have
 *	  its short values copied (hgj_batch_keep(), batch.c).
 *
 * TOASTed and compressed values are detoasted into the current context and
 * freed at once.  Nothing else allocates; no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "columns/batch.h"
#include "columns/keys.h"
#include "miscadmin.h"

/* What hgj_batch_keep() puts in place of a value that nobody will look at. */
const struct varlena *
hgj_text_placeholder(void)
{
	/* the length word of an empty value is the same in both byte orders */
	static union
	{
		struct varlena value;
		uint64		align;
	}			empty;

	if (empty.align == 0)
		SET_VARSIZE(&empty.value, VARHDRSZ);
	return &empty.value;
}

/* The bytes of a value that count; *copy is to be freed if not NULL. */
static inline const unsigned char *
text_bytes(HgjKeyKind kind, Datum value, uint32 *length, struct varlena **copy)
{
	struct varlena *v = (struct varlena *) DatumGetPointer(value);
	const unsigned char *bytes;
	uint32		n;

	*copy = NULL;
	if (unlikely(VARATT_IS_COMPRESSED(v) || VARATT_IS_EXTERNAL(v)))
	{
		CHECK_FOR_INTERRUPTS(); /* it may be megabytes */
		v = pg_detoast_datum_packed(v);
		if ((Datum) v != value)
			*copy = v;
	}
	bytes = (const unsigned char *) VARDATA_ANY(v);
	n = VARSIZE_ANY_EXHDR(v);
	if (kind == HGJ_KEY_BPCHAR)
		while (n > 0 && bytes[n - 1] == ' ')
			n--;
	*length = n;
	return bytes;
}

/* Step 1: n <= 15 bytes, into two words. */
static inline void
pack_bytes(const unsigned char *bytes, uint32 n, uint64 *first, uint64 *second)
{
	uint64		low = 0;
	uint64		high = 0;

#ifdef WORDS_BIGENDIAN
	for (uint32 i = 0; i < n; i++)
		if (i < 8)
			low |= (uint64) bytes[i] << (8 * i);
		else
			high |= (uint64) bytes[i] << (8 * (i - 8));
#else
	/* loads may overlap: they agree on what both have read */
	if (n >= 8)
	{
		memcpy(&low, bytes, 8);
		if (n > 8)
		{
			memcpy(&high, bytes + n - 8, 8);
			high >>= 8 * (16 - n);
		}
	}
	else if (n >= 4)
	{
		uint32		head;
		uint32		tail;

		memcpy(&head, bytes, 4);
		memcpy(&tail, bytes + n - 4, 4);
		low = head | (uint64) tail << (8 * (n - 4));
	}
	else if (n > 0)
		low = bytes[0] | (uint64) bytes[n / 2] << (8 * (n / 2)) |
			(uint64) bytes[n - 1] << (8 * (n - 1));
#endif
	*first = low;
	*second = high | (uint64) n << 56;
}

/* Step 1: n <= HGJ_TEXT_PACKED(nwords) bytes, into more than two words. */
static inline void
pack_many(const unsigned char *bytes, uint32 n, uint64 *const *words,
		  uint32 nwords, uint32 row)
{
	uint32		whole = n / 8;
	uint64		low;
	uint64		high;

	for (uint32 w = 0; w < whole; w++)
	{
		uint64		word;

		memcpy(&word, bytes + 8 * w, 8);
		words[w][row] = word;
	}
	pack_bytes(bytes + 8 * whole, n % 8, &low, &high);
	words[whole][row] = low;
	for (uint32 w = whole + 1; w < nwords; w++)
		words[w][row] = 0;
	words[nwords - 1][row] |= (uint64) n << 56;
}

/*
 * A seeded hash of n bytes, 8 or more: words are folded in one by one, by a
 * multiplication to 128 bits with a secret multiplier.
 */
static inline uint64
hash_text(const unsigned char *bytes, uint32 n, uint64 seed)
{
	const unsigned char *end = bytes + n - 8;
	uint64		mul = (seed ^ UINT64CONST(0x9E3779B97F4A7C15)) | 1;
	uint64		state = seed ^ ((uint64) n << 32);
	uint64		word;

	for (; bytes < end; bytes += 8)
	{
		memcpy(&word, bytes, 8);
		state = hgj_fold(state ^ word, mul) + UINT64CONST(0xD6E8FEB86659FD93);
	}
	memcpy(&word, end, 8);
	return hgj_fold(state ^ word, mul);
}

static inline void
text_words(HgjKeyKind kind, Datum value, uint64 seed, uint64 *const *words,
		   uint32 nwords, uint32 row)
{
	struct varlena *copy;
	uint32		n;
	const unsigned char *bytes = text_bytes(kind, value, &n, &copy);

	if (unlikely(n > HGJ_TEXT_PACKED(nwords)))
	{
		hgj_before_value(n);
		words[0][row] = hash_text(bytes, n, seed);
		for (uint32 w = 1; w < nwords - 1; w++)
			words[w][row] = 0;
		words[nwords - 1][row] = HGJ_TEXT_LONG_MARK | n;
	}
	else if (nwords == 2)
		pack_bytes(bytes, n, &words[0][row], &words[1][row]);
	else
		pack_many(bytes, n, words, nwords, row);
	if (unlikely(copy != NULL))
		pfree(copy);
}

/* How many words pay for values of that average width; 0: not known. */
uint32
hgj_text_nwords(int32 average_width)
{
	int32		bytes = average_width + average_width / 16;
	uint32		nwords = HGJ_TEXT_WORDS;

	/* the header's byte goes, and some values are longer than most */
	while (nwords < HGJ_TEXT_MOST_WORDS && bytes > HGJ_TEXT_PACKED(nwords))
		nwords++;
	return bytes > HGJ_TEXT_PACKED(nwords) ? HGJ_TEXT_WORDS : nwords;
}

/* Steps 1 and 2 for one value. */
void
hgj_text_words(const HgjKey *key, Datum value, uint64 seed,
			   uint64 *const *words, uint32 row)
{
	text_words(key->kind, value, seed, words + key->first_word, key->nwords,
			   row);
}

/* The same for n values from `from` on, whose NULLs are left alone. */
void
hgj_text_words_vector(const HgjKey *key, const HgjVector *vector, uint32 from,
					  uint32 n, const HgjKeyWords *to)
{
	const Datum *values = (const Datum *) vector->values + from;
	uint64	   *const *words = to->words + key->first_word;
	uint64		seed = to->seed;
	uint32		row = to->row;

	for (uint32 i = 0; i < n; i++)
		if (!hgj_vector_is_null(vector, from + i))
			text_words(key->kind, values[i], seed, words, key->nwords, row + i);
}

/* Are the bytes that count of two values the same? */
bool
hgj_text_equal(HgjKeyKind kind, Datum outer, Datum inner)
{
	struct varlena *outer_copy;
	struct varlena *inner_copy;
	uint32		outer_n;
	uint32		inner_n;
	const unsigned char *outer_bytes;
	const unsigned char *inner_bytes;
	bool		equal;

	outer_bytes = text_bytes(kind, outer, &outer_n, &outer_copy);
	inner_bytes = text_bytes(kind, inner, &inner_n, &inner_copy);
	hgj_before_value(outer_n);
	equal = outer_n == inner_n && memcmp(outer_bytes, inner_bytes, outer_n) == 0;
	if (unlikely(outer_copy != NULL))
		pfree(outer_copy);
	if (unlikely(inner_copy != NULL))
		pfree(inner_copy);
	return equal;
}
