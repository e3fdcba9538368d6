/*-------------------------------------------------------------------------
 *
 * partition_file.c
 *	  Rows in temporary files, on their way to a later partition of a join
 *	  (join/partition.c) or of an aggregation (agg/agg_spill.c): the format, and
 *	  writing it (reading: partition_read.c).
 *
 * 1. A row is a record of fixed length: its key words, so that nothing is hashed
 *	  or detoasted again; the columns that the side carries, widest first; a bit
 *	  per column that says NULL; a byte of flags.  Of a by-reference value the
 *	  record has the distance from the end of the block at which it lies, or
 *	  its code in a dictionary (encode.c), or, with HGJ_PLAIN_BIT, the distance
 *	  of a value for which the dictionary had no code.
 * 2. Each partition has one block that is being filled: records from the front,
 *	  values from the back.  A full block goes, without its gap, to the end of
 *	  the one file that all partitions of a side share.  A row that is larger
 *	  than a block gets one of its own.  Where memory is not what was short (it was
 *	  a device's), blocks are kept in memory as long as there is room, and the file
 *	  is made when there is none left.
 * 3. A block knows where the partition's block before it is.  So a partition is a
 *	  chain, which is read from the newest block to the oldest, as often as
 *	  anybody likes; beside one block for reading this takes no memory.
 *
 * One file for all partitions, because each BufFile has a buffer of its own as
 * long as it is open, and there may be hundreds of partitions in few kilobytes.
 *
 * The file belongs to the resource owner, the blocks for writing to the node
 * (hgj_mem_alloc; hgj_spill_free_blocks() frees them on abort), all else, blocks
 * that are kept in memory included, is in the context that the writer was given.  No
 * locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include <fcntl.h>

#include "engine/hgj_memory.h"
#include "miscadmin.h"
#include "spill/partition_file.h"
#include "storage/fileset.h"
#include "utils/memutils.h"

/* Rows that are put into their blocks together, column by column. */
#define HGJ_SPILL_GROUP		128

/* A block that is kept in memory: this, then the block. */
typedef struct HgjHeldBlock
{
	struct HgjHeldBlock *next;
	Size		bytes;
} HgjHeldBlock;

/* Rows that have their place in a block, and are not there yet. */
typedef struct RowGroup
{
	uint32		n;
	uint32		rows[HGJ_SPILL_GROUP];
	char	   *records[HGJ_SPILL_GROUP];
	char	   *ends[HGJ_SPILL_GROUP];	/* of their blocks */
	Size		cursors[HGJ_SPILL_GROUP];	/* where values go: so far from it */
	uint8		flags[HGJ_SPILL_GROUP];
} RowGroup;

/* Step 1: lay records of these columns out. */
void
hgj_spill_layout(HgjSpillLayout *layout, MemoryContext context,
				 const HgjColumn *columns, int ncols, uint32 nwords)
{
	memset(layout, 0, sizeof(*layout));
	layout->columns = columns;
	layout->ncols = ncols;
	layout->nwords = nwords;
	layout->places = MemoryContextAllocZero(context,
											mul_size(Max(ncols, 1),
													 sizeof(HgjStoredColumn)));
	for (int i = 0; i < ncols; i++)
	{
		layout->places[i].width = columns[i].width;
		layout->by_reference |= !columns[i].attbyval;
	}
	layout->flags_byte = hgj_record_layout(layout->places, ncols,
										   nwords * sizeof(uint64));
	layout->stride = TYPEALIGN(8, layout->flags_byte + 1);
}

/*
 * Begin to write, to a file of its own.  block_bytes: a multiple of 8.  What is
 * taken of memory counts in the account.
 */
void
hgj_spill_open(HgjSpillWriter *writer, MemoryContext context,
			   HgjSpillLayout *layout, int npartitions, Size block_bytes,
			   HgjSpillRoom *room, HgjAccount *account)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	HgjSpillFile *file = palloc0(sizeof(HgjSpillFile));

	Assert(writer->file == NULL && writer->blocks == NULL);
	writer->context = context;
	writer->layout = layout;
	writer->nbuffers = npartitions;
	writer->block_bytes = block_bytes;
	writer->buffers = palloc0(mul_size(npartitions, sizeof(HgjSpillBuffer)));
	writer->blocks = hgj_alloc(mul_size(npartitions, block_bytes),
							   gettext_noop("Failed on request of size %zu for partitions of spilled rows."));
	writer->account = account;
	hgj_account_add(account, npartitions * block_bytes);
	file->users = 1;			/* whoever opens the writer */
	file->room = room;
	file->account = account;
	hgj_account_add(account, BLCKSZ);
	writer->file = file;
	for (int p = 0; p < npartitions; p++)
	{
		writer->buffers[p].block = writer->blocks + p * block_bytes;
		writer->buffers[p].run.file = file;
		writer->buffers[p].run.all_bits = ~UINT64CONST(0);
	}
	MemoryContextSwitchTo(old);
}

/*
 * Keep a block of two parts in memory, if there is room; else NULL.
 */
static char *
hold_block(HgjSpillWriter *writer, const char *front, Size front_bytes,
		   const char *back, Size back_bytes)
{
	HgjSpillFile *file = writer->file;
	HgjSpillRoom *room = file->room;
	Size		bytes = add_size(add_size(front_bytes, back_bytes),
								 sizeof(HgjHeldBlock));
	HgjHeldBlock *held;
	char	   *block;

	if (room->held.bytes > room->most || bytes > room->most - room->held.bytes)
		return NULL;
	held = MemoryContextAllocHuge(writer->context, bytes);
	held->next = file->held;
	held->bytes = bytes;
	file->held = held;
	hgj_account_add(&room->held, bytes);
	block = (char *) (held + 1);
	memcpy(block, front, front_bytes);
	memcpy(block + front_bytes, back, back_bytes);
	return block;
}

/* Now there is something that goes to it. */
static void
create_file(HgjSpillFile *file)
{
	MemoryContext old;

	if (file->file)
		return;
	old = MemoryContextSwitchTo(GetMemoryChunkContext(file));
	file->file = file->set ? BufFileCreateFileSet(file->set, file->name) :
		BufFileCreateTemp(false);
	MemoryContextSwitchTo(old);
}

static void
write_block(HgjSpillWriter *writer, const char *front, Size front_bytes,
			const char *back, Size back_bytes)
{
	HgjSpillFile *file = writer->file;

	create_file(file);
	BufFileWrite(file->file, unconstify(char *, front), front_bytes);
	if (back_bytes > 0)
		BufFileWrite(file->file, unconstify(char *, back), back_bytes);
	file->end += front_bytes + back_bytes;
}

/* Write a block out, and begin the partition's next one. */
static void
flush_block(HgjSpillWriter *writer, HgjSpillBuffer *buffer, Size block_bytes)
{
	HgjSpillRun *run = &buffer->run;
	HgjSpillBlock *header = (HgjSpillBlock *) buffer->block;
	Size		front = sizeof(HgjSpillBlock) +
		(Size) buffer->nrows * writer->layout->stride;
	const char *values = buffer->block + block_bytes - buffer->value_bytes;
	char	   *held;

	CHECK_FOR_INTERRUPTS();
	header->previous = run->newest;
	header->previous_bytes = run->newest_bytes;
	header->nrows = buffer->nrows;
	held = hold_block(writer, buffer->block, front, values, buffer->value_bytes);
	run->newest_bytes = front + buffer->value_bytes;
	if (held)
	{
		run->newest = (uint64) (uintptr_t) held;
		run->newest_bytes |= HGJ_SPILL_HELD;
	}
	else
	{
		run->newest = writer->file->end;
		write_block(writer, buffer->block, front, values, buffer->value_bytes);
	}
	run->value_bytes += buffer->value_bytes;
	buffer->nrows = 0;
	buffer->value_bytes = 0;
}

/* Does anybody look at the value of a text key? (hgj_batch_keep()) */
static inline Pointer
value_to_write(const HgjColumn *column, Pointer value)
{
	if (column->short_bytes > 0 && !VARATT_IS_EXTERNAL(value) &&
		!VARATT_IS_COMPRESSED(value) &&
		VARSIZE_ANY_EXHDR(value) <= column->short_bytes)
		return unconstify(char *, (const char *) hgj_text_placeholder());
	return value;
}

/*
 * The by-reference value of a row that goes behind the records; NULL: there is
 * none, or the dictionary has a code for it.
 */
static inline Pointer
value_of(const HgjSpillLayout *layout, const HgjColumn *column,
		 const HgjVector *vector, uint32 row)
{
	Datum		datum = ((const Datum *) vector->values)[row];

	if (hgj_vector_is_null(vector, row))
		return NULL;
	if (column->dictionary == NULL)
		return value_to_write(column, DatumGetPointer(datum));
	return layout->decoded || hgj_datum_is_plain(datum) ?
		DatumGetPointer(hgj_dictionary_value(column->dictionary, datum)) : NULL;
}

/* Bytes of all by-reference values of a row. */
static Size
row_value_bytes(const HgjSpillLayout *layout, const HgjBatch *batch, uint32 row)
{
	Size		bytes = 0;

	for (int c = 0; c < layout->ncols; c++)
	{
		const HgjColumn *column = &layout->columns[c];
		Pointer		value;

		if (column->attbyval)
			continue;
		value = value_of(layout, column, &batch->vectors[c], row);
		if (value)
			bytes = add_size(bytes, MAXALIGN(hgj_value_bytes(PointerGetDatum(value),
														  column->attlen)));
	}
	return bytes;
}

/* One by-reference column of the group. */
static void
put_values(const HgjSpillLayout *layout, RowGroup *group, const HgjColumn *column,
		   const HgjVector *vector, uint32 offset)
{
	for (uint32 i = 0; i < group->n; i++)
	{
		uint64	   *slot = (uint64 *) (group->records[i] + offset);
		Pointer		value = value_of(layout, column, vector, group->rows[i]);
		Size		size;
		char	   *to;

		if (value == NULL)
		{
			*slot = ((const Datum *) vector->values)[group->rows[i]];
			continue;
		}
		size = hgj_value_bytes(PointerGetDatum(value), column->attlen);
		group->cursors[i] += MAXALIGN(size);
		to = group->ends[i] - group->cursors[i];
		hgj_value_write(to, PointerGetDatum(value), column->attlen, size);
		memset(to + size, 0, MAXALIGN(size) - size);
		*slot = group->cursors[i] | (column->dictionary ? HGJ_PLAIN_BIT : 0);
	}
}

#define PUT_WORDS(type, from) \
	for (uint32 i = 0; i < group->n; i++) \
		*(type *) (group->records[i] + offset) = ((const type *) (from))[group->rows[i]]

static void
put_column(const HgjSpillLayout *layout, RowGroup *group, int c, const HgjVector *vector)
{
	const HgjColumn *column = &layout->columns[c];
	HgjStoredColumn *place = &layout->places[c];
	uint32		offset = place->offset;

	if (!column->attbyval)
		put_values(layout, group, column, vector, offset);
	else if (place->width == 8)
		PUT_WORDS(uint64, vector->values);
	else if (place->width == 4)
		PUT_WORDS(uint32, vector->values);
	else if (place->width == 2)
		PUT_WORDS(uint16, vector->values);
	else
		PUT_WORDS(uint8, vector->values);

	if (!vector->has_nulls)
		return;
	for (uint32 i = 0; i < group->n; i++)
		if (hgj_vector_is_null(vector, group->rows[i]))
		{
			group->records[i][place->null_byte] |= place->null_bit;
			place->has_nulls = true;
		}
}

/* Write the rows of the group into their blocks. */
static void
put_group(HgjSpillLayout *layout, RowGroup *group, const HgjBatch *batch)
{
	uint32		nulls = layout->flags_byte - (layout->ncols + 7) / 8;

	for (uint32 i = 0; i < group->n; i++)
	{
		memset(group->records[i] + nulls, 0, layout->flags_byte - nulls);
		group->records[i][layout->flags_byte] = group->flags[i];
	}
	for (uint32 w = 0; w < layout->nwords; w++)
	{
		uint32		offset = w * sizeof(uint64);

		PUT_WORDS(uint64, batch->words[w]);
	}
	for (int c = 0; c < layout->ncols; c++)
		put_column(layout, group, c, &batch->vectors[c]);
	group->n = 0;
}

/* Give a row its place. */
static inline void
add_to_group(RowGroup *group, HgjSpillBuffer *buffer, Size block_bytes,
			 uint32 stride, Size value_bytes, uint32 row, uint8 flags)
{
	uint32		i = group->n++;

	group->rows[i] = row;
	group->flags[i] = flags;
	group->records[i] = buffer->block + sizeof(HgjSpillBlock) +
		(Size) buffer->nrows * stride;
	group->ends[i] = buffer->block + block_bytes;
	group->cursors[i] = buffer->value_bytes;
	buffer->nrows++;
	buffer->value_bytes += value_bytes;
	buffer->run.rows++;
}

/* A row that no block has room for. */
static void
write_large_row(HgjSpillWriter *writer, HgjSpillBuffer *buffer,
				const HgjBatch *batch, uint32 row, uint8 flags,
				Size value_bytes)
{
	Size		bytes = add_size(value_bytes, sizeof(HgjSpillBlock) +
								 writer->layout->stride);
	char	   *block = buffer->block;
	RowGroup	group = {0};

	buffer->block = MemoryContextAllocHuge(writer->context, bytes);
	add_to_group(&group, buffer, bytes, writer->layout->stride, value_bytes,
				 row, flags);
	put_group(writer->layout, &group, batch);
	flush_block(writer, buffer, bytes);
	pfree(buffer->block);
	buffer->block = block;
}

/*
 * Add rows rows[0 .. n) of the batch to partitions.  flags may be NULL.
 */
void
hgj_spill_write(HgjSpillWriter *writer, const HgjBatch *batch,
				const uint32 *rows, const uint32 *partitions,
				const uint8 *flags, uint32 n)
{
	HgjSpillLayout *layout = writer->layout;
	Size		room = writer->block_bytes - sizeof(HgjSpillBlock);
	RowGroup	group;

	group.n = 0;
	for (uint32 i = 0; i < n; i++)
	{
		HgjSpillBuffer *buffer = &writer->buffers[partitions[i]];
		uint8		flag = flags ? flags[i] : 0;
		Size		value_bytes = layout->by_reference ?
			row_value_bytes(layout, batch, rows[i]) : 0;

		if (group.n == HGJ_SPILL_GROUP)
			put_group(layout, &group, batch);
		if ((Size) (buffer->nrows + 1) * layout->stride +
			buffer->value_bytes + value_bytes > room)
		{
			put_group(layout, &group, batch);
			if (buffer->nrows > 0)
				flush_block(writer, buffer, writer->block_bytes);
			if (layout->stride + value_bytes > room)
			{
				write_large_row(writer, buffer, batch, rows[i], flag,
								value_bytes);
				continue;
			}
		}
		add_to_group(&group, buffer, writer->block_bytes, layout->stride,
					 value_bytes, rows[i], flag);
	}
	put_group(layout, &group, batch);
}

static void
end_writing(HgjSpillWriter *writer)
{
	hgj_spill_free_blocks(writer);
	pfree(writer->buffers);
	writer->buffers = NULL;
	writer->file = NULL;
}

/*
 * Write the rest.  Returns the partitions' runs, palloc'd; the file is theirs.
 */
HgjSpillRun *
hgj_spill_close(HgjSpillWriter *writer)
{
	HgjSpillRun *runs = MemoryContextAlloc(writer->context,
										   mul_size(writer->nbuffers,
													sizeof(HgjSpillRun)));

	for (int p = 0; p < writer->nbuffers; p++)
	{
		if (writer->buffers[p].nrows > 0)
			flush_block(writer, &writer->buffers[p], writer->block_bytes);
		runs[p] = writer->buffers[p].run;
	}
	end_writing(writer);
	return runs;
}

/* Forget what has been written, if anybody is writing, and close the file. */
void
hgj_spill_abandon(HgjSpillWriter *writer)
{
	HgjSpillFile *file = writer->file;

	if (file == NULL)
		return;
	end_writing(writer);
	hgj_spill_file_release(file);
}

/* Other processes are going to read what is written; before the first row. */
void
hgj_spill_share(HgjSpillWriter *writer, struct FileSet *set, const char *name)
{
	writer->file->set = set;
	writer->file->name = name;
}

/* All has been written: from now on, others can import it. */
void
hgj_spill_export(HgjSpillFile *file)
{
	if (file->file)
		BufFileExportFileSet(file->file);
}

/* A file that has been exported, and to which something was written. */
HgjSpillFile *
hgj_spill_import(MemoryContext context, struct FileSet *set, const char *name,
				 HgjAccount *account)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	HgjSpillFile *file = palloc0(sizeof(HgjSpillFile));

	file->users = 1;
	file->file = BufFileOpenFileSet(set, name, O_RDONLY, false);
	file->account = account;
	hgj_account_add(account, BLCKSZ);
	MemoryContextSwitchTo(old);
	return file;
}

/* Something else goes to the end of a file that rows may have gone to. */
void
hgj_spill_put(HgjSpillFile *file, const void *bytes, Size n)
{
	create_file(file);
	BufFileWrite(file->file, unconstify(void *, bytes), n);
	file->end += n;
}

/* Free what is not palloc'd.  Safe at any time, and again. */
void
hgj_spill_free_blocks(HgjSpillWriter *writer)
{
	Size		bytes = writer->nbuffers * writer->block_bytes;

	if (writer->blocks == NULL)
		return;
	hgj_account_sub(writer->account, bytes);
	hgj_mem_free(writer->blocks, bytes);
	writer->blocks = NULL;
}

/* One user less; after the last one the file is closed. */
void
hgj_spill_file_release(HgjSpillFile *file)
{
	HgjHeldBlock *held;

	if (--file->users > 0)
		return;
	if (file->file)
		BufFileClose(file->file);
	while ((held = file->held) != NULL)
	{
		file->held = held->next;
		hgj_account_sub(&file->room->held, held->bytes);
		pfree(held);
	}
	hgj_account_sub(file->account, BLCKSZ);
	pfree(file);
}

/* A copy of runs that share a file: one user more of it. */
HgjSpillRun *
hgj_spill_copy_runs(MemoryContext context, const HgjSpillRun *runs, int nruns)
{
	Size		bytes = mul_size(nruns, sizeof(HgjSpillRun));
	HgjSpillRun *copy = MemoryContextAlloc(context, bytes);

	memcpy(copy, runs, bytes);
	copy[0].file->users++;
	return copy;
}

/* Runs that share a file are not wanted any more; NULL: there are none. */
void
hgj_spill_drop_runs(HgjSpillRun **runs)
{
	if (*runs == NULL)
		return;
	hgj_spill_file_release((*runs)[0].file);
	pfree(*runs);
	*runs = NULL;
}
