//! Single requests to intervals, in memory that follows the length of the run and never the size of the log.
//!
//! A request counts as started in the second of its start, and as ok, failed or refused in the second of its end; the
//! latencies of the ok ones are kept as a sparse histogram of the second in which they ended. In flight is the running
//! sum of started less ended. The log's order does not matter. Past [`MOST_CELLS`] seconds × steps the seconds are joined
//! two by two, so that a soak of days, or a file of nonsense stamps, stays small.

use super::outcome::Outcome;
use super::steps::{KEPT, OTHER, UNNAMED};
use crate::hist::Hist;
use crate::timeline::{ALL, Interval, Offered};
use std::collections::{BTreeMap, HashMap};

const MOST_CELLS: usize = 1 << 16;
/// Nor are there ever more rows of all steps together than this: a day and a half of seconds.
const MOST_ROWS: i64 = 1 << 17;

/// One request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub start_us: i64,
    pub end_us: i64,
    /// The site's time.
    pub ms: f64,
    pub step: u16,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, Default)]
struct Cell {
    offered: u32,
    started: u32,
    ok: u32,
    failed: u32,
    refused: u32,
    dropped: u32,
    aborted: u32,
    max_ms: f64,
    hist: Hist,
}

impl Cell {
    fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.started += other.started;
        self.ok += other.ok;
        self.failed += other.failed;
        self.refused += other.refused;
        self.dropped += other.dropped;
        self.aborted += other.aborted;
        self.max_ms = self.max_ms.max(other.max_ms);
        self.hist.merge(&other.hist);
    }

    fn ended(&self) -> u32 {
        self.ok + self.failed + self.refused + self.aborted
    }

    fn is_empty(&self) -> bool {
        self.offered + self.started + self.ended() + self.dropped == 0
    }
}

#[derive(Clone, Debug, Default)]
struct Slot {
    /// By step.
    cells: Vec<Cell>,
    /// Dropped without a step, in requests, and as the log counts them until their file is done.
    dropped: f64,
    dropped_raw: f64,
    /// Visitors of the files that are done, and of the one being read.
    vus: f64,
    vus_now: Option<(usize, f64)>,
    /// Whether the log shows that its driver was alive.
    alive: bool,
}

/// All requests of a run.
pub(super) struct Cells {
    slots: BTreeMap<i64, Slot>,
    width_us: i64,
    held: usize,
    first_us: i64,
    last_us: i64,
    /// Whether stamps are whole seconds, so that the ends of the run are not known better.
    pub coarse: bool,
    /// Whether any file gave its own schedule.
    scheduled: bool,
    pub aborted: u64,
    pub requests: u64,
}

impl Default for Cells {
    fn default() -> Self {
        Self {
            slots: BTreeMap::new(),
            width_us: 1_000_000,
            held: 0,
            first_us: i64::MAX,
            last_us: i64::MIN,
            coarse: false,
            scheduled: false,
            aborted: 0,
            requests: 0,
        }
    }
}

impl Cells {
    pub fn is_empty(&self) -> bool {
        self.requests == 0
    }

    /// How many requests a slot has in which anything happens.
    pub fn per_busy_interval(&self) -> f64 {
        let busy = self.slots.values().filter(|slot| slot.cells.iter().any(|cell| !cell.is_empty())).count();
        self.requests as f64 / busy.max(1) as f64
    }

    /// Microseconds from the first to the last event.
    pub fn span_us(&self) -> i64 {
        self.last_us.saturating_sub(self.first_us).max(0)
    }

    /// Microseconds of the first event.
    pub fn first_us(&self) -> i64 {
        self.first_us
    }

    fn slot(&mut self, us: i64) -> &mut Slot {
        let key = self.key(us);
        self.slots.entry(key).or_default()
    }

    fn cell(&mut self, us: i64, step: u16) -> &mut Cell {
        let (key, step) = (self.key(us), usize::from(step));
        let slot = self.slots.entry(key).or_default();
        if slot.cells.len() <= step {
            self.held += step + 1 - slot.cells.len();
            slot.cells.resize(step + 1, Cell::default());
        }
        &mut slot.cells[step]
    }

    /// The slot of a moment, once there is room for it.
    fn key(&mut self, us: i64) -> i64 {
        self.first_us = self.first_us.min(us);
        self.last_us = self.last_us.max(us);
        if self.held + self.slots.len() > MOST_CELLS {
            self.join();
        }
        us.div_euclid(self.width_us)
    }

    /// Joins the slots two by two.
    fn join(&mut self) {
        self.width_us *= 2;
        self.held = 0;
        for (key, from) in std::mem::take(&mut self.slots) {
            let to = self.slots.entry(key.div_euclid(2)).or_default();
            if to.cells.len() < from.cells.len() {
                self.held += from.cells.len() - to.cells.len();
                to.cells.resize(from.cells.len(), Cell::default());
            }
            to.cells.iter_mut().zip(&from.cells).for_each(|(to, from)| to.add(from));
            to.dropped += from.dropped;
            to.dropped_raw += from.dropped_raw;
            // The later one: visitors are a state.
            (to.vus, to.vus_now) = if from.alive { (from.vus, from.vus_now) } else { (to.vus, to.vus_now) };
            to.alive |= from.alive;
        }
    }

    /// Counts a request.
    pub fn request(&mut self, request: Request) {
        self.requests += 1;
        if request.outcome == Outcome::Dropped {
            self.cell(request.start_us, request.step).dropped += 1;
            return;
        }
        self.cell(request.start_us, request.step).started += 1;
        let cell = self.cell(request.end_us.max(request.start_us), request.step);
        match request.outcome {
            Outcome::Ok => {
                cell.ok += 1;
                cell.max_ms = cell.max_ms.max(request.ms);
                cell.hist.add_ms(request.ms);
            }
            Outcome::Refused => cell.refused += 1,
            Outcome::Aborted => {
                cell.aborted += 1;
                self.aborted += 1;
            }
            _ => cell.failed += 1,
        }
    }

    /// Counts a request in the schedule.
    pub fn offered(&mut self, us: i64, step: u16) {
        self.scheduled = true;
        self.cell(us, step).offered += 1;
    }

    /// Counts what was never sent, without a step and in the log's own unit until [`Cells::settle_dropped`].
    pub fn dropped_raw(&mut self, us: i64, count: f64) {
        self.slot(us).dropped_raw += count;
    }

    /// Turns what the file just read dropped into requests.
    pub fn settle_dropped(&mut self, factor: f64) {
        for slot in self.slots.values_mut() {
            slot.dropped += std::mem::take(&mut slot.dropped_raw) * factor;
        }
    }

    /// Visitors at a moment, of one of the files.
    pub fn vus(&mut self, us: i64, file: usize, count: f64) {
        let slot = self.slot(us);
        slot.alive = true;
        match slot.vus_now {
            Some((before, value)) if before != file => slot.vus += value,
            _ => {}
        }
        slot.vus_now = Some((file, count));
    }

    /// Joins slots until the rows of the whole run are few enough: a log with a gap of days has few slots that hold
    /// anything and would still make a row for every second.
    pub fn settle(&mut self) {
        while self.span_us() / self.width_us > MOST_ROWS {
            self.join();
        }
    }

    /// The intervals of all and of each step, and how long each is. `names` by step; the rarest past the limit become
    /// `other`, and the second value says whether there were any.
    pub fn finish(mut self, names: &[String], provenance: Offered) -> (Vec<Interval>, bool) {
        if self.slots.is_empty() {
            return (Vec::new(), false);
        }
        let (names, to, capped) = kept(&self.slots, names);
        let unnamed = names.len() == 1 && names[0] == UNNAMED;
        let (first, last) = (self.first_us.div_euclid(self.width_us), self.last_us.div_euclid(self.width_us));
        let mut in_flight = vec![0_i64; names.len()];
        let mut out = Vec::new();
        for key in first..=last {
            let slot = self.slots.remove(&key).unwrap_or_default();
            let mut cells = vec![Cell::default(); names.len()];
            for (step, cell) in slot.cells.into_iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
                cells[to[step]].add(&cell);
            }
            let (mut begin, mut end) = (key * self.width_us, (key + 1) * self.width_us);
            if !self.coarse {
                begin = begin.max(self.first_us);
                end = end.min(self.last_us);
            }
            let unix_ms = begin.div_euclid(1000);
            let row = |step: &str, cell: Cell, in_flight: i64| {
                let Cell { offered, started, ok, failed, refused, dropped, max_ms, hist, .. } = cell;
                Interval {
                    unix_ms,
                    dur_ms: ((end - unix_ms * 1000) as f64 / 1e3).max(1.0),
                    step: step.to_owned(),
                    offered: match provenance {
                        Offered::Scheduled if self.scheduled => Some(f64::from(offered)),
                        Offered::Iterations => Some(f64::from(started) + f64::from(dropped)),
                        Offered::Achieved => Some(f64::from(started)),
                        _ => None,
                    },
                    started: Some(f64::from(started)),
                    ok: Some(f64::from(ok)),
                    failed: Some(f64::from(failed)),
                    refused: Some(f64::from(refused)),
                    dropped: Some(f64::from(dropped)),
                    in_flight: Some(in_flight as f64),
                    vus: None,
                    max_ms: (ok > 0).then_some(max_ms),
                    ..percentiles(hist)
                }
            };
            let mut all = Cell::default();
            for (n, cell) in cells.iter().enumerate() {
                in_flight[n] += i64::from(cell.started) - i64::from(cell.ended());
                all.add(cell);
            }
            let mut every = row(ALL, all, in_flight.iter().sum());
            every.dropped = every.dropped.map(|dropped| dropped + slot.dropped);
            if provenance == Offered::Iterations {
                every.offered = every.offered.map(|offered| offered + slot.dropped);
            }
            every.vus = slot.vus_now.map(|(_, now)| slot.vus + now);
            out.push(every);
            for (n, cell) in cells.into_iter().enumerate() {
                if !unnamed && (!cell.is_empty() || in_flight[n] != 0) {
                    let mut step = row(&names[n], cell, in_flight[n]);
                    if provenance == Offered::Iterations {
                        // What was dropped has no step.
                        step.offered = None;
                    }
                    out.push(step);
                }
            }
        }
        (out, capped)
    }

    /// The longest stretch, in intervals, in which the log shows nothing at all and nothing was in flight: where it
    /// begins, in milliseconds, and how many intervals it lasts.
    pub fn longest_silence(&self) -> Option<(i64, i64)> {
        let (mut in_flight, mut before, mut longest) = (0_i64, None, None::<(i64, i64)>);
        for (key, slot) in &self.slots {
            if let Some(before) = before
                && in_flight <= 0
            {
                let silent: i64 = key - before - 1;
                if silent > longest.map_or(0, |(_, n)| n) {
                    longest = Some(((before + 1) * self.width_us / 1000, silent));
                }
            }
            in_flight += slot.cells.iter().map(|cell| i64::from(cell.started) - i64::from(cell.ended())).sum::<i64>();
            before = Some(*key);
        }
        longest
    }

    /// How long an interval is.
    pub fn width_ms(&self) -> f64 {
        self.width_us as f64 / 1e3
    }
}

/// Percentiles of an interval; left out where there are too few latencies to tell one. Without any latency there is no
/// histogram either: an empty cell is read back as none.
pub(super) fn percentiles(hist: Hist) -> Interval {
    let told = |q: f64, needed: u64| if hist.count() >= needed { hist.quantile_ms(q) } else { None };
    Interval {
        p50_ms: told(0.5, 1),
        p95_ms: told(0.95, 20),
        p99_ms: told(0.99, 100),
        hist: (hist.count() > 0).then_some(hist),
        ..Interval::default()
    }
}

/// The names that stay apart, most requests first, and for each step the place of its name.
fn kept(slots: &BTreeMap<i64, Slot>, names: &[String]) -> (Vec<String>, Vec<usize>, bool) {
    let mut totals: HashMap<&str, u64> = HashMap::new();
    for slot in slots.values() {
        for (cell, name) in slot.cells.iter().zip(names).filter(|(cell, _)| !cell.is_empty()) {
            *totals.entry(name).or_default() += u64::from(cell.started + cell.dropped + cell.offered).max(1);
        }
    }
    let mut ordered: Vec<(&str, u64)> = totals.into_iter().collect();
    ordered.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let capped = ordered.len() > KEPT;
    let mut kept: Vec<String> = ordered.iter().map(|(name, _)| (*name).to_owned()).take(KEPT).collect();
    if capped && !kept.iter().any(|name| name == OTHER) {
        kept.truncate(KEPT - 1);
        kept.push(OTHER.to_owned());
    }
    let other = kept.iter().position(|name| name == OTHER).unwrap_or(0);
    let to = names.iter().map(|name| kept.iter().position(|kept| kept == name).unwrap_or(other)).collect();
    (kept, to, capped)
}

#[cfg(test)]
mod tests;
