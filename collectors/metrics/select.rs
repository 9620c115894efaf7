//! Series that the configuration chooses: by name and label, with everything that a column says declared or derived.

use super::plan::{Column, How, Pick, column_name};
use super::text::Type;
use super::{guess, presets};
use crate::api::{Capacity, Class, Fault, FaultKind, Gauge, Kind, Lag, Layer, Unit, Worse, intern};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// One `[[metrics.series]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// The series' name on the page.
    pub name: String,
    /// Labels that it must have; `5*` means what begins with 5, `a|b` either. Several series that match become one value.
    #[serde(default)]
    labels: BTreeMap<String, String>,
    /// The column's name; without it the series' own, and the labels' values.
    #[serde(rename = "as")]
    column: Option<String>,
    kind: Option<Kind>,
    class: Option<Class>,
    unit: Option<Unit>,
    /// A number, or the name of another column of this target.
    capacity: Option<Bound>,
    #[serde(default)]
    aggregate: Option<How>,
    worse: Option<Worse>,
    lag: Option<Delay>,
    own: Option<f64>,
    layer: Option<Layer>,
    resource: Option<String>,
    help: Option<String>,
    /// For class `wait`: the column that counts the visits.
    visits: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Bound {
    Number(f64),
    Column(String),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Delay {
    Seconds(f64),
    Word(Word),
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Live,
    Completion,
}

impl Series {
    fn column_name(&self) -> String {
        let values = self.labels.values().map(String::as_str);
        self.column.clone().unwrap_or_else(|| column_name(&std::iter::once(self.name.as_str()).chain(values).collect::<Vec<_>>()))
    }

    /// The column, with what the page says of the series.
    pub fn column(&self, kind: Type, help: &str) -> Column {
        let known = presets::find(&self.name);
        let guessed = || guess::gauge(&self.name, kind, false, help);
        let mut gauge =
            known.or_else(guessed).unwrap_or_else(|| Gauge::new("", Class::Level, Unit::Count, "class guessed").guessed());
        gauge.name = intern(&self.column_name());
        if let Some(class) = self.class {
            // The direction and the delay of another class would be wrong for this one.
            let fresh = Gauge::new(gauge.name, class, gauge.unit, "");
            (gauge.class, gauge.worse, gauge.lag, gauge.guessed) = (class, fresh.worse, fresh.lag, false);
            gauge.help = intern(help.trim());
        }
        gauge.kind = self.kind.unwrap_or(gauge.kind);
        gauge.unit = self.unit.unwrap_or(gauge.unit);
        gauge.worse = self.worse.unwrap_or(gauge.worse);
        gauge.own = self.own.unwrap_or(gauge.own);
        gauge.layer = self.layer.or(gauge.layer);
        gauge.lag = match self.lag {
            None => gauge.lag,
            Some(Delay::Seconds(period)) => Lag::Refreshed(period),
            Some(Delay::Word(Word::Live)) => Lag::Live,
            Some(Delay::Word(Word::Completion)) => Lag::Completion,
        };
        if let Some(resource) = &self.resource {
            gauge.resource = intern(resource);
        }
        if let Some(help) = &self.help {
            gauge.help = intern(help);
        }
        gauge.capacity = match &self.capacity {
            None => gauge.capacity,
            Some(Bound::Number(limit)) => Capacity::Fixed(*limit),
            Some(Bound::Column(column)) => Capacity::Column(intern(column)),
        };
        if let Some(visits) = &self.visits {
            gauge = gauge.visits(intern(visits), 1.0);
        }
        let how = self.aggregate.unwrap_or_default();
        Column {
            gauge,
            pick: Some(Pick { series: self.name.clone(), labels: self.labels.clone(), exact: false, how }),
            bounds: false,
        }
    }
}

/// Refuses what cannot become columns: names that are none or stand twice, capacities and visits that name no column. With
/// `others`, a capacity may also be one of the columns found on the page.
pub fn check(instance: &str, all: &[Series], others: bool) -> Result<(), Fault> {
    let wrong = |series: &Series, why: String| {
        Err(Fault::new(FaultKind::Config, format!("configuration of {instance}: series {}: {why}", series.name)))
    };
    let mut names = BTreeSet::new();
    for series in all {
        let name = series.column_name();
        if column_name(&[&name]) != name {
            return wrong(series, format!("as = {name:?}: a column's name is snake case, for example {}", column_name(&[&name])));
        }
        if matches!(name.as_str(), "up" | "poll_ms") {
            return wrong(series, format!("as = {name:?} is the name of a column that every target has"));
        }
        if !names.insert(name.clone()) {
            return wrong(series, format!("the column {name} stands twice; name one of them with as = \"…\""));
        }
        if matches!(series.capacity, Some(Bound::Number(limit)) if !limit.is_finite() || limit <= 0.0) {
            return wrong(series, "capacity: a limit is above 0".to_owned());
        }
        if matches!(series.lag, Some(Delay::Seconds(period)) if !period.is_finite() || period <= 0.0) {
            return wrong(series, "lag: a period is above 0 seconds".to_owned());
        }
    }
    for series in all.iter().filter(|_| !others) {
        let bound = if let Some(Bound::Column(column)) = &series.capacity { Some(("capacity", column)) } else { None };
        for (key, column) in bound.into_iter().chain(series.visits.as_ref().map(|column| ("visits", column))) {
            if !names.contains(column) {
                return wrong(series, format!("{key} = {column:?} is no column of this target"));
            }
        }
    }
    Ok(())
}
