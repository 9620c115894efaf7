//! The plan of a run as the user gives it, and the mix of steps: what the run is measured against.

use crate::time::parse_duration;
use std::str::FromStr;

/// What should have been sent: stretches of a held or a rising rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    stretches: Vec<Stretch>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Stretch {
    from: f64,
    to: f64,
    seconds: f64,
}

impl FromStr for Plan {
    type Err = String;

    /// `100:3000/5m,3000/10m,6000/1m`: from 100 to 3000 requests a second in 5 minutes, then 3000 for 10, …
    fn from_str(text: &str) -> Result<Self, String> {
        let hint = "expected RATE/TIME or FROM:TO/TIME joined by commas, for example 100:3000/5m,3000/10m";
        let mut stretches = Vec::new();
        for part in text.split(',').map(str::trim) {
            let (rates, time) = part.split_once('/').ok_or_else(|| format!("not a stretch of a plan: {part:?}; {hint}"))?;
            let (from, to) = rates.split_once(':').unwrap_or((rates, rates));
            let rate = |text: &str| match text.trim().parse::<f64>() {
                Ok(rate) if rate.is_finite() && rate >= 0.0 => Ok(rate),
                _ => Err(format!("not a rate: {text:?}; {hint}")),
            };
            let seconds = parse_duration(time)?.as_secs_f64();
            if seconds <= 0.0 {
                return Err(format!("a stretch without length: {part:?}; {hint}"));
            }
            stretches.push(Stretch { from: rate(from)?, to: rate(to)?, seconds });
        }
        Ok(Self { stretches })
    }
}

impl Plan {
    /// How many requests should have been sent between two moments, in seconds since the plan's begin.
    pub(super) fn count(&self, from: f64, to: f64) -> f64 {
        let (mut begin, mut sum) = (0.0, 0.0);
        for stretch in &self.stretches {
            let (a, b) = ((from - begin).clamp(0.0, stretch.seconds), (to - begin).clamp(0.0, stretch.seconds));
            let rate = |at: f64| stretch.from + (stretch.to - stretch.from) * at / stretch.seconds;
            sum += (b - a) * f64::midpoint(rate(a), rate(b));
            begin += stretch.seconds;
        }
        sum
    }
}

/// Shares of the steps, as planned: `seat map=70,hold=25,pay=5`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mix(pub Vec<(String, f64)>);

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let hint = "expected STEP=SHARE joined by commas, for example \"seat map=70,hold=30\"";
        let mut shares = Vec::new();
        for part in text.split(',') {
            let (step, share) = part.rsplit_once('=').ok_or_else(|| format!("not a share: {part:?}; {hint}"))?;
            match share.trim().parse::<f64>() {
                Ok(share) if share.is_finite() && share >= 0.0 => shares.push((step.trim().to_owned(), share)),
                _ => return Err(format!("not a share: {part:?}; {hint}")),
            }
        }
        let sum: f64 = shares.iter().map(|(_, share)| share).sum();
        if sum <= 0.0 {
            return Err(format!("shares that sum to nothing: {text:?}; {hint}"));
        }
        for (_, share) in &mut shares {
            *share /= sum;
        }
        Ok(Self(shares))
    }
}

impl Mix {
    /// The planned share of a step.
    pub(super) fn share(&self, step: &str) -> Option<f64> {
        self.0.iter().find(|(name, _)| name == step).map(|(_, share)| *share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_of_a_ramp_and_a_hold_is_the_area_under_it() {
        let plan: Plan = "0:100/10s, 100/5s".parse().unwrap();
        assert!((plan.count(0.0, 10.0) - 500.0).abs() < 1e-9);
        assert!((plan.count(4.0, 5.0) - 45.0).abs() < 1e-9);
        assert!((plan.count(9.5, 10.5) - (48.75 + 50.0)).abs() < 1e-9);
        assert!((plan.count(14.0, 99.0) - 100.0).abs() < 1e-9);
        assert_eq!(plan.count(-5.0, 0.0), 0.0);
    }

    #[test]
    fn what_is_no_plan_is_refused_with_an_example() {
        for text in ["", "100", "100/0s", "a/5s", "-1/5s", "1:2:3/5s", "100/soon"] {
            assert!(text.parse::<Plan>().is_err(), "{text}");
        }
        assert!("100".parse::<Plan>().is_err_and(|why| why.contains("100:3000/5m")));
    }

    #[test]
    fn shares_sum_to_one_and_a_name_may_hold_an_equals_sign() {
        let mix: Mix = "seat map=70,a=b=30".parse().unwrap();
        assert_eq!((mix.share("seat map"), mix.share("a=b"), mix.share("x")), (Some(0.7), Some(0.3), None));
        assert!("a".parse::<Mix>().is_err());
        assert!("a=0".parse::<Mix>().is_err());
    }
}
