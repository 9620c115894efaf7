# shellcheck shell=bash disable=SC2034,SC2154 # this file and the scripts that source it use each other's variables
# What the server scripts share. Sourced, never run.
#
#   tests/servers/NAME start DIR   start on a free loopback port with everything it writes under DIR; wait until it
#                                  answers; write DIR/env. Over a folder that a server ran in before: the same data,
#                                  the same port, and the same options unless the environment says otherwise.
#   tests/servers/NAME stop DIR    end that process, by the recorded pid only
#
# DIR/env      KEY=VALUE lines, no quoting needed: NAME_URL, NAME_PORT, NAME_PID, …
# DIR/pid      "PID START": the process and its start time in clock ticks, so that a reused pid is never signalled.
#              Every server leads its own process group: kill -STOP -- -PID stops Apache with its children.
# DIR/log      what the server printed, all starts one after another
# DIR/options  the options of the last start
#
# Environment: WHATGIVES_SERVERS         folder of what `install` unpacked aside and of the prepared data folders
#              WHATGIVES_STARTED         a file to which every start appends "NAME PID START DIR", for a caller's clean-up
#              WHATGIVES_START_SECONDS   how long a start may take (60)

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
cache=${WHATGIVES_SERVERS:-${XDG_CACHE_HOME:-$HOME/.cache}/whatgives-servers}

die() {
    printf '%s: %s\n' "$(basename "$0")" "$1" >&2
    shift
    for hint in "$@"; do printf 'hint: %s\n' "$hint" >&2; done
    exit 1
}

# --- processes --------------------------------------------------------------------------------------------------------

# start_time PID: when the process began, in clock ticks since boot. Fails for one that is gone, or a zombie without other
# threads that still end.
start_time() {
    local stat fields
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
    read -r -a fields <<<"${stat##*) }"
    if [[ ${fields[0]} == [ZX] ]] && ((fields[17] <= 1)); then return 1; fi
    printf '%s\n' "${fields[19]}"
}

# running PID START: that very process is still there.
running() { [[ $(start_time "$1") == "$2" ]]; }

# wait_until SECONDS COMMAND…: run it every 50 ms until it succeeds; fails when the time is over.
wait_until() {
    local end=$(($(date +%s%N) / 1000000 + $1 * 1000))
    shift
    until "$@"; do
        (($(date +%s%N) / 1000000 < end)) || return 1
        sleep 0.05
    done
}

# stop_process PID START [SIGNAL]: SIGNAL (TERM), and KILL after 20 s; then whatever is left of its process group.
stop_process() {
    local pid=$1 start=$2 signal=${3:-TERM}
    if running "$pid" "$start"; then
        kill -s "$signal" -- "$pid" 2>/dev/null || true
        # A process stopped by a test with SIGSTOP sees the signal only when it goes on, its children likewise.
        kill -s CONT -- "-$pid" 2>/dev/null || true
        wait_until 20 gone "$pid" "$start" || kill -s KILL -- "$pid" 2>/dev/null || true
        wait_until 5 gone "$pid" "$start" || die "process $pid does not end, even by KILL"
    fi
    # No new process gets a number that a group still uses, so a leaderless group of this number is ours.
    if ! start_time "$pid" >/dev/null && kill -s KILL -- "-$pid" 2>/dev/null; then
        wait_until 5 group_gone "$pid" || die "processes of group $pid do not end"
    fi
}
gone() { ! running "$1" "$2"; }
group_gone() {
    local stat fields
    for stat in /proc/[0-9]*/stat; do
        { read -r stat <"$stat"; } 2>/dev/null || continue
        read -r -a fields <<<"${stat##*) }"
        [[ ${fields[2]} != "$1" || ${fields[0]} == Z ]] || return 1
    done
}

# What to put before a server that refuses to run as root: it becomes `nobody`, but may still reach files below folders
# that only root may enter (a cache in /root, a temporary folder of mode 0700). The secure bit lets access(2) know so too.
unprivileged=()
if ((EUID == 0)); then
    unprivileged=(setpriv --reuid=nobody --regid=nogroup --clear-groups
        --inh-caps=+dac_override --ambient-caps=+dac_override --securebits=+no_setuid_fixup)
fi

# --- ports ------------------------------------------------------------------------------------------------------------

listening() { grep -qsE ":$(printf %04X "$1") [0-9A-F]+:0000 0A " /proc/net/tcp /proc/net/tcp6; }

# Below the ports that the kernel gives to outgoing connections, so that none of those takes it between two starts.
# port_of KEY: the port that DIR/env says for KEY, else a free one.
port_of() {
    local saved=""
    if [[ -f $dir/env ]]; then saved=$(sed -n "s/^$1=//p" "$dir/env"); fi
    if [[ -n $saved ]]; then printf '%s\n' "$saved"; else free_port; fi
}
free_port() {
    local port
    for _ in {1..200}; do
        port=$((20000 + SRANDOM % 12000))
        listening "$port" || { printf '%s\n' "$port" && return; }
    done
    die "no free port between 20000 and 31999"
}

# http_answers PORT PATH: a GET gets a status line.
http_answers() {
    local line
    { exec 8<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null || return 1
    printf 'GET %s HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n' "$2" >&8
    IFS= read -r -t 2 line <&8 || line=
    exec 8>&-
    [[ $line == HTTP/1.* ]]
}

# says PORT REQUEST REPLY: what the server sends after REQUEST (with printf's escapes) begins with REPLY.
says() {
    local reply=""
    { exec 8<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null || return 1
    printf '%b' "$2" >&8
    IFS= LC_ALL=C read -r -t 2 -N ${#3} reply <&8 2>/dev/null || true
    exec 8>&-
    [[ $reply == "$3" ]]
}

# --- programs ---------------------------------------------------------------------------------------------------------

# aside FOLDER: sets `loader`, what to put before a program of Debian unstable unpacked in FOLDER, so that it runs with the
# C library it came with.
aside() {
    local found
    found=$(compgen -G "$1/usr/lib/*-linux-gnu*/ld-linux-*.so.*" | head -n 1) ||
        die "nothing is unpacked in $1" "$here/install"
    loader=("$found" --library-path "${found%/*}")
}
loader=()

# program NAME…: the path of the first that is installed.
program() {
    local found
    found=$(PATH=$PATH:/usr/sbin:/sbin type -P "$@" | head -n 1) || true
    [[ -n $found ]] || die "no program $* on this machine" "$here/install"
    printf '%s\n' "$found"
}

# --- options ----------------------------------------------------------------------------------------------------------

# option NAME DEFAULT: sets NAME from the environment, else from the last start in this folder, else to DEFAULT.
option() {
    local value
    if [[ -n ${!1+set} ]]; then
        value=${!1}
    elif [[ -f $dir/options ]] && value=$(grep -m 1 "^$1=" "$dir/options"); then
        eval "value=${value#*=}"
    else
        value=$2
    fi
    printf -v "$1" %s "$value"
    options+=("$1=$(printf %q "$value")")
}
options=()

# --- the two verbs ----------------------------------------------------------------------------------------------------
# A server script sets `port_key` (the line of DIR/env with its port) and may set `stop_signal`; it defines
#   configure   read options, make the data folder and the configuration
#   serve       exec the server in the foreground, on 127.0.0.1:$port
#   answers     succeeds when the server answers on $port
#   facts       print the lines of DIR/env ($pid, $port)

main() {
    local verb=${1:-}
    [[ $# == 2 && $verb =~ ^(start|stop)$ ]] || die "usage: $(basename "$0") start|stop DIR"
    [[ $verb == start || -d $2 ]] || die "no folder $2"
    mkdir -p "$2"
    dir=$(readlink -f "$2")
    # Unix sockets live in DIR, and the kernel takes 107 bytes of path.
    ((${#dir} < 90)) || die "the path of $dir is too long for a Unix socket: ${#dir} bytes of 89"
    exec 9>"$dir/lock"
    flock 9
    "$verb"_server
}

start_server() {
    local pid start_ticks
    if [[ -f $dir/pid ]]; then
        read -r pid start_ticks <"$dir/pid"
        # One that was killed a moment ago is still seen for a while.
        if [[ -f $dir/env ]] && ! wait_until 3 gone "$pid" "$start_ticks"; then return; fi
        # Killed hard: its children, if it has any, may still hold the port.
        stop_process "$pid" "$start_ticks"
    fi
    for _ in 1 2 3; do
        port=$(port_of "$port_key")
        options=()
        configure
        printf '%s\n' "${options[@]}" >"$dir/options"
        launch && return
        # Lost the port to somebody between looking and binding: once more with another.
        if [[ -f $dir/env ]] || ! listening "$port"; then break; fi
    done
    tail -n 20 "$dir/log" >&2
    die "did not start in $dir (port $port); the end of its log is above"
}

launch() {
    local pid start_ticks
    printf -- '--- start on port %s\n' "$port" >>"$dir/log"
    set -m # a process group of its own, and SIGINT not ignored
    (
        exec 9>&-
        serve
    ) </dev/null >>"$dir/log" 2>&1 &
    set +m
    pid=$!
    start_ticks=$(start_time "$pid") || return 1
    printf '%s %s\n' "$pid" "$start_ticks" >"$dir/pid"
    if [[ -n ${WHATGIVES_STARTED:-} ]]; then
        printf '%s %s %s %s\n' "$(basename "$0")" "$pid" "$start_ticks" "$dir" >>"$WHATGIVES_STARTED"
    fi
    if ! wait_until "${WHATGIVES_START_SECONDS:-60}" answers_or_gone || ! running "$pid" "$start_ticks"; then
        stop_process "$pid" "$start_ticks" KILL
        return 1
    fi
    facts >"$dir/env.new"
    mv "$dir/env.new" "$dir/env"
}
# Asked once only: a question may count in the server's own gauges.
answers_or_gone() { ! running "$pid" "$start_ticks" || answers; }

stop_server() {
    local pid start_ticks
    [[ -f $dir/pid ]] || return 0
    read -r pid start_ticks <"$dir/pid"
    stop_process "$pid" "$start_ticks" "${stop_signal:-TERM}"
    rm "$dir/pid"
}
