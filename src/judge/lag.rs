//! By how much two clocks differ, from two counts of the same requests.
//!
//! **Question.** Two series count the same work, each stamped by its own clock. By how many seconds must the second be moved
//! so that it fits the first? **Method.** Both are freed of what is slow (each less its own running mean, in units of its
//! counting noise): what is left is the chance bunching that both saw. Its cross-covariance is a hump around the true lag,
//! as wide as the coarser of the two bins. The highest point finds the hump, the balance point of the hump finds its middle
//! to a fraction of a bin: no side of a bin is preferred, as the highest point alone would. The interval is a jackknife over
//! blocks of time (Quenouille 1956). **How it fails.** A load without chance (every second the same), or one series that
//! counts the work at its begin and one at its end with a wide spread between, leave no hump: then nothing is said. A load
//! that repeats itself exactly has several; the two highest must differ clearly.

use super::robust::{median, smooth, spread};

/// What is slower than so many seconds is taken away.
const SLOW_S: f64 = 15.0;
/// So many times its chance value the hump must be high.
const CLEAR: f64 = 5.0;
/// The second highest hump must be under this share of the highest.
const OTHER: f64 = 0.75;
/// Residuals are held within so many standard deviations.
const HELD: f64 = 4.0;
/// Residuals that are smaller, in units of their counting noise, are rounding.
const LEAST: f64 = 1e-6;
/// Blocks of the jackknife.
const BLOCKS: usize = 12;
/// Lags in one bin of the coarser series.
const FINE: usize = 8;

/// Amounts per second on even bins; NaN where nothing is known.
#[derive(Clone, Debug)]
pub struct Even {
    /// The begin of the first bin, seconds.
    pub from_s: f64,
    /// Seconds in a bin.
    pub step_s: f64,
    /// Amounts per second.
    pub rates: Vec<f64>,
}

/// An amount between two moments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amount {
    /// Its begin, seconds.
    pub from_s: f64,
    /// How long it is.
    pub dur_s: f64,
    /// Amount per second.
    pub rate: f64,
}

/// A lag with the interval that holds it in nineteen of twenty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lag {
    /// What is to be added to the second clock to get the first, seconds.
    pub seconds: f64,
    /// Half the width of its interval.
    pub within_s: f64,
    /// The correlation of what is left of both at that lag.
    pub fits: f64,
}

/// The lag of `told` behind `seen`, within `reach_s` of `around_s`; `None` where the two do not tell.
pub fn lag(seen: &Even, told: &[Amount], around_s: f64, reach_s: f64) -> Option<Lag> {
    let longest = told.iter().map(|amount| amount.dur_s).fold(0.0, f64::max);
    let usual = median(told.iter().map(|amount| amount.dur_s));
    let coarse = seen.step_s.max(usual);
    if !coarse.is_finite() || longest > 4.0 * coarse.max(1.0) {
        return None;
    }
    let left = fresh(seen, &seen.rates, coarse);
    let within = held(&left);
    let left = left.into_iter().map(|x| x.clamp(-within, within)).collect();
    // On its own intervals: once, and not at every lag.
    let even = Even { from_s: 0.0, step_s: usual, rates: told.iter().map(|amount| amount.rate).collect() };
    let within = held(&fresh(&even, &even.rates, coarse));
    let pair = Pair { seen: left, told: Moved { seen, told, coarse, held: within }, coarse };
    // A lag every half a bin finds the hump.
    let half = coarse / 2.0;
    let steps = (reach_s / half).ceil() as i64;
    let heights: Vec<(f64, f64)> = (-steps..=steps)
        .map(|n| around_s + n as f64 * half)
        .map(|lag| (lag, pair.covariance(lag).map_or(f64::NAN, |sums| total(&sums))))
        .filter(|(_, height)| height.is_finite())
        .collect();
    let highest = *heights.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let other = heights.iter().filter(|(lag, _)| (lag - highest.0).abs() > 3.0 * coarse).map(|(_, height)| *height);
    let other = other.fold(0.0, f64::max);
    let (fits, clear) = pair.fit(highest.0)?;
    if clear < CLEAR || other > OTHER * highest.1 {
        return None;
    }
    let fine = coarse / FINE as f64;
    let reach = 4 * FINE as i64;
    let hump: Vec<(f64, Vec<f64>)> =
        (-reach..=reach).map(|n| highest.0 + n as f64 * fine).filter_map(|lag| Some((lag, pair.covariance(lag)?))).collect();
    let seconds = balance(&hump, highest.0, coarse, None)?;
    let left: Vec<f64> = (0..BLOCKS).filter_map(|block| balance(&hump, highest.0, coarse, Some(block))).collect();
    if left.len() < BLOCKS / 2 {
        return None;
    }
    let n = left.len() as f64;
    let mean = left.iter().sum::<f64>() / n;
    let variance = (n - 1.0) / n * left.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
    Some(Lag { seconds, within_s: 2.0 * variance.sqrt(), fits })
}

/// The balance point of the hump: the window of two bins on either side of it has its moment there. Without one block, for
/// the jackknife.
fn balance(hump: &[(f64, Vec<f64>)], highest: f64, coarse: f64, without: Option<usize>) -> Option<f64> {
    let height =
        |sums: &[f64]| sums.iter().enumerate().filter(|(block, _)| Some(*block) != without).map(|(_, sum)| sum).sum::<f64>();
    let hump: Vec<(f64, f64)> = hump.iter().map(|(lag, sums)| (*lag, height(sums))).collect();
    let mut at = highest;
    for _ in 0..30 {
        let (mut moment, mut mass) = (0.0, 0.0);
        for (lag, height) in &hump {
            // A smooth window, so that no lag drops out of it at once.
            let off = (lag - at) / (2.0 * coarse);
            let weight = (1.0 - off * off).max(0.0);
            moment += weight * height * (lag - at);
            mass += weight * height;
        }
        if mass <= 0.0 {
            return None;
        }
        at += moment / mass;
        if (at - highest).abs() > 2.0 * coarse {
            return None;
        }
    }
    Some(at)
}

fn total(sums: &[f64]) -> f64 {
    sums.iter().sum()
}

/// Within what residuals are held; 0 where they are rounding only.
fn held(left: &[f64]) -> f64 {
    let usual = spread(left.iter().copied(), 0.0);
    if usual > LEAST { HELD * usual } else { 0.0 }
}

/// What is left of a series without what is slow, in units of its counting noise.
fn fresh(seen: &Even, rates: &[f64], coarse: f64) -> Vec<f64> {
    let span_s = rates.len() as f64 * seen.step_s;
    let half = ((SLOW_S.min(span_s / 6.0).max(8.0 * coarse) / seen.step_s / 2.0).round() as usize).max(2);
    let slow = smooth(rates, 2 * half + 1);
    // At an end the mean lies to one side, and what is slow is left over.
    let whole =
        |bin: usize| bin >= half && bin + half < rates.len() && rates[bin - half].is_finite() && rates[bin + half].is_finite();
    let left = |bin: usize| if whole(bin) { (rates[bin] - slow[bin]) / (slow[bin].max(0.0) + 1.0).sqrt() } else { f64::NAN };
    (0..rates.len()).map(left).collect()
}

/// The second series, to be laid on the bins of the first at any lag.
struct Moved<'a> {
    seen: &'a Even,
    told: &'a [Amount],
    coarse: f64,
    held: f64,
}

impl Moved<'_> {
    /// What is left of it on the bins of the first.
    fn at(&self, lag: f64) -> Vec<f64> {
        let (step, bins) = (self.seen.step_s, self.seen.rates.len());
        let (mut sums, mut covered) = (vec![0.0; bins], vec![0.0; bins]);
        for amount in self.told {
            let from = amount.from_s + lag - self.seen.from_s;
            let to = from + amount.dur_s;
            let first = (from / step).floor().max(0.0) as usize;
            let last = ((to / step).ceil().max(0.0) as usize).min(bins);
            for bin in first..last {
                let part = to.min((bin + 1) as f64 * step) - from.max(bin as f64 * step);
                if part > 0.0 {
                    sums[bin] += amount.rate * part;
                    covered[bin] += part;
                }
            }
        }
        let rates: Vec<f64> =
            sums.iter().zip(&covered).map(|(sum, covered)| if *covered > 0.9 * step { sum / covered } else { f64::NAN }).collect();
        fresh(self.seen, &rates, self.coarse).into_iter().map(|x| x.clamp(-self.held, self.held)).collect()
    }
}

struct Pair<'a> {
    seen: Vec<f64>,
    told: Moved<'a>,
    coarse: f64,
}

impl Pair<'_> {
    /// The covariance at a lag, block by block; `None` where the two hardly overlap.
    fn covariance(&self, lag: f64) -> Option<Vec<f64>> {
        let told = self.told.at(lag);
        let (mut sums, mut both) = (vec![0.0; BLOCKS], 0);
        for (bin, (a, b)) in self.seen.iter().zip(&told).enumerate() {
            if a.is_finite() && b.is_finite() {
                sums[bin * BLOCKS / self.seen.len()] += a * b;
                both += 1;
            }
        }
        (both as f64 * self.told.seen.step_s >= 10.0 * self.coarse && both >= 20)
            .then(|| sums.into_iter().map(|sum| sum / self.seen.len() as f64).collect())
    }

    /// The correlation at a lag, and how many times its chance value that is.
    fn fit(&self, lag: f64) -> Option<(f64, f64)> {
        let told = self.told.at(lag);
        let (mut n, mut aa, mut bb, mut ab) = (0.0, 0.0, 0.0, 0.0);
        for (a, b) in self.seen.iter().zip(&told).filter(|(a, b)| a.is_finite() && b.is_finite()) {
            n += 1.0;
            aa += a * a;
            bb += b * b;
            ab += a * b;
        }
        // Neighbours that resemble each other in both series say less (Bartlett 1946).
        let reach = (2.0 * self.coarse / self.told.seen.step_s).ceil() as usize;
        let alike: f64 = (1..=reach).map(|k| alike(&self.seen, k) * alike(&told, k)).sum();
        let independent = n / (1.0 + 2.0 * alike).max(1.0);
        let fits = ab / (aa * bb).sqrt();
        fits.is_finite().then_some((fits, fits * independent.sqrt()))
    }
}

/// The correlation of a series with itself so many bins later.
fn alike(values: &[f64], bins: usize) -> f64 {
    let known = |x: &&f64| x.is_finite();
    let whole: f64 = values.iter().filter(known).map(|x| x * x).sum();
    let pairs = values.iter().zip(values.iter().skip(bins)).map(|(a, b)| a * b).filter(|x| x.is_finite());
    if whole > 0.0 { pairs.sum::<f64>() / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Moments of requests at a rising rate, at random.
    fn requests(seconds: f64, low: f64, high: f64, seed: u64) -> Vec<f64> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 11) as f64 / (1_u64 << 53) as f64).max(1e-12)
        };
        let (mut at, mut all) = (0.0, Vec::new());
        while at < seconds {
            all.push(at);
            at -= next().ln() / (low + (high - low) * at / seconds);
        }
        all
    }

    fn counted(moments: &[f64], from_s: f64, step_s: f64, bins: usize) -> Vec<f64> {
        let mut rates = vec![0.0; bins];
        for moment in moments {
            let bin = ((moment - from_s) / step_s).floor();
            if (0.0..bins as f64).contains(&bin) {
                rates[bin as usize] += 1.0 / step_s;
            }
        }
        rates
    }

    fn found(off: f64, phase: f64, (seen_s, told_s): (f64, f64), seed: u64) -> Option<Lag> {
        let moments = requests(200.0, 10.0, 100.0, seed);
        let seen = Even { from_s: phase, step_s: seen_s, rates: counted(&moments, phase, seen_s, (199.0 / seen_s) as usize) };
        let there: Vec<f64> = moments.iter().map(|moment| moment - off).collect();
        let rates = counted(&there, -off.floor(), told_s, (199.0 / told_s) as usize);
        let told: Vec<Amount> = rates
            .iter()
            .enumerate()
            .map(|(n, rate)| Amount { from_s: n as f64 * told_s - off.floor(), dur_s: told_s, rate: *rate })
            .collect();
        lag(&seen, &told, off.round(), 5.0)
    }

    #[test]
    fn a_lag_is_found_to_a_fraction_of_a_bin_whatever_the_phase_of_the_bins() {
        for (n, (off, phase)) in
            [(0.0, 0.0), (0.0, 0.489), (0.3, 0.8), (-0.5, 0.25), (2.4, 0.1), (-3.0, 0.5)].into_iter().enumerate()
        {
            for widths in [(1.0, 1.0), (0.2, 1.0), (1.0, 0.2), (0.2, 0.2)] {
                let lag = found(off, phase, widths, 11 + n as u64).unwrap_or_else(|| panic!("{off} {phase} {widths:?}"));
                assert!((lag.seconds - off).abs() <= lag.within_s.max(0.1), "{off} {phase} {widths:?}: {lag:?}");
                assert!(lag.within_s < 0.35, "{off} {phase} {widths:?}: {lag:?}");
            }
        }
    }

    #[test]
    fn two_loads_that_have_nothing_to_do_with_each_other_tell_nothing() {
        for seed in 1..20 {
            let seen = Even { from_s: 0.0, step_s: 1.0, rates: counted(&requests(200.0, 10.0, 100.0, seed), 0.0, 1.0, 200) };
            let other = counted(&requests(200.0, 10.0, 100.0, seed + 1000), 0.0, 1.0, 200);
            let told: Vec<Amount> =
                other.iter().enumerate().map(|(n, rate)| Amount { from_s: n as f64, dur_s: 1.0, rate: *rate }).collect();
            assert_eq!(lag(&seen, &told, 0.0, 5.0), None, "{seed}");
        }
    }

    #[test]
    fn a_load_without_chance_tells_nothing() {
        let seen = Even { from_s: 0.0, step_s: 1.0, rates: (0..200).map(f64::from).collect() };
        let told: Vec<Amount> = (0..200).map(|n| Amount { from_s: f64::from(n), dur_s: 1.0, rate: f64::from(n) }).collect();
        assert_eq!(lag(&seen, &told, 0.0, 5.0), None);
    }
}
