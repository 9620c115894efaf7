//! Every test that needs more than one piece of the program, in one binary: it links once.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking and says so"
)]

mod sampler {
    mod background;
    mod cli;
    mod driver;
    mod faults;
    mod replicas;
    mod schedule;
    mod silence;
    mod stop;
}
mod driver;
mod correlate {
    mod answers;
    mod caveats;
    mod clocks;
    mod forecast;
    mod gates;
    mod gates_recorded;
    mod held;
    mod history;
    mod join;
    mod ladder;
    mod report;
    mod require;
    mod sent;
}

mod support {
    pub mod collector;
    pub mod declared;
    pub mod held;
    pub mod made;
    pub mod making;
    pub mod memcached;
    pub mod postgres;
    pub mod raw;
    pub mod sampler;
    pub mod server;
    pub mod session;
}

mod files;
mod live {
    mod apache;
    #[cfg(target_os = "linux")]
    mod caddy;
    #[cfg(target_os = "linux")]
    mod cgroup;
    #[cfg(target_os = "linux")]
    mod haproxy;
    #[cfg(target_os = "linux")]
    mod host;
    #[cfg(target_os = "linux")]
    mod listen;
    mod memcached;
    mod moves;
    mod mysql;
    mod nginx;
    #[cfg(target_os = "linux")]
    mod node;
    mod pgbouncer;
    #[cfg(target_os = "linux")]
    mod phpfpm;
    mod postgres;
    mod postgres_locks;
    mod query;
    mod rabbitmq;
    mod redis;
    #[cfg(target_os = "linux")]
    mod silent;
    mod status;
    mod unprivileged;
}

#[path = "../../examples/open_loop/open_loop.rs"]
mod open_loop;

mod complaints;
mod readme;
mod real_drivers;
mod real_locust;
mod stories;
mod story_mysql;
mod story_on_sale;
