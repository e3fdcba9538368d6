/*-------------------------------------------------------------------------
 *
 * cpu_probe_binned.c
 *	  Putting a batch of probe rows into the order of the graph (Green 2019's
 *	  second probe, without building a second graph).
 *
 * 1. The code of every selected row, and a histogram of its bin: the high bits
 *	  of the hash, which are also the high bits of the vertex.  Keys outside
 *	  the table's range drop out.
 * 2. Exclusive scan over the bins.
 * 3. Scatter key and row number into the bins.
 *
 * cpu_probe.c then looks the rows up in that order: every part of the graph
 * is read into the cache once per batch.  All matches of one probe row still
 * come next to each other.
 *
 * The order belongs to the probe, which keeps it for its next batch.  If there
 * is no memory for it, the batch is looked up in its own order.  Locks
 * nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "cpu_probe.h"

/* A bin's number and one more, for rows that cannot match, fit 16 bits. */
typedef uint16_t BinNumber;

static size_t
row_bytes(const HgjTable *t)
{
	return t->graph.layout == LAYOUT_NARROW ? sizeof(NarrowEntry) :
		sizeof(BinnedRow);
}

/* Bytes of the order of n rows and of what it takes to make it. */
static size_t
order_bytes(const HgjTable *t, uint32_t n)
{
	return (size_t) n * (row_bytes(t) + sizeof(BinNumber)) +
		(t->probe_bins + 2) * sizeof(uint32_t);
}

/* Give back the order of the last batch. */
void
hgj_cpu_probe_free_bins(HgjProbe *probe)
{
	hgj_cpu_put(probe->table, probe->rows, probe->rows_bytes);
	probe->rows = NULL;
	probe->rows_bytes = 0;
}

/* The hashes of rows first .. first + n of the batch's selection. */
void
hgj_cpu_probe_codes(const HgjProbe *probe, uint32_t first, uint32_t n,
					uint64_t *codes)
{
	const HgjHash hash = probe->table->hash;
	uint32_t	nwords = probe->table->spec.nwords;
	const uint32_t *sel = probe->keys.sel;
	uint32_t	w;
	uint32_t	i;

	for (i = 0; i < n; i++)
		codes[i] = hash.start;
	for (w = 0; w < nwords; w++)
	{
		const uint64_t *column = probe->keys.words[w];

		if (sel != NULL)
			for (i = 0; i < n; i++)
				codes[i] = hgj_hash_word(&hash, codes[i], column[sel[first + i]]);
		else
			for (i = 0; i < n; i++)
				codes[i] = hgj_hash_word(&hash, codes[i], column[first + i]);
	}
	for (i = 0; i < n; i++)
		codes[i] = hgj_hash_finish(&hash, codes[i]);
}

/* Step 1: the bin of every row, and how many each bin gets. */
static HgjStatus
count_bins(HgjProbe *probe, BinNumber *bins, uint32_t *counts, HgjError *err)
{
	const Graph *graph = &probe->table->graph;
	uint64_t	codes[HGJ_BLOCK_ROWS];
	uint32_t	none = probe->table->probe_bins;
	uint32_t	shift = probe->table->probe_shift;
	const uint32_t *sel = probe->keys.sel;
	const uint64_t *column = probe->keys.words[0];
	uint32_t	at;
	uint32_t	i;

	for (at = 0; at < probe->total; at += HGJ_BLOCK_ROWS)
	{
		uint32_t	n = probe->total - at;

		n = n > HGJ_BLOCK_ROWS ? HGJ_BLOCK_ROWS : n;
		hgj_cpu_probe_codes(probe, at, n, codes);
		for (i = 0; i < n; i++)
		{
			uint32_t	bin = (uint32_t) (codes[i] >> shift);

			if (graph->layout == LAYOUT_NARROW)
			{
				uint64_t	key = column[sel != NULL ? sel[at + i] : at + i];

				bin = key - graph->base <= graph->range ? bin : none;
			}
			bins[at + i] = (BinNumber) bin;
			counts[bin]++;
		}
		if ((at / HGJ_BLOCK_ROWS + 1) % (HGJ_POLL_BLOCKS * 4) == 0)
		{
			HgjStatus	status = hgj_poll(&probe->table->spec, err);

			if (status != HGJ_OK)
				return status;
		}
	}
	return HGJ_OK;
}

/* Step 3. */
static HgjStatus
scatter_rows(HgjProbe *probe, const BinNumber *bins, uint32_t *next,
			 HgjError *err)
{
	const uint32_t *sel = probe->keys.sel;
	const uint64_t *column = probe->keys.words[0];
	bool		narrow = probe->table->graph.layout == LAYOUT_NARROW;
	uint64_t	base = probe->table->graph.base;
	uint32_t	none = probe->table->probe_bins;
	bool		multi = probe->table->spec.nwords > 1;
	uint64_t	codes[HGJ_BLOCK_ROWS];
	uint32_t	at;
	uint32_t	i;

	for (at = 0; at < probe->total; at += HGJ_BLOCK_ROWS)
	{
		uint32_t	n = probe->total - at;

		n = n > HGJ_BLOCK_ROWS ? HGJ_BLOCK_ROWS : n;
		if (multi)
			hgj_cpu_probe_codes(probe, at, n, codes);
		for (i = 0; i < n; i++)
		{
			uint32_t	row = sel != NULL ? sel[at + i] : at + i;
			uint32_t	bin = bins[at + i];

			if (bin == none)
				continue;
			if (narrow)
			{
				NarrowEntry *to = (NarrowEntry *) probe->rows + next[bin]++;

				to->key = (uint32_t) (column[row] - base);
				to->row = row;
			}
			else
			{
				BinnedRow  *to = (BinnedRow *) probe->rows + next[bin]++;

				to->key = multi ? codes[i] : column[row];
				to->row = row;
				to->unused = 0;
			}
		}
		if ((at / HGJ_BLOCK_ROWS + 1) % (HGJ_POLL_BLOCKS * 4) == 0)
		{
			HgjStatus	status = hgj_poll(&probe->table->spec, err);

			if (status != HGJ_OK)
				return status;
		}
	}
	return HGJ_OK;
}

/*
 * Bin the batch that a probe was begun with.  Sets probe->binned, and
 * probe->total to the rows that can match; does neither, and succeeds, where
 * there is no memory for the order.
 */
HgjStatus
hgj_cpu_probe_bin(HgjProbe *probe, HgjError *err)
{
	HgjTable   *t = probe->table;
	size_t		bytes = order_bytes(t, probe->total);
	uint32_t   *counts;
	BinNumber  *bins;
	uint32_t	sum = 0;
	void	   *p;
	HgjStatus	status;
	uint32_t	b;

	if (bytes > probe->rows_bytes)
	{
		hgj_cpu_probe_free_bins(probe);
		if (hgj_cpu_get(t, bytes, &p, NULL) != HGJ_OK)
			return HGJ_OK;
		probe->rows = p;
		probe->rows_bytes = bytes;
		status = hgj_cpu_touch(t, p, bytes, err);
		if (status != HGJ_OK)
			return status;
	}
	counts = (uint32_t *) (void *)
		((uint8_t *) probe->rows + probe->total * row_bytes(t));
	bins = (BinNumber *) (void *) (counts + t->probe_bins + 2);
	memset(counts, 0, (t->probe_bins + 2) * sizeof(uint32_t));
	status = count_bins(probe, bins, counts, err);
	if (status != HGJ_OK)
		return status;
	for (b = 0; b < t->probe_bins; b++)
	{
		uint32_t	count = counts[b];

		counts[b] = sum;
		sum += count;
	}
	status = scatter_rows(probe, bins, counts, err);
	if (status != HGJ_OK)
		return status;
	probe->total = sum;
	probe->binned = true;
	return HGJ_OK;
}
