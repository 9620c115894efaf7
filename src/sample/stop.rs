//! `--stop-when`: gates that are followed while the run goes on.
//!
//! Gates on columns see every row that is written. Gates on requests see the driver's log as it grows (`--driver-log`), or
//! what a live driver says of itself (`--driver-live`): a thread of their own reads them, so that no tick waits for a log. The
//! log's last interval is left out, it is still being written. A gate that is broken for its time is told once, and the
//! driver is then stopped: the live one the way it knows, else the wrapped one by its signal.

use super::config::Wrong;
use super::drive::{Driver, Event};
use super::say::Say;
use crate::driver::live::{self, Live};
use crate::driver::{self, Options};
use crate::gates::felt;
use crate::judge::gate::gauges::GaugeGate;
use crate::judge::gate::{Gate, Measure};
use crate::ticks::Header;
use crate::time;
use crate::timeline::{ALL, Interval, Offered, Timeline};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;

/// What stops a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StopConfig {
    /// The gates.
    pub gates: Vec<Gate>,
    /// The driver's log.
    pub log: Option<PathBuf>,
    /// Where the driver answers while it runs.
    pub live: Option<String>,
}

/// How often a log or a live driver is looked at, at most.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Reading a log again may take this share of the time.
const READING_SHARE: u32 = 5;

impl StopConfig {
    /// Refuses what cannot be followed.
    pub fn check(&self) -> Result<(), Wrong> {
        for gate in &self.gates {
            let wrong = |what: &str, hint: &str| Err(Wrong::new(format!("the gate \"{gate}\": {what}")).hint(hint));
            match &gate.measure {
                Measure::Gauge { .. } => {}
                Measure::Knee | Measure::Recovery | Measure::Growth(_) | Measure::First | Measure::Count(_) | Measure::Share(_) => {
                    return wrong("can be judged only after the run", "correlate judges it: --gate");
                }
                _ if gate.over_s.is_none() => return wrong("needs a window while the run goes on", "add over 10s"),
                Measure::Failed(None) | Measure::Completed(None) | Measure::Goodput(None) if self.live.is_some() => {}
                _ if self.log.is_none() => {
                    return wrong("needs the driver's log", "name the file that the driver writes: --driver-log FILE");
                }
                _ => {}
            }
            if gate.during.is_some() {
                return wrong("phases are known only after the run", "leave during out");
            }
        }
        if let Some(address) = &self.live {
            live::live(address).map_err(|why| Wrong::new(format!("--driver-live {why}")))?;
        }
        Ok(())
    }

    fn felt(&self) -> Vec<Gate> {
        self.gates.iter().filter(|gate| !matches!(gate.measure, Measure::Gauge { .. })).cloned().collect()
    }
}

/// The gates of a run that goes on.
pub struct Stop {
    gauges: Vec<(Gate, GaugeGate)>,
    live: Option<String>,
    told: bool,
    over: Arc<AtomicBool>,
}

impl Stop {
    /// Finds the columns, and begins to look at the log or the live driver.
    pub fn begin(config: &StopConfig, header: &Header, events: UnboundedSender<Event>) -> Result<Self, Wrong> {
        let mut gauges = Vec::new();
        for gate in &config.gates {
            if let Some(followed) = GaugeGate::new(gate, header).map_err(|why| Wrong::new(why.to_string()))? {
                gauges.push((gate.clone(), followed));
            }
        }
        let over = Arc::new(AtomicBool::new(false));
        let felt = config.felt();
        if !felt.is_empty() {
            let source = Source::new(config, header.run.start_unix_ms)?;
            let over = over.clone();
            thread::spawn(move || look(source, &felt, &events, &over));
        }
        Ok(Self { gauges, live: config.live.clone(), told: false, over })
    }

    /// A row before it is written; what broke by it, for its notes.
    pub fn row(&mut self, at_s: f64, row: &[Option<f64>], tick: Duration) -> Option<String> {
        if self.gauges.is_empty() {
            return None;
        }
        let cells: Vec<f64> = row.iter().map(|cell| cell.unwrap_or(f64::NAN)).collect();
        let mut broken = None;
        for (gate, followed) in &mut self.gauges {
            if followed.row(at_s, &cells, tick.as_secs_f64(), true) && broken.is_none() {
                broken = Some(said(gate, followed.held().worst()));
            }
        }
        broken.filter(|_| !std::mem::replace(&mut self.told, true))
    }

    /// What the log or the live driver said; `None` where a gate was told already.
    pub fn tell(&mut self) -> bool {
        !std::mem::replace(&mut self.told, true)
    }

    /// Whether a gate broke.
    pub fn is_broken(&self) -> bool {
        self.told
    }

    /// Tells the driver to stop: a live one in its own way, else the wrapped one by its signal; both where the live one has
    /// ended its load and would not end itself. `false` where there is neither.
    pub async fn tell_driver(&self, driver: &mut Driver, say: &Say) -> bool {
        if let Some(mut live) = self.live.as_deref().and_then(|address| live::live(address).ok()) {
            let (name, lingers) = (live.name(), live.lingers());
            match tokio::task::spawn_blocking(move || live.stop()).await {
                Ok(Ok(())) => {
                    say.tell(&format!("{name} was told to stop"));
                    if lingers {
                        driver.pass_on(Signal::TERM.as_raw());
                    }
                    return true;
                }
                Ok(Err(why)) => say.trouble(&why.to_string()),
                Err(why) => say.trouble(&format!("{name} could not be told to stop: {why}")),
            }
        }
        let wrapped = driver.runs();
        if wrapped {
            driver.pass_on(Signal::TERM.as_raw());
            say.tell("the driver was told to stop");
        }
        wrapped
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn said(gate: &Gate, found: f64) -> String {
    format!("the gate \"{gate}\" broke: found {}", (found * 1e4).round() / 1e4)
}

/// Where requests are seen while they are made.
enum Source {
    Log { path: PathBuf, options: Box<Options>, size: u64 },
    Live { driver: Box<dyn Live>, last: Option<(f64, f64, f64)>, seen: Box<Timeline> },
}

impl Source {
    fn new(config: &StopConfig, start_unix_ms: i64) -> Result<Self, Wrong> {
        if let Some(path) = &config.log {
            let options = Options { start_unix_ms: Some(start_unix_ms), allow_holes: true, ..Options::default() };
            return Ok(Self::Log { path: path.clone(), options: Box::new(options), size: 0 });
        }
        let address = config.live.as_deref().unwrap_or_default();
        let driver = live::live(address).map_err(Wrong::new)?;
        let mut seen = Timeline::default();
        seen.driver.offered = Offered::Achieved;
        Ok(Self::Live { driver, last: None, seen: Box::new(seen) })
    }

    /// The requests so far; `None` where there is nothing new, or nothing yet.
    fn look(&mut self) -> Option<Timeline> {
        match self {
            Self::Log { path, options, size } => {
                let now = std::fs::metadata(&*path).ok()?.len();
                if now == std::mem::replace(size, now) {
                    return None;
                }
                // A log of which only the head is there cannot be told yet.
                whole(path, options)
            }
            Self::Live { driver, last, seen } => {
                let found = driver.look().ok()?;
                let (requests, failed, at_ms) = (found.requests?, found.failed.unwrap_or(0.0), time::unix_ms());
                if let Some((before, failed_before, then_ms)) = last.replace((requests, failed, at_ms)) {
                    let (all, failed) = ((requests - before).max(0.0), (failed - failed_before).max(0.0));
                    seen.intervals.push(Interval {
                        unix_ms: then_ms as i64,
                        dur_ms: at_ms - then_ms,
                        step: ALL.to_owned(),
                        ok: Some((all - failed).max(0.0)),
                        failed: Some(failed),
                        ..Interval::default()
                    });
                }
                Some((**seen).clone())
            }
        }
    }
}

/// The log up to its last whole interval.
fn whole(path: &Path, options: &Options) -> Option<Timeline> {
    let mut timeline = driver::read(&[path.to_owned()], options).ok()?;
    let last = timeline.intervals.iter().map(|interval| interval.unix_ms).max()?;
    timeline.intervals.retain(|interval| interval.unix_ms < last);
    Some(timeline)
}

/// Looks until the run is over or a gate is broken.
fn look(mut source: Source, gates: &[Gate], events: &UnboundedSender<Event>, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        let begin = Instant::now();
        if let Some(timeline) = source.look() {
            for gate in gates {
                let Ok(felt) = felt::judge(gate, &timeline, &[(f64::NEG_INFINITY, f64::INFINITY)]) else { continue };
                if !felt.passed {
                    // Nobody listens any more where the run has just ended.
                    let _ = events.send(Event::Broken(said(gate, felt.worst)));
                    return;
                }
            }
        }
        thread::sleep(LOOK_EVERY.max(begin.elapsed() * READING_SHARE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(gates: &[&str], log: Option<&str>, live: Option<&str>) -> Option<String> {
        let config = StopConfig {
            gates: gates.iter().map(|gate| gate.parse().unwrap()).collect(),
            log: log.map(PathBuf::from),
            live: live.map(str::to_owned),
        };
        config.check().err().map(|wrong| wrong.to_string())
    }

    #[test]
    fn what_cannot_be_followed_while_the_run_goes_on_is_refused_with_a_hint() {
        assert_eq!(refused(&["app.queue <= 5 for 3s", "p95 < 1s over 5s"], Some("k6.csv"), None), None);
        assert_eq!(refused(&["failed <= 1% over 5s"], None, Some("k6://127.0.0.1:6565")), None);
        for (gate, log, live, told) in [
            ("knee >= 5/s", Some("l"), None, "only after the run"),
            ("p95 < 1s", Some("l"), None, "needs a window"),
            ("p95 < 1s over 5s", None, None, "needs the driver's log"),
            ("p95 < 1s over 5s", None, Some("k6://127.0.0.1:6565"), "needs the driver's log"),
            ("a.b < 5 during plateau", None, None, "phases are known only after"),
            ("a.b < 5", None, Some("k9://127.0.0.1:1"), "no live driver is called \"k9\""),
        ] {
            let said = refused(&[gate], log, live).unwrap_or_default();
            assert!(said.contains(told), "{gate}: {said}");
        }
    }
}
