//! `--explain GAUGE`: why one gauge was or was not a mover, in words, and everything that was tested as a table for plotting.

use super::bench::{Bench, Trace};
use super::gather::Gauge;
use super::movers::{Outcome, trial};
use crate::judge::currency::Measure;
use crate::judge::robust::smooth;
use crate::text::push_number;
use std::fmt::Write as _;

/// The words as `#` lines, then one line a bin. `Err` names what is close to it where there is no such gauge.
pub fn explain(bench: &Bench, name: &str) -> Result<String, String> {
    let frame = bench.frame;
    let Some(n) = frame.gauges.iter().position(|gauge| gauge.name == name) else { return Err(unknown(bench, name)) };
    let gauge = &frame.gauges[n];
    let found = trial(bench, n);
    let mut out = String::new();
    let mut say = |line: String| {
        out.push_str("# ");
        out.push_str(&line);
        out.push('\n');
    };
    let class = gauge.class.and_then(|class| serde_json::to_value(class).ok()).and_then(|class| class.as_str().map(str::to_owned));
    let class = class.unwrap_or_else(|| "none".to_owned());
    let guessed = if gauge.guessed { ", guessed from its name" } else { "" };
    say(format!(
        "{name}: class {class}{guessed}; {}",
        if gauge.meaning.resource.is_empty() { "no resource named" } else { &gauge.meaning.resource }
    ));
    let at = |bin: usize| format!("t+{:.1} s ({:.1} req/s)", frame.elapsed_s(bin), bench.phases.told[bin]);
    match &found.outcome {
        Outcome::Moved(moved) => say(format!(
            "it left its rest at {} and stayed away: not before {}, not after {}; it was certain at {}",
            at(moved.onset.at),
            at(moved.onset.low),
            at(moved.onset.high),
            at(moved.alarm)
        )),
        Outcome::Healed(from, to) => say(format!(
            "it left at {} and was back at {} while the load stayed or climbed: not a mover, \"moved, not with the load\"",
            at(*from),
            at((*to).min(frame.bins - 1))
        )),
        Outcome::Rested => say("it never left what the load explains by what is material: not a mover".to_owned()),
        Outcome::NotJudged(why) => say(format!("it was not judged: {why}")),
        Outcome::Evidence => say("it is evidence or a denominator: a gauge of its class is never the first mover".to_owned()),
    }
    let Some((trace, path)) = found.tested else { return Ok(out) };
    let unit = match trace.measure {
        Measure::MsPerRequest => "ms waited per request",
        Measure::PerSecond => "events per second",
        Measure::Points => "points of the ratio lost",
        Measure::Seconds => "seconds",
        Measure::Share => "share",
    };
    let (from, to) = bench.phases.range;
    let windows = bench.windows;
    let seconds = |bins: usize| bins as f64 * frame.step_s;
    say(format!(
        "signal, expected, floor and scale are in {unit}; expected is what the load explains, floor what is material over it"
    ));
    say(format!(
        "judged from {} to {} in bins of {:.2} s; low load: {} bins",
        at(from),
        at(to - 1),
        frame.step_s,
        bench.phases.low_bins().count()
    ));
    say(format!(
        "the test: a CUSUM of (signal - expected) / scale over {:.1}; then 80 % of the next {:.1} s, and 60 % of all later bins of that load or more, over half the floor (smoothed over {:.1} s)",
        windows.height,
        seconds(windows.last),
        seconds(windows.smooth)
    ));
    for excursion in &path.excursions {
        say(format!(
            "an excursion: {} to {}, highest {:.3}",
            at(excursion.start),
            at(excursion.end.min(frame.bins - 1)),
            excursion.peak
        ));
    }
    table(&mut out, bench, gauge, &trace, &path.sums);
    Ok(out)
}

/// Everything that was tested, a line a bin.
fn table(out: &mut String, bench: &Bench, gauge: &Gauge, trace: &Trace, sums: &[f64]) {
    out.push_str("elapsed_s\tload_per_s\tserved_per_s\tvalue\tsignal\texpected\tfloor\tscale\tsmoothed_excess\tcusum\n");
    let smoothed = smooth(&trace.excess, bench.windows.smooth);
    for (bin, excess) in smoothed.iter().enumerate() {
        let cells = [
            bench.phases.axis[bin],
            bench.rate.per_s[bin],
            gauge.values[bin],
            trace.signal[bin],
            trace.expected[bin],
            trace.floor[bin],
            trace.scale[bin],
            *excess,
            sums[bin],
        ];
        let _ = write!(out, "{:.3}", bench.frame.elapsed_s(bin));
        for cell in cells {
            out.push('\t');
            push_number(out, (cell * 1e4).round() / 1e4);
        }
        out.push('\n');
    }
}

fn unknown(bench: &Bench, name: &str) -> String {
    let part = name.rsplit('.').next().unwrap_or(name);
    let near: Vec<&str> =
        bench.frame.gauges.iter().map(|gauge| &*gauge.name).filter(|other| other.contains(part) || name.contains(*other)).collect();
    let hint = if near.is_empty() { format!("{} gauges are there", bench.frame.gauges.len()) } else { near.join(", ") };
    format!("no gauge {name:?} in the ticks\nhint: {hint}")
}
