//! Sends on time: a thread that does nothing but sleep until the next request is due.

use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Calls out each request when it is due, counted from `begin`; the receiver gets the planned time. Deadlines are absolute,
/// so a late call delays none after it; the thread ends with the plan, or when nobody listens any more.
pub fn pace(begin: Instant, plan: impl Iterator<Item = Duration> + Send + 'static) -> mpsc::UnboundedReceiver<Instant> {
    let (due, calls) = mpsc::unbounded_channel();
    thread::spawn(move || {
        for at in plan.map(|at| begin + at) {
            thread::sleep(at.saturating_duration_since(Instant::now()));
            if due.send(at).is_err() {
                return;
            }
        }
    });
    calls
}
