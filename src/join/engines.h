/*-------------------------------------------------------------------------
 *
 * engines.h
 *	  Which engines this session can use (engines.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_ENGINES_H
#define HGJ_ENGINES_H

#include "compat.h"

#include "engine/engine.h"

/* The CUDA engine, its library loaded; NULL and *err where that cannot be. */
extern const HgjEngine *hgj_cuda_engine(HgjError *err);

/* The same, open in this process; *limit: what may be taken of its memory, in bytes. */
extern const HgjEngine *hgj_cuda_open(HgjDeviceInfo *info, uint64 *limit, HgjError *err);

/*
 * For the planner: could a join that takes so many bytes of device memory run on
 * a GPU, as far as is known without opening one?  What was not there once is not
 * looked for again in this session.
 */
extern bool hgj_cuda_usable(double bytes);

/* How many threads the device consists of.  A GPU has 0 of them, and a device that is not there, too. */
extern int	hgj_device_threads(void);

/*
 * Bytes that a table, or a pipeline, may take of the threads' memory, which is the host's: what as
 * many of PostgreSQL's processes might.
 */
extern uint64 hgj_threads_memory(void);

/* The number of threads, at most, that such memory is given for. */
#define HGJ_THREADS_SHARES	8

/* The name of the device's engine, as EXPLAIN has it. */
extern const char *hgj_device_engine_name(void);

/* Has this session a GPU open itself?  One that rows go to without being copied again. */
extern bool hgj_cuda_is_open(void);

/*
 * Of n chunks, by their numbers in ascending order, the bytes that devices have copies of;
 * waits for interrupts.  False: no device is open, or it does not say.
 */
extern bool hgj_cuda_kept_bytes(const uint64 *ids, uint32 n, uint64 *bytes);

/* Do columns that are kept in memory stay on it, too? */
extern bool hgj_cuda_has_columns(void);

/*
 * Give the GPU back.  False where there is nothing to be given back; *tables says
 * how many tables are on it, and with any of them nothing is done.
 */
extern bool hgj_cuda_release(uint32 *tables);

#endif							/* HGJ_ENGINES_H */
