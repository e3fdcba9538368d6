# shellcheck shell=bash
#
# Where what takes long to make is kept, outside the tree: sets HGJ_CACHE.
if [[ -z ${HGJ_CACHE:-} ]]; then
	HGJ_CACHE=/var/cache/hashgraph_join
	if ((EUID != 0)) && ! mkdir -p "$HGJ_CACHE" 2>/dev/null; then
		HGJ_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/hashgraph_join
	fi
fi
mkdir -p "$HGJ_CACHE"
# The server's user must get through to the binaries.
chmod 755 "$HGJ_CACHE"
