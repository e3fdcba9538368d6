/*-------------------------------------------------------------------------
 *
 * faults.cu
 *	  A device that fails when it is told to.  In test builds only
 *	  (make CUDA_FAULTS=1); otherwise this file is empty.
 *
 * 1. What is to fail stands in the file hgj_cuda_faults of the process's current
 *	  directory, read when a table is created: lines of CALL NTH WHAT, where the
 *	  NTH call of append, build, probe_begin, probe_next, or of a pipeline's
 *	  methods (pipe_create, pipe_payload, pipe_start, pipe_stage, pipe_push, pipe_kept,
 *	  pipe_fetch, pipe_finish, pipe_groups) since then meets
 *
 *		trap	a kernel that faults: the context is lost, as CUDA has it
 *		hang	a kernel that runs for some eight seconds
 *		memory	a request for more memory than the device has
 *
 * 2. The calls of the real engine are replaced by ones that look for faults first.
 *	  What pipe_push meets is only put into the stream of its rows: it is met by
 *	  who waits for them.
 *
 * No memory, no locks: tests have one thread.
 *
 *-------------------------------------------------------------------------
 */
#ifdef HGJ_CUDA_FAULTS

#include <stdio.h>
#include <string.h>

#include "pipeline_host.h"

namespace hgj
{

constexpr int MAX_FAULTS = 8;
constexpr long long HANG_CLOCKS = 16LL * 1000 * 1000 * 1000;

struct Fault
{
	char call[16];
	unsigned int nth;
	char what[16];
	unsigned int seen;
};

static HgjEngine real;
static HgjPipelineMethods real_pipeline;
static HgjPipelineMethods faulty_pipeline;
static Fault faults[MAX_FAULTS];
static int nfaults = 0;

__global__ void trap_kernel()
{
	asm volatile("trap;");
}

__global__ void hang_kernel()
{
	long long begun = clock64();

	while (clock64() - begun < HANG_CLOCKS)
		__nanosleep(1000);
}

static void read_faults()
{
	FILE *file = fopen("hgj_cuda_faults", "r");
	char line[128];

	nfaults = 0;
	if (file == nullptr)
		return;
	while (nfaults < MAX_FAULTS && fgets(line, sizeof(line), file) != nullptr)
	{
		Fault *f = &faults[nfaults];

		memset(f, 0, sizeof(*f));
		if (sscanf(line, "%15s %u %15s", f->call, &f->nth, f->what) == 3)
			nfaults++;
	}
	(void) fclose(file);
}

/* Step 1; table: whose account it is. */
static HgjStatus meet_in(const char *call, HgjTable *table, const Lane &lane, bool waits,
						 HgjError *err)
{
	for (int i = 0; i < nfaults; i++)
	{
		Fault *f = &faults[i];

		if (strcmp(f->call, call) != 0 || ++f->seen != f->nth)
			continue;
		HGJ_TRY(table_enter(table, err));
		if (strcmp(f->what, "trap") == 0)
			trap_kernel<<<1, 1, 0, lane.stream>>>();
		else if (strcmp(f->what, "hang") == 0)
			hang_kernel<<<1, 1, 0, lane.stream>>>();
		else
		{
			void *p;

			HGJ_CUDA(cudaMallocFromPoolAsync(&p, table->device->total_memory * 2,
											 table->device->pool, lane.stream));
		}
		HGJ_CUDA(cudaGetLastError());
		if (waits)
			HGJ_TRY(wait(table, lane, true, err));
	}
	return HGJ_OK;
}

static HgjStatus meet(const char *call, HgjTable *table, HgjError *err)
{
	return meet_in(call, table, table->lane, true, err);
}

static HgjStatus faulty_create(const HgjTableSpec *spec, HgjTable **table, HgjError *err)
{
	read_faults();
	return real.table_create(spec, table, err);
}

static HgjStatus faulty_append(HgjTable *table, const HgjKeys *keys, uint32_t first_row,
							   const uint32_t *row_ids, HgjError *err)
{
	HGJ_TRY(meet("append", table, err));
	return real.append(table, keys, first_row, row_ids, err);
}

static HgjStatus faulty_build(HgjTable *table, uint32_t total_rows, HgjError *err)
{
	HGJ_TRY(meet("build", table, err));
	return real.build(table, total_rows, err);
}

static HgjStatus faulty_begin(HgjProbe *probe, const HgjKeys *keys, HgjProbeMode mode,
							  uint32_t flags, HgjError *err)
{
	HGJ_TRY(meet("probe_begin", probe_table(probe), err));
	return real.probe_begin(probe, keys, mode, flags, err);
}

static HgjStatus faulty_next(HgjProbe *probe, HgjMatches *matches, HgjError *err)
{
	HGJ_TRY(meet("probe_next", probe_table(probe), err));
	return real.probe_next(probe, matches, err);
}

static HgjStatus pipe_create(const HgjPipelineSpec *spec, const HgjPipelineCaller *caller,
							 HgjPipeline **pipeline, HgjError *err)
{
	*pipeline = nullptr;
	if (spec->njoins > 0)
		HGJ_TRY(meet("pipe_create", caller->tables[0], err));
	return real_pipeline.create(spec, caller, pipeline, err);
}

static HgjStatus meet_pipe(const char *call, HgjPipeline *p, HgjError *err)
{
	return meet_in(call, &p->account, p->lane, true, err);
}

static HgjStatus pipe_payload(HgjPipeline *p, uint32_t join, uint32_t column,
							  uint32_t first, uint32_t n, const void *values,
							  const uint64_t *validity, HgjError *err)
{
	HGJ_TRY(meet_pipe("pipe_payload", p, err));
	return real_pipeline.payload(p, join, column, first, n, values, validity, err);
}

static HgjStatus pipe_start(HgjPipeline *p, const HgjPipeRange *ranges, uint64_t expected,
							HgjError *err)
{
	HGJ_TRY(meet_pipe("pipe_start", p, err));
	return real_pipeline.start(p, ranges, expected, err);
}

static HgjStatus pipe_stage(HgjPipeline *p, HgjPipeStage *stage, HgjError *err)
{
	HGJ_TRY(meet_pipe("pipe_stage", p, err));
	return real_pipeline.stage(p, stage, err);
}

static HgjStatus pipe_push(HgjPipeline *p, uint32_t n, uint64_t nulls, HgjError *err)
{
	HGJ_TRY(meet_in("pipe_push", &p->account, p->slots[p->turn].lane, false, err));
	return real_pipeline.push(p, n, nulls, err);
}

static HgjStatus pipe_push_from(HgjPipeline *p, const HgjPipeStage *from, uint32_t n,
								uint64_t nulls, HgjError *err)
{
	HGJ_TRY(meet_pipe("pipe_stage", p, err));
	HGJ_TRY(meet_in("pipe_push", &p->account, p->slots[p->turn].lane, false, err));
	return real_pipeline.push_from(p, from, n, nulls, err);
}

static HgjStatus pipe_kept(HgjPipeline *p, const HgjKeptPush *rows, HgjError *err)
{
	HGJ_TRY(meet_pipe("pipe_kept", p, err));
	return real_pipeline.push_kept(p, rows, err);
}

static HgjStatus pipe_fetch(HgjPipeline *p, HgjPipeRows *rows, HgjError *err)
{
	HGJ_TRY(meet_pipe("pipe_fetch", p, err));
	return real_pipeline.fetch(p, rows, err);
}

static HgjStatus pipe_finish(HgjPipeline *p, uint64_t *ngroups, HgjError *err)
{
	HGJ_TRY(meet_pipe("pipe_finish", p, err));
	return real_pipeline.finish(p, ngroups, err);
}

static HgjStatus pipe_groups(HgjPipeline *p, uint64_t first, uint64_t n, uint64_t *rows,
							 HgjError *err)
{
	HGJ_TRY(meet_pipe("pipe_groups", p, err));
	return real_pipeline.groups(p, first, n, rows, err);
}

/* Step 2. */
void install_faults(HgjEngine *engine)
{
	if (engine->table_create == faulty_create)
		return;
	real = *engine;
	engine->table_create = faulty_create;
	engine->append = faulty_append;
	engine->build = faulty_build;
	engine->probe_begin = faulty_begin;
	engine->probe_next = faulty_next;
	real_pipeline = faulty_pipeline = *engine->pipeline;
	faulty_pipeline.create = pipe_create;
	faulty_pipeline.payload = pipe_payload;
	faulty_pipeline.start = pipe_start;
	faulty_pipeline.stage = pipe_stage;
	faulty_pipeline.push = pipe_push;
	faulty_pipeline.push_from = pipe_push_from;
	faulty_pipeline.push_kept = pipe_kept;
	faulty_pipeline.fetch = pipe_fetch;
	faulty_pipeline.finish = pipe_finish;
	faulty_pipeline.groups = pipe_groups;
	engine->pipeline = &faulty_pipeline;
}

} // namespace hgj

#endif /* HGJ_CUDA_FAULTS */
