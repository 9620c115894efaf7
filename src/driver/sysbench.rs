//! sysbench `--report-interval=1`: a line a second, times since the start. With `--rate` a second line tells the driver's own
//! backlog, and so the schedule: what was done and by how much the queue grew. The percentile is the one of `--percentile`.
//! Without interval lines the figures at the end are a rung.

use super::input::Input;
use super::prose::{leading, number_after};
use super::run::Run;
use super::{Head, Reader, caveat};
use crate::text::InputError;
use crate::timeline::{ALL, Interval, Offered};

/// What sysbench prints.
pub(super) struct Text;

impl Reader for Text {
    fn name(&self) -> &'static str {
        "sysbench"
    }

    fn about(&self) -> &'static str {
        "sysbench --report-interval=1 … run > FILE"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("sysbench ") || (head.starts_with("[ ") && head.has(" thds: "))
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("sysbench");
        let (mut rows, mut before, mut backlog, mut scheduled) = (Vec::<(f64, Interval)>::new(), 0.0, 0.0, false);
        let mut rest = String::new();
        loop {
            let (number, text) = {
                let Some(line) = input.line()? else { break };
                (line.number, String::from_utf8_lossy(line.bytes).into_owned())
            };
            let Some((at, line)) = interval_line(&text) else {
                if rest.len() < 1 << 20 {
                    rest.push_str(&text);
                    rest.push('\n');
                }
                continue;
            };
            run.rows += 1;
            if let Some(queue) = number_after(line, "queue length:") {
                if let Some((_, row)) = rows.last_mut().filter(|(end, _)| *end == at) {
                    let done = row.ok.unwrap_or(0.0) + row.failed.unwrap_or(0.0);
                    row.offered = Some((done + queue - backlog).max(0.0));
                    row.in_flight = number_after(line, "concurrency:");
                    scheduled = true;
                }
                backlog = queue;
                continue;
            }
            let Some(rate) = number_after(line, "tps:") else {
                run.bad_row(number, "an interval without tps");
                continue;
            };
            let seconds = at - before;
            if seconds <= 0.0 {
                run.bad_row(number, "a time that does not rise");
                continue;
            }
            let percentile = number_after(line, "lat (ms,");
            let latency = line.split_once("%):").and_then(|(_, rest)| leading(rest)).filter(|ms| *ms > 0.0);
            let told = |q: f64| latency.filter(|_| percentile == Some(q));
            let (done, failed) = (rate * seconds, number_after(line, "err/s:").unwrap_or(0.0) * seconds);
            let row = Interval {
                unix_ms: (before * 1e3) as i64,
                dur_ms: seconds * 1e3,
                step: ALL.to_owned(),
                offered: Some((done + failed).round()),
                ok: Some(done.round()),
                failed: Some(failed.round()),
                vus: number_after(line, "thds:"),
                p50_ms: told(50.0),
                p95_ms: told(95.0),
                p99_ms: told(99.0),
                ..Interval::default()
            };
            rows.push((at, row));
            before = at;
        }
        run.latency = "all";
        run.caveat(caveat::PERCENTILES_COARSE);
        if scheduled {
            run.offered(Offered::Scheduled);
            run.caveat(caveat::DRIVER_QUEUE);
        } else {
            run.closed_loop();
        }
        if rows.is_empty() {
            return rung(input, run, &rest);
        }
        let origin = run.origin_us(input) / 1000;
        run.files.push(rows.into_iter().map(|(_, row)| Interval { unix_ms: row.unix_ms + origin, ..row }).collect());
        Ok(())
    }
}

/// `[ 12s ] …`: the second, and what stands behind.
fn interval_line(text: &str) -> Option<(f64, &str)> {
    let (at, rest) = text.strip_prefix("[ ")?.split_once("s ]")?;
    Some((at.trim().parse().ok()?, rest))
}

fn rung(input: &Input, run: &mut Run<'_>, text: &str) -> Result<(), InputError> {
    let of = |label: &str| number_after(text, label);
    let count = of("transactions:").or_else(|| of("total number of events:"));
    let (Some(count), Some(seconds)) = (count, of("total time:")) else {
        return Err(input
            .error("has neither interval lines nor a result")
            .hint("sysbench --report-interval=1 writes the intervals"));
    };
    let failed = of("ignored errors:").unwrap_or(0.0);
    let at = |q: &str| of(&format!("{q}th percentile:"));
    let row = Interval {
        dur_ms: seconds * 1e3,
        offered: Some(count + failed),
        ok: Some(count),
        failed: Some(failed),
        vus: of("Number of threads:"),
        p50_ms: at("50"),
        p95_ms: at("95"),
        p99_ms: at("99"),
        max_ms: text.split_once("Latency (ms):").and_then(|(_, rest)| number_after(rest, "max:")),
        ..Interval::default()
    };
    run.rung(input, None, [row]);
    Ok(())
}
