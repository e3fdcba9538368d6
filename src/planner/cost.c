/*-------------------------------------------------------------------------
 *
 * cost.c
 *	  What a HashGraphJoin costs, in PostgreSQL's own units.
 *
 * The model is costsize.c's for hash joins (initial_cost_hashjoin and
 * final_cost_hashjoin), with our settings in the place of the constants that
 * differ:
 *
 * 1. Start-up: the inner side in full, build_tuple_cost a row, what its keys
 *	  cost, and storing its columns, by their width; and the fixed startup_cost that
 *	  keeps small joins away; most of it once for a chain.
 * 2. Run: the outer side, probe_tuple_cost and the keys a row, as far as it is read
 *	  (part_read.c).  What a side costs
 *	  less because we do not ask its node for slots is taken off (feed_cost.c), and so is
 *	  what groups cost that have no match (group_filter.c).
 *	  The engine makes and compares raw keys itself; opaque ones need calls of
 *	  hash functions, and of their operator for each candidate.  What may have to be
 *	  evaluated row by row is charged for that (single_rows.c).
 * 3. Every candidate costs its residual clauses, and every row that is returned
 *	  emit_tuple_cost: join_path.c adds that when it knows how many there are.
 * 4. Of a build side larger than the memory limit, the part that is too much
 *	  is written to partitions and read again, and the same part of the outer
 *	  side; as many times as partitions have to be split.  Where passes are
 *	  forced, the outer rows are written once and read again for each pass but
 *	  the first.
 * 5. A partial path's outer side is one worker's share, and the same sums charge
 *	  every worker for all of the inner side and the build.  Builds that run at
 *	  the same time are slower than one alone: they share caches, memory and
 *	  often cores.  Where processes build one table together, each is charged for its
 *	  part of the inner side, and for waiting for the others.  That part is larger than the
 *	  inner path says where the outer one, whose workers run, is planned for fewer.
 * 6. Under engine = auto a join that is cheaper on a GPU is planned for it: in the
 *	  place of what the CPU needs for building and probing come what is
 *	  transferred, the batches' launches and, unless the session has one open or
 *	  the outer side is planned for it, too, opening a GPU.  The build side must be
 *	  the smaller one, or a GPU would make it seem cheap to build with the larger
 *	  side.  Whether there is a GPU is asked only when it would pay.
 *	  An outer table whose columns are kept need not be read at all where the GPU looks at
 *	  them (pipeline/device_rows_kept.c), but for the rows that come out: each is charged
 *	  several times what reading one in order costs.  Where the query has aggregates, which
 *	  may take a pipeline as a whole (7), that is left out of account.
 * 7. A pipeline (pipeline_path.c) asks what a GPU saves of a join that it takes: the
 *	  table is built as ever, its columns are transferred, and the outer rows come
 *	  there once for all joins.
 *
 * No memory is kept, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <math.h>

#include "base/guc.h"
#include "columns/keys.h"
#include "join/engines.h"
#include "kept/chunk.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "planner/planner.h"
#include "utils/lsyscache.h"

/* Bytes of graph per build row at the height of a build, about. */
#define HGJ_GRAPH_ROW_BYTES		28

/*
 * What making a key's words costs, of cpu_operator_cost: a raw key is in the
 * settings' build and probe costs, but for further ones; a text key's bytes are
 * gone through; an opaque key's hash function is called.
 */
#define HGJ_RAW_KEY_PART		0.1
#define HGJ_TEXT_KEY_PART		0.5
#define HGJ_OPAQUE_KEY_PART		1.0

/*
 * What building together costs more: for meeting the others, per process, and of the
 * build itself, which goes through shared memory.
 */
#define HGJ_MEETING_COST		10.0
#define HGJ_SHARED_BUILD_PART	1.5

/*
 * What storing a byte of a build row costs, beyond so many that build_tuple_cost is for.
 * It takes about a nanosecond (150,000 rows of 148 bytes: 20 ms), which is several times
 * this; but a hash join of PostgreSQL's own takes as long and is charged nothing, so that
 * only ours are told apart by it.
 */
#define HGJ_STORED_BYTE_COST	0.00005
#define HGJ_NARROW_ROW_BYTES	32

/* Shared memory is to be full only by mistake: the part of it that may be planned for. */
#define HGJ_SHARED_LIMIT_PART	0.7

/* Rows that go to a GPU at once; launches that come in any case. */
#define HGJ_DEVICE_BUILD_ROWS	350000
#define HGJ_DEVICE_PROBE_ROWS	262144
#define HGJ_DEVICE_BUILD_LAUNCHES	10
#define HGJ_DEVICE_PROBE_LAUNCHES	12	/* the first batches are small */

/* Of what probing costs on the CPU; kernels of 50 million rows. */
#define HGJ_DEVICE_PROBE_PART		0.01

/* What a pair that comes back costs the host, of probe_tuple_cost. */
#define HGJ_DEVICE_PAIR_PART		0.675

/* A pipeline has a thread for a row's matches (cuda/pipeline_check.cu). */
#define HGJ_DEVICE_MOST_MATCHES		1000

/*
 * See size_factor(); from joins of 50 million rows with 10 thousand, 1 and 10
 * million.
 */
#define HGJ_CACHED_FACTOR		0.3
#define HGJ_CACHED_DECADES		4.8
#define HGJ_FACTOR_PER_DECADE	0.58

/* Bytes of device memory per build row and key word, and per build row. */
#define HGJ_DEVICE_WORD_BYTES	16
#define HGJ_DEVICE_ROW_BYTES	24

/* Of a row in a partition, beside its columns. */
#define HGJ_SPILLED_ROW_BYTES	12

/* Memory that a partition takes while it is written, and the fewest there are. */
#define HGJ_PARTITION_BYTES		(16 * 1024)
#define HGJ_FEWEST_PARTITIONS	4

/* What approx_tuple_count() computes, but for the factor of both sides' rows. */
static Selectivity
hash_selectivity(PlannerInfo *root, RelOptInfo *outerrel, RelOptInfo *innerrel,
				 List *hashclauses)
{
	SpecialJoinInfo sjinfo;
	Selectivity selectivity = 1.0;
	ListCell   *lc;

	memset(&sjinfo, 0, sizeof(sjinfo));
	sjinfo.type = T_SpecialJoinInfo;
	sjinfo.min_lefthand = outerrel->relids;
	sjinfo.min_righthand = innerrel->relids;
	sjinfo.syn_lefthand = outerrel->relids;
	sjinfo.syn_righthand = innerrel->relids;
	sjinfo.jointype = JOIN_INNER;

	foreach(lc, hashclauses)
		selectivity *= clause_selectivity(root, (Node *) lfirst(lc), 0,
										  JOIN_INNER, &sjinfo);
	return selectivity;
}

/* Pages of so many rows of this width, in a table or on a temporary file. */
double
hgj_pages_of(double rows, int width)
{
	return ceil(rows * (MAXALIGN(width) + MAXALIGN(SizeofHeapTupleHeader)) /
				BLCKSZ);
}

/* A further key of the join: what it costs for a row, and how many words it takes. */
void
hgj_cost_key(HgjJoinCosts *costs, const HgjKeyPair *pair)
{
	double		operators = 0;

	if (pair->outer_kind == HGJ_KEY_OPAQUE)
	{
		costs->opaque = true;
		operators = HGJ_OPAQUE_KEY_PART;
	}
	else if (hgj_key_is_text(pair->outer_kind))
		operators = HGJ_TEXT_KEY_PART;
	else if (costs->nwords > 0)
		operators = HGJ_RAW_KEY_PART;
	costs->key_cost += cpu_operator_cost * operators;
	costs->nwords += pair->nwords;
}

/*
 * Once per pair of relations: what does not depend on their paths.  The caller
 * has set jointype, one_per_outer and semifactors, and the keys (hgj_cost_key()).
 */
void
hgj_cost_clauses(PlannerInfo *root, HgjJoinCosts *costs, RelOptInfo *outerrel,
				 RelOptInfo *innerrel, List *restrictlist)
{
	List	   *hashclauses = costs->hashclauses;

	costs->outer_in_batches = hgj_side_in_batches(hashclauses, outerrel);
	costs->inner_in_batches = hgj_side_in_batches(hashclauses, innerrel);
	costs->residual = list_length(restrictlist) > list_length(hashclauses);
	costs->recheck = costs->opaque || costs->residual;
	costs->matches_raise = costs->residual &&
		hgj_matches_raise(root, restrictlist, hashclauses);
	cost_qual_eval(&costs->match, restrictlist, root);
	if (!costs->opaque)
	{
		QualCost	hash;

		/* the engine compares raw keys, and text keys nearly always */
		cost_qual_eval(&hash, hashclauses, root);
		costs->match.startup -= hash.startup;
		costs->match.per_tuple -= hash.per_tuple;
	}
	if (costs->jointype == JOIN_RIGHT_SEMI || costs->jointype == JOIN_RIGHT_ANTI)
		costs->match.per_tuple += cpu_operator_cost;	/* its match bit */
	costs->selectivity = hash_selectivity(root, outerrel, innerrel, hashclauses);
}

/*
 * How many candidates are looked at, and matches found, of which no more than one
 * an outer row where one will do.  In semi and anti joins a matching row stops
 * after a part of its candidates, by the same guess as in final_cost_hashjoin().
 *
 * `rows`: what the join returns.  For an inner join without further clauses that
 * is the number of matches, and a better estimate than that of the clauses one by
 * one, because it knows foreign keys.  The factors of a unique inner side say
 * nothing: they are those of a semi join only in joins that are one.  *charged:
 * so many pay for residual clauses, which are no more than final_cost_hashjoin()
 * has pay for them (feed_cost.c, step 1).
 */
static double
estimate_candidates(const HgjJoinCosts *costs, const Path *outer,
					double inner_rows, double rows, double *charged)
{
	double		all = clamp_row_est(costs->selectivity * outer->rows * inner_rows);
	double		matched;

	if (costs->jointype == JOIN_INNER)
		all = costs->residual ? Max(all, rows) : rows;
	*charged = all;
	if (!costs->one_per_outer)
		return all;
	matched = rint(outer->rows * costs->semifactors->outer_match_frac);
	if (costs->jointype != JOIN_SEMI && costs->jointype != JOIN_ANTI)
	{
		*charged = Min(all, matched);
		return Min(all, outer->rows);
	}
	if (costs->recheck)
		matched = Max(matched, all *
					  Min(1.0, 2.0 / (costs->semifactors->match_count + 1.0)));
	*charged = matched;
	return matched;
}

/* Step 4, where passes are forced. */
static Cost
passes_cost(double passes, const Path *outer, Cost probe)
{
	return seq_page_cost * passes *
		hgj_pages_of(outer->rows, outer->pathtarget->width) +
		(passes - 1) * (outer->rows * cpu_tuple_cost + probe);
}

/* Step 4: what a side's spilled part costs, once written and once read. */
static Cost
partitions_cost(double fits, const Path *path)
{
	double		rows = path->rows * (1.0 - 1.0 / fits);
	double		pages = ceil(rows * (HGJ_SPILLED_ROW_BYTES +
									 MAXALIGN(path->pathtarget->width)) / BLCKSZ);
	double		limit = (double) get_hash_memory_limit();
	double		fan_out = Max(limit / HGJ_PARTITION_BYTES,
							  HGJ_FEWEST_PARTITIONS);
	double		depth = Max(ceil(log(fits) / log(fan_out)), 1);

	return depth * 2 * (seq_page_cost * pages + hgj_page_tuple_cost * rows);
}

/*
 * The settings are what a row costs with a table of a million rows.  Building and
 * probing one that stays in the processor's caches takes a third of that, and each
 * decade of rows beyond makes more of the lookups wait for memory.
 */
static double
size_factor(double rows)
{
	return HGJ_CACHED_FACTOR + HGJ_FACTOR_PER_DECADE *
		Max(log10(Max(rows, 1)) - HGJ_CACHED_DECADES, 0);
}

/* What is done with the rows of a pair of paths, or saved of it. */
typedef struct Work
{
	Cost		build;
	Cost		probe;
	Cost		outer;			/* reading that side */
} Work;

/*
 * Step 6: of an outer table, the part whose rows may be chosen by a GPU, for all that is
 * known of the join's clauses; 0 where too many are to come out, or where they are to be
 * aggregated by a pipeline, of which no join order may be kept by this.
 */
static double
part_chosen(PlannerInfo *root, const HgjJoinCosts *costs, const Path *outer,
			double candidates)
{
	if (costs->residual ||
		(costs->jointype != JOIN_INNER && costs->jointype != JOIN_LEFT &&
		 costs->jointype != JOIN_SEMI && costs->jointype != JOIN_ANTI) ||
		candidates * HGJ_CHOSEN_ROWS >= outer->parent->tuples)
		return 0;
	/* the query's join clauses are looked through last: this is asked of each pair of paths */
	if ((root->parse->hasAggs || root->parse->groupClause != NIL) &&
		(!hgj_cuda_has_columns() || !hgj_query_has_row_clause(root)))
		return 0;
	return hgj_part_chosen(root, outer, costs->hashclauses);
}

/* Step 6: can the device be had, with memory for the table? */
static bool
device_holds(const HgjJoinCosts *costs, const Path *inner)
{
	return hgj_cuda_usable(inner->rows * (HGJ_DEVICE_ROW_BYTES +
										  HGJ_DEVICE_WORD_BYTES * costs->nwords));
}

/*
 * Step 6: what threads save of the work, if they choose the rows of a join that returns them: they
 * share the reading of what is kept, and the probes.  The table is built by one of them, of rows
 * that the session sends, and the session takes in what comes out.  A join that they do not
 * choose the rows of is probed as fast by the session.
 */
static bool
threads_save(const HgjJoinCosts *costs, const Path *outer, const Path *inner,
			 double candidates, double chosen, const Work *work, Work *saving)
{
	double		left = 1 - candidates * HGJ_CHOSEN_ROWS / Max(outer->parent->tuples, 1);

	if (chosen < HGJ_THREADS_LEAST_KEPT || outer->parallel_workers > 0 ||
		!device_holds(costs, inner))
		return false;
	/* force asks threads for what they can do */
	if (hgj_force)
		return true;
	/* before the first row comes, of which a LIMIT may want no other */
	saving->build = -hgj_side_transfer_cost(inner, costs->nwords) - HGJ_THREADS_ROWS_COST;
	saving->probe = hgj_threads_saving(chosen * work->probe) - HGJ_THREADS_ROW_COST * candidates;
	saving->outer = hgj_threads_saving(chosen * work->outer) * left;
	return saving->build + saving->probe + saving->outer > 0;
}

/*
 * Step 6: what a GPU saves of the work (which may be less than nothing for a part
 * of it).  False if it saves nothing in all, or cannot be had.
 */
static bool
device_saves(PlannerInfo *root, const HgjJoinCosts *costs, const Path *outer,
			 const Path *inner, double candidates, const Work *work, Work *saving)
{
	double		chosen;
	double		sent;
	double		kilobytes;

	chosen = part_chosen(root, costs, outer, candidates);
	if (hgj_device_threads() > 0)
		return threads_save(costs, outer, inner, candidates, chosen, work, saving);
	sent = (1 - chosen) * outer->rows;
	kilobytes = inner->rows * (costs->nwords * 8 + 4) / 1024;
	saving->build = work->build - hgj_device_transfer_cost * kilobytes -
		hgj_device_launch_cost *
		(HGJ_DEVICE_BUILD_LAUNCHES + inner->rows / HGJ_DEVICE_BUILD_ROWS);
	if (outer->parallel_workers > 0 ||
		(chosen == 0 && !hgj_cuda_is_open() && !hgj_path_wants_device(outer)))
		saving->build -= hgj_device_startup_cost;
	kilobytes = (sent * costs->nwords * 8 + candidates * 8) / 1024;
	saving->probe = work->probe - hgj_device_transfer_cost * kilobytes -
		HGJ_DEVICE_PAIR_PART * hgj_probe_tuple_cost * candidates -
		hgj_device_launch_cost *
		(HGJ_DEVICE_PROBE_LAUNCHES + sent / HGJ_DEVICE_PROBE_ROWS);
	if (chosen > 0)
		saving->outer = chosen * work->outer *
			(1 - candidates * HGJ_CHOSEN_ROWS / outer->parent->tuples);
	if (saving->build + saving->probe + saving->outer <= 0)
		return false;

	return device_holds(costs, inner);
}

/* Step 7: what is saved of work that threads share. */
Cost
hgj_threads_saving(Cost work)
{
	int			threads = hgj_device_threads();

	return threads > 0 ? work * (1 - 1.0 / threads) : work;
}

/* Step 7: what it takes to bring a build side to a GPU. */
Cost
hgj_side_transfer_cost(const Path *inner, int nwords)
{
	double		kilobytes = inner->rows * (nwords * 8 + 4 + inner->pathtarget->width) / 1024;

	return hgj_device_transfer_cost * kilobytes +
		hgj_device_launch_cost * inner->rows / HGJ_DEVICE_BUILD_ROWS;
}

/*
 * Step 7: the same in a pipeline, which is what a join does there by itself: its
 * table is built as ever, and the columns that somebody reads go to the GPU.
 * Outer rows come there once for all joins, while others are being decoded, so
 * that the probes cost hardly anything.  Never more than what the join costs.
 */
static Cost
pipeline_saves(const HgjJoinCosts *costs, const Path *outer, const Path *inner,
			   double candidates, const Work *work)
{
	Cost		all = work->build + work->probe;
	Cost		saving = all - hgj_side_transfer_cost(inner, costs->nwords) -
		hgj_device_launch_cost * HGJ_DEVICE_PIPE_LAUNCHES -
		HGJ_DEVICE_PROBE_PART * work->probe;

	if (hgj_device_threads() > 0)
		saving = hgj_threads_saving(work->probe) - hgj_side_transfer_cost(inner, costs->nwords) -
			HGJ_THREADS_JOIN_COST;
	else if (candidates > HGJ_DEVICE_MOST_MATCHES * outer->rows)
		return -disable_cost;
	return Min(saving, all);
}

/* Step 1: what keeps small joins away keeps nobody from going on with a chain. */
static Cost
fixed_cost(const HgjJoinCosts *costs, const Path *outer)
{
	if (costs->outer_in_batches && hgj_is_join_path(outer))
		return hgj_startup_cost * HGJ_CHAINED_STARTUP;
	return hgj_startup_cost;
}

/*
 * Step 1: what any path of ours that is complete costs at least before its first row.
 * A chain goes on for less, but the costs of the join that it begins with are in it.
 */
Cost
hgj_least_startup(void)
{
	return hgj_force ? 0 : hgj_startup_cost;
}

/* What a build side of so many rows takes of memory; a device has the graph. */
static double
build_bytes(const Path *inner, double rows, bool device)
{
	return rows * (MAXALIGN(inner->pathtarget->width) +
				   (device ? 0 : HGJ_GRAPH_ROW_BYTES));
}

/* Will the processes that read these partial paths have memory for one table? */
bool
hgj_fits_shared(const Path *outer, const Path *inner)
{
	return build_bytes(inner, inner->parent->rows, false) <= HGJ_SHARED_LIMIT_PART *
		(double) get_hash_memory_limit() * (outer->parallel_workers + 1);
}

/*
 * Step 5: how many times as much as the inner path says each process has of it, in a
 * table that is built together.
 */
static double
larger_share(const Path *outer, const Path *inner)
{
	return Max(hgj_parallel_divisor(inner) / hgj_parallel_divisor(outer), 1);
}

/* Step 5: what building costs, but for reading the inner side. */
static Cost
build_cost(const HgjJoinCosts *costs, const Path *outer, const Path *inner,
		   double factor)
{
	int			wide = Max(inner->pathtarget->width - HGJ_NARROW_ROW_BYTES, 0);
	Cost		cost = (hgj_build_tuple_cost * factor + costs->key_cost +
						HGJ_STORED_BYTE_COST * wide) * inner->rows;

	if (!costs->shared)
		return cost;
	return HGJ_SHARED_BUILD_PART * cost * larger_share(outer, inner) +
		HGJ_MEETING_COST * (outer->parallel_workers + 1);
}

/* What the path costs less below a join of ours, which is known of this one. */
static Cost
saving_of(PlannerInfo *root, const Path *path, const HgjFedPath *known,
		  bool in_batches)
{
	return path == known->path ? known->saving : hgj_feed_saving(root, path, in_batches);
}

/*
 * Steps 1, 2 and 5: what reading the inner side costs.  Workers that have been charged for
 * below are no more where there is more to do.
 */
static Cost
inner_side_cost(PlannerInfo *root, const HgjJoinCosts *costs, const Path *outer,
				const Path *inner)
{
	Cost		saving = saving_of(root, inner, &costs->inner, costs->inner_in_batches);
	Cost		workers;

	if (!costs->shared)
		return inner->total_cost - saving +
			(outer->parallel_workers > 0 ? hgj_page_faults(root, inner) : 0);
	workers = hgj_workers_charged(root, inner);
	return (inner->total_cost - saving - workers) * larger_share(outer, inner) + workers;
}

/*
 * The costs of joining these two paths, without those of the rows it returns
 * (rows, more or less) and of their target list.
 */
void
hgj_cost_join(PlannerInfo *root, const HgjJoinCosts *costs, const Path *outer,
			  const Path *inner, double rows, HgjPairCosts *pair)
{
	double		charged;
	double		inner_rows = costs->shared ? inner->parent->rows : inner->rows;
	double		candidates = estimate_candidates(costs, outer, inner_rows, rows,
												 &charged);
	double		fits;
	Cost		build_side = inner_side_cost(root, costs, outer, inner);
	Cost		probe_side = outer->total_cost - outer->startup_cost -
		saving_of(root, outer, &costs->outer, costs->outer_in_batches);
	double		factor = size_factor(inner_rows);
	Work		work = {
		.build = build_cost(costs, outer, inner, factor),
		.probe = (hgj_probe_tuple_cost * factor + costs->key_cost) * outer->rows *
			costs->part_read,
		.outer = Max(probe_side, 0) * costs->part_read
	};
	Work		saving = {0};
	double		builds = costs->shared ? 1 : hgj_builds_of(outer, inner);
	HgjGroupSaving groups = hgj_group_saving(costs, outer, inner);
	Cost		run;

	memset(pair, 0, sizeof(*pair));
	if (costs->shared ||
		(hgj_engine == HGJ_ENGINE_AUTO && inner->rows > outer->rows))
		pair->in_pipeline = -disable_cost;
	else if (hgj_engine == HGJ_ENGINE_AUTO)
	{
		pair->in_pipeline = pipeline_saves(costs, outer, inner, candidates,
										   &work);
		pair->device = device_saves(root, costs, outer, inner, candidates, &work,
									&saving);
	}
	if (pair->device)
	{
		pair->alone = saving.build + saving.probe + saving.outer;
		work.build -= saving.build;
		work.probe -= saving.probe;
		work.outer -= saving.outer;
	}
	pair->startup = outer->startup_cost - groups.rows + fixed_cost(costs, outer) +
		builds * (Max(build_side, 0) + work.build) + costs->match.startup;
	run = Max(work.outer - groups.groups, 0) + work.probe + (costs->match.per_tuple * charged +
									 hgj_single_rows_cost(root, costs, outer, inner,
														  candidates)) *
		costs->part_read;

	/* the build side in memories */
	fits = costs->shared ? 0 : build_bytes(inner, inner->rows, pair->device) /
		(double) get_hash_memory_limit();
	if (fits > 1 && hgj_spill == HGJ_SPILL_PASSES)
		run += passes_cost(ceil(fits), outer, work.probe);
	else if (fits > 1)
	{
		pair->startup += builds * partitions_cost(fits, inner);
		run += partitions_cost(fits, outer) + work.probe * (1.0 - 1.0 / fits);
	}
	pair->total = pair->startup + run;
}
