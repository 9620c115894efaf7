//! What a gauge means: its kind, class, unit, capacity and place, declared by whoever reads it.

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
    /// Workers of the web server or the application.
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
    /// For [`Class::Event`]: how many seconds one makes its request wait, where it does not fail it.
    pub costs_s: Option<f64>,
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
            costs_s: None,
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

    /// How many seconds one event makes its request wait.
    pub const fn costs(mut self, seconds: f64) -> Self {
        self.costs_s = Some(seconds);
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

/// How many gauges several tables have together.
pub const fn total(groups: &[&[Gauge]]) -> usize {
    let (mut sum, mut group) = (0, 0);
    while group < groups.len() {
        sum += groups[group].len();
        group += 1;
    }
    sum
}

/// Several tables of gauges as one; `N` is their [`total`].
pub const fn joined<const N: usize>(groups: &[&[Gauge]]) -> [Gauge; N] {
    let (mut all, mut at, mut group) = ([groups[0][0]; N], 0, 0);
    while group < groups.len() {
        let mut index = 0;
        while index < groups[group].len() {
            all[at] = groups[group][index];
            at += 1;
            index += 1;
        }
        group += 1;
    }
    all
}
