# shellcheck shell=bash disable=SC2154 # here comes from lib.sh, pid from the function that waits
# What the scripts of MySQL and MariaDB share: the schema, the users, and the greeting. Sourced, never run.

# shellcheck source=tests/servers/template.sh
source "$here/template.sh"

setup_sql() {
    cat <<'SQL'
CREATE DATABASE shop;
CREATE TABLE shop.slot (id INT PRIMARY KEY, event INT, taken INT) ENGINE=InnoDB;
INSERT INTO shop.slot WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i, 1 + (i - 1) DIV 100, 0 FROM n;
CREATE USER IF NOT EXISTS root@'127.0.0.1';
GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;
CREATE USER probe@'%' IDENTIFIED BY 'probe';
GRANT PROCESS, REPLICATION CLIENT ON *.* TO probe@'%';
GRANT SELECT ON performance_schema.* TO probe@'%';
CREATE USER blind@'%' IDENTIFIED BY 'blind';
SQL
}

# set_up FOLDER SERVER…: run the statements in a server without a port, and end it.
set_up() {
    local data=$1 log=$1.setup.log pid start_ticks
    shift
    setup_sql >"$data.sql"
    "$@" --datadir="$data" --init-file="$data.sql" --skip-networking --socket="$data.sock" --pid-file="$data.pid" \
        </dev/null >"$log" 2>&1 9>&- 8>&- &
    pid=$!
    start_ticks=$(start_time "$pid") || return 1
    wait_until 60 ready_or_gone || true
    stop_process "$pid" "$start_ticks"
    # The identity of the server: every copy makes its own.
    rm -f "$data/auto.cnf"
    cat "$log"
    # Neither stops at a statement that fails, both say so here.
    ! grep -qE '\[ERROR\]|^ERROR' "$log" && grep -q 'ready for connections' "$log"
}
ready_or_gone() { ! running "$pid" "$start_ticks" || grep -q 'ready for connections' "$log"; }

# greets PORT: the server sends its greeting, a packet with protocol version 10, and not an error.
greets() {
    local part="" _
    { exec 8<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null || return 1
    # Read up to the fourth NUL: length (3 bytes, two of them 0), number (0), then the version as text.
    for _ in 1 2 3 4; do IFS= LC_ALL=C read -r -t 2 -d '' part <&8 || break; done 2>/dev/null
    exec 8>&-
    [[ $part == $'\n'* ]]
}
