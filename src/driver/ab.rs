//! `ab` (Apache's benchmark), `-g FILE`: one line a request with its start in whole seconds, sorted by duration, without a status. What
//! ab prints is a rung; `-e` has percentiles without counts and is refused.

use super::input::Input;
use super::prose::number_after;
use super::run::Run;
use super::steps::UNNAMED;
use super::table::Table;
use super::{Clock, Head, Reader, Request, caveat};
use crate::driver::Outcome;
use crate::text::InputError;
use crate::timeline::Interval;

/// ab's gnuplot file.
pub(super) struct Gnuplot;
/// What ab prints.
pub(super) struct Text;

impl Reader for Gnuplot {
    fn name(&self) -> &'static str {
        "ab"
    }

    fn about(&self) -> &'static str {
        "ab -g FILE"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("starttime\tseconds\t")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("ab");
        run.closed_loop();
        run.caveat(caveat::OUTCOMES_UNKNOWN);
        run.caveat(caveat::ASSERTION_FREE);
        let mut table = Table::with_header(input, b'\t')?.without_quotes().dropping_tail();
        let (seconds, total) = (table.needed(input, "seconds")?, table.needed(input, "ttime")?);
        let mut clock = Clock::default();
        let id = run.steps.id(UNNAMED.as_bytes());
        while let Some(line) = table.next(input, run)? {
            let Some(us) = run.stamp(input, &mut clock, table.fields.get(seconds), line)? else { continue };
            let Some(ms) = table.number(run, line, total) else { continue };
            // Within a whole second the middle is the best guess.
            let start_us = us + 500_000;
            run.request(Request { start_us, end_us: start_us + (ms * 1e3) as i64, ms, step: id, outcome: Outcome::Ok });
        }
        run.cells.coarse = true;
        Ok(())
    }
}

impl Reader for Text {
    fn name(&self) -> &'static str {
        "ab-text"
    }

    fn about(&self) -> &'static str {
        "what ab prints: a rung"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("This is ApacheBench") || (head.has("Complete requests:") && head.has("Time taken for tests:"))
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("ab");
        run.closed_loop();
        run.latency = "all";
        run.caveat(caveat::PERCENTILES_COARSE);
        run.caveat(caveat::ASSERTION_FREE);
        let text = input.text()?;
        let of = |label: &str| number_after(&text, label);
        let (Some(complete), Some(seconds)) = (of("Complete requests:"), of("Time taken for tests:")) else {
            return Err(input.error("has no count of complete requests, or no time: ab was stopped before it printed them"));
        };
        // Answers of another length count as failed in ab, and those with a status past 299 apart.
        let failed = of("Failed requests:").unwrap_or(0.0).max(of("Non-2xx responses:").unwrap_or(0.0));
        let row = Interval {
            dur_ms: seconds * 1e3,
            offered: Some(complete),
            started: Some(complete),
            ok: Some((complete - failed).max(0.0)),
            failed: Some(failed),
            p50_ms: of("  50%"),
            p95_ms: of("  95%"),
            p99_ms: of("  99%"),
            max_ms: of(" 100%"),
            vus: of("Concurrency Level:"),
            ..Interval::default()
        };
        run.rung(input, None, [row]);
        Ok(())
    }
}
