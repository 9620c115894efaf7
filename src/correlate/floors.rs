//! What is material: how much must be added to the mean request before it counts as having left the rest.
//!
//! **Method.** A quarter of the resting median latency, or a tenth of the resting mean where most requests are quick and a
//! few are slow; never under a millisecond, which a scheduler adds on a small machine. Without a driver's log the mean time
//! in the outermost target stands for the latency, by Little's law: its busy workers over its rate. Without that, 5 ms.
//! **How it fails.** A run that is saturated at its lowest load has a resting latency that is none; see the caveats.

use super::align::{Basis, Load};
use super::gather::{Frame, Gauge};
use super::phases::Phases;
use crate::judge::robust::median;
use collectors::api::{Class, Layer};

const SHARE_OF_MEDIAN: f64 = 0.25;
const SHARE_OF_MEAN: f64 = 0.1;
const LEAST_MS: f64 = 1.0;
const BLIND_MS: f64 = 5.0;

/// What is material.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Floors {
    /// Milliseconds added to the mean request.
    pub wait_ms: f64,
    /// From how many on an onset is dated: a tenth of the resting mean, where that is less, but at least half the floor.
    pub dated_ms: f64,
}

impl Floors {
    /// Given on the command line, or from the latency at rest.
    pub fn of(frame: &Frame, load: &Load, phases: &Phases, given_ms: Option<f64>) -> Self {
        let at_rest = |values: &[f64]| {
            let resting = median(phases.lowest_bins(frame).map(|bin| values[bin]));
            if resting.is_finite() {
                return resting;
            }
            // No low load: the first quarter of what is judged.
            let (from, to) = phases.range;
            median((from..from + (to - from).div_ceil(4)).map(|bin| values[bin]))
        };
        let half = at_rest(&load.p50_ms);
        let mean = mean_latency(half, at_rest(&load.p95_ms), at_rest(&load.p99_ms)).or_else(|| time_in_target(frame, load, phases));
        let wait_ms = given_ms.unwrap_or_else(|| {
            let of_median = if half.is_finite() { SHARE_OF_MEDIAN * half } else { 0.0 };
            let floor = of_median.max(SHARE_OF_MEAN * mean.unwrap_or(0.0));
            if floor > 0.0 { floor.max(LEAST_MS) } else { BLIND_MS }
        });
        let dated_ms = mean.map_or(wait_ms, |mean| (SHARE_OF_MEAN * mean).max(wait_ms / 2.0).min(wait_ms));
        Self { wait_ms, dated_ms }
    }
}

/// The mean that percentiles tell, the latencies between two of them spread evenly on a logarithmic scale.
pub fn mean_latency(p50: f64, p95: f64, p99: f64) -> Option<f64> {
    let between = |low: f64, high: f64| if high > 1.001 * low { (high - low) / (high / low).ln() } else { low };
    let p99 = if p99.is_finite() { p99 } else { p95 };
    let mean = 0.5 * 0.75 * p50 + 0.45 * between(p50, p95) + 0.04 * between(p95, p99) + 0.01 * p99;
    (mean.is_finite() && p50 > 0.0).then_some(mean)
}

/// The busy workers of the target whose rate stands for the load; `None` with a driver's log.
pub fn busy_workers<'a>(frame: &'a Frame, load: &Load) -> Option<&'a Gauge> {
    let from = frame.gauge(load.from.as_deref()?)?;
    frame.gauges.iter().find(|gauge| {
        gauge.target == from.target
            && matches!(gauge.class, Some(Class::Utilisation | Class::Occupancy))
            && gauge.meaning.layer == Some(Layer::Worker)
            && gauge.meaning.unit == "count"
    })
}

/// Busy workers of the outermost target over its rate.
fn time_in_target(frame: &Frame, load: &Load, phases: &Phases) -> Option<f64> {
    if load.basis == Basis::Measured {
        return None;
    }
    let busy = busy_workers(frame, load)?;
    let time = |bin: usize| 1e3 * busy.values[bin].max(0.0) / load.completed[bin];
    // A mean over all low bins: at rest most readings of a gauge of few workers are 0.
    let (mut busy_sum, mut done) = (0.0, 0.0);
    for bin in phases.low_bins().filter(|bin| time(*bin).is_finite()) {
        busy_sum += busy.values[bin].max(0.0);
        done += load.completed[bin];
    }
    (done > 0.0 && busy_sum > 0.0).then(|| 1e3 * busy_sum / done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_quick_requests_with_a_few_slow_ones_is_far_over_their_median() {
        let mean = mean_latency(10.0, 200.0, 300.0).unwrap();
        assert!((30.0..60.0).contains(&mean), "{mean}");
        assert_eq!(mean_latency(f64::NAN, 1.0, 1.0), None);
        assert!((mean_latency(10.0, 10.0, 10.0).unwrap() - 8.75).abs() < 1e-9);
    }
}
