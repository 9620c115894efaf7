//! What a page draws, reduced to what a screen can show: every line has at most [`MOST_POINTS`] points, however long the run was.
//!
//! Where several bins fall on one point, rates give their mean, and gauges, latencies and waiters their worst: a peak of one
//! second in a day must not vanish.

use super::align::Load;
use super::bench::Bench;
use super::gather::{Frame, Gauge, unit_ms};
use super::growth::{Grown, Held};
use super::phases::Phases;
use super::verdict::{Mover, Symptom, Verdict};
use crate::timeline::{ALL, Timeline};
use crate::waits::Waits;
use collectors::api::{Class, Worse};
use std::collections::{BTreeMap, BTreeSet};

/// The most points of one line.
pub const MOST_POINTS: usize = 400;
/// The most movers and steps that are drawn.
const MOST_PANELS: usize = 8;
/// The most objects whose waiters are drawn apart.
const MOST_OBJECTS: usize = 4;

/// Everything that a page draws.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plot {
    /// The seconds that all charts over time show.
    pub span_s: (f64, f64),
    /// Offered, completed and ok per second.
    pub load: Vec<Line>,
    /// The movers in their order.
    pub movers: Vec<Panel>,
    /// Latency per step.
    pub latency: Vec<Panel>,
    /// Waiters by object.
    pub waits: Vec<Line>,
    /// What grew under held load, with its growth.
    pub growth: Vec<Panel>,
    /// Goodput against what was offered, both per second.
    pub knee: Vec<(f64, f64)>,
}

/// A named line; a NaN is a gap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// What it is.
    pub name: String,
    /// Seconds since the run's start, and the value.
    pub points: Vec<(f64, f64)>,
}

/// One chart of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// What it shows.
    pub title: String,
    /// The unit of its values.
    pub unit: String,
    /// The lines.
    pub lines: Vec<Line>,
    /// Where it rests.
    pub band: Option<(f64, f64)>,
    /// The limit that was crossed.
    pub limit: Option<f64>,
    /// What is material there, in the same unit.
    pub material: Option<f64>,
    /// When it began: low, likeliest, high, in seconds.
    pub onset: Option<(f64, f64, f64)>,
}

/// Several bins on one point.
#[derive(Clone, Copy)]
enum Joined {
    Mean,
    Highest,
    Lowest,
}

/// From everything that was read of a run.
pub fn plot(bench: &Bench, timeline: Option<&Timeline>, waits: Option<&Waits>, verdict: &Verdict) -> Plot {
    let (frame, load) = (bench.frame, bench.load);
    let line = |name: &str, values: &[f64], joined: Joined| Line { name: name.to_owned(), points: reduced(frame, values, joined) };
    let mut lines = vec![line("offered", &load.offered, Joined::Mean), line("completed", &load.completed, Joined::Mean)];
    // Where everything ended well the third line would only hide the second.
    let sum = |values: &[f64]| values.iter().filter(|value| value.is_finite()).sum::<f64>();
    if sum(&load.ok) < 0.99 * sum(&load.completed) {
        lines.push(line("ended well", &load.ok, Joined::Mean));
    }
    Plot {
        span_s: (0.0, frame.elapsed_s(frame.bins - 1) + frame.step_s / 2.0),
        load: lines,
        movers: verdict.movers.iter().take(MOST_PANELS).filter_map(|mover| of_mover(bench, mover)).collect(),
        latency: timeline.map_or(Vec::new(), |timeline| of_steps(frame, timeline, verdict.symptoms.as_deref().unwrap_or_default())),
        waits: waits.map_or(Vec::new(), |waits| of_waits(frame, waits)),
        growth: verdict
            .growth
            .iter()
            .flat_map(|growth| &growth.plateaus)
            .flat_map(|held| of_grown(frame, held))
            .take(MOST_PANELS)
            .collect(),
        knee: of_knee(frame, load, bench.phases),
    }
}

fn reduced(frame: &Frame, values: &[f64], joined: Joined) -> Vec<(f64, f64)> {
    let each = values.len().div_ceil(MOST_POINTS).max(1);
    let chunks = values.chunks(each).enumerate();
    chunks
        .map(|(n, chunk)| {
            let known = chunk.iter().copied().filter(|value| value.is_finite());
            let value = match joined {
                Joined::Mean => {
                    let (sum, count) = known.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
                    if count > 0.0 { sum / count } else { f64::NAN }
                }
                Joined::Highest => known.fold(f64::NAN, f64::max),
                Joined::Lowest => known.fold(f64::NAN, f64::min),
            };
            let (first, last) = (n * each, (n * each + chunk.len()) - 1);
            (f64::midpoint(frame.elapsed_s(first), frame.elapsed_s(last)), value)
        })
        .collect()
}

fn of_mover(bench: &Bench, mover: &Mover) -> Option<Panel> {
    let frame = bench.frame;
    let gauge = frame.gauge(&mover.gauge)?;
    let joined = if gauge.meaning.worse == Worse::Down { Joined::Lowest } else { Joined::Highest };
    let explained = explained(bench, gauge);
    let mut lines = vec![Line { name: mover.gauge.clone(), points: reduced(frame, &gauge.values, joined) }];
    let material = explained.as_ref().map(|(_, floor)| crate::judge::robust::median(floor.iter().copied()));
    if let Some((expected, _)) = explained {
        lines.push(Line { name: "what the load explains".to_owned(), points: reduced(frame, &expected, Joined::Mean) });
    }
    Some(Panel {
        title: mover.gauge.clone(),
        unit: unit_of(gauge),
        lines,
        band: Some((mover.resting.low, mover.resting.high)),
        limit: None,
        material,
        onset: Some((mover.onset.low_s, mover.onset.elapsed_s, mover.onset.high_s)),
    })
}

fn unit_of(gauge: &Gauge) -> String {
    let per_second = matches!(gauge.meaning.kind, collectors::api::Kind::Counter | collectors::api::Kind::Delta);
    let unit = if gauge.meaning.unit == "count" { "" } else { &*gauge.meaning.unit };
    if per_second { format!("{unit}/s") } else { unit.to_owned() }
}

/// What grew on a stretch of held load, with the line of its growth there.
fn of_grown(frame: &Frame, held: &Held) -> Vec<Panel> {
    let alone = held.gauges.iter().filter(|grown| !grown.moved);
    let panel = |grown: &Grown| {
        let gauge = frame.gauge(&grown.gauge)?;
        let joined = if grown.saw_tooth { Joined::Lowest } else { Joined::Mean };
        // The level stands in the middle.
        let rise = grown.per_minute.value * (held.to_s - held.from_s) / 60.0 / 2.0;
        let trend = vec![(held.from_s, grown.level - rise), (held.to_s, grown.level + rise)];
        Some(Panel {
            title: grown.gauge.clone(),
            unit: unit_of(gauge),
            lines: vec![
                Line { name: grown.gauge.clone(), points: reduced(frame, &gauge.values, joined) },
                Line { name: "its growth".to_owned(), points: trend },
            ],
            limit: grown.limit.filter(|limit| *limit < 3.0 * grown.level.abs()),
            ..Panel::default()
        })
    };
    alone.filter_map(panel).collect()
}

/// What the load explains of a gauge, and what is material over it, in the gauge's own unit; `None` where that cannot be told.
fn explained(bench: &Bench, gauge: &Gauge) -> Option<(Vec<f64>, Vec<f64>)> {
    let class = gauge.class?;
    let trace = bench.trace(gauge, class, bench.floors.wait_ms).ok()?;
    let unit = unit_ms(&gauge.meaning).unwrap_or(1.0);
    let own = |rate: f64| match class {
        Class::Queue => Some(rate / 1e3),
        Class::WaitSum => Some(rate / unit),
        Class::Event => Some(1.0),
        Class::Age => Some(1e3 / unit),
        _ => None,
    };
    own(1.0)?;
    let in_own = |values: &[f64]| {
        values.iter().zip(&bench.rate.per_s).map(|(value, rate)| own(*rate).map_or(f64::NAN, |k| value * k)).collect()
    };
    Some((in_own(&trace.expected), in_own(&trace.floor)))
}

fn of_steps(frame: &Frame, timeline: &Timeline, symptoms: &[Symptom]) -> Vec<Panel> {
    let names = timeline.told_apart();
    let panel = |name: String| {
        let of_step = || timeline.intervals.iter().filter(|interval| interval.step == name);
        let percentile = |q: f64, own: fn(&crate::timeline::Interval) -> Option<f64>| {
            let values =
                super::align::hold(frame, of_step(), |i| own(i).or_else(|| i.hist.as_ref().and_then(|hist| hist.quantile_ms(q))));
            Line { name: format!("p{:.0}", 100.0 * q), points: reduced(frame, &values, Joined::Highest) }
        };
        let felt = symptoms.iter().find(|symptom| symptom.step == name && symptom.measure == "p95_ms");
        Panel {
            title: if name == ALL { "all steps".to_owned() } else { name.clone() },
            unit: "ms".to_owned(),
            lines: vec![percentile(0.95, |i| i.p95_ms), percentile(0.5, |i| i.p50_ms)],
            band: None,
            material: felt.map(|symptom| symptom.threshold / 2.0),
            limit: felt.map(|symptom| symptom.threshold),
            onset: felt.map(|symptom| (symptom.onset.low_s, symptom.onset.elapsed_s, symptom.onset.high_s)),
        }
    };
    let panels: Vec<Panel> = names.into_iter().take(MOST_PANELS).map(panel).collect();
    panels.into_iter().filter(|panel| panel.lines[0].points.iter().any(|(_, value)| value.is_finite())).collect()
}

/// Whether the rows that are waited on most stand for most of the waiters: where each version of a row has another name, and
/// where many rows are waited on, only their table says something.
fn few_rows(waits: &Waits) -> bool {
    let mut rows: BTreeMap<(Option<&str>, Option<&str>), f64> = BTreeMap::new();
    for row in &waits.rows {
        *rows.entry((row.object.as_deref(), row.row.as_deref())).or_default() += row.count as f64;
    }
    let mut counts: Vec<f64> = rows.into_values().collect();
    counts.sort_unstable_by(|a, b| b.total_cmp(a));
    counts.iter().take(MOST_OBJECTS).sum::<f64>() >= 0.5 * counts.iter().sum::<f64>()
}

/// Waiters at a time by object, those with the most apart and the others together.
fn of_waits(frame: &Frame, waits: &Waits) -> Vec<Line> {
    // The reads of a bin are averaged: a bin with five reads of three waiters had three waiters.
    let mut reads: BTreeMap<usize, BTreeSet<i64>> = BTreeMap::new();
    let mut objects: BTreeMap<String, BTreeMap<usize, f64>> = BTreeMap::new();
    let by_row = few_rows(waits);
    for row in &waits.rows {
        let bin = ((row.unix_ms as f64 - frame.start_ms) / (frame.step_s * 1e3)).round();
        if bin < 0.0 || bin as usize >= frame.bins {
            continue;
        }
        let which = row.row.as_deref().filter(|_| by_row);
        let place: Vec<&str> = [row.object.as_deref(), row.index.as_deref(), which].into_iter().flatten().collect();
        let place = if place.is_empty() { format!("{} lock", row.kind) } else { place.join(" ") };
        *objects.entry(place).or_default().entry(bin as usize).or_default() += row.count as f64;
        reads.entry(bin as usize).or_default().insert(row.unix_ms);
    }
    let mut all: Vec<(String, BTreeMap<usize, f64>)> = objects.into_iter().collect();
    all.sort_by(|a, b| b.1.values().sum::<f64>().total_cmp(&a.1.values().sum()));
    let others = all.split_off(all.len().min(MOST_OBJECTS));
    if !others.is_empty() {
        let mut sum = BTreeMap::new();
        for (bin, count) in others.iter().flat_map(|(_, bins)| bins) {
            *sum.entry(*bin).or_default() += count;
        }
        all.push((format!("{} others", others.len()), sum));
    }
    let values = |bins: &BTreeMap<usize, f64>| -> Vec<f64> {
        let at = |bin: usize| bins.get(&bin).map_or(0.0, |count| count / reads.get(&bin).map_or(1.0, |reads| reads.len() as f64));
        (0..frame.bins).map(at).collect()
    };
    all.into_iter().map(|(name, bins)| Line { name, points: reduced(frame, &values(&bins), Joined::Highest) }).collect()
}

fn of_knee(frame: &Frame, load: &Load, phases: &Phases) -> Vec<(f64, f64)> {
    let block = (frame.bins.div_ceil(MOST_POINTS)).max(frame.bins_of(1.0, 1));
    let bins: Vec<usize> = (0..phases.range.1).filter(|bin| phases.loaded[*bin]).collect();
    let mean = |bins: &[usize], of: &[f64]| bins.iter().map(|bin| of[*bin]).sum::<f64>() / bins.len() as f64;
    let points = bins.chunks(block).map(|bins| (mean(bins, &load.offered), mean(bins, &load.ok)));
    points.filter(|(offered, ok)| offered.is_finite() && ok.is_finite()).collect()
}
