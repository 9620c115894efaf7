//! Real runs with a planted cause, made anew on the project's own real servers and judged like any user's run.
//!
//! ```sh
//! cargo run --release --example stories                       # which there are
//! cargo run --release --example stories -- mysql-hot-row      # make this one; --all makes every one
//! cargo run --release --example stories -- --all --record     # and keep them as the recorded ones
//! ```
//!
//! What was planted stands in `fixtures/runs/STORY/truth.toml`, written by hand from what is configured here, and never from
//! what correlate said. A story that is told otherwise than its truth fails the command, and is not recorded. The files of a
//! story go into a folder of its name, below `--into`; `--record` puts them beside the truth, where every test run judges
//! them again.

#![expect(
    clippy::expect_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a program tells its user what it does; the servers' helper is the tests' own"
)]

#[path = "../open_loop/open_loop.rs"]
mod open_loop;
#[allow(dead_code, reason = "each user needs its part")]
#[path = "../../tests/it/support/server.rs"]
mod server;

mod shop;
mod stage;
mod story;
mod truth;

use anyhow::Context as _;
use clap::Parser;
use open_loop::watched::this_as;
use stage::Stage;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use story::{STORIES, Story};

/// Makes real runs with a planted cause, and judges them.
#[derive(Parser)]
#[command(name = "stories")]
struct Options {
    /// The stories to make
    names: Vec<String>,
    /// Every story
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// The folder for the files
    #[arg(long, value_name = "FOLDER", default_value = "target/stories")]
    into: PathBuf,
    /// Keep the files as the recorded runs of the project
    #[arg(long, conflicts_with = "no_host")]
    record: bool,
    /// Leave the host's gauges out, on a machine that does other work beside
    #[arg(long)]
    no_host: bool,
}

fn main() -> anyhow::Result<ExitCode> {
    // This program starts itself again as the two programs of the package, and as the application.
    let mut args = std::env::args_os().skip(1).peekable();
    match args.peek().and_then(|first| first.to_str()) {
        Some("sampler") => Ok(whatgives::sample::run(args).into()),
        Some("correlate") => Ok(whatgives::correlate::run(args).into()),
        Some("shop") => shop::run(args).map(|()| ExitCode::SUCCESS),
        _ => make(&Options::parse()),
    }
}

fn make(options: &Options) -> anyhow::Result<ExitCode> {
    let known = |name: &String| STORIES.iter().find(|story| story.name == *name).with_context(|| format!("no story {name}"));
    let wanted: Vec<&Story> =
        if options.all { STORIES.iter().collect() } else { options.names.iter().map(known).collect::<Result<_, _>>()? };
    if wanted.is_empty() {
        for story in STORIES {
            let truth = truth::Truth::read(&recorded(story.name))?;
            println!("{:<24} {} (recorded: {})", story.name, truth.about, truth.made);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut told_otherwise = Vec::new();
    for story in &wanted {
        eprintln!("== {}", story.name);
        // One that fails is no reason not to make the others.
        let wrong = tell(story, options).unwrap_or_else(|why| vec![format!("{why:#}")]);
        for line in &wrong {
            eprintln!("   NOT AS PLANTED: {line}");
        }
        if !wrong.is_empty() {
            told_otherwise.push(story.name);
        }
    }
    let others = if told_otherwise.is_empty() { String::new() } else { format!("; not {}", told_otherwise.join(", ")) };
    eprintln!("== {} of {} stories told as planted{others}", wanted.len() - told_otherwise.len(), wanted.len());
    Ok(if told_otherwise.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The folder of a recorded run.
fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/runs").join(name)
}

/// Makes a story; what is told otherwise than it was planted.
fn tell(story: &Story, options: &Options) -> anyhow::Result<Vec<String>> {
    let truth = truth::Truth::read(&recorded(story.name))?;
    let stage = Stage::new(&options.into.join(story.name), !options.no_host)?;
    (story.make)(&stage)?;
    let correlate = |more: &[&str]| -> anyhow::Result<Vec<u8>> {
        let args = truth::arguments(stage.folder(), &truth)?;
        Ok(this_as("correlate")?.args(args).args(more).stderr(Stdio::inherit()).output()?.stdout)
    };
    println!("{}", String::from_utf8_lossy(&correlate(&[])?));
    let json = correlate(&["--json"])?;
    let verdict = serde_json::from_slice(&json).with_context(|| format!("{}", String::from_utf8_lossy(&json)))?;
    let wrong = truth.compare(&verdict);
    if options.record && wrong.is_empty() {
        stage.keep(&recorded(story.name))?;
    }
    Ok(wrong)
}
