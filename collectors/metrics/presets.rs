//! What well-known series mean: declared, so not guessed. One line a series; a capacity names another series.
//!
//! Sources: the exporters themselves (`HikariCP` and Micrometer, Go's `database/sql` collectors, pgxpool's exporters,
//! OpenTelemetry's semantic conventions before and after the renaming, prom-client, Tomcat, Jetty, Puma). sqlx has no
//! exporter of its own; the names here are those that people give its two numbers.
//!
//! A histogram of request times holds the service and every wait behind it: its sum is work, and only the mean of it is shown.
//! Only times spent to get something (a connection, a worker) are waits. The number of waits is no wait either: it grows
//! with the square of the load long before anything is saturated.

pub mod servers;

use crate::api::{Class, Gauge, Kind, Lag, Layer, Unit, Worse, joined, total};

const POOL: &str = "connection pool";
const HTTP: &str = "requests";

const fn queue(name: &'static str, layer: Layer, resource: &'static str) -> Gauge {
    Gauge::new(name, Class::Queue, Unit::Count, "how many wait now").at(layer, resource)
}

const fn busy(name: &'static str, of: &'static str, layer: Layer, resource: &'static str) -> Gauge {
    Gauge::new(name, Class::Utilisation, Unit::Count, "in use now").of(of).at(layer, resource)
}

const fn spare(name: &'static str, layer: Layer, resource: &'static str) -> Gauge {
    Gauge::new(name, Class::Utilisation, Unit::Count, "unused now").worse(Worse::Down).at(layer, resource)
}

const fn limit(name: &'static str, layer: Layer, resource: &'static str) -> Gauge {
    Gauge::new(name, Class::Constant, Unit::Count, "how many there may be").at(layer, resource)
}

const fn waited(name: &'static str, unit: Unit) -> Gauge {
    Gauge::counter(name, Class::WaitSum, unit, "time waited for a connection, counted when the wait ends")
        .lag(Lag::Completion)
        .at(Layer::Pool, POOL)
}

const fn taken(name: &'static str) -> Gauge {
    Gauge::counter(name, Class::Throughput, Unit::Count, "connections handed out").at(Layer::Pool, POOL)
}

const fn waits(name: &'static str) -> Gauge {
    Gauge::counter(name, Class::Throughput, Unit::Count, "how often a connection was waited for").at(Layer::Pool, POOL)
}

const fn held(name: &'static str, unit: Unit) -> Gauge {
    Gauge::counter(name, Class::Throughput, unit, "time connections were in use").lag(Lag::Completion).at(Layer::Pool, POOL)
}

const fn refused(name: &'static str) -> Gauge {
    Gauge::counter(name, Class::Event, Unit::Count, "gave up waiting for a connection").at(Layer::Pool, POOL)
}

const fn served(name: &'static str) -> Gauge {
    Gauge::counter(name, Class::Throughput, Unit::Count, "requests").at(Layer::App, HTTP)
}

const fn serving(name: &'static str, unit: Unit) -> Gauge {
    Gauge::counter(name, Class::Throughput, unit, "time spent in requests that ended: service and every wait behind it")
        .lag(Lag::Completion)
        .at(Layer::App, HTTP)
}

const fn concurrent(name: &'static str) -> Gauge {
    Gauge::new(name, Class::Utilisation, Unit::Count, "requests in service, with their waits").at(Layer::App, HTTP)
}

const fn process(name: &'static str, class: Class, unit: Unit) -> Gauge {
    Gauge::new(name, class, unit, "of the process").at(Layer::App, "process")
}

const fn event_loop(name: &'static str, class: Class) -> Gauge {
    Gauge::new(name, class, Unit::Seconds, "how late the event loop is").at(Layer::App, "event loop")
}

const P: Layer = Layer::Pool;
const W: Layer = Layer::Worker;

/// Every preset.
pub const ALL: &[Gauge] = &joined::<{ total(GROUPS) }>(GROUPS);

const GROUPS: &[&[Gauge]] = &[APPLICATIONS, servers::ALL];

const APPLICATIONS: &[Gauge] = &[
    // Our own demonstration, and the plain names that many services use.
    queue("pool_acquire_waiting", P, POOL),
    busy("pool_connections_in_use", "pool_connections_max", P, POOL),
    spare("pool_connections_idle", P, POOL),
    limit("pool_connections_max", P, POOL),
    waited("pool_acquire_wait_seconds_total", Unit::Seconds),
    waited("pool_acquire_wait_seconds_sum", Unit::Seconds),
    taken("pool_acquire_wait_seconds_count"),
    taken("pool_acquire_wait_count"),
    taken("pool_acquires_total"),
    refused("pool_acquire_timeouts_total"),
    // HikariCP by Micrometer.
    queue("hikaricp_connections_pending", P, POOL),
    busy("hikaricp_connections_active", "hikaricp_connections_max", P, POOL),
    spare("hikaricp_connections_idle", P, POOL),
    limit("hikaricp_connections_max", P, POOL),
    limit("hikaricp_connections_min", P, POOL),
    refused("hikaricp_connections_timeout_total"),
    waited("hikaricp_connections_acquire_seconds_sum", Unit::Seconds),
    taken("hikaricp_connections_acquire_seconds_count"),
    held("hikaricp_connections_usage_seconds_sum", Unit::Seconds),
    // HikariCP's own.
    queue("hikaricp_pending_threads", P, POOL),
    busy("hikaricp_active_connections", "hikaricp_max_connections", P, POOL),
    spare("hikaricp_idle_connections", P, POOL),
    limit("hikaricp_max_connections", P, POOL),
    refused("hikaricp_connection_timeout_total"),
    waited("hikaricp_connection_acquired_nanos_sum", Unit::Nanoseconds),
    taken("hikaricp_connection_acquired_nanos_count"),
    held("hikaricp_connection_usage_millis_sum", Unit::Milliseconds),
    // Any JDBC or R2DBC pool by Micrometer.
    busy("jdbc_connections_active", "jdbc_connections_max", P, POOL),
    spare("jdbc_connections_idle", P, POOL),
    limit("jdbc_connections_max", P, POOL),
    queue("r2dbc_pool_pending_connections", P, POOL),
    busy("r2dbc_pool_acquired_connections", "r2dbc_pool_max_allocated_connections", P, POOL),
    spare("r2dbc_pool_idle_connections", P, POOL),
    limit("r2dbc_pool_max_allocated_connections", P, POOL),
    // Go's database/sql: client_golang's collector, then sqlstats.
    busy("go_sql_in_use_connections", "go_sql_max_open_connections", P, POOL),
    spare("go_sql_idle_connections", P, POOL),
    limit("go_sql_max_open_connections", P, POOL),
    waits("go_sql_wait_count_total"),
    waited("go_sql_wait_duration_seconds_total", Unit::Seconds),
    busy("go_sql_stats_connections_in_use", "go_sql_stats_connections_max_open", P, POOL),
    spare("go_sql_stats_connections_idle", P, POOL),
    limit("go_sql_stats_connections_max_open", P, POOL),
    waits("go_sql_stats_connections_waited_for"),
    waited("go_sql_stats_connections_blocked_seconds", Unit::Seconds),
    // pgxpool, by its several exporters.
    busy("pgxpool_acquired_conns", "pgxpool_max_conns", P, POOL),
    spare("pgxpool_idle_conns", P, POOL),
    limit("pgxpool_max_conns", P, POOL),
    busy("pgxpool_acquired_connections", "pgxpool_max_connections", P, POOL),
    spare("pgxpool_idle_connections", P, POOL),
    limit("pgxpool_max_connections", P, POOL),
    waited("pgxpool_acquire_duration_ns", Unit::Nanoseconds),
    waited("pgxpool_acquire_duration_nanoseconds_total", Unit::Nanoseconds),
    waited("pgxpool_acquire_duration_seconds_total", Unit::Seconds),
    taken("pgxpool_acquire_count"),
    taken("pgxpool_acquire_count_total"),
    taken("pgxpool_acquires_total"),
    waits("pgxpool_empty_acquire"),
    waits("pgxpool_empty_acquire_count_total"),
    refused("pgxpool_canceled_acquire_count"),
    refused("pgxpool_canceled_acquire_count_total"),
    // sqlx, as people name its size and its idle ones.
    Gauge::new("sqlx_pool_connections_open", Class::Level, Unit::Count, "open connections").at(P, POOL),
    spare("sqlx_pool_connections_idle", P, POOL),
    // OpenTelemetry, old names and new.
    queue("db_client_connections_pending_requests", P, POOL),
    busy("db_client_connections_usage", "db_client_connections_max", P, POOL),
    limit("db_client_connections_max", P, POOL),
    refused("db_client_connections_timeouts_total"),
    waited("db_client_connections_wait_time_milliseconds_sum", Unit::Milliseconds),
    taken("db_client_connections_wait_time_milliseconds_count"),
    held("db_client_connections_use_time_milliseconds_sum", Unit::Milliseconds),
    queue("db_client_connection_pending_requests", P, POOL),
    busy("db_client_connection_count", "db_client_connection_max", P, POOL),
    limit("db_client_connection_max", P, POOL),
    refused("db_client_connection_timeouts_total"),
    waited("db_client_connection_wait_time_seconds_sum", Unit::Seconds),
    taken("db_client_connection_wait_time_seconds_count"),
    held("db_client_connection_use_time_seconds_sum", Unit::Seconds),
    // Requests.
    served("http_requests_total"),
    served("http_request_duration_seconds_count"),
    serving("http_request_duration_seconds_sum", Unit::Seconds),
    served("http_server_requests_seconds_count"),
    serving("http_server_requests_seconds_sum", Unit::Seconds),
    served("http_server_request_duration_seconds_count"),
    serving("http_server_request_duration_seconds_sum", Unit::Seconds),
    served("http_server_duration_milliseconds_count"),
    serving("http_server_duration_milliseconds_sum", Unit::Milliseconds),
    concurrent("http_requests_in_flight"),
    concurrent("http_server_active_requests"),
    concurrent("http_server_requests_active_seconds_count"),
    // Workers of application servers.
    busy("tomcat_threads_busy_threads", "tomcat_threads_config_max_threads", W, "tomcat threads"),
    limit("tomcat_threads_config_max_threads", W, "tomcat threads"),
    busy("jetty_threads_busy", "jetty_threads_config_max", W, "jetty threads"),
    limit("jetty_threads_config_max", W, "jetty threads"),
    queue("jetty_threads_jobs", W, "jetty threads"),
    queue("executor_queued_tasks", W, "executor"),
    busy("executor_active_threads", "executor_pool_max_threads", W, "executor"),
    limit("executor_pool_max_threads", W, "executor"),
    queue("puma_backlog", W, "puma threads"),
    spare("puma_pool_capacity", W, "puma threads"),
    limit("puma_max_threads", W, "puma threads"),
    // node.js.
    event_loop("nodejs_eventloop_lag_seconds", Class::Wait),
    event_loop("nodejs_eventloop_lag_mean_seconds", Class::Level),
    event_loop("nodejs_eventloop_lag_p50_seconds", Class::Level),
    event_loop("nodejs_eventloop_lag_p90_seconds", Class::Level),
    event_loop("nodejs_eventloop_lag_p99_seconds", Class::Level),
    process("nodejs_active_handles_total", Class::Level, Unit::Count),
    process("nodejs_active_requests_total", Class::Level, Unit::Count),
    process("nodejs_active_resources_total", Class::Level, Unit::Count),
    // Processes.
    process("process_open_fds", Class::Level, Unit::Count).of("process_max_fds").own(1.0),
    process("process_max_fds", Class::Constant, Unit::Count),
    process("process_files_open_files", Class::Level, Unit::Count).of("process_files_max_files").own(1.0),
    process("process_files_max_files", Class::Constant, Unit::Count),
    process("process_resident_memory_bytes", Class::Level, Unit::Bytes),
    process("process_start_time_seconds", Class::Constant, Unit::Seconds),
    process("process_cpu_usage", Class::Utilisation, Unit::Ratio).of_fixed(1.0),
    counted(process("process_cpu_seconds_total", Class::Utilisation, Unit::Seconds)),
    process("go_goroutines", Class::Level, Unit::Count),
    Gauge::new("system_cpu_usage", Class::Utilisation, Unit::Ratio, "of the whole machine").of_fixed(1.0).at(Layer::Host, "cpu"),
];

const fn counted(mut gauge: Gauge) -> Gauge {
    gauge.kind = Kind::Counter;
    gauge
}

/// The labels by which a known series is kept apart, whatever others it has; `None` where nobody says.
pub fn apart(name: &str) -> Option<&'static [&'static str]> {
    let fits = servers::APART.iter().filter(|(start, _)| name.starts_with(start));
    fits.max_by_key(|(start, _)| start.len()).filter(|_| find(name).is_some()).map(|(_, labels)| *labels)
}

/// What a series means, where it is known.
pub fn find(name: &str) -> Option<Gauge> {
    ALL.iter().find(|gauge| gauge.name == name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Capacity;

    #[test]
    fn no_name_stands_twice_and_every_capacity_is_a_constant_of_the_table() {
        for (at, gauge) in ALL.iter().enumerate() {
            assert!(!ALL[..at].iter().any(|other| other.name == gauge.name), "{} stands twice", gauge.name);
            if let Capacity::Column(of) = gauge.capacity {
                assert_eq!(find(of).map(|of| of.class), Some(Class::Constant), "{of} of {}", gauge.name);
            }
        }
    }

    #[test]
    fn only_waits_and_queues_can_be_first() {
        for gauge in ALL {
            let first = matches!(gauge.class, Class::Queue | Class::WaitSum | Class::Wait | Class::Event);
            let says = [
                "wait",
                "acquire",
                "pending",
                "blocked",
                "backlog",
                "queued",
                "jobs",
                "lag",
                "timeout",
                "ready",
                "queues",
                "watermark",
                "limit",
                "dropped",
                "returned",
                "dead",
                "open",
                "overflow",
                "fail",
                "overload",
                "errors",
                "retries",
                "under",
            ];
            assert!(!first || says.iter().any(|word| gauge.name.contains(word)), "{}", gauge.name);
        }
    }
}
