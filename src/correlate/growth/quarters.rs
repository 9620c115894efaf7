//! The quarters of a stretch of held load, step by step.

use crate::correlate::gather::Frame;
use crate::correlate::steps::{Percentiles, merged};
use crate::correlate::tell::round;
use crate::hist::Hist;
use crate::judge::robust::mean;
use crate::judge::trend::{self, CHANCE};
use crate::timeline::{Interval, Timeline};
use serde::Serialize;

/// So many times as long, last quarter over first, is longer.
const GREW: f64 = 1.2;
/// A quarter with fewer requests tells nothing.
const FEWEST: f64 = 20.0;
/// Blocks of the whole stretch, in which requests over its own percentile are counted.
const BLOCKS: usize = 16;

/// One step's percentiles in each quarter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Quarters {
    /// The step; `*` where the log knows none.
    pub step: String,
    /// Median latency, first quarter to last.
    pub p50_ms: [Option<f64>; 4],
    /// 95th percentile.
    pub p95_ms: [Option<f64>; 4],
    /// 99th percentile.
    pub p99_ms: [Option<f64>; 4],
    /// The last over the first: of the 50th, 95th and 99th percentile.
    pub last_over_first: [Option<f64>; 3],
    /// Which of them grew, clearly and by a fifth or more.
    pub grew: Vec<&'static str>,
    /// `merged` from single requests, or `of_windows`.
    pub percentiles: &'static str,
}

/// Of every step with enough requests; `None` where the log has no latencies there.
pub fn of(frame: &Frame, timeline: &Timeline, (from, to): (usize, usize)) -> Option<Vec<Quarters>> {
    let names = timeline.told_apart();
    let half = frame.step_s * 500.0;
    let (begin, end) = (frame.at_ms(from) - half, frame.at_ms(to - 1) + half);
    let found: Vec<Quarters> = names.into_iter().filter_map(|name| step(timeline, name, begin, end)).collect();
    (!found.is_empty()).then_some(found)
}

fn step(timeline: &Timeline, name: String, begin: f64, end: f64) -> Option<Quarters> {
    let within = |part: usize, parts: usize| {
        let edge = |at: usize| begin + (end - begin) * at as f64 / parts as f64;
        let (from, to) = (edge(part), edge(part + 1));
        let middle = |row: &Interval| row.unix_ms as f64 + row.dur_ms / 2.0;
        let rows = timeline.intervals.iter().filter(|row| row.step == name);
        rows.filter(move |row| (from..to).contains(&middle(row))).collect::<Vec<&Interval>>()
    };
    let quarters: Vec<Vec<&Interval>> = (0..4).map(|quarter| within(quarter, 4)).collect();
    let requests = |rows: &[&Interval]| rows.iter().filter_map(|row| row.ended()).sum::<f64>();
    if quarters.iter().any(|rows| requests(rows) < FEWEST) {
        return None;
    }
    let told: Vec<Percentiles> = quarters.iter().map(|rows| Percentiles::of(rows)).collect();
    let of = |at: usize| [0, 1, 2, 3].map(|quarter: usize| told[quarter].told[at]);
    let ratio = |at: usize| {
        let (first, last) = (told[0].told[at]?, told[3].told[at]?);
        (first > 0.0).then(|| round(last / first, 3))
    };
    let ratios = [ratio(0), ratio(1), ratio(2)];
    let blocks: Vec<Vec<&Interval>> = (0..BLOCKS).map(|block| within(block, BLOCKS)).collect();
    let grew = [("p50_ms", 0.5), ("p95_ms", 0.95), ("p99_ms", 0.99)]
        .into_iter()
        .enumerate()
        .filter(|(at, (_, q))| ratios[*at].is_some_and(|ratio| ratio >= GREW) && rises(&blocks, *at, *q))
        .map(|(_, (name, _))| name)
        .collect();
    Some(Quarters {
        p50_ms: of(0),
        p95_ms: of(1),
        p99_ms: of(2),
        last_over_first: ratios,
        grew,
        percentiles: if told.iter().all(|told| told.merged) { "merged" } else { "of_windows" },
        step: name,
    })
}

/// Whether ever more requests are over the whole stretch's own percentile; of windows, whether their percentiles rise.
fn rises(blocks: &[Vec<&Interval>], at: usize, q: f64) -> bool {
    let hists: Option<Vec<Hist>> = blocks.iter().map(|rows| merged(rows.iter().copied())).collect();
    let by_block: Vec<f64> = if let Some(hists) = hists {
        let mut whole = Hist::default();
        for hist in &hists {
            whole.merge(hist);
        }
        let limit = whole.quantile_ms(q).unwrap_or(f64::INFINITY);
        hists.iter().map(|hist| hist.over_ms(limit) as f64 / hist.count() as f64).collect()
    } else {
        let of = |row: &&Interval| [row.p50_ms, row.p95_ms, row.p99_ms][at];
        blocks.iter().map(|rows| mean(rows.iter().filter_map(of))).collect()
    };
    let (way, p) = trend::way(&by_block);
    way > 0.0 && p < CHANCE
}
