//! Any CSV, with its columns named by the user: one row a request.

use super::input::Input;
use super::outcome::is_good_status;
use super::run::Run;
use super::steps::UNNAMED;
use super::table::Table;
use super::{Clock, Head, Reader, caveat};
use crate::text::InputError;
use crate::timeline::Offered;
use std::str::FromStr;

/// Which column of a CSV says what. One of `start` and `end`, and `time`, are needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// When a request was sent: epoch in any unit, or a date.
    pub start: Option<String>,
    /// When it ended.
    pub end: Option<String>,
    /// How long it took, and in which unit: `s`, `ms`, `us`, `ns`.
    pub time: Option<(String, String)>,
    /// Its status code.
    pub code: Option<String>,
    /// Whether it was good: `true`, `1`, `ok`, `pass`, `success` are; without the column the code decides.
    pub ok: Option<String>,
    /// A message that `--outcome` rules look at.
    pub message: Option<String>,
    /// What names the step.
    pub step: Option<String>,
    /// Visitors at that moment.
    pub vus: Option<String>,
    /// When it should have been sent.
    pub scheduled: Option<String>,
    /// What stands between cells; comma, tab, semicolon or bar, whichever the header has most of, where not given.
    pub delimiter: Option<char>,
}

impl FromStr for Columns {
    type Err = String;

    /// `start=ts,time=ms:took,code=status,step=route`.
    fn from_str(text: &str) -> Result<Self, String> {
        let hint = "expected KEY=COLUMN joined by commas, for example start=ts,time=ms:took,code=status,step=route";
        let mut columns = Self::default();
        for part in text.split(',') {
            let (key, value) = part.split_once('=').ok_or_else(|| format!("not a column: {part:?}; {hint}"))?;
            let some = Some(value.trim().to_owned());
            match key.trim() {
                "start" => columns.start = some,
                "end" => columns.end = some,
                "time" => {
                    let (unit, name) = value.split_once(':').ok_or_else(|| format!("the time has no unit: {part:?}; {hint}"))?;
                    if unit_in_ms(unit).is_none() {
                        return Err(format!("not a unit: {unit:?}; one of s, ms, us, ns"));
                    }
                    columns.time = Some((name.trim().to_owned(), unit.to_owned()));
                }
                "code" => columns.code = some,
                "ok" => columns.ok = some,
                "message" => columns.message = some,
                "step" => columns.step = some,
                "vus" => columns.vus = some,
                "scheduled" => columns.scheduled = some,
                "delimiter" => columns.delimiter = if value == "tab" { Some('\t') } else { value.chars().next() },
                other => return Err(format!("no column is called {other:?}; {hint}")),
            }
        }
        if columns.time.is_none() || (columns.start.is_none() && columns.end.is_none()) {
            return Err(format!("a time, and a start or an end, are needed: {text:?}; {hint}"));
        }
        Ok(columns)
    }
}

fn unit_in_ms(unit: &str) -> Option<f64> {
    match unit {
        "s" => Some(1e3),
        "ms" => Some(1.0),
        "us" => Some(1e-3),
        "ns" => Some(1e-6),
        _ => None,
    }
}

/// Any CSV.
pub(super) struct Csv;

impl Reader for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn about(&self) -> &'static str {
        "any CSV with a header, its columns named with --driver-columns start=…,time=ms:…"
    }

    fn sniff(&self, _: &Head<'_>) -> bool {
        // Never told by its look: it is read so only where the user named its columns.
        false
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        let Some(columns) = run.options.columns.clone() else {
            return Err(input
                .error("is to be read as a CSV, but its columns are not named")
                .hint("--driver-columns start=ts,time=ms:took,code=status,step=route"));
        };
        run.driver("csv");
        let delimiter = match columns.delimiter {
            Some(c) => u8::try_from(c).map_err(|_| input.error(format!("the delimiter {c:?} is no single byte")))?,
            None => likeliest(Head::of(input.head()?).line),
        };
        let mut table = Table::with_header(input, delimiter)?;
        let find = |name: &Option<String>| match name {
            None => Ok(None),
            Some(name) => table.needed(input, name).map(Some),
        };
        let (start, end, code, ok) = (find(&columns.start)?, find(&columns.end)?, find(&columns.code)?, find(&columns.ok)?);
        let (message, step, vus, scheduled) =
            (find(&columns.message)?, find(&columns.step)?, find(&columns.vus)?, find(&columns.scheduled)?);
        let (time, factor) = match &columns.time {
            Some((name, unit)) => (table.needed(input, name)?, unit_in_ms(unit).unwrap_or(1.0)),
            None => return Err(input.error("no column of the time is named")),
        };
        let Some(stamp) = start.or(end) else { return Err(input.error("neither a start nor an end is named")) };
        let by: Vec<(String, Option<usize>)> =
            run.options.step_by.fields().into_iter().map(|name| (name.to_owned(), table.fields.column(&[name]))).collect();
        let zone = run.options.zone.clone();
        let (mut clock, mut planned, mut name) = (Clock::new(zone.clone()), Clock::new(zone), Vec::new());
        while let Some(line) = table.next(input, run)? {
            let cells = &table.fields;
            let Some(us) = run.stamp(input, &mut clock, cells.get(stamp), line)? else { continue };
            let Some(time) = table.number(run, line, time) else { continue };
            let us = if clock.is_coarse() { us + 500_000 } else { us };
            let status = cells.of(code);
            let good = match ok {
                Some(ok) => [&b"true"[..], b"1", b"ok", b"pass", b"passed", b"success", b"yes"]
                    .iter()
                    .any(|word| cells.get(ok).eq_ignore_ascii_case(word)),
                None => code.is_none() || is_good_status(status),
            };
            run.options.step_by.of(&mut name, |field| match by.iter().find(|(known, _)| known == field) {
                Some((_, column)) => cells.of(*column),
                None if step.is_none() => UNNAMED.as_bytes(),
                None => cells.of(step),
            });
            let id = run.steps.id(&name);
            let outcome = run.judge(good, status, cells.of(message));
            if start.is_some() {
                run.started(us, time * factor, id, outcome);
            } else {
                run.ended(us, time * factor, id, outcome);
            }
            if let Some(users) = cells.number(vus) {
                run.cells.vus(us, run.file, users);
            }
            if !cells.of(scheduled).is_empty()
                && let Some(us) = run.stamp(input, &mut planned, cells.of(scheduled), line)?
            {
                run.cells.offered(us, id);
            }
        }
        if scheduled.is_some() {
            run.offered(Offered::Scheduled);
        } else {
            run.offered(Offered::Achieved);
            run.caveat(caveat::OPEN_UNKNOWN);
        }
        if ok.is_none() && code.is_none() {
            run.caveat(caveat::OUTCOMES_UNKNOWN);
        }
        if ok.is_none() {
            run.caveat(caveat::ASSERTION_FREE);
        }
        if clock.zone_assumed {
            run.caveat(caveat::ZONE_ASSUMED);
        }
        run.cells.coarse |= clock.is_coarse();
        Ok(())
    }
}

fn likeliest(header: &[u8]) -> u8 {
    let count = |delimiter: u8| memchr::memchr_iter(delimiter, header).count();
    *b",\t;|".iter().max_by_key(|delimiter| count(**delimiter)).unwrap_or(&b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_named_by_key_and_what_is_missing_is_said() {
        let columns: Columns = "start=ts,time=us:took,step=route,delimiter=tab".parse().unwrap();
        assert_eq!((columns.start.as_deref(), columns.delimiter), (Some("ts"), Some('\t')));
        assert_eq!(columns.time, Some(("took".into(), "us".into())));
        for text in ["", "start=ts", "time=ms:x", "start=ts,time=x", "start=ts,time=parsec:x", "start=ts,time=ms:x,speed=y"] {
            assert!(text.parse::<Columns>().is_err(), "{text}");
        }
    }
}
