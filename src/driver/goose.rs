//! Goose, `--request-log FILE --request-format csv|json`: one line a request, with its start in milliseconds since the run's.
//! Rows made up for coordinated omission are left out. A row with `update` says again, and better, what became of the row of
//! the same visitor before it. The HTML or JSON report's graphs give counts per second of the start, and mean times.

use super::input::Input;
use super::outcome::is_good_status;
use super::run::Run;
use super::table::Table;
use super::{Clock, Head, Reader, caveat};
use crate::driver::aggregate::Request;
use crate::text::InputError;
use crate::timeline::{ALL, Interval};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::HashMap;

/// Goose's request log as CSV.
pub(super) struct Csv;
/// Goose's request log as JSON lines.
pub(super) struct Json;
/// Goose's JSON report.
pub(super) struct Report;

/// The last request of each visitor, held back until it is known not to be said again.
#[derive(Default)]
struct Held {
    by_user: HashMap<u64, (u64, Request)>,
    synthetic: u64,
    checked: bool,
}

struct Row<'a> {
    elapsed_ms: f64,
    us: f64,
    step: &'a [u8],
    code: &'a [u8],
    good: bool,
    error: &'a [u8],
    update: bool,
    user: u64,
}

impl Held {
    fn row(&mut self, run: &mut Run<'_>, origin: i64, row: &Row<'_>) {
        self.checked |= !row.good && is_good_status(row.code);
        let start_us = origin + (row.elapsed_ms * 1e3) as i64;
        let outcome = run.judge(row.good, row.code, row.error);
        let request =
            Request { start_us, end_us: start_us + row.us as i64, ms: row.us / 1e3, step: run.steps.id(row.step), outcome };
        let before = self.by_user.insert(row.user, (row.elapsed_ms as u64, request));
        if let Some((elapsed, before)) = before
            && !(row.update && elapsed == row.elapsed_ms as u64)
        {
            run.request(before);
        }
    }

    fn finish(self, run: &mut Run<'_>) {
        for (_, request) in self.by_user.into_values() {
            run.request(request);
        }
        if self.synthetic > 0 {
            run.caveat(caveat::SYNTHETIC_ROWS);
            run.more.insert("synthetic_rows".into(), self.synthetic.into());
        }
        if !self.checked {
            run.caveat(caveat::ASSERTION_FREE);
        }
    }
}

impl Reader for Csv {
    fn name(&self) -> &'static str {
        "goose"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["goose-csv"]
    }

    fn about(&self) -> &'static str {
        "Goose: --request-log FILE --request-format csv"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("elapsed,") && head.has("coordinated_omission_elapsed")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("goose");
        run.closed_loop();
        let origin = run.origin_us(input);
        let mut table = Table::with_header(input, b',')?;
        let (elapsed, time) = (table.needed(input, "elapsed")?, table.needed(input, "response_time")?);
        let column = |name: &str| table.fields.column(&[name]);
        let (fine, name, url, status) = (column("response_time_us"), column("name"), column("final_url"), column("status_code"));
        let (success, update, user, error) = (column("success"), column("update"), column("user"), column("error"));
        let omission = column("coordinated_omission_elapsed");
        let wanted: Vec<(String, Option<usize>)> =
            run.options.step_by.fields().into_iter().map(|field| (field.to_owned(), column(field))).collect();
        let (mut held, mut step) = (Held::default(), Vec::new());
        while let Some(line) = table.next(input, run)? {
            let (Some(elapsed_ms), Some(ms)) = (table.number(run, line, elapsed), table.number(run, line, time)) else { continue };
            let cells = &table.fields;
            if cells.number(omission).is_some_and(|made_up| made_up > 0.0) {
                held.synthetic += 1;
                continue;
            }
            run.options.step_by.of(&mut step, |field| match wanted.iter().find(|(known, _)| known == field) {
                Some((_, column)) => cells.of(*column),
                None if cells.of(name).is_empty() => cells.of(url),
                None => cells.of(name),
            });
            let row = Row {
                elapsed_ms,
                us: cells.number(fine).unwrap_or(ms * 1e3),
                step: &step,
                code: cells.of(status),
                good: cells.of(success) == b"true",
                error: cells.of(error),
                update: cells.of(update) == b"true",
                user: cells.number(user).unwrap_or(0.0) as u64,
            };
            held.row(run, origin, &row);
        }
        held.finish(run);
        Ok(())
    }
}

#[derive(Deserialize)]
struct Line<'a> {
    elapsed: f64,
    response_time: f64,
    response_time_us: Option<f64>,
    response_time_fraction_us: Option<f64>,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    final_url: Cow<'a, str>,
    #[serde(default)]
    status_code: u16,
    #[serde(default)]
    success: bool,
    #[serde(default)]
    update: bool,
    #[serde(default)]
    user: u64,
    #[serde(borrow, default)]
    error: Cow<'a, str>,
    #[serde(borrow, default)]
    scenario_name: Cow<'a, str>,
    #[serde(default)]
    coordinated_omission_elapsed: f64,
}

impl Reader for Json {
    fn name(&self) -> &'static str {
        "goose-json"
    }

    fn about(&self) -> &'static str {
        "Goose: --request-log FILE --request-format json"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("{\"elapsed\":") && head.has("\"coordinated_omission_elapsed\"")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("goose");
        run.closed_loop();
        let origin = run.origin_us(input);
        let (mut held, mut step, mut bytes) = (Held::default(), Vec::new(), Vec::new());
        while let Some(number) = input.json_line(run, &mut bytes)? {
            let line: Line<'_> = match serde_json::from_slice(&bytes) {
                Ok(line) => line,
                Err(why) => {
                    run.bad_row(number, format!("is no request: {why}"));
                    continue;
                }
            };
            if line.coordinated_omission_elapsed > 0.0 {
                held.synthetic += 1;
                continue;
            }
            run.options.step_by.of(&mut step, |field| match field {
                "name" if line.name.is_empty() => line.final_url.as_bytes(),
                "name" => line.name.as_bytes(),
                "final_url" | "url" => line.final_url.as_bytes(),
                "scenario_name" => line.scenario_name.as_bytes(),
                _ => b"",
            });
            let code = line.status_code.to_string();
            let whole_us = line.response_time * 1e3 + line.response_time_fraction_us.unwrap_or(0.0);
            let row = Row {
                elapsed_ms: line.elapsed,
                us: line.response_time_us.unwrap_or(whole_us),
                step: &step,
                code: code.as_bytes(),
                good: line.success,
                error: line.error.as_bytes(),
                update: line.update,
                user: line.user,
            };
            held.row(run, origin, &row);
        }
        held.finish(run);
        Ok(())
    }
}

impl Reader for Report {
    fn name(&self) -> &'static str {
        "goose-report"
    }

    fn about(&self) -> &'static str {
        "Goose: --report-file FILE.json --report-graph-data"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("{") && head.has("\"goose_version\"")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        let document = input.json()?;
        run.driver(format!("goose {}", document["goose_version"].as_str().unwrap_or_default()).trim());
        run.closed_loop();
        run.caveat(caveat::MEAN_ONLY);
        run.caveat(caveat::ASSERTION_FREE);
        let graphs = &document["graphs"];
        let begin_ms = graphs["heatmap"]["start"].as_i64().or_else(|| {
            let text = document["started"].as_str()?;
            Clock::default().us(text.as_bytes()).ok().map(|us| us / 1000)
        });
        let Some(requests) = graphs["requests_per_second"].as_object() else {
            return Err(input.error("a Goose report without graphs").hint("--report-graph-data writes them; or use --request-log"));
        };
        let begin_ms = begin_ms.unwrap_or_else(|| run.origin_us(input) / 1000);
        let mut rows: Vec<Interval> = Vec::new();
        let counts = |series: &serde_json::Value| -> Vec<(i64, f64)> {
            let origin = series["origin"].as_i64().unwrap_or(0);
            series["data"]
                .as_array()
                .into_iter()
                .flatten()
                .enumerate()
                .map(|(n, count)| (origin + n as i64, count.as_f64().unwrap_or(0.0)))
                .collect()
        };
        for (name, series) in requests {
            let failed: HashMap<i64, f64> = counts(&graphs["errors_per_second"][name]).into_iter().collect();
            let name = name.split_once(' ').map_or(name.as_str(), |(_, name)| name);
            for (second, count) in counts(series) {
                let broken = failed.get(&second).copied().unwrap_or(0.0);
                rows.push(Interval {
                    unix_ms: begin_ms + second * 1000,
                    dur_ms: 1000.0,
                    step: name.to_owned(),
                    offered: Some(count),
                    started: Some(count),
                    ok: Some(count - broken),
                    failed: Some(broken),
                    ..Interval::default()
                });
            }
        }
        run.rows += rows.len() as u64;
        let mut rows = super::merge::with_all(rows);
        let users: HashMap<i64, f64> =
            counts(&graphs["users_per_second"]).into_iter().map(|(second, users)| (begin_ms + second * 1000, users)).collect();
        for row in rows.iter_mut().filter(|row| row.step == ALL) {
            row.vus = users.get(&row.unix_ms).copied();
        }
        run.files.push(rows);
        Ok(())
    }
}
