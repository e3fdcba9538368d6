/*-------------------------------------------------------------------------
 *
 * test_failure.c
 *	  Every call cancelled at every poll, refused memory at every request,
 *	  and limited: it must fail cleanly, and succeed when it is repeated.
 *
 *-------------------------------------------------------------------------
 */
#include "test.h"

/* A table, its rows, and what should be in it. */
typedef struct Case
{
	HgjTableSpec spec;
	PollState	poll;
	Rows		build;
	Rows		more;			/* inserted, if dynamic */
	Rows		probe;
	Reference	ref;
	HgjTable   *table;
	HgjProbe   *prober;
} Case;

/* The calls of a table's life, which are made to fail one at a time. */
typedef enum Call
{
	CALL_CREATE,
	CALL_APPEND,
	CALL_BUILD,
	CALL_PROBE,					/* create, begin, next until done */
	CALL_COUNT,
	CALL_INSERT,
	CALL_REMOVE,
	CALL_REBUILD,
	CALL_UNMATCHED,
	CALL_END
} Call;

static const char *const call_names[] = {
	"create", "append", "build", "probe", "count", "insert", "remove",
	"rebuild", "unmatched"
};

static Case *
case_make(uint32_t nwords, Shape shape, uint32_t n, HgjBuild build,
		  HgjSegments segments, HgjProbeAlgo probe, uint32_t flags)
{
	Case	   *c = must_alloc(sizeof(Case));

	memset(c, 0, sizeof(*c));
	c->spec = spec_default(nwords);
	c->spec.build = build;
	c->spec.segments = segments;
	c->spec.probe = probe;
	c->spec.flags = flags;
	c->spec.filter = flags & HGJ_TABLE_TRACK_MATCHES ? HGJ_FILTER_OFF :
		HGJ_FILTER_ON;
	c->spec.poll = poll_count;
	c->spec.poll_arg = &c->poll;
	c->build = rows_make(shape, nwords, n, 1000);
	c->more = rows_make(shape, nwords, n / 2, 1000 + n);
	rows_number(&c->more, n, false);
	c->probe = rows_probe(&c->build, shape == SHAPE_SKEW ? 100 :
						  shape == SHAPE_SAME ? 3 : n / 2, 70);
	return c;
}

/* Back to no table; the rows stay. */
static void
case_reset(Case *c)
{
	engine->probe_destroy(c->prober);
	engine->table_destroy(c->table);
	c->prober = NULL;
	c->table = NULL;
	ref_free(&c->ref);
	ref_init_spec(&c->ref, &c->spec);
	c->poll.calls = 0;
	c->poll.cancel_at = 0;
}

static void
case_free(Case *c)
{
	case_reset(c);
	ref_free(&c->ref);
	rows_free(&c->build);
	rows_free(&c->more);
	rows_free(&c->probe);
	free(c);
}

/* Probe to the end; repeats a probe_next that is cancelled. */
static HgjStatus
probe_all(Case *c, HgjProbeMode mode, bool repeat)
{
	HgjKeys		keys = rows_keys(&c->probe);
	uint32_t   *p = must_alloc(1000 * sizeof(uint32_t));
	uint32_t   *b = must_alloc(1000 * sizeof(uint32_t));
	uint32_t   *counts = must_alloc(c->probe.n * sizeof(uint32_t));
	HgjError	err = {HGJ_OK, ""};
	HgjStatus	status = HGJ_OK;
	HgjMatches	m;
	Pairs		got;
	Pairs		want;
	uint32_t	i;

	memset(&m, 0, sizeof(m));
	memset(&got, 0, sizeof(got));
	m.probe_rows = p;
	m.build_rows = b;
	m.capacity = 1000;
	m.counts = counts;
	if (c->prober == NULL)
		status = engine->probe_create(c->table, &c->prober, &err);
	if (status == HGJ_OK)
		status = engine->probe_begin(c->prober, &keys, mode, 0, &err);
	while (status == HGJ_OK && !m.done)
	{
		status = engine->probe_next(c->prober, &m, &err);
		if (status == HGJ_CANCELLED && repeat)
		{
			c->poll.cancel_at = 0;
			status = engine->probe_next(c->prober, &m, &err);
		}
		for (i = 0; status == HGJ_OK && i < m.n; i++)
			pairs_add(&got, p[i], b[i]);
	}
	if (status == HGJ_OK)
	{
		ref_pairs(&c->ref, &c->probe, &want);
		pairs_sort(&got);
		pairs_forget(&got, c->ref.unwanted);
		pairs_forget(&want, c->ref.unwanted);
		if (mode == HGJ_MATCH_COUNT)
		{
			uint64_t	sum = 0;

			for (i = 0; i < c->probe.n; i++)
				sum += counts[i];
			CHECK(sum == want.n, "%llu counted, expected %llu",
				  (unsigned long long) sum, (unsigned long long) want.n);
		}
		else
			CHECK(got.n == want.n &&
				  (got.n == 0 || memcmp(got.pairs, want.pairs,
										got.n * sizeof(Pair)) == 0),
				  "%llu pairs, expected %llu", (unsigned long long) got.n,
				  (unsigned long long) want.n);
		pairs_free(&want);
	}
	pairs_free(&got);
	free(p);
	free(b);
	free(counts);
	return status;
}

/* Whether this table has such a call. */
static bool
case_has(const Case *c, Call call)
{
	if (call >= CALL_INSERT && call <= CALL_REBUILD)
		return (c->spec.flags & HGJ_TABLE_DYNAMIC) != 0;
	if (call == CALL_UNMATCHED)
		return (c->spec.flags & HGJ_TABLE_TRACK_MATCHES) != 0;
	return true;
}

static HgjStatus
case_call(Case *c, Call call, bool repeat)
{
	HgjError	err = {HGJ_OK, ""};
	HgjStatus	status = HGJ_OK;
	HgjKeys		keys;
	uint32_t   *rows;
	uint32_t	cursor = 0;
	uint32_t	n;

	switch (call)
	{
		case CALL_CREATE:
			return engine->table_create(&c->spec, &c->table, &err);
		case CALL_APPEND:
			keys = rows_keys(&c->build);
			status = engine->append(c->table, &keys, 0, NULL, &err);
			if (status == HGJ_OK)
				ref_add(&c->ref, &c->build);
			break;
		case CALL_BUILD:
			return engine->build(c->table, c->build.n, &err);
		case CALL_PROBE:
			return probe_all(c, HGJ_MATCH_ALL, repeat);
		case CALL_COUNT:
			return probe_all(c, HGJ_MATCH_COUNT, repeat);
		case CALL_INSERT:
			keys = rows_keys(&c->more);
			status = engine->insert(c->table, &keys, c->more.first_row, NULL,
									&err);
			if (status == HGJ_OK)
				ref_add(&c->ref, &c->more);
			break;
		case CALL_REMOVE:
			keys = rows_keys(&c->probe);
			status = engine->remove(c->table, &keys, NULL, NULL, &err);
			if (status == HGJ_OK)
				(void) ref_remove(&c->ref, &c->probe, false);
			break;
		case CALL_REBUILD:
			return engine->rebuild(c->table, &err);
		case CALL_UNMATCHED:
			rows = must_alloc((c->build.n + c->more.n) * sizeof(uint32_t));
			status = engine->unmatched(c->table, &cursor, rows,
									   c->build.n + c->more.n, &n, &err);
			free(rows);
			break;
		case CALL_END:
			break;
	}
	return status;
}

static uint64_t
current_memory(const Case *c)
{
	HgjMemory	memory = {0};

	if (c->table != NULL)
		engine->memory(c->table, &memory);
	return memory.current;
}

/* Every call up to and without `call`, none of which may fail. */
static bool
case_until(Case *c, Call call)
{
	int			i;

	case_reset(c);
	for (i = 0; i < (int) call; i++)
		if (case_has(c, (Call) i) &&
			!CHECK(case_call(c, (Call) i, false) == HGJ_OK, "%s failed",
				   call_names[i]))
			return false;
	return true;
}

/* After a failed call: the same call, and the rest of the table's life. */
static void
case_from(Case *c, Call call)
{
	int			i;

	for (i = (int) call; i < (int) CALL_END; i++)
		if (case_has(c, (Call) i))
		{
			HgjStatus	status = case_call(c, (Call) i, false);

			if (!CHECK(status == HGJ_OK, "%s after a failure: %s",
					   call_names[i], hgj_status_name(status)))
				return;
		}
	CHECK(probe_all(c, HGJ_MATCH_ALL, false) == HGJ_OK, "the last probe");
}

/* Make a call fail at its k-th poll or allocation, for every k. */
static uint64_t
fail_everywhere(Case *c, Call call, bool by_poll)
{
	HgjStatus	want = by_poll ? HGJ_CANCELLED : HGJ_OUT_OF_MEMORY;
	uint64_t	k;

	if (!case_has(c, call))
		return 0;
	for (k = 1; k < 2000; k++)
	{
		HgjStatus	status;
		uint64_t	rows;
		HgjTableInfo info;

		context("%s at %llu of %s: %s %s, %u words, flags %u",
				by_poll ? "cancel" : "no memory", (unsigned long long) k,
				call_names[call], hgj_build_name(c->spec.build),
				hgj_segments_name(c->spec.segments), c->spec.nwords,
				c->spec.flags);
		if (!case_until(c, call))
			break;
		rows = 0;
		if (c->table != NULL)
		{
			engine->info(c->table, &info);
			rows = info.rows;
		}
		c->poll.calls = 0;
		if (by_poll)
			c->poll.cancel_at = k;
		else
			hgj_mem_test_fail_at(k);
		status = case_call(c, call, false);
		c->poll.cancel_at = 0;
		if (!by_poll)
			hgj_mem_test_fail_at(0);
		if (by_poll ? c->poll.calls < k : status == HGJ_OK &&
			!(call == CALL_PROBE && k < 5))
		{
			CHECK(status == HGJ_OK, "not failed, and yet %s",
				  hgj_status_name(status));
			break;
		}
		/* a probe does without memory for its bins or its filter */
		CHECK(status == want || (!by_poll && status == HGJ_OK &&
								 call == CALL_PROBE), "%s, expected %s",
			  hgj_status_name(status), hgj_status_name(want));
		CHECK(!is_cpu || current_memory(c) == hgj_mem_test_live(),
			  "memory %llu, live %llu", (unsigned long long) current_memory(c),
			  (unsigned long long) hgj_mem_test_live());
		if (status == HGJ_OK)
			continue;
		if (c->table != NULL)
		{
			engine->info(c->table, &info);
			CHECK(info.rows == rows, "%llu rows after the failure, before %llu",
				  (unsigned long long) info.rows, (unsigned long long) rows);
		}
		case_from(c, call);
	}
	case_reset(c);
	return k - 1;
}

/* probe_next, cancelled and repeated: no match lost, none twice. */
static void
cancel_and_go_on(Case *c, HgjProbeMode mode)
{
	uint64_t	k;

	for (k = 1; k < 500; k++)
	{
		HgjStatus	status;

		context("cancel and go on at %llu", (unsigned long long) k);
		if (!case_until(c, CALL_PROBE))
			return;
		c->poll.calls = 0;
		c->poll.cancel_at = k;
		status = probe_all(c, mode, true);
		CHECK(status == HGJ_OK || status == HGJ_CANCELLED, "%s",
			  hgj_status_name(status));
		if (c->poll.calls < k)
			return;
	}
	CHECK(false, "no end of polls");
}

static Case *
numbered_case(int i, uint32_t n)
{
	uint32_t	dynamic = engine->capabilities & HGJ_CAP_DYNAMIC ?
		HGJ_TABLE_DYNAMIC : 0;

	switch (i)
	{
		case 0:
			return case_make(1, SHAPE_NARROW, n, HGJ_BUILD_V2,
							 HGJ_SEGMENTS_CSR, HGJ_PROBE_BINNED,
							 HGJ_TABLE_TRACK_MATCHES);
		case 1:
			return case_make(1, SHAPE_WIDE, n, HGJ_BUILD_V1,
							 HGJ_SEGMENTS_SLICED, HGJ_PROBE_STANDARD, 0);
		case 2:
			return case_make(1, SHAPE_DENSE, n, HGJ_BUILD_AUTO,
							 HGJ_SEGMENTS_AUTO, HGJ_PROBE_AUTO, 0);
		case 3:
			return case_make(1, SHAPE_DENSE_DUP, n, HGJ_BUILD_AUTO,
							 HGJ_SEGMENTS_ELLPACK, HGJ_PROBE_AUTO,
							 HGJ_TABLE_TRACK_MATCHES);
		case 4:
			return case_make(1, SHAPE_SKEW, n, HGJ_BUILD_V2,
							 HGJ_SEGMENTS_CSR, HGJ_PROBE_AUTO, 0);
		case 5:
			return case_make(3, SHAPE_NARROW, n, HGJ_BUILD_V2,
							 HGJ_SEGMENTS_CSR, HGJ_PROBE_BINNED, 0);
		case 6:
			return case_make(1, SHAPE_NARROW, n, HGJ_BUILD_V2,
							 HGJ_SEGMENTS_CSR, HGJ_PROBE_AUTO,
							 dynamic | HGJ_TABLE_TRACK_MATCHES);
		case 7:
			return case_make(2, SHAPE_WIDE, n, HGJ_BUILD_V1,
							 HGJ_SEGMENTS_SLICED, HGJ_PROBE_AUTO, dynamic);
		case 8:
			return case_make(1, SHAPE_SAME, n, HGJ_BUILD_V2,
							 HGJ_SEGMENTS_CSR, HGJ_PROBE_AUTO, 0);
		case 9:					/* with duplicates, and without */
			return case_make(1, SHAPE_DENSE_DUP, n, HGJ_BUILD_AUTO,
							 HGJ_SEGMENTS_AUTO, HGJ_PROBE_AUTO, HGJ_TABLE_KEYS_ONLY);
		case 10:
			return case_make(1, SHAPE_DENSE, n, HGJ_BUILD_AUTO,
							 HGJ_SEGMENTS_AUTO, HGJ_PROBE_AUTO, HGJ_TABLE_KEYS_ONLY);
		case 11:
			return case_make(1, SHAPE_SPARSE, n, HGJ_BUILD_AUTO,
							 HGJ_SEGMENTS_AUTO, HGJ_PROBE_AUTO, HGJ_TABLE_KEYS_ONLY);
		default:
			return NULL;
	}
}

void
test_cancel(void)
{
	Case	   *c;
	uint64_t	points = 0;
	int			i;
	int			call;

	hgj_mem_test_l2_bytes = 32768;
	for (i = 0; (c = numbered_case(i, i == 8 ? 400000 : 66000)) != NULL; i++)
	{
		for (call = CALL_APPEND; call < CALL_END; call++)
			if ((i != 8 || call == CALL_BUILD) && in_share())
				points += fail_everywhere(c, (Call) call, true);
		if ((i == 8 || i == 0 || i == 6 || i >= 10) && in_share())
		{
			cancel_and_go_on(c, HGJ_MATCH_ALL);
			cancel_and_go_on(c, HGJ_MATCH_COUNT);
		}
		case_free(c);
	}
	context("cancel");
	CHECK(!is_cpu || points > 100 || is_part(), "only %llu points to cancel at",
		  (unsigned long long) points);
	hgj_mem_test_l2_bytes = 0;
}

void
test_no_memory(void)
{
	Case	   *c;
	uint64_t	points = 0;
	int			i;
	int			call;

	if (!is_cpu)
		return;					/* there is no such hook in other engines */
	hgj_mem_test_l2_bytes = 8192;
	for (i = 0; (c = numbered_case(i, 6000)) != NULL; i++)
	{
		for (call = CALL_CREATE; call < CALL_UNMATCHED; call++)
			points += fail_everywhere(c, (Call) call, false);
		case_free(c);
	}
	context("no memory");
	CHECK(points > 100, "only %llu allocations", (unsigned long long) points);
	hgj_mem_test_l2_bytes = 0;
}

/* Limits from nothing to enough: never passed, and enough is enough. */
void
test_limit(void)
{
	Case	   *c;
	int			i;

	hgj_mem_test_l2_bytes = 16384;
	for (i = 0; (c = numbered_case(i, 20000)) != NULL; i++)
	{
		HgjMemory	memory;
		uint64_t	limit;
		uint64_t	step;
		bool		built = false;

		if (!in_share())
		{
			case_free(c);
			continue;
		}

		context("limit of case %d", i);
		if (!case_until(c, CALL_BUILD))
			break;
		engine->memory(c->table, &memory);
		step = memory.build_peak / 23 + 1;
		for (limit = step; limit < memory.build_peak + 2 * step; limit += step)
		{
			int			call;
			HgjStatus	status = HGJ_OK;

			if (limit > memory.build_peak && limit < memory.build_peak + step)
				limit = memory.build_peak;
			case_reset(c);
			c->spec.memory_limit = limit;
			hgj_mem_test_reset_peak();
			for (call = CALL_CREATE; call <= CALL_BUILD && status == HGJ_OK;
				 call++)
				status = case_call(c, (Call) call, false);
			CHECK(status == HGJ_OK || status == HGJ_LIMIT, "%s",
				  hgj_status_name(status));
			CHECK(!is_cpu || hgj_mem_test_peak() <= limit,
				  "%llu bytes, the limit is %llu",
				  (unsigned long long) hgj_mem_test_peak(),
				  (unsigned long long) limit);
			CHECK(status == HGJ_OK || limit < memory.build_peak,
				  "a limit of %llu is not enough, build_peak was %llu",
				  (unsigned long long) limit,
				  (unsigned long long) memory.build_peak);
			built |= status == HGJ_OK;
			if (status == HGJ_OK)
			{
				c->spec.memory_limit = 0;
				/* a probe may pass the limit, or do without bins; a device has its batch, too */
				status = probe_all(c, HGJ_MATCH_ALL, false);
				CHECK(status == HGJ_OK || limit < memory.build_peak ||
					  (!is_cpu && status == HGJ_LIMIT), "probe under a limit: %s",
					  hgj_status_name(status));
				status = HGJ_OK;
			}
			if (limit == memory.build_peak)
				break;
		}
		CHECK(built, "no limit was enough");
		c->spec.memory_limit = 0;
		case_free(c);
	}
	hgj_mem_test_l2_bytes = 0;
}

/* What memory() says, against what the allocator knows. */
void
test_accounting(void)
{
	static const uint32_t sizes[] = {10, 1000, 100000, 1000000};
	static const uint32_t words[] = {1, 1, 1, 2, 1};
	static const Shape shapes[] = {
		SHAPE_NARROW, SHAPE_WIDE, SHAPE_DENSE, SHAPE_WIDE, SHAPE_SPARSE
	};
	int			i;
	int			b;

	for (i = 0; i < COUNT_OF(sizes) * COUNT_OF(words); i++)
		for (b = HGJ_BUILD_AUTO; b <= HGJ_BUILD_DIRECT; b++)
		{
			uint32_t	n = sizes[i / COUNT_OF(words)];
			Shape		shape = shapes[i % COUNT_OF(words)];
			bool		bits = b == HGJ_BUILD_AUTO;
			Case	   *c;
			HgjMemory	before;
			HgjMemory	after;
			uint64_t	base = hgj_mem_test_live();

			if (!in_share() || b == HGJ_BUILD_SORT ||
				(b == HGJ_BUILD_DIRECT && shape != SHAPE_DENSE) ||
				(bits && shape != SHAPE_DENSE && shape != SHAPE_SPARSE))
				continue;
			c = case_make(words[i % COUNT_OF(words)], shape, n, (HgjBuild) b,
						  HGJ_SEGMENTS_AUTO, HGJ_PROBE_AUTO,
						  bits ? HGJ_TABLE_KEYS_ONLY : HGJ_TABLE_TRACK_MATCHES);
			context("accounting, %u rows, %s, %s", n, shape_name(shape),
					hgj_build_name((HgjBuild) b));
			hgj_mem_test_reset_peak();
			if (case_until(c, CALL_BUILD))
			{
				engine->memory(c->table, &before);
				CHECK(!is_cpu || before.current == hgj_mem_test_live() - base,
					  "before build: %llu, live %llu",
					  (unsigned long long) before.current,
					  (unsigned long long) (hgj_mem_test_live() - base));
				CHECK_STATUS(case_call(c, CALL_BUILD, false), HGJ_OK);
				engine->memory(c->table, &after);
				CHECK(!is_cpu || (after.current == hgj_mem_test_live() - base &&
								  after.peak == hgj_mem_test_peak() - base),
					  "after build: %llu and %llu",
					  (unsigned long long) after.current,
					  (unsigned long long) after.peak);
				CHECK(after.build_peak == after.peak, "build_peak is not peak");
				CHECK(before.build_peak >= after.peak,
					  "build_peak %llu was too low for %llu",
					  (unsigned long long) before.build_peak,
					  (unsigned long long) after.peak);
				/* a direct table may have had duplicates, for all we knew */
				CHECK(!is_cpu || n < 100000 || b == HGJ_BUILD_DIRECT || bits ||
					  before.build_peak <= after.peak + after.peak / 8,
					  "build_peak %llu was too high for %llu",
					  (unsigned long long) before.build_peak,
					  (unsigned long long) after.peak);
			}
			case_free(c);
		}
}
