# hashgraph_join: built with PostgreSQL's extension build system (PGXS).
#
#   make demo            a star join, stock and through HashGraphJoin, side by side
#   make check           tests on throw-away servers, for which one can wait   [SUITES="regress tap"]
#   make check-full      every test (the settings of both: test/check.sh)
#   make bench           ratios against stock PostgreSQL     [ROWS=2000000 CASES="q1"]
#   make bench-tpch      TPC-H against stock PostgreSQL      [SF=1 WORKERS="0 2" QUERIES="03 05"]
#   make bench-ssb       the Star Schema Benchmark, likewise (the other settings: bench/real.sh)
#   make bench-users     queries with subqueries, likewise
#   make bench-duckdb    DuckDB beside stock and ours        [NAME=ssb THREADS="1 2"]  (bench/duckdb.sh)
#   make bench-memory    memory of joins beyond work_mem, and their times   [ROWS="1M 10M" CASES="uniform"]
#   make versions        tests on PostgreSQL 17 and 18, in folders of later Debians (test/versions.sh)
#   make lint            the rules of the source tree, and a build without warnings
#   make setup           installs what the goals above need (they call it themselves)
#
#   make; make install; make installcheck    the PGXS way, against a running server
#   make WERROR=1        warnings are errors
#   make PG_CONFIG=...   for another PostgreSQL (15 to 18) than the newest that is here
#   make CUDA_ARCHS=90   the CUDA engine (built where nvcc is found) for some architectures only
#   make with_cuda=no    without it

SCRIPT_GOALS := check check-full demo bench bench-memory bench-tpch bench-ssb bench-users bench-duckdb lint setup versions clean-all

ifneq (,$(filter $(SCRIPT_GOALS),$(MAKECMDGOALS)))

# These work on a machine that has no PostgreSQL yet, so PGXS stays out of it.
.NOTPARALLEL:
.PHONY: $(MAKECMDGOALS)

SUITES ?=
export SUITES

check: ; @bash test/check.sh
check-full: ; @bash test/check.sh full
demo:  ; @bash bench/demo.sh
bench: ; @bash bench/run.sh
bench-memory: ; @bash bench/memory.sh
bench-tpch: ; @bash bench/real.sh tpch
bench-ssb:  ; @bash bench/real.sh ssb
bench-users: ; @bash bench/real.sh users
bench-duckdb: ; @bash bench/duckdb.sh $(or $(NAME),tpch)
lint:  ; @bash test/setup.sh build && bash test/lint.sh
setup: ; @bash test/setup.sh
versions: ; @bash test/versions.sh check
clean-all:
	rm -rf build results output_iso tmp_check log regression.diffs regression.out
	rm -f hashgraph_join.so hashgraph_join_cuda.so
	rm -rf test/engine/run_*
	find src -name '*.o' -delete -o -name '*.bc' -delete -o -name '*.d' -delete

OTHER_GOALS := $(filter-out $(SCRIPT_GOALS),$(MAKECMDGOALS))
ifneq (,$(OTHER_GOALS))
$(OTHER_GOALS): ; $(MAKE) $@
endif

else

MODULE_big = hashgraph_join
EXTENSION = hashgraph_join
DATA = $(wildcard sql/hashgraph_join--*.sql)
PGFILEDESC = "hashgraph_join - joins through a HashGraph"

SRCS := $(sort $(wildcard src/*.c src/*/*.c))
HDRS := $(sort $(wildcard src/*.h src/*/*.h))
OBJS := $(SRCS:.c=.o)

LIBRARY_VERSION := $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" hashgraph_join.control)
PG_CPPFLAGS = -Isrc -DHGJ_VERSION='"$(LIBRARY_VERSION)"'
# Two groups of -Wextra stay off: PostgreSQL's function signatures leave
# parameters unused, and its node and type tables leave fields out.
STRICT = -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers
PG_CFLAGS = $(STRICT) $(if $(filter 1 yes on,$(WERROR)),-Werror)
EXPORTS := src/exports.map
SHLIB_LINK += -ldl -Wl,--version-script=$(EXPORTS)
EXTRA_CLEAN = $(SRCS:.c=.d) build/flags

TESTS := $(patsubst sql/%.sql,%,$(filter-out sql/hashgraph_join--%.sql,$(sort $(wildcard sql/*.sql))))
REGRESS := $(filter setup,$(TESTS)) $(filter-out setup $(REGRESS_WITHOUT),$(TESTS))
REGRESS_OPTS = --load-extension=hashgraph_join
ISOLATION := $(patsubst test/isolation/specs/%.spec,%,$(sort $(wildcard test/isolation/specs/*.spec)))
ISOLATION_OPTS = --inputdir=test/isolation --load-extension=hashgraph_join

# Debian's newest of those that we know (test/pg_config.sh), or what PATH has.
PG_KNOWN := 18 17 16 15
PG_CONFIG ?= $(firstword $(patsubst %/lib/pgxs/src/makefiles/pgxs.mk,%/bin/pg_config,$(wildcard $(PG_KNOWN:%=/usr/lib/postgresql/%/lib/pgxs/src/makefiles/pgxs.mk))) pg_config)
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
ifeq (,$(PGXS))
$(error $(PG_CONFIG) does not run: install the server headers of a PostgreSQL, 15 to 18 ("make setup" does), or give PG_CONFIG=/path/to/pg_config)
endif
ifeq (,$(wildcard $(PGXS)))
$(error $(PGXS) is missing: install the package postgresql-server-dev-15, or that of your version ("make setup" does))
endif
PG_MAJOR := $(shell $(PG_CONFIG) --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
ifeq (,$(filter $(PG_KNOWN),$(PG_MAJOR)))
$(error $(PG_CONFIG) is of PostgreSQL $(PG_MAJOR), and hashgraph_join is for PostgreSQL 15 to 18)
endif

# PostgreSQL may want bitcode for its JIT, made by a clang that is not here.
PG_MAKEFILE := $(dir $(PGXS))../Makefile.global
PG_CLANG := $(shell sed -n 's/^CLANG[ ]*=[ ]*//p' $(PG_MAKEFILE))
PG_LLVM_BIN := $(shell sed -n 's/^LLVM_BINPATH[ ]*=[ ]*//p' $(PG_MAKEFILE))
ifeq (,$(and $(shell command -v $(or $(PG_CLANG),clang-none)),$(wildcard $(PG_LLVM_BIN)/llvm-lto)))
override with_llvm := no
endif

# Faults that tests ask for (src/base/faults.c), where PostgreSQL has assertions.
ifneq (,$(findstring --enable-cassert,$(shell $(PG_CONFIG) --configure)))
PG_CPPFLAGS += -DHGJ_MEM_TEST
endif

include $(PGXS)

# The CUDA engine: a library of its own, of nvcc's making, that needs neither
# PostgreSQL's headers nor a GPU to be built.
include $(wildcard cuda/Makefile.inc)
ifneq (,$(CUDA_LIBRARY))
all: $(CUDA_LIBRARY)
install: install-cuda
installdirs: installdirs-cuda
uninstall: uninstall-cuda
clean: clean-cuda
endif

# PostgreSQL's headers are somebody else's: no warnings from them.
override CPPFLAGS := $(patsubst -I$(includedir_server),-isystem $(includedir_server),$(patsubst -I$(includedir_internal),-isystem $(includedir_internal),$(CPPFLAGS)))

objects: $(OBJS)
.PHONY: objects

# A changed header rebuilds the objects that include it, changed flags all.
$(OBJS): override CFLAGS += -MMD -MP
$(OBJS): build/flags
$(MODULE_big).so: $(EXPORTS)
# Loops over arrays: with -O3 the compiler makes vector code of them.
$(filter src/expr/program_ops_%.o src/kept/chunk_read.o src/threads/%.o,$(OBJS)): override CFLAGS += -O3
# What tells one build from another (src/base/build_id.c), of which only that file knows.
BUILD_ID := $(shell cat $(SRCS) $(HDRS) | cksum | { read -r sum rest; printf '%06x' $$((sum & 0xffffff)); })
src/base/build_id.o src/base/build_id.bc src/base/build_id.c.strict: override CPPFLAGS += -DHGJ_BUILD='"$(BUILD_ID)"'
src/base/build_id.o: $(SRCS) $(HDRS)
# PostgreSQL's idiom `int i < lengthof(array)` is a warning of -Wextra.
PG_SIDE := $(filter-out src/engine/%,$(SRCS))
$(PG_SIDE:.c=.o) $(PG_SIDE:=.strict): override CFLAGS += -Wno-sign-compare
# Loops over the rows of a page or a batch.
VECTORIZED := columns/batch columns/keys scan/page_attributes scan/page_columns scan/page_output
$(VECTORIZED:%=src/%.o): override CFLAGS += $(CFLAGS_VECTORIZE)
$(OBJS:.o=.bc): $(HDRS) build/flags
-include $(wildcard $(SRCS:.c=.d))

FLAGS_NOW := $(CC) $(CFLAGS) $(CPPFLAGS) $(PG_CONFIG) $(shell $(PG_CONFIG) --version)
ifneq ($(FLAGS_NOW),$(file <build/flags))
.PHONY: build/flags
endif
build/flags:
	$(shell mkdir -p build)$(file >$@,$(FLAGS_NOW))

# For the lint: all sources through one compiler, nothing written.
.PHONY: compile-strict $(SRCS:=.strict)
compile-strict: $(SRCS:=.strict)
$(SRCS:=.strict): %.strict:
	$(CC) $(CFLAGS) -Werror $(CPPFLAGS) -c -o /dev/null $*

endif
