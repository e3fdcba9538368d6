# shellcheck shell=bash
#
# What runs regress files in ways of its own (test/spill, test/fake, test/gpu) compares
# their output with expected/ by this.  Source it.

# same_output NAME DIR FILTER LABEL: ok if DIR/results/NAME.out is what expected/ has, both
# as `FILTER NAME FILE` prints them; what differs stays in DIR/NAME.diff, its first lines are
# printed
same_output()
{
	local name=$1 dir=$2 filter=$3 label=$4
	if [[ -f $dir/results/$name.out ]] &&
		diff <("$filter" "$name" "expected/$name.out") <("$filter" "$name" "$dir/results/$name.out") >"$dir/$name.diff"; then
		return 0
	fi
	echo "not ok - $label"
	[[ ! -f $dir/$name.diff ]] || head -n "${HGJ_DIFF_LINES:-30}" "$dir/$name.diff" | cut -c1-300
	return 1
}
