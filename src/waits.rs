//! PREFIX.waits.tsv: one row per waiter and read, only while something waits. This page is the format.
//!
//! ```text
//! #whatgives waits 1
//! #statement  <id>  <text>                                  literals replaced by `?`, before an id's first use
//! tick  unix_ms  target  kind  object  index  row  mode  waiter  waited_ms  statement  blocker  blocker_state  blocker_statement
//! ```
//!
//! An unknown cell is `-`, never empty. `blocker` is the root: the session at the head of the chain. `row` is user data:
//! numbers are written as they are, a text key as a keyed hash that is the same for the same key within one run. Past the
//! limit of rows a tick the rest is one row per object with its count in `waiter` as `+N`.

mod read;
mod write;

pub use read::{WaitRow, Waits, read};
pub use write::Writer;

/// The first line of the file.
pub const FIRST_LINE: &str = "#whatgives waits 1";

const COLUMNS: [&str; 14] = [
    "tick",
    "unix_ms",
    "target",
    "kind",
    "object",
    "index",
    "row",
    "mode",
    "waiter",
    "waited_ms",
    "statement",
    "blocker",
    "blocker_state",
    "blocker_statement",
];

#[cfg(test)]
mod tests;
