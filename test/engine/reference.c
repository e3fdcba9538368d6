/*-------------------------------------------------------------------------
 *
 * reference.c
 *	  What the answers should be: a sorted array of (key, id).
 *
 *-------------------------------------------------------------------------
 */
#include "test.h"

static uint32_t compare_words;	/* words that the comparison looks at */

static int
compare_entries(const void *a, const void *b)
{
	const uint64_t *x = a;
	const uint64_t *y = b;
	uint32_t	w;

	for (w = 0; w < compare_words; w++)
		if (x[w] != y[w])
			return x[w] < y[w] ? -1 : 1;
	return 0;
}

static int
compare_pairs(const void *a, const void *b)
{
	const Pair *x = a;
	const Pair *y = b;

	if (x->probe != y->probe)
		return x->probe < y->probe ? -1 : 1;
	if (x->build != y->build)
		return x->build < y->build ? -1 : 1;
	return 0;
}

/* Of a table with that spec. */
void
ref_init_spec(Reference *ref, const HgjTableSpec *spec)
{
	ref_init(ref, spec->nwords);
	if (!(spec->flags & HGJ_TABLE_TRACK_MATCHES))
		ref->unwanted = spec->flags & (HGJ_TABLE_KEYS_ONLY | HGJ_TABLE_FIRST_MATCH);
}

void
ref_init(Reference *ref, uint32_t nwords)
{
	memset(ref, 0, sizeof(*ref));
	ref->nwords = nwords;
}

void
ref_free(Reference *ref)
{
	free(ref->entries);
	ref->entries = NULL;
}

static uint64_t *
ref_entry(const Reference *ref, uint64_t i)
{
	return ref->entries + i * (ref->nwords + 1);
}

static void
ref_sort(Reference *ref)
{
	compare_words = ref->nwords + 1;
	if (ref->n > 0)
		qsort(ref->entries, ref->n, (ref->nwords + 1) * sizeof(uint64_t),
			  compare_entries);
}

/* Add the selected rows. */
void
ref_add(Reference *ref, const Rows *rows)
{
	uint32_t	cursor = 0;
	uint32_t	i;
	uint32_t	w;

	if (ref->n + rows->n > ref->capacity)
	{
		ref->capacity = (ref->n + rows->n) * 2;
		ref->entries = realloc(ref->entries, ref->capacity *
							   (ref->nwords + 1) * sizeof(uint64_t));
		if (ref->entries == NULL)
			exit(2);
	}
	while (rows_selected(rows, &cursor, &i))
	{
		uint64_t   *e = ref_entry(ref, ref->n++);

		for (w = 0; w < ref->nwords; w++)
			e[w] = rows->words[w][i];
		e[ref->nwords] = rows_id(rows, i);
	}
	ref_sort(ref);
}

/* The first entry whose key is not less than key (of compare_words words). */
static uint64_t
ref_lower(const Reference *ref, const uint64_t *key)
{
	uint64_t	lo = 0;
	uint64_t	hi = ref->n;

	while (lo < hi)
	{
		uint64_t	middle = (lo + hi) / 2;

		if (compare_entries(ref_entry(ref, middle), key) < 0)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

static void
load_key(const Rows *rows, uint32_t i, uint64_t *key)
{
	uint32_t	w;

	for (w = 0; w < rows->nwords; w++)
		key[w] = rows->words[w][i];
}

/* Remove (key, id), or every entry of the keys; returns how many. */
uint64_t
ref_remove(Reference *ref, const Rows *rows, bool by_id)
{
	uint64_t	key[HGJ_MAX_KEY_WORDS + 1];
	uint8_t    *dead = must_alloc(ref->n);
	uint64_t	kept = 0;
	uint64_t	removed;
	uint64_t	at;
	uint32_t	cursor = 0;
	uint32_t	i;

	memset(dead, 0, ref->n);
	compare_words = ref->nwords + (by_id ? 1 : 0);
	while (rows_selected(rows, &cursor, &i))
	{
		load_key(rows, i, key);
		key[ref->nwords] = rows_id(rows, i);
		at = ref_lower(ref, key);
		/* a key that was removed before has all of its entries dead */
		while (at < ref->n && !dead[at] &&
			   compare_entries(ref_entry(ref, at), key) == 0)
			dead[at++] = 1;
	}
	for (at = 0; at < ref->n; at++)
		if (!dead[at])
		{
			if (at != kept)
				memcpy(ref_entry(ref, kept), ref_entry(ref, at),
					   (ref->nwords + 1) * sizeof(uint64_t));
			kept++;
		}
	removed = ref->n - kept;
	ref->n = kept;
	free(dead);
	return removed;
}

/* Every pair that the join of the selected probe rows has, sorted. */
void
ref_pairs(Reference *ref, const Rows *probe, Pairs *pairs)
{
	uint64_t	key[HGJ_MAX_KEY_WORDS + 1];
	uint32_t	cursor = 0;
	uint32_t	i;

	memset(pairs, 0, sizeof(*pairs));
	compare_words = ref->nwords;
	while (rows_selected(probe, &cursor, &i))
	{
		uint64_t	at;

		load_key(probe, i, key);
		for (at = ref_lower(ref, key);
			 at < ref->n && compare_entries(ref_entry(ref, at), key) == 0; at++)
			pairs_add(pairs, i, (uint32_t) ref_entry(ref, at)[ref->nwords]);
	}
	pairs_sort(pairs);
}

void
pairs_add(Pairs *pairs, uint32_t probe, uint32_t build)
{
	if (pairs->n == pairs->capacity)
	{
		pairs->capacity = pairs->capacity * 2 + 256;
		pairs->pairs = realloc(pairs->pairs, pairs->capacity * sizeof(Pair));
		if (pairs->pairs == NULL)
			exit(2);
	}
	pairs->pairs[pairs->n].probe = probe;
	pairs->pairs[pairs->n++].build = build;
}

void
pairs_sort(Pairs *pairs)
{
	if (pairs->n > 0)
		qsort(pairs->pairs, pairs->n, sizeof(Pair), compare_pairs);
}

/* Leave of sorted pairs what is wanted of the matches: not the rows, nor how many. */
void
pairs_forget(Pairs *pairs, uint32_t unwanted)
{
	uint64_t	n = 0;
	uint64_t	i;

	if (!(unwanted & HGJ_TABLE_KEYS_ONLY))
		return;
	for (i = 0; i < pairs->n; i++)
	{
		if (unwanted & HGJ_TABLE_FIRST_MATCH && n > 0 &&
			pairs->pairs[n - 1].probe == pairs->pairs[i].probe)
			continue;
		pairs->pairs[n].probe = pairs->pairs[i].probe;
		pairs->pairs[n++].build = 0;
	}
	pairs->n = n;
}

void
pairs_free(Pairs *pairs)
{
	free(pairs->pairs);
	memset(pairs, 0, sizeof(*pairs));
}
