//! artillery `run --output FILE`: one JSON document with intervals of ten seconds: counters and percentiles.
//!
//! `period` is the interval's begin, a number or a text; the first and the last interval are partial. `vusers.created` is
//! what was offered, in sessions. Percentiles are of each interval and cannot be joined.

use super::input::Input;
use super::outcome::is_good_status;
use super::run::Run;
use super::{Head, Outcome, Reader, caveat};
use crate::text::InputError;
use crate::timeline::{ALL, Interval, Offered};
use serde_json::Value;
use std::collections::BTreeMap;

const PERIOD_MS: i64 = 10_000;
const BY_ENDPOINT: &str = "plugins.metrics-by-endpoint.";

/// artillery's report.
pub(super) struct Report;

impl Reader for Report {
    fn name(&self) -> &'static str {
        "artillery"
    }

    fn about(&self) -> &'static str {
        "artillery run --output FILE"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("{") && head.has("\"aggregate\"") && (head.has("\"counters\"") || head.has("\"scenariosCreated\""))
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("artillery");
        let document = input.json()?;
        let periods =
            document["intermediate"].as_array().filter(|periods| periods.iter().any(|period| period["counters"].is_object()));
        let Some(periods) = periods else {
            return Err(input
                .error("has no intermediate counters: artillery 1 wrote another form, and a report without them has no times")
                .hint("artillery 2 run --output FILE writes them"));
        };
        run.offered(Offered::Scheduled);
        run.caveat(caveat::PERCENTILES_COARSE);
        run.caveat(caveat::ASSERTION_FREE);
        run.window_ms = Some(PERIOD_MS as f64);
        let all = |name: &str| -> f64 { periods.iter().map(|period| number(&period["counters"][name]).unwrap_or(0.0)).sum() };
        let sessions = all("vusers.created");
        let each = if sessions > 0.0 { all("http.requests") / sessions } else { 1.0 };
        run.more.insert("requests_per_iteration".into(), ((each * 1e3).round() / 1e3).into());
        let (mut rows, mut in_flight) = (Vec::new(), 0.0);
        for (n, period) in periods.iter().enumerate() {
            run.rows += 1;
            let Some(begin) = number(&period["period"]).map(|ms| ms as i64) else {
                run.bad_row(n as u64 + 1, "an interval without its period");
                continue;
            };
            let (first, last) = (number(&period["firstMetricAt"]), number(&period["lastMetricAt"]));
            let from = if n == 0 { first.map_or(begin, |ms| (ms as i64).clamp(begin, begin + PERIOD_MS)) } else { begin };
            let end = if n + 1 == periods.len() {
                last.map_or(begin + PERIOD_MS, |ms| (ms as i64).clamp(from + 1, begin + PERIOD_MS))
            } else {
                begin + PERIOD_MS
            };
            let counters = period["counters"].as_object();
            let of = |name: &str| counters.and_then(|counters| number(counters.get(name)?)).unwrap_or(0.0);
            let mut steps: BTreeMap<String, [f64; 3]> = BTreeMap::new();
            let (mut ended, mut broken) = ([0.0; 3], 0.0);
            for (name, value) in counters.into_iter().flatten() {
                let count = number(value).unwrap_or(0.0);
                let of_code = |code: &str| match run.judge(is_good_status(code.as_bytes()), code.as_bytes(), b"") {
                    Outcome::Ok => 0,
                    Outcome::Refused => 2,
                    _ => 1,
                };
                if let Some(code) = name.strip_prefix("http.codes.") {
                    ended[of_code(code)] += count;
                } else if name.starts_with("errors.") {
                    broken += count;
                } else if let Some((step, code)) = name.strip_prefix(BY_ENDPOINT).and_then(|rest| rest.rsplit_once(".codes.")) {
                    steps.entry(step.to_owned()).or_default()[of_code(code)] += count;
                }
            }
            let started = of("http.requests");
            in_flight += started - ended.iter().sum::<f64>() - broken;
            let row = |step: &str, [ok, failed, refused]: [f64; 3], summary: &Value| {
                let ms = |key: &str| number(&summary[key]);
                Interval {
                    unix_ms: from,
                    dur_ms: (end - from) as f64,
                    step: step.to_owned(),
                    ok: Some(ok),
                    failed: Some(failed),
                    refused: Some(refused),
                    p50_ms: ms("p50").or_else(|| ms("median")),
                    p95_ms: ms("p95"),
                    p99_ms: ms("p99"),
                    max_ms: ms("max"),
                    ..Interval::default()
                }
            };
            // Answers of every status are in the one summary; the good ones have their own.
            let summaries = &period["summaries"];
            let good = &summaries["http.response_time.2xx"];
            if !good.is_object() {
                run.latency = "all";
            }
            let latencies = if good.is_object() { good } else { &summaries["http.response_time"] };
            let offered = (of("vusers.created") + of("vusers.skipped")) * each;
            rows.push(Interval {
                offered: Some(offered),
                started: Some(started),
                dropped: Some(of("vusers.skipped") * each),
                in_flight: Some(in_flight.max(0.0)),
                ..row(ALL, [ended[0], ended[1] + broken, ended[2]], latencies)
            });
            for (step, counts) in steps {
                let latencies = &summaries[format!("{BY_ENDPOINT}response_time.{step}")];
                rows.push(row(named(&step), counts, latencies));
            }
        }
        run.files.push(rows);
        Ok(())
    }
}

/// The name in `/events/8812/seats (seat map)`, or the URL.
fn named(step: &str) -> &str {
    step.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")).map_or(step, |(_, name)| name)
}

/// A number, also where it is written as a text.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}
