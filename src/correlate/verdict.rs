//! The verdict: one typed struct with everything that a report prints. Fields stand in the order of the JSON.

use super::align::Basis;
use super::forecast::Forecast;
use super::growth::Growth;
use super::recovery::Recovery;
use super::steps::Step;
use serde::{Deserialize, Serialize};

/// A value with the interval that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Between {
    /// The likeliest.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// When something began.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Onset {
    /// The likeliest time.
    pub unix_ms: i64,
    /// Seconds since the run's start.
    pub elapsed_s: f64,
    /// The earliest it can have been.
    pub low_s: f64,
    /// The latest.
    pub high_s: f64,
}

/// A gauge that left its rest and stayed away.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mover {
    /// The column.
    pub gauge: String,
    /// The instance.
    pub target: String,
    /// Its class, as the file declares it or as it was guessed.
    pub class: String,
    /// What it was at rest, in its own unit.
    pub resting: Between,
    /// When it left.
    pub onset: Onset,
    /// At which load.
    pub rate_per_s: Between,
    /// Gauges whose order against this one cannot be told.
    pub tied_with: Vec<String>,
    /// What it measures the waiting for.
    pub resource: String,
    /// Measured, or inferred.
    pub basis: Basis,
    /// What kind of evidence it is, in words.
    pub evidence: String,
    /// What decided among the tied ones, where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// Whether its class was guessed from its name.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub class_guessed: bool,
}

/// What was felt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Symptom {
    /// The step of the journey, `*` for all.
    pub step: String,
    /// `p95_ms`, `failed` or `refused`.
    pub measure: String,
    /// The limit it crossed; 0 for the first failure.
    pub threshold: f64,
    /// When.
    pub onset: Onset,
    /// At which load.
    pub rate_per_s: Between,
    /// How long after the first mover; negative before it.
    pub after_first_s: Option<f64>,
}

/// Who waited on what, by share of waiters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitShare {
    /// The instance.
    pub target: String,
    /// row, metadata, …
    pub kind: String,
    /// `schema.table`.
    pub object: Option<String>,
    /// The index.
    pub index: Option<String>,
    /// The row.
    pub row: Option<String>,
    /// Waiter-rows on it.
    pub waiters: u64,
    /// Of all waiter-rows.
    pub share: f64,
    /// What the root did in most of them.
    pub blocker_state: Option<String>,
}

/// A part of the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// rest, warm-up, low load, climb, rung, plateau, soak, spike, descent, cool-down, or a name given by the user.
    pub name: String,
    /// Seconds since the run's start.
    pub from_s: f64,
    /// Seconds since the run's start.
    pub to_s: f64,
    /// The load at its begin and its end.
    pub rate_per_s: Option<[f64; 2]>,
}

/// The rate that the system can do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Knee {
    /// The likeliest.
    pub rate_per_s: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Measured, or inferred.
    pub basis: Basis,
}

/// Something that the reader must know about the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Caveat {
    /// Its name for programs.
    pub code: &'static str,
    /// What was found.
    pub text: String,
    /// What to do.
    #[serde(rename = "do")]
    pub todo: String,
    /// Whether it can change the name of the first mover.
    pub can_change_name: bool,
}

/// What moved and healed, or is not to be judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Aside {
    /// The column.
    pub gauge: String,
    /// What it did, or why it was not judged.
    pub why: String,
}

/// How much of a capacity was in use.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Used {
    /// The column.
    pub gauge: String,
    /// 0 to 1.
    pub share: f64,
}

/// How far two clocks are apart, by what both counted of the same requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Clock {
    /// What is to be added to the other clock to get the sampler's.
    pub offset_ms: f64,
    /// The lower end.
    pub low_ms: f64,
    /// The upper end.
    pub high_ms: f64,
    /// What was added.
    pub moved_ms: f64,
    /// The gauge that tells it.
    pub by: String,
}

/// One sampler's files, where several were joined.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FilePart {
    /// The file of ticks.
    pub ticks: String,
    /// The file of waits beside it.
    pub waits: Option<String>,
    /// The sampler's machine.
    pub host: String,
    /// Its clock against the first one's, where what both counted tells it.
    pub clock: Option<Clock>,
}

/// What the driver sent against what it should have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sent {
    /// The share of the plan that was sent.
    pub reached_of_plan: Option<f64>,
    /// Each step's share of the requests, beside the plan's.
    pub mix: Vec<StepShare>,
    /// From when on all of the driver's workers were in use, seconds since the run's start.
    pub exhausted_at_s: Option<f64>,
    /// How many they are.
    pub workers: Option<f64>,
}

/// A step's share of the requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepShare {
    /// The step.
    pub step: String,
    /// As it was sent.
    pub share: f64,
    /// As it was planned.
    pub planned: Option<f64>,
}

/// The run and how it was judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Run {
    /// The file of ticks.
    pub ticks: String,
    /// The file of waits, where one was read.
    pub waits: Option<String>,
    /// The single files, where several samplers' were joined; the first one's clock is the run's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FilePart>,
    /// The driver, as its log calls it.
    pub driver: Option<String>,
    /// The driver's clock against the sampler's, where what both counted tells it.
    pub clock: Option<Clock>,
    /// What it sent against what it should have.
    pub sent: Option<Sent>,
    /// The run's start.
    pub start_unix_ms: i64,
    /// How long it was.
    pub elapsed_s: f64,
    /// The sampler's period.
    pub tick_ms: f64,
    /// The scenario.
    pub labels: std::collections::BTreeMap<String, String>,
    /// The highest load that lasted.
    pub top_rate_per_s: Option<f64>,
    /// The throughput gauge that stood for the load, without a driver's log.
    pub rate_from: Option<String>,
    /// What the rates count: `req/s`, or `statements/s` where a database's own counter stood for the load.
    pub rate_unit: String,
    /// What counted as having left the rest, in words.
    pub left_rest: Option<String>,
    /// The same in milliseconds added to the mean request.
    pub floor_ms: Option<f64>,
    /// How many gauges were judged.
    pub judged: usize,
    /// Capacities and how much of them was used at the end of what was judged, fullest first.
    pub used: Vec<Used>,
    /// Judged, and they stayed.
    pub not_moved: Vec<String>,
    /// Moved, but not with the load.
    pub not_with_load: Vec<Aside>,
    /// Not judged, and why.
    pub not_judged: Vec<Aside>,
}

/// A gate and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GateResult {
    /// As it was written.
    pub gate: String,
    /// Its name in a file of gates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its kind, for programs.
    pub code: &'static str,
    /// Whether it held.
    pub passed: bool,
    /// The worst value, or the name that was found.
    pub value: serde_json::Value,
    /// When it broke.
    pub onset: Option<Onset>,
    /// At which load.
    pub rate_per_s: Option<f64>,
    /// How long it was broken at the longest.
    pub lasted_s: Option<f64>,
    /// Whether the log has percentiles only, so that the worst interval stands for the window.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub coarse: bool,
}

/// A run against the earlier ones of its scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct History {
    /// The scenario's fingerprint.
    pub scenario: String,
    /// Earlier runs of it.
    pub earlier: usize,
    /// Runs of other scenarios in the file: never compared with.
    pub other_scenarios: usize,
    /// The knee; where nothing gave way, the highest load.
    pub knee: Option<Comparison>,
}

/// A number against what was usual.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Of this run.
    pub value: f64,
    /// Of the earlier ones.
    pub usual: f64,
    /// Within which a run is as usual; `None` where too few runs tell that.
    pub between: Option<[f64; 2]>,
    /// `usual`, `fell` or `rose`.
    pub change: &'static str,
    /// By which share.
    pub share: f64,
}

/// The answer in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Something left its rest.
    Moved,
    /// Nothing did, up to the rate reached.
    Rested,
    /// A caveat can change the answer.
    Inconclusive,
    /// A gate on what users feel broke.
    Violated,
    /// A gate on a gauge, or on its share of a capacity, broke.
    Saturated,
    /// Every gate held.
    Qualified,
}

/// Everything that a report prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The version.
    pub whatgives: &'static str,
    /// The run and how it was judged.
    pub run: Run,
    /// The answer.
    pub verdict: Answer,
    /// The first to move.
    pub first: Option<Mover>,
    /// All that moved, in their order, the first one included.
    pub movers: Vec<Mover>,
    /// What was felt.
    pub symptoms: Option<Vec<Symptom>>,
    /// Who waited on what.
    pub waits: Option<Vec<WaitShare>>,
    /// The parts of the run.
    pub phases: Option<Vec<Phase>>,
    /// The rate that the system can do.
    pub knee: Option<Knee>,
    /// Growth on a plateau.
    pub growth: Option<Growth>,
    /// Recovery after each spike.
    pub recovery: Option<Vec<Recovery>>,
    /// The steps of the journey.
    pub steps: Option<Vec<Step>>,
    /// Gates.
    pub gates: Vec<GateResult>,
    /// What the reader must know.
    pub caveats: Vec<Caveat>,
    /// How full everything is at a rate that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
    /// Against earlier runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
}

impl Verdict {
    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self.verdict {
            Answer::Moved | Answer::Rested | Answer::Qualified => crate::exit::DONE,
            Answer::Violated | Answer::Saturated => crate::exit::GATE_FAILED,
            Answer::Inconclusive => crate::exit::INCONCLUSIVE,
        }
    }
}
