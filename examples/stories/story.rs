//! Every story that can be made, in the order of the command `--all`.

mod app;
mod both;
mod cache;
mod cpu;
mod dependency;
mod job;
mod ladder;
mod light;
mod limit;
mod mysql;
mod on_sale;
mod outbox;
mod page;
mod postgres;
mod spike;
mod table;
mod web;

use crate::open_loop::course::{Course, Leg};
use crate::open_loop::load::{self, App};
use crate::stage::Stage;
use std::path::Path;

/// One real run with a planted cause.
pub struct Story {
    /// The name of its folder.
    pub name: &'static str,
    /// Plays it.
    pub make: fn(&Stage) -> anyhow::Result<()>,
}

/// All of them.
pub const STORIES: &[Story] = &[
    Story { name: "mysql-hot-row", make: mysql::hot_row },
    Story { name: "mysql-many-rows", make: mysql::many_rows },
    Story { name: "mysql-max-connections", make: mysql::max_connections },
    Story { name: "mariadb-hot-row", make: mysql::mariadb_hot_row },
    Story { name: "mysql-table-lock", make: table::locked },
    Story { name: "mysql-migration", make: table::migration },
    Story { name: "postgres-hot-row", make: postgres::hot_row },
    Story { name: "postgres-advisory-lock", make: postgres::advisory_lock },
    Story { name: "postgres-unique-key", make: postgres::unique_key },
    Story { name: "postgres-max-connections", make: limit::postgres_connections },
    Story { name: "pgbouncer-pool", make: postgres::small_pool },
    Story { name: "app-pool", make: app::small_pool },
    Story { name: "slow-dependency", make: dependency::slow },
    Story { name: "open-files", make: limit::open_files },
    Story { name: "two-at-once", make: both::at_once },
    Story { name: "two-in-order", make: both::in_order },
    Story { name: "nightly-job", make: job::nightly },
    Story { name: "nothing", make: light::nothing },
    Story { name: "driver-bottleneck", make: light::small_driver },
    Story { name: "ladder", make: ladder::rungs },
    Story { name: "soak", make: app::soak },
    Story { name: "leak", make: app::leak },
    Story { name: "phpfpm-children", make: web::phpfpm_children },
    Story { name: "apache-workers", make: web::apache_workers },
    Story { name: "apache-prefork", make: web::apache_prefork },
    Story { name: "nginx-connections", make: limit::nginx_connections },
    Story { name: "haproxy-queue", make: web::haproxy_queue },
    Story { name: "memcached-evictions", make: cache::memcached_evictions },
    Story { name: "memcached-connections", make: limit::memcached_connections },
    Story { name: "redis-memory", make: limit::redis_memory },
    Story { name: "redis-slow-script", make: cache::redis_slow_script },
    Story { name: "redis-stampede", make: cache::redis_stampede },
    Story { name: "cpu-limited", make: cpu::limited },
    Story { name: "outbox", make: outbox::falls_behind },
    Story { name: "on-sale-pool", make: on_sale::pool },
    Story { name: "on-sale-cache", make: on_sale::cache },
    Story { name: "on-sale-cpu", make: on_sale::cpu },
    Story { name: "spike-recovers", make: spike::recovers },
    Story { name: "spike-no-recovery", make: spike::no_recovery },
];

/// Ten seconds of rest, then a straight climb.
fn climb(from: f64, to: f64) -> Course {
    Course(vec![Leg::flat(from, 10), Leg::slope(from, to, 35)])
}

/// An open loop of visitors who come at random, always the same ones, to the application that `app` has made ready.
fn open(course: Course, workers: Option<usize>, log: &Path, app: impl Future<Output = anyhow::Result<App>>) -> anyhow::Result<()> {
    load::runtime()?.block_on(async {
        load::open(course, 1, workers, app.await?, log).await?;
        Ok(())
    })
}

/// The same, evenly: what is served one at a time has no queue until the rate is more than it can do.
fn even(course: Course, log: &Path, app: impl Future<Output = anyhow::Result<App>>) -> anyhow::Result<()> {
    load::runtime()?.block_on(async {
        load::even(course, app.await?, log).await?;
        Ok(())
    })
}
