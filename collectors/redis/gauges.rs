//! What each field of `INFO` means.

use super::info::{Info, number};
use crate::api::{Class, Gauge, Layer, Source, Unit, Worse};

/// Where a gauge's value comes from; the first that the server tells counts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Origin {
    /// A field by its name.
    Field(&'static str),
    /// The sum of fields.
    Sum(&'static [&'static str]),
    /// A field that is a share of a unit: microseconds to seconds.
    Micro(&'static str),
    /// A field in which 0 means that there is no limit.
    Limit(&'static str),
    /// `up` or `ok` is 1, anything else 0.
    Up(&'static str),
    /// How many errors of a kind were answered.
    Errors(&'static str),
    /// Keys of all databases.
    Keys,
    /// The longest time since a replica was heard of, seconds.
    ReplicaSilence,
    /// Bytes that the slowest replica has not confirmed.
    ReplicaBehind,
}

impl Origin {
    /// The value in one answer.
    pub fn value(self, info: &Info) -> Option<f64> {
        match self {
            Self::Field(name) => info.number(name),
            Self::Sum(names) => info.sum(names),
            Self::Micro(name) => info.number(name).map(|us| us / 1e6),
            Self::Limit(name) => info.number(name).filter(|limit| *limit > 0.0),
            Self::Up(name) => info.text(name).map(|state| f64::from(matches!(state, "up" | "ok"))),
            Self::Errors(kind) => info.errors(kind),
            Self::Keys => info.keys(),
            Self::ReplicaSilence => info.replicas().0,
            Self::ReplicaBehind => info.replicas().1,
        }
    }

    /// A field that is there and holds neither an amount nor a sentinel (`-1`): its name and text.
    pub fn unreadable(self, info: &Info) -> Option<(&'static str, &str)> {
        let names = match &self {
            Self::Sum(names) => *names,
            Self::Field(name) | Self::Micro(name) | Self::Limit(name) => &[*name][..],
            _ => &[],
        };
        names.iter().find_map(|name| {
            let text = info.text(name)?;
            (number(text).is_none() && !text.starts_with('-')).then_some((*name, text))
        })
    }
}

const THREAD: &str = "redis main thread";
const CLIENTS: &str = "redis connections";
const MEMORY: &str = "redis memory";
const DISK: &str = "redis persistence";
const REPLICAS: &str = "redis replication";
const CLUSTER: &str = "redis cluster";
const COMMANDS: &str = "redis commands";

/// Measured by the collector itself.
pub(super) const ROUNDTRIP: Gauge = Gauge::new(
    "roundtrip_ms",
    Class::Wait,
    Unit::Milliseconds,
    "How long the sampler's own command took: every command waits behind the same thread",
)
.visits("ops_total", 1.0)
.at(Layer::Server, THREAD);

/// `SLOWLOG LEN`, where the user may ask for it.
pub(super) const SLOWLOG: Gauge =
    Gauge::new("slowlog_entries", Class::Level, Unit::Count, "Entries of the slow log, at most slowlog-max-len")
        .at(Layer::Server, THREAD);

/// A gauge, and where it comes from.
pub(super) const FIELDS: &[(Gauge, &[Origin])] = &[
    (
        Gauge::counter("main_thread_cpu_seconds_total", Class::Utilisation, Unit::Seconds, "Processor time of the main thread")
            .of_fixed(1.0)
            .at(Layer::Server, THREAD),
        &[Origin::Sum(&["used_cpu_sys_main_thread", "used_cpu_user_main_thread"])],
    ),
    (
        Gauge::counter(
            "eventloop_busy_seconds_total",
            Class::Utilisation,
            Unit::Seconds,
            "Time that the event loop did not sleep (7.2)",
        )
        .of_fixed(1.0)
        .at(Layer::Server, THREAD),
        &[Origin::Micro("eventloop_duration_sum")],
    ),
    (
        // Of many threads where there are many, which few versions tell: no capacity, the main thread has one.
        Gauge::counter(
            "cpu_seconds_total",
            Class::Utilisation,
            Unit::Seconds,
            "Processor time of all threads, without child processes",
        )
        .at(Layer::Server, THREAD),
        &[Origin::Sum(&["used_cpu_sys", "used_cpu_user"])],
    ),
    (
        count("ops_total", Class::Throughput, "Commands processed, without the sampler's own", THREAD).own(1.0),
        &[Origin::Field("total_commands_processed")],
    ),
    (
        Gauge::new("pipeline_queue", Class::Level, Unit::Count, "Commands read and not yet begun (Dragonfly)")
            .at(Layer::Server, THREAD),
        &[Origin::Field("pipeline_queue_length")],
    ),
    (
        count("long_lock_waits_total", Class::Event, "Threads that waited long for the global lock (KeyDB)", THREAD),
        &[Origin::Field("long_lock_waits")],
    ),
    (
        Gauge::new("connected_clients", Class::Utilisation, Unit::Count, "Connections, the sampler's own too")
            .of("maxclients")
            .own(1.0)
            .at(Layer::Server, CLIENTS),
        &[Origin::Field("connected_clients")],
    ),
    (
        Gauge::new("maxclients", Class::Constant, Unit::Count, "The limit of connections").at(Layer::Server, CLIENTS),
        &[Origin::Limit("maxclients"), Origin::Limit("max_clients")],
    ),
    (
        count("rejected_connections_total", Class::Event, "Connections refused at the limit", CLIENTS),
        &[Origin::Field("rejected_connections")],
    ),
    (
        count("connections_total", Class::Throughput, "Connections accepted", CLIENTS),
        &[Origin::Field("total_connections_received")],
    ),
    // BLPOP and the like wait because they want to: no contention by itself.
    (
        Gauge::new("blocked_clients", Class::Level, Unit::Count, "Connections in a blocking command")
            .worse(Worse::Neither)
            .at(Layer::Server, CLIENTS),
        &[Origin::Field("blocked_clients")],
    ),
    (
        count("output_limit_disconnects_total", Class::Event, "Clients dropped since they read too slowly (7.2)", CLIENTS),
        &[Origin::Field("client_output_buffer_limit_disconnections")],
    ),
    (
        count("query_limit_disconnects_total", Class::Event, "Clients dropped for queries too long (7.2)", CLIENTS),
        &[Origin::Field("client_query_buffer_limit_disconnections")],
    ),
    (bytes("used_memory_bytes", Class::Level, "Memory used").of("maxmemory_bytes"), &[Origin::Field("used_memory")]),
    (
        bytes("maxmemory_bytes", Class::Constant, "The limit of memory; without one there is no such column"),
        &[Origin::Limit("maxmemory")],
    ),
    (bytes("used_memory_rss_bytes", Class::Level, "Memory as the system sees it"), &[Origin::Field("used_memory_rss")]),
    (count("evicted_keys_total", Class::Event, "Keys thrown out to make room", MEMORY), &[Origin::Field("evicted_keys")]),
    (
        count("evicted_clients_total", Class::Event, "Clients dropped to make room (7.0)", MEMORY),
        &[Origin::Field("evicted_clients")],
    ),
    (count("oom_errors_total", Class::Event, "Commands refused for lack of memory (6.2)", MEMORY), &[Origin::Errors("OOM")]),
    (
        Gauge::counter(
            "eviction_exceeded_ms_total",
            Class::Pressure,
            Unit::Milliseconds,
            "Time spent above the limit of memory (7.0)",
        )
        .at(Layer::Server, MEMORY),
        &[Origin::Field("total_eviction_exceeded_time")],
    ),
    (count("expired_keys_total", Class::Throughput, "Keys whose time was over", MEMORY), &[Origin::Field("expired_keys")]),
    (
        Gauge::new("lazyfree_pending", Class::Level, Unit::Count, "Values still to be freed in the background")
            .at(Layer::Server, MEMORY),
        &[Origin::Field("lazyfree_pending_objects")],
    ),
    (count("keyspace_hits_total", Class::Throughput, "Keys asked for and found", MEMORY), &[Origin::Field("keyspace_hits")]),
    (
        count("keyspace_misses_total", Class::Throughput, "Keys asked for and not found", MEMORY),
        &[Origin::Field("keyspace_misses")],
    ),
    (
        Gauge::new("keys", Class::Level, Unit::Count, "Keys of all databases; missing while there is none")
            .at(Layer::Server, MEMORY),
        &[Origin::Keys],
    ),
    (
        Gauge::counter("net_read_bytes_total", Class::Throughput, Unit::Bytes, "Received, the sampler's questions too")
            .at(Layer::Server, CLIENTS),
        &[Origin::Field("total_net_input_bytes")],
    ),
    (
        Gauge::counter("net_written_bytes_total", Class::Throughput, Unit::Bytes, "Sent, the answers to the sampler too")
            .at(Layer::Server, CLIENTS),
        &[Origin::Field("total_net_output_bytes")],
    ),
    (
        count("forks_total", Class::Throughput, "Child processes made, each of which stops the main thread for a while", DISK)
            .worse(Worse::Up),
        &[Origin::Field("total_forks")],
    ),
    (
        Gauge::new("latest_fork_us", Class::Level, Unit::Microseconds, "How long the last fork stopped the main thread")
            .at(Layer::Disk, DISK),
        &[Origin::Field("latest_fork_usec")],
    ),
    (running("bgsave_running", "A snapshot is being written"), &[Origin::Field("rdb_bgsave_in_progress")]),
    (running("aof_rewrite_running", "The append-only file is being rewritten"), &[Origin::Field("aof_rewrite_in_progress")]),
    (
        count("aof_delayed_fsync_total", Class::Event, "Writes held up since the disk was not done (append-only file)", DISK),
        &[Origin::Field("aof_delayed_fsync")],
    ),
    // One is in hand whenever something was written in the last second, so that it is evidence and no queue.
    (
        Gauge::new("aof_pending_fsyncs", Class::Level, Unit::Count, "Syncs of the append-only file in hand").at(Layer::Disk, DISK),
        &[Origin::Field("aof_pending_bio_fsync")],
    ),
    (
        Gauge::new("replicas", Class::Level, Unit::Count, "Replicas connected").worse(Worse::Down).at(Layer::Server, REPLICAS),
        &[Origin::Field("connected_slaves")],
    ),
    (
        Gauge::new(
            "replica_silence_seconds",
            Class::Age,
            Unit::Seconds,
            "Longest time since a replica was heard of; whole seconds",
        )
        .at(Layer::Server, REPLICAS),
        &[Origin::ReplicaSilence],
    ),
    (
        Gauge::new("replica_behind_bytes", Class::Level, Unit::Bytes, "What the slowest replica has not confirmed")
            .at(Layer::Server, REPLICAS),
        &[Origin::ReplicaBehind],
    ),
    (count("full_syncs_total", Class::Event, "Replicas that had to be sent everything", REPLICAS), &[Origin::Field("sync_full")]),
    (
        Gauge::new("master_link_up", Class::Level, Unit::Count, "1 while this replica hears its master")
            .worse(Worse::Down)
            .at(Layer::Server, REPLICAS),
        &[Origin::Up("master_link_status")],
    ),
    (
        Gauge::new("master_silence_seconds", Class::Age, Unit::Seconds, "Time since the master was heard of; whole seconds")
            .at(Layer::Server, REPLICAS),
        &[Origin::Field("master_last_io_seconds_ago")],
    ),
    (
        Gauge::new("cluster_up", Class::Level, Unit::Count, "1 while this node sees a cluster that serves every slot")
            .worse(Worse::Down)
            .at(Layer::Server, CLUSTER),
        &[Origin::Up("cluster_state")],
    ),
    (
        Gauge::new("cluster_slots_failed", Class::Event, Unit::Count, "Slots whose node has failed, as this node sees it")
            .at(Layer::Server, CLUSTER),
        &[Origin::Field("cluster_slots_fail")],
    ),
    // Of every kind, so behind those that tell which: of two that rise together the first is named.
    (
        count("error_replies_total", Class::Event, "Errors answered, of every kind (6.2)", COMMANDS),
        &[Origin::Field("total_error_replies")],
    ),
];

/// Worked out by the reader.
pub(super) const HIT_RATIO: Gauge =
    Gauge::new("hit_ratio", Class::Ratio, Unit::Ratio, "Share of the keys asked for that were found")
        .at(Layer::Server, MEMORY)
        .derived(Source::Share(&["keyspace_hits_total"], &["keyspace_misses_total"]));

/// All of them.
pub(super) const ALL: &[Gauge] = &all();

const fn all() -> [Gauge; FIELDS.len() + 3] {
    let mut all = [ROUNDTRIP; FIELDS.len() + 3];
    let mut index = 0;
    while index < FIELDS.len() {
        all[index + 1] = FIELDS[index].0;
        index += 1;
    }
    all[FIELDS.len() + 1] = SLOWLOG;
    all[FIELDS.len() + 2] = HIT_RATIO;
    all
}

const fn count(name: &'static str, class: Class, help: &'static str, resource: &'static str) -> Gauge {
    Gauge::counter(name, class, Unit::Count, help).at(Layer::Server, resource)
}

const fn bytes(name: &'static str, class: Class, help: &'static str) -> Gauge {
    Gauge::new(name, class, Unit::Bytes, help).at(Layer::Server, MEMORY)
}

const fn running(name: &'static str, help: &'static str) -> Gauge {
    Gauge::new(name, Class::Level, Unit::Count, help).at(Layer::Disk, DISK)
}
