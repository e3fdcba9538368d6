/*-------------------------------------------------------------------------
 *
 * cpu_probe.h
 *	  What the two probe algorithms of the CPU engine share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CPU_PROBE_H
#define HGJ_CPU_PROBE_H

#include "cpu_internal.h"

#if defined(__GNUC__)
#pragma GCC visibility push(hidden)
#endif

/*
 * Probe rows that are looked up together: enough to keep all of a core's
 * outstanding memory requests busy, few enough for the L1 cache.
 */
#define HGJ_GROUP	64

/* Rows that a direct table of unique keys looks up together, or a filter is asked about:
 * their words are fetched at the same time. */
#define HGJ_UNIQUE_ROWS	256
#define HGJ_TEST_ROWS	HGJ_UNIQUE_ROWS

/* Rows whose codes are known, and whose vertices' slots are on their way. */
typedef struct Ahead
{
	uint32_t	first;			/* row of the order */
	uint32_t	next;			/* the first row after them; 0 = there are none */
	uint32_t	n;				/* of them, rows that may match */
	uint32_t	row[HGJ_GROUP];
	uint64_t	key[HGJ_GROUP]; /* narrow: key - base; wide: key; else code */
	uint64_t	code[HGJ_GROUP];
} Ahead;

typedef struct Group
{
	uint32_t	n;				/* rows whose list may hold a match */
	uint32_t	at;				/* the one being walked */
	uint64_t	edges;			/* entries in all of their lists */
	uint32_t	row[HGJ_GROUP];
	uint64_t	key[HGJ_GROUP]; /* narrow: key - base; wide: key; else code */
	uint64_t	code[HGJ_GROUP];
	uint64_t	from[HGJ_GROUP];	/* next slot to look at */
	uint64_t	to[HGJ_GROUP];
} Group;

/* A probe row in its bin; for narrow keys, a NarrowEntry takes its place. */
typedef struct BinnedRow
{
	uint64_t	key;			/* the key, or with several words, the code */
	uint32_t	row;
	uint32_t	unused;
} BinnedRow;

/* Where a probe stands, so that a cancelled call can be taken back. */
typedef struct Cursor
{
	uint32_t	group;			/* first row (of the order) of the group */
	uint32_t	at;
	uint64_t	from;
	uint64_t	to;
	uint64_t	vertex;
	uint32_t	returned;
	bool		staged;
} Cursor;

struct HgjProbe
{
	HgjTable   *table;
	HgjKeys		keys;			/* borrowed */
	HgjProbeMode mode;
	uint32_t	flags;
	bool		begun;
	bool		done;
	bool		binned;			/* this batch was */
	bool		staged;			/* the group is filled */
	uint32_t	total;			/* rows in the order */
	uint32_t	group_first;	/* the group's first row in the order */
	uint32_t	next;			/* the next group's */
	uint32_t	returned;		/* quotients: matches of row `next` so far */
	uint64_t	vertex;			/* dynamic: being walked; else unused */
	uint64_t	steps;			/* since poll was last called */
	void	   *rows;			/* the order, when binned */
	size_t		rows_bytes;
	bool		filtering;		/* batches are tested first */
	bool		filter_refused;
	uint64_t	window_rows;	/* looked up or tested since it was decided */
	uint64_t	window_hits;	/* of them, matched or passed */
	uint64_t	window_out;		/* rows whose key is out of range, besides */
	uint32_t   *passed;			/* the selection, when filtered */
	size_t		passed_bytes;
	Ahead		ahead;
	Group		group;
};

/* cpu_direct.c */
extern uint32_t hgj_cpu_probe_unique(HgjProbe *probe, uint32_t n,
									 uint32_t *probe_rows,
									 uint32_t *build_rows);

/* cpu_probe_stage.c */
extern void hgj_cpu_probe_stage(HgjProbe *probe, uint32_t first);

/* cpu_bits.c */
extern uint32_t hgj_cpu_probe_bits(HgjProbe *probe, uint32_t n,
								   uint32_t *probe_rows,
								   uint32_t *build_rows);

/* cpu_quotient.c */
extern HgjStatus hgj_cpu_probe_quotients(HgjProbe *probe, HgjMatches *matches,
										 HgjError *err);

/* cpu_filter.c */
extern uint32_t hgj_cpu_test_block(const HgjProbe *probe, uint32_t at, uint32_t n,
								   uint32_t *out);
extern HgjStatus hgj_cpu_probe_filter(HgjProbe *probe, HgjError *err);
extern void hgj_cpu_probe_free_filter(HgjProbe *probe);

/* cpu_filter_vector.c */
extern bool hgj_cpu_has_vectors(void);
extern uint32_t hgj_cpu_test_keys(const HgjProbe *probe, uint32_t at, uint32_t n,
								  uint32_t *out, uint32_t *done);

/* cpu_filter_packed.c */
extern bool hgj_cpu_reads_packed(const Filter *filter);
extern uint32_t hgj_cpu_test_packed(const Filter *filter, const HgjPackedKeys *keys,
									uint32_t *rows);

/* cpu_probe_binned.c */
extern void hgj_cpu_probe_codes(const HgjProbe *probe, uint32_t first,
								uint32_t n, uint64_t *codes);
extern HgjStatus hgj_cpu_probe_bin(HgjProbe *probe, HgjError *err);
extern void hgj_cpu_probe_free_bins(HgjProbe *probe);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif							/* HGJ_CPU_PROBE_H */
