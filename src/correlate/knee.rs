//! The knee: the rate that the system can do.
//!
//! **Question.** Up to which offered rate does goodput follow? **Method.** A hinge on goodput ([`crate::judge::hinge`]), one
//! point every few seconds; a spike can confirm a knee that the climb reached, not make one. It exists only if, beyond it,
//! goodput is under 95 % of what was offered and the latency of the ok ones is over 1.5 times its value at low load, both.
//! The interval is a block bootstrap of the points (Künsch 1989). What fails has cost something too, so that goodput falls
//! beyond its ceiling: it counts as a twentieth. A share fitted to each run followed its noise, and was worse on simulated
//! runs than this one for all. **How it fails.** Without a driver's log there is no offered rate and no knee; a closed loop
//! never offers more than is done; a knee within 2 % of the highest rate of the climb may be missed.

use super::align::{Basis, Load};
use super::gather::Frame;
use super::phases::Phases;
use super::verdict::Knee;
use crate::judge::hinge::{self, Hinge};
use crate::judge::robust::{mean, median, quantile_sorted, sorted};
use crate::timeline::Offered;

/// A shortfall of so many standard deviations of the count is one.
const COUNTED: f64 = 2.5;
/// What one that fails costs, as a share of one that is served.
const WASTE: f64 = 0.05;
/// What the hinge itself can be wrong by, as a share: real systems bend and do not break.
const MODEL: f64 = 0.05;
/// How much wider than the bootstrap says the interval is printed.
const WIDEN: f64 = 1.5;

/// Finds the knee; `None` where goodput followed to the end or where it cannot be told.
pub fn find(frame: &Frame, load: &Load, phases: &Phases) -> Option<Knee> {
    if load.basis != Basis::Measured || matches!(load.kind, Offered::Achieved | Offered::Unknown) {
        return None;
    }
    let from = phases.loaded.iter().position(|on| *on)?;
    let spike = phases.parts.iter().find(|part| part.name == "spike").map_or(phases.range.1, |part| part.bins.0);
    // What was sent first in a spike ends only later.
    let settled = spike + frame.bins_of(3.0, 2);
    let used: Vec<usize> = (from..spike).chain(settled..phases.range.1).collect();
    let block = frame.bins_of((used.len() as f64 * frame.step_s / 60.0).min(5.0), 1);
    let worked = |bin: &usize| load.ok[*bin] + WASTE * load.failed[*bin];
    let points: Vec<(f64, f64)> = used
        .chunks(block)
        .map(|bins| (mean(bins.iter().map(|bin| load.offered[*bin])), mean(bins.iter().map(worked))))
        .filter(|(offered, worked)| offered.is_finite() && worked.is_finite())
        .collect();
    let found = hinge::fit(&points)?;
    let bend = found.bend();
    let beyond: Vec<usize> = used.iter().copied().filter(|bin| load.offered[*bin] > 1.02 * bend).collect();
    if beyond.len() < 3 {
        return None;
    }
    let sum = |bins: &[usize], of: &[f64]| bins.iter().map(|bin| of[*bin]).filter(|x| x.is_finite()).sum::<f64>() * frame.step_s;
    if beyond[2] >= spike {
        // Only the spike went beyond. A spike's shortfall may be what waits; the climb itself must fall short at its top.
        let top: Vec<usize> = (from..spike).filter(|bin| load.offered[*bin] >= 0.98 * bend).collect();
        let (offered, ok) = (sum(&top, &load.offered), sum(&top, &load.ok));
        if top.len() < 3 || offered - ok < COUNTED * offered.sqrt() {
            return None;
        }
    }
    let share = sum(&beyond, &load.ok) / sum(&beyond, &load.offered);
    let resting = median(phases.low_bins().map(|bin| load.p95_ms[bin]));
    let after = median(beyond.iter().map(|bin| load.p95_ms[*bin]));
    if !(share < 0.95 * found.slope && after > 1.5 * resting) {
        return None;
    }
    let bends = bootstrap(&points, found);
    let (low, high) = (quantile_sorted(&bends, 0.025), quantile_sorted(&bends, 0.975));
    Some(Knee {
        rate_per_s: bend,
        low: bend - WIDEN * (bend - low).max(0.0) - MODEL * bend,
        high: bend + WIDEN * (high - bend).max(0.0) + MODEL * bend,
        basis: Basis::Measured,
    })
}

/// Bends of 100 resamplings, sorted: blocks of what is left over are put back on the fitted hinge. The generator is fixed:
/// one run has one answer.
fn bootstrap(points: &[(f64, f64)], fitted: Hinge) -> Vec<f64> {
    // What is left over grows with the rate as counts do.
    let left: Vec<f64> = points.iter().map(|(x, y)| (y - fitted.at(*x)) / fitted.at(*x).max(1e-9).sqrt()).collect();
    let block = (points.len() / 12).clamp(1, 6);
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    sorted((0..100).filter_map(|_| {
        let mut noise = Vec::with_capacity(points.len() + block);
        while noise.len() < points.len() {
            let from = next(left.len().saturating_sub(block) + 1);
            noise.extend_from_slice(&left[from..(from + block).min(left.len())]);
        }
        let again: Vec<(f64, f64)> =
            points.iter().zip(noise).map(|((x, _), left)| (*x, fitted.at(*x) + left * fitted.at(*x).sqrt())).collect();
        hinge::fit(&again).map(Hinge::bend)
    }))
}
