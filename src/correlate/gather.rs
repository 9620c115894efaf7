//! The ticks, read once in a streaming way: one series a gauge on bins of one width, derived gauges worked out.

use crate::judge::grid::Grid;
use crate::judge::guess;
use crate::judge::robust::quantile;
use crate::judge::series::{Follower, Value};
use crate::text::InputError;
use crate::ticks::{Capacity, Child, Meaning, Reader, Row, Run, Target};
use collectors::api::{Class, Kind, Unit};
use std::collections::HashMap;
use std::path::Path;

/// How many bins are kept before neighbours are joined.
const MOST_BINS: usize = 1 << 14;
/// The width that the judging aims at: fine enough for an order, coarse enough that neighbours are not one reading twice.
const STEP_S: f64 = 1.0;
const BINS_AIMED_AT: f64 = 300.0;

/// One gauge over the run.
#[derive(Clone, Debug)]
pub struct Gauge {
    /// The column.
    pub name: String,
    /// The instance it belongs to.
    pub target: String,
    /// What was declared.
    pub meaning: Meaning,
    /// What it means; `None` where it says nothing that can be judged.
    pub class: Option<Class>,
    /// Whether the class was guessed from the name.
    pub guessed: bool,
    /// States, or rates per second; NaN where nothing was read.
    pub values: Vec<f64>,
}

impl Gauge {
    /// Whether it was read at all.
    pub fn was_read(&self) -> bool {
        self.values.iter().any(|value| value.is_finite())
    }
}

/// What is to be known of the sampling itself.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// Rows read.
    pub rows: u64,
    /// Rows whose time was not after the row before.
    pub backwards: u64,
    /// Ticks that were skipped.
    pub missed: u64,
    /// The median of the lateness.
    pub late_p50_ms: f64,
    /// The 99th percentile of the lateness.
    pub late_p99_ms: f64,
    /// Column and bin of every reset.
    pub resets: Vec<(String, usize)>,
}

/// A whole run on bins.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The `#run` line.
    pub run: Run,
    /// The `#target` lines.
    pub targets: Vec<Target>,
    /// The wrapped driver.
    pub children: Vec<Child>,
    /// The middle of the first bin, Unix milliseconds.
    pub start_ms: f64,
    /// Seconds in a bin.
    pub step_s: f64,
    /// How many bins.
    pub bins: usize,
    /// Reads in a bin.
    pub readings: f64,
    /// Every column and every derived gauge.
    pub gauges: Vec<Gauge>,
    /// The sampling itself.
    pub health: Health,
    index: HashMap<String, usize>,
}

impl Frame {
    /// Bins without any gauge.
    pub fn empty(start_ms: f64, step_s: f64, bins: usize) -> Self {
        Self {
            run: Run::default(),
            targets: Vec::new(),
            children: Vec::new(),
            start_ms,
            step_s,
            bins,
            readings: 1.0,
            gauges: Vec::new(),
            health: Health::default(),
            index: HashMap::new(),
        }
    }

    /// Adds a gauge whose values are on these bins.
    pub fn put(&mut self, gauge: Gauge) {
        self.index.insert(gauge.name.clone(), self.gauges.len());
        self.gauges.push(gauge);
    }

    /// A gauge by its column's name.
    pub fn gauge(&self, name: &str) -> Option<&Gauge> {
        self.index.get(name).map(|n| &self.gauges[*n])
    }

    /// Unix milliseconds of a bin's middle.
    pub fn at_ms(&self, bin: usize) -> f64 {
        self.start_ms + bin as f64 * self.step_s * 1e3
    }

    /// Seconds since the run's start of a bin's middle.
    pub fn elapsed_s(&self, bin: usize) -> f64 {
        (self.at_ms(bin) - self.run_start_ms()) / 1e3
    }

    /// The run's start.
    pub fn run_start_ms(&self) -> f64 {
        self.run.start_unix_ms as f64
    }

    /// How many bins so many seconds are, at least `least`.
    pub fn bins_of(&self, seconds: f64, least: usize) -> usize {
        ((seconds / self.step_s).round() as usize).max(least)
    }

    /// What bounds a gauge, per bin. A place that the sampler itself takes is nobody else's.
    pub fn capacity(&self, gauge: &Gauge) -> Option<Vec<f64>> {
        let places = gauge.class == Some(Class::Utilisation) && gauge.meaning.kind == Kind::Gauge;
        let own = if places { gauge.meaning.own } else { 0.0 };
        match gauge.meaning.capacity.as_ref()? {
            Capacity::Fixed(value) => Some(vec![*value - own; self.bins]),
            Capacity::Column(name) => {
                let column = &self.gauge(name)?.values;
                // A capacity is a setting: where it was not read it is what it was.
                let mut last = quantile(column.iter().copied(), 0.5);
                let held = column.iter().map(|value| {
                    last = if value.is_finite() { *value } else { last };
                    last - own
                });
                Some(held.collect())
            }
        }
    }
}

/// Reads a file of ticks.
pub fn gather(path: &Path) -> Result<Frame, InputError> {
    let mut reader = Reader::open(path)?;
    let header = reader.header().clone();
    let declared: HashMap<&str, &Meaning> = header.gauges.iter().map(|(name, meaning)| (name.as_str(), meaning)).collect();
    let meanings: Vec<Meaning> = header
        .columns
        .iter()
        .map(|name| declared.get(name.as_str()).map_or_else(|| Meaning::undeclared(name), |m| (*m).clone()))
        .collect();
    let mut followers: Vec<Follower> = meanings.iter().map(|meaning| Follower::new(meaning.kind, meaning.own)).collect();

    let (mut row, mut health, mut late) = (Row::default(), Health::default(), Vec::new());
    if !reader.next_row(&mut row)? {
        return Err(InputError::new(path, "has no rows").hint("was the sampler stopped before its first tick?"));
    }
    let tick_ms = if header.run.tick_ms > 0.0 { header.run.tick_ms } else { 1000.0 };
    let start = if header.run.start_unix_ms > 0 { (header.run.start_unix_ms).min(row.unix_ms) } else { row.unix_ms };
    let mut grid = Grid::new(start as f64, tick_ms, header.columns.len(), MOST_BINS);
    let mut resets = Vec::new();
    let (mut last_ms, mut last_tick) = (i64::MIN, None::<u64>);
    loop {
        health.rows += 1;
        if row.unix_ms <= last_ms {
            health.backwards += 1;
            followers.iter_mut().for_each(Follower::forget);
        }
        if let Some(skipped) = last_tick.and_then(|last| row.tick.checked_sub(last + 1)) {
            health.missed += skipped;
        }
        (last_ms, last_tick) = (row.unix_ms, Some(row.tick));
        let late_ms = if row.late_ms.is_finite() { row.late_ms } else { 0.0 };
        if late.len() < 100_000 {
            late.push(late_ms);
        }
        let at_s = (row.unix_ms as f64 + late_ms) / 1e3;
        let within = grid.open(row.unix_ms as f64);
        for (n, (cell, follower)) in row.cells.iter().zip(&mut followers).enumerate() {
            match follower.read(at_s, *cell, tick_ms / 1e3) {
                Some(Value::State(value)) if within => grid.add(n, value, 1.0),
                Some(Value::Amount { amount, seconds }) if within => grid.add(n, amount, seconds),
                Some(Value::Reset) => resets.push((n, row.unix_ms as f64)),
                _ => {}
            }
        }
        if !reader.next_row(&mut row)? {
            break;
        }
    }
    grid.close();
    (health.late_p50_ms, health.late_p99_ms) = (quantile(late.iter().copied(), 0.5), quantile(late, 0.99));

    let span_s = grid.len() as f64 * grid.width_ms() / 1e3;
    let aimed_ms = (span_s / BINS_AIMED_AT).min(STEP_S) * 1e3;
    grid.join((aimed_ms / grid.width_ms()).round().max(1.0) as usize);

    let mut frame = Frame {
        run: header.run.clone(),
        targets: header.targets.clone(),
        children: reader.children().to_vec(),
        readings: (grid.width_ms() / tick_ms).max(1.0),
        health,
        ..Frame::empty(grid.start_ms(), grid.width_ms() / 1e3, grid.len())
    };
    if frame.run.start_unix_ms <= 0 {
        frame.run.start_unix_ms = start;
    }
    for (column, at_ms) in resets {
        let bin = (((at_ms - frame.start_ms) / grid.width_ms()).round().max(0.0) as usize).min(frame.bins.saturating_sub(1));
        frame.health.resets.push((header.columns[column].clone(), bin));
    }
    for (n, (name, meaning)) in header.columns.iter().zip(meanings).enumerate() {
        let mut values = grid.mean(n);
        values.resize(frame.bins, f64::NAN);
        frame.add(name, meaning, values);
    }
    for (name, meaning) in &header.derived {
        let sums = |names: &[String]| derived_part(&grid, &header.columns, names, frame.bins);
        let values = match (&meaning.share, &meaning.of) {
            (Some([a, b]), _) => ratio(sums(a), sums(b), true),
            (None, Some([a, b])) => ratio(sums(a), sums(b), false),
            (None, None) => None,
        };
        if let Some(values) = values {
            frame.add(name, meaning.clone(), values);
        }
    }
    Ok(frame)
}

impl Frame {
    fn add(&mut self, name: &str, meaning: Meaning, values: Vec<f64>) {
        let target = self
            .targets
            .iter()
            .map(|target| target.instance.as_str())
            .filter(|instance| name.strip_prefix(instance).is_some_and(|rest| rest.starts_with('.')))
            .max_by_key(|instance| instance.len())
            .or_else(|| name.split_once('.').map(|(instance, _)| instance))
            .unwrap_or(name)
            .to_owned();
        let own_part = name.strip_prefix(&target).unwrap_or(name).trim_start_matches('.');
        let (class, guessed) = match (meaning.class, own_part) {
            (Some(class), _) => (Some(class), meaning.guessed),
            // The sampler's own two columns of every target: judged as what they are, elsewhere.
            (None, "up" | "poll_ms") => (None, false),
            (None, _) => (guess::class(name, meaning.kind), true),
        };
        self.put(Gauge { name: name.to_owned(), target, meaning, class, guessed, values });
    }
}

/// The sum of several columns per bin; missing where any of them is.
fn derived_part(grid: &Grid, columns: &[String], names: &[String], bins: usize) -> Option<Vec<f64>> {
    let mut total = vec![0.0; bins];
    for name in names {
        let at = columns.iter().position(|column| column == name)?;
        for (sum, value) in total.iter_mut().zip(grid.mean(at)) {
            *sum += value;
        }
    }
    Some(total)
}

/// a / (a + b), or a / b; 0/0 is missing.
fn ratio(a: Option<Vec<f64>>, b: Option<Vec<f64>>, share: bool) -> Option<Vec<f64>> {
    let (a, b) = (a?, b?);
    Some(
        a.iter()
            .zip(&b)
            .map(|(a, b)| {
                let whole = if share { a + b } else { *b };
                if whole > 0.0 { a / whole } else { f64::NAN }
            })
            .collect(),
    )
}

/// A gauge's unit in milliseconds, where it is a time.
pub fn unit_ms(meaning: &Meaning) -> Option<f64> {
    meaning.unit_in_ms().or_else(|| match meaning.unit.as_str() {
        "msec" | "milliseconds" => Unit::Milliseconds.in_ms(),
        "usec" | "microseconds" => Unit::Microseconds.in_ms(),
        "sec" | "seconds" => Unit::Seconds.in_ms(),
        _ => None,
    })
}
