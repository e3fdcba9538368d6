/*-------------------------------------------------------------------------
 *
 * having.h
 *	  Which groups a pipeline leaves out (HgjPipelineTerms.having), for hosts and kernels.
 *
 * No PostgreSQL and no CUDA headers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_HAVING_H
#define HGJ_HAVING_H

#include "engine.h"
#include "hash.h"

__extension__ typedef __int128 HgjInt128;
__extension__ typedef unsigned __int128 HgjBits128;

HGJ_HASH_FN HgjInt128
hgj_having_wide(HgjPipeWide wide)
{
	return (HgjInt128) ((HgjBits128) (uint64_t) wide.high << 64 | wide.low);
}

/* Is the value of the group whose state words, as group rows have them, are these out of bounds? */
HGJ_HASH_FN bool
hgj_having_fails(const HgjPipeHaving *having, const uint64_t *words)
{
	HgjInt128	value = (int64_t) words[having->word];

	if (having->count != HGJ_PIPE_NONE && words[having->count] == 0)
		return true;
	if (having->wide)
		value = (HgjInt128) (int64_t) words[having->word + 1] * ((int64_t) 1 << 32) +
			words[having->word];
	return value < hgj_having_wide(having->least) || value > hgj_having_wide(having->most);
}

HGJ_HASH_FN bool
hgj_having_leaves_out(const HgjPipeHaving *having, uint32_t n, const uint64_t *words)
{
	for (uint32_t i = 0; i < n; i++)
		if (hgj_having_fails(&having[i], words))
			return true;
	return false;
}

#endif							/* HGJ_HAVING_H */
