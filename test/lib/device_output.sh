# shellcheck shell=bash
#
# How the output of regress files is compared where a device has joined (test/gpu/sql.sh,
# test/fake/regress.sh) with that of the CPU in expected/.  Source it.

# device_output TEST FILE: without what names an engine, its memory, or its choices
device_output()
{
	grep -vE 'Device Pipeline|Groups Left Out: |Scan Filter: |Columns by Host: |Host Decode: |Engine: |Device: |Device Memory: |Kernel Time: |Build: .* Probe: |Vertices: |Memory Usage|Fallback|^-+(\+-+)*$|QUERY PLAN|^\(([0-9]+) rows?\)$|hashgraph_join\.engine' "$2" | sed 's/^ *//; s/ *$//' | device_known "$1"
}

# What is known to differ on a device, and why.
device_known()
{
	case $1 in
		# a table's staging buffers alone are more than these files' work_mem
		agg_memory) sed -E 's/^([0-9]+ \|) [tf] /\1 ? /' ;;
		large) sed -E 's/^[tf]$/?/' ;;
		# joins in right form have match bits, and a device does not join so
		partition_join) sed -E '/^select count\(.*from many a/s/\| [tf]$/| ?/; /exists \(select/s/\| (#####pp)b? *\|/| \1 |/' ;;
		join_types) sed -E 's/^(Right (Semi|Anti)|no) +\|/? |/; s/, Right Anti, Right Semi,/,/' ;;
		types) sed -E 's/, Right Anti, Right Semi,/,/' ;;
		wide) awk '/^select most_memory/ { skip = 1 } /^$/ { skip = 0 } !skip' ;;
		# there is no filter in front of a table
		filter) grep -vxE 'Probe Filter: .*|none' ;;
		# a pipeline looks for an outer row before it builds a side that may raise an error, and reads
		# those pages again
		pages) awk '/same_scans\(.select x\.k, j\.\* from other x, lateral/ { skip = 1 } /^$/ { skip = 0 } !skip' ;;
		# how many follows from the server's work_mem, which is larger there
		messages) sed -E 's/goes to [0-9]+ partitions/goes to partitions/' ;;
		# a device's table does not give rows back: large build sides are read again
		rescan) sed -E 's/ +/ /g; /\| (yes|no)[a-z ]*\| (one|many)/s/\|.*//; s/^t \| [tf]$/t | ?/' ;;
		# nor one that the pages below a chain ask
		probe_order) awk '/asked\(/ { skip = 1 } /^$/ { skip = 0 } !skip' | grep -vE '"Place"|passed fewer' ;;
		# a GPU that is open for all sessions costs nothing to begin with
		why) sed -E 's/\| cuda   \|/| cpu    |/' ;;
		# the one that asks for the GPU is among them
		settings) grep -v '^Settings: ' ;;
		*) cat ;;
	esac
}
