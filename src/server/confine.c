/*-------------------------------------------------------------------------
 *
 * confine.c
 *	  In the GPU process: giving up PostgreSQL's memory.
 *
 * A driver runs in this process, and what it writes by mistake must not reach
 * shared_buffers, and from there the disk.  Nor may the process, which can hang in the driver
 * and then outlives the postmaster, keep PostgreSQL's shared memory in use: a postmaster
 * does not start before its predecessor's small System V segment, which tells that, is
 * nobody's.
 *
 * 1. What the process has inherited stands in /proc/self/maps.  Nothing has been mapped yet but
 *	  by PostgreSQL and what it has loaded, so that every shared mapping that can be written to
 *	  is PostgreSQL's or a library's: its shared memory, that segment, dynamic shared memory,
 *	  the channels.  (Those that cannot are files of the C library's, which it goes on using.)
 * 2. All but the channels is replaced by memory that can neither be read nor written, at the
 *	  same place: nothing else comes to be where pointers that are left may lead.
 * 3. The memory of kept columns is a part of PostgreSQL's.  What is before and behind it
 *	  goes, by whole pages of whatever size these are: the kernel refuses to cut huge ones.  It
 *	  becomes read only, with what else is on its first and last page.
 * 4. Where PostgreSQL's shared memory is a System V segment (shared_memory_type = sysv), it
 *	  is that of 1, too, and columns are not kept: keeping them would keep it in use.
 * 5. A driver that registers only what can be written to has it writable meanwhile.
 *
 * Memory: malloc'd for the list, and freed.  Locks: none; there is one thread yet, and one that
 * registers memory later.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server/confine.h"

#define LEAST_PAGE		((uintptr_t) 4096)
#define LARGEST_PAGE	((uintptr_t) 16 * 1024 * 1024 * 1024)

/* Of kept columns, whole pages; steps 3 and 5. */
static uintptr_t kept_begin = 0;
static uintptr_t kept_end = 0;

/* The whole file, or NULL.  It has no size that could be asked for. */
static char *
read_maps(void)
{
	int			file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t		room = 256 * 1024;
	size_t		n = 0;
	char	   *text = malloc(room);
	ssize_t		got = file < 0 ? -1 : 1;

	while (text != NULL && got > 0)
	{
		if (n + 1 >= room)
		{
			char	   *more = realloc(text, room *= 2);

			if (more == NULL)
				break;
			text = more;
		}
		got = read(file, text + n, room - n - 1);
		n += got > 0 ? (size_t) got : 0;
	}
	if (file >= 0)
		(void) close(file);
	if (got != 0)
	{
		free(text);
		return NULL;
	}
	if (text != NULL)
		text[n] = '\0';
	return text;
}

/* Step 2; nothing happens to whole pages that cannot be cut. */
static bool
drop(uintptr_t begin, uintptr_t end)
{
	return begin >= end ||
		mmap((void *) begin, end - begin, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

/* Step 3: of a mapping, the part that has some of what is kept. */
static bool
keep_part(uintptr_t begin, uintptr_t end, const HgjKeptMemory *kept)
{
	uintptr_t	from = (uintptr_t) kept->memory;
	uintptr_t	to = from + kept->bytes;

	for (uintptr_t page = LEAST_PAGE; page <= LARGEST_PAGE; page *= 2)
	{
		uintptr_t	keep_from = from / page * page;
		uintptr_t	keep_to = (to + page - 1) / page * page;

		keep_from = keep_from < begin ? begin : keep_from;
		keep_to = keep_to > end ? end : keep_to;
		if (!drop(begin, keep_from) || !drop(keep_to, end) ||
			mprotect((void *) keep_from, keep_to - keep_from, PROT_READ) != 0)
			continue;
		kept_begin = kept_begin == 0 || keep_from < kept_begin ? keep_from : kept_begin;
		kept_end = keep_to > kept_end ? keep_to : kept_end;
		return true;
	}
	return false;
}

/* Step 5: HgjKeptMemory.let_write */
static bool
let_write(bool yes)
{
	return mprotect((void *) kept_begin, kept_end - kept_begin,
					yes ? PROT_READ | PROT_WRITE : PROT_READ) == 0;
}

/* A shared mapping that is not the channels; there may be several of PostgreSQL's memory. */
static bool
give_up(uintptr_t begin, uintptr_t end, const char *name, HgjKeptMemory *kept)
{
	uintptr_t	from = (uintptr_t) kept->memory;

	if (kept->memory == NULL || from >= end || from + kept->bytes <= begin)
		return drop(begin, end);
	if (strncmp(name, "/SYSV", 5) == 0)
	{
		kept->memory = NULL;
		return drop(begin, end);
	}
	kept->let_write = let_write;
	return keep_part(begin, end, kept);
}

/* See confine.h. */
bool
hgj_confine(const void *keep, size_t bytes, HgjKeptMemory *kept, const char **why)
{
	char	   *maps = read_maps();
	bool		done = true;

	*why = "could not read /proc/self/maps";
	if (maps == NULL)
		return false;
	for (char *line = maps, *next; done && *line != '\0'; line = next)
	{
		char	   *newline = strchr(line, '\n');
		unsigned long begin;
		unsigned long end;
		char		access[8];
		int			name = 0;

		next = newline != NULL ? newline + 1 : line + strlen(line);
		if (newline != NULL)
			*newline = '\0';
		done = sscanf(line, "%lx-%lx %7s %*s %*s %*s %n", &begin, &end, access, &name) == 3 &&
			name > 0;
		if (!done || access[1] != 'w' || access[3] != 's' ||
			(begin < (uintptr_t) keep + bytes && end > (uintptr_t) keep))
			continue;
		*why = "could not give up PostgreSQL's shared memory";
		done = give_up(begin, end, line + name, kept);
	}
	free(maps);
	return done;
}
