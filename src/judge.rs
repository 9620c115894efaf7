//! Pure arithmetic that both programs share: from raw cells to series, from series to "left its rest, here".
//!
//! Nothing in here reads a file or knows a driver's format or a report. The order of use:
//! [`series`] turns counters into rates over the real read times, [`grid`] keeps them on bins of one width however long the
//! run is, [`guess`] gives undeclared gauges a class, [`currency`] turns every class into waiting per request, [`rest`]
//! learns what the load explains, [`depart`] finds the departure that stays, [`recur`] the one that comes again and again, and
//! [`onset`] says when it began. [`trend`] is for what should stand still and grows, [`lag`] tells by how much two clocks
//! differ, [`demand`] how what is busy grows with the load.

pub mod change;
pub mod currency;
pub mod demand;
pub mod depart;
pub mod gate;
pub mod grid;
pub mod guess;
pub mod hinge;
pub mod lag;
pub mod onset;
pub mod recur;
pub mod rest;
pub mod robust;
pub mod segment;
pub mod series;
pub mod trend;
