//! When a departure began, and how well that is known.
//!
//! **Question.** When did the excess go over a level and stay over it? **Method.** The isotonic regression of the excess
//! crosses a level where the running sum of (excess − level) has its minimum: the same as the last zero of a CUSUM with that
//! level as its reference (Page 1954; Robertson, Wright & Dykstra 1988). The onset is the crossing of a small level; the
//! interval reaches from the crossing of a smaller one to that of a larger one, widened by the bins whose running sum is as
//! good as the minimum within the noise. **How it fails.** An excess that rises, heals and rises again is dated at the last
//! rise; a gap over the onset leaves only the gap itself as the interval.

/// The bin behind which values stay over `level`: the last minimum of the running sum, and the first and last bins whose
/// running sum is within `slack` of it. NaN is left out.
pub fn crossing(values: &[f64], level: impl Fn(usize) -> f64, range: (usize, usize), slack: f64) -> Crossing {
    let mut sums = Vec::with_capacity(range.1.saturating_sub(range.0));
    let mut sum = 0.0;
    for (n, value) in values.iter().enumerate().take(range.1).skip(range.0) {
        sums.push(sum);
        if value.is_finite() {
            sum += value - level(n);
        }
    }
    let lowest = sums.iter().copied().fold(f64::INFINITY, f64::min);
    let first = |limit: f64| sums.iter().position(|sum| *sum <= limit).unwrap_or(0) + range.0;
    let last = |limit: f64| sums.iter().rposition(|sum| *sum <= limit).unwrap_or(0) + range.0;
    Crossing { first: first(lowest + slack), at: last(lowest + 1e-12), last: last(lowest + slack) }
}

/// Where a level was crossed for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// The first bin that could be it.
    pub first: usize,
    /// The likeliest: the first bin of those that stay over.
    pub at: usize,
    /// The last bin that could be it.
    pub last: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_crossed_at_its_first_bin() {
        let values: Vec<f64> = (0..100).map(|n| if n < 40 { 0.0 } else { 2.0 }).collect();
        assert_eq!(crossing(&values, |_| 1.0, (0, 100), 0.0), Crossing { first: 40, at: 40, last: 40 });
    }

    #[test]
    fn slack_widens_the_crossing_and_missing_bins_are_within_it() {
        let mut values: Vec<f64> = (0..100).map(|n| if n < 40 { 0.0 } else { 2.0 }).collect();
        values[38..44].fill(f64::NAN);
        let crossing = crossing(&values, |_| 1.0, (0, 100), 0.5);
        assert_eq!((crossing.first, crossing.last), (38, 44));
    }

    #[test]
    fn a_larger_level_is_crossed_later_on_a_ramp() {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        let at = |level: f64| crossing(&values, |_| level, (0, 100), 0.0).at;
        assert_eq!((at(10.5), at(50.5)), (11, 51));
    }
}
