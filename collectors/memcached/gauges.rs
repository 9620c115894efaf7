//! What each statistic of memcached means.

use crate::api::{Class, Gauge, Kind, Layer, Source, Unit, Worse};

const CONNECTIONS: &str = "memcached connections";
const MEMORY: &str = "memcached memory";
const THREADS: &str = "memcached threads";

/// A statistic of `stats`, and the gauge that it is.
pub(super) const FIELDS: &[(&str, Gauge)] = &[
    // The limit is one of file numbers, some of which are the server's own: it refuses before the two are equal.
    (
        "curr_connections",
        Gauge::new("curr_connections", Class::Utilisation, Unit::Count, "Open connections, the sampler's own too")
            .of("max_connections")
            .own(1.0)
            .at(Layer::Server, CONNECTIONS),
    ),
    (
        "max_connections",
        Gauge::new("max_connections", Class::Constant, Unit::Count, "The limit -c; never quite reached")
            .at(Layer::Server, CONNECTIONS),
    ),
    ("rejected_connections", count("rejected_connections_total", Class::Event, "Connections refused at the limit", CONNECTIONS)),
    (
        "listen_disabled_num",
        count(
            "listen_disabled_total",
            Class::Event,
            "Times that accepting stopped at the limit; only with -o no_maxconns_fast",
            CONNECTIONS,
        ),
    ),
    (
        "time_in_listen_disabled_us",
        Gauge::counter("listen_disabled_us_total", Class::Pressure, Unit::Microseconds, "Time in which nobody was accepted")
            .at(Layer::Server, CONNECTIONS),
    ),
    ("total_connections", count("connections_total", Class::Throughput, "Connections accepted", CONNECTIONS)),
    ("evictions", count("evictions_total", Class::Event, "Live items thrown out to make room", MEMORY)),
    ("direct_reclaims", count("direct_reclaims_total", Class::Event, "Times that a worker thread had to make room itself", MEMORY)),
    ("store_no_memory", count("store_no_memory_total", Class::Event, "Items not stored for lack of memory", MEMORY)),
    ("malloc_fails", count("malloc_fails_total", Class::Event, "Memory that the system did not give", MEMORY)),
    ("read_buf_oom", count("read_buf_oom_total", Class::Event, "Connections closed for lack of read buffers", MEMORY)),
    ("response_obj_oom", count("response_obj_oom_total", Class::Event, "Connections closed for lack of response objects", MEMORY)),
    ("bytes", amount("used_bytes", Class::Level, "Memory used by items").of("limit_bytes")),
    ("limit_maxbytes", amount("limit_bytes", Class::Constant, "The limit -m; evictions begin somewhat below it")),
    ("curr_items", Gauge::new("items", Class::Level, Unit::Count, "Items stored").at(Layer::Server, MEMORY)),
    ("get_hits", count("get_hits_total", Class::Throughput, "Keys asked for and found", MEMORY)),
    ("get_misses", count("get_misses_total", Class::Throughput, "Keys asked for and not found", MEMORY)),
    ("cmd_get", count("cmd_get_total", Class::Throughput, "Keys asked for", THREADS)),
    ("cmd_set", count("cmd_set_total", Class::Throughput, "Items stored or refused", THREADS)),
    ("cmd_touch", count("cmd_touch_total", Class::Throughput, "Items touched", THREADS)),
    ("cmd_meta", count("cmd_meta_total", Class::Throughput, "Meta commands", THREADS)),
    ("bytes_read", bytes("read_bytes_total", "Received, the sampler's own questions too")),
    ("bytes_written", bytes("written_bytes_total", "Sent, the answers to the sampler too")),
    // A yield is no refusal: a long multi-key request lets the others in, at any load.
    (
        "conn_yields",
        count("conn_yields_total", Class::Throughput, "Times that a connection had to let others in after -R requests", THREADS)
            .worse(Worse::Up),
    ),
    ("threads", Gauge::new("threads", Class::Constant, Unit::Count, "Worker threads").at(Layer::Server, THREADS)),
];

/// Processor time of the whole process, from two statistics.
pub(super) const CPU: Gauge =
    Gauge::counter("cpu_seconds_total", Class::Utilisation, Unit::Seconds, "Processor time, of the process and its kernel part")
        .of("threads")
        .at(Layer::Server, THREADS);
pub(super) const CPU_FIELDS: [&str; 2] = ["rusage_user", "rusage_system"];

/// Worked out by the reader.
pub(super) const HIT_RATIO: Gauge =
    Gauge::new("hit_ratio", Class::Ratio, Unit::Ratio, "Share of the keys asked for that were found")
        .at(Layer::Server, MEMORY)
        .derived(Source::Share(&["get_hits_total"], &["get_misses_total"]));

/// All of them.
pub(super) const ALL: &[Gauge] = &all();

const fn all() -> [Gauge; FIELDS.len() + 2] {
    let mut all = [CPU; FIELDS.len() + 2];
    let mut index = 0;
    while index < FIELDS.len() {
        all[index] = FIELDS[index].1;
        index += 1;
    }
    all[FIELDS.len() + 1] = HIT_RATIO;
    all
}

const fn count(name: &'static str, class: Class, help: &'static str, resource: &'static str) -> Gauge {
    Gauge::counter(name, class, Unit::Count, help).at(Layer::Server, resource)
}

const fn amount(name: &'static str, class: Class, help: &'static str) -> Gauge {
    Gauge::new(name, class, Unit::Bytes, help).at(Layer::Server, MEMORY)
}

const fn bytes(name: &'static str, help: &'static str) -> Gauge {
    let mut gauge = Gauge::new(name, Class::Throughput, Unit::Bytes, help).at(Layer::Server, THREADS);
    gauge.kind = Kind::Counter;
    gauge
}
