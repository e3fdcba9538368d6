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
 * 4. To find a string, look for its rarest byte, by what letters are common in
 *	  writing, and compare the rest there.
 * 5. Most values do not begin as the first string does, which their first eight bytes tell.
 *	  Values are fetched from memory while those before them are looked at.
 * 6. A value that is compressed or stored out of line is fetched; others are looked
 *	  at where they are.
 *
 * Everything is palloc'd in the current context when it is compiled.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "expr/program_private.h"
#include "mb/pg_wchar.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* Step 5: how many rows ahead a value is fetched. */
#define PREFETCH		64

/* What stands between two per cent signs. */
typedef struct Piece
{
	char	   *data;
	uint32		length;			/* not 0, but for the first and the last one */
	uint32		rarest;			/* where the byte is that is looked for */
} Piece;

struct HgjLike
{
	int			npieces;		/* 1: there is no per cent sign */
	Piece	   *pieces;
	uint32		least;			/* bytes that a value must have */
	uint64		head;			/* first bytes of the first piece, as they lie in memory */
	uint64		head_mask;		/* bytes of `head` that count */
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

static uint32
rarest_byte(const Piece *piece)
{
	uint32		best = 0;
	Size		best_rank = 0;

	for (uint32 i = 0; i < piece->length; i++)
	{
		const char *found = memchr(common, piece->data[i], sizeof(common) - 1);
		Size		rank = found ? (Size) (found - common) + 1 : sizeof(common);

		if (rank > best_rank)
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
		like->pieces[i].rarest = rarest_byte(&like->pieces[i]);
		like->least += like->pieces[i].length;
	}
	length = Min(like->pieces[0].length, sizeof(like->head));
	memcpy(&like->head, like->pieces[0].data, length);
	memset(&like->head_mask, 0xFF, length);
	return like;
}

/* Step 4: where the piece stands first, from `data` to `end`; or NULL. */
static const char *
find(const Piece *piece, const char *data, const char *end)
{
	uint32		before = piece->rarest;
	uint32		after = piece->length - before;
	const char *at = data + before;

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
		memcmp(data, first->data, first->length) != 0)
		return false;
	if (like->npieces == 1)
		return true;
	end -= last->length;
	if (memcmp(end, last->data, last->length) != 0)
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

/* Step 5: is it seen from its first bytes that a value does not match? */
static inline bool
begins_otherwise(const HgjLike *like, const char *data, uint32 length)
{
	uint64		head;

	if (length < sizeof(head))
		return false;
	memcpy(&head, data, sizeof(head));
	return ((head ^ like->head) & like->head_mask) != 0;
}

/* The argument has been run. */
void
hgj_like_run(HgjProgram *program, HgjStep *step, uint32 n)
{
	const HgjLike *like = step->like;
	const Datum *values = step->args[0]->values;
	const uint8 *nulls = step->args[0]->nulls;
	uint8	   *out = step->value_buffer;

	for (uint32 i = 0; i < n; i++)
	{
		const struct varlena *text;

		/* NULL's is no address, which does not matter to a prefetch */
		if (i + PREFETCH < n)
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
		out[i] = (!begins_otherwise(like, VARDATA_ANY(text), VARSIZE_ANY_EXHDR(text)) &&
				  matches(like, VARDATA_ANY(text), VARSIZE_ANY_EXHDR(text))) ^ step->invert;
	}
	step->nulls = nulls;
}
