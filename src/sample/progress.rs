//! One line on a terminal while the run goes on: elapsed of total, targets up, ticks late, waits seen.

use super::drive::Phase;
use super::health::{Health, counted};
use super::say::Say;
use std::time::{Duration, Instant};

/// The line, at most a few times a second.
#[derive(Default)]
pub struct Progress {
    shown: Option<Instant>,
}

/// More often nobody can read it.
const PAUSE: Duration = Duration::from_millis(250);

impl Progress {
    /// Shows the line after a row, if it is time to.
    pub fn show(&mut self, say: &Say, health: &Health, phase: &Phase, elapsed: Duration, up: usize) {
        if !say.shows_progress() || self.shown.is_some_and(|shown| shown.elapsed() < PAUSE) {
            return;
        }
        // A driver that runs has the terminal for itself.
        if let Some(line) = line(health, phase, elapsed, up) {
            say.progress(&line);
            self.shown = Some(Instant::now());
        }
    }

    /// Takes the line away.
    pub fn end(&self, say: &Say) {
        if self.shown.is_some() {
            say.progress("");
        }
    }
}

fn line(health: &Health, phase: &Phase, elapsed: Duration, up: usize) -> Option<String> {
    let of = |total: &Option<Duration>| total.map(|total| format!(" of {} s", total.as_secs())).unwrap_or_default();
    let stretch = match phase {
        Phase::Free { total } => format!("{} s{}", elapsed.as_secs(), of(total)),
        Phase::Rest { total } => format!("resting, {} s{}", elapsed.as_secs(), of(&Some(*total))),
        Phase::Driving => return None,
        Phase::Cool { .. } => format!("{} s, the driver has ended, cooling", elapsed.as_secs()),
    };
    Some(format!(
        "{stretch} · {up} of {} up · {} late, {} missed · {}",
        counted(health.targets.len() as u64, "target"),
        health.late,
        health.missed,
        counted(health.waits, "wait"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_elapsed_of_total_targets_up_late_ticks_and_waits() {
        let mut health = Health::new(std::iter::once(("db", &[][..])));
        (health.late, health.missed, health.waits) = (2, 1, 17);
        let total = Some(Duration::from_secs(95));
        assert_eq!(
            line(&health, &Phase::Free { total }, Duration::from_millis(12_900), 1).unwrap(),
            "12 s of 95 s · 1 of 1 target up · 2 late, 1 missed · 17 waits"
        );
        assert_eq!(line(&health, &Phase::Driving, Duration::from_secs(1), 1), None);
    }
}
