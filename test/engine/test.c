/*-------------------------------------------------------------------------
 *
 * test.c
 *	  The engine's ABI test suite: main, and what counts and reports.
 *
 *	  run_tests [engine [seed [libdir]]]
 *
 * Prints `N passed, N failed`; exits nonzero when anything failed, or when
 * the engine is not there.
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <time.h>

#include "test.h"

const HgjEngine *engine;
bool		is_cpu;
uint64_t	seed;
int			passed;
int			failed;

static char context_text[256];
static uint32_t share;

void
context(const char *fmt,...)
{
	va_list		args;

	va_start(args, fmt);
	(void) vsnprintf(context_text, sizeof(context_text), fmt, args);
	va_end(args);
}

bool
check(bool ok, const char *file, int line, const char *fmt,...)
{
	va_list		args;

	if (ok)
	{
		passed++;
		return true;
	}
	failed++;
	if (failed <= 50)
	{
		printf("not ok: %s:%d [%s] ", file, line, context_text);
		va_start(args, fmt);
		(void) vprintf(fmt, args);
		va_end(args);
		printf("\n");
		(void) fflush(stdout);
	}
	return false;
}

bool
in_share(void)
{
	return share <= 1 || rnd_below(share) == 0;
}

bool
is_part(void)
{
	return share > 1;
}

typedef struct Test
{
	const char *name;
	void		(*run) (void);
} Test;

static const Test tests[] = {
	{"registry", test_registry},
	{"invalid", test_invalid},
	{"choices", test_choices},
	{"spread", test_spread},
	{"join_matrix", test_join_matrix},
	{"join_random", test_join_random},
	{"join_large", test_join_large},
	{"skip", test_skip},
	{"filter", test_filter},
	{"sift", test_sift},
	{"threads", test_filter_threads},
	{"dynamic", test_dynamic},
	{"cancel", test_cancel},
	{"no_memory", test_no_memory},
	{"limit", test_limit},
	{"accounting", test_accounting},
	{"pauses", test_pauses},
	{"at_once", test_at_once},
	{"share", test_share},
	{"share_cancel", test_share_cancel},
	{"share_steps", test_share_steps},
	{"pipeline", test_pipeline},
	{"pipeline_alone", test_pipeline_alone},
	{"pipeline_fill", test_pipeline_fill},
	{"pipeline_rows", test_pipeline_rows},
	{"pipeline_long", test_pipeline_long},
	{"watch", test_watch},		/* the last one: it stays watched */
};

static double
seconds(void)
{
	struct timespec ts;

	(void) clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double) ts.tv_sec + (double) ts.tv_nsec / 1e9;
}

int
main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "cpu";
	const char *only = getenv("HGJ_TEST");
	const char *one_in = getenv("HGJ_TEST_SHARE");
	HgjError	err = {HGJ_OK, ""};
	int			i;

	seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t) time(NULL);
	share = one_in != NULL ? (uint32_t) strtoul(one_in, NULL, 0) : 1;
	printf("engine %s, seed %llu\n", name, (unsigned long long) seed);
	(void) fflush(stdout);
	engine = hgj_registry_find(name, argc > 3 ? argv[3] : ".", &err);
	if (engine == NULL || engine->abi_version != HGJ_ABI_VERSION ||
		engine->open(&err) != HGJ_OK)
	{
		printf("no engine: %s\n", err.message);
		return 2;
	}
	is_cpu = engine == hgj_cpu_engine();
	for (i = 0; i < COUNT_OF(tests); i++)
	{
		double		start = seconds();
		int			before = passed;
		uint64_t	live = hgj_mem_test_live();

		if (only != NULL && strncmp(only, tests[i].name, strlen(only)) != 0)
			continue;
		rnd_start(seed * 1000 + (uint64_t) i);
		hgj_mem_test_l2_bytes = 0;
		tests[i].run();
		CHECK(!is_cpu || hgj_mem_test_live() == live,
			  "%s left %lld bytes allocated", tests[i].name,
			  (long long) (hgj_mem_test_live() - live));
		printf("%-12s %8d checks %6.2f s\n", tests[i].name, passed - before,
			   seconds() - start);
		(void) fflush(stdout);
	}
	engine->close();
	printf("%d passed, %d failed\n", passed, failed);
	return failed == 0 && passed > 0 ? 0 : 1;
}
