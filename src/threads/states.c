/*-------------------------------------------------------------------------
 *
 * states.c
 *	  State words of groups (engine/pipeline.h): what rows of a vector add to them.
 *
 * 1. One word of all rows after the other: its operation is then known before the loop.  The row
 *	  of a group is found by its number; without keys there is one group, whose word stays in a
 *	  register.
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

static inline double
as_double(uint64_t word)
{
	double		value;

	memcpy(&value, &word, sizeof(value));
	return value;
}

static inline uint64_t
double_word(double value)
{
	uint64_t	word;

	memcpy(&word, &value, sizeof(word));
	return word;
}

/* Step 2, there and back. */
static inline uint64_t
order_of(uint64_t word)
{
	if (isnan(as_double(word)))
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
			*word = double_word(as_double(*word) + as_double(other));
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
			*state += v->all ? v->n : v->nsel;
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
				add(*state = double_word(as_double(*state) + as_double(words[i])); \
					good &= fabs(as_double(words[i])) < MOST_SUMMED); \
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
