/*-------------------------------------------------------------------------
 *
 * pipeline_host.h
 *	  A pipeline on the host's side: pipeline.cu runs it, pipeline_check.cu looks
 *	  whether its spec is sound.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CUDA_PIPELINE_HOST_H
#define HGJ_CUDA_PIPELINE_HOST_H

#include "pipeline_view.h"

namespace hgj
{

/* Rows of a slot. */
constexpr uint32_t SLOT_LEAST_ROWS = 1 << 14;
constexpr uint32_t SLOT_MOST_ROWS = 1 << 18;

struct KeptCopy;

/* Transfers of registered memory that are begun together (registered.cu). */
struct RegisteredBatch
{
	static constexpr uint32_t MOST = 32;

	void *to[MOST];
	const void *from[MOST];
	size_t bytes[MOST];
	uint32_t n = 0;
	bool failed = false; /* some of what was in it has not been sent */
};

/* The device's copies of kept arrays that a slot's kernel reads (kept.cu). */
struct KeptHolds
{
	KeptCopy **copies = nullptr;
	uint64_t n = 0;
	uint64_t room = 0;
	uint64_t come = 0;      /* of them, the first so many are sent, or have failed */
	uint64_t ticket = 0;    /* all of these have come when this one has */
	bool bringing = false;  /* there are transfers, */
	bool uploading = false; /* through pinned buffers, too, or in: */
	RegisteredBatch batch;

	~KeptHolds();
};

struct PipeSlot
{
	Lane lane;
	Pinned found;           /* flags */
	bool can_stage = false; /* once rows have been staged there are: */
	Buffer columns;         /* columns on the device, values and validity, */
	Buffer inputs;          /* and PipeInput; */
	Pinned host;            /* and a staging buffer, if that is asked for */
	Event begin, sent, done;
	bool busy = false;
	bool sending = false; /* its transfer's time has not been looked at */
	uint32_t pushed = 0;  /* rows */
	PipeRows rows = {};   /* of the push, for its kernels */
	Buffer pieces;        /* kept rows: PipeInputs of each piece, and their tiles, */
	Pinned pieces_host;   /* as on the device, */
	KeptHolds kept;       /* and what these are of */
	Buffer waiting;       /* with turns: rows that wait, on two sides */
	uint32_t side = 0;    /* where they are */
	uint32_t left = 0;    /* how many */
	uint64_t taken = 0;   /* of those that are pushed */
};

/* Rows that are returned (pipeline_tuples.cu). */
struct PipeTuples
{
	Buffer device;        /* a column of input rows, one of each join's */
	Pinned host;          /* as on the device, of fewer rows */
	uint32_t total = 0;   /* that have come out of the last turn, of which */
	uint32_t done = 0;    /* so many have been copied, */
	uint32_t n = 0;       /* the last so many at once */
	bool copying = false; /* these may be on their way */
};

/* Rows of a table (pipeline_fill.cu). */
struct PipeFilling
{
	HgjTable *table = nullptr;
	Buffer words[HGJ_PIPE_KEYS];
	Buffer values[HGJ_PIPE_COLUMNS];
	Buffer validity[HGJ_PIPE_COLUMNS];
	uint64_t capacity = 0;
	uint64_t most = 0;  /* rows that there may be now */
	uint64_t rows = 0;  /* that there were at the end */
	uint64_t nulls = 0; /* bits: columns that have some */
	bool done = false;
};

} // namespace hgj

struct HgjPipeline
{
	HgjTable account;
	uint32_t holders = 1; /* atomic: the caller, and pipelines that read its columns */
	hgj::Lane lane;
	HgjPipelineSpec spec = {};
	const HgjTable *tables[HGJ_PIPE_JOINS] = {};
	HgjPipeline *filled[HGJ_PIPE_JOINS] = {}; /* held, or NULL */
	HgjPipelineInfo counted = {};
	hgj::PipeView view = {};
	uint32_t registers = 0;
	bool tiled = false; /* it goes by tiles (pipeline_tiles.cu), in steps; or has the
						  * interpreter */
	uint32_t nsteps = 0;
	HgjPipeInstruction steps[HGJ_PIPE_CODE];
	uint8_t fill_columns[HGJ_PIPE_COLUMNS] = {}; /* registers, or operands */
	hgj::TileShape shape = {};
	uint32_t tile_blocks[2] = {}; /* of a kernel, without and with NULLs */
	uint64_t work = 1;   /* candidates that a row can have, up to PIPE_MOST_WORK + 1 */
	bool turns = false;  /* that is more, or rows are returned, but for tiles */
	uint32_t places = 0; /* for rows that wait for a turn, on each side of a slot */
	uint64_t side_words = 0;
	bool started = false;
	bool only_there = false; /* of the push at hand (HgjKeptPush) */
	uint64_t reading = 0;    /* the ticket of the last transfers of kept rows (kept.cu) */

	hgj::Buffer view_at;
	hgj::Buffer code;
	hgj::Buffer flags;
	hgj::Buffer tags;
	hgj::Buffer keys;
	hgj::Buffer states;
	hgj::Buffer rows; /* group rows */
	hgj::Buffer values[HGJ_PIPE_JOINS][HGJ_PIPE_COLUMNS];
	hgj::Buffer validity[HGJ_PIPE_JOINS][HGJ_PIPE_COLUMNS];
	hgj::Pinned found; /* flags, read back */
	hgj::Stage stages[2];
	uint32_t stage = 0;

	hgj::PipeSlot slots[hgj::PIPE_SLOTS];
	uint32_t turn = 0;
	uint32_t capacity = 0; /* rows of a slot */
	size_t value_offset[HGJ_PIPE_INPUTS];
	size_t validity_offset[HGJ_PIPE_INPUTS];
	size_t slot_bytes = 0;
	uint64_t ngroups = 0;
	hgj::PipeTuples tuples;
	hgj::PipeFilling filling;
};

namespace hgj
{

/* pipeline_check.cu */
HgjStatus pipeline_check(HgjPipeline *p, HgjError *err);

/* pipeline_steps.cu */
void steps_make(HgjPipeline *p);

/* pipeline_tiles.cu */
bool tiles_fit(HgjPipeline *p, uint32_t shared_words);
HgjStatus tiles_open(HgjPipeline *p, uint32_t shared_words, HgjError *err);
HgjStatus tiles_launch(HgjPipeline *p, PipeSlot *slot, void *to, HgjError *err);

/* pipeline.cu */
HgjStatus pipeline_upload(HgjPipeline *p, char *to, const void *from, size_t bytes,
						  HgjError *err);
HgjStatus pipeline_free_slot(HgjPipeline *p, PipeSlot *slot, HgjError *err);
HgjStatus pipeline_launch(HgjPipeline *p, PipeSlot *slot, bool first, HgjError *err);
HgjStatus pipeline_look(const HgjPipeline *p, const uint64_t *flags, HgjError *err);
void pipeline_count(HgjPipeline *p, const uint64_t *flags);

/* pipeline_fill.cu */
HgjStatus fill_hold(HgjPipeline *p, uint32_t join, HgjPipeline *filled, HgjError *err);
HgjStatus fill_open(HgjPipeline *p, HgjTable *table, HgjError *err);
HgjStatus fill_launch(HgjPipeline *p, PipeSlot *slot, HgjError *err);
HgjStatus fill_finish(HgjPipeline *p, uint64_t *nrows, HgjError *err);

/* pipeline_stage.cu */
void stage_lay_out(HgjPipeline *p);
HgjStatus pipeline_stage(HgjPipeline *p, HgjPipeStage *stage, HgjError *err);
HgjStatus pipeline_push(HgjPipeline *p, uint32_t n, uint64_t nulls, HgjError *err);
HgjStatus pipeline_push_from(HgjPipeline *p, const HgjPipeStage *from, uint32_t n,
							 uint64_t nulls, HgjError *err);

/* registered.cu */
void registered_staging(const void *memory, uint64_t bytes);
bool registered_has(const void *memory, size_t bytes);

/* pipeline_kept.cu */
HgjStatus pipeline_push_kept(HgjPipeline *p, const HgjKeptPush *rows, HgjError *err);
void pipeline_kept_read(HgjPipeline *p);

/* kept.cu */
void kept_release(HgjPipeline *p, PipeSlot *slot);

/* pipeline_turns.cu */
HgjStatus turns_open(HgjPipeline *p, uint32_t nslots, int blocks, HgjError *err);
HgjStatus turn_begin(HgjPipeline *p, PipeSlot *slot, bool first, PipeTurn *turn,
					 uint32_t *blocks, HgjError *err);
bool turn_left(HgjPipeline *p, PipeSlot *slot);
HgjStatus end_of_work(HgjPipeline *p, PipeSlot *slot, HgjError *err);
HgjStatus count_transfer(HgjPipeline *p, PipeSlot *slot, HgjError *err);
HgjStatus wait_for_work(HgjPipeline *p, PipeSlot *slot, HgjError *err);

/* pipeline_tuples.cu */
inline bool tuples_left(const HgjPipeline *p)
{
	return p->spec.rows &&
		   (p->slots[0].busy || p->tuples.copying || p->tuples.done < p->tuples.total);
}
HgjStatus tuples_open(HgjPipeline *p, HgjError *err);
HgjStatus tuples_begin(HgjPipeline *p, PipeSlot *slot, bool first, HgjError *err);
HgjStatus pipeline_fetch(HgjPipeline *p, HgjPipeRows *rows, HgjError *err);

/* What kernels in the slot's stream had found, when the slot was last waited for. */
inline const uint64_t *slot_flags(const PipeSlot *slot)
{
	return slot->found.as<uint64_t>();
}

} // namespace hgj

#endif /* HGJ_CUDA_PIPELINE_HOST_H */
