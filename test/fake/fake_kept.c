/*-------------------------------------------------------------------------
 *
 * fake_kept.c
 *	  Rows that the caller of a pipeline keeps (engine/pipeline.h, KEPT ROWS).
 *
 * 1. Arrays are copied when they are first seen, as to a device, and read from the copy
 *	  from then on.  Each time the copy is compared with the memory: an array that
 *	  is another one than before is the caller's mistake (HGJ_INVALID).
 * 2. Rows are put into stages, as if the caller had done that, and pushed.  Where rows are
 *	  returned, all of them are put into one that is large enough.
 *	  A call that is late (fake_engine.c) looks at all arrays for a while: the caller may
 *	  neither change them, nor give them to others.  One that reads on does so when the
 *	  next call waits for it: till then they must not change, either.
 * 3. A call that was cancelled is made again: it goes on where it was.
 * 4. When copies take more than they may, all go.
 * 5. Copies that are made ahead meet what stands in the file hgj_fake_prewarm of the
 *	  process's current directory: late (the arrays are looked at for a while, as in step
 *	  2), lost, hang (for ever), later (the memory is not ready).
 *
 * Memory: the process's; what is read on is the pipeline's.  Locks: one, around all of step 1.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <unistd.h>

#include "fake.h"

#define BUCKETS		4096
#define MOST_BYTES	(UINT64_C(256) << 20)

/* Step 2: all in all as long as a test takes to do something meanwhile. */
#define LATE_LOOKS	20
#define LATE_US		100000

typedef struct Copy
{
	struct Copy *next;
	HgjKeptArray array;
	char		bytes[];
} Copy;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static HgjKeptMemory kept;
static Copy *copies[BUCKETS];
static uint64_t copied = 0;
static uint64_t found = 0;
static uint64_t brought = 0;

/* As whoever finds no memory does. */
void
fake_give_back(void)
{
	if (kept.give_back != NULL)
		(void) kept.give_back();
}

/* HgjPipelineMethods.keep */
void
fake_keep(const HgjKeptMemory *memory)
{
	kept = *memory;
}

/* Step 4. */
static void
drop_all(void)
{
	for (int b = 0; b < BUCKETS; b++)
		while (copies[b] != NULL)
		{
			Copy	   *copy = copies[b];

			copies[b] = copy->next;
			free(copy);
		}
	copied = 0;
}

static Copy *
find(const HgjKeptArray *array)
{
	Copy	   *copy = copies[(array->id + array->at / 8) % BUCKETS];

	while (copy != NULL && (copy->array.id != array->id || copy->array.at != array->at))
		copy = copy->next;
	return copy;
}

/* Step 1, for the lock's holder, of an array without a copy; NULL: no memory. */
static Copy *
new_copy(const HgjKeptArray *array)
{
	Copy	  **bucket = &copies[(array->id + array->at / 8) % BUCKETS];
	Copy	   *copy = malloc(sizeof(Copy) + array->bytes);

	if (copy == NULL)
		return NULL;
	copy->array = *array;
	memcpy(copy->bytes, (const char *) kept.memory + array->at, array->bytes);
	copy->next = *bucket;
	*bucket = copy;
	copied += array->bytes;
	return copy;
}

/* The same, of one that a pipeline asks for. */
static Copy *
bring(const HgjKeptArray *array)
{
	Copy	   *copy = find(array);

	if (copy != NULL)
	{
		found++;
		return copy;
	}
	brought++;
	return new_copy(array);
}

/* What some arrays are, in a number. */
static uint64_t
sum_of(const HgjKeptArray *arrays, uint32_t n)
{
	uint64_t	sum = 0;

	for (uint32_t i = 0; i < n; i++)
	{
		const unsigned char *bytes = (const unsigned char *) kept.memory + arrays[i].at;

		for (uint64_t b = 0; b < arrays[i].bytes; b++)
			sum = sum * 31 + bytes[b];
	}
	return sum;
}

/* Step 2: they are looked at for a while, in which they must not change. */
static HgjStatus
look_for_a_while(const HgjKeptArray *arrays, uint32_t n, uint64_t sum, HgjError *err)
{
	for (int i = 0; i < LATE_LOOKS; i++)
	{
		(void) usleep(LATE_US);
		if (sum_of(arrays, n) != sum)
			return fake_lose(err, "kept rows have changed while they were read");
	}
	return HGJ_OK;
}

/* Step 5. */
static HgjStatus
meet_prewarm(const HgjKeptArray *arrays, uint32_t n, bool *later, HgjError *err)
{
	FILE	   *file = fopen("hgj_fake_prewarm", "r");
	char		what[16] = "";

	*later = false;
	if (file == NULL)
		return HGJ_OK;
	if (fscanf(file, "%15s", what) != 1)
		what[0] = '\0';
	(void) fclose(file);
	while (strcmp(what, "hang") == 0)
		(void) usleep(LATE_US);
	*later = strcmp(what, "later") == 0;
	return strcmp(what, "lost") == 0 ? fake_lose(err, "the device fell off the bus") :
		strcmp(what, "late") == 0 ? look_for_a_while(arrays, n, sum_of(arrays, n), err) : HGJ_OK;
}

/* HgjPipelineMethods.prewarm */
HgjStatus
fake_prewarm(const HgjKeptArray *arrays, uint32_t n, uint32_t *done, HgjError *err)
{
	bool		later;
	HgjStatus	status = meet_prewarm(arrays, n, &later, err);

	*done = 0;
	if (status != HGJ_OK || later)
		return status;
	(void) pthread_mutex_lock(&mutex);
	for (; *done < n; (*done)++)
		if (find(&arrays[*done]) == NULL &&
			(copied + arrays[*done].bytes > (kept.most > 0 ? kept.most : MOST_BYTES) ||
			 new_copy(&arrays[*done]) == NULL))
		{
			status = fake_fail(err, HGJ_UNSUPPORTED, "there is no room for copies");
			break;
		}
	(void) pthread_mutex_unlock(&mutex);
	return status;
}

/* HgjPipelineMethods.sweep */
uint64_t
fake_sweep(uint64_t first, uint64_t last, const uint64_t *live, uint64_t n)
{
	uint64_t	before;
	uint64_t	gone;

	(void) pthread_mutex_lock(&mutex);
	before = copied;
	for (int b = 0; b < BUCKETS; b++)
		for (Copy **link = &copies[b]; *link != NULL;)
		{
			Copy	   *copy = *link;
			uint64_t	i = 0;

			while (i < n && live[i] != copy->array.id)
				i++;
			if (i < n || copy->array.id < first || copy->array.id > last)
			{
				link = &copy->next;
				continue;
			}
			*link = copy->next;
			copied -= copy->array.bytes;
			free(copy);
		}
	gone = before - copied;
	(void) pthread_mutex_unlock(&mutex);
	return gone;
}

/* HgjEngine.device_info, as far as it is about copies. */
void
fake_kept_info(HgjDeviceInfo *info)
{
	(void) pthread_mutex_lock(&mutex);
	info->kept_bytes = copied;
	info->kept_found = found;
	info->kept_brought = brought;
	(void) pthread_mutex_unlock(&mutex);
}

/* HgjPipelineMethods.kept_bytes */
HgjStatus
fake_kept_bytes(const HgjPipelineCaller *caller, const uint64_t *ids, uint64_t n,
				uint64_t *bytes, HgjError *err)
{
	(void) caller;
	(void) err;
	(void) pthread_mutex_lock(&mutex);
	for (uint64_t i = 0; i < n; i++)
	{
		bytes[i] = 0;
		for (int b = 0; b < BUCKETS; b++)
			for (const Copy *copy = copies[b]; copy != NULL; copy = copy->next)
				bytes[i] += copy->array.id == ids[i] ? copy->array.bytes : 0;
	}
	(void) pthread_mutex_unlock(&mutex);
	return HGJ_OK;
}

/* Of the push at hand; the lock's holder's. */
static bool only_there = false;

/* Step 1: *bytes, for the lock's holder. */
static HgjStatus
read_array(const HgjKeptArray *array, const char **bytes, HgjError *err)
{
	Copy	   *copy = only_there ? find(array) : bring(array);

	if (only_there)
	{
		if (copy == NULL)
			return fake_fail(err, HGJ_UNSUPPORTED, "a column is not on the device any more");
		*bytes = copy->bytes;
		return HGJ_OK;
	}
	if (copy == NULL)
		return fake_fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	if (copy->array.bytes != array->bytes ||
		memcmp(copy->bytes, (const char *) kept.memory + array->at, array->bytes) != 0)
		return fake_fail(err, HGJ_INVALID, "a kept array is not what it was");
	*bytes = copy->bytes;
	return HGJ_OK;
}

/* Step 2: the arrays of a push. */
static HgjStatus
note_late(HgjPipeline *p, const HgjKeptPush *rows, HgjError *err)
{
	uint32_t	n = rows->npieces * p->spec.ninputs;

	p->late = malloc((n + 1) * sizeof(HgjKeptArray));
	if (p->late == NULL)
		return fake_fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	for (p->nlate = 0; p->nlate < n; p->nlate++)
		p->late[p->nlate] = rows->inputs[p->nlate].numbers;
	p->late_sum = sum_of(p->late, p->nlate);
	return HGJ_OK;
}

/* HgjPipelineMethods.kept_read.  Step 2. */
void
fake_kept_read(HgjPipeline *p)
{
	if (p->late != NULL)
		(void) look_for_a_while(p->late, p->nlate, p->late_sum, NULL);
	free(p->late);
	p->late = NULL;
}

/* `numbers` are the array's bytes. */
static uint64_t
number_at(const HgjKeptInput *input, const char *numbers, uint64_t at)
{
	uint64_t	number = 0;
	uint32_t	width = input->width == 3 ? 2 : input->width;

	memcpy(&number, numbers + at * width, width);
	if (input->width == 3)
		number |= (uint64_t) (unsigned char) numbers[hgj_kept_high(&input->numbers) + at] << 16;
	return number;
}

/* What a number of an input stands for. */
static uint64_t
value_of(const HgjKeptInput *input, const uint64_t *words, uint64_t number, bool *valid)
{
	const uint64_t *table = words + input->table;

	if (input->ntable == 0)
		return input->base + number;
	if (!*valid || number >= input->ntable)
		number = input->ntable - 1;
	*valid = table[input->ntable + number / 64] >> (number % 64) & 1;
	return table[number];
}

/* Step 2: n rows of an input, from `from` of the piece on, as rows `to` .. of the stage. */
static HgjStatus
fill_input(FakeStage *stage, uint32_t to, uint32_t i, uint32_t kind, const HgjKeptInput *input,
		   const uint64_t *words, uint32_t from, uint32_t n, HgjError *err)
{
	size_t		width = fake_width(kind);
	const char *numbers;
	const char *bits = NULL;
	HgjStatus	status = read_array(&input->numbers, &numbers, err);

	if (status == HGJ_OK && input->validity.bytes > 0)
		status = read_array(&input->validity, &bits, err);
	for (uint32_t row = 0; row < n && status == HGJ_OK; row++)
	{
		uint64_t	at = (uint64_t) input->first + from + row;
		bool		valid = bits == NULL || (bits[at / 8] >> (at % 8) & 1);
		uint64_t	value = value_of(input, words, number_at(input, numbers, at), &valid);

		memcpy((char *) stage->values[i] + (to + row) * width, &value, width);
		if (valid)
			stage->validity[i][(to + row) / 64] |= UINT64_C(1) << ((to + row) % 64);
		else
			stage->validity[i][(to + row) / 64] &= ~(UINT64_C(1) << ((to + row) % 64));
	}
	return status;
}

static HgjStatus
fill(HgjPipeline *p, FakeStage *stage, uint32_t to, const HgjKeptInput *inputs,
	 const HgjKeptPush *rows, uint32_t from, uint32_t n, HgjError *err)
{
	HgjStatus	status = HGJ_OK;

	pthread_mutex_lock(&mutex);
	only_there = rows->only_there;
	if (copied > MOST_BYTES)
		drop_all();
	for (uint32_t i = 0; i < p->spec.ninputs && status == HGJ_OK; i++)
		status = fill_input(stage, to, i, p->spec.inputs[i], &inputs[i], rows->words, from, n,
							err);
	pthread_mutex_unlock(&mutex);
	return status;
}

/* What the piece's arrays take, unless those of the one before were the same. */
static void
count_bytes(HgjPipeline *p, const HgjKeptInput *inputs, const HgjKeptInput *before)
{
	for (uint32_t i = 0; i < p->spec.ninputs; i++)
	{
		const HgjKeptInput *input = &inputs[i];

		if (before == NULL || before[i].numbers.id != input->numbers.id ||
			before[i].numbers.at != input->numbers.at)
			p->counted.kept_bytes += input->numbers.bytes + input->validity.bytes;
	}
}

/* Room for n rows in the stage of those that are returned. */
static bool
open_kept(HgjPipeline *p, uint64_t n)
{
	FakeStage  *stage = &p->kept;

	for (uint32_t i = 0; i < p->spec.ninputs; i++)
	{
		free(stage->values[i]);
		free(stage->validity[i]);
		stage->values[i] = malloc(n * fake_width(p->spec.inputs[i]) + 1);
		stage->validity[i] = malloc((n + 63) / 64 * 8 + 1);
		if (stage->values[i] == NULL || stage->validity[i] == NULL)
			return false;
	}
	return true;
}

/* Step 2, where rows are returned. */
static HgjStatus
push_at_once(HgjPipeline *p, const HgjKeptPush *rows, HgjError *err)
{
	HgjStatus	status = HGJ_OK;
	uint64_t	n = 0;

	for (uint32_t piece = 0; piece < rows->npieces; piece++)
		n += rows->nrows[piece];
	if (n > UINT32_MAX)
		return fake_fail(err, HGJ_INVALID, "a push has too many rows");
	if (!open_kept(p, n))
		return fake_fail(err, HGJ_OUT_OF_MEMORY, "out of memory");
	n = 0;
	for (uint32_t piece = 0; piece < rows->npieces && status == HGJ_OK; piece++)
	{
		const HgjKeptInput *inputs = rows->inputs + piece * p->spec.ninputs;

		status = fill(p, &p->kept, (uint32_t) n, inputs, rows, 0, rows->nrows[piece], err);
		count_bytes(p, inputs, piece > 0 ? inputs - p->spec.ninputs : NULL);
		n += rows->nrows[piece];
	}
	if (status != HGJ_OK)
		return status;
	p->kept.n = (uint32_t) n;
	p->kept.nulls = ~UINT64_C(0);
	p->fetching = &p->kept;
	p->counted.rows += n;
	p->counted.kept_rows += n;
	return HGJ_OK;
}

/* HgjPipelineMethods.push_kept */
HgjStatus
fake_push_kept(HgjPipeline *p, const HgjKeptPush *rows, HgjError *err)
{
	HgjStatus	status;

	fake_kept_read(p);
	status = fake_enter_pipeline(p, CALL_PIPE_KEPT, err);
	if (status != HGJ_OK)
		return status;
	if (!p->started || p->finished || p->fetching != NULL)
		return fake_fail(err, HGJ_INVALID, "there are rows to fetch, or the pipeline is not running");
	if (kept.memory == NULL)
		return fake_fail(err, HGJ_UNSUPPORTED, "rows of this pipeline are to be staged");
	p->staged = false;
	status = hgj_check_kept(&p->spec, &kept, rows, err);
	if (status == HGJ_OK && (fake_is("late") || (fake_is("reads_on") && rows->may_read_on)))
		status = note_late(p, rows, err);
	if (status == HGJ_OK && fake_is("late"))
		fake_kept_read(p);
	if (status == HGJ_OK && p->spec.rows && rows->npieces > 0)
		status = push_at_once(p, rows, err);
	while (status == HGJ_OK && p->kept_piece < rows->npieces && !p->spec.rows)
	{
		FakeStage  *stage = &p->stages[p->turn];
		const HgjKeptInput *inputs = rows->inputs + p->kept_piece * p->spec.ninputs;
		uint32_t	n = rows->nrows[p->kept_piece];
		uint32_t	some = n - p->kept_row;

		some = some < FAKE_STAGE_ROWS ? some : FAKE_STAGE_ROWS;
		status = fake_run(p, stage, err);
		if (status == HGJ_OK)
			status = fill(p, stage, 0, inputs, rows, p->kept_row, some, err);
		if (status != HGJ_OK)
			break;
		stage->n = some;
		stage->nulls = ~UINT64_C(0);
		p->turn = (p->turn + 1) % FAKE_STAGES;
		p->counted.rows += some;
		p->counted.kept_rows += some;
		p->kept_row += some;
		if (p->kept_row < n)
			continue;
		count_bytes(p, inputs, p->kept_piece > 0 ? inputs - p->spec.ninputs : NULL);
		p->kept_piece++;
		p->kept_row = 0;
	}
	if (status != HGJ_CANCELLED)
		p->kept_piece = p->kept_row = 0;
	if (status != HGJ_OK && status != HGJ_CANCELLED)
		p->failed = status;
	return status;
}
