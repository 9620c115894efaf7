//! Every story that can be made, in the order of the command `--all`.

mod cache;
mod cpu;
mod mysql;
mod on_sale;
mod outbox;
mod spike;
mod web;

use crate::stage::Stage;

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
