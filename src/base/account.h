/*-------------------------------------------------------------------------
 *
 * account.h
 *	  What the parts of a thing hold of memory, in one number.
 *
 * Every part that grows or shrinks says so to the account that it was given, at
 * the time, so that nobody has to ask them one by one.  A part without an account
 * counts for nobody.  It must not go before its parts have freed what they hold.  No
 * locks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_ACCOUNT_H
#define HGJ_ACCOUNT_H

#include "compat.h"

typedef struct HgjAccount
{
	Size		bytes;
} HgjAccount;

static inline void
hgj_account_add(HgjAccount *account, Size bytes)
{
	if (account)
		account->bytes += bytes;
}

static inline void
hgj_account_sub(HgjAccount *account, Size bytes)
{
	if (account == NULL)
		return;
	Assert(account->bytes >= bytes);
	account->bytes -= bytes;
}

#endif							/* HGJ_ACCOUNT_H */
