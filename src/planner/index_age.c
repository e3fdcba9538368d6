/*-------------------------------------------------------------------------
 *
 * index_age.c
 *	  Does a unique index tell apart all rows that a snapshot sees?
 *
 * Rows that were gone when an index was made are not in it, and a snapshot that is older sees
 * them.  PostgreSQL keeps from such an index only where its entries would lead astray
 * (indcheckxmin); it does not ask for what is concluded from its being unique.  A snapshot may be
 * older than the plan in any transaction: that of REPEATABLE READ, and that of the statement
 * which calls a STABLE function, whose queries are planned when they are first run.
 *
 * An index is older than a snapshot if the transaction that has made it, or has changed its
 * entry in pg_index since, is over for the snapshot.
 *
 * No memory is kept.  No locks: the table is the caller's.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "planner/planner.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

/* Was the index of this tuple of pg_index there when the active snapshot was taken? */
bool
hgj_index_entry_is_older(HeapTuple entry)
{
	return ActiveSnapshotSet() &&
		!XidInMVCCSnapshot(HeapTupleHeaderGetXmin(entry->t_data), GetActiveSnapshot());
}

/* Was the index there then? */
bool
hgj_index_is_older(Oid index)
{
	HeapTuple	entry = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
	bool		older = HeapTupleIsValid(entry) && hgj_index_entry_is_older(entry);

	if (HeapTupleIsValid(entry))
		ReleaseSysCache(entry);
	return older;
}
