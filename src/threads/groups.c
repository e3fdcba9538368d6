/*-------------------------------------------------------------------------
 *
 * groups.c
 *	  Groups of a pipeline: each run has its own, and they are merged at the end.
 *
 * 1. Where the keys' values lie in ranges whose product is small, a group is found by
 *	  position; else in a hash table with open addressing, whose rows lie one behind the
 *	  other, and which grows as long as memory allows.
 * 2. The rows of a vector look for their groups together: hashes first, with a seed that nobody
 *	  knows, then slots, which have been prefetched.  Each state word is then added for all rows
 *	  (states.c).
 * 3. At the end the groups are split by their hashes, and the threads merge the parts, each of
 *	  all runs.  Groups by position are merged by ranges of places.
 * 4. Groups that HAVING is against are left out, and counted.
 *
 * Memory: groups are their run's, the merged ones the pipeline's; it is counted in the pipeline's
 * account.  Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "engine/having.h"
#include "threads/threads.h"

/* Bytes of groups by position of one run, at most: they stay in the L2 cache. */
#define MOST_PLACED_BYTES	(UINT64_C(1) << 19)

#define LEAST_GROUPS	(2 * (uint64_t) VECTOR_ROWS)
#define MOST_GROUPS		(UINT64_C(1) << 30)

/* Parts of a merge, per thread: they are of different sizes. */
#define PARTS_A_THREAD	4

/* ---- step 1: memory ---------------------------------------------------------- */

/* Can groups be found by position?  Sets the number of places. */
static bool
are_placed(const struct HgjPipeline *p, const HgjPipeRange *ranges, uint64_t *places)
{
	uint64_t	most = MOST_PLACED_BYTES / (p->plan.row_width * sizeof(uint64_t));

	*places = 1;
	for (uint32_t k = 0; k < p->plan.spec.nkeys; k++)
	{
		uint64_t	span = (uint64_t) ranges[k].high - (uint64_t) ranges[k].low;

		if (!ranges[k].bounded || ranges[k].low > ranges[k].high || span >= most)
			return false;
		*places *= span + 2;	/* the last one is NULL's */
		if (*places > most)
			return false;
	}
	return true;
}

/* ranges: of each key.  Groups are made by each run. */
void
hgj_run_groups_start(struct HgjPipeline *p, const HgjPipeRange *ranges)
{
	p->dense = are_placed(p, ranges, &p->places);
	if (p->plan.spec.nkeys > 0)
		memcpy(p->ranges, ranges, p->plan.spec.nkeys * sizeof(*ranges));
}

/* More bytes for some groups' memory, which are counted. */
static bool
count(struct HgjPipeline *p, Groups *g, uint64_t bytes)
{
	if (!hgj_threads_take(p, bytes))
		return false;
	g->bytes += bytes;
	return true;
}

static void
clear_states(const Plan *plan, uint64_t *row)
{
	for (uint32_t w = 0; w < plan->spec.nwords; w++)
		row[1 + plan->spec.nkeys + w] = hgj_state_identity(plan->spec.words[w].state);
}

/* Step 1: all places at once. */
static HgjStatus
open_places(Run *run)
{
	const Plan *plan = &run->p->plan;
	Groups	   *g = &run->groups;
	uint64_t	bytes = run->p->places * plan->row_width * sizeof(uint64_t);

	if (!count(run->p, g, bytes))
		return hgj_threads_fail(run, HGJ_LIMIT, "the pipeline does not fit its memory limit");
	g->rows = calloc(1, bytes);
	if (g->rows == NULL)
		return hgj_threads_fail(run, HGJ_OUT_OF_MEMORY, "out of memory");
	for (uint64_t i = 0; i < run->p->places; i++)
		clear_states(plan, g->rows + i * plan->row_width);
	g->n = run->p->places;
	return HGJ_OK;
}

/* A slot: the hash, and the group's number plus one. */
static inline uint64_t
slot_of(uint32_t hash, uint64_t number)
{
	return (uint64_t) hash << 32 | (number + 1);
}

static inline uint64_t
number_in(uint64_t slot)
{
	return (uint32_t) slot - UINT32_C(1);
}

/* Room for as many groups; those that are there keep their numbers. */
static HgjStatus
make_room(Run *run, Groups *g, uint64_t room)
{
	size_t		row_bytes = run->p->plan.row_width * sizeof(uint64_t);
	uint64_t	bytes = room * (row_bytes + sizeof(uint32_t) + 2 * sizeof(uint64_t));
	uint64_t   *rows;
	uint32_t   *hashes;
	uint64_t   *slots;

	if (room > MOST_GROUPS)
		return hgj_threads_fail(run, HGJ_LIMIT, "there are too many groups");
	if (!count(run->p, g, bytes - g->bytes))
		return hgj_threads_fail(run, HGJ_LIMIT, "the pipeline does not fit its memory limit");
	rows = realloc(g->rows, room * row_bytes);
	g->rows = rows != NULL ? rows : g->rows;
	hashes = realloc(g->hashes, room * sizeof(uint32_t));
	g->hashes = hashes != NULL ? hashes : g->hashes;
	slots = calloc(room * 2, sizeof(uint64_t));
	if (rows == NULL || hashes == NULL || slots == NULL)
	{
		free(slots);
		return hgj_threads_fail(run, HGJ_OUT_OF_MEMORY, "out of memory");
	}
	free(g->slots);
	g->slots = slots;
	g->nslots = room * 2;
	g->room = room;
	for (uint64_t i = 0; i < g->n; i++)
	{
		uint64_t	at = g->hashes[i];

		while (g->slots[at & (g->nslots - 1)] != 0)
			at++;
		g->slots[at & (g->nslots - 1)] = slot_of(g->hashes[i], i);
	}
	return HGJ_OK;
}

/* The next room: small ones grow fast, as all are put into slots again each time. */
static uint64_t
larger(uint64_t room)
{
	return room < UINT64_C(65536) ? room * 4 : room * 2;
}

/* Groups of a new run, or of one that has had no row. */
static HgjStatus
open_groups(Run *run)
{
	return run->groups.rows != NULL ? HGJ_OK :
		run->p->dense ? open_places(run) : make_room(run, &run->groups, LEAST_GROUPS);
}

/* ---- step 2: the groups of a vector's rows ---------------------------------------- */

/* Find groups by position; HGJ_LIMIT: a key is out of its range. */
static HgjStatus
find_places(Run *run, const Vector *v)
{
	const Plan *plan = &run->p->plan;
	uint32_t   *group_of = run->group_of;
	uint64_t	bad = 0;

	for (uint32_t k = 0; k < plan->spec.nkeys; k++)
	{
		const uint64_t *words = v->words[plan->spec.keys[k]];
		const uint8_t *nulls = v->nulls[plan->spec.keys[k]];
		const uint64_t low = (uint64_t) run->p->ranges[k].low;
		const uint64_t span = (uint64_t) run->p->ranges[k].high - low;
		const uint32_t places = (uint32_t) span + 2;

		if (has_nulls(v, plan->spec.keys[k]))
			EACH_ALIVE(v,
					   const uint64_t at = nulls[i] ? span + 1 : words[i] - low;
					   bad |= !nulls[i] & (at > span);
					   group_of[i] = (k == 0 ? 0 : group_of[i] * places) + (uint32_t) at);
		else if (k == 0)
			EACH_ALIVE(v,
					   const uint64_t at = words[i] - low;
					   bad |= at > span;
					   group_of[i] = (uint32_t) at);
		else
			EACH_ALIVE(v,
					   const uint64_t at = words[i] - low;
					   bad |= at > span;
					   group_of[i] = group_of[i] * places + (uint32_t) at);
	}
	if (bad != 0)
		return hgj_threads_fail(run, HGJ_LIMIT, "a group key is out of its range");
	return HGJ_OK;
}

/* Step 2: hashes of all keys, and bits of those that are NULL. */
static void
hash_keys(Run *run, const Vector *v)
{
	const HgjPipelineSpec *spec = &run->p->plan.spec;
	const HgjHash hash = run->p->hash;
	const Groups *g = &run->groups;
	uint32_t   *hash_of = run->hash_of;
	uint64_t   *key_nulls = run->key_nulls;
	uint64_t	hashes[VECTOR_ROWS];

	EACH_ALIVE(v, hashes[i] = hash.start; key_nulls[i] = 0);
	for (uint32_t k = 0; k < spec->nkeys; k++)
	{
		const uint64_t *words = v->words[spec->keys[k]];
		const uint8_t *nulls = v->nulls[spec->keys[k]];

		if (has_nulls(v, spec->keys[k]))
			EACH_ALIVE(v,
					   key_nulls[i] |= (uint64_t) (nulls[i] != 0) << k;
					   hashes[i] = hgj_hash_word(&hash, hashes[i], nulls[i] ? 0 : words[i]));
		else
			EACH_ALIVE(v, hashes[i] = hgj_hash_word(&hash, hashes[i], words[i]));
	}
	EACH_ALIVE(v,
			   hash_of[i] = (uint32_t) hgj_hash_finish(&hash, hashes[i]);
			   __builtin_prefetch(&g->slots[hash_of[i] & (g->nslots - 1)]));
}

/* Is the group in that row the one of row i of the vector? */
static inline bool
is_group(const Run *run, const Vector *v, const uint64_t *row, uint32_t i)
{
	const HgjPipelineSpec *spec = &run->p->plan.spec;

	if (row[0] != run->key_nulls[i])
		return false;
	for (uint32_t k = 0; k < spec->nkeys; k++)
		if (row[1 + k] != v->words[spec->keys[k]][i] && !(row[0] >> k & 1))
			return false;
	return true;
}

/* The number of a group that is new. */
static void
new_group(Run *run, const Vector *v, uint32_t i, uint64_t *slot)
{
	const Plan *plan = &run->p->plan;
	Groups	   *g = &run->groups;
	uint64_t   *row = g->rows + g->n * plan->row_width;

	row[0] = run->key_nulls[i];
	for (uint32_t k = 0; k < plan->spec.nkeys; k++)
		row[1 + k] = row[0] >> k & 1 ? 0 : v->words[plan->spec.keys[k]][i];
	clear_states(plan, row);
	g->hashes[g->n] = run->hash_of[i];
	*slot = slot_of(run->hash_of[i], g->n++);
}

static HgjStatus
find_groups(Run *run, const Vector *v)
{
	const uint32_t width = run->p->plan.row_width;
	Groups	   *g = &run->groups;
	uint64_t	mask;

	/* so that no row of the vector has to make room */
	if (g->n + VECTOR_ROWS > g->room && make_room(run, g, larger(g->room)) != HGJ_OK)
		return run->status;
	mask = g->nslots - 1;
	hash_keys(run, v);
	/* the first slot with the hash is most often the group's, whose row is fetched ahead */
	EACH_ALIVE(v,
			   uint64_t at = run->hash_of[i];
			   while (g->slots[at & mask] != 0 && g->slots[at & mask] >> 32 != run->hash_of[i])
				   at++;
			   run->group_of[i] = (uint32_t) (at & mask);
			   if (g->slots[at & mask] != 0)
				   __builtin_prefetch(g->rows + number_in(g->slots[at & mask]) * width));
	EACH_ALIVE(v,
			   for (uint64_t at = run->group_of[i];; at++)
			   {
				   uint64_t   *slot = &g->slots[at & mask];

				   if (*slot == 0)
					   new_group(run, v, i, slot);
				   else if (*slot >> 32 != run->hash_of[i] ||
							!is_group(run, v, g->rows + number_in(*slot) * width, i))
					   continue;
				   run->group_of[i] = (uint32_t) number_in(*slot);
				   break;
			   });
	return HGJ_OK;
}

/* END: rows that are alive, into their groups. */
HgjStatus
hgj_run_groups_add(Run *run, Vector *v)
{
	const Plan *plan = &run->p->plan;
	bool		one = plan->spec.nkeys == 0;
	bool		few;
	HgjStatus	status = open_groups(run);

	if (status == HGJ_OK && !one)
		status = run->p->dense ? find_places(run, v) : find_groups(run, v);
	if (status != HGJ_OK)
		return status;
	if (one)
		memset(run->group_of, 0, v->n * sizeof(uint32_t));
	few = !one && v->nsel * 4 >= v->n &&
		hgj_few_begin(&run->few, v, run->group_of, run->groups.n);
	for (uint32_t w = 0; w < plan->spec.nwords; w++)
	{
		const HgjPipeWord *word = &plan->spec.words[w];
		uint64_t   *states = run->groups.rows + 1 + plan->spec.nkeys + w;

		if (few && hgj_few_add(&run->few, v, plan, w, states))
			continue;
		if (!hgj_state_add(v, word, states, plan->row_width, run->group_of, one))
			return hgj_threads_fail(run, HGJ_ROW_FAILED, "a value is for the host");
	}
	return HGJ_OK;
}

/* ---- step 3: one of all runs --------------------------------------------------------- */

typedef struct Merge
{
	struct HgjPipeline *p;
	uint32_t	nparts;
	Run		  **parts;			/* groups of each part */
	Run		   *first;			/* groups by position: those that others are added to */
} Merge;

/* Add the states of a group's row to those of another one. */
static void
merge_row(const Plan *plan, uint64_t *to, const uint64_t *from)
{
	for (uint32_t w = 0; w < plan->spec.nwords; w++)
		hgj_state_merge(plan->spec.words[w].state, &to[1 + plan->spec.nkeys + w],
						from[1 + plan->spec.nkeys + w]);
}

/* A range of places. */
static void
merge_places(void *arg, uint32_t thread, uint64_t number)
{
	Merge	   *m = arg;
	const Plan *plan = &m->p->plan;
	uint64_t	from = m->p->places * number / m->nparts;
	uint64_t	to = m->p->places * (number + 1) / m->nparts;

	(void) thread;
	for (uint32_t r = 0; r < m->p->nruns; r++)
	{
		Run		   *run = m->p->runs[r];

		if (run == NULL || run == m->first || run->groups.rows == NULL)
			continue;
		for (uint64_t i = from; i < to; i++)
			merge_row(plan, m->first->groups.rows + i * plan->row_width,
					  run->groups.rows + i * plan->row_width);
	}
}

/* The part of a hash: by bits that do not choose a slot of a small table. */
static inline uint32_t
part_of(uint32_t hash, uint32_t nparts)
{
	return (uint32_t) (((uint64_t) (hash * UINT32_C(0x85EBCA6B)) * nparts) >> 32);
}

/* The row of a part's group, which is made if it is new; NULL: there is no memory for it. */
static uint64_t *
find_merged(Run *part, const uint64_t *row, uint32_t hash)
{
	const Plan *plan = &part->p->plan;
	Groups	   *g = &part->groups;
	size_t		key_bytes = (1 + plan->spec.nkeys) * sizeof(uint64_t);
	uint64_t   *merged;

	if (g->n == g->room && make_room(part, g, g->room == 0 ? LEAST_GROUPS : larger(g->room)) != HGJ_OK)
		return NULL;
	for (uint64_t at = hash;; at++)
	{
		uint64_t   *slot = &g->slots[at & (g->nslots - 1)];

		if (*slot == 0)
		{
			merged = g->rows + g->n * plan->row_width;
			memcpy(merged, row, key_bytes);
			clear_states(plan, merged);
			g->hashes[g->n] = hash;
			*slot = slot_of(hash, g->n++);
			return merged;
		}
		merged = g->rows + number_in(*slot) * plan->row_width;
		if (*slot >> 32 == hash && memcmp(merged, row, key_bytes) == 0)
			return merged;
	}
}

/* A part of all runs' groups. */
static void
merge_part(void *arg, uint32_t thread, uint64_t number)
{
	Merge	   *m = arg;
	const Plan *plan = &m->p->plan;
	Run		   *part = m->parts[number];

	(void) thread;
	for (uint32_t r = 0; r < m->p->nruns; r++)
	{
		const Groups *g = m->p->runs[r] == NULL ? NULL : &m->p->runs[r]->groups;

		for (uint64_t i = 0; g != NULL && i < g->n; i++)
		{
			const uint64_t *row = g->rows + i * plan->row_width;
			uint64_t   *merged;

			if (part_of(g->hashes[i], m->nparts) != number)
				continue;
			merged = find_merged(part, row, g->hashes[i]);
			if (merged == NULL)
				return;
			merge_row(plan, merged, row);
		}
	}
}

/* ---- step 4: rows as they are returned ------------------------------------------------ */

/* A group's row, as it is returned, unless it is left out. */
static void
put_row(struct HgjPipeline *p, const uint64_t *row, const uint64_t *key)
{
	const Plan *plan = &p->plan;
	uint32_t	nkeys = plan->spec.nkeys;
	uint64_t   *to = p->group_rows + p->ngroups * plan->row_width;

	memcpy(to, key, (1 + nkeys) * sizeof(uint64_t));
	for (uint32_t w = 0; w < plan->spec.nwords; w++)
		to[1 + nkeys + w] = hgj_state_result(plan->spec.words[w].state, row[1 + nkeys + w]);
	if (hgj_having_leaves_out(plan->having, plan->nhaving, to + 1 + nkeys))
		p->info.left_out++;
	else
		p->ngroups++;
}

/* The keys of a place, as a group's row has them. */
static void
key_of_place(const struct HgjPipeline *p, uint64_t place, uint64_t *key)
{
	key[0] = 0;
	for (uint32_t k = p->plan.spec.nkeys; k-- > 0;)
	{
		uint64_t	span = (uint64_t) p->ranges[k].high - (uint64_t) p->ranges[k].low;
		uint64_t	at = place % (span + 2);

		place /= span + 2;
		if (at > span)
			key[0] |= UINT64_C(1) << k;
		key[1 + k] = at > span ? 0 : (uint64_t) p->ranges[k].low + at;
	}
}

/* Room for n rows. */
static HgjStatus
open_rows(struct HgjPipeline *p, uint64_t n, HgjError *err)
{
	uint64_t	bytes = (n + 1) * p->plan.row_width * sizeof(uint64_t);

	if (!hgj_threads_take(p, bytes))
		return hgj_fail(err, HGJ_LIMIT, "the pipeline does not fit its memory limit");
	p->group_rows = malloc(bytes);
	return p->group_rows == NULL ? hgj_fail(err, HGJ_OUT_OF_MEMORY, "out of memory") : HGJ_OK;
}

/* Step 3, by position: places whose word 0 counts no row are no groups, but without keys. */
static HgjStatus
finish_places(struct HgjPipeline *p, Run *first, HgjError *err)
{
	const Plan *plan = &p->plan;
	uint64_t	key[1 + HGJ_PIPE_KEYS];
	uint64_t	n = 0;
	HgjStatus	status;

	for (uint64_t i = 0; i < p->places; i++)
		n += plan->spec.nkeys == 0 ||
			first->groups.rows[i * plan->row_width + 1 + plan->spec.nkeys] != 0;
	status = open_rows(p, n, err);
	for (uint64_t i = 0; i < p->places && status == HGJ_OK; i++)
	{
		const uint64_t *row = first->groups.rows + i * plan->row_width;

		if (plan->spec.nkeys > 0 && row[1 + plan->spec.nkeys] == 0)
			continue;
		key_of_place(p, i, key);
		put_row(p, row, key);
	}
	return status;
}

/* Step 3, hashed. */
static HgjStatus
finish_parts(Merge *m, HgjError *err)
{
	struct HgjPipeline *p = m->p;
	uint64_t	n = 0;
	HgjStatus	status = HGJ_OK;

	for (uint32_t i = 0; i < m->nparts && status == HGJ_OK; i++)
	{
		status = m->parts[i]->status;
		if (status != HGJ_OK)
			*err = m->parts[i]->error;
		n += m->parts[i]->groups.n;
	}
	if (status == HGJ_OK)
		status = open_rows(p, n, err);
	for (uint32_t i = 0; i < m->nparts && status == HGJ_OK; i++)
		for (uint64_t r = 0; r < m->parts[i]->groups.n; r++)
		{
			const uint64_t *row = m->parts[i]->groups.rows + r * p->plan.row_width;

			put_row(p, row, row);
		}
	return status;
}

/* Make the merge's parts, which have neither vectors nor probes; false: there is no memory. */
static bool
open_parts(Merge *m)
{
	m->parts = calloc(m->nparts, sizeof(Run *));
	for (uint32_t i = 0; m->parts != NULL && i < m->nparts; i++)
	{
		m->parts[i] = calloc(1, sizeof(Run));
		if (m->parts[i] == NULL)
			return false;
		m->parts[i]->p = m->p;
	}
	return m->parts != NULL;
}

static void
close_parts(Merge *m)
{
	for (uint32_t i = 0; m->parts != NULL && i < m->nparts; i++)
		hgj_run_free(m->parts[i]);
	free(m->parts);
}

/* False: the caller wants no more, if that is asked. */
static bool
merge_all(Merge *m, void (*morsel) (void *arg, uint32_t thread, uint64_t number), bool polls)
{
	PoolJob		job = {.morsel = morsel,.arg = m,.nmorsels = m->nparts};

	return hgj_pool_run(&job, polls ? m->p->poll : NULL, m->p->poll_arg);
}

/* Merge the groups of all runs, and put down the rows that are returned. */
HgjStatus
hgj_run_groups_finish(struct HgjPipeline *p, HgjError *err)
{
	Merge		m = {.p = p};
	uint64_t	n = 0;
	uint32_t	nruns = 0;
	HgjStatus	status;

	for (uint32_t r = 0; r < p->nruns; r++)
	{
		if (p->runs[r] == NULL || p->runs[r]->groups.rows == NULL)
			continue;
		m.first = m.first == NULL ? p->runs[r] : m.first;
		n += p->runs[r]->groups.n;
		nruns++;
	}
	if (m.first == NULL)
	{
		/* no row has come */
		if (p->runs[0] == NULL)
			p->runs[0] = hgj_run_make(p, err);
		m.first = p->runs[0];
		if (m.first == NULL)
			return err->status;
		if (open_groups(m.first) != HGJ_OK)
		{
			*err = m.first->error;
			return err->status;
		}
		nruns = 1;
	}
	if (p->dense)
	{
		m.nparts = n < LEAST_GROUPS ? 1 : hgj_pool_runs();
		if (nruns > 1)
			(void) merge_all(&m, merge_places, false);
		return finish_places(p, m.first, err);
	}
	if (nruns == 1)
	{
		/* they are the whole */
		m.nparts = 1;
		m.parts = &m.first;
		return finish_parts(&m, err);
	}
	m.nparts = n < LEAST_GROUPS * PARTS_A_THREAD ? 1 : hgj_pool_runs() * PARTS_A_THREAD;
	/* the runs' groups stay as they are, so that a merge that was cancelled is done anew */
	if (!open_parts(&m))
		status = hgj_fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	else if (!merge_all(&m, merge_part, true))
		status = hgj_fail(err, HGJ_CANCELLED, "cancelled");
	else
		status = finish_parts(&m, err);
	close_parts(&m);
	return status;
}
