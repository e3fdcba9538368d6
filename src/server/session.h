/*-------------------------------------------------------------------------
 *
 * session.h
 *	  What a session has of the GPU process's channels: private to src/server, for client.c, which
 *	  takes and leaves one, and letter.c, which writes through it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_SESSION_H
#define HGJ_SESSION_H

#include "compat.h"

#include "server/client.h"

typedef struct HgjClientSession
{
	HgjChannel *channel;		/* channel that it has, or NULL */
	uint64		generation;		/* generation of the GPU process in which it took that */
	uint64		epoch;			/* number of channels that it has had */
} HgjClientSession;

extern HgjClientSession hgj_session;

/* client.c: nobody waits for anything in the channel any more. */
extern void hgj_channel_leave(void);

/* client.c: the same, with a call that runs on: there is no other channel before its end. */
extern HgjStatus hgj_channel_give_up(const char *why, HgjError *err);

/* letter.c: nothing has been written, is on its way or is read. */
extern void hgj_letter_forget(void);

/* letter.c: whether no call has been written or is on its way. */
extern bool hgj_letter_is_empty(void);

/* letter.c: nobody is to be told of the object's calls; those that were not sent are not made. */
extern void hgj_letter_disown(const HgjRemote *remote);

/* letter.c: wait until no memory of this process is read; cancel: give up what is on its way. */
extern void hgj_letter_end_reading(bool cancel);

#endif							/* HGJ_SESSION_H */
