//! Every `[[run]]` against the lines of the history: the run that has all of it, or the nearest one with what it lacks.

use super::file::{At, Need, Requirements};
use super::{Finding, profile};
use crate::correlate::history::Line;
use crate::correlate::report::numbers::number;
use crate::correlate::tell::{answer_name, round};
use crate::time::lasted;
use crate::timeline::ALL;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A length or a rate may fall short by this share: so much the ends of a part and the count of its first second cost.
const SHORT: f64 = 0.01;
/// And a rate by so many standard deviations of arrivals that come by chance.
const CHANCE: f64 = 3.0;
/// Parts in which the load is not held.
const PASSING: [&str; 6] = ["rest", "warm-up", "low load", "climb", "descent", "cool-down"];

/// What became of the requirements.
#[derive(Clone, Debug, PartialEq)]
pub struct Coverage {
    /// What tells the runs of the version under test.
    pub labels: BTreeMap<String, String>,
    /// How many there are.
    pub runs: usize,
    /// Lines of the history that cannot be read.
    pub unreadable: usize,
    /// Each `[[run]]`.
    pub needs: Vec<Told>,
    /// Everything that is missing, differs or is unknown.
    pub findings: Vec<Finding>,
}

impl Coverage {
    /// Whether every one is covered.
    pub fn covered(&self) -> bool {
        self.needs.iter().all(|need| need.covered)
    }
}

/// What became of one `[[run]]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Told {
    /// Its name.
    pub name: String,
    /// Whether a run has all of it, on an honest staging.
    pub covered: bool,
    /// That run, or the nearest one.
    pub run: Option<Nearest>,
}

/// A run, as far as a requirement asks for it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Nearest {
    /// When it began.
    pub start_unix_ms: i64,
    /// What it said.
    pub verdict: String,
    /// How long the load was held.
    pub lasted_s: Option<f64>,
    /// How much was sent in its least quarter.
    pub rate_per_s: Option<f64>,
}

/// A part of a run, or neighbouring ones together.
#[derive(Clone, Debug, PartialEq)]
struct Stretch {
    name: String,
    seconds: f64,
    rate: Option<f64>,
}

/// What keeps a run from covering a requirement.
struct Lack {
    code: &'static str,
    line: usize,
    unknown: bool,
    text: String,
}

impl Lack {
    fn new(code: &'static str, line: usize, text: String) -> Self {
        Self { code, line, unknown: false, text }
    }

    fn unknown(code: &'static str, line: usize, text: &str) -> Self {
        Self { code, line, unknown: true, text: text.to_owned() }
    }
}

/// A run against one requirement.
struct Try<'a> {
    line: &'a Line,
    stretch: Option<Stretch>,
    own: Vec<Finding>,
    staging: Vec<Finding>,
    /// 1 where everything is there.
    near: f64,
}

/// Judges all of them.
pub fn judge(required: &Requirements, labels: BTreeMap<String, String>, lines: &[Line], unreadable: usize) -> Coverage {
    let of_version: Vec<&Line> = lines.iter().filter(|line| has(line, &labels)).collect();
    let mut findings = Vec::new();
    if of_version.is_empty() {
        let text = format!("no run with {}; {}", told(&labels), known(lines, &labels));
        findings.push(finding("require_run", required, 1, text));
    }
    let (mut needs, mut stagings) = (Vec::new(), BTreeMap::new());
    for need in &required.needs {
        let tries = of_version.iter().filter(|line| has(line, &need.labels)).map(|line| attempt(required, need, line));
        let best = tries.max_by(|a, b| a.near.total_cmp(&b.near).then(a.line.start_unix_ms.cmp(&b.line.start_unix_ms)));
        if best.is_none() && !of_version.is_empty() {
            let text = format!("no run with {}; {}", told(&need.labels), known(of_version.iter().copied(), &need.labels));
            findings.push(Finding { need: Some(need.name.clone()), ..finding("require_run", required, need.line, text) });
        }
        needs.push(Told {
            name: need.name.clone(),
            covered: best.as_ref().is_some_and(|best| best.own.is_empty() && best.staging.is_empty()),
            run: best.as_ref().map(|best| Nearest {
                start_unix_ms: best.line.start_unix_ms,
                verdict: best.line.verdict.clone(),
                lasted_s: best.stretch.as_ref().map(|stretch| round(stretch.seconds, 1)),
                rate_per_s: best.stretch.as_ref().and_then(|stretch| stretch.rate),
            }),
        });
        if let Some(best) = best {
            findings.extend(best.own);
            stagings.insert(best.line.start_unix_ms, best.staging);
        }
    }
    findings.extend(stagings.into_values().flatten());
    Coverage { labels, runs: of_version.len(), unreadable, needs, findings }
}

fn finding(code: &'static str, required: &Requirements, line: usize, text: String) -> Finding {
    Finding { code, need: None, unknown: false, text, file: required.file.clone(), line, run_unix_ms: None }
}

fn has(line: &Line, labels: &BTreeMap<String, String>) -> bool {
    labels.iter().all(|(name, value)| line.labels.get(name) == Some(value))
}

fn told(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// What the runs have for these labels.
fn known<'a>(lines: impl IntoIterator<Item = &'a Line>, labels: &BTreeMap<String, String>) -> String {
    let of = |line: &'a Line| labels.keys().filter_map(|name| Some((name.clone(), line.labels.get(name)?.clone()))).collect();
    let sets: BTreeSet<BTreeMap<String, String>> = lines.into_iter().map(of).collect();
    let sets: Vec<String> = sets.iter().filter(|set| !set.is_empty()).map(told).collect();
    if sets.is_empty() { "no run has such a label".to_owned() } else { format!("the runs have {}", sets.join(", ")) }
}

fn attempt<'a>(required: &Requirements, need: &Need, line: &'a Line) -> Try<'a> {
    let parts = parts(line);
    let stretch = parts.as_deref().and_then(|parts| best(parts, need));
    let mut own = match &stretch {
        Some(found) => short(found, need),
        None => need.load_line().map(|at| nothing_held(parts.as_deref(), need, at)).into_iter().collect(),
    };
    let reach = if own.is_empty() { 1.0 } else { stretch.as_ref().map_or(0.0, |found| found.reach(need)) };
    let of_load = own.len();
    if !need.verdict.value.iter().any(|verdict| answer_name(*verdict) == line.verdict) {
        let wanted: Vec<&str> = need.verdict.value.iter().map(|verdict| answer_name(*verdict)).collect();
        own.push(Lack::new("require_verdict", need.verdict.line, format!("{}, not {}", line.verdict, wanted.join(" or "))));
    }
    own.extend(steps(line, need));
    let staging = profile::judge(required, line);
    let near = reach / (1 + own.len() - of_load + staging.len()) as f64;
    let of_need = |lack: Lack| Finding {
        need: Some(need.name.clone()),
        unknown: lack.unknown,
        run_unix_ms: Some(line.start_unix_ms),
        ..finding(lack.code, required, lack.line, lack.text)
    };
    Try { line, stretch, own: own.into_iter().map(of_need).collect(), staging, near }
}

/// That no stretch can be the one.
fn nothing_held(parts: Option<&[Stretch]>, need: &Need, at: usize) -> Lack {
    let Some(parts) = parts else { return Lack::unknown("require_phase", at, "its line tells no parts: no load was seen in it") };
    let wanted = need.phase.as_ref().map_or("in which the load is held".to_owned(), |phase| format!("named {}", phase.value));
    let names: Vec<&str> = parts.iter().map(|part| &*part.name).collect();
    Lack::new("require_phase", at, format!("no part {wanted}; it has {}", names.join(", ")))
}

/// In what a stretch falls short.
fn short(found: &Stretch, need: &Need) -> Vec<Lack> {
    let mut lacks = Vec::new();
    if let Some(duration) = need.duration.as_ref().filter(|duration| found.seconds < (1.0 - SHORT) * duration.value) {
        let text = format!("{}, not {}", lasted(found.seconds), lasted(duration.value));
        lacks.push(Lack::new("require_duration", duration.line, text));
    }
    match (&need.rate, found.rate) {
        (Some(rate), None) => lacks.push(Lack::unknown(
            "require_rate",
            rate.line,
            "its line tells no rate that was sent: it had no driver's log, or an older version wrote it",
        )),
        (Some(rate), Some(sent)) if !holds(sent, rate.value, found.seconds) => {
            let text = format!("{}/s, not {}/s", number(sent), number(rate.value));
            lacks.push(Lack::new("require_rate", rate.line, text));
        }
        _ => {}
    }
    lacks
}

/// Whether a rate counted in a quarter of so many seconds is one of that many.
fn holds(sent: f64, rate: f64, seconds: f64) -> bool {
    let by_chance = CHANCE / (rate * seconds / 4.0).sqrt();
    sent >= (1.0 - SHORT.max(by_chance)) * rate
}

impl Stretch {
    /// How much of the length and the rate it reaches, 1 where all of both.
    fn reach(&self, need: &Need) -> f64 {
        let share = |is: f64, wanted: &At<f64>| if wanted.value > 0.0 { (is / wanted.value).min(1.0) } else { 1.0 };
        let duration = need.duration.as_ref().map_or(1.0, |wanted| share(self.seconds, wanted));
        let rate = need.rate.as_ref().map_or(1.0, |wanted| share(self.rate.unwrap_or(0.0), wanted));
        duration * rate
    }
}

/// The parts of a run; `None` where its line tells none.
fn parts(line: &Line) -> Option<Vec<Stretch>> {
    let part = |part: &Value| {
        Some(Stretch {
            name: part["name"].as_str()?.to_owned(),
            seconds: part["to_s"].as_f64()? - part["from_s"].as_f64()?,
            rate: part["held_per_s"].as_f64(),
        })
    };
    line.about["phases"].as_array()?.iter().map(part).collect()
}

/// The stretch that reaches most of what is asked for: a part, or neighbours that all hold the rate.
fn best(parts: &[Stretch], need: &Need) -> Option<Stretch> {
    let counts = |part: &Stretch| match &need.phase {
        Some(phase) => part.name == phase.value,
        None => !PASSING.contains(&&*part.name),
    };
    let mut all: Vec<Stretch> = parts.iter().filter(|part| counts(part)).cloned().collect();
    if let Some(rate) = &need.rate {
        // A climb between two plateaus that both hold the rate holds it too.
        let high = |part: &Stretch| {
            need.phase.as_ref().is_none_or(|phase| part.name == phase.value)
                && part.rate.is_some_and(|sent| holds(sent, rate.value, part.seconds))
        };
        all.extend(parts.chunk_by(|a, b| high(a) && high(b)).filter(|run| high(&run[0])).map(together));
    }
    let key = |stretch: &Stretch| (stretch.reach(need), stretch.seconds);
    all.into_iter().max_by(|a, b| key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal))
}

/// Neighbouring parts as one: its rate is that of the quarter of its time in which least was sent.
fn together(parts: &[Stretch]) -> Stretch {
    let seconds: f64 = parts.iter().map(|part| part.seconds).sum();
    let mut rates: Vec<(f64, f64)> = parts.iter().filter_map(|part| Some((part.rate?, part.seconds))).collect();
    rates.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut sent, mut left) = (0.0, seconds / 4.0);
    for (rate, seconds) in rates {
        sent += rate * seconds.min(left);
        left = (left - seconds).max(0.0);
    }
    Stretch { name: parts[0].name.clone(), seconds, rate: Some(round(sent / (seconds / 4.0), 2)) }
}

/// The steps that were not asked for.
fn steps(line: &Line, need: &Need) -> Vec<Lack> {
    let told = line.about["steps"].as_object().into_iter().flatten();
    let known: Vec<&str> = told.filter(|(_, requests)| requests.as_f64() > Some(0.0)).map(|(step, _)| &**step).collect();
    let lack = |step: &At<String>| {
        // Without a driver's log there are none; a log that knows no steps has one row for all.
        if matches!(known[..], [] | [ALL]) {
            return Lack::unknown("require_step", step.line, &format!("{}: its line tells no steps", step.value));
        }
        let near = profile::near(&step.value, known.iter().copied());
        let text = format!("{} was never asked for{near}; it has {}", step.value, known.join(", "));
        Lack::new("require_step", step.line, text)
    };
    need.steps.iter().filter(|step| !known.contains(&&*step.value)).map(lack).collect()
}
