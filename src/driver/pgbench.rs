//! pgbench `-l`: one line a transaction, stamped at its END:
//! `client transaction time_us script epoch_s epoch_us [lag_us] [retries]`.
//!
//! With `-R` the time counts from the scheduled start and the lag is how late the real one was: the site's time is their
//! difference. Of seven cells the last is the lag (`-R`) or the retries (`--max-tries`): retries are mostly 0, a lag hardly
//! ever is. The word `skipped` in place of the time is a transaction never sent (`--latency-limit`); `failed`,
//! `serialization` and `deadlock` are failures. Each thread writes a file of its own: give them all.

use super::input::Input;
use super::run::Run;
use super::table::Table;
use super::{Clock, Head, Outcome, Reader, Request};
use crate::text::InputError;
use crate::timeline::Offered;

/// pgbench's transaction log.
pub(super) struct Log;

impl Reader for Log {
    fn name(&self) -> &'static str {
        "pgbench"
    }

    fn about(&self) -> &'static str {
        "pgbench -l: pgbench_log.PID and the other threads' files"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        let cells: Vec<&[u8]> = head.line.split(|byte| *byte == b' ').collect();
        let digits = |cell: &[u8]| !cell.is_empty() && cell.iter().all(u8::is_ascii_digit);
        (6..=8).contains(&cells.len())
            && cells.iter().enumerate().all(|(n, cell)| n == 2 || digits(cell.strip_prefix(b"-").unwrap_or(cell)))
            && (digits(cells[2]) || is_word(cells[2]))
            && cells[4].len() == 10
            && cells[5].len() <= 6
            && cells[0].len() < 9
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("pgbench");
        let lag = lag_column(input.head()?);
        if lag.is_some() {
            run.offered(Offered::Scheduled);
        } else {
            run.closed_loop();
        }
        let mut table = Table::new(b' ', 6).without_quotes().dropping_tail();
        let mut clock = Clock::default();
        let (mut stamp, mut step) = (Vec::new(), Vec::new());
        while let Some(line) = table.next(input, run)? {
            let cells = &table.fields;
            stamp.clear();
            stamp.extend_from_slice(cells.get(4));
            stamp.push(b'.');
            // Microseconds stand without their leading zeros.
            stamp.extend(std::iter::repeat_n(b'0', 6_usize.saturating_sub(cells.get(5).len())));
            stamp.extend_from_slice(cells.get(5));
            let Some(end_us) = run.stamp(input, &mut clock, &stamp, line)? else { continue };
            step.clear();
            step.extend_from_slice(b"script ");
            step.extend_from_slice(cells.get(3));
            let id = run.steps.id(&step);
            let lag_us = cells.number(lag).unwrap_or(0.0);
            let word = cells.get(2);
            if is_word(word) {
                let outcome = if word == b"skipped" { Outcome::Dropped } else { run.judge(false, b"", word) };
                run.request(Request { start_us: end_us, end_us, ms: 0.0, step: id, outcome });
                if lag.is_some() {
                    run.cells.offered(end_us - lag_us as i64, id);
                }
                continue;
            }
            let Some(time_us) = table.number(run, line, 2) else { continue };
            let ms = (time_us - lag_us) / 1e3;
            let outcome = run.judge(true, b"", b"");
            run.ended(end_us, ms, id, outcome);
            if lag.is_some() {
                run.request_waited(id, lag_us / 1e3, ms);
                run.cells.offered(end_us - time_us as i64, id);
            }
        }
        Ok(())
    }
}

fn is_word(cell: &[u8]) -> bool {
    matches!(cell, b"skipped" | b"failed" | b"serialization" | b"deadlock")
}

/// Where the lag stands, if it is there.
fn lag_column(head: &[u8]) -> Option<usize> {
    let (mut rows, mut zeros) = (0, 0);
    for line in head.split(|byte| *byte == b'\n') {
        let cells: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        match cells.len() {
            8 => return Some(6),
            7 => {
                rows += 1;
                zeros += usize::from(cells[6] == b"0");
            }
            _ => {}
        }
    }
    (rows > 0 && zeros * 2 < rows).then_some(6)
}
