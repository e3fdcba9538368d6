/*-------------------------------------------------------------------------
 *
 * cpu_dynamic.c
 *	  Insert, remove and rebuild (Groschaft 2022, algorithms 8 to 12), for a
 *	  table in which a key may stand any number of times.
 *
 * The slots of a vertex that were never used are always its last ones, which
 * gives three things: a walk ends at the first of them; a vertex is full when
 * its last slot is taken; and where the next entry goes is found by halving.
 *
 * insert (algorithm 10), row by row:
 * 1. In the row's vertex, take a slot with a delete marker (looking at a few
 *	  only), or else the first one never used.
 * 2. If there is none, go on to the next vertex, and so on, for 128 vertices.
 * 3. If there is none at all, or a key lies outside the range that narrow
 *	  entries or a direct table can hold, or the batch is larger than what the
 *	  table has free: make a new graph from the live entries and the rest of
 *	  the batch, with fresh slack (algorithm 8).
 * remove (algorithm 12):
 * 4. Walk as a probe does (algorithm 11), and put a delete marker over the
 *	  entry of (key, row), or over every entry of the key.
 * rebuild:
 * 5. Make a new graph from the live entries.
 *
 * A delete marker does not end a walk, so entries behind it are still found.
 *
 * Every change is noted in a log, and undone from it when the call fails or
 * is cancelled.  The log lives within the call; the graph is the table's.
 * Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "cpu_internal.h"

#define MAX_HOPS		128		/* vertices that insert looks at */
#define MARKER_LOOKS	8		/* slots in which it looks for a marker */
#define ROWS_PER_POLL	16384

/* A slot that this call has changed, and the row that was in it. */
typedef struct Change
{
	uint64_t	slot;
	uint32_t	row;
	uint32_t	unused;
} Change;

typedef struct Log
{
	HgjTable   *table;
	Change	   *changes;
	uint64_t	n;
	uint64_t	capacity;
} Log;

/* What the call is looking for. */
typedef struct Key
{
	uint64_t	words[HGJ_MAX_KEY_WORDS];
	uint64_t	code;
} Key;

static HgjStatus
check_dynamic(const HgjTable *t, HgjError *err)
{
	if (!(t->spec.flags & HGJ_TABLE_DYNAMIC))
		return hgj_fail(err, HGJ_INVALID, "the table is not dynamic");
	if (!t->built)
		return hgj_fail(err, HGJ_INVALID, "a dynamic operation before build");
	return HGJ_OK;
}

static size_t
log_bytes(uint64_t capacity)
{
	return (size_t) capacity * sizeof(Change);
}

/* Room for at least `want` changes. */
static HgjStatus
log_reserve(Log *log, uint64_t want, HgjError *err)
{
	uint64_t	capacity = log->capacity * 2 > want ? log->capacity * 2 : want;
	void	   *p;
	HgjStatus	status;

	if (want <= log->capacity)
		return HGJ_OK;
	if (capacity < 64)
		capacity = 64;
	status = hgj_cpu_get(log->table, log_bytes(capacity), &p, err);
	if (status != HGJ_OK)
		return status;
	if (log->n > 0)
		memcpy(p, log->changes, log_bytes(log->n));
	hgj_cpu_put(log->table, log->changes, log_bytes(log->capacity));
	log->changes = p;
	log->capacity = capacity;
	return HGJ_OK;
}

static void
log_close(Log *log)
{
	hgj_cpu_put(log->table, log->changes, log_bytes(log->capacity));
}

static void
set_row(Graph *g, uint64_t slot, uint32_t row)
{
	slot_set_row(g->entries, g->layout, g->stride, slot, row);
}

static uint32_t
get_row(const Graph *g, uint64_t slot)
{
	return slot_row(g->entries, g->layout, g->stride, slot);
}

/*
 * Note that a slot's row is about to be changed.  The room was reserved, or
 * is now.
 */
static HgjStatus
log_change(Log *log, uint64_t slot, uint32_t row, HgjError *err)
{
	HgjStatus	status = log_reserve(log, log->n + 1, err);

	if (status == HGJ_OK)
	{
		log->changes[log->n].slot = slot;
		log->changes[log->n].row = row;
		log->changes[log->n].unused = 0;
		log->n++;
	}
	return status;
}

/* Take every change back, the latest first. */
static void
log_undo(Log *log)
{
	Graph	   *g = &log->table->graph;

	while (log->n > 0)
	{
		const Change *c = log->changes + --log->n;
		bool		was_live = c->row < HGJ_ROW_DELETED;
		bool		is_live = get_row(g, c->slot) < HGJ_ROW_DELETED;

		set_row(g, c->slot, c->row);
		g->rows = g->rows + was_live - is_live;
	}
}

/* The index in the batch of its i-th selected row. */
static uint32_t
batch_index(const HgjKeys *keys, uint32_t i)
{
	return keys->sel != NULL ? keys->sel[i] : i;
}

/* Load a row's key; false where this graph cannot hold such a key. */
static bool
load_key(const HgjTable *t, const HgjKeys *keys, uint32_t index, Key *key)
{
	const Graph *g = &t->graph;
	const uint64_t *columns[HGJ_MAX_KEY_WORDS];
	uint32_t	w;

	for (w = 0; w < t->spec.nwords; w++)
	{
		key->words[w] = keys->words[w][index];
		columns[w] = &key->words[w];
	}
	if (g->layout == LAYOUT_NARROW && key->words[0] - g->base > g->range)
		return false;
	hgj_cpu_codes(t, g->direct, g->base, columns, 1, &key->code);
	return true;
}

/* Whether a slot, whose row is live, holds that key. */
static bool
slot_has_key(const HgjTable *t, uint64_t slot, const Key *key)
{
	const Graph *g = &t->graph;
	const MultiEntry *e;

	if (g->layout == LAYOUT_NARROW)
		return ((const NarrowEntry *) (const void *) g->entries)[slot].key ==
			(uint32_t) (key->words[0] - g->base);
	if (g->layout == LAYOUT_WIDE)
		return ((const WideEntry *) (const void *) g->entries)[slot].key ==
			key->words[0];
	e = multi_entry(g->entries, slot, g->stride);
	return e->tag == (uint32_t) key->code &&
		memcmp(e->words, key->words, t->spec.nwords * sizeof(uint64_t)) == 0;
}

/*
 * Steps 1 and 2: a slot for an entry of vertex `home`, false if there is none.
 */
static bool
find_slot(const Graph *g, uint64_t home, uint64_t *found)
{
	uint64_t	vertex = home;
	uint32_t	hop;

	for (hop = 0; hop < MAX_HOPS; hop++)
	{
		uint64_t	from;
		uint64_t	to;
		uint64_t	slot;

		vertex_slots(g, g->segments, vertex, &from, &to);
		for (slot = from; slot < to && slot < from + MARKER_LOOKS; slot++)
		{
			if (get_row(g, slot) >= HGJ_ROW_DELETED)
			{
				*found = slot;
				return true;
			}
		}
		if (slot < to && get_row(g, to - 1) == HGJ_ROW_EMPTY)
		{
			/* the first one never used lies in slot .. to - 1 */
			uint64_t	last = to - 1;

			while (slot < last)
			{
				uint64_t	middle = slot + (last - slot) / 2;

				if (get_row(g, middle) == HGJ_ROW_EMPTY)
					last = middle;
				else
					slot = middle + 1;
			}
			*found = slot;
			return true;
		}
		vertex = vertex + 1 < g->vertices ? vertex + 1 : 0;
		if (vertex == home)
			return false;
	}
	return false;
}

/* Step 3: a new graph of the live entries and the batch's rows from `from`. */
static HgjStatus
remake(HgjTable *t, const HgjKeys *keys, uint32_t from, uint32_t first_row,
	   const uint32_t *row_ids, HgjError *err)
{
	int64_t		min_key = INT64_MAX;
	int64_t		max_key = INT64_MIN;
	uint64_t	rows = t->graph.rows;
	Source		source;
	Plan		plan;
	Graph		graph;
	HgjStatus	status;

	memset(&source, 0, sizeof(source));
	source.table = t;
	source.graph = &t->graph;
	source.keys = keys;
	source.keys_from = from;
	source.first_row = first_row;
	source.row_ids = row_ids;
	if (keys != NULL)
		rows += hgj_key_count(keys) - from;
	if (rows > HGJ_MAX_ROWS)
		return hgj_fail(err, HGJ_LIMIT,
						"a table holds at most 4294967280 rows");
	if (t->spec.nwords == 1)
	{
		Block		block;
		HgjKeys		column;
		const uint64_t *words[1];

		memset(&column, 0, sizeof(column));
		column.words = words;
		status = hgj_cpu_source_open(&source, err);
		while (status == HGJ_OK)
		{
			status = hgj_cpu_source_next(&source, &block, err);
			if (status != HGJ_OK || block.n == 0)
				break;
			words[0] = block.words[0];
			column.nrows = block.n;
			hgj_cpu_key_range(&column, 0, &min_key, &max_key);
		}
		hgj_cpu_source_close(&source);
		if (status != HGJ_OK)
			return status;
	}
	hgj_cpu_plan(t, rows, min_key, max_key, &plan);
	status = hgj_cpu_build_graph(t, &source, &plan, &graph, err);
	if (status != HGJ_OK)
		return status;
	hgj_cpu_graph_free(t, &t->graph);
	t->graph = graph;
	t->rebuilds++;
	hgj_cpu_plan_probe(t);
	return HGJ_OK;
}

/*
 * Insert rows one by one until one does not fit; *done says how many did.
 */
static HgjStatus
insert_rows(HgjTable *t, const HgjKeys *keys, uint32_t first_row,
			const uint32_t *row_ids, Log *log, uint32_t *done, HgjError *err)
{
	Graph	   *g = &t->graph;
	uint32_t	n = hgj_key_count(keys);
	uint32_t	i;
	HgjStatus	status = HGJ_OK;

	for (i = 0; i < n && status == HGJ_OK; i++)
	{
		uint32_t	index = batch_index(keys, i);
		const uint64_t *columns[HGJ_MAX_KEY_WORDS];
		uint64_t	slot;
		Key			key;
		uint32_t	w;

		if (i % ROWS_PER_POLL == ROWS_PER_POLL - 1)
			status = hgj_poll(&t->spec, err);
		if (status != HGJ_OK || !load_key(t, keys, index, &key) ||
			!find_slot(g, key.code >> g->shift, &slot))
			break;
		status = log_change(log, slot, get_row(g, slot), err);
		if (status != HGJ_OK)
			break;
		for (w = 0; w < t->spec.nwords; w++)
			columns[w] = &key.words[w];
		slot_write(g->entries, g->layout, g->stride, slot, columns,
				   t->spec.nwords, g->base, 0, key.code,
				   row_ids != NULL ? row_ids[index] : first_row + index);
		g->rows++;
	}
	*done = i;
	return status;
}

/* Match bits for row ids up to max_row; *bits is NULL if there are enough. */
static HgjStatus
grow_bits(HgjTable *t, uint64_t max_row, uint64_t **bits, size_t *bytes,
		  HgjError *err)
{
	HgjStatus	status;

	*bits = NULL;
	*bytes = 0;
	if (t->bits == NULL || max_row < t->total_rows)
		return HGJ_OK;
	status = hgj_cpu_bits_alloc(t, (uint32_t) max_row + 1, bits, bytes, err);
	if (status == HGJ_OK)
		memcpy(*bits, t->bits, t->bits_bytes < *bytes ? t->bits_bytes : *bytes);
	return status;
}

/*
 * HgjEngine.insert: all selected rows of the batch, or none.  Row ids may
 * pass total_rows: the table then has that many more, unmarked.
 */
HgjStatus
hgj_cpu_insert(HgjTable *table, const HgjKeys *keys, uint32_t first_row,
			   const uint32_t *row_ids, HgjError *err)
{
	HgjStatus	status = check_dynamic(table, err);
	uint64_t	max_row;
	uint64_t   *bits;
	size_t		bits_bytes;
	uint32_t	n;
	uint32_t	done = 0;
	HgjKeys		all;
	Log			log;

	if (status == HGJ_OK)
		status = hgj_cpu_check_keys(table, keys, err);
	if (status != HGJ_OK)
		return status;
	/* rows that are not selected use up ids, and are unmatched, too */
	all = *keys;
	all.sel = NULL;
	status = hgj_check_rows(&all, first_row, row_ids, &max_row, err);
	if (status != HGJ_OK || keys->nrows == 0)
		return status;
	n = hgj_key_count(keys);
	status = grow_bits(table, max_row, &bits, &bits_bytes, err);
	if (status != HGJ_OK)
		return status;

	memset(&log, 0, sizeof(log));
	log.table = table;
	if (n > 0 && n <= table->graph.slots - table->graph.rows)
		status = log_reserve(&log, n, err);
	if (status == HGJ_OK && log.capacity > 0)
		status = insert_rows(table, keys, first_row, row_ids, &log, &done, err);
	if (status == HGJ_OK && done < n)
		status = remake(table, keys, done, first_row, row_ids, err);
	if (status != HGJ_OK)
		log_undo(&log);
	log_close(&log);
	if (status != HGJ_OK)
	{
		hgj_cpu_put(table, bits, bits_bytes);
		return status;
	}
	if (bits != NULL)
	{
		hgj_cpu_put(table, table->bits, table->bits_bytes);
		table->bits = bits;
		table->bits_bytes = bits_bytes;
	}
	if (max_row >= table->total_rows)
		table->total_rows = (uint32_t) max_row + 1;
	return HGJ_OK;
}

/*
 * Step 4 for one key: delete the entry with that row id, or every entry when
 * any is true.
 */
static HgjStatus
remove_key(HgjTable *t, const Key *key, bool any, uint32_t row, Log *log,
		   uint64_t *steps, HgjError *err)
{
	Graph	   *g = &t->graph;
	uint64_t	home = key->code >> g->shift;
	uint64_t	vertex = home;
	HgjStatus	status;

	do
	{
		uint64_t	slot;
		uint64_t	to;

		vertex_slots(g, g->segments, vertex, &slot, &to);
		for (; slot < to; slot++)
		{
			uint32_t	there = get_row(g, slot);

			if (++*steps % HGJ_POLL_STEPS == 0 &&
				(status = hgj_poll(&t->spec, err)) != HGJ_OK)
				return status;
			if (there == HGJ_ROW_EMPTY)
				return HGJ_OK;
			if (there == HGJ_ROW_DELETED || (!any && there != row) ||
				!slot_has_key(t, slot, key))
				continue;
			status = log_change(log, slot, there, err);
			if (status != HGJ_OK)
				return status;
			set_row(g, slot, HGJ_ROW_DELETED);
			g->rows--;
			if (!any)
				return HGJ_OK;
		}
		vertex = vertex + 1 < g->vertices ? vertex + 1 : 0;
	} while (vertex != home);
	return HGJ_OK;
}

/*
 * HgjEngine.remove: delete markers over the entries of the selected rows'
 * keys; *removed counts them.  All or, where it fails, none.
 */
HgjStatus
hgj_cpu_remove(HgjTable *table, const HgjKeys *keys, const uint32_t *row_ids,
			   uint64_t *removed, HgjError *err)
{
	HgjStatus	status = check_dynamic(table, err);
	uint64_t	steps = 0;
	uint32_t	n;
	uint32_t	i;
	Key			key;
	Log			log;

	if (removed != NULL)
		*removed = 0;
	if (status == HGJ_OK)
		status = hgj_cpu_check_keys(table, keys, err);
	if (status != HGJ_OK)
		return status;
	memset(&log, 0, sizeof(log));
	log.table = table;
	n = hgj_key_count(keys);
	for (i = 0; i < n && status == HGJ_OK; i++)
	{
		uint32_t	index = batch_index(keys, i);

		if (i % ROWS_PER_POLL == ROWS_PER_POLL - 1)
			status = hgj_poll(&table->spec, err);
		if (status == HGJ_OK && load_key(table, keys, index, &key))
			status = remove_key(table, &key, row_ids == NULL,
								row_ids != NULL ? row_ids[index] : 0, &log,
								&steps, err);
	}
	if (status != HGJ_OK)
		log_undo(&log);
	else if (removed != NULL)
		*removed = log.n;
	log_close(&log);
	return status;
}

/* HgjEngine.rebuild: the same entries, no markers, fresh slack. */
HgjStatus
hgj_cpu_rebuild(HgjTable *table, HgjError *err)
{
	HgjStatus	status = check_dynamic(table, err);

	if (status == HGJ_OK)
		status = hgj_poll(&table->spec, err);
	if (status == HGJ_OK)
		status = remake(table, NULL, 0, 0, NULL, err);
	return status;
}
