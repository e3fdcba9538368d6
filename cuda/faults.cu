/*-------------------------------------------------------------------------
 *
 * faults.cu
 *	  A device that fails when it is told to.  In test builds only
 *	  (make CUDA_FAULTS=1); otherwise this file is empty.
 *
 * 1. What is to fail stands in the file hgj_cuda_faults of the process's current
 *	  directory, read when a table is created: lines of CALL NTH WHAT, where the
 *	  NTH call of append, build, probe_begin or probe_next since then meets
 *
 *		trap	a kernel that faults: the context is lost, as CUDA has it
 *		hang	a kernel that runs for some eight seconds
 *		memory	a request for more memory than the device has
 *
 * 2. The calls of the real engine are replaced by ones that look for faults first.
 *
 * No memory, no locks: tests have one thread.
 *
 *-------------------------------------------------------------------------
 */
#ifdef HGJ_CUDA_FAULTS

#include <stdio.h>
#include <string.h>

#include "internal.h"

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

/* Step 1. */
static HgjStatus meet(const char *call, HgjTable *table, HgjError *err)
{
	for (int i = 0; i < nfaults; i++)
	{
		Fault *f = &faults[i];

		if (strcmp(f->call, call) != 0 || ++f->seen != f->nth)
			continue;
		HGJ_TRY(table_enter(table, err));
		if (strcmp(f->what, "trap") == 0)
			trap_kernel<<<1, 1, 0, table->lane.stream>>>();
		else if (strcmp(f->what, "hang") == 0)
			hang_kernel<<<1, 1, 0, table->lane.stream>>>();
		else
		{
			Buffer buffer;

			HGJ_TRY(buffer.get(table, table->lane.stream, table->device->total_memory * 2,
							   err));
		}
		HGJ_CUDA(cudaGetLastError());
		HGJ_TRY(wait(table, table->lane, true, err));
	}
	return HGJ_OK;
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
}

} // namespace hgj

#endif /* HGJ_CUDA_FAULTS */
