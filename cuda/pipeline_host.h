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

constexpr uint32_t PIPE_SLOTS = 3;

/* Rows of a slot. */
constexpr uint32_t SLOT_LEAST_ROWS = 1 << 14;
constexpr uint32_t SLOT_MOST_ROWS = 1 << 18;

/* Kernels, one after the other, for the rows of a slot. */
constexpr uint32_t PIPE_PIECES = 8;

struct Event
{
	cudaEvent_t event = nullptr;

	~Event()
	{
		if (event != nullptr)
			(void) cudaEventDestroy(event);
	}
	HgjStatus open(HgjError *err)
	{
		HGJ_CUDA(cudaEventCreate(&event));
		return HGJ_OK;
	}
};

struct PipeSlot
{
	Lane lane;
	Pinned host; /* the columns, values and validity; flags at the end */
	Buffer columns;
	Buffer batch; /* PipeBatch */
	Event begin, sent, done;
	Event pieces[PIPE_PIECES];
	uint32_t npieces = 0; /* that have an event; none if there is one piece */
	uint32_t waited = 0;
	bool busy = false;
};

/* Rows that are returned (pipeline_tuples.cu). */
struct PipeTuples
{
	Buffer device; /* a column of input rows, one of each join's */
	Buffer waiting;
	Pinned host;         /* as on the device */
	uint32_t pushed = 0; /* rows of the last push */
	uint64_t nulls = 0;
	uint64_t taken = 0;   /* by threads, of these */
	uint32_t left = 0;    /* waiting on the device */
	uint32_t side = 0;    /* where: of view.out.waiting */
	uint32_t n = 0;       /* that have come out of the last turn */
	bool sending = false; /* the push's time has not been looked at */
	bool copying = false; /* what has come out may be on its way */
};

} // namespace hgj

struct HgjPipeline
{
	HgjTable account;
	hgj::Lane lane;
	HgjPipelineSpec spec = {};
	HgjPipelineInfo counted = {};
	hgj::PipeView view = {};
	uint32_t registers = 0;
	uint64_t work = 1; /* candidates that a row can have */
	bool started = false;

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
};

namespace hgj
{

/* pipeline_check.cu */
HgjStatus pipeline_check(HgjPipeline *p, HgjError *err);

/* pipeline.cu */
HgjStatus pipeline_look(const HgjPipeline *p, const uint64_t *flags, HgjError *err);
void pipeline_count(HgjPipeline *p, const uint64_t *flags);
HgjStatus end_of_work(HgjPipeline *p, PipeSlot *slot, HgjError *err);

/* pipeline_tuples.cu */
inline bool tuples_left(const HgjPipeline *p)
{
	return p->spec.rows && (p->slots[0].busy || p->tuples.copying);
}
HgjStatus tuples_open(HgjPipeline *p, HgjError *err);
HgjStatus tuples_begin(HgjPipeline *p, PipeSlot *slot, uint32_t n, uint64_t nulls,
					   HgjError *err);
HgjStatus pipeline_fetch(HgjPipeline *p, HgjPipeRows *rows, HgjError *err);

/* Bytes of a value of an HgjPipeKind. */
inline size_t width_of(uint32_t kind)
{
	switch (kind)
	{
		case HGJ_PIPE_U1:
			return 1;
		case HGJ_PIPE_I2:
			return 2;
		case HGJ_PIPE_I4:
		case HGJ_PIPE_U4:
		case HGJ_PIPE_F4:
			return 4;
		default:
			return 8;
	}
}

} // namespace hgj

#endif /* HGJ_CUDA_PIPELINE_HOST_H */
