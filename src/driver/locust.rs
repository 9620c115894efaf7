//! Locust, `--csv PREFIX --csv-full-history`: `PREFIX_stats_history.csv`, one row a second and name, with totals.
//!
//! The columns `Requests/s` and `Failures/s` are means over the last ten seconds and wrong on a ramp (locust#2340): rates
//! come from the differences of the totals. After a stop in web mode the rows go on for ever with no users and frozen
//! totals: the run ends with the last row that has users or whose total grew. A total that falls is a reset, or another
//! run in the same file. Percentiles are those of the last ten seconds, rounded, of all requests; `0` beside a growing
//! total is none.

use super::fields::{Fields, number};
use super::input::Input;
use super::run::Run;
use super::{Clock, Head, Reader, caveat};
use crate::text::InputError;
use crate::timeline::{ALL, Interval};
use std::collections::HashMap;

/// Over how long Locust takes its percentiles.
const WINDOW_MS: f64 = 10_000.0;

/// Locust's history.
pub(super) struct History;

impl Reader for History {
    fn name(&self) -> &'static str {
        "locust"
    }

    fn about(&self) -> &'static str {
        "locust --csv PREFIX --csv-full-history: PREFIX_stats_history.csv"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        let mut fields = Fields::default();
        fields.split(head.line, b',');
        fields.column(&["Timestamp"]).is_some()
            && fields.column(&["Name"]).is_some()
            && fields.column(REQUESTS).is_some()
            && fields.column(&["User Count", "Users"]).is_some()
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("locust");
        run.closed_loop();
        run.caveat(caveat::PERCENTILES_COARSE);
        run.caveat(caveat::TAIL_MISSING);
        run.caveat(caveat::ASSERTION_FREE);
        run.latency = "all";
        run.window_ms = Some(WINDOW_MS);
        let mut fields = Fields::default();
        input.record(&mut fields, b',')?;
        let columns = Columns::of(&fields);
        let width = fields.len();
        let (Some(stamp), Some(name), Some(total)) = (columns.stamp, columns.name, columns.total) else {
            return Err(input.error("has no columns Timestamp, Name and Total Request Count").at(1));
        };
        let mut clock = Clock::default();
        let mut history = Totals::default();
        while let Some(record) = input.record(&mut fields, b',')? {
            if fields.len() != width && !record.whole {
                run.caveat(caveat::CUT_LOG);
                break;
            }
            if fields.len() == 1 && fields.get(0).is_empty() {
                continue;
            }
            run.rows += 1;
            if fields.len() != width {
                run.bad_row(record.number, format!("expected {width} cells, found {}", fields.len()));
                continue;
            }
            let Some(us) = run.stamp(input, &mut clock, fields.get(stamp), record.number)? else { continue };
            let Some(total) = number(fields.get(total)) else {
                run.bad_row(record.number, "has no total request count");
                continue;
            };
            let kind = fields.of(columns.kind);
            let name = fields.get(name);
            let key = if matches!(name, b"Aggregated" | b"Total") && kind.is_empty() {
                None
            } else {
                Some((String::from_utf8_lossy(kind).into_owned(), String::from_utf8_lossy(name).into_owned()))
            };
            let of = |column| number(fields.of(column)).filter(|ms| *ms > 0.0);
            let row = Row {
                ms: us / 1000,
                users: number(fields.of(columns.users)),
                total,
                failed: number(fields.of(columns.failed)).unwrap_or(0.0),
                p50: of(columns.p50),
                p95: of(columns.p95),
                p99: of(columns.p99),
                max: of(columns.max),
            };
            history.row(key, row);
        }
        history.finish(run);
        Ok(())
    }
}

const REQUESTS: &[&str] = &["Total Request Count", "# requests", "Request Count"];

struct Columns {
    stamp: Option<usize>,
    users: Option<usize>,
    kind: Option<usize>,
    name: Option<usize>,
    total: Option<usize>,
    failed: Option<usize>,
    p50: Option<usize>,
    p95: Option<usize>,
    p99: Option<usize>,
    max: Option<usize>,
}

impl Columns {
    fn of(header: &Fields) -> Self {
        Self {
            stamp: header.column(&["Timestamp"]),
            users: header.column(&["User Count", "Users"]),
            kind: header.column(&["Type", "Method"]),
            name: header.column(&["Name"]),
            total: header.column(REQUESTS),
            failed: header.column(&["Total Failure Count", "# failures", "Failure Count"]),
            p50: header.column(&["50%"]),
            p95: header.column(&["95%"]),
            p99: header.column(&["99%"]),
            max: header.column(&["100%"]),
        }
    }
}

#[derive(Clone, Copy)]
struct Row {
    ms: i64,
    users: Option<f64>,
    total: f64,
    failed: f64,
    p50: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
}

/// Type and name; `None` is all together.
type Key = Option<(String, String)>;

#[derive(Default)]
struct Totals {
    before: HashMap<Key, (f64, f64)>,
    /// The stamp of the rows being read, and the one before it.
    now_ms: Option<i64>,
    before_ms: Option<i64>,
    rows: Vec<(Key, Interval)>,
    /// Where the run being read begins in `rows`.
    begun: usize,
    /// Whether the total has stood still without users since the last growth.
    over: bool,
    runs: usize,
    resets: usize,
}

impl Totals {
    fn row(&mut self, key: Key, row: Row) {
        if self.now_ms.is_some_and(|now| now != row.ms) {
            self.before_ms = self.now_ms;
        }
        self.now_ms = Some(row.ms);
        let all = key.is_none();
        let (total, failed) = self.before.get(&key).copied().unwrap_or_default();
        self.before.insert(key.clone(), (row.total, row.failed));
        if row.total < total {
            // Without users before it, another run begins in the same file; with users it is a reset of the totals.
            if all && self.over {
                self.begun = self.rows.len();
                self.runs += 1;
                self.over = false;
            } else if all {
                self.resets += 1;
            }
            return;
        }
        let (done, broken) = (row.total - total, (row.failed - failed).max(0.0));
        if all {
            self.over = done == 0.0 && row.users.is_none_or(|users| users == 0.0);
        }
        let Some(begin) = self.before_ms.filter(|before| *before < row.ms) else { return };
        let told = |ms: Option<f64>| ms.filter(|_| done > 0.0);
        let interval = Interval {
            unix_ms: begin,
            dur_ms: (row.ms - begin) as f64,
            offered: Some(done),
            ok: Some((done - broken).max(0.0)),
            failed: Some(broken),
            vus: row.users.filter(|_| all),
            p50_ms: told(row.p50),
            p95_ms: told(row.p95),
            p99_ms: told(row.p99),
            max_ms: told(row.max),
            ..Interval::default()
        };
        self.rows.push((key, interval));
    }

    fn finish(mut self, run: &mut Run<'_>) {
        if self.runs > 0 {
            run.caveat(caveat::RESTARTED);
            run.more.insert("earlier_runs_left_out".into(), self.runs.into());
        }
        if self.resets > 0 {
            run.caveat(caveat::STATS_RESET);
        }
        let rows = self.rows.split_off(self.begun);
        let lives = |(key, row): &(Key, Interval)| {
            key.is_none() && (row.vus.is_some_and(|users| users > 0.0) || row.offered.is_some_and(|done| done > 0.0))
        };
        let (Some(first), Some(last)) = (rows.iter().position(lives), rows.iter().rposition(lives)) else { return };
        let (first, last) = (rows[first].1.unix_ms, rows[last].1.unix_ms);
        let types: HashMap<&str, &str> =
            rows.iter().filter_map(|(key, _)| key.as_ref()).map(|(kind, name)| (name.as_str(), kind.as_str())).collect();
        let several: Vec<String> = (rows.iter().filter_map(|(key, _)| key.as_ref()))
            .filter(|(kind, name)| types.get(name.as_str()).is_some_and(|other| other != kind))
            .map(|(_, name)| name.clone())
            .collect();
        let mut out = Vec::new();
        for (key, mut row) in rows.into_iter().filter(|(_, row)| (first..=last).contains(&row.unix_ms)) {
            row.step = match key {
                None => ALL.to_owned(),
                Some((kind, name)) if several.contains(&name) => format!("{kind} {name}"),
                Some((_, name)) => name,
            };
            out.push(row);
        }
        run.files.push(out);
    }
}
