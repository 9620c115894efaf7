//! wrk and wrk2 print one summary: a rung. wrk leaves out what its closed loop did not send; wrk2 keeps a rate, measures
//! from the scheduled send, and leaves its first ten seconds out of the latencies.

use super::input::Input;
use super::prose::{number_after, number_before, time_after, time_ms};
use super::run::Run;
use super::{Head, Reader, caveat};
use crate::text::InputError;
use crate::timeline::{Interval, Offered};

/// What wrk prints.
pub(super) struct Text;

impl Reader for Text {
    fn name(&self) -> &'static str {
        "wrk"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["wrk2"]
    }

    fn about(&self) -> &'static str {
        "what wrk --latency or wrk2 -L prints: a rung"
    }

    fn sniff(&self, head: &Head<'_>) -> bool {
        head.starts_with("Running ") && head.has(" test @ ") && head.has("Thread Stats")
    }

    fn read(&self, input: &mut Input, run: &mut Run<'_>) -> Result<(), InputError> {
        let text = input.text()?;
        let constant_rate = text.contains("Thread calibration:") || text.contains("HdrHistogram");
        run.driver(if constant_rate { "wrk2" } else { "wrk" });
        if constant_rate {
            run.offered(Offered::Achieved);
            run.caveat(caveat::OPEN_UNKNOWN);
        } else {
            run.closed_loop();
        }
        run.latency = "all";
        run.caveat(caveat::PERCENTILES_COARSE);
        run.caveat(caveat::ASSERTION_FREE);
        let (Some(count), Some(dur_ms)) = (number_before(&text, " requests in "), time_after(&text, " requests in ")) else {
            return Err(input.error("has no line `… requests in …`: wrk was stopped before it printed its result"));
        };
        let bad = number_after(&text, "Non-2xx or 3xx responses:").unwrap_or(0.0);
        // `Socket errors: connect 0, read 12, write 0, timeout 3`: of these, connect failures were never requests.
        let errors: f64 = ["connect ", "read ", "write ", "timeout "]
            .iter()
            .filter_map(|label| number_after(text.split_once("Socket errors:")?.1.lines().next()?, label))
            .sum();
        // wrk2 prints a table with more digits; the first one is the corrected.
        let spectrum = |q: f64| {
            text.lines().find_map(|line| {
                let mut words = line.split_whitespace();
                let (value, share) = (words.next()?.parse::<f64>().ok()?, words.next()?.parse::<f64>().ok()?);
                (words.count() == 2 && share >= q).then_some(value)
            })
        };
        let percentile = |label: &str| {
            text.lines().find_map(|line| {
                let rest = line.trim_start().strip_prefix(label)?;
                time_ms(rest)
            })
        };
        let longest = text
            .lines()
            .find_map(|line| line.trim_start().strip_prefix("Latency "))
            .and_then(|rest| time_ms(rest.split_whitespace().nth(2)?));
        let row = Interval {
            dur_ms,
            offered: Some(count + errors),
            started: Some(count + errors),
            ok: Some((count - bad).max(0.0)),
            failed: Some(bad + errors),
            p50_ms: percentile("50% ").or_else(|| percentile("50.000%")),
            p95_ms: percentile("95% ").or_else(|| spectrum(0.95)),
            p99_ms: percentile("99% ").or_else(|| percentile("99.000%")),
            max_ms: longest,
            vus: number_before(&text, " connections"),
            ..Interval::default()
        };
        run.rung(input, None, [row]);
        Ok(())
    }
}
