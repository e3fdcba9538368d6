/*-------------------------------------------------------------------------
 *
 * account.h
 *	  What the parts of a thing hold of memory, in one number.
 *
 * Every part that grows or shrinks says so to an account, at the time, so that nobody
 * has to ask them one by one.  A part that somebody wants to know the bytes of has an
 * account of its own, which counts in that of the whole.  An account must not go
 * before its parts have freed what they hold.  No locks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_ACCOUNT_H
#define HGJ_ACCOUNT_H

#include "compat.h"

typedef struct HgjAccount
{
	Size		bytes;
	struct HgjAccount *whole;	/* where they count, too, or NULL */
} HgjAccount;

/* account: NULL, where what counts has no whole. */
static inline void
hgj_account_add(HgjAccount *account, Size bytes)
{
	for (; account; account = account->whole)
		account->bytes += bytes;
}

static inline void
hgj_account_sub(HgjAccount *account, Size bytes)
{
	for (; account; account = account->whole)
	{
		Assert(account->bytes >= bytes);
		account->bytes -= bytes;
	}
}

/* The part holds so many now. */
static inline void
hgj_account_set(HgjAccount *account, Size bytes)
{
	hgj_account_sub(account, account->bytes);
	hgj_account_add(account, bytes);
}

#endif							/* HGJ_ACCOUNT_H */
