//! Runs against runs: `--history runs.tsv` appends one line a run and compares it with the earlier ones of its scenario.
//!
//! ```text
//! #whatgives runs 1
//! start_unix_ms scenario version labels verdict knee_per_s knee_low knee_high top_per_s first first_per_s growing recovery_s gates about
//! ```
//! `scenario` is a fingerprint of the labels (without the version under test), of what was sampled and of the steps; only runs
//! of one scenario are compared. `version` is the label of that name. `growing` is the gauge that grew fastest on a plateau,
//! `recovery_s` is `never` where something did not come back, `gates` is how many held of how many. `about` is JSON: the
//! targets with their versions and capacities, the gauges that are limits or columns of a query, each as the run began, the
//! steps with their requests, the phases with `held_per_s`, the least quarter of what was sent; a key that an older version
//! did not write is unknown. `-` is nothing, an empty cell unknown. Several processes may append at once; a line that was cut
//! is passed over.

pub mod about;
mod line;
pub mod show;

pub use line::Line;

use super::align::Load;
use super::gather::Frame;
use super::phases::Phases;
use super::verdict::{Answer, Caveat, GateResult, History, Verdict};
use crate::judge::change::{self, Change, Told};
use crate::text::InputError;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

const FIRST_LINE: &str = "#whatgives runs 1";

/// What a line is made from, beside the verdict.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// The ticks.
    pub frame: &'a Frame,
    /// What ran against the targets.
    pub load: Option<&'a Load>,
    /// The parts of the run.
    pub phases: Option<&'a Phases>,
}

/// Every line that can be read, and how many cannot.
pub fn read(path: &Path) -> Result<(Vec<Line>, usize), InputError> {
    let text = std::fs::read(path).map_err(|why| InputError::new(path, format!("cannot be read: {why}")))?;
    parse(path, &text)
}

fn parse(path: &Path, bytes: &[u8]) -> Result<(Vec<Line>, usize), InputError> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let Some(names) = lines.next() else { return Ok((Vec::new(), 0)) };
    let names: Vec<&str> = names.split('\t').collect();
    if !names.contains(&"start_unix_ms") || !names.contains(&"scenario") {
        return Err(InputError::new(path, "is no file of runs: its first line has no columns start_unix_ms and scenario")
            .hint("give --history a file of its own; it is made where it is not there"));
    }
    let (mut runs, mut bad) = (Vec::new(), 0);
    for line in lines {
        match Line::parse(&names, line) {
            Some(run) => runs.push(run),
            None => bad += 1,
        }
    }
    Ok((runs, bad))
}

/// Compares a run with the earlier ones and appends its line; what was found goes into the verdict.
pub fn record(path: &Path, run: Run, verdict: &mut Verdict) -> Result<(), InputError> {
    let now = Line::of(run, verdict);
    let failed = |why: std::io::Error| InputError::new(path, format!("cannot be written: {why}"));
    let mut file = File::options().read(true).append(true).create(true).open(path).map_err(failed)?;
    // Until the file is closed: another run waits, so that both compare with what is there and no line is torn.
    file.lock().map_err(failed)?;
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    file.read_to_end(&mut bytes).map_err(failed)?;
    let (earlier, bad) = parse(path, &bytes)?;
    if bad > 0 {
        verdict.caveats.push(Caveat {
            code: "history_cut",
            text: format!("{bad} line{} of {} cannot be read", if bad == 1 { "" } else { "s" }, path.display()),
            todo: "a run that was killed while it wrote leaves one; it counts as not there".to_owned(),
            can_change_name: false,
        });
    }
    let same: Vec<&Line> = earlier.iter().filter(|line| line.scenario == now.scenario).collect();
    compare(&same, earlier.len() - same.len(), &now, verdict);
    // The verdict is what the comparison made of it.
    let line = Line { verdict: super::tell::answer_name(verdict.verdict).to_owned(), gates: line::held(verdict), ..now };
    let mut out = String::new();
    if bytes.is_empty() {
        out.push_str(FIRST_LINE);
        out.push('\n');
        out.push_str(&line::COLUMNS.join("\t"));
        out.push('\n');
    } else if bytes.last() != Some(&b'\n') {
        out.push('\n');
    }
    out.push_str(&line.write());
    out.push('\n');
    file.write_all(out.as_bytes()).map_err(failed)?;
    file.sync_data().map_err(failed)
}

fn compare(earlier: &[&Line], others: usize, now: &Line, verdict: &mut Verdict) {
    let numbers: Vec<f64> = earlier.iter().filter_map(|line| line.capacity()).collect();
    let told = now.capacity().and_then(|value| change::told(&numbers, value));
    if let (Some(told), Some(value)) = (told, now.capacity()) {
        let fell = matches!(told.change, Change::Fell(_));
        verdict.gates.push(GateResult {
            gate: format!("knee as in {} earlier run{}", numbers.len(), if numbers.len() == 1 { "" } else { "s" }),
            name: Some("history".to_owned()),
            code: "gate_history",
            passed: !fell,
            value: value.into(),
            onset: None,
            rate_per_s: None,
            lasted_s: None,
            coarse: false,
        });
        if fell {
            verdict.verdict = Answer::Violated;
        } else if matches!(verdict.verdict, Answer::Moved | Answer::Rested) {
            verdict.verdict = Answer::Qualified;
        }
    }
    let before = earlier.last().map(|line| line.first.clone());
    if let Some(before) = before.filter(|before| *before != now.first) {
        let name = |first: &Option<String>| first.clone().unwrap_or_else(|| "nothing".to_owned());
        verdict.caveats.push(Caveat {
            code: "first_changed",
            text: format!("the run before this one named {} first, this one {}", name(&before), name(&now.first)),
            todo: "a change of the name is a finding of its own: compare the two with `correlate compare`".to_owned(),
            can_change_name: false,
        });
    }
    verdict.history = Some(History {
        scenario: now.scenario.clone(),
        earlier: earlier.len(),
        other_scenarios: others,
        knee: told.map(|told| comparison(told, now)),
    });
}

fn comparison(told: Told, now: &Line) -> super::verdict::Comparison {
    let (change, share) = match told.change {
        Change::Usual => ("usual", 0.0),
        Change::Fell(share) => ("fell", share),
        Change::Rose(share) => ("rose", share),
    };
    super::verdict::Comparison {
        value: now.capacity().unwrap_or_default(),
        usual: super::tell::round(told.usual, 2),
        between: told.between.map(|(low, high)| [super::tell::round(low, 2), super::tell::round(high, 2)]),
        change,
        share: super::tell::round(share, 4),
    }
}
