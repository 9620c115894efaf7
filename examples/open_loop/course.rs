//! When requests are due in an open loop: stretches of time with a rate that stays, climbs or falls.
//!
//! Everything is worked out from the integral of the rate, so that the n-th request is due at the time where the plan
//! reaches n, however late the ones before it were.

use std::time::Duration;

/// A stretch of a course: the rate goes in a straight line from one value to the other, in requests per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leg {
    /// The rate where it begins.
    pub from: f64,
    /// The rate where it ends.
    pub to: f64,
    /// How long it lasts.
    pub lasts: Duration,
}

impl Leg {
    /// A rate that stays for so many seconds.
    pub const fn flat(rate: f64, seconds: u64) -> Self {
        Self { from: rate, to: rate, lasts: Duration::from_secs(seconds) }
    }

    /// A rate that climbs or falls for so many seconds.
    pub const fn slope(from: f64, to: f64, seconds: u64) -> Self {
        Self { from, to, lasts: Duration::from_secs(seconds) }
    }

    fn requests(&self) -> f64 {
        f64::midpoint(self.from, self.to) * self.lasts.as_secs_f64()
    }

    /// Seconds into the leg at which it has sent `n` requests.
    fn reaches(&self, n: f64) -> f64 {
        // from·t + slope·t²/2 = n, in the form that also holds for a slope of 0.
        let slope = (self.to - self.from) / self.lasts.as_secs_f64();
        let root = (self.from * self.from + 2.0 * slope * n).max(0.0).sqrt();
        if n > 0.0 { 2.0 * n / (self.from + root) } else { 0.0 }
    }
}

/// The whole of a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Course(pub Vec<Leg>);

impl Course {
    /// From the first request to the end of the last leg.
    pub fn length(&self) -> Duration {
        self.0.iter().map(|leg| leg.lasts).sum()
    }

    /// The time at which the plan reaches `n` requests; `None` past its end.
    fn reaches(&self, mut n: f64) -> Option<Duration> {
        let mut begins = Duration::ZERO;
        for leg in &self.0 {
            if n < leg.requests() {
                return Some(begins + Duration::try_from_secs_f64(leg.reaches(n)).ok()?.min(leg.lasts));
            }
            n -= leg.requests();
            begins += leg.lasts;
        }
        None
    }

    /// Evenly spaced: the n-th request exactly where the plan reaches n.
    pub fn even(self) -> impl Iterator<Item = Duration> + Send {
        (0_u32..).map_while(move |n| self.reaches(f64::from(n)))
    }

    /// As independent visitors come: the same rates, with chance in between (a Poisson process). One seed, one plan.
    pub fn random(self, seed: u64) -> impl Iterator<Item = Duration> + Send {
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

    fn ramp() -> Course {
        Course(vec![Leg::flat(5.0, 8), Leg::slope(5.0, 89.0, 28)])
    }

    fn count(plan: &[Duration], from: f64, to: f64) -> usize {
        plan.iter().filter(|at| (from..to).contains(&at.as_secs_f64())).count()
    }

    #[test]
    fn an_even_plan_has_the_rate_of_the_ramp_at_every_second_and_ends_with_it() {
        let plan: Vec<_> = ramp().even().collect();
        assert_eq!(count(&plan, 0.0, 8.0), 40);
        // The integral of the climb: 28 s at a mean of 47/s.
        assert_eq!(count(&plan, 8.0, 36.0), 1316);
        // 15 s into the climb the rate is 50/s.
        assert_eq!(count(&plan, 22.0, 24.0), 100);
        let gap = |n: usize| plan[n + 1].as_secs_f64() - plan[n].as_secs_f64();
        assert!((gap(3) - 0.2).abs() < 1e-6, "gap at rest {}", gap(3));
        assert!((1.0 / gap(plan.len() - 2) - 89.0).abs() < 0.1, "last gap {}", gap(plan.len() - 2));
        assert!(plan.is_sorted() && plan.last().is_some_and(|last| *last < ramp().length()));
    }

    #[test]
    fn a_course_that_does_not_climb_stays_even() {
        let flat = Course(vec![Leg::flat(5.0, 8), Leg::slope(5.0, 5.0, 28)]);
        let plan: Vec<_> = flat.even().collect();
        assert_eq!(plan.len(), 180);
        assert!(plan.windows(2).all(|two| (two[1].as_secs_f64() - two[0].as_secs_f64() - 0.2).abs() < 1e-6));
    }

    #[test]
    fn a_random_plan_keeps_the_rates_varies_like_chance_and_repeats_with_its_seed() {
        let plans: Vec<Vec<_>> = (0..200).map(|seed| ramp().random(seed).collect()).collect();
        let totals: Vec<f64> = plans.iter().map(|plan: &Vec<Duration>| plan.len() as f64).collect();
        let mean = totals.iter().sum::<f64>() / 200.0;
        let variance = totals.iter().map(|total| (total - mean).powi(2)).sum::<f64>() / 199.0;
        assert!((mean - 1356.0).abs() < 10.0, "mean {mean}");
        assert!((0.7..1.4).contains(&(variance / 1356.0)), "variance {variance}");
        assert_eq!(plans[7], ramp().random(7).collect::<Vec<_>>());
        assert_ne!(plans[7], plans[8]);
    }

    #[test]
    fn a_spike_begins_and_ends_at_its_moment_and_a_fall_sends_its_share() {
        let course = Course(vec![Leg::flat(10.0, 5), Leg::flat(100.0, 2), Leg::slope(10.0, 0.0, 4)]);
        let plan: Vec<_> = course.even().collect();
        assert_eq!((count(&plan, 0.0, 5.0), count(&plan, 5.0, 7.0), count(&plan, 7.0, 11.0)), (50, 200, 20));
        assert!(plan.is_sorted());
    }
}
