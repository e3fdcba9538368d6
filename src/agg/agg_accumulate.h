/*-------------------------------------------------------------------------
 *
 * agg_accumulate.h
 *	  The loops that add values to the states of their groups.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_AGG_ACCUMULATE_H
#define HGJ_AGG_ACCUMULATE_H

#include "compat.h"

#include "agg/agg_state.h"

/* agg_integers.c */
extern void hgj_agg_sum_int2(HgjAggregate *agg, const HgjAggRows *rows);
extern void hgj_agg_sum_int4(HgjAggregate *agg, const HgjAggRows *rows);
extern void hgj_agg_sum_int8(HgjAggregate *agg, const HgjAggRows *rows);
extern void hgj_agg_min_bool(HgjAggregate *agg, const HgjAggRows *rows);
extern void hgj_agg_max_bool(HgjAggregate *agg, const HgjAggRows *rows);
extern void hgj_agg_min_int2(HgjAggregate *agg, const HgjAggRows *rows);
extern void hgj_agg_max_int2(HgjAggregate *agg, const HgjAggRows *rows);
extern void hgj_agg_min_int4(HgjAggregate *agg, const HgjAggRows *rows);
extern void hgj_agg_max_int4(HgjAggregate *agg, const HgjAggRows *rows);
extern void hgj_agg_min_int8(HgjAggregate *agg, const HgjAggRows *rows);
extern void hgj_agg_max_int8(HgjAggregate *agg, const HgjAggRows *rows);
extern void hgj_agg_min_oid(HgjAggregate *agg, const HgjAggRows *rows);
extern void hgj_agg_max_oid(HgjAggregate *agg, const HgjAggRows *rows);

/* agg_floats.c */
extern void hgj_agg_sum_float4(HgjAggregate *agg, const HgjAggRows *rows);
extern void hgj_agg_sum_float8(HgjAggregate *agg, const HgjAggRows *rows);
extern void hgj_agg_avg_float4(HgjAggregate *agg, const HgjAggRows *rows);
extern void hgj_agg_avg_float8(HgjAggregate *agg, const HgjAggRows *rows);
extern void hgj_agg_min_float4(HgjAggregate *agg, const HgjAggRows *rows);
extern void hgj_agg_max_float4(HgjAggregate *agg, const HgjAggRows *rows);
extern void hgj_agg_min_float8(HgjAggregate *agg, const HgjAggRows *rows);
extern void hgj_agg_max_float8(HgjAggregate *agg, const HgjAggRows *rows);

/* agg_numeric.c */
extern void hgj_agg_sum_numeric(HgjAggregate *agg, const HgjAggRows *rows);
extern void hgj_numeric_take_sum(HgjAggregate *agg, HgjAggNumeric *state, int128 sum,
								 const HgjDecimals *decimals);

/* agg_by_function.c */
extern void hgj_agg_by_function(HgjAggregate *agg, const HgjAggRows *rows);
extern void hgj_agg_keep_value(HgjAggregate *agg, HgjAggValue *state, Datum value);
extern void hgj_agg_call_for_value(HgjAggregate *agg, HgjAggValue *state, Datum value);

/* agg_extremes.c */
extern void hgj_agg_extreme_decimals(HgjAggregate *agg, const HgjAggRows *rows);
extern void hgj_agg_take_extreme(HgjAggregate *agg, HgjAggValue *state, int64 value,
								 const HgjDecimals *decimals);

/* Run a statement for every value: in `value`, and its group in `group`. */
#define HGJ_FOR_VALUES(rows, type, statement) \
	do { \
		const type *values_ = (rows)->values; \
		const uint32 *at_ = (rows)->at; \
		const uint32 *groups_ = (rows)->groups; \
		uint32		n_ = (rows)->n; \
		if (at_ == NULL) \
			for (uint32 i_ = 0; i_ < n_; i_++) \
			{ \
				type		value = values_[i_]; \
				uint32		group = groups_[i_]; \
				statement; \
			} \
		else \
			for (uint32 i_ = 0; i_ < n_; i_++) \
			{ \
				type		value = values_[at_[i_]]; \
				uint32		group = groups_[i_]; \
				statement; \
			} \
	} while (0)

/* The same where all belong to one group. */
#define HGJ_FOR_VALUES_OF_ONE(rows, type, statement) \
	do { \
		const type *values_ = (rows)->values; \
		const uint32 *at_ = (rows)->at; \
		uint32		n_ = (rows)->n; \
		if (at_ == NULL) \
			for (uint32 i_ = 0; i_ < n_; i_++) \
			{ \
				type		value = values_[i_]; \
				statement; \
			} \
		else \
			for (uint32 i_ = 0; i_ < n_; i_++) \
			{ \
				type		value = values_[at_[i_]]; \
				statement; \
			} \
	} while (0)

/*
 * Both.  The statement works on the state of a type, called `state`; a single
 * group's state is worked on in registers.
 */
#define HGJ_ACCUMULATE(agg, rows, state_type, type, statement) \
	do { \
		char	   *base_ = (agg)->table->rows + (agg)->offset; \
		if ((rows)->groups == NULL) \
		{ \
			state_type	one_ = *(state_type *) base_; \
			state_type *state = &one_; \
			HGJ_FOR_VALUES_OF_ONE(rows, type, statement); \
			*(state_type *) base_ = one_; \
		} \
		else \
		{ \
			Size		stride_ = (agg)->table->stride; \
			HGJ_FOR_VALUES(rows, type, \
				{ \
					state_type *state = (state_type *) (base_ + group * stride_); \
					statement; \
				}); \
		} \
	} while (0)

#endif							/* HGJ_AGG_ACCUMULATE_H */
