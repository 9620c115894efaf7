//! Where the throughput of a closed loop stops following the number of visitors.
//!
//! **Question.** How many visitors can the system serve without their waiting for each other? **Method.** The two bounds of
//! operational analysis (Denning & Buzen 1978): while nobody waits, throughput is the number of visitors over the time one
//! takes; in the end it is the capacity. They cross at the knee. The first bound is drawn through the rungs at rest, the
//! second through the highest goodput. There is one only if, beyond it, goodput is under 95 % of the first bound and the
//! latency over 1.5 times its value at rest. The interval reaches from the last rung that followed to the first that did
//! not. **How it fails.** Where the lowest rung already waits, the first bound is too low and the knee too high.

use super::rungs::Rung;
use super::told::Knee;
use crate::correlate::verdict::Between;
use crate::judge::robust::median;

/// Under this share of the first bound a rung does not follow.
const FOLLOWS: f64 = 0.95;
/// So many times the latency at rest is waiting.
const SLOWER: f64 = 1.5;

/// The knee of usable rungs in their order, the first `rest` of which are at rest.
pub fn find(rungs: &[&Rung], rest: usize) -> Option<Knee> {
    if rungs.len() < 3 {
        return None;
    }
    let slope = median(rungs[..rest].iter().map(|rung| rung.figures.ok / rung.at));
    let resting = median(rungs[..rest].iter().map(|rung| latency(rung)));
    let highest = rungs.iter().map(|rung| rung.figures.ok).fold(0.0, f64::max);
    let last = rungs.last()?;
    let behind = |rung: &Rung| rung.figures.ok < FOLLOWS * slope * rung.at;
    let first = rungs.iter().position(|rung| behind(rung)).filter(|first| *first > 0)?;
    let held = rungs[first..].iter().all(|rung| behind(rung));
    // Goodput that is half-way between both bounds still follows.
    let short = last.figures.ok < 0.75 * slope * last.at;
    let slower = latency(last) > SLOWER * resting || !resting.is_finite();
    if !(held && short && slower && slope > 0.0) {
        return None;
    }
    let at = highest / slope;
    let (low, high) = (rungs[first - 1].at.min(at), rungs[first].at.max(at));
    Some(Knee {
        at: Between { value: at, low, high },
        rate_per_s: highest,
        last_per_s: last.figures.ok,
        basis: rungs[0].figures.basis,
    })
}

/// What is told of every rung: the median where there is no better.
fn latency(rung: &Rung) -> f64 {
    let figures = rung.figures;
    [figures.p95, figures.p99, figures.p50].into_iter().find(|value| value.is_finite()).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::super::rungs::Figures;
    use super::*;

    fn rungs(points: &[(f64, f64, f64)]) -> Vec<Rung> {
        let figures = |ok, p95| Figures { rate: ok, ok, p95, ..Figures::default() };
        points.iter().map(|(at, ok, p95)| Rung { at: *at, figures: figures(*ok, *p95), ..Rung::default() }).collect()
    }

    #[test]
    fn the_knee_is_where_both_bounds_cross_between_the_rungs_that_follow_and_those_that_do_not() {
        let rungs = rungs(&[(2.0, 97.0, 22.0), (8.0, 387.0, 27.0), (32.0, 390.0, 120.0)]);
        let knee = find(&rungs.iter().collect::<Vec<_>>(), 1).unwrap();
        assert!((knee.at.value - 8.04).abs() < 0.01, "{knee:?}");
        assert_eq!((knee.at.low, knee.at.high, knee.rate_per_s), (8.0, 32.0, 390.0));
    }

    #[test]
    fn throughput_that_follows_to_the_end_has_no_knee_nor_have_two_rungs() {
        let follows = rungs(&[(2.0, 97.0, 22.0), (8.0, 387.0, 23.0), (32.0, 1500.0, 26.0)]);
        assert_eq!(find(&follows.iter().collect::<Vec<_>>(), 1), None);
        let two = rungs(&[(2.0, 97.0, 22.0), (32.0, 390.0, 120.0)]);
        assert_eq!(find(&two.iter().collect::<Vec<_>>(), 1), None);
    }
}
