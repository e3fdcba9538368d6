/*-------------------------------------------------------------------------
 *
 * kept_columns.c
 *	  What SQL can do about columns that are kept in memory: hashgraph_join_load(),
 *	  hashgraph_join_unload(), and what the view hashgraph_join_columns shows.
 *
 * 1. Loading takes SELECT on each of the columns.  Without names it is all columns
 *	  that the caller may read.  It changes nothing that a query could see.  The store is
 *	  everybody's, of all databases: columns that are kept already make room for those of
 *	  superusers, and of those users whom a superuser lets (hashgraph_join.load_evicts); others
 *	  fill what is free.  What could not be kept is said (scan/load_report.c).
 * 2. Unloading is for the table's owner.
 * 3. The view has a row for each column that has chunks, of tables of this database.
 *	  A use is one process's of one chunk.  What it has saved is estimated: the rows
 *	  that were taken, by what decoding them would have cost (scan/kept_pages.c).  What
 *	  devices have copies of the engine is asked, by the chunks' numbers, where one is open.
 * 4. Bytes and encodings tell how many values a column has, and how far they lie apart.
 *	  So a caller sees what he sees in pg_stats: columns that he may read, of tables
 *	  whose rows are not hidden from him; members of pg_read_all_stats see all.
 *
 * No memory outlives a call.  Locks: AccessShareLock on the table that is loaded or
 * unloaded, until the end of the transaction.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "base/guc.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "join/engines.h"
#include "kept/store.h"
#include "miscadmin.h"
#include "scan/load_columns.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(hashgraph_join_load);
PG_FUNCTION_INFO_V1(hashgraph_join_unload);
PG_FUNCTION_INFO_V1(hashgraph_join_kept);

#define VIEW_COLUMNS	11

static bool
may_read(Relation rel, AttrNumber attno)
{
	Oid			table = RelationGetRelid(rel);

	return pg_class_aclcheck(table, GetUserId(), ACL_SELECT) == ACLCHECK_OK ||
		pg_attribute_aclcheck(table, attno, GetUserId(), ACL_SELECT) == ACLCHECK_OK;
}

/* Step 1: the columns of these names. */
static int
named_columns(Relation rel, ArrayType *names, AttrNumber *attnos)
{
	Datum	   *elements;
	bool	   *nulls;
	int			nnames;
	int			n = 0;

	deconstruct_array(names, NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR,
					  &elements, &nulls, &nnames);
	for (int i = 0; i < nnames; i++)
	{
		char	   *name = nulls[i] ? "" : NameStr(*DatumGetName(elements[i]));
		AttrNumber	attno = get_attnum(RelationGetRelid(rel), name);
		bool		twice = false;

		if (attno <= 0 || TupleDescAttr(RelationGetDescr(rel), attno - 1)->attisdropped)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("column \"%s\" of relation \"%s\" does not exist",
							name, RelationGetRelationName(rel))));
		if (!may_read(rel, attno))
			aclcheck_error_col(ACLCHECK_NO_PRIV, OBJECT_COLUMN,
							   RelationGetRelationName(rel), name);
		for (int j = 0; j < n; j++)
			twice |= attnos[j] == attno;
		if (!twice)
			attnos[n++] = attno;
	}
	return n;
}

static int
readable_columns(Relation rel, AttrNumber *attnos)
{
	TupleDesc	desc = RelationGetDescr(rel);
	int			n = 0;

	for (AttrNumber attno = 1; attno <= desc->natts; attno++)
		if (!TupleDescAttr(desc, attno - 1)->attisdropped && may_read(rel, attno))
			attnos[n++] = attno;
	if (n == 0)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_TABLE, RelationGetRelationName(rel));
	return n;
}

/* The number of chunks that were made. */
Datum
hashgraph_join_load(PG_FUNCTION_ARGS)
{
	Relation	rel;
	const char *obstacle;
	AttrNumber	attnos[MaxHeapAttributeNumber];
	bool		may_evict = superuser() || hgj_load_evicts;
	int			n;
	int64		chunks;
	uint64		evictions;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (!hgj_store_exists())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("no columns are kept in memory"),
				 errhint("Add hashgraph_join to shared_preload_libraries, and set hashgraph_join.column_memory.")));
	rel = table_open(PG_GETARG_OID(0), AccessShareLock);
	if (PG_ARGISNULL(1))
		n = readable_columns(rel, attnos);
	else
		n = named_columns(rel, PG_GETARG_ARRAYTYPE_P(1), attnos);
	obstacle = hgj_load_obstacle(rel);
	if (obstacle)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("columns of \"%s\" cannot be kept in memory",
						RelationGetRelationName(rel)),
				 errdetail("The reason is: %s.", obstacle)));
	hgj_store_forget_gone();
	evictions = hgj_store_own_evictions();
	chunks = hgj_load_columns(rel, attnos, n, may_evict).chunks;
	hgj_load_report(rel, attnos, n, may_evict, hgj_store_own_evictions() - evictions);
	table_close(rel, NoLock);
	PG_RETURN_INT64(chunks);
}

/* The number of chunks that have gone. */
Datum
hashgraph_join_unload(PG_FUNCTION_ARGS)
{
	Relation	rel = table_open(PG_GETARG_OID(0), AccessShareLock);
	int64		chunks;

	if (!HGJ_OWNS_TABLE(RelationGetRelid(rel)))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE, RelationGetRelationName(rel));
	chunks = hgj_store_drop(MyDatabaseId, RelationGetRelid(rel), 0);
	table_close(rel, NoLock);
	PG_RETURN_INT64(chunks);
}

/* Step 4: may the caller see anything of the column? */
static bool
is_shown(const HgjChunkKey *key)
{
	Oid			user = GetUserId();
	bool		gone = false;
	bool		readable;

	if (has_privs_of_role(user, ROLE_PG_READ_ALL_STATS))
		return true;
	readable = pg_class_aclcheck_ext(key->table, user, ACL_SELECT,
									 &gone) == ACLCHECK_OK;
	if (!readable && !gone)
		readable = pg_attribute_aclcheck_ext(key->table, key->attno, user, ACL_SELECT,
											 &gone) == ACLCHECK_OK;
	return readable && !gone &&
		check_enable_rls(key->table, InvalidOid, true) != RLS_ENABLED;
}

/* The column's name; NULL if it, or its table, has been dropped. */
static Name
column_name(const HgjChunkKey *key)
{
	HeapTuple	tuple = SearchSysCacheAttNum(key->table, key->attno);
	Name		name;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	name = palloc0(sizeof(NameData));
	namestrcpy(name, NameStr(((Form_pg_attribute) GETSTRUCT(tuple))->attname));
	ReleaseSysCache(tuple);
	return name;
}

/* Step 3: chunks in the order of their columns. */
static int
compare_facts(const void *a, const void *b)
{
	const HgjChunkKey *x = &((const HgjChunkFacts *) a)->key;
	const HgjChunkKey *y = &((const HgjChunkFacts *) b)->key;

	if (x->table != y->table)
		return x->table < y->table ? -1 : 1;
	return (x->attno > y->attno) - (x->attno < y->attno);
}

static int
compare_ids(const void *a, const void *b)
{
	uint64		x = ((const HgjChunkFacts *) a)->id;
	uint64		y = ((const HgjChunkFacts *) b)->id;

	return (x > y) - (x < y);
}

/* What devices have copies of; false: it is not known.  Chunks are in their numbers' order then. */
static bool
note_copies(HgjChunkFacts *facts, uint32 n)
{
	uint64	   *ids = MemoryContextAllocHuge(CurrentMemoryContext,
											 mul_size(Max(n, 1), 2 * sizeof(uint64)));
	uint64	   *bytes = ids + n;

	if (n > 1)
		qsort(facts, n, sizeof(HgjChunkFacts), compare_ids);
	for (uint32 i = 0; i < n; i++)
		ids[i] = facts[i].id;
	if (!hgj_cuda_kept_bytes(ids, n, bytes))
		return false;
	for (uint32 i = 0; i < n; i++)
		facts[i].device_bytes = bytes[i];
	return true;
}

/* A column's row, of its n chunks. */
static void
put_column(ReturnSetInfo *rsinfo, const HgjChunkFacts *facts, uint32 n, bool on_device)
{
	Datum		values[VIEW_COLUMNS] = {0};
	bool		nulls[VIEW_COLUMNS] = {false};
	Name		name = column_name(&facts->key);
	int64		pages = 0;
	int64		rows = 0;
	int64		bytes = 0;
	int64		uses = 0;
	double		saved = 0;
	uint8		width = 0;
	TimestampTz last_use = 0;
	int64		device_bytes = 0;

	for (uint32 i = 0; i < n; i++)
	{
		pages += facts[i].pages;
		rows += facts[i].rows;
		bytes += facts[i].bytes;
		uses += facts[i].uses;
		saved += facts[i].saved / 1e6;
		width = Max(width, facts[i].width);
		last_use = Max(last_use, facts[i].last_use);
		device_bytes += facts[i].device_bytes;
	}
	values[0] = ObjectIdGetDatum(facts->key.table);
	nulls[1] = name == NULL;
	values[1] = NameGetDatum(name);
	values[2] = Int64GetDatum(n);
	values[3] = Int64GetDatum(pages);
	values[4] = Int64GetDatum(rows);
	values[5] = Int64GetDatum(bytes);
	values[6] = CStringGetTextDatum(psprintf("%s, %d bytes",
											 facts->by_value ? "offsets" : "dictionary",
											 width));
	values[7] = Int64GetDatum(uses);
	values[8] = Float8GetDatum(saved);
	values[9] = TimestampTzGetDatum(last_use);
	nulls[9] = last_use == 0;
	values[10] = Int64GetDatum(device_bytes);
	nulls[10] = !on_device;
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* One row per column of which something is kept. */
Datum
hashgraph_join_kept(PG_FUNCTION_ARGS)
{
	HgjChunkFacts *facts;
	uint32		n;
	uint32		first = 0;
	bool		on_device;

	InitMaterializedSRF(fcinfo, 0);
	facts = hgj_store_list(false, &n);
	on_device = note_copies(facts, n);
	if (n > 1)
		qsort(facts, n, sizeof(HgjChunkFacts), compare_facts);
	for (uint32 i = 1; i <= n; i++)
		if (i == n || compare_facts(&facts[i], &facts[first]) != 0)
		{
			if (is_shown(&facts[first].key))
				put_column((ReturnSetInfo *) fcinfo->resultinfo, facts + first,
						   i - first, on_device);
			first = i;
		}
	return (Datum) 0;
}
