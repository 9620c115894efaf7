//! The vocabulary that a collector and everybody who reads its output share.
//!
//! A collector declares what each of its gauges means ([`Gauge`]) and returns raw values ([`Reading`]); rates, shares and
//! ratios are worked out by the reader, in one place. A value that was not read is absent, never 0 and never the last one.
//! All names are `'static`: columns are settled once, before the first row, so a name that is known only at run time is
//! leaked once by [`intern`] and a [`Gauge`] stays a plain constant.

use serde::{Deserialize, Serialize};

/// How the raw number behaves over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Grows since the target's start; the reader takes differences.
    Counter,
    /// An amount in this tick.
    Delta,
    /// The state now.
    #[default]
    Gauge,
}

/// What a value means for the question "where did requests begin to wait". The twelve classes of the method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// How many wait now.
    Queue,
    /// How many are in service or wait; the capacity is the number of servers.
    Occupancy,
    /// Mean wait per visit, with the column that counts the visits.
    Wait,
    /// Time waited, summed.
    WaitSum,
    /// Age of the oldest.
    Age,
    /// Refused, timed out, evicted, dropped, failed: rests at exactly 0.
    Event,
    /// A hit ratio and the like.
    Ratio,
    /// Share of time in which somebody waits (PSI).
    Pressure,
    /// Busy of the capacity.
    Utilisation,
    /// Work done, proportional to load.
    Throughput,
    /// Memory, file size, open files: growth on a plateau.
    Level,
    /// Limits and settings: denominators.
    Constant,
}

/// The unit of a raw value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// A plain number of things.
    #[default]
    #[serde(rename = "count")]
    Count,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Milliseconds,
    /// Microseconds.
    #[serde(rename = "us")]
    Microseconds,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Bytes.
    #[serde(rename = "bytes")]
    Bytes,
    /// 0 to 1.
    #[serde(rename = "ratio")]
    Ratio,
    /// 0 to 100.
    #[serde(rename = "percent")]
    Percent,
}

impl Unit {
    /// How many milliseconds one of this unit is; `None` for units that are not time.
    pub const fn in_ms(self) -> Option<f64> {
        match self {
            Self::Seconds => Some(1e3),
            Self::Milliseconds => Some(1.0),
            Self::Microseconds => Some(1e-3),
            Self::Nanoseconds => Some(1e-6),
            Self::Count | Self::Bytes | Self::Ratio | Self::Percent => None,
        }
    }
}

/// Which direction is bad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Worse {
    /// Higher is worse.
    Up,
    /// Lower is worse.
    Down,
    /// Neither is.
    #[default]
    Neither,
}

/// When a change in the target shows in the value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Lag {
    /// At once.
    #[default]
    Live,
    /// When the wait or the work ends: late by the whole wait.
    Completion,
    /// When the target refreshes it, every so many seconds.
    Refreshed(f64),
}

/// What bounds a value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Capacity {
    /// Nothing, or unknown.
    #[default]
    None,
    /// A number that never changes.
    Fixed(f64),
    /// Another gauge of the same target, by its name.
    Column(&'static str),
}

/// Where a resource stands on a request's way, from outside in; `Host` is what all share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// The listening port's accept queue.
    Accept,
    /// Workers of the web server.
    Worker,
    /// The application itself.
    App,
    /// The application's or a pooler's connections.
    Pool,
    /// The database or cache server.
    Server,
    /// Locks inside the server.
    Lock,
    /// The disk below.
    Disk,
    /// CPU, memory, network of the machine.
    Host,
}

/// How the value comes about.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Source {
    /// Read from the target; it has a column of its own.
    #[default]
    Read,
    /// Worked out by the reader: Δa / (Δa + Δb), sums where several are named. It has no column.
    Share(&'static [&'static str], &'static [&'static str]),
    /// Worked out by the reader: a / b, sums where several are named. It has no column.
    Of(&'static [&'static str], &'static [&'static str]),
}

/// One gauge of a target: its name within the target, and everything that a reader must know to judge it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gauge {
    /// Snake case; counters end in `_total`, units other than counts stand in the suffix.
    pub name: &'static str,
    /// How the number behaves over time.
    pub kind: Kind,
    /// What it means.
    pub class: Class,
    /// Its unit.
    pub unit: Unit,
    /// What bounds it; for [`Class::Occupancy`] the number of servers.
    pub capacity: Capacity,
    /// For [`Class::Wait`]: the column of the same target that counts visits, and visits per count of it.
    pub visits: Option<(&'static str, f64)>,
    /// Which direction is bad.
    pub worse: Worse,
    /// When a change shows.
    pub lag: Lag,
    /// How much of the value is the sampler's own session.
    pub own: f64,
    /// Where the resource stands.
    pub layer: Option<Layer>,
    /// The resource's name as a report prints it.
    pub resource: &'static str,
    /// Read, or derived.
    pub source: Source,
    /// Nobody declared the class: it follows from the name and what the target says of the type, and the reader says so.
    pub guessed: bool,
    /// One line for people.
    pub help: &'static str,
}

impl Gauge {
    /// A value that is a state now. `worse` follows from the class and can be changed.
    pub const fn new(name: &'static str, class: Class, unit: Unit, help: &'static str) -> Self {
        let worse = match class {
            Class::Throughput | Class::Constant => Worse::Neither,
            Class::Ratio => Worse::Down,
            _ => Worse::Up,
        };
        Self {
            name,
            kind: Kind::Gauge,
            class,
            unit,
            capacity: Capacity::None,
            visits: None,
            worse,
            lag: Lag::Live,
            own: 0.0,
            layer: None,
            resource: "",
            source: Source::Read,
            guessed: false,
            help,
        }
    }

    /// A value that grows since the target's start.
    pub const fn counter(name: &'static str, class: Class, unit: Unit, help: &'static str) -> Self {
        let mut gauge = Self::new(name, class, unit, help);
        gauge.kind = Kind::Counter;
        gauge
    }

    /// Bounded by another gauge of the same target.
    pub const fn of(mut self, column: &'static str) -> Self {
        self.capacity = Capacity::Column(column);
        self
    }

    /// Bounded by a number.
    pub const fn of_fixed(mut self, capacity: f64) -> Self {
        self.capacity = Capacity::Fixed(capacity);
        self
    }

    /// Where the resource stands, and its name in a report.
    pub const fn at(mut self, layer: Layer, resource: &'static str) -> Self {
        self.layer = Some(layer);
        self.resource = resource;
        self
    }

    /// How much of the value is the sampler's own session.
    pub const fn own(mut self, own: f64) -> Self {
        self.own = own;
        self
    }

    /// When a change shows.
    pub const fn lag(mut self, lag: Lag) -> Self {
        self.lag = lag;
        self
    }

    /// Which direction is bad.
    pub const fn worse(mut self, worse: Worse) -> Self {
        self.worse = worse;
        self
    }

    /// The column that counts the visits of a mean wait, and visits per count of it.
    pub const fn visits(mut self, column: &'static str, factor: f64) -> Self {
        self.visits = Some((column, factor));
        self
    }

    /// Worked out by the reader instead of read.
    pub const fn derived(mut self, source: Source) -> Self {
        self.source = source;
        self
    }

    /// The class follows from the name alone; the reader says so.
    pub const fn guessed(mut self) -> Self {
        self.guessed = true;
        self
    }

    /// Whether the value has a column of its own in the ticks.
    pub const fn is_read(&self) -> bool {
        matches!(self.source, Source::Read)
    }
}

/// Makes a name that is known only at run time (a configured series) as lasting as the others. Call it while columns are
/// settled, never per tick: the memory is kept for the rest of the run.
pub fn intern(name: &str) -> &'static str {
    Box::leak(name.to_owned().into_boxed_str())
}

/// One session that waits for a lock, at the time of one read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wait {
    /// row, table, metadata, tuple, transaction, relation, advisory, extend, …
    pub kind: &'static str,
    /// `schema.table`, where the server tells.
    pub object: Option<String>,
    /// The index, where the server tells.
    pub index: Option<String>,
    /// The row as the server writes it. User data: the writer hashes text keys unless told otherwise.
    pub row: Option<String>,
    /// The mode that is waited for.
    pub mode: Option<String>,
    /// The waiting session's id.
    pub waiter: String,
    /// How long it has waited, milliseconds.
    pub waited_ms: Option<f64>,
    /// The waiting statement, literals replaced by `?`.
    pub statement: Option<String>,
    /// The root: the session at the head of the chain, which itself waits for nothing.
    pub blocker: Option<String>,
    /// What the root does, for example `idle in transaction`.
    pub blocker_state: Option<String>,
    /// The root's statement, literals replaced by `?`.
    pub blocker_statement: Option<String>,
}

/// Everything that one read of a target gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// Gauge name and raw value. What was not read is not here.
    pub values: Vec<(&'static str, f64)>,
    /// One entry a waiter.
    pub waits: Vec<Wait>,
    /// What happened that a reader of the row should know, without the target's name.
    pub notes: Vec<String>,
}

impl Reading {
    /// Records a value. Values that are not finite are missing.
    pub fn put(&mut self, name: &'static str, value: f64) {
        if value.is_finite() {
            self.values.push((name, value));
        }
    }

    /// Records a value where there is one.
    pub fn put_some(&mut self, name: &'static str, value: Option<f64>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }
}

/// What kind of trouble a [`Fault`] is; the sampler's exit code and the report depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The configuration is wrong: nothing was asked.
    Config,
    /// Nobody answers there, or the connection broke.
    Unreachable,
    /// The target refuses these credentials or this connection.
    Refused,
    /// The target answers, but a privilege is missing.
    Denied,
    /// It answered something that is not what was asked for.
    Nonsense,
}

/// Why a target could not be opened, started or read: what, of which target, where, and what was found.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    /// The kind of trouble.
    pub kind: FaultKind,
    /// What was tried and what was found. Never a secret.
    pub message: String,
    /// What mends it, ready to paste.
    pub hint: Option<String>,
}

impl Fault {
    /// A fault without a hint.
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    /// Adds what mends it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Something that a target does not let us see, and the mend.
#[derive(Clone, Debug, PartialEq)]
pub struct Lack {
    /// What stays unseen.
    pub what: String,
    /// The statement or the line of configuration that grants it.
    pub mend: Option<String>,
}

/// What a target turned out to be when it was first asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Support {
    /// MySQL, MariaDB, memcached, Apache, …
    pub product: String,
    /// As the target says it.
    pub version: String,
    /// The collector that reads it, where the target was given without its kind; its instance is called after that.
    pub recognised: Option<&'static str>,
    /// Where it was found to answer, without any secret: `db:3306`, `http://web/server-status?auto`.
    pub endpoint: String,
    /// The columns of this run, in their order; settled here.
    pub columns: Vec<Gauge>,
    /// Read once: capacities and settings for the file's header.
    pub facts: Vec<(String, serde_json::Value)>,
    /// What can be seen, for people, each a short phrase.
    pub sees: Vec<String>,
    /// What cannot.
    pub lacks: Vec<Lack>,
}

#[cfg(feature = "io")]
pub use contract::{Collector, Section, Spec};

#[cfg(feature = "io")]
mod contract {
    use super::{Fault, Gauge, Reading, Support};
    use std::time::Duration;

    /// A kind of target, as the registry lists it. The command line, the configuration's sections and the README's table
    /// are built from it.
    pub struct Spec {
        /// The collector's name, and the instance's where none is given.
        pub name: &'static str,
        /// The long flag without dashes: `mysql`.
        pub flag: &'static str,
        /// Other spellings of the flag.
        pub aliases: &'static [&'static str],
        /// How the flag's value is called in the help: `URL`.
        pub value: &'static str,
        /// One line: what it reads.
        pub about: &'static str,
        /// The privilege or the configuration it needs: a GRANT or a line, ready to paste.
        pub needs: &'static str,
        /// A section of a configuration file that works as it stands.
        pub sample_config: &'static str,
        /// Every gauge it can have without further configuration.
        pub gauges: &'static [Gauge],
        /// Parses the settings. No I/O.
        pub open: fn(&Section) -> Result<Box<dyn Collector>, Fault>,
    }

    /// What the command line and the configuration say of one target.
    #[derive(Clone, Debug)]
    pub struct Section {
        /// The instance's name: the prefix of its columns.
        pub instance: String,
        /// Where it is, as given: a URL, `HOST:PORT`, a path. Empty for targets that need none.
        pub endpoint: String,
        /// Everything else of its section in the configuration. A collector refuses keys that it does not know.
        pub settings: toml::Table,
        /// How long one read may take.
        pub timeout: Duration,
        /// The run's tick.
        pub tick: Duration,
    }

    /// One target, asked once a tick.
    ///
    /// The caller owns the deadline and keeps one read in flight: a read that is late is left to end by itself and its
    /// answer is dropped; after 30 s it is cancelled. A collector keeps one connection, opened by [`Collector::start`]; when
    /// that breaks, the failing `read` reports it and the next one connects anew.
    #[async_trait::async_trait]
    pub trait Collector: Send {
        /// The columns as far as they are known without asking. [`Support::columns`] replaces them.
        fn columns(&self) -> Vec<Gauge>;

        /// Connects, checks the version and proves what it can see. Once, before the load; again only where the first
        /// attempt failed and the run was allowed to begin.
        async fn start(&mut self) -> Result<Support, Fault>;

        /// Everything of one tick.
        async fn read(&mut self) -> Result<Reading, Fault>;
    }
}
