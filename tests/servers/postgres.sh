# shellcheck shell=bash disable=SC2034,SC2154 # lib.sh, the script and this file use each other's variables
# What the scripts of PostgreSQL 15 and 18 share. Sourced, never run. Superuser postgres (no password); probe/probe (member
# of pg_monitor, what a probe needs) and blind/blind (no privilege) by password. Database `shop` with 1000 rows in `slot`.
# A backend leads a session of its own: to stop them all for a while, signal the children of POSTGRES…_PID as well.

# shellcheck source=tests/servers/template.sh
source "$here/template.sh"

prefix=POSTGRES$version
port_key=${prefix}_PORT
# TERM would wait for every client to leave.
stop_signal=INT

prepare() {
    # Without time zone files, as a small machine may have none, no zone but GMT is valid.
    TZ=GMT "${unprivileged[@]}" "$bin/initdb" -D "$1" -U postgres --auth=trust --locale=C --encoding=UTF8 --no-sync || return
    cat >"$1/pg_hba.conf" <<'HBA'
local all all                   trust
host  all postgres 127.0.0.1/32 trust
host  all all      127.0.0.1/32 scram-sha-256
HBA
    single "$1" postgres <<'SQL' && single "$1" shop <<'SQL'
CREATE DATABASE shop
CREATE ROLE probe LOGIN PASSWORD 'probe' IN ROLE pg_monitor
CREATE ROLE blind LOGIN PASSWORD 'blind'
SQL
CREATE TABLE slot (id int PRIMARY KEY, event int, taken int)
INSERT INTO slot SELECT i, 1 + (i - 1) / 100, 0 FROM generate_series(1, 1000) i
SQL
}

# single FOLDER DATABASE: run the statements of stdin, one a line, without a server.
single() { "${unprivileged[@]}" "$bin/postgres" --single -D "$1" -c exit_on_error=on "$2"; }

configure() {
    option "${prefix}_ARGS" ""
    template "postgres$version" "$bin/postgres" "$here/postgres$version" "$here/postgres.sh"
    # After a hard kill the children go by themselves, but not at once; the lock that is left may name a zombie.
    wait_until 10 nobody_in "$dir/data" || die "a process of an earlier start still runs in $dir/data"
    rm -f "$dir/data/postmaster.pid" "$dir"/.s.PGSQL.*
}
nobody_in() {
    local process
    for process in /proc/[0-9]*/cwd; do
        [[ $(readlink "$process" 2>/dev/null) != "$1" ]] || return 1
    done
}

serve() {
    local args=${prefix}_ARGS
    read -r -a args <<<"${!args}"
    # Quick and small: the tests need locks and counters, not durability.
    exec "${unprivileged[@]}" "$bin/postgres" -D "$dir/data" -k "$dir" -p "$port" -c listen_addresses=127.0.0.1 \
        -c fsync=off -c full_page_writes=off -c shared_buffers=64MB -c max_connections=200 "${args[@]}"
}

# A start packet for user postgres: R when the session is let in, E while the server still recovers.
answers() { says "$port" '\0\0\0\045\0\03\0\0user\0postgres\0database\0shop\0\0' R; }

facts() {
    echo "${prefix}_URL=postgres://postgres@127.0.0.1:$port/shop"
    echo "${prefix}_PROBE_URL=postgres://probe:probe@127.0.0.1:$port/shop"
    echo "${prefix}_BLIND_URL=postgres://blind:blind@127.0.0.1:$port/shop"
    echo "${prefix}_PORT=$port"
    echo "${prefix}_SOCKET_DIR=$dir"
    echo "${prefix}_PID=$pid"
}
