//! Absolute deadlines: tick k is planned at t0 + k · period on the monotonic clock, whatever happened before. A tick that
//! could not begin before the next one was due is skipped and counted, so that a stall never ends in a burst.

use std::time::Duration;
use tokio::time::Instant;

/// The plan of a run.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    t0: Instant,
    start_unix_ms: i64,
    period: Duration,
    next: u64,
}

/// A tick that is due, or will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// Counts from 0.
    pub number: u64,
    /// When it is planned.
    pub at: Instant,
    /// When it is planned on the wall clock, Unix milliseconds.
    pub unix_ms: i64,
    /// How many ticks right before it were missed.
    pub missed: u64,
}

impl Schedule {
    /// Tick 0 at `now`, moved by less than a millisecond so that the file's whole milliseconds are exact.
    pub fn new(now: Instant, now_unix_ms: f64, period: Duration) -> Self {
        let start_unix_ms = now_unix_ms.ceil();
        let t0 = now + Duration::from_secs_f64((start_unix_ms - now_unix_ms).max(0.0) / 1e3);
        Self { t0, start_unix_ms: start_unix_ms as i64, period, next: 0 }
    }

    /// When tick 0 is planned.
    pub fn t0(&self) -> Instant {
        self.t0
    }

    /// When tick 0 is planned on the wall clock, Unix milliseconds.
    pub fn start_unix_ms(&self) -> i64 {
        self.start_unix_ms
    }

    /// The planned time of a tick.
    pub fn at(&self, number: u64) -> Instant {
        let nanos = self.period.as_nanos() * u128::from(number);
        self.t0 + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn unix_ms(&self, number: u64) -> i64 {
        self.start_unix_ms + (self.period.as_secs_f64() * 1e3 * number as f64).round() as i64
    }

    /// When the tick comes that will be taken next.
    pub fn next_at(&self) -> Instant {
        self.at(self.next)
    }

    /// The tick to take at `now`: the latest that is due, the ones before it missed. `None` before the next one is due.
    pub fn take(&mut self, now: Instant) -> Option<Tick> {
        if now < self.next_at() {
            return None;
        }
        let due = (now - self.t0).as_nanos() / self.period.as_nanos().max(1);
        let number = u64::try_from(due).unwrap_or(u64::MAX).max(self.next);
        let tick = Tick { number, at: self.at(number), unix_ms: self.unix_ms(number), missed: number - self.next };
        self.next = number + 1;
        Some(tick)
    }

    /// By when a read of this tick must have answered, if it may take `timeout`: a tick that begins late gives up some of
    /// that, down to half, so as not to make the next one late too.
    pub fn deadline(&self, tick: &Tick, began: Instant, timeout: Duration) -> Instant {
        let next = self.at(tick.number + 1);
        (began + timeout).min(next.max(began + timeout / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn ticks_are_planned_from_the_start_and_not_from_the_last_one() {
        let now = Instant::now();
        let mut schedule = Schedule::new(now, 1_000.0, 100 * MS);
        assert_eq!(schedule.t0(), now);
        for k in 0..50_u32 {
            // Each one begins 30 ms late; the next is planned as if it had not.
            let tick = schedule.take(now + k * 100 * MS + 30 * MS).unwrap();
            assert_eq!((tick.number, tick.at, tick.missed), (u64::from(k), now + k * 100 * MS, 0));
            assert_eq!(tick.unix_ms, 1_000 + i64::from(k) * 100);
        }
        assert_eq!(schedule.next_at(), now + 5_000 * MS);
    }

    #[test]
    fn after_a_stall_the_latest_due_tick_is_taken_once_and_the_others_are_missed() {
        let now = Instant::now();
        let mut schedule = Schedule::new(now, 0.0, 100 * MS);
        assert_eq!(schedule.take(now).unwrap().missed, 0);
        let tick = schedule.take(now + 570 * MS).unwrap();
        assert_eq!((tick.number, tick.missed), (5, 4));
        assert_eq!(schedule.take(now + 571 * MS), None);
        assert_eq!(schedule.take(now + 600 * MS).unwrap().number, 6);
    }

    #[test]
    fn the_start_falls_on_a_whole_millisecond_of_the_wall_clock() {
        let now = Instant::now();
        let schedule = Schedule::new(now, 1_000.25, 100 * MS);
        assert_eq!(schedule.start_unix_ms(), 1_001);
        assert_eq!((schedule.t0() - now).as_micros(), 750);
    }

    #[test]
    fn a_late_tick_gives_its_reads_less_time_but_at_least_half() {
        let now = Instant::now();
        let mut schedule = Schedule::new(now, 0.0, 100 * MS);
        let tick = schedule.take(now).unwrap();
        assert_eq!(schedule.deadline(&tick, now, 80 * MS), now + 80 * MS);
        assert_eq!(schedule.deadline(&tick, now + 50 * MS, 80 * MS), now + 100 * MS);
        assert_eq!(schedule.deadline(&tick, now + 90 * MS, 80 * MS), now + 130 * MS);
    }
}
