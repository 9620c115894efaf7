//! vegeta, `vegeta encode --to csv` and `--to json`: one line a request, stamps of the START in nanoseconds.
//!
//! The stamp is the real send: once `-max-workers` is reached vegeta waits like a closed loop, and that wait is in no
//! latency. The log does not hold the pacer. Bodies and headers stand in the lines and are stepped over. A report (`vegeta
//! report -type=json`) is a rung; the binary results are read by vegeta itself only.

use super::input::Input;
use super::outcome::is_good_status;
use super::run::Run;
use super::table::Table;
use super::{Clock, Head, Reader, caveat};
use crate::text::InputError;
use crate::timeline::{Interval, Offered};
use serde::Deserialize;
use std::borrow::Cow;

/// vegeta's CSV.
pub(super) struct Csv;
/// vegeta's JSON lines.
pub(super) struct Json;
/// vegeta's report.
pub(super) struct Report;

fn begin(run: &mut Run<'_>) {
    run.driver("vegeta");
    run.offered(Offered::Achieved);
    run.caveat(caveat::OPEN_UNKNOWN);
    run.caveat(caveat::ASSERTION_FREE);
}

impl Reader for Csv {
    fn name(&self) -> &'static str {
        "vegeta"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["vegeta-csv"]
    }

    fn about(&self) -> &'static str {
        "vegeta encode --to csv"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        let mut cells = head.line.split(|byte| *byte == b',');
        let mut digits = |least: usize, most: usize| {
            cells.next().is_some_and(|cell| (least..=most).contains(&cell.len()) && cell.iter().all(u8::is_ascii_digit))
        };
        digits(18, 19) && digits(1, 3) && digits(1, 19) && digits(1, 19)
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        begin(run);
        let mut table = Table::new(b',', 9);
        let mut clock = Clock::default();
        let mut step = Vec::new();
        while let Some(line) = table.next(input, run)? {
            let cells = &table.fields;
            let Some(us) = run.stamp(input, &mut clock, cells.get(0), line)? else { continue };
            let Some(ns) = table.number(run, line, 2) else { continue };
            let (code, error) = (cells.get(1), cells.get(5));
            run.options.step_by.of(&mut step, |name| match name {
                "name" if cells.get(10).is_empty() => cells.get(7),
                "name" | "url" => cells.get(10),
                "method" => cells.get(9),
                "attack" => cells.get(7),
                _ => b"",
            });
            named(&mut step, run, cells.get(9));
            let id = run.steps.id(&step);
            let outcome = run.judge(is_good_status(code) && error.is_empty(), code, error);
            run.started(us, ns / 1e6, id, outcome);
        }
        Ok(())
    }
}

/// The URL is no name: the method belongs before it.
fn named(step: &mut Vec<u8>, run: &Run<'_>, method: &[u8]) {
    if run.options.step_by == super::StepBy::Name && !method.is_empty() {
        step.splice(..0, method.iter().copied().chain([b' ']));
    }
}

#[derive(Deserialize)]
struct Hit<'a> {
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
    latency: f64,
    code: u16,
    #[serde(borrow, default)]
    error: Cow<'a, str>,
    #[serde(borrow, default)]
    attack: Cow<'a, str>,
    #[serde(borrow, default)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    url: Cow<'a, str>,
}

impl Reader for Json {
    fn name(&self) -> &'static str {
        "vegeta-json"
    }

    fn about(&self) -> &'static str {
        "vegeta encode --to json"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("{") && ["\"attack\":", "\"seq\":", "\"latency\":", "\"timestamp\":"].iter().all(|key| head.has(key))
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        begin(run);
        let mut clock = Clock::default();
        let (mut step, mut line) = (Vec::new(), Vec::new());
        while let Some(number) = input.json_line(run, &mut line)? {
            let hit: Hit<'_> = match serde_json::from_slice(&line) {
                Ok(hit) => hit,
                Err(why) => {
                    run.bad_row(number, format!("is no result: {why}"));
                    continue;
                }
            };
            let Some(us) = run.stamp(input, &mut clock, hit.timestamp.as_bytes(), number)? else { continue };
            run.options.step_by.of(&mut step, |name| match name {
                "name" if hit.url.is_empty() => hit.attack.as_bytes(),
                "name" | "url" => hit.url.as_bytes(),
                "method" => hit.method.as_bytes(),
                "attack" => hit.attack.as_bytes(),
                _ => b"",
            });
            named(&mut step, run, hit.method.as_bytes());
            let id = run.steps.id(&step);
            let code = hit.code.to_string();
            let good = is_good_status(code.as_bytes()) && hit.error.is_empty();
            let outcome = run.judge(good, code.as_bytes(), hit.error.as_bytes());
            run.started(us, hit.latency / 1e6, id, outcome);
        }
        Ok(())
    }
}

impl Reader for Report {
    fn name(&self) -> &'static str {
        "vegeta-report"
    }

    fn about(&self) -> &'static str {
        "vegeta report -type=json: a rung"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("{\"latencies\":{") && head.has("\"status_codes\"")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        begin(run);
        let report = input.json()?;
        let Some(count) = report["requests"].as_f64() else { return Err(input.error("a vegeta report without requests")) };
        let ok = (count * report["success"].as_f64().unwrap_or(1.0)).round();
        let ms = |key: &str| report["latencies"][key].as_f64().map(|ns| ns / 1e6);
        let begin_ms = report["earliest"].as_str().and_then(|text| Clock::default().us(text.as_bytes()).ok()).map(|us| us / 1000);
        let row = Interval {
            dur_ms: (report["duration"].as_f64().unwrap_or(0.0) + report["wait"].as_f64().unwrap_or(0.0)) / 1e6,
            offered: Some(count),
            started: Some(count),
            ok: Some(ok),
            failed: Some(count - ok),
            p50_ms: ms("50th"),
            p95_ms: ms("95th"),
            p99_ms: ms("99th"),
            max_ms: ms("max"),
            ..Interval::default()
        };
        run.latency = "all";
        run.caveat(caveat::PERCENTILES_COARSE);
        run.rung(input, begin_ms, [row]);
        Ok(())
    }
}
