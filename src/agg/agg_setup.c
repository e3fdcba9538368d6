/*-------------------------------------------------------------------------
 *
 * agg_setup.c
 *	  Make a HashGraphAgg ready to run: what the plan says (agg_format.h),
 *	  turned into inputs, aggregates and group columns.
 *
 * 1. Aggregates share an input when their FILTER and argument are the same and
 *	  not volatile.  Those that PostgreSQL's functions compute are made ready by
 *	  agg_transition_init.c.
 * 2. Tell the join below which columns are read, or make a source of another child
 *	  (agg_feed.c).  A group column that nobody else reads may come as codes of a
 *	  dictionary, if the join can do that.
 * 3. Lay out the row of a group: its count of rows, key datums, NULL flags, the
 *	  inputs' counters, the aggregates' states.
 * 4. See whether a device can do it all (agg_device_plan.c), where one is asked for.
 *
 * Everything is palloc'd in the query's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_exchange.h"
#include "agg/agg_transition.h"
#include "base/guc.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_proc.h"
#include "executor/executor.h"
#include "expr/demand.h"
#include "join/join.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "pipeline/device.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

static int
lookup_column(void *arg, const Var *var)
{
	HgjAggState *state = arg;

	if (var->varno != INDEX_VAR || var->varattno < 1 ||
		var->varattno > state->ncolumns)
		return -1;
	return var->varattno - 1;
}

/* Get an expression ready; NULL stays NULL. */
static HgjAggExpr *
init_expr(HgjAggState *state, Expr *expr)
{
	HgjAggExpr *result;
	Expr	   *stripped = hgj_strip_relabel(expr);

	if (expr == NULL)
		return NULL;
	result = palloc0(sizeof(HgjAggExpr));
	result->expr = expr;
	get_typlenbyval(exprType((Node *) expr), &result->attlen,
					&result->attbyval);
	result->column = IsA(stripped, Var) ?
		lookup_column(state, (Var *) stripped) : -1;
	if (result->column >= 0)
		return result;

	result->program = hgj_program_compile(expr, &state->css.ss.ps,
										  lookup_column, state);
	if (result->program == NULL)
		result->state = ExecInitExpr(expr, &state->css.ss.ps);
	return result;
}

/* All arguments of PostgreSQL's functions. */
static void
init_arguments(HgjAggState *state, HgjAggInput *input)
{
	input->nall = list_length(input->exprs);
	input->all = palloc0(mul_size(Max(input->nall, 1), sizeof(HgjAggArgument)));
	for (int i = 0; i < input->nall; i++)
	{
		Expr	   *expr = list_nth(input->exprs, i);

		if (IsA(expr, Const))
			input->all[i].constant = (const Const *) expr;
		else
			input->all[i].expr = init_expr(state, expr);
	}
}

/*
 * The input for this FILTER, which may be NULL, and these arguments: one or none, or
 * any number for PostgreSQL's functions.
 */
static HgjAggInput *
find_input(HgjAggState *state, Expr *filter, List *arguments, bool called)
{
	HgjAggInput *input;

	for (int i = 0; i < state->ninputs; i++)
	{
		input = &state->inputs[i];
		if (input->called == called &&
			equal(filter, input->filter ? input->filter->expr : NULL) &&
			equal(arguments, input->exprs) &&
			!contain_volatile_functions((Node *) filter) &&
			!contain_volatile_functions((Node *) arguments))
			return input;
	}
	input = &state->inputs[state->ninputs++];
	input->filter = init_expr(state, filter);
	input->exprs = arguments;
	input->called = called;
	if (called)
		init_arguments(state, input);
	else if (arguments != NIL)
		input->argument = init_expr(state, linitial(arguments));
	return input;
}

/*
 * The transition function of an aggregate that is computed by it.  That of
 * sum(interval) may have a state of its own kind (compat.h), but ours is its value.
 */
static void
init_transition(HgjAggregate *agg, const Aggref *aggref, Expr *argument)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID,
										ObjectIdGetDatum(agg->function->function));

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for aggregate %u",
			 agg->function->function);
	fmgr_info(agg->function->function == F_SUM_INTERVAL ? F_INTERVAL_PL :
			  ((Form_pg_aggregate) GETSTRUCT(tuple))->aggtransfn,
			  &agg->transition);
	ReleaseSysCache(tuple);
	agg->collation = aggref->inputcollid;
	get_typlenbyval(exprType((Node *) argument), &agg->attlen, &agg->attbyval);
}

/* An aggregate that is computed here, by this function of ours. */
static void
init_known(HgjAggState *state, HgjAggregate *agg, Oid function, const Aggref *aggref,
		   List *arguments, Expr *filter)
{
	agg->function = hgj_agg_function(function);
	if (agg->function == NULL || list_length(arguments) > 1)
		elog(ERROR, "unsupported aggregate of a HashGraphAgg: %u", function);
	agg->update = hgj_agg_loop(agg->function);
	if (agg->function->kind == HGJ_AGG_BY_FUNCTION)
		init_transition(agg, aggref, linitial(arguments));
	if (agg->function->kind == HGJ_AGG_COUNT && arguments != NIL &&
		IsA(linitial(arguments), Const) && !linitial_node(Const, arguments)->constisnull)
		arguments = NIL;		/* count(1) */
	agg->input = find_input(state, filter, arguments, false);
	if (function == HGJ_AGG_AVG_OF_SUMS || function == HGJ_AGG_AVG_OF_NUMERICS)
		agg->counts = agg + 1;
}

/* Step 1. */
static void
init_aggregates(HgjAggState *state, CustomScan *cscan)
{
	List	   *functions = list_nth(cscan->custom_private, HGJ_AGG_FUNCTIONS);
	List	   *args = list_nth(cscan->custom_exprs, HGJ_AGG_EXPRS_ARGS);
	List	   *filters = list_nth(cscan->custom_exprs, HGJ_AGG_EXPRS_FILTERS);

	state->naggs = list_length(functions);
	state->aggs = palloc0(mul_size(Max(state->naggs, 1), sizeof(HgjAggregate)));
	state->inputs = palloc0(mul_size(Max(state->naggs, 1), sizeof(HgjAggInput)));
	for (int a = 0; a < state->naggs; a++)
	{
		HgjAggregate *agg = &state->aggs[a];
		Oid			function = list_nth_oid(functions, a);
		List	   *arguments = list_nth(args, a);
		Expr	   *filter = list_nth(filters, a);
		TargetEntry *tle = list_nth(cscan->custom_scan_tlist,
									state->ncolumns + a);
		Aggref	   *aggref = castNode(Aggref, tle->expr);

		hgj_check_execute(aggref->aggfnoid, OBJECT_AGGREGATE);
		agg->table = &state->groups;
		if (OidIsValid(function))
		{
			init_known(state, agg, function, aggref, arguments, filter);
			continue;
		}
		agg->function = &hgj_agg_transition_function;
		agg->input = find_input(state, filter, arguments, true);
		hgj_transition_init(state, a, aggref);
	}
}

/*
 * Can all aggregates of an input take decimals, and is that of use?  Counts do not
 * look at a column's values, and sums read one as fast that has values with any number
 * of decimals.
 */
static bool
wants_decimals(const HgjAggState *state, const HgjAggInput *input)
{
	const HgjAggExpr *argument = input->argument;
	bool		sums = false;
	bool		extremes = false;

	if (argument == NULL)
		return false;
	for (int a = 0; a < state->naggs; a++)
	{
		const HgjAggFunction *function = state->aggs[a].function;

		if (state->aggs[a].input != input || function->kind == HGJ_AGG_COUNT)
			continue;
		if (function->kind == HGJ_AGG_SUM_NUMERIC || function->kind == HGJ_AGG_AVG_NUMERIC)
			sums = true;
		else if (function->function == F_MIN_NUMERIC || function->function == F_MAX_NUMERIC)
			extremes = true;
		else
			return false;
	}
	return argument->column < 0 || extremes ||
		(sums && exprTypmod((Node *) argument->expr) >= 0);
}

/* Have the numerics of these inputs as decimals, which one program makes. */
static HgjProgram *
compile_decimals(HgjAggState *state, List *inputs)
{
	List	   *exprs = NIL;
	int		   *places = palloc(Max(list_length(inputs), 1) * sizeof(int));
	HgjProgram *program;
	ListCell   *lc;

	foreach(lc, inputs)
		exprs = lappend(exprs, ((HgjAggInput *) lfirst(lc))->argument->expr);
	program = hgj_program_compile_decimals(exprs, &state->css.ss.ps, lookup_column,
										   state, places);
	foreach(lc, inputs)
	{
		HgjAggExpr *argument = ((HgjAggInput *) lfirst(lc))->argument;

		argument->place = places[foreach_current_index(lc)];
		argument->decimals = argument->place >= 0 ? program : NULL;
	}
	return program;
}

/* Step 1: of numerics. */
static void
init_decimals(HgjAggState *state)
{
	List	   *unfiltered = NIL;

	for (int i = 0; i < state->ninputs; i++)
	{
		HgjAggInput *input = &state->inputs[i];

		if (!wants_decimals(state, input))
			continue;
		if (input->filter)
			(void) compile_decimals(state, list_make1(input));
		else
			unfiltered = lappend(unfiltered, input);
	}
	state->decimals = compile_decimals(state, unfiltered);
}

/* The bytes that a dictionary of the k-th group column is expected to take. */
static Size
dictionary_bytes(const CustomScan *cscan, int k)
{
	List	   *estimates = list_nth(cscan->custom_private, HGJ_AGG_ESTIMATES);

	return (Size) list_nth_int(estimates, k + 1) * 1024;
}

/* The number of keys by which processes of a parallel query divide the groups; 0: they do not. */
static int
exchanged_keys(CustomScan *cscan)
{
	return lsecond_int((List *) list_nth(cscan->custom_private, HGJ_AGG_SPLIT));
}

/* Is a device to be asked whether it can do it all? */
static bool
wants_device(const HgjAggState *state, CustomScan *cscan)
{
	if (exchanged_keys(cscan) > 0)
		return false;
	if (hgj_engine != HGJ_ENGINE_AUTO)
		return hgj_engine == HGJ_ENGINE_CUDA;
	return state->join ? hgj_join_wants_device(state->join) :
		lthird_int(list_nth(cscan->custom_private, HGJ_AGG_SPLIT)) != 0;
}

/*
 * Step 2: group columns, as codes where possible.  A device has codes of its own for
 * those of a table (agg_device_keys.c).
 */
static void
init_keys(HgjAggState *state, CustomScan *cscan, Bitmapset *used)
{
	List	   *resnos = list_nth(cscan->custom_private, HGJ_AGG_GROUP_COLUMNS);
	List	   *operators = list_nth(cscan->custom_private,
									 HGJ_AGG_GROUP_OPERATORS);
	HgjGroups  *groups = &state->groups;
	Size		most = state->join ? get_hash_memory_limit() / HGJ_DICTIONARY_SHARE :
		hgj_agg_feed_dictionary_bytes();

	/* in this order: the reset callback looks at nkeys of them */
	groups->keys = palloc0(mul_size(Max(list_length(resnos), 1),
									sizeof(HgjGroupKey)));
	groups->nkeys = list_length(resnos);
	groups->ntelling = lfourth_int((List *) list_nth(cscan->custom_private, HGJ_AGG_SPLIT));
	for (int k = 0; k < groups->nkeys; k++)
	{
		HgjGroupKey *key = &groups->keys[k];
		int			resno = list_nth_int(resnos, k);
		Oid			equality = list_nth_oid(operators, k);
		TargetEntry *tle = list_nth(cscan->custom_scan_tlist, resno - 1);
		Node	   *expr = (Node *) tle->expr;
		Size		expected = dictionary_bytes(cscan, k);

		key->column = resno - 1;
		get_typlenbyval(exprType(expr), &key->attlen, &key->attbyval);
		hgj_group_key_init(key, expr, equality);
		/* what depends on other columns is neither hashed nor compared here: codes are for a device */
		if (!bms_is_member(resno, used) && expected <= most &&
			(k < groups->ntelling || wants_device(state, cscan)) &&
			state->columns[key->column].dictionary == NULL &&
			hgj_group_key_looks_equal(key, expr, equality))
		{
			if (state->join)
				hgj_join_encode(state->join, resno, expr, equality, expected);
			else if (!wants_device(state, cscan))
				hgj_agg_feed_encode(state, resno, expr, equality);
		}
		if (state->columns[key->column].dictionary)
			hgj_group_key_use_codes(key,
									state->columns[key->column].dictionary);
	}
}

static void
init_columns(HgjAggState *state, CustomScan *cscan)
{
	List	   *exprs = cscan->custom_exprs;
	Bitmapset  *attnos = NULL;
	Bitmapset  *used = NULL;
	Bitmapset  *wanted;
	ListCell   *lc;
	int			i = -1;

	/* by expressions */
	pull_varattnos(list_nth(exprs, HGJ_AGG_EXPRS_ARGS), INDEX_VAR, &attnos);
	pull_varattnos(list_nth(exprs, HGJ_AGG_EXPRS_FILTERS), INDEX_VAR, &attnos);
	while ((i = bms_next_member(attnos, i)) >= 0)
		used = bms_add_member(used, i + FirstLowInvalidHeapAttributeNumber);

	wanted = bms_copy(used);
	foreach(lc, (List *) list_nth(cscan->custom_private, HGJ_AGG_GROUP_COLUMNS))
		wanted = bms_add_member(wanted, lfirst_int(lc));

	if (state->join)
	{
		hgj_join_use_batches(state->join, wanted);
		state->columns = hgj_join_columns(state->join, &state->ncolumns);
	}
	else
	{
		hgj_agg_feed_open(state, state->css.ss.ps.state);
		state->columns = hgj_agg_feed_columns(state->feed, &state->ncolumns);
	}
	init_keys(state, cscan, used);

	state->carried = palloc(mul_size(Max(bms_num_members(wanted), 1),
									 sizeof(int)));
	for (i = -1; (i = bms_next_member(wanted, i)) >= 0;)
		state->carried[state->ncarried++] = i - 1;
	state->vectors = palloc0(mul_size(Max(state->ncolumns, 1),
									  sizeof(HgjVector *)));
}

/* Step 3. */
static void
lay_out_groups(HgjAggState *state)
{
	HgjGroups  *groups = &state->groups;
	Size		size;

	size = sizeof(int64) + mul_size(groups->nkeys, sizeof(Datum));
	groups->nulls_offset = size;
	size = MAXALIGN(size + groups->nkeys);
	for (int i = 0; i < state->ninputs; i++)
	{
		state->inputs[i].counter = size;
		if (state->inputs[i].filter || state->inputs[i].argument)
			size += sizeof(int64);
	}
	for (int a = 0; a < state->naggs; a++)
	{
		state->aggs[a].offset = size;
		size = MAXALIGN(size + state->aggs[a].function->bytes);
	}
	groups->stride = size;

	groups->initial = palloc0(size);
	for (int a = 0; a < state->naggs; a++)
	{
		const HgjAggFunction *function = state->aggs[a].function;
		char	   *at = groups->initial + state->aggs[a].offset;
		uint32		half = (uint32) function->initial;

		if (function->bytes == sizeof(uint64))
			memcpy(at, &function->initial, sizeof(uint64));
		else if (function->bytes == sizeof(uint32))
			memcpy(at, &half, sizeof(uint32));
	}
}

/* Arrays for batches of so many live rows. */
void
hgj_agg_reserve(HgjAggState *state, uint32 rows)
{
	MemoryContext old;
	Size		bytes;

	if (rows <= state->batch_rows)
		return;
	rows = Max(rows, HGJ_BATCH_ROWS);
	old = MemoryContextSwitchTo(state->context);
	bytes = mul_size(rows, sizeof(uint32));
	hgj_groups_reserve(&state->groups, rows);
	if (state->portions.wanted)
	{
		state->portions.all = palloc_extended(bytes, MCXT_ALLOC_HUGE);
		for (uint32 i = 0; i < rows; i++)
			state->portions.all[i] = i;
	}
	if (state->rounds.used)
	{
		state->rounds.left = palloc_extended(bytes, MCXT_ALLOC_HUGE);
		state->rounds.next = palloc_extended(bytes, MCXT_ALLOC_HUGE);
	}
	state->row_buffer = palloc_extended(bytes, MCXT_ALLOC_HUGE);
	state->group_buffer = palloc_extended(bytes, MCXT_ALLOC_HUGE);
	for (int i = 0; i < state->ninputs; i++)
	{
		HgjAggInput *input = &state->inputs[i];

		input->filtered = palloc_extended(bytes, MCXT_ALLOC_HUGE);
		input->at = palloc_extended(bytes, MCXT_ALLOC_HUGE);
		input->groups = palloc_extended(bytes, MCXT_ALLOC_HUGE);
	}
	state->batch_rows = rows;
	MemoryContextSwitchTo(old);
}

/* Give the programs the parameters of this execution. */
void
hgj_agg_start(HgjAggState *state)
{
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;

	for (int i = 0; i < state->ninputs; i++)
	{
		const HgjAggInput *input = &state->inputs[i];

		for (int e = 0; e < HGJ_AGG_INPUT_EXPRS(input); e++)
		{
			const HgjAggExpr *expr = hgj_agg_input_expr(input, e);

			if (expr && expr->program)
				hgj_program_start(expr->program, econtext);
			if (expr && expr->decimals)
				hgj_program_start(expr->decimals, econtext);
		}
	}
}

/* Step 4. */
static void
init_device(HgjAggState *state, EState *estate)
{
	state->device = hgj_device_plan(state, estate);
	hgj_device_own(state->device, estate->es_query_cxt);
	if (state->device->reason != HGJ_DEVICE_FITS && state->join)
		hgj_leave_pipeline(state->join);
}

/* Steps 1 to 4; the child is initialised here, too. */
void
hgj_agg_setup(HgjAggState *state, EState *estate, int eflags)
{
	CustomScan *cscan = castNode(CustomScan, state->css.ss.ps.plan);
	TupleDesc	desc = state->css.ss.ss_ScanTupleSlot->tts_tupleDescriptor;
	Plan	   *child = linitial(cscan->custom_plans);
	int			exchanged = exchanged_keys(cscan);

	state->context = estate->es_query_cxt;
	state->partial = linitial_int(list_nth(cscan->custom_private, HGJ_AGG_SPLIT)) != AGGSPLIT_SIMPLE;
	state->rounds.used = state->partial || exchanged;
	state->ncolumns = list_length(child->targetlist);

	/* one pass from the first row to the last is all that is asked for */
	eflags &= ~(EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK | EXEC_FLAG_REWIND);
	state->child = ExecInitNode(child, estate, eflags);
	state->css.custom_ps = list_make1(state->child);
	/* with an effect, rows are computed one by one (batch_node.c) */
	if (!hgj_has_effects((Node *) state->child->plan->targetlist, estate))
		state->join = hgj_join_of(state->child);

	init_aggregates(state, cscan);
	init_decimals(state);
	init_columns(state, cscan);
	if (state->feed)
		hgj_agg_feed_take_decimals(state);
	hgj_agg_portions_init(state);
	lay_out_groups(state);
	state->having = ExecInitQual(list_nth(cscan->custom_exprs,
										  HGJ_AGG_EXPRS_HAVING),
								 &state->css.ss.ps);

	state->groups.limit = get_hash_memory_limit();
	if (state->nseen > 0)
		state->groups.limit -= HGJ_AGG_SEEN_SHARE(state->groups.limit);
	state->groups.expected = linitial_int(list_nth(cscan->custom_private,
												   HGJ_AGG_ESTIMATES));
	hgj_exchange_setup(state, exchanged);
	hgj_groups_init(&state->groups, state->context);
	hgj_agg_caller_start(state);
	hgj_agg_reserve(state, HGJ_BATCH_ROWS);

	state->input_slot = ExecInitExtraTupleSlot(estate, desc, &TTSOpsVirtual);
	memset(state->input_slot->tts_isnull, true, desc->natts * sizeof(bool));
	memset(state->css.ss.ss_ScanTupleSlot->tts_isnull, true,
		   desc->natts * sizeof(bool));
	state->phase = HGJ_AGG_PHASE_READ;
	if (wants_device(state, cscan))
		init_device(state, estate);
}
