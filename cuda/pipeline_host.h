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
};

namespace hgj
{

/* pipeline_check.cu */
HgjStatus pipeline_check(HgjPipeline *p, HgjError *err);

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
