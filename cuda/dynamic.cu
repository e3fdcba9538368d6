/*-------------------------------------------------------------------------
 *
 * dynamic.cu
 *	  Insert, remove and rebuild (Groschaft 2022, algorithms 8 to 12).
 *
 * The slots of a vertex that were never used are always its last ones: a walk
 * ends at the first of them, and where the next entry goes is found by halving.
 *
 * insert, a thread per row:
 * 1. In the row's vertex, take a slot with a delete marker (looking at a few
 *	  only), or else the first one never used, by exchanging its row atomically.
 * 2. If there is none, go on to the next vertex, and so on, for 128 vertices.
 * 3. Rows that found no slot, or whose key narrow entries cannot hold: make a
 *	  new graph from the live entries and these, with fresh slack.
 * remove, a thread per row:
 * 4. Walk as a probe does, and put a delete marker over the entry of (key, row),
 *	  or over every entry of the key; the exchange tells who was first.
 * rebuild:
 * 5. Make a new graph from the live entries.
 *
 * Codes are bijections of keys, so that the keys of entries can be had back.
 * insert notes what it changes, and takes it back if step 3 fails.
 *
 * The graph is the table's, everything else lives within the call.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>

#include "device.cuh"
#include "internal.h"

namespace hgj
{

constexpr int MAX_HOPS = 128;
constexpr int MARKER_LOOKS = 8;
constexpr uint64_t NO_SLOT = UINT64_MAX;

/* What an insert has changed; slots is NO_SLOT for rows without one. */
struct Log
{
	uint64_t *slots;
	uint32_t *old_rows;
	unsigned long long *failed;
};

template <class Entry>
__device__ __forceinline__ uint32_t current_row(const Entry *e)
{
	return *const_cast<const volatile uint32_t *>(&e->row);
}

/* Step 1 in one vertex: the slot that now holds `row`, or NO_SLOT. */
template <class Entry>
__device__ uint64_t claim_slot(Entry *entries, uint64_t from, uint64_t to, uint32_t row,
							   uint32_t *old_row)
{
	uint64_t slot = from;

	for (; slot < to && slot < from + MARKER_LOOKS; slot++)
	{
		uint32_t there = current_row(entries + slot);

		while (there >= ROW_DELETED)
		{
			uint32_t found = atomicCAS(&entries[slot].row, there, row);

			if (found == there)
			{
				*old_row = there;
				return slot;
			}
			there = found;
		}
	}
	if (slot >= to || current_row(entries + to - 1) != ROW_EMPTY)
		return NO_SLOT;

	uint64_t last = to - 1; /* the first one never used is in slot .. last */

	while (slot < last)
	{
		uint64_t middle = slot + (last - slot) / 2;

		if (current_row(entries + middle) == ROW_EMPTY)
			last = middle;
		else
			slot = middle + 1;
	}
	for (; slot < to; slot++)
		if (atomicCAS(&entries[slot].row, ROW_EMPTY, row) == ROW_EMPTY)
		{
			*old_row = ROW_EMPTY;
			return slot;
		}
	return NO_SLOT;
}

/* Steps 1 and 2. */
template <class T>
__global__ void insert_kernel(GraphView g, Rows rows, typename T::Entry *entries, Log log)
{
	FOR_GRID (i, rows.n)
	{
		typename T::Entry e;
		uint64_t slot = NO_SLOT;
		uint32_t old_row = ROW_EMPTY;

		if (load_entry<T>(rows, g.mix, i, &e))
		{
			uint64_t home = (uint64_t) (e.code >> g.mix.shift);
			uint64_t vertex = home;

			for (int hop = 0; hop < MAX_HOPS && slot == NO_SLOT; hop++)
			{
				uint64_t from;
				uint64_t to;

				list_of(g, vertex, &from, &to);
				slot = claim_slot(entries, from, to, e.row, &old_row);
				vertex = vertex + 1 < g.vertices ? vertex + 1 : 0;
				if (vertex == home)
					break;
			}
		}
		log.slots[i] = slot;
		log.old_rows[i] = old_row;
		if (slot != NO_SLOT)
			entries[slot] = e;
		else
			atomicAdd(log.failed, 1ull);
	}
}

template <class T>
__global__ void undo_kernel(uint64_t n, typename T::Entry *entries, Log log)
{
	FOR_GRID (i, n)
		if (log.slots[i] != NO_SLOT)
			entries[log.slots[i]].row = log.old_rows[i];
}

/* The rows without a slot, as a selection. */
__global__ void select_failed(Rows rows, Log log, uint32_t *sel,
							  unsigned long long *count)
{
	FOR_GRID (i, rows.n)
		if (log.slots == nullptr || log.slots[i] == NO_SLOT)
			sel[atomicAdd(count, 1ull)] = (uint32_t) row_at(rows, i);
}

/* Step 4. */
template <class T>
__global__ void remove_kernel(GraphView g, Rows rows, typename T::Entry *entries,
							  bool by_id, unsigned long long *removed)
{
	FOR_GRID (i, rows.n)
	{
		typename T::Entry key;
		bool end = !load_entry<T>(rows, g.mix, i, &key);
		uint64_t home = (uint64_t) (key.code >> g.mix.shift);
		uint64_t vertex = home;
		unsigned long long count = 0;

		while (!end)
		{
			uint64_t slot;
			uint64_t to;

			list_of(g, vertex, &slot, &to);
			for (; slot < to && !end; slot++)
			{
				uint32_t there = current_row(entries + slot);

				end = there == ROW_EMPTY;
				if (there >= ROW_DELETED || (by_id && there != key.row) ||
					entries[slot].code != key.code)
					continue;
				if constexpr (T::layout == LAYOUT_MULTI)
					if (!same_words(g.words + (uint64_t) entries[slot].pos * rows.nwords,
									static_cast<const uint64_t *>(rows.words) +
										row_at(rows, i) * rows.nwords,
									rows.nwords))
						continue;
				if (atomicCAS(&entries[slot].row, there, ROW_DELETED) != there)
					continue;
				count++;
				end = by_id;
			}
			vertex = vertex + 1 < g.vertices ? vertex + 1 : 0;
			end |= vertex == home;
		}
		if (count > 0)
			atomicAdd(removed, count);
	}
}

/* The live entries as rows: keys and row ids. */
template <class T>
__global__ void extract_kernel(GraphView g, uint64_t slots, uint64_t *words,
							   uint32_t *rows, unsigned long long *count)
{
	const typename T::Entry *entries = static_cast<const typename T::Entry *>(g.entries);

	FOR_GRID (slot, slots)
	{
		typename T::Entry e = entries[slot];
		uint64_t at;

		if (e.row >= ROW_DELETED)
			continue;
		at = atomicAdd(count, 1ull);
		rows[at] = e.row;
		if constexpr (T::layout == LAYOUT_NARROW)
			words[at] =
				g.mix.base + (g.mix.direct ? e.code : unmix32(g.mix, (uint32_t) e.code));
		else if constexpr (T::layout == LAYOUT_WIDE)
			words[at] = unmix64(g.mix, e.code);
		else
			for (uint32_t w = 0; w < g.mix.nwords; w++)
				words[at * g.mix.nwords + w] =
					g.words[(uint64_t) e.pos * g.mix.nwords + w];
	}
}

static HgjStatus check_dynamic(const HgjTable *t, HgjError *err)
{
	if (!(t->spec.flags & HGJ_TABLE_DYNAMIC))
		return fail(err, HGJ_INVALID, "the table is not dynamic");
	if (!t->built)
		return fail(err, HGJ_INVALID, "a dynamic operation before build");
	return table_enter(t, err);
}

/* Step 5, and the live entries of step 3. */
static HgjStatus extract(HgjTable *t, Buffer *words, Buffer *ids, Buffer *count,
						 Rows *rows, HgjError *err)
{
	const Graph &g = t->graph;
	cudaStream_t stream = t->lane.stream;
	int blocks = grid_of(t->lane, g.slots);
	unsigned long long *n;

	HGJ_TRY(words->get(t, stream, g.rows * t->spec.nwords * 8, err));
	HGJ_TRY(ids->get(t, stream, g.rows * 4, err));
	n = count->as<unsigned long long>();
	HGJ_CUDA(cudaMemsetAsync(n, 0, sizeof(*n), stream));
	if (g.layout == LAYOUT_NARROW)
		extract_kernel<NarrowTraits><<<blocks, 256, 0, stream>>>(
			g.view(), g.slots, words->as<uint64_t>(), ids->as<uint32_t>(), n);
	else if (g.layout == LAYOUT_WIDE)
		extract_kernel<WideTraits><<<blocks, 256, 0, stream>>>(
			g.view(), g.slots, words->as<uint64_t>(), ids->as<uint32_t>(), n);
	else
		extract_kernel<MultiTraits><<<blocks, 256, 0, stream>>>(
			g.view(), g.slots, words->as<uint64_t>(), ids->as<uint32_t>(), n);
	HGJ_CUDA(cudaGetLastError());
	*rows = Rows{};
	rows->words = words->as<void>();
	rows->rows = ids->as<uint32_t>();
	rows->n = g.rows;
	rows->word_bytes = 8;
	rows->nwords = t->spec.nwords;
	return HGJ_OK;
}

/* Step 3: a new graph of the live entries and those rows. */
static HgjStatus remake(HgjTable *t, const Rows *more, HgjError *err)
{
	Buffer words;
	Buffer ids;
	Buffer count;
	Rows parts[2] = {};
	RowSet set = {parts, 0, 0};
	int64_t min_key = INT64_MAX;
	int64_t max_key = INT64_MIN;
	Plan plan;
	Graph graph;

	HGJ_TRY(count.get(t, t->lane.stream, sizeof(uint64_t), err));
	if (t->graph.rows > 0)
		HGJ_TRY(extract(t, &words, &ids, &count, &parts[set.nparts++], err));
	if (more != nullptr && more->n > 0)
		parts[set.nparts++] = *more;
	for (uint32_t i = 0; i < set.nparts; i++)
	{
		int64_t lo;
		int64_t hi;
		uint32_t top;

		parts[i].pos = (uint32_t) set.n;
		set.n += parts[i].n;
		if (t->spec.nwords > 1)
			continue;
		HGJ_TRY(device_key_range(t, t->lane, parts[i], &lo, &hi, &top, err));
		min_key = lo < min_key ? lo : min_key;
		max_key = hi > max_key ? hi : max_key;
	}
	if (set.n > HGJ_MAX_ROWS)
		return fail(err, HGJ_LIMIT, "a table holds at most 4294967280 rows");
	plan_build(t, set.n, min_key, max_key, &plan);
	HGJ_TRY(build_graph(t, set, plan, &graph, err));
	HGJ_TRY(wait(t, t->lane, true, err));
	t->graph.swap(graph);
	t->rebuilds++;
	return HGJ_OK;
}

/* Multi: the words of the batch behind those that the graph has. */
static HgjStatus add_words(HgjTable *t, Rows *rows, HgjError *err)
{
	Graph *g = &t->graph;
	uint64_t row = (uint64_t) t->spec.nwords * 8;
	uint64_t want = (g->keys + rows->n) * row;
	Buffer larger;

	if (g->layout != LAYOUT_MULTI)
		return HGJ_OK;
	if (g->keys + rows->n > UINT32_MAX)
		return fail(err, HGJ_LIMIT, "a table holds at most 4294967280 rows");
	if (g->words.bytes() < want)
	{
		HGJ_TRY(larger.get(t, t->lane.stream, want + want / 2, err));
		if (g->keys > 0)
			HGJ_CUDA(cudaMemcpyAsync(larger.as<void>(), g->words.as<void>(),
									 g->keys * row, cudaMemcpyDeviceToDevice,
									 t->lane.stream));
		g->words.swap(larger);
	}
	rows->pos = (uint32_t) g->keys;
	return copy_rows(t->lane, *rows, g->words.as<uint64_t>() + g->keys * t->spec.nwords,
					 nullptr, err);
}

static HgjStatus launch_insert(HgjTable *t, const Rows &rows, const Log &log, bool undo,
							   HgjError *err)
{
	Graph *g = &t->graph;
	int blocks = grid_of(t->lane, rows.n);
	cudaStream_t stream = t->lane.stream;

	if (undo && g->layout == LAYOUT_NARROW)
		undo_kernel<NarrowTraits>
			<<<blocks, 256, 0, stream>>>(rows.n, g->entries.as<Entry32>(), log);
	else if (undo)
		undo_kernel<WideTraits>
			<<<blocks, 256, 0, stream>>>(rows.n, g->entries.as<Entry64>(), log);
	else if (g->layout == LAYOUT_NARROW)
		insert_kernel<NarrowTraits>
			<<<blocks, 256, 0, stream>>>(g->view(), rows, g->entries.as<Entry32>(), log);
	else if (g->layout == LAYOUT_WIDE)
		insert_kernel<WideTraits>
			<<<blocks, 256, 0, stream>>>(g->view(), rows, g->entries.as<Entry64>(), log);
	else
		insert_kernel<MultiTraits>
			<<<blocks, 256, 0, stream>>>(g->view(), rows, g->entries.as<Entry64>(), log);
	HGJ_CUDA(cudaGetLastError());
	return wait(t, t->lane, false, err);
}

/* Steps 1 to 3 for uploaded rows. */
static HgjStatus insert_rows(HgjTable *t, Rows rows, HgjError *err)
{
	Graph *g = &t->graph;
	cudaStream_t stream = t->lane.stream;
	unsigned long long failed = rows.n;
	Buffer slots;
	Buffer old_rows;
	Buffer counter;
	Buffer sel;
	Log log = {};
	Rows rest = rows;
	HgjStatus status;

	HGJ_TRY(counter.get(t, stream, sizeof(uint64_t), err));
	log.failed = counter.as<unsigned long long>();
	if (rows.n <= g->slots - g->rows)
	{
		HGJ_TRY(slots.get(t, stream, rows.n * 8, err));
		HGJ_TRY(old_rows.get(t, stream, rows.n * 4, err));
		HGJ_TRY(add_words(t, &rows, err));
		log.slots = slots.as<uint64_t>();
		log.old_rows = old_rows.as<uint32_t>();
		HGJ_CUDA(cudaMemsetAsync(log.failed, 0, sizeof(uint64_t), stream));
		HGJ_TRY(launch_insert(t, rows, log, false, err));
		HGJ_CUDA(cudaMemcpy(&failed, log.failed, sizeof(failed), cudaMemcpyDeviceToHost));
		g->rows += rows.n - failed;
		g->keys += g->layout == LAYOUT_MULTI ? rows.n : 0;
	}
	if (failed == 0)
		return HGJ_OK;
	status = sel.get(t, stream, failed * 4, err);
	if (status == HGJ_OK)
	{
		HGJ_CUDA(cudaMemsetAsync(log.failed, 0, sizeof(uint64_t), stream));
		select_failed<<<grid_of(t->lane, rows.n), 256, 0, stream>>>(
			rows, log, sel.as<uint32_t>(), log.failed);
		HGJ_CUDA(cudaGetLastError());
		rest.sel = sel.as<uint32_t>();
		rest.n = failed;
		status = remake(t, &rest, err);
	}
	if (status != HGJ_OK && log.slots != nullptr)
	{
		HGJ_TRY(launch_insert(t, rows, log, true, err));
		g->rows -= rows.n - failed;
		g->keys -= g->layout == LAYOUT_MULTI ? rows.n : 0;
	}
	return status;
}

/*
 * HgjEngine.insert: all selected rows of the batch, or none.  Row ids may pass
 * total_rows: the table then has that many more, unmarked.
 */
HgjStatus table_insert(HgjTable *table, const HgjKeys *keys, uint32_t first_row,
					   const uint32_t *row_ids, HgjError *err)
{
	uint64_t max_row;
	HgjKeys all;
	KeyUpload up;
	Rows rows;

	HGJ_TRY(check_dynamic(table, err));
	HGJ_TRY(check_keys(table, keys, err));
	/* rows that are not selected use up ids, and are unmatched, too */
	all = *keys;
	all.sel = nullptr;
	HGJ_TRY(check_rows(&all, first_row, row_ids, &max_row, err));
	if (keys->nrows == 0)
		return HGJ_OK;
	HGJ_TRY(poll(table, err));
	HGJ_TRY(
		upload_keys(table, table->lane, &up, keys, row_ids, first_row, true, &rows, err));
	if (keys->location == HGJ_ON_DEVICE && row_ids != nullptr && rows.n > 0)
	{
		int64_t lo;
		int64_t hi;
		uint32_t top;

		HGJ_TRY(device_key_range(table, table->lane, rows, &lo, &hi, &top, err));
		if (top >= HGJ_MAX_ROWS)
			return fail(err, HGJ_INVALID, "a row id is out of range");
		max_row = top;
	}
	if (max_row >= table->total_rows)
		HGJ_TRY(marks_grow(table, (uint32_t) max_row + 1, err));
	if (rows.n > 0)
		HGJ_TRY(insert_rows(table, rows, err));
	if (max_row >= table->total_rows)
		table->total_rows = (uint32_t) max_row + 1;
	return HGJ_OK;
}

/* HgjEngine.remove; *removed counts entries.  All or, where it fails, none. */
HgjStatus table_remove(HgjTable *table, const HgjKeys *keys, const uint32_t *row_ids,
					   uint64_t *removed, HgjError *err)
{
	Graph *g = &table->graph;
	cudaStream_t stream = table->lane.stream;
	unsigned long long count = 0;
	KeyUpload up;
	Buffer counter;
	Rows rows;

	if (removed != nullptr)
		*removed = 0;
	HGJ_TRY(check_dynamic(table, err));
	HGJ_TRY(check_keys(table, keys, err));
	HGJ_TRY(poll(table, err));
	HGJ_TRY(upload_keys(table, table->lane, &up, keys, row_ids, 0, true, &rows, err));
	if (rows.n == 0 || g->rows == 0)
		return HGJ_OK;
	HGJ_TRY(counter.get(table, stream, sizeof(uint64_t), err));
	HGJ_CUDA(cudaMemsetAsync(counter.as<void>(), 0, sizeof(uint64_t), stream));
	if (g->layout == LAYOUT_NARROW)
		remove_kernel<NarrowTraits><<<grid_of(table->lane, rows.n), 256, 0, stream>>>(
			g->view(), rows, g->entries.as<Entry32>(), row_ids != nullptr,
			counter.as<unsigned long long>());
	else if (g->layout == LAYOUT_WIDE)
		remove_kernel<WideTraits><<<grid_of(table->lane, rows.n), 256, 0, stream>>>(
			g->view(), rows, g->entries.as<Entry64>(), row_ids != nullptr,
			counter.as<unsigned long long>());
	else
		remove_kernel<MultiTraits><<<grid_of(table->lane, rows.n), 256, 0, stream>>>(
			g->view(), rows, g->entries.as<Entry64>(), row_ids != nullptr,
			counter.as<unsigned long long>());
	HGJ_CUDA(cudaGetLastError());
	/* entries are being marked: too late to cancel */
	HGJ_TRY(wait(table, table->lane, false, err));
	HGJ_CUDA(
		cudaMemcpy(&count, counter.as<void>(), sizeof(count), cudaMemcpyDeviceToHost));
	g->rows -= count;
	if (removed != nullptr)
		*removed = count;
	return HGJ_OK;
}

/* HgjEngine.rebuild: the same entries, no markers, fresh slack. */
HgjStatus table_rebuild(HgjTable *table, HgjError *err)
{
	HGJ_TRY(check_dynamic(table, err));
	HGJ_TRY(poll(table, err));
	return remake(table, nullptr, err);
}

} // namespace hgj
