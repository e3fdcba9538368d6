/*-------------------------------------------------------------------------
 *
 * lists.h
 *	  Sorting the lists of a CSR graph by code, and what is found on the way.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CUDA_LISTS_H
#define HGJ_CUDA_LISTS_H

#include "internal.h"

namespace hgj
{

/*
 * Sort every list, and note in *stats (on the device) the longest one, whether
 * there are duplicates, and huge lists that stay unsorted.  long_lists has room
 * for rows / LONG_LIST + 1 vertices.  None of these waits for the device.
 */
HgjStatus order_lists(HgjTable *table, const Graph &graph, BuildStats *stats,
					  uint32_t *long_lists, HgjError *err);

/* The same for those lists only that stats->long_lists counts. */
HgjStatus sort_long_lists(HgjTable *table, const Graph &graph, BuildStats *stats,
						  const uint32_t *long_lists, HgjError *err);

/* Whether two different keys of several words share a hash. */
HgjStatus check_collisions(HgjTable *table, const Graph &graph, BuildStats *stats,
						   HgjError *err);

} // namespace hgj

#endif /* HGJ_CUDA_LISTS_H */
