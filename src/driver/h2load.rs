//! h2load, `--log-file=FILE`: one line a request, start in microseconds, status (-1 is a stream that failed), microseconds.
//! Later versions may add columns. What h2load prints is a rung.

use super::input::Input;
use super::outcome::is_good_status;
use super::prose::{number_before, time_after, time_ms};
use super::run::Run;
use super::steps::UNNAMED;
use super::table::Table;
use super::{Clock, Head, Reader, caveat};
use crate::text::InputError;
use crate::timeline::Interval;

/// h2load's log.
pub(super) struct Log;
/// What h2load prints.
pub(super) struct Text;

impl Reader for Log {
    fn name(&self) -> &'static str {
        "h2load"
    }

    fn about(&self) -> &'static str {
        "h2load --log-file=FILE"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        let cells: Vec<&[u8]> = head.line.split(|byte| *byte == b'\t').collect();
        let digits = |cell: &[u8]| !cell.is_empty() && cell.iter().all(u8::is_ascii_digit);
        cells.len() >= 3
            && cells[0].len() == 16
            && digits(cells[0])
            && digits(cells[1].strip_prefix(b"-").unwrap_or(cells[1]))
            && digits(cells[2])
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("h2load");
        run.closed_loop();
        run.caveat(caveat::ASSERTION_FREE);
        let mut table = Table::new(b'\t', 3).without_quotes().dropping_tail();
        let mut clock = Clock::default();
        let id = run.steps.id(UNNAMED.as_bytes());
        while let Some(line) = table.next(input, run)? {
            let Some(us) = run.stamp(input, &mut clock, table.fields.get(0), line)? else { continue };
            let Some(time) = table.number(run, line, 2) else { continue };
            let code = table.fields.get(1);
            let outcome = run.judge(is_good_status(code), code, b"");
            run.started(us, time / 1e3, id, outcome);
        }
        Ok(())
    }
}

impl Reader for Text {
    fn name(&self) -> &'static str {
        "h2load-text"
    }

    fn about(&self) -> &'static str {
        "what h2load prints: a rung"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.has("\nfinished in ") && head.has("\nrequests: ") && head.has("succeeded")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("h2load");
        run.closed_loop();
        run.caveat(caveat::MEAN_ONLY);
        run.caveat(caveat::ASSERTION_FREE);
        let text = input.text()?;
        let of = |label: &str| number_before(&text, label);
        let Some(done) = of(" done,") else { return Err(input.error("has no count of requests")) };
        let ok = (of(" 2xx,").unwrap_or(0.0)) + of(" 3xx,").unwrap_or(0.0);
        // `time for request:    46.06ms    143.60ms     85.94ms …`: least, longest, mean.
        let longest = text
            .lines()
            .find_map(|line| line.strip_prefix("time for request:"))
            .and_then(|rest| time_ms(rest.split_whitespace().nth(1)?));
        let row = Interval {
            dur_ms: time_after(&text, "finished in").unwrap_or(0.0),
            offered: Some(done),
            started: of(" started,"),
            ok: Some(ok),
            failed: Some(done - ok),
            max_ms: longest,
            ..Interval::default()
        };
        run.rung(input, None, [row]);
        Ok(())
    }
}
