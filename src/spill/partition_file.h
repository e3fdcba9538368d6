/*-------------------------------------------------------------------------
 *
 * partition_file.h
 *	  Rows in temporary files: format and writer (partition_file.c),
 *	  reader (partition_read.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_PARTITION_FILE_H
#define HGJ_PARTITION_FILE_H

#include "compat.h"

#include "base/account.h"
#include "columns/batch.h"
#include "columns/row_store.h"
#include "storage/buffile.h"

/* What is known of a row beside its words and columns. */
#define HGJ_SPILL_NO_KEY	1	/* a key is NULL: the words mean nothing */
#define HGJ_SPILL_MATCHED	2	/* an outer row that has had a match */

/* A block's length has this bit where it is in memory, and its place a pointer. */
#define HGJ_SPILL_HELD		(UINT64CONST(1) << 63)

/* What a block begins with. */
typedef struct HgjSpillBlock
{
	uint64		previous;		/* the partition's block before, */
	uint64		previous_bytes; /* 0: there is none */
	uint64		nrows;
} HgjSpillBlock;

/* Where things are in a record. */
typedef struct HgjSpillLayout
{
	const HgjColumn *columns;	/* of the side */
	int			ncols;
	HgjStoredColumn *places;	/* one per column */
	uint32		nwords;			/* key words come first */
	uint32		flags_byte;
	uint32		stride;
	bool		by_reference;	/* there are values behind the records */
	bool		decoded;		/* other processes, with other dictionaries, read them:
								 * there are values in the place of codes */
} HgjSpillLayout;

/* What blocks that need not go to a file take of memory, and may take. */
typedef struct HgjSpillRoom
{
	HgjAccount	held;
	Size		most;
} HgjSpillRoom;

/*
 * A temporary file, and how many have rows in it: units of join/partition.c, or
 * partitions of agg/agg_spill.c.
 */
typedef struct HgjSpillFile
{
	BufFile    *file;			/* NULL: all that was written is held */
	uint64		end;
	int			users;
	struct HgjHeldBlock *held;	/* its blocks that are in memory */
	HgjSpillRoom *room;
	HgjAccount *account;		/* the file's buffer counts there */
	struct FileSet *set;		/* it is made there, for other processes, */
	const char *name;			/* by this name; NULL: it is the process's own */
} HgjSpillFile;

/* The rows of a partition in a file: a chain of blocks, newest first. */
typedef struct HgjSpillRun
{
	HgjSpillFile *file;
	uint64		newest;			/* where the block is, */
	uint64		newest_bytes;	/* and how long; 0: there is none */
	uint64		rows;
	uint64		value_bytes;	/* of by-reference values */
	uint64		all_bits;		/* set in the hashes of all rows with a key, */
	uint64		any_bits;		/* and of any */
} HgjSpillRun;

/* A block that is being filled: records from the front, values from the back. */
typedef struct HgjSpillBuffer
{
	char	   *block;
	uint32		nrows;
	Size		value_bytes;
	HgjSpillRun run;
} HgjSpillBuffer;

typedef struct HgjSpillWriter
{
	HgjSpillLayout *layout;
	HgjSpillFile *file;			/* NULL: nobody writes */
	int			nbuffers;
	HgjSpillBuffer *buffers;	/* one per partition */
	char	   *blocks;			/* theirs, hgj_mem_alloc'd, in the account */
	Size		block_bytes;
	MemoryContext context;
	HgjAccount *account;
} HgjSpillWriter;

typedef struct HgjSpillReader
{
	const HgjSpillLayout *layout;
	const HgjSpillRun *runs;
	int			nruns;
	int			run;			/* the one that is being read */
	uint64		next;			/* its next block, */
	uint64		next_bytes;		/* 0: it has no more */
	const char *block;			/* buffer, or where it is held */
	char	   *buffer;
	Size		capacity;
	Size		block_bytes;
	uint32		nrows;			/* of the block, */
	uint32		row;			/* and those taken */
	uint8	   *flags;			/* of the rows of the batch filled last */
	uint32		flags_capacity;
	MemoryContext context;
	HgjAccount *account;		/* the capacities count there */
} HgjSpillReader;

extern void hgj_spill_layout(HgjSpillLayout *layout, MemoryContext context,
							 const HgjColumn *columns, int ncols,
							 uint32 nwords);
extern void hgj_spill_open(HgjSpillWriter *writer, MemoryContext context,
						   HgjSpillLayout *layout, int npartitions,
						   Size block_bytes, HgjSpillRoom *room,
						   HgjAccount *account);
extern void hgj_spill_write(HgjSpillWriter *writer, const HgjBatch *batch,
							const uint32 *rows, const uint32 *partitions,
							const uint8 *flags, uint32 n);
extern HgjSpillRun *hgj_spill_close(HgjSpillWriter *writer);
extern void hgj_spill_share(HgjSpillWriter *writer, struct FileSet *set,
							const char *name);
extern void hgj_spill_export(HgjSpillFile *file);
extern HgjSpillFile *hgj_spill_import(MemoryContext context, struct FileSet *set,
									  const char *name, HgjAccount *account);
extern void hgj_spill_put(HgjSpillFile *file, const void *bytes, Size n);
extern void hgj_spill_free_blocks(HgjSpillWriter *writer);
extern void hgj_spill_abandon(HgjSpillWriter *writer);
extern void hgj_spill_file_release(HgjSpillFile *file);
extern HgjSpillRun *hgj_spill_copy_runs(MemoryContext context,
										const HgjSpillRun *runs, int nruns);
extern void hgj_spill_drop_runs(HgjSpillRun **runs);

/* partition_read.c */
extern void hgj_spill_read_runs(HgjSpillReader *reader, MemoryContext context,
								HgjAccount *account,
								const HgjSpillLayout *layout,
								const HgjSpillRun *runs, int nruns);
extern void hgj_spill_rewind(HgjSpillReader *reader);
extern void hgj_spill_read(HgjSpillReader *reader, HgjBatch *batch,
						   uint32 max_rows);
extern void hgj_spill_get(HgjSpillFile *file, uint64 at, void *bytes, Size n);
extern void hgj_spill_end_read(HgjSpillReader *reader);

#endif							/* HGJ_PARTITION_FILE_H */
