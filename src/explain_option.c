/*-------------------------------------------------------------------------
 *
 * explain_option.c
 *	  EXPLAIN (HASHGRAPH): a line for each join, aggregation and scan of the plan,
 *	  which says whether it is ours, and why not.  From PostgreSQL 18 on, where
 *	  libraries can add options; before that there is hashgraph_join_why().
 *
 * 1. The option is noted in EXPLAIN's state.
 * 2. If it is on, the query is planned, printed and perhaps run while what is
 *	  offered and declined is noted (planner/declines.c); the first call of the
 *	  planner is the query's.  A plan that was there before (EXPLAIN EXECUTE) comes
 *	  without notes, and then there are no reasons for what is PostgreSQL's own.
 * 3. When the plan's first node is printed, all of its nodes are looked at (why.c),
 *	  and what there is to say is kept until each one's turn comes.
 *
 * Memory: EXPLAIN's context.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "why.h"

#ifdef HGJ_HAVE_EXPLAIN_OPTIONS

#include "commands/defrem.h"
#include "commands/explain.h"
#include HGJ_EXPLAIN_HEADER
#include HGJ_EXPLAIN_STATE_HEADER

#define LABEL	"HashGraph"

/* What a node's line says. */
typedef struct Line
{
	const PlanState *ps;
	const char *text;
} Line;

typedef struct OptionState
{
	bool		on;
	HgjDeclines *declines;		/* of the query at hand, or NULL */
	List	   *lines;			/* of its plan */
} OptionState;

/* The arguments of ExplainOneQuery_hook. */
typedef struct Explaining
{
	Query	   *query;
	int			cursor_options;
	IntoClause *into;
	ExplainState *es;
	const char *text;
	ParamListInfo params;
	QueryEnvironment *environment;
} Explaining;

static ExplainOneQuery_hook_type previous_one_query = NULL;
static explain_per_node_hook_type previous_per_node = NULL;
static int	extension_id;

/* Step 1. */
static void
set_option(ExplainState *es, DefElem *option, ParseState *pstate)
{
	OptionState *state = GetExplainExtensionState(es, extension_id);

	if (state == NULL)
	{
		state = palloc0(sizeof(OptionState));
		SetExplainExtensionState(es, extension_id, state);
	}
	state->on = defGetBoolean(option);
}

static OptionState *
option_of(ExplainState *es)
{
	OptionState *state = GetExplainExtensionState(es, extension_id);

	return state && state->on ? state : NULL;
}

static void
explain_next(void *arg)
{
	Explaining *a = arg;

	(previous_one_query ? previous_one_query : standard_ExplainOneQuery)
		(a->query, a->cursor_options, a->into, a->es, a->text, a->params, a->environment);
}

/* Step 2. */
static void
explain_one_query(Query *query, int cursor_options, IntoClause *into,
				  ExplainState *es, const char *text, ParamListInfo params,
				  QueryEnvironment *environment)
{
	Explaining	arguments = {query, cursor_options, into, es, text, params, environment};
	OptionState *state = option_of(es);
	HgjDeclines declines = {0};

	if (state == NULL)
	{
		explain_next(&arguments);
		return;
	}
	state->declines = &declines;
	hgj_note_while(&declines, explain_next, &arguments);
	state->declines = NULL;
}

/* HgjWhyTaker: the words of a line. */
static void
put_line(void *arg, const HgjWhy *why)
{
	OptionState *state = arg;
	Line	   *line = palloc(sizeof(Line));
	const char *more = why->reason ? why->reason : why->taken ? why->source : NULL;

	line->ps = why->ps;
	line->text = more ? psprintf("%s (%s)", why->taken ? "yes" : "no", more) :
		why->taken ? "yes" : "no";
	state->lines = lappend(state->lines, line);
}

/* Step 3. */
static void
explain_node(PlanState *ps, List *ancestors, const char *relationship,
			 const char *plan_name, ExplainState *es)
{
	OptionState *state = option_of(es);
	ListCell   *lc;

	if (previous_per_node)
		previous_per_node(ps, ancestors, relationship, plan_name, es);
	if (state == NULL)
		return;
	if (ancestors == NIL)
	{
		state->lines = NIL;
		if (state->declines)
			hgj_match_paths(state->declines, es->pstmt);
		hgj_why_plan(ps, es->pstmt, state->declines, put_line, state);
	}
	foreach(lc, state->lines)
	{
		const Line *line = lfirst(lc);

		if (line->ps == ps)
			ExplainPropertyText(LABEL, line->text, es);
	}
}

/* Call once per process, from _PG_init. */
void
hgj_install_explain_option(void)
{
	extension_id = GetExplainExtensionId("hashgraph_join");
	RegisterExtensionExplainOption("hashgraph", set_option);
	previous_one_query = ExplainOneQuery_hook;
	ExplainOneQuery_hook = explain_one_query;
	previous_per_node = explain_per_node_hook;
	explain_per_node_hook = explain_node;
}

#else

/* EXPLAIN has the options that it has. */
void
hgj_install_explain_option(void)
{
}

#endif
