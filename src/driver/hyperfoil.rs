//! Hyperfoil's series: `PHASE.METRIC.STEP.series.csv`, one row a second with stamps in milliseconds and latencies in
//! nanoseconds; all steps of a run are given together. The same series stand in `all.json`.
//!
//! The name of the metric is only in the file's name. `BlockedTime` is how long requests waited for a free connection.

use super::fields::Fields;
use super::input::Input;
use super::run::Run;
use super::table::Table;
use super::{Clock, Head, Reader, caveat};
use crate::text::InputError;
use crate::timeline::{Interval, Offered};

/// Hyperfoil's series.
pub(super) struct Series;
/// Hyperfoil's whole result.
pub(super) struct Json;

impl Reader for Series {
    fn name(&self) -> &'static str {
        "hyperfoil"
    }

    fn about(&self) -> &'static str {
        "Hyperfoil: PHASE.METRIC.STEP.series.csv"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("Start,End,Requests,Responses,Mean,")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        let mut table = Table::with_header(input, b',')?;
        let (start, end) = (table.needed(input, "Start")?, table.needed(input, "End")?);
        let (requests, responses) = (table.needed(input, "Requests")?, table.needed(input, "Responses")?);
        let column = |name: &str| table.fields.column(&[name]);
        let names: Vec<String> = table.fields.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        let columns = ["p50.0", "p95.0", "p99.0", "Max", "BlockedTime"].map(column);
        // A sum of columns that not every file has.
        let errors: Vec<usize> = ["ConnectionErrors", "RequestTimeouts", "InternalErrors"].into_iter().filter_map(column).collect();
        let bad: Vec<usize> = names
            .iter()
            .enumerate()
            .filter(|(_, name)| name.ends_with("4xx") || name.ends_with("5xx") || name.ends_with("OtherStatus"))
            .map(|(n, _)| n)
            .collect();
        let invalid = column("Invalid");
        let step = step_of(&input.file_name());
        let mut clock = Clock::default();
        let mut rows = Vec::new();
        while let Some(line) = table.next(input, run)? {
            let Some(begin) = run.stamp(input, &mut clock, table.fields.get(start), line)? else { continue };
            let Some(end) = run.stamp(input, &mut clock, table.fields.get(end), line)? else { continue };
            let (Some(started), Some(answered)) = (table.number(run, line, requests), table.number(run, line, responses)) else {
                continue;
            };
            let cells: &Fields = &table.fields;
            let sum = |columns: &[usize]| columns.iter().filter_map(|n| cells.number(Some(*n))).sum::<f64>();
            // An answer that a validator refused may have any status: the larger of both counts.
            let broken = sum(&bad).max(cells.number(invalid).unwrap_or(0.0));
            let [p50, p95, p99, longest, blocked] = columns.map(|column| cells.number(column));
            rows.push(row(&step, [begin / 1000, end / 1000], [started, answered, broken, sum(&errors)], [p50, p95, p99, longest]));
            wait(run, blocked, started);
        }
        finish(run, rows);
        Ok(())
    }
}

/// The metric in `PHASE.METRIC.STEP.series.csv`.
fn step_of(file: &str) -> String {
    let parts: Vec<&str> = file.split('.').collect();
    match parts.iter().position(|part| *part == "series") {
        Some(at) if at >= 3 => parts[1..at - 1].join("."),
        Some(at) if at >= 1 => parts[..at].join("."),
        _ => file.to_owned(),
    }
}

fn row(step: &str, [begin, end]: [i64; 2], [started, answered, broken, errors]: [f64; 4], ns: [Option<f64>; 4]) -> Interval {
    let [p50_ms, p95_ms, p99_ms, max_ms] = ns.map(|ns| ns.filter(|_| answered > 0.0).map(|ns| ns / 1e6));
    Interval {
        unix_ms: begin,
        dur_ms: (end - begin).max(1) as f64,
        step: step.to_owned(),
        offered: Some(started),
        started: Some(started),
        ok: Some((answered - broken).max(0.0)),
        failed: Some(broken + errors),
        p50_ms,
        p95_ms,
        p99_ms,
        max_ms,
        ..Interval::default()
    }
}

fn wait(run: &mut Run<'_>, blocked_ns: Option<f64>, started: f64) {
    if let Some(blocked) = blocked_ns {
        run.waited(if started > 0.0 { blocked / started / 1e6 } else { 0.0 }, 0.0);
    }
}

fn finish(run: &mut Run<'_>, rows: Vec<Interval>) {
    run.driver("hyperfoil");
    run.latency = "all";
    run.caveat(caveat::PERCENTILES_COARSE);
    run.caveat(caveat::ASSERTION_FREE);
    run.offered(Offered::Achieved);
    run.caveat(caveat::OPEN_UNKNOWN);
    run.files.push(rows);
}

impl Reader for Json {
    fn name(&self) -> &'static str {
        "hyperfoil-json"
    }

    fn about(&self) -> &'static str {
        "Hyperfoil: all.json"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("{") && head.has("\"startTime\"") && head.has("\"requestCount\"") && head.has("\"phase\"")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        let document = input.json()?;
        let mut rows = Vec::new();
        for stats in document["stats"].as_array().into_iter().flatten() {
            let step = stats["metric"].as_str().unwrap_or_default();
            for second in stats["series"].as_array().into_iter().flatten() {
                run.rows += 1;
                let of = |key: &str| second[key].as_f64();
                let (Some(begin), Some(end)) = (of("startTime"), of("endTime")) else {
                    run.bad_row(run.rows, "a second without its times");
                    continue;
                };
                let count = |key: &str| of(key).unwrap_or(0.0);
                let http = &second["extensions"]["http"];
                let bad: f64 = ["status_4xx", "status_5xx", "status_other"].iter().filter_map(|key| http[*key].as_f64()).sum();
                let errors = count("connectionErrors") + count("requestTimeouts") + count("internalErrors");
                let at = |q: &str| second["percentileResponseTime"][q].as_f64();
                let counts = [count("requestCount"), count("responseCount"), bad.max(count("invalid")), errors];
                rows.push(row(
                    step,
                    [begin as i64, end as i64],
                    counts,
                    [at("50.0"), at("95.0"), at("99.0"), of("maxResponseTime")],
                ));
                wait(run, of("blockedTime"), counts[0]);
            }
        }
        if rows.is_empty() {
            return Err(input.error("has no series").hint("give the file all.json of the run, or its *.series.csv"));
        }
        rows.retain(|row| matches!(&row, Interval { unix_ms, .. } if *unix_ms > 0));
        rows.sort_by_key(|row| row.unix_ms);
        finish(run, super::merge::same_rows_added(rows));
        Ok(())
    }
}
