# shellcheck shell=bash disable=SC2154 # cache, here and dir come from lib.sh, pid from the function that waits
# What the scripts of MySQL and MariaDB share: the schema and the users, and a data folder prepared once, since making one
# takes seconds and copying it does not. Sourced, never run.

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

# template NAME STAMP SERVER…: put a copy of the prepared data folder at $dir/data, unless it is there. It is prepared anew
# when the file STAMP or the script that makes it is newer. Needs `initialise FOLDER`.
template() {
    local name=$1 stamp=$2 ready=$cache/template-$1
    shift 2
    [[ ! -d $dir/data ]] || return 0
    mkdir -p "$cache"
    (
        flock 8
        if [[ ! $ready -nt $stamp || ! $ready -nt $here/sql.sh || ! $ready -nt $here/$name ]]; then
            rm -rf "$ready" "$ready.new"
            prepare_template "$ready.new" "$@"
            mv "$ready.new" "$ready"
            touch "$ready"
        fi
        rm -rf "$dir/data.new"
        cp -a --reflink=auto "$ready" "$dir/data.new"
        mv "$dir/data.new" "$dir/data"
    ) 8>"$cache/template-$name.lock"
}

prepare_template() {
    local data=$1 log=$1.log pid start_ticks
    shift
    initialise "$data" >"$log" 2>&1 || die "cannot make a data folder: $(tail -n 5 "$log")"
    setup_sql >"$data.sql"
    "$@" --datadir="$data" --init-file="$data.sql" --skip-networking --socket="$data.sock" --pid-file="$data.pid" \
        </dev/null >"$log" 2>&1 9>&- 8>&- &
    pid=$!
    start_ticks=$(start_time "$pid") || die "cannot start on a new data folder: $(tail -n 5 "$log")"
    wait_until 60 ready_or_gone || true
    stop_process "$pid" "$start_ticks"
    if grep -E '\[ERROR\]|^ERROR' "$log" >&2 || ! grep -q 'ready for connections' "$log"; then
        die "the set-up of $data failed"
    fi
    # The identity of the server: every copy makes its own.
    rm -f "$data/auto.cnf" "$data.sql" "$log"
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
