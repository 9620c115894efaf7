//! `correlate require requirements.toml --history runs.tsv`: whether the runs that a release needs are there, made on an
//! honest staging.
//!
//! ```toml
//! version = "1.4.2"               # under test; or --label version=1.4.2
//!
//! [[run]]                         # one run of this version must have all of it; each key may be left out
//! name = "soak"
//! duration = "4h"                 # so long at least
//! rate = "20000/s"                # and so much sent at least, in its least quarter too
//! phase = "soak"                  # only parts of this name, as the verdict's phases and --phase have them
//! verdict = ["qualified"]         # the default
//! steps = ["seat map", "hold"]    # each was asked for
//! labels = { mix = "70:25:5" }
//!
//! [production.mysql]              # what the run's header must say of the instance; or profile = "production.toml"
//! version = "9.7"                 # 9.7.4 as well
//! max_connections = 400           # exactly
//!
//! [production.shop]               # bytes, and what a query counted: within 5 %
//! seats = 20_000_000              # also ">= 18_000_000" and "<= 22_000_000"
//! ```
//!
//! **Question.** May this version be released, by what was run? **Method.** Each `[[run]]` is looked for among the lines of
//! the history with the version's labels; where none has everything, the nearest one is told with what it lacks. A rate is
//! held by neighbouring parts together: a soak with a spike in it is one stretch. Lengths and rates may fall short by 1 %, as
//! much as telling the ends of a part costs, and rates by what counting arrivals costs. What a line does not carry (an older
//! version wrote it, no driver's log, a target that was not read) is unknown, and never a pass. What is left is told by codes:
//! `require_run`, `_phase`, `_duration`, `_rate`, `_verdict` and `_step` of a run, `require_target`, `_version`, `_size` (the
//! machine), `_rows` (a query's columns) and `_capacity` (every other key) of its staging. **How it fails.** It knows
//! what the sampler read: a staging that differs in what nobody asked about is honest here.

mod file;
mod judge;
mod profile;
mod report;

use super::cli;
use super::history::{self, Line};
use crate::exit;
use crate::text::InputError;
use clap::Parser;
use file::Requirements;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;

/// Whether the runs that a release needs are in a file of runs, made on a staging like production.
#[derive(Clone, Debug, Parser)]
#[command(name = "correlate require", after_help = AFTER_HELP)]
struct Require {
    /// The requirements
    requirements: PathBuf,
    /// The file of runs that `correlate --history` wrote
    #[arg(long, value_name = "FILE")]
    history: PathBuf,
    /// Only runs with this label, such as version=1.4.2, the version under test (repeat it)
    #[arg(long, value_name = "NAME=VALUE", value_parser = cli::label)]
    label: Vec<(String, String)>,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = r#"Requirements:
  version = "1.4.2"            the version under test, or --label version=1.4.2

  [[run]]                      a run that must be there; each key may be left out
  name = "soak"
  duration = "4h"              at least
  rate = "20000/s"             at least, held for so long
  phase = "soak"               in parts of this name only: soak, plateau, spike, one of your own
  verdict = ["qualified"]      the default
  steps = ["seat map", "hold"]
  labels = { mix = "70:25:5" }

  [production.mysql]           what the runs' headers must say of an instance, or profile = "production.toml"
  version = "9.7"              9.7.4 as well
  max_connections = 400        exactly; bytes and the columns of a query within 5 %, or ">= 64GiB", "<= 64GiB"

Exit codes: 0 covered · 1 something is missing, differs or is unknown · 2 wrong usage or requirements · 3 the history is unusable"#;

/// Something that keeps a requirement from being covered.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Finding {
    /// Its kind, for programs.
    pub code: &'static str,
    /// The `[[run]]`; `None` for the staging.
    pub need: Option<String>,
    /// Whether the history does not carry what would tell it.
    pub unknown: bool,
    /// In words.
    pub text: String,
    /// Where it is required.
    pub file: String,
    /// The line there.
    pub line: usize,
    /// The run of which it is said.
    pub run_unix_ms: Option<i64>,
}

/// Runs the subcommand; the first argument is its name.
pub fn run(args: impl IntoIterator<Item = OsString>, out: &mut impl std::io::Write, err: &mut impl std::io::Write) -> u8 {
    let options = match Require::try_parse_from(args) {
        Ok(options) => options,
        Err(why) => {
            let _ = why.print();
            return if why.use_stderr() { exit::USAGE } else { exit::DONE };
        }
    };
    let mut fail = |why: InputError, code: u8| {
        let _ = writeln!(err, "correlate require: {why}");
        code
    };
    let required = match file::read(&options.requirements) {
        Ok(required) => required,
        Err(why) => return fail(why, exit::USAGE),
    };
    let (lines, unreadable) = match history::read(&options.history) {
        Ok(read) => read,
        Err(why) => return fail(why, exit::UNUSABLE_INPUT),
    };
    let labels = match labels(&options, &required, &lines) {
        Ok(labels) => labels,
        Err(why) => return fail(why, exit::USAGE),
    };
    let coverage = judge::judge(&required, labels, &lines, unreadable);
    let text = if options.json { report::json(&coverage) } else { report::text(&coverage, &options.history) };
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if coverage.covered() { exit::DONE } else { exit::GATE_FAILED }
}

/// What tells the runs of the version under test. Without it the latest runs of whatever version would pass.
fn labels(options: &Require, required: &Requirements, lines: &[Line]) -> Result<BTreeMap<String, String>, InputError> {
    let mut labels = BTreeMap::new();
    labels.extend(required.version.iter().map(|version| ("version".to_owned(), version.clone())));
    labels.extend(options.label.iter().cloned());
    if labels.is_empty() {
        let known: BTreeSet<&str> = lines.iter().filter_map(|line| line.version.as_deref()).collect();
        let known: Vec<&str> = known.into_iter().collect();
        let known = if known.is_empty() { "no run has one".to_owned() } else { format!("the runs have {}", known.join(", ")) };
        return Err(InputError::new(&options.requirements, "names no version under test, and no --label does")
            .hint(format!("give --label version=…; {known}")));
    }
    Ok(labels)
}
