/*-------------------------------------------------------------------------
 *
 * fuzz.c
 *	  Random plans of pipelines (engine/pipeline.h), run by two engines that know nothing of each
 *	  other, whose answers are compared.
 *
 *	  fuzz_pipelines FAKE_SO THREADS_SO SEED N
 *
 * 1. Plan and rows number i are made from the seed and i alone (fuzz_plan.c, fuzz_code.c,
 *	  fuzz_data.c).
 * 2. Each engine is asked for a pipeline, and runs it if there is one (fuzz_run.c).
 * 3. What create says has to be the same, then the first status that is not HGJ_OK, whichever call
 *	  has returned it, then all groups or rows, in sorted order, and what has been counted.  Sums
 *	  of floats are compared by their bits: their values are such that no order makes a difference.
 * 4. A difference is printed with seed, number and plan.  HGJ_FUZZ_ONE=number in the
 *	  environment runs that plan alone, and prints it.
 *
 * Prints `N passed, N failed`; exits nonzero when anything failed.
 *
 * Memory: static, but for results.  No locks: one thread, besides the engines' own.
 *
 *-------------------------------------------------------------------------
 */
#include <dlfcn.h>

#include "fuzz.h"

typedef const HgjEngine *(*EngineEntry) (void);

/* What has come of all plans. */
typedef struct Totals
{
	uint64_t	passed;			/* plans */
	uint64_t	failed;			/* plans */
	uint64_t	refused;		/* plans that both have refused */
	uint64_t	created;		/* spoiled plans that both would have run */
	uint64_t	ended;			/* plans that both have ended with an error */
	uint64_t	some;			/* plans of which groups or rows have come out */
	uint64_t	rows;			/* groups and rows of all plans */
} Totals;

static const HgjEngine *
load(const char *path)
{
	void	   *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void	   *symbol = library != NULL ? dlsym(library, HGJ_ENGINE_ENTRY) : NULL;
	EngineEntry entry;
	const HgjEngine *engine = NULL;
	HgjError	err = {HGJ_OK, "not an engine of this version"};

	if (symbol != NULL)
	{
		memcpy(&entry, &symbol, sizeof(entry)); /* ISO C has no such cast */
		engine = entry();
	}
	if (engine == NULL || engine->abi_version != HGJ_ABI_VERSION || engine->pipeline == NULL ||
		engine->open(&err) != HGJ_OK)
	{
		printf("no engine in %s: %s\n", path, symbol == NULL ? dlerror() : err.message);
		exit(2);
	}
	fuzz_tell(engine);
	return engine;
}

/* ---- step 3 ------------------------------------------------------------------ */

static bool
counts_are_same(const FuzzPlan *plan, const HgjPipelineInfo *a, const HgjPipelineInfo *b)
{
	bool		same = a->rows == b->rows && a->dropped == b->dropped && a->left_out == b->left_out;

	for (uint32_t j = 0; j < plan->spec.njoins; j++)
	{
		/* where any candidate will do, others need not have been looked at */
		bool		any = plan->tainted[j] ||
			(plan->tables[j].spec.flags & HGJ_TABLE_FIRST_MATCH) != 0;

		same &= a->joined[j] == b->joined[j] && a->filtered[j] == b->filtered[j] &&
			(any || a->removed[j] == b->removed[j]);
	}
	return same;
}

static void
print_counts(const char *name, const FuzzPlan *plan, const HgjPipelineInfo *info)
{
	printf("%s: %llu rows, %llu dropped, %llu left out", name, (unsigned long long) info->rows,
		   (unsigned long long) info->dropped, (unsigned long long) info->left_out);
	for (uint32_t j = 0; j < plan->spec.njoins; j++)
		printf("; join %u: %llu joined, %llu filtered, %llu removed", j,
			   (unsigned long long) info->joined[j], (unsigned long long) info->filtered[j],
			   (unsigned long long) info->removed[j]);
	printf("\n");
}

static void
print_row(const char *name, const FuzzResult *result, uint64_t i)
{
	printf("%s: row %llu of %llu:", name, (unsigned long long) i, (unsigned long long) result->n);
	for (uint32_t w = 0; w < result->width && i < result->n; w++)
		printf(" %llx", (unsigned long long) result->rows[i * result->width + w]);
	printf("\n");
}

/* The first row that is not the same in both. */
static bool
rows_are_same(const FuzzResult *a, const FuzzResult *b)
{
	uint64_t	i = 0;

	while (i < a->n && i < b->n &&
		   memcmp(a->rows + i * a->width, b->rows + i * b->width,
				  a->width * sizeof(uint64_t)) == 0)
		i++;
	if (i == a->n && i == b->n && a->filled == b->filled)
		return true;
	print_row("fake", a, i);
	print_row("threads", b, i);
	return false;
}

/*
 * A key that is out of its range and a row's error: either may be met first; and an engine that
 * does not find groups by position need not mind the range.
 */
static bool
either_will_do(const FuzzPlan *plan, HgjStatus a, HgjStatus b)
{
	return plan->tight && (a == HGJ_LIMIT || b == HGJ_LIMIT) &&
		(a == HGJ_OK || a == HGJ_LIMIT || a == HGJ_ROW_FAILED) &&
		(b == HGJ_OK || b == HGJ_LIMIT || b == HGJ_ROW_FAILED);
}

static bool
are_same(const FuzzPlan *plan, const FuzzResult *a, const FuzzResult *b)
{
	if (a->created != b->created)
	{
		printf("create: fake %s (%s), threads %s (%s)\n", hgj_status_name(a->created), a->message,
			   hgj_status_name(b->created), b->message);
		return false;
	}
	/* no plan may read what has no value: that is the fuzzer's fault */
	if ((a->status != b->status && !either_will_do(plan, a->status, b->status)) ||
		a->status == HGJ_INVALID)
	{
		printf("status: fake %s in %s (%s), threads %s in %s (%s)\n", hgj_status_name(a->status),
			   a->call ? a->call : "none", a->message, hgj_status_name(b->status),
			   b->call ? b->call : "none", b->message);
		return false;
	}
	if (a->status != HGJ_OK || b->status != HGJ_OK || a->created != HGJ_OK || plan->spoiled)
		return true;
	if (!rows_are_same(a, b))
		return false;
	if (counts_are_same(plan, &a->info, &b->info))
		return true;
	print_counts("fake", plan, &a->info);
	print_counts("threads", plan, &b->info);
	return false;
}

/* ---- all of it ------------------------------------------------------------------ */

static void
count(const FuzzPlan *plan, const FuzzResult *result, Totals *totals)
{
	totals->refused += result->created != HGJ_OK;
	totals->created += result->created == HGJ_OK && plan->spoiled;
	totals->ended += result->created == HGJ_OK && result->status != HGJ_OK;
	totals->some += result->status == HGJ_OK && result->n > 0;
	totals->rows += result->status == HGJ_OK ? result->n : 0;
}

static void
run_one(const HgjEngine *const *engines, uint64_t seed, uint64_t number, Totals *totals)
{
	static FuzzPlan plan;
	FuzzResult	results[2];
	bool		same;

	fuzz_seed(seed, number);
	fuzz_make_plan(&plan);
	for (int e = 0; e < 2; e++)
		fuzz_run(engines[e], &plan, &results[e]);
	same = are_same(&plan, &results[0], &results[1]);
	if (!same)
	{
		printf("not ok: seed %llu, plan %llu\n", (unsigned long long) seed,
			   (unsigned long long) number);
		fuzz_print(&plan);
	}
	(void) fflush(stdout);
	totals->passed += same;
	totals->failed += !same;
	count(&plan, &results[0], totals);
	for (int e = 0; e < 2; e++)
		free(results[e].rows);
	if (same && getenv("HGJ_FUZZ_ONE") != NULL)
		fuzz_print(&plan);
}

int
main(int argc, char **argv)
{
	const char *one = getenv("HGJ_FUZZ_ONE");
	const HgjEngine *engines[2];
	Totals		totals = {.passed = 0};
	uint64_t	seed;
	uint64_t	n;

	if (argc != 5)
	{
		printf("usage: fuzz_pipelines FAKE_SO THREADS_SO SEED N\n");
		return 2;
	}
	seed = strtoull(argv[3], NULL, 0);
	n = strtoull(argv[4], NULL, 0);
	printf("seed %llu\n", (unsigned long long) seed);
	(void) fflush(stdout);
	for (int e = 0; e < 2; e++)
		engines[e] = load(argv[1 + e]);
	if (one != NULL)
		run_one(engines, seed, strtoull(one, NULL, 0), &totals);
	for (uint64_t i = 0; i < n && one == NULL; i++)
		run_one(engines, seed, i, &totals);
	for (int e = 0; e < 2; e++)
		engines[e]->close();
	printf("%llu plans refused by both, %llu spoiled ones accepted by both, %llu ended with an "
		   "error\n%llu plans with groups or rows, %llu of them in all\n",
		   (unsigned long long) totals.refused, (unsigned long long) totals.created,
		   (unsigned long long) totals.ended, (unsigned long long) totals.some,
		   (unsigned long long) totals.rows);
	printf("%llu passed, %llu failed\n", (unsigned long long) totals.passed,
		   (unsigned long long) totals.failed);
	return totals.failed == 0 && totals.passed > 0 ? 0 : 1;
}
