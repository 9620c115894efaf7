//! A hinge `y = min(b·x, c)` through points: linear until the capacity, flat beyond.
//!
//! **Method.** Least absolute deviations over candidate capacities, the slope fixed by the points below; robust against a
//! few foreign points. **How it fails.** A goodput that collapses beyond the knee pulls the flat part down; candidates are
//! therefore taken from the points' own values near the bend.

use super::robust::{median, quantile_sorted, sorted};

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
}

/// Fits the hinge to points (x, y), both over 0. `None` under six points.
pub fn fit(points: &[(f64, f64)]) -> Option<Hinge> {
    let points: Vec<(f64, f64)> = points.iter().copied().filter(|(x, y)| *x > 0.0 && y.is_finite()).collect();
    if points.len() < 6 {
        return None;
    }
    let xs = sorted(points.iter().map(|point| point.0));
    let quarter = quantile_sorted(&xs, 0.25);
    let slope = median(points.iter().filter(|(x, _)| *x <= quarter).map(|(x, y)| y / x));
    if slope <= 0.0 || !slope.is_finite() {
        return None;
    }
    let cost = |c: f64| points.iter().map(|(x, y)| (y - (slope * x).min(c)).abs()).sum::<f64>();
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
    fn what_follows_to_the_end_bends_at_the_end() {
        let points: Vec<(f64, f64)> = (1..200).map(|n| (f64::from(n), f64::from(n))).collect();
        assert!(fit(&points).unwrap().bend() > 195.0);
        assert_eq!(fit(&points[..3]), None);
    }
}
