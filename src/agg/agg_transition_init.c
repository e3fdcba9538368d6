/*-------------------------------------------------------------------------
 *
 * agg_transition_init.c
 *	  Get PostgreSQL's functions for an aggregate ready to be called
 *	  (agg_transition.c).
 *
 * 1. One AggState for the node says to the functions who calls them: that it is an
 *	  aggregation, where states live, where something may live for a moment, which
 *	  aggregate is at hand, and that its state is shared with no other.  It is read
 *	  by AggCheckCallContext(), AggGetAggref(), AggGetTempMemoryContext(),
 *	  AggStateIsShared() and AggRegisterCallback(), whose fields are filled, and
 *	  initialised as a node of its own by nobody.
 * 2. What pg_aggregate says is looked up and checked as in ExecInitAgg(): the user may
 *	  call the aggregate, its owner may call its functions, and a strict transition
 *	  function without an initial value takes an argument for its state.
 * 3. The functions get the expressions that tell polymorphic ones their types.
 *
 * Memory: the query's context; the contexts of states and of the moment are the group
 * table's.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_transition.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_agg.h"
#include "parser/parse_coerce.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

const HgjAggFunction hgj_agg_transition_function = {
	.function = InvalidOid,
	.kind = HGJ_AGG_TRANSITION,
	.bytes = sizeof(HgjTransValue),
	.change = HGJ_AGG_NO_CHANGE,
	.argument = HGJ_KIND_OTHER
};

/* Step 1, without contexts. */
static AggState *
create_caller(HgjAggState *state)
{
	AggState   *caller = makeNode(AggState);

	caller->ss.ps.plan = state->css.ss.ps.plan;
	caller->ss.ps.state = state->css.ss.ps.state;
	caller->ss.ps.ps_ExprContext = state->css.ss.ps.ps_ExprContext;
	caller->numaggs = caller->numtrans = state->naggs;
	caller->aggstrategy = hgj_agg_is_grouped(state) ? AGG_HASHED : AGG_PLAIN;
	caller->aggsplit = state->partial ? AGGSPLIT_INITIAL_SERIAL : AGGSPLIT_SIMPLE;
	caller->peragg = palloc0(mul_size(state->naggs, sizeof(AggStatePerAggData)));
	caller->pertrans = palloc0(mul_size(state->naggs, sizeof(AggStatePerTransData)));
	return caller;
}

/* Step 1: its contexts, when there are the group table's. */
void
hgj_agg_caller_start(HgjAggState *state)
{
	AggState   *caller = state->caller;
	MemoryContext sorted;

	if (caller == NULL)
		return;
	sorted = AllocSetContextCreate(state->context, "HashGraphAgg sorted group",
								   ALLOCSET_DEFAULT_SIZES);
	caller->hashcontext = hgj_agg_context_over(state->groups.states);
	caller->tmpcontext = hgj_agg_context_over(state->groups.scratch);
	caller->aggcontexts = palloc(sizeof(ExprContext *));
	caller->aggcontexts[0] = hgj_agg_context_over(sorted);
	caller->curaggcontext = caller->hashcontext;
}

/* Another group is going to be returned: what sorted rows have made of the last one goes. */
void
hgj_agg_caller_next_group(HgjAggState *state)
{
	if (state->caller)
		ReScanExprContext(state->caller->aggcontexts[0]);
}

/* What DISTINCT has seen goes; of it, what is not palloc'd.  Safe while aborting. */
void
hgj_agg_free_seen(HgjAggState *state)
{
	for (int a = 0; state->caller && a < state->naggs; a++)
		if (state->aggs[a].transitions && state->aggs[a].transitions->seen)
			hgj_agg_seen_forget(state->aggs[a].transitions->seen);
}

/* Bytes that what DISTINCT has seen takes. */
Size
hgj_agg_all_seen_bytes(const HgjAggState *state)
{
	Size		bytes = 0;

	for (int a = 0; state->caller && a < state->naggs; a++)
		if (state->aggs[a].transitions && state->aggs[a].transitions->seen)
			bytes += hgj_agg_seen_bytes(state->aggs[a].transitions->seen);
	return bytes;
}

/* The states go, and with them what has been sorted for them. */
void
hgj_agg_forget_states(HgjAggState *state)
{
	if (state->caller == NULL || state->caller->hashcontext == NULL)
	{
		MemoryContextReset(state->groups.states);
		return;
	}
	for (int a = 0; a < state->naggs; a++)
		if (state->aggs[a].transitions && state->aggs[a].transitions->sort)
			hgj_agg_sort_end(state->aggs[a].transitions->sort);
	hgj_agg_free_seen(state);
	hgj_agg_growth_forget(state);
	ReScanExprContext(state->caller->aggcontexts[0]);
	ReScanExprContext(state->caller->hashcontext);
}

/* Step 2: the aggregate's owner calls its functions. */
static void
check_component(Oid function, Oid owner)
{
	if (!hgj_role_may_execute(function, owner))
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FUNCTION, get_func_name(function));
	InvokeFunctionExecuteHook(function);
}

static Oid
owner_of(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	owner = ((Form_pg_proc) GETSTRUCT(tuple))->proowner;
	ReleaseSysCache(tuple);
	return owner;
}

static void
init_initial_value(AggStatePerTrans trans, HeapTuple tuple)
{
	Datum		value = SysCacheGetAttr(AGGFNOID, tuple, Anum_pg_aggregate_agginitval,
										&trans->initValueIsNull);
	Oid			input;
	Oid			parameter;
	char	   *string;

	if (trans->initValueIsNull)
		return;
	getTypeInputInfo(trans->aggtranstype, &input, &parameter);
	string = TextDatumGetCString(value);
	trans->initValue = OidInputFunctionCall(input, string, parameter, -1);
	pfree(string);
}

static FunctionCallInfo
create_call(FmgrInfo *function, int nargs, Oid collation, AggState *caller)
{
	FunctionCallInfo call = palloc0(SizeForFunctionCallInfo(nargs));

	InitFunctionCallInfoData(*call, function, nargs, collation, (Node *) caller, NULL);
	return call;
}

/* Steps 2 and 3: the transition function. */
static void
init_transfn(AggState *caller, AggStatePerTrans trans, Oid *types, int ntypes)
{
	Expr	   *expr;

	trans->aggCollation = trans->aggref->inputcollid;
	trans->numInputs = list_length(trans->aggref->args);
	trans->numTransInputs = ntypes;
	get_typlenbyval(trans->aggtranstype, &trans->transtypeLen, &trans->transtypeByVal);
	build_aggregate_transfn_expr(types, ntypes, 0, trans->aggref->aggvariadic,
								 trans->aggtranstype, trans->aggCollation,
								 trans->transfn_oid, InvalidOid, &expr, NULL);
	fmgr_info(trans->transfn_oid, &trans->transfn);
	fmgr_info_set_expr((Node *) expr, &trans->transfn);
	trans->transfn_fcinfo = create_call(&trans->transfn, ntypes + 1,
										trans->aggCollation, caller);
	/* its strictness may have been changed since the aggregate was created */
	if (trans->transfn.fn_strict && trans->initValueIsNull &&
		(ntypes == 0 || !IsBinaryCoercible(types[0], trans->aggtranstype)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
				 errmsg("aggregate %u needs to have compatible input type and transition type",
						trans->aggref->aggfnoid)));
}

/* Steps 2 and 3: what makes a serialized state, in a partial aggregation. */
static void
init_serialfn(AggState *caller, AggStatePerTrans trans, Oid function, Oid owner)
{
	Expr	   *expr;

	if (!OidIsValid(function))
		elog(ERROR, "aggregate %u of a partial HashGraphAgg has no function to serialize its state",
			 trans->aggref->aggfnoid);
	check_component(function, owner);
	trans->serialfn_oid = function;
	build_aggregate_serialfn_expr(function, &expr);
	fmgr_info(function, &trans->serialfn);
	fmgr_info_set_expr((Node *) expr, &trans->serialfn);
	trans->serialfn_fcinfo = create_call(&trans->serialfn, 1, InvalidOid, caller);
}

/* Steps 2 and 3: the final function. */
static void
init_finalfn(AggState *caller, AggStatePerAgg agg, Oid *types, Oid owner)
{
	AggStatePerTrans trans = &caller->pertrans[agg->transno];
	Expr	   *expr;

	check_component(agg->finalfn_oid, owner);
	build_aggregate_finalfn_expr(types, agg->numFinalArgs, trans->aggtranstype,
								 agg->aggref->aggtype, agg->aggref->inputcollid,
								 agg->finalfn_oid, &expr);
	fmgr_info(agg->finalfn_oid, &agg->finalfn);
	fmgr_info_set_expr((Node *) expr, &agg->finalfn);
}

/* Steps 1 to 3, for the a-th aggregate, whose input is set. */
void
hgj_transition_init(HgjAggState *state, int a, Aggref *aggref)
{
	HgjAggregate *aggregate = &state->aggs[a];
	HgjTransition *transition = palloc0(sizeof(HgjTransition));
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggref->aggfnoid));
	Form_pg_aggregate form;
	Oid			owner = owner_of(aggref->aggfnoid);
	Oid			types[FUNC_MAX_ARGS];
	int			ntypes = get_aggregate_argtypes(aggref, types);
	AggStatePerTrans trans;
	AggStatePerAgg agg;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for aggregate %u", aggref->aggfnoid);
	form = (Form_pg_aggregate) GETSTRUCT(tuple);
	if (state->caller == NULL)
		state->caller = create_caller(state);
	state->caller->aggs = lappend(state->caller->aggs, aggref);
	trans = &state->caller->pertrans[a];
	trans->aggref = aggref;
	trans->aggtranstype = aggref->aggtranstype;
	trans->transfn_oid = form->aggtransfn;
	check_component(form->aggtransfn, owner);
	init_initial_value(trans, tuple);
	init_transfn(state->caller, trans, types, ntypes);

	agg = &state->caller->peragg[a];
	agg->aggref = aggref;
	agg->transno = a;
	agg->numFinalArgs = form->aggfinalextra ? ntypes + 1 : 1;
	if (!state->partial && OidIsValid(form->aggfinalfn))
	{
		agg->finalfn_oid = form->aggfinalfn;
		init_finalfn(state->caller, agg, types, owner);
	}
	if (state->partial && trans->aggtranstype == INTERNALOID)
		init_serialfn(state->caller, trans, form->aggserialfn, owner);
	/* one that writes into the state must not be called for it again */
	if (form->aggfinalmodify == AGGMODIFY_READ_WRITE)
		state->returned_once = true;
	ReleaseSysCache(tuple);

	transition->caller = state->caller;
	transition->trans = trans;
	transition->agg = agg;
	aggregate->transitions = transition;
	aggregate->attbyval = trans->transtypeByVal && trans->aggtranstype != INTERNALOID;
	aggregate->update = hgj_agg_call_rows;
	if (aggref->aggorder != NIL || aggref->aggdistinct != NIL)
	{
		transition->ordered = true;
		hgj_agg_sort_init(state, transition);
		hgj_agg_seen_init(state, transition);
		aggregate->update = transition->seen ? hgj_agg_put_distinct : hgj_agg_put_rows;
		state->returned_once = true;
	}
	else if (hgj_agg_is_grouped(state) && hgj_agg_state_grows(aggref->aggfnoid))
		hgj_agg_growth_init(state, aggregate);
}
