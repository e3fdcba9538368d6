/*-------------------------------------------------------------------------
 *
 * channels.h
 *	  The memory of the channels (channels.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CHANNELS_H
#define HGJ_CHANNELS_H

#include "compat.h"

#include "server/channel.h"

/* From _PG_init, while the postmaster loads the library: it makes them, for hgj_server(). */
extern void hgj_channels_share(bool needed);

#endif							/* HGJ_CHANNELS_H */
