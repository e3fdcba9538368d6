/*-------------------------------------------------------------------------
 *
 * build_id.c
 *	  Tell a plan of another build of the library from one of this build.
 *
 * 1. The Makefile gives this file, and no other, a checksum of all sources.
 * 2. The planner puts it into those bits of a CustomScan's flags that PostgreSQL
 *	  does not use, where it stands whatever the rest of the plan looks like.
 * 3. Who makes a node's state compares it first.  A session keeps the library that
 *	  it has loaded when another is installed, but its parallel workers load what
 *	  is installed then: what the plan and the shared memory mean to them may be
 *	  something else.
 *
 * No memory, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/build_id.h"

#define FIRST_BIT	8			/* PostgreSQL 18 uses three */

/* A test changes the digits in a copy of the library. */
extern const char hgj_build_id[];
const char	hgj_build_id[] = "hashgraph_join build " HGJ_BUILD;

/* Step 2: bits for CustomScan.flags. */
uint32
hgj_build_flags(void)
{
	const char *digits = strrchr(hgj_build_id, ' ');

	return (uint32) strtoul(digits, NULL, 16) << FIRST_BIT;
}

/* Step 3. */
void
hgj_check_plan_build(const CustomScan *cscan)
{
	if ((cscan->flags >> FIRST_BIT) != (hgj_build_flags() >> FIRST_BIT))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("library \"hashgraph_join\" has been replaced since this session loaded it"),
				 errdetail("A parallel worker has loaded another build of it."),
				 errhint("Reconnect, or set max_parallel_workers_per_gather to 0.")));
}
