# shellcheck shell=bash
#
# Throw-away PostgreSQL servers for scripts.  Source it, then:
#
#   hgj_server_start ['conf line' ...]   exports PGHOST PGPORT PGUSER PGDATABASE
#                                        and HGJ_BIN (and the path of its log,
#                                        HGJ_SERVER_LOG)
#   hgj_server_stop
#   hgj_as_server command ...            runs as the server's user
#   hgj_install [PG_CONFIG]              builds and installs the extension
#   hgj_at_exit 'command'                runs when the script ends, however
#
# PG_CONFIG picks the PostgreSQL.  The server runs as a user who is not root,
# listens on a socket in its own directory only, and goes away with the
# script, on errors and on Ctrl-C too.

HGJ_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export HGJ_TOP

hgj_pg_config()
{
	bash "$HGJ_TOP/test/pg_config.sh"
}

# The major version of the PostgreSQL in use.
hgj_pg_major()
{
	"$(hgj_pg_config)" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/'
}

hgj_server_user()
{
	if ((EUID != 0)); then
		id -un
	else
		printf '%s\n' "${HGJ_SERVER_USER:-postgres}"
	fi
}

hgj_as_server()
{
	# Its user may be unable to enter the directory that we stand in.
	if ((EUID != 0)); then
		(cd / && exec "$@")
	else
		(cd / && exec runuser -u "$(hgj_server_user)" -- "$@")
	fi
}

hgj_as_root()
{
	if ((EUID == 0)); then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo -n "$@"
	else
		echo "this needs root: $*" >&2
		return 1
	fi
}

HGJ_EXIT_COMMANDS=()
hgj_run_exit_commands()
{
	local rc=$? i
	trap - EXIT INT TERM HUP
	for ((i = ${#HGJ_EXIT_COMMANDS[@]} - 1; i >= 0; i--)); do
		eval "${HGJ_EXIT_COMMANDS[i]}" || true
	done
	HGJ_EXIT_COMMANDS=()
	exit "$rc"
}

hgj_at_exit()
{
	# Traps of a parent shell are not those of a subshell: set them here.
	if [[ ${HGJ_EXIT_SHELL:-} != "$BASHPID" ]]; then
		HGJ_EXIT_SHELL=$BASHPID
		HGJ_EXIT_COMMANDS=()
		trap hgj_run_exit_commands EXIT
		trap 'exit 130' INT
		trap 'exit 143' TERM
		trap 'exit 129' HUP
	fi
	HGJ_EXIT_COMMANDS+=("$1")
}

hgj_server_start()
{
	local config bin dir line
	config=$(hgj_pg_config)
	bin=$("$config" --bindir)
	dir=$(mktemp -d /tmp/hgj.XXXXXX)
	hgj_at_exit "hgj_server_remove '$dir' '$bin'"
	if ((EUID == 0)); then
		chown "$(hgj_server_user)" "$dir"
	fi
	if ! hgj_as_server "$bin/initdb" -D "$dir/data" -A trust -U postgres -N \
		--no-locale -E UTF8 >"$dir/initdb.log" 2>&1; then
		cat "$dir/initdb.log" >&2
		return 1
	fi
	{
		echo "listen_addresses = ''"
		echo "unix_socket_directories = '$dir'"
		echo "port = 5432"
		echo "fsync = off"
		echo "full_page_writes = off"
		echo "synchronous_commit = off"
		echo "max_wal_size = '4GB'"
		echo "log_line_prefix = '%m [%p] %q%a '"
		for line in "$@"; do
			printf '%s\n' "$line"
		done
	} >>"$dir/data/postgresql.conf"
	if ! hgj_as_server "$bin/pg_ctl" -D "$dir/data" -l "$dir/server.log" -w -t 120 \
		start >"$dir/pg_ctl.log" 2>&1; then
		cat "$dir/pg_ctl.log" "$dir/server.log" >&2
		return 1
	fi
	export HGJ_BIN=$bin HGJ_SERVER_DIR=$dir HGJ_SERVER_LOG=$dir/server.log
	export PGHOST=$dir PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
	unset PGOPTIONS PGPASSWORD PGSERVICE PGHOSTADDR PGSSLMODE
}

hgj_server_remove()
{
	local dir=$1 bin=$2
	[[ -d $dir ]] || return 0
	if [[ -e $dir/data/postmaster.pid ]]; then
		hgj_as_server "$bin/pg_ctl" -D "$dir/data" -m immediate -w -t 60 stop \
			>/dev/null 2>&1 || true
	fi
	rm -rf "$dir"
}

hgj_server_stop()
{
	hgj_as_server "$HGJ_BIN/pg_ctl" -D "$HGJ_SERVER_DIR/data" -m fast -w -t 120 stop >/dev/null
	hgj_server_remove "$HGJ_SERVER_DIR" "$HGJ_BIN"
}

hgj_psql()
{
	"$HGJ_BIN/psql" -X -q -v ON_ERROR_STOP=1 "$@"
}

hgj_jobs()
{
	nproc 2>/dev/null || echo 2
}

# Builds in the tree and installs: what the demo and the benchmarks run.
hgj_install()
{
	local config
	config=$(hgj_pg_config)
	make -C "$HGJ_TOP" -s -j"$(hgj_jobs)" all PG_CONFIG="$config" "$@"
	hgj_as_root make -C "$HGJ_TOP" -s install PG_CONFIG="$config" "$@"
}

# Builds for another PostgreSQL in a copy, so that objects never mix.
hgj_install_copy()
{
	local config=$1 copy=$2
	shift 2
	rm -rf "$copy"
	mkdir -p "$copy"
	cp -a "$HGJ_TOP/Makefile" "$HGJ_TOP/hashgraph_join.control" "$HGJ_TOP/sql" \
		"$HGJ_TOP/expected" "$HGJ_TOP/src" "$copy/"
	mkdir -p "$copy/test"
	cp -a "$HGJ_TOP/test/isolation" "$copy/test/"
	find "$copy/src" \( -name '*.o' -o -name '*.bc' -o -name '*.d' \) -delete
	make -C "$copy" -s -j"$(hgj_jobs)" all PG_CONFIG="$config" "$@"
	make -C "$copy" -s install PG_CONFIG="$config" "$@"
}
