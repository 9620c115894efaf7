//! `correlate ladder rung-*`: rungs of constant load, one after the other, instead of a ramp.
//!
//! A closed loop (wrk, ab, so many visitors or connections that wait for their answers) has no offered rate that could be
//! the axis; the number of visitors is. Each rung is a PREFIX with its ticks, its waits and the driver's log or summary
//! beside it; the lowest rungs are the rest. [`rungs`] groups and reads the files, [`axis`] finds what was climbed,
//! [`judge`] who left the rest along the rungs, [`knee`] where throughput stopped following, [`report`] prints it, arm
//! beside arm.

mod axis;
pub mod cli;
mod judge;
mod knee;
mod report;
mod rungs;
mod told;

use crate::exit;
use clap::{CommandFactory, FromArgMatches};
use std::ffi::OsString;
use std::io::Write;

/// Runs `correlate ladder` with these arguments (the first is the program's name, without the word `ladder`).
pub fn run(args: Vec<OsString>) -> u8 {
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr().lock());
    let parsed = cli::Options::command().try_get_matches_from(args).and_then(|matches| {
        let options = cli::Options::from_arg_matches(&matches)?;
        Ok((options, cli::arms(&matches)))
    });
    let (options, arms) = match parsed {
        Ok(parsed) => parsed,
        Err(why) => {
            let _ = why.print();
            return if why.use_stderr() { exit::USAGE } else { exit::DONE };
        }
    };
    let mut read = Vec::new();
    for (name, files) in arms {
        match rungs::read(&files, &options) {
            Ok(rungs) => read.push((name, rungs)),
            Err(why) => {
                let _ = writeln!(err, "correlate: {why}");
                return exit::UNUSABLE_INPUT;
            }
        }
    }
    let axis = match axis::lay(read.iter_mut().map(|(_, arm)| arm), options.axis.as_deref()) {
        Ok(axis) => axis,
        Err(why) => {
            let _ = writeln!(err, "correlate: {why}");
            return exit::USAGE;
        }
    };
    let arms = read.into_iter().map(|(name, arm)| judge::arm(name, arm, &axis, options.floor)).collect();
    let ladder = told::Ladder::of(axis, arms);
    let text = if options.json { report::json(&ladder) } else { report::text(&ladder) };
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    ladder.exit_code()
}
