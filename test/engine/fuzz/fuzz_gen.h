/*-------------------------------------------------------------------------
 *
 * fuzz_gen.h
 *	  What makes the instructions of a random plan (fuzz_code.c), for what makes the plan
 *	  (fuzz_plan.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_FUZZ_GEN_H
#define HGJ_FUZZ_GEN_H

#include "fuzz.h"

/* What is known of a register where the plan has got to. */
typedef struct Reg
{
	bool		known;			/* it has a value, or NULL, on every way that leads here */
	uint8_t		kind;			/* HgjKind */
	uint8_t		level;			/* joins that had been probed when it was set */
	uint32_t	set;			/* the instruction that has set it last */
	uint32_t	read;			/* the last instruction that reads it, or 0 */
	bool		hollow;			/* it is probably NULL in all rows */
	bool		nonzero;		/* it is not 0, nor NULL unless its operands are */
	bool		special;		/* a float that may be infinite, no number, or huge */
	bool		exact;			/* a float of which sums do not depend on their order */
	int32_t		mag;			/* floats: below 2^mag */
	int32_t		frac;			/* floats: a multiple of 2^-frac */
	int64_t		low;			/* integers: the least value */
	int64_t		high;			/* integers: the largest value */
	const FuzzColumn *source;	/* the column that its values are of, or NULL */
	int64_t		offset;			/* what has been added to them */
	bool		keyed;			/* they are key words of floats */
} Reg;

typedef struct Gen
{
	FuzzPlan   *plan;			/* the plan that is made */
	Reg			regs[HGJ_PIPE_REGISTERS];	/* registers */
	uint64_t	pinned;			/* bits of registers that must not be overwritten now */
	uint32_t	nregs;			/* registers that are used, but for want of others */
	uint8_t		level;			/* joins that have been probed */
	uint8_t		matched;		/* joins that have been matched */
	uint8_t		depth;			/* of branches */
	uint32_t	probe_at[FUZZ_JOINS];	/* instructions */
	bool		safe;			/* nothing here may raise an error */
} Gen;

#define GEN_NONE	HGJ_PIPE_NONE	/* there is no such register */

extern uint8_t gen_emit(Gen *g, HgjPipeInstruction in, Reg meta);
extern void gen_put(Gen *g, HgjPipeInstruction in);
extern uint8_t gen_pick(Gen *g, bool (*suits) (const Reg *reg));
extern uint8_t gen_need(Gen *g, uint8_t kind);
extern uint8_t gen_need_bool(Gen *g);
extern uint8_t gen_input(Gen *g, uint32_t i);
extern uint8_t gen_payload(Gen *g);
extern uint8_t gen_key_word(Gen *g, uint8_t a);
extern uint8_t gen_arithmetic(Gen *g);
extern void gen_some(Gen *g, uint32_t most);
extern void gen_filter(Gen *g, uint16_t arg);
extern bool gen_is_float(uint32_t kind);

#endif							/* HGJ_FUZZ_GEN_H */
