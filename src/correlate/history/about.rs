//! The cell `about` of a run's line: what the run was made on and what it held, for [`crate::correlate::require`].
//!
//! `targets` are those of the header, with versions and capacities; `gauges` the limits and settings that are columns, and the
//! columns of queries (row counts), each as the run began; `phases` have what was sent beside what was offered.

use super::Run;
use crate::correlate::align::Load;
use crate::correlate::gather::Frame;
use crate::correlate::phases::Part;
use crate::correlate::tell::round;
use crate::correlate::verdict::Verdict;
use crate::judge::robust::mean;
use collectors::api::{Class, Kind};
use serde_json::{Map, Value, json};

/// The collector whose columns are what the user asked a database for.
pub const QUERY: &str = "query";

/// Of a run and its verdict.
pub fn of(run: Run, verdict: &Verdict) -> Value {
    let steps: Map<String, Value> = verdict.steps.iter().flatten().map(|step| (step.step.clone(), step.requests.into())).collect();
    let targets: Map<String, Value> = run
        .frame
        .targets
        .iter()
        .map(|target| {
            let mut about = target.about.clone();
            about.insert("collector".to_owned(), target.collector.clone().into());
            (target.instance.clone(), Value::Object(about))
        })
        .collect();
    json!({
        "elapsed_s": verdict.run.elapsed_s,
        "targets": targets,
        "gauges": gauges(run),
        "steps": steps,
        "phases": phases(run, verdict),
    })
}

/// What does not change in a run, and what a query counted before the load could.
fn gauges(run: Run) -> Map<String, Value> {
    let asked = |instance: &str| run.frame.targets.iter().any(|target| target.instance == instance && target.collector == QUERY);
    let told = run
        .frame
        .gauges
        .iter()
        .filter(|gauge| gauge.meaning.kind == Kind::Gauge && (gauge.class == Some(Class::Constant) || asked(&gauge.target)));
    told.filter_map(|gauge| {
        let first = gauge.values.iter().find(|value| value.is_finite())?;
        Some((gauge.name.clone(), round(*first, 4).into()))
    })
    .collect()
}

/// The parts as the verdict has them, each with the rate that was sent in it, where a driver counted that.
fn phases(run: Run, verdict: &Verdict) -> Value {
    let Some(told) = &verdict.phases else { return Value::Null };
    let parts = run.phases.map(|phases| phases.parts.as_slice()).unwrap_or_default();
    let phase = |(phase, part): (_, &Part)| {
        let mut phase = json!(phase);
        phase["held_per_s"] = run.load.and_then(|load| held(run.frame, load, part.bins)).into();
        phase
    };
    told.iter().zip(parts).map(phase).collect()
}

/// What was sent per second in the quarter in which it was least: a mean would hide an hour without load. Seconds that the
/// log leaves out are such without load, but for the part's edges. `None` where no driver counted anything.
fn held(frame: &Frame, load: &Load, (from, to): (usize, usize)) -> Option<f64> {
    let edge = frame.bins_of(load.interval_s, 1);
    let sent = |bin: usize| {
        let inside = (from + edge..to.saturating_sub(edge)).contains(&bin);
        if inside && !load.started[bin].is_finite() { 0.0 } else { load.started[bin] }
    };
    if !load.started[from..to].iter().any(|rate| rate.is_finite()) {
        return None;
    }
    let quarters = 4.min(to - from);
    let begin = |quarter: usize| from + (to - from) * quarter / quarters;
    let least = (0..quarters).map(|quarter| mean((begin(quarter)..begin(quarter + 1)).map(sent))).reduce(f64::min)?;
    Some(round(least, 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correlate::align::Basis;
    use crate::timeline::Offered;

    fn load(started: Vec<f64>) -> Load {
        let nothing = vec![f64::NAN; started.len()];
        Load {
            offered: started.clone(),
            completed: nothing.clone(),
            ok: nothing.clone(),
            failed: nothing.clone(),
            p50_ms: nothing.clone(),
            p95_ms: nothing.clone(),
            p99_ms: nothing.clone(),
            max_ms: nothing,
            started,
            interval_s: 1.0,
            basis: Basis::Measured,
            from: None,
            kind: Offered::Scheduled,
            unit: "req/s",
        }
    }

    #[test]
    fn a_stretch_without_load_is_in_the_rate_held_and_an_edge_that_the_log_leaves_out_is_not() {
        let frame = Frame::empty(0.0, 1.0, 80);
        let mut sent = vec![100.0; 80];
        (sent[0], sent[79]) = (f64::NAN, f64::NAN);
        assert_eq!(held(&frame, &load(sent.clone()), (0, 80)), Some(100.0));
        sent[30..40].fill(f64::NAN);
        assert_eq!(held(&frame, &load(sent.clone()), (0, 80)), Some(50.0));
        sent[45..50].fill(40.0);
        assert_eq!(held(&frame, &load(sent.clone()), (40, 80)), Some(70.0));
        assert_eq!(held(&frame, &load(sent), (31, 39)), None);
        assert_eq!(held(&frame, &load(vec![90.0; 3]), (0, 3)), Some(90.0), "a part shorter than four bins");
    }
}
