//! Every gauge against its own rest: who left it and stayed away, who left and came back, who was not to be judged.
//!
//! **Question.** Which gauges say that requests wait, beyond what the load explains? **Method.** Each gauge's signal in the
//! common currency ([`crate::judge::currency`]) against its expected response ([`crate::judge::rest`]) and the floor of what
//! is material; then [`crate::judge::depart`] and [`crate::judge::onset`], or [`crate::judge::recur`] for what heals and
//! comes back. A queue that adds to the mean request what no slow request felt, while hardly any fails, holds work that no
//! request waits for; it is judged by a floor of its own.
//! A target that stops answering is a mover of its own. A ceiling (95 % of a capacity) counts only for a resource whose
//! waiting nobody watched; of places that can be taken (connections, sessions) also where waiting is watched, while requests
//! fail: who is refused waits nowhere. **How it fails.** Where the first mover has no gauge, the first of its consequences
//! that has one is named: only what is watched can be named.

use super::align::Basis;
use super::bench::{Bench, CEILING, OFF_PATH_MS, Trace, can_be_first};
use super::floors::busy_workers;
use super::gather::Gauge;
use crate::judge::currency::Measure;
use crate::judge::depart::{self, Alarm, Excess, Path};
use crate::judge::onset::{self, Dated};
use crate::judge::recur::{self, Recurring};
use crate::judge::robust::{median, quantile};
use crate::ticks::Lag;
use collectors::api::{Class, Kind, Layer};

/// A gauge that moved, in bins.
#[derive(Clone, Debug)]
pub struct Move {
    /// Which gauge of the frame.
    pub gauge: usize,
    /// When.
    pub onset: Dated,
    /// Where it was certain.
    pub alarm: usize,
    /// Its readings at rest: median, 5th and 95th percentile.
    pub resting: (f64, f64, f64),
    /// What kind of evidence it is.
    pub evidence: Evidence,
}

/// What kind of evidence a mover is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Waiting, events, an age, a ratio.
    Waits,
    /// Waiting of work that no request waits for.
    OffPath,
    /// Waiting that heals and comes back with the load, every so many milliseconds.
    Recurs {
        /// From one burst to the next.
        period_ms: u64,
    },
    /// The target stopped answering.
    Silence,
    /// A capacity used up, its waiting unwatched.
    Ceiling,
}

/// What became of one gauge.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It left and stayed away.
    Moved(Box<Move>),
    /// It left and came back: bins of the highest excursion.
    Healed(usize, usize),
    /// It stayed.
    Rested,
    /// It could not be judged.
    NotJudged(String),
    /// It is evidence, a denominator, or nothing that can be first.
    Evidence,
}

/// One gauge's trial: what was tested, how the test went, and what became of it.
#[derive(Clone, Debug)]
pub struct Trial {
    /// What was tested and the test's path; `None` where nothing was.
    pub tested: Option<(Trace, Path)>,
    /// What became of it.
    pub outcome: Outcome,
}

impl Trial {
    fn without(outcome: Outcome) -> Self {
        Self { tested: None, outcome }
    }
}

/// Judges every gauge of the frame.
pub fn judge(bench: &Bench) -> Vec<Outcome> {
    (0..bench.frame.gauges.len()).map(|n| trial(bench, n).outcome).collect()
}

/// Judges one gauge.
pub fn trial(bench: &Bench, n: usize) -> Trial {
    let gauge = &bench.frame.gauges[n];
    let Some(class) = gauge.class else {
        let is_up = gauge.name == format!("{}.up", gauge.target);
        return if is_up { silence(bench, n, gauge) } else { Trial::without(Outcome::Evidence) };
    };
    if is_driver(bench, gauge) {
        return Trial::without(Outcome::Evidence);
    }
    if class == Class::Utilisation && !waiting_is_watched(bench, gauge) {
        return ceiling(bench, n, gauge);
    }
    if class == Class::Utilisation && is_of_places(gauge) {
        return refusing(bench, n, gauge);
    }
    if !can_be_first(class) {
        return Trial::without(Outcome::Evidence);
    }
    let trace = match bench.trace(gauge, class, bench.floors.wait_ms) {
        Ok(trace) => trace,
        Err(why) => return Trial::without(Outcome::NotJudged(why)),
    };
    let found = follow(bench, n, trace, Evidence::Waits);
    let (Outcome::Moved(moved), Some((trace, _))) = (&found.outcome, &found.tested) else { return found };
    if !off_path(bench, gauge, trace, moved.alarm) {
        return found;
    }
    let Ok(trace) = bench.trace(gauge, class, OFF_PATH_MS) else { return found };
    let mut late = follow(bench, n, trace, Evidence::OffPath);
    if let Outcome::Moved(late) = &mut late.outcome {
        // Nobody feels when it begins: the first that was added to it is as early as it can have been.
        late.onset.low = late.onset.low.min(moved.onset.at);
    }
    late
}

/// A machine that runs the driver cannot be what gave way.
pub(super) fn is_driver(bench: &Bench, gauge: &Gauge) -> bool {
    bench.frame.targets.iter().any(|target| target.instance == gauge.target && super::caveats::is_driver(target))
}

/// Whether waiting for the same resource is watched too.
pub fn waiting_is_watched(bench: &Bench, gauge: &Gauge) -> bool {
    bench.frame.gauges.iter().any(|other| {
        other.class.is_some_and(can_be_first)
            && other.target == gauge.target
            && (other.meaning.resource == gauge.meaning.resource
                || (other.meaning.layer.is_some() && other.meaning.layer == gauge.meaning.layer))
    })
}

/// Whether nobody felt the waiting that a trace tells: added to the mean request it is more than twice what was added to the
/// slow ones, while hardly any failed; without a driver's log, more than the busy workers can hold.
fn off_path(bench: &Bench, gauge: &Gauge, trace: &Trace, alarm: usize) -> bool {
    if trace.measure != Measure::MsPerRequest {
        return false;
    }
    let to = bench.phases.range.1;
    let bins = || alarm + (to - alarm) / 3..to;
    let told = median(bins().map(|bin| trace.excess[bin]));
    if bench.load.basis == Basis::Inferred {
        // No latency is known. But who waits further in than a worker holds it meanwhile: where far more wait than workers
        // are busy, they are no requests.
        let further_in = gauge.meaning.layer.is_some_and(|layer| layer > Layer::Worker && layer != Layer::Host);
        return further_in
            && busy_workers(bench.frame, bench.load).is_some_and(|busy| {
                let held = median(bins().map(|bin| 1e3 * busy.values[bin] / bench.load.completed[bin]));
                told > 2.0 * held + bench.floors.wait_ms
            });
    }
    // Who waits is seen to have waited when he is served.
    let served_at = |bin: usize| bin + (trace.excess[bin].max(0.0) / 1e3 / bench.frame.step_s) as usize;
    let rise = |of: &[f64]| {
        let rest = median(bench.phases.lowest_bins(bench.frame).map(|bin| of[bin]));
        let last = of.iter().rposition(|value| value.is_finite()).unwrap_or(0);
        median(bins().map(|bin| of[served_at(bin).min(last)])) - rest
    };
    let load = bench.load;
    let felt = [&load.p95_ms, &load.p99_ms, &load.max_ms].into_iter().map(|of| rise(of)).fold(f64::NAN, f64::max);
    let served = median(bins().map(|bin| load.ok[bin] / load.completed[bin]));
    told > 2.0 * (felt.max(0.0) + bench.floors.wait_ms) && felt.is_finite() && served > 0.95
}

fn ceiling(bench: &Bench, n: usize, gauge: &Gauge) -> Trial {
    let Ok(signal) = bench.signal(gauge, Class::Utilisation) else { return Trial::without(Outcome::Evidence) };
    over_ceiling(bench, n, signal.values)
}

/// Whether it counts places that are taken now: a processor that is busy for a moment refuses nobody.
fn is_of_places(gauge: &Gauge) -> bool {
    gauge.meaning.kind == Kind::Gauge && gauge.meaning.unit == "count"
}

/// Places that are all taken at one moment after the other, while requests fail: who is refused waits nowhere, so that the
/// highest readings tell.
fn refusing(bench: &Bench, n: usize, gauge: &Gauge) -> Trial {
    let Ok(signal) = bench.signal(gauge, Class::Utilisation) else { return Trial::without(Outcome::Evidence) };
    let highest = |bin: usize| {
        let lately = &signal.values[bin.saturating_sub(bench.windows.last)..=bin];
        lately.iter().copied().fold(f64::NAN, f64::max)
    };
    let mut found = over_ceiling(bench, n, (0..signal.values.len()).map(highest).collect());
    if let Outcome::Moved(moved) = &found.outcome
        && bench.phases.failed_more(bench.load, moved.alarm, bench.phases.range.1) == 0.0
    {
        found.outcome = Outcome::Evidence;
    }
    found
}

/// A share of a capacity that goes over the ceiling. What is full at rest already holds nobody up by that.
fn over_ceiling(bench: &Bench, n: usize, shares: Vec<f64>) -> Trial {
    let resting = median(bench.phases.low_bins().map(|bin| shares[bin]));
    // Over half of this floor is over the ceiling; and nobody can miss what is used up to the last.
    let floor = 1.0 - CEILING;
    let over: Vec<f64> = shares.iter().map(|share| share - (CEILING - floor / 2.0)).collect();
    let mut found = follow(bench, n, flat(Measure::Share, shares, over, floor / 2.0, floor), Evidence::Ceiling);
    if !matches!(found.outcome, Outcome::Moved(_)) || resting > CEILING {
        found.outcome = Outcome::Evidence;
    }
    found
}

fn silence(bench: &Bench, n: usize, gauge: &Gauge) -> Trial {
    if !(0..bench.phases.range.1).any(|bin| gauge.values[bin] > 0.5) {
        return Trial::without(Outcome::NotJudged("it never answered".to_owned()));
    }
    let silent: Vec<f64> = gauge.values.iter().map(|up| 1.0 - up).collect();
    follow(bench, n, flat(Measure::Share, gauge.values.clone(), silent, 0.25, 1.0), Evidence::Silence)
}

/// A trace whose expected value, scale and floor never change.
fn flat(measure: Measure, signal: Vec<f64>, over: Vec<f64>, scale: f64, floor: f64) -> Trace {
    let bins = signal.len();
    Trace {
        measure,
        signal,
        expected: vec![0.0; bins],
        excess: over.clone(),
        added: over,
        floor: vec![floor; bins],
        scale: vec![scale; bins],
    }
}

fn follow(bench: &Bench, n: usize, trace: Trace, evidence: Evidence) -> Trial {
    let (load, range) = (&bench.phases.axis, bench.phases.range);
    let steps: Vec<(usize, usize)> = bench.phases.parts.iter().filter(|part| part.name == "spike").map(|part| part.bins).collect();
    let excess = Excess { values: &trace.excess, scale: &trace.scale, floor: &trace.floor, load, range, steps: &steps };
    let path = depart::follow(&excess, bench.windows);
    // What comes and goes with the load may stay in a step up, or lose its period there: it is looked for before it, too.
    let in_step = |alarm: usize| steps.iter().any(|(from, to)| (*from..*to).contains(&alarm));
    let ends = std::iter::once(range.1).chain(steps.iter().map(|(from, _)| *from));
    let recurring =
        ends.filter(|_| evidence == Evidence::Waits && path.departure.is_none_or(|found| in_step(found.alarm))).find_map(|end| {
            recur::recurring(&Excess { range: (range.0, end), ..excess }, bench.windows, trace.measure == Measure::Points)
        });
    let outcome = if let Some(found) = recurring {
        Outcome::Moved(Box::new(recurs(bench, n, found)))
    } else if let Some(found) = path.departure {
        Outcome::Moved(Box::new(moved(bench, n, &trace, evidence, found)))
    } else {
        let highest = path.excursions.iter().max_by(|a, b| a.peak.total_cmp(&b.peak));
        highest.map_or(Outcome::Rested, |excursion| Outcome::Healed(excursion.start, excursion.end))
    };
    Trial { tested: Some((trace, path)), outcome }
}

fn moved(bench: &Bench, n: usize, trace: &Trace, evidence: Evidence, found: Alarm) -> Move {
    let (frame, phases) = (bench.frame, bench.phases);
    let until = (found.alarm + 4 * bench.windows.last).min(phases.range.1);
    let width = if evidence == Evidence::Silence { 1 } else { bench.dating };
    // A tenth of a second of age is a first sign; the floor of ages is a whole one.
    let first_sign = if trace.measure == Measure::Seconds { 0.1 } else { onset::FIRST_SIGN };
    let share = match evidence {
        Evidence::Ceiling => 0.5,
        _ if trace.measure == Measure::MsPerRequest => bench.floors.dated_ms / bench.floors.wait_ms,
        _ => 1.0,
    };
    let level: Vec<f64> = trace.floor.iter().map(|floor| share * floor).collect();
    let mut onset = onset::date(&trace.added, &level, first_sign, (phases.range.0, until), width);
    let gauge = &frame.gauges[n];
    // A refreshed gauge tells of something that began up to a period earlier.
    if let Lag::Refreshed(seconds) = gauge.meaning.lag {
        onset.low = onset.low.saturating_sub(frame.bins_of(seconds, 1)).max(phases.range.0);
    }
    Move { gauge: n, onset, alarm: found.alarm, resting: resting(bench, gauge), evidence }
}

/// Bursts that recur are one departure from the first of them. An earlier one may have been too shallow to be seen; by the
/// second it was no single burst.
fn recurs(bench: &Bench, n: usize, found: Recurring) -> Move {
    let at = found.first.start;
    let low = at.saturating_sub(found.period as usize).max(bench.phases.range.0);
    let evidence = Evidence::Recurs { period_ms: (found.period * bench.frame.step_s * 1e3) as u64 };
    let onset = Dated { low, at, high: found.second.start };
    Move { gauge: n, onset, alarm: found.second.start, resting: resting(bench, &bench.frame.gauges[n]), evidence }
}

/// A gauge's readings at rest: median, 5th and 95th percentile.
fn resting(bench: &Bench, gauge: &Gauge) -> (f64, f64, f64) {
    let (frame, phases) = (bench.frame, bench.phases);
    let raw = || phases.low_bins().chain((0..frame.bins).filter(|bin| phases.before[*bin])).map(|bin| gauge.values[bin]);
    (median(raw()), quantile(raw(), 0.05), quantile(raw(), 0.95))
}
