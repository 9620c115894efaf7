//! fortio: `-json FILE` is one rung; `-access-log-file FILE -access-log-format json` has one line a request, START in
//! nanoseconds. The requested rate is a text (`"8"`, `"max"`).

use super::input::Input;
use super::outcome::is_good_status;
use super::run::Run;
use super::steps::UNNAMED;
use super::{Clock, Head, Outcome, Reader, caveat};
use crate::text::InputError;
use crate::timeline::{Interval, Offered};
use serde::Deserialize;
use std::borrow::Cow;

/// fortio's result.
pub(super) struct Json;
/// fortio's access log.
pub(super) struct Access;

impl Reader for Json {
    fn name(&self) -> &'static str {
        "fortio"
    }

    fn about(&self) -> &'static str {
        "fortio load -json FILE: a rung"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("{") && head.has("\"RunType\"") && head.has("\"RequestedQPS\"")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("fortio");
        let document = input.json()?;
        let histogram = &document["DurationHistogram"];
        let Some(count) = histogram["Count"].as_f64() else { return Err(input.error("has no DurationHistogram")) };
        let mut counts = [0.0; 3];
        for (code, n) in document["RetCodes"].as_object().into_iter().flatten() {
            // gRPC runs count by word: SERVING, OK.
            let good = is_good_status(code.as_bytes()) || matches!(code.as_str(), "SERVING" | "OK");
            let place = match run.judge(good, code.as_bytes(), b"") {
                Outcome::Ok => 0,
                Outcome::Refused => 2,
                _ => 1,
            };
            counts[place] += n.as_f64().unwrap_or(0.0);
        }
        let [mut ok, failed, refused] = counts;
        if ok + failed + refused == 0.0 {
            let errors = document["ErrorsDurationHistogram"]["Count"].as_f64().unwrap_or(0.0);
            ok = count - errors;
        }
        let dur_ms = document["ActualDuration"].as_f64().unwrap_or(0.0) / 1e6;
        let asked = document["RequestedQPS"]
            .as_str()
            .and_then(|text| text.parse::<f64>().ok())
            .or_else(|| document["RequestedQPS"].as_f64());
        if let Some(rate) = asked.filter(|rate| *rate > 0.0) {
            run.offered(Offered::Scheduled);
            run.more.insert("asked_per_s".into(), rate.into());
        } else {
            run.closed_loop();
        }
        run.caveat(caveat::COORDINATED_OMISSION);
        run.caveat(caveat::PERCENTILES_COARSE);
        run.caveat(caveat::ASSERTION_FREE);
        run.latency = "all";
        let percentile = |q: f64| {
            let list = histogram["Percentiles"].as_array()?;
            let found = list.iter().find(|one| one["Percentile"].as_f64().is_some_and(|at| (at - q).abs() < 1e-9))?;
            found["Value"].as_f64().map(|seconds| seconds * 1e3)
        };
        let begin_ms =
            document["StartTime"].as_str().and_then(|text| Clock::default().us(text.as_bytes()).ok()).map(|us| us / 1000);
        let row = Interval {
            dur_ms,
            offered: Some(asked.filter(|rate| *rate > 0.0).map_or(count, |rate| rate * dur_ms / 1e3)),
            started: Some(count),
            ok: Some(ok),
            failed: Some((count - ok - refused).max(failed)),
            refused: Some(refused),
            vus: document["NumThreads"].as_f64(),
            p50_ms: percentile(50.0),
            p95_ms: percentile(95.0),
            p99_ms: percentile(99.0),
            max_ms: histogram["Max"].as_f64().map(|seconds| seconds * 1e3),
            ..Interval::default()
        };
        run.rung(input, begin_ms, [row]);
        Ok(())
    }
}

#[derive(Deserialize)]
struct Line<'a> {
    latency: f64,
    timestamp: u64,
    ok: Option<bool>,
    #[serde(borrow, default)]
    details: Cow<'a, str>,
}

impl Reader for Access {
    fn name(&self) -> &'static str {
        "fortio-access"
    }

    fn about(&self) -> &'static str {
        "fortio load -access-log-file FILE -access-log-format json"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("{\"latency\":") && head.has("\"timestamp\":") && head.has("\"thread\":")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("fortio");
        run.offered(Offered::Achieved);
        run.caveat(caveat::OPEN_UNKNOWN);
        run.caveat(caveat::COORDINATED_OMISSION);
        run.caveat(caveat::ASSERTION_FREE);
        let (mut clock, mut bytes) = (Clock::default(), Vec::new());
        let id = run.steps.id(UNNAMED.as_bytes());
        while let Some(number) = input.json_line(run, &mut bytes)? {
            let line: Line<'_> = match serde_json::from_slice(&bytes) {
                Ok(line) => line,
                Err(why) => {
                    run.bad_row(number, format!("is no request: {why}"));
                    continue;
                }
            };
            let Some(us) = run.stamp(input, &mut clock, line.timestamp.to_string().as_bytes(), number)? else { continue };
            let code = line.details.trim();
            let good = line.ok.unwrap_or_else(|| code.is_empty() || is_good_status(code.as_bytes()));
            let outcome = run.judge(good, code.as_bytes(), code.as_bytes());
            run.started(us, line.latency * 1e3, id, outcome);
        }
        Ok(())
    }
}
