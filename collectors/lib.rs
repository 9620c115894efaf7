//! What each target of a load test tells about itself: one file a target, one contract ([`api`]).
//!
//! A new target is one new file, its fixtures, and two lines here: its `mod` and its entry in [`REGISTRY`].

#[cfg(feature = "io")]
mod address;
#[cfg(feature = "io")]
pub mod apache;
pub mod api;
#[cfg(feature = "io")]
pub mod cgroup;
#[cfg(all(test, feature = "io"))]
mod damaged;
#[cfg(feature = "io")]
mod declared;
#[cfg(feature = "io")]
mod fields;
#[cfg(feature = "io")]
pub mod haproxy;
#[cfg(feature = "io")]
pub mod host;
#[cfg(feature = "io")]
pub mod http;
#[cfg(feature = "io")]
pub mod json;
#[cfg(all(feature = "io", target_os = "linux"))]
pub mod listen;
#[cfg(feature = "io")]
pub mod memcached;
#[cfg(feature = "io")]
pub mod metrics;
#[cfg(feature = "io")]
pub mod mysql;
#[cfg(feature = "io")]
pub mod nginx;
#[cfg(feature = "io")]
pub mod pgbouncer;
#[cfg(feature = "io")]
pub mod phpfpm;
#[cfg(feature = "io")]
pub mod postgres;
#[cfg(feature = "io")]
mod proc;
#[cfg(feature = "io")]
pub mod process;
#[cfg(feature = "io")]
pub mod promql;
#[cfg(feature = "io")]
pub mod query;
#[cfg(feature = "io")]
pub mod rabbitmq;
#[cfg(feature = "io")]
pub mod redis;
#[cfg(feature = "io")]
pub mod settings;
#[cfg(feature = "io")]
mod sql;
#[cfg(feature = "io")]
pub mod status;
#[cfg(feature = "io")]
mod stream;

/// Every kind of target, in the order of the documentation.
#[cfg(feature = "io")]
pub const REGISTRY: &[&api::Spec] = &[
    &mysql::SPEC,
    &postgres::SPEC,
    &pgbouncer::SPEC,
    &redis::SPEC,
    &memcached::SPEC,
    &apache::SPEC,
    &nginx::SPEC,
    &phpfpm::SPEC,
    &haproxy::SPEC,
    &rabbitmq::SPEC,
    &status::SPEC,
    &metrics::SPEC,
    &json::SPEC,
    &promql::SPEC,
    &query::SPEC,
    &host::SPEC,
    &process::SPEC,
    &cgroup::SPEC,
    #[cfg(target_os = "linux")]
    &listen::SPEC,
];
