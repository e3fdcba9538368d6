/*-------------------------------------------------------------------------
 *
 * push.c
 *	  Rows that come to a pipeline: cut into morsels, and run by all threads.
 *
 * 1. A push is a list of pieces: the rows of a staging buffer, or ranges of columns that the
 *	  caller keeps (engine/pipeline.h, KEPT ROWS), which are read where they are.  Morsels of
 *	  one piece are equally long.
 * 2. A thread that has its first morsel of a pipeline makes its run.  The first failure of a
 *	  run is the pipeline's.
 * 3. All kept rows have been through when their push returns, so that the memory is the
 *	  caller's again; those of a staging buffer when the next call returns that may poll.
 * 4. A call that has been cancelled goes on with the next morsel when it is made again, and no
 *	  other one comes between; if a morsel could not be made whole in time, the pipeline is
 *	  given up (HGJ_LIMIT).
 *
 * Memory: the list of morsels is the pipeline's.  Locks: none; a failure is noted atomically.
 *
 *-------------------------------------------------------------------------
 */
#include "threads/threads.h"

/* SUM_LOW overflows beyond. */
#define MOST_SUMMED_ROWS	(UINT64_C(1) << 32)

static HgjKeptMemory kept;

/* HgjPipelineMethods.keep */
void
hgj_push_keep(const HgjKeptMemory *memory)
{
	kept = *memory;
}

/* ---- step 1 ------------------------------------------------------------------ */

static HgjStatus
cut(struct HgjPipeline *p, const uint32_t *nrows, uint32_t npieces, HgjError *err)
{
	const uint32_t length = p->expands ? SHORT_MORSEL_ROWS : MORSEL_ROWS;
	uint64_t	n = 0;
	uint64_t	row0 = 0;

	for (uint32_t i = 0; i < npieces; i++)
	{
		n += ((uint64_t) nrows[i] + length - 1) / length;
		row0 += nrows[i];
	}
	if (row0 > UINT32_MAX)
		return hgj_fail(err, HGJ_INVALID, "a push has too many rows");
	if (n > p->morsels_room)
	{
		Morsel	   *morsels = realloc(p->morsels, n * sizeof(Morsel));

		if (morsels == NULL)
			return hgj_fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
		p->morsels = morsels;
		p->morsels_room = n;
	}
	p->nmorsels = 0;
	row0 = 0;
	for (uint32_t i = 0; i < npieces; i++)
		for (uint32_t from = 0; from < nrows[i];)
		{
			uint32_t	some = nrows[i] - from < length ? nrows[i] - from : length;

			p->morsels[p->nmorsels++] = (Morsel) {i, from, some, (uint32_t) row0};
			row0 += some;
			from += some;
		}
	return HGJ_OK;
}

static void
view_staged(const struct HgjPipeline *p, const Morsel *morsel, uint32_t input, View *view)
{
	uint32_t	kind = p->plan.spec.inputs[input];

	view->numbers = p->from.values[input];
	view->width = (uint8_t) hgj_kind_width(kind);
	view->is_signed = kind == HGJ_KIND_I2 || kind == HGJ_KIND_I4;
	view->base = 0;
	view->validity = p->nulls >> input & 1 ? p->from.validity[input] : NULL;
	view->first = morsel->from;
	view->table = NULL;
}

static void
view_kept(const struct HgjPipeline *p, const Morsel *morsel, uint32_t input, View *view)
{
	const HgjKeptInput *from = &p->push->inputs[morsel->piece * p->plan.spec.ninputs + input];
	const char *memory = kept.memory;

	view->numbers = memory + from->numbers.at;
	view->third = (const uint8_t *) memory + from->numbers.at + hgj_kept_high(&from->numbers);
	view->width = (uint8_t) from->width;
	view->is_signed = false;
	view->base = from->base;
	view->validity = from->validity.bytes == 0 ? NULL :
		(const uint64_t *) (const void *) (memory + from->validity.at);
	view->first = (uint64_t) from->first + morsel->from;
	view->table = from->ntable == 0 ? NULL : p->push->words + from->table;
	view->ntable = from->ntable;
}

/* ---- step 2 ------------------------------------------------------------------ */

/* A thread has failed; the pipeline's reason is the first one. */
static void
note_failure(struct HgjPipeline *p, const HgjError *err)
{
	if (!__atomic_exchange_n(&p->fails, true, __ATOMIC_ACQ_REL))
		p->failure = *err;
	hgj_pool_stop(&p->job);
}

/* A morsel, by one of the pool's threads. */
static void
run_morsel(void *arg, uint32_t thread, uint64_t number)
{
	struct HgjPipeline *p = arg;
	const Morsel *morsel = &p->morsels[number];
	Run		   *run = p->runs[thread];
	uint64_t	begun = hgj_pool_now_ns();
	HgjError	err = {HGJ_OK, ""};

	if (run == NULL)
	{
		run = p->runs[thread] = hgj_run_make(p, &err);
		if (run == NULL)
		{
			note_failure(p, &err);
			return;
		}
	}
	for (uint32_t i = 0; i < p->plan.spec.ninputs; i++)
	{
		if (p->push != NULL)
			view_kept(p, morsel, i, &run->views[i]);
		else
			view_staged(p, morsel, i, &run->views[i]);
		/* another one's table may stand in the same place */
		if (run->tests[i] != NULL)
			run->tests[i]->known = false;
	}
	run->row0 = morsel->row0;
	run->view_first = 0;
	if (hgj_run_rows(run, morsel->n) != HGJ_OK)
		note_failure(p, &run->error);
	run->busy_ns += hgj_pool_now_ns() - begun;
	run->rows += morsel->n;
}

/* What has been counted by all runs. */
static void
count_up(struct HgjPipeline *p)
{
	memset(p->info.joined, 0, sizeof(p->info.joined));
	memset(p->info.filtered, 0, sizeof(p->info.filtered));
	memset(p->info.removed, 0, sizeof(p->info.removed));
	memset(p->info.rejected, 0, sizeof(p->info.rejected));
	p->info.dropped = 0;
	p->info.kernel_ms = 0;
	p->info.threads = 0;
	p->info.most_rows = 0;
	p->ended = 0;
	for (uint32_t r = 0; r < p->nruns; r++)
	{
		Run		   *run = p->runs[r];

		if (run == NULL)
			continue;
		for (uint32_t j = 0; j < HGJ_PIPE_JOINS; j++)
		{
			if (run->counted[j] > 0)
				(void) __atomic_add_fetch(&p->tables[j]->rejected, run->counted[j], __ATOMIC_RELAXED);
			run->counted[j] = 0;
			p->info.joined[j] += run->joined[j];
			p->info.filtered[j] += run->filtered[j];
			p->info.removed[j] += run->removed[j];
			p->info.rejected[j] += run->rejected[j];
		}
		p->info.dropped += run->dropped;
		p->info.kernel_ms += (double) run->busy_ns / 1e6;
		p->info.threads += run->rows > 0;
		if (run->rows > p->info.most_rows)
			p->info.most_rows = run->rows;
		p->ended += run->ended;
	}
}

/* Steps 2 to 4: the morsels that are left. */
static HgjStatus
run_all(struct HgjPipeline *p, HgjError *err)
{
	bool		whole;

	p->job.morsel = run_morsel;
	p->job.arg = p;
	p->job.nmorsels = p->nmorsels;
	p->job.stopped = false;
	whole = hgj_pool_run(&p->job, p->poll, p->poll_arg);
	if (p->fails)
	{
		*err = p->failure;
		p->failed = err->status;
		return err->status;
	}
	if (!whole)
		return hgj_fail(err, HGJ_CANCELLED, "cancelled");
	p->work = WORK_NONE;
	p->job.next = 0;
	count_up(p);
	if (p->ended > MOST_SUMMED_ROWS && !p->plan.spec.rows && !p->plan.spec.fills)
		return p->failed = hgj_fail(err, HGJ_LIMIT, "there are more rows than a sum can have");
	p->at_run = 0;
	p->at_row = 0;
	return HGJ_OK;
}

/* Step 3: rows of a staging buffer that have been pushed. */
HgjStatus
hgj_push_settle(struct HgjPipeline *p, HgjError *err)
{
	return p->work == WORK_STAGED ? run_all(p, err) : HGJ_OK;
}

/* Rows of a staging buffer: they are run by the next call that settles. */
HgjStatus
hgj_push_staged(struct HgjPipeline *p, const HgjPipeStage *from, uint32_t n, uint64_t nulls,
				HgjError *err)
{
	HgjStatus	status;

	if (p->work != WORK_NONE)
		return hgj_fail(err, HGJ_INVALID, "a push that was cancelled is to be made again");
	status = cut(p, &n, 1, err);
	if (status != HGJ_OK)
		return status;
	p->push = NULL;
	p->from = *from;
	p->nulls = nulls;
	p->work = WORK_STAGED;
	p->job.next = 0;
	p->fetching = p->plan.spec.rows;
	p->info.rows += n;
	for (uint32_t i = 0; i < p->plan.spec.ninputs; i++)
	{
		p->info.sent += (uint64_t) n * hgj_kind_width(p->plan.spec.inputs[i]);
		if (nulls >> i & 1)
			p->info.sent += ((uint64_t) n + 63) / 64 * 8;
	}
	return HGJ_OK;
}

/* What the arrays of kept rows take, once where the piece before has the same. */
static void
count_kept(struct HgjPipeline *p, const HgjKeptPush *rows)
{
	uint32_t	ninputs = p->plan.spec.ninputs;

	for (uint32_t piece = 0; piece < rows->npieces; piece++)
	{
		p->info.rows += rows->nrows[piece];
		p->info.kept_rows += rows->nrows[piece];
		for (uint32_t i = 0; i < ninputs; i++)
		{
			const HgjKeptInput *input = &rows->inputs[piece * ninputs + i];

			if (piece == 0 || input[-(int) ninputs].numbers.id != input->numbers.id ||
				input[-(int) ninputs].numbers.at != input->numbers.at)
				p->info.kept_bytes += input->numbers.bytes + input->validity.bytes;
		}
	}
}

/* Kept rows: they are read where they are, whether or not other engines would have copies. */
HgjStatus
hgj_push_kept(struct HgjPipeline *p, const HgjKeptPush *rows, HgjError *err)
{
	uint64_t	nmorsels;
	HgjStatus	status;

	if (kept.memory == NULL)
		return hgj_fail(err, HGJ_UNSUPPORTED, "rows of this pipeline are to be staged");
	/* the memory of earlier calls is not held by the caller any more */
	if (rows->only_there)
		return hgj_fail(err, HGJ_UNSUPPORTED, "threads have no copies of columns");
	status = hgj_push_settle(p, err);
	if (status == HGJ_OK)
		status = hgj_check_kept(&p->plan.spec, &kept, rows, err);
	if (status != HGJ_OK)
		return status;
	p->push = rows;
	nmorsels = p->nmorsels;
	/* of one that was cancelled these are as before, and those that are left are next */
	status = cut(p, rows->nrows, rows->npieces, err);
	if (status == HGJ_OK && p->work == WORK_KEPT && nmorsels != p->nmorsels)
		status = hgj_fail(err, HGJ_INVALID, "a push that was cancelled is to be made again");
	if (status == HGJ_OK && p->work == WORK_NONE)
	{
		p->work = WORK_KEPT;
		p->job.next = 0;
	}
	if (status == HGJ_OK)
		status = run_all(p, err);
	p->push = NULL;
	if (status == HGJ_OK)
	{
		p->fetching = p->plan.spec.rows;
		count_kept(p, rows);
	}
	return status;
}

/* HgjPipelineMethods.fetch: what has come out of the push, run by run. */
HgjStatus
hgj_push_fetch(struct HgjPipeline *p, HgjPipeRows *rows, HgjError *err)
{
	HgjStatus	status;

	memset(rows, 0, sizeof(*rows));
	if (!p->fetching)
		return hgj_fail(err, HGJ_INVALID, "fetch goes with push");
	status = hgj_push_settle(p, err);
	if (status != HGJ_OK)
		return status;
	for (; p->at_run < p->nruns; p->at_run++, p->at_row = 0)
	{
		const Output *out = p->runs[p->at_run] == NULL ? NULL : &p->runs[p->at_run]->out;
		uint64_t	left = out == NULL ? 0 : out->n - p->at_row;

		if (left == 0)
			continue;
		rows->n = (uint32_t) (left < PORTION_ROWS ? left : PORTION_ROWS);
		rows->input = (const uint32_t *) out->columns[0] + p->at_row;
		for (uint32_t j = 0; j < p->plan.spec.njoins; j++)
			rows->row[j] = (const uint32_t *) out->columns[1 + j] + p->at_row;
		p->at_row += rows->n;
		return HGJ_OK;
	}
	rows->last = true;
	p->fetching = false;
	for (uint32_t r = 0; r < p->nruns; r++)
		if (p->runs[r] != NULL)
			p->runs[r]->out.n = 0;
	return HGJ_OK;
}
