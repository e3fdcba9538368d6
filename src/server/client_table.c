/*-------------------------------------------------------------------------
 *
 * client_table.c
 *	  Tables and probes of the engine whose calls are made in the GPU process.
 *
 * 1. What a table's caller holds is a number in the GPU process, and whose poll is to
 *	  be asked while waiting.
 * 2. Build rows are sent without those that are not selected, each with its id; in as
 *	  many pieces as a letter has room for.
 * 3. The batch of a probe is sent whole, because matches name its rows; matches come
 *	  back in portions that the scratch holds.
 * 4. What creates a table or a probe is not waited for.  What a table has of memory, and what is
 *	  known of it, comes with answers, and holds until something else is done with the table.
 * 5. Hints that are not worth sending (HgjMatches.skip) are left out.  Dynamic tables,
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
	bool		is_new;			/* nothing has been answered about it yet */
	bool		is_filled;		/* a pipeline fills it: what it takes is known when it is built */
	bool		knows_memory;	/* step 4: of the table as it is, this: */
	HgjMemory	memory;
	bool		knows_info;
	HgjTableInfo info;
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

/* HgjAnswered of calls that answer with it. */
static void
note_memory(HgjRemote *owner, const HgjLetterCall *answer)
{
	HgjTable   *table = (HgjTable *) owner;

	memcpy(&table->memory, &answer->result[HGJ_ANSWER_MEMORY], sizeof(table->memory));
	table->knows_memory = !table->is_filled;
	table->is_new = false;
}

/* See client.h. */
void
hgj_remote_is_used(HgjTable *table)
{
	table->knows_memory = table->knows_info = table->is_new = false;
}

/* See client.h. */
void
hgj_remote_is_filled(HgjTable *table)
{
	hgj_remote_is_used(table);
	table->is_filled = true;
}

static HgjStatus
table_create(const HgjTableSpec *spec, HgjTable **table, HgjError *err)
{
	HgjTable   *made = hgj_channel_begin_use(sizeof(HgjTable), spec->poll, spec->poll_arg,
											 err);
	HgjLetterCall *call;
	HgjTableSpec *sent;

	*table = NULL;
	if (made == NULL)
		return err->status;
	made->nwords = spec->nwords;
	made->is_new = true;
	call = hgj_letter_call(&made->remote, HGJ_CALL_TABLE_CREATE, sizeof(*sent), err);
	if (call == NULL)
	{
		hgj_channel_end_use(&made->remote);
		free(made);
		return err->status;
	}
	sent = (HgjTableSpec *) hgj_call_bytes(call);
	*sent = *spec;
	sent->poll = NULL;
	sent->poll_arg = NULL;
	hgj_letter_tell(note_memory);
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
	uint32		n = to - from;
	size_t		ids_bytes = ((size_t) n * sizeof(uint32) + 7) / 8 * 8;
	HgjLetterCall *call = hgj_letter_call(&table->remote, HGJ_CALL_APPEND,
										  ids_bytes + (size_t) n * table->nwords * sizeof(uint64),
										  err);
	bool		by_id = keys->sel || row_ids;
	uint32	   *ids;
	uint64	   *words;
	HgjStatus	status;

	if (call == NULL)
		return err->status;
	hgj_remote_is_used(table);
	ids = (uint32 *) hgj_call_bytes(call);
	words = (uint64 *) (hgj_call_bytes(call) + ids_bytes);
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
	call->arg[0] = n;
	call->arg[1] = first_row + from;
	call->arg[2] = by_id;
	status = hgj_letter_send(&table->remote, err);
	if (status == HGJ_OK)
		note_memory(&table->remote, call);
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
	const HgjLetterCall *answer;
	HgjStatus	status;

	hgj_remote_is_used(table);
	status = hgj_letter_ask(&table->remote, HGJ_CALL_BUILD, total_rows, 0, &answer, err);
	if (status == HGJ_OK)
	{
		table->is_filled = false;
		note_memory(&table->remote, answer);
		memcpy(&table->info, hgj_channel_scratch(), sizeof(table->info));
		table->knows_info = true;
	}
	return status;
}

static void
table_info(const HgjTable *table, HgjTableInfo *info)
{
	if (table->knows_info && !hgj_channel_is_lost(&table->remote))
		*info = table->info;
	else
		hgj_letter_fetch(table->remote, HGJ_CALL_INFO, info, sizeof(*info));
}

/* A table without rows takes next to nothing: that is not worth a message. */
static void
table_memory(const HgjTable *table, HgjMemory *memory)
{
	if ((table->knows_memory || table->is_new) && !hgj_channel_is_lost(&table->remote))
		*memory = table->memory;
	else
		hgj_letter_fetch(table->remote, HGJ_CALL_MEMORY, memory, sizeof(*memory));
}

static uint32
table_batch_rows(const HgjTable *table)
{
	return (uint32) hgj_letter_fetch_number(table->remote, HGJ_CALL_BATCH_ROWS, 0, 1024);
}

static HgjStatus
table_mark(HgjTable *table, const uint32 *rows, uint32 n, HgjError *err)
{
	HgjStatus	status = HGJ_OK;

	hgj_remote_is_used(table);
	for (uint32 from = 0; from < n && status == HGJ_OK; from += SCRATCH_ROWS)
	{
		uint32		some = Min(n - from, SCRATCH_ROWS);
		HgjLetterCall *call = hgj_letter_call(&table->remote, HGJ_CALL_MARK,
											  some * sizeof(uint32), err);

		if (call == NULL)
			return err->status;
		memcpy(hgj_call_bytes(call), rows + from, some * sizeof(uint32));
		call->arg[0] = some;
		status = hgj_letter_send(&table->remote, err);
	}
	return status;
}

static bool
table_is_marked(const HgjTable *table, uint32 row)
{
	return hgj_letter_fetch_number(table->remote, HGJ_CALL_IS_MARKED, row, 0) != 0;
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
		const HgjLetterCall *answer;
		HgjStatus	status = hgj_letter_ask(&remote, HGJ_CALL_UNMATCHED, at, some, &answer, err);

		if (status != HGJ_OK)
			return status;
		at = (uint32) answer->result[0];
		memcpy(rows + found, hgj_channel_scratch(), answer->result[1] * sizeof(uint32));
		found += (uint32) answer->result[1];
		if (answer->result[1] < some)
			break;
	}
	*cursor = at;
	*n = found;
	return HGJ_OK;
}

static HgjStatus
table_clear_marks(HgjTable *table, HgjError *err)
{
	hgj_remote_is_used(table);
	return hgj_letter_ask(&table->remote, HGJ_CALL_CLEAR_MARKS, 0, 0, NULL, err);
}

/* ---- probes ------------------------------------------------------------- */

/* HgjAnswered of PROBE_CREATE, whose owner is the probe. */
static void
note_probe(HgjRemote *owner, const HgjLetterCall *answer)
{
	note_memory(&((HgjProbe *) owner)->table->remote, answer);
}

static HgjStatus
probe_create(HgjTable *table, HgjProbe **probe, HgjError *err)
{
	HgjProbe   *made = calloc(1, sizeof(HgjProbe));
	HgjLetterCall *call;

	*probe = NULL;
	if (made == NULL)
		return hgj_fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	made->remote = table->remote;
	made->table = table;
	made->nwords = table->nwords;
	if (!hgj_channel_number(&made->remote, err))
	{
		free(made);
		return err->status;
	}
	call = hgj_letter_call(&made->remote, HGJ_CALL_PROBE_CREATE, 0, err);
	if (call == NULL)
	{
		hgj_channel_free_number(&made->remote);
		free(made);
		return err->status;
	}
	call->arg[0] = table->remote.number;
	hgj_letter_tell(note_probe);
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
	hgj_channel_free_number(&probe->remote);
	free(probe);
}

/* Step 3: an array of the batch, which begins at `offset` of `total` bytes. */
static HgjStatus
upload(HgjProbe *probe, const void *from, size_t bytes, size_t offset,
	   size_t total, HgjError *err)
{
	for (size_t done = 0; done < bytes; done += HGJ_SCRATCH_BYTES)
	{
		size_t		some = Min(bytes - done, (size_t) HGJ_SCRATCH_BYTES);
		HgjLetterCall *call = hgj_letter_call(&probe->remote, HGJ_CALL_UPLOAD, some, err);

		if (call == NULL)
			return err->status;
		memcpy(hgj_call_bytes(call), (const char *) from + done, some);
		call->arg[0] = offset + done;
		call->arg[1] = some;
		call->arg[2] = total;
	}
	return HGJ_OK;
}

static HgjStatus
probe_begin(HgjProbe *probe, const HgjKeys *keys, HgjProbeMode mode, uint32 flags,
			HgjError *err)
{
	size_t		column = (size_t) keys->nrows * sizeof(uint64);
	size_t		selected = keys->sel ? (size_t) keys->nsel * sizeof(uint32) : 0;
	size_t		total = column * probe->nwords + selected;
	HgjStatus	status = HGJ_OK;
	HgjLetterCall *call;

	hgj_remote_is_used(probe->table);
	if (mode == HGJ_MATCH_COUNT)
		return hgj_fail(err, HGJ_UNSUPPORTED, "the GPU process does not count matches");
	for (uint32 w = 0; w < probe->nwords && status == HGJ_OK; w++)
		status = upload(probe, keys->words[w], column, w * column, total, err);
	if (status == HGJ_OK && selected)
		status = upload(probe, keys->sel, selected, column * probe->nwords, total, err);
	if (status != HGJ_OK)
		return status;
	call = hgj_letter_call(&probe->remote, HGJ_CALL_PROBE_BEGIN, 0, err);
	if (call == NULL)
		return err->status;
	call->arg[0] = keys->nrows;
	call->arg[1] = keys->sel ? keys->nsel : UINT64_MAX;
	call->arg[2] = mode;
	call->arg[3] = flags;
	status = hgj_letter_send(&probe->remote, err);
	hgj_remote_is_used(probe->table);	/* the probe may have been created with it */
	return status;
}

static HgjStatus
probe_next(HgjProbe *probe, HgjMatches *matches, HgjError *err)
{
	uint32		capacity = Min(matches->capacity, SCRATCH_ROWS / 2);
	const HgjLetterCall *answer;
	const uint32 *rows;
	HgjStatus	status = hgj_letter_ask(&probe->remote, HGJ_CALL_PROBE_NEXT, Max(capacity, 1), 0,
										&answer, err);

	if (status != HGJ_OK)
		return status;
	matches->n = (uint32) answer->result[0];
	matches->done = answer->result[1] != 0;
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
