/*-------------------------------------------------------------------------
 *
 * arrays.h
 *	  The parts of a kept chunk that engines copy, in their terms (engine/pipeline.h, KEPT
 *	  ROWS): whoever describes one has to say the same of it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_ARRAYS_H
#define HGJ_ARRAYS_H

#include "engine/engine.h"
#include "kept/chunk.h"

static inline HgjKeptArray
hgj_chunk_array(const HgjChunkHead *head, uint64 at, uint64 bytes)
{
	return (HgjKeptArray) {
		head->id, head->at + at, bytes
	};
}

/* The numbers of its rows; decimals: those of numerics, as integers. */
static inline HgjKeptArray
hgj_chunk_numbers(const HgjChunkHead *head, bool decimals)
{
	return hgj_chunk_array(head, decimals ? head->decimals : head->numbers,
						   hgj_numbers_bytes(decimals ? head->decimal_width : head->width,
											 head->nrows));
}

/* Which of them are not NULL; without bytes: all. */
static inline HgjKeptArray
hgj_chunk_validity(const HgjChunkHead *head)
{
	return hgj_chunk_array(head, head->validity,
						   head->has_nulls ? (head->nrows + 63) / 64 * sizeof(uint64) : 0);
}

#endif							/* HGJ_ARRAYS_H */
