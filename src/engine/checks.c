/*-------------------------------------------------------------------------
 *
 * checks.c
 *	  What every engine refuses, and how it says so.
 *
 * What lies on a device is not looked at here: the engine that knows how to
 * does that.
 *
 * Owns nothing, locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "checks.h"

#define MIN_LOAD			(1.0 / 64)
#define MAX_LOAD			1024.0

/* Fill *err, return its status. */
HgjStatus
hgj_fail(HgjError *err, HgjStatus status, const char *message)
{
	if (err != NULL)
	{
		size_t		n = strlen(message);

		if (n >= sizeof(err->message))
			n = sizeof(err->message) - 1;
		err->status = status;
		memcpy(err->message, message, n);
		err->message[n] = '\0';
	}
	return status;
}

/* Ask the caller whether to go on. */
HgjStatus
hgj_poll(const HgjTableSpec *spec, HgjError *err)
{
	if (spec->poll != NULL && spec->poll(spec->poll_arg) != 0)
		return hgj_fail(err, HGJ_CANCELLED, "cancelled");
	return HGJ_OK;
}

/* Whether a spec is one of a table; its device is the engine's to look at. */
HgjStatus
hgj_check_table(const HgjTableSpec *spec, HgjError *err)
{
	if (spec->nwords < 1 || spec->nwords > HGJ_MAX_KEY_WORDS)
		return hgj_fail(err, HGJ_INVALID, "a key has 1 to 64 words");
	if ((unsigned int) spec->build > HGJ_BUILD_DIRECT)
		return hgj_fail(err, HGJ_INVALID, "no such build algorithm");
	if ((unsigned int) spec->probe > HGJ_PROBE_BINNED)
		return hgj_fail(err, HGJ_INVALID, "no such probe algorithm");
	if ((unsigned int) spec->segments > HGJ_SEGMENTS_SLICED)
		return hgj_fail(err, HGJ_INVALID, "no such segments");
	if ((unsigned int) spec->filter > HGJ_FILTER_OFF)
		return hgj_fail(err, HGJ_INVALID, "no such use of filters");
	/* written so that a NaN fails it */
	if (!(spec->load == 0 ||
		  (spec->load >= MIN_LOAD && spec->load <= MAX_LOAD)))
		return hgj_fail(err, HGJ_INVALID,
						"the load must be between 1/64 and 1024");
	if (spec->slack > 1024)
		return hgj_fail(err, HGJ_INVALID,
						"the slack must be at most 1024 slots");
	return HGJ_OK;
}

/* Whether a batch is one that a table of so many key words can take. */
HgjStatus
hgj_check_keys(const HgjKeys *keys, uint32_t nwords, HgjError *err)
{
	uint32_t	w;

	if (keys == NULL)
		return hgj_fail(err, HGJ_INVALID, "keys are missing");
	if (keys->nrows == 0)
		return HGJ_OK;
	if (keys->words == NULL)
		return hgj_fail(err, HGJ_INVALID, "key words are missing");
	for (w = 0; w < nwords; w++)
		if (keys->words[w] == NULL)
			return hgj_fail(err, HGJ_INVALID, "key words are missing");
	if (keys->sel != NULL && keys->nsel > 0 &&
		(keys->nsel > keys->nrows ||
		 (keys->location == HGJ_ON_HOST &&
		  keys->sel[keys->nsel - 1] >= keys->nrows)))
		return hgj_fail(err, HGJ_INVALID,
						"the selection is not one of the batch's rows");
	return HGJ_OK;
}

/*
 * The largest row id that the selected rows of a batch in the host's memory
 * get (0 if none): HGJ_LIMIT where ids given by first_row pass HGJ_MAX_ROWS,
 * HGJ_INVALID where row_ids holds one that does.
 */
HgjStatus
hgj_check_rows(const HgjKeys *keys, uint32_t first_row,
			   const uint32_t *row_ids, uint64_t *max_row, HgjError *err)
{
	uint32_t	n = hgj_key_count(keys);
	uint32_t	max = 0;
	uint32_t	i;

	*max_row = 0;
	if (n == 0)
		return HGJ_OK;
	if (row_ids == NULL)
	{
		*max_row = (uint64_t) first_row +
			(keys->sel != NULL ? keys->sel[n - 1] : n - 1);
		if (*max_row >= HGJ_MAX_ROWS)
			return hgj_fail(err, HGJ_LIMIT,
							"a table holds at most 4294967280 rows");
		return HGJ_OK;
	}
	for (i = 0; i < n; i++)
	{
		uint32_t	row = row_ids[keys->sel != NULL ? keys->sel[i] : i];

		max = row > max ? row : max;
	}
	if (max >= HGJ_MAX_ROWS)
		return hgj_fail(err, HGJ_INVALID, "a row id is out of range");
	*max_row = max;
	return HGJ_OK;
}

/* Whether a graph of that many rows can be built, of ids up to max_row. */
HgjStatus
hgj_check_build(uint64_t nrows, uint64_t max_row, uint32_t total_rows,
				HgjError *err)
{
	if (total_rows > HGJ_MAX_ROWS)
		return hgj_fail(err, HGJ_LIMIT,
						"a table holds at most 4294967280 rows");
	if (nrows > 0 && max_row >= total_rows)
		return hgj_fail(err, HGJ_INVALID,
						"a row id is not below the number of rows");
	return HGJ_OK;
}
