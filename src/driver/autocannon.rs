//! autocannon `--json`: one rung. Its latencies are corrected for coordinated omission unless told otherwise, by adding ones
//! of requests never sent: their count is no count of requests (autocannon#274).

use super::input::Input;
use super::run::Run;
use super::{Clock, Head, Reader, caveat};
use crate::text::InputError;
use crate::timeline::{Interval, Offered};

/// autocannon's JSON.
pub(super) struct Json;

impl Reader for Json {
    fn name(&self) -> &'static str {
        "autocannon"
    }

    fn about(&self) -> &'static str {
        "autocannon --json: a rung"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("{") && head.has("\"sampleInt\"") && head.has("\"non2xx\"")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("autocannon");
        let document = input.json()?;
        let of = |key: &str| document[key].as_f64();
        let ms = |key: &str| document["latency"][key].as_f64();
        let sent = document["requests"]["total"].as_f64().or_else(|| document["requests"]["sent"].as_f64());
        let good: f64 = ["1xx", "2xx", "3xx"].iter().filter_map(|class| of(class)).sum();
        // Errors contain the timeouts.
        let failed =
            of("non2xx").unwrap_or(0.0).max(of("4xx").unwrap_or(0.0) + of("5xx").unwrap_or(0.0)) + of("errors").unwrap_or(0.0);
        if sent.is_none() && good == 0.0 {
            return Err(input.error("has no count of requests"));
        }
        run.offered(Offered::Achieved);
        run.caveat(caveat::OPEN_UNKNOWN);
        let counted = document["latency"]["totalCount"].as_f64().unwrap_or(0.0);
        run.caveat(if counted > (good + failed) * 1.01 { caveat::CORRECTED_LATENCY } else { caveat::COORDINATED_OMISSION });
        run.caveat(caveat::PERCENTILES_COARSE);
        run.caveat(caveat::ASSERTION_FREE);
        run.latency = "all";
        let begin_ms = document["start"].as_str().and_then(|text| Clock::default().us(text.as_bytes()).ok()).map(|us| us / 1000);
        let row = Interval {
            dur_ms: of("duration").unwrap_or(0.0) * 1e3,
            offered: Some(good + failed),
            started: Some(good + failed),
            ok: Some(good),
            failed: Some(failed),
            vus: of("connections"),
            p50_ms: ms("p50"),
            p95_ms: ms("p95"),
            p99_ms: ms("p99"),
            max_ms: ms("max"),
            ..Interval::default()
        };
        run.rung(input, begin_ms, [row]);
        Ok(())
    }
}
