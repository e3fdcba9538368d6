/*-------------------------------------------------------------------------
 *
 * ops.h
 *	  How values are read, compared and computed with: the words in which both the
 *	  programs over vectors (expr/program_private.h) and the instructions of a
 *	  pipeline (pipeline.h) say it.
 *
 * Their numbers are part of the ABI.  Owns nothing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_OPS_H
#define HGJ_OPS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* How the bits of a value are to be read. */
typedef enum HgjKind
{
	HGJ_KIND_U1,				/* bool, "char" */
	HGJ_KIND_I2,
	HGJ_KIND_I4,				/* date as well */
	HGJ_KIND_I8,				/* time, timestamp, timestamptz as well */
	HGJ_KIND_U4,				/* oid, enum */
	HGJ_KIND_F4,
	HGJ_KIND_F8,
	HGJ_KINDS,					/* those that can be computed with */
	HGJ_KIND_OTHER = HGJ_KINDS	/* nobody looks at the bits */
} HgjKind;

/* Bytes of a value. */
static inline size_t
hgj_kind_width(uint32_t kind)
{
	switch (kind)
	{
		case HGJ_KIND_U1:
			return 1;
		case HGJ_KIND_I2:
			return 2;
		case HGJ_KIND_I4:
		case HGJ_KIND_U4:
		case HGJ_KIND_F4:
			return 4;
		default:
			return 8;
	}
}

typedef enum HgjComparison
{
	HGJ_EQ,
	HGJ_NE,
	HGJ_LT,
	HGJ_LE,
	HGJ_GT,
	HGJ_GE,
	HGJ_COMPARISONS
} HgjComparison;

typedef enum HgjArithmetic
{
	HGJ_ADD,
	HGJ_SUB,
	HGJ_MUL,
	HGJ_DIV,
	HGJ_MOD,
	HGJ_NEG,					/* these have one operand */
	HGJ_ABS,
	HGJ_ARITHMETICS
} HgjArithmetic;

/* A float8, and the word that has its bits. */
static inline double
hgj_word_float8(uint64_t word)
{
	double		value;

	memcpy(&value, &word, sizeof(value));
	return value;
}

static inline uint64_t
hgj_float8_word(double value)
{
	uint64_t	word;

	memcpy(&word, &value, sizeof(word));
	return word;
}

/* A float4, and the word that has its bits in the lower half. */
static inline float
hgj_word_float4(uint64_t word)
{
	uint32_t	half = (uint32_t) word;
	float		value;

	memcpy(&value, &half, sizeof(value));
	return value;
}

static inline uint64_t
hgj_float4_word(float value)
{
	uint32_t	half;

	memcpy(&half, &value, sizeof(half));
	return half;
}

/*
 * The word that stands for all floats equal to this one: -0 is 0, and all NaNs
 * are one.
 */
static inline uint64_t
hgj_float_word(double value)
{
	return value != value ? (uint64_t) INT64_MAX : hgj_float8_word(value + 0.0);
}

#endif							/* HGJ_OPS_H */
