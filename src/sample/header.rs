//! What stands before the first row, from what the targets said of themselves; and where each value goes in a row.

use super::cli::{Role, is_host};
use super::config::{Config, TargetConfig, Wrong};
use super::redact;
use super::role::{guess, host_of};
use crate::ticks::{Header, Meaning, Run, Target};
use collectors::api::{Gauge, Reading, Support};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Where one target's values go.
#[derive(Debug)]
pub struct Columns {
    /// The columns that are read, in their order.
    pub gauges: Vec<Gauge>,
    /// The cell of the first one; `up` and `poll_ms` stand before it.
    first: usize,
    places: HashMap<&'static str, usize>,
}

impl Columns {
    /// The cell of `<instance>.up`; `<instance>.poll_ms` is the next.
    pub fn up(&self) -> usize {
        self.first - 2
    }

    /// Puts a reading's values into a row. Gives the names that have no column: they were not there at the start.
    pub fn fill(&self, reading: &Reading, row: &mut [Option<f64>]) -> Vec<&'static str> {
        let mut unknown = Vec::new();
        let mut next = 0;
        for (name, value) in &reading.values {
            // Collectors give their values in the order of their columns, mostly.
            let place = match self.gauges.get(next) {
                Some(gauge) if std::ptr::eq(gauge.name, *name) || gauge.name == *name => Some(next),
                _ => self.places.get(name).copied(),
            };
            match place {
                Some(place) => {
                    row[self.first + place] = value.is_finite().then_some(*value);
                    next = place + 1;
                }
                None => unknown.push(*name),
            }
        }
        unknown
    }

    /// This target's part of a row.
    pub fn cells<'a>(&self, row: &'a mut [Option<f64>]) -> &'a mut [Option<f64>] {
        &mut row[self.first..self.first + self.gauges.len()]
    }
}

/// The header of a run and the places of every target. `found` has each target's support, where it answered, and the
/// columns of those that did not.
pub fn header(
    config: &Config,
    found: &[(Option<&Support>, Vec<Gauge>)],
    start_unix_ms: i64,
    hostname: &str,
) -> Result<(Header, Vec<Columns>), Wrong> {
    let mut header = Header {
        run: Run {
            start_unix_ms,
            tick_ms: config.tick.as_secs_f64() * 1e3,
            sampler: env!("CARGO_PKG_VERSION").to_owned(),
            host: hostname.to_owned(),
            labels: config.labels.clone(),
            more: Map::new(),
        },
        ..Header::default()
    };
    let role = config.host_role.unwrap_or_else(|| guess(&endpoints(config, found), hostname));
    let mut all = Vec::with_capacity(found.len());
    for (target, (support, columns)) in config.targets.iter().zip(found) {
        let instance = &target.section.instance;
        let role = match target {
            target if is_host(target.spec) => role,
            target if target.drivers_own => Role::Driver,
            _ => Role::Target,
        };
        let about = about(target, *support, role);
        header.targets.push(Target { instance: instance.clone(), collector: target.spec.name.to_owned(), about });
        header.columns.extend([format!("{instance}.up"), format!("{instance}.poll_ms")]);
        let (read, derived): (Vec<Gauge>, Vec<Gauge>) = columns.iter().partition(|gauge| gauge.is_read());
        let first = header.columns.len();
        let mut places = HashMap::new();
        for (n, gauge) in read.iter().enumerate() {
            if matches!(gauge.name, "up" | "poll_ms") || places.insert(gauge.name, n).is_some() {
                return Err(Wrong::new(format!("{instance}: two columns would be called {instance}.{}", gauge.name))
                    .hint("a column that is configured needs a name of its own"));
            }
            let column = format!("{instance}.{}", gauge.name);
            header.gauges.push((column.clone(), Meaning::of_gauge(instance, gauge)));
            header.columns.push(column);
        }
        for gauge in &derived {
            header.derived.push((format!("{instance}.{}", gauge.name), Meaning::of_gauge(instance, gauge)));
        }
        all.push(Columns { gauges: read, first, places });
    }
    Ok((header, all))
}

/// Where the targets other than the machine itself are.
fn endpoints(config: &Config, found: &[(Option<&Support>, Vec<Gauge>)]) -> Vec<String> {
    let others = config.targets.iter().zip(found).filter(|(target, _)| !is_host(target.spec));
    others
        .map(|(target, (support, _))| match support {
            Some(support) if !support.endpoint.is_empty() => support.endpoint.clone(),
            _ => target.section.endpoint.clone(),
        })
        .collect()
}

fn about(target: &TargetConfig, support: Option<&Support>, role: Role) -> Map<String, Value> {
    let mut about = Map::new();
    let endpoint = match support {
        Some(support) if !support.endpoint.is_empty() => &support.endpoint,
        _ => &target.section.endpoint,
    };
    if !endpoint.is_empty() {
        about.insert("endpoint".to_owned(), json!(redact::endpoint(endpoint)));
        if let Some(host) = host_of(endpoint) {
            about.insert("host".to_owned(), json!(host));
        }
    }
    if let Some(name) = &target.one_of {
        about.insert("one_of".to_owned(), json!(name));
    }
    if let Some(address) = target.address() {
        about.insert("address".to_owned(), json!(address));
    }
    about.insert("role".to_owned(), json!(role.name()));
    if let Some(support) = support {
        for (key, text) in [("product", &support.product), ("version", &support.version)] {
            if !text.is_empty() {
                about.insert(key.to_owned(), json!(text));
            }
        }
    }
    about.insert("timeout_ms".to_owned(), json!(target.section.timeout.as_secs_f64() * 1e3));
    if let Some(every) = target.every {
        about.insert("every_s".to_owned(), json!(every.as_secs_f64()));
    }
    for (key, value) in support.map(|support| support.facts.as_slice()).unwrap_or_default() {
        if !redact::is_secret(key) && !about.contains_key(key) {
            about.insert(key.clone(), value.clone());
        }
    }
    about
}
