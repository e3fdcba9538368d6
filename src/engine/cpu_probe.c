/*-------------------------------------------------------------------------
 *
 * cpu_probe.c
 *	  Looking probe rows up in a graph (Green 2019's standard probe; Groschaft
 *	  2022, algorithm 3, and 11 for dynamic tables).
 *
 * Steps 1 to 4 are cpu_probe_stage.c's.
 *
 * 1. Take a group of 64 probe rows, in the batch's order or, when the batch
 *	  was binned (cpu_probe_binned.c), in that of the bins.
 * 2. Compute their codes; keys outside the table's range drop out.  Prefetch
 *	  where their vertices' slots are written down.
 * 3. Load that, drop the vertices without entries, prefetch the entries.
 * 4. Before walking, do steps 1 and 2 for the next group.
 * 5. Walk the lists and compare.  By now the whole group's cache misses have
 *	  been under way at the same time, instead of one after another.
 *
 * A walk stops where the caller's arrays are full, and goes on at that slot
 * in the next call.  When poll cancels a call, the probe goes back to where
 * the call began.
 *
 * In a dynamic table an entry may lie in a vertex after its own; a walk goes
 * on to the next vertex until it meets a slot that was never used.
 *
 * The loops are written once and compiled for every layout of entries and
 * every storage of lists, as inline functions with constant arguments.
 *
 * A probe belongs to the caller from create to destroy.  Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "cpu_probe.h"

typedef enum Walk
{
	WALK_END,					/* of the group */
	WALK_FULL,					/* the caller's arrays are */
	WALK_CANCELLED
} Walk;

/* Where matches go, in registers. */
typedef struct Out
{
	uint32_t   *probe_rows;
	uint32_t   *build_rows;
	uint32_t   *counts;
	const uint8_t *skip;
	uint32_t	n;
	uint32_t	capacity;
	uint32_t	hits;			/* rows with a match, walked to their end */
} Out;

/* HgjEngine.probe_create: a cursor over a built table. */
HgjStatus
hgj_cpu_probe_create(HgjTable *table, HgjProbe **probe, HgjError *err)
{
	void	   *p;
	HgjStatus	status;

	*probe = NULL;
	if (!table->built)
		return hgj_fail(err, HGJ_INVALID, "probe before build");
	status = hgj_cpu_get(table, sizeof(HgjProbe), &p, err);
	if (status != HGJ_OK)
		return status;
	memset(p, 0, sizeof(HgjProbe));
	*probe = p;
	(*probe)->table = table;
	return HGJ_OK;
}

/* HgjEngine.probe_destroy; before the table's. */
void
hgj_cpu_probe_destroy(HgjProbe *probe)
{
	if (probe == NULL)
		return;
	hgj_cpu_probe_free_bins(probe);
	hgj_cpu_probe_free_filter(probe);
	hgj_cpu_put(probe->table, probe, sizeof(HgjProbe));
}

/*
 * HgjEngine.probe_begin: start on a batch; its arrays are borrowed until
 * probe_next says done, or the next probe_begin.
 */
HgjStatus
hgj_cpu_probe_begin(HgjProbe *probe, const HgjKeys *keys, HgjProbeMode mode,
					uint32_t flags, HgjError *err)
{
	HgjTable   *t = probe->table;
	HgjStatus	status = hgj_cpu_check_keys(t, keys, err);

	probe->begun = false;
	if (status != HGJ_OK)
		return status;
	if ((unsigned int) mode > HGJ_MATCH_COUNT)
		return hgj_fail(err, HGJ_INVALID, "no such probe mode");
	if ((flags & HGJ_PROBE_MARK) && t->bits == NULL)
		return hgj_fail(err, HGJ_INVALID, "the table keeps no match bits");
	probe->keys = *keys;
	probe->mode = mode;
	probe->flags = flags;
	probe->total = hgj_key_count(keys);
	probe->group_first = 0;
	probe->next = 0;
	probe->returned = 0;
	probe->ahead.next = 0;
	probe->staged = false;
	probe->done = false;
	probe->binned = false;
	probe->steps = 0;
	if (t->graph.rows == 0)
		probe->total = 0;		/* nothing to be found */
	if (probe->total > 0)
		status = hgj_cpu_probe_filter(probe, err);
	if (status == HGJ_OK && probe->total > 0 &&
		(t->probe_binned || probe->total >= t->binned_rows))
		status = hgj_cpu_probe_bin(probe, err);
	probe->begun = status == HGJ_OK;
	return status;
}

/* Whether the entry in a slot has the key of row i of the group. */
HGJ_INLINE bool
slot_equal(const HgjProbe *probe, const Graph *graph, Layout layout,
		   uint32_t nwords, uint64_t slot, uint32_t i)
{
	const uint8_t *entries = graph->entries;
	const Group *g = &probe->group;

	if (layout == LAYOUT_ROW)
		return true;
	if (layout == LAYOUT_NARROW)
		return ((const NarrowEntry *) (const void *) entries)[slot].key ==
			(uint32_t) g->key[i];
	if (layout == LAYOUT_WIDE)
		return ((const WideEntry *) (const void *) entries)[slot].key ==
			g->key[i];
	else
	{
		const MultiEntry *e = (const MultiEntry *) (const void *)
			(entries + slot * layout_stride(layout, nwords));
		uint32_t	row = g->row[i];
		uint32_t	w;

		if (nwords == 2)
			return (e->words[0] == probe->keys.words[0][row]) &
				(e->words[1] == probe->keys.words[1][row]);
		if (nwords == 3)
			return (e->words[0] == probe->keys.words[0][row]) &
				(e->words[1] == probe->keys.words[1][row]) &
				(e->words[2] == probe->keys.words[2][row]);
		if (e->tag != (uint32_t) g->code[i])
			return false;
		for (w = 0; w < nwords; w++)
			if (e->words[w] != probe->keys.words[w][row])
				return false;
		return true;
	}
}

/*
 * Dynamic tables: no slot of the list was ever free, so that entries may lie in the
 * next one.  False if it has been all around.
 */
HGJ_INLINE bool
next_list(HgjProbe *probe, HgjSegments segments, uint64_t code, uint64_t *slot,
		  uint64_t *to)
{
	const Graph *graph = &probe->table->graph;

	probe->vertex = probe->vertex + 1 < graph->vertices ? probe->vertex + 1 : 0;
	if (probe->vertex == code >> graph->shift)
		return false;
	vertex_slots(graph, segments, probe->vertex, slot, to);
	return true;
}

/* The arrays are full: the group goes on with this row's slot. */
static Walk
leave_full(Group *g, uint32_t i, uint64_t slot, uint64_t to, Out *out,
		   uint32_t n, uint32_t hits)
{
	g->at = i;
	g->from[i] = slot;
	g->to[i] = to;
	out->n = n;
	out->hits += hits;
	return WALK_FULL;
}

/*
 * Step 5 for the rest of the group, in any mode, stopping wherever the arrays
 * are full or poll says so.
 */
HGJ_INLINE Walk
walk(HgjProbe *probe, Layout layout, HgjSegments segments, bool dynamic,
	 Out *out)
{
	const Graph *graph = &probe->table->graph;
	Group	   *g = &probe->group;
	HgjProbeMode mode = probe->mode;
	uint32_t	nwords = probe->table->spec.nwords;
	bool		mark = (probe->flags & HGJ_PROBE_MARK) != 0 &&
		mode == HGJ_MATCH_COUNT;
	uint32_t	n = out->n;
	uint32_t	hits = 0;
	uint32_t	i;

	for (i = g->at; i < g->n; i++)
	{
		uint64_t	slot = g->from[i];
		uint64_t	to = g->to[i];
		uint32_t	first = n;
		uint32_t	matches = 0;

		if (out->skip != NULL && out->skip[g->row[i]])
		{
			hits++;				/* the caller skips rows that have matched */
			goto next_row;
		}
		for (;;)
		{
			uint64_t	stop = to - slot > HGJ_POLL_STEPS ?
				slot + HGJ_POLL_STEPS : to;

			probe->steps += stop - slot + 1;
			for (; slot < stop; slot++)
			{
				uint32_t	row = slot_row(graph->entries, layout,
										   graph->stride, slot);

				if ((dynamic || segments != HGJ_SEGMENTS_CSR) &&
					row == HGJ_ROW_EMPTY)
					goto next_row;
				if (!slot_equal(probe, graph, layout, nwords, slot, i) ||
					(dynamic && row == HGJ_ROW_DELETED))
					continue;
				if (mode == HGJ_MATCH_COUNT)
				{
					matches++;
					if (mark)
						mark_row(probe->table, row);
					continue;
				}
				if (n == out->capacity)
					return leave_full(g, i, slot, to, out, n, hits);
				out->probe_rows[n] = g->row[i];
				out->build_rows[n++] = row;
				if (mode == HGJ_MATCH_FIRST)
					goto next_row;
			}
			if (probe->steps > HGJ_POLL_STEPS)
			{
				probe->steps = 0;
				if (hgj_poll(&probe->table->spec, NULL) != HGJ_OK)
					return WALK_CANCELLED;
			}
			if (slot < to)
				continue;
			if (!dynamic || !next_list(probe, segments, g->code[i], &slot, &to))
				break;
		}
next_row:
		if (mode == HGJ_MATCH_COUNT)
			out->counts[g->row[i]] = matches;
		hits += (n > first) | (matches > 0);
		if (dynamic && i + 1 < g->n)
			probe->vertex = g->code[i + 1] >> graph->shift;
	}
	g->at = i;
	out->n = n;
	out->hits += hits;
	return WALK_END;
}

/*
 * Step 5 for a whole group of a static CSR table with one to three key words, when
 * the arrays have room for whatever may come.  Lists are short, and how long each
 * one is cannot be predicted: so the first two entries are compared without a
 * branch, writing a pair that only counts if they are equal.
 */
HGJ_INLINE void
walk_short(HgjProbe *probe, Layout layout, uint32_t nwords, HgjProbeMode mode,
		   Out *out)
{
	const Graph *graph = &probe->table->graph;
	Group	   *g = &probe->group;
	uint32_t	stride = layout_stride(layout, nwords);
	uint32_t	n = out->n;
	uint32_t	hits = 0;
	uint32_t	i;

	for (i = 0; i < g->n; i++)
	{
		uint64_t	slot = g->from[i];
		uint64_t	to = g->to[i];
		uint32_t	row = g->row[i];
		uint32_t	first = n;
		bool		hit = slot_equal(probe, graph, layout, nwords, slot, i);

		out->probe_rows[n] = row;
		out->build_rows[n] = slot_row(graph->entries, layout, stride, slot);
		n += hit;
		slot++;
		/* one entry beyond the last list is there to be read */
		hit = (slot < to) & slot_equal(probe, graph, layout, nwords, slot, i);
		if (mode == HGJ_MATCH_FIRST)
			hit &= n == first;
		out->probe_rows[n] = row;
		out->build_rows[n] = slot_row(graph->entries, layout, stride, slot);
		n += hit;
		for (slot++; slot < to; slot++)
		{
			hit = slot_equal(probe, graph, layout, nwords, slot, i);
			if (mode == HGJ_MATCH_FIRST)
				hit &= n == first;
			out->probe_rows[n] = row;
			out->build_rows[n] = slot_row(graph->entries, layout, stride, slot);
			n += hit;
		}
		hits += n > first;
	}
	g->at = g->n;
	out->n = n;
	out->hits += hits;
	probe->steps += g->edges;
}

/*
 * Everything for a direct table of unique keys, or with a bit per key: as many rows as
 * the arrays have room for, or all in HGJ_MATCH_COUNT mode.
 */
static HgjStatus
walk_unique(HgjProbe *probe, Out *out, HgjError *err)
{
	bool		bits = probe->table->graph.segments == HGJ_SEGMENTS_BITS;
	bool		counts = probe->mode == HGJ_MATCH_COUNT;
	uint32_t	counted[2 * HGJ_UNIQUE_ROWS];

	while (probe->next < probe->total && (counts || out->n < out->capacity))
	{
		uint32_t   *probe_rows = counts ? counted : out->probe_rows + out->n;
		uint32_t   *build_rows = counts ? counted + HGJ_UNIQUE_ROWS :
			out->build_rows + out->n;
		uint32_t	n = probe->total - probe->next;
		uint32_t	found;

		n = n > HGJ_UNIQUE_ROWS ? HGJ_UNIQUE_ROWS : n;
		if (!counts && n > out->capacity - out->n)
			n = out->capacity - out->n;
		found = bits ? hgj_cpu_probe_bits(probe, n, probe_rows, build_rows) :
			hgj_cpu_probe_unique(probe, n, probe_rows, build_rows);
		if (!counts)
			out->n += found;
		else
			while (found > 0)
				out->counts[probe_rows[--found]] = 1;
		probe->steps += n;
		if (probe->steps > HGJ_POLL_STEPS)
		{
			probe->steps = 0;
			if (hgj_poll(&probe->table->spec, err) != HGJ_OK)
				return HGJ_CANCELLED;
		}
	}
	return HGJ_OK;
}

#define WALK_SHORT(layout, nwords) \
	(mode == HGJ_MATCH_ALL ? \
	 walk_short(probe, layout, nwords, HGJ_MATCH_ALL, out) : \
	 walk_short(probe, layout, nwords, HGJ_MATCH_FIRST, out))

#define WALK_SEGMENTS(layout, dynamic) \
	(graph->segments == HGJ_SEGMENTS_CSR ? \
	 walk(probe, layout, HGJ_SEGMENTS_CSR, dynamic, out) : \
	 graph->segments == HGJ_SEGMENTS_ELLPACK ? \
	 walk(probe, layout, HGJ_SEGMENTS_ELLPACK, dynamic, out) : \
	 walk(probe, layout, HGJ_SEGMENTS_SLICED, dynamic, out))

#define WALK_LAYOUT(layout) \
	(graph->slack > 0 ? WALK_SEGMENTS(layout, true) : \
	 WALK_SEGMENTS(layout, false))

/* Step 5, by whichever of the above fits. */
static Walk
walk_group(HgjProbe *probe, Out *out)
{
	const Graph *graph = &probe->table->graph;
	const Group *g = &probe->group;
	HgjProbeMode mode = probe->mode;

	if (graph->slack == 0 && g->at == 0 && mode != HGJ_MATCH_COUNT &&
		g->edges < out->capacity - out->n && g->edges < HGJ_POLL_STEPS)
	{
		if (graph->segments == HGJ_SEGMENTS_CSR &&
			graph->layout == LAYOUT_NARROW)
		{
			WALK_SHORT(LAYOUT_NARROW, 1);
			return WALK_END;
		}
		if (graph->segments == HGJ_SEGMENTS_CSR && graph->layout == LAYOUT_WIDE)
		{
			WALK_SHORT(LAYOUT_WIDE, 1);
			return WALK_END;
		}
		if (graph->segments == HGJ_SEGMENTS_CSR &&
			graph->layout == LAYOUT_MULTI && probe->table->spec.nwords == 2)
		{
			WALK_SHORT(LAYOUT_MULTI, 2);
			return WALK_END;
		}
		if (graph->segments == HGJ_SEGMENTS_CSR &&
			graph->layout == LAYOUT_MULTI && probe->table->spec.nwords == 3)
		{
			WALK_SHORT(LAYOUT_MULTI, 3);
			return WALK_END;
		}
	}
	switch (graph->layout)
	{
		case LAYOUT_ROW:
			return WALK_SEGMENTS(LAYOUT_ROW, false);
		case LAYOUT_NARROW:
			return WALK_LAYOUT(LAYOUT_NARROW);
		case LAYOUT_WIDE:
			return WALK_LAYOUT(LAYOUT_WIDE);
		case LAYOUT_MULTI:
			break;
	}
	return WALK_LAYOUT(LAYOUT_MULTI);
}

static Cursor
save_cursor(const HgjProbe *probe)
{
	Cursor		c;

	memset(&c, 0, sizeof(c));
	c.staged = probe->staged;
	c.group = probe->staged ? probe->group_first : probe->next;
	c.vertex = probe->vertex;
	c.returned = probe->returned;
	if (c.staged && probe->group.at < probe->group.n)
	{
		c.at = probe->group.at;
		c.from = probe->group.from[c.at];
		c.to = probe->group.to[c.at];
	}
	else if (c.staged)
	{
		c.staged = false;		/* that group is through */
		c.group = probe->next;
	}
	return c;
}

static void
restore_cursor(HgjProbe *probe, const Cursor *c)
{
	probe->staged = false;
	probe->next = c->group;
	probe->returned = c->returned;
	if (c->staged)
	{
		hgj_cpu_probe_stage(probe, c->group);
		probe->group.at = c->at;
		probe->group.from[c->at] = c->from;
		probe->group.to[c->at] = c->to;
		probe->vertex = c->vertex;
	}
}

static HgjStatus
check_matches(const HgjProbe *probe, const HgjMatches *matches, HgjError *err)
{
	if (matches == NULL || !probe->begun)
		return hgj_fail(err, HGJ_INVALID, "probe_next before probe_begin");
	if (matches->location != HGJ_ON_HOST)
		return hgj_fail(err, HGJ_UNSUPPORTED,
						"the CPU engine writes to host memory only");
	if (probe->mode == HGJ_MATCH_COUNT)
	{
		if (matches->counts == NULL && probe->keys.nrows > 0)
			return hgj_fail(err, HGJ_INVALID, "counts are missing");
	}
	else if (matches->capacity == 0 || matches->probe_rows == NULL ||
			 matches->build_rows == NULL)
		return hgj_fail(err, HGJ_INVALID, "there is no room for matches");
	return HGJ_OK;
}

/* Steps 1 to 5, group by group, until the batch ends or the arrays are full. */
static HgjStatus
walk_groups(HgjProbe *probe, Out *out, HgjError *err)
{
	for (;;)
	{
		Walk		walked;

		if (!probe->staged || probe->group.at >= probe->group.n)
		{
			if (probe->next >= probe->total)
				return HGJ_OK;
			hgj_cpu_probe_stage(probe, probe->next);
			probe->steps += HGJ_GROUP * 8;
			if (probe->steps > HGJ_POLL_STEPS)
			{
				probe->steps = 0;
				if (hgj_poll(&probe->table->spec, err) != HGJ_OK)
					return HGJ_CANCELLED;
			}
		}
		walked = walk_group(probe, out);
		if (walked == WALK_CANCELLED)
			return hgj_fail(err, HGJ_CANCELLED, "cancelled");
		if (walked == WALK_FULL)
			return HGJ_OK;
	}
}

/*
 * HgjEngine.probe_next: the next matches of the batch, at most `capacity`, or
 * in HGJ_MATCH_COUNT mode how many every row has.  When cancelled, the probe
 * is where it was before the call (match bits may already be set: the same
 * ones will be set again).
 */
HgjStatus
hgj_cpu_probe_next(HgjProbe *probe, HgjMatches *matches, HgjError *err)
{
	const Graph *graph = &probe->table->graph;
	HgjStatus	status = check_matches(probe, matches, err);
	Cursor		start;
	Out			out;
	uint32_t	i;

	if (status != HGJ_OK)
		return status;
	start = save_cursor(probe);
	out.probe_rows = matches->probe_rows;
	out.build_rows = matches->build_rows;
	out.counts = matches->counts;
	out.skip = matches->skip;
	out.n = 0;
	out.hits = 0;
	out.capacity = matches->capacity;
	matches->n = 0;
	matches->done = false;
	if (probe->mode == HGJ_MATCH_COUNT && probe->keys.nrows > 0 && !probe->done)
		memset(out.counts, 0, probe->keys.nrows * sizeof(uint32_t));
	if (graph->quotient)
	{
		status = hgj_cpu_probe_quotients(probe, matches, err);
		out.n = matches->n;
	}
	else if (graph->segments == HGJ_SEGMENTS_BITS ||
			 (probe->mode != HGJ_MATCH_COUNT && graph->layout == LAYOUT_ROW &&
			  graph->segments == HGJ_SEGMENTS_ELLPACK && graph->width == 1))
		status = walk_unique(probe, &out, err);
	else
		status = walk_groups(probe, &out, err);
	if (status != HGJ_OK)
	{
		restore_cursor(probe, &start);
		matches->n = 0;
		return status;
	}
	matches->n = out.n;
	if (!probe->filtering)
		probe->window_hits += out.hits;
	probe->done = probe->next >= probe->total &&
		(!probe->staged || probe->group.at >= probe->group.n);
	matches->done = probe->done;
	if ((probe->flags & HGJ_PROBE_MARK) && probe->mode != HGJ_MATCH_COUNT)
		for (i = 0; i < out.n; i++)
			mark_row(probe->table, out.build_rows[i]);
	return HGJ_OK;
}
