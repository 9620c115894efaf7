//! How long a gate was broken.
//!
//! **Question.** Did the value stay on the broken side for the gate's time, and since when? **Method.** A break begins at the
//! first broken reading and ends at the first that holds; it counts once it has lasted `for` seconds. A missing reading
//! neither breaks nor heals. **How it fails.** A value that holds for one reading in between starts the time anew: that is
//! what "without a pause" says.

use super::{Gate, Test};

/// What became of a gate that was followed over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Broken {
    /// Since when, seconds.
    pub since_s: f64,
    /// Until when it was seen broken.
    pub until_s: f64,
}

/// Follows one gate.
#[derive(Clone, Debug)]
pub struct Held {
    test: Test,
    for_s: f64,
    now: Option<Broken>,
    first: Option<Broken>,
    longest: Option<Broken>,
    worst: f64,
    read: usize,
}

impl Held {
    /// For this gate.
    pub fn new(gate: &Gate) -> Self {
        Self { test: gate.test.clone(), for_s: gate.for_s, now: None, first: None, longest: None, worst: f64::NAN, read: 0 }
    }

    /// A reading; NaN was not read. Gives whether the gate has now been broken for its time.
    pub fn read(&mut self, at_s: f64, value: f64) -> bool {
        if !value.is_finite() {
            return false;
        }
        self.read += 1;
        self.worst = if self.worst.is_nan() { value } else { self.test.worse(self.worst, value) };
        if self.test.holds(value) {
            self.now = None;
            return false;
        }
        let since_s = self.now.map_or(at_s, |now| now.since_s);
        let now = Broken { since_s, until_s: at_s };
        self.now = Some(now);
        // Times are sums of ticks: a thousandth is no difference.
        if at_s - since_s < self.for_s - 1e-3 {
            return false;
        }
        let length = |broken: &Broken| broken.until_s - broken.since_s;
        match &mut self.first {
            Some(first) if first.since_s == since_s => *first = now,
            Some(_) => {}
            None => self.first = Some(now),
        }
        if self.longest.is_none_or(|longest| length(&longest) <= length(&now)) {
            self.longest = Some(now);
        }
        true
    }

    /// The first time that it was broken for its time.
    pub fn first(&self) -> Option<Broken> {
        self.first
    }

    /// How long it was broken at the longest, seconds.
    pub fn longest_s(&self) -> Option<f64> {
        self.longest.map(|broken| broken.until_s - broken.since_s)
    }

    /// The worst value that was read; NaN where none was.
    pub fn worst(&self) -> f64 {
        self.worst
    }

    /// How many values were read.
    pub fn readings(&self) -> usize {
        self.read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(text: &str, values: &[f64]) -> Held {
        let mut held = Held::new(&text.parse().unwrap());
        for (second, value) in values.iter().enumerate() {
            held.read(second as f64, *value);
        }
        held
    }

    #[test]
    fn a_share_of_exactly_the_limit_passes_and_one_session_more_breaks() {
        let gate = "postgres.sessions_active / postgres.max_connections <= 0.75";
        assert_eq!(held(gate, &[3750.0 / 5000.0]).first(), None);
        assert_eq!(held(gate, &[0.2, 3751.0 / 5000.0]).first(), Some(Broken { since_s: 1.0, until_s: 1.0 }));
    }

    #[test]
    fn a_gate_breaks_only_after_its_time_and_is_dated_from_its_begin() {
        let run = [1.0, 9.0, 9.0, 1.0, 9.0, 9.0, 9.0, 9.0, 1.0];
        let broken = held("app.queue < 5 for 3s", &run);
        assert_eq!(broken.first(), Some(Broken { since_s: 4.0, until_s: 7.0 }));
        assert_eq!((broken.longest_s(), broken.worst(), broken.readings()), (Some(3.0), 9.0, 9));
        assert_eq!(held("app.queue < 5 for 4s", &run).first(), None);
    }

    #[test]
    fn a_reading_that_is_missing_neither_breaks_nor_heals() {
        let run = [9.0, f64::NAN, f64::NAN, 9.0, f64::NAN];
        let broken = held("app.queue < 5 for 3s", &run);
        assert_eq!(broken.first(), Some(Broken { since_s: 0.0, until_s: 3.0 }));
        assert_eq!(held("app.queue < 5", &[f64::NAN]).readings(), 0);
    }

    #[test]
    fn the_worst_of_what_must_be_high_is_the_lowest() {
        assert_eq!(held("web.workers_idle >= 2", &[8.0, 3.0, 5.0]).worst(), 3.0);
    }
}
