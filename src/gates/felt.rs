//! Gates on requests: percentiles, shares, rates and counts out of the driver's log, over the whole run, a phase, or a window
//! that slides by one interval of the log.
//!
//! Percentiles of a window are exact where the log has every request (histograms are added). Where it has percentiles only,
//! they cannot be added: then the worst interval stands for the window, which can break a gate too early but never passes one
//! that broke, and the result says that it is coarse.

use crate::hist::Hist;
use crate::judge::gate::held::Held;
use crate::judge::gate::{Gate, GateError, Measure};
use crate::timeline::{ALL, Interval, Offered, Timeline};
use std::collections::VecDeque;

/// A goodput that lasted so long is one.
const LASTED_S: f64 = 3.0;

/// What became of a gate on requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Felt {
    /// The worst value.
    pub worst: f64,
    /// Whether it held.
    pub passed: bool,
    /// Since when it was broken, Unix milliseconds; `None` for a value of the whole run, which breaks at no moment of it.
    pub since_ms: Option<f64>,
    /// How long it was broken at the longest.
    pub lasted_s: Option<f64>,
    /// Whether the worst interval had to stand for a window.
    pub coarse: bool,
}

/// Judges a gate on the parts of a log whose middle is in one of these stretches, Unix milliseconds.
pub fn judge(gate: &Gate, timeline: &Timeline, stretches: &[(f64, f64)]) -> Result<Felt, GateError> {
    known(gate, timeline)?;
    let (mut held, mut coarse) = (Held::new(gate), false);
    for stretch in stretches {
        let inside = |interval: &&Interval| {
            let middle = interval.unix_ms as f64 + interval.dur_ms / 2.0;
            (stretch.0..stretch.1).contains(&middle)
        };
        let rows: Vec<&Interval> = timeline.intervals.iter().filter(inside).collect();
        let Some(over_s) = gate.over_s else {
            let sums = Sums::of(&rows, &gate.measure);
            coarse |= sums.coarse();
            held.read(0.0, sums.value(&gate.measure));
            continue;
        };
        for window in sliding(&rows, over_s) {
            let sums = Sums::of(&window, &gate.measure);
            coarse |= sums.coarse();
            held.read(sums.to_ms / 1e3, sums.value(&gate.measure));
        }
    }
    if held.readings() == 0 {
        return Err(gate.error("the log has nothing to judge it on: a gate on nothing cannot pass"));
    }
    let first = held.first();
    if first.is_none() {
        occurs(gate, timeline)?;
    }
    Ok(Felt {
        worst: held.worst(),
        passed: first.is_none(),
        since_ms: first.filter(|_| gate.over_s.is_some()).map(|broken| broken.since_s * 1e3),
        lasted_s: held.longest_s().filter(|_| gate.over_s.is_some()),
        coarse,
    })
}

/// The highest goodput that lasted for some seconds; `None` where the log has none.
pub fn served(timeline: &Timeline) -> Option<f64> {
    let all: Vec<&Interval> = timeline.all().collect();
    let goodput = Measure::Goodput(None);
    let rates = sliding(&all, LASTED_S).into_iter().map(|window| Sums::of(&window, &goodput).value(&goodput));
    rates.filter(|rate| rate.is_finite()).reduce(f64::max)
}

/// The log must have what the gate is about.
fn known(gate: &Gate, timeline: &Timeline) -> Result<(), GateError> {
    let names = timeline.steps();
    let needed: Vec<&String> = match &gate.measure {
        Measure::Latency { step: Some(step), .. }
        | Measure::Failed(Some(step))
        | Measure::Refused(Some(step))
        | Measure::Goodput(Some(step))
        | Measure::Completed(Some(step)) => vec![step],
        _ => Vec::new(),
    };
    if let Some(missing) = needed.into_iter().find(|step| !names.contains(step)) {
        return Err(no_step(gate, missing, &names));
    }
    let has = |field: fn(&Interval) -> Option<f64>| timeline.intervals.iter().any(|row| field(row).is_some());
    let untold = match &gate.measure {
        Measure::Failed(_) if !has(|row| row.failed) => Some("what failed"),
        Measure::Refused(_) if !has(|row| row.refused) => Some("what was refused"),
        Measure::Dropped if !has(|row| row.dropped) => Some("what was never sent"),
        _ => None,
    };
    if let Some(what) = untold {
        return Err(gate.error(format!("the log does not tell {what}")).hint("give the driver's log of single requests"));
    }
    let planned = !matches!(timeline.driver.offered, Offered::Achieved | Offered::Unknown);
    if matches!(gate.measure, Measure::Reached | Measure::Offered) && !planned {
        return Err(gate.error("the log does not tell what was to be sent").hint("give the plan with --plan 100:3000/5m,3000/10m"));
    }
    Ok(())
}

/// A step that must occur may be missing, and its gate is then broken; none may pass on a step that there is not.
fn occurs(gate: &Gate, timeline: &Timeline) -> Result<(), GateError> {
    let steps: &[String] = match &gate.measure {
        Measure::Share(steps) => steps,
        Measure::Count(step) => std::slice::from_ref(step),
        _ => return Ok(()),
    };
    let names = timeline.steps();
    steps.iter().find(|step| !names.contains(step)).map_or(Ok(()), |missing| Err(no_step(gate, missing, &names)))
}

fn no_step(gate: &Gate, missing: &str, names: &[String]) -> GateError {
    let error = gate.error(format!("the log has no step {missing:?}"));
    if names.is_empty() { error.hint("it does not tell steps apart") } else { error.hint(format!("it has {}", names.join(", "))) }
}

/// Windows of so many seconds, one for each end of an interval; only whole ones, but one where the log is shorter.
fn sliding<'a>(rows: &[&'a Interval], over_s: f64) -> Vec<Vec<&'a Interval>> {
    let end = |interval: &Interval| interval.unix_ms as f64 + interval.dur_ms;
    let Some(begin) = rows.first().map(|row| row.unix_ms as f64) else { return Vec::new() };
    let (mut windows, mut window) = (Vec::new(), VecDeque::new());
    let mut rows = rows.iter().peekable();
    while let Some(row) = rows.next() {
        window.push_back(*row);
        // Steps of one interval come together.
        if rows.peek().is_some_and(|next| next.unix_ms == row.unix_ms) {
            continue;
        }
        let (to, half) = (end(row), row.dur_ms / 2.0);
        while window.front().is_some_and(|first| (first.unix_ms as f64) < to - over_s * 1e3 - half) {
            window.pop_front();
        }
        let last = rows.peek().is_none();
        if to - begin >= over_s * 1e3 - half || (last && windows.is_empty()) {
            windows.push(window.iter().copied().collect());
        }
    }
    windows
}

/// What a window holds of the gate's steps.
#[derive(Default)]
struct Sums {
    to_ms: f64,
    seconds: f64,
    ended: f64,
    ok: f64,
    failed: f64,
    refused: f64,
    dropped: f64,
    offered: f64,
    started: f64,
    /// Of the gate's steps, where it names several.
    of_steps: f64,
    hist: Hist,
    /// The worst of the intervals' own percentile.
    worst_ms: Option<f64>,
}

impl Sums {
    fn of(rows: &[&Interval], measure: &Measure) -> Self {
        let mut sums = Self::default();
        let several: &[String] = match measure {
            Measure::Share(steps) => steps,
            Measure::Count(step) => std::slice::from_ref(step),
            _ => &[],
        };
        let one = match measure {
            Measure::Latency { step, .. }
            | Measure::Failed(step)
            | Measure::Refused(step)
            | Measure::Goodput(step)
            | Measure::Completed(step) => step.as_deref(),
            _ => None,
        };
        for row in rows {
            if row.step == ALL {
                sums.seconds += row.dur_ms / 1e3;
                sums.to_ms = sums.to_ms.max(row.unix_ms as f64 + row.dur_ms);
            }
            if several.contains(&row.step) {
                sums.of_steps += row.ended().unwrap_or(0.0);
            }
            if row.step == one.unwrap_or(ALL) {
                sums.add(row, measure);
            }
        }
        sums
    }

    fn add(&mut self, row: &Interval, measure: &Measure) {
        self.ended += row.ended().unwrap_or(0.0);
        self.ok += row.ok.or(row.started).unwrap_or(0.0);
        self.failed += row.failed.unwrap_or(0.0);
        self.refused += row.refused.unwrap_or(0.0);
        self.dropped += row.dropped.unwrap_or(0.0);
        self.started += row.started.or_else(|| row.ended()).unwrap_or(0.0);
        self.offered += row.offered.unwrap_or(0.0);
        if let Some(hist) = &row.hist {
            self.hist.merge(hist);
        }
        if let Measure::Latency { quantile, .. } = *measure {
            // Of percentiles only a higher one is certain not to be too low.
            let own = [(0.5, row.p50_ms), (0.95, row.p95_ms), (0.99, row.p99_ms), (1.0, row.max_ms)];
            let at_least = own.into_iter().find_map(|(q, ms)| ms.filter(|_| q >= quantile));
            // The longest of a histogram is known to its bucket only.
            let exact = row.max_ms.filter(|_| quantile == 1.0);
            self.worst_ms = [self.worst_ms, exact.or(at_least)].into_iter().flatten().reduce(f64::max);
        }
    }

    /// Whether a percentile had to come from percentiles.
    fn coarse(&self) -> bool {
        self.hist.count() == 0 && self.worst_ms.is_some()
    }

    fn value(&self, measure: &Measure) -> f64 {
        let per = |a: f64, b: f64| if b > 0.0 { a / b } else { f64::NAN };
        match measure {
            Measure::Latency { quantile, .. } if *quantile < 1.0 && self.hist.count() > 0 => {
                self.hist.quantile_ms(*quantile).unwrap_or(f64::NAN)
            }
            Measure::Latency { quantile, .. } => self.worst_ms.or_else(|| self.hist.quantile_ms(*quantile)).unwrap_or(f64::NAN),
            Measure::Failed(_) => per(self.failed, self.ended),
            Measure::Refused(_) => per(self.refused, self.ended),
            Measure::Dropped => per(self.dropped, self.dropped + self.started),
            Measure::Goodput(_) => per(self.ok, self.seconds),
            Measure::Completed(_) => per(self.ended, self.seconds),
            Measure::Offered => per(self.offered, self.seconds),
            Measure::Reached => per(self.started, self.offered),
            Measure::Share(_) => per(self.of_steps, self.ended),
            Measure::Count(_) => self.of_steps,
            Measure::Gauge { .. } | Measure::Knee | Measure::Recovery | Measure::Growth(_) | Measure::First => f64::NAN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(second: i64, step: &str, ok: f64, failed: f64, ms: Option<f64>) -> Interval {
        let hist = ms.map(|ms| {
            let mut hist = Hist::default();
            (0..ok as usize).for_each(|_| hist.add_ms(ms));
            hist
        });
        Interval {
            unix_ms: second * 1000,
            dur_ms: 1000.0,
            step: step.into(),
            ok: Some(ok),
            failed: Some(failed),
            p95_ms: Some(100.0 + second as f64),
            hist,
            ..Interval::default()
        }
    }

    fn values(rows: &[Interval], gate: &str) -> Vec<f64> {
        let gate: Gate = gate.parse().unwrap();
        let rows: Vec<&Interval> = rows.iter().collect();
        sliding(&rows, gate.over_s.unwrap()).iter().map(|window| Sums::of(window, &gate.measure).value(&gate.measure)).collect()
    }

    #[test]
    fn a_window_slides_by_one_interval_and_only_whole_ones_count() {
        let rows: Vec<Interval> = (0..5).map(|second| row(second, ALL, 10.0 * second as f64, 0.0, None)).collect();
        assert_eq!(values(&rows, "goodput >= 1/s over 3s"), [10.0, 20.0, 30.0]);
        assert_eq!(values(&rows, "goodput >= 1/s over 60s"), [20.0], "a log that is shorter is one window");
    }

    #[test]
    fn percentiles_of_a_window_come_from_its_requests_and_only_without_them_from_percentiles() {
        let exact: Vec<Interval> =
            (0..3).map(|second| row(second, ALL, 100.0, 0.0, Some(if second == 1 { 500.0 } else { 10.0 }))).collect();
        let of = values(&exact, "p50 < 800ms over 3s");
        assert!((of[0] - 10.0).abs() < 0.1, "{of:?}");
        let p95 = values(&exact, "p95 < 800ms over 3s");
        assert!((p95[0] / 500.0 - 1.0).abs() < 0.01, "{p95:?}");
        let coarse: Vec<Interval> = (0..3).map(|second| row(second, ALL, 100.0, 0.0, None)).collect();
        assert_eq!(values(&coarse, "p90 < 800ms over 3s"), [102.0]);
    }

    #[test]
    fn shares_of_steps_and_of_failures_count_requests() {
        let rows = [row(0, ALL, 90.0, 10.0, None), row(0, "hold", 30.0, 0.0, None), row(0, "pay", 0.0, 10.0, None)];
        assert_eq!(values(&rows, "failed <= 1% over 1s"), [0.1]);
        assert_eq!(values(&rows, "failed(pay) <= 1% over 1s"), [1.0]);
        assert_eq!(values(&rows, "share(hold, pay) >= 0.3 over 1s"), [0.4]);
    }
}
