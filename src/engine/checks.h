/*-------------------------------------------------------------------------
 *
 * checks.h
 *	  What every engine refuses, in the same words; for the CPU's engine, for
 *	  CUDA's, and for test/fake's.
 *
 * Owns nothing, locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CHECKS_H
#define HGJ_CHECKS_H

#include "engine.h"

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

/* checks.c */
extern HgjStatus hgj_fail(HgjError *err, HgjStatus status, const char *message);

/* pipeline_check.c */
extern HgjStatus hgj_check_pipeline(const HgjPipelineSpec *spec,
									HgjPipelineFacts *facts, HgjError *err);

#ifdef __cplusplus
}
#endif

#endif							/* HGJ_CHECKS_H */
