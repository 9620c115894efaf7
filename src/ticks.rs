//! PREFIX.ticks.tsv: one row a tick, one column a gauge. This page is the format; the design of both is the same.
//!
//! ```text
//! #whatgives ticks 1
//! #run  {"start_unix_ms":…,"tick_ms":1000,"sampler":"0.1.0","host":"…","labels":{"mix":"70:25:5"}}
//! #target  <instance>  <collector>  {"endpoint":"db:3306","version":"9.7.4", …}
//! #gauge  <column>  {"kind":"gauge","class":"occupancy","unit":"count","capacity":"mysql.cores", …}
//! #derived  <column>  {…,"share":[["redis.keyspace_hits_total"],["redis.keyspace_misses_total"]]}
//! #child  {"command":"k6 run x.js","start_unix_ms":…}
//! tick  unix_ms  late_ms  mysql.up  mysql.poll_ms  mysql.threads_running  …  notes
//! 0  1795979508000  0.4  1  0.9  2  …
//! ```
//!
//! UTF-8, LF, tab between cells, no quoting ([`crate::text`] has the escapes). An empty cell was not read; `tick` counts
//! from 0 and skips what was missed; `unix_ms` is the tick's planned time and `late_ms` how long after it the reads began.
//! Readers take columns by name and ignore columns, keys and `#` lines that they do not know. The last line may be cut.

mod read;
mod write;

pub use read::{Reader, Row, Ticks, read};
pub use write::Writer;

use collectors::api::{self, Class, Gauge, Kind, Layer, Unit, Worse};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// The first line of the file.
pub const FIRST_LINE: &str = "#whatgives ticks 1";

/// The `#run` line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// Planned time of tick 0, Unix milliseconds.
    pub start_unix_ms: i64,
    /// The period.
    pub tick_ms: f64,
    /// The sampler's version.
    pub sampler: String,
    /// The machine on which the sampler ran.
    pub host: String,
    /// The scenario, as given by `--label`.
    pub labels: BTreeMap<String, String>,
    /// Keys of later versions.
    #[serde(flatten)]
    pub more: serde_json::Map<String, serde_json::Value>,
}

/// A `#target` line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Target {
    /// The prefix of its columns.
    pub instance: String,
    /// The kind of target.
    pub collector: String,
    /// Endpoint, version, role, capacities read once: never a secret.
    pub about: serde_json::Map<String, serde_json::Value>,
}

/// A `#child` line: the wrapped driver's start, and a second one after its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Child {
    /// What was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// When it was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_unix_ms: Option<i64>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_unix_ms: Option<i64>,
    /// Its exit code, or 128 and the signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
}

/// What bounds a gauge, as the file says it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Capacity {
    /// A number.
    Fixed(f64),
    /// A column.
    Column(String),
}

/// When a change shows, as the file says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lag {
    /// At once.
    #[default]
    Live,
    /// When the wait ends.
    Completion,
    /// Every so many seconds.
    #[serde(untagged)]
    Refreshed(f64),
}

/// A `#gauge` or `#derived` line: everything needed to judge a column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meaning {
    /// How the number behaves over time.
    #[serde(deserialize_with = "lenient")]
    pub kind: Kind,
    /// What it means; `None` where nobody declared it.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// Its unit as written: `count`, `ms`, `us`, `s`, `bytes`, `ratio`, `percent`, or one of somebody else's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// What bounds it.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,
    /// For class `wait`: the column that counts the visits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visits: Option<String>,
    /// For class `wait`: visits per count of that column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// For class `event`: how many seconds one makes its request wait, where it does not fail it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub costs_s: Option<f64>,
    /// Which direction is bad.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "neither")]
    pub worse: Worse,
    /// When a change shows.
    #[serde(deserialize_with = "lenient")]
    pub lag: Lag,
    /// How much of the value is the sampler's own session.
    #[serde(skip_serializing_if = "is_zero")]
    pub own: f64,
    /// Where the resource stands.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub layer: Option<Layer>,
    /// The resource's name in a report.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource: String,
    /// Whether the class was guessed from the name.
    #[serde(skip_serializing_if = "is_false")]
    pub guessed: bool,
    /// Δa / (Δa + Δb): only on a `#derived` line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<[Vec<String>; 2]>,
    /// a / b: only on a `#derived` line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<[Vec<String>; 2]>,
    /// One line for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub help: String,
}

// serde's skip_serializing_if hands references.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn neither(worse: &Worse) -> bool {
    *worse == Worse::Neither
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(value: &bool) -> bool {
    !*value
}

/// A value that this version does not know is as good as none.
fn lenient<'de, T: serde::de::DeserializeOwned + Default, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    let value = serde_json::Value::deserialize(from)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

impl Meaning {
    /// What a collector declared, with the names of other columns made whole by the instance.
    pub fn of_gauge(instance: &str, gauge: &Gauge) -> Self {
        let column = |name: &str| format!("{instance}.{name}");
        let columns = |names: &[&str]| names.iter().map(|name| column(name)).collect();
        Self {
            kind: gauge.kind,
            class: Some(gauge.class),
            unit: unit_name(gauge.unit).to_owned(),
            capacity: match gauge.capacity {
                api::Capacity::None => None,
                api::Capacity::Fixed(value) => Some(Capacity::Fixed(value)),
                api::Capacity::Column(name) => Some(Capacity::Column(column(name))),
            },
            visits: gauge.visits.map(|(name, _)| column(name)),
            factor: gauge.visits.map(|(_, factor)| factor),
            costs_s: gauge.costs_s,
            worse: gauge.worse,
            lag: match gauge.lag {
                api::Lag::Live => Lag::Live,
                api::Lag::Completion => Lag::Completion,
                api::Lag::Refreshed(seconds) => Lag::Refreshed(seconds),
            },
            own: gauge.own,
            layer: gauge.layer,
            resource: gauge.resource.to_owned(),
            guessed: gauge.guessed,
            share: match gauge.source {
                api::Source::Share(a, b) => Some([columns(a), columns(b)]),
                _ => None,
            },
            of: match gauge.source {
                api::Source::Of(a, b) => Some([columns(a), columns(b)]),
                _ => None,
            },
            help: gauge.help.to_owned(),
        }
    }

    /// Of a column without a `#gauge` line: what its name says.
    pub fn undeclared(name: &str) -> Self {
        let kind = if name.ends_with("_total") { Kind::Counter } else { Kind::Gauge };
        let unit = [("_ms", "ms"), ("_us", "us"), ("_seconds", "s"), ("_bytes", "bytes"), ("_ratio", "ratio"), ("_pct", "percent")]
            .into_iter()
            .find(|(end, _)| name.strip_suffix("_total").unwrap_or(name).ends_with(end))
            .map_or("count", |(_, unit)| unit);
        Self { kind, unit: unit.to_owned(), ..Self::default() }
    }

    /// How many milliseconds one of the column's unit is; `None` where it is no time.
    pub fn unit_in_ms(&self) -> Option<f64> {
        serde_json::from_value::<Unit>(serde_json::Value::String(self.unit.clone())).ok()?.in_ms()
    }
}

fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "count",
        Unit::Seconds => "s",
        Unit::Milliseconds => "ms",
        Unit::Microseconds => "us",
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "bytes",
        Unit::Ratio => "ratio",
        Unit::Percent => "percent",
    }
}

/// Everything that stands before the first row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    /// The `#run` line.
    pub run: Run,
    /// The `#target` lines.
    pub targets: Vec<Target>,
    /// The `#gauge` lines, by column.
    pub gauges: Vec<(String, Meaning)>,
    /// The `#derived` lines, by column.
    pub derived: Vec<(String, Meaning)>,
    /// Column names between `late_ms` and `notes`, in their order.
    pub columns: Vec<String>,
}

#[cfg(test)]
mod tests;
