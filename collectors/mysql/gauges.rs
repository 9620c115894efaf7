//! Every gauge of MySQL and MariaDB: what it means, and where its value comes from on which product.

use crate::api::{Class, Gauge, Lag, Layer, Source, Unit, Worse};

/// Where a value comes from. Of several the first that the server has is taken, once, at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A variable of `SHOW GLOBAL STATUS`.
    Status(&'static str),
    /// The first less the second, both of the same reply; never under 0.
    Less(&'static str, &'static str),
    /// `Questions`, less those of our own session.
    Questions,
    /// A counter of `information_schema.INNODB_METRICS`.
    Metric(&'static str),
    /// A setting, read at the start and after a reconnect.
    Setting(&'static str),
    /// Sessions that wait for a lock above the storage engine, by what they wait for.
    Sessions(&'static str),
    /// Cores of the server's machine.
    Cores,
    /// Replication, or the thread pool's queue.
    Further(&'static str),
}

impl Origin {
    /// What it is called on the server, for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Status(name)
            | Self::Less(name, _)
            | Self::Metric(name)
            | Self::Setting(name)
            | Self::Sessions(name)
            | Self::Further(name) => name,
            Self::Questions => "Questions",
            Self::Cores => "cores",
        }
    }
}

use Origin::{Further, Less, Metric, Questions, Sessions, Setting, Status};

/// A gauge and its sources.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// The gauge.
    pub gauge: Gauge,
    /// Where it comes from.
    pub from: &'static [Origin],
}

const fn item(gauge: Gauge, from: &'static [Origin]) -> Item {
    Item { gauge, from }
}

const SERVER: Layer = Layer::Server;
const LOCK: Layer = Layer::Lock;
const DISK: Layer = Layer::Disk;
const N: Unit = Unit::Count;

const fn now(name: &'static str, class: Class, help: &'static str) -> Gauge {
    Gauge::new(name, class, N, help)
}

const fn counter(name: &'static str, class: Class, help: &'static str) -> Gauge {
    Gauge::counter(name, class, N, help)
}

/// The name of the gauge whose resting value depends on the server: our own session, and the event scheduler's thread.
pub const THREADS_RUNNING: &str = "threads_running";

/// The name of the gauge that MariaDB does not count.
pub const REFUSED: &str = "connections_refused_total";

/// All of them, in the order of the columns.
pub const ITEMS: &[Item] = &[
    item(
        now(THREADS_RUNNING, Class::Occupancy, "sessions that execute or wait inside a statement; row-lock waiters are among them")
            .of("cores")
            .own(1.0)
            .at(SERVER, "mysql threads"),
        &[Status("Threads_running")],
    ),
    item(
        now("threads_connected", Class::Utilisation, "open connections")
            .of("max_connections")
            .own(1.0)
            .at(SERVER, "mysql connections"),
        &[Status("Threads_connected")],
    ),
    item(
        counter(REFUSED, Class::Event, "connections refused because max_connections was reached").at(SERVER, "mysql connections"),
        &[Status("Connection_errors_max_connections")],
    ),
    item(
        counter("connection_errors_total", Class::Event, "connections lost to errors inside the server: no thread, no memory")
            .at(SERVER, "mysql connections"),
        &[Status("Connection_errors_internal")],
    ),
    item(
        counter("aborted_connects_total", Class::Event, "attempts to connect that failed, for whatever reason")
            .at(SERVER, "mysql connections"),
        &[Status("Aborted_connects")],
    ),
    item(
        counter("aborted_clients_total", Class::Event, "connections that ended without a goodbye").at(SERVER, "mysql connections"),
        &[Status("Aborted_clients")],
    ),
    item(
        now("row_lock_waiting", Class::Queue, "sessions that wait for a row lock now").at(LOCK, "mysql row locks"),
        &[Status("Innodb_row_lock_current_waits")],
    ),
    item(
        // A count of waits is evidence: it grows like the square of the load far below saturation.
        counter("row_lock_waits_total", Class::Throughput, "waits for row locks, counted when they begin")
            .worse(Worse::Up)
            .at(LOCK, "mysql row locks"),
        &[Status("Innodb_row_lock_waits")],
    ),
    item(
        Gauge::counter(
            "row_lock_time_ms_total",
            Class::WaitSum,
            Unit::Milliseconds,
            "time waited for row locks, added when a wait ends: late by up to innodb_lock_wait_timeout",
        )
        .lag(Lag::Completion)
        .at(LOCK, "mysql row locks"),
        &[Status("Innodb_row_lock_time")],
    ),
    item(
        now("metadata_lock_waiting", Class::Queue, "sessions that wait for a metadata lock, a global lock or a table flush")
            .at(LOCK, "mysql metadata locks"),
        &[Sessions("metadata")],
    ),
    item(
        now("table_lock_waiting", Class::Queue, "sessions that wait for a table lock of the server (MyISAM, LOCK TABLES)")
            .at(LOCK, "mysql table locks"),
        &[Sessions("table")],
    ),
    item(
        now("user_lock_waiting", Class::Queue, "sessions that wait in GET_LOCK()").at(LOCK, "mysql user locks"),
        &[Sessions("advisory")],
    ),
    item(
        counter("table_locks_waited_total", Class::Throughput, "table locks that had to wait")
            .worse(Worse::Up)
            .at(LOCK, "mysql table locks"),
        &[Status("Table_locks_waited")],
    ),
    item(
        counter("deadlocks_total", Class::Event, "transactions that InnoDB rolled back to break a deadlock")
            .at(LOCK, "mysql row locks"),
        &[Status("Innodb_deadlocks"), Metric("lock_deadlocks")],
    ),
    item(
        counter("lock_timeouts_total", Class::Event, "row-lock waits that ended by innodb_lock_wait_timeout")
            .at(LOCK, "mysql row locks"),
        &[Metric("lock_timeouts")],
    ),
    item(
        counter("buffer_pool_wait_free_total", Class::Event, "waits for a free page: the page cleaner is behind")
            .at(SERVER, "mysql buffer pool"),
        &[Status("Innodb_buffer_pool_wait_free")],
    ),
    item(
        counter("log_waits_total", Class::Event, "waits for room in the log buffer").at(SERVER, "mysql redo log"),
        &[Status("Innodb_log_waits")],
    ),
    item(
        now("pending_reads", Class::Queue, "reads of data files under way").at(DISK, "mysql data files"),
        &[Status("Innodb_data_pending_reads")],
    ),
    item(
        now("pending_writes", Class::Queue, "writes of data files under way").at(DISK, "mysql data files"),
        &[Status("Innodb_data_pending_writes")],
    ),
    item(
        now("pending_fsyncs", Class::Queue, "fsyncs of data files under way").at(DISK, "mysql data files"),
        &[Status("Innodb_data_pending_fsyncs")],
    ),
    item(
        now("log_pending_writes", Class::Queue, "writes of the redo log under way").at(DISK, "mysql redo log"),
        &[Status("Innodb_os_log_pending_writes")],
    ),
    item(
        now("log_pending_fsyncs", Class::Queue, "fsyncs of the redo log under way").at(DISK, "mysql redo log"),
        &[Status("Innodb_os_log_pending_fsyncs")],
    ),
    item(
        counter("buffer_pool_hits_total", Class::Throughput, "page requests answered from memory").at(SERVER, "mysql buffer pool"),
        &[Less("Innodb_buffer_pool_read_requests", "Innodb_buffer_pool_reads")],
    ),
    item(
        counter("buffer_pool_reads_total", Class::Throughput, "page requests that went to the disk")
            .at(SERVER, "mysql buffer pool"),
        &[Status("Innodb_buffer_pool_reads")],
    ),
    item(
        Gauge::new("buffer_pool_hit_ratio", Class::Ratio, Unit::Ratio, "share of page requests answered from memory")
            .derived(Source::Share(&["buffer_pool_hits_total"], &["buffer_pool_reads_total"]))
            .at(SERVER, "mysql buffer pool"),
        &[Less("Innodb_buffer_pool_read_requests", "Innodb_buffer_pool_reads")],
    ),
    item(
        now("buffer_pool_dirty_pages", Class::Utilisation, "pages changed in memory and not yet written")
            .of("buffer_pool_pages")
            .at(SERVER, "mysql buffer pool"),
        &[Status("Innodb_buffer_pool_pages_dirty")],
    ),
    item(
        now("buffer_pool_free_pages", Class::Level, "pages that hold nothing").worse(Worse::Down).at(SERVER, "mysql buffer pool"),
        &[Status("Innodb_buffer_pool_pages_free")],
    ),
    item(
        Gauge::new(
            "redo_age_bytes",
            Class::Utilisation,
            Unit::Bytes,
            "redo log since the last checkpoint; at its capacity writes stall",
        )
        .of("redo_capacity_bytes")
        .at(SERVER, "mysql redo log"),
        &[Less("Innodb_redo_log_current_lsn", "Innodb_redo_log_checkpoint_lsn"), Status("Innodb_checkpoint_age")],
    ),
    item(
        now("history_list_length", Class::Level, "old row versions not yet purged: grows while a transaction stays open")
            .at(SERVER, "mysql undo log"),
        &[Status("Innodb_history_list_length"), Metric("trx_rseg_history_len")],
    ),
    item(
        now("prepared_statements", Class::Level, "prepared statements held by sessions")
            .of("max_prepared_statements")
            .at(SERVER, "mysql sessions"),
        &[Status("Prepared_stmt_count")],
    ),
    item(
        counter("questions_total", Class::Throughput, "statements sent by clients, without our own").at(SERVER, "mysql statements"),
        &[Questions],
    ),
    item(
        counter("commits_total", Class::Throughput, "COMMIT statements; autocommitted statements are not among them")
            .at(SERVER, "mysql statements"),
        &[Status("Com_commit")],
    ),
    item(
        counter("rollbacks_total", Class::Throughput, "ROLLBACK statements").at(SERVER, "mysql statements"),
        &[Status("Com_rollback")],
    ),
    item(
        counter("connections_total", Class::Throughput, "attempts to connect").at(SERVER, "mysql connections"),
        &[Status("Connections")],
    ),
    item(
        counter("slow_queries_total", Class::Throughput, "statements over long_query_time")
            .worse(Worse::Up)
            .at(SERVER, "mysql statements"),
        &[Status("Slow_queries")],
    ),
    item(
        counter("tmp_disk_tables_total", Class::Throughput, "temporary tables that went to the disk")
            .worse(Worse::Up)
            .at(SERVER, "mysql statements"),
        &[Status("Created_tmp_disk_tables")],
    ),
    item(
        counter("table_cache_overflows_total", Class::Throughput, "tables closed because table_open_cache was full")
            .worse(Worse::Up)
            .at(SERVER, "mysql table cache"),
        &[Status("Table_open_cache_overflows")],
    ),
    item(
        now("pool_waiting", Class::Queue, "statements that wait for a thread of the pool").at(SERVER, "mysql thread pool"),
        &[Further("pool_waiting")],
    ),
    item(
        now("pool_threads", Class::Utilisation, "threads of the thread pool")
            .of("max_pool_threads")
            .at(SERVER, "mysql thread pool"),
        &[Status("Threadpool_threads")],
    ),
    item(
        now("pool_idle_threads", Class::Level, "threads of the thread pool that do nothing")
            .worse(Worse::Down)
            .at(SERVER, "mysql thread pool"),
        &[Status("Threadpool_idle_threads")],
    ),
    item(
        Gauge::new(
            "replication_lag_seconds",
            Class::Age,
            Unit::Seconds,
            "how far this replica is behind; empty while it does not replicate",
        )
        .at(SERVER, "mysql replication"),
        &[Further("replication_lag_seconds")],
    ),
    item(
        now("replica_threads_running", Class::Level, "threads of this replica that run")
            .of("replica_threads")
            .worse(Worse::Down)
            .at(SERVER, "mysql replication"),
        &[Further("replica_threads_running")],
    ),
    item(
        Gauge::new("relay_log_bytes", Class::Level, Unit::Bytes, "relay log of this replica").at(SERVER, "mysql replication"),
        &[Further("relay_log_bytes")],
    ),
    item(
        now("galera_receive_queue", Class::Queue, "write sets that wait to be applied by this node of a cluster")
            .at(SERVER, "galera"),
        &[Status("wsrep_local_recv_queue")],
    ),
    item(
        now("galera_send_queue", Class::Queue, "write sets that wait to be sent by this node of a cluster").at(SERVER, "galera"),
        &[Status("wsrep_local_send_queue")],
    ),
    item(
        Gauge::counter("galera_paused_ns_total", Class::Pressure, Unit::Nanoseconds, "time the cluster was paused by flow control")
            .at(SERVER, "galera"),
        &[Status("wsrep_flow_control_paused_ns")],
    ),
    item(now("replica_threads", Class::Constant, "threads that a replica of so many channels has"), &[Further("replica_threads")]),
    item(now("cores", Class::Constant, "cores of the server's machine"), &[Origin::Cores]),
    item(now("max_connections", Class::Constant, "the limit of connections"), &[Setting("max_connections")]),
    item(now("buffer_pool_pages", Class::Constant, "pages of the buffer pool"), &[Status("Innodb_buffer_pool_pages_total")]),
    item(
        Gauge::new("redo_capacity_bytes", Class::Constant, Unit::Bytes, "the redo log's capacity"),
        &[Setting("innodb_redo_log_capacity"), Status("Innodb_checkpoint_max_age")],
    ),
    item(
        now("max_prepared_statements", Class::Constant, "the limit of prepared statements"),
        &[Setting("max_prepared_stmt_count")],
    ),
    item(now("max_pool_threads", Class::Constant, "the limit of the thread pool"), &[Setting("thread_pool_max_threads")]),
];

/// The gauges alone, for the registry.
pub const GAUGES: &[Gauge] = &{
    let mut all = [ITEMS[0].gauge; ITEMS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = ITEMS[at].gauge;
        at += 1;
    }
    all
};

/// Status variables that no column shows but every tick needs: restarts are told by the uptime.
pub const ALWAYS: &[&str] = &["Uptime", "Questions"];

/// Settings for the header of the ticks, beside those that are capacities.
pub const FACTS: &[&str] = &[
    "innodb_lock_wait_timeout",
    "innodb_thread_concurrency",
    "innodb_buffer_pool_size",
    "innodb_flush_log_at_trx_commit",
    "transaction_isolation",
    "tx_isolation",
    "thread_handling",
    "thread_pool_size",
    "table_open_cache",
    "max_user_connections",
    "back_log",
    "long_query_time",
];

/// The counters of `INNODB_METRICS` that some column may need.
pub const METRICS: &[&str] = &["lock_deadlocks", "lock_timeouts", "trx_rseg_history_len"];

#[cfg(test)]
mod tests;
