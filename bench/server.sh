# A throw-away server for measuring, with this tree's library: sourced by run.sh
# and memory.sh, in the repository's root, with test/lib/server.sh in place.

memory_mb=$(awk '/^MemTotal/ {print int($2 / 1024)}' /proc/meminfo)

# bench_server SHARE MOST [CONFIGURATION ...]: one SHARE-th of the machine's
# memory, but MOST MB, are its shared buffers, in pages of 4 kB.
bench_server()
{
	local buffers=$((memory_mb / $1 < $2 ? memory_mb / $1 : $2))
	shift 2
	bash test/setup.sh build
	mkdir -p build/bench
	hgj_install with_cuda=no >build/bench/build.log 2>&1 || {
		tail -n 40 build/bench/build.log
		exit 1
	}
	hgj_server_start "shared_buffers = '${buffers}MB'" "huge_pages = off" "autovacuum = off" "jit = off" \
		"wal_level = minimal" "max_wal_senders = 0" "checkpoint_timeout = '1h'" "$@"
	hgj_psql -c "CREATE EXTENSION hashgraph_join"
}

# The one for TPC-H and SSB: a quarter of the memory, and workers enough.
bench_real_server()
{
	bench_server 4 6144 "maintenance_work_mem = '1GB'" "max_wal_size = '16GB'" \
		"max_worker_processes = $(($(nproc) + 16))" "max_parallel_workers = $(($(nproc) + 8))"
}
