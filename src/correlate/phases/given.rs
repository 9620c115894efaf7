//! `--phase NAME=START..END`: parts as the user knows them.

use super::{Part, Phases};
use crate::correlate::gather::Frame;
use crate::time::parse_duration;
use std::str::FromStr;

/// A part that was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// rest, warm-up, low load, climb, rung, plateau, soak, spike, cool-down, or a name of one's own.
    pub name: String,
    /// Seconds since the run's start.
    pub from_s: f64,
    /// Seconds since the run's start.
    pub to_s: f64,
}

impl FromStr for Given {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("{why}: {text:?}; for example plateau=5m..15m or spike=900..960");
        let (name, span) = text.split_once('=').ok_or_else(|| wrong("no NAME= before the times"))?;
        let (from, to) = span.split_once("..").ok_or_else(|| wrong("no START..END behind the name"))?;
        let (from_s, to_s) = (parse_duration(from)?.as_secs_f64(), parse_duration(to)?.as_secs_f64());
        if name.trim().is_empty() {
            return Err(wrong("an empty name"));
        }
        if to_s <= from_s {
            return Err(wrong("it ends before it begins"));
        }
        let name = match name.trim() {
            "ramp" => "climb",
            "warmup" => "warm-up",
            "cooldown" => "cool-down",
            "low" => "low load",
            name => name,
        };
        Ok(Self { name: name.to_owned(), from_s, to_s })
    }
}

impl Phases {
    /// Lays given parts over the ones that were told, and judges by them: a rest with load is the low load, a rest without
    /// load is before it, nothing behind a cool-down's begin is judged, and nothing before a warm-up's end.
    pub fn with(mut self, frame: &Frame, given: &[Given]) -> Self {
        for given in given {
            let edge = |at_s: f64| {
                let bins = (at_s - frame.elapsed_s(0)) / frame.step_s + 0.5;
                // A bin that begins half before the time belongs to what follows it.
                (bins.floor().max(0.0) as usize).min(frame.bins)
            };
            let (from, to) = (edge(given.from_s), edge(given.to_s));
            if from < to {
                self.lay(Part { name: given.name.clone(), bins: (from, to) });
            }
        }
        self
    }

    fn lay(&mut self, part: Part) {
        let (from, to) = part.bins;
        let has_load = self.loaded[from..to].iter().filter(|on| **on).count() * 2 > to - from;
        match (&*part.name, has_load) {
            ("rest" | "low load", true) => {
                for (bin, low) in self.low.iter_mut().enumerate() {
                    *low = (from..to).contains(&bin) && self.loaded[bin];
                }
                self.range.0 = self.range.0.min(from);
            }
            ("rest", false) => {
                for (bin, before) in self.before.iter_mut().enumerate() {
                    *before = (from..to).contains(&bin);
                }
            }
            ("warm-up", _) => {
                self.range.0 = to.min(self.range.1.saturating_sub(1));
                self.low[..to].fill(false);
            }
            ("cool-down", _) => self.range.1 = from.clamp(self.range.0 + 1, self.range.1.max(self.range.0 + 1)),
            _ => {}
        }
        let mut parts = Vec::new();
        for old in self.parts.drain(..) {
            for (begin, end) in [(old.bins.0, old.bins.1.min(from)), (old.bins.0.max(to), old.bins.1)] {
                if begin < end {
                    parts.push(Part { name: old.name.clone(), bins: (begin, end) });
                }
            }
        }
        parts.push(part);
        parts.sort_by_key(|part| part.bins);
        self.parts = parts;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_or_durations_and_names_may_be_ones_own() {
        let read = |text: &str| text.parse::<Given>().map(|given| (given.name, given.from_s, given.to_s));
        assert_eq!(read("plateau=300..15m"), Ok(("plateau".into(), 300.0, 900.0)));
        assert_eq!(read("ramp=0..1m 30s"), Ok(("climb".into(), 0.0, 90.0)));
        assert_eq!(read("doors open=1..2").unwrap().0, "doors open");
    }

    #[test]
    fn what_is_no_part_is_refused_with_an_example() {
        for text in ["plateau", "plateau=5m", "=1..2", "plateau=9..3", "plateau=a..b"] {
            let why = text.parse::<Given>().unwrap_err();
            assert!(why.contains("for example"), "{text}: {why}");
        }
    }
}
