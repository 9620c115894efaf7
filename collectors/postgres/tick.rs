//! The tick's one statement: put together from what the server has, prepared once, and its one row turned into values.
//!
//! It is prepared in SQL (`PREPARE`, `EXECUTE`): 0.1 ms a tick in place of 1.2 ms for planning it anew (measured on 15 and 18),
//! and the answer still comes as text.

use super::gauges::{ITEMS, Origin, When};
use super::views::{Catalogue, View};
use crate::api::{Capacity, Gauge, Reading};
use crate::sql::{Row, cell};
use std::collections::{BTreeMap, HashSet};

/// What this run's columns depend on.
#[derive(Clone, Debug, Default)]
pub struct Features {
    /// Conditions that hold.
    pub holds: Vec<When>,
    /// Views that must not be read: denied, broken, or plausible and wrong.
    pub without: Vec<View>,
    /// Gauges that would be plausible and wrong.
    pub hidden: Vec<&'static str>,
}

impl Features {
    fn holds(&self, when: When) -> bool {
        when == When::Always || self.holds.contains(&when)
    }
}

/// A column of the run and where its value comes from.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    /// The gauge.
    pub gauge: Gauge,
    /// Its source; none where it is not part of the statement.
    pub origin: Option<Origin>,
}

/// The columns of this server.
pub fn settle(catalogue: &Catalogue, features: &Features) -> Vec<Chosen> {
    let can = |origin: &&Origin| !features.without.contains(&origin.view) && catalogue.can(origin.view, origin.needs);
    let mut chosen: Vec<Chosen> = ITEMS
        .iter()
        .filter(|item| features.holds(item.when) && !features.hidden.contains(&item.gauge.name))
        .filter_map(|item| match item.from.iter().find(can) {
            None if !item.from.is_empty() => None,
            origin => Some(Chosen { gauge: item.gauge, origin: origin.copied() }),
        })
        .collect();
    let names: HashSet<&str> = chosen.iter().map(|chosen| chosen.gauge.name).collect();
    for one in &mut chosen {
        if matches!(one.gauge.capacity, Capacity::Column(column) if !names.contains(column)) {
            one.gauge.capacity = Capacity::None;
        }
    }
    chosen
}

/// What stands in a cell of the row beside gauges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// When this view's statistics were last reset.
    Reset(View),
    /// When the server was started.
    Started,
    /// Whether it is a standby.
    Standby,
    /// How many sessions of clients we may not look into.
    Hidden,
}

/// A cell of the row.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cell {
    Gauge(&'static str, View),
    Mark(Mark),
}

impl Cell {
    /// The column's name in the answer, for people who look at it; cells are found by their place.
    fn alias(self) -> String {
        match self {
            Self::Gauge(name, _) => name.to_owned(),
            Self::Mark(Mark::Reset(view)) => format!("reset_{view:?}").to_lowercase(),
            Self::Mark(mark) => format!("{mark:?}").to_lowercase(),
        }
    }
}

/// The statement and how to read its answer.
#[derive(Clone, Debug, Default)]
pub struct Tick {
    views: BTreeMap<View, Vec<String>>,
    cells: Vec<Cell>,
}

/// Sessions whose state we cannot see: of others' users without `pg_read_all_stats`, or with `track_activities` off.
const HIDDEN: &str = "count(*) FILTER (WHERE datid IS NOT NULL AND usesysid IS NOT NULL AND query = '<insufficient privilege>' OR state = 'disabled')";

impl Tick {
    /// Puts the statement together.
    pub fn new(chosen: &[Chosen], catalogue: &Catalogue) -> Self {
        let mut cells: BTreeMap<View, Vec<(Cell, String)>> = BTreeMap::new();
        for Chosen { gauge, origin } in chosen {
            let Some(origin) = origin.filter(|_| gauge.is_read()) else { continue };
            cells.entry(origin.view).or_default().push((Cell::Gauge(gauge.name, origin.view), origin.expression.to_owned()));
        }
        let views: Vec<View> = cells.keys().copied().collect();
        for view in views {
            if catalogue.can(view, &["stats_reset"]) && view.relation().is_some() {
                let when = "extract(epoch FROM max(stats_reset))".to_owned();
                cells.entry(view).or_default().push((Cell::Mark(Mark::Reset(view)), when));
            }
        }
        if let Some(sessions) = cells.get_mut(&View::Sessions) {
            sessions.push((Cell::Mark(Mark::Hidden), HIDDEN.to_owned()));
        }
        let server = cells.entry(View::Server).or_default();
        server.push((Cell::Mark(Mark::Started), "extract(epoch FROM pg_postmaster_start_time())".to_owned()));
        server.push((Cell::Mark(Mark::Standby), "pg_is_in_recovery()::int".to_owned()));
        let mut tick = Self::default();
        for (view, of_the_view) in cells {
            for (cell, expression) in of_the_view {
                tick.views.entry(view).or_default().push(format!("{expression} AS {}", cell.alias()));
                tick.cells.push(cell);
            }
        }
        tick
    }

    /// One view's part alone, to find out whether it can be read.
    pub fn part(&self, view: View) -> Option<String> {
        self.views.get(&view).map(|expressions| format!("SELECT {}{}", expressions.join(", "), view.from()))
    }

    /// The views that it reads.
    pub fn views(&self) -> impl Iterator<Item = View> + '_ {
        self.views.keys().copied()
    }

    /// Everything in one statement, one row.
    pub fn sql(&self) -> String {
        let parts: Vec<String> =
            self.views().filter_map(|view| self.part(view).map(|part| format!("({part}) AS s{}", view as usize))).collect();
        format!("SELECT * FROM {}", parts.join(", "))
    }

    /// Prepares it in the session.
    pub fn prepare(&self) -> String {
        format!("PREPARE whatgives_tick AS {}", self.sql())
    }

    /// Asks for one row.
    pub const EXECUTE: &'static str = "EXECUTE whatgives_tick";

    /// Turns the row into values. A text that is no number is missing and noted; so are the sessions' values while some of
    /// them may not be looked into.
    pub fn parse(&self, rows: &[Row]) -> Parsed {
        let mut parsed = Parsed::default();
        let Some(row) = rows.first() else { return parsed };
        let hidden = self.cells.iter().position(|cell| *cell == Cell::Mark(Mark::Hidden));
        parsed.hidden = hidden.and_then(|at| cell(row, at)).and_then(number).unwrap_or(0.0);
        for (at, of) in self.cells.iter().enumerate() {
            let Some(text) = cell(row, at) else { continue };
            match of {
                Cell::Gauge(_, View::Sessions) if parsed.hidden > 0.0 => {}
                Cell::Gauge(name, _) => match number(text) {
                    Some(value) => parsed.reading.put(name, value),
                    None => parsed.odd.push((name, text.chars().take(40).collect())),
                },
                Cell::Mark(mark) => {
                    parsed.marks.insert(*mark, text.to_owned());
                }
            }
        }
        parsed
    }
}

/// One row of the tick's statement.
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    /// The values.
    pub reading: Reading,
    /// Marks to compare with the last row's.
    pub marks: BTreeMap<Mark, String>,
    /// Sessions that we may not look into.
    pub hidden: f64,
    /// Gauges whose text was no number.
    pub odd: Vec<(&'static str, String)>,
}

impl Parsed {
    /// Whether a mark is another one than in the last row.
    fn differs(&self, mark: Mark, last: &BTreeMap<Mark, String>) -> bool {
        last.get(&mark).zip(self.marks.get(&mark)).is_some_and(|(was, is)| was != is)
    }

    /// Why the counters begin again, if they do.
    pub fn restarted(&self, last: &BTreeMap<Mark, String>) -> Option<String> {
        self.differs(Mark::Started, last).then(|| "the server was started anew".to_owned())
    }

    /// What else changed since the last row, for people.
    pub fn changes(&self, last: &BTreeMap<Mark, String>) -> Vec<String> {
        let mut notes = Vec::new();
        if self.differs(Mark::Standby, last) {
            let now = if self.marks.get(&Mark::Standby).is_some_and(|text| text == "1") { "a standby" } else { "a primary" };
            notes.push(format!("the server is {now} now"));
        }
        for (mark, is) in &self.marks {
            // Before the first reset there is no time of one.
            if let Mark::Reset(view) = mark
                && !last.is_empty()
                && last.get(mark) != Some(is)
            {
                notes.push(format!("statistics were reset: {}", view.shows()));
            }
        }
        notes
    }
}

/// A number as the server writes it; what is not finite is none.
pub fn number(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests;
