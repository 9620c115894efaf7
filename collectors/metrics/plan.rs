//! Which series become which column, and the reading of one page by that plan.

use super::node;
use super::text::{Line, Sample, lines};
use crate::api::{Class, Gauge};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// How the values of several series become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// Their sum.
    #[default]
    Sum,
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// How many there are.
    Count,
}

/// Which series a column is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Pick {
    /// The series' name.
    pub series: String,
    /// Labels that it must have; a value that ends in `*` means what begins with the rest, `a|b` means either.
    pub labels: BTreeMap<String, String>,
    /// It has these labels and no other.
    pub exact: bool,
    /// What becomes of several.
    pub how: How,
}

impl Pick {
    fn takes(&self, labels: &[(Cow<'_, str>, Cow<'_, str>)]) -> bool {
        (!self.exact || labels.len() == self.labels.len())
            && self.labels.iter().all(|(name, wanted)| {
                let found = labels.iter().find(|(label, _)| label == name).map(|(_, value)| value.as_ref());
                let fits = |found: &str, wanted: &str| match wanted.strip_suffix('*') {
                    Some(start) => found.starts_with(start),
                    None => found == wanted,
                };
                match found {
                    Some(found) if self.exact => found == wanted,
                    Some(found) => wanted.split('|').any(|wanted| fits(found, wanted)),
                    // As in Prometheus, a label that is absent is an empty one.
                    None => wanted.is_empty(),
                }
            })
    }
}

/// One column.
#[derive(Clone, Debug)]
pub struct Column {
    /// What it means; its name is the column's.
    pub gauge: Gauge,
    /// What it is made of; nothing for a derived one.
    pub pick: Option<Pick>,
    /// It bounds another column: 0, a negative or an absurd value means "no limit" and is missing.
    pub bounds: bool,
}

/// The columns of a run.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// In the order of the file.
    pub columns: Vec<Column>,
    by_name: HashMap<String, Vec<usize>>,
    /// Series whose every label set got its own column at the start: another one that comes later has none.
    whole: BTreeSet<String>,
    /// The series that tells when the counters began.
    start: &'static str,
}

/// What one page gave.
#[derive(Clone, Debug, Default)]
pub struct Read {
    /// One a column; `None` where nothing matched or nothing was finite.
    pub values: Vec<Option<f64>>,
    /// Samples read.
    pub samples: usize,
    /// Lines that could not be read: the first with its number and why, and how many.
    pub bad: Option<(usize, &'static str, usize)>,
    /// A series that stood on the page twice; the first counts.
    pub repeated: Option<String>,
    /// A series without a column that has come since the start.
    pub stranger: Option<String>,
    /// When the counters began: the process's start, the latest of several; of a node exporter's page the machine's.
    pub started: Option<f64>,
}

impl Plan {
    /// Makes a plan of columns.
    pub fn new(columns: Vec<Column>, whole: BTreeSet<String>) -> Self {
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, column) in columns.iter().enumerate() {
            if let Some(pick) = &column.pick {
                by_name.entry(pick.series.clone()).or_default().push(at);
            }
        }
        let start = if by_name.contains_key(node::MARK) { node::START } else { "process_start_time_seconds" };
        Self { columns, by_name, whole, start }
    }

    /// Series whose every label set has a column.
    pub fn whole(&self) -> &BTreeSet<String> {
        &self.whole
    }

    /// How many series of a page have a column.
    pub fn matched(&self, body: &[u8]) -> usize {
        let has_column = |sample: &Sample<'_>| {
            let labels = sample.labels();
            let picks =
                self.by_name.get(sample.name.as_ref()).into_iter().flatten().filter_map(|at| self.columns[*at].pick.as_ref());
            picks.into_iter().any(|pick| pick.takes(&labels))
        };
        lines(body).filter(|(_, line)| matches!(line, Line::Sample(sample) if has_column(sample))).count()
    }

    /// Reads a page. A pure function of its bytes.
    pub fn read(&self, body: &[u8]) -> Read {
        let mut read = Read { values: vec![None; self.columns.len()], ..Read::default() };
        let mut seen: HashSet<(Cow<'_, str>, &[u8])> = HashSet::new();
        for (number, line) in lines(body) {
            match line {
                Line::Sample(sample) => {
                    read.samples += 1;
                    if sample.name == self.start {
                        read.started = read.started.into_iter().chain([sample.value]).reduce(f64::max);
                    }
                    let Some(columns) = self.by_name.get(sample.name.as_ref()) else { continue };
                    if seen.insert((sample.name.clone(), sample.raw_labels())) {
                        self.take(&sample, columns, &mut read);
                    } else {
                        read.repeated.get_or_insert_with(|| shown(&sample));
                    }
                }
                Line::Bad(why) => {
                    let (first, why, count) = read.bad.unwrap_or((number, why, 0));
                    read.bad = Some((first, why, count + 1));
                }
                _ => {}
            }
        }
        for (value, column) in read.values.iter_mut().zip(&self.columns) {
            // Java writes its largest whole number for "no limit", Go 0, others -1.
            *value = value.filter(|value| !column.bounds || (*value > 0.0 && *value < 9.2e18));
        }
        read
    }

    fn take(&self, sample: &Sample<'_>, columns: &[usize], read: &mut Read) {
        let labels = sample.labels();
        let mut found = false;
        for &at in columns {
            let Some(pick) = &self.columns[at].pick else { continue };
            if !pick.takes(&labels) {
                continue;
            }
            found = true;
            // NaN is how exporters write "unset"; 2^64 - 1 is a sentinel of the same meaning.
            if !sample.value.is_finite() || sample.value >= 18_446_744_073_709_551_615.0 {
                continue;
            }
            // Of what waits nobody can count less than none: -1 is how exporters say that they do not know.
            if sample.value < 0.0 && self.columns[at].gauge.class == Class::Queue {
                continue;
            }
            let value = &mut read.values[at];
            *value = Some(match (*value, pick.how) {
                (before, How::Count) => before.unwrap_or(0.0) + 1.0,
                (None, _) => sample.value,
                (Some(before), How::Sum) => before + sample.value,
                (Some(before), How::Max) => before.max(sample.value),
                (Some(before), How::Min) => before.min(sample.value),
            });
        }
        if !found && self.whole.contains(sample.name.as_ref()) {
            read.stranger.get_or_insert_with(|| shown(sample));
        }
    }
}

/// A series as written, shortened for a message.
fn shown(sample: &Sample<'_>) -> String {
    let labels = String::from_utf8_lossy(sample.raw_labels());
    let text = if labels.is_empty() { sample.name.to_string() } else { format!("{}{{{labels}}}", sample.name) };
    if text.chars().count() > 120 { text.chars().take(119).chain(['…']).collect() } else { text }
}

/// Makes a column's name of any text: snake case, ASCII.
pub fn column_name(parts: &[&str]) -> String {
    let mut name = String::new();
    for part in parts {
        if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
        let mut short = 0;
        for c in part.chars() {
            let plain = if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
            // A label may be a whole URL.
            if (plain == '_' && name.ends_with('_')) || (parts.len() > 1 && short >= 60) {
                continue;
            }
            short += 1;
            name.push(plain);
        }
    }
    let name = name.trim_matches('_');
    match name.bytes().next() {
        None => "series".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("n{name}"),
        Some(_) => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Class, Unit};

    fn column(series: &str, labels: &[(&str, &str)], exact: bool, how: How, bounds: bool) -> Column {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let pick = Pick { series: series.to_owned(), labels, exact, how };
        Column { gauge: Gauge::new("x", Class::Level, Unit::Count, ""), pick: Some(pick), bounds }
    }

    fn values(columns: Vec<Column>, page: &str) -> Vec<Option<f64>> {
        Plan::new(columns, BTreeSet::new()).read(page.as_bytes()).values
    }

    const PAGE: &str = "q{pool=\"a\",kind=\"r\"} 3\nq{pool=\"b\"} 4\nq 5\nq{pool=\"c\"} NaN\nz{code=\"500\"} 1\nz{code=\"503\"} 2\nz{code=\"200\"} 9\n";

    #[test]
    fn labels_choose_and_several_become_one() {
        let found = values(
            vec![
                column("q", &[], false, How::Sum, false),
                column("q", &[], false, How::Max, false),
                column("q", &[], false, How::Min, false),
                column("q", &[], true, How::Sum, false),
                column("q", &[("pool", "a")], false, How::Sum, false),
                column("q", &[("pool", "a")], true, How::Sum, false),
                column("q", &[("pool", "")], false, How::Sum, false),
                column("z", &[("code", "5*")], false, How::Sum, false),
            ],
            PAGE,
        );
        assert_eq!(found, [Some(12.0), Some(5.0), Some(3.0), Some(5.0), Some(3.0), None, Some(5.0), Some(3.0)]);
    }

    #[test]
    fn what_nothing_matches_or_is_not_finite_is_missing_and_never_0() {
        let columns = vec![
            column("absent", &[], false, How::Sum, false),
            column("q", &[("pool", "c")], false, How::Sum, false),
            column("z", &[("code", "4*")], false, How::Sum, false),
        ];
        assert_eq!(values(columns, PAGE), [None, None, None]);
        assert_eq!(values(vec![column("s", &[], false, How::Sum, false)], "s 18446744073709551615\n"), [None]);
        assert_eq!(values(vec![column("s", &[], false, How::Sum, false)], "s 0\n"), [Some(0.0)]);
    }

    #[test]
    fn a_limit_of_0_or_of_all_there_is_means_none() {
        for (text, expected) in [("0", None), ("-1", None), ("9223372036854775807", None), ("+Inf", None), ("20", Some(20.0))] {
            assert_eq!(values(vec![column("s", &[], false, How::Sum, true)], &format!("s {text}\n")), [expected], "{text}");
        }
    }

    #[test]
    fn a_series_that_stands_twice_counts_once_and_is_named() {
        let read = Plan::new(vec![column("s", &[], false, How::Sum, false)], BTreeSet::new())
            .read(b"s{a=\"b\"} 1\ns{a=\"b\"} 2\ns{a=\"c\"} 4\n");
        assert_eq!((read.values, read.repeated.as_deref()), (vec![Some(5.0)], Some("s{a=\"b\"}")));
    }

    #[test]
    fn bad_lines_and_strangers_are_told() {
        let plan = Plan::new(vec![column("s", &[("a", "b")], true, How::Sum, false)], BTreeSet::from(["s".to_owned()]));
        let read = plan.read(b"s{a=\"b\"} 1\noops\ns{a=\"new\"} 2\nworse x\n");
        assert_eq!(read.bad, Some((2, "no value after the name", 2)));
        assert_eq!(read.stranger.as_deref(), Some("s{a=\"new\"}"));
        assert_eq!(read.samples, 2);
    }

    #[test]
    fn column_names_are_snake_case_and_never_empty() {
        assert_eq!(column_name(&["job:req:rate5m"]), "job_req_rate5m");
        assert_eq!(column_name(&["pool", "HikariPool-1"]), "pool_hikaripool_1");
        assert_eq!(column_name(&["pool", "/users/{id}?x"]), "pool_users_id_x");
        assert_eq!(column_name(&["größe"]), "gr_e");
        assert_eq!((column_name(&["9"]), column_name(&["{}"])), ("n9".to_owned(), "series".to_owned()));
        assert!(column_name(&["a", &"x".repeat(500)]).len() < 80);
    }
}
