/*-------------------------------------------------------------------------
 *
 * gpu_pipelines.cu
 *	  How fast pipelines go over rows that are kept on the device.
 *
 *	  gpu_pipelines [case ...] [runs=9] [gbs=3350] [wide=0]
 *
 * A case is one line of the table that is printed (default: all of them): columns as the
 * store of kept columns has them, numbers of 1, 2 or 3 bytes in pieces of 65,536 rows (with
 * wide=1, 4 bytes where they were 3); build sides of one row a key; an aggregation of few
 * groups.  They have the shapes of the Star Schema Benchmark's queries of those names at scale
 * factor 10, and of "fact join dim".
 *
 * Timed from create to the last group, by the host's clock, and by the pipeline's own
 * account of its kernels; the median of `runs` after 2 warm-ups, which have brought the
 * columns.  Beside it the floor: the least time that the columns' bytes take at `gbs` GB/s,
 * where a row's later columns count only if it comes so far, in sectors of 32 bytes, and
 * one sector for each lookup in a table beyond the L2 cache.
 *
 * Every result is checked: rows and sum of all groups against the host's.
 *
 *-------------------------------------------------------------------------
 */
#include <algorithm>
#include <chrono>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <vector>

#include "bench.h"

using namespace hgj;

constexpr uint32_t PIECE_ROWS = 65536;
constexpr double L2_BYTES = 50e6;

static int runs = 9;
static double gbs = 3350;
static int wide = 0;
static const HgjEngine *engine;

/* ---- what a case is -------------------------------------------------------- */

/* A column of numbers low .. low + n - 1, drawn evenly. */
struct Column
{
	uint32_t width;
	int64_t low;
	uint64_t n;
};

/* An inner join by an input: keys low + i * step, i < n; payload: i % groups, of I4. */
struct Side
{
	uint32_t input;
	int64_t low;
	uint64_t n;
	uint64_t step;
	uint64_t groups; /* 0: none is read */
};

/* Inputs up to `filters` have to be low .. high. */
struct Range
{
	int64_t low;
	int64_t high;
};

struct Case
{
	const char *name;
	uint64_t rows;
	std::vector<Column>
		columns; /* those that are filtered first; the last one is summed */
	std::vector<Range> filters;
	std::vector<Side> sides;
};

static const std::vector<Case> cases = {
	{"1.1",
	 60000000,
	 {{1, 0, 11}, {1, 1, 50}, {3, 19920101, 70000}, {3, 90000, 10000000}},
	 {{1, 3}, {1, 24}},
	 {{2, 19940101, 1131, 1, 0}}},
	{"1.3",
	 60000000,
	 {{1, 0, 11}, {1, 1, 50}, {3, 19920101, 70000}, {3, 90000, 10000000}},
	 {{5, 7}, {26, 35}},
	 {{2, 19940201, 7, 1, 0}}},
	{"2.1",
	 60000000,
	 {{3, 1, 800000}, {2, 1, 20000}, {3, 19920101, 70000}, {3, 90000, 10000000}},
	 {},
	 {{0, 7, 32000, 25, 40}, {1, 3, 4000, 5, 0}, {2, 19920101, 2557, 27, 7}}},
	{"2.2",
	 60000000,
	 {{3, 1, 800000}, {2, 1, 20000}, {3, 19920101, 70000}, {3, 90000, 10000000}},
	 {},
	 {{0, 7, 6400, 125, 8}, {1, 3, 4000, 5, 0}, {2, 19920101, 2557, 27, 7}}},
	{"3.1",
	 60000000,
	 {{3, 1, 300000}, {2, 1, 20000}, {3, 19920101, 70000}, {3, 90000, 10000000}},
	 {},
	 {{0, 2, 60000, 5, 25}, {1, 3, 4000, 5, 25}, {2, 19920101, 2192, 27, 6}}},
	{"4.1",
	 60000000,
	 {{3, 1, 300000},
	  {2, 1, 20000},
	  {3, 1, 800000},
	  {3, 19920101, 70000},
	  {3, 90000, 10000000}},
	 {},
	 {{0, 2, 60000, 5, 25},
	  {1, 3, 4000, 5, 0},
	  {2, 1, 320000, 2, 0},
	  {3, 19920101, 2557, 27, 7}}},
	{"Q1", 50000000, {{3, 1, 10000000}, {2, 0, 1000}}, {}, {{0, 1, 10000000, 1, 0}}},
	{"Q2", 50000000, {{3, 1, 10000000}, {2, 0, 1000}}, {}, {{0, 1, 10000000, 1, 1000}}},
	{"sum", 60000000, {{1, 0, 11}, {3, 90000, 10000000}}, {}, {}},
};

/* ---- its data ------------------------------------------------------------- */

static char *memory;
static uint64_t memory_bytes;
static uint64_t memory_used;

static uint32_t width_of(const Column &column)
{
	return column.width == 3 && wide ? 4 : column.width;
}

/* Row `row` of a piece of n rows, which begins at `to`. */
static void put_number(char *to, uint32_t width, uint64_t n, uint64_t row, uint64_t value)
{
	if (width == 3)
	{
		memcpy(to + row * 2, &value, 2);
		to[n * 2 + row] = (char) (value >> 16);
	}
	else
		memcpy(to + row * width, &value, width);
}

static uint64_t value_of(const Column &column, uint64_t number, uint64_t row)
{
	return (scramble(row * 8 + number) >> 11) % column.n;
}

struct Data
{
	std::vector<uint64_t> at; /* of the columns */
	uint64_t id;
};

static Data make_data(const Case &c)
{
	static uint64_t last_id = 0;
	Data data;

	data.id = last_id + 1;
	for (size_t i = 0; i < c.columns.size(); i++)
	{
		const Column &column = c.columns[i];
		char *to = memory + memory_used;

		data.at.push_back(memory_used);
		last_id += c.rows / PIECE_ROWS + 1;
		memory_used += (c.rows * width_of(column) + 63) / 64 * 64;
		if (memory_used > memory_bytes)
			die("the memory for columns is too small");
		for (uint64_t row = 0; row < c.rows; row++)
		{
			uint64_t from = row / PIECE_ROWS * PIECE_ROWS;

			put_number(to + from * width_of(column), width_of(column),
					   std::min<uint64_t>(PIECE_ROWS, c.rows - from), row - from,
					   value_of(column, i, row));
		}
	}
	return data;
}

/* Place of a side's row, or UINT64_MAX. */
static uint64_t find_row(const Side &side, int64_t key)
{
	int64_t distance = key - side.low;

	if (distance < 0 || distance % (int64_t) side.step != 0 ||
		(uint64_t) distance / side.step >= side.n)
		return UINT64_MAX;
	return (uint64_t) distance / side.step;
}

static double share(const Range &range, const Column &column)
{
	return (double) (range.high - range.low + 1) / (double) column.n;
}

/* What the host finds: rows and their sum; and the floor's bytes. */
struct Expected
{
	uint64_t rows = 0;
	uint64_t sum = 0;
	double bytes = 0;
};

static Expected expect(const Case &c)
{
	Expected e;
	double left = 1;

	for (uint64_t row = 0; row < c.rows; row++)
	{
		bool passes = true;

		for (size_t i = 0; i < c.filters.size() && passes; i++)
		{
			int64_t value = c.columns[i].low + (int64_t) value_of(c.columns[i], i, row);

			passes = value >= c.filters[i].low && value <= c.filters[i].high;
		}
		for (const Side &side : c.sides)
			if (passes)
				passes =
					find_row(side, c.columns[side.input].low +
									   (int64_t) value_of(c.columns[side.input],
														  side.input, row)) != UINT64_MAX;
		if (!passes)
			continue;
		e.rows++;
		e.sum +=
			c.columns.back().low + value_of(c.columns.back(), c.columns.size() - 1, row);
	}

	auto read = [&](const Column &column, double part)
	{
		double in_sector = 32.0 / width_of(column);

		e.bytes += (double) c.rows * width_of(column) * (1 - pow(1 - part, in_sector));
	};

	for (size_t i = 0; i < c.filters.size(); i++)
	{
		read(c.columns[i], left);
		left *= share(c.filters[i], c.columns[i]);
	}
	for (const Side &side : c.sides)
	{
		const Column &column = c.columns[side.input];

		read(column, left);
		if ((double) (side.n * side.step) * 4 > L2_BYTES)
			e.bytes += (double) c.rows * left * 32 * (side.groups > 0 ? 2 : 1);
		left *= std::min(1.0, (double) side.n / (double) column.n);
	}
	read(c.columns.back(), left);
	return e;
}

/* ---- its pipeline --------------------------------------------------------- */

static void emit(HgjPipelineSpec *spec, HgjPipeOp op, uint8_t dst, uint8_t a, uint8_t b,
				 uint8_t c, uint16_t arg, int64_t imm)
{
	HgjPipeInstruction *in = &spec->code[spec->ncode++];

	in->op = (uint8_t) op;
	in->kind = HGJ_KIND_I4;
	in->dst = dst;
	in->a = a;
	in->b = b;
	in->c = c;
	in->arg = arg;
	in->imm = imm;
}

/* Register i is input i; those of payload, and two more, come behind. */
static HgjPipelineSpec make_spec(const Case &c)
{
	HgjPipelineSpec spec;
	uint8_t n = (uint8_t) c.columns.size();
	uint8_t next = n;
	bool loaded[HGJ_PIPE_INPUTS] = {};

	memset(&spec, 0, sizeof(spec));
	spec.ninputs = n;
	memset(spec.inputs, HGJ_KIND_I4, sizeof(spec.inputs));
	for (uint8_t i = 0; i < c.filters.size(); i++)
	{
		emit(&spec, HGJ_PIPE_INPUT, i, 0, 0, 0, i, 0);
		loaded[i] = true;
		for (int end = 0; end < 2; end++)
		{
			emit(&spec, HGJ_PIPE_CONSTANT, next, 0, 0, 0, 0,
				 end ? c.filters[i].high : c.filters[i].low);
			emit(&spec, HGJ_PIPE_COMPARE, next + 1, i, next, end ? HGJ_LE : HGJ_GE, 0, 0);
			emit(&spec, HGJ_PIPE_FILTER, 0, next + 1, 0, 0, HGJ_PIPE_DROP, 0);
		}
	}
	for (uint8_t j = 0; j < c.sides.size(); j++)
	{
		HgjPipeJoin *join = &spec.joins[spec.njoins++];
		uint8_t input = (uint8_t) c.sides[j].input;

		if (!loaded[input])
			emit(&spec, HGJ_PIPE_INPUT, input, 0, 0, 0, input, 0);
		loaded[input] = true;
		emit(&spec, HGJ_PIPE_PROBE, 0, j, 0, 0, 0, 0);
		emit(&spec, HGJ_PIPE_MATCH, 0, j, 0, 0, 0, 0);
		join->pass = true;
		join->nkeys = 1;
		join->keys[0] = input;
		join->ncolumns = c.sides[j].groups > 0;
		join->kinds[0] = HGJ_KIND_I4;
	}
	for (uint8_t j = 0; j < c.sides.size(); j++)
		if (c.sides[j].groups > 0)
		{
			emit(&spec, HGJ_PIPE_PAYLOAD, next, j, 0, 0, 0, 0);
			spec.keys[spec.nkeys++] = next++;
		}
	if (!loaded[n - 1])
		emit(&spec, HGJ_PIPE_INPUT, n - 1, 0, 0, 0, n - 1, 0);
	emit(&spec, HGJ_PIPE_END, 0, 0, 0, 0, 0, 0);
	spec.nwords = 3;
	spec.words[0] = {HGJ_PIPE_COUNT, HGJ_PIPE_NONE, HGJ_PIPE_NONE};
	spec.words[1] = {HGJ_PIPE_COUNT, (uint8_t) (n - 1), HGJ_PIPE_NONE};
	spec.words[2] = {HGJ_PIPE_SUM, (uint8_t) (n - 1), HGJ_PIPE_NONE};
	return spec;
}

static HgjTable *make_table(const Side &side)
{
	HgjTableSpec spec;
	HgjTable *table = nullptr;
	HgjError err = {HGJ_OK, ""};
	std::vector<uint64_t> words(side.n);
	const uint64_t *columns[1] = {words.data()};
	HgjKeys keys = {};

	memset(&spec, 0, sizeof(spec));
	spec.nwords = 1;
	spec.seed = 12345;
	spec.expected_rows = side.n;
	must(engine->table_create(&spec, &table, &err), err);
	for (uint64_t i = 0; i < side.n; i++)
		words[i] = (uint64_t) (side.low + (int64_t) (i * side.step));
	keys.nrows = (uint32_t) side.n;
	keys.words = columns;
	keys.location = HGJ_ON_HOST;
	must(engine->append(table, &keys, 0, nullptr, &err), err);
	must(engine->build(table, (uint32_t) side.n, &err), err);
	return table;
}

static void send_payload(HgjPipeline *p, uint32_t j, const Side &side)
{
	std::vector<int32_t> values(side.n);
	HgjError err = {HGJ_OK, ""};

	for (uint64_t i = 0; i < side.n; i++)
		values[i] = (int32_t) (i % side.groups);
	must(engine->pipeline->payload(p, j, 0, 0, (uint32_t) side.n, values.data(), nullptr,
								   &err),
		 err);
}

static void push_all(HgjPipeline *p, const Case &c, const Data &data)
{
	static uint32_t nrows[HGJ_KEPT_PIECES];
	static HgjKeptInput inputs[HGJ_KEPT_PIECES * HGJ_PIPE_INPUTS];
	HgjKeptPush push = {0, nrows, inputs, 0, nullptr, false, false};
	HgjError err = {HGJ_OK, ""};
	uint64_t per_column = c.rows / PIECE_ROWS + 1;

	for (uint64_t from = 0; from < c.rows; from += PIECE_ROWS)
	{
		uint32_t n = (uint32_t) std::min<uint64_t>(PIECE_ROWS, c.rows - from);
		HgjKeptInput *piece = &inputs[push.npieces * c.columns.size()];

		nrows[push.npieces++] = n;
		for (size_t i = 0; i < c.columns.size(); i++)
		{
			HgjKeptInput *input = &piece[i];
			uint32_t width = width_of(c.columns[i]);

			memset(input, 0, sizeof(*input));
			input->numbers.id = data.id + i * per_column + from / PIECE_ROWS;
			input->numbers.at = data.at[i] + from * width;
			input->numbers.bytes = (uint64_t) n * width;
			input->base = (uint64_t) c.columns[i].low;
			input->width = width;
		}
		if (push.npieces == HGJ_KEPT_PIECES || from + PIECE_ROWS >= c.rows)
		{
			must(engine->pipeline->push_kept(p, &push, &err), err);
			push.npieces = 0;
		}
	}
}

/* One run; the groups' rows and sum. */
static double run_once(const Case &c, const Data &data, const HgjPipelineSpec &spec,
					   const std::vector<HgjTable *> &tables, Expected *got,
					   double *kernels)
{
	HgjPipelineCaller caller = {};
	HgjPipeline *p = nullptr;
	HgjPipelineInfo info;
	HgjPipeRange ranges[HGJ_PIPE_KEYS] = {};
	HgjError err = {HGJ_OK, ""};
	uint64_t ngroups = 0;
	uint32_t width = 1 + spec.nkeys + spec.nwords;
	uint32_t key = 0;

	for (size_t j = 0; j < tables.size(); j++)
		caller.tables[j] = tables[j];
	must(engine->pipeline->create(&spec, &caller, &p, &err), err);
	for (size_t j = 0; j < tables.size(); j++)
		if (c.sides[j].groups > 0)
		{
			send_payload(p, (uint32_t) j, c.sides[j]);
			ranges[key++] = {true, 0, (int64_t) c.sides[j].groups - 1};
		}

	auto begun = std::chrono::steady_clock::now();

	must(engine->pipeline->start(p, ranges, 0, &err), err);
	push_all(p, c, data);
	must(engine->pipeline->finish(p, &ngroups, &err), err);

	double ms = std::chrono::duration<double, std::milli>(
					std::chrono::steady_clock::now() - begun)
					.count();
	std::vector<uint64_t> groups(ngroups * width);

	must(engine->pipeline->groups(p, 0, ngroups, groups.data(), &err), err);
	engine->pipeline->info(p, &info);
	engine->pipeline->destroy(p);
	*got = Expected();
	for (uint64_t g = 0; g < ngroups; g++)
	{
		got->rows += groups[g * width + 1 + spec.nkeys];
		got->sum += groups[g * width + 1 + spec.nkeys + 2];
	}
	*kernels = info.kernel_ms;
	return ms;
}

static double median(std::vector<double> values)
{
	std::sort(values.begin(), values.end());
	return values[values.size() / 2];
}

static void run_case(const Case &c)
{
	Data data = make_data(c);
	Expected expected = expect(c);
	HgjPipelineSpec spec = make_spec(c);
	std::vector<HgjTable *> tables;
	std::vector<double> times, kernel_times;
	double floor_ms = expected.bytes / gbs / 1e6;

	for (const Side &side : c.sides)
		tables.push_back(make_table(side));
	for (int run = -2; run < runs; run++)
	{
		Expected got;
		double kernels;
		double ms = run_once(c, data, spec, tables, &got, &kernels);

		if (got.rows != expected.rows || got.sum != expected.sum)
		{
			printf("%s: %llu rows, sum %llu, not %llu, %llu\n", c.name,
				   (unsigned long long) got.rows, (unsigned long long) got.sum,
				   (unsigned long long) expected.rows, (unsigned long long) expected.sum);
			die("another answer");
		}
		if (run < 0)
			continue;
		times.push_back(ms);
		kernel_times.push_back(kernels);
	}
	for (HgjTable *table : tables)
		engine->table_destroy(table);
	printf("%-5s %9.1f M rows %9.3f M end %8.3f ms %8.3f kernels %8.3f floor %7.1f x\n",
		   c.name, (double) c.rows / 1e6, (double) expected.rows / 1e6, median(times),
		   median(kernel_times), floor_ms, median(kernel_times) / floor_ms);
	fflush(stdout);
	memory_used = 0;
}

int main(int argc, char **argv)
{
	HgjError err = {HGJ_OK, ""};
	HgjKeptMemory kept = {};
	std::vector<std::string> wanted;

	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], "runs=", 5) == 0)
			runs = std::max(1, atoi(argv[i] + 5));
		else if (strncmp(argv[i], "gbs=", 4) == 0)
			gbs = atof(argv[i] + 4);
		else if (strncmp(argv[i], "wide=", 5) == 0)
			wide = atoi(argv[i] + 5);
		else
			wanted.push_back(argv[i]);
	engine = hgj_engine_entry();
	must(engine->open(&err), err);
	memory_bytes = (uint64_t) 2 << 30;
	memory = static_cast<char *>(malloc(memory_bytes));
	if (memory == nullptr)
		die("out of memory");
	kept.memory = memory;
	kept.bytes = memory_bytes;
	kept.used = &memory_used;
	kept.stay = true;
	engine->pipeline->keep(&kept);
	for (const Case &c : cases)
		if (wanted.empty() ||
			std::find(wanted.begin(), wanted.end(), c.name) != wanted.end())
			run_case(c);
	return 0;
}
