/*-------------------------------------------------------------------------
 *
 * registry.c
 *	  Finding an engine by its name, opening its library on first need.
 *
 * 1. "cpu" is linked in.
 * 2. "cuda" lies in a library of its own, so that a machine without driver or
 *	  GPU loads everything else: it is opened with RTLD_LOCAL, its entry
 *	  symbol gives the HgjEngine, and the ABI version must be ours.
 * 3. Success is remembered for the process's life.  The library is never
 *	  closed: a CUDA runtime does not survive that.
 *
 * Engines are constants of their library; nobody frees them.  Locks nothing:
 * a backend has one thread.
 *
 *-------------------------------------------------------------------------
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "registry.h"

typedef const HgjEngine *(*EngineEntry) (void);

static const char *const engine_names[] = {"cpu", "cuda"};
static const HgjEngine *cuda_engine = NULL;
static char cuda_library[512] = HGJ_CUDA_LIBRARY;

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static const HgjEngine *
not_found(HgjError *err, HgjStatus status, const char *fmt,...)
{
	va_list		args;

	if (err != NULL)
	{
		err->status = status;
		va_start(args, fmt);
		(void) vsnprintf(err->message, sizeof(err->message), fmt, args);
		va_end(args);
	}
	return NULL;
}

/* Open path, check what it says it is. */
static const HgjEngine *
load_engine(const char *path, const char *name, HgjError *err)
{
	void	   *library;
	void	   *symbol;
	EngineEntry entry;
	const HgjEngine *engine;
	const char *why;

	if (access(path, F_OK) != 0)
		return not_found(err, HGJ_NO_DEVICE,
						 "could not load \"%s\": file not found", path);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
	{
		why = dlerror();
		return not_found(err, HGJ_NO_DEVICE, "could not load \"%s\": %s", path,
						 why != NULL ? why : "unknown reason");
	}
	symbol = dlsym(library, HGJ_ENGINE_ENTRY);
	if (symbol == NULL)
	{
		(void) dlclose(library);
		return not_found(err, HGJ_UNSUPPORTED,
						 "library \"%s\" has no function \"%s\"", path,
						 HGJ_ENGINE_ENTRY);
	}
	memcpy(&entry, &symbol, sizeof(entry)); /* ISO C has no such cast */
	engine = entry();
	if (engine == NULL || engine->abi_version != HGJ_ABI_VERSION)
	{
		unsigned int version = engine == NULL ? 0 : engine->abi_version;

		(void) dlclose(library);
		return not_found(err, HGJ_UNSUPPORTED,
						 "library \"%s\" has engine ABI version %u, expected %u",
						 path, version, (unsigned int) HGJ_ABI_VERSION);
	}
	if (engine->name == NULL || strcmp(engine->name, name) != 0)
	{
		(void) dlclose(library);
		return not_found(err, HGJ_UNSUPPORTED,
						 "library \"%s\" does not hold engine \"%s\"", path, name);
	}
	return engine;
}

/* See registry.h. */
void
hgj_registry_use(const char *library)
{
	const char *suffix = "";
	size_t		length;
	int			n;

	if (library == NULL)
		library = HGJ_CUDA_LIBRARY;
	length = strlen(library);
	if (length < 3 || strcmp(library + length - 3, ".so") != 0)
		suffix = ".so";
	n = snprintf(cuda_library, sizeof(cuda_library), "%s%s", library, suffix);
	if (n < 0 || (size_t) n >= sizeof(cuda_library))
		memcpy(cuda_library, HGJ_CUDA_LIBRARY, sizeof(HGJ_CUDA_LIBRARY));
}

/* The CUDA library's file; false: the path is too long. */
static bool
library_path(const char *libdir, char *path, size_t bytes)
{
	int			n;

	if (strchr(cuda_library, '/') != NULL)
		n = snprintf(path, bytes, "%s", cuda_library);
	else
		n = snprintf(path, bytes, "%s/%s", libdir != NULL ? libdir : ".", cuda_library);
	return n >= 0 && (size_t) n < bytes;
}

/* See registry.h. */
bool
hgj_registry_has_cuda(const char *libdir)
{
	char		path[1024];

	return library_path(libdir, path, sizeof(path)) && access(path, F_OK) == 0;
}

/*
 * The engine of that name, or NULL: HGJ_NO_DEVICE when its library cannot be
 * opened, HGJ_UNSUPPORTED when there is no such engine or it is not ours.
 */
const HgjEngine *
hgj_registry_find(const char *name, const char *libdir, HgjError *err)
{
	char		path[1024];

	if (name != NULL && strcmp(name, "cpu") == 0)
		return hgj_cpu_engine();
	if (name == NULL || strcmp(name, "cuda") != 0)
		return not_found(err, HGJ_UNSUPPORTED, "there is no engine \"%s\"",
						 name != NULL ? name : "");
	if (cuda_engine != NULL)
		return cuda_engine;
	if (!library_path(libdir, path, sizeof(path)))
		return not_found(err, HGJ_NO_DEVICE,
						 "the path of \"%.100s\" is too long", cuda_library);
	cuda_engine = load_engine(path, "cuda", err);
	return cuda_engine;
}

/* How many names hgj_registry_name has. */
int
hgj_registry_count(void)
{
	return (int) (sizeof(engine_names) / sizeof(engine_names[0]));
}

/* The i-th name, NULL outside of 0 .. count - 1. */
const char *
hgj_registry_name(int i)
{
	return i >= 0 && i < hgj_registry_count() ? engine_names[i] : NULL;
}
