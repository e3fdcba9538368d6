/*-------------------------------------------------------------------------
 *
 * dictionary.h
 *	  Values of a column as small integers (dictionary.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_DICTIONARY_H
#define HGJ_DICTIONARY_H

#include "compat.h"

typedef struct HgjDictionary HgjDictionary;

extern HgjDictionary *hgj_dictionary_create(MemoryContext context, Oid eqop,
											Oid collation, int16 attlen);
extern uint32 hgj_dictionary_code(HgjDictionary *dictionary, Datum value);
extern Datum hgj_dictionary_value(const HgjDictionary *dictionary, uint32 code);
extern uint32 hgj_dictionary_size(const HgjDictionary *dictionary);
extern Size hgj_dictionary_bytes(const HgjDictionary *dictionary);

#endif							/* HGJ_DICTIONARY_H */
