//! PREFIX.timeline.tsv: a driver's log in the neutral form. This page is the format.
//!
//! ```text
//! #whatgives timeline 1
//! #driver  {"driver":"locust 2.47","source":"run_stats_history.csv","offered":"achieved","latency":"ok","window_ms":10000,"clock_offset_ms":0}
//! unix_ms  dur_ms  step  offered  started  ok  failed  refused  dropped  in_flight  vus  p50_ms  p95_ms  p99_ms  max_ms  hist
//! ```
//!
//! One row per interval and step; step `*` is all together. Values are counts in the interval, never rates; an empty cell
//! is unknown. `hist` is [`crate::hist`]'s cell.

use crate::hist::Hist;
use crate::text::{self, InputError, Lines, parse_number, push_escaped, push_number, unescape};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Write};
use std::path::Path;

/// The first line of the file.
pub const FIRST_LINE: &str = "#whatgives timeline 1";

/// The step that stands for all together.
pub const ALL: &str = "*";

const COLUMNS: [&str; 16] = [
    "unix_ms",
    "dur_ms",
    "step",
    "offered",
    "started",
    "ok",
    "failed",
    "refused",
    "dropped",
    "in_flight",
    "vus",
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "max_ms",
    "hist",
];

/// Where the offered rate comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Offered {
    /// The driver's own schedule, as it recorded it.
    Scheduled,
    /// The plan, as the user gave it.
    Plan,
    /// Iterations begun and dropped.
    Iterations,
    /// What was sent: a closed loop, or a driver that ran out of workers.
    Achieved,
    /// Nobody knows.
    #[default]
    #[serde(other)]
    Unknown,
}

/// The `#driver` line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Driver {
    /// Name and version.
    pub driver: String,
    /// The log it was read from.
    pub source: String,
    /// Where the offered rate comes from.
    pub offered: Offered,
    /// `ok`: latencies are of the ok ones; `all`: of all.
    pub latency: String,
    /// Over how long a window the percentiles were taken.
    pub window_ms: f64,
    /// What was added to the driver's clock to get the sampler's.
    pub clock_offset_ms: f64,
    /// What the log lacks or what it did not check: caveat codes for the reader.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<String>,
    /// Keys of later versions.
    #[serde(flatten)]
    pub more: serde_json::Map<String, serde_json::Value>,
}

/// One interval of one step. `None` is unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interval {
    /// Its begin.
    pub unix_ms: i64,
    /// How long it is.
    pub dur_ms: f64,
    /// The step, or [`ALL`].
    pub step: String,
    /// Should have been sent.
    pub offered: Option<f64>,
    /// Was sent.
    pub started: Option<f64>,
    /// Ended well.
    pub ok: Option<f64>,
    /// The site gave way.
    pub failed: Option<f64>,
    /// The site meant to refuse.
    pub refused: Option<f64>,
    /// Was never sent.
    pub dropped: Option<f64>,
    /// Under way at the interval's end.
    pub in_flight: Option<f64>,
    /// Visitors.
    pub vus: Option<f64>,
    /// Median latency.
    pub p50_ms: Option<f64>,
    /// 95th percentile.
    pub p95_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// Longest.
    pub max_ms: Option<f64>,
    /// The latencies themselves, where the log has them.
    pub hist: Option<Hist>,
}

/// A driver's log in the neutral form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// The `#driver` line.
    pub driver: Driver,
    /// Sorted by begin; within one begin [`ALL`] comes first.
    pub intervals: Vec<Interval>,
}

impl Interval {
    /// Requests that ended in it, whatever the outcome.
    pub fn ended(&self) -> Option<f64> {
        match (self.ok, self.failed, self.refused) {
            (None, None, None) => self.started,
            (ok, failed, refused) => Some(ok.unwrap_or(0.0) + failed.unwrap_or(0.0) + refused.unwrap_or(0.0)),
        }
    }
}

impl Timeline {
    /// The steps in order of appearance, without the one for all together.
    pub fn steps(&self) -> Vec<String> {
        let mut steps: Vec<String> = Vec::new();
        for interval in &self.intervals {
            if interval.step != ALL && !steps.contains(&interval.step) {
                steps.push(interval.step.clone());
            }
        }
        steps
    }

    /// The intervals of all steps together.
    pub fn all(&self) -> impl Iterator<Item = &Interval> {
        self.intervals.iter().filter(|interval| interval.step == ALL)
    }

    /// The steps where there are several; else the one for all together.
    pub fn told_apart(&self) -> Vec<String> {
        let steps = self.steps();
        if steps.len() < 2 { vec![ALL.to_owned()] } else { steps }
    }

    /// Writes the neutral form.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        let mut text = format!("{FIRST_LINE}\n#driver\t{}\n{}\n", serde_json::to_string(&self.driver)?, COLUMNS.join("\t"));
        for i in &self.intervals {
            push_number(&mut text, i.unix_ms as f64);
            text.push('\t');
            push_number(&mut text, i.dur_ms);
            text.push('\t');
            push_escaped(&mut text, &i.step);
            for value in [
                i.offered,
                i.started,
                i.ok,
                i.failed,
                i.refused,
                i.dropped,
                i.in_flight,
                i.vus,
                i.p50_ms,
                i.p95_ms,
                i.p99_ms,
                i.max_ms,
            ] {
                text.push('\t');
                push_number(&mut text, value.unwrap_or(f64::NAN));
            }
            text.push('\t');
            if let Some(hist) = &i.hist {
                text.push_str(&hist.to_string());
            }
            text.push('\n');
            out.write_all(text.as_bytes())?;
            text.clear();
        }
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Reads the neutral form; `path` only names it in errors. A cut last line is dropped.
    pub fn read(path: &Path, input: impl BufRead) -> Result<Self, InputError> {
        let (mut timeline, mut names, mut lines) = (Self::default(), Vec::new(), Lines::new(path, input));
        while let Some(whole) = lines.advance()? {
            let text = lines.text();
            if let Some(json) = text.strip_prefix("#driver\t") {
                timeline.driver = lines.json("#driver", Some(json))?;
            } else if text.starts_with('#') || text.is_empty() {
            } else if names.is_empty() {
                names = lines.columns(&["unix_ms", "dur_ms"])?;
            } else {
                match interval(&names, &text) {
                    Ok(interval) => timeline.intervals.push(interval),
                    Err(_) if !whole => {}
                    Err(what) => return Err(lines.error(what)),
                }
            }
        }
        Ok(timeline)
    }
}

fn interval(names: &[String], text: &str) -> Result<Interval, String> {
    let mut row = Interval { step: ALL.to_owned(), ..Interval::default() };
    for (name, cell) in text::cells(names, text)? {
        let number = || match parse_number(cell.as_bytes()) {
            Some(value) => Ok((!value.is_nan()).then_some(value)),
            None => Err(format!("expected a number in column {name}, found {cell:?}")),
        };
        let needed = || number()?.ok_or_else(|| format!("column {name} is empty"));
        match name {
            "unix_ms" => row.unix_ms = needed()? as i64,
            "dur_ms" => row.dur_ms = needed()?,
            "step" => row.step = unescape(cell),
            "offered" => row.offered = number()?,
            "started" => row.started = number()?,
            "ok" => row.ok = number()?,
            "failed" => row.failed = number()?,
            "refused" => row.refused = number()?,
            "dropped" => row.dropped = number()?,
            "in_flight" => row.in_flight = number()?,
            "vus" => row.vus = number()?,
            "p50_ms" => row.p50_ms = number()?,
            "p95_ms" => row.p95_ms = number()?,
            "p99_ms" => row.p99_ms = number()?,
            "max_ms" => row.max_ms = number()?,
            "hist" if !cell.is_empty() => {
                row.hist =
                    Some(Hist::parse(cell).ok_or_else(|| format!("expected pairs bucket:count in column hist, found {cell:?}"))?);
            }
            _ => {}
        }
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_again_also_when_the_last_line_is_cut() {
        let mut hist = Hist::default();
        hist.add_ms(12.5);
        let timeline = Timeline {
            driver: Driver {
                driver: "k6".into(),
                offered: Offered::Iterations,
                latency: "ok".into(),
                window_ms: 1000.0,
                ..Driver::default()
            },
            intervals: vec![
                Interval {
                    unix_ms: 1000,
                    dur_ms: 1000.0,
                    step: ALL.into(),
                    ok: Some(3.0),
                    failed: Some(0.0),
                    p95_ms: Some(12.5),
                    hist: Some(hist),
                    ..Interval::default()
                },
                Interval { unix_ms: 1000, dur_ms: 1000.0, step: "GET\t/x".into(), started: Some(4.0), ..Interval::default() },
            ],
        };
        let mut bytes = Vec::new();
        timeline.write(&mut bytes).unwrap();
        assert_eq!(Timeline::read(Path::new("t"), &bytes[..]).unwrap(), timeline);
        let cut = Timeline::read(Path::new("t"), &bytes[..bytes.len() - 8]).unwrap();
        assert_eq!(cut.intervals, timeline.intervals[..1]);
    }

    #[test]
    fn an_offered_rate_of_a_kind_not_known_is_unknown() {
        let timeline = Timeline::read(
            Path::new("t"),
            &b"#whatgives timeline 1\n#driver\t{\"offered\":\"guess\"}\nunix_ms\tdur_ms\n1\t2\n"[..],
        )
        .unwrap();
        assert_eq!(timeline.driver.offered, Offered::Unknown);
        assert_eq!(timeline.intervals[0].step, ALL);
    }
}
