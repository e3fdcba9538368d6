/*-------------------------------------------------------------------------
 *
 * gone.c
 *	  Chunks of databases, tables and columns that are no more.
 *
 * Nobody can read them: no scan asks for a table that is not there, for a file that it
 * has no longer, nor for what a database had that was dropped (database.c).  But they
 * take room until others need it, hold what somebody meant to get rid of, and a number
 * that is used again should find nothing.
 *
 * 1. Who drops something in this server has what is kept of it dropped at once
 *	  (object_access_hook), before he commits: others wait for his lock meanwhile.  If
 *	  he rolls back, it has to be loaded again.  DROP DATABASE is told of before it waits
 *	  for sessions to leave the database, which may load meanwhile.  So CREATE DATABASE
 *	  drops what is left of the number, when nobody can be connected to it.
 * 2. Nobody says so where a table gets another file or a column another type, or where
 *	  WAL is replayed.  So who loads has a look (hgj_store_forget_gone()): each
 *	  column that has chunks is looked up.  Its chunks go if the database, table or
 *	  column is not there, or has another mark, file, or type.  If the catalogs
 *	  say so for this transaction only, they have to be loaded again, too.
 *
 * Memory: the list of chunks, within hgj_store_forget_gone().  Locks: the store's, while
 * a chunk is dropped.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "kept/store.h"
#include "miscadmin.h"
#include "utils/syscache.h"

static object_access_hook_type next_hook = NULL;

/* Step 1. */
static void
note_drop(ObjectAccessType access, Oid class, Oid object, int attno, void *arg)
{
	if (next_hook)
		next_hook(access, class, object, attno, arg);
	if (class == DatabaseRelationId &&
		(access == OAT_DROP || access == OAT_POST_CREATE))
		(void) hgj_store_drop(object, InvalidOid, 0);
	else if (class == RelationRelationId && access == OAT_DROP &&
			 hgj_store_may_have(object))
		(void) hgj_store_drop(MyDatabaseId, object, attno);
}

/* In the postmaster, when it loads the library. */
void
hgj_gone_install(void)
{
	next_hook = object_access_hook;
	object_access_hook = note_drop;
}

/* Step 2: has a table of this database the file still? */
static bool
has_file(const HgjChunkKey *key)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(key->table));
	bool		same;

	if (!HeapTupleIsValid(tuple))
		return false;
	same = ((Form_pg_class) GETSTRUCT(tuple))->relfilenode ==
		HGJ_LOCATOR_NUMBER(key->locator);
	ReleaseSysCache(tuple);
	return same;
}

static bool
has_column(const HgjChunkKey *key)
{
	HeapTuple	tuple = SearchSysCacheAttNum(key->table, key->attno);
	bool		same;

	if (!HeapTupleIsValid(tuple))
		return false;
	same = ((Form_pg_attribute) GETSTRUCT(tuple))->atttypid == key->type;
	ReleaseSysCache(tuple);
	return same;
}

static bool
is_gone(const HgjChunkKey *key)
{
	Oid			database = HGJ_LOCATOR_DATABASE(key->locator);

	return !hgj_database_is(database, key->database) ||
		(database == MyDatabaseId && (!has_file(key) || !has_column(key)));
}

/* Step 2, in a transaction. */
void
hgj_store_forget_gone(void)
{
	uint32		n;
	HgjChunkFacts *facts = hgj_store_list(true, &n);

	for (uint32 i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (is_gone(&facts[i].key))
			hgj_store_forget(&facts[i].key);
	}
	if (facts)
		pfree(facts);
}
