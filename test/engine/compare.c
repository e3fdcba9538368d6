/*-------------------------------------------------------------------------
 *
 * compare.c
 *	  Probe a table in every mode, and compare with the reference.
 *
 *-------------------------------------------------------------------------
 */
#include "test.h"

/* A poll function, whose argument is a PollState. */
int
poll_count(void *arg)
{
	PollState  *state = arg;

	state->calls++;
	return state->cancel_at > 0 && state->calls >= state->cancel_at;
}

HgjTableSpec
spec_default(uint32_t nwords)
{
	HgjTableSpec spec;

	memset(&spec, 0, sizeof(spec));
	spec.nwords = nwords;
	spec.seed = rnd();
	return spec;
}

/* The rows come back as they were appended, each once. */
static void
check_appended(HgjTable *table, const Rows *rows)
{
	uint32_t	capacity = 1 + rnd_below(2000);
	uint32_t	total = rows->sel != NULL ? rows->nsel : rows->n;
	uint32_t	done = 0;
	uint32_t	n = 0;
	uint64_t	cursor = 0;
	uint32_t   *ids = must_alloc(capacity * sizeof(uint32_t));
	uint64_t   *words[HGJ_MAX_KEY_WORDS];
	HgjError	err = {HGJ_OK, ""};
	bool		same = true;
	uint32_t	w;

	for (w = 0; w < rows->nwords; w++)
		words[w] = must_alloc(capacity * sizeof(uint64_t));
	do
	{
		uint32_t	i;

		CHECK_STATUS(engine->appended(table, &cursor, words, ids, capacity, &n,
									  &err), HGJ_OK);
		for (i = 0; i < n && same && done < total; i++, done++)
		{
			uint32_t	row = rows->sel != NULL ? rows->sel[done] : done;

			same = ids[i] == (rows->row_ids != NULL ? rows->row_ids[row] :
							  rows->first_row + row);
			for (w = 0; w < rows->nwords; w++)
				same = same && words[w][i] == rows->words[w][row];
		}
		same = same && i == n;
	} while (n > 0 && same);
	CHECK(same && done == total, "row %u of %u that were appended is another",
		  done, total);
	for (w = 0; w < rows->nwords; w++)
		free(words[w]);
	free(ids);
}

/* Create a table, append rows in a few batches, build it; NULL on failure. */
HgjTable *
table_of(const HgjTableSpec *spec, const Rows *rows)
{
	HgjTable   *table = NULL;
	HgjKeys		keys = rows_keys(rows);
	HgjError	err = {HGJ_OK, ""};
	HgjStatus	status = engine->table_create(spec, &table, &err);

	if (status == HGJ_OK && rows->sel == NULL && rows->n > 3)
	{
		/* two batches: the second begins in the middle of the columns */
		const uint64_t *words[HGJ_MAX_KEY_WORDS];
		uint32_t	half = rnd_below(rows->n);
		uint32_t	w;

		keys.nrows = half;
		status = engine->append(table, &keys, rows->first_row, rows->row_ids,
								&err);
		for (w = 0; w < rows->nwords; w++)
			words[w] = rows->words[w] + half;
		keys.nrows = rows->n - half;
		keys.words = words;
		if (status == HGJ_OK)
			status = engine->append(table, &keys, rows->first_row + half,
									rows->row_ids != NULL ?
									rows->row_ids + half : NULL, &err);
	}
	else if (status == HGJ_OK)
		status = engine->append(table, &keys, rows->first_row, rows->row_ids,
								&err);
	if (status == HGJ_OK && engine->appended != NULL && rnd_below(8) == 0)
		check_appended(table, rows);
	if (status == HGJ_OK)
		status = engine->build(table, rows->first_row + rows->n, &err);
	if (!CHECK(status == HGJ_OK, "build: %s: %s", hgj_status_name(status),
			   err.message))
	{
		engine->table_destroy(table);
		return NULL;
	}
	return table;
}

/*
 * Run one batch to its end into pairs; returns whether every call went well.
 * The arrays are exactly as large as promised, for the sanitizer's sake.
 */
static bool
run_probe(HgjProbe *probe, const Rows *rows, HgjProbeMode mode, uint32_t flags,
		  uint32_t capacity, Pairs *pairs)
{
	HgjKeys		keys = rows_keys(rows);
	uint32_t   *p = must_alloc(capacity * sizeof(uint32_t));
	uint32_t   *b = must_alloc(capacity * sizeof(uint32_t));
	HgjMatches	m;
	HgjError	err = {HGJ_OK, ""};
	HgjStatus	status = engine->probe_begin(probe, &keys, mode, flags, &err);
	uint32_t	empty_calls = 0;
	uint32_t	i;

	memset(pairs, 0, sizeof(*pairs));
	memset(&m, 0, sizeof(m));
	m.probe_rows = p;
	m.build_rows = b;
	m.capacity = capacity;
	while (status == HGJ_OK && !m.done && empty_calls < 3)
	{
		status = engine->probe_next(probe, &m, &err);
		empty_calls = m.n == 0 ? empty_calls + 1 : 0;
		for (i = 0; status == HGJ_OK && i < m.n; i++)
			pairs_add(pairs, p[i], b[i]);
	}
	CHECK(status == HGJ_OK && m.done, "probe: %s, done %d",
		  hgj_status_name(status), m.done);
	if (status == HGJ_OK)
	{
		status = engine->probe_next(probe, &m, &err);
		CHECK(status == HGJ_OK && m.done && m.n == 0, "probe_next after done");
	}
	free(p);
	free(b);
	return status == HGJ_OK;
}

/* HGJ_CAP_GROUPED: a probe row's pairs are next to each other. */
static bool
is_grouped(const Pairs *pairs, uint32_t nrows)
{
	uint8_t    *seen = must_alloc(nrows);
	bool		ok = true;
	uint64_t	i;

	memset(seen, 0, nrows);
	for (i = 0; i < pairs->n && ok; i++)
	{
		if (i > 0 && pairs->pairs[i].probe == pairs->pairs[i - 1].probe)
			continue;
		ok = pairs->pairs[i].probe < nrows && !seen[pairs->pairs[i].probe];
		if (ok)
			seen[pairs->pairs[i].probe] = 1;
	}
	free(seen);
	return ok;
}

/* Whether `got` has exactly one of each probe row's expected pairs. */
static bool
is_first_of(const Pairs *got, const Pairs *want)
{
	uint64_t	g = 0;
	uint64_t	w = 0;

	while (w < want->n)
	{
		uint32_t	probe = want->pairs[w].probe;
		bool		found = false;

		if (g >= got->n || got->pairs[g].probe != probe)
			return false;
		for (; w < want->n && want->pairs[w].probe == probe; w++)
			found |= want->pairs[w].build == got->pairs[g].build;
		if (!found)
			return false;
		g++;
	}
	return g == got->n;
}

static void
compare_counts(HgjProbe *probe, const Rows *rows, const Pairs *want,
			   uint32_t flags, uint32_t unwanted)
{
	HgjKeys		keys = rows_keys(rows);
	uint32_t   *counts = must_alloc(rows->n * sizeof(uint32_t));
	uint64_t	at = 0;
	HgjMatches	m;
	HgjError	err = {HGJ_OK, ""};
	HgjStatus	status;
	bool		ok = true;
	uint32_t	i;

	memset(counts, 0xAB, rows->n * sizeof(uint32_t));
	memset(&m, 0, sizeof(m));
	m.counts = counts;
	status = engine->probe_begin(probe, &keys, HGJ_MATCH_COUNT, flags, &err);
	if (status == HGJ_OK)
		status = engine->probe_next(probe, &m, &err);
	CHECK(status == HGJ_OK && m.done, "count: %s", hgj_status_name(status));
	for (i = 0; i < rows->n; i++)
	{
		uint32_t	expected = 0;

		for (; at < want->n && want->pairs[at].probe == i; at++)
			expected++;
		ok &= unwanted & HGJ_TABLE_FIRST_MATCH ? (counts[i] > 0) == (expected > 0) :
			counts[i] == expected;
	}
	CHECK(ok, "counts differ");
	free(counts);
}

/* Whether the marks are those of the pairs, and unmatched returns the rest. */
void
compare_marks(HgjTable *table, const Pairs *pairs, uint32_t total)
{
	uint8_t    *marked = must_alloc(total);
	uint32_t   *rows = must_alloc(100 * sizeof(uint32_t));
	uint32_t	cursor = 0;
	uint32_t	expected = 0;
	uint32_t	n = 100;
	bool		ok = true;
	HgjError	err = {HGJ_OK, ""};
	uint64_t	i;

	memset(marked, 0, total);
	for (i = 0; i < pairs->n; i++)
		marked[pairs->pairs[i].build] = 1;
	for (i = 0; i < total; i++)
	{
		bool		is = engine->is_marked(table, (uint32_t) i);

		ok &= is == (marked[i] != 0);
	}
	CHECK(ok, "marks differ");
	ok = true;
	while (n == 100)
	{
		uint32_t	k;

		if (engine->unmatched(table, &cursor, rows, 100, &n, &err) != HGJ_OK)
		{
			ok = false;
			break;
		}
		for (k = 0; k < n; k++)
		{
			while (expected < total && marked[expected])
				expected++;
			ok &= expected == rows[k];
			expected++;
		}
	}
	while (expected < total && marked[expected])
		expected++;
	CHECK(ok && expected == total, "unmatched rows differ");
	free(marked);
	free(rows);
}

/*
 * Probe in all modes with arrays of that capacity.  With HGJ_PROBE_MARK, the
 * marks of all row ids below total are compared too (and cleared between the
 * modes).
 */
void
compare_probe(HgjTable *table, Reference *ref, const Rows *probe_rows,
			  uint32_t capacity, uint32_t flags, uint32_t total)
{
	HgjProbe   *probe = NULL;
	HgjError	err = {HGJ_OK, ""};
	Pairs		want;
	Pairs		got;

	ref_pairs(ref, probe_rows, &want);
	pairs_forget(&want, ref->unwanted);
	if (!CHECK(engine->probe_create(table, &probe, &err) == HGJ_OK,
			   "probe_create: %s", err.message))
		return;

	if (run_probe(probe, probe_rows, HGJ_MATCH_ALL, flags, capacity, &got))
	{
		CHECK(!(engine->capabilities & HGJ_CAP_GROUPED) ||
			  is_grouped(&got, probe_rows->n), "pairs are not grouped");
		pairs_sort(&got);
		pairs_forget(&got, ref->unwanted);
		CHECK(got.n == want.n && (got.n == 0 || memcmp(got.pairs, want.pairs,
													   got.n * sizeof(Pair)) == 0),
			  "all: %llu pairs, expected %llu", (unsigned long long) got.n,
			  (unsigned long long) want.n);
		if (flags & HGJ_PROBE_MARK)
			compare_marks(table, &want, total);
	}
	pairs_free(&got);
	if (flags & HGJ_PROBE_MARK)
		CHECK_STATUS(engine->clear_marks(table, &err), HGJ_OK);
	if (run_probe(probe, probe_rows, HGJ_MATCH_FIRST, flags, capacity, &got))
	{
		pairs_sort(&got);
		pairs_forget(&got, ref->unwanted & HGJ_TABLE_KEYS_ONLY);
		CHECK(is_first_of(&got, &want), "first: %llu pairs",
			  (unsigned long long) got.n);
		if (flags & HGJ_PROBE_MARK)
			compare_marks(table, &got, total);
	}
	pairs_free(&got);
	if (flags & HGJ_PROBE_MARK)
		CHECK_STATUS(engine->clear_marks(table, &err), HGJ_OK);
	compare_counts(probe, probe_rows, &want, flags, ref->unwanted);
	if (flags & HGJ_PROBE_MARK)
	{
		compare_marks(table, &want, total);
		CHECK_STATUS(engine->clear_marks(table, &err), HGJ_OK);
	}
	engine->probe_destroy(probe);
	pairs_free(&want);
}
