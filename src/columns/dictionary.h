/*-------------------------------------------------------------------------
 *
 * dictionary.h
 *	  Values of a column as small integers (dictionary.c).
 *
 * In the place of a value stands a datum that is either its code, below 2^31,
 * or, when the dictionary has become full, the value itself: a pointer, shifted
 * so that its highest bit can say so.  A value that has a code is never plain.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_DICTIONARY_H
#define HGJ_DICTIONARY_H

#include "compat.h"

#include "columns/arena.h"
#include "nodes/nodes.h"

typedef struct HgjDictionary HgjDictionary;

#define HGJ_MOST_CODES		(UINT32_C(1) << 31)

#define HGJ_PLAIN_BIT		(UINT64CONST(1) << 63)
#define HGJ_PLAIN_SHIFT		3	/* pointers into an arena are MAXALIGNed */

StaticAssertDecl(MAXIMUM_ALIGNOF == 1 << HGJ_PLAIN_SHIFT && SIZEOF_DATUM == 8,
				 "a pointer must leave room for a bit");

static inline bool
hgj_datum_is_plain(Datum datum)
{
	return ((uint64) datum & HGJ_PLAIN_BIT) != 0;
}

static inline Datum
hgj_plain_datum(Datum pointer)
{
	return (Datum) (((uint64) pointer >> HGJ_PLAIN_SHIFT) | HGJ_PLAIN_BIT);
}

static inline Datum
hgj_plain_value(Datum datum)
{
	return (Datum) ((uint64) datum << HGJ_PLAIN_SHIFT);
}

extern HgjDictionary *hgj_dictionary_create(MemoryContext context, Node *expr,
											Oid equality, int16 attlen,
											HgjAccount *account);
extern HgjDictionary *hgj_dictionary_create_of_bytes(MemoryContext context,
													 int16 attlen);
extern void hgj_dictionary_limit(HgjDictionary *dictionary, Size limit);
extern Datum hgj_dictionary_code(HgjDictionary *dictionary, Datum value,
								 HgjArena *arena);
extern bool hgj_dictionary_find(HgjDictionary *dictionary, Datum value,
								uint32 *code);
extern Datum hgj_dictionary_value(const HgjDictionary *dictionary, Datum datum);
extern Datum hgj_dictionary_copy(const HgjDictionary *dictionary, uint32 code,
								 HgjArena *arena);
extern uint32 hgj_dictionary_size(const HgjDictionary *dictionary);
extern void hgj_dictionary_refill(HgjDictionary *dictionary, const Datum *values,
								  uint32 n, bool full);
extern bool hgj_dictionary_is_full(const HgjDictionary *dictionary);
extern Size hgj_dictionary_bytes(const HgjDictionary *dictionary);

#endif							/* HGJ_DICTIONARY_H */
