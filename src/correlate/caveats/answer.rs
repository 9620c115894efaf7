//! Caveats of the answer itself: what was felt without a mover, and what could not be seen when it moved.

use super::{caveat, is_driver};
use crate::correlate::align::Load;
use crate::correlate::bench::can_be_first;
use crate::correlate::floors::{Floors, mean_latency};
use crate::correlate::gather::{Frame, Gauge};
use crate::correlate::movers::Move;
use crate::correlate::phases::Phases;
use crate::correlate::verdict::{Caveat, Symptom, WaitShare};
use crate::judge::robust::median;
use crate::waits::Waits;
use collectors::api::{Class, Layer};

/// Latency may be felt this share of the judged time before the first gauge is known to have moved.
const EARLY: f64 = 0.1;

/// Caveats of the first mover and of its absence.
pub fn of_answer(
    frame: &Frame,
    load: &Load,
    phases: &Phases,
    floors: Floors,
    first: Option<&Move>,
    felt: &[Symptom],
) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    caveats.extend(match first {
        None => felt_alone(frame, load, phases, floors, felt),
        Some(first) => felt_early(frame, load, phases, first, felt),
    });
    if let Some(first) = first {
        let gauge = &frame.gauges[first.gauge];
        if gauge.guessed {
            caveats.push(caveat(
                "class_guessed",
                format!("what {} means was guessed from its name", gauge.name),
                "declare its class in the sampler's configuration",
                false,
            ));
        }
        caveats.extend(silent_then(frame, first));
    }
    caveats
}

const WATCH_MORE: &str =
    "watch more: the accept queue, the pool, the machine of every service on the way; see --explain GAUGE for those that were";

/// Requests became slower, or failed, although nothing that is watched moved.
fn felt_alone(frame: &Frame, load: &Load, phases: &Phases, floors: Floors, felt: &[Symptom]) -> Option<Caveat> {
    let slow = || felt.iter().find(|symptom| symptom.measure == "p95_ms").filter(|_| slowed(frame, load, phases, floors, felt));
    let slower = slow().map(|slow| {
        let step = if slow.step == "*" { "all steps" } else { &slow.step };
        format!("p95 of {step} crossed {:.0} ms at {:.0}/s", slow.threshold, slow.rate_per_s.value)
    });
    let failing = || {
        let (failed, from) = failures(frame, phases, felt)?;
        let share = phases.failed_more(load, from, phases.range.1);
        (share > 0.0).then(|| format!("{:.0} % of the requests failed from {:.0}/s on", 100.0 * share, failed.rate_per_s.value))
    };
    let what = slower.or_else(failing)?;
    let text = format!("{what}, and no gauge that is watched had left its rest: what gave way is not watched, or is the driver");
    Some(caveat("felt_without_a_mover", text, WATCH_MORE, true))
}

/// Requests became slower, or failed, long before the first gauge moved.
fn felt_early(frame: &Frame, load: &Load, phases: &Phases, first: &Move, felt: &[Symptom]) -> Option<Caveat> {
    let judged = (phases.range.1 - phases.range.0) as f64 * frame.step_s;
    let early = |symptom: &Symptom| {
        let lead = frame.elapsed_s(first.onset.low) - symptom.onset.high_s;
        (lead > EARLY * judged).then_some(lead)
    };
    let slower = felt.iter().find(|symptom| symptom.measure == "p95_ms").and_then(|slow| {
        early(slow).map(|lead| format!("p95 crossed {:.0} ms at least {lead:.0} s before the first gauge moved", slow.threshold))
    });
    let failing = || {
        let (failed, from) = failures(frame, phases, felt)?;
        let (lead, share) = (early(failed)?, phases.failed_more(load, from, first.onset.low));
        (share > 0.0).then(|| {
            format!("{:.0} % of the requests failed from at least {lead:.0} s before the first gauge moved on", 100.0 * share)
        })
    };
    let what = slower.or_else(failing)?;
    Some(caveat("felt_before_the_first", format!("{what}: what gave way first may not be watched"), WATCH_MORE, true))
}

/// The earliest failures that kept coming, and their bin.
fn failures<'a>(frame: &Frame, phases: &Phases, felt: &'a [Symptom]) -> Option<(&'a Symptom, usize)> {
    let failed = felt.iter().find(|symptom| matches!(&*symptom.measure, "failed" | "refused"))?;
    let from = (phases.range.0..phases.range.1).find(|bin| frame.elapsed_s(*bin) >= failed.onset.elapsed_s)?;
    Some((failed, from))
}

/// A lock moved first, and nobody was seen waiting for one there.
pub fn waits_untold(frame: &Frame, first: Option<&Move>, waits: Option<&[WaitShare]>) -> Option<Caveat> {
    let gauge = &frame.gauges[first?.gauge];
    let told = waits.is_some_and(|waits| waits.iter().any(|wait| wait.target == gauge.target));
    (gauge.meaning.layer == Some(Layer::Lock) && !told).then(|| {
        caveat(
            "waits_untold",
            format!("{} is a lock's, and no file of waits tells who waited for what there", gauge.name),
            format!("give PREFIX.waits.tsv; sampler --check says what {} must grant for it", gauge.target),
            false,
        )
    })
}

/// The whole file of waits has no row, and a target that counts who waits for a lock was watched.
pub fn waits_empty(frame: &Frame, waits: Option<&Waits>) -> Option<Caveat> {
    if !waits?.rows.is_empty() {
        return None;
    }
    let counts = || {
        let of_locks = |gauge: &&Gauge| gauge.meaning.layer == Some(Layer::Lock) && gauge.class == Some(Class::Queue);
        frame.gauges.iter().filter(of_locks).filter(|gauge| gauge.values.iter().any(|waiting| waiting.is_finite()))
    };
    let first = counts().next()?;
    let counted = counts().find(|gauge| gauge.values.iter().any(|waiting| *waiting > 0.0));
    let seen = "the file of waits has no row: no session was seen waiting for a lock at any read";
    let (text, gauge) = match counted {
        Some(gauge) => (format!("{seen}, although {} counted some", gauge.name), gauge),
        None => (format!("{seen}, and {} counted none either", first.name), first),
    };
    let todo = if counted.is_some() {
        format!("sampler --check says what {} must grant for it; waits shorter than a tick are seen by chance only", gauge.target)
    } else {
        format!("nothing, if {} was to have no lock in the way", gauge.target)
    };
    Some(caveat("waits_empty", text, todo, false))
}

/// Whether the mean request became slower by what counts as having left the rest: a few slow requests more, of a site whose
/// requests take a millisecond, are no sign of anything that gave way.
fn slowed(frame: &Frame, load: &Load, phases: &Phases, floors: Floors, felt: &[Symptom]) -> bool {
    let Some(slow) = felt.iter().find(|symptom| symptom.measure == "p95_ms") else { return false };
    let latency = |bin: usize| mean_latency(load.p50_ms[bin], load.p95_ms[bin], load.p99_ms[bin]).unwrap_or(f64::NAN);
    let since = |bin: &usize| frame.elapsed_s(*bin) >= slow.onset.elapsed_s;
    let after = median((phases.range.0..phases.range.1).filter(since).map(latency));
    let resting = median(phases.low_bins().map(latency));
    after - resting > floors.wait_ms
}

/// Targets that could not be read while the first one moved.
fn silent_then(frame: &Frame, first: &Move) -> Option<Caveat> {
    let (from, to) = (first.onset.low, (first.onset.high + 1).min(frame.bins));
    let blind: Vec<&str> = frame
        .targets
        .iter()
        .filter(|target| !is_driver(target))
        .filter(|target| {
            let mut judged = frame.gauges.iter().filter(|gauge| {
                gauge.target == target.instance
                    && gauge.class.is_some_and(can_be_first)
                    && gauge.values.iter().any(|v| v.is_finite())
            });
            // A target is as blind as its best-read gauge.
            let best = judged.by_ref().map(|gauge| gauge.values[from..to].iter().filter(|value| value.is_finite()).count()).max();
            best.is_some_and(|best| best * 2 < to - from)
        })
        .map(|target| &*target.instance)
        .collect();
    if blind.is_empty() {
        return None;
    }
    let own = blind.contains(&&*frame.gauges[first.gauge].target) && blind.len() == 1;
    Some(caveat(
        "silent_at_onset",
        format!("{} could not be read for most of the time in which the first gauge can have moved", blind.join(", ")),
        "see the notes of those ticks; give the target's status its own port or a longer --timeout, and run again",
        !own,
    ))
}
