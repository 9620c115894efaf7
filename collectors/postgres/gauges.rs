//! Every gauge of PostgreSQL: what it means, and the expression that gives it, by what the server has.
//!
//! An expression belongs to a view and needs some of its columns; of several the first is taken whose columns exist (they
//! moved and changed between 12 and 18). Every expression gives exactly one value, so that all fit into one row.

use super::views::View;
use crate::api::{Class, Gauge, Lag, Layer, Source, Unit, Worse};

/// Under which condition a gauge makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Always.
    Always,
    /// The server measures the time of its reads and writes.
    IoTiming,
    /// It is a standby.
    Standby,
    /// Something replicates from it.
    Replicas,
    /// It has replication slots.
    Slots,
    /// Lock waits are read: the value comes from them, not from the tick's statement.
    Waits,
    /// The server's cores are known: no statement tells them.
    Cores,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// The view.
    pub view: View,
    /// The columns of it that must exist.
    pub needs: &'static [&'static str],
    /// One value.
    pub expression: &'static str,
}

/// A gauge and its sources, the first that exists counts.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// The gauge.
    pub gauge: Gauge,
    /// When it makes sense.
    pub when: When,
    /// Where it comes from; empty for what is not part of the tick's statement.
    pub from: &'static [Origin],
}

const fn item(gauge: Gauge, from: &'static [Origin]) -> Item {
    Item { gauge, when: When::Always, from }
}

impl Item {
    const fn when(mut self, when: When) -> Self {
        self.when = when;
        self
    }
}

const fn origin(view: View, needs: &'static [&'static str], expression: &'static str) -> Origin {
    Origin { view, needs, expression }
}

/// Client sessions, ours apart.
macro_rules! clients {
    ($condition:literal) => {
        &[origin(
            View::Sessions,
            &[],
            concat!("count(*) FILTER (WHERE backend_type = 'client backend' AND ", $condition, ")"),
        )]
    };
}

/// Sessions and their parallel workers that are inside a statement.
macro_rules! working {
    ($condition:literal) => {
        &[origin(
            View::Sessions,
            &[],
            concat!("count(*) FILTER (WHERE backend_type IN ('client backend', 'parallel worker') AND state = 'active' AND ", $condition, ")"),
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

/// A sum over all databases.
macro_rules! databases {
    ($column:literal) => {
        &[origin(View::Databases, &[$column], concat!("sum(", $column, ")"))]
    };
}

macro_rules! setting {
    ($expression:literal) => {
        &[origin(View::Server, &[], $expression)]
    };
}

const SERVER: Layer = Layer::Server;
const LOCK: Layer = Layer::Lock;
const DISK: Layer = Layer::Disk;
const N: Unit = Unit::Count;

const SESSIONS: &str = "postgres sessions";
const TRANSACTIONS: &str = "postgres transactions";
const WAL: &str = "postgres WAL";
const FILES: &str = "postgres data files";

/// Counters reach the statistics at the end of a transaction, at most once a second.
const FLUSHED: Lag = Lag::Refreshed(1.0);

const fn now(name: &'static str, class: Class, help: &'static str) -> Gauge {
    Gauge::new(name, class, N, help)
}

const fn counter(name: &'static str, class: Class, unit: Unit, help: &'static str) -> Gauge {
    Gauge::counter(name, class, unit, help).lag(FLUSHED)
}

const fn slots(name: &'static str, help: &'static str) -> Gauge {
    now(name, Class::Utilisation, help).of("sessions_usable").at(SERVER, SESSIONS)
}

const fn queue(name: &'static str, layer: Layer, resource: &'static str, help: &'static str) -> Gauge {
    now(name, Class::Queue, help).at(layer, resource)
}

const fn setting(name: &'static str, unit: Unit, help: &'static str) -> Gauge {
    Gauge::new(name, Class::Constant, unit, help)
}

/// The age of the oldest wait for a lock, by the waits.
pub const LOCK_WAIT_AGE: &str = "lock_wait_age_seconds";
/// How many sessions wait for a lock: while it is 0, nothing more is asked.
pub const LOCK_WAITING: &str = "lock_waiting";
/// Cores of the server's machine.
pub const CORES: &str = "cores";

/// All of them, in the order of the columns.
pub const ITEMS: &[Item] = &[
    item(
        slots("sessions_used", "client sessions; at the usable slots new ones are refused").own(1.0),
        &[origin(View::Sessions, &[], "1 + count(*) FILTER (WHERE backend_type = 'client backend')")],
    ),
    item(
        setting("sessions_usable", N, "slots for ordinary users: max_connections less the reserved ones").at(SERVER, SESSIONS),
        setting!(
            "current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int \
             - coalesce(nullif(current_setting('reserved_connections', true), '')::int, 0)"
        ),
    ),
    item(slots("sessions_active", "client sessions inside a statement, waiting or not"), clients!("state = 'active'")),
    item(slots("sessions_idle", "client sessions that hold a slot and do nothing"), clients!("state = 'idle'")),
    item(
        slots("sessions_idle_in_transaction", "client sessions that wait for their application inside a transaction, failed or not")
            .at(SERVER, TRANSACTIONS),
        clients!("state LIKE 'idle in transaction%'"),
    ),
    item(
        now("sessions_on_cpu", Class::Occupancy, "sessions and parallel workers inside a statement that wait for nothing: they run or want to")
            .of(CORES)
            .at(SERVER, "postgres CPU"),
        working!("wait_event_type IS NULL"),
    ),
    item(
        queue(LOCK_WAITING, LOCK, "postgres locks", "sessions that wait for a lock of any kind"),
        &[origin(View::Sessions, &[], "count(*) FILTER (WHERE wait_event_type = 'Lock')")],
    ),
    item(
        queue("row_lock_waiting", LOCK, "postgres row locks", "sessions that wait for a row, or for the transaction that holds it or a unique key"),
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
        queue("other_lock_waiting", LOCK, "postgres locks", "sessions that wait for another kind of lock (virtualxid, object, spectoken, …)"),
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
        queue("lwlock_snapshot_waiting", SERVER, "postgres snapshots", "of these: for the list of transactions or its subtransactions"),
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
        working!("(wait_event_type = 'IO' AND wait_event ~* '^(datafileread|datafileprefetch|aioio)' OR wait_event_type = 'IPC' AND wait_event ILIKE 'bufferio')"),
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
        Gauge::new("transaction_age_seconds", Class::Age, Unit::Seconds, "the oldest transaction of a client").at(SERVER, TRANSACTIONS),
        oldest!("xact_start", "true"),
    ),
    item(
        Gauge::new("statement_age_seconds", Class::Age, Unit::Seconds, "the oldest statement under way").at(SERVER, TRANSACTIONS),
        oldest!("query_start", "state = 'active'"),
    ),
    item(
        Gauge::new("idle_in_transaction_age_seconds", Class::Age, Unit::Seconds, "the longest stay inside a transaction without a statement")
            .at(SERVER, TRANSACTIONS),
        oldest!("state_change", "state LIKE 'idle in transaction%'"),
    ),
    item(
        now("xmin_age", Class::Level, "transactions since the oldest snapshot in use: what vacuum cannot remove").at(SERVER, TRANSACTIONS),
        &[origin(View::Sessions, &[], "coalesce(max(age(backend_xmin)), 0)")],
    ),
    item(
        now("parallel_workers", Class::Utilisation, "workers of parallel statements").of("max_parallel_workers").at(SERVER, "postgres parallel workers"),
        &[origin(View::Sessions, &[], "count(*) FILTER (WHERE backend_type = 'parallel worker')")],
    ),
    item(
        setting("max_parallel_workers", N, "parallel workers at most").at(SERVER, "postgres parallel workers"),
        setting!("least(current_setting('max_parallel_workers')::int, current_setting('max_worker_processes')::int)"),
    ),
    item(
        now("autovacuum_workers", Class::Utilisation, "autovacuum workers that run").of("autovacuum_max_workers").at(SERVER, "postgres autovacuum"),
        &[origin(View::Sessions, &[], "count(*) FILTER (WHERE backend_type = 'autovacuum worker')")],
    ),
    item(
        setting("autovacuum_max_workers", N, "autovacuum workers at most").at(SERVER, "postgres autovacuum"),
        setting!("current_setting('autovacuum_max_workers')::int"),
    ),
    item(
        counter("deadlocks_total", Class::Event, N, "transactions that were ended to break a deadlock").at(LOCK, "postgres locks"),
        databases!("deadlocks"),
    ),
    item(
        counter("commits_total", Class::Throughput, N, "transactions that ended well, one a read by the sampler").own(1.0).at(SERVER, TRANSACTIONS),
        databases!("xact_commit"),
    ),
    item(
        counter("rollbacks_total", Class::Throughput, N, "transactions that were rolled back").worse(Worse::Up).at(SERVER, TRANSACTIONS),
        databases!("xact_rollback"),
    ),
    item(
        counter("active_ms_total", Class::Throughput, Unit::Milliseconds, "time spent inside statements, waits too").lag(Lag::Completion).at(SERVER, TRANSACTIONS),
        databases!("active_time"),
    ),
    item(
        Gauge::new("transaction_ms", Class::Level, Unit::Milliseconds, "mean time inside statements of a transaction; holds every wait")
            .derived(Source::Of(&["active_ms_total"], &["commits_total", "rollbacks_total"]))
            .lag(Lag::Completion)
            .at(SERVER, TRANSACTIONS),
        databases!("active_time"),
    ),
    item(counter("sessions_total", Class::Throughput, N, "sessions begun").at(SERVER, SESSIONS), databases!("sessions")),
    item(
        counter("sessions_abandoned_total", Class::Event, N, "sessions whose client was lost").at(SERVER, SESSIONS),
        databases!("sessions_abandoned"),
    ),
    item(
        counter("sessions_fatal_total", Class::Event, N, "sessions ended by a fatal error").at(SERVER, SESSIONS),
        databases!("sessions_fatal"),
    ),
    item(
        counter("sessions_killed_total", Class::Event, N, "sessions ended by an administrator or a timeout").at(SERVER, SESSIONS),
        databases!("sessions_killed"),
    ),
    item(
        counter("conflicts_total", Class::Event, N, "statements cancelled because they were in the way of recovery").at(SERVER, "postgres recovery"),
        databases!("conflicts"),
    ),
    item(
        counter("temp_files_total", Class::Throughput, N, "temporary files: sorts and hashes beyond work_mem").worse(Worse::Up).at(DISK, "postgres temporary files"),
        databases!("temp_files"),
    ),
    item(
        counter("temp_bytes_total", Class::Throughput, Unit::Bytes, "written to temporary files").worse(Worse::Up).at(DISK, "postgres temporary files"),
        databases!("temp_bytes"),
    ),
    item(
        counter("blocks_hit_total", Class::Throughput, N, "pages found in shared_buffers").at(SERVER, "postgres buffers"),
        databases!("blks_hit"),
    ),
    item(
        counter("blocks_read_total", Class::Throughput, N, "pages asked of the operating system").at(SERVER, "postgres buffers"),
        databases!("blks_read"),
    ),
    item(
        Gauge::new("hit_ratio", Class::Ratio, Unit::Ratio, "share of the pages that were found in shared_buffers")
            .derived(Source::Share(&["blocks_hit_total"], &["blocks_read_total"]))
            .lag(FLUSHED)
            .at(SERVER, "postgres buffers"),
        databases!("blks_hit"),
    ),
    item(
        counter("block_read_ms_total", Class::WaitSum, Unit::Milliseconds, "time waited for pages to be read (track_io_timing)").at(DISK, FILES),
        databases!("blk_read_time"),
    )
    .when(When::IoTiming),
    item(
        counter("block_write_ms_total", Class::WaitSum, Unit::Milliseconds, "time sessions waited to write pages themselves (track_io_timing)").at(DISK, FILES),
        databases!("blk_write_time"),
    )
    .when(When::IoTiming),
    item(
        counter("session_write_bytes_total", Class::Throughput, Unit::Bytes, "pages that client sessions had to write or add themselves").worse(Worse::Up).at(DISK, FILES),
        &[
            origin(View::Io, &["write_bytes", "extend_bytes"], "sum(coalesce(write_bytes, 0) + coalesce(extend_bytes, 0)) FILTER (WHERE backend_type = 'client backend' AND object = 'relation')"),
            origin(View::Io, &["writes", "extends", "op_bytes"], "sum((coalesce(writes, 0) + coalesce(extends, 0)) * op_bytes) FILTER (WHERE backend_type = 'client backend' AND object = 'relation')"),
            origin(View::Bgwriter, &["buffers_backend"], "max(buffers_backend) * current_setting('block_size')::int8"),
        ],
    ),
    item(
        counter("session_fsyncs_total", Class::Event, N, "files that client sessions had to sync themselves: the checkpointer is behind").at(DISK, FILES),
        &[
            origin(View::Io, &["fsyncs"], "sum(coalesce(fsyncs, 0)) FILTER (WHERE backend_type = 'client backend' AND object = 'relation')"),
            origin(View::Bgwriter, &["buffers_backend_fsync"], "max(buffers_backend_fsync)"),
        ],
    ),
    item(
        counter("checkpoints_requested_total", Class::Event, N, "checkpoints before their time: max_wal_size was used up, or somebody asked").at(DISK, "postgres checkpoints"),
        &[
            origin(View::Checkpointer, &["num_requested"], "max(num_requested)"),
            origin(View::Bgwriter, &["checkpoints_req"], "max(checkpoints_req)"),
        ],
    ),
    item(
        counter("checkpoints_timed_total", Class::Throughput, N, "checkpoints at their time").at(DISK, "postgres checkpoints"),
        &[
            origin(View::Checkpointer, &["num_timed"], "max(num_timed)"),
            origin(View::Bgwriter, &["checkpoints_timed"], "max(checkpoints_timed)"),
        ],
    ),
    item(
        counter("checkpoint_sync_ms_total", Class::Throughput, Unit::Milliseconds, "time checkpoints waited for files to be synced").lag(Lag::Completion).worse(Worse::Up).at(DISK, "postgres checkpoints"),
        &[
            origin(View::Checkpointer, &["sync_time"], "max(sync_time)"),
            origin(View::Bgwriter, &["checkpoint_sync_time"], "max(checkpoint_sync_time)"),
        ],
    ),
    item(
        counter("bgwriter_halts_total", Class::Throughput, N, "rounds of the background writer cut short at bgwriter_lru_maxpages").worse(Worse::Up).at(DISK, FILES),
        &[origin(View::Bgwriter, &["maxwritten_clean"], "max(maxwritten_clean)")],
    ),
    item(
        counter("wal_bytes_total", Class::Throughput, Unit::Bytes, "WAL written").at(DISK, WAL),
        &[
            origin(View::Wal, &["wal_bytes"], "max(wal_bytes)"),
            origin(View::Position, &[], "pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, '0/0')"),
        ],
    ),
    item(
        counter("wal_buffers_full_total", Class::Event, N, "times that WAL had to be written because wal_buffers was full").at(DISK, WAL),
        &[origin(View::Wal, &["wal_buffers_full"], "max(wal_buffers_full)")],
    ),
    item(
        Gauge::new("wal_since_checkpoint_bytes", Class::Utilisation, Unit::Bytes, "WAL since the last checkpoint that ended; one is forced before max_wal_size")
            .of("max_wal_size_bytes")
            .at(DISK, "postgres checkpoints"),
        &[origin(
            View::Position,
            &[],
            "pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, (SELECT redo_lsn FROM pg_control_checkpoint()))",
        )],
    ),
    item(
        setting("max_wal_size_bytes", Unit::Bytes, "WAL between checkpoints at most").at(DISK, "postgres checkpoints"),
        setting!("pg_size_bytes(current_setting('max_wal_size'))"),
    ),
    item(
        now("replicas", Class::Level, "replicas that are connected").worse(Worse::Down).at(SERVER, "postgres replication"),
        &[origin(View::Replication, &[], "count(*) FILTER (WHERE state <> 'backup')")],
    )
    .when(When::Replicas),
    item(
        Gauge::new("replica_lag_seconds", Class::Age, Unit::Seconds, "the most that a replica is behind in replaying").at(SERVER, "postgres replication"),
        &[origin(
            View::Replication,
            &["replay_lag"],
            "CASE WHEN count(replay_lag) > 0 THEN extract(epoch FROM max(replay_lag)) WHEN max(pg_wal_lsn_diff(sent_lsn, replay_lsn)) = 0 THEN 0 END",
        )],
    )
    .when(When::Replicas),
    item(
        Gauge::new("replica_lag_bytes", Class::Level, Unit::Bytes, "WAL that the slowest replica has not yet replayed").at(SERVER, "postgres replication"),
        &[origin(
            View::Replication,
            &[],
            "max(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, replay_lsn))",
        )],
    )
    .when(When::Replicas),
    item(
        Gauge::new("standby_lag_seconds", Class::Age, Unit::Seconds, "age of the last transaction replayed here, while WAL waits").at(SERVER, "postgres replication"),
        &[origin(
            View::Position,
            &[],
            "CASE WHEN pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0 ELSE greatest(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()), 0) END",
        )],
    )
    .when(When::Standby),
    item(
        Gauge::new("standby_lag_bytes", Class::Level, Unit::Bytes, "WAL received here and not yet replayed").at(SERVER, "postgres replication"),
        &[origin(View::Position, &[], "greatest(pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), 0)")],
    )
    .when(When::Standby),
    item(
        Gauge::new("slot_retained_bytes", Class::Level, Unit::Bytes, "the most WAL that a replication slot holds back")
            .of("max_slot_wal_keep_bytes")
            .at(DISK, "postgres replication slots"),
        &[origin(
            View::Slots,
            &[],
            "greatest(max(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, restart_lsn)), 0)",
        )],
    )
    .when(When::Slots),
    item(
        now("slots_inactive", Class::Level, "replication slots that nobody reads from").at(DISK, "postgres replication slots"),
        &[origin(View::Slots, &[], "count(*) FILTER (WHERE NOT active)")],
    )
    .when(When::Slots),
    item(
        setting("max_slot_wal_keep_bytes", Unit::Bytes, "WAL that a slot may hold back at most; unlimited where it is missing").at(DISK, "postgres replication slots"),
        setting!(
            "CASE WHEN current_setting('max_slot_wal_keep_size', true) <> '-1' THEN pg_size_bytes(current_setting('max_slot_wal_keep_size', true)) END"
        ),
    )
    .when(When::Slots),
    item(setting(CORES, N, "cores of the server's machine"), &[]).when(When::Cores),
];

/// The gauges alone, for the registry.
pub const GAUGES: &[Gauge] = &gauges();

const fn gauges() -> [Gauge; ITEMS.len()] {
    let mut gauges = [ITEMS[0].gauge; ITEMS.len()];
    let mut at = 0;
    while at < ITEMS.len() {
        gauges[at] = ITEMS[at].gauge;
        at += 1;
    }
    gauges
}
