/*-------------------------------------------------------------------------
 *
 * disk.c
 *	  A disk that gets full, for tests: preloaded into a server (LD_PRELOAD), it
 *	  lets accesses to temporary files fail.
 *
 * 1. A process looks for the file hgj_disk.PID in its current directory (a
 *	  server's data directory) when it accesses a file below pgsql_tmp:
 *
 *		write BYTES N	so many bytes can be written, then there is no space left
 *		read BYTES N	so many can be read, then there is an I/O error
 *
 *	  Bytes are counted anew when N is another number than before.
 * 2. The write that meets the end is a short one, as on a real disk.
 *
 * No memory.  No locks: tests have one thread.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef ssize_t (*ReadCall) (int, void *, size_t, off_t);
typedef ssize_t (*WriteCall) (int, const void *, size_t, off_t);

static int	number = -1;		/* N of the file that was read last */
static char which[16];
static unsigned long long left;

static int
is_temporary(int fd)
{
	char		link[32];
	char		path[512];
	ssize_t		n;

	(void) snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0)
		return 0;
	path[n] = '\0';
	return strstr(path, "pgsql_tmp") != NULL;
}

/* Step 1: how many of these bytes may this process access? */
static size_t
allowed(const char *call, int fd, size_t bytes)
{
	char		name[32];
	char		what[16];
	unsigned long long most;
	int			now;
	FILE	   *file;

	(void) snprintf(name, sizeof(name), "hgj_disk.%d", (int) getpid());
	if (!is_temporary(fd) || (file = fopen(name, "r")) == NULL)
		return bytes;
	if (fscanf(file, "%15s %llu %d", what, &most, &now) == 3 && now != number)
	{
		strcpy(which, what);
		left = most;
		number = now;
	}
	(void) fclose(file);
	if (strcmp(which, call) != 0)
		return bytes;
	if (bytes > left)
		bytes = (size_t) left;
	left -= bytes;
	return bytes;
}

static void *
next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

static ssize_t
write_some(const char *name, int fd, const void *from, size_t bytes, off_t at)
{
	WriteCall	call;
	void	   *symbol = next(name);
	size_t		some = allowed("write", fd, bytes);

	if (some == 0 && bytes > 0)
	{
		errno = ENOSPC;
		return -1;
	}
	memcpy(&call, &symbol, sizeof(call));
	return call(fd, from, some, at);
}

static ssize_t
read_some(const char *name, int fd, void *to, size_t bytes, off_t at)
{
	ReadCall	call;
	void	   *symbol = next(name);

	if (allowed("read", fd, bytes) < bytes)
	{
		errno = EIO;
		return -1;
	}
	memcpy(&call, &symbol, sizeof(call));
	return call(fd, to, bytes, at);
}

ssize_t
pwrite(int fd, const void *from, size_t bytes, off_t at)
{
	return write_some("pwrite", fd, from, bytes, at);
}

ssize_t
pwrite64(int fd, const void *from, size_t bytes, off_t at)
{
	return write_some("pwrite64", fd, from, bytes, at);
}

ssize_t
pread(int fd, void *to, size_t bytes, off_t at)
{
	return read_some("pread", fd, to, bytes, at);
}

ssize_t
pread64(int fd, void *to, size_t bytes, off_t at)
{
	return read_some("pread64", fd, to, bytes, at);
}
