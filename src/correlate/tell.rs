//! From bins to the verdict's own terms: times, rates, names.

use super::align::{Basis, Load};
use super::blame::{self, Order};
use super::floors::Floors;
use super::gather::{Frame, Gauge};
use super::movers::{Evidence, Move};
use super::phases::Phases;
use super::verdict::{Answer, Between, Mover, Onset, Phase, Run, Used, WaitShare};
use crate::judge::robust::median;
use collectors::api::{Class, Layer};

/// The share of the waiters on one object that makes it the resource.
const MOST_WAITERS: f64 = 0.5;

/// The verdict's word, as in the JSON.
pub fn answer_name(answer: Answer) -> &'static str {
    match answer {
        Answer::Moved => "moved",
        Answer::Rested => "rested",
        Answer::Inconclusive => "inconclusive",
        Answer::Violated => "violated",
        Answer::Saturated => "saturated",
        Answer::Qualified => "qualified",
    }
}

/// What the ticks alone say of the run.
pub fn run(frame: &Frame) -> Run {
    Run {
        start_unix_ms: frame.run.start_unix_ms,
        elapsed_s: round(frame.bins as f64 * frame.step_s, 1),
        tick_ms: frame.run.tick_ms,
        labels: frame.run.labels.clone(),
        ..Run::default()
    }
}

/// How the run was measured.
pub fn measure(run: &mut Run, frame: &Frame, load: &Load, phases: &Phases, floors: Floors) {
    run.top_rate_per_s = Some(round(phases.top, 2));
    run.rate_from.clone_from(&load.from);
    load.unit.clone_into(&mut run.rate_unit);
    run.floor_ms = Some(round(floors.wait_ms, 3));
    run.left_rest = Some(format!(
        "more than {} ms added to the mean request, dated from {} ms on",
        short(floors.wait_ms),
        short(floors.dated_ms)
    ));
    run.used = used(frame, phases.range);
}

/// How full every capacity was in the last tenth of what was judged.
fn used(frame: &Frame, range: (usize, usize)) -> Vec<Used> {
    let from = range.1 - (range.1 - range.0) / 10;
    let share = |gauge: &Gauge| {
        let capacity = frame.capacity(gauge)?;
        let share = median((from..range.1).map(|bin| gauge.values[bin] / capacity[bin]));
        share.is_finite().then(|| Used { gauge: gauge.name.clone(), share: round(share, 3) })
    };
    let gauges = frame.gauges.iter().filter(|gauge| gauge.class == Some(Class::Utilisation));
    let mut all: Vec<Used> = gauges.filter_map(share).collect();
    all.sort_by(|a, b| b.share.total_cmp(&a.share));
    all
}

/// An onset from bins.
pub fn onset(frame: &Frame, low: usize, at: usize, high: usize) -> Onset {
    let high = high.min(frame.bins.saturating_sub(1));
    Onset {
        unix_ms: frame.at_ms(at) as i64,
        elapsed_s: round(frame.elapsed_s(at), 3),
        low_s: round(frame.elapsed_s(low), 3),
        high_s: round(frame.elapsed_s(high), 3),
    }
}

/// The load at bins. A bin without load takes the nearest later one's: an onset in it is one at the load's first moment.
pub fn rates(phases: &Phases, low: usize, at: usize, high: usize) -> Between {
    let end = phases.range.1.saturating_sub(1);
    let rate = |bin: usize| (bin.min(end)..=end).map(|bin| phases.told[bin]).find(|rate| rate.is_finite()).unwrap_or(phases.top);
    let (value, low, high) = (rate(at), rate(low), rate(high));
    Between { value: round(value, 2), low: round(low.min(value), 2), high: round(high.max(value), 2) }
}

/// The load at a moment of the whole run; behind what is judged as it was then, `None` where there was none.
pub fn rate_at(phases: &Phases, bin: usize) -> Option<f64> {
    if bin < phases.range.1 {
        return Some(rates(phases, bin, bin, bin).value);
    }
    Some(round(phases.axis[bin], 2)).filter(|rate| rate.is_finite())
}

/// The parts of the run.
pub fn phases(frame: &Frame, phases: &Phases) -> Vec<Phase> {
    let part = |part: &super::phases::Part| {
        let (from, to) = (phases.axis[part.bins.0], phases.axis[part.bins.1 - 1]);
        Phase {
            name: part.name.clone(),
            from_s: round(frame.elapsed_s(part.bins.0) - frame.step_s / 2.0, 1).max(0.0),
            to_s: round(frame.elapsed_s(part.bins.1 - 1) + frame.step_s / 2.0, 1),
            rate_per_s: (from.is_finite() && to.is_finite()).then(|| [round(from, 2), round(to, 2)]),
        }
    };
    phases.parts.iter().map(part).collect()
}

/// The movers, the first with what is tied with it and with the object most of its waiters waited for.
pub fn movers(
    frame: &Frame,
    phases: &Phases,
    order: Order,
    shares: Option<Vec<WaitShare>>,
) -> (Vec<Mover>, Option<Vec<WaitShare>>) {
    let mut movers: Vec<Mover> = order.movers.iter().map(|found| mover(frame, phases, found)).collect();
    let tied = movers.iter().skip(1).take(order.tied).map(|mover| mover.gauge.clone()).collect();
    if let (Some(first), Some(found)) = (movers.first_mut(), order.movers.first()) {
        first.tied_with = tied;
        first.decided_by = order.decided_by;
        if let Some(name) = waited_for(&frame.gauges[found.gauge], shares.as_deref()) {
            first.resource = name;
        }
    }
    (movers, shares)
}

/// The object that most waiters waited for, where the gauge is one of a lock.
pub fn waited_for(gauge: &Gauge, shares: Option<&[WaitShare]>) -> Option<String> {
    let top = shares?.iter().find(|wait| wait.target == gauge.target)?;
    (gauge.meaning.layer == Some(Layer::Lock) && top.share >= MOST_WAITERS).then(|| blame::resource(top))
}

/// What kind of evidence it is, in words.
pub fn evidence_text(evidence: Evidence) -> String {
    match evidence {
        Evidence::Waits => "waiting".to_owned(),
        Evidence::Recurs { period_ms } => format!("again and again, every {} s", short(period_ms as f64 / 1e3)),
        Evidence::OffPath => "work that no request waits for".to_owned(),
        Evidence::Silence => "stopped answering".to_owned(),
        Evidence::Ceiling => "capacity used up, and no waiting for it was seen".to_owned(),
    }
}

fn mover(frame: &Frame, phases: &Phases, found: &Move) -> Mover {
    let gauge = &frame.gauges[found.gauge];
    let (value, low, high) = found.resting;
    let or_zero = |value: f64| if value.is_finite() { round(value, 4) } else { 0.0 };
    let onset_bins = found.onset;
    Mover {
        gauge: gauge.name.clone(),
        target: gauge.target.clone(),
        class: class_name(gauge, found.evidence),
        resting: Between { value: or_zero(value), low: or_zero(low), high: or_zero(high) },
        onset: onset(frame, onset_bins.low, onset_bins.at, onset_bins.high),
        rate_per_s: rates(phases, onset_bins.low, onset_bins.at, onset_bins.high),
        tied_with: Vec::new(),
        resource: if gauge.meaning.resource.is_empty() { gauge.name.clone() } else { gauge.meaning.resource.clone() },
        basis: if gauge.guessed { Basis::Inferred } else { Basis::Measured },
        evidence: evidence_text(found.evidence),
        decided_by: None,
        class_guessed: gauge.guessed,
    }
}

/// The class as the file writes it.
pub fn class_name(gauge: &Gauge, evidence: Evidence) -> String {
    if evidence == Evidence::Silence {
        return "event".to_owned();
    }
    let class = gauge.class.and_then(|class| serde_json::to_value(class).ok());
    class.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Rounds to so many digits behind the dot.
pub fn round(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

/// A number as people write it: two significant digits.
fn short(value: f64) -> String {
    if value >= 10.0 {
        format!("{value:.0}")
    } else if value >= 1.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}
