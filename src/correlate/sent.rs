//! What the driver sent against what it should have: of its plan, of its mix of steps, with how many workers.

use super::gather::Frame;
use super::tell::round;
use super::verdict::{Sent, StepShare};
use crate::timeline::Timeline;

/// From the driver's log; `None` where it tells none of it.
pub fn of(frame: &Frame, timeline: &Timeline) -> Option<Sent> {
    let more = &timeline.driver.more;
    let planned = |step: &str| more.get("mix_planned")?.get(step)?.as_f64();
    let shares = more.get("mix").and_then(|mix| mix.as_object()).into_iter().flatten();
    let mut mix: Vec<StepShare> = shares
        .filter_map(|(step, share)| Some(StepShare { step: step.clone(), share: share.as_f64()?, planned: planned(step) }))
        .collect();
    // A step that was planned and never came is the first to know of.
    let never = more.get("mix_planned").and_then(|mix| mix.as_object()).into_iter().flatten();
    let missing = never.filter(|(step, _)| !mix.iter().any(|sent| sent.step == **step));
    let missing: Vec<StepShare> =
        missing.map(|(step, share)| StepShare { step: step.clone(), share: 0.0, planned: share.as_f64() }).collect();
    mix.extend(missing);
    let exhausted = more.get("workers_exhausted");
    let sent = Sent {
        reached_of_plan: more.get("reached_of_plan").and_then(serde_json::Value::as_f64),
        mix,
        exhausted_at_s: exhausted
            .and_then(|told| told.get("unix_ms")?.as_f64())
            .map(|at| round((at + timeline.driver.clock_offset_ms - frame.run_start_ms()) / 1e3, 1)),
        workers: exhausted.and_then(|told| told.get("in_flight")?.as_f64()),
    };
    (sent.reached_of_plan.is_some() || !sent.mix.is_empty() || sent.exhausted_at_s.is_some()).then_some(sent)
}

/// In words: a line each.
pub fn lines(sent: &Sent) -> Vec<(&'static str, String)> {
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let mut lines = Vec::new();
    if let Some(reached) = sent.reached_of_plan {
        lines.push(("Sent", format!("{} of the plan", percent(reached))));
    }
    if let Some(at) = sent.exhausted_at_s {
        let which = sent.workers.map_or("all".to_owned(), |workers| format!("all {workers:.0}"));
        lines.push((
            "Workers",
            format!("{which} of the driver's in use from t+{at:.0} s on: rates from there are achieved, not offered"),
        ));
    }
    if sent.mix.iter().any(|step| step.planned.is_some()) {
        let each = |step: &StepShare| {
            let planned = step.planned.map_or("not planned".to_owned(), |share| format!("planned {}", percent(share)));
            format!("{} {} ({planned})", step.step, percent(step.share))
        };
        lines.push(("Mix", sent.mix.iter().map(each).collect::<Vec<_>>().join(", ")));
    }
    lines
}
