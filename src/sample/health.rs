//! What the run itself went through: gaps and their reasons, counters that were reset, late and missed ticks. Some of it
//! stands in the rows' notes, all of it in the summary at the end.

use super::replicas::{Answer, Replicas};
use crate::hist::Hist;
use collectors::api::{Gauge, Kind, Reading};
use std::fmt::Write as _;
use std::time::Duration;

/// One target's health.
#[derive(Debug, Default)]
pub struct TargetHealth {
    /// Reads that were due.
    pub due: u64,
    /// Reads that answered in time.
    pub answered: u64,
    /// How often its counters were reset.
    pub resets: u64,
    /// Kinds of gaps with their number.
    reasons: Vec<(&'static str, u64)>,
    /// The last read found a reset.
    just_reset: bool,
    /// Who answers, if several do.
    replicas: Replicas,
    /// The last value of each counter, `None` before its first.
    counters: Vec<Option<f64>>,
    /// The reason of the last gap, and the tick from which it holds.
    last_reason: Option<(String, u64)>,
}

impl TargetHealth {
    /// For a target with these columns.
    pub fn new(columns: &[Gauge]) -> Self {
        Self { counters: vec![None; columns.len()], ..Self::default() }
    }

    /// An answer in time, its values in these cells. Gives what is to be noted of its counters, and empties the cells of
    /// those that may be another replica's.
    pub fn answered(&mut self, columns: &[Gauge], cells: &mut [Option<f64>], reading: &Reading) -> Option<String> {
        let answer = self.replicas.answer(columns, cells, reading.process.as_deref());
        if !answer.counts() {
            for (_, cell) in columns.iter().zip(cells.iter_mut()).filter(|(gauge, _)| gauge.kind == Kind::Counter) {
                *cell = None;
            }
        }
        let reset = self.reset(columns, cells, reading.restarted.is_some() && answer == Answer::Same);
        match answer {
            Answer::Proven => {
                let kept = if self.replicas.keeps_one() { "the counters of one are kept" } else { "counters are left out" };
                let before = match std::mem::take(&mut self.resets) {
                    0 => String::new(),
                    resets => format!(", {} noted before was none", counted(resets, "reset")),
                };
                Some(format!("several replicas answer at this address: {kept} from here on{before}"))
            }
            _ if reset => Some(reading.restarted.clone().unwrap_or_else(|| "counters reset".to_owned())),
            _ => None,
        }
    }

    /// Whether counters fell: the target was restarted, or somebody cleared them. `told`: it said so itself.
    ///
    /// Some counters of a kernel dip by a little and go on; a reset throws a counter back to near 0. So it takes a fall
    /// by more than half. What still falls at the very next read belongs to the same reset.
    fn reset(&mut self, columns: &[Gauge], cells: &[Option<f64>], told: bool) -> bool {
        self.due += 1;
        self.answered += 1;
        self.last_reason = None;
        let mut reset = told;
        for ((gauge, cell), last) in columns.iter().zip(cells).zip(&mut self.counters) {
            let (Kind::Counter, Some(value)) = (gauge.kind, cell) else { continue };
            reset |= last.is_some_and(|last| *value < last / 2.0);
            *last = Some(*value);
        }
        let new = told || (reset && !self.just_reset);
        self.just_reset = reset;
        self.resets += u64::from(new);
        new
    }

    /// A gap. Gives the note: the whole reason when it is new, shortened while it stays the same.
    pub fn gap(&mut self, tick: u64, reason: &str, kind: &'static str) -> String {
        self.due += 1;
        self.replicas.gap();
        match self.reasons.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => self.reasons.push((kind, 1)),
        }
        match &self.last_reason {
            Some((last, since)) if last == reason => format!("{kind}, as at tick {since}"),
            _ => {
                self.last_reason = Some((reason.to_owned(), tick));
                reason.to_owned()
            }
        }
    }

    /// Reads that were due and gave nothing.
    pub fn gaps(&self) -> u64 {
        self.due - self.answered
    }
}

/// The whole run's health.
#[derive(Debug, Default)]
pub struct Health {
    /// Rows written.
    pub ticks: u64,
    /// Ticks that could not begin before the next one was due.
    pub missed: u64,
    /// Ticks that began late by more than a tenth of the period.
    pub late: u64,
    /// Wait rows seen.
    pub waits: u64,
    /// The worst lateness, milliseconds.
    worst_ms: f64,
    lateness: Hist,
    /// By target.
    pub targets: Vec<(String, TargetHealth)>,
}

impl Health {
    /// For targets with these names and columns.
    pub fn new<'a>(targets: impl Iterator<Item = (&'a str, &'a [Gauge])>) -> Self {
        let targets = targets.map(|(name, columns)| (name.to_owned(), TargetHealth::new(columns))).collect();
        Self { targets, ..Self::default() }
    }

    /// A row was written.
    pub fn tick(&mut self, missed: u64, late_ms: f64, period: Duration) {
        self.ticks += 1;
        self.missed += missed;
        self.late += u64::from(late_ms > period.as_secs_f64() * 100.0);
        self.worst_ms = self.worst_ms.max(late_ms);
        self.lateness.add_ms(late_ms);
    }

    /// The summary at the end, a line each.
    pub fn summary(&self) -> String {
        let p99 = self.lateness.quantile_ms(0.99).unwrap_or(0.0);
        let mut text = format!(
            "{} · lateness p99 {p99:.1} ms, worst {:.1} ms · {} late, {} missed · {} seen",
            counted(self.ticks, "tick"),
            self.worst_ms,
            self.late,
            self.missed,
            counted(self.waits, "wait"),
        );
        for (name, target) in &self.targets {
            if target.gaps() > 0 {
                let reasons: Vec<String> = target.reasons.iter().map(|(reason, count)| format!("{reason} ×{count}")).collect();
                // Writing to a String cannot fail.
                let _ =
                    write!(text, "\n{name}: {} of {} empty: {}", target.gaps(), counted(target.due, "read"), reasons.join(", "));
            }
            if target.resets > 0 {
                let _ = write!(text, "\n{name}: counters reset {}", counted(target.resets, "time"));
            }
            if target.replicas.several() {
                let kept = if target.replicas.keeps_one() { "the counters are those of one of them" } else { "without counters" };
                let _ = write!(
                    text,
                    "\n{name}: several replicas answered at one address, {kept}\nhint: give each its own address: {name}=@FILE, one a line"
                );
            }
        }
        text
    }
}

/// `1 tick`, `2 ticks`.
pub fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// `no answer in 800 ms`.
pub fn silent(waited: Duration) -> String {
    let ms = waited.as_millis();
    match ms {
        0..1_000 => format!("no answer in {ms} ms"),
        1_000..10_000 => format!("no answer in {:.1} s", waited.as_secs_f64()),
        _ => format!("no answer in {} s", waited.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use collectors::api::{Class, Unit};

    fn columns() -> Vec<Gauge> {
        vec![
            Gauge::counter("asked_total", Class::Throughput, Unit::Count, ""),
            Gauge::counter("waited_total", Class::Event, Unit::Count, ""),
            Gauge::new("now", Class::Queue, Unit::Count, ""),
        ]
    }

    #[test]
    fn a_reset_is_noted_once_and_also_across_a_gap() {
        let columns = columns();
        let mut health = TargetHealth::new(&columns);
        let answered = |health: &mut TargetHealth, cells: [Option<f64>; 3]| {
            health.answered(&columns, &mut cells.clone(), &Reading::default()).is_some()
        };
        assert!(!answered(&mut health, [Some(1000.0), None, Some(5.0)]));
        health.gap(1, "refused", "refused");
        assert!(answered(&mut health, [Some(3.0), Some(0.0), Some(0.0)]));
        assert!(!answered(&mut health, [Some(1.0), Some(0.0), Some(9.0)]));
        assert!(!answered(&mut health, [Some(9.0), Some(0.0), Some(9.0)]));
        assert_eq!((health.resets, health.gaps()), (1, 1));
    }

    #[test]
    fn a_restart_that_the_target_tells_is_noted_once_and_in_its_own_words() {
        let columns = columns();
        let mut health = TargetHealth::new(&columns);
        let told = Reading { restarted: Some("restarted, counters begin again".to_owned()), ..Reading::default() };
        assert_eq!(health.answered(&columns, &mut [Some(1000.0), None, None], &Reading::default()), None);
        assert_eq!(health.answered(&columns, &mut [Some(3.0), None, None], &told), told.restarted);
        assert_eq!(health.answered(&columns, &mut [Some(1.0), None, None], &Reading::default()), None);
        assert_eq!(health.resets, 1);
    }

    #[test]
    fn of_replicas_that_take_turns_one_is_kept_and_the_reset_is_taken_back() {
        let columns = columns();
        let mut health = TargetHealth::new(&columns);
        let mut read = |process: &str, asked: f64| {
            let mut cells = [Some(asked), None, Some(2.0)];
            let reading = Reading { process: Some(process.to_owned()), ..Reading::default() };
            let note = health.answered(&columns, &mut cells, &reading);
            (note, cells[0], cells[2])
        };
        assert_eq!(read("a", 1000.0), (None, Some(1000.0), Some(2.0)));
        assert_eq!(read("b", 200.0).0.as_deref(), Some("counters reset"));
        let (note, asked, busy) = read("a", 1010.0);
        assert!(note.unwrap().ends_with("from here on, 1 reset noted before was none"));
        assert_eq!((asked, busy), (None, Some(2.0)), "gauges are kept");
        assert_eq!(read("b", 210.0), (None, Some(210.0), Some(2.0)));
        assert_eq!(read("a", 1020.0), (None, None, Some(2.0)));
        let summary = Health { targets: vec![("app".to_owned(), health)], ..Health::default() }.summary();
        assert!(summary.contains("app: several replicas answered at one address") && !summary.contains("reset"), "{summary}");
    }

    #[test]
    fn a_small_dip_of_a_counter_and_a_falling_gauge_are_no_reset() {
        let columns = columns();
        let mut health = TargetHealth::new(&columns);
        assert_eq!(health.answered(&columns, &mut [Some(1000.0), None, Some(5.0)], &Reading::default()), None);
        assert_eq!(health.answered(&columns, &mut [Some(990.0), None, Some(0.0)], &Reading::default()), None);
    }

    #[test]
    fn the_same_reason_is_shortened_until_an_answer_comes() {
        let columns = columns();
        let mut health = TargetHealth::new(&columns);
        let reason = "connect db:3306: connection refused";
        assert_eq!(health.gap(7, reason, "unreachable"), reason);
        assert_eq!(health.gap(8, reason, "unreachable"), "unreachable, as at tick 7");
        health.answered(&columns, &mut [None, None, None], &Reading::default());
        assert_eq!(health.gap(10, reason, "unreachable"), reason);
    }

    #[test]
    fn the_summary_counts_late_and_missed_ticks_and_names_gaps() {
        let mut health = Health::default();
        health.targets.push(("db".to_owned(), TargetHealth::new(&[])));
        health.targets[0].1.gap(0, "connect: refused", "unreachable");
        health.tick(0, 1.0, Duration::from_millis(100));
        health.tick(3, 50.0, Duration::from_millis(100));
        let text = health.summary();
        assert!(text.starts_with("2 ticks · lateness p99 ") && text.contains("1 late, 3 missed"), "{text}");
        assert!(text.contains("db: 1 of 1 read empty: unreachable ×1"), "{text}");
    }
}
