//! What is gathered from the logs of one run, and made into one timeline.

use super::aggregate::{Cells, Request};
use super::clock::{Bad, Clock};
use super::input::Input;
use super::outcome::{Outcome, judge};
use super::steps::{OTHER, Steps};
use super::{Options, caveat, checks, merge};
use crate::hist::Hist;
use crate::text::InputError;
use crate::timeline::{ALL, Driver, Interval, Offered, Timeline};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// How many bad rows are shown.
const BAD_SHOWN: usize = 3;
/// A log whose stamps span more than this many days is not one run.
const MOST_DAYS: i64 = 31;

/// A silence is a hole where the busy intervals make at least so many requests likely in it: fewer may be a few visitors
/// who all think at once.
const LIKELY: f64 = 100.0;

/// What a log can be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Many intervals, or requests with their times.
    #[default]
    Timeline,
    /// One row for the whole run, with its rate.
    Rung,
    /// Totals, without a rate.
    Summary,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Timeline => "timeline",
            Self::Rung => "rung",
            Self::Summary => "summary",
        }
    }
}

/// What is gathered from the logs of one run.
pub(super) struct Run<'o> {
    pub options: &'o Options,
    pub steps: Steps,
    pub cells: Cells,
    /// Intervals as each file gave them, where the driver logs intervals.
    pub files: Vec<Vec<Interval>>,
    /// Where the offered rate of each file comes from.
    pub offered: Option<Offered>,
    pub kind: Kind,
    /// `ok` or `all`.
    pub latency: &'static str,
    /// The window of the percentiles, where it is not the interval.
    pub window_ms: Option<f64>,
    /// How many files were begun: the number of the one being read is one less.
    pub file: usize,
    /// Rows read and rows that were bad, in the file being read.
    pub rows: u64,
    pub bad: u64,
    /// Of the rows, those of which nothing but their kind was looked at.
    pub passed_over: u64,
    pub more: Map<String, Value>,
    /// Rows for whole runs: a rung, and its steps.
    rungs: Vec<Interval>,
    rungs_end_ms: i64,
    drivers: Vec<String>,
    sources: Vec<String>,
    caveats: Vec<&'static str>,
    bad_rows: Vec<Value>,
    bad_total: u64,
    rows_total: u64,
    negative: u64,
    without_clock: u64,
    waited: [u64; 2],
    /// What requests waited in the driver, by step.
    waits: BTreeMap<u16, Hist>,
}

impl<'o> Run<'o> {
    pub fn new(options: &'o Options) -> Self {
        Self {
            options,
            steps: Steps::default(),
            cells: Cells::default(),
            files: Vec::new(),
            offered: None,
            kind: Kind::Timeline,
            latency: "ok",
            window_ms: None,
            file: 0,
            rows: 0,
            bad: 0,
            passed_over: 0,
            more: Map::new(),
            rungs: Vec::new(),
            rungs_end_ms: 0,
            drivers: Vec::new(),
            sources: Vec::new(),
            caveats: Vec::new(),
            bad_rows: Vec::new(),
            bad_total: 0,
            rows_total: 0,
            negative: 0,
            without_clock: 0,
            waited: [0; 2],
            waits: BTreeMap::new(),
        }
    }

    /// Begins a file.
    pub fn begin(&mut self, input: &Input) {
        self.file += 1;
        (self.rows, self.bad, self.passed_over) = (0, 0, 0);
        self.sources.push(input.file_name());
    }

    /// Names the driver of the file being read.
    pub fn driver(&mut self, name: impl Into<String>) {
        let name = name.into();
        if !self.drivers.contains(&name) {
            self.drivers.push(name);
        }
    }

    /// Says what the log lacks.
    pub fn caveat(&mut self, code: &'static str) {
        if !self.caveats.contains(&code) {
            self.caveats.push(code);
        }
    }

    /// Says where the offered rate of this file comes from; of several files the least certain counts.
    pub fn offered(&mut self, from: Offered) {
        let order = [Offered::Unknown, Offered::Achieved, Offered::Iterations, Offered::Scheduled, Offered::Plan];
        let place = |offered| order.iter().position(|one| *one == offered);
        self.offered = Some(self.offered.map_or(from, |before| if place(before) < place(from) { before } else { from }));
    }

    /// A closed loop: what was sent is what was answered.
    pub fn closed_loop(&mut self) {
        self.offered(Offered::Achieved);
        self.caveat(caveat::CLOSED_LOOP);
        self.caveat(caveat::COORDINATED_OMISSION);
    }

    /// When the driver was started, in microseconds since 1970, for a log without a clock; 0 where nobody told.
    pub fn origin_us(&mut self, input: &Input) -> i64 {
        self.without_clock += u64::from(!self.options.starts.iter().any(|(file, _)| *file == input.path));
        if self.without_clock > 1 {
            self.caveat(caveat::BEGUN_TOGETHER);
        }
        self.options.start_us(&input.path).unwrap_or_else(|| {
            self.caveat(caveat::RELATIVE_CLOCK);
            0
        })
    }

    /// Adds a rung: the row of all, and those of its steps. Where nobody tells when it began, rungs follow one another
    /// in the order of their files.
    pub fn rung(&mut self, input: &Input, begin_ms: Option<i64>, rows: impl IntoIterator<Item = Interval>) {
        self.kind = self.kind.max(Kind::Rung);
        let begin = begin_ms.or_else(|| Some(self.options.start_us(&input.path)? / 1000)).unwrap_or_else(|| {
            if self.kind == Kind::Rung {
                self.caveat(caveat::RELATIVE_CLOCK);
            }
            self.rungs_end_ms
        });
        for mut row in rows {
            row.unix_ms = begin;
            row.dur_ms = (row.dur_ms * 1e3).round() / 1e3;
            if row.step.is_empty() {
                ALL.clone_into(&mut row.step);
            }
            self.rungs_end_ms = self.rungs_end_ms.max(begin + row.dur_ms.ceil() as i64);
            self.rungs.push(row);
        }
        self.rows += 1;
    }

    /// Whether the driver waits for answers.
    pub fn is_closed_loop(&self) -> bool {
        self.caveats.contains(&caveat::CLOSED_LOOP)
    }

    /// Counts a row that could not be read.
    pub fn bad_row(&mut self, line: u64, why: impl Into<String>) {
        self.bad += 1;
        if self.bad_rows.len() < BAD_SHOWN {
            self.bad_rows.push(json!({"file": self.sources.last(), "line": line, "why": why.into()}));
        }
    }

    /// A stamp: a bad row is counted and gives `None`, a bad file is an error.
    pub fn stamp(&mut self, input: &Input, clock: &mut Clock, cell: &[u8], line: u64) -> Result<Option<i64>, InputError> {
        match clock.us(cell) {
            Ok(us) => Ok(Some(us)),
            Err(Bad::Row(why)) => {
                self.bad_row(line, why);
                Ok(None)
            }
            Err(Bad::File(why, hint)) => Err(input.error(why).at(line).hint(hint)),
        }
    }

    /// What became of a request, by the user's rules and the driver's word.
    pub fn judge(&self, ok: bool, code: &[u8], message: &[u8]) -> Outcome {
        judge(&self.options.outcomes, ok, code, message)
    }

    /// Counts a request known by its start and the site's time.
    pub fn started(&mut self, start_us: i64, ms: f64, step: u16, outcome: Outcome) {
        let us = (ms * 1e3).round().clamp(-1e15, 1e15) as i64;
        self.request(Request { start_us, end_us: start_us.saturating_add(us), ms, step, outcome });
    }

    /// Counts a request known by its end and the site's time.
    pub fn ended(&mut self, end_us: i64, ms: f64, step: u16, outcome: Outcome) {
        let us = (ms * 1e3).round().clamp(-1e15, 1e15) as i64;
        self.request(Request { start_us: end_us.saturating_sub(us), end_us, ms, step, outcome });
    }

    /// Counts a request.
    pub fn request(&mut self, mut request: Request) {
        if request.end_us < request.start_us || request.ms < 0.0 {
            self.negative += 1;
            request.ms = request.ms.max(0.0);
            request.start_us = request.start_us.min(request.end_us);
        }
        self.cells.request(request);
    }

    /// Counts what a request waited in the driver before it was sent, beside the site's time.
    pub fn waited(&mut self, waited_ms: f64, ms: f64) {
        self.waited[0] += 1;
        self.waited[1] += u64::from(waited_ms > 10.0 && waited_ms > ms * 0.1);
    }

    /// The same of one request of a step.
    pub fn request_waited(&mut self, step: u16, waited_ms: f64, ms: f64) {
        self.waited(waited_ms, ms);
        self.waits.entry(step).or_default().add_ms(waited_ms);
    }

    /// Ends a file: over 1 % bad rows, or nothing in it, is an error.
    pub fn end(&mut self, input: &Input) -> Result<(), InputError> {
        self.rows_total += self.rows;
        self.bad_total += self.bad;
        if let Some(why) = &input.cut {
            self.caveat(caveat::CUT_LOG);
            self.more.insert("cut".into(), json!(format!("{}: {why}", input.file_name())));
        }
        let looked_at = self.rows.saturating_sub(self.passed_over);
        if self.bad * 100 > looked_at {
            let shown: Vec<String> = (self.bad_rows.iter())
                .map(|row| format!("line {}: {}", row["line"], row["why"].as_str().unwrap_or_default()))
                .collect();
            let what = format!("{} of {looked_at} rows cannot be read; {}", self.bad, shown.join("; "));
            return Err(input.error(what).hint("is this the log as the driver wrote it? --driver-format names its format"));
        }
        Ok(())
    }

    /// The timeline of all files.
    pub fn finish(mut self, first: &Input) -> Result<Timeline, InputError> {
        let offered = self.offered.unwrap_or_default();
        self.refuse_nonsense(first)?;
        let names = self.steps.names();
        self.cells.settle();
        let width_ms = self.cells.width_ms();
        if self.cells.coarse {
            self.caveat(caveat::SECOND_STAMPS);
        }
        for (count, code, key) in [
            (self.cells.aborted, caveat::ABORTED_AT_END, "aborted"),
            (self.negative, caveat::CLOCK_STEPPED, "negative_durations"),
            (self.bad_total, caveat::BAD_ROWS, "bad_row_count"),
        ] {
            if count > 0 {
                self.caveat(code);
                self.more.insert(key.into(), json!(count));
            }
        }
        if self.waited[1] * 100 > self.waited[0] {
            self.caveat(caveat::DRIVER_QUEUE);
        }
        let overflow = self.steps.overflow;
        let (intervals, capped) = std::mem::take(&mut self.cells).finish(&names, offered);
        let from_requests = !intervals.is_empty();
        if from_requests {
            self.files.push(intervals);
        }
        if overflow || capped {
            self.caveat(caveat::STEPS_CAPPED);
        }
        let mut files = std::mem::take(&mut self.files);
        files.retain(|file| !file.is_empty());
        if files.len() > 1 {
            self.caveat(caveat::FILES_MERGED);
        }
        let rungs = std::mem::take(&mut self.rungs);
        if !files.is_empty() && !rungs.is_empty() {
            return Err(first
                .error("timelines and summaries of whole runs were given together")
                .hint("leave out the summaries: their figures are in the timelines"));
        }
        let mut intervals = if rungs.is_empty() { merge::merge(files) } else { merge::same_rows_added(merge::with_all(rungs)) };
        if !from_requests && merge::regroup(&mut intervals) {
            self.caveat(caveat::STEPS_CAPPED);
        }
        if intervals.is_empty() {
            return Err(first.error("holds no request"));
        }
        let mut driver = Driver {
            driver: self.drivers.join(" + "),
            source: self.sources.join(", "),
            offered,
            latency: self.latency.to_owned(),
            window_ms: self.window_ms.unwrap_or(match (from_requests, self.kind) {
                (true, _) => width_ms,
                (false, Kind::Timeline) => merge::usual_ms(&intervals),
                _ => 0.0,
            }),
            more: std::mem::take(&mut self.more),
            ..Driver::default()
        };
        driver.more.insert("kind".into(), json!(self.kind.name()));
        if self.rows_total > 0 {
            driver.more.insert("rows".into(), json!(self.rows_total));
        }
        if !self.bad_rows.is_empty() {
            driver.more.insert("bad_rows".into(), Value::Array(std::mem::take(&mut self.bad_rows)));
        }
        if !self.waits.is_empty() {
            driver.more.insert("waited_ms".into(), waited_by_step(&self.waits, &names, &intervals));
        }
        let mut timeline = Timeline { driver, intervals };
        if self.kind == Kind::Timeline {
            if !from_requests && !self.options.allow_holes {
                checks::refuse_hole(first, &timeline, self.options)?;
            }
            checks::exhausted_workers(&mut self, &mut timeline);
        } else {
            self.caveat(caveat::NO_TIMELINE);
        }
        checks::plan(&mut self, &mut timeline);
        checks::mix(&self, &mut timeline);
        timeline.driver.caveats = self.caveats.iter().map(|code| (*code).to_owned()).collect();
        Ok(timeline)
    }

    fn refuse_nonsense(&self, first: &Input) -> Result<(), InputError> {
        let days = self.cells.span_us() / 86_400_000_000;
        if !self.cells.is_empty() && days > MOST_DAYS {
            return Err(first
                .error(format!("the stamps span {days} days: not one run"))
                .hint("cut the log to one run, look for rows with a wrong clock, or give the start of a log without a clock"));
        }
        if self.options.allow_holes || self.cells.is_empty() {
            return Ok(());
        }
        if let Some((from_ms, intervals)) = self.cells.longest_silence() {
            let width = self.cells.width_ms();
            let silent = intervals as f64 * width;
            let missed = intervals as f64 * self.cells.per_busy_interval();
            let planned = self.options.plan.as_ref().is_some_and(|plan| {
                let from = from_ms as f64 / 1e3 - self.cells.first_us() as f64 / 1e6;
                plan.count(from, from + silent / 1e3) < 1.0
            });
            if intervals > 2 && missed >= LIKELY && !planned {
                return Err(checks::hole(first, from_ms, silent));
            }
        }
        Ok(())
    }
}

/// What requests waited in the driver, by the steps that the rows have, and all together.
fn waited_by_step(waits: &BTreeMap<u16, Hist>, names: &[String], rows: &[Interval]) -> Value {
    let mut by_name: BTreeMap<&str, Hist> = BTreeMap::new();
    for (step, hist) in waits {
        let name = names.get(usize::from(*step)).map_or(OTHER, |name| name);
        let name = if rows.iter().any(|row| row.step == name) { name } else { OTHER };
        by_name.entry(name).or_default().merge(hist);
        by_name.entry(ALL).or_default().merge(hist);
    }
    let told = by_name.into_iter().map(|(name, hist)| {
        let of = |q: f64| hist.quantile_ms(q);
        (name.to_owned(), json!({"count": hist.count(), "p50": of(0.5), "p95": of(0.95), "p99": of(0.99)}))
    });
    Value::Object(told.collect())
}
