//! `correlate`: reads the sampler's files and a driver's log after the run, and names the gauge that left its resting value
//! first, at which rate.

pub mod align;
pub mod bench;
pub mod blame;
pub mod caveats;
pub mod cli;
pub mod clocks;
pub mod explain;
pub mod floors;
pub mod gather;
pub mod growth;
pub mod input;
pub mod join;
pub mod knee;
pub mod ladder;
pub mod movers;
pub mod phases;
pub mod recovery;
pub mod report;
pub mod session;
pub mod steps;
pub mod symptoms;
pub mod tell;
pub mod verdict;

use crate::{driver, exit};
use clap::Parser;
use std::ffi::OsString;
use std::io::Write;

/// Runs the program with these arguments (the first is its name) and gives its exit code.
pub fn run<T: Into<OsString> + Clone>(args: impl IntoIterator<Item = T>) -> u8 {
    let mut args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    if args.get(1).is_some_and(|word| word == "ladder") {
        args.remove(1);
        return ladder::run(args);
    }
    let options = match cli::Options::try_parse_from(args) {
        Ok(options) => options,
        Err(why) => {
            // clap prints help to stdout and errors to stderr; a broken pipe is no error.
            let _ = why.print();
            return if why.use_stderr() { exit::USAGE } else { exit::DONE };
        }
    };
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr().lock());
    if options.timeline {
        return match driver::read(&options.driver, &options.log.options(None)) {
            Ok(timeline) => {
                let _ = timeline.write(&mut out);
                exit::DONE
            }
            Err(why) => {
                let _ = writeln!(err, "correlate: {why}");
                exit::UNUSABLE_INPUT
            }
        };
    }
    let session = match session::Session::read(&options) {
        Ok(session) => session,
        Err(why) => {
            let _ = writeln!(err, "correlate: {why}");
            return exit::UNUSABLE_INPUT;
        }
    };
    if let Some(gauge) = &options.explain {
        return match session.explain(&options, gauge) {
            Ok(text) => {
                let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
                exit::DONE
            }
            Err(why) => {
                let _ = writeln!(err, "correlate: {why}");
                exit::USAGE
            }
        };
    }
    let verdict = session.verdict(&options);
    let text = if options.json { report::json::render(&verdict) } else { report::text::render(&verdict) };
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    verdict.exit_code()
}
