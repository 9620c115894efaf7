//! redis-benchmark: its progress (a line rewritten four times a second, ended by carriage returns, without any time), its
//! result at the end, and `--csv` (one line a command: a rung). Means only in the progress.

use super::input::Input;
use super::prose::{leading, number_before};
use super::run::Run;
use super::table::Table;
use super::{Head, Reader, caveat};
use crate::text::InputError;
use crate::timeline::Interval;

/// How often it writes, where its result does not tell.
const USUAL_MS: f64 = 250.0;

/// redis-benchmark's progress.
pub(super) struct Progress;
/// redis-benchmark's CSV.
pub(super) struct Csv;

impl Reader for Progress {
    fn name(&self) -> &'static str {
        "redis-benchmark"
    }

    fn about(&self) -> &'static str {
        "what redis-benchmark prints (with -q or without)"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.has(": rps=") && head.has("avg_msec=")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("redis-benchmark");
        run.closed_loop();
        run.caveat(caveat::MEAN_ONLY);
        let mut commands: Vec<Command> = Vec::new();
        let text = input.text()?;
        // Text before the first carriage return of a line is the previous command's result.
        for part in text.split(['\r', '\n']) {
            if let Some((name, rest)) = part.trim_start().split_once(": rps=") {
                let name = name.trim();
                if commands.last().is_none_or(|command| command.name != name) {
                    commands.push(Command { name: name.to_owned(), ..Command::default() });
                }
                run.rows += 1;
                if let (Some(command), Some(rate)) = (commands.last_mut(), leading(rest)) {
                    command.rates.push(rate);
                }
            } else if let (Some(command), Some(total)) = (commands.last_mut(), number_before(part, " requests completed in ")) {
                command.total = Some(total);
                command.seconds = part.split_once(" requests completed in ").and_then(|(_, rest)| leading(rest));
            }
        }
        let mut begin = run.origin_us(input) as f64 / 1e3;
        let mut rows = Vec::new();
        for mut command in commands {
            // The first line is written before anything was done.
            if command.rates.first() == Some(&0.0) {
                command.rates.remove(0);
            }
            let count = command.rates.len().max(1) as f64;
            // Rates are rounded: where the total is known they are made to sum up to it.
            let sum: f64 = command.rates.iter().sum();
            let each_ms = command.seconds.map_or(USUAL_MS, |seconds| seconds * 1e3 / count);
            for rate in command.rates {
                let done = command.total.filter(|_| sum > 0.0).map_or(rate * each_ms / 1e3, |total| total * rate / sum);
                rows.push(Interval {
                    unix_ms: begin.round() as i64,
                    dur_ms: each_ms,
                    step: command.name.clone(),
                    offered: Some(done),
                    ok: Some(done),
                    ..Interval::default()
                });
                begin += each_ms;
            }
        }
        run.files.push(rows);
        Ok(())
    }
}

#[derive(Default)]
struct Command {
    name: String,
    rates: Vec<f64>,
    total: Option<f64>,
    seconds: Option<f64>,
}

impl Reader for Csv {
    fn name(&self) -> &'static str {
        "redis-benchmark-csv"
    }

    fn about(&self) -> &'static str {
        "redis-benchmark --csv: a rung a command"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("\"test\",\"rps\"")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("redis-benchmark");
        run.closed_loop();
        run.latency = "all";
        run.caveat(caveat::PERCENTILES_COARSE);
        // Only the rate is known: each command's row stands for one second of it.
        run.caveat(caveat::DURATION_UNKNOWN);
        let mut table = Table::with_header(input, b',')?;
        let (name, rate) = (table.needed(input, "test")?, table.needed(input, "rps")?);
        let column = |name: &str| table.fields.column(&[name]);
        let latencies = ["p50_latency_ms", "p95_latency_ms", "p99_latency_ms", "max_latency_ms"].map(column);
        while let Some(line) = table.next(input, run)? {
            let Some(rate) = table.number(run, line, rate) else { continue };
            let [p50_ms, p95_ms, p99_ms, max_ms] = latencies.map(|column| table.fields.number(column));
            let step = String::from_utf8_lossy(table.fields.get(name)).into_owned();
            let row = Interval {
                dur_ms: 1000.0,
                step,
                offered: Some(rate),
                ok: Some(rate),
                p50_ms,
                p95_ms,
                p99_ms,
                max_ms,
                ..Interval::default()
            };
            run.rung(input, None, [row]);
            run.rows -= 1;
        }
        Ok(())
    }
}
