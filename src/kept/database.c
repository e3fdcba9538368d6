/*-------------------------------------------------------------------------
 *
 * database.c
 *	  Which database a chunk is of.  Its OID does not say that: CREATE DATABASE ... OID = n
 *	  makes another database of a number that was dropped.
 *
 * 1. A key has a mark beside the OID (store.h): the transaction that wrote the database's
 *	  row in pg_database, as it stands in the row.  Each CREATE DATABASE is a transaction of
 *	  its own and freezing leaves the number where it is, so two databases of one OID have two
 *	  marks, on a primary and on a standby that replays both.  docs/internals.md, "Columns
 *	  kept in memory", 7, has the argument.
 * 2. ALTER DATABASE and GRANT ... ON DATABASE write the row anew, which costs what is kept of
 *	  the database: the new mark proves less than it could, and nothing wrong.  What
 *	  VACUUM changes in the row it changes in place.
 * 3. A session has its database to itself in that nobody can drop it meanwhile: all marks
 *	  that the session ever sees are that database's.  So it looks once, and again when
 *	  the row has changed, so that it finds what others load after that.
 *
 * Memory: static.  Locks: those of a look at the catalog, which may be taken where a
 * relation may be opened.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "kept/store.h"
#include "miscadmin.h"
#include "utils/inval.h"
#include "utils/syscache.h"

/* This database's; InvalidTransactionId: not known, or not any more. */
static TransactionId own_mark = InvalidTransactionId;

/* Step 3. */
static void
forget_mark(Datum arg, int cache, uint32 hash)
{
	own_mark = InvalidTransactionId;
}

/* Of any database; InvalidTransactionId: there is none of this number. */
static TransactionId
mark_of(Oid database)
{
	HeapTuple	tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(database));
	TransactionId mark;

	if (!HeapTupleIsValid(tuple))
		return InvalidTransactionId;
	mark = HeapTupleHeaderGetRawXmin(tuple->t_data);
	ReleaseSysCache(tuple);
	return mark;
}

/* The mark of this session's database, in a transaction. */
TransactionId
hgj_database_mark(void)
{
	static bool registered = false;
	TransactionId mark;

	if (TransactionIdIsValid(own_mark))
		return own_mark;
	if (!registered)
		CacheRegisterSyscacheCallback(DATABASEOID, forget_mark, (Datum) 0);
	registered = true;
	mark = mark_of(MyDatabaseId);
	if (!TransactionIdIsValid(mark))
		elog(ERROR, "cache lookup failed for database %u", MyDatabaseId);
	own_mark = mark;
	return mark;
}

/* Is that the mark of the database which has this number now? */
bool
hgj_database_is(Oid database, TransactionId mark)
{
	return mark == (database == MyDatabaseId ? hgj_database_mark() : mark_of(database));
}
