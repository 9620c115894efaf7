//! Totals by name: Locust's `PREFIX_stats.csv` (a rung) and Taurus' `final-stats.csv` (a summary, in seconds).

use super::input::Input;
use super::run::{Kind, Run};
use super::table::Table;
use super::{Head, Reader, caveat};
use crate::text::InputError;
use crate::timeline::{ALL, Interval};

/// Locust's totals.
pub(super) struct Locust;
/// Taurus' totals.
pub(super) struct Taurus;

impl Reader for Locust {
    fn name(&self) -> &'static str {
        "locust-stats"
    }

    fn about(&self) -> &'static str {
        "locust --csv PREFIX: PREFIX_stats.csv: a rung"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("Type,Name,Request Count,")
            || head.starts_with("\"Type\",\"Name\",\"Request Count\",")
            || head.starts_with("\"Method\",\"Name\",\"# requests\"")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("locust");
        run.closed_loop();
        run.caveat(caveat::PERCENTILES_COARSE);
        run.caveat(caveat::ASSERTION_FREE);
        run.latency = "all";
        let mut table = Table::with_header(input, b',')?;
        let column = |names: &[&str]| table.fields.column(names);
        let (name, count) = (table.needed(input, "Name")?, column(&["Request Count", "# requests"]));
        let (failed, rate) = (column(&["Failure Count", "# failures"]), column(&["Requests/s"]));
        let latencies = ["50%", "95%", "99%", "100%"].map(|name| column(&[name]));
        let Some(count) = count else { return Err(input.error("has no column Request Count")) };
        let mut rows = Vec::new();
        while let Some(line) = table.next(input, run)? {
            let Some(count) = table.number(run, line, count) else { continue };
            let broken = table.fields.number(failed).unwrap_or(0.0);
            let name = String::from_utf8_lossy(table.fields.get(name)).into_owned();
            let [p50_ms, p95_ms, p99_ms, max_ms] = latencies.map(|column| table.fields.number(column).filter(|_| count > 0.0));
            rows.push(Interval {
                dur_ms: table.fields.number(rate).filter(|rate| *rate > 0.0).map_or(0.0, |rate| count / rate * 1e3),
                step: if matches!(name.as_str(), "Aggregated" | "Total") { ALL.to_owned() } else { name },
                offered: Some(count),
                ok: Some(count - broken),
                failed: Some(broken),
                p50_ms,
                p95_ms,
                p99_ms,
                max_ms,
                ..Interval::default()
            });
        }
        run.rung(input, None, rows);
        run.rows -= 1;
        Ok(())
    }
}

impl Reader for Taurus {
    fn name(&self) -> &'static str {
        "taurus-stats"
    }

    fn about(&self) -> &'static str {
        "Taurus final-stats with dump-csv: a summary"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("label,") && head.has("avg_rt") && head.has("perc_")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("taurus");
        run.closed_loop();
        run.caveat(caveat::PERCENTILES_COARSE);
        run.caveat(caveat::DURATION_UNKNOWN);
        run.caveat(caveat::ASSERTION_FREE);
        run.latency = "all";
        let mut table = Table::with_header(input, b',')?;
        let (label, good, bad) = (table.needed(input, "label")?, table.needed(input, "succ")?, table.needed(input, "fail")?);
        let column = |name: &str| table.fields.column(&[name]);
        let latencies = ["perc_50.0", "perc_95.0", "perc_99.0", "perc_100.0"].map(column);
        let users = column("concurrency");
        let mut rows = Vec::new();
        while let Some(line) = table.next(input, run)? {
            let (Some(ok), Some(failed)) = (table.number(run, line, good), table.number(run, line, bad)) else { continue };
            // The row without a label is the sum of all.
            let label = String::from_utf8_lossy(table.fields.get(label)).into_owned();
            let [p50_ms, p95_ms, p99_ms, max_ms] = latencies.map(|column| table.fields.number(column).map(|seconds| seconds * 1e3));
            rows.push(Interval {
                step: if label.is_empty() { ALL.to_owned() } else { label },
                ok: Some(ok),
                failed: Some(failed),
                vus: table.fields.number(users),
                p50_ms,
                p95_ms,
                p99_ms,
                max_ms,
                ..Interval::default()
            });
        }
        run.kind = Kind::Summary;
        run.rung(input, None, rows);
        run.rows -= 1;
        Ok(())
    }
}
