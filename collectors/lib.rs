//! What each target of a load test tells about itself: one file a target, one contract ([`api`]).
//!
//! A new target is one new file, its fixtures, and two lines here: its `mod` and its entry in [`REGISTRY`].

#[cfg(feature = "io")]
pub mod apache;
pub mod api;
#[cfg(feature = "io")]
pub mod http;
#[cfg(feature = "io")]
pub mod metrics;
#[cfg(feature = "io")]
pub mod settings;

/// Every kind of target, in the order of the documentation.
#[cfg(feature = "io")]
pub const REGISTRY: &[&api::Spec] = &[&apache::SPEC, &metrics::SPEC];
