//! What a user says of a number that no collector knows: its class, unit, limit. What is not said is guessed from the name,
//! and the column says that it is.

use crate::api::{Capacity, Class, Fault, FaultKind, Gauge, Kind, Lag, Layer, Unit, Worse, intern};
use crate::metrics::guess;
use crate::metrics::plan::column_name;
use crate::metrics::text::Type;
use serde::Deserialize;
use std::collections::BTreeSet;

/// The keys of one number; each may be left out.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Declared {
    class: Option<Class>,
    unit: Option<Unit>,
    kind: Option<Kind>,
    capacity: Option<Bound>,
    worse: Option<Worse>,
    /// How late the number is, seconds.
    lag: Option<f64>,
    own: Option<f64>,
    layer: Option<Layer>,
    resource: Option<String>,
    help: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Bound {
    Number(f64),
    Column(String),
}

const KEYS: [&str; 10] = ["class", "unit", "kind", "capacity", "worse", "lag", "own", "layer", "resource", "help"];

impl Declared {
    /// Takes these keys out of a table and leaves the others, so that both can be read strictly.
    pub fn take(what: &str, table: &mut toml::Table) -> Result<Self, Fault> {
        let mut ours = toml::Table::new();
        for key in KEYS {
            if let Some(value) = table.remove(key) {
                ours.insert(key.to_owned(), value);
            }
        }
        let wrong = |why: &str| Fault::new(FaultKind::Config, format!("configuration of {what}: {why}"));
        let found = Self::deserialize(toml::Value::Table(ours)).map_err(|why| wrong(why.message().trim()))?;
        if matches!(found.capacity, Some(Bound::Number(limit)) if !limit.is_finite() || limit <= 0.0) {
            return Err(wrong("capacity: a limit is above 0"));
        }
        if found.lag.is_some_and(|lag| !lag.is_finite() || lag <= 0.0) {
            return Err(wrong("lag: a period is above 0 seconds"));
        }
        Ok(found)
    }

    /// The column `name`; `said` is the name that a guess is made from.
    pub fn gauge(&self, name: &str, said: &str, kind: Type) -> Gauge {
        let guessed = guess::gauge(&column_name(&[said]), kind, false, "");
        let mut gauge = guessed.unwrap_or_else(|| Gauge::new("", Class::Level, Unit::Count, "class guessed").guessed());
        gauge.name = intern(name);
        if let Some(class) = self.class {
            // The direction and the delay of another class would be wrong for this one.
            let fresh = Gauge::new(gauge.name, class, gauge.unit, "");
            (gauge.class, gauge.worse, gauge.lag, gauge.guessed, gauge.help) = (class, fresh.worse, fresh.lag, false, "");
        }
        gauge.kind = self.kind.unwrap_or(gauge.kind);
        gauge.unit = self.unit.unwrap_or(gauge.unit);
        gauge.worse = self.worse.unwrap_or(gauge.worse);
        gauge.own = self.own.unwrap_or(gauge.own);
        gauge.layer = self.layer.or(gauge.layer);
        gauge.lag = self.lag.map_or(gauge.lag, Lag::Refreshed);
        gauge.resource = self.resource.as_deref().map_or(gauge.resource, intern);
        gauge.help = self.help.as_deref().map_or(gauge.help, intern);
        gauge.capacity = match &self.capacity {
            None => gauge.capacity,
            Some(Bound::Number(limit)) => Capacity::Fixed(*limit),
            Some(Bound::Column(column)) => Capacity::Column(intern(column)),
        };
        gauge
    }
}

/// Names that are unique, and capacities that exist: one that names no column is refused.
pub(crate) fn settle(instance: &str, gauges: &mut [Gauge]) -> Result<(), Fault> {
    let mut names = BTreeSet::new();
    for gauge in gauges.iter_mut() {
        let mut name = gauge.name.to_owned();
        let mut number = 2;
        while matches!(name.as_str(), "up" | "poll_ms") || !names.insert(name.clone()) {
            name = format!("{}_{number}", gauge.name);
            number += 1;
        }
        gauge.name = intern(&name);
    }
    match gauges.iter().find_map(|gauge| match gauge.capacity {
        Capacity::Column(column) if !names.contains(column) => Some((gauge.name, column)),
        _ => None,
    }) {
        None => Ok(()),
        Some((name, column)) => Err(Fault::new(
            FaultKind::Config,
            format!("configuration of {instance}: {name}: capacity = {column:?} is no column of this target"),
        )),
    }
}

/// `URL::REST`: where the server is and what is asked, at the first `::` behind an IPv6 address.
pub(crate) fn split(endpoint: &str) -> (&str, Option<&str>) {
    let host = endpoint.find("://").map_or(0, |at| at + 3);
    // The host begins behind a user's name, if there is one, and only there brackets hold an address.
    let ours = &endpoint[host..];
    let user = ours[..ours.find("::").unwrap_or(ours.len())].find('@').map_or(0, |at| at + 1);
    let from = if ours[user..].starts_with('[') { endpoint[host..].find(']').map_or(0, |at| host + at) } else { 0 };
    match endpoint[from..].find("::") {
        Some(at) => (endpoint[..from + at].trim(), Some(endpoint[from + at + 2..].trim())),
        None => (endpoint.trim(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(text: &str) -> Declared {
        Declared::take("x", &mut toml::from_str(text).unwrap()).unwrap()
    }

    #[test]
    fn what_is_said_counts_and_what_is_not_is_guessed_and_marked() {
        let said = declared("class = \"queue\"\nlayer = \"app\"\nresource = \"outbox\"\ncapacity = 500").gauge(
            "depth",
            "depth",
            Type::Gauge,
        );
        assert_eq!((said.class, said.guessed, said.capacity), (Class::Queue, false, Capacity::Fixed(500.0)));
        assert_eq!((said.worse, said.resource), (Worse::Up, "outbox"));
        let guessed = declared("").gauge("value", "jobs_pending", Type::Gauge);
        assert_eq!((guessed.name, guessed.class, guessed.guessed), ("value", Class::Queue, true));
        assert!(declared("").gauge("value", "whatever", Type::Unknown).guessed);
    }

    #[test]
    fn keys_that_are_not_ours_stay_and_wrong_values_are_refused() {
        let mut table: toml::Table = toml::from_str("class = \"queue\"\nsql = \"SELECT 1\"").unwrap();
        Declared::take("x", &mut table).unwrap();
        assert_eq!(table.keys().collect::<Vec<_>>(), ["sql"]);
        for text in ["class = \"quue\"", "capacity = 0", "lag = -1"] {
            assert!(Declared::take("x", &mut toml::from_str(text).unwrap()).is_err(), "{text}");
        }
    }

    #[test]
    fn names_become_unique_and_a_capacity_must_be_there() {
        let gauge = |name: &str, text: &str| declared(text).gauge(name, name, Type::Gauge);
        let mut gauges = vec![gauge("a", ""), gauge("a", ""), gauge("up", "")];
        settle("x", &mut gauges).unwrap();
        assert_eq!(gauges.iter().map(|gauge| gauge.name).collect::<Vec<_>>(), ["a", "a_2", "up_2"]);
        assert!(settle("x", &mut [gauge("a", "capacity = \"b\"")]).unwrap_err().message.contains("\"b\""));
        assert!(settle("x", &mut [gauge("a", "capacity = \"b\""), gauge("b", "")]).is_ok());
    }

    #[test]
    fn an_endpoint_is_cut_at_the_first_colons_behind_an_address() {
        assert_eq!(split("postgres://db/shop::SELECT a::int"), ("postgres://db/shop", Some("SELECT a::int")));
        assert_eq!(split("http://[::1]:9090::sum(up)"), ("http://[::1]:9090", Some("sum(up)")));
        assert_eq!(split("http://p:9090::up{a=\"[::1]\"}"), ("http://p:9090", Some("up{a=\"[::1]\"}")));
        assert_eq!(split("mysql://u@[fe80::1]/x::SELECT 1"), ("mysql://u@[fe80::1]/x", Some("SELECT 1")));
        assert_eq!(split("http://p:9090"), ("http://p:9090", None));
    }
}
