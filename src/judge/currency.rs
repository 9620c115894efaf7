//! One currency for every class: waiting per request.
//!
//! **Question.** How much does this reading say that a request waits here? **Method.** Little's law (Little 1961): a queue's
//! length is the arrival rate times the wait, so a queue divided by the completed rate is waiting per request, whatever the
//! resource; mean waits count their visits, summed waits are divided as they are. Work grows on a line in the rate even past
//! the knee, waits do not. Events, ages and ratios keep their own units, because no division makes them waits.
//! **How it fails.** Where nothing completes, the quotient has no bound: below a twentieth of the highest rate the divisor
//! stays there. A mean wait without its visits is taken as one visit per request.

use super::robust::{quantile, smooth};
use collectors::api::Class;

/// In which unit a signal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Milliseconds waited per request.
    MsPerRequest,
    /// Events per second.
    PerSecond,
    /// Points of a ratio lost.
    Points,
    /// Seconds.
    Seconds,
    /// Share of a capacity in use.
    Share,
}

/// A gauge's readings as they are judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    /// The unit.
    pub measure: Measure,
    /// One value per bin; NaN where it cannot be told.
    pub values: Vec<f64>,
    /// The standard deviation that counting alone explains, for a value of `at` in bin `n`: `sqrt(at · grain[n])`.
    pub grain: Vec<f64>,
}

/// What is known of a gauge.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    /// Its class.
    pub class: Class,
    /// States, or rates per second.
    pub values: &'a [f64],
    /// How many milliseconds one of its unit is, where it is a time.
    pub unit_ms: Option<f64>,
    /// Servers (occupancy) or capacity (utilisation), per bin.
    pub capacity: Option<Vec<f64>>,
    /// Visits per second (wait).
    pub visits: Option<Vec<f64>>,
    /// What it is where nothing is asked of it: the median before the load.
    pub zero: f64,
}

/// The completed rate as a divisor.
#[derive(Clone, Debug)]
pub struct Rate {
    /// Requests completed per second and bin, never under a twentieth of the highest; NaN where no load ran.
    pub per_s: Vec<f64>,
    /// Seconds in a bin.
    pub step_s: f64,
    /// Readings of a state in a bin.
    pub readings: f64,
}

impl Rate {
    /// From completions per second, with which bins had load.
    pub fn new(completed: &[f64], loaded: &[bool], step_s: f64, readings: f64) -> Self {
        let top = quantile(completed.iter().copied(), 0.98);
        let per_s = completed
            .iter()
            .zip(loaded)
            .map(|(x, loaded)| if *loaded && x.is_finite() { x.max(top / 20.0) } else { f64::NAN })
            .map(|x| if x > 0.0 { x } else { f64::NAN })
            .collect();
        Self { per_s, step_s, readings: readings.max(1.0) }
    }
}

/// The signal of a gauge; `None` for classes that are evidence only, or where a denominator is unknown.
pub fn signal(source: &Source, rate: &Rate) -> Option<Signal> {
    let x = &rate.per_s;
    let n = source.values.len();
    let at = |f: &dyn Fn(usize) -> f64| (0..n).map(f).collect::<Vec<f64>>();
    let values = source.values;
    let ms = |values: Vec<f64>, grain: Vec<f64>| Some(Signal { measure: Measure::MsPerRequest, values, grain });
    match source.class {
        Class::Queue => ms(
            at(&|i| 1000.0 * (values[i] - source.zero).max(0.0) / x[i]),
            // The variance of a count is the count: of 1000·v/X it is the value times 1000/X.
            at(&|i| 1000.0 / x[i] / rate.readings),
        ),
        Class::Occupancy => {
            let servers = source.capacity.as_ref()?;
            let waiting = |i: usize| (values[i] - servers[i].max(source.zero)).max(0.0);
            ms(at(&|i| 1000.0 * waiting(i) / x[i]), at(&|i| 1000.0 / x[i] / rate.readings))
        }
        Class::Wait => {
            let unit = source.unit_ms?;
            let visits = |i: usize| source.visits.as_ref().map_or(1.0, |visits| visits[i] / x[i]);
            ms(at(&|i| values[i] * unit * visits(i)), vec![0.0; n])
        }
        Class::WaitSum => {
            let unit = source.unit_ms?;
            ms(at(&|i| values[i] * unit / x[i]), vec![0.0; n])
        }
        Class::Age => {
            let unit = source.unit_ms?;
            Some(Signal { measure: Measure::Seconds, values: at(&|i| values[i] * unit / 1e3), grain: vec![0.0; n] })
        }
        Class::Event => Some(Signal {
            measure: Measure::PerSecond,
            values: at(&|i| if x[i].is_nan() { f64::NAN } else { values[i] }),
            grain: vec![1.0 / rate.step_s; n],
        }),
        Class::Ratio => {
            // The drawdown from its own best so far: a cold cache fills first, and its filling is no loss.
            let width = ((20.0 / rate.step_s) as usize).clamp(3, (n / 10).max(3));
            let loaded = at(&|i| if x[i].is_nan() { f64::NAN } else { values[i] });
            let smoothed = smooth(&loaded, width);
            let mut best = f64::NAN;
            let lost = (0..n)
                .map(|i| {
                    best = if best.is_nan() { smoothed[i] } else { best.max(smoothed[i]) };
                    best - loaded[i]
                })
                .collect();
            Some(Signal { measure: Measure::Points, values: lost, grain: vec![0.0; n] })
        }
        Class::Utilisation => {
            let capacity = source.capacity.as_ref()?;
            Some(Signal { measure: Measure::Share, values: at(&|i| values[i] / capacity[i]), grain: vec![0.0; n] })
        }
        Class::Pressure | Class::Throughput | Class::Level | Class::Constant => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(class: Class, values: &[f64]) -> Source<'_> {
        Source { class, values, unit_ms: Some(1.0), capacity: None, visits: None, zero: 0.0 }
    }

    fn rate(per_s: &[f64]) -> Rate {
        Rate { per_s: per_s.to_vec(), step_s: 1.0, readings: 1.0 }
    }

    #[test]
    fn ten_in_a_queue_at_a_hundred_a_second_wait_a_tenth_of_a_second_each() {
        let signal = signal(&source(Class::Queue, &[10.0, 0.0]), &rate(&[100.0, 100.0])).unwrap();
        assert_eq!(signal.values, [100.0, 0.0]);
        assert_eq!(signal.measure, Measure::MsPerRequest);
    }

    #[test]
    fn occupancy_counts_only_those_beyond_the_servers_and_needs_to_know_them() {
        let mut of_four = source(Class::Occupancy, &[3.0, 9.0]);
        assert_eq!(signal(&of_four, &rate(&[50.0, 50.0])), None);
        of_four.capacity = Some(vec![4.0, 4.0]);
        assert_eq!(signal(&of_four, &rate(&[50.0, 50.0])).unwrap().values, [0.0, 100.0]);
    }

    #[test]
    fn a_mean_wait_counts_once_for_every_visit() {
        let mut wait = source(Class::Wait, &[2.0]);
        wait.visits = Some(vec![300.0]);
        assert_eq!(signal(&wait, &rate(&[100.0])).unwrap().values, [6.0]);
    }

    #[test]
    fn a_stall_divides_by_a_twentieth_of_the_highest_rate_and_no_load_by_nothing() {
        let rate = Rate::new(&[0.0, 100.0, 0.0], &[false, true, true], 1.0, 1.0);
        assert!(rate.per_s[0].is_nan());
        assert!((rate.per_s[2] - 5.0).abs() < 0.3);
    }

    #[test]
    fn a_hit_ratio_is_its_fall_from_its_own_best_so_far() {
        let values: Vec<f64> = (0..60).map(|n| if n < 30 { 0.5 + 0.01 * f64::from(n) } else { 0.6 }).collect();
        let signal = signal(&source(Class::Ratio, &values), &rate(&[10.0; 60])).unwrap();
        assert!(signal.values[10] < 0.05);
        assert!(signal.values[45] > 0.15);
    }

    #[test]
    fn work_is_no_wait() {
        for class in [Class::Throughput, Class::Pressure, Class::Level, Class::Constant] {
            assert_eq!(signal(&source(class, &[1.0]), &rate(&[1.0])), None);
        }
    }
}
