//! One tick's row: what every target gave, what is noted of it, and what the gates make of it.

use super::super::collect::Outcome;
use super::super::health::{counted, silent};
use super::super::schedule::Tick;
use super::Run;
use collectors::api::FaultKind;
use std::io;

impl Run<'_> {
    /// Reads every target that is due and writes the row.
    pub(super) async fn tick(&mut self, tick: &Tick) -> io::Result<()> {
        let late_ms = tick.at.elapsed().as_secs_f64() * 1e3;
        let mut notes = Vec::new();
        if tick.missed > 0 {
            notes.push(format!("{} missed", counted(tick.missed, "tick")));
        }
        let moved = (self.unix_ms)() - (tick.unix_ms as f64 + late_ms);
        if (moved - self.clock_moved).abs() > 50.0 {
            notes.push(format!("the machine's clock was set by {:+.3} s", (moved - self.clock_moved) / 1e3));
            self.clock_moved = moved;
        }
        let outcomes = self.collect.tick(tick, &self.schedule).await;
        self.row.fill(None);
        let mut up = 0;
        for (n, outcome) in outcomes.into_iter().enumerate() {
            up += usize::from(self.outcome(n, tick, outcome, &mut notes)?);
        }
        let at_s = (tick.unix_ms as f64 + late_ms) / 1e3;
        let what = self.broken.take().or_else(|| self.stop.row(at_s, &self.row, self.config.tick));
        if let Some(what) = what {
            notes.push(clean(&what));
            self.progress.end(self.say);
            self.say.trouble(&what);
        }
        self.files.ticks.row(tick.number, tick.unix_ms, late_ms, &self.row, &notes)?;
        self.health.tick(tick.missed, late_ms, self.config.tick);
        self.progress.show(self.say, &self.health, &self.phase, self.schedule.t0().elapsed(), up);
        Ok(())
    }

    /// Fills a target's cells; whether it is up.
    fn outcome(&mut self, n: usize, tick: &Tick, outcome: Outcome, notes: &mut Vec<String>) -> io::Result<bool> {
        let (columns, (instance, health)) = (&self.columns[n], &mut self.health.targets[n]);
        let mut note = |text: &str| notes.push(format!("{instance}: {}", clean(&self.say.scrub(text))));
        let (took, up) = match outcome {
            Outcome::NotDue => return Ok(true),
            Outcome::Answered { took, reading, first } => {
                if let Some(support) = first {
                    note(&format!("answers now, {} {}", support.product, support.version));
                }
                let unknown = columns.fill(&reading, &mut self.row);
                if !unknown.is_empty() && !std::mem::replace(&mut self.unknown_noted[n], true) {
                    note(&format!("without a column, since not there at the start: {}", unknown.join(", ")));
                }
                if let Some(text) = health.answered(&columns.gauges, columns.cells(&mut self.row), &reading) {
                    note(&text);
                }
                reading.notes.iter().for_each(|text| note(text));
                self.health.waits += reading.waits.len() as u64;
                self.files.waits.rows(tick.number, tick.unix_ms, instance, &reading.waits)?;
                (took, true)
            }
            Outcome::Failed { took, fault } => {
                note(&health.gap(tick.number, &fault.message, kind(fault.kind)));
                (took, false)
            }
            Outcome::Silent { waited } => {
                note(&health.gap(tick.number, &silent(waited), "no answer"));
                (waited, false)
            }
        };
        self.row[columns.up()] = Some(f64::from(u8::from(up)));
        self.row[columns.up() + 1] = Some((took.as_secs_f64() * 1e6).round() / 1e3);
        Ok(up)
    }
}

fn kind(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Config => "configuration",
        FaultKind::Unreachable => "unreachable",
        FaultKind::Refused => "refused",
        FaultKind::Denied => "denied",
        FaultKind::Nonsense => "nonsense",
    }
}

/// A note is one line, not too long, and `;` stands between notes only.
fn clean(text: &str) -> String {
    const LONGEST: usize = 240;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ").replace("; ", ", ");
    if line.chars().count() <= LONGEST { line } else { line.chars().take(LONGEST).chain(['…']).collect() }
}
