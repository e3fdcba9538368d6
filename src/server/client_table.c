/*-------------------------------------------------------------------------
 *
 * client_table.c
 *	  Tables and probes of the engine whose calls are made in the GPU process.
 *
 * 1. What a table's caller holds is a number in the GPU process, and whose poll is to
 *	  be asked while waiting.
 * 2. Build rows are sent without those that are not selected, each with its id; in as
 *	  many pieces as the channel's scratch makes of them.
 * 3. The batch of a probe is sent whole, because matches name its rows; matches come
 *	  back in portions that the scratch holds.
 * 4. Hints that are not worth sending (HgjMatches.skip) are left out.  Dynamic tables,
 *	  keys on the device, and counting matches without their rows are for callers in the
 *	  engine's own process.
 *
 * Memory: a few bytes of malloc for each, from create to destroy (engine.h).  Locks:
 * none.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "engine/checks.h"
#include "server/client.h"

struct HgjTable
{
	HgjRemote	remote;
	uint32		nwords;
	bool		knows_memory;	/* as of the last answer, and nothing has been added since */
	HgjMemory	memory;
};

struct HgjProbe
{
	HgjRemote	remote;
	HgjTable   *table;
	uint32		nwords;
};

#define SCRATCH_ROWS	(HGJ_SCRATCH_BYTES / sizeof(uint32))

/* See client.h. */
HgjRemote *
hgj_remote_table(HgjTable *table)
{
	return &table->remote;
}

/* ---- tables ------------------------------------------------------------- */

/* After a call that answers with it. */
static void
note_memory(HgjTable *table, const HgjChannel *channel)
{
	memcpy(&table->memory, &channel->result[HGJ_ANSWER_MEMORY], sizeof(table->memory));
	table->knows_memory = true;
}

/* See client.h. */
void
hgj_remote_is_used(HgjTable *table)
{
	table->knows_memory = false;
}

static HgjStatus
table_create(const HgjTableSpec *spec, HgjTable **table, HgjError *err)
{
	HgjTable   *made = hgj_channel_begin_use(sizeof(HgjTable), spec->poll, spec->poll_arg,
											 err);
	HgjChannel *channel;
	HgjTableSpec sent = *spec;
	HgjStatus	status;

	*table = NULL;
	if (made == NULL)
		return err->status;
	made->nwords = spec->nwords;
	channel = hgj_channel_request(&made->remote, err);
	status = channel ? HGJ_OK : err->status;
	if (channel)
	{
		sent.poll = NULL;
		sent.poll_arg = NULL;
		memcpy(hgj_channel_scratch(), &sent, sizeof(sent));
		status = hgj_channel_call(&made->remote, HGJ_CALL_TABLE_CREATE, err);
	}
	if (status != HGJ_OK)
	{
		hgj_channel_end_use(&made->remote);
		free(made);
		return status;
	}
	made->remote.number = (uint32) channel->result[0];
	note_memory(made, channel);
	*table = made;
	return HGJ_OK;
}

static void
table_destroy(HgjTable *table)
{
	if (table == NULL)
		return;
	hgj_channel_destroy(&table->remote, true);
	hgj_channel_end_use(&table->remote);
	free(table);
}

/* Step 2: rows `from` to `to` - 1 of those selected. */
static HgjStatus
append_some(HgjTable *table, const HgjKeys *keys, uint32 first_row,
			const uint32 *row_ids, uint32 from, uint32 to, HgjError *err)
{
	HgjChannel *channel = hgj_channel_request(&table->remote, err);
	uint32		n = to - from;
	bool		by_id = keys->sel || row_ids;
	char	   *scratch;
	uint32	   *ids;
	uint64	   *words;
	HgjStatus	status;

	if (channel == NULL)
		return err->status;
	scratch = hgj_channel_scratch();
	ids = (uint32 *) scratch;
	words = (uint64 *) (scratch + ((size_t) n * sizeof(uint32) + 7) / 8 * 8);
	for (uint32 i = 0; by_id && i < n; i++)
	{
		uint32		row = keys->sel ? keys->sel[from + i] : from + i;

		ids[i] = row_ids ? row_ids[row] : first_row + row;
	}
	for (uint32 w = 0; w < table->nwords; w++, words += n)
	{
		const uint64 *column = keys->words[w];

		if (!keys->sel)
			memcpy(words, column + from, (size_t) n * sizeof(uint64));
		else
			for (uint32 i = 0; i < n; i++)
				words[i] = column[keys->sel[from + i]];
	}
	channel->arg[0] = n;
	channel->arg[1] = first_row + from;
	channel->arg[2] = by_id;
	status = hgj_channel_call(&table->remote, HGJ_CALL_APPEND, err);
	if (status == HGJ_OK)
		note_memory(table, channel);
	return status;
}

/*
 * A batch of which a part has been appended cannot be taken back, so that a call that
 * is cancelled between two parts could not be repeated: only the first one polls.
 */
static HgjStatus
table_append(HgjTable *table, const HgjKeys *keys, uint32 first_row,
			 const uint32 *row_ids, HgjError *err)
{
	uint32		n = keys->sel ? keys->nsel : keys->nrows;
	uint32		most = (HGJ_SCRATCH_BYTES - 8) /
		(table->nwords * sizeof(uint64) + sizeof(uint32));
	int			(*poll) (void *) = table->remote.poll;
	HgjStatus	status = HGJ_OK;

	for (uint32 from = 0; from < n && status == HGJ_OK; from += most)
	{
		status = append_some(table, keys, first_row, row_ids, from,
							 Min(n, from + most), err);
		table->remote.poll = NULL;
	}
	table->remote.poll = poll;
	return status;
}

static HgjStatus
table_build(HgjTable *table, uint32 total_rows, HgjError *err)
{
	HgjChannel *channel;
	HgjStatus	status = hgj_channel_ask(&table->remote, HGJ_CALL_BUILD, total_rows, 0,
										 &channel, err);

	if (status == HGJ_OK)
		note_memory(table, channel);
	return status;
}

static void
table_info(const HgjTable *table, HgjTableInfo *info)
{
	hgj_channel_fetch(table->remote, HGJ_CALL_INFO, info, sizeof(*info));
}

static void
table_memory(const HgjTable *table, HgjMemory *memory)
{
	if (table->knows_memory && !hgj_channel_is_lost(&table->remote))
		*memory = table->memory;
	else
		hgj_channel_fetch(table->remote, HGJ_CALL_MEMORY, memory, sizeof(*memory));
}

/* The number that a call about the table brings, or another one if it fails. */
static uint64
fetch_number(const HgjTable *table, HgjCall call, uint64 arg, uint64 otherwise)
{
	HgjRemote	remote = table->remote;
	HgjChannel *channel;
	HgjError	err;

	remote.poll = NULL;
	return hgj_channel_ask(&remote, call, arg, 0, &channel, &err) == HGJ_OK ?
		channel->result[0] : otherwise;
}

static uint32
table_batch_rows(const HgjTable *table)
{
	return (uint32) fetch_number(table, HGJ_CALL_BATCH_ROWS, 0, 1024);
}

static HgjStatus
table_mark(HgjTable *table, const uint32 *rows, uint32 n, HgjError *err)
{
	HgjStatus	status = HGJ_OK;

	hgj_remote_is_used(table);
	for (uint32 from = 0; from < n && status == HGJ_OK; from += SCRATCH_ROWS)
	{
		uint32		some = Min(n - from, SCRATCH_ROWS);
		HgjChannel *channel = hgj_channel_request(&table->remote, err);

		if (channel == NULL)
			return err->status;
		memcpy(hgj_channel_scratch(), rows + from, some * sizeof(uint32));
		channel->arg[0] = some;
		status = hgj_channel_call(&table->remote, HGJ_CALL_MARK, err);
	}
	return status;
}

static bool
table_is_marked(const HgjTable *table, uint32 row)
{
	return fetch_number(table, HGJ_CALL_IS_MARKED, row, 0) != 0;
}

static HgjStatus
table_unmatched(const HgjTable *table, uint32 *cursor, uint32 *rows, uint32 capacity,
				uint32 *n, HgjError *err)
{
	HgjRemote	remote = table->remote;
	uint32		at = *cursor;
	uint32		found = 0;

	/* fewer than asked for mean that the end was reached */
	while (found < capacity)
	{
		uint32		some = Min(capacity - found, SCRATCH_ROWS);
		HgjChannel *channel;
		HgjStatus	status = hgj_channel_ask(&remote, HGJ_CALL_UNMATCHED, at, some,
											 &channel, err);

		if (status != HGJ_OK)
			return status;
		at = (uint32) channel->result[0];
		memcpy(rows + found, hgj_channel_scratch(), channel->result[1] * sizeof(uint32));
		found += (uint32) channel->result[1];
		if (channel->result[1] < some)
			break;
	}
	*cursor = at;
	*n = found;
	return HGJ_OK;
}

static HgjStatus
table_clear_marks(HgjTable *table, HgjError *err)
{
	return hgj_channel_ask(&table->remote, HGJ_CALL_CLEAR_MARKS, 0, 0, NULL, err);
}

/* ---- probes ------------------------------------------------------------- */

static HgjStatus
probe_create(HgjTable *table, HgjProbe **probe, HgjError *err)
{
	HgjProbe   *made = calloc(1, sizeof(HgjProbe));
	HgjChannel *channel;
	HgjStatus	status;

	*probe = NULL;
	if (made == NULL)
		return hgj_fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	made->remote = table->remote;
	made->table = table;
	made->nwords = table->nwords;
	status = hgj_channel_ask(&made->remote, HGJ_CALL_PROBE_CREATE, 0, 0, &channel, err);
	if (status != HGJ_OK)
	{
		free(made);
		return status;
	}
	made->remote.number = (uint32) channel->result[0];
	note_memory(table, channel);
	*probe = made;
	return HGJ_OK;
}

static void
probe_destroy(HgjProbe *probe)
{
	if (probe == NULL)
		return;
	hgj_remote_is_used(probe->table);
	hgj_channel_destroy(&probe->remote, false);
	free(probe);
}

/* Step 3: an array of the batch, which begins at `offset` of `total` bytes. */
static HgjStatus
upload(HgjProbe *probe, const void *from, size_t bytes, size_t offset,
	   size_t total, HgjError *err)
{
	HgjStatus	status = HGJ_OK;

	for (size_t done = 0; done < bytes && status == HGJ_OK; done += HGJ_SCRATCH_BYTES)
	{
		size_t		some = Min(bytes - done, (size_t) HGJ_SCRATCH_BYTES);
		HgjChannel *channel = hgj_channel_request(&probe->remote, err);

		if (channel == NULL)
			return err->status;
		memcpy(hgj_channel_scratch(), (const char *) from + done, some);
		channel->arg[0] = offset + done;
		channel->arg[1] = some;
		channel->arg[2] = total;
		status = hgj_channel_call(&probe->remote, HGJ_CALL_UPLOAD, err);
	}
	return status;
}

static HgjStatus
probe_begin(HgjProbe *probe, const HgjKeys *keys, HgjProbeMode mode, uint32 flags,
			HgjError *err)
{
	size_t		column = (size_t) keys->nrows * sizeof(uint64);
	size_t		selected = keys->sel ? (size_t) keys->nsel * sizeof(uint32) : 0;
	size_t		total = column * probe->nwords + selected;
	HgjStatus	status = HGJ_OK;
	HgjChannel *channel;

	hgj_remote_is_used(probe->table);
	if (mode == HGJ_MATCH_COUNT)
		return hgj_fail(err, HGJ_UNSUPPORTED, "the GPU process does not count matches");
	for (uint32 w = 0; w < probe->nwords && status == HGJ_OK; w++)
		status = upload(probe, keys->words[w], column, w * column, total, err);
	if (status == HGJ_OK && selected)
		status = upload(probe, keys->sel, selected, column * probe->nwords, total, err);
	if (status != HGJ_OK)
		return status;
	channel = hgj_channel_request(&probe->remote, err);
	if (channel == NULL)
		return err->status;
	channel->arg[0] = keys->nrows;
	channel->arg[1] = keys->sel ? keys->nsel : UINT64_MAX;
	channel->arg[2] = mode;
	channel->arg[3] = flags;
	return hgj_channel_call(&probe->remote, HGJ_CALL_PROBE_BEGIN, err);
}

static HgjStatus
probe_next(HgjProbe *probe, HgjMatches *matches, HgjError *err)
{
	uint32		capacity = Min(matches->capacity, SCRATCH_ROWS / 2);
	HgjChannel *channel;
	const uint32 *rows;
	HgjStatus	status = hgj_channel_ask(&probe->remote, HGJ_CALL_PROBE_NEXT,
										 Max(capacity, 1), 0, &channel, err);

	if (status != HGJ_OK)
		return status;
	matches->n = (uint32) channel->result[0];
	matches->done = channel->result[1] != 0;
	rows = (const uint32 *) hgj_channel_scratch();
	memcpy(matches->probe_rows, rows, matches->n * sizeof(uint32));
	memcpy(matches->build_rows, rows + Max(capacity, 1), matches->n * sizeof(uint32));
	return HGJ_OK;
}

/* See client.h. */
void
hgj_server_table_methods(HgjEngine *engine)
{
	engine->table_create = table_create;
	engine->table_destroy = table_destroy;
	engine->append = table_append;
	engine->build = table_build;
	engine->info = table_info;
	engine->memory = table_memory;
	engine->probe_batch_rows = table_batch_rows;
	engine->probe_create = probe_create;
	engine->probe_destroy = probe_destroy;
	engine->probe_begin = probe_begin;
	engine->probe_next = probe_next;
	engine->mark = table_mark;
	engine->is_marked = table_is_marked;
	engine->unmatched = table_unmatched;
	engine->clear_marks = table_clear_marks;
}
