/*-------------------------------------------------------------------------
 *
 * test_pipeline.h
 *	  What the tests of pipelines share: one shape of instructions with everything
 *	  around it at random, and the plain reference for it (pipeline_case.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_TEST_PIPELINE_H
#define HGJ_TEST_PIPELINE_H

#include "test.h"

#define NROWS		30000
#define NBUILD		1500
#define NKEYS		700

enum
{
	IN_A,						/* first key word of join 0 */
	IN_A2,						/* second */
	IN_B,						/* key of join 1 */
	IN_V,
	IN_F,
	IN_U,
	NINPUTS
};

typedef enum Keys
{
	KEYS_NONE,
	KEYS_DENSE,					/* payload columns, bounded */
	KEYS_HASHED,				/* input columns */
	KEYS_SORTS
} Keys;

/* Input rows that are dropped besides. */
typedef enum Bounds
{
	BOUNDS_NONE,
	BOUNDS_RANGE,				/* unless -50 <= a < 400 */
	BOUNDS_NOT,					/* unless a <> 7 */
	BOUNDS_FLOAT,				/* unless f > -20 */
	BOUNDS_SORTS
} Bounds;

typedef struct Case
{
	uint32_t	nwords;			/* of join 0 */
	bool		pass[2];
	bool		fill[2];
	bool		single[2];
	bool		residual;
	bool		behind;			/* a filter behind the first MATCH */
	bool		drop;			/* input rows where u is not true */
	uint8_t		top;			/* a register that is set, for its number's sake */
	bool		unique;			/* keys of the builds */
	bool		no_nulls;		/* of the inputs, */
	bool		no_null_payload;	/* of the builds' columns */
	Bounds		bounds;
	bool		many;			/* copies of v, behind the bounds' registers */
	Keys		keys;
} Case;

/* More registers than a warp's tile has room for, all of which are read at the end. */
#define NCOPIES		20
#define COPIES		13

/* A value that may be NULL. */
typedef struct Cell
{
	int64_t		value;
	bool		null;
} Cell;

typedef struct Build
{
	HgjTable   *table;
	uint64_t	words[2][NBUILD];
	Cell		payload[NBUILD];
} Build;

/* What the reference has counted, as HgjPipelineInfo has it. */
typedef struct Counted
{
	uint64_t	joined[2];
	uint64_t	filtered;		/* of join 0 */
	uint64_t	removed;
	uint64_t	dropped;
} Counted;

/* A row that ends: the rows of builds, or HGJ_PIPE_NO_ROW. */
typedef void (*RowEnd) (const Case *c, uint32_t row, const uint32_t *rows);

/* Poll's argument: cancels every `every`th call, if that is not 0. */
typedef struct PipeCancel
{
	uint32_t	every;
	uint32_t	calls;
	uint32_t	cancelled;
} PipeCancel;

#define CODE(...) code[n++] = (HgjPipeInstruction) {__VA_ARGS__}

/* pipeline_case.c */
extern Cell pipe_inputs[NINPUTS][NROWS];
extern Build pipe_builds[2];
extern bool pipe_has_nulls;
extern HgjPipelineTerms pipe_terms; /* of the last pipe_spec(), for callers of pipe_caller() */

extern void pipe_set_join(Case *c, int j, uint32_t type);
extern void pipe_vary(Case *c);
extern void pipe_make(const Case *c);
extern void pipe_unmake(void);
extern Counted pipe_reference(const Case *c, RowEnd end);
extern HgjPipelineSpec pipe_spec(const Case *c);
extern HgjPipelineCaller pipe_caller(void);
extern void pipe_send_payload(HgjPipeline *p, const HgjPipelineSpec *spec);
extern HgjStatus pipe_push(HgjPipeline *p, uint32_t first, uint32_t *n, HgjError *err);
extern HgjStatus pipe_push_all(HgjPipeline *p, uint32_t percent, uint64_t *kept,
							   HgjError *err);
extern int	pipe_cancel(void *arg);
extern HgjStatus pipe_fetch(HgjPipeline *p, HgjPipeRows *rows, HgjError *err);

/* pipeline_kept.c */
extern void pipe_keep(void);
extern HgjStatus pipe_push_kept(HgjPipeline *p, uint32_t first, uint32_t *n, HgjError *err);
extern HgjStatus pipe_push_unsound(HgjPipeline *p, int way, HgjError *err);
extern HgjStatus pipe_push_not_there(HgjPipeline *p, HgjError *err);
#define UNSOUND_KEPT	9
extern void pipe_check_copies(void);

#endif							/* HGJ_TEST_PIPELINE_H */
