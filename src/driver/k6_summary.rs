//! k6, `--summary-export=FILE` and what `handleSummary` is given: one rung.

use super::input::Input;
use super::run::Run;
use super::{Head, Reader, caveat};
use crate::text::InputError;
use crate::timeline::{Interval, Offered};
use serde_json::{Value, json};

/// k6's summary.
pub(super) struct Summary;

impl Reader for Summary {
    fn name(&self) -> &'static str {
        "k6-summary"
    }

    fn about(&self) -> &'static str {
        "k6 run --summary-export=FILE: a rung"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("{")
            && head.has("\"metrics\"")
            && (head.has("\"http_reqs\"") || head.has("\"http_req_") || head.has("\"iteration_duration\""))
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("k6");
        let document = input.json()?;
        let metrics = &document["metrics"];
        let of = |name: &str, value: &str| {
            let metric = &metrics[name];
            metric.get("values").unwrap_or(metric)[value].as_f64()
        };
        let Some(count) = of("http_reqs", "count") else {
            return Err(input.error("a k6 summary without http_reqs: it sent no HTTP request"));
        };
        // k6 counts the failed ones as the passes of the rate "failed".
        let failed = of("http_req_failed", "passes").unwrap_or(0.0);
        let rate = of("http_reqs", "rate").filter(|rate| *rate > 0.0);
        if rate.is_none() {
            run.caveat(caveat::DURATION_UNKNOWN);
        }
        let row = Interval {
            dur_ms: rate.map_or(0.0, |rate| count / rate * 1e3),
            offered: Some(count + of("dropped_iterations", "count").unwrap_or(0.0)),
            started: Some(count),
            ok: Some(count - failed),
            failed: Some(failed),
            dropped: of("dropped_iterations", "count"),
            p50_ms: of("http_req_duration", "med"),
            p95_ms: of("http_req_duration", "p(95)"),
            p99_ms: of("http_req_duration", "p(99)"),
            max_ms: of("http_req_duration", "max"),
            vus: of("vus_max", "max").or_else(|| of("vus_max", "value")),
            ..Interval::default()
        };
        run.latency = "all";
        if row.dropped.is_some() {
            run.offered(Offered::Iterations);
        } else {
            run.offered(Offered::Achieved);
            run.caveat(caveat::OPEN_UNKNOWN);
        }
        run.caveat(caveat::PERCENTILES_COARSE);
        match (of("checks", "passes"), of("checks", "fails")) {
            (None, None) => run.caveat(caveat::ASSERTION_FREE),
            (passed, failed) => {
                let checks = json!({"passed": passed, "failed": failed});
                run.more.insert("checks".into(), if checks == Value::Null { json!({}) } else { checks });
            }
        }
        run.rung(input, None, [row]);
        Ok(())
    }
}
