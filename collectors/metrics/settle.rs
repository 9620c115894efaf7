//! The columns of a page that nobody described: recognised by name, else guessed, and bounded in number.
//!
//! Counters are summed over their labels, since a label set may come later (the first error) and must not be lost; labels that
//! tell states apart (`state`, `mode`, …) keep a column each where they are few. Gauges and everything of a pool have a column
//! a series, where they are few. A sum over label sets keeps the meaning of counts; of ages and shares the largest is taken.

use super::plan::{Column, How, Pick, Plan, column_name};
use super::text::{Line, Type, lines};
use super::{guess, node, presets};
use crate::api::{Capacity, Class, Gauge, Kind, Lag, Layer, Source, Unit, Worse, intern};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// So many columns at most.
pub const MOST: usize = 200;
/// A series with more label sets than this is summed.
const FEW: usize = 8;
/// Labels whose values mean different things, so that a sum over them means nothing.
const TELLING: [&str; 9] = ["state", "mode", "kind", "type", "pool", "pool_name", "queue", "db_name", "area"];
/// Labels that hold the status of an HTTP request.
const STATUS: [&str; 5] = ["code", "status", "status_code", "http_status_code", "http_response_status_code"];
/// A label that holds its first digit alone.
const STATUS_CLASS: &str = "envoy_response_code_class";

pub(super) type Labels = BTreeMap<String, String>;

/// A series' name with everything of it on the page.
pub(super) struct Found {
    pub name: String,
    kind: Type,
    help: String,
    quantile_or_bucket: bool,
    pub sets: BTreeSet<Labels>,
}

/// What a page turned out to hold.
pub struct Settled {
    /// The plan.
    pub plan: Plan,
    /// Series that got no column because there were too many.
    pub left_out: Vec<String>,
}

/// Settles the columns of a page, but for the series named in `taken`.
pub fn settle(body: &[u8], taken: &BTreeSet<String>) -> Settled {
    let mut columns = Vec::new();
    let mut whole = BTreeSet::new();
    let mut page = families(body);
    page.extend(to_come(&page));
    let of_a_node = node::is_one(&page);
    if of_a_node {
        columns = node::columns(&page);
    }
    for found in page {
        if taken.contains(&found.name) || (of_a_node && node::owns(&found.name)) {
            continue;
        }
        let preset = presets::find(&found.name);
        let Some(gauge) = preset.or_else(|| guess::gauge(&found.name, found.kind, found.quantile_or_bucket, &found.help)) else {
            continue;
        };
        columns.extend(columns_of(&found, gauge, &mut whole));
    }
    // The best first, in case there are too many; otherwise the order of the page.
    columns.sort_by_key(|column: &Column| rank(&column.gauge));
    let left_out = columns.split_off(columns.len().min(MOST)).iter().map(|column| column.gauge.name.to_owned()).collect();
    finish(&mut columns);
    Settled { plan: Plan::new(columns, whole), left_out }
}

/// What a known program has not on its page yet, but will have.
fn to_come(page: &[Found]) -> Vec<Found> {
    let is_of = |start: &str| page.iter().any(|found| found.name.starts_with(start));
    let has = |name: &str| page.iter().any(|found| found.name == name);
    let programs = presets::servers::TO_COME.iter().filter(|(start, _)| is_of(start));
    let missing = programs.flat_map(|(_, series)| series.iter()).filter(|(name, _)| !has(name));
    let found = |(name, of_status): &(&str, bool)| Found {
        name: (*name).to_owned(),
        kind: Type::Unknown,
        help: String::new(),
        quantile_or_bucket: false,
        sets: BTreeSet::from([of_status.then(|| ("code".to_owned(), "200".to_owned())).into_iter().collect()]),
    };
    missing.map(found).collect()
}

/// Ties the columns to each other: names that are unique, capacities that exist, visits, means.
pub fn finish(columns: &mut Vec<Column>) {
    unique(columns);
    capacities(columns);
    visits(columns);
    means(columns);
}

/// The type and the help that a page gives a series.
pub fn said_of(body: &[u8], series: &str) -> (Type, String) {
    let one = families(body).into_iter().find(|found| found.name == series);
    one.map_or_else(Default::default, |found| (found.kind, found.help))
}

fn families(body: &[u8]) -> Vec<Found> {
    let mut types: HashMap<String, Type> = HashMap::new();
    let mut helps: HashMap<String, String> = HashMap::new();
    let mut found: Vec<Found> = Vec::new();
    let mut at: HashMap<String, usize> = HashMap::new();
    for (_, line) in lines(body) {
        match line {
            Line::Type(name, kind) => drop(types.insert(name.into_owned(), kind)),
            Line::Help(name, help) => drop(helps.insert(name.into_owned(), help.into_owned())),
            Line::Sample(sample) => {
                let labels: Labels =
                    sample.labels().into_iter().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
                let name = sample.name.into_owned();
                let index = *at.entry(name.clone()).or_insert_with(|| {
                    let (kind, help) = described(&name, &types, &helps);
                    found.push(Found { name, kind, help, quantile_or_bucket: false, sets: BTreeSet::new() });
                    found.len() - 1
                });
                let one = &mut found[index];
                one.quantile_or_bucket |= (labels.contains_key("le") && one.name.ends_with("_bucket"))
                    || (labels.contains_key("quantile") && one.kind != Type::Gauge && one.kind != Type::Counter);
                one.sets.insert(labels);
            }
            Line::Eof | Line::Bad(_) => {}
        }
    }
    found
}

/// The type and help of a series: its own, or those of the family whose part it is.
fn described(name: &str, types: &HashMap<String, Type>, helps: &HashMap<String, String>) -> (Type, String) {
    let mut names = vec![name];
    names.extend(["_total", "_sum", "_count", "_bucket", "_created", "_info"].iter().filter_map(|part| name.strip_suffix(part)));
    let kind = names.iter().find_map(|name| types.get(*name)).copied().unwrap_or_default();
    let help = names.iter().find_map(|name| helps.get(*name)).cloned().unwrap_or_default();
    (kind, help)
}

fn columns_of(found: &Found, gauge: Gauge, whole: &mut BTreeSet<String>) -> Vec<Column> {
    let of_pool = gauge.layer == Some(Layer::Pool);
    let few = found.sets.len() <= FEW;
    let apart = presets::apart(&found.name);
    let mut columns = Vec::new();
    if apart.is_none() && few && (of_pool || gauge.kind == Kind::Gauge) {
        whole.insert(found.name.clone());
        columns.extend(found.sets.iter().map(|labels| column(found, gauge, labels.clone(), true)));
    } else {
        let groups = groups(&found.sets, apart.unwrap_or(&TELLING));
        let grouped = groups.len() <= FEW && groups.iter().any(|group| !group.is_empty());
        let groups = if grouped { groups } else { BTreeSet::from([Labels::new()]) };
        if grouped {
            whole.insert(found.name.clone());
        }
        columns.extend(groups.into_iter().map(|labels| column(found, gauge, labels, false)));
    }
    if gauge.class == Class::Throughput && gauge.kind == Kind::Counter && gauge.unit == Unit::Count {
        columns.extend(failures(found, gauge));
    }
    columns
}

/// The values of the telling labels, over all label sets.
fn groups(sets: &BTreeSet<Labels>, telling: &[&str]) -> BTreeSet<Labels> {
    sets.iter()
        .map(|set| {
            set.iter()
                .filter(|(name, _)| telling.contains(&name.as_str()))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect()
        })
        .collect()
}

fn column(found: &Found, mut gauge: Gauge, labels: Labels, exact: bool) -> Column {
    let values: Vec<&str> = labels.values().map(String::as_str).filter(|value| !value.is_empty()).collect();
    gauge.name = intern(&column_name(&[&[found.name.as_str()], &values[..]].concat()));
    if gauge.layer.is_some() && !values.is_empty() {
        gauge.resource = intern(&format!("{} {}", gauge.resource, values.join(" ")));
    }
    if values.contains(&"idle") && gauge.class == Class::Utilisation {
        gauge.capacity = Capacity::None;
        gauge.worse = Worse::Down;
    }
    let how = match gauge.class {
        Class::Age | Class::Ratio | Class::Pressure | Class::Wait => How::Max,
        Class::Utilisation if matches!(gauge.capacity, Capacity::Fixed(_)) => How::Max,
        _ if presets::servers::is_nested(&found.name) => How::Max,
        _ => How::Sum,
    };
    Column { gauge, pick: Some(Pick { series: found.name.clone(), labels, exact, how }), bounds: false }
}

/// Requests that the server itself failed, where the status is a label.
fn failures(found: &Found, gauge: Gauge) -> Option<Column> {
    let is_status = |label: &str, length: usize| {
        let fits = |value: &String| value.len() == length && value.starts_with(['1', '2', '3', '4', '5']);
        found.sets.iter().any(|set| set.get(label).is_some_and(fits))
    };
    let status = STATUS.iter().find(|label| is_status(label, 3));
    let status = status.or_else(|| Some(&STATUS_CLASS).filter(|label| is_status(label, 1)))?;
    let name = intern(&column_name(&[found.name.trim_end_matches("_total"), "5xx_total"]));
    let mut failed = Gauge::counter(name, Class::Event, Unit::Count, "requests that ended with a status of 500 or more");
    (failed.layer, failed.resource, failed.guessed) = (gauge.layer, gauge.resource, gauge.guessed);
    let labels = Labels::from([((*status).to_owned(), "5*".to_owned())]);
    Some(Column {
        gauge: failed,
        pick: Some(Pick { series: found.name.clone(), labels, exact: false, how: How::Sum }),
        bounds: false,
    })
}

fn rank(gauge: &Gauge) -> u8 {
    let by_class = match gauge.class {
        Class::Queue | Class::Occupancy | Class::Wait | Class::WaitSum | Class::Age | Class::Event | Class::Ratio => 1,
        Class::Utilisation | Class::Pressure => 2,
        Class::Throughput => 3,
        Class::Level => 4,
        Class::Constant => 5,
    };
    if gauge.guessed { by_class } else { 0 }
}

fn unique(columns: &mut [Column]) {
    let mut taken = BTreeSet::new();
    for column in columns {
        let mut name = column.gauge.name.to_owned();
        let mut number = 2;
        while !taken.insert(name.clone()) {
            name = format!("{}_{number}", column.gauge.name);
            number += 1;
        }
        if name != column.gauge.name {
            column.gauge.name = intern(&name);
        }
    }
}

/// A capacity that names a series becomes the column of that series whose labels the column shares, or none.
fn capacities(columns: &mut [Column]) {
    let limits: Vec<(String, Labels, &'static str)> = columns
        .iter()
        .filter_map(|column| column.pick.as_ref().map(|pick| (pick.series.clone(), pick.labels.clone(), column.gauge.name)))
        .collect();
    let mut bounding = BTreeSet::new();
    for column in columns.iter_mut() {
        let (Capacity::Column(of), Some(pick)) = (column.gauge.capacity, &column.pick) else { continue };
        let shared = |labels: &Labels| labels.iter().all(|(name, value)| pick.labels.get(name) == Some(value));
        let limit = limits
            .iter()
            .filter(|(series, labels, _)| series == of && shared(labels))
            .max_by_key(|(_, labels, _)| labels.len())
            .or_else(|| limits.iter().find(|(.., name)| *name == of));
        match limit {
            Some((.., name)) => {
                column.gauge.capacity = Capacity::Column(name);
                bounding.insert(*name);
            }
            None => column.gauge.capacity = Capacity::None,
        }
    }
    for column in columns {
        column.bounds |= bounding.contains(column.gauge.name);
    }
}

/// A mean wait is met once a request, where the page counts requests.
fn visits(columns: &mut [Column]) {
    let served = columns.iter().map(|column| column.gauge).find(|gauge| {
        gauge.class == Class::Throughput && gauge.unit == Unit::Count && gauge.resource == "requests" && gauge.kind == Kind::Counter
    });
    let Some(served) = served else { return };
    for column in columns.iter_mut().filter(|column| column.gauge.class == Class::Wait && column.gauge.visits.is_none()) {
        column.gauge = column.gauge.visits(served.name, 1.0);
    }
}

/// Where a page has the sum and the count of times that are no waits, their mean is shown.
fn means(columns: &mut Vec<Column>) {
    let sums: Vec<Gauge> = columns
        .iter()
        .map(|column| column.gauge)
        .filter(|gauge| gauge.class == Class::Throughput && gauge.unit.in_ms().is_some())
        .collect();
    for sum in sums {
        let Some(family) = sum.name.strip_suffix("_sum") else { continue };
        let Some(count) =
            columns.iter().find(|column| column.gauge.name.strip_suffix("_count") == Some(family)).map(|column| column.gauge.name)
        else {
            continue;
        };
        let name = match family.rsplit_once('_') {
            Some((stem, unit)) if sum.unit != Unit::Count => format!("{stem}_mean_{unit}"),
            _ => format!("{family}_mean"),
        };
        let source = Source::Of(intern_list(sum.name), intern_list(count));
        let mut mean = Gauge::new(intern(&name), Class::Level, sum.unit, "mean of those that ended; holds every wait behind it")
            .derived(source)
            .lag(Lag::Completion);
        (mean.layer, mean.resource, mean.guessed) = (sum.layer, sum.resource, sum.guessed);
        columns.push(Column { gauge: mean, pick: None, bounds: false });
    }
    unique(columns);
}

fn intern_list(name: &'static str) -> &'static [&'static str] {
    Box::leak(Box::new([name]))
}

#[cfg(test)]
mod tests;
