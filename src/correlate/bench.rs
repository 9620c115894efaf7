//! One gauge as it is tested: its signal, what the load explains of it, what is material, its scale.

use super::align::Load;
use super::floors::Floors;
use super::gather::{Frame, Gauge, unit_ms};
use super::phases::Phases;
use crate::judge::currency::{self, Measure, Rate, Signal, Source};
use crate::judge::depart::{self, Windows};
use crate::judge::rest::{self, FEWEST, Rest};
use crate::judge::robust::median;
use collectors::api::Class;

/// The share of what was expected that is material on top of the floor.
const SHARE_OF_EXPECTED: f64 = 0.25;
/// Events are material from so many a request on, where nobody says what one costs.
const SHARE_OF_REQUESTS: f64 = 0.01;
/// Added to the mean request by work that no request waits for, ms.
pub const OFF_PATH_MS: f64 = 100.0;
/// With which chance a run in which nothing saturates raises an alarm at all, before it has to stay.
const ALARM_CHANCE: f64 = 0.05;
/// The share of a capacity that is a ceiling.
pub const CEILING: f64 = 0.95;

/// What every gauge of a run is tested with.
#[derive(Debug)]
pub struct Bench<'a> {
    /// The run.
    pub frame: &'a Frame,
    /// Its load.
    pub load: &'a Load,
    /// Its parts.
    pub phases: &'a Phases,
    /// What is material.
    pub floors: Floors,
    /// The served rate as a divisor.
    pub rate: Rate,
    /// The windows of the test.
    pub windows: Windows,
    /// Over how many bins an onset is dated.
    pub dating: usize,
}

/// One gauge, per bin, as it is tested.
#[derive(Clone, Debug)]
pub struct Trace {
    /// In which unit.
    pub measure: Measure,
    /// The signal.
    pub signal: Vec<f64>,
    /// What the load explains.
    pub expected: Vec<f64>,
    /// The signal over its expected value.
    pub excess: Vec<f64>,
    /// The signal over its value at rest: what an onset is dated by.
    pub added: Vec<f64>,
    /// What is material.
    pub floor: Vec<f64>,
    /// The scale of a single bin.
    pub scale: Vec<f64>,
}

/// Whether a gauge of this class can be the first mover.
pub fn can_be_first(class: Class) -> bool {
    matches!(class, Class::Queue | Class::Occupancy | Class::Wait | Class::WaitSum | Class::Age | Class::Event | Class::Ratio)
}

impl<'a> Bench<'a> {
    /// Sets the windows from the run.
    pub fn new(frame: &'a Frame, load: &'a Load, phases: &'a Phases, floors: Floors) -> Self {
        let judged = frame.gauges.iter().filter(|gauge| gauge.class.is_some_and(can_be_first)).count();
        let (from, to) = phases.range;
        let span_s = (to - from) as f64 * frame.step_s;
        let windows = Windows {
            smooth: frame.bins_of((span_s / 50.0).min(5.0), 3),
            last: frame.bins_of((0.06 * span_s).min(15.0), 5),
            height: depart::height(to - from, judged, ALARM_CHANCE),
        };
        let dating = frame.bins_of((span_s / 30.0).min(9.0), 5);
        let rate = Rate::new(&load.served(), &phases.loaded, frame.step_s, frame.readings);
        Self { frame, load, phases, floors, rate, windows, dating }
    }

    /// The trace of a gauge of a class that can be first, or why it cannot be judged. `floor_ms` replaces the floor of waits.
    pub fn trace(&self, gauge: &Gauge, class: Class, floor_ms: f64) -> Result<Trace, String> {
        let signal = self.signal(gauge, class)?;
        let base = match signal.measure {
            Measure::MsPerRequest => floor_ms,
            Measure::PerSecond | Measure::Seconds => 1.0,
            Measure::Points => 0.08,
            Measure::Share => CEILING,
        };
        let learned = self.learn(gauge, &signal, base)?;
        let share = gauge.meaning.costs_s.map_or(SHARE_OF_REQUESTS, |costs_s| floor_ms / (1e3 * costs_s));
        let bins = self.frame.bins;
        let mut trace = Trace {
            measure: signal.measure,
            expected: vec![0.0; bins],
            excess: vec![f64::NAN; bins],
            added: vec![f64::NAN; bins],
            floor: vec![base; bins],
            scale: vec![learned.scale; bins],
            signal: signal.values,
        };
        for (bin, rate) in self.rate.per_s.iter().enumerate() {
            let expected = learned.expected(*rate);
            let floor = match signal.measure {
                Measure::MsPerRequest => base + SHARE_OF_EXPECTED * expected,
                Measure::PerSecond => base.max(share * rate.max(0.0)) + SHARE_OF_EXPECTED * expected,
                Measure::Points => base.max(2.0 * learned.scale / (self.windows.smooth as f64).sqrt()),
                Measure::Seconds | Measure::Share => base,
            };
            let counted = (expected + 0.5 * floor) * signal.grain[bin].max(0.0);
            trace.expected[bin] = expected;
            trace.excess[bin] = trace.signal[bin] - expected;
            trace.added[bin] = trace.signal[bin] - learned.resting(*rate);
            trace.floor[bin] = floor;
            trace.scale[bin] = learned.scale_at(*rate);
            if counted.is_finite() {
                trace.scale[bin] = (trace.scale[bin].powi(2) + counted).sqrt();
            }
        }
        Ok(trace)
    }

    fn learn(&self, gauge: &Gauge, signal: &Signal, base: f64) -> Result<Rest, String> {
        let counted = |values: &[f64], on: &[bool]| values.iter().zip(on).filter(|(value, on)| **on && value.is_finite()).count();
        let few = |readings: usize| format!("{readings} resting readings, {FEWEST} are needed");
        if self.phases.climbs() {
            let grows = matches!(signal.measure, Measure::MsPerRequest | Measure::PerSecond);
            return rest::learn(&signal.values, &self.rate.per_s, &self.phases.low, base, grows)
                .ok_or_else(|| few(counted(&signal.values, &self.phases.low)));
        }
        // No low load. In the rest before the load nothing can wait; what the gauge was there is its zero already.
        let readings = counted(&gauge.values, &self.phases.before);
        if readings < FEWEST {
            return Err(few(readings));
        }
        Ok(Rest::at_zero(base, readings))
    }

    /// A gauge in the common currency, or why it cannot be told.
    pub fn signal(&self, gauge: &Gauge, class: Class) -> Result<Signal, String> {
        let frame = self.frame;
        if gauge.values.iter().all(|value| !value.is_finite()) {
            return Err("never read".to_owned());
        }
        let before = || gauge.values.iter().zip(&self.phases.before).filter(|(_, on)| **on).map(|(value, _)| *value);
        let enough = before().filter(|value| value.is_finite()).count() >= FEWEST;
        let zero = if enough { median(before()).max(0.0) } else { 0.0 };
        let capacity = frame.capacity(gauge);
        if matches!(class, Class::Occupancy | Class::Utilisation) && capacity.is_none() {
            return Err("its capacity is not known".to_owned());
        }
        let unit = unit_ms(&gauge.meaning);
        if matches!(class, Class::Wait | Class::WaitSum | Class::Age) && unit.is_none() {
            return Err(format!("its unit is no time: {:?}", gauge.meaning.unit));
        }
        let visits = gauge.meaning.visits.as_ref().and_then(|column| frame.gauge(column)).map(|visits| {
            let factor = gauge.meaning.factor.unwrap_or(1.0);
            visits.values.iter().map(|count| count * factor).collect()
        });
        if let (Some(column), None) = (&gauge.meaning.visits, &visits) {
            return Err(format!("the column of its visits is missing: {column}"));
        }
        let source = Source { class, values: &gauge.values, unit_ms: unit, capacity, visits, zero };
        currency::signal(&source, &self.rate).ok_or_else(|| "cannot be told as waiting per request".to_owned())
    }
}
