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

#if PG_VERSION_NUM >= 190000
#error "hashgraph_join does not know PostgreSQL 19 or later"
#endif

#ifndef HAVE_INT128
#error "hashgraph_join needs a compiler with 128-bit integers"
#endif

/* ---- 16 ------------------------------------------------------------- */

/*
 * Anti joins that build with the side whose rows they return came with 16, semi
 * joins of that kind with 18, and are offered to set_join_pathlist_hook from then
 * on.  Until then they are ours (planner/join_path.c), by numbers that PostgreSQL
 * has not.  As JoinType is an enum, a switch that names them is one of ints.
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

/*
 * From 16 on, Vars and PlaceHolderVars carry the outer joins that may have nulled
 * them, which setrefs.c compares (planner/nulling.c), and outer joins have numbers
 * of their own among the relids of join relations.
 */
#if PG_VERSION_NUM >= 160000
#include "parser/parse_relation.h"
#define HGJ_VARS_HAVE_NULLING_RELS
#define HGJ_ALL_RELIDS(root)	((root)->all_query_rels)
#define HGJ_BASE_RELIDS(root, relids) \
	bms_difference(relids, (root)->outer_join_rels)
#define hgj_set_nulled_by(var, join)	((var)->varnullingrels = bms_make_singleton(join))
#define HGJ_TABLES_ARE_PERMITTED(query) \
	ExecCheckPermissions((query)->rtable, (query)->rteperminfos, false)
/* A table of the query is a copy of one of this level's, and may be read as that one. */
#define hgj_copy_privileges(query, rte, level, original) \
	((query)->rteperminfos = lappend((query)->rteperminfos, \
									 copyObject(getRTEPermissionInfo((level)->rteperminfos, \
																	 (RangeTblEntry *) (original)))), \
	 (rte)->perminfoindex = list_length((query)->rteperminfos))
#define hgj_forget_nulled_by(var)	((var)->varnullingrels = NULL)
#define hgj_forget_nulled_by_join(var, join) \
	((var)->varnullingrels = bms_del_member((var)->varnullingrels, join))
/* The query's range table is another query's now. */
#define hgj_forget_privileges(query)	((query)->rteperminfos = NIL)
#else
#define hgj_forget_privileges(query)	((void) (query))
#define hgj_copy_privileges(query, rte, level, original) \
	((void) (query), (void) (rte), (void) (level), (void) (original))
#define hgj_forget_nulled_by(var)	((void) (var))
#define hgj_forget_nulled_by_join(var, join)	((void) (var), (void) (join))
#define hgj_set_nulled_by(var, join)	((void) (var), (void) (join))
#define HGJ_TABLES_ARE_PERMITTED(query)	ExecCheckRTPerms((query)->rtable, false)
#define HGJ_ALL_RELIDS(root)	((root)->all_baserels)
#define HGJ_BASE_RELIDS(root, relids)	(relids)
#endif

/*
 * From 18 on, what a query groups by stands in a range table entry, to which its target list and
 * HAVING refer; the planner writes the expressions there first, and so can others.
 */
#if PG_VERSION_NUM >= 180000
#define HGJ_IS_GROUP_ENTRY(rte)	((rte)->rtekind == RTE_GROUP)
/* What the entry has to be grouped by: a List **, or NULL. */
#define HGJ_GROUP_EXPRESSIONS(rte)	(HGJ_IS_GROUP_ENTRY(rte) ? &(rte)->groupexprs : NULL)
#define hgj_flatten_groups(query) \
do { \
	if ((query)->hasGroupRTE && (query)->groupingSets == NIL) \
	{ \
		(query)->targetList = (List *) flatten_group_exprs(NULL, query, (Node *) (query)->targetList); \
		(query)->havingQual = flatten_group_exprs(NULL, query, (query)->havingQual); \
	} \
} while (0)
#define hgj_forget_groups(query)	((query)->hasGroupRTE = false)
#else
#define hgj_forget_groups(query)	((void) (query))
#define HGJ_IS_GROUP_ENTRY(rte)	((void) (rte), false)
#define HGJ_GROUP_EXPRESSIONS(rte)	((void) (rte), (List **) NULL)
#define hgj_flatten_groups(query)	((void) (query))
#endif

/* From 18 on, what an operator means in an order has a type of its own. */
#if PG_VERSION_NUM >= 180000
#include "access/cmptype.h"
typedef CompareType HgjOrderMeaning;
#else
typedef int16 HgjOrderMeaning;
#endif

/*
 * From 18 on, a column may be declared NOT NULL although old rows have not been looked at.
 * column: from 1
 */
#if PG_VERSION_NUM >= 180000
#define HGJ_IS_NOT_NULL(desc, column) \
	(TupleDescCompactAttr(desc, (column) - 1)->attnullability == ATTNULLABLE_VALID)
#else
#define HGJ_IS_NOT_NULL(desc, column)	(TupleDescAttr(desc, (column) - 1)->attnotnull)
#endif

/*
 * From 16 on, a path may have a parameter that the outer join at hand, which has a
 * number, is to null: no path of that join can be made of it.
 */
#if PG_VERSION_NUM >= 160000
#define HGJ_NEEDS_JOIN(path, sjinfo) \
	((sjinfo)->ojrelid != 0 && \
	 bms_is_member((sjinfo)->ojrelid, PATH_REQ_OUTER(path)))
#else
#define HGJ_NEEDS_JOIN(path, sjinfo)	((void) (path), false)
#endif

/*
 * From 16 on, columns of GROUP BY that others make needless (constants, columns that
 * equal others) are not marked in what joins and partial aggregations return, where
 * they need not be at all; every one may be needless.
 */
#if PG_VERSION_NUM >= 160000
#define HGJ_NEEDED_GROUP_CLAUSE(root)	((root)->processed_groupClause)
#else
#define HGJ_NEEDED_GROUP_CLAUSE(root)	((root)->parse->groupClause)
#endif

/*
 * From 16 on, the order that GROUP BY has the rows in goes on with what aggregates want
 * sorted; that is no group column.
 */
#if PG_VERSION_NUM >= 160000
#define HGJ_GROUP_PATHKEYS(root) \
	list_copy_head((root)->group_pathkeys, (root)->num_groupby_pathkeys)
#else
#define HGJ_GROUP_PATHKEYS(root)	((root)->group_pathkeys)
#endif

/* From 16 on, one says of which outer join clauses of equivalence classes are made. */
#if PG_VERSION_NUM >= 160000
#define hgj_implied_equalities(root, outer, inner) \
	generate_join_implied_equalities(root, bms_union((outer)->relids, (inner)->relids), \
									 (outer)->relids, inner, NULL)
#else
#define hgj_implied_equalities(root, outer, inner) \
	generate_join_implied_equalities(root, bms_union((outer)->relids, (inner)->relids), \
									 (outer)->relids, inner)
#endif

/* From 16 on, one says whether a sorted datum has to outlast the next one. */
#if PG_VERSION_NUM >= 160000
#define HGJ_TUPLESORT_GETDATUM(state, value, isnull) \
	tuplesort_getdatum(state, true, false, value, isnull, NULL)
#else
#define HGJ_TUPLESORT_GETDATUM(state, value, isnull) \
	tuplesort_getdatum(state, true, value, isnull, NULL)
#endif

/* From 16 on, appendinfo.c wants the relations themselves. */
#if PG_VERSION_NUM >= 160000
#define hgj_adjust_to_child(root, node, child) \
	adjust_appendrel_attrs_multilevel(root, node, child, (child)->top_parent)
#else
#define hgj_adjust_to_child(root, node, child) \
	adjust_appendrel_attrs_multilevel(root, node, (child)->relids, \
									  (child)->top_parent_relids)
#endif

/*
 * From 16 on, what names a relation's file is called otherwise.  HGJ_IS_NEW_FILE: the
 * file is of this transaction's making.
 */
#if PG_VERSION_NUM >= 160000
#include "storage/relfilelocator.h"
typedef RelFileLocator HgjLocator;
#define HGJ_LOCATOR(rel)		((rel)->rd_locator)
#define HGJ_SAME_LOCATOR(a, b)	RelFileLocatorEquals(a, b)
#define HGJ_LOCATOR_DATABASE(a)	((a).dbOid)
#define HGJ_LOCATOR_NUMBER(a)	((a).relNumber)
#define HGJ_IS_NEW_FILE(rel) \
	((rel)->rd_createSubid != InvalidSubTransactionId || \
	 (rel)->rd_firstRelfilelocatorSubid != InvalidSubTransactionId)
#else
#include "storage/relfilenode.h"
typedef RelFileNode HgjLocator;
#define HGJ_LOCATOR(rel)		((rel)->rd_node)
#define HGJ_SAME_LOCATOR(a, b)	RelFileNodeEquals(a, b)
#define HGJ_LOCATOR_DATABASE(a)	((a).dbNode)
#define HGJ_LOCATOR_NUMBER(a)	((a).relNode)
#define HGJ_IS_NEW_FILE(rel) \
	((rel)->rd_createSubid != InvalidSubTransactionId || \
	 (rel)->rd_firstRelfilenodeSubid != InvalidSubTransactionId)
#endif

/* From 16 on, one function checks privileges on objects of every kind. */
#if PG_VERSION_NUM >= 160000
#define hgj_role_may_execute(function, role) \
	(object_aclcheck(ProcedureRelationId, function, role, \
					 ACL_EXECUTE) == ACLCHECK_OK)
#define HGJ_OWNS_TABLE(table) \
	object_ownercheck(RelationRelationId, table, GetUserId())
#else
#define hgj_role_may_execute(function, role) \
	(pg_proc_aclcheck(function, role, ACL_EXECUTE) == ACLCHECK_OK)
#define HGJ_OWNS_TABLE(table)	pg_class_ownercheck(table, GetUserId())
#endif
#define hgj_may_execute(function)	hgj_role_may_execute(function, GetUserId())

/* From 16 on, the relations of a foreign join are told from its outer joins. */
#if PG_VERSION_NUM >= 160000
#define HGJ_FOREIGN_RELIDS(scan)	((scan)->fs_base_relids)
#else
#define HGJ_FOREIGN_RELIDS(scan)	((scan)->fs_relids)
#endif

/* ---- 17 ------------------------------------------------------------- */

/*
 * From 17 on, a sequential scan's descriptor has a stream of its pages, which
 * reads ahead of whoever takes them (scan/heap_pages.c); and old_snapshot_threshold
 * is gone, whose check a page needed before that.
 */
#if PG_VERSION_NUM >= 170000
#include "storage/read_stream.h"
#define HGJ_SCAN_STREAM(scan)	((scan)->rs_read_stream)
#define hgj_next_of_stream(stream)	read_stream_next_buffer(stream, NULL)
#define TestForOldSnapshot(snapshot, relation, page)	((void) 0)
#define OldSnapshotThresholdActive()	false
#else
#define HGJ_SCAN_STREAM(scan)	NULL
#define hgj_next_of_stream(stream)	InvalidBuffer
#endif

/*
 * From 17 on, intervals can be infinite, and the state of sum(interval) is no
 * interval: a partial aggregation returns it in serialized form.
 */
#if PG_VERSION_NUM >= 170000
#define HGJ_SUM_INTERVAL_IS_SERIALIZED
#endif

/*
 * From 17 on, sessions find a segment of shared memory by its name.  It is made, and
 * emptied by the function, by the first who asks.
 */
#if PG_VERSION_NUM >= 170000
#include "storage/dsm_registry.h"
#define hgj_named_segment(name, bytes, make_empty) \
	GetNamedDSMSegment(name, bytes, make_empty, &(bool) {false})
#else
#define hgj_named_segment(name, bytes, make_empty) \
	((void) (name), (void) (make_empty), NULL)
#endif

/* From 17 on, what a library waits for can have a name (base/waits.c). */
#if PG_VERSION_NUM >= 170000
#define hgj_new_wait_event(name)	WaitEventExtensionNew(name)
#else
#define hgj_new_wait_event(name)	((void) (name), PG_WAIT_EXTENSION)
#endif

/* ---- 18 ------------------------------------------------------------- */

/*
 * From 18 on, a path counts the disabled nodes in it, in place of a cost that is
 * out of proportion, and paths are compared by that number first.
 */
#if PG_VERSION_NUM >= 180000
#define hgj_disabled_nodes(path)	((path)->disabled_nodes)
#define hgj_set_disabled_nodes(path, n)	((path)->disabled_nodes = (n))
#define hgj_add_path_precheck(rel, disabled, startup, total, pathkeys, outer) \
	add_path_precheck(rel, disabled, startup, total, pathkeys, outer)
#define hgj_cost_sort(path, root, pathkeys, disabled, cost, rows, width) \
	cost_sort(path, root, pathkeys, disabled, cost, rows, width, 0.0, work_mem, -1.0)
#else
#define hgj_disabled_nodes(path)	((void) (path), 0)
#define hgj_set_disabled_nodes(path, n)	((void) (n))
#define hgj_add_path_precheck(rel, disabled, startup, total, pathkeys, outer) \
	((void) (disabled), \
	 add_path_precheck(rel, startup, total, pathkeys, outer))
#define hgj_cost_sort(path, root, pathkeys, disabled, cost, rows, width) \
	cost_sort(path, root, pathkeys, cost, rows, width, 0.0, work_mem, -1.0)
#endif

/* From 18 on, ExecutorRun() has no word on whether the plan runs once only. */
#if PG_VERSION_NUM >= 180000
#define HGJ_EXECUTE_ONCE_PARAM
#define HGJ_EXECUTE_ONCE_ARG
#else
#define HGJ_EXECUTE_ONCE_PARAM	, bool execute_once
#define HGJ_EXECUTE_ONCE_ARG	, execute_once
#endif

/*
 * From 18 on, what prints EXPLAIN's properties has a header of its own, and there is
 * an entry among the tables that is none.
 */
#if PG_VERSION_NUM >= 180000
#define HGJ_EXPLAIN_HEADER	"commands/explain_format.h"
#define HGJ_EXPLAIN_STATE_HEADER	"commands/explain_state.h"
#define hgj_explain_tables(es)	((es)->rtable_size)
#else
#define hgj_explain_tables(es)	list_length((es)->rtable)
#define HGJ_EXPLAIN_HEADER	"commands/explain.h"
#define HGJ_EXPLAIN_STATE_HEADER	"commands/explain.h"
#endif

/* From 18 on, columns may be computed when they are read. */
#if PG_VERSION_NUM >= 180000
#define HGJ_HAS_VIRTUAL_COLUMNS(rel) \
	((rel)->rd_att->constr && (rel)->rd_att->constr->has_generated_virtual)
#else
#define HGJ_HAS_VIRTUAL_COLUMNS(rel)	((void) (rel), false)
#endif

/*
 * From 18 on, libraries add options to EXPLAIN, and lines to the nodes of a plan
 * (explain_option.c).
 */
#if PG_VERSION_NUM >= 180000
#define HGJ_HAVE_EXPLAIN_OPTIONS
#endif

/* From 18 on, what does not return is said in front of it. */
#if PG_VERSION_NUM >= 180000
#define HGJ_NORETURN	pg_noreturn
#else
#define HGJ_NORETURN	pg_attribute_noreturn()
#endif

/* From 18 on, a library tells the server its name and version. */
#if PG_VERSION_NUM >= 180000
#define HGJ_MODULE_MAGIC	PG_MODULE_MAGIC_EXT(.name = "hashgraph_join", .version = HGJ_VERSION)
#else
#define HGJ_MODULE_MAGIC	PG_MODULE_MAGIC
#endif

/* From 18 on, a set operation has two inputs, which were one below an Append. */
#if PG_VERSION_NUM >= 180000
#define HGJ_SETOP_INPUTS(path)	list_make2((path)->leftpath, (path)->rightpath)
#else
#define HGJ_SETOP_INPUTS(path)	list_make1((path)->subpath)
#endif

/* ---- every version --------------------------------------------------- */

/* Faults that tests ask for, where PostgreSQL has assertions (Makefile). */
#ifdef HGJ_MEM_TEST
#include "base/faults.h"
#define HGJ_FAULT_INTERRUPT()	hgj_fault_interrupt()
#else
#define HGJ_FAULT_INTERRUPT()	((void) 0)
#endif

#endif							/* HGJ_COMPAT_H */
