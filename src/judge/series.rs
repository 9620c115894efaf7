//! Raw cells to values: counters to rates over the real read times.
//!
//! **Question.** What did this column do between two reads? **Method.** A counter's difference over the time that truly
//! passed (planned tick plus its lateness), never the nominal period. The first difference is dropped: with some servers it
//! is everything since their start. A counter that falls was reset: a note, and no rate across it; a dip of under a
//! thousandth of its value (idle-time counters of some kernels) counts as 0. Over a gap of more than three of the column's
//! own periods there is no rate either: it would smear what happened in the gap over one bin.
//! **How it fails.** A counter that was reset and overtook its old value between two reads looks like a jump.

use collectors::api::Kind;

/// What one cell said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A state, as it was read.
    State(f64),
    /// An amount over so many seconds.
    Amount {
        /// How much.
        amount: f64,
        /// In how many seconds.
        seconds: f64,
    },
    /// The counter fell: the target was restarted or its counters were reset.
    Reset,
}

/// Follows one column from row to row.
#[derive(Clone, Debug)]
pub struct Follower {
    kind: Kind,
    own: f64,
    last: Option<(f64, f64)>,
    /// The shortest time between two reads so far, seconds.
    period: f64,
}

impl Follower {
    /// A column of this kind, `own` of which (per read, for counters) is the sampler's.
    pub fn new(kind: Kind, own: f64) -> Self {
        Self { kind, own, last: None, period: f64::INFINITY }
    }

    /// A read at `at` seconds gave `raw`; NaN was not read. `nominal` is the tick in seconds.
    pub fn read(&mut self, at: f64, raw: f64, nominal: f64) -> Option<Value> {
        if !raw.is_finite() {
            return None;
        }
        let before = self.last.replace((at, raw));
        if self.kind == Kind::Gauge {
            return Some(Value::State(raw - self.own));
        }
        let (then, old) = before?;
        let seconds = at - then;
        if seconds <= 0.0 {
            return None;
        }
        self.period = self.period.min(seconds);
        let near = seconds <= 3.0 * self.period.max(nominal);
        if self.kind == Kind::Delta {
            // An amount of this tick, however long ago the last one was read.
            let seconds = if near && seconds < 1.5 * self.period.max(nominal) { seconds } else { nominal };
            return Some(Value::Amount { amount: (raw - self.own).max(0.0), seconds });
        }
        if raw < old {
            return if old - raw <= 1e-3 * old.abs() {
                // Keep the highest, so that the dip is not counted twice when it comes back.
                self.last = Some((at, old));
                Some(Value::Amount { amount: 0.0, seconds })
            } else {
                Some(Value::Reset)
            };
        }
        near.then(|| Value::Amount { amount: (raw - old - self.own).max(0.0), seconds })
    }

    /// Forgets the last read: what comes next cannot be compared with it (the file jumped back in time).
    pub fn forget(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(value: Option<Value>) -> Option<f64> {
        match value {
            Some(Value::Amount { amount, seconds }) => Some(amount / seconds),
            _ => None,
        }
    }

    #[test]
    fn a_counter_is_a_rate_over_the_real_time_and_its_first_reading_is_none() {
        let mut counter = Follower::new(Kind::Counter, 0.0);
        assert_eq!(counter.read(0.0, 900_000.0, 1.0), None);
        assert_eq!(rate(counter.read(1.25, 900_010.0, 1.0)), Some(8.0));
    }

    #[test]
    fn a_counter_that_falls_was_reset_and_one_that_dips_a_little_stood_still() {
        let mut counter = Follower::new(Kind::Counter, 0.0);
        counter.read(0.0, 5000.0, 1.0);
        assert_eq!(counter.read(1.0, 10.0, 1.0), Some(Value::Reset));
        assert_eq!(rate(counter.read(2.0, 14.0, 1.0)), Some(4.0));
        let mut idle = Follower::new(Kind::Counter, 0.0);
        idle.read(0.0, 5000.0, 1.0);
        assert_eq!(rate(idle.read(1.0, 4999.0, 1.0)), Some(0.0));
        assert_eq!(rate(idle.read(2.0, 5002.0, 1.0)), Some(2.0), "the dip is not counted when it comes back");
    }

    #[test]
    fn there_is_no_rate_across_a_gap_and_none_for_a_missing_cell() {
        let mut counter = Follower::new(Kind::Counter, 0.0);
        counter.read(0.0, 0.0, 1.0);
        counter.read(1.0, 5.0, 1.0);
        assert_eq!(counter.read(2.0, f64::NAN, 1.0), None);
        assert_eq!(counter.read(9.0, 45.0, 1.0), None);
        assert_eq!(rate(counter.read(10.0, 50.0, 1.0)), Some(5.0));
    }

    #[test]
    fn a_column_read_every_fifth_tick_has_rates_all_the_same() {
        let mut counter = Follower::new(Kind::Counter, 0.0);
        counter.read(0.0, 0.0, 1.0);
        counter.read(5.0, 50.0, 1.0);
        assert_eq!(rate(counter.read(10.0, 100.0, 1.0)), Some(10.0));
    }

    #[test]
    fn the_samplers_own_share_is_taken_away_from_states_and_from_every_reading_of_a_counter() {
        assert_eq!(Follower::new(Kind::Gauge, 1.0).read(0.0, 3.0, 1.0), Some(Value::State(2.0)));
        let mut counter = Follower::new(Kind::Counter, 1.0);
        counter.read(0.0, 0.0, 1.0);
        assert_eq!(rate(counter.read(1.0, 11.0, 1.0)), Some(10.0));
    }
}
