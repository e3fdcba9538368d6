/*-------------------------------------------------------------------------
 *
 * setup.c
 *	  Make a HashGraphJoin ready to run: what the plan says, turned into
 *	  columns, keys, quals and buffers.
 *
 * 1. Read the join type and what it asks of us.
 * 2. Split the hash clauses into an outer and an inner key each, choosing raw
 *	  words or hashes (keys.c).  A plain column is read straight from the child's
 *	  slot; any other expression reads a scan tuple of which only that child's
 *	  columns are filled.
 * 3. Quals of a match: residual clauses that run as programs (residual.c), the
 *	  opaque hash clauses, whose hashes only make candidates, then the other
 *	  residual clauses.  Text keys need no qual: build.c finds out whether they
 *	  are to be rechecked, and text_recheck.c does it.
 * 4. Columns: those of each child that the target list, the filter or the
 *	  quals of a match mention.  Nothing else is copied.
 * 5. If the target list is plain columns and there are no quals at all, matches
 *	  are written straight into the result slot; otherwise into the scan slot,
 *	  and PostgreSQL projects.
 *
 * Everything is palloc'd in the query's context and ends with it.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/guc.h"
#include "common/pg_prng.h"
#include "executor/executor.h"
#include "expr/demand.h"
#include "join/join_state.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* What to do for each join type. */
static HgjSemantics
join_semantics(JoinType jointype, bool inner_unique)
{
	HgjSemantics s = {.one_per_outer = inner_unique};

	switch ((int) jointype)
	{
		case JOIN_INNER:
			s.emit_matches = true;
			break;
		case JOIN_LEFT:
			s.emit_matches = s.fill_outer = true;
			break;
		case JOIN_RIGHT:
			s.emit_matches = s.fill_inner = s.mark_inner = true;
			break;
		case JOIN_FULL:
			s.emit_matches = s.fill_outer = true;
			s.fill_inner = s.mark_inner = true;
			break;
		case JOIN_SEMI:
			s.emit_matches = s.one_per_outer = true;
			break;
		case JOIN_ANTI:
			s.fill_outer = s.one_per_outer = true;
			break;
		case JOIN_RIGHT_ANTI:
			s.fill_inner = s.mark_inner = true;
			break;
		case JOIN_RIGHT_SEMI:
			s.emit_matches = s.mark_inner = s.one_per_inner = true;
			break;
		default:
			elog(ERROR, "unsupported join type of a HashGraphJoin: %d",
				 (int) jointype);
	}
	return s;
}

/* A key that is more than a column: see step 2 of the head comment. */
static void
init_key_expression(HgjJoinState *state, HgjSource *source, HgjKey *key,
					Expr *operand, int base)
{
	ScanState  *ss = &state->js.css.ss;
	Bitmapset  *used = NULL;
	int			i = -1;

	key->expr = ExecInitExpr(operand, &ss->ps);
	source->keys_may_raise |= hgj_may_raise((Node *) operand,
											state->js.css.ss.ps.state);
	source->keys_raise_at_once |= !hgj_errors_can_wait((Node *) operand,
													   state->js.css.ss.ps.state);
	source->reset_econtext = true;
	source->expr_base = base;
	if (source->expr_slot == NULL)
	{
		TupleDesc	desc = ss->ss_ScanTupleSlot->tts_tupleDescriptor;

		source->expr_slot = ExecInitExtraTupleSlot(ss->ps.state, desc,
												   &TTSOpsVirtual);
		memset(source->expr_slot->tts_isnull, true, desc->natts * sizeof(bool));
	}
	pull_varattnos((Node *) operand, INDEX_VAR, &used);
	while ((i = bms_next_member(used, i)) >= 0)
	{
		AttrNumber	attno = i + FirstLowInvalidHeapAttributeNumber - base;

		source->expr_attnos = bms_add_member(source->expr_attnos, attno);
		source->last_attno = Max(source->last_attno, attno);
	}
}

/* Make one side's k-th key ready; base is the tlist entries before that side's. */
static void
init_key(HgjJoinState *state, HgjSource *source, int k, Expr *operand,
		 const HgjKeyPair *pair, int base)
{
	Expr	   *column = hgj_strip_relabel(operand);
	HgjKey	   *key = &source->keys[k];
	bool		outer = source == &state->js.outer;

	key->kind = outer ? pair->outer_kind : pair->inner_kind;
	key->first_word = source->nwords;
	key->nwords = pair->nwords;
	key->collation = pair->collation;
	key->extended = pair->extended;
	source->nwords += pair->nwords;

	if (IsA(column, Var) && ((Var *) column)->varno == INDEX_VAR)
	{
		key->attno = ((Var *) column)->varattno - base;
		source->last_attno = Max(source->last_attno, key->attno);
	}
	else
		init_key_expression(state, source, key, operand, base);
	if (key->kind == HGJ_KEY_OPAQUE)
	{
		Oid			hash = outer ? pair->outer_hash : pair->inner_hash;

		fmgr_info(hash, &key->hash);
		source->keys_may_raise |= hgj_hash_may_raise(hash);
		source->keys_raise_at_once |= hgj_hash_may_raise(hash);
		source->reset_econtext = true;
	}
}

/* The average width of an operand that is a column of a scanned table, or 0. */
static int32
average_width(const PlanState *child, Expr *operand, int base)
{
	Expr	   *column = hgj_strip_relabel(operand);
	TargetEntry *tle;

	if (!IsA(child, SeqScanState) || !IsA(column, Var))
		return 0;
	tle = list_nth_node(TargetEntry, child->plan->targetlist,
						((Var *) column)->varattno - base - 1);
	if (!IsA(tle->expr, Var) || ((Var *) tle->expr)->varattno <= 0)
		return 0;
	return get_attavgwidth(RelationGetRelid(((SeqScanState *) child)->ss.ss_currentRelation),
						   ((Var *) tle->expr)->varattno);
}

/*
 * Both sides' keys, from the hash clauses.  Returns the clauses that have to
 * be rechecked; *texts gets those of text keys.
 */
static List *
init_keys(HgjJoinState *state, List *hashclauses, int outer_columns,
		  List **texts)
{
	int			nkeys = list_length(hashclauses);
	List	   *recheck = NIL;
	int			k = 0;
	ListCell   *lc;

	state->js.outer.keys = palloc0(mul_size(nkeys, sizeof(HgjKey)));
	state->js.inner.keys = palloc0(mul_size(nkeys, sizeof(HgjKey)));
	state->js.outer.nkeys = state->js.inner.nkeys = nkeys;

	foreach(lc, hashclauses)
	{
		OpExpr	   *clause = lfirst_node(OpExpr, lc);
		HgjKeyPair	pair;

		if (!hgj_key_pair(clause, true, &pair))
			elog(ERROR, "operator %u of a HashGraphJoin is no hash key",
				 clause->opno);
		hgj_check_execute(get_opcode(clause->opno), OBJECT_FUNCTION);
		if (hgj_key_is_text(pair.outer_kind) &&
			nkeys <= HGJ_MAX_KEY_WORDS / HGJ_TEXT_MOST_WORDS)
			pair.nwords = hgj_text_nwords(Max(average_width(state->js.outer_ps,
															linitial(clause->args), 0),
											  average_width(state->js.inner_ps,
															lsecond(clause->args),
															outer_columns)));
		init_key(state, &state->js.outer, k, linitial(clause->args), &pair, 0);
		init_key(state, &state->js.inner, k, lsecond(clause->args), &pair,
				 outer_columns);
		if (pair.outer_kind == HGJ_KEY_OPAQUE)
			recheck = lappend(recheck, clause);
		else if (hgj_key_is_text(pair.outer_kind))
			*texts = lappend(*texts, clause);
		if (hgj_depends_on_parameters(lsecond(clause->args), NULL))
			state->inner_key_params = true;
		k++;
	}
	return recheck;
}

/* Bytes that every key of this column packs. */
static uint8
shortest_packed(const HgjSource *source, AttrNumber attno)
{
	int			bytes = HGJ_TEXT_PACKED(HGJ_TEXT_MOST_WORDS);

	for (int k = 0; k < source->nkeys; k++)
		if (source->keys[k].attno == attno &&
			hgj_key_is_text(source->keys[k].kind))
			bytes = Min(bytes, HGJ_TEXT_PACKED(source->keys[k].nwords));
	return bytes;
}

/*
 * The columns of one child that `wanted` (custom_scan_tlist entries) names, or
 * `texts`, whose short values nobody looks at.
 */
static void
init_columns(HgjSource *source, Bitmapset *wanted, Bitmapset *texts, int base)
{
	TupleDesc	desc = ExecGetResultType(source->child);

	source->columns = palloc0(mul_size(Max(desc->natts, 1), sizeof(HgjColumn)));
	for (int i = 0; i < desc->natts; i++)
	{
		HgjColumn  *column = &source->columns[source->ncols];
		int			member = base + i + 1 - FirstLowInvalidHeapAttributeNumber;

		if (!bms_is_member(member, wanted) && !bms_is_member(member, texts))
			continue;
		if (!bms_is_member(member, wanted))
			column->short_bytes = shortest_packed(source, i + 1);
		hgj_column_init(column, i + 1, TupleDescAttr(desc, i));
		column->scan_attno = base + i + 1;
		source->ncols++;
		source->last_attno = Max(source->last_attno, column->attno);
	}
}

/* The planner knows why there is no sequential scan, where there could be one. */
static void
note_replaced(HgjSource *source, bool replaced)
{
	if (replaced && source->reason == HGJ_SOURCE_OTHER_CHILD)
		source->reason = HGJ_SOURCE_REPLACED;
}

static void
init_buffers(HgjJoinState *state)
{
	HgjSemantics *s = &state->js.semantics;

	state->probing.outer_batch = hgj_batch_create(state->js.context, state->js.outer.columns,
												  state->js.outer.ncols,
												  state->js.outer.nwords, NULL);
	state->js.outer.keep_null_keys = s->fill_outer;
	state->js.inner.keep_null_keys = s->fill_inner;
}

/* Steps 1 to 5 of the head comment; children are initialised here, too. */
void
hgj_setup(HgjJoinState *state, EState *estate, int eflags)
{
	CustomScan *cscan = castNode(CustomScan, state->js.css.ss.ps.plan);
	PlanState  *ps = &state->js.css.ss.ps;
	List	   *facts = cscan->custom_private;
	int			outer_columns = list_nth_int(facts, HGJ_FACT_OUTER_COLUMNS);
	List	   *match_quals;
	List	   *text_clauses = NIL;
	Bitmapset  *texts = NULL;
	List	   *residual = list_nth(cscan->custom_exprs, HGJ_EXPRS_JOIN);
	Bitmapset  *wanted = NULL;
	uint64		seed;

	state->js.context = estate->es_query_cxt;
	state->use.wants_device = list_nth_int(facts, HGJ_FACT_DEVICE) != 0;
	state->share.planned = list_nth_int(facts, HGJ_FACT_SHARED) != 0;
	state->js.jointype = (JoinType) list_nth_int(facts, HGJ_FACT_JOIN_TYPE);
	state->js.semantics = join_semantics(state->js.jointype,
										 list_nth_int(facts, HGJ_FACT_INNER_UNIQUE));

	/* rows are never asked for again in another order: no backward, no mark */
	eflags &= ~(EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK);
	state->js.outer_ps = ExecInitNode(linitial(cscan->custom_plans), estate,
									  eflags);
	state->js.inner_ps = ExecInitNode(lsecond(cscan->custom_plans), estate,
									  eflags);
	state->js.css.custom_ps = list_make2(state->js.outer_ps, state->js.inner_ps);

	seed = pg_prng_uint64(&pg_global_prng_state);
	state->js.outer.child = state->js.outer_ps;
	state->js.inner.child = state->js.inner_ps;
	state->js.outer.seed = state->js.inner.seed = seed;
	state->js.outer.econtext = CreateExprContext(estate);
	state->js.inner.econtext = CreateExprContext(estate);

	match_quals = init_keys(state, list_nth(cscan->custom_exprs, HGJ_EXPRS_HASH),
							outer_columns, &text_clauses);
	state->rules.filter = ExecInitQual(list_nth(cscan->custom_exprs, HGJ_EXPRS_FILTER),
								 ps);

	pull_varattnos((Node *) cscan->scan.plan.targetlist, INDEX_VAR, &wanted);
	pull_varattnos(list_nth(cscan->custom_exprs, HGJ_EXPRS_FILTER), INDEX_VAR,
				   &wanted);
	pull_varattnos((Node *) match_quals, INDEX_VAR, &wanted);
	pull_varattnos((Node *) residual, INDEX_VAR, &wanted);
	pull_varattnos((Node *) text_clauses, INDEX_VAR, &texts);
	init_columns(&state->js.outer, wanted, texts, 0);
	init_columns(&state->js.inner, wanted, texts, outer_columns);

	state->rules.always_recheck = (match_quals != NIL || residual != NIL);
	state->rules.recheck = state->rules.always_recheck;
	state->rules.row_quals = hgj_residual_init(state, residual, match_quals == NIL);
	match_quals = list_concat(match_quals, state->rules.row_quals);
	state->rules.match_qual = ExecInitQual(match_quals, ps);
	/* nobody has looked into subplans */
	state->rules.match_volatile = contain_volatile_functions((Node *) match_quals) ||
		contain_subplans((Node *) match_quals);
	state->goal.rows_may_raise = hgj_may_raise((Node *) match_quals, estate) ||
		hgj_may_raise(list_nth(cscan->custom_exprs, HGJ_EXPRS_FILTER), estate);

	hgj_choose_source(&state->js.outer, "outer side", HGJ_NODE_NAME, estate);
	hgj_choose_source(&state->js.inner, "inner side", HGJ_NODE_NAME, estate);
	note_replaced(&state->js.outer, list_nth_int(facts, HGJ_FACT_REPLACED) & HGJ_REPLACED_OUTER);
	note_replaced(&state->js.inner, list_nth_int(facts, HGJ_FACT_REPLACED) & HGJ_REPLACED_INNER);
	state->js.outer.filter = &hgj_join_filter;
	hgj_key_filters_offer(state);
	hgj_choose_slot(state, cscan->scan.plan.targetlist);
	init_buffers(state);
	state->phase = HGJ_PHASE_START;
}
