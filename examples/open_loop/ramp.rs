//! The usual course: a flat start at a low rate (the rest), then a straight climb.

use super::course::{Course, Leg};
use std::time::Duration;

/// A flat start and a straight climb, in requests per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    /// The rate of the flat start, and where the climb begins. More than 0.
    pub from: f64,
    /// How long the flat start lasts.
    pub rest: Duration,
    /// Where the climb ends. At least `from`.
    pub to: f64,
    /// How long the climb lasts.
    pub climb: Duration,
}

impl Ramp {
    /// As a course to follow.
    pub fn course(self) -> Course {
        Course(vec![
            Leg { from: self.from, to: self.from, lasts: self.rest },
            Leg { from: self.from, to: self.to, lasts: self.climb },
        ])
    }
}
