//! Sessions and what they wait for: the state now.

use super::{
    CORES, DISK, FILES, Item, LOCK, LOCK_WAIT_AGE, LOCK_WAITING, N, SERVER, SESSIONS, TRANSACTIONS, WAL, When, constant, item, now,
    origin,
};
use crate::api::{Class, Gauge, Layer, Unit};
use crate::postgres::views::View;

/// Client sessions, ours apart.
macro_rules! clients {
    ($condition:literal) => {
        &[origin(View::Sessions, &[], concat!("count(*) FILTER (WHERE backend_type = 'client backend' AND ", $condition, ")"))]
    };
}

/// Sessions and their parallel workers that are inside a statement.
macro_rules! working {
    ($condition:literal) => {
        &[origin(
            View::Sessions,
            &[],
            concat!(
                "count(*) FILTER (WHERE backend_type IN ('client backend', 'parallel worker') AND state = 'active' AND ",
                $condition,
                ")"
            ),
        )]
    };
}

/// Whatever waits for a lock, background processes too: what the waits file lists.
macro_rules! locks {
    ($condition:literal) => {
        &[origin(View::Sessions, &[], concat!("count(*) FILTER (WHERE wait_event_type = 'Lock' AND ", $condition, ")"))]
    };
}

macro_rules! oldest {
    ($since:literal, $condition:literal) => {
        &[origin(
            View::Sessions,
            &[],
            concat!(
                "greatest(coalesce(max(extract(epoch FROM clock_timestamp() - ",
                $since,
                ")) FILTER (WHERE backend_type = 'client backend' AND ",
                $condition,
                "), 0), 0)"
            ),
        )]
    };
}

macro_rules! setting {
    ($expression:literal) => {
        &[origin(View::Server, &[], $expression)]
    };
}

const fn slots(name: &'static str, help: &'static str) -> Gauge {
    now(name, Class::Utilisation, help).of("sessions_usable").at(SERVER, SESSIONS)
}

const fn queue(name: &'static str, layer: Layer, resource: &'static str, help: &'static str) -> Gauge {
    now(name, Class::Queue, help).at(layer, resource)
}

/// In the order of the columns.
pub const ITEMS: &[Item] = &[
    item(
        slots("sessions_used", "client sessions; at the usable slots new ones are refused").own(1.0),
        &[origin(View::Sessions, &[], "1 + count(*) FILTER (WHERE backend_type = 'client backend')")],
    ),
    item(
        constant("sessions_usable", N, "slots for ordinary users: max_connections less the reserved ones").at(SERVER, SESSIONS),
        setting!(
            "current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int \
             - coalesce(nullif(current_setting('reserved_connections', true), '')::int, 0)"
        ),
    ),
    item(slots("sessions_active", "client sessions inside a statement, waiting or not"), clients!("state = 'active'")),
    item(slots("sessions_idle", "client sessions that hold a slot and do nothing"), clients!("state = 'idle'")),
    item(
        slots(
            "sessions_idle_in_transaction",
            "client sessions that wait for their application inside a transaction, failed or not",
        )
        .at(SERVER, TRANSACTIONS),
        clients!("state LIKE 'idle in transaction%'"),
    ),
    item(
        now(
            "sessions_on_cpu",
            Class::Occupancy,
            "sessions and parallel workers inside a statement that wait for nothing: they run or want to",
        )
        .of(CORES)
        .at(SERVER, "postgres CPU"),
        working!("wait_event_type IS NULL"),
    ),
    item(
        queue(LOCK_WAITING, LOCK, "postgres locks", "sessions that wait for a lock of any kind"),
        &[origin(View::Sessions, &[], "count(*) FILTER (WHERE wait_event_type = 'Lock')")],
    ),
    item(
        queue(
            "row_lock_waiting",
            LOCK,
            "postgres row locks",
            "sessions that wait for a row, or for the transaction that holds it or a unique key",
        ),
        locks!("wait_event IN ('transactionid', 'tuple')"),
    ),
    item(
        queue("relation_lock_waiting", LOCK, "postgres table locks", "sessions that wait for a lock on a table or index"),
        locks!("wait_event = 'relation'"),
    ),
    item(
        queue("extend_lock_waiting", LOCK, "postgres file extension", "sessions that wait to add a page to a table or index"),
        locks!("wait_event = 'extend'"),
    ),
    item(
        queue("advisory_lock_waiting", LOCK, "postgres advisory locks", "sessions that wait for an advisory lock"),
        locks!("wait_event IN ('advisory', 'userlock')"),
    ),
    item(
        queue(
            "other_lock_waiting",
            LOCK,
            "postgres locks",
            "sessions that wait for another kind of lock (virtualxid, object, spectoken, …)",
        ),
        locks!("wait_event NOT IN ('transactionid', 'tuple', 'relation', 'extend', 'advisory', 'userlock')"),
    ),
    item(
        Gauge::new(LOCK_WAIT_AGE, Class::Age, Unit::Seconds, "the longest wait for a lock under way").at(LOCK, "postgres locks"),
        &[],
    )
    .when(When::Waits),
    item(
        queue("lwlock_waiting", SERVER, "postgres internal locks", "sessions that wait for a lightweight lock of the server"),
        working!("wait_event_type = 'LWLock'"),
    ),
    // The names were written in another way before 13: wal_insert, WALWriteLock.
    item(
        queue("lwlock_wal_waiting", SERVER, WAL, "of these: to insert into or write the WAL"),
        working!("wait_event_type = 'LWLock' AND wait_event ILIKE 'wal%'"),
    ),
    item(
        queue("lwlock_buffer_waiting", SERVER, "postgres buffers", "of these: for a page in memory or the map of them"),
        working!("wait_event_type = 'LWLock' AND replace(wait_event, '_', '') ~* '^(buffercontent|buffermapping|bufferio)'"),
    ),
    item(
        queue("lwlock_lockmanager_waiting", SERVER, "postgres lock table", "of these: for the table of locks itself"),
        working!("wait_event_type = 'LWLock' AND replace(wait_event, '_', '') ~* '^(lockmanager|lockfastpath)'"),
    ),
    item(
        queue(
            "lwlock_snapshot_waiting",
            SERVER,
            "postgres snapshots",
            "of these: for the list of transactions or its subtransactions",
        ),
        working!("wait_event_type = 'LWLock' AND wait_event ~* '^(procarray|xidgen|subtrans|xact|clog|multixact)'"),
    ),
    item(
        queue("buffer_pin_waiting", LOCK, "postgres buffer pins", "sessions that wait until nobody looks at a page"),
        working!("wait_event_type LIKE 'Buffer%'"),
    ),
    item(
        queue("io_waiting", DISK, "postgres files", "sessions that wait for a file to be read or written"),
        working!("(wait_event_type = 'IO' OR wait_event_type = 'IPC' AND wait_event ILIKE 'bufferio')"),
    ),
    item(
        queue("io_read_waiting", DISK, FILES, "of these: for pages of tables and indexes to be read"),
        working!(
            "(wait_event_type = 'IO' AND wait_event ~* '^(datafileread|datafileprefetch|aioio)' OR wait_event_type = 'IPC' AND wait_event ILIKE 'bufferio')"
        ),
    ),
    item(
        queue("io_wal_waiting", DISK, WAL, "of these: for the WAL to be written or synced"),
        working!("wait_event_type = 'IO' AND wait_event ILIKE 'wal%'"),
    ),
    item(
        queue("io_temp_waiting", DISK, "postgres temporary files", "of these: for temporary files"),
        working!("wait_event_type = 'IO' AND wait_event ILIKE 'buffile%'"),
    ),
    item(
        queue("sync_rep_waiting", SERVER, "postgres synchronous replication", "sessions whose commit waits for a replica"),
        working!("wait_event = 'SyncRep'"),
    ),
    item(
        slots("client_write_waiting", "sessions that wait for the client to take the reply").at(Layer::App, "postgres clients"),
        working!("wait_event_type = 'Client' AND wait_event = 'ClientWrite'"),
    ),
    item(
        Gauge::new("transaction_age_seconds", Class::Age, Unit::Seconds, "the oldest transaction of a client")
            .at(SERVER, TRANSACTIONS),
        oldest!("xact_start", "true"),
    ),
    item(
        Gauge::new("statement_age_seconds", Class::Age, Unit::Seconds, "the oldest statement under way").at(SERVER, TRANSACTIONS),
        oldest!("query_start", "state = 'active'"),
    ),
    item(
        Gauge::new(
            "idle_in_transaction_age_seconds",
            Class::Age,
            Unit::Seconds,
            "the longest stay inside a transaction without a statement",
        )
        .at(SERVER, TRANSACTIONS),
        oldest!("state_change", "state LIKE 'idle in transaction%'"),
    ),
    item(
        now("xmin_age", Class::Level, "transactions since the oldest snapshot in use: what vacuum cannot remove")
            .at(SERVER, TRANSACTIONS),
        &[origin(View::Sessions, &[], "coalesce(max(age(backend_xmin)), 0)")],
    ),
    item(
        now("parallel_workers", Class::Utilisation, "workers of parallel statements")
            .of("max_parallel_workers")
            .at(SERVER, "postgres parallel workers"),
        &[origin(View::Sessions, &[], "count(*) FILTER (WHERE backend_type = 'parallel worker')")],
    ),
    item(
        constant("max_parallel_workers", N, "parallel workers at most").at(SERVER, "postgres parallel workers"),
        setting!("least(current_setting('max_parallel_workers')::int, current_setting('max_worker_processes')::int)"),
    ),
    item(
        now("autovacuum_workers", Class::Utilisation, "autovacuum workers that run")
            .of("autovacuum_max_workers")
            .at(SERVER, "postgres autovacuum"),
        &[origin(View::Sessions, &[], "count(*) FILTER (WHERE backend_type = 'autovacuum worker')")],
    ),
    item(
        constant("autovacuum_max_workers", N, "autovacuum workers at most").at(SERVER, "postgres autovacuum"),
        setting!("current_setting('autovacuum_max_workers')::int"),
    ),
];
