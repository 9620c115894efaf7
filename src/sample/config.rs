//! The effective configuration: the command line before the file before the defaults, checked as a whole.

mod file;
mod print;
mod several;

pub use file::Place;
pub use print::print;
pub use several::{Resolver, resolve};

use super::cli::{Options, Role, Timeout, Typed, is_host, is_name};
use super::redact::{self, Scrub};
use super::stop::StopConfig;
use collectors::api::{Fault, Section, Spec, Support};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The shortest period.
pub const SHORTEST_TICK: Duration = Duration::from_millis(20);

/// A configuration that cannot be used: what was found, and where there is one, the mend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// What was found where.
    pub message: String,
    /// What mends it.
    pub hint: Option<String>,
}

impl Wrong {
    /// Without a hint.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// Adds what mends it.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\nhint: {hint}"))
    }
}

/// One target, ready to be opened.
#[derive(Clone)]
pub struct TargetConfig {
    /// Its kind.
    pub spec: &'static Spec,
    /// What its collector gets.
    pub section: Section,
    /// Read only every so many ticks.
    pub every: Option<Duration>,
    /// Begin though it does not answer.
    pub allow_down: bool,
    /// It is the wrapped driver's own process.
    pub drivers_own: bool,
    /// Where it stands in the file; `None` from the command line.
    pub place: Option<Place>,
    /// The user gave its name.
    pub named: bool,
    /// The name that stands for it and others.
    pub one_of: Option<String>,
}

/// A whole run.
#[derive(Clone)]
pub struct Config {
    /// The period.
    pub tick: Duration,
    /// How long one read may take where the target does not say otherwise.
    pub timeout: Duration,
    /// How long the run lasts; until it is stopped if not given.
    pub seconds: Option<Duration>,
    /// The resting stretch before a wrapped driver.
    pub rest: Duration,
    /// The stretch after it.
    pub cool: Duration,
    /// The prefix of the files.
    pub out: Option<PathBuf>,
    /// Overwrite files.
    pub force: bool,
    /// The scenario.
    pub labels: BTreeMap<String, String>,
    /// The most wait rows of one target's read.
    pub waits_per_tick: usize,
    /// Write text keys of rows as they are.
    pub show_rows: bool,
    /// What the machine is; guessed if not given.
    pub host_role: Option<Role>,
    /// Say only what is wrong.
    pub quiet: bool,
    /// What stops the run.
    pub stop: StopConfig,
    /// The wrapped driver.
    pub command: Vec<OsString>,
    /// The targets.
    pub targets: Vec<TargetConfig>,
    /// What is risky in the configuration.
    pub warnings: Vec<String>,
    /// What the user should know of it.
    pub notes: Vec<String>,
}

/// A target as asked for, in the file or on the command line.
#[derive(Clone)]
struct Asked {
    spec: &'static Spec,
    name: Option<String>,
    endpoint: String,
    /// More endpoints of the same name.
    further: Vec<String>,
    /// It came out of a list.
    one_of: Option<String>,
    settings: toml::Table,
    timeout: Option<Timeout>,
    every: Option<Duration>,
    allow_down: Option<bool>,
    place: Option<Place>,
}

impl Asked {
    /// With nothing but its endpoint.
    fn new(spec: &'static Spec, name: Option<String>, endpoint: String) -> Self {
        Self {
            spec,
            name,
            endpoint,
            further: Vec::new(),
            one_of: None,
            settings: toml::Table::new(),
            timeout: None,
            every: None,
            allow_down: None,
            place: None,
        }
    }
}

/// Puts the command line, the file it names and the defaults together.
pub fn effective(registry: &[&'static Spec], typed: &Typed) -> Result<Config, Wrong> {
    let (file, mut asked) = match &typed.config {
        Some(path) => file::read(registry, path)?,
        None => (Options::default(), Vec::new()),
    };
    let mut warnings = Vec::new();
    for target in &typed.targets {
        if warnings.is_empty() && redact::password_of(&target.endpoint).is_some() {
            warnings.push(format!(
                "warning: the password in --{} can be read by others on this machine while the sampler runs\nhint: put it into a file or a variable, and the target into a --config file: password_file = \"…\" or password_env = \"…\"",
                target.spec.flag
            ));
        }
        asked.push(Asked::new(target.spec, target.name.clone(), target.endpoint.clone()));
    }
    let given = &typed.options;
    let tick = given.tick.or(file.tick).unwrap_or(Duration::from_secs(1));
    if tick < SHORTEST_TICK {
        return Err(Wrong::new(format!("a tick of {} is too short", show(tick))).hint("the shortest is 20ms"));
    }
    let timeout = timeout(given.timeout.or(file.timeout), tick, "the timeout")?;
    // A driver typed behind `--` goes before the file's length of the run; otherwise the two exclude each other.
    let (command, seconds) = if given.command.is_empty() {
        (file.command, given.seconds.or(file.seconds))
    } else {
        (given.command.clone(), given.seconds)
    };
    if !command.is_empty() && seconds.is_some() {
        return Err(Wrong::new("--seconds and a wrapped driver exclude each other: the driver's end ends the run")
            .hint("leave --seconds out; --rest and --cool set the stretches before and after the driver"));
    }
    let mut labels = file.labels;
    labels.extend(given.labels.clone());
    let host = given.host.or(file.host).unwrap_or(true);
    let allow_down = given.allow_down.or(file.allow_down).unwrap_or(false);
    asked.retain(|target| host || !is_host(target.spec));
    if let Some(spec) = registry.iter().find(|spec| is_host(spec) && host && !asked.iter().any(|target| is_host(target.spec))) {
        asked.push(Asked::new(spec, None, String::new()));
    }
    if asked.is_empty() {
        let flags: Vec<String> = registry.iter().filter(|spec| !is_host(spec)).map(|spec| format!("--{}", spec.flag)).collect();
        return Err(Wrong::new("nothing to sample: no target was given").hint(format!("name one with {}", flags.join(", "))));
    }
    let asked = several::listed(asked)?;
    let stop = StopConfig {
        gates: [file.stop.gates, given.stop.gates.clone()].concat(),
        log: given.stop.log.clone().or(file.stop.log),
        live: given.stop.live.clone().or(file.stop.live),
    };
    stop.check()?;
    let mut notes = Vec::new();
    let names = names(&asked, &mut notes)?;
    let mut targets = Vec::with_capacity(asked.len());
    for (target, instance) in asked.into_iter().zip(names) {
        let named = target.name.is_some();
        let timeout = match target.timeout {
            None => timeout,
            some => self::timeout(some, tick, &format!("the timeout of {instance}"))?,
        };
        let drivers_own = is_drivers_own(target.spec, &target.endpoint, &command);
        targets.push(TargetConfig {
            spec: target.spec,
            section: Section { instance, endpoint: target.endpoint, settings: target.settings, timeout, tick },
            every: target.every,
            // The driver starts after the sampler.
            allow_down: target.allow_down.unwrap_or(allow_down || drivers_own),
            drivers_own,
            place: target.place,
            named,
            one_of: target.one_of,
        });
    }
    Ok(Config {
        tick,
        timeout,
        seconds,
        rest: given.rest.or(file.rest).unwrap_or(Duration::from_secs(10)),
        cool: given.cool.or(file.cool).unwrap_or(Duration::from_secs(10)),
        out: given.out.clone().or(file.out),
        force: given.force.or(file.force).unwrap_or(false),
        labels,
        waits_per_tick: given.waits_per_tick.or(file.waits_per_tick).unwrap_or(1000),
        show_rows: given.show_rows.or(file.show_rows).unwrap_or(false),
        host_role: given.host_role.or(file.host_role),
        quiet: given.quiet.or(file.quiet).unwrap_or(false),
        stop,
        command,
        targets,
        warnings,
        notes,
    })
}

/// Whether a target is the process of the wrapped driver, by the name of its program.
fn is_drivers_own(spec: &Spec, endpoint: &str, command: &[OsString]) -> bool {
    let program = command.first().and_then(|program| Path::new(program).file_name());
    spec.name == "process" && program.is_some() && Path::new(endpoint.trim()).file_name() == program
}

/// How long a read may take: by default most of the tick, so that its row is whole before the next begins; not so short
/// that a healthy target misses it, not so long that a dead one is noticed late.
fn timeout(given: Option<Timeout>, tick: Duration, what: &str) -> Result<Duration, Wrong> {
    let found = match given {
        None => tick.mul_f64(0.8).clamp(Duration::from_millis(15), Duration::from_secs(2)),
        Some(Timeout::Share(share)) => tick.mul_f64(share),
        Some(Timeout::Fixed(time)) => time,
    };
    if found > tick {
        return Err(Wrong::new(format!("{what}, {}, is longer than the tick, {}", show(found), show(tick)))
            .hint("the row of a tick is written before the next tick begins: give a longer --tick, or a shorter --timeout"));
    }
    if found < Duration::from_millis(1) {
        return Err(Wrong::new(format!("{what}, {}, is too short", show(found))).hint("nothing answers in less than 1ms"));
    }
    Ok(found)
}

/// Every target's instance name: the given one, or its kind's, numbered from the second on.
fn names(asked: &[Asked], notes: &mut Vec<String>) -> Result<Vec<String>, Wrong> {
    let mut names: Vec<Option<String>> = vec![None; asked.len()];
    for (n, target) in asked.iter().enumerate() {
        let Some(name) = &target.name else { continue };
        let place = target.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
        if !is_name(name) {
            return Err(Wrong::new(format!("{place}{name:?} cannot be the name of an instance"))
                .hint("a letter, then letters, digits, - and _: it becomes the first part of column names"));
        }
        if names.iter().flatten().any(|taken| taken == name) {
            return Err(Wrong::new(format!("{place}two targets are called {name}")).hint("give each instance a name of its own"));
        }
        names[n] = Some(name.clone());
    }
    for (n, target) in asked.iter().enumerate() {
        if names[n].is_some() {
            continue;
        }
        let kind = target.spec.name;
        let name = free_name(kind, |name| names.iter().flatten().any(|taken| taken == name));
        if name != kind {
            notes.push(format!(
                "note: {} is called {name} in the files; name it yourself with --{} NAME={}",
                redact::endpoint(&target.endpoint),
                target.spec.flag,
                target.spec.value
            ));
        }
        names[n] = Some(name);
    }
    Ok(names.into_iter().flatten().collect())
}

/// A kind's name, numbered from the second on.
fn free_name(kind: &str, taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number| format!("{kind}{number}"));
    std::iter::once(kind.to_owned()).chain(numbered).find(|name| !taken(name)).unwrap_or_default()
}

/// A duration as people write it.
pub fn show(time: Duration) -> String {
    humantime::format_duration(Duration::from_micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))).to_string()
}

impl Config {
    /// The same with every target that was given without its kind as what it turned out to be, and called after that unless
    /// the user gave it a name.
    pub fn recognised(&self, registry: &[&'static Spec], found: &[Result<Support, Fault>]) -> Self {
        let mut config = self.clone();
        for (n, found) in found.iter().enumerate() {
            let kind = found.as_ref().ok().and_then(|support| support.recognised);
            let Some(spec) = registry.iter().find(|spec| Some(spec.name) == kind) else { continue };
            config.targets[n].spec = spec;
            if !config.targets[n].named {
                let others =
                    |name: &str| config.targets.iter().enumerate().any(|(m, other)| m != n && other.section.instance == name);
                config.targets[n].section.instance = free_name(spec.name, others);
            }
        }
        config
    }

    /// Every secret that the configuration holds.
    pub fn secrets(&self) -> Scrub {
        let mut scrub = Scrub::default();
        for target in &self.targets {
            scrub.add_endpoint(&target.section.endpoint);
            scrub.add_value("", &toml::Value::Table(target.section.settings.clone()));
        }
        for target in &self.targets {
            scrub.except(&target.section.instance);
            scrub.except(target.spec.name);
            scrub.except(redact::user_of(&target.section.endpoint).unwrap_or_default());
        }
        scrub
    }
}

#[cfg(test)]
mod tests;
