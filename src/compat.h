/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  What differs between PostgreSQL's major versions.  The only file that
 *	  looks at PG_VERSION_NUM.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_COMPAT_H
#define HGJ_COMPAT_H

#include "postgres.h"

#if PG_VERSION_NUM < 150000
#error "hashgraph_join needs PostgreSQL 15 or later"
#endif

/*
 * From 16 on, Vars carry the outer joins that may have nulled them, and
 * setrefs.c matches them against custom_scan_tlist exactly; planner/plan.c
 * must then add this join's relid to the nullable side's entries.  That needs
 * a server of that version to be tried on, so refuse to build till then.
 */
#if PG_VERSION_NUM >= 160000
#error "hashgraph_join does not yet know PostgreSQL 16 or later (varnullingrels)"
#endif

#ifndef HAVE_INT128
#error "hashgraph_join needs a compiler with 128-bit integers"
#endif

/*
 * Semi and anti joins that build with the side whose rows they return came with 18
 * and 16, which offer them to set_join_pathlist_hook.  Until then they are ours
 * (planner/join_path.c), by numbers that PostgreSQL has not.  As JoinType is an
 * enum, a switch that names them is one of ints.
 */
#if PG_VERSION_NUM >= 160000
#define HGJ_OFFER_RIGHT_ANTI	false
#else
#define HGJ_OFFER_RIGHT_ANTI	true
#define JOIN_RIGHT_ANTI			((JoinType) 28)
#endif
#if PG_VERSION_NUM >= 180000
#define HGJ_OFFER_RIGHT_SEMI	false
#else
#define HGJ_OFFER_RIGHT_SEMI	true
#define JOIN_RIGHT_SEMI			((JoinType) 29)
#endif

/* IS_OUTER_JOIN(), which knows PostgreSQL's only. */
#define HGJ_IS_OUTER_JOIN(jointype) \
	(IS_OUTER_JOIN(jointype) || (jointype) == JOIN_RIGHT_ANTI)

/* Faults that tests ask for, where PostgreSQL has assertions (Makefile). */
#ifdef HGJ_MEM_TEST
#include "base/faults.h"
#define HGJ_FAULT_INTERRUPT()	hgj_fault_interrupt()
#else
#define HGJ_FAULT_INTERRUPT()	((void) 0)
#endif

#endif							/* HGJ_COMPAT_H */
