/*-------------------------------------------------------------------------
 *
 * device_sides.c
 *	  Build sides of a pipeline's joins that are made on the device, of columns that are
 *	  kept in memory: no row of them comes to the host.
 *
 * 1. At executor start: is the inner side of the join a scan of a table of which most is
 *	  kept, or a chain of joins over one, whose quals are instructions, and its keys plain
 *	  columns?  Can what the upper pipeline reads of its rows be had from columns of one
 *	  table each?  Then the side is a pipeline of its own, which fills the join's table
 *	  (engine/pipeline.h, FILLING A TABLE), and may have such sides itself.  Where the host
 *	  would have to look at each row's string, it may as well send those rows alone that pass.
 * 2. Its instructions: the scan's quals, its joins, the key words, where rows without one
 *	  are dropped, and the columns that the upper pipeline reads of the join's rows, in its
 *	  order.  Those that the host makes go as tables of the chunks' values; codes are
 *	  those of the dictionary that the build side would have used.
 * 3. Which columns the upper pipeline reads is known when that has been lowered.
 * 4. A column of integers is known to lie between the least and the greatest value of
 *	  the chunks, rows and build sides that it has come from.
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
#include "join/join.h"
#include "kept/store.h"
#include "optimizer/optimizer.h"
#include "pipeline/device.h"
#include "utils/rel.h"

/* ---- step 2 --------------------------------------------------------------- */

/* The column of the side's table, or of a build side below, that is its output; false: none. */
static bool
find_column(HgjPipelineState *side, AttrNumber attno, HgjDevicePlace *place)
{
	HgjDeviceOutput output;

	(void) hgj_device_find_output(side, attno, &output);
	*place = output.place;
	return output.is_column;
}

/* Key words, without those rows that have a NULL one. */
static void
write_keys(HgjPipelineState *side, const HgjJoinState *join)
{
	const HgjSource *inner = &hgj_join(join)->inner;
	HgjDeviceCode *code = &side->code;

	side->spec.nkeys = inner->nkeys;
	for (int k = 0; k < inner->nkeys && code->reason == HGJ_DEVICE_FITS; k++)
	{
		const HgjKey *key = &inner->keys[k];
		uint8		kind = 0;
		uint8		reg;
		uint8		valid;

		if (k >= HGJ_PIPE_KEYS || key->attno <= 0 || !hgj_device_kind_of_key(key->kind, &kind))
		{
			hgj_device_refuse(code, HGJ_DEVICE_KEY);
			return;
		}
		reg = hgj_device_output(side, key->attno);
		valid = hgj_device_register(code, HGJ_KIND_U1);
		EMIT(code, HGJ_PIPE_IS_NOT_NULL, .dst = valid, .a = reg);
		EMIT(code, HGJ_PIPE_FILTER, .a = valid);
		side->spec.keys[k] = hgj_device_key_word(code, reg, kind);
	}
}

/* The one side below whose columns are all that it is made of; false: there is none. */
static bool
made_below(HgjPipelineState *side, const HgjJoinState *join, const HgjDeviceMade *made,
		   int *below)
{
	bool		found = false;

	for (int k = 0; k < made->ninputs; k++)
	{
		HgjDevicePlace place;

		if (made->inputs[k] < 0)
			continue;
		if (!find_column(side, hgj_join(join)->inner.columns[made->inputs[k]].attno, &place) ||
			(found && place.join != *below))
			return false;
		*below = place.join;
		found = true;
	}
	return found;
}

/*
 * What the host makes of columns of the side, as something that it makes of the table's, or
 * of a build side's below.  NULL: it cannot be had.
 */
static HgjDeviceMade *
make_below(HgjPipelineState *side, const HgjJoinState *join, const HgjDeviceMade *made)
{
	HgjDeviceMade *ours;
	ListCell   *lc;
	int			below = 0;

	foreach(lc, side->made)
	{
		ours = lfirst(lc);
		if (ours->of == made)
			return ours;
	}
	if (made->row_number || !made_below(side, join, made, &below))
		return NULL;
	ours = hgj_device_make_again(side, made, below);
	for (int k = 0; k < made->ninputs; k++)
	{
		HgjDevicePlace place;

		if (made->inputs[k] < 0)
			continue;
		(void) find_column(side, hgj_join(join)->inner.columns[made->inputs[k]].attno, &place);
		ours->inputs[k] = below < 0 ? hgj_device_read(side, place.column) : place.column;
	}
	return ours;
}

/* The register of a column that the upper pipeline reads of the join's rows. */
static uint8
write_column(HgjPipelineState *side, const HgjJoinState *join, const HgjDeviceColumn *column)
{
	const HgjColumn *stored = &hgj_join(join)->inner.columns[column->column];
	HgjDevicePlace place;
	HgjDeviceMade *made;
	uint8		reg;

	if (column->made)
	{
		made = make_below(side, join, column->made);
		if (made != NULL)
			return hgj_device_load_made(side, made);
		hgj_device_refuse(&side->code, HGJ_DEVICE_COLUMN);
		return 0;
	}
	if (stored->dictionary)
	{
		if (!find_column(side, stored->attno, &place) ||
			(place.join >= 0 &&
			 hgj_join(side->joins[place.join])->inner.columns[place.column].dictionary))
		{
			hgj_device_refuse(&side->code, HGJ_DEVICE_COLUMN);
			return 0;
		}
		made = hgj_device_make_codes(side, &place);
		/* a subquery may return a column twice: each has a dictionary of its own */
		if (made->codes != NULL && made->codes != stored->dictionary)
		{
			hgj_device_refuse(&side->code, HGJ_DEVICE_COLUMN);
			return 0;
		}
		made->codes = stored->dictionary;
		return hgj_device_load_made(side, made);
	}
	reg = hgj_device_output(side, stored->attno);
	if (side->code.kinds[reg] != column->kind || side->code.scales[reg] != column->scale)
		hgj_device_refuse(&side->code, HGJ_DEVICE_COLUMN);
	return reg;
}

/*
 * Lower it all, for join j of the upper pipeline, which has been lowered.  False: the side is the
 * join's.
 */
bool
hgj_device_lower_side(HgjPipelineState *upper, int j)
{
	HgjPipelineState *side = upper->sides[j];
	const HgjJoinState *join = upper->joins[j];
	HgjPipelineSpec *spec = &side->spec;

	hgj_device_write_joins(side);
	spec->fills = true;
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
is_of_table(const ScanState *scan)
{
	return !scan->ps.plan->parallel_aware &&
		RelationGetForm(scan->ss_currentRelation)->reltuples >= hgj_device_side_rows &&
		hgj_table_may_be_kept(scan->ss_currentRelation) &&
		!contain_volatile_functions((Node *) scan->ps.plan->qual) &&
		!contain_volatile_functions((Node *) scan->ps.plan->targetlist);
}

/*
 * What the side reads: a table, whose columns alone are wanted and no expressions, or joins
 * over one.  Returns the source that would have read it for the host, or NULL if the side is
 * not for this.
 */
static const HgjSource *
find_scan(HgjPipelineState *side, HgjJoinState *join)
{
	const HgjSource *source = &hgj_join(join)->inner;
	int			ncols = list_length(hgj_join(join)->inner_ps->plan->targetlist);

	side->scan = hgj_join(join)->inner_ps;
	side->scan_programs = palloc0(mul_size(ncols + 1, sizeof(HgjProgram *)));
	side->scan_computed = palloc(ncols + 1);
	if (hgj_source_join(source))
	{
		if (hgj_device_find_joins(side, hgj_source_join(source)) != HGJ_DEVICE_FITS)
			return NULL;
		source = &hgj_join(side->joins[0])->outer;
	}
	return source->methods == &hgj_source_pages && is_of_table((ScanState *) side->scan) ?
		source : NULL;
}

/*
 * Programs are started before the build sides are read, so that what a subplan raises would
 * come too early.
 */
static bool
takes_parameters(const HgjPipelineState *d)
{
	for (int j = 0; j < d->njoins; j++)
		if (!bms_is_empty(hgj_join(d->joins[j])->css.ss.ps.plan->allParam))
			return true;
	return !bms_is_empty(d->scan->plan->allParam);
}

static bool
plan_side(HgjPipelineState *upper, int j, EState *estate)
{
	HgjPipelineState *side = upper->sides[j];
	const HgjSource *source = find_scan(side, upper->joins[j]);

	if (source == NULL || takes_parameters(side) ||
		(side->scan->plan->qual != NIL && !hgj_device_compile_filter(side, true)))
		return false;
	if (!hgj_device_lower_side(upper, j) || !hgj_device_reads_are_kept(side) ||
		!hgj_device_makes_of_values(side))
		return false;
	side->source.econtext = source->econtext;
	hgj_device_open_scan(side, estate);
	if (side->reason != HGJ_DEVICE_FITS || !side->takes_kept)
		return false;
	hgj_device_plan_sides(side, estate);
	return true;
}

/* When the upper pipeline's instructions have been written for the first time. */
void
hgj_device_plan_sides(HgjPipelineState *upper, EState *estate)
{
	bool		possible = hgj_store_exists() && hgj_device_column_memory != 0 &&
		!takes_parameters(upper);

	for (int j = 0; j < upper->njoins; j++)
	{
		HgjJoinState *inner;

		if (possible && !upper->by_row[j])
		{
			upper->sides[j] = palloc0(sizeof(HgjPipelineState));
			if (!plan_side(upper, j, estate))
				upper->sides[j] = NULL;
		}
		inner = hgj_join_of(hgj_join(upper->joins[j])->inner_ps);
		if (upper->sides[j] == NULL && inner)
			hgj_leave_pipeline(inner);
	}
}

/* ---- the run -------------------------------------------------------------- */

/* Is this join's side to be made so, in this run? */
bool
hgj_device_makes_side(const HgjPipelineState *upper, int j)
{
	const HgjPipelineMethods *methods = upper->engine->pipeline;

	return upper->sides[j] != NULL && !upper->sides_made &&
		hgj_join(upper->joins[j])->build->table == NULL && methods->fills &&
		methods->push_kept != NULL;
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

/* Step 4: the values that a column of the side's rows may have. */
HgjPipeRange
hgj_device_side_range(const HgjPipelineState *side, const HgjDeviceColumn *column)
{
	HgjPipeRange range = {0};
	uint8		reg = side->spec.columns[column->number];

	for (int i = 0; i < side->ncolumns; i++)
	{
		const HgjDeviceColumn *ours = &side->columns[i];
		const HgjDictionary *codes = ours->made ? ours->made->codes : NULL;

		if (!ours->loaded || ours->reg != reg)
			continue;
		if (codes && hgj_dictionary_size(codes) > 0)
			range = (HgjPipeRange) {true, 0, hgj_dictionary_size(codes) - 1};
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
		HgjPageCounts *pages = hgj_join_inner_pages(upper->joins[j]);

		if (side == NULL || !side->ran)
			continue;
		if (side->njoins == 0)
			hgj_pages_count(&side->source, pages);
		pages->on_device = true;
		hgj_device_end(side);
		hgj_device_end_sides(side);
		if (hgj_device_gave_up(upper))
			hgj_drop_build(upper->joins[j]);
		else
			hgj_free_build(upper->joins[j]);
		side->ran = false;
	}
	upper->sides_made = true;
}
