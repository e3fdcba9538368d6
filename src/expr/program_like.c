/*-------------------------------------------------------------------------
 *
 * program_like.c
 *	  Strings matched with a constant pattern: LIKE and NOT LIKE of text, varchar,
 *	  char(n) and bytea, and starts_with(), byte by byte.
 *
 * 1. A pattern becomes the strings between its per cent signs: the first one stands
 *	  at the value's beginning, the last at its end, and each of the others, in their
 *	  order, at the first place behind the one before it.  To take the first place is
 *	  right, because that leaves most for what follows.
 * 2. A pattern with an underscore is left to PostgreSQL's function (program_call.c),
 *	  and so is one that ends within an escape, which is an error for the rows that
 *	  it comes to.
 * 3. Bytes will do where no character can be found within another one: in UTF-8,
 *	  and where every byte is a character.  The collation must be deterministic.
 * 4. To find a string, look for its two rarest bytes, by what letters are common in
 *	  writing, at sixteen places at once where the processor has SSE2, and compare the rest
 *	  there.
 * 5. Most values do not begin as the first string does, which their first eight bytes tell.
 *	  Values are fetched from memory while those before them are looked at.
 * 6. Of a kept column whose values are mostly different, most of a batch lie one behind the
 *	  other, and only one that has come before lies elsewhere.  A string between two per cent
 *	  signs is looked for in all that follow each other at once, and a value that does not have
 *	  it is not looked at.
 * 7. A value that is compressed or stored out of line is fetched; others are looked
 *	  at where they are.
 *
 * Everything is palloc'd in the current context when it is compiled.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "expr/program_private.h"
#include "mb/pg_wchar.h"
#include "port/pg_bitutils.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* Step 4: places that are looked at together. */
#define PLACES			16

/* Step 5: how many rows ahead a value is fetched. */
#define PREFETCH		64

/* Step 6: values that lie one behind the other, at least, and the bytes between two of them, at most. */
#define FEWEST_IN_A_ROW	32
#define MOST_BETWEEN	32

/* What stands between two per cent signs. */
typedef struct Piece
{
	char	   *data;
	uint32		length;			/* not 0, but for the first and the last one */
	uint32		rarest;			/* position of the byte that is looked for first */
	uint32		second;			/* position of the next one; rarest's if there is no other */
	uint64		head;			/* first bytes, as they lie in memory */
	uint64		head_mask;		/* bytes of `head` that count */
} Piece;

struct HgjLike
{
	int			npieces;		/* 1: there is no per cent sign */
	Piece	   *pieces;
	uint32		least;			/* bytes that a value must have */
};

/* Bytes that are common in writing, the most common ones first. */
static const char common[] = " etaoinsrhldcumfpgwybvk,.-xjqz";

/* Does it match strings with a pattern, or (*invert) say that they do not? */
static bool
is_like(Oid funcid, bool *invert)
{
	switch (funcid)
	{
		case F_TEXTLIKE:
		case F_BPCHARLIKE:
		case F_BYTEALIKE:
		case F_STARTS_WITH:
			*invert = false;
			return true;
		case F_TEXTNLIKE:
		case F_BPCHARNLIKE:
		case F_BYTEANLIKE:
			*invert = true;
			return true;
		default:
			return false;
	}
}

/* Step 3. */
static bool
bytes_will_do(Oid funcid, Oid collation)
{
	if (funcid == F_BYTEALIKE || funcid == F_BYTEANLIKE)
		return true;
	return OidIsValid(collation) && get_collation_isdeterministic(collation) &&
		(GetDatabaseEncoding() == PG_UTF8 ||
		 pg_database_encoding_max_length() == 1);
}

/* Step 4: the rarest of the piece's bytes, but for the one at this position. */
static uint32
rarest_byte(const Piece *piece, uint32 without)
{
	uint32		best = without;
	Size		best_rank = 0;

	for (uint32 i = 0; i < piece->length; i++)
	{
		const char *found = memchr(common, piece->data[i], sizeof(common) - 1);
		Size		rank = found ? (Size) (found - common) + 1 : sizeof(common);

		if (i != without && rank > best_rank)
		{
			best = i;
			best_rank = rank;
		}
	}
	return best;
}

static Piece *
add_piece(HgjLike *like, char *data)
{
	Piece	   *piece = &like->pieces[like->npieces++];

	piece->data = data;
	return piece;
}

/* Step 1: false where step 2 says so. */
static bool
take_pattern(HgjLike *like, const char *pattern, uint32 length)
{
	char	   *bytes = palloc(Max(length, 1));
	Piece	   *piece = add_piece(like, bytes);

	for (uint32 i = 0; i < length; i++)
	{
		char		c = pattern[i];

		if (c == '_')
			return false;
		if (c == '%')
		{
			/* several in a row are one */
			if (like->npieces == 1 || piece->length > 0)
				piece = add_piece(like, bytes);
			continue;
		}
		if (c == '\\')
		{
			if (++i == length)
				return false;
			c = pattern[i];
		}
		*bytes++ = c;
		piece->length++;
	}
	return true;
}

static void
take_prefix(HgjLike *like, const char *prefix, uint32 length)
{
	char	   *bytes = palloc(Max(length, 1));

	memcpy(bytes, prefix, length);
	add_piece(like, bytes)->length = length;
	add_piece(like, bytes + length);
}

/*
 * What to look for if the function matches strings with this pattern.  NULL: it does
 * something else, or what it does is left to it.
 */
HgjLike *
hgj_like_make(Oid funcid, Oid collation, Expr *pattern, bool *invert)
{
	const Const *constant = (const Const *) pattern;
	struct varlena *value;
	uint32		length;
	HgjLike    *like;

	if (!is_like(funcid, invert) || !IsA(pattern, Const) || constant->constisnull ||
		!bytes_will_do(funcid, collation))
		return NULL;
	value = PG_DETOAST_DATUM_PACKED(constant->constvalue);
	length = VARSIZE_ANY_EXHDR(value);
	like = palloc0(sizeof(HgjLike));
	like->pieces = palloc0(mul_size(length + 2, sizeof(Piece)));
	if (funcid == F_STARTS_WITH)
		take_prefix(like, VARDATA_ANY(value), length);
	else if (!take_pattern(like, VARDATA_ANY(value), length))
		return NULL;
	for (int i = 0; i < like->npieces; i++)
	{
		like->pieces[i].rarest = rarest_byte(&like->pieces[i], like->pieces[i].length);
		like->pieces[i].second = rarest_byte(&like->pieces[i], like->pieces[i].rarest);
		like->least += like->pieces[i].length;
		length = Min(like->pieces[i].length, sizeof(uint64));
		memcpy(&like->pieces[i].head, like->pieces[i].data, length);
		memset(&like->pieces[i].head_mask, 0xFF, length);
	}
	return like;
}

/* Is it seen from the first bytes of some data that the piece does not stand there? */
static inline bool
begins_otherwise(const Piece *piece, const char *data, size_t length)
{
	uint64		head;

	if (length < sizeof(head))
		return false;
	memcpy(&head, data, sizeof(head));
	return ((head ^ piece->head) & piece->head_mask) != 0;
}

/* Step 4: where the piece stands first, from `data` to `end`; or NULL. */
static const char *
find(const Piece *piece, const char *data, const char *end)
{
	uint32		before = piece->rarest;
	uint32		after = piece->length - before;
	const char *at;

#ifdef __SSE2__
	__m128i		rarest = _mm_set1_epi8(piece->data[before]);
	__m128i		second = _mm_set1_epi8(piece->data[piece->second]);

	/* from none of these places does the piece reach beyond the end */
	for (; end - data >= (ptrdiff_t) piece->length + PLACES - 1; data += PLACES)
	{
		__m128i		one = _mm_loadu_si128((const __m128i *) (data + before));
		__m128i		other = _mm_loadu_si128((const __m128i *) (data + piece->second));
		uint32		found = _mm_movemask_epi8(_mm_and_si128(_mm_cmpeq_epi8(one, rarest),
															_mm_cmpeq_epi8(other, second)));

		for (; found != 0; found &= found - 1)
		{
			at = data + pg_rightmost_one_pos32(found);
			if (!begins_otherwise(piece, at, end - at) &&
				memcmp(at, piece->data, piece->length) == 0)
				return at;
		}
	}
#endif
	at = data + before;
	while (end - at >= (ptrdiff_t) after)
	{
		at = memchr(at, piece->data[before], (end - at) - after + 1);
		if (at == NULL)
			return NULL;
		if (memcmp(at - before, piece->data, piece->length) == 0)
			return at - before;
		at++;
	}
	return NULL;
}

/* Step 1.  what: the HgjLike */
static bool
matches(const void *what, const char *data, uint32 length)
{
	const HgjLike *like = what;
	const Piece *first = &like->pieces[0];
	const Piece *last = &like->pieces[like->npieces - 1];
	const char *end = data + length;

	hgj_before_value(length);
	if (length < like->least ||
		(like->npieces == 1 && length > like->least) ||
		(first->length > 0 && memcmp(data, first->data, first->length) != 0))
		return false;
	if (like->npieces == 1)
		return true;
	end -= last->length;
	if (last->length > 0 && memcmp(end, last->data, last->length) != 0)
		return false;
	data += first->length;
	for (const Piece *piece = first + 1; piece < last; piece++)
	{
		data = find(piece, data, end);
		if (data == NULL)
			return false;
		data += piece->length;
	}
	return true;
}

/* Step 6: the number of values, from the first one on, that lie one behind the other as they are to be looked at. */
static uint32
count_in_a_row(const Datum *values, uint32 n)
{
	for (uint32 i = 0; i < n; i++)
	{
		const struct varlena *text = (const struct varlena *) DatumGetPointer(values[i]);
		Datum		end;

		if (VARATT_IS_1B_E(text) || VARATT_IS_4B_C(text))
			return i;
		end = values[i] + VARSIZE_ANY(text);
		if (i + 1 == n || values[i + 1] < end || values[i + 1] > end + MOST_BETWEEN)
			return i + 1;
	}
	return n;
}

/* Step 6: the values that have the piece behind the first per cent sign, and the rest of the pattern. */
static void
find_in_a_row(const HgjLike *like, const Datum *values, uint32 n, bool invert, uint8 *out)
{
	const Piece *piece = &like->pieces[1];
	const char *end = DatumGetPointer(values[n - 1]) + VARSIZE_ANY(DatumGetPointer(values[n - 1]));
	const char *at = DatumGetPointer(values[0]);
	uint32		row = 0;

	memset(out, invert, n);
	while (row < n && (at = find(piece, at, end)) != NULL)
	{
		const char *data;
		uint32		length;

		while (row + 1 < n && DatumGetPointer(values[row + 1]) <= at)
			row++;
		data = VARDATA_ANY(DatumGetPointer(values[row]));
		length = VARSIZE_ANY_EXHDR(DatumGetPointer(values[row]));
		/* a header may look like a letter, and letters of two values like a word */
		if (at < data || at + piece->length > data + length)
		{
			at++;
			continue;
		}
		out[row] = matches(like, data, length) ^ invert;
		if (++row < n)
			at = DatumGetPointer(values[row]);
	}
}

/* Match n values one by one, from number `first` on. */
static void
match_each(HgjProgram *program, HgjStep *step, uint32 first, uint32 n)
{
	const HgjLike *like = step->like;
	const Datum *values = step->args[0]->values;
	const uint8 *nulls = step->args[0]->nulls;
	uint8	   *out = step->value_buffer;
	uint32		end = first + n;

	for (uint32 i = first; i < end; i++)
	{
		const struct varlena *text;

		/* NULL's is no address, which does not matter to a prefetch */
		if (i + PREFETCH < end)
			__builtin_prefetch(DatumGetPointer(values[i + PREFETCH]));
		out[i] = false;
		if (nulls && nulls[i])
			continue;
		text = (const struct varlena *) DatumGetPointer(values[i]);
		if (VARATT_IS_1B_E(text) || VARATT_IS_4B_C(text))
		{
			out[i] = hgj_test_toasted(program, values[i], matches, like) ^ step->invert;
			continue;
		}
		out[i] = (!begins_otherwise(&like->pieces[0], VARDATA_ANY(text), VARSIZE_ANY_EXHDR(text)) &&
				  matches(like, VARDATA_ANY(text), VARSIZE_ANY_EXHDR(text))) ^ step->invert;
	}
}

/* The argument has been run. */
void
hgj_like_run(HgjProgram *program, HgjStep *step, uint32 n)
{
	const HgjLike *like = step->like;
	const Datum *values = step->args[0]->values;
	uint32		i = 0;
	uint32		each = 1;		/* values to be matched one by one before a run is looked for again */

	step->nulls = step->args[0]->nulls;
	/* values that many rows share are told by the middle and the end, without looking at them */
	if (step->args[0]->kept_in == 0 || step->nulls != NULL || like->npieces <= 2 ||
		like->pieces[0].length > 0 || n < FEWEST_IN_A_ROW ||
		values[n / 2] <= values[0] || values[n - 1] <= values[n / 2])
	{
		match_each(program, step, 0, n);
		return;
	}
	while (i < n)
	{
		uint32		row = count_in_a_row(values + i, n - i);

		if (row >= FEWEST_IN_A_ROW)
		{
			find_in_a_row(like, values + i, row, step->invert, (uint8 *) step->value_buffer + i);
			each = 1;
		}
		else
		{
			/* one value lies elsewhere; or most do, and then looking for runs costs more than it saves */
			row = Min(Max(row, each), n - i);
			match_each(program, step, i, row);
			each *= 2;
		}
		i += row;
	}
}
