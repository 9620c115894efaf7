//! Are the driver's clock and the sampler's the same?
//!
//! **Question.** By how much must the driver's log be moved so that what it completed fits what the targets counted?
//! **Method.** The driver's completions per bin, nothing outside its log, against the throughput gauge of the outermost
//! target: the lag with the highest correlation (both see the same requests, their start, their end and their chance
//! bunches). It counts only if it is clearly better than no lag. Where the sampler started the driver, a log that begins
//! before that start is apart by at least so much. **How it fails.** A load without any edge or bunch (perfectly even, both
//! ends outside the ticks) fits at every lag of a plateau; then nothing is said.

use super::align::{self, Axis};
use super::gather::Frame;
use crate::timeline::{Interval, Timeline};

/// Farther than this the log is not of this run, or of another zone.
const MOST_S: f64 = 300.0;
/// Nearer than this nobody is apart: latency and a driver's own intervals explain it.
const LEAST_S: f64 = 3.0;
/// The correlation that the best lag must have.
const FITS: f64 = 0.9;
/// The share of what was left unexplained that the best lag must explain.
const BETTER: f64 = 0.5;

/// By how many seconds the driver's log must be moved; `None` where it fits or where it cannot be told.
pub fn apart(frame: &Frame, timeline: &Timeline) -> Option<f64> {
    let gauge = align::outermost(frame)?;
    let longest = timeline.all().map(|interval| interval.dur_ms / 1e3).fold(0.0, f64::max);
    let reach = (MOST_S / frame.step_s).ceil() as usize;
    let wide =
        Axis { start_ms: frame.start_ms - reach as f64 * frame.step_s * 1e3, step_s: frame.step_s, bins: frame.bins + 2 * reach };
    let ended = |i: &Interval| align::ended(i);
    let driver: Vec<f64> =
        align::spread(wide, timeline.all(), ended).into_iter().map(|x| if x.is_finite() { x } else { 0.0 }).collect();
    // A fine lag needs a fine series only where there are few bins.
    let stride = ((frame.bins * 2 * reach) / 40_000_000 + 1).max(1);
    let fit = |lag: usize| correlation(&gauge.values, &driver[lag..lag + frame.bins]);
    let here = fit(reach);
    let (best, lag) = (0..=2 * reach)
        .step_by(stride)
        .map(|lag| (fit(lag), lag))
        .filter(|(fits, _)| fits.is_finite())
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    let seconds = (reach as f64 - lag as f64) * frame.step_s;
    let clearly = best > FITS && 1.0 - best * best < (1.0 - BETTER) * (1.0 - here.max(0.0).powi(2));
    (clearly && seconds.abs() >= LEAST_S.max(1.5 * longest)).then_some(seconds)
}

/// How long before the driver was started its log begins; `None` where the sampler did not start it or where it fits.
pub fn before_its_start(frame: &Frame, timeline: &Timeline) -> Option<f64> {
    let start = frame.children.iter().find_map(|child| child.start_unix_ms)?;
    let begins = timeline.all().find(|interval| interval.started.or(interval.ok).is_some_and(|count| count > 0.0))?.unix_ms;
    let early = (start - begins) as f64 / 1e3;
    (early > LEAST_S).then_some(early)
}

/// Moves a log.
pub fn shift(timeline: &Timeline, seconds: f64) -> Timeline {
    let mut moved = timeline.clone();
    for interval in &mut moved.intervals {
        interval.unix_ms += (seconds * 1e3).round() as i64;
    }
    moved.driver.clock_offset_ms += seconds * 1e3;
    moved
}

/// Pearson's correlation over the bins in which both are known.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let (mut n, mut sa, mut sb, mut saa, mut sbb, mut sab) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(b).filter(|(x, y)| x.is_finite() && y.is_finite()) {
        n += 1.0;
        sa += x;
        sb += y;
        saa += x * x;
        sbb += y * y;
        sab += x * y;
    }
    let (va, vb) = (saa - sa * sa / n, sbb - sb * sb / n);
    if n < 5.0 || va <= 0.0 || vb <= 0.0 { f64::NAN } else { (sab - sa * sb / n) / (va * vb).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_fits_itself_and_a_constant_fits_nothing() {
        let a = [1.0, 5.0, 2.0, 8.0, 3.0, f64::NAN];
        assert!((correlation(&a, &a) - 1.0).abs() < 1e-12);
        assert!(correlation(&a, &[2.0; 6]).is_nan());
    }
}
