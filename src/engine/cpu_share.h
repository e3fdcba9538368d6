/*-------------------------------------------------------------------------
 *
 * cpu_share.h
 *	  The image of a graph that several processes build: how it begins.
 *
 * Processes map an image at addresses of their own, so that everything in it is
 * found by its distance from the image's first byte; 0: it is not there.  All but
 * the atomic members is written by one participant, before the first barrier, and
 * follows from the plan alone, so that the others need not wait for it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CPU_SHARE_H
#define HGJ_CPU_SHARE_H

#include "cpu_internal.h"

#if defined(__GNUC__)
#pragma GCC visibility push(hidden)
#define HGJ_OWN_LINE __attribute__((aligned(64)))
#else
#define HGJ_OWN_LINE
#endif

/* Everything in an image begins on a cache line. */
#define HGJ_IMAGE_ALIGN		UINT64_C(64)

/* What a participant may take beside a byte per row of its own. */
#define HGJ_SHARE_FIXED(nwords)	(UINT64_C(8192) + UINT64_C(2048) * (nwords))

typedef struct Image
{
	uint64_t	magic;
	uint64_t	bytes;			/* of all of it */
	uint64_t	seed;			/* of the spec */
	uint32_t	nwords;
	uint32_t	flags;
	uint32_t	nparts;
	uint32_t	total_rows;
	Graph		graph;			/* its pointers are NULL; longest is below */
	Filter		filter;			/* the same */
	uint64_t	counts;			/* rows of every bin, a run for each participant */
	uint64_t	counts_stride;	/* bytes of such a run */
	uint64_t	starts;			/* where every bin begins */
	uint64_t	packed;			/* binned entries */
	uint64_t	offsets;
	uint64_t	slices;
	uint64_t	entries;
	uint64_t	bits;
	uint64_t	bits_bytes;
	uint64_t	filter_words;

	/* atomic */
	HGJ_OWN_LINE FilterState filter_state;
	HGJ_OWN_LINE uint32_t next_bin; /* that nobody has taken */
	HGJ_OWN_LINE uint32_t longest;	/* list */
	uint32_t	duplicate;		/* 1: two rows have the same key */
	uint32_t	parts_done;		/* participants whose work is done */
} Image;

/* One call of step. */
typedef struct Step
{
	HgjTable   *table;
	const HgjShareBuild *build;
	Plan		plan;
	Image	   *image;			/* NULL in SHARE_PLAN */
	HgjShareNext *next;
	ShareStage	then;			/* what the next call does */
	HgjError   *err;
} Step;

/* cpu_share_image.c */
extern void hgj_cpu_share_of(const Step *step, uint64_t n, uint64_t *from,
							 uint64_t *to);
extern HgjStatus hgj_cpu_share_fill(Step *step, uint64_t at, int byte,
									uint64_t bytes);
extern HgjStatus hgj_cpu_share_ask(Step *step, const Image *image,
								   const Image *old);
extern HgjStatus hgj_cpu_share_begin(Step *step, const Image *image);
extern HgjStatus hgj_cpu_share_plan(const HgjTable *table,
									const HgjShareBuild *build, Plan *plan,
									HgjError *err);
extern void hgj_cpu_image_bits(const HgjTable *table,
							   const HgjShareBuild *build, const Plan *plan,
							   Image *image);
extern void hgj_cpu_image_unique(const HgjTable *table,
								 const HgjShareBuild *build, const Plan *plan,
								 Image *image);
extern void hgj_cpu_image_binned(const HgjTable *table,
								 const HgjShareBuild *build, const Plan *plan,
								 Image *image);
extern bool hgj_cpu_image_padded(const HgjTable *table, const Image *csr,
								 uint64_t slots, Image *image);

/* cpu_share_pad.c */
extern HgjStatus hgj_cpu_share_segments(Step *step);
extern HgjStatus hgj_cpu_share_pad(Step *step);

/* What is that far into an image. */
HGJ_INLINE void *
image_at(Image *image, uint64_t at)
{
	return (uint8_t *) image + at;
}

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif							/* HGJ_CPU_SHARE_H */
