//! When a departure began, and how well that is known.
//!
//! **Question.** When did what is added to a request go over a level for good? **Method.** The isotonic regression of a
//! series crosses a level where the running sum of (value − level) has its minimum, which is the last zero of a CUSUM with
//! that level as its reference (Page 1954; Robertson, Wright & Dykstra 1988). The series is smoothed and held under a few
//! levels first, so that neither one reading nor what came later decides. The onset is the crossing of the floor; its
//! interval reaches from the crossing of a small share of it, when the first of it can have been there, to the crossing of a
//! multiple, when nobody could miss it. The shares are calibrated on simulated runs of other seeds: they must hold the true
//! onset in nine of ten. **How it fails.** What rises, heals and rises again is dated at the last rise. A series that jumps
//! has an interval of a bin or two, which tells nothing of a lag of the gauge itself.

use super::robust::smooth;

/// The share of the floor that is a first sign of waiting.
pub const FIRST_SIGN: f64 = 0.4;
/// The multiple of the floor that nobody can miss.
const UNMISSABLE: f64 = 2.75;
/// Values are held under so many levels: what came long after decides nothing.
const HELD: f64 = 4.0;

/// An onset in bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dated {
    /// The earliest.
    pub low: usize,
    /// The likeliest.
    pub at: usize,
    /// The latest.
    pub high: usize,
}

/// Dates the onset within `range` of values over their resting level, smoothed over `width` bins; `first_sign`
/// is the share of the floor that is taken for one. An onset in or behind a gap began somewhere in the gap.
pub fn date(values: &[f64], floor: &[f64], first_sign: f64, range: (usize, usize), width: usize) -> Dated {
    let smoothed = smooth(values, width);
    let over = |share: f64| {
        let held = |n: usize| smoothed[n].min(HELD * share * floor[n]) - share * floor[n];
        crossing(range, |n| if smoothed[n].is_finite() { held(n) } else { 0.0 })
    };
    let at = over(1.0);
    // Smoothing itself blurs by half its window.
    let blur = width * 3 / 4;
    let low = over(first_sign).min(at.saturating_sub(blur)).max(range.0);
    let high = over(UNMISSABLE).max(at + blur).min(range.1.saturating_sub(1));
    match gap_at(values, range, at, width) {
        // Anywhere in the gap, then; its middle is nearest to all of it.
        Some((from, to)) => Dated { low: low.min(from), at: usize::midpoint(from, to), high: high.max(to) },
        None => Dated { low, at, high },
    }
}

/// The stretch without readings in which, or right behind which, a bin lies: its first bin and the first one read again.
/// A gauge that is read every few bins has no gaps between its readings.
fn gap_at(values: &[f64], range: (usize, usize), at: usize, width: usize) -> Option<(usize, usize)> {
    let read = |bin: usize| values[bin].is_finite();
    let blur = width / 2 + 1;
    let (near_from, near_to) = (at.saturating_sub(blur).max(range.0), (at + blur).min(range.1));
    let missing = (near_from..near_to).filter(|bin| !read(*bin)).min_by_key(|bin| bin.abs_diff(at))?;
    let from = (range.0..=missing).rev().take_while(|bin| !read(*bin)).last()?;
    let to = (missing..range.1).find(|bin| read(*bin)).unwrap_or(range.1 - 1);
    let spacing = (range.1 - range.0) as f64 / (range.0..range.1).filter(|bin| read(*bin)).count().max(1) as f64;
    let long = (to - from) as f64;
    (long > 3.0 * spacing && long > width as f64 / 2.0).then_some((from, to))
}

/// The first bin of those that stay over: behind the last minimum of the running sum of `excess`.
pub fn crossing(range: (usize, usize), excess: impl Fn(usize) -> f64) -> usize {
    let (mut sum, mut lowest, mut at) = (0.0, 0.0, range.0);
    for n in range.0..range.1 {
        sum += excess(n);
        if sum <= lowest {
            (lowest, at) = (sum, n + 1);
        }
    }
    at.min(range.1.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dated(values: &[f64]) -> Dated {
        date(values, &vec![1.0; values.len()], FIRST_SIGN, (0, values.len()), 1)
    }

    #[test]
    fn a_step_is_dated_at_its_first_bin() {
        let values: Vec<f64> = (0..100).map(|n| if n < 40 { 0.0 } else { 9.0 }).collect();
        assert_eq!(dated(&values), Dated { low: 40, at: 40, high: 40 });
    }

    #[test]
    fn a_slow_rise_has_an_interval_from_its_first_sign_to_where_nobody_can_miss_it() {
        let values: Vec<f64> = (0..100).map(|n| f64::from(n - 50).max(0.0) / 5.0).collect();
        let found = dated(&values);
        assert!((51..=53).contains(&found.low), "{found:?}");
        assert!((54..=57).contains(&found.at), "{found:?}");
        assert!((63..=67).contains(&found.high), "{found:?}");
    }

    #[test]
    fn an_onset_behind_a_gap_began_somewhere_in_the_gap() {
        let mut values: Vec<f64> = (0..100).map(|n| if n < 45 { 0.0 } else { 9.0 }).collect();
        values[30..50].fill(f64::NAN);
        let found = dated(&values);
        assert!(found.low <= 30 && found.high >= 49, "{found:?}");
        assert_eq!(found.at, 40);
    }

    #[test]
    fn a_burst_long_before_is_forgotten() {
        let values: Vec<f64> = (0..200).map(|n| if (20..25).contains(&n) || n >= 120 { 50.0 } else { 0.0 }).collect();
        assert_eq!(dated(&values).at, 120);
    }
}
