//! `correlate`: reads the sampler's files and a driver's log after the run, and names the gauge that left its resting value
//! first, at which rate.

pub mod align;
pub mod bench;
pub mod blame;
pub mod caveats;
pub mod cli;
pub mod clocks;
pub mod compare;
pub mod explain;
pub mod floors;
pub mod forecast;
pub mod gates;
pub mod gather;
pub mod growth;
pub mod history;
pub mod input;
pub mod join;
pub mod knee;
pub mod ladder;
pub mod movers;
pub mod phases;
pub mod plot;
pub mod recovery;
pub mod report;
pub mod require;
pub mod sent;
pub mod session;
pub mod steps;
pub mod symptoms;
pub mod tell;
pub mod verdict;

use crate::{driver, exit};
use clap::Parser;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;

/// Runs the program with these arguments (the first is its name) and gives its exit code.
pub fn run<T: Into<OsString> + Clone>(args: impl IntoIterator<Item = T>) -> u8 {
    let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    if let Some(code) = subcommand(&args) {
        return code;
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
    let listed = match gates::read(&options.gates, &options.gate) {
        Ok(listed) => listed,
        Err(why) => {
            let _ = writeln!(err, "correlate: {why:#}");
            return exit::USAGE;
        }
    };
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
    let mut verdict = match session.verdict(&options, &listed) {
        Ok(verdict) => verdict,
        Err(why) => {
            let _ = writeln!(err, "correlate: {why}");
            return exit::USAGE;
        }
    };
    if let Some(path) = &options.history
        && let Err(why) = session.record(path, &mut verdict)
    {
        let _ = writeln!(err, "correlate: {why}");
        return exit::UNUSABLE_INPUT;
    }
    if let Err(why) = write_files(&session, &options, &verdict) {
        let _ = writeln!(err, "correlate: {why}");
        return exit::USAGE;
    }
    let text = if options.json { report::json::render(&verdict) } else { report::text::render(&verdict) };
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    verdict.exit_code()
}

/// What the first word asks for, where it is no file.
fn subcommand(args: &[OsString]) -> Option<u8> {
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr().lock());
    let rest = args.get(1..)?.iter().cloned();
    match args.get(1)?.to_str()? {
        "ladder" => Some({
            let mut own = args.to_vec();
            own.remove(1);
            ladder::run(own)
        }),
        "compare" => Some(compare::run(rest, &mut out, &mut err)),
        "history" => Some(history::show::run(rest, &mut out, &mut err)),
        "require" => Some(require::run(rest, &mut out, &mut err)),
        _ => None,
    }
}

/// The reports that go into files of their own.
fn write_files(session: &session::Session, options: &cli::Options, verdict: &verdict::Verdict) -> Result<(), String> {
    let write = |path: &Path, text: String| {
        std::fs::write(path, text).map_err(|why| format!("{} cannot be written: {why}", path.display()))
    };
    if let Some(path) = &options.junit {
        write(path, report::junit::render(verdict))?;
    }
    if options.markdown.is_none() && options.report.is_none() {
        return Ok(());
    }
    let plot = session.plot(options, verdict);
    if let Some(path) = &options.markdown {
        let picture = path.with_extension("svg");
        let name = picture.file_name().unwrap_or_default().to_string_lossy().into_owned();
        write(path, report::markdown::render(verdict, &name))?;
        write(&picture, report::markdown::picture(verdict, &plot))?;
    }
    if let Some(path) = &options.report {
        write(path, report::html::render(verdict, &plot))?;
    }
    Ok(())
}
