//! What a gauge does at rest, and what the load alone explains.
//!
//! **Question.** What would this signal be at this rate if nothing gave way? **Method.** In the low-load part (from rest to
//! a quarter of the way up) a Theil–Sen line over the completed rate, its slope not under 0 for waits; the scale is
//! 1.4826 · MAD of what is left, never under half a quantisation step nor a quarter of the floor: what is not material need
//! not be resolved. A waiting that is there whatever the load (others on the same machine) falls per request as the rate
//! rises: where that fits better, it is what is expected. **How it fails.** A resource that gives way within the first quarter bends the line towards itself; the
//! slope may therefore explain at most half a floor within the low-load part. A run without a low-load part has no line.

use super::robust::{Line, median, quantile_sorted, sorted, spread, theil_sen, thin};

/// The fewest resting readings on which a gauge is judged.
pub const FEWEST: usize = 5;

/// The most that the load may explain between the slow and the fast end of the low-load part, as a share of the floor.
const MOST_EXPLAINED: f64 = 0.5;

/// What was learned of one gauge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rest {
    /// The expected value over the completed rate.
    pub line: Line,
    /// What does not depend on the load at all: a queue of others, so many times a second. Divided by the rate it is added to
    /// the line.
    pub background: f64,
    /// The deviation of a single bin from the line.
    pub scale: f64,
    /// The deviation of the background.
    pub background_scale: f64,
    /// How many readings it was learned from.
    pub readings: usize,
}

impl Rest {
    /// Rests at exactly 0.
    pub fn at_zero(floor: f64, readings: usize) -> Self {
        Self { line: Line::default(), background: 0.0, scale: floor / 4.0, background_scale: 0.0, readings }
    }

    /// What the load explains at a rate; at no known rate, the resting value.
    pub fn expected(&self, rate: f64) -> f64 {
        if rate.is_finite() { (self.line.at(rate) + self.background / rate).max(0.0) } else { self.line.a.max(0.0) }
    }

    /// The value at rest, at a rate.
    pub fn resting(&self, rate: f64) -> f64 {
        let others = if rate.is_finite() { self.background / rate } else { 0.0 };
        self.line.a.max(0.0) + others
    }

    /// The deviation of a single bin at a rate.
    pub fn scale_at(&self, rate: f64) -> f64 {
        if rate.is_finite() { self.scale.max(self.background_scale / rate) } else { self.scale }
    }
}

/// Learns from the bins in `low`. `None` with fewer than [`FEWEST`] readings.
pub fn learn(values: &[f64], rate: &[f64], low: &[bool], floor: f64, grows: bool) -> Option<Rest> {
    let points: Vec<(f64, f64)> = values
        .iter()
        .zip(rate)
        .zip(low)
        .filter(|((value, rate), low)| **low && value.is_finite() && rate.is_finite())
        .map(|((value, rate), _)| (*rate, *value))
        .collect();
    if points.len() < FEWEST {
        return None;
    }
    let centre = median(points.iter().map(|point| point.1));
    let mut line = Line { a: centre, b: 0.0 };
    let rates = sorted(points.iter().map(|point| point.0));
    let (slow, fast) = (quantile_sorted(&rates, 0.1), quantile_sorted(&rates, 0.9));
    if grows
        && fast > 1.3 * slow
        && let Some(fit) = theil_sen(&thin(&points, 200))
        && fit.b > 0.0
    {
        // Growth that is material within the low-load part itself is not explained by the load: it is what is looked for.
        let b = fit.b.min(MOST_EXPLAINED * floor / (fast - slow));
        line = Line { a: median(points.iter().map(|(x, y)| y - b * x)), b };
    }
    let left = || points.iter().map(|(x, y)| y - line.at(*x));
    let least = (quantum(&points) / 2.0).max(floor / 4.0);
    let scale = spread(left(), median(left()));
    let rest = Rest { line, background: 0.0, scale: scale.max(least), background_scale: 0.0, readings: points.len() };
    if !grows || fast <= 1.3 * slow || centre <= floor / 4.0 {
        return Some(rest);
    }
    // Where others wait here whatever the load, the waiting per request falls as the rate rises.
    let totals = || points.iter().map(|(x, y)| x * y);
    let background = median(totals());
    let apart = spread(points.iter().map(|(x, y)| y - background / x), 0.0);
    if apart < 0.8 * scale {
        let background_scale = spread(totals(), background);
        return Some(Rest { line: Line::default(), background, scale: floor / 4.0, background_scale, ..rest });
    }
    Some(rest)
}

/// The smallest step between different readings: what the source rounds to.
fn quantum(points: &[(f64, f64)]) -> f64 {
    let values = sorted(points.iter().map(|point| point.1));
    values.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 1e-9).fold(f64::INFINITY, f64::min).min(1e12)
        * f64::from(u8::from(values.first() != values.last()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_grows_with_the_load_is_expected_to_go_on_growing() {
        let rate: Vec<f64> = (0..100).map(f64::from).collect();
        let values: Vec<f64> = rate.iter().map(|x| 1.0 + 0.1 * x).collect();
        let low: Vec<bool> = (0..100).map(|n| n < 25).collect();
        let rest = learn(&values, &rate, &low, 4.0, true).unwrap();
        assert!((rest.line.at(90.0) - 10.0).abs() < 1e-6);
        assert_eq!(rest.scale, 1.0, "a quarter of the floor where nothing is left over");
    }

    #[test]
    fn growth_that_is_material_at_low_load_already_is_not_explained_away() {
        let rate: Vec<f64> = (0..100).map(f64::from).collect();
        let values: Vec<f64> = rate.iter().map(|x| x * x).collect();
        let low: Vec<bool> = (0..100).map(|n| n < 25).collect();
        let rest = learn(&values, &rate, &low, 4.0, true).unwrap();
        assert!(rest.line.at(99.0) < 300.0, "{rest:?}");
    }

    #[test]
    fn what_others_wait_here_falls_per_request_as_the_rate_rises() {
        let rate: Vec<f64> = (0..100).map(|n| 5.0 + f64::from(n)).collect();
        let values: Vec<f64> = rate.iter().enumerate().map(|(n, x)| (900.0 + 100.0 * f64::from(n as u32 % 3)) / x).collect();
        let low: Vec<bool> = (0..100).map(|n| n < 25).collect();
        let rest = learn(&values, &rate, &low, 4.0, true).unwrap();
        assert!((rest.expected(100.0) - 10.0).abs() < 0.5, "{rest:?}");
        assert!(rest.scale_at(100.0) < 2.0, "{rest:?}");
    }

    #[test]
    fn four_resting_readings_are_too_few_and_five_are_enough() {
        let few = [1.0, 1.0, f64::NAN, 1.0, 1.0, 1.0];
        let rate = [1.0; 6];
        assert_eq!(learn(&few, &rate, &[true, true, true, true, true, false], 1.0, true), None);
        assert_eq!(learn(&few, &rate, &[true; 6], 1.0, true).unwrap().readings, 5);
    }

    #[test]
    fn a_source_that_rounds_has_at_least_half_its_step_as_scale() {
        let values = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 10.0, 0.0, 0.0];
        let rest = learn(&values, &[5.0; 10], &[true; 10], 0.4, true).unwrap();
        assert_eq!(rest.scale, 5.0);
    }
}
