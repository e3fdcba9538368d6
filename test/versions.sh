#!/usr/bin/env bash
#
# Other versions of PostgreSQL, from later releases of Debian: folders that
# debootstrap makes from the mirror that this machine's apt uses, kept in
# ${HGJ_CACHE:-/var/cache/hashgraph_join}/debian.  Needs root (or sudo).
#
#   test/versions.sh make 17             makes the folder if need be, prints it
#   test/versions.sh in 17 COMMAND ...   runs a command in a copy of this tree there
#   test/versions.sh check [17 18]       regress, isolation, tap and random there, and timescaledb
#                                        where Debian has it
#                                        (HGJ_VERSION_SUITES="cassert pg_regression sqlsmith":
#                                        others), in the size of make check
#                                        (HGJ_VERSION_GOAL=check-full: all of it;
#                                        HGJ_AFTER_CHECK=yes: without the stress that has just run here,
#                                        and most of TAP with the newest only);
#                                        the one of 17 upgrades from 15 (test/old_postgresql.sh)
#   test/versions.sh bare trixie COMMAND ...
#                                        runs a command in a clone of this tree, in a
#                                        Debian that has nothing yet and is gone then
#
# The last line of check is `N passed, N failed`.
set -euo pipefail

# What is made here is not part of the make that called us.
unset MAKELEVEL MAKEFLAGS MFLAGS

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Settings of the suites, which check hands on (test/check.sh).
handed_on=(HGJ_RANDOM_SEEDS HGJ_RANDOM_QUERIES HGJ_CASSERT_QUERIES HGJ_SQLSMITH_SECONDS HGJ_SUITES_AT_ONCE)
if ((EUID != 0)); then
	exec sudo -n --preserve-env="$(IFS=, && echo "HGJ_AFTER_CHECK,HGJ_CACHE,HGJ_LENT,HGJ_VERSION_GOAL,HGJ_VERSION_SUITES,${handed_on[*]}")" \
		bash "$top/test/versions.sh" "$@"
fi
# shellcheck source=test/lib/cache.sh
. "$top/test/lib/cache.sh"

# Where Debian has what, the most settled release first.
releases=(trixie forky sid)
tree=/root/hashgraph_join

fail()
{
	echo "versions: $*" >&2
	exit 1
}

mirror()
{
	local uri
	uri=$(apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' | sed -n 's/^Debian //p' | head -n 1)
	[[ -n $uri ]] || fail "apt has no mirror of Debian"
	printf '%s\n' "$uri"
}

# The first release with the packages of a major version.
release_of()
{
	local release uri
	uri=$(mirror)
	for release in "${releases[@]}"; do
		if wget -q -O - "${uri%/}/dists/$release/main/binary-$(dpkg --print-architecture)/Packages.xz" |
			xz -dc | grep -x "Package: postgresql-server-dev-$1" >/dev/null; then
			printf '%s\n' "$release"
			return
		fi
	done
	fail "$uri has PostgreSQL $1 in none of ${releases[*]}"
}

# Debian's smallest system in a new folder.
bootstrap()
{
	local release=$1 dir=$2 script=$1
	[[ -e /usr/share/debootstrap/scripts/$release ]] || script=sid
	echo "versions: making a Debian $release in $dir" >&2
	debootstrap --variant=minbase "$release" "$dir" "$(mirror)" "$script" >"$dir.log" 2>&1 || {
		tail -n 20 "$dir.log" >&2
		fail "debootstrap failed: see $dir.log"
	}
}

# Runs a command in the folder, with file systems and processes of its own that end
# with it.  HGJ_LENT: a folder of ours that is to be read there, under the same name.
inside()
{
	local dir=$1
	shift
	unshare --mount --pid --fork --kill-child bash -c '
		dir=$1
		lent=$2
		shift 2
		mount -t proc proc "$dir/proc" && mount --rbind /dev "$dir/dev" && mount -t tmpfs shm "$dir/dev/shm" || exit
		if [[ -n $lent ]]; then
			mkdir -p "$dir$lent" && mount --bind "$lent" "$dir$lent" && mount -o remount,bind,ro "$dir$lent" || exit
		fi
		exec chroot "$dir" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 "$@"
		' inside "$dir" "${HGJ_LENT:-}" "$@" </dev/null
}

# This tree without what has been built in it.  What has been built there before
# stays, and is up to date where the sources are; but not what has been built of
# another tree, whose sources may be older than its objects.
copy_tree()
{
	local to=$1$tree
	if [[ $(cat "$to.from" 2>/dev/null) != "$top" ]]; then
		rm -rf "$to" "$to.before"
	fi
	mkdir -p "$to"
	printf '%s\n' "$top" >"$to.from"
	(cd "$top" && git -c safe.directory="$top" ls-files -co --exclude-standard |
		while read -r file; do [[ ! -e $file ]] || echo "$file"; done) | sort >"$to.files"
	if [[ -e $to.before ]]; then
		(cd "$to" && comm -13 "$to.files" "$to.before" | tr '\n' '\0' | xargs -0 -r rm -f)
	fi
	tar -C "$top" -c -T "$to.files" | tar -C "$to" -x --no-same-owner
	mv "$to.files" "$to.before"
}

# Makes the folder of a major version if need be; sets dir.
make_version()
{
	local major=$1 release
	dir=$HGJ_CACHE/debian/$major
	[[ ! -e $dir/.done ]] || return 0
	bash "$top/test/setup.sh" versions >&2
	release=$(release_of "$major")
	mkdir -p "$HGJ_CACHE/debian"
	rm -rf --one-file-system "$dir"
	bootstrap "$release" "$dir"
	# A mirror of what is not released yet may be older than that allows.
	echo 'Acquire::Check-Valid-Until "false";' >"$dir/etc/apt/apt.conf.d/hashgraph_join"
	copy_tree "$dir"
	inside "$dir" bash "$tree/test/setup.sh" >&2
	[[ -e $dir/usr/lib/postgresql/$major/bin/pg_config ]] || fail "what was installed in $dir is not PostgreSQL $major"
	touch "$dir/.done"
}

# One at a time in a folder.
locked()
{
	mkdir -p "$HGJ_CACHE/debian"
	exec 9>"$HGJ_CACHE/debian/$1.lock"
	flock 9
}

run_in()
{
	local major=$1
	shift
	locked "$major"
	make_version "$major"
	copy_tree "$dir"
	inside "$dir" env -C "$tree" "$@" 9>&-
}

# A folder that was made before the tests wanted it gets it now.
has_timescaledb()
{
	(run_in "$1" bash test/setup.sh >&2)
	[[ -e $HGJ_CACHE/debian/$1/usr/lib/postgresql/$1/lib/timescaledb.so ]]
}

check()
{
	local major log name passed=0 failed=0 settings=() old suites few ours stress without newest
	log=$(mktemp)
	for name in "${handed_on[@]}"; do
		[[ -z ${!name:-} ]] || settings+=("$name=${!name}")
	done
	for major in "$@"; do
		echo "== PostgreSQL $major"
		# one to upgrade from, in the first of the later releases
		old=
		if [[ $major == 17 && " ${HGJ_VERSION_SUITES:-tap} " == *" tap "* ]]; then
			old=$(run_in "$major" bash test/old_postgresql.sh "$(mirror)") || {
				echo "versions: PostgreSQL 15, to upgrade from, could not be made: counted as a failure"
				failed=$((failed + 1))
			}
		fi
		# Files about ourselves, not about PostgreSQL, run elsewhere: those of the GPU and others with
		# the newest version only, some not at all.
		# What takes longest tries our own machinery: once on this machine is enough.
		suites="regress isolation tap random" few=() newest=${*: -1}
		without="wide dictionaries keys_only parallel_build probe_order"
		ours='005|012|014|018|027|031|032|033' stress='002|006|009|011|016|020|030|034'
		if [[ ${HGJ_VERSION_GOAL:-check} == check ]]; then
			if [[ $major != "$newest" ]]; then
				suites="regress isolation tap" few=(HGJ_FAKE_FILES=none) stress+='|026'
			fi
			if [[ -n ${HGJ_AFTER_CHECK:-} ]]; then
				# check has just run them: those that try values of all types and ways to read them,
				# and those about devices, whose code does not know PostgreSQL's version
				without+=" agg_divided agg_scans decimals filters functions group_types rescan types"
				ours+='|019|023|026|028|040|043|044|045|046' few+=(HGJ_FAKE_FILES=none HGJ_RANDOM_QUERIES=150 HGJ_DECIMALS=60000)
				# of TAP, the upgrade; the newest runs the other files
				if [[ $major != "$newest" ]]; then
					few+=(HGJ_TAP_ONLY=/025_)
					without+=" agg_exchange agg_parallel agg_subqueries aggregates batches join_types pages parallel transitions"
				fi
			fi
			if [[ $major != "$newest" || -n ${HGJ_AFTER_CHECK:-} ]]; then
				few+=(HGJ_TAP_WITHOUT="/($ours|$stress)_[^/]*\$" HGJ_RANDOM_SEEDS=1 HGJ_REGRESS_WITHOUT="$without")
			else
				few+=(HGJ_TAP_WITHOUT="/($ours)_[^/]*\$" HGJ_REGRESS_WITHOUT=wide)
			fi
		fi
		if has_timescaledb "$major"; then
			suites+=" timescaledb"
		else
			echo "versions: the suite timescaledb is left out: Debian has no TimescaleDB for PostgreSQL $major now"
		fi
		(run_in "$major" "${few[@]}" SUITES="${HGJ_VERSION_SUITES:-$suites}" \
			${old:+HGJ_OLD_POSTGRESQL="$old"} "${settings[@]}" make "${HGJ_VERSION_GOAL:-check}") 2>&1 | tee "$log" || true
		if [[ $(tail -n 20 "$log" | grep -E '^[0-9]+ passed, [0-9]+ failed$' | tail -n 1) =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
			passed=$((passed + BASH_REMATCH[1]))
			failed=$((failed + BASH_REMATCH[2]))
		else
			failed=$((failed + 1))
		fi
	done
	rm -f "$log"
	echo
	echo "$passed passed, $failed failed"
	((failed == 0))
}

bare()
{
	local release=$1 work rc=0
	shift
	bash "$top/test/setup.sh" versions >&2
	work=$(mktemp -d /var/tmp/hgj_bare.XXXXXX)
	chmod 755 "$work"
	# shellcheck disable=SC2064
	trap "rm -rf --one-file-system '$work'" EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	bootstrap "$release" "$work/debian"
	git -c safe.directory='*' clone -q "$top" "$work/debian$tree"
	inside "$work/debian" env -C "$tree" "$@" || rc=$?
	return "$rc"
}

what=${1:-}
case $what in
	make)
		locked "$2"
		make_version "$2"
		echo "$dir"
		;;
	in)
		shift
		run_in "$@"
		;;
	check)
		shift
		(($#)) || set -- 17 18
		check "$@"
		;;
	bare)
		shift
		bare "$@"
		;;
	*)
		sed -n '/^#   test/,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
		exit 2
		;;
esac
