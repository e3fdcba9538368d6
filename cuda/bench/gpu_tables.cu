/*-------------------------------------------------------------------------
 *
 * gpu_tables.cu
 *	  How fast the GPU builds tables and joins with them, input and output in
 *	  its memory.
 *
 *	  gpu_tables [case ...] [build=v1|v2|sort|auto] [probe=standard|binned|auto]
 *				 [runs=7]
 *
 * A case is one line of the table that is printed (default: all of them):
 * build keys and row ids (4 or 8 bytes, and the row's number), probe keys; timed
 * from the key columns to all match pairs written, by CUDA events, the median of
 * `runs` after 2 warm-ups.  Device memory comes from a warm pool.  Beside it the
 * least time that the bytes take which must move (both key columns read, pairs
 * written) at 4.3 TB/s, what HGJ_BENCH calls the floor.
 *
 * Every result is checked: the number of pairs against a histogram of the
 * values, each pair for equal keys, and the sum over both row numbers of all
 * pairs, for each probe row once per match.
 *
 * 1. Values are drawn from a dense domain (unique: a permutation of it; uniform;
 *	  Zipf).  A key is a value times an odd constant, so that keys are spread
 *	  over the whole of their type and no table is direct.
 * 2. Per run: build_graph from the columns, one probe, all pairs in one call.
 *
 *-------------------------------------------------------------------------
 */
#include <algorithm>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

#include "bench.h"

using namespace hgj;

enum Draw
{
	DRAW_UNIQUE,
	DRAW_UNIFORM,
	DRAW_ZIPF
};

struct Case
{
	const char *name;
	int key_bytes;
	uint32_t build_bits;
	uint32_t probe_bits; /* 0: build only */
	Draw build_draw;
	Draw probe_draw;
	double domain; /* values */
	double peer;   /* ms, the best measured peer's; Gkeys/s for builds */
	double bar;
	double goal;
};

static const Case cases[] = {
	{"25x25", 4, 25, 25, DRAW_UNIQUE, DRAW_UNIQUE, 1 << 25, 2.69, 2.7, 1.8},
	{"27x27", 4, 27, 27, DRAW_UNIQUE, DRAW_UNIQUE, 1 << 27, 10.06, 10, 6.7},
	{"20x27", 4, 20, 27, DRAW_UNIQUE, DRAW_UNIFORM, 1 << 20, 4.63, 4.6, 3},
	{"24x27", 4, 24, 27, DRAW_UNIQUE, DRAW_UNIFORM, 1 << 24, 6.20, 6.2, 4},
	{"zipf", 4, 24, 27, DRAW_UNIQUE, DRAW_ZIPF, 1 << 24, 5.61, 5.6, 4},
	{"dup8", 4, 25, 25, DRAW_UNIFORM, DRAW_UNIFORM, 1 << 22, 9.99, 10, 7},
	{"wide", 8, 25, 25, DRAW_UNIQUE, DRAW_UNIQUE, 1 << 25, 5.19, 5.2, 3.5},
	{"b25", 4, 25, 0, DRAW_UNIQUE, DRAW_UNIQUE, 1 << 25, 37, 35, 45},
	{"b25/8", 4, 25, 0, DRAW_UNIFORM, DRAW_UNIQUE, (1 << 25) / 8.0, 37, 35, 45},
	{"b25/64", 4, 25, 0, DRAW_UNIFORM, DRAW_UNIQUE, (1 << 25) / 64.0, 37, 35, 45},
	{"b25/1000", 4, 25, 0, DRAW_UNIFORM, DRAW_UNIQUE, (1 << 25) / 1000.0, 37, 35, 45},
	{"b27", 4, 27, 0, DRAW_UNIQUE, DRAW_UNIQUE, 1 << 27, 37, 35, 45},
	{"b27/8", 4, 27, 0, DRAW_UNIFORM, DRAW_UNIQUE, (1 << 27) / 8.0, 37, 35, 45},
	{"b27/64", 4, 27, 0, DRAW_UNIFORM, DRAW_UNIQUE, (1 << 27) / 64.0, 37, 35, 45},
	{"b27/1000", 4, 27, 0, DRAW_UNIFORM, DRAW_UNIQUE, (1 << 27) / 1000.0, 37, 35, 45},
};

static HgjBuild forced_build = HGJ_BUILD_AUTO;
static HgjProbeAlgo forced_probe = HGJ_PROBE_AUTO;
static int runs = 7;

static void must(cudaError_t error)
{
	if (error != cudaSuccess)
		die(cudaGetErrorString(error));
}

/* Step 1. */
__global__ void draw_values(uint32_t *values, uint32_t bits, Draw draw, double domain,
							uint64_t seed)
{
	uint64_t n = 1ull << bits;
	uint64_t step = (uint64_t) gridDim.x * blockDim.x;

	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
	{
		uint64_t r = scramble(i + seed);
		double u = (double) (r >> 11) / 9007199254740992.0;

		if (draw == DRAW_UNIQUE)
		{
			uint64_t x = i;

			for (int round = 0; round < 4; round++)
			{
				x = (x * (seed * 2 + 0x9E3779B97F4A7C15ull) + round) & (n - 1);
				x ^= x >> (bits / 2);
			}
			values[i] = (uint32_t) x;
		}
		else if (draw == DRAW_UNIFORM)
			values[i] = (uint32_t) (u * domain);
		else
			values[i] =
				min((uint32_t) domain - 1, (uint32_t) exp(u * log(domain + 1)) - 1);
	}
}

__global__ void make_keys(const uint32_t *values, uint64_t n, int key_bytes, void *keys)
{
	uint64_t step = (uint64_t) gridDim.x * blockDim.x;

	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
		if (key_bytes == 4)
			static_cast<uint32_t *>(keys)[i] = values[i] * 0x9E3779B1u;
		else
			static_cast<uint64_t *>(keys)[i] = values[i] * 0x9E3779B97F4A7C15ull;
}

__global__ void histogram(const uint32_t *values, uint64_t n, uint32_t *counts)
{
	uint64_t step = (uint64_t) gridDim.x * blockDim.x;

	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
		atomicAdd(&counts[values[i]], 1u);
}

/* What should come out: pairs, and the sum of a scramble of their probe rows. */
__global__ void expect(const uint32_t *values, uint64_t n, const uint32_t *counts,
					   unsigned long long *sums)
{
	uint64_t step = (uint64_t) gridDim.x * blockDim.x;
	unsigned long long pairs = 0;
	unsigned long long sum = 0;

	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
	{
		pairs += counts[values[i]];
		sum += counts[values[i]] * scramble(i);
	}
	atomicAdd(&sums[0], pairs);
	atomicAdd(&sums[1], sum);
}

/* What came out: wrong pairs, and both sums. */
__global__ void verify_pairs(const uint32_t *probe_rows, const uint32_t *build_rows,
							 uint64_t n, const uint32_t *probe_values, uint64_t nprobe,
							 const uint32_t *build_values, uint64_t nbuild,
							 unsigned long long *sums)
{
	uint64_t step = (uint64_t) gridDim.x * blockDim.x;
	unsigned long long wrong = 0;
	unsigned long long probe_sum = 0;
	unsigned long long build_sum = 0;

	for (uint64_t i = (uint64_t) blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
	{
		uint32_t p = probe_rows[i];
		uint32_t b = build_rows[i];

		wrong += p >= nprobe || b >= nbuild || probe_values[p] != build_values[b];
		probe_sum += scramble(p);
		build_sum += scramble(b);
	}
	atomicAdd(&sums[2], wrong);
	atomicAdd(&sums[3], probe_sum);
	atomicAdd(&sums[4], build_sum);
}

template <class T>
static T *device_array(uint64_t n)
{
	void *p = nullptr;

	must(cudaMalloc(&p, n * sizeof(T)));
	return static_cast<T *>(p);
}

struct Side
{
	uint64_t n;
	uint32_t *values;
	void *keys;
	Rows rows;
};

static Side make_side(const Case &c, uint32_t bits, Draw draw, uint64_t seed)
{
	Side s;

	s.n = 1ull << bits;
	s.values = device_array<uint32_t>(s.n);
	s.keys = device_array<char>(s.n * c.key_bytes);
	draw_values<<<2048, 256>>>(s.values, bits, draw, c.domain, seed);
	make_keys<<<2048, 256>>>(s.values, s.n, c.key_bytes, s.keys);
	must(cudaDeviceSynchronize());
	s.rows = Rows{};
	s.rows.words = s.keys;
	s.rows.n = s.n;
	s.rows.word_bytes = (uint32_t) c.key_bytes;
	s.rows.nwords = 1;
	return s;
}

static void free_side(Side *s)
{
	must(cudaFree(s->values));
	must(cudaFree(s->keys));
}

struct Times
{
	std::vector<double> build;
	std::vector<double> probe;
	std::vector<double> join;
};

static double median(std::vector<double> v)
{
	std::sort(v.begin(), v.end());
	return v[v.size() / 2];
}

/* Step 2. */
static void one_run(const Case &c, HgjTable *t, HgjProbe **p, const Side &build,
					const Side &probe, uint32_t *out_probe, uint32_t *out_build,
					uint64_t expected, Times *times)
{
	HgjError err = {HGJ_OK, ""};
	RowSet set = {&build.rows, 1, build.n};
	cudaEvent_t e[3];
	float ms[2] = {0, 0};
	Plan plan;
	Graph graph;

	for (cudaEvent_t &event : e)
		must(cudaEventCreate(&event));
	plan_build(t, build.n, c.key_bytes == 4 ? 0 : INT64_MIN,
			   c.key_bytes == 4 ? UINT32_MAX : INT64_MAX, &plan);
	must(cudaEventRecord(e[0], t->lane.stream));
	must(build_graph(t, set, plan, &graph, &err), err);
	must(cudaEventRecord(e[1], t->lane.stream));
	must(cudaEventSynchronize(e[1]));
	t->graph.swap(graph);
	t->built = true;
	must(cudaEventElapsedTime(&ms[0], e[0], e[1]));
	times->build.push_back(ms[0]);
	if (c.probe_bits > 0)
	{
		HgjMatches m;

		/* the probe's own buffers are part of what a warm session has */
		if (*p == nullptr)
			must(probe_create(t, p, &err), err);
		memset(&m, 0, sizeof(m));
		m.probe_rows = out_probe;
		m.build_rows = out_build;
		m.capacity = (uint32_t) expected;
		m.location = HGJ_ON_DEVICE;
		must(probe_begin_rows(*p, probe.rows, HGJ_MATCH_ALL, 0, &err), err);
		must(cudaEventRecord(e[1], t->lane.stream));
		must(probe_next(*p, &m, &err), err);
		must(cudaEventRecord(e[2], t->lane.stream));
		must(cudaEventSynchronize(e[2]));
		must(cudaEventElapsedTime(&ms[1], e[1], e[2]));
		if (!m.done || m.n != expected)
			die("the number of pairs is wrong");
	}
	times->probe.push_back(ms[1]);
	times->join.push_back(ms[0] + ms[1]);
	for (cudaEvent_t event : e)
		must(cudaEventDestroy(event));
}

static void run_case(const HgjEngine *engine, const Case &c)
{
	HgjTableSpec spec;
	HgjTable *t = nullptr;
	HgjProbe *p = nullptr;
	HgjError err = {HGJ_OK, ""};
	HgjTableInfo info;
	Times times;
	Side build = make_side(c, c.build_bits, c.build_draw, 12345);
	Side probe = build;
	unsigned long long *sums = device_array<unsigned long long>(5);
	unsigned long long got[5] = {};
	uint32_t *counts = device_array<uint32_t>((uint64_t) c.domain + 1);
	uint32_t *out_probe = nullptr;
	uint32_t *out_build = nullptr;
	double floor_ms;
	double ms;

	must(cudaMemset(counts, 0, ((uint64_t) c.domain + 1) * 4));
	must(cudaMemset(sums, 0, 5 * 8));
	if (c.probe_bits > 0)
	{
		probe = make_side(c, c.probe_bits, c.probe_draw, 99999);
		histogram<<<2048, 256>>>(build.values, build.n, counts);
		expect<<<2048, 256>>>(probe.values, probe.n, counts, sums);
		must(cudaMemcpy(got, sums, sizeof(got), cudaMemcpyDeviceToHost));
		out_probe = device_array<uint32_t>(got[0]);
		out_build = device_array<uint32_t>(got[0]);
	}
	memset(&spec, 0, sizeof(spec));
	spec.nwords = 1;
	spec.seed = 0xC0FFEE;
	spec.build = forced_build;
	spec.probe = forced_probe;
	must(engine->table_create(&spec, &t, &err), err);
	for (int i = 0; i < runs + 2; i++)
	{
		if (i == 2)
			times = Times();
		one_run(c, t, &p, build, probe, out_probe, out_build, got[0], &times);
	}
	probe_destroy(p);
	engine->info(t, &info);
	if (c.probe_bits > 0)
	{
		verify_pairs<<<2048, 256>>>(out_probe, out_build, got[0], probe.values, probe.n,
									build.values, build.n, sums);
		must(cudaMemcpy(got, sums, sizeof(got), cudaMemcpyDeviceToHost));
		if (got[2] != 0 || got[3] != got[1])
			die("pairs are wrong");
	}
	ms = median(times.join);
	if (c.probe_bits > 0)
	{
		floor_ms = ((build.n + probe.n) * c.key_bytes + got[0] * 8.0) / 4.3e9;
		printf("%-9s %-6s %-8s build %6.2f  probe %6.2f  join %6.2f ms  floor %5.2f  "
			   "peer %5.2f  bar %5.2f %s  goal %5.2f %s\n",
			   c.name,
			   info.build == HGJ_BUILD_V1   ? "v1"
			   : info.build == HGJ_BUILD_V2 ? "v2"
											: "sort",
			   info.probe == HGJ_PROBE_BINNED ? "binned" : "standard",
			   median(times.build), median(times.probe), ms, floor_ms, c.peer, c.bar,
			   ms <= c.bar ? "ok" : "--", c.goal, ms <= c.goal ? "ok" : "--");
	}
	else
	{
		double rate = build.n / ms / 1e6;

		printf("%-9s %-6s %8s build %6.2f ms  %6.1f Gkeys/s  longest %5llu  peer %5.1f  "
			   "bar %5.1f %s  goal %5.1f %s\n",
			   c.name,
			   info.build == HGJ_BUILD_V1   ? "v1"
			   : info.build == HGJ_BUILD_V2 ? "v2"
											: "sort",
			   "", ms, rate, (unsigned long long) info.longest, c.peer, c.bar,
			   rate >= c.bar ? "ok" : "--", c.goal, rate >= c.goal ? "ok" : "--");
	}
	fflush(stdout);
	engine->table_destroy(t);
	free_side(&build);
	if (c.probe_bits > 0)
	{
		free_side(&probe);
		must(cudaFree(out_probe));
		must(cudaFree(out_build));
	}
	must(cudaFree(sums));
	must(cudaFree(counts));
}

int main(int argc, char **argv)
{
	const HgjEngine *engine = hgj_engine_entry();
	HgjError err = {HGJ_OK, ""};
	bool named = false;

	must(engine->open(&err), err);
	for (int i = 1; i < argc; i++)
	{
		if (strncmp(argv[i], "build=", 6) == 0)
			forced_build = strcmp(argv[i] + 6, "v1") == 0     ? HGJ_BUILD_V1
						   : strcmp(argv[i] + 6, "v2") == 0   ? HGJ_BUILD_V2
						   : strcmp(argv[i] + 6, "sort") == 0 ? HGJ_BUILD_SORT
															  : HGJ_BUILD_AUTO;
		else if (strncmp(argv[i], "probe=", 6) == 0)
			forced_probe = strcmp(argv[i] + 6, "standard") == 0 ? HGJ_PROBE_STANDARD
						   : strcmp(argv[i] + 6, "binned") == 0 ? HGJ_PROBE_BINNED
																: HGJ_PROBE_AUTO;
		else if (strncmp(argv[i], "runs=", 5) == 0)
			runs = atoi(argv[i] + 5) > 0 ? atoi(argv[i] + 5) : 1;
		else
			named = true;
	}
	for (const Case &c : cases)
	{
		bool wanted = !named;

		for (int i = 1; i < argc; i++)
			wanted |= strcmp(argv[i], c.name) == 0;
		if (wanted)
			run_case(engine, c);
	}
	engine->close();
	return 0;
}
