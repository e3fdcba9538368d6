/*-------------------------------------------------------------------------
 *
 * engine.h
 *	  The C ABI between the executor and whatever builds and probes a
 *	  HashGraph: the CPU engine (src/engine/cpu_*.c), and later the CUDA
 *	  engine (cuda/, a library of its own) and a service process.
 *
 * This header includes neither PostgreSQL's nor CUDA's headers, and nothing
 * that implements it may throw, longjmp, palloc, print or exit.  Every call
 * returns an HgjStatus; on anything but HGJ_OK it fills an HgjError with a
 * sentence that the executor can put into an ereport.
 *
 * THE LIFE OF A TABLE
 *
 *	  table_create	a spec: key words per row, seed, forced algorithms, limit
 *	  append *		batches of build rows (key words + row ids), buffered
 *	  memory *		exact bytes now, and the peak that build would reach
 *	  build			count, prefix sum, scatter: the HashGraph
 *	  probe_create	one cursor per concurrent reader
 *	  sift *		which rows need not become part of a batch at all
 *	  probe_begin	one batch of probe rows; its key words must stay valid
 *	  probe_next *	fills bounded arrays of matches until `done`
 *	  mark *		match bits for right, full, right-anti and right-semi joins
 *	  unmatched *	row ids whose bit is unset
 *	  insert, remove, rebuild	dynamic tables only
 *	  share			in place of build: by several processes (share.h)
 *	  probe_destroy, table_destroy
 *
 * KEYS.  A key is `nwords` 64-bit words, equal exactly when all of its words
 * are equal.  The executor has made the words canonical: signed integers are
 * sign-extended, floats are the bits of a canonical double, a uuid is two
 * words, a type that cannot be made canonical is the type's own 64-bit hash
 * (then a match is a candidate, which the executor rechecks).  Words are
 * stored column by column: words[w][i] is word w of row i.  A row with a NULL
 * key, or one that was filtered out, is left out by the selection vector; it
 * keeps its index, and therefore its row id.
 *
 * ROW IDS are 32 bits, given by the caller, dense from 0 (rows with NULL keys
 * use up ids too, so that an unmatched scan returns them).  A table holds at
 * most HGJ_MAX_ROWS rows; beyond that append returns HGJ_LIMIT, and the
 * caller splits its input.  Byte counts are 64 bits.
 *
 * MEMORY.  Tables and probes belong to the caller from create to destroy.
 * The arrays of an HgjKeys are borrowed: for append, insert and remove until
 * the call returns, for probe_begin until probe_next has set `done` or the
 * probe is given another batch.  Match arrays belong to the caller.
 * `location` says where the arrays of an HgjKeys or HgjMatches lie: an engine
 * refuses (HGJ_UNSUPPORTED) a location missing from its capabilities.
 *
 * CANCELLATION.  A call that may be long calls spec.poll(poll_arg) at least
 * every few milliseconds.  Where that returns nonzero the call gives up with
 * HGJ_CANCELLED, leaving the table as it was before the call: the caller may
 * repeat the call, or destroy the table.
 *
 * THREADS.  A table is used by one thread at a time until build has returned;
 * afterwards several probes may read one table at the same time, except for
 * HGJ_PROBE_MARK, mark and the dynamic operations.  What a table makes for its
 * probes after build (a filter) is the engine's to synchronise.
 *
 * After Green 2019 (HashGraph) and Groschaft 2022 (segments, dynamic tables).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_ENGINE_H
#define HGJ_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C"
{
#endif

/* Changes with every incompatible change of this file. */
#define HGJ_ABI_VERSION		25

/* The symbol that an engine library exports: const HgjEngine *name(void). */
#define HGJ_ENGINE_ENTRY	"hgj_engine_entry"

#define HGJ_MAX_KEY_WORDS	64
#define HGJ_MAX_ROWS		UINT32_C(0xFFFFFFF0)

typedef enum HgjStatus
{
	HGJ_OK = 0,
	HGJ_CANCELLED,				/* spec.poll asked for it; call again or destroy */
	HGJ_OUT_OF_MEMORY,			/* the host's or the device's memory */
	HGJ_LIMIT,					/* spec.memory_limit or HGJ_MAX_ROWS is passed */
	HGJ_UNSUPPORTED,			/* not in this engine's capabilities */
	HGJ_INVALID,				/* the caller broke this contract */
	HGJ_NO_DEVICE,				/* no driver, no device, or one too old */
	HGJ_DEVICE_LOST,			/* the device failed; the table is gone */
	HGJ_ROW_FAILED				/* a row raises an error (pipeline.h) */
} HgjStatus;

typedef struct HgjError
{
	HgjStatus	status;
	char		message[256];	/* a sentence without a full stop */
} HgjError;

typedef enum HgjBuild
{
	HGJ_BUILD_AUTO = 0,
	HGJ_BUILD_V1,				/* Green's algorithm 1: count, scan, scatter */
	HGJ_BUILD_V2,				/* algorithm 2: binned first, then V1 per bin */
	HGJ_BUILD_SORT,				/* Groschaft's algorithm 4: any sort by hash */
	HGJ_BUILD_DIRECT			/* vertex = key - min, for one dense key word */
} HgjBuild;

typedef enum HgjProbeAlgo
{
	HGJ_PROBE_AUTO = 0,
	HGJ_PROBE_STANDARD,			/* each probe key looks its vertex up */
	HGJ_PROBE_BINNED			/* probe rows are binned like the vertices first */
} HgjProbeAlgo;

typedef enum HgjSegments
{
	HGJ_SEGMENTS_AUTO = 0,
	HGJ_SEGMENTS_CSR,
	HGJ_SEGMENTS_ELLPACK,		/* every vertex padded to the longest */
	HGJ_SEGMENTS_SLICED,		/* padded per slice of HGJ_SLICE vertices */
	/* what HGJ_TABLE_KEYS_ONLY may come to; not to be asked for */
	HGJ_SEGMENTS_BITS,			/* a bit per key */
	HGJ_SEGMENTS_QUOTIENTS		/* CSR, of entries of two bytes */
} HgjSegments;

#define HGJ_SLICE			32

/* A filter in front of the graph, which rejects most rows without a match. */
typedef enum HgjFilter
{
	HGJ_FILTER_AUTO = 0,		/* made when the probes find that few match */
	HGJ_FILTER_ON,				/* made at once */
	HGJ_FILTER_OFF
} HgjFilter;

/* Why a table is not what its spec asked for (HgjTableInfo.notes, a bit set). */
typedef enum HgjNote
{
	HGJ_NOTE_DIRECT_NOT_DENSE = 1 << 0, /* direct asked for, key range too wide */
	HGJ_NOTE_DIRECT_MULTI_KEY = 1 << 1, /* direct asked for, more than one word */
	HGJ_NOTE_ELLPACK_TOO_WIDE = 1 << 2, /* padding would pass the limit: CSR */
	HGJ_NOTE_SLICED_TOO_WIDE = 1 << 3,	/* the same for Sliced Ellpack: CSR */
	HGJ_NOTE_SORT_AS_V2 = 1 << 4,		/* this engine builds V2 for sort */
	HGJ_NOTE_BINNED_UNFIT = 1 << 5,		/* binned probe asked for, table too small
										 * to have bins, or not hashed: standard */
	HGJ_NOTE_FILTER_MEMORY = 1 << 6,	/* no memory for a filter: none */
	HGJ_NOTE_FILTER_DYNAMIC = 1 << 7,	/* filter asked for, table dynamic: none */
	HGJ_NOTE_FILTER_UNKNOWN = 1 << 8	/* filter asked for, engine has none */
} HgjNote;

#define HGJ_LAST_NOTE	HGJ_NOTE_FILTER_UNKNOWN

/* HgjTableSpec.flags */
#define HGJ_TABLE_TRACK_MATCHES	(UINT32_C(1) << 0)	/* keep a match bit per row id */
#define HGJ_TABLE_DYNAMIC		(UINT32_C(1) << 1)	/* insert and remove allowed */
#define HGJ_TABLE_TIMING		(UINT32_C(1) << 2)	/* measure HgjDeviceWork's times */
#define HGJ_TABLE_SIFT_EARLY	(UINT32_C(1) << 3)	/* a row that is sifted away saves far more
													 * than the probe: sift sooner, and
													 * while hardly any are */
#define HGJ_TABLE_KEYS_ONLY		(UINT32_C(1) << 4)	/* nobody looks at the build_rows of a
													 * match: they are 0, or a match's */
#define HGJ_TABLE_FIRST_MATCH	(UINT32_C(1) << 5)	/* with KEYS_ONLY: nor at how many a row
													 * has; HGJ_MATCH_ALL and _COUNT may
													 * find one where there are more */
#define HGJ_TABLE_SIFT_AT_ONCE	(UINT32_C(1) << 6)	/* with SIFT_EARLY: rows are sifted before
													 * any has been looked up */

typedef struct HgjTableSpec
{
	uint32_t	nwords;			/* key words per row, 1 .. HGJ_MAX_KEY_WORDS */
	uint32_t	flags;
	uint64_t	seed;			/* of the hash; a fresh random one per query */
	HgjBuild	build;
	HgjProbeAlgo probe;
	HgjSegments segments;
	HgjFilter	filter;
	uint32_t	slack;			/* dynamic: free slots per vertex; 0 = default */
	double		load;			/* rows per vertex; 0 = the engine's default */
	uint64_t	expected_rows;	/* a hint, 0 = unknown */
	uint64_t	memory_limit;	/* bytes, 0 = none: build returns HGJ_LIMIT */
	uint64_t	filter_room;	/* bytes that a filter may take above build_peak */
	int			device;			/* which of the engine's devices */
	uint32_t	timeout_ms;		/* 0 = none: a device that has not answered by
								 * then counts as lost; see HgjWatch */
	int			(*poll) (void *poll_arg);	/* may be NULL */
	void	   *poll_arg;
} HgjTableSpec;

typedef enum HgjLocation
{
	HGJ_ON_HOST = 0,
	HGJ_ON_DEVICE
} HgjLocation;

/* A batch of keys: nrows rows, of which the selected ones take part. */
typedef struct HgjKeys
{
	uint32_t	nrows;
	uint32_t	nsel;			/* entries of sel; ignored when sel is NULL */
	const uint32_t *sel;		/* ascending row indexes, or NULL for all rows */
	const uint64_t *const *words;	/* nwords columns of nrows words each */
	HgjLocation location;
} HgjKeys;

/* Integer keys of one word, without NULLs, as the kept columns have them (kept/chunk.h). */
typedef struct HgjPackedKeys
{
	const void *numbers;		/* key words less `base`, of `width` bytes; of three, the lower two */
	const uint8_t *third;		/* third bytes of the numbers, where there are three */
	uint64_t	base;			/* key word of the number 0 */
	uint32_t	width;			/* bytes of a number: 1 to 4 */
	uint32_t	n;				/* rows, one behind the other */
} HgjPackedKeys;

typedef enum HgjProbeMode
{
	HGJ_MATCH_ALL = 0,			/* every (probe row, build row) pair */
	HGJ_MATCH_FIRST,			/* at most one pair per probe row */
	HGJ_MATCH_COUNT				/* counts[probe row] only; one probe_next call */
} HgjProbeMode;

/* probe_begin flags */
#define HGJ_PROBE_MARK			(UINT32_C(1) << 0)	/* set the match bit of every
													 * build row returned */
#define HGJ_PROBE_SIFTED		(UINT32_C(1) << 1)	/* the batch's rows have been
													 * sifted already */

/*
 * Where matches go.  A pair's order is free, except that an engine with
 * HGJ_CAP_GROUPED returns the pairs of one probe row next to each other.
 */
typedef struct HgjMatches
{
	uint32_t   *probe_rows;		/* capacity entries */
	uint32_t   *build_rows;		/* capacity entries */
	uint32_t	capacity;		/* at least 1 */
	uint32_t	n;				/* out: pairs written */
	uint32_t   *counts;			/* HGJ_MATCH_COUNT: one per row of the batch,
								 * 0 for rows that are not selected */
	const uint8_t *skip;		/* NULL, or one byte per row of the batch: no
								 * further pair of a row whose byte is nonzero
								 * is wanted.  A hint, looked at whenever a
								 * call starts on a row or goes on with one, so
								 * that a caller who rechecks candidates and
								 * needs one match a row can end a long list */
	bool		done;			/* out: this batch has no further match */
	HgjLocation location;
} HgjMatches;

typedef struct HgjMemory
{
	uint64_t	current;		/* bytes allocated now */
	uint64_t	build_peak;		/* bytes at the height of a build of the rows
								 * appended so far, an upper bound; equal to
								 * peak once built */
	uint64_t	peak;			/* highest `current` so far */
	uint64_t	host;			/* HGJ_CAP_DEVICE_MEMORY: the above are the
								 * device's, and this is taken of the host's
								 * beside them, now; 0 otherwise */
} HgjMemory;

/* What a table and its probes have had a device do; 0 without one. */
typedef struct HgjDeviceWork
{
	uint64_t	to_device;		/* bytes */
	uint64_t	from_device;
	uint64_t	transfer_ns;	/* on the device's clock; HGJ_TABLE_TIMING only */
	uint64_t	kernel_ns;
} HgjDeviceWork;

typedef struct HgjTableInfo
{
	uint64_t	rows;			/* entries in the graph (live ones, if dynamic) */
	uint64_t	vertices;
	uint64_t	slots;			/* entry slots, padding and slack included */
	uint64_t	longest;		/* entries of the longest edge list */
	uint32_t	entry_bytes;
	uint32_t	bins;			/* 1 = not binned */
	HgjBuild	build;			/* what was used, never AUTO once built */
	HgjProbeAlgo probe;			/* what probes of large batches will use */
	HgjSegments segments;
	uint32_t	notes;			/* HgjNote bits */
	uint32_t	rebuilds;		/* of a dynamic table since build */
	uint64_t	filter_bytes;	/* 0: there is no filter (yet) */
	uint64_t	filter_tested;	/* probe rows that the filter was asked about */
	uint64_t	filter_rejected;	/* those of them that it kept off the graph */
	HgjMemory	memory;
	HgjDeviceWork work;
	bool		kept;			/* it is an earlier query's; an engine says false */
} HgjTableInfo;

typedef struct HgjDeviceInfo
{
	char		name[64];
	uint64_t	total_memory;	/* bytes */
	uint64_t	free_memory;	/* bytes, at the time of the call; 0 = unknown,
								 * because the device is not open */
	uint32_t	units;			/* cores or multiprocessors */
	bool		open;			/* in this process */
	uint32_t	tables;			/* of this process that are on it */
	uint32_t	major;			/* compute capability, 0.0 = it has none */
	uint32_t	minor;
	uint32_t	driver_version; /* 1000 * major + 10 * minor, 0 = has none */
	uint32_t	runtime_version;
	uint64_t	kept_bytes;		/* of copies of kept columns that are on it */
	uint64_t	kept_found;		/* so often one was there that a pipeline read, */
	uint64_t	kept_brought;	/* and so often it had to come first */
	char		off[160];		/* why it cannot be used, or empty */
} HgjDeviceInfo;

/*
 * How a process that makes calls for several sessions knows a device that is lost from one
 * that is busy: a device has answered when somebody's wait for its work has ended, and counts as
 * lost when somebody has waited for *limit_ms and it has answered nobody meanwhile.  What one
 * session's kernel takes is then no reason to give the device up while others' kernels
 * end, and no caller's timeout_ms is.
 */
typedef struct HgjWatch
{
	const uint32_t *limit_ms;	/* read atomically while the device is waited for; 0: none */
	void		(*answered) (void); /* a wait has ended: called by the thread that waited */
} HgjWatch;

/* HgjEngine.capabilities */
#define HGJ_CAP_HOST_KEYS		(UINT64_C(1) << 0)	/* HGJ_ON_HOST */
#define HGJ_CAP_DEVICE_KEYS		(UINT64_C(1) << 1)	/* HGJ_ON_DEVICE */
#define HGJ_CAP_GROUPED			(UINT64_C(1) << 2)	/* see HgjMatches */
#define HGJ_CAP_DYNAMIC			(UINT64_C(1) << 3)	/* insert, remove, rebuild */
#define HGJ_CAP_SORT			(UINT64_C(1) << 4)	/* a build by sort of its own */
#define HGJ_CAP_DEVICE_MEMORY	(UINT64_C(1) << 5)	/* see HgjMemory.host */

typedef struct HgjTable HgjTable;
typedef struct HgjProbe HgjProbe;

#include "pipeline.h"
#include "share.h"

typedef struct HgjEngine
{
	uint32_t	abi_version;	/* HGJ_ABI_VERSION; check it before all else */
	const char *name;			/* "cpu", "cuda" */
	const char *version;		/* of the extension it was built with */
	uint64_t	capabilities;

	/*
	 * Get ready in this process (a CUDA engine makes its context here, never
	 * earlier), and give everything back.  Both may be called repeatedly.
	 * Tables must be destroyed before close.
	 */
	HgjStatus	(*open) (HgjError *err);
	void		(*close) (void);

	/*
	 * What can be said without opening: how many devices there are, one of
	 * them (HGJ_NO_DEVICE if there is none of that number), and whether open
	 * could succeed (HGJ_OK, or what it would fail with).
	 */
	int			(*device_count) (void);
	HgjStatus	(*device_info) (int device, HgjDeviceInfo *info, HgjError *err);
	HgjStatus	(*usable) (HgjError *err);

	/*
	 * From now on devices are watched so.  To be called before open; the struct stays
	 * the caller's, for ever.  NULL: nothing here waits for a device.
	 */
	void		(*watch) (const HgjWatch *watch);

	HgjStatus	(*table_create) (const HgjTableSpec *spec, HgjTable **table,
								 HgjError *err);
	void		(*table_destroy) (HgjTable *table); /* NULL is allowed */

	/*
	 * Take in build rows.  Row i of the batch gets id first_row + i, or
	 * row_ids[i] when row_ids is not NULL (i is the index in the batch,
	 * counting rows that are not selected).  Only before build.
	 */
	HgjStatus	(*append) (HgjTable *table, const HgjKeys *keys,
						   uint32_t first_row, const uint32_t *row_ids,
						   HgjError *err);

	/*
	 * Give rows back that were appended, before build, each once: up to
	 * capacity of those from *cursor on (0 to begin with; moved on), their key
	 * words as columns, and their ids.  *n = 0: there are no more.  NULL where
	 * an engine cannot.
	 */
	HgjStatus	(*appended) (const HgjTable *table, uint64_t *cursor,
							 uint64_t *const *words, uint32_t *rows,
							 uint32_t capacity, uint32_t *n, HgjError *err);

	/*
	 * Build the graph of the rows appended; row ids are < total_rows.  On
	 * HGJ_LIMIT, HGJ_OUT_OF_MEMORY and HGJ_CANCELLED the appended rows are
	 * still there, and nothing else.
	 */
	HgjStatus	(*build) (HgjTable *table, uint32_t total_rows, HgjError *err);

	void		(*info) (const HgjTable *table, HgjTableInfo *info);
	void		(*memory) (const HgjTable *table, HgjMemory *memory);

	/* How many probe rows a batch should have for this (built) table. */
	uint32_t	(*probe_batch_rows) (const HgjTable *table);

	HgjStatus	(*probe_create) (HgjTable *table, HgjProbe **probe,
								 HgjError *err);
	void		(*probe_destroy) (HgjProbe *probe); /* NULL is allowed */
	HgjStatus	(*probe_begin) (HgjProbe *probe, const HgjKeys *keys,
								HgjProbeMode mode, uint32_t flags,
								HgjError *err);
	HgjStatus	(*probe_next) (HgjProbe *probe, HgjMatches *matches,
							   HgjError *err);

	/* Match bits, of a table with HGJ_TABLE_TRACK_MATCHES. */
	HgjStatus	(*mark) (HgjTable *table, const uint32_t *rows, uint32_t n,
						 HgjError *err);
	bool		(*is_marked) (const HgjTable *table, uint32_t row);

	/*
	 * Row ids below total_rows whose bit is unset, ascending, from *cursor
	 * on (0 to begin with; moved past the last id looked at).  *n < capacity
	 * means the end was reached.
	 */
	HgjStatus	(*unmatched) (const HgjTable *table, uint32_t *cursor,
							  uint32_t *rows, uint32_t capacity, uint32_t *n,
							  HgjError *err);
	HgjStatus	(*clear_marks) (HgjTable *table, HgjError *err);

	/*
	 * Dynamic tables (HGJ_TABLE_DYNAMIC), after build.  insert puts rows into
	 * slack slots, probing over neighbouring vertices, and rebuilds the table
	 * with fresh slack when there is no slot left.  remove puts a delete
	 * marker over the entry of (key, row_ids[i]), or over every entry of the
	 * key when row_ids is NULL; *removed counts them.  rebuild drops markers
	 * and spreads the slack again.  A probe that was begun before any of these
	 * must be begun anew.
	 */
	HgjStatus	(*insert) (HgjTable *table, const HgjKeys *keys,
						   uint32_t first_row, const uint32_t *row_ids,
						   HgjError *err);
	HgjStatus	(*remove) (HgjTable *table, const HgjKeys *keys,
						   const uint32_t *row_ids, uint64_t *removed,
						   HgjError *err);
	HgjStatus	(*rebuild) (HgjTable *table, HgjError *err);

	/*
	 * A caller who wants nothing of rows without a match may ask, before it
	 * has more of them than their keys, which may have one.  sift_begin says
	 * whether it is worth asking; to be called every so many rows, between
	 * batches, because the answer comes from what the probe has seen, and
	 * changes.  sift writes the indexes of the selected rows that may have a
	 * match to rows, ascending, and how many to *n; rows has room for one
	 * more than are selected.  sift_packed does that for keys that nobody has
	 * widened, if the filter can be asked so, and says whether.  All are NULL
	 * where an engine has no filter.
	 */
	HgjStatus	(*sift_begin) (HgjProbe *probe, bool *worth, HgjError *err);
	HgjStatus	(*sift) (HgjProbe *probe, const HgjKeys *keys, uint32_t *rows,
						 uint32_t *n, HgjError *err);
	bool		(*sift_packed) (HgjProbe *probe, const HgjPackedKeys *keys,
								uint32_t *rows, uint32_t *n);

	/* Joins and an aggregation that stay on the device; NULL: there is none. */
	const HgjPipelineMethods *pipeline;

	/* One graph built by several processes; NULL: each builds its own. */
	const HgjShareMethods *share;
} HgjEngine;

/* The CPU engine, linked in (cpu_engine.c). */
extern const HgjEngine *hgj_cpu_engine(void);

/* Names as settings, EXPLAIN and messages spell them (engine_names.c). */
extern const char *hgj_build_name(HgjBuild build);
extern const char *hgj_probe_name(HgjProbeAlgo probe);
extern const char *hgj_segments_name(HgjSegments segments);
extern const char *hgj_filter_name(HgjFilter filter);
extern const char *hgj_status_name(HgjStatus status);

/* A sentence for one HgjNote bit. */
extern const char *hgj_note_text(HgjNote note);

#ifdef __cplusplus
}
#endif

#endif							/* HGJ_ENGINE_H */
