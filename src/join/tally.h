/*-------------------------------------------------------------------------
 *
 * tally.h
 *	  From what a join has done to its database's counters (tally.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_TALLY_H
#define HGJ_TALLY_H

#include "compat.h"

#include "join/join_state.h"

/* Make ready to count, at executor start: not for EXPLAIN, not for rechecks. */
extern bool hgj_tally_begin(EState *estate, int eflags);

/*
 * The node is at its end, or its query is being aborted.  Its tables must have
 * been released.  Harmless when repeated.
 */
extern void hgj_tally_join(HgjJoinState *state);

#endif							/* HGJ_TALLY_H */
