/*-------------------------------------------------------------------------
 *
 * program_part.c
 *	  Parts of strings, counted in characters from their beginning: substring() and
 *	  substr() with two constant numbers, and left(), of text, varchar and char(n).
 *
 * 1. The numbers are such that no value can make an error of them: a length from 0, and
 *	  no more characters than a few.  All else is left to PostgreSQL's functions
 *	  (program_call.c).
 * 2. Of char(n), which becomes text first, blanks at the end do not count.
 * 3. Characters are counted in UTF-8, and where each has a byte.  Other encodings are left
 *	  to PostgreSQL's functions.
 * 4. A value that is compressed or stored out of line is fetched; others are looked at
 *	  where they are.
 *
 * Memory: the results of a chunk of rows are in the context of the program's numerics,
 * and live as long as these do; what is fetched is freed at the end of the chunk.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/detoast.h"
#include "catalog/pg_type.h"
#include "expr/program_private.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"

/* Step 1: characters that are skipped, and taken, at most. */
#define MOST_SKIPPED	1000
#define MOST_TAKEN		16

struct HgjPart
{
	int			skipped;		/* number of characters before it */
	int			taken;			/* number of its characters, at most */
	int			most_bytes;		/* bytes that a character has at most */
	bool		padded;			/* step 2 */
};

/* A number that is the same for all rows, as it is written. */
static bool
take_number(Node *node, int32 *number)
{
	const Const *constant = (const Const *) node;

	if (!IsA(node, Const) || constant->constisnull || constant->consttype != INT4OID)
		return false;
	*number = DatumGetInt32(constant->constvalue);
	return true;
}

/* Step 1: which characters does it take?  The first one is number 1. */
static bool
take_numbers(Oid funcid, List *args, HgjPart *part)
{
	int32		first = 1;
	int32		length;

	switch (funcid)
	{
		case F_SUBSTRING_TEXT_INT4_INT4:
		case F_SUBSTR_TEXT_INT4_INT4:
			if (!take_number(lsecond(args), &first) || !take_number(lthird(args), &length))
				return false;
			break;
		case F_LEFT:
			if (!take_number(lsecond(args), &length))
				return false;
			break;
		default:
			return false;
	}
	if (length < 0 || length > MOST_TAKEN || first < -MOST_SKIPPED || first > MOST_SKIPPED)
		return false;
	part->skipped = Max(first, 1) - 1;
	part->taken = Max(first + length - Max(first, 1), 0);
	return true;
}

/*
 * Is it a part of a string, and of which?  The string's expression goes to *string, and the function
 * that makes text of it, and is not called, to *cast; InvalidOid: there is none.
 */
HgjPart *
hgj_part_make(Oid funcid, List *args, Expr **string, Oid *cast)
{
	HgjPart		taken = {0};
	HgjPart    *part;
	FuncExpr   *function;

	taken.most_bytes = pg_database_encoding_max_length();
	if ((GetDatabaseEncoding() != PG_UTF8 && taken.most_bytes > 1) ||
		!take_numbers(funcid, args, &taken))
		return NULL;
	*string = linitial(args);
	*cast = InvalidOid;
	function = (FuncExpr *) *string;
	if (IsA(function, FuncExpr) && function->funcid == F_TEXT_BPCHAR)
	{
		taken.padded = true;
		*cast = function->funcid;
		*string = linitial(function->args);
	}
	part = palloc(sizeof(HgjPart));
	*part = taken;
	return part;
}

/* Where this number of characters ends, or the value does. */
static inline const char *
skip(const HgjPart *part, int characters, const char *data, const char *end)
{
	if (part->most_bytes == 1)
		return data + Min((ptrdiff_t) characters, end - data);
	for (; characters > 0 && data < end; characters--)
		data += pg_utf_mblen((const unsigned char *) data);
	return Min(data, end);
}

/* The part of one value, at `into`. */
static void
take_part(const HgjPart *part, Datum value, text *into)
{
	/* compressed or elsewhere; it may be megabytes */
	const struct varlena *stored = pg_detoast_datum_packed((struct varlena *) DatumGetPointer(value));
	const char *data = VARDATA_ANY(stored);
	const char *end = data + VARSIZE_ANY_EXHDR(stored);
	const char *from;
	const char *to;

	while (part->padded && end > data && end[-1] == ' ')
		end--;
	from = skip(part, part->skipped, data, end);
	to = skip(part, part->taken, from, end);
	SET_VARSIZE(into, VARHDRSZ + (to - from));
	memcpy(VARDATA(into), from, to - from);
}

/* The argument has been run. */
void
hgj_part_run(HgjProgram *program, HgjStep *step, uint32 n)
{
	const HgjPart *part = step->part;
	const Datum *values = step->args[0]->values;
	const uint8 *nulls = step->args[0]->nulls;
	Size		stride = MAXALIGN(VARHDRSZ + part->taken * part->most_bytes);
	char	   *room = MemoryContextAlloc(hgj_program_numerics(program), n * stride);
	Datum	   *out = step->value_buffer;
	MemoryContext old = MemoryContextSwitchTo(program->calls);

	for (uint32 i = 0; i < n; i++)
	{
		out[i] = 0;
		if (nulls && nulls[i])
			continue;
		if (VARATT_IS_EXTENDED(DatumGetPointer(values[i])) &&
			!VARATT_IS_SHORT(DatumGetPointer(values[i])))
			CHECK_FOR_INTERRUPTS();
		take_part(part, values[i], (text *) (room + i * stride));
		out[i] = PointerGetDatum(room + i * stride);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(program->calls);
	step->nulls = nulls;
}
