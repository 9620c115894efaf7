//! Statistics that one odd reading cannot move: median, MAD, quantiles, Theil–Sen. A missing value is NaN and is left out.

/// The finite values, sorted.
pub fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut finite: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    finite.sort_unstable_by(f64::total_cmp);
    finite
}

/// The quantile `q` of sorted values, linear between neighbours; NaN of none.
pub fn quantile_sorted(sorted: &[f64], q: f64) -> f64 {
    if sorted.is_empty() {
        return f64::NAN;
    }
    let at = q.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + (sorted[high] - sorted[low]) * part
}

/// The quantile `q`; NaN of none.
pub fn quantile(values: impl IntoIterator<Item = f64>, q: f64) -> f64 {
    quantile_sorted(&sorted(values), q)
}

/// The median; NaN of none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    quantile(values, 0.5)
}

/// The mean of the finite values; NaN of none.
pub fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values.into_iter().filter(|value| value.is_finite()) {
        sum += value;
        count += 1.0;
    }
    if count > 0.0 { sum / count } else { f64::NAN }
}

/// The standard deviation as the median absolute deviation from `centre` tells it (1.4826 · MAD; exact for a normal one).
pub fn spread(values: impl IntoIterator<Item = f64>, centre: f64) -> f64 {
    1.4826 * median(values.into_iter().map(|value| (value - centre).abs()))
}

/// A line `a + b·x`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Line {
    /// The value at 0.
    pub a: f64,
    /// The slope.
    pub b: f64,
}

impl Line {
    /// The value at `x`.
    pub fn at(self, x: f64) -> f64 {
        self.a + self.b * x
    }
}

/// Theil–Sen: the median of the slopes between all pairs of points, and the median of what is left (Sen 1968). Breaks down
/// only when 29 % of the points are foreign. Costs n²: give it a few hundred points, [`thin`] helps. `None` under 3 points
/// or where all `x` are one.
pub fn theil_sen(points: &[(f64, f64)]) -> Option<Line> {
    if points.len() < 3 {
        return None;
    }
    let mut slopes = Vec::with_capacity(points.len() * (points.len() - 1) / 2);
    for (n, (x0, y0)) in points.iter().enumerate() {
        slopes.extend(points[n + 1..].iter().filter(|(x, _)| (x - x0).abs() > 1e-12).map(|(x, y)| (y - y0) / (x - x0)));
    }
    if slopes.is_empty() {
        return None;
    }
    let middle = slopes.len() / 2;
    let b = *slopes.select_nth_unstable_by(middle, f64::total_cmp).1;
    Some(Line { a: median(points.iter().map(|(x, y)| y - b * x)), b })
}

/// At most `most` of the points, evenly spread.
pub fn thin<T: Copy>(points: &[T], most: usize) -> Vec<T> {
    if points.len() <= most {
        return points.to_vec();
    }
    (0..most).map(|n| points[n * points.len() / most]).collect()
}

/// The centred mean over `width` bins (made odd), of the finite ones; NaN where there is none.
pub fn smooth(values: &[f64], width: usize) -> Vec<f64> {
    let half = width / 2;
    let (mut sums, mut counts) = (vec![0.0; values.len() + 1], vec![0.0; values.len() + 1]);
    for (n, value) in values.iter().enumerate() {
        let there = value.is_finite();
        sums[n + 1] = sums[n] + if there { *value } else { 0.0 };
        counts[n + 1] = counts[n] + if there { 1.0 } else { 0.0 };
    }
    (0..values.len())
        .map(|n| {
            let (from, to) = (n.saturating_sub(half), (n + half + 1).min(values.len()));
            let count = counts[to] - counts[from];
            if count > 0.0 { (sums[to] - sums[from]) / count } else { f64::NAN }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_leaves_missing_values_out_and_none_has_none() {
        assert_eq!(median([3.0, f64::NAN, 1.0]), 2.0);
        assert!(median([f64::NAN]).is_nan());
        assert_eq!(quantile([0.0, 10.0], 0.95), 9.5);
    }

    #[test]
    fn a_quarter_of_foreign_points_does_not_move_the_line() {
        let points: Vec<(f64, f64)> =
            (0..100).map(|n| (f64::from(n), if n % 4 == 0 { 1e6 } else { 3.0 + 2.0 * f64::from(n) })).collect();
        let line = theil_sen(&points).unwrap();
        assert!((line.b - 2.0).abs() < 0.05 && (line.a - 3.0).abs() < 3.0, "{line:?}");
    }

    #[test]
    fn points_over_one_x_have_no_slope() {
        assert_eq!(theil_sen(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(theil_sen(&[(1.0, 1.0), (2.0, 2.0)]), None);
    }

    #[test]
    fn the_spread_of_normal_noise_is_its_standard_deviation() {
        // The sum of twelve uniform numbers is near enough to normal with deviation 1.
        let mut state = 1_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let noise: Vec<f64> = (0..4000).map(|_| (0..12).map(|_| uniform()).sum::<f64>() - 6.0).collect();
        assert!((spread(noise.iter().copied(), 0.0) - 1.0).abs() < 0.06);
    }

    #[test]
    fn smoothing_keeps_a_line_and_steps_over_gaps() {
        let values: Vec<f64> = (0..9).map(|n| if n == 4 { f64::NAN } else { f64::from(n) }).collect();
        let smoothed = smooth(&values, 3);
        assert_eq!(smoothed[2], 2.0);
        assert_eq!(smoothed[4], 4.0);
        assert_eq!(smoothed[0], 0.5);
    }

    #[test]
    fn thinning_keeps_at_most_so_many_in_their_order() {
        let thinned = thin(&(0..1000).collect::<Vec<i32>>(), 7);
        assert_eq!(thinned.len(), 7);
        assert!(thinned.is_sorted());
    }
}
