/*-------------------------------------------------------------------------
 *
 * cpu_quotient.c
 *	  Large graphs of which only the keys are wanted, where they lie too far apart for a
 *	  bit each (cpu_bits.c): entries of two bytes.
 *
 * A graph of ten million keys and rows is much larger than any cache, and a probe waits
 * for two lines of memory: that of its vertex's offset, and that of the entries.  Where
 * nobody wants the rows, an entry need not say more of a key than the vertex does not
 * (Cleary 1984: a key's quotient and remainder).  So ten million keys of 32 bits take 22
 * MB instead of 147, most of which a last-level cache holds.
 *
 * 1. The code of a key is not a hash, but key - min, permuted (cpu_quotient.h), of as
 *	  many bits as the range has.  Its high bits are the vertex, the 16 or fewer that
 *	  are left the entry: equal vertex and equal entry is an equal key.
 * 2. It is taken for keys of one word whose range has no more than 32 bits, where lists
 *	  have an entry or more on average (they have up to 24: an instruction compares 32),
 *	  and the graph would not stay in the cache otherwise.
 * 3. The build is V2 (cpu_bin.c): the binned entries are repacked, for one process and
 *	  for several.
 * 4. A probe takes 256 rows: their codes; where their lists are; how many entries of each
 *	  are equal; with all lines of a step under way at the same time.  So many matches
 *	  are returned, with 0 for the build row.  Where the arrays are full, it goes on
 *	  in that row's list after as many matches as it has returned of it.
 *
 * Equal keys are as many equal entries.
 *
 * Offsets and entries belong to the graph.  Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "cpu_probe.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define HGJ_HAS_VECTORS
#endif

/* Bits of an entry. */
#define ENTRY_BITS		16

/* Entries that an instruction compares. */
#define LANES			32

/* Entries of a list on average, at most: few lists have more than LANES. */
#define MOST_PER_LIST	24

/* Rows of a probe that are looked up together. */
#define ROWS			256

/* Steps 1 and 2: the plan so far is of a hashed graph of one word that is binned. */
void
hgj_cpu_plan_quotient(const HgjTable *table, Plan *plan)
{
	const HgjTableSpec *spec = &table->spec;
	uint32_t	bits = hgj_log2_ceil(plan->range + 1);
	uint32_t	vertex_bits = hgj_log2_ceil(plan->rows / MOST_PER_LIST + 1);

	if (spec->probe == HGJ_PROBE_BINNED || spec->load != 0 ||
		plan->layout != LAYOUT_NARROW || bits < 2)
		return;
	if (vertex_bits + ENTRY_BITS < bits)
		vertex_bits = bits - ENTRY_BITS;
	if (vertex_bits >= bits || plan->rows >> vertex_bits == 0)
		return;
	plan->quotient = true;
	plan->mix = mix_make(&table->hash, bits);
	plan->vertices = UINT64_C(1) << vertex_bits;
	plan->shift = bits - vertex_bits;
	plan->stride = sizeof(uint16_t);
}

/* The codes of keys, as what they are binned by. */
void
hgj_cpu_quotient_codes(const Plan *plan, const uint64_t *keys, uint32_t n, uint64_t *codes)
{
	const Mix	mix = plan->mix;
	uint64_t	base = plan->base;
	uint32_t	i;

	for (i = 0; i < n; i++)
		codes[i] = mix_number(&mix, (uint32_t) (keys[i] - base));
}

/* Rows of a probe that are in the keys' range. */
typedef struct Staged
{
	uint32_t	n;
	uint32_t	index[ROWS];	/* which of the rows */
	uint32_t	rest[ROWS];		/* their code, and then what an entry has of it */
	uint32_t	from[ROWS];		/* their list */
	uint32_t	to[ROWS];
	uint32_t	counts[ROWS];	/* equal entries; of first matches, 1 */
} Staged;

/* Step 4: the lists of the next n rows. */
static void
stage(const HgjProbe *probe, uint32_t n, Staged *s)
{
	const Graph *g = &probe->table->graph;
	const uint16_t *entries = (const uint16_t *) (const void *) g->entries;
	const uint64_t *column = probe->keys.words[0];
	const uint32_t *sel = probe->keys.sel != NULL ? probe->keys.sel + probe->next : NULL;
	const Mix	mix = g->mix;
	uint32_t	mask = (UINT32_C(1) << g->shift) - 1;
	uint32_t	kept = 0;
	uint32_t	i;

	for (i = 0; i < n; i++)
	{
		uint64_t	offset = column[sel != NULL ? sel[i] : probe->next + i] - g->base;

		s->index[kept] = i;
		s->rest[kept] = (uint32_t) offset;
		kept += offset <= g->range;
	}
	for (i = 0; i < kept; i++)
	{
		s->rest[i] = mix_number(&mix, s->rest[i]);
		HGJ_PREFETCH(g->offsets + (s->rest[i] >> g->shift));
	}
	for (i = 0; i < kept; i++)
	{
		const uint32_t *offset = g->offsets + (s->rest[i] >> g->shift);

		s->from[i] = offset[0];
		s->to[i] = offset[1];
		s->rest[i] &= mask;
		HGJ_PREFETCH(entries + s->from[i]);
		/* an instruction reads what lies behind a short list, too, and waits for it */
		HGJ_PREFETCH(entries + s->from[i] + LANES - 1);
	}
	s->n = kept;
}

/* Equal entries in the lists of rows i .. to; one is enough where only first are wanted. */
static void
count_one_by_one(const uint16_t *entries, Staged *s, uint32_t i, uint32_t to, bool first)
{
	for (; i < to; i++)
	{
		uint32_t	found = 0;
		uint32_t	slot;

		for (slot = s->from[i]; slot < s->to[i] && !(first && found > 0); slot++)
			found += entries[slot] == s->rest[i];
		s->counts[i] = found;
	}
}

#ifdef HGJ_HAS_VECTORS

/* The same, LANES entries at a time. */
__attribute__((target("avx512f,avx512bw,popcnt")))
static void
count_vectors(const uint16_t *entries, Staged *s, uint32_t i, uint32_t to, bool first)
{
	for (; i < to; i++)
	{
		const __m512i rest = _mm512_set1_epi16((short) s->rest[i]);
		uint32_t	slot = s->from[i];
		uint32_t	left = s->to[i] - slot;
		uint32_t	found = 0;

		for (;;)
		{
			__mmask32	some = left >= LANES ? UINT32_MAX : (UINT32_C(1) << left) - 1;
			__m512i		list = _mm512_maskz_loadu_epi16(some, entries + slot);

			found += (uint32_t) __builtin_popcount(_mm512_mask_cmpeq_epi16_mask(some, list, rest));
			if (left <= LANES || (first && found > 0))
				break;
			slot += LANES;
			left -= LANES;
		}
		s->counts[i] = first ? found > 0 : found;
	}
}

#endif

static void
count_rows(const uint16_t *entries, Staged *s, uint32_t i, uint32_t to, bool first)
{
#ifdef HGJ_HAS_VECTORS
#ifdef HGJ_MEM_TEST
	bool		other = (s->from[i] & 64) != 0; /* the way of other processors is tested, too */
#else
	bool		other = false;
#endif

	if (hgj_cpu_has_vectors() && !other)
	{
		count_vectors(entries, s, i, to, first);
		return;
	}
#endif
	count_one_by_one(entries, s, i, to, first);
}

/* Step 4: counts of all staged rows, asking whether to go on wherever lists are long. */
static HgjStatus
count_staged(HgjProbe *probe, Staged *s, HgjError *err)
{
	const uint16_t *entries = (const uint16_t *) (const void *) probe->table->graph.entries;
	bool		first = probe->mode == HGJ_MATCH_FIRST;
	uint32_t	i = 0;

	while (i < s->n)
	{
		uint32_t	to = i;

		while (to < s->n && probe->steps <= HGJ_POLL_STEPS)
		{
			probe->steps += 4 + (s->to[to] - s->from[to]) / 8;
			to++;
		}
		count_rows(entries, s, i, to, first);
		i = to;
		if (probe->steps > HGJ_POLL_STEPS)
		{
			probe->steps = 0;
			if (hgj_poll(&probe->table->spec, err) != HGJ_OK)
				return HGJ_CANCELLED;
		}
	}
	return HGJ_OK;
}

/* The matches of staged row i that there is room for; false: there are more. */
static bool
emit_row(HgjProbe *probe, const Staged *s, uint32_t i, uint32_t row, HgjMatches *matches)
{
	uint32_t	left = s->counts[i] - probe->returned;
	uint32_t	room = matches->capacity - matches->n;
	uint32_t	n = left < room ? left : room;
	uint32_t	k;

	for (k = 0; k < n; k++)
		matches->probe_rows[matches->n++] = row;
	probe->returned = n < left ? probe->returned + n : 0;
	return n == left;
}

/*
 * Step 4: the matches of the next n rows, as far as there is room: false where there is
 * not, and probe->next, probe->returned say from where it goes on.
 */
static bool
emit(HgjProbe *probe, const Staged *s, uint32_t n, HgjMatches *matches)
{
	const uint32_t *sel = probe->keys.sel;
	uint32_t	first = probe->next;
	uint32_t	from = matches->n;
	uint32_t	hits = 0;
	bool		room = true;
	uint32_t	i;

	for (i = 0; i < s->n; i++)
	{
		uint32_t	at = first + s->index[i];
		uint32_t	row = sel != NULL ? sel[at] : at;

		if (probe->mode == HGJ_MATCH_COUNT)
			matches->counts[row] = s->counts[i];
		else if (HGJ_LIKELY(s->counts[i] <= 1 && matches->n < matches->capacity))
		{
			/* whether it matches cannot be guessed */
			matches->probe_rows[matches->n] = row;
			matches->n += s->counts[i];
		}
		else if (!emit_row(probe, s, i, row, matches))
		{
			probe->next = at;
			room = false;
			break;
		}
		hits += s->counts[i] > 0;
	}
	if (probe->mode != HGJ_MATCH_COUNT)
		memset(matches->build_rows + from, 0, (matches->n - from) * sizeof(uint32_t));
	if (room)
		probe->next = first + n;
	if (!probe->filtering)
	{
		probe->window_rows += i;
		probe->window_hits += hits;
		probe->window_out += room ? n - s->n : 0;
	}
	return room;
}

/* Step 4 until the batch ends, or the arrays are full. */
HgjStatus
hgj_cpu_probe_quotients(HgjProbe *probe, HgjMatches *matches, HgjError *err)
{
	Staged		s;

	while (probe->next < probe->total)
	{
		uint32_t	n = probe->total - probe->next;
		HgjStatus	status;

		n = n > ROWS ? ROWS : n;
		stage(probe, n, &s);
		status = count_staged(probe, &s, err);
		if (status != HGJ_OK)
			return status;
		if (!emit(probe, &s, n, matches))
			break;
	}
	return HGJ_OK;
}
