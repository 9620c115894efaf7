//! Visitors: in an open loop, each sent when it is due, or in a closed one, a fixed number of them one visit after the other.

use super::course::{Course, uniform};
use super::pace::pace;
use super::requests::{Log, Outcome, Request};
use anyhow::{Context as _, ensure};
use std::fmt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc};

/// One visit as the application is asked for it.
#[derive(Clone, Copy, Debug)]
pub struct Visit {
    /// Counts from 0.
    pub number: u64,
    /// Chance, above 0 and up to 1.
    pub chance: f64,
}

/// What became of a visit.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// Its name in the journey.
    pub step: &'static str,
    /// How it ended.
    pub outcome: Outcome,
    /// The status or the error's number.
    pub code: Option<u16>,
}

/// A visit under way.
pub type Visiting = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// The application: answers one visit. No visit takes longer than `PATIENCE`.
pub type App = Arc<dyn Fn(Visit) -> Visiting + Send + Sync>;

/// No visitor waits longer than this.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was sent, and how punctually.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Visits sent.
    pub sent: usize,
    /// Visits that ended well.
    pub ok: usize,
    /// How late each was sent, the most punctual first.
    late_ms: Vec<f64>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let late = |share: f64| self.late_ms.get((share * self.late_ms.len() as f64) as usize).or(self.late_ms.last());
        let (half, most) = (late(0.5).unwrap_or(&0.0), late(0.99).unwrap_or(&0.0));
        write!(f, "{} of {} visits ended well; sent {half:.1} ms late in the median, {most:.1} ms at p99", self.ok, self.sent)
    }
}

/// An open loop along this course, at random with this seed. `workers`: how many visits the driver itself can have under way;
/// a visit that is due waits for a free one, as in a driver that was given too few.
pub async fn open(course: Course, seed: u64, workers: Option<usize>, app: App, log: &Path) -> anyhow::Result<Summary> {
    send(course.random(seed), seed, workers, app, log).await
}

/// An open loop along this course, evenly, as most drivers with a fixed arrival rate send.
pub async fn even(course: Course, app: App, log: &Path) -> anyhow::Result<Summary> {
    send(course.even(), 1, None, app, log).await
}

async fn send(
    plan: impl Iterator<Item = Duration> + Send + 'static,
    seed: u64,
    workers: Option<usize>,
    app: App,
    log: &Path,
) -> anyhow::Result<Summary> {
    let workers = Arc::new(Semaphore::new(workers.unwrap_or(Semaphore::MAX_PERMITS)));
    let (ended, done) = mpsc::unbounded_channel();
    // A moment for the pacer's thread to be there before the first one is due.
    let mut due = pace(Instant::now() + Duration::from_millis(20), plan);
    tokio::spawn(async move {
        let mut chance = !seed;
        let mut number = 0;
        while let Some(scheduled) = due.recv().await {
            let (app, ended, workers) = (app.clone(), ended.clone(), workers.clone());
            let asked = Visit { number, chance: uniform(&mut chance) };
            number += 1;
            tokio::spawn(async move {
                let Ok(_worker) = workers.acquire().await else { return };
                // Only a reader that is gone would not take it.
                ended.send(visit(&app, asked, scheduled).await).ok();
            });
        }
    });
    written(done, log).await
}

/// A closed loop: so many visitors for so long, each thinking for a moment between two visits.
pub async fn closed(visitors: u32, think: Duration, lasts: Duration, app: App, log: &Path) -> anyhow::Result<Summary> {
    let (ended, done) = mpsc::unbounded_channel();
    let begin = Instant::now();
    for visitor in 0..visitors {
        let (app, ended) = (app.clone(), ended.clone());
        tokio::spawn(async move {
            let mut chance = u64::from(visitor);
            let mut number = u64::from(visitor);
            // They do not come all in the same moment.
            tokio::time::sleep(think.mul_f64(uniform(&mut chance))).await;
            while begin.elapsed() < lasts {
                let asked = Visit { number, chance: uniform(&mut chance) };
                number += u64::from(visitors);
                if ended.send(visit(&app, asked, Instant::now()).await).is_err() {
                    return;
                }
                tokio::time::sleep(think).await;
            }
        });
    }
    drop(ended);
    written(done, log).await
}

async fn visit(app: &App, asked: Visit, scheduled: Instant) -> Request {
    let started = Instant::now();
    let answer = tokio::time::timeout(PATIENCE, app(asked)).await;
    let Answer { step, outcome, code } = answer.unwrap_or(Answer { step: "visit", outcome: Outcome::Timeout, code: None });
    Request { step, scheduled, started, ended: Instant::now(), outcome, code }
}

async fn written(mut done: mpsc::UnboundedReceiver<Request>, log: &Path) -> anyhow::Result<Summary> {
    let mut log = Log::create(log).with_context(|| format!("create the log {}", log.display()))?;
    let mut summary = Summary::default();
    while let Some(request) = done.recv().await {
        log.write(&request)?;
        summary.sent += 1;
        summary.ok += usize::from(request.outcome == Outcome::Ok);
        summary.late_ms.push((request.started - request.scheduled).as_secs_f64() * 1e3);
    }
    log.finish()?;
    summary.late_ms.sort_by(f64::total_cmp);
    ensure!(summary.ok > 0, "not one of {} visits ended well", summary.sent);
    Ok(summary)
}

/// The load has threads to itself, so that it is sent on time beside an application in the same process.
pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
