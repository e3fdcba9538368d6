/*-------------------------------------------------------------------------
 *
 * process.c
 *	  The GPU process: it alone has the GPU open, and makes the calls of all
 *	  sessions.  Where there is none, and threads are wanted, its device are they
 *	  (threads/engine.h).
 *
 * 1. The worker (worker.c) forks it, and it never returns: no PostgreSQL function is
 *	  called here, because whatever a driver does to this process must not look to the
 *	  postmaster like a backend's crash.  It ends with the worker, by a signal that the
 *	  kernel sends.  Before it loads the engine it gives up PostgreSQL's files and memory, but
 *	  for the channels, and the columns that it reads (confine.c).
 * 2. It opens the engine, tells it where columns are kept, and says what it found;
 *	  without a usable device it ends, and sessions are told why.  Threads, where they
 *	  are wanted, are always there.
 * 3. Each channel has a thread that waits for requests for ever, so that a long call of
 *	  one session keeps no other one waiting.  A session that has left is cleaned up
 *	  after by the same thread.  It is started when a session has taken the channel, by a
 *	  thread that does nothing else: most channels are never taken at all.
 * 4. One more thread makes copies of kept columns on the devices that no session has asked
 *	  for yet, and drops those of what has gone, as the worker says (prewarm.c).
 * 5. The first thread looks after the devices' free memory, for those who plan, and
 *	  after build sides that nobody has used for a while (sides.c).
 *
 * Memory: malloc'd, the process's; the channels are the postmaster's shared memory.
 * Locks: none; a semaphore hands a channel over.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/registry.h"
#include "server/channel.h"
#include "server/confine.h"
#include "server/sides.h"
#include "threads/engine.h"

#define SECONDS_BETWEEN_LOOKS	1

typedef struct Serving
{
	HgjServer  *server;
	HgjChannel *channel;
	const HgjEngine *engine;
} Serving;

/* Step 3. */
static void *
serve_channel(void *arg)
{
	Serving    *serving = arg;
	HgjChannel *channel = serving->channel;
	HgjServed  *served = hgj_serve_begin(serving->server, channel, serving->engine);

	if (served == NULL)
		_exit(1);
	for (;;)
	{
		/* what a session has left to an earlier process, or to this one */
		if (__atomic_load_n(&channel->state, __ATOMIC_ACQUIRE) == HGJ_CHANNEL_LEFT)
		{
			hgj_serve_leave(served);
			hgj_channel_is_cleared(channel);
		}
		if (sem_wait(&channel->asked) == 0)
			hgj_serve(served);
	}
	return NULL;
}

/* Step 5: others may read meanwhile, and see by `changes` that they must read again. */
static void
look_at_devices(HgjServer *server, const HgjEngine *engine)
{
	HgjDeviceInfo devices[HGJ_SERVER_DEVICES];
	int			n = engine->device_count();
	int			found = 0;
	HgjError	err;

	memset(devices, 0, sizeof(devices));
	hgj_sides_tidy();
	for (int i = 0; i < n && i < HGJ_SERVER_DEVICES; i++)
		if (engine->device_info(i, &devices[found], &err) == HGJ_OK)
			found++;
	/* there is one device that sides are on, and they go where there is no room */
	if (found > 0)
		devices[0].free_memory += hgj_sides_idle_bytes();
	(void) __atomic_add_fetch(&server->changes, 1, __ATOMIC_SEQ_CST);
	memcpy(server->devices, devices, sizeof(devices));
	server->ndevices = found;
	(void) __atomic_add_fetch(&server->changes, 1, __ATOMIC_SEQ_CST);
}

/* Step 4. */
static void *
serve_prewarm(void *arg)
{
	Serving    *serving = arg;
	HgjPrewarm *prewarm = &serving->server->prewarm;
	const HgjPipelineMethods *methods = serving->engine->pipeline;

	for (;;)
	{
		if (sem_wait(&prewarm->asked) != 0)
			continue;
		prewarm->status = HGJ_OK;
		if (prewarm->sweeps)
			prewarm->gone = methods->sweep(prewarm->first, prewarm->last, prewarm->live,
										   prewarm->n);
		else
			prewarm->status = methods->prewarm(prewarm->arrays, prewarm->n, &prewarm->done,
											   &prewarm->error);
		if (prewarm->status == HGJ_DEVICE_LOST)
			hgj_serve_end_process(serving->server, prewarm->error.message);
		(void) sem_post(&prewarm->answered);
	}
	return NULL;
}

static void __attribute__((noreturn))
unusable(HgjServer *server, const char *why)
{
	hgj_server_says_why(server, why);
	__atomic_store_n(&server->state, HGJ_SERVER_UNUSABLE, __ATOMIC_RELEASE);
	_exit(0);
}

static void
start_thread(void *(*serve) (void *), Serving *serving)
{
	pthread_t	thread;

	if (pthread_create(&thread, NULL, serve, serving) != 0)
		unusable(serving->server, "could not start a thread of the GPU process");
}

/* Step 3: for a session that has taken the channel; one that has left had nothing here. */
static void
look_after(Serving *serving, uint64_t generation)
{
	HgjChannel *channel = serving->channel;
	uint32_t	state = __atomic_load_n(&channel->state, __ATOMIC_ACQUIRE);
	pthread_t	thread;

	if (state == HGJ_CHANNEL_FREE ||
		__atomic_load_n(&channel->thread_of, __ATOMIC_RELAXED) == generation)
		return;
	if (state == HGJ_CHANNEL_LEFT)
		hgj_channel_is_cleared(channel);
	else if (pthread_create(&thread, NULL, serve_channel, serving) == 0)
		__atomic_store_n(&channel->thread_of, generation, __ATOMIC_RELEASE);
	else
		__atomic_store_n(&channel->no_thread_of, generation, __ATOMIC_RELEASE);
}

/* Step 3: of those that were taken, or left, since it has looked last. */
static void *
start_threads(void *arg)
{
	Serving    *serving = arg;
	HgjServer  *server = serving[0].server;
	uint64_t	generation = hgj_server_generation(server);

	for (;;)
	{
		for (uint32_t i = 0; i < server->nchannels; i++)
			look_after(&serving[i], generation);
		while (sem_wait(&server->taken) != 0)
			continue;
	}
	return NULL;
}

/* Step 3, at the beginning: no channel has a thread. */
static void
serve_channels(HgjServer *server, const HgjEngine *engine)
{
	Serving    *serving = calloc(server->nchannels, sizeof(Serving));

	if (serving == NULL)
		unusable(server, "out of memory in the GPU process");
	for (uint32_t i = 0; i < server->nchannels; i++)
		serving[i] = (Serving) {server, &server->channels[i], engine};
	start_thread(start_threads, serving);
}

static void
close_files(void)
{
	long		most = sysconf(_SC_OPEN_MAX);

#ifdef SYS_close_range
	if (syscall(SYS_close_range, 3U, ~0U, 0U) == 0)
		return;
#endif
	for (int fd = 3; fd < most || fd < 1024; fd++)
		(void) close(fd);
}

/* Step 1: nothing of the worker's is left but standard error. */
static void
become_a_process(pid_t worker)
{
	static const int ignored[] = {SIGHUP, SIGINT, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM, SIGURG};
	static const int ending[] = {SIGTERM, SIGQUIT, SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGCHLD};
	sigset_t	none;

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void) signal(ignored[i], SIG_IGN);
	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++)
		(void) signal(ending[i], SIG_DFL);
	sigemptyset(&none);
	(void) sigprocmask(SIG_SETMASK, &none, NULL);
	(void) prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void) prctl(PR_SET_NAME, "hgj gpu process");
	if (getppid() != worker)
		_exit(0);
	close_files();
}

/*
 * How nice threads are.  Where Linux makes a group of each session's processes (autogroup), which
 * PostgreSQL's are in one by one, a process is as nice to others as its group is.
 */
static void
be_nice(HgjServer *server)
{
	int			group;
	char		text[16];
	int			n = snprintf(text, sizeof(text), "%d", server->nice);

	errno = 0;
	if (nice(server->nice) == -1 && errno != 0)
		unusable(server, "the nice value of threads could not be set");
	group = server->nice > 0 ? open("/proc/self/autogroup", O_WRONLY) : -1;
	if (group < 0)
		return;
	/* a kernel that has the file may have the grouping switched off */
	if (write(group, text, (size_t) n) < 0)
		errno = 0;
	(void) close(group);
}

/*
 * Step 2: the GPU's engine if there is one (library: NULL, it is not wanted), or else that of
 * threads, if there are to be any.
 */
static const HgjEngine *
open_engine(HgjServer *server, const char *library, uint32_t threads, const char *libdir)
{
	HgjError	err = {.message = "no GPU is wanted"};
	const HgjEngine *engine = NULL;

	/* CUDA loads kernels now, and not each when a query needs it first, who would wait */
	(void) setenv("CUDA_MODULE_LOADING", "EAGER", 0);
	server->threads = 0;
	hgj_registry_use(library);
	if (library != NULL)
		engine = hgj_registry_find("cuda", libdir, &err);
	if (engine != NULL)
		hgj_serve_watch(server, engine);
	if (engine != NULL && engine->open(&err) == HGJ_OK)
		return engine;
	if (threads == 0)
		unusable(server, err.message);
	/* the worker says so, if there was to be a GPU */
	hgj_server_says_why(server, err.message);
	hgj_threads_want(threads);
	/* before the first thread is started: threads have their name and nice value from this one */
	(void) prctl(PR_SET_NAME, "hgj threads");
	be_nice(server);
	engine = hgj_threads_engine();
	hgj_serve_watch(server, engine);
	if (engine->open(&err) != HGJ_OK)
		unusable(server, err.message);
	server->threads = hgj_threads_open();
	return engine;
}

/* See channel.h. */
void
hgj_gpu_process(HgjServer *server, pid_t worker, const char *library, uint32_t threads,
				const char *libdir, const HgjKeptMemory *kept)
{
	static Serving prewarming;
	HgjKeptMemory memory = *kept;
	const HgjEngine *engine;
	const char *why;

	become_a_process(worker);
	if (!hgj_confine(server, server->bytes, &memory, &why))
		unusable(server, why);
	/* the one before may have been killed while it was writing */
	server->changes &= ~UINT32_C(1);
	engine = open_engine(server, library, threads, libdir);
	memset(server->version, 0, sizeof(server->version));
	strncpy(server->version, engine->version, sizeof(server->version) - 1);
	server->capabilities = engine->capabilities;
	server->pipelines = engine->pipeline != NULL;
	server->returns_rows = engine->pipeline != NULL && engine->pipeline->fetch != NULL;
	server->fills = server->pipelines && engine->pipeline->fills;
	server->takes_kept = server->pipelines && memory.memory != NULL &&
		engine->pipeline->push_kept != NULL;
	server->copies = server->takes_kept && engine->pipeline->kept_bytes != NULL;
	if (server->takes_kept)
	{
		memory.give_back = hgj_sides_give_back;
		engine->pipeline->keep(&memory);
	}
	if (server->pipelines && engine->pipeline->keep_staging != NULL)
		engine->pipeline->keep_staging(hgj_channel_area(server, &server->channels[0]),
									   hgj_areas_before(server->front_bytes, HGJ_FRONT_CHANNELS));
	look_at_devices(server, engine);
	if (server->ndevices == 0)
		unusable(server, "there is no device");
	server->prewarms = server->takes_kept && engine->pipeline->prewarm != NULL;
	serve_channels(server, engine);
	prewarming = (Serving) {server, NULL, engine};
	if (server->prewarms)
		start_thread(serve_prewarm, &prewarming);
	__atomic_store_n(&server->state, HGJ_SERVER_READY, __ATOMIC_RELEASE);
	for (;;)
	{
		struct timespec pause = {.tv_sec = SECONDS_BETWEEN_LOOKS};

		(void) nanosleep(&pause, NULL);
		look_at_devices(server, engine);
	}
}
