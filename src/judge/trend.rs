//! Growth of a series that should stand still.
//!
//! **Question.** Does this series grow on and on, and how fast? **Method.** Means of blocks, longer than the series'
//! own correlation time, so that neighbours are nearly independent: Mann–Kendall on raw readings finds a leak in most
//! series that merely wander. For a saw-tooth (slow rise, sudden fall: a collector of garbage) the lowest reading of each
//! tooth. The slope is Theil–Sen's with Sen's interval (Sen 1968; Gilbert 1987), the test
//! Mann–Kendall's (Mann 1945; Kendall 1975) with ties and with what correlation is left between the blocks (Hamed & Rao
//! 1998, its first lag). What grew and stopped, a cache that filled, is no growth: the later half must grow too. Over many
//! series, Holm's step-down (Holm 1979) keeps the chance of any false one. A series that wanders too slowly for blocks is
//! asked for its [`drift`]. **How it fails.** A saw-tooth whose teeth are as long as the plateau is not told. Growth that
//! begins late in the plateau is weak.

mod drift;

use super::robust::{mean, median, sorted, theil_sen, thin};

/// Fewer blocks tell nothing.
pub const FEWEST_BLOCKS: usize = 8;
/// As many are made where the plateau is too short for blocks of the usual length.
const BLOCKS_AIMED_AT: usize = 20;
/// With fewer independent blocks a series wanders: of a thousand walks that went nowhere 212 had eight to eleven, and of
/// those Mann–Kendall took 47 for growth.
const WANDERS: usize = 12;
/// More than that add nothing but time: all pairs of them are compared.
const MOST_BLOCKS: usize = 120;
/// Over how many points the correlation is followed.
const POINTS: usize = 512;
/// Up to so many values the chance is counted and not read off a normal curve.
const EXACT: usize = 20;
/// More teeth than that are told by the lowest of several neighbours.
const MOST_TEETH: usize = 40;
/// The chance of a false one, over all series.
pub const CHANCE: f64 = 0.01;

/// What a series did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Per bin.
    pub slope: f64,
    /// Where the slope is, 99 of 100 times.
    pub between: (f64, f64),
    /// The median of the blocks.
    pub level: f64,
    /// On the fitted line at the series' end.
    pub last: f64,
    /// The chance of as clear a trend, up or down, where there is none.
    pub p: f64,
    /// How many blocks.
    pub blocks: usize,
    /// Bins in one.
    pub block: f64,
    /// Whether the minima of teeth were taken: a saw-tooth.
    pub minima: bool,
    /// Whether the later half goes on as the whole does.
    pub goes_on: bool,
}

/// Why a series was not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untold {
    /// So many blocks only, whatever the series.
    TooShort(usize),
    /// Its teeth are too long: so many only.
    TooSlow(usize),
}

/// The trend of a series, in blocks of `longest` bins, shorter ones where that makes too few.
pub fn of(values: &[f64], longest: usize) -> Result<Trend, Untold> {
    let n = values.len();
    let read = values.iter().filter(|value| value.is_finite()).count();
    // A block holds three readings at least.
    let least = 3.0 * n as f64 / read.max(1) as f64;
    let shortest = least.max((n as f64 / BLOCKS_AIMED_AT as f64).min(longest as f64)).max(n as f64 / MOST_BLOCKS as f64);
    let fits = (n as f64 / least) as usize;
    if fits < FEWEST_BLOCKS {
        return Err(Untold::TooShort(fits));
    }
    let troughs = troughs(values);
    if !troughs.is_empty() {
        if troughs.len() < FEWEST_BLOCKS {
            return Err(Untold::TooSlow(troughs.len()));
        }
        let tooth = n as f64 / troughs.len() as f64;
        return Ok(through(&troughs, n, tooth, true));
    }
    let slow = 2.0 * correlation_time(values);
    let blocks = (n as f64 / shortest.max(slow)) as usize;
    if blocks < WANDERS && slow > shortest {
        return drift::of(values, fits.min(BLOCKS_AIMED_AT));
    }
    let block = n as f64 / blocks as f64;
    let points: Vec<(f64, f64)> = (0..blocks)
        .map(|at| {
            let part = &values[(at as f64 * block) as usize..(((at + 1) as f64 * block) as usize).min(n)];
            ((at as f64 + 0.5) * block, mean(part.iter().copied()))
        })
        .filter(|(_, value)| value.is_finite())
        .collect();
    if points.len() < FEWEST_BLOCKS {
        return Err(Untold::TooShort(points.len()));
    }
    Ok(through(&points, n, block, false))
}

fn through(points: &[(f64, f64)], bins: usize, block: f64, minima: bool) -> Trend {
    let line = theil_sen(points).unwrap_or_default();
    // One tooth knows nothing of the next.
    let p = chance(points, minima).1;
    let later = &points[points.len() / 2..];
    let most = sen_interval(later, 1.645).1;
    let least = sen_interval(later, 1.645).0;
    let goes_on = if line.b >= 0.0 { most >= 0.5 * line.b } else { least <= 0.5 * line.b };
    Trend {
        slope: line.b,
        between: sen_interval(points, 2.576),
        level: median(points.iter().map(|point| point.1)),
        last: line.at(bins as f64),
        p,
        blocks: points.len(),
        block,
        minima,
        goes_on,
    }
}

/// Which way the values of blocks go (its sign), and the chance of going it as clearly where there is no way.
pub fn way(blocks: &[f64]) -> (f64, f64) {
    let known = blocks.iter().enumerate().filter(|(_, value)| value.is_finite());
    let points: Vec<(f64, f64)> = known.map(|(n, value)| (n as f64, *value)).collect();
    if points.len() < FEWEST_BLOCKS { (0.0, 1.0) } else { chance(&points, false) }
}

fn chance(points: &[(f64, f64)], independent: bool) -> (f64, f64) {
    let (s, variance, wider, ties) = kendall(points);
    let wider = if independent { 1.0 } else { wider };
    let p = if variance <= 0.0 {
        1.0
    } else if wider == 1.0 && !ties && points.len() <= EXACT {
        exact(points.len(), s)
    } else {
        two_sided((s.abs() - 1.0).max(0.0) / (variance * wider).sqrt())
    };
    (sign(s), p)
}

/// The chance of an S as far from 0 among so many values without ties: the share of orders with as few or as many inversions.
fn exact(n: usize, s: f64) -> f64 {
    let mut shares = vec![1.0];
    for size in 2..=n {
        let mut next = vec![0.0; shares.len() + size - 1];
        for (inversions, share) in shares.iter().enumerate() {
            next[inversions..inversions + size].iter_mut().for_each(|sum| *sum += share / size as f64);
        }
        shares = next;
    }
    let pairs = (n * (n - 1) / 2) as f64;
    // S = pairs − 2·inversions.
    let far = shares.iter().enumerate().filter(|(inversions, _)| (pairs - 2.0 * *inversions as f64).abs() >= s.abs());
    far.map(|(_, share)| share).sum::<f64>().min(1.0)
}

/// Mann–Kendall's S, its variance with ties, by how much what correlation is left between neighbours widens it, and whether
/// there are ties.
fn kendall(points: &[(f64, f64)]) -> (f64, f64, f64, bool) {
    let n = points.len() as f64;
    let mut s = 0.0;
    for (at, (_, y)) in points.iter().enumerate() {
        s += points[at + 1..].iter().map(|(_, later)| sign(later - y)).sum::<f64>();
    }
    let sorted = sorted(points.iter().map(|point| point.1));
    let ties: f64 = sorted.chunk_by(|a, b| a == b).map(|run| run.len() as f64).map(|t| t * (t - 1.0) * (2.0 * t + 5.0)).sum();
    let variance = (n * (n - 1.0) * (2.0 * n + 5.0) - ties) / 18.0;
    let values: Vec<f64> = points.iter().map(|point| point.1).collect();
    let lag = correlation_at(&without_parabola(&values), 1);
    let lag = if lag.is_finite() { lag.clamp(0.0, 0.9) } else { 0.0 };
    (s, variance, (1.0 + lag) / (1.0 - lag), ties > 0.0)
}

fn sign(value: f64) -> f64 {
    if value > 0.0 {
        1.0
    } else if value < 0.0 {
        -1.0
    } else {
        0.0
    }
}

/// Sen's interval of the slope: the slopes between pairs at the ranks that `z` deviations of S reach.
fn sen_interval(points: &[(f64, f64)], z: f64) -> (f64, f64) {
    let n = points.len() as f64;
    let mut slopes = Vec::with_capacity(points.len() * points.len() / 2);
    for (at, (x0, y0)) in points.iter().enumerate() {
        slopes.extend(points[at + 1..].iter().map(|(x, y)| (y - y0) / (x - x0)));
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let reach = z * (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let rank = |at: f64| slopes[(at.round().max(0.0) as usize).min(slopes.len() - 1)];
    let count = slopes.len() as f64;
    (rank((count - reach) / 2.0), rank(f64::midpoint(count, reach)))
}

/// The chance of a normal value as far from 0 as `z`, both sides (Abramowitz & Stegun 26.2.17; within 1.5e-7).
fn two_sided(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let poly = t * (0.319_381_530 + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    (2.0 * (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * poly).clamp(0.0, 1.0)
}

/// The time, in bins, over which readings know of each other: 1 + 2 Σ of the correlations up to the first that is none, of
/// what a parabola leaves over. Growth that quickens or slows is growth; what a line left over of it would pass for
/// wandering.
fn correlation_time(values: &[f64]) -> f64 {
    let width = values.len().div_ceil(POINTS);
    let coarse: Vec<f64> = values.chunks(width).map(|part| mean(part.iter().copied())).collect();
    let left = without_parabola(&coarse);
    let mut time = 1.0;
    for lag in 1..left.len() / 4 {
        let correlation = correlation_at(&left, lag);
        // What 2/√n reaches is chance.
        if correlation.is_nan() || correlation < 2.0 / (left.len() as f64).sqrt() {
            break;
        }
        time += 2.0 * correlation;
    }
    time * width as f64
}

/// What the least-squares parabola leaves over, by projection on 1, x, x² made orthogonal.
fn without_parabola(values: &[f64]) -> Vec<f64> {
    let known: Vec<(f64, f64)> =
        values.iter().enumerate().filter(|(_, value)| value.is_finite()).map(|(n, value)| (n as f64, *value)).collect();
    let mut left: Vec<f64> = known.iter().map(|point| point.1).collect();
    let mut bases: Vec<Vec<f64>> = Vec::new();
    let span = values.len().max(1) as f64;
    for power in 0..3 {
        let mut basis: Vec<f64> = known.iter().map(|(x, _)| (x / span).powi(power)).collect();
        for before in &bases {
            take_away(&mut basis, before);
        }
        take_away(&mut left, &basis);
        bases.push(basis);
    }
    left
}

fn take_away(from: &mut [f64], basis: &[f64]) {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let square = dot(basis, basis);
    if square > 1e-12 {
        let share = dot(from, basis) / square;
        from.iter_mut().zip(basis).for_each(|(value, basis)| *value -= share * basis);
    }
}

fn correlation_at(left: &[f64], lag: usize) -> f64 {
    let centre = mean(left.iter().copied());
    let whole: f64 = left.iter().map(|value| (value - centre).powi(2)).sum();
    let shared: f64 = left.iter().zip(&left[lag..]).map(|(a, b)| (a - centre) * (b - centre)).sum();
    if whole > 0.0 { shared / whole } else { f64::NAN }
}

/// The lowest readings of a saw-tooth: sudden falls, at least three of them, each of a good part of the whole range, and no
/// rise as sudden. None where it is no saw-tooth.
fn troughs(values: &[f64]) -> Vec<(f64, f64)> {
    let known: Vec<(f64, f64)> =
        values.iter().enumerate().filter(|(_, value)| value.is_finite()).map(|(n, value)| (n as f64, *value)).collect();
    let line = theil_sen(&thin(&known, 100)).unwrap_or_default();
    let left: Vec<f64> = known.iter().map(|(x, y)| y - line.at(*x)).collect();
    let (low, high) = left.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| (low.min(*y), high.max(*y)));
    let sudden = 0.4 * (high - low);
    // A fall within two readings: one of them may lie in the middle of it.
    let step = |n: usize| left[n + 1] - left[n - 1];
    let (mut falls, mut rises): (Vec<usize>, usize) = (Vec::new(), 0);
    for n in 1..left.len().saturating_sub(1) {
        if step(n) < -sudden && falls.last().is_none_or(|last| n > last + 2) {
            falls.push(n);
        }
        rises += usize::from(step(n) > sudden);
    }
    // The falls of a saw-tooth are most of all that falls; noise falls everywhere.
    let fallen: f64 = falls.iter().map(|n| -step(*n)).sum();
    let all: f64 = left.windows(2).map(|pair| (pair[0] - pair[1]).max(0.0)).sum();
    if falls.len() < 3 || rises * 3 > falls.len() || fallen < 0.5 * all {
        return Vec::new();
    }
    let ends = falls.iter().skip(1).copied().chain([known.len()]);
    let lowest = |points: &[(f64, f64)]| points.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1));
    let teeth: Vec<(f64, f64)> = falls.iter().zip(ends).filter_map(|(from, to)| lowest(&known[*from..to])).collect();
    teeth.chunks(teeth.len().div_ceil(MOST_TEETH)).filter_map(lowest).collect()
}

/// Which of many chances stand, so that any false one among them has at most `chance`.
pub fn holm(chances: &[f64], chance: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..chances.len()).collect();
    order.sort_by(|a, b| chances[*a].total_cmp(&chances[*b]));
    let mut stand = vec![false; chances.len()];
    for (rank, at) in order.iter().enumerate() {
        if chances[*at] >= chance / (chances.len() - rank) as f64 {
            break;
        }
        stand[*at] = true;
    }
    stand
}

#[cfg(test)]
mod tests;
