/*-------------------------------------------------------------------------
 *
 * own_nodes.h
 *	  Which paths and plans are ours: told once, when the library is loaded.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_OWN_NODES_H
#define HGJ_OWN_NODES_H

#include "compat.h"

#include "nodes/extensible.h"

/* The methods of a node of ours. */
typedef struct HgjNodeMethods
{
	const CustomPathMethods *path;
	const CustomScanMethods *plan;
} HgjNodeMethods;

/* NULLs until the library is loaded. */
extern HgjNodeMethods hgj_join_methods;
extern HgjNodeMethods hgj_agg_methods;

extern void hgj_register_nodes(const HgjNodeMethods *join, const HgjNodeMethods *agg);

#endif							/* HGJ_OWN_NODES_H */
