//! `--forecast RATE`: how full everything with a capacity is at a rate that the run did not reach.
//!
//! **Question.** What is full first as the load grows, and how many of what was measured carry a rate? **Method.** What is busy
//! of a resource grows in proportion to what it serves, or nearly so ([`demand`](crate::judge::demand)). From the lowest load,
//! once it is warm, up to the first onset each bounded gauge's readings against the completed rate give its value at the rate,
//! and the rate at which it is full, with an interval of 80 % as far as readings can tell (on simulated runs that were cut at
//! half the way it held the truth in two of three). **When it is refused.** Where what is full first, or something that may be
//! full earlier, cannot be told to within a headroom of a fifth; where it grows otherwise than with the load; where the run
//! covers too little of the way; for rates beyond four times the highest load, and where nothing is full before that; and for
//! rates beyond the knee: what queues no longer grows like that. **How it fails.** What nobody watched can be full before; what
//! is held for longer as others wait (a pool's connections behind a slow lock) fills sooner; a cache that is still filling
//! makes what is behind it look fuller than it will be (a tenth to a fifth on those runs); of several that are full at nearly
//! one rate, the least certain may be named first.

use super::bench::Bench;
use super::gather::Gauge;
use super::tell::round;
use super::verdict::{Between, Knee};
use crate::judge::demand::{Demand, Served};
use crate::judge::robust::{mean, median, quantile};
use collectors::api::Class;
use serde::Serialize;

/// Everything at one rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// The rate.
    pub rate_per_s: f64,
    /// Why nothing is told.
    pub refused: Option<String>,
    /// The first of `gauges`: what is full first.
    pub full_first: Option<String>,
    /// How many of what was measured carry the rate with the headroom.
    pub instances: Option<u32>,
    /// The same where one may be lost.
    pub instances_with_one_lost: Option<u32>,
    /// The share of the capacity that is to stay free.
    pub headroom: f64,
    /// What could be told, the first to be full first.
    pub gauges: Vec<Filled>,
    /// Bounded gauges that could not be told, and why.
    pub not_told: Vec<(String, &'static str)>,
}

/// A bounded gauge.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Filled {
    /// The column.
    pub gauge: String,
    /// The resource's name.
    pub resource: String,
    /// Its value at the rate.
    pub value: f64,
    /// Its capacity.
    pub capacity: f64,
    /// The one over the other.
    pub share: f64,
    /// The rate at which it is full.
    pub full_at_per_s: Between,
}

/// The fewest readings.
const FEWEST: usize = 20;
/// The highest load over the lowest, at least.
const SPAN: f64 = 1.5;
/// No further than so many times the highest load.
const REACH: f64 = 4.0;
/// What is full only beyond so many times the highest load does not grow with it.
const FAR: f64 = 25.0;
/// How much earlier than told something may be full: as much as the usual headroom bears.
const DOUBT: f64 = 0.2;
/// How many deviations an interval has on each side: 80 %.
const SURE: f64 = 1.282;
/// A power of the rate so far from 1 is no growth in proportion to it any more.
const BEND: f64 = 0.4;
/// Seconds in which what was just started serves worse than it will; no more than this share of the run.
const WARM_S: f64 = 15.0;
const WARM_SHARE: f64 = 0.2;
/// The fewest readings before the load that tell what is busy without any.
const FEWEST_BEFORE: usize = 5;

/// What is to be told of this rate.
pub fn forecast(bench: &Bench, first: Option<usize>, knee: Option<&Knee>, rate_per_s: f64, headroom: f64) -> Forecast {
    let mut told = Forecast {
        rate_per_s,
        refused: None,
        full_first: None,
        instances: None,
        instances_with_one_lost: None,
        headroom,
        gauges: Vec::new(),
        not_told: Vec::new(),
    };
    let bins = bins(bench, first);
    told.refused = refused(bench, &bins, knee, rate_per_s);
    if told.refused.is_some() {
        return told;
    }
    let served = Served::new(&bench.rate.per_s, bench.frame.step_s);
    let mut earliest: Option<(f64, &str)> = None;
    for gauge in &bench.frame.gauges {
        if gauge.class != Some(Class::Utilisation) || super::movers::is_driver(bench, gauge) {
            continue;
        }
        match filled(bench, &served, gauge, &bins, rate_per_s) {
            Grows::WithTheLoad(filled) => told.gauges.push(filled),
            Grows::Not => {}
            Grows::Untold(why, at_least) => {
                told.not_told.push((gauge.name.clone(), why));
                let other = at_least.map(|rate| (rate, &*gauge.name));
                earliest = [earliest, other].into_iter().flatten().min_by(|a, b| a.0.total_cmp(&b.0));
            }
        }
    }
    told.gauges.sort_by(|a, b| a.full_at_per_s.value.total_cmp(&b.full_at_per_s.value));
    let number = |rate: f64| super::report::numbers::number(round(rate, 1));
    let Some(first) = told.gauges.first() else {
        told.refused = Some("no gauge with a capacity grew with the load in a way that can be told".to_owned());
        return told;
    };
    let full_at = first.full_at_per_s.value;
    if let Some((rate, name)) = earliest.filter(|(rate, _)| *rate < full_at) {
        told.refused = Some(format!(
            "{} would be full at {}/s, but {name} may be full from {}/s on, and its growth cannot be told well enough",
            first.gauge,
            number(full_at),
            number(rate)
        ));
        return told;
    }
    let reach = REACH * bench.phases.top;
    if full_at > reach {
        told.refused = Some(format!(
            "nothing that was watched is full below {REACH} times the highest load of the run, {}/s, and what is first beyond \
             that is too far away to tell; at {}/s the fullest is {}, {:.0} % full",
            number(reach),
            number(rate_per_s),
            first.gauge,
            100.0 * first.share
        ));
        return told;
    }
    let instances = (rate_per_s / (full_at * (1.0 - headroom))).ceil().max(1.0) as u32;
    told.full_first = Some(first.gauge.clone());
    told.instances = Some(instances);
    told.instances_with_one_lost = Some(instances + 1);
    told
}

fn refused(bench: &Bench, bins: &[usize], knee: Option<&Knee>, rate: f64) -> Option<String> {
    let number = |rate: f64| super::report::numbers::number(round(rate, 1));
    let of = |q: f64| quantile(bins.iter().map(|bin| bench.rate.per_s[*bin]), q);
    let (low, high) = (of(0.02), of(0.98));
    if bins.len() < FEWEST || high < SPAN * low {
        return Some(format!(
            "the load before anything moved goes from {} to {}/s: too little of a way to see how anything grows",
            number(low),
            number(high)
        ));
    }
    if let Some(knee) = knee.filter(|knee| rate > knee.high) {
        return Some(format!(
            "{}/s is beyond the run's own knee at {}/s: what gave way there has to be mended first, and the run done again",
            number(rate),
            number(knee.rate_per_s)
        ));
    }
    let top = bench.phases.top;
    (rate > REACH * top).then(|| {
        format!("{}/s is more than {REACH} times the highest load of the run, {}/s: too far to tell", number(rate), number(top))
    })
}

/// The bins in which load ran, from when it was warm to before anything moved.
fn bins(bench: &Bench, first: Option<usize>) -> Vec<usize> {
    let per_s = &bench.rate.per_s;
    let (from, to) = bench.phases.range;
    let to = first.map_or(to, |first| first.min(to));
    let start = bench.phases.loaded.iter().position(|on| *on).unwrap_or(from);
    let warm = (WARM_S / bench.frame.step_s).min(WARM_SHARE * to.saturating_sub(start) as f64) as usize;
    (from.max(start + warm)..to).filter(|bin| per_s[*bin].is_finite() && per_s[*bin] > 0.0).collect()
}

/// What is known of one bounded gauge.
enum Grows {
    /// Well enough.
    WithTheLoad(Filled),
    /// Not with the load.
    Not,
    /// It cannot be told; where it grows at all, the lowest rate at which it can be full.
    Untold(&'static str, Option<f64>),
}

fn filled(bench: &Bench, served: &Served, gauge: &Gauge, bins: &[usize], rate: f64) -> Grows {
    let capacity = bench.frame.capacity(gauge).map_or(f64::NAN, median);
    if capacity.is_nan() || capacity <= 0.0 {
        return Grows::Untold("its capacity is not known", None);
    }
    let before: Vec<f64> =
        gauge.values.iter().zip(&bench.phases.before).filter(|(value, on)| **on && value.is_finite()).map(|(v, _)| *v).collect();
    let idle = (before.len() >= FEWEST_BEFORE).then(|| mean(before));
    let Some(demand) = Demand::of(served, &gauge.values, bins, capacity, idle) else {
        return Grows::Untold("it was read too seldom", None);
    };
    // As far to the other side as a factor: there the deviation outgrows the value, far enough out.
    let (value, low) = (demand.full(0.0), demand.full(SURE));
    let between = Between { value, low, high: value * value / low };
    if between.low > FAR * bench.phases.top {
        return Grows::Not;
    }
    if between.low < (1.0 - DOUBT) * between.value {
        return Grows::Untold("its growth is not certain enough", Some(between.low));
    }
    if (demand.power() - 1.0).abs() > BEND {
        return Grows::Untold("its growth is not in proportion to the load", Some(between.low));
    }
    let value = demand.at(rate).mean;
    Grows::WithTheLoad(Filled {
        gauge: gauge.name.clone(),
        resource: gauge.meaning.resource.clone(),
        value: round(value, 3),
        capacity: round(capacity, 3),
        share: round(value / capacity, 4),
        full_at_per_s: Between { value: round(between.value, 2), low: round(between.low, 2), high: round(between.high, 2) },
    })
}
