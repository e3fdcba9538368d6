/*-------------------------------------------------------------------------
 *
 * pipeline_ops.cuh
 *	  What single instructions of a pipeline compute, and how state words of
 *	  groups change.
 *
 * 1. Values are 64-bit registers (pipeline.h).  An instruction returns false
 *	  where PostgreSQL's function would raise an error for operands that are not
 *	  NULL; which error, nobody needs to know here.
 * 2. Floats compare as PostgreSQL compares them: NaNs are equal, and larger than
 *	  everything else.  Their arithmetic is IEEE's, with PostgreSQL's checks.
 * 3. The least and largest float are kept as integers of the same order.
 *
 * Owns nothing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CUDA_PIPELINE_OPS_CUH
#define HGJ_CUDA_PIPELINE_OPS_CUH

#include <limits.h>
#include <stdint.h>

#include "engine.h"

namespace hgj
{

__device__ __forceinline__ double as_double(uint64_t word)
{
	return __longlong_as_double((long long) word);
}

__device__ __forceinline__ float as_float(uint64_t word)
{
	return __uint_as_float((uint32_t) word);
}

__device__ __forceinline__ uint64_t word_of(double value)
{
	return (uint64_t) __double_as_longlong(value);
}

__device__ __forceinline__ uint64_t word_of(float value)
{
	return __float_as_uint(value);
}

/* A value of a column, as a register has it. */
__device__ __forceinline__ uint64_t load_value(uint32_t kind, const void *values,
											   uint64_t at)
{
	switch (kind)
	{
		case HGJ_KIND_U1:
			return __ldg(static_cast<const uint8_t *>(values) + at);
		case HGJ_KIND_I2:
			return (uint64_t) (int64_t) __ldg(static_cast<const int16_t *>(values) + at);
		case HGJ_KIND_I4:
			return (uint64_t) (int64_t) __ldg(static_cast<const int32_t *>(values) + at);
		case HGJ_KIND_U4:
		case HGJ_KIND_F4:
			return __ldg(static_cast<const uint32_t *>(values) + at);
		default:
			return __ldg(static_cast<const uint64_t *>(values) + at);
	}
}

/* Step 2: -1, 0 or 1. */
template <class T>
__device__ __forceinline__ int compare_floats(T a, T b)
{
	if (isnan(a))
		return isnan(b) ? 0 : 1;
	if (isnan(b))
		return -1;
	return a < b ? -1 : a > b;
}

__device__ __forceinline__ int compare_values(uint32_t kind, uint64_t a, uint64_t b)
{
	if (kind == HGJ_KIND_F4)
		return compare_floats(as_float(a), as_float(b));
	if (kind == HGJ_KIND_F8)
		return compare_floats(as_double(a), as_double(b));
	return (int64_t) a < (int64_t) b ? -1 : (int64_t) a > (int64_t) b;
}

__device__ __forceinline__ bool comparison_holds(uint32_t comparison, int order)
{
	switch (comparison)
	{
		case HGJ_EQ:
			return order == 0;
		case HGJ_NE:
			return order != 0;
		case HGJ_LT:
			return order < 0;
		case HGJ_LE:
			return order <= 0;
		case HGJ_GT:
			return order > 0;
		default:
			return order >= 0;
	}
}

/* The limits of an integer kind. */
__device__ __forceinline__ int64_t least_of(uint32_t kind)
{
	switch (kind)
	{
		case HGJ_KIND_I2:
			return SHRT_MIN;
		case HGJ_KIND_I4:
			return INT_MIN;
		case HGJ_KIND_I8:
			return LLONG_MIN;
		default:
			return 0;
	}
}

__device__ __forceinline__ int64_t most_of(uint32_t kind)
{
	switch (kind)
	{
		case HGJ_KIND_I2:
			return SHRT_MAX;
		case HGJ_KIND_I4:
			return INT_MAX;
		case HGJ_KIND_U4:
			return UINT_MAX;
		case HGJ_KIND_U1:
			return UCHAR_MAX;
		default:
			return LLONG_MAX;
	}
}

/* Step 1, for integers of up to 64 bits. */
__device__ __forceinline__ bool integer_arithmetic(const HgjPipeInstruction &in,
												   int64_t a, int64_t b, int64_t *r)
{
	int64_t least = least_of(in.kind);
	bool good = true;

	switch (in.c)
	{
		case HGJ_ADD:
			*r = (int64_t) ((uint64_t) a + (uint64_t) b);
			good = ((a ^ *r) & (b ^ *r)) >= 0;
			break;
		case HGJ_SUB:
			*r = (int64_t) ((uint64_t) a - (uint64_t) b);
			good = ((a ^ b) & (a ^ *r)) >= 0;
			break;
		case HGJ_MUL:
			*r = (int64_t) ((uint64_t) a * (uint64_t) b);
			good = __mul64hi(a, b) == *r >> 63;
			break;
		case HGJ_DIV:
			if (b == 0 || (b == -1 && a == least))
				return false;
			*r = a / b;
			break;
		case HGJ_MOD:
			if (b == 0)
				return false;
			*r = b == -1 ? 0 : a % b;
			break;
		case HGJ_NEG:
			*r = (int64_t) (0 - (uint64_t) a);
			good = a != least;
			break;
		default:
			*r = a < 0 ? (int64_t) (0 - (uint64_t) a) : a;
			good = a != least;
			break;
	}
	return good && *r >= least && *r <= most_of(in.kind);
}

template <class T>
__device__ __forceinline__ bool float_arithmetic(uint32_t arithmetic, T a, T b, T *r)
{
	bool finite = isfinite(a) && isfinite(b);

	switch (arithmetic)
	{
		case HGJ_ADD:
			*r = a + b;
			return isfinite(*r) || !finite;
		case HGJ_SUB:
			*r = a - b;
			return isfinite(*r) || !finite;
		case HGJ_MUL:
			*r = a * b;
			return (isfinite(*r) || !finite) && (*r != 0 || a == 0 || b == 0);
		case HGJ_DIV:
			if (b == 0 && !isnan(a))
				return false;
			*r = a / b;
			return (isfinite(*r) || !finite) && (*r != 0 || a == 0 || !isfinite(b));
		case HGJ_NEG:
			*r = -a;
			return true;
		default:
			*r = fabs(a);
			return true;
	}
}

__device__ __forceinline__ bool arithmetic(const HgjPipeInstruction &in, uint64_t a,
										   uint64_t b, uint64_t *value)
{
	bool good;

	if (in.kind == HGJ_KIND_F8)
	{
		double r = 0;

		good = float_arithmetic(in.c, as_double(a), as_double(b), &r);
		*value = word_of(r);
	}
	else if (in.kind == HGJ_KIND_F4)
	{
		float r = 0;

		good = float_arithmetic(in.c, as_float(a), as_float(b), &r);
		*value = word_of(r);
	}
	else
	{
		int64_t r = 0;

		good = integer_arithmetic(in, (int64_t) a, (int64_t) b, &r);
		*value = (uint64_t) r;
	}
	return good;
}

/* A rounded float to an integer; the upper limits are powers of two. */
__device__ __forceinline__ bool float_to_integer(double v, uint32_t to, uint64_t *value)
{
	double limit = to == HGJ_KIND_I2   ? 32768.0
				   : to == HGJ_KIND_I4 ? 2147483648.0
									   : 9223372036854775808.0;

	if (!(v >= -limit && v < limit))
		return false;
	*value = (uint64_t) (int64_t) v;
	return true;
}

__device__ __forceinline__ bool cast_float(const HgjPipeInstruction &in, uint64_t a,
										   uint64_t *value)
{
	if (in.kind == HGJ_KIND_F4)
	{
		if (in.c != HGJ_KIND_F8)
			return float_to_integer(rintf(as_float(a)), in.c, value);
		*value = word_of((double) as_float(a));
		return true;
	}
	if (in.c == HGJ_KIND_F4)
	{
		double from = as_double(a);
		float r = (float) from;

		*value = word_of(r);
		return !(isinf(r) && !isinf(from)) && !(r == 0 && from != 0);
	}
	return float_to_integer(rint(as_double(a)), in.c, value);
}

__device__ __forceinline__ bool cast_value(const HgjPipeInstruction &in, uint64_t a,
										   uint64_t *value)
{
	int64_t v = (int64_t) a;

	if (in.kind == HGJ_KIND_F4 || in.kind == HGJ_KIND_F8)
		return cast_float(in, a, value);
	switch (in.c)
	{
		case HGJ_KIND_F4:
			*value = word_of((float) v);
			return true;
		case HGJ_KIND_F8:
			*value = word_of((double) v);
			return true;
		case HGJ_KIND_U1:
			*value = v != 0;
			return true;
		default:
			*value = in.kind == HGJ_KIND_U1 ? v != 0 : a;
			return v >= least_of(in.c) && v <= most_of(in.c);
	}
}

/* columns/keys.c's words: all NaNs are one, -0 is 0. */
__device__ __forceinline__ uint64_t key_word(uint32_t kind, uint64_t a)
{
	double v;

	switch (kind)
	{
		case HGJ_KIND_U1:
			return (uint8_t) a;
		case HGJ_KIND_I2:
			return (uint64_t) (int64_t) (int16_t) a;
		case HGJ_KIND_I4:
			return (uint64_t) (int64_t) (int32_t) a;
		case HGJ_KIND_U4:
			return (uint32_t) a;
		case HGJ_KIND_F4:
			v = (double) as_float(a);
			break;
		case HGJ_KIND_F8:
			v = as_double(a);
			break;
		default:
			return a;
	}
	return isnan(v) ? (uint64_t) LLONG_MAX : word_of(v + 0.0);
}

/* SQL's AND and OR: `absorbing` decides alone. */
__device__ __forceinline__ void combine(bool absorbing, uint64_t a, bool null_a,
										uint64_t b, bool null_b, uint64_t *value,
										bool *null)
{
	bool decided =
		(!null_a && (a != 0) == absorbing) || (!null_b && (b != 0) == absorbing);

	*null = !decided && (null_a || null_b);
	*value = decided ? absorbing : !absorbing;
}

/* Everything that has a result but reads no column. */
__device__ __forceinline__ bool compute_value(const HgjPipeInstruction &in, uint64_t a,
											  bool null_a, uint64_t b, bool null_b,
											  uint64_t *value, bool *null)
{
	*null = null_a;
	switch (in.op)
	{
		case HGJ_PIPE_CONSTANT:
			*value = (uint64_t) in.imm;
			*null = false;
			return true;
		case HGJ_PIPE_NULL:
			*null = true;
			return true;
		case HGJ_PIPE_MOVE:
			*value = a;
			return true;
		case HGJ_PIPE_COMPARE:
			*null = null_a || null_b;
			*value = comparison_holds(in.c, compare_values(in.kind, a, b));
			return true;
		case HGJ_PIPE_DISTINCT:
			*null = false;
			*value =
				null_a || null_b ? null_a != null_b : compare_values(in.kind, a, b) != 0;
			return true;
		case HGJ_PIPE_ARITHMETIC:
			*null = null_a || (null_b && in.c < HGJ_NEG);
			return arithmetic(in, a, b, value) || *null;
		case HGJ_PIPE_CAST:
			return cast_value(in, a, value) || null_a;
		case HGJ_PIPE_AND:
			combine(false, a, null_a, b, null_b, value, null);
			return true;
		case HGJ_PIPE_OR:
			combine(true, a, null_a, b, null_b, value, null);
			return true;
		case HGJ_PIPE_NOT:
			*value = a == 0;
			return true;
		case HGJ_PIPE_IS_NULL:
			*value = null_a;
			*null = false;
			return true;
		case HGJ_PIPE_IS_NOT_NULL:
			*value = !null_a;
			*null = false;
			return true;
		case HGJ_PIPE_BOOL_TEST:
			*value = in.c >> (null_a ? 2 : a == 0) & 1;
			*null = false;
			return true;
		case HGJ_PIPE_KEY_WORD:
			*value = key_word(in.kind, a);
			return true;
		default:
			return false;
	}
}

/* Step 3: floats as integers of the same order, NaN above all. */
__device__ __forceinline__ uint64_t order_of(uint64_t word)
{
	if (isnan(as_double(word)))
		return (uint64_t) LLONG_MAX;
	return (int64_t) word >= 0 ? word : word ^ (uint64_t) LLONG_MAX;
}

__device__ __forceinline__ uint64_t float_of_order(uint64_t order)
{
	if (order == (uint64_t) LLONG_MAX)
		return 0x7FF8000000000000ull;
	return (int64_t) order >= 0 ? order : order ^ (uint64_t) LLONG_MAX;
}

/* The word of a group without rows. */
__device__ __forceinline__ uint64_t state_identity(uint32_t state)
{
	switch (state)
	{
		case HGJ_PIPE_SUM_FLOAT:
			return 0x8000000000000000ull; /* -0 */
		case HGJ_PIPE_MIN:
		case HGJ_PIPE_MIN_FLOAT:
			return (uint64_t) LLONG_MAX;
		case HGJ_PIPE_MAX:
		case HGJ_PIPE_MAX_FLOAT:
			return (uint64_t) LLONG_MIN;
		default:
			return 0;
	}
}

/* From a register to what is added; false: not here. */
__device__ __forceinline__ bool state_operand(uint32_t state, uint64_t *value)
{
	switch (state)
	{
		case HGJ_PIPE_COUNT:
			*value = 1;
			return true;
		case HGJ_PIPE_SUM_LOW:
			*value = (uint32_t) *value;
			return true;
		case HGJ_PIPE_SUM_HIGH:
			*value = (uint64_t) ((int64_t) *value >> 32);
			return true;
		case HGJ_PIPE_SUM_FLOAT:
			/* no sum, nor its squares, of such values overflow */
			return fabs(as_double(*value)) < 1e140;
		case HGJ_PIPE_MIN_FLOAT:
		case HGJ_PIPE_MAX_FLOAT:
			if (*value == 0x8000000000000000ull)
				return false;
			*value = order_of(*value);
			return true;
		default:
			return true;
	}
}

/* Two words, or a word and an operand, to one. */
__device__ __forceinline__ uint64_t state_merge(uint32_t state, uint64_t a, uint64_t b)
{
	switch (state)
	{
		case HGJ_PIPE_SUM_FLOAT:
			return word_of(as_double(a) + as_double(b));
		case HGJ_PIPE_MIN:
		case HGJ_PIPE_MIN_FLOAT:
			return (int64_t) a < (int64_t) b ? a : b;
		case HGJ_PIPE_MAX:
		case HGJ_PIPE_MAX_FLOAT:
			return (int64_t) a > (int64_t) b ? a : b;
		default:
			return a + b;
	}
}

__device__ __forceinline__ void
state_merge_atomic(uint32_t state, unsigned long long *word, uint64_t value)
{
	switch (state)
	{
		case HGJ_PIPE_SUM_FLOAT:
			atomicAdd(reinterpret_cast<double *>(word), as_double(value));
			break;
		case HGJ_PIPE_MIN:
		case HGJ_PIPE_MIN_FLOAT:
			if ((int64_t) value < *(volatile long long *) word)
				atomicMin(reinterpret_cast<long long *>(word), (long long) value);
			break;
		case HGJ_PIPE_MAX:
		case HGJ_PIPE_MAX_FLOAT:
			if ((int64_t) value > *(volatile long long *) word)
				atomicMax(reinterpret_cast<long long *>(word), (long long) value);
			break;
		default:
			atomicAdd(word, (unsigned long long) value);
			break;
	}
}

/* As group rows have it. */
__device__ __forceinline__ uint64_t state_result(uint32_t state, uint64_t word)
{
	return state == HGJ_PIPE_MIN_FLOAT || state == HGJ_PIPE_MAX_FLOAT
			   ? float_of_order(word)
			   : word;
}

} // namespace hgj

#endif /* HGJ_CUDA_PIPELINE_OPS_CUH */
