/*-------------------------------------------------------------------------
 *
 * join.c
 *	  PROBE and MATCH, for a vector of rows (run.c).
 *
 * 1. Rows with a NULL key have no candidate.  The others' key words are a batch for the CPU
 *	  engine's probe.
 * 2. Where each row has found one candidate at most, the vector goes on in place: rows that
 *	  have found one are alive.  At MATCH, those that are alive still have passed; with `fill`
 *	  the others go on, too, without a row of the table.
 * 3. Otherwise candidates go on in the join's own vector, as many at a time as it holds: what
 *	  is still needed of a row is copied for each of its candidates.  MATCH notes which rows have
 *	  one that has passed; of a `single` join, rows that have are not looked up any further.
 *	  Rows without one go on at the end, in place, with `fill`.
 * 4. Rows can have any number of candidates: whether the caller has wanted no more for a while is
 *	  looked at before each vector of them.  What has been done of the morsel cannot be taken
 *	  back then, so that the pipeline is given up.
 *
 * Owns nothing: a run's joins are the run's.  Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "threads/threads.h"

/*
 * Keys of all rows are tested where a fourth of the rows are alive: eight in vector code, widening
 * included, take as long as two or three one by one.
 */
#define MANY_ALIVE	4

/* Step 1: the rows that are looked up. */
static void
choose_keyed(const Run *run, const Vector *v, uint32_t j, HgjKeys *keys)
{
	const HgjPipeJoin *join = &run->p->plan.spec.joins[j];
	uint32_t   *keyed = run->joins[j].keyed;

	keys->sel = all_alive(v) ? NULL : v->sel;
	keys->nsel = v->nsel;
	for (uint32_t k = 0; k < join->nkeys; k++)
	{
		const uint8_t *nulls = v->nulls[join->keys[k]];
		const uint32_t *sel = keys->sel;
		uint32_t	count = sel == NULL ? v->n : keys->nsel;
		uint32_t	n = 0;

		if (!has_nulls(v, join->keys[k]))
			continue;
		for (uint32_t at = 0; at < count; at++)
		{
			uint32_t	i = sel == NULL ? at : sel[at];

			keyed[n] = i;
			n += !nulls[i];
		}
		keys->sel = keyed;
		keys->nsel = n;
	}
}

/* Of n rows that have been selected, those that are alive stay so. */
static uint32_t
keep_alive(Vector *v, uint32_t n)
{
	uint32_t   *sel = v->sel;
	uint32_t	left = 0;

	for (uint32_t at = 0; at < n; at++)
	{
		uint32_t	i = sel[at];

		sel[left] = i;
		left += v->alive[i];
	}
	v->masked = false;
	return left;
}

/*
 * Step 1: the keys of all rows are tested as they are kept, in vector code, if nobody has asked
 * for them yet and as many rows are alive as make that cheaper than one by one.  *n: the rows that
 * stay alive.  False: they have not been tested.
 */
static bool
sift_packed(Run *run, Vector *v, uint32_t j, uint32_t *n)
{
	HgjPackedKeys packed;

	if (!(all_alive(v) || (v->masked && v->nsel * MANY_ALIVE >= v->n)) ||
		!hgj_lazy_packed(run, v, run->p->plan.spec.joins[j].keys[0], &packed) ||
		!hgj_cpu_engine()->sift_packed(run->joins[j].probe, &packed, v->sel, n))
		return false;
	run->counted[j] += v->n - *n;
	if (v->masked)
		*n = keep_alive(v, *n);
	return true;
}

/*
 * Step 1, of a join that drops rows without a match: the rows whose keys pass the table's filter
 * stay alive, which the probe is told by *flags.
 */
static HgjStatus
sift(Run *run, Vector *v, uint32_t j, uint32_t *flags, HgjError *err)
{
	const HgjEngine *cpu = hgj_cpu_engine();
	const HgjPipeJoin *spec = &run->p->plan.spec.joins[j];
	HgjProbe   *probe = run->joins[j].probe;
	const uint64_t *words[1];
	HgjKeys		keys = {.nrows = v->n,.words = words,.location = HGJ_ON_HOST};
	HgjStatus	status;
	bool		worth;
	uint32_t	asked = v->nsel;
	uint32_t	n;

	if (!spec->pass || spec->fill || spec->nkeys != 1)
		return HGJ_OK;
	status = cpu->sift_begin(probe, &worth, err);
	if (status != HGJ_OK || !worth)
		return status;
	if (!sift_packed(run, v, j, &n))
	{
		if (v->masked)
			hgj_lazy_settle(v);
		hgj_lazy_force(run, v, UINT64_C(1) << spec->keys[0]);
		words[0] = v->words[spec->keys[0]];
		choose_keyed(run, v, j, &keys);
		/* the rows that pass are written where they are read from, and never ahead of that */
		asked = hgj_key_count(&keys);
		status = cpu->sift(probe, &keys, v->sel, &n, err);
		run->counted[j] += asked - n;
	}
	run->rejected[j] += asked - n;
	v->nsel = n;
	*flags = HGJ_PROBE_SIFTED;
	return status;
}

/* Has each of the rows found one at most?  They are then in the batch's order. */
static bool
found_one_each(const uint32_t *probed, uint32_t n)
{
	uint32_t	same = 0;

	for (uint32_t i = 1; i < n; i++)
		same |= probed[i - 1] >= probed[i];
	return same == 0;
}

/* Step 2. */
static void
go_on_in_place(Run *run, Vector *v, uint32_t j, uint32_t n)
{
	RunJoin    *join = &run->joins[j];
	uint32_t   *rows = v->rows[j];
	const uint32_t *probed = join->probed;
	const uint32_t *found = join->found;

	if (run->p->plan.spec.joins[j].fill)
	{
		join->nbefore = 0;
		EACH_ALIVE(v, join->before[join->nbefore++] = i);
	}
	for (uint32_t at = 0; at < n; at++)
	{
		rows[probed[at]] = found[at];
		v->sel[at] = probed[at];
	}
	v->nsel = n;
	v->matching = j + 1;
}

/* Step 3: the join's own vector. */
static Vector *
own_vector(Run *run, uint32_t j)
{
	if (run->vectors[j + 1] == NULL)
	{
		run->vectors[j + 1] = hgj_vector_make(run);
		if (run->vectors[j + 1] == NULL)
			(void) hgj_threads_fail(run, HGJ_OUT_OF_MEMORY, "out of memory");
	}
	return run->vectors[j + 1];
}

/* Step 3: what is needed of the rows, for each of their candidates. */
static void
copy_rows(const Plan *plan, const Vector *from, Vector *to, uint32_t j, uint32_t n)
{
	const uint32_t *parent = to->parent;

	to->n = to->nsel = n;
	to->matching = 0;
	to->nulls_of = from->nulls_of & plan->joins[j].live;
	to->lazy = 0;
	for (uint64_t regs = plan->joins[j].live; regs != 0; regs &= regs - 1)
	{
		uint32_t	reg = (uint32_t) __builtin_ctzll(regs);
		const uint64_t *words = from->words[reg];
		uint64_t   *copies = to->words[reg];

		for (uint32_t i = 0; i < n; i++)
			copies[i] = words[parent[i]];
		if (has_nulls(from, (uint8_t) reg))
			for (uint32_t i = 0; i < n; i++)
				to->nulls[reg][i] = from->nulls[reg][parent[i]];
	}
	for (uint32_t i = 0; i < n && plan->joins[j].origin; i++)
		to->origin[i] = from->origin[parent[i]];
	for (uint32_t rows = plan->joins[j].rows; rows != 0; rows &= rows - 1)
	{
		uint32_t	other = (uint32_t) __builtin_ctz(rows);

		for (uint32_t i = 0; i < n; i++)
			to->rows[other][i] = from->rows[other][parent[i]];
	}
}

/* Step 3: n candidates that have been found. */
static HgjStatus
go_on_apart(Run *run, const Vector *v, uint32_t j, uint32_t n)
{
	const Plan *plan = &run->p->plan;
	RunJoin    *join = &run->joins[j];
	Vector	   *own = own_vector(run, j);
	uint32_t   *probed = join->probed;
	uint32_t   *found = join->found;

	if (own == NULL)
		return run->status;
	hgj_pool_progress(&run->p->job);
	if (hgj_pool_is_late(&run->p->job))
		return hgj_threads_fail(run, HGJ_LIMIT, "the pipeline was given up");
	/* the probe writes into these again before the rows are through */
	memcpy(own->parent, probed, n * sizeof(uint32_t));
	memcpy(own->rows[j], found, n * sizeof(uint32_t));
	copy_rows(plan, v, own, j, n);
	own->expanded = true;
	return hgj_run_vector(run, own, plan->joins[j].after_probe);
}

/* Step 3: the rows that have no candidate which has passed. */
static void
keep_missed(Run *run, Vector *v, uint32_t j)
{
	const uint8_t *hit = run->joins[j].hit;
	uint32_t   *rows = v->rows[j];
	uint32_t   *sel = v->sel;
	uint32_t	n = 0;

	EACH_ALIVE(v, sel[n] = i; rows[i] = hit[i] ? rows[i] : HGJ_PIPE_NO_ROW; n += !hit[i]);
	v->nsel = n;
	run->joined[j] += n;
}

/*
 * PROBE of a join: *through if the vector is through with it, and else either `matching` is set,
 * or what is alive goes on behind MATCH.
 */
HgjStatus
hgj_run_probe(Run *run, Vector *v, uint32_t j, bool *through)
{
	const HgjEngine *cpu = hgj_cpu_engine();
	const HgjPipeJoin *spec = &run->p->plan.spec.joins[j];
	RunJoin    *join = &run->joins[j];
	const uint64_t *words[HGJ_PIPE_KEYS];
	HgjKeys		keys = {.nrows = v->n,.words = words,.location = HGJ_ON_HOST};
	HgjMatches	matches = {.probe_rows = join->probed,.build_rows = join->found,
	.capacity = VECTOR_ROWS,.location = HGJ_ON_HOST};
	bool		one = (spec->single || !spec->pass) && !run->p->plan.joins[j].filtered;
	uint32_t	flags = 0;
	HgjError	err;
	HgjStatus	status;

	status = sift(run, v, j, &flags, &err);
	if (status != HGJ_OK)
		return hgj_threads_fail(run, status, err.message);
	if (v->masked)
		hgj_lazy_settle(v);
	*through = v->nsel == 0;
	if (*through)
		return HGJ_OK;
	if (flags != 0 && run->p->only_bits[j])
	{
		/* nobody looks at the row, but it is one */
		uint32_t   *rows = v->rows[j];

		if (run->p->plan.spec.rows)
			EACH_ALIVE(v, rows[i] = 0);
		v->matching = j + 1;
		return HGJ_OK;
	}
	for (uint32_t k = 0; k < spec->nkeys; k++)
	{
		hgj_lazy_force(run, v, UINT64_C(1) << spec->keys[k]);
		words[k] = v->words[spec->keys[k]];
	}
	choose_keyed(run, v, j, &keys);
	status = cpu->probe_begin(join->probe, &keys, one ? HGJ_MATCH_FIRST : HGJ_MATCH_ALL, flags,
							  &err);
	if (status == HGJ_OK)
		status = cpu->probe_next(join->probe, &matches, &err);
	if (status != HGJ_OK)
		return hgj_threads_fail(run, status, err.message);
	if (matches.done && found_one_each(join->probed, matches.n))
	{
		go_on_in_place(run, v, j, matches.n);
		*through = matches.n == 0 && !spec->fill;
		return HGJ_OK;
	}
	/* what the vectors of candidates take of a row must be there */
	hgj_lazy_force(run, v, run->p->plan.joins[j].live);
	memset(join->hit, 0, v->n);
	if (spec->single || !spec->pass)
		matches.skip = join->hit;
	for (;;)
	{
		status = matches.n > 0 ? go_on_apart(run, v, j, matches.n) : HGJ_OK;
		if (status != HGJ_OK)
			return status;
		if (matches.done)
			break;
		status = cpu->probe_next(join->probe, &matches, &err);
		if (status != HGJ_OK)
			return hgj_threads_fail(run, status, err.message);
	}
	v->matching = 0;
	*through = !spec->fill;
	if (spec->fill)
		keep_missed(run, v, j);
	return HGJ_OK;
}

/* Step 3: of a vector of candidates, those that go on. */
static void
match_apart(Run *run, Vector *v, uint32_t j)
{
	const HgjPipeJoin *spec = &run->p->plan.spec.joins[j];
	uint8_t    *hit = run->joins[j].hit;
	const uint32_t *parent = v->parent;
	uint32_t   *sel = v->sel;
	uint32_t	n = 0;

	if (spec->single)
	{
		EACH_ALIVE(v, sel[n] = i; n += !hit[parent[i]]; hit[parent[i]] = 1);
		v->nsel = n;
	}
	else
		EACH_ALIVE(v, hit[parent[i]] = 1);
	v->expanded = false;
}

/* Step 2: rows that have not passed go on without a row of the table. */
static void
match_in_place(Run *run, Vector *v, uint32_t j)
{
	const HgjPipeJoin *spec = &run->p->plan.spec.joins[j];
	RunJoin    *join = &run->joins[j];
	uint32_t   *rows = v->rows[j];
	uint32_t	hits = v->nsel;
	uint32_t	n = 0;

	v->matching = 0;
	if (!spec->fill)
		return;
	memset(join->hit, 0, v->n);
	EACH_ALIVE(v, join->hit[i] = 1);
	for (uint32_t at = 0; at < join->nbefore; at++)
	{
		uint32_t	i = join->before[at];

		if (!join->hit[i])
			rows[i] = HGJ_PIPE_NO_ROW;
		v->sel[n] = i;
		n += spec->pass || !join->hit[i];
	}
	run->joined[j] += join->nbefore - hits;
	v->nsel = n;
}

/* MATCH of a join; false: no row goes on. */
bool
hgj_run_match(Run *run, Vector *v, uint32_t j)
{
	const HgjPipeJoin *spec = &run->p->plan.spec.joins[j];

	if (v->expanded)
	{
		match_apart(run, v, j);
		if (!spec->pass)
			return false;
		run->joined[j] += v->nsel;
		return true;
	}
	if (spec->pass)
		run->joined[j] += v->nsel;
	match_in_place(run, v, j);
	return spec->pass || spec->fill;
}
