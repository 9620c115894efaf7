//! siege: siege.log has one line a run, stamped in local time at its END: rungs of a ladder. `siege -v` prints a line a
//! request, without a time.

use super::aggregate::percentiles;
use super::input::Input;
use super::outcome::is_good_status;
use super::prose::{time_ms, without_colours};
use super::run::{Kind, Run};
use super::table::Table;
use super::{Clock, Head, Outcome, Reader, caveat};
use crate::hist::Hist;
use crate::text::InputError;
use crate::timeline::{ALL, Interval};

/// siege.log.
pub(super) struct Log;
/// What `siege -v` prints.
pub(super) struct Verbose;

impl Reader for Log {
    fn name(&self) -> &'static str {
        "siege"
    }

    fn about(&self) -> &'static str {
        "siege --log=FILE: a rung a run"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        let line = String::from_utf8_lossy(head.line);
        line.trim_start().starts_with("Date & Time,") && line.contains("Trans")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("siege");
        run.closed_loop();
        run.caveat(caveat::MEAN_ONLY);
        run.caveat(caveat::ASSERTION_FREE);
        let mut table = Table::with_header(input, b',')?.without_quotes();
        let (date, elapsed, okay) =
            (table.needed(input, "Date & Time")?, table.needed(input, "Elap Time")?, table.needed(input, "OKAY")?);
        let (failed, users) = (table.fields.column(&["Failed"]), table.fields.column(&["Concurrent"]));
        let mut clock = Clock::new(run.options.zone.clone());
        while let Some(line) = table.next(input, run)? {
            let Some(us) = run.stamp(input, &mut clock, table.fields.get(date), line)? else { continue };
            let (Some(seconds), Some(ok)) = (table.number(run, line, elapsed), table.number(run, line, okay)) else { continue };
            let broken = table.fields.number(failed).unwrap_or(0.0);
            let row = Interval {
                dur_ms: seconds * 1e3,
                offered: Some(ok + broken),
                ok: Some(ok),
                failed: Some(broken),
                vus: table.fields.number(users),
                ..Interval::default()
            };
            run.rung(input, Some(us / 1000 - (seconds * 1e3) as i64), [row]);
            run.rows -= 1;
        }
        if clock.zone_assumed {
            run.caveat(caveat::ZONE_ASSUMED);
        }
        Ok(())
    }
}

impl Reader for Verbose {
    fn name(&self) -> &'static str {
        "siege-verbose"
    }

    fn about(&self) -> &'static str {
        "what siege -v prints: a summary"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.has(" secs:") && head.has(" bytes ==> ")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("siege");
        run.closed_loop();
        run.caveat(caveat::DURATION_UNKNOWN);
        run.caveat(caveat::ASSERTION_FREE);
        let (mut hist, mut counts, mut longest) = (Hist::default(), [0.0; 3], 0.0_f64);
        loop {
            let (number, text) = {
                let Some(line) = input.line()? else { break };
                (line.number, without_colours(&String::from_utf8_lossy(line.bytes)))
            };
            // `HTTP/1.1 200     0.03 secs:      12 bytes ==> GET  /events/8812/seats`
            if !text.trim_start().starts_with("HTTP/") {
                continue;
            }
            run.rows += 1;
            let mut words = text.split_whitespace().skip(1);
            let (Some(code), Some(ms)) = (words.next(), words.next().and_then(time_ms)) else {
                run.bad_row(number, "has no status or no time");
                continue;
            };
            match run.judge(is_good_status(code.as_bytes()), code.as_bytes(), b"") {
                Outcome::Ok => {
                    counts[0] += 1.0;
                    hist.add_ms(ms);
                    longest = longest.max(ms);
                }
                Outcome::Refused => counts[2] += 1.0,
                _ => counts[1] += 1.0,
            }
        }
        let [ok, failed, refused] = counts;
        let row = Interval {
            step: ALL.to_owned(),
            started: Some(ok + failed + refused),
            ok: Some(ok),
            failed: Some(failed),
            refused: Some(refused),
            max_ms: (ok > 0.0).then_some(longest),
            ..percentiles(hist)
        };
        run.kind = Kind::Summary;
        run.rung(input, None, [row]);
        Ok(())
    }
}
