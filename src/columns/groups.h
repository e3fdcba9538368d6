/*-------------------------------------------------------------------------
 *
 * groups.h
 *	  The groups of a HashGraphAgg: from key columns of a batch to group
 *	  numbers (groups.c), and how keys are hashed and compared
 *	  (group_keys.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_AGG_GROUPS_H
#define HGJ_AGG_GROUPS_H

#include "compat.h"

#include "columns/arena.h"
#include "columns/batch.h"
#include "columns/dictionary.h"
#include "columns/keys.h"

/* The group of a row that has none: the table is full. */
#define HGJ_NO_GROUP		PG_UINT32_MAX

/* A table holds this many groups even if memory is short: progress. */
#define HGJ_FEWEST_GROUPS	64

/* A large map has places for each of its groups, at most. */
#define HGJ_SPARSEST_MAP	16

/* A map is tried with the first batch, and again when rows have shown how many groups come. */
#define HGJ_MOST_MAPS		2

/* A table smaller than this is in the cache anyway: do not prefetch. */
#define HGJ_PREFETCH_BYTES	((Size) 512 * 1024)

/* How the values of a group column are compared. */
typedef enum HgjGroupKeyKind
{
	HGJ_GROUP_WORD,				/* equal datums, by value */
	HGJ_GROUP_FLOAT4,			/* ... but for -0 and NaN */
	HGJ_GROUP_FLOAT8,
	HGJ_GROUP_BYTES,			/* equal bytes, attlen of them */
	HGJ_GROUP_VARLENA,			/* equal bytes of a varlena */
	HGJ_GROUP_PADDED,			/* the same without blanks at the end */
	HGJ_GROUP_OPAQUE,			/* the type's own hash and equality */
	HGJ_GROUP_ENCODED			/* codes, or plain values (dictionary.h) */
} HgjGroupKeyKind;

typedef struct HgjGroupKey
{
	HgjGroupKeyKind kind;		/* of the datums: WORD, while all are codes */
	HgjGroupKeyKind value_kind; /* of values that have no code */
	int			column;			/* of the batch */
	int16		attlen;
	bool		attbyval;
	HgjDictionary *dictionary;	/* the datums are its, or NULL */
	Oid			collation;
	HgjKey		hash;			/* opaque: how to hash ... */
	FmgrInfo	equal;			/* ... and to compare */

	/* the batch at hand, by live row: datums (0 for NULL), and what is NULL */
	Datum	   *values;
	uint8	   *nulls;
	bool		has_nulls;		/* nulls means something */
	bool		ever_nulls;		/* some batch had NULLs */

	/* in a map: values from base on, after one place for NULL */
	int64		base;
	uint32		places;			/* 0: none has been seen */
	uint32		step;			/* in the map, from one to the next */
} HgjGroupKey;

/*
 * A group is a row of `stride` bytes: how many input rows it has, its key
 * datums, a byte for each that says whether it is NULL, and then whatever the
 * aggregates keep (agg_state.h).
 */
typedef struct HgjGroups
{
	int			nkeys;			/* 0: there is one group, number 0 */
	int			ntelling;		/* number of leading keys that tell groups apart: a group
								 * has the values of the others from its first row */
	HgjGroupKey *keys;
	Size		nulls_offset;
	Size		stride;
	char	   *initial;		/* a group without rows */
	uint64		seed;
	double		expected;		/* groups, by the planner */

	char	   *rows;			/* capacity x stride bytes */
	uint32		ngroups;
	uint32		capacity;
	HgjArena	values;			/* by-reference keys */

	uint64	   *slots;			/* high half of the hash, group number + 1 */
	uint32		nslots;			/* a power of two */

	void	   *growing;		/* rows or slots to be, or NULL */
	Size		growing_bytes;

	uint64		rows_seen;		/* live rows of all batches */
	uint8		maps_tried;		/* number of times that a map has been tried (HGJ_MOST_MAPS) */
	bool		direct;			/* the map is used, and not the slots */
	uint32	   *map;			/* group number + 1 (groups_direct.c) */
	uint32		map_size;
	bool		covered;		/* the map has the range that a caller has asked for */

	Size		limit;			/* bytes */
	MemoryContext context;
	MemoryContext states;		/* what aggregates palloc; counts as well, ... */
	Size		more_state_bytes;	/* ... and so do states elsewhere (agg_growing.c) */
	Size		state_bytes;	/* of it per group, by what has been seen */
	uint32		settled;		/* groups whose states are counted for real */
	bool		full;			/* no new groups */

	const HgjBatch *batch;		/* the one at hand */
	bool		loaded;			/* its keys are in their arrays, ... */
	bool		hashed;			/* ... and the hashes of all of its live rows */
	uint32		batch_rows;		/* capacity of the arrays below */
	uint64	   *hashes;			/* by live row */
	uint32	   *of;				/* by live row */
	uint32	   *mismatched;		/* live rows */
	MemoryContext scratch;		/* for functions of types; reset often */
} HgjGroups;

/* groups.c */
extern void hgj_groups_init(HgjGroups *groups, MemoryContext context);
extern void hgj_groups_reserve(HgjGroups *groups, uint32 batch_rows);
extern void hgj_groups_assign(HgjGroups *groups, const HgjBatch *batch);
extern void hgj_groups_only(HgjGroups *groups);
extern bool hgj_groups_make(HgjGroups *groups, uint32 n);
extern uint64 hgj_groups_hash(HgjGroups *groups, uint32 i);
extern void hgj_groups_hash_rows(HgjGroups *groups, const HgjBatch *batch, int nkeys);
extern void hgj_groups_settle(HgjGroups *groups);
extern Size hgj_groups_bytes(const HgjGroups *groups);
extern void hgj_groups_clear(HgjGroups *groups);
extern void hgj_groups_release(HgjGroups *groups);
extern uint32 hgj_groups_add(HgjGroups *groups, uint32 i);
extern void *hgj_groups_allocate(Size bytes);

/* groups_direct.c */
extern bool hgj_groups_can_be_direct(const HgjGroups *groups);
extern bool hgj_groups_assign_direct(HgjGroups *groups, const HgjBatch *batch);
extern void hgj_groups_cover(HgjGroups *groups, int64 least, uint64 width);
extern void hgj_groups_leave_direct(HgjGroups *groups);

/* group_keys.c */
extern bool hgj_extracts_one_of(const Node *expr, const char *const *fields, int nfields);
extern void hgj_group_key_init(HgjGroupKey *key, Node *expr, Oid equality);
extern bool hgj_group_key_looks_equal(const HgjGroupKey *key, Node *expr,
									  Oid equality);
extern void hgj_group_key_use_codes(HgjGroupKey *key,
									HgjDictionary *dictionary);
extern void hgj_group_key_load(HgjGroupKey *key, const HgjBatch *batch);
extern void hgj_group_key_hash(HgjGroups *groups, HgjGroupKey *key,
							   uint32 first, uint32 n);
extern uint32 hgj_group_key_compare(HgjGroups *groups, int k, uint32 n,
									uint32 nmismatched);
extern bool hgj_group_key_equal(HgjGroups *groups, int k, uint32 i,
								const char *row);
extern Datum hgj_group_key_keep(HgjGroups *groups, HgjGroupKey *key,
								Datum value);

/*
 * For the dictionary: the hash of a value, and whether two are equal.  The
 * type's functions run in the scratch context, which is reset.
 */
extern uint64 hgj_group_value_hash(HgjGroupKey *key, uint64 seed,
								   MemoryContext scratch, Datum value);
extern bool hgj_group_values_equal(HgjGroupKey *key, MemoryContext scratch,
								   Datum a, Datum b);

/* Stir the bits of x, so that every bit of the result depends on all. */
static inline uint64
hgj_stir(uint64 x)
{
	x *= UINT64CONST(0x9E3779B97F4A7C15);
	x ^= x >> 32;
	x *= UINT64CONST(0xD6E8FEB86659FD93);
	return x ^ (x >> 32);
}

static inline char *
hgj_group_row(const HgjGroups *groups, uint32 group)
{
	return groups->rows + (Size) group * groups->stride;
}

static inline Datum *
hgj_group_datums(char *row)
{
	return (Datum *) (row + sizeof(int64));
}

#endif							/* HGJ_AGG_GROUPS_H */
