//! A hinge `y = min(b·x, c)` through points: linear until the capacity, flat beyond.
//!
//! **Method.** Least absolute deviations over candidate ceilings, the slope that of the points of lower load; then again with
//! the points within 2.5 times the bend only. **How it fails.** A goodput that collapses right at the bend pulls the flat
//! part down, and the bend with it.

use super::robust::{quantile_sorted, sorted};

/// A fitted hinge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hinge {
    /// The slope below.
    pub slope: f64,
    /// The height above.
    pub ceiling: f64,
}

impl Hinge {
    /// Where it bends.
    pub fn bend(self) -> f64 {
        self.ceiling / self.slope
    }

    /// What is done of so much offered.
    pub fn at(self, offered: f64) -> f64 {
        (self.slope * offered).min(self.ceiling)
    }
}

/// Points this far beyond the bend say how a system fares that is long past it, not where it bends.
const REACH: f64 = 2.5;

/// The slope is that of this share of the points: of more, some lie beyond the bend already.
const LOW: f64 = 0.25;

/// So many points beyond the bend are used at least.
const BEYOND: usize = 10;

/// Fits the hinge to points (offered, done), the first over 0. `None` under six points.
pub fn fit(points: &[(f64, f64)]) -> Option<Hinge> {
    let points: Vec<(f64, f64)> = points.iter().copied().filter(|(x, y)| *x > 0.0 && y.is_finite()).collect();
    let mut found = least(&points)?;
    for _ in 0..2 {
        // A steep climb has few points near the bend: some beyond it are needed to know its height.
        let beyond = sorted(points.iter().map(|point| point.0).filter(|x| *x > found.bend()));
        let enough = beyond.get(BEYOND.min(beyond.len()).saturating_sub(1)).copied().unwrap_or(0.0);
        let reach = enough.max(REACH * found.bend());
        let near: Vec<(f64, f64)> = points.iter().copied().filter(|point| point.0 <= reach).collect();
        match least(&near) {
            Some(better) => found = better,
            None => break,
        }
    }
    Some(found)
}

/// Least absolute deviations over candidate ceilings.
fn least(points: &[(f64, f64)]) -> Option<Hinge> {
    if points.len() < 6 {
        return None;
    }
    let xs = sorted(points.iter().map(|point| point.0));
    let low = quantile_sorted(&xs, LOW);
    let (mut offered, mut done) = (0.0, 0.0);
    for (x, y) in points.iter().filter(|point| point.0 <= low) {
        offered += x;
        done += y;
    }
    // Up to the bend what is offered is done, save for a constant share that fails at any load.
    let slope = if (done / offered - 1.0).abs() < 0.1 { 1.0 } else { (done / offered).min(1.0) };
    if slope <= 0.0 || !slope.is_finite() {
        return None;
    }
    let cost = |ceiling: f64| points.iter().map(|(x, y)| (y - Hinge { slope, ceiling }.at(*x)).abs()).sum::<f64>();
    let (low, high) = (slope * xs[0], slope * xs[xs.len() - 1]);
    let ceiling = (1..=400).map(|n| low + (high - low) * f64::from(n) / 400.0).min_by(|a, b| cost(*a).total_cmp(&cost(*b)))?;
    Some(Hinge { slope, ceiling })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hinge_bends_where_the_goodput_stops_following() {
        let points: Vec<(f64, f64)> = (1..200).map(|n| (f64::from(n), f64::from(n).min(120.0))).collect();
        let hinge = fit(&points).unwrap();
        assert!((hinge.bend() - 120.0).abs() < 1.0, "{hinge:?}");
    }

    #[test]
    fn a_collapse_far_beyond_the_bend_does_not_move_it() {
        let points: Vec<(f64, f64)> =
            (1..400).map(|n| (f64::from(n), if n > 220 { 60.0 } else { f64::from(n).min(120.0) })).collect();
        assert!((fit(&points).unwrap().bend() - 120.0).abs() < 2.0);
    }

    #[test]
    fn what_follows_to_the_end_bends_at_the_end() {
        let points: Vec<(f64, f64)> = (1..200).map(|n| (f64::from(n), f64::from(n))).collect();
        assert!(fit(&points).unwrap().bend() > 195.0);
        assert_eq!(fit(&points[..3]), None);
    }
}
