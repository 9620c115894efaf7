//! Growth of a series that only sums up chance.
//!
//! **Question.** Does a series that wanders without a rest also drift? What is kept of every request of visitors who come at
//! random is such a series: what a line leaves over of it is a walk, and no blocks of it are independent. **Method.** Its
//! steps from the begin of one block to the next are: Student's t of their mean (Student 1908), as a normal value by
//! Wallace's approximation (Wallace 1959). The steps of what wanders and comes back add up to less than chance would make of
//! them, so that there the test errs on the careful side. **How it fails.** A drift that is no more than chance adds up to
//! over the plateau is not seen.

use super::{Trend, two_sided};
use crate::judge::robust::{mean, median};

/// The normal value of the interval that holds in 99 of 100.
const HOLDS: f64 = 2.576;
/// How far the later half's mean may be from the whole's by chance.
const LATER: f64 = 1.645;

/// The drift of a series in steps over so many blocks.
pub fn of(values: &[f64], blocks: usize) -> Trend {
    let bins = values.len();
    let edge = |at: usize| at * bins / blocks;
    let begins = (0..blocks).filter_map(|at| values[edge(at)..edge(at + 1)].iter().copied().find(|value| value.is_finite()));
    let points: Vec<f64> = begins.chain(values.iter().rev().copied().find(|value| value.is_finite())).collect();
    let steps: Vec<f64> = points.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let count = steps.len() as f64;
    let step = mean(steps.iter().copied());
    let spread = (steps.iter().map(|one| (one - step).powi(2)).sum::<f64>() / (count - 1.0)).sqrt();
    let error = spread / count.sqrt();
    let later = mean(steps[steps.len() / 2..].iter().copied());
    let reach = LATER * spread / (count / 2.0).sqrt();
    let block = bins as f64 / blocks as f64;
    let per_bin = |step: f64| step / block;
    let held = student(HOLDS, count - 1.0) * error;
    Trend {
        slope: per_bin(step),
        between: (per_bin(step - held), per_bin(step + held)),
        level: median(points.iter().copied()),
        last: points.last().copied().unwrap_or(f64::NAN),
        p: if step == 0.0 { 1.0 } else { two_sided(normal(step.abs() / error, count - 1.0)) },
        blocks,
        block,
        minima: false,
        goes_on: if step >= 0.0 { later + reach >= 0.5 * step } else { later - reach <= 0.5 * step },
    }
}

/// The normal value that is as far out as Student's with so many degrees of freedom.
fn normal(t: f64, freedom: f64) -> f64 {
    (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0) * (freedom * (t * t / freedom).ln_1p()).sqrt()
}

/// The other way.
fn student(z: f64, freedom: f64) -> f64 {
    let z = z * (8.0 * freedom + 3.0) / (8.0 * freedom + 1.0);
    (freedom * (z * z / freedom).exp_m1()).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_value_is_the_one_of_the_tables() {
        // 99 %, both sides.
        for (freedom, table) in [(7.0, 3.499), (9.0, 3.250), (19.0, 2.861)] {
            assert!((student(HOLDS, freedom) / table - 1.0).abs() < 0.01, "{freedom}: {}", student(HOLDS, freedom));
            assert!((normal(table, freedom) - HOLDS).abs() < 0.02, "{freedom}: {}", normal(table, freedom));
        }
    }
}
