//! What is told of a ladder. Fields stand in the order of the JSON.

use crate::correlate::align::Basis;
use crate::correlate::verdict::{Answer, Aside, Between, Caveat, WaitShare};
use serde::Serialize;

/// Arms of rungs, and what they say.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ladder {
    /// The version.
    pub whatgives: &'static str,
    /// What was climbed.
    pub axis: Axis,
    /// One, or several side by side.
    pub arms: Vec<Arm>,
}

/// What was climbed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Axis {
    /// Visitors, connections, bookers.
    pub unit: String,
    /// Where it was found.
    pub from: &'static str,
}

/// Rungs of one arm.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Arm {
    /// As it was given; empty where there is one only.
    pub name: String,
    /// The answer; null without any ticks.
    pub verdict: Option<Answer>,
    /// The first to leave its rest along the rungs.
    pub first: Option<Mover>,
    /// All that did, in their order.
    pub movers: Vec<Mover>,
    /// Who waited on what, from the first one's rung on.
    pub waits: Option<Vec<WaitShare>>,
    /// Where throughput stopped following.
    pub knee: Option<Knee>,
    /// From the lowest to the highest.
    pub rungs: Vec<Step>,
    /// What counted as left rest, milliseconds added to the mean request.
    pub floor_ms: Option<f64>,
    /// How many gauges were judged.
    pub judged: usize,
    /// Moved, but not with the load.
    pub not_with_load: Vec<Aside>,
    /// Not judged, and why.
    pub not_judged: Vec<Aside>,
    /// What the reader must know.
    pub caveats: Vec<Caveat>,
}

/// One rung.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Its PREFIX.
    pub name: String,
    /// Where it stands on the axis.
    pub at: f64,
    /// Whether it is rest.
    pub rest: bool,
    /// Completed, per second.
    pub rate_per_s: Option<f64>,
    /// Ended well, per second.
    pub ok_per_s: Option<f64>,
    /// The share that failed.
    pub failed: Option<f64>,
    /// Median latency.
    pub p50_ms: Option<f64>,
    /// 95th percentile.
    pub p95_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// Whether the driver counted the rate.
    pub basis: Basis,
    /// Why the rung could not be used.
    pub unusable: Option<String>,
}

/// A gauge that left its rest along the rungs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mover {
    /// The column.
    pub gauge: String,
    /// The instance.
    pub target: String,
    /// Its class.
    pub class: String,
    /// Its value at rest, in its own unit.
    pub resting: f64,
    /// Where on the axis it left.
    pub at: Between,
    /// The first rung on which it had.
    pub rung: String,
    /// Its value there, in its own unit.
    pub value: f64,
    /// Gauges whose order against this one cannot be told.
    pub tied_with: Vec<String>,
    /// What it measures the waiting for.
    pub resource: String,
    /// Measured, or inferred.
    pub basis: Basis,
    /// What kind of evidence it is.
    pub evidence: String,
    /// What decided among the tied ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
}

/// Where throughput stopped following the axis.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Knee {
    /// On the axis.
    pub at: Between,
    /// The highest goodput of any rung.
    pub rate_per_s: f64,
    /// The goodput of the highest rung.
    pub last_per_s: f64,
    /// Measured, or inferred.
    pub basis: Basis,
}

impl Ladder {
    /// Of its arms.
    pub fn of(axis: Axis, arms: Vec<Arm>) -> Self {
        Self { whatgives: env!("CARGO_PKG_VERSION"), axis, arms }
    }

    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        let open = self.arms.iter().any(|arm| arm.verdict == Some(Answer::Inconclusive));
        if open { crate::exit::INCONCLUSIVE } else { crate::exit::DONE }
    }
}
