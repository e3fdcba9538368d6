/*-------------------------------------------------------------------------
 *
 * pipeline_view.h
 *	  What kernels of a pipeline know of it (pipeline.cu, pipeline_kernels.cuh).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CUDA_PIPELINE_VIEW_H
#define HGJ_CUDA_PIPELINE_VIEW_H

#include "internal.h"

namespace hgj
{

constexpr int PIPE_SLOTS = 3;

/* What a kernel has found that ends the pipeline. */
constexpr unsigned long long PIPE_ROW_FAILED = 1;
constexpr unsigned long long PIPE_FULL = 2;

/* Blocks of a multiprocessor, for their registers to be in shared memory. */
constexpr size_t LEAST_BLOCKS = 2;

/* Tiles (pipeline_tiles.cuh): rows of a warp's, and registers that they may have. */
constexpr uint32_t TILE_ROWS = 128;
constexpr uint32_t TILE_REGISTERS = 32;
constexpr uint32_t TILE_COUNTS = 32; /* of a warp */

/* An operand of a step: a register, or from here on a constant, the first of which is 0. */
constexpr uint32_t TILE_CONSTANT = 128;
constexpr uint32_t TILE_CONSTANTS = 64;

/* Steps besides HgjPipeOp's: COMPARE, and FILTER with its result; INPUT, and FILTER unless it
 * lies between a and b, both constants; imm is the FILTER's arg. */
constexpr uint8_t TILE_FILTER_COMPARE = 64;
constexpr uint8_t TILE_INPUT_RANGE = 65;

/* Rows of more combinations of candidates of all joins go through turns. */
constexpr uint64_t PIPE_MOST_WORK = 4096;

struct PipeColumn
{
	const void *values;
	const uint64_t *validity; /* or NULL */
	uint32_t kind;            /* HgjKind */
};

struct PipeJoin
{
	GraphView graph;
	bool empty; /* the table has no entry: there is no graph */
	bool pass;
	bool fill;
	bool single;
	bool first_only; /* no candidate but the first is ever looked at */
	uint32_t nkeys;
	uint8_t keys[HGJ_PIPE_KEYS];
	uint32_t after_probe; /* instructions */
	uint32_t after_match;
	PipeColumn columns[HGJ_PIPE_COLUMNS];
};

/* Where groups are: a dense array, or a hash table. */
struct PipeGroups
{
	bool dense;
	uint64_t capacity;          /* groups; a power of two, if hashed */
	uint64_t most;              /* hashed: groups that may be added */
	uint64_t seed;              /* hashed */
	int64_t low[HGJ_PIPE_KEYS]; /* dense */
	int64_t high[HGJ_PIPE_KEYS];
	uint64_t step[HGJ_PIPE_KEYS];
	uint32_t *tags;             /* hashed: 0 free, 1 being filled, 2 there */
	unsigned long long *keys;   /* NULL bits, then the keys */
	unsigned long long *states; /* nwords for each */
};

/* Where rows of a table are put (pipeline_fill.cu): arrays of `capacity` words, or values. */
struct PipeFill
{
	uint64_t capacity;
	uint32_t ncolumns;
	uint8_t columns[HGJ_PIPE_COLUMNS]; /* registers */
	uint8_t kinds[HGJ_PIPE_COLUMNS];
	uint64_t *words[HGJ_PIPE_KEYS];
	void *values[HGJ_PIPE_COLUMNS];
	uint32_t *validity[HGJ_PIPE_COLUMNS];
};

/* Where rows that are returned are put. */
struct PipeOut
{
	uint32_t capacity;
	uint8_t operands[HGJ_PIPE_JOINS]; /* with tiles: where a join's row is */
	uint32_t *input;
	uint32_t *row[HGJ_PIPE_JOINS];
};

/*
 * One turn of a push's rows (pipeline_turns.cuh): which of them wait, and among how many
 * threads each is divided.  Word w of place i stands at w * places + i.
 */
struct PipeTurn
{
	unsigned long long *counters; /* PIPE_COUNTER_* */
	const uint64_t *from;
	uint64_t *to;
	uint32_t places;
	uint32_t waiting;
	uint32_t parts;
};

/* Words of a waiting row besides registers: number and place, NULLs; of each join. */
constexpr uint32_t PIPE_WAITING_HEAD = 2;
constexpr uint32_t PIPE_WAITING_JOIN = 2;

/* In device memory, read by every thread. */
struct PipeView
{
	uint32_t ncode;
	uint32_t njoins;
	uint32_t nkeys;
	uint32_t nwords;
	uint32_t registers;
	const HgjPipeInstruction *code; /* instructions, or steps of tiles */
	unsigned long long *flags;      /* PIPE_*, groups added, rows that ended, then
								* `joined`, `removed`, `filtered` of each join,
								* `dropped`; groups that are left out;
								* rows returned, or of a table; which of its
								* columns have NULLs; counters of turns */
	uint8_t keys[HGJ_PIPE_KEYS];    /* registers, or operands, as are those of words */
	HgjPipeWord words[HGJ_PIPE_WORDS];
	uint32_t nhaving;
	HgjPipeHaving having[HGJ_PIPE_HAVING];
	uint64_t constants[TILE_CONSTANTS];
	PipeGroups groups;
	PipeOut out; /* instead of groups */
	PipeJoin joins[HGJ_PIPE_JOINS];
};

constexpr int PIPE_FLAG_STOP = 0;
constexpr int PIPE_FLAG_GROUPS = 1;
constexpr int PIPE_FLAG_ENDED = 2;
constexpr int PIPE_FLAG_OUT = 3; /* group rows written at the end */
constexpr int PIPE_FLAG_JOINED = 4;
constexpr int PIPE_FLAG_REMOVED = PIPE_FLAG_JOINED + HGJ_PIPE_JOINS;
constexpr int PIPE_FLAG_FILTERED = PIPE_FLAG_REMOVED + HGJ_PIPE_JOINS;
constexpr int PIPE_FLAG_DROPPED = PIPE_FLAG_FILTERED + HGJ_PIPE_JOINS;
constexpr int PIPE_FLAG_LEFT_OUT = PIPE_FLAG_DROPPED + 1; /* groups */
constexpr int PIPE_FLAG_RETURNED = PIPE_FLAG_LEFT_OUT + 1;
constexpr int PIPE_FLAG_NULLS =
	PIPE_FLAG_RETURNED + 1; /* bits: columns of a table's rows */
constexpr int PIPE_FLAG_COUNTERS = PIPE_FLAG_NULLS + 1; /* of each slot */
constexpr int PIPE_FLAGS = PIPE_FLAG_COUNTERS + 2 * PIPE_SLOTS;

/* Rows waiting for the next turn; rows taken from the push. */
constexpr int PIPE_COUNTER_WAITING = 0;
constexpr int PIPE_COUNTER_TAKEN = 1;

/*
 * An input column of some rows: staged, as their kind is, or kept, as numbers of some
 * width.
 */
struct PipeInput
{
	const void *values;
	const uint8_t *high;      /* kept, of three bytes: the third ones */
	const uint64_t *validity; /* or NULL */
	const uint64_t *table;    /* kept: what they stand for, and then bits; or NULL */
	uint64_t base;            /* kept: what numbers count from */
	uint64_t mask;            /* kept: of a register's bits */
	uint32_t kind;            /* HgjKind, or one of those below */
	uint32_t first;           /* where row 0 is */
	uint32_t ntable;          /* words */
};

constexpr uint32_t PIPE_KEPT_1 = 16;
constexpr uint32_t PIPE_KEPT_2 = 17;
constexpr uint32_t PIPE_KEPT_3 = 18;
constexpr uint32_t PIPE_KEPT_4 = 19;
constexpr uint32_t PIPE_KEPT_8 = 20;

/* Rows from .. end - 1 of one of several batches, the first of which is row `first` of all. */
struct PipeTile
{
	uint32_t batch;
	uint32_t from;
	uint32_t end;
	uint32_t first;
};

/* The rows that a kernel goes through: of one batch, or all tiles. */
struct PipeRows
{
	const PipeInput
		*inputs; /* ninputs of a staging buffer, or of each piece of kept rows */
	uint32_t ninputs;
	const PipeTile *tiles; /* NULL: n rows of the first batch, so many of each tile: */
	uint32_t tile_rows;
	uint32_t ntiles;
	const uint32_t *starts; /* of several batches: the first row of each among all */
	uint32_t nbatches;
	uint32_t n;
	bool may_be_null; /* an input of a row */
	uint64_t valid;   /* bit i: validity of input i means something */
};

/* Dynamic shared memory of kernels of tiles: steps, and then, in bytes from its beginning: */
struct TileShape
{
	uint32_t registers;
	uint32_t nconstants;
	uint32_t shared_words; /* state words of all groups, if a block keeps its own */
	uint32_t constants_at;
	uint32_t states_at;
	uint32_t warps_at;
	uint32_t warp_bytes;
};

} // namespace hgj

#endif /* HGJ_CUDA_PIPELINE_VIEW_H */
