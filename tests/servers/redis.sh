# shellcheck shell=bash disable=SC2154 # dir, port and pid come from lib.sh, server, prefix and command from the script
# What the scripts of Redis and Valkey share. Sourced, never run. Users: default (no password), probe/probe (what a probe
# needs), blind/blind (may only PING).

configure() {
    option "${prefix}_ARGS" "--maxclients 200 --maxmemory 64mb"
    cat >"$dir/$server.conf" <<CONF
bind 127.0.0.1
port $port
unixsocket $dir/$server.sock
dir $dir
daemonize no
save ""
appendonly no
user probe on >probe -@all +info +ping +hello +client|setname
user blind on >blind -@all +ping +hello +client|setname
CONF
}

serve() {
    local args=${prefix}_ARGS
    read -r -a args <<<"${!args}"
    exec "${command[@]}" "$dir/$server.conf" "${args[@]}"
}

answers() { says "$port" 'PING\r\n' '+PONG'; }

facts() {
    echo "${prefix}_URL=redis://127.0.0.1:$port/"
    echo "${prefix}_PROBE_URL=redis://probe:probe@127.0.0.1:$port/"
    echo "${prefix}_BLIND_URL=redis://blind:blind@127.0.0.1:$port/"
    echo "${prefix}_PORT=$port"
    echo "${prefix}_SOCKET=$dir/$server.sock"
    echo "${prefix}_PID=$pid"
}
