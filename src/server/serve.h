/*-------------------------------------------------------------------------
 *
 * serve.h
 *	  What the calls of a channel share that the GPU process makes (serve.c,
 *	  serve_pipeline.c).
 *
 * None of PostgreSQL's headers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_SERVE_H
#define HGJ_SERVE_H

#include "engine/checks.h"
#include "server/channel.h"
#include "server/sides.h"

typedef enum HgjServedKind
{
	HGJ_SERVED_TABLE,
	HGJ_SERVED_PROBE,
	HGJ_SERVED_PIPELINE
} HgjServedKind;

/* What a session has created; `it` is the engine's. */
typedef struct HgjServedObject
{
	HgjServedKind kind;
	void	   *it;				/* NULL: it is only recorded yet, or could not be created */
	HgjStatus	failed;			/* what a call that nobody waited for has come to: all later ones do */
	HgjError	error;
	uint32_t	nwords;			/* key words of a table, or of a probe's */

	/* of a table, or of a pipeline that fills one (serve_pipeline.c) */
	HgjSide    *side;			/* whose `it` that is, */
	bool		adopted;		/* and was before */
	HgjSideRecord *record;		/* what has been said of it, or NULL */
	uint32_t	filler;			/* of a table: number of the pipeline */

	/* a probe's batch */
	char	   *batch;
	size_t		batch_bytes;
	const uint64_t *words[HGJ_MAX_KEY_WORDS];

	/* a pipeline */
	HgjPipelineSpec spec;
	HgjPipelineTerms terms;
	HgjCallTables numbers;
	bool		deferred;		/* there is only the record yet, and */
	HgjSide    *candidate;		/* one that has begun alike; or else */
	bool		catching_up;	/* it is being done, */
	size_t		repeated;		/* so many bytes of it have been, and */
	bool		last_at_hand;	/* its last call is the one that asks for that */
	bool		broken;			/* that has failed */
	bool		finished;
	uint64_t	nrows;			/* then, of the table */
	uint32_t	stage_rows;		/* of a buffer of the engine's, which may be at hand: */
	bool		staged;
	HgjPipeStage stage;
	HgjPipeRows rows;			/* fetched, of which so many have gone: */
	uint32_t	gone;
	bool		fetched;
} HgjServedObject;

struct HgjServed
{
	HgjServer  *server;
	HgjChannel *channel;
	const HgjEngine *engine;
	HgjLetterCall *call;		/* call at hand, */
	char	   *bytes;			/* its arrays, */
	size_t		nbytes;			/* and their length */
	char	   *scratch;		/* where arrays of the answer go */
	HgjServedObject **objects;
	uint32_t	nobjects;
	uint64_t	served;			/* the last request's number */
	bool		known;			/* the call was about something that is there */
};

/* serve.c: the object of that number, or NULL if it is not there, or of another kind. */
extern HgjServedObject *hgj_served_find(const HgjServed *served, uint32_t number,
										HgjServedKind kind);

/*
 * The same where something is to be created on it: with an object that is not there, or has failed,
 * err is filled.
 */
extern HgjServedObject *hgj_served_base(const HgjServed *served, uint32_t number,
										HgjServedKind kind, HgjError *err);

/*
 * The object of the number that the call at hand creates, whose `it` the caller makes; or NULL,
 * with err filled.
 */
extern HgjServedObject *hgj_served_new(HgjServed *served, HgjServedKind kind, HgjError *err);

/* The poll of what is made for the channel. */
extern int	hgj_served_is_cancelled(void *channel);

/* serve_pipeline.c */
extern HgjStatus hgj_serve_pipe_create(HgjServed *served, HgjError *err);
extern HgjStatus hgj_serve_pipeline(HgjServed *served, HgjServedObject *p, HgjError *err);

/* The table has been filled and built: it may stay for other queries. */
extern void hgj_serve_keep_side(HgjServed *served, HgjServedObject *table);

#endif							/* HGJ_SERVE_H */
