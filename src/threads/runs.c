/*-------------------------------------------------------------------------
 *
 * runs.c
 *	  The memory of runs: what a thread has of a pipeline (threads.h), and what that counts for.
 *
 * 1. A vector is one block, with a column for each register.  The first one of a run is made
 *	  with it, those of joins when a join finds several rows for one.
 * 2. Bytes are counted against the pipeline's limit: of vectors, groups, and rows that come out.
 * 3. The first failure of a run is its reason.
 *
 * A run belongs to one thread at a time, and to its pipeline, which frees it.  Locks nothing;
 * counts are atomic.
 *
 *-------------------------------------------------------------------------
 */
#include "threads/threads.h"

/* Tables and pipelines that are there, after so many more, or fewer. */
uint32_t
hgj_threads_count(int more)
{
	static uint32_t there = 0;

	return __atomic_add_fetch(&there, (uint32_t) more, __ATOMIC_RELAXED);
}

/* Count more bytes against the limit; false: they do not fit.  By any thread. */
bool
hgj_threads_take(struct HgjPipeline *p, uint64_t bytes)
{
	uint64_t	now = __atomic_add_fetch(&p->memory, bytes, __ATOMIC_RELAXED);
	uint64_t	most = __atomic_load_n(&p->info.memory, __ATOMIC_RELAXED);

	if (p->memory_limit > 0 && now > p->memory_limit)
	{
		(void) __atomic_sub_fetch(&p->memory, bytes, __ATOMIC_RELAXED);
		return false;
	}
	while (now > most && !__atomic_compare_exchange_n(&p->info.memory, &most, now, true,
													  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return true;
}

/* Those bytes are not there any more. */
void
hgj_threads_give(struct HgjPipeline *p, uint64_t bytes)
{
	(void) __atomic_sub_fetch(&p->memory, bytes, __ATOMIC_RELAXED);
}

/* The run has failed; the first reason is kept. */
HgjStatus
hgj_threads_fail(Run *run, HgjStatus status, const char *message)
{
	if (run->status == HGJ_OK)
		run->status = hgj_fail(&run->error, status, message);
	return run->status;
}

static size_t
rounded(size_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

/* The next bytes of a block, or, without one, none: how many there would be. */
static void *
carve(char *block, size_t *at, size_t bytes)
{
	void	   *there = block == NULL ? NULL : block + *at;

	*at += rounded(bytes);
	return there;
}

/* A vector in a block, or how long the block has to be. */
static size_t
lay_out_vector(const struct HgjPipeline *p, char *block, Vector *v)
{
	uint32_t	nregs = p->plan.registers;
	size_t		at = rounded(sizeof(Vector));

	v->sel = carve(block, &at, (VECTOR_ROWS + SEL_SLACK) * sizeof(uint32_t));
	v->alive = carve(block, &at, VECTOR_ROWS);
	v->parent = carve(block, &at, VECTOR_ROWS * sizeof(uint32_t));
	v->origin = carve(block, &at, VECTOR_ROWS * sizeof(uint32_t));
	v->parked = carve(block, &at, (size_t) p->plan.ntargets * VECTOR_WORDS * sizeof(uint64_t));
	v->words = carve(block, &at, nregs * sizeof(*v->words));
	v->nulls = carve(block, &at, nregs * sizeof(*v->nulls));
	v->lazies = carve(block, &at, nregs * sizeof(*v->lazies));
	for (uint32_t j = 0; j < p->plan.spec.njoins; j++)
		v->rows[j] = carve(block, &at, VECTOR_ROWS * sizeof(uint32_t));
	for (uint32_t r = 0; r < nregs; r++)
	{
		uint64_t   *words = carve(block, &at, VECTOR_ROWS * sizeof(uint64_t));
		uint8_t    *nulls = carve(block, &at, VECTOR_ROWS);

		if (block == NULL)
			continue;
		v->words[r] = words;
		v->nulls[r] = nulls;
	}
	return at;
}

/* A vector without rows, to be freed with free(); NULL: there is no memory for it. */
Vector *
hgj_vector_make(Run *run)
{
	struct HgjPipeline *p = run->p;
	Vector		sizes;
	size_t		bytes = lay_out_vector(p, NULL, &sizes);
	char	   *block = hgj_threads_take(p, bytes) ? aligned_alloc(64, bytes) : NULL;

	if (block == NULL)
		return NULL;
	run->bytes += bytes;
	memset(block, 0, bytes);
	(void) lay_out_vector(p, block, (Vector *) (void *) block);
	return (Vector *) (void *) block;
}

static bool
make_join(Run *run, uint32_t j)
{
	RunJoin    *join = &run->joins[j];
	size_t		bytes = VECTOR_ROWS * sizeof(uint32_t);

	join->probed = malloc(bytes);
	join->found = malloc(bytes);
	join->before = malloc(bytes);
	join->keyed = malloc(bytes);
	join->hit = malloc(VECTOR_ROWS);
	return join->probed != NULL && join->found != NULL && join->before != NULL &&
		join->keyed != NULL && join->hit != NULL;
}

/* What a thread needs for a pipeline; NULL, with *err filled: it is not to be had. */
Run *
hgj_run_make(struct HgjPipeline *p, HgjError *err)
{
	Run		   *run = calloc(1, sizeof(Run));
	HgjStatus	status = HGJ_OK;

	if (run == NULL)
	{
		(void) hgj_fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
		return NULL;
	}
	run->p = p;
	run->vectors[0] = hgj_vector_make(run);
	if (run->vectors[0] == NULL)
		status = HGJ_OUT_OF_MEMORY;
	if (status == HGJ_OK)
		run->vectors[0]->first = true;
	for (uint32_t i = 0; i < VECTOR_ROWS && status == HGJ_OK; i++)
		run->vectors[0]->origin[i] = i;
	for (uint32_t j = 0; j < p->plan.spec.njoins && status == HGJ_OK; j++)
	{
		status = make_join(run, j) ? HGJ_OK : HGJ_OUT_OF_MEMORY;
		if (status == HGJ_OK)
			status = hgj_cpu_engine()->probe_create(p->tables[j]->cpu, &run->joins[j].probe, err);
	}
	if (status != HGJ_OK)
	{
		if (status == HGJ_OUT_OF_MEMORY)
			(void) hgj_fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
		hgj_run_free(run);
		return NULL;
	}
	return run;
}

/* Groups of a run, and what they count for. */
static void
free_groups(struct HgjPipeline *p, Groups *g)
{
	free(g->rows);
	free(g->hashes);
	free(g->slots);
	hgj_threads_give(p, g->bytes);
	memset(g, 0, sizeof(*g));
}

/* Rows that have come out of a run. */
static void
free_output(struct HgjPipeline *p, Output *out)
{
	for (uint32_t c = 0; c < sizeof(out->columns) / sizeof(out->columns[0]); c++)
		free(out->columns[c]);
	for (uint32_t c = 0; c < HGJ_PIPE_COLUMNS; c++)
		free(out->nulls[c]);
	hgj_threads_give(p, out->bytes);
	memset(out, 0, sizeof(*out));
}

/* Before the tables; NULL is allowed. */
void
hgj_run_free(Run *run)
{
	if (run == NULL)
		return;
	for (uint32_t j = 0; j < HGJ_PIPE_JOINS; j++)
	{
		RunJoin    *join = &run->joins[j];

		hgj_cpu_engine()->probe_destroy(join->probe);
		free(join->probed);
		free(join->found);
		free(join->before);
		free(join->keyed);
		free(join->hit);
	}
	for (uint32_t i = 0; i < HGJ_PIPE_INPUTS; i++)
		free(run->tests[i]);
	for (uint32_t l = 0; l <= HGJ_PIPE_JOINS; l++)
		free(run->vectors[l]);
	free_groups(run->p, &run->groups);
	free_output(run->p, &run->out);
	hgj_threads_give(run->p, run->bytes);
	free(run->few.number_of);
	free(run);
}
