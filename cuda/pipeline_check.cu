/*-------------------------------------------------------------------------
 *
 * pipeline_check.cu
 *	  Is a pipeline's spec one that kernels can run?  The view of its joins.
 *
 * 1. What every engine asks for (engine/pipeline_check.c).
 * 2. Tables are built, of the same device, and sorted: what a key matches is one
 *	  range of slots.  Where a row can have very many candidates, rows go through turns
 *	  (pipeline_turns.cuh).
 *
 * Owns nothing.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "pipeline_host.h"

namespace hgj
{

/* Step 2. */
static HgjStatus view_join(HgjPipeline *p, uint32_t j, const HgjPipelineFacts *facts,
						   HgjError *err)
{
	const HgjPipeJoin *join = &p->spec.joins[j];
	PipeJoin *view = &p->view.joins[j];
	const HgjTable *t = p->tables[j];

	if (t == nullptr || !t->built || t->device != p->account.device)
		return fail(err, HGJ_INVALID, "a join of a pipeline needs a table of its device");
	if (join->nkeys != t->spec.nwords)
		return fail(err, HGJ_INVALID, "a join of a pipeline does not fit its table");
	if (t->graph.walk || t->graph.slack > 0)
		return fail(err, HGJ_UNSUPPORTED,
					"keys of a table share a hash, or it is dynamic");
	view->after_probe = facts->joins[j].after_probe;
	view->after_match = facts->joins[j].after_match;
	view->first_only = join->single && !facts->joins[j].filtered;
	if (!view->first_only && !t->graph.unique && t->graph.longest > 1)
		p->work *= t->graph.longest;
	if (p->work > PIPE_MOST_WORK)
		p->work = PIPE_MOST_WORK + 1;
	memcpy(view->keys, join->keys, sizeof(view->keys));
	for (uint32_t c = 0; c < join->ncolumns; c++)
		view->columns[c].kind = join->kinds[c];
	view->empty = t->graph.rows == 0;
	if (!view->empty)
		view->graph = t->graph.view();
	view->nkeys = join->nkeys;
	view->pass = join->pass;
	view->fill = join->fill;
	view->single = join->single;
	return HGJ_OK;
}

/* Steps 1 and 2. */
HgjStatus pipeline_check(HgjPipeline *p, HgjError *err)
{
	HgjPipelineFacts facts;

	HGJ_TRY(hgj_check_pipeline(&p->spec, &facts, err));
	p->registers = facts.registers;
	for (uint32_t j = 0; j < p->spec.njoins; j++)
		HGJ_TRY(view_join(p, j, &facts, err));
	p->turns = p->work > PIPE_MOST_WORK;
	return HGJ_OK;
}

} // namespace hgj
