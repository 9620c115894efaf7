//! One line of the file of runs.

use super::{Run, about};
use crate::correlate::gather::Frame;
use crate::correlate::tell;
use crate::correlate::verdict::Verdict;
use crate::text::{parse_number, push_escaped, push_number, unescape};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The columns.
pub const COLUMNS: [&str; 15] = [
    "start_unix_ms",
    "scenario",
    "version",
    "labels",
    "verdict",
    "knee_per_s",
    "knee_low",
    "knee_high",
    "top_per_s",
    "first",
    "first_per_s",
    "growing",
    "recovery_s",
    "gates",
    "about",
];

/// The label that names the version under test: it may differ within a scenario.
const VERSION: &str = "version";

/// One run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// When it began.
    pub start_unix_ms: i64,
    /// The fingerprint of its scenario.
    pub scenario: String,
    /// The version under test.
    pub version: Option<String>,
    /// All labels.
    pub labels: BTreeMap<String, String>,
    /// The verdict in one word.
    pub verdict: String,
    /// The knee, its low and its high end.
    pub knee: Option<[f64; 3]>,
    /// The highest load that lasted.
    pub top_per_s: Option<f64>,
    /// The first mover.
    pub first: Option<String>,
    /// Where it moved.
    pub first_per_s: Option<f64>,
    /// The gauge that grew fastest on a plateau.
    pub growing: Option<String>,
    /// Seconds, or `never`.
    pub recovery_s: Option<String>,
    /// How many gates held of how many.
    pub gates: Option<String>,
    /// Targets, gauges, steps, phases.
    pub about: Value,
}

/// How many gates held.
pub fn held(verdict: &Verdict) -> Option<String> {
    let all = verdict.gates.len();
    (all > 0).then(|| format!("{}/{all}", verdict.gates.iter().filter(|gate| gate.passed).count()))
}

impl Line {
    /// Of a run and its verdict.
    pub fn of(run: Run, verdict: &Verdict) -> Self {
        let labels = verdict.run.labels.clone();
        let spikes = verdict.recovery.as_deref().unwrap_or_default();
        let slowest = spikes.iter().filter_map(|spike| spike.after_s).fold(0.0, f64::max);
        let steps = verdict.steps.iter().flatten().map(|step| &*step.step);
        let grown = verdict.growth.iter().flat_map(|growth| &growth.plateaus).flat_map(|held| &held.gauges).next();
        Self {
            start_unix_ms: verdict.run.start_unix_ms,
            scenario: fingerprint(run.frame, &labels, steps),
            version: labels.get(VERSION).cloned(),
            verdict: tell::answer_name(verdict.verdict).to_owned(),
            knee: verdict.knee.map(|knee| [knee.rate_per_s, knee.low, knee.high]),
            top_per_s: verdict.run.top_rate_per_s,
            first: verdict.first.as_ref().map(|first| first.gauge.clone()),
            first_per_s: verdict.first.as_ref().map(|first| first.rate_per_s.value),
            growing: grown.map(|grown| grown.gauge.clone()),
            recovery_s: match spikes {
                [] => None,
                spikes if spikes.iter().any(|spike| !spike.recovered) => Some("never".to_owned()),
                _ => Some(slowest.to_string()),
            },
            gates: held(verdict),
            about: about::of(run, verdict),
            labels,
        }
    }

    /// The rate that the system could do: its knee; where nothing gave way, the highest that it was given.
    pub fn capacity(&self) -> Option<f64> {
        self.knee.map(|knee| knee[0]).or(self.top_per_s)
    }

    /// As it stands in the file, without the line's end.
    pub fn write(&self) -> String {
        let mut out = String::new();
        let text = |out: &mut String, text: Option<&str>| push_escaped(out, text.unwrap_or("-"));
        let number = |out: &mut String, value: Option<f64>| push_number(out, value.map_or(f64::NAN, |value| tell::round(value, 3)));
        push_number(&mut out, self.start_unix_ms as f64);
        for (n, column) in COLUMNS.iter().enumerate().skip(1) {
            out.push('\t');
            match *column {
                "scenario" => text(&mut out, Some(&self.scenario)),
                "version" => text(&mut out, self.version.as_deref()),
                "labels" => text(&mut out, Some(&json!(self.labels).to_string())),
                "verdict" => text(&mut out, Some(&self.verdict)),
                "knee_per_s" | "knee_low" | "knee_high" => number(&mut out, self.knee.map(|knee| knee[n - 5])),
                "top_per_s" => number(&mut out, self.top_per_s),
                "first" => text(&mut out, self.first.as_deref()),
                "first_per_s" => number(&mut out, self.first_per_s),
                "growing" => text(&mut out, self.growing.as_deref()),
                "recovery_s" => text(&mut out, self.recovery_s.as_deref()),
                "gates" => text(&mut out, self.gates.as_deref()),
                _ => text(&mut out, Some(&self.about.to_string())),
            }
        }
        out
    }

    /// From a line of the file; `None` where it was cut or is none.
    pub fn parse(names: &[&str], line: &str) -> Option<Self> {
        let cells: Vec<&str> = line.split('\t').collect();
        if cells.len() != names.len() {
            return None;
        }
        let cell = |name: &str| names.iter().position(|other| *other == name).map(|at| cells[at]);
        let text = |name: &str| cell(name).filter(|cell| *cell != "-" && !cell.is_empty()).map(unescape);
        let number = |name: &str| cell(name).and_then(|cell| parse_number(cell.as_bytes())).filter(|value| !value.is_nan());
        let json = |name: &str| text(name).map_or(Some(Value::Null), |text| serde_json::from_str(&text).ok());
        Some(Self {
            start_unix_ms: number("start_unix_ms")? as i64,
            scenario: text("scenario")?,
            version: text("version"),
            labels: serde_json::from_value(json("labels")?).unwrap_or_default(),
            verdict: text("verdict")?,
            knee: number("knee_per_s").map(|knee| [knee, number("knee_low").unwrap_or(knee), number("knee_high").unwrap_or(knee)]),
            top_per_s: number("top_per_s"),
            first: text("first"),
            first_per_s: number("first_per_s"),
            growing: text("growing"),
            recovery_s: text("recovery_s"),
            gates: text("gates"),
            about: json("about")?,
        })
    }
}

/// What makes runs comparable, as sixteen letters: the labels without the version, what was sampled and how often, the steps.
fn fingerprint<'a>(frame: &Frame, labels: &BTreeMap<String, String>, steps: impl Iterator<Item = &'a str>) -> String {
    let mut parts: Vec<String> =
        labels.iter().filter(|(name, _)| *name != VERSION).map(|(name, value)| format!("label {name}={value}")).collect();
    parts.extend(frame.targets.iter().map(|target| format!("target {} {}", target.instance, target.collector)));
    parts.extend(steps.map(|step| format!("step {step}")));
    parts.sort();
    parts.push(format!("tick {}", frame.run.tick_ms));
    // FNV-1a: the same on every machine and in every version.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in parts.iter().flat_map(|part| part.bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_again_and_a_cut_line_is_none() {
        let line = Line {
            start_unix_ms: 1_796_000_000_000,
            scenario: "0123456789abcdef".into(),
            version: Some("1.4\t#\"".into()),
            labels: BTreeMap::from([("mix".to_owned(), "70:25:5".to_owned())]),
            verdict: "qualified".into(),
            knee: Some([865.25, 851.0, 880.0]),
            top_per_s: Some(1200.0),
            first: Some("mysql.row_lock_waiting".into()),
            recovery_s: Some("never".into()),
            gates: Some("3/4".into()),
            about: json!({ "steps": { "hold": 12 } }),
            ..Line::default()
        };
        let text = line.write();
        assert!(!text.contains('#') && !text.contains('"'), "{text}");
        assert_eq!(Line::parse(&COLUMNS, &text), Some(line));
        assert_eq!(Line::parse(&COLUMNS, &text[..text.len() - 40]), None);
        assert_eq!(Line::parse(&COLUMNS, &text[..30]), None);
    }
}
