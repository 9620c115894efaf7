//! JMeter's results as CSV (JTL), and what writes the same: Taurus' kpi.jtl, apiritif.
//!
//! Every dialect: with a header or without, any order of columns, delimiter `,` tab `;` or `|`, stamps in milliseconds or
//! as local dates. Rows of transaction controllers sum up other rows and are left out. Stamps are the START of a sample
//! unless they rise as ends do ([`stamps_are_ends`]). A failure by "Socket closed" is the driver's own stop.

use super::fields::{Fields, number};
use super::input::Input;
use super::outcome::is_good_status;
use super::run::Run;
use super::steps::StepBy;
use super::{Clock, Head, Outcome, Reader, caveat};
use crate::text::InputError;
use memchr::memmem;

const DELIMITERS: [u8; 4] = *b",\t;|";
/// What JMeter writes first without a header, in every version.
const FIRST_COLUMNS: [&str; 8] =
    ["timeStamp", "elapsed", "label", "responseCode", "responseMessage", "threadName", "dataType", "success"];

/// JMeter's CSV.
pub(super) struct Csv;

impl Reader for Csv {
    fn name(&self) -> &'static str {
        "jmeter"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["jtl", "jmeter-csv", "taurus"]
    }

    fn about(&self) -> &'static str {
        "jmeter -n -l FILE.jtl (CSV, any delimiter, with or without a header); Taurus kpi.jtl"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        dialect(head.line).is_some()
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("jmeter");
        run.closed_loop();
        let (line, ends) = {
            let bytes = input.head()?;
            let line = Head::of(bytes).line.to_vec();
            let ends = dialect(&line).is_some_and(|dialect| stamps_are_ends(bytes, &dialect, run.options));
            (line, ends)
        };
        let Some(dialect) = dialect(&line) else {
            return Err(
                input.error("is no JTL: neither a header with timeStamp and elapsed, nor rows that begin with a stamp and a time")
            );
        };
        let mut fields = Fields::default();
        if dialect.header {
            input.record(&mut fields, dialect.delimiter)?;
        }
        if ends {
            run.caveat(caveat::END_STAMPS);
        }
        let columns = Columns::of(&dialect, &run.options.step_by);
        let mut clock = Clock::new(run.options.zone.clone());
        let (mut step, mut transactions, mut checked) = (Vec::new(), 0_u64, false);
        while let Some(record) = input.record(&mut fields, dialect.delimiter)? {
            let narrow = fields.len() < dialect.width;
            if !record.whole && (narrow || !record.closed) {
                run.caveat(caveat::CUT_LOG);
                break;
            }
            if fields.len() == 1 && fields.get(0).is_empty() {
                continue;
            }
            run.rows += 1;
            if narrow || !record.closed {
                let why = if record.closed { "too few cells" } else { "a quote is not closed" };
                run.bad_row(record.number, format!("{why}: expected {}, found {}", dialect.width, fields.len()));
                continue;
            }
            // Commas without quotes push the later columns to the right: the word true or false tells how far.
            let Some(shift) = columns.shift(&fields, dialect.width) else {
                run.bad_row(record.number, "has no true or false where success should stand");
                continue;
            };
            let message = fields.of(columns.message);
            if message.starts_with(b"Number of samples in transaction") {
                transactions += 1;
                continue;
            }
            let Some(us) = run.stamp(input, &mut clock, fields.get(columns.stamp), record.number)? else { continue };
            let Some(ms) = number(fields.get(columns.elapsed)) else {
                run.bad_row(
                    record.number,
                    format!("expected a time, found {:?}", String::from_utf8_lossy(fields.get(columns.elapsed))),
                );
                continue;
            };
            let code = fields.of(columns.code);
            let ok = fields.of(columns.success.map(|n| n + shift)).eq_ignore_ascii_case(b"true");
            let failure = fields.of(columns.failure.map(|n| n + shift));
            checked |= !failure.is_empty() || (!ok && is_good_status(code));
            let outcome = if !ok && is_own_stop(message) {
                Outcome::Aborted
            } else {
                run.judge(ok, code, if failure.is_empty() { message } else { failure })
            };
            columns.step(&run.options.step_by, &fields, &mut step);
            let id = run.steps.id(&step);
            if ends {
                run.ended(us, ms, id, outcome);
            } else {
                run.started(us, ms, id, outcome);
            }
            if let Some(threads) = columns.threads.and_then(|n| number(fields.get(n + shift))) {
                run.cells.vus(us, run.file, threads);
            }
        }
        if transactions > 0 {
            run.caveat(caveat::TRANSACTION_ROWS);
            run.more.insert("transaction_rows".into(), transactions.into());
        }
        if !checked {
            run.caveat(caveat::ASSERTION_FREE);
        }
        if clock.zone_assumed {
            run.caveat(caveat::ZONE_ASSUMED);
        }
        run.cells.coarse |= clock.is_coarse();
        Ok(())
    }
}

struct Dialect {
    delimiter: u8,
    header: bool,
    names: Vec<String>,
    width: usize,
}

/// The dialect by the first line: the delimiter is the one that makes the known names, or a stamp and a time.
fn dialect(line: &[u8]) -> Option<Dialect> {
    let mut fields = Fields::default();
    for delimiter in DELIMITERS {
        fields.split(line, delimiter);
        if fields.column(&["timeStamp"]).is_some() && fields.column(&["elapsed"]).is_some() {
            let names = fields.iter().map(|name| String::from_utf8_lossy(name.trim_ascii()).into_owned()).collect();
            return Some(Dialect { delimiter, header: true, names, width: fields.len() });
        }
        let stamp = fields.get(0);
        let digits = stamp.iter().filter(|byte| byte.is_ascii_digit()).count();
        let stamp_like = (digits == 13 && digits == stamp.len()) || (digits >= 12 && stamp.contains(&b':'));
        let time_like = !fields.get(1).is_empty() && fields.get(1).iter().all(u8::is_ascii_digit);
        if stamp_like && time_like && fields.len() >= 8 && is_truth(fields.get(7)) {
            let (width, threads) = (fields.len(), [(12, 10), (16, 11), (17, 12)]);
            let mut names: Vec<String> = FIRST_COLUMNS.iter().map(|name| (*name).to_owned()).collect();
            names.resize(width, String::new());
            if let Some((_, at)) = threads.iter().find(|(cells, _)| *cells == width) {
                "allThreads".clone_into(&mut names[*at]);
            }
            return Some(Dialect { delimiter, header: false, names, width });
        }
    }
    None
}

/// Whether a failure is the client closing its own sockets, as it does when the run is stopped.
pub(super) fn is_own_stop(message: &[u8]) -> bool {
    ["Socket closed", "Connection has been shut down"].iter().any(|text| memmem::find(message, text.as_bytes()).is_some())
}

fn is_truth(cell: &[u8]) -> bool {
    cell.eq_ignore_ascii_case(b"true") || cell.eq_ignore_ascii_case(b"false")
}

struct Columns {
    stamp: usize,
    elapsed: usize,
    label: Option<usize>,
    code: Option<usize>,
    message: Option<usize>,
    success: Option<usize>,
    failure: Option<usize>,
    threads: Option<usize>,
    fields: Vec<(String, Option<usize>)>,
}

impl Columns {
    fn of(dialect: &Dialect, by: &StepBy) -> Self {
        let column = |name: &str| dialect.names.iter().position(|one| one.eq_ignore_ascii_case(name));
        Self {
            stamp: column("timeStamp").unwrap_or(0),
            elapsed: column("elapsed").unwrap_or(1),
            label: column("label"),
            code: column("responseCode"),
            message: column("responseMessage"),
            success: column("success"),
            failure: column("failureMessage"),
            threads: column("allThreads"),
            fields: by.fields().into_iter().map(|name| (name.to_owned(), column(name))).collect(),
        }
    }

    /// How far unquoted delimiters pushed the column `success`; `None` if it is not found.
    fn shift(&self, fields: &Fields, width: usize) -> Option<usize> {
        let Some(success) = self.success else { return Some(0) };
        (0..=fields.len().saturating_sub(width)).find(|shift| is_truth(fields.get(success + shift)))
    }

    fn step(&self, by: &StepBy, fields: &Fields, out: &mut Vec<u8>) {
        by.of(out, |name| match self.fields.iter().find(|(field, _)| field == name) {
            Some((_, column)) => fields.of(*column),
            None => fields.of(self.label),
        });
    }
}

/// Whether stamps are ends: rows are written as samples end, so in a file of start stamps the stamps step back often and
/// stamp + elapsed seldom. (JMeter: START unless `sampleresult.timestamp.start=false`; Taurus' Locust plug-in: END.)
fn stamps_are_ends(head: &[u8], dialect: &Dialect, options: &super::Options) -> bool {
    let columns = Columns::of(dialect, &StepBy::Name);
    let mut clock = Clock::new(options.zone.clone());
    let (mut fields, mut rows, mut stamps_back, mut ends_back) = (Fields::default(), 0, 0, 0);
    let mut before: Option<(i64, i64)> = None;
    for line in head.split(|byte| *byte == b'\n').skip(usize::from(dialect.header)) {
        if !fields.split(line, dialect.delimiter) || fields.len() < dialect.width {
            continue;
        }
        if fields.of(columns.message).starts_with(b"Number of samples in transaction") {
            continue;
        }
        let (Ok(us), Some(ms)) = (clock.us(fields.get(columns.stamp)), number(fields.get(columns.elapsed))) else { continue };
        let end = us + (ms * 1e3) as i64;
        if let Some((stamp_before, end_before)) = before {
            rows += 1;
            stamps_back += usize::from(us < stamp_before);
            ends_back += usize::from(end < end_before);
        }
        before = Some((us, end));
    }
    rows >= 50 && stamps_back * 50 < rows && ends_back * 20 > rows
}
