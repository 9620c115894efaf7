//! pgbench's intervals and its result: `-l --aggregate-interval=1` (one line a second: counts, sums of latencies and of lags
//! in microseconds), `-P 1` (progress lines, times since the start or since 1970), and what it prints at the end: a rung.
//! Means only: no percentiles.

use super::input::Input;
use super::prose::{leading, number_after};
use super::run::Run;
use super::table::Table;
use super::{Clock, Head, Reader, caveat};
use crate::text::InputError;
use crate::timeline::{ALL, Interval, Offered};

/// pgbench's aggregated log.
pub(super) struct Aggregate;
/// pgbench's progress lines.
pub(super) struct Progress;
/// What pgbench prints at the end.
pub(super) struct Text;

impl Reader for Aggregate {
    fn name(&self) -> &'static str {
        "pgbench-aggregate"
    }

    fn about(&self) -> &'static str {
        "pgbench -l --aggregate-interval=1"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        let cells: Vec<&[u8]> = head.line.split(|byte| *byte == b' ').collect();
        let number = |cell: &&[u8]| !cell.is_empty() && cell.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-');
        cells.len() >= 6 && cells[0].len() == 10 && cells.iter().all(number)
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("pgbench");
        run.caveat(caveat::MEAN_ONLY);
        run.caveat(caveat::SECOND_STAMPS);
        let mut table = Table::new(b' ', 6).without_quotes().dropping_tail();
        let mut clock = Clock::default();
        let mut rows: Vec<Interval> = Vec::new();
        let (mut lagged, mut skipping) = (false, false);
        while let Some(line) = table.next(input, run)? {
            let Some(us) = run.stamp(input, &mut clock, table.fields.get(0), line)? else { continue };
            let Some(count) = table.number(run, line, 1) else { continue };
            let of = |n: usize| table.fields.number(Some(n)).unwrap_or(0.0);
            // start n sum sum2 min max | lag: sum sum2 min max | skipped | retried retries serialization deadlock
            let (sum, longest, lag, skipped) = (of(2), of(5), of(6), of(10));
            let failed = of(13) + of(14);
            lagged |= lag > 0.0;
            skipping |= skipped > 0.0;
            if count > 0.0 && lag > 0.0 {
                run.waited(lag / count / 1e3, sum / count / 1e3);
            }
            rows.push(Interval {
                unix_ms: us / 1000,
                dur_ms: 1000.0,
                step: ALL.to_owned(),
                offered: Some(count + failed + skipped),
                started: None,
                ok: Some(count),
                failed: Some(failed),
                dropped: Some(skipped),
                max_ms: (count > 0.0).then_some(longest / 1e3),
                ..Interval::default()
            });
        }
        let step = rows.windows(2).map(|pair| pair[1].unix_ms - pair[0].unix_ms).filter(|ms| *ms > 0).min().unwrap_or(1000);
        for row in &mut rows {
            row.dur_ms = step as f64;
        }
        scheduled(run, lagged, skipping);
        run.files.push(rows);
        Ok(())
    }
}

/// With a limit every scheduled transaction is done or skipped soon; without one, those waiting are in no figure.
fn scheduled(run: &mut Run<'_>, lagged: bool, skipping: bool) {
    match (lagged, skipping) {
        (_, true) => run.offered(Offered::Scheduled),
        (true, false) => {
            run.offered(Offered::Achieved);
            run.caveat(caveat::OPEN_UNKNOWN);
        }
        (false, false) => run.closed_loop(),
    }
}

impl Reader for Progress {
    fn name(&self) -> &'static str {
        "pgbench-progress"
    }

    fn about(&self) -> &'static str {
        "pgbench -P 1 2> FILE"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.has("progress: ") && head.has(" tps, lat ")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("pgbench");
        run.caveat(caveat::MEAN_ONLY);
        let (mut lines, mut lagged, mut skipping) = (Vec::new(), false, false);
        loop {
            let (number, text) = {
                let Some(line) = input.line()? else { break };
                (line.number, String::from_utf8_lossy(line.bytes).into_owned())
            };
            let Some(rest) = text.strip_prefix("progress: ") else { continue };
            run.rows += 1;
            // `1.0 s, 376.3 tps, lat 84.338 ms stddev 77.929, 0 failed, lag 55.177 ms, 20 skipped`
            let part = |unit: &str| rest.split(", ").find_map(|part| leading(part.strip_suffix(unit)?));
            let (Some(at), Some(rate)) = (part(" s"), part(" tps")) else {
                run.bad_row(number, "has no time or no rate");
                continue;
            };
            let lag = rest.split(", ").find_map(|part| leading(part.strip_prefix("lag ")?));
            let latency = number_after(rest, "lat ").unwrap_or(0.0);
            lagged |= lag.is_some();
            if let Some(lag) = lag {
                run.waited(lag, latency);
            }
            let skipped = part(" skipped");
            skipping |= skipped.is_some_and(|skipped| skipped > 0.0);
            lines.push((at, rate, part(" failed").unwrap_or(0.0), skipped));
        }
        let absolute = lines.first().is_some_and(|(at, ..)| *at > 1e9);
        let origin = if absolute { 0 } else { run.origin_us(input) };
        let usual = lines.windows(2).map(|pair| pair[1].0 - pair[0].0).fold(f64::INFINITY, f64::min);
        let mut before = match lines.first() {
            Some((at, ..)) if absolute => at - if usual.is_finite() { usual } else { 1.0 },
            _ => 0.0,
        };
        let mut rows = Vec::new();
        for (at, rate, failed, skipped) in lines {
            let seconds = at - before;
            if seconds <= 0.0 {
                continue;
            }
            let count = (rate * seconds).round();
            rows.push(Interval {
                unix_ms: origin / 1000 + (before * 1e3).round() as i64,
                dur_ms: (seconds * 1e3).round(),
                step: ALL.to_owned(),
                offered: Some(count + failed + skipped.unwrap_or(0.0)),
                ok: Some(count),
                failed: Some(failed),
                dropped: skipped,
                ..Interval::default()
            });
            before = at;
        }
        scheduled(run, lagged, skipping);
        run.files.push(rows);
        Ok(())
    }
}

impl Reader for Text {
    fn name(&self) -> &'static str {
        "pgbench-text"
    }

    fn about(&self) -> &'static str {
        "what pgbench prints at the end: a rung"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.has("transaction type:") && head.has("number of clients:")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        run.driver("pgbench");
        run.caveat(caveat::MEAN_ONLY);
        let text = input.text()?;
        let of = |label: &str| number_after(&text, label);
        let (Some(count), Some(rate)) = (of("number of transactions actually processed:"), of("\ntps =")) else {
            return Err(input.error("has no count of transactions or no tps: pgbench was stopped before it printed its result"));
        };
        let lag = text.contains("rate limit schedule lag");
        let (failed, skipped) = (of("number of failed transactions:").unwrap_or(0.0), of("number of transactions skipped:"));
        scheduled(run, lag, skipped.is_some_and(|skipped| skipped > 0.0));
        let row = Interval {
            dur_ms: if rate > 0.0 { count / rate * 1e3 } else { 0.0 },
            offered: Some(count + failed + skipped.unwrap_or(0.0)),
            ok: Some(count),
            failed: Some(failed),
            dropped: skipped,
            vus: of("number of clients:"),
            ..Interval::default()
        };
        run.rung(input, None, [row]);
        Ok(())
    }
}
