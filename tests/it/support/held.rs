//! A run whose load is held and may spike, made by arithmetic: a fluid queue before a pool, single requests for the driver's
//! histograms, and levels that stand still, wander, saw, fill or leak by a known amount. Nothing in the files is painted on:
//! the truth is what was put into the arithmetic.

use super::making::{Chance, Making, START};
use clap::Parser;
use collectors::api::{Class, Gauge, Layer, Unit, Worse};
use serde_json::Value;
use std::path::PathBuf;
use whatgives::correlate::{cli::Options, report, session::Session};
use whatgives::hist::Hist;
use whatgives::timeline::{ALL, Interval, Timeline};

/// What is made.
#[derive(Clone)]
pub struct Held {
    /// Seconds, and the rate at their begin and their end.
    pub plan: Vec<(usize, f64, f64)>,
    /// What the pool can do, per second.
    pub pool: f64,
    /// From which second on it can do how much instead.
    pub broken: Option<(usize, f64)>,
    /// Chance.
    pub seed: u64,
    /// What leaks, per second: memory under a saw-tooth, memory under a wandering load, open files, free memory that falls.
    pub leaks: [f64; 4],
    /// How much longer the maintenance pass takes with every second of the run, in milliseconds; it comes every 15 s.
    pub pass_grows_ms: f64,
    /// Every so many seconds a key of the cache expires, and requests miss it for a time that grows with the load.
    pub stampede_s: Option<usize>,
    /// Every so many seconds a job of others waits in the same cache, whatever the load.
    pub job_s: Option<usize>,
}

/// The gauges that can leak, in the order of [`Held::leaks`].
pub const LEAKING: [&str; 4] = ["app.heap_bytes", "app.resident_bytes", "app.open_files", "host.free_bytes"];

impl Default for Held {
    fn default() -> Self {
        Self {
            plan: vec![(30, 10.0, 10.0), (60, 10.0, 60.0), (420, 60.0, 60.0)],
            pool: 200.0,
            broken: None,
            seed: 1,
            leaks: [0.0; 4],
            pass_grows_ms: 0.0,
            stampede_s: None,
            job_s: None,
        }
    }
}

/// The files of such a run, and what became of the backlog.
pub struct Run {
    folder: tempfile::TempDir,
    /// The last second in which somebody waited.
    pub waited_last: Option<usize>,
}

/// As many as chance makes of a mean.
fn count(chance: &mut Chance, mean: f64) -> f64 {
    (mean + mean.sqrt() * chance.normal()).round().max(0.0)
}

impl Held {
    /// What should be sent in a second.
    pub fn rate(&self, second: usize) -> f64 {
        let mut begin = 0;
        for (seconds, from, to) in &self.plan {
            if second < begin + seconds {
                return from + (to - from) * (second - begin) as f64 / *seconds as f64;
            }
            begin += seconds;
        }
        0.0
    }

    fn seconds(&self) -> usize {
        self.plan.iter().map(|part| part.0).sum()
    }

    /// Writes the files.
    pub fn write(&self) -> Run {
        let mut run = Run { folder: tempfile::tempdir().expect("a folder"), waited_last: None };
        let level = |name, unit| Gauge::new(name, Class::Level, unit, "");
        let gauges = [
            ("web", Gauge::counter("requests_total", Class::Throughput, Unit::Count, "").at(Layer::Worker, "web workers")),
            ("app", Gauge::new("pool_waiting", Class::Queue, Unit::Count, "").at(Layer::Pool, "connection pool")),
            ("app", level("heap_bytes", Unit::Bytes)),
            ("app", level("resident_bytes", Unit::Bytes)),
            ("app", level("open_files", Unit::Count).of_fixed(1024.0)),
            ("app", level("connections", Unit::Count)),
            ("host", level("free_bytes", Unit::Bytes).worse(Worse::Down)),
            ("cache", level("items", Unit::Count)),
            ("cache", Gauge::new("hit_ratio", Class::Ratio, Unit::Ratio, "").at(Layer::Server, "cache")),
            ("cache", Gauge::new("waiting", Class::Queue, Unit::Count, "").at(Layer::Lock, "cache commands")),
        ];
        let mut making = Making::new(&run.path("ticks"), &run.path("timeline"), 1000, &gauges);
        let mut chance = Chance(self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let (mut waiting, mut done, mut saw, mut wander, mut steady) = (0.0_f64, 5000.0, 0.0_f64, 0.0_f64, 0.0_f64);
        for second in 0..self.seconds() {
            let rate = self.rate(second);
            let sent = count(&mut chance, rate);
            let pool = self.broken.filter(|(from, _)| second >= *from).map_or(self.pool, |(_, pool)| pool);
            let served = (waiting + sent).min(pool);
            waiting = waiting + sent - served;
            if waiting >= 1.0 {
                run.waited_last = Some(second);
            }
            done += served;
            saw += 4e5;
            if saw > 1.5e7 * (1.0 + 0.1 * chance.uniform()) {
                saw = 0.0;
            }
            wander = 0.9 * wander + 4e4 * chance.normal();
            steady = 0.8 * steady + 0.4 * chance.normal();
            let leaked = self.leaks.map(|per_s| per_s * second as f64);
            // An expired key is missed until it has been worked out again: the longer, the more ask for it at once.
            let missed = self.stampede_s.map_or(0.0, |every| {
                let since = (second % every) as f64;
                let lasts = 6.0 * rate / 60.0;
                if second > 0 && since < lasts { (0.6 * rate / 60.0).min(0.6) } else { 0.0 }
            });
            let job = self.job_s.map_or(0.0, |every| if second % every < 8 { 6.0 } else { 0.0 });
            let cells = [
                // All four targets are up.
                1.0,
                1.0,
                1.0,
                1.0,
                done.round(),
                waiting.round(),
                (5e7 + saw + leaked[0]).round(),
                (2e8 + wander + leaked[1]).round(),
                (80.0 + 2.0 * steady + leaked[2]).round(),
                (20.0 + 3.0 * steady).round(),
                (4e9 + 3.0 * wander - leaked[3]).round(),
                (9e4 * (1.0 - (-(second as f64) / 50.0).exp())).round() + count(&mut chance, 10.0),
                0.95 + 0.004 * chance.normal() - missed,
                (job + 40.0 * missed * rate / 60.0).round(),
            ]
            .map(Some);
            making.tick(second, &cells);
            self.requests(&mut making.timeline, &mut chance, second, (sent, served, waiting), pool);
        }
        making.finish();
        run
    }

    fn requests(
        &self,
        timeline: &mut Timeline,
        chance: &mut Chance,
        second: usize,
        (sent, served, waiting): (f64, f64, f64),
        pool: f64,
    ) {
        let pass_ms = 200.0 + self.pass_grows_ms * second as f64;
        let mut all = Hist::default();
        let mut steps = [Hist::default(), Hist::default()];
        for n in 0..served as usize {
            let mut ms = 30.0 + 10.0 * chance.uniform() + 1000.0 * waiting / pool;
            // Who comes during the pass waits for its end.
            let left = if second % 15 == 7 { pass_ms - 1000.0 * n as f64 / served } else { 0.0 };
            ms += left.max(0.0);
            // One in five pays, and paying takes twice as long.
            let pays = n % 5 == 0;
            steps[usize::from(pays)].add_ms(if pays { 2.0 * ms } else { ms });
            all.add_ms(if pays { 2.0 * ms } else { ms });
        }
        let told = |hist: &Hist, q: f64| hist.quantile_ms(q);
        for (step, hist) in [(ALL, &all), ("look", &steps[0]), ("pay", &steps[1])] {
            let share = if served > 0.0 { hist.count() as f64 / served } else { 0.0 };
            timeline.intervals.push(Interval {
                unix_ms: START - 500 + 1000 * second as i64,
                dur_ms: 1000.0,
                step: step.into(),
                offered: Some(self.rate(second) * share),
                started: Some((sent * share).round()),
                ok: Some(hist.count() as f64),
                failed: Some(0.0),
                p50_ms: told(hist, 0.5),
                p95_ms: told(hist, 0.95),
                p99_ms: told(hist, 0.99),
                hist: (hist.count() > 0).then(|| hist.clone()),
                ..Interval::default()
            });
        }
        if let Some(row) = timeline.intervals.iter_mut().rev().nth(2) {
            row.offered = Some(self.rate(second));
        }
    }
}

impl Run {
    /// The path of one of the files: ticks, timeline.
    pub fn path(&self, kind: &str) -> PathBuf {
        self.folder.path().join(format!("run.{kind}.tsv"))
    }

    /// The verdict, without a process of its own: there are hundreds of such runs.
    pub fn verdict(&self, args: &[&str]) -> (Value, String) {
        let (ticks, timeline) = (self.path("ticks").display().to_string(), self.path("timeline").display().to_string());
        let given = ["correlate", &*ticks, "--driver", &*timeline].into_iter().chain(args.iter().copied());
        let options = Options::try_parse_from(given).expect("options");
        let verdict = Session::read(&options).expect("files").verdict(&options, &[]).expect("no gate fails");
        (serde_json::to_value(&verdict).expect("JSON"), report::text::render(&verdict))
    }
}
