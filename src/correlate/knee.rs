//! The knee: the rate that the system can do.
//!
//! **Question.** Up to which offered rate does goodput follow? **Method.** A hinge `min(b·λ, C)` on goodput
//! ([`crate::judge::hinge`]), one point a rung or a few seconds, the spike and the cool-down left out. It exists only if, beyond it, goodput is
//! under 95 % of what was offered and the latency of the ok ones is over 1.5 times its value at low load, both. The interval
//! is a block bootstrap of the points (Künsch 1989). **How it fails.** Without a driver's log there is no offered rate and
//! no knee; a closed loop never offers more than is done.

use super::align::{Basis, Load};
use super::gather::Frame;
use super::phases::Phases;
use super::verdict::Knee;
use crate::judge::hinge;
use crate::judge::robust::{mean, median, quantile, quantile_sorted, sorted};
use crate::timeline::Offered;

/// How much wider than the bootstrap says the interval is printed.
const WIDEN: f64 = 1.5;

/// Finds the knee; `None` where goodput followed to the end or where it cannot be told.
pub fn find(frame: &Frame, load: &Load, phases: &Phases) -> Option<Knee> {
    if load.basis != Basis::Measured || matches!(load.kind, Offered::Achieved | Offered::Unknown) {
        return None;
    }
    let from = phases.loaded.iter().position(|on| *on)?;
    let spike = phases.parts.iter().find(|part| part.name == "spike").map(|part| part.bins.0);
    let to = spike.unwrap_or(phases.range.1);
    let block = frame.bins_of(((to - from) as f64 * frame.step_s / 60.0).min(5.0), 1);
    let points: Vec<(f64, f64)> = (from..to)
        .step_by(block)
        .map(|bin| {
            let over = bin..(bin + block).min(to);
            (mean(load.offered[over.clone()].iter().copied()), mean(load.ok[over].iter().copied()))
        })
        .filter(|(offered, ok)| offered.is_finite() && ok.is_finite())
        .collect();
    let found = hinge::fit(&points)?;
    let bend = found.bend();
    let beyond: Vec<usize> = (from..to).filter(|bin| load.offered[*bin] > 1.02 * bend).collect();
    if beyond.len() < 3 {
        return None;
    }
    let share = mean(beyond.iter().map(|bin| load.ok[*bin])) / mean(beyond.iter().map(|bin| load.offered[*bin]));
    let resting = quantile(phases.low_bins().map(|bin| load.p95_ms[bin]), 0.5);
    let after = median(beyond.iter().map(|bin| load.p95_ms[*bin]));
    if !(share < 0.95 * found.slope.min(1.0) && after > 1.5 * resting) {
        return None;
    }
    let bends = bootstrap(&points);
    let (low, high) = (quantile_sorted(&bends, 0.025), quantile_sorted(&bends, 0.975));
    Some(Knee {
        rate_per_s: bend,
        low: bend - WIDEN * (bend - low).max(0.0),
        high: bend + WIDEN * (high - bend).max(0.0),
        basis: Basis::Measured,
    })
}

/// Bends of 100 resamplings in blocks of points, sorted. The generator is fixed: one run has one answer.
fn bootstrap(points: &[(f64, f64)]) -> Vec<f64> {
    let block = (points.len() / 12).max(2);
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    sorted((0..100).filter_map(|_| {
        let mut sample = Vec::with_capacity(points.len() + block);
        while sample.len() < points.len() {
            let at = next(points.len().saturating_sub(block) + 1);
            sample.extend_from_slice(&points[at..(at + block).min(points.len())]);
        }
        hinge::fit(&sample).map(hinge::Hinge::bend)
    }))
}
