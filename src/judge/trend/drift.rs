//! Growth of a series that only sums up chance.
//!
//! **Question.** Does a series that wanders without a rest also drift? What is kept of every request of visitors who come at
//! random is such a series: what a line leaves over of it is a walk, and no blocks of it are independent. **Method.** Its
//! steps from the begin of one block to the next are: Student's t of their mean (Student 1908), as a normal value by
//! Wallace's approximation (Wallace 1959). The steps of what wanders and comes back add up to less than chance would make of
//! them, so that there the test errs on the careful side. **How it fails.** A drift that is no more than chance adds up to
//! over the plateau is not seen.

use super::{FEWEST_BLOCKS, Trend, Untold, two_sided};
use crate::judge::robust::{mean, median};

/// The normal value of the interval that holds in 99 of 100.
const HOLDS: f64 = 2.576;
/// By so many of its errors the later half's mean may be under half of the earlier's by chance.
const LATER: f64 = 1.645;

/// The drift of a series in steps over so many blocks; with the number of steps where those that were read are too few.
pub fn of(values: &[f64], blocks: usize) -> Result<Trend, Untold> {
    let bins = values.len();
    let read = |bin: &usize| values[*bin].is_finite();
    let begins = (0..blocks).filter_map(|at| (at * bins / blocks..(at + 1) * bins / blocks).find(read));
    let points: Vec<usize> = begins.chain((0..bins).rev().find(read)).collect();
    let steps: Vec<f64> = points.windows(2).map(|pair| values[pair[1]] - values[pair[0]]).collect();
    if steps.len() < FEWEST_BLOCKS {
        return Err(Untold::TooShort(steps.len()));
    }
    let count = steps.len() as f64;
    let (step, error) = mean_and_error(&steps);
    let (earlier, later) = steps.split_at(steps.len() / 2);
    let (earlier, (later, reach)) = (mean_and_error(earlier).0, mean_and_error(later));
    let (first, last) = (points[0], points[points.len() - 1]);
    let block = (last - first) as f64 / count;
    let held = student(HOLDS, count - 1.0) * error;
    Ok(Trend {
        slope: step / block,
        between: ((step - held) / block, (step + held) / block),
        level: median(points.iter().map(|bin| values[*bin])),
        last: values[last],
        p: if step == 0.0 { 1.0 } else { two_sided(normal(step.abs() / error, count - 1.0)) },
        blocks: steps.len(),
        block,
        minima: false,
        goes_on: step.signum() * (later - 0.5 * earlier) + LATER * reach >= 0.0,
    })
}

fn mean_and_error(steps: &[f64]) -> (f64, f64) {
    let (count, centre) = (steps.len() as f64, mean(steps.iter().copied()));
    let squares: f64 = steps.iter().map(|step| (step - centre).powi(2)).sum();
    (centre, (squares / (count - 1.0) / count).sqrt())
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
    fn a_walk_read_in_one_corner_only_is_not_told() {
        let mut values = vec![f64::NAN; 600];
        (0..60).for_each(|n| values[n] = n as f64);
        assert_eq!(of(&values, 20), Err(Untold::TooShort(2)));
    }

    #[test]
    fn what_fills_up_and_stops_does_not_go_on() {
        for lasts in [100.0, 200.0, 300.0] {
            let fills = |n: usize| 1000.0 * (1.0 - (-(n as f64) / lasts).exp());
            assert!(!of(&(0..600).map(fills).collect::<Vec<_>>(), 20).unwrap().goes_on, "{lasts}");
        }
    }

    #[test]
    fn students_value_is_the_one_of_the_tables() {
        // 99 %, both sides.
        for (freedom, table) in [(7.0, 3.499), (9.0, 3.250), (19.0, 2.861)] {
            assert!((student(HOLDS, freedom) / table - 1.0).abs() < 0.01, "{freedom}: {}", student(HOLDS, freedom));
            assert!((normal(table, freedom) - HOLDS).abs() < 0.02, "{freedom}: {}", normal(table, freedom));
        }
    }
}
