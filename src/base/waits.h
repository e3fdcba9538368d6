/*-------------------------------------------------------------------------
 *
 * waits.h
 *	  What pg_stat_activity says while a process of ours waits (waits.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_WAITS_H
#define HGJ_WAITS_H

#include "compat.h"

typedef enum HgjWait
{
	HGJ_WAIT_BUILD,				/* for the others who build a table together */
	HGJ_WAIT_GROUPS,			/* for the others who exchange groups */
	HGJ_WAIT_DEVICE,			/* for a GPU */
	HGJ_WAIT_LOAD,				/* a column loader, so that it does not work too much */
	HGJ_N_WAITS
} HgjWait;

/* For functions of PostgreSQL's that wait. */
extern uint32 hgj_wait_event(HgjWait wait);

/* Around a call that waits for a GPU by itself; an error ends it, too. */
extern void hgj_device_wait_starts(void);
extern void hgj_device_wait_ends(void);

#endif							/* HGJ_WAITS_H */
