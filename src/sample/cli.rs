//! The command line, as typed: one repeatable flag a target of the registry, and the run's own options. Nothing is opened
//! here; what it means together with a configuration file is in [`super::config`].

mod command;

use super::redact;
use super::stop::StopConfig;
use crate::judge::gate::Gate;
use crate::time::parse_duration;
use clap::ArgMatches;
use clap::parser::ValueSource;
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

/// The machine itself: the one kind of target that is on without being asked for.
pub fn is_host(spec: &Spec) -> bool {
    spec.name == "host"
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
    let matches = command::tree(registry).try_get_matches_from(args).map_err(|why| {
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
