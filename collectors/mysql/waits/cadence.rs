//! When the waits are read, and how long each has lasted.

use super::Waiter;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A pace of its own, below the ticks': no faster than asked, and slower where a read costs much, so that it never takes
/// more than its share of the time.
#[derive(Clone, Copy, Debug)]
pub struct Cadence {
    every: Duration,
    share: u32,
    last: Option<Instant>,
    pause: Duration,
}

/// One part of so many: of what costs the server no more than any statement does.
pub const CHEAP: u32 = 5;
/// Of what everybody who locks stands still for while it is read.
pub const DEAR: u32 = 50;
/// However dear one read was (the server may have been stopped in the middle), the next comes after this.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

impl Cadence {
    /// At most once in `every`, and at most one part in `share` of the time.
    pub fn new(every: Duration, share: u32) -> Self {
        Self { every, share, last: None, pause: every }
    }

    /// Whether it is time. A tenth early is on time: ticks are a little late or early themselves, and a cadence of 1 s on
    /// ticks of 1 s must not skip every second one.
    pub fn due(&self, now: Instant) -> bool {
        self.last.is_none_or(|last| now.saturating_duration_since(last) >= self.pause.mul_f64(0.9))
    }

    /// One read began at `began` and took `cost`.
    pub fn done(&mut self, began: Instant, cost: Duration) {
        self.last = Some(began);
        self.pause = self.every.max((cost * self.share).min(LONGEST_PAUSE));
    }
}

/// How long each wait has lasted, by when it was first seen: the server's own times are coarse (1 s) or of the statement.
#[derive(Debug, Default)]
pub struct Clock {
    seen: HashMap<Key, Since>,
    read: Option<Instant>,
    now: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Since {
    /// Seen waiting for the first time.
    first: Instant,
    /// The read before that, in which it was not there.
    before: Option<Instant>,
}

/// Who, for what, and which time.
type Key = (String, String, String);

fn key(waiter: &Waiter) -> Key {
    (waiter.session.clone(), waiter.lock.clone(), waiter.begun.clone())
}

/// The age of a statement and our own clock may differ by so much and still tell of the same wait, ms.
const SLACK: f64 = 50.0;

impl Clock {
    /// Takes a read's waiters: new ones begin, those that are gone are forgotten.
    pub fn tick(&mut self, now: Instant, waiters: &[Waiter]) {
        let mut seen = HashMap::with_capacity(waiters.len());
        for waiter in waiters {
            let key = key(waiter);
            // A statement younger than the wait that we know of is another statement, waiting anew.
            let same = |since: &Since| {
                let known = now.saturating_duration_since(since.first).as_secs_f64() * 1e3;
                waiter.statement_ms.is_none_or(|age| age + SLACK >= known)
            };
            let known = self.seen.get(&key).copied().filter(same);
            let since = known.unwrap_or(Since { first: now, before: self.read });
            seen.insert(key, since);
        }
        self.seen = seen;
        self.read = Some(now);
        self.now = Some(now);
    }

    /// How long a waiter of the last read has waited, milliseconds. It lies between what was seen and what is possible (it
    /// was not there at the read before; the server's coarse time); the statement's exact age is taken within these.
    pub fn waited_ms(&self, waiter: &Waiter) -> Option<f64> {
        let (since, now) = (self.seen.get(&key(waiter))?, self.now?);
        let ms = |from: Instant| now.saturating_duration_since(from).as_secs_f64() * 1e3;
        let coarse = waiter.since_ms;
        let low = ms(since.first).max(coarse.map_or(0.0, |since| since - 1000.0));
        let high = [since.before.map(ms), coarse].into_iter().flatten().fold(f64::INFINITY, f64::min).max(low);
        Some(waiter.statement_ms.map_or(low, |age| age.clamp(low, high)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn waiter(since_ms: Option<f64>, statement_ms: Option<f64>) -> Waiter {
        Waiter { id: Some(7), session: "7".to_owned(), lock: "l".to_owned(), since_ms, statement_ms, ..Waiter::default() }
    }

    #[test]
    fn a_read_that_costs_much_makes_the_next_come_later() {
        let start = Instant::now();
        let mut cadence = Cadence::new(Duration::from_millis(150), CHEAP);
        assert!(cadence.due(start));
        cadence.done(start, Duration::from_millis(5));
        assert!(!cadence.due(start + Duration::from_millis(100)));
        assert!(cadence.due(start + Duration::from_millis(150)));
        cadence.done(start, Duration::from_millis(120));
        assert!(!cadence.due(start + Duration::from_millis(400)) && cadence.due(start + Duration::from_millis(600)));
        cadence.done(start, Duration::from_secs(5));
        assert!(cadence.due(start + Duration::from_secs(2)));
        let mut dear = Cadence::new(Duration::from_millis(150), DEAR);
        dear.done(start, Duration::from_millis(8));
        assert!(!dear.due(start + Duration::from_millis(300)) && dear.due(start + Duration::from_millis(400)));
    }

    #[test]
    fn a_cadence_equal_to_the_tick_is_due_at_every_tick_though_ticks_shake() {
        let start = Instant::now();
        let mut cadence = Cadence::new(Duration::from_secs(1), CHEAP);
        for (tick, shake) in [0_u64, 3, 990, 7, 0].into_iter().enumerate() {
            let at = start + Duration::from_millis(tick as u64 * 1000 + shake % 20);
            assert!(cadence.due(at), "tick {tick}");
            cadence.done(at, Duration::from_millis(1));
        }
    }

    #[test]
    fn a_wait_lasts_from_when_it_was_first_seen() {
        let start = Instant::now();
        let mut clock = Clock::default();
        for ms in [0_u64, 200, 400] {
            clock.tick(start + Duration::from_millis(ms), &[waiter(None, None)]);
            assert_eq!(clock.waited_ms(&waiter(None, None)), Some(ms as f64));
        }
        // Gone at one read: when it comes again it is another wait.
        clock.tick(start + Duration::from_millis(600), &[]);
        assert_eq!(clock.waited_ms(&waiter(None, None)), None);
        clock.tick(start + Duration::from_millis(800), &[waiter(None, None)]);
        assert_eq!(clock.waited_ms(&waiter(None, None)), Some(0.0));
    }

    #[test]
    fn the_same_session_waiting_anew_for_the_same_row_begins_at_0() {
        let start = Instant::now();
        let mut clock = Clock::default();
        clock.tick(start, &[Waiter { begun: "trx 1".to_owned(), ..waiter(None, None) }]);
        let again = Waiter { begun: "trx 2".to_owned(), ..waiter(None, None) };
        clock.tick(start + Duration::from_secs(1), std::slice::from_ref(&again));
        assert_eq!(clock.waited_ms(&again), Some(0.0));
    }

    #[test]
    fn the_age_of_the_statement_counts_only_within_what_is_possible() {
        let start = Instant::now();
        let mut clock = Clock::default();
        clock.tick(start, &[]);
        let now = start + Duration::from_millis(200);
        // An ALTER that copied for ten minutes before it began to wait, not waiting at the last read: 200 ms at most.
        clock.tick(now, &[waiter(None, Some(600_000.0))]);
        assert_eq!(clock.waited_ms(&waiter(None, Some(600_000.0))), Some(200.0));
        assert_eq!(clock.waited_ms(&waiter(None, Some(150.0))), Some(150.0));
        // Waiting since before the first read: the server's whole seconds bound it, the statement tells it exactly.
        let mut clock = Clock::default();
        clock.tick(now, &[waiter(Some(9000.0), Some(8400.0))]);
        assert_eq!(clock.waited_ms(&waiter(Some(9000.0), Some(8400.0))), Some(8400.0));
        assert_eq!(clock.waited_ms(&waiter(Some(9000.0), Some(60_000.0))), Some(9000.0));
        assert_eq!(clock.waited_ms(&waiter(Some(9000.0), None)), Some(8000.0));
    }

    #[test]
    fn a_younger_statement_of_the_same_session_waits_anew() {
        let start = Instant::now();
        let mut clock = Clock::default();
        clock.tick(start, &[waiter(None, Some(10.0))]);
        clock.tick(start + Duration::from_secs(1), &[waiter(None, Some(30.0))]);
        assert_eq!(clock.waited_ms(&waiter(None, Some(30.0))), Some(30.0));
    }

    proptest! {
        #[test]
        fn a_wait_is_never_negative_whatever_the_server_says(steps in proptest::collection::vec((1_u64..500, proptest::option::of(0.0..1e6), proptest::option::of(0.0..1e6)), 1..8)) {
            let start = Instant::now();
            let mut clock = Clock::default();
            let mut at = start;
            for (step, since, statement) in steps {
                at += Duration::from_millis(step);
                let waiter = waiter(since, statement);
                clock.tick(at, std::slice::from_ref(&waiter));
                let waited = clock.waited_ms(&waiter).unwrap();
                prop_assert!(waited.is_finite() && waited >= 0.0);
            }
        }
    }
}
