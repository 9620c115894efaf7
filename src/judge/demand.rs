//! How what is busy of a resource grows with what it serves, and at which rate it is full.
//!
//! **Question.** When is the capacity used up? **Method.** The utilisation law (Denning & Buzen 1978, "The Operational
//! Analysis of Queueing Network Models"): what is busy is the rate times the work per request, and nothing is busy without
//! any request. Real readings bend a little, for reasons that look alike and lead to different rates: a part that is busy
//! whatever the load; work per request that changes with the rate (a cache hits more often the more it is asked, a connection
//! is held longer as others wait); and such work that follows the rate late, as a cache fills. So the model is
//! U = a + c·X·mᵖ⁻¹, where m is the rate as it is remembered over some seconds: the rate itself once it is held. Every `a`, `p`
//! and memory of a grid is weighed by how well it explains the readings and by what is believed before: `a` near what was read
//! before the load, else near 0; `p` near 1; no memory more than another. What all say, so weighed, is the answer and its
//! deviation: where the readings cannot tell the reasons apart, it is wide. Readings are taken in blocks, as neighbours
//! in time depend on each other; the variance of a count or a busy time is in proportion to its expected value; foreign blocks
//! (a cron job) are bounded (Huber). **How it fails.** What changes with time alone is taken for the rate's. What bends only
//! beyond the readings cannot be seen in them.

use super::robust::{mean, median};

/// The fewest blocks.
const FEWEST: usize = 8;
/// Readings of a block that may depend on each other, where there are enough of them.
const TOGETHER: usize = 5;
/// No more blocks than this: in a long run what depends on each other is longer.
const MOST: usize = 200;
/// The powers that are weighed.
const POWERS: usize = 41;
const LOWEST_POWER: f64 = 0.5;
const HIGHEST_POWER: f64 = 1.5;
/// The deviation of the power that is believed before: 5 % more or less work per request where the load doubles.
const POWER_WITHIN: f64 = 0.07;
/// How many parts of what is busy at low load are weighed as being there without it.
const IDLES: usize = 11;
/// How far the idle part is from what is believed before, as a share of the capacity; a heavy tail allows for more.
const IDLE_WITHIN: f64 = 0.01;
/// Seconds over which a rate may be remembered.
const MEMORIES_S: [f64; 4] = [0.0, 10.0, 30.0, 100.0];
/// Blocks further than so many deviations from the model are bounded.
const FOREIGN: f64 = 2.0;
/// Rounds of weighing and bounding.
const ROUNDS: usize = 4;
/// The logarithm of how many times the middle rate nothing reaches.
const FAR: f64 = 15.0;

/// The served rate per bin, and as it is remembered.
#[derive(Clone, Debug)]
pub struct Served {
    rate: Vec<f64>,
    remembered: [Vec<f64>; MEMORIES_S.len()],
}

impl Served {
    /// From the rate per bin, NaN where no load ran: before it there is nothing to remember.
    pub fn new(rate: &[f64], step_s: f64) -> Self {
        let over = |memory_s: f64| {
            let gain = if memory_s > 0.0 { 1.0 - (-step_s / memory_s).exp() } else { 1.0 };
            let mut held = 0.0;
            let remember = |rate: &f64| {
                held += gain * (if rate.is_finite() { *rate } else { 0.0 } - held);
                held
            };
            rate.iter().map(remember).collect()
        };
        Self { rate: rate.to_vec(), remembered: MEMORIES_S.map(over) }
    }
}

/// A value and its standard deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct About {
    /// The value.
    pub mean: f64,
    /// Its standard deviation.
    pub deviation: f64,
}

/// What is known of the growth.
#[derive(Clone, Debug)]
pub struct Demand {
    capacity: f64,
    /// The rate in the middle of the readings: all rates are told over it.
    middle: f64,
    members: Vec<Member>,
}

/// One point of the grid.
#[derive(Clone, Copy, Debug)]
struct Member {
    weight: f64,
    idle: f64,
    power: f64,
    /// What is busy for the load at the middle rate.
    busy: f64,
    /// The variance of that.
    variance: f64,
}

impl Demand {
    /// From a gauge's readings in some bins, in the order of time; `idle` is what was read before the load. `None` where there
    /// are too few.
    pub fn of(served: &Served, values: &[f64], bins: &[usize], capacity: f64, idle: Option<f64>) -> Option<Self> {
        let bins: Vec<usize> = bins.iter().copied().filter(|bin| served.rate[*bin] > 0.0 && values[*bin].is_finite()).collect();
        let size = (bins.len() / MOST).max((bins.len() / (2 * FEWEST)).clamp(1, TOGETHER));
        let blocks =
            |of: &[f64]| -> Vec<f64> { bins.chunks_exact(size).map(|block| mean(block.iter().map(|bin| of[*bin]))).collect() };
        let (rate, value) = (blocks(&served.rate), blocks(values));
        if rate.len() < FEWEST || capacity <= 0.0 {
            return None;
        }
        let middle = mean(rate.iter().map(|rate| rate.ln())).exp();
        let over = |rates: Vec<f64>| -> Vec<f64> { rates.iter().map(|rate| (rate / middle).max(1e-6)).collect() };
        let remembered = served.remembered.each_ref().map(|rates| over(blocks(rates)));
        let fit = Fit { rate: over(rate), value, remembered, capacity, idle: idle.unwrap_or(0.0) };
        Some(Self { capacity, middle, members: fit.members() })
    }

    /// The rate at which so many deviations over what is expected use the capacity up; infinite where none does.
    pub fn full(&self, deviations: f64) -> f64 {
        let used_up = |ln_rate: f64| {
            let about = self.at(self.middle * ln_rate.exp());
            about.mean + deviations * about.deviation >= self.capacity
        };
        let (mut below, mut above) = (-FAR, FAR);
        if !used_up(above) {
            return f64::INFINITY;
        }
        while above - below > 1e-6 {
            let between = f64::midpoint(below, above);
            *(if used_up(between) { &mut above } else { &mut below }) = between;
        }
        self.middle * above.exp()
    }

    /// What is busy at a rate that is held.
    pub fn at(&self, rate: f64) -> About {
        self.over(|member| {
            let grows = (rate / self.middle).powf(member.power);
            (member.idle + member.busy * grows, member.variance * grows * grows)
        })
    }

    /// The power of the rate with which it grows.
    pub fn power(&self) -> f64 {
        self.over(|member| (member.power, 0.0)).mean
    }

    /// The members' values, weighed; each with its own variance.
    fn over(&self, of: impl Fn(&Member) -> (f64, f64)) -> About {
        let (mut mean, mut square) = (0.0, 0.0);
        for member in &self.members {
            let (value, own) = of(member);
            mean += member.weight * value;
            square += member.weight * (own + value * value);
        }
        About { mean, deviation: (square - mean * mean).max(0.0).sqrt() }
    }
}

/// Blocks of readings, their rates over the middle one.
struct Fit {
    rate: Vec<f64>,
    value: Vec<f64>,
    remembered: [Vec<f64>; MEMORIES_S.len()],
    capacity: f64,
    idle: f64,
}

/// A power and a memory: by what the load's part grows in each block.
struct Shape {
    power: f64,
    grows: Vec<f64>,
}

impl Fit {
    /// The whole grid, weighed.
    fn members(&self) -> Vec<Member> {
        let (shapes, idles) = (self.shapes(), self.idles());
        let highest = self.value.iter().copied().fold(0.0, f64::max);
        // A variance is never nothing.
        let least = (0.01 * highest).max(1e-6 * self.capacity);
        let proportion = mean(self.value.iter().copied()) / mean(self.rate.iter().copied());
        let mut expected: Vec<f64> = self.rate.iter().map(|rate| proportion * rate).collect();
        let mut bound = vec![1.0; self.rate.len()];
        let mut spread = None;
        let mut members = Vec::new();
        for _ in 0..ROUNDS {
            let weights: Vec<f64> = bound.iter().zip(&expected).map(|(bound, expected)| bound / expected.max(least)).collect();
            let fits: Vec<(Member, f64)> = shapes.iter().flat_map(|shape| self.fits(shape, &idles, &weights)).collect();
            let free = |bound: &[f64]| (bound.iter().sum::<f64>() - 2.0).max(1.0);
            let first = || fits.iter().map(|fit| fit.1).fold(f64::INFINITY, f64::min) / free(&bound);
            members = self.weighed(&fits, f64::max(spread.unwrap_or_else(first), 1e-9 * self.capacity));
            let Some(n) = (0..members.len()).max_by(|a, b| members[*a].weight.total_cmp(&members[*b].weight)) else { break };
            let (best, shape) = (members[n], &shapes[n / idles.len()]);
            expected = shape.grows.iter().map(|grows| best.idle + best.busy * grows).collect();
            let off = |(value, expected): (&f64, &f64)| (value - expected) / expected.max(least).sqrt();
            let off: Vec<f64> = self.value.iter().zip(&expected).map(off).collect();
            let scale = 1.4826 * median(off.iter().map(|off| off.abs()));
            bound = off.iter().map(|off| (FOREIGN * scale / off.abs().max(1e-12)).clamp(1e-6, 1.0)).collect();
            spread = Some(off.iter().zip(&bound).map(|(off, bound)| bound * off * off).sum::<f64>() / free(&bound));
        }
        members
    }

    fn shapes(&self) -> Vec<Shape> {
        let powers = (0..POWERS).map(|n| LOWEST_POWER + (HIGHEST_POWER - LOWEST_POWER) * n as f64 / (POWERS - 1) as f64);
        let shape = |power: f64, remembered: &[f64]| Shape {
            power,
            grows: self.rate.iter().zip(remembered).map(|(rate, remembered)| rate * remembered.powf(power - 1.0)).collect(),
        };
        powers.flat_map(|power| self.remembered.iter().map(move |remembered| shape(power, remembered))).collect()
    }

    /// From nothing to all that is busy at the lowest load.
    fn idles(&self) -> Vec<f64> {
        let mut blocks: Vec<(f64, f64)> = self.rate.iter().copied().zip(self.value.iter().copied()).collect();
        blocks.sort_by(|a, b| a.0.total_cmp(&b.0));
        let lowest = mean(blocks[..(blocks.len() / 5).max(3)].iter().map(|block| block.1)).max(0.0);
        (0..IDLES).map(|n| lowest * n as f64 / (IDLES - 1) as f64).collect()
    }

    /// Of a shape, with each idle part: what is busy for the load by least squares, and what that leaves.
    fn fits(&self, shape: &Shape, idles: &[f64], weights: &[f64]) -> Vec<(Member, f64)> {
        let sum = |of: &dyn Fn(usize) -> f64| weights.iter().enumerate().map(|(n, weight)| weight * of(n)).sum::<f64>();
        let (grows, value) = (&shape.grows, &self.value);
        let across = sum(&|n| grows[n] * grows[n]);
        let (along, at_all) = (sum(&|n| grows[n] * value[n]), sum(&|n| grows[n]));
        let fit = |idle: &f64| {
            let busy = ((along - idle * at_all) / across).max(1e-9 * self.capacity);
            let left = sum(&|n| (value[n] - idle - busy * grows[n]).powi(2));
            (Member { weight: 0.0, idle: *idle, power: shape.power, busy, variance: 1.0 / across }, left)
        };
        idles.iter().map(fit).collect()
    }

    /// With their weights, for a variance of `spread` times what is expected.
    fn weighed(&self, fits: &[(Member, f64)], spread: f64) -> Vec<Member> {
        let score = |(member, left): &(Member, f64)| {
            let bend = (member.power - 1.0) / POWER_WITHIN;
            let off = (member.idle - self.idle) / (IDLE_WITHIN * self.capacity);
            -left / (2.0 * spread) - bend * bend / 2.0 - (off * off).ln_1p()
        };
        let scores: Vec<f64> = fits.iter().map(score).collect();
        let best = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = scores.iter().map(|score| (score - best).exp()).sum();
        let weighed = |((member, _), score): (&(Member, f64), &f64)| Member {
            weight: (score - best).exp() / total,
            variance: spread * member.variance,
            ..*member
        };
        fits.iter().zip(&scores).map(weighed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings while the load climbs from 10 to 100 a second, as a Poisson process would be counted; and who is full at 200.
    fn read(mean: impl Fn(f64) -> f64) -> (Served, Vec<f64>) {
        let mut state = 7_u64;
        let mut chance = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let rate: Vec<f64> = (0..240).map(|n| 10.0 + 90.0 * (f64::from(n - 40) / 200.0).max(0.0)).collect();
        let noise = |mean: f64, normal: f64| (mean + 0.15 * mean.sqrt() * normal).max(0.0);
        let values = rate.iter().map(|rate| noise(mean(*rate), (0..12).map(|_| chance()).sum::<f64>() - 6.0)).collect();
        (Served::new(&rate, 1.0), values)
    }

    fn demand(mean: impl Fn(f64) -> f64, idle: Option<f64>) -> Demand {
        let (served, values) = read(mean);
        Demand::of(&served, &values, &(15..240).collect::<Vec<usize>>(), 10.0, idle).unwrap()
    }

    fn is_full_at_200(demand: &Demand, within: f64) {
        let (low, full) = (demand.full(1.282), demand.full(0.0));
        assert!((full / 200.0 - 1.0).abs() < within, "{low} {full}");
        assert!(low < full && low > 0.8 * full, "{low} {full}");
    }

    #[test]
    fn what_grows_in_proportion_is_full_where_its_line_meets_the_capacity() {
        is_full_at_200(&demand(|rate| rate / 20.0, None), 0.05);
    }

    #[test]
    fn what_is_busy_without_any_load_is_told_from_growth() {
        is_full_at_200(&demand(|rate| 3.0 + 7.0 * rate / 200.0, None), 0.12);
        is_full_at_200(&demand(|rate| 3.0 + 7.0 * rate / 200.0, Some(3.0)), 0.05);
    }

    #[test]
    fn less_work_per_request_at_a_higher_rate_is_gone_on_with() {
        // By the line through these readings it would be full at 163 already.
        is_full_at_200(&demand(|rate| 10.0 * (rate / 200.0).powf(0.8), None), 0.1);
    }

    #[test]
    fn what_grows_with_the_square_of_the_load_has_a_power_far_from_one() {
        let squared = demand(|rate| 10.0 * (rate / 200.0).powi(2), None);
        assert!(squared.power() > 1.4, "{}", squared.power());
    }

    #[test]
    fn a_cron_job_moves_it_little() {
        let (served, mut values) = read(|rate| rate / 20.0);
        values[100..110].iter_mut().for_each(|value| *value += 3.0);
        let bins: Vec<usize> = (15..240).collect();
        is_full_at_200(&Demand::of(&served, &values, &bins, 10.0, None).unwrap(), 0.06);
    }

    #[test]
    fn what_does_not_grow_is_not_full_within_any_reach() {
        assert!(demand(|_| 3.0, None).full(1.282) > 10.0 * 100.0);
        let rate: Vec<f64> = (0..60).map(|n| 10.0 + f64::from(n)).collect();
        let bins: Vec<usize> = (0..60).collect();
        let constant = Demand::of(&Served::new(&rate, 1.0), &[9.0; 60], &bins, 10.0, None).unwrap();
        assert!(constant.full(1.282) > 1e4, "{}", constant.full(1.282));
    }

    #[test]
    fn too_few_readings_tell_nothing() {
        let (served, values) = read(|rate| rate / 20.0);
        assert!(Demand::of(&served, &values, &[1, 2, 3, 4, 5, 6, 7], 10.0, None).is_none());
    }
}
