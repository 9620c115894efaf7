//! Growth where the load is held, and the quarters of such a stretch.
//!
//! **Question.** What goes on growing although the load does not, how fast, and when does it reach its limit? **Method.**
//! On each plateau, its first 20 s left out to settle: every gauge's trend in blocks ([`crate::judge::trend`]), Holm's
//! correction over all of them, and only what is material: an hour of it is over a tenth of the level, or it reaches its
//! capacity within a day. What grows no faster than the load itself is the load's. Of each step the 50th, 95th and
//! 99th percentile of every quarter, and the last over the first; whether the tail grew is asked of the share of requests
//! over the whole stretch's own percentile, block by block. **How it fails.** Under eight independent blocks nothing is
//! told. Where no plan says that the load was held (a closed loop, no driver's log), a plateau may be the system's own
//! ceiling: behind the first mover nothing is told there.

mod quarters;

pub use quarters::Quarters;

use super::align::{Basis, Load};
use super::gather::{Frame, Gauge};
use super::phases::{Part, Phases};
use super::tell::round;
use super::verdict::Between;
use crate::judge::robust::mean;
use crate::judge::trend::{self, CHANCE, FEWEST_BLOCKS, Trend, Untold};
use crate::timeline::{Offered, Timeline};
use collectors::api::{Class, Worse};
use serde::Serialize;

/// To settle.
const SETTLE_S: f64 = 20.0;
/// A block.
const BLOCK_S: f64 = 30.0;
/// An hour's growth of over this share of the level is material.
const MATERIAL: f64 = 0.1;
/// So is reaching a limit within so many seconds.
const SOON_S: f64 = 86_400.0;
/// What grows less than so many times as fast as the load grows with it.
const WITH_LOAD: f64 = 1.5;

/// What was found where the load was held.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Growth {
    /// In order.
    pub plateaus: Vec<Held>,
}

/// One stretch of held load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Held {
    /// plateau, soak, rung.
    pub phase: String,
    /// Seconds since the run's start, settled.
    pub from_s: f64,
    /// Seconds since the run's start.
    pub to_s: f64,
    /// How many gauges could be told.
    pub judged: usize,
    /// Gauges too slow for the length of the plateau: under eight independent blocks.
    pub too_slow: Vec<String>,
    /// What grew, the soonest at its limit first, then the fastest.
    pub gauges: Vec<Grown>,
    /// Each step's percentiles by quarter.
    pub quarters: Option<Vec<Quarters>>,
    /// The same stretch in bins: the first, and the one behind the last.
    #[serde(skip)]
    pub bins: (usize, usize),
}

impl Held {
    /// How one gauge grew per minute, material or not; 0 where it went nowhere, `None` where that cannot be told.
    pub fn per_minute(&self, frame: &Frame, gauge: &Gauge) -> Option<f64> {
        let trend = trend::of(&gauge.values[self.bins.0..self.bins.1], frame.bins_of(BLOCK_S, 1)).ok()?;
        let clear = trend.p < CHANCE && trend.goes_on;
        Some(if clear { round(60.0 * trend.slope / frame.step_s, 6) } else { 0.0 })
    }
}

/// A gauge that grew.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Grown {
    /// The column.
    pub gauge: String,
    /// The instance.
    pub target: String,
    /// Its class.
    pub class: Option<Class>,
    /// Its unit.
    pub unit: String,
    /// What it was on the plateau: the median.
    pub level: f64,
    /// In its own unit; negative where less is worse.
    pub per_minute: Between,
    /// Of requests completed.
    pub per_1000_requests: Option<f64>,
    /// An hour's growth over the level.
    pub per_hour_share: Option<f64>,
    /// What bounds it.
    pub limit: Option<f64>,
    /// Seconds from the plateau's end until it is there.
    pub to_limit_s: Option<f64>,
    /// The chance of as clear a trend where there is none.
    pub p: f64,
    /// Independent blocks.
    pub blocks: usize,
    /// A saw-tooth: its minima were judged.
    pub saw_tooth: bool,
    /// It left its rest as well: its growth may be its queue.
    pub moved: bool,
}

/// Why nothing was told.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// The load was never held.
    NoPlateau,
    /// Under eight blocks; the phase and its seconds.
    TooShort(String, f64),
    /// The plateau may be the system's own ceiling.
    Ceiling,
}

/// What the plateaus are judged with.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    /// The run.
    pub frame: &'a Frame,
    /// Its load.
    pub load: &'a Load,
    /// Its parts.
    pub phases: &'a Phases,
    /// The driver's log.
    pub timeline: Option<&'a Timeline>,
    /// Gauges that left their rest.
    pub moved: &'a [usize],
    /// The bin of the first onset.
    pub first: Option<usize>,
}

/// Judges every stretch of held load.
pub fn find(runs: Runs) -> Result<Growth, Why> {
    let Runs { frame, load, phases, first, .. } = runs;
    let parts: Vec<&Part> = phases.parts.iter().filter(|part| part.is_held()).collect();
    let longest = parts.iter().max_by_key(|part| part.bins.1 - part.bins.0).ok_or(Why::NoPlateau)?;
    let planned = load.basis == Basis::Measured && !matches!(load.kind, Offered::Achieved | Offered::Unknown);
    let held: Vec<&&Part> = parts.iter().filter(|part| planned || first.is_none_or(|first| part.bins.1 <= first)).collect();
    if held.is_empty() {
        return Err(Why::Ceiling);
    }
    let plateaus: Vec<Held> = held.into_iter().filter_map(|part| judge(runs, part)).collect();
    if plateaus.is_empty() {
        let seconds = (longest.bins.1 - longest.bins.0) as f64 * frame.step_s;
        return Err(Why::TooShort(longest.name.clone(), seconds));
    }
    Ok(Growth { plateaus })
}

fn judge(runs: Runs, part: &Part) -> Option<Held> {
    let frame = runs.frame;
    let whole = part.bins.1 - part.bins.0;
    // A short plateau settles in a sixth of itself, or there is nothing left of it.
    let settle = frame.bins_of(SETTLE_S, 1).min(whole / 6);
    let (from, to) = (part.bins.0 + settle, part.bins.1);
    let longest = frame.bins_of(BLOCK_S, 1);
    // What should have been sent, where somebody knows: what was completed has the chance of arrivals in it.
    let own = trend::of(&runs.load.offered[from..to], longest);
    if matches!(own, Err(Untold::TooShort(_))) || to - from < 3 * FEWEST_BLOCKS {
        return None;
    }
    let (mut told, mut too_slow): (Vec<(usize, Trend)>, Vec<String>) = (Vec::new(), Vec::new());
    for (n, gauge) in frame.gauges.iter().enumerate().filter(|(_, gauge)| can_grow(gauge)) {
        match trend::of(&gauge.values[from..to], longest) {
            Ok(trend) => told.push((n, trend)),
            Err(Untold::TooSlow(_)) => too_slow.push(gauge.name.clone()),
            Err(Untold::TooShort(_)) => {}
        }
    }
    let chances: Vec<f64> = told.iter().map(|(_, trend)| trend.p).collect();
    let stand = trend::holm(&chances, CHANCE);
    let load_share = own.ok().filter(|own| own.p < CHANCE).map_or(0.0, |own| own.slope / own.level.abs().max(1e-9));
    let mut gauges: Vec<Grown> = told
        .iter()
        .zip(stand)
        .filter(|((_, trend), stand)| *stand && trend.goes_on)
        .filter(|((_, trend), _)| {
            let share = trend.slope / trend.level.abs().max(1e-9);
            share.abs() > WITH_LOAD * load_share.abs() || share.signum() != load_share.signum()
        })
        .filter_map(|((n, trend), _)| grown(runs, *n, trend, (from, to)))
        .collect();
    gauges.sort_by(|a, b| {
        let key = |grown: &Grown| (grown.to_limit_s.unwrap_or(f64::INFINITY), -grown.per_hour_share.unwrap_or(0.0));
        key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal)
    });
    Some(Held {
        phase: part.name.clone(),
        from_s: round(frame.elapsed_s(from) - frame.step_s / 2.0, 1),
        to_s: round(frame.elapsed_s(to) - frame.step_s / 2.0, 1),
        judged: told.len(),
        too_slow,
        gauges,
        quarters: runs.timeline.and_then(|timeline| quarters::of(frame, timeline, (from, to))),
        bins: (from, to),
    })
}

/// The sampler's own two columns of every target and settings do not grow.
fn can_grow(gauge: &Gauge) -> bool {
    let own = gauge.name.strip_prefix(&gauge.target).is_some_and(|rest| matches!(rest, ".up" | ".poll_ms"));
    !own && gauge.class != Some(Class::Constant)
}

/// A trend as growth; `None` where it is the better way or not material.
fn grown(runs: Runs, n: usize, trend: &Trend, (from, to): (usize, usize)) -> Option<Grown> {
    let (frame, gauge) = (runs.frame, &runs.frame.gauges[n]);
    let down = gauge.meaning.worse == Worse::Down || (gauge.meaning.worse == Worse::Neither && gauge.class == Some(Class::Ratio));
    if (trend.slope < 0.0) != down {
        return None;
    }
    let per_s = |slope: f64| slope / frame.step_s;
    let limit = if down { Some(0.0) } else { frame.capacity(gauge).map(|capacity| capacity[to - 1]) };
    let to_limit_s = limit.map(|limit| ((limit - trend.last) / per_s(trend.slope)).max(0.0)).filter(|seconds| seconds.is_finite());
    let per_hour_share = 3600.0 * per_s(trend.slope).abs() / trend.level.abs();
    let material = per_hour_share > MATERIAL || to_limit_s.is_some_and(|seconds| seconds <= SOON_S);
    if !material {
        return None;
    }
    let completed = mean((from..to).map(|bin| runs.load.completed[bin]));
    let per_minute = |slope: f64| round(60.0 * per_s(slope), 6);
    Some(Grown {
        gauge: gauge.name.clone(),
        target: gauge.target.clone(),
        class: gauge.class,
        unit: gauge.meaning.unit.clone(),
        level: round(trend.level, 4),
        per_minute: Between { value: per_minute(trend.slope), low: per_minute(trend.between.0), high: per_minute(trend.between.1) },
        per_1000_requests: (completed > 0.0).then(|| round(1000.0 * per_s(trend.slope) / completed, 6)),
        per_hour_share: per_hour_share.is_finite().then(|| round(per_hour_share, 3)),
        limit: limit.filter(|_| to_limit_s.is_some()),
        to_limit_s: to_limit_s.map(|seconds| round(seconds, 0)),
        p: trend.p,
        blocks: trend.blocks,
        saw_tooth: trend.minima,
        moved: runs.moved.contains(&n),
    })
}
