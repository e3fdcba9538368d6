# shellcheck shell=bash
#
# Results of a script that tests, one line each.  Source it; what has passed and failed is
# counted in `passed` and `failed`.
passed=0
failed=0
ok()
{
	passed=$((passed + 1))
	echo "ok - $1"
}
not_ok()
{
	failed=$((failed + 1))
	echo "not ok - $1"
}
