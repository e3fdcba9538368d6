# shellcheck shell=bash
#
# The library of the fake device (test/fake), and that of the thread engine beside it, where the
# server's user may read them, which may not see this tree.  Source it in a script that stands
# in the repository's root, then:
#
#   hgj_fake_library AT_EXIT    builds it, and sets HGJ_FAKE_LIBRARY; AT_EXIT is called with
#                               a command that is to run when the script ends
hgj_fake_library()
{
	local folder
	make -s -C test/fake build/fake.so build/threads.so || return 1
	folder=$(mktemp -d /tmp/hgj_fake.XXXXXX)
	"$1" "rm -rf '$folder'"
	chmod 755 "$folder"
	install -m 755 test/fake/build/fake.so "$folder/fake.so"
	install -m 755 test/fake/build/threads.so "$folder/threads.so"
	HGJ_FAKE_LIBRARY=$folder/fake.so
}
