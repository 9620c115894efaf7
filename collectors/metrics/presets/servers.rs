//! Series of brokers and proxies that speak the Prometheus format themselves, and of the exporters of Kafka's consumer groups.
//!
//! Sources: `RabbitMQ`'s Prometheus plugin (3.8 to 4.x), Envoy's statistics as `/stats/prometheus` names them, Traefik 2 and
//! 3, Caddy 2, and of Kafka: `kafka_exporter`, Kafka Lag Exporter, Burrow's exporters, `KMinion`, Micrometer's client.
//!
//! A broker's ready messages wait for a consumer; those delivered and not yet acknowledged are in work. Of a proxy the
//! requests that wait for a connection to the back end are a queue, those in flight are not: they hold the back end's time.
//! Free disk space and healthy members fall when it gets worse; the low watermark of a disk is no capacity.

use super::{concurrent, counted, limit, queue, served, serving, spare};
use crate::api::{Class, Gauge, Lag, Layer, Unit, Worse};

const BROKER: &str = "message queues";
const NODE: &str = "rabbitmq node";
const PROXY: &str = "proxy";
/// How often the broker counts its queues, seconds.
const RENEWED: Lag = Lag::Refreshed(5.0);
const S: Layer = Layer::Server;
const P: Layer = Layer::Pool;
const W: Layer = Layer::Worker;

const fn level(name: &'static str, unit: Unit, layer: Layer, resource: &'static str, help: &'static str) -> Gauge {
    Gauge::new(name, Class::Level, unit, help).at(layer, resource)
}

const fn work(name: &'static str, layer: Layer, resource: &'static str, help: &'static str) -> Gauge {
    Gauge::new(name, Class::Utilisation, Unit::Count, help).at(layer, resource)
}

const fn done(name: &'static str, layer: Layer, resource: &'static str, help: &'static str) -> Gauge {
    Gauge::counter(name, Class::Throughput, Unit::Count, help).at(layer, resource)
}

const fn event(name: &'static str, layer: Layer, resource: &'static str, help: &'static str) -> Gauge {
    Gauge::counter(name, Class::Event, Unit::Count, help).at(layer, resource)
}

/// A state that is 1 while something is refused or blocked.
const fn alarm(name: &'static str, layer: Layer, resource: &'static str, help: &'static str) -> Gauge {
    Gauge::new(name, Class::Event, Unit::Count, help).at(layer, resource)
}

const fn healthy(name: &'static str, resource: &'static str) -> Gauge {
    level(name, Unit::Count, P, resource, "servers that take requests").worse(Worse::Down)
}

const fn lag(name: &'static str) -> Gauge {
    Gauge::new(name, Class::Queue, Unit::Count, "messages that wait for the consumer group").at(Layer::App, "consumer lag")
}

const fn late(name: &'static str) -> Gauge {
    Gauge::new(name, Class::Age, Unit::Seconds, "how old the oldest message is that waits for the consumer group")
        .at(Layer::App, "consumer lag")
}

/// Brokers, proxies and consumer groups.
pub const ALL: &[Gauge] = &[
    // RabbitMQ: queues.
    queue("rabbitmq_queue_messages_ready", S, BROKER).lag(RENEWED),
    work("rabbitmq_queue_messages_unacked", S, BROKER, "delivered and not yet acknowledged").lag(RENEWED),
    level("rabbitmq_queue_messages", Unit::Count, S, BROKER, "ready and unacknowledged"),
    level("rabbitmq_queue_messages_bytes", Unit::Bytes, S, BROKER, "of messages in the queues"),
    level("rabbitmq_queue_consumers", Unit::Count, S, BROKER, "consumers of the queues").worse(Worse::Neither),
    Gauge::new(
        "rabbitmq_queue_consumer_utilisation",
        Class::Ratio,
        Unit::Ratio,
        "share of time a message could be delivered at once",
    )
    .at(S, BROKER),
    Gauge::new("rabbitmq_queue_consumer_capacity", Class::Ratio, Unit::Ratio, "share of time a message could be delivered at once")
        .at(S, BROKER),
    level("rabbitmq_consumers", Unit::Count, S, BROKER, "connected consumers").worse(Worse::Neither),
    done("rabbitmq_global_messages_received_total", S, BROKER, "messages from publishers"),
    done("rabbitmq_global_messages_confirmed_total", S, BROKER, "messages confirmed to publishers"),
    done("rabbitmq_global_messages_delivered_total", S, BROKER, "messages delivered"),
    done("rabbitmq_global_messages_acknowledged_total", S, BROKER, "messages acknowledged"),
    done("rabbitmq_global_messages_redelivered_total", S, BROKER, "messages delivered again").worse(Worse::Up),
    event("rabbitmq_global_messages_unroutable_dropped_total", S, BROKER, "messages that no queue took, dropped"),
    event("rabbitmq_global_messages_unroutable_returned_total", S, BROKER, "messages that no queue took, returned"),
    event("rabbitmq_global_messages_dead_lettered_maxlen_total", S, BROKER, "messages pushed out of a full queue"),
    event("rabbitmq_global_messages_dead_lettered_expired_total", S, BROKER, "messages that waited longer than their time to live"),
    // RabbitMQ: the node. At the memory or disk alarm every publisher is blocked.
    level("rabbitmq_connections", Unit::Count, S, NODE, "open connections"),
    level("rabbitmq_channels", Unit::Count, S, NODE, "open channels"),
    queue("rabbitmq_connection_pending_packets", S, "rabbitmq connections"),
    work("rabbitmq_channel_messages_unconfirmed", S, BROKER, "published and not yet confirmed"),
    level("rabbitmq_process_resident_memory_bytes", Unit::Bytes, S, "rabbitmq memory", "memory of the node")
        .of("rabbitmq_resident_memory_limit_bytes"),
    limit_bytes("rabbitmq_resident_memory_limit_bytes", "rabbitmq memory", "publishers are blocked above it"),
    level("rabbitmq_disk_space_available_bytes", Unit::Bytes, Layer::Disk, "rabbitmq disk", "free disk space").worse(Worse::Down),
    limit_bytes("rabbitmq_disk_space_available_limit_bytes", "rabbitmq disk", "publishers are blocked below it"),
    alarm("rabbitmq_alarms_memory_used_watermark", S, "rabbitmq memory", "1 while publishers are blocked for memory"),
    alarm(
        "rabbitmq_alarms_free_disk_space_watermark",
        Layer::Disk,
        "rabbitmq disk",
        "1 while publishers are blocked for disk space",
    ),
    alarm(
        "rabbitmq_alarms_file_descriptor_limit",
        S,
        "rabbitmq file handles",
        "1 while no connection is taken for lack of file handles",
    ),
    level("rabbitmq_process_open_fds", Unit::Count, S, "rabbitmq file handles", "open file handles").of("rabbitmq_process_max_fds"),
    limit("rabbitmq_process_max_fds", S, "rabbitmq file handles"),
    level("rabbitmq_process_open_tcp_sockets", Unit::Count, S, "rabbitmq sockets", "open sockets")
        .of("rabbitmq_process_max_tcp_sockets"),
    limit("rabbitmq_process_max_tcp_sockets", S, "rabbitmq sockets"),
    level("rabbitmq_erlang_processes_used", Unit::Count, S, "erlang processes", "Erlang processes")
        .of("rabbitmq_erlang_processes_limit"),
    limit("rabbitmq_erlang_processes_limit", S, "erlang processes"),
    queue("erlang_vm_statistics_run_queues_length", S, "erlang schedulers"),
    queue("erlang_vm_statistics_run_queues_length_total", S, "erlang schedulers"),
    // Envoy: what waits for the back end, and what its circuit breakers refuse.
    queue("envoy_cluster_upstream_rq_pending_active", P, "envoy pool"),
    work("envoy_cluster_upstream_rq_active", P, "envoy pool", "requests at the back end"),
    work("envoy_cluster_upstream_cx_active", P, "envoy pool", "connections to the back end"),
    alarm("envoy_cluster_circuit_breakers_default_cx_open", P, "envoy circuit breaker", "1 at the limit of connections"),
    alarm("envoy_cluster_circuit_breakers_default_cx_pool_open", P, "envoy circuit breaker", "1 at the limit of pools"),
    alarm(
        "envoy_cluster_circuit_breakers_default_rq_pending_open",
        P,
        "envoy circuit breaker",
        "1 at the limit of waiting requests",
    ),
    alarm("envoy_cluster_circuit_breakers_default_rq_open", P, "envoy circuit breaker", "1 at the limit of requests"),
    alarm("envoy_cluster_circuit_breakers_default_rq_retry_open", P, "envoy circuit breaker", "1 at the limit of retries"),
    // Only with track_remaining.
    spare("envoy_cluster_circuit_breakers_default_remaining_cx", P, "envoy circuit breaker"),
    spare("envoy_cluster_circuit_breakers_default_remaining_pending", P, "envoy circuit breaker"),
    spare("envoy_cluster_circuit_breakers_default_remaining_rq", P, "envoy circuit breaker"),
    event(
        "envoy_cluster_upstream_rq_pending_overflow",
        P,
        "envoy circuit breaker",
        "requests refused: too many wait or are in work",
    ),
    event("envoy_cluster_upstream_cx_overflow", P, "envoy circuit breaker", "times the limit of connections was met"),
    event("envoy_cluster_upstream_cx_connect_fail", P, "envoy pool", "connections to the back end that failed"),
    event("envoy_cluster_upstream_cx_connect_timeout", P, "envoy pool", "connections to the back end that took too long"),
    event("envoy_cluster_upstream_rq_timeout", P, "envoy pool", "requests that the back end did not answer in time"),
    event("envoy_cluster_upstream_rq_per_try_timeout", P, "envoy pool", "tries that the back end did not answer in time"),
    event("envoy_cluster_upstream_rq_retry_overflow", P, "envoy circuit breaker", "retries refused"),
    done("envoy_cluster_upstream_rq_retry", P, "envoy pool", "requests tried again").worse(Worse::Up),
    healthy("envoy_cluster_membership_healthy", "envoy members").of("envoy_cluster_membership_total"),
    limit("envoy_cluster_membership_total", P, "envoy members"),
    served("envoy_cluster_upstream_rq_total"),
    done("envoy_cluster_upstream_rq_xx", P, "envoy pool", "answers of the back end"),
    served("envoy_cluster_upstream_rq_time_count"),
    serving("envoy_cluster_upstream_rq_time_sum", Unit::Milliseconds),
    // Envoy: what comes in.
    concurrent("envoy_http_downstream_rq_active"),
    served("envoy_http_downstream_rq_total"),
    done("envoy_http_downstream_rq_xx", W, PROXY, "answers given"),
    served("envoy_http_downstream_rq_time_count"),
    serving("envoy_http_downstream_rq_time_sum", Unit::Milliseconds),
    event("envoy_http_downstream_rq_timeout", W, PROXY, "requests that took too long"),
    event("envoy_http_downstream_rq_overload_close", W, PROXY, "requests refused for overload"),
    level("envoy_http_downstream_cx_active", Unit::Count, W, PROXY, "connections of clients"),
    level("envoy_listener_downstream_cx_active", Unit::Count, Layer::Accept, "listener", "connections of clients"),
    event("envoy_listener_downstream_cx_overflow", Layer::Accept, "listener", "connections refused: the listener's limit"),
    event(
        "envoy_listener_downstream_global_cx_overflow",
        Layer::Accept,
        "listener",
        "connections refused: the limit of all listeners",
    ),
    event("envoy_listener_downstream_cx_overload_reject", Layer::Accept, "listener", "connections refused for overload"),
    level("envoy_server_total_connections", Unit::Count, W, PROXY, "connections of the process"),
    level("envoy_server_memory_allocated", Unit::Bytes, W, PROXY, "memory in use"),
    limit("envoy_server_concurrency", W, PROXY),
    // Traefik 3, and 2.
    work("traefik_open_connections", W, PROXY, "open connections"),
    work("traefik_entrypoint_open_connections", W, PROXY, "open connections"),
    work("traefik_service_open_connections", P, PROXY, "open connections to the service"),
    served("traefik_entrypoint_requests_total"),
    served("traefik_entrypoint_request_duration_seconds_count"),
    serving("traefik_entrypoint_request_duration_seconds_sum", Unit::Seconds),
    served("traefik_service_requests_total"),
    served("traefik_service_request_duration_seconds_count"),
    serving("traefik_service_request_duration_seconds_sum", Unit::Seconds),
    event("traefik_service_retries_total", P, PROXY, "requests tried again"),
    healthy("traefik_service_server_up", "traefik servers"),
    // Caddy. A request passes several handlers and counts at each: the largest is the outermost.
    concurrent("caddy_http_requests_in_flight"),
    served("caddy_http_requests_total"),
    event("caddy_http_request_errors_total", W, PROXY, "requests that a handler failed"),
    served("caddy_http_request_duration_seconds_count"),
    serving("caddy_http_request_duration_seconds_sum", Unit::Seconds),
    healthy("caddy_reverse_proxy_upstreams_healthy", "caddy upstreams"),
    // Kafka: how far consumer groups are behind.
    lag("kafka_consumergroup_lag"),
    lag("kafka_consumergroup_lag_sum"),
    lag("kafka_consumergroup_group_lag"),
    lag("kafka_consumergroup_group_sum_lag"),
    lag("kafka_consumergroup_group_topic_sum_lag"),
    late("kafka_consumergroup_group_lag_seconds"),
    late("kafka_consumergroup_group_max_lag_seconds"),
    lag("kafka_burrow_partition_lag"),
    lag("kafka_burrow_total_lag"),
    lag("kminion_kafka_consumer_group_topic_lag"),
    lag("kminion_kafka_consumer_group_topic_partition_lag"),
    lag("kafka_consumer_fetch_manager_records_lag"),
    level("kafka_consumergroup_members", Unit::Count, Layer::App, "consumer lag", "members of the consumer group")
        .worse(Worse::Neither),
    counted(
        Gauge::new("kafka_consumergroup_current_offset", Class::Throughput, Unit::Count, "messages consumed")
            .at(Layer::App, "consumer group"),
    ),
    alarm("kafka_topic_partition_under_replicated_partition", S, "kafka", "partitions without all their replicas"),
];

const fn limit_bytes(name: &'static str, resource: &'static str, help: &'static str) -> Gauge {
    Gauge::new(name, Class::Constant, Unit::Bytes, help).at(S, resource)
}

/// Labels by which the series of such names are kept apart, whatever other labels they have. The longest beginning counts.
pub const APART: &[(&str, &[&str])] = &[
    ("rabbitmq_queue_", &["queue"]),
    ("rabbitmq_", &[]),
    ("envoy_cluster_", &["envoy_cluster_name"]),
    ("envoy_http_", &["envoy_http_conn_manager_prefix"]),
    ("envoy_listener_", &["envoy_listener_address"]),
    ("traefik_", &["entrypoint", "service"]),
    ("caddy_http_", &["server"]),
    ("caddy_reverse_proxy_", &[]),
    ("kafka_consumergroup_", &["consumergroup", "group"]),
    ("kafka_burrow_", &["group"]),
    ("kminion_kafka_consumer_group_", &["group_id"]),
    ("kafka_consumer_fetch_", &["topic"]),
    ("kafka_topic_", &[]),
];

/// Series that a program makes at its first request or its first error only, by how its others begin: known before, they
/// have a column from the start. With those that keep the status of an answer.
pub const TO_COME: &[(&str, &[(&str, bool)])] = &[
    (
        "caddy_",
        &[
            ("caddy_http_requests_in_flight", false),
            ("caddy_http_requests_total", false),
            ("caddy_http_request_errors_total", false),
            ("caddy_http_request_duration_seconds_sum", false),
            ("caddy_http_request_duration_seconds_count", true),
        ],
    ),
    (
        "traefik_",
        &[
            ("traefik_entrypoint_requests_total", true),
            ("traefik_entrypoint_request_duration_seconds_sum", false),
            ("traefik_entrypoint_request_duration_seconds_count", false),
            ("traefik_service_requests_total", true),
            ("traefik_service_request_duration_seconds_sum", false),
            ("traefik_service_request_duration_seconds_count", false),
            ("traefik_service_retries_total", false),
        ],
    ),
];

/// Series of which the largest counts, not the sum: each of several parts of a program counts the same request.
pub fn is_nested(name: &str) -> bool {
    name.starts_with("caddy_http_")
}

#[cfg(test)]
mod tests;
