//! `memtier_benchmark --json-out-file FILE`: a second-by-second series of each kind of command, and the run's start in
//! milliseconds. Empty seconds have no latencies.

use super::input::Input;
use super::run::Run;
use super::{Head, Reader, caveat};
use crate::text::InputError;
use crate::timeline::{ALL, Interval, Offered};

/// memtier's JSON.
pub(super) struct Json;

impl Reader for Json {
    fn name(&self) -> &'static str {
        "memtier"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["memtier_benchmark"]
    }

    fn about(&self) -> &'static str {
        "memtier_benchmark --json-out-file FILE"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("{") && head.has("\"configuration\"") && head.has("\"run information\"")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("memtier_benchmark");
        let document = input.json()?;
        let Some(stats) = document.get("ALL STATS").and_then(|stats| stats.as_object()) else {
            return Err(input
                .error("has no \"ALL STATS\": several runs were made into one file")
                .hint("memtier_benchmark --run-count=1, one file a run"));
        };
        let limited = document["configuration"]["rate_limit"].as_f64().is_some_and(|rate| rate > 0.0);
        if limited {
            run.offered(Offered::Achieved);
            run.caveat(caveat::OPEN_UNKNOWN);
            run.caveat(caveat::COORDINATED_OMISSION);
        } else {
            run.closed_loop();
        }
        run.caveat(caveat::PERCENTILES_COARSE);
        run.latency = "all";
        let begin = match stats.get("Runtime").and_then(|runtime| runtime["Start time"].as_i64()) {
            Some(begin) => begin,
            None => run.origin_us(input) / 1000,
        };
        let mut rows = Vec::new();
        for (name, series) in stats.iter().filter_map(|(name, kind)| Some((name, kind.get("Time-Serie")?.as_object()?))) {
            let step = if name == "Totals" { ALL } else { name.as_str() };
            for (second, counts) in series {
                run.rows += 1;
                let Ok(second) = second.parse::<i64>() else {
                    run.bad_row(run.rows, format!("not a second: {second:?}"));
                    continue;
                };
                let of = |key: &str| counts[key].as_f64();
                let count = of("Count").unwrap_or(0.0);
                rows.push(Interval {
                    unix_ms: begin + second * 1000,
                    dur_ms: 1000.0,
                    step: step.to_owned(),
                    offered: Some(count),
                    ok: Some(count),
                    p50_ms: of("p50.00"),
                    p95_ms: of("p95.00"),
                    p99_ms: of("p99.00"),
                    max_ms: of("Max Latency"),
                    ..Interval::default()
                });
            }
        }
        if rows.is_empty() {
            return Err(input.error("has no time series").hint("memtier_benchmark 1.3 and later write it"));
        }
        // Old versions have the series in the totals too, later ones only by command.
        if rows.iter().filter(|row| row.step == ALL).all(|row| row.ok == Some(0.0)) {
            rows.retain(|row| row.step != ALL);
        }
        run.files.push(rows);
        Ok(())
    }
}
