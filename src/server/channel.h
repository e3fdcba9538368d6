/*-------------------------------------------------------------------------
 *
 * channel.h
 *	  The shared memory through which sessions and the GPU process speak: what both
 *	  sides, and the worker between them, have to agree on.
 *
 * A CHANNEL belongs to one session from hgj_channel_begin_use() until the last of its
 * tables and pipelines has gone.  The session writes a letter, posts `asked`, and waits for
 * `answered`; the GPU process has a thread per channel that waits for `asked` for ever.
 * Letters are numbered, so that neither side takes another's for its own.
 *
 * A LETTER is calls of the engine ABI, one behind the other, each with its numbers and arrays,
 * because a message takes as long as hundreds of calls: most calls wait for one of which the
 * session needs the answer.  The GPU process makes them in their order.  An object of which a
 * call has failed that nobody waited for answers all later ones with that failure, and so does
 * what is created on it.  Where the session wants no more, the call at hand and those behind it
 * have not been made.
 *
 * OBJECTS (tables, probes, pipelines) are numbered by the session, so that a letter can create one
 * and use it.
 *
 * There are more channels than processes that could want one, so that an idle session keeps
 * nobody from the GPU, whatever it holds there.  The first ones, which are taken first,
 * have room for many rows, in memory from which the device reads itself; the others have
 * less, and the GPU process copies it.  A channel's thread is started when somebody takes it.
 *
 * A GENERATION is one life of the GPU process.  The worker counts it up before it
 * starts one, and when one has ended.  Nothing that was made in an earlier one is there
 * any more, and whoever waits notices by it that no answer will come.
 *
 * Included on both sides of the fork, and by code that must not call PostgreSQL:
 * this header includes none of PostgreSQL's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_CHANNEL_H
#define HGJ_CHANNEL_H

#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "engine/engine.h"

/* Channels that share hashgraph_join.gpu_staging_memory: the first ones. */
#define HGJ_FRONT_CHANNELS		16
/*
 * Of a channel's memory, first the arrays of an answer, in which one call's have room; then a
 * letter, which has room for the arrays of a call and for some calls more; the rest is staging
 * buffers.
 */
#define HGJ_SCRATCH_BYTES		(1024 * 1024)
#define HGJ_LETTER_AT			HGJ_SCRATCH_BYTES
#define HGJ_LETTER_BYTES		(HGJ_SCRATCH_BYTES + 64 * 1024)
#define HGJ_STAGING_AT			(HGJ_LETTER_AT + HGJ_LETTER_BYTES)
/* All of the memory of a channel behind the first ones. */
#define HGJ_BACK_BYTES			(HGJ_STAGING_AT + HGJ_SCRATCH_BYTES)
#define HGJ_PAGE_BYTES			4096
/* Of HGJ_CALL_KEPT_BYTES. */
#define HGJ_CALL_IDS			(HGJ_SCRATCH_BYTES / sizeof(uint64_t))
/* Numbers of a session's objects are below. */
#define HGJ_MOST_OBJECTS		65536
/* Devices that are listed. */
#define HGJ_SERVER_DEVICES		16
#define HGJ_CALL_NUMBERS		8
#define HGJ_ANSWER_MEMORY		4

/* Arrays of a call stand behind its head; "answer" says what the scratch has then. */
typedef enum HgjCall
{
	HGJ_CALL_TABLE_CREATE,		/* spec.  The result has the table's HgjMemory from
								 * HGJ_ANSWER_MEMORY on, as have those of APPEND, BUILD and
								 * PROBE_CREATE */
	HGJ_CALL_DESTROY,			/* of what is a table, probe or pipeline */
	HGJ_CALL_APPEND,			/* rows, first id, has ids; ids, words */
	HGJ_CALL_BUILD,				/* total rows; answer: HgjTableInfo */
	HGJ_CALL_INFO,				/* answer: HgjTableInfo */
	HGJ_CALL_MEMORY,			/* answer: HgjMemory */
	HGJ_CALL_BATCH_ROWS,
	HGJ_CALL_PROBE_CREATE,		/* table */
	HGJ_CALL_UPLOAD,			/* offset, bytes, in all: a piece of a probe's batch */
	HGJ_CALL_PROBE_BEGIN,		/* rows, selected or UINT64_MAX, mode, flags */
	HGJ_CALL_PROBE_NEXT,		/* capacity; answer: probe rows, build rows */
	HGJ_CALL_MARK,				/* rows; ids */
	HGJ_CALL_IS_MARKED,			/* row */
	HGJ_CALL_UNMATCHED,			/* cursor, capacity; answer: ids */
	HGJ_CALL_CLEAR_MARKS,
	HGJ_CALL_PIPE_CREATE,		/* HgjCallPipeline */
	HGJ_CALL_PIPE_PAYLOAD,		/* join, column, first, rows, has validity; values, bits */
	HGJ_CALL_PIPE_START,		/* expected, has ranges; ranges */
	HGJ_CALL_PIPE_PUSH,			/* buffer, its capacity, rows, nulls */
	HGJ_CALL_PIPE_KEPT,			/* pieces, words; see hgj_kept_inputs_at() */
	HGJ_CALL_PIPE_FETCH,		/* answer: rows of the push, of each join */
	HGJ_CALL_PIPE_FINISH,		/* result: groups or rows, and of the former how many have come
								 * already; answer: HgjPipelineInfo, groups */
	HGJ_CALL_PIPE_GROUPS,		/* first, rows; answer: words */
	HGJ_CALL_PIPE_INFO,			/* answer: HgjPipelineInfo */
	HGJ_CALL_PIPE_READ,			/* is answered when it reads no memory of the session */
	HGJ_CALL_KEPT_BYTES			/* of nothing of the session's; how many; ids; answer: bytes */
} HgjCall;

/* A call in a letter. */
typedef struct HgjLetterCall
{
	uint32_t	call;			/* HgjCall */
	uint32_t	object;			/* number of what the call is about, or creates */
	uint64_t	nbytes;			/* length of its arrays, which follow; a multiple of 8 */
	uint64_t	arg[HGJ_CALL_NUMBERS];	/* numbers that it is called with */
	uint64_t	result[HGJ_CALL_NUMBERS];	/* numbers that it has brought */
	HgjStatus	status;			/* what has become of it */
	HgjError	error;			/* why, where it has failed */
} HgjLetterCall;

/* What a pipeline stands on, by numbers; HGJ_NO_OBJECT: there is none. */
#define HGJ_NO_OBJECT			UINT32_MAX

typedef struct HgjCallTables
{
	uint32_t	tables[HGJ_PIPE_JOINS];
	uint32_t	filled[HGJ_PIPE_JOINS];
	uint32_t	fills;
} HgjCallTables;

/* What a pipeline is created of. */
typedef struct HgjCallPipeline
{
	HgjPipelineSpec spec;		/* plan */
	HgjPipelineTerms terms;		/* terms of the run */
	HgjCallTables numbers;		/* what it stands on */
} HgjCallPipeline;

typedef enum HgjChannelState
{
	HGJ_CHANNEL_FREE,
	HGJ_CHANNEL_TAKEN,
	HGJ_CHANNEL_LEFT			/* by a session that waits no longer: the thread, or the
								 * next GPU process, frees it */
} HgjChannelState;

typedef struct HgjChannel
{
	sem_t		asked;
	sem_t		answered;
	uint32_t	state;			/* HgjChannelState; changed atomically */
	uint64_t	left_at;		/* hgj_monotonic_seconds() when it became LEFT */
	uint64_t	takers;			/* sessions that have taken it, so far */
	uint32_t	cancel;			/* the letter at hand shall be given up */
	uint64_t	answers;		/* of the device, to calls made for it; atomic */
	uint64_t	thread_of;		/* generation in which it has a thread; atomic */
	uint64_t	no_thread_of;	/* ... in which none could be started; atomic */

	/* the session's to write until `asked` is posted */
	uint64_t	number;			/* number of the letter */
	uint64_t	generation;		/* generation that it is for */
	uint32_t	ncalls;			/* number of its calls */

	/* the answer, until `answered` is */
	uint64_t	answer_to;		/* number of the letter that it is to */
	uint32_t	made;			/* number of calls that have been made, or have failed; the one
								 * behind them was cancelled */
} HgjChannel;

/*
 * What the worker asks for, when nobody else has the GPU process at work: copies of arrays
 * that it holds until the answer, or until the process has ended, or to have those dropped
 * of what has gone.
 */
#define HGJ_PREWARM_ARRAYS		128
#define HGJ_PREWARM_IDS			65536

typedef struct HgjPrewarm
{
	sem_t		asked;
	sem_t		answered;
	bool		sweeps;			/* HgjPipelineMethods.sweep, or prewarm: */
	uint32_t	n;
	HgjKeptArray arrays[HGJ_PREWARM_ARRAYS];
	uint64_t	first;
	uint64_t	last;
	uint64_t	live[HGJ_PREWARM_IDS];

	HgjStatus	status;			/* the answer */
	HgjError	error;
	uint32_t	done;
	uint64_t	gone;
} HgjPrewarm;

typedef enum HgjServerState
{
	HGJ_SERVER_NO_WORKER,		/* it has not begun, and perhaps never will: sessions open
								 * the GPU themselves */
	HGJ_SERVER_STARTING,
	HGJ_SERVER_READY,
	HGJ_SERVER_UNUSABLE,		/* `why`: no library, no device */
	HGJ_SERVER_DOWN				/* it has ended, and will be started again */
} HgjServerState;

typedef struct HgjServer
{
	uint64_t	generation;		/* read and written atomically, like the next */
	uint32_t	state;			/* HgjServerState */
	pid_t		process;		/* the GPU process, for who looks */
	uint64_t	bytes;			/* of all of this memory */
	uint32_t	nchannels;
	uint64_t	front_bytes;	/* memory of each of the first channels: scratch, staging
								 * buffers */
	uint32_t	timeout_ms;		/* hashgraph_join.gpu_server_timeout; atomic */
	uint64_t	answers;		/* of the device, to anybody; atomic */
	uint64_t	unsafe;			/* the generation that is to be ended, because a session can
								 * neither wait for it nor let go of what it reads; atomic */

	/* written by the GPU process before it is ready, the devices' later, too */
	char		why[256];		/* also before it ends by itself */
	char		version[64];
	uint64_t	capabilities;
	bool		pipelines;
	bool		returns_rows;
	bool		takes_kept;		/* rows that are kept in memory */
	bool		fills;			/* pipelines fill tables */
	bool		prewarms;		/* it copies what is kept in memory ahead */
	bool		copies;			/* and says what it has copies of */
	uint32_t	threads;		/* number of the threads that are its device; 0: that is a GPU */
	int32_t		nice;			/* value that is added to that of threads */
	sem_t		taken;			/* a channel that has no thread was taken, or left */
	uint32_t	changes;		/* odd while the devices are being written */
	int			ndevices;
	HgjDeviceInfo devices[HGJ_SERVER_DEVICES];

	HgjPrewarm	prewarm;
	HgjChannel	channels[];		/* their memory follows, from a page's beginning on */
} HgjServer;

static inline uint64_t
hgj_server_generation(const HgjServer *server)
{
	return __atomic_load_n(&server->generation, __ATOMIC_ACQUIRE);
}

static inline HgjServerState
hgj_server_state(const HgjServer *server)
{
	return (HgjServerState) __atomic_load_n(&server->state, __ATOMIC_ACQUIRE);
}

/* How many sessions have something on it, and for how many it makes a call just now. */
static inline void
hgj_server_load(const HgjServer *server, uint32_t *sessions, uint32_t *working)
{
	*sessions = *working = 0;
	for (uint32_t i = 0; i < server->nchannels; i++)
	{
		const HgjChannel *channel = &server->channels[i];

		if (__atomic_load_n(&channel->state, __ATOMIC_ACQUIRE) != HGJ_CHANNEL_TAKEN)
			continue;
		(*sessions)++;
		*working += __atomic_load_n(&channel->number, __ATOMIC_ACQUIRE) !=
			__atomic_load_n(&channel->answer_to, __ATOMIC_RELAXED);
	}
}

/* In the GPU process: why it is about to end. */
static inline void
hgj_server_says_why(HgjServer *server, const char *why)
{
	size_t		n = strlen(why);

	/* behind what is written there is a zero at any time */
	n = n < sizeof(server->why) ? n : sizeof(server->why) - 1;
	memset(server->why + n, 0, sizeof(server->why) - n);
	memcpy(server->why, why, n);
}

/* A channel is nobody's any more. */
static inline void
hgj_channel_is_free(HgjChannel *channel)
{
	__atomic_store_n(&channel->state, HGJ_CHANNEL_FREE, __ATOMIC_RELEASE);
}

/* The same, by who has cleared it after a session that left: requests are nobody's, too. */
static inline void
hgj_channel_is_cleared(HgjChannel *channel)
{
	while (sem_trywait(&channel->asked) == 0)
		continue;
	hgj_channel_is_free(channel);
}

/*
 * What goes with kept rows: the rows of each piece, then the inputs of all of them, then
 * words of tables.  Where do these parts begin?
 */
static inline size_t
hgj_kept_inputs_at(uint64_t npieces)
{
	return (npieces * sizeof(uint32_t) + 7) / 8 * 8;
}

static inline size_t
hgj_kept_words_at(uint64_t npieces, uint32_t ninputs)
{
	return hgj_kept_inputs_at(npieces) + npieces * ninputs * sizeof(HgjKeptInput);
}

/* Where the memory of so many channels begins. */
static inline size_t
hgj_areas_at(uint32_t nchannels)
{
	return (sizeof(HgjServer) + nchannels * sizeof(HgjChannel) + HGJ_PAGE_BYTES - 1) /
		HGJ_PAGE_BYTES * HGJ_PAGE_BYTES;
}

/* How much of it is in front of channel i? */
static inline size_t
hgj_areas_before(size_t front_bytes, uint32_t i)
{
	return i <= HGJ_FRONT_CHANNELS ? i * front_bytes :
		HGJ_FRONT_CHANNELS * front_bytes + (i - HGJ_FRONT_CHANNELS) * (size_t) HGJ_BACK_BYTES;
}

/* The memory of a channel. */
static inline char *
hgj_channel_area(HgjServer *server, const HgjChannel *channel)
{
	uint32_t	i = (uint32_t) (channel - server->channels);

	return (char *) server + hgj_areas_at(server->nchannels) +
		hgj_areas_before(server->front_bytes, i);
}

/* The arrays of a call. */
static inline char *
hgj_call_bytes(HgjLetterCall *call)
{
	return (char *) (call + 1);
}

/* The bytes that a call takes of a letter, if its arrays have `nbytes`. */
static inline size_t
hgj_call_size(size_t nbytes)
{
	return sizeof(HgjLetterCall) + (nbytes + 7) / 8 * 8;
}

/* How much of it there is. */
static inline size_t
hgj_channel_bytes(const HgjServer *server, const HgjChannel *channel)
{
	return channel - server->channels < HGJ_FRONT_CHANNELS ? server->front_bytes :
		HGJ_BACK_BYTES;
}

/* process.c: the life of the GPU process, after the fork; does not return. */
extern void hgj_gpu_process(HgjServer *server, pid_t worker, const char *library, uint32_t threads,
							const char *libdir, const HgjKeptMemory *kept)
			__attribute__((noreturn));

/* serve.c: what one thread of it has made for its session. */
typedef struct HgjServed HgjServed;

extern HgjServed *hgj_serve_begin(HgjServer *server, HgjChannel *channel,
								  const HgjEngine *engine);
extern void hgj_serve(HgjServed *served);
extern void hgj_serve_leave(HgjServed *served);
extern void hgj_serve_watch(HgjServer *server, const HgjEngine *engine);
extern void hgj_serve_end_process(HgjServer *server, const char *why)
			__attribute__((noreturn));

#endif							/* HGJ_CHANNEL_H */
