/*-------------------------------------------------------------------------
 *
 * engine_names.c
 *	  How settings, EXPLAIN and messages spell the engine's enums.
 *
 * 1. One switch per enum, without a default, so that the compiler complains
 *	  about a value that was added and not named.
 * 2. A value that is none of the enum's is "unknown".
 *
 * Every string is a constant: nobody frees it.  Locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "engine.h"

/* The spelling of a build algorithm; never NULL. */
const char *
hgj_build_name(HgjBuild build)
{
	switch (build)
	{
		case HGJ_BUILD_AUTO:
			return "auto";
		case HGJ_BUILD_V1:
			return "v1";
		case HGJ_BUILD_V2:
			return "v2";
		case HGJ_BUILD_SORT:
			return "sort";
		case HGJ_BUILD_DIRECT:
			return "direct";
	}
	return "unknown";
}

/* The spelling of a probe algorithm; never NULL. */
const char *
hgj_probe_name(HgjProbeAlgo probe)
{
	switch (probe)
	{
		case HGJ_PROBE_AUTO:
			return "auto";
		case HGJ_PROBE_STANDARD:
			return "standard";
		case HGJ_PROBE_BINNED:
			return "binned";
	}
	return "unknown";
}

/* The spelling of a storage of the edge lists; never NULL. */
const char *
hgj_segments_name(HgjSegments segments)
{
	switch (segments)
	{
		case HGJ_SEGMENTS_AUTO:
			return "auto";
		case HGJ_SEGMENTS_CSR:
			return "csr";
		case HGJ_SEGMENTS_ELLPACK:
			return "ellpack";
		case HGJ_SEGMENTS_BITS:
			return "bits";
		case HGJ_SEGMENTS_QUOTIENTS:
			return "quotients";
		case HGJ_SEGMENTS_SLICED:
			return "sliced";
	}
	return "unknown";
}

/* The spelling of a use of filters; never NULL. */
const char *
hgj_filter_name(HgjFilter filter)
{
	switch (filter)
	{
		case HGJ_FILTER_AUTO:
			return "auto";
		case HGJ_FILTER_ON:
			return "on";
		case HGJ_FILTER_OFF:
			return "off";
	}
	return "unknown";
}

/* What a status means, in a few words; never NULL. */
const char *
hgj_status_name(HgjStatus status)
{
	switch (status)
	{
		case HGJ_OK:
			return "ok";
		case HGJ_CANCELLED:
			return "cancelled";
		case HGJ_OUT_OF_MEMORY:
			return "out of memory";
		case HGJ_LIMIT:
			return "limit exceeded";
		case HGJ_UNSUPPORTED:
			return "unsupported";
		case HGJ_INVALID:
			return "invalid call";
		case HGJ_NO_DEVICE:
			return "no device";
		case HGJ_DEVICE_LOST:
			return "device lost";
		case HGJ_ROW_FAILED:
			return "row failed";
	}
	return "unknown";
}

/* A sentence, without a full stop, for one HgjNote bit; never NULL. */
const char *
hgj_note_text(HgjNote note)
{
	switch (note)
	{
		case HGJ_NOTE_DIRECT_NOT_DENSE:
			return "the key range is too wide for a direct table";
		case HGJ_NOTE_DIRECT_MULTI_KEY:
			return "a direct table takes a single key word";
		case HGJ_NOTE_ELLPACK_TOO_WIDE:
			return "Ellpack padding would take too much memory, used CSR";
		case HGJ_NOTE_SLICED_TOO_WIDE:
			return "Sliced Ellpack padding would take too much memory, used CSR";
		case HGJ_NOTE_SORT_AS_V2:
			return "this engine builds by binning (v2) where a sort is asked for";
		case HGJ_NOTE_BINNED_UNFIT:
			return "the table is too small or not hashed, probed without binning";
		case HGJ_NOTE_FILTER_MEMORY:
			return "there was no memory for a filter";
		case HGJ_NOTE_FILTER_DYNAMIC:
			return "a table that changes has no filter";
		case HGJ_NOTE_FILTER_UNKNOWN:
			return "this engine has no filter";
	}
	return "unknown";
}
