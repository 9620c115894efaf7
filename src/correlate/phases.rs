//! The parts of a run, from its load: before the load, low load, climb, plateau, spike, cool-down.
//!
//! **Question.** Where is the rest that everything is compared with, and up to where is it judged? **Method.** The low-load
//! part runs from the load's start, its warm-up left out, to a quarter of the way up; what is judged ends where the load is
//! last near its top. A jump to a short part far above the rest is a spike. Every window is a share of the loaded time with a
//! ceiling in seconds, so that a run of forty seconds is judged like one of four hours. **How it fails.** A run that begins
//! at its full load has no low-load part: then the stretch before the load is the only rest.

mod given;
mod parts;

pub use given::Given;
pub use parts::Part;

use super::align::{Basis, Load};
use super::gather::Frame;
use crate::judge::robust::{median, quantile, smooth};
use crate::timeline::Offered;

/// A closed loop that climbs ends at so many times its first rate.
const CLIMBED: f64 = 3.0;
/// So large a share of the requests fails where something gave way.
const FAILED: f64 = 0.01;
/// A closed loop's start takes so many seconds or so large a share of the loaded time.
const START_S: f64 = 2.0;
const START_SHARE: f64 = 0.05;

/// The parts of a run.
#[derive(Clone, Debug)]
pub struct Phases {
    /// Bins in which load ran.
    pub loaded: Vec<bool>,
    /// Bins before the load, the first two left out.
    pub before: Vec<bool>,
    /// Bins of low load, the warm-up left out.
    pub low: Vec<bool>,
    /// What is judged.
    pub range: (usize, usize),
    /// The load's axis: the offered rate, smoothed; where only completions are known, the highest so far.
    pub axis: Vec<f64>,
    /// The same for telling rates: where arrivals are counted and not planned, their chance is smoothed out.
    pub told: Vec<f64>,
    /// The highest load that lasted.
    pub top: f64,
    /// The lowest load of the loaded part.
    pub bottom: f64,
    /// In order.
    pub parts: Vec<Part>,
}

impl Phases {
    /// From the load. `None` where no load is seen at all.
    pub fn of(frame: &Frame, load: &Load) -> Option<Self> {
        let n = frame.bins;
        let smoothed = smooth(&load.offered, frame.bins_of(3.0_f64.min(n as f64 * frame.step_s / 60.0), 1));
        let top = smoothed.iter().copied().filter(|x| x.is_finite()).fold(0.0, f64::max);
        if top <= 0.0 {
            return None;
        }
        let loaded: Vec<bool> = smoothed.iter().map(|x| *x > 0.02 * top).collect();
        let first = loaded.iter().position(|on| *on)?;
        let last = loaded.iter().rposition(|on| *on)? + 1;
        let axis = axis(&smoothed, load, top);
        let end = (first..last).rev().find(|bin| axis[*bin] >= 0.9 * top).map_or(last, |bin| bin + 1);

        // A short spike far above the rest is no part of the way up.
        let steady = steady_top(&axis, first, end, top);
        let start = median(axis[first..(first + (last - first).div_ceil(20)).min(last)].iter().copied());
        let bottom = start.min(top);
        let quarter = bottom + 0.25 * (steady - bottom);
        let lead = frame.bins_of(((last - first) as f64 * frame.step_s / 40.0).min(3.0), 3);
        let low_end = leaves(&axis[..end], first, quarter, lead);
        let flat = bottom > 0.7 * top || constant(&axis[first..end], load, (bottom, steady), frame);
        let low_end = if flat { first } else { low_end };
        let warm = (((last - first) as f64 * frame.step_s / 15.0).min(15.0) / frame.step_s) as usize;
        let warm = warm.min((low_end - first) / 3);
        let low = (0..n).map(|bin| (first + warm..low_end).contains(&bin) && loaded[bin]).collect();
        let skip = usize::from(first > 4) * 2;
        let before = (0..n).map(|bin| (skip..first).contains(&bin)).collect();

        let told = told(frame, load, &axis, (first, last));
        let edges = parts::Edges { first, warm: first + warm, low_end, end, last, bins: n };
        let counted = (load.basis == Basis::Measured).then_some(load.interval_s);
        let parts = parts::parts(&held(load, &axis), counted, edges, frame.step_s);
        Some(Self { loaded, before, low, range: (first + warm, end), axis, told, top, bottom, parts })
    }

    /// The bins of the low-load part.
    pub fn low_bins(&self) -> impl Iterator<Item = usize> + '_ {
        self.low.iter().enumerate().filter(|(_, low)| **low).map(|(bin, _)| bin)
    }

    /// The low-load bins of the lowest load: the flat start, or the first third of the way to a quarter.
    pub fn lowest_bins(&self, frame: &Frame) -> impl Iterator<Item = usize> + '_ {
        let limit = self.bottom + 0.08 * (self.top - self.bottom);
        let flat: Vec<usize> = self.low_bins().filter(|bin| self.axis[*bin] <= limit).collect();
        let enough = flat.len() >= 5 && flat.len() as f64 * frame.step_s >= 1.0;
        let chosen: Vec<usize> = if enough { flat } else { self.low_bins().collect() };
        chosen.into_iter()
    }

    /// The share of the requests that failed or were refused between two bins, over that at low load; 0 where it is no more
    /// than some of a site's own.
    pub fn failed_more(&self, load: &Load, from: usize, to: usize) -> f64 {
        let share = |bins: &mut dyn Iterator<Item = usize>| {
            let known = bins.filter(|bin| load.ok[*bin].is_finite() && load.failed[*bin].is_finite());
            let (failed, all) =
                known.fold((0.0, 0.0), |(failed, all), bin| (failed + load.failed[bin], all + load.ok[bin] + load.failed[bin]));
            if all > 0.0 { failed / all } else { 0.0 }
        };
        let more = share(&mut (from..to)) - share(&mut self.low_bins());
        if more > FAILED { more } else { 0.0 }
    }

    /// Whether a bin lies in a part of this name.
    pub fn parts_named(&self, name: &str, bin: usize) -> bool {
        self.parts.iter().any(|part| part.name == name && (part.bins.0..part.bins.1).contains(&bin))
    }

    /// Whether there was a climb from a low load at all.
    pub fn climbs(&self) -> bool {
        self.low.iter().any(|low| *low)
    }
}

/// Whether a closed loop did not climb. Its rate is the site's as much as the load's: what does not grow severalfold, or is
/// near its full height as soon as the connections are open, is a constant load that the site served now better, now worse.
fn constant(axis: &[f64], load: &Load, (bottom, steady): (f64, f64), frame: &Frame) -> bool {
    let soon = frame.bins_of((START_SHARE * axis.len() as f64 * frame.step_s).max(START_S), 1);
    let at_once = || axis.len() > 2 * soon && axis[soon..].iter().all(|rate| *rate > 0.7 * steady);
    load.basis == Basis::Measured && load.kind == Offered::Achieved && (CLIMBED * bottom > steady || at_once())
}

/// What the parts are told by: the offered rate as it was written down, before any smoothing. What a target completed falls
/// and jumps by itself once it is saturated; there the axis must do.
fn held(load: &Load, axis: &[f64]) -> Vec<f64> {
    match load.kind {
        _ if load.basis == Basis::Inferred => axis.to_vec(),
        Offered::Achieved | Offered::Unknown => load.started.clone(),
        _ => load.offered.clone(),
    }
}

/// The axis without the chance of arrivals. A plan has none: neighbours differ by far less than counting would make them.
fn told(frame: &Frame, load: &Load, axis: &[f64], (first, last): (usize, usize)) -> Vec<f64> {
    // Second differences leave nothing of a ramp; those of counts over a second have six times their variance.
    let lag = frame.bins_of(1.0, 1);
    let rough = median(load.offered[first..last].windows(2 * lag + 1).map(|part| {
        let (a, b, c) = (part[0], part[lag], part[2 * lag]);
        (a - 2.0 * b + c).abs() / (6.0 * b.max(1e-9) / (lag as f64 * frame.step_s)).sqrt()
    }));
    if !rough.is_finite() || rough < 0.3 {
        return axis.to_vec();
    }
    let mut told = smooth(axis, frame.bins_of(0.1 * (last - first) as f64 * frame.step_s, 1));
    // Outside the load there is nothing to smooth into.
    for (bin, rate) in told.iter_mut().enumerate() {
        if !axis[bin].is_finite() {
            *rate = f64::NAN;
        }
    }
    told
}

/// The first bin from which the load stays over a level for `lead` bins; the end where it never does. One bin alone proves
/// nothing: where visitors come at random, three in the first tenth of a second are a rate of 30 a second.
fn leaves(axis: &[f64], first: usize, level: f64, lead: usize) -> usize {
    let stays = |bin: &usize| axis[*bin..(*bin + lead).min(axis.len())].iter().all(|x| *x > level);
    (first..axis.len()).find(stays).unwrap_or(axis.len())
}

fn axis(smoothed: &[f64], load: &Load, top: f64) -> Vec<f64> {
    if load.basis == Basis::Measured && !matches!(load.kind, Offered::Achieved | Offered::Unknown) {
        return smoothed.to_vec();
    }
    // Completions fall where the load does not; as long as the run goes on, the highest so far is a lower bound of it.
    let until = smoothed.iter().rposition(|x| *x >= 0.6 * top).unwrap_or(0);
    let mut highest = f64::NAN;
    smoothed
        .iter()
        .enumerate()
        .map(|(bin, x)| {
            if bin > until {
                return *x;
            }
            highest = if highest.is_nan() { *x } else { highest.max(*x) };
            highest
        })
        .collect()
}

/// The load that is reached or passed for a tenth of the loaded time.
fn steady_top(axis: &[f64], first: usize, end: usize, top: f64) -> f64 {
    let high = quantile(axis[first..end].iter().copied(), 0.9);
    if high.is_finite() { high.min(top) } else { top }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_in_the_first_bins_of_a_low_load_is_not_the_climb() {
        let mut axis = vec![f64::NAN, 30.0, 24.0];
        axis.extend([5.0; 40]);
        axis.extend((0..50).map(f64::from));
        // 21 is passed at the 22nd bin of the climb.
        assert_eq!(leaves(&axis, 1, 21.0, 5), 43 + 22);
        assert_eq!(leaves(&axis, 1, 60.0, 5), axis.len());
    }

    #[test]
    fn a_closed_loop_that_does_not_grow_severalfold_did_not_climb() {
        let frame = Frame::empty(0.0, 1.0, 60);
        let mut load = Load {
            offered: vec![100.0; 60],
            completed: vec![100.0; 60],
            started: vec![100.0; 60],
            ok: vec![100.0; 60],
            failed: vec![0.0; 60],
            p50_ms: vec![5.0; 60],
            p95_ms: vec![5.0; 60],
            p99_ms: vec![5.0; 60],
            max_ms: vec![5.0; 60],
            interval_s: 1.0,
            basis: Basis::Measured,
            from: None,
            kind: Offered::Achieved,
            unit: "req/s",
        };
        let climbs = |rates: &dyn Fn(f64) -> f64, load: &mut Load| {
            load.offered = (0..60).map(|n| rates(f64::from(n))).collect();
            Phases::of(&frame, load).unwrap().climbs()
        };
        assert!(climbs(&|n| 20.0 + 3.0 * n, &mut load), "from 20 to 200");
        assert!(!climbs(&|n| 100.0 + 2.0 * n, &mut load), "a site that grows warm");
        assert!(!climbs(&|n| if n < 2.0 { 20.0 } else { 200.0 }, &mut load), "connections that are opened");
        load.kind = Offered::Scheduled;
        assert!(climbs(&|n| 100.0 + 3.0 * n, &mut load), "what was offered is the load");
    }

    #[test]
    fn a_climb_that_ends_before_the_lead_is_one() {
        assert_eq!(leaves(&[1.0, 1.0, 9.0, 9.0], 0, 5.0, 5), 2);
    }
}
