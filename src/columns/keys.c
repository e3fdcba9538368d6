/*-------------------------------------------------------------------------
 *
 * keys.c
 *	  PostgreSQL's equality as words that an engine may compare bit by bit.
 *
 * 1. A clause is a key when its operator is a strict member of a hash operator
 *	  family (the planner has already asked whether it is hashable at all).
 * 2. If the function behind the operator is one of those whose equality is a
 *	  function of a canonical fixed-width word, the key is raw: integers of all
 *	  widths are sign-extended to 64 bits, floats of both widths become a double
 *	  with one zero and one NaN, and so on.  Equal words are equal values.
 * 3. Strings of bytes are text keys (text_words.c): raw while they are short, and
 *	  rechecked where long ones may meet.
 * 4. Every other key is opaque: its word is the hash that the operator family
 *	  gives for the type under the clause's collation, seeded per query where the
 *	  family's extended functions can be relied on.  Equal values have equal
 *	  words, not the other way round: joins recheck.
 *
 * A table of functions rather than of types decides (2), because it is the
 * operator that defines equality: a domain, an enum or a relabelled int4 that
 * is compared with oideq goes by what that function looks at.
 *
 * Nothing here allocates but what the types' own hash functions allocate in
 * the caller's memory context; no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/hash.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_am.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "columns/batch.h"
#include "columns/keys.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/acl.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/inet.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/typcache.h"
#include "utils/uuid.h"

typedef struct RawEquality
{
	Oid			function;
	HgjKeyKind	left;
	HgjKeyKind	right;
} RawEquality;

static const RawEquality raw_equalities[] = {
	{F_BOOLEQ, HGJ_KEY_BOOL, HGJ_KEY_BOOL},
	{F_CHAREQ, HGJ_KEY_CHAR, HGJ_KEY_CHAR},
	{F_INT2EQ, HGJ_KEY_INT2, HGJ_KEY_INT2},
	{F_INT4EQ, HGJ_KEY_INT4, HGJ_KEY_INT4},
	{F_INT8EQ, HGJ_KEY_INT8, HGJ_KEY_INT8},
	{F_INT24EQ, HGJ_KEY_INT2, HGJ_KEY_INT4},
	{F_INT42EQ, HGJ_KEY_INT4, HGJ_KEY_INT2},
	{F_INT28EQ, HGJ_KEY_INT2, HGJ_KEY_INT8},
	{F_INT82EQ, HGJ_KEY_INT8, HGJ_KEY_INT2},
	{F_INT48EQ, HGJ_KEY_INT4, HGJ_KEY_INT8},
	{F_INT84EQ, HGJ_KEY_INT8, HGJ_KEY_INT4},
	{F_OIDEQ, HGJ_KEY_UINT4, HGJ_KEY_UINT4},
	{F_XIDEQ, HGJ_KEY_UINT4, HGJ_KEY_UINT4},
	{F_CIDEQ, HGJ_KEY_UINT4, HGJ_KEY_UINT4},
	{F_ENUM_EQ, HGJ_KEY_UINT4, HGJ_KEY_UINT4},
	{F_DATE_EQ, HGJ_KEY_INT4, HGJ_KEY_INT4},
	{F_TIME_EQ, HGJ_KEY_INT8, HGJ_KEY_INT8},
	{F_TIMESTAMP_EQ, HGJ_KEY_INT8, HGJ_KEY_INT8},
	{F_TIMESTAMPTZ_EQ, HGJ_KEY_INT8, HGJ_KEY_INT8},
	{F_PG_LSN_EQ, HGJ_KEY_INT8, HGJ_KEY_INT8},
	{F_XID8EQ, HGJ_KEY_INT8, HGJ_KEY_INT8},
	{F_FLOAT4EQ, HGJ_KEY_FLOAT4, HGJ_KEY_FLOAT4},
	{F_FLOAT8EQ, HGJ_KEY_FLOAT8, HGJ_KEY_FLOAT8},
	{F_FLOAT48EQ, HGJ_KEY_FLOAT4, HGJ_KEY_FLOAT8},
	{F_FLOAT84EQ, HGJ_KEY_FLOAT8, HGJ_KEY_FLOAT4},
	{F_MACADDR_EQ, HGJ_KEY_BYTES6, HGJ_KEY_BYTES6},
	{F_MACADDR8_EQ, HGJ_KEY_BYTES8, HGJ_KEY_BYTES8},
	{F_UUID_EQ, HGJ_KEY_UUID, HGJ_KEY_UUID}
};

/* Is char(n) in the type, as itself, a base, an element, a field, a bound? */
static bool
contains_bpchar(Oid type)
{
	bool		result = false;
	TupleDesc	desc;

	check_stack_depth();
	type = getBaseType(type);
	if (type == BPCHAROID)
		return true;
	if (OidIsValid(get_element_type(type)))
		return contains_bpchar(get_element_type(type));
	switch (get_typtype(type))
	{
		case TYPTYPE_RANGE:
			return contains_bpchar(get_range_subtype(type));
		case TYPTYPE_MULTIRANGE:
			return contains_bpchar(get_multirange_range(type));
		case TYPTYPE_COMPOSITE:
			desc = lookup_rowtype_tupdesc(type, -1);
			for (int i = 0; i < desc->natts && !result; i++)
				if (!TupleDescAttr(desc, i)->attisdropped)
					result = contains_bpchar(TupleDescAttr(desc, i)->atttypid);
			ReleaseTupleDesc(desc);
			return result;
		default:
			return false;
	}
}

/*
 * Can the extended hash function of this operand's type be relied on?
 *
 * Those of the container types exist for every element type, and fail at run
 * time where the element has none; the planner has only made sure of the
 * 32-bit ones.  And hashbpcharextended() hashes the padding, too, under a
 * nondeterministic collation (PostgreSQL 12 to 15, at least), so that equal
 * values of different declared lengths differ; hashbpchar() does not.
 */
static bool
extended_hash_is_sound(Oid function, Node *operand, Oid collation)
{
	TypeCacheEntry *type;

	switch (function)
	{
		case F_HASHBPCHAREXTENDED:
			return !OidIsValid(collation) ||
				get_collation_isdeterministic(collation);
		case F_HASH_ARRAY_EXTENDED:
		case F_HASH_RECORD_EXTENDED:
		case F_HASH_RANGE_EXTENDED:
		case F_HASH_MULTIRANGE_EXTENDED:
			type = lookup_type_cache(exprType(operand),
									 TYPECACHE_HASH_EXTENDED_PROC);
			return OidIsValid(type->hash_extended_proc) &&
				!contains_bpchar(exprType(operand));
		default:
			return true;
	}
}

/*
 * Find the hash functions that go with an equality operator: those of a hash
 * operator family that has it, for the types of its two sides.  Prefers the
 * extended (seeded, 64-bit) ones, where both sides have them.  Like
 * get_op_hash_functions() of lsyscache.c, which knows only the 32-bit ones.
 */
static bool
find_hash_functions(OpExpr *clause, Oid *left, Oid *right, bool *extended)
{
	static const int16 procs[] = {HASHEXTENDED_PROC, HASHSTANDARD_PROC};
	CatCList   *members = SearchSysCacheList1(AMOPOPID,
											  ObjectIdGetDatum(clause->opno));
	bool		found = false;

	for (int p = 0; p < lengthof(procs) && !found; p++)
	{
		for (int i = 0; i < members->n_members && !found; i++)
		{
			HeapTuple	tuple = &members->members[i]->tuple;
			Form_pg_amop amop = (Form_pg_amop) GETSTRUCT(tuple);

			if (amop->amopmethod != HASH_AM_OID ||
				amop->amopstrategy != HTEqualStrategyNumber)
				continue;
			*left = get_opfamily_proc(amop->amopfamily, amop->amoplefttype,
									  amop->amoplefttype, procs[p]);
			*right = get_opfamily_proc(amop->amopfamily, amop->amoprighttype,
									   amop->amoprighttype, procs[p]);
			found = OidIsValid(*left) && OidIsValid(*right) &&
				(procs[p] == HASHSTANDARD_PROC ||
				 (extended_hash_is_sound(*left, linitial(clause->args),
										 clause->inputcollid) &&
				  extended_hash_is_sound(*right, lsecond(clause->args),
										 clause->inputcollid)));
		}
		*extended = (procs[p] == HASHEXTENDED_PROC);
	}
	ReleaseSysCacheList(members);
	return found;
}

/*
 * The kind of a key that is not raw.  A text key's values are looked at again
 * when they are long, so it has to be a column on both sides.
 */
static HgjKeyKind
text_kind(OpExpr *clause, Oid function)
{
	ListCell   *lc;

	foreach(lc, clause->args)
	{
		if (!IsA(hgj_strip_relabel(lfirst(lc)), Var))
			return HGJ_KEY_OPAQUE;
	}
	if (function == F_BYTEAEQ)
		return HGJ_KEY_TEXT;
	if ((function != F_TEXTEQ && function != F_BPCHAREQ) ||
		!hgj_is_deterministic(clause->inputcollid))
		return HGJ_KEY_OPAQUE;
	return function == F_TEXTEQ ? HGJ_KEY_TEXT : HGJ_KEY_BPCHAR;
}

/* May the user call it?  As PostgreSQL asks when an executor starts. */
void
hgj_check_execute(Oid function, ObjectType type)
{
	if (!hgj_may_execute(function))
		aclcheck_error(ACLCHECK_NO_PRIV, type, get_func_name(function));
	InvokeFunctionExecuteHook(function);
}

/*
 * Say how a hashable clause becomes key words.
 *
 * outer_is_left tells which operand comes from the probe side.  Returns false
 * when the clause cannot be a key: its operator is not strict (then NULLs may
 * match, which keys never do), or it has no hash functions.  Such a clause is
 * a residual.
 */
bool
hgj_key_pair(OpExpr *clause, bool outer_is_left, HgjKeyPair *pair)
{
	Oid			function = get_opcode(clause->opno);
	Oid			left;
	Oid			right;

	memset(pair, 0, sizeof(*pair));
	if (!func_strict(function))
		return false;
	pair->collation = clause->inputcollid;

	for (int i = 0; i < lengthof(raw_equalities); i++)
	{
		const RawEquality *raw = &raw_equalities[i];

		if (raw->function != function)
			continue;
		pair->outer_kind = outer_is_left ? raw->left : raw->right;
		pair->inner_kind = outer_is_left ? raw->right : raw->left;
		pair->nwords = raw->left == HGJ_KEY_UUID ? 2 : 1;
		return true;
	}

	if (!find_hash_functions(clause, &left, &right, &pair->extended))
		return false;
	pair->outer_kind = pair->inner_kind = text_kind(clause, function);
	pair->nwords = hgj_key_is_text(pair->outer_kind) ? HGJ_TEXT_WORDS : 1;
	pair->outer_hash = outer_is_left ? left : right;
	pair->inner_hash = outer_is_left ? right : left;
	return true;
}

/*
 * Write the words of one non-null key datum for row `row` of a batch.
 *
 * May run a type's hash function, and with it anything that function does: it
 * can raise errors and leave garbage in the current memory context.
 */
void
hgj_key_words(HgjKey *key, Datum value, uint64 seed,
			  uint64 *const *words, uint32 row)
{
	uint64		word = 0;

	switch (key->kind)
	{
		case HGJ_KEY_BOOL:
			word = DatumGetBool(value) ? 1 : 0;
			break;
		case HGJ_KEY_CHAR:
			word = (uint64) (unsigned char) DatumGetChar(value);
			break;
		case HGJ_KEY_INT2:
			word = (uint64) (int64) DatumGetInt16(value);
			break;
		case HGJ_KEY_INT4:
			word = (uint64) (int64) DatumGetInt32(value);
			break;
		case HGJ_KEY_INT8:
			word = (uint64) DatumGetInt64(value);
			break;
		case HGJ_KEY_UINT4:
			word = (uint64) DatumGetUInt32(value);
			break;
		case HGJ_KEY_FLOAT4:
			word = hgj_float_word((double) DatumGetFloat4(value));
			break;
		case HGJ_KEY_FLOAT8:
			word = hgj_float_word(DatumGetFloat8(value));
			break;
		case HGJ_KEY_BYTES6:
			memcpy(&word, DatumGetMacaddrP(value), sizeof(macaddr));
			break;
		case HGJ_KEY_BYTES8:
			memcpy(&word, DatumGetMacaddr8P(value), sizeof(macaddr8));
			break;
		case HGJ_KEY_UUID:
			{
				pg_uuid_t  *uuid = DatumGetUUIDP(value);

				memcpy(&words[key->first_word + 1][row], uuid->data + 8, 8);
				memcpy(&word, uuid->data, 8);
				break;
			}
		case HGJ_KEY_TEXT:
		case HGJ_KEY_BPCHAR:
			hgj_text_words(key, value, seed, words, row);
			return;
		case HGJ_KEY_OPAQUE:
			if (key->extended)
				word = DatumGetUInt64(FunctionCall2Coll(&key->hash,
														key->collation, value,
														UInt64GetDatum(seed)));
			else
				word = (uint64) DatumGetUInt32(FunctionCall1Coll(&key->hash,
																 key->collation,
																 value));
			break;
	}
	words[key->first_word][row] = word;
}

/* Words of values that pass by value; those of NULLs mean nothing. */
#define WORDS_OF(type, expression) \
	do { \
		const type *values = (const type *) vector->values + first; \
		for (uint32 i = 0; i < n; i++) \
		{ \
			type		v = values[i]; \
			out[i] = (expression); \
		} \
	} while (0)

/*
 * The words of n values of a vector, from position `first` on.  Rows whose value
 * is NULL get words that mean nothing.
 */
void
hgj_key_words_vector(HgjKey *key, const HgjVector *vector, uint32 first,
					 uint32 n, const HgjKeyWords *to)
{
	uint64	   *out = to->words[key->first_word] + to->row;
	MemoryContext old;

	switch (key->kind)
	{
		case HGJ_KEY_BOOL:
			WORDS_OF(uint8, v ? 1 : 0);
			return;
		case HGJ_KEY_CHAR:
			WORDS_OF(uint8, (uint64) v);
			return;
		case HGJ_KEY_INT2:
			WORDS_OF(int16, (uint64) (int64) v);
			return;
		case HGJ_KEY_INT4:
			WORDS_OF(int32, (uint64) (int64) v);
			return;
		case HGJ_KEY_INT8:
			memcpy(out, (const uint64 *) vector->values + first,
				   n * sizeof(uint64));
			return;
		case HGJ_KEY_UINT4:
			WORDS_OF(uint32, (uint64) v);
			return;
		case HGJ_KEY_FLOAT4:
			WORDS_OF(float4, hgj_float_word((double) v));
			return;
		case HGJ_KEY_FLOAT8:
			WORDS_OF(float8, hgj_float_word(v));
			return;
		case HGJ_KEY_TEXT:
		case HGJ_KEY_BPCHAR:
			hgj_text_words_vector(key, vector, first, n, to);
			return;
		case HGJ_KEY_BYTES6:
		case HGJ_KEY_BYTES8:
		case HGJ_KEY_UUID:
		case HGJ_KEY_OPAQUE:
			break;
	}

	old = MemoryContextSwitchTo(to->scratch);
	for (uint32 i = 0; i < n; i++)
	{
		if (hgj_vector_is_null(vector, first + i))
			continue;
		if (key->kind == HGJ_KEY_OPAQUE)
			CHECK_FOR_INTERRUPTS();
		hgj_key_words(key, hgj_vector_load(vector, first + i), to->seed, to->words,
					  to->row + i);
		if (key->kind == HGJ_KEY_OPAQUE)
			MemoryContextReset(to->scratch);
	}
	MemoryContextSwitchTo(old);
}

/* Are only strings of the same bytes equal under the collation? */
bool
hgj_is_deterministic(Oid collation)
{
	return OidIsValid(collation) && get_collation_isdeterministic(collation);
}

/* Are strings equal under the one collation that are so under the other, and no others? */
bool
hgj_same_equality(Oid collation, Oid other)
{
	return collation == other ||
		(hgj_is_deterministic(collation) && hgj_is_deterministic(other));
}
