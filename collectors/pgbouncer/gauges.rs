//! Every gauge of PgBouncer, and the columns of a pool.

use crate::api::{Class, Gauge, Lag, Layer, Source, Unit, Worse, intern};

const POOLS: &str = "pgbouncer pools";
const CLIENTS: &str = "pgbouncer clients";
const N: Unit = Unit::Count;

const fn now(name: &'static str, class: Class, unit: Unit, help: &'static str) -> Gauge {
    Gauge::new(name, class, unit, help).at(Layer::Pool, POOLS)
}

const fn counter(name: &'static str, unit: Unit, help: &'static str) -> Gauge {
    Gauge::counter(name, Class::Throughput, unit, help).at(Layer::Pool, POOLS)
}

/// Over all pools but PgBouncer's own.
pub const GAUGES: &[Gauge] = &[
    now("clients_waiting", Class::Queue, N, "clients that wait for a server connection"),
    now("maxwait_seconds", Class::Age, Unit::Seconds, "how long the first of them has waited"),
    now("servers_active", Class::Utilisation, N, "server connections that serve a client").of("servers_max"),
    now(
        "servers_max",
        Class::Constant,
        N,
        "server connections that the pools there are may have: sizes and reserves, within the limits of database and user",
    ),
    now("servers_idle", Class::Level, N, "server connections that are free, to be checked or being checked").worse(Worse::Neither),
    now("servers_login", Class::Level, N, "server connections being opened"),
    now("clients_active", Class::Level, N, "clients with a server connection, or with nothing to ask").worse(Worse::Neither),
    now("clients_used", Class::Utilisation, N, "client connections, the sampler's own too")
        .of("max_client_conn")
        .own(1.0)
        .at(Layer::Pool, CLIENTS),
    now("max_client_conn", Class::Constant, N, "client connections at most; more are refused").at(Layer::Pool, CLIENTS),
    now("clients_login", Class::Queue, N, "clients that wait to be let in").at(Layer::Pool, "pgbouncer logins"),
    Gauge::counter(
        "wait_us_total",
        Class::WaitSum,
        Unit::Microseconds,
        "time clients waited for a server connection, added when they get it",
    )
    .lag(Lag::Completion)
    .at(Layer::Pool, POOLS),
    counter("transactions_total", N, "transactions that ended"),
    counter("queries_total", N, "statements that ended"),
    counter("transaction_us_total", Unit::Microseconds, "time server connections were inside a transaction").lag(Lag::Completion),
    counter("query_us_total", Unit::Microseconds, "time server connections were inside a statement").lag(Lag::Completion),
    now("query_us", Class::Level, Unit::Microseconds, "mean time of the statements that ended, at the server")
        .derived(Source::Of(&["query_us_total"], &["queries_total"]))
        .lag(Lag::Completion),
    counter("server_assignments_total", N, "times that a client got a server connection"),
    counter("received_bytes_total", Unit::Bytes, "received from clients and servers"),
    counter("sent_bytes_total", Unit::Bytes, "sent to clients and servers"),
];

/// The columns of one pool, by names made once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PoolColumns {
    /// How many wait.
    pub waiting: Gauge,
    /// How long the first has waited.
    pub maxwait: Gauge,
    /// Servers in use.
    pub active: Gauge,
    /// Servers at most.
    pub max: Gauge,
}

impl PoolColumns {
    /// For `database/user`; `taken` are the prefixes in use.
    pub fn new(database: &str, user: &str, taken: &mut Vec<String>) -> Self {
        let plain = |text: &str| {
            text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect::<String>()
        };
        let base = format!("pool_{}_{}", plain(database), plain(user));
        let mut prefix = base.clone();
        let mut number = 2;
        // shop-a/b and shop_a/b are two pools.
        while taken.contains(&prefix) {
            prefix = format!("{base}_{number}");
            number += 1;
        }
        taken.push(prefix.clone());
        let resource = intern(&format!("pgbouncer pool {database}/{user}"));
        let max = intern(&format!("{prefix}_servers_max"));
        let at = |name: &str, class, unit, help| {
            Gauge::new(intern(&format!("{prefix}_{name}")), class, unit, help).at(Layer::Pool, resource)
        };
        Self {
            waiting: at("clients_waiting", Class::Queue, N, "clients of this pool that wait for a server connection"),
            maxwait: at("maxwait_seconds", Class::Age, Unit::Seconds, "how long the first of them has waited"),
            active: at("servers_active", Class::Utilisation, N, "server connections of this pool that serve a client").of(max),
            max: at("servers_max", Class::Constant, N, "server connections that this pool may have, its reserve too"),
        }
    }

    /// All four.
    pub fn all(&self) -> [Gauge; 4] {
        [self.waiting, self.maxwait, self.active, self.max]
    }
}
