//! What a timeline tells of its driver: holes, workers exhausted, behind its plan, the mix of steps.

use super::input::Input;
use super::merge::usual_ms;
use super::run::Run;
use super::{Options, caveat};
use crate::text::InputError;
use crate::timeline::{ALL, Interval, Offered, Timeline};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// For how many intervals in a row something must hold before it is said.
const LASTING: usize = 5;

/// The error about a hole.
pub(super) fn hole(input: &Input, from_ms: i64, lasts_ms: f64) -> InputError {
    input
        .error(format!("nothing for {:.1} s from unix ms {from_ms} on, inside the run", lasts_ms / 1e3))
        .hint("a log with a hole gives wrong rates; if the driver paused on purpose, say so with --driver-holes or --plan")
}

/// A hole of more than two intervals between two rows is an error.
pub(super) fn refuse_hole(input: &Input, timeline: &Timeline, options: &Options) -> Result<(), InputError> {
    let usual = usual_ms(&timeline.intervals);
    let all: Vec<&Interval> = timeline.all().collect();
    let begin = all.first().map_or(0, |row| row.unix_ms);
    // Where rows are differences of totals, one row covers the whole gap: its rate is blurred all the same.
    if let Some(row) = all.iter().find(|row| row.dur_ms > 3.0 * usual + 1.0) {
        return Err(hole(input, row.unix_ms, row.dur_ms));
    }
    for pair in all.windows(2) {
        let end = pair[0].unix_ms as f64 + pair[0].dur_ms;
        let gap = pair[1].unix_ms as f64 - end;
        let planned = || {
            let at = |ms: f64| (ms - begin as f64) / 1e3;
            options.plan.as_ref().is_some_and(|plan| plan.count(at(end), at(pair[1].unix_ms as f64)) < 1.0)
        };
        if gap > 2.0 * usual + 1.0 && !planned() {
            return Err(hole(input, end as i64, gap));
        }
    }
    Ok(())
}

/// A driver that ran out of workers: in flight flat at its maximum, with latencies well over their best, while it starts
/// only what the site ends. An open driver at rest has a flat number in flight too, but with its best latencies.
pub(super) fn exhausted_workers(run: &mut Run<'_>, timeline: &mut Timeline) {
    let all: Vec<&Interval> = timeline.all().collect();
    let most = all.iter().filter_map(|row| row.in_flight).fold(0.0, f64::max);
    let best = all.iter().filter_map(|row| row.p50_ms).fold(f64::INFINITY, f64::min);
    let flat =
        |row: &&Interval| row.in_flight.is_some_and(|now| now >= most * 0.995) && row.p50_ms.is_none_or(|p50| p50 > 1.5 * best);
    let (mut lasts, mut since) = (0, None);
    for row in &all {
        if flat(row) {
            lasts += 1;
            since = since.or(Some(row.unix_ms));
            if lasts >= LASTING {
                break;
            }
        } else {
            (lasts, since) = (0, None);
        }
    }
    let closed = timeline.driver.offered == Offered::Achieved && run.is_closed_loop();
    if let (true, true, false, Some(since)) = (lasts >= LASTING, most >= 4.0, closed, since) {
        run.caveat(caveat::WORKERS_EXHAUSTED);
        let found = json!({"unix_ms": since, "in_flight": most});
        timeline.driver.more.entry("workers_exhausted").or_insert(found);
    }
}

/// Lays the plan under the offered rate, and says if the driver stayed behind it.
pub(super) fn plan(run: &mut Run<'_>, timeline: &mut Timeline) {
    let Some(plan) = &run.options.plan else { return };
    let Some(begin) = timeline.all().map(|row| row.unix_ms).min() else { return };
    let (mut behind, mut lasting, mut planned, mut reached) = (0, false, 0.0, 0.0);
    for row in &mut timeline.intervals {
        let from = (row.unix_ms - begin) as f64 / 1e3;
        let wanted = plan.count(from, from + row.dur_ms / 1e3);
        row.offered = if row.step == ALL {
            Some(wanted)
        } else {
            run.options.mix.as_ref().and_then(|mix| mix.share(&row.step)).map(|share| wanted * share)
        };
        if row.step == ALL {
            let sent = row.started.or_else(|| Some(row.ok? + row.failed.unwrap_or(0.0) + row.refused.unwrap_or(0.0)));
            let Some(sent) = sent else { continue };
            planned += wanted;
            reached += if wanted > 0.0 { sent } else { 0.0 };
            behind = if sent < 0.95 * wanted { behind + 1 } else { 0 };
            lasting |= behind >= LASTING;
        }
    }
    timeline.driver.offered = Offered::Plan;
    if planned > 0.0 {
        timeline.driver.more.insert("reached_of_plan".into(), json!((reached / planned * 1e4).round() / 1e4));
    }
    if lasting {
        run.caveat(caveat::BEHIND_PLAN);
    }
}

/// The mix of steps, beside the planned one.
pub(super) fn mix(run: &Run<'_>, timeline: &mut Timeline) {
    let mut totals: BTreeMap<&str, f64> = BTreeMap::new();
    for row in timeline.intervals.iter().filter(|row| row.step != ALL) {
        let ended = [row.ok, row.failed, row.refused].iter().flatten().sum::<f64>();
        *totals.entry(&row.step).or_default() += row.started.unwrap_or(ended);
    }
    let sum: f64 = totals.values().sum();
    // One step alone has no mix, unless one was planned.
    if sum <= 0.0 || (totals.len() < 2 && run.options.mix.is_none()) {
        return;
    }
    let rounded = |share: f64| json!((share * 1e4).round() / 1e4);
    let mut shares: Vec<(&str, f64)> = totals.into_iter().map(|(step, total)| (step, total / sum)).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let shares: Map<String, Value> = shares.into_iter().map(|(step, share)| (step.to_owned(), rounded(share))).collect();
    timeline.driver.more.insert("mix".into(), Value::Object(shares));
    if let Some(mix) = &run.options.mix {
        let planned: Map<String, Value> = mix.0.iter().map(|(step, share)| (step.clone(), rounded(*share))).collect();
        timeline.driver.more.insert("mix_planned".into(), Value::Object(planned));
    }
}
