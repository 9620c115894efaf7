//! Every story that can be made, in the order of the command `--all`.

mod app;
mod cache;
mod cpu;
mod ladder;
mod light;
mod mysql;
mod on_sale;
mod outbox;
mod page;
mod postgres;
mod spike;
mod web;

use crate::load::{self, App};
use crate::open_loop::course::{Course, Leg};
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
    Story { name: "postgres-hot-row", make: postgres::hot_row },
    Story { name: "postgres-advisory-lock", make: postgres::advisory_lock },
    Story { name: "pgbouncer-pool", make: postgres::small_pool },
    Story { name: "app-pool", make: app::small_pool },
    Story { name: "nothing", make: light::nothing },
    Story { name: "driver-bottleneck", make: light::small_driver },
    Story { name: "ladder", make: ladder::rungs },
    Story { name: "soak", make: app::soak },
    Story { name: "leak", make: app::leak },
    Story { name: "phpfpm-children", make: web::phpfpm_children },
    Story { name: "apache-workers", make: web::apache_workers },
    Story { name: "haproxy-queue", make: web::haproxy_queue },
    Story { name: "memcached-evictions", make: cache::memcached_evictions },
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
