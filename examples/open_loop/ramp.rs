//! When requests are due in an open loop: a flat start at a low rate (the rest), then a straight climb.
//!
//! Everything is worked out from the integral of the rate, so that the n-th request is due at the time where the plan
//! reaches n, however late the ones before it were.

use std::time::Duration;

/// A flat start and a straight climb, in requests per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    /// The rate of the flat start, and where the climb begins. More than 0.
    pub from: f64,
    /// How long the flat start lasts.
    pub rest: Duration,
    /// Where the climb ends. At least `from`.
    pub to: f64,
    /// How long the climb lasts.
    pub climb: Duration,
}

impl Ramp {
    /// From the first request to the end of the climb.
    pub fn length(&self) -> Duration {
        self.rest + self.climb
    }

    /// The time at which the plan reaches `n` requests; `None` past its end.
    fn reaches(&self, n: f64) -> Option<Duration> {
        let at_rest = self.from * self.rest.as_secs_f64();
        let seconds = if n <= at_rest {
            n / self.from
        } else {
            // from·t + slope·t²/2 = n, in the form that also holds for a slope of 0.
            let slope = (self.to - self.from) / self.climb.as_secs_f64();
            let left = n - at_rest;
            self.rest.as_secs_f64() + 2.0 * left / (self.from + (self.from * self.from + 2.0 * slope * left).sqrt())
        };
        Duration::try_from_secs_f64(seconds).ok().filter(|at| *at < self.length())
    }

    /// Evenly spaced: the n-th request exactly where the plan reaches n.
    pub fn even(self) -> impl Iterator<Item = Duration> {
        (0_u32..).map_while(move |n| self.reaches(f64::from(n)))
    }

    /// As independent visitors come: the same rates, with chance in between (a Poisson process). One seed, one plan.
    pub fn random(self, seed: u64) -> impl Iterator<Item = Duration> {
        let (mut state, mut n) = (seed, 0.0);
        std::iter::from_fn(move || {
            // The time between two visitors is exponential; in units of the plan its mean is 1.
            n -= uniform(&mut state).ln();
            self.reaches(n)
        })
    }
}

/// A number above 0 and up to 1 (`SplitMix64`).
pub fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (((z ^ (z >> 31)) >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAMP: Ramp = Ramp { from: 5.0, rest: Duration::from_secs(8), to: 89.0, climb: Duration::from_secs(28) };

    fn count(plan: &[Duration], from: f64, to: f64) -> usize {
        plan.iter().filter(|at| (from..to).contains(&at.as_secs_f64())).count()
    }

    #[test]
    fn an_even_plan_has_the_rate_of_the_ramp_at_every_second_and_ends_with_it() {
        let plan: Vec<_> = RAMP.even().collect();
        assert_eq!(count(&plan, 0.0, 8.0), 40);
        // The integral of the climb: 28 s at a mean of 47/s.
        assert_eq!(count(&plan, 8.0, 36.0), 1316);
        // 15 s into the climb the rate is 50/s.
        assert_eq!(count(&plan, 22.0, 24.0), 100);
        let gap = |n: usize| plan[n + 1].as_secs_f64() - plan[n].as_secs_f64();
        assert!((gap(3) - 0.2).abs() < 1e-6, "gap at rest {}", gap(3));
        assert!((1.0 / gap(plan.len() - 2) - 89.0).abs() < 0.1, "last gap {}", gap(plan.len() - 2));
        assert!(plan.is_sorted() && plan.last().is_some_and(|last| *last < RAMP.length()));
    }

    #[test]
    fn a_ramp_that_does_not_climb_stays_even() {
        let flat = Ramp { to: 5.0, ..RAMP };
        let plan: Vec<_> = flat.even().collect();
        assert_eq!(plan.len(), 180);
        assert!(plan.windows(2).all(|two| (two[1].as_secs_f64() - two[0].as_secs_f64() - 0.2).abs() < 1e-6));
    }

    #[test]
    fn a_random_plan_keeps_the_rates_varies_like_chance_and_repeats_with_its_seed() {
        let plans: Vec<Vec<_>> = (0..200).map(|seed| RAMP.random(seed).collect()).collect();
        let totals: Vec<f64> = plans.iter().map(|plan: &Vec<Duration>| plan.len() as f64).collect();
        let mean = totals.iter().sum::<f64>() / 200.0;
        let variance = totals.iter().map(|total| (total - mean).powi(2)).sum::<f64>() / 199.0;
        assert!((mean - 1356.0).abs() < 10.0, "mean {mean}");
        assert!((0.7..1.4).contains(&(variance / 1356.0)), "variance {variance}");
        assert_eq!(plans[7], RAMP.random(7).collect::<Vec<_>>());
        assert_ne!(plans[7], plans[8]);
    }
}
