//! `--forecast RATE`: how full everything with a capacity is at a rate that the run did not reach.
//!
//! **Question.** What is full first as the load grows, and how many of what was measured carry a rate? **Method.** What is busy
//! of a resource grows in proportion to what it serves (the utilisation law: U = X·D). From the lowest load up to the first
//! onset a line through each bounded gauge's readings against the completed rate gives its value at the rate, and the rate at
//! which it is full, with an interval. **When it is refused.** Where something that may be full earlier cannot be told: its line
//! is not certain, or bends; where the run covers too little of the way; and for rates beyond four times the highest load or
//! beyond the knee: what queues no longer grows by a line. **How it fails.** What nobody watched can be full before; what is held for longer as
//! others wait (a pool's connections behind a slow lock) fills sooner than a line says.

use super::bench::Bench;
use super::gather::Gauge;
use super::tell::round;
use super::verdict::{Between, Knee};
use crate::judge::robust::{median, quantile};
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

/// The fewest readings of a line.
const FEWEST: usize = 20;
/// The highest load over the lowest, at least.
const SPAN: f64 = 1.5;
/// No further than so many times the highest load.
const REACH: f64 = 4.0;
/// What is full only beyond so many times the highest load does not grow with it.
const FAR: f64 = 25.0;
/// The widest interval of the rate at which something is full, as a share.
const WIDEST: f64 = 0.4;
/// How many standard errors an interval has on each side: 90 %.
const SURE: f64 = 1.645;
/// By how much the upper half may rise otherwise than the lower one.
const BEND: f64 = 0.35;
/// Readings that may depend on each other.
const TOGETHER: usize = 5;

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
    let (from, to) = (bench.phases.range.0, first.map_or(bench.phases.range.1, |first| first.min(bench.phases.range.1)));
    let bins = bins(&bench.rate.per_s, from, to);
    told.refused = refused(bench, &bins, knee, rate_per_s);
    if told.refused.is_some() {
        return told;
    }
    let mut earliest: Option<(f64, &str)> = None;
    for gauge in &bench.frame.gauges {
        if gauge.class != Some(Class::Utilisation) || super::movers::is_driver(bench, gauge) {
            continue;
        }
        match filled(bench, gauge, &bins, rate_per_s) {
            Grows::InALine(filled) => told.gauges.push(filled),
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
        told.refused = Some("no gauge with a capacity grew with the load in a line".to_owned());
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
        format!(
            "{}/s is more than {REACH} times the highest load of the run, {}/s: too far to go by a line",
            number(rate),
            number(top)
        )
    })
}

/// The bins before anything moved in which load ran.
fn bins(per_s: &[f64], from: usize, to: usize) -> Vec<usize> {
    (from..to).filter(|bin| per_s[*bin].is_finite() && per_s[*bin] > 0.0).collect()
}

/// What is known of one bounded gauge.
enum Grows {
    /// In a line that is certain enough.
    InALine(Filled),
    /// Not with the load.
    Not,
    /// It cannot be told; where it grows at all, the lowest rate at which it can be full.
    Untold(&'static str, Option<f64>),
}

fn filled(bench: &Bench, gauge: &Gauge, bins: &[usize], rate: f64) -> Grows {
    let Some(bounds) = bench.frame.capacity(gauge) else { return Grows::Untold("its capacity is not known", None) };
    let capacity = median(bounds.iter().copied());
    if capacity.is_nan() || capacity <= 0.0 {
        return Grows::Untold("its capacity is not known", None);
    }
    let points: Vec<(f64, f64)> =
        bins.iter().map(|bin| (bench.rate.per_s[*bin], gauge.values[*bin])).filter(|(_, value)| value.is_finite()).collect();
    if points.len() < FEWEST {
        return Grows::Untold("it was read too seldom", None);
    }
    let line = Fit::of(&points);
    let full = |slope: f64| line.x + (capacity - line.y) / slope.max(1e-12);
    let (low, high) = (line.slope - SURE * line.error, line.slope + SURE * line.error);
    let between = Between { value: full(line.slope), low: full(high), high: full(low) };
    if high <= 0.0 || between.low > FAR * points.iter().map(|point| point.0).fold(0.0, f64::max) {
        return Grows::Not;
    }
    if low <= 0.0 || between.high - between.low > WIDEST * between.value {
        return Grows::Untold("its growth is not certain enough", Some(between.low));
    }
    if line.bends {
        return Grows::Untold("it bends: its growth is no line", Some(between.low));
    }
    let value = line.y + line.slope * (rate - line.x);
    Grows::InALine(Filled {
        gauge: gauge.name.clone(),
        resource: gauge.meaning.resource.clone(),
        value: round(value, 3),
        capacity: round(capacity, 3),
        share: round(value / capacity, 4),
        full_at_per_s: Between { value: round(between.value, 2), low: round(between.low, 2), high: round(between.high, 2) },
    })
}

/// A line through the middle of all points, by least squares: counts that are read once a second hold all their knowledge in
/// their mean, and a median of whole numbers would lose it.
struct Fit {
    x: f64,
    y: f64,
    slope: f64,
    /// The standard error of the slope.
    error: f64,
    bends: bool,
}

impl Fit {
    fn of(points: &[(f64, f64)]) -> Self {
        let first = Line::of(points);
        // A few foreign readings (a cron job, a collection of garbage) are brought back to three standard deviations.
        let held: Vec<(f64, f64)> = points
            .iter()
            .map(|(x, y)| {
                let expected = first.y + first.slope * (x - first.x);
                (*x, expected + (y - expected).clamp(-3.0 * first.spread, 3.0 * first.spread))
            })
            .collect();
        let line = Line::of(&held);
        // Neighbours in time are not independent: what is left over is judged in blocks of a few bins.
        let error = line.error(&held);
        let mut sorted = held.clone();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (lower, upper) = sorted.split_at(sorted.len() / 2);
        let (below, above) = (Line::of(lower), Line::of(upper));
        let apart = above.slope - below.slope;
        let doubt = (below.error(lower).powi(2) + above.error(upper).powi(2)).sqrt();
        Self {
            x: line.x,
            y: line.y,
            slope: line.slope,
            error,
            bends: apart.abs() > BEND * line.slope && apart.abs() > 2.0 * SURE * doubt,
        }
    }
}

/// Least squares through the middle of the points.
struct Line {
    x: f64,
    y: f64,
    slope: f64,
    /// The standard deviation of what is left over.
    spread: f64,
}

impl Line {
    fn of(points: &[(f64, f64)]) -> Self {
        let n = points.len() as f64;
        let (x, y) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
        let across: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
        let slope = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>() / across.max(1e-12);
        let left: f64 = points.iter().map(|p| (p.1 - y - slope * (p.0 - x)).powi(2)).sum();
        Self { x, y, slope, spread: (left / (n - 2.0).max(1.0)).sqrt() }
    }

    /// The standard error of the slope. Neighbours in time are not independent: what is left over is summed in blocks of
    /// [`TOGETHER`] readings, which holds for any dependence that is shorter.
    fn error(&self, points: &[(f64, f64)]) -> f64 {
        let across: f64 = points.iter().map(|p| (p.0 - self.x).powi(2)).sum();
        let block = |part: &[(f64, f64)]| -> f64 {
            part.iter().map(|p| (p.0 - self.x) * (p.1 - self.y - self.slope * (p.0 - self.x))).sum::<f64>().powi(2)
        };
        points.chunks(TOGETHER).map(block).sum::<f64>().sqrt() / across.max(1e-12)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whole numbers around a line, as counts of what is busy are.
    fn counts(slope: f64, bend: f64) -> Vec<(f64, f64)> {
        let mut state = 7_u64;
        (0..200)
            .map(|n| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let chance = (state >> 11) as f64 / (1_u64 << 53) as f64;
                let x = 10.0 + 0.4 * f64::from(n);
                (x, (1.0 + slope * x + bend * (x - 50.0).max(0.0) + 1.5 * (chance - 0.5) + 0.5).floor())
            })
            .collect()
    }

    #[test]
    fn a_line_through_whole_numbers_has_the_slope_that_they_were_made_with() {
        let fit = Fit::of(&counts(0.05, 0.0));
        assert!((fit.slope - 0.05).abs() < 2.5 * fit.error && fit.error < 0.003, "{} ± {}", fit.slope, fit.error);
        assert!(!fit.bends);
    }

    #[test]
    fn what_bends_is_seen() {
        assert!(Fit::of(&counts(0.05, 0.2)).bends);
    }

    #[test]
    fn one_foreign_reading_moves_the_line_little() {
        let mut points = counts(0.05, 0.0);
        points[190].1 = 60.0;
        assert!((Fit::of(&points).slope / 0.05 - 1.0).abs() < 0.1, "{}", Fit::of(&points).slope);
    }
}
