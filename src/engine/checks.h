/*-------------------------------------------------------------------------
 *
 * checks.h
 *	  What every engine refuses, in the same words, and match bits that are in
 *	  the host's memory; for the CPU's engine, for CUDA's, and for test/fake's.
 *
 * Owns nothing, locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CHECKS_H
#define HGJ_CHECKS_H

#include "engine.h"

#if defined(__GNUC__)
#pragma GCC visibility push(hidden)
#endif
#ifdef __cplusplus
extern "C"
{
#endif

/* What a sound pipeline's instructions are found to be. */
typedef struct HgjPipelineFacts
{
	uint64_t	set;			/* bits of the registers that one of them sets */
	uint32_t	registers;		/* one more than the highest of these */
	struct
	{
		uint32_t	after_probe;	/* instructions */
		uint32_t	after_match;
		bool		filtered;	/* a FILTER stands between the two */
	}			joins[HGJ_PIPE_JOINS];
} HgjPipelineFacts;

/* Does an instruction set a register? */
static inline bool
hgj_pipe_has_result(uint32_t op)
{
	return op >= HGJ_PIPE_INPUT && op <= HGJ_PIPE_KEY_WORD;
}

/* May the instruction at `arg` be the next one? */
static inline bool
hgj_pipe_jumps(uint32_t op)
{
	return op >= HGJ_PIPE_JUMP && op <= HGJ_PIPE_JUMP_VALID;
}

/* How many rows of a batch take part. */
static inline uint32_t
hgj_key_count(const HgjKeys *keys)
{
	return keys->nrows == 0 ? 0 : keys->sel != NULL ? keys->nsel : keys->nrows;
}

/* Match bits, one per row id below total_rows; NULL: there are none. */
typedef struct HgjMarks
{
	uint64_t   *bits;
	uint32_t	total_rows;
} HgjMarks;

/* HgjEngine.is_marked: false for anything that has no bit. */
static inline bool
hgj_marks_has(HgjMarks marks, uint32_t row)
{
	return marks.bits != NULL && row < marks.total_rows &&
		(marks.bits[row / 64] >> (row % 64) & 1) != 0;
}

/* checks.c */
extern HgjStatus hgj_fail(HgjError *err, HgjStatus status, const char *message);
extern HgjStatus hgj_poll(const HgjTableSpec *spec, HgjError *err);
extern HgjStatus hgj_check_table(const HgjTableSpec *spec, HgjError *err);
extern HgjStatus hgj_check_keys(const HgjKeys *keys, uint32_t nwords,
								HgjError *err);
extern HgjStatus hgj_check_rows(const HgjKeys *keys, uint32_t first_row,
								const uint32_t *row_ids, uint64_t *max_row,
								HgjError *err);
extern HgjStatus hgj_check_build(uint64_t nrows, uint64_t max_row,
								 uint32_t total_rows, HgjError *err);

/* marks.c */
extern HgjStatus hgj_marks_set(HgjMarks marks, const uint32_t *rows, uint32_t n,
							   HgjError *err);
extern HgjStatus hgj_marks_unset(const HgjTableSpec *spec, HgjMarks marks,
								 uint32_t *cursor, uint32_t *rows,
								 uint32_t capacity, uint32_t *n, HgjError *err);

/* pipeline_check.c */
extern HgjStatus hgj_check_pipeline(const HgjPipelineSpec *spec,
									HgjPipelineFacts *facts, HgjError *err);
extern HgjStatus hgj_bind_pipeline(HgjPipelineSpec *spec, const HgjPipelineTerms *terms,
								   HgjError *err);
extern HgjStatus hgj_check_kept(const HgjPipelineSpec *spec, const HgjKeptMemory *memory,
								const HgjKeptPush *rows, HgjError *err);

#ifdef __cplusplus
}
#endif
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif							/* HGJ_CHECKS_H */
