//! What each number of the page means.

use crate::api::{Class, Gauge, Lag, Layer, Unit, Worse};

const CHILDREN: &str = "php-fpm children";

/// The master looks about once a second.
const LOOKS: Lag = Lag::Refreshed(1.0);

const fn gauge(name: &'static str, class: Class, help: &'static str) -> Gauge {
    Gauge::new(name, class, Unit::Count, help).at(Layer::App, CHILDREN)
}

const fn count(name: &'static str, class: Class, help: &'static str) -> Gauge {
    Gauge::counter(name, class, Unit::Count, help).at(Layer::App, CHILDREN)
}

/// As through the pool's own listener; beside it nothing is our own.
pub(super) const ALL: &[Gauge] = &[
    gauge("listen_queue", Class::Queue, "requests that wait for a child, as last seen by the master; not told for a Unix socket")
        .of("listen_queue_max")
        .lag(LOOKS),
    gauge("listen_queue_max", Class::Constant, "how many may wait: listen.backlog"),
    gauge("active_processes", Class::Utilisation, "children that serve a request; through the pool one serves this page")
        .of("max_children")
        .own(1.0),
    gauge("idle_processes", Class::Utilisation, "children that wait for a request; 0 with all of them started: the pool is full")
        .worse(Worse::Down),
    gauge("total_processes", Class::Level, "children that are started").worse(Worse::Neither),
    gauge("max_children", Class::Constant, "pm.max_children: as configured here, or all processes of a static pool"),
    count("accepted_total", Class::Throughput, "requests; through the pool one a read by the sampler").own(1.0),
    count(
        "max_children_reached_total",
        Class::Event,
        "times that the pool wanted more children than it may have; not counted when static",
    )
    .lag(LOOKS),
    count("slow_requests_total", Class::Event, "requests that took longer than request_slowlog_timeout").lag(LOOKS),
    Gauge::new("uptime_seconds", Class::Constant, Unit::Seconds, "since the start or the last reload").at(Layer::App, CHILDREN),
];
