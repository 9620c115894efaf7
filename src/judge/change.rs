//! One run against the earlier ones of its scenario.
//!
//! **Question.** Is this run's number lower (or higher) than the earlier ones let expect? **Method.** Under 5 earlier runs
//! only a fall of more than a fifth counts. With 5 to 19 a 99 % prediction interval of Student's t, and a change of more than
//! 5 %. With 20 and more the series of all runs is searched for change points (E-divisive: Matteson and James 2014, energy
//! distance with a permutation test), and the last stretch is compared with the one before. **How it fails.** Runs that drift
//! by a little each time stay inside every interval; the series as a picture shows them.

/// What one run is against the earlier ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// As they let expect.
    Usual,
    /// Lower: by which share of what was usual.
    Fell(f64),
    /// Higher.
    Rose(f64),
}

/// How it was told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Told {
    /// The change.
    pub change: Change,
    /// What was usual.
    pub usual: f64,
    /// Between which values a run is as usual; `None` where too few runs tell that.
    pub between: Option<(f64, f64)>,
}

/// With under so many earlier runs only a fall of a fifth counts.
pub const FEW: usize = 5;
/// With so many earlier runs the whole series is searched.
pub const MANY: usize = 20;
/// Smaller changes are nothing, however certain.
const MATERIAL: f64 = 0.05;
const GROSS: f64 = 0.2;

/// The latest number against the earlier ones; `None` without any.
pub fn told(earlier: &[f64], now: f64) -> Option<Told> {
    if earlier.is_empty() || !now.is_finite() {
        return None;
    }
    let judged = |usual: f64, between: Option<(f64, f64)>, least: f64| {
        let share = (now - usual) / usual;
        let outside = between.is_none_or(|(low, high)| !(low..=high).contains(&now));
        let change = match share {
            share if outside && share < -least => Change::Fell(-share),
            share if outside && share > least => Change::Rose(share),
            _ => Change::Usual,
        };
        Told { change, usual, between }
    };
    if earlier.len() < FEW {
        return Some(judged(super::robust::median(earlier.iter().copied()), None, GROSS));
    }
    // Of many runs only those since the last change say what is usual.
    let mut all = earlier.to_vec();
    let since = if earlier.len() >= MANY {
        all.push(now);
        let changes = change_points(&all);
        all.pop();
        // A change point at the run itself needs the ones before it to compare with.
        changes.into_iter().rfind(|at| at + FEW <= earlier.len()).unwrap_or(0)
    } else {
        0
    };
    let part = &all[since..];
    let (mean, half) = predicted(part);
    Some(judged(mean, Some((mean - half, mean + half)), MATERIAL))
}

/// Mean, and half of the 99 % prediction interval of one more.
fn predicted(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, t_995(values.len() - 1) * (variance * (1.0 + 1.0 / n)).sqrt())
}

/// The 99.5 % quantile of Student's t, which bounds 99 % in the middle.
fn t_995(freedom: usize) -> f64 {
    const TABLE: [f64; 29] = [
        63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947, 2.921, 2.898,
        2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756,
    ];
    TABLE.get(freedom.saturating_sub(1)).copied().unwrap_or(2.75)
}

/// The fewest runs on each side of a change.
const SIDE: usize = 4;
const PERMUTATIONS: usize = 199;

/// Where a series changes: the index of the first value after each change, rising.
pub fn change_points(values: &[f64]) -> Vec<usize> {
    let mut found = Vec::new();
    search(values, 0, &mut found);
    found.sort_unstable();
    found
}

fn search(values: &[f64], offset: usize, found: &mut Vec<usize>) {
    let Some((at, strength)) = strongest(values) else { return };
    // The order of the values is the only thing that a permutation changes.
    let (mut shuffled, mut state) = (values.to_vec(), 0x2545_F491_4F6C_DD1D_u64);
    let mut as_strong = 0;
    for _ in 0..PERMUTATIONS {
        for n in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            shuffled.swap(n, (state >> 33) as usize % (n + 1));
        }
        as_strong += usize::from(strongest(&shuffled).is_some_and(|(_, other)| other >= strength));
    }
    if (as_strong + 1) as f64 / (PERMUTATIONS + 1) as f64 > 0.01 {
        return;
    }
    found.push(offset + at);
    search(&values[..at], offset, found);
    search(&values[at..], offset + at, found);
}

/// The split with the largest energy distance between its sides.
fn strongest(values: &[f64]) -> Option<(usize, f64)> {
    let n = values.len();
    (SIDE..=n.checked_sub(SIDE)?).map(|at| (at, energy(&values[..at], &values[at..]))).max_by(|a, b| a.1.total_cmp(&b.1))
}

fn energy(a: &[f64], b: &[f64]) -> f64 {
    let between: f64 = a.iter().flat_map(|x| b.iter().map(move |y| (x - y).abs())).sum();
    let within =
        |side: &[f64]| -> f64 { side.iter().enumerate().flat_map(|(n, x)| side[n + 1..].iter().map(move |y| (x - y).abs())).sum() };
    let (n, m) = (a.len() as f64, b.len() as f64);
    let pairs = |count: f64| (count * (count - 1.0) / 2.0).max(1.0);
    (n * m / (n + m)) * (2.0 * between / (n * m) - within(a) / pairs(n) - within(b) / pairs(m))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values around a level that vary by so much, the same for one seed.
    fn around(level: f64, share: f64, count: usize, seed: u64) -> Vec<f64> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1);
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        (0..count).map(|_| level * (1.0 + share * ((0..12).map(|_| uniform()).sum::<f64>() - 6.0))).collect()
    }

    #[test]
    fn a_fall_of_a_fifth_is_told_among_few_runs_and_among_many() {
        for earlier in [1, 3, 5, 10, 19, 30] {
            let runs = around(850.0, 0.01, earlier, 7);
            let told = told(&runs, 660.0).unwrap();
            assert!(matches!(told.change, Change::Fell(share) if (share - 0.22).abs() < 0.03), "{earlier}: {told:?}");
        }
    }

    #[test]
    fn noise_alone_is_hardly_ever_a_change() {
        // The search of a long series is worth a few of them only.
        for (earlier, seeds) in [(3, 200), (5, 200), (10, 200), (19, 200), (30, 15)] {
            let wrong = (0..seeds).filter(|seed| {
                let runs = around(850.0, 0.03, earlier + 1, *seed);
                told(&runs[..earlier], runs[earlier]).unwrap().change != Change::Usual
            });
            let wrong = wrong.count();
            assert!(wrong * 33 <= seeds as usize, "{wrong} of {seeds} with {earlier} earlier runs");
        }
    }

    #[test]
    fn what_is_usual_is_what_was_so_since_the_last_change() {
        let mut runs = around(850.0, 0.01, 12, 3);
        runs.extend(around(700.0, 0.01, 12, 4));
        assert_eq!(change_points(&runs), [12]);
        let told = told(&runs, 702.0).unwrap();
        assert_eq!(told.change, Change::Usual, "{told:?}");
        assert!((told.usual / 700.0 - 1.0).abs() < 0.02, "{told:?}");
        assert_eq!(change_points(&around(850.0, 0.03, 24, 5)), Vec::<usize>::new());
    }
}
