/*-------------------------------------------------------------------------
 *
 * pool.c
 *	  The threads of the process, and the jobs that they share (Leis et al. 2014: morsels).
 *
 * 1. A job is in a ring as long as it has morsels that nobody has taken.  A thread takes one
 *	  morsel of the job behind the one that it has taken from last, so that all jobs get
 *	  on, the short ones soon.
 * 2. Whoever brings a job works at it, too: a short one is done before another thread has
 *	  woken up.  So nobody waits for a thread that is busy with something else.
 * 3. The caller's poll is asked between its morsels, and every POLL_MS while it waits for
 *	  others' morsels.  If it wants no more, nobody takes another morsel.  Morsels that have
 *	  been taken are made whole, unless they take long.
 * 4. Whoever waits for a call is told that something is done (HgjWatch): by the caller's
 *	  thread, behind each morsel, of its own and of others.
 * 5. Threads that have nothing to do wait for a condition.  As many are woken as there are
 *	  morsels.
 *
 * Memory: the process's; jobs are their callers'.  Locks: one, around the ring and counts.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>
#include <time.h>

#include "threads/threads.h"

#define POLL_MS		4

/*
 * Steps that a job's morsels may go on for when nobody wants more: more than any takes but of joins
 * that find very many rows.  Time would say nothing on a busy machine.
 */
#define MOST_LATE	4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;	/* there is a morsel */
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;	/* a job's last morsel is */
static PoolJob *ring = NULL;	/* its last job, or NULL */
static uint32_t threads = 0;
static const HgjWatch *watch = NULL;

/* Numbers of threads that a job's morsels are called with: the last one is the caller's. */
uint32_t
hgj_pool_runs(void)
{
	return threads + 1;
}

/* HgjEngine.watch.  Step 4. */
void
hgj_pool_watch(const HgjWatch *asked)
{
	watch = asked;
}

/* Step 4: the job gets on. */
void
hgj_pool_progress(PoolJob *job)
{
	(void) __atomic_add_fetch(&job->progress, 1, __ATOMIC_RELAXED);
	if (watch != NULL)
		watch->answered();
}

/* Nanoseconds since some time. */
uint64_t
hgj_pool_now_ns(void)
{
	struct timespec now;

	(void) clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

/* Step 3: nobody is to take another morsel of the job. */
void
hgj_pool_stop(PoolJob *job)
{
	__atomic_store_n(&job->stopped, true, __ATOMIC_RELAXED);
}

/* Step 3: a step of a morsel that takes many; has it gone on for too long to be made whole? */
bool
hgj_pool_is_late(PoolJob *job)
{
	return __atomic_load_n(&job->stopped, __ATOMIC_RELAXED) &&
		__atomic_add_fetch(&job->late, 1, __ATOMIC_RELAXED) > MOST_LATE;
}

/* Step 1, for the lock's holder. */
static void
enter_ring(PoolJob *job)
{
	job->after = ring != NULL ? ring->after : job;
	if (ring != NULL)
		ring->after = job;
	ring = job;
}

static void
leave_ring(PoolJob *job)
{
	PoolJob    *before = job;

	if (job->after == NULL)
		return;
	while (before->after != job)
		before = before->after;
	if (before == job)
		ring = NULL;
	else
	{
		before->after = job->after;
		if (ring == job)
			ring = before;
	}
	job->after = NULL;
}

/* Take a morsel of the job, for the lock's holder; false: there is none. */
static bool
take(PoolJob *job, uint64_t *number)
{
	if (job->next >= job->nmorsels || __atomic_load_n(&job->stopped, __ATOMIC_RELAXED))
	{
		leave_ring(job);
		return false;
	}
	*number = job->next++;
	job->running++;
	if (job->next == job->nmorsels)
		leave_ring(job);
	return true;
}

/* Make a morsel that has been taken, for the lock's holder, without the lock. */
static void
make(PoolJob *job, uint32_t thread, uint64_t number)
{
	(void) pthread_mutex_unlock(&lock);
	job->morsel(job->arg, thread, number);
	hgj_pool_progress(job);
	(void) pthread_mutex_lock(&lock);
	if (--job->running == 0)
		(void) pthread_cond_broadcast(&done);
}

/* Step 1. */
static void *
serve(void *arg)
{
	uint32_t	thread = (uint32_t) (uintptr_t) arg;

	(void) pthread_mutex_lock(&lock);
	for (;;)
	{
		uint64_t	number;
		PoolJob    *job = ring;

		if (job == NULL)
		{
			(void) pthread_cond_wait(&work, &lock);
			continue;
		}
		/* the ring's first job becomes its last one */
		job = job->after;
		ring = job;
		if (take(job, &number))
			make(job, thread, number);
	}
	return NULL;
}

/* Start threads, once; false: not one could be started though some were asked for. */
bool
hgj_pool_open(uint32_t nthreads)
{
	while (threads < nthreads)
	{
		pthread_t	thread;

		if (pthread_create(&thread, NULL, serve, (void *) (uintptr_t) threads) != 0)
			break;
		(void) pthread_detach(thread);
		threads++;
	}
	return threads > 0 || nthreads == 0;
}

/* Step 3: does the caller want more, who waits for others' morsels? */
static void
wait_for_others(PoolJob *job, int (*poll) (void *poll_arg), void *poll_arg)
{
	struct timespec until;
	uint64_t	before = __atomic_load_n(&job->progress, __ATOMIC_RELAXED);

	(void) clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += POLL_MS * 1000000L;
	if (until.tv_nsec >= 1000000000L)
	{
		until.tv_nsec -= 1000000000L;
		until.tv_sec++;
	}
	(void) pthread_cond_timedwait(&done, &lock, &until);
	if (job->running == 0)
		return;
	(void) pthread_mutex_unlock(&lock);
	if (watch != NULL && before != __atomic_load_n(&job->progress, __ATOMIC_RELAXED))
		watch->answered();
	if (poll != NULL && poll(poll_arg) != 0)
		hgj_pool_stop(job);
	(void) pthread_mutex_lock(&lock);
}

/*
 * Have the job's morsels from `next` on made; false: poll wants no more, and `next` is the first
 * that has not been made.  No thread is at one of them when it returns.
 */
bool
hgj_pool_run(PoolJob *job, int (*poll) (void *poll_arg), void *poll_arg)
{
	uint64_t	number;

	job->running = job->late = 0;
	job->after = NULL;
	if (poll != NULL && poll(poll_arg) != 0)
		return false;
	(void) pthread_mutex_lock(&lock);
	if (job->next + 1 < job->nmorsels)
	{
		enter_ring(job);
		for (uint64_t i = job->next + 1; i < job->nmorsels && i <= job->next + threads; i++)
			(void) pthread_cond_signal(&work);
	}
	while (take(job, &number))
	{
		make(job, threads, number);
		if (poll == NULL)
			continue;
		(void) pthread_mutex_unlock(&lock);
		if (poll(poll_arg) != 0)
			hgj_pool_stop(job);
		(void) pthread_mutex_lock(&lock);
	}
	while (job->running > 0)
		wait_for_others(job, poll, poll_arg);
	leave_ring(job);
	(void) pthread_mutex_unlock(&lock);
	return job->next >= job->nmorsels;
}
