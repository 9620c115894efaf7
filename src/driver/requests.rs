//! PREFIX.requests.tsv: one line a request, for drivers of one's own. This page is the format.
//!
//! ```text
//! #whatgives requests 1
//! start_us  step  ms  wall_ms  outcome  code  sched_us
//! ```
//!
//! Tab between cells, no quoting, escapes of [`crate::text`]. `start_us` is when it was sent, microseconds since 1970; `ms`
//! the site's time; `wall_ms` adds what the request waited in the driver; `sched_us` when it should have been sent.
//! `outcome`: `ok`, `refused_<why>`, `fail_http`, `fail_transport`, `timeout`, `dropped`, `aborted`; anything else that
//! begins with `fail` is failed. Without `start_us` the file gives figures by step and no timeline.

use super::fields::Fields;
use super::input::Input;
use super::run::{Kind, Run};
use super::{Clock, Head, Outcome, Reader, Request, caveat};
use crate::hist::Hist;
use crate::text::{InputError, unescape};
use crate::timeline::{Interval, Offered};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The first line of the file.
const FIRST_LINE: &str = "#whatgives requests 1";

/// The requests form.
pub(super) struct Requests;

impl Reader for Requests {
    fn name(&self) -> &'static str {
        "requests"
    }

    fn about(&self) -> &'static str {
        "whatgives' own form of one line a request"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        if head.starts_with(FIRST_LINE) {
            return true;
        }
        let mut fields = Fields::default();
        fields.split_plain(head.line, b'\t');
        ["step", "ms", "outcome"].iter().all(|name| fields.column(&[name]).is_some())
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("requests");
        let mut fields = Fields::default();
        let mut line = Vec::new();
        let mut number_of_header = 0;
        while let Some(next) = input.line()? {
            number_of_header = next.number;
            if !next.bytes.starts_with(b"#") && !next.bytes.is_empty() {
                fields.split_plain(next.bytes, b'\t');
                break;
            }
        }
        let column = |name: &str| fields.column(&[name]);
        let (start, step, ms, wall) = (column("start_us"), column("step"), column("ms"), column("wall_ms"));
        let (outcome, code, sched) = (column("outcome"), column("code"), column("sched_us"));
        if ms.or(wall).is_none() {
            return Err(input.error("the line of column names has neither ms nor wall_ms").at(number_of_header));
        }
        let width = fields.len();
        let (mut clock, mut planned) = (Clock::default(), Clock::default());
        let mut totals: BTreeMap<u16, Totals> = BTreeMap::new();
        while let Some(next) = input.line()? {
            if next.bytes.is_empty() || next.bytes.starts_with(b"#") {
                continue;
            }
            let (number_of_line, whole) = (next.number, next.whole);
            line.clear();
            line.extend_from_slice(next.bytes);
            fields.split_plain(&line, b'\t');
            if !whole && fields.len() != width {
                run.caveat(caveat::CUT_LOG);
                break;
            }
            run.rows += 1;
            if fields.len() != width {
                run.bad_row(number_of_line, format!("expected {width} cells, found {}", fields.len()));
                continue;
            }
            let Some(said) = outcome_of(fields.of(outcome)) else {
                run.bad_row(number_of_line, format!("not an outcome: {:?}", String::from_utf8_lossy(fields.of(outcome))));
                continue;
            };
            let code = fields.of(code);
            let became = match said {
                Outcome::Ok | Outcome::Failed => match run.judge(said == Outcome::Ok, code, fields.of(outcome)) {
                    // The form has a word of its own for a refusal.
                    Outcome::Refused if run.options.outcomes.is_empty() => said,
                    other => other,
                },
                other => other,
            };
            let time = fields.number(ms).or_else(|| fields.number(wall));
            let Some(time) = time.or((became == Outcome::Dropped).then_some(0.0)) else {
                run.bad_row(number_of_line, "has no time");
                continue;
            };
            let name = match fields.of(step) {
                name if name.contains(&b'\\') => Cow::Owned(unescape(&String::from_utf8_lossy(name)).into_bytes()),
                name => Cow::Borrowed(name),
            };
            let id = run.steps.id(&name);
            let mut waited = fields.number(wall).zip(fields.number(ms)).map(|(wall, ms)| (wall - ms).max(0.0));
            let scheduled = match fields.of(sched) {
                b"" => None,
                cell => run.stamp(input, &mut planned, cell, number_of_line)?,
            };
            match (start, fields.of(start)) {
                (None, _) => totals.entry(id).or_default().add(became, time),
                (Some(_), b"") if became == Outcome::Dropped && scheduled.is_some() => {
                    let us = scheduled.unwrap_or_default();
                    run.request(Request { start_us: us, end_us: us, ms: 0.0, step: id, outcome: became });
                }
                (Some(_), cell) => {
                    let Some(us) = run.stamp(input, &mut clock, cell, number_of_line)? else { continue };
                    run.started(us, time, id, became);
                    // Some drivers count wall_ms from the schedule, some from the send: the longer of the two was waited.
                    let late = scheduled.map(|planned| ((us - planned) as f64 / 1e3).max(0.0));
                    waited = waited.into_iter().chain(late).reduce(f64::max);
                }
            }
            if let Some(waited) = waited {
                run.request_waited(id, waited, time);
            }
            if let Some(us) = scheduled {
                run.cells.offered(us, id);
            }
        }
        run.offered(if sched.is_some() { Offered::Scheduled } else { Offered::Achieved });
        if sched.is_none() {
            run.caveat(caveat::OPEN_UNKNOWN);
        }
        run.cells.coarse |= clock.is_coarse();
        if !totals.is_empty() {
            run.kind = Kind::Summary;
            run.caveat(caveat::DURATION_UNKNOWN);
            let names = run.steps.names();
            run.files.push(totals.into_iter().map(|(id, totals)| totals.row(&names[usize::from(id)])).collect());
        }
        Ok(())
    }
}

/// What an outcome's word says; `None` if it is no such word.
fn outcome_of(word: &[u8]) -> Option<Outcome> {
    Some(match word {
        b"" | b"ok" => Outcome::Ok,
        b"dropped" => Outcome::Dropped,
        b"aborted" => Outcome::Aborted,
        b"timeout" => Outcome::Failed,
        word if word.starts_with(b"refused") => Outcome::Refused,
        word if word.starts_with(b"fail") => Outcome::Failed,
        _ => return None,
    })
}

#[derive(Default)]
struct Totals {
    counts: [f64; 4],
    hist: Hist,
    max_ms: f64,
}

impl Totals {
    fn add(&mut self, outcome: Outcome, ms: f64) {
        match outcome {
            Outcome::Ok => {
                self.counts[0] += 1.0;
                self.hist.add_ms(ms);
                self.max_ms = self.max_ms.max(ms);
            }
            Outcome::Failed => self.counts[1] += 1.0,
            Outcome::Refused => self.counts[2] += 1.0,
            Outcome::Dropped => self.counts[3] += 1.0,
            Outcome::Aborted => {}
        }
    }

    fn row(self, step: &str) -> Interval {
        let [ok, failed, refused, dropped] = self.counts;
        Interval {
            step: step.to_owned(),
            started: Some(ok + failed + refused),
            ok: Some(ok),
            failed: Some(failed),
            refused: Some(refused),
            dropped: Some(dropped),
            max_ms: (ok > 0.0).then_some(self.max_ms),
            ..super::aggregate::percentiles(self.hist)
        }
    }
}
