//! A gate on a column, followed row by row: after a run from its file, and while it runs from the sampler's own rows.
//!
//! **Question.** Did a column, or its share of what bounds it, break its limit? **Method.** Every row as it was read, not the
//! joined bins that the judging uses: 3,751 sessions of 5,000 in one tick are more than three quarters. A counter is compared
//! as its rate between two reads. **How it fails.** What happened between two ticks is not seen.

use super::held::Held;
use super::{Gate, GateError, Measure, Of};
use crate::judge::series::{Follower, Value};
use collectors::api::Kind;

/// A column of the rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Where it stands in a row's cells.
    pub at: usize,
    /// How the number behaves over time.
    pub kind: Kind,
    /// How much of it is the sampler's own.
    pub own: f64,
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A column.
    Plain(Column),
    /// Worked out from columns: a / (a + b).
    Share(Vec<Column>, Vec<Column>),
    /// Worked out from columns: a / b.
    Ratio(Vec<Column>, Vec<Column>),
}

/// What bounds a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// A number.
    Fixed(f64),
    /// Another column.
    Column(String),
}

/// The columns that there are.
pub trait Columns {
    /// What a name stands for.
    fn source(&self, name: &str) -> Option<Source>;
    /// What bounds a column.
    fn bound(&self, name: &str) -> Option<Bound>;
    /// A name that was perhaps meant.
    fn near(&self, name: &str) -> Option<String>;
}

/// A gate on a column while rows go by.
#[derive(Clone, Debug)]
pub struct GaugeGate {
    value: Series,
    bound: Divisor,
    held: Held,
    last_s: Option<f64>,
    shortest_s: f64,
    longest_gap: (f64, f64),
}

#[derive(Clone, Debug)]
enum Divisor {
    None,
    Fixed(f64),
    Series(Series),
}

impl GaugeGate {
    /// Finds the gate's columns; `None` where the gate is about something else.
    pub fn new(gate: &Gate, columns: &impl Columns) -> Result<Option<Self>, GateError> {
        let Measure::Gauge { column, of } = &gate.measure else { return Ok(None) };
        let series = |name: &str| {
            columns.source(name).map(Series::new).ok_or_else(|| {
                let error = gate.error(format!("the ticks have no column {name}"));
                match columns.near(name) {
                    Some(near) => error.hint(format!("is it {near}?")),
                    None => error,
                }
            })
        };
        let value = series(column)?;
        let bound = match of {
            None => Divisor::None,
            Some(Of::Column(name)) => Divisor::Series(series(name)?),
            Some(Of::Capacity) => match columns.bound(column) {
                Some(Bound::Fixed(bound)) => Divisor::Fixed(bound),
                Some(Bound::Column(name)) => Divisor::Series(series(&name)?),
                None => {
                    return Err(gate
                        .error(format!("no capacity is known of {column}"))
                        .hint("set it in the sampler's configuration, or divide by a column that holds it"));
                }
            },
        };
        let held = Held::new(gate);
        Ok(Some(Self { value, bound, held, last_s: None, shortest_s: f64::INFINITY, longest_gap: (0.0, 0.0) }))
    }

    /// A row; `counts` where it is in the gate's phase. Gives whether the gate has now been broken for its time.
    pub fn row(&mut self, at_s: f64, cells: &[f64], tick_s: f64, counts: bool) -> bool {
        let value = self.value.read(at_s, cells, tick_s);
        let value = match &mut self.bound {
            Divisor::None => value,
            Divisor::Fixed(bound) => value.map(|value| value / *bound),
            Divisor::Series(series) => {
                let bound = series.read(at_s, cells, tick_s);
                value.zip(bound).map(|(value, bound)| value / bound)
            }
        };
        let Some(value) = value.filter(|value| counts && value.is_finite()) else { return false };
        if let Some(last_s) = self.last_s.replace(at_s) {
            let gap = at_s - last_s;
            self.shortest_s = self.shortest_s.min(gap);
            if gap > self.longest_gap.0 {
                self.longest_gap = (gap, last_s);
            }
        }
        self.held.read(at_s, value)
    }

    /// What became of it.
    pub fn held(&self) -> &Held {
        &self.held
    }

    /// The longest stretch without a reading that was longer than the column's own period would make it: seconds, and where
    /// it began.
    pub fn gap(&self) -> Option<(f64, f64)> {
        (self.longest_gap.0 > (3.0 * self.shortest_s).max(1.0)).then_some(self.longest_gap)
    }
}

/// The values of a name.
#[derive(Clone, Debug)]
struct Series {
    kind: Combined,
    a: Vec<(usize, Follower)>,
    b: Vec<(usize, Follower)>,
}

#[derive(Clone, Copy, Debug)]
enum Combined {
    Plain,
    Share,
    Ratio,
}

impl Series {
    fn new(source: Source) -> Self {
        let follow = |columns: Vec<Column>| columns.iter().map(|c| (c.at, Follower::new(c.kind, c.own))).collect();
        let (kind, a, b) = match source {
            Source::Plain(column) => (Combined::Plain, vec![column], Vec::new()),
            Source::Share(a, b) => (Combined::Share, a, b),
            Source::Ratio(a, b) => (Combined::Ratio, a, b),
        };
        Self { kind, a: follow(a), b: follow(b) }
    }

    fn read(&mut self, at_s: f64, cells: &[f64], tick_s: f64) -> Option<f64> {
        let (a, b) = (sum(&mut self.a, at_s, cells, tick_s), sum(&mut self.b, at_s, cells, tick_s));
        match self.kind {
            Combined::Plain => a,
            Combined::Share => a.zip(b).map(|(a, b)| a / (a + b)),
            Combined::Ratio => a.zip(b).map(|(a, b)| a / b),
        }
    }
}

/// The sum of several columns; `None` where one was not read. All followers see the row, whatever the others said.
fn sum(columns: &mut [(usize, Follower)], at_s: f64, cells: &[f64], tick_s: f64) -> Option<f64> {
    let mut total = Some(0.0);
    for (at, follower) in columns {
        let value = match follower.read(at_s, cells.get(*at).copied().unwrap_or(f64::NAN), tick_s) {
            Some(Value::State(value)) => Some(value),
            Some(Value::Amount { amount, seconds }) => Some(amount / seconds),
            Some(Value::Reset) | None => None,
        };
        total = total.zip(value).map(|(total, value)| total + value);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Some3;

    impl Columns for Some3 {
        fn source(&self, name: &str) -> Option<Source> {
            let column = |at, kind| Column { at, kind, own: 0.0 };
            Some(match name {
                "db.sessions" => Source::Plain(Column { own: 1.0, ..column(0, Kind::Gauge) }),
                "db.most" => Source::Plain(column(1, Kind::Gauge)),
                "db.errors_total" => Source::Plain(column(2, Kind::Counter)),
                "db.hit_ratio" => Source::Share(vec![column(2, Kind::Counter)], vec![column(3, Kind::Counter)]),
                _ => return None,
            })
        }

        fn bound(&self, name: &str) -> Option<Bound> {
            (name == "db.sessions").then(|| Bound::Column("db.most".into()))
        }

        fn near(&self, name: &str) -> Option<String> {
            name.starts_with("db.").then(|| "db.sessions".to_owned())
        }
    }

    fn gate(text: &str, rows: &[[f64; 4]]) -> GaugeGate {
        let mut gate = GaugeGate::new(&text.parse().unwrap(), &Some3).unwrap().unwrap();
        for (second, row) in rows.iter().enumerate() {
            gate.row(second as f64, row, 1.0, true);
        }
        gate
    }

    #[test]
    fn a_share_of_capacity_counts_without_the_samplers_own_session() {
        let full = gate("db.sessions / capacity <= 0.75", &[[76.0, 100.0, 0.0, 0.0]]);
        assert_eq!((full.held().worst(), full.held().first()), (0.75, None));
        assert!(gate("db.sessions / db.most <= 0.75", &[[77.0, 100.0, 0.0, 0.0]]).held().first().is_some());
    }

    #[test]
    fn a_counter_is_its_rate_and_a_hit_ratio_that_of_its_parts() {
        let rows = [[0.0, 0.0, 10.0, 100.0], [0.0, 0.0, 13.0, 101.0], [0.0, 0.0, 13.0, 101.0]];
        assert_eq!(gate("db.errors_total < 5", &rows).held().worst(), 3.0);
        let ratio = gate("db.hit_ratio > 0.5", &rows);
        assert_eq!((ratio.held().worst(), ratio.held().readings()), (0.75, 1), "0/0 is not read");
    }

    #[test]
    fn a_stretch_without_readings_is_told() {
        let missing = [f64::NAN; 4];
        let there = [5.0, 100.0, 0.0, 0.0];
        let rows = [there, there, missing, missing, missing, missing, there];
        assert_eq!(gate("db.sessions < 9", &rows).gap(), Some((5.0, 1.0)));
        assert_eq!(gate("db.sessions < 9", &[there; 9]).gap(), None);
    }

    #[test]
    fn a_column_that_is_not_there_is_an_error_with_the_one_that_was_perhaps_meant() {
        let wrong = |text: &str| GaugeGate::new(&text.parse().unwrap(), &Some3).unwrap_err().to_string();
        assert!(wrong("db.sesions < 3").contains("no column db.sesions\nhint: is it db.sessions?"));
        assert!(wrong("db.most / capacity < 3").contains("no capacity is known of db.most"));
    }
}
