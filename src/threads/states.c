/*-------------------------------------------------------------------------
 *
 * states.c
 *	  State words of groups (engine/pipeline.h): what rows of a vector add to them.
 *
 * 1. One word of all rows after the other: its operation is then known before the loop.  The row
 *	  of a group is found by its number; without keys there is one group, whose word stays in a
 *	  register.
 *	  Where there are few groups, a row's addition would wait for that of the row before it.  So
 *	  the rows of each group are counted and summed by themselves, in loops over all rows of which
 *	  the compiler makes vector code; a register's sum is made once for all words that want it.
 *	  It is then one value more of the group: as the upper and lower half of 128 bits are kept
 *	  apart, it is added as any value is, if its rows' values leave room for it in 64 bits.
 * 2. The least and largest float are kept as integers of the same order, in which NaN is above
 *	  all; where -0 is met the host must look.  A sum of floats so large that it could overflow
 *	  is the host's, too.
 *
 * Owns nothing.  Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "threads/threads.h"

#define MINUS_ZERO		UINT64_C(0x8000000000000000)
#define ANY_NAN			UINT64_C(0x7FF8000000000000)

/* No sum of such values, nor of their squares, overflows. */
#define MOST_SUMMED		1e140

/* Step 2, there and back. */
static inline uint64_t
order_of(uint64_t word)
{
	if (isnan(hgj_word_float8(word)))
		return (uint64_t) INT64_MAX;
	return (int64_t) word < 0 ? word ^ (uint64_t) INT64_MAX : word;
}

static uint64_t
float_of_order(uint64_t order)
{
	if (order == (uint64_t) INT64_MAX)
		return ANY_NAN;
	return (int64_t) order < 0 ? order ^ (uint64_t) INT64_MAX : order;
}

/* The word of a group that has no row. */
uint64_t
hgj_state_identity(uint32_t state)
{
	switch (state)
	{
		case HGJ_PIPE_SUM_FLOAT:
			return MINUS_ZERO;
		case HGJ_PIPE_MIN:
		case HGJ_PIPE_MIN_FLOAT:
			return (uint64_t) INT64_MAX;
		case HGJ_PIPE_MAX:
		case HGJ_PIPE_MAX_FLOAT:
			return (uint64_t) INT64_MIN;
		default:
			return 0;
	}
}

/* The word as rows of groups have it. */
uint64_t
hgj_state_result(uint32_t state, uint64_t word)
{
	if (state == HGJ_PIPE_MIN_FLOAT || state == HGJ_PIPE_MAX_FLOAT)
		return float_of_order(word);
	return word;
}

/* The word of the same group in another run. */
void
hgj_state_merge(uint32_t state, uint64_t *word, uint64_t other)
{
	switch (state)
	{
		case HGJ_PIPE_SUM_FLOAT:
			*word = hgj_float8_word(hgj_word_float8(*word) + hgj_word_float8(other));
			break;
		case HGJ_PIPE_MIN:
		case HGJ_PIPE_MIN_FLOAT:
			*word = (int64_t) other < (int64_t) *word ? other : *word;
			break;
		case HGJ_PIPE_MAX:
		case HGJ_PIPE_MAX_FLOAT:
			*word = (int64_t) other > (int64_t) *word ? other : *word;
			break;
		default:
			*word += other;
			break;
	}
}

/* ---- one group ------------------------------------------------------------- */

HGJ_CLONES static uint64_t
sum_all(const Vector *v, uint32_t state, const uint64_t *words)
{
	uint64_t	sum = 0;

	if (state == HGJ_PIPE_SUM_LOW)
		EACH_ALIVE(v, sum += (uint32_t) words[i]);
	else if (state == HGJ_PIPE_SUM_HIGH)
		EACH_ALIVE(v, sum += (uint64_t) ((int64_t) words[i] >> 32));
	else
		EACH_ALIVE(v, sum += words[i]);
	return sum;
}

HGJ_CLONES static uint64_t
least_of_all(const Vector *v, const uint64_t *words, uint64_t least)
{
	EACH_ALIVE(v, least = (int64_t) words[i] < (int64_t) least ? words[i] : least);
	return least;
}

HGJ_CLONES static uint64_t
most_of_all(const Vector *v, const uint64_t *words, uint64_t most)
{
	EACH_ALIVE(v, most = (int64_t) words[i] > (int64_t) most ? words[i] : most);
	return most;
}

/* Step 1, without keys, NULLs and a filter; false: that is not done here. */
static bool
add_to_one(const Vector *v, const HgjPipeWord *word, uint64_t *state)
{
	const uint64_t *words = word->reg == HGJ_PIPE_NONE ? NULL : v->words[word->reg];

	switch (word->state)
	{
		case HGJ_PIPE_COUNT:
			*state += v->nsel;
			return true;
		case HGJ_PIPE_SUM:
		case HGJ_PIPE_SUM_LOW:
		case HGJ_PIPE_SUM_HIGH:
			*state += sum_all(v, word->state, words);
			return true;
		case HGJ_PIPE_MIN:
			*state = least_of_all(v, words, *state);
			return true;
		case HGJ_PIPE_MAX:
			*state = most_of_all(v, words, *state);
			return true;
		default:
			return false;
	}
}

/* ---- many groups ------------------------------------------------------------- */

#define ADD(change) \
	EACH_ALIVE(v, \
			   uint64_t *state = states + (size_t) group_of[i] * width; \
			   { \
				   change; \
			   })

/* Is row i left out? */
#define IS_LEFT_OUT \
	((nulls != NULL && nulls[i]) || \
	 (filter != NULL && (filter[i] == 0 || (filter_nulls != NULL && filter_nulls[i]))))

/* Add rows that are not left out. */
#define ADD_SOME(change) \
	EACH_ALIVE(v, \
			   uint64_t *state = states + (size_t) group_of[i] * width; \
			   if (!IS_LEFT_OUT) \
			   { \
				   change; \
			   })

#define ADD_STATE(add) \
	do { \
		switch (word->state) \
		{ \
			case HGJ_PIPE_COUNT: \
				add(*state += 1); \
				break; \
			case HGJ_PIPE_SUM: \
				add(*state += words[i]); \
				break; \
			case HGJ_PIPE_SUM_LOW: \
				add(*state += (uint32_t) words[i]); \
				break; \
			case HGJ_PIPE_SUM_HIGH: \
				add(*state += (uint64_t) ((int64_t) words[i] >> 32)); \
				break; \
			case HGJ_PIPE_SUM_FLOAT: \
				add(*state = hgj_float8_word(hgj_word_float8(*state) + hgj_word_float8(words[i])); \
					good &= fabs(hgj_word_float8(words[i])) < MOST_SUMMED); \
				break; \
			case HGJ_PIPE_MIN: \
				add(*state = (int64_t) words[i] < (int64_t) *state ? words[i] : *state); \
				break; \
			case HGJ_PIPE_MAX: \
				add(*state = (int64_t) words[i] > (int64_t) *state ? words[i] : *state); \
				break; \
			case HGJ_PIPE_MIN_FLOAT: \
				add(const uint64_t order = order_of(words[i]); \
					good &= words[i] != MINUS_ZERO; \
					*state = (int64_t) order < (int64_t) *state ? order : *state); \
				break; \
			default: \
				add(const uint64_t order = order_of(words[i]); \
					good &= words[i] != MINUS_ZERO; \
					*state = (int64_t) order > (int64_t) *state ? order : *state); \
				break; \
		} \
	} while (0)

static bool
add_all(const Vector *v, const HgjPipeWord *word, uint64_t *states, uint32_t width,
		const uint32_t *group_of)
{
	const uint64_t *words = word->reg == HGJ_PIPE_NONE ? NULL : v->words[word->reg];
	bool		good = true;

	ADD_STATE(ADD);
	return good;
}

static bool
add_some(const Vector *v, const HgjPipeWord *word, uint64_t *states, uint32_t width,
		 const uint32_t *group_of)
{
	const uint64_t *words = word->reg == HGJ_PIPE_NONE ? NULL : v->words[word->reg];
	const uint8_t *nulls = words != NULL && has_nulls(v, word->reg) ? v->nulls[word->reg] : NULL;
	const uint64_t *filter = word->filter == HGJ_PIPE_NONE ? NULL : v->words[word->filter];
	const uint8_t *filter_nulls = filter != NULL && has_nulls(v, word->filter) ?
		v->nulls[word->filter] : NULL;
	bool		good = true;

	ADD_STATE(ADD_SOME);
	return good;
}

/* ---- few groups ---------------------------------------------------------------- */

/* Groups that are numbered anew, by position or as they come. */
#define MOST_NUMBERED	4096

/* Sums of as many values below this are below 2^63. */
#define MOST_OF_FEW		((UINT64_C(1) << 63) / VECTOR_ROWS)

/* The sum of a group's rows. */
HGJ_CLONES static uint64_t
sum_group(const uint64_t *restrict words, const uint8_t *restrict number, uint32_t n, uint8_t group)
{
	uint64_t	sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += number[i] == group ? words[i] : 0;
	return sum;
}

/* How many rows a group has. */
HGJ_CLONES static uint32_t
count_group(const uint8_t *number, uint32_t n, uint8_t group)
{
	uint32_t	count = 0;

	for (uint32_t i = 0; i < n; i++)
		count += number[i] == group;
	return count;
}

/* Bits of the magnitudes of rows that are alive, or of others, together. */
HGJ_CLONES static uint64_t
magnitudes(const uint64_t *restrict words, const uint8_t *restrict number, uint32_t n)
{
	uint64_t	bits = 0;

	for (uint32_t i = 0; i < n; i++)
		bits |= number[i] == NO_GROUP ? 0 : words[i] ^ (uint64_t) ((int64_t) words[i] >> 63);
	return bits;
}

/* Groups that rows of the vector are the first of; false: they are too many. */
static bool
meet_groups(FewGroups *few, const Vector *v, const uint32_t *group_of)
{
	uint8_t    *number_of = few->number_of;
	bool		good = true;

	EACH_ALIVE(v,
			   const uint32_t group = group_of[i];
			   if (number_of[group] == NO_GROUP)
			   {
				   good &= few->ngroups < FEW_GROUPS;
				   if (few->ngroups < FEW_GROUPS)
				   {
					   few->group[few->ngroups] = group;
					   number_of[group] = (uint8_t) few->ngroups++;
				   }
			   });
	return good;
}

/*
 * Step 1: numbers of the groups of all rows, which are below `most`.  False: groups are not few, or
 * there is no memory.
 */
bool
hgj_few_begin(FewGroups *few, const Vector *v, const uint32_t *group_of, uint64_t most)
{
	const uint8_t *number_of;

	if (few->too_many || most > MOST_NUMBERED)
		return false;
	if (few->number_of == NULL)
	{
		few->number_of = malloc(MOST_NUMBERED);
		if (few->number_of == NULL)
			return false;
		memset(few->number_of, NO_GROUP, MOST_NUMBERED);
	}
	few->too_many = !meet_groups(few, v, group_of);
	if (few->too_many)
		return false;
	number_of = few->number_of;
	few->n = v->n;
	few->summed = few->fits = 0;
	if (!all_alive(v))
		memset(few->number, NO_GROUP, v->n);
	EACH_ALIVE(v, few->number[i] = number_of[group_of[i]]);
	for (uint32_t g = 0; g < few->ngroups; g++)
		few->counts[g] = count_group(few->number, v->n, (uint8_t) g);
	return true;
}

/* The sums of a register, once; false: they may not fit into 64 bits. */
static bool
sum_register(FewGroups *few, const Vector *v, uint8_t reg)
{
	uint64_t	bit = UINT64_C(1) << reg;

	if (few->summed & bit)
		return few->fits & bit;
	few->summed |= bit;
	for (uint32_t g = 0; g < few->ngroups; g++)
		few->sums[reg][g] = few->counts[g] == 0 ? 0 :
			sum_group(v->words[reg], few->number, few->n, (uint8_t) g);
	if (magnitudes(v->words[reg], few->number, few->n) < MOST_OF_FEW)
		few->fits |= bit;
	return few->fits & bit;
}

/*
 * Step 1: one word of few groups; false: that is not done here.  states: that word of group 0.
 * Half a sum without the other half is not done: it has to be the halves' of all values.
 */
bool
hgj_few_add(FewGroups *few, const Vector *v, const Plan *plan, uint32_t w, uint64_t *states)
{
	const HgjPipeWord *word = &plan->spec.words[w];
	const uint32_t width = plan->row_width;
	bool		half = word->state == HGJ_PIPE_SUM_LOW || word->state == HGJ_PIPE_SUM_HIGH;
	bool		fits;

	if (word->filter != HGJ_PIPE_NONE ||
		(word->reg != HGJ_PIPE_NONE && has_nulls(v, word->reg)) ||
		word->state > HGJ_PIPE_SUM_HIGH || (half && !(plan->paired >> w & 1)))
		return false;
	if (word->state == HGJ_PIPE_COUNT)
	{
		for (uint32_t g = 0; g < few->ngroups; g++)
			states[(size_t) few->group[g] * width] += few->counts[g];
		return true;
	}
	fits = sum_register(few, v, word->reg);
	if (!fits && word->state != HGJ_PIPE_SUM)
		return false;
	for (uint32_t g = 0; g < few->ngroups; g++)
	{
		uint64_t	sum = few->sums[word->reg][g];

		states[(size_t) few->group[g] * width] += word->state == HGJ_PIPE_SUM ? sum :
			word->state == HGJ_PIPE_SUM_LOW ? (uint32_t) sum :
			(uint64_t) ((int64_t) sum >> 32);
	}
	return true;
}

/* ---- all of them ------------------------------------------------------------------ */

/*
 * What the rows of a vector that are alive add to one word of their groups.  states: that word
 * of group 0; width: words of a group's row; one_group: all are of group 0.  False: the host must
 * look at a value.
 */
bool
hgj_state_add(const Vector *v, const HgjPipeWord *word, uint64_t *states, uint32_t width,
			  const uint32_t *group_of, bool one_group)
{
	bool		all = word->filter == HGJ_PIPE_NONE &&
		(word->reg == HGJ_PIPE_NONE || !has_nulls(v, word->reg));

	if (one_group && all && add_to_one(v, word, states))
		return true;
	return all ? add_all(v, word, states, width, group_of) :
		add_some(v, word, states, width, group_of);
}
