/*-------------------------------------------------------------------------
 *
 * notice.c
 *	  hashgraph_join_say_at_commit(): a NOTICE of CREATE EXTENSION's, where nothing
 *	  makes new sessions of the database load the library.
 *
 * 1. The script of CREATE EXTENSION calls the function, and drops it.  What is to be
 *	  found out is found out here and not in SQL: the script runs as a superuser, and
 *	  names in it are looked up in the target schema, too, where its owner may have
 *	  made functions and operators that fit better than PostgreSQL's own.
 * 2. A list of libraries that is set in the database's catalog counts before that of
 *	  the session: new sessions begin with it.
 * 3. While an extension's script runs, PostgreSQL raises client_min_messages to
 *	  WARNING, and what the session has set it to cannot be seen.  So the NOTICE waits:
 *	  when the transaction commits, or is prepared, it is raised like any other, if
 *	  there still is such an extension.  A savepoint may have undone it.
 *
 * Memory: the hint lives in TopTransactionContext, and is forgotten with it.  Locks:
 * AccessShareLock on pg_db_role_setting while it is read.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/pg_db_role_setting.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "commands/extension.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/varlena.h"

PG_FUNCTION_INFO_V1(hashgraph_join_say_at_commit);

static char *hint = NULL;		/* NULL: there is nothing to say */

/* Step 3. */
static void
at_end(XactEvent event, void *arg)
{
	const char *now = hint;

	if (now == NULL || event == XACT_EVENT_PARALLEL_PRE_COMMIT ||
		event == XACT_EVENT_PARALLEL_COMMIT || event == XACT_EVENT_PARALLEL_ABORT)
		return;
	hint = NULL;
	if ((event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE) &&
		OidIsValid(get_extension_oid("hashgraph_join", true)))
		ereport(NOTICE,
				(errmsg("new sessions do not load hashgraph_join by themselves"),
				 errhint("%s", now)));
}

/* Of "name=value" strings the value that belongs to the setting; NULL: there is none. */
static char *
value_in(ArrayType *settings, const char *setting)
{
	size_t		length = strlen(setting);
	Datum	   *elements;
	bool	   *nulls;
	int			n;

	deconstruct_array(settings, TEXTOID, -1, false, TYPALIGN_INT, &elements, &nulls, &n);
	for (int i = 0; i < n; i++)
	{
		char	   *pair = nulls[i] ? "" : TextDatumGetCString(elements[i]);

		if (strncmp(pair, setting, length) == 0 && pair[length] == '=')
			return pair + length + 1;
	}
	return NULL;
}

/* What is set for the database and the role, or for all of them (InvalidOid); NULL: nothing. */
static char *
value_for(Relation catalog, Oid database, Oid role, const char *setting)
{
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	char	   *value = NULL;

	ScanKeyInit(&keys[0], Anum_pg_db_role_setting_setdatabase, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(database));
	ScanKeyInit(&keys[1], Anum_pg_db_role_setting_setrole, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(role));
	scan = systable_beginscan(catalog, DbRoleSettingDatidRolidIndexId, true, NULL, 2, keys);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		bool		isnull;
		Datum		settings = heap_getattr(tuple, Anum_pg_db_role_setting_setconfig,
											RelationGetDescr(catalog), &isnull);

		if (!isnull)
			value = value_in(DatumGetArrayTypeP(settings), setting);
	}
	systable_endscan(scan);
	return value;
}

/* Step 2: the libraries that the setting has a new session of this database and role load. */
static List *
libraries_of(Relation catalog, const char *setting)
{
	Oid			role = GetSessionUserId();
	char	   *value = value_for(catalog, MyDatabaseId, role, setting);
	List	   *names;

	/* what stands nearest to a session counts, as it does when one begins */
	if (value == NULL)
		value = value_for(catalog, InvalidOid, role, setting);
	if (value == NULL)
		value = value_for(catalog, MyDatabaseId, InvalidOid, setting);
	if (value == NULL)
		value = value_for(catalog, InvalidOid, InvalidOid, setting);
	if (value == NULL)
		value = pstrdup(GetConfigOptionResetString(setting));
	/* a list that cannot be read loads nothing, and PostgreSQL says so to each session */
	return SplitDirectoriesString(value, ',', &names) ? names : NIL;
}

/* Is this library one of them, with a path or without, with the suffix or without? */
static bool
has_ours(List *names)
{
	ListCell   *lc;

	foreach(lc, names)
	{
		const char *name = last_dir_separator(lfirst(lc));

		name = name ? name + 1 : lfirst(lc);
		if (strcmp(name, "hashgraph_join") == 0 ||
			strcmp(name, "hashgraph_join" DLSUFFIX) == 0)
			return true;
	}
	return false;
}

/* What would make new sessions load the library, besides what they load already. */
static char *
make_hint(List *names)
{
	StringInfoData list;
	ListCell   *lc;

	initStringInfo(&list);
	foreach(lc, names)
		appendStringInfo(&list, "%s, ", quote_literal_cstr(lfirst(lc)));
	return psprintf(_("For this database: ALTER DATABASE %s SET session_preload_libraries = %s'hashgraph_join'; "
					  "for the whole server: put it into shared_preload_libraries, and restart."),
					quote_identifier(get_database_name(MyDatabaseId)), list.data);
}

/* Steps 1 and 2. */
Datum
hashgraph_join_say_at_commit(PG_FUNCTION_ARGS)
{
	static bool registered = false;
	Relation	catalog = table_open(DbRoleSettingRelationId, AccessShareLock);
	List	   *of_session = libraries_of(catalog, "session_preload_libraries");
	bool		loaded = has_ours(of_session) ||
		has_ours(libraries_of(catalog, "shared_preload_libraries")) ||
		has_ours(libraries_of(catalog, "local_preload_libraries"));

	table_close(catalog, AccessShareLock);
	if (!loaded)
	{
		if (!registered)
			RegisterXactCallback(at_end, NULL);
		registered = true;
		hint = MemoryContextStrdup(TopTransactionContext, make_hint(of_session));
	}
	PG_RETURN_VOID();
}
