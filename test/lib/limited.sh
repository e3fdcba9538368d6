#!/usr/bin/env bash
#
# Runs a command with its output in a file, and ends it where nothing can be hoped for:
#
#   test/lib/limited.sh SECONDS SILENCE LOG COMMAND ...
#
# The command is stopped after SECONDS (0: never), or when it has written nothing to LOG
# for SILENCE seconds, which is what a hang looks like: a slow machine writes, too, only
# later.  LOG says so then, and the exit status is 124; else it is the command's.
#
# The command has a process group of its own, all of which is ended with it: first by
# SIGTERM, so that servers and folders are removed, a minute later by SIGKILL.
set -uo pipefail

limit=$1
silence=$2
log=$3
shift 3

# With job control each background job gets a process group.
set -m
"$@" >"$log" 2>&1 </dev/null &
child=$!
set +m

stop()
{
	local i
	kill -TERM -- "-$child" 2>/dev/null
	for ((i = 0; i < 60; i++)); do
		kill -0 -- "-$child" 2>/dev/null || break
		sleep 1
	done
	kill -KILL -- "-$child" 2>/dev/null
	wait "$child" 2>/dev/null
}
trap 'stop; exit 143' TERM INT HUP

while kill -0 "$child" 2>/dev/null; do
	# in the background, as a trap waits for the end of what runs in front
	sleep 1 &
	wait $!
	written=$(stat -c %Y "$log")
	reason=
	((limit == 0 || SECONDS < limit)) || reason="the time for it was up"
	(($(date +%s) - written < silence)) || reason="it had written nothing for $silence s"
	if [[ -n $reason ]] && kill -0 "$child" 2>/dev/null; then
		stop
		echo "check: stopped after $SECONDS s: $reason" >>"$log"
		exit 124
	fi
done
wait "$child"
