/*-------------------------------------------------------------------------
 *
 * agg_transition.c
 *	  Aggregates that are computed by PostgreSQL's functions for them: string_agg,
 *	  array_agg, stddev, JSON, and what users have created.
 *
 * 1. The transition function is called for one row after the other, by the rules of
 *	  nodeAgg.c: a strict one is not called for NULLs, and the first argument becomes
 *	  its state where there is no initial value.
 * 2. Where a state passes by reference, what the function returns is copied into the
 *	  context of the states, unless it is the state itself, or an expanded object that
 *	  lives there; the state before is freed.
 * 3. A group's state begins with its first row, or when its value is asked for.
 * 4. The final function, or in a partial aggregation the one that serializes, is called
 *	  when the group is returned; it sees an expanded object as read-only.
 *
 * What the functions learn of who calls them (AggCheckCallContext() and the like) they
 * read from an AggState, which agg_transition_init.c has filled.
 *
 * States cannot be put on files, as many have no form in which they could be: when they
 * fill memory, rows of other groups are (agg_spill.c), as in PostgreSQL's HashAggregate,
 * and rows for states that grow wait (agg_growing.c); a partial aggregation returns its
 * groups early (agg_rounds.c).
 *
 * Memory: states are in the group table's context for states, or in those of ranges of
 * groups, which count against the limit; functions run in its scratch context, which is reset after every row.  Callbacks
 * that a function has registered run before the states go (agg_node.c), but not on
 * abort, as PostgreSQL promises.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_transition.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/expandeddatum.h"
#include "utils/memutils.h"

static MemoryContext
states_of(const HgjTransition *transition)
{
	return transition->caller->curaggcontext->ecxt_per_tuple_memory;
}

/* Where the functions find the state of a group, which is not sorted for. */
static inline ExprContext *
context_of(const HgjTransition *transition, uint32 group)
{
	return transition->ranges ? hgj_agg_range_context(transition->ranges, group) :
		transition->caller->hashcontext;
}

/* A copy that lives as long as the states. */
static Datum
copy_to_states(const HgjTransition *transition, Datum value)
{
	MemoryContext old = MemoryContextSwitchTo(states_of(transition));

	value = datumCopy(value, transition->trans->transtypeByVal,
					  transition->trans->transtypeLen);
	MemoryContextSwitchTo(old);
	return value;
}

/* Step 3. */
static void
begin_state(const HgjTransition *transition, HgjTransValue *state)
{
	AggStatePerTrans trans = transition->trans;

	state->begun = true;
	state->isnull = state->none = trans->initValueIsNull;
	state->value = trans->initValueIsNull ? (Datum) 0 :
		copy_to_states(transition, trans->initValue);
}

/* Step 2: the function has returned another value than the state that it was given. */
static Datum
take_over(const HgjTransition *transition, Datum value, bool isnull,
		  const HgjTransValue *state)
{
	int16		length = transition->trans->transtypeLen;

	if (isnull)
		value = (Datum) 0;		/* which no pointer to a state equals */
	else if (!DatumIsReadWriteExpandedObject(value, false, length) ||
			 MemoryContextGetParent(DatumGetEOHP(value)->eoh_context) !=
			 states_of(transition))
		value = copy_to_states(transition, value);

	if (state->isnull)
		return value;
	if (DatumIsReadWriteExpandedObject(state->value, false, length))
		DeleteExpandedObject(state->value);
	else
		pfree(DatumGetPointer(state->value));
	return value;
}

/* Does a row with these arguments change nothing, whatever the state is? */
bool
hgj_transition_skips(const HgjTransition *transition, const NullableDatum *arguments)
{
	if (!transition->trans->transfn.fn_strict)
		return false;
	for (int i = 0; i < transition->trans->numTransInputs; i++)
		if (arguments[i].isnull)
			return true;
	return false;
}

/*
 * Steps 1 to 3, for a row whose arguments stand in the call.  The current context is
 * one that is reset soon.
 */
void
hgj_transition_advance(HgjTransition *transition, HgjTransValue *state)
{
	AggStatePerTrans trans = transition->trans;
	FunctionCallInfo call = trans->transfn_fcinfo;
	Datum		value;

	if (!state->begun)
		begin_state(transition, state);
	if (hgj_transition_skips(transition, &call->args[1]))
		return;
	if (trans->transfn.fn_strict && state->none)
	{
		state->value = copy_to_states(transition, call->args[1].value);
		state->isnull = state->none = false;
		return;
	}
	/* a strict function may have returned NULL before: that is what it stays */
	if (trans->transfn.fn_strict && state->isnull)
		return;

	transition->caller->curpertrans = trans;
	call->args[0].value = state->value;
	call->args[0].isnull = state->isnull;
	call->isnull = false;
	value = FunctionCallInvoke(call);
	transition->caller->curpertrans = NULL;

	if (!trans->transtypeByVal &&
		DatumGetPointer(value) != DatumGetPointer(state->value))
		value = take_over(transition, value, call->isnull, state);
	state->value = value;
	state->isnull = call->isnull;
	state->none = false;
}

/* The first n arguments of the input's i-th row. */
void
hgj_agg_load_arguments(const HgjAggInput *input, uint32 i, int n, NullableDatum *into)
{
	for (int c = 0; c < n; c++)
	{
		const HgjAggArgument *argument = &input->all[c];
		uint32		at;

		if (argument->constant)
		{
			into[c].value = argument->constant->constvalue;
			into[c].isnull = argument->constant->constisnull;
			continue;
		}
		at = argument->expr->column >= 0 && input->rows.at ? input->rows.at[i] : i;
		into[c].value = hgj_vector_datum(argument->vector, at, &into[c].isnull);
	}
}

/* Step 1: the loop of an aggregate without DISTINCT and ORDER BY. */
void
hgj_agg_call_rows(HgjAggregate *agg, const HgjAggRows *rows)
{
	HgjTransition *transition = agg->transitions;
	FunctionCallInfo call = transition->trans->transfn_fcinfo;
	MemoryContext scratch = agg->table->scratch;
	MemoryContext old = MemoryContextSwitchTo(scratch);
	char	   *base = agg->table->rows + agg->offset;
	Size		stride = agg->table->stride;

	for (uint32 i = 0; i < rows->n; i++)
	{
		uint32		group = rows->groups ? rows->groups[i] : 0;

		CHECK_FOR_INTERRUPTS();
		hgj_agg_load_arguments(agg->input, i, transition->trans->numTransInputs,
							   &call->args[1]);
		transition->caller->curaggcontext = context_of(transition, group);
		hgj_transition_advance(transition, (HgjTransValue *) (base + group * stride));
		MemoryContextReset(scratch);
	}
	MemoryContextSwitchTo(old);
}

/* Step 4: the transition value that Finalize Aggregate wants. */
static Datum
partial_value(const HgjTransition *transition, const HgjTransValue *state, bool *isnull)
{
	AggStatePerTrans trans = transition->trans;
	FunctionCallInfo call = trans->serialfn_fcinfo;
	Datum		value = MakeExpandedObjectReadOnly(state->value, state->isnull,
												   trans->transtypeLen);

	*isnull = state->isnull;
	if (!OidIsValid(trans->serialfn_oid))
		return value;
	if (trans->serialfn.fn_strict && state->isnull)
		return (Datum) 0;
	call->args[0].value = value;
	call->args[0].isnull = state->isnull;
	call->isnull = false;
	value = FunctionCallInvoke(call);
	*isnull = call->isnull;
	return value;
}

/* Step 4: the aggregate's value. */
static Datum
final_value(const HgjTransition *transition, const HgjTransValue *state, bool *isnull)
{
	LOCAL_FCINFO(call, FUNC_MAX_ARGS);
	AggStatePerAgg agg = transition->agg;
	Datum		value = MakeExpandedObjectReadOnly(state->value, state->isnull,
												   transition->trans->transtypeLen);

	*isnull = state->isnull;
	if (!OidIsValid(agg->finalfn_oid))
		return value;
	if (agg->finalfn.fn_strict && (state->isnull || agg->numFinalArgs > 1))
	{
		*isnull = true;
		return (Datum) 0;
	}
	InitFunctionCallInfoData(*call, &agg->finalfn, agg->numFinalArgs,
							 transition->trans->aggCollation,
							 (Node *) transition->caller, NULL);
	call->args[0].value = value;
	call->args[0].isnull = state->isnull;
	/* further arguments are there for their types only */
	for (int i = 1; i < agg->numFinalArgs; i++)
	{
		call->args[i].value = (Datum) 0;
		call->args[i].isnull = true;
	}
	transition->caller->curperagg = agg;
	value = FunctionCallInvoke(call);
	transition->caller->curperagg = NULL;
	*isnull = call->isnull;
	return value;
}

/*
 * Step 4, for the group of this row.  The result is in the current context, or is the
 * state, which stays until the node is asked for another group at least.
 */
Datum
hgj_transition_result(const HgjAggregate *agg, const char *row, bool partial,
					  bool *isnull)
{
	HgjTransition *transition = agg->transitions;
	AggState   *caller = transition->caller;
	HgjTransValue *state = (HgjTransValue *) (unconstify(char *, row) + agg->offset);
	uint32		group = (uint32) ((row - agg->table->rows) / agg->table->stride);

	caller->curaggcontext = transition->ordered ? caller->aggcontexts[0] :
		context_of(transition, group);
	if (transition->sort)
	{
		if (transition->ordered)
			state->begun = false;
		hgj_agg_sort_feed(transition, state, group);
	}
	if (!state->begun)
		begin_state(transition, state);
	return partial ? partial_value(transition, state, isnull) :
		final_value(transition, state, isnull);
}
