//! Gates: what must hold of a run, written as one line.
//!
//! ```text
//! postgres.sessions_used / capacity <= 0.75 for 15s      a gauge, or its share of its capacity or of another column
//! p95(checkout) < 800ms over 60s during plateau          a percentile of the ok ones, of a step or of all
//! failed(checkout) <= 1% over 30s                        shares of what ended: failed, refused; of what was due: dropped
//! goodput >= 300/s during plateau                        rates: goodput, completed, offered
//! reached >= 95%                                         sent, of what was planned
//! share(hold, checkout) >= 0.3    count(pay) >= 1        the mix, and steps that must occur
//! knee >= 3000/s   recovery <= 30s   first not in mysql.*   growth(app.heap_bytes) <= 5/min
//! ```
//!
//! `over` slides a window of that length; without it a percentile, share or rate is of the whole run, or of the phase after
//! `during`. `for` lets a gate break only when it was broken for so long without a pause. A gauge is compared as it was read,
//! a counter as its rate per second.

pub mod gauges;
pub mod held;
mod parse;

use std::fmt;
use std::str::FromStr;

/// One gate.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// As it was written.
    pub text: String,
    /// What is compared.
    pub measure: Measure,
    /// How; what must hold.
    pub test: Test,
    /// For how long it must be broken, seconds.
    pub for_s: f64,
    /// How long a sliding window is, seconds.
    pub over_s: Option<f64>,
    /// In which phase.
    pub during: Option<String>,
}

/// What must hold of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// Less than the limit.
    Below(f64),
    /// Less, or the limit itself.
    AtMost(f64),
    /// More than the limit.
    Above(f64),
    /// More, or the limit itself.
    AtLeast(f64),
    /// A name that fits one of these patterns.
    In(Vec<String>),
    /// A name that fits none of them.
    NotIn(Vec<String>),
}

/// What is compared.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// A column of the ticks, whole or as a share.
    Gauge {
        /// The column.
        column: String,
        /// Of what.
        of: Option<Of>,
    },
    /// A percentile of the ok ones' latency in milliseconds.
    Latency {
        /// 0 to 1; 1 is the longest.
        quantile: f64,
        /// The step; all without.
        step: Option<String>,
    },
    /// Failed, of those that ended.
    Failed(Option<String>),
    /// Refused, of those that ended.
    Refused(Option<String>),
    /// Never sent, of those that were due.
    Dropped,
    /// Ended well, per second.
    Goodput(Option<String>),
    /// Ended, per second.
    Completed(Option<String>),
    /// Was to be sent, per second.
    Offered,
    /// Sent, of what was to be sent.
    Reached,
    /// Requests of these steps, of all.
    Share(Vec<String>),
    /// Requests of a step.
    Count(String),
    /// The knee, per second.
    Knee,
    /// Seconds until everything was back after the spike.
    Recovery,
    /// Growth of a gauge on a plateau, per minute.
    Growth(String),
    /// The name of the first mover.
    First,
}

/// What a gauge is a share of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Of {
    /// The capacity that its `#gauge` line names.
    Capacity,
    /// Another column.
    Column(String),
}

impl Measure {
    /// The stable code of a report.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Gauge { of: None, .. } => "gate_gauge",
            Self::Gauge { .. } => "gate_capacity",
            Self::Latency { .. } => "gate_latency",
            Self::Failed(_) => "gate_failed",
            Self::Refused(_) => "gate_refused",
            Self::Dropped => "gate_dropped",
            Self::Goodput(_) => "gate_goodput",
            Self::Completed(_) => "gate_completed",
            Self::Offered => "gate_offered",
            Self::Reached => "gate_reached",
            Self::Share(_) => "gate_share",
            Self::Count(_) => "gate_count",
            Self::Knee => "gate_knee",
            Self::Recovery => "gate_recovery",
            Self::Growth(_) => "gate_growth",
            Self::First => "gate_first",
        }
    }

    /// Whether it is something that users feel; the others are about what is used up inside.
    pub fn is_felt(&self) -> bool {
        !matches!(self, Self::Gauge { .. } | Self::Growth(_) | Self::First)
    }
}

impl Test {
    /// Whether the value passes. A name never passes a test of numbers, and a number none of names: NaN stands for it.
    pub fn holds(&self, value: f64) -> bool {
        match self {
            Self::Below(limit) => value < *limit,
            Self::AtMost(limit) => value <= *limit,
            Self::Above(limit) => value > *limit,
            Self::AtLeast(limit) => value >= *limit,
            Self::In(_) | Self::NotIn(_) => false,
        }
    }

    /// Whether a name passes.
    pub fn holds_name(&self, name: &str) -> bool {
        match self {
            Self::In(patterns) => patterns.iter().any(|pattern| fits(pattern, name)),
            Self::NotIn(patterns) => !patterns.iter().any(|pattern| fits(pattern, name)),
            Self::Below(_) | Self::AtMost(_) | Self::Above(_) | Self::AtLeast(_) => false,
        }
    }

    /// The worse of two values: the one further on the broken side.
    pub fn worse(&self, a: f64, b: f64) -> f64 {
        match self {
            Self::Above(_) | Self::AtLeast(_) => a.min(b),
            _ => a.max(b),
        }
    }
}

/// Whether a name fits a pattern with at most one `*`.
pub fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        Some((begin, end)) => name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end),
        None => pattern == name,
    }
}

/// A gate that cannot be understood: what was expected and what stands there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the gate {gate:?}: {what}{}", said(.hint.as_deref()))]
pub struct GateError {
    /// As it was written.
    pub gate: String,
    /// What is wrong.
    pub what: String,
    /// What may help.
    pub hint: Option<String>,
}

fn said(text: Option<&str>) -> String {
    text.map_or(String::new(), |text| format!("\nhint: {text}"))
}

impl Gate {
    /// The gate as the file of one machine has its columns: without the machine's name in front of them.
    #[must_use]
    pub fn of_machine(&self, host: &str) -> Self {
        let own = |column: &str| column.strip_prefix(host).and_then(|rest| rest.strip_prefix('/')).unwrap_or(column).to_owned();
        let measure = match &self.measure {
            Measure::Gauge { column, of } => Measure::Gauge {
                column: own(column),
                of: of.as_ref().map(|of| match of {
                    Of::Capacity => Of::Capacity,
                    Of::Column(column) => Of::Column(own(column)),
                }),
            },
            other => other.clone(),
        };
        Self { measure, ..self.clone() }
    }

    /// An error about this gate.
    pub fn error(&self, what: impl Into<String>) -> GateError {
        GateError { gate: self.text.clone(), what: what.into(), hint: None }
    }
}

impl GateError {
    /// Adds what may help.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Self, GateError> {
        parse::gate(text).map_err(|what| GateError { gate: text.to_owned(), what, hint: Some(parse::HINT.to_owned()) })
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
