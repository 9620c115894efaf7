//! The vocabulary that a collector and everybody who reads its output share.
//!
//! A collector declares what each of its gauges means ([`Gauge`]) and returns raw values ([`Reading`]); rates, shares and
//! ratios are worked out by the reader, in one place. A value that was not read is absent, never 0 and never the last one.
//! All names are `'static`: columns are settled once, before the first row, so a name that is known only at run time is
//! leaked once by [`intern`] and a [`Gauge`] stays a plain constant.

#[cfg(feature = "io")]
mod contract;
mod gauge;
mod reading;

#[cfg(feature = "io")]
pub use contract::{Collector, Section, Spec};
pub use gauge::{Capacity, Class, Gauge, Kind, Lag, Layer, Source, Unit, Worse, intern, joined, total};
pub use reading::{Fault, FaultKind, Lack, Reading, Support, Wait};
