//! What every run made by arithmetic shares: its chance, and its two files as it goes from tick to tick.

use collectors::api::Gauge;
use std::fs::File;
use std::path::{Path, PathBuf};
use whatgives::ticks::{Header, Meaning, Target, Writer};
use whatgives::timeline::{ALL, Driver, Interval, Offered, Timeline};

/// When every made run begins.
pub const START: i64 = 1_795_000_000_000;

/// Chance: the same for one seed.
pub struct Chance(pub u64);

impl Chance {
    /// From 0 to below 1.
    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Around 0, with a deviation of 1.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// A run that is being made.
pub struct Making {
    ticks: Writer<File>,
    period_ms: u64,
    log: PathBuf,
    /// What the load's log says so far.
    pub timeline: Timeline,
}

impl Making {
    /// Begins the files; the targets are those of the gauges, and a row's first cells say which of them are up.
    pub fn new(ticks: &Path, log: &Path, period_ms: u64, gauges: &[(&str, Gauge)]) -> Self {
        let mut header = Header::default();
        (header.run.start_unix_ms, header.run.tick_ms) = (START, period_ms as f64);
        for (instance, _) in gauges {
            if header.targets.iter().all(|target| target.instance != *instance) {
                header.targets.push(Target { instance: (*instance).into(), collector: "made".into(), ..Target::default() });
                header.columns.push(format!("{instance}.up"));
            }
        }
        for (instance, gauge) in gauges {
            let column = format!("{instance}.{}", gauge.name);
            header.gauges.push((column.clone(), Meaning::of_gauge(instance, gauge)));
            header.columns.push(column);
        }
        let driver = Driver {
            driver: "made".into(),
            offered: Offered::Scheduled,
            latency: "ok".into(),
            window_ms: 1000.0,
            ..Driver::default()
        };
        Self {
            ticks: Writer::new(File::create(ticks).expect("a file"), &header).expect("a header"),
            period_ms,
            log: log.to_owned(),
            timeline: Timeline { driver, ..Timeline::default() },
        }
    }

    /// Writes a row.
    pub fn tick(&mut self, tick: usize, cells: &[Option<f64>]) {
        let tick = tick as u64;
        self.ticks.row(tick, START + (self.period_ms * tick) as i64, 0.2, cells, &[]).expect("a row");
    }

    /// Writes the load's log.
    pub fn finish(self) {
        self.timeline.write(File::create(self.log).expect("a file")).expect("a timeline");
    }
}

/// A second of the load: what was offered, started, and ended well, around a median latency.
pub fn second(unix_ms: i64, offered: f64, started: f64, ok: f64, latency_ms: f64) -> Interval {
    Interval {
        unix_ms,
        dur_ms: 1000.0,
        step: ALL.into(),
        offered: Some(offered),
        started: Some(started),
        ok: Some(ok),
        failed: Some(0.0),
        p50_ms: Some(latency_ms),
        p95_ms: Some(1.6 * latency_ms),
        p99_ms: Some(2.0 * latency_ms),
        ..Interval::default()
    }
}
