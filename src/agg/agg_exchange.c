/*-------------------------------------------------------------------------
 *
 * agg_exchange.c
 *	  The processes of a parallel query divide the groups of a HashGraphAgg among
 *	  themselves by hash, and each finishes its own: there is nothing left to be
 *	  combined above the Gather.  This is repartitioning after a local aggregation, as
 *	  in Shatdal and Naughton, Adaptive Parallel Aggregation Algorithms (1995).
 *
 * 1. The leader lays HgjSharedExchange into the query's shared memory.  Without any
 *	  (there are no workers then) the aggregation is an ordinary one, whose partial
 *	  child returns all rows to the one who asks.
 * 2. Who comes while others are reading the input takes part: it attaches to the
 *	  barrier, reads what its partial child gives it, and has a group table of its own.
 * 3. When that table is full, or there is no more input, its groups are written out as
 *	  records (agg_records.c, agg_packed.c), sorted into partitions by bits of their hash, which
 *	  is the same in all processes: an image.  The hash is that of all keys, or of the first
 *	  ones, if a node above groups by these.  It goes to shared memory, or to a file that
 *	  all can read when images take their part of the memory that all processes have.
 *	  A table that has outgrown the processor's caches is written out, too, if hardly two of all
 *	  rows that are to come will share a group in it.  Which is seen from how many have done so
 *	  far: where n of D values have come in any order, n^2 / 2D rows have come to one that was
 *	  there.  Values that come in turns look new until they come again, which is seen from a sample
 *	  of those that were given away.
 * 4. At the barrier all have read their input.  If there is only one, and it has
 *	  written no image, its table is the result.  Otherwise everybody writes its last
 *	  image, and they meet once more.  If none has been written before, values of the key
 *	  may divide groups in the place of the hash (agg_exchange_values.c).
 * 5. The outcome is published; who has come too late for step 2 has waited for it.
 *	  From there on everybody takes one partition after the other, combines what all
 *	  images have of it (agg_exchange_read.c), and returns the groups.  Nobody who has
 *	  returned a row waits for others.
 *
 * A Gather that is rescanned has new processes, and its leader begins all of this anew.
 *
 * Memory: a table may take 4/9 of a process's limit, images 4/9 of all limits together,
 * and what says where groups are written what is left.  Images are in the query's
 * area (es_query_dsa), which ends with the query, or are freed by the first who starts
 * over; files belong to the resource owner and to the file set.  Tables are malloc'd
 * and freed with the node's, all else is palloc'd in the query's context.
 * Locks: those of the meeting (base/meeting.c).
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_exchange.h"
#include "engine/hgj_memory.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/float.h"
#include "utils/memutils.h"

/* Of a process's memory limit, for its table, and for images. */
#define TABLE_SHARE(limit)	((limit) / 9 * 4)

/* Partitions for each process, so that they end at about the same time. */
#define PARTITIONS_EACH		4

/* Step 3: groups of a table that is in the caches. */
#define CACHED_GROUPS		16384

/* Step 3: of how many groups one is noted when it is given away, and bits to note them in. */
#define SAMPLED_GROUPS		64
#define SAMPLE_BITS			(1024 * 1024)

/* Bytes of an image that are mapped between looks at interrupts. */
#define POPULATED_BYTES		((Size) 64 * 1024 * 1024)

/* Bytes of a group besides its row, more or less. */
#define VALUE_BYTES			48

/* The hash's bits that say which partition; the group table looks at the others. */
#define HASH_BITS			32

void
hgj_exchange_file_name(char *name, Size bytes, uint32 part)
{
	snprintf(name, bytes, "groups%u", part);
}

/* Of shared memory, in front of the reports. */
static Size
shared_bytes(const HgjAggState *state)
{
	return state->exchange.nkeys > 0 ? MAXALIGN(sizeof(HgjSharedExchange)) : 0;
}

/* Nothing has been done yet. */
static void
reset_shared(HgjSharedExchange *shared)
{
	hgj_meeting_init(&shared->input);
	pg_atomic_init_u32(&shared->nparts, 0);
	pg_atomic_init_u64(&shared->images, InvalidDsaPointer);
	pg_atomic_init_u64(&shared->bytes, 0);
	pg_atomic_init_u32(&shared->next, 0);
	hgj_exchange_values_init(&shared->range);
}

/* Enough for every process to have some, and for each to fit into a table. */
static uint32
partitions_wanted(const HgjAggState *state, int processes)
{
	double		bytes = state->groups.expected * processes *
		(state->groups.stride + VALUE_BYTES);
	double		wanted = Max(2 * bytes / Max(state->groups.limit, 1),
							 (double) PARTITIONS_EACH * processes);

	return pg_nextpower2_32((uint32) Min(wanted, (double) HGJ_MOST_PARTITIONS));
}

/* EstimateDSMCustomScan callback. */
Size
hgj_exchange_estimate(CustomScanState *node, ParallelContext *pcxt)
{
	return add_size(shared_bytes((HgjAggState *) node),
					hgj_reports_estimate(node, pcxt));
}

/* InitializeDSMCustomScan callback, in the leader: step 1. */
void
hgj_exchange_init(CustomScanState *node, ParallelContext *pcxt, void *coordinate)
{
	HgjAggState *state = (HgjAggState *) node;
	HgjSharedExchange *shared = coordinate;

	hgj_reports_share(node, pcxt, (char *) coordinate + shared_bytes(state));
	if (state->exchange.nkeys == 0)
		return;
	memset(shared, 0, sizeof(*shared));
	reset_shared(shared);
	pg_atomic_init_u64(&shared->stale, InvalidDsaPointer);
	shared->most_parts = pcxt->nworkers + 1;
	shared->npartitions = partitions_wanted(state, shared->most_parts);
	shared->seed = state->groups.seed;
	if (pcxt->seg == NULL)
		return;
	shared->segment = dsm_segment_handle(pcxt->seg);
	SharedFileSetInit(&shared->files, pcxt->seg);
	state->exchange.shared = shared;
}

/* ReInitializeDSMCustomScan callback: new processes will come. */
void
hgj_exchange_init_again(CustomScanState *node, ParallelContext *pcxt,
						void *coordinate)
{
	HgjAggState *state = (HgjAggState *) node;
	HgjSharedExchange *shared = coordinate;

	hgj_reports_attach(node, (char *) coordinate + shared_bytes(state));
	hgj_exchange_end_run(state);
	if (state->exchange.nkeys == 0 || pcxt->seg == NULL)
		return;
	state->exchange.shared = shared;
	/* who has made some has freed what was stale then */
	if (DsaPointerIsValid(pg_atomic_read_u64(&shared->images)))
		pg_atomic_write_u64(&shared->stale, pg_atomic_read_u64(&shared->images));
	reset_shared(shared);
	SharedFileSetDeleteAll(&shared->files);
}

/* InitializeWorkerCustomScan callback. */
void
hgj_exchange_attach(CustomScanState *node, shm_toc *toc, void *coordinate)
{
	HgjAggState *state = (HgjAggState *) node;
	HgjSharedExchange *shared = coordinate;

	hgj_reports_attach(node, (char *) coordinate + shared_bytes(state));
	if (state->exchange.nkeys == 0)
		return;
	SharedFileSetAttach(&shared->files, dsm_find_mapping(shared->segment));
	state->exchange.shared = shared;
}

/* ShutdownCustomScan callback: shared memory is not looked at afterwards. */
void
hgj_exchange_shutdown(CustomScanState *node)
{
	hgj_reports_shutdown(node);
	hgj_exchange_end_run((HgjAggState *) node);
	((HgjAggState *) node)->exchange.shared = NULL;
}

/* At executor start, when the layout of groups is known. */
void
hgj_exchange_setup(HgjAggState *state, int nkeys)
{
	HgjAggExchange *exchange = &state->exchange;
	HgjGroups  *merged = &exchange->merged;

	exchange->nkeys = nkeys;
	state->result = &state->groups;
	if (nkeys == 0)
		return;
	state->groups.limit = TABLE_SHARE(state->groups.limit);
	*merged = state->groups;
	merged->keys = palloc(mul_size(Max(merged->nkeys, 1), sizeof(HgjGroupKey)));
	for (int k = 0; k < merged->nkeys; k++)
	{
		/* values stand there, whatever the join's columns have */
		merged->keys[k] = state->groups.keys[k];
		merged->keys[k].dictionary = NULL;
		merged->keys[k].kind = merged->keys[k].value_kind;
	}
	exchange->keys = palloc0(mul_size(Max(merged->nkeys, 1), sizeof(HgjBuffer)));
	exchange->batch.vectors = palloc0(mul_size(Max(state->ncolumns, 1),
											   sizeof(HgjVector)));
}

/* What it takes to write and read records, once. */
static void
get_ready(HgjAggState *state)
{
	HgjAggExchange *exchange = &state->exchange;
	HgjSharedExchange *shared = exchange->shared;

	if (exchange->items == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(state->context);

		hgj_groups_init(&exchange->merged, state->context);
		hgj_groups_reserve(&exchange->merged, HGJ_EXCHANGE_BLOCK);
		for (int k = 0; k < exchange->merged.nkeys; k++)
			hgj_buffer_reserve(state->context, &exchange->keys[k], sizeof(Datum),
							   HGJ_EXCHANGE_BLOCK);
		exchange->items = palloc(HGJ_EXCHANGE_BLOCK * sizeof(char *));
		exchange->files = palloc0(mul_size(shared->most_parts, sizeof(BufFile *)));
		MemoryContextSwitchTo(old);
	}
	exchange->merged.seed = shared->seed;
}

/*
 * Step 2.  False: there is nothing to read for this process, which has waited until
 * the groups of the others can be had.
 */
bool
hgj_exchange_begin(HgjAggState *state)
{
	HgjAggExchange *exchange = &state->exchange;
	HgjSharedExchange *shared = exchange->shared;

	if (shared == NULL)
		return true;
	exchange->area = state->css.ss.ps.state->es_query_dsa;
	get_ready(state);
	hgj_shared_list_free(exchange->area, pg_atomic_exchange_u64(&shared->stale,
																InvalidDsaPointer));
	if (hgj_meeting_join(&shared->input))
	{
		exchange->part = pg_atomic_fetch_add_u32(&shared->nparts, 1);
		exchange->reading = true;
		exchange->has_divided = exchange->by_value = false;
		exchange->npartitions = shared->npartitions;
		exchange->table_rows = 0;
		exchange->next_look = CACHED_GROUPS;
		exchange->given = 0;
		if (exchange->given_sample)
			memset(exchange->given_sample, 0, SAMPLE_BITS / BITS_PER_BYTE);
		return true;
	}
	hgj_meeting_wait(&shared->input, HGJ_WAIT_GROUPS);
	hgj_exchange_agree(exchange);
	exchange->returning = true;
	state->result = &exchange->merged;
	return false;
}

/* The first nkeys keys of a block of n items become the batch's. */
void
hgj_exchange_load_keys(HgjAggState *state, HgjExchangeKey key, int nkeys, uint32 n)
{
	HgjAggExchange *exchange = &state->exchange;

	for (int k = 0; k < nkeys; k++)
	{
		HgjVector  *vector = &exchange->keys[k].vector;
		Datum	   *values = vector->values;

		hgj_vector_all_valid(vector, HGJ_EXCHANGE_BLOCK);
		for (uint32 i = 0; i < n; i++)
			if (!key(state, exchange->items[i], k, &values[i]))
				hgj_vector_set_null(vector, i);
		exchange->batch.vectors[exchange->merged.keys[k].column] = *vector;
	}
	exchange->batch.nrows = n;
}

/* The partitions of the groups in the table: by group, and how many each has. */
static void
find_partitions(HgjAggState *state, uint16 *partitions, uint32 *counts)
{
	HgjAggExchange *exchange = &state->exchange;
	HgjGroups  *merged = &exchange->merged;
	HgjGroups  *groups = &state->groups;
	uint32		mask = exchange->npartitions - 1;
	int			shift = HASH_BITS - pg_popcount32(mask);

	for (uint32 first = 0; first < groups->ngroups; first += HGJ_EXCHANGE_BLOCK)
	{
		uint32		n = Min(groups->ngroups - first, HGJ_EXCHANGE_BLOCK);

		CHECK_FOR_INTERRUPTS();
		for (uint32 i = 0; i < n; i++)
			exchange->items[i] = hgj_group_row(groups, first + i);
		hgj_exchange_load_keys(state, hgj_agg_group_key, merged->ntelling, n);
		hgj_groups_hash_rows(merged, &exchange->batch, exchange->nkeys);
		for (uint32 i = 0; i < n; i++)
		{
			partitions[first + i] = mask == 0 ? 0 :
				((uint32) merged->hashes[i] >> shift) & mask;
			counts[partitions[first + i]]++;
		}
	}
}

/* What is known of the groups in the table when they are to be written. */
typedef struct Division
{
	uint16	   *partitions;		/* partition of each group */
	uint32	   *counts;			/* number of groups in each partition */
	Size	   *bytes;			/* what the records of each partition take */
	Size		all_bytes;		/* what all records take */
	Size		packed;			/* what each takes, if they are short; else 0 */
} Division;

static Division
divide_groups(HgjAggState *state)
{
	HgjGroups  *groups = &state->groups;
	uint32		npartitions = state->exchange.npartitions;
	Division	division = {
		MemoryContextAllocHuge(state->context, mul_size(Max(groups->ngroups, 1), sizeof(uint16))),
		palloc0(mul_size(npartitions, sizeof(uint32))),
		palloc0(mul_size(npartitions, sizeof(Size))),
		0,
		hgj_agg_packed_bytes(state)
	};

	if (state->exchange.by_value)
		hgj_exchange_value_partitions(state, division.partitions, division.counts);
	else
		find_partitions(state, division.partitions, division.counts);
	for (uint32 p = 0; p < npartitions; p++)
		division.bytes[p] = mul_size(division.counts[p], division.packed);
	for (uint32 g = 0; division.packed == 0 && g < groups->ngroups; g++)
	{
		Size	   *bytes = &division.bytes[division.partitions[g]];

		*bytes = add_size(*bytes, hgj_agg_record_bytes(state, hgj_group_row(groups, g)));
	}
	for (uint32 p = 0; p < npartitions; p++)
		division.all_bytes = add_size(division.all_bytes, division.bytes[p]);
	return division;
}

static void
free_division(Division *division)
{
	pfree(division->partitions);
	pfree(division->counts);
	pfree(division->bytes);
}

/* The groups in the table, by partition. */
static uint32 *
sort_groups(HgjAggState *state, const Division *division)
{
	uint32		ngroups = state->groups.ngroups;
	uint32		npartitions = state->exchange.npartitions;
	uint32	   *order = MemoryContextAllocHuge(state->context,
											   mul_size(Max(ngroups, 1), sizeof(uint32)));
	uint32	   *at = palloc(mul_size(npartitions, sizeof(uint32)));
	uint32		sum = 0;

	for (uint32 p = 0; p < npartitions; p++)
	{
		at[p] = sum;
		sum += division->counts[p];
	}
	for (uint32 g = 0; g < ngroups; g++)
		order[at[division->partitions[g]]++] = g;
	pfree(at);
	return order;
}

/* Is there memory for an image of so many bytes?  Then it is counted. */
static bool
image_fits(HgjAggState *state, Size bytes)
{
	HgjSharedExchange *shared = state->exchange.shared;
	uint64		most = (uint64) state->groups.limit * shared->most_parts;

	if (pg_atomic_add_fetch_u64(&shared->bytes, bytes) <= most)
		return true;
	pg_atomic_sub_fetch_u64(&shared->bytes, bytes);
	return false;
}

/* An image with room for records of so many bytes, in the list. */
static HgjExchangeImage *
create_image(HgjAggExchange *exchange, Size record_bytes)
{
	HgjSharedExchange *shared = exchange->shared;
	Size		size = add_size(record_bytes,
								MAXALIGN(offsetof(HgjExchangeImage, runs) +
										 exchange->npartitions * sizeof(HgjImageRun)));
	HgjExchangeImage *image =
		hgj_shared_list_add(exchange->area, &shared->images, size,
							gettext_noop("Failed on request of size %zu in shared memory for the groups of a HashGraphAgg."));

	image->part = exchange->part;
	/* a fault for each of its pages takes longer than writing the records does */
	for (Size at = 0; at < size; at += POPULATED_BYTES)
	{
		CHECK_FOR_INTERRUPTS();
		hgj_mem_populate((char *) image + at, Min(size - at, POPULATED_BYTES));
	}
	return image;
}

/*
 * The records to memory, behind the runs.  Groups are gone through as they stand in the table:
 * that is larger than the caches, and each partition's end is one place.
 */
static void
write_to_memory(HgjAggState *state, HgjExchangeImage *image, const Division *division)
{
	uint32		npartitions = state->exchange.npartitions;
	Size	   *ends = palloc(mul_size(npartitions, sizeof(Size)));
	Size		at = MAXALIGN(offsetof(HgjExchangeImage, runs) + npartitions * sizeof(HgjImageRun));

	image->on_file = false;
	image->packed = division->packed;
	for (uint32 p = 0; p < npartitions; p++)
	{
		image->runs[p].offset = ends[p] = at;
		at += division->bytes[p];
	}
	for (uint32 g = 0; g < state->groups.ngroups; g++)
	{
		char	   *row = hgj_group_row(&state->groups, g);
		Size		bytes = division->packed;
		Size	   *end = &ends[division->partitions[g]];

		if (g % HGJ_EXCHANGE_BLOCK == 0)
			CHECK_FOR_INTERRUPTS();
		if (bytes > 0)
			hgj_agg_pack(state, row, (char *) image + *end);
		else
		{
			bytes = hgj_agg_record_bytes(state, row);
			hgj_agg_record_write(state, row, (char *) image + *end, bytes);
		}
		*end += bytes;
	}
	state->exchange.total_bytes += division->all_bytes;
	pfree(ends);
}

/* The records to this process's file, partition by partition. */
static void
write_to_file(HgjAggState *state, HgjExchangeImage *image, const Division *division)
{
	HgjAggExchange *exchange = &state->exchange;
	uint32	   *order = sort_groups(state, division);
	const uint32 *next = order;
	char		name[24];

	image->on_file = true;
	image->packed = 0;
	if (exchange->file == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(state->context);

		hgj_exchange_file_name(name, sizeof(name), exchange->part);
		exchange->file = BufFileCreateFileSet(&exchange->shared->files.fs, name);
		MemoryContextSwitchTo(old);
	}
	for (uint32 p = 0; p < exchange->npartitions; p++)
	{
		BufFileTell(exchange->file, &image->runs[p].fileno, &image->runs[p].offset);
		for (uint32 i = 0; i < image->runs[p].ngroups; i++)
		{
			char	   *row = hgj_group_row(&state->groups, *next++);
			Size		bytes = hgj_agg_record_bytes(state, row);
			char	   *record = palloc_extended(bytes, MCXT_ALLOC_HUGE);

			CHECK_FOR_INTERRUPTS();
			hgj_agg_record_write(state, row, record, bytes);
			BufFileWrite(exchange->file, record, bytes);
			exchange->total_disk += bytes;
			pfree(record);
		}
	}
	pfree(order);
}

/*
 * Step 3: note some of the groups that are about to be given away.  True: most of them are new, for all
 * that has been noted so far.
 */
static bool
are_new(HgjAggState *state)
{
	HgjAggExchange *exchange = &state->exchange;
	uint32		n = 0;
	uint32		again = 0;

	if (exchange->given_sample == NULL)
		exchange->given_sample = MemoryContextAllocZero(state->context, SAMPLE_BITS / BITS_PER_BYTE);
	for (uint32 s = 0; s < state->groups.nslots; s++)
	{
		uint32		hash = (uint32) (state->groups.slots[s] >> 32);
		uint32		bit = hash / SAMPLED_GROUPS % SAMPLE_BITS;
		uint8	   *byte = &exchange->given_sample[bit / BITS_PER_BYTE];

		if (state->groups.slots[s] == 0 || hash % SAMPLED_GROUPS != 0)
			continue;
		n++;
		again += (*byte >> bit % BITS_PER_BYTE) & 1;
		*byte |= 1 << bit % BITS_PER_BYTE;
	}
	return again < n / 2;
}

/*
 * Step 3: after so many rows more have come to their groups: is a table of them of no use?  What the
 * planner expects of the input is believed until twice as much has come.
 */
bool
hgj_exchange_groups_in_vain(HgjAggState *state, uint32 rows)
{
	HgjAggExchange *exchange = &state->exchange;
	double		ngroups = state->groups.ngroups;
	double		expected = state->child->plan->plan_rows;

	exchange->table_rows += rows;
	if (exchange->shared == NULL || ngroups < exchange->next_look || state->groups.direct)
		return false;
	if (2 * state->groups.expected <= expected || exchange->given >= 2 * expected ||
		exchange->file != NULL ||
		ngroups * ngroups <= 2 * expected * ((double) exchange->table_rows - ngroups))
		exchange->next_look *= 2;
	else if (!are_new(state))
		exchange->next_look = get_float8_infinity();
	else
	{
		exchange->given += ngroups;
		return true;
	}
	return false;
}

/* Step 3: an image of the groups in the table, which can be forgotten then. */
void
hgj_exchange_empty_table(HgjAggState *state)
{
	HgjAggExchange *exchange = &state->exchange;
	HgjGroups  *groups = &state->groups;
	Division	division = divide_groups(state);
	bool		fits = image_fits(state, division.all_bytes);
	HgjExchangeImage *image = create_image(exchange, fits ? division.all_bytes : 0);

	for (uint32 p = 0; p < exchange->npartitions; p++)
		image->runs[p].ngroups = division.counts[p];
	if (fits)
		write_to_memory(state, image, &division);
	else
		write_to_file(state, image, &division);
	exchange->total_groups += groups->ngroups;
	exchange->has_divided = true;
	exchange->table_rows = 0;
	/* who returns them counts them */
	state->counts.groups -= groups->ngroups;
	exchange->total_by_value += exchange->by_value ? groups->ngroups : 0;
	exchange->total_short += image->packed > 0 ? groups->ngroups : 0;
	free_division(&division);
}

/* Step 5, of one of those who took part. */
static void
decide(HgjAggExchange *exchange, HgjExchangeOutcome outcome)
{
	hgj_meeting_decide(&exchange->shared->input, outcome);
	exchange->reading = false;
}

/* Step 4: there is no more input. */
void
hgj_exchange_end_input(HgjAggState *state)
{
	HgjAggExchange *exchange = &state->exchange;
	HgjSharedExchange *shared = exchange->shared;

	if (!exchange->reading)
		return;
	state->kept = false;
	hgj_exchange_offer_values(state);
	(void) hgj_meeting_arrive(&shared->input, HGJ_WAIT_GROUPS);
	if (pg_atomic_read_u32(&shared->nparts) == 1 &&
		!DsaPointerIsValid(pg_atomic_read_u64(&shared->images)))
	{
		decide(exchange, HGJ_EXCHANGE_ALONE);
		return;
	}
	hgj_exchange_agree(exchange);
	hgj_exchange_empty_table(state);
	if (exchange->file)
	{
		BufFileExportFileSet(exchange->file);
		BufFileClose(exchange->file);
		exchange->file = NULL;
	}
	(void) hgj_meeting_arrive(&shared->input, HGJ_WAIT_GROUPS);
	decide(exchange, HGJ_EXCHANGE_DIVIDED);
	exchange->returning = true;
	state->result = &exchange->merged;
	state->ngroups = 0;
}

/* Step 5: the groups of another partition are in the result; false: there is none. */
bool
hgj_exchange_next(HgjAggState *state)
{
	HgjAggExchange *exchange = &state->exchange;
	HgjSharedExchange *shared = exchange->shared;
	HgjGroups  *merged = &exchange->merged;

	if (!exchange->returning || shared == NULL ||
		hgj_meeting_outcome(&shared->input) != HGJ_EXCHANGE_DIVIDED)
		return false;
	for (int a = 0; a < state->naggs; a++)
		state->aggs[a].table = merged;
	do
	{
		uint32		partition;

		hgj_groups_clear(merged);
		MemoryContextReset(merged->states);
		if (hgj_exchange_combine_rest(state))
			continue;
		partition = pg_atomic_fetch_add_u32(&shared->next, 1);
		if (partition >= exchange->npartitions)
			return false;
		hgj_exchange_combine(state, partition);
	} while (merged->ngroups == 0);
	state->next_group = 0;
	state->ran = true;
	state->ngroups += merged->ngroups;
	state->counts.groups += merged->ngroups;
	state->peak_bytes = Max(state->peak_bytes, hgj_groups_bytes(merged));
	return true;
}

/*
 * This run is over: let go of files.  Safe at any time but on abort, and again.
 */
void
hgj_exchange_end_run(HgjAggState *state)
{
	HgjAggExchange *exchange = &state->exchange;

	if (exchange->nkeys == 0)
		return;
	if (exchange->file)
		BufFileClose(exchange->file);
	exchange->file = NULL;
	hgj_exchange_close_files(exchange);
	if (exchange->reading)
		BarrierDetach(&exchange->shared->input.barrier);
	exchange->reading = exchange->returning = false;
	if (exchange->items)
	{
		hgj_groups_release(&exchange->merged);
		MemoryContextReset(exchange->merged.states);
	}
	for (int a = 0; a < state->naggs; a++)
		state->aggs[a].table = &state->groups;
	state->result = &state->groups;
}

/* What is not palloc'd; safe while aborting. */
void
hgj_exchange_free_memory(HgjAggState *state)
{
	if (state->exchange.items)
		hgj_groups_release(&state->exchange.merged);
}
