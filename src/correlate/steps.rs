//! The steps of the journey, one row each.
//!
//! **Question.** How much of each step was asked, how long did it take, and what became of it? **Method.** Counts are summed
//! over the driver's log; percentiles come from the merged histograms of the single requests (exact within half a percent),
//! never from a mean over steps or windows: a slow step with few requests would hide in it. Refusals that the site meant
//! stand apart from failures, and what was never sent apart from both. What a request waited in the driver is the driver's
//! own delay, not the site's. **How it fails.** A log that gives percentiles over windows only cannot be merged: then the
//! median of the windows' percentiles is given, and the row says so.

use super::tell::round;
use crate::hist::Hist;
use crate::judge::robust::median;
use crate::timeline::{ALL, Interval, Timeline};
use serde::Serialize;

/// One step over the whole log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Its name; `*` where the log knows no steps.
    pub step: String,
    /// Requests that ended.
    pub requests: f64,
    /// Of those, per second of the log.
    pub throughput_per_s: Option<f64>,
    /// Median latency.
    pub p50_ms: Option<f64>,
    /// 95th percentile.
    pub p95_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// `merged` from single requests, or `of_windows`: the median of the percentiles that the log gives.
    pub percentiles: &'static str,
    /// Ended well.
    pub ok: Option<f64>,
    /// Refused as the site meant to.
    pub refused: Option<f64>,
    /// The site gave way.
    pub failed: Option<f64>,
    /// Never sent.
    pub dropped: Option<f64>,
    /// What requests waited in the driver before they were sent.
    pub driver_delay_ms: Option<Delay>,
}

/// The driver's own delay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Delay {
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// One row a step, in the order of the log; one for all where it knows no steps.
pub fn table(timeline: &Timeline) -> Vec<Step> {
    let mut names = timeline.steps();
    if names.is_empty() {
        names.push(ALL.to_owned());
    }
    let begin = timeline.all().map(|row| row.unix_ms as f64).fold(f64::INFINITY, f64::min);
    let end = timeline.all().map(|row| row.unix_ms as f64 + row.dur_ms).fold(f64::NEG_INFINITY, f64::max);
    let seconds = (end - begin) / 1e3;
    names.into_iter().map(|name| row(timeline, name, seconds)).collect()
}

fn row(timeline: &Timeline, name: String, seconds: f64) -> Step {
    let rows: Vec<&Interval> = timeline.intervals.iter().filter(|row| row.step == name).collect();
    let sum = |of: fn(&Interval) -> Option<f64>| rows.iter().filter_map(|row| of(row)).reduce(|a, b| a + b);
    let requests = sum(Interval::ended).unwrap_or(0.0);
    let percentiles = Percentiles::of(&rows);
    Step {
        requests,
        throughput_per_s: (seconds > 0.0).then(|| round(requests / seconds, 3)),
        p50_ms: percentiles.told[0],
        p95_ms: percentiles.told[1],
        p99_ms: percentiles.told[2],
        percentiles: if percentiles.merged { "merged" } else { "of_windows" },
        ok: sum(|row| row.ok),
        refused: sum(|row| row.refused),
        failed: sum(|row| row.failed),
        dropped: sum(|row| row.dropped),
        driver_delay_ms: delay(timeline, &name),
        step: name,
    }
}

fn delay(timeline: &Timeline, step: &str) -> Option<Delay> {
    let of = timeline.driver.more.get("waited_ms")?.get(step)?;
    let number = |name: &str| of.get(name)?.as_f64().map(|ms| round(ms, 3));
    Some(Delay { p50: number("p50")?, p95: number("p95")?, p99: number("p99")? })
}

/// The 50th, 95th and 99th percentile of some intervals together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percentiles {
    /// In milliseconds; `None` where there are too few requests to tell one.
    pub told: [Option<f64>; 3],
    /// From the requests themselves; else the median of the windows' own.
    pub merged: bool,
}

impl Percentiles {
    /// Merged where every interval with requests has its histogram.
    pub fn of(rows: &[&Interval]) -> Self {
        if let Some(hist) = merged(rows.iter().copied()) {
            let told = |q: f64, needed: u64| if hist.count() >= needed { hist.quantile_ms(q) } else { None };
            // A percentile needs a request on either side of it.
            let told = [told(0.5, 1), told(0.95, 20), told(0.99, 100)].map(|ms| ms.map(|ms| round(ms, 3)));
            return Self { told, merged: true };
        }
        let of_windows = |of: fn(&Interval) -> Option<f64>| {
            let middle = median(rows.iter().filter_map(|row| of(row)));
            middle.is_finite().then(|| round(middle, 3))
        };
        Self { told: [of_windows(|row| row.p50_ms), of_windows(|row| row.p95_ms), of_windows(|row| row.p99_ms)], merged: false }
    }
}

/// The latencies of all intervals; `None` where an interval with requests has none.
pub fn merged<'a>(rows: impl Iterator<Item = &'a Interval>) -> Option<Hist> {
    let mut all = Hist::default();
    for row in rows {
        match &row.hist {
            Some(hist) => all.merge(hist),
            None if row.ok.unwrap_or(0.0) > 0.0 || row.p50_ms.is_some() => return None,
            None => {}
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(unix_ms: i64, step: &str, latencies: &[f64]) -> Interval {
        let mut hist = Hist::default();
        for ms in latencies {
            hist.add_ms(*ms);
        }
        Interval {
            unix_ms,
            dur_ms: 1000.0,
            step: step.into(),
            ok: Some(latencies.len() as f64),
            failed: Some(1.0),
            refused: Some(2.0),
            hist: Some(hist),
            ..Interval::default()
        }
    }

    fn timeline() -> Timeline {
        let quick: Vec<f64> = vec![10.0; 99];
        let intervals = [0, 1000].into_iter().flat_map(|at| {
            let slow = vec![if at == 0 { 100.0 } else { 300.0 }; 10];
            [interval(at, ALL, &[quick.clone(), slow.clone()].concat()), interval(at, "look", &quick), interval(at, "pay", &slow)]
        });
        Timeline { intervals: intervals.collect(), ..Timeline::default() }
    }

    #[test]
    fn a_slow_step_with_few_requests_keeps_its_own_percentiles() {
        let rows = table(&timeline());
        assert_eq!(rows.iter().map(|row| &*row.step).collect::<Vec<_>>(), ["look", "pay"]);
        let (look, pay) = (&rows[0], &rows[1]);
        assert_eq!((look.requests, look.ok, look.refused, look.failed), (204.0, Some(198.0), Some(4.0), Some(2.0)));
        assert_eq!(look.throughput_per_s, Some(102.0));
        assert!((look.p95_ms.unwrap() - 10.0).abs() < 0.1);
        assert!((pay.p50_ms.unwrap() - 100.0).abs() < 1.0 && (pay.p95_ms.unwrap() - 300.0).abs() < 2.0, "{pay:?}");
        assert_eq!(pay.p99_ms, None, "twenty requests have no 99th percentile");
    }

    #[test]
    fn windows_that_cannot_be_merged_are_said_to_be_windows() {
        let mut timeline = timeline();
        for (n, row) in timeline.intervals.iter_mut().enumerate() {
            (row.hist, row.p95_ms) = (None, Some(n as f64));
        }
        let rows = table(&timeline);
        assert_eq!((rows[0].percentiles, rows[0].p95_ms), ("of_windows", Some(2.5)));
        assert_eq!(rows[0].p50_ms, None);
    }

    #[test]
    fn the_drivers_own_delay_stands_beside_the_sites_time() {
        let mut timeline = timeline();
        timeline
            .driver
            .more
            .insert("waited_ms".into(), serde_json::json!({"pay": {"count": 20, "p50": 1.0, "p95": 7.5, "p99": 9.0}}));
        let rows = table(&timeline);
        assert_eq!(rows[0].driver_delay_ms, None);
        assert_eq!(rows[1].driver_delay_ms, Some(Delay { p50: 1.0, p95: 7.5, p99: 9.0 }));
    }
}
