//! A sparse log-linear histogram of latencies that merges exactly: percentiles of any window, quarter or sum of drivers
//! are those of the single requests, within 0.4 % (half a bucket; 128 buckets an octave from 128 µs on, exact below).
//!
//! In a cell: `<bucket>:<count>` pairs, rising, joined by commas.

use std::collections::BTreeMap;
use std::fmt;

const BITS: u32 = 7;

/// Latencies in microseconds by bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hist {
    buckets: BTreeMap<u32, u64>,
    count: u64,
}

fn bucket_of(us: u64) -> u32 {
    let top = us.max(1).ilog2();
    if top < BITS {
        return us as u32;
    }
    ((top - BITS + 1) << BITS) + ((us >> (top - BITS)) as u32 & ((1 << BITS) - 1))
}

/// The bounds of a bucket in microseconds, the upper one outside.
fn bounds(bucket: u32) -> (f64, f64) {
    let octave = bucket >> BITS;
    if octave == 0 {
        return (f64::from(bucket), f64::from(bucket) + 1.0);
    }
    let width = 2_f64.powi(octave as i32 - 1);
    let low = f64::from((1 << BITS) + (bucket & ((1 << BITS) - 1))) * width;
    (low, low + width)
}

impl Hist {
    /// Adds one latency in milliseconds. Negative ones count as 0.
    pub fn add_ms(&mut self, ms: f64) {
        self.add_us((ms * 1e3).round().max(0.0) as u64);
    }

    /// Adds one latency in microseconds.
    pub fn add_us(&mut self, us: u64) {
        *self.buckets.entry(bucket_of(us)).or_default() += 1;
        self.count += 1;
    }

    /// Adds all of another.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.buckets {
            *self.buckets.entry(*bucket).or_default() += count;
        }
        self.count += other.count;
    }

    /// How many latencies were added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many are surely over a limit in milliseconds, by the middle of their bucket.
    pub fn over_ms(&self, limit: f64) -> u64 {
        self.buckets.iter().filter(|(bucket, _)| middle_ms(**bucket) > limit).map(|(_, count)| count).sum()
    }

    /// The latency in milliseconds that a share `q` of the requests does not exceed (nearest rank); `None` if empty.
    pub fn quantile_ms(&self, q: f64) -> Option<f64> {
        let rank = ((q * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (bucket, count) in &self.buckets {
            seen += count;
            if seen >= rank {
                return Some(middle_ms(*bucket));
            }
        }
        None
    }

    /// Reads a cell; `None` if it is none.
    pub fn parse(cell: &str) -> Option<Self> {
        let mut hist = Self::default();
        if cell.is_empty() {
            return Some(hist);
        }
        for pair in cell.split(',') {
            let (bucket, count) = pair.split_once(':')?;
            let (bucket, count): (u32, u64) = (bucket.parse().ok()?, count.parse().ok()?);
            if bucket > bucket_of(u64::MAX) {
                return None;
            }
            *hist.buckets.entry(bucket).or_default() += count;
            hist.count = hist.count.checked_add(count)?;
        }
        Some(hist)
    }
}

fn middle_ms(bucket: u32) -> f64 {
    let (low, high) = bounds(bucket);
    if bucket >> BITS == 0 { low / 1e3 } else { f64::midpoint(low, high) / 1e3 }
}

impl fmt::Display for Hist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (bucket, count)) in self.buckets.iter().enumerate() {
            write!(f, "{}{bucket}:{count}", if n == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_single_latency_comes_back_within_half_a_percent(us in 0_u64..10_000_000_000) {
            let mut hist = Hist::default();
            hist.add_us(us);
            let back = hist.quantile_ms(0.5).unwrap() * 1e3;
            prop_assert!((back - us as f64).abs() <= 0.004 * us as f64 + 1e-9, "{us} came back as {back}");
        }

        #[test]
        fn merging_is_the_same_as_adding_to_one_and_a_cell_keeps_all(a in prop::collection::vec(0_u64..5_000_000, 0..50), b in prop::collection::vec(0_u64..5_000_000, 0..50)) {
            let fill = |xs: &[u64]| { let mut h = Hist::default(); for x in xs { h.add_us(*x); } h };
            let (mut left, right) = (fill(&a), fill(&b));
            left.merge(&right);
            prop_assert_eq!(&left, &fill(&[a, b].concat()));
            prop_assert_eq!(Hist::parse(&left.to_string()), Some(left));
        }
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_list() {
        let mut hist = Hist::default();
        (1..=1000).for_each(|ms| hist.add_ms(f64::from(ms)));
        for (q, want) in [(0.5, 500.0), (0.95, 950.0), (0.99, 990.0), (1.0, 1000.0)] {
            let got = hist.quantile_ms(q).unwrap();
            assert!((got - want).abs() <= 0.004 * want, "q {q}: {got}, expected {want}");
        }
        assert_eq!(Hist::default().quantile_ms(0.5), None);
    }

    #[test]
    fn a_cell_that_is_no_histogram_is_refused() {
        assert_eq!(Hist::parse("12"), None);
        assert_eq!(Hist::parse("1:x"), None);
        assert_eq!(Hist::parse("4000000000:1"), None);
    }
}
