/*-------------------------------------------------------------------------
 *
 * agg_device_having.c
 *	  Clauses of HAVING as bounds of groups' values, so that a device leaves out the
 *	  groups that fail (HgjPipelineTerms.having).
 *
 * Of many million groups a clause such as sum(quantity) > 300 may leave a few, and all
 * others need no memory on the host, nor the way there.
 *
 * 1. A clause that compares an integer or a decimal that an aggregate returns with a
 *	  constant, or a parameter, says which integers pass, of a decimal in units of its
 *	  scale.  The host looks at all clauses again, of the groups that it gets.
 * 2. Clauses are taken from the first up to one that is none of these: PostgreSQL
 *	  evaluates that, and what comes behind, for each group that has passed those before,
 *	  and it may raise an error, or call a function that has an effect.
 * 3. The first look at a parameter of an InitPlan runs that, which may raise an error, and
 *	  PostgreSQL looks at it when there is a group.  So the first clause has such bounds
 *	  only when a run has found groups; where they are many, all is run again, which takes
 *	  less than to bring them to the host.  Behind another clause there is no saying.
 * 4. Without group columns there is one group: that is left to the host.
 *
 * Memory: the query's context; what bounds need, that of tuples.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_state.h"
#include "catalog/pg_type.h"
#include "columns/decimal.h"
#include "executor/executor.h"
#include "expr/demand.h"
#include "expr/program_private.h"
#include "nodes/nodeFuncs.h"
#include "pipeline/device.h"
#include "utils/lsyscache.h"

/* No sum of 2^32 values of 64 bits, the most that a device adds up, is that large. */
#define HGJ_MOST_SUM			((int128) 1 << 95)

/* Step 1: a clause. */
typedef struct HgjHavingClause
{
	int			agg;			/* number of the aggregate */
	HgjComparison comparison;	/* comparison, with the aggregate on the left */
	Oid			type;			/* type of what it is compared with */
	ExprState  *bound;			/* the value that it is compared with */
	bool		may_raise;		/* evaluation of that value may raise an error (step 3) */
} HgjHavingClause;

typedef struct HgjDeviceHaving
{
	int			n;				/* number of clauses */
	HgjHavingClause clauses[HGJ_PIPE_HAVING];	/* the first ones of HAVING */
	bool		groups_found;	/* groups have been found in this execution */
} HgjDeviceHaving;

/* Step 3: the number of groups from which on another run is worth its time. */
#define HGJ_MANY_GROUPS			16384

static bool
is_integer(Oid type)
{
	return type == INT2OID || type == INT4OID || type == INT8OID;
}

/* Step 1: the number of the aggregate that a side is, or -1. */
static int
aggregate_of(const HgjAggState *agg, const Node *side)
{
	int			a;

	if (!IsA(side, Var) || ((const Var *) side)->varno != INDEX_VAR)
		return -1;
	a = ((const Var *) side)->varattno - 1 - agg->ncolumns;
	return a < agg->naggs ? a : -1;
}

/* Step 1: is it the same value for all groups? */
static bool
is_bound(const Node *side)
{
	return IsA(side, Param) || (IsA(side, Const) && !((const Const *) side)->constisnull);
}

/* Step 1: are both of integers, or both of numerics? */
static bool
are_numbers(Oid left, Oid right)
{
	return (is_integer(left) && is_integer(right)) ||
		(left == NUMERICOID && right == NUMERICOID);
}

/* Step 1; false: it is no such clause. */
static bool
take_clause(HgjAggState *agg, Node *clause, HgjHavingClause *result)
{
	EState	   *estate = agg->css.ss.ps.state;
	OpExpr	   *expr = (OpExpr *) clause;
	Node	   *left;
	Node	   *right;
	Node	   *bound;
	bool		turned;

	if (!IsA(clause, OpExpr) || list_length(expr->args) != 2)
		return false;
	left = linitial(expr->args);
	right = lsecond(expr->args);
	turned = aggregate_of(agg, left) < 0;
	result->agg = aggregate_of(agg, turned ? right : left);
	bound = turned ? left : right;
	if (result->agg < 0 || !is_bound(bound) ||
		!are_numbers(exprType(left), exprType(right)) ||
		!hgj_number_comparison(get_opcode(expr->opno), &result->comparison) ||
		result->comparison == HGJ_NE)
		return false;
	if (turned)
		result->comparison = hgj_commuted(result->comparison);
	result->type = exprType(bound);
	result->may_raise = IsA(bound, Param) && hgj_param_may_raise((Param *) bound, estate);
	result->bound = ExecInitExpr((Expr *) bound, &agg->css.ss.ps);
	return true;
}

/* Steps 1 and 2, at executor start. */
void
hgj_device_plan_having(HgjPipelineState *d)
{
	CustomScan *cscan = castNode(CustomScan, d->agg->css.ss.ps.plan);
	ListCell   *lc;

	d->having = palloc0(sizeof(HgjDeviceHaving));
	if (d->agg->groups.nkeys == 0 || d->agg->partial)
		return;
	foreach(lc, (List *) list_nth(cscan->custom_exprs, HGJ_AGG_EXPRS_HAVING))
	{
		HgjHavingClause *clause = &d->having->clauses[d->having->n];

		if (d->having->n == HGJ_PIPE_HAVING || !take_clause(d->agg, lfirst(lc), clause) ||
			(clause->may_raise && d->having->n > 0))
			break;
		d->having->n++;
	}
}

/*
 * Step 1: the bound, which is no NULL, in units of 10^-scale, rounded as hgj_decimal_floor()
 * does; false: no value comes near it, or it is NaN.
 */
static bool
floor_of_bound(const HgjHavingClause *clause, Datum value, int scale, int128 *floor,
			   bool *exact)
{
	*exact = true;
	switch (clause->type)
	{
		case INT2OID:
			*floor = DatumGetInt16(value);
			return true;
		case INT4OID:
			*floor = DatumGetInt32(value);
			return true;
		case INT8OID:
			*floor = DatumGetInt64(value);
			return true;
		default:
			*floor = hgj_decimal_floor(value, scale, exact);
			return *floor < HGJ_MOST_SUM && *floor > -HGJ_MOST_SUM;
	}
}

/*
 * Find the words of a group's state that hold the value of aggregate `a`.  False: the value is
 * neither an integer nor a decimal.
 */
static bool
find_words(const HgjPipelineState *d, int a, HgjPipeHaving *having, int *scale)
{
	const HgjAggregate *agg = &d->agg->aggs[a];
	int			counter = d->input_words[agg->input - d->agg->inputs];

	*scale = 0;
	having->wide = false;
	having->count = HGJ_PIPE_NONE;
	if (agg->function->kind == HGJ_AGG_COUNT)
	{
		having->word = Max(counter, 0);
		return true;
	}
	if (counter >= 0)
		having->count = counter;
	if (d->agg_words[a] < 0)
		return false;
	having->word = d->agg_words[a];
	switch (agg->function->kind)
	{
		case HGJ_AGG_WORD:
			return true;
		case HGJ_AGG_SUM_INT8:
			having->wide = true;
			return true;
		case HGJ_AGG_SUM_NUMERIC:
			having->wide = true;
			*scale = hgj_program_decimals(agg->input->argument->decimals,
										  agg->input->argument->place)->scale;
			return true;
		default:
			return false;
	}
}

static HgjPipeWide
wide_of(int128 value)
{
	return (HgjPipeWide) {.low = (uint64) value,.high = (int64) (value >> 64)};
}

/* The bounds of a clause; false: it has none. */
static bool
write_clause(HgjPipelineState *d, const HgjHavingClause *clause, HgjPipeHaving *having)
{
	ExprContext *econtext = d->agg->css.ss.ps.ps_ExprContext;
	int128		floor;
	int128		least;
	int128		most;
	bool		exact;
	int			scale;
	bool		isnull;
	Datum		value;

	if (!find_words(d, clause->agg, having, &scale))
		return false;
	value = ExecEvalExprSwitchContext(clause->bound, econtext, &isnull);
	if (isnull || !floor_of_bound(clause, value, scale, &floor, &exact))
		return false;
	hgj_comparison_range(clause->comparison, floor, exact, &least, &most);
	having->least = wide_of(least);
	having->most = wide_of(most);
	return true;
}

/* The bounds of this execution; the words have been written, and the programs started. */
void
hgj_device_write_having(HgjPipelineState *d)
{
	MemoryContext old = MemoryContextSwitchTo(d->agg->css.ss.ps.ps_ExprContext->ecxt_per_tuple_memory);

	d->terms.nhaving = 0;
	for (int i = 0; i < d->having->n; i++)
	{
		const HgjHavingClause *clause = &d->having->clauses[i];

		if ((clause->may_raise && !d->having->groups_found) ||
			!write_clause(d, clause, &d->terms.having[d->terms.nhaving]))
			break;
		d->terms.nhaving++;
	}
	MemoryContextSwitchTo(old);
}

/* Nothing is known of the groups of the execution that begins. */
void
hgj_device_start_having(HgjPipelineState *d)
{
	d->having->groups_found = false;
}

/* Are there clauses that may leave groups out, this time or the next? */
bool
hgj_device_has_having(const HgjPipelineState *d)
{
	return d->having->n > 0;
}

/* Step 3: this number of groups has been found; is all to be run again with bounds? */
bool
hgj_device_found_groups(HgjPipelineState *d, uint64 n)
{
	if (d->having->n == 0 || !d->having->clauses[0].may_raise || d->having->groups_found ||
		n < HGJ_MANY_GROUPS)
		return false;
	d->having->groups_found = true;
	return true;
}

/* How many groups the last run has left out, of which the host knows nothing. */
uint64
hgj_device_left_out(const HgjPipelineState *d)
{
	return d->ran ? d->info.left_out : 0;
}
