/*-------------------------------------------------------------------------
 *
 * memory.c
 *	  What a join holds of the host's memory and of a device's.
 *
 * The engine says what the table has; all else counts in the build side's account:
 * the row store, the inner batch, dictionaries (encode.c), partitions and match bits.
 *
 * No memory of its own, no locks.
 *
 *-------------------------------------------------------------------------
 */
#include "compat.h"

#include "base/guc.h"
#include "join/join_state.h"

/* Of device memory, what a table leaves to its probes. */
#define HGJ_PROBE_SHARE			4

/*
 * For a bit per key of the build side, which is tested for every row of the table at the bottom
 * of a chain: twice what the engine makes of those at most.  Where many outer rows are expected,
 * it may take as much as a server's last cache has to spare: to clear and to map it takes a
 * nanosecond for four bytes, and an outer row saves more than that.  That is a smaller part of
 * the memory, as builds do without it whether a filter is made or not.
 */
#define HGJ_ROOM_SHARE			16
#define HGJ_LEAST_ROOM			((Size) 512 * 1024)
#define HGJ_LARGE_ROOM_SHARE	64
#define HGJ_MOST_ROOM			((Size) 16 * 1024 * 1024)
#define HGJ_ROOM_PER_ROW		8

/* Of device memory, what a table may take: a part is left to the probes. */
uint64
hgj_table_share(const HgjJoinState *state)
{
	return state->use.device_limit - state->use.device_limit / HGJ_PROBE_SHARE;
}

/*
 * Of the host's memory, what is set aside for a filter of the table, besides what its
 * build gives back.
 */
Size
hgj_filter_room(const HgjJoinState *state)
{
	Size		limit = get_hash_memory_limit();
	Size		least = Min(limit / HGJ_ROOM_SHARE, HGJ_LEAST_ROOM);
	double		wanted = state->js.outer_ps->plan->plan_rows * HGJ_ROOM_PER_ROW;

	if (hgj_filter == HGJ_FILTER_OFF)
		return 0;
	/* several words have no bit */
	if (state->js.inner.nwords != 1)
		return least;
	return Max(least, Min(limit / HGJ_LARGE_ROOM_SHARE,
						  (Size) Min(wanted, (double) HGJ_MOST_ROOM)));
}

/* The bytes of the host's memory held now; *memory: what the table has, if there is one. */
Size
hgj_memory_now(const HgjJoinState *state, HgjMemory *memory)
{
	memset(memory, 0, sizeof(*memory));
	if (state->js.build->table)
		state->js.build->engine->memory(state->js.build->table, memory);
	return (Size) (hgj_on_device(state) ? memory->host : memory->current) +
		state->js.build->account.bytes + state->probing.outer_batch->held.bytes;
}

/* The same, if it is the most so far. */
void
hgj_note_peak_memory(HgjJoinState *state)
{
	HgjMemory	memory;
	Size		bytes = hgj_memory_now(state, &memory);

	if (hgj_on_device(state))
		state->stats.device_peak = Max(state->stats.device_peak, memory.peak);
	state->stats.peak_bytes = Max(state->stats.peak_bytes, bytes);
}
