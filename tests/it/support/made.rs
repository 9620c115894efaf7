//! A run made by arithmetic: a service with a pool that holds so many requests a second, under a load that climbs. What is in
//! the files follows from a fluid queue, so that the answer is known; each test spoils one thing.

use super::making::{self, Chance, Making, START};
use collectors::api::{Class, Gauge, Layer, Unit};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use whatgives::timeline::{Interval, Offered};

/// What is made.
#[derive(Clone)]
pub struct Made {
    /// Seconds before the load.
    pub before: usize,
    /// Seconds of low load.
    pub low: usize,
    /// Seconds of the climb.
    pub climb: usize,
    /// Seconds at the top.
    pub top: usize,
    /// The low rate and the highest, per second.
    pub rates: (f64, f64),
    /// What the pool can do, per second.
    pub pool: f64,
    /// How long a request takes where nothing waits.
    pub service_ms: f64,
    /// Added to the 95th percentile from the middle of the climb on, and to nothing else.
    pub wiggle_ms: f64,
    /// Whether the pool is declared as a lock.
    pub lock: bool,
    /// How many orders a second are sent out by a worker that no request waits for; where that is a number, what is not yet
    /// sent is watched.
    pub outbox: f64,
    /// Moves the driver's clock.
    pub clock_s: f64,
    /// Where the driver says its offered rate comes from; achieved leaves the column empty.
    pub offered: Offered,
    /// The share of what it should send that the driver can send at most, per second.
    pub driver_limit: f64,
    /// How many places the service has, of which every request takes one for 400 ms; watched where it is a number.
    pub places: f64,
    /// From which rate on, per second, which share of the requests is sent away at the door.
    pub failing: (f64, f64),
    /// Seconds in which a target does not answer.
    pub silent: Vec<(&'static str, usize, usize)>,
    /// The second in which the web server restarts.
    pub restart: Option<usize>,
    /// Of the chance in what is read of `busy`.
    pub seed: u64,
    /// Resources of the web server's machine whose use is read, and nothing waits for.
    pub busy: Vec<Busy>,
}

/// A resource whose use is read.
#[derive(Clone, Copy)]
pub struct Busy {
    /// The column's own part.
    pub name: &'static str,
    /// How many of it there are; 100 of percent.
    pub capacity: f64,
    /// The rate at which all is busy.
    pub full_at: f64,
    /// The share that is busy without any request.
    pub idle: f64,
    /// With which power of the rate the other part grows.
    pub power: f64,
    /// Read as how many are busy at the moment, not as the mean of the second.
    pub counted: bool,
}

impl Busy {
    fn read(&self, rate: f64, chance: &mut Chance) -> f64 {
        let mean = self.capacity * (self.idle + (1.0 - self.idle) * (rate / self.full_at).powf(self.power));
        if !self.counted {
            // The mean of as many requests as there were, each of another length.
            let deviation = 0.5 * mean / rate.max(1.0).sqrt();
            return (10.0 * (mean + deviation * chance.normal())).round() / 10.0;
        }
        // As many as a Poisson process has under way.
        let (mut under_way, mut left) = (0.0, (-mean).exp());
        let (mut part, at) = (left, chance.uniform());
        while at > left && under_way < self.capacity {
            under_way += 1.0;
            part *= mean / under_way;
            left += part;
        }
        under_way
    }
}

impl Default for Made {
    fn default() -> Self {
        Self {
            before: 0,
            low: 20,
            climb: 100,
            top: 20,
            rates: (10.0, 200.0),
            pool: 100.0,
            service_ms: 50.0,
            wiggle_ms: 0.0,
            lock: false,
            outbox: f64::INFINITY,
            clock_s: 0.0,
            offered: Offered::Scheduled,
            driver_limit: f64::INFINITY,
            places: f64::INFINITY,
            failing: (f64::INFINITY, 0.0),
            silent: Vec::new(),
            restart: None,
            seed: 1,
            busy: Vec::new(),
        }
    }
}

/// The files of a made run.
pub struct Files {
    folder: tempfile::TempDir,
}

/// What correlate said.
pub struct Said {
    /// The exit code.
    pub code: i32,
    /// `--json`.
    pub verdict: Value,
    /// The report for people.
    pub text: String,
    /// What went to standard error.
    pub err: String,
}

impl Said {
    /// The first mover's gauge; empty where none is named.
    pub fn first(&self) -> &str {
        self.verdict["first"]["gauge"].as_str().unwrap_or_default()
    }

    /// Whether a caveat of this code is there.
    pub fn warns(&self, code: &str) -> bool {
        self.verdict["caveats"].as_array().is_some_and(|all| all.iter().any(|caveat| caveat["code"] == code))
    }

    /// The rate at which the first one moved.
    pub fn rate(&self) -> f64 {
        self.verdict["first"]["rate_per_s"]["value"].as_f64().unwrap_or(f64::NAN)
    }
}

impl Made {
    fn seconds(&self) -> usize {
        self.before + self.low + self.climb + self.top
    }

    /// The rate that should be sent in a second.
    pub fn offered_at(&self, second: usize) -> f64 {
        let (low, high) = self.rates;
        let part = match second.checked_sub(self.before) {
            None => return 0.0,
            Some(loaded) => (loaded as f64 - self.low as f64) / self.climb.max(1) as f64,
        };
        low + (high - low) * part.clamp(0.0, 1.0)
    }

    /// Writes the files.
    pub fn write(&self) -> Files {
        let files = Files { folder: tempfile::tempdir().expect("a folder") };
        let queue = |name, at, resource| Gauge::new(name, Class::Queue, Unit::Count, "").at(at, resource);
        let pool = if self.lock { Layer::Lock } else { Layer::Pool };
        let mut gauges = vec![
            ("web", Gauge::counter("requests_total", Class::Throughput, Unit::Count, "").at(Layer::Worker, "web workers")),
            ("web", queue("listen_queue", Layer::Accept, "web accept queue")),
            ("app", queue("pool_waiting", pool, "connection pool")),
            ("app", Gauge::counter("pool_wait_ms_total", Class::WaitSum, Unit::Milliseconds, "").at(pool, "connection pool")),
            ("app", Gauge::counter("errors_total", Class::Event, Unit::Count, "").at(Layer::App, "the application")),
        ];
        let bounded = |busy: &Busy| Gauge::new(busy.name, Class::Utilisation, Unit::Count, "").of_fixed(busy.capacity);
        gauges.extend(self.busy.iter().map(|busy| ("web", bounded(busy).at(Layer::Host, busy.name))));
        if self.outbox.is_finite() {
            gauges.push(("app", queue("orders_waiting", Layer::App, "the outbox")));
        }
        if self.places.is_finite() {
            let taken = Gauge::new("places_taken", Class::Utilisation, Unit::Count, "");
            gauges.push(("app", taken.of_fixed(self.places).at(Layer::App, "places")));
        }
        let mut making = Making::new(&files.path("ticks"), &files.path("timeline"), 1000, &gauges);
        making.timeline.driver.offered = self.offered;
        let (mut waiting, mut web, mut done, mut wait_ms) = (0.0_f64, 0.0_f64, 5000.0_f64, 70_000.0_f64);
        let mut unsent = 0.0_f64;
        let (mut chance, mut noise) = (Chance(7), Chance(self.seed));
        for second in 0..self.seconds() {
            // A little noise, the same in every run.
            let jitter = 1.0 + 0.04 * (chance.uniform() - 0.5);
            let offered = self.offered_at(second);
            let sent = (offered * jitter).min(self.driver_limit);
            let failed = if offered >= self.failing.0 { self.failing.1 * sent } else { 0.0 };
            // At most 40 wait for the pool: the service has so many workers; the others wait at the door.
            let come = waiting + web + sent - failed;
            let served = come.min(self.pool);
            let all = (come - served).max(0.0);
            waiting = all.min(40.0);
            web = (all - 40.0).max(0.0);
            unsent = (unsent + served - self.outbox).max(0.0);
            done += served;
            wait_ms += 1000.0 * waiting;
            if self.restart == Some(second) {
                done = 0.0;
            }
            let silent =
                |target: &str| self.silent.iter().any(|(name, from, to)| *name == target && (*from..*to).contains(&second));
            let of = |target: &str, value: f64| (!silent(target)).then_some(value);
            let up = |target: &str| Some(if silent(target) { 0.0 } else { 1.0 });
            let mut cells = vec![
                up("web"),
                up("app"),
                of("web", done.round()),
                of("web", web.round()),
                of("app", waiting.round()),
                of("app", wait_ms.round()),
                of("app", 0.0),
            ];
            cells.extend(self.busy.iter().map(|busy| of("web", busy.read(served, &mut noise))));
            cells.extend(self.outbox.is_finite().then(|| of("app", unsent.round())));
            cells.extend(self.places.is_finite().then(|| of("app", (0.4 * sent).min(self.places).round())));
            making.tick(second, &cells);
            if second >= self.before {
                let wiggle = if 2 * (second - self.before) > self.seconds() - self.before { self.wiggle_ms } else { 0.0 };
                let latency = self.service_ms + if served > 0.0 { 1000.0 * all / self.pool } else { 0.0 };
                // A counter read at a tick tells of the second that ends there.
                let unix_ms = START - 1000 + 1000 * second as i64 - (1000.0 * self.clock_s) as i64;
                let told = making::second(unix_ms, offered, sent.round(), served.round(), latency * jitter);
                making.timeline.intervals.push(Interval {
                    offered: told.offered.filter(|_| self.offered != Offered::Achieved),
                    failed: Some(failed.round()),
                    p95_ms: told.p95_ms.map(|p95| p95 + wiggle),
                    ..told
                });
            }
        }
        making.finish();
        files
    }
}

impl Files {
    /// The path of one of the files: ticks, timeline, waits.
    pub fn path(&self, kind: &str) -> PathBuf {
        self.folder.path().join(format!("run.{kind}.tsv"))
    }

    /// Changes a file's lines.
    pub fn edit(&self, kind: &str, change: impl FnOnce(&mut Vec<String>)) {
        let text = std::fs::read_to_string(self.path(kind)).expect("the file");
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        change(&mut lines);
        std::fs::write(self.path(kind), lines.join("\n") + "\n").expect("written");
    }

    /// Both outputs of correlate, with the driver's log.
    pub fn correlate(&self) -> Said {
        self.run(&["--driver", &self.path("timeline").display().to_string()])
    }

    /// The same with the file of waits given too.
    pub fn with_waits(&self) -> Said {
        self.run(&[&self.path("waits").display().to_string(), "--driver", &self.path("timeline").display().to_string()])
    }

    /// The same with more arguments.
    pub fn correlate_with(&self, more: &[&str]) -> Said {
        let log = self.path("timeline").display().to_string();
        self.run(&[&["--driver", &log], more].concat())
    }

    /// The folder alone, for those who know the names.
    pub fn into_folder(self) -> tempfile::TempDir {
        self.folder
    }

    /// A path beside them.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Both outputs of the bare `correlate ticks.tsv`.
    pub fn bare(&self) -> Said {
        self.run(&[])
    }

    fn run(&self, args: &[&str]) -> Said {
        said(&self.path("ticks").display().to_string(), args)
    }
}

/// Runs correlate twice, for people and as JSON.
pub fn said(ticks: &str, args: &[&str]) -> Said {
    let run = |more: &[&str]| {
        let mut correlate = Command::new(env!("CARGO_BIN_EXE_correlate"));
        correlate.arg(ticks).args(args).args(more).output().expect("correlate runs")
    };
    let (text, json) = (run(&[]), run(&["--json"]));
    assert_eq!(text.status.code(), json.status.code(), "both outputs end with one code");
    let code = text.status.code().expect("it ended by itself");
    let err = String::from_utf8_lossy(&json.stderr).into_owned();
    let verdict = match code {
        // Wrong usage and unusable files have no verdict.
        2 | 3 if json.stdout.is_empty() => Value::Null,
        _ => serde_json::from_slice(&json.stdout)
            .unwrap_or_else(|why| panic!("{why} in {:?} {err}", String::from_utf8_lossy(&json.stdout))),
    };
    Said { code, verdict, text: String::from_utf8(text.stdout).expect("text"), err }
}
