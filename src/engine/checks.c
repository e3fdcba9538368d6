/*-------------------------------------------------------------------------
 *
 * checks.c
 *	  What every engine refuses, and how it says so.
 *
 * Owns nothing, locks nothing.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "checks.h"

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
