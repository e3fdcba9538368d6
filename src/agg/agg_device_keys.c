/*-------------------------------------------------------------------------
 *
 * agg_device_keys.c
 *	  Group keys of an aggregation that runs as a pipeline: what the device has in
 *	  their place, and the keys' values again.
 *
 * 1. What passes by value is a word, and so is a code that a build side stores in
 *	  a value's place (join/encode.c).  A numeric column whose typmod gives it a scale
 *	  is a decimal.
 * 2. Of several columns of a build side, one that passes by value may have another
 *	  value in each row.  Then the number of the row is the key, and they all are looked
 *	  up in it: rows have equal keys only if they are the same.  Whether it is so,
 *	  is seen before each run.
 * 3. All else that passes by reference is a code that the host makes
 *	  (device_host.c), if its equal values look equal: it is the first one that is
 *	  returned, which may be that of a row without a match.
 * 4. A device is faster where it knows that there are but a few codes.  What ANALYZE has
 *	  found of an outer column is doubled; where that is too little after all, the run
 *	  begins anew without.
 *
 * Values are copied to the group table's arena.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "access/htup_details.h"
#include "agg/agg_state.h"
#include "catalog/pg_statistic.h"
#include "columns/decimal.h"
#include "expr/program_private.h"
#include "join/join.h"
#include "miscadmin.h"
#include "pipeline/device.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* The part of the memory limit that it may take to see whether rows differ. */
#define HGJ_ROWS_SHARE		4

/* A column has few values. */
#define HGJ_FEW_VALUES		100

/* The expression that the k-th key is. */
static Node *
key_expr(const HgjAggState *agg, int k)
{
	CustomScan *cscan = castNode(CustomScan, agg->css.ss.ps.plan);
	TargetEntry *tle = list_nth(cscan->custom_scan_tlist, agg->groups.keys[k].column);

	return (Node *) tle->expr;
}

static Oid
key_equality(const HgjAggState *agg, int k)
{
	CustomScan *cscan = castNode(CustomScan, agg->css.ss.ps.plan);

	return list_nth_oid(list_nth(cscan->custom_private, HGJ_AGG_GROUP_OPERATORS), k);
}

/* A value of the key that tells others from it by itself, as it stands. */
static bool
is_plain_word(const HgjGroupKey *key)
{
	return key->kind == HGJ_GROUP_WORD && key->dictionary == NULL;
}

/* Step 2: where it may be of use. */
void
hgj_device_plan_keys(HgjPipelineState *d)
{
	const HgjGroups *groups = &d->agg->groups;
	bool		words[HGJ_PIPE_JOINS] = {0};
	bool		others[HGJ_PIPE_JOINS] = {0};

	d->keys = palloc0(mul_size(groups->nkeys + 1, sizeof(HgjDeviceKey)));
	for (int k = 0; k < groups->nkeys; k++)
	{
		HgjDeviceOutput output;

		if (!hgj_device_find_output(d, groups->keys[k].column + 1, &output) ||
			!output.is_column || output.place.join < 0)
			continue;
		if (is_plain_word(&groups->keys[k]))
			words[output.place.join] = true;
		else
			others[output.place.join] = true;
	}
	for (int j = 0; j < d->njoins; j++)
		d->by_row[j] = d->by_row_now[j] = words[j] && others[j];
}

/* The word of a record's column; false: it is NULL. */
static inline bool
load_word(const HgjBuildSide *build, const HgjStoredColumn *stored, uint32 row,
		  uint64 *word)
{
	const char *record = hgj_row_store_record(&build->rows, row);

	*word = (uint64) hgj_load(record + stored->offset, stored->width);
	return !stored->has_nulls || !hgj_record_is_null(stored, record);
}

/* Least and largest of a column's words; false: there are NULLs, or no rows. */
static bool
find_range(const HgjBuildSide *build, const HgjStoredColumn *stored, int64 *low, int64 *high)
{
	bool		valid = build->total_rows > 0;

	for (uint32 row = 0; row < build->total_rows && valid; row++)
	{
		uint64		word;

		if (row % HGJ_CHUNK == 0)
			CHECK_FOR_INTERRUPTS();
		valid = load_word(build, stored, row, &word);
		*low = row == 0 ? (int64) word : Min(*low, (int64) word);
		*high = row == 0 ? (int64) word : Max(*high, (int64) word);
	}
	return valid;
}

/* Has no two rows the same word?  A bit for each that there could be says which are seen. */
static bool
differ_by_bits(const HgjBuildSide *build, const HgjStoredColumn *stored, int64 low,
			   uint64 span)
{
	uint64	   *seen = palloc_extended((span / 64 + 1) * sizeof(uint64),
									   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	bool		unique = true;

	for (uint32 row = 0; row < build->total_rows && unique; row++)
	{
		uint64		word;
		uint64		bit;

		if (row % HGJ_CHUNK == 0)
			CHECK_FOR_INTERRUPTS();
		(void) load_word(build, stored, row, &word);
		word -= (uint64) low;
		bit = UINT64CONST(1) << (word % 64);
		unique = (seen[word / 64] & bit) == 0;
		seen[word / 64] |= bit;
	}
	pfree(seen);
	return unique;
}

/* The same by a hash table of row numbers + 1. */
static bool
differ_by_hash(const HgjBuildSide *build, const HgjStoredColumn *stored, uint64 size)
{
	uint32	   *seen = palloc_extended(size * sizeof(uint32),
									   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	bool		unique = true;

	for (uint32 row = 0; row < build->total_rows && unique; row++)
	{
		uint64		word;
		uint64		other;
		uint64		at;

		if (row % HGJ_CHUNK == 0)
			CHECK_FOR_INTERRUPTS();
		(void) load_word(build, stored, row, &word);
		at = hgj_stir(word) & (size - 1);
		for (; unique && seen[at] != 0; at = (at + 1) & (size - 1))
		{
			(void) load_word(build, stored, seen[at] - 1, &other);
			unique = other != word;
		}
		seen[at] = row + 1;
	}
	pfree(seen);
	return unique;
}

/* Is it another one in each row, and never NULL, as far as there is room to see? */
static bool
tells_rows_apart(const HgjBuildSide *build, const HgjStoredColumn *stored)
{
	Size		limit = get_hash_memory_limit() / HGJ_ROWS_SHARE;
	uint64		size = 64;
	int64		low = 0;
	int64		high = 0;
	uint64		span;

	if (stored->encoded || stored->value_chunks || !find_range(build, stored, &low, &high))
		return false;
	span = (uint64) high - (uint64) low;
	if (span / 64 < build->total_rows && span / 8 < limit)
		return differ_by_bits(build, stored, low, span);
	while (size < (uint64) build->total_rows * 2)
		size *= 2;
	return size * sizeof(uint32) <= limit && differ_by_hash(build, stored, size);
}

/*
 * Step 2, before a run: the tables have been built.  True: it is otherwise than the plan was
 * lowered for, which is to be lowered anew.
 */
bool
hgj_device_check_keys(HgjPipelineState *d)
{
	const HgjGroups *groups = &d->agg->groups;
	bool		before[HGJ_PIPE_JOINS];

	memcpy(before, d->by_row_now, sizeof(before));
	memset(d->by_row_now, 0, sizeof(d->by_row_now));
	for (int k = 0; k < groups->nkeys; k++)
	{
		HgjDeviceOutput output;
		const HgjBuildSide *build;
		int			j;

		if (!is_plain_word(&groups->keys[k]) ||
			!hgj_device_find_output(d, groups->keys[k].column + 1, &output) ||
			!output.is_column || output.place.join < 0)
			continue;
		j = output.place.join;
		build = hgj_join(d->joins[j])->build;
		if (d->by_row[j] && !d->by_row_now[j])
			d->by_row_now[j] =
				tells_rows_apart(build, &build->rows.columns[output.place.column]);
	}
	return memcmp(before, d->by_row_now, sizeof(before)) != 0;
}

/* One more of the pipeline's keys, unless it has it already: its number. */
static int
add_word(HgjPipelineState *d, uint8 reg)
{
	uint32		n = d->spec.nkeys;

	for (uint32 k = 0; k < n; k++)
		if (d->spec.keys[k] == reg)
			return k;
	if (n == HGJ_PIPE_KEYS)
	{
		hgj_device_refuse(&d->code, HGJ_DEVICE_SIZE);
		return 0;
	}
	d->spec.keys[n] = reg;
	d->key_columns[n] = -1;
	for (int i = 0; i < d->ncolumns; i++)
		if (d->columns[i].loaded && d->columns[i].reg == reg)
			d->key_columns[n] = i;
	d->spec.nkeys++;
	return n;
}

/*
 * Step 4: how many codes the outer table's column will have at most, if it has few
 * values; 0: nobody knows.
 */
static uint32
most_codes(const HgjPipelineState *d, AttrNumber attno)
{
	Relation	rel = ((const ScanState *) d->scan)->ss_currentRelation;
	HeapTuple	tuple = SearchSysCache3(STATRELATTINH, ObjectIdGetDatum(RelationGetRelid(rel)),
										Int16GetDatum(attno), BoolGetDatum(false));
	float4		values;

	if (!HeapTupleIsValid(tuple))
		return 0;
	values = ((Form_pg_statistic) GETSTRUCT(tuple))->stadistinct;
	ReleaseSysCache(tuple);
	return values > 0 && values <= HGJ_FEW_VALUES ? (uint32) values * 2 : 0;
}

/* Step 3: the codes of an expression; NULL: the host makes none. */
static HgjDeviceMade *
make_expression(HgjPipelineState *d, const HgjDeviceOutput *output)
{
	HgjStep    *step = output->program->root;
	HgjDeviceMade *made = NULL;

	if (step)
		made = hgj_device_make_step(d, output->program, step, &output->inputs, true);
	if (made == NULL && step && step->op == HGJ_STEP_BY_VALUE && step->nargs > 1)
		made = hgj_device_make_step(d, output->program, step->args[1], &output->inputs,
									true);
	return made;
}

/* The same of whatever the key is. */
static HgjDeviceMade *
make_codes(HgjPipelineState *d, int k, const HgjDeviceOutput *output)
{
	const HgjGroupKey *key = &d->agg->groups.keys[k];
	Node	   *expr = key_expr(d->agg, k);
	Oid			equality = key_equality(d->agg, k);
	HgjDeviceMade *made;

	if (key->attbyval || !hgj_group_key_looks_equal(key, expr, equality))
		return NULL;
	made = output->is_column ? hgj_device_make_codes(d, &output->place) :
		make_expression(d, output);
	if (made && made->codes == NULL)
	{
		hgj_device_give_codes(d, made, expr, equality, key->attlen);
		if (output->is_column && output->place.join < 0)
			made->most_codes = most_codes(d, output->place.column);
	}
	return made;
}

/* Steps 1 to 3 for one key; the register of what the device has. */
static uint8
write_key(HgjPipelineState *d, int k)
{
	const HgjGroupKey *key = &d->agg->groups.keys[k];
	HgjDeviceKey *ours = &d->keys[k];
	HgjDeviceOutput output;
	HgjDeviceMade *made;
	bool		found = hgj_device_find_output(d, key->column + 1, &output);

	ours->place = output.place;
	if (found && output.is_column && output.place.join >= 0 &&
		d->by_row_now[output.place.join])
	{
		ours->kind = HGJ_DEVICE_KEY_ROW;
		return hgj_device_load_made(d, hgj_device_make_number(d, output.place.join));
	}
	ours->kind = HGJ_DEVICE_KEY_WORD;
	if (key->kind == HGJ_GROUP_WORD)
		return hgj_device_output(d, key->column + 1);
	if (found && output.is_column && !key->attbyval &&
		hgj_device_sends(d, &output.place, &ours->scale) && ours->scale >= 0)
	{
		ours->kind = HGJ_DEVICE_KEY_DECIMAL;
		return hgj_device_output(d, key->column + 1);
	}
	made = found ? make_codes(d, k, &output) : NULL;
	if (made == NULL)
	{
		hgj_device_refuse(&d->code, HGJ_DEVICE_GROUP_KEY);
		return 0;
	}
	ours->kind = HGJ_DEVICE_KEY_CODE;
	ours->codes = made->codes;
	return hgj_device_load_made(d, made);
}

/* All of them. */
void
hgj_device_write_keys(HgjPipelineState *d)
{
	d->spec.nkeys = 0;
	for (int k = 0; k < d->agg->groups.nkeys; k++)
	{
		uint8		reg = write_key(d, k);

		if (d->code.reason != HGJ_DEVICE_FITS)
			return;
		d->keys[k].word = add_word(d, reg);
	}
}

/* The value of a key whose word is not NULL. */
static Datum
key_value(HgjPipelineState *d, int k, uint64 word, bool *isnull)
{
	const HgjGroupKey *key = &d->agg->groups.keys[k];
	const HgjDeviceKey *ours = &d->keys[k];
	const HgjBuildSide *build;
	const HgjStoredColumn *stored;
	const char *record;

	*isnull = false;
	switch (ours->kind)
	{
		case HGJ_DEVICE_KEY_DECIMAL:
			return hgj_decimal_numeric((int64) word, ours->scale, ours->scale);
		case HGJ_DEVICE_KEY_CODE:
			return hgj_dictionary_value(ours->codes, UInt32GetDatum((uint32) word));
		case HGJ_DEVICE_KEY_ROW:
			build = d->builds[ours->place.join];
			stored = &build->rows.columns[ours->place.column];
			record = hgj_row_store_record(&build->rows, (uint32) word);
			*isnull = stored->has_nulls && hgj_record_is_null(stored, record);
			return *isnull ? (Datum) 0 : hgj_record_load(stored, record);
		default:
			return key->dictionary ? (Datum) word : hgj_load(&word, key->attlen);
	}
}

/* The keys of a group: `from` is its row on the device. */
void
hgj_device_take_keys(HgjPipelineState *d, const uint64 *from, char *row)
{
	HgjGroups  *groups = &d->agg->groups;
	MemoryContext old = MemoryContextSwitchTo(groups->scratch);

	for (int k = 0; k < groups->nkeys; k++)
	{
		int			word = d->keys[k].word;
		bool		isnull = ((from[0] >> word) & 1) != 0;
		Datum		value = 0;

		if (!isnull)
			value = key_value(d, k, from[word + 1], &isnull);
		if (isnull)
			((uint8 *) row + groups->nulls_offset)[k] = 1;
		else
			hgj_group_datums(row)[k] = hgj_group_key_keep(groups, &groups->keys[k], value);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(groups->scratch);
}
