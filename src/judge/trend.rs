//! Growth of a series that should stand still.
//!
//! **Question.** Does this series grow on and on, and how fast? **Method.** Means of blocks, longer than the series'
//! own correlation time, so that neighbours are nearly independent: Mann–Kendall on raw readings finds a leak in most
//! series that merely wander. For a saw-tooth (slow rise, sudden fall: a collector of garbage) the minimum of each block, a
//! block holding a whole tooth. The slope is Theil–Sen's with Sen's interval (Sen 1968; Gilbert 1987), the test
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
/// Over how many points the correlation is followed.
const POINTS: usize = 512;
/// A block holds so many teeth at least.
const TEETH: f64 = 1.3;
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
    /// Whether minima of blocks were taken: a saw-tooth.
    pub minima: bool,
    /// Whether the later half goes on as the whole does.
    pub goes_on: bool,
}

/// Why a series was not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untold {
    /// So many blocks only, whatever the series.
    TooShort(usize),
    /// Its teeth are too long: so many blocks that hold one.
    TooSlow(usize),
}

/// The trend of a series, in blocks of `longest` bins, shorter ones where that makes too few.
pub fn of(values: &[f64], longest: usize) -> Result<Trend, Untold> {
    let n = values.len();
    let read = values.iter().filter(|value| value.is_finite()).count();
    // A block holds three readings at least.
    let least = 3.0 * n as f64 / read.max(1) as f64;
    let shortest = least.max((n as f64 / BLOCKS_AIMED_AT as f64).min(longest as f64));
    let fits = (n as f64 / least) as usize;
    if fits < FEWEST_BLOCKS {
        return Err(Untold::TooShort(fits));
    }
    let tooth = tooth(values);
    let slow = tooth.map_or_else(|| 2.0 * correlation_time(values), |period| TEETH * period);
    let blocks = (n as f64 / shortest.max(slow)) as usize;
    if blocks < WANDERS && slow > shortest && tooth.is_none() {
        return drift::of(values, fits.min(BLOCKS_AIMED_AT));
    }
    if blocks < FEWEST_BLOCKS {
        return Err(Untold::TooSlow(blocks));
    }
    let block = n as f64 / blocks as f64;
    let points: Vec<(f64, f64)> = (0..blocks)
        .map(|at| {
            let part = &values[(at as f64 * block) as usize..(((at + 1) as f64 * block) as usize).min(n)];
            let finite = || part.iter().copied().filter(|value| value.is_finite());
            let value = if tooth.is_some() { finite().fold(f64::INFINITY, f64::min) } else { mean(finite()) };
            ((at as f64 + 0.5) * block, value)
        })
        .filter(|(_, value)| value.is_finite())
        .collect();
    if points.len() < FEWEST_BLOCKS {
        return Err(Untold::TooShort(points.len()));
    }
    Ok(through(&points, n, block, tooth.is_some()))
}

fn through(points: &[(f64, f64)], bins: usize, block: f64, minima: bool) -> Trend {
    let line = theil_sen(points).unwrap_or_default();
    let p = chance(points).1;
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
    if points.len() < FEWEST_BLOCKS { (0.0, 1.0) } else { chance(&points) }
}

fn chance(points: &[(f64, f64)]) -> (f64, f64) {
    let (s, variance) = kendall(points);
    let z = (s.abs() - 1.0).max(0.0) / variance.sqrt();
    (sign(s), if variance > 0.0 { two_sided(z) } else { 1.0 })
}

/// Mann–Kendall's S and its variance: with ties, and wider by what correlation is left between neighbours.
fn kendall(points: &[(f64, f64)]) -> (f64, f64) {
    let n = points.len() as f64;
    let mut s = 0.0;
    for (at, (_, y)) in points.iter().enumerate() {
        s += points[at + 1..].iter().map(|(_, later)| sign(later - y)).sum::<f64>();
    }
    let sorted = sorted(points.iter().map(|point| point.1));
    let ties: f64 = sorted.chunk_by(|a, b| a == b).map(|run| run.len() as f64).map(|t| t * (t - 1.0) * (2.0 * t + 5.0)).sum();
    let variance = (n * (n - 1.0) * (2.0 * n + 5.0) - ties) / 18.0;
    // The first lag as it is estimated is too low by so much (Kendall 1954).
    let values: Vec<f64> = points.iter().map(|point| point.1).collect();
    let lag = correlation_at(&without_parabola(&values), 1);
    let lag = if lag.is_finite() { (lag + (2.0 + 4.0 * lag) / n).clamp(0.0, 0.9) } else { 0.0 };
    (s, variance * (1.0 + lag) / (1.0 - lag))
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

/// The period of a saw-tooth in bins: sudden falls, at least three of them, each of a good part of the whole range, and no
/// rise as sudden. `None` where it is none.
fn tooth(values: &[f64]) -> Option<f64> {
    let known: Vec<(usize, f64)> = values.iter().copied().enumerate().filter(|(_, value)| value.is_finite()).collect();
    let line = theil_sen(&thin(&known.iter().map(|(n, y)| (*n as f64, *y)).collect::<Vec<_>>(), 200))?;
    let left: Vec<f64> = known.iter().map(|(n, y)| y - line.at(*n as f64)).collect();
    let (low, high) = left.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), y| (low.min(*y), high.max(*y)));
    let sudden = 0.4 * (high - low);
    // A fall within two readings: one of them may lie in the middle of it.
    let step = |n: usize| left[(n + 1).min(left.len() - 1)] - left[n.saturating_sub(1)];
    let mut falls: Vec<usize> = Vec::new();
    let mut rises = 0;
    for n in 1..left.len().saturating_sub(1) {
        if step(n) < -sudden && falls.last().is_none_or(|last| n > last + 2) {
            falls.push(n);
        }
        rises += usize::from(step(n) > sudden);
    }
    if falls.len() < 3 || rises * 3 > falls.len() {
        return None;
    }
    let (first, last) = (known[falls[0]].0, known[falls[falls.len() - 1]].0);
    // The longest gap between two falls: a block must hold a whole tooth.
    let longest = falls.windows(2).map(|pair| known[pair[1]].0 - known[pair[0]].0).max()?;
    let usual = (last - first) as f64 / (falls.len() - 1) as f64;
    Some((longest as f64).min(2.0 * usual))
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
