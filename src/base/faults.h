/*-------------------------------------------------------------------------
 *
 * faults.h
 *	  Faults that a test asks for (faults.c): wraps what can fail.  Included by
 *	  compat.h, in builds for a PostgreSQL with assertions only.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_FAULTS_H
#define HGJ_FAULTS_H

#include "postgres.h"

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/buffile.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

extern void hgj_define_fault_settings(void);
extern void hgj_fault_palloc(void);
extern void hgj_fault_file(void);
extern void hgj_fault_interrupt(void);

/* Memory contexts.  What PostgreSQL's own functions allocate is theirs. */
#define palloc(size) \
	(hgj_fault_palloc(), palloc(size))
#define palloc0(size) \
	(hgj_fault_palloc(), palloc0(size))
#define repalloc(pointer, size) \
	(hgj_fault_palloc(), repalloc(pointer, size))
#define repalloc_huge(pointer, size) \
	(hgj_fault_palloc(), repalloc_huge(pointer, size))
#define MemoryContextAlloc(context, size) \
	(hgj_fault_palloc(), MemoryContextAlloc(context, size))
#define MemoryContextAllocZero(context, size) \
	(hgj_fault_palloc(), MemoryContextAllocZero(context, size))
#define MemoryContextAllocHuge(context, size) \
	(hgj_fault_palloc(), MemoryContextAllocHuge(context, size))
#define MemoryContextAllocExtended(context, size, flags) \
	(hgj_fault_palloc(), MemoryContextAllocExtended(context, size, flags))
#define MemoryContextStrdup(context, string) \
	(hgj_fault_palloc(), MemoryContextStrdup(context, string))
#define AllocSetContextCreateInternal(parent, name, least, first, most) \
	(hgj_fault_palloc(), \
	 AllocSetContextCreateInternal(parent, name, least, first, most))
#define enlargeStringInfo(string, needed) \
	(hgj_fault_palloc(), enlargeStringInfo(string, needed))

/* Temporary files. */
#define BufFileCreateTemp(across_transactions) \
	(hgj_fault_file(), BufFileCreateTemp(across_transactions))
#define BufFileWrite(file, from, size) \
	(hgj_fault_file(), BufFileWrite(file, from, size))
#define BufFileRead(file, to, size) \
	(hgj_fault_file(), BufFileRead(file, to, size))
#define BufFileSeek(file, number, offset, whence) \
	(hgj_fault_file(), BufFileSeek(file, number, offset, whence))
#define BufFileClose(file) \
	(hgj_fault_file(), BufFileClose(file))	/* it writes what it has */
#define tuplestore_puttupleslot(store, slot) \
	(hgj_fault_file(), tuplestore_puttupleslot(store, slot))
#define tuplestore_gettupleslot(store, forward, copy, slot) \
	(hgj_fault_file(), tuplestore_gettupleslot(store, forward, copy, slot))

/* Interrupts, at every place that lets them in. */
#undef CHECK_FOR_INTERRUPTS
#define CHECK_FOR_INTERRUPTS() \
	do { \
		hgj_fault_interrupt(); \
		if (INTERRUPTS_PENDING_CONDITION()) \
			ProcessInterrupts(); \
	} while (0)

#endif							/* HGJ_FAULTS_H */
