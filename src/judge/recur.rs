//! Departures that heal and come back: a stampede at every expiry of a key.
//!
//! **Question.** Do a gauge's bursts recur with the load, so that they are one departure from the first of them on? A single
//! departure must stay ([`super::depart`]); these never do. **Method.** Bursts are stretches over the floor, each of which
//! would raise the alarm by itself if no reading were clipped. They recur if at least three come at a steady period, or each
//! deeper than the one before; and they grow with the load if what is lost in them (depth times length: a ratio has a bottom,
//! and a stampede then lasts longer; of a ratio times the load, for a share of more requests is more of them) rises with it
//! at least half as fast as it does, or if the stretch of lower load before the first of them held none although two periods
//! had passed. **How it fails.** Bursts at the tick's own period are one reading. A job of others that happens to begin with
//! the load and comes three times passes for a stampede where the load does not climb: it is told with its period. So does a
//! job that empties a cache: what it costs does grow with the load.

use super::depart::{Excess, Windows};
use super::robust::{median, quantile};

/// Fewer bursts are chance, or a job.
const FEWEST: usize = 3;
/// Periods within this share of their median are steady.
const STEADY: f64 = 0.15;
/// Of the share by which the load rises between two bursts, so much at least must show in what is lost in them.
const WITH_LOAD: f64 = 0.5;
/// A load under this share of the first burst's is a lower load.
const LOWER: f64 = 0.8;

/// A burst.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// Its first bin.
    pub start: usize,
    /// The bin behind its last.
    pub end: usize,
    /// What is lost in it: its mean excess, of a ratio in requests, times its bins, those that were not read too.
    pub lost: f64,
    /// The load in it.
    pub load: f64,
}

/// Bursts that recur.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recurring {
    /// The first of them.
    pub first: Burst,
    /// The second: by then it was no single burst.
    pub second: Burst,
    /// How many.
    pub bursts: usize,
    /// Bins from one to the next: the median.
    pub period: f64,
}

/// The bursts of an excess within its range; those nearer than the smoothing are one.
pub fn bursts(excess: &Excess, windows: Windows, of_requests: bool) -> Vec<Burst> {
    // With how many readings, and their sum in scales.
    let mut found: Vec<(Burst, f64, f64)> = Vec::new();
    for bin in excess.range.0..excess.range.1 {
        let (value, scales) = (excess.values[bin], excess.values[bin] / excess.scale[bin]);
        if value.is_nan() || value <= excess.floor[bin] {
            continue;
        }
        let lost = if of_requests { value * excess.load[bin] } else { value };
        match found.last_mut() {
            Some((last, readings, sum)) if bin < last.end + windows.smooth => {
                (last.end, last.lost) = (bin + 1, last.lost + lost);
                (*readings, *sum) = (*readings + 1.0, *sum + scales);
            }
            _ => found.push((Burst { start: bin, end: bin + 1, lost, load: excess.load[bin] }, 1.0, scales)),
        }
    }
    let alarming = found.into_iter().filter(|(_, _, sum)| *sum > windows.height);
    alarming.map(|(burst, readings, _)| Burst { lost: burst.lost / readings * (burst.end - burst.start) as f64, ..burst }).collect()
}

/// Whether the bursts recur with the load; with `of_requests` the excess is a share of the requests.
pub fn recurring(excess: &Excess, windows: Windows, of_requests: bool) -> Option<Recurring> {
    let found = bursts(excess, windows, of_requests);
    if found.len() < FEWEST {
        return None;
    }
    let periods: Vec<f64> = found.windows(2).map(|pair| (pair[1].start - pair[0].start) as f64).collect();
    let period = median(periods.iter().copied());
    let steady = periods.iter().all(|one| (one - period).abs() <= (STEADY * period).max(1.0));
    // The same share of more requests is more by itself.
    let deeper = !of_requests && found.windows(2).all(|pair| pair[1].lost > pair[0].lost);
    // What fills most of its period is no burst.
    let short = found.iter().all(|burst| ((burst.end - burst.start) as f64) < 0.7 * period);
    ((steady || deeper) && short && (rises_with_load(&found) || began_with_load(excess, &found[0], period))).then(|| Recurring {
        first: found[0],
        second: found[1],
        bursts: found.len(),
        period,
    })
}

/// Between the bursts of lower load and those of higher load.
fn rises_with_load(found: &[Burst]) -> bool {
    let mut by_load = found.to_vec();
    by_load.sort_by(|a, b| a.load.total_cmp(&b.load));
    let half = by_load.len() / 2;
    let (slow, fast) = (&by_load[..half], &by_load[by_load.len() - half..]);
    let of = |bursts: &[Burst], what: fn(&Burst) -> f64| median(bursts.iter().map(what));
    let load = of(fast, |burst| burst.load) / of(slow, |burst| burst.load);
    let lost = of(fast, |burst| burst.lost) / of(slow, |burst| burst.lost);
    load > 1.1 && lost >= 1.0 + WITH_LOAD * (load - 1.0)
}

/// Whether the lower load before the first burst was long enough to have held two.
fn began_with_load(excess: &Excess, first: &Burst, period: f64) -> bool {
    let usual = quantile((first.start..first.end).map(|bin| excess.load[bin]), 0.5);
    let lower =
        (excess.range.0..first.start).filter(|bin| excess.values[*bin].is_finite() && excess.load[*bin] < LOWER * usual).count();
    lower as f64 >= 2.0 * period
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOWS: Windows = Windows { smooth: 3, last: 15, height: 10.2 };

    /// Bursts of five bins every `period` from `first` on, as deep as `depth` says of the load.
    fn judge(first: usize, period: usize, depth: impl Fn(f64) -> f64, load: impl Fn(usize) -> f64) -> Option<Recurring> {
        let load: Vec<f64> = (0..400).map(load).collect();
        let values: Vec<f64> =
            (0..400).map(|n| if n >= first && (n - first) % period < 5 { depth(load[n]) } else { 0.0 }).collect();
        let ones = vec![1.0; 400];
        recurring(
            &Excess { values: &values, scale: &ones, floor: &[4.0; 400], load: &load, range: (0, 400), steps: &[] },
            WINDOWS,
            false,
        )
    }

    fn climb(n: usize) -> f64 {
        50.0 + n as f64
    }

    #[test]
    fn a_stampede_that_deepens_with_the_load_is_one_departure_from_its_first() {
        let found = judge(60, 40, |load| load / 10.0, climb).unwrap();
        assert_eq!((found.first.start, found.second.start, found.period), (60, 100, 40.0));
        assert_eq!(found.bursts, 9);
    }

    #[test]
    fn a_job_of_the_same_size_at_any_load_is_none_however_often_it_comes() {
        assert_eq!(judge(10, 40, |_| 20.0, climb), None);
    }

    #[test]
    fn the_same_share_of_more_requests_grows_with_the_load_and_a_jobs_own_misses_do_not() {
        let load: Vec<f64> = (0..400).map(climb).collect();
        let recurs = |depth: &dyn Fn(f64) -> f64| {
            let values: Vec<f64> = (0..400).map(|n| if n % 40 < 5 { depth(load[n]) } else { 0.0 }).collect();
            let (scale, floor) = (vec![0.01; 400], vec![0.05; 400]);
            let excess = Excess { values: &values, scale: &scale, floor: &floor, load: &load, range: (0, 400), steps: &[] };
            recurring(&excess, WINDOWS, true).is_some()
        };
        assert!(recurs(&|_| 0.5));
        // 40 of a job at whatever load.
        assert!(!recurs(&|load| 40.0 / (load + 40.0)));
    }

    #[test]
    fn bursts_that_cannot_be_deeper_and_last_longer_with_the_load_recur_with_it() {
        let load: Vec<f64> = (0..400).map(climb).collect();
        let values: Vec<f64> = (0..400).map(|n| if n % 40 < n / 16 { 20.0 } else { 0.0 }).collect();
        let (scale, floor) = (vec![1.0; 400], vec![4.0; 400]);
        let excess = Excess { values: &values, scale: &scale, floor: &floor, load: &load, range: (0, 400), steps: &[] };
        assert_eq!(recurring(&excess, WINDOWS, false).map(|found| found.period), Some(40.0));
    }

    #[test]
    fn one_or_two_bursts_are_none() {
        assert_eq!(judge(100, 200, |load| load / 10.0, climb), None);
    }

    #[test]
    fn bursts_that_only_a_high_load_brings_out_are_with_the_load() {
        let load = |n: usize| if n < 200 { 50.0 } else { 200.0 };
        assert!(judge(210, 40, |_| 20.0, load).is_some());
        // The same job, seen at the low load too.
        assert_eq!(judge(50, 40, |_| 20.0, load), None);
    }

    #[test]
    fn bursts_at_no_period_that_do_not_deepen_are_none() {
        let load: Vec<f64> = (0..400).map(climb).collect();
        let mut values = vec![0.0; 400];
        for (start, depth) in [(50, 30.0), (70, 9.0), (190, 60.0), (300, 40.0)] {
            values[start..start + 4].fill(depth);
        }
        let excess = Excess { values: &values, scale: &[1.0; 400], floor: &[4.0; 400], load: &load, range: (0, 400), steps: &[] };
        assert_eq!(recurring(&excess, WINDOWS, false), None);
    }
}
