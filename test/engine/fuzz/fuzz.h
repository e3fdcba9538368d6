/*-------------------------------------------------------------------------
 *
 * fuzz.h
 *	  What the files of the fuzzer of pipelines share (fuzz.c).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HGJ_FUZZ_H
#define HGJ_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../random.h"
#include "engine.h"

#define FUZZ_ROWS		16384	/* of all pushes */
#define FUZZ_BUILD		2048	/* of a table */
#define FUZZ_INPUTS		8
#define FUZZ_JOINS		3
#define FUZZ_COLUMNS	3		/* payload columns of a table */
#define FUZZ_WORDS		3		/* key words of a table */
#define FUZZ_PUSHES		8
#define FUZZ_PIECES		3		/* of a push of kept rows */
#define FUZZ_DICT		40		/* values of a kept input's table */
#define FUZZ_TABLES		(FUZZ_PIECES * FUZZ_INPUTS * HGJ_KEPT_TABLE(FUZZ_DICT))

__extension__ typedef __int128 FuzzWide;

/* Values of one kind, as registers have them. */
typedef struct FuzzColumn
{
	uint8_t		kind;			/* HgjKind */
	bool		nullable;		/* some may be NULL */
	bool		hollow;			/* all are NULL */
	bool		special;		/* floats: some are zeros, infinite, or no numbers */
	uint32_t	n;				/* values */
	int64_t		low;			/* integers: the least value, NULLs apart */
	int64_t		high;			/* integers: the largest value */
	uint64_t	words[FUZZ_ROWS];	/* the values */
	bool		nulls[FUZZ_ROWS];	/* those that are NULL */
} FuzzColumn;

/* The table of a join, of which each engine builds its own. */
typedef struct FuzzTable
{
	HgjTableSpec spec;			/* what it is created with */
	uint32_t	n;				/* rows */
	uint32_t	ncolumns;		/* payload columns */
	bool		unique;			/* no key is there twice */
	bool		by_key;			/* payload is a function of the key */
	uint64_t	words[FUZZ_WORDS][FUZZ_BUILD];	/* key words */
	bool		no_key[FUZZ_BUILD]; /* rows that are left out of the graph */
	FuzzColumn	columns[FUZZ_COLUMNS];	/* payload columns */
} FuzzTable;

/* How rows are handed over. */
typedef enum FuzzWay
{
	FUZZ_STAGED,
	FUZZ_FROM,					/* push_from */
	FUZZ_KEPT,					/* push_kept */
	FUZZ_WAYS
} FuzzWay;

typedef struct FuzzPush
{
	FuzzWay		way;			/* how it is to be made, if the engine can */
	uint32_t	first;			/* its first row */
	uint32_t	n;				/* its rows */
	uint32_t	npieces;		/* of kept rows */
	uint32_t	nrows[FUZZ_PIECES]; /* of each piece */
	HgjKeptInput inputs[FUZZ_PIECES * FUZZ_INPUTS]; /* of each piece */
	uint32_t	nwords;			/* of tables */
	uint64_t	words[FUZZ_TABLES];	/* tables */
} FuzzPush;

typedef struct FuzzPlan
{
	HgjPipelineSpec spec;		/* the plan itself */
	HgjPipelineTerms terms;		/* what it is run on */
	HgjPipeRange ranges[HGJ_PIPE_KEYS]; /* of group keys */
	FuzzTable	tables[FUZZ_JOINS]; /* of joins */
	bool		tainted[FUZZ_JOINS];	/* which candidate passes is free, and matters */
	FuzzColumn	inputs[FUZZ_INPUTS];	/* the rows */
	uint32_t	nrows;			/* of all pushes */
	uint32_t	npushes;		/* pushes */
	FuzzPush	pushes[FUZZ_PUSHES];	/* pushes, in order */
	bool		risky;			/* some instructions may raise errors */
	bool		tight;			/* some group keys may be out of their ranges */
	bool		spoiled;		/* probably not sound: it is created only */
	const FuzzColumn *fill_source;	/* fills: where the first key word is from */
	int64_t		fill_offset;	/* fills: and how much is added to it */
	bool		fill_keyed;		/* fills: it has become a key word */
	int64_t		fill_low;		/* fills: the least second key word */
	int64_t		fill_high;		/* fills: the largest one */
} FuzzPlan;

/* What an engine has made of a plan. */
typedef struct FuzzResult
{
	HgjStatus	created;		/* what create returned */
	HgjStatus	status;			/* the first status that is not HGJ_OK, or that */
	const char *call;			/* the call that returned it */
	char		message[256];	/* its error */
	uint64_t	n;				/* groups, or rows */
	uint32_t	width;			/* words of each */
	uint64_t	filled;			/* rows of a table that has been filled */
	uint64_t   *rows;			/* of `width` words each, sorted; to be freed */
	HgjPipelineInfo info;		/* what the engine has counted */
} FuzzResult;

/* fuzz_data.c */
extern void fuzz_seed(uint64_t seed, uint64_t number);
extern bool fuzz_percent(uint32_t percent);
extern int64_t fuzz_least(uint32_t kind);
extern int64_t fuzz_most(uint32_t kind);
extern void fuzz_make_column(FuzzColumn *column, uint8_t kind, uint32_t n, bool special);
extern void fuzz_make_by_key(FuzzColumn *column, const FuzzTable *table, uint32_t nwords);
extern void fuzz_make_rows(FuzzPlan *plan);
extern void fuzz_keep_rows(FuzzPlan *plan);
extern const HgjKeptMemory *fuzz_kept_memory(void);

/* fuzz_code.c, fuzz_plan.c */
extern void fuzz_make_plan(FuzzPlan *plan);

/* fuzz_run.c */
extern void fuzz_tell(const HgjEngine *engine);
extern void fuzz_run(const HgjEngine *engine, const FuzzPlan *plan, FuzzResult *result);

/* fuzz_print.c */
extern void fuzz_print(const FuzzPlan *plan);

#endif							/* HGJ_FUZZ_H */
