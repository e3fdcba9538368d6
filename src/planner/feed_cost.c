/*-------------------------------------------------------------------------
 *
 * feed_cost.c
 *	  What rows cost on their way into and out of a HashGraphJoin.
 *
 * 1. A join charges emit_tuple_cost for each row that it returns, but not where
 *	  it is known when its path is made that a HashGraphAgg will take what it
 *	  finds (agg_path.c).  Where the inner side is unique, final_cost_hashjoin()
 *	  charges for the rows that the join's selectivity leaves of the outer side,
 *	  which is next to none for a foreign key; so that our rows do not seem dearer
 *	  than PostgreSQL's, neither do we charge for more.
 * 2. What a join of ours, or a HashGraphAgg, reads without asking for slots costs
 *	  less than the path below says: of a join just what was charged for its rows,
 *	  never more, so that a chain never becomes cheaper by a join more.  Keys that
 *	  are expressions rule that out (join/setup.c decides).
 * 3. Of a sequential scan, cpu_tuple_cost a row gives way to page_tuple_cost and
 *	  page_attribute_cost for each attribute that has to be walked over: columns
 *	  behind nothing but others of a fixed width lie at known offsets, those
 *	  behind do not.  Filters on columns of common types run over vectors, which
 *	  costs a part of what rows cost one by one.
 * 4. A partial path charges one worker's share of all that.  Where a table stays in
 *	  shared buffers, so is what its pages cost, of which PostgreSQL charges all to
 *	  each process; but a worker, which is a new process, has a page fault for many.
 * 5. seq_page_cost is charged for every page of a sequential scan, cached or not,
 *	  while repeated index scans are charged for few pages where
 *	  effective_cache_size holds them.  PostgreSQL gets away with that because its
 *	  scans need about that much more for a page's rows than cpu_tuple_cost says.
 *	  Ours do not, so that lookups would seem cheaper than reading a table once:
 *	  where effective_cache_size holds all of the query's tables, three fifths of what
 *	  their pages cost is taken off, or more if the session has read them before.
 * 6. Of a scan below a HashGraphAgg nothing is: PostgreSQL's own aggregation reads
 *	  the same pages, or has an index that is charged for cold ones, too.  Only workers are
 *	  charged for what their page faults cost more than one process needs for all pages.
 * 7. Of pages whose columns are kept in memory (kept/kept_part.c) nothing is read, by
 *	  whomever, and a row costs a part of page_tuple_cost for each column, whatever
 *	  stands before it.  That part was measured in CPU time, each query with columns
 *	  kept and not, in turn: of three million rows of four integers, and half as many
 *	  of ten columns, a row of pages took 2.4 nanoseconds, and 1 more for each attribute
 *	  that was walked over; one of kept columns took 0.5 for each of them.  Workers have
 *	  page faults of what they read of them.
 *
 * No memory is kept, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "access/sysattr.h"
#include "access/table.h"
#include "base/guc.h"
#include "base/known_pages.h"
#include "base/mapped_memory.h"
#include "base/worker_time.h"
#include "catalog/pg_type.h"
#include "expr/program.h"
#include "kept/store.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "port/pg_bitutils.h"
#include "planner/planner.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/spccache.h"

/* Of what filters cost, where they run over vectors. */
#define HGJ_VECTOR_QUAL_PART	0.2

/* Of what a page costs, where effective_cache_size holds the query's tables. */
#define HGJ_CACHED_PAGE_PART	0.4

/* What it costs less of that where the session has read it before (known_pages.c). */
#define HGJ_KNOWN_PAGE_PART		0.15

/*
 * The same of a page of shared buffers for a process that is the first time there, as
 * workers are: page faults, and it does not know the buffer (recent_buffers.c).
 */
#define HGJ_PAGE_FAULT_PART		0.45

/*
 * Step 7: of page_tuple_cost, what a kept column costs for a row; of what filters cost,
 * what they do over them; the bytes of a value, of which a worker has page faults.
 */
#define HGJ_KEPT_COLUMN_PART	0.2
#define HGJ_KEPT_QUAL_PART		0.05
#define HGJ_KEPT_VALUE_BYTES	2

/*
 * Step 7: into how many ranges of blocks a parallel scan divides a table, and how many
 * blocks are the most of one (heapam.c, table_block_parallelscan_startblock_init()); and
 * how many bytes of a file are mapped at a fault (Linux's fault_around_bytes).
 */
#define HGJ_SCAN_RANGES			2048
#define HGJ_MOST_RANGE_BLOCKS	8192
#define HGJ_FAULT_BYTES			65536

/* May that side be read by pages or batches: is every key of it a column? */
bool
hgj_side_in_batches(List *hashclauses, const RelOptInfo *rel)
{
	ListCell   *lc;

	if (hgj_source == HGJ_SOURCE_TUPLES)
		return false;
	foreach(lc, hashclauses)
	{
		Node	   *operand = hgj_key_of_side(lfirst_node(RestrictInfo, lc), rel);
		const Expr *column = hgj_strip_relabel((Expr *) operand);

		if (column == NULL || !IsA(column, Var))
			return false;
	}
	return true;
}

/*
 * Step 1: for how many of 10^9 outer rows paths of this pair of relations are
 * charged; -1: for those that they return.
 */
int
hgj_emitted_part(JoinType jointype, const JoinPathExtraData *extra)
{
	if (!extra->inner_unique || jointype == JOIN_SEMI || jointype == JOIN_ANTI)
		return -1;
	return (int) rint(1e9 * extra->semifactors.outer_match_frac);
}

/* Step 1: what a path of ours is charged for its rows. */
Cost
hgj_emission_cost(const Path *path)
{
	const CustomPath *join = (const CustomPath *) hgj_below_projections(path);
	const Path *outer = linitial(join->custom_paths);
	double		rows = path->rows;
	int			part;

	if (!hgj_path_fact(path, HGJ_PATH_EMITS))
		return 0;
	part = hgj_path_fact(path, HGJ_PATH_EMITTED);
	if (part >= 0)
		rows = Min(rows, rint(outer->rows * 1e-9 * part));
	return hgj_emit_tuple_cost * rows * (hgj_force ? HGJ_FORCE_DISCOUNT : 1.0);
}

/*
 * The columns of the table that the scan's target or its filter reads, ascending, in
 * an array of MaxHeapAttributeNumber.  *plain: no others, such as ctid, are read.
 */
static int
columns_read(const RelOptInfo *rel, const PathTarget *target, AttrNumber *attnos,
			 bool *plain)
{
	Bitmapset  *members = NULL;
	int			n = 0;
	int			member = -1;
	ListCell   *lc;

	pull_varattnos((Node *) target->exprs, rel->relid, &members);
	foreach(lc, rel->baserestrictinfo)
		pull_varattnos((Node *) lfirst_node(RestrictInfo, lc)->clause,
					   rel->relid, &members);
	*plain = true;
	while ((member = bms_next_member(members, member)) >= 0)
	{
		int			attno = member + FirstLowInvalidHeapAttributeNumber;

		if (attno <= 0)
			*plain = false;
		/* a whole row */
		if (attno == InvalidAttrNumber)
			attno = rel->max_attr;
		if (attno > 0 && (n == 0 || attnos[n - 1] < attno))
			attnos[n++] = (AttrNumber) attno;
	}
	bms_free(members);
	return n;
}

/* Step 3: how many attributes stand between those at known offsets and `last`. */
static int
attributes_walked(TupleDesc desc, AttrNumber last)
{
	AttrNumber	attno = 1;

	for (; attno < last; attno++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, attno - 1);

		/* char(n) is as long in nearly all rows */
		if (att->attlen < 0 && (att->atttypid != BPCHAROID || att->atttypmod < 0))
			break;
	}
	return Max(last - attno, 0);
}

/* Steps 3 and 7: what the scan of a table reads.  The planner has locked it. */
typedef struct ScanFacts
{
	int			ncolumns;
	int			walked;			/* attributes, for a row of pages */
	double		kept;			/* the part of the pages that is not read */
} ScanFacts;

static ScanFacts
scan_facts(PlannerInfo *root, const RelOptInfo *rel, const PathTarget *target)
{
	AttrNumber	attnos[MaxHeapAttributeNumber];
	Relation	table = table_open(planner_rt_fetch(rel->relid, root)->relid, NoLock);
	ScanFacts	facts = {0};
	bool		plain;

	facts.ncolumns = columns_read(rel, target, attnos, &plain);
	if (facts.ncolumns > 0)
		facts.walked = attributes_walked(RelationGetDescr(table),
										 attnos[facts.ncolumns - 1]);
	if (plain)
		facts.kept = hgj_kept_part(table, attnos, facts.ncolumns, rel->pages);
	table_close(table, NoLock);
	return facts;
}

/* Step 7: the part of the table's pages that a scan with this target need not read. */
static double
part_kept(PlannerInfo *root, const RelOptInfo *rel, const PathTarget *target)
{
	if (!hgj_store_may_have(planner_rt_fetch(rel->relid, root)->relid))
		return 0;
	return scan_facts(root, rel, target).kept;
}

double
hgj_part_kept(PlannerInfo *root, const RelOptInfo *rel)
{
	return part_kept(root, rel, rel->reltarget);
}

/* Does the operator compare strings in another way than for being equal? */
static bool
calls_for_strings(Oid opno, List *args)
{
	bool		invert;

	switch (exprType(linitial(args)))
	{
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
			return !hgj_is_text_equality(get_opcode(opno), &invert);
		default:
			return false;
	}
}

/*
 * Is it no expression that runs over vectors of fixed-width values, of text or, if that is
 * true of *context, of decimals?
 */
static bool
not_for_vectors(Node *node, void *context)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Var:
		case T_Const:
			switch (exprType(node))
			{
				case BOOLOID:
				case INT2OID:
				case INT4OID:
				case INT8OID:
				case FLOAT4OID:
				case FLOAT8OID:
				case DATEOID:
				case TIMESTAMPOID:
				case TIMESTAMPTZOID:
				case OIDOID:
					return false;
				case TEXTOID:
				case VARCHAROID:
				case BPCHAROID:
					return false;
				case NUMERICOID:
					return !*(const bool *) context;
				default:
					return !IsA(node, Const) ||
						!OidIsValid(get_element_type(exprType(node)));
			}
		case T_OpExpr:
			return calls_for_strings(((OpExpr *) node)->opno,
									 ((OpExpr *) node)->args) ||
				expression_tree_walker(node, not_for_vectors, context);
		case T_ScalarArrayOpExpr:
			return calls_for_strings(((ScalarArrayOpExpr *) node)->opno,
									 ((ScalarArrayOpExpr *) node)->args) ||
				expression_tree_walker(node, not_for_vectors, context);
		case T_BoolExpr:
		case T_NullTest:
		case T_RelabelType:
			return expression_tree_walker(node, not_for_vectors, context);
		default:
			return true;
	}
}

/*
 * Steps 3 and 7: what the scan's filters cost less for a row.  Numerics are decimals where
 * they are kept, and have to be taken apart elsewhere.
 */
static Cost
filter_saving(PlannerInfo *root, const RelOptInfo *rel, double kept)
{
	static const bool never = false;
	static const bool kept_ones = true;
	Cost		saving = 0;
	ListCell   *lc;

	foreach(lc, rel->baserestrictinfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);
		double		part = kept * HGJ_KEPT_QUAL_PART + (1 - kept) * HGJ_VECTOR_QUAL_PART;
		QualCost	cost;

		if (not_for_vectors((Node *) rinfo->clause, unconstify(bool *, &never)))
			part = kept * HGJ_KEPT_QUAL_PART + (1 - kept);
		if (part == 1 ||
			not_for_vectors((Node *) rinfo->clause, unconstify(bool *, &kept_ones)))
			continue;
		cost_qual_eval_node(&cost, (Node *) rinfo, root);
		saving += cost.per_tuple * (1 - part);
	}
	return saving;
}

/* Step 4: among how many processes is it divided?  Not more than processors. */
static double
sharers(const Path *path)
{
	return path->parallel_workers == 0 ? 1 :
		Min(hgj_parallel_divisor(path), hgj_usable_processors());
}

/* Step 4: what the scan's rows save, each `stock` - `ours`, of the path's costs. */
static Cost
rows_saving(const Path *path, Cost stock, Cost ours)
{
	double		tuples = path->parent->tuples;
	double		divisor = path->parallel_workers == 0 ? 1 : hgj_parallel_divisor(path);

	return stock * tuples / divisor - ours * tuples / sharers(path);
}

/*
 * Steps 4 and 5: what reading a page of the table costs, as a part of what PostgreSQL
 * charges, in a worker or not; where all tables of the query fit into the cache that is
 * said to be there.  Of a table that does not fit into a quarter of shared buffers, what is
 * not known to be there is read through a ring of a few of them (heapam.c), by whichever
 * process.  What the session itself reads for the first time it has for its next queries,
 * so that this one is charged for half of it; otherwise workers, which pay each time, would be
 * taken for ever where they are a little faster than the first time.
 */
static double
cached_page_part(PlannerInfo *root, const RelOptInfo *rel, bool in_worker)
{
	double		known = hgj_known_part(planner_rt_fetch(rel->relid, root)->relid, rel->pages);
	bool		stays = rel->pages <= (BlockNumber) NBuffers / 4;

	if (in_worker)
		return HGJ_CACHED_PAGE_PART +
			HGJ_PAGE_FAULT_PART * (hgj_force ? HGJ_FORCE_DISCOUNT : 1.0) *
			(stays ? 1 : known);
	if (stays && rel->pages >= HGJ_FEWEST_KNOWN_PAGES)
		known = (1 + known) / 2;
	return HGJ_CACHED_PAGE_PART - HGJ_KNOWN_PAGE_PART * known;
}

/* What PostgreSQL charges for all pages of a table. */
static Cost
all_pages(const RelOptInfo *rel)
{
	double		page_cost;

	get_tablespace_page_costs(rel->reltablespace, NULL, &page_cost);
	return page_cost * rel->pages;
}

/* Step 5: the same; 0: they are not cached. */
static Cost
cached_pages(PlannerInfo *root, const RelOptInfo *rel)
{
	return root->total_table_pages > effective_cache_size ? 0 : all_pages(rel);
}

/*
 * Step 7: of the memory in which a column is kept, the part that a process of a parallel scan
 * has mapped in the end.  It reads a range of blocks here and a range there, and each fault
 * maps what lies around it, too.
 */
static double
kept_part_mapped(const Path *path, double fault_bytes)
{
	const RelOptInfo *rel = path->parent;
	double		blocks = pg_nextpower2_32(Max(rel->pages / HGJ_SCAN_RANGES, 1));
	double		range = Min(blocks, HGJ_MOST_RANGE_BLOCKS) * HGJ_KEPT_VALUE_BYTES *
		rel->tuples / rel->pages;

	return Min((range + fault_bytes) / Max(range * sharers(path), 1), 1);
}

/*
 * Step 7: what a page of memory in which columns are kept costs a process of a parallel scan for
 * faults, as a part of a page of the table.  A fault maps a huge page, if it is in one.
 */
static double
kept_fault_part(const Path *path)
{
	double		huge = hgj_store_huge_part();

	return HGJ_PAGE_FAULT_PART *
		((1 - huge) * kept_part_mapped(path, HGJ_FAULT_BYTES) +
		 huge * kept_part_mapped(path, HGJ_HUGE_PAGE) * HGJ_FAULT_BYTES / HGJ_HUGE_PAGE);
}

/* Step 7: what it costs less that pages need not be read. */
static Cost
kept_pages_saving(const Path *path, const ScanFacts *facts)
{
	const RelOptInfo *rel = path->parent;
	Cost		saving = all_pages(rel);

	if (path->parallel_workers > 0 && rel->pages > 0)
		saving -= saving / rel->pages * kept_fault_part(path) *
			facts->ncolumns * HGJ_KEPT_VALUE_BYTES * rel->tuples / BLCKSZ;
	return facts->kept * Max(saving, 0);
}

/* Steps 4, 5 and 7: what reading the pages of a sequential scan costs less. */
static Cost
pages_saving(PlannerInfo *root, const Path *path, const ScanFacts *facts)
{
	double		part = cached_page_part(root, path->parent, path->parallel_workers > 0);

	return kept_pages_saving(path, facts) +
		(1 - facts->kept) * cached_pages(root, path->parent) * (1 - part / sharers(path));
}

/*
 * Step 4: what a scan that every worker makes on its own costs more than the same
 * in one process.
 */
Cost
hgj_page_faults(PlannerInfo *root, const Path *path)
{
	const RelOptInfo *rel = path->parent;
	Cost		pages;

	if (path->pathtype != T_SeqScan || rel->rtekind != RTE_RELATION)
		return 0;
	pages = cached_pages(root, rel);
	if (pages == 0)
		return 0;
	return pages * (1 - part_kept(root, rel, path->pathtarget)) *
		(cached_page_part(root, rel, true) - cached_page_part(root, rel, false));
}

/*
 * Step 4: what page faults cost workers that look rows of a table up, of which costsize.c
 * knows nothing.  A fault maps the pages around the row as well.
 */
Cost
hgj_lookup_page_faults(PlannerInfo *root, const Path *path)
{
	const JoinPath *join = (const JoinPath *) path;
	const Path *inner;
	double		pages;

	if (!IsA(path, NestPath) || path->parallel_workers == 0)
		return 0;
	inner = join->innerjoinpath;
	if ((inner->pathtype != T_IndexScan && inner->pathtype != T_BitmapHeapScan) ||
		inner->param_info == NULL || inner->parent->pages < HGJ_FEWEST_KNOWN_PAGES)
		return 0;
	pages = join->outerjoinpath->rows * hgj_parallel_divisor(path) *
		Max(inner->rows, 1) * (HGJ_FAULT_BYTES / BLCKSZ);
	return cached_pages(root, inner->parent) / inner->parent->pages *
		Min(pages, inner->parent->pages) * HGJ_PAGE_FAULT_PART / sharers(path);
}

/* Steps 3 and 7: what the rows of a sequential scan cost less, but not its pages. */
static Cost
scan_rows_saving(PlannerInfo *root, const Path *path, const ScanFacts *facts)
{
	Cost		read_cost = hgj_page_tuple_cost +
		hgj_page_attribute_cost * facts->walked;
	Cost		kept_cost = Min(read_cost, hgj_page_tuple_cost * HGJ_KEPT_COLUMN_PART *
								facts->ncolumns);
	Cost		row_cost = facts->kept * kept_cost + (1 - facts->kept) * read_cost;

	return Max(rows_saving(path, cpu_tuple_cost +
						   filter_saving(root, path->parent, facts->kept), row_cost), 0);
}

/*
 * Step 2: what a side costs less than its path says, because we do not ask the
 * path's node for slots, or more, because of its workers (worker_cost.c).  plan.c
 * takes it off the child's plan as well, so that in EXPLAIN no node seems to cost
 * less than its children.
 */
Cost
hgj_feed_saving(PlannerInfo *root, const Path *path, bool in_batches)
{
	Cost		uncharged = hgj_uncharged_workers(root, path);
	ScanFacts	facts;
	ListCell   *lc;

	if (!in_batches)
		return -uncharged;
	if (hgj_is_join_path(path))
		return hgj_emission_cost(path);
	if (IsA(path, GatherPath))
		uncharged += Max(HGJ_GATHER_TUPLE_COST - parallel_tuple_cost, 0) * path->rows;
	if (uncharged > 0)
		return -uncharged;
	if (path->pathtype != T_SeqScan || path->parent->rtekind != RTE_RELATION)
		return 0;
	foreach(lc, path->pathtarget->exprs)
		if (!IsA(lfirst(lc), Var))
			return 0;
	facts = scan_facts(root, path->parent, path->pathtarget);
	return pages_saving(root, path, &facts) + scan_rows_saving(root, path, &facts);
}

/* Step 4: what the pages of a partial scan cost its processes more than one alone. */
static Cost
shared_page_faults(PlannerInfo *root, const Path *path)
{
	if (path->parallel_workers == 0)
		return 0;
	return cached_pages(root, path->parent) *
		Max(cached_page_part(root, path->parent, true) / sharers(path) -
			cached_page_part(root, path->parent, false), 0);
}

/* Steps 6 and 7: what a scan below a HashGraphAgg costs less. */
static Cost
agg_scan_saving(PlannerInfo *root, const Path *path)
{
	ScanFacts	facts = scan_facts(root, path->parent, path->pathtarget);

	return scan_rows_saving(root, path, &facts) + kept_pages_saving(path, &facts) -
		(1 - facts.kept) * shared_page_faults(root, path);
}

/*
 * Step 6: the same of what a HashGraphAgg reads, joins of ours or sequential scans,
 * all possibly below a projection.  A child of a parallel Append that is no partial
 * path is one of the processes'.
 */
Cost
hgj_agg_feed_saving(PlannerInfo *root, const Path *path)
{
	Cost		saving = 0;
	ListCell   *lc;

	foreach(lc, hgj_agg_inputs(path))
	{
		const Path *input = lfirst(lc);
		Cost		part = hgj_is_scan_path(input) ?
			agg_scan_saving(root, hgj_below_projections(input)) :
			hgj_feed_saving(root, input, true);

		if (input->parallel_workers == 0 && path->parallel_workers > 0)
			part /= hgj_parallel_divisor(path);
		saving += part;
	}
	return saving;
}

static bool
costs_less(const HgjFedPath *a, const HgjFedPath *b)
{
	return a->path->total_cost - a->saving < b->path->total_cost - b->saving;
}

/*
 * The path of the relation that costs us least, which need not be the one that
 * costs PostgreSQL least: an index-only scan, say, has fewer pages to read, and
 * slots to fill.  partial: of its partial paths.  No path: there is none without
 * parameters.
 *
 * Where another extension has paths of its own for the table, what they cost says
 * which are wanted, and our savings do not come into it.  Nor is a scan then divided
 * among workers: that the extension has left it, but none of its own, may only mean that
 * the table is not to be read so.
 */
HgjFedPath
hgj_cheapest_fed(PlannerInfo *root, RelOptInfo *rel, bool in_batches,
				 bool partial)
{
	HgjFedPath	best = {0};
	bool		foreign = hgj_has_foreign_paths(root, rel);
	List	   *paths = partial ? rel->partial_pathlist : rel->pathlist;
	ListCell   *lc;

	foreach(lc, paths)
	{
		HgjFedPath	fed = {.path = lfirst(lc)};

		if (fed.path->param_info || (foreign && partial && hgj_is_scan_path(fed.path)))
			continue;
		fed.saving = hgj_feed_saving(root, fed.path, in_batches && !foreign);
		if (best.path == NULL ||
			hgj_disabled_nodes(fed.path) < hgj_disabled_nodes(best.path) ||
			(hgj_disabled_nodes(fed.path) == hgj_disabled_nodes(best.path) &&
			 costs_less(&fed, &best)))
			best = fed;
	}
	if (best.path && foreign)
		best.saving = hgj_feed_saving(root, best.path, in_batches);
	return best;
}
