/*-------------------------------------------------------------------------
 *
 * fuzz_print.c
 *	  A random plan in words, for whoever looks for the reason of a difference.
 *
 * Owns nothing.  Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"

static const char *const ops[] = {
	"END", "INPUT", "PAYLOAD", "CONSTANT", "VALUE", "NULL", "MOVE", "COMPARE", "DISTINCT",
	"ARITHMETIC", "CAST", "AND", "OR", "NOT", "IS_NULL", "IS_NOT_NULL", "BOOL_TEST", "KEY_WORD",
	"JUMP", "JUMP_UNLESS", "JUMP_FALSE", "JUMP_TRUE", "JUMP_VALID", "FILTER", "PROBE", "MATCH"
};
static const char *const kinds[] = {"u1", "i2", "i4", "i8", "u4", "f4", "f8"};
static const char *const states[] = {
	"COUNT", "SUM", "SUM_LOW", "SUM_HIGH", "SUM_FLOAT", "MIN", "MAX", "MIN_FLOAT", "MAX_FLOAT"
};
static const char *const ways[] = {"staged", "from memory", "kept"};

#define NAME(names, i) ((i) < sizeof(names) / sizeof((names)[0]) ? (names)[i] : "?")

static void
print_column(const char *what, uint32_t i, const FuzzColumn *column)
{
	printf("%s %u: %s, %s%sfrom %lld to %lld\n", what, i, NAME(kinds, column->kind),
		   column->nullable ? "NULLs, " : "", column->special ? "special ones, " : "",
		   (long long) column->low, (long long) column->high);
}

static void
print_join(const FuzzPlan *plan, uint32_t j)
{
	const HgjPipeJoin *join = &plan->spec.joins[j];
	const FuzzTable *table = &plan->tables[j];

	printf("  join %u:%s%s%s, keys", j, join->pass ? " pass" : "", join->fill ? " fill" : "",
		   join->single ? " single" : "");
	for (uint32_t k = 0; k < join->nkeys && k < HGJ_PIPE_KEYS; k++)
		printf(" r%u", join->keys[k]);
	printf("; table of %u rows%s%s%s, flags %u, build %d, filter %d\n", table->n,
		   table->unique ? ", unique" : "", table->by_key ? ", payload by key" : "",
		   plan->tainted[j] ? ", any candidate" : "", table->spec.flags, (int) table->spec.build,
		   (int) table->spec.filter);
	for (uint32_t c = 0; c < table->ncolumns; c++)
		print_column("    column", c, &table->columns[c]);
}

static void
print_code(const HgjPipelineSpec *spec)
{
	for (uint32_t i = 0; i < spec->ncode; i++)
	{
		const HgjPipeInstruction *in = &spec->code[i];

		printf("  %3u %-11s %s dst r%u a r%u b r%u c %u arg %u imm %lld\n", i, NAME(ops, in->op),
			   NAME(kinds, in->kind), in->dst, in->a, in->b, in->c, in->arg, (long long) in->imm);
	}
}

static void
print_groups(const FuzzPlan *plan)
{
	const HgjPipelineSpec *spec = &plan->spec;

	for (uint32_t k = 0; k < spec->nkeys; k++)
		printf("  key %u: r%u%s, %lld to %lld\n", k, spec->keys[k],
			   plan->ranges[k].bounded ? " bounded" : "", (long long) plan->ranges[k].low,
			   (long long) plan->ranges[k].high);
	for (uint32_t w = 0; w < spec->nwords; w++)
		printf("  word %u: %s r%u filter r%u\n", w, NAME(states, spec->words[w].state),
			   spec->words[w].reg, spec->words[w].filter);
	for (uint32_t c = 0; c < spec->ncolumns; c++)
		printf("  column %u: r%u %s\n", c, spec->columns[c], NAME(kinds, spec->kinds[c]));
	for (uint32_t h = 0; h < plan->terms.nhaving; h++)
		printf("  having: word %u, count %u, %lld:%llu to %lld:%llu\n", plan->terms.having[h].word,
			   plan->terms.having[h].count, (long long) plan->terms.having[h].least.high,
			   (unsigned long long) plan->terms.having[h].least.low,
			   (long long) plan->terms.having[h].most.high,
			   (unsigned long long) plan->terms.having[h].most.low);
}

void
fuzz_print(const FuzzPlan *plan)
{
	printf("%s%s%s%s\n", plan->spec.rows ? "rows" : plan->spec.fills ? "fills" : "groups",
		   plan->risky ? ", may fail" : "", plan->tight ? ", keys out of range" : "",
		   plan->spoiled ? ", spoiled" : "");
	for (uint32_t i = 0; i < plan->spec.ninputs && i < FUZZ_INPUTS; i++)
		print_column("  input", i, &plan->inputs[i]);
	for (uint32_t p = 0; p < plan->npushes; p++)
		printf("  push %u: %u rows, %s\n", p, plan->pushes[p].n, ways[plan->pushes[p].way]);
	for (uint32_t v = 0; v < plan->terms.nvalues; v++)
		printf("  value %u: %lld%s\n", v, (long long) plan->terms.values[v],
			   hgj_pipe_value_is_null(&plan->terms, v) ? ", NULL" : "");
	for (uint32_t j = 0; j < plan->spec.njoins && j < FUZZ_JOINS; j++)
		print_join(plan, j);
	print_code(&plan->spec);
	print_groups(plan);
}
