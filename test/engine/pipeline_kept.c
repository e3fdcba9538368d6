/*-------------------------------------------------------------------------
 *
 * pipeline_kept.c
 *	  Rows of pipelines that are kept in memory (pipeline.h, KEPT ROWS), for the
 *	  tests of pipelines.
 *
 * 1. The rows of a case are divided into runs, of which each input has an array of
 *	  numbers, as narrow as it may be or wider, and maybe one of bits.  In both, other
 *	  numbers stand in front of the run's.  Of one input, whose values are few, some runs
 *	  have a table.
 * 2. A push is of some rows, as pieces: each of one run, maybe several of one.
 * 3. The memory is used again by the next case, whose arrays have other numbers.  What
 *	  the engine may keep of them is not much, so that some have to go, and a push that
 *	  is too much is staged.
 * 4. What the engine says of its copies agrees with itself: of each array, and of all.
 * 5. Of some arrays copies are made before anybody asks for them.
 * 6. Copies of what is said to have gone go, and no others.
 *
 * Memory: static, but for what steps 4 and 6 ask with.
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test_pipeline.h"

#define MOST_RUNS	64
#define MOST_TABLE	100
#define MOST_FRONT	200
#define MOST_COPIES (600 * 1024)
#define MOST_AHEAD	100

typedef struct Run
{
	uint32_t	first;
	uint32_t	n;
	HgjKeptInput inputs[NINPUTS];
	uint64_t	table[HGJ_KEPT_TABLE(MOST_TABLE)];	/* of the input that has one */
} Run;

static uint64_t memory[512 * 1024];
static size_t used;				/* words */
static uint64_t last_id;
static Run	runs[MOST_RUNS];
static uint32_t nruns;

/* Tell the engine of the memory; once is enough. */
static void
tell(void)
{
	static const HgjEngine *told = NULL;
	HgjKeptMemory kept = {.memory = memory, .bytes = sizeof(memory), .most = MOST_COPIES, .stay = true};

	if (told != engine)
		engine->pipeline->keep(&kept);
	told = engine;
}

static HgjKeptArray
new_array(uint64_t bytes)
{
	HgjKeptArray array = {++last_id, used * 8, bytes};

	used += (bytes + 7) / 8;
	if (used > sizeof(memory) / 8)
		abort();
	return array;
}

/* Step 1: the narrowest width for numbers up to this, or a wider one. */
static uint32_t
some_width(uint64_t most)
{
	static const uint32_t widths[] = {1, 2, 3, 4, 8};
	uint32_t	i = 0;

	while (i < 4 && (most >> (8 * widths[i]) > 0 || rnd_below(4) == 0))
		i++;
	return widths[i];
}

/* Step 1: number i of the input's array, which is there. */
static void
put_number(const HgjKeptInput *input, char *numbers, uint32_t i, uint64_t number)
{
	uint32_t	width = input->width == 3 ? 2 : input->width;

	memcpy(numbers + (size_t) i * width, &number, width);
	if (input->width == 3)
		numbers[hgj_kept_high(&input->numbers) + i] = (char) (number >> 16);
}

/* Step 1, for an input of a run. */
static void
keep_input(HgjKeptInput *input, const Cell *cells, uint32_t n, bool nulls)
{
	int64_t		least = INT64_MAX;
	int64_t		most = INT64_MIN;
	uint32_t	front = rnd_below(MOST_FRONT);
	char	   *numbers;

	for (uint32_t i = 0; i < n; i++)
		if (!cells[i].null)
		{
			least = cells[i].value < least ? cells[i].value : least;
			most = cells[i].value > most ? cells[i].value : most;
		}
	if (least > most)
		least = most = 0;
	input->base = (uint64_t) least;
	input->width = some_width((uint64_t) most - (uint64_t) least);
	input->first = front;
	input->numbers = new_array(input->width == 3 ? ((uint64_t) front + n + 7) / 8 * 24 :
							   (uint64_t) (front + n) * input->width);
	numbers = (char *) memory + input->numbers.at;
	memset(numbers, 0x5A, input->numbers.bytes);
	for (uint32_t i = 0; i < n; i++)
		put_number(input, numbers, front + i,
				   cells[i].null ? 0 : (uint64_t) cells[i].value - input->base);
	input->validity = (HgjKeptArray) {0, 0, 0};
	if (!nulls)
		return;
	input->validity = new_array((front + n + 63) / 64 * 8);
	for (uint32_t i = 0; i < front + n; i++)
	{
		uint64_t   *word = memory + input->validity.at / 8 + i / 64;

		if (i % 64 == 0)
			*word = 0;
		*word |= (uint64_t) (i >= front && !cells[i - front].null) << (i % 64);
	}
}

/*
 * Step 1: a table for the input, if it has few values.  NULLs are rows without their bit,
 * or rows of a number whose bit is not set.
 */
static void
keep_table(Run *run, HgjKeptInput *input, const Cell *cells)
{
	uint32_t	n = 0;
	uint8_t    *numbers;
	bool		by_number = rnd_below(2) == 0;

	memset(run->table, 0, sizeof(run->table));
	input->width = 1;
	input->numbers = new_array(input->first + run->n);
	numbers = (uint8_t *) memory + input->numbers.at;
	memset(numbers, 0xFF, input->numbers.bytes);
	for (uint32_t i = 0; i < run->n; i++)
	{
		uint32_t	at = 0;

		while (at < n && run->table[at] != (uint64_t) cells[i].value)
			at++;
		if (cells[i].null)
			at = by_number ? MOST_TABLE - 2 : 7;
		else if (at == n)
			run->table[n++] = (uint64_t) cells[i].value;
		if (n > MOST_TABLE - 2)
			abort();
		numbers[input->first + i] = (uint8_t) at;
	}
	for (uint32_t i = 0; i < n; i++)
		run->table[MOST_TABLE + i / 64] |= UINT64_C(1) << (i % 64);
	input->ntable = MOST_TABLE;
	if (by_number)
		input->validity.bytes = 0;
}

/* Step 5: they are there then, unless there was no room for them. */
static void
prewarm(void)
{
	static HgjKeptArray arrays[MOST_AHEAD];
	HgjPipelineCaller caller = {.poll = NULL};
	HgjError	err = {HGJ_OK, ""};
	HgjStatus	status = HGJ_OK;
	uint32_t	first = rnd_below(2);
	uint32_t	n = 0;
	uint32_t	done = 0;

	for (uint32_t r = 0; r < nruns; r++)
		for (int i = 0; i < NINPUTS && n < MOST_AHEAD; i++)
		{
			const HgjKeptInput *input = &runs[r].inputs[i];

			if (rnd_below(2) == 0)
				arrays[n++] = (i + first) % 2 == 0 || input->validity.bytes == 0 ?
					input->numbers : input->validity;
		}
	/* a device's memory may not be ready yet */
	for (int tries = 0; tries < 1000 && status == HGJ_OK && done < n; tries++)
	{
		uint32_t	more = 0;

		status = engine->pipeline->prewarm(arrays + done, n - done, &more, &err);
		done += more;
		if (more == 0)
			(void) usleep(10000);
	}
	CHECK(done <= n && (status == HGJ_UNSUPPORTED || (status == HGJ_OK && done == n)),
		  "status %d, %u of %u: %s", (int) status, done, n, err.message);
	for (uint32_t i = 0; i < done; i++)
	{
		uint64_t	bytes;

		CHECK(engine->pipeline->kept_bytes(&caller, &arrays[i].id, 1, &bytes, &err) == HGJ_OK &&
			  bytes == arrays[i].bytes, "array %u of %u that have come", i, done);
	}
}

/* Step 6, while no pipeline is there: of arrays first to last, every third lives. */
static void
sweep(void)
{
	uint64_t	first = 1 + rnd_below((uint32_t) last_id);
	uint64_t	last = first + rnd_below((uint32_t) (last_id - first + 1));
	uint64_t   *ids = calloc(4 * last_id, sizeof(uint64_t));
	uint64_t   *before = ids + last_id;
	uint64_t   *after = before + last_id;
	uint64_t   *live = after + last_id;
	HgjPipelineCaller caller = {.poll = NULL};
	HgjError	err = {HGJ_OK, ""};
	uint64_t	nlive = 0;
	uint64_t	gone = 0;
	uint64_t	said;

	if (ids == NULL)
		abort();
	for (uint64_t i = 0; i < last_id; i++)
	{
		ids[i] = i + 1;
		if (i % 3 == 0)
			live[nlive++] = i + 1;
	}
	CHECK_STATUS(engine->pipeline->kept_bytes(&caller, ids, last_id, before, &err), HGJ_OK);
	said = engine->pipeline->sweep(first, last, live, nlive);
	CHECK_STATUS(engine->pipeline->kept_bytes(&caller, ids, last_id, after, &err), HGJ_OK);
	for (uint64_t i = 0; i < last_id; i++)
	{
		bool		dead = i + 1 >= first && i + 1 <= last && i % 3 != 0;

		CHECK(after[i] == (dead ? 0 : before[i]), "array %llu of %llu to %llu: %llu bytes, not %llu",
			  (unsigned long long) i + 1, (unsigned long long) first, (unsigned long long) last,
			  (unsigned long long) after[i], (unsigned long long) before[i]);
		gone += before[i] - after[i];
	}
	CHECK(gone == said, "%llu bytes have gone, not %llu", (unsigned long long) gone,
		  (unsigned long long) said);
	free(ids);
}

/* Step 1: the rows of the case at hand. */
void
pipe_keep(void)
{
	uint32_t	done = 0;

	if (engine->pipeline->push_kept == NULL)
		return;
	tell();
	if (engine->pipeline->sweep != NULL && last_id > 0 && rnd_below(8) == 0)
		sweep();
	used = rnd_below(64);
	for (nruns = 0; done < NROWS; nruns++)
	{
		Run		   *run = &runs[nruns];

		run->first = done;
		run->n = 1 + rnd_below(nruns % 3 == 0 ? 3000 : 1200);
		if (nruns == MOST_RUNS - 1 || run->n > NROWS - done)
			run->n = NROWS - done;
		for (int i = 0; i < NINPUTS; i++)
		{
			run->inputs[i].ntable = 0;
			keep_input(&run->inputs[i], pipe_inputs[i] + done, run->n,
					   pipe_has_nulls && i != IN_F);
			if (i == IN_U && rnd_below(2) == 0)
				keep_table(run, &run->inputs[i], pipe_inputs[i] + done);
		}
		done += run->n;
	}
	if (engine->pipeline->prewarm != NULL && rnd_below(3) == 0)
		prewarm();
}

/* The run of a row. */
static const Run *
run_of(uint32_t row)
{
	const Run  *run = runs;

	while (row >= run->first + run->n)
		run++;
	return run;
}

/*
 * Step 2: up to *n rows, of which *n is then how many they were.  HGJ_UNSUPPORTED: they
 * are to be staged.
 */
HgjStatus
pipe_push_kept(HgjPipeline *p, uint32_t first, uint32_t *n, HgjError *err)
{
	static uint32_t nrows[HGJ_KEPT_PIECES];
	static HgjKeptInput inputs[HGJ_KEPT_PIECES * NINPUTS];
	static uint64_t words[HGJ_KEPT_PIECES * HGJ_KEPT_TABLE(MOST_TABLE)];
	HgjKeptPush rows = {.nrows = nrows, .inputs = inputs, .words = words};
	uint32_t	most = 1 + rnd_below(HGJ_KEPT_PIECES);
	uint32_t	npieces = 0;
	uint32_t	done = 0;
	HgjStatus	status;

	if (engine->pipeline->push_kept == NULL)
		return HGJ_UNSUPPORTED;
	*n = *n > NROWS - first ? NROWS - first : *n;
	while (done < *n && npieces < most)
	{
		const Run  *run = run_of(first + done);
		uint32_t	at = first + done - run->first;
		uint32_t	some = run->n - at;

		if (rnd_below(3) == 0)
			some = 1 + rnd_below(some);
		some = some < *n - done ? some : *n - done;
		nrows[npieces] = some;
		for (int i = 0; i < NINPUTS; i++)
		{
			HgjKeptInput *input = &inputs[npieces * NINPUTS + i];

			*input = run->inputs[i];
			input->first += at;
			if (input->ntable == 0)
				continue;
			input->table = rows.nwords;
			memcpy(words + rows.nwords, run->table, sizeof(run->table));
			rows.nwords += HGJ_KEPT_TABLE(MOST_TABLE);
		}
		npieces++;
		done += some;
	}
	*n = done;
	rows.npieces = npieces;
	do
		status = engine->pipeline->push_kept(p, &rows, err);
	while (status == HGJ_CANCELLED);
	return status;
}

/* Descriptions that are not sound must be told; the pipeline is of no use then. */
HgjStatus
pipe_push_unsound(HgjPipeline *p, int way, HgjError *err)
{
	HgjKeptInput inputs[NINPUTS];
	HgjKeptPush rows = {.nrows = &runs[0].n, .inputs = inputs, .npieces = 1};
	HgjKeptInput *input = &inputs[IN_V];

	memcpy(inputs, runs[0].inputs, sizeof(inputs));
	inputs[IN_U].ntable = 0;
	switch (way)
	{
		case 0:
			input->numbers.at = sizeof(memory) - 8;
			break;
		case 1:
			input->numbers.bytes = UINT64_MAX - 7;
			break;
		case 2:
			input->first = UINT32_MAX;
			break;
		case 3:
			input->width = 5;
			break;
		case 4:
			input->numbers.id = 0;
			break;
		case 5:
			input->numbers.at += 1;
			break;
		case 6:
			input->ntable = 1;		/* there are no words */
			break;
		case 7:
			input->width = 3;
			input->numbers.bytes = sizeof(memory) - input->numbers.at;
			input->numbers.bytes -= input->numbers.bytes % 24 + 8;	/* not two thirds, one third */
			break;
		default:
			input->validity.bytes = 8;
			input->validity.at = sizeof(memory);
			break;
	}
	return engine->pipeline->push_kept(p, &rows, err);
}

/* What the device has no copy of, when nobody may look at the memory. */
HgjStatus
pipe_push_not_there(HgjPipeline *p, HgjError *err)
{
	HgjKeptInput inputs[NINPUTS];
	HgjKeptPush rows = {.nrows = &runs[0].n,.inputs = inputs,.npieces = 1,.only_there = true};

	memcpy(inputs, runs[0].inputs, sizeof(inputs));
	inputs[IN_U].ntable = 0;
	inputs[IN_V].numbers.id = UINT64_MAX;
	return engine->pipeline->push_kept(p, &rows, err);
}

/* Step 4. */
void
pipe_check_copies(void)
{
	static uint64_t asked = 0;
	HgjPipelineCaller caller = {.poll = NULL};
	HgjDeviceInfo info;
	HgjError	err = {HGJ_OK, ""};
	uint64_t   *ids = calloc(2 * last_id + 2, sizeof(uint64_t));
	uint64_t	sum = 0;

	if (ids == NULL)
		abort();
	/* an engine that reads kept rows where they are has none */
	if (engine->pipeline->kept_bytes == NULL)
	{
		free(ids);
		return;
	}
	/* and one that nobody has */
	for (uint64_t i = 0; i <= last_id; i++)
		ids[i] = i + 1;
	CHECK(engine->pipeline->kept_bytes(&caller, ids, last_id + 1, ids + last_id + 1, &err) == HGJ_OK,
		  "%s", err.message);
	for (uint64_t i = 0; i <= last_id; i++)
		sum += ids[last_id + 1 + i];
	CHECK(engine->device_info(0, &info, &err) == HGJ_OK && info.kept_bytes == sum && sum > 0,
		  "%llu bytes of copies, and %llu in all", (unsigned long long) sum,
		  (unsigned long long) info.kept_bytes);
	CHECK(ids[2 * last_id + 1] == 0, "a copy of an array that was never there");
	CHECK(info.kept_found + info.kept_brought > asked, "nothing has been asked for");
	asked = info.kept_found + info.kept_brought;
	free(ids);
}
