//! The command line, as typed: one repeatable flag a target of the registry, and the run's own options. Nothing is opened
//! here; what it means together with a configuration file is in [`super::config`].

use super::redact;
use super::stop::StopConfig;
use crate::judge::gate::Gate;
use crate::time::parse_duration;
use clap::builder::Styles;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use collectors::api::Spec;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sample.
    Run,
    /// Say what each target is, and what is missing.
    Check,
    /// Print the effective configuration.
    PrintConfig,
    /// Print every collector and its gauges.
    List {
        /// As tables in markdown.
        markdown: bool,
    },
    /// Stop a run in the background.
    Stop {
        /// The run's `--out`, if it had one.
        prefix: Option<PathBuf>,
    },
}

/// How long a read may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timeout {
    /// A share of the tick.
    Share(f64),
    /// A time.
    Fixed(Duration),
}

impl Timeout {
    /// Reads `80%` or `500ms`.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.trim().strip_suffix('%') {
            Some(share) => match share.trim().parse::<f64>() {
                Ok(share) if share > 0.0 && share <= 100.0 => Ok(Self::Share(share / 100.0)),
                _ => Err(format!("not a share of the tick: {text:?}; for example 80%")),
            },
            None => Ok(Self::Fixed(parse_duration(text)?)),
        }
    }
}

/// What the machine is that the sampler runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It carries a target: its CPU can be what gave way.
    Target,
    /// It only drives the load: its CPU is a caveat.
    Driver,
}

impl Role {
    /// As written in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Driver => "driver",
        }
    }

    /// Reads it.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "target" => Ok(Self::Target),
            "driver" => Ok(Self::Driver),
            _ => Err(format!("expected target or driver, found {text:?}")),
        }
    }
}

/// The run's own options, as far as they were given: on the command line or in a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// The period.
    pub tick: Option<Duration>,
    /// How long a read may take.
    pub timeout: Option<Timeout>,
    /// How long the run lasts.
    pub seconds: Option<Duration>,
    /// The resting stretch before a wrapped driver.
    pub rest: Option<Duration>,
    /// The stretch after it.
    pub cool: Option<Duration>,
    /// The prefix of the files.
    pub out: Option<PathBuf>,
    /// Overwrite files.
    pub force: Option<bool>,
    /// The scenario.
    pub labels: BTreeMap<String, String>,
    /// The most wait rows of one target's read.
    pub waits_per_tick: Option<usize>,
    /// Write text keys of rows as they are.
    pub show_rows: Option<bool>,
    /// Begin though a target is down.
    pub allow_down: Option<bool>,
    /// Sample the machine itself.
    pub host: Option<bool>,
    /// What the machine is.
    pub host_role: Option<Role>,
    /// Say only what is wrong.
    pub quiet: Option<bool>,
    /// What stops the run.
    pub stop: StopConfig,
    /// The wrapped driver.
    pub command: Vec<OsString>,
}

/// A target on the command line.
#[derive(Clone)]
pub struct TypedTarget {
    /// Its kind.
    pub spec: &'static Spec,
    /// `name=` before the value.
    pub name: Option<String>,
    /// The value.
    pub endpoint: String,
}

/// Everything typed.
#[derive(Clone)]
pub struct Typed {
    /// What is to be done.
    pub action: Action,
    /// Run in the background.
    pub background: bool,
    /// This process is the one in the background.
    pub detached: bool,
    /// The configuration file.
    pub config: Option<PathBuf>,
    /// The options.
    pub options: Options,
    /// The targets, in the order of the registry and then as typed.
    pub targets: Vec<TypedTarget>,
}

/// The flag that marks the process in the background; put in front of its arguments by the one that starts it.
pub const DETACHED: &str = "--detached";

const EXAMPLES: &str = "Examples:
  sampler --mysql mysql://probe@db/ --apache http://web:8080 --memcached cache:11211 --seconds 95 --out rung-40 &
  sampler --mysql replica=mysql://probe@db2/ --tick 100ms -- k6 run booking.js
  sampler --config booking.toml --background -- locust --headless …
  sampler stop rung-40
  sampler --config booking.toml --check

Exit codes: 0 done · 2 wrong usage or configuration · 5 a required target was never readable · 6 stopped by --stop-when ·
with a wrapped driver the driver's own code (128 + the signal that ended it), or 125 where the sampler itself failed.";

/// The tree of arguments.
pub fn command(registry: &[&'static Spec]) -> Command {
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

/// The machine itself: the one kind of target that is on without being asked for.
pub fn is_host(spec: &Spec) -> bool {
    spec.name == "host"
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE, for example mix=70:25:5".to_owned()),
    }
}

/// `name=` before a target's value. What stands before the `=` of a URL's query or of a path is no name.
pub fn split_name(value: &str) -> (Option<&str>, &str) {
    match value.split_once('=') {
        Some((name, rest)) if is_name(name) => (Some(name), rest),
        _ => (None, value),
    }
}

/// Whether a text can be an instance's name: the first part of column names.
pub fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// Reads the command line. The error is ready to be shown: text, and whether it is an error at all (help is none).
pub fn parse(registry: &[&'static Spec], args: impl Iterator<Item = OsString>) -> Result<Typed, (String, bool)> {
    let matches = command(registry).try_get_matches_from(args).map_err(|why| {
        // A message may repeat a value that was typed.
        (redact::urls(why.render().to_string().trim_end()), why.use_stderr())
    })?;
    if let Some(("stop", stop)) = matches.subcommand() {
        let action = Action::Stop { prefix: stop.get_one::<PathBuf>("prefix").cloned() };
        return Ok(Typed {
            action,
            background: false,
            detached: false,
            config: None,
            options: Options::default(),
            targets: Vec::new(),
        });
    }
    let action = if let Some(form) = matches.get_one::<String>("list") {
        Action::List { markdown: form == "markdown" }
    } else if matches.get_flag("print-config") {
        Action::PrintConfig
    } else if matches.get_flag("check") {
        Action::Check
    } else {
        Action::Run
    };
    let mut targets = Vec::new();
    for spec in registry.iter().filter(|spec| !spec.value.is_empty()) {
        for value in matches.get_many::<String>(spec.name).into_iter().flatten() {
            let (name, endpoint) = split_name(value);
            targets.push(TypedTarget { spec, name: name.map(str::to_owned), endpoint: endpoint.to_owned() });
        }
    }
    let detached = matches.get_flag("detached");
    Ok(Typed {
        action,
        background: matches.get_flag("background") && !detached,
        detached,
        config: matches.get_one::<PathBuf>("config").cloned(),
        options: options(registry, &matches),
        targets,
    })
}

fn options(registry: &[&'static Spec], matches: &ArgMatches) -> Options {
    let set = |name: &str| {
        let typed = matches.try_contains_id(name).unwrap_or(false) && matches.value_source(name) == Some(ValueSource::CommandLine);
        typed.then_some(true)
    };
    let duration = |name: &str| matches.get_one::<Duration>(name).copied();
    let host = registry.iter().find(|spec| is_host(spec));
    Options {
        tick: duration("tick"),
        timeout: matches.get_one::<Timeout>("timeout").copied(),
        seconds: duration("seconds"),
        rest: duration("rest"),
        cool: duration("cool"),
        out: matches.get_one::<PathBuf>("out").cloned(),
        force: set("force"),
        labels: matches.get_many::<(String, String)>("label").into_iter().flatten().cloned().collect(),
        waits_per_tick: matches.get_one::<usize>("waits-per-tick").copied(),
        show_rows: set("show-rows"),
        allow_down: set("allow-down"),
        stop: StopConfig {
            gates: matches.get_many::<Gate>("stop-when").into_iter().flatten().cloned().collect(),
            log: matches.get_one::<PathBuf>("driver-log").cloned(),
            live: matches.get_one::<String>("driver-live").cloned(),
        },
        host: if set("no-host").is_some() { Some(false) } else { host.and_then(|spec| set(spec.name)) },
        host_role: host.and_then(|_| matches.get_one::<Role>("host-role").copied()),
        quiet: set("quiet"),
        command: matches.get_many::<OsString>("command").into_iter().flatten().cloned().collect(),
    }
}
