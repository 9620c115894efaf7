//! What each number of a proxy and of the process means. `PROXY` stands for the proxy's name.

use crate::api::{Class, Gauge, Lag, Layer, Unit, Worse};

/// Where in the table a proxy's number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// In the frontend's row.
    Frontend(&'static str),
    /// Requests of the frontend, connections where it is no HTTP.
    FrontendRequests,
    /// In the backend's row.
    Backend(&'static str),
    /// Requests of the backend, connections where it is no HTTP.
    BackendRequests,
    /// The sum of the servers' rows.
    Servers(&'static str),
    /// The sum of the limits of the servers that are in use; not the backend's own, which is `fullconn`.
    ServersLimit,
    /// Servers that are up, backups too.
    ServersUp,
}

/// A number of every proxy of its kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Template {
    pub(super) gauge: Gauge,
    pub(super) from: From,
    /// Also summed over the proxies that have no columns of their own.
    pub(super) summed: bool,
}

const fn gauge(name: &'static str, class: Class, help: &'static str) -> Gauge {
    Gauge::new(name, class, Unit::Count, help).at(Layer::Worker, "haproxy")
}

const fn count(name: &'static str, class: Class, help: &'static str) -> Gauge {
    Gauge::counter(name, class, Unit::Count, help).at(Layer::Worker, "haproxy")
}

/// A mean of the last 1024 requests, at whatever rate they came: evidence, and late.
const fn mean(name: &'static str, help: &'static str) -> Gauge {
    Gauge::new(name, Class::Level, Unit::Milliseconds, help).lag(Lag::Completion).at(Layer::Worker, "haproxy")
}

const fn one(gauge: Gauge, from: From) -> Template {
    Template { gauge, from, summed: false }
}

const fn summed(gauge: Gauge, from: From) -> Template {
    Template { gauge, from, summed: true }
}

/// All of them.
pub(super) const TEMPLATES: [Template; 22] = [
    one(
        gauge("PROXY_frontend_sessions", Class::Utilisation, "clients' connections; at the limit others wait in the accept queue")
            .of("PROXY_frontend_sessions_max"),
        From::Frontend("scur"),
    ),
    one(gauge("PROXY_frontend_sessions_max", Class::Constant, "maxconn of the frontend"), From::Frontend("slim")),
    summed(
        count("PROXY_frontend_requests_total", Class::Throughput, "requests as they came in (connections, in TCP mode)"),
        From::FrontendRequests,
    ),
    summed(count("PROXY_frontend_denied_total", Class::Event, "requests denied by a rule"), From::Frontend("dreq")),
    summed(count("PROXY_frontend_denied_connections_total", Class::Event, "connections denied by a rule"), From::Frontend("dcon")),
    summed(
        count("PROXY_frontend_request_errors_total", Class::Event, "clients that broke off, timed out or sent nonsense"),
        From::Frontend("ereq"),
    ),
    summed(
        count("PROXY_frontend_responses_5xx_total", Class::Event, "answers with status 5xx, HAProxy's own 503 and 504 among them"),
        From::Frontend("hrsp_5xx"),
    ),
    summed(gauge("PROXY_queue", Class::Queue, "requests that wait for any server: all at their maxconn"), From::Backend("qcur")),
    summed(
        gauge("PROXY_servers_queue", Class::Queue, "requests that wait for the one server they are bound to (a cookie, a hash)"),
        From::Servers("qcur"),
    ),
    one(
        gauge("PROXY_servers_sessions", Class::Utilisation, "requests that servers work on").of("PROXY_servers_sessions_max"),
        From::Servers("scur"),
    ),
    one(
        gauge("PROXY_servers_sessions_max", Class::Constant, "maxconn of the servers in use; missing where one has no limit"),
        From::ServersLimit,
    ),
    one(gauge("PROXY_servers_up", Class::Level, "servers that are up, backups too").worse(Worse::Down), From::ServersUp),
    summed(count("PROXY_server_downs_total", Class::Event, "times that a server was found down"), From::Servers("chkdown")),
    summed(
        count(
            "PROXY_connect_errors_total",
            Class::Event,
            "connections that a server did not take, and requests that waited too long",
        ),
        From::Backend("econ"),
    ),
    summed(
        count("PROXY_response_errors_total", Class::Event, "servers that broke off or answered nonsense"),
        From::Backend("eresp"),
    ),
    summed(count("PROXY_retries_total", Class::Event, "connections to a server that were tried again"), From::Backend("wretr")),
    summed(count("PROXY_redispatches_total", Class::Event, "requests given to another server"), From::Backend("wredis")),
    summed(
        count("PROXY_requests_total", Class::Throughput, "requests that were answered (connections, in TCP mode)")
            .lag(Lag::Completion),
        From::BackendRequests,
    ),
    one(mean("PROXY_queue_time_ms", "mean wait for a server, of the last 1024 requests"), From::Backend("qtime")),
    one(mean("PROXY_connect_time_ms", "mean time to connect to a server, of the last 1024 requests"), From::Backend("ctime")),
    one(mean("PROXY_response_time_ms", "mean time to a server's answer, of the last 1024 requests"), From::Backend("rtime")),
    one(mean("PROXY_total_time_ms", "mean time in all, of the last 1024 requests"), From::Backend("ttime")),
];

/// Numbers of `show info` by name; of the one that is marked, what is left to 100.
pub(super) const PROCESS: &[(&str, Gauge, bool)] = &[
    (
        "CurrConns",
        gauge("connections", Class::Utilisation, "connections of clients, to all frontends").of("connections_max"),
        false,
    ),
    (
        "Maxconn",
        gauge("connections_max", Class::Constant, "global maxconn; at it new connections wait in the accept queues"),
        false,
    ),
    (
        "MaxconnReached",
        count("maxconn_reached_total", Class::Event, "times that a connection met the global maxconn (from 2.8 on)"),
        false,
    ),
    (
        "Idle_pct",
        Gauge::new(
            "busy_percent",
            Class::Utilisation,
            Unit::Percent,
            "share of time in which the threads did not wait for events: 100 - Idle_pct, mean of all",
        )
        .of_fixed(100.0)
        .lag(Lag::Refreshed(0.5))
        .at(Layer::Worker, "haproxy threads"),
        true,
    ),
    (
        "Run_queue",
        Gauge::new("run_queue", Class::Level, Unit::Count, "tasks that wait for a thread").at(Layer::Worker, "haproxy threads"),
        false,
    ),
    ("PoolFailed", count("pool_failures_total", Class::Event, "memory that could not be had"), false),
    (
        "Uptime_sec",
        Gauge::new("uptime_seconds", Class::Constant, Unit::Seconds, "since the process began; a reload begins another")
            .at(Layer::Worker, "haproxy"),
        false,
    ),
];

/// Of the process, and of one proxy that is both frontend and backend.
pub(super) const ALL: &[Gauge] = &all();

const fn all() -> [Gauge; PROCESS.len() + TEMPLATES.len()] {
    let mut all = [PROCESS[0].1; PROCESS.len() + TEMPLATES.len()];
    let mut index = 0;
    while index < all.len() {
        all[index] = if index < PROCESS.len() { PROCESS[index].1 } else { TEMPLATES[index - PROCESS.len()].gauge };
        index += 1;
    }
    all
}
