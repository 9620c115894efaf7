# shellcheck shell=bash disable=SC2154 # cache, dir and pid come from lib.sh
# A data folder prepared once and copied for each server, since making one takes seconds and copying it does not.
# Sourced, never run.

# template NAME FILE…: put a copy of the prepared data folder at $dir/data, unless one is there. It is prepared, by the
# script's `prepare FOLDER`, when it is missing or older than one of the files.
template() {
    local name=$1 ready=$cache/template-$1 file
    shift
    [[ ! -d $dir/data ]] || return 0
    mkdir -p "$cache"
    (
        flock 8
        for file in "$@"; do
            [[ $ready -nt $file ]] || rm -rf "$ready"
        done
        if [[ ! -d $ready ]]; then
            rm -rf "$ready".new*
            prepare "$ready.new" >"$ready.log" 2>&1 || { tail -n 20 "$ready.log" >&2 && die "cannot make $ready"; }
            mv "$ready.new" "$ready"
            touch "$ready"
            rm -rf "$ready".new* "$ready.log"
        fi
        rm -rf "$dir/data.new"
        cp -a --reflink=auto "$ready" "$dir/data.new"
        mv "$dir/data.new" "$dir/data"
    ) 8>"$cache/template-$name.lock"
}
