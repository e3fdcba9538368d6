/*-------------------------------------------------------------------------
 *
 * node_names.h
 *	  How EXPLAIN names the nodes of a plan.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_NODE_NAMES_H
#define HGJ_NODE_NAMES_H

#include "compat.h"

#include "nodes/plannodes.h"

/* What kind of row hashgraph_join_why() has for a node. */
typedef enum HgjNodeKind
{
	HGJ_NODE_OTHER,				/* none */
	HGJ_NODE_JOIN,
	HGJ_NODE_AGGREGATION,
	HGJ_NODE_SCAN
} HgjNodeKind;

typedef struct HgjNodeNames
{
	List	   *rtable;
	List	   *refnames;		/* of its entries, by position */
} HgjNodeNames;

extern void hgj_node_names(HgjNodeNames *names, const PlannedStmt *stmt);
extern HgjNodeKind hgj_node_kind(const Plan *plan);
extern char *hgj_node_name(const HgjNodeNames *names, const Plan *plan);

#endif							/* HGJ_NODE_NAMES_H */
