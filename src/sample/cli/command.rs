//! The tree of arguments: their names, their help and what each takes.

use super::{Role, Timeout, is_host};
use crate::judge::gate::Gate;
use crate::time::parse_duration;
use clap::builder::Styles;
use clap::{Arg, ArgAction, Command, value_parser};
use collectors::api::Spec;
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "Examples:
  sampler --mysql mysql://probe@db/ --apache http://web:8080 --memcached cache:11211 --seconds 95 --out rung-40 &
  sampler --mysql replica=mysql://probe@db2/ --tick 100ms -- k6 run booking.js
  sampler --config booking.toml --background -- locust --headless …
  sampler stop rung-40
  sampler --config booking.toml --check

Exit codes: 0 done · 2 wrong usage or configuration · 5 a required target was never readable · 6 stopped by --stop-when ·
with a wrapped driver the driver's own code (128 + the signal that ended it), or 125 where the sampler itself failed.";

/// The tree of arguments.
pub(super) fn tree(registry: &[&'static Spec]) -> Command {
    let flag = |name: &'static str, help: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    let duration = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("TIME").value_parser(parse_duration).help(help)
    };
    let mut command = Command::new("sampler")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Polls the targets of a load test on a fixed tick beside any load driver, and writes two plain files")
        .after_help(EXAMPLES)
        .styles(Styles::plain())
        .args_conflicts_with_subcommands(true)
        .override_usage("sampler [TARGETS] [OPTIONS] [-- DRIVER…]\n       sampler stop [PREFIX]")
        .subcommand(
            Command::new("stop")
                .about("Stops the sampler that runs in the background for PREFIX")
                .arg(Arg::new("prefix").value_name("PREFIX").value_parser(value_parser!(PathBuf)).help("The run's --out")),
        )
        .disable_help_subcommand(true)
        .next_help_heading("Targets (each repeatable; NAME=… in front names an instance)");
    for spec in registry {
        let mut arg = Arg::new(spec.name).long(spec.flag).visible_aliases(spec.aliases).help(spec.about);
        arg = if spec.value.is_empty() {
            arg.action(ArgAction::SetTrue)
        } else {
            arg.value_name(spec.value).action(ArgAction::Append)
        };
        command = command.arg(arg);
        if is_host(spec) {
            command = command
                .mut_arg(spec.name, |arg| arg.help(format!("{}; on by default", spec.about)))
                .arg(flag("no-host", "Leave the machine itself out").conflicts_with(spec.name))
                .arg(
                    Arg::new("host-role").long("host-role").value_name("target|driver").value_parser(Role::parse).help(
                        "What this machine is: a target's, or only the driver's, whose load is a caveat and never the first mover [guessed]",
                    ),
                );
        }
    }
    command
        .next_help_heading("Run")
        .arg(duration("tick", "The period, from 20ms up [default: 1s]"))
        .arg(
            Arg::new("timeout")
                .long("timeout")
                .value_name("TIME|SHARE%")
                .value_parser(Timeout::parse)
                .help("How long one read may take [default: 80% of the tick, 15ms to 2s]"),
        )
        .arg(
            duration("seconds", "How long to sample; a bare number is seconds [default: until it is stopped]")
                .visible_alias("duration"),
        )
        .arg(duration("rest", "The resting stretch before a wrapped driver starts [default: 10s]"))
        .arg(duration("cool", "How long to go on after a wrapped driver ended [default: 10s]"))
        .arg(flag("allow-down", "Begin though a target does not answer"))
        .arg(flag("background", "Return when every target has answered; prints the pid and the files"))
        .arg(Arg::new("detached").long("detached").action(ArgAction::SetTrue).hide(true))
        .next_help_heading("Files")
        .arg(
            Arg::new("out")
                .long("out")
                .value_name("PREFIX")
                .value_parser(value_parser!(PathBuf))
                .help("Write PREFIX.ticks.tsv and PREFIX.waits.tsv [default: ticks.tsv, waits.tsv]"),
        )
        .arg(flag("force", "Overwrite files that are there"))
        .arg(
            Arg::new("label")
                .long("label")
                .value_name("KEY=VALUE")
                .action(ArgAction::Append)
                .value_parser(parse_label)
                .help("Record something about the scenario; repeatable"),
        )
        .arg(
            Arg::new("waits-per-tick")
                .long("waits-per-tick")
                .value_name("ROWS")
                .value_parser(value_parser!(usize))
                .help("The most wait rows of one target's read; the rest is summed by object [default: 1000]"),
        )
        .arg(flag("show-rows", "Write text keys of waited rows as they are, not hashed: they are user data"))
        .next_help_heading("Configuration")
        .arg(
            Arg::new("config")
                .long("config")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Targets and options from a TOML file; the command line goes before it"),
        )
        .arg(flag("check", "Connect, say what each target is, what can be seen and what is missing, and end"))
        .arg(flag("print-config", "Print the effective configuration, secrets redacted, and end"))
        .arg(
            Arg::new("list")
                .long("list")
                .value_name("FORM")
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("text")
                .value_parser(["text", "markdown"])
                .help("Print every kind of target with its gauges and what it needs, and end"),
        )
        .arg(flag("quiet", "Say only what is wrong").short('q'))
        .next_help_heading("Stop while it runs")
        .arg(
            Arg::new("stop-when")
                .long("stop-when")
                .value_name("GATE")
                .action(ArgAction::Append)
                .value_parser(|text: &str| text.parse::<Gate>())
                .help(
                    "Stop the driver when this breaks, such as 'app.pool_waiting <= 0 for 5s' or 'p95 < 2s over 10s'; repeatable",
                ),
        )
        .arg(
            Arg::new("driver-log")
                .long("driver-log")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("The log that the driver writes, for gates on requests"),
        )
        .arg(
            Arg::new("driver-live")
                .long("driver-live")
                .value_name("ADDRESS")
                .help("Where the driver answers while it runs, and is told to stop: k6://HOST:6565, locust://HOST:8089, …"),
        )
        .next_help_heading("Driver")
        .arg(
            Arg::new("command")
                .value_name("DRIVER")
                .num_args(1..)
                .last(true)
                .value_parser(value_parser!(OsString))
                .help("A load driver to wrap: rest, start it, sample until it ends, cool"),
        )
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE, for example mix=70:25:5".to_owned()),
    }
}
