//! Gates after a run: each with its worst value, and where it broke: when, at which rate, for how long.
//!
//! A gate is judged on what it names: columns of the ticks row by row, requests of the driver's log in windows, and what the
//! verdict tells. One that cannot be judged (a column, a step, a phase that is not there, or was never read) is an error, never
//! a pass.

mod columns;
mod list;

pub use list::{Listed, read};

use super::gather::Frame;
use super::phases::Phases;
use super::tell::{self, round};
use super::verdict::{Answer, Caveat, GateResult, Verdict};
use crate::gates::felt;
use crate::judge::gate::{Gate, GateError, Measure, Test, fits};
use crate::timeline::Timeline;
use serde_json::Value;
use std::path::Path;

/// What gates are judged on.
pub struct Run<'a> {
    /// The files of ticks; of several, each with its machine's name.
    pub files: Vec<(&'a Path, Option<&'a str>)>,
    /// The same on bins.
    pub frame: &'a Frame,
    /// The parts of the run.
    pub phases: Option<&'a Phases>,
    /// The driver's log.
    pub timeline: Option<&'a Timeline>,
}

/// What became of one gate, in the run's own time.
struct Judged {
    value: Value,
    passed: bool,
    /// Unix milliseconds.
    broke_ms: Option<f64>,
    lasted_s: Option<f64>,
    coarse: bool,
    caveat: Option<Caveat>,
}

/// Judges every gate and writes it into the verdict, whose word it changes.
pub fn judge(listed: &[Listed], run: &Run, verdict: &mut Verdict) -> Result<(), GateError> {
    let gates: Vec<&Gate> = listed.iter().map(|listed| &listed.gate).collect();
    let mut of_columns = columns::judge(&gates, run)?.into_iter();
    let mut results = Vec::new();
    for Listed { name, gate } in listed {
        let judged = match &gate.measure {
            Measure::Gauge { .. } => of_columns.next().ok_or_else(|| gate.error("was not judged"))?,
            Measure::Knee => knee(gate, run, verdict)?,
            Measure::First => first(gate, run, verdict)?,
            Measure::Recovery => recovery(gate, verdict)?,
            Measure::Growth(column) => growth(gate, column, run, verdict)?,
            _ => felt(gate, run)?,
        };
        let at = judged.broke_ms.map(|at_ms| {
            let bin = ((at_ms - run.frame.start_ms) / (run.frame.step_s * 1e3)).round().max(0.0) as usize;
            bin.min(run.frame.bins.saturating_sub(1))
        });
        results.push(GateResult {
            gate: gate.text.clone(),
            name: name.clone(),
            code: gate.measure.code(),
            passed: judged.passed,
            value: judged.value,
            onset: judged.broke_ms.map(|at_ms| {
                let elapsed_s = round((at_ms - run.frame.run_start_ms()) / 1e3, 3);
                super::verdict::Onset { unix_ms: at_ms as i64, elapsed_s, low_s: elapsed_s, high_s: elapsed_s }
            }),
            rate_per_s: at.zip(run.phases).and_then(|(bin, phases)| tell::rate_at(phases, bin)),
            lasted_s: judged.lasted_s.map(|seconds| round(seconds, 1)),
            coarse: judged.coarse,
        });
        verdict.caveats.extend(judged.caveat);
    }
    let broken =
        |felt: bool| listed.iter().zip(&results).any(|(listed, result)| !result.passed && listed.gate.measure.is_felt() == felt);
    if !results.is_empty() {
        verdict.verdict = if broken(true) {
            Answer::Violated
        } else if broken(false) {
            Answer::Saturated
        } else if verdict.caveats.iter().any(|caveat| caveat.can_change_name) {
            Answer::Inconclusive
        } else {
            Answer::Qualified
        };
    }
    verdict.gates = results;
    Ok(())
}

/// Where the phase is in which a gate counts, Unix milliseconds; the whole run where it names none.
fn windows(gate: &Gate, run: &Run) -> Result<Vec<(f64, f64)>, GateError> {
    let Some(name) = &gate.during else { return Ok(vec![(f64::NEG_INFINITY, f64::INFINITY)]) };
    let parts = run.phases.map(|phases| phases.parts.as_slice()).unwrap_or_default();
    let half_ms = run.frame.step_s * 500.0;
    let found: Vec<(f64, f64)> = parts
        .iter()
        .filter(|part| part.name == *name && part.bins.1 > part.bins.0)
        .map(|part| (run.frame.at_ms(part.bins.0) - half_ms, run.frame.at_ms(part.bins.1 - 1) + half_ms))
        .collect();
    if found.is_empty() {
        let names: Vec<&str> = parts.iter().map(|part| &*part.name).collect();
        return Err(gate.error(format!("the run has no phase {name:?}; it has {}", names.join(", "))));
    }
    Ok(found)
}

fn felt(gate: &Gate, run: &Run) -> Result<Judged, GateError> {
    let Some(timeline) = run.timeline else {
        return Err(gate.error("there is no driver's log to judge it on").hint("give it with --driver FILE"));
    };
    let felt = felt::judge(gate, timeline, &windows(gate, run)?)?;
    Ok(Judged {
        broke_ms: felt.since_ms,
        lasted_s: felt.lasted_s,
        coarse: felt.coarse,
        ..Judged::at_once(round(felt.worst, 4).into(), felt.passed)
    })
}

fn knee(gate: &Gate, run: &Run, verdict: &Verdict) -> Result<Judged, GateError> {
    let rate = match (&verdict.knee, verdict.run.top_rate_per_s) {
        (Some(knee), _) => knee.rate_per_s,
        // Without a knee, it is at least where the load was, as far as that was served.
        (None, Some(top)) => run.timeline.and_then(felt::served).map_or(top, |served| round(served.min(top), 2)),
        (None, None) => return Err(gate.error("the run has no rate: give the driver's log with --driver")),
    };
    Ok(Judged::at_once(rate.into(), gate.test.holds(rate)))
}

fn first(gate: &Gate, run: &Run, verdict: &Verdict) -> Result<Judged, GateError> {
    // What nobody watched cannot be first: that is no pass.
    if let Test::NotIn(patterns) = &gate.test {
        let read = |pattern: &&String| run.frame.gauges.iter().any(|gauge| fits(pattern, &gauge.name) && gauge.was_read());
        if let Some(unseen) = patterns.iter().find(|pattern| !read(pattern)) {
            let names: Vec<&str> = run.frame.targets.iter().map(|target| &*target.instance).collect();
            let error = gate.error(format!("nothing called {unseen} was read: a gate on nothing cannot pass"));
            return Err(error.hint(format!("the targets are {}", names.join(", "))));
        }
    }
    // Nothing moved: nothing that was not to move, and nothing that was.
    let Some(first) = &verdict.first else { return Ok(Judged::at_once(Value::Null, gate.test.holds_name(""))) };
    let passed = gate.test.holds_name(&first.gauge);
    Ok(Judged { broke_ms: (!passed).then_some(first.onset.unix_ms as f64), ..Judged::at_once(first.gauge.clone().into(), passed) })
}

/// The slowest of all spikes; one after which something never came back passes nothing.
fn recovery(gate: &Gate, verdict: &Verdict) -> Result<Judged, GateError> {
    let spikes = verdict.recovery.as_deref().unwrap_or_default();
    let Some(slowest) =
        spikes.iter().max_by(|a, b| a.after_s.unwrap_or(f64::INFINITY).total_cmp(&b.after_s.unwrap_or(f64::INFINITY)))
    else {
        return Err(gate.error("the run has no spike to recover from").hint("name it with --phase spike=60s..75s"));
    };
    let passed = slowest.after_s.is_some_and(|after| gate.test.holds(after));
    let start_ms = verdict.run.start_unix_ms as f64;
    Ok(Judged {
        broke_ms: (!passed).then_some(start_ms + slowest.spike_to_s * 1e3),
        ..Judged::at_once(slowest.after_s.map_or(Value::from("not recovered"), Value::from), passed)
    })
}

/// The worst of all plateaus, per minute, material or not.
fn growth(gate: &Gate, column: &str, run: &Run, verdict: &Verdict) -> Result<Judged, GateError> {
    let Some(gauge) = run.frame.gauge(column) else {
        let error = gate.error(format!("the ticks have no column {column}"));
        let near = crate::text::closest(column, run.frame.gauges.iter().map(|gauge| &*gauge.name));
        return Err(match near {
            Some(near) => error.hint(format!("is it {near}?")),
            None => error,
        });
    };
    if !gauge.was_read() {
        return Err(gate.error(never_read("")));
    }
    let plateaus = verdict.growth.as_ref().map(|growth| growth.plateaus.as_slice()).unwrap_or_default();
    let told = plateaus.iter().filter_map(|held| Some((held.from_s, held.per_minute(run.frame, gauge)?)));
    let worst = told.reduce(|a, b| if gate.test.worse(a.1, b.1) == a.1 { a } else { b });
    let Some((from_s, rate)) = worst else {
        return Err(gate
            .error("no stretch of held load is long enough to tell growth")
            .hint("hold the load for ten minutes or more"));
    };
    let passed = gate.test.holds(rate);
    Ok(Judged {
        broke_ms: (!passed).then_some(verdict.run.start_unix_ms as f64 + from_s * 1e3),
        ..Judged::at_once(rate.into(), passed)
    })
}

fn never_read(place: &str) -> String {
    format!("its column was never read{place}: a gate on nothing cannot pass")
}

impl Judged {
    fn at_once(value: Value, passed: bool) -> Self {
        Self { value, passed, broke_ms: None, lasted_s: None, coarse: false, caveat: None }
    }
}
