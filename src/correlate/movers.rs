//! Every gauge against its own rest: who left it and stayed away, who left and came back, who was not to be judged.
//!
//! **Question.** Which gauges say that requests wait, beyond what the load explains? **Method.** Each gauge's signal in the
//! common currency ([`crate::judge::currency`]) against its expected response ([`crate::judge::rest`]) and the floor of what
//! is material; then [`crate::judge::depart`] and [`crate::judge::onset`]. A target that stops answering is a mover of its
//! own. A ceiling (95 % of a capacity) counts only for a resource whose waiting nobody watched. **How it fails.** Where the
//! first mover has no gauge, the first of its consequences that has one is named: only what is watched can be named.

use super::align::Load;
use super::gather::{Frame, Gauge, unit_ms};
use super::phases::Phases;
use crate::judge::currency::{self, Measure, Rate, Signal, Source};
use crate::judge::depart::{self, Excess, Path, Windows};
use crate::judge::onset::crossing;
use crate::judge::rest::{self, FEWEST};
use crate::judge::robust::{median, quantile};
use collectors::api::{Class, Kind};

/// The share of the resting median latency that is material when it is added to the mean request.
const SHARE_OF_LATENCY: f64 = 0.25;
/// The share of what was expected that is material on top.
const SHARE_OF_EXPECTED: f64 = 0.25;
/// The floor of waits where no latency is known, ms.
const FLOOR_BLIND_MS: f64 = 5.0;
/// No wait under this is material, ms: a scheduler's noise on a small machine.
const FLOOR_LEAST_MS: f64 = 1.0;
/// With which chance a run in which nothing saturates raises an alarm at all, before it has to stay.
const ALARM_CHANCE: f64 = 0.05;
/// The share of a capacity that is a ceiling.
const CEILING: f64 = 0.95;

/// What is material.
#[derive(Clone, Copy, Debug)]
pub struct Floors {
    /// Milliseconds added to the mean request.
    pub wait_ms: f64,
    /// The resting median latency it was taken from.
    pub resting_latency_ms: Option<f64>,
}

impl Floors {
    /// From the driver's latency at low load, or blind.
    pub fn of(load: &Load, phases: &Phases, given_ms: Option<f64>) -> Self {
        let resting = median(phases.low_bins().map(|bin| load.p50_ms[bin]));
        let resting = if resting.is_finite() {
            Some(resting)
        } else {
            // No low load: the first quarter of what is judged.
            let (from, to) = phases.range;
            let first = median((from..from + (to - from) / 4).map(|bin| load.p50_ms[bin]));
            first.is_finite().then_some(first)
        };
        let wait_ms = given_ms.or_else(|| resting.map(|l0| (SHARE_OF_LATENCY * l0).max(FLOOR_LEAST_MS))).unwrap_or(FLOOR_BLIND_MS);
        Self { wait_ms, resting_latency_ms: resting }
    }
}

/// A gauge that moved, in bins.
#[derive(Clone, Debug)]
pub struct Move {
    /// Which gauge of the frame.
    pub gauge: usize,
    /// The likeliest onset.
    pub at: usize,
    /// The earliest.
    pub low: usize,
    /// The latest.
    pub high: usize,
    /// Where it was certain.
    pub alarm: usize,
    /// Its readings at rest: median, 5th and 95th percentile.
    pub resting: (f64, f64, f64),
    /// What kind of evidence it is.
    pub evidence: Evidence,
    /// Its excess, per bin.
    pub excess: Vec<f64>,
}

/// What kind of evidence a mover is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Waiting, events, an age, a ratio.
    Waits,
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

/// Judges every gauge of the frame.
pub fn judge(frame: &Frame, load: &Load, phases: &Phases, floors: Floors) -> Vec<Outcome> {
    let rate = Rate::new(&load.completed, &phases.loaded, frame.step_s, frame.readings);
    let judged = frame.gauges.iter().filter(|gauge| gauge.class.is_some_and(can_be_first)).count();
    let (from, to) = phases.range;
    let span_s = (to - from) as f64 * frame.step_s;
    let windows = Windows {
        smooth: frame.bins_of((span_s / 50.0).min(5.0), 3),
        last: frame.bins_of((0.06 * span_s).min(15.0), 5),
        height: depart::height(to - from, judged, ALARM_CHANCE),
    };
    let bench = Bench { frame, phases, rate, floors, windows };
    frame.gauges.iter().enumerate().map(|(n, gauge)| bench.outcome(n, gauge)).collect()
}

/// Whether a gauge of this class can be the first mover.
pub fn can_be_first(class: Class) -> bool {
    matches!(class, Class::Queue | Class::Occupancy | Class::Wait | Class::WaitSum | Class::Age | Class::Event | Class::Ratio)
}

struct Bench<'a> {
    frame: &'a Frame,
    phases: &'a Phases,
    rate: Rate,
    floors: Floors,
    windows: Windows,
}

impl Bench<'_> {
    fn outcome(&self, n: usize, gauge: &Gauge) -> Outcome {
        let Some(class) = gauge.class else {
            return if gauge.name == format!("{}.up", gauge.target) { self.silence(n, gauge) } else { Outcome::Evidence };
        };
        if self.is_driver(gauge) {
            return Outcome::Evidence;
        }
        if class == Class::Utilisation && !self.waiting_is_watched(gauge) {
            return self.ceiling(n, gauge);
        }
        if !can_be_first(class) {
            return Outcome::Evidence;
        }
        match self.signal(gauge, class) {
            Err(why) => Outcome::NotJudged(why.to_owned()),
            Ok(signal) => self.against_rest(n, gauge, class, &signal),
        }
    }

    /// A machine that runs the driver cannot be what gave way.
    fn is_driver(&self, gauge: &Gauge) -> bool {
        let role = |target: &crate::ticks::Target| target.about.get("role").and_then(|role| role.as_str()) == Some("driver");
        self.frame.targets.iter().any(|target| target.instance == gauge.target && role(target))
    }

    fn waiting_is_watched(&self, gauge: &Gauge) -> bool {
        self.frame.gauges.iter().any(|other| {
            other.class.is_some_and(can_be_first)
                && other.target == gauge.target
                && (other.meaning.resource == gauge.meaning.resource
                    || (other.meaning.layer.is_some() && other.meaning.layer == gauge.meaning.layer))
        })
    }

    fn signal(&self, gauge: &Gauge, class: Class) -> Result<Signal, &'static str> {
        let frame = self.frame;
        if gauge.values.iter().all(|value| !value.is_finite()) {
            return Err("never read");
        }
        let before = || gauge.values.iter().zip(&self.phases.before).filter(|(_, on)| **on).map(|(value, _)| *value);
        let zero = if before().filter(|value| value.is_finite()).count() >= FEWEST { median(before()).max(0.0) } else { 0.0 };
        let capacity = frame.capacity(gauge);
        if class == Class::Occupancy && capacity.is_none() {
            return Err("how many servers it has is not known");
        }
        let unit = unit_ms(&gauge.meaning);
        if matches!(class, Class::Wait | Class::WaitSum | Class::Age) && unit.is_none() {
            return Err("its unit is no time");
        }
        let visits = gauge.meaning.visits.as_ref().and_then(|column| frame.gauge(column)).map(|visits| {
            let factor = gauge.meaning.factor.unwrap_or(1.0);
            visits.values.iter().map(|count| count * factor).collect()
        });
        if gauge.meaning.visits.is_some() && visits.is_none() {
            return Err("the column of its visits is missing");
        }
        let source = Source { class, values: &gauge.values, unit_ms: unit, capacity, visits, zero };
        currency::signal(&source, &self.rate).ok_or("cannot be told as waiting per request")
    }

    fn against_rest(&self, n: usize, gauge: &Gauge, class: Class, signal: &Signal) -> Outcome {
        let bins = self.frame.bins;
        let x = &self.rate.per_s;
        let base = match signal.measure {
            Measure::MsPerRequest => self.floors.wait_ms,
            Measure::PerSecond | Measure::Seconds => 1.0,
            Measure::Points => 0.08,
            Measure::Share => CEILING,
        };
        let grows = matches!(signal.measure, Measure::MsPerRequest | Measure::PerSecond);
        let learned = if self.phases.climbs() {
            rest::learn(&signal.values, x, &self.phases.low, base, grows)
        } else {
            // No low load: the rest before the load, where nothing can wait, is its own zero already.
            let before = gauge.values.iter().zip(&self.phases.before).filter(|(value, on)| **on && value.is_finite()).count();
            (before >= FEWEST).then(|| rest::Rest {
                line: crate::judge::robust::Line::default(),
                scale: base / 4.0,
                readings: before,
            })
        };
        let Some(learned) = learned else {
            let there = signal.values.iter().zip(&self.phases.low).filter(|(value, low)| **low && value.is_finite()).count();
            return Outcome::NotJudged(format!("{there} resting readings, {FEWEST} are needed"));
        };
        let mut excess = vec![f64::NAN; bins];
        let (mut scale, mut floor) = (vec![1.0; bins], vec![base; bins]);
        for bin in 0..bins {
            let expected = if x[bin].is_finite() { learned.line.at(x[bin]).max(0.0) } else { learned.line.a.max(0.0) };
            excess[bin] = signal.values[bin] - expected;
            floor[bin] = match signal.measure {
                Measure::MsPerRequest => base + SHARE_OF_EXPECTED * expected,
                Measure::PerSecond => base.max(0.01 * x[bin].max(0.0)) + SHARE_OF_EXPECTED * expected,
                Measure::Points => base.max(2.0 * learned.scale / (self.windows.smooth as f64).sqrt()),
                Measure::Seconds | Measure::Share => base,
            };
            scale[bin] = (learned.scale.powi(2) + (expected + 0.5 * floor[bin]) * signal.grain[bin].max(0.0)).sqrt();
            if !scale[bin].is_finite() {
                scale[bin] = learned.scale;
            }
        }
        self.depart(n, class, excess, &scale, &floor, Evidence::Waits)
    }

    fn ceiling(&self, n: usize, gauge: &Gauge) -> Outcome {
        let Ok(signal) = self.signal(gauge, Class::Utilisation) else { return Outcome::Evidence };
        let excess = signal.values.iter().map(|share| share - (2.0 * CEILING - 1.0)).collect();
        let bins = self.frame.bins;
        let flat = 2.0 * (1.0 - CEILING);
        match self.depart(n, Class::Utilisation, excess, &vec![1.0 - CEILING; bins], &vec![flat; bins], Evidence::Ceiling) {
            Outcome::Moved(moved) => Outcome::Moved(moved),
            _ => Outcome::Evidence,
        }
    }

    fn silence(&self, n: usize, gauge: &Gauge) -> Outcome {
        let answered = |bin: &usize| gauge.values[*bin] > 0.5;
        if !(0..self.phases.range.1).any(|bin| answered(&bin)) {
            return Outcome::NotJudged("it never answered".to_owned());
        }
        let bins = self.frame.bins;
        let excess = gauge.values.iter().map(|up| 1.0 - up).collect();
        self.depart(n, Class::Event, excess, &vec![0.25; bins], &vec![1.0; bins], Evidence::Silence)
    }

    fn depart(&self, n: usize, class: Class, excess: Vec<f64>, scale: &[f64], floor: &[f64], evidence: Evidence) -> Outcome {
        let phases = self.phases;
        let range = phases.range;
        let path: Path = depart::follow(&Excess { values: &excess, scale, floor, load: &phases.axis, range }, self.windows);
        let Some(found) = path.departure else {
            let highest = path.excursions.iter().max_by(|a, b| a.peak.total_cmp(&b.peak));
            return highest.map_or(Outcome::Rested, |excursion| Outcome::Healed(excursion.start, excursion.end));
        };
        let from = path.excursions.last().map_or(range.0, |excursion| excursion.end).min(found.start);
        let until = (found.alarm + self.windows.last).min(range.1);
        let held: Vec<f64> = excess.iter().zip(floor).map(|(value, floor)| value.min(4.0 * floor)).collect();
        let over = |share: f64| crossing(&held, |bin| share * floor[bin], (from, until), 0.0).at;
        let (mut low, mut at, mut high) = (over(ONSET_LEVELS[0]), over(ONSET_LEVELS[1]), over(ONSET_LEVELS[2]));
        // A completion counter or a refreshed gauge tells of something that began earlier.
        let gauge = &self.frame.gauges[n];
        if let crate::ticks::Lag::Refreshed(seconds) = gauge.meaning.lag {
            low = low.saturating_sub(self.frame.bins_of(seconds, 1));
        }
        // An onset behind a gap began somewhere in the gap.
        while low > from && !excess[low - 1].is_finite() {
            low -= 1;
        }
        at = at.clamp(low, found.alarm.max(low));
        high = high.max(at);
        let raw = || {
            let rested = phases.low_bins().chain((0..phases.range.0).filter(|bin| phases.before[*bin]));
            rested.map(|bin| gauge.values[bin])
        };
        let resting = (median(raw()), quantile(raw(), 0.05), quantile(raw(), 0.95));
        let _ = (class, Kind::Gauge);
        Outcome::Moved(Box::new(Move { gauge: n, at, low, high, alarm: found.alarm, resting, evidence, excess }))
    }
}

/// Shares of the floor whose crossings are the early end of the onset, the onset, and its late end.
const ONSET_LEVELS: [f64; 3] = [0.3, 1.0, 3.0];
