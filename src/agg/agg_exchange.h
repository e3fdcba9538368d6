/*-------------------------------------------------------------------------
 *
 * agg_exchange.h
 *	  Groups that the processes of a parallel query divide among themselves by hash
 *	  (agg_exchange.c), as records (agg_records.c) that are combined
 *	  (agg_combine.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_AGG_EXCHANGE_H
#define HGJ_AGG_EXCHANGE_H

#include "compat.h"

#include "access/parallel.h"
#include "agg/agg_state.h"
#include "base/meeting.h"
#include "base/shared_chunks.h"
#include "storage/buffile.h"
#include "storage/dsm.h"
#include "storage/sharedfileset.h"
#include "utils/dsa.h"

/* Groups or records that are worked on at a time, and bytes of the latter. */
#define HGJ_EXCHANGE_BLOCK			4096
#define HGJ_EXCHANGE_BLOCK_BYTES	((Size) 1024 * 1024)

/* Partitions that groups may be divided into. */
#define HGJ_MOST_PARTITIONS			1024

/* The values that groups of all processes have (agg_exchange_values.c). */
typedef struct HgjValueRange
{
	pg_atomic_uint32 nready;	/* number of processes that have offered theirs */
	pg_atomic_uint64 ngroups;	/* number of groups that these have, in sum */
	pg_atomic_uint64 least;		/* least value, as an unsigned number of the same order */
	pg_atomic_uint64 most;		/* greatest value, likewise; less than the least one where there
								 * are no values */
} HgjValueRange;

/* What has become of it. */
typedef enum HgjExchangeOutcome
{
	HGJ_EXCHANGE_ALONE = 1,		/* one process has had all rows, and has all groups */
	HGJ_EXCHANGE_DIVIDED		/* all groups are in images */
} HgjExchangeOutcome;

/* In the query's dynamic shared memory. */
typedef struct HgjSharedExchange
{
	HgjMeeting	input;			/* of those who read it; HgjExchangeOutcome */
	pg_atomic_uint32 nparts;	/* processes that have come in time */
	pg_atomic_uint64 images;	/* a dsa_pointer: they are a list */
	pg_atomic_uint64 stale;		/* those of a run before: to be freed */
	pg_atomic_uint64 bytes;		/* of images in memory */
	pg_atomic_uint32 next;		/* the partition that nobody has taken yet */
	HgjValueRange range;		/* values of groups, by which they may be divided */
	uint32		npartitions;	/* number of partitions by hash, a power of two */
	uint64		seed;			/* of the hashes that divide groups */
	int			most_parts;		/* processes that were planned */
	dsm_handle	segment;		/* this one, for the files */
	SharedFileSet files;
} HgjSharedExchange;

/* The records of one partition in an image. */
typedef struct HgjImageRun
{
	uint32		ngroups;
	int			fileno;			/* BufFileSeek()'s, */
	off_t		offset;			/* or from the image's beginning */
} HgjImageRun;

/* The groups of one process at one time, by partitions. */
typedef struct HgjExchangeImage
{
	HgjSharedLink link;
	bool		on_file;		/* else the records stand behind the runs */
	Size		packed;			/* bytes of each, if they are short (agg_packed.c); else 0 */
	uint32		part;			/* whose file it is */
	HgjImageRun runs[FLEXIBLE_ARRAY_MEMBER];
} HgjExchangeImage;

/* The k-th key of a group's row, or of a record; false: it is NULL. */
typedef bool (*HgjExchangeKey) (const HgjAggState *state, const char *item, int k,
								Datum *value);

/* agg_exchange.c: callbacks of the node. */
extern Size hgj_exchange_estimate(CustomScanState *node, ParallelContext *pcxt);
extern void hgj_exchange_init(CustomScanState *node, ParallelContext *pcxt,
							  void *coordinate);
extern void hgj_exchange_init_again(CustomScanState *node,
									ParallelContext *pcxt, void *coordinate);
extern void hgj_exchange_attach(CustomScanState *node, shm_toc *toc,
								void *coordinate);
extern void hgj_exchange_shutdown(CustomScanState *node);

/* For agg_node.c. */
extern void hgj_exchange_setup(HgjAggState *state, int nkeys);
extern bool hgj_exchange_begin(HgjAggState *state);
extern bool hgj_exchange_groups_in_vain(HgjAggState *state, uint32 rows);
extern void hgj_exchange_empty_table(HgjAggState *state);
extern void hgj_exchange_end_input(HgjAggState *state);
extern bool hgj_exchange_next(HgjAggState *state);
extern void hgj_exchange_end_run(HgjAggState *state);
extern void hgj_exchange_free_memory(HgjAggState *state);

extern void hgj_exchange_file_name(char *name, Size bytes, uint32 part);
extern void hgj_exchange_load_keys(HgjAggState *state, HgjExchangeKey key, int nkeys,
								   uint32 n);

/* agg_exchange_values.c */
extern void hgj_exchange_values_init(HgjValueRange *range);
extern void hgj_exchange_offer_values(HgjAggState *state);
extern void hgj_exchange_agree(HgjAggExchange *exchange);
extern void hgj_exchange_value_partitions(const HgjAggState *state, uint16 *partitions,
										  uint32 *counts);
extern void hgj_exchange_cover_partition(HgjAggState *state, uint32 partition);

/* agg_exchange_read.c */
extern void hgj_exchange_combine(HgjAggState *state, uint32 partition);
extern bool hgj_exchange_combine_rest(HgjAggState *state);
extern void hgj_exchange_close_files(HgjAggExchange *exchange);

/* agg_records.c */
extern bool hgj_agg_group_key(const HgjAggState *state, const char *row, int k,
							  Datum *value);
extern Size hgj_agg_record_bytes(const HgjAggState *state, char *row);
extern void hgj_agg_record_write(const HgjAggState *state, char *row,
								 char *record, Size bytes);
extern bool hgj_agg_record_key(const HgjAggState *state, const char *record,
							   int k, Datum *value);

/* agg_packed.c */
extern Size hgj_agg_packed_bytes(const HgjAggState *state);
extern void hgj_agg_pack(const HgjAggState *state, const char *row, char *packed);
extern Size hgj_agg_unpacked_bytes(const HgjAggState *state);
extern void hgj_agg_unpack(const HgjAggState *state, const char *packed, char *record);

/* agg_combine.c */
extern void hgj_agg_combine(HgjAggState *state, uint32 group, const char *record);

static inline Size
hgj_agg_record_size(const char *record)
{
	return *(const uint64 *) record;
}

static inline const char *
hgj_agg_record_row(const char *record)
{
	return record + sizeof(uint64);
}

/* What is at a distance that the row in a record has. */
static inline const char *
hgj_agg_record_at(const char *record, Datum distance)
{
	return record + (Size) distance;
}

#endif							/* HGJ_AGG_EXCHANGE_H */
