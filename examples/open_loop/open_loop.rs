//! What the open-loop loads share: when requests are due, sending them on time, the log that `correlate` reads, and the
//! sampler beside them.
#![allow(dead_code, reason = "each load uses its part")]

pub mod bookings;
pub mod course;
pub mod http;
pub mod load;
pub mod pace;
pub mod requests;
pub mod watched;
