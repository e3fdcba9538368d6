/*-------------------------------------------------------------------------
 *
 * sides.c
 *	  In the GPU process: build sides that have been made on the device of kept columns,
 *	  and stay there for other queries, of all sessions.
 *
 * 1. A side comes with the record of all that it was made of (sides.h).  Who makes one
 *	  looks, before anything is done, for one that has begun with the same bytes, and takes
 *	  it if its record turns out to be the same to the end (serve_pipeline.c).
 * 2. Whoever reads one holds it.  Sides that nobody holds go when there are too many, or
 *	  when they take too much of the device or of this process's memory, those that were not
 *	  used for longest first; when an engine finds no memory (HgjKeptMemory.give_back);
 *	  and some minutes after their last use.
 * 3. Engines are called without the lock: what is to go leaves the list under it, and
 *	  then belongs to who has taken it out.
 *
 * Memory: records are malloc'd, the process's; what is on the device belongs to the side,
 * and goes with it.  Locks: one mutex, for the list and the holders' counts.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "server/clock.h"
#include "server/sides.h"

/* Step 2: so many, of these bytes of records, of this part of a device, for this long. */
#define MOST_SIDES		64
#define MOST_RECORDS	(64 * 1024 * 1024)
#define PART_OF_DEVICE	16
#define IDLE_SECONDS	300

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static HgjSide *sides = NULL;	/* the newest first */
static uint64_t last_id = 0;

/* ---- records -------------------------------------------------------------- */

HgjSideRecord *
hgj_record_new(void)
{
	return calloc(1, sizeof(HgjSideRecord));
}

void
hgj_record_free(HgjSideRecord *record)
{
	if (record != NULL)
		free(record->bytes);
	free(record);
}

/* See sides.h. */
char *
hgj_record_call(HgjSideRecord *record, uint64_t call, const uint64_t *arg, int nargs,
				size_t nbytes, size_t most)
{
	HgjSideCall head = {.call = call};
	size_t		more;
	char	   *at;

	if (nbytes > most || record->n > most)
		return NULL;
	nbytes = (nbytes + 7) / 8 * 8;
	more = sizeof(head) + nbytes;
	if (more > record->room - record->n)
	{
		size_t		room = 2 * record->room + more;
		char	   *bytes = record->n + more > most ? NULL : realloc(record->bytes, room);

		if (bytes == NULL)
			return NULL;
		record->bytes = bytes;
		record->room = room;
	}
	for (int i = 0; i < nargs; i++)
		head.arg[i] = arg[i];
	head.nbytes = nbytes;
	memcpy(record->bytes + record->n, &head, sizeof(head));
	at = record->bytes + record->n + sizeof(head);
	memset(at, 0, nbytes);
	record->n += more;
	return at;
}

/* Does the side's record begin with this one?  Its first `alike` bytes are known to. */
static bool
begins_with(const HgjSide *side, const HgjSideRecord *record, size_t alike)
{
	return side->record->n >= record->n &&
		memcmp(side->record->bytes + alike, record->bytes + alike, record->n - alike) == 0;
}

/* ---- sides that go -------------------------------------------------------- */

/* Step 3: it is in no list. */
static void
destroy(HgjSide *side)
{
	side->engine->pipeline->destroy(side->pipeline);
	side->engine->table_destroy(side->table);
	hgj_record_free(side->record);
	free(side);
}

static void
destroy_all(HgjSide *gone)
{
	while (gone != NULL)
	{
		HgjSide    *next = gone->next;

		destroy(gone);
		gone = next;
	}
}

/* From the list of sides to that of those that are to go. */
static void
take_out(HgjSide **place, HgjSide **gone)
{
	HgjSide    *side = *place;

	*place = side->next;
	side->next = *gone;
	*gone = side;
}

/* Step 2: those that nobody has used since then. */
static HgjSide *
take_idle(int64_t since)
{
	HgjSide    *gone = NULL;
	HgjSide   **place = &sides;

	while (*place != NULL)
		if ((*place)->holders == 0 && (*place)->used <= since)
			take_out(place, &gone);
		else
			place = &(*place)->next;
	return gone;
}

/* Step 2: are there too many of them? */
static bool
too_many(uint64_t most_bytes)
{
	uint64_t	bytes = 0;
	uint64_t	records = 0;
	int			n = 0;

	for (const HgjSide *side = sides; side != NULL; side = side->next)
	{
		n++;
		records += side->record->n;
		bytes += side->bytes;
	}
	return n > MOST_SIDES || records > MOST_RECORDS || bytes > most_bytes;
}

/* Step 2: one has come. */
static HgjSide *
make_room(uint64_t most_bytes)
{
	HgjSide    *gone = NULL;

	while (too_many(most_bytes))
	{
		HgjSide   **oldest = NULL;

		for (HgjSide **place = &sides; *place != NULL; place = &(*place)->next)
			if ((*place)->holders == 0 && (oldest == NULL || (*place)->used <= (*oldest)->used))
				oldest = place;
		if (oldest == NULL)
			break;				/* all are held: they go when they are not, and more come */
		take_out(oldest, &gone);
	}
	return gone;
}

/* See sides.h. */
bool
hgj_sides_give_back(void)
{
	HgjSide    *gone;
	bool		any;

	pthread_mutex_lock(&lock);
	gone = take_idle(INT64_MAX);
	pthread_mutex_unlock(&lock);
	any = gone != NULL;
	destroy_all(gone);
	return any;
}

/* See sides.h. */
void
hgj_sides_tidy(void)
{
	HgjSide    *gone;

	pthread_mutex_lock(&lock);
	gone = take_idle((int64_t) hgj_monotonic_seconds() - IDLE_SECONDS);
	pthread_mutex_unlock(&lock);
	destroy_all(gone);
}

/* See sides.h. */
uint64_t
hgj_sides_idle_bytes(void)
{
	uint64_t	bytes = 0;

	pthread_mutex_lock(&lock);
	for (const HgjSide *side = sides; side != NULL; side = side->next)
		if (side->holders == 0)
			bytes += side->bytes;
	pthread_mutex_unlock(&lock);
	return bytes;
}

/* ---- sides that are used -------------------------------------------------- */

void
hgj_side_hold(HgjSide *side)
{
	pthread_mutex_lock(&lock);
	side->holders++;
	pthread_mutex_unlock(&lock);
}

void
hgj_side_leave(HgjSide *side)
{
	pthread_mutex_lock(&lock);
	side->holders--;
	side->used = (int64_t) hgj_monotonic_seconds();
	pthread_mutex_unlock(&lock);
}

/* See sides.h. */
HgjSide *
hgj_side_find(HgjSideRecord *record, HgjSide *candidate)
{
	HgjSide    *found = NULL;

	if (candidate != NULL && begins_with(candidate, record, record->alike))
		found = candidate;
	else
	{
		pthread_mutex_lock(&lock);
		for (HgjSide *side = sides; side != NULL && found == NULL; side = side->next)
			if (begins_with(side, record, 0))
			{
				found = side;
				side->holders++;
			}
		pthread_mutex_unlock(&lock);
		if (candidate != NULL)
			hgj_side_leave(candidate);
	}
	record->alike = found != NULL ? record->n : 0;
	return found;
}

/* See sides.h. */
bool
hgj_side_is_whole(const HgjSide *side, const HgjSideRecord *record)
{
	return side->record->n == record->n;
}

/* See sides.h. */
HgjSide *
hgj_side_keep(const HgjSide *made, uint64_t bytes, HgjSideRecord *record)
{
	HgjDeviceInfo info = {0};
	HgjError	err;
	HgjSide    *side = malloc(sizeof(HgjSide));
	HgjSide    *gone = NULL;
	bool		there = false;

	if (side == NULL || made->engine->device_info(0, &info, &err) != HGJ_OK ||
		bytes > info.total_memory / PART_OF_DEVICE)
	{
		free(side);
		return NULL;
	}
	*side = *made;
	side->record = record;
	side->holders = 2;
	side->bytes = bytes;
	side->used = (int64_t) hgj_monotonic_seconds();
	pthread_mutex_lock(&lock);
	for (const HgjSide *other = sides; other != NULL && !there; other = other->next)
		there = other->record->n == record->n && begins_with(other, record, 0);
	if (!there)
	{
		side->id = ++last_id;
		side->next = sides;
		sides = side;
		gone = make_room(info.total_memory / PART_OF_DEVICE);
	}
	pthread_mutex_unlock(&lock);
	destroy_all(gone);
	if (!there)
		return side;
	free(side);
	return NULL;
}
