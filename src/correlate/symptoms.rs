//! What was felt: latency and failures per step, from the driver's log.
//!
//! **Question.** When did users notice, and how long after the first gauge moved? **Method.** Per step: the 95th percentile
//! over its threshold (given, or twice its median at low load), dated as gauges are, and over it in three quarters of what
//! follows at that load or more; the first of the failures that keep coming; refusals apart. **How it fails.** A log that
//! gives percentiles over long windows dates late by up to such a window.

use super::align::{hold, spread};
use super::gather::Frame;
use super::movers::Move;
use super::phases::Phases;
use super::verdict::Symptom;
use crate::judge::onset::crossing;
use crate::judge::robust::{median, smooth};
use crate::timeline::{Interval, Timeline};

/// Everything that was felt, in the order of its onset.
pub fn felt(frame: &Frame, phases: &Phases, timeline: &Timeline, given_ms: Option<f64>) -> Vec<Symptom> {
    let names = timeline.told_apart();
    let (from, to) = phases.range;
    let width = frame.bins_of(3.0_f64.min((to - from) as f64 * frame.step_s / 60.0), 1);
    let least = frame.bins_of((0.03 * (to - from) as f64 * frame.step_s).min(5.0), 3);
    let mut found = Vec::new();
    for name in names {
        let of_step = || timeline.intervals.iter().filter(|interval| interval.step == name);
        let p95 = hold(frame, of_step(), |i| i.p95_ms.or_else(|| i.hist.as_ref().and_then(|hist| hist.quantile_ms(0.95))));
        let p95 = smooth(&p95, width);
        let resting = median(phases.low_bins().map(|bin| p95[bin]));
        let threshold = given_ms.unwrap_or(2.0 * resting);
        let mut add = |measure: &str, threshold: f64, (low, at, high): (usize, usize, usize)| {
            let symptom = Symptom {
                step: name.clone(),
                measure: measure.to_owned(),
                threshold,
                onset: super::tell::onset(frame, low, at, high),
                rate_per_s: super::tell::rates(phases, low, at, high),
                after_first_s: None,
            };
            found.push((at, symptom));
        };
        if threshold.is_finite() {
            let over = |share: f64| {
                let limit = share * threshold;
                crossing((from, to), |bin| if p95[bin].is_finite() { p95[bin].min(2.0 * limit) - limit } else { 0.0 })
            };
            let at = over(1.0);
            let held = (at..to).filter(|bin| phases.axis[*bin] >= 0.95 * phases.axis[at] && p95[*bin].is_finite());
            let (all, slow) = held.fold((0, 0), |(all, slow), bin| (all + 1, slow + usize::from(p95[bin] > threshold)));
            if all >= least && slow * 4 >= all * 3 {
                let (low, high) = (over(0.8).min(at.saturating_sub(width)), over(1.25).max(at + width));
                add("p95_ms", threshold, (low, at, high));
            }
        }
        let count = |amount: fn(&Interval) -> Option<f64>| spread(frame, of_step(), amount);
        for (measure, counts) in [("failed", count(|i| i.failed)), ("refused", count(|i| i.refused))] {
            let known = |bin: usize| counts[bin].is_finite().then(|| counts[bin] > 0.0);
            if let Some(bin) = (from..to).find(|bin| known(*bin) == Some(true)) {
                let bin = stays(&phases.axis, (from, to), known).unwrap_or(bin);
                add(measure, 0.0, (bin.saturating_sub(width), bin, bin + width));
            }
        }
    }
    found.sort_by_key(|(bin, _)| *bin);
    found.into_iter().map(|(_, symptom)| symptom).collect()
}

/// Tells how long after the first gauge it was felt.
pub fn since(felt: &mut [Symptom], frame: &Frame, first: &Move) {
    for symptom in felt {
        symptom.after_first_s = Some(super::tell::round(symptom.onset.elapsed_s - frame.elapsed_s(first.onset.at), 3));
    }
}

/// The first bin from which most later bins at this load or more are over.
fn stays(axis: &[f64], range: (usize, usize), over: impl Fn(usize) -> Option<bool>) -> Option<usize> {
    (range.0..range.1).filter(|bin| over(*bin) == Some(true)).find(|bin| {
        let (mut all, mut held) = (0, 0);
        for later in (*bin..range.1).filter(|later| axis[*later] >= 0.95 * axis[*bin]) {
            if let Some(is_over) = over(later) {
                all += 1;
                held += u32::from(is_over);
            }
        }
        5 * held >= 3 * all && all > 0
    })
}
