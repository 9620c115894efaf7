//! Counters of the databases, checkpoints, WAL, replication.

use super::{CORES, DISK, FILES, FLUSHED, Item, LOCK, N, SERVER, SESSIONS, TRANSACTIONS, WAL, When, constant, item, now, origin};
use crate::api::{Class, Gauge, Lag, Source, Unit, Worse};
use crate::postgres::views::View;

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

const fn counter(name: &'static str, class: Class, unit: Unit, help: &'static str) -> Gauge {
    Gauge::counter(name, class, unit, help).lag(FLUSHED)
}

/// In the order of the columns.
pub const ITEMS: &[Item] = &[
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
        constant("max_wal_size_bytes", Unit::Bytes, "WAL between checkpoints at most").at(DISK, "postgres checkpoints"),
        setting!("pg_size_bytes(current_setting('max_wal_size'))"),
    ),
    item(
        now("replicas", Class::Level, "replicas that are connected").worse(Worse::Down).at(SERVER, "postgres replication"),
        &[origin(View::Replication, &[], "count(*) FILTER (WHERE state <> 'backup')")],
    )
    .when(When::Replicas),
    item(
        Gauge::new("replica_lag_seconds", Class::Age, Unit::Seconds, "the most that a replica is behind in replaying").at(SERVER, "postgres replication"),
        // The last lag stays in sight for a while after a replica has caught up.
        &[origin(
            View::Replication,
            &["replay_lag"],
            "max(CASE WHEN replay_lsn >= (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END) THEN 0 \
             ELSE extract(epoch FROM replay_lag) END)",
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
    // No age: that of the last transaction replayed grows while the primary has nothing to send.
    item(
        Gauge::new("standby_lag_bytes", Class::Level, Unit::Bytes, "WAL received here and not yet replayed").at(SERVER, "postgres replication"),
        &[origin(
            View::Position,
            &[],
            "CASE WHEN pg_last_wal_receive_lsn() >= pg_last_wal_replay_lsn() THEN pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) \
             WHEN pg_last_wal_receive_lsn() IS NOT NULL THEN 0 END",
        )],
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
        constant("max_slot_wal_keep_bytes", Unit::Bytes, "WAL that a slot may hold back at most; unlimited where it is missing").at(DISK, "postgres replication slots"),
        setting!(
            "CASE WHEN current_setting('max_slot_wal_keep_size', true) <> '-1' THEN pg_size_bytes(current_setting('max_slot_wal_keep_size', true)) END"
        ),
    )
    .when(When::Slots),
    item(constant(CORES, N, "cores of the server's machine"), &[]).when(When::Cores),
];
