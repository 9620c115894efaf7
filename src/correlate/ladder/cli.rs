//! The command line of `correlate ladder`.

use crate::correlate::cli::Log;
use clap::{ArgMatches, Parser};
use std::path::PathBuf;

/// Rungs of constant load: throughput and latency a rung, the knee, and the first gauge to leave its rest along them.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "correlate ladder",
    version,
    about,
    after_help = "\
Each rung is a PREFIX: PREFIX.ticks.tsv and PREFIX.waits.tsv of the sampler, and the driver's log or summary PREFIX.*
beside them; a folder is a rung of its own. Without ticks a rung is the driver's log alone.

  sampler --out rung-8 … -- wrk -c8 … > rung-8.wrk.txt     one rung; then 16, 32, …
  correlate ladder rung-*
  correlate ladder --arm single rung-s-* --arm spread rung-m-*"
)]
pub struct Options {
    /// The rungs' files, or folders
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// The rungs that follow, up to the next --arm, are one arm of a comparison
    #[arg(long, value_name = "NAME")]
    pub arm: Vec<String>,

    /// What is climbed: the name of a label of the sampler whose value is a number (default: such a label, else the driver's
    /// visitors or connections, else the number in the rungs' names)
    #[arg(long, value_name = "LABEL")]
    pub axis: Option<String>,

    /// What counts as left rest: so many milliseconds added to the mean request (default: a quarter of the median latency of
    /// the lowest rung)
    #[arg(long, value_name = "MS")]
    pub floor: Option<f64>,

    /// Print as JSON
    #[arg(long)]
    pub json: bool,

    /// How the drivers' logs are read.
    #[command(flatten)]
    pub log: Log,
}

/// The files of each arm: a file belongs to the last `--arm` before it; without one there is one arm without a name.
pub fn arms(matches: &ArgMatches) -> Vec<(String, Vec<PathBuf>)> {
    let places = |name: &str| matches.indices_of(name).into_iter().flatten().collect::<Vec<usize>>();
    let names = matches.get_many::<String>("arm").into_iter().flatten().cloned();
    let begins: Vec<(usize, String)> = places("arm").into_iter().zip(names).collect();
    let mut arms: Vec<(String, Vec<PathBuf>)> = Vec::new();
    let files = matches.get_many::<PathBuf>("files").into_iter().flatten();
    for (place, file) in places("files").into_iter().zip(files) {
        let name = begins.iter().rfind(|(begin, _)| *begin < place).map_or("", |(_, name)| name);
        match arms.iter_mut().find(|arm| arm.0 == name) {
            Some(arm) => arm.1.push(file.clone()),
            None => arms.push((name.to_owned(), vec![file.clone()])),
        }
    }
    arms
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn of(line: &str) -> Vec<(String, Vec<PathBuf>)> {
        arms(&Options::command().try_get_matches_from(line.split(' ')).unwrap())
    }

    #[test]
    fn a_file_belongs_to_the_arm_named_before_it() {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(of("correlate a b"), [(String::new(), paths(&["a", "b"]))]);
        assert_eq!(
            of("correlate --arm one a b --json --arm two c"),
            [("one".into(), paths(&["a", "b"])), ("two".into(), paths(&["c"]))]
        );
    }
}
