/*-------------------------------------------------------------------------
 *
 * build_id.h
 *	  Which build of the library has made a plan.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_BUILD_ID_H
#define HGJ_BUILD_ID_H

#include "compat.h"

#include "nodes/plannodes.h"

extern uint32 hgj_build_flags(void);
extern void hgj_check_plan_build(const CustomScan *cscan);

#endif							/* HGJ_BUILD_ID_H */
