/*-------------------------------------------------------------------------
 *
 * fuzz_run.c
 *	  A random plan, run by one engine.
 *
 * 1. The tables of its joins are made, then the pipeline, which gets payload and all pushes: by
 *	  staging buffers, which may be smaller than a push, from memory of the caller's, or as
 *	  kept rows, unless the engine wants them staged.
 * 2. What comes out are rows of words, whose order is free: they are sorted.  Rows of the table
 *	  of a join with `single`, which has several for a key, are only there or not.  Sums of 128 bits
 *	  may be divided between their words in any way.
 * 3. A table that has been filled is built and read by a second pipeline, which is pushed all keys
 *	  that there may be, and groups by key and columns.
 *
 * Memory: static, but for results, which are the caller's.  No locks: one thread.
 *
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

#define MANY_GROUPS		(1 << 20)
#define MOST_KEYS		(FUZZ_ROWS * 8)

/* Values of inputs, each with its bits of validity. */
static struct
{
	uint64_t	values[FUZZ_ROWS];	/* at the column's own width */
	uint64_t	validity[FUZZ_ROWS / 64];	/* bits */
}			staging[FUZZ_INPUTS];

/* A run that is going on. */
typedef struct Run
{
	const HgjEngine *engine;	/* the engine */
	const FuzzPlan *plan;		/* the plan */
	FuzzResult *result;			/* what comes out */
	HgjTable   *tables[FUZZ_JOINS]; /* of joins */
	HgjTable   *filled;			/* the table that is filled, or NULL */
	HgjPipeline *p;				/* the pipeline, or NULL */
	uint64_t	room;			/* rows that the result has memory for */
} Run;

/* Note the first failure; true: there has been none. */
static bool
went_well(Run *run, HgjStatus status, const char *call, const HgjError *err)
{
	FuzzResult *result = run->result;

	if (status == HGJ_OK || result->status != HGJ_OK)
		return result->status == HGJ_OK;
	result->status = status;
	result->call = call;
	memcpy(result->message, err->message, sizeof(result->message));
	return false;
}

/* Memory that engines know of for good. */
void
fuzz_tell(const HgjEngine *engine)
{
	if (engine->pipeline->keep != NULL)
		engine->pipeline->keep(fuzz_kept_memory());
	if (engine->pipeline->keep_staging != NULL)
		engine->pipeline->keep_staging(staging, sizeof(staging));
}

/* ---- tables ------------------------------------------------------------------ */

static bool
make_table(Run *run, const FuzzTable *from, HgjTable **table)
{
	static uint32_t sel[FUZZ_BUILD];
	HgjError	err = {HGJ_OK, ""};
	bool		good = went_well(run, run->engine->table_create(&from->spec, table, &err),
								 "table_create", &err);

	for (uint32_t first = 0; first < from->n && good; first += 700)
	{
		uint32_t	n = from->n - first < 700 ? from->n - first : 700;
		const uint64_t *words[FUZZ_WORDS];
		HgjKeys		keys = {.nrows = n, .sel = sel, .words = words};

		for (uint32_t w = 0; w < FUZZ_WORDS; w++)
			words[w] = from->words[w] + first;
		for (uint32_t i = 0; i < n; i++)
			if (!from->no_key[first + i])
				sel[keys.nsel++] = i;
		good = went_well(run, run->engine->append(*table, &keys, first, NULL, &err), "append",
						 &err);
	}
	return good && went_well(run, run->engine->build(*table, from->n, &err), "build", &err);
}

/* ---- columns ------------------------------------------------------------------ */

/* Values of a column at its own width, and their bits of validity. */
static void
write_values(const FuzzColumn *column, uint32_t first, uint32_t n, void *values,
			 uint64_t *validity)
{
	size_t		width = hgj_kind_width(column->kind);

	for (uint32_t i = 0; i < n; i++)
	{
		uint64_t	word = column->nulls[first + i] ? UINT64_C(0x5A5A5A5A5A5A5A5A) :
			column->words[first + i];

		memcpy((char *) values + i * width, &word, width);
		if (i % 64 == 0)
			validity[i / 64] = 0;
		validity[i / 64] |= (uint64_t) !column->nulls[first + i] << (i % 64);
	}
}

static bool
send_payload(Run *run)
{
	HgjError	err = {HGJ_OK, ""};

	for (uint32_t j = 0; j < run->plan->spec.njoins; j++)
		for (uint32_t c = 0; c < run->plan->tables[j].ncolumns; c++)
		{
			const FuzzColumn *column = &run->plan->tables[j].columns[c];

			for (uint32_t first = 0; first < column->n; first += 640)
			{
				uint32_t	n = column->n - first < 640 ? column->n - first : 640;
				HgjStatus	status;

				write_values(column, first, n, staging[0].values, staging[0].validity);
				status = run->engine->pipeline->payload(run->p, j, c, first, n,
														staging[0].values,
														column->nullable ?
														staging[0].validity : NULL, &err);
				if (!went_well(run, status, "payload", &err))
					return false;
			}
		}
	return true;
}

/* ---- rows that come out --------------------------------------------------------- */

static uint64_t *
new_row(Run *run)
{
	FuzzResult *result = run->result;

	if (result->n == run->room)
	{
		uint64_t   *more;

		run->room = run->room == 0 ? 1024 : run->room * 2;
		more = realloc(result->rows, run->room * result->width * sizeof(uint64_t));
		if (more == NULL)
			exit(2);
		result->rows = more;
	}
	return result->rows + result->n++ * result->width;
}

/* Step 2, for what has come of rows that were pushed from `first` on. */
static bool
fetch_all(Run *run, uint32_t first)
{
	HgjPipeRows rows = {.last = false};
	HgjError	err = {HGJ_OK, ""};

	while (!rows.last)
	{
		if (!went_well(run, run->engine->pipeline->fetch(run->p, &rows, &err), "fetch", &err))
			return false;
		for (uint32_t i = 0; i < rows.n; i++)
		{
			uint64_t   *row = new_row(run);

			row[0] = first + rows.input[i];
			for (uint32_t j = 0; j < run->plan->spec.njoins; j++)
			{
				bool		free_choice = run->plan->spec.joins[j].single &&
					!run->plan->tables[j].unique;

				row[1 + j] = rows.row[j][i];
				if (free_choice && rows.row[j][i] != HGJ_PIPE_NO_ROW)
					row[1 + j] = 0;
			}
		}
	}
	return true;
}

static uint32_t sorted_width;

static int
compare_rows(const void *a, const void *b)
{
	return memcmp(a, b, sorted_width * sizeof(uint64_t));
}

static void
sort_rows(const FuzzResult *result)
{
	sorted_width = result->width;
	if (result->n > 0)
		qsort(result->rows, result->n, result->width * sizeof(uint64_t), compare_rows);
}

/* Of a sum of 128 bits, however it is divided: the upper words get all that they can have. */
static void
carry_sums(const HgjPipelineSpec *spec, FuzzResult *result)
{
	for (uint32_t w = 0; w + 1 < spec->nwords; w++)
	{
		const HgjPipeWord *low = &spec->words[w];

		if (low->state != HGJ_PIPE_SUM_LOW || low[1].state != HGJ_PIPE_SUM_HIGH ||
			low->reg != low[1].reg || low->filter != low[1].filter)
			continue;
		for (uint64_t i = 0; i < result->n; i++)
		{
			uint64_t   *words = result->rows + i * result->width + 1 + spec->nkeys + w;

			words[1] += words[0] >> 32;
			words[0] = (uint32_t) words[0];
		}
	}
}

static bool
take_groups(Run *run, HgjPipeline *p, uint64_t ngroups, uint32_t width)
{
	FuzzResult *result = run->result;
	HgjError	err = {HGJ_OK, ""};
	uint64_t	half = ngroups / 3;

	result->n = ngroups;
	result->width = width;
	result->rows = must_alloc(ngroups * width * sizeof(uint64_t));
	return went_well(run, run->engine->pipeline->groups(p, 0, half, result->rows, &err),
					 "groups", &err) &&
		went_well(run, run->engine->pipeline->groups(p, half, ngroups - half,
													 result->rows + half * width, &err),
				  "groups", &err);
}

/* ---- pushes ------------------------------------------------------------------ */

static uint64_t
null_bits(const FuzzPlan *plan)
{
	uint64_t	bits = 0;

	for (uint32_t i = 0; i < plan->spec.ninputs; i++)
		bits |= (uint64_t) plan->inputs[i].nullable << i;
	return bits;
}

/* Rows of one staging buffer, as many as it has room for: *n. */
static bool
push_staged(Run *run, uint32_t first, uint32_t *n)
{
	const FuzzPlan *plan = run->plan;
	HgjPipeStage stage;
	HgjError	err = {HGJ_OK, ""};

	if (!went_well(run, run->engine->pipeline->stage(run->p, &stage, &err), "stage", &err))
		return false;
	*n = *n < stage.capacity ? *n : stage.capacity;
	for (uint32_t i = 0; i < plan->spec.ninputs; i++)
		write_values(&plan->inputs[i], first, *n, stage.values[i], stage.validity[i]);
	return went_well(run, run->engine->pipeline->push(run->p, *n, null_bits(plan), &err), "push",
					 &err);
}

/* The same, from memory of the caller's; HGJ_UNSUPPORTED: the engine wants them staged. */
static HgjStatus
push_from(Run *run, uint32_t first, uint32_t n, HgjError *err)
{
	const FuzzPlan *plan = run->plan;
	HgjPipeStage from;

	if (run->engine->pipeline->push_from == NULL)
		return HGJ_UNSUPPORTED;
	from.capacity = FUZZ_ROWS;
	for (uint32_t i = 0; i < plan->spec.ninputs; i++)
	{
		from.values[i] = staging[i].values;
		from.validity[i] = staging[i].validity;
		write_values(&plan->inputs[i], first, n, staging[i].values, staging[i].validity);
	}
	return run->engine->pipeline->push_from(run->p, &from, n, null_bits(plan), err);
}

static HgjStatus
push_kept(Run *run, const FuzzPush *push, HgjError *err)
{
	HgjKeptPush kept = {.npieces = push->npieces, .nrows = push->nrows, .inputs = push->inputs,
	.nwords = push->nwords, .words = push->words};
	HgjStatus	status;

	if (run->engine->pipeline->push_kept == NULL)
		return HGJ_UNSUPPORTED;
	status = run->engine->pipeline->push_kept(run->p, &kept, err);
	if (status == HGJ_OK && run->engine->pipeline->kept_outcome != NULL)
		status = run->engine->pipeline->kept_outcome(run->p, err);
	return status;
}

static bool
push_rows(Run *run, const FuzzPush *push)
{
	HgjPipelineInfo info;
	uint32_t	done = 0;
	HgjError	err = {HGJ_OK, ""};

	do
	{
		uint32_t	n = push->n - done;
		HgjStatus	status = HGJ_UNSUPPORTED;

		run->engine->pipeline->info(run->p, &info);
		if (push->way == FUZZ_KEPT && done == 0)
			status = push_kept(run, push, &err);
		else if (push->way == FUZZ_FROM && n <= info.stage_rows)
			status = push_from(run, push->first + done, n, &err);
		if (status == HGJ_UNSUPPORTED)
		{
			if (!push_staged(run, push->first + done, &n))
				return false;
		}
		else if (!went_well(run, status, "push_kept or push_from", &err))
			return false;
		if (run->plan->spec.rows && !fetch_all(run, push->first + done))
			return false;
		done += n;
	} while (done < push->n);
	return true;
}

/* ---- step 3 ------------------------------------------------------------------ */

static int
compare_words(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(uint64_t));
}

/* All keys that rows of a filled table may have; returns how many. */
static uint32_t
possible_keys(const FuzzPlan *plan, uint64_t *first, int64_t *second)
{
	static uint64_t words[FUZZ_ROWS];
	const FuzzColumn *column = plan->fill_source;
	uint32_t	n = 0;
	uint32_t	nkeys = 0;

	for (uint32_t i = 0; i < column->n; i++)
		if (!column->nulls[i] && plan->fill_keyed)
			words[n++] = hgj_float_word(column->kind == HGJ_KIND_F4 ?
										(double) hgj_word_float4(column->words[i]) :
										hgj_word_float8(column->words[i]));
		else if (!column->nulls[i])
			words[n++] = column->words[i] + (uint64_t) plan->fill_offset;
	if (n > 0)
		qsort(words, n, sizeof(uint64_t), compare_words);
	for (uint32_t i = 0; i < n; i++)
		for (int64_t s = plan->fill_low; s <= plan->fill_high; s++)
			if (i == 0 || words[i] != words[i - 1])
			{
				first[nkeys] = words[i];
				second[nkeys++] = s;
			}
	return nkeys;
}

/* Inputs are the key; groups are by it and all columns. */
static void
make_reader(const HgjPipelineSpec *fills, HgjPipelineSpec *spec)
{
	uint32_t	nkeys = fills->nkeys;
	HgjPipeInstruction *code = spec->code;

	memset(spec, 0, sizeof(*spec));
	spec->ninputs = 2;
	spec->inputs[0] = spec->inputs[1] = HGJ_KIND_I8;
	spec->njoins = 1;
	spec->joins[0].pass = true;
	spec->joins[0].nkeys = nkeys;
	spec->joins[0].ncolumns = fills->ncolumns;
	memcpy(spec->joins[0].kinds, fills->kinds, sizeof(fills->kinds));
	for (uint8_t k = 0; k < 2; k++)
	{
		code[spec->ncode++] = (HgjPipeInstruction) {.op = HGJ_PIPE_INPUT, .dst = k, .arg = k};
		spec->joins[0].keys[k] = k;
		spec->keys[spec->nkeys++] = k;
	}
	code[spec->ncode++] = (HgjPipeInstruction) {.op = HGJ_PIPE_PROBE};
	code[spec->ncode++] = (HgjPipeInstruction) {.op = HGJ_PIPE_MATCH};
	for (uint8_t c = 0; c < fills->ncolumns; c++)
	{
		uint8_t		r = (uint8_t) (2 + c);

		code[spec->ncode++] = (HgjPipeInstruction) {.op = HGJ_PIPE_PAYLOAD, .dst = r, .arg = c};
		code[spec->ncode++] = (HgjPipeInstruction) {.op = HGJ_PIPE_KEY_WORD,
		.kind = fills->kinds[c], .dst = r, .a = r};
		spec->keys[spec->nkeys++] = r;
	}
	code[spec->ncode++] = (HgjPipeInstruction) {.op = HGJ_PIPE_END};
	spec->nwords = 1;
	spec->words[0] = (HgjPipeWord) {HGJ_PIPE_COUNT, HGJ_PIPE_NONE, HGJ_PIPE_NONE};
}

static bool
read_filled(Run *run, HgjPipeline **p)
{
	static uint64_t first[MOST_KEYS];
	static int64_t second[MOST_KEYS];
	static HgjPipelineSpec spec;
	const HgjPipelineMethods *methods = run->engine->pipeline;
	HgjPipelineCaller caller = {.tables = {run->filled}, .filled = {run->p}};
	HgjPipeRange ranges[HGJ_PIPE_KEYS] = {{.bounded = false}};
	HgjError	err = {HGJ_OK, ""};
	uint32_t	n = possible_keys(run->plan, first, second);
	uint64_t	ngroups = 0;
	HgjPipeStage stage;

	make_reader(&run->plan->spec, &spec);
	if (!went_well(run, methods->create(&spec, &caller, p, &err), "create of a reader", &err) ||
		!went_well(run, methods->start(*p, ranges, MANY_GROUPS, &err), "start of a reader", &err))
		return false;
	for (uint32_t done = 0; done < n;)
	{
		uint32_t	some = n - done;

		if (!went_well(run, methods->stage(*p, &stage, &err), "stage of a reader", &err))
			return false;
		some = some < stage.capacity ? some : stage.capacity;
		memcpy(stage.values[0], first + done, some * sizeof(uint64_t));
		memcpy(stage.values[1], second + done, some * sizeof(uint64_t));
		if (!went_well(run, methods->push(*p, some, 0, &err), "push of a reader", &err))
			return false;
		done += some;
	}
	return went_well(run, methods->finish(*p, &ngroups, &err), "finish of a reader", &err) &&
		take_groups(run, *p, ngroups, 1 + spec.nkeys + spec.nwords);
}

/* ---- all of it ------------------------------------------------------------------ */

/* The pipeline has been created. */
static void
run_pipeline(Run *run)
{
	const FuzzPlan *plan = run->plan;
	const HgjPipelineSpec *spec = &plan->spec;
	const HgjPipelineMethods *methods = run->engine->pipeline;
	FuzzResult *result = run->result;
	HgjPipeline *reader = NULL;
	HgjError	err = {HGJ_OK, ""};
	uint64_t	ngroups = 0;
	bool		good;

	result->width = 1 + spec->njoins;
	good = send_payload(run) &&
		went_well(run, methods->start(run->p, plan->ranges, MANY_GROUPS, &err), "start", &err);
	for (uint32_t i = 0; i < plan->npushes && good; i++)
		good = push_rows(run, &plan->pushes[i]);
	if (good && !spec->rows)
		good = went_well(run, methods->finish(run->p, &ngroups, &err), "finish", &err);
	if (good)
		methods->info(run->p, &result->info);
	if (good && spec->fills)
	{
		result->filled = ngroups;
		good = went_well(run, run->engine->build(run->filled, (uint32_t) ngroups, &err),
						 "build of a table that was filled", &err) && read_filled(run, &reader);
		methods->destroy(reader);
	}
	else if (good && !spec->rows)
	{
		good = take_groups(run, run->p, ngroups, 1 + spec->nkeys + spec->nwords);
		carry_sums(spec, result);
	}
	if (good)
		sort_rows(result);
}

void
fuzz_run(const HgjEngine *engine, const FuzzPlan *plan, FuzzResult *result)
{
	Run			run = {.engine = engine, .plan = plan, .result = result};
	HgjPipelineCaller caller = {.terms = &plan->terms};
	HgjTableSpec fills = {.nwords = plan->spec.nkeys, .seed = 1};
	HgjError	err = {HGJ_OK, ""};
	bool		good = true;

	memset(result, 0, sizeof(*result));
	for (uint32_t j = 0; j < plan->spec.njoins && good; j++)
	{
		good = make_table(&run, &plan->tables[j], &run.tables[j]);
		caller.tables[j] = run.tables[j];
	}
	if (good && plan->spec.fills)
		good = went_well(&run, engine->table_create(&fills, &run.filled, &err), "table_create",
						 &err);
	caller.fills = run.filled;
	if (good)
	{
		result->created = engine->pipeline->create(&plan->spec, &caller, &run.p, &err);
		if (result->created != HGJ_OK)
			memcpy(result->message, err.message, sizeof(result->message));
		else if (!plan->spoiled)
			run_pipeline(&run);
	}
	engine->pipeline->destroy(run.p);
	engine->table_destroy(run.filled);
	for (uint32_t j = 0; j < plan->spec.njoins; j++)
		engine->table_destroy(run.tables[j]);
}
