//! A series as straight pieces: what was held, what climbed, and where it jumped.
//!
//! **Question.** Between which bins did this series hold one level or follow one line? **Method.** The cheapest sequence of
//! straight lines, by dynamic programming over at most a few hundred points (Jackson et al. 2005, "optimal partitioning"),
//! each piece costing its squared residuals in units of the noise plus a constant (three parameters, Schwarz 1978). The
//! noise is that of second differences: nothing for a plan, that of counting for arrivals. Each border is then moved to the
//! bin where the two lines fit best. **How it fails.** Pieces shorter than two points are not seen: in a day, half a minute.

use super::robust::{median, smooth};

/// Over how many points the pieces are sought.
const POINTS: usize = 400;
/// A variance of over this share of the value is one of counts, and then
const COUNTED: f64 = 0.02;
/// it is taken over so many points too.
const WANDERS: usize = 5;
/// The median of the square of a standard normal value.
const MEDIAN_OF_SQUARES: f64 = 0.455;

/// A straight piece.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// The first bin, and the one behind the last.
    pub bins: (usize, usize),
    /// The line's value at the first bin.
    pub from: f64,
    /// And at the last.
    pub to: f64,
}

impl Piece {
    /// How many bins.
    pub fn len(self) -> usize {
        self.bins.1 - self.bins.0
    }

    /// Whether it has none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The line at a bin, beyond its own bins too.
    fn at(self, bin: usize) -> f64 {
        let steps = (self.len().max(2) - 1) as f64;
        self.from + (self.to - self.from) * (bin as f64 - self.bins.0 as f64) / steps
    }
}

/// What points the pieces are sought over.
#[derive(Clone, Copy, Debug)]
pub struct Points {
    /// Pieces shorter than so many bins belong to the one behind them.
    pub least: usize,
    /// Over so many bins one count was spread: they are one point, and not several that agree.
    pub finest: usize,
    /// No noise is smaller than this share of the highest value.
    pub noise: f64,
}

/// Sums of a stretch of points, from which its best line and what that leaves over follow.
#[derive(Clone, Copy, Debug, Default)]
struct Sums([f64; 6]);

impl Sums {
    fn with(self, weight: f64, x: f64, y: f64) -> Self {
        let more = [1.0, x, x * x, y, x * y, y * y];
        let mut sums = self.0;
        sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += weight * more);
        Self(sums)
    }

    fn without(self, before: Self) -> Self {
        let mut sums = self.0;
        sums.iter_mut().zip(before.0).for_each(|(sum, before)| *sum -= before);
        Self(sums)
    }

    /// Slope, value at x = 0, and what is left over.
    fn line(self) -> (f64, f64, f64) {
        let [w, x, xx, y, xy, yy] = self.0;
        let spread = xx - x * x / w;
        let slope = if spread > 1e-9 * w { (xy - x * y / w) / spread } else { 0.0 };
        let left = (yy - y * y / w) - slope * (xy - x * y / w);
        (slope, (y - slope * x) / w, left.max(0.0))
    }
}

/// The pieces of `values` within `range`, without holes between them.
pub fn pieces(values: &[f64], range: (usize, usize), Points { least, finest, noise }: Points) -> Vec<Piece> {
    let width = (range.1 - range.0).div_ceil(POINTS).max(finest).max(1);
    let points: Vec<(f64, f64)> = (range.0..range.1)
        .step_by(width)
        .map(|bin| (bin, (bin + width).min(range.1)))
        .filter_map(|(from, to)| {
            let known: Vec<f64> = values[from..to].iter().copied().filter(|value| value.is_finite()).collect();
            let mean = known.iter().sum::<f64>() / known.len() as f64;
            mean.is_finite().then_some(((from + to - 1) as f64 / 2.0, mean))
        })
        .collect();
    if points.len() < 2 {
        return Vec::new();
    }
    let starts = partition(&points, noise);
    // Borders in bins: half way between the last point of one piece and the first of the next.
    let mut borders: Vec<usize> = vec![range.0];
    borders.extend(starts.iter().skip(1).map(|at| f64::midpoint(points[at - 1].0, points[*at].0).ceil() as usize));
    borders.push(range.1);
    let mut found = fitted(values, &borders);
    for _ in 0..2 {
        for at in 1..found.len() {
            borders[at] = best_border(values, found[at - 1], found[at], 2 * width + 1);
        }
        // A transition of a bin or two is part of the jump.
        let mut kept = vec![range.0];
        for border in borders[1..borders.len() - 1].iter().copied() {
            if border >= kept[kept.len() - 1] + least {
                kept.push(border);
            } else if kept.len() > 1 {
                let last = kept.len() - 1;
                kept[last] = border;
            }
        }
        if kept.len() > 1 && range.1 < kept[kept.len() - 1] + least {
            kept.pop();
        }
        kept.push(range.1);
        borders = kept;
        found = fitted(values, &borders);
    }
    found
}

/// Where each piece begins, as indices of points.
fn partition(points: &[(f64, f64)], noise: f64) -> Vec<usize> {
    let n = points.len();
    let ys: Vec<f64> = points.iter().map(|point| point.1).collect();
    let level = smooth(&ys, 5);
    let top = ys.iter().copied().fold(0.0, f64::max);
    let grain = |lag: usize| {
        let bent = |n: usize| (ys[n] - 2.0 * ys[n + lag] + ys[n + 2 * lag]).powi(2) / level[n + lag].max(1e-9);
        let middle = median((0..n.saturating_sub(2 * lag)).map(bent));
        if middle.is_finite() { middle / (6.0 * MEDIAN_OF_SQUARES) } else { 0.0 }
    };
    // What is counted may wander for a few seconds; a plan does not, and its rungs may be short.
    let near = grain(1);
    let grain = if near > COUNTED { near.max(grain(WANDERS)) } else { near };
    let (scale, centre) = (points[n - 1].0 - points[0].0, points[0].0);
    let mut sums = vec![Sums::default()];
    for (at, (x, y)) in points.iter().enumerate() {
        let variance = (noise * top).powi(2) + grain * level[at].max(0.0);
        let next = sums[at].with(1.0 / variance.max(1e-12), (x - centre) / scale.max(1.0), *y);
        sums.push(next);
    }
    let price = 3.0 * (n as f64).ln();
    let (mut cost, mut begins) = (vec![0.0; n + 1], vec![0; n + 1]);
    for end in 1..=n {
        cost[end] = f64::INFINITY;
        for begin in 0..end {
            // One point alone is a border, no piece.
            if end - begin < 2 && end > 1 {
                continue;
            }
            let whole = cost[begin] + price + sums[end].without(sums[begin]).line().2;
            if whole < cost[end] {
                (cost[end], begins[end]) = (whole, begin);
            }
        }
    }
    let (mut starts, mut end) = (Vec::new(), n);
    while end > 0 {
        end = begins[end];
        starts.push(end);
    }
    starts.reverse();
    starts
}

fn fitted(values: &[f64], borders: &[usize]) -> Vec<Piece> {
    let fit = |(from, to): (usize, usize)| {
        let sums = (from..to)
            .filter(|bin| values[*bin].is_finite())
            .fold(Sums::default(), |sums, bin| sums.with(1.0, (bin - from) as f64, values[bin]));
        let (slope, start, _) = if sums.0[0] > 0.0 { sums.line() } else { (0.0, f64::NAN, 0.0) };
        Piece { bins: (from, to), from: start, to: start + slope * (to - from - 1) as f64 }
    };
    borders.windows(2).filter(|pair| pair[1] > pair[0]).map(|pair| fit((pair[0], pair[1]))).collect()
}

/// The bin near a border from which the second line fits better than the first.
fn best_border(values: &[f64], first: Piece, second: Piece, reach: usize) -> usize {
    let border = second.bins.0;
    let (low, high) = (border.saturating_sub(reach).max(first.bins.0 + 1), (border + reach).min(second.bins.1 - 1));
    let cost = |piece: Piece, bin: usize| {
        let left = values[bin] - piece.at(bin);
        if left.is_finite() { left * left } else { 0.0 }
    };
    let whole =
        |at: usize| (low..at).map(|bin| cost(first, bin)).sum::<f64>() + (at..high).map(|bin| cost(second, bin)).sum::<f64>();
    (low..=high).min_by(|a, b| whole(*a).total_cmp(&whole(*b))).unwrap_or(border)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EACH: Points = Points { least: 3, finest: 1, noise: 0.004 };

    fn told(values: &[f64]) -> Vec<(usize, usize)> {
        pieces(values, (0, values.len()), EACH).iter().map(|piece| piece.bins).collect()
    }

    fn near(found: &[(usize, usize)], wanted: &[(usize, usize)], by: usize) -> bool {
        found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| a.0.abs_diff(b.0) <= by && a.1.abs_diff(b.1) <= by)
    }

    #[test]
    fn rest_climb_plateau_and_spike_are_four_pieces() {
        let values: Vec<f64> = (0..400)
            .map(|n| match n {
                40..240 => 10.0 + f64::from(n - 40),
                240..300 => 210.0,
                300..320 => 400.0,
                _ => 10.0,
            })
            .collect();
        let found = told(&values);
        assert!(near(&found, &[(0, 40), (40, 240), (240, 300), (300, 320), (320, 400)], 3), "{found:?}");
        assert_eq!((found[3].0, found[3].1), (300, 320), "a jump is known to the bin");
    }

    #[test]
    fn rungs_are_pieces_each_however_many_bins_there_are() {
        let values: Vec<f64> = (0..3000).map(|n| f64::from(1 + n / 300) * 20.0).collect();
        let found = told(&values);
        assert_eq!(found, (0..10).map(|n| (300 * n, 300 * n + 300)).collect::<Vec<_>>());
    }

    #[test]
    fn counted_arrivals_of_one_rate_are_one_piece() {
        let mut state = 9_u64;
        let mut noise = || {
            (0..12)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (state >> 11) as f64 / (1_u64 << 53) as f64
                })
                .sum::<f64>()
                - 6.0
        };
        let values: Vec<f64> = (0..300)
            .map(|n| {
                let rate: f64 = if n < 150 { 50.0 } else { 120.0 };
                rate + rate.sqrt() * noise()
            })
            .collect();
        assert!(near(&told(&values), &[(0, 150), (150, 300)], 1), "{:?}", told(&values));
    }

    #[test]
    fn a_count_that_was_spread_over_five_bins_is_one_point_and_chance_makes_no_pieces() {
        let before = [54, 44, 46, 51, 40, 54, 41, 55, 44, 57, 38, 52, 53, 49, 61, 45, 50, 42, 47, 56];
        let behind = [47, 42, 51, 40, 57, 59, 47, 62, 42, 54, 55, 48, 48, 43, 45, 53, 57, 50, 61, 44, 52, 50, 39, 49, 51];
        let counts = [&before[..], &[161, 168, 150], &behind].concat();
        let values: Vec<f64> = counts.iter().flat_map(|count| [f64::from(*count); 5]).collect();
        let found = pieces(&values, (0, values.len()), Points { finest: 5, ..EACH });
        assert_eq!(found.iter().map(|piece| piece.bins).collect::<Vec<_>>(), [(0, 100), (100, 115), (115, 240)]);
    }

    #[test]
    fn a_bin_between_two_levels_belongs_to_the_jump() {
        let mut values = vec![10.0; 50];
        values.push(33.0);
        values.extend([60.0; 50]);
        assert_eq!(told(&values).len(), 2, "{:?}", told(&values));
    }

    #[test]
    fn a_hole_is_stepped_over_and_nothing_has_no_pieces() {
        let mut values = vec![10.0; 100];
        values[30..50].fill(f64::NAN);
        assert_eq!(told(&values), [(0, 100)]);
        assert!(pieces(&[f64::NAN; 50], (0, 50), EACH).is_empty());
    }
}
