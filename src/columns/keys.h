/*-------------------------------------------------------------------------
 *
 * keys.h
 *	  Join keys as an engine sees them: canonical words (keys.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_KEYS_H
#define HGJ_KEYS_H

#include "compat.h"

#include "engine/engine.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/parsenodes.h"
#include "nodes/primnodes.h"

/* How one side's datum becomes words. */
typedef enum HgjKeyKind
{
	HGJ_KEY_BOOL,
	HGJ_KEY_CHAR,
	HGJ_KEY_INT2,
	HGJ_KEY_INT4,
	HGJ_KEY_INT8,
	HGJ_KEY_UINT4,				/* oid, xid, cid, enum */
	HGJ_KEY_FLOAT4,
	HGJ_KEY_FLOAT8,
	HGJ_KEY_BYTES6,				/* macaddr; from here on by reference */
	HGJ_KEY_BYTES8,				/* macaddr8 */
	HGJ_KEY_UUID,				/* two words */
	HGJ_KEY_TEXT,				/* text, bytea: bytes; words (text_words.c) */
	HGJ_KEY_BPCHAR,				/* the same without trailing blanks */
	HGJ_KEY_OPAQUE				/* the type's own hash; matches are rechecked */
} HgjKeyKind;

/* What a hash clause (outer op inner) says about one key column. */
typedef struct HgjKeyPair
{
	HgjKeyKind	outer_kind;
	HgjKeyKind	inner_kind;
	uint32		nwords;
	Oid			collation;
	Oid			outer_hash;		/* opaque, text: the types' hash functions */
	Oid			inner_hash;
	bool		extended;		/* they take a seed and return 64 bits */
} HgjKeyPair;

/* One key column of one side, ready to run. */
typedef struct HgjKey
{
	HgjKeyKind	kind;
	AttrNumber	attno;			/* a plain column of the child, or 0 */
	ExprState  *expr;			/* otherwise */
	uint32		first_word;
	uint32		nwords;
	Oid			collation;
	bool		extended;
	FmgrInfo	hash;			/* opaque */
} HgjKey;

struct HgjVector;

/* Words of a text key: at least, and at most if its values are long. */
#define HGJ_TEXT_WORDS		2
#define HGJ_TEXT_MOST_WORDS 5

/* A value of up to so many bytes is its words; a longer one is hashed. */
#define HGJ_TEXT_PACKED(nwords) (8 * (nwords) - 1)

/* Is the word the value, as an integer with its sign? */
static inline bool
hgj_key_is_integer(HgjKeyKind kind)
{
	return kind == HGJ_KEY_INT2 || kind == HGJ_KEY_INT4 || kind == HGJ_KEY_INT8;
}

/* Does equality of the words depend on the length of the value? */
static inline bool
hgj_key_is_text(HgjKeyKind kind)
{
	return kind == HGJ_KEY_TEXT || kind == HGJ_KEY_BPCHAR;
}

/* 64 x 64 -> 128 bits, folded to 64, as the engines' hashes do. */
static inline uint64
hgj_fold(uint64 a, uint64 b)
{
	uint128		product = (uint128) a * b;

	return (uint64) (product >> 64) ^ (uint64) product;
}

/*
 * Loops over the values of a batch call this before they look at so many bytes
 * of one: a batch of rows that share a value of megabytes has gigabytes to
 * hash or to compare.
 */
static inline void
hgj_before_value(Size bytes)
{
	if (unlikely(bytes > 64 * 1024))
		CHECK_FOR_INTERRUPTS();
}

/* The operand without the relabelling that does not change its bits; NULL stays NULL. */
static inline Expr *
hgj_strip_relabel(Expr *expr)
{
	while (expr && IsA(expr, RelabelType))
		expr = ((RelabelType *) expr)->arg;
	return expr;
}

/* Where the words of many values go, and what they are made with. */
typedef struct HgjKeyWords
{
	uint64	   *const *words;	/* of a batch, column by column */
	uint32		row;			/* where the first value's words go */
	uint64		seed;
	MemoryContext scratch;		/* what a type's hash function may leave garbage
								 * in; reset */
} HgjKeyWords;

extern void hgj_check_execute(Oid function, ObjectType type);
extern bool hgj_key_pair(OpExpr *clause, bool outer_is_left, HgjKeyPair *pair);
extern void hgj_key_words(HgjKey *key, Datum value, uint64 seed,
						  uint64 *const *words, uint32 row);
extern void hgj_key_words_vector(HgjKey *key, const struct HgjVector *vector,
								 uint32 first, uint32 n, const HgjKeyWords *to);

/* In the last word's highest byte: more bytes than can be packed. */
#define HGJ_TEXT_LONG_MARK	(UINT64CONST(0xFF) << 56)

extern uint32 hgj_text_nwords(int32 average_width);
extern void hgj_text_words(const HgjKey *key, Datum value, uint64 seed,
						   uint64 *const *words, uint32 row);
extern void hgj_text_words_vector(const HgjKey *key,
								  const struct HgjVector *vector, uint32 from,
								  uint32 n, const HgjKeyWords *to);
extern const struct varlena *hgj_text_placeholder(void);
extern bool hgj_text_equal(HgjKeyKind kind, Datum outer, Datum inner);
extern bool hgj_is_deterministic(Oid collation);
extern bool hgj_same_equality(Oid collation, Oid other);

#endif							/* HGJ_KEYS_H */
