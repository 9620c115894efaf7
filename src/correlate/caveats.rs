//! What a reader must know about the run: computed, typed, each with what to do about it.
//!
//! [`sampling`] looks at the ticks alone, [`load`] at the driver's log and the rest, [`held`] at the parts that could not be told, [`answer`] at what was answered. A
//! caveat that can change the name of the first mover, or could have given one where none is named, makes the answer
//! inconclusive.

mod answer;
mod held;
mod load;
mod sampling;

pub use answer::{of_answer, waits_empty, waits_untold};
pub use held::{growth_not_told, recovery_not_told, steps_not_told};
pub use load::{clocks_apart, log_of_another_time, no_load, of_load};
pub use sampling::{clocks_of_files_apart, clocks_of_files_unknown, of_sampling, several_silent, waits_as_pairs};

use super::verdict::Caveat;
use crate::ticks::Target;

/// Whether a target is the machine of the driver: its trouble is a caveat about the driver, never the first mover.
pub fn is_driver(target: &Target) -> bool {
    target.about.get("role").and_then(|role| role.as_str()) == Some("driver")
}

/// A caveat.
pub fn caveat(code: &'static str, text: impl Into<String>, todo: impl Into<String>, can_change_name: bool) -> Caveat {
    Caveat { code, text: text.into(), todo: todo.into(), can_change_name }
}
