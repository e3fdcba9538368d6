/*-------------------------------------------------------------------------
 *
 * client.h
 *	  Asking the GPU process: what the parts of its engine share (client.c, letter.c).
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
	bool		refused;		/* that was the last one: what came before it is good */
	HgjError	error;
} HgjRemote;

/* Takes the answer to a call about `owner` that was not waited for. */
typedef void (*HgjAnswered) (HgjRemote *owner, const HgjLetterCall *answer);

/* Where the arrays of an answer are, until the next call is written. */
extern char *hgj_channel_scratch(void);

/*
 * A table or pipeline more in the session's channel, which it takes if it has none: so many
 * zeroed bytes that begin with their HgjRemote, which has a number.  NULL, with err filled: it
 * cannot be had.  And one less, to be freed by the caller: with the last one the channel is given
 * back.
 */
extern void *hgj_channel_begin_use(size_t bytes, int (*poll) (void *poll_arg),
								   void *poll_arg, HgjError *err);
extern void hgj_channel_end_use(const HgjRemote *remote);

/*
 * Give an object that is neither a table nor a pipeline a number, and give the number back.  False,
 * with err filled: no number is free.
 */
extern bool hgj_channel_number(HgjRemote *remote, HgjError *err);
extern void hgj_channel_free_number(const HgjRemote *remote);

/* How many there are; and leave the channel, if there is none. */
extern uint32 hgj_channel_uses(void);
extern void hgj_channel_close(void);

/* Has it gone with an earlier GPU process, or with a channel that was left? */
extern bool hgj_channel_is_lost(const HgjRemote *remote);

/* The end of a table, probe or pipeline; there may be nobody to hear it. */
extern void hgj_channel_destroy(HgjRemote *remote, bool is_used);

/*
 * Memory of the channel for staging buffers, by its place behind the channel's begin;
 * 0: there is none.  The largest piece, in bytes; and giving it back.
 */
extern size_t hgj_channel_alloc(size_t bytes);
extern size_t hgj_channel_largest(void);
extern void hgj_channel_free(const HgjRemote *remote, size_t at);

/*
 * One more call in the session's letter, about `remote`: its numbers are zeroes, its arrays, of
 * so many bytes, the caller's to write (hgj_call_bytes()).  It is made with the next one that is
 * waited for, and a failure is what the next call about `remote` comes to.  NULL, with err filled:
 * it cannot be written, or not before what is on its way has come back and the caller's poll wants
 * no more (HGJ_CANCELLED).
 */
extern HgjLetterCall *hgj_letter_call(HgjRemote *remote, HgjCall number, size_t nbytes,
									  HgjError *err);

/* Have the answer to the call that was written last taken by this function. */
extern void hgj_letter_tell(HgjAnswered answered);

/*
 * Send the letter, and wait for its last call, which is about `remote`: what that has come to.  Its
 * numbers can be read until the next call is written.
 */
extern HgjStatus hgj_letter_send(HgjRemote *remote, HgjError *err);

/* Write, send and wait for a call with these numbers.  *answer, unless answer is NULL: the call. */
extern HgjStatus hgj_letter_ask(HgjRemote *remote, HgjCall number, uint64 a, uint64 b,
								const HgjLetterCall **answer, HgjError *err);

/*
 * For calls that bring a struct, or a number, and have no way to fail: the struct is zeroes then,
 * and the number is `otherwise`.
 */
extern void hgj_letter_fetch(HgjRemote remote, HgjCall number, void *to, size_t bytes);
extern uint64 hgj_letter_fetch_number(HgjRemote remote, HgjCall number, uint64 arg,
									  uint64 otherwise);

/* Send what has been written, and wait for it: what has become of `remote`. */
extern HgjStatus hgj_letter_flush(HgjRemote *remote, HgjError *err);

/* Send the letter, and do not wait: who writes the next one does. */
extern void hgj_letter_post(void);

/*
 * The same where the last call, about `remote`, reads chunks which this process holds; reads_on:
 * when it has been answered, too, until the next one of the pipeline has, or
 * hgj_letter_has_read().  Before that call is written it is to be said that it will be.
 */
extern void hgj_letter_is_to_read(const HgjRemote *remote);
extern void hgj_letter_post_reader(const HgjRemote *remote, bool reads_on);

/* What calls about `remote` were to read has been read. */
extern void hgj_letter_has_read(const HgjRemote *remote);

/*
 * Wait for what was posted, and say what has become of `remote`.  HGJ_UNSUPPORTED is said once,
 * and all else by later calls, too; HGJ_CANCELLED: it is on its way still, but the caller's poll
 * wants no more.
 */
extern HgjStatus hgj_letter_settle(HgjRemote *remote, HgjError *err);

/* Write that the object is to be destroyed, of which nothing else is written (client.c). */
extern void hgj_letter_destroy(HgjRemote *remote);

/* client_table.c */
extern HgjRemote *hgj_remote_table(HgjTable *table);
extern void hgj_remote_is_used(HgjTable *table);
extern void hgj_remote_is_filled(HgjTable *table);
extern void hgj_server_table_methods(HgjEngine *engine);

/* client_pipeline.c */
extern const HgjPipelineMethods *hgj_server_pipelines(const HgjServer *server);

#endif							/* HGJ_CLIENT_H */
