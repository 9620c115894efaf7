//! One run: files, targets, and then tick after tick until its end.

mod row;

use super::background::Detached;
use super::check::{self, START_LIMIT};
use super::collect::Collect;
use super::config::Config;
use super::drive::{Driver, Event, Phase, code_of_signal, find};
use super::header::{Columns, header};
use super::health::Health;
use super::progress::Progress;
use super::redact;
use super::say::Say;
use super::schedule::Schedule;
use super::stop::Stop;
use super::write::{Files, Opened};
use crate::exit;
use crate::ticks::Child;
use collectors::api::Support;
use rustix::process::Signal;
use std::io;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, sleep_until};

/// Samples until the run's end; gives the exit code.
pub async fn sample(config: &Config, say: &Say, mut detached: Option<Detached>, unix_ms: fn() -> f64) -> u8 {
    if let Some(program) = config.command.first()
        && let Err((wrong, code)) = find(program)
    {
        say.trouble(&wrong.to_string());
        return code;
    }
    let mut collect = match check::open(config, say) {
        Ok(collect) => collect,
        Err(code) => return code,
    };
    let opened = match Opened::open(config.out.as_deref(), config.force) {
        Ok(opened) => opened,
        Err(wrong) => {
            say.trouble(&wrong.to_string());
            return exit::USAGE;
        }
    };
    // From here on a signal ends the run in an orderly way.
    let mut driver = match Driver::listen() {
        Ok(driver) => driver,
        Err(why) => {
            say.trouble(&format!("signals cannot be received: {why}"));
            opened.discard();
            return exit::SAMPLER_FAILED;
        }
    };
    let found = tokio::select! {
        found = collect.start(START_LIMIT) => found,
        Some(Event::Signal(number)) = driver.events.recv() => {
            opened.discard();
            return code_of_signal(number);
        }
    };
    let config = &config.recognised(collectors::REGISTRY, &found);
    check::brief(config, &collect, &found, say);
    let verdict = check::verdict(config, &found);
    if verdict != exit::DONE {
        if verdict == exit::TARGET_UNREADABLE {
            say.trouble("hint: sampler --check tells more; --allow-down begins all the same");
        }
        opened.discard();
        return verdict;
    }
    let mut run = match Run::begin(config, say, collect, &found, opened, driver.sender(), unix_ms) {
        Ok(run) => run,
        Err(code) => return code,
    };
    let code = run.go(&mut driver, detached.as_mut()).await;
    run.progress.end(say);
    say.tell(&run.health.summary());
    if run.failed {
        return code;
    }
    let (ticks, waits) = (run.files.ticks_path.clone(), run.files.waits_path.clone());
    match run.files.close() {
        Ok(()) => say.tell(&format!("wrote {} and {}", ticks.display(), waits.display())),
        Err(why) => {
            say.trouble(&format!("{} and {} cannot be written to their end: {why}", ticks.display(), waits.display()));
            return exit::SAMPLER_FAILED;
        }
    }
    code
}

/// How long a driver that was told to stop is waited for before it is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

struct Run<'a> {
    config: &'a Config,
    say: &'a Say,
    collect: Collect,
    columns: Vec<Columns>,
    /// Values without a column were noted for this target.
    unknown_noted: Vec<bool>,
    files: Files,
    schedule: Schedule,
    health: Health,
    progress: Progress,
    /// How far the wall clock has moved against the plan, milliseconds.
    clock_moved: f64,
    phase: Phase,
    row: Vec<Option<f64>>,
    /// The gates that stop it.
    stop: Stop,
    /// What is to stand in the next row's notes.
    broken: Option<String>,
    /// A file could not be written.
    failed: bool,
    /// The wall clock.
    unix_ms: fn() -> f64,
}

impl<'a> Run<'a> {
    fn begin(
        config: &'a Config,
        say: &'a Say,
        collect: Collect,
        found: &[Result<Support, collectors::api::Fault>],
        opened: Opened,
        events: UnboundedSender<Event>,
        unix_ms: fn() -> f64,
    ) -> Result<Self, u8> {
        let hostname = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let supports: Vec<_> = found
            .iter()
            .enumerate()
            .map(|(n, found)| match found {
                Ok(support) => (Some(support), support.columns.clone()),
                Err(_) => (None, collect.columns(n).to_vec()),
            })
            .collect();
        let schedule = Schedule::new(Instant::now(), unix_ms(), config.tick);
        let (header, columns) = match header(config, &supports, schedule.start_unix_ms(), &hostname) {
            Ok(done) => done,
            Err(wrong) => {
                say.trouble(&wrong.to_string());
                opened.discard();
                return Err(exit::USAGE);
            }
        };
        let stop = match Stop::begin(&config.stop, &header, events) {
            Ok(stop) => stop,
            Err(wrong) => {
                say.trouble(&wrong.to_string());
                opened.discard();
                return Err(exit::USAGE);
            }
        };
        let files = opened.begin(&header, config.show_rows, config.waits_per_tick).map_err(|why| {
            say.trouble(&format!("the files cannot be written: {why}"));
            exit::SAMPLER_FAILED
        })?;
        let names = config.targets.iter().map(|target| target.section.instance.as_str());
        let health = Health::new(names.zip(columns.iter().map(|columns| columns.gauges.as_slice())));
        let phase =
            if config.command.is_empty() { Phase::Free { total: config.seconds } } else { Phase::Rest { total: config.rest } };
        Ok(Self {
            config,
            say,
            collect,
            unknown_noted: vec![false; columns.len()],
            row: vec![None; header.columns.len()],
            columns,
            files,
            schedule,
            health,
            progress: Progress::default(),
            clock_moved: 0.0,
            phase,
            stop,
            broken: None,
            failed: false,
            unix_ms,
        })
    }

    /// When the run ends, as far as that is known.
    fn end(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Free { total } => total.map(|total| self.schedule.t0() + total),
            Phase::Cool { until } => Some(*until),
            Phase::Rest { .. } | Phase::Driving => None,
        }
    }

    async fn go(&mut self, driver: &mut Driver, mut detached: Option<&mut Detached>) -> u8 {
        let in_background = detached.is_some();
        let mut driver_code = None;
        let (mut stopping, mut kill_at) = (None, None);
        loop {
            let next = self.schedule.next_at();
            // What broke has to stand in a row.
            if self.end().is_some_and(|end| next >= end) && self.broken.is_none() {
                break;
            }
            let rest_ends = match &self.phase {
                Phase::Rest { total } => Some(self.schedule.t0() + *total),
                _ => None,
            };
            tokio::select! {
                biased;
                Some(event) = driver.events.recv() => match event {
                    Event::Signal(number) => {
                        stopping = Some(number);
                        match driver.pass_on(number) {
                            Some(done) => self.say.tell(done),
                            None => break,
                        }
                    }
                    // The next row tells it.
                    Event::Broken(what) => {
                        if self.stop.tell() {
                            self.broken = Some(what);
                            if self.stop_driver(driver).await {
                                kill_at = Some(Instant::now() + STOP_PATIENCE);
                            }
                        }
                    }
                    Event::Ended { unix_ms, code } => {
                        driver.ended();
                        driver_code = Some(code);
                        self.child(&Child { end_unix_ms: Some(unix_ms), code: Some(i32::from(code)), ..Child::default() });
                        if stopping.is_some() || self.failed {
                            break;
                        }
                        self.phase = Phase::Cool { until: Instant::now() + self.config.cool };
                    }
                },
                () = sleep_until(next), if !self.failed => {
                    let Some(tick) = self.schedule.take(Instant::now()) else { continue };
                    if let Err(why) = self.tick(&tick).await {
                        self.fail(&why);
                        // The driver is the user's; it goes on to its own end.
                        if !driver.runs() {
                            break;
                        }
                    }
                    if self.stop.is_broken() && kill_at.is_none() {
                        if !self.stop_driver(driver).await {
                            break;
                        }
                        kill_at = Some(Instant::now() + STOP_PATIENCE);
                    }
                    if let Some(detached) = detached.as_deref_mut() {
                        match self.readiness() {
                            Some(true) if !detached.ready() => {
                                self.say.trouble("nobody waits for this run in the background any more: ended");
                                return exit::SAMPLER_FAILED;
                            }
                            Some(false) => {
                                self.say.trouble(&format!("{} did not answer in the first ticks: ended", self.never_up().join(", ")));
                                driver.pass_on(Signal::TERM.as_raw());
                                return exit::TARGET_UNREADABLE;
                            }
                            _ => {}
                        }
                    }
                }
                () = sleep_until(kill_at.unwrap_or(next)), if kill_at.is_some() && driver.runs() => {
                    self.say.trouble(&format!("the driver goes on {} s after it was told to stop: killed", STOP_PATIENCE.as_secs()));
                    driver.kill();
                    kill_at = Some(Instant::now() + STOP_PATIENCE);
                }
                () = sleep_until(rest_ends.unwrap_or(next)), if rest_ends.is_some() => {
                    let start_unix_ms = (self.unix_ms)() as i64;
                    if let Err(why) = driver.start(&self.config.command, in_background) {
                        self.say.trouble(&format!("the driver {} cannot be started: {why}", self.config.command[0].display()));
                        return exit::SAMPLER_FAILED;
                    }
                    let command = self.say.scrub(&redact::command(&self.config.command));
                    self.child(&Child { command: Some(command), start_unix_ms: Some(start_unix_ms), ..Child::default() });
                    self.phase = Phase::Driving;
                    self.progress.end(self.say);
                }
            }
        }
        if self.failed {
            exit::SAMPLER_FAILED
        } else if self.stop.is_broken() {
            exit::GATE_STOPPED
        } else if let Some(code) = driver_code {
            code
        } else if let (Some(number), false) = (stopping, self.config.command.is_empty()) {
            code_of_signal(number)
        } else if self.never_up().is_empty() {
            exit::DONE
        } else {
            exit::TARGET_UNREADABLE
        }
    }

    /// Tells the driver to stop; `false` where there is none, and so nothing to wait for.
    async fn stop_driver(&mut self, driver: &mut Driver) -> bool {
        let told = self.stop.tell_driver(driver, self.say).await;
        if told && !driver.runs() {
            self.phase = Phase::Cool { until: Instant::now() + self.config.cool };
        }
        told
    }

    /// Records the driver's start or end.
    fn child(&mut self, child: &Child) {
        if let Err(why) = self.files.ticks.child(child) {
            self.fail(&why);
        }
    }

    /// A file can no longer be written: said once.
    fn fail(&mut self, why: &io::Error) {
        if !std::mem::replace(&mut self.failed, true) {
            self.say.trouble(&format!("{} cannot be written: {why}", self.files.ticks_path.display()));
        }
    }

    /// The required targets that have not answered a single read.
    fn never_up(&self) -> Vec<&str> {
        let targets = self.config.targets.iter().zip(&self.health.targets);
        let never = targets.filter(|(config, (_, health))| !config.allow_down && health.answered == 0 && health.due > 0);
        never.map(|(_, (name, _))| name.as_str()).collect()
    }

    /// For a run in the background: whether every required target has answered a read; `None` while that is open.
    fn readiness(&self) -> Option<bool> {
        if self.never_up().is_empty() {
            return Some(true);
        }
        let long = self.schedule.t0().elapsed() > START_LIMIT && self.health.ticks >= 10;
        long.then_some(false)
    }
}
