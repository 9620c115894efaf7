//! hey, `-o csv`: one line an answered request, with its start in seconds since the run's. Errors are not in it (hey#117),
//! and it stops at a million rows. What hey prints (and oha's text, which is made after it) is a rung.

use super::input::Input;
use super::outcome::is_good_status;
use super::prose::{leading, number_after, time_after};
use super::run::Run;
use super::steps::UNNAMED;
use super::table::Table;
use super::{Head, Outcome, Reader, caveat};
use crate::text::InputError;
use crate::timeline::Interval;

/// hey keeps no more results.
const MOST_ROWS: u64 = 1_000_000;

/// hey's CSV.
pub(super) struct Csv;
/// What hey prints.
pub(super) struct Text;

impl Reader for Csv {
    fn name(&self) -> &'static str {
        "hey"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["hey-csv"]
    }

    fn about(&self) -> &'static str {
        "hey -o csv URL > FILE"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("response-time,")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("hey");
        run.closed_loop();
        run.caveat(caveat::FAILURES_MISSING);
        run.caveat(caveat::ASSERTION_FREE);
        let origin = run.origin_us(input);
        let mut table = Table::with_header(input, b',')?.dropping_tail();
        let (start, time, status) =
            (table.needed(input, "offset")?, table.needed(input, "response-time")?, table.needed(input, "status-code")?);
        let id = run.steps.id(UNNAMED.as_bytes());
        while let Some(line) = table.next(input, run)? {
            let (Some(start), Some(time)) = (table.number(run, line, start), table.number(run, line, time)) else { continue };
            let code = table.fields.get(status);
            let outcome = run.judge(is_good_status(code), code, b"");
            run.started(origin + (start * 1e6).round() as i64, time * 1e3, id, outcome);
        }
        if run.rows >= MOST_ROWS {
            run.caveat(caveat::ROW_LIMIT);
        }
        Ok(())
    }
}

impl Reader for Text {
    fn name(&self) -> &'static str {
        "hey-text"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["oha-text"]
    }

    fn about(&self) -> &'static str {
        "what hey or oha prints: a rung"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("Summary:") && head.has("Requests/sec:") && head.has("Slowest:")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        let text = input.text()?;
        run.driver(if text.contains("Success rate:") { "oha" } else { "hey" });
        run.closed_loop();
        run.caveat(caveat::PERCENTILES_COARSE);
        run.caveat(caveat::ASSERTION_FREE);
        let mut counts = [0.0; 3];
        let mut section = "";
        for line in text.lines() {
            if !line.starts_with(' ') && line.contains("distribution") {
                section = line;
            }
            // `[200]  1936 responses`, `[12]  Get "http://…": connection refused`
            let Some((inside, rest)) = line.trim().strip_prefix('[').and_then(|rest| rest.split_once(']')) else { continue };
            let (outcome, count) = if section.starts_with("Status code") {
                (run.judge(is_good_status(inside.as_bytes()), inside.as_bytes(), b""), leading(rest))
            } else if section.starts_with("Error") {
                let own_stop = rest.contains("aborted due to deadline");
                (if own_stop { Outcome::Aborted } else { run.judge(false, b"", rest.as_bytes()) }, leading(inside))
            } else {
                continue;
            };
            if let Some(n) = [Outcome::Ok, Outcome::Failed, Outcome::Refused].iter().position(|one| *one == outcome) {
                counts[n] += count.unwrap_or(0.0);
            }
        }
        let percentile = |q: &str| [format!(" {q}% in"), format!(" {q}.00% in")].iter().find_map(|label| time_after(&text, label));
        let dur_ms = time_after(&text, "Total:").unwrap_or(0.0);
        let [ok, failed, refused] = counts;
        if ok + failed + refused == 0.0 && number_after(&text, "Requests/sec:").is_none() {
            return Err(input.error("has no count of answers: was it cut?"));
        }
        let row = Interval {
            dur_ms,
            offered: Some(ok + failed + refused),
            started: Some(ok + failed + refused),
            ok: Some(ok),
            failed: Some(failed),
            refused: Some(refused),
            p50_ms: percentile("50"),
            p95_ms: percentile("95"),
            p99_ms: percentile("99"),
            max_ms: time_after(&text, "Slowest:"),
            ..Interval::default()
        };
        run.rung(input, None, [row]);
        Ok(())
    }
}
