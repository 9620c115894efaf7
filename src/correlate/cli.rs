//! The command line of `correlate`.

use clap::Parser;
use std::path::PathBuf;

/// What gave way first in a load test, and at what rate.
#[derive(Clone, Debug, Parser)]
#[command(name = "correlate", version, about, after_help = AFTER)]
pub struct Options {
    /// The sampler's files: PREFIX.ticks.tsv, and PREFIX.waits.tsv where it does not stand beside it
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// A load driver's own log (repeat it for several logs of one run); recognised by its content
    #[arg(long, value_name = "FILE")]
    pub driver: Vec<PathBuf>,

    /// Print the verdict as JSON
    #[arg(long)]
    pub json: bool,

    /// When a step counts as felt: its 95th percentile over so many milliseconds (default: twice its value at rest)
    #[arg(long, value_name = "MS")]
    pub threshold: Option<f64>,

    /// What counts as left rest: so many milliseconds added to the mean request (default: a quarter of the resting median
    /// latency, 5 ms without a driver's log)
    #[arg(long, value_name = "MS")]
    pub floor: Option<f64>,
}

const AFTER: &str = "\
Exit codes: 0 answered · 1 a gate failed · 2 wrong usage · 3 an input file is unusable · 4 inconclusive, or too little data";
