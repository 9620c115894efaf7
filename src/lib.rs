//! What gave way first in a load test, and at what rate.
//!
//! `sampler` runs beside any load driver, polls the targets on a fixed tick and writes two plain files; `correlate` reads
//! those and the driver's own log after the run, and names the gauge that left its resting value first.

pub mod correlate;
pub mod driver;
pub mod exit;
pub mod gates;
pub mod hist;
pub mod judge;
#[cfg(feature = "sampler")]
pub mod sample;
pub mod text;
pub mod ticks;
pub mod time;
pub mod timeline;
pub mod waits;
