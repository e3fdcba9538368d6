/*-------------------------------------------------------------------------
 *
 * device_sides.c
 *	  Build sides of a pipeline's joins that are made on the device, of columns that are
 *	  kept in memory: no row of them comes to the host.
 *
 * 1. At executor start: is the inner side of the join a scan of a table of which most is
 *	  kept, whose quals are instructions, and its keys plain columns?  Can what the
 *	  upper pipeline reads of its rows be had from single columns?  Then the side is a
 *	  pipeline of its own, of that scan, which fills the join's table
 *	  (engine/pipeline.h, FILLING A TABLE).
 * 2. Its instructions: the scan's quals, the key words, where rows without one are
 *	  dropped, and the columns that the upper pipeline reads of the join's rows, in its
 *	  order.  Those that the host makes go as tables of the chunks' values; codes are
 *	  those of the dictionary that the build side would have used.
 * 3. At the run, the upper pipeline's instructions are written before the tables are
 *	  built, so that it is known which columns it reads.
 * 4. A column of integers is known to lie between the least and the greatest value of
 *	  the chunks and staged rows that it has come from.
 * 5. Such a table has no rows on the host: it goes when the run is over, whatever has
 *	  become of that, and the join makes another one if it needs it.  So this is for the
 *	  first run of a plan only; others would have the table already.
 *
 * Where a row raises an error, or there is no room, the join builds its side as ever.
 *
 * Memory: the query's context; pipelines are freed at the end of the run, or, when the
 * query aborts, by device_call.c's callback.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/parallel.h"
#include "base/guc.h"
#include "executor/executor.h"
#include "expr/program_private.h"
#include "join/engines.h"
#include "join/join_state.h"
#include "kept/store.h"
#include "optimizer/optimizer.h"
#include "pipeline/device.h"
#include "utils/rel.h"

/* ---- step 2 --------------------------------------------------------------- */

/* The column of the side's table that is a column of the join's side; 0: it is none. */
static AttrNumber
table_attno(const HgjPipelineState *side, const HgjJoinState *join, int column)
{
	return hgj_device_scan_attno(side, join->inner.columns[column].attno);
}

/* Key words, without those rows that have a NULL one. */
static void
write_keys(HgjPipelineState *side, const HgjJoinState *join)
{
	HgjDeviceCode *code = &side->code;

	side->spec.nkeys = join->inner.nkeys;
	for (int k = 0; k < join->inner.nkeys; k++)
	{
		const HgjKey *key = &join->inner.keys[k];
		AttrNumber	attno = key->attno > 0 ? hgj_device_scan_attno(side, key->attno) : 0;
		uint8		kind = 0;
		uint8		reg;
		uint8		valid;

		if (k >= HGJ_PIPE_KEYS || attno == 0 || !hgj_device_kind_of_key(key->kind, &kind))
		{
			hgj_device_refuse(code, HGJ_DEVICE_KEY);
			return;
		}
		reg = hgj_device_load_column(side, HGJ_DEVICE_INPUT, attno);
		if (!TupleDescAttr(RelationGetDescr(((ScanState *) side->scan)->ss_currentRelation),
						   attno - 1)->attnotnull)
		{
			valid = hgj_device_register(code, HGJ_KIND_U1);
			EMIT(code, HGJ_PIPE_IS_NOT_NULL, .dst = valid, .a = reg);
			EMIT(code, HGJ_PIPE_FILTER, .a = valid);
		}
		side->spec.keys[k] = hgj_device_key_word(code, reg, kind);
	}
}

/*
 * What the host makes of a column of the side, as something that it makes of the table's:
 * of single columns only.  NULL: it cannot be had.
 */
static HgjDeviceMade *
make_of_table(HgjPipelineState *side, const HgjJoinState *join, const HgjDeviceMade *made)
{
	HgjDeviceMade *ours;
	ListCell   *lc;

	if (made->row_number)
		return NULL;
	foreach(lc, side->made)
	{
		ours = lfirst(lc);
		if (ours->of == made)
			return ours;
	}
	for (int k = 0; k < made->ninputs; k++)
		if (made->inputs[k] >= 0 && table_attno(side, join, made->inputs[k]) == 0)
			return NULL;
	ours = hgj_device_make_again(side, made);
	for (int k = 0; k < made->ninputs; k++)
		if (made->inputs[k] >= 0)
			ours->inputs[k] = hgj_device_read(side, table_attno(side, join, made->inputs[k]));
	return ours;
}

/* The register of a column that the upper pipeline reads of the join's rows. */
static uint8
write_column(HgjPipelineState *side, const HgjJoinState *join, const HgjDeviceColumn *column)
{
	HgjDevicePlace place = {HGJ_DEVICE_INPUT};
	HgjDeviceMade *made;
	uint8		reg;

	if (column->made)
	{
		made = make_of_table(side, join, column->made);
		if (made != NULL)
			return hgj_device_load_made(side, made);
		hgj_device_refuse(&side->code, HGJ_DEVICE_COLUMN);
		return 0;
	}
	place.column = table_attno(side, join, column->column);
	if (place.column == 0)
	{
		hgj_device_refuse(&side->code, HGJ_DEVICE_COLUMN);
		return 0;
	}
	if (join->inner.columns[column->column].dictionary)
	{
		made = hgj_device_make_codes(side, &place);
		made->codes = join->inner.columns[column->column].dictionary;
		return hgj_device_load_made(side, made);
	}
	reg = hgj_device_load_column(side, HGJ_DEVICE_INPUT, place.column);
	if (side->code.kinds[reg] != column->kind || side->code.scales[reg] != column->scale)
		hgj_device_refuse(&side->code, HGJ_DEVICE_COLUMN);
	return reg;
}

/*
 * All of it, for join j of the upper pipeline, whose instructions have been written.  With
 * `constants` the programs must have been started.  False: the side is the join's.
 */
static bool
write_side(HgjPipelineState *upper, int j, bool constants)
{
	HgjPipelineState *side = upper->sides[j];
	const HgjJoinState *join = upper->joins[j];
	HgjPipelineSpec *spec = &side->spec;

	hgj_device_begin_code(side, constants);
	spec->fills = true;
	spec->ncolumns = 0;
	if (side->scan_filter)
		hgj_device_filter_scan(side);
	write_keys(side, join);
	for (int i = 0; i < upper->ncolumns && side->code.reason == HGJ_DEVICE_FITS; i++)
	{
		const HgjDeviceColumn *column = &upper->columns[i];

		if (column->join != j)
			continue;
		Assert(column->number == (int) spec->ncolumns);
		spec->kinds[spec->ncolumns] = column->kind;
		spec->columns[spec->ncolumns] = write_column(side, join, column);
		side->side_columns[spec->ncolumns++] = *column;
	}
	hgj_device_write_end(side);
	return side->code.reason == HGJ_DEVICE_FITS;
}

/* ---- step 1 --------------------------------------------------------------- */

/* Is it a table's scan that is worth looking at? */
static bool
is_of_table(const HgjJoinState *join)
{
	const ScanState *scan = (const ScanState *) join->inner_ps;

	return join->inner.methods == &hgj_source_pages &&
		!scan->ps.plan->parallel_aware &&
		RelationGetForm(scan->ss_currentRelation)->reltuples >= hgj_device_side_rows &&
		hgj_table_may_be_kept(scan->ss_currentRelation) &&
		!contain_volatile_functions((Node *) scan->ps.plan->qual) &&
		!contain_volatile_functions((Node *) scan->ps.plan->targetlist);
}

/* Are the columns that it reads kept? */
static bool
reads_are_kept(const HgjPipelineState *side)
{
	Relation	rel = ((ScanState *) side->scan)->ss_currentRelation;
	AttrNumber	attnos[HGJ_DEVICE_READS];

	for (int i = 0; i < side->nreads; i++)
		attnos[i] = side->reads[i].attno;
	return hgj_kept_part(rel, attnos, side->nreads, RelationGetNumberOfBlocks(rel)) >=
		HGJ_LEAST_KEPT;
}

static bool
plan_side(HgjPipelineState *upper, int j, EState *estate)
{
	HgjJoinState *join = upper->joins[j];
	HgjPipelineState *side = upper->sides[j];

	side->scan = join->inner_ps;
	if (side->scan->plan->qual != NIL && !hgj_device_compile_filter(side, true))
		return false;
	if (!write_side(upper, j, false) || !hgj_device_fits_kept(side) || !reads_are_kept(side))
		return false;
	side->source.econtext = join->inner.econtext;
	hgj_device_open_scan(side, estate);
	return side->reason == HGJ_DEVICE_FITS && side->takes_kept;
}

/* When the upper pipeline's instructions have been written for the first time. */
void
hgj_device_plan_sides(HgjPipelineState *upper, EState *estate)
{
	/* programs are started before the build sides are read: what a subplan raises would
	 * come too early */
	if (!hgj_store_exists() || hgj_device_column_memory == 0 ||
		!bms_is_empty(upper->scan->plan->allParam))
		return;
	for (int j = 0; j < upper->njoins; j++)
	{
		const HgjJoinState *join = upper->joins[j];

		if (!bms_is_empty(join->css.ss.ps.plan->allParam))
			return;
		if (upper->by_row[j] || !is_of_table(join))
			continue;
		upper->sides[j] = palloc0(sizeof(HgjPipelineState));
		if (!plan_side(upper, j, estate))
			upper->sides[j] = NULL;
		upper->has_sides |= upper->sides[j] != NULL;
	}
}

/* ---- the run -------------------------------------------------------------- */

/* Is this join's side to be made so, in this run? */
bool
hgj_device_makes_side(const HgjPipelineState *upper, int j)
{
	const HgjPipelineMethods *methods = upper->engine->pipeline;

	return upper->sides[j] != NULL && !upper->sides_made &&
		upper->joins[j]->build->table == NULL && methods->fills &&
		methods->push_kept != NULL;
}

/* The table's rows; false: there are none, the side is the join's. */
static bool
fill_table(void *arg, HgjTable *table, uint32 *nrows)
{
	HgjPipelineState *side = arg;
	HgjPipelineCaller caller = {.poll = hgj_poll_interrupts,.poll_arg = &side->poll,
	.fills = table};
	HgjError	err = {0};
	uint64		n = 0;

	side->spec.timeout_ms = hgj_device_timeout;
	side->spec.memory_limit = side->device_limit;
	hgj_device_call(side, &err,
					side->engine->pipeline->create(&side->spec, &caller, &side->pipeline,
												   &err));
	if (!hgj_device_gave_up(side))
		hgj_device_call(side, &err,
						side->engine->pipeline->start(side->pipeline, NULL, 0, &err));
	if (!hgj_device_gave_up(side))
		hgj_device_push_rows(side, NULL);
	if (!hgj_device_gave_up(side))
		hgj_device_call(side, &err,
						side->engine->pipeline->finish(side->pipeline, &n, &err));
	if (hgj_device_gave_up(side))
		return false;
	side->engine->pipeline->info(side->pipeline, &side->info);
	*nrows = (uint32) n;
	return true;
}

/* The join's table, and its columns on the device.  False: nothing has happened. */
bool
hgj_device_make_side(HgjPipelineState *upper, int j)
{
	HgjPipelineState *side = upper->sides[j];
	HgjJoinState *join = upper->joins[j];
	bool		made;

	hgj_device_reset(side);
	side->engine = upper->engine;
	side->device_limit = join->use.device_limit;
	memset(side->noted, 0, sizeof(side->noted));
	if (side->scan_filter)
		hgj_program_start(side->scan_filter, side->scan->ps_ExprContext);
	if (!write_side(upper, j, true))
		return false;
	made = hgj_build_filled(join, fill_table, side);
	if (made)
		join->inner.rows_read += hgj_device_count_scan(side, side->info.dropped);
	else
	{
		hgj_device_count_scan(side, 0);
		hgj_device_log(side);
		hgj_device_release(side);
		side->source.methods->rewind(&side->source);
	}
	side->reading = false;
	side->ran = made;
	return made;
}

/* Are the columns that the upper pipeline reads of them still the ones that were made? */
bool
hgj_device_sides_fit(const HgjPipelineState *upper)
{
	int			n[HGJ_PIPE_JOINS] = {0};

	for (int i = 0; i < upper->ncolumns; i++)
	{
		const HgjDeviceColumn *column = &upper->columns[i];
		const HgjPipelineState *side = column->join >= 0 ? upper->sides[column->join] : NULL;
		const HgjDeviceColumn *made;

		if (side == NULL || side->pipeline == NULL)
			continue;
		made = &side->side_columns[n[column->join]++];
		if (made->column != column->column || made->made != column->made ||
			made->kind != column->kind || made->scale != column->scale)
			return false;
	}
	for (int j = 0; j < upper->njoins; j++)
		if (upper->sides[j] && upper->sides[j]->pipeline &&
			n[j] != (int) upper->sides[j]->spec.ncolumns)
			return false;
	return true;
}

/* Step 4: the values that a column of join j's rows may have. */
HgjPipeRange
hgj_device_side_range(const HgjPipelineState *side, const HgjDeviceColumn *column)
{
	HgjPipeRange range = {0};
	uint8		reg = side->spec.columns[column->number];

	for (int i = 0; i < side->ncolumns; i++)
	{
		const HgjDeviceColumn *ours = &side->columns[i];

		if (!ours->loaded || ours->reg != reg)
			continue;
		if (ours->made && ours->made->codes && hgj_dictionary_size(ours->made->codes) > 0)
			range = (HgjPipeRange) {true, 0, hgj_dictionary_size(ours->made->codes) - 1};
		else if (ours->made == NULL)
			range = side->noted[i];
	}
	return range;
}

/* Step 5: pipelines go, and what they have filled. */
void
hgj_device_end_sides(HgjPipelineState *upper)
{
	for (int j = 0; j < upper->njoins; j++)
	{
		HgjPipelineState *side = upper->sides[j];

		if (side == NULL || side->pipeline == NULL)
			continue;
		hgj_device_release(side);
		hgj_pages_count(&side->source, &upper->joins[j]->stats.inner_pages);
		upper->joins[j]->stats.inner_pages.on_device = true;
		side->source.methods->rewind(&side->source);
		if (hgj_device_gave_up(upper))
			hgj_drop_build(upper->joins[j]);
		else
			hgj_free_build(upper->joins[j]);
	}
	upper->sides_made = true;
}
