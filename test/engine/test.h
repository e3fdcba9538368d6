/*-------------------------------------------------------------------------
 *
 * test.h
 *	  What the files of the engine's ABI test suite share.
 *
 * The suite takes an engine by name, and compares it with a reference that
 * sorts the build rows and searches them by halving.  Random choices come
 * from one seed, which is printed and can be given.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_TEST_H
#define HGJ_TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "hgj_memory.h"
#include "random.h"
#include "registry.h"

#define COUNT_OF(a) ((int) (sizeof(a) / sizeof((a)[0])))

/* What the first key word of the rows looks like. */
typedef enum Shape
{
	SHAPE_NARROW,				/* random, in 31 bits */
	SHAPE_WIDE,					/* random, in 64 bits */
	SHAPE_DENSE,				/* a permutation of a range, unique */
	SHAPE_DENSE_DUP,			/* random in a range as large as n / 2 */
	SHAPE_SAME,					/* one key */
	SHAPE_SKEW,					/* Zipf-like: few keys have most rows */
	SHAPE_EXTREME,				/* INT64_MIN, INT64_MAX, 0, -1 and around */
	SHAPE_HIGH,					/* multiples of 2^32 */
	SHAPE_SPARSE,				/* multiples of 3001, a third of them there twice */
	SHAPE_COUNT
} Shape;

/* Rows, owned: columns, an optional selection, optional row ids. */
typedef struct Rows
{
	uint32_t	n;
	uint32_t	nwords;
	uint64_t   *words[HGJ_MAX_KEY_WORDS];
	uint32_t   *sel;			/* or NULL */
	uint32_t	nsel;
	uint32_t   *row_ids;		/* or NULL: first_row + i */
	uint32_t	first_row;
} Rows;

typedef struct Pair
{
	uint32_t	probe;
	uint32_t	build;
} Pair;

/* Build rows (key, id) as the reference knows them, sorted by key. */
typedef struct Reference
{
	uint32_t	unwanted;		/* HGJ_TABLE_KEYS_ONLY, HGJ_TABLE_FIRST_MATCH: what is not
								 * to be compared */
	uint32_t	nwords;
	uint64_t	n;
	uint64_t	capacity;
	uint64_t   *entries;		/* nwords key words, then the id */
} Reference;

typedef struct Pairs
{
	Pair	   *pairs;
	uint64_t	n;
	uint64_t	capacity;
} Pairs;

extern const HgjEngine *engine;
extern bool is_cpu;				/* memory hooks work on it */
extern uint64_t seed;
extern int	passed;
extern int	failed;

/* test.c */
extern bool check(bool ok, const char *file, int line, const char *fmt,...)
	__attribute__((format(printf, 4, 5)));
#define CHECK(ok, ...) check((ok), __FILE__, __LINE__, __VA_ARGS__)
#define CHECK_STATUS(call, want) \
	do { \
		HgjStatus status_ = (call); \
		CHECK(status_ == (want), "%s: %s, expected %s", #call, \
			  hgj_status_name(status_), hgj_status_name(want)); \
	} while (0)

/* Name what is being tested: failures print it. */
extern void context(const char *fmt,...) __attribute__((format(printf, 1, 2)));

/* Whether to run this combination (HGJ_TEST_SHARE=n: one in n, at random). */
extern bool in_share(void);

/* Whether there are combinations that are not run. */
extern bool is_part(void);


/* data.c */
extern Rows rows_make(Shape shape, uint32_t nwords, uint32_t n, uint64_t salt);
extern Rows rows_probe(const Rows *build, uint32_t n, uint32_t hit_percent);
extern void rows_select(Rows *rows, uint32_t keep_percent);
extern void rows_number(Rows *rows, uint32_t first, bool shuffled);
extern void rows_free(Rows *rows);
extern HgjKeys rows_keys(const Rows *rows);
extern uint32_t rows_id(const Rows *rows, uint32_t i);
extern bool rows_selected(const Rows *rows, uint32_t *cursor, uint32_t *i);
extern const char *shape_name(Shape shape);

/* reference.c */
extern void ref_init(Reference *ref, uint32_t nwords);
extern void ref_init_spec(Reference *ref, const HgjTableSpec *spec);
extern void ref_free(Reference *ref);
extern void ref_add(Reference *ref, const Rows *rows);
extern uint64_t ref_remove(Reference *ref, const Rows *rows, bool by_id);
extern void ref_pairs(Reference *ref, const Rows *probe, Pairs *pairs);
extern void pairs_add(Pairs *pairs, uint32_t probe, uint32_t build);
extern void pairs_sort(Pairs *pairs);
extern void pairs_forget(Pairs *pairs, uint32_t unwanted);
extern void pairs_free(Pairs *pairs);

/* compare.c: run probes, compare with the reference */
extern HgjTableSpec spec_default(uint32_t nwords);
extern HgjTable *table_of(const HgjTableSpec *spec, const Rows *rows);
extern void compare_probe(HgjTable *table, Reference *ref, const Rows *probe,
						  uint32_t capacity, uint32_t flags, uint32_t total);
extern void compare_marks(HgjTable *table, const Pairs *pairs, uint32_t total);
extern int	poll_count(void *arg);

typedef struct PollState
{
	uint64_t	calls;
	uint64_t	cancel_at;		/* 0 = never */
} PollState;

/* the tests */
extern void test_join_matrix(void);
extern void test_join_random(void);
extern void test_join_large(void);
extern void test_skip(void);
extern void test_filter(void);
extern void test_sift(void);
extern void test_filter_threads(void);
extern void test_at_once(void);
extern void test_dynamic(void);
extern void test_cancel(void);
extern void test_no_memory(void);
extern void test_limit(void);
extern void test_accounting(void);
extern void test_invalid(void);
extern void test_choices(void);
extern void test_spread(void);
extern void test_watch(void);
extern void test_registry(void);
extern void test_pauses(void);
extern void test_share(void);
extern void test_share_cancel(void);
extern void test_share_steps(void);
extern void test_pipeline(void);
extern void test_pipeline_alone(void);
extern void test_pipeline_fill(void);
extern void test_pipeline_rows(void);
extern void test_pipeline_long(void);

#endif							/* HGJ_TEST_H */
