//! The command line of `correlate`.

use super::phases::Given;
use crate::driver;
use crate::judge::gate::Gate;
use clap::{Args, Parser};
use std::path::PathBuf;

/// What gave way first in a load test, and at what rate.
#[derive(Clone, Debug, Parser)]
#[command(name = "correlate", version, about, after_help = after_help())]
pub struct Options {
    /// The sampler's files: PREFIX.ticks.tsv, and PREFIX.waits.tsv where it does not stand beside it; of one run with a sampler
    /// on every machine all of them. Gzips are read as well
    #[arg(required_unless_present = "timeline", value_name = "FILE")]
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

    /// A part of the run as you know it, in seconds or durations since its start: plateau=5m..15m, spike=900..960 (repeat it);
    /// rest, warm-up, climb, rung, plateau, soak, spike and cool-down are judged as such, other names are only told
    #[arg(long, value_name = "NAME=START..END")]
    pub phase: Vec<Given>,

    /// Say of one gauge why it was or was not a mover, with everything that was tested as a table for plotting
    #[arg(long, value_name = "GAUGE")]
    pub explain: Option<String>,

    /// What must hold of the run, such as 'p95(checkout) < 800ms over 60s', 'host.load / capacity <= 0.75 for 15s' or
    /// 'knee >= 3000/s' (repeat it); one that broke is exit code 1
    #[arg(long, value_name = "GATE")]
    pub gate: Vec<Gate>,

    /// A file with such gates: a table [gates] of names and gates
    #[arg(long, value_name = "FILE")]
    pub gates: Vec<PathBuf>,

    /// What is full first at this rate, and how many instances carry it: 28000 or 28000/s; by lines through what grew with the
    /// load, so inferred
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub forecast: Option<f64>,

    /// The share of every capacity that a forecast leaves free
    #[arg(long, value_name = "SHARE", default_value = "20%", value_parser = share, requires = "forecast")]
    pub headroom: f64,

    /// Append the run to this file of runs and compare it with the earlier ones of its scenario: a knee that fell is exit
    /// code 1
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,

    /// A label of the run beside those of the sampler, such as version=1.4.2, the version under test (repeat it)
    #[arg(long, value_name = "NAME=VALUE", value_parser = label)]
    pub label: Vec<(String, String)>,

    /// Write the answer as a page that stands alone
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// Write the answer as Markdown for a pull request, with a chart of the same name, .svg, beside it
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,

    /// Write the gates as a report of tests (`JUnit`), each a case
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Print the driver's log in the neutral form and judge nothing
    #[arg(long, requires = "driver", help_heading = "Driver's log")]
    pub timeline: bool,

    /// How the driver's log is read.
    #[command(flatten)]
    pub log: Log,
}

/// How the driver's log is read.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Driver's log")]
pub struct Log {
    /// The format of the log, where it is not told rightly from its content; see the list below
    #[arg(long, value_name = "NAME")]
    pub driver_format: Option<String>,

    /// When the driver was started (Unix seconds or milliseconds), for a log with times since its own start only; a driver
    /// started by the sampler needs none. FILE=UNIX for one of several logs: the rungs of a ladder
    #[arg(long, value_name = "[FILE=]UNIX", value_parser = start)]
    pub driver_start: Vec<Start>,

    /// The zone of local stamps: +02:00, UTC or local
    #[arg(long, value_name = "ZONE")]
    pub driver_zone: Option<driver::Zone>,

    /// What names a step: another field of the log, or a pattern such as "{method} {name}"
    #[arg(long, value_name = "FIELD")]
    pub step_by: Option<driver::StepBy>,

    /// What became of requests with this code or text: 409=refused, 5xx=failed, "sold out=refused" (repeat it)
    #[arg(long, value_name = "RULE")]
    pub outcome: Vec<driver::Rule>,

    /// What should have been sent: 100:3000/5m,3000/10m,6000/1m
    #[arg(long, value_name = "PLAN")]
    pub plan: Option<driver::Plan>,

    /// The planned shares of the steps: "seat map=70,hold=25,pay=5"
    #[arg(long, value_name = "SHARES")]
    pub mix: Option<driver::Mix>,

    /// The columns of a CSV of no format in the list: start=ts,time=ms:took,code=status,step=route
    #[arg(long, value_name = "COLUMNS")]
    pub driver_columns: Option<driver::Columns>,

    /// The driver paused on purpose: a stretch without any request inside the run is no hole in its log
    #[arg(long)]
    pub driver_holes: bool,
}

impl Log {
    /// The options of the log's reader; a driver that the sampler started needs no `--driver-start`.
    pub fn options(&self, child_start_unix_ms: Option<i64>) -> driver::Options {
        driver::Options {
            format: self.driver_format.clone(),
            start_unix_ms: self
                .driver_start
                .iter()
                .rfind(|start| start.file.is_none())
                .map(|start| start.unix_ms)
                .or(child_start_unix_ms),
            starts: self.driver_start.iter().filter_map(|start| Some((start.file.clone()?, start.unix_ms))).collect(),
            zone: self.driver_zone.clone(),
            step_by: self.step_by.clone().unwrap_or_default(),
            outcomes: self.outcome.clone(),
            plan: self.plan.clone(),
            mix: self.mix.clone(),
            columns: self.driver_columns.clone(),
            allow_holes: self.driver_holes,
        }
    }
}

/// A rate above 0.
pub fn rate(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches("/s").replace([',', '_'], "");
    match number.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate.is_finite() => Ok(rate),
        _ => Err(format!("expected a rate above 0 such as 28000/s, found {text:?}")),
    }
}

fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = text.trim().strip_suffix('%').map_or((text.trim(), 1.0), |number| (number, 100.0));
    match number.parse::<f64>() {
        Ok(value) if (0.0..1.0).contains(&(value / scale)) => Ok(value / scale),
        _ => Err(format!("expected a share from 0 to under 1 such as 20%, found {text:?}")),
    }
}

/// A label of a run.
pub fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err(format!("expected NAME=VALUE, found {text:?}")),
    }
}

/// When a driver was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// Its log; every log without a clock where none is named.
    pub file: Option<PathBuf>,
    /// Unix milliseconds.
    pub unix_ms: i64,
}

fn start(text: &str) -> Result<Start, String> {
    match text.rsplit_once('=') {
        Some((file, time)) => Ok(Start { file: Some(PathBuf::from(file)), unix_ms: unix_ms(time)? }),
        None => Ok(Start { file: None, unix_ms: unix_ms(text)? }),
    }
}

/// Unix time in seconds or milliseconds: nobody tests the year 5138 or January 1970.
fn unix_ms(text: &str) -> Result<i64, String> {
    let value: f64 = text.trim().parse().map_err(|_| format!("not a Unix time: {text:?}; for example $(date +%s)"))?;
    if !(1e9..1e14).contains(&value) {
        return Err(format!("not a Unix time in seconds or milliseconds: {text:?}; for example $(date +%s)"));
    }
    Ok(if value < 1e11 { value * 1e3 } else { value } as i64)
}

const SUBCOMMANDS: &str = "\
Also (each with --help):
  correlate ladder RUNG…         rungs of constant load instead of a ramp
  correlate compare A B          two runs side by side
  correlate history runs.tsv     the series of runs that --history wrote, and where it changed
  correlate require FILE         whether the runs that a release needs are among them, made on an honest staging";

const EXIT_CODES: &str = "\
Exit codes: 0 answered · 1 a gate failed · 2 wrong usage · 3 an input file is unusable · 4 inconclusive, or too little data";

fn after_help() -> String {
    let formats: Vec<String> = driver::formats().map(|(name, _, about)| format!("  {name:<20} {about}")).collect();
    format!("{SUBCOMMANDS}\n\nFormats of drivers' logs:\n{}\n\n{EXIT_CODES}", formats.join("\n"))
}
