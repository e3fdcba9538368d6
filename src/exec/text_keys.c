/*-------------------------------------------------------------------------
 *
 * text_keys.c
 *	  Keys that are equal when their bytes are: text and varchar under a
 *	  deterministic collation, bytea, and char(n), whose trailing blanks do not
 *	  count.
 *
 * 1. Such a key is two words.  Up to 15 bytes are packed into them together with
 *	  their number, in the second word's highest byte: equal words are equal
 *	  values, and the engine's comparison is all it takes.
 * 2. A longer value is a seeded 64-bit hash of its bytes and their number, with
 *	  a highest byte that no short value has: equal words only make a
 *	  candidate.
 * 3. So pairs have to be rechecked when the build side of the pass has a long
 *	  value at all, and then only those whose outer value is long.  They are
 *	  compared portion by portion: prefetch the records, then the values they
 *	  point to, then compare bytes.
 * 4. A column of the build side that is carried for nothing else need not have
 *	  its short values copied (hgj_batch_keep(), batch.c).
 *
 * TOASTed and compressed values are detoasted into the current context and
 * freed at once.  Nothing else allocates; no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "common/hashfn.h"
#include "exec/join_state.h"
#include "miscadmin.h"

/* In the second word's highest byte: more than HGJ_TEXT_PACKED bytes. */
#define LONG_MARK		(UINT64CONST(0xFF) << 56)

/*
 * Records and values that are prefetched at a time; into the L2 cache, because
 * there are more requests under way to it than to L1.
 */
#define RECHECK_BLOCK	64
#define PREFETCH(p)		__builtin_prefetch((p), 0, 2)

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

/* Step 1: n <= 15 bytes. */
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

static inline void
text_words(HgjKeyKind kind, Datum value, uint64 seed, uint64 *first,
		   uint64 *second)
{
	struct varlena *copy;
	uint32		n;
	const unsigned char *bytes = text_bytes(kind, value, &n, &copy);

	if (n <= HGJ_TEXT_PACKED)
		pack_bytes(bytes, n, first, second);
	else
	{
		*first = hash_bytes_extended(bytes, n, seed);
		*second = LONG_MARK | n;
	}
	if (unlikely(copy != NULL))
		pfree(copy);
}

/* Steps 1 and 2 for one value. */
void
hgj_text_words(HgjKeyKind kind, Datum value, uint64 seed, uint64 *first,
			   uint64 *second)
{
	text_words(kind, value, seed, first, second);
}

/* The same for n values from `from` on, whose NULLs are left alone. */
void
hgj_text_words_vector(HgjKeyKind kind, const HgjVector *vector, uint32 from,
					  uint32 n, uint64 seed, uint64 *first, uint64 *second)
{
	const Datum *values = (const Datum *) vector->values + from;

	for (uint32 i = 0; i < n; i++)
		if (!hgj_vector_is_null(vector, from + i))
			text_words(kind, values[i], seed, &first[i], &second[i]);
}

/* Does a row of the batch have a text key that is too long to be packed? */
bool
hgj_text_any_long(const HgjSource *source, const HgjBatch *batch)
{
	for (int k = 0; k < source->nkeys; k++)
	{
		const HgjKey *key = &source->keys[k];
		const uint64 *second;
		uint64		any = 0;

		if (!hgj_key_is_text(key->kind))
			continue;
		second = batch->words[key->first_word + 1];
		for (uint32 i = 0; i < batch->nsel; i++)
			any |= second[batch->sel[i]];
		if ((any & LONG_MARK) >= (UINT64CONST(0x80) << 56))
			return true;
	}
	return false;
}

static bool
texts_equal(HgjKeyKind kind, Datum outer, Datum inner)
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
	equal = outer_n == inner_n && memcmp(outer_bytes, inner_bytes, outer_n) == 0;
	if (unlikely(outer_copy != NULL))
		pfree(outer_copy);
	if (unlikely(inner_copy != NULL))
		pfree(inner_copy);
	return equal;
}

/* The column of a side in which a key's values are. */
static int
key_column(const HgjSource *source, const HgjKey *key)
{
	for (int c = 0; c < source->ncols; c++)
		if (source->columns[c].attno == key->attno)
			return c;
	elog(ERROR, "key column %d of a HashGraphJoin is not carried", key->attno);
}

/* Step 3 for one key and the pairs from .. to; returns where those end that stay. */
static uint32
recheck_block(HgjJoinState *state, int k, uint32 from, uint32 to, uint32 kept)
{
	HgjMatches *pairs = &state->pairs;
	const HgjKey *key = &state->outer.keys[k];
	const HgjVector *outer = &state->outer_batch->vectors[key_column(&state->outer, key)];
	const HgjStoredColumn *inner =
		&state->rows.columns[key_column(&state->inner, &state->inner.keys[k])];
	const uint64 *second = state->outer_batch->words[key->first_word + 1];
	uint32		checked[RECHECK_BLOCK];
	Datum		values[RECHECK_BLOCK];
	bool		equal[RECHECK_BLOCK];
	uint32		n = 0;

	for (uint32 p = from; p < to; p++)
	{
		bool		is_long = second[pairs->probe_rows[p]] >= LONG_MARK;

		equal[p - from] = true;
		checked[n] = p;
		if (is_long)
			PREFETCH(hgj_row_store_record(&state->rows, pairs->build_rows[p]));
		n += is_long;
	}
	for (uint32 i = 0; i < n; i++)
	{
		const char *record = hgj_row_store_record(&state->rows,
												  pairs->build_rows[checked[i]]);

		values[i] = *(const Datum *) (record + inner->offset);
		PREFETCH(DatumGetPointer(values[i]));
		/* the value's number of bytes, if it is stored as they are */
		PREFETCH(DatumGetPointer(values[i]) +
				 (uint32) second[pairs->probe_rows[checked[i]]]);
	}
	for (uint32 i = 0; i < n; i++)
	{
		Datum		value = ((const Datum *) outer->values)[pairs->probe_rows[checked[i]]];

		equal[checked[i] - from] = texts_equal(key->kind, value, values[i]);
	}
	for (uint32 p = from; p < to; p++)
	{
		pairs->probe_rows[kept] = pairs->probe_rows[p];
		pairs->build_rows[kept] = pairs->build_rows[p];
		kept += equal[p - from];
	}
	return kept;
}

/* Step 3: take those candidates of the portion out whose texts differ. */
void
hgj_text_recheck(HgjJoinState *state)
{
	HgjMatches *pairs = &state->pairs;

	if (!state->long_keys)
		return;
	for (int k = 0; k < state->outer.nkeys; k++)
	{
		uint32		kept = 0;

		if (!hgj_key_is_text(state->outer.keys[k].kind))
			continue;
		for (uint32 p = 0; p < pairs->n; p += RECHECK_BLOCK)
		{
			CHECK_FOR_INTERRUPTS();
			kept = recheck_block(state, k, p, Min(p + RECHECK_BLOCK, pairs->n),
								 kept);
		}
		pairs->n = kept;
	}
}
