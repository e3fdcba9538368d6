/*-------------------------------------------------------------------------
 *
 * client.h
 *	  Asking the GPU process: what the parts of its engine share (client.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CLIENT_H
#define HGJ_CLIENT_H

#include "compat.h"

#include "server/worker.h"

/* Something of this session's in the GPU process: a table, probe or pipeline. */
typedef struct HgjRemote
{
	uint64		epoch;			/* which of the session's channels it is in */
	uint32		number;			/* in the GPU process */
	int			(*poll) (void *poll_arg);	/* NULL: the call is not to be cancelled */
	void	   *poll_arg;
	HgjStatus	failed;			/* what a call that nobody waited for has come to */
	HgjError	error;
} HgjRemote;

/* The scratch of the session's channel. */
extern char *hgj_channel_scratch(void);

/*
 * A table or pipeline more in the session's channel, which it takes if it has none: so many
 * zeroed bytes that begin with their HgjRemote.  NULL, with err filled: it cannot be had.
 * And one less, to be freed by the caller: with the last one the channel is given back.
 */
extern void *hgj_channel_begin_use(size_t bytes, int (*poll) (void *poll_arg),
								   void *poll_arg, HgjError *err);
extern void hgj_channel_end_use(const HgjRemote *remote);

/* How many there are; and leave the channel, if there is none. */
extern uint32 hgj_channel_uses(void);
extern void hgj_channel_close(void);

/*
 * The channel, to put the numbers (and into its scratch the arrays) of a call about
 * `remote`.  NULL, with err filled: it cannot be made, or not before what is on its
 * way has come back and the caller's poll wants no more (HGJ_CANCELLED).
 */
extern HgjChannel *hgj_channel_request(HgjRemote *remote, HgjError *err);

/* Has it gone with an earlier GPU process, or with a channel that was left? */
extern bool hgj_channel_is_lost(const HgjRemote *remote);

/* Make it, and wait for the answer. */
extern HgjStatus hgj_channel_call(HgjRemote *remote, HgjCall call, HgjError *err);

/*
 * Both for a call with these numbers.  *channel, unless channel is NULL: where what it
 * has brought is.
 */
extern HgjStatus hgj_channel_ask(HgjRemote *remote, HgjCall call, uint64 a, uint64 b,
								 HgjChannel **channel, HgjError *err);

/* For calls that bring a struct, and have no way to fail: zeroes then. */
extern void hgj_channel_fetch(HgjRemote remote, HgjCall call, void *to, size_t bytes);

/* Make it, and do not wait: the next call does. */
extern void hgj_channel_post(HgjRemote *remote, HgjCall call);

/*
 * The same, of a call that reads chunks which this process holds; reads_on: when it has been
 * answered, too, until the next one of the pipeline has, or hgj_channel_has_read().
 */
extern void hgj_channel_post_reader(HgjRemote *remote, HgjCall call, bool reads_on);

/* What calls about `remote` were to read has been read. */
extern void hgj_channel_has_read(const HgjRemote *remote);

/*
 * Wait for what was posted about `remote`, and say what it came to.  HGJ_UNSUPPORTED is
 * said once, and all else by later calls, too; HGJ_CANCELLED: it is on its way still, but the
 * caller's poll wants no more.
 */
extern HgjStatus hgj_channel_settle(HgjRemote *remote, HgjError *err);

/* The end of a table, probe or pipeline; there may be nobody to hear it. */
extern void hgj_channel_destroy(HgjRemote *remote, bool is_used);

/*
 * Memory of the channel for staging buffers, by its place behind the scratch's begin;
 * 0: there is none.  The largest piece, in bytes; and giving it back.
 */
extern size_t hgj_channel_alloc(size_t bytes);
extern size_t hgj_channel_largest(void);
extern void hgj_channel_free(const HgjRemote *remote, size_t at);

/* client_table.c */
extern HgjRemote *hgj_remote_table(HgjTable *table);
extern void hgj_remote_is_used(HgjTable *table);
extern void hgj_server_table_methods(HgjEngine *engine);

/* client_pipeline.c */
extern const HgjPipelineMethods *hgj_server_pipelines(const HgjServer *server);

#endif							/* HGJ_CLIENT_H */
