//! What gates are judged on, after a run and while it goes on: the columns of the ticks and the requests of a driver's log.

mod columns;
pub mod felt;
