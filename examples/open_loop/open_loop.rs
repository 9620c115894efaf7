//! What the open-loop loads share: when requests are due, sending them on time, and the log that `correlate` reads.
#![allow(dead_code, reason = "each load uses its part")]

pub mod course;
pub mod pace;
pub mod ramp;
pub mod requests;
