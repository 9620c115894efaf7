//! Recovery after a spike, and what the spike cost.
//!
//! **Question.** How long after a spike's end was everything as it was before it, and how many requests paid for those that
//! the spike added? **Method.** From the spike's end on, the first moment from which the 95th percentile, and every gauge
//! that was out of its band in the spike, stay inside for 5 s. The band of the latency is what it was before the spike at a
//! load like the one behind it; a gauge's is what the load explains plus what is material, as for a departure. The cost is
//! the requests over the threshold (or not served) from the spike's begin until recovery, over those that the spike added to
//! the load before it. **How it fails.** Where the load ends before that, nothing is said but how long was looked at. Without
//! single requests in the log the share over the threshold is read off the percentiles.

use super::bench::{Bench, can_be_first};
use super::phases::Part;
use super::steps::merged;
use super::tell::round;
use crate::judge::robust::{median, quantile, smooth, spread};
use crate::timeline::{Interval, Timeline};
use serde::Serialize;

/// Inside for so long is back.
const BACK_S: f64 = 5.0;
/// Loads within this share of each other are alike.
const ALIKE: f64 = 0.25;
/// Latency within this share over its usual highest is inside its band.
const SLACK: f64 = 0.1;

/// What followed a spike.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recovery {
    /// When the spike was: seconds since the run's start.
    pub spike_from_s: f64,
    /// Its end.
    pub spike_to_s: f64,
    /// Whether everything was back before the load ended.
    pub recovered: bool,
    /// Seconds from the spike's end until the last of them was back.
    pub after_s: Option<f64>,
    /// For how many seconds under load it was looked.
    pub observed_s: f64,
    /// Each of them, the slowest first: the latency as `p95_ms`, gauges by their column.
    pub parts: Vec<Back>,
    /// What the spike cost; `None` without a driver's log.
    pub cost: Option<Cost>,
}

/// One measure after a spike.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Back {
    /// `p95_ms` or a gauge's column.
    pub measure: String,
    /// Seconds from the spike's end until it was back; `None` if it never was.
    pub after_s: Option<f64>,
}

/// What a spike cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// The latency over which a request paid.
    pub threshold_ms: f64,
    /// Requests over it, from the spike's begin until recovery.
    pub over: f64,
    /// Refused, failed and never sent, in the same time.
    pub not_served: f64,
    /// Requests that the spike added.
    pub extra: f64,
    /// Both of the above over the added ones.
    pub per_extra: f64,
    /// `merged` from single requests, or `of_windows`: read off percentiles.
    pub percentiles: &'static str,
}

/// Every spike that the run goes on behind.
pub fn find(bench: &Bench, timeline: Option<&Timeline>, threshold_ms: Option<f64>) -> Vec<Recovery> {
    let spikes = bench.phases.parts.iter().filter(|part| part.name == "spike");
    spikes.filter_map(|spike| after(bench, timeline, spike, threshold_ms)).collect()
}

fn after(bench: &Bench, timeline: Option<&Timeline>, spike: &Part, threshold_ms: Option<f64>) -> Option<Recovery> {
    let (frame, load) = (bench.frame, bench.load);
    let (begin, end) = spike.bins;
    // Until the load ends or the next spike comes.
    let next = bench.phases.parts.iter().filter(|part| part.name == "spike" && part.bins.0 >= end).map(|part| part.bins.0).min();
    let last = bench.phases.loaded.iter().rposition(|on| *on)? + 1;
    let until = next.unwrap_or(last).min(last);
    let hold = frame.bins_of(BACK_S, 2);
    if until < end + hold {
        return None;
    }
    let back = |inside: &dyn Fn(usize) -> Option<bool>| back_from(end, until, hold, inside);
    let mut bins: Vec<(String, Option<usize>)> = Vec::new();
    if let Some(limit) = latency_limit(bench, spike.bins, until) {
        bins.push(("p95_ms".to_owned(), back(&|bin| load.p95_ms[bin].is_finite().then(|| load.p95_ms[bin] <= limit))));
    }
    for gauge in &frame.gauges {
        let Some(class) = gauge.class.filter(|class| can_be_first(*class)) else { continue };
        let Ok(trace) = bench.trace(gauge, class, bench.floors.wait_ms) else { continue };
        let smoothed = smooth(&trace.excess, 3);
        let out = (begin..end).filter(|bin| smoothed[*bin] > trace.floor[*bin]).count();
        if out >= 3.min(end - begin) {
            bins.push((
                gauge.name.clone(),
                back(&|bin| trace.excess[bin].is_finite().then(|| trace.excess[bin] <= trace.floor[bin])),
            ));
        }
    }
    let seconds = |bin: usize| round((bin - end) as f64 * frame.step_s, 1);
    bins.sort_by_key(|(_, bin)| std::cmp::Reverse(bin.unwrap_or(usize::MAX)));
    let recovered = bins.iter().all(|(_, bin)| bin.is_some());
    let slowest = bins.first().and_then(|(_, bin)| *bin);
    let paid_until = if recovered { slowest.unwrap_or(end) } else { until };
    let edge = |bin: usize| round(frame.elapsed_s(bin) - frame.step_s / 2.0, 1);
    Some(Recovery {
        spike_from_s: edge(begin),
        spike_to_s: edge(end),
        recovered,
        after_s: recovered.then(|| slowest.map_or(0.0, seconds)),
        observed_s: seconds(until),
        parts: bins.iter().map(|(measure, bin)| Back { measure: measure.clone(), after_s: bin.map(seconds) }).collect(),
        cost: timeline.and_then(|timeline| cost(bench, timeline, (begin, end, paid_until), threshold_ms)),
    })
}

/// The first bin from which everything known is inside for `hold` bins.
fn back_from(end: usize, until: usize, hold: usize, inside: &dyn Fn(usize) -> Option<bool>) -> Option<usize> {
    (end..=until.saturating_sub(hold)).find(|bin| {
        let known: Vec<bool> = (*bin..*bin + hold).filter_map(inside).collect();
        inside(*bin) == Some(true) && known.len() * 2 >= hold && known.iter().all(|inside| *inside)
    })
}

/// What the 95th percentile was before the spike, at a load like the one behind it.
fn latency_limit(bench: &Bench, (begin, end): (usize, usize), until: usize) -> Option<f64> {
    let (load, phases) = (bench.load, bench.phases);
    let behind = median((end..until).map(|bin| load.offered[bin]));
    let alike = |bin: &usize| (load.offered[*bin] / behind - 1.0).abs() <= ALIKE && !phases.parts_named("spike", *bin);
    // The spike's own first bins are not before it.
    let settled = begin.saturating_sub(bench.frame.bins_of(1.0, 1));
    let before: Vec<f64> =
        (phases.range.0..settled).filter(alike).map(|bin| load.p95_ms[bin]).filter(|ms| ms.is_finite()).collect();
    let resting: Vec<f64> = if before.len() >= 5 {
        before
    } else {
        phases.low_bins().map(|bin| load.p95_ms[bin]).filter(|ms| ms.is_finite()).collect()
    };
    let middle = median(resting.iter().copied());
    let usual = quantile(resting.iter().copied(), 0.95).max(middle + 3.0 * spread(resting.iter().copied(), middle));
    let limit = (usual * (1.0 + SLACK)).max(middle + bench.floors.wait_ms);
    limit.is_finite().then_some(limit)
}

fn cost(bench: &Bench, timeline: &Timeline, (begin, end, until): (usize, usize, usize), threshold_ms: Option<f64>) -> Option<Cost> {
    let (frame, load, phases) = (bench.frame, bench.load, bench.phases);
    let threshold = threshold_ms.unwrap_or_else(|| 2.0 * median(phases.low_bins().map(|bin| load.p95_ms[bin])));
    if !threshold.is_finite() {
        return None;
    }
    let edge = |bin: usize| frame.at_ms(bin) - frame.step_s * 500.0;
    let rows = |from: usize, to: usize| {
        let (from, to) = (edge(from), edge(to));
        timeline.all().filter(move |row| (from..to).contains(&(row.unix_ms as f64 + row.dur_ms / 2.0)))
    };
    let before = begin.saturating_sub(frame.bins_of(10.0, 3)).max(phases.range.0);
    let usual = median((before..begin).map(|bin| load.offered[bin]));
    let sent: f64 = (begin..end).map(|bin| load.offered[bin] * frame.step_s).filter(|count| count.is_finite()).sum();
    let extra = sent - usual * (end - begin) as f64 * frame.step_s;
    let (over, percentiles) = match merged(rows(begin, until)) {
        Some(hist) => (hist.over_ms(threshold) as f64, "merged"),
        None => (rows(begin, until).map(|row| row.ok.unwrap_or(0.0) * share_over(row, threshold)).sum(), "of_windows"),
    };
    let lost = |row: &Interval| [row.failed, row.refused, row.dropped].into_iter().flatten().sum::<f64>();
    let not_served: f64 = rows(begin, until).map(lost).sum();
    (extra >= 1.0).then(|| Cost {
        threshold_ms: round(threshold, 3),
        over: round(over, 0),
        not_served: round(not_served, 0),
        extra: round(extra, 0),
        per_extra: round((over + not_served) / extra, 3),
        percentiles,
    })
}

/// The share of an interval's requests over a limit, its percentiles joined by straight lines.
fn share_over(row: &Interval, limit: f64) -> f64 {
    let known = [(0.5, row.p50_ms), (0.05, row.p95_ms), (0.01, row.p99_ms), (0.0, row.max_ms)];
    let points: Vec<(f64, f64)> = known.into_iter().filter_map(|(over, ms)| Some((over, ms?))).collect();
    // Half of them are under the median; nothing is known of how far.
    let (mut share, mut low) = (1.0, 0.0);
    for (over, ms) in points {
        if limit < ms {
            return over + (share - over) * (ms - limit) / (ms - low).max(1e-9);
        }
        (share, low) = (over, ms);
    }
    if share == 1.0 { 0.0 } else { share.min(0.01) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_is_the_first_moment_from_which_everything_stays_inside() {
        let inside = |bin: usize| Some(!(10..14).contains(&bin) && bin != 16);
        assert_eq!(back_from(10, 40, 5, &inside), Some(17));
        assert_eq!(back_from(10, 20, 5, &inside), None, "five seconds of it must be seen");
        assert_eq!(back_from(20, 40, 5, &inside), Some(20));
    }

    #[test]
    fn the_share_over_a_limit_is_read_off_the_percentiles() {
        let row =
            Interval { p50_ms: Some(100.0), p95_ms: Some(200.0), p99_ms: Some(300.0), max_ms: Some(400.0), ..Interval::default() };
        assert!((share_over(&row, 200.0) - 0.05).abs() < 1e-9);
        assert!((share_over(&row, 150.0) - 0.275).abs() < 1e-9);
        assert!((share_over(&row, 50.0) - 0.75).abs() < 1e-9);
        assert_eq!(share_over(&row, 500.0), 0.0);
    }
}
