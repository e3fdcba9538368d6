/*-------------------------------------------------------------------------
 *
 * agg_exchange_values.c
 *	  Groups that processes divide among themselves by the values of their one key,
 *	  and not by its hash (agg_exchange.c).
 *
 * Where each process has found its groups by a map of the key's values (columns/
 * groups_direct.c), hashing them again to divide them, and comparing them again where they
 * are combined, would take longer than what is done with them.
 *
 * 1. At the end of its input, a process that has written no image offers the range of its
 *	  values.  Its groups are in a map, or it has none.
 * 2. When all have met: if all have offered, and their groups fill the whole range well enough,
 *	  the range is cut into partitions of equal width, a power of two.  Whether that is so is
 *	  seen from shared memory, which changes no more, so that all come to the same answer.
 * 3. A partition is combined in a map of just its values, which is cleared and used again for
 *	  the next one.
 *
 * Groups that are NULL are in the first partition.  Partitions are smaller than those by hash,
 * so that processes end at about the same time where groups lie closer in some parts of the
 * range than in others, and so that a partition is in the processor's caches.
 *
 * Memory: the table's.  No locks: the range is in atomic variables.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "agg/agg_exchange.h"
#include "miscadmin.h"

/* Partitions, for each that there is by hash. */
#define FINER				4

/* Order-preserving: int64 as uint64. */
static inline uint64
biased(int64 value)
{
	return (uint64) value ^ (UINT64CONST(1) << 63);
}

void
hgj_exchange_values_init(HgjValueRange *range)
{
	pg_atomic_init_u32(&range->nready, 0);
	pg_atomic_init_u64(&range->ngroups, 0);
	pg_atomic_init_u64(&range->least, PG_UINT64_MAX);
	pg_atomic_init_u64(&range->most, 0);
}

static void
lower_to(pg_atomic_uint64 *least, uint64 value)
{
	uint64		old = pg_atomic_read_u64(least);

	while (value < old && !pg_atomic_compare_exchange_u64(least, &old, value))
		;
}

static void
raise_to(pg_atomic_uint64 *most, uint64 value)
{
	uint64		old = pg_atomic_read_u64(most);

	while (value > old && !pg_atomic_compare_exchange_u64(most, &old, value))
		;
}

/* Step 1; before this process arrives at the barrier. */
void
hgj_exchange_offer_values(HgjAggState *state)
{
	HgjValueRange *range = &state->exchange.shared->range;
	const HgjGroups *groups = &state->groups;
	const HgjGroupKey *key = groups->keys;
	uint32		first = 1;		/* place 0 is that of NULL */
	uint32		last = groups->map_size;

	if (state->exchange.has_divided || state->exchange.nkeys != 1 || groups->ntelling != 1 ||
		(groups->ngroups > 0 && (!groups->direct || key->dictionary)))
		return;
	if (groups->ngroups > 0)
	{
		while (first < last && groups->map[first] == 0)
			first++;
		while (last > first && groups->map[last - 1] == 0)
			last--;
	}
	if (first < last)
	{
		lower_to(&range->least, biased(key->base + first - 1));
		raise_to(&range->most, biased(key->base + last - 2));
	}
	(void) pg_atomic_fetch_add_u64(&range->ngroups, groups->ngroups);
	(void) pg_atomic_fetch_add_u32(&range->nready, 1);
}

/* Step 2; when all who take part have arrived: how groups are divided. */
void
hgj_exchange_agree(HgjAggExchange *exchange)
{
	HgjSharedExchange *shared = exchange->shared;
	HgjValueRange *range = &shared->range;
	uint64		least = pg_atomic_read_u64(&range->least);
	uint64		most = pg_atomic_read_u64(&range->most);

	exchange->npartitions = shared->npartitions;
	exchange->by_value = false;
	if (pg_atomic_read_u32(&range->nready) != pg_atomic_read_u32(&shared->nparts) || least > most ||
		(most - least) / HGJ_SPARSEST_MAP > pg_atomic_read_u64(&range->ngroups))
		return;
	exchange->by_value = true;
	exchange->least = (int64) biased((int64) least);
	exchange->npartitions = Min(shared->npartitions * FINER, HGJ_MOST_PARTITIONS);
	exchange->shift = 0;
	while ((most - least) >> exchange->shift >= exchange->npartitions)
		exchange->shift++;
}

/* The partitions of the groups in the table: by group, and how many each has. */
void
hgj_exchange_value_partitions(const HgjAggState *state, uint16 *partitions, uint32 *counts)
{
	const HgjGroups *groups = &state->groups;
	uint64		least = (uint64) state->exchange.least;
	int			shift = state->exchange.shift;

	for (uint32 g = 0; g < groups->ngroups; g++)
	{
		char	   *row = hgj_group_row(groups, g);
		bool		isnull = ((uint8 *) row + groups->nulls_offset)[0];

		if (g % HGJ_EXCHANGE_BLOCK == 0)
			CHECK_FOR_INTERRUPTS();
		partitions[g] = isnull ? 0 : (uint16) (((uint64) hgj_group_datums(row)[0] - least) >> shift);
		counts[partitions[g]]++;
	}
}

/* Step 3: the empty table gets a map of the partition's values, if its records fill it well enough. */
void
hgj_exchange_cover_partition(HgjAggState *state, uint32 partition)
{
	HgjAggExchange *exchange = &state->exchange;
	dsa_pointer pointer = pg_atomic_read_u64(&exchange->shared->images);
	uint64		width = UINT64CONST(1) << exchange->shift;
	uint64		records = 0;

	while (DsaPointerIsValid(pointer))
	{
		const HgjExchangeImage *image = dsa_get_address(exchange->area, pointer);

		records += image->runs[partition].ngroups;
		pointer = image->link.older;
	}
	if (records > 0 && width / HGJ_SPARSEST_MAP <= records)
		hgj_groups_cover(&exchange->merged, exchange->least + (int64) (partition * width), width);
}
